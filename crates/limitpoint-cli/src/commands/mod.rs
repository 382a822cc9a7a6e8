//! One file per verb.

pub mod advise;
pub mod audit;
pub mod bench;
pub mod certify;
pub mod check;
pub mod compare;
pub mod completions;
pub mod data;
pub mod doctor;
pub mod export;
pub mod fingerprint;
pub mod horizon;
pub mod list;
pub mod merge;
pub mod polish;
pub mod prove;
pub mod rates;
pub mod report;
pub mod reproduce;
pub mod robustness;
pub mod run;
pub mod schema;
pub mod solve;
pub mod status;
pub mod sweep;
pub mod verify;
pub mod watch;
pub mod worker;

pub mod exhibits;
mod kinds;
mod progress;
mod slurm;
pub mod table;

use std::io::Write;

/// Text as a terminal may see it: control characters, which could move the cursor, change colours or turn lines
/// around, become escapes such as `\u001b`; line ends and tabs stay. JSON stays the same JSON.
pub fn harmless(text: &str) -> String {
    let harmful = |letter: char| match letter {
        '\n' | '\t' => false,
        // marks that change the direction of what follows
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        letter => letter.is_control(),
    };
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if harmful(letter) {
            out += &format!("\\u{:04x}", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
    out
}

/// A name inside a line: as [`harmless`], and in one line.
pub fn in_one_line(name: &str) -> String {
    harmless(name).replace('\n', "\\n").replace('\t', "\\t")
}

/// Prints to stdout, control characters made harmless.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_as_is(&harmless(text))
}

/// Prints to stdout what is known to be harmless or has colours of its own; a reader that went away (a closed pipe) ends
/// the program quietly.
pub fn print_as_is(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Prints a line of talk to stderr, where it never mixes with data.
pub fn say(text: &str) {
    // nothing sensible can be done when stderr is gone
    let _ = writeln!(std::io::stderr(), "{}", harmless(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_pass_and_json_stays_json() {
        assert_eq!(harmless("a\u{1b}[31mb\r\n\tc\u{7}"), "a\\u001b[31mb\\u000d\n\tc\\u0007");
        assert_eq!(harmless("\u{9b}31m \u{202e}gnp.exe γ ≤ ℓ∞"), "\\u009b31m \\u202egnp.exe γ ≤ ℓ∞");
        assert_eq!(in_one_line("a\nb\tc\u{0}"), "a\\nb\\tc\\u0000");
        let name = "x\u{1b}\u{9b}\u{202e}\u{7f}";
        let json = serde_json::to_string_pretty(&serde_json::json!({ "name": name })).unwrap();
        let read: serde_json::Value = serde_json::from_str(&harmless(&json)).unwrap();
        assert_eq!(read["name"], name);
    }
}
