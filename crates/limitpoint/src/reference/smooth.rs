//! Margins in ℓp with 1 < p < ∞, to the last digit: Newton's method in precise numbers on the tight rows.
//!
//! With the tight rows A and u = v/γ*, optimality is
//!
//! ```text
//! H_A u = 1,     H_Aᵀ π = ∇‖u‖_p,     π ≥ 0          γ* = 1/‖u‖_p
//! ```
//!
//! a square system in (u, π) whose matrix is [−∇²‖u‖, H_Aᵀ; H_A, 0]. For p < 2 the curvature is infinite where an entry is
//! 0; there u is a smooth function of the combination of the rows, and π alone can be the unknown:
//!
//! ```text
//! H_A φ(H_Aᵀ π) = 1,     φ(g) = sgn(g)|g|^(q−1),     q = p/(p − 1)
//! ```
//!
//! Near the answer of a solver in doubles a few steps
//! are enough; rows of negative weight leave the set, violated ones join it. Path following is not: the curvature of the ball is multiplied by the margin, and a margin far below the
//! size of the rows leaves next to nothing of it. What comes out is judged by the bounds it proves.

use super::refine::Support;
use super::{MarginProblem, MarginSolution};
use crate::linalg::{Precise, Scalar, Table};
use crate::norms::{NormPart, PlainNorm};
use crate::numeric::power_of_two;
use crate::reference::conic::{eliminate, power_curvature, power_slack};

/// Newton steps on one set of rows.
const STEPS: usize = 60;
/// Sets of rows that are tried.
const ROUNDS: usize = 40;
/// Unknowns up to which a dense factorisation in precise numbers is worth its time.
const LARGEST: usize = 400;

/// What Newton's method is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// u and π.
    Both,
    /// π alone, of which u is a function.
    Weights,
}

impl Form {
    /// In the order in which they are tried.
    pub(super) const ALL: [Self; 2] = [Self::Both, Self::Weights];
}

/// A direction and weights of all rows near a solution in doubles; nothing for other norms, or where Newton's method
/// fails.
pub(super) fn newton(
    problem: &MarginProblem,
    solution: &MarginSolution,
    form: Form,
) -> Option<(Vec<Precise>, Vec<Precise>)> {
    let parts = problem.norm.canonical(&problem.layout).ok()?.parts;
    let [NormPart { norm: PlainNorm::Lp(p), weight: 1.0, .. }] = parts[..] else { return None };
    if solution.direction.is_empty() {
        return None;
    }
    let entries: Vec<usize> = problem.layout.trainable_ranges().into_iter().flatten().collect();
    let mut tight = Support::tight(problem, solution).rows;
    // a power of two near γ: the rows divided by it have margins of about 1
    let unit = power_of_two(solution.bracket.upper);
    let scale = unit / solution.bracket.upper;
    let mut u: Vec<Precise> = entries.iter().map(|&j| Precise::from(solution.direction[j] * scale)).collect();
    for _ in 0..ROUNDS {
        if tight.is_empty() || tight.len() + entries.len() > LARGEST {
            return None;
        }
        let (next, weights) = match form {
            Form::Weights => solve_dual(problem, p / (p - 1.0), (&entries, &tight, unit), &solution.multipliers.rows)?,
            Form::Both => solve(problem, p, (&entries, &tight, unit), u.clone())?,
        };
        let least = (0..tight.len()).min_by(|&a, &b| weights[a].value().total_cmp(&weights[b].value()))?;
        if weights[least].value() < 0.0 {
            tight.remove(least);
            continue;
        }
        u = next;
        // a row below the tight ones joins them
        let margin = |i: usize| {
            let row = problem.rows.row(i);
            entries.iter().zip(&u).fold(Precise::default(), |sum, (&j, u)| sum + u.times(row[j] / unit)).value()
        };
        let worst = (0..problem.rows.rows).filter(|i| !tight.contains(i)).map(|i| (margin(i), i));
        match worst.min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((margin, row)) if margin < 1.0 - 1e-13 => tight.push(row),
            _ => {
                let mut direction = vec![Precise::default(); problem.layout.len()];
                entries.iter().zip(&u).for_each(|(&j, x)| direction[j] = *x);
                let mut rows = vec![Precise::default(); problem.rows.rows];
                tight.iter().zip(&weights).for_each(|(&i, w)| rows[i] = *w);
                return Some((direction, rows));
            }
        }
    }
    None
}

