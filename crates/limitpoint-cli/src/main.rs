//! The program `limitpoint`; all of it is in the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    limitpoint_cli::main_with(std::env::args_os())
}
