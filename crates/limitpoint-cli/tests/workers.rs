//! Sweeps that workers share: whatever happens to the workers, the files are those of one process.
//!
//! Workers are killed at random moments (SIGKILL), asked to leave by TERM, INT and USR1, and started again. Compared is
//! every file of every run with those of `limitpoint run`; of the manifests everything but `timings` and the name, which
//! in a sweep ends with a hash of the recipe.

#![cfg(unix)]

mod home;
mod program;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use home::Home;
use program::{limitpoint, stderr, stdout};
use serde_json::Value;

/// Runs of about a tenth of a second, with all that has a state, and checkpoints every few steps.
const RECIPE: &str = r#"
title = "shared"
loss = "exponential"
schedule = { loss-based = { initial = 0.1 } }
batching = { mini = { size = 8 } }
data.digits = { classes = [3, 8], count = 30 }
model.network = { widths = [6], activation = { relu-power = { power = 2 } } }
observe = { norms = ["l2"], histogram_bins = 4, checkpoint_every = 50 }
stop = { steps = 1500, log10_loss = -200 }

[optimisers]
gradient = { steepest = { norm = "l2" } }
muon = { muon = { momentum = 0.9 } }

[schedules]
muon = "constant(rate=0.001)"
"#;

fn recipe(home: &Home, text: &str) -> String {
    let path = home.path("shared.toml");
    std::fs::write(&path, text).expect("a recipe");
    path
}

fn complete(arguments: &[&str]) -> String {
    let output = limitpoint(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

fn worker(sweep: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_limitpoint"))
        .args(["worker", sweep, "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(&limitpoint(&[arguments, &["--format", "json"]].concat()))).expect("JSON")
}

/// The run a folder of a sweep is of: without the hash at the end.
fn without_hash(name: &str) -> &str {
    name.rsplit_once('-').expect("a name and a hash").0
}

/// Every file of every finished run; manifests without what differs from one execution to the next.
fn contents(folder: &str, hashed: bool) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, hashed: bool, out: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                walk(root, &path, hashed, out);
                continue;
            }
            let mut bytes = std::fs::read(&path).expect("a readable file");
            let place = path.strip_prefix(root).expect("below the root").to_str().expect("UTF-8").to_owned();
            let (run, file) = place.split_once('/').unwrap_or(("", &place));
            if ["report.html", "config.toml"].contains(&file) && run.is_empty() || run == "workers" {
                continue;
            }
            if file == "manifest.json" {
                let mut manifest: Value = serde_json::from_slice(&bytes).expect("JSON");
                let object = manifest.as_object_mut().expect("an object");
                for key in ["timings", "sha256", "name", "runs"] {
                    object.remove(key);
                }
                bytes = serde_json::to_vec(&manifest).expect("JSON");
            }
            let run = if hashed && !run.is_empty() { without_hash(run) } else { run };
            out.insert(format!("{run}/{file}"), bytes);
        }
    }
    let mut out = BTreeMap::new();
    walk(Path::new(folder), Path::new(folder), hashed, &mut out);
    out
}

fn assert_same(expected: &BTreeMap<String, Vec<u8>>, found: &BTreeMap<String, Vec<u8>>, what: &str) {
    assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>(), "{what}");
    let different: Vec<_> =
        expected.iter().filter(|(path, bytes)| found[*path] != **bytes).map(|(path, _)| path).collect();
    assert!(different.is_empty(), "{what}: {different:?} differ");
}

