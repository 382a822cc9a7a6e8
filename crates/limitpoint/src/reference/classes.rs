//! Max margins of classes and of many examples: rows are made when they are needed.
//!
//! N examples of C classes have N(C − 1) rows (e_y − e_j) ⊗ x of length C·d, most of them far from tight. The problem is
//! solved on a working set, as in [`margin`](super::margin), with the margins of all rows from one product X Wᵀ, so that
//! memory is that of the inputs and of the few rows in the set.
//!
//! Inseparable data often show it in two classes already: rows of class a against b and of b against a are those of a
//! binary problem of d weights. Pairs are tried first, nearest means first, where the whole has very many rows.

use std::borrow::Cow;

use super::inseparable::combine_to_zero;
use super::margin::solve_margin;
use super::max_margin::{MarginStatus, MaxMargin, judged, max_margin, safe_unit};
use super::proof::could_be_smallest;
use super::working_set::{FALLS, prune, spread, worst};
use super::{MarginProblem, ReferenceError, proven_margin};
use crate::data::{Dataset, Targets};
use crate::linalg::{Matrix, Precise, add_scaled, matmul_nt, norm2};
use crate::norms::NormSpec;
use crate::params::ParamLayout;

/// Rows up to which all of them are made.
const WHOLE: usize = 1000;
/// Rows a working set starts with.
const FIRST: usize = 300;
/// Rows from which on pairs of classes are tried first.
const MANY: usize = 50_000;

/// Solves the max-margin problem of the linear model on these data: as [`MarginProblem::linear`] and [`max_margin`], but
/// without making all rows of several classes.
///
/// ```
/// use limitpoint::data::{Dataset, Targets};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::norms::NormSpec;
/// use limitpoint::reference::max_margin_of;
/// let inputs = Matrix::from_rows(&[&[1.0, 0.0], &[0.0, 1.0]]);
/// let data = Dataset::new("two classes", inputs, Targets::Classes { labels: vec![0, 1], count: 2 }, vec![2])?;
/// // rows (x, −x) and (−x, x) of length 4: the best W is (1, −1; −1, 1)/2, with margin 1
/// assert!((max_margin_of(&data, NormSpec::L2)?.margin - 1.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn max_margin_of(data: &Dataset, norm: NormSpec) -> Result<MaxMargin, ReferenceError> {
    match &data.targets {
        Targets::Classes { labels, count } if data.len() * (count - 1) > WHOLE => {
            let mut inputs = data.dense()?;
            let unit = safe_unit(&inputs.data);
            if unit != 1.0 {
                inputs.to_mut().data.iter_mut().for_each(|x| *x /= unit);
            }
            let rows = ClassRows { inputs, labels, count: *count };
            let pair = if rows.len() >= MANY { rows.inseparable_pair(&norm)? } else { None };
            Ok(match pair {
                Some(found) => found,
                None => rows.solve(&norm)?,
            }
            .times(unit))
        }
        _ => max_margin(&MarginProblem::linear(data, norm)?),
    }
}

/// The rows (e_y − e_j) ⊗ x, in the order of [`MarginProblem::linear`].
struct ClassRows<'a> {
    inputs: Cow<'a, Matrix>,
    labels: &'a [usize],
    count: usize,
}

