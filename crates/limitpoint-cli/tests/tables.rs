//! Tables of the user's own: what was decided about the first line is said, and no example is lost silently.

mod home;
mod program;

use home::Home;
use program::{limitpoint, stderr, stdout};

#[test]
fn solve_says_how_the_first_line_was_read_and_refuses_to_guess() {
    let home = Home::new("tables");
    let write = |name: &str, text: &str| {
        let path = home.path(name);
        std::fs::write(&path, text).expect("a table");
        path
    };
    let solve = |path: &str, more: &[&str]| {
        let output = limitpoint(&[&["solve", "margin", path, "--norm", "l2", "--format", "json"], more].concat());
        let value: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        (output.status.code(), value, stderr(&output))
    };
    let titled = write("titled.csv", "a,b,label\n1,0,1\n-1,0,-1\n0,2,1\n");
    let (code, value, talk) = solve(&titled, &[]);
    assert_eq!((code, value["dual"].as_array().map(Vec::len)), (Some(0), Some(3)), "{value}");
    assert!(talk.contains("read as titles (\"a\", \"b\", \"label\")") && talk.contains("header = false"), "{talk}");
    let plain = write("plain.csv", "1,0,1\n-1,0,-1\n0,2,1\n");
    let (_, value, talk) = solve(&plain, &[]);
    assert_eq!(value["dual"].as_array().map(Vec::len), Some(3));
    assert!(talk.contains("read as an example"), "{talk}");
    assert!(solve(&plain, &["--header", "false"]).2.is_empty());
    assert_eq!(solve(&plain, &["--header", "true"]).1["dual"].as_array().map(Vec::len), Some(2));
    // one field of the first example is no number: titles or an example?
    let mixed = write("mixed.csv", "1,oops,1\n-1,0,-1\n0,2,1\n");
    let (code, value, _) = solve(&mixed, &[]);
    let message = value["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!(code, Some(2), "{value}");
    assert!(["line 1", "oops", "header = true"].iter().all(|word| message.contains(word)), "{message}");
    assert_eq!(solve(&mixed, &["--header", "true"]).1["dual"].as_array().map(Vec::len), Some(2));
    assert_eq!(solve(&mixed, &["--header", "false"]).0, Some(2));
}

#[test]
fn a_run_notes_how_the_first_line_was_read_and_a_recipe_decides() {
    let home = Home::new("table-runs");
    let table = home.path("t.csv");
    std::fs::write(&table, "a,b,label\n1,0,1\n-1,0,-1\n0,2,1\n").expect("a table");
    let run = |name: &str, header: &str| {
        let recipe = home.path(&format!("{name}.toml"));
        let text = format!("base = \"linear\"\n[data.file]\npath = {table:?}\n{header}\n[stop]\nsteps = 5\n");
        std::fs::write(&recipe, text).expect("a recipe");
        limitpoint(&["run", &recipe, "optimiser=gradient", "--no-report", "--out", &home.path(name)])
    };
    let guessed = run("guessed", "");
    assert_eq!(guessed.status.code(), Some(0), "{}", stderr(&guessed));
    assert!(stderr(&guessed).contains("read as titles"), "{}", stderr(&guessed));
    let said = run("said", "header = true");
    assert!(said.status.success() && !stderr(&said).contains("titles"), "{}", stderr(&said));
    let wrong = run("wrong", "header = false");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("line 1, column 1"), "{}", stderr(&wrong));
}
