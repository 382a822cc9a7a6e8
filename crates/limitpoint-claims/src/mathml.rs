//! Formulas as they are written in statements, `(q_min − ln N)/‖θ‖^L`, as MathML, which browsers show without a network.
//!
//! ```text
//! x_i, x_{i+1}, xᵢ     subscripts            x^L, x^{2/L}, 10^−800, x²    superscripts
//! a/b, (a + b)/(2c)    fractions             √x, √(x + 1)                 roots
//! ‖x‖_*, ⟨a, b⟩        norms, products       θ̇, γ̃, θ̂, γ̄                  accents
//! Σ, ∏, ∫, ∇, ∂        large and small signs ln, max, argmin              functions, upright
//! ```
//!
//! The numerator of a fraction is what stands before the stroke without a space, `2B₁⟨θ, v⟩/c`, or a whole derivative,
//! `d ln γ/dt`. Scripts and denominators keep the stroke. What cannot be read is nothing, and the caller keeps the text.

use limitpoint::report::escape;

use crate::signs::{ACCENTS, is_function, lowered, raised};

/// A formula as one `math` element; nothing where it cannot be read.
pub(crate) fn formula(text: &str) -> Option<String> {
    let mut reader = Reader { signs: text.chars().collect(), at: 0, flat: false };
    let pieces = reader.sequence(None)?;
    (!pieces.is_empty()).then(|| format!("<math>{}</math>", join(&pieces)))
}

/// A part of a formula.
#[derive(Default)]
struct Piece {
    html: String,
    /// What is inside, for parentheses.
    inside: Option<String>,
    /// Whether it separates what stands around it.
    operator: bool,
    /// Whether it follows the piece before it without a space.
    glued: bool,
    /// Its plain text, for single letters.
    letter: Option<char>,
}

impl Piece {
    fn new(html: String) -> Self {
        Self { html, ..Self::default() }
    }

    /// Without the parentheses that a fraction or root makes superfluous.
    fn bare(&self) -> &str {
        self.inside.as_deref().unwrap_or(&self.html)
    }
}

fn join(pieces: &[Piece]) -> String {
    let mut html = String::new();
    for (place, piece) in pieces.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| &pieces[before]);
        if before.is_some_and(|before| !piece.glued && !piece.operator && !before.operator) {
            html += "<mspace width=\"0.2em\"/>";
        }
        html += &piece.html;
    }
    html
}

fn row(pieces: &[Piece]) -> String {
    match pieces {
        [one] => one.bare().to_owned(),
        _ => format!("<mrow>{}</mrow>", join(pieces)),
    }
}

