//! The backward pass of a hidden layer: preactivations become back-signals, and these the layer's gradient.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::curves::{Curve, with_curve};
use super::raw::{Raw, RawPanels, RawTile};
use super::target::{StoreRows, Target};
use crate::linalg::tile::{
    Corner, FEW, Finish, NARROW, Rows, Tile, Waiting, into_panels, narrow_rows, row_blocks, weight_rows,
};
use crate::linalg::{Panels, Real};
use crate::models::Activation;

/// Where the back-signal of a hidden layer comes from.
pub(super) enum Source<'a, T: Real> {
    /// One output: δ = u_j · r · σ′(z), and the gradient of u_j is Σ r σ(z).
    SingleHead { head: Raw<T>, cotangent: &'a [T], gradient: Option<*mut f64> },
    /// The layer above: δ = (Wᵀ δ_above) ∘ σ′(z).
    Layer { weights: Rows<T>, above: &'a Panels<T> },
}

/// The backward pass of one hidden layer over the units `rows`: z becomes δ, then δ gives the gradients.
pub(super) struct Backward<'a, T: Real> {
    pub rows: Range<usize>,
    pub activation: Activation,
    pub source: Source<'a, T>,
    pub signals: RawPanels<T>,
    /// Shape of `signals`.
    pub shape: &'a Panels<T>,
    /// Slopes to use at kinks instead of σ′(z): (unit, example, slope).
    pub kinks: &'a [(usize, usize, f64)],
    pub weights: Option<WeightGradient<'a, T>>,
    pub bias: Option<*mut f64>,
    /// Where unfinished sums wait: of the signals, see [`Waiting::in_rows`], and behind those of all units the sums of the
    /// weight gradient, see [`Waiting::in_panels`].
    pub waiting: *mut T,
}

/// What is needed to turn δ into a weight gradient.
pub(super) struct WeightGradient<'a, T: Real> {
    /// The layer's input as panels of (inputs × examples), whose lanes run over the examples where inputs are few.
    pub few: Option<&'a Panels<T>>,
    /// The layer's input as panels of (examples × inputs).
    pub turned: &'a Panels<T>,
    /// What becomes of it.
    pub target: Target<'a, T>,
}

impl<T: Real> WeightGradient<'_, T> {
    /// The gradient of these rows of the weights from their signals δ, in column panels `panels`, or all where inputs are
    /// few.
    ///
    /// # Safety
    /// The signals have these rows, which are this thread's; sums wait as in [`Waiting::in_rows`].
    #[inline(always)]
    pub unsafe fn make<S: Simd>(
        &self,
        simd: S,
        rows: Range<usize>,
        panels: Range<usize>,
        (start, shape): (*const T, &Panels<T>),
        waiting: *mut T,
    ) {
        // SAFETY: passed on from the caller.
        unsafe {
            if let Some(input) = self.few.filter(|input| input.rows() <= NARROW) {
                let cols = input.rows();
                narrow_rows(simd, rows, (start, shape), input, |row, values: &[T]| {
                    self.target.put(row * cols, &values[..cols]);
                });
            } else {
                let (cols, width) = (self.turned.cols(), self.turned.width());
                let mut store = StoreRows { target: self.target, cols, width };
                let waiting = Waiting::in_panels(waiting, shape.rows(), width);
                weight_rows(simd, rows, (start, shape), self.turned, panels, waiting, &mut store);
            }
        }
    }
}

/// The weight gradient of one layer alone, over the units `rows` whose signals are there and column panels `panels`.
pub(super) struct OnlyWeights<'a, T: Real> {
    pub rows: Range<usize>,
    pub panels: Range<usize>,
    pub signals: &'a Panels<T>,
    pub weights: WeightGradient<'a, T>,
    pub waiting: *mut T,
}

