//! TensorBoard's own reader finds what was exported, value for value.
//!
//! Needs a Python with `tensorboard`, named by `LIMITPOINT_PYTHON`, and is skipped without it.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod home;
mod program;

use std::collections::BTreeMap;
use std::process::Command;

use home::Home;
use program::{limitpoint, stderr, stdout};

/// Prints {run: {tag: [[step, value], …]}} of a folder, numbers with all their digits.
const READER: &str = r#"
import json, os, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = {}
for run in sorted(os.listdir(sys.argv[1])):
    events = EventAccumulator(os.path.join(sys.argv[1], run), size_guidance={"scalars": 0})
    events.Reload()
    found[run] = {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
print(json.dumps(found))
"#;

#[test]
fn tensorboard_reads_back_every_number() {
    let Some(python) = std::env::var_os("LIMITPOINT_PYTHON") else {
        eprintln!("skipped: set LIMITPOINT_PYTHON to a Python with tensorboard to read event files");
        return;
    };
    let there = Command::new(&python).args(["-c", "import tensorboard"]).output().expect("Python starts");
    if !there.status.success() {
        eprintln!("skipped: {} has no tensorboard", python.display());
        return;
    }
    let home = Home::new("tensorboard");
    let (sweep, board) = (home.path("sweep"), home.path("board"));
    let settings = [
        "optimiser=gradient",
        "seed=1,2",
        "schedule=loss-based(initial=1)",
        "stop.steps=20000",
        "stop.log10_loss=-400",
    ];
    for arguments in [
        &[&["sweep", "linear", "--out", &sweep], &settings[..]].concat()[..],
        &["worker", &sweep, "--quiet"],
        &["export", &sweep, "--tensorboard", &board],
    ] {
        let output = limitpoint(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    }
    let output = Command::new(&python).args(["-c", READER, &board]).output().expect("Python starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let found: BTreeMap<String, BTreeMap<String, Vec<(u64, f64)>>> =
        serde_json::from_str(stdout(&output).lines().last().expect("a line")).expect("JSON");
    assert_eq!(found.len(), 2, "{:?}", found.keys());
    let mut deepest = 0.0_f64;
    for (run, tags) in &found {
        let text = std::fs::read_to_string(format!("{sweep}/{run}/metrics.csv")).expect("measurements");
        // names of norms in these recipes have no commas
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let head = lines.next().expect("titles");
        let rows: Vec<Vec<f64>> =
            lines.map(|line| line.iter().map(|cell| cell.parse().unwrap_or(f64::NAN)).collect()).collect();
        let exported = |name: &str| ["log10_", "margin.", "tau."].iter().any(|prefix| name.starts_with(prefix));
        let mut expected = BTreeMap::new();
        for (column, name) in head.iter().enumerate().filter(|(_, name)| exported(name)) {
            let values: Vec<(u64, f64)> = rows
                .iter()
                .filter(|row| row[column].is_finite())
                .map(|row| (row[0] as u64, f64::from(row[column] as f32)))
                .collect();
            if !values.is_empty() {
                expected.insert((*name).to_owned(), values);
            }
        }
        assert!(expected.contains_key("log10_loss") && expected.keys().any(|name| name.starts_with("margin.")));
        assert_eq!(*tags, expected, "{run}");
        deepest = deepest.min(tags["log10_loss"].last().expect("a row").1);
    }
    // a loss that is no number of 64 bits, exported as its logarithm
    assert!(deepest < -350.0, "{deepest}");
}
