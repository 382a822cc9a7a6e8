//! The gathered products of a convolution, and where their results go.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use crate::engine::cpu::dense::curves::{Curve, with_curve};
use crate::linalg::tile::{Begin, FinishRows, Gather, GatheredColumns, Tile, gathered};
use crate::linalg::{PANEL_VECTORS, Real, lanes};
use crate::models::Activation;

/// Rows of a product that are made together.
const ROWS: usize = 256;

/// Numbers that wait for one thread.
pub(super) fn waiting_length<T: Real>() -> usize {
    ROWS * PANEL_VECTORS * lanes::<T>()
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
pub(super) struct Run<'a, T: Real, F> {
    pub rows: Range<usize>,
    pub a: Gather<'a, T>,
    pub b: GatheredColumns<'a, T>,
    pub begin: Begin<T>,
    pub waiting: *mut T,
    pub finish: F,
}

impl<T: Real, F: FinishRows<T>> Run<'_, T, F> {
    /// Makes it.
    pub fn on(self, arch: Arch) {
        arch.dispatch(self);
    }
}

impl<T: Real, F: FinishRows<T>> WithSimd for Run<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for first in self.rows.clone().step_by(ROWS) {
            let rows = first..(first + ROWS).min(self.rows.end);
            // SAFETY: offsets come from frames that all buffers were made for; the rows are this thread's.
            unsafe { gathered(simd, rows, self.a, self.b, self.begin, self.waiting, &mut self.finish) };
        }
    }
}

/// Calls `put` with every register of a tile and where it lies: so far from the place of its row.
#[inline(always)]
fn each_register<T: Real, S: Simd, const R: usize, const NV: usize>(
    tile: Tile<T, S, R, NV>,
    first: usize,
    place: impl Fn(usize) -> usize,
    put: impl Fn(usize, T::Vector<S>),
) {
    for (r, registers) in tile.iter().enumerate() {
        let start = place(r) + first;
        for (v, register) in registers.iter().enumerate() {
            put(start + v * T::lanes::<S>(), *register);
        }
    }
}

/// Preactivations of pixels.
pub(super) struct StoreActivated<'a, T> {
    pub to: Activated<T>,
    pub places: &'a [u32],
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
        let (to, place) = (self.to, |r: usize| self.places[row + r] as usize);
        with_curve!(to.activation, |curve| {
            each_register::<T, S, R, NV>(
                tile,
                first,
                place,
                #[inline(always)]
                // SAFETY: a pixel is whole registers.
                |at, z| unsafe {
                    if let Some(kept) = to.z {
                        T::store::<S>(kept.add(at), z);
                    }
                    T::store::<S>(to.output.add(at), curve.value::<T, S>(simd, z));
                },
            );
        });
    }
}

/// Signals of pixels.
pub(super) struct StoreMasked<'a, T> {
    pub to: Masked<T>,
    pub places: &'a [u32],
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
        let (to, place) = (self.to, |r: usize| self.places[row + r] as usize);
        with_curve!(to.activation, |curve| {
            each_register::<T, S, R, NV>(
                tile,
                first,
                place,
                #[inline(always)]
                // SAFETY: a pixel is whole registers.
                |at, signal| unsafe {
                    let z = T::load::<S>(to.at.add(at));
                    T::store::<S>(to.signals.add(at), curve.slope_times::<T, S>(simd, z, signal));
                },
            );
        });
    }
}

/// Rows of a gradient, `stride` numbers each.
pub(super) struct StoreRows<T> {
    pub to: *mut T,
    pub stride: usize,
}

impl<T: Real> FinishRows<T> for StoreRows<T> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(
        &mut self,
        _: S,
        row: usize,
        first: usize,
        tile: Tile<T, S, R, NV>,
    ) {
        each_register::<T, S, R, NV>(
            tile,
            first,
            |r| (row + r) * self.stride,
            #[inline(always)]
            // SAFETY: the gradient has these rows of whole registers.
            |at, sum| unsafe { T::store::<S>(self.to.add(at), sum) },
        );
    }
}
