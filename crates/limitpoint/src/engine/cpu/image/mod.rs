//! Networks of images: convolutions and pools, each with its activation, below dense layers.
//!
//! Images lie pixel by pixel with their channels side by side and zeros around them ([`field`]), so that a patch is a
//! sum of two offsets and no copy of patches is made ([`crate::linalg::tile`]). On the way up and down every thread
//! takes its examples through all layers of images, a few at a time; gradients of kernels are shared out by their rows.
//! The dense layers are a [`DenseNetwork`] whose inputs are the last images. None of it depends on the number of
//! threads, so that bits do not either. Batches that would take too much memory pass in pieces, and their gradient
//! repeats the way up.

mod convolution;
mod drafts;
mod field;
mod gram;
mod inspect;
mod kinks;
mod meets;
mod plain;
mod pool;
mod products;
mod stages;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use pulp::Arch;

use self::convolution::Conv;
use self::drafts::Drafts;
use self::field::Frame;
pub use self::plain::{ImageMap, image_maps};
use self::plain::{Plain, Weighed};
use self::pool::{PoolMap, Slopes};
use self::products::{Activated, Masked, waiting_length};
use self::stages::{Stage, passes, stages};
use super::dense::make_shared;
use super::dense::raw::RawPanels;
use super::dense::target::{Seen, Step, Target};
use super::{Chosen, DenseNetwork, clear_frozen};
use crate::engine::{Bound, Evaluator, Tangents};
use crate::linalg::{Aligned, Panels, Real, SharedMatrix, SharedSlice, Team};
use crate::models::{Activation, Architecture, ModelError};
use crate::params::{At, Parameters, Update};

/// Most bytes of the images that are held at once.
const BYTES: usize = 512 << 20;

/// A layer and the images it gives.
struct Link<T: Real> {
    node: Node<T>,
    activation: Activation,
    frame: Frame,
    /// σ(z).
    output: Aligned<T>,
    /// z, where σ(z) does not tell σ′(z).
    z: Option<Aligned<T>>,
    /// The signals at z.
    signals: Aligned<T>,
}

enum Node<T: Real> {
    Conv(Box<Conv<T>>),
    Pool(PoolMap),
}

impl<T: Real> Link<T> {
    /// The convolution, if it is one and trained.
    fn trained(&self) -> Option<&Conv<T>> {
        match &self.node {
            Node::Conv(conv) if !conv.place.frozen => Some(conv),
            _ => None,
        }
    }

    /// Where signals of σ(z) become those of z.
    fn masked(&self) -> Masked<T> {
        let at = self.z.as_ref().map_or(self.output.as_ptr(), |z| z.as_ptr());
        Masked { activation: self.activation, at, signals: self.signals.as_ptr().cast_mut() }
    }
}

/// A network of images bound to its inputs, computing in `T`.
pub struct ImageNetwork<T: Real> {
    bound: Bound,
    team: Arc<Team>,
    arch: Arch,
    examples: Chosen,
    frame: Frame,
    input: Aligned<T>,
    links: Vec<Link<T>>,
    stages: Vec<Stage>,
    tail: DenseNetwork<T>,
    /// Where the parameters of the tail begin.
    dense: usize,
    /// Signals of the inputs of the tail.
    below: Panels<T>,
    /// Examples that fit at once, and those that are there.
    piece: usize,
    held: Option<Range<usize>>,
    waiting: Aligned<T>,
    piece_gradient: Vec<f64>,
    /// The same network for a few examples at slopes of one's choice, and these slopes by example.
    plain: Plain,
    weighed: Vec<Vec<Weighed>>,
}

/// Whether σ(z) tells σ′(z).
fn tells_its_slope(activation: Activation) -> bool {
    match activation {
        Activation::Identity | Activation::Relu => true,
        Activation::LeakyRelu { slope } => slope > 0.0,
        _ => false,
    }
}

