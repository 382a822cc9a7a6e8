//! Potentials given as a formula in one variable.

use std::fmt;
use std::str::FromStr;

use super::PotentialError;
use super::formula_reader::Reader;
use super::jet::Jet;

/// A function of t read from text, with exact derivatives.
///
/// ```text
/// sum      = product (('+' | '-') product)*
/// product  = signed (('*' | '/') signed)*
/// signed   = '-' signed | power
/// power    = atom ('^' signed)?                 right to left: 2^3^2 = 2^9, and -t^2 = -(t^2)
/// atom     = number | 't' | 'pi' | 'e' | name '(' sum ')' | '(' sum ')' | '|' sum '|'
/// ```
///
/// Functions: exp, ln, log (natural, as ln), log10, sqrt, cbrt, abs, sign, sinh, cosh, tanh, asinh, atan, sin, cos.
/// Derivatives come from arithmetic with (f, f′, f″), not from differences; |t| and sign have slope 0 at 0.
///
/// ```
/// use limitpoint::potentials::Formula;
/// let entropy: Formula = "t*asinh(t/4) - sqrt(t^2 + 16)".parse()?;
/// let [value, slope, curvature] = entropy.derivatives(3.0);
/// assert!((value - (3.0 * 2f64.ln() - 5.0)).abs() < 1e-14); // asinh(3/4) = ln 2
/// assert!((slope - 2f64.ln()).abs() < 1e-15 && (curvature - 0.2).abs() < 1e-15);
/// let error = "t*ash(t)".parse::<Formula>().unwrap_err().to_string();
/// assert!(error.contains("at character 3") && error.contains("did you mean"), "{error}");
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Formula {
    text: String,
    root: Node,
}

/// A formula as a tree.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Number(f64),
    Variable,
    Negate(Box<Node>),
    Combine(char, Box<Node>, Box<Node>),
    Call(&'static Function, Box<Node>),
}

/// A name and the function with two derivatives.
#[derive(Debug)]
pub(super) struct Function {
    pub name: &'static str,
    of: Outer,
}

#[derive(Debug)]
enum Outer {
    /// g, g′, g″.
    Plain(fn(f64) -> [f64; 3]),
    /// g, x g′, x² g″.
    Scaled(fn(f64) -> [f64; 3]),
}

/// Longer texts are no formulas; it also bounds how deep parentheses can go.
const LONGEST: usize = 500;

const fn plain(name: &'static str, of: fn(f64) -> [f64; 3]) -> Function {
    Function { name, of: Outer::Plain(of) }
}

const fn scaled(name: &'static str, of: fn(f64) -> [f64; 3]) -> Function {
    Function { name, of: Outer::Scaled(of) }
}

pub(super) static FUNCTIONS: [Function; 15] = [
    plain("exp", |x| [x.exp(); 3]),
    scaled("ln", |x| [x.ln(), 1.0, -1.0]),
    scaled("log", |x| [x.ln(), 1.0, -1.0]),
    scaled("log10", |x| [x.ln(), 1.0, -1.0].map(|y| y / std::f64::consts::LN_10)),
    scaled("sqrt", |x| [1.0, 0.5, -0.25].map(|factor| factor * x.sqrt())),
    scaled("cbrt", |x| [1.0, 1.0 / 3.0, -2.0 / 9.0].map(|factor| factor * x.cbrt())),
    plain("abs", |x| [x.abs(), if x == 0.0 { 0.0 } else { x.signum() }, 0.0]),
    plain("sign", |x| [if x == 0.0 { 0.0 } else { x.signum() }, 0.0, 0.0]),
    plain("sinh", |x| [x.sinh(), x.cosh(), x.sinh()]),
    plain("cosh", |x| [x.cosh(), x.sinh(), x.cosh()]),
    plain("tanh", |x| {
        let (y, rest) = (x.tanh(), 1.0 / (x.cosh() * x.cosh()));
        [y, rest, -2.0 * y * rest]
    }),
    plain("asinh", |x| {
        let root = x.hypot(1.0);
        [x.asinh(), 1.0 / root, -(x / root) / root / root]
    }),
    plain("atan", |x| {
        let rest = 1.0 / (1.0 + x * x);
        [x.atan(), rest, -2.0 * x * rest * rest]
    }),
    plain("sin", |x| [x.sin(), x.cos(), -x.sin()]),
    plain("cos", |x| [x.cos(), -x.sin(), -x.cos()]),
];

impl Formula {
    /// f(t), f′(t) and f″(t).
    pub fn derivatives(&self, t: f64) -> [f64; 3] {
        self.root.at(Jet::variable(t)).terms
    }

    /// f, f′ and f″ at t with bounds for their rounding errors.
    pub(super) fn jet(&self, t: f64) -> Jet {
        self.root.at(Jet::variable(t))
    }

    /// Names of the functions a formula may use.
    pub fn functions() -> impl Iterator<Item = &'static str> {
        FUNCTIONS.iter().map(|function| function.name)
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Node {
    fn at(&self, t: Jet) -> Jet {
        match self {
            Self::Number(value) => Jet::constant(*value),
            Self::Variable => t,
            Self::Negate(inner) => -inner.at(t),
            Self::Combine(sign, a, b) => {
                let (a, b) = (a.at(t), b.at(t));
                match sign {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    '/' => a * b.reciprocal(),
                    _ => a.power(b),
                }
            }
            Self::Call(function, inner) => {
                let inner = inner.at(t);
                match function.of {
                    Outer::Plain(of) => inner.apply(of(inner.terms[0])),
                    Outer::Scaled(of) => inner.apply_scaled(of(inner.terms[0])),
                }
            }
        }
    }

    fn mentions_variable(&self) -> bool {
        match self {
            Self::Number(_) => false,
            Self::Variable => true,
            Self::Negate(inner) | Self::Call(_, inner) => inner.mentions_variable(),
            Self::Combine(_, a, b) => a.mentions_variable() || b.mentions_variable(),
        }
    }
}

impl FromStr for Formula {
    type Err = PotentialError;

