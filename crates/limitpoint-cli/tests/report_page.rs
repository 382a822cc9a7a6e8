//! The report works in a browser: drawn completely, offline, without errors, at both widths and in both themes.
//!
//! Needs node, a Chromium (`LIMITPOINT_BROWSER`, or one on `PATH`) and puppeteer-core (`LIMITPOINT_PUPPETEER`: a folder
//! whose `node_modules` has it, or `tests/browser`). What is missing is said, and the tests are skipped; a variable
//! that leads nowhere is a failure. `LIMITPOINT_SCREENSHOTS` names a folder for pictures of the pages.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod chromium;

use std::path::Path;
use std::process::{Command, Output};

use chromium::Browser;

/// What [`fixture`] is made of.
mod records {
    pub use limitpoint::experiments::*;
}

#[path = "../../limitpoint/src/report/tests/fixture.rs"]
#[expect(dead_code, reason = "shared with the tests of the library")]
mod fixture;

#[test]
fn reports_work_in_a_browser() {
    let Some(browser) = Browser::find() else { return };
    for (record, analysis) in [fixture::digits(), fixture::plane(), fixture::sweep(3)] {
        let output = check(&browser, &record.name, &limitpoint::report::html(&record, &analysis));
        assert!(output.status.success(), "{}: {}", record.name, words(&output));
    }
}

/// The check itself must notice a page that is broken, each in its own way.
#[test]
fn broken_reports_are_noticed() {
    let Some(browser) = Browser::find() else { return };
    let (record, analysis) = fixture::plane();
    let page = limitpoint::report::html(&record, &analysis);
    let breaks = [
        ("a colour is gone", "const colour = ", "const colourless = ", "error in the page"),
        (
            "a picture is loaded",
            "</header>",
            "<img src=\"https://example.org/x.png\" alt=\"\"></header>",
            "example.org",
        ),
        ("a chip does nothing", "onclick: () => { toggle(key); }", "onclick: () => {}", "a chip hides its group"),
    ];
    for (what, from, to, complaint) in breaks {
        assert!(page.contains(from), "{what}: the page has no {from}");
        let output = check(&browser, "broken", &page.replacen(from, to, 1));
        assert!(!output.status.success(), "{what}, and nothing was said");
        assert!(words(&output).contains(complaint), "{what}, but: {}", words(&output));
    }
}

/// Writes a page and lets the script use it.
fn check(browser: &Browser, name: &str, page: &str) -> Output {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
    std::fs::create_dir_all(&folder).expect("a folder for the page");
    let file = folder.join("report.html");
    std::fs::write(&file, page).expect("the page is written");
    let mut command = Command::new("node");
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/report.mjs"))
        .arg(&file)
        .arg(&browser.executable);
    if let Some(pictures) = std::env::var_os("LIMITPOINT_SCREENSHOTS") {
        command.arg(Path::new(&pictures).join(name));
    }
    command.env("LIMITPOINT_PUPPETEER", &browser.puppeteer).output().expect("node starts")
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
