//! What a dense network is made of.

use crate::models::{Activation, DegreeGroup, Homogeneity, ModelError};
use crate::params::ParamLayout;

/// What a dense network is made of; the checked form of the specification.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::models) struct Architecture {
    pub inputs: usize,
    pub widths: Vec<usize>,
    pub outputs: usize,
    pub activation: Activation,
    /// Whether layer l (from 0) has a bias.
    pub biases: Vec<bool>,
    /// Whether layer l is frozen.
    pub frozen: Vec<bool>,
    pub output_scale: f64,
}

impl Architecture {
    pub(super) fn sizes(&self) -> Vec<usize> {
        [&[self.inputs], self.widths.as_slice(), &[self.outputs]].concat()
    }

    /// Blocks `layer1.weight`, `layer1.bias`, …, in order.
    pub fn layout(&self) -> Result<ParamLayout, ModelError> {
        let sizes = self.sizes();
        let mut names = Vec::new();
        for l in 0..sizes.len() - 1 {
            names.push((format!("layer{}.weight", l + 1), sizes[l + 1], sizes[l], self.frozen[l]));
            if self.biases[l] {
                names.push((format!("layer{}.bias", l + 1), sizes[l + 1], 1, self.frozen[l]));
            }
        }
        let frozen: Vec<&str> = names.iter().filter(|name| name.3).map(|name| name.0.as_str()).collect();
        Ok(ParamLayout::new(names.iter().map(|(name, rows, cols, _)| (name.as_str(), *rows, *cols)))?
            .freeze(&frozen)?)
    }

    /// Degrees by composition: layer l has the product of the activation degrees after it. A bias is harmless only in
    /// the lowest trained layer, where it scales with the weights; above a trained layer it breaks homogeneity.
    pub fn homogeneity(&self) -> Option<Homogeneity> {
        let layers = self.widths.len() + 1;
        let lowest = (0..layers).find(|&l| !self.frozen[l])?;
        if (lowest + 1..layers).any(|l| self.biases[l]) {
            return None;
        }
        let (mut groups, mut block) = (Vec::new(), 0);
        for l in 0..layers {
            let blocks: Vec<usize> = (block..=block + usize::from(self.biases[l])).collect();
            block += blocks.len();
            if !self.frozen[l] {
                let passed = (layers - 1 - l) as i32;
                groups.push(DegreeGroup { blocks, degree: f64::from(self.activation.degree()).powi(passed) });
            }
        }
        Some(Homogeneity::of_groups(groups))
    }
}
