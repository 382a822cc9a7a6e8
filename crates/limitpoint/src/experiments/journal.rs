//! A text file that grows line by line while a run goes on, and can be taken back to an earlier line.
//!
//! The file has a temporary name until the run is complete. A checkpoint keeps a [`Mark`]: how many lines there were,
//! how many bytes, and their SHA-256. A resumed run checks the bytes up to the mark, cuts off what came later and goes
//! on.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::files::{RecordError, rename};

/// How far a journal had come.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mark {
    /// Lines after the header.
    pub lines: u64,
    /// Bytes, the header included.
    pub bytes: u64,
    /// SHA-256 of these bytes, in hexadecimal.
    pub sha256: String,
}

/// The journal.
pub(super) struct Journal {
    partial: PathBuf,
    complete: PathBuf,
    file: File,
    /// Where each line ends; the first entry is the end of the header.
    ends: Vec<u64>,
    digest: Sha256,
}

impl Journal {
    /// Starts a journal that will be called `complete` in the end. The header, if any, is its first line.
    pub fn create(complete: &Path, header: &str) -> Result<Self, RecordError> {
        let partial = partial_name(complete);
        let file = File::create(&partial).map_err(|source| RecordError::io("create", &partial, source))?;
        let complete = complete.to_path_buf();
        let mut journal = Self { partial, complete, file, ends: Vec::new(), digest: Sha256::new() };
        if header.is_empty() {
            journal.ends.push(0);
        } else {
            journal.append(header)?;
        }
        Ok(journal)
    }

    /// Takes up a journal at a mark; gives its lines back, the header left out.
    pub fn resume(complete: &Path, header: &str, mark: &Mark) -> Result<(Self, Vec<String>), RecordError> {
        let partial = partial_name(complete);
        let io = |doing| {
            let partial = partial.clone();
            move |source| RecordError::io(doing, &partial, source)
        };
        if !partial.exists() && complete.exists() {
            // killed between naming this file and the run's last one
            rename(complete, &partial)?;
        }
        let mut file = OpenOptions::new().read(true).write(true).open(&partial).map_err(io("open"))?;
        let length = file.metadata().map_err(io("read"))?.len();
        if length < mark.bytes {
            let what = format!("has {length} bytes, but the checkpoint knows of {}", mark.bytes);
            return Err(RecordError::damaged(&partial, what));
        }
        let mut bytes = Vec::new();
        (&mut file).take(mark.bytes).read_to_end(&mut bytes).map_err(io("read"))?;
        let digest = Sha256::new_with_prefix(&bytes);
        if hexadecimal(&digest) != mark.sha256 {
            return Err(RecordError::damaged(&partial, "does not have the checksum the checkpoint knows"));
        }
        let text = String::from_utf8(bytes).map_err(|_| RecordError::damaged(&partial, "is not text"))?;
        let mut ends = if header.is_empty() { vec![0] } else { Vec::new() };
        let mut lines = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            at += line.len() as u64;
            ends.push(at);
            lines.push(line.trim_end_matches('\n').to_owned());
        }
        if !header.is_empty() {
            if lines.first().is_none_or(|first| first != header) {
                return Err(RecordError::damaged(&partial, "has other columns than this run; start it anew"));
            }
            lines.remove(0);
        }
        if lines.len() as u64 != mark.lines {
            return Err(RecordError::damaged(&partial, "has another number of lines than the checkpoint knows"));
        }
        file.set_len(mark.bytes).map_err(io("shorten"))?;
        file.seek(SeekFrom::Start(mark.bytes)).map_err(io("read"))?;
        Ok((Self { partial, complete: complete.to_path_buf(), file, ends, digest }, lines))
    }

    /// Adds a line.
    pub fn append(&mut self, line: &str) -> Result<(), RecordError> {
        let start = self.ends.last().copied().unwrap_or(0);
        let text = format!("{line}\n");
        if let Err(source) = self.file.write_all(text.as_bytes()) {
            // a line that fits only in part is taken back
            let _ = self.file.set_len(start);
            return Err(RecordError::io("write", &self.partial, source));
        }
        self.digest.update(text.as_bytes());
        self.ends.push(start + text.len() as u64);
        Ok(())
    }

    /// Keeps the first `lines` lines and takes the others back.
    pub fn keep(&mut self, lines: usize) -> Result<(), RecordError> {
        if lines + 1 >= self.ends.len() {
            return Ok(());
        }
        self.ends.truncate(lines + 1);
        let end = self.ends[lines];
        let shortened = (|| {
            self.file.set_len(end)?;
            let mut bytes = Vec::new();
            File::open(&self.partial)?.read_to_end(&mut bytes)?;
            self.file.seek(SeekFrom::Start(end))?;
            Ok(bytes)
        })();
        let bytes = shortened.map_err(|source| RecordError::io("shorten", &self.partial, source))?;
        self.digest = Sha256::new_with_prefix(&bytes);
        Ok(())
    }

    /// Makes sure that all lines are on the disk, and says how far it has come.
    pub fn mark(&mut self) -> Result<Mark, RecordError> {
        self.file.sync_data().map_err(|source| RecordError::io("write", &self.partial, source))?;
        let (lines, bytes) = (self.ends.len() as u64 - 1, self.ends.last().copied().unwrap_or(0));
        Ok(Mark { lines, bytes, sha256: hexadecimal(&self.digest) })
    }

    /// The run is complete: the file gets its final name.
    pub fn finish(mut self) -> Result<(), RecordError> {
        self.mark()?;
        rename(&self.partial, &self.complete)
    }
}

/// The name of a journal that is not complete yet.
pub(super) fn partial_name(complete: &Path) -> PathBuf {
    let mut name = complete.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// A digest so far, as text.
pub(super) fn hexadecimal(digest: &Sha256) -> String {
    digest.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("limitpoint-journal-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_journal_resumed_at_a_mark_is_the_uninterrupted_one() {
        let folder = folder("resume");
        let path = folder.join("a.csv");
        for header in ["h", ""] {
            let mut journal = Journal::create(&path, header).unwrap();
            journal.append("one").unwrap();
            journal.append("two").unwrap();
            let mark = journal.mark().unwrap();
            journal.append("lost").unwrap();
            drop(journal);
            let (mut journal, lines) = Journal::resume(&path, header, &mark).unwrap();
            assert_eq!(lines, ["one", "two"]);
            assert_eq!(journal.mark().unwrap(), mark);
            journal.append("three").unwrap();
            journal.append("four").unwrap();
            journal.keep(3).unwrap();
            journal.append("five").unwrap();
            let after = journal.mark().unwrap();
            journal.finish().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let expected = ["one", "two", "three", "five"].map(|line| format!("{line}\n")).concat();
            assert_eq!(text, if header.is_empty() { expected } else { format!("h\n{expected}") });
            assert_eq!(after.sha256, hexadecimal(&Sha256::new_with_prefix(text.as_bytes())));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn damage_before_the_mark_is_noticed() {
        let folder = folder("damage");
        let path = folder.join("a.csv");
        let mut journal = Journal::create(&path, "h").unwrap();
        journal.append("one").unwrap();
        let mark = journal.mark().unwrap();
        drop(journal);
        assert!(Journal::resume(&path, "other", &mark).is_err());
        for broken in ["h\nonE\n", "h\n", ""] {
            std::fs::write(partial_name(&path), broken).unwrap();
            assert!(Journal::resume(&path, "h", &mark).is_err(), "{broken:?}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
