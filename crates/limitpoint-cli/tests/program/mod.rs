//! Starts the program and reads what it says.

use std::process::{Command, Output};

/// Runs the program to its end.
pub fn limitpoint(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_limitpoint")).args(arguments).output().expect("the program starts")
}

/// What it printed.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is UTF-8")
}

/// What it said besides.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are UTF-8")
}
