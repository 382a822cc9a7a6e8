//! The least Euclidean stationarity residual over multipliers and subgradients.
//!
//! ```text
//! ε* = min ‖z − k‖₂   over  z ∈ Z = { Σ λ_k h̃_k + Σ e c̃ : λ ≥ 0, 0 ≤ e ≤ λ },  k ∈ K = ∂½φ²(θ̃)
//! ```
//!
//! In ℓ2 (and wherever φ = s‖·‖₂) K is the one point s²θ̃, and ε* is the problem min D of the `multipliers` file, a
//! margin problem that is solved exactly: D = ‖z − s²θ̃‖²/(2s²). For every other norm the distance between the two
//! convex sets is minimised over the multipliers by accelerated projected gradients: with P_K the projection of
//! [`Norm::project_subdifferential`](crate::norms::Norm::project_subdifferential),
//!
//! ```text
//! F(λ, e) = ½ dist(z, K)²,   ∇F = Zᵀ(z − P_K(z)),   Lipschitz with ‖Z‖²
//! ```
//!
//! (Beck and Teboulle 2009, with a backtracking constant and a restart whenever the value rises; F falls like 1/t² at
//! least.) It starts from given multipliers, never returns worse ones, and stops when a step changes F by less than
//! 1e-13 of ‖θ̃‖², 50 times in a row, or after 4000 steps. The result is a witness, an upper bound of ε*: that is what
//! an (ε, δ)-KKT point asks for.

use super::multipliers::{KktCertificate, Scaled};
use super::tangent::is_euclidean;
use super::{CertificateError, TangentProblem};
use crate::linalg::{add_scaled, dot};
use crate::reference::{Multipliers, sparse_dot};

const STEPS: usize = 4000;
const PATIENCE: usize = 50;

/// The multipliers with the least residual, from `start` or from those that minimise D.
pub fn least_residual(
    tangent: &TangentProblem,
    start: Option<&KktCertificate>,
    tolerance: f64,
) -> Result<KktCertificate, CertificateError> {
    let scaled = Scaled::new(tangent);
    let (own, _) = scaled.minimise(0.0)?;
    let own = scaled.measure(own, tolerance)?;
    let euclidean = is_euclidean(&tangent.geometry.norm);
    let first = match start {
        Some(start) if start.residual < own.residual => start.clone(),
        _ => own,
    };
    if euclidean || tangent.problem.semidefinite || first.residual == 0.0 {
        return Ok(first);
    }
    descend(&scaled, first, tolerance)
}

/// Accelerated projected gradients from `first`.
fn descend(scaled: &Scaled, first: KktCertificate, tolerance: f64) -> Result<KktCertificate, CertificateError> {
    let problem = &scaled.tangent.problem;
    let groups = kinks_by_row(scaled);
    // ∇F and F at multipliers x
    let evaluate = |x: &Multipliers| -> Result<(f64, Multipliers), CertificateError> {
        let mut z = scaled.combine(x);
        let nearest = scaled.nearest_subgradient(&z, tolerance)?;
        add_scaled(&mut z, -1.0, &nearest);
        let value = 0.5 * dot(&z, &z);
        z.iter_mut().for_each(|x| *x *= scaled.factor);
        let gradient = Multipliers {
            rows: (0..problem.rows.rows).map(|i| dot(problem.rows.row(i), &z)).collect(),
            kinks: problem.kinks.iter().map(|kink| sparse_dot(&kink.change, &z)).collect(),
            cone: problem.cone.iter().map(|row| sparse_dot(row, &z)).collect(),
        };
        Ok((value, gradient))
    };
    let enough = 1e-13 * scaled.objective();
    let (mut at, mut ahead, mut momentum) = (first.multipliers.clone(), first.multipliers.clone(), 1.0f64);
    let (mut value, mut curvature, mut quiet) = (evaluate(&at)?.0, 0.0, 0);
    for _ in 0..STEPS {
        let (here, gradient) = evaluate(&ahead)?;
        if curvature == 0.0 {
            curvature = starting_curvature(scaled, &gradient);
        }
        let next = loop {
            let mut moved = combination(&ahead, -1.0 / curvature, &gradient);
            project(&mut moved, &groups);
            let step = combination(&moved, -1.0, &ahead);
            let bound = here + product(&gradient, &step) + 0.5 * curvature * product(&step, &step);
            let reached = evaluate(&moved)?.0;
            if reached <= bound + 1e-15 * here || curvature > 1e200 {
                break (moved, reached);
            }
            curvature *= 2.0;
        };
        quiet = if (value - next.1).abs() < enough { quiet + 1 } else { 0 };
        if next.1 > value {
            (ahead, momentum) = (at.clone(), 1.0);
        } else {
            let grown = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
            let step = combination(&next.0, -1.0, &at);
            ahead = combination(&next.0, (momentum - 1.0) / grown, &step);
            (at, value, momentum) = (next.0, next.1, grown);
        }
        curvature *= 0.98;
        if quiet >= PATIENCE || value == 0.0 {
            break;
        }
    }
    let last = scaled.measure(problem.clean(&at), tolerance)?;
    Ok(if last.residual < first.residual { last } else { first })
}

