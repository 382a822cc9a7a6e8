//! Matrices that are mostly zero, four rows at a time.
//!
//! Images are mostly background. Four rows of a matrix S (four images, or four pixels over a batch of images) are kept
//! together with the columns in which one of them is not zero. In the product with a panel B
//!
//! ```text
//! C[r, :] = start + Σₖ S[r, k] B[k, :]   for the rows r of a bundle, over the columns k it has
//! ```
//!
//! every row of B is then read once for four rows of C, and sums run over k in order: skipped and kept zeros add
//! nothing, so that the bits are those of a full product wherever B is finite.

use pulp::Simd;

use super::share;
use crate::linalg::{Real, SharedSlice, Team};

/// Rows of a bundle.
pub(super) const BUNDLE: usize = 4;

/// Columns of a panel B: 256 bytes, four of the widest registers.
pub(super) const fn panel_width<T>() -> usize {
    256 / size_of::<T>()
}

/// A matrix as bundles of rows.
pub(super) struct Bundles<T> {
    cols: usize,
    /// Columns of each bundle.
    lengths: Vec<usize>,
    /// Which columns, in order; `cols` places for each bundle.
    columns: Vec<u32>,
    /// The entries in these columns, one for each row of the bundle.
    values: Vec<[T; BUNDLE]>,
}

impl<T: Real> Bundles<T> {
    pub fn empty() -> Self {
        Self { cols: 0, lengths: Vec::new(), columns: Vec::new(), values: Vec::new() }
    }

    /// Number of bundles.
    pub fn count(&self) -> usize {
        self.lengths.len()
    }

    /// Whether all entries of these bundles are zero.
    pub fn all_zero(&self, bundles: std::ops::Range<usize>) -> bool {
        self.lengths[bundles].iter().all(|length| *length == 0)
    }

    /// Takes `rows` × `cols` entries, `entries(b)(k)` being those of bundle b in column k: zero past the last row.
    pub fn fill<F: Fn(usize) -> [T; BUNDLE]>(
        &mut self,
        (rows, cols): (usize, usize),
        team: &Team,
        entries: impl Fn(usize) -> F + Sync,
    ) {
        let count = rows.div_ceil(BUNDLE);
        self.cols = cols;
        self.lengths.resize(count, 0);
        self.columns.resize(count * cols, 0);
        self.values.resize(count * cols, [T::default(); BUNDLE]);
        let (lengths, columns, values) = (
            SharedSlice::new(&mut self.lengths),
            SharedSlice::new(&mut self.columns),
            SharedSlice::new(&mut self.values),
        );
        share(team, (count, 1), 4 * rows * cols, |bundles| {
            for bundle in bundles {
                let own = bundle * cols..(bundle + 1) * cols;
                // SAFETY: every worker writes its own bundles.
                let (length, columns, values) =
                    unsafe { (&mut lengths.part(bundle..bundle + 1)[0], columns.part(own.clone()), values.part(own)) };
                let entries = entries(bundle);
                *length = 0;
                for column in 0..cols {
                    let four = entries(column);
                    (columns[*length], values[*length]) = (column as u32, four);
                    *length += usize::from(four != [T::default(); BUNDLE]);
                }
            }
        });
    }

    /// start + S·B for the rows of one bundle, one after the other to `out`.
    ///
    /// # Safety
    /// All rows have [`panel_width`] numbers: `panel` must have as many of them as there are columns, `start` one,
    /// `out` [`BUNDLE`].
    #[inline(always)]
    pub unsafe fn product<S: Simd>(&self, simd: S, bundle: usize, panel: *const T, start: *const T, out: *mut T) {
        // SAFETY: passed on from the caller.
        unsafe {
            if S::REGISTER_COUNT >= 32 {
                self.registers::<S, 4>(simd, bundle, panel, start, out);
            } else {
                self.registers::<S, 2>(simd, bundle, panel, start, out);
            }
        }
    }