struct Reader {
    signs: Vec<char>,
    at: usize,
    /// Whether fractions are written with a stroke: in scripts and below the line of another fraction.
    flat: bool,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.signs.get(self.at).copied()
    }

    fn next_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        let sign = self.peek().filter(|sign| wanted(*sign))?;
        self.at += 1;
        Some(sign)
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> String {
        std::iter::from_fn(|| self.next_if(&wanted)).collect()
    }

    /// Everything up to a closing sign, or to the end.
    fn sequence(&mut self, close: Option<char>) -> Option<Vec<Piece>> {
        let mut pieces: Vec<Piece> = Vec::new();
        loop {
            let glued = self.take(char::is_whitespace).is_empty();
            match self.peek() {
                None => return close.is_none().then_some(pieces),
                sign if sign == close => {
                    self.at += 1;
                    return Some(pieces);
                }
                Some('/') if !self.flat && pieces.last().is_some_and(|last| !last.operator) => {
                    self.at += 1;
                    let fraction = self.fraction(&mut pieces)?;
                    pieces.push(fraction);
                }
                Some(_) => {
                    let piece = self.atom()?;
                    pieces.push(Piece { glued: glued && !pieces.is_empty(), ..piece });
                }
            }
        }
    }

    /// The fraction whose numerator ends `pieces` and whose denominator comes next.
    fn fraction(&mut self, pieces: &mut Vec<Piece>) -> Option<Piece> {
        let mut start = pieces.len() - 1;
        while pieces[start].glued && !pieces[start - 1].operator {
            start -= 1;
        }
        self.flat = true;
        let lower = self.denominator();
        self.flat = false;
        let lower = lower?;
        // a whole derivative: d ln γ/dt
        if lower[0].letter == Some('d') {
            let earlier = pieces[..start].iter().rposition(|piece| piece.operator).map_or(0, |place| place + 1);
            start = pieces[earlier..start]
                .iter()
                .position(|piece| piece.letter == Some('d'))
                .map_or(start, |d| earlier + d);
        }
        let upper = pieces.split_off(start);
        let html = format!("<mfrac>{}{}</mfrac>", row(&upper), row(&lower));
        Some(Piece { glued: upper[0].glued, ..Piece::new(html) })
    }

    fn denominator(&mut self) -> Option<Vec<Piece>> {
        self.take(char::is_whitespace);
        let mut pieces = vec![self.atom()?];
        if pieces[0].inside.is_some() {
            return Some(pieces);
        }
        // d ln ρ
        if pieces[0].letter == Some('d') && self.signs[self.at..].starts_with(&[' ', 'l', 'n', ' ']) {
            self.at += 1;
            pieces.push(self.atom()?);
            self.at += 1;
            pieces.push(self.atom()?);
            return Some(pieces);
        }
        while let Some(sign) = self.peek() {
            if sign.is_whitespace() || sign == '/' || !(sign.is_alphanumeric() || "(⟨√∇∂".contains(sign)) {
                break;
            }
            pieces.push(Piece { glued: true, ..self.atom()? });
        }
        Some(pieces)
    }

    /// One sign, number, word or group, with its accents and scripts.
    fn atom(&mut self) -> Option<Piece> {
        let mut piece = self.base()?;
        if let Some((_, accent)) = self.peek().and_then(|sign| ACCENTS.iter().find(|(mark, _)| *mark == sign)) {
            self.at += 1;
            piece = Piece::new(format!("<mover accent=\"true\">{}<mo>{accent}</mo></mover>", piece.html));
        }
        let (mut below, mut above) = (String::new(), String::new());
        while let Some(sign) = self.peek() {
            if let Some(element) = lowered(sign) {
                self.at += 1;
                below += &element;
            } else if let Some(element) = raised(sign) {
                self.at += 1;
                above += &element;
            } else if matches!(sign, '′' | '″') || (sign == '*' && !piece.operator) {
                self.at += 1;
                above += &format!("<mo>{sign}</mo>");
            } else if sign == '_' || sign == '^' {
                self.at += 1;
                let script = self.script(sign == '_')?;
                if sign == '_' { &mut below } else { &mut above }.push_str(&script);
            } else {
                break;
            }
        }
        if below.is_empty() && above.is_empty() {
            return Some(piece);
        }
        let (base, below, above) = (piece.html, mrow(&below), mrow(&above));
        piece.html = match (below, above) {
            (below, None) => format!("<msub>{base}{}</msub>", below.unwrap_or_default()),
            (None, Some(above)) => format!("<msup>{base}{above}</msup>"),
            (Some(below), Some(above)) => format!("<msubsup>{base}{below}{above}</msubsup>"),
        };
        Some(Piece { inside: None, letter: None, ..piece })
    }

    /// What follows `_` or `^`.
    fn script(&mut self, lower: bool) -> Option<String> {
        for (open, close) in [('{', '}'), ('(', ')')] {
            if self.next_if(|sign| sign == open).is_some() {
                let before = std::mem::replace(&mut self.flat, true);
                let inside = self.sequence(Some(close));
                self.flat = before;
                return Some(join(&inside?));
            }
        }
        let sign = self.next_if(|sign| matches!(sign, '−' | '-' | '+'));
        let sign = sign.map_or(String::new(), |sign| format!("<mo>{}</mo>", if sign == '-' { '−' } else { sign }));
        match self.peek()? {
            digit if digit.is_ascii_digit() => Some(sign + &self.number()),
            letter if lower && letter.is_ascii_alphabetic() => {
                let word = self.take(|sign| sign.is_ascii_alphabetic());
                Some(format!("{sign}<mi>{word}</mi>"))
            }
            other => {
                self.at += 1;
                let tag = if other.is_alphabetic() { "mi" } else { "mo" };
                Some(format!("{sign}<{tag}>{}</{tag}>", escape(&other.to_string())))
            }
        }
    }

    fn base(&mut self) -> Option<Piece> {
        let sign = self.peek()?;
        if sign.is_ascii_digit() {
            return Some(Piece::new(self.number()));
        }
        if sign.is_ascii_alphabetic() {
            return Some(self.word());
        }
        self.at += 1;
        let fence = |open: char, close: char, inner: &str| {
            let bar = |sign: char| format!("<mo stretchy=\"false\">{sign}</mo>");
            format!("<mrow>{}{inner}{}</mrow>", bar(open), bar(close))
        };
        Some(match sign {
            '(' | '[' | '{' | '⟨' | '‖' => {
                let close = match sign {
                    '(' => ')',
                    '[' => ']',
                    '{' => '}',
                    '⟨' => '⟩',
                    other => other,
                };
                let inner = join(&self.sequence(Some(close))?);
                let inside = (sign == '(').then(|| format!("<mrow>{inner}</mrow>"));
                Piece { inside, ..Piece::new(fence(sign, close, &inner)) }
            }
            '√' => Piece::new(format!("<msqrt>{}</msqrt>", self.atom()?.bare())),
            'Σ' | '∏' | 'Π' | '∫' => {
                let large = match sign {
                    'Σ' => '∑',
                    'Π' => '∏',
                    other => other,
                };
                Piece { operator: true, ..Piece::new(format!("<mo>{large}</mo>")) }
            }
            'ℓ' => {
                let which = self.take(|sign| sign.is_ascii_digit() || matches!(sign, '/' | '.' | 'p' | 'q' | '∞'));
                let kept = which.trim_end_matches(['.', '/']);
                self.at -= which.len() - kept.len();
                match kept {
                    "" => Piece::new("<mi>ℓ</mi>".to_owned()),
                    which => Piece::new(format!("<msub><mi>ℓ</mi><mn>{which}</mn></msub>")),
                }
            }
            '|' => Piece::new("<mo stretchy=\"false\">|</mo>".to_owned()),
            '½' | '¼' => Piece::new(format!("<mn>{sign}</mn>")),
            '∇' | '∂' | '∞' => Piece::new(format!("<mi mathvariant=\"normal\">{sign}</mi>")),
            '/' => Piece { operator: true, ..Piece::new("<mo lspace=\"0\" rspace=\"0\">/</mo>".to_owned()) },
            '-' => Piece { operator: true, ..Piece::new("<mo>−</mo>".to_owned()) },
            _ if sign.is_alphabetic() => Piece::new(format!("<mi>{sign}</mi>")),
            '=' | '≤' | '≥' | '<' | '>' | '≠' | '≈' | '~' | '−' | '+' | '·' | '×' | '±' | '⊙' | '→' | '∈' | ','
            | ':' | ';' | '…' | '*' | '!' | '.' => {
                Piece { operator: true, ..Piece::new(format!("<mo>{}</mo>", escape(&sign.to_string()))) }
            }
            _ => return None,
        })
    }

    /// A function, a word, or one letter of a product.
    fn word(&mut self) -> Piece {
        let begins = self.at == 0 || !self.signs[self.at - 1].is_ascii_alphabetic();
        let rest = self.signs[self.at..].iter();
        let word: String = rest.take_while(|sign| sign.is_ascii_alphabetic()).collect();
        let capitals = word.chars().all(|sign| sign.is_ascii_uppercase());
        if begins && (is_function(&word) || (word.len() > 2 && !capitals)) {
            self.at += word.len();
            let tag = if is_function(&word) { "mi" } else { "mtext" };
            return Piece::new(format!("<{tag}>{word}</{tag}>"));
        }
        let letter = self.signs[self.at];
        self.at += 1;
        Piece { letter: Some(letter), ..Piece::new(format!("<mi>{letter}</mi>")) }
    }

    /// Digits with a decimal point, groups of thousands and a power of ten.
    fn number(&mut self) -> String {
        let mut digits = String::new();
        let digit = |reader: &Self, ahead: usize| reader.signs.get(reader.at + ahead).is_some_and(char::is_ascii_digit);
        loop {
            digits += &self.take(|sign| sign.is_ascii_digit());
            let point = self.peek() == Some('.') && digit(self, 1);
            let thousands = self.peek() == Some(',') && (1..4).all(|k| digit(self, k)) && !digit(self, 4);
            match self.peek() {
                Some(sign) if point || thousands => {
                    digits.push(sign);
                    self.at += 1;
                }
                _ => break,
            }
        }
        let signed = matches!(self.signs.get(self.at + 1), Some('-' | '+' | '−'));
        if self.peek() != Some('e') || !digit(self, 1 + usize::from(signed)) {
            return format!("<mn>{digits}</mn>");
        }
        self.at += 1;
        let sign = self.next_if(|sign| matches!(sign, '-' | '+' | '−'));
        let minus = if matches!(sign, Some('-' | '−')) { "<mo>−</mo>" } else { "" };
        let power = self.take(|sign| sign.is_ascii_digit());
        let power = format!("<msup><mn>10</mn><mrow>{minus}<mn>{power}</mn></mrow></msup>");
        if digits == "1" { power } else { format!("<mrow><mn>{digits}</mn><mo>·</mo>{power}</mrow>") }
    }
}

