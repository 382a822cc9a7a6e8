//! Who trains, and what the theory says of it.

use crate::catalogue::CatalogueEntry;
use crate::certificates::Measure;
use crate::flows::FlowSpec;
use crate::norms::NormSpec;
use crate::optimisers::{OptimiserSpec, PolarMethod};

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
            Self::Optimiser(OptimiserSpec::Muon { momentum, polar, .. }) => {
                *momentum != 0.0 || *polar != PolarMethod::Exact
            }
            Self::Optimiser(spec) => {
                !matches!(spec, OptimiserSpec::Steepest { .. } | OptimiserSpec::MonotoneCoordinate { .. })
            }
            Self::Flow(_) => false,
        }
    }
}

/// The geometry whose margin an optimiser is known or conjectured to maximise: A Theorems 3.2 and 3.4 for steepest
/// descent and its momentum variants, A section 4 for Adam (ℓ∞) and Shampoo without accumulation (spectral), C for
/// mirror descent. Elsewhere it has a norm of its own at most, and nothing is claimed.
fn measure(spec: &OptimiserSpec) -> Option<Measure> {
    match spec {
        OptimiserSpec::Mirror { potential, .. } => Some(Measure::Potential(potential.clone())),
        OptimiserSpec::Switch { second, .. } => measure(second),
        OptimiserSpec::AdamW { .. }
        | OptimiserSpec::RmsProp { .. }
        | OptimiserSpec::NaturalGradient { .. }
        | OptimiserSpec::Shampoo { accumulate: true, .. } => None,
        _ => spec.own_norm().map(Measure::Norm),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::potentials::PotentialSpec;

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
