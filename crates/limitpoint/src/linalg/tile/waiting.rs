//! Where the unfinished sums of a product wait.

use pulp::Simd;

use super::{Corner, PAIR, Tile, register};
use crate::linalg::panels::PANEL_VECTORS;
use crate::linalg::real::Real;

/// Where the unfinished sums of a product stay when its depth exceeds one pass.
#[derive(Clone, Copy)]
pub struct Waiting<T> {
    start: *mut T,
    row: usize,
    panel: usize,
    far: usize,
}

impl<T: Real> Waiting<T> {
    /// Numbers that [`Waiting::in_rows`] needs for every row of a result.
    pub fn row_length(lanes: usize) -> usize {
        PAIR * lanes
    }

    /// In one place for every row, whatever the panel.
    #[inline(always)]
    pub fn in_rows<S: Simd>(start: *mut T) -> Self {
        let lanes = T::lanes::<S>();
        Self { start, row: Self::row_length(lanes), panel: 0, far: PANEL_VECTORS * lanes }
    }

    /// In one place for every row from `first` on, for products that have no lonely registers.
    #[inline(always)]
    pub(super) fn from_row<S: Simd>(start: *mut T, first: usize) -> Self {
        let row = PANEL_VECTORS * T::lanes::<S>();
        Self { start: start.wrapping_sub(first * row), row, panel: 0, far: 0 }
    }

    /// In panels like those of the result, `rows` rows of `width` numbers each.
    pub fn in_panels(start: *mut T, rows: usize, width: usize) -> Self {
        Self { start, row: width, panel: rows * width, far: rows * width }
    }

    /// Register `v` of row `r` of the tile that begins there.
    #[inline(always)]
    fn at<S: Simd>(&self, at: Corner, r: usize, v: usize) -> *mut T {
        self.start.wrapping_add(at.panel * self.panel + (at.row + r) * self.row + register::<T, S>(v, self.far))
    }

    /// The sums of a tile as the last pass left them.
    ///
    /// # Safety
    /// They must be valid there.
    #[inline(always)]
    pub(super) unsafe fn sums<S: Simd, const R: usize, const NV: usize>(&self, at: Corner) -> Tile<T, S, R, NV> {
        // SAFETY: passed on from the caller.
        std::array::from_fn(|r| std::array::from_fn(|v| unsafe { T::load::<S>(self.at::<S>(at, r, v)) }))
    }

    /// Leaves the sums of a tile to the next pass.
    ///
    /// # Safety
    /// They must be valid there, and no other thread may touch them.
    #[inline(always)]
    pub(super) unsafe fn keep<S: Simd, const R: usize, const NV: usize>(&self, at: Corner, tile: Tile<T, S, R, NV>) {
        for (r, row) in tile.iter().enumerate() {
            for (v, sum) in row.iter().enumerate() {
                // SAFETY: passed on from the caller.
                unsafe { T::store::<S>(self.at::<S>(at, r, v), *sum) };
            }
        }
    }
}
