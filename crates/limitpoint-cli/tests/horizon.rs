//! What potentials tend to, as a user asks.

use serde_json::Value;

mod home;
mod program;
use home::Home;
use program::{limitpoint, stderr, stdout};

#[test]
fn the_hyperbolic_entropy_is_recognised_from_its_formula() {
    let output = limitpoint(&["horizon", "t*asinh(t/0.3) - sqrt(t^2+0.09)"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for part in [
        "α = 1: the ℓ₁ norm; mirror flow with this potential tends to KKT points of min ½‖θ‖₁² subject to qᵢ ≥ 1",
        "convex        yes",
        "αQ ≥ θᵀHθ     yes",
        "horizon       ‖θ‖₁",
        "gap to the limit",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn json_and_a_page_hold_the_same_survey() {
    let home = Home::new("horizon");
    let out = home.path("out");
    let output = limitpoint(&["horizon", "smoothed:3,1", "--format", "json", "--out", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let survey: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(survey["limit"]["degree"], 3.0);
    assert!((survey["limit"]["positive"].as_f64().unwrap() - 2.0).abs() < 1e-4);
    assert_eq!(survey["convex"]["holds"], true);
    let kept = std::fs::read_to_string(format!("{out}/horizon.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), survey);
    let page = std::fs::read_to_string(format!("{out}/horizon.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 5);
    assert!(page.contains("smoothed:3,1") && !page.contains("<script") && !page.contains("http://cdn"));
}

#[test]
fn what_has_no_limit_or_is_not_convex_is_told_with_exit_code_one() {
    let refuted = |formula: &str, word: &str| {
        let output = limitpoint(&["horizon", formula]);
        assert_eq!(output.status.code(), Some(1), "{formula}: {}", stderr(&output));
        assert!(stdout(&output).contains(word), "{formula}: {}", stdout(&output));
    };
    refuted("cosh(t)", "keeps growing");
    refuted("t^4 - t^2", "not convex, R″ < 0 from t = ");
    refuted("-t^2", "not convex");
}

#[test]
fn what_is_no_formula_is_refused_with_place_and_remedy() {
    let refused = |text: &str, words: &[&str]| {
        let output = limitpoint(&["horizon", text]);
        assert_eq!(output.status.code(), Some(2), "{text}: {}", stdout(&output));
        assert!(words.iter().all(|word| stderr(&output).contains(word)), "{text}: {}", stderr(&output));
    };
    refused("t*asnh(t)", &["at character 3", "did you mean 'asinh'"]);
    refused("2t", &["at character 2", "2*t"]);
    refused("hyperbolic:-1", &["-1", "positive"]);
    refused("squared-lp:1.5", &["squared-lp", "formula in t"]);
}
