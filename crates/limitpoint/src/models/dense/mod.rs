//! Fully connected networks of any depth, linear models included.
//!
//! ```text
//! a₀ = x,   z_l = W_l a_{l−1} (+ b_l),   a_l = σ_l(z_l),   Φ(x) = s · (W_L a_{L−1} (+ b_L))
//! ```
//!
//! with an output factor s. A network without hidden layers is the linear model. Everything a step needs is allocated
//! when the network is built or first used; rows of each layer are shared out over the team in fixed blocks. A
//! single-output head is fused into the last hidden layer: its partial sums are formed while tiles are in registers,
//! and the back-signal is written over the preactivations.

mod architecture;
mod backward;
mod bundles;
mod forward;
mod inspect;
mod layered_map;
mod pieces;
mod planar;
mod raw;
mod rounded;
mod shapes;
mod shards;
mod signals;
mod sparse;
mod target;

use std::ops::Range;

use pulp::Arch;

pub(super) use self::architecture::Architecture;
pub use self::layered_map::LayeredMap;
use self::rounded::Rounded;
pub(super) use self::shards::ShardedNetwork;
use self::sparse::Sparse;
use super::{Homogeneity, Kink, KinkColumn, Model, ModelError, descend_in_two, score_anew};
use crate::linalg::tile::Waiting;
use crate::linalg::{Aligned, Matrix, Panels, Real, SharedSlice, Team, lanes};
use crate::params::{Move, ParamLayout, Stamped};

/// Multiply-adds below which a pass stays on the calling thread.
const PARALLEL_FROM: usize = 100_000;

/// Parameters that are rounded, moved or added up by the same worker.
const BLOCK: usize = 512;

/// One weight matrix and what surrounds it.
struct Layer {
    inputs: usize,
    outputs: usize,
    weight: usize,
    bias: Option<usize>,
    frozen: bool,
}

impl Layer {
    /// The parameter after the last weight.
    fn end(&self) -> usize {
        self.weight + self.inputs * self.outputs
    }
}

/// Inputs of a batch in the two layouts the passes read.
struct Inputs<T> {
    /// Features × examples.
    forward: Panels<T>,
    /// Examples × features.
    turned: Panels<T>,
}

impl<T: Real> Inputs<T> {
    fn new(inputs: &Matrix) -> Self {
        let (mut forward, mut turned) =
            (Panels::zeros(inputs.cols, inputs.rows), Panels::zeros(inputs.rows, inputs.cols));
        forward.pack_transposed(&inputs.data);
        turned.pack(&inputs.data);
        Self { forward, turned }
    }
}

/// A hidden layer's buffers.
struct Hidden<T> {
    /// z after the forward pass, δ after the backward pass (units × examples).
    signals: Panels<T>,
    /// σ(z) (units × examples), where another layer reads it.
    output: Option<Panels<T>>,
    /// σ(z) transposed (examples × units).
    turned: Option<Panels<T>>,
    /// Slopes to use at kinks: (unit, example, slope).
    kinks: Vec<(usize, usize, f64)>,
}

/// A dense network bound to its inputs, computing in `T`.
pub struct DenseNetwork<T: Real> {
    architecture: Architecture,
    layout: ParamLayout,
    homogeneity: Option<Homogeneity>,
    layers: Vec<Layer>,
    team: Team,
    arch: Arch,
    source: Matrix,
    all: Inputs<T>,
    batch: Inputs<T>,
    /// The lowest layer's own way to keep inputs that are mostly zero; `all` and `batch` are empty then.
    sparse: Option<Sparse<T>>,
    /// The examples of the batch.
    taken: Vec<usize>,
    in_batch: bool,
    /// Whether the last forward pass stored preactivations.
    kept: bool,
    examples: usize,
    /// Examples the buffers are shaped for, once they are.
    shaped: Option<usize>,
    hidden: Vec<Hidden<T>>,
    rounded: Rounded<T>,
    waiting: Aligned<T>,
    /// See [`planar::Signs`].
    signs: Vec<u8>,
    /// Partial scores of a single-output head, one row per block of units.
    partial: Panels<T>,
    /// Scores, and later their cotangents, of a head that is not fused (outputs × examples).
    outer: Panels<T>,
    /// Cotangent of a fused head, padded to whole panels.
    cotangent: Aligned<T>,
    scores: Vec<f64>,
    /// The gradient of one piece of a large batch.
    piece_gradient: Vec<f64>,
}

