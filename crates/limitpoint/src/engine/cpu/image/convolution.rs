//! A convolution bound to its frames: forward, back-signals and the gradient of its kernel, each a gathered product.

use std::ops::Range;

use pulp::Arch;

use super::field::Frame;
use super::meets::{Class, Meeting, backward, classes, forward, meetings};
use super::products::{Activated, Masked, Run, Sink, StorePixels, StoreRows};
use crate::engine::cpu::dense::raw::Scratch;
use crate::engine::cpu::dense::target::Target;
use crate::linalg::tile::{Begin, Gather, GatheredColumns, Lines};
use crate::linalg::{Aligned, Panels, Real, Team, lanes};
use crate::models::Window;

/// Pixels that the gradient of a kernel takes together: so many that the images and signals of a few hundred channels
/// stay in the second-level cache while all rows pass by.
const PIXELS: usize = 512;

/// Bytes of a gradient up to which it is shared out by examples, and the parts that these are cut into.
const SMALL: usize = 256 << 10;
const SLICES: usize = 16;

/// Outputs whose weights are turned together, and channels.
const LINE: usize = Lines::<f64>::COLUMNS;
const CHANNELS: usize = 64;

/// Where the parameters of a layer lie among all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub weight: usize,
    pub bias: Option<usize>,
    pub frozen: bool,
}

/// One convolution.
pub(super) struct Conv<T: Real> {
    pub place: Place,
    pub window: Window,
    pub input: Frame,
    pub output: Frame,
    /// Every output pixel.
    places: Vec<u32>,
    /// Output pixels by what they meet.
    up: Vec<Class>,
    /// Input pixels by what they meet, where signals go on to the input.
    down: Vec<Class>,
    /// (i, j, c) × output channels, and (i, j, output channel) × c for the way down.
    weights: Panels<T>,
    turned: Panels<T>,
    bias: Aligned<T>,
    /// Offsets in a patch, by (i, j, c).
    entries: Vec<u32>,
    /// Pixels of `block` examples by the entries of the kernel that they meet.
    meetings: Vec<Meeting>,
    block: usize,
    /// The gradient, (i, j, c) × output channels, line by line, in parts that are yet to be added up.
    gradient: Aligned<T>,
    slices: usize,
}

impl<T: Real> Conv<T> {
    /// For as many examples at a time; `below` says whether signals go on to its input.
    pub fn new(place: Place, window: Window, input: Frame, output: Frame, examples: usize, below: bool) -> Self {
        let [height, width] = window.size;
        let mut entries = Vec::new();
        for (i, j) in (0..height).flat_map(|i| (0..width).map(move |j| (i, j))) {
            entries.extend((0..input.channels).map(|c| (i * input.row() + j * input.stride + c) as u32));
        }
        let weights = Panels::zeros(entries.len(), output.channels);
        let (rows, cols) = if below { (height * width * output.channels, input.channels) } else { (0, 0) };
        let turned = Panels::zeros(rows, cols);
        let down = if below {
            classes(&window, (&output, &input), examples, turned.width(), backward(&window))
        } else {
            Vec::new()
        };
        let block = (PIXELS / output.pixels()).clamp(1, examples);
        let slices = if entries.len() * output.stride * size_of::<T>() <= SMALL { SLICES } else { 1 };
        Self {
            place,
            window,
            input,
            output,
            places: output.places(examples),
            up: classes(&window, (&input, &output), examples, weights.width(), forward(&window)),
            down,
            weights,
            turned,
            bias: Aligned::zeros(output.stride.next_multiple_of(lanes::<T>())),
            meetings: meetings(&window, &input, &output, block),
            block,
            gradient: Aligned::zeros(slices * entries.len() * output.stride.next_multiple_of(LINE)),
            slices,
            entries,
        }
    }

    /// Zeros around the input up to which patches reach.
    pub fn zeros_before(window: &Window) -> [usize; 4] {
        let after = |side: usize| {
            let reach = (window.after[side] - 1) * window.stride + window.size[side];
            reach.saturating_sub(window.before[side] + window.zeros[side])
        };
        [window.zeros[0], window.zeros[1], after(0), after(1)]
    }

    /// Calls `take` with this worker's pairs of an output channel and an input channel; squares of channels at a time, so
    /// that lines stay in the first-level cache whichever lie side by side.
    #[inline(always)]
    fn each_pair(&self, team: &Team, worker: usize, mut take: impl FnMut(usize, usize)) {
        let (channels, outputs) = (self.input.channels, self.output.channels);
        for line in team.share(worker, outputs.div_ceil(LINE)) {
            for first in (0..channels).step_by(CHANNELS) {
                for o in line * LINE..((line + 1) * LINE).min(outputs) {
                    for c in first..(first + CHANNELS).min(channels) {
                        take(o, c);
                    }
                }
            }
        }
    }

