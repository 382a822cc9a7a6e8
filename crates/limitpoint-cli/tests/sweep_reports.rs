//! Reports, tables, figures and comparisons of sweeps, from the command line.
//!
//! What is made for LaTeX is set by it where there is a `pdflatex` with pgf and booktabs, else that part is skipped.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod home;
mod program;

use std::path::Path;
use std::process::Command;

use home::Home;
use program::{limitpoint, stderr, stdout};
use serde_json::Value;

fn complete(arguments: &[&str]) -> String {
    let output = limitpoint(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&complete(&[arguments, &["--format", "json"]].concat())).expect("JSON")
}

/// Two optimisers, two sizes of the data, three margins, two seeds.
fn sweep(home: &Home, name: &str, seeds: &str) -> String {
    let out = home.path(name);
    let settings =
        ["optimiser=gradient,sign", "data.gaussians.count=20,40", "data.gaussians.margin=0.25,0.5,1", "stop.steps=60"];
    complete(&[&["sweep", "linear", seeds, "--out", &out], &settings[..]].concat());
    complete(&["worker", &out, "--quiet"]);
    out
}

#[test]
fn a_sweep_has_curves_maps_tables_and_figures_of_what_it_varies() {
    let home = Home::new("sweep-reports");
    let out = sweep(&home, "sweep", "seed=1,2");
    let told = json(&["report", &out, "--figures", "svg,pdf,pgf", "--tables", "csv,latex,markdown"]);
    let names = |key: &str| -> Vec<String> {
        let paths = told[key].as_array().expect("paths").iter();
        paths
            .map(|path| {
                Path::new(path.as_str().expect("text")).file_name().expect("a name").to_string_lossy().into_owned()
            })
            .collect()
    };
    let figures = names("figures");
    for name in [
        "margin-l2",
        "against-data-gaussians-margin-margin-l2",
        "against-data-gaussians-count-log10-loss",
        "map-data-gaussians-count-data-gaussians-margin-margin-linf-sign",
    ] {
        for ending in ["svg", "pdf", "pgf"] {
            assert!(figures.contains(&format!("{name}.{ending}")), "{name}.{ending} is not in {figures:?}");
        }
    }
    assert_eq!(names("tables"), ["final-values.csv", "runs.csv", "final-values.tex", "final-values.md"]);
    let table = std::fs::read_to_string(format!("{out}/tables/final-values.csv")).expect("a table");
    assert!(table.starts_with("optimiser,data.gaussians.count,data.gaussians.margin,seeds,of,margin."), "{table}");
    assert_eq!(table.lines().count(), 1 + 12, "a row for every optimiser at every point: {table}");
    let runs = std::fs::read_to_string(format!("{out}/tables/runs.csv")).expect("a table");
    assert_eq!(runs.lines().count(), 1 + 24);
    let page = std::fs::read_to_string(format!("{out}/report.html")).expect("a page");
    let data: Value = serde_json::from_str(
        page.split_once("id=\"data\">").and_then(|(_, rest)| rest.split_once("</script>")).expect("data").0,
    )
    .expect("JSON");
    assert_eq!((data["sweeps"].as_array().map(Vec::len), data["maps"].as_array().map(Vec::len)), (Some(2), Some(1)));
    complete(&["verify", &out]);
    set_by_latex(&out);
    // chosen figures are added; a second time the same bytes
    let figure = format!("{out}/figures/margin-l2-along-loss.pdf");
    let chosen = ["report", &out, "--figures", "pdf", "--column", "margin.l2", "--axis", "loss", "--size", "240x400"];
    complete(&chosen);
    let first = std::fs::read(&figure).expect("a figure");
    complete(&chosen);
    assert!(
        first == std::fs::read(&figure).expect("a figure") && first.windows(16).any(|at| at == b"[0 0 240 400] /C")
    );
    assert!(Path::new(&format!("{out}/figures/margin-l2.svg")).exists());
    complete(&["verify", &out]);
    // what is damaged is named
    std::fs::write(&figure, "x").expect("writable");
    let told = limitpoint(&["verify", &out]);
    assert_eq!(told.status.code(), Some(3));
    assert!(stdout(&told).contains("margin-l2-along-loss.pdf"), "{}", stdout(&told));
}

