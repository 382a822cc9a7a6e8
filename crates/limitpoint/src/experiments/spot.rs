//! Places in files and overrides, and how they are shown.

use std::fmt;
use std::sync::Arc;

/// A text that values were read from: a file, a built-in, or one override.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// Name of the file or of the built-in; of a text that stands alone, what it should be, such as `optimiser`.
    pub name: String,
    /// What it says.
    pub content: String,
    /// Whether it is an override of the command line.
    pub is_override: bool,
}

/// A place in a file or an override.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    text: Arc<Text>,
    start: usize,
    end: usize,
}

impl Spot {
    pub(super) fn new(text: &Arc<Text>, range: std::ops::Range<usize>) -> Self {
        Self { text: Arc::clone(text), start: range.start, end: range.end }
    }

    /// The place of a value that comes from the defaults.
    pub(super) fn nowhere() -> Self {
        let text = Text { name: "defaults".into(), content: String::new(), is_override: false };
        Self { text: Arc::new(text), start: 0, end: 0 }
    }

    /// The file, the built-in, or the whole override.
    pub fn origin(&self) -> &str {
        if self.text.is_override { &self.text.content } else { &self.text.name }
    }

    /// Line, from 1.
    pub fn line(&self) -> usize {
        self.before().matches('\n').count() + 1
    }

    /// Column in characters, from 1.
    pub fn column(&self) -> usize {
        self.before().rsplit('\n').next().unwrap_or_default().chars().count() + 1
    }

    fn before(&self) -> &str {
        let mut end = self.start.min(self.text.content.len());
        while !self.text.content.is_char_boundary(end) {
            end -= 1;
        }
        &self.text.content[..end]
    }

    /// The line with a caret under the place; empty for very long and empty lines.
    pub(super) fn excerpt(&self) -> String {
        const LONGEST: usize = 160;
        let line = self.text.content.lines().nth(self.line() - 1).unwrap_or_default();
        let (length, column) = (line.chars().count(), self.column());
        if line.trim().is_empty() || length > LONGEST {
            return String::new();
        }
        let shown: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let marked = self.text.content.get(self.start..self.end).unwrap_or_default();
        let width = marked.lines().next().unwrap_or_default().chars().count();
        let carets = "^".repeat(width.clamp(1, (length + 1).saturating_sub(column).max(1)));
        format!("\n  {shown}\n  {}{carets}", " ".repeat(column - 1))
    }
}

/// `experiment.toml:3:1`, or `override 'seed=x'`.
impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_override {
            let what = if self.text.name.is_empty() { "override" } else { &self.text.name };
            write!(f, "{what} '{}'", self.text.content)
        } else {
            write!(f, "{}:{}:{}", self.text.name, self.line(), self.column())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(content: &str, range: std::ops::Range<usize>) -> Spot {
        let text = Text { name: "a.toml".into(), content: content.into(), is_override: false };
        Spot::new(&Arc::new(text), range)
    }

    #[test]
    fn places_count_lines_and_characters() {
        let place = spot("ä = 1\nβγ = [2]\n", 14..17);
        assert_eq!((place.line(), place.column()), (2, 6));
        let place = spot("x = 1\nloss = 2\n", 6..10);
        assert_eq!(place.to_string(), "a.toml:2:1");
        assert_eq!(place.excerpt(), "\n  loss = 2\n  ^^^^");
        // in the middle of a letter, and past the end
        assert_eq!(spot("ä", 1..2).column(), 1);
        assert_eq!(spot("ab", 9..12).column(), 3);
    }
}
