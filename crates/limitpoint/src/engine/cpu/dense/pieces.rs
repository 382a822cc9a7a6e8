//! Batches of many examples, piece by piece.
//!
//! The hidden units of 60,000 examples fill the memory and are used once; those of a thousand stay in the cache. So
//! scores of a large batch are made piece by piece, keeping nothing, and its gradient is the sum of its pieces'
//! gradients, each of which repeats its forward pass.

use super::DenseNetwork;
use super::raw::Raw;
use crate::linalg::Real;
use crate::params::At;

/// Examples of a piece: whole panels of every width, and few enough for their hidden units to stay in the cache. The
/// backward pass of a piece repeats its forward pass, which costs a third more products and saves going through memory
/// with all hidden units of all examples.
const PIECE: usize = 960;
/// Forward through a sparse lowest layer, whose bundles want to stay in the cache besides.
const SPARSE_PIECE: usize = 144;

impl<T: Real> DenseNetwork<T> {
    /// Computes all scores piece by piece, keeping nothing else; `look` sees how many examples of the hidden buffers
    /// are those of a piece.
    pub(super) fn forward_in_pieces(&mut self, at: At<'_>, mut look: impl FnMut(&Self, usize)) {
        let piece = if self.sparse.is_some() { SPARSE_PIECE } else { PIECE };
        self.kept = false;
        self.shape_buffers(piece);
        let weights = Raw(self.weights(at));
        let width = self.panel_width();
        for first in (0..self.bound.examples).step_by(piece) {
            let count = piece.min(self.bound.examples - first);
            if let Some(sparse) = &mut self.sparse {
                sparse.take(&self.team, &self.source, count, |n| first + n);
            }
            self.forward_panels(weights, first / width..(first + count).div_ceil(width), false);
            look(self, count);
        }
    }

    /// Makes the examples `row(0)`, …, `row(count − 1)` the batch.
    pub(super) fn take_batch(&mut self, count: usize, row: impl Fn(usize) -> usize + Sync) {
        let source = &self.source;
        self.taken.clear();
        self.taken.extend((0..count).map(&row));
        if let Some(sparse) = &mut self.sparse {
            return sparse.take(&self.team, source, count, row);
        }
        self.batch.forward.reshape(source.cols(), count);
        self.batch.turned.reshape(count, source.cols());
        self.batch.forward.pack_columns(0..count, |n| source.row(row(n)));
        self.batch.turned.pack_rows(0..count, |n| source.row(row(n)));
    }

    /// Fills the gradient piece by piece, each as a batch of its own.
    pub(super) fn backward_in_pieces(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        let (examples, outputs) = (self.bound.examples, self.bound.outputs);
        assert_eq!(cotangent.len(), examples * outputs, "one cotangent per score");
        gradient.fill(0.0);
        let (mut own, scores) = (std::mem::take(&mut self.piece_gradient), std::mem::take(&mut self.bound.scores));
        own.resize(gradient.len(), 0.0);
        self.in_batch = true;
        for first in (0..examples).step_by(PIECE) {
            self.bound.examples = PIECE.min(examples - first);
            self.bound.scores.resize(self.bound.examples * outputs, 0.0);
            self.take_batch(self.bound.examples, |n| first + n);
            self.score_whole(at);
            let cotangent = &cotangent[first * outputs..(first + self.bound.examples) * outputs];
            self.backward(at.entries(), cotangent, Some(&mut own));
            crate::linalg::add_scaled(gradient, 1.0, &own);
        }
        (self.in_batch, self.bound.examples, self.bound.scores, self.piece_gradient) = (false, examples, scores, own);
    }
}

#[cfg(test)]
mod tests {
    use super::super::chain::Chain;
    use super::super::plan::{LARGE, Partition, Plan};
    use super::*;
    use crate::engine::cpu::{self, tests::normal};
    use crate::engine::{Compute, Forward, Tangents};
    use crate::linalg::{Matrix, add_scaled};
    use crate::models::{Activation, Biases, ModelSpec, OutputScale, Shape};