/// A multiplicative generator is random enough to choose moments.
fn next(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

/// Kills workers and lets others go on. A sweep that is done before enough of them were killed gets more seeds, so that the
/// number of kills does not depend on how fast the machine is.
fn kill_and_compare(kills: usize) {
    let home = Home::new(&format!("kills{kills}"));
    let recipe = recipe(&home, RECIPE);
    let (alone, shared) = (home.path("alone"), home.path("sweep"));
    let mut seeds = 0;
    let mut random = 20_261_117;
    let mut killed = 0;
    let mut workers: Vec<Child> = Vec::new();
    for round in 0.. {
        let status = (seeds > 0).then(|| json(&["status", &shared]));
        if status.is_none_or(|status| status["done"] == status["runs"]) {
            // while workers are alive, one of them perhaps at what belongs to the sweep as a whole
            seeds += 6;
            complete(&["sweep", &recipe, &format!("seed=1..{seeds}"), "--out", &shared]);
        }
        while workers.len() < 3 {
            workers.push(worker(&shared));
        }
        std::thread::sleep(Duration::from_secs_f64(0.02 + 0.15 * next(&mut random)));
        let victim = (next(&mut random) * workers.len() as f64) as usize;
        let mut child = workers.swap_remove(victim);
        // every fourth is asked and leaves with a checkpoint, the others die
        if round % 4 == 0 {
            let signal = ["-TERM", "-INT", "-USR1"][(round / 4) % 3];
            Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
        } else {
            child.kill().expect("SIGKILL");
        }
        killed += usize::from(child.wait().expect("it ends").code().is_none());
        if killed >= kills {
            break;
        }
    }
    for mut child in workers {
        child.kill().expect("SIGKILL");
        child.wait().expect("it ends");
    }
    complete(&["worker", &shared, "--quiet"]);
    complete(&["run", &recipe, &format!("seed=1..{seeds}"), "--out", &alone, "--quiet", "--no-report"]);
    assert_same(&contents(&alone, false), &contents(&shared, true), &format!("after {killed} kills"));
    let status = json(&["status", &shared]);
    assert_eq!((&status["done"], &status["waiting"]), (&status["runs"], &Value::from(0)), "{status}");
    complete(&["verify", &shared]);
}

#[test]
fn killed_workers_leave_the_files_of_one_process() {
    kill_and_compare(8);
}

/// `cargo test --release -p limitpoint-cli --test workers -- --ignored` (a few minutes).
#[test]
#[ignore = "a hundred kills take minutes"]
fn a_hundred_killed_workers_leave_the_files_of_one_process() {
    kill_and_compare(100);
}

#[test]
fn a_sweep_is_laid_out_once_and_worked_on_by_many() {
    let home = Home::new("laid-out");
    let recipe = recipe(&home, RECIPE);
    let (alone, shared) = (home.path("alone"), home.path("sweep"));
    let swept = ["observe.histogram_bins=3,4", "stop.steps=100", "optimiser=gradient"];
    let lay_out = |more: &[&str]| complete(&[&["sweep", recipe.as_str(), "--out", &shared], &swept[..], more].concat());
    assert!(lay_out(&["seed=1,2"]).contains("4 runs, 4 added"));
    assert!(!Path::new(&shared).join("running").exists(), "nothing is started");
    let status = json(&["status", &shared]);
    assert_eq!((&status["waiting"], &status["done"]), (&Value::from(4), &Value::from(0)));
    assert!(lay_out(&["seed=1,2"]).contains("4 runs, 0 added, 4 were there"));
    complete(&["worker", &shared, "--jobs", "2"]);
    // more seeds: what is done is not done again
    assert!(lay_out(&["seed=1..3"]).contains("6 runs, 2 added, 4 were there"));
    let text = complete(&["worker", &shared]);
    assert!(text.contains("2 runs finished") && text.contains("complete"), "{text}");
    complete(
        &[&["run", recipe.as_str(), "--out", &alone, "--quiet", "--no-report"], &swept[..], &["seed=1..3"]].concat(),
    );
    assert_same(&contents(&alone, false), &contents(&shared, true), "laid out in two parts");
    // all that reads experiments reads it
    let compared = complete(&["report", &shared]);
    assert!(compared.contains("report.html"), "{compared}");
    complete(&["verify", &shared]);
    complete(&["resume", &shared, "--quiet"]);
    let refused = limitpoint(&["sweep", &recipe, "--out", &alone]);
    assert!(refused.status.code() == Some(2) && stderr(&refused).contains("already holds"), "{}", stderr(&refused));
    let refused = limitpoint(&["worker", &alone]);
    assert!(refused.status.code() == Some(2) && stderr(&refused).contains("limitpoint sweep"), "{}", stderr(&refused));
}

#[test]
fn a_worker_asked_to_leave_gives_its_run_back_with_a_checkpoint() {
    let home = Home::new("signals");
    // far more than any machine does while the test waits
    let recipe = recipe(&home, &RECIPE.replace("steps = 1500, log10_loss = -200", "steps = 1_000_000_000_000"));
    let shared = home.path("sweep");
    complete(&["sweep", &recipe, "optimiser=muon", "seed=1", "--out", &shared]);
    let waiting = || {
        let entries = std::fs::read_dir(Path::new(&shared).join("waiting")).expect("a folder");
        entries.map(|entry| entry.expect("readable").path()).collect::<Vec<_>>()
    };
    // steps of the last checkpoint that a worker has written: running/<worker>/<run>/checkpoints/step-<count>.safetensors
    let inside = |folder: std::path::PathBuf| {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let reached = || {
        let runs = inside(Path::new(&shared).join("running")).into_iter().flat_map(inside);
        let files = runs.flat_map(|run| inside(run.join("checkpoints")));
        let steps = files.filter_map(|file| {
            file.file_name()?.to_str()?.strip_prefix("step-")?.strip_suffix(".safetensors")?.parse::<u64>().ok()
        });
        steps.max().unwrap_or(0)
    };
    let mut before = 0;
    for signal in ["-TERM", "-INT", "-USR1"] {
        let child = worker(&shared);
        let begin = Instant::now();
        // until it has come further than the one before
        while reached() <= before {
            assert!(begin.elapsed() < Duration::from_secs(60), "no new checkpoint");
            std::thread::sleep(Duration::from_millis(20));
        }
        Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{signal}: {}", stderr(&output));
        let given_back = waiting();
        assert_eq!(given_back.len(), 1, "{signal}");
        let text = std::fs::read_to_string(given_back[0].join("manifest.json")).expect("a manifest");
        let steps = serde_json::from_str::<Value>(&text).expect("JSON")["steps"].as_u64().expect("steps");
        assert!(steps > before, "{signal}: {steps} after {before}");
        assert!(given_back[0].join("checkpoints/latest.safetensors").exists(), "{signal}");
        before = steps;
    }
    let output = limitpoint(&["worker", &shared, "--for", "0.5s", "--quiet"]);
    assert!(output.status.success() && stdout(&output).contains("waits with a checkpoint"), "{}", stdout(&output));
}

#[test]
fn failed_runs_say_why_and_can_be_tried_again() {
    let home = Home::new("failed");
    let recipe = recipe(&home, RECIPE);
    let shared = home.path("sweep");
    complete(&["sweep", &recipe, "stop.steps=20", "optimiser=gradient", "seed=1,2", "--out", &shared]);
    let waiting = Path::new(&shared).join("waiting");
    let first = std::fs::read_dir(&waiting).expect("a folder").next().expect("a run").expect("readable").path();
    let config = first.join("config.toml");
    let whole = std::fs::read_to_string(&config).expect("a recipe");
    std::fs::write(&config, whole.replace("20", "21")).expect("writable");
    let output = limitpoint(&["worker", &shared, "--quiet"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let status = json(&["status", &shared]);
    assert_eq!(status["done"], 1, "{status}");
    let reason = status["failed"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("config.toml") && reason.contains("SHA-256"), "{reason}");
    let again = limitpoint(&["status", &shared, "--retry-failed"]);
    assert!(stderr(&again).contains("1 failed runs wait again"), "{}", stderr(&again));
    std::fs::write(waiting.join(first.file_name().expect("a name")).join("config.toml"), whole).expect("writable");
    complete(&["worker", &shared, "--quiet"]);
    assert_eq!(json(&["status", &shared])["done"], 2);
    complete(&["verify", &shared]);
}

#[test]
fn sweeps_of_two_places_become_one() {
    let home = Home::new("merged");
    let recipe = recipe(&home, RECIPE);
    let [a, b, both, alone] = ["a", "b", "both", "alone"].map(|name| home.path(name));
    let short = ["stop.steps=30", "optimiser=gradient"];
    for (out, seeds) in [(&a, "seed=1,2"), (&b, "seed=2,3,4")] {
        complete(&[&["sweep", recipe.as_str(), seeds, "--out", out], &short[..]].concat());
    }
    complete(&["worker", &a, "--quiet"]);
    let seconds = |out: &str| complete(&["merge", &a, &b, "--out", out]);
    assert!(seconds(&home.path("early")).contains("4 runs, 2 finished, 2 waiting"));
    complete(&["worker", &b, "--quiet"]);
    let text = seconds(&both);
    assert!(text.contains("4 runs, 4 finished (1 in several places, with the same bits), 0 waiting"), "{text}");
    complete(&["worker", &home.path("early"), "--quiet"]);
    complete(&[&["run", recipe.as_str(), "seed=1..4", "--out", &alone, "--quiet", "--no-report"], &short[..]].concat());
    let expected = contents(&alone, false);
    assert_same(&expected, &contents(&both, true), "merged when done");
    assert_same(&expected, &contents(&home.path("early"), true), "merged, then finished");
    complete(&["verify", &both]);
    // other results of the same run are not mixed
    let run = std::fs::read_dir(&b).expect("a folder").flatten().map(|entry| entry.path());
    let twin = run.into_iter().find(|path| path.to_string_lossy().contains("seed2-")).expect("the run of seed 2");
    std::fs::write(twin.join("metrics.csv"), "step\n").expect("writable");
    let refused = limitpoint(&["merge", &a, &b, "--out", &home.path("bad")]);
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
}
