//! What a finished run leaves behind, as plain values: what reports, tables and comparisons read.
//!
//! Nothing here computes; [`crate::experiments`] fills these in and `report` shows them.

use serde::{Deserialize, Serialize};

use crate::engine::Device;
use crate::models::KernelNorms;
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
    /// Where its model was computed, in its last part.
    #[serde(default, skip_serializing_if = "Device::is_cpu")]
    pub device: Device,
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
    /// Rows of the first layer as images, where inputs are images; its kernels in a network of images.
    pub features: Option<FeatureImages>,
    /// What the first training examples become in the layers of a network of images, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<ActivationMaps>,
    /// Norms of all layers of a network of images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<KernelNorms>,
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

/// What an example becomes in a layer of images.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ActivationMaps {
    /// Number of the training example, from 0.
    pub example: usize,
    /// The layer, by its number among the layers of images and in words.
    pub layer: String,
    /// Rows of an image.
    pub rows: usize,
    /// Columns of an image.
    pub cols: usize,
    /// One image for each of the first channels, row after row, divided by the largest absolute number of all of them.
    pub images: Vec<Vec<f64>>,
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
    /// Bounds of τ, how far the weights are from a KKT point, where the certificate is about that.
    #[serde(default)]
    pub tau: Option<[f64; 2]>,
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
