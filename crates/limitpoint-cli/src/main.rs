//! The command line of limitpoint: translates arguments, prints results, maps failures to exit codes (see `outcome`).

mod args;
mod commands;
mod outcome;
mod values;

#[cfg(test)]
mod examples_tests;
#[cfg(test)]
mod pages_tests;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Verb};

fn main() -> ExitCode {
    let format = outcome::wanted_format(std::env::args_os().map(|word| word.to_string_lossy().into_owned()));
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return outcome::misunderstood(&error, format),
    };
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
    outcome.unwrap_or_else(|error| outcome::fail(&error, format))
}