/// Sets two figures and a table of a report in one document, without an error.
fn set_by_latex(out: &str) {
    let set = |name: &str, body: &str| {
        let text = format!(
            "\\documentclass{{article}}\\usepackage{{pgf}}\\usepackage{{booktabs}}\\begin{{document}}{body}\\end{{document}}\n"
        );
        std::fs::write(Path::new(out).join(format!("../{name}.tex")), text).expect("a document");
        Command::new("pdflatex")
            .args(["-interaction=nonstopmode", "-halt-on-error", &format!("{name}.tex")])
            .current_dir(Path::new(out).join(".."))
            .output()
    };
    if !set("empty", "x").is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no pdflatex with pgf and booktabs to set figures with");
        return;
    }
    let inputs = [
        "figures/against-data-gaussians-margin-margin-linf.pgf",
        "figures/map-data-gaussians-count-data-gaussians-margin-margin-linf-sign.pgf",
        "tables/final-values.tex",
    ];
    let body: String = inputs.iter().map(|file| format!("\\input{{sweep/{file}}}\n\n")).collect();
    let output = set("paper", &body).expect("it starts");
    assert!(output.status.success(), "{}", stdout(&output));
}

#[test]
fn figures_that_cannot_be_drawn_are_answered_with_what_there_is() {
    let home = Home::new("sweep-figures");
    let out = home.path("sweep");
    complete(&["sweep", "linear", "optimiser=gradient", "seed=1,2", "stop.steps=60", "--out", &out]);
    complete(&["worker", &out, "--quiet"]);
    for (arguments, answer) in [
        (&["--figures", "pdf", "--column", "margin.l7"][..], "no figure shows 'margin.l7'; there are"),
        (
            &["--figures", "pdf", "--axis", "model.width"],
            "the runs do not differ in 'model.width'; an axis is steps, time, loss",
        ),
        (&["--figures", "pdf", "--size", "340"], "is no size such as 340x240"),
        (&["--figures", "png"], "invalid value 'png'"),
        (&["--column", "margin.l2"], "say in which format"),
    ] {
        let output = limitpoint(&[&["report", &out], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(answer), "{arguments:?}: {}", stderr(&output));
    }
    assert!(!Path::new(&format!("{out}/figures")).exists(), "nothing is written");
}

#[test]
fn sweeps_are_compared_run_by_run_and_over_seeds() {
    let home = Home::new("sweep-compare");
    let (a, b) = (sweep(&home, "a", "seed=1,2"), sweep(&home, "b", "seed=2,3"));
    let told = json(&["compare", &a, &b]);
    let found = &told["comparisons"][0];
    assert_eq!((&found["both"], &found["equal"]), (&12.into(), &12.into()), "{found}");
    assert_eq!(
        found["only"].as_array().expect("two lists").iter().map(|one| one.as_array().map(Vec::len)).collect::<Vec<_>>(),
        [Some(12); 2]
    );
    assert_eq!(found["table"]["rows"].as_array().map(Vec::len), Some(12));
    for row in found["table"]["rows"].as_array().expect("rows") {
        assert_eq!(row["seeds"], serde_json::json!([1, 1]), "of seed 2 alone: {row}");
        assert!(row["means"].as_array().expect("means").iter().all(|pair| pair[0] == pair[1]), "{row}");
    }
    let text = complete(&["compare", &a, &b]);
    assert!(
        text.contains("a and b share 12 runs: 12 agree in every bit, 0 do not; 12 only in a, 12 only in b"),
        "{text}"
    );
    assert!(text.contains("sign · data.gaussians.count=40, data.gaussians.margin=1"), "{text}");
}
