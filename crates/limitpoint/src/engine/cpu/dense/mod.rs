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

mod backward;
mod bundles;
mod chain;
pub(super) mod curves;
pub(super) mod forward;
mod inspect;
mod pieces;
mod plan;
mod planar;
pub(super) mod raw;
mod rounded;

mod shards;
mod signals;
mod sparse;
mod tail;
pub(super) mod target;

use std::ops::Range;
use std::sync::Arc;

use pulp::Arch;

pub(super) use self::chain::Chain;
use self::chain::Stage;
use self::plan::{Head, Lowest, Partition, Plan};
use self::rounded::Rounded;
use self::shards::Shard;
use self::sparse::Sparse;
use crate::engine::{Bound, Evaluator, Tangents};
use crate::linalg::tile::{FEW, Waiting};
use crate::linalg::{Aligned, Matrix, PANEL_VECTORS, Panels, Real, SharedMatrix, SharedSlice, Team, lanes};
use crate::models::{Architecture, ModelError};
use crate::params::{At, Parameters, Update};

/// Multiply-adds below which a pass stays on the calling thread.
const PARALLEL_FROM: usize = 100_000;

/// Units that go to the same worker where they have no sum in common: a tile.
const TILE: usize = 8;

/// Parameters that are rounded, moved or added up by the same worker.
const BLOCK: usize = 512;

/// Inputs of a batch in the two layouts the passes read.
struct Inputs<T> {
    /// Features × examples.
    forward: Panels<T>,
    /// Examples × features.
    turned: Panels<T>,
}

impl<T: Real> Inputs<T> {
    fn new(inputs: &SharedMatrix) -> Self {
        let (mut forward, mut turned) =
            (Panels::zeros(inputs.cols(), inputs.rows()), Panels::zeros(inputs.rows(), inputs.cols()));
        forward.pack_transposed(inputs.entries());
        turned.pack(inputs.entries());
        Self { forward, turned }
    }
}

/// A hidden layer's buffers.
struct Hidden<T> {
    /// z after the forward pass, δ after the backward pass (units × examples).
    signals: Panels<T>,
    /// σ(z) (units × examples), where another layer reads it: nowhere under a fused head.
    output: Panels<T>,
    /// σ(z) transposed (examples × units), likewise.
    turned: Panels<T>,
    /// Slopes to use at kinks: (unit, example, slope).
    kinks: Vec<(usize, usize, f64)>,
}

/// A dense network bound to its inputs, computing in `T`.
pub struct DenseNetwork<T: Real> {
    bound: Bound,
    layers: Vec<Stage>,
    /// The factor in front of the output.
    scale: f64,
    plan: Plan,
    team: Arc<Team>,
    arch: Arch,
    source: SharedMatrix,
    all: Inputs<T>,
    batch: Inputs<T>,
    /// The lowest layer's own way to keep inputs that are mostly zero; `all` and `batch` are empty then.
    sparse: Option<Sparse<T>>,
    shards: Vec<Shard<T>>,
    /// The examples of the batch.
    taken: Vec<usize>,
    in_batch: bool,
    /// Whether back-signals go down to the inputs, below layers that are frozen too.
    wants_all_signals: bool,
    /// Whether slopes are set at kinks.
    weighed: bool,
    /// Whether the last forward pass stored preactivations.
    kept: bool,
    /// Whether it was one of the shards.
    scored_in_shards: bool,
    /// Examples the buffers are shaped for, once they are.
    shaped: Option<usize>,
    hidden: Vec<Hidden<T>>,
    rounded: Rounded<T>,
    /// Where the unfinished sums of a layer's products wait.
    waiting: Aligned<T>,
    /// See [`planar::Signs`].
    signs: Vec<u8>,
    /// Partial scores of a single-output head, one row per block of units.
    partial: Panels<T>,
    /// Scores, and later their cotangents, of a head that is not fused (outputs × examples).
    outer: Panels<T>,
    /// Cotangent of a fused head, padded to whole panels.
    cotangent: Aligned<T>,
    /// The gradient of one piece of a large batch.
    piece_gradient: Vec<f64>,
}

