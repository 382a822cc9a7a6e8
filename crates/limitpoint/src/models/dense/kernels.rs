//! The fused passes of a dense network: what happens to tiles while they are still in registers.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::shapes::{Shape, with_shape};
use crate::linalg::tile::{Finish, NARROW, Rows, Tile, into_panels, narrow_rows, weight_rows};
use crate::linalg::{Panels, Real};
use crate::models::Activation;

/// Raw access to panels that several threads write, each its own rows.
pub(super) struct RawPanels<T> {
    pub start: *mut T,
    pub rows: usize,
    pub width: usize,
}

impl<T> Clone for RawPanels<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for RawPanels<T> {}
// SAFETY: threads write disjoint rows; the owner waits for all of them.
unsafe impl<T: Send> Send for RawPanels<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for RawPanels<T> {}

impl<T: Real> RawPanels<T> {
    pub fn new(panels: &mut Panels<T>) -> Self {
        Self { rows: panels.rows(), width: panels.width(), start: panels.data_mut().as_mut_ptr() }
    }

    /// The number at an index. A method, so that closures borrow the whole and not the bare pointer.
    pub fn place(&self, index: usize) -> *mut T {
        self.start.wrapping_add(index)
    }

    /// The same panels with the first of them counted as `first`.
    pub fn counted_from(self, first: usize) -> Self {
        Self { start: self.start.wrapping_sub(first * self.rows * self.width), ..self }
    }

    /// The first number of a row of a panel.
    #[inline(always)]
    pub fn at(&self, panel: usize, row: usize) -> *mut T {
        self.start.wrapping_add((panel * self.rows + row) * self.width)
    }
}

/// A pointer that may cross threads; what it points to is shared under the rules of [`RawPanels`].
pub(super) struct Raw<T>(pub *const T);
impl<T> Clone for Raw<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Raw<T> {}
impl<T> Raw<T> {
    /// The address `index` numbers on. A method, so that closures borrow the whole and not the bare pointer.
    pub fn at(&self, index: usize) -> *const T {
        self.0.wrapping_add(index)
    }
}
// SAFETY: as for RawPanels.
unsafe impl<T: Sync> Send for Raw<T> {}
// SAFETY: as for RawPanels.
unsafe impl<T: Sync> Sync for Raw<T> {}

/// The forward pass of one hidden layer over the units `rows`: z = W·a + b, then σ(z), then what follows.
pub(super) struct Forward<'a, T: Real> {
    pub rows: Range<usize>,
    pub weights: Rows<T>,
    pub bias: Option<Raw<T>>,
    pub input: &'a Panels<T>,
    /// The panels of the input to work on; what is written is counted likewise.
    pub panels: Range<usize>,
    pub activation: Activation,
    /// Where z goes; the back-signals will overwrite it.
    pub z: RawPanels<T>,
    /// Where σ(z) goes, if another layer reads it.
    pub output: Option<RawPanels<T>>,
    /// The transposed σ(z) for the next layer's weight gradient.
    pub turned: Option<RawPanels<T>>,
    /// Output weights of a single-output head, partial scores per block of units, and the block size.
    pub head: Option<(Raw<T>, RawPanels<T>, usize)>,
    /// One panel row per unit, where unfinished sums wait.
    pub waiting: *mut T,
}
// SAFETY: the pointers are used at this thread's rows only.
unsafe impl<T: Real> Send for Forward<'_, T> {}

impl<T: Real> Finish<T> for Forward<'_, T> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(
        &mut self,
        simd: S,
        row: usize,
        panel: usize,
        tile: Tile<T, S, R, NV>,
    ) {
        // SAFETY: rows of this call belong to this thread, panels have `rows` rows and at least NV registers a row.
        unsafe { store_tile::<T, S, R, NV>(tile, self.z.at(panel, row), self.z.width) };
        simd.vectorize(Activate { forward: self, row, panel, rows: R, vectors: NV });
    }
}

/// Writes a tile to memory, rows `width` apart.
///
/// # Safety
/// R rows of NV registers must be writable.
#[inline(always)]
unsafe fn store_tile<T: Real, S: Simd, const R: usize, const NV: usize>(
    tile: Tile<T, S, R, NV>,
    to: *mut T,
    width: usize,
) {
    for (r, registers) in tile.into_iter().enumerate() {
        for (v, register) in registers.into_iter().enumerate() {
            // SAFETY: vouched for by the caller.
            unsafe { T::store::<S>(to.add(r * width + v * T::lanes::<S>()), register) };
        }
    }
}