    fn from_str(text: &str) -> Result<Self, PotentialError> {
        let letters: Vec<char> = text.chars().collect();
        let mut reader = Reader { text, letters: &letters, place: 0, depth: 0 };
        if letters.len() > LONGEST {
            reader.place = LONGEST;
            return Err(reader.refuse(format!("the text is longer than {LONGEST} characters"), "shorten it"));
        }
        let root = reader.sum()?;
        if let Some(letter) = reader.peek() {
            let remedy = match letter {
                ')' => "remove it, or add the '(' it closes",
                't' | '(' => "write products with a star, such as 2*t",
                _ => "write + - * / or ^ between two parts",
            };
            return Err(reader.refuse(format!("'{letter}' is out of place"), remedy));
        }
        if !root.mentions_variable() {
            reader.place = 0;
            return Err(
                reader.refuse("it does not depend on t".into(), "a potential is a function of t, such as t^2/2")
            );
        }
        Ok(Self { text: text.trim().to_owned(), root })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, t: f64) -> f64 {
        text.parse::<Formula>().unwrap().derivatives(t)[0]
    }

    #[test]
    fn the_usual_order_of_operations() {
        assert_eq!(value("-t^2 + 2*t/4 - 1", 3.0), -9.0 + 1.5 - 1.0);
        assert_eq!(value("2^3^2 + 0*t", 0.0), 512.0);
        assert_eq!(value("2^-1*t", 3.0), 1.5);
        assert_eq!(value(" |t - 3|^3/3 ", 1.0), 8.0 / 3.0);
        assert_eq!(value("1e-3*t + 2.5E2*t", 2.0), 500.002);
        assert_eq!(value("e*t − pi·t", 1.0), std::f64::consts::E - std::f64::consts::PI);
        assert_eq!(value("t*((t))", 5.0), 25.0);
    }

    #[test]
    fn derivatives_of_every_function_agree_with_differences() {
        for name in Formula::functions() {
            let formula: Formula = format!("{name}(0.3 + t^2) * t").parse().unwrap();
            let (t, h) = (0.7, 1e-4);
            let [value, slope, curvature] = formula.derivatives(t);
            let (right, left) = (formula.derivatives(t + h), formula.derivatives(t - h));
            assert!(((right[0] - left[0]) / (2.0 * h) - slope).abs() < 1e-7, "{name}");
            assert!(((right[1] - left[1]) / (2.0 * h) - curvature).abs() < 1e-6, "{name}");
            let jet = formula.jet(t);
            assert!(jet.errors.iter().all(|e| *e < 1e-13) && value.is_finite(), "{name}: {jet:?}");
        }
    }

    #[test]
    fn derivatives_stay_in_range_where_their_parts_do_not() {
        // ln 2 cosh t − |t|/2 at 700: cosh² overflows, the curvature 1/cosh² is 0 up to rounding
        let [_, slope, curvature] = "ln(2*cosh(t)) - t/2".parse::<Formula>().unwrap().derivatives(700.0);
        assert!((slope - 0.5).abs() < 1e-12 && curvature.abs() < 1e-12, "{slope} {curvature}");
        let [value, _, curvature] = "1/t".parse::<Formula>().unwrap().derivatives(1e100);
        assert!((value / 1e-100 - 1.0).abs() < 1e-14 && (curvature / 2e-300 - 1.0).abs() < 1e-12);
        let [_, slope, curvature] = "sqrt(t^2) + t^2".parse::<Formula>().unwrap().derivatives(-3.0);
        assert!((slope + 7.0).abs() < 1e-14 && (curvature - 2.0).abs() < 1e-14);
    }

    #[test]
    fn every_mistake_is_named_with_its_place_and_a_remedy() {
        for (text, place, part) in [
            ("", "character 1", "ends too early"),
            ("t +", "character 4", "ends too early"),
            ("2t", "character 2", "2*t"),
            ("(t + 1", "character 1", "add ')'"),
            ("|t", "character 1", "add '|'"),
            ("t)", "character 2", "remove it"),
            ("sqr(t)", "character 1", "did you mean 'sqrt'"),
            ("t^2/x", "character 5", "The variable is t"),
            ("1.2.3*t", "character 1", "no number"),
            ("sin t", "character 5", "sin(t)"),
            ("3 + pi", "character 1", "does not depend on t"),
            ("t $ 2", "character 3", "between two parts"),
            ("* t", "character 1", "goes here"),
        ] {
            let error = text.parse::<Formula>().unwrap_err().to_string();
            assert!(error.contains(place) && error.contains(part), "{text}: {error}");
        }
        let deep = "(".repeat(5000) + "t";
        assert!(deep.parse::<Formula>().unwrap_err().to_string().contains("longer than 500"));
        for nested in ["(".repeat(100) + "t", "-".repeat(100) + "t", "t^".repeat(100) + "t"] {
            assert!(nested.parse::<Formula>().unwrap_err().to_string().contains("inside each other"), "{nested}");
        }
        assert!(("(".repeat(50) + "t^2" + &")".repeat(50)).parse::<Formula>().is_ok());
    }
}
