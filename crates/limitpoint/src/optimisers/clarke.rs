//! The minimum-norm element of the Clarke subdifferential near kinks.
//!
//! On a ReLU network a one-sided gradient makes coordinate descent bounce across kinks for ever (claims section 0). The
//! remedy is Goldstein's: take *all* slopes that occur within reach of a step and use the subgradient of smallest dual
//! norm. With K kinks in reach the gradient is g(e) = g₀ + Σ eₖ vₖ, e ∈ [0, 1]^K, and
//!
//! ```text
//! min_e ‖g₀ + V e‖_*  =  max_{‖d‖ ≤ 1} ( ⟨d, g₀⟩ + Σₖ min(0, ⟨vₖ, d⟩) )
//! ```
//!
//! so the best e comes with the direction −d that descends for every choice of slopes. The pair is found by the
//! primal–dual hybrid gradient method (Chambolle and Pock 2011, algorithm 1); it stops when the two sides agree to
//! `GAP` relative, or after `ITERATIONS`, and says which gap it reached.
//!
//! For the ℓ1 norm the dual is the largest entry, so that weights which share no kink are problems of their own: the
//! smallest norm is the largest among the parts. In a network with one hidden layer each part is one neuron, most of
//! them need no search, and coordinate descent on a thousand neurons costs little more than its gradients.

use std::ops::Range;

use crate::linalg::{dot, max_abs};
use crate::norms::{Norm, NormSpec};
use crate::objective::KinkColumn;

/// Relative duality gap at which the search ends.
const GAP: f64 = 1e-6;
/// Most iterations.
const ITERATIONS: usize = 4000;

/// The solution of the minimum-norm problem.
#[derive(Debug, Clone, PartialEq)]
pub struct MinimumNorm {
    /// e, how far each slope moves from left (0) to right (1).
    pub weights: Vec<f64>,
    /// g₀ + V e.
    pub gradient: Vec<f64>,
    /// The unit direction −d that descends for every choice of slopes.
    pub direction: Vec<f64>,
    /// ‖g₀ + V e‖_*.
    pub dual_norm: f64,
    /// (primal − dual) / primal.
    pub gap: f64,
}

/// Minimises ‖base + Σ eₖ columnₖ‖_* over 0 ≤ e ≤ 1.
///
/// ```
/// use limitpoint::norms::NormSpec;
/// use limitpoint::optimisers::minimum_norm;
/// // the subdifferential of |θ| at 0 is [−1, 1]: its smallest element is 0, half-way between the slopes
/// let mut norm = NormSpec::L2.build_vector(1)?;
/// let solution = minimum_norm(&mut *norm, &[-1.0], &[vec![(0, vec![2.0])]]);
/// assert!((solution.weights[0] - 0.5).abs() < 1e-5 && solution.dual_norm < 1e-5);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub fn minimum_norm(norm: &mut dyn Norm, base: &[f64], columns: &[KinkColumn]) -> MinimumNorm {
    if !norm.dual_is_largest_entry() {
        return search(norm, base, columns, 0.0);
    }
    let parts = parts(columns);
    let mut found = MinimumNorm {
        weights: vec![0.0; columns.len()],
        gradient: base.to_vec(),
        direction: vec![0.0; base.len()],
        dual_norm: 0.0,
        gap: 0.0,
    };
    // what no kink touches is as it is
    let mut free = base.to_vec();
    parts.iter().for_each(|part| free[part.entries.clone()].fill(0.0));
    found.dual_norm = norm.unit_minimiser(&free, &mut found.direction);
    // the parts that are largest before their kinks are weighed come first: most others are then too small to matter
    let mut order: Vec<(f64, &Part)> = parts.iter().map(|part| (max_abs(&base[part.entries.clone()]), part)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (size, part) in order {
        if size <= found.dual_norm {
            break;
        }
        let (entries, own) = (part.entries.clone(), part.columns(columns));
        let Ok(mut norm) = NormSpec::L1.build_vector(entries.len()) else { continue };
        let solution = search(&mut *norm, &base[entries.clone()], &own, found.dual_norm);
        part.kinks.iter().zip(&solution.weights).for_each(|(kink, e)| found.weights[*kink] = *e);
        if solution.dual_norm > found.dual_norm {
            (found.dual_norm, found.gap) = (solution.dual_norm, solution.gap);
            found.direction.fill(0.0);
            found.direction[entries].copy_from_slice(&solution.direction);
        }
    }
    let weights = std::mem::take(&mut found.weights);
    combine(base, columns, &weights, &mut found.gradient);
    MinimumNorm { weights, ..found }
}

