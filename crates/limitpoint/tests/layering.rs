//! Which module may know which: reads the `crate::` paths in `src/` and compares them with a table.
//!
//! The crate is one library, so the compiler does not keep the direction of imports; this test does. It ignores
//! comments, strings, and everything under `#[cfg(test)]`. A new top-level module must be entered in [`TABLE`] first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Modules everyone may use.
const OPEN: [&str; 4] = ["catalogue", "error", "memory", "numeric"];

/// What runs experiments and asks the judge may know.
const BELOW_FINGERPRINT: &[&str] = &[
    "linalg",
    "params",
    "data",
    "norms",
    "intervals",
    "potentials",
    "losses",
    "models",
    "engine",
    "objective",
    "schedules",
    "optimisers",
    "flows",
    "diagnostics",
    "observers",
    "driver",
    "reference",
    "robustness",
    "certificates",
    "proofs",
    "advice",
    "training",
    "experiments",
];

/// A module and the modules it may know, besides [`OPEN`] and itself.
const TABLE: &[(&str, &[&str])] = &[
    ("catalogue", &[]),
    ("memory", &[]),
    ("numeric", &[]),
    ("linalg", &[]),
    ("params", &["linalg"]),
    ("data", &["linalg"]),
    ("norms", &["linalg", "params"]),
    ("intervals", &["linalg", "params", "norms"]),
    ("potentials", &["linalg", "params", "norms"]),
    ("losses", &[]),
    // `data` for the targets, which decide how many scores a model has and which differences of them are margins
    ("models", &["linalg", "params", "data"]),
    ("engine", &["linalg", "params", "data", "models"]),
    // re-exports `Kink` of the engine, so that optimisers can speak of kinks without knowing it
    ("objective", &["params", "data", "losses", "models", "engine"]),
    // losses, for how curved an exponential loss is at a given value
    ("schedules", &["losses"]),
    ("optimisers", &["linalg", "params", "norms", "potentials", "objective", "schedules"]),
    ("flows", &["linalg", "params", "norms", "potentials", "objective", "schedules"]),
    ("diagnostics", &["linalg", "params", "data", "norms", "potentials", "losses", "models"]),
    ("observers", &["params", "diagnostics"]),
    ("reference", &["linalg", "params", "data", "norms", "intervals", "potentials"]),
    // the judge of attacks: its Adam is its own, optimisers are the accused
    ("robustness", &["linalg", "params", "data", "models", "engine"]),
    // the engine, because a tangent is made of gradients and kinks; never how a point was reached
    (
        "certificates",
        &[
            "linalg",
            "params",
            "data",
            "norms",
            "intervals",
            "potentials",
            "losses",
            "models",
            "engine",
            "diagnostics",
            "observers",
            "reference",
        ],
    ),
    // the judge's theorems about networks: descriptions and data, never who trained them; of certificates only how files name things
    ("proofs", &["linalg", "params", "data", "norms", "intervals", "models", "reference", "certificates"]),
    // a network is advised by its shape alone: no data, no runs
    ("advice", &["linalg", "params", "norms", "potentials", "models"]),
    // `schedules` because the loop asks them for steps and tells them the outcome; `diagnostics` only for `Point`,
    // which the loop fills in for observers
    ("driver", &["params", "objective", "optimisers", "flows", "observers", "schedules", "diagnostics"]),
    // puts together what is run, runs it and asks the judge; files and folders are not known here
    (
        "training",
        &[
            "linalg",
            "params",
            "data",
            "norms",
            "potentials",
            "losses",
            "models",
            "engine",
            "objective",
            "schedules",
            "optimisers",
            "flows",
            "diagnostics",
            "observers",
            "driver",
            "certificates",
        ],
    ),
    (
        "experiments",
        &[
            "linalg",
            "params",
            "data",
            "norms",
            "intervals",
            "potentials",
            "losses",
            "models",
            "engine",
            "objective",
            "schedules",
            "optimisers",
            "flows",
            "diagnostics",
            "observers",
            "driver",
            "reference",
            "robustness",
            "certificates",
            "proofs",
            "training",
        ],
    ),
    // runs experiments and asks the judge, so it stands above both
    ("fingerprint", BELOW_FINGERPRINT),
    ("report", &["potentials", "robustness", "experiments", "fingerprint"]),
    // gathers the error type of every module; no module's behaviour depends on it
    (
        "error",
        &[
            "linalg",
            "params",
            "data",
            "norms",
            "potentials",
            "losses",
            "models",
            "objective",
            "schedules",
            "optimisers",
            "flows",
            "diagnostics",
            "driver",
            "reference",
            "robustness",
            "certificates",
            "proofs",
            "training",
            "experiments",
        ],
    ),
    // names for programs, and nothing else
    ("prelude", BELOW_FINGERPRINT),
];

