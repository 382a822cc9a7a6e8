//! The pages of the repository: their links lead somewhere, and the first of them is short.

use std::path::{Path, PathBuf};

/// The pages of the repository, by their paths: the READMEs, CONTRIBUTING.md and docs/. None in a published crate, which has
/// the help only.
#[expect(clippy::print_stderr, reason = "what is skipped is said")]
pub(crate) fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join("docs").is_dir() {
        eprintln!("skipped: {} is no clone of the repository, so it has no pages to look at", root.display());
        return Vec::new();
    }
    let known = ["README.md", "CONTRIBUTING.md", "crates/limitpoint/README.md", "crates/limitpoint-cli/README.md"];
    let mut files = known.map(|name| root.join(name)).to_vec();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of pages") {
            let path = entry.expect("a page").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    let read = |path: PathBuf| (path.clone(), std::fs::read_to_string(&path).expect("a page is text"));
    files.into_iter().map(read).collect()
}

/// The name that a heading can be linked by: small letters, digits and dashes.
fn anchor(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
    heading.trim().to_lowercase().chars().filter(kept).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// A page without its blocks of code, in which brackets are not links.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

/// The targets of links and pictures.
fn links(page: &str) -> Vec<String> {
    let prose = prose(page);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(str::to_owned).collect()
}

#[test]
fn every_link_between_the_pages_leads_somewhere() {
    let pages = pages();
    let headings = |path: &Path| -> Vec<String> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        prose(&text)
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(|line| anchor(line.trim_start_matches('#')))
            .collect()
    };
    let mut count = 0;
    for (path, page) in &pages {
        for link in links(page).iter().filter(|link| !link.contains("://")) {
            let (file, place) = link.split_once('#').map_or((link.as_str(), None), |(file, place)| (file, Some(place)));
            let target = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            assert!(target.exists(), "{}: the link {link} leads nowhere", path.display());
            if let Some(place) = place {
                let known = headings(&target);
                assert!(known.iter().any(|known| known == place), "{}: {link} is none of {known:?}", path.display());
            }
            count += 1;
        }
    }
    assert!(pages.is_empty() || count > 20, "only {count} links were found");
}

#[test]
fn the_readme_is_short() {
    if let Some((_, readme)) = pages().first() {
        assert!(readme.lines().count() <= 250, "the README has {} lines; move some to docs/", readme.lines().count());
    }
}

#[test]
fn headings_and_links_are_found() {
    assert_eq!(anchor(" The judge, in `short`"), "the-judge-in-short");
    assert_eq!(links("[a](b.md#c) ```[d](e)``` ![f](g.png)"), ["b.md#c", "g.png"]);
}
