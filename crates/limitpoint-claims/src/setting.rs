//! What was run: models, data as they were loaded, sizes, seeds, lengths; and what was left out.
//!
//! The [`Lab`](crate::Lab) notes every run it makes in a ledger; a claim that is tried gets the part that it made or
//! used, grouped by model, data and loss.

use std::collections::BTreeSet;

use limitpoint::data::Dataset;
use limitpoint::experiments::Task;
use limitpoint::training::Trainer;
use serde::{Deserialize, Serialize};

use crate::Dropped;

/// What a claim was tried on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Setting {
    /// Runs by model, data and loss.
    pub runs: Vec<Runs>,
    /// Data that were looked at without a run.
    pub data: Vec<DataUsed>,
    /// Runs that no comparison speaks of.
    pub dropped: Vec<Dropped>,
    /// Where this is not what the scale promises: data that were not there, sizes that have no paper scale.
    pub instead: Vec<String>,
}

/// Data as they were loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DataUsed {
    /// The name the loader or generator gave them.
    pub name: String,
    /// Training examples.
    pub examples: usize,
    /// Shape of one of them.
    pub shape: Vec<usize>,
}

impl DataUsed {
    /// Of a data set in memory.
    pub fn of(data: &Dataset) -> Self {
        Self { name: data.name.clone(), examples: data.len(), shape: data.input_shape.clone() }
    }

    fn words(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        format!("{} ({} examples of {})", self.name, self.examples, shape.join(" × "))
    }
}

/// Runs of one model on data of one kind with one loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// How many.
    pub count: usize,
    /// The model.
    pub model: String,
    /// The data.
    pub data: DataUsed,
    /// The loss.
    pub loss: String,
    /// Who trained.
    pub optimisers: BTreeSet<String>,
    /// Their seeds.
    pub seeds: BTreeSet<u64>,
    /// The seeds of their data.
    pub data_seeds: BTreeSet<u64>,
    /// Fewest and most steps; nothing where a claim steps by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<[u64; 2]>,
    /// Lowest and highest log₁₀ of the loss at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log10_loss: Option<[f64; 2]>,
}

/// One line of a lab's ledger.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    /// A run.
    Run(Box<Runs>),
    /// Data that were loaded.
    Data(DataUsed),
    /// Something else than was promised.
    Instead(String),
}

impl Entry {
    /// A run of a task; with its steps and log₁₀ L once it has ended.
    pub fn run(task: &Task, data: &Dataset, end: Option<(u64, f64)>) -> Self {
        let recipe = &task.recipe;
        Self::Run(Box::new(Runs {
            count: 1,
            model: words(&serde_json::to_value(&recipe.model).unwrap_or_default()),
            data: DataUsed::of(data),
            loss: recipe.loss.to_string(),
            optimisers: BTreeSet::from([trainer(task)]),
            seeds: BTreeSet::from([task.label.seed]),
            data_seeds: BTreeSet::from([task.data_seed()]),
            steps: end.map(|(steps, _)| [steps; 2]),
            log10_loss: end.and_then(|(_, loss)| loss.is_finite().then_some([loss; 2])),
        }))
    }
}

impl Setting {
    /// The entries of a ledger, grouped, the largest groups first.
    pub(crate) fn of(entries: &[Entry], dropped: Vec<Dropped>) -> Self {
        let mut setting = Self { dropped, ..Self::default() };
        for entry in entries {
            match entry {
                Entry::Run(run) => match setting.runs.iter_mut().find(|group| group.is_like(run)) {
                    Some(group) => group.join(run),
                    None => setting.runs.push((**run).clone()),
                },
                Entry::Data(data) if !setting.data.contains(data) => setting.data.push(data.clone()),
                Entry::Instead(words) if !setting.instead.contains(words) => setting.instead.push(words.clone()),
                Entry::Data(_) | Entry::Instead(_) => {}
            }
        }
        setting.data.retain(|data| setting.runs.iter().all(|runs| runs.data != *data));
        // which runs end first depends on the machine
        setting.runs.sort_by_cached_key(|runs| (std::cmp::Reverse(runs.count), runs.words()));
        setting.data.sort_by_cached_key(|data| data.words());
        setting.instead.sort();
        setting
    }

    /// In lines, at most `most` about runs and data, and all of what is not as promised.
    pub fn lines(&self, most: usize) -> Vec<String> {
        let runs = self.runs.iter().map(Runs::words);
        let mut lines: Vec<String> =
            runs.chain(self.data.iter().map(|data| format!("data {}", data.words()))).collect();
        if lines.len() > most {
            let more = lines.len() - most;
            lines.truncate(most);
            lines.push(format!("and {more} more settings"));
        }
        lines.extend(self.instead.iter().map(|words| format!("instead: {words}")));
        let reasons: BTreeSet<&str> = self.dropped.iter().map(|dropped| dropped.reason.as_str()).collect();
        lines.extend(reasons.into_iter().map(|reason| {
            let these = || self.dropped.iter().filter(|dropped| dropped.reason == reason);
            let names = these().map(|dropped| dropped.what.as_str());
            let names: Vec<&str> =
                if these().count() > most { names.take(most).chain(["…"]).collect() } else { names.collect() };
            format!("{} left out ({reason}): {}", count(these().count(), "run"), names.join("; "))
        }));
        lines
    }
}

impl Runs {
    fn is_like(&self, other: &Self) -> bool {
        (&self.model, &self.data, &self.loss) == (&other.model, &other.data, &other.loss)
    }

    fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.optimisers.extend(other.optimisers.iter().cloned());
        self.seeds.extend(&other.seeds);
        self.data_seeds.extend(&other.data_seeds);
        let wider = |a: [u64; 2], b: [u64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        self.steps = self.steps.zip(other.steps).map(|(a, b)| wider(a, b)).or(self.steps).or(other.steps);
        let wider = |a: [f64; 2], b: [f64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        let both = self.log10_loss.zip(other.log10_loss).map(|(a, b)| wider(a, b));
        self.log10_loss = both.or(self.log10_loss).or(other.log10_loss);
    }

    fn words(&self) -> String {
        let mut text = format!(
            "{} of {} on {}, {} loss; {}; {}",
            count(self.count, "run"),
            self.model,
            self.data.words(),
            self.loss,
            some(self.optimisers.iter().map(String::as_str)),
            seeds(&self.seeds)
        );
        if self.data_seeds != self.seeds {
            text += &format!(", of the data {}", seeds(&self.data_seeds));
        }
        if let Some([few, many]) = self.steps {
            text += &if few == many { format!("; {few} steps") } else { format!("; {few} to {many} steps") };
        }
        if let Some([low, high]) = self.log10_loss {
            let shown = |x: f64| format!("{x:.1}");
            let range =
                if shown(low) == shown(high) { shown(low) } else { format!("{} to {}", shown(low), shown(high)) };
            text += &format!("; log₁₀ L at the end {range}");
        }
        text
    }
}

/// The optimiser or flow of a task, with its settings.
fn trainer(task: &Task) -> String {
    let spec = match task.trainer() {
        Some(Trainer::Optimiser(spec)) => serde_json::to_value(spec),
        Some(Trainer::Flow(spec)) => serde_json::to_value(spec),
        _ => return task.label.optimiser.clone(),
    };
    words(&spec.unwrap_or_default())
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The first few of some names.
fn some<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.len() <= 8 { names.join(", ") } else { format!("{} and {} more", names[..8].join(", "), names.len() - 8) }
}

/// `seed 3`, `seeds 0 to 4`, `seeds 1, 5`.
fn seeds(seeds: &BTreeSet<u64>) -> String {
    let all: Vec<u64> = seeds.iter().copied().collect();
    let row = all.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match all[..] {
        [] => "no seed".to_owned(),
        [one] => format!("seed {one}"),
        [first, .., last] if row => format!("seeds {first} to {last}"),
        _ => format!("seeds {}", some(all.iter().map(u64::to_string).collect::<Vec<_>>().iter().map(String::as_str))),
    }
}

/// A specification as words: `network(widths=[8], activation=relu)`.
fn words(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Object(map) => {
            let parts = map.iter().map(|(key, value)| match value {
                Value::Object(inner) => {
                    let inner: Vec<String> = inner
                        .iter()
                        .filter(|(_, value)| !is_default(value))
                        .map(|(key, value)| format!("{key}={}", words(value)))
                        .collect();
                    format!("{key}({})", inner.join(", "))
                }
                other => format!("{key}={}", words(other)),
            });
            parts.collect::<Vec<_>>().join(", ")
        }
        // a matrix by its size: all its numbers on a line help nobody
        Value::Array(rows) if rows.first().is_some_and(Value::is_array) => {
            format!("[{} × {} numbers]", rows.len(), rows[0].as_array().map_or(0, Vec::len))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(words).collect::<Vec<_>>().join(", ")),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What need not be said: nothing, no, and empty lists.
fn is_default(value: &serde_json::Value) -> bool {
    matches!(value, serde_json::Value::Null | serde_json::Value::Bool(false))
        || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, name: &str, steps: u64) -> Entry {
        Entry::Run(Box::new(Runs {
            count: 1,
            model: "linear".into(),
            data: DataUsed { name: name.into(), examples: 10, shape: vec![8, 8] },
            loss: "logistic".into(),
            optimisers: BTreeSet::from(["sign".to_owned()]),
            seeds: BTreeSet::from([seed]),
            data_seeds: BTreeSet::from([seed]),
            steps: Some([steps; 2]),
            log10_loss: Some([-1.0; 2]),
        }))
    }

    #[test]
    fn runs_are_grouped_and_told_as_they_were_loaded() {
        let missing = Entry::Instead("digits for MNIST".into());
        let entries = [run(1, "MNIST", 5), run(1, "digits", 5), run(2, "digits", 9), missing.clone(), missing];
        let dropped = vec![Dropped { what: "seed 3".into(), reason: "never separates its data".into() }];
        let lines = Setting::of(&entries, dropped).lines(1);
        assert_eq!(
            lines,
            [
                "2 runs of linear on digits (10 examples of 8 × 8), logistic loss; sign; seeds 1 to 2; 5 to 9 steps; log₁₀ L \
                 at the end -1.0",
                "and 1 more settings",
                "instead: digits for MNIST",
                "1 run left out (never separates its data): seed 3"
            ]
        );
    }

    #[test]
    fn specifications_are_words() {
        let value = serde_json::json!({ "network": { "widths": [8, 4], "activation": { "relu-power": { "power": 2 } },
                                                     "frozen": [] } });
        let text = words(&value);
        assert!(text.starts_with("network(") && text.contains("widths=[8, 4]"), "{text}");
        assert!(text.contains("activation=relu-power(power=2)") && !text.contains("frozen"), "{text}");
        let value = serde_json::json!({ "quadratic": { "matrix": [[1.0, 0.5, 0.0], [0.5, 2.0, 0.0]] } });
        assert_eq!(words(&value), "quadratic(matrix=[2 × 3 numbers])");
    }
}