/// Calls `work` with ranges that cover 0..`blocks`, on the whole team if the pass is worth it.
fn share(team: &Team, blocks: usize, cost: usize, work: impl Fn(Range<usize>) + Sync) {
    if cost < PARALLEL_FROM || team.threads() == 1 {
        work(0..blocks);
    } else {
        team.run(|worker| work(team.share(worker, blocks)));
    }
}

/// Units per block of a layer: fixed by the width alone, so partial sums never depend on the number of threads.
fn block_size(units: usize) -> usize {
    units.div_ceil(16).next_multiple_of(8).max(16)
}

impl<T: Real> DenseNetwork<T> {
    /// Builds the buffers; `architecture` is checked by the specification.
    pub(super) fn new(architecture: Architecture, inputs: &Matrix, threads: usize) -> Result<Self, ModelError> {
        let layout = architecture.layout()?;
        let sizes = architecture.sizes();
        let layers: Vec<Layer> = (0..sizes.len() - 1)
            .map(|l| {
                let offset = |kind: &str| layout.block(&format!("layer{}.{kind}", l + 1)).map(|block| block.offset);
                Layer {
                    inputs: sizes[l],
                    outputs: sizes[l + 1],
                    weight: offset("weight").unwrap_or(0),
                    bias: offset("bias"),
                    frozen: architecture.frozen[l],
                }
            })
            .collect();
        // under a fused head the lowest layer adds up partial scores, which the sparse one does not
        let sparse = match architecture.widths.as_slice() {
            [] => None,
            [_] if architecture.outputs == 1 => None,
            [units, ..] => Sparse::of(inputs, *units),
        };
        let none = Matrix::zeros(0, inputs.cols);
        let all = Inputs::new(if sparse.is_some() { &none } else { inputs });
        let most_units = sizes[1..].iter().copied().max().unwrap_or(1);
        let mut network = Self {
            homogeneity: architecture.homogeneity(),
            team: Team::new(threads),
            arch: Arch::new(),
            source: inputs.clone(),
            batch: Inputs::new(&none),
            sparse,
            taken: Vec::new(),
            in_batch: false,
            kept: false,
            examples: inputs.rows,
            shaped: None,
            hidden: architecture.widths.iter().map(|_| Hidden::empty()).collect(),
            rounded: Rounded::new(layout.len()),
            waiting: Aligned::zeros(most_units * Waiting::<T>::row_length(lanes::<T>())),
            signs: Vec::new(),
            partial: Panels::zeros(0, 0),
            outer: Panels::zeros(0, 0),
            cotangent: Aligned::zeros(0),
            scores: Vec::new(),
            piece_gradient: Vec::new(),
            architecture,
            layout,
            layers,
            all,
        };
        network.scores.resize(inputs.rows * network.architecture.outputs, 0.0);
        Ok(network)
    }

    /// Whether the head is a single output fused into the last hidden layer.
    fn fused(&self) -> bool {
        self.architecture.outputs == 1 && !self.hidden.is_empty()
    }

    /// Shapes all buffers for `examples` at a time.
    fn shape_buffers(&mut self, examples: usize) {
        if self.shaped == Some(examples) {
            return;
        }
        self.shaped = Some(examples);
        let fused = self.fused();
        let count = self.hidden.len();
        for (h, hidden) in self.hidden.iter_mut().enumerate() {
            let units = self.architecture.widths[h];
            hidden.signals.reshape(units, examples);
            if h + 1 < count || !fused {
                hidden.output.get_or_insert_with(|| Panels::zeros(0, 0)).reshape(units, examples);
                hidden.turned.get_or_insert_with(|| Panels::zeros(0, 0)).reshape(examples, units);
            }
        }
        if fused {
            let units = self.architecture.widths[count - 1];
            self.partial.reshape(units.div_ceil(block_size(units)), examples);
            self.cotangent.reset(self.partial.count() * self.partial.width());
        } else {
            self.outer.reshape(self.architecture.outputs, examples);
        }
    }

    fn inputs(&self) -> &Inputs<T> {
        if self.in_batch { &self.batch } else { &self.all }
    }
}

impl<T: Real> Hidden<T> {
    fn empty() -> Self {
        Self { signals: Panels::zeros(0, 0), output: None, turned: None, kinks: Vec::new() }
    }
}

impl<T: Real> Model for DenseNetwork<T> {
    fn layout(&self) -> &ParamLayout {
        &self.layout
    }

    fn outputs(&self) -> usize {
        self.architecture.outputs
    }

    fn examples(&self) -> usize {
        self.examples
    }

