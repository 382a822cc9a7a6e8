//! What is built into the program: licences, sources and double versions of all dependencies, held against `deny.toml`.
//!
//! Sources and versions are read from Cargo.lock, for all platforms; licences from `cargo metadata`, for this one, since
//! it needs the packages themselves.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::Table;

/// The root of the repository; nothing, with a word about it, in a published crate.
fn repository() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if root.join("deny.toml").is_file() {
        return Some(root);
    }
    eprintln!("skipped: {} is no clone of the repository, so it has no deny.toml", root.display());
    None
}

fn table(path: &Path) -> Table {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn words<'a>(rules: &'a Table, section: &str, key: &str) -> Vec<&'a str> {
    let list = rules[section][key].as_array().unwrap_or_else(|| panic!("[{section}] {key} is a list"));
    list.iter().map(|word| word.as_str().expect("a word")).collect()
}

/// Name, version and source of every package in Cargo.lock.
fn locked(lock: &Table) -> Vec<(&str, &str, Option<&str>)> {
    let packages = lock["package"].as_array().expect("packages").iter();
    packages
        .map(|package| {
            let word = |key| package.get(key).and_then(toml::Value::as_str);
            (word("name").expect("a name"), word("version").expect("a version"), word("source"))
        })
        .collect()
}

#[test]
fn every_dependency_comes_from_a_known_registry() {
    let Some(root) = repository() else { return };
    let (rules, lock) = (table(&root.join("deny.toml")), table(&root.join("Cargo.lock")));
    let known = words(&rules, "sources", "allow-registry");
    for (name, version, source) in locked(&lock) {
        match source.map(|source| source.strip_prefix("registry+").unwrap_or(source)) {
            None => assert!(name.starts_with("limitpoint"), "{name} {version} is not of this workspace"),
            Some(source) => assert!(known.contains(&source), "{name} {version} comes from {source}"),
        }
    }
}

#[test]
fn the_readme_says_why_each_dependency_is_there() {
    let Some(root) = repository() else { return };
    let (manifest, readme) = (table(&root.join("Cargo.toml")), root.join("README.md"));
    let readme = std::fs::read_to_string(&readme).unwrap_or_else(|error| panic!("{}: {error}", readme.display()));
    let direct = manifest["workspace"]["dependencies"].as_table().expect("dependencies");
    for name in direct.keys().filter(|name| !name.starts_with("limitpoint")) {
        assert!(readme.contains(&format!("`{name}`")), "the README does not say why {name} is there");
    }
}

#[test]
fn the_oldest_rust_that_is_promised_is_the_one_everything_is_checked_with() {
    let Some(root) = repository() else { return };
    let manifest = table(&root.join("Cargo.toml"));
    let used = std::fs::read_to_string(root.join(".ci/toolchain")).expect("the version that is checked with");
    let promised = manifest["workspace"]["package"]["rust-version"].as_str().expect("a version");
    assert_eq!(used.trim().rsplit_once('.').expect("three numbers").0, promised, "Cargo.toml and .ci/toolchain");
}

#[test]
fn two_versions_of_a_dependency_have_a_reason() {
    let Some(root) = repository() else { return };
    let (rules, lock) = (table(&root.join("deny.toml")), table(&root.join("Cargo.lock")));
    let mut excused = BTreeMap::new();
    for entry in rules["bans"]["skip"].as_array().expect("a list") {
        let (name, version) = entry["crate"].as_str().and_then(|one| one.split_once('@')).expect("name@version");
        assert!(!entry["reason"].as_str().unwrap_or_default().is_empty(), "{name} {version} is skipped for no reason");
        excused.insert((name, version), false);
    }
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, version, _) in locked(&lock) {
        match excused.get_mut(&(name, version)) {
            Some(used) => *used = true,
            None => versions.entry(name).or_default().push(version),
        }
    }
    let double: Vec<_> = versions.iter().filter(|(_, versions)| versions.len() > 1).collect();
    assert!(double.is_empty(), "more than one version of {double:?}; give a reason in deny.toml or unite them");
    let idle: Vec<_> = excused.iter().filter(|(_, used)| !**used).map(|(one, _)| one).collect();
    assert!(idle.is_empty(), "deny.toml excuses {idle:?}, which are not there");
}

#[test]
fn every_licence_is_allowed() {
    let Some(root) = repository() else { return };
    let rules = table(&root.join("deny.toml"));
    let allowed = words(&rules, "licenses", "allow");
    if !cfg!(target_os = "linux") {
        eprintln!("skipped: on Linux only, where it is known which packages were brought to build the program");
        return;
    }
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", &platform])
        .current_dir(&root)
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 100, "only {} packages were found", packages.len());
    for package in packages {
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or_default());
        assert!(permits(licence, &allowed), "{name} is under '{licence}', which deny.toml does not allow");
    }
}

/// Whether an SPDX expression can be met with the allowed licences: `OR` (formerly `/`) binds less than `AND`.
fn permits(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = any(&mut rest, allowed);
    met && rest.is_empty()
}

fn any(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut met = all(rest, allowed);
    while let Some((&"OR", after)) = rest.split_first() {
        *rest = after;
        met |= all(rest, allowed);
    }
    met
}

fn all(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut met = one(rest, allowed);
    while let Some((&"AND", after)) = rest.split_first() {
        *rest = after;
        met &= one(rest, allowed);
    }
    met
}

fn one(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let Some((first, after)) = rest.split_first() else { return false };
    *rest = after;
    if *first == "(" {
        let met = any(rest, allowed);
        return match rest.split_first() {
            Some((&")", after)) => {
                *rest = after;
                met
            }
            _ => false,
        };
    }
    if let Some((&"WITH", exception)) = rest.split_first() {
        // what an exception adds is not looked into: it is allowed by its whole name
        let whole = exception.first().map(|name| format!("{first} WITH {name}"));
        *rest = exception.get(1..).unwrap_or_default();
        return whole.is_some_and(|whole| allowed.contains(&whole.as_str()));
    }
    allowed.contains(first)
}

#[test]
fn expressions_of_licences_are_understood() {
    let permits = |expression| permits(expression, &["MIT", "ISC", "A WITH B"]);
    for good in [
        "MIT",
        "GPL-3.0 OR MIT",
        "Unlicense/MIT",
        "(GPL-3.0 OR MIT) AND ISC",
        "MIT AND ISC",
        "X WITH Y OR MIT",
        "A WITH B",
    ] {
        assert!(permits(good), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT",
        "MIT)",
        "MIT WITH Y",
        "A",
        "A WITH",
        "(GPL-3.0 OR X) AND MIT",
        "MIT ISC",
    ] {
        assert!(!permits(bad), "{bad}");
    }
}
