//! The names of all comparisons, so that none is lost silently.

use std::collections::BTreeMap;

use crate::ClaimRecord;

/// One line for each kind of comparison: the claim, how many there are, and the name with all numbers as `#`.
///
/// The tests hold every claim at quick scale against `tests/comparisons.txt`; `limitpoint reproduce` writes the same
/// text as `comparisons.txt` beside its results.
///
/// ```
/// assert_eq!(limitpoint_claims::comparison_list(&[]), "");
/// ```
pub fn comparison_list(records: &[ClaimRecord]) -> String {
    let mut text = String::new();
    for record in records {
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        for check in &record.checks {
            *names.entry(without_numbers(&check.what)).or_default() += 1;
        }
        for (name, count) in names {
            text += &format!("{}\t{count}\t{name}\n", record.id);
        }
    }
    text
}

/// `#` for every number.
fn without_numbers(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let letters: Vec<char> = name.chars().collect();
    for (place, letter) in letters.iter().enumerate() {
        let digit = |at: usize| letters.get(at).is_some_and(char::is_ascii_digit);
        let inside = *letter == '.' && place > 0 && digit(place - 1) && digit(place + 1);
        if !letter.is_ascii_digit() && !inside {
            text.push(*letter);
        } else if !text.ends_with('#') {
            text.push('#');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_tell_comparisons_apart() {
        assert_eq!(without_numbers("l2, seed 10: 0.25 at 1e-300."), "l#, seed #: # at #e-#.");
    }
}
