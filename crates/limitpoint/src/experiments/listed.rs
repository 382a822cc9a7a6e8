//! Figures and tables of an experiment: files beside a list of their checksums.

use std::path::{Path, PathBuf};

use super::RunError;
use super::files::{RecordError, create_folder, read_text, remove_file, write_atomically};
use super::seal::sum;
use super::verify::{Damage, Verification, compare, files_in};

/// Folder of the figures of an experiment.
pub const FIGURES: &str = "figures";
/// Folder of its tables.
pub const TABLES: &str = "tables";
/// Name of the list of checksums beside figures and tables.
const SUMS_FILE: &str = "SHA256SUMS";

/// Figures, or tables: files beside a list of their checksums.
pub(super) fn verify_listed(folder: &Path, again: &str, found: &mut Verification) -> Result<(), RunError> {
    let list = folder.join(SUMS_FILE);
    let text = match read_text(&list) {
        Err(error) if error.is_missing() => {
            if !made_in(folder).is_empty() {
                let what = format!("is missing; {again} writes it again");
                found.damage.push(Damage { path: list, what });
            }
            return Ok(());
        }
        other => found.take(other)?.unwrap_or_default(),
    };
    found.files += 1;
    let mut names = Vec::new();
    for line in text.split_inclusive('\n') {
        match line.strip_suffix('\n').and_then(|line| line.split_once("  ")) {
            Some((stated, name)) if stated.len() == 64 => {
                names.push(folder.join(name));
                if let Some(damage) = compare(&folder.join(name), stated)? {
                    let what = format!("{}, by {SUMS_FILE}; {again} writes both again", damage.what);
                    found.damage.push(Damage { what, ..damage });
                }
                found.files += 1;
            }
            _ => {
                let what = format!("is damaged; {again} writes it again");
                found.damage.push(Damage { path: list.clone(), what });
            }
        }
    }
    for path in made_in(folder).into_iter().filter(|path| !names.contains(path)) {
        let what = format!("is not in {SUMS_FILE}; {again} writes both again");
        found.damage.push(Damage { path, what });
    }
    Ok(())
}

/// What figures and tables are called at their end.
const MADE: [&str; 6] = ["svg", "pdf", "pgf", "csv", "tex", "md"];

/// Figures or tables in a folder.
fn made_in(folder: &Path) -> Vec<PathBuf> {
    MADE.iter().flat_map(|ending| files_in(folder, ending)).collect()
}

/// Writes `figures/NAME.svg` of an experiment and the list of their checksums, in place of what is there.
pub fn save_figures<'a>(
    folder: &Path,
    figures: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<PathBuf>, RecordError> {
    let figures = figures.into_iter().map(|(name, svg)| (format!("{name}.svg"), svg.as_bytes().to_vec()));
    save_listed(&folder.join(FIGURES), figures, false)
}

/// Writes figures or tables into a folder, and the list of their checksums; those that are there from an earlier time are
/// kept, or else removed.
pub fn save_listed(
    folder: &Path,
    files: impl IntoIterator<Item = (String, Vec<u8>)>,
    keep: bool,
) -> Result<Vec<PathBuf>, RecordError> {
    create_folder(folder)?;
    let path = folder.join(SUMS_FILE);
    let before = if keep && path.exists() { read_text(&path)? } else { String::new() };
    let (mut paths, mut list) = (Vec::new(), String::new());
    for (file, bytes) in files {
        list += &format!("{}  {file}\n", sum(&bytes));
        write_atomically(&folder.join(&file), &bytes)?;
        paths.push(folder.join(file));
    }
    let known = before.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let kept: Vec<(&str, PathBuf)> = known
        .filter_map(|line| Some((line, folder.join(line.trim_end_matches('\n').split_once("  ")?.1))))
        .filter(|(_, path)| path.exists() && !paths.contains(path))
        .collect();
    list = kept.iter().map(|(line, _)| *line).collect::<String>() + &list;
    for path in made_in(folder) {
        if !paths.contains(&path) && kept.iter().all(|(_, known)| *known != path) {
            remove_file(&path)?;
        }
    }
    write_atomically(&path, list.as_bytes())?;
    Ok(paths)
}
