//! A convolution bound to its frames: forward, back-signals and the gradient of its kernel, each a gathered product.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::field::Frame;
use crate::engine::cpu::dense::curves::{Curve, with_curve};
use crate::linalg::tile::{FinishRows, Gather, GatheredColumns, Tile, gathered};
use crate::linalg::{Aligned, PANEL_VECTORS, Panels, Real, Team, lanes};
use crate::models::{Activation, Window};

/// Rows of a product that are made together.
const ROWS: usize = 256;

/// Where the parameters of a layer lie among all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub weight: usize,
    pub bias: Option<usize>,
    pub frozen: bool,
}

/// Input pixels that meet the kernel in the same way: the kernel's entries they meet, and where the signals lie.
struct Class<T> {
    /// First signal of every such pixel, example by example.
    rows: Vec<u32>,
    /// Where the signals go.
    places: Vec<u32>,
    pixels: usize,
    /// Offsets of (entry of the kernel, output channel).
    depth: Vec<u32>,
    /// Entries of the kernel, as (i, j).
    entries: Vec<[usize; 2]>,
    /// (entry, output channel) × input channels.
    weights: Panels<T>,
}

/// One convolution.
pub(super) struct Conv<T: Real> {
    pub place: Place,
    pub window: Window,
    pub input: Frame,
    pub output: Frame,
    /// First number of the patch of every output pixel.
    rows: Vec<u32>,
    /// Offsets in a patch, by (i, j, c).
    depth: Vec<u32>,
    /// Every output pixel.
    places: Vec<u32>,
    /// (i, j, c) × output channels.
    weights: Panels<T>,
    bias: Aligned<T>,
    classes: Vec<Class<T>>,
    /// The gradient, (i, j, c) × output channels.
    gradient: Aligned<T>,
}

impl<T: Real> Conv<T> {
    /// For as many examples at a time; `below` says whether signals go on to its input.
    pub fn new(place: Place, window: Window, input: Frame, output: Frame, examples: usize, below: bool) -> Self {
        let [kernel_height, kernel_width] = window.size;
        let stride = window.stride as isize;
        let mut rows = Vec::with_capacity(examples * output.pixels());
        for n in 0..examples {
            for y in 0..output.height as isize {
                for x in 0..output.width as isize {
                    let [above, left] = window.zeros.map(|zeros| zeros as isize);
                    rows.push(input.at(n, y * stride - above, x * stride - left) as u32);
                }
            }
        }
        let mut depth = Vec::new();
        for i in 0..kernel_height {
            for j in 0..kernel_width {
                depth.extend((0..input.channels).map(|c| (i * input.row() + j * input.stride + c) as u32));
            }
        }
        let classes = if below { Self::classes(&window, &input, &output, examples) } else { Vec::new() };
        Self {
            place,
            window,
            input,
            output,
            rows,
            weights: Panels::zeros(depth.len(), output.channels),
            bias: Aligned::zeros(output.stride.next_multiple_of(lanes::<T>())),
            gradient: Aligned::zeros(depth.len() * output.stride),
            depth,
            places: output.places(examples),
            classes,
        }
    }

    /// Input pixels (y, x) in classes of (y + p, x + p) modulo the stride.
    fn classes(window: &Window, input: &Frame, output: &Frame, examples: usize) -> Vec<Class<T>> {
        let (stride, mut classes) = (window.stride, Vec::new());
        for class in 0..stride * stride {
            let residue = [class / stride, class % stride];
            let along = |side: usize| (residue[side]..window.size[side]).step_by(stride).collect::<Vec<_>>();
            let (tall, wide) = (along(0), along(1));
            // the pixels of the class, and the output pixel that meets them with the first entry of the kernel
            let pixels_along = |side: usize, length: usize| -> Vec<(usize, isize)> {
                (0..length)
                    .filter(|at| (at + window.zeros[side]) % stride == residue[side])
                    .map(|at| (at, ((at + window.zeros[side] - residue[side]) / stride) as isize))
                    .collect()
            };
            let (ys, xs) = (pixels_along(0, input.height), pixels_along(1, input.width));
            let (mut rows, mut places) = (Vec::new(), Vec::new());
            for n in 0..examples {
                for (y, above) in &ys {
                    for (x, left) in &xs {
                        // the last entries of the kernel meet the first output pixels
                        let corner = [above - (tall.len() as isize - 1), left - (wide.len() as isize - 1)];
                        rows.push(if tall.is_empty() || wide.is_empty() {
                            0
                        } else {
                            output.at(n, corner[0], corner[1]) as u32
                        });
                        places.push(input.at(n, *y as isize, *x as isize) as u32);
                    }
                }
            }
            let (mut depth, mut entries) = (Vec::new(), Vec::new());
            for (a, i) in tall.iter().rev().enumerate() {
                for (b, j) in wide.iter().rev().enumerate() {
                    entries.push([*i, *j]);
                    depth.extend((0..output.channels).map(|o| (a * output.row() + b * output.stride + o) as u32));
                }
            }
            let weights = Panels::zeros(depth.len(), input.channels);
            classes.push(Class { pixels: ys.len() * xs.len(), rows, places, depth, entries, weights });
        }
        classes
    }

