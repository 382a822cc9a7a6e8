//! What measures weights in a margin problem: a norm, or the horizon of a mirror potential.
//!
//! Mirror flow tends to KKT points of min ½φ² subject to q ≥ 1 with φ the horizon of its potential (C Theorem 4.7), and
//! a horizon is a gauge: a norm times a factor, on all weights or on a cone.
//!
//! | potential | φ | where |
//! |---|---|---|
//! | euclidean, quadratic | √(θᵀDθ) | everywhere |
//! | hyperbolic | ℓ1 | everywhere |
//! | entropy | ℓ1 | θ ≥ 0 |
//! | smoothed, p > 2 | (p−1)^{1/p} ℓp | everywhere |
//! | smoothed, p = 2 | √(1+λ) ℓ2 | everywhere |
//! | power-smoothed | (p−1)^{1/p} ℓp | everywhere |
//! | squared-lp | ℓp | everywhere |
//! | spectral-entropy | nuclear | positive semidefinite |
//! | layers | (Σ_b φ_b^α)^{1/α} if all blocks have the degree α | as the blocks |

use std::ops::Range;

use super::CertificateError;
use crate::norms::{BlockNorm, NormSpec};
use crate::params::{Block, ParamLayout, assign};
use crate::potentials::{BlockPotential, PotentialSpec, QuadraticWeights};

/// φ(θ) = scale · ‖θ‖ on a cone of weights.
///
/// ```
/// use limitpoint::certificates::Geometry;
/// use limitpoint::norms::NormSpec;
/// use limitpoint::params::ParamLayout;
/// use limitpoint::potentials::PotentialSpec;
/// let cubic = Geometry::of_potential(&PotentialSpec::Smoothed { p: 3.0, lambda: 1.0 }, &ParamLayout::vector(4))?;
/// assert_eq!(cubic.norm, NormSpec::Lp { p: 3.0 });
/// assert!((cubic.scale - 2f64.powf(1.0 / 3.0)).abs() < 1e-15);
/// # Ok::<(), limitpoint::certificates::CertificateError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Geometry {
    /// The norm.
    pub norm: NormSpec,
    /// Its factor; 1 for a plain norm. τ does not depend on it.
    pub scale: f64,
    /// Entries that may not be negative.
    pub non_negative: Vec<Range<usize>>,
    /// Whether the weights, one square block, must be symmetric positive semidefinite.
    pub semidefinite: bool,
    /// Key of the potential it came from.
    pub potential: Option<&'static str>,
}

impl From<NormSpec> for Geometry {
    fn from(norm: NormSpec) -> Self {
        Self { norm, scale: 1.0, non_negative: Vec::new(), semidefinite: false, potential: None }
    }
}

impl Geometry {
    /// The horizon of a potential, or why it is no norm.
    pub fn of_potential(potential: &PotentialSpec, layout: &ParamLayout) -> Result<Self, CertificateError> {
        potential.build(layout)?;
        let horizon = match potential {
            PotentialSpec::Layers { blocks } => layered(blocks, layout)?,
            PotentialSpec::SpectralEntropy if layout.trainable().count() > 1 => {
                return Err(refuse(potential, "several blocks would each have to stay semidefinite".into()));
            }
            PotentialSpec::Quadratic(weights) => quadratic(weights),
            _ => {
                let piece = piece(potential, layout.trainable().map(Block::len).sum())?;
                let non_negative = if piece.positive { layout.trainable_ranges() } else { Vec::new() };
                let semidefinite = matches!(potential, PotentialSpec::SpectralEntropy);
                Self { non_negative, semidefinite, ..Self::scaled(piece.norm, piece.scale) }
            }
        };
        Ok(Self { potential: Some(potential.key()), ..horizon })
    }

    fn scaled(norm: NormSpec, scale: f64) -> Self {
        Self { scale, ..Self::from(norm) }
    }

    /// Refuses weights outside the cone.
    pub(super) fn check(&self, params: &[f64]) -> Result<(), CertificateError> {
        let indices = self.non_negative.iter().flat_map(Range::clone);
        match indices.map(|index| (index, params[index])).find(|(_, value)| *value < 0.0) {
            Some((index, value)) => {
                Err(CertificateError::OutsideDomain { potential: self.potential.unwrap_or("entropy"), index, value })
            }
            None => Ok(()),
        }
    }
}

fn refuse(potential: &PotentialSpec, why: String) -> CertificateError {
    CertificateError::NoHorizonNorm { potential: potential.key(), why }
}

