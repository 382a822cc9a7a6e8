//! Sentences with formulas in them, as HTML in which the formulas are MathML.
//!
//! A word with a sign that only formulas have begins one; numbers, letters and functions beside it belong to it, and a
//! comma outside brackets, or the next ordinary word, ends it. What cannot be read as a formula stays text.

use limitpoint::report::escape;

use crate::mathml::formula;
use crate::signs::{is_function, is_mathematical};

/// What a word can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// Part of a formula.
    Formula,
    /// Part of a formula beside one: a number, a function.
    Beside,
    /// A letter: a formula by itself.
    Letter,
    /// The word "a", or a letter that names a paper: part of a formula between two.
    Between,
    /// A word.
    Prose,
}

/// A sentence as HTML.
pub(crate) fn typeset(text: &str) -> String {
    let words = split(text);
    let member = members(&words);
    let mut html = String::new();
    let mut at = 0;
    while at < words.len() {
        if words[at].spaced {
            html.push(' ');
        }
        if !member[at] {
            html += &escape(&words[at].text);
            at += 1;
            continue;
        }
        let mut whole = String::new();
        let first = at;
        while at < words.len() && member[at] {
            if at > first && words[at].spaced {
                whole.push(' ');
            }
            whole += &words[at].text;
            at += 1;
            if whole.ends_with([',', ';', ':', '.']) && depth(&whole) <= 0 {
                break;
            }
        }
        html += &mathematics(&whole);
    }
    html
}

/// A formula, with the brackets and stops of the sentence around it.
fn mathematics(whole: &str) -> String {
    let (mut before, mut inner, mut after) = (String::new(), whole, String::new());
    loop {
        let open = depth(inner);
        if let Some((head, last)) = inner.char_indices().next_back()
            && (matches!(last, ',' | ';' | ':' | '.' | '?' | '"') || (open < 0 && matches!(last, ')' | ']')))
        {
            after.insert(0, last);
            inner = &inner[..head];
        } else if let Some(first) =
            inner.chars().next().filter(|first| *first == '"' || (open > 0 && "([".contains(*first)))
        {
            before.push(first);
            inner = &inner[first.len_utf8()..];
        } else {
            break;
        }
    }
    // a bracket of the sentence opens between two formulas: t ≥ t₀ (L² is printed)
    if depth(inner) > 0
        && let Some((head, rest)) = inner.rsplit_once(" (")
    {
        return format!("{}{} ({}{}", escape(&before), mathematics(head), mathematics(rest), escape(&after));
    }
    let inner = formula(inner).unwrap_or_else(|| escape(inner));
    format!("{}{inner}{}", escape(&before), escape(&after))
}

/// How many brackets are open at the end; below 0 where more are closed.
fn depth(text: &str) -> i32 {
    text.chars().fold(0, |depth, sign| match sign {
        '(' | '[' | '{' | '⟨' => depth + 1,
        ')' | ']' | '}' | '⟩' => depth - 1,
        _ => depth,
    })
}

struct Token {
    text: String,
    spaced: bool,
    word: Word,
}

/// The words of a text; those that begin as a formula, such as `α-homogeneous`, in two.
fn split(text: &str) -> Vec<Token> {
    let mut words = Vec::new();
    for (place, whole) in text.split(' ').enumerate() {
        let dash = whole.char_indices().find(|(at, sign)| {
            *sign == '-' && *at > 0 && whole[at + 1..].chars().take_while(char::is_ascii_alphabetic).count() > 1
        });
        let (head, tail) = dash.map_or((whole, ""), |(at, _)| whole.split_at(at));
        let word = kind(head);
        if tail.is_empty() || word == Word::Prose {
            words.push(Token { text: whole.to_owned(), spaced: place > 0, word: kind(whole) });
        } else {
            words.push(Token { text: head.to_owned(), spaced: place > 0, word });
            words.push(Token { text: tail.to_owned(), spaced: false, word: Word::Prose });
        }
    }
    words
}

fn kind(word: &str) -> Word {
    let bare = word.trim_matches(|sign: char| "()[]{},;:.!?\"".contains(sign));
    let mut runs = bare.split(|sign: char| !sign.is_ascii_alphabetic());
    if runs.any(|run| run.len() > 3 && !is_function(run)) && !bare.contains("^{") {
        return Word::Prose;
    }
    let index = bare.char_indices().any(|(at, sign)| sign == '_' && bare[..at].chars().count() < 3);
    if bare.chars().any(is_mathematical) || index || ratio(bare) || applied(word) || word == "}" {
        return Word::Formula;
    }
    match bare {
        "a" | "A" | "I" | "B" | "C" | "D" => Word::Between,
        _ if bare.len() == 1 && bare.starts_with(|sign: char| sign.is_ascii_alphabetic()) => Word::Letter,
        _ if is_function(bare) && bare != "sign" && bare != "log" => Word::Beside,
        _ if bare.replace(',', "").parse::<f64>().is_ok() => Word::Beside,
        _ if bare.starts_with(|sign: char| sign.is_ascii_digit()) && !bare.contains('-') => Word::Beside,
        "dt" | "dx" | "ds" | "Loss" | "" => Word::Beside,
        // a product of two matrices, in brackets
        _ if bare.len() == 2
            && word != bare
            && bare.chars().all(|sign| sign.is_ascii_uppercase())
            && word.ends_with(')') =>
        {
            Word::Beside
        }
        _ => Word::Prose,
    }
}