impl ClassRows<'_> {
    fn len(&self) -> usize {
        self.inputs.rows * (self.count - 1)
    }

    /// The example of a row and the class it is told from.
    fn pair(&self, row: usize) -> (usize, usize) {
        let (example, place) = (row / (self.count - 1), row % (self.count - 1));
        (example, if place < self.labels[example] { place } else { place + 1 })
    }

    /// The row of an example against a class.
    fn row(&self, example: usize, other: usize) -> usize {
        example * (self.count - 1) + if other < self.labels[example] { other } else { other - 1 }
    }

    /// The problem of some rows alone.
    fn problem(&self, set: &[usize], norm: &NormSpec) -> Result<MarginProblem, ReferenceError> {
        let d = self.inputs.cols;
        let mut rows = Matrix::zeros(set.len(), self.count * d);
        for (at, &row) in set.iter().enumerate() {
            let (i, other) = self.pair(row);
            let (input, label) = (self.inputs.row(i), self.labels[i]);
            add_scaled(&mut rows.row_mut(at)[label * d..(label + 1) * d], 1.0, input);
            add_scaled(&mut rows.row_mut(at)[other * d..(other + 1) * d], -1.0, input);
        }
        MarginProblem::new(rows, norm.clone(), ParamLayout::new([("w", self.count, d)])?)
    }

    /// The margins of all rows at W, in plain arithmetic.
    fn margins(&self, weights: &[f64]) -> Vec<f64> {
        let mut scores = vec![0.0; self.inputs.rows * self.count];
        matmul_nt(&mut scores, &self.inputs.data, weights, self.inputs.rows, self.inputs.cols, self.count);
        (0..self.len())
            .map(|row| {
                let (i, other) = self.pair(row);
                scores[i * self.count + self.labels[i]] - scores[i * self.count + other]
            })
            .collect()
    }

    fn solve(&self, norm: &NormSpec) -> Result<MaxMargin, ReferenceError> {
        let mut set = spread(self.len(), FIRST);
        let (mut iterations, mut last) = (0, f64::INFINITY);
        loop {
            let problem = self.problem(&set, norm)?;
            let mut solution = solve_margin(&problem)?;
            iterations += solution.iterations;
            solution.iterations = iterations;
            let upper = solution.bracket.upper;
            let margins = self.margins(&solution.direction);
            let violated = worst(&margins, &set, upper);
            // no direction separates even these rows, or it separates all
            if solution.bracket.lower <= 0.0 || violated.is_empty() {
                let found = judged(&problem, Ok(solution.clone()))?;
                if found.status == MarginStatus::NotSeparable || violated.is_empty() {
                    return self.judged(found, &set, norm);
                }
            }
            if upper < FALLS * last {
                prune(&mut set, &solution.multipliers.rows);
            }
            last = last.min(upper);
            set.extend(violated);
            set.sort_unstable();
        }
    }

    /// The answer for some rows as one for all: weights are 0 elsewhere, and the lower bound is that of all rows.
    fn judged(&self, mut found: MaxMargin, set: &[usize], norm: &NormSpec) -> Result<MaxMargin, ReferenceError> {
        let spread_out = |local: &[f64]| {
            let mut all = vec![0.0; if local.is_empty() { 0 } else { self.len() }];
            set.iter().zip(local).for_each(|(&row, x)| all[row] = *x);
            all
        };
        (found.dual, found.dual_low) = (spread_out(&found.dual), spread_out(&found.dual_low));
        found.support = found.support.iter().map(|&at| set[at]).collect();
        if found.status != MarginStatus::NotSeparable {
            found.bracket.lower = found.bracket.lower.min(self.proven(&found, norm)?);
            found.settle();
        }
        Ok(found)
    }

    /// A proven lower bound of the margins of all rows: those that could be the smallest are looked at exactly.
    fn proven(&self, found: &MaxMargin, norm: &NormSpec) -> Result<f64, ReferenceError> {
        let (d, v) = (self.inputs.cols, &found.direction);
        let plain = self.margins(v);
        let longest = v.chunks_exact(d).map(norm2).fold(0.0, f64::max);
        // twice the bound of one product, doubled for the low half of v and the rounding of norms
        let share = 4.4 * (d + 5) as f64 * f64::EPSILON * longest;
        let error: Vec<f64> = (0..self.inputs.rows).map(|i| share * norm2(self.inputs.row(i)) + 1e-290).collect();
        let products: Vec<(f64, f64)> =
            plain.into_iter().enumerate().map(|(row, margin)| (margin, error[row / (self.count - 1)])).collect();
        let low = |at: usize| found.direction_low.get(at).copied().unwrap_or(0.0);
        let v: Vec<Precise> = v.iter().enumerate().map(|(at, x)| Precise { high: *x, low: low(at) }).collect();
        let mut least = f64::INFINITY;
        for part in could_be_smallest(&products).chunks(WHOLE) {
            least = least.min(proven_margin(&self.problem(part, norm)?, &v)?.lo);
        }
        Ok(least)
    }

    /// The proof by two classes that cannot be told apart, if there are any.
    fn inseparable_pair(&self, norm: &NormSpec) -> Result<Option<MaxMargin>, ReferenceError> {
        let d = self.inputs.cols;
        let mut means = Matrix::zeros(self.count, d);
        let mut sizes = vec![0.0; self.count];
        for (i, &label) in self.labels.iter().enumerate() {
            add_scaled(means.row_mut(label), 1.0, self.inputs.row(i));
            sizes[label] += 1.0;
        }
        (0..self.count).for_each(|c| means.row_mut(c).iter_mut().for_each(|x| *x /= f64::max(sizes[c], 1.0)));
        let distance = |a: usize, b: usize| {
            norm2(&means.row(a).iter().zip(means.row(b)).map(|(x, y)| x - y).collect::<Vec<f64>>())
        };
        let mut pairs: Vec<(usize, usize)> = (0..self.count).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
        pairs.sort_by(|a, b| distance(a.0, a.1).total_cmp(&distance(b.0, b.1)));
        for (a, b) in pairs {
            let members: Vec<usize> =
                (0..self.labels.len()).filter(|&i| self.labels[i] == a || self.labels[i] == b).collect();
            if members.is_empty() {
                continue;
            }
            let mut rows = Matrix::zeros(members.len(), d);
            for (at, &i) in members.iter().enumerate() {
                add_scaled(rows.row_mut(at), if self.labels[i] == a { 1.0 } else { -1.0 }, self.inputs.row(i));
            }
            let problem = MarginProblem::new(rows, NormSpec::L2, ParamLayout::vector(d))?;
            let solution = solve_margin(&problem)?;
            let start: Vec<Precise> = solution.multipliers.rows.iter().map(|p| Precise::from(*p)).collect();
            if solution.bracket.lower > 0.0 {
                continue;
            }
            let Some(weights) = combine_to_zero(&problem, &start)? else { continue };
            let used: Vec<usize> = (0..weights.len()).filter(|&at| weights[at].high > 0.0).collect();
            let row = |at: &usize| {
                let i = members[*at];
                self.row(i, if self.labels[i] == a { b } else { a })
            };
            let set: Vec<usize> = used.iter().map(row).collect();
            let reduced = self.problem(&set, norm)?;
            let local: Vec<Precise> = used.iter().map(|&at| weights[at]).collect();
            let found = MaxMargin::not_separable(&reduced, local, solution.iterations)?;
            return self.judged(found, &set, norm).map(Some);
        }
        Ok(None)
    }
}
