//! A run that is killed and resumed leaves the files of the uninterrupted one, bit for bit.
//!
//! The program is killed at random moments (SIGKILL), and made to end between the writing and the renaming of a file.
//! Compared is every file of the folder; of the manifests everything but `timings`.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A small experiment with everything that has a state: random batches, momentum, adapted steps, a flow, histograms,
/// potentials, the stop rule on directions; checkpoints every few steps.
const RECIPE: &str = r#"
title = "killed"
loss = "exponential"
seeds = [1]
schedule = { loss-based = { initial = 0.1 } }
batching = { mini = { size = 16 } }
data.digits = { classes = [3, 8], count = 60 }
model.network = { widths = [12], activation = { relu-power = { power = 2 } } }
observe = { norms = ["l2", "spectral"], potentials = ["euclidean"], histogram_bins = 8, checkpoint_every = 40 }
stop = { steps = 3000, log10_loss = -60, direction = 1e-9 }

[optimisers]
gradient = { steepest = { norm = "l2" } }
adam = { adam = {} }
muon = { muon = { momentum = 0.9 } }

[schedules]
adam = "constant(rate=0.001)"
muon = "constant(rate=0.001)"

[flows]
flow = { steepest = { norm = "l2" } }
"#;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("limitpoint-kill-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

fn start(recipe: &Path, out: &Path, abort_at: Option<u64>) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_limitpoint"));
    command.args(["run", "--resume", "--quiet", "--threads", "2", "--out"]).arg(out).arg(recipe);
    if let Some(count) = abort_at {
        command.env("LIMITPOINT_ABORT_AT_RENAME", count.to_string());
    }
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Runs to the end and says how long it took.
fn complete(recipe: &Path, out: &Path) -> Duration {
    let begin = Instant::now();
    let output = start(recipe, out, None).wait_with_output().expect("it ends");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{talk}");
    begin.elapsed()
}

/// Every file below a folder with its contents; manifests without what differs from one execution to the next.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, out: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                walk(root, &path, out);
                continue;
            }
            let mut bytes = std::fs::read(&path).expect("a readable file");
            if path.file_name().is_some_and(|name| name == "manifest.json") {
                let mut manifest: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
                manifest.as_object_mut().expect("an object").remove("timings");
                bytes = serde_json::to_vec(&manifest).expect("JSON");
            }
            if path.file_name().is_some_and(|name| name == "report.html") {
                continue; // it shows how many seconds the runs took
            }
            out.insert(path.strip_prefix(root).expect("below the root").to_path_buf(), bytes);
        }
    }
    let mut out = BTreeMap::new();
    walk(folder, folder, &mut out);
    out
}

fn assert_same(expected: &BTreeMap<PathBuf, Vec<u8>>, found: &BTreeMap<PathBuf, Vec<u8>>, what: &str) {
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(expected), names(found), "{what}");
    for (path, bytes) in expected {
        assert!(*bytes == found[path], "{what}: {} differs", path.display());
    }
}

/// A multiplicative generator is random enough to choose moments.
fn next(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

fn checkpoints(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "safetensors")).collect()
}

fn wait_for_checkpoints(folder: &Path, count: usize) {
    let begin = Instant::now();
    while checkpoints(folder).len() < count {
        assert!(begin.elapsed() < Duration::from_secs(60), "no {count} checkpoints within a minute");
    }
}

