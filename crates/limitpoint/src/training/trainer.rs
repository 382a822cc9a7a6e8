//! Who trains, and what the theory says of it.

use crate::catalogue::CatalogueEntry;
use crate::certificates::Measure;
use crate::flows::FlowSpec;
use crate::norms::NormSpec;
use crate::optimisers::{OptimiserSpec, PolarMethod};
use crate::potentials::PotentialSpec;

/// Who trains: an optimiser by steps, or a flow in continuous time.
#[derive(Debug, Clone, PartialEq)]
pub enum Trainer {
    /// An optimiser.
    Optimiser(OptimiserSpec),
    /// A flow.
    Flow(FlowSpec),
}

impl Trainer {
    /// The update rule, for people.
    pub fn formula(&self) -> String {
        let find = |entries: Vec<CatalogueEntry>, key: &str| {
            entries.iter().find(|entry| entry.key == key).map_or_else(String::new, |entry| entry.formula.to_owned())
        };
        match self {
            Self::Optimiser(spec) => find(OptimiserSpec::catalogue(), spec.key()),
            Self::Flow(FlowSpec::Steepest { norm }) => format!("dθ/dt = ‖∇L‖_* d(∇L) in {}", norm.key()),
            Self::Flow(FlowSpec::Mirror { potential }) => format!("d∇R(θ)/dt = −∇L with R = {}", potential.key()),
            Self::Flow(FlowSpec::NaturalGradient { potential }) => {
                format!("dθ/dt = −∇²R(θ)⁻¹∇L with R = {}", potential.key())
            }
        }
    }

    /// The norm or potential the theory assigns to it; nothing where nothing is claimed.
    pub fn measure(&self) -> Option<Measure> {
        match self {
            Self::Optimiser(spec) => measure(spec),
            Self::Flow(FlowSpec::Steepest { norm }) => Some(Measure::Norm(norm.clone())),
            Self::Flow(FlowSpec::Mirror { potential } | FlowSpec::NaturalGradient { potential }) => {
                Some(Measure::Potential(potential.clone()))
            }
        }
    }

    /// The norm it belongs to: that of its steps, or of the horizon of its potential.
    pub fn own_norm(&self) -> Option<NormSpec> {
        match self {
            Self::Optimiser(spec) => spec.own_norm(),
            Self::Flow(FlowSpec::Steepest { norm }) => Some(norm.clone()),
            Self::Flow(FlowSpec::Mirror { potential } | FlowSpec::NaturalGradient { potential }) => {
                OptimiserSpec::mirror(potential.clone()).own_norm()
            }
        }
    }

    /// The largest fall of ln L in a step that its memory of gradients can follow, where it has one.
    pub fn forgets(&self) -> Option<f64> {
        match self {
            Self::Optimiser(spec) => Some(spec.forgets()).filter(|forgets| forgets.is_finite()),
            Self::Flow(_) => None,
        }
    }

    /// Whether the geometry is that of a limit or a conjecture, so that no single step need respect it.
    pub fn geometry_in_limit(&self) -> bool {
        match self {
            Self::Optimiser(spec) => in_limit(spec),
            Self::Flow(_) => false,
        }
    }

    /// Why nothing is claimed of where a run ends, and what to do about it, where there is no measure.
    pub(crate) fn no_measure(&self) -> String {
        let why = match self {
            Self::Optimiser(spec) => spec.norm_of_steps().err().map(|why| format!(": {why}")),
            Self::Flow(_) => None,
        };
        format!(
            "no norm is known whose margin its optimiser maximises{}; name one with --norm",
            why.unwrap_or_default()
        )
    }
}

/// Whether the geometry of an optimiser is that of a limit or a conjecture.
fn in_limit(spec: &OptimiserSpec) -> bool {
    match spec {
        OptimiserSpec::Muon { momentum, polar, .. } => *momentum != 0.0 || *polar != PolarMethod::Exact,
        OptimiserSpec::Steepest { .. } | OptimiserSpec::MonotoneCoordinate { .. } => false,
        OptimiserSpec::Adjusted { of, decay, .. } => *decay != 0.0 || in_limit(of),
        OptimiserSpec::Blocks(parts) => parts.values().any(in_limit),
        _ => true,
    }
}

/// The geometry whose margin an optimiser is known or conjectured to maximise: A Theorems 3.2 and 3.4 for steepest
/// descent and its momentum variants, A section 4 for Adam (ℓ∞) and Shampoo without accumulation (spectral), C for
/// mirror descent. Elsewhere it has a norm of its own at most, and nothing is claimed.
fn measure(spec: &OptimiserSpec) -> Option<Measure> {
    match spec {
        OptimiserSpec::Mirror { potential, .. } => Some(Measure::Potential(potential.clone())),
        OptimiserSpec::Switch { second, .. } => measure(second),
        OptimiserSpec::Adjusted { of, decay, .. } => measure(of).filter(|_| *decay == 0.0),
        // nothing is claimed of the whole where nothing is of a part, and no cone is known to a norm
        OptimiserSpec::Blocks(parts) => match parts.len() {
            1 => parts.values().find_map(measure),
            _ => parts.values().all(has_measure).then(|| spec.own_norm().map(Measure::Norm))?,
        },
        OptimiserSpec::AdamW { .. }
        | OptimiserSpec::RmsProp { .. }
        | OptimiserSpec::NaturalGradient { .. }
        | OptimiserSpec::Shampoo { accumulate: true, .. } => None,
        _ => spec.own_norm().map(Measure::Norm),
    }
}

/// Whether the geometry of an optimiser is known and a norm on all of space.
fn has_measure(spec: &OptimiserSpec) -> bool {
    let one_sided =
        |potential: &PotentialSpec| matches!(potential, PotentialSpec::Entropy | PotentialSpec::SpectralEntropy);
    measure(spec).is_some_and(|measure| !matches!(&measure, Measure::Potential(potential) if one_sided(potential)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometry_is_claimed_only_where_theory_names_one() {
        let key = |text: &str| Trainer::Optimiser(text.parse().unwrap()).measure().map(|measure| measure.key());
        assert_eq!(key("sign").as_deref(), Some("linf"));
        assert_eq!(key("mirror(potential=entropy)").as_deref(), Some("entropy"));
        assert_eq!(key("adam-w"), None);
        let flow = Trainer::Flow(FlowSpec::Mirror { potential: PotentialSpec::Entropy });
        assert_eq!((flow.forgets(), flow.geometry_in_limit()), (None, false));
        assert!(flow.formula().contains("entropy"));
    }
}
