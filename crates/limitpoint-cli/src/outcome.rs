//! How the program ends: exit codes, and errors in the form that was asked for.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | done, and the answer is no: refuted, inconclusive, not separable, a run in trouble |
//! | 2 | not done: the command or its input was refused |
//! | 3 | invalid: a file of a run or a certificate is damaged or was tampered with |
//! | 130 | interrupted |

use std::process::ExitCode;

use clap::error::ErrorKind;
use limitpoint::experiments::is_damage;
use serde_json::{Value, json};

use crate::args::Format;
use crate::commands::{print, say};

/// What the help of the program says about exit codes.
pub const CODES: &str = "Exit codes:\n  0    done\n  1    done, and the answer is no: refuted, inconclusive, not separable, a run in trouble\n  2    not done: the command or its input was refused\n  3    invalid: a file of a run or a certificate is damaged or was tampered with\n  130  interrupted\n\nWith --format json, results and errors are JSON on stdout, with the same exit codes.";

/// Done, and the answer is no.
pub const NO: u8 = 1;
/// The command or its input was refused.
const REFUSED: u8 = 2;
/// A file is damaged or was tampered with.
pub const INVALID: u8 = 3;
/// Ended by Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// The format asked for, read off the words themselves, so that it is known even where they cannot be understood.
pub fn wanted_format(words: impl Iterator<Item = String>) -> Format {
    let words: Vec<String> = words.take_while(|word| word != "--").collect();
    let separate = words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    if separate || words.iter().any(|word| word == "--format=json") { Format::Json } else { Format::Text }
}

/// Tells an error and gives its exit code.
pub fn fail(error: &anyhow::Error, format: Format) -> ExitCode {
    let invalid = error.chain().any(is_damage);
    let (kind, code) = if invalid { ("invalid", INVALID) } else { ("input", REFUSED) };
    let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
    match format {
        Format::Json => tell(kind, &error.to_string(), &causes, None, code),
        Format::Text => {
            say(&format!("error: {error}"));
            causes.iter().for_each(|cause| say(&format!("  caused by: {cause}")));
        }
    }
    ExitCode::from(code)
}

/// Tells what clap says about words it does not understand, or the help that was asked for.
pub fn misunderstood(error: &clap::Error, format: Format) -> ExitCode {
    let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let text = error.render().to_string();
    match (format, asked_for) {
        (Format::Json, true) => show(&json!({ "help": text })),
        (Format::Json, false) => {
            let message = text.strip_prefix("error: ").unwrap_or(&text);
            let (message, hint) = message.split_once("\n\n").unwrap_or((message, ""));
            let hint = Some(hint.trim()).filter(|hint| !hint.is_empty());
            tell("usage", message.trim(), &[], hint, REFUSED);
        }
        (Format::Text, true) => {
            // in colours where the terminal has them; nothing sensible can be done when it is gone
            let _ = error.print();
        }
        (Format::Text, false) => say(text.trim_end()),
    }
    if asked_for { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) }
}

/// `{"error": {"kind", "message", "causes", "hint", "exit_code"}}`.
fn tell(kind: &str, message: &str, causes: &[String], hint: Option<&str>, code: u8) {
    show(&json!({ "error": { "kind": kind, "message": message, "causes": causes, "hint": hint, "exit_code": code } }));
}

fn show(value: &Value) {
    // nothing sensible can be done when stdout is gone
    let _ = print(&format!("{value:#}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_found_among_any_words() {
        let format = |words: &str| wanted_format(words.split_whitespace().map(str::to_owned));
        for json in ["limitpoint list --format json", "limitpoint --nonsense --format=json x", "a --format json --b"] {
            assert_eq!(format(json), Format::Json, "{json}");
        }
        for text in ["limitpoint list", "limitpoint --format text", "limitpoint run -- --format json", "a --format"] {
            assert_eq!(format(text), Format::Text, "{text}");
        }
    }
}
