//! The exact max-margin direction of a linear model, or the proof that there is none.

use super::inseparable::combine_to_zero;
use super::margin::solve_margin;
use super::sharpen::Proof;
use super::smooth;
use super::uniqueness::{Uniqueness, uniqueness};
use super::{Bracket, MarginProblem, MarginSolution, Multipliers, ReferenceError};
use crate::linalg::Precise;
use crate::norms::NormSpec;
use crate::numeric::power_of_two;

/// Relative gap up to which an answer is called optimal.
pub const OPTIMAL_GAP: f64 = 1e-9;

/// What was found of a max-margin problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarginStatus {
    /// The data can be separated, and the margin is known to [`OPTIMAL_GAP`].
    Optimal,
    /// They cannot: the weights r ≥ 0, Σr = 1, combine all rows to 0, so that no v has ⟨h_i, v⟩ > 0 for all i (Gordan).
    NotSeparable,
    /// The bracket holds, but it is wider than [`OPTIMAL_GAP`].
    Inaccurate,
}

impl std::fmt::Display for MarginStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Self::Optimal => "optimal",
            Self::NotSeparable => "not-separable",
            Self::Inaccurate => "inaccurate",
        })
    }
}

/// The solution of a max-margin problem, with its proof.
#[derive(Debug, Clone, PartialEq)]
pub struct MaxMargin {
    /// What was found.
    pub status: MarginStatus,
    /// γ*, the proven lower bound; 0 if the data are not separable.
    pub margin: f64,
    /// lower ≤ γ* ≤ upper, with outward rounding: a theorem about the rows. For data that are not separable, `upper`
    /// is ‖Σ r h‖_*, 0 up to rounding.
    pub bracket: Bracket,
    /// The direction that proves the lower bound, ‖v‖ = 1 up to rounding; zeros if there is none.
    pub direction: Vec<f64>,
    /// What is missing from `direction`: the bound is proven by the sum of both. Empty where doubles are enough.
    pub direction_low: Vec<f64>,
    /// Dual weights of the rows that prove the upper bound, Σ = 1 up to rounding.
    pub dual: Vec<f64>,
    /// What is missing from `dual`; empty where doubles are enough.
    pub dual_low: Vec<f64>,
    /// Of a semidefinite problem in another norm than the nuclear one: the matrix M of the upper bound, for dual weights
    /// of sum 1.
    pub slack: Vec<f64>,
    /// The rows with positive weight: the support vectors.
    pub support: Vec<usize>,
    /// Whether another direction is as good; known of optimal answers only.
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
    let unit = safe_unit(&problem.rows.data);
    if unit == 1.0 {
        return judged(problem, solve_margin(problem));
    }
    let mut scaled = problem.clone();
    scaled.rows.data.iter_mut().for_each(|x| *x /= unit);
    Ok(judged(&scaled, solve_margin(&scaled))?.times(unit))
}

/// What to divide all rows by so that products neither overflow nor vanish: a power of two near the largest entry, or 1
/// where that is not needed or where an entry would lose digits.
pub(super) fn safe_unit(entries: &[f64]) -> f64 {
    let unit = power_of_two(entries.iter().fold(0.0, |most: f64, x| most.max(x.abs())));
    let exact = |x: &f64| *x == 0.0 || (x / unit).abs() >= 1e-290;
    if (1e-100..1e100).contains(&unit) || !entries.iter().all(exact) { 1.0 } else { unit }
}

/// What a solution, or the failure to find one, comes to: proven, and narrowed where that is not enough.
pub(super) fn judged(
    problem: &MarginProblem,
    solution: Result<MarginSolution, ReferenceError>,
) -> Result<MaxMargin, ReferenceError> {
    let precise = |x: &[f64]| x.iter().map(|x| Precise::from(x.max(0.0))).collect::<Vec<_>>();
    let mut proof = Proof::new(problem);
    let mut iterations = 0;
    let mut start = Vec::new();
    match solution {
        Ok(solution) => {
            let MarginSolution { direction, multipliers, .. } = &solution;
            iterations = solution.iterations;
            start = precise(&multipliers.rows);
            let direction: Vec<Precise> = direction.iter().map(|x| Precise::from(*x)).collect();
            let cone: Vec<f64> =
                multipliers.cone.iter().map(|s| if problem.semidefinite { *s } else { s.max(0.0) }).collect();
            proof.offer(&direction, &start, &cone)?;
            for form in smooth::Form::ALL {
                if proof.bracket.relative_gap() > OPTIMAL_GAP
                    && let Some((direction, rows)) = smooth::newton(problem, &solution, form)
                {
                    proof.offer(&direction, &rows, &[])?;
                }
            }
        }
        Err(ReferenceError::NoConvergence { .. }) => {
            // equal weights prove something
            let rows = vec![Precise::from(1.0); problem.rows.rows];
            proof.offer(&proof.direction.clone(), &rows, &[])?;
        }
        Err(error) => return Err(error),
    }
    if proof.bracket.lower <= 0.0
        && let Some(weights) = inseparable(problem, &start)?
    {
        return MaxMargin::not_separable(problem, weights, iterations);
    }
    if proof.bracket.relative_gap() > OPTIMAL_GAP {
        proof.sharpen()?;
        if proof.bracket.lower <= 0.0
            && let Some(weights) = combine_to_zero(problem, &proof.rows)?
        {
            return MaxMargin::not_separable(problem, weights, iterations);
        }
    }
    let status = match proof.bracket {
        Bracket { upper, .. } if upper <= 0.0 => MarginStatus::NotSeparable,
        Bracket { lower, .. } if lower > 0.0 && proof.bracket.relative_gap() <= OPTIMAL_GAP => MarginStatus::Optimal,
        _ => MarginStatus::Inaccurate,
    };
    finish(problem, proof, status, iterations)
}

