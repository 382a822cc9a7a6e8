//! Writing files so that no moment leaves a half-written one.

use std::fs::{self, File, OpenOptions, TryLockError};
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
    /// A file does not hold what was once written to it.
    #[error("{} {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and the remedy.
        what: String,
    },
    /// A file that is whole, but not what is asked for.
    #[error("{} {what}", path.display())]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it, and the remedy.
        what: String,
    },
    /// Somebody else is writing there.
    #[error("{} is being written by {owner}; wait until it is done, or end it", folder.display())]
    Held {
        /// The folder.
        folder: PathBuf,
        /// Who.
        owner: Box<super::hold::Owner>,
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

    /// A file that does not hold what was once written to it.
    pub fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_path_buf(), what: what.into() }
    }

    /// A file that is whole, but not what is asked for.
    pub fn refused(path: &Path, what: impl Into<String>) -> Self {
        Self::Refused { path: path.to_path_buf(), what: what.into() }
    }

    /// Whether files were changed or lost after they were written.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }

    /// Whether a file is not there.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == ErrorKind::NotFound)
    }
}

/// Ending of files that are not complete yet.
pub const TEMPORARY: &str = "tmp";

/// Writes a file as a whole or not at all: to a temporary name beside it, synced to the disk, then renamed.
///
/// Every writer has a temporary file of its own and keeps it locked, so that several may write at once and
/// the last one wins, and so that what is being written can be told from what was left behind.
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
    let mut attempts = 10;
    loop {
        match write_once(path, bytes) {
            // before it was locked, somebody who cleaned up took it for left behind
            Err((error, true)) if error.is_missing() && attempts > 0 => attempts -= 1,
            outcome => return outcome.map_err(|(error, _)| error),
        }
    }
}

/// The error says whether the file was written and lacked only its name.
fn write_once(path: &Path, bytes: &[u8]) -> Result<(), (RecordError, bool)> {
    let (temporary, mut file) = temporary(path).map_err(|source| (RecordError::io("write", path, source), false))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let named = match written {
        Ok(()) => rename(&temporary, path).map_err(|error| (error, true)),
        Err(source) => Err((RecordError::io("write", path, source), false)),
    };
    if named.is_err() {
        // what was there before stays; the torso is of no use
        let _ = fs::remove_file(&temporary);
    }
    named
}

/// A new file beside `path` that nobody else writes to, locked while it is open.
fn temporary(path: &Path) -> std::io::Result<(PathBuf, File)> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}-{}.{TEMPORARY}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Ok(file) => {
                // where files cannot be locked, nobody else can tell that this one is in use; it is renamed soon
                let _ = file.try_lock();
                return Ok((PathBuf::from(name), file));
            }
            // of a process with this number on another machine, or of one that is gone
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
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
    fs::read_to_string(path).map_err(|source| match source.kind() {
        ErrorKind::InvalidData => RecordError::damaged(path, "is not text; restore it"),
        _ => RecordError::io("read", path, source),
    })
}

/// Creates a folder and those above it.
pub(super) fn create_folder(path: &Path) -> Result<(), RecordError> {
    fs::create_dir_all(path).map_err(|source| RecordError::io("create", path, source))
}

/// Reads a whole file.
pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>, RecordError> {
    fs::read(path).map_err(|source| RecordError::io("read", path, source))
}

/// Removes a file, if it is there.
pub(super) fn remove_file(path: &Path) -> Result<(), RecordError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(RecordError::io("remove", path, source)),
        _ => Ok(()),
    }
}

/// Removes what a killed run left unfinished; what somebody is writing at this moment stays.
pub(super) fn remove_temporaries(folder: &Path) -> Result<(), RecordError> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|end| end == TEMPORARY) && path.is_file() {
            let Ok(file) = File::open(&path) else { continue };
            if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
                remove_file(&path)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("limitpoint-files-{name}-{}", std::process::id()));
        create_folder(&folder).unwrap();
        folder
    }

    #[test]
    fn a_failed_write_leaves_what_was_there_and_nothing_else() {
        let folder = folder("failed");
        let path = folder.join("a.txt");
        // a folder cannot be replaced by a file
        create_folder(&path).unwrap();
        std::fs::write(path.join("old"), "old").unwrap();
        let error = write_atomically(&path, b"new").unwrap_err();
        assert!(error.to_string().contains("a.txt"), "{error}");
        assert_eq!(fs::read(path.join("old")).unwrap(), b"old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn many_writers_of_one_file_leave_a_whole_one() {
        let folder = folder("many");
        let path = folder.join("a.txt");
        std::thread::scope(|scope| {
            for writer in 0..8u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        write_atomically(path, &[b'a' + writer; 50_000]).unwrap();
                        remove_temporaries(path.parent().unwrap()).unwrap();
                    }
                });
            }
        });
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.len() == 50_000 && bytes.iter().all(|byte| *byte == bytes[0]));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
        fs::write(folder.join("b.txt.1-1.tmp"), "left behind").unwrap();
        remove_temporaries(&folder).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_full_disk_is_said_to_be_one() {
        let source = std::io::Error::from(ErrorKind::StorageFull);
        let text = RecordError::io("write", Path::new("runs/x"), source).to_string();
        assert!(text.contains("disk is full") && text.contains("resume"), "{text}");
    }
}
