//! Quadratic potentials: gradient descent in a fixed linear geometry.

use super::blocks::Trainable;
use super::separable::check_length;
use super::{Conjugate, Entries, Horizon, HorizonBounds, MirrorMap, PotentialError, QuadraticWeights};
use crate::linalg::{Eigen, dot};
use crate::numeric::{CompensatedSum, compensated_sum};
use crate::params::ParamLayout;

/// R(θ) = θᵀDθ/2 with D positive: a diagonal, or a dense symmetric matrix over the trainable entries in order.
///
/// ```text
/// ∇R = Dθ,   ∇R* = D⁻¹z,   H = D,   Q(∇R(θ)) = θᵀDθ/2,   α = 2,   φ = gauge = √(θᵀDθ),   slack 0
/// ```
///
/// D⁻¹ is applied through the eigendecomposition made at build time. A dense D couples the entries: entries have no
/// conjugate of their own, and with several trainable blocks R is not a sum over blocks (the negative control of the
/// balance law, C.lem3.1). Paper B, theorem 1 (B.thm1, B.quadmom).
///
/// ```
/// use limitpoint::{params::ParamLayout, potentials::{PotentialSpec, QuadraticWeights}};
/// let spec = PotentialSpec::Quadratic(QuadraticWeights::Matrix(vec![vec![2.0, 1.0], vec![1.0, 2.0]]));
/// let mut potential = spec.build(&ParamLayout::vector(2))?;
/// let mut dual = [0.0; 2];
/// potential.mirror_map(&[1.0, 0.0], &mut dual);
/// assert_eq!(dual, [2.0, 1.0]);
/// assert_eq!(potential.conjugate_at(&[1.0, 1.0]), 3.0);
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
pub struct Quadratic {
    place: Trainable,
    matrix: Symmetric,
    degrees: Vec<f64>,
    input: Vec<f64>,
    output: Vec<f64>,
}

enum Symmetric {
    Diagonal(Vec<f64>),
    Dense { entries: Vec<f64>, eigen: Eigen, scratch: Vec<f64> },
}

impl Symmetric {
    fn apply(&self, v: &[f64], out: &mut [f64]) {
        match self {
            Self::Diagonal(d) => out.iter_mut().zip(d.iter().zip(v)).for_each(|(o, (d, x))| *o = d * x),
            Self::Dense { entries, .. } => {
                out.iter_mut().zip(entries.chunks_exact(v.len())).for_each(|(o, row)| *o = dot(row, v));
            }
        }
    }

    fn solve(&mut self, v: &[f64], out: &mut [f64]) {
        match self {
            Self::Diagonal(d) => out.iter_mut().zip(d.iter().zip(v)).for_each(|(o, (d, x))| *o = x / *d),
            Self::Dense { eigen, scratch, .. } => {
                for (k, s) in scratch.iter_mut().enumerate() {
                    *s = dot(eigen.vector(k), v) / eigen.values()[k];
                }
                out.fill(0.0);
                for (k, s) in scratch.iter().enumerate() {
                    crate::linalg::add_scaled(out, *s, eigen.vector(k));
                }
            }
        }
    }
}

impl Quadratic {
    /// Checks that D is positive and has the size of the layout's trainable entries; a single weight serves all.
    pub fn new(weights: &QuadraticWeights, layout: &ParamLayout) -> Result<Self, PotentialError> {
        let place = Trainable::of(layout);
        let count = place.count;
        let matrix = match weights {
            QuadraticWeights::Diagonal(diagonal) => {
                if let Some(&value) = diagonal.iter().find(|d| !(**d > 0.0 && d.is_finite())) {
                    return Err(PotentialError::Setting {
                        potential: "quadratic",
                        parameter: "a diagonal weight",
                        value,
                        range: "positive and finite",
                        remedy: "freeze the blocks that should not move instead of giving them weight 0",
                    });
                }
                match diagonal.as_slice() {
                    [single] => Symmetric::Diagonal(vec![*single; count]),
                    full if full.len() == count => Symmetric::Diagonal(full.to_vec()),
                    other => return Err(PotentialError::QuadraticSize { found: other.len(), expected: count }),
                }
            }
            QuadraticWeights::Matrix(rows) => dense(rows, count)?,
        };
        let degrees = vec![2.0; place.blocks.len()];
        Ok(Self { matrix, degrees, input: vec![0.0; count], output: vec![0.0; count], place })
    }

