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

use super::architecture::Architecture;
use super::target::Seen;
use super::{BLOCK, DenseNetwork, share};
use crate::linalg::{Matrix, Real, SharedSlice, lanes};
use crate::models::{Homogeneity, Kink, KinkColumn, Model, ModelError};
use crate::params::{Move, ParamLayout, Stamped};

/// Examples of a shard, about: enough for products to outweigh the sum of the gradients.
const SHARD: usize = 96;
/// Most shards, most examples in all (beyond which hidden units leave the cache), most parameters.
const SHARDS: usize = 16;
const EXAMPLES: usize = 4096;
const PARAMS: usize = 1 << 17;

/// Multiply-adds in the time that it takes to add up an entry which another core has written.
const EXCHANGE: usize = 10;

/// Some of the examples.
struct Shard<T: Real> {
    examples: Range<usize>,
    network: DenseNetwork<T>,
    gradient: Vec<f64>,
}

/// A network of two or more hidden layers whose full batches go in shards. Batches, kinks and everything that is not
/// asked for at every step is left to one network of all examples.
pub struct ShardedNetwork<T: Real> {
    whole: DenseNetwork<T>,
    shards: Vec<Shard<T>>,
    /// Whether all examples are in use and no slopes are set at kinks.
    in_shards: bool,
    batch: bool,
    /// Whether the last forward pass was one of the shards.
    scored_in_shards: bool,
    scores: Vec<f64>,
}

impl<T: Real> ShardedNetwork<T> {
    /// The network of all examples, in shards if it is of that kind.
    pub(in crate::models) fn build(
        architecture: Architecture,
        inputs: &Matrix,
        threads: usize,
    ) -> Result<Box<dyn Model>, ModelError> {
        let whole = DenseNetwork::<T>::new(architecture.clone(), inputs, threads)?;
        let count = (inputs.rows / SHARD).min(SHARDS);
        let suits = whole.hidden.len() > 1 && whole.layout.len() <= PARAMS && whole.sparse.is_none();
        if !suits || count < 2 || inputs.rows > EXAMPLES {
            return Ok(Box::new(whole));
        }
        // whole registers, rounded up: what is left over is not the caller's, who has other work besides
        let edge = |i: usize| (inputs.rows * i).div_ceil(count).next_multiple_of(lanes::<T>()).min(inputs.rows);
        let shard = |i: usize| {
            let (examples, cols) = (edge(i)..edge(i + 1), inputs.cols);
            let data = inputs.data[examples.start * cols..examples.end * cols].to_vec();
            let network = DenseNetwork::new(architecture.clone(), &Matrix { rows: examples.len(), cols, data }, 1)?;
            Ok(Shard { gradient: vec![0.0; network.layout.len()], examples, network })
        };
        let shards = (0..count).map(shard).collect::<Result<Vec<_>, ModelError>>()?;
        let scores = vec![0.0; inputs.rows * whole.outputs()];
        Ok(Box::new(Self { whole, shards, in_shards: true, batch: false, scored_in_shards: false, scores }))
    }

    /// Calls `work` with every shard, on all threads.
    fn each(&mut self, work: impl Fn(&mut Shard<T>) + Sync) {
        let count = self.shards.len();
        let shards = SharedSlice::new(&mut self.shards);
        share(&self.whole.team, count, usize::MAX, |range| {
            // SAFETY: every worker has its own shards.
            unsafe { shards.part(range) }.iter_mut().for_each(&work);
        });
    }

    /// Whether the gradient at the parameters last scored is that of the network of all examples, which then knows
    /// them.
    fn left_to_the_whole(&mut self, params: &[f64]) -> bool {
        if self.in_shards && self.scored_in_shards {
            return false;
        }
        if std::mem::take(&mut self.scored_in_shards) {
            self.whole.scores(params); // slopes were set at kinks after the scores
        }
        true
    }

    /// Calls `work` with every block of parameters, on all threads.
    fn each_block(&self, work: impl Fn(Range<usize>) + Sync) {
        let count = self.whole.layout.len();
        share(&self.whole.team, count.div_ceil(BLOCK), EXCHANGE * self.shards.len() * count, |blocks| {
            blocks.for_each(|block| work(block * BLOCK..((block + 1) * BLOCK).min(count)));
        });
    }

    /// The gradient of every shard.
    fn gradients_of_shards(&mut self, params: &[f64], cotangent: &[f64]) {
        let outputs = self.outputs();
        assert_eq!(cotangent.len(), self.whole.examples * outputs, "one cotangent per score");
        self.each(|Shard { examples, network, gradient }| {
            network.pull_back(params, &cotangent[examples.start * outputs..examples.end * outputs], gradient);
        });
    }
}

