//! The margin problem in a norm of which nothing is known but its oracle.
//!
//! The unit ball of any norm is the hull of its boundary, so a margin in it is an ℓ1 margin over enough of its points:
//!
//! ```text
//! max_{‖v‖ ≤ 1} min_i ⟨h_i, v⟩  =  max_{Σ|λ_k| ≤ 1} min_i Σ_k λ_k ⟨h_i, v_k⟩          all v_k with ‖v_k‖ ≤ 1
//! ```
//!
//! Few points are enough, and they are found as they are needed: the weights p of the rows that solve the problem on the
//! points there are give z = Σ p_i h_i, and the point of the ball with the largest ⟨z, v⟩ = ‖z‖_* joins them (column
//! generation; Dantzig and Wolfe 1960). At every stage v = Σ λ_k v_k and p bracket the margin,
//!
//! ```text
//! min_i ⟨h_i, v⟩/‖v‖  ≤  γ*  ≤  ‖Σ p_i h_i‖_*
//! ```
//!
//! in plain arithmetic: outward rounding would need to know how the norm computes. Norms whose ball has few corners end
//! exactly; for smooth ones v/‖v‖ joins the points too, which lies on the boundary where v does not.

use super::margin::solve_margin;
use super::{Bracket, MarginProblem, MarginSolution, Multipliers, OPTIMAL_GAP, ReferenceError};
use crate::linalg::{Matrix, add_scaled, dot};
use crate::norms::{Norm, NormSpec};
use crate::params::ParamLayout;

/// Most rounds.
const ROUNDS: usize = 500;
/// Points beyond those of a basis that are kept.
const SPARE: usize = 60;

/// Solves max over ‖v‖ ≤ 1 of min_i ⟨h_i, v⟩ in a norm that is given by its methods alone, such as one written outside this
/// crate. Uses `value`, `dual` and `unit_minimiser`.
///
/// The bracket says how far it came: it ends at a relative gap of [`OPTIMAL_GAP`], or after 500 rounds.
///
/// ```
/// use limitpoint::linalg::Matrix;
/// use limitpoint::norms::NormSpec;
/// use limitpoint::reference::solve_margin_in;
/// let rows = Matrix::from_rows(&[&[1.0, 0.0], &[0.0, 1.0]]);
/// let found = solve_margin_in(&mut *NormSpec::Nuclear.build_vector(2)?, &rows)?;
/// assert!((found.bracket.lower - 0.5_f64.sqrt()).abs() < 1e-9 && found.bracket.relative_gap() <= 1e-9);
/// # Ok::<(), limitpoint::reference::ReferenceError>(())
/// ```
pub fn solve_margin_in(norm: &mut dyn Norm, rows: &Matrix) -> Result<MarginSolution, ReferenceError> {
    // refuses rows that are no problem
    MarginProblem::new(rows.clone(), NormSpec::L2, ParamLayout::vector(rows.cols))?;
    let (count, width) = (rows.rows, rows.cols);
    let mut points = Points { rows, points: Vec::new(), products: Vec::new() };
    let equal = vec![1.0 / count as f64; count];
    let mut best = MarginSolution {
        bracket: Bracket { lower: 0.0, upper: f64::INFINITY },
        direction: vec![0.0; width],
        multipliers: Multipliers::of_rows(equal.clone()),
        iterations: 0,
    };
    points.offer(norm, &equal, &mut best);
    for _ in 0..ROUNDS {
        let found = points.solve()?;
        best.iterations += found.iterations;
        let v = points.combine(&found.direction);
        let size = norm.value(&v);
        if size > 0.0 && size.is_finite() {
            let unit: Vec<f64> = v.iter().map(|x| x / size).collect();
            let lower = (0..count).map(|i| dot(rows.row(i), &unit)).fold(f64::INFINITY, f64::min);
            if lower > best.bracket.lower {
                (best.bracket.lower, best.direction) = (lower, unit.clone());
            }
            points.prune(&found.direction, width.min(count) + SPARE);
            if size < 1.0 - OPTIMAL_GAP {
                points.add(unit);
            }
        }
        let newest = found.multipliers.rows;
        // weights between the best and the newest see more of a smooth ball than the newest alone
        let between: Vec<f64> = newest.iter().zip(&best.multipliers.rows).map(|(a, b)| 0.5 * (a + b)).collect();
        let known = points.points.len();
        points.offer(norm, &newest, &mut best);
        points.offer(norm, &between, &mut best);
        let finished = best.bracket.relative_gap() <= OPTIMAL_GAP || best.bracket.upper <= 0.0;
        if finished || points.points.len() == known {
            break;
        }
    }
    Ok(best)
}

/// Points of the unit ball, with their products with all rows.
struct Points<'a> {
    rows: &'a Matrix,
    points: Vec<Vec<f64>>,
    products: Vec<Vec<f64>>,
}

