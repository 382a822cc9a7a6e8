//! Gradients example by example, and their Gram matrix, layer by layer, without the gradients of all parameters.
//!
//! With patches x and signals δ at the pixels of an example (a dense layer has one pixel), a layer's gradient is
//! ∇W = Σ_p δ_p x_pᵀ, and its part of the Gram matrix is formed in one of two ways:
//!
//! ```text
//! rows      ⟨∇W, ∇W′⟩ with the gradients of a few output channels of this layer at a time
//! patches   Σ_{p,q} ⟨δ_p, δ′_q⟩ (⟨x_p, x′_q⟩ + [the layer has a bias])
//! ```
//!
//! whichever takes fewer multiplications: low layers of many pixels and few weights go by rows, high ones by patches.
//! Jobs that fit into a budget together share a pass over all examples and outputs.

use std::ops::Range;

use super::ImageNetwork;
use crate::engine::{Kinks, Tangents};
use crate::linalg::{Matrix, Real, dot, matmul_nt, matmul_tn};

/// Numbers that jobs of one pass may hold: 256 MiB.
const BUDGET: usize = 32 << 20;
/// Rows of a block of the Gram matrix.
const BLOCK: usize = 256;

/// Where a layer is.
#[derive(Debug, Clone, Copy)]
enum Layer {
    Image(usize),
    Dense(usize),
}

/// One layer, or some of its output channels.
#[derive(Debug, Clone)]
struct Job {
    layer: Layer,
    pixels: usize,
    /// Entries of a patch, with a 1 for the bias at its end.
    inputs: usize,
    bias: bool,
    by_patches: bool,
    channels: Range<usize>,
}

impl Job {
    /// Numbers it holds.
    fn numbers(&self, examples: usize, outputs: usize) -> usize {
        let each = match self.by_patches {
            true => self.pixels * (self.inputs + outputs * self.channels.len()),
            false => outputs * self.channels.len() * self.inputs,
        };
        examples.saturating_mul(each)
    }
}

/// What a job collects.
struct Store {
    job: Job,
    /// Patches of all examples, by example and pixel; of one example where the job goes by rows.
    patches: Vec<f64>,
    /// Signals by example, output and pixel, or gradients by example and output.
    rows: Vec<f64>,
}

impl<T: Real> ImageNetwork<T> {
    /// All trained layers, cut into jobs that are no larger than the budget where they can be.
    fn jobs(&self) -> Vec<Job> {
        let (examples, outputs) = (self.bound.examples, self.bound.outputs);
        let mut jobs = Vec::new();
        let mut push = |layer, pixels: usize, inputs: usize, bias: bool, channels: usize| {
            let inputs = inputs + usize::from(bias);
            let by_patches =
                pixels * pixels * (inputs + outputs * outputs * channels) < outputs * outputs * channels * inputs;
            let each = examples * outputs * inputs;
            let step = if by_patches { channels } else { (BUDGET / each.max(1)).clamp(1, channels) };
            for first in (0..channels).step_by(step) {
                let channels = first..(first + step).min(channels);
                jobs.push(Job { layer, pixels, inputs, bias, by_patches, channels });
            }
        };
        for (l, link) in self.links.iter().enumerate() {
            let Some(conv) = link.trained() else { continue };
            let (image, bias) = (&conv.output, conv.place.bias.is_some());
            push(Layer::Image(l), image.pixels(), self.patch_length(l), bias, image.channels);
        }
        for (l, stage) in self.tail.stages().iter().enumerate().filter(|(_, stage)| !stage.frozen) {
            push(Layer::Dense(l), 1, stage.inputs, stage.bias.is_some(), stage.outputs);
        }
        jobs
    }

    /// Jobs that go together.
    fn passes(&self) -> Vec<Vec<Job>> {
        let (mut passes, mut used): (Vec<Vec<Job>>, usize) = (Vec::new(), 0);
        for job in self.jobs() {
            let numbers = job.numbers(self.bound.examples, self.bound.outputs);
            match passes.last_mut() {
                Some(last) if used.saturating_add(numbers) <= BUDGET => {
                    used += numbers;
                    last.push(job);
                }
                _ => {
                    used = numbers;
                    passes.push(vec![job]);
                }
            }
        }
        passes
    }
}

