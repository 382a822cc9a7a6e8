//! The exact max-margin direction of a linear model, or the proof that there is none.

use super::margin::solve_margin;
use super::refine::{Factors, residual};
use super::uniqueness::{Uniqueness, uniqueness};
use super::{Bracket, MarginProblem, Multipliers, ReferenceError};
use crate::linalg::add_scaled;
use crate::norms::Norm;

/// Relative to the largest row: an upper bound below this is 0 up to rounding.
const ZERO: f64 = 1e-12;

/// Whether the data can be separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarginStatus {
    /// They can: the direction has a positive margin.
    Optimal,
    /// They cannot: the weights r ≥ 0, Σr = 1, combine all rows to 0, so that no v has ⟨h_i, v⟩ > 0 for all i (Gordan).
    NotSeparable,
}

impl std::fmt::Display for MarginStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Self::Optimal => "optimal",
            Self::NotSeparable => "not-separable",
        })
    }
}

/// The exact solution of a max-margin problem.
#[derive(Debug, Clone, PartialEq)]
pub struct MaxMargin {
    /// Whether there is a margin.
    pub status: MarginStatus,
    /// γ*, the proven lower bound; 0 if the data are not separable.
    pub margin: f64,
    /// The proof from both sides. For data that are not separable, `upper` is ‖Σ r h‖_*, 0 up to rounding.
    pub bracket: Bracket,
    /// The maximiser, ‖v‖ = 1; zeros if the data are not separable.
    pub direction: Vec<f64>,
    /// Dual weights of the rows, Σ = 1.
    pub dual: Vec<f64>,
    /// The rows with positive weight: the support vectors.
    pub support: Vec<usize>,
    /// Whether another direction is as good.
    pub uniqueness: Uniqueness,
    /// Interior-point iterations.
    pub iterations: usize,
}

/// Solves a max-margin problem exactly.
///
/// ```
/// use limitpoint::linalg::Matrix;
/// use limitpoint::norms::NormSpec;
/// use limitpoint::params::ParamLayout;
/// use limitpoint::reference::{MarginProblem, MarginStatus, max_margin};
/// let solve = |rows: &[&[f64]], norm: NormSpec| {
///     max_margin(&MarginProblem::new(Matrix::from_rows(rows), norm, ParamLayout::vector(2))?)
/// };
/// // a single point (1, 1) has the ℓ1 margin 1 with every direction (t, 1 − t): a face of dimension 1
/// let tied = solve(&[&[1.0, 1.0]], NormSpec::L1)?;
/// assert!((tied.margin - 1.0).abs() < 1e-12 && !tied.uniqueness.unique && tied.uniqueness.face_dimension == 1);
/// // opposite points cannot be separated: ½·(1, 2) + ½·(−1, −2) = 0
/// let none = solve(&[&[1.0, 2.0], &[-1.0, -2.0]], NormSpec::L2)?;
/// assert_eq!(none.status, MarginStatus::NotSeparable);
/// assert!((none.dual[0] - 0.5).abs() < 1e-12 && none.bracket.upper < 1e-15);
/// # Ok::<(), limitpoint::reference::ReferenceError>(())
/// ```
pub fn max_margin(problem: &MarginProblem) -> Result<MaxMargin, ReferenceError> {
    let solution = solve_margin(problem)?;
    let mut norm = problem.norm.build(&problem.layout)?;
    let scale = (0..problem.rows.rows).map(|i| norm.dual(problem.rows.row(i))).fold(0.0, f64::max);
    if solution.bracket.lower <= 0.0 {
        let (dual, upper) = farkas(problem, solution.multipliers.rows, &mut *norm)?;
        if upper > ZERO * scale {
            return Err(ReferenceError::NoConvergence {
                solver: "the margin solver",
                status: format!("bracket [{:.3e}, {upper:.3e}]", solution.bracket.lower),
                iterations: solution.iterations,
                gap: solution.bracket.relative_gap(),
                remedy: "rescale the data so that its rows have similar sizes",
            });
        }
        return Ok(MaxMargin {
            status: MarginStatus::NotSeparable,
            margin: 0.0,
            bracket: Bracket { lower: 0.0, upper },
            direction: vec![0.0; problem.layout.len()],
            support: support(&dual),
            dual,
            uniqueness: Uniqueness::absent(),
            iterations: solution.iterations,
        });
    }
    Ok(MaxMargin {
        status: MarginStatus::Optimal,
        margin: solution.bracket.lower,
        bracket: solution.bracket,
        uniqueness: uniqueness(problem, &solution)?,
        support: support(&solution.multipliers.rows),
        dual: solution.multipliers.rows,
        direction: solution.direction,
        iterations: solution.iterations,
    })
}

/// The rows whose weight is more than rounding.
fn support(dual: &[f64]) -> Vec<usize> {
    let largest = dual.iter().copied().fold(0.0, f64::max);
    (0..dual.len()).filter(|&i| dual[i] > 1e-9 * largest).collect()
}

/// Moves weights r onto Σ r h = 0, Σ r = 1 by the shortest step, as far as they stay positive; returns ‖Σ r h‖_* too.
fn farkas(problem: &MarginProblem, weights: Vec<f64>, norm: &mut dyn Norm) -> Result<(Vec<f64>, f64), ReferenceError> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let used: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 1e-12 * largest).collect();
    let size = |multipliers: &Multipliers, norm: &mut dyn Norm| norm.dual(&problem.combine(multipliers));
    let mut best = Multipliers::of_rows(weights);
    let mut upper = size(&best, norm);
    let columns = (0..problem.rows.cols).map(|j| used.iter().map(|&i| problem.rows.row(i)[j]).collect::<Vec<f64>>());
    let mut rows: Vec<Vec<f64>> = columns.filter(|column| column.iter().any(|x| *x != 0.0)).collect();
    rows.insert(0, vec![1.0; used.len()]);
    let factors = Factors::new(used.len(), &rows);
    let mut r: Vec<f64> = used.iter().map(|&i| best.rows[i]).collect();
    for _ in 0..3 {
        let rest: Vec<f64> =
            rows.iter().enumerate().map(|(k, row)| residual(row, &r, if k == 0 { 1.0 } else { 0.0 })).collect();
        add_scaled(&mut r, 1.0, &factors.least_norm(&rest));
        let mut next = Multipliers::of_rows(vec![0.0; best.rows.len()]);
        used.iter().zip(&r).for_each(|(&i, r)| next.rows[i] = r.max(0.0));
        let total: f64 = next.rows.iter().sum();
        next.rows.iter_mut().for_each(|r| *r /= total);
        let reached = size(&next, norm);
        if reached < upper {
            (best, upper) = (next, reached);
        }
    }
    Ok((best.rows, upper))
}