    fn homogeneity(&self) -> Option<&Homogeneity> {
        self.homogeneity.as_ref()
    }

    fn select(&mut self, rows: Option<&[usize]>) {
        self.in_batch = rows.is_some();
        self.hidden.iter_mut().for_each(|hidden| hidden.kinks.clear());
        self.examples = rows.map_or(self.source.rows, <[usize]>::len);
        self.scores.resize(self.examples * self.architecture.outputs, 0.0);
        if let Some(rows) = rows {
            self.take_batch(rows.len(), |n| rows[n]);
        }
    }

    fn scores(&mut self, params: &[f64]) -> &[f64] {
        if self.planar() {
            self.kept = false;
            self.planar_forward(params);
        } else if self.in_pieces() {
            self.forward_in_pieces(params, |_, _| {});
        } else {
            self.forward(params);
        }
        &self.scores
    }

    fn pull_back(&mut self, params: &[f64], cotangent: &[f64], gradient: &mut [f64]) {
        if self.in_pieces() {
            self.backward_in_pieces(params, cotangent, gradient);
        } else {
            self.backward(params, cotangent, Some(gradient));
        }
    }

    fn make_move(&mut self, params: &mut [f64], plain: Move, gradient: &[f64]) {
        assert_eq!(params.len(), gradient.len(), "a gradient is as long as the parameters");
        let (count, all) = (params.len(), SharedSlice::new(params));
        share(&self.team, count.div_ceil(BLOCK), 4 * count, |blocks| {
            let range = blocks.start * BLOCK..(blocks.end * BLOCK).min(count);
            // SAFETY: every worker moves its own blocks.
            plain.make(unsafe { all.part(range.clone()) }, &gradient[range]);
        });
    }

    fn scores_of(&mut self, params: &Stamped) -> &[f64] {
        self.trust(params);
        self.scores(params)
    }

    fn descend(&mut self, params: &mut Stamped, cotangent: &[f64], plain: Move, scratch: &mut [f64]) -> bool {
        if self.moves_in_one_pass() {
            return self.descend_in_one_pass(params, cotangent, plain, scratch);
        }
        descend_in_two(self, params, cotangent, plain, scratch)
    }

    fn per_example_gradients(&mut self, params: &[f64], output: usize) -> Matrix {
        self.rows_of_jacobian(params, output)
    }

    fn gradient_gram(&mut self, params: &[f64]) -> Matrix {
        self.layerwise_gram(params)
    }

    fn scores_after(&mut self, params: &[f64], entry: usize, change: f64, out: &mut [f64]) {
        if self.hidden.len() == 1 && !self.in_batch {
            return self.scores_with_moved_unit(params, entry, change, out);
        }
        score_anew(self, params, entry, change, out);
    }

    fn kinks(&mut self, params: &[f64], radius: f64) -> Vec<Kink> {
        self.forward(params);
        self.find_kinks(radius)
    }

    fn kink_columns(&mut self, params: &[f64], cotangent: &[f64], kinks: &[Kink]) -> Vec<KinkColumn> {
        self.columns_of_kinks(params, cotangent, kinks)
    }

    fn weigh_kinks(&mut self, kinks: &[(Kink, f64)]) {
        self.hidden.iter_mut().for_each(|hidden| hidden.kinks.clear());
        for (kink, e) in kinks {
            let slope = (1.0 - e) * kink.slopes.0 + e * kink.slopes.1;
            let inside = kink.unit < self.layers[kink.layer].outputs && kink.example < self.examples;
            assert!(inside, "a kink of another batch or network");
            self.hidden[kink.layer].kinks.push((kink.unit, kink.example, slope));
        }
    }

    fn smallest_preactivation(&mut self, params: &[f64]) -> Option<f64> {
        self.architecture.activation.kink()?;
        let mut smallest = f64::INFINITY;
        let mut look = |network: &Self, examples: usize| {
            for hidden in &network.hidden {
                let signals = &hidden.signals;
                for panel in 0..examples.div_ceil(signals.width()) {
                    let filled = signals.width().min(examples - panel * signals.width());
                    for row in 0..signals.rows() {
                        let at = signals.offset(panel, row);
                        let sizes = signals.data()[at..at + filled].iter().map(|z| z.to_f64().abs());
                        smallest = sizes.fold(smallest, f64::min);
                    }
                }
            }
        };
        if self.in_pieces() {
            self.forward_in_pieces(params, look);
        } else {
            self.forward(params);
            look(self, self.examples);
        }
        Some(smallest)
    }
}
