//! What a direction and weights prove of the largest margin with a free intercept, in arithmetic that rounds outwards.
//!
//! ```text
//! (min₊ ⟨x, v⟩ − max₋ ⟨x, v⟩)/2‖v‖  ≤  γ*  ≤  ‖Σ₊ p x/Σ₊p − Σ₋ p x/Σ₋p‖/2          any v, any p ≥ 0
//! ```
//!
//! The examples are doubles, so are v and p; both bounds are theorems about these numbers, whoever found them.

use super::{Examples, with_examples};
use crate::data::Dataset;
use crate::intervals::{Interval, enclosed_combination, enclosed_long_dot, enclosed_sum};
use crate::linalg::{dot, norm2};
use crate::reference::ReferenceError;
use crate::reference::proof::could_be_smallest;

/// An enclosure of the margin that a direction reaches with its best intercept.
///
/// ```
/// use limitpoint::data::{Dataset, Targets};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::reference::proven_free_margin;
/// let data = Dataset::new("two", Matrix::from_rows(&[&[4.0], &[1.0]]), Targets::Binary(vec![1.0, -1.0]), vec![1])?;
/// assert!(proven_free_margin(&data, &[3.0])?.contains(1.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn proven_free_margin(data: &Dataset, v: &[f64]) -> Result<Interval, ReferenceError> {
    if v.len() != data.dimension() {
        return Err(ReferenceError::Rows { rows: 1, columns: v.len(), expected: data.dimension() });
    }
    with_examples(data, |examples| lower(examples, v))
}

/// An enclosure of the bound that weights of the examples prove; the whole line if a class has none or a weight is
/// negative.
///
/// ```
/// use limitpoint::data::{Dataset, Targets};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::reference::proven_free_upper_bound;
/// let inputs = Matrix::from_rows(&[&[4.0, 0.0], &[1.0, 1.0], &[1.0, -1.0]]);
/// let data = Dataset::new("three", inputs, Targets::Binary(vec![1.0, -1.0, -1.0]), vec![2])?;
/// // (4, 0) and the middle of the others are 3 apart
/// assert!(proven_free_upper_bound(&data, &[2.0, 1.0, 1.0])?.contains(1.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn proven_free_upper_bound(data: &Dataset, dual: &[f64]) -> Result<Interval, ReferenceError> {
    if dual.len() != data.len() || dual.iter().any(|p| p.is_nan() || *p < 0.0) {
        return Ok(Interval::WHOLE);
    }
    with_examples(data, |examples| upper(examples, dual))
}

/// (min₊ ⟨x, v⟩ + min₋ ⟨−x, v⟩)/2‖v‖.
pub(super) fn lower(examples: Examples, v: &[f64]) -> Interval {
    // |fl(⟨x, v⟩) − ⟨x, v⟩| ≤ 1.1 n·2⁻⁵³‖x‖‖v‖ for any order of summation (Higham 2002, section 3.1), doubled
    let share = 2.2 * (examples.columns + 4) as f64 * f64::EPSILON * norm2(v);
    let smallest = |sign: f64| {
        let members: Vec<usize> = (0..examples.len()).filter(|&i| examples.signs[i] == sign).collect();
        let plain: Vec<(f64, f64)> = members
            .iter()
            .map(|&i| {
                let x = examples.row(i);
                (sign * dot(x, v), share * norm2(x) + 1e-290 * examples.columns as f64)
            })
            .collect();
        let exact = |at: usize| {
            let product = enclosed_long_dot(examples.row(members[at]), v);
            if sign > 0.0 { product } else { -product }
        };
        could_be_smallest(&plain).into_iter().map(exact).reduce(Interval::min).unwrap_or(Interval::WHOLE)
    };
    let length = enclosed_long_dot(v, v).sqrt();
    (smallest(1.0) + smallest(-1.0)) / (length + length)
}

/// ‖Σ₊ p x − (Σ₊p/Σ₋p) Σ₋ p x‖/2Σ₊p.
pub(super) fn upper(examples: Examples, dual: &[f64]) -> Interval {
    let members = |sign: f64| (0..examples.len()).filter(move |&i| examples.signs[i] == sign && dual[i] > 0.0);
    let total = |sign: f64| enclosed_sum(members(sign).map(|i| Interval::point(dual[i])));
    let sum = |sign: f64| enclosed_combination(examples.columns, members(sign).map(|i| (dual[i], examples.row(i))));
    let (above, below) = (total(1.0), total(-1.0));
    if above.lo <= 0.0 || below.lo <= 0.0 {
        return Interval::WHOLE;
    }
    let ratio = above / below;
    let squares = sum(1.0).zip(sum(-1.0)).map(|(up, down)| (up - ratio * down).square());
    enclosed_sum(squares).sqrt() / (above + above)
}
