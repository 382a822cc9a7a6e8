//! What a finished run leaves behind, as plain values: what reports, tables and comparisons read.
//!
//! Nothing here computes; [`crate::experiments`] fills these in and `report` shows them.

use serde::{Deserialize, Serialize};

pub use crate::training::Metrics;

/// One experiment: the recipe's words and every run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ExperimentRecord {
    /// Name of the recipe, such as `digits`.
    pub name: String,
    /// A title for people.
    pub title: String,
    /// What the experiment asks, in a few sentences.
    pub description: String,
    /// The resolved recipe as TOML.
    pub config: String,
    /// Version of limitpoint that made it.
    pub version: String,
    /// The data, in a few words.
    pub data: DataRecord,
    /// Exact optima to compare with.
    #[serde(default)]
    pub references: Vec<ReferenceLine>,
    /// All runs, in the order of the recipe.
    pub runs: Vec<RunRecord>,
}

/// The data of an experiment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DataRecord {
    /// Name of the data set.
    pub name: String,
    /// Training examples.
    pub examples: usize,
    /// Test examples; 0 if there are none.
    pub test_examples: usize,
    /// Shape of an example: `[d]`, `[rows, columns]` or `[channels, rows, columns]`.
    pub input_shape: Vec<usize>,
    /// SHA-256 of inputs and targets, in hexadecimal.
    pub sha256: String,
}

/// One run: one optimiser from one seed at one point of a sweep.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunRecord {
    /// Name of the run and of its folder, unique in the experiment.
    pub name: String,
    /// Key of the optimiser or flow in the recipe, such as `sign`.
    pub optimiser: String,
    /// Its formula, for people.
    pub formula: String,
    /// The norm or potential the theory assigns to it, as it appears in column names (`linf`), where there is one.
    pub geometry: Option<String>,
    /// Whether that holds in the limit or by conjecture only, as for methods with memory; steepest descent is exact.
    #[serde(default)]
    pub geometry_in_limit: bool,
    /// The norm whose margin theory expects it to maximise, as columns name it; that of the horizon for mirror methods.
    #[serde(default)]
    pub own_norm: Option<String>,
    /// The largest fall of ln L in a step that its memory of gradients can follow, where it has one.
    #[serde(default)]
    pub forgets: Option<f64>,
    /// The seed.
    pub seed: u64,
    /// Settings a sweep chose for this run, such as `("model.width", "64")`.
    pub point: Vec<(String, String)>,
    /// Why it ended, in words.
    pub stop: String,
    /// Whether it ended by a rule of the recipe and not in trouble.
    pub healthy: bool,
    /// Whether it ended in trouble or could not be run; a run that still goes on is neither healthy nor failed.
    #[serde(default)]
    pub failed: bool,
    /// Steps made.
    pub steps: u64,
    /// Seconds it took, over all its parts.
    pub seconds: f64,
    /// Share of test examples classified correctly, where there are test examples.
    pub test_accuracy: Option<f64>,
    /// SHA-256 of the bits of the weights it ended with, where it is finished.
    #[serde(default)]
    pub weights: Option<String>,
    /// What a certificate says about it, where one was made.
    #[serde(default)]
    pub certificate: Option<CertificateRecord>,
    /// The measurements over time.
    pub metrics: Metrics,
    /// Weight histograms over time.
    pub histograms: Vec<HistogramRecord>,
    /// The trained model as pictures.
    pub portrait: Portrait,
}

/// Counts of |w|/max|w| in equal bins of [0, 1], per block, at one step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HistogramRecord {
    /// Accepted steps.
    pub step: u64,
    /// Name of each trainable block and its counts.
    pub blocks: Vec<(String, Vec<usize>)>,
}

/// The trained model as pictures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Portrait {
    /// Scores over the plane, where inputs have two features.
    pub decision: Option<DecisionMap>,
    /// Rows of the first layer as images, where inputs are images.
    pub features: Option<FeatureImages>,
}

/// Scores of a model with two inputs on a grid, and the training examples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DecisionMap {
    /// Grid positions of the first input.
    pub x: Vec<f64>,
    /// Grid positions of the second input.
    pub y: Vec<f64>,
    /// `scores[j][i]` at `(x[i], y[j])`: the score for one output, the winning class for several; divided by the
    /// largest absolute score where there is one output.
    pub scores: Vec<Vec<f64>>,
    /// Training examples (first input, second input, label).
    pub examples: Vec<(f64, f64, f64)>,
}

/// The strongest rows of the first layer as images.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FeatureImages {
    /// Rows of an image.
    pub rows: usize,
    /// Columns of an image.
    pub cols: usize,
    /// One image per unit, strongest first, row after row, divided by its largest absolute entry.
    pub images: Vec<Vec<f64>>,
    /// Strength of each unit relative to the strongest: ‖outgoing‖·‖incoming‖.
    pub strengths: Vec<f64>,
}

/// What the certificate of a run says, in words.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CertificateRecord {
    /// The claim.
    pub statement: String,
    /// Whether it is proven or refuted; absent where neither was possible.
    pub holds: Option<bool>,
    /// The verdict, with the reason where there is none.
    pub verdict: String,
    /// The decisive numbers.
    pub evidence: String,
}

/// A horizontal line in a plot: the exact optimum of a margin, once a judge gave it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReferenceLine {
    /// The column it belongs to, such as `margin.l2`.
    pub column: String,
    /// The value.
    pub value: f64,
    /// What it is, for the legend.
    pub label: String,
}

/// What is concluded from all runs together; computed from an [`ExperimentRecord`], shown by reports and tables.
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
    /// Indices into [`ExperimentRecord::runs`].
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