fn quadratic(weights: &QuadraticWeights) -> Geometry {
    match weights {
        QuadraticWeights::Diagonal(diagonal) => match diagonal[..] {
            [weight] => Geometry::scaled(NormSpec::L2, weight.sqrt()),
            _ => NormSpec::Quadratic { diagonal: diagonal.clone() }.into(),
        },
        QuadraticWeights::Matrix(matrix) => NormSpec::QuadraticDense { matrix: matrix.clone() }.into(),
    }
}

/// The horizon of a potential on one block: its norm, factor and degree, and the weights Dᵢ where φ² = Σ Dᵢwᵢ².
struct Piece {
    norm: NormSpec,
    scale: f64,
    degree: f64,
    diagonal: Option<Vec<f64>>,
    positive: bool,
}

fn piece(potential: &PotentialSpec, entries: usize) -> Result<Piece, CertificateError> {
    let l1 = |positive| Piece { norm: NormSpec::L1, scale: 1.0, degree: 1.0, diagonal: None, positive };
    let l2 = |weight: f64| Piece {
        norm: NormSpec::L2,
        scale: weight.sqrt(),
        degree: 2.0,
        diagonal: Some(vec![weight; entries]),
        positive: false,
    };
    let lp = |p: f64, scale, degree| Piece { norm: NormSpec::Lp { p }, scale, degree, diagonal: None, positive: false };
    Ok(match potential {
        PotentialSpec::Euclidean => l2(1.0),
        PotentialSpec::Entropy => l1(true),
        PotentialSpec::Hyperbolic { .. } => l1(false),
        PotentialSpec::Smoothed { p: 2.0, lambda } => l2(1.0 + lambda),
        PotentialSpec::PowerSmoothed { p: 2.0, .. } | PotentialSpec::SquaredLp { p: 2.0 } => l2(1.0),
        PotentialSpec::Smoothed { p, .. } | PotentialSpec::PowerSmoothed { p, .. } => {
            lp(*p, (p - 1.0).powf(1.0 / p), *p)
        }
        PotentialSpec::SquaredLp { p } => lp(*p, 1.0, 2.0),
        PotentialSpec::SpectralEntropy => Piece { norm: NormSpec::Nuclear, ..l1(false) },
        PotentialSpec::Quadratic(QuadraticWeights::Diagonal(diagonal)) => {
            let diagonal = if diagonal.len() == 1 { vec![diagonal[0]; entries] } else { diagonal.clone() };
            Piece { norm: NormSpec::Quadratic { diagonal: diagonal.clone() }, diagonal: Some(diagonal), ..l2(1.0) }
        }
        PotentialSpec::Quadratic(QuadraticWeights::Matrix(_)) => {
            return Err(refuse(potential, "a dense matrix on one block only".into()));
        }
        PotentialSpec::Layers { .. } => return Err(refuse(potential, "layers inside layers".into())),
    })
}

/// (Σ_b φ_b^α)^{1/α}, where that is a norm of the library.
fn layered(blocks: &[BlockPotential], layout: &ParamLayout) -> Result<Geometry, CertificateError> {
    let refuse = |why: String| CertificateError::NoHorizonNorm { potential: "layers", why };
    let mut pieces: Vec<(&Block, Piece)> = Vec::new();
    for (block, BlockPotential { potential, .. }) in assign(layout, blocks, |entry| &entry.block)? {
        if matches!(potential, PotentialSpec::SpectralEntropy) {
            return Err(refuse(format!("block '{}' alone must stay semidefinite", block.name)));
        }
        pieces.push((block, piece(potential, block.len())?));
    }
    let (first, others) = pieces.split_first().ok_or_else(|| refuse("nothing is trainable".into()))?;
    if let Some((block, other)) = others.iter().find(|(_, other)| other.degree != first.1.degree) {
        return Err(refuse(format!(
            "block '{}' has degree {} and block '{}' degree {}, so that one outgrows the other (C Definition I.4)",
            first.0.name, first.1.degree, block.name, other.degree
        )));
    }
    let same = |a: &Piece, b: &Piece| a.norm == b.norm && a.scale == b.scale;
    if others.iter().all(|(_, other)| same(&first.1, other)) && first.1.degree != 1.0 && entrywise(&first.1) {
        return Ok(Geometry::scaled(first.1.norm.clone(), first.1.scale));
    }
    let non_negative = pieces.iter().filter(|(_, piece)| piece.positive).map(|(block, _)| block.range()).collect();
    if first.1.degree == 1.0 {
        let blocks = pieces.iter().map(|(block, piece)| BlockNorm::new(&block.name, piece.norm.clone())).collect();
        let all_l1 = pieces.iter().all(|(_, piece)| piece.norm == NormSpec::L1);
        let norm = if all_l1 { NormSpec::L1 } else { NormSpec::Sum { blocks } };
        return Ok(Geometry { non_negative, ..norm.into() });
    }
    match pieces.iter().map(|(_, piece)| piece.diagonal.clone()).collect::<Option<Vec<_>>>() {
        Some(diagonals) => Ok(NormSpec::Quadratic { diagonal: diagonals.concat() }.into()),
        None => Err(refuse("an ℓ2 sum of ℓp norms over blocks is not in the library".into())),
    }
}

