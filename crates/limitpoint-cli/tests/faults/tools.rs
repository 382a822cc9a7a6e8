//! A small experiment, the program, and what it leaves behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Optimisers with memory, random batches, a flow, histograms, checkpoints every few steps; well below a second.
pub const RECIPE: &str = r#"
title = "faults"
loss = "exponential"
seeds = [1]
schedule = { loss-based = { initial = 0.001 } }
batching = { mini = { size = 5 } }
data.file = { path = "data.csv", task = "binary" }
model.network = { widths = [6], activation = { relu-power = { power = 2 } } }
observe = { norms = ["l2"], histogram_bins = 4, checkpoint_every = 20 }
stop = { steps = 90, log10_loss = -60 }

[optimisers]
gradient = { steepest = { norm = "l2" } }
muon = { muon = { momentum = 0.9 } }
adam = { adam = {} }

[schedules]
muon = "constant(rate=0.001)"
adam = "constant(rate=0.01)"

[flows]
flow = { steepest = { norm = "l2" } }
"#;

/// A linear model that can be certified, polished and attacked in no time.
pub const LINEAR: &str = r#"
loss = "exponential"
seeds = [1]
data.file = { path = "data.csv", task = "binary" }
model = "linear"
observe = { norms = ["l2"], histogram_bins = 4, checkpoint_every = 20 }
stop = { steps = 60 }
optimiser = "gradient"
"#;

/// Separable points of the plane, rows of `x, y, label`; another salt gives other points.
pub fn points(salt: usize) -> Vec<[f64; 3]> {
    let point = |i: usize| {
        let (sign, angle) = (if i.is_multiple_of(2) { 1.0 } else { -1.0 }, (7 * i + salt) as f64);
        [sign * (1.5 + angle.sin()), sign + 0.8 * angle.cos(), sign]
    };
    (0..20).map(point).collect()
}

pub fn csv(salt: usize) -> String {
    let line = |[x, y, label]: &[f64; 3]| format!("{x},{y},{label}\n");
    points(salt).iter().map(line).collect()
}

/// A recipe and its data in a folder; the path of the recipe.
pub fn recipe(folder: &str, name: &str, text: &str) -> String {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(format!("{folder}/data.csv"), csv(0)).unwrap();
    let path = format!("{folder}/{name}.toml");
    std::fs::write(&path, text).unwrap();
    path
}

pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_limitpoint"));
    command.stdin(Stdio::null()).env_remove("LIMITPOINT_DATA");
    command
}

pub fn limitpoint(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("the program starts")
}

/// All it said.
pub fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs the program and compares its exit code; gives back all it said.
#[track_caller]
pub fn expect(code: i32, arguments: &[&str]) -> String {
    let output = limitpoint(arguments);
    let words = words(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {words}");
    assert!(!words.contains("panicked"), "{words}");
    words
}

/// Runs an experiment to its end without a report.
#[track_caller]
pub fn run(recipe: &str, out: &str, more: &[&str]) {
    expect(0, &[&["run", recipe, "--quiet", "--no-report", "--threads", "2", "--out", out], more].concat());
}

/// Every file below a folder.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Every file below a folder with its contents; of manifests all but `timings`, of reports nothing.
pub fn contents(folder: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut out = BTreeMap::new();
    for path in files(folder) {
        let mut bytes = std::fs::read(&path).unwrap();
        if path.ends_with("report.html") {
            continue; // it shows how many seconds the runs took
        }
        if path.ends_with("manifest.json") {
            let mut manifest: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            manifest.as_object_mut().unwrap().remove("timings");
            bytes = serde_json::to_vec(&manifest).unwrap();
        }
        out.insert(path.strip_prefix(folder).unwrap().to_path_buf(), bytes);
    }
    out
}

#[track_caller]
pub fn assert_same(expected: &str, found: &str) {
    let (a, b) = (contents(expected), contents(found));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (path, bytes) in &a {
        let (x, y) = (String::from_utf8_lossy(bytes), String::from_utf8_lossy(&b[path]));
        assert!(bytes == &b[path], "{} differs:\n{}\n{}", path.display(), short(&x), short(&y));
    }
}

fn short(text: &str) -> String {
    text.chars().take(3000).collect()
}

pub fn copy(from: &str, to: &str) {
    for path in files(from) {
        let target = Path::new(to).join(path.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(&path, target).unwrap();
    }
}