/// The sum of the shards' gradients over these entries, in the order of the shards.
fn add_up<T: Real>(shards: &[Shard<T>], range: Range<usize>, sum: &mut [f64]) {
    sum.copy_from_slice(&shards[0].gradient[range.clone()]);
    for shard in &shards[1..] {
        crate::linalg::add_scaled(sum, 1.0, &shard.gradient[range.clone()]);
    }
}

impl<T: Real> Model for ShardedNetwork<T> {
    fn layout(&self) -> &ParamLayout {
        self.whole.layout()
    }

    fn outputs(&self) -> usize {
        self.whole.outputs()
    }

    fn examples(&self) -> usize {
        self.whole.examples()
    }

    fn homogeneity(&self) -> Option<&Homogeneity> {
        self.whole.homogeneity()
    }

    fn select(&mut self, rows: Option<&[usize]>) {
        self.batch = rows.is_some();
        self.in_shards = !self.batch;
        self.whole.select(rows);
    }

    fn scores(&mut self, params: &[f64]) -> &[f64] {
        self.scored_in_shards = self.in_shards;
        if !self.in_shards {
            return self.whole.scores(params);
        }
        self.each(|shard| {
            shard.network.scores(params);
        });
        let outputs = self.outputs();
        for Shard { examples, network, .. } in &self.shards {
            self.scores[examples.start * outputs..examples.end * outputs].copy_from_slice(&network.scores);
        }
        &self.scores
    }

    fn pull_back(&mut self, params: &[f64], cotangent: &[f64], gradient: &mut [f64]) {
        if self.left_to_the_whole(params) {
            return self.whole.pull_back(params, cotangent, gradient);
        }
        assert_eq!(gradient.len(), params.len(), "a gradient is as long as the parameters");
        self.gradients_of_shards(params, cotangent);
        let sum = SharedSlice::new(gradient);
        // SAFETY: every worker adds up its own blocks.
        self.each_block(|range| add_up(&self.shards, range.clone(), unsafe { sum.part(range) }));
    }

    fn descend(&mut self, params: &mut Stamped, cotangent: &[f64], plain: Move, scratch: &mut [f64]) -> bool {
        if self.left_to_the_whole(params) {
            return self.whole.descend(params, cotangent, plain, scratch);
        }
        let seen = Seen::default();
        self.gradients_of_shards(params, cotangent);
        let (all, sums) = (SharedSlice::new(params), SharedSlice::new(scratch));
        self.each_block(|range| {
            // SAFETY: every worker adds up and moves its own blocks.
            let (params, sum) = unsafe { (all.part(range.clone()), sums.part(range.clone())) };
            add_up(&self.shards, range, sum);
            seen.look(sum);
            plain.make(params, sum);
        });
        seen.any()
    }

    fn make_move(&mut self, params: &mut [f64], plain: Move, gradient: &[f64]) {
        self.whole.make_move(params, plain, gradient);
    }

    fn per_example_gradients(&mut self, params: &[f64], output: usize) -> Matrix {
        self.scored_in_shards = false;
        self.whole.per_example_gradients(params, output)
    }

    fn gradient_gram(&mut self, params: &[f64]) -> Matrix {
        self.scored_in_shards = false;
        self.whole.gradient_gram(params)
    }

    fn kinks(&mut self, params: &[f64], radius: f64) -> Vec<Kink> {
        self.scored_in_shards = false;
        self.whole.kinks(params, radius)
    }

    fn kink_columns(&mut self, params: &[f64], cotangent: &[f64], kinks: &[Kink]) -> Vec<KinkColumn> {
        self.scored_in_shards = false;
        self.whole.kink_columns(params, cotangent, kinks)
    }

    fn weigh_kinks(&mut self, kinks: &[(Kink, f64)]) {
        self.in_shards = !self.batch && kinks.is_empty();
        self.whole.weigh_kinks(kinks);
    }