fn mrow(script: &str) -> Option<String> {
    (!script.is_empty()).then(|| format!("<mrow>{script}</mrow>"))
}

#[cfg(test)]
mod tests {
    use super::formula;

    /// The elements of a formula in short: spaces and rows left out.
    fn short(text: &str) -> String {
        let html = formula(text).unwrap_or_else(|| panic!("{text} cannot be read"));
        let html = html.replace("<mrow>", "").replace("</mrow>", "").replace("<mspace width=\"0.2em\"/>", " ");
        let html = html
            .replace(" stretchy=\"false\"", "")
            .replace(" lspace=\"0\" rspace=\"0\"", "")
            .replace(" mathvariant=\"normal\"", "");
        let html = html.replace("<math>", "").replace("</math>", "");
        ["mi", "mn", "mo"]
            .iter()
            .fold(html, |html, tag| html.replace(&format!("<{tag}>"), "").replace(&format!("</{tag}>"), ""))
    }

    #[test]
    fn scripts_accents_and_roots() {
        assert_eq!(short("q_min"), "<msub>qmin</msub>");
        assert_eq!(short("γ̃^{2/L}"), "<msup><mover accent=\"true\">γ~</mover>2/L</msup>");
        assert_eq!(short("‖θ‖_*²"), "<msubsup>‖θ‖*2</msubsup>");
        assert_eq!(short("10^−100,000"), "<msup>10−100,000</msup>");
        assert_eq!(short("2^(1/5)"), "<msup>21/5</msup>");
        assert_eq!(short("√(θ² + λ)"), "<msqrt><msup>θ2</msup>+λ</msqrt>");
        assert_eq!(short("L^−¼"), "<msup>L−¼</msup>");
        assert_eq!(short("ℓ4/3"), "<msub>ℓ4/3</msub>");
        assert_eq!(short("3.5e-8"), "3.5·<msup>10−8</msup>");
        assert_eq!(short("WᵢWᵢᵀ"), "<msub>Wi</msub><msubsup>WiT</msubsup>");
    }