impl Points<'_> {
    fn add(&mut self, point: Vec<f64>) {
        let products: Vec<f64> = (0..self.rows.rows).map(|i| dot(self.rows.row(i), &point)).collect();
        if !self.points.contains(&point) && products.iter().all(|x| x.is_finite()) {
            self.points.push(point);
            self.products.push(products);
        }
    }

    /// Takes in the point that the weights ask for, and the upper bound that they prove.
    fn offer(&mut self, norm: &mut dyn Norm, weights: &[f64], best: &mut MarginSolution) {
        let total: f64 = weights.iter().map(|p| p.max(0.0)).sum();
        let weights: Vec<f64> = weights.iter().map(|p| p.max(0.0) / total).collect();
        let mut z = vec![0.0; self.rows.cols];
        weights.iter().enumerate().for_each(|(i, p)| add_scaled(&mut z, *p, self.rows.row(i)));
        let mut point = vec![0.0; z.len()];
        let upper = norm.unit_minimiser(&z, &mut point);
        point.iter_mut().for_each(|x| *x = -*x);
        if upper < best.bracket.upper {
            (best.bracket.upper, best.multipliers) = (upper, Multipliers::of_rows(weights));
        }
        self.add(point);
    }

    /// The ℓ1 problem over the points.
    fn solve(&self) -> Result<MarginSolution, ReferenceError> {
        let mut products = Matrix::zeros(self.rows.rows, self.points.len());
        for (k, column) in self.products.iter().enumerate() {
            column.iter().enumerate().for_each(|(i, x)| products[(i, k)] = *x);
        }
        solve_margin(&MarginProblem::new(products, NormSpec::L1, ParamLayout::vector(self.points.len()))?)
    }

    /// Σ λ_k v_k.
    fn combine(&self, weights: &[f64]) -> Vec<f64> {
        let mut v = vec![0.0; self.rows.cols];
        self.points.iter().zip(weights).for_each(|(point, weight)| add_scaled(&mut v, *weight, point));
        v
    }

    /// Lets go of the oldest points without weight while there are more than `most`.
    fn prune(&mut self, weights: &[f64], most: usize) {
        let mut spare = self.points.len().saturating_sub(most);
        let mut keep: Vec<bool> = Vec::with_capacity(weights.len());
        for weight in weights {
            let leaves = spare > 0 && weight.abs() < 1e-12;
            spare -= usize::from(leaves);
            keep.push(!leaves);
        }
        let mut kept = keep.iter();
        self.points.retain(|_| *kept.next().unwrap_or(&true));
        let mut kept = keep.iter();
        self.products.retain(|_| *kept.next().unwrap_or(&true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Streams;

    /// Rows whose first entry is 1 to 2.
    fn separable(seed: u64, count: usize, width: usize) -> Matrix {
        let mut rows = Matrix::zeros(count, width);
        Streams::new(seed).stream("rows").fill_normal(&mut rows.data);
        (0..count).for_each(|i| rows[(i, 0)] = 1.0 + rows[(i, 0)].abs().min(1.0));
        rows
    }

    #[test]
    fn the_oracle_alone_finds_the_margin_of_every_norm() {
        for layout in [ParamLayout::vector(6), ParamLayout::new([("w", 2, 3), ("a", 1, 2)]).unwrap()] {
            for (seed, count) in [(1, 5), (2, 25)] {
                let rows = separable(seed, count, layout.len());
                for norm in NormSpec::examples(&layout) {
                    let problem = MarginProblem::new(rows.clone(), norm.clone(), layout.clone()).unwrap();
                    let known = solve_margin(&problem).unwrap().bracket;
                    let mut built = norm.build(&layout).unwrap();
                    let found = solve_margin_in(&mut *built, &rows).unwrap();
                    assert!(found.bracket.relative_gap() < 1e-8, "{norm}, {count} rows: {:?}", found.bracket);
                    assert!(found.bracket.lower <= known.upper * (1.0 + 1e-12), "{norm}");
                    assert!(found.bracket.upper >= known.lower * (1.0 - 1e-12), "{norm}");
                    // what it says of itself is so
                    let again = problem.bracket(&found.direction, &found.multipliers).unwrap();
                    assert!((again.lower / found.bracket.lower - 1.0).abs() < 1e-12, "{norm}");
                    assert!((again.upper / found.bracket.upper - 1.0).abs() < 1e-12, "{norm}");
                }
            }
        }
    }

    #[test]
    fn rows_that_cannot_be_separated_have_an_upper_bound_of_nothing() {
        let rows = Matrix::from_rows(&[&[1.0, 2.0], &[-2.0, -4.0], &[1.0, 0.0]]);
        let found = solve_margin_in(&mut *NormSpec::Linf.build_vector(2).unwrap(), &rows).unwrap();
        assert!(found.bracket.lower <= 0.0 && found.bracket.upper < 1e-9, "{:?}", found.bracket);
        assert!(solve_margin_in(&mut *NormSpec::Linf.build_vector(2).unwrap(), &Matrix::zeros(0, 2)).is_err());
    }
}
