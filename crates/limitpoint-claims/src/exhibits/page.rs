//! A record as a page that people read, and the page that leads to all of them.

use super::reading::{Row, short};
use super::record::{ExhibitRecord, Extent};
use super::{Exhibit, MadeOf, exhibits};

/// Seconds, minutes or hours.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}

fn with_spread(value: Option<f64>, spread: Option<f64>) -> String {
    match (value, spread) {
        (None, _) => "–".into(),
        (Some(value), None) => short(value),
        (Some(value), Some(spread)) => format!("{} ± {}", short(value), short(spread)),
    }
}

fn line(row: &Row) -> String {
    let ratio = row.ratio().map_or_else(|| "–".into(), |ratio| format!("{ratio:.3}"));
    let ours = with_spread(row.ours, row.spread);
    format!("| {} | {} | {ours} | {ratio} | {} |\n", row.what, with_spread(row.printed, row.printed_spread), row.runs)
}

impl ExhibitRecord {
    /// The page: print beside ours, figures, words, what was run and what was not.
    pub fn page(&self) -> String {
        let mut text = format!("# {}\n\n{}.\n\n", title(&self.id), self.shows);
        text += &format!("State: **{}**.\n\n", self.extent.words());
        if !self.reading.rows.is_empty() {
            text += "| number | print | ours | ours over print | runs |\n|---|---|---|---|---|\n";
            text.extend(self.reading.rows.iter().map(line));
            text += "\nValues with ± are means and standard deviations over runs.\n\n";
        }
        for (figure, sketch) in self.figure_names().iter().zip(&self.reading.figures) {
            text += &format!("{}:\n\n![{}]({figure}.svg)\n\n", sketch.title, sketch.name);
        }
        if !self.reading.words.is_empty() {
            text += &format!("{}\n\n", self.reading.words.join(" "));
        }
        if !self.departures.is_empty() {
            text += "Where print is silent or could not be followed:\n\n";
            text.extend(self.departures.iter().map(|words| format!("- {words}\n")));
            text += "\n";
        }
        text += "## What was run\n\n";
        for set in &self.sets {
            text += &format!(
                "- `{}`: {} of {} runs finished, {} of {} seeds",
                set.setting, set.finished, set.planned, set.seeds[0], set.seeds[1]
            );
            if set.seconds > 0.0 {
                text += &format!("; all runs together took {}", duration(set.seconds));
            }
            if set.on_cards > 0 {
                text += &format!(", {} of them on a card", set.on_cards);
            }
            if set.data.examples > 0 {
                let sum = set.data.sha256.get(..12).unwrap_or_default();
                text += &format!("; {} examples of {} (SHA-256 {sum}…)", set.data.examples, set.data.name);
            }
            text += ".\n";
            for (name, steps, target) in &set.begun {
                let of = target.map_or(String::new(), |target| format!(" of {target}"));
                text += &format!("  - `{name}` has made {steps}{of} steps.\n");
            }
            text.extend(set.failed.iter().map(|words| format!("  - failed: {words}.\n")));
        }
        for claim in &self.claims {
            text += &format!("- claim {} at the paper's scale, {:.1} s.\n", claim.id, claim.seconds);
        }
        text += &format!(
            "\nAgain: `limitpoint reproduce {} --scale paper`. Read by limitpoint {} on {} (vectors {}, {} cores).\n",
            self.id,
            self.version,
            self.machine.platform,
            self.machine.simd.split('(').next().unwrap_or_default(),
            self.machine.cores
        );
        text
    }

    /// The names of its figures, without the ending.
    pub fn figure_names(&self) -> Vec<String> {
        self.reading.figures.iter().map(|figure| format!("{}-{}", self.id, figure.name)).collect()
    }
}

/// "Table 2 of paper C" for `C.tab2`.
pub(super) fn title(id: &str) -> String {
    let (paper, rest) = id.split_once('.').unwrap_or(("", id));
    let number = rest.trim_start_matches(|letter: char| letter.is_alphabetic());
    let kind = if rest.starts_with("tab") { "Table" } else { "Figure" };
    format!("{kind} {number} of paper {paper}")
}

/// The page that leads to all records: every figure and table of the papers and how far it has come.
pub fn index(records: &[ExhibitRecord]) -> String {
    let count = |extent: Extent| records.iter().filter(|record| record.extent == extent).count();
    let all = exhibits();
    let asked = all.iter().filter(|exhibit| !matches!(exhibit.made_of, MadeOf::Illustration)).count();
    let mut text = format!(
        "# Figures and tables of the papers, in the papers' own settings\n\n{asked} of {} can be computed; one is an illustration. \
         Complete: {}. In part: {}. Not run: {}. `limitpoint reproduce --scale paper --plan` says what each would take on \
         your machine.\n\n| exhibit | what it shows | state | runs | ours over print |\n|---|---|---|---|---|\n",
        all.len(),
        count(Extent::Complete),
        count(Extent::Partial),
        asked - count(Extent::Complete) - count(Extent::Partial),
    );
    for exhibit in &all {
        text += &index_line(exhibit, records.iter().find(|record| record.id == exhibit.id));
    }
    text += "\nOurs over print is the geometric mean over all numbers of an exhibit that are printed, and their number; – where print has \
             only a picture, or no number of ours is there yet.\n";
    text
}

fn index_line(exhibit: &Exhibit, record: Option<&ExhibitRecord>) -> String {
    let Some(record) = record else {
        let state = if matches!(exhibit.made_of, MadeOf::Illustration) { "nothing to compute" } else { "not run" };
        return format!("| {} | {} | {state} | – | – |\n", exhibit.id, exhibit.shows);
    };
    let runs = |count: fn(&super::record::SetRecord) -> usize| record.sets.iter().map(count).sum::<usize>();
    let done = if record.sets.is_empty() {
        format!("{} claim{}", record.claims.len(), if record.claims.len() == 1 { "" } else { "s" })
    } else {
        format!("{} of {}", runs(|set| set.finished), runs(|set| set.planned))
    };
    let ratio = record.typical_ratio().map_or_else(|| "–".into(), |(ratio, count)| format!("{ratio:.3} ({count})"));
    format!("| [{0}]({0}.md) | {1} | {2} | {done} | {ratio} |\n", record.id, record.shows, record.extent.words())
}
