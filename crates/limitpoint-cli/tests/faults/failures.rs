//! Sweeps in which some runs fail.

use crate::home::Home;
use crate::tools::{RECIPE, expect, recipe};

#[test]
fn runs_that_cannot_be_run_are_listed_and_the_others_are_made() {
    let home = Home::new("sweep");
    let recipe = recipe(&home.path(""), "mine", RECIPE);
    let out = home.path("out");
    // three of twenty examples, and more than there are
    let text = expect(1, &["run", &recipe, "data.count=10,500", "--quiet", "--out", &out]);
    assert!(text.contains("4 of 8 runs failed:"), "{text}");
    let line = text.lines().find(|line| line.contains("gradient-count=500-seed1")).unwrap();
    assert!(line.contains("500"), "{text}");
    assert!(text.contains("0 of 1 seed") && text.contains("1 seed"), "{text}");
    let status = |run: &str| {
        let manifest = std::fs::read(format!("{out}/{run}/manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        (manifest["status"].as_str().unwrap().to_owned(), manifest["stop"].as_str().unwrap().to_owned())
    };
    assert_eq!(status("gradient-count=10-seed1").0, "finished");
    assert_eq!(status("muon-count=500-seed1").0, "failed");
    assert!(status("muon-count=500-seed1").1.contains("500"));
    assert!(expect(0, &["report", &out]).contains("4 of 8 runs failed:"));
    assert!(expect(0, &["verify", &out]).contains("is not finished"));
    let json = expect(0, &["report", &out, "--format", "json"]);
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["failures"].as_array().map(Vec::len), Some(4), "{found}");
    // a batch that is too large for one point of the sweep only
    let other = home.path("other");
    let text = expect(1, &["run", &recipe, "batching.mini.size=5,50", "--quiet", "--no-report", "--out", &other]);
    assert!(text.contains("3 of 8 runs failed:") && text.contains("batch size is 50"), "{text}");
    // where nothing can be run there is no table
    let none = home.path("none");
    let text = expect(2, &["run", &recipe, "data.count=500", "--quiet", "--out", &none]);
    assert!(text.contains("500 examples asked for") && !std::path::Path::new(&none).exists(), "{text}");
}