/// Whether (Σ_b φ_b^α)^{1/α} is the same norm on all entries together: ℓp with α = p.
fn entrywise(piece: &Piece) -> bool {
    piece.norm.exponent() == Some(piece.degree)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> ParamLayout {
        ParamLayout::new([("w", 2, 2), ("a", 1, 3)]).unwrap()
    }

    #[test]
    fn every_horizon_that_is_a_norm_has_the_value_of_the_potential() {
        let theta = [0.3, 1.7, 0.2, 2.5, 0.9, 4.0, 0.01];
        let mut known = 0;
        for spec in PotentialSpec::examples() {
            let one = ParamLayout::new([("w", 2, 2)]).unwrap();
            let layout = if spec == PotentialSpec::SpectralEntropy { one } else { layout() };
            let theta = if layout.len() == 4 { &[2.0, 0.5, 0.5, 1.0][..] } else { &theta[..] };
            match Geometry::of_potential(&spec, &layout) {
                Ok(geometry) => {
                    let value = geometry.scale * geometry.norm.build(&layout).unwrap().value(theta);
                    let horizon = spec.build(&layout).unwrap().horizon(theta);
                    assert!((value - horizon).abs() <= 1e-12 * horizon, "{spec:?}: {value} {horizon}");
                    known += 1;
                }
                Err(error) => assert!(error.to_string().contains("degree 1 and block 'a' degree 3"), "{error}"),
            }
        }
        assert_eq!(known, PotentialSpec::examples().len() - 1); // all but hyperbolic next to p = 3
    }

    #[test]
    fn layers_of_one_degree_combine() {
        let layers = |w: PotentialSpec, a: PotentialSpec| PotentialSpec::Layers {
            blocks: vec![
                BlockPotential { block: "w".into(), potential: w },
                BlockPotential { block: "*".into(), potential: a },
            ],
        };
        let smooth = |p, lambda| PotentialSpec::Smoothed { p, lambda };
        let theta = [0.3, 1.7, 0.2, 2.5, 0.9, 4.0, 0.01];
        for spec in [
            layers(PotentialSpec::Entropy, PotentialSpec::Hyperbolic { lambda: 0.1 }),
            layers(smooth(2.0, 0.5), smooth(2.0, 3.0)),
            layers(PotentialSpec::Euclidean, PotentialSpec::Quadratic(QuadraticWeights::Diagonal(vec![2.0]))),
            layers(smooth(3.0, 0.5), smooth(3.0, 2.0)),
        ] {
            let geometry = Geometry::of_potential(&spec, &layout()).unwrap();
            let value = geometry.scale * geometry.norm.build(&layout()).unwrap().value(&theta);
            let horizon = spec.build(&layout()).unwrap().horizon(&theta);
            assert!((value - horizon).abs() <= 1e-12 * horizon, "{spec:?}: {value} {horizon}");
        }
        let entropy = layers(PotentialSpec::Entropy, PotentialSpec::Hyperbolic { lambda: 0.1 });
        let geometry = Geometry::of_potential(&entropy, &layout()).unwrap();
        assert_eq!(geometry.non_negative, vec![0..4]);
        assert!(geometry.check(&[1.0, 1.0, 1.0, 0.0, -1.0, -1.0, -1.0]).is_ok());
        let error = geometry.check(&[1.0, -2.0, 1.0, 0.0, -1.0, -1.0, -1.0]).unwrap_err();
        assert!(error.to_string().starts_with("weight 1 is -2"), "{error}");
        let mixed = layers(PotentialSpec::SquaredLp { p: 1.5 }, PotentialSpec::SquaredLp { p: 1.5 });
        assert!(Geometry::of_potential(&mixed, &layout()).unwrap_err().to_string().contains("ℓ2 sum of ℓp"));
    }
}