/// `f(x)`, `ln(1`, `1/L(t)` and `x/(2K)`: a letter or function with what it is applied to, or divided by.
fn applied(word: &str) -> bool {
    let Some((name, _)) = word.split_once('(').filter(|(name, inside)| !name.is_empty() && !inside.is_empty()) else {
        return false;
    };
    let mut parts = name.trim_end_matches('/').split('/');
    parts.all(|part| {
        is_function(part) || (part.len() == 1 && part.starts_with(|sign: char| sign.is_ascii_alphanumeric()))
    })
}

/// `1/L`, `dL/dt` and the like, but not `and/or`.
fn ratio(word: &str) -> bool {
    let Some((above, below)) = word.split_once('/') else { return false };
    let short = |side: &str| (1..3).contains(&side.len()) && side.chars().all(|sign| sign.is_ascii_alphanumeric());
    short(above) && short(below) && (above.len() == 1 || above.starts_with('d') || above.starts_with(char::is_numeric))
}

/// Which words belong to formulas.
fn members(words: &[Token]) -> Vec<bool> {
    let mut member: Vec<bool> = words.iter().map(|token| token.word == Word::Formula).collect();
    let ends =
        |token: &Token| token.text.len() > 1 && token.text.ends_with([',', ';', '.', ':']) && depth(&token.text) <= 0;
    for _ in 0..words.len() {
        let mut grown = false;
        for place in 0..words.len() {
            let before = place > 0 && member[place - 1] && !ends(&words[place - 1]);
            let after =
                words.get(place + 1).is_some_and(|next| member[place + 1] && next.spaced) && !ends(&words[place]);
            let joins = match words[place].word {
                Word::Beside | Word::Letter => before || after,
                Word::Between => after && (before || words[place + 1].text.starts_with('=')),
                Word::Formula | Word::Prose => false,
            };
            grown |= joins && !member[place];
            member[place] |= joins;
        }
        if !grown {
            break;
        }
    }
    for (place, token) in words.iter().enumerate() {
        member[place] |= token.word == Word::Letter;
    }
    member
}

#[cfg(test)]
mod tests {
    use super::typeset;
    use crate::claims;

    /// Letters and digits of a text, without the tags and with plain scripts.
    fn letters(html: &str) -> String {
        let mut text = String::new();
        let mut inside = false;
        for sign in html.chars() {
            match sign {
                '<' => inside = true,
                '>' => inside = false,
                _ if !inside => text.push(sign),
                _ => {}
            }
        }
        let text = text
            .replace("&#39;", "")
            .replace("&quot;", "")
            .replace("&lt;", "")
            .replace("&gt;", "")
            .replace("&amp;", "");
        let plain = |sign: char| match sign {
            '₀'..='₉' => char::from_u32(sign as u32 - '₀' as u32 + '0' as u32),
            '⁴'..='⁹' => char::from_u32(sign as u32 - '⁴' as u32 + '4' as u32),
            '¹' => Some('1'),
            '²' => Some('2'),
            '³' => Some('3'),
            'ᵢ' | 'ⁱ' => Some('i'),
            'ⱼ' => Some('j'),
            'ₙ' | 'ⁿ' => Some('n'),
            'ₗ' => Some('l'),
            'ᵀ' => Some('T'),
            'Σ' | 'Π' => None,
            other => other.is_alphanumeric().then_some(other),
        };
        text.chars().filter_map(plain).collect()
    }

    #[test]
    fn prose_stays_prose_and_formulas_are_set() {
        assert_eq!(typeset("From 0 & on, and/or two-layer nets"), "From 0 &amp; on, and/or two-layer nets");
        assert_eq!(typeset("it is w."), "it is <math><mi>w</mi></math>.");
        let set = typeset("so that (λ > 1, say) the α-homogeneous (ε, δ)-KKT point");
        assert!(set.starts_with("so that (<math><mi>λ</mi><mo>&gt;</mo><mn>1</mn></math>, say) the <math>"), "{set}");
        assert!(set.contains("</math>-homogeneous <math>") && set.ends_with("</math>-KKT point"), "{set}");
        assert!(typeset("of a γ at a point").contains("of a <math><mi>γ</mi></math> at a point"));
        assert!(
            typeset("is {v : ⟨v, x⟩ = 1, ‖v‖_* ≤ 1}.").starts_with("is <math>")
                && !typeset("{v : v ≤ 1}").contains("{v")
        );
        assert!(typeset("margin 2.02e-4 ± 2.5e-6, R(x) over x").matches("<math>").count() == 3);
        let set = typeset("for t ≥ 1 (λ²/α is printed) and W − η(GW + WG) or 1/L(t)");
        assert!(set.contains("</math> (<math><mfrac>") && set.matches("<math>").count() == 4, "{set}");
        assert!(typeset("the constant C = 1").starts_with("the constant <math><mi>C</mi>"));
        assert_eq!(typeset("optimiser=gradient of paper B"), "optimiser=gradient of paper B");
    }

    #[test]
    fn no_statement_loses_a_letter_and_tags_are_closed() {
        let mut set = 0;
        for claim in claims() {
            let html = typeset(claim.statement);
            assert_eq!(letters(&html), letters(&claim.statement.replace(['<', '>'], "")), "{}", claim.id);
            for tag in ["math", "mrow", "mfrac", "msub", "msup", "msubsup", "mover", "msqrt", "mi", "mn", "mo"] {
                let (open, close) =
                    (html.matches(&format!("<{tag}>")).count(), html.matches(&format!("</{tag}>")).count());
                let with = html.matches(&format!("<{tag} ")).count();
                assert_eq!(open + with, close, "{}: {tag} in {html}", claim.id);
            }
            set += html.matches("<math>").count();
        }
        assert!(set > 200, "{set}");
    }
}