/// Calls `work` with ranges that cover 0..`count` and begin at whole blocks, on the whole team if the pass is worth it.
fn share(team: &Team, (count, block): (usize, usize), cost: usize, work: impl Fn(Range<usize>) + Sync) {
    let blocks = count.div_ceil(block);
    if cost < PARALLEL_FROM || team.threads() == 1 {
        work(0..count);
    } else {
        team.run(|worker| {
            let own = team.share(worker, blocks);
            work(own.start * block..(own.end * block).min(count));
        });
    }
}

/// Units per block of a layer that are summed up: fixed by the width alone, so partial sums never depend on the number of
/// threads.
fn block_size(units: usize) -> usize {
    units.div_ceil(16).next_multiple_of(8).max(16)
}

/// Numbers that can wait in the middle of a layer's products of this many examples.
fn waiting_length<T: Real>(chain: &Chain, examples: usize) -> usize {
    // of the signals and of the weight gradient, which one thread may make while another is not done with the signals
    let unfinished = |stage: &Stage| {
        let sums = if examples > FEW { stage.inputs.next_multiple_of(PANEL_VECTORS * lanes::<T>()) } else { 0 };
        stage.outputs * (Waiting::<T>::row_length(lanes::<T>()) + sums)
    };
    chain.stages.iter().map(unfinished).max().unwrap_or(0)
}

/// An update of all parameters, shared out over the team.
pub(super) fn make_shared(team: &Team, params: &mut [f64], update: Update, gradient: &[f64]) {
    assert_eq!(params.len(), gradient.len(), "a gradient is as long as the parameters");
    let (count, all) = (params.len(), SharedSlice::new(params));
    share(team, (count, BLOCK), 4 * count, |range| {
        // SAFETY: every worker moves its own blocks.
        update.make(unsafe { all.part(range.clone()) }, &gradient[range]);
    });
}

impl<T: Real> DenseNetwork<T> {
    /// Binds a chain of layers to its inputs.
    pub fn new(architecture: &Architecture, inputs: &SharedMatrix, threads: usize) -> Result<Self, ModelError> {
        let chain = Chain::of(architecture)?;
        let plan = Plan::choose::<T>(&chain, inputs);
        let mut network = Self::planned(architecture, &chain, plan, inputs, threads);
        if let Partition::Shards(count) = plan.partition {
            network.shards = Shard::cut(architecture, &chain, plan, inputs, count);
        }
        Ok(network)
    }

    /// Takes all buffers but the shards'.
    fn planned(architecture: &Architecture, chain: &Chain, plan: Plan, inputs: &SharedMatrix, threads: usize) -> Self {
        let none = Matrix::zeros(0, inputs.cols()).into();
        let hidden = || {
            let [signals, output, turned] = std::array::from_fn(|_| Panels::zeros(0, 0));
            Hidden { signals, output, turned, kinks: Vec::new() }
        };
        let sparse = (plan.lowest == Lowest::Sparse).then(|| Sparse::new(inputs.cols(), chain.stages[0].outputs));
        Self {
            bound: Bound::new(architecture, inputs.rows()),
            scale: chain.scale,
            plan,
            team: Arc::new(Team::new(threads)),
            arch: Arch::new(),
            source: inputs.clone(),
            all: Inputs::new(if sparse.is_some() { &none } else { inputs }),
            batch: Inputs::new(&none),
            sparse,
            shards: Vec::new(),
            taken: Vec::new(),
            in_batch: false,
            wants_all_signals: false,
            weighed: false,
            kept: false,
            scored_in_shards: false,
            shaped: None,
            hidden: chain.hidden().iter().map(|_| hidden()).collect(),
            rounded: Rounded::new(architecture.layout().len()),
            waiting: Aligned::zeros(waiting_length::<T>(chain, inputs.rows())),
            signs: Vec::new(),
            partial: Panels::zeros(0, 0),
            outer: Panels::zeros(0, 0),
            cotangent: Aligned::zeros(0),
            piece_gradient: Vec::new(),
            layers: chain.stages.clone(),
        }
    }

