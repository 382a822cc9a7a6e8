//! Writing files so that no moment leaves a half-written one.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What can go wrong with the files of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Reading or writing failed.
    #[error("cannot {doing} {}: {source}{}", path.display(), hint(source))]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and the remedy.
        what: String,
    },
}

fn hint(source: &std::io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; the disk is full, earlier files are intact: free some space and resume"
        }
        ErrorKind::PermissionDenied => "; choose another folder with --out",
        _ => "",
    }
}

impl RecordError {
    /// Wraps an error of the file system.
    pub fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { doing, path: path.to_path_buf(), source }
    }

    /// A file that does not hold what it should.
    pub fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_path_buf(), what: what.into() }
    }
}

/// Ending of files that are not complete yet.
pub const TEMPORARY: &str = "tmp";

/// Writes a file as a whole or not at all: to a temporary name beside it, synced to the disk, then renamed.
///
/// ```
/// let folder = std::env::temp_dir().join(format!("limitpoint-doc-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// limitpoint::experiments::write_atomically(&folder.join("a.txt"), b"whole").unwrap();
/// assert_eq!(std::fs::read_dir(&folder)?.count(), 1);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".");
    temporary.push(TEMPORARY);
    let temporary = PathBuf::from(temporary);
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(source) = written {
        // what was there before stays; the torso is of no use
        let _ = fs::remove_file(&temporary);
        return Err(RecordError::io("write", path, source));
    }
    rename(&temporary, path)
}

/// Renames a complete file to its final name and makes that last.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), RecordError> {
    abort_here_if_asked();
    fs::rename(from, to).map_err(|source| RecordError::io("rename to", to, source))?;
    sync_folder(to);
    Ok(())
}

/// Asks the disk to remember the names in a file's folder; not every system can, and the data itself is safe.
fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent()
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
}

/// `LIMITPOINT_ABORT_AT_RENAME=n` ends the process between the writing and the renaming of the n-th file, as a power
/// cut would: the test of resuming uses it.
fn abort_here_if_asked() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let asked = std::env::var("LIMITPOINT_ABORT_AT_RENAME").ok().and_then(|n| n.parse::<u64>().ok());
    if asked == Some(COUNT.fetch_add(1, Ordering::Relaxed) + 1) {
        std::process::abort();
    }
}

/// Reads a whole text file.
pub(super) fn read_text(path: &Path) -> Result<String, RecordError> {
    fs::read_to_string(path).map_err(|source| RecordError::io("read", path, source))
}

/// Creates a folder and those above it.
pub(super) fn create_folder(path: &Path) -> Result<(), RecordError> {
    fs::create_dir_all(path).map_err(|source| RecordError::io("create", path, source))
}

/// Removes what a killed run left unfinished.
pub(super) fn remove_temporaries(folder: &Path) -> Result<(), RecordError> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten().filter(|entry| entry.path().extension().is_some_and(|end| end == TEMPORARY)) {
        fs::remove_file(entry.path()).map_err(|source| RecordError::io("remove", &entry.path(), source))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let folder = std::env::temp_dir().join(format!("limitpoint-files-{}", std::process::id()));
        create_folder(&folder).unwrap();
        let path = folder.join("a.txt");
        write_atomically(&path, b"old").unwrap();
        // a folder in the way of the temporary file makes the write fail
        create_folder(&folder.join("a.txt.tmp")).unwrap();
        let error = write_atomically(&path, b"new").unwrap_err();
        assert!(error.to_string().contains("a.txt"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_full_disk_is_said_to_be_one() {
        let source = std::io::Error::from(ErrorKind::StorageFull);
        let text = RecordError::io("write", Path::new("runs/x"), source).to_string();
        assert!(text.contains("disk is full") && text.contains("resume"), "{text}");
    }
}
