//! Experiments as a user meets them: recipes, runs, reports, comparisons.

use std::path::Path;
use std::process::Output;

mod home;
mod program;
use home::Home;
use program::{limitpoint, stderr, stdout};

/// A quick experiment: small network, few steps.
const QUICK: [&str; 4] = ["digits", "data.count=40", "model.width=8", "stop.log10_loss=-5"];

fn run_quick(out: &str, more: &[&str]) -> Output {
    limitpoint(&[&["run"], &QUICK[..], more, &["--out", out]].concat())
}

#[test]
fn a_sweep_leaves_a_folder_per_run_a_table_and_a_report() {
    let home = Home::new("sweep");
    let out = home.path("sweep");
    let output = run_quick(&out, &["optimiser.norm=l2,spectral", "seed=1,2", "--svg"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = stdout(&output);
    assert!(table.contains("γ of ℓ2") && table.contains("±") && table.contains('*'), "{table}");
    assert_eq!(table.trim_end().lines().last(), Some(format!("{out}/report.html").as_str()));
    assert!(!table.contains('\x1b'), "no colours where nobody looks");
    let talk = stderr(&output);
    assert!(talk.contains("done") && talk.contains("log10 L"), "{talk}");
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(Path::new(&out).join("manifest.json")).unwrap()).unwrap();
    let names: Vec<&str> = manifest["runs"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    for name in &names {
        let files =
            ["config.toml", "manifest.json", "metrics.csv", "metrics.parquet", "histograms.jsonl", "portrait.json"];
        for file in files.iter().chain(&["checkpoints/final.safetensors"]) {
            assert!(Path::new(&out).join(name).join(file).exists(), "{name}/{file}");
        }
    }
    let page = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.contains("Threes and eights"));
    assert!(std::fs::read_to_string(Path::new(&out).join("figures/loss.svg")).unwrap().contains("<svg"));
    // the folder is taken now
    let again = run_quick(&out, &[]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("--resume"), "{}", stderr(&again));
    // and with another recipe it cannot be resumed
    let other = run_quick(&out, &["--resume", "loss=logistic"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("another recipe"), "{}", stderr(&other));
}

#[test]
fn the_number_of_threads_changes_no_bit_and_a_resolved_recipe_repeats_its_run() {
    let home = Home::new("threads");
    let (one, three, alone) = (home.path("one"), home.path("three"), home.path("alone"));
    let more = ["seed=1,2,3", "--quiet", "--no-report"];
    for (out, threads) in [(&one, "1"), (&three, "3")] {
        let output = run_quick(out, &[&more[..], &["--threads", threads]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(output.stderr.is_empty(), "--quiet: {}", stderr(&output));
    }
    let config = format!("{one}/gradient-seed2/config.toml");
    assert_eq!(limitpoint(&["run", &config, "--quiet", "--out", &alone]).status.code(), Some(0));
    for (folder, pairs) in [(&three, 3), (&alone, 1)] {
        let output = limitpoint(&["compare", &one, folder, "--format", "json"]);
        let found: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        let compared = found["pairs"].as_array().unwrap();
        assert_eq!(compared.len(), pairs, "{found}");
        assert!(compared.iter().all(|pair| pair["difference"].is_null()), "{found}");
    }
    let file = |folder: &str| std::fs::read(format!("{folder}/gradient-seed2/checkpoints/final.safetensors")).unwrap();
    assert!(file(&one) == file(&three));
    let text = stdout(&limitpoint(&["compare", &one, &three]));
    assert!(text.contains("agree in every bit"), "{text}");
    let other = home.path("other");
    run_quick(&other, &["seed=1", "init.he-normal.scale=0.5", "--quiet", "--no-report"]);
    let text = stdout(&limitpoint(&["compare", &one, &other]));
    assert!(text.contains("share 1 run: 0 agree in every bit, 1 do not; 2 only in one"), "{text}");
    assert!(text.contains("part at step 0"), "{text}");
}

#[test]
fn json_has_the_numbers_of_the_table() {
    let home = Home::new("json");
    let out = home.path("json");
    let output = run_quick(&out, &["--quiet", "--format", "json"]);
    let found: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(found["runs"][0]["status"], "finished");
    assert!(found["runs"][0]["log10_loss"].as_f64().unwrap() <= -5.0, "{found}");
    assert!(found["summary"]["rows"].as_array().is_some_and(|rows| rows.len() == 1));
    assert!(found["findings"].as_array().is_some_and(|findings| !findings.is_empty()));
    let report = limitpoint(&["report", &out, "--format", "json"]);
    let again: serde_json::Value = serde_json::from_str(&stdout(&report)).expect("JSON");
    assert_eq!(again["summary"], found["summary"]);
}

#[test]
fn runs_that_end_in_trouble_exit_with_one_and_say_why() {
    let home = Home::new("trouble");
    let out = home.path("trouble");
    let output = run_quick(&out, &["schedule=constant(rate=1e30)", "stop.steps=50", "--quiet"]);
    assert_eq!(output.status.code(), Some(1), "{} {}", stdout(&output), stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("1 of 1 runs failed:\n  gradient-seed0  not a finite number at step"), "{text}");
    // in a sweep the page gathers them, and shows the others against what was swept
    let out = home.path("sweep");
    run_quick(&out, &["schedule.constant.rate=1e-4,1e-3,1e30", "seed=1,2", "stop.steps=50", "--quiet"]);
    let page = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    for words in
        ["<h2>Failed runs</h2>", "2 of 6</td>", "rate=1e30 (2 seeds)", ">0 of 2 seeds</td>", "\"logarithmic\":"]
    {
        assert!(page.contains(words), "{words} is not in the page");
    }
}

#[test]
fn every_optimiser_has_the_margin_of_its_own_norm_without_being_asked() {
    let home = Home::new("own-norm");
    for (index, (optimiser, columns)) in [
        ("muon", &["margin.spectral"][..]),
        ("sign,muon", &["margin.spectral", "margin.linf"]),
        ("coordinate", &["margin.l1"]),
        ("steepest(norm=lp:3)", &["margin.l3"]),
        ("steepest(norm=max(*=2*l2))", &["margin.max(*=2*l2)"]),
        ("mirror(potential=hyperbolic:0.1)", &["margin.l1"]),
        ("mirror(potential=squared-lp:1.5)", &["margin.l3/2"]),
        ("adjusted(of=sign,decay=0.001)", &["margin.linf"]),
        ("blocks(all=adam)", &["margin.linf"]),
        ("blocks(first=muon,rest=adam)", &["\"margin.max(first=spectral"]),
    ]
    .iter()
    .enumerate()
    {
        let out = home.path(&index.to_string());
        let recipe = ["run", "linear", "observe.norms=['l2']", "stop.steps=3", "--quiet", "--no-report"];
        let output = limitpoint(&[&recipe[..], &[&format!("optimiser={optimiser}"), "--out", &out]].concat());
        assert_eq!(output.status.code(), Some(0), "{optimiser}: {}", stderr(&output));
        for run in std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
            let table = std::fs::read_to_string(run.join("metrics.csv")).unwrap();
            let titles: Vec<&str> = table.lines().next().unwrap().split(',').collect();
            for column in columns.iter().chain(&["margin.l2"]) {
                assert!(titles.contains(column), "{}: no {column} in {titles:?}", run.display());
            }
        }
    }
    // a norm of several blocks has a comma in its name
    let out = home.path("blocks");
    let norm = "optimiser=steepest(norm=max(layer1.weight=spectral,*=linf))";
    let output = run_quick(&out, &[norm, "stop.steps=3", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("γ of max(layer1.weight=spectral,*=linf)"), "{}", stdout(&output));
}

#[test]
fn a_composition_is_judged_in_its_norm_or_told_why_it_has_none() {
    let home = Home::new("composition");
    for (optimiser, norm) in [
        ("blocks(first=muon, rest=adjusted(of=sign, factor=0.5))", None),
        ("blocks(first=muon, rest=adjusted(of=signum, factor=0.5))", Some("max(first=spectral,*=2*linf)")),
    ] {
        let out = home.path(if norm.is_some() { "known" } else { "unknown" });
        let output = run_quick(&out, &[&format!("optimiser={optimiser}"), "seed=1", "--quiet", "--no-report"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let output = limitpoint(&["certify", &out]);
        let said = stdout(&output) + &stderr(&output);
        match norm {
            Some(norm) => assert!(said.contains(norm), "{said}"),
            // sign descent carries its dual norm, Muon does not
            None => assert!(said.contains("depend in different ways") && said.contains("--norm"), "{said}"),
        }
    }
    let output = run_quick(&home.path("hidden"), &["optimiser=blocks(hidden=muon, rest=adam)", "seed=1"]);
    assert!(output.status.code() != Some(0) && stderr(&output).contains("'hidden' selects no"), "{}", stderr(&output));
    let decay = ["optimiser=adjusted(of=gradient, decay=0.5)", "schedule=constant(rate=4)", "seed=1"];
    let output = run_quick(&home.path("decay"), &decay);
    let said = stderr(&output);
    assert!(
        output.status.code() != Some(0) && said.contains("step 1: adjusted: a step of size η = 4.0000e0"),
        "{said}"
    );
}

#[test]
fn an_optimiser_whose_memory_is_outrun_is_warned_and_told_the_key() {
    let home = Home::new("memory");
    let out = home.path("memory");
    let output = limitpoint(&["run", "linear", "optimiser=adam", "seed=1,2", "stop.steps=3000", "--out", &out]);
    let talk = stderr(&output);
    assert_eq!(talk.matches("memory=0.5").count(), 1, "one warning for both seeds: {talk}");
    let page = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.contains("Faster than the memory of adam"), "the report says it too");
    let kept = ["schedule=flow-resolved(resolution=0.1, memory=0.5)", "stop.steps=100", "--no-report"];
    let output =
        limitpoint(&[&["run", "linear", "optimiser=adam"], &kept[..], &["--out", &home.path("kept")]].concat());
    assert!(!stderr(&output).contains("warning"), "{}", stderr(&output));
}

#[test]
fn stop_rules_end_runs_and_are_named() {
    let home = Home::new("stop");
    let rules = [
        ("stop.steps=7", "7 steps made"),
        ("stop.log10_time=-1", "log10 t reached -1"),
        ("stop.seconds=0.05", "0.05 seconds went by"),
        ("stop.direction=3", "the direction turned by less than 3"),
        ("stop.certificate={norm=\"l2\",gap=0.9}", "the gap of the l2 certificate fell to"),
    ];
    for (index, (rule, words)) in rules.iter().enumerate() {
        let out = home.path(&index.to_string());
        let common =
            ["linear", "optimiser=gradient", "stop.log10_loss=-100000", "stop.steps=10000000", "--format", "json"];
        let output = limitpoint(&[&["run"], &common[..], &[rule, "--quiet", "--no-report", "--out", &out]].concat());
        let found: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        let stop = found["runs"][0]["stop"].as_str().unwrap_or_default().to_owned();
        assert!(stop.contains(words), "{rule}: {stop} {}", stderr(&output));
    }
}

#[test]
fn mistakes_in_recipes_are_pointed_at() {
    let home = Home::new("mistakes");
    let file = home.path("mine.toml");
    std::fs::write(&file, "base = \"digits\"\n\n[stop]\nlog10_los = -3\n").unwrap();
    let cases: [(&[&str], &[&str]); 5] = [
        (&["run", &file], &["mine.toml:4:1", "did you mean 'log10_loss'"]),
        (&["run", "digits", "model.widht=3"], &["did you mean 'width", "^"]),
        (&["run", "shwocase"], &["did you mean 'showcase'"]),
        (&["run", "digits", "seed=1..0"], &["seed=1..0"]),
        (&["resume", &home.path("nowhere")], &["no experiment to resume", "manifest.json"]),
    ];
    for (arguments, words) in cases {
        let output = limitpoint(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
        for word in words {
            assert!(stderr(&output).contains(word), "{arguments:?}: {}", stderr(&output));
        }
    }
    assert_eq!(std::fs::read_dir(home.path("")).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn print_config_resolves_without_running_and_the_schema_knows_its_keys() {
    let output = limitpoint(&["run", "digits", "optimiser=sign", "model.width=16,32", "--print-config"]);
    let text = stdout(&output);
    assert!(text.contains("# model.width = 16") && text.contains("widths = [32]") && text.contains("linf"), "{text}");
    let schema: serde_json::Value = serde_json::from_str(&stdout(&limitpoint(&["schema"]))).expect("JSON");
    for key in ["base", "optimiser", "optimisers", "data", "model", "loss", "stop", "observe", "seeds"] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
}

#[test]
fn every_verb_has_examples_in_its_help() {
    let help = stdout(&limitpoint(&["--help"]));
    let verbs =
        ["run", "resume", "report", "list", "compare", "verify", "data", "bench", "schema", "completions", "doctor"];
    for verb in verbs {
        assert!(help.lines().any(|line| line.trim_start().starts_with(verb)), "{verb}");
        let text = stdout(&limitpoint(&[verb, "--help"]));
        assert!(text.contains("Examples:"), "{verb}: {text}");
    }
}
