//! The command line of limitpoint as a library: translates arguments, prints results, maps failures to exit codes (see
//! `outcome`). The program and the Python package both call [`main_with`].

mod args;
mod commands;
mod outcome;
mod values;

#[cfg(test)]
mod examples_tests;
#[cfg(test)]
mod pages_tests;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use limitpoint::experiments::Analysis;

use crate::args::{Arguments, Verb};

/// Does what the words say, the first of which is the name of the program.
pub fn main_with(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    #[cfg(feature = "cuda")]
    limitpoint_cuda::offer();
    let words: Vec<OsString> = words.into_iter().collect();
    let format = outcome::wanted_format(words.iter().map(|word| word.to_string_lossy().into_owned()));
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => return outcome::misunderstood(&error, format),
    };
    let outcome = match arguments.verb {
        Verb::Run(run) => commands::run::run(&run),
        Verb::Resume(resume) => commands::run::resume(&resume),
        Verb::Sweep(sweep) => commands::sweep::run(&sweep),
        Verb::Worker(worker) => commands::worker::run(&worker),
        Verb::Status(status) => commands::status::run(&status),
        Verb::Watch(watch) => commands::watch::run(&watch),
        Verb::Merge(merge) => commands::merge::run(&merge),
        Verb::Report(report) => commands::report::run(&report),
        Verb::Export(export) => commands::export::run(&export),
        Verb::Compare(compare) => commands::compare::run(&compare),
        Verb::Verify(verify) => commands::verify::run(&verify),
        Verb::Solve(solve) => commands::solve::run(&solve),
        Verb::Certify(certify) => commands::certify::run(&certify),
        Verb::Audit(audit) => commands::audit::run(&audit),
        Verb::Check(check) => commands::check::run(&check),
        Verb::Polish(polish) => commands::polish::run(&polish),
        Verb::Prove(prove) => commands::prove::run(&prove),
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

/// The table that `limitpoint run` ends with, and the runs that failed, without colours.
pub fn table_of(analysis: &Analysis, runs: usize) -> String {
    commands::harmless(
        &(commands::table::summary(&analysis.summary, false) + &commands::table::failures(&analysis.failures, runs)),
    )
}
