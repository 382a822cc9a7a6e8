//! What the pages without a script share: head, style, heading and facts.

use super::html::fill;

const PAGE: &str = include_str!("assets/sheet.html");
const SHARED: &str = concat!(include_str!("assets/style.css"), include_str!("assets/gallery.css"));

/// A page that loads nothing; all of it is HTML already, except the style.
#[derive(Debug, Clone, Copy)]
pub struct Sheet<'a> {
    /// What stands beside the name of the program.
    pub kind: &'a str,
    /// In the title bar of the browser.
    pub title: &'a str,
    /// Above everything.
    pub heading: &'a str,
    /// Rules of this page alone.
    pub style: &'a str,
    /// Items of a list; the version comes last.
    pub facts: &'a str,
    /// What follows the facts.
    pub content: &'a str,
}

impl Sheet<'_> {
    /// The whole page.
    pub fn page(&self) -> String {
        let values = [
            ("kind", self.kind),
            ("title", self.title),
            ("heading", self.heading),
            ("shared", SHARED),
            ("style", self.style),
            ("facts", self.facts),
            ("version", env!("CARGO_PKG_VERSION")),
            ("content", self.content),
        ];
        fill(PAGE, &values)
    }
}
