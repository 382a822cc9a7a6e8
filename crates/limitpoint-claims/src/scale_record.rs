//! What came of many claims at one scale, small enough to keep beside the code: a record for programs, a page for people.
//!
//! Everything of [`ClaimRecord`] but its figures, with the machine and what was not tried.

use limitpoint::experiments::Machine;
use serde::{Deserialize, Serialize};

use crate::{ClaimRecord, Scale, claims, summary};

/// Claims that were tried at one scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScaleRecord {
    /// How much was run.
    pub scale: Scale,
    /// Version of the program.
    pub version: String,
    /// Where it ran.
    pub machine: Machine,
    /// Seconds, over all claims.
    pub seconds: f64,
    /// How many came to which status.
    pub summary: String,
    /// Claims of the same papers that were not tried.
    pub not_tried: Vec<String>,
    /// The claims, without figures.
    pub claims: Vec<ClaimRecord>,
}

impl ScaleRecord {
    /// The record of claims that this machine tried.
    ///
    /// ```
    /// use limitpoint_claims::{Lab, Scale, ScaleRecord, find_claims};
    /// let claim = find_claims("B.prop2a")?[0].run(&Lab::new(Scale::Quick));
    /// let record = ScaleRecord::new(Scale::Quick, &[claim]);
    /// assert_eq!(record.summary, "reproduced 1");
    /// assert!(record.not_tried.contains(&"B.thm5".to_owned()));
    /// # Ok::<(), limitpoint_claims::ClaimError>(())
    /// ```
    pub fn new(scale: Scale, records: &[ClaimRecord]) -> Self {
        let tried = |id: &str| records.iter().any(|record| record.id == id);
        let of_a_tried_paper = |id: &str| records.iter().any(|record| paper(&record.id) == paper(id));
        let left = claims().into_iter().map(|claim| claim.id).filter(|id| of_a_tried_paper(id) && !tried(id));
        Self {
            scale,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: Machine::this(),
            seconds: records.iter().map(|record| record.seconds).sum(),
            summary: summary(records.iter().map(|record| record.status)),
            not_tried: left.map(str::to_owned).collect(),
            claims: records.iter().map(|record| ClaimRecord { figures: Vec::new(), ..record.clone() }).collect(),
        }
    }

    /// The page: a table of all claims, then what fails, with its numbers.
    pub fn page(&self, title: &str) -> String {
        let Machine { platform, simd, cores, .. } = &self.machine;
        // the name of the instruction set without the list of its parts
        let simd = simd.split('(').next().unwrap_or_default();
        let mut text = format!(
            "# {title}, {} scale\n\n{}. Version {}, {platform}, {simd}, {cores} cores; {:.0} seconds in all.\n\n",
            self.scale.word(),
            capital(&self.summary),
            self.version,
            self.seconds
        );
        if !self.not_tried.is_empty() {
            text += &format!("Not tried: {}.\n\n", self.not_tried.join(", "));
        }
        let surprises: Vec<&str> =
            self.claims.iter().filter(|claim| !claim.as_recorded()).map(|claim| claim.id.as_str()).collect();
        if !surprises.is_empty() {
            text += &format!(
                "Another status than the one on record, which is that of the quick scale: {}.\n\n",
                surprises.join(", ")
            );
        }
        text += "| claim | statement | status | on record | checks that hold | seconds |\n|---|---|---|---|---|---|\n";
        for claim in &self.claims {
            text += &format!(
                "| {} | {} | {} | {} | {} of {} | {:.1} |\n",
                claim.id,
                cell(&claim.statement),
                claim.status,
                claim.on_record,
                claim.holding(),
                claim.checks.len(),
                claim.seconds
            );
        }
        let failing = self.claims.iter().filter(|claim| claim.holding() < claim.checks.len());
        for claim in failing {
            text += &format!("\n## {}: {}\n\n", claim.id, claim.status);
            for line in claim.setting.lines(2) {
                text += &format!("- {}\n", plain(&line));
            }
            let fails: Vec<_> = claim.checks.iter().filter(|check| !check.holds).collect();
            for check in fails.iter().take(MOST) {
                let origin = check.origin.words();
                text += &format!(
                    "- fails: {}: {}, expected {} ({origin})\n",
                    plain(&check.what),
                    plain(&check.measured),
                    plain(&check.expected)
                );
            }
            if fails.len() > MOST {
                text += &format!("- and {} more\n", fails.len() - MOST);
            }
        }
        text
    }
}

/// Comparisons that fail are shown up to this many for a claim; the record has all.
const MOST: usize = 12;

fn paper(id: &str) -> &str {
    id.split('.').next().unwrap_or_default()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Text that Markdown leaves as it is.
fn plain(text: &str) -> String {
    let special = |letter: char| matches!(letter, '*' | '_' | '<' | '[' | ']' | '`' | '$' | '\\');
    text.chars().fold(String::new(), |mut plain, letter| {
        if special(letter) {
            plain.push('\\');
        }
        plain.push(letter);
        plain
    })
}

/// Plain text in a table.
fn cell(text: &str) -> String {
    plain(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lab, Status, find_claims};

    #[test]
    fn the_page_tells_what_fails_and_what_was_not_tried() {
        let claim = find_claims("B.prop2a").unwrap()[0].run(&Lab::new(Scale::Quick));
        let mut bent = claim.clone();
        bent.status = Status::NotReproduced;
        bent.checks[0].holds = false;
        bent.checks[0].what = "a*b|c".into();
        let page = ScaleRecord::new(Scale::Quick, &[bent]).page("Claims of paper B");
        assert!(page.starts_with("# Claims of paper B, quick scale\n\nNot reproduced 1. Version"), "{page}");
        assert!(page.contains("Not tried: B.prop1, ") && page.contains("- fails: a\\*b|c: "), "{page}");
        assert!(page.contains("on record, which is that of the quick scale: B.prop2a."), "{page}");
        let page = ScaleRecord::new(Scale::Quick, &[claim]).page("Claims of paper B");
        assert!(!page.contains("fails") && !page.contains("Another status"), "{page}");
    }
}