/// Names re-exported at the crate root by `lib.rs`: they belong to `error`.
const ROOT_ITEMS: [&str; 2] = ["Error", "Result"];

#[test]
fn modules_know_only_what_the_table_allows() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&source, &mut files);
    let texts: Vec<(PathBuf, Source)> =
        files.into_iter().map(|file| (file.clone(), Source::read(&std::fs::read_to_string(&file).unwrap()))).collect();
    let tests: BTreeSet<PathBuf> = texts.iter().flat_map(|(file, text)| test_files(file, text)).collect();
    let mut complaints = Vec::new();
    let mut checked = 0;
    for (file, text) in texts.iter().filter(|(file, _)| !tests.iter().any(|test| file.starts_with(test))) {
        let relative = file.strip_prefix(&source).unwrap();
        let path = module_path(relative);
        let Some(module) = path.first() else { continue };
        checked += 1;
        complaints.extend(violations(module, path.len(), text).iter().map(|c| format!("{}: {c}", relative.display())));
    }
    assert!(checked > 100, "only {checked} files were found below {}", source.display());
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_top_level_module_is_in_the_table_and_in_the_crate() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let declared = Source::read(&std::fs::read_to_string(library).unwrap()).modules();
    let listed: BTreeSet<String> = TABLE.iter().map(|(module, _)| (*module).to_owned()).collect();
    assert_eq!(listed.len(), TABLE.len(), "a module is listed twice");
    assert_eq!(declared, listed, "left: modules of lib.rs; right: modules in the table");
}

#[test]
fn the_table_has_no_cycles() {
    let known: Vec<&str> = TABLE.iter().map(|(module, _)| *module).collect();
    for (place, (module, allowed)) in TABLE.iter().enumerate() {
        for name in *allowed {
            assert!(known[..place].contains(name), "{module} may know {name}, which is not above it in the table");
        }
    }
}

#[test]
fn the_checker_sees_what_is_forbidden_and_nothing_else() {
    let complain = |module: &str, text: &str| violations(module, 2, &Source::read(text));
    assert_eq!(complain("norms", "use crate::data::Dataset;").len(), 1);
    assert_eq!(complain("norms", "use crate::{linalg::dot, losses::{Loss, LossSpec}, params, models};").len(), 2);
    assert_eq!(complain("norms", "fn f() { crate :: optimisers :: step_factor(0.0, 0.0); }").len(), 1);
    assert_eq!(complain("norms", "macro_rules! m { () => { $crate::driver::run } }").len(), 1);
    assert_eq!(complain("norms", "use super::super::data::Dataset;").len(), 1);
    assert_eq!(complain("norms", "#[cfg(test)]\nmod tests { use crate::data::X; } use crate::models::Model;").len(), 1);
    assert_eq!(complain("norms", "pub use crate::*;").len(), 1);
    assert_eq!(complain("unheard_of", "use crate::linalg::dot;").len(), 1);
    for harmless in [
        "use crate::{linalg::{dot, Matrix}, numeric::LogScaled, Error}; pub(crate) fn f() -> crate::Result<()> {}",
        "use crate::norms::{spec::data, Norm}; use super::losses;",
        "// use crate::data::X;\n/// [`crate::data`]\n/* crate::data /* crate::models */ crate::losses */",
        "const A: &str = \"use crate::data; \\\" crate::data\"; const B: &str = r#\"\"crate::data\"#; const C: char = '\"';",
        "#[cfg(test)]\n#[expect(unused, reason = \"x;\")]\nmod tests { use crate::data::X; fn f() { { crate::models::m() } } }",
        "#[cfg(test)]\nuse crate::data::X;\nfn g<'a>(x: &'a str) {}",
    ] {
        assert_eq!(complain("norms", harmless), Vec::<String>::new(), "{harmless}");
    }
    let text =
        Source::read("#[cfg(test)]\nmod tests;\n#[cfg(test)] #[path = \"b_tests.rs\"] mod b; mod c; pub mod d {}");
    let folder = Path::new("src/x");
    assert_eq!(test_files(&folder.join("mod.rs"), &text)[..2], [folder.join("tests.rs"), folder.join("tests")]);
    assert!(test_files(&folder.join("mod.rs"), &text).contains(&folder.join("b_tests.rs")));
    assert_eq!(text.modules(), BTreeSet::from(["c", "d"].map(String::from)));
}

