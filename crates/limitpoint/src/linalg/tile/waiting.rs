//! Where the unfinished sums of a product wait.

use pulp::Simd;

use super::{PAIR, register};
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

    /// In panels like those of the result, `rows` rows of `width` numbers each.
    pub fn in_panels(start: *mut T, rows: usize, width: usize) -> Self {
        Self { start, row: width, panel: rows * width, far: rows * width }
    }

    /// Register `v` of a row of a panel.
    #[inline(always)]
    pub(super) fn at<S: Simd>(&self, panel: usize, row: usize, v: usize) -> *mut T {
        self.start.wrapping_add(panel * self.panel + row * self.row + register::<T, S>(v, self.far))
    }
}
