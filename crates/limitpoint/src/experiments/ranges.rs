//! Lists and ranges of an override: `1,2,3`, `1..5`, `0..1+0.25`, `64..512*2`.

use std::ops::Range;

use super::node::Kind;

/// The most values one range may have.
pub(super) const LONGEST_RANGE: usize = 10_000;

/// The parts of a text between commas that stand outside brackets and quotes; always at least one.
pub(super) fn split_commas(text: &str) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) => quote = (letter != open).then_some(open),
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(start..text.len());
    parts
}

/// How a range goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Advance {
    Add(Number),
    Multiply(Number),
}

/// A number, kept whole as long as possible.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(whole) = text.parse::<i64>() {
            return Some(Self::Whole(i128::from(whole)));
        }
        if let Ok(whole) = text.parse::<u64>() {
            return Some(Self::Whole(i128::from(whole)));
        }
        // "inf" and "nan" are words here
        text.parse().ok().filter(|real: &f64| real.is_finite()).map(Self::Real)
    }

    fn real(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        }
    }
}

/// The values of a range `a..b`, `a..b+step` or `a..b*factor`, both ends included; `None` if the text is no range.
pub(super) fn range(text: &str) -> Option<Result<Vec<Kind>, String>> {
    let (first, rest) = text.split_once("..")?;
    let first = Number::read(first)?;
    let sum = rest.char_indices().skip(1).find(|(at, letter)| *letter == '+' && !rest[..*at].ends_with(['e', 'E']));
    let (last, advance) = if let Some((last, factor)) = rest.split_once('*') {
        (last, Number::read(factor).map(Advance::Multiply))
    } else if let Some((at, _)) = sum {
        (&rest[..at], Number::read(&rest[at + 1..]).map(Advance::Add))
    } else {
        (rest, Some(Advance::Add(Number::Whole(1))))
    };
    let (Some(last), Some(advance)) = (Number::read(last), advance) else {
        return Some(Err(format!("'{text}' is no range; write 1..5, 0..1+0.25 or 64..512*2")));
    };
    let values = match advance {
        Advance::Add(step) => sum_range(text, first, last, step),
        Advance::Multiply(factor) => product_range(text, first, last, factor),
    };
    Some(values.map(|values| values.into_iter().map(|value| as_kind(value, first, last)).collect()))
}

/// Whole ends keep whole values whole, so that they fit counts.
fn as_kind(value: Number, first: Number, last: Number) -> Kind {
    match (value, first, last) {
        (Number::Whole(whole), ..) => Kind::Integer(whole),
        (Number::Real(real), Number::Whole(_), Number::Whole(_)) if real.fract() == 0.0 && real.abs() < 9e15 => {
            Kind::Integer(real as i128)
        }
        (Number::Real(real), ..) => Kind::Float(real),
    }
}

fn sum_range(text: &str, first: Number, last: Number, step: Number) -> Result<Vec<Number>, String> {
    let (a, b, by) = (first.real(), last.real(), step.real());
    if by == 0.0 && first != last {
        return Err(format!("the range '{text}' never ends: its step is 0"));
    }
    let steps = match (first, last, step) {
        _ if first == last => 0.0,
        // beyond 2⁵³ the difference must be taken before rounding
        (Number::Whole(first), Number::Whole(last), Number::Whole(step)) => (last - first).div_euclid(step) as f64,
        _ => ((b - a) / by + 1e-9).floor(),
    };
    if steps < 0.0 {
        let reverse = if by > 0.0 { "; write the smaller end first, or a negative step as in 5..1+-1" } else { "" };
        return Err(format!("the range '{text}' is empty{reverse}"));
    }
    let count = bounded(text, steps + 1.0)?;
    let value = |i: usize| match (first, step) {
        (Number::Whole(first), Number::Whole(step)) => Number::Whole(first + i as i128 * step),
        _ => Number::Real(rounded(a + i as f64 * by)),
    };
    Ok((0..count).map(value).collect())
}