impl<T: Real> ImageNetwork<T> {
    /// Binds layers of images to their inputs.
    pub fn new(architecture: &Architecture, inputs: &SharedMatrix, threads: usize) -> Result<Self, ModelError> {
        Self::within(architecture, inputs, threads, usize::MAX)
    }

    /// The same with at most `most` examples at once.
    fn within(
        architecture: &Architecture,
        inputs: &SharedMatrix,
        threads: usize,
        most: usize,
    ) -> Result<Self, ModelError> {
        let Drafts { channels, sides, layers, tail, dense } = Drafts::of(architecture)?;
        let mut frames = vec![Frame::close(channels, sides)];
        for (l, draft) in layers.iter().enumerate() {
            if draft.place.is_some() {
                frames[l].zeros = Conv::<T>::zeros_before(&draft.window);
            }
            frames.push(Frame::padded::<T>(draft.channels, draft.window.after));
        }
        let copies = |l: usize| 2 + usize::from(!tells_its_slope(layers[l].activation));
        let numbers = frames[0].len() + (0..layers.len()).map(|l| copies(l) * frames[l + 1].len()).sum::<usize>();
        let piece = (BYTES / (numbers * size_of::<T>())).min(most).clamp(1, inputs.rows().max(1));
        let mut trained_below = false;
        let links = layers.iter().enumerate().map(|(l, draft)| {
            let (input, frame) = (frames[l], frames[l + 1]);
            let node = match (draft.place, draft.pooling) {
                (Some(place), _) => {
                    let conv = Conv::new(place, draft.window, input, frame, piece, trained_below);
                    trained_below |= !place.frozen;
                    Node::Conv(Box::new(conv))
                }
                (None, pooling) => Node::Pool(PoolMap { pooling, window: draft.window, input, output: frame }),
            };
            let z = (!tells_its_slope(draft.activation)).then(|| frame.room(piece));
            let (output, signals) = (frame.room(piece), frame.room(piece));
            Link { node, activation: draft.activation, frame, output, z, signals }
        });
        let links: Vec<Link<T>> = links.collect();
        let team = Arc::new(Team::new(threads));
        Ok(Self {
            stages: stages(&links),
            links,
            bound: Bound::new(architecture, inputs.rows()),
            arch: Arch::new(),
            examples: Chosen::all(inputs),
            input: frames[0].room(piece),
            frame: frames[0],
            tail: DenseNetwork::tail(&tail, piece, &team)?,
            team,
            dense,
            below: Panels::zeros(0, 0),
            piece,
            held: None,
            waiting: Aligned::zeros(threads.max(1) * waiting_length::<T>()),
            piece_gradient: Vec::new(),
            plain: Plain::of(architecture)?,
            weighed: Vec::new(),
        })
    }

    /// Whether slopes are set at kinks.
    fn has_weighed(&self) -> bool {
        self.weighed.iter().any(|slopes| !slopes.is_empty())
    }