    /// Half of ⟨θ, Dθ⟩; leaves θ in `input` and Dθ in `output`.
    fn half_form(&mut self, theta: &[f64]) -> f64 {
        self.place.gather(theta, &mut self.input);
        self.matrix.apply(&self.input, &mut self.output);
        0.5 * compensated_sum(self.input.iter().zip(&self.output).map(|(x, y)| x * y))
    }

    fn apply(&mut self, v: &[f64], out: &mut [f64]) {
        self.place.gather(v, &mut self.input);
        self.matrix.apply(&self.input, &mut self.output);
        self.place.scatter(&self.output, out);
    }

    fn solve(&mut self, v: &[f64], out: &mut [f64]) {
        self.place.gather(v, &mut self.input);
        self.matrix.solve(&self.input, &mut self.output);
        self.place.scatter(&self.output, out);
    }

    /// Positions in the contiguous trainable vector of each block.
    fn spans(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.place.blocks.iter().scan(0, |start, block| {
            let span = *start..*start + block.len();
            *start = span.end;
            Some(span)
        })
    }
}

/// Checks shape, symmetry and positive eigenvalues.
fn dense(rows: &[Vec<f64>], count: usize) -> Result<Symmetric, PotentialError> {
    let found = rows.iter().map(Vec::len).find(|length| *length != count).unwrap_or(rows.len());
    if found != count || rows.len() != count {
        let found = if found == count { rows.len() } else { found };
        return Err(PotentialError::QuadraticSize { found, expected: count });
    }
    for (row, values) in rows.iter().enumerate() {
        for (col, &value) in values.iter().enumerate().take(row) {
            let mirrored = rows[col][row];
            if value != mirrored {
                return Err(PotentialError::AsymmetricQuadratic { row, col, value, mirrored });
            }
        }
    }
    let entries = rows.concat();
    let mut eigen = Eigen::new(count);
    let refuse =
        |eigenvalue| Err(PotentialError::NotPositiveDefinite { potential: "quadratic", block: "D".into(), eigenvalue });
    if eigen.factor(&entries).is_err() {
        return refuse(f64::NAN);
    }
    match eigen.values().first() {
        Some(&smallest) if smallest <= 0.0 => refuse(smallest),
        _ => Ok(Symmetric::Dense { entries, eigen, scratch: vec![0.0; count] }),
    }
}

impl MirrorMap for Quadratic {
    fn value(&mut self, theta: &[f64]) -> f64 {
        self.half_form(theta)
    }

    fn mirror_map(&mut self, theta: &[f64], out: &mut [f64]) {
        self.apply(theta, out);
    }

    fn inverse_mirror_map(&mut self, dual: &[f64], out: &mut [f64]) {
        self.solve(dual, out);
    }

    fn hessian_action(&mut self, _theta: &[f64], v: &[f64], out: &mut [f64]) {
        self.apply(v, out);
    }

    fn inverse_hessian_action(&mut self, _theta: &[f64], v: &[f64], out: &mut [f64]) {
        self.solve(v, out);
    }

    fn check_domain(&self, theta: &[f64]) -> Result<(), PotentialError> {
        check_finite("quadratic", theta, &self.place)
    }

    fn bregman_divergence(&mut self, a: &[f64], b: &[f64]) -> f64 {
        let (mut left, right) = (std::mem::take(&mut self.input), self.place.entries(b));
        left.iter_mut().zip(self.place.entries(a).zip(right)).for_each(|(d, (x, y))| *d = x - y);
        self.matrix.apply(&left, &mut self.output);
        let divergence = 0.5 * dot(&left, &self.output);
        self.input = left;
        divergence
    }
}

impl Conjugate for Quadratic {
    fn conjugate_at(&mut self, theta: &[f64]) -> f64 {
        self.half_form(theta)
    }

    fn log_conjugate_at(&mut self, theta: &[f64]) -> f64 {
        2.0 * self.horizon(theta).ln() - std::f64::consts::LN_2
    }

