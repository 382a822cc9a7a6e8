//! The `config.toml` of a folder: a recipe with its checksum, which `limitpoint run` takes as it is.
//!
//! Paths of data are written from the folder on where both lie in one tree, so that they hold when the tree is moved,
//! and in full otherwise. What is read has them in full.

use std::path::{Component, Path, PathBuf};

use super::files::{RecordError, read_text, write_atomically};
use super::manifest::MANIFEST_FILE;
use super::recipe::{Recipe, Stop};
use super::seal::{Seal, sum};
use super::{RecipeError, RunError};
use crate::data::DataSpec;

/// Name of the file.
pub(super) const CONFIG_FILE: &str = "config.toml";

/// Writes a recipe into a folder that exists.
pub(super) fn write_config(folder: &Path, recipe: &Recipe) -> Result<(), RunError> {
    let written = Recipe { data: from_folder(&recipe.data, folder), ..recipe.clone() };
    Ok(write_atomically(&folder.join(CONFIG_FILE), Seal::TOML.close(&written.to_toml()?).as_bytes())?)
}

/// Reads the recipe of a folder and checks that nothing in it was changed.
pub(super) fn read_config(folder: &Path) -> Result<Recipe, RunError> {
    read_config_of(folder, folder)
}

/// The same, of a run whose folder is not where it will be in the end: paths of data start at `home`.
pub(super) fn read_config_of(folder: &Path, home: &Path) -> Result<Recipe, RunError> {
    let mut recipe = Recipe::from_resolved(&config_text(folder)?)?;
    recipe.data = in_full(&recipe.data, home);
    Ok(recipe)
}

/// The text of a folder's recipe, without its checksum.
pub(super) fn config_text(folder: &Path) -> Result<String, RecordError> {
    let path = folder.join(CONFIG_FILE);
    let text = match read_text(&path) {
        Err(error) if error.is_missing() && folder.join(MANIFEST_FILE).exists() => {
            return Err(RecordError::damaged(&path, "is missing; restore it"));
        }
        other => other?,
    };
    let what = "was changed after it was written: its SHA-256 does not fit; restore it. To change settings, begin anew in \
                another folder; for a later stop, give it to `limitpoint resume`";
    Seal::TOML.open(&text).map(str::to_owned).ok_or_else(|| RecordError::damaged(&path, what))
}

/// SHA-256 of all that decides the steps of a run: of the recipe without its stop rules, without the folders its data lie in and
/// without the words about it.
pub(super) fn identity(recipe: &Recipe) -> Result<String, RecipeError> {
    let name = |path: &Path| path.file_name().map_or_else(|| path.to_owned(), PathBuf::from);
    let (stop, data) = (Stop::default(), recipe.data.with_paths(name));
    let bare = Recipe { stop, data, title: String::new(), description: String::new(), ..recipe.clone() };
    Ok(sum(bare.to_toml()?.as_bytes()))
}

/// Whether two recipes make the same run, wherever their data lie.
pub(super) fn same_recipe(a: &Recipe, b: &Recipe) -> Result<bool, RecipeError> {
    Ok(a.stop == b.stop && identity(a)? == identity(b)?)
}

/// Paths of data in full, where they start at `folder`.
pub(super) fn in_full(data: &DataSpec, folder: &Path) -> DataSpec {
    let folder = true_place(folder);
    data.with_paths(|path| plain(&folder.join(path)))
}

/// Paths of data in full, where they start at the current folder.
pub(super) fn settled(data: &DataSpec) -> DataSpec {
    data.with_paths(settled_path)
}

/// A link keeps its name; the folders it lies in are those of the disk.
fn settled_path(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => true_place(parent).join(name),
        _ => true_place(path),
    }
}

/// Paths of data from `folder` on, where both lie in one tree.
pub(super) fn from_folder(data: &DataSpec, folder: &Path) -> DataSpec {
    let folder = true_place(folder);
    data.with_paths(|path| {
        let path = settled_path(path);
        relative(&path, &folder).unwrap_or(path)
    })
}

fn true_place(path: &Path) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    path.canonicalize().or_else(|_| std::path::absolute(path).map(|path| plain(&path))).unwrap_or_else(|_| path.into())
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// `path` as seen from `folder`, if they have more than the root in common.
fn relative(path: &Path, folder: &Path) -> Option<PathBuf> {
    let (path, folder): (Vec<_>, Vec<_>) = (path.components().collect(), folder.components().collect());
    let shared = path.iter().zip(&folder).take_while(|(a, b)| a == b).count();
    let one_tree = path[..shared].iter().any(|part| matches!(part, Component::Normal(_)));
    let up = folder[shared..].iter().map(|_| Component::ParentDir);
    one_tree.then(|| up.chain(path[shared..].iter().copied()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::File;

    #[test]
    fn paths_are_written_from_the_folder_on_and_read_in_full() {
        let file = |path: &str| DataSpec::File(File::at(path));
        let there = |path: &str, folder: &str| from_folder(&file(path), Path::new(folder));
        assert_eq!(there("/tree/data/a.csv", "/tree/runs/x"), file("../../data/a.csv"));
        assert_eq!(there("/tree/runs/x/a.csv", "/tree/runs/x"), file("a.csv"));
        assert_eq!(there("/elsewhere/a.csv", "/tree/runs/x"), file("/elsewhere/a.csv"));
        for path in ["/tree/data/a.csv", "/tree/a.csv", "/elsewhere/a.csv"] {
            let folder = Path::new("/tree/runs/x");
            assert_eq!(in_full(&from_folder(&file(path), folder), folder), file(path));
        }
        assert_eq!(in_full(&file("../a.csv"), Path::new("/moved/runs")), file("/moved/a.csv"));
        assert_eq!(plain(Path::new("/a/./b/../../../c")), Path::new("/../c"));
    }
}
