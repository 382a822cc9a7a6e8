//! Deep networks of moderate size, shared out over threads by examples.
//!
//! When threads share the units of every layer, each needs all units of the layer below, half of which another core
//! has just made: in a network of 100-100 units that traffic takes as long as the products. So every thread takes some
//! of the examples through all layers, forward and back, and the gradients of these shards are added up
//!
//! ```text
//! ∇ = Σ_shards Σ_{n in shard} r_n ∇Φ(xₙ)
//! ```
//!
//! in the order of the shards. How examples are cut into shards depends on their number and on the machine's registers,
//! so the bits do not depend on the number of threads.

use std::ops::Range;

use super::chain::Chain;
use super::plan::{Partition, Plan};
use super::target::Seen;
use super::{BLOCK, DenseNetwork, share};
use crate::engine::Evaluator;
use crate::linalg::{Real, SharedMatrix, SharedSlice, lanes};
use crate::models::Architecture;
use crate::params::{At, Parameters, Update};

/// Multiply-adds in the time that it takes to add up an entry which another core has written.
const EXCHANGE: usize = 10;

/// Some of the examples.
pub(super) struct Shard<T: Real> {
    examples: Range<usize>,
    network: DenseNetwork<T>,
    gradient: Vec<f64>,
}

impl<T: Real> Shard<T> {
    /// Cuts the examples into `count` shards.
    pub fn cut(
        architecture: &Architecture,
        chain: &Chain,
        plan: Plan,
        inputs: &SharedMatrix,
        count: usize,
    ) -> Vec<Self> {
        // whole registers, rounded up: what is left over is not the caller's, who has other work besides
        let edge = |i: usize| (inputs.rows() * i).div_ceil(count).next_multiple_of(lanes::<T>()).min(inputs.rows());
        let plan = Plan { partition: Partition::Whole, ..plan };
        let shard = |i: usize| {
            let examples = edge(i)..edge(i + 1);
            let network = DenseNetwork::planned(architecture, chain, plan, &inputs.part(examples.clone()), 1);
            Self { gradient: vec![0.0; architecture.layout().len()], examples, network }
        };
        (0..count).map(shard).collect()
    }
}

impl<T: Real> DenseNetwork<T> {
    /// Calls `work` with every shard, on all threads.
    fn each_shard(&mut self, work: impl Fn(&mut Shard<T>) + Sync) {
        let count = self.shards.len();
        let shards = SharedSlice::new(&mut self.shards);
        share(&self.team, (count, 1), usize::MAX, |range| {
            // SAFETY: every worker has its own shards.
            unsafe { shards.part(range) }.iter_mut().for_each(&work);
        });
    }

    /// Calls `work` with every block of parameters, on all threads.
    fn each_block(&self, work: impl Fn(Range<usize>) + Sync) {
        let count = self.bound.layout.len();
        share(&self.team, (count, BLOCK), EXCHANGE * self.shards.len() * count, |own| {
            own.clone().step_by(BLOCK).for_each(|first| work(first..(first + BLOCK).min(own.end)));
        });
    }

    /// The scores of every shard.
    pub(super) fn forward_in_shards(&mut self, at: At<'_>) {
        self.each_shard(|shard| shard.network.score(at));
        let outputs = self.bound.outputs;
        for Shard { examples, network, .. } in &self.shards {
            self.bound.scores[examples.start * outputs..examples.end * outputs].copy_from_slice(&network.bound.scores);
        }
    }

    /// The gradient of every shard.
    fn gradients_of_shards(&mut self, at: At<'_>, cotangent: &[f64]) {
        let outputs = self.bound.outputs;
        assert_eq!(cotangent.len(), self.bound.examples * outputs, "one cotangent per score");
        self.each_shard(|Shard { examples, network, gradient }| {
            network.pull_back(at, &cotangent[examples.start * outputs..examples.end * outputs], gradient);
        });
    }

    /// The sum of the shards' gradients.
    pub(super) fn backward_in_shards(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        assert_eq!(gradient.len(), at.entries().len(), "a gradient is as long as the parameters");
        self.gradients_of_shards(at, cotangent);
        let sum = SharedSlice::new(gradient);
        // SAFETY: every worker adds up its own blocks.
        self.each_block(|range| add_up(&self.shards, range.clone(), unsafe { sum.part(range) }));
    }

    /// A step with that sum, block by block.
    pub(super) fn step_in_shards(
        &mut self,
        params: &mut Parameters,
        cotangent: &[f64],
        update: Update,
        scratch: &mut [f64],
    ) -> bool {
        let seen = Seen::default();
        self.gradients_of_shards(At::from(&*params), cotangent);
        let (all, sums) = (SharedSlice::new(params.write()), SharedSlice::new(scratch));
        self.each_block(|range| {
            // SAFETY: every worker adds up and moves its own blocks.
            let (params, sum) = unsafe { (all.part(range.clone()), sums.part(range.clone())) };
            add_up(&self.shards, range, sum);
            seen.look(sum);
            update.make(params, sum);
        });
        seen.any()
    }
}