    fn conjugate_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>) {
        self.half_form(theta);
        out.clear();
        out.extend(self.spans().map(|span| {
            0.5 * compensated_sum(self.input[span.clone()].iter().zip(&self.output[span]).map(|(x, y)| x * y))
        }));
    }

    fn conjugate_of_entries(&mut self, block: usize, theta: &[f64], entries: Entries) -> Option<f64> {
        let Symmetric::Diagonal(diagonal) = &self.matrix else { return None };
        let slice = &theta[self.place.blocks.get(block)?.range()];
        let weights = &diagonal[self.spans().nth(block)?];
        let mut sum = CompensatedSum::default();
        for index in entries.indices() {
            let t = *slice.get(index)?;
            sum.add(0.5 * weights[index] * t * t);
        }
        Some(sum.value())
    }

    fn is_block_separable(&self) -> bool {
        matches!(self.matrix, Symmetric::Diagonal(_)) || self.place.blocks.len() <= 1
    }
}

impl Horizon for Quadratic {
    fn degree(&self) -> f64 {
        2.0
    }

    fn degrees_by_block(&self) -> &[f64] {
        &self.degrees
    }

    /// √(θᵀDθ), computed for θ/max|θ| so that no square leaves the range.
    fn horizon(&mut self, theta: &[f64]) -> f64 {
        self.place.gather(theta, &mut self.input);
        let largest = crate::linalg::max_abs(&self.input);
        if largest == 0.0 || !largest.is_finite() {
            return largest;
        }
        self.input.iter_mut().for_each(|x| *x /= largest);
        self.matrix.apply(&self.input, &mut self.output);
        largest * dot(&self.input, &self.output).sqrt()
    }

    fn horizons_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>) {
        out.clear();
        for block in 0..self.place.blocks.len() {
            let (range, span) = (self.place.blocks[block].range(), self.spans().nth(block).unwrap_or(0..0));
            self.input.fill(0.0);
            self.input[span].copy_from_slice(&theta[range]);
            self.matrix.apply(&self.input, &mut self.output);
            out.push(dot(&self.input, &self.output).sqrt());
        }
    }

    fn curvature_slack(&mut self, _theta: &[f64]) -> f64 {
        0.0
    }

    fn horizon_bounds(&self) -> Option<HorizonBounds> {
        Some(HorizonBounds { factor: 1.0, offset: 0.0 })
    }
}

/// Refuses infinite and NaN weights, for potentials defined everywhere.
pub(super) fn check_finite(potential: &'static str, theta: &[f64], place: &Trainable) -> Result<(), PotentialError> {
    check_length(theta, place)?;
    match place.first_failing(theta, f64::is_finite) {
        None => Ok(()),
        Some((block, index, value)) => Err(PotentialError::OutsideDomain {
            potential,
            block: block.name.clone(),
            index,
            value,
            requirement: "finite weights",
            remedy: "look for the step that produced it",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(weights: QuadraticWeights) -> String {
        Quadratic::new(&weights, &ParamLayout::vector(2)).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn ill_formed_weights_are_refused() {
        assert!(refuse(QuadraticWeights::Diagonal(vec![1.0, 0.0])).contains("positive and finite, but is 0"));
        assert!(refuse(QuadraticWeights::Diagonal(vec![1.0; 3])).contains("of size 3 was given for 2"));
        assert!(refuse(QuadraticWeights::Matrix(vec![vec![1.0, 2.0]])).contains("size 1"));
        assert!(refuse(QuadraticWeights::Matrix(vec![vec![1.0, 0.0], vec![0.0]])).contains("size 1"));
        assert!(refuse(QuadraticWeights::Matrix(vec![vec![1.0, 0.5], vec![0.4, 1.0]])).contains("make it symmetric"));
        assert!(refuse(QuadraticWeights::Matrix(vec![vec![1.0, 2.0], vec![2.0, 1.0]])).contains("eigenvalue -1"));
        assert!(refuse(QuadraticWeights::Matrix(vec![vec![f64::INFINITY, 2.0], vec![2.0, 1.0]])).contains("NaN"));
        assert!(refuse(QuadraticWeights::Diagonal(vec![2.0])).is_empty());
    }
}
