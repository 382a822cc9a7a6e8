//! Traits stay small: who implements one has few methods to write, and who reads one sees one meaning.

use std::path::{Path, PathBuf};

/// The most methods a trait may have, provided ones too.
const MOST: usize = 10;

/// Names of traits with their numbers of methods. Sources are formatted, so that a trait ends at a brace in its own column
/// and its methods begin four columns in.
fn traits(source: &str) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut inside = false;
    for line in source.lines() {
        let words: Vec<&str> = line.split([' ', '<', ':', '{']).collect();
        let head =
            words.iter().position(|word| *word == "trait").filter(|_| line.starts_with(|c: char| c.is_alphabetic()));
        if let Some(name) = head.and_then(|place| words.get(place + 1)) {
            found.push(((*name).to_owned(), 0));
            inside = !line.ends_with('}');
        } else if line == "}" {
            inside = false;
        } else if let Some((_, count)) = found.last_mut().filter(|_| inside) {
            *count += usize::from(line.starts_with("    fn ") || line.starts_with("    unsafe fn "));
        }
    }
    found
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn methods_of_traits_are_counted() {
    let source = "pub trait A<T>: B {\n    fn one();\n    /// two\n    unsafe fn two() {\n        fn inner() {}\n    }\n}\n\
                  impl A for C {\n    fn one() {}\n}\npub(crate) trait Empty {}\nfn three() {\n}\n";
    assert_eq!(traits(source), [("A".to_owned(), 2), ("Empty".to_owned(), 0)]);
}

#[test]
fn no_trait_has_more_than_ten_methods_and_an_evaluator_has_six() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let all: Vec<(String, usize)> =
        files.iter().flat_map(|path| traits(&std::fs::read_to_string(path).unwrap())).collect();
    assert!(all.len() > 30, "only {} traits were found", all.len());
    let large: Vec<_> = all.iter().filter(|(_, count)| *count > MOST).collect();
    assert!(large.is_empty(), "{large:?}");
    let evaluator = all.iter().find(|(name, _)| name == "Evaluator");
    assert!(evaluator.is_some_and(|(_, count)| (1..=6).contains(count)), "{evaluator:?}");
}
