//! Dense layers above layers of another kind: their inputs are given batch by batch, and the signals of these inputs
//! are asked back.

use std::sync::Arc;

use super::chain::{Chain, Stage};
use super::forward::{After, Forward};
use super::plan::{Head, Lowest, Partition, Plan};
use super::raw::{Raw, RawPanels};
use super::signals::{OnlyWeights, WeightGradient};
use super::target::Target;
use super::{DenseNetwork, TILE, make_shared, share, waiting_length};
use crate::engine::Evaluator;
use crate::linalg::tile::Rows;
use crate::linalg::{Aligned, Matrix, Panels, Real, SharedSlice, Team};
use crate::models::{Architecture, ModelError};
use crate::params::{At, Update, Version};

impl<T: Real> DenseNetwork<T> {
    /// Layers whose inputs somebody else computes, up to `examples` at a time, with the same threads.
    pub(in crate::engine::cpu) fn tail(
        architecture: &Architecture,
        examples: usize,
        team: &Arc<Team>,
    ) -> Result<Self, ModelError> {
        let chain = Chain::of(architecture)?;
        let plan = Plan { head: Head::of(&chain), lowest: Lowest::Panels, partition: Partition::Whole };
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
        self.signals_below(Raw(self.weights_at(at.entries().as_ptr())), below);
    }

    /// A step, and the signals of the inputs before it; whether anything in the gradient was not zero.
    pub(in crate::engine::cpu) fn step_given(
        &mut self,
        entries: &mut [f64],
        cotangent: &[f64],
        update: Update,
        scratch: &mut [f64],
        below: &mut Panels<T>,
    ) -> bool {
        if self.hidden.is_empty() || self.layers[0].frozen {
            self.pull_back_given(At::new(entries, None), cotangent, scratch, below);
            make_shared(&self.team, entries, update, scratch);
            self.rounded.round(&self.team, entries, 0);
            return scratch.iter().any(|g| *g != 0.0);
        }
        self.descend_in_one_pass(entries, cotangent, update, scratch, Some(below))
    }

    /// The gradient of the lowest weights alone from their signals.
    pub(super) fn pull_lowest_weights(&mut self, target: Target<'_, T>) {
        let (layer, arch, signals) = (&self.layers[0], self.arch, &self.hidden[0].signals);
        let (inputs, waiting) = (&self.batch, SharedSlice::new(&mut self.waiting));
        let cost = layer.inputs * layer.outputs * self.bound.examples;
        share(&self.team, (layer.outputs, TILE), cost, |rows| {
            arch.dispatch(OnlyWeights {
                rows,
                panels: 0..inputs.turned.count(),
                signals,
                weights: WeightGradient { few: Some(&inputs.forward), turned: &inputs.turned, target },
                waiting: waiting.pointer(),
            });
        });
    }

    /// Says which version the parameters are that [`Self::step_given`] moved.
    pub(in crate::engine::cpu) fn moved_to(&mut self, version: Version) {
        self.rounded.version = Some(version);
    }

    /// The signals of the inputs from those of the lowest layer.
    pub(super) fn signals_below(&mut self, weights: Raw<T>, below: &mut Panels<T>) {
        let (layer, arch) = (&self.layers[0], self.arch);
        let signals = self.hidden.first().map_or(&self.outer, |hidden| &hidden.signals);
        below.reshape(layer.inputs, self.bound.examples);
        let out = RawPanels::new(below);
        let block = 8 * layer.inputs.div_ceil(8 * 32).max(1);
        let cost = layer.inputs * layer.outputs * self.bound.examples;
        share(&self.team, (layer.inputs, block), cost, |rows| {
            arch.dispatch(Forward {
                rows,
                weights: Rows { start: weights.at(layer.weight), row: 1, step: layer.inputs },
                bias: None,
                input: signals,
                panels: 0..signals.count(),
                after: After::nothing(out),
                waiting: None,
            });
        });
    }

    /// The layers.
    pub(in crate::engine::cpu) fn stages(&self) -> &[Stage] {
        &self.layers
    }
}