/// What a file of `module`, `depth` modules below the crate root, mentions against the table.
fn violations(module: &str, depth: usize, source: &Source) -> Vec<String> {
    let Some((_, allowed)) = TABLE.iter().find(|(name, _)| *name == module) else {
        return vec![format!("module {module} is not in the table of tests/layering.rs")];
    };
    let fine =
        |name: &str| name == module || OPEN.contains(&name) || allowed.contains(&name) || ROOT_ITEMS.contains(&name);
    let mut complaints: Vec<String> = source
        .known()
        .into_iter()
        .filter(|name| !fine(name))
        .map(|name| format!("{module} may not know {name}; it may know {}", allowed.join(", ")))
        .collect();
    if source.longest_super() >= depth {
        complaints.push("super:: leaves the top-level module; write a crate:: path".to_owned());
    }
    complaints
}

/// The module path of a file relative to `src/`; empty for the crate root.
fn module_path(relative: &Path) -> Vec<String> {
    let mut parts: Vec<String> = relative.with_extension("").iter().map(|p| p.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod" || (last == "lib" && parts.len() == 1)) {
        parts.pop();
    }
    parts
}

/// Files and folders of the modules a file declares under `#[cfg(test)]`.
fn test_files(file: &Path, source: &Source) -> Vec<PathBuf> {
    let folder = file.parent().unwrap();
    let below = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib") | None => folder.to_path_buf(),
        Some(stem) => folder.join(stem),
    };
    let files = |module: &TestModule| match &module.path {
        Some(path) => vec![folder.join(path)],
        None => vec![below.join(format!("{}.rs", module.name)), below.join(&module.name)],
    };
    source.test_modules.iter().flat_map(files).collect()
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

/// A module declared under `#[cfg(test)]` that lives in its own file.
struct TestModule {
    name: String,
    path: Option<String>,
}

/// Words, `::` and single symbols of a file, without comments and without items under `#[cfg(test)]`.
struct Source {
    tokens: Vec<String>,
    test_modules: Vec<TestModule>,
}

impl Source {
    fn read(text: &str) -> Self {
        let mut source = Self { tokens: Vec::new(), test_modules: Vec::new() };
        let all = tokens(text);
        let test_attribute = ["#", "[", "cfg", "(", "test", ")", "]"];
        let mut at = 0;
        while at < all.len() {
            if all[at..].iter().map(String::as_str).take(7).eq(test_attribute) {
                let end = item_end(&all, at + 7);
                source.note_test_module(&all[at + 7..end]);
                at = end;
            } else {
                source.tokens.push(all[at].clone());
                at += 1;
            }
        }
        source
    }

    fn note_test_module(&mut self, item: &[String]) {
        if let [.., keyword, name, end] = item
            && keyword == "mod"
            && end == ";"
        {
            let quoted =
                item.windows(3).find(|w| w[0] == "path" && w[1] == "=").map(|w| w[2].trim_matches('"').to_owned());
            self.test_modules.push(TestModule { name: name.clone(), path: quoted });
        }
    }