impl<T: Real> Tangents for ImageNetwork<T> {
    fn per_example_gradients(&mut self, params: &[f64], output: usize) -> Matrix {
        let (examples, outputs) = (self.bound.examples, self.bound.outputs);
        let mut gradients = Matrix::zeros(examples, params.len());
        let mut cotangent = vec![0.0; outputs];
        cotangent[output] = 1.0;
        self.pack(params.into());
        let weighed = self.weighed_examples();
        for n in (0..examples).filter(|n| !weighed.contains(n)) {
            self.up(params.into(), n..n + 1);
            self.down(params.into(), &cotangent, gradients.row_mut(n));
        }
        for n in weighed {
            self.plain_gradient(params, n, &cotangent, gradients.row_mut(n));
        }
        self.held = None;
        gradients
    }

    fn gram_bytes(&self) -> u128 {
        let (examples, outputs) = (self.bound.examples, self.bound.outputs);
        let held = |pass: &Vec<Job>| pass.iter().map(|job| job.numbers(examples, outputs) as u128).sum::<u128>();
        let most = self.passes().iter().map(held).max().unwrap_or(0);
        let gram = crate::memory::bytes(&[examples * outputs, examples * outputs + BLOCK], 8);
        gram.saturating_add(most.saturating_add(self.bound.layout.len() as u128).saturating_mul(8))
    }

    fn gradient_gram(&mut self, params: &[f64]) -> Matrix {
        let (examples, outputs) = (self.bound.examples, self.bound.outputs);
        let mut gram = Matrix::zeros(examples * outputs, examples * outputs);
        let mut unused = vec![0.0; params.len()];
        self.pack(params.into());
        for pass in self.passes() {
            let mut stores: Vec<Store> = pass.into_iter().map(|job| Store::new(job, examples, outputs)).collect();
            for first in (0..examples).step_by(self.piece) {
                let range = first..(first + self.piece).min(examples);
                let mut cotangent = vec![0.0; range.len() * outputs];
                for output in 0..outputs {
                    // signals may lie where the dense layers kept what they need to make others
                    self.up(params.into(), range.clone());
                    if output == 0 {
                        stores.iter_mut().filter(|store| store.job.by_patches).for_each(|store| {
                            range.clone().for_each(|n| store.take_patches(self, n, n - range.start));
                        });
                    }
                    // of the dense layers that go by rows, before their signals are made
                    let dense_input = |store: &Store| match store.job.layer {
                        Layer::Dense(l) if !store.job.by_patches => Some(self.tail.layer_input(l)),
                        _ => None,
                    };
                    let inputs: Vec<Option<Matrix>> = stores.iter().map(dense_input).collect();
                    cotangent.fill(0.0);
                    cotangent.iter_mut().skip(output).step_by(outputs).for_each(|c| *c = 1.0);
                    self.pull_signals(params.into(), &cotangent, &mut unused);
                    for (store, input) in stores.iter_mut().zip(&inputs) {
                        for n in range.clone() {
                            store.take_signals(self, [n, n - range.start, output, outputs], input.as_ref());
                        }
                    }
                }
            }
            for store in &stores {
                if store.job.by_patches { store.add_patches(&mut gram, outputs) } else { store.add_rows(&mut gram) }
            }
        }
        for i in 0..gram.rows {
            (0..i).for_each(|j| gram[(j, i)] = gram[(i, j)]);
        }
        self.held = None;
        gram
    }

    fn kinks(&mut self) -> Option<&mut dyn Kinks> {
        Some(self)
    }
}

impl Store {
    fn new(job: Job, examples: usize, outputs: usize) -> Self {
        let kept = if job.by_patches { examples } else { 1 };
        let patches = vec![0.0; kept * job.pixels * job.inputs];
        let each = if job.by_patches { job.pixels } else { job.inputs };
        let rows = vec![0.0; examples * outputs * each * job.channels.len()];
        Self { patches, rows, job }
    }

    /// Writes the patches of an example down, which is the `here`-th of those that are there.
    fn take_patches<T: Real>(&mut self, network: &ImageNetwork<T>, n: usize, here: usize) {
        let Job { layer, pixels, inputs, bias, .. } = self.job;
        let own = &mut self.patches[n * pixels * inputs..(n + 1) * pixels * inputs];
        match layer {
            Layer::Image(l) => {
                for (pixel, to) in own.chunks_exact_mut(inputs).enumerate() {
                    network.patch(l, here, pixel, &mut to[..inputs - usize::from(bias)]);
                }
            }
            Layer::Dense(l) => network.tail.copy_layer_input(l, here, &mut own[..inputs - usize::from(bias)]),
        }
        if bias {
            own.iter_mut().skip(inputs - 1).step_by(inputs).for_each(|one| *one = 1.0);
        }
    }

