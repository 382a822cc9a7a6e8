//! The commands that the pages of the repository and the help show: every one is understood, and the experiments, runs and
//! claims they name exist.

use clap::{CommandFactory, Parser};
use limitpoint::experiments::{Experiment, RecipeSource, plan};
use limitpoint_claims::{find_claims, find_exhibits};

use crate::args::{Arguments, Verb};
use crate::commands::advise::Topic;
use crate::pages_tests::pages;

/// Words as a shell would part them: quotes keep spaces together, `#` begins a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#') if word.is_none() => break,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// The commands of a text, without what a shell does with their output.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for line in text.lines() {
        for part in words(line.trim()).split(|word| word == "&&") {
            let part: Vec<String> = part.iter().take_while(|word| *word != ">").cloned().collect();
            if part.first().is_some_and(|first| first == "limitpoint" || first == "target/release/limitpoint") {
                found.push(part);
            }
        }
    }
    found
}

/// Commands inside the blocks of the pages that are meant for a shell, and in the examples of every help.
fn shown() -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (_, page) in pages() {
        for block in page.split("```sh\n").skip(1) {
            found.extend(commands(block.split("```").next().unwrap_or_default()));
        }
    }
    let mut waiting = vec![Arguments::command()];
    while let Some(command) = waiting.pop() {
        found.extend(commands(&command.get_after_help().map(ToString::to_string).unwrap_or_default()));
        waiting.extend(command.get_subcommands().cloned());
    }
    found
}

/// The names of an experiment's runs; nothing for one that the reader writes.
fn runs_of(name: &str) -> Option<Vec<String>> {
    let made_by_readers = ["mine", "mine-2", "s", "t", "both", "here", "there", "widths"];
    if made_by_readers.contains(&name) {
        return None;
    }
    let built_in = name.strip_suffix("-2").unwrap_or(name);
    let source = RecipeSource::find(built_in).unwrap_or_else(|error| panic!("runs/{name}: {error}"));
    let plan = plan(&source, &[]).expect("a built-in experiment");
    let experiment = Experiment::new(&plan).expect("a built-in experiment");
    Some(experiment.tasks().iter().map(|task| task.label.name.clone()).collect())
}

#[test]
fn every_command_shown_is_understood_and_names_what_exists() {
    let shown = shown();
    let expected = if pages().is_empty() { 20 } else { 60 };
    assert!(shown.len() > expected, "only {} commands were found", shown.len());
    for command in &shown {
        let line = command.join(" ");
        let parsed = Arguments::try_parse_from(command).unwrap_or_else(|error| panic!("{line}: {error}"));
        let planned = |name: &str, overrides: &[String]| {
            if !name.ends_with(".toml") {
                let source = RecipeSource::find(name).unwrap_or_else(|error| panic!("{line}: {error}"));
                plan(&source, overrides).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        };
        match parsed.verb {
            Verb::Run(run) if !run.experiment.contains('=') => planned(&run.experiment, &run.overrides),
            Verb::Advise(advise) => {
                let Topic::Mirror(mirror) = advise.topic;
                mirror.experiment.iter().for_each(|name| planned(name, &mirror.overrides));
            }
            Verb::Reproduce(reproduce) => {
                for id in reproduce.ids.iter().filter(|id| find_exhibits(id).is_none()) {
                    find_claims(id).unwrap_or_else(|error| panic!("{line}: {error}"));
                }
            }
            Verb::Fingerprint(one) => {
                one.optimisers.iter().for_each(|name| planned("linear", &[format!("optimiser={name}")]));
            }
            _ => {}
        }
        for word in command.iter().filter_map(|word| word.strip_prefix("runs/")) {
            let mut parts = word.split('/');
            let name = parts.next().unwrap_or_default();
            let output = command.iter().any(|option| option == "--out") && command.contains(&format!("runs/{name}"));
            let made_here = output && RecipeSource::find(name).is_err();
            if made_here {
                continue;
            }
            if let (Some(runs), Some(run)) = (runs_of(name), parts.next()) {
                let beside = ["robustness", "report.html", "figures"];
                let known = runs.iter().any(|known| known == run) || beside.contains(&run);
                assert!(known, "{line}: {name} has no run {run}, but {runs:?}");
            }
        }
    }
}

#[test]
fn the_shell_is_imitated() {
    assert_eq!(words("a 'b c' d=\"e f\" # g"), ["a", "b c", "d=e f"]);
    assert_eq!(commands("x\n  limitpoint a && limitpoint b > c").len(), 2);
}
