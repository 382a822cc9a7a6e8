//! The gathered products of a convolution, and where their results go.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use crate::engine::cpu::dense::curves::{Curve, with_curve};
use crate::linalg::tile::{Begin, Corner, Finish, Gather, GatheredColumns, Lines, Tile, gathered};
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

impl<T: Real, F: Finish<T>> Run<'_, T, F> {
    /// Makes it.
    pub fn on(self, arch: Arch) {
        arch.dispatch(self);
    }
}

impl<T: Real, F: Finish<T>> WithSimd for Run<'_, T, F> {
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

/// Calls `put` with every register of a tile and where it lies, from column `first` on of the pixels at these places.
#[inline(always)]
fn each_register<T: Real, S: Simd, const R: usize, const NV: usize>(
    tile: Tile<T, S, R, NV>,
    first: usize,
    places: &[u32],
    put: impl Fn(usize, T::Vector<S>),
) {
    for (registers, place) in tile.iter().zip(places) {
        let start = *place as usize + first;
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

impl<T: Real> Finish<T> for StoreActivated<'_, T> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(&mut self, simd: S, at: Corner, tile: Tile<T, S, R, NV>) {
        let (to, places) = (self.to, &self.places[at.row..at.row + R]);
        with_curve!(to.activation, |curve| {
            each_register::<T, S, R, NV>(
                tile,
                at.column,
                places,
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

impl<T: Real> Finish<T> for StoreMasked<'_, T> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(&mut self, simd: S, at: Corner, tile: Tile<T, S, R, NV>) {
        let (to, places) = (self.to, &self.places[at.row..at.row + R]);
        with_curve!(to.activation, |curve| {
            each_register::<T, S, R, NV>(
                tile,
                at.column,
                places,
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

/// Rows of a gradient.
pub(super) struct StoreRows<T>(pub Lines<T>);

impl<T: Real> Finish<T> for StoreRows<T> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(&mut self, _: S, at: Corner, tile: Tile<T, S, R, NV>) {
        for (r, registers) in tile.iter().enumerate() {
            for (v, sum) in registers.iter().enumerate() {
                // SAFETY: the gradient has these rows of whole registers.
                unsafe { T::store::<S>(self.0.at(at.row + r, at.column + v * T::lanes::<S>()), *sum) };
            }
        }
    }
}
