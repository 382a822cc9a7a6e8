//! Proofs as a user meets them: made, checked, and found out when something was changed.

use std::path::Path;
use std::process::Output;

mod home;
mod program;
use home::Home;
use limitpoint::experiments::Seal;
use program::{limitpoint, stderr, stdout};
use serde_json::Value;

/// A small network in the plane, trained; the folder of its run.
fn trained(home: &Home, more: &[&str]) -> String {
    let out = home.path("runs");
    let settings = ["model.widths=[8]", "data.circle-teacher.count=20", "stop.steps=3000", "stop.log10_loss=-8"];
    let output =
        limitpoint(&[&["run", "plane", "--quiet", "--no-report", "--out", &out][..], &settings, more].concat());
    assert_ne!(output.status.code(), Some(2), "{}", stderr(&output));
    out
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_trained_network_is_proven_and_the_proof_is_checked() {
    let home = Home::new("proven");
    let out = trained(&home, &[]);
    let output = limitpoint(&["polish", &out, "--prove", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let answer = json(&stdout(&output));
    let proof = &answer[0]["proof"];
    assert_eq!(proof["status"], "proven", "{proof}");
    let angle = proof["angle"][1].as_f64().expect("an angle");
    assert!(angle < 1e-7, "the weights that were written are the proven ones: {angle}");
    assert!(proof["findings"]["kind"]["is"].is_string(), "{proof}");
    let path = proof["proof"].as_str().expect("a file").to_owned();
    assert!(path.ends_with("proof-l2.json"), "{path}");
    let folder = Path::new(&path).parent().expect("a folder").to_str().expect("UTF-8").to_owned();
    let check = limitpoint(&["check", &path]);
    assert_eq!(check.status.code(), Some(0), "{}{}", stdout(&check), stderr(&check));
    assert!(stdout(&check).contains("proven") && stdout(&check).contains("every number agrees"), "{}", stdout(&check));
    assert_eq!(limitpoint(&["verify", &folder]).status.code(), Some(0));
    // proven weights are not replaced by others that are no better, and the proof stays
    let again = limitpoint(&["polish", &folder, "--format", "json"]);
    assert_eq!(json(&stdout(&again))[0]["kept"], true, "{}", stdout(&again));
    assert_eq!(limitpoint(&["check", &path]).status.code(), Some(0));
    // the same in words
    let words = limitpoint(&["prove", &folder]);
    assert_eq!(words.status.code(), Some(0), "{}{}", stdout(&words), stderr(&words));
    assert!(stdout(&words).contains("has an exact KKT point, with a margin between"), "{}", stdout(&words));
    // other norms have files of their own
    let other = limitpoint(&["prove", &folder, "--norm", "linf", "--format", "json"]);
    assert_eq!(json(&stdout(&other))[0]["norm"], "linf", "{}", stderr(&other));
    assert!(Path::new(&folder).join("polished-linf.safetensors").exists());
    assert_eq!(limitpoint(&["check", &path]).status.code(), Some(0));
}

/// What `check` says of a proof with one field changed: as it is, and by somebody who knows how the checksum is made.
fn checks_of_a_forgery(path: &str, original: &str, pointer: &str, value: Value) -> [Output; 2] {
    let mut forged = json(original);
    *forged.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
    let clumsy = serde_json::to_string(&forged).expect("JSON");
    forged.as_object_mut().expect("an object").remove("sha256");
    let skilled = Seal::JSON.close(&serde_json::to_string_pretty(&forged).expect("JSON"));
    [clumsy, skilled].map(|text| {
        std::fs::write(path, text).expect("a file");
        let check = limitpoint(&["check", path]);
        std::fs::write(path, original).expect("a file");
        check
    })
}

#[test]
fn a_network_of_three_layers_is_proven_and_a_changed_proof_is_found_out() {
    let home = Home::new("proven-dense");
    let out = home.path("runs");
    let settings = ["data.digits.count=16", "model=relu 6 5", "seed=3", "stop.steps=5000", "stop.log10_loss=-8"];
    let run = limitpoint(&[&["run", "digits", "--quiet", "--no-report", "--out", &out][..], &settings].concat());
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let output = limitpoint(&["prove", &out, "--norm", "l2", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let answer = json(&stdout(&output));
    assert_eq!(answer[0]["status"], "proven", "{answer}");
    let statement = answer[0]["statement"].as_str().expect("a sentence");
    assert!(statement.starts_with("among networks of 6 and 5 hidden units the ℓ2 margin problem"), "{statement}");
    let path = answer[0]["proof"].as_str().expect("a file").to_owned();
    let check = limitpoint(&["check", &path]);
    assert_eq!(check.status.code(), Some(0), "{}{}", stdout(&check), stderr(&check));
    assert!(stdout(&check).contains("every number agrees"), "{}", stdout(&check));

    let original = std::fs::read_to_string(&path).expect("a proof");
    let honest = json(&original);
    let number = |pointer: &str| honest.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}"));
    let middles = honest["proof"]["midpoint"].as_array().expect("a list");
    let size = |entry: &usize| middles[*entry].as_f64().expect("a number").abs();
    let largest = (0..middles.len()).max_by(|a, b| size(a).total_cmp(&size(b))).expect("unknowns");
    let moved = format!("/proof/midpoint/{largest}");
    let narrow = format!("/proof/radius/{largest}");
    let dense = "/proof/equations/dense";
    let shorter = |pointer: &str| {
        let list = honest.pointer(pointer).and_then(Value::as_array).unwrap_or_else(|| panic!("{pointer}"));
        Value::from(list[1..].to_vec())
    };
    let (units, turns) = (format!("{dense}/units/1"), format!("{dense}/turns"));
    let sides = format!("{dense}/sides/1/0");
    let changes: Vec<(&str, Value)> = vec![
        ("/statement", "everything is proven".into()),
        ("/findings/margin/0", (number("/findings/margin/0") * (1.0 + 1e-12)).into()),
        ("/data/seed", 4.into()),
        (&moved, (number(&moved) * 1.001).into()),
        (&narrow, (number(&narrow) * 1e-9).into()),
        ("/proof/active", shorter("/proof/active")),
        (&units, shorter(&units)),
        (&turns, shorter(&turns)),
        (&sides, "-".repeat(9).into()),
        ("/model/network/activation", serde_json::json!({ "leaky-relu": { "slope": 0.5 } })),
    ];
    for (pointer, value) in changes {
        for check in checks_of_a_forgery(&path, &original, pointer, value) {
            assert_eq!(check.status.code(), Some(3), "{pointer}: {}{}", stdout(&check), stderr(&check));
        }
    }
}

#[test]
fn whatever_is_changed_in_a_proof_is_found_out() {
    let home = Home::new("forged-proof");
    let out = trained(&home, &[]);
    let output = limitpoint(&["prove", &out, "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let path = json(&stdout(&output))[0]["proof"].as_str().expect("a file").to_owned();
    let original = std::fs::read_to_string(&path).expect("a proof");
    let honest = json(&original);
    let number = |pointer: &str| honest.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}"));
    let letters = honest.pointer("/proof/equations/l2/0/sides").and_then(Value::as_str).expect("sides").to_owned();
    let flipped: String = letters.chars().map(|c| if c == '+' { '-' } else { '+' }).collect();
    let changes: Vec<(&str, Value)> = vec![
        ("/statement", "everything is proven".into()),
        ("/findings/margin/0", (number("/findings/margin/0") * (1.0 + 1e-12)).into()),
        ("/findings/radius", (number("/findings/radius") / 2.0).into()),
        ("/findings/kinks", (number("/findings/kinks") as u64 + 1).into()),
        ("/findings/kind", serde_json::json!({ "is": "undecided", "share": 1.0 })),
        ("/data/sha256", "0".repeat(64).into()),
        ("/data/seed", (number("/data/seed") as u64 + 1).into()),
        ("/weights/0/angle/1", (number("/weights/0/angle/1") / 2.0).into()),
        ("/weights/1/sha256", "0".repeat(64).into()),
        ("/proof/midpoint/0", (number("/proof/midpoint/0") * (1.0 + 1e-3)).into()),
        ("/proof/radius/0", (number("/proof/radius/0") * 1e-9).into()),
        ("/proof/inverse/0", (number("/proof/inverse/0") * 1.01 + 1.0).into()),
        ("/proof/active/0", (number("/proof/active/0") as u64 + 1).into()),
        ("/proof/equations/l2/0/sides", flipped.into()),
        ("/proof/equations/l2/0/sign", (-(number("/proof/equations/l2/0/sign") as i64)).into()),
        ("/proof/equations/l2/0/shares/0", (number("/proof/equations/l2/0/shares/0") * 1.5).into()),
    ];
    std::fs::write(&path, original.replacen("\"sha256\": \"", "\"sha256\": \"0", 1)).expect("a file");
    assert_eq!(limitpoint(&["check", &path]).status.code(), Some(3), "a damaged checksum");
    for (pointer, value) in changes {
        let [clumsy, skilled] = checks_of_a_forgery(&path, &original, pointer, value);
        assert_eq!(clumsy.status.code(), Some(3), "{pointer}: {}{}", stdout(&clumsy), stderr(&clumsy));
        // shares decide the angle alone, and only of bundles with several neurons
        let harmless = pointer.ends_with("/shares/0") && skilled.status.code() == Some(0);
        assert!(harmless || skilled.status.code() == Some(3), "{pointer}: {}{}", stdout(&skilled), stderr(&skilled));
    }
    assert_eq!(limitpoint(&["check", &path]).status.code(), Some(0));
    // one letter of the text is enough, and verify sees it too
    std::fs::write(&path, original.replacen("exact", "Exact", 1)).expect("a file");
    assert_eq!(limitpoint(&["check", &path]).status.code(), Some(3));
    let folder = Path::new(&path).parent().expect("a folder").to_str().expect("UTF-8");
    let verified = limitpoint(&["verify", folder]);
    assert_eq!(verified.status.code(), Some(3));
    assert!(stdout(&verified).contains("proof-l2.json"), "{}", stdout(&verified));
    std::fs::write(&path, "no proof at all").expect("a file");
    assert_eq!(limitpoint(&["check", &path]).status.code(), Some(3));
}

#[test]
fn what_cannot_be_proven_is_said_with_the_reason() {
    let home = Home::new("unprovable");
    let out = home.path("runs");
    let output =
        limitpoint(&["run", "linear", "optimiser=gradient", "stop.steps=50", "--quiet", "--no-report", "--out", &out]);
    assert_ne!(output.status.code(), Some(2), "{}", stderr(&output));
    let refused = limitpoint(&["prove", &out]);
    assert_eq!(refused.status.code(), Some(2), "{}{}", stdout(&refused), stderr(&refused));
    assert!(stderr(&refused).contains("one hidden layer"), "{}", stderr(&refused));
}

#[test]
fn a_run_that_does_not_separate_its_data_keeps_no_other_from_being_polished_or_proven() {
    let home = Home::new("not-separated");
    let out = trained(&home, &["stop.steps=1,3000"]);
    for verb in [&["polish", &out][..], &["prove", &out]] {
        let output = limitpoint(&[verb, &["--format", "json"]].concat());
        assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
        assert_eq!(json(&stdout(&output)).as_array().map(Vec::len), Some(1), "{}", stdout(&output));
        assert!(stderr(&output).contains("every margin must be positive"), "{}", stderr(&output));
    }
}
