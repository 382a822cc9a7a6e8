//! The program as a user meets it: output, exit codes, messages.

use std::process::Command;

mod program;

use program::{limitpoint, stderr, stdout};

/// Every concept `list` knows, with one key each that must be among its entries.
const CONCEPTS: [(&str, &str); 11] = [
    ("norms", "spectral"),
    ("potentials", "hyperbolic"),
    ("losses", "exponential"),
    ("models", "network"),
    ("activations", "relu"),
    ("initialisers", "he-normal"),
    ("optimisers", "steepest"),
    ("schedules", "flow-resolved"),
    ("attacks", "carlini-wagner"),
    ("data", "digits"),
    ("experiments", "showcase"),
];

#[test]
fn list_prints_one_line_per_entry_and_the_same_entries_as_json() {
    for (concept, key) in CONCEPTS {
        let text = limitpoint(&["list", concept]);
        assert_eq!(text.status.code(), Some(0), "{concept}");
        assert!(text.stderr.is_empty(), "{concept} talks on stderr: {}", stderr(&text));
        let json = limitpoint(&["list", concept, "--format", "json"]);
        assert_eq!(json.status.code(), Some(0), "{concept}");
        let entries: Vec<serde_json::Value> = serde_json::from_str(&stdout(&json)).expect("valid JSON");
        let lines: Vec<String> = stdout(&text).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), entries.len(), "{concept}");
        for (line, entry) in lines.iter().zip(&entries) {
            let field = |name: &str| entry[name].as_str().unwrap_or_else(|| panic!("{concept}: {name} in {entry}"));
            assert!(line.starts_with(field("key")), "{line}");
            assert!(line.contains(field("formula")) && line.ends_with(field("reference")), "{line}");
        }
        assert!(entries.iter().any(|entry| entry["key"] == key), "{concept} has {key}");
    }
}

#[test]
fn list_is_tested_for_every_concept_the_help_names() {
    let help = stdout(&limitpoint(&["list", "--help"]));
    let (_, after) = help.split_once("Possible values:").expect("the help lists the concepts");
    let named = after.lines().filter_map(|line| line.trim().strip_prefix("- ")).filter_map(|line| line.split_once(':'));
    let mut named: Vec<&str> = named.map(|(name, _)| name).filter(|name| !["text", "json"].contains(name)).collect();
    let mut tested: Vec<&str> = CONCEPTS.iter().map(|(concept, _)| *concept).collect();
    named.sort_unstable();
    tested.sort_unstable();
    assert_eq!(named, tested);
}

#[test]
fn what_cannot_run_exits_with_2_and_says_what_would() {
    for (arguments, hints) in [
        (&["list", "nroms"][..], &["'nroms'", "norms"][..]),
        (&["list"], &["<CONCEPT>"]),
        (&["list", "norms", "--format", "yaml"], &["'yaml'", "json"]),
        (&["bench", "W9"], &["'W9'", "W1, W2, W3, W4"]),
        (&["bench", "W3", "solve"], &["solve", "alone", "W1 to W4"]),
        (&["bench", "epoch", "--scaling"], &["--scaling", "W1 to W4"]),
        (&["bench", "solve", "--shapes"], &["--shapes", "cannot be used with"]),
        (&["bench", "--seed", "1"], &["--shapes"]),
        (&["bench", "--shapes", "x"], &["--shapes", "1 to 1000"]),
        (&["bench", "--shape", "20x3:4:1:f16"], &["'f16'", "f64 or f32", "20000x30:300-300:1:f64"]),
        (&["bench", "--shape", "9999999999x9999999:4:1:f64"], &["9999999999x9999999:4:1:f64", "memory", "smaller"]),
        (&["bench", "--shapes", "--engine", "torch"], &["'torch'", "torch-eager"]),
        (&["bench", "W3", "--seconds", "0"], &["--seconds", "above 0"]),
        (&["bench", "W3", "--seconds", "1e9"], &["--seconds", "600"]),
        (&["bench", "W3", "--seconds", "nan"], &["--seconds", "finite"]),
        (&["bench", "W3", "--rounds", "0"], &["--rounds", "1 to 1000"]),
        (&["bench", "W3", "--threads", "-1"], &["--help"]),
        (&["bench", "W3", "--python", "/nonexistent/python"], &["/nonexistent/python", "--python"]),
        (&["melt"], &["'melt'", "--help"]),
        (&[], &["Usage:", "list", "bench"]),
    ] {
        let output = limitpoint(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?} printed data: {}", stdout(&output));
        for hint in hints {
            assert!(stderr(&output).contains(hint), "{arguments:?} should mention {hint}:\n{}", stderr(&output));
        }
    }
}

