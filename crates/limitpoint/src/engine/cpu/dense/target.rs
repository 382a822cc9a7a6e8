//! What becomes of a weight gradient: it is written down, or the weights move with it while it is made.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use pulp::{Simd, WithSimd};

use super::raw::{RawTile, store_tile};
use super::rounded::is_double;
use crate::linalg::tile::{Corner, Finish, Tile};
use crate::linalg::{Real, fetch};
use crate::params::Update;

/// Where the gradient of weights goes, in their order.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) enum Target<'a, T> {
    /// It is written here.
    Gradient(*mut f64),
    /// The weights make a move with it.
    Step(Step<'a, T>),
}
// SAFETY: threads write disjoint entries; the owner waits for all of them.
unsafe impl<T> Send for Target<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Target<'_, T> {}

/// A move of weights while their gradient is made.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Step<'a, T> {
    pub weights: *mut f64,
    pub update: Update,
    /// Told of what is not zero.
    pub seen: &'a Seen,
    /// The weights in the type the network computes in, which move with them.
    pub copy: Option<*mut T>,
}

impl<T: Real> Target<'_, T> {
    /// Hands over the entries from `at` on.
    ///
    /// # Safety
    /// These entries must lie inside the matrix, and no other thread may touch them.
    #[inline(always)]
    pub unsafe fn put(self, at: usize, entries: &[T]) {
        // SAFETY: vouched for by the caller.
        unsafe {
            match self {
                Self::Gradient(gradient) => {
                    let to = std::slice::from_raw_parts_mut(gradient.add(at), entries.len());
                    to.iter_mut().zip(entries).for_each(|(to, from)| *to = from.to_f64());
                }
                Self::Step(Step { weights, update, seen, copy }) => {
                    seen.look(entries);
                    let weights = std::slice::from_raw_parts_mut(weights.add(at), entries.len());
                    weights.iter_mut().zip(entries).for_each(|(w, from)| *w = update.of(*w, from.to_f64()));
                    if let Some(copy) = copy {
                        let copy = std::slice::from_raw_parts_mut(copy.add(at), entries.len());
                        copy.iter_mut().zip(weights).for_each(|(to, w)| *to = T::from_f64(*w));
                    }
                }
            }
        }
    }
}

/// Whether an entry of a gradient was not zero.
#[derive(Default)]
pub(in crate::engine::cpu) struct Seen(AtomicBool);

impl Seen {
    /// Looks at these entries, unless there is nothing left to find.
    #[inline(always)]
    pub fn look<T: Real>(&self, entries: &[T]) {
        if !self.any() && entries.iter().any(|entry| *entry != T::default()) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Whether one was found.
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Hands finished gradient tiles to a target whose rows have `cols` entries, `width` of them in a panel.
pub(super) struct StoreRows<'a, T> {
    pub target: Target<'a, T>,
    pub cols: usize,
    pub width: usize,
}

impl<T: Real> Finish<T> for StoreRows<'_, T> {
    /// Weights that move are in no cache: there are too many, and rows are far apart.
    #[inline(always)]
    fn expect(&self, rows: Range<usize>, panel: usize) {
        if let Target::Step(Step { weights, copy, .. }) = self.target {
            for row in rows {
                let at = row * self.cols + panel * self.width;
                fetch(weights.wrapping_add(at), self.width);
                if let Some(copy) = copy {
                    fetch(copy.wrapping_add(at), self.width);
                }
            }
        }
    }

    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(&mut self, simd: S, at: Corner, tile: Tile<T, S, R, NV>) {
        let (start, width) = (at.row * self.cols + at.column, NV * T::lanes::<S>());
        if let (Target::Gradient(gradient), true) = (self.target, is_double::<T>() && at.column + width <= self.cols) {
            // SAFETY: rows and columns are inside the gradient, and are this thread's.
            unsafe { store_tile::<T, S, R, NV>(tile, gradient.add(start).cast(), self.cols) };
            return;
        }
        let raw = RawTile::<T>::of::<S, R, NV>(tile);
        let count = width.min(self.cols - at.column);
        simd.vectorize(Put { target: self.target, raw: &raw, at: start, rows: R, cols: self.cols, count });
    }
}

/// Hands over one tile, compiled once for all tile sizes.
struct Put<'a, T: Real> {
    target: Target<'a, T>,
    raw: &'a RawTile<T>,
    at: usize,
    rows: usize,
    cols: usize,
    count: usize,
}

impl<T: Real> WithSimd for Put<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for r in 0..self.rows {
            // SAFETY: the tile has as many rows and columns; they are inside the matrix, and are this thread's.
            unsafe {
                let row = std::slice::from_raw_parts(self.raw.row(r), self.count);
                self.target.put(self.at + r * self.cols, row);
            }
        }
    }
}
