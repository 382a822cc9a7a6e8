//! Off a point that is no local maximum: the first push towards a larger margin.

use super::kind::{Ascent, PointKind};
use super::network::{Neuron, TwoLayer};
use super::{Equations, ProofError, Proven};
use crate::data::Dataset;
use crate::linalg::{norm2, sum_abs};
use crate::models::ModelSpec;

/// How to raise the margin of a proven point, if that is known.
///
/// Besides points that are no local maximum: at a local one that is proven not to be the global one, neurons that share a
/// direction can be joined at no cost, and the one that is left over is revived.
pub fn ascent(proven: &Proven) -> Option<Ascent> {
    match &proven.findings.kind {
        PointKind::NotLocalMaximum { ascent, .. } => Some(ascent.clone()),
        PointKind::LocalMaximum { beaten: true, .. } => {
            let Equations::L2(bundles) = &proven.proof.equations else { return None };
            let spare =
                bundles.iter().max_by_key(|bundle| bundle.units.len()).filter(|bundle| bundle.units.len() > 1)?;
            let witness = proven.proof.sphere.as_ref()?.witness.as_ref()?;
            let (neuron, direction) = (*spare.units.last()?, witness.direction.clone());
            Some(Ascent::Reviving { neuron, sign: witness.sign, direction, gain: 0.0 })
        }
        _ => None,
    }
}

/// Weights with the neuron of an ascent moved by a share `push` of the size of the others.
///
/// A hidden unit that is 0 gets |a|‖w‖ = push · Σ_j |a_j|‖w_j‖ in the direction of the ascent; a neuron on a kink is turned by the
/// angle `push` to the side where it is on.
pub fn pushed(
    model: &ModelSpec,
    data: &Dataset,
    weights: &[f64],
    ascent: &Ascent,
    push: f64,
) -> Result<Vec<f64>, ProofError> {
    let network = TwoLayer::new(model, data)?;
    if weights.len() != network.parameters() {
        return Err(ProofError::Weights { found: weights.len(), expected: network.parameters() });
    }
    let mut neurons = network.read(weights);
    let masses: Vec<f64> = neurons.iter().map(|n| n.outer.abs() * norm2(&n.inner)).collect();
    match ascent {
        Ascent::Reviving { neuron, sign, direction, .. } => {
            let size = (push * sum_abs(&masses)).sqrt();
            let factor = size / norm2(direction);
            let inner = direction.iter().map(|u| factor * u).collect();
            neurons[*neuron] = Neuron { unit: *neuron, outer: f64::from(*sign) * size, inner };
        }
        Ascent::LeavingKink { neuron, example } => {
            let x = network.inputs.row(*example);
            let factor = push * norm2(&neurons[*neuron].inner) / norm2(x);
            neurons[*neuron].inner.iter_mut().zip(x).for_each(|(w, x)| *w += factor * x);
        }
    }
    Ok(network.write(&neurons))
}
