//! Quantities that flows conserve between layers and between the two sides of a neuron.

use serde::{Deserialize, Serialize};

use crate::models::Homogeneity;
use crate::params::ParamLayout;
use crate::potentials::{Entries, MirrorPotential, balance_drift, grouped_conjugates};

/// Q_l(∇R_l(W_l))/k_l for each group of a homogeneous model.
///
/// Along mirror flow every group grows at the same rate, d/dt Q_l = k_l ν, so the differences stay what they were
/// (C Lemma 3.1; with the Euclidean potential ½‖W_l‖², D Appendix G). Descent keeps them up to O(step).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Balance {
    /// One value per group, in order.
    pub values: Vec<f64>,
}

impl Balance {
    /// Measures the balance; groups must be those of the model the layout belongs to.
    pub fn measure(
        params: &[f64],
        layout: &ParamLayout,
        homogeneity: &Homogeneity,
        potential: &mut dyn MirrorPotential,
    ) -> Self {
        let mut values = Vec::new();
        grouped_conjugates(potential, layout, homogeneity.pairs(), params, &mut values);
        Self { values }
    }

    /// Largest change of a difference between two groups since `start`, relative to the largest value now (Ct.bal).
    pub fn drift_since(&self, start: &Self) -> f64 {
        balance_drift(&self.values, &start.values)
    }
}

/// Q(a_j) − Q(w_j, b_j)/k for every hidden neuron of a two-layer network with one output (C.nbal), k being the degree
/// of the activation: conserved one by one along the flow. A channel of a convolution is a neuron whose a_j are all weights
/// that read it: activations and pools let a factor pass, so what one layer gains the other does too.
///
/// Empty for other models, where a block is frozen, and where the potential is not a sum over entries.
pub fn neuron_balance(
    params: &[f64],
    layout: &ParamLayout,
    homogeneity: &Homogeneity,
    potential: &mut dyn MirrorPotential,
) -> Vec<f64> {
    let [hidden, head] = homogeneity.groups.as_slice() else { return Vec::new() };
    let blocks = layout.blocks();
    let (w, a) = (&blocks[hidden.blocks[0]], &blocks[head.blocks[0]]);
    if a.rows != 1 || !a.cols.is_multiple_of(w.rows) || blocks.iter().any(|block| block.frozen) {
        return Vec::new();
    }
    let bias = hidden.blocks.get(1).copied();
    let neuron = |j: usize| {
        let mut inner = potential.conjugate_of_entries(hidden.blocks[0], params, Entries::row(w, j))?;
        if let Some(bias) = bias {
            inner += potential.conjugate_of_entries(bias, params, Entries::row(&blocks[bias], j))?;
        }
        let each = a.cols / w.rows;
        let mut outer = 0.0;
        for column in j * each..(j + 1) * each {
            outer += potential.conjugate_of_entries(head.blocks[0], params, Entries::column(a, column))?;
        }
        Some(outer / head.degree - inner / hidden.degree)
    };
    (0..w.rows).map(neuron).collect::<Option<Vec<f64>>>().unwrap_or_default()
}
