//! Products whose row operand is gathered: convolutions without a copy of their patches.
//!
//! A patch of an image is a sum of two offsets: where its corner lies, and how far from there an entry is. So is every
//! operand of a convolution, on its way up, on its way down and in the gradient of its kernel:
//!
//! ```text
//! C[r, :] = Σₖ source[rows[r] + depth[k]] · B[k, :]
//! ```
//!
//! with B a panel of weights, or the signals at the pixels themselves. Each row of a result is computed in one fixed
//! order whoever computes it.

use std::ops::Range;

use pulp::Simd;

use super::{DEPTH, Tile, fits};
use crate::linalg::panels::PANEL_VECTORS;
use crate::linalg::{Panels, Real};

/// The row operand: entry (r, k) lies at `source + rows[r] + depth[k]`.
#[derive(Clone, Copy)]
pub struct Gather<'a, T> {
    /// Where offsets count from.
    pub source: *const T,
    /// One offset for every row.
    pub rows: &'a [u32],
    /// One offset for every step in depth.
    pub depth: &'a [u32],
}

/// The column operand.
#[derive(Clone, Copy)]
pub enum Columns<'a, T> {
    /// Panels of `depth` rows.
    Panels(&'a Panels<T>),
    /// Numbers side by side, `count` of them from `start + places[k]` on.
    Placed {
        /// Where places count from.
        start: *const T,
        /// One place for every step in depth.
        places: &'a [u32],
        /// Columns, padded to whole registers.
        count: usize,
    },
}

/// What becomes of finished rows.
pub trait FinishRows<T: Real> {
    /// Takes columns `first..first + NV registers` of rows `row..row + R`.
    fn finish<S: Simd, const R: usize, const NV: usize>(
        &mut self,
        simd: S,
        row: usize,
        first: usize,
        tile: Tile<T, S, R, NV>,
    );
}

/// tile += A(R × depth) · B(depth × NV registers).
#[inline(always)]
unsafe fn accumulate<T: Real, S: Simd, const R: usize, const NV: usize>(
    simd: S,
    depth: &[u32],
    rows: [*const T; R],
    columns: impl Fn(usize) -> *const T,
    tile: &mut Tile<T, S, R, NV>,
) {
    let mut local = *tile;
    for (k, offset) in depth.iter().enumerate() {
        // SAFETY: the caller vouches for all offsets.
        unsafe {
            let from = columns(k);
            let right: [T::Vector<S>; NV] = std::array::from_fn(|v| T::load::<S>(from.add(v * T::lanes::<S>())));
            for (row, sums) in rows.iter().zip(&mut local) {
                let entry = T::splat(simd, *row.add(*offset as usize));
                for v in 0..NV {
                    sums[v] = T::mul_add(simd, entry, right[v], sums[v]);
                }
            }
        }
    }
    *tile = local;
}

/// C[rows, :] = bias + A · B, handing each finished tile to `finish`; `bias` has a number for every column, or is absent.
///
/// # Safety
/// All offsets must be readable, `waiting` must have room for one panel of `rows.len()` rows, and no other thread may
/// touch it.
#[inline(always)]
pub unsafe fn gathered<T: Real, S: Simd, F: FinishRows<T>>(
    simd: S,
    rows: Range<usize>,
    a: Gather<'_, T>,
    b: Columns<'_, T>,
    bias: Option<*const T>,
    waiting: *mut T,
    finish: &mut F,
) {
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "the arguments of a matrix product")]
    #[expect(clippy::undocumented_unsafe_blocks, reason = "comments are not seen through a macro of another file")]
    unsafe fn panel<T: Real, S: Simd, F: FinishRows<T>, const NV: usize>(
        simd: S,
        rows: Range<usize>,
        a: Gather<'_, T>,
        b: Columns<'_, T>,
        first: usize,
        bias: Option<*const T>,
        waiting: *mut T,
        finish: &mut F,
    ) {
        let (lanes, total) = (T::lanes::<S>(), a.depth.len());
        let mut from = 0;
        loop {
            let to = (from + DEPTH).min(total);
            row_groups!(rows, NV, S::REGISTER_COUNT, |row, R| {
                // SAFETY: passed on from the caller.
                unsafe {
                    let at =
                        |r: usize, v: usize| waiting.add((row + r - rows.start) * PANEL_VECTORS * lanes + v * lanes);
                    let mut tile: Tile<T, S, R, NV> = if from > 0 {
                        std::array::from_fn(|r| std::array::from_fn(|v| T::load::<S>(at(r, v))))
                    } else {
                        let start: [T::Vector<S>; NV] = std::array::from_fn(|v| match bias {
                            Some(bias) => T::load::<S>(bias.add(first + v * lanes)),
                            None => T::splat(simd, T::default()),
                        });
                        [start; R]
                    };
                    let own: [*const T; R] = std::array::from_fn(|r| a.source.add(a.rows[row + r] as usize));
                    let depth = &a.depth[from..to];
                    match b {
                        Columns::Panels(panels) => {
                            let start = panels.data().as_ptr().add(panels.offset(first / panels.width(), from));
                            let step = panels.width();
                            accumulate::<T, S, R, NV>(simd, depth, own, |k| start.add(k * step), &mut tile);
                        }
                        Columns::Placed { start, places, .. } => {
                            let places = &places[from..to];
                            let place = |k: usize| start.add(*places.get_unchecked(k) as usize + first);
                            accumulate::<T, S, R, NV>(simd, depth, own, place, &mut tile);
                        }
                    }
                    if to == total {
                        finish.finish(simd, row, first, tile);
                    } else {
                        for r in 0..R {
                            for v in 0..NV {
                                T::store::<S>(at(r, v), tile[r][v]);
                            }
                        }
                    }
                }
            });
            from = to;
            if to == total {
                break;
            }
        }
    }
    let lanes = T::lanes::<S>();
    let (width, count) = match b {
        Columns::Panels(panels) => (panels.width(), panels.cols().next_multiple_of(lanes)),
        Columns::Placed { count, .. } if count == 4 * lanes => (2 * lanes, count),
        Columns::Placed { count, .. } => (PANEL_VECTORS * lanes, count),
    };
    for first in (0..count).step_by(width) {
        // SAFETY: passed on from the caller.
        unsafe {
            match (count - first).min(width) / lanes {
                1 => panel::<T, S, F, 1>(simd, rows.clone(), a, b, first, bias, waiting, finish),
                2 => panel::<T, S, F, 2>(simd, rows.clone(), a, b, first, bias, waiting, finish),
                _ => panel::<T, S, F, PANEL_VECTORS>(simd, rows.clone(), a, b, first, bias, waiting, finish),
            }
        }
    }
}