/// Entries that share kinks, and those kinks.
struct Part {
    entries: Range<usize>,
    kinks: Vec<usize>,
}

impl Part {
    /// Its columns, counted from its first entry.
    fn columns(&self, all: &[KinkColumn]) -> Vec<KinkColumn> {
        let shift = |column: &KinkColumn| {
            column.iter().map(|(first, run)| (first - self.entries.start, run.clone())).collect::<KinkColumn>()
        };
        self.kinks.iter().map(|kink| shift(&all[*kink])).collect()
    }
}

/// Columns whose stretches, from first to last entry, overlap belong to one part.
fn parts(columns: &[KinkColumn]) -> Vec<Part> {
    let mut stretches: Vec<(Range<usize>, usize)> = Vec::with_capacity(columns.len());
    for (kink, column) in columns.iter().enumerate() {
        let first = column.iter().map(|(first, _)| *first).min();
        let last = column.iter().map(|(first, run)| first + run.len()).max();
        if let (Some(first), Some(last)) = (first, last) {
            stretches.push((first..last, kink));
        }
    }
    stretches.sort_by_key(|(entries, _)| entries.start);
    let mut parts: Vec<Part> = Vec::new();
    for (entries, kink) in stretches {
        match parts.last_mut() {
            Some(part) if entries.start < part.entries.end => {
                part.entries.end = part.entries.end.max(entries.end);
                part.kinks.push(kink);
            }
            _ => parts.push(Part { entries, kinks: vec![kink] }),
        }
    }
    parts
}

/// The saddle point by primal and dual steps; ends early once the minimum is known to be at most `enough`.
fn search(norm: &mut dyn Norm, base: &[f64], columns: &[KinkColumn], enough: f64) -> MinimumNorm {
    let size: f64 = columns.iter().flatten().map(|(_, run)| dot(run, run)).sum::<f64>().sqrt();
    let mut best = MinimumNorm {
        weights: vec![0.0; columns.len()],
        gradient: base.to_vec(),
        direction: vec![0.0; base.len()],
        dual_norm: norm.dual(base),
        gap: f64::INFINITY,
    };
    norm.unit_minimiser(base, &mut best.direction);
    if size == 0.0 || !size.is_finite() || best.dual_norm == 0.0 {
        best.gap = 0.0;
        return best;
    }
    // e lives on [0, 1], d on the unit ball: equal weights, στ‖V‖² ≤ 1 with ‖V‖ ≤ ‖V‖_F
    let step = 1.0 / size;
    let mut d: Vec<f64> = best.direction.iter().map(|x| -x).collect();
    let (mut e, mut ahead) = (vec![0.5; columns.len()], vec![0.5; columns.len()]);
    let (mut gradient, mut upper, mut lower) = (vec![0.0; base.len()], best.dual_norm, f64::NEG_INFINITY);
    for iteration in 0..ITERATIONS {
        combine(base, columns, &ahead, &mut gradient);
        crate::linalg::add_scaled(&mut d, step, &gradient);
        norm.project_ball(1.0, &mut d);
        let mut bound = dot(&d, base);
        for ((e, ahead), column) in e.iter_mut().zip(&mut ahead).zip(columns) {
            let slope: f64 = column.iter().map(|(first, run)| dot(run, &d[*first..first + run.len()])).sum();
            bound += slope.min(0.0);
            let next = (*e - step * slope).clamp(0.0, 1.0);
            *ahead = 2.0 * next - *e;
            *e = next;
        }
        if bound > lower {
            lower = bound;
            best.direction.iter_mut().zip(&d).for_each(|(out, x)| *out = -x);
        }
        if iteration % 8 == 7 {
            combine(base, columns, &e, &mut gradient);
            let value = norm.dual(&gradient);
            if value < upper {
                upper = value;
                best.weights.copy_from_slice(&e);
            }
            best.gap = (upper - lower) / upper.max(f64::MIN_POSITIVE);
            // a minimum of zero has no relative gap: compare with where the search began
            if best.gap <= GAP || upper <= GAP * best.dual_norm || upper <= enough {
                break;
            }
        }
    }
    let weights = std::mem::take(&mut best.weights);
    combine(base, columns, &weights, &mut best.gradient);
    MinimumNorm { dual_norm: norm.dual(&best.gradient), weights, ..best }
}

