//! From text to the tree of a [`super::Formula`]: one function per rule of its grammar.

use super::formula::{FUNCTIONS, Function, Node};
use super::{Formula, PotentialError};

/// Reads from left to right.
pub(super) struct Reader<'a> {
    pub text: &'a str,
    pub letters: &'a [char],
    pub place: usize,
    /// Brackets, signs and exponents that are open.
    pub depth: usize,
}

/// The most brackets, signs and exponents inside each other.
const DEEPEST: usize = 60;

impl Reader<'_> {
    pub fn refuse(&self, problem: String, remedy: impl Into<String>) -> PotentialError {
        let (text, remedy) = (self.text.chars().take(80).collect(), remedy.into());
        PotentialError::Formula { text, place: self.place + 1, problem, remedy }
    }

    /// The next letter that is no space.
    pub fn peek(&mut self) -> Option<char> {
        while self.letters.get(self.place).is_some_and(|letter| letter.is_whitespace()) {
            self.place += 1;
        }
        self.letters.get(self.place).copied()
    }

    /// Goes past one of these letters, if it is next.
    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let letter = self.peek().filter(|letter| wanted.contains(letter))?;
        self.place += 1;
        // people paste minus signs and dots
        Some(match letter {
            '−' => '-',
            '·' | '×' => '*',
            other => other,
        })
    }

    pub fn sum(&mut self) -> Result<Node, PotentialError> {
        let mut node = self.product()?;
        while let Some(sign) = self.take(&['+', '-', '−']) {
            node = Node::Combine(sign, Box::new(node), Box::new(self.product()?));
        }
        Ok(node)
    }

    fn product(&mut self) -> Result<Node, PotentialError> {
        let mut node = self.signed()?;
        while let Some(sign) = self.take(&['*', '/', '·', '×']) {
            node = Node::Combine(sign, Box::new(node), Box::new(self.signed()?));
        }
        Ok(node)
    }

    fn signed(&mut self) -> Result<Node, PotentialError> {
        if self.depth == DEEPEST {
            return Err(self.refuse(format!("more than {DEEPEST} parts are inside each other"), "write it flatter"));
        }
        self.depth += 1;
        let node = match self.take(&['-', '−', '+']) {
            Some('-') => self.signed().map(|node| Node::Negate(Box::new(node))),
            Some(_) => self.signed(),
            None => self.power(),
        };
        self.depth -= 1;
        node
    }

    fn power(&mut self) -> Result<Node, PotentialError> {
        let base = self.atom()?;
        match self.take(&['^']) {
            Some(sign) => Ok(Node::Combine(sign, Box::new(base), Box::new(self.signed()?))),
            None => Ok(base),
        }
    }

    fn atom(&mut self) -> Result<Node, PotentialError> {
        match self.peek() {
            Some('(') => self.enclosed('(', ')'),
            Some('|') => {
                let abs = self.function("abs", self.place)?;
                Ok(Node::Call(abs, Box::new(self.enclosed('|', '|')?)))
            }
            Some(letter) if letter.is_ascii_digit() || letter == '.' => self.number(),
            Some(letter) if letter.is_alphabetic() => self.name(),
            Some(letter) => {
                Err(self.refuse(format!("'{letter}' is out of place"), "a number, t or a function goes here"))
            }
            None => Err(self.refuse("it ends too early".into(), "a number, t or a function goes here")),
        }
    }

    fn enclosed(&mut self, open: char, close: char) -> Result<Node, PotentialError> {
        let start = self.place;
        self.take(&[open]);
        let inner = self.sum()?;
        if self.take(&[close]).is_none() {
            self.place = start;
            return Err(self.refuse(format!("this '{open}' is never closed"), format!("add '{close}'")));
        }
        Ok(inner)
    }

    fn number(&mut self) -> Result<Node, PotentialError> {
        let start = self.place;
        let digit = |letter: Option<&char>| letter.is_some_and(|c| c.is_ascii_digit() || *c == '.');
        while digit(self.letters.get(self.place)) {
            self.place += 1;
        }
        // 1e-3, but not the constant e after a number
        if matches!(self.letters.get(self.place), Some('e' | 'E')) {
            let signed = matches!(self.letters.get(self.place + 1), Some('+' | '-'));
            let first = self.place + 1 + usize::from(signed);
            if self.letters.get(first).is_some_and(char::is_ascii_digit) {
                self.place = first;
                while self.letters.get(self.place).is_some_and(char::is_ascii_digit) {
                    self.place += 1;
                }
            }
        }
        let text: String = self.letters[start..self.place].iter().collect();
        text.parse().map(Node::Number).map_err(|_| {
            self.place = start;
            self.refuse(format!("'{text}' is no number"), "write it as 0.3 or 3e-1")
        })
    }

    fn name(&mut self) -> Result<Node, PotentialError> {
        let start = self.place;
        while self.letters.get(self.place).is_some_and(|letter| letter.is_alphanumeric()) {
            self.place += 1;
        }
        let name: String = self.letters[start..self.place].iter().collect();
        match name.as_str() {
            "t" => return Ok(Node::Variable),
            "pi" | "π" => return Ok(Node::Number(std::f64::consts::PI)),
            "e" => return Ok(Node::Number(std::f64::consts::E)),
            _ => {}
        }
        let function = self.function(&name, start)?;
        if self.peek() != Some('(') {
            return Err(self.refuse(format!("'{name}' has no argument"), format!("write {name}(t)")));
        }
        Ok(Node::Call(function, Box::new(self.enclosed('(', ')')?)))
    }

    fn function(&mut self, name: &str, start: usize) -> Result<&'static Function, PotentialError> {
        FUNCTIONS.iter().find(|function| function.name == name).ok_or_else(|| {
            self.place = start;
            let shared = |known: &str| known.chars().filter(|letter| name.contains(*letter)).count() * 10 / known.len();
            let near = FUNCTIONS.iter().map(|f| f.name).max_by_key(|known| shared(known)).unwrap_or("abs");
            let known: Vec<&str> = Self::known().collect();
            let remedy = format!(
                "did you mean '{near}'? The variable is t; there are {} and the constants pi, e",
                known.join(", ")
            );
            self.refuse(format!("'{name}' is neither t nor a function"), remedy)
        })
    }

    fn known() -> impl Iterator<Item = &'static str> {
        Formula::functions()
    }
}