/// u and π for one set of rows.
fn solve(
    problem: &MarginProblem,
    p: f64,
    (entries, tight, unit): (&[usize], &[usize], f64),
    mut u: Vec<Precise>,
) -> Option<(Vec<Precise>, Vec<Precise>)> {
    let (d, k) = (entries.len(), tight.len());
    let row = |a: usize| entries.iter().map(move |&j| problem.rows.row(tight[a])[j] / unit);
    let mut weights = vec![Precise::default(); k];
    for _ in 0..STEPS {
        // the slopes of −‖u‖ come after that of the slack itself
        let values: Vec<Precise> = std::iter::once(Precise::default()).chain(u.iter().copied()).collect();
        let slopes = power_slack(&values, p).1;
        let (factor, bends) = power_curvature(&u, p);
        let mut matrix = Table::<Precise>::zeros(d + k, d + k);
        let mut right = vec![Precise::default(); d + k];
        for i in 0..d {
            for j in 0..d {
                matrix[(i, j)] = factor * slopes[i + 1] * slopes[j + 1];
            }
            matrix[(i, i)] -= factor * bends[i];
            right[i] = -slopes[i + 1];
        }
        for a in 0..k {
            let mut product = Precise::default();
            for (j, h) in row(a).enumerate() {
                matrix[(j, d + a)] = Precise::from(h);
                matrix[(d + a, j)] = Precise::from(h);
                product += u[j].times(h);
            }
            right[d + a] = Precise::from(1.0) - product;
        }
        eliminate(&mut matrix, &mut right)?;
        let size = right[..d].iter().map(|x| x.value().abs()).fold(0.0, f64::max);
        // for p < 2 a step comes near to where an entry is 0, not across
        let room = |(u, step): (&Precise, &Precise)| 0.9 * (u.value() / step.value()).abs();
        let crossing = u.iter().zip(&right).filter(|(u, step)| p < 2.0 && u.value() * (**u + **step).value() < 0.0);
        let fraction = crossing.map(room).fold(1.0, f64::min);
        u.iter_mut().zip(&right).for_each(|(u, step)| *u += step.times(fraction));
        weights.copy_from_slice(&right[d..]);
        if size < 1e-28 * u.iter().map(|x| x.value().abs()).fold(0.0, f64::max) {
            break;
        }
    }
    u.iter().chain(&weights).all(|x| x.is_finite()).then_some((u, weights))
}

/// The same in the weights alone; `q` is the dual exponent.
fn solve_dual(
    problem: &MarginProblem,
    q: f64,
    (entries, tight, unit): (&[usize], &[usize], f64),
    start: &[f64],
) -> Option<(Vec<Precise>, Vec<Precise>)> {
    let (d, k) = (entries.len(), tight.len());
    let h = |a: usize, j: usize| problem.rows.row(tight[a])[entries[j]] / unit;
    let combined = |weights: &[Precise]| -> Vec<Precise> {
        (0..d).map(|j| (0..k).fold(Precise::default(), |sum, a| sum + weights[a].times(h(a, j)))).collect()
    };
    let image = |g: &[Precise]| -> Vec<Precise> {
        let power = |g: &Precise| g.size().power(q - 1.0);
        g.iter().map(|g| if g.value() < 0.0 { -power(g) } else { power(g) }).collect()
    };
    let margin = |u: &[Precise], a: usize| (0..d).fold(Precise::default(), |sum, j| sum + u[j].times(h(a, j)));
    let mut weights: Vec<Precise> = tight.iter().map(|&i| Precise::from(start[i])).collect();
    // the margins have degree q − 1 in the weights, so a factor brings them near 1
    let u = image(&combined(&weights));
    let mean = (0..k).map(|a| margin(&u, a).value()).sum::<f64>() / k as f64;
    if !(mean > 0.0 && mean.is_finite()) {
        return None;
    }
    let factor = mean.powf(-(q - 1.0).recip());
    weights.iter_mut().for_each(|w| *w = w.times(factor));
    for _ in 0..STEPS {
        let g = combined(&weights);
        let u = image(&g);
        let slopes: Vec<Precise> = g.iter().map(|g| g.size().power(q - 2.0).times(q - 1.0)).collect();
        let mut matrix = Table::<Precise>::zeros(k, k);
        for a in 0..k {
            for b in 0..k {
                let sum = (0..d).fold(Precise::default(), |sum, j| sum + slopes[j].times(h(a, j)).times(h(b, j)));
                matrix[(a, b)] = sum;
            }
        }
        let mut step: Vec<Precise> = (0..k).map(|a| Precise::from(1.0) - margin(&u, a)).collect();
        eliminate(&mut matrix, &mut step)?;
        weights.iter_mut().zip(&step).for_each(|(w, step)| *w += *step);
        let size = |x: &[Precise]| x.iter().map(|x| x.value().abs()).fold(0.0, f64::max);
        if size(&step) < 1e-28 * size(&weights) {
            break;
        }
    }
    let u = image(&combined(&weights));
    u.iter().chain(&weights).all(|x| x.is_finite()).then_some((u, weights))
}
