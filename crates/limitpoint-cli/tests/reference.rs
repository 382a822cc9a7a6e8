//! What people read: the reference page, `list NAME`, and the recipe of the README, held against the program.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod home;
mod program;

use std::path::Path;

use home::Home;
use program::{limitpoint, stderr, stdout};

/// A file of the repository; nothing, with a word about it, in a published crate.
fn repository(name: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join("docs").is_dir() {
        eprintln!("skipped: {} is no clone of the repository, so it has no {name}", root.display());
        return None;
    }
    let path = root.join(name);
    Some(std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

#[test]
fn the_reference_page_is_the_one_the_program_writes() {
    let Some(written) = repository("docs/reference.md") else { return };
    let page = stdout(&limitpoint(&["schema", "--markdown"]));
    assert!(
        written == page,
        "docs/reference.md is out of date; write it again: limitpoint schema --markdown > docs/reference.md"
    );
    for word in ["`beta1`", "`log10_loss`", "`histogram_bins`", "`margin.NORM`", "`process/…`", "`widths`"] {
        assert!(page.contains(word), "{word} is missing");
    }
}

#[test]
fn a_checkpoint_and_a_table_of_measurements_hold_what_the_page_says() {
    let Some(page) = repository("docs/reference.md") else { return };
    let home = Home::new("reference");
    let out = home.path("out");
    let output = limitpoint(&[
        "run",
        "digits",
        "optimiser=adam",
        "stop.steps=30",
        "stop.direction=1e-9",
        "--no-report",
        "--quiet",
        "--out",
        &out,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = format!("{out}/adam-seed0");
    let bytes = std::fs::read(format!("{run}/checkpoints/final.safetensors")).expect("a checkpoint");
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).expect("a header");
    for (name, tensor) in header.as_object().expect("tensors").iter().filter(|(name, _)| *name != "__metadata__") {
        assert_eq!(tensor["dtype"], "F64", "{name}");
        let known = match name.split_once('/') {
            Some((place, _)) => page.contains(&format!("| `{place}/…` |")),
            None => name.ends_with(".weight") && page.contains("`layer1.weight`"),
        };
        assert!(known, "the page does not know the tensor {name}");
    }
    let text = header["__metadata__"]["limitpoint"].as_str().expect("one key of metadata");
    let toml = text.splitn(3, '\n').nth(2).expect("format, checksum, text");
    let table: toml::Table = toml.parse().expect("TOML");
    for key in table.keys() {
        assert!(page.contains(&format!("`{key}`")), "the page does not know the key {key} of a checkpoint");
    }
    let metrics = std::fs::read_to_string(format!("{run}/metrics.csv")).expect("measurements");
    let header = metrics.lines().find(|line| line.starts_with("step,")).expect("names of columns");
    for column in header.split(',') {
        let family = column.split('.').next().unwrap_or_default();
        let known = page.contains(&format!("| `{column}` |")) || page.contains(&format!("| `{family}."));
        assert!(known, "the page does not know the column {column}");
    }
}

#[test]
fn anything_with_a_name_is_listed_with_parameters_defaults_and_meaning() {
    for (name, words) in [
        ("adam", &["optimisers", "beta1", "default 0.9", "Decay of the first moment", "θ − η"][..]),
        ("gradient", &["steepest", "norm", "required"]),
        ("lp:3", &["norms", "p ≥ 1"]),
        ("hyperbolic", &["potentials", "lambda", "λ > 0"]),
        ("network", &["models", "widths", "Widths of the hidden layers"]),
        ("gaussians", &["data", "count", "default 100", "Number of training examples"]),
        ("flow-resolved", &["schedules", "resolution"]),
        ("he-normal", &["initialisers", "scale"]),
        ("huber", &["losses", "delta"]),
        ("relu-power", &["activations", "power"]),
        ("carlini-wagner", &["attacks", "search_steps", "default 9"]),
        ("log10_loss", &["stop.log10_loss", "number", "log₁₀ of the summed loss"]),
        ("stop", &["log10_loss", "steps", "seconds"]),
        ("histogram_bins", &["observe.histogram_bins", "default 40"]),
    ] {
        let output = limitpoint(&["list", name]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        for word in words {
            assert!(stdout(&output).contains(word), "list {name} should show {word}:\n{}", stdout(&output));
        }
        let json: serde_json::Value =
            serde_json::from_str(&stdout(&limitpoint(&["list", name, "--format", "json"]))).expect("JSON");
        assert!(json[0]["settings"].is_array() && json[0]["meaning"].is_string(), "{json}");
    }
}

#[test]
fn exit_codes_are_in_the_help_and_in_the_readme() {
    let Some(readme) = repository("README.md") else { return };
    let help = stdout(&limitpoint(&["--help"]));
    for words in ["0    done", "1    done, and the answer is no", "2    not done", "3    invalid", "130  interrupted"] {
        assert!(help.contains(words), "{words} in {help}");
    }
    assert!(
        readme.contains("Exit codes: 0 done; 1 ") && readme.contains("130 interrupted"),
        "exit codes in the README"
    );
}

#[test]
fn the_recipe_of_the_readme_runs_on_a_table_of_ones_own() {
    let Some(readme) = repository("README.md") else { return };
    let blocks = readme.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let recipe = blocks.into_iter().find(|block| block.contains("[data.file]")).expect("a recipe with a file");
    let home = Home::new("readme");
    let mut table = "length,width,weight,label\n".to_owned();
    for i in 0..100 {
        let (x, y) = ((f64::from(i) * 0.7).sin(), (f64::from(i) * 1.3).cos());
        table += &format!("{x},{y},{},{}\n", x * y, i32::from(x + 2.0 * y > 0.0));
    }
    std::fs::write(home.path("measurements.csv"), table).expect("a table");
    std::fs::write(home.path("mine.toml"), recipe).expect("a recipe");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_limitpoint"))
        .current_dir(home.path(""))
        .args(["run", "mine.toml", "stop.steps=50", "seed=1", "--quiet"])
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for name in ["runs/mine/report.html", "runs/mine/gradient-seed1/metrics.csv"] {
        assert!(Path::new(&home.path(name)).exists(), "{name}");
    }
}