    /// Zeros that back-signals want around the output.
    pub fn zeros_after(window: &Window) -> [usize; 4] {
        let along = |side: usize| (window.size[side] - 1) / window.stride;
        let beyond = |side: usize| {
            let last = (window.before[side] - 1 + window.zeros[side]) / window.stride;
            (last + 1).saturating_sub(window.after[side])
        };
        [along(0), along(1), beyond(0), beyond(1)]
    }

    /// Zeros that the kernel wants around the input.
    pub fn zeros_before(window: &Window) -> [usize; 4] {
        let after = |side: usize| {
            let reach = (window.after[side] - 1) * window.stride + window.size[side];
            reach.saturating_sub(window.before[side] + window.zeros[side])
        };
        [window.zeros[0], window.zeros[1], after(0), after(1)]
    }

    /// This worker's part of taking the weights over, in `T` and in the orders of the products.
    ///
    /// # Safety
    /// Nobody reads the weights meanwhile, and every worker of the team calls this.
    pub unsafe fn pack(&self, team: &Team, worker: usize, params: &[f64]) {
        let (channels, outputs) = (self.input.channels, self.output.channels);
        let entries = self.window.size[0] * self.window.size[1];
        let own = &params[self.place.weight..self.place.weight + outputs * channels * entries];
        let (to, width, rows) = (self.weights.data().as_ptr().cast_mut(), self.weights.width(), self.weights.rows());
        for c in team.share(worker, channels) {
            for o in 0..outputs {
                let from = &own[(o * channels + c) * entries..][..entries];
                let column = (o / width * rows + c) * width + o % width;
                for (entry, value) in from.iter().enumerate() {
                    // SAFETY: an entry of the panels; the rows of this channel are this worker's.
                    unsafe { *to.add(column + entry * channels * width) = T::from_f64(*value) };
                }
            }
        }
        for class in &self.classes {
            let (to, width) = (class.weights.data().as_ptr().cast_mut(), class.weights.width());
            for o in team.share(worker, outputs) {
                let from = &own[o * channels * entries..][..channels * entries];
                for (e, [i, j]) in class.entries.iter().enumerate() {
                    let (entry, row) = (i * self.window.size[1] + j, e * outputs + o);
                    for c in 0..channels {
                        let at = (c / width * class.weights.rows() + row) * width + c % width;
                        // SAFETY: an entry of the panels; the rows of this output are this worker's.
                        unsafe { *to.add(at) = T::from_f64(from[c * entries + entry]) };
                    }
                }
            }
        }
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
        let pixels = self.output.pixels();
        arch.dispatch(Run {
            rows: examples.start * pixels..examples.end * pixels,
            a: Gather { source: input, rows: &self.rows, depth: &self.depth },
            b: GatheredColumns::Panels(&self.weights),
            bias: self.place.bias.map(|_| self.bias.as_ptr()),
            waiting,
            finish: StoreActivated { to, places: &self.places },
        });
    }

    /// The signals of the input from those of the output; `mask` turns them into those before the activation below.
    pub fn back(&self, arch: Arch, examples: Range<usize>, signals: *const T, to: Masked<T>, waiting: *mut T) {
        for class in &self.classes {
            arch.dispatch(Run {
                rows: examples.start * class.pixels..examples.end * class.pixels,
                a: Gather { source: signals, rows: &class.rows, depth: &class.depth },
                b: GatheredColumns::Panels(&class.weights),
                bias: None,
                waiting,
                finish: StoreMasked { to, places: &class.places },
            });
        }
    }

    /// Rows of the gradient.
    pub fn gradient_rows(&self) -> usize {
        self.depth.len()
    }

    /// These rows of the kernel's gradient over `examples` images, (i, j, c) × output channels, into `to`.
    pub fn gradient(
        &self,
        arch: Arch,
        rows: Range<usize>,
        examples: usize,
        (input, signals): (*const T, *const T),
        to: *mut T,
        waiting: *mut T,
    ) {
        let pixels = examples * self.output.pixels();
        arch.dispatch(Run {
            rows,
            a: Gather { source: input, rows: &self.depth, depth: &self.rows[..pixels] },
            b: GatheredColumns::Placed { start: signals, places: &self.places[..pixels], count: self.output.stride },
            bias: None,
            waiting,
            finish: StoreGradient { to, stride: self.output.stride },
        });
    }

    /// Room for the gradient, of which workers write rows of their own.
    pub fn gradient_room(&self) -> *mut T {
        self.gradient.as_ptr().cast_mut()
    }