/// What follows z for one tile that was just stored: σ(z), and the partial sums of a fused head.
///
/// A function of its own, so that the choice of activation is compiled once and not in every tile size.
struct Activate<'f, 'a, T: Real> {
    forward: &'f Forward<'a, T>,
    row: usize,
    panel: usize,
    rows: usize,
    vectors: usize,
}

impl<T: Real> WithSimd for Activate<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { forward, row, panel, rows, vectors } = self;
        let (lanes, width) = (T::lanes::<S>(), forward.z.width);
        with_shape!(forward.activation, |shape| {
            // SAFETY: as in `Forward::finish`.
            unsafe {
                let z = forward.z.at(panel, row);
                if let Some(output) = forward.output {
                    let a = output.at(panel, row);
                    for r in 0..rows {
                        for v in 0..vectors {
                            let at = r * width + v * lanes;
                            T::store::<S>(a.add(at), shape.value::<T, S>(simd, T::load::<S>(z.add(at))));
                        }
                    }
                }
                if let Some((head, partial, block)) = forward.head {
                    let sums = partial.at(panel, row / block);
                    for v in 0..vectors {
                        let mut sum = T::load::<S>(sums.add(v * lanes));
                        for r in 0..rows {
                            let value = shape.value::<T, S>(simd, T::load::<S>(z.add(r * width + v * lanes)));
                            sum = T::mul_add(simd, T::splat(simd, *head.0.add(row + r)), value, sum);
                        }
                        T::store::<S>(sums.add(v * lanes), sum);
                    }
                }
            }
        });
    }
}

impl<T: Real> WithSimd for Forward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (rows, depth, weights, bias) = (self.rows.clone(), self.input.rows(), self.weights, self.bias);
        let (input, panels, waiting) = (self.input, self.panels.clone(), self.waiting);
        // SAFETY: the network sized all buffers for its layers, and gave this thread these rows.
        unsafe {
            if let Some((_, partial, block)) = self.head {
                for panel in panels.clone() {
                    for index in rows.start / block..rows.end.div_ceil(block) {
                        std::slice::from_raw_parts_mut(partial.at(panel, index), partial.width).fill(T::default());
                    }
                }
            }
            into_panels(simd, rows.clone(), depth, weights, bias.map(|b| b.0), input, panels, waiting, &mut self);
            if let (Some(output), Some(turned)) = (self.output, self.turned) {
                transpose_rows(rows, input.cols(), output, turned);
            }
        }
    }
}

/// Copies rows of `from` (units × examples) into columns of `to` (examples × units), in small squares.
///
/// # Safety
/// Both must be valid for these rows and columns, written by no other thread.
#[inline(always)]
unsafe fn transpose_rows<T: Real>(rows: Range<usize>, examples: usize, from: RawPanels<T>, to: RawPanels<T>) {
    const SQUARE: usize = 8;
    let width = from.width;
    for first in (0..examples).step_by(SQUARE) {
        let panel = first / width;
        let count = SQUARE.min(examples - first).min(width - first % width);
        let mut row = rows.start;
        while row < rows.end {
            let column_panel = row / to.width;
            let wide = SQUARE.min(rows.end - row).min(to.width - row % to.width);
            for i in 0..count {
                let target = to.at(column_panel, first + i).wrapping_add(row % to.width);
                let source = from.at(panel, row).wrapping_add(first % width + i);
                for j in 0..wide {
                    // SAFETY: inside both panels by construction.
                    unsafe { *target.add(j) = *source.add(j * width) };
                }
            }
            row += wide;
        }
    }
}

/// The output layer's forward pass for the example panels `panels`.
pub(super) struct Head<'a, T: Real> {
    pub outputs: usize,
    pub weights: Rows<T>,
    pub bias: Option<Raw<T>>,
    pub input: &'a Panels<T>,
    pub panels: Range<usize>,
    /// Scores as panels (outputs × examples).
    pub scores: RawPanels<T>,
}
// SAFETY: the pointers are used at this thread's panels only.
unsafe impl<T: Real> Send for Head<'_, T> {}

impl<T: Real> Finish<T> for Head<'_, T> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(
        &mut self,
        _: S,
        row: usize,
        panel: usize,
        tile: Tile<T, S, R, NV>,
    ) {
        let lanes = T::lanes::<S>();
        for (r, registers) in tile.iter().enumerate() {
            for (v, &register) in registers.iter().enumerate() {
                // SAFETY: this thread owns the panel.
                unsafe { T::store::<S>(self.scores.at(panel, row + r).add(v * lanes), register) };
            }
        }
    }
}