impl<T: Real> WithSimd for OnlyWeights<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let signals = (self.signals.data().as_ptr(), self.signals);
        // SAFETY: the network sized all buffers and gave this thread these rows and panels.
        unsafe { self.weights.make(simd, self.rows, self.panels, signals, self.waiting) };
    }
}

/// Masks a finished back-signal by σ′(z) in place.
struct MaskBySlope<T> {
    signals: RawPanels<T>,
    activation: Activation,
}

impl<T: Real> Finish<T> for MaskBySlope<T> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(&mut self, simd: S, at: Corner, tile: Tile<T, S, R, NV>) {
        let raw = RawTile::<T>::of::<S, R, NV>(tile);
        simd.vectorize(Mask { mask: self, raw: &raw, at, rows: R, vectors: NV });
    }
}

/// The masking of one tile, compiled once for each activation.
struct Mask<'a, T: Real> {
    mask: &'a MaskBySlope<T>,
    raw: &'a RawTile<T>,
    at: Corner,
    rows: usize,
    vectors: usize,
}

impl<T: Real> WithSimd for Mask<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (lanes, width) = (T::lanes::<S>(), self.mask.signals.width);
        with_curve!(self.mask.activation, |curve| {
            for r in 0..self.rows {
                for v in 0..self.vectors {
                    // SAFETY: rows of this thread; the raw tile holds them.
                    unsafe {
                        let at = self.mask.signals.at(self.at.panel, self.at.row).add(r * width + v * lanes);
                        let signal = T::load::<S>(self.raw.row(r).add(v * lanes));
                        T::store::<S>(at, curve.slope_times::<T, S>(simd, T::load::<S>(at), signal));
                    }
                }
            }
        });
    }
}

/// Rows whose back-signals from a single head are made together.
const HEAD_ROWS: usize = 4;

impl<T: Real> Backward<'_, T> {
    /// z → δ = u_j r σ′(z) for R rows under a single head, and Σ r σ(z) for the head's gradient.
    #[inline(always)]
    unsafe fn head_rows<S: Simd, A: Curve, const R: usize>(
        &self,
        simd: S,
        curve: A,
        row: usize,
        head: Raw<T>,
        cotangent: &[T],
        gradient: Option<*mut f64>,
    ) {
        let (lanes, width) = (T::lanes::<S>(), self.signals.width);
        // SAFETY: rows of this thread; the cotangent is padded to whole panels.
        unsafe {
            let weights: [T::Vector<S>; R] = std::array::from_fn(|r| T::splat(simd, *head.0.add(row + r)));
            let mut sums = [T::splat(simd, T::default()); R];
            let mut z = self.signals.at(0, row);
            let mut cotangent = cotangent.as_ptr();
            for panel in 0..self.shape.count() {
                let vectors = self.shape.vectors(panel);
                for v in 0..vectors {
                    let signal = T::load::<S>(cotangent.add(v * lanes));
                    for r in 0..R {
                        let at = z.add(r * width + v * lanes);
                        let value = T::load::<S>(at);
                        sums[r] = T::mul_add(simd, signal, curve.value::<T, S>(simd, value), sums[r]);
                        T::store::<S>(at, curve.slope_times::<T, S>(simd, value, T::mul(simd, weights[r], signal)));
                    }
                }
                z = z.wrapping_add(self.signals.rows * width);
                cotangent = cotangent.wrapping_add(width);
            }
            if let Some(gradient) = gradient {
                for (r, sum) in sums.into_iter().enumerate() {
                    *gradient.add(row + r) = T::reduce_sum(simd, sum).to_f64();
                }
            }
        }
    }

    /// z → δ for the rows of one chunk.
    #[inline(always)]
    unsafe fn signals<S: Simd>(&self, simd: S, rows: Range<usize>) {
        let (signals, activation) = (self.signals, self.activation);
        match &self.source {
            Source::SingleHead { head, cotangent, gradient } => {
                with_curve!(activation, |curve| {
                    let whole = rows.end - rows.len() % HEAD_ROWS;
                    // SAFETY: rows of this thread; the cotangent is padded to whole panels.
                    unsafe {
                        for row in (rows.start..whole).step_by(HEAD_ROWS) {
                            self.head_rows::<S, _, HEAD_ROWS>(simd, curve, row, *head, cotangent, *gradient);
                        }
                        for row in whole..rows.end {
                            self.head_rows::<S, _, 1>(simd, curve, row, *head, cotangent, *gradient);
                        }
                    }
                });
            }
            Source::Layer { weights, above } => {
                let mut mask = MaskBySlope { signals, activation };
                let (depth, panels) = (above.rows(), 0..above.count());
                // SAFETY: rows of this thread.
                unsafe {
                    let waiting = Waiting::in_rows::<S>(self.waiting);
                    for rows in row_blocks::<T>(rows.clone(), depth) {
                        into_panels(simd, rows, depth, *weights, None, above, panels.clone(), waiting, &mut mask);
                    }
                }
            }
        }
        let width = signals.width;
        for &(unit, example, slope) in self.kinks.iter().filter(|kink| rows.contains(&kink.0)) {
            // SAFETY: kinks lie inside the layer; weights are readable for these rows.
            unsafe {
                let raw = match &self.source {
                    Source::SingleHead { head, cotangent, .. } => {
                        (*head.0.add(unit)).to_f64() * cotangent[example].to_f64()
                    }
                    Source::Layer { weights, above } => (0..above.rows())
                        .map(|k| {
                            (*weights.start.add(unit * weights.row + k * weights.step)).to_f64()
                                * above.get(k, example).to_f64()
                        })
                        .sum(),
                };
                *signals.at(example / width, unit).add(example % width) = T::from_f64(slope * raw);
            }
        }
    }
}

