//! Fingerprints as a user takes them.

use serde_json::Value;

mod home;
mod program;
use home::Home;
use program::{limitpoint, stderr, stdout};

/// The program's answer as JSON, after it ended well.
fn answered(arguments: &[&str]) -> Value {
    let output = limitpoint(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn gradient_descent_is_recognised_and_shown_as_a_table() {
    let output = limitpoint(&["fingerprint", "gradient", "--seeds", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.starts_with("gradient maximises the ℓ2 margin, from L = 1e"), "{text}");
    let heading = text.lines().find(|line| line.starts_with("at the end")).unwrap();
    assert!(heading.contains("ℓ2<") && heading.contains("ℓ∞") && heading.contains("nuclear"), "{heading}");
    for probe in ["vectors 1", "vectors 2", "matrices 1", "matrices 2"] {
        let row = text.lines().find(|line| line.starts_with(probe)).unwrap();
        let marked: Vec<&str> = row.split_whitespace().filter(|word| word.ends_with('*')).collect();
        // on vectors ℓ2, spectral and nuclear are one norm
        assert_eq!(marked.len(), if probe.starts_with("vectors") { 3 } else { 1 }, "{row}");
    }
    assert!(text.contains("network, best reference = 1") && text.contains("network, alignment"), "{text}");
    assert!(text.contains("convolution, best reference = 1"), "{text}");
}

#[test]
fn every_part_of_a_composition_is_judged() {
    let composed = "blocks(first=sign, rest=adjusted(of=gradient, factor=0.5))";
    let asked = ["fingerprint", composed, "--seeds", "1", "--log10-loss", "-60", "--format", "json"];
    let answer = answered(&asked);
    let found = answer["fingerprints"].as_array().unwrap();
    assert_eq!(found.len(), 2);
    for (part, start) in found.iter().zip(["first of blocks(", "rest of blocks("]) {
        assert!(part["answer"].as_str().unwrap().starts_with(start), "{}", part["answer"]);
        assert!(!part["network"]["readings"].as_array().unwrap().is_empty(), "{}", part["network"]["trouble"]);
    }
    assert!(found[0]["answer"].as_str().unwrap().contains("maximises the ℓ∞ margin"), "{}", found[0]["answer"]);
    assert!(found[1]["answer"].as_str().unwrap().contains("maximises the ℓ2 margin"), "{}", found[1]["answer"]);
}

#[test]
fn several_optimisers_share_a_radar_and_a_file() {
    let home = Home::new("fingerprint");
    let out = home.path("out");
    let answer = answered(&["fingerprint", "sign", "adam", "--seeds", "1", "--format", "json", "--out", &out]);
    let found = answer["fingerprints"].as_array().unwrap();
    assert_eq!(found.len(), 2);
    let last = |number: usize| found[number]["phases"].as_array().unwrap().last().unwrap()["geometry"].clone();
    assert_eq!((last(0), last(1)), ("linf".into(), "l2".into()));
    assert!(found[1]["answer"].as_str().unwrap().contains("ℓ∞ margin early"), "{}", found[1]["answer"]);
    let kept = std::fs::read_to_string(format!("{out}/fingerprint.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), answer);
    let radar = std::fs::read_to_string(format!("{out}/radar.svg")).unwrap();
    for word in ["<svg", "adam, early", "adam, late", "sign", "spectral"] {
        assert!(radar.contains(word), "{word}");
    }
    let page = std::fs::read_to_string(format!("{out}/fingerprint.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 3, "a radar, and the course of each");
    assert!(page.contains("sign maximises the ℓ∞ margin") && page.contains("2 optimisers"));
}

#[test]
fn step_sizes_depth_and_norms_can_be_chosen() {
    let answer = answered(&[
        "fingerprint",
        "adam(epsilon=0)",
        "--rate",
        "1e-4",
        "--log10-loss",
        "-4",
        "--seeds",
        "1",
        "--norm",
        "lp:4",
        "--format",
        "json",
    ]);
    let found = &answer["fingerprints"][0];
    assert_eq!(found["pace"]["stages"][0]["schedule"]["constant"]["rate"], 1e-4);
    assert_eq!(found["geometries"][7]["key"], "l4");
    let last = found["runs"][0]["readings"].as_array().unwrap().last().unwrap().clone();
    assert!((-4.5..=-4.0).contains(&last["log10_loss"].as_f64().unwrap()), "{last}");
    assert_eq!(last["shares"].as_array().unwrap().len(), 8);
}

#[test]
fn what_cannot_be_fingerprinted_is_refused_with_a_remedy() {
    let refused = |arguments: &[&str], word: &str| {
        let arguments: Vec<&str> = ["fingerprint"].iter().chain(arguments).copied().collect();
        let output = limitpoint(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(word), "{arguments:?}: {}", stderr(&output));
    };
    refused(&["gradeint"], "gradient");
    refused(&["mirror(potential=entropy)"], "hyperbolic");
    refused(&["sign,gradient"], "separate arguments");
    refused(&["sign", "--rate", "-1"], "rate");
    refused(&["sign", "--schedule", "no"], "schedule");
    refused(&["sign", "--log10-loss", "3"], "-2 or less");
    refused(&["sign", "--norm", "l"], "l");
    refused(&["sign", "--seeds", "0"], "1 to 100");
    refused(&["gradient", "--steps", "3"], "--rate");
    refused(&[], "OPTIMISER");
}
