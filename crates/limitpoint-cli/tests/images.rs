//! A small convolutional network on the embedded digits, through every verb that takes a run.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

mod home;
mod program;
use home::Home;
use program::{limitpoint, stderr, stdout};

/// Two convolutions, one with a pool above it and biases, the other without zeros around; degree 3.
const RECIPE: &str = r#"
title = "images"
loss = "exponential"
seeds = [1]
initialiser = { he-normal = { scale = 0.3 } }
schedule = "flow-resolved(resolution=0.1)"
data.digits = { classes = [3, 8], count = 30 }
model.image = { layers = "conv 3 3x3, pool 2, conv 4 3x3 valid, dense", biases = "first" }
stop = { steps = 20000, log10_loss = -60 }

[observe]
norms = ["l2", "linf", "spectral"]
potentials = ["euclidean"]
checkpoint_every = 200
activation_maps = 1
spacing = { logarithmic = { per_decade = 40 } }

[optimisers]
gradient = "gradient"
sign = "sign"
"#;

/// The recipe, and the folder its runs go to.
fn recipe(home: &Home) -> String {
    let path = home.path("images.toml");
    std::fs::write(&path, RECIPE).expect("a recipe");
    path
}

/// The program's words, after it ended as it should.
fn ended(arguments: &[&str], code: i32) -> String {
    let output = limitpoint(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

/// Every file of a run but its manifest and the page, which tell how long it took.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("manifest.json") && !path.ends_with("report.html") {
                let name = path.strip_prefix(folder).expect("below the folder").to_owned();
                found.insert(name, std::fs::read(&path).expect("a readable file"));
            }
        }
    }
    found
}

#[test]
fn every_verb_takes_a_convolutional_network() {
    let home = Home::new("images");
    let (recipe, out, again) = (recipe(&home), home.path("whole"), home.path("broken"));
    let table = ended(&["run", &recipe, "--quiet", "--threads", "2", "--out", &out], 0);
    assert!(table.contains("gradient") && table.contains("sign"), "{table}");

    // ended between the writing and the renaming of files, again and again, and resumed: the same bits
    let mut deaths = 0;
    for count in [4, 9] {
        let status = Command::new(env!("CARGO_BIN_EXE_limitpoint"))
            .args(["run", &recipe, "--resume", "--quiet", "--threads", "1", "--out", &again])
            .env("LIMITPOINT_ABORT_AT_RENAME", count.to_string())
            .output()
            .expect("the program starts")
            .status;
        deaths += usize::from(!status.success());
    }
    assert_eq!(deaths, 2, "both times it was ended");
    ended(&["resume", &again, "--threads", "1"], 0);
    let (expected, found) = (contents(Path::new(&out)), contents(Path::new(&again)));
    assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (path, bytes) in &expected {
        assert!(*bytes == found[path], "{} differs", path.display());
    }
    let compared = ended(&["compare", &out, &again], 0);
    assert!(compared.contains("agree in every bit"), "{compared}");
    ended(&["verify", &out], 0);

    // τ is above 1e-2 here: refuted, with a direction that shows it, and checked from data and weights alone
    for (run, norm) in [("gradient-seed1", "l2"), ("sign-seed1", "linf")] {
        let certified = ended(&["certify", &format!("{out}/{run}")], 1);
        assert!(certified.contains(&format!("norm {norm}")) && certified.contains("refuted"), "{certified}");
        let path = format!("{out}/{run}/certificate.json");
        let certificate = json(Path::new(&path));
        assert_eq!(certificate["evidence"]["stationarity"]["complete"], true);
        assert!(ended(&["check", &path], 1).contains("every number agrees"));
    }

    let rates = ended(&["rates", &out], 0);
    assert!(rates.contains("gradient, l2, degree 3"), "{rates}");

    // the drift of the balances of three layers is small along the flow, and the columns of kinks and channels are there
    let metrics = std::fs::read_to_string(format!("{out}/gradient-seed1/metrics.csv")).expect("metrics");
    let (title, last) = (metrics.lines().next().expect("titles"), metrics.lines().last().expect("a row"));
    let column = |name: &str| -> f64 {
        let place = title.split(',').position(|known| known == name).unwrap_or_else(|| panic!("{name} in {title}"));
        last.split(',').nth(place).expect("a field").parse().expect("a number")
    };
    assert!(column("balance_drift.euclidean") < 0.2, "{}", column("balance_drift.euclidean"));
    assert!(column("smallest_preactivation") > 0.0 && (1.0..=4.0).contains(&column("active_neurons.layer2")));

    ended(&["report", &out], 0);
    let page = std::fs::read_to_string(format!("{out}/report.html")).expect("the page");
    assert!(page.contains("conv 3 3x3 bias on 1x8x8") && page.contains("conv 4 3x3 valid on 3x4x4"), "norms of layers");
    let portrait = json(Path::new(&format!("{out}/gradient-seed1/portrait.json")));
    let features = &portrait["features"];
    assert_eq!((features["rows"].as_u64(), features["images"].as_array().map(Vec::len)), (Some(3), Some(3)));
    let maps: Vec<&str> =
        portrait["maps"].as_array().expect("maps").iter().filter_map(|m| m["layer"].as_str()).collect();
    assert_eq!(maps, ["1, conv 3 3x3 bias", "2, pool 2", "3, conv 4 3x3 valid"]);
    for layer in portrait["layers"].as_array().expect("layers") {
        let [lower, upper] = [0, 1].map(|end| layer["operator"][end].as_f64().expect("a number"));
        assert!(0.0 < lower && lower <= upper, "{layer}");
    }

    let advice = ended(&["advise", "mirror", &recipe], 0);
    for fan_in in ["layer1.weight       9", "layer2.weight      27", "layer3.weight      16"] {
        assert!(advice.contains(fan_in), "{fan_in} in {advice}");
    }
}

