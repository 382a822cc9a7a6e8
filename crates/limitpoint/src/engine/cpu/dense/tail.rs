//! Dense layers above layers of another kind: their inputs are given batch by batch, and the signals of these inputs
//! are asked back.

use std::sync::Arc;

use super::chain::Chain;
use super::plan::{Head, Lowest, Partition, Plan};
use super::raw::{Raw, RawPanels};
use super::{DenseNetwork, Product, share, waiting_length};
use crate::engine::Evaluator;
use crate::linalg::tile::Rows;
use crate::linalg::{Aligned, Matrix, Panels, Real, Team};
use crate::models::{Architecture, ModelError};
use crate::params::At;

impl<T: Real> DenseNetwork<T> {
    /// Layers whose inputs somebody else computes, up to `examples` at a time, with the same threads.
    pub(in crate::engine::cpu) fn tail(
        architecture: &Architecture,
        examples: usize,
        team: &Arc<Team>,
    ) -> Result<Self, ModelError> {
        let chain = Chain::of(architecture)?;
        let head = if chain.head().outputs == 1 && !chain.hidden().is_empty() { Head::Fused } else { Head::Plain };
        let plan = Plan { head, lowest: Lowest::Panels, partition: Partition::Whole };
        let none = Matrix::zeros(0, chain.inputs()).into();
        let mut network = Self::planned(architecture, &chain, plan, &none, 1);
        network.waiting = Aligned::zeros(waiting_length::<T>(&chain, examples));
        network.team = Arc::clone(team);
        network.in_batch = true;
        network.wants_all_signals = true;
        Ok(network)
    }

    /// Scores of a batch whose inputs `fill` writes as (features × examples) and as (examples × features).
    pub(in crate::engine::cpu) fn score_given(
        &mut self,
        at: At<'_>,
        count: usize,
        fill: impl FnOnce(&Team, RawPanels<T>, RawPanels<T>),
    ) {
        let features = self.layers[0].inputs;
        self.bound.resize(count);
        self.batch.forward.reshape(features, count);
        self.batch.turned.reshape(count, features);
        fill(&self.team, RawPanels::new(&mut self.batch.forward), RawPanels::new(&mut self.batch.turned));
        self.score_whole(at);
    }

    /// The gradient, and the signals of the inputs (features × examples).
    pub(in crate::engine::cpu) fn pull_back_given(
        &mut self,
        at: At<'_>,
        cotangent: &[f64],
        gradient: &mut [f64],
        below: &mut Panels<T>,
    ) {
        self.pull_back(at, cotangent, gradient);
        let weights = Raw(self.weights_at(at.entries.as_ptr()));
        let (layer, arch) = (&self.layers[0], self.arch);
        let signals = self.hidden.first().map_or(&self.outer, |hidden| &hidden.signals);
        below.reshape(layer.inputs, self.bound.examples);
        let out = RawPanels::new(below);
        let block = 8 * layer.inputs.div_ceil(8 * 32).max(1);
        let cost = layer.inputs * layer.outputs * self.bound.examples;
        share(&self.team, layer.inputs.div_ceil(block), cost, |blocks| {
            let rows = blocks.start * block..(blocks.end * block).min(layer.inputs);
            arch.dispatch(Product {
                rows: rows.clone(),
                weights: Rows { start: weights.at(layer.weight), row: 1, step: layer.inputs },
                bias: None,
                input: signals,
                panels: 0..signals.count(),
                out,
            });
        });
    }
}