/// The sum of the shards' gradients over these entries, in the order of the shards.
fn add_up<T: Real>(shards: &[Shard<T>], range: Range<usize>, sum: &mut [f64]) {
    sum.copy_from_slice(&shards[0].gradient[range.clone()]);
    for shard in &shards[1..] {
        crate::linalg::add_scaled(sum, 1.0, &shard.gradient[range.clone()]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::SHARD;
    use super::*;
    use crate::engine::cpu::tests;
    use crate::engine::{Forward, Kink, Tangents};
    use crate::linalg::Matrix;
    use crate::models::{Activation, Layer, Shape};

    fn architecture(outputs: usize) -> Architecture {
        let layers = vec![
            Layer::Dense { units: 20, bias: true, frozen: false },
            Layer::Activation(Activation::Relu),
            Layer::dense(17),
            Layer::Activation(Activation::Relu),
            Layer::Dense { units: outputs, bias: true, frozen: false },
            Layer::Scale(0.5),
        ];
        Architecture::new(Shape::vector(3), layers).unwrap()
    }

    fn inputs(rows: usize) -> SharedMatrix {
        Matrix { rows, cols: 3, data: tests::normal(rows * 3, 1, "data") }.into()
    }

    fn normal(length: usize, seed: u64) -> Vec<f64> {
        tests::normal(length, seed, "init")
    }

    /// The network without its shards.
    fn unsharded<T: Real>(outputs: usize, inputs: &SharedMatrix) -> DenseNetwork<T> {
        let mut network = DenseNetwork::new(&architecture(outputs), inputs, 1).unwrap();
        network.shards.clear();
        network
    }

    fn check<T: Real>(tolerance: f64) {
        for (rows, outputs) in [(2 * SHARD, 1), (5 * SHARD + 31, 3), (40 * SHARD, 1)] {
            let inputs = inputs(rows);
            let mut plain = unsharded::<T>(outputs, &inputs);
            let params = normal(plain.layout().len(), 2);
            let cotangent = normal(rows * outputs, 3);
            let mut expected = vec![0.0; params.len()];
            let pass = plain.forward(&params);
            let scores = pass.scores().to_vec();
            pass.pull_back(&params, &cotangent, &mut expected);
            let largest = expected.iter().fold(0.0f64, |most, g| most.max(g.abs()));
            let mut first: Option<Vec<f64>> = None;
            for threads in [1, 2, 3] {
                let mut model = DenseNetwork::<T>::new(&architecture(outputs), &inputs, threads).unwrap();
                let mut gradient = vec![f64::NAN; params.len()];
                let pass = model.forward(&params);
                assert_eq!(pass.scores(), scores);
                pass.pull_back(&params, &cotangent, &mut gradient);
                for (a, b) in gradient.iter().zip(&expected) {
                    assert!((a - b).abs() <= tolerance * largest, "{a} against {b}");
                }
                assert_ne!(gradient, expected, "another order of sums: there are shards");
                assert_eq!(first.get_or_insert_with(|| gradient.clone()), &gradient, "{threads} threads");
            }
        }
    }

    #[test]
    fn shards_have_the_scores_and_the_gradient_of_all_examples() {
        check::<f64>(1e-13);
        check::<f32>(1e-4);
    }

    /// Whoever asks in between: kinks, batches, slopes set after the scores.
    #[test]
    fn a_gradient_belongs_to_the_last_scores_wherever_they_were_made() {
        let inputs = inputs(2 * SHARD + 5);
        let mut plain = unsharded::<f64>(1, &inputs);
        let mut sharded = DenseNetwork::<f64>::new(&architecture(1), &inputs, 2).unwrap();
        let (here, there) = (normal(plain.layout().len(), 2), normal(plain.layout().len(), 4));
        let rows: Vec<usize> = (3..2 * SHARD + 1).collect();
        let gradients = [&mut plain, &mut sharded].map(|network| {
            let model: &mut dyn Tangents = network;
            let mut gradients = Vec::new();
            let mut pull = |model: &mut dyn Tangents, at: &[f64]| {
                let (mut gradient, cotangent) = (vec![0.0; at.len()], normal(model.examples(), 3));
                model.resume().pull_back(at, &cotangent, &mut gradient);
                gradients.push(gradient);
            };
            model.score((&here).into());
            pull(model, &here);
            let kinks = model.kinks_near(&there, 0.01);
            assert!(!kinks.is_empty());
            pull(model, &there);
            let weighed = |e: f64| kinks.iter().map(|kink| (*kink, e)).collect::<Vec<(Kink, f64)>>();
            model.score((&here).into());
            model.weigh_kinks(&weighed(1.0));
            pull(model, &here);
            model.score((&there).into());
            pull(model, &there);
            model.weigh_kinks(&[]);
            model.select(Some(&rows));
            model.score((&here).into());
            pull(model, &here);
            model.select(None);
            model.score((&here).into());
            model.weigh_kinks(&weighed(0.3));
            let mut params = Parameters::new(&here);
            let cotangent = normal(model.examples(), 3);
            assert!(model.resume().step(&mut params, &cotangent, Update::Along(1.0), &mut vec![0.0; here.len()]));
            gradients.push(params.read().to_vec());
            gradients
        });
        assert_ne!(gradients[0][1], gradients[0][3], "slopes at kinks count");
        for (a, b) in gradients[0].iter().flatten().zip(gradients[1].iter().flatten()) {
            assert!((a - b).abs() <= 1e-12 * (1.0 + a.abs()), "{a} against {b}");
        }
    }
}
