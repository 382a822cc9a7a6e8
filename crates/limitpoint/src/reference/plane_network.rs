//! The largest margin of a two-layer ReLU network in the plane, whatever its directions.
//!
//! A network f(x) = Σ_j a_j max(⟨w_j, x⟩, 0) is Σ_j ã_j max(⟨w̃_j, x⟩, 0) with ‖w̃_j‖_p = 1 and ã_j = a_j‖w_j‖_p. Its
//! norm is smallest for given ã where |a_j| = ‖w_j‖_p, and then (C Theorem 4.9)
//!
//! ```text
//! ‖θ‖_p^p = Σ_j |a_j|^p + ‖w_j‖_p^p ≥ 2 Σ_j |ã_j|^{p/2}
//! ```
//!
//! Let S = min { Σ|c| : y_i Σ_k c_k max(⟨w̃_k, x_i⟩, 0) ≥ 1 }, a linear programme over all unit directions. Of M
//! neurons, Σ|ã|^{p/2} ≥ M^{1−p/2} (Σ|ã|)^{p/2} for p ≥ 2 (power means; attained by copies of equal size, as neurons
//! that share a direction can be), and Σ|ã|^{p/2} ≥ (Σ|ã|)^{p/2} for p ≤ 2. Hence no network of width M has a larger
//! margin than
//!
//! ```text
//! q_min/‖θ‖_p² ≤ 2^{−2/p} max(1, M^{1−2/p}) / S                                     (Ct.lp for p = 2; own derivation else)
//! ```
//!
//! For p = 2 the bound is attained by every network wide enough; for p > 2 up to rounding in the number of copies, and
//! it grows with the width; for p < 2 it is attained only if one neuron is enough. S is found by column generation: the
//! programme over some directions gives dual weights r, and the direction most at odds with them is found exactly,
//! since Σ r_i y_i max(⟨w, x_i⟩, 0) = ⟨w, g⟩ with one g for every cell between two kinks.

use super::{Bracket, MarginProblem, ReferenceError, solve_margin};
use crate::linalg::{Matrix, dot};
use crate::norms::{Norm, NormSpec};
use crate::params::ParamLayout;

/// Directions the first programme has, and those added at most in a round.
const FIRST: usize = 64;
const ADDED: usize = 24;
/// Rounds of column generation.
const ROUNDS: usize = 60;
/// The relative gap at which the search ends.
const CLOSE: f64 = 1e-7;

/// 1/S and the network that attains it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaneNetwork {
    /// p.
    pub p: f64,
    /// Bounds of 1/S: what the neurons below achieve, and what the dual weights exclude.
    pub bracket: Bracket,
    /// Directions of unit ℓp norm with their weights c, Σ|c| = 1; those with c = 0 are left out.
    pub neurons: Vec<([f64; 2], f64)>,
}

impl PlaneNetwork {
    /// What no network of this width, its output multiplied by `factor`, exceeds: factor·2^{−2/p} max(1, M^{1−2/p})/S.
    pub fn margin_bound(&self, width: usize, factor: f64) -> f64 {
        let copies = (width as f64).powf(1.0 - 2.0 / self.p).max(1.0);
        factor * 2f64.powf(-2.0 / self.p) * copies * self.bracket.upper
    }
}