    #[test]
    fn a_large_batch_has_the_scores_and_gradients_of_its_parts() {
        let examples = LARGE + 7;
        // the last is mostly zero
        for (features, widths, outputs) in [(5, vec![6, 9], 3), (5, vec![6], 1), (5, vec![], 2), (64, vec![6, 9], 3)] {
            let mut inputs = Matrix { rows: examples, cols: features, data: normal(examples * features, 3, "data") };
            if features == 64 {
                inputs.data.iter_mut().enumerate().filter(|(i, _)| i % 7 > 0).for_each(|(_, x)| *x = 0.0);
            }
            let inputs = inputs.into();
            let spec = ModelSpec::Network {
                widths,
                activation: Activation::Relu,
                biases: Biases::All,
                frozen: Vec::new(),
                output_scale: OutputScale::Factor(0.5),
            };
            let architecture = spec.architecture(&Shape::vector(features), outputs).unwrap();
            let chain = Chain::of(&architecture).unwrap();
            let chosen = Plan::choose::<f64>(&chain, &inputs);
            assert_eq!(chosen.partition == Partition::Pieces, features == 64, "{chosen:?}");
            let pieces = Plan { partition: Partition::Pieces, ..chosen };
            for threads in [1, 2] {
                let mut network = DenseNetwork::<f64>::planned(&architecture, &chain, pieces, &inputs, threads);
                let model: &mut dyn Tangents = &mut network;
                let params = normal(model.layout().len(), 4, "init");
                let cotangent = normal(examples * outputs, 5, "noise");
                let scores = model.scores(&params).to_vec();
                let mut gradient = vec![0.0; params.len()];
                model.resume().pull_back(&params, &cotangent, &mut gradient);
                let smallest = model.smallest_preactivation(&params).unwrap_or(f64::INFINITY);
                let (mut sum, mut part) = (vec![0.0; params.len()], vec![0.0; params.len()]);
                let mut least = f64::INFINITY;
                for first in (0..examples).step_by(500) {
                    let rows: Vec<usize> = (first..(first + 500).min(examples)).collect();
                    let range = first * outputs..(first + rows.len()) * outputs;
                    model.select(Some(&rows));
                    assert_eq!(model.scores(&params), &scores[range.clone()], "examples from {first}");
                    model.resume().pull_back(&params, &cotangent[range], &mut part);
                    add_scaled(&mut sum, 1.0, &part);
                    least = least.min(model.smallest_preactivation(&params).unwrap_or(f64::INFINITY));
                }
                let largest = sum.iter().fold(0.0f64, |most, g| most.max(g.abs()));
                for (a, b) in gradient.iter().zip(&sum) {
                    assert!((a - b).abs() <= 1e-12 * largest, "{a} against {b}");
                }
                assert_eq!(smallest, least);
                model.select(None);
                assert_eq!(model.scores(&params), scores, "back to all examples");
            }
        }
    }

    /// Panels of a batch may be wider than those of all examples, and depths beyond one pass wait in a buffer.
    #[test]
    fn a_batch_of_any_size_has_the_scores_of_its_examples() {
        let lanes = crate::linalg::lanes::<f64>();
        for examples in [lanes, 2 * lanes, 3 * lanes, 4 * lanes, 5 * lanes, 7 * lanes] {
            let inputs = Matrix { rows: examples, cols: 300, data: normal(examples * 300, 6, "data") };
            let mut model = cpu::bind(&ModelSpec::relu(&[40]), &inputs, 3, Compute::default()).unwrap();
            let params = normal(model.layout().len(), 7, "init");
            let scores = model.scores(&params).to_vec();
            for count in 1..=examples {
                let rows: Vec<usize> = (0..count).collect();
                model.select(Some(&rows));
                assert_eq!(model.scores(&params), &scores[..3 * count], "{count} of {examples}");
            }
        }
    }
}
