//! One owner at a time.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::home::Home;
use crate::tools::{LINEAR, RECIPE, assert_same, contents, expect, files, limitpoint, program, recipe, run, words};

fn signal(child: &Child, name: &str) {
    let done = std::process::Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(done.success(), "kill {name}");
}

/// Starts a run and stops its process in the middle of the work.
fn frozen(recipe: &str, out: &str) -> Child {
    let mut command = program();
    command.args(["run", recipe, "--quiet", "--no-report", "--threads", "2", "--out", out]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    // that of Muon, which makes every step; old ones go as new ones come
    let checkpoints = format!("{out}/muon-seed1/checkpoints");
    while !std::fs::read_dir(&checkpoints).is_ok_and(|mut entries| entries.next().is_some()) {
        assert!(begin.elapsed() < Duration::from_secs(60), "no checkpoint within a minute");
        std::thread::sleep(Duration::from_micros(200));
    }
    signal(&child, "-STOP");
    // a thread that waits for the disk stops a moment later
    let stopped = |task: std::path::PathBuf| {
        std::fs::read_to_string(task.join("stat"))
            .is_ok_and(|stat| stat.rsplit(") ").next().unwrap().starts_with(['T', 'Z']))
    };
    let tasks = format!("/proc/{}/task", child.id());
    while std::fs::read_dir(&tasks).is_ok_and(|mut tasks| tasks.any(|task| !stopped(task.unwrap().path()))) {
        assert!(begin.elapsed() < Duration::from_secs(60), "the process does not stop");
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

#[test]
fn a_second_owner_is_refused_with_the_name_of_the_first_and_readers_do_no_harm() {
    let home = Home::new("owners");
    let recipe = recipe(&home.path(""), "long", &RECIPE.replace("steps = 90", "steps = 4000"));
    let (whole, out) = (home.path("whole"), home.path("out"));
    run(&recipe, &whole, &[]);
    let mut first = frozen(&recipe, &out);
    let before = contents(&out);
    assert!(before.keys().any(|path| path.ends_with("claim.json")), "the first owner is in the middle of its work");
    let owner = format!("process {} on ", first.id());
    for arguments in
        [&["resume", &out][..], &["resume", &out, "stop.steps=5000"], &["run", &recipe, "--resume", "--out", &out]]
    {
        let text = expect(2, arguments);
        assert!(text.contains(&owner) && text.contains(" since 20") && text.contains("UTC"), "{text}");
    }
    assert!(expect(2, &["run", &recipe, "--out", &out]).contains("--resume"));
    assert_eq!(before, contents(&out), "nobody else has written");
    // verbs that read say what there is
    assert!(expect(0, &["verify", &out]).contains(&owner));
    for verb in ["report", "compare"] {
        expect(0, &[verb, &out]);
    }
    assert!(expect(1, &["certify", &out]).contains("limitpoint resume"));
    assert!(expect(1, &["polish", &out]).contains("limitpoint resume"));
    let _ = words(&limitpoint(&["rates", &out]));
    signal(&first, "-CONT");
    assert!(first.wait().unwrap().success());
    expect(0, &["verify", &out]);
    // runs that had ended were judged and polished
    for path in files(&out) {
        if ["certificate.json", "polished-l2.safetensors"].iter().any(|name| path.ends_with(name)) {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert_same(&whole, &out);
}

#[test]
fn what_a_killed_owner_left_is_taken_over_at_once_by_one_of_two() {
    let home = Home::new("heirs");
    let recipe = recipe(&home.path(""), "long", &RECIPE.replace("steps = 90", "steps = 1500"));
    let (whole, out) = (home.path("whole"), home.path("out"));
    run(&recipe, &whole, &[]);
    let mut first = frozen(&recipe, &out);
    first.kill().unwrap();
    first.wait().unwrap();
    let heir = || {
        let mut command = program();
        command.args(["resume", &out, "--quiet", "--no-report"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let outputs: Vec<_> = [heir(), heir()].into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let codes: Vec<_> = outputs.iter().map(|output| output.status.code().unwrap()).collect();
    assert!(codes.contains(&0), "{codes:?} {}", outputs.iter().map(words).collect::<String>());
    for output in outputs.iter().filter(|output| output.status.code() != Some(0)) {
        let text = words(output);
        assert!(output.status.code() == Some(2) && text.contains("is being written by process"), "{text}");
    }
    assert_same(&whole, &out);
}

#[test]
fn readers_beside_a_writer_find_nothing_damaged_and_damage_nothing() {
    let home = Home::new("readers-writer");
    let recipe = recipe(&home.path(""), "long", &RECIPE.replace("steps = 90", "steps = 1500"));
    let (whole, out) = (home.path("whole"), home.path("out"));
    run(&recipe, &whole, &["stop.steps=2000"]);
    run(&recipe, &out, &["stop.steps=60"]);
    // to the end, and on to a later one
    for stop in ["stop.steps=1500", "stop.steps=2000"] {
        let mut writer = program();
        writer.args(["resume", &out, stop, "--quiet", "--no-report", "--threads", "2"]);
        let mut writer = writer.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut looks = 0;
        while writer.try_wait().unwrap().is_none() {
            for verb in ["verify", "compare", "report"] {
                expect(0, &[verb, &out]);
            }
            looks += 1;
        }
        let output = writer.wait_with_output().unwrap();
        assert!(output.status.success() && looks > 0, "{}", words(&output));
    }
    for path in files(&out) {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(!name.ends_with(".tmp") && name != "claim.json", "{name} is left behind");
    }
    assert_same(&whole, &out);
}

#[test]
fn six_runs_at_once_have_six_folders() {
    let home = Home::new("six");
    let recipe = recipe(&home.path(""), "tiny", LINEAR);
    let start = |_| {
        let mut command = program();
        command.current_dir(home.path("")).args(["run", &recipe, "--quiet", "--threads", "1"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..6).map(start).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    }
    let mut names: Vec<_> =
        std::fs::read_dir(home.path("runs")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["tiny", "tiny-2", "tiny-3", "tiny-4", "tiny-5", "tiny-6"]);
    for name in &names {
        expect(0, &["verify", &home.path(&format!("runs/{name}"))]);
        assert_same(&home.path("runs/tiny"), &home.path(&format!("runs/{name}")));
    }
}

#[test]
fn a_folder_with_other_things_in_it_is_left_alone() {
    let home = Home::new("foreign");
    let recipe = recipe(&home.path(""), "tiny", LINEAR);
    let out = home.path("site");
    std::fs::create_dir_all(&out).unwrap();
    for (name, words) in [("notes.txt", "other files"), ("manifest.json", "already holds"), ("config.toml", "changed")]
    {
        let file = format!("{out}/{name}");
        std::fs::write(&file, "{}\n").unwrap();
        for more in [&["--out", out.as_str()][..], &["--resume", "--out", &out]] {
            if name == "notes.txt" && more.len() == 3 {
                continue;
            }
            let output = limitpoint(&[&["run", &recipe, "--quiet"], more].concat());
            assert!(output.status.code().is_some_and(|code| code > 1), "{name}: {}", self::words(&output));
        }
        let text = self::words(&limitpoint(&["run", &recipe, "--quiet", "--out", &out]));
        assert!(text.contains(words), "{name}: {text}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{}\n");
        std::fs::remove_file(&file).unwrap();
    }
    // a run's own recipe in the run's own folder
    run(&recipe, &home.path("one"), &[]);
    let inner = home.path("one/gradient-seed1");
    let before = contents(&inner);
    for more in [&[][..], &["--resume"]] {
        let config = format!("{inner}/config.toml");
        let output = limitpoint(&[&["run", &config, "--quiet", "--out", &inner], more].concat());
        assert!(output.status.code().is_some_and(|code| code > 1), "{}", self::words(&output));
    }
    assert_eq!(before, contents(&inner));
}
