//! The smooth ℓ2 tangent problem from the Gram matrix of the gradients, without their N × P entries.
//!
//! ```text
//! γ_tan = min_p √(pᵀKp),   K_kl = ⟨h_k, h_l⟩,   v* = Σ p_k h_k/γ_tan,   ⟨h_k, v*⟩ = (Kp)_k/γ_tan
//! ```
//!
//! K comes layer by layer from the model, so that N = 5000 examples need 200 MB whatever the width; v* is one backward
//! pass. Slopes at kinks are the model's own ([`Coverage::Fixed`]).

use super::tangent::{checked_margins, support};
use super::{CertificateError, Coverage, TangentCertificate};
use crate::data::Targets;
use crate::engine::{Forward, Tangents};
use crate::linalg::{Matrix, norm2};
use crate::memory::{bytes, require};
use crate::models::MarginMap;
use crate::norms::NormSpec;
use crate::reference::solve_margin_gram;

/// ⟨h_k, h_l⟩ of all margins: the tangent kernel of the model with the labels in it.
pub fn margin_gram(model: &mut dyn Tangents, targets: &Targets, params: &[f64]) -> Result<Matrix, CertificateError> {
    let (margins, _) = checked_margins(model, targets, params)?;
    model.weigh_kinks(&[]);
    // the Gram matrix of the scores, that of the margins, and two factors of the latter
    let needed = model.gram_bytes().saturating_add(bytes(&[3, margins.len(), margins.len()], 8));
    require(format!("the Gram matrix of {} margins", margins.len()), needed, "judge fewer examples")?;
    let gram = model.gradient_gram(params);
    Ok(match targets {
        Targets::Classes { labels, count } => between_classes(&gram, labels, *count),
        Targets::Binary(y) => {
            let mut gram = gram;
            for (n, sign) in y.iter().enumerate() {
                gram.row_mut(n).iter_mut().zip(y).for_each(|(k, other)| *k *= sign * other);
            }
            gram
        }
        Targets::Values(_) => return Err(CertificateError::NoMargins),
    })
}

/// The Gram matrix of the rows ∇Φ_y − ∇Φ_j, j ≠ y.
fn between_classes(gram: &Matrix, labels: &[usize], count: usize) -> Matrix {
    let margins: Vec<(usize, usize)> = labels
        .iter()
        .enumerate()
        .flat_map(|(n, &label)| {
            (0..count).filter(move |&j| j != label).map(move |j| (n * count + label, n * count + j))
        })
        .collect();
    let mut out = Matrix::zeros(margins.len(), margins.len());
    for (k, &(right, wrong)) in margins.iter().enumerate() {
        let (right, wrong) = (gram.row(right), gram.row(wrong));
        let products = margins.iter().map(|&(r, w)| right[r] - right[w] - wrong[r] + wrong[w]);
        out.row_mut(k).iter_mut().zip(products).for_each(|(out, product)| *out = product);
    }
    out
}

/// τ in ℓ2 with the model's own slopes, from the Gram matrix.
///
/// ```
/// use limitpoint::certificates::tangent_certificate_from_gram;
/// use limitpoint::data::Targets;
/// use limitpoint::linalg::Matrix;
/// use limitpoint::engine::{Compute, Forward, cpu};
/// use limitpoint::models::ModelSpec;
/// let mut model = cpu::bind(&ModelSpec::relu(&[1]), &Matrix::from_rows(&[&[3.0, 4.0]]), 1, Compute::default()).unwrap();
/// let targets = Targets::Binary(vec![1.0]);
/// let certificate = tangent_certificate_from_gram(&mut *model, &targets, &[0.6, 0.8, 1.0])?;
/// assert!(certificate.tau < 1e-12 && certificate.support == [(0, 1.0)]);
/// # Ok::<(), limitpoint::certificates::CertificateError>(())
/// ```
pub fn tangent_certificate_from_gram(
    model: &mut dyn Tangents,
    targets: &Targets,
    params: &[f64],
) -> Result<TangentCertificate, CertificateError> {
    let (margins, degree) = checked_margins(model, targets, params)?;
    let map = MarginMap::new(targets);
    let gram = margin_gram(model, targets, params)?;
    let solution = solve_margin_gram(&gram)?;
    drop(gram);
    let negative: Vec<f64> = solution.multipliers.rows.iter().map(|p| -p).collect();
    let mut cotangent = vec![0.0; model.examples() * model.outputs()];
    map.pull_back(&negative, None, &mut cotangent);
    let mut direction = vec![0.0; params.len()];
    model.scores(params);
    model.resume().pull_back(params, &cotangent, &mut direction);
    let length = norm2(&direction);
    direction.iter_mut().for_each(|x| *x /= length);
    let size = NormSpec::L2.build(model.layout())?.value(params);
    let own = degree * margins.iter().copied().fold(f64::INFINITY, f64::min) / size;
    let lower = solution.bracket.lower.max(own);
    // the length of the pulled-back sum is the upper bound without the rounding of a quadratic form
    let upper = length.max(lower);
    Ok(TangentCertificate {
        tangent_margin_lower: lower,
        tangent_margin_upper: upper,
        tau: (1.0 - own / upper).max(0.0),
        tau_lower: (1.0 - own / lower).max(0.0),
        support: support(&solution.multipliers.rows),
        kinks: 0,
        coverage: Coverage::Fixed,
        direction,
        rows: solution.multipliers.rows.len(),
        multipliers: solution.multipliers,
        euler_defect: 0.0,
        iterations: solution.iterations,
    })
}
