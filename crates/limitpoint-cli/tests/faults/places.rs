//! Paths start at the recipe, and folders can be moved.

use crate::home::Home;
use crate::tools::{LINEAR, assert_same, copy, csv, expect, limitpoint, program, recipe, run, words};

#[test]
fn data_are_looked_for_from_the_recipe_on_as_bases_are() {
    let home = Home::new("relative");
    recipe(&home.path("project/recipes"), "base", &LINEAR.replace("data.csv", "../data/points.csv"));
    std::fs::create_dir_all(home.path("project/data")).unwrap();
    std::fs::write(home.path("project/data/points.csv"), csv(0)).unwrap();
    std::fs::create_dir_all(home.path("project/more")).unwrap();
    std::fs::write(home.path("project/more/child.toml"), "base = \"../recipes/base.toml\"\nseeds = [2]\n").unwrap();
    let from = |folder: &str, arguments: &[&str]| {
        let output = program().current_dir(folder).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?} in {folder}: {}", words(&output));
    };
    let quiet = ["--quiet", "--no-report", "--out"];
    from(&home.path(""), &[&["run", "project/recipes/base.toml"], &quiet[..], &["a"]].concat());
    from(&home.path("project/data"), &[&["run", "../more/child.toml"], &quiet[..], &["../../b"]].concat());
    from("/", &[&["run", &home.path("project/recipes/base.toml")], &quiet[..], &[&home.path("c")]].concat());
    assert_same(&home.path("a"), &home.path("c"));
    // a path on the command line starts where one stands
    let setting = "data.path=points.csv";
    from(
        &home.path("project/data"),
        &[&["run", "../recipes/base.toml", setting], &quiet[..], &[&home.path("d")]].concat(),
    );
    assert_same(&home.path("a"), &home.path("d"));
    // a run's recipe works as it is, from anywhere
    let again = home.path("a/gradient-seed1/config.toml");
    from("/", &[&["run", &again], &quiet[..], &[&home.path("e")]].concat());
    let text = expect(0, &["compare", &home.path("a"), &home.path("e")]);
    assert!(text.contains("agree in every bit"), "{text}");
}

#[test]
fn a_whole_tree_can_be_moved_and_a_run_folder_copied() {
    let home = Home::new("moved");
    let recipe = recipe(&home.path("old/project"), "mine", LINEAR);
    run(&recipe, &home.path("old/runs/mine"), &[]);
    let whole = home.path("old/runs/whole");
    run(&recipe, &whole, &["stop.steps=90"]);
    std::fs::rename(home.path("old"), home.path("new")).unwrap();
    let (out, whole) = (home.path("new/runs/mine"), home.path("new/runs/whole"));
    let inner = format!("{out}/gradient-seed1");
    expect(0, &["verify", &out]);
    expect(0, &["certify", &out, "--tolerance", "0.9"]);
    expect(0, &["check", &format!("{inner}/certificate.json")]);
    std::fs::remove_file(format!("{inner}/certificate.json")).unwrap();
    expect(0, &["resume", &out, "stop.steps=90", "--quiet", "--no-report"]);
    assert_same(&whole, &out);

    // the folder of one run alone, far from its data
    let far = home.path("far/away/and/deep/run");
    copy(&inner, &far);
    let text = expect(2, &["certify", &far]);
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(format!("{far}/manifest.json")).unwrap()).unwrap();
    let sum = manifest["data"]["sha256"].as_str().unwrap();
    let was = home.path("old/project/data.csv");
    assert!(text.contains(sum) && text.contains("--data-dir") && text.contains(&was), "{text}");
    // where they were when the run began they are found again
    std::fs::create_dir_all(home.path("old/project")).unwrap();
    std::fs::copy(home.path("new/project/data.csv"), &was).unwrap();
    expect(0, &["certify", &far, "--tolerance", "0.9"]);
    expect(0, &["check", &format!("{far}/certificate.json")]);
    std::fs::remove_file(&was).unwrap();
    // and in a folder one names, unless they are others
    std::fs::create_dir_all(home.path("store")).unwrap();
    std::fs::write(home.path("store/data.csv"), csv(1)).unwrap();
    let store = home.path("store");
    let text = expect(3, &["certify", &far, "--data-dir", &store]);
    assert!(text.contains(sum) && text.contains("are not those"), "{text}");
    std::fs::write(home.path("store/data.csv"), csv(0)).unwrap();
    for verb in [&["certify", "--tolerance", "0.9"][..], &["polish"], &["robustness"], &["verify"]] {
        let output = limitpoint(&[verb, &[&far, "--data-dir", &store]].concat());
        assert!(output.status.code().is_some_and(|code| code < 2), "{verb:?}: {}", words(&output));
    }
    // without data everything in the folder can still be checked
    assert!(expect(0, &["verify", &far]).contains("data were not checked"));
}

#[test]
fn missing_data_of_a_new_run_are_named_with_the_places_tried() {
    let home = Home::new("missing");
    let recipe = recipe(&home.path("project"), "mine", &LINEAR.replace("data.csv", "nowhere.csv"));
    let out = home.path("out");
    let text = expect(2, &["run", &recipe, "--out", &out]);
    assert!(text.contains(&home.path("project/nowhere.csv")) && text.contains("--data-dir"), "{text}");
    assert!(!std::path::Path::new(&out).exists(), "nothing is left behind");
    std::fs::create_dir_all(home.path("store")).unwrap();
    std::fs::write(home.path("store/nowhere.csv"), csv(0)).unwrap();
    run(&recipe, &out, &["--data-dir", &home.path("store")]);
}