    /// The parameters of the tail.
    fn above<'a>(&self, at: At<'a>) -> At<'a> {
        At::new(&at.entries()[self.dense..], at.version)
    }

    /// Packs the weights of all kernels.
    fn pack(&mut self, at: At<'_>) {
        assert_eq!(at.entries().len(), self.bound.layout.len(), "parameters of another layout");
        let (links, team) = (&self.links, &self.team);
        team.run(|worker| {
            for link in links {
                if let Node::Conv(conv) = &link.node {
                    // SAFETY: every worker packs its part before anybody goes on.
                    unsafe { conv.pack(team, worker, at.entries()) };
                }
            }
        });
    }

    /// Takes these of the examples in use through all layers.
    fn up(&mut self, at: At<'_>, examples: Range<usize>) {
        let (count, frame, arch) = (examples.len(), self.frame, self.arch);
        let (links, stages) = (&self.links, &self.stages);
        let input = SharedSlice::new(&mut self.input);
        let (first, chosen) = (examples.start, &self.examples);
        let waiting = SharedSlice::new(&mut self.waiting);
        let team = &self.team;
        team.run(|worker| {
            let waiting = waiting.pointer().wrapping_add(worker * waiting_length::<T>());
            for (own, layers) in passes(team.share(worker, count), stages) {
                if layers.start == 0 {
                    // SAFETY: this worker's examples.
                    own.clone().for_each(|n| unsafe { frame.load(n, chosen.row(first + n), input.pointer()) });
                }
                for l in layers {
                    let below = if l > 0 { links[l - 1].output.as_ptr() } else { input.pointer().cast_const() };
                    let link = &links[l];
                    let to = Activated {
                        activation: link.activation,
                        output: link.output.as_ptr().cast_mut(),
                        z: link.z.as_ref().map(|z| z.as_ptr().cast_mut()),
                    };
                    match &link.node {
                        Node::Conv(conv) => conv.forward(arch, own.clone(), below, to, waiting),
                        Node::Pool(pool) => pool.forward(arch, own.clone(), below, to),
                    }
                }
            }
        });
        let above = self.above(at);
        let (frame, images) = match links.last() {
            Some(link) => (link.frame, &link.output),
            None => (self.frame, &self.input),
        };
        self.tail.score_given(above, count, |team, forward, turned| {
            team.run(|worker| {
                // SAFETY: panels of these features and examples; this worker's pixels and examples.
                unsafe {
                    frame.copy_features(images.as_ptr(), team.share(worker, frame.pixels()), count, forward);
                    team.share(worker, count).for_each(|n| frame.copy_row(images, n, turned));
                }
            });
        });
        let outputs = self.bound.outputs;
        self.bound.scores[examples.start * outputs..examples.end * outputs].copy_from_slice(&self.tail.bound().scores);
        self.held = Some(examples);
    }

    /// The gradient of ⟨cotangent, scores⟩ over the examples that were taken up last.
    fn down(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        self.pull_signals(at, cotangent, gradient);
        self.gather(cotangent.len() / self.bound.outputs, Target::Gradient(gradient.as_mut_ptr()));
    }

    /// The signals of all layers down to the lowest that is trained, and the gradient of the dense layers.
    fn pull_signals(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        let above = self.above(at);
        self.tail.pull_back_given(above, cotangent, &mut gradient[self.dense..], &mut self.below);
        self.pull_image_signals(cotangent.len() / self.bound.outputs);
    }

    /// The signals of the layers of images of the first `count` examples from those of the tail's inputs.
    fn pull_image_signals(&mut self, count: usize) {
        let arch = self.arch;
        let Some(lowest) = self.links.iter().position(|link| link.trained().is_some()) else { return };
        let (links, stages, team) = (&self.links, &self.stages, &self.team);
        let (waiting, below) = (SharedSlice::new(&mut self.waiting), RawPanels::new(&mut self.below));
        team.run(|worker| {
            let waiting = waiting.pointer().wrapping_add(worker * waiting_length::<T>());
            for (own, layers) in passes(team.share(worker, count), stages.iter().rev()) {
                if let (Some(last), true) = (links.last(), layers.end == links.len()) {
                    let to = last.masked();
                    // SAFETY: this worker's examples.
                    unsafe { last.frame.take_features(below, own.clone(), to.signals) };
                    arch.dispatch(Slopes { frame: &last.frame, examples: own.clone(), to });
                }
                for l in (layers.start.max(lowest + 1)..layers.end).rev() {
                    let (below, signals) = (&links[l - 1], links[l].signals.as_ptr());
                    match &links[l].node {
                        Node::Conv(conv) => conv.back(arch, own.clone(), signals, below.masked(), waiting),
                        Node::Pool(pool) => {
                            pool.back(arch, own.clone(), below.output.as_ptr(), signals, below.masked());
                        }
                    }
                }
            }
        });
    }

    /// The gradient of all kernels from the signals of the first `count` examples, handed to a target as long as they are.
    fn gather(&mut self, count: usize, target: Target<'_, T>) {
        let (arch, links, team, input) = (self.arch, &self.links, &self.team, &self.input);
        let waiting = SharedSlice::new(&mut self.waiting);
        team.run(|worker| {
            let waiting = waiting.pointer().wrapping_add(worker * waiting_length::<T>());
            for (l, link) in links.iter().enumerate() {
                let Some(conv) = link.trained() else { continue };
                let input = if l > 0 { links[l - 1].output.as_ptr() } else { input.as_ptr() };
                let parts = team.share(worker, conv.gradient_parts());
                conv.gradient(arch, parts, count, (input, link.signals.as_ptr()), waiting);
            }
        });
        team.run(|worker| {
            for link in links {
                if let Some(conv) = link.trained() {
                    // SAFETY: the target is as long as the parameters, and workers have parts of their own.
                    unsafe { conv.unpack(team, worker, count, &link.signals, target) };
                }
            }
        });
    }
}

