//! Which file may know which: papers know the laboratory and not each other, the laboratory knows no paper, and only what
//! draws knows the library's report.
//!
//! That the library knows no claims is kept by the compiler: it is a crate of its own.

use std::path::{Path, PathBuf};

const PAPERS: [&str; 4] = ["paper_a", "paper_b", "paper_c", "paper_d"];

/// Files that may use `limitpoint::report` beyond the figures as finished numbers.
const DRAWS: [&str; 5] = ["claim_page", "gallery", "mathml", "typeset", "paper_d/robustness"];

#[test]
fn papers_know_the_laboratory_and_not_each_other() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&source, &mut files);
    assert!(files.len() > 60, "only {} files were found below {}", files.len(), source.display());
    let mut complaints = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(&source).unwrap().with_extension("").to_string_lossy().replace('\\', "/");
        complaints.extend(violations(&name, &text).into_iter().map(|word| format!("{name} may not know {word}")));
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn the_checker_sees_what_is_forbidden_and_nothing_else() {
    assert_eq!(violations("paper_a/x", "use crate::paper_b::largest_margin;"), ["paper_b"]);
    assert_eq!(violations("lab", "use crate::paper_c::x;"), ["paper_c"]);
    assert_eq!(violations("lab", "use limitpoint::report::html;"), ["limitpoint::report"]);
    assert!(
        violations("paper_a/x", "use crate::paper_a::y; // crate::paper_b\nuse limitpoint::report::Sketch;").is_empty()
    );
    assert!(violations("registry", "use crate::{paper_a, paper_b};").is_empty());
}

/// What a file of this name mentions and may not.
fn violations(name: &str, text: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let mentions = |word: &str| code.iter().any(|line| line.contains(word));
    let own = name.split('/').next().unwrap_or_default();
    let gathers = ["registry", "lib"].contains(&name);
    let foreign = PAPERS.iter().filter(|paper| **paper != own && !gathers && mentions(&format!("{paper}::")));
    let mut found: Vec<String> = foreign.map(|paper| (*paper).to_owned()).collect();
    let report = code.iter().any(|line| line.contains("limitpoint::report") && !line.contains("report::Sketch;"));
    if report && !DRAWS.contains(&name) {
        found.push("limitpoint::report".to_owned());
    }
    found
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