    fn smallest_preactivation(&mut self, params: &[f64]) -> Option<f64> {
        self.scored_in_shards = false;
        self.whole.smallest_preactivation(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Activation;
    use crate::numeric::Streams;

    fn architecture(outputs: usize) -> Architecture {
        Architecture {
            inputs: 3,
            widths: vec![20, 17],
            outputs,
            activation: Activation::Relu,
            biases: vec![true, false, true],
            frozen: vec![false; 3],
            output_scale: 0.5,
        }
    }

    fn inputs(rows: usize) -> Matrix {
        let mut inputs = Matrix::zeros(rows, 3);
        Streams::new(1).stream("data").fill_normal(&mut inputs.data);
        inputs
    }

    fn normal(length: usize, seed: u64) -> Vec<f64> {
        let mut numbers = vec![0.0; length];
        Streams::new(seed).stream("init").fill_normal(&mut numbers);
        numbers
    }

    fn check<T: Real>(tolerance: f64) {
        for (rows, outputs) in [(2 * SHARD, 1), (5 * SHARD + 31, 3), (40 * SHARD, 1)] {
            let inputs = inputs(rows);
            let mut plain = DenseNetwork::<T>::new(architecture(outputs), &inputs, 1).unwrap();
            let params = normal(plain.layout().len(), 2);
            let cotangent = normal(rows * outputs, 3);
            let mut expected = vec![0.0; params.len()];
            let scores = plain.scores(&params).to_vec();
            plain.pull_back(&params, &cotangent, &mut expected);
            let largest = expected.iter().fold(0.0f64, |most, g| most.max(g.abs()));
            let mut first: Option<Vec<f64>> = None;
            for threads in [1, 2, 3] {
                let mut model = ShardedNetwork::<T>::build(architecture(outputs), &inputs, threads).unwrap();
                let mut gradient = vec![f64::NAN; params.len()];
                assert_eq!(model.scores(&params), scores);
                model.pull_back(&params, &cotangent, &mut gradient);
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

    #[test]
    fn a_gradient_belongs_to_the_last_scores_wherever_they_were_made() {
        let inputs = inputs(2 * SHARD);
        let mut plain: Box<dyn Model> = Box::new(DenseNetwork::<f64>::new(architecture(1), &inputs, 1).unwrap());
        let mut sharded = ShardedNetwork::<f64>::build(architecture(1), &inputs, 2).unwrap();
        let (here, there) = (normal(plain.layout().len(), 2), normal(plain.layout().len(), 4));
        let cotangent = normal(2 * SHARD, 3);
        let gradients = [&mut plain, &mut sharded].map(|model| {
            let mut gradients = vec![vec![0.0; here.len()]; 4];
            model.scores(&here);
            model.pull_back(&here, &cotangent, &mut gradients[0]);
            let kinks = model.kinks(&there, 0.01);
            model.pull_back(&there, &cotangent, &mut gradients[1]);
            model.scores(&here);
            model.weigh_kinks(&kinks.iter().map(|kink| (*kink, 1.0)).collect::<Vec<_>>());
            model.pull_back(&here, &cotangent, &mut gradients[2]);
            model.weigh_kinks(&[]);
            model.scores(&here);
            model.weigh_kinks(&kinks.iter().map(|kink| (*kink, 0.3)).collect::<Vec<_>>());
            let mut params = Stamped::new(&here);
            assert!(model.descend(&mut params, &cotangent, Move::Along(1.0), &mut vec![0.0; here.len()]));
            gradients[3] = params.to_vec();
            gradients
        });
        for (a, b) in gradients[0].iter().flatten().zip(gradients[1].iter().flatten()) {
            assert!((a - b).abs() <= 1e-12 * (1.0 + a.abs()), "{a} against {b}");
        }
    }

    #[test]
    fn batches_and_weighed_kinks_are_left_to_the_network_of_all_examples() {
        let inputs = inputs(2 * SHARD + 5);
        let mut plain: Box<dyn Model> = Box::new(DenseNetwork::<f64>::new(architecture(1), &inputs, 1).unwrap());
        let mut sharded = ShardedNetwork::<f64>::build(architecture(1), &inputs, 2).unwrap();
        let params = normal(plain.layout().len(), 2);
        let kinks = plain.kinks(&params, 0.01);
        assert!(!kinks.is_empty());
        assert_eq!(sharded.kinks(&params, 0.01), kinks);
        let weighed: Vec<(Kink, f64)> = kinks.iter().map(|kink| (*kink, 0.7)).collect();
        let rows: Vec<usize> = (3..2 * SHARD + 1).collect();
        let mut answers = [&mut plain, &mut sharded].map(|model| {
            let mut gradients = Vec::new();
            let mut ask = |model: &mut dyn Model| {
                let cotangent = normal(model.examples(), 3);
                let mut gradient = vec![0.0; params.len()];
                model.scores(&params);
                model.pull_back(&params, &cotangent, &mut gradient);
                gradients.push(gradient);
            };
            model.weigh_kinks(&weighed);
            ask(&mut **model);
            model.weigh_kinks(&[]);
            model.select(Some(&rows));
            ask(&mut **model);
            model.select(None);
            ask(&mut **model);
            gradients
        });
        let (all, all_in_shards) = (answers[0].pop().unwrap(), answers[1].pop().unwrap());
        assert_eq!(answers[0], answers[1]);
        assert_ne!(answers[0][0], all, "weights at kinks count");
        assert!(all.iter().zip(&all_in_shards).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + a.abs())));
    }
}