/// A first guess of ‖Z‖² along the gradient.
fn starting_curvature(scaled: &Scaled, gradient: &Multipliers) -> f64 {
    let z = scaled.combine(gradient);
    let length = product(gradient, gradient);
    if length > 0.0 { (dot(&z, &z) / length).max(f64::MIN_POSITIVE) } else { 1.0 }
}

fn product(a: &Multipliers, b: &Multipliers) -> f64 {
    dot(&a.rows, &b.rows) + dot(&a.kinks, &b.kinks) + dot(&a.cone, &b.cone)
}

/// a + factor · b.
fn combination(a: &Multipliers, factor: f64, b: &Multipliers) -> Multipliers {
    let add = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + factor * b).collect();
    Multipliers { rows: add(&a.rows, &b.rows), kinks: add(&a.kinks, &b.kinks), cone: add(&a.cone, &b.cone) }
}

/// The kinks of every row.
fn kinks_by_row(scaled: &Scaled) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); scaled.tangent.problem.rows.rows];
    scaled.tangent.problem.kinks.iter().enumerate().for_each(|(k, kink)| groups[kink.row].push(k));
    groups
}

/// Projects onto λ ≥ 0, 0 ≤ e ≤ λ, s ≥ 0.
fn project(x: &mut Multipliers, groups: &[Vec<usize>]) {
    x.cone.iter_mut().for_each(|s| *s = s.max(0.0));
    for (row, kinks) in groups.iter().enumerate() {
        let mut above: Vec<f64> = kinks.iter().map(|&k| x.kinks[k]).collect();
        x.rows[row] = project_group(x.rows[row], &mut above);
        for &k in kinks {
            x.kinks[k] = x.kinks[k].clamp(0.0, x.rows[row]);
        }
    }
}

/// The λ of the projection of (λ, e₁, …) onto 0 ≤ e ≤ λ: the root of λ' = λ + Σ max(0, e_k − λ'), at least 0.
fn project_group(lambda: f64, e: &mut [f64]) -> f64 {
    e.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut count) = (lambda, 1.0);
    for &next in e.iter() {
        if next <= sum / count {
            break;
        }
        sum += next;
        count += 1.0;
    }
    (sum / count).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projection_of_a_group_is_the_nearest_point() {
        // by search over a fine grid of λ
        for (lambda, e) in [
            (1.0, vec![2.0, 0.5]),
            (-1.0, vec![3.0, 2.0]),
            (-5.0, vec![1.0]),
            (0.3, vec![]),
            (0.5, vec![0.7, 0.6, -1.0]),
        ] {
            let distance =
                |l: f64| (l - lambda).powi(2) + e.iter().map(|x: &f64| (x - x.clamp(0.0, l)).powi(2)).sum::<f64>();
            let best =
                (0..=40_000).map(|i| f64::from(i) * 1e-4).min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap();
            assert!((project_group(lambda, &mut e.clone()) - best).abs() <= 1e-4, "{lambda} {e:?} {best}");
        }
    }
}
