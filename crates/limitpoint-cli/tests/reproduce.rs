//! Claims of the papers as a user tries them, and what bad input to their experiments is answered with.

use serde_json::Value;

mod home;
mod program;
use home::Home;
use program::{limitpoint, stderr, stdout};

#[test]
fn the_list_names_all_claims_and_their_state() {
    let output = limitpoint(&["reproduce", "--list"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("ready  B.thm5 ") && text.contains("open   D.fig5"), "{text}");
    let output = limitpoint(&["reproduce", "--list", "--format", "json"]);
    let list: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let count = |state: &str| list["claims"].as_array().unwrap().iter().filter(|claim| claim["state"] == state).count();
    // entries of the catalogue: one of paper D needs a full VGG; papers A, B, C and D have 26, 29, 42 and 37 others,
    // some of them split, some with a printed form
    assert_eq!(count("open"), 1);
    assert!(count("ready") >= 26 + 29 + 42 + 37);
}

#[test]
fn a_claim_and_its_printed_form_are_tried_and_written_down() {
    let home = Home::new("claim");
    let out = home.path("out");
    let output = limitpoint(&["reproduce", "B.prop2a", "B.fig1a", "--format", "json", "--out", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let claims = answer["claims"].as_array().unwrap();
    let ids: Vec<&str> = claims.iter().map(|claim| claim["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["B.ex2", "B.prop2a", "B.prop2a.printed"]);
    let statuses: Vec<&str> = claims.iter().map(|claim| claim["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["reproduced", "reproduced", "contradicted"]);
    assert_eq!(answer["summary"], "reproduced 2, contradicted 1");
    for claim in claims {
        for key in ["statement", "expected", "measured", "scale"] {
            assert!(!claim[key].as_str().unwrap().is_empty(), "{key}");
        }
        assert!(claim["seconds"].as_f64().unwrap() >= 0.0 && claim["scale"] == "quick");
    }
    let page = std::fs::read_to_string(format!("{out}/gallery.html")).unwrap();
    assert!(
        page.contains("Figure 1a") && page.contains("<svg") && page.contains("reproduced 2, contradicted 1"),
        "{}",
        page.len()
    );
    // every claim has a page of its own, the overview leads to it, and it leads on
    for (id, next) in
        [("B.ex2", "B.prop2a.html"), ("B.prop2a", "B.prop2a.printed.html"), ("B.prop2a.printed", "../gallery.html")]
    {
        assert!(page.contains(&format!("href=\"claims/{id}.html\"")), "{id} is not linked");
        let own = std::fs::read_to_string(format!("{out}/claims/{id}.html")).unwrap();
        assert!(own.contains(&format!("<h1>{id}</h1>")) && own.contains(&format!("href=\"{next}\"")), "{id}");
        assert!(own.contains("<math>") && own.contains(&format!("limitpoint reproduce {id} ")), "{id}");
        for (what, loads) in [("a script", "<script"), ("a file", " src="), ("a style sheet", "<link")] {
            assert!(!own.contains(loads) && !page.contains(loads), "{id} loads {what}");
        }
    }
    assert!(std::fs::read_to_string(format!("{out}/figures/figure-1a.svg")).unwrap().contains("<circle"));
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(format!("{out}/claims.json")).unwrap()).unwrap();
    assert_eq!(kept, answer);
    // what is done is kept, to the second it took; --fresh tries again
    let again = |more: &[&str]| {
        let all = [&["reproduce", "B.prop2a", "B.fig1a", "--format", "json", "--out", &out], more].concat();
        let output = limitpoint(&all);
        (serde_json::from_str::<Value>(&stdout(&output)).unwrap(), stderr(&output))
    };
    let (same, talk) = again(&[]);
    assert_eq!(same, answer);
    assert!(talk.contains("3 of 3 were done before"), "{talk}");
    let (fresh, talk) = again(&["--fresh"]);
    assert_eq!(fresh["claims"][0]["checks"], answer["claims"][0]["checks"]);
    assert!(!talk.contains("done before"), "{talk}");
}

#[test]
fn the_terminal_tells_the_setting_and_where_tolerances_come_from() {
    let home = Home::new("setting");
    let output = limitpoint(&["reproduce", "B.ex2", "--checks", "--out", &home.path("out")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for part in
        ["quick scale: ", " runs of linear on points (1 examples of 2), squared loss; ", "; seed 0; ", "mirror(pot"]
    {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    for part in ["(our tolerance)", " steps; log₁₀ L at the end ", "\nreproduced 1\n"] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
}

#[test]
fn a_claim_that_does_not_exist_is_answered_with_the_nearest() {
    let output = limitpoint(&["reproduce", "B.thm99"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean 'B.thm"), "{}", stderr(&output));
    let output = limitpoint(&["reproduce", "D.fig5"]);
    assert_eq!(output.status.code(), Some(2));
    for part in ["in the catalogue, but nothing compares it yet", "`--scale paper`"] {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}

/// Runs an experiment of paper B that must end in trouble and say `word`; returns what was said.
fn refused(name: &str, code: i32, arguments: &[&str], word: &str) {
    let home = Home::new(name);
    let out = home.path("out");
    let output = limitpoint(&[&["run"], arguments, &["--out", &out]].concat());
    let talk = stderr(&output) + &stdout(&output);
    assert_eq!(output.status.code(), Some(code), "{talk}");
    assert!(talk.contains(word), "'{word}' is not in: {talk}");
}

#[test]
fn inconsistent_constraints_are_refused_by_their_row() {
    let rows = "rows=[[1.0, 1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0, 2.0]], values=[1.0, 3.0]";
    let optimiser =
        format!("optimiser={{constrained-mirror={{potential=\"entropy\", constraint={{affine={{{rows}}}}}}}}}");
    refused("constraints", 2, &["b-simplex", &optimiser], "row 1 contradicts the rows before it");
}

#[test]
fn the_entropy_needs_a_positive_start() {
    let arguments = ["b-example-2", "optimiser=mirror(potential=entropy)", "initialiser=constant(value=-1)"];
    // a run that cannot start is a run in trouble: it keeps no other from being run
    refused("entropy", 1, &arguments, "-1");
}

#[test]
fn a_singular_metric_is_refused_with_its_value() {
    let optimiser = "optimiser={steepest={norm={quadratic={diagonal=[1.0, 0.0, 1.0]}}}}";
    refused("metric", 2, &["b-example-4", optimiser], "0");
}

#[test]
fn a_step_above_its_bound_is_said_with_the_bound() {
    let home = Home::new("step");
    let out = home.path("out");
    let output = limitpoint(&[
        "run",
        "b-margins",
        "optimiser=gradient",
        "schedule=constant(rate=5)",
        "stop.steps=10",
        "--out",
        &out,
    ]);
    let talk = stderr(&output);
    assert!(talk.contains("warning: the step size 5 is above") && talk.contains("1/(B² L(θ₀))"), "{talk}");
    let calm = limitpoint(&["run", "b-nearest", "optimiser=gradient", "stop.steps=10", "--out", &home.path("calm")]);
    assert!(!stderr(&calm).contains("warning"), "{}", stderr(&calm));
}
