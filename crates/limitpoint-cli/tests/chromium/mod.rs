//! A Chromium and what steers it, where they are there.

use std::path::{Path, PathBuf};

/// What is needed to look at a page.
pub struct Browser {
    /// The program.
    pub executable: PathBuf,
    /// A folder whose `node_modules` has puppeteer-core.
    pub puppeteer: PathBuf,
}

impl Browser {
    /// Everything needed, or nothing and a word about what is missing.
    pub fn find() -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
        let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
        let puppeteer = named("LIMITPOINT_PUPPETEER").unwrap_or(folder);
        let installed = puppeteer.join("node_modules/puppeteer-core").is_dir();
        assert!(
            installed || named("LIMITPOINT_PUPPETEER").is_none(),
            "LIMITPOINT_PUPPETEER is {}, which has no node_modules/puppeteer-core",
            puppeteer.display()
        );
        let known = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
        let executable = named("LIMITPOINT_BROWSER").or_else(|| known.iter().find_map(|name| on_path(name)));
        let missing = match &executable {
            _ if on_path("node").is_none() => "node is not on PATH",
            None => "no Chromium on PATH; set LIMITPOINT_BROWSER to one",
            Some(_) if !installed => {
                "set LIMITPOINT_PUPPETEER to a folder in which `npm install puppeteer-core` was run"
            }
            Some(path) => {
                assert!(path.is_file(), "LIMITPOINT_BROWSER is {}, which is no file", path.display());
                return executable.map(|executable| Self { executable, puppeteer });
            }
        };
        eprintln!("skipped: {missing}");
        None
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}