/// τ of two trained networks, recomputed by a forward pass in JAX that is written out in the script, and by cvxpy.
#[test]
fn tau_of_a_convolutional_network_is_that_of_independent_python() {
    let Some(python) = std::env::var_os("LIMITPOINT_PYTHON") else {
        eprintln!("skipped: set LIMITPOINT_PYTHON to a Python with jax and cvxpy to recompute τ");
        return;
    };
    let probe = Command::new(&python).args(["-c", "import jax, cvxpy"]).output().expect("the Python starts");
    if !probe.status.success() {
        eprintln!("skipped: {} has no jax or no cvxpy to recompute τ with", python.display());
        return;
    }
    let home = Home::new("images-peer");
    let (recipe, out, data) = (recipe(&home), home.path("runs"), home.path("data.npz"));
    ended(&["run", &recipe, "--quiet", "--out", &out], 0);
    ended(&["data", "export", &recipe, "--out", &data], 0);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/convolution.py");
    for (run, norm) in [("gradient-seed1", "l2"), ("sign-seed1", "linf")] {
        ended(&["certify", &format!("{out}/{run}")], 1);
        let evidence = json(Path::new(&format!("{out}/{run}/certificate.json")))["evidence"]["stationarity"].clone();
        let weights = format!("{out}/{run}/checkpoints/final.safetensors");
        let output = Command::new(&python).args([script, &data, &weights, norm]).output().expect("the Python starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let peer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let (theirs, own) = (peer["tau"].as_f64().expect("a number"), [0, 1].map(|end| evidence["tau"][end].as_f64()));
        eprintln!("{run}: τ in {own:?} here, {theirs} there");
        for end in own {
            assert!((end.expect("a number") - theirs).abs() <= 1e-6, "{run}: {own:?} here, {theirs} there");
        }
        let margin = evidence["smallest_margin"].as_f64().expect("a number");
        assert!((peer["smallest_margin"].as_f64().expect("a number") / margin - 1.0).abs() < 1e-12);
    }
}