/// Solves the programme for examples in the plane with labels ±1.
///
/// ```
/// use limitpoint::linalg::Matrix;
/// use limitpoint::reference::plane_network;
/// // one point (3, 4): the best neuron looks at it, max(⟨w, x⟩, 0) = 5 = 1/S, and |a| = |w| halves it
/// let best = plane_network(&Matrix::from_rows(&[&[3.0, 4.0]]), &[1.0], 2.0)?;
/// assert!((best.bracket.lower - 5.0).abs() < 1e-5 && (best.margin_bound(1, 1.0) - 2.5).abs() < 1e-5);
/// // two opposite points of one label need two neurons, each half of Σ|c|
/// let best = plane_network(&Matrix::from_rows(&[&[1.0, 0.0], &[-1.0, 0.0]]), &[1.0, 1.0], 2.0)?;
/// assert!((best.bracket.upper - 0.5).abs() < 1e-6 && best.neurons.len() == 2);
/// # Ok::<(), limitpoint::reference::ReferenceError>(())
/// ```
pub fn plane_network(inputs: &Matrix, signs: &[f64], p: f64) -> Result<PlaneNetwork, ReferenceError> {
    if inputs.cols != 2 || inputs.rows != signs.len() {
        return Err(ReferenceError::Rows { rows: inputs.rows, columns: inputs.cols, expected: 2 });
    }
    let norm = NormSpec::Lp { p };
    let mut plane = Plane { inputs, signs, norm: norm.build_vector(2)?, kinks: kinks(inputs) };
    let stride = plane.kinks.len().div_ceil(FIRST);
    let angles: Vec<f64> = plane.kinks.iter().step_by(stride.max(1)).copied().collect();
    let mut directions: Vec<[f64; 2]> = angles.iter().map(|angle| plane.unit([angle.cos(), angle.sin()])).collect();
    directions
        .extend((0..inputs.rows).step_by(stride.max(1)).map(|i| plane.unit([inputs.row(i)[0], inputs.row(i)[1]])));
    let mut best = PlaneNetwork { p, bracket: Bracket { lower: 0.0, upper: f64::INFINITY }, neurons: Vec::new() };
    for _ in 0..ROUNDS {
        let solution = solve_margin(&plane.programme(&directions)?)?;
        let total: f64 = solution.multipliers.rows.iter().sum();
        let weights: Vec<f64> = solution.multipliers.rows.iter().map(|r| r / total).collect();
        let mut tempting = plane.tempting(&weights);
        tempting.sort_by(|a, b| b.1.total_cmp(&a.1));
        best.bracket.upper = best.bracket.upper.min(tempting.first().map_or(0.0, |(_, value)| *value));
        let neurons = plane.neurons(&directions, &solution.direction);
        let achieved = plane.margin(&neurons);
        if achieved > best.bracket.lower {
            (best.bracket.lower, best.neurons) = (achieved, neurons);
        }
        if best.bracket.upper - best.bracket.lower <= CLOSE * best.bracket.upper {
            break;
        }
        let before = directions.len();
        for (direction, value) in tempting {
            let new = value > solution.bracket.lower && !directions.contains(&direction);
            if new && directions.len() < before + ADDED {
                directions.push(direction);
            }
        }
        if directions.len() == before {
            break;
        }
    }
    Ok(best)
}

/// The examples, and the angles at which a neuron's direction turns from one of them.
struct Plane<'a> {
    inputs: &'a Matrix,
    signs: &'a [f64],
    norm: Box<dyn Norm>,
    kinks: Vec<f64>,
}

/// All angles orthogonal to an example, in [0, 2π), increasing.
fn kinks(inputs: &Matrix) -> Vec<f64> {
    use std::f64::consts::{FRAC_PI_2, TAU};
    let angles = (0..inputs.rows).map(|i| inputs.row(i)[1].atan2(inputs.row(i)[0]));
    let mut all: Vec<f64> =
        angles.flat_map(|angle| [angle + FRAC_PI_2, angle - FRAC_PI_2]).map(|angle| angle.rem_euclid(TAU)).collect();
    all.sort_by(f64::total_cmp);
    all.dedup_by(|a, b| *a - *b < 1e-14);
    all
}

