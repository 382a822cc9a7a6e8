//! How a model's scores grow when its parameters are scaled.

use serde::{Deserialize, Serialize};

/// Blocks that scale together, with their degree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DegreeGroup {
    /// Indices into the layout's blocks (a layer's weight, and its bias where it has one).
    pub blocks: Vec<usize>,
    /// The k in Φ(…, c·w, …) = cᵏ Φ(…, w, …).
    pub degree: f64,
}

/// Homogeneity of a model: Φ(cθ) = c^L Φ(θ), and group by group for c > 0.
///
/// Composition gives the degrees: scaling layer l by c scales every later preactivation, and passing an activation of
/// degree p raises the factor to the power p. So the degree of layer l is the product of the degrees of the activations
/// after it, and L is the sum over the layers that are trained (D Definition G.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Homogeneity {
    /// The total degree L.
    pub degree: f64,
    /// Multi-homogeneity (k₁, …, k_m), one group per trained layer.
    pub groups: Vec<DegreeGroup>,
}

impl Homogeneity {
    /// The groups as (block indices, degree).
    pub fn pairs(&self) -> impl Iterator<Item = (&[usize], f64)> {
        self.groups.iter().map(|group| (group.blocks.as_slice(), group.degree))
    }

    /// The homogeneity whose degree is the sum over the groups.
    pub fn of_groups(groups: Vec<DegreeGroup>) -> Self {
        Self { degree: groups.iter().map(|group| group.degree).sum(), groups }
    }
}