#[test]
fn killed_at_random_moments_and_between_write_and_rename_a_run_resumes_bit_for_bit() {
    let home = folder("home");
    let recipe = home.join("killed.toml");
    std::fs::write(&recipe, RECIPE).expect("a recipe");
    let whole = home.join("whole");
    let duration = complete(&recipe, &whole);
    let expected = contents(&whole);
    assert!(expected.len() > 30, "{:?}", expected.keys());

    let mut random = 20_261_115;
    // an experiment that is done before it was killed often enough is compared, and another one is begun
    let (mut experiments, mut deaths) = (0, 0);
    while deaths < 6 {
        let out = home.join(format!("killed{experiments}"));
        let mut child = start(&recipe, &out, None);
        std::thread::sleep(duration.mul_f64(0.02 + 0.25 * next(&mut random)));
        child.kill().expect("SIGKILL");
        let done = child.wait().expect("it ends").success();
        deaths += usize::from(!done);
        if done || deaths == 6 {
            complete(&recipe, &out);
            assert_same(&expected, &contents(&out), "killed at random moments");
            experiments += 1;
        }
    }

    let out = home.join("aborted");
    let mut deaths = 0;
    for round in 0..12 {
        let count = 1 + round * 3 + (4.0 * next(&mut random)) as u64;
        deaths += usize::from(!start(&recipe, &out, Some(count)).wait_with_output().expect("it ends").status.success());
    }
    assert!(deaths >= 3, "only {deaths} of twelve runs ended between write and rename");
    complete(&recipe, &out);
    assert_same(&expected, &contents(&out), "ended between write and rename");

    // Ctrl-C: a clean end with a checkpoint, exit code 130, and the way to go on
    let out = home.join("interrupted");
    let child = start(&recipe, &out, None);
    wait_for_checkpoints(&out.join("gradient-seed1/checkpoints"), 1);
    let pid = child.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().expect("kill");
    let output = child.wait_with_output().expect("it ends");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(130) && talk.contains("resume"), "{:?} {talk}", output.status);
    complete(&recipe, &out);
    assert_same(&expected, &contents(&out), "interrupted by Ctrl-C");

    // a checkpoint that is damaged is named, and the one before is used
    let out = home.join("damaged");
    let mut child = start(&recipe, &out, None);
    let folder = out.join("gradient-seed1/checkpoints");
    wait_for_checkpoints(&folder, 2);
    child.kill().expect("SIGKILL");
    child.wait().expect("it ends");
    let mut checkpoints = checkpoints(&folder);
    checkpoints.sort();
    let last = checkpoints.last().expect("checkpoints");
    let bytes = std::fs::read(last).expect("readable");
    std::fs::write(last, &bytes[..bytes.len() / 2]).expect("writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_limitpoint"));
    let output = command.args(["resume", "--threads", "2"]).arg(&out).output().expect("the program runs");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{talk}");
    assert!(talk.contains("damaged") && talk.contains("earlier checkpoint"), "{talk}");
    assert_same(&expected, &contents(&out), "with a damaged checkpoint");
    std::fs::remove_dir_all(&home).expect("the test cleans up");
}

/// A write that fails half-way ends the run with a clear error; what was complete stays, and resuming makes the rest.
#[test]
fn a_file_system_that_takes_no_more_ends_the_run_with_a_clear_error_and_intact_files() {
    let home = folder("full");
    let recipe = home.join("full.toml");
    std::fs::write(&recipe, RECIPE).expect("a recipe");
    let whole = home.join("whole");
    complete(&recipe, &whole);
    let out = home.join("full");
    // no file may grow beyond 24 blocks of 512 bytes; the signal that would end the program is ignored
    let script = "trap '' XFSZ; ulimit -f 24; exec \"$0\" run --resume --quiet --threads 2 --out \"$1\" \"$2\"";
    let program = env!("CARGO_BIN_EXE_limitpoint");
    let output = Command::new("sh").args(["-c", script, program]).arg(&out).arg(&recipe).output().expect("sh");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{talk}");
    assert!(talk.contains("cannot write") && talk.contains("full/full"), "{talk}");
    for (path, bytes) in contents(&out) {
        let name = path.to_string_lossy().into_owned();
        if name.ends_with(".json") {
            serde_json::from_slice::<serde_json::Value>(&bytes).expect("whole manifests");
        }
        assert!(!name.ends_with(".tmp"), "{name} is half-written");
    }
    complete(&recipe, &out);
    assert_same(&contents(&whole), &contents(&out), "after a failed write");
    std::fs::remove_dir_all(&home).expect("the test cleans up");
}
