//! Text as LaTeX sets it.

/// Text with LaTeX's own characters escaped and the signs of mathematics as its commands; letters stay, since LaTeX reads
/// UTF-8.
///
/// ```
/// use limitpoint::report::latex;
/// assert_eq!(latex("γ of ℓ1, 50 % & a_b"), r"$\gamma{}$ of $\ell{}$1, 50 \% \& a\_b");
/// assert_eq!(latex("10⁻⁵ −3 ± 2"), r"10$^{-5}$ $-{}$3 $\pm{}$ 2");
/// ```
pub fn latex(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut mode = Mode::Text;
    for letter in text.chars() {
        let (next, set) = match letter {
            '\\' => (Mode::Text, r"\textbackslash{}".to_owned()),
            '~' => (Mode::Text, r"\textasciitilde{}".to_owned()),
            '^' => (Mode::Text, r"\textasciicircum{}".to_owned()),
            '<' | '>' | '|' => (Mode::Mathematics, letter.to_string()),
            '#' | '$' | '%' | '&' | '_' | '{' | '}' => (Mode::Text, format!("\\{letter}")),
            letter if letter.is_control() => (Mode::Text, " ".to_owned()),
            letter => match (digit(SUPERSCRIPTS, letter), digit(SUBSCRIPTS, letter), command(letter)) {
                (Some(digit), _, _) => (Mode::Raised, digit.to_string()),
                (_, Some(digit), _) => (Mode::Lowered, digit.to_string()),
                (_, _, Some(command)) => (Mode::Mathematics, format!("{command}{{}}")),
                _ => (Mode::Text, letter.to_string()),
            },
        };
        if next != mode {
            out += mode.end();
            out += next.begin();
            mode = next;
        }
        out += &set;
    }
    out + mode.end()
}

/// What stands around a stretch of characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Text,
    Mathematics,
    Raised,
    Lowered,
}

impl Mode {
    fn begin(self) -> &'static str {
        match self {
            Self::Text => "",
            Self::Mathematics => "$",
            Self::Raised => "$^{",
            Self::Lowered => "$_{",
        }
    }

    fn end(self) -> &'static str {
        match self {
            Self::Text => "",
            Self::Mathematics => "$",
            Self::Raised | Self::Lowered => "}$",
        }
    }
}

const SUPERSCRIPTS: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ";
const SUBSCRIPTS: &str = "₀₁₂₃₄₅₆₇₈₉₋ₙ";

fn digit(raised: &str, letter: char) -> Option<char> {
    raised.chars().position(|known| known == letter).and_then(|place| "0123456789-n".chars().nth(place))
}

/// The command of a sign; they are those of plain LaTeX.
fn command(letter: char) -> Option<&'static str> {
    Some(match letter {
        'α' => r"\alpha",
        'β' => r"\beta",
        'γ' => r"\gamma",
        'δ' => r"\delta",
        'ε' => r"\varepsilon",
        'ζ' => r"\zeta",
        'η' => r"\eta",
        'θ' => r"\theta",
        'ι' => r"\iota",
        'κ' => r"\kappa",
        'λ' => r"\lambda",
        'μ' | 'µ' => r"\mu",
        'ν' => r"\nu",
        'ξ' => r"\xi",
        'π' => r"\pi",
        'ρ' => r"\rho",
        'σ' => r"\sigma",
        'τ' => r"\tau",
        'υ' => r"\upsilon",
        'φ' => r"\varphi",
        'ϕ' => r"\phi",
        'χ' => r"\chi",
        'ψ' => r"\psi",
        'ω' => r"\omega",
        'Γ' => r"\Gamma",
        'Δ' => r"\Delta",
        'Θ' => r"\Theta",
        'Λ' => r"\Lambda",
        'Ξ' => r"\Xi",
        'Π' => r"\Pi",
        'Σ' => r"\Sigma",
        'Φ' => r"\Phi",
        'Ψ' => r"\Psi",
        'Ω' => r"\Omega",
        'ℓ' => r"\ell",
        '∞' => r"\infty",
        '−' => "-",
        '·' | '⋅' => r"\cdot",
        '×' => r"\times",
        '±' => r"\pm",
        '≤' => r"\le",
        '≥' => r"\ge",
        '≠' => r"\ne",
        '≈' => r"\approx",
        '→' => r"\to",
        '∇' => r"\nabla",
        '∂' => r"\partial",
        '√' => r"\surd",
        '∑' => r"\sum",
        '∈' => r"\in",
        '‖' | '∥' => r"\|",
        '★' => r"\star",
        '⟨' => r"\langle",
        '⟩' => r"\rangle",
        _ => return None,
    })
}
