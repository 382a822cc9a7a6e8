//! Numbers no machine can hold, numbers that are none, and names that would talk to the terminal: all refused or made
//! harmless, with exit code 2 and words, never with a panic, an abort or a hang.

mod home;
mod program;

use home::Home;
use program::{limitpoint, stderr, stdout};

/// Refused with exit code 2, all of `words` said, nothing on stdout.
fn refused(arguments: &[&str], words: &[&str]) {
    let output = limitpoint(arguments);
    let talk = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {talk}{}", stdout(&output));
    assert!(output.stdout.is_empty() && !talk.contains("panicked"), "{arguments:?}: {talk}{}", stdout(&output));
    words.iter().for_each(|word| assert!(talk.contains(word), "{arguments:?} should say {word}: {talk}"));
}

const HUGE: [&str; 3] = ["1000000000000", "9223372036854775807", "18446744073709551615"];

#[test]
fn sizes_beyond_memory_are_refused_with_what_they_need_and_what_there_is() {
    let home = Home::new("sizes");
    let out = home.path("out");
    let memory = ["needs", "available"];
    for huge in HUGE {
        for setting in [
            format!("model.network.widths=[{huge}]"),
            format!("model.network.widths=[8,{huge},{huge}]"),
            format!("observe.histogram_bins={huge}"),
            format!("data=gaussians(count={huge})"),
            format!("data=gaussians(dimension={huge})"),
            format!("data=gaussians(test-count={huge})"),
            format!("data=sparse-gaussians(count={huge})"),
            format!("data=sparse-gaussians(dimension={huge})"),
            format!("data=teacher-student(count={huge})"),
            format!("data=teacher-student(width={huge})"),
            format!("data=circle-teacher(count={huge})"),
            format!("data=circle-teacher(neurons={huge})"),
            format!("data=regression(dimension={huge})"),
            format!("data=matrices(rows={huge})"),
            format!("data=matrices(count={huge})"),
        ] {
            refused(&["run", "digits", &setting, "--out", &out, "--quiet"], &memory);
        }
        refused(&["solve", "margin", &format!("gaussians(count={huge})"), "--norm", "l2"], &memory);
        refused(&["advise", "mirror", "--inputs", huge], &memory);
        refused(&["advise", "mirror", "--inputs", "3", "--widths", huge], &memory);
        refused(&["advise", "mirror", "--inputs", "3", "--outputs", huge, "--widths", "5"], &memory);
    }
    refused(
        &["run", "digits", "model.network.widths=[1000000000]", "data=digits(classes=[3,8])", "--out", &out],
        &memory,
    );
    assert!(!std::path::Path::new(&out).exists(), "a refused experiment leaves no folder");
}

#[test]
fn counts_beyond_what_is_there_and_counts_of_nothing_are_refused() {
    let home = Home::new("counts");
    let out = home.path("out");
    for huge in HUGE {
        for setting in [
            format!("batching=mini(size={huge})"),
            format!("data=digits(count={huge})"),
            format!("data=gaussians(active={huge})"),
            format!("data=matrices(rank={huge})"),
            format!("data=regression(rank={huge})"),
            format!("model=diagonal(factors={huge})"),
            format!("model=matrix(rows={huge})"),
            format!("model.network.frozen=[{huge}]"),
            format!("seed=1..{huge}"),
            format!("model.width=1..{huge}*1.0000001"),
        ] {
            refused(&["run", "linear", "model=network(widths=[4])", &setting, "--out", &out, "--quiet"], &[]);
        }
    }
    for setting in [
        "model.network.widths=[0]",
        "data=gaussians(count=0)",
        "data=gaussians(dimension=0)",
        "batching=mini(size=0)",
        "observe.spacing=linear(every=0)",
        "observe.spacing=logarithmic(per_decade=0)",
        "observe.checkpoint_every=0",
        "stop={}",
        "seeds=[]",
    ] {
        refused(&["run", "digits", setting, "--out", &out, "--quiet"], &[]);
    }
    refused(&["run", "linear", "stop.log10_loss=nan", "--out", &out], &["log10_loss", "finite"]);
}