    /// [`Bundles::product`], V registers side by side.
    #[inline(always)]
    unsafe fn registers<S: Simd, const V: usize>(
        &self,
        simd: S,
        bundle: usize,
        panel: *const T,
        start: *const T,
        out: *mut T,
    ) {
        let (lanes, width) = (T::lanes::<S>(), panel_width::<T>());
        let own = bundle * self.cols..bundle * self.cols + self.lengths[bundle];
        let (columns, values) = (&self.columns[own.clone()], &self.values[own]);
        for first in (0..width).step_by(V * lanes) {
            // SAFETY: columns are below `cols`, and V registers fit into a row from `first` on.
            unsafe {
                let mut sums: [[T::Vector<S>; V]; BUNDLE] =
                    [std::array::from_fn(|v| T::load::<S>(start.add(first + v * lanes))); BUNDLE];
                for (column, four) in columns.iter().zip(values) {
                    let row = panel.add(*column as usize * width + first);
                    let b: [T::Vector<S>; V] = std::array::from_fn(|v| T::load::<S>(row.add(v * lanes)));
                    for (sums, x) in sums.iter_mut().zip(four) {
                        let x = T::splat(simd, *x);
                        for (sum, b) in sums.iter_mut().zip(b) {
                            *sum = T::mul_add(simd, x, b, *sum);
                        }
                    }
                }
                for (r, sums) in sums.into_iter().enumerate() {
                    for (v, sum) in sums.into_iter().enumerate() {
                        T::store::<S>(out.add(r * width + first + v * lanes), sum);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pulp::{Arch, WithSimd};

    use super::*;

    struct Product<'a, T>(&'a Bundles<T>, usize, &'a [T], &'a [T], &'a mut [T]);
    impl<T: Real> WithSimd for Product<'_, T> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            // SAFETY: the test sizes everything.
            unsafe {
                self.0.product(simd, self.1, self.2.as_ptr(), self.3.as_ptr(), self.4.as_mut_ptr());
            }
        }
    }

    fn check<T: Real>() {
        // enough to be shared out
        let (rows, cols, width) = (38, 301, panel_width::<T>());
        let entry = |r: usize, k: usize| {
            let zero = r >= rows || k % 3 == 1 || (r + k) % 4 == 2;
            T::from_f64(if zero { 0.0 } else { ((7 * r + 3 * k) % 11) as f64 - 4.0 })
        };
        let number = |i: usize| T::from_f64((i * 7 % 13) as f64 - 6.0);
        let panel: Vec<T> = (0..cols * width).map(number).collect();
        let start: Vec<T> = (0..width).map(|i| number(i + 5)).collect();
        for threads in [1, 2] {
            let mut bundles = Bundles::empty();
            bundles.fill((rows, cols), &Team::new(threads), |bundle| {
                move |k| std::array::from_fn(|i| entry(BUNDLE * bundle + i, k))
            });
            assert_eq!((bundles.count(), bundles.all_zero(0..1)), (10, false));
            for bundle in 0..10 {
                let mut out = vec![T::default(); BUNDLE * width];
                Arch::new().dispatch(Product(&bundles, bundle, &panel, &start, &mut out));
                for (i, value) in out.iter().enumerate() {
                    let (r, c) = (BUNDLE * bundle + i / width, i % width);
                    let sum: f64 = (0..cols).map(|k| entry(r, k).to_f64() * panel[k * width + c].to_f64()).sum();
                    assert_eq!(value.to_f64(), start[c].to_f64() + sum, "row {r}, column {c}");
                }
            }
        }
    }

    #[test]
    fn a_product_of_bundles_is_the_product_of_the_matrix() {
        check::<f64>();
        check::<f32>();
    }

    #[test]
    fn a_bundle_of_zeros_has_no_columns() {
        let mut bundles = Bundles::<f32>::empty();
        bundles.fill((8, 5), &Team::new(1), |bundle| move |k| [if (bundle, k) == (1, 3) { 2.0 } else { 0.0 }; BUNDLE]);
        assert_eq!((bundles.all_zero(0..1), bundles.all_zero(1..2), bundles.all_zero(0..2)), (true, false, false));
    }
}