    /// Whether the head is a single output fused into the last hidden layer.
    fn fused(&self) -> bool {
        self.plan.head == Head::Fused
    }

    /// Whether this pass can do without storing preactivations.
    fn planar(&self) -> bool {
        self.plan.lowest == Lowest::Planar && !self.weighed
    }

    /// Whether this pass goes piece by piece.
    fn in_pieces(&self) -> bool {
        self.plan.partition == Partition::Pieces && !self.in_batch && !self.weighed
    }

    /// Whether this pass goes in shards.
    fn in_shards(&self) -> bool {
        !self.shards.is_empty() && !self.in_batch && !self.weighed
    }

    /// Whether the gradient at the parameters last scored is the shards' to make. If it is not, but they made the
    /// scores (slopes were set at kinks since), the scores are made again.
    fn left_to_shards(&mut self, at: At<'_>) -> bool {
        if self.in_shards() && self.scored_in_shards {
            return true;
        }
        if self.scored_in_shards {
            self.score(at);
        }
        false
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
            let units = self.layers[h].outputs;
            hidden.signals.reshape(units, examples);
            if h + 1 < count || !fused {
                hidden.output.reshape(units, examples);
                hidden.turned.reshape(examples, units);
            }
        }
        if fused {
            let units = self.layers[count - 1].outputs;
            self.partial.reshape(units.div_ceil(block_size(units)), examples);
            self.cotangent.reset(self.partial.count() * self.partial.width());
        } else {
            self.outer.reshape(self.bound.outputs, examples);
        }
    }

    fn inputs(&self) -> &Inputs<T> {
        if self.in_batch { &self.batch } else { &self.all }
    }
}

impl<T: Real> Evaluator for DenseNetwork<T> {
    fn bound(&self) -> &Bound {
        &self.bound
    }

    fn select(&mut self, rows: Option<&[usize]>) {
        self.in_batch = rows.is_some();
        self.weighed = false;
        self.hidden.iter_mut().for_each(|hidden| hidden.kinks.clear());
        self.bound.resize(rows.map_or(self.source.rows(), <[usize]>::len));
        if let Some(rows) = rows {
            self.take_batch(rows.len(), |n| rows[n]);
        }
    }

    fn score(&mut self, at: At<'_>) {
        self.scored_in_shards = self.in_shards();
        if self.scored_in_shards {
            self.forward_in_shards(at);
        } else if self.planar() {
            self.kept = false;
            self.planar_forward(at);
        } else if self.in_pieces() {
            self.forward_in_pieces(at, |_, _| {});
        } else {
            self.score_whole(at);
        }
    }

    fn pull_back(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        if self.left_to_shards(at) {
            self.backward_in_shards(at, cotangent, gradient);
        } else if self.in_pieces() {
            self.backward_in_pieces(at, cotangent, gradient);
        } else {
            self.backward(at.entries(), cotangent, Some(gradient));
        }
    }

    fn step(&mut self, params: &mut Parameters, cotangent: &[f64], update: Update, scratch: &mut [f64]) -> bool {
        if self.left_to_shards(At::from(&*params)) {
            return self.step_in_shards(params, cotangent, update, scratch);
        }
        if self.kept && !self.hidden.is_empty() && !self.layers[0].frozen && !self.in_pieces() {
            let seen = self.descend_in_one_pass(params.write(), cotangent, update, scratch, None);
            self.rounded.version = Some(params.version());
            return seen;
        }
        self.pull_back(At::from(&*params), cotangent, scratch);
        make_shared(&self.team, params.write(), update, scratch);
        scratch.iter().any(|g| *g != 0.0)
    }

    fn tangents(&mut self) -> Option<&mut dyn Tangents> {
        Some(self)
    }
}
