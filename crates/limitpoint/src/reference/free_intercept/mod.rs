//! The largest ℓ2 margin of two classes with an intercept that costs nothing, as in a support vector machine.
//!
//! ```text
//! max_{‖v‖₂ ≤ 1, b} min_i y_i(⟨x_i, v⟩ + b)  =  ½ min ‖Σ₊ p_i x_i − Σ₋ p_i x_i‖₂     over p ≥ 0, Σ₊p = Σ₋p = 1
//! ```
//!
//! half the distance of two convex hulls. Soft margins, with less and less slack, lead to the examples that carry the
//! answer in a few Newton steps each ([`soft`]); on these the optimality conditions are linear equations, solved to the
//! last digit ([`exact`]); both bounds are then proven for all examples, with outward rounding ([`bounds`]), and nothing
//! is returned unless they agree. Data that cannot be separated, or where this way does not end well, are left to the
//! general solvers: this one is here because it is fast.

mod bounds;
mod exact;
mod soft;

#[cfg(test)]
mod tests;

pub use bounds::{proven_free_margin, proven_free_upper_bound};

use super::{Bracket, OPTIMAL_GAP, ReferenceError};
use crate::data::{Dataset, Inputs, Targets};
use crate::linalg::{add_scaled, dot, norm2};
use soft::Soft;

/// Soft margins: the first slack beside the size of the examples, how much less there is each time, and how often.
const FIRST_SLACK: f64 = 1e-2;
const LESS_SLACK: f64 = 1e-2;
const STAGES: usize = 6;

/// The largest margin with a free intercept, with its proof.
#[derive(Debug, Clone, PartialEq)]
pub struct FreeMargin {
    /// lower ≤ γ* ≤ upper, with outward rounding: a theorem about the examples.
    pub bracket: Bracket,
    /// The direction that proves the lower bound, ‖v‖ = 1 up to rounding.
    pub direction: Vec<f64>,
    /// The intercept in the middle between the classes.
    pub intercept: f64,
    /// Weights of the examples that prove the upper bound, of sum 1, half of it in either class.
    pub dual: Vec<f64>,
    /// Newton steps and solutions on supports.
    pub iterations: usize,
}

/// Labelled examples, row by row.
#[derive(Clone, Copy)]
pub(super) struct Examples<'a> {
    entries: &'a [f64],
    columns: usize,
    signs: &'a [f64],
}

impl<'a> Examples<'a> {
    fn len(&self) -> usize {
        self.signs.len()
    }

    fn row(&self, i: usize) -> &'a [f64] {
        &self.entries[i * self.columns..(i + 1) * self.columns]
    }

    /// y(⟨x, w⟩ + b) of all examples.
    fn margins(&self, w: &[f64], b: f64) -> Vec<f64> {
        (0..self.len()).map(|i| self.signs[i] * (dot(self.row(i), w) + b)).collect()
    }

    /// The smallest ⟨x, v⟩ of the positive examples and the largest of the negative ones.
    fn ends(&self, v: &[f64]) -> (f64, f64) {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for i in 0..self.len() {
            let score = dot(self.row(i), v);
            match self.signs[i] > 0.0 {
                true => least = least.min(score),
                false => most = most.max(score),
            }
        }
        (least, most)
    }
}

/// The largest ℓ2 margin with a free intercept; nothing where the classes cannot be separated or it was not found to
/// [`OPTIMAL_GAP`].
///
/// ```
/// use limitpoint::data::{Dataset, Targets};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::reference::free_margin;
/// // two points against one: the nearest points of the hulls are (1, 1) and (1, 3)
/// let inputs = Matrix::from_rows(&[&[0.0, 1.0], &[2.0, 1.0], &[1.0, 3.0]]);
/// let data = Dataset::new("hulls", inputs, Targets::Binary(vec![1.0, 1.0, -1.0]), vec![2])?;
/// let found = free_margin(&data)?.expect("they can be separated");
/// assert!((found.bracket.lower - 1.0).abs() < 1e-14 && (found.intercept - 2.0).abs() < 1e-14);
/// assert!((found.direction[1] + 1.0).abs() < 1e-14 && (found.dual[0] - 0.25).abs() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn free_margin(data: &Dataset) -> Result<Option<FreeMargin>, ReferenceError> {
    with_examples(data, solve)
}

/// What some work on the examples of a data set gives; nothing is copied unless they are sparse.
fn with_examples<T>(data: &Dataset, work: impl FnOnce(Examples) -> T) -> Result<T, ReferenceError> {
    let Targets::Binary(signs) = &data.targets else {
        return Err(ReferenceError::NoLabels { data: data.name.clone() });
    };
    if let Inputs::Dense(shared) = &data.inputs {
        return Ok(work(Examples { entries: shared.entries(), columns: shared.cols(), signs }));
    }
    let dense = data.dense()?;
    Ok(work(Examples { entries: &dense.data, columns: dense.cols, signs }))
}

fn solve(examples: Examples) -> Option<FreeMargin> {
    let mut soft = Soft::new(examples)?;
    let mut slack = FIRST_SLACK;
    for _ in 0..STAGES {
        let mut support = soft.solve(slack)?;
        // the answer on the support, which loses examples of negative weight and wins violated ones as long as they
        // become fewer
        let mut fewest = usize::MAX;
        while let Some(found) = exact::on_support(&mut soft, &support) {
            let (negative, violated) = found.wrong(examples);
            if negative.is_empty() && violated.is_empty() {
                let iterations = soft.steps;
                return found.into_margin(examples, iterations);
            }
            if negative.len() + violated.len() >= fewest {
                break;
            }
            fewest = negative.len() + violated.len();
            support.retain(|i| negative.binary_search(i).is_err());
            support.extend(violated);
            support.sort_unstable();
        }
        slack *= LESS_SLACK;
    }
    None
}

impl exact::OnSupport {
    /// The proven answer, if its bounds agree.
    fn into_margin(self, examples: Examples, iterations: usize) -> Option<FreeMargin> {
        let mut direction = self.weights;
        let size = norm2(&direction);
        direction.iter_mut().for_each(|x| *x /= size);
        let mut dual = vec![0.0; examples.len()];
        self.support.iter().zip(&self.multipliers).for_each(|(&i, a)| dual[i] = a.max(0.0));
        let total =
            |sign: f64| dual.iter().zip(examples.signs).filter(|(_, y)| **y == sign).map(|(p, _)| p).sum::<f64>();
        let totals = [total(1.0), total(-1.0)];
        dual.iter_mut().zip(examples.signs).for_each(|(p, y)| *p *= 0.5 / totals[usize::from(*y < 0.0)]);
        let lower = bounds::lower(examples, &direction).lo;
        let upper = bounds::upper(examples, &dual).hi;
        let bracket = Bracket { lower, upper };
        let (least, most) = examples.ends(&direction);
        (lower > 0.0 && bracket.relative_gap() <= OPTIMAL_GAP).then_some(FreeMargin {
            bracket,
            direction,
            intercept: -0.5 * (least + most),
            dual,
            iterations,
        })
    }
}

/// Σ α y x over some examples.
fn combine(examples: Examples, support: &[usize], alpha: &[f64]) -> Vec<f64> {
    let mut w = vec![0.0; examples.columns];
    support.iter().zip(alpha).for_each(|(&i, a)| add_scaled(&mut w, a * examples.signs[i], examples.row(i)));
    w
}
