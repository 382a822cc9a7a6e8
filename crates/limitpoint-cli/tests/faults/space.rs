//! A disk that is full.

use std::process::Command;

use crate::home::Home;
use crate::tools::{RECIPE, assert_same, expect, limitpoint, recipe, run, words};

/// A small file system in memory, gone at the end.
struct SmallDisk(String);

impl SmallDisk {
    fn new(place: &str, kilobytes: usize) -> Option<Self> {
        std::fs::create_dir_all(place).unwrap();
        let size = format!("size={kilobytes}k");
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs", place]).output().ok()?;
        output.status.success().then(|| Self(place.to_owned()))
    }

    fn grow(&self, kilobytes: usize) {
        let size = format!("remount,size={kilobytes}k");
        assert!(Command::new("mount").args(["-o", &size, &self.0]).status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_ends_a_run_with_a_clear_error_and_what_was_written_stays_good() {
    let home = Home::new("space");
    let recipe = recipe(&home.path(""), "mine", RECIPE);
    let whole = home.path("disk/whole");
    for kilobytes in [16, 48, 100, 200] {
        let Some(disk) = SmallDisk::new(&home.path("disk"), kilobytes) else {
            eprintln!(
                "skipped: no small disk can be mounted here (that needs root); tests/kill.rs limits the size of files"
            );
            return;
        };
        let out = home.path("disk/out");
        let output = limitpoint(&["run", &recipe, "--quiet", "--no-report", "--threads", "2", "--out", &out]);
        let text = words(&output);
        assert_eq!(output.status.code(), Some(2), "{kilobytes} kB: {text}");
        assert!(text.contains("disk is full") && !text.contains("panicked"), "{kilobytes} kB: {text}");
        // what is there is whole, or was being appended to
        let verified = limitpoint(&["verify", &out]);
        let begun = std::path::Path::new(&format!("{out}/manifest.json")).exists();
        assert!(!begun || verified.status.code() == Some(0), "{kilobytes} kB: {}", words(&verified));
        disk.grow(20_000);
        expect(0, &["run", &recipe, "--resume", "--quiet", "--no-report", "--out", &out]);
        run(&recipe, &whole, &[]);
        assert_same(&whole, &out);
    }
}
