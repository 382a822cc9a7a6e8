//! What a potential is like on each block: where it lives and whether it is flat at 0.

use std::ops::Range;

use super::equations::Equations;
use crate::linalg::{Eigen, Matrix, max_abs};
use crate::params::{Block, ParamLayout, assign};
use crate::potentials::PotentialSpec;
use crate::reference::ReferenceError;

/// The largest condition that a flat potential may give to H, see `newton`.
const CONDITION: f64 = 1e12;

/// How the potential of one block behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Defined everywhere, curved at 0.
    Whole,
    /// Defined everywhere, with r″ = 0 at 0 like |t|^p; the size below which H is not followed.
    Flat(f64),
    /// Defined for positive entries.
    Positive,
    /// Defined for symmetric positive definite matrices of this size.
    Definite(usize),
}

/// The trainable blocks with their kinds.
pub(super) struct Pieces {
    length: usize,
    parts: Vec<(Range<usize>, Kind)>,
}

impl Pieces {
    /// The kinds of a potential that fits the layout.
    pub fn of(spec: &PotentialSpec, layout: &ParamLayout) -> Result<Self, ReferenceError> {
        let own: Vec<(&Block, &PotentialSpec)> = match spec {
            PotentialSpec::Layers { blocks } => {
                let assigned = assign(layout, blocks, |entry| &entry.block)?;
                assigned.into_iter().map(|(block, entry)| (block, &entry.potential)).collect()
            }
            whole => layout.trainable().map(|block| (block, whole)).collect(),
        };
        let part = |(block, own): (&Block, &PotentialSpec)| {
            let kind = match own {
                PotentialSpec::Entropy => Kind::Positive,
                PotentialSpec::SpectralEntropy => Kind::Definite(block.rows),
                PotentialSpec::Smoothed { p, .. } if *p > 2.0 => Kind::Flat(CONDITION.powf(-1.0 / (p - 2.0))),
                _ => Kind::Whole,
            };
            (block.range(), kind)
        };
        Ok(Self { length: layout.len(), parts: own.into_iter().map(part).collect() })
    }

    /// The blocks that are flat at 0.
    pub fn direct(&self) -> impl Iterator<Item = Range<usize>> {
        self.parts.iter().filter(|(_, kind)| matches!(kind, Kind::Flat(_))).map(|(range, _)| range.clone())
    }

    /// Whether a block is flat at 0.
    pub fn has_direct(&self) -> bool {
        self.direct().next().is_some()
    }

    /// Whether all blocks are flat at 0.
    pub fn all_direct(&self) -> bool {
        self.direct().count() == self.parts.len()
    }

    /// Weights close to the given ones at which H and its inverse exist.
    ///
    /// In flat blocks every weight gets at least the size that keeps the condition of H below [`CONDITION`]; positive
    /// definite matrices, which lose eigenvalues below the rounding of the largest, get a multiple of the identity.
    pub fn inside(&self, weights: &[f64]) -> Vec<f64> {
        let mut place = weights.to_vec();
        for (range, kind) in &self.parts {
            let block = &mut place[range.clone()];
            let largest = max_abs(block);
            match kind {
                Kind::Flat(part) => {
                    let least = part * largest;
                    block.iter_mut().filter(|w| w.abs() < least).for_each(|w| *w = least.copysign(*w));
                }
                Kind::Definite(size) => {
                    let shift = 4.0 * *size as f64 * f64::EPSILON * largest;
                    block.iter_mut().step_by(size + 1).for_each(|w| *w += shift);
                }
                Kind::Whole | Kind::Positive => {}
            }
        }
        place
    }

    /// `wanted` where any weights are allowed, `safe` elsewhere.
    pub fn guess(&self, wanted: &[f64], safe: &[f64]) -> Vec<f64> {
        let mut guess = safe.to_vec();
        for (range, kind) in &self.parts {
            if matches!(kind, Kind::Whole | Kind::Flat(_)) {
                guess[range.clone()].copy_from_slice(&wanted[range.clone()]);
            }
        }
        guess
    }

    /// Whether a block is all 0.
    pub fn at_rest(&self, weights: &[f64]) -> bool {
        self.parts.iter().any(|(range, _)| weights[range.clone()].iter().all(|w| *w == 0.0))
    }

