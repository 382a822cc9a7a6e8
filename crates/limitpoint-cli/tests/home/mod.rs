//! Folders that tests leave no trace of.

use std::path::PathBuf;

/// A folder that is gone when the test is over.
pub struct Home(PathBuf);

impl Home {
    /// An empty folder for the test of this name; process ids keep those of different test programs apart.
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("limitpoint-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        Self(folder)
    }

    /// A file or folder in it.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
