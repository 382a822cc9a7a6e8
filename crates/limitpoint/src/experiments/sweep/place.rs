//! Where the folder of a run is at this moment.

use std::path::{Path, PathBuf};

/// Folder of runs that wait for a worker.
pub(super) const WAITING: &str = "waiting";
/// Folder of runs that are claimed, one folder per worker.
pub(super) const RUNNING: &str = "running";
/// Folder of reasons why runs failed.
pub(super) const FAILED: &str = "failed";
/// Folder of the workers' heartbeats.
pub(super) const WORKERS: &str = "workers";

/// Whether a folder is a sweep that workers share.
pub fn is_sweep(folder: &Path) -> bool {
    folder.join(WAITING).is_dir()
}

/// The folder of a run: its own place in an experiment, or where it waits or is worked on in a sweep.
pub fn place(experiment: &Path, name: &str) -> PathBuf {
    let home = experiment.join(name);
    if home.exists() || !is_sweep(experiment) {
        return home;
    }
    let waiting = experiment.join(WAITING).join(name);
    if waiting.exists() {
        return waiting;
    }
    let running = entries(&experiment.join(RUNNING)).into_iter().map(|worker| worker.join(name));
    running.into_iter().find(|folder| folder.exists()).unwrap_or(home)
}

/// Reads something of a run whose folder may be moved meanwhile: where it was not found, it is looked for again.
pub(in crate::experiments) fn steadily<T, E>(
    experiment: &Path,
    name: &str,
    mut read: impl FnMut(&Path) -> Result<T, E>,
) -> Result<T, E> {
    let mut folder = place(experiment, name);
    for _ in 0..10 {
        let found = read(&folder);
        if found.is_ok() || folder.exists() {
            return found;
        }
        folder = place(experiment, name);
    }
    read(&folder)
}

/// What is in a folder, in the order of names; nothing where there is no such folder.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

/// The names in a folder, sorted; nothing where there is no such folder.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