impl<T: Real> WithSimd for Head<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (outputs, depth, weights, bias) = (self.outputs, self.input.rows(), self.weights, self.bias);
        let (input, scores, rows) = (self.input, self.scores.start, self.scores.rows);
        for panel in self.panels.clone() {
            let waiting = scores.wrapping_add(panel * rows * input.width());
            // SAFETY: buffers are sized by the network; panels are this thread's.
            unsafe {
                into_panels(
                    simd,
                    0..outputs,
                    depth,
                    weights,
                    bias.map(|b| b.0),
                    input,
                    panel..panel + 1,
                    waiting,
                    &mut self,
                );
            }
        }
    }
}

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
    /// One panel row per unit, where unfinished sums wait.
    pub waiting: *mut T,
}
// SAFETY: the pointers are written at this thread's rows only.
unsafe impl<T: Real> Send for Backward<'_, T> {}

/// What is needed to turn δ into a weight gradient.
pub(super) struct WeightGradient<'a, T: Real> {
    /// The layer's input as panels of (inputs × examples).
    pub input: &'a Panels<T>,
    /// The layer's input as panels of (examples × inputs).
    pub turned: &'a Panels<T>,
    /// Row-major gradient of the layer's weights.
    pub gradient: *mut f64,
}

/// Masks a finished back-signal by σ′(z) in place.
struct MaskBySlope<T> {
    signals: RawPanels<T>,
    activation: Activation,
}

/// Rows and numbers a row of the largest tile: 8 rows of three registers of at most 16 numbers.
const TILE_ROWS: usize = 8;
const TILE_WIDTH: usize = 48;

impl<T: Real> Finish<T> for MaskBySlope<T> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(
        &mut self,
        simd: S,
        row: usize,
        panel: usize,
        tile: Tile<T, S, R, NV>,
    ) {
        let mut raw = [T::default(); TILE_ROWS * TILE_WIDTH];
        // SAFETY: a tile has at most 8 rows of 48 numbers.
        unsafe { store_tile::<T, S, R, NV>(tile, raw.as_mut_ptr(), TILE_WIDTH) };
        simd.vectorize(Mask { mask: self, raw: &raw, row, panel, rows: R, vectors: NV });
    }
}

/// The masking of one tile, compiled once for each activation.
struct Mask<'a, T: Real> {
    mask: &'a MaskBySlope<T>,
    raw: &'a [T; TILE_ROWS * TILE_WIDTH],
    row: usize,
    panel: usize,
    rows: usize,
    vectors: usize,
}

impl<T: Real> WithSimd for Mask<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (lanes, width) = (T::lanes::<S>(), self.mask.signals.width);
        with_shape!(self.mask.activation, |shape| {
            for r in 0..self.rows {
                for v in 0..self.vectors {
                    // SAFETY: rows of this thread; the raw tile holds them.
                    unsafe {
                        let at = self.mask.signals.at(self.panel, self.row).add(r * width + v * lanes);
                        let signal = T::load::<S>(self.raw.as_ptr().add(r * TILE_WIDTH + v * lanes));
                        T::store::<S>(at, shape.slope_times::<T, S>(simd, T::load::<S>(at), signal));
                    }
                }
            }
        });
    }
}

/// Stores finished gradient tiles in a row-major matrix of doubles.
pub(super) struct StoreRows {
    pub gradient: *mut f64,
    pub cols: usize,
}

impl<T: Real> Finish<T> for StoreRows {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(
        &mut self,
        _: S,
        row: usize,
        first: usize,
        tile: Tile<T, S, R, NV>,
    ) {
        let lanes = T::lanes::<S>();
        for (r, registers) in tile.iter().enumerate() {
            for (v, register) in registers.iter().enumerate() {
                let col = first + v * lanes;
                let count = lanes.min(self.cols.saturating_sub(col));
                // SAFETY: a register is `lanes` numbers; row and column are inside the gradient.
                unsafe {
                    let values = std::slice::from_raw_parts((&raw const *register).cast::<T>(), lanes);
                    let target = self.gradient.add((row + r) * self.cols + col);
                    for (l, value) in values[..count].iter().enumerate() {
                        *target.add(l) = value.to_f64();
                    }
                }
            }
        }
    }
}

/// Rows whose back-signals from a single head are made together.
const HEAD_ROWS: usize = 4;

