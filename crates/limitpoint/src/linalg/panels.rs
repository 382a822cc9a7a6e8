//! Matrices cut into narrow column panels, the layout the tile kernels read and write.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::aligned::Aligned;
use super::real::Real;

/// Registers side by side in a panel.
pub const PANEL_VECTORS: usize = 3;

/// A matrix stored panel after panel: panel p holds columns p·w … p·w + w − 1, row after row, w numbers a row.
///
/// The width w is three vector registers of the running machine, or two where there are four in all. Columns past the
/// last are zero, so kernels never need a scalar tail. A step down a panel is a step of w numbers, which is what makes
/// a product of small matrices run from the first-level cache.
///
/// ```
/// use limitpoint::linalg::Panels;
/// let mut panels = Panels::<f64>::zeros(2, 5);
/// panels.pack(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
/// assert_eq!((panels.get(0, 4), panels.get(1, 0)), (5.0, 6.0));
/// ```
#[derive(Debug, Clone)]
pub struct Panels<T> {
    rows: usize,
    cols: usize,
    width: usize,
    lanes: usize,
    /// Registers of the last panel.
    last_vectors: usize,
    data: Aligned<T>,
}

impl<T: Real> Panels<T> {
    /// A zero matrix of `rows` × `cols`.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        let (lanes, data) = (lanes::<T>(), Aligned::zeros(0));
        let width = PANEL_VECTORS * lanes;
        let mut panels = Self { rows: 0, cols: 0, width, lanes, last_vectors: PANEL_VECTORS, data };
        panels.reshape(rows, cols);
        panels
    }

    /// Changes the shape, keeping the allocation where it is large enough: zeros, or what was there if nothing changes.
    pub fn reshape(&mut self, rows: usize, cols: usize) {
        if (rows, cols) == (self.rows, self.cols) {
            return;
        }
        self.rows = rows;
        self.cols = cols;
        // two and two for four registers, so that tiles have more rows and read them less often
        self.width = if cols.div_ceil(self.lanes) == 4 { 2 } else { PANEL_VECTORS } * self.lanes;
        self.last_vectors = match cols % self.width {
            0 => self.width / self.lanes,
            rest => rest.div_ceil(self.lanes),
        };
        self.data.reset(rows * cols.div_ceil(self.width) * self.width);
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, padding not counted.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Numbers per row of a panel.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of panels.
    pub fn count(&self) -> usize {
        self.cols.div_ceil(self.width)
    }

    /// Vector registers that hold columns of panel `panel`: all three, or fewer in the last one.
    #[inline(always)]
    pub fn vectors(&self, panel: usize) -> usize {
        if (panel + 1) * self.width < self.cols { self.width / self.lanes } else { self.last_vectors }
    }

    /// Columns of panel `panel` that are not padding.
    pub fn filled(&self, panel: usize) -> usize {
        (self.cols - panel * self.width).min(self.width)
    }

    /// Index of row `row` of panel `panel` in [`Panels::data`].
    #[inline(always)]
    pub fn offset(&self, panel: usize, row: usize) -> usize {
        (panel * self.rows + row) * self.width
    }

    /// All numbers, panel after panel.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// All numbers, to be written by kernels.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// One entry.
    pub fn get(&self, row: usize, col: usize) -> T {
        self.data[self.offset(col / self.width, row) + col % self.width]
    }

    /// Replaces one entry.
    pub fn set(&mut self, row: usize, col: usize, value: T) {
        let at = self.offset(col / self.width, row) + col % self.width;
        self.data[at] = value;
    }

    /// Copies a row-major matrix in.
    pub fn pack(&mut self, source: &[f64]) {
        let (rows, cols) = (self.rows, self.cols);
        debug_assert_eq!(source.len(), rows * cols);
        self.pack_rows(0..rows, |row| &source[row * cols..(row + 1) * cols]);
    }

    /// Copies the transpose of a row-major `cols` × `rows` matrix in.
    pub fn pack_transposed(&mut self, source: &[f64]) {
        let rows = self.rows;
        debug_assert_eq!(source.len(), rows * self.cols);
        self.pack_columns(0..self.cols, |col| &source[col * rows..(col + 1) * rows]);
    }

    /// Copies the rows `range` in, each given by a function of its number.
    pub fn pack_rows<'a>(&mut self, range: Range<usize>, source: impl Fn(usize) -> &'a [f64]) {
        crate::numeric::wide(
            #[inline(always)]
            || {
                for row in range.clone() {
                    for (panel, entries) in source(row)[..self.cols].chunks(self.width).enumerate() {
                        let at = self.offset(panel, row);
                        for (to, from) in self.data[at..at + entries.len()].iter_mut().zip(entries) {
                            *to = T::from_f64(*from);
                        }
                    }
                }
            },
        );
    }

    /// Copies the columns `range` in, each given by a function of its number; a few rows at a time, so that the lines
    /// of a panel's columns stay in the first-level cache.
    pub fn pack_columns<'a>(&mut self, range: Range<usize>, source: impl Fn(usize) -> &'a [f64]) {
        const ROWS: usize = 32;
        for own in by_panels(range, self.width) {
            let panel = own.start / self.width;
            for from in (0..self.rows).step_by(ROWS) {
                let rows = ROWS.min(self.rows - from);
                for col in own.clone() {
                    let at = self.offset(panel, from) + col - panel * self.width;
                    for (r, entry) in source(col)[from..from + rows].iter().enumerate() {
                        self.data[at + r * self.width] = T::from_f64(*entry);
                    }
                }
            }
        }
    }
}

/// These columns in parts, one for each panel of so many columns.
pub(crate) fn by_panels(columns: Range<usize>, width: usize) -> impl Iterator<Item = Range<usize>> {
    let Range { start, end } = columns;
    (start / width..end.div_ceil(width)).map(move |panel| start.max(panel * width)..end.min((panel + 1) * width))
}

/// Numbers of type `T` per vector register on this machine.
pub fn lanes<T: Real>() -> usize {
    struct Lanes<T>(std::marker::PhantomData<T>);
    impl<T: Real> WithSimd for Lanes<T> {
        type Output = usize;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            T::lanes::<S>()
        }
    }
    Arch::new().dispatch(Lanes::<T>(std::marker::PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_keeps_every_entry_and_pads_with_zeros() {
        for (rows, cols) in [(1, 1), (3, 7), (5, 24), (2, 25), (4, 61)] {
            let source: Vec<f64> = (0..rows * cols).map(|i| 1.0 + i as f64).collect();
            let mut panels = Panels::<f32>::zeros(rows, cols);
            panels.pack(&source);
            let mut turned = Panels::<f64>::zeros(cols, rows);
            turned.pack_transposed(&source);
            for row in 0..rows {
                for col in 0..cols {
                    assert_eq!(f64::from(panels.get(row, col)), source[row * cols + col]);
                    assert_eq!(turned.get(col, row), source[row * cols + col]);
                }
            }
            let total: f32 = panels.data().iter().sum();
            assert_eq!(f64::from(total), source.iter().sum::<f64>());
        }
    }
}