    /// This worker's part of writing the gradient down in the order of the parameters; the signals at every pixel give
    /// that of the biases.
    ///
    /// # Safety
    /// `out` is as long as the parameters, and every worker of the team calls this.
    pub unsafe fn unpack(&self, team: &Team, worker: usize, examples: usize, signals: &[T], out: *mut f64) {
        /// Outputs whose numbers lie in one line of the cache.
        const LINE: usize = 16;
        let (channels, outputs, stride) = (self.input.channels, self.output.channels, self.output.stride);
        let entries = self.window.size[0] * self.window.size[1];
        for c in team.share(worker, channels) {
            for first in (0..outputs).step_by(LINE) {
                for o in first..(first + LINE).min(outputs) {
                    let to = self.place.weight + (o * channels + c) * entries;
                    for entry in 0..entries {
                        // SAFETY: an entry of the gradient; those of this channel are this worker's.
                        unsafe { *out.add(to + entry) = self.gradient[(entry * channels + c) * stride + o].to_f64() };
                    }
                }
            }
        }
        if let (Some(bias), 0) = (self.place.bias, worker) {
            // SAFETY: the biases lie inside the gradient.
            let sums = unsafe { std::slice::from_raw_parts_mut(out.add(bias), outputs) };
            sums.fill(0.0);
            for place in &self.places[..examples * self.output.pixels()] {
                let pixel = &signals[*place as usize..][..outputs];
                sums.iter_mut().zip(pixel).for_each(|(sum, signal)| *sum += signal.to_f64());
            }
        }
    }
}

/// Where σ(z) goes, and z where it is kept.
#[derive(Clone, Copy)]
pub(super) struct Activated<T> {
    pub activation: Activation,
    pub output: *mut T,
    pub z: Option<*mut T>,
}

/// Where signals go, multiplied by σ′ at what is in `at`.
#[derive(Clone, Copy)]
pub(super) struct Masked<T> {
    pub activation: Activation,
    pub at: *const T,
    pub signals: *mut T,
}

/// A gathered product on whatever registers the machine has.
struct Run<'a, T: Real, F> {
    rows: Range<usize>,
    a: Gather<'a, T>,
    b: GatheredColumns<'a, T>,
    bias: Option<*const T>,
    waiting: *mut T,
    finish: F,
}

impl<T: Real, F: FinishRows<T>> WithSimd for Run<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for first in self.rows.clone().step_by(ROWS) {
            let rows = first..(first + ROWS).min(self.rows.end);
            // SAFETY: offsets come from frames that all buffers were made for; the rows are this thread's.
            unsafe { gathered(simd, rows, self.a, self.b, self.bias, self.waiting, &mut self.finish) };
        }
    }
}

/// Numbers that wait for one thread.
pub(super) fn waiting_length<T: Real>() -> usize {
    ROWS * PANEL_VECTORS * lanes::<T>()
}

struct StoreActivated<'a, T> {
    to: Activated<T>,
    places: &'a [u32],
}

impl<T: Real> FinishRows<T> for StoreActivated<'_, T> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(
        &mut self,
        simd: S,
        row: usize,
        first: usize,
        tile: Tile<T, S, R, NV>,
    ) {
        with_curve!(self.to.activation, |curve| {
            for (r, sums) in tile.iter().enumerate() {
                for (v, z) in sums.iter().enumerate() {
                    let at = self.places[row + r] as usize + first + v * T::lanes::<S>();
                    // SAFETY: a pixel is whole registers.
                    unsafe {
                        if let Some(to) = self.to.z {
                            T::store::<S>(to.add(at), *z);
                        }
                        T::store::<S>(self.to.output.add(at), curve.value::<T, S>(simd, *z));
                    }
                }
            }
        });
    }
}

struct StoreMasked<'a, T> {
    to: Masked<T>,
    places: &'a [u32],
}

impl<T: Real> FinishRows<T> for StoreMasked<'_, T> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(
        &mut self,
        simd: S,
        row: usize,
        first: usize,
        tile: Tile<T, S, R, NV>,
    ) {
        with_curve!(self.to.activation, |curve| {
            for (r, sums) in tile.iter().enumerate() {
                for (v, signal) in sums.iter().enumerate() {
                    let at = self.places[row + r] as usize + first + v * T::lanes::<S>();
                    // SAFETY: a pixel is whole registers.
                    unsafe {
                        let z = T::load::<S>(self.to.at.add(at));
                        T::store::<S>(self.to.signals.add(at), curve.slope_times::<T, S>(simd, z, *signal));
                    }
                }
            }
        });
    }
}

struct StoreGradient<T> {
    to: *mut T,
    stride: usize,
}

impl<T: Real> FinishRows<T> for StoreGradient<T> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(
        &mut self,
        _: S,
        row: usize,
        first: usize,
        tile: Tile<T, S, R, NV>,
    ) {
        for (r, sums) in tile.iter().enumerate() {
            for (v, sum) in sums.iter().enumerate() {
                // SAFETY: the gradient has these rows of whole registers.
                unsafe { T::store::<S>(self.to.add((row + r) * self.stride + first + v * T::lanes::<S>()), *sum) };
            }
        }
    }
}
