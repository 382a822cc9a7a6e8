//! One file per verb.

pub mod advise;
pub mod bench;
pub mod certify;
pub mod check;
pub mod compare;
pub mod completions;
pub mod data;
pub mod doctor;
pub mod fingerprint;
pub mod horizon;
pub mod list;
pub mod polish;
pub mod rates;
pub mod report;
pub mod reproduce;
pub mod robustness;
pub mod run;
pub mod schema;
pub mod solve;
pub mod verify;

mod progress;
mod table;

use std::io::Write;

use limitpoint::experiments::{RecordError, RunError};

/// Prints to stdout; a reader that went away (a closed pipe) ends the program quietly.
pub fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Prints a line of talk to stderr, where it never mixes with data.
pub fn say(text: &str) {
    // nothing sensible can be done when stderr is gone
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints an error with its causes.
pub fn complain(error: &anyhow::Error) {
    say(&format!("error: {error}"));
    error.chain().skip(1).for_each(|cause| say(&format!("  caused by: {cause}")));
}

/// Whether a command failed because files were changed or lost after they were written.
pub fn is_damage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<RunError>().is_some_and(RunError::is_damage)
            || cause.downcast_ref::<RecordError>().is_some_and(RecordError::is_damage)
    })
}
