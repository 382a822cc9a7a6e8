//! What all runs of an experiment come to together, as plain values: tables, findings, shares.
//!
//! Nothing here computes; [`crate::experiments`] fills these in and `report` shows them.

use serde::{Deserialize, Serialize};

/// What is concluded from all runs together; computed from an [`ExperimentRecord`](super::ExperimentRecord), shown by reports and tables.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Analysis {
    /// Runs that differ in their seed only, in the order of the record.
    pub groups: Vec<Group>,
    /// The table of final values.
    pub summary: Summary,
    /// What can be said in words.
    pub findings: Vec<Finding>,
    /// Runs that ended in trouble or could not be run.
    #[serde(default)]
    pub failures: Vec<FailedRun>,
    /// The same, those alike together.
    #[serde(default)]
    pub failure_kinds: Vec<FailureKind>,
    /// Margins as shares of the best, the picture a report begins with.
    #[serde(default)]
    pub standing: Standing,
    /// Final values against every setting of a sweep.
    #[serde(default)]
    pub sweeps: Vec<Sweep>,
    /// Final values against every two settings of a sweep.
    #[serde(default)]
    pub maps: Vec<SweepMap>,
    /// All final values of all groups, for files.
    #[serde(default)]
    pub table: LongTable,
}

/// A run that ended in trouble or could not be run; no mean counts it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FailedRun {
    /// Its name.
    pub run: String,
    /// Why.
    pub reason: String,
}

/// Runs that differ in their seed only.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Group {
    /// A label for legends and tables: the optimiser, then the sweep's settings (`sign`, `sign · model.width=64`).
    pub label: String,
    /// Key of the optimiser.
    pub optimiser: String,
    /// The sweep's settings (`model.width=64`); empty where nothing is swept.
    #[serde(default)]
    pub setting: String,
    /// Indices into [`ExperimentRecord::runs`](super::ExperimentRecord::runs).
    pub runs: Vec<usize>,
    /// Mean and spread over the seeds that did not fail, one for each column with at least one finite number.
    pub bands: Vec<Band>,
}

/// One column of a group over time: mean, smallest and largest over the seeds, at the steps all runs share.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Band {
    /// Name of the column.
    pub column: String,
    /// Steps.
    pub step: Vec<f64>,
    /// log₁₀ of the time travelled at these steps, mean over the seeds.
    pub log10_time: Vec<f64>,
    /// log₁₀ of the loss at these steps, mean over the seeds.
    pub log10_loss: Vec<f64>,
    /// Mean over the seeds.
    pub mean: Vec<f64>,
    /// Smallest over the seeds.
    pub low: Vec<f64>,
    /// Largest over the seeds.
    pub high: Vec<f64>,
}

/// Final values, one row per group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// What the columns are.
    pub columns: Vec<SummaryColumn>,
    /// One row per group.
    pub rows: Vec<SummaryRow>,
}

/// A column of the table of final values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SummaryColumn {
    /// Name of the measured column, such as `margin.l2`.
    pub key: String,
    /// A heading for people, such as `γ of ℓ2`.
    pub label: String,
    /// Whether the largest (true) or nothing (false) wins.
    pub contest: bool,
}

/// A row of the table of final values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SummaryRow {
    /// Label of the group.
    pub label: String,
    /// One cell per column.
    pub cells: Vec<SummaryCell>,
    /// Seeds the means are of: those of runs that did not fail.
    #[serde(default)]
    pub seeds: usize,
    /// All seeds of the group.
    #[serde(default)]
    pub of: usize,
}

impl SummaryRow {
    /// `5 seeds`, or `4 of 5 seeds` where runs failed.
    ///
    /// ```
    /// use limitpoint::experiments::SummaryRow;
    /// let row = |seeds, of| SummaryRow { seeds, of, ..Default::default() }.seeds_in_words();
    /// assert_eq!((row(4, 5).as_str(), row(5, 5).as_str(), row(1, 1).as_str()), ("4 of 5 seeds", "5 seeds", "1 seed"));
    /// ```
    pub fn seeds_in_words(&self) -> String {
        let noun = if self.of == 1 { "seed" } else { "seeds" };
        if self.seeds == self.of {
            format!("{} {noun}", self.of)
        } else {
            format!("{} of {} {noun}", self.seeds, self.of)
        }
    }
}

/// A final value: mean over the seeds, and half the distance between the largest and the smallest.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SummaryCell {
    /// Mean over the seeds; NaN where nothing was measured.
    pub mean: f64,
    /// Half the range over the seeds; 0 for one seed.
    pub spread: f64,
    /// Whether it is the largest of a contested column.
    pub winner: bool,
    /// The number as it is printed.
    pub text: String,
}

/// Something worth saying in words.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Finding {
    /// A heading of a few words.
    pub title: String,
    /// What was found, in at most two lines.
    pub text: String,
    /// Whether what theory expects was seen, of all it is expected of; absent where theory expects nothing.
    pub as_expected: Option<bool>,
    /// Whether it was seen of some of those it is expected of, though not of all.
    #[serde(default)]
    pub in_part: bool,
    /// What the numbers are and what theory says of them.
    #[serde(default)]
    pub explanation: String,
    /// The numbers.
    #[serde(default)]
    pub table: Table,
}