    /// Writes the signals of an example, or its gradient, down.
    fn take_signals<T: Real>(
        &mut self,
        network: &ImageNetwork<T>,
        [n, here, output, outputs]: [usize; 4],
        input: Option<&Matrix>,
    ) {
        let Job { layer, pixels, inputs, by_patches, bias, .. } = self.job;
        let channels = self.job.channels.clone();
        let width = channels.len();
        let mut signals = vec![0.0; pixels * width];
        match layer {
            Layer::Image(l) => {
                let link = &network.links[l];
                for (pixel, to) in signals.chunks_exact_mut(width).enumerate() {
                    let values = &link.signals[link.frame.pixel(here, pixel)..][channels.clone()];
                    to.iter_mut().zip(values).for_each(|(to, value)| *to = value.to_f64());
                }
            }
            Layer::Dense(l) => network.tail.copy_signals(l, here, output, channels.clone(), &mut signals),
        }
        if by_patches {
            let at = (n * outputs + output) * pixels * width;
            return self.rows[at..at + pixels * width].copy_from_slice(&signals);
        }
        match (layer, input) {
            (Layer::Dense(_), Some(input)) => {
                self.patches[..input.cols].copy_from_slice(input.row(here));
                if bias {
                    self.patches[inputs - 1] = 1.0;
                }
            }
            _ => self.take_patches(network, 0, here),
        }
        let at = (n * outputs + output) * width * inputs;
        matmul_tn(&mut self.rows[at..at + width * inputs], &signals, &self.patches, width, pixels, inputs);
    }

    /// Adds what was collected to the lower half of the Gram matrix.
    fn add_rows(&self, gram: &mut Matrix) {
        let (count, length) = (gram.rows, self.job.channels.len() * self.job.inputs);
        let mut products = vec![0.0; BLOCK.min(count) * count];
        for first in (0..count).step_by(BLOCK) {
            let end = (first + BLOCK).min(count);
            let (own, below) = (&self.rows[first * length..end * length], &self.rows[..end * length]);
            let products = &mut products[..(end - first) * end];
            matmul_nt(products, own, below, end - first, length, end);
            for (i, products) in products.chunks_exact(end).enumerate() {
                crate::linalg::add_scaled(&mut gram.row_mut(first + i)[..end], 1.0, products);
            }
        }
    }

    /// The same by patches.
    fn add_patches(&self, gram: &mut Matrix, outputs: usize) {
        let Job { pixels, inputs, .. } = self.job;
        let (width, examples) = (self.job.channels.len(), gram.rows / outputs);
        let together = (BLOCK / (outputs * pixels)).max(1);
        let side = together * pixels;
        let (mut inner, mut outer) = (vec![0.0; side * side], vec![0.0; side * side * outputs * outputs]);
        let starts = || (0..examples).step_by(together).map(|first| first..(first + together).min(examples));
        for a in starts() {
            for b in starts().take_while(|b| b.start <= a.start) {
                let (rows, columns) = (a.len() * pixels, b.len() * pixels);
                let patches = |of: &Range<usize>| &self.patches[of.start * pixels * inputs..of.end * pixels * inputs];
                let of = outputs * pixels * width;
                let signals = |range: &Range<usize>| &self.rows[range.start * of..range.end * of];
                matmul_nt(&mut inner[..rows * columns], patches(&a), patches(&b), rows, inputs, columns);
                let wide = columns * outputs;
                matmul_nt(&mut outer[..rows * outputs * wide], signals(&a), signals(&b), rows * outputs, width, wide);
                for i in 0..a.len() * outputs {
                    for j in 0..b.len() * outputs {
                        let (n, m) = (i / outputs, j / outputs);
                        let sum: f64 = (0..pixels)
                            .map(|p| {
                                let inner = &inner[(n * pixels + p) * columns + m * pixels..][..pixels];
                                dot(inner, &outer[(i * pixels + p) * wide + j * pixels..][..pixels])
                            })
                            .sum();
                        gram[(a.start * outputs + i, b.start * outputs + j)] += sum;
                    }
                }
            }
        }
    }
}
