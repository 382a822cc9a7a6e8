//! A flipped bit, a cut and a deletion in every file that a run leaves: nothing is accepted without a word.

use std::path::{Path, PathBuf};

use crate::home::Home;
use crate::tools::{LINEAR, RECIPE, assert_same, copy, expect, files, limitpoint, program, recipe, run, words};

/// Ways to lose a file's contents.
fn damages(path: &Path) -> Vec<(&'static str, Option<Vec<u8>>)> {
    let bytes = std::fs::read(path).unwrap();
    let flip = |place: usize, bit: u8| {
        let mut broken = bytes.clone();
        broken[place] ^= 1 << bit;
        Some(broken)
    };
    let mut out = vec![("deleted", None)];
    if !bytes.is_empty() {
        let last = bytes.len() - 1;
        out.extend([
            ("first bit flipped", flip(0, 0)),
            ("a bit in the middle flipped", flip(last / 2, 3)),
            ("a bit in the last third flipped", flip(last - last / 3, 5)),
            ("last bit flipped", flip(last, 1)),
            ("cut in half", Some(bytes[..bytes.len() / 2].to_vec())),
            ("last byte cut off", Some(bytes[..last].to_vec())),
            ("emptied", Some(Vec::new())),
            ("a byte longer", Some([&bytes[..], b"\n"].concat())),
        ]);
    }
    out
}

/// Damages one file after the other, and puts each back.
fn each_damage(root: &str, mut act: impl FnMut(&Path, &str)) {
    for path in files(root) {
        let whole = std::fs::read(&path).unwrap();
        for (what, bytes) in damages(&path) {
            match bytes {
                Some(bytes) => std::fs::write(&path, bytes).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            act(&path, what);
            std::fs::write(&path, &whole).unwrap();
        }
    }
}

#[test]
fn verify_names_every_damaged_file_of_an_experiment() {
    let home = Home::new("damage");
    let recipe = recipe(&home.path(""), "mine", LINEAR);
    let out = home.path("out");
    expect(0, &["run", &recipe, "--quiet", "--svg", "--out", &out]);
    expect(0, &["verify", &out]);
    let count = files(&out).len();
    assert!(count >= 15, "{:?}", files(&out));
    let mut tried = 0;
    each_damage(&out, |path, what| {
        tried += 1;
        let output = limitpoint(&["verify", &out]);
        let text = words(&output);
        let name = path.file_name().unwrap().to_str().unwrap();
        // a page that is gone can be written again from what is there
        let code = if name == "report.html" && what == "deleted" { 0 } else { 3 };
        assert_eq!(output.status.code(), Some(code), "{} {what}: {text}", path.display());
        assert!(text.contains(name) && !text.contains("panicked"), "{} {what}: {text}", path.display());
    });
    assert!(tried > 8 * count, "{tried} damages in {count} files");
    expect(0, &["verify", &out]);
}

#[test]
fn verbs_that_read_a_run_refuse_it_when_any_of_its_files_is_damaged() {
    let home = Home::new("readers");
    let recipe = recipe(&home.path(""), "mine", LINEAR);
    let (out, twin) = (home.path("out"), home.path("twin"));
    run(&recipe, &out, &[]);
    copy(&out, &twin);
    assert!(expect(0, &["compare", &twin, &out]).contains("agree in every bit"));
    let inner = format!("{out}/gradient-seed1");
    let whole: Vec<(PathBuf, Vec<u8>)> =
        files(&out).into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    for (path, bytes) in &whole {
        // the lines of the report are made again
        if path.ends_with("judge.json") {
            continue;
        }
        for flipped in [true, false] {
            if flipped {
                let mut broken = bytes.clone();
                let middle = broken.len() / 2;
                broken[middle] ^= 4;
                std::fs::write(path, broken).unwrap();
            } else if path.ends_with("manifest.json") {
                continue; // what is known without it is tried below
            } else {
                std::fs::remove_file(path).unwrap();
            }
            let of_run = path.starts_with(&inner);
            let mut verbs: Vec<Vec<&str>> = vec![
                vec!["compare", &twin, &out],
                vec!["report", &out],
                vec!["rates", &out],
                vec!["resume", &out, "--quiet", "--no-report"],
                vec!["resume", &out, "stop.steps=80", "--quiet", "--no-report"],
            ];
            if of_run {
                verbs.extend([
                    vec!["certify", &inner],
                    vec!["polish", &inner],
                    vec!["prove", &inner],
                    vec!["robustness", &inner],
                ]);
            }
            for verb in verbs {
                let output = limitpoint(&verb);
                let text = words(&output);
                assert_eq!(output.status.code(), Some(3), "{} {flipped} {verb:?}: {text}", path.display());
                assert!(text.contains(path.file_name().unwrap().to_str().unwrap()), "{verb:?}: {text}");
            }
            std::fs::write(path, bytes).unwrap();
        }
    }
    // nothing was changed by being refused
    std::fs::remove_file(format!("{out}/report.html")).ok();
    assert_same(&twin, &out);
}

#[test]
fn what_is_damaged_can_be_made_again_from_the_checkpoints() {
    let home = Home::new("heal");
    let recipe = recipe(&home.path(""), "mine", RECIPE);
    let (out, whole) = (home.path("out"), home.path("whole"));
    run(&recipe, &out, &[]);
    copy(&out, &whole);
    let inner = format!("{out}/muon-seed1");
    for name in ["metrics.csv", "metrics.parquet", "histograms.jsonl", "portrait.json", "checkpoints/final.safetensors"]
    {
        let path = format!("{inner}/{name}");
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last / 3] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let text = expect(3, &["resume", &out]);
        assert!(text.contains(name) && text.contains("remove") && text.contains("manifest.json"), "{text}");
        std::fs::remove_file(format!("{inner}/manifest.json")).unwrap();
        assert!(expect(3, &["verify", &out]).contains("manifest.json is missing"));
        assert!(expect(3, &["compare", &out]).contains("manifest.json is missing"));
        expect(0, &["resume", &out, "--quiet", "--no-report"]);
        assert_same(&whole, &out);
    }
    // every line of the measurements is as likely to be hit
    let path = format!("{inner}/metrics.csv");
    for share in [0.1, 0.9, 0.999] {
        let mut bytes = std::fs::read(&path).unwrap();
        let place = (share * bytes.len() as f64) as usize;
        bytes.truncate(place);
        std::fs::write(&path, bytes).unwrap();
        std::fs::remove_file(format!("{inner}/manifest.json")).unwrap();
        expect(0, &["resume", &out, "--quiet", "--no-report"]);
        assert_same(&whole, &out);
    }
}