/// A small table of texts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Table {
    /// Headings.
    pub columns: Vec<String>,
    /// Rows, as long as the headings.
    pub rows: Vec<Vec<String>>,
}

/// Margins as shares: optimisers in rows, norms in columns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Standing {
    /// The norms.
    pub columns: Vec<StandingColumn>,
    /// One row per group; one per optimiser where there are too many groups to look at.
    pub rows: Vec<StandingRow>,
    /// Over how many settings of a sweep each share is a mean; 1 where it is none.
    pub settings: usize,
}

/// A norm of the standing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StandingColumn {
    /// Name of the measured column, such as `margin.l2`.
    pub key: String,
    /// The norm as people write it, `ℓ2`.
    pub label: String,
    /// The margin that counts as the whole, as it is printed; empty where every setting has its own.
    pub whole: String,
    /// Whether that is the exact optimum, and not the largest margin of the column.
    pub exact: bool,
}

/// A row of the standing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StandingRow {
    /// Label of the group or name of the optimiser.
    pub label: String,
    /// One cell per column.
    pub cells: Vec<StandingCell>,
}

/// A margin as a share of the best of its column.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StandingCell {
    /// The share in [0, 1]; 0 for margins that are not positive, NaN where nothing was measured.
    pub share: f64,
    /// The share as it is printed.
    pub text: String,
    /// The margin itself, as it is printed.
    pub margin: String,
    /// Whether theory names this norm for this optimiser.
    pub own: bool,
    /// Whether it is the largest of the column.
    pub first: bool,
}

/// Final values against one setting of a sweep.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sweep {
    /// The swept key, such as `model.width`.
    pub key: String,
    /// Its values as they were written, in the order they are drawn.
    pub values: Vec<String>,
    /// The values as numbers; empty where one of them is none.
    pub places: Vec<f64>,
    /// Whether the values are spread like powers rather than evenly.
    pub logarithmic: bool,
    /// Other swept keys, over which means are taken.
    pub others: Vec<String>,
    /// What is drawn.
    pub panels: Vec<SweepPanel>,
}

/// One quantity against a setting.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SweepPanel {
    /// The measured column, such as `margin.l2`.
    pub column: String,
    /// What it is, for people.
    pub label: String,
    /// One line per optimiser.
    pub lines: Vec<SweepLine>,
}

/// One optimiser in a panel: at every value mean, smallest and largest over the runs that did not fail.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SweepLine {
    /// Key of the optimiser.
    pub optimiser: String,
    /// Means; NaN where no run has a number.
    pub mean: Vec<f64>,
    /// Smallest values.
    pub low: Vec<f64>,
    /// Largest values.
    pub high: Vec<f64>,
    /// How many runs each mean is of.
    pub runs: Vec<usize>,
}

/// Final values against two settings of a sweep.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SweepMap {
    /// The key across and the key up.
    pub keys: [String; 2],
    /// Their values as they were written, in the order they are drawn.
    pub values: [Vec<String>; 2],
    /// Other swept keys, over which means are taken.
    pub others: Vec<String>,
    /// What is drawn.
    pub panels: Vec<MapPanel>,
}

/// One quantity of one optimiser against two settings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MapPanel {
    /// The measured column, such as `margin.l2`.
    pub column: String,
    /// What it is, for people.
    pub label: String,
    /// Key of the optimiser.
    pub optimiser: String,
    /// Means by row: one row for every value of the key up; NaN where no run has a number.
    pub mean: Vec<Vec<f64>>,
    /// How many runs each mean is of.
    pub runs: Vec<Vec<usize>>,
}

/// Final values, one row per group and one per run, with full precision: settings first, then quantities.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LongTable {
    /// The swept keys.
    pub settings: Vec<String>,
    /// Name and heading of every quantity.
    pub quantities: Vec<(String, String)>,
    /// One row per group.
    pub rows: Vec<LongRow>,
    /// One row per run.
    pub runs: Vec<LongRun>,
}

/// A run in the long table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LongRun {
    /// Its name.
    pub run: String,
    /// Key of the optimiser.
    pub optimiser: String,
    /// Values of the settings; empty where it has none.
    pub settings: Vec<String>,
    /// Its seed.
    pub seed: u64,
    /// Steps made.
    pub steps: u64,
    /// `healthy`, `failed`, or `going on`.
    pub state: String,
    /// Every quantity; NaN where it has none.
    pub cells: Vec<f64>,
}

/// A row of the long table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LongRow {
    /// Key of the optimiser.
    pub optimiser: String,
    /// Values of the settings; empty where a group has none.
    pub settings: Vec<String>,
    /// Seeds that did not fail.
    pub seeds: usize,
    /// All seeds of the group.
    pub of: usize,
    /// Mean, smallest and largest of every quantity over those seeds; NaN where none has a number.
    pub cells: Vec<[f64; 3]>,
}

/// Failed runs of one optimiser, for the same reason up to its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FailureKind {
    /// Key of the optimiser.
    pub optimiser: String,
    /// How many runs.
    pub runs: usize,
    /// Of how many of this optimiser.
    pub of: usize,
    /// Which settings and seeds, in words.
    pub which: String,
    /// The reason of the first of them.
    pub reason: String,
}
