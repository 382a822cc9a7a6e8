//! The command line of limitpoint: translates arguments, prints results, maps failures to exit codes.
//!
//! Exit codes: 0 all is well, 1 a claim was not certified, 2 the command could not run, 3 files were changed or lost.

mod args;
mod commands;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Verb};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.verb {
        Verb::Run(run) => commands::run::run(&run),
        Verb::Resume(resume) => commands::run::resume(&resume),
        Verb::Report(report) => commands::report::run(&report),
        Verb::Compare(compare) => commands::compare::run(&compare),
        Verb::Verify(verify) => commands::verify::run(&verify),
        Verb::Solve(solve) => commands::solve::run(&solve),
        Verb::Certify(certify) => commands::certify::run(&certify),
        Verb::Check(check) => commands::check::run(&check),
        Verb::Polish(polish) => commands::polish::run(&polish),
        Verb::Rates(rates) => commands::rates::run(&rates),
        Verb::Robustness(robustness) => commands::robustness::run(&robustness),
        Verb::Fingerprint(fingerprint) => commands::fingerprint::run(&fingerprint),
        Verb::Horizon(horizon) => commands::horizon::run(&horizon),
        Verb::Advise(advise) => commands::advise::run(&advise),
        Verb::Reproduce(reproduce) => commands::reproduce::run(&reproduce),
        Verb::Schema(schema) => commands::schema::run(&schema),
        Verb::List(list) => commands::list::run(&list),
        Verb::Bench(bench) => commands::bench::run(&bench),
        Verb::Data(data) => commands::data::run(&data),
        Verb::Doctor(doctor) => commands::doctor::run(&doctor),
        Verb::Completions(completions) => commands::completions::run(&completions),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            commands::complain(&error);
            ExitCode::from(if commands::is_damage(&error) { commands::verify::DAMAGED } else { 2 })
        }
    }
}