#[test]
fn threads_are_alike_for_all_verbs() {
    let home = Home::new("threads");
    let out = home.path("out");
    let run = ["run", "linear", "optimiser=gradient", "stop.steps=20", "--no-report", "--out", &out];
    for verb in [&run[..], &["resume", &out], &["robustness", &out], &["bench", "w3"]] {
        for none in ["0", "-1", "x", "99999999999999999999999999"] {
            let threads = format!("--threads={none}");
            refused(&[verb, &[threads.as_str()]].concat(), &["--threads"]);
        }
    }
    let output = limitpoint(&[&run[..], &["--threads", "1000000"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("--threads 1000000 is more than this machine's"), "{}", stderr(&output));
    let output = limitpoint(&["robustness", &out, "--attack", "deep-fool", "--count", "3", "--threads", "1000000"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("more than this machine's"), "{}", stderr(&output));
}

#[test]
fn options_take_no_number_that_is_none() {
    for bad in ["nan", "inf", "-inf"] {
        let option = |name: &str| format!("--{name}={bad}");
        refused(&["rates", "nowhere", &option("confidence")], &["--confidence"]);
        refused(&["rates", "nowhere", &option("late")], &["--late"]);
        refused(&["fingerprint", "gradient", &option("rate")], &["--rate"]);
        refused(&["fingerprint", "gradient", &option("log10-loss")], &["--log10-loss"]);
        refused(&["advise", "mirror", "--inputs", "2", &option("gap")], &["gap"]);
        refused(&["advise", "mirror", "--inputs", "2", &option("margin")], &["margin"]);
        refused(&["advise", "mirror", "--inputs", "2", &option("deviation")], &["deviation"]);
        refused(&["bench", "w3", &option("seconds")], &["--seconds"]);
        refused(&["polish", "nowhere", &option("target")], &["--target"]);
        refused(&["robustness", "nowhere", &format!("--box=0,{bad}")], &["--box"]);
    }
    for huge in HUGE {
        refused(&["fingerprint", "gradient", "--seeds", huge], &["1 to 100"]);
        refused(&["prove", "nowhere", "--leaves", huge], &["--leaves"]);
        refused(&["bench", "w3", "--rounds", huge], &["--rounds", "1000"]);
        for attack in
            ["carlini-wagner(steps=N)", "carlini-wagner(search_steps=N)", "projected(steps=N)", "deep-fool(steps=N)"]
        {
            refused(&["robustness", "nowhere", "--attack", &attack.replace('N', huge)], &["at most"]);
        }
    }
    refused(&["robustness", "nowhere", "--count", "0"], &["--count"]);
    refused(&["polish", "nowhere", "--rounds", "0"], &["--rounds"]);
}

#[test]
fn headers_that_announce_huge_shapes_are_refused() {
    let home = Home::new("headers");
    let npy = |shape: &str| {
        let mut text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
        while (10 + text.len() + 1) % 64 != 0 {
            text.push(' ');
        }
        text.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    };
    let tensors = |shape: &str| {
        let text = format!("{{\"X\":{{\"dtype\":\"F64\",\"shape\":{shape},\"data_offsets\":[0,8]}}}}");
        [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &[0; 8]].concat()
    };
    for (name, bytes) in [
        ("a.npy", npy("(1000000000000, 3)")),
        ("b.npy", npy("(18446744073709551615, 18446744073709551615)")),
        ("c.safetensors", tensors("[1000000000000,1000000000000]")),
        ("d.safetensors", tensors("[18446744073709551615,2]")),
        ("e-idx3-ubyte", [&[0, 0, 8, 3][..], &[255; 12]].concat()),
        ("f.svm", b"1 18446744073709551615:1\n-1 1:1\n".to_vec()),
    ] {
        let path = home.path(name);
        std::fs::write(&path, bytes).expect("a file");
        refused(&["solve", "margin", &path, "--norm", "l2"], &[name]);
    }
}

#[test]
fn a_certificate_of_a_huge_model_is_refused() {
    let home = Home::new("huge-certificate");
    let out = home.path("out");
    let output =
        limitpoint(&["run", "plane", "stop.log10_loss=-3", "model.width=8", "--no-report", "--quiet", "--out", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    limitpoint(&["certify", &out]);
    let path = format!("{out}/gradient-seed0/certificate.json");
    let text = std::fs::read_to_string(&path).expect("a certificate");
    let mut certificate: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for width in [1_000_000_000_000_u64, u64::MAX] {
        certificate["model"]["network"]["widths"] = serde_json::json!([width]);
        std::fs::write(&path, certificate.to_string()).expect("a changed certificate");
        refused(&["check", &path], &["needs", "available"]);
    }
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let home = Home::new("controls");
    let nasty = "x\u{1b}]0;owned\u{7}\u{1b}[31m\u{9b}2J\u{202e}";
    let path = home.path(&format!("{nasty}.csv"));
    std::fs::write(&path, format!("{nasty},y\n1,1\n-1,-1\n")).expect("a file");
    let recipe = home.path("r.toml");
    let text = format!("base = 'linear'\nloss = '{}'\n", "no\\u001b[31mloss");
    std::fs::write(&recipe, text.replace('\'', "\"")).expect("a recipe");
    let out = home.path(&format!("out{nasty}"));
    for arguments in [
        &["solve", "margin", &path, "--norm", "l2"][..],
        &["solve", "margin", &path, "--norm", "l2", "--format", "json"],
        &["solve", "margin", &path, "--norm", nasty],
        &["run", nasty],
        &["run", &recipe],
        &["run", "linear", &format!("title={nasty}"), "stop.steps=3", "--out", &out, "--threads", "1"],
        &["list", nasty],
        &["report", &out],
        &["compare", &out, &out],
        &["check", &path],
        &[nasty],
        &["bench", "--seconds", nasty],
    ] {
        let output = limitpoint(arguments);
        for (stream, text) in [("stdout", stdout(&output)), ("stderr", stderr(&output))] {
            let harmful = |c: &char| (c.is_control() && !"\n\t".contains(*c)) || *c == '\u{202e}';
            assert_eq!(text.chars().find(harmful), None, "{arguments:?} on {stream}: {text:?}");
        }
        assert!(output.status.code().is_some_and(|code| code <= 3), "{arguments:?}: {}", stderr(&output));
    }
}
