//! Advice before a run, as a user asks for it.

use serde_json::Value;

mod home;
mod program;
use home::Home;
use program::{limitpoint, stderr, stdout};

fn answered(arguments: &[&str]) -> Value {
    let output = limitpoint(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn a_wide_network_is_warned_about_a_large_lambda() {
    let output = limitpoint(&["advise", "mirror", "--inputs", "784", "--widths", "100,100", "--outputs", "10"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    // 784·100 + 100·100 + 100·10
    assert!(text.starts_with("784-100-100-10 ReLU network") && text.contains("89400 weights, degree 3"), "{text}");
    for part in ["mirror-μP (1, 1)", "mirror-μP (1/σ, σ²)", "margin-reachable (1/σ, σ⁴)", "margin-reachable λ = 1/n²"]
    {
        assert!(text.lines().any(|line| line.starts_with(part)), "{part} is missing in {text}");
    }
    assert!(
        text.contains("perhaps out of reach")
            && text.contains("warning: with mirror-μP (1, 1), the margin may be out of reach")
    );
    let by_count = text.lines().rev().find(|line| line.starts_with("margin-reachable λ = 1/n²")).unwrap();
    assert!(!by_count.contains("out of reach"), "{by_count}");
    let known = ["advise", "mirror", "--inputs", "784", "--widths", "100", "--margin", "0.01"];
    let text = stdout(&limitpoint(&known));
    assert!(text.contains("OUT OF REACH") && text.contains("the margin is out of reach"), "{text}");
}

#[test]
fn numbers_are_those_of_the_formulas() {
    let answer = answered(&[
        "advise",
        "mirror",
        "--inputs",
        "2",
        "--widths",
        "100",
        "--deviation",
        "0.1,0.2",
        "--potential",
        "smoothed:3",
        "--format",
        "json",
    ]);
    let recipes = answer["advice"]["recipes"].as_array().unwrap();
    assert_eq!(recipes.len(), 4);
    let layer = |recipe: usize, layer: usize, key: &str| recipes[recipe]["layers"][layer][key].as_f64().unwrap();
    assert_eq!((layer(0, 0, "lambda"), layer(1, 1, "lambda")), (1.0, 0.2));
    assert!((layer(3, 0, "lambda") - 1.0 / 900.0).abs() < 1e-15); // 1/(pn), n = 300
    assert!((layer(2, 1, "eta") * layer(2, 1, "mean_inverse_curvature") - 1.0).abs() < 1e-12);
    assert!(answer["advice"]["margin"]["at-most"].is_number());
    // Lemma 4.10: a = (pλn/2)^{1/p} and ln t = a^L
    let reach = &recipes[0]["reach"];
    let offset = 450f64.powf(1.0 / 3.0);
    assert!((reach["offset"].as_f64().unwrap() / offset - 1.0).abs() < 1e-12);
    assert!((reach["lemma_log_time"].as_f64().unwrap() / (offset * offset) - 1.0).abs() < 1e-12);
}

#[test]
fn an_experiment_brings_its_network_and_its_start() {
    let answer = answered(&["advise", "mirror", "c-reach", "--format", "json", "--margin", "0.002"]);
    assert_eq!(answer["advice"]["parameters"], 40);
    assert_eq!(answer["advice"]["degree"], 3.0);
    assert_eq!(answer["network"]["layers"][0]["spread"]["normal"]["deviation"], 0.03);
    assert_eq!(answer["advice"]["margin"]["known"], 0.002);
    let times =
        answer["advice"]["recipes"].as_array().unwrap().iter().map(|r| r["reach"]["log_time"].as_f64().unwrap());
    // λ = 1: γ (n√λ/gap)³
    assert!((times.into_iter().next().unwrap() / (0.002 * 400f64.powi(3)) - 1.0).abs() < 1e-12);
    // a mean-field output makes the bound smaller by the width
    let answer = |experiment: &str, setting: &str| {
        let answer = answered(&["advise", "mirror", experiment, setting, "--format", "json"]);
        answer["advice"]["margin"]["at-most"].as_f64().unwrap()
    };
    let ratio = answer("c-circle", "model.output_scale=one") / answer("c-circle", "model.output_scale=mean-field");
    assert!((ratio - 100.0).abs() < 1e-9, "{ratio}");
}

#[test]
fn the_advised_optimisers_run() {
    let home = Home::new("advised");
    for potential in ["hyperbolic", "smoothed:3", "euclidean"] {
        let asked = ["advise", "mirror", "c-reach", "--potential", potential];
        let answer = answered(&[&asked[..], &["--format", "json"]].concat());
        let text = stdout(&limitpoint(&asked));
        for (place, recipe) in answer["advice"]["recipes"].as_array().unwrap().iter().enumerate() {
            let setting = format!("optimiser={}", recipe["optimiser"].as_str().unwrap());
            assert!(text.contains(&format!("'{setting}'")), "{setting} is not in {text}");
            let out = home.path(&format!("{potential}-{place}"));
            let schedule = "schedule=constant(rate=0.01)";
            let run = ["run", "c-reach", &setting, schedule, "seed=1", "stop.steps=30", "--quiet", "--no-report"];
            let output = limitpoint(&[&run[..], &["--out", &out]].concat());
            assert_eq!(output.status.code(), Some(0), "{setting}: {}", stderr(&output));
        }
    }
}

#[test]
fn what_cannot_be_advised_is_refused_with_a_remedy() {
    let refused = |arguments: &[&str], word: &str| {
        let arguments: Vec<&str> = ["advise", "mirror"].iter().chain(arguments).copied().collect();
        let output = limitpoint(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(word), "{arguments:?}: {}", stderr(&output));
    };
    refused(&[], "--inputs 784");
    refused(&["--inputs", "0"], "at least 1");
    refused(&["--inputs", "3", "--widths", "0"], "width 0");
    refused(&["--inputs", "3", "--potential", "entropy"], "smoothed:P");
    refused(&["--inputs", "3", "--deviation", "0.1,0.2,0.3"], "one for each layer");
    refused(&["--inputs", "3", "--deviation", "0"], "positive and finite");
    refused(&["--inputs", "3", "--gap", "2"], "between 0 and 1");
    refused(&["--inputs", "3", "--margin", "-1"], "positive and finite");
    refused(&["c-reach", "model.widths=[4],[8]"], "one value");
    refused(&["no-such"], "no-such");
}