fn product_range(text: &str, first: Number, last: Number, factor: Number) -> Result<Vec<Number>, String> {
    let (a, b, by) = (first.real(), last.real(), factor.real());
    if a == b {
        return Ok(vec![first]);
    }
    if by <= 0.0 || by == 1.0 || a == 0.0 {
        return Err(format!(
            "the range '{text}' never ends: start at a number other than 0 and multiply by one above 0 other than 1"
        ));
    }
    if a.signum() != b.signum() || b == 0.0 {
        let word = if by < 1.0 { "never ends: it only tends to 0" } else { "is empty" };
        return Err(format!("the range '{text}' {word}; both ends need the same sign"));
    }
    let steps = ((b / a).ln() / by.ln() + 1e-9).floor();
    if steps < 0.0 {
        return Err(format!("the range '{text}' is empty; its factor leads away from its end"));
    }
    let count = bounded(text, steps + 1.0)?;
    let mut values = Vec::with_capacity(count);
    let mut whole = Some(first);
    for i in 0..count {
        values.push(match whole {
            Some(Number::Whole(value)) => Number::Whole(value),
            _ => Number::Real(rounded(a * by.powi(i as i32))),
        });
        whole = match (whole, factor) {
            (Some(Number::Whole(value)), Number::Whole(factor)) => value.checked_mul(factor).map(Number::Whole),
            _ => None,
        };
    }
    Ok(values)
}

fn bounded(text: &str, count: f64) -> Result<usize, String> {
    if count.is_finite() && count <= LONGEST_RANGE as f64 {
        Ok(count as usize)
    } else {
        Err(format!(
            "the range '{text}' has {count:.0} values, but at most {LONGEST_RANGE} are allowed; use larger steps"
        ))
    }
}

/// To 14 digits, so that 0.1 + 2·0.1 is 0.3.
fn rounded(value: f64) -> f64 {
    format!("{value:.13e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        let words = |kind: &Kind| match kind {
            Kind::Integer(whole) => whole.to_string(),
            Kind::Float(real) => format!("{real:?}"),
            other => panic!("{other:?}"),
        };
        match range(text) {
            None => "no range".into(),
            Some(Ok(values)) => values.iter().map(words).collect::<Vec<_>>().join(" "),
            Some(Err(problem)) => problem,
        }
    }

    #[test]
    fn ranges_include_both_ends() {
        for (text, values) in [
            ("1..5", "1 2 3 4 5"),
            ("3..3", "3"),
            ("64..512*2", "64 128 256 512"),
            ("64..500*2", "64 128 256"),
            ("0..1+0.25", "0 0.25 0.5 0.75 1"),
            ("0.1..0.5+0.1", "0.1 0.2 0.3 0.4 0.5"),
            ("5..1+-2", "5 3 1"),
            ("1e-3..1e+1*10", "0.001 0.01 0.1 1.0 10.0"),
            ("1..0.01*0.1", "1 0.1 0.01"),
            ("-8..-1*0.5", "-8 -4 -2 -1"),
            ("64..150*1.5", "64 96 144"),
            ("-2..0", "-2 -1 0"),
            ("18446744073709551614..18446744073709551615", "18446744073709551614 18446744073709551615"),
            ("../data.csv", "no range"),
            ("a..b", "no range"),
            ("5", "no range"),
        ] {
            assert_eq!(show(text), values, "{text}");
        }
    }

    #[test]
    fn endless_empty_and_huge_ranges_say_so() {
        for (text, problem) in [
            ("1..2+0", "never ends"),
            ("5..1", "is empty; write the smaller end first"),
            ("1..5+-1", "is empty"),
            ("0..5*2", "never ends"),
            ("1..5*1", "never ends"),
            ("1..5*-2", "never ends"),
            ("1..0*0.5", "only tends to 0"),
            ("8..1*2", "leads away"),
            ("-1..8*2", "same sign"),
            ("0..1e300", "at most 10000"),
            ("0..10000", "has 10001 values"),
            ("1..1e308*1.0000001", "at most 10000"),
            ("1..x", "is no range"),
            ("1..", "is no range"),
            ("1..5*", "is no range"),
            ("1..nan", "is no range"),
        ] {
            assert!(show(text).contains(problem), "{text}: {}", show(text));
        }
    }

    #[test]
    fn commas_in_brackets_and_quotes_do_not_split() {
        let split = |text| split_commas(text).into_iter().map(|range| &text[range]).collect::<Vec<&str>>();
        assert_eq!(split("a,b"), ["a", "b"]);
        assert_eq!(split("[1,2],{a=1,b=2},f(x=1,y=2),'p,q'"), ["[1,2]", "{a=1,b=2}", "f(x=1,y=2)", "'p,q'"]);
        assert_eq!(split(""), [""]);
        assert_eq!(split("a,"), ["a", ""]);
        assert_eq!(split("),(,"), [")", "(,"]);
    }
}