#[test]
fn help_and_version_are_answers() {
    for (arguments, wanted) in [
        (&["--help"][..], &["Where does an optimiser go?", "list", "bench"][..]),
        (&["list", "--help"], &["Examples:", "limitpoint list norms", "--format json"]),
        (&["bench", "--help"], &["Examples:", "limitpoint bench", "--python"]),
        (&["--version"], &[concat!("limitpoint ", env!("CARGO_PKG_VERSION"))]),
    ] {
        let output = limitpoint(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        for text in wanted {
            assert!(stdout(&output).contains(text), "{arguments:?} should show {text}:\n{}", stdout(&output));
        }
    }
}

#[test]
fn no_colour_is_written_into_files_or_when_refused() {
    for arguments in [&["list", "--help"][..], &["list", "nroms"], &["list", "norms"]] {
        for variable in [None, Some("NO_COLOR")] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_limitpoint"));
            command.args(arguments);
            variable.map(|name| command.env(name, "1"));
            let output = command.output().expect("the program starts");
            assert!(!stdout(&output).contains('\x1b') && !stderr(&output).contains('\x1b'), "{arguments:?}");
        }
    }
}

#[test]
fn bench_reports_a_workload_as_json() {
    let output =
        limitpoint(&["bench", "w3", "--seconds", "0.05", "--rounds", "1", "--threads", "1", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("valid JSON");
    let workloads = report["workloads"].as_array().expect("a list of workloads");
    assert_eq!(workloads.len(), 1);
    assert_eq!(workloads[0]["workload"], "W3");
    assert!(workloads[0]["steps_per_second"].as_f64().is_some_and(|rate| rate > 0.0));
    assert!(workloads[0]["log_loss"].as_f64().is_some_and(|log_loss| log_loss < 0.0));
}

#[test]
fn bench_reports_shapes_written_down_and_drawn_from_a_seed() {
    let measured = |more: &[&str]| -> Vec<serde_json::Value> {
        let common = ["bench", "--seconds", "0.01", "--rounds", "1", "--threads", "1", "--format", "json"];
        let output = limitpoint(&[&common[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("valid JSON");
        report["shapes"].as_array().expect("a list of shapes").clone()
    };
    let written = ["--shape", "60x3:16:1:f64", "--shape", "50x2:16-20:10:f32"];
    let lines = measured(&written);
    for (line, (shape, cost)) in lines.iter().zip([
        ("60x3:16:1:f64", 60 * (2 * 3 * 16 + 3 * 16)),
        ("50x2:16-20:10:f32", 50 * (2 * 2 * 16 + 3 * 16 * 20 + 3 * 20 * 10)),
    ]) {
        assert_eq!(line["workload"], shape);
        assert_eq!(line["multiply_adds_per_step"].as_f64(), Some(f64::from(cost)));
        assert!(line["seconds_per_step"].as_f64().is_some_and(|seconds| seconds > 0.0));
        assert!(line["share_of_gemm"].as_f64().is_some_and(|share| share > 0.0));
        assert!(line["log_loss"].is_f64() && line["ratio"].is_null(), "no other engine was asked: {line}");
    }
    assert_eq!(lines.len(), 2);
    let names = |seed| -> Vec<String> {
        let lines = measured(&["--shapes", "1", "--seed", seed]);
        lines.iter().map(|line| line["workload"].to_string()).collect()
    };
    let first = names("1");
    assert_eq!((first.len(), &first), (1, &names("1")));
    assert_ne!(first, names("0"));
}
