//! `limitpoint doctor` and `limitpoint completions` as a user meets them.

use std::process::{Command, Output};

fn limitpoint(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_limitpoint")).args(arguments).output().expect("the program starts")
}

#[test]
fn doctor_finds_a_machine_that_can_run() {
    let folder = std::env::temp_dir().join(format!("limitpoint-doctor-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let run = |format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_limitpoint"));
        command.args(["doctor", "--format", format]).current_dir(&folder).env("LIMITPOINT_DATA", &folder);
        command.output().expect("the program starts")
    };
    let (text, json) = (run("text"), run("json"));
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(left.is_empty(), "it leaves nothing behind: {left:?}");
    assert_eq!((text.status.code(), json.status.code()), (Some(0), Some(0)));
    let words = String::from_utf8(text.stdout).unwrap();
    for part in [env!("CARGO_PKG_VERSION"), "mnist: absent", "limitpoint data fetch mnist", "all is well"] {
        assert!(words.contains(part), "{part} in {words}");
    }
    let found: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(found["version"], env!("CARGO_PKG_VERSION"));
    assert!(found["simd_lanes"].as_u64().is_some_and(|lanes| lanes >= 1));
    assert!(found["cores"].as_u64().is_some_and(|cores| cores >= 1));
    assert_eq!(found["current_folder_writable"], true);
    assert_eq!((found["terminal"].as_bool(), found["colour"].as_bool()), (Some(false), Some(false)));
    assert_eq!(found["data"].as_array().map(Vec::len), Some(3));
    assert_eq!(found["problems"].as_array().map(Vec::len), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn doctor_exits_with_1_where_nothing_can_be_written() {
    // /proc refuses new files to everyone, root included
    let mut command = Command::new(env!("CARGO_BIN_EXE_limitpoint"));
    let output = command.arg("doctor").current_dir("/proc").output().expect("the program starts");
    let words = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(
        words.contains("problem: /proc cannot be written") && words.contains("change to another folder"),
        "{words}"
    );
}

#[test]
fn completions_know_the_verbs_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = limitpoint(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = String::from_utf8(output.stdout).unwrap();
        for verb in ["list", "data", "doctor", "completions"] {
            assert!(script.contains(verb), "{shell} completes {verb}");
        }
    }
    assert_eq!(limitpoint(&["completions", "tcsh"]).status.code(), Some(2));
}