impl Plane<'_> {
    fn unit(&mut self, w: [f64; 2]) -> [f64; 2] {
        let size = self.norm.value(&w);
        w.map(|x| x / size)
    }

    /// The margin problem over these directions: max min_i y_i Σ c_k max(⟨w_k, x_i⟩, 0) with Σ|c| ≤ 1.
    fn programme(&self, directions: &[[f64; 2]]) -> Result<MarginProblem, ReferenceError> {
        let mut rows = Matrix::zeros(self.inputs.rows, directions.len());
        for i in 0..rows.rows {
            for (k, w) in directions.iter().enumerate() {
                rows.data[i * directions.len() + k] = self.signs[i] * dot(w, self.inputs.row(i)).max(0.0);
            }
        }
        MarginProblem::new(rows, NormSpec::L1, ParamLayout::vector(directions.len()))
    }

    /// The directions that carry more than rounding, Σ|c| = 1.
    fn neurons(&self, directions: &[[f64; 2]], weights: &[f64]) -> Vec<([f64; 2], f64)> {
        let total: f64 = weights.iter().map(|c| c.abs()).sum();
        let used: Vec<_> = directions.iter().zip(weights).filter(|(_, c)| c.abs() > 1e-9 * total).collect();
        let size: f64 = used.iter().map(|(_, c)| c.abs()).sum();
        used.into_iter().map(|(w, c)| (*w, c / size)).collect()
    }

    /// min_i y_i Σ c max(⟨w, x_i⟩, 0).
    fn margin(&self, neurons: &[([f64; 2], f64)]) -> f64 {
        let score = |x: &[f64]| neurons.iter().map(|(w, c)| c * dot(w, x).max(0.0)).sum::<f64>();
        let margins = self.signs.iter().enumerate().map(|(i, sign)| sign * score(self.inputs.row(i)));
        margins.fold(f64::INFINITY, f64::min)
    }

    /// The largest |Σ r_i y_i max(⟨w, x_i⟩, 0)| over unit w in every cell, with its direction.
    fn tempting(&mut self, weights: &[f64]) -> Vec<([f64; 2], f64)> {
        let tau = std::f64::consts::TAU;
        let mut found = Vec::new();
        for k in 0..self.kinks.len() {
            let from = self.kinks[k];
            let to = self.kinks.get(k + 1).copied().unwrap_or(self.kinks[0] + tau);
            let middle = [(0.5 * (from + to)).cos(), (0.5 * (from + to)).sin()];
            let mut g = [0.0; 2];
            for (i, (weight, sign)) in weights.iter().zip(self.signs).enumerate() {
                let x = self.inputs.row(i);
                if dot(&middle, x) > 0.0 {
                    let weight = weight * sign;
                    g = [g[0] + weight * x[0], g[1] + weight * x[1]];
                }
            }
            // the end of the cell, and where ±⟨w, g⟩ is largest if that is inside
            let mut candidates = vec![self.unit([from.cos(), from.sin()])];
            for sign in [1.0, -1.0] {
                let mut down = [0.0; 2];
                self.norm.unit_minimiser(&[-sign * g[0], -sign * g[1]], &mut down);
                let angle = (down[1].atan2(down[0]) - from).rem_euclid(tau);
                if angle < to - from && down != [0.0; 2] {
                    candidates.push(down);
                }
            }
            let best = candidates.into_iter().map(|w| (w, dot(&w, &g).abs())).max_by(|a, b| a.1.total_cmp(&b.1));
            found.extend(best);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::CircleTeacher;
    use crate::numeric::Streams;

    #[test]
    fn the_bracket_closes_and_no_direction_is_better() {
        let data = CircleTeacher { count: 60, ..Default::default() }.generate(&Streams::new(3)).unwrap().train;
        let (inputs, signs) = (data.dense().unwrap().into_owned(), data.signs().unwrap().to_vec());
        for p in [1.5, 2.0, 3.0] {
            let best = plane_network(&inputs, &signs, p).unwrap();
            assert!(best.bracket.lower > 0.0 && best.bracket.relative_gap() < 1e-6, "{p}: {best:?}");
            // the neurons say what they claim
            let score = |x: &[f64]| best.neurons.iter().map(|(w, c)| c * dot(w, x).max(0.0)).sum::<f64>();
            let margin = (0..60).map(|i| signs[i] * score(inputs.row(i))).fold(f64::INFINITY, f64::min);
            let size: f64 = best.neurons.iter().map(|(_, c)| c.abs()).sum();
            assert!((size - 1.0).abs() < 1e-9 && margin >= best.bracket.lower * (1.0 - 1e-5), "{margin} {best:?}");
            // a programme over many directions chosen without regard to the data stays below the upper bound
            let mut norm = NormSpec::Lp { p }.build_vector(2).unwrap();
            let fine: Vec<[f64; 2]> = (0..600)
                .map(|k| (f64::from(k) * std::f64::consts::TAU / 600.0).sin_cos())
                .map(|(y, x)| [x, y].map(|c| c / norm.value(&[x, y])))
                .collect();
            let plane = Plane {
                inputs: &inputs,
                signs: &signs,
                norm: NormSpec::Lp { p }.build_vector(2).unwrap(),
                kinks: Vec::new(),
            };
            let grid = solve_margin(&plane.programme(&fine).unwrap()).unwrap().bracket.lower;
            assert!(grid <= best.bracket.upper && grid >= 0.9 * best.bracket.lower, "{p}: {grid} {best:?}");
            assert!(best.neurons.iter().all(|(w, _)| (norm.value(w) - 1.0).abs() < 1e-9));
        }
    }

    #[test]
    fn the_bound_is_that_of_the_margin_per_norm_squared() {
        // one point at (1, 0): a = w₁ = s, ‖θ‖₃³ = 2s³, q = s²: q/‖θ‖₃² = 2^{−2/3}; M copies of size s: M s²/(2M
        // s³)^{2/3}
        let best = plane_network(&Matrix::from_rows(&[&[1.0, 0.0]]), &[1.0], 3.0).unwrap();
        for copies in [1usize, 8] {
            let m = copies as f64;
            let exact = m / (2.0 * m).powf(2.0 / 3.0);
            assert!((best.margin_bound(copies, 1.0) - exact).abs() < 1e-6, "{copies}");
        }
        let wrong = plane_network(&Matrix::zeros(3, 3), &[1.0; 3], 2.0);
        assert!(wrong.is_err());
    }
}