    /// Whether some weights are outside the domain.
    pub fn has_border(&self) -> bool {
        self.parts.iter().any(|(_, kind)| matches!(kind, Kind::Positive | Kind::Definite(_)))
    }

    /// The equations as the weights see them: rows are 0 on frozen entries, and symmetric where matrices are.
    ///
    /// Answers whether a row changed on a symmetric block.
    pub fn restrict(&self, matrix: &mut Matrix) -> bool {
        let mut changed = false;
        let mut moves = vec![false; self.length];
        self.parts.iter().for_each(|(range, _)| moves[range.clone()].fill(true));
        for i in 0..matrix.rows {
            let row = matrix.row_mut(i);
            row.iter_mut().zip(&moves).filter(|(_, moves)| !**moves).for_each(|(x, _)| *x = 0.0);
            for (range, kind) in &self.parts {
                if let Kind::Definite(size) = kind {
                    changed |= symmetrise(&mut row[range.clone()], *size);
                }
            }
        }
        changed
    }

    /// Why no weights of the domain solve the equations, if these multipliers prove that none of sensible size do.
    ///
    /// ```text
    /// ⟨ν, c⟩ = ⟨Bᵀν, w⟩ ≤ s · |w|,     |w| = Σ wᵢ + Σ tr W + Σ |w_free|
    /// s = the largest entry, eigenvalue or size of Bᵀν on the blocks of each kind
    /// ```
    ///
    /// so every solution has |w| ≥ ⟨ν, c⟩/s; where s ≤ 0 there is none (Farkas). The multipliers of a problem without a
    /// solution run away in such a direction.
    pub fn refusal(&self, equations: &Equations, nu: &[f64]) -> Option<String> {
        /// How many times larger than the shortest solution a solution must be to count as impossible.
        const FAR: f64 = 1e10;
        let scale = max_abs(nu);
        if !(self.has_border() && scale > 0.0 && scale.is_finite()) {
            return None;
        }
        let unit: Vec<f64> = nu.iter().map(|x| x / scale).collect();
        let gain = crate::linalg::dot(&unit, &equations.values);
        let slope = self.support(&equations.pull_back(&unit))?;
        let shortest = crate::linalg::sum_abs(&equations.shortest());
        if !(gain > 0.0 && gain >= slope * FAR * shortest) {
            return None;
        }
        let (border, entries) = if self.parts.iter().any(|(_, kind)| *kind == Kind::Positive) {
            ("positive", "entry")
        } else {
            ("positive definite", "eigenvalue")
        };
        let needed = if slope > 0.0 {
            format!("so that {border} weights would have to sum to {:.1e} or more", gain / slope)
        } else {
            format!("which {border} weights contradict")
        };
        Some(format!(
            "there are multipliers μ with ⟨μ, y⟩ = 1 for which the largest {entries} of Xᵀμ is {:.1e}, {needed}; use \
             a potential without a border, such as 'hyperbolic'",
            slope / gain
        ))
    }

    /// max ⟨v, w⟩ over the weights of the domain with |w| = 1; nothing if an eigenvalue cannot be found.
    fn support(&self, v: &[f64]) -> Option<f64> {
        let mut largest = f64::NEG_INFINITY;
        for (range, kind) in &self.parts {
            let part = &v[range.clone()];
            largest = largest.max(match kind {
                Kind::Whole | Kind::Flat(_) => max_abs(part),
                Kind::Positive => part.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                Kind::Definite(size) => {
                    let mut eigen = Eigen::new(*size);
                    eigen.factor(part).ok()?;
                    *eigen.values().last()?
                }
            });
        }
        Some(largest)
    }
}

/// Replaces a square matrix by its symmetric part; answers whether that is another matrix.
fn symmetrise(matrix: &mut [f64], size: usize) -> bool {
    let mut changed = false;
    for i in 0..size {
        for j in 0..i {
            let (a, b) = (matrix[i * size + j], matrix[j * size + i]);
            changed |= a != b;
            let mean = 0.5 * a + 0.5 * b;
            matrix[i * size + j] = mean;
            matrix[j * size + i] = mean;
        }
    }
    changed
}
