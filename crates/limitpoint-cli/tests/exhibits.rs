//! Figures and tables of the papers in the papers' own settings: planned, made, read, and checked from their weights.

use std::path::Path;

use serde_json::Value;

mod home;
mod program;
use home::Home;
use program::{limitpoint, stderr, stdout};

#[test]
fn a_plan_says_what_every_exhibit_takes_and_starts_nothing() {
    let home = Home::new("plan");
    let out = home.path("out");
    let output = limitpoint(&["reproduce", "--scale", "paper", "--plan", "--format", "json", "--out", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let plan: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let sets = plan["sets"].as_array().unwrap();
    let of = |name: &str| sets.iter().find(|set| set["set"] == name).unwrap();
    assert_eq!(of("d-cnn")["runs"], 10);
    assert!(of("d-cnn")["hours"].as_f64().unwrap() > of("c-circle-lambda")["hours"].as_f64().unwrap());
    assert!(sets.iter().all(|set| set["bytes_a_run"].as_f64().unwrap() > 0.0));
    assert!(!Path::new(&out).exists());
}

#[test]
fn what_belongs_to_the_papers_scale_is_refused_elsewhere() {
    for option in [&["--plan"][..], &["--read"], &["--for", "1s"], &["--only", "gradient-seed1"]] {
        let output = limitpoint(&[&["reproduce", "B.ex2"], option].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("--scale paper"), "{}", stderr(&output));
    }
    // claims know no device, at any scale
    let output = limitpoint(&["reproduce", "B.ex2", "--scale", "paper", "--device", "cuda"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("B.ex2 names claims"), "{}", stderr(&output));
}

#[test]
fn an_exhibit_is_made_read_in_part_and_checked_and_a_changed_number_is_found() {
    let home = Home::new("exhibit");
    let out = home.path("out");
    // of the three sets of C.fig7 only the shortest
    let sweep = ["sweep", "c-circle-long", "stop.steps=1000", "--out", &format!("{out}/c-circle-short")];
    assert_eq!(limitpoint(&sweep).status.code(), Some(0));
    let worked = limitpoint(&["worker", &format!("{out}/c-circle-short"), "--quiet"]);
    assert_eq!(worked.status.code(), Some(0), "{}", stderr(&worked));
    let read = limitpoint(&["reproduce", "C.fig7", "B.fig1", "--scale", "paper", "--read", "--out", &out]);
    assert_eq!(read.status.code(), Some(0), "{}", stderr(&read));
    let text = stdout(&read);
    assert!(text.contains("C.fig7   in part") && text.contains("12 of   66 runs"), "{text}");
    assert!(text.contains("B.fig1   complete"), "{text}");
    let page = std::fs::read_to_string(format!("{out}/records/C.fig7.md")).unwrap();
    assert!(page.contains("cube-10 ") && page.contains("12 of 12 runs finished, 6 of 6 seeds"), "{page}");
    let index = std::fs::read_to_string(format!("{out}/records/README.md")).unwrap();
    assert!(index.contains("| [C.fig7](C.fig7.md) |") && index.contains("| C.tab9 |"), "{index}");
    assert!(Path::new(&format!("{out}/records/C.fig7-c-circle-short-cube-10.svg")).exists());
    let record = format!("{out}/records/C.fig7.json");
    let checked = limitpoint(&["check", &record]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    assert!(stdout(&checked).contains("12 runs recomputed") && stdout(&checked).contains("every number agrees"));
    let text = std::fs::read_to_string(&record).unwrap();
    let place = text.find("\"l2\": ").unwrap() + 6;
    let mut changed = text.clone();
    let digit = changed[place..].find(|letter: char| ('1'..='8').contains(&letter)).unwrap() + place;
    let other = char::from(text.as_bytes()[digit] + 1).to_string();
    changed.replace_range(digit..=digit, &other);
    std::fs::write(&record, changed).unwrap();
    let found = limitpoint(&["check", &record]);
    assert_eq!(found.status.code(), Some(3), "{}", stdout(&found));
    assert!(stdout(&found).contains("the margin in l2"), "{}", stdout(&found));
}

/// What `reproduce C.tab4` of some runs makes in a folder: the row of the set, and how many runs are behind its first numbers.
fn make(out: &str, only: &str) -> Value {
    let done = limitpoint(&["reproduce", "C.tab4", "--scale", "paper", "--only", only, "--out", out]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    serde_json::from_str(&std::fs::read_to_string(format!("{out}/records/C.tab4.json")).unwrap()).unwrap()
}

#[test]
fn runs_of_two_machines_come_together_in_records_that_travel() {
    let home = Home::new("machines");
    let [here, there] = ["here", "there"].map(|name| home.path(name));
    let first = make(&here, "cube-10-seed42,c-circle-lambda/cube-1-seed42");
    assert_eq!((&first["sets"][0]["finished"], &first["extent"]), (&2.into(), &"partial".into()));
    // another machine gets the records, and nothing of the folders
    std::fs::create_dir_all(format!("{there}/records/runs")).unwrap();
    for file in ["runs/c-circle-lambda.json", "C.tab4.json", "c-circle-lambda.safetensors"] {
        std::fs::copy(format!("{here}/records/{file}"), format!("{there}/records/{file}")).unwrap();
    }
    // what is finished there is not made here
    let again = make(&there, "cube-10-seed42");
    assert_eq!(again["sets"][0], first["sets"][0]);
    assert_eq!(again["reading"]["rows"], first["reading"]["rows"]);
    assert!(!Path::new(&format!("{there}/c-circle-lambda")).exists());
    let plan = ["reproduce", "C.tab4", "--scale", "paper", "--plan", "--format", "json", "--out", &there];
    let plan: Value = serde_json::from_str(&stdout(&limitpoint(&plan))).unwrap();
    assert_eq!(plan["sets"][0]["runs"], 40);
    let both = make(&there, "cube-10-seed43");
    assert_eq!((&both["sets"][0]["finished"], &both["sets"][0]["seeds"][0]), (&3.into(), &2.into()));
    let row = |record: &Value, runs: u64| {
        let rows = record["reading"]["rows"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["runs"] == runs).unwrap()
    };
    let [one, two] = [row(&first, 1), row(&both, 2)];
    assert!(one["what"] == two["what"] && one["ours"] != two["ours"] && two["spread"].as_f64().unwrap() > 0.0);
    // the weights of all three lie beside the record
    let checked = limitpoint(&["check", &format!("{there}/records/C.tab4.json")]);
    assert!(stdout(&checked).contains("3 runs recomputed"), "{}{}", stdout(&checked), stderr(&checked));
    assert_eq!(checked.status.code(), Some(0));

    let unknown = ["reproduce", "C.tab4", "--scale", "paper", "--only", "cube-10-seed1", "--out", &there];
    let unknown = limitpoint(&unknown);
    assert_eq!(unknown.status.code(), Some(2));
    let words = stderr(&unknown);
    assert!(words.contains("'cube-10-seed1'") && words.contains("c-circle-lambda/cube-0_1-seed42"), "{words}");
    // a record of fewer runs has as many numbers, and a figure of marks alone has none: neither replaces one of more
    let runs_there = format!("{there}/records/runs/c-circle-lambda.json");
    let text = std::fs::read_to_string(&runs_there).unwrap();
    let read = ["reproduce", "C.tab4", "C.fig6", "--scale", "paper", "--read", "--out", &there];
    assert_eq!(limitpoint(&read).status.code(), Some(0));
    let records = ["C.tab4", "C.fig6"].map(|id| format!("{there}/records/{id}.json"));
    let before = records.clone().map(|path| std::fs::read_to_string(path).unwrap());
    std::fs::remove_file(&runs_there).unwrap();
    std::fs::rename(format!("{there}/c-circle-lambda"), format!("{there}/away")).unwrap();
    let left = limitpoint(&read);
    assert_eq!(stderr(&left).matches("it is left as it is").count(), 2, "{}", stderr(&left));
    assert_eq!(records.map(|path| std::fs::read_to_string(path).unwrap()), before);
    std::fs::rename(format!("{there}/away"), format!("{there}/c-circle-lambda")).unwrap();
    std::fs::write(&runs_there, &text).unwrap();
    let kept = runs_there;
    // a run whose recipe has changed since is none of the set
    std::fs::write(&kept, text.replace("\"cube-1-seed42-", "\"cube-1-seed42-0")).unwrap();
    std::fs::remove_file(format!("{there}/records/C.tab4.json")).unwrap();
    let changed = make(&there, "cube-10-seed43");
    assert_eq!(changed["sets"][0]["finished"], 2);
    assert!(std::fs::read_to_string(&kept).unwrap().contains("\"cube-1-seed42-0"));
    std::fs::write(&kept, &text[..text.len() / 2]).unwrap();
    let damaged = limitpoint(&["reproduce", "C.tab4", "--scale", "paper", "--read", "--out", &there]);
    assert_eq!(damaged.status.code(), Some(2));
    assert!(stderr(&damaged).contains("c-circle-lambda.json") && stderr(&damaged).contains("is damaged"));
}

#[test]
fn the_exhibits_of_this_repository_agree_with_their_weights() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduction");
    // a crate that is built outside its repository has none
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let records: Vec<String> = entries
        .map(|entry| entry.unwrap().path())
        // those on images need images, which are not in the repository
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with('C') && name.contains("tab")
        })
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .filter(|path| !["C.tab1.json", "C.tab9.json", "C.tab10.json"].iter().any(|name| path.ends_with(name)))
        .map(|path| path.display().to_string())
        .collect();
    assert!(records.len() >= 7, "{records:?}");
    let mut words = vec!["check"];
    words.extend(records.iter().map(String::as_str));
    let output = limitpoint(&words);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn exhibits_of_runs_made_elsewhere_are_read_again_from_what_lies_beside_their_records() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduction");
    // a crate that is built outside its repository has none
    if !repository.is_dir() {
        return;
    }
    let home = Home::new("elsewhere");
    let out = home.path("out");
    for folder in ["runs", "looks"] {
        std::fs::create_dir_all(format!("{out}/records/{folder}")).unwrap();
        for entry in std::fs::read_dir(repository.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            std::fs::copy(&path, format!("{out}/records/{folder}/{name}")).unwrap();
        }
    }
    // neither data nor folders of runs nor a card: the runs took hours of one
    let ids = ["D.tab1", "D.fig1", "D.fig7", "C.tab9", "C.fig4"];
    let read = limitpoint(&[&["reproduce"], &ids[..], &["--scale", "paper", "--read", "--out", &out]].concat());
    assert_eq!(read.status.code(), Some(0), "{}", stderr(&read));
    for id in ids {
        let file = format!("{id}.json");
        let [before, now]: [Value; 2] = [repository.join(&file), Path::new(&out).join("records").join(&file)]
            .map(|path| serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap());
        assert_eq!(now["reading"], before["reading"], "{id}");
    }
    // a record that has more than the runs here give is left, unless it is asked for anew
    let kept = format!("{out}/records/runs/d-cnn.json");
    std::fs::remove_file(kept).unwrap();
    let record = format!("{out}/records/D.tab1.json");
    let before = std::fs::read(&record).unwrap();
    let poorer = ["reproduce", "D.tab1", "--scale", "paper", "--read", "--out", &out];
    let left = limitpoint(&poorer);
    assert!(stderr(&left).contains("it is left as it is") && std::fs::read(&record).unwrap() == before);
    let anew = limitpoint(&[&poorer[..], &["--fresh"]].concat());
    assert_eq!(anew.status.code(), Some(0), "{}", stderr(&anew));
    assert!(std::fs::read_to_string(&record).unwrap().contains("\"extent\": \"not-run\""));
}

#[test]
fn the_first_weights_below_a_loss_are_kept_and_stay_when_a_run_goes_on() {
    let home = Home::new("milestones");
    let out = home.path("out");
    let levels = "observe.milestones=[-1.5, -2.5, -3.5]";
    let run = limitpoint(&["run", "plane", "seed=1", "stop.log10_loss=-3", levels, "--out", &out]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let folder = format!("{out}/gradient-seed1/checkpoints");
    let read = |name: &str| std::fs::read(format!("{folder}/{name}")).ok();
    let (first, second) = (read("below-1.5.safetensors").unwrap(), read("below-2.5.safetensors").unwrap());
    assert!(first != second && read("below-3.5.safetensors").is_none());
    assert_eq!(limitpoint(&["verify", &out]).status.code(), Some(0));
    let on = limitpoint(&["resume", &out, "stop.log10_loss=-4"]);
    assert_eq!(on.status.code(), Some(0), "{}", stderr(&on));
    assert_eq!((read("below-1.5.safetensors"), read("below-2.5.safetensors")), (Some(first), Some(second)));
    assert!(read("below-3.5.safetensors").is_some());
    assert_eq!(limitpoint(&["verify", &out]).status.code(), Some(0));
}
