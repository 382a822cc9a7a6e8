//! `--format json` prints JSON whatever happens, and the exit code is that of the text.

mod home;
mod program;

use home::Home;
use program::{limitpoint, stderr, stdout};
use serde_json::Value;

/// The JSON a command prints, after a look at exit codes.
fn json(arguments: &[&str], code: i32) -> Value {
    let words = [arguments, &["--format", "json"]].concat();
    let output = limitpoint(&words);
    let value = serde_json::from_str(&stdout(&output));
    let value: Value =
        value.unwrap_or_else(|error| panic!("{words:?}: {error}: {}{}", stdout(&output), stderr(&output)));
    assert_eq!(output.status.code(), Some(code), "{words:?}: {value}");
    value
}

/// The same exit code and the same words with and without JSON.
fn fails(arguments: &[&str], code: i32, kind: &str) {
    let value = json(arguments, code);
    let error = &value["error"];
    assert_eq!((error["kind"].as_str(), error["exit_code"].as_i64()), (Some(kind), Some(i64::from(code))), "{value}");
    assert!(error["causes"].is_array(), "{value}");
    let message = error["message"].as_str().expect("a message");
    let output = limitpoint(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    let first = message.lines().next().unwrap_or_default();
    assert!(!first.is_empty() && stderr(&output).contains(first), "{arguments:?}: {first} / {}", stderr(&output));
}

#[test]
fn errors_are_json() {
    let home = Home::new("json-errors");
    let nowhere = home.path("nowhere");
    for arguments in [
        &["run", "no-such-experiment"][..],
        &["run", "linear", "loss=nonsense"],
        &["run", "linear", "stop.log10_loss=nan", "--print-config"],
        &["resume", &nowhere],
        &["report", &nowhere],
        &["compare", &nowhere],
        &["certify", &nowhere],
        &["check", &nowhere],
        &["polish", &nowhere],
        &["prove", &nowhere],
        &["rates", &nowhere],
        &["robustness", &nowhere],
        &["solve", "margin", &nowhere, "--norm", "l2"],
        &["solve", "interpolate", &nowhere, "--norm", "l2"],
        &["fingerprint", "nonsense"],
        &["horizon", "t +* 2"],
        &["advise", "mirror"],
        &["reproduce", "Z.nonsense"],
        &["list", "nonsense"],
        &["bench", "W3", "solve"],
        &["bench", "solve", "--scaling"],
    ] {
        fails(arguments, 2, "input");
    }
    for arguments in [
        &["melt"][..],
        &["run", "--nonsense"],
        &["solve", "margin"],
        &["data", "fetch", "nonsense"],
        &["bench", "W9"],
        &["bench", "--threads", "0"],
        &["bench", "--shapes", "0"],
        &["bench", "--shape", "20x3:4:1"],
        &["bench", "W3", "--shapes"],
        &["completions", "tcsh"],
        &["doctor", "extra"],
    ] {
        fails(arguments, 2, "usage");
    }
    assert!(json(&["--help"], 0)["help"].as_str().is_some_and(|help| help.contains("Exit codes:")));
}

#[test]
fn every_verb_prints_json() {
    let home = Home::new("json-verbs");
    let out = home.path("out");
    let config = json(&["run", "linear", "seed=1,2", "--print-config"], 0);
    let toml = config["points"][0]["toml"].as_str().expect("the recipe as TOML");
    assert!(toml.contains("seeds = [1, 2]") && config["points"][0]["recipe"]["seeds"][1] == 2, "{config}");
    let swept = json(&["run", "digits", "model.width=4,8", "--print-config"], 0);
    assert_eq!(swept["points"].as_array().map(Vec::len), Some(2), "{swept}");
    let run = json(&["run", "linear", "stop.log10_loss=-20", "--quiet", "--out", &out], 0);
    assert_eq!(run["runs"].as_array().map(Vec::len), Some(3));
    json(&["resume", &out], 0);
    json(&["report", &out], 0);
    json(&["compare", &out], 0);
    json(&["certify", &out, "--tolerance", "0.5"], 0);
    let certificate = format!("{out}/sign-seed0/certificate.json");
    assert_eq!(json(&["check", &certificate], 0)[0]["holds"], true);
    json(&["robustness", &out, "--attack", "deep-fool", "--count", "2"], 0);
    json(&["horizon", "t^2/2"], 0);
    json(&["horizon", "t^2/2 + exp(t)"], 1);
    json(&["advise", "mirror", "--inputs", "2", "--widths", "3"], 0);
    json(&["reproduce", "--list"], 0);
    json(&["list", "norms"], 0);
    json(&["list", "adam"], 0);
    json(&["schema"], 0);
    json(&["schema", "--markdown"], 0);
    json(&["completions", "bash"], 0);
    json(&["data", "list"], 0);
    json(&["solve", "margin", "gaussians(count=6,dimension=3)", "--norm", "l2"], 0);

    // damage and tampering have a code of their own, in both forms
    let metrics = format!("{out}/sign-seed0/metrics.csv");
    let whole = std::fs::read_to_string(&metrics).expect("measurements");
    std::fs::write(&metrics, whole.replacen("step", "stop", 1).replacen(",", ",x", 40)).expect("damage");
    fails(&["report", &out], 3, "invalid");
    fails(&["rates", &out], 3, "invalid");
    std::fs::write(&metrics, whole).expect("as it was");
    let text = std::fs::read_to_string(&certificate).expect("a certificate");
    let mut tampered: Value = serde_json::from_str(&text).expect("JSON");
    tampered["tolerances"]["gap"] = serde_json::json!(0.25);
    std::fs::write(&certificate, tampered.to_string()).expect("tampered");
    assert_eq!(json(&["check", &certificate], 3)[0]["holds"], false);
    assert_eq!(limitpoint(&["check", &certificate]).status.code(), Some(3));
    std::fs::write(&certificate, &text[..text.len() / 2]).expect("cut short");
    fails(&["check", &certificate], 3, "invalid");
}