impl<T: Real> Backward<'_, T> {
    /// z → δ = u_j r σ′(z) for R rows under a single head, and Σ r σ(z) for the head's gradient.
    #[inline(always)]
    unsafe fn head_rows<S: Simd, A: Shape, const R: usize>(
        &self,
        simd: S,
        shape: A,
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
                        sums[r] = T::mul_add(simd, signal, shape.value::<T, S>(simd, value), sums[r]);
                        T::store::<S>(at, shape.slope_times::<T, S>(simd, value, T::mul(simd, weights[r], signal)));
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
                with_shape!(activation, |shape| {
                    let mut row = rows.start;
                    // SAFETY: rows of this thread; the cotangent is padded to whole panels.
                    unsafe {
                        while row + HEAD_ROWS <= rows.end {
                            self.head_rows::<S, _, HEAD_ROWS>(simd, shape, row, *head, cotangent, *gradient);
                            row += HEAD_ROWS;
                        }
                        while row < rows.end {
                            self.head_rows::<S, _, 1>(simd, shape, row, *head, cotangent, *gradient);
                            row += 1;
                        }
                    }
                });
            }
            Source::Layer { weights, above } => {
                let mut mask = MaskBySlope { signals, activation };
                let panels = 0..above.count();
                // SAFETY: rows of this thread.
                unsafe {
                    into_panels(
                        simd,
                        rows.clone(),
                        above.rows(),
                        *weights,
                        None,
                        above,
                        panels,
                        self.waiting,
                        &mut mask,
                    );
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
        // of a single head chunk by chunk, so that a chunk stays in the second-level cache until it is used.
        let row_bytes = self.shape.count() * self.signals.width * size_of::<T>();
        let chunk = ((128 << 10) / row_bytes.max(1)).max(8) & !7;
        let from_layer = matches!(self.source, Source::Layer { .. });
        if from_layer {
            // SAFETY: the network sized all buffers and gave this thread these rows.
            unsafe { self.signals(simd, self.rows.clone()) };
        }
        let mut row = self.rows.start;
        while row < self.rows.end {
            let rows = row..(row + chunk).min(self.rows.end);
            // SAFETY: the network sized all buffers and gave this thread these rows.
            unsafe {
                if !from_layer {
                    self.signals(simd, rows.clone());
                }
                let start = self.signals.start.cast_const();
                if let Some(weights) = &self.weights {
                    if weights.input.rows() <= NARROW {
                        let cols = weights.input.rows();
                        let gradient = weights.gradient;
                        narrow_rows(simd, rows.clone(), (start, self.shape), weights.input, |row, values: &[T]| {
                            for (i, value) in values[..cols].iter().enumerate() {
                                *gradient.add(row * cols + i) = value.to_f64();
                            }
                        });
                    } else {
                        let mut store = StoreRows { gradient: weights.gradient, cols: weights.turned.cols() };
                        let panels = 0..weights.turned.count();
                        weight_rows(simd, rows.clone(), (start, self.shape), weights.turned, panels, &mut store);
                    }
                }
                if let Some(bias) = self.bias {
                    for row in rows.clone() {
                        let mut sum = T::splat(simd, T::default());
                        for panel in 0..self.shape.count() {
                            for v in 0..self.shape.vectors(panel) {
                                sum = T::add(
                                    simd,
                                    sum,
                                    T::load::<S>(self.signals.at(panel, row).add(v * T::lanes::<S>())),
                                );
                            }
                        }
                        *bias.add(row) = T::reduce_sum(simd, sum).to_f64();
                    }
                }
            }
            row = rows.end;
        }
    }
}

/// The weight gradient of an output layer, column panels `panels` of it.
pub(super) struct HeadGradient<'a, T: Real> {
    pub outputs: usize,
    pub cotangent: &'a Panels<T>,
    pub turned: &'a Panels<T>,
    pub panels: Range<usize>,
    pub gradient: *mut f64,
}
// SAFETY: the gradient is written at this thread's columns only.
unsafe impl<T: Real> Send for HeadGradient<'_, T> {}

impl<T: Real> WithSimd for HeadGradient<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut store = StoreRows { gradient: self.gradient, cols: self.turned.cols() };
        let d = (self.cotangent.data().as_ptr(), self.cotangent);
        // SAFETY: shapes agree by construction of the network.
        unsafe { weight_rows(simd, 0..self.outputs, d, self.turned, self.panels, &mut store) }
    }
}