    /// Names that follow `mod` at the top level.
    fn modules(&self) -> BTreeSet<String> {
        self.tokens.windows(2).filter(|w| w[0] == "mod").map(|w| w[1].clone()).collect()
    }

    /// First names after `crate::`, groups opened.
    fn known(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (i, pair) in self.tokens.windows(2).enumerate() {
            if pair[0] == "crate" && pair[1] == "::" {
                self.first_names(i + 2, &mut names);
            }
        }
        names
    }

    fn first_names(&self, at: usize, names: &mut BTreeSet<String>) {
        let Some(first) = self.tokens.get(at) else { return };
        if first != "{" {
            names.insert(first.clone());
            return;
        }
        let (mut depth, mut fresh) = (0, false);
        for token in &self.tokens[at..] {
            match token.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                "," => {}
                name if fresh && depth == 1 => drop(names.insert(name.to_owned())),
                _ => {}
            }
            fresh = depth == 1 && matches!(token.as_str(), "{" | ",");
            if depth == 0 {
                return;
            }
        }
    }

    /// The longest chain `super::super::…`.
    fn longest_super(&self) -> usize {
        let (mut longest, mut current) = (0, 0);
        for token in &self.tokens {
            current = match token.as_str() {
                "super" => current + 1,
                "::" => current,
                _ => 0,
            };
            longest = longest.max(current);
        }
        longest
    }
}

/// The index after the item that starts at `at`: past its `;` or its closing brace, whichever ends it.
fn item_end(tokens: &[String], mut at: usize) -> usize {
    let mut depth = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        let ends = tokens[at] == ";" || (tokens[at] == "}" && tokens.get(at + 1).is_none_or(|next| next != ";"));
        at += 1;
        if depth == 0 && ends {
            return at;
        }
    }
    at
}

/// Cuts Rust text into words, string literals, `::` and single symbols; comments and lifetimes are dropped.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let starts = |at: usize, what: &str| what.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c));
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let from = at;
        if chars[at].is_whitespace() {
            at += 1;
        } else if starts(at, "//") {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
        } else if starts(at, "/*") {
            let mut depth = 0;
            while at < chars.len() {
                let step = match () {
                    () if starts(at, "/*") => (2, 1),
                    () if starts(at, "*/") => (2, -1),
                    () => (1, 0),
                };
                at += step.0;
                depth += step.1;
                if depth == 0 {
                    break;
                }
            }
        } else if chars[at] == '"' {
            at = string_end(&chars, at);
            out.push(chars[from..at].iter().collect());
        } else if chars[at] == '\'' {
            at = quote_end(&chars, at);
        } else if starts(at, "::") {
            at += 2;
            out.push("::".to_owned());
        } else if word(chars[at]) {
            while at < chars.len() && word(chars[at]) {
                at += 1;
            }
            let text: String = chars[from..at].iter().collect();
            let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
            if matches!(text.as_str(), "r" | "br") && chars.get(at + hashes) == Some(&'"') {
                let close: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                at += hashes + 1;
                while at < chars.len() && !starts(at, &close) {
                    at += 1;
                }
                at += hashes + 1;
            } else {
                out.push(text);
            }
        } else {
            at += 1;
            out.push(chars[from].to_string());
        }
    }
    out
}

/// The index after a string literal that starts at `at`.
fn string_end(chars: &[char], mut at: usize) -> usize {
    at += 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// The index after a character literal, or after the quote of a lifetime, whose name then reads as a harmless word.
fn quote_end(chars: &[char], at: usize) -> usize {
    if chars.get(at + 1) == Some(&'\\') {
        let closing = chars[at + 3..].iter().position(|c| *c == '\'').unwrap_or(0);
        return at + 3 + closing + 1;
    }
    if chars.get(at + 2) == Some(&'\'') { at + 3 } else { at + 1 }
}
