//! Claims that are done, kept in a folder, so that hours can be spread over days.

use std::path::{Path, PathBuf};

use limitpoint::experiments::write_atomically;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{ClaimError, ClaimRecord, Scale, Status};

/// A folder with one file for each claim that is done. Files of another program, scale or input are not used.
#[derive(Debug, Clone)]
pub struct Kept {
    folder: PathBuf,
    key: String,
}

#[derive(Serialize, Deserialize)]
struct File {
    key: String,
    record: ClaimRecord,
}

impl Kept {
    /// The folder, and what its claims depend on: the program (its version and the bytes of `program`, where they can be
    /// read), the scale, and the files of the folders `inputs`.
    pub fn new(folder: &Path, scale: Scale, program: Option<&Path>, inputs: &[PathBuf]) -> Self {
        let mut digest = Sha256::new();
        digest.update(env!("CARGO_PKG_VERSION"));
        digest.update(scale.word());
        let named = program.map(|path| ("program", path)).into_iter();
        for (word, path) in named.chain(inputs.iter().map(|path| ("inputs", path.as_path()))) {
            digest.update(word);
            for file in files(path) {
                digest.update(file.file_name().unwrap_or_default().as_encoded_bytes());
                digest.update(std::fs::read(&file).unwrap_or_default());
            }
        }
        let key = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { folder: folder.to_owned(), key }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    /// A claim that is done and was decided.
    pub fn find(&self, id: &str) -> Option<ClaimRecord> {
        let text = std::fs::read_to_string(self.path(id)).ok()?;
        let file: File = serde_json::from_str(&text).ok()?;
        let fits = file.key == self.key && file.record.id == id && file.record.status != Status::Undecided;
        fits.then_some(file.record)
    }

    /// Keeps a claim.
    pub fn keep(&self, record: &ClaimRecord) -> Result<(), ClaimError> {
        let (what, key) = (format!("{} cannot be kept", record.id), self.key.clone());
        let ended = |reason: String| ClaimError::Ended { what: what.clone(), reason };
        std::fs::create_dir_all(&self.folder).map_err(|error| ended(error.to_string()))?;
        let file = File { key, record: record.clone() };
        let text = serde_json::to_string(&file).map_err(|error| ended(error.to_string()))?;
        write_atomically(&self.path(&record.id), text.as_bytes()).map_err(|error| ended(error.to_string()))
    }
}

/// A file itself, or the files of a folder in their order.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lab, find_claims};

    #[test]
    fn what_is_kept_is_found_by_the_same_program_scale_and_inputs_only() {
        let folder = std::env::temp_dir().join(format!("limitpoint-kept-{}", std::process::id()));
        let inputs = folder.join("inputs");
        std::fs::create_dir_all(&inputs).unwrap();
        std::fs::write(inputs.join("a"), "1").unwrap();
        let record = find_claims("B.prop2a").unwrap()[0].run(&Lab::new(Scale::Quick));
        let kept = |scale| Kept::new(&folder, scale, None, std::slice::from_ref(&inputs));
        kept(Scale::Quick).keep(&record).unwrap();
        assert_eq!(kept(Scale::Quick).find(&record.id), Some(record.clone()));
        assert_eq!(kept(Scale::Full).find(&record.id), None);
        let other = Kept::new(&folder, Scale::Quick, Some(&inputs.join("a")), std::slice::from_ref(&inputs));
        assert_eq!(other.find(&record.id), None);
        std::fs::write(inputs.join("a"), "2").unwrap();
        assert_eq!(kept(Scale::Quick).find(&record.id), None);
        kept(Scale::Quick).keep(&ClaimRecord { status: Status::Undecided, ..record.clone() }).unwrap();
        assert_eq!(kept(Scale::Quick).find(&record.id), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