// SAFETY: the addresses inside belong to the network.
unsafe impl<T: Real> Send for ImageNetwork<T> {}

impl<T: Real> Evaluator for ImageNetwork<T> {
    fn bound(&self) -> &Bound {
        &self.bound
    }

    fn select(&mut self, rows: Option<&[usize]>) {
        self.examples.select(rows, &mut self.bound);
        self.weighed.clear();
        self.held = None;
    }

    fn score(&mut self, at: At<'_>) {
        self.pack(at);
        for first in (0..self.bound.examples).step_by(self.piece) {
            self.up(at, first..(first + self.piece).min(self.bound.examples));
        }
    }

    fn pull_back(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        if self.has_weighed() {
            return self.pull_back_weighed(at, cotangent, gradient);
        }
        let (examples, outputs) = (self.bound.examples, self.bound.outputs);
        assert_eq!(cotangent.len(), examples * outputs, "one cotangent per score");
        clear_frozen(&self.bound.layout, gradient);
        if self.held == Some(0..examples) {
            return self.down(at, cotangent, gradient);
        }
        gradient.fill(0.0);
        let mut own = std::mem::take(&mut self.piece_gradient);
        own.resize(gradient.len(), 0.0);
        for first in (0..examples).step_by(self.piece) {
            let range = first..(first + self.piece).min(examples);
            self.up(at, range.clone());
            self.down(at, &cotangent[range.start * outputs..range.end * outputs], &mut own);
            crate::linalg::add_scaled(gradient, 1.0, &own);
        }
        self.piece_gradient = own;
    }

    fn step(&mut self, params: &mut Parameters, cotangent: &[f64], update: Update, scratch: &mut [f64]) -> bool {
        let examples = self.bound.examples;
        if self.held != Some(0..examples) || self.has_weighed() {
            self.pull_back(At::from(&*params), cotangent, scratch);
            make_shared(&self.team, params.write(), update, scratch);
            return scratch.iter().any(|g| *g != 0.0);
        }
        assert_eq!(cotangent.len(), examples * self.bound.outputs, "one cotangent per score");
        clear_frozen(&self.bound.layout, scratch);
        // weights move while their gradient is made or put in order: it is neither written down nor read again, and the
        // copies of dense weights in single precision move with them
        let (images, dense) = params.write().split_at_mut(self.dense);
        let moved = self.tail.step_given(dense, cotangent, update, &mut scratch[self.dense..], &mut self.below);
        self.pull_image_signals(examples);
        let seen = Seen::default();
        self.gather(examples, Target::Step(Step { weights: images.as_mut_ptr(), update, seen: &seen, copy: None }));
        self.tail.moved_to(params.version());
        self.held = None;
        moved || seen.any()
    }

    fn tangents(&mut self) -> Option<&mut dyn Tangents> {
        Some(self)
    }
}