    /// This worker's part of taking the weights over, in `T` and in the orders of the products.
    ///
    /// # Safety
    /// Nobody reads the weights meanwhile, and every worker of the team calls this.
    pub unsafe fn pack(&self, team: &Team, worker: usize, params: &[f64]) {
        let (channels, outputs) = (self.input.channels, self.output.channels);
        let own = &params[self.place.weight..][..self.entries.len() * outputs];
        let (up, down, entries) = (&self.weights, &self.turned, self.window.size[0] * self.window.size[1]);
        let (to_up, to_down) = (up.data().as_ptr().cast_mut(), down.data().as_ptr().cast_mut());
        // from one entry of the kernel to the next
        let steps = (channels * up.width(), outputs * down.width());
        let goes_down = !self.down.is_empty();
        self.each_pair(team, worker, |o, c| {
            let kernel = &own[(o * channels + c) * entries..][..entries];
            let mut above = to_up.wrapping_add(up.offset(o / up.width(), c) + o % up.width());
            let mut below = to_down.wrapping_add(down.offset(c / down.width(), o) + c % down.width());
            for value in kernel {
                let value = T::from_f64(*value);
                // SAFETY: entries of the panels; those of this output are this worker's.
                unsafe {
                    *above = value;
                    if goes_down {
                        *below = value;
                    }
                }
                (above, below) = (above.wrapping_add(steps.0), below.wrapping_add(steps.1));
            }
        });
        if let (Some(bias), 0) = (self.place.bias, worker) {
            let to = self.bias.as_ptr().cast_mut();
            for (o, value) in params[bias..bias + outputs].iter().enumerate() {
                // SAFETY: one number for every output.
                unsafe { *to.add(o) = T::from_f64(*value) };
            }
        }
    }

    /// σ(z) of these examples, and z where it is kept.
    pub fn forward(&self, arch: Arch, examples: Range<usize>, input: *const T, to: Activated<T>, waiting: *mut T) {
        let begin = self.place.bias.map_or(Begin::Zeros, |_| Begin::Bias(self.bias.as_ptr()));
        self.up.iter().for_each(|class| class.make(arch, &examples, input, (&self.weights, begin), to, waiting));
    }

    /// The signals of the input from those of the output; `to` turns them into those before the activation below.
    pub fn back(&self, arch: Arch, examples: Range<usize>, signals: *const T, to: Masked<T>, waiting: *mut T) {
        let turned = (&self.turned, Begin::Zeros);
        self.down.iter().for_each(|class| class.make(arch, &examples, signals, turned, to, waiting));
    }

    /// Bytes of the kernel.
    pub fn bytes(&self) -> usize {
        size_of_val(self.weights.data())
    }

    /// Parts of the gradient that workers share out: of the examples where rows are few, else of the rows.
    pub fn gradient_parts(&self) -> usize {
        if self.slices > 1 { self.slices } else { self.entries.len().div_ceil(8) }
    }

    /// These parts of the kernel's gradient over `examples` images.
    pub fn gradient(
        &self,
        arch: Arch,
        parts: Range<usize>,
        examples: usize,
        images: (*const T, *const T),
        waiting: *mut T,
    ) {
        let (all, start) = (self.entries.len(), self.gradient.as_ptr().cast_mut());
        let lines = |part: usize| Lines { start: start.wrapping_add(part * self.part_length()), rows: all };
        if self.slices == 1 {
            let rows = parts.start * 8..(parts.end * 8).min(all);
            return self.gradient_rows(arch, rows, 0..examples, images, lines(0), waiting);
        }
        for part in parts {
            let own = examples * part / self.slices..examples * (part + 1) / self.slices;
            self.gradient_rows(arch, 0..all, own, images, lines(part), waiting);
        }
    }

    /// Numbers of a part of the gradient.
    fn part_length(&self) -> usize {
        self.gradient.len() / self.slices
    }

