//! Robustness of trained runs, as a user asks.

use serde_json::Value;

mod home;
mod program;
use home::Home;
use program::{limitpoint, stderr, stdout};

/// Without its model.
const RECIPE: &str = "
loss = 'cross-entropy'
seeds = [1]
data.digits = { count = 100 }
optimisers.gradient.steepest.norm = 'l2'
schedule.linear-bound.c = 0.5
stop.log10_loss = -1
";

fn trained(home: &Home) -> String {
    trained_with(home, "network.widths = [12]")
}

fn trained_with(home: &Home, model: &str) -> String {
    std::fs::write(home.path("small.toml"), format!("{RECIPE}model.{model}\n")).unwrap();
    let output = limitpoint(&["run", &home.path("small.toml"), "--out", &home.path("run"), "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    home.path("run")
}

#[test]
fn text_json_and_page_bracket_the_distance_to_mistakes() {
    let home = Home::new("robustness");
    let (run, out) = (trained(&home), home.path("out"));
    let attack = ["--attack", "carlini-wagner(steps=60)", "--attack", "deep-fool", "--attack", "projected"];
    let ask = |extra: &[&str]| {
        let arguments = [&["robustness", &run, "--count", "25"], &attack[..], extra].concat();
        let output = limitpoint(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let text = ask(&["--split", "test"]);
    for part in ["gradient-seed1, 25 test data", "margin/Lipschitz", "certified", "at most", "deep-fool", "median"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let json = ask(&["--format", "json", "--out", &out, "--threads", "2"]);
    let found: Value = serde_json::from_str(&json).unwrap();
    let found = found.as_array().unwrap();
    assert_eq!(found.iter().map(|one| one["part"].as_str().unwrap()).collect::<Vec<_>>(), ["train", "test"]);
    for one in found {
        let examples = one["examples"].as_array().unwrap();
        assert_eq!(examples.len(), 25);
        for example in examples {
            let number = |key: &str| example[key].as_f64().unwrap();
            let attacked = example["attacked"].as_array().unwrap();
            let nearest = attacked.iter().filter_map(Value::as_f64).fold(f64::INFINITY, f64::min);
            assert!(number("lipschitz") <= number("certified") && number("certified") <= nearest, "{example}");
            assert_eq!(number("margin") > 0.0, number("certified") > 0.0, "{example}");
        }
    }
    assert!(found[0]["accuracy"].as_f64().unwrap() > 0.9);
    assert_eq!(std::fs::read_to_string(format!("{out}/robustness.json")).unwrap(), json);
    let page = std::fs::read_to_string(format!("{out}/robustness.html")).unwrap();
    assert_eq!((page.matches("<svg").count(), page.matches("<script").count()), (2, 0));
    assert!(std::fs::metadata(format!("{out}/robust-accuracy-test.svg")).unwrap().len() > 1000);
    // a checkpoint of the run, on another number of threads: the same numbers
    let file = format!("{run}/gradient-seed1/checkpoints/final.safetensors");
    let output = limitpoint(
        &[&["robustness", &file, "--count", "25", "--format", "json", "--threads", "1"], &attack[..]].concat(),
    );
    let again: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(again[0]["run"], "gradient-seed1/final");
    assert_eq!(again[0]["examples"], found[0]["examples"]);
}

#[test]
fn what_cannot_be_attacked_is_refused_with_a_remedy() {
    let home = Home::new("robustness-refused");
    let run = trained(&home);
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = limitpoint(&[&["robustness"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stdout(&output));
        assert!(words.iter().all(|word| stderr(&output).contains(word)), "{arguments:?}: {}", stderr(&output));
    };
    refused(&[&run, "--attack", "boundary"], &["carlini-wagner", "deep-fool", "projected"]);
    refused(&[&run, "--attack", "projected(rate=3)"], &["(0, 2]"]);
    refused(&[&run, "--box", "0,0.5"], &["widen the box"]);
    refused(&[&run, "--box", "0"], &["needs two"]);
    refused(&[&run, "--count", "0"], &["at least 1"]);
    refused(&[&home.path("nowhere")], &["nowhere"]);
    refused(&[&home.path("small.toml")], &["lies in no run's folder"]);
}

/// Convolutions and max-pools: attacks stay above certified radii, which are not empty words, on any number of threads.
#[test]
fn convolutional_networks_are_bracketed_too() {
    let home = Home::new("robustness-images");
    let run = trained_with(&home, "image.layers = 'conv 6 3x3, pool 2, conv 8 3x3, pool 2, dense 16, dense'");
    let attack = ["--attack", "carlini-wagner(steps=60)", "--attack", "deep-fool", "--attack", "projected"];
    let ask = |threads: &str| {
        let fixed = ["robustness", &run, "--count", "40", "--split", "test", "--format", "json", "--threads", threads];
        let output = limitpoint(&[&fixed[..], &attack[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let json = ask("2");
    let found: Value = serde_json::from_str(&json).unwrap();
    let examples = found[0]["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 40);
    let (mut beyond, mut best) = (0, 0.0);
    for example in examples {
        let number = |key: &str| example[key].as_f64().unwrap();
        let attacked = example["attacked"].as_array().unwrap();
        let nearest = attacked.iter().filter_map(Value::as_f64).fold(f64::INFINITY, f64::min);
        assert!(number("lipschitz") <= number("certified") && number("certified") <= nearest, "{example}");
        assert_eq!(number("margin") > 0.0, number("certified") > 0.0, "{example}");
        beyond += usize::from(number("certified") > number("lipschitz"));
        best = f64::max(best, number("certified") / nearest);
    }
    assert!(beyond > 20, "linear bounds are better for {beyond} of 40");
    assert!(best > 0.1, "the tightest bracket is {best}");
    assert_eq!(ask("1"), json);
}
