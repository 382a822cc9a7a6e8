//! The signs of formulas: functions, accents, small letters and digits, and what occurs in formulas only.

/// Words that are set upright, with what they apply to.
const FUNCTIONS: [&str; 18] = [
    "ln", "log", "exp", "min", "max", "sup", "inf", "sgn", "sign", "argmin", "argmax", "tr", "sin", "cos", "sinh",
    "cosh", "diag", "lim",
];

/// Combining marks, and the signs that are set above a letter for them.
pub(crate) const ACCENTS: [(char, &str); 4] = [('\u{307}', "˙"), ('\u{303}', "~"), ('\u{302}', "^"), ('\u{304}', "¯")];

const SUBSCRIPTS: &str = "₀₁₂₃₄₅₆₇₈₉ᵢⱼₙₖₗₚₘₜₛₓₐₑ₊₋";
const LOWERED: &str = "0123456789ijnklpmtsxae+−";
const SUPERSCRIPTS: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀⁿⁱᵖ";
const RAISED: &str = "0123456789+−Tnip";

/// Whether a word is a function's name.
pub(crate) fn is_function(word: &str) -> bool {
    FUNCTIONS.contains(&word)
}

/// Whether a sign occurs in formulas and nowhere else.
pub(crate) fn is_mathematical(sign: char) -> bool {
    matches!(sign, '=' | '≤' | '≥' | '<' | '>' | '≠' | '≈' | '~' | '−' | '·' | '×' | '±' | '⊙' | '→' | '∈' | '∞' | '^')
        || matches!(sign, '‖' | '⟨' | '⟩' | '∫' | '∏' | '√' | '∇' | '∂' | '½' | '¼' | '|' | 'ℓ' | '′' | '″' | '+')
        || ('α'..='ω').contains(&sign)
        || ('Α'..='Ω').contains(&sign)
        || SUBSCRIPTS.contains(sign)
        || SUPERSCRIPTS.contains(sign)
        || ACCENTS.iter().any(|(mark, _)| *mark == sign)
}

/// A sign of one alphabet as the same one of another, as an element.
fn translate(sign: char, from: &str, to: &str) -> Option<String> {
    let place = from.chars().position(|known| known == sign)?;
    let plain = to.chars().nth(place)?;
    let tag = match plain {
        '0'..='9' => "mn",
        '+' | '−' => "mo",
        _ => "mi",
    };
    Some(format!("<{tag}>{plain}</{tag}>"))
}

/// What a subscript of Unicode stands for, as an element.
pub(crate) fn lowered(sign: char) -> Option<String> {
    translate(sign, SUBSCRIPTS, LOWERED)
}

/// What a superscript of Unicode stands for, as an element.
pub(crate) fn raised(sign: char) -> Option<String> {
    translate(sign, SUPERSCRIPTS, RAISED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_small_sign_has_its_large_one() {
        assert_eq!(SUBSCRIPTS.chars().count(), LOWERED.chars().count());
        assert_eq!(SUPERSCRIPTS.chars().count(), RAISED.chars().count());
        assert_eq!(lowered('ₙ').as_deref(), Some("<mi>n</mi>"));
        assert_eq!(raised('⁻').as_deref(), Some("<mo>−</mo>"));
        assert!(raised('n').is_none() && is_mathematical('λ') && !is_mathematical('-') && is_function("ln"));
    }
}
