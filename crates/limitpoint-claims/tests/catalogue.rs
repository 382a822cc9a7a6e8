//! `docs/claims.md` is the catalogue: every claim of the registry has an entry with its status on record, and every id
//! that code, comments or documents cite leads to one.
//!
//! With `LIMITPOINT_WRITE_CATALOGUE=1` the lines "On record" are written anew; the statements are nobody's but the file's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use limitpoint_claims::{claims, open_claims};

const CATALOGUE: &str = "docs/claims.md";

/// Ids that tests use because they do not exist.
const MADE_UP: [&str; 4] = ["A.y", "B.thm", "B.thm99", "B.x"];

/// Files that are not ours.
const FOREIGN: &str = "plotly-cartesian.min.js";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The catalogue; a crate that is built outside its repository has none.
fn catalogue() -> Option<String> {
    std::fs::read_to_string(root().join(CATALOGUE)).ok()
}

/// The line "On record" of every heading, as the registry has it.
fn on_record() -> BTreeMap<String, String> {
    let tried = claims().into_iter().map(|claim| {
        let heading = [&[claim.id], claim.covers].concat().join(", ");
        let (id, kind) = (claim.id, claim.kind.word());
        (heading, format!("On record: **{}** (a {kind}). `limitpoint reproduce {id}`", claim.on_record))
    });
    let open = open_claims().into_iter().map(|entry| (entry.ids.join(", "), "On record: **open**.".to_owned()));
    tried.chain(open).collect()
}

/// The catalogue with the lines of the registry in place of its own, and the headings that the registry does not know.
fn brought_up_to_date(text: &str) -> (String, Vec<String>) {
    let known = on_record();
    let (mut heading, mut lines, mut strangers) = ("", Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        if let Some(ids) = line.strip_prefix("### ") {
            heading = ids;
            if !known.contains_key(ids) {
                strangers.push(format!("{CATALOGUE}:{}: the registry has no '{ids}'", number + 1));
            }
        }
        let own = known.get(heading).filter(|_| line.starts_with("On record:"));
        lines.push(own.map_or(line, String::as_str));
    }
    (lines.join("\n") + "\n", strangers)
}