impl<T: Real> WithSimd for Backward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Signals from a layer above are made for all rows at once, which reads that layer's signals only once; those
        // of a single head chunk by chunk, so that a chunk is still in the cache when it is used: in the nearest one
        // where the inputs, which every chunk passes, are few, in the second one where they are many.
        let row_bytes = self.shape.count() * self.signals.width * size_of::<T>();
        let input_bytes = self.weights.as_ref().map_or(0, |weights| size_of_val(weights.turned.data()));
        let chunk = ((input_bytes / 4).clamp(16 << 10, 512 << 10) / row_bytes.max(1)).max(8) & !7;
        let chunk = if self.shape.cols() > FEW { self.rows.len().max(8) } else { chunk };
        let from_layer = matches!(self.source, Source::Layer { .. });
        if from_layer {
            // SAFETY: the network sized all buffers and gave this thread these rows.
            unsafe { self.signals(simd, self.rows.clone()) };
        }
        for first in self.rows.clone().step_by(chunk) {
            let rows = first..(first + chunk).min(self.rows.end);
            // SAFETY: the network sized all buffers and gave this thread these rows.
            unsafe {
                if !from_layer {
                    self.signals(simd, rows.clone());
                }
                let start = self.signals.start.cast_const();
                if let Some(weights) = &self.weights {
                    // behind the sums of the signals, which another thread may still be making
                    let behind = self.shape.rows() * Waiting::<T>::row_length(T::lanes::<S>());
                    let (panels, waiting) = (0..weights.turned.count(), self.waiting.wrapping_add(behind));
                    weights.make(simd, rows.clone(), panels, (start, self.shape), waiting);
                }
                if let Some(bias) = self.bias {
                    for row in rows.clone() {
                        let mut sum = T::splat(simd, T::default());
                        for panel in 0..self.shape.count() {
                            for v in 0..self.shape.vectors(panel) {
                                let signals = self.signals.at(panel, row).add(v * T::lanes::<S>());
                                sum = T::add(simd, sum, T::load::<S>(signals));
                            }
                        }
                        *bias.add(row) = T::reduce_sum(simd, sum).to_f64();
                    }
                }
            }
        }
    }
}