#[test]
fn damage_in_an_unfinished_run_is_refused_or_made_good() {
    let home = Home::new("unfinished");
    let recipe = recipe(&home.path(""), "mine", LINEAR);
    let (whole, left, out) = (home.path("whole"), home.path("left"), home.path("out"));
    run(&recipe, &whole, &[]);
    // three files of the beginning, the run's manifest, two checkpoints; the seventh file comes when the run has ended
    let mut command = program();
    command.args(["run", &recipe, "--quiet", "--no-report", "--out", &left]);
    let output = command.env("LIMITPOINT_ABORT_AT_RENAME", "7").output().unwrap();
    assert!(!output.status.success());
    let names: Vec<PathBuf> =
        files(&left).into_iter().map(|path| path.strip_prefix(&left).unwrap().to_path_buf()).collect();
    for part in ["step-000000000000040.safetensors", "metrics.csv.partial", "claim.json"] {
        assert!(names.iter().any(|name| name.ends_with(part)), "{part} in {names:?}");
    }
    let (mut refused, mut good) = (0, 0);
    for name in &names {
        for (what, bytes) in damages(&Path::new(&left).join(name)) {
            let _ = std::fs::remove_dir_all(&out);
            copy(&left, &out);
            let path = Path::new(&out).join(name);
            match bytes {
                Some(bytes) => std::fs::write(&path, bytes).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            let output = limitpoint(&["resume", &out, "--quiet", "--no-report"]);
            let text = words(&output);
            assert!(!text.contains("panicked"), "{text}");
            if output.status.success() {
                good += 1;
                if name.to_string_lossy().contains("step-") {
                    // an older checkpoint is not made again, and the manifest does not list it
                    let same = |file: &str| {
                        let read = |folder: &str| std::fs::read(format!("{folder}/gradient-seed1/{file}")).unwrap();
                        read(&whole) == read(&out)
                    };
                    assert!(["metrics.csv", "metrics.parquet", "checkpoints/final.safetensors"].into_iter().all(same));
                    expect(0, &["verify", &out]);
                } else {
                    assert_same(&whole, &out);
                }
            } else {
                refused += 1;
                let file = name.file_name().unwrap().to_str().unwrap();
                assert_eq!(output.status.code(), Some(3), "{} {what}: {text}", name.display());
                assert!(text.contains(file), "{} {what}: {text}", name.display());
            }
        }
    }
    assert!(refused > 20 && good > 20, "{refused} refused, {good} made good");
}

#[test]
fn damage_in_certificates_and_polished_weights_is_found() {
    let home = Home::new("certified");
    let recipe = recipe(&home.path(""), "mine", &LINEAR.replace("steps = 60", "steps = 3000"));
    let out = home.path("out");
    run(&recipe, &out, &[]);
    let inner = format!("{out}/gradient-seed1");
    expect(0, &["certify", &inner, "--tolerance", "0.5"]);
    limitpoint(&["polish", &inner]);
    expect(0, &["verify", &inner]);
    let certificate = format!("{inner}/certificate.json");
    let text = std::fs::read_to_string(&certificate).unwrap();
    std::fs::write(&certificate, text.replace("certified", "refuted")).unwrap();
    expect(3, &["verify", &inner]);
    std::fs::write(&certificate, &text[..text.len() / 2]).unwrap();
    expect(3, &["verify", &inner]);
    expect(3, &["report", &out]);
    std::fs::write(&certificate, &text).unwrap();
    let polished = format!("{inner}/polished-l2.safetensors");
    let mut bytes = std::fs::read(&polished).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&polished, bytes).unwrap();
    assert!(expect(3, &["certify", &inner, "--weights", &polished]).contains("polished-l2.safetensors"));
    assert!(expect(3, &["verify", &inner]).contains("polished-l2.safetensors"));
}
