//! What a proof says about a dense network.

use serde::{Deserialize, Serialize};

/// The live units, their sides, and what else the equations are made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenseNetwork {
    /// Active margins, counted over all examples and, with several classes, all other classes of an example.
    pub margins: Vec<usize>,
    /// Live units of every hidden layer; all others have no weights.
    pub units: Vec<Vec<usize>>,
    /// For every hidden layer, live unit and active example `+` (on), `-` (off) or `0` (kink).
    pub sides: Vec<Vec<String>>,
    /// Pairs of units that can be turned into each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// Weights of frozen layers, between live units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frozen: Vec<f64>,
}

/// Two live units of a hidden layer, by their place in [`DenseNetwork::units`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The hidden layer, from 0.
    pub layer: usize,
    /// The two units.
    pub units: (usize, usize),
}
