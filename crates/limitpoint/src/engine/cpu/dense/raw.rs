//! Memory that the threads of a pass share, and tiles written to it.

use std::mem::MaybeUninit;
use std::ops::Range;

use pulp::Simd;

use crate::linalg::tile::Tile;
use crate::linalg::{PANEL_VECTORS, Panels, Real, by_panels};

/// Raw access to panels that several threads write, each its own rows.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct RawPanels<T> {
    pub start: *mut T,
    pub rows: usize,
    pub width: usize,
}

// SAFETY: threads write disjoint rows; the owner waits for all of them.
unsafe impl<T: Send> Send for RawPanels<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for RawPanels<T> {}

impl<T: Real> RawPanels<T> {
    pub fn new(panels: &mut Panels<T>) -> Self {
        Self { rows: panels.rows(), width: panels.width(), start: panels.data_mut().as_mut_ptr() }
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
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Raw<T>(pub *const T);

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

/// A tile written to memory: room for the largest, 8 rows of three registers of at most 16 numbers.
#[repr(align(64))]
pub(in crate::engine::cpu) struct RawTile<T>(MaybeUninit<[T; TILE_ROWS * TILE_WIDTH]>);

/// Its rows, and the numbers from one of them to the next.
const TILE_ROWS: usize = 8;
const TILE_WIDTH: usize = PANEL_VECTORS * 16;

impl<T: Real> RawTile<T> {
    /// Writes a tile.
    #[inline(always)]
    pub fn of<S: Simd, const R: usize, const NV: usize>(tile: Tile<T, S, R, NV>) -> Self {
        debug_assert!(R <= TILE_ROWS && NV <= PANEL_VECTORS);
        let mut raw = Self(MaybeUninit::uninit());
        // SAFETY: no tile has more rows or registers.
        unsafe { store_tile::<T, S, R, NV>(tile, raw.0.as_mut_ptr().cast(), TILE_WIDTH) };
        raw
    }

    /// Where a row begins.
    #[inline(always)]
    pub fn row(&self, row: usize) -> *const T {
        self.0.as_ptr().cast::<T>().wrapping_add(row * TILE_WIDTH)
    }
}

/// Numbers on the stack that begin at a cache line.
#[repr(align(64))]
pub(in crate::engine::cpu) struct Scratch<T, const N: usize>(pub [T; N]);

/// Writes a tile to memory, rows `width` apart.
///
/// # Safety
/// R rows of NV registers must be writable.
#[inline(always)]
pub(in crate::engine::cpu) unsafe fn store_tile<T: Real, S: Simd, const R: usize, const NV: usize>(
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

/// to[c, r] = from[r, c] for `rows` × `cols` numbers, in squares of four that pass through registers.
///
/// Never inlined, and compiled for registers of four doubles at most: with wider ones the squares become scattered
/// stores, which are several times slower.
///
/// # Safety
/// Both must be valid for that many numbers, their rows the given strides apart.
#[inline(never)]
pub(in crate::engine::cpu) unsafe fn turn<T: Copy>(
    from: *const T,
    from_stride: usize,
    to: *mut T,
    to_stride: usize,
    rows: usize,
    cols: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return simd.vectorize(
            #[inline(always)]
            // SAFETY: vouched for by the caller.
            || unsafe { turn_squares(from, from_stride, to, to_stride, rows, cols) },
        );
    }
    // SAFETY: vouched for by the caller.
    unsafe { turn_squares(from, from_stride, to, to_stride, rows, cols) }
}

/// [`turn`], compiled for whoever calls it.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn turn_squares<T: Copy>(
    from: *const T,
    from_stride: usize,
    to: *mut T,
    to_stride: usize,
    rows: usize,
    cols: usize,
) {
    const SQUARE: usize = 4;
    let (whole_rows, whole_cols) = (rows - rows % SQUARE, cols - cols % SQUARE);
    // SAFETY: all indices are below `rows` and `cols`.
    unsafe {
        for row in (0..whole_rows).step_by(SQUARE) {
            for col in (0..whole_cols).step_by(SQUARE) {
                let square: [[T; SQUARE]; SQUARE] = std::array::from_fn(|r| {
                    from.add((row + r) * from_stride + col).cast::<[T; SQUARE]>().read_unaligned()
                });
                let columns: [[T; SQUARE]; SQUARE] = std::array::from_fn(|c| square.map(|row| row[c]));
                for (c, column) in columns.into_iter().enumerate() {
                    to.add((col + c) * to_stride + row).cast::<[T; SQUARE]>().write_unaligned(column);
                }
            }
        }
        for row in 0..rows {
            for col in if row < whole_rows { whole_cols } else { 0 }..cols {
                *to.add(col * to_stride + row) = *from.add(row * from_stride + col);
            }
        }
    }
}

/// Copies rows of `from` (units × examples) into columns of `to` (examples × units), for examples from the first of a
/// panel on.
///
/// # Safety
/// Both must be valid for these rows and columns, written by no other thread.
#[inline(always)]
pub(in crate::engine::cpu) unsafe fn transpose_rows<T: Real>(
    rows: Range<usize>,
    examples: Range<usize>,
    from: RawPanels<T>,
    to: RawPanels<T>,
) {
    for first in examples.clone().step_by(from.width) {
        let count = from.width.min(examples.end - first);
        for own in by_panels(rows.clone(), to.width) {
            let target = to.at(own.start / to.width, first).wrapping_add(own.start % to.width);
            // SAFETY: inside a panel of each, by construction.
            unsafe { turn(from.at(first / from.width, own.start), from.width, target, to.width, own.len(), count) };
        }
    }
}
