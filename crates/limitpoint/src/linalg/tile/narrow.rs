//! Weight gradients of layers with few inputs, lanes running over the examples.

use std::ops::Range;

use pulp::Simd;

use super::Tile;
use crate::linalg::{Panels, Real};

/// The largest number of inputs [`narrow_rows`] takes.
pub const NARROW: usize = 4;

/// G[rows, 0..IN] = D · Xᵀ for a layer with few inputs: D (rows × examples) and X (inputs × examples) are panels, lanes
/// run over the examples. `store(row, gradient)` receives each row.
///
/// # Safety
/// `start` must be the data of panels shaped like `d`, and no thread may write the rows `rows` of it meanwhile.
#[inline(always)]
pub unsafe fn narrow_rows<T: Real, S: Simd>(
    simd: S,
    rows: Range<usize>,
    d: (*const T, &Panels<T>),
    x: &Panels<T>,
    mut store: impl FnMut(usize, &[T]),
) {
    #[inline(always)]
    unsafe fn group<T: Real, S: Simd, const R: usize, const IN: usize>(
        simd: S,
        row: usize,
        (start, d): (*const T, &Panels<T>),
        x: &Panels<T>,
        store: &mut impl FnMut(usize, &[T]),
    ) {
        let (lanes, width) = (T::lanes::<S>(), d.width());
        let mut sums: Tile<T, S, R, IN> = [[T::splat(simd, T::default()); IN]; R];
        for panel in 0..d.count() {
            for v in 0..d.vectors(panel) {
                // SAFETY: indices come from the shapes of `d` and `x`.
                unsafe {
                    let inputs: [T::Vector<S>; IN] =
                        std::array::from_fn(|i| T::load::<S>(x.data().as_ptr().add(x.offset(panel, i) + v * lanes)));
                    for (r, sum) in sums.iter_mut().enumerate() {
                        let signal = T::load::<S>(start.add(d.offset(panel, row) + r * width + v * lanes));
                        for i in 0..IN {
                            sum[i] = T::mul_add(simd, signal, inputs[i], sum[i]);
                        }
                    }
                }
            }
        }
        for (r, sum) in sums.iter().enumerate() {
            store(row + r, &sum.map(|s| T::reduce_sum(simd, s)));
        }
    }
    let whole = rows.end - rows.len() % 4;
    with_vectors!(x.rows(), [1, 2, 3] else NARROW, |IN| {
        for row in (rows.start..whole).step_by(4) {
            // SAFETY: passed on from the caller.
            unsafe { group::<T, S, 4, IN>(simd, row, d, x, &mut store) };
        }
        for row in whole..rows.end {
            // SAFETY: passed on from the caller.
            unsafe { group::<T, S, 1, IN>(simd, row, d, x, &mut store) };
        }
    });
}