#[test]
fn every_claim_has_an_entry_with_its_status_on_record() {
    let Some(text) = catalogue() else { return };
    let (current, mut complaints) = brought_up_to_date(&text);
    if std::env::var_os("LIMITPOINT_WRITE_CATALOGUE").is_some() {
        std::fs::write(root().join(CATALOGUE), &current).unwrap();
    } else {
        for (number, (written, wanted)) in text.lines().zip(current.lines()).enumerate() {
            if written != wanted {
                complaints.push(format!("{CATALOGUE}:{}: should be: {wanted}", number + 1));
            }
        }
    }
    let entries: BTreeMap<&str, &str> =
        current.split("\n### ").skip(1).filter_map(|part| part.split_once('\n')).collect();
    for (heading, line) in on_record() {
        let Some(entry) = entries.get(heading.as_str()) else {
            complaints.push(format!("{CATALOGUE}: no entry is headed '{heading}'"));
            continue;
        };
        let statement = entry.split("*Source:*").next().unwrap_or_default().trim();
        let complete =
            statement.len() > 20 && ["*Source:*", "*Checked:*"].iter().all(|part| entry.matches(part).count() == 1);
        if !complete || entry.matches("On record:").count() != 1 || !entry.contains(&line) {
            complaints.push(format!("{CATALOGUE}: '{heading}' needs a statement, a source, a check and its status"));
        }
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_id_that_is_cited_is_in_the_catalogue() {
    let Some(text) = catalogue() else { return };
    let known = entries(&text);
    let mut files = Vec::new();
    for place in ["crates", "docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "justfile"] {
        collect(&root().join(place), &mut files);
    }
    assert!(files.len() > 300, "only {} files were found", files.len());
    let (mut cited, mut complaints) = (BTreeSet::new(), Vec::new());
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        for (number, line) in text.lines().enumerate() {
            for id in ids(line) {
                if !known.contains(&id) && !MADE_UP.contains(&id.as_str()) {
                    let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
                    complaints.push(format!("{name}:{}: {id} is not in {CATALOGUE}", number + 1));
                }
                cited.insert(id);
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    assert!(cited.len() > 300, "only {} ids are cited", cited.len());
}

#[test]
fn ids_are_seen_wherever_they_stand() {
    assert_eq!(
        ids("(D.F, C.lem4.10.) `B.thm5.printed` and A.eq74; Ct.FY, XP.8: X.17"),
        ["D.F", "C.lem4.10", "B.thm5.printed", "A.eq74", "Ct.FY", "XP.8", "X.17"]
    );
    assert_eq!(
        ids("B.eq39-44 and B.thm7.contrast, B.fig1a–c; D.tabl1's"),
        ["B.eq39-44", "B.thm7.contrast", "B.fig1a", "D.tabl1"]
    );
    assert!(ids("R.B.x, 3A.b, C. Kaynak, X.npy, M.Sc, self.A.x, N.B.").is_empty());
    assert_eq!(entries("### A.eq1, A.y\n| X.1 | x |\n| Q |\n"), ["A.eq1", "A.y", "X.1"].map(str::to_owned).into());
}

/// The ids that the catalogue explains: those of headings and of first cells.
fn entries(text: &str) -> BTreeSet<String> {
    let cell = |line: &str| line.strip_prefix("| ")?.split(" |").next().map(str::to_owned);
    let heads = text.lines().filter_map(|line| line.strip_prefix("### ").map(str::to_owned).or_else(|| cell(line)));
    heads
        .flat_map(|head| head.split(", ").map(str::to_owned).collect::<Vec<_>>())
        .filter(|head| head.contains('.'))
        .collect()
}

/// The ids in a line: the letter of a paper, or a word of ours, a point, and a name.
fn ids(line: &str) -> Vec<String> {
    let signs: Vec<char> = line.chars().collect();
    let mut found = Vec::new();
    for point in (1..signs.len()).filter(|at| signs[*at] == '.') {
        let start = (0..point).rev().take_while(|at| signs[*at].is_ascii_alphanumeric()).last().unwrap_or(point);
        let first: String = signs[start..point].iter().collect();
        let (papers, numbers) = (["A", "B", "C", "D", "Mg", "Ct"], ["X", "XP", "N", "M", "Lo"]);
        let alone = start == 0 || !matches!(signs[start - 1], '.' | '_' | ':' | '/' | '$');
        if !alone || !papers.iter().chain(&numbers).any(|known| *known == first) {
            continue;
        }
        let mut end = point + 1;
        while let Some(sign) = signs.get(end) {
            let more = signs.get(end + 1).is_some_and(char::is_ascii_digit);
            let form = [".printed", ".contrast"]
                .iter()
                .any(|form| signs[end..].iter().take(form.len()).copied().eq(form.chars()));
            let joint = (*sign == '.' && (more || form)) || (*sign == '-' && more && first == "B");
            if !sign.is_ascii_alphanumeric() && !joint {
                break;
            }
            end += 1;
        }
        let name: String = signs[point + 1..end].iter().collect();
        let letter = name.starts_with(|sign: char| sign.is_ascii_alphabetic());
        let number = !name.is_empty() && name.chars().all(|sign| sign.is_ascii_digit());
        // `B.map(…)` and `"C.fig{}"` are code
        let code =
            matches!(signs.get(end), Some('(' | '!' | '_' | '{')) && !name.contains(|sign: char| sign.is_ascii_digit());
        let ours = if papers.contains(&first.as_str()) { letter && !code } else { number };
        if ours {
            found.push(format!("{first}.{name}"));
        }
    }
    found
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) {
    let Ok(folder) = std::fs::read_dir(place) else {
        files.push(place.to_owned());
        return;
    };
    for entry in folder.flatten() {
        let name = entry.file_name();
        let path = entry.path();
        let words = ["rs", "md", "toml", "html", "css", "js", "mjs", "txt", "json", "py"];
        let readable = path.extension().is_some_and(|extension| words.iter().any(|word| extension == *word));
        if name == "target" || name == "node_modules" || name == FOREIGN {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else if readable {
            files.push(path);
        }
    }
}