/// Weights that prove the rows inseparable: near those that were found, or near those of the ℓ2 problem, since the proof
/// knows no norm.
fn inseparable(problem: &MarginProblem, start: &[Precise]) -> Result<Option<Vec<Precise>>, ReferenceError> {
    if problem.semidefinite || !problem.cone.is_empty() {
        return Ok(None);
    }
    if !start.is_empty()
        && let Some(weights) = combine_to_zero(problem, start)?
    {
        return Ok(Some(weights));
    }
    // rows of equal size, since only their directions matter
    let mut plain = MarginProblem { norm: NormSpec::L2, ..problem.clone() };
    let sizes: Vec<f64> = (0..plain.rows.rows).map(|i| power_of_two(crate::linalg::norm2(plain.rows.row(i)))).collect();
    if problem.norm.exponent() == Some(2.0) && sizes.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(None); // the problem that was solved already
    }
    for (i, size) in sizes.iter().enumerate() {
        plain.rows.row_mut(i).iter_mut().for_each(|x| *x /= size);
    }
    let Ok(found) = solve_margin(&plain) else { return Ok(None) };
    if found.bracket.lower > 1e-12 {
        return Ok(None);
    }
    let weights: Vec<Precise> =
        found.multipliers.rows.iter().zip(&sizes).map(|(p, size)| Precise::from(p.max(0.0) / size)).collect();
    combine_to_zero(problem, &weights)
}

/// Brings both halves to size 1, by a power of two so that no digit is lost, and splits them in doubles.
fn finish(
    problem: &MarginProblem,
    proof: Proof,
    status: MarginStatus,
    iterations: usize,
) -> Result<MaxMargin, ReferenceError> {
    let Proof { bracket, direction, rows, cone, .. } = proof;
    let rounded: Vec<f64> = direction.iter().map(|x| x.high).collect();
    let size = problem.norm.build(&problem.layout)?.value(&rounded);
    let total = rows.iter().fold(Precise::default(), |sum, p| sum + *p).high;
    let split = |x: &[Precise], size: f64| {
        // a size that is 1 up to rounding is left alone
        let scale = if (size - 1.0).abs() < 1e-12 { 1.0 } else { power_of_two(size) };
        let low: Vec<f64> = x.iter().map(|x| x.low / scale).collect();
        let high: Vec<f64> = x.iter().map(|x| x.high / scale).collect();
        (high, if low.iter().all(|x| *x == 0.0) { Vec::new() } else { low }, scale)
    };
    let (direction, direction_low, _) = split(&direction, size);
    let (dual, dual_low, scale) = split(&rows, total);
    let slack: Vec<f64> = if problem.semidefinite { cone.iter().map(|x| x / scale).collect() } else { Vec::new() };
    let found = MarginSolution {
        bracket,
        direction: direction.clone(),
        multipliers: Multipliers::of_rows(dual.clone()),
        iterations,
    };
    let uniqueness = match status {
        MarginStatus::Optimal => uniqueness(problem, &found)?,
        _ => Uniqueness::absent(status),
    };
    Ok(MaxMargin {
        status,
        margin: bracket.lower,
        bracket,
        support: support(&dual),
        direction,
        direction_low,
        dual,
        dual_low,
        slack,
        uniqueness,
        iterations,
    })
}

impl MaxMargin {
    /// The answer that these weights prove, which combine all rows to 0.
    pub(super) fn not_separable(
        problem: &MarginProblem,
        weights: Vec<Precise>,
        iterations: usize,
    ) -> Result<Self, ReferenceError> {
        let mut proof = Proof::new(problem);
        proof.bracket.upper = super::proven_upper_bound(problem, &weights, &[])?.hi;
        proof.rows = weights;
        finish(problem, proof, MarginStatus::NotSeparable, iterations)
    }

    /// Sets margin and status by the bracket.
    pub(super) fn settle(&mut self) {
        self.margin = self.bracket.lower;
        if !(self.bracket.lower > 0.0 && self.bracket.relative_gap() <= OPTIMAL_GAP) {
            self.status = MarginStatus::Inaccurate;
            self.uniqueness = Uniqueness::absent(self.status);
        }
    }

    /// The same for rows that are `unit` times as large, a power of two.
    pub(super) fn times(mut self, unit: f64) -> Self {
        if unit == 1.0 {
            return self;
        }
        // exact unless the product leaves the range of doubles
        let (lower, upper) = (self.bracket.lower * unit, self.bracket.upper * unit);
        let exact = |product: f64, bound: f64| product / unit == bound;
        self.bracket.lower = if exact(lower, self.bracket.lower) { lower } else { lower.next_down().max(0.0) };
        self.bracket.upper = if exact(upper, self.bracket.upper) { upper } else { upper.next_up() };
        self.margin = self.bracket.lower;
        self.slack.iter_mut().for_each(|x| *x *= unit);
        self
    }
}

/// The rows whose weight is more than rounding.
fn support(dual: &[f64]) -> Vec<usize> {
    let largest = dual.iter().copied().fold(0.0, f64::max);
    (0..dual.len()).filter(|&i| dual[i] > 1e-9 * largest).collect()
}
