//! Multipliers and slopes that belong to weights.
//!
//! They are not part of the weights, but follow from them: with every kink cut open, the signal that passes it is a force of its
//! own, and stationarity is linear in multipliers and forces,
//!
//! ```text
//! θ = Σ_k λ_k ∇q_k|_cut + Σ_kinks f ∇z|_cut,       s = f/u,   u the signal that arrives at the kink.
//! ```

use super::super::linear::solve_symmetric;
use super::system::{DenseSystem, Slope};
use crate::linalg::dot;

/// Multipliers and slopes by least squares.
pub(super) fn forces(system: &DenseSystem, theta: &[f64]) -> Vec<f64> {
    let model = system.model;
    let weight = |l: usize, at: usize| match system.weights[l][at] {
        Ok(u) => theta[u],
        Err(constant) => constant,
    };
    // what signals at the top of layer `top` do below, with every kink cut: forces on θ, and what arrives at kinks
    let pull = |i: usize, top: usize, signals: Vec<f64>| -> (Vec<f64>, Vec<(usize, f64)>) {
        let (h, derivatives) = forward(system, theta, i);
        let (mut force, mut arrived, mut delta) = (vec![0.0; theta.len()], Vec::new(), signals);
        for l in (0..=top).rev() {
            let from = system.sizes[l];
            for (unit, d) in delta.iter().enumerate().filter(|(_, d)| **d != 0.0) {
                for (k, h) in h[l].iter().enumerate() {
                    if let Ok(u) = system.weights[l][unit * from + k] {
                        force[u] += d * h;
                    }
                }
            }
            if l > 0 {
                let signal =
                    |k: usize| -> f64 { delta.iter().enumerate().map(|(j, d)| d * weight(l, j * from + k)).sum() };
                let signals: Vec<f64> = (0..from).map(signal).collect();
                for (k, signal) in signals.iter().enumerate() {
                    if let Some(at) = system.kinks.iter().position(|kink| *kink == (l - 1, i, k)) {
                        arrived.push((at, *signal));
                    }
                }
                delta = signals.iter().zip(&derivatives[l - 1]).map(|(u, d)| u * d).collect();
            }
        }
        (force, arrived)
    };
    let top = model.layers() - 1;
    let mut columns = Vec::new();
    for &k in &system.record.margins {
        let margin = &model.margins[k];
        let i = system.active.iter().position(|example| *example == margin.example).unwrap_or(0);
        let mut signals = vec![0.0; model.outputs];
        margin.scores.iter().for_each(|(o, c)| signals[*o] += c);
        columns.push(pull(i, top, signals));
    }
    for &(l, i, unit) in &system.kinks {
        let mut signals = vec![0.0; system.sizes[l + 1]];
        signals[unit] = 1.0;
        columns.push(pull(i, l, signals));
    }
    let size = columns.len();
    let gram: Vec<f64> = (0..size * size).map(|k| dot(&columns[k / size].0, &columns[k % size].0)).collect();
    let right: Vec<f64> = columns.iter().map(|(column, _)| dot(column, theta)).collect();
    let solution = solve_symmetric(&gram, &right);
    let mut arrived = vec![0.0; system.kinks.len()];
    for ((_, signals), strength) in columns.iter().zip(&solution) {
        signals.iter().for_each(|(at, signal)| arrived[*at] += strength * signal);
    }
    let margins = system.record.margins.len();
    let mut out = solution[..margins].to_vec();
    out.extend(solution[margins..].iter().zip(&arrived).map(|(force, signal)| force / signal));
    out
}

/// h of every layer and φ′ of every hidden unit on an active example; 0 at kinks.
fn forward(system: &DenseSystem, theta: &[f64], i: usize) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let model = system.model;
    let (mut h, mut derivatives) = (vec![model.inputs.row(system.active[i]).to_vec()], Vec::new());
    for l in 0..system.record.units.len() {
        let from = system.sizes[l];
        let mut own = vec![0.0; system.sizes[l + 1]];
        for (unit, sum) in own.iter_mut().enumerate() {
            let row: Vec<f64> = (0..from)
                .map(|k| match system.weights[l][unit * from + k] {
                    Ok(u) => theta[u],
                    Err(constant) => constant,
                })
                .collect();
            *sum = dot(&row, &h[l]);
        }
        let both = |(z, slope): (&f64, &Slope)| match (slope, model.power) {
            (Slope::On, 1) => (*z, 1.0),
            (Slope::On, power) => (z.powi(power as i32), f64::from(power) * z.powi(power as i32 - 1)),
            (Slope::Off, _) => (model.slope * z, model.slope),
            (Slope::Kink(_), _) => (0.0, 0.0),
        };
        let (next, slopes): (Vec<f64>, Vec<f64>) = own.iter().zip(&system.slopes[l][i]).map(both).unzip();
        h.push(next);
        derivatives.push(slopes);
    }
    (h, derivatives)
}
