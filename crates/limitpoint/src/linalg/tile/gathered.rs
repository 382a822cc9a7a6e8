//! Products whose operands are gathered: convolutions without a copy of their patches.
//!
//! A patch of an image is a sum of two offsets: where its corner lies, and how far from there an entry is. So is every
//! operand of a convolution, on its way up, on its way down and in the gradient of its kernel:
//!
//! ```text
//! C[r, :] = Σₖ source[rows[r] + depth[k]] · B[places[k], :]
//! ```
//!
//! with B panels of weights, of which places name some rows, or the signals at the pixels themselves. Each row of a
//! result is computed in one fixed order whoever computes it.

use std::ops::Range;

use pulp::Simd;

use super::{Corner, DEPTH, Finish, Tile, Waiting, end_pass, fits};
use crate::linalg::panels::PANEL_VECTORS;
use crate::linalg::{Panels, Real, lanes};

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

/// The column operand: panels of `width` columns, `far` from one to the next, whose rows lie at `start + places[k]`.
#[derive(Clone, Copy)]
pub struct Columns<'a, T> {
    start: *const T,
    places: &'a [u32],
    /// Columns, padded to whole registers.
    count: usize,
    width: usize,
    far: usize,
}

impl<'a, T: Real> Columns<'a, T> {
    /// Rows of panels, which begin at these places of the first panel.
    pub fn rows_of(panels: &Panels<T>, places: &'a [u32]) -> Self {
        let (count, width) = (panels.cols().next_multiple_of(lanes::<T>()), panels.width());
        Self { start: panels.data().as_ptr(), places, count, width, far: panels.rows() * width }
    }

    /// `count` numbers side by side from `start` and each of these places on, whole registers of them.
    pub fn at(start: *const T, places: &'a [u32], count: usize) -> Self {
        let vectors = if count == 4 * lanes::<T>() { 2 } else { PANEL_VECTORS };
        let width = vectors * lanes::<T>();
        Self { start, places, count, width, far: width }
    }
}

/// Where the sums of a product lie, a line of the cache or two of columns after the other.
#[derive(Clone, Copy)]
pub struct Lines<T> {
    /// The first sum.
    pub start: *mut T,
    /// Rows of a line.
    pub rows: usize,
}

impl<T> Lines<T> {
    /// Columns of a line, a multiple of the numbers in any register.
    pub const COLUMNS: usize = 16;

    /// A row of a column, which is the first of a register.
    #[inline(always)]
    pub fn at(&self, row: usize, column: usize) -> *mut T {
        let line = (column / Self::COLUMNS * self.rows + row) * Self::COLUMNS;
        self.start.wrapping_add(line + column % Self::COLUMNS)
    }
}

/// What sums begin with.
#[derive(Clone, Copy)]
pub enum Begin<T> {
    /// Nothing.
    Zeros,
    /// One number for every column.
    Bias(*const T),
    /// What is there.
    Sums(Lines<T>),
}

/// tile += A(R × depth) · B(depth × NV registers).
#[inline(always)]
unsafe fn accumulate<T: Real, S: Simd, const R: usize, const NV: usize>(
    simd: S,
    rows: [*const T; R],
    depth: &[u32],
    columns: *const T,
    places: &[u32],
    tile: &mut Tile<T, S, R, NV>,
) {
    let mut local = *tile;
    for (offset, place) in depth.iter().zip(places) {
        // SAFETY: the caller vouches for all offsets and places.
        unsafe {
            let from = columns.add(*place as usize);
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

/// C[rows, :] = what it begins with + A · B, handing each finished tile to `finish`.
///
/// # Safety
/// All offsets and places must be readable, `waiting` must have room for one panel of `rows.len()` rows, and no other
/// thread may touch it.
#[inline(always)]
#[expect(clippy::undocumented_unsafe_blocks, reason = "comments are not seen through a macro of another file")]
pub unsafe fn gathered<T: Real, S: Simd, F: Finish<T>>(
    simd: S,
    rows: Range<usize>,
    a: Gather<'_, T>,
    b: Columns<'_, T>,
    begin: Begin<T>,
    waiting: *mut T,
    finish: &mut F,
) {
    let (lanes, total) = (T::lanes::<S>(), a.depth.len());
    let waiting = Waiting::from_row::<S>(waiting, rows.start);
    for column in (0..b.count).step_by(b.width) {
        let panel = column / b.width;
        let start = b.start.wrapping_add(panel * b.far);
        with_vectors!((b.count - column).min(b.width) / lanes, [1, 2] else PANEL_VECTORS, |NV| {
            let mut from = 0;
            loop {
                let to = (from + DEPTH).min(total);
                row_groups!(rows, NV, S::REGISTER_COUNT, |row, R| {
                    // SAFETY: passed on from the caller.
                    unsafe {
                        let at = Corner { row, panel, column };
                        let sum = |r: usize, v: usize| match begin {
                            Begin::Zeros => T::splat(simd, T::default()),
                            Begin::Bias(bias) => T::load::<S>(bias.add(column + v * lanes)),
                            Begin::Sums(sums) => T::load::<S>(sums.at(row + r, column + v * lanes)),
                        };
                        let mut tile: Tile<T, S, R, NV> = if from > 0 {
                            waiting.sums::<S, R, NV>(at)
                        } else {
                            std::array::from_fn(|r| std::array::from_fn(|v| sum(r, v)))
                        };
                        let own: [*const T; R] = std::array::from_fn(|r| a.source.add(a.rows[row + r] as usize));
                        accumulate(simd, own, &a.depth[from..to], start, &b.places[from..to], &mut tile);
                        end_pass(simd, to == total, at, tile, waiting, finish);
                    }
                });
                from = to;
                if to == total {
                    break;
                }
            }
        });
    }
}