    /// These rows of the kernel's gradient over these images, (i, j, c) × output channels, into `to`, block by block.
    fn gradient_rows(
        &self,
        arch: Arch,
        rows: Range<usize>,
        examples: Range<usize>,
        (input, signals): (*const T, *const T),
        to: Lines<T>,
        waiting: *mut T,
    ) {
        let stride = self.output.stride;
        if examples.is_empty() {
            for column in (0..stride).step_by(LINE) {
                // SAFETY: these rows are this thread's.
                unsafe { std::slice::from_raw_parts_mut(to.at(rows.start, column), rows.len() * LINE) }
                    .fill(T::default());
            }
        }
        for first in examples.clone().step_by(self.block) {
            let count = self.block.min(examples.end - first);
            let source = input.wrapping_add(first * self.input.len());
            let start = signals.wrapping_add(first * self.output.len());
            let begin = if first == examples.start { Begin::Zeros } else { Begin::Sums(to) };
            for meeting in &self.meetings {
                let steps = ..meeting.pixels * count;
                arch.dispatch(Run {
                    rows: rows.start.max(meeting.rows.start)..rows.end.min(meeting.rows.end),
                    a: Gather { source, rows: &self.entries, depth: &meeting.patches[steps] },
                    b: GatheredColumns::at(start, &meeting.places[steps], stride),
                    begin,
                    waiting,
                    finish: StoreRows(to),
                });
            }
        }
    }

    /// This worker's part of handing the gradient over in the order of the parameters; the signals at every pixel give
    /// that of the biases.
    ///
    /// # Safety
    /// The target is as long as the parameters, and every worker of the team calls this.
    pub unsafe fn unpack(&self, team: &Team, worker: usize, examples: usize, signals: &[T], target: Target<'_, T>) {
        for line in team.share(worker, self.output.channels.div_ceil(LINE)) {
            let line = line * LINE..((line + 1) * LINE).min(self.output.channels);
            crate::numeric::wide(
                #[inline(always)]
                // SAFETY: weights of these outputs, which are this worker's.
                || unsafe { self.unpack_line(line.clone(), target) },
            );
            let Some(bias) = self.place.bias else { continue };
            let (mut sums, mut rounded) = ([0.0; LINE], [T::default(); LINE]);
            for place in &self.places[..examples * self.output.pixels()] {
                let pixel = &signals[*place as usize + line.start..][..line.len()];
                sums.iter_mut().zip(pixel).for_each(|(sum, signal)| *sum += signal.to_f64());
            }
            rounded.iter_mut().zip(sums).for_each(|(rounded, sum)| *rounded = T::from_f64(sum));
            // SAFETY: biases of these outputs, which are this worker's.
            unsafe { target.put(bias + line.start, &rounded[..line.len()]) };
        }
    }

    /// Hands the weights of a line of outputs over, adding the parts of the gradient up.
    ///
    /// # Safety
    /// They are this worker's.
    #[inline(always)]
    unsafe fn unpack_line(&self, line: Range<usize>, target: Target<'_, T>) {
        /// Numbers of an output that are handed over together.
        const CHUNK: usize = 256;
        let (channels, each) = (self.input.channels, self.entries.len());
        let start = line.start * each;
        let mut turned = Scratch([[T::default(); CHUNK]; LINE]);
        // in the order of the parameters entries of the kernel lie side by side, channel after channel
        let (mut c, mut row) = (0, 0);
        for first in (0..each).step_by(CHUNK) {
            let count = CHUNK.min(each - first);
            for k in 0..count {
                let mut sums = [T::default(); LINE];
                for part in 0..self.slices {
                    let values = &self.gradient[part * self.part_length() + start + row * LINE..][..LINE];
                    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += *value);
                }
                sums.iter().zip(&mut turned.0).for_each(|(sum, row)| row[k] = *sum);
                row += channels;
                if row >= each {
                    c += 1;
                    row = c;
                }
            }
            for (o, row) in line.clone().zip(&turned.0) {
                // SAFETY: vouched for by the caller.
                unsafe { target.put(self.place.weight + o * each + first, &row[..count]) };
            }
        }
    }
}

impl Class {
    /// The pixels of these examples from those in `source` that they meet.
    fn make<T: Real>(
        &self,
        arch: Arch,
        examples: &Range<usize>,
        source: *const T,
        (weights, begin): (&Panels<T>, Begin<T>),
        to: impl Sink<T>,
        waiting: *mut T,
    ) {
        arch.dispatch(Run {
            rows: examples.start * self.pixels..examples.end * self.pixels,
            a: Gather { source, rows: &self.rows, depth: &self.depth },
            b: GatheredColumns::rows_of(weights, &self.weights),
            begin,
            waiting,
            finish: StorePixels { to, places: &self.places },
        });
    }
}