/// out = base + Σ eₖ columnₖ.
fn combine(base: &[f64], columns: &[KinkColumn], e: &[f64], out: &mut [f64]) {
    out.copy_from_slice(base);
    for (column, e) in columns.iter().zip(e) {
        for (first, run) in column {
            crate::linalg::add_scaled(&mut out[*first..first + run.len()], *e, run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::norms::NormSpec;
    use crate::numeric::Streams;
    use crate::params::ParamLayout;

    /// Dense grid over e ∈ [0, 1]².
    fn brute_force(norm: &mut dyn Norm, base: &[f64], columns: &[KinkColumn]) -> f64 {
        let mut gradient = vec![0.0; base.len()];
        let mut least = f64::INFINITY;
        for i in 0..=200 {
            for j in 0..=200 {
                combine(base, columns, &[f64::from(i) / 200.0, f64::from(j) / 200.0], &mut gradient);
                least = least.min(norm.dual(&gradient));
            }
        }
        least
    }

    /// Two neurons of three weights with kinks of their own, and entries that no kink touches.
    #[test]
    fn parts_that_share_no_kink_are_solved_alone() {
        let mut stream = Streams::new(8).stream("clarke");
        for _ in 0..20 {
            let mut base = vec![0.0; 10];
            stream.fill_normal(&mut base);
            base[8] *= 0.2;
            let column = |unit: usize, stream: &mut crate::numeric::RandomStream| -> KinkColumn {
                vec![(3 * unit, (0..3).map(|_| 2.0 * stream.normal()).collect())]
            };
            let columns: Vec<KinkColumn> = [0, 2, 0, 2, 2].map(|unit| column(unit, &mut stream)).to_vec();
            let mut norm = NormSpec::L1.build_vector(10).unwrap();
            let (split, whole) = (minimum_norm(&mut *norm, &base, &columns), search(&mut *norm, &base, &columns, 0.0));
            assert!((split.dual_norm - whole.dual_norm).abs() < 1e-4 * whole.dual_norm, "{split:?} {whole:?}");
            assert!((norm.dual(&split.gradient) - split.dual_norm).abs() < 1e-12);
            // its direction descends for every choice of slopes
            let worst = columns.iter().fold(dot(&split.direction, &base), |sum, column| {
                sum + column
                    .iter()
                    .map(|(first, run)| dot(run, &split.direction[*first..first + run.len()]))
                    .sum::<f64>()
                    .max(0.0)
            });
            assert!(worst <= -split.dual_norm * (1.0 - 1e-3), "{worst} {}", split.dual_norm);
        }
    }

    #[test]
    fn it_finds_the_smallest_dual_norm_in_every_geometry() {
        let layout = ParamLayout::new([("w", 3, 2)]).unwrap();
        let mut stream = Streams::new(5).stream("clarke");
        for spec in NormSpec::examples(&layout) {
            let mut norm = spec.build(&layout).unwrap();
            for _ in 0..5 {
                let mut base = vec![0.0; 6];
                stream.fill_normal(&mut base);
                let columns: Vec<KinkColumn> =
                    (0..2).map(|k| vec![(2 * k, (0..2).map(|_| 2.0 * stream.normal()).collect())]).collect();
                let found = minimum_norm(&mut *norm, &base, &columns);
                let expected = brute_force(&mut *norm, &base, &columns);
                assert!(found.dual_norm <= expected * (1.0 + 1e-4), "{spec:?} {found:?} {expected}");
                assert!(found.gap < 1e-3, "{spec:?} {}", found.gap);
                // −d descends for every choice of slopes by at least the minimum norm
                for corner in [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] {
                    let mut gradient = vec![0.0; 6];
                    combine(&base, &columns, &corner, &mut gradient);
                    let slope = dot(&gradient, &found.direction);
                    assert!(slope <= -found.dual_norm * (1.0 - 2e-3), "{spec:?} {slope} {}", found.dual_norm);
                }
            }
        }
    }
}