    #[test]
    fn fractions_take_what_belongs_to_them() {
        assert_eq!(short("(q_min − ln N)/‖θ‖^L"), "<mfrac><msub>qmin</msub>−ln N<msup>‖θ‖L</msup></mfrac>");
        assert_eq!(short("ln 1/L"), "ln <mfrac>1L</mfrac>");
        assert_eq!(short("2B₁⟨θ, v⟩/(L C)"), "<mfrac>2<msub>B1</msub>⟨θ,v⟩L C</mfrac>");
        assert_eq!(short("d ln γ/dt ≥ 1"), "<mfrac>d ln γdt</mfrac>≥1");
        assert_eq!(short("−ln(e^L − 1)/ρ^L"), "−<mfrac>ln(<msup>eL</msup>−1)<msup>ρL</msup></mfrac>");
        assert_eq!(short("dφ/d ln ρ ≈ 1"), "<mfrac>dφd ln ρ</mfrac>≈1");
        assert_eq!(short("1/(a ln 1/L) + b/c"), "<mfrac>1a ln 1/L</mfrac>+<mfrac>bc</mfrac>");
        assert_eq!(short("α/L−2"), "<mfrac>αL</mfrac>−2");
    }

    #[test]
    fn what_is_not_a_formula_is_nothing() {
        assert!(formula("(a").is_none() && formula("a)").is_none() && formula("").is_none());
        assert!(formula("‖a").is_none() && formula("^2").is_none() && formula("a \u{1F600}").is_none());
    }
}
