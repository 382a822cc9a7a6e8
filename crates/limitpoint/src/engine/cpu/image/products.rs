//! The gathered products of a convolution, and where their results go.

use std::ops::Range;

use pulp::{Simd, WithSimd};

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

/// What takes the registers of pixels.
pub(super) trait Sink<T: Real>: Copy {
    /// What it needs to know of the layer.
    fn activation(self) -> Activation;

    /// Takes the register that lies at `at`.
    ///
    /// # Safety
    /// It must lie inside the images, and no other thread may touch it.
    unsafe fn put<S: Simd, C: Curve>(self, simd: S, curve: C, at: usize, register: T::Vector<S>);
}

impl<T: Real> Sink<T> for Activated<T> {
    fn activation(self) -> Activation {
        self.activation
    }

    #[inline(always)]
    unsafe fn put<S: Simd, C: Curve>(self, simd: S, curve: C, at: usize, z: T::Vector<S>) {
        // SAFETY: passed on from the caller.
        unsafe {
            if let Some(kept) = self.z {
                T::store::<S>(kept.add(at), z);
            }
            T::store::<S>(self.output.add(at), curve.value::<T, S>(simd, z));
        }
    }
}

impl<T: Real> Sink<T> for Masked<T> {
    fn activation(self) -> Activation {
        self.activation
    }

    #[inline(always)]
    unsafe fn put<S: Simd, C: Curve>(self, simd: S, curve: C, at: usize, signal: T::Vector<S>) {
        // SAFETY: passed on from the caller.
        unsafe {
            let z = T::load::<S>(self.at.add(at));
            T::store::<S>(self.signals.add(at), curve.slope_times::<T, S>(simd, z, signal));
        }
    }
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

/// Pixels at these places.
pub(super) struct StorePixels<'a, P> {
    pub to: P,
    pub places: &'a [u32],
}

impl<T: Real, P: Sink<T>> Finish<T> for StorePixels<'_, P> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(&mut self, simd: S, at: Corner, tile: Tile<T, S, R, NV>) {
        let (to, places) = (self.to, &self.places[at.row..at.row + R]);
        with_curve!(to.activation(), |curve| {
            for (registers, place) in tile.iter().zip(places) {
                for (v, register) in registers.iter().enumerate() {
                    let start = *place as usize + at.column;
                    // SAFETY: a pixel is whole registers.
                    unsafe { to.put::<S, _>(simd, curve, start + v * T::lanes::<S>(), *register) };
                }
            }
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
