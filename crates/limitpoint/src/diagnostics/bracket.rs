//! A free two-sided bound on the best margin of a linear model.

use super::Point;
use crate::linalg::SparseMatrix;
use crate::norms::{Norm, NormError, NormSpec};

/// lower ≤ γ* ≤ upper, where γ* = max_{‖w‖≤1} min_k ⟨∇qₖ, w⟩.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MarginBracket {
    /// min qₖ/‖w‖: what this point achieves.
    pub lower: f64,
    /// ‖Σ rₖ ∇qₖ‖_* / Σ rₖ for the weights r of the loss: what no point can exceed.
    pub upper: f64,
}

/// The bracket of a linear model at a point (Ct.bracket, B Lemma 10).
///
/// For any r ≥ 0: min_k qₖ(w) Σr ≤ Σ rₖ qₖ(w) = ⟨Σ rₖ∇qₖ, w⟩ ≤ ‖Σ rₖ∇qₖ‖_* ‖w‖. With the weights of the loss the sum is
/// −∇ ln L, which is at hand.
pub fn margin_bracket(point: &Point, norm: &mut dyn Norm) -> MarginBracket {
    let total: f64 = point.weights.iter().sum();
    MarginBracket {
        lower: point.smallest_margin() / norm.value(point.params),
        upper: norm.dual(&point.gradient.direction) / total,
    }
}

/// B = max ‖xₙ‖_*, the bound on the features in the step size of B Theorem 5, for a linear model with one output.
///
/// ```
/// use limitpoint::diagnostics::feature_bound;
/// use limitpoint::linalg::Matrix;
/// use limitpoint::norms::NormSpec;
/// let inputs = Matrix::from_rows(&[&[1.0, -2.0], &[0.5, 0.5]]).into();
/// let mut sign_descent = NormSpec::Linf.build_vector(2)?;
/// assert_eq!(feature_bound(&inputs, &mut *sign_descent), 3.0);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub fn feature_bound(inputs: &crate::linalg::SharedMatrix, norm: &mut dyn Norm) -> f64 {
    (0..inputs.rows()).map(|n| norm.dual(inputs.row(n))).fold(0.0, f64::max)
}

/// [`feature_bound`] of sparse inputs, at the cost of their entries in every norm that treats all coordinates alike:
/// there the dual norm of a vector is that of its entries that are not zero. Quadratic norms see whole vectors.
///
/// ```
/// use limitpoint::diagnostics::sparse_feature_bound;
/// use limitpoint::linalg::SparseMatrix;
/// use limitpoint::norms::NormSpec;
/// let inputs = SparseMatrix::from_triplets(2, 1000, &[(0, 3, 1.0), (0, 800, -2.0), (1, 5, 0.5)]).unwrap();
/// assert_eq!(sparse_feature_bound(&inputs, &NormSpec::Linf)?, 3.0);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub fn sparse_feature_bound(inputs: &SparseMatrix, norm: &NormSpec) -> Result<f64, NormError> {
    let mut largest: f64 = 0.0;
    if names_coordinates(norm) {
        let (mut worker, mut example) = (norm.build_vector(inputs.cols())?, vec![0.0; inputs.cols()]);
        for i in 0..inputs.rows() {
            example.fill(0.0);
            inputs.add_row(i, 1.0, &mut example);
            largest = largest.max(worker.dual(&example));
        }
        return Ok(largest);
    }
    let mut worker: Option<(usize, Box<dyn Norm>)> = None;
    for entries in (0..inputs.rows()).map(|i| inputs.row(i).1).filter(|entries| !entries.is_empty()) {
        let fitting = worker.take().filter(|(length, _)| *length == entries.len());
        let (length, mut norm) = match fitting {
            Some(fitting) => fitting,
            None => (entries.len(), norm.build_vector(entries.len())?),
        };
        largest = largest.max(norm.dual(entries));
        worker = Some((length, norm));
    }
    Ok(largest)
}

/// Whether a norm has a weight for every coordinate.
fn names_coordinates(norm: &NormSpec) -> bool {
    match norm {
        NormSpec::Quadratic { .. } | NormSpec::QuadraticDense { .. } => true,
        NormSpec::Max { blocks } | NormSpec::Sum { blocks } | NormSpec::Root { blocks } => {
            blocks.iter().any(|block| names_coordinates(&block.norm))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;

    #[test]
    fn sparse_inputs_have_the_bound_of_dense_ones() {
        let dense =
            Matrix::from_rows(&[&[0.0, -2.0, 0.0, 1.0], &[0.0; 4], &[3.0, 0.5, 0.0, 0.0], &[0.0, 0.0, 0.0, 2.5]]);
        let sparse = SparseMatrix::from_dense(&dense).unwrap();
        let quadratic = NormSpec::Quadratic { diagonal: vec![1.0, 0.01, 2.0, 3.0] };
        let block = |norm| vec![crate::norms::BlockNorm::new("*", norm)];
        for norm in [
            NormSpec::L1,
            NormSpec::L2,
            NormSpec::Linf,
            NormSpec::Lp { p: 3.0 },
            NormSpec::Spectral,
            NormSpec::GroupL21,
            NormSpec::GroupL2Inf,
            quadratic.clone(),
            NormSpec::Max { blocks: block(NormSpec::Linf) },
            NormSpec::Sum { blocks: block(quadratic) },
        ] {
            let expected = feature_bound(&dense.clone().into(), &mut *norm.build_vector(4).unwrap());
            let found = sparse_feature_bound(&sparse, &norm).unwrap();
            assert!((found - expected).abs() < 1e-14 * expected, "{norm}: {found} instead of {expected}");
        }
    }
}
