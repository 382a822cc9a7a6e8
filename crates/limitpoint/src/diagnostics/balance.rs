//! Quantities that flows conserve between layers and between the two sides of a neuron.

use crate::models::Homogeneity;
use crate::params::ParamLayout;
use crate::potentials::{Entries, MirrorPotential};

/// Q_l(∇R_l(W_l))/k_l for each group of a homogeneous model.
///
/// Along mirror flow every group grows at the same rate, d/dt Q_l = k_l ν, so the differences stay what they were
/// (C Lemma 3.1; with the Euclidean potential ½‖W_l‖², D Appendix G). Descent keeps them up to O(step).
#[derive(Debug, Clone, PartialEq)]
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
        let mut by_block = Vec::new();
        potential.conjugate_by_block(params, &mut by_block);
        let mut trainable = by_block.into_iter();
        let per_block: Vec<f64> = layout
            .blocks()
            .iter()
            .map(|block| if block.frozen { 0.0 } else { trainable.next().unwrap_or(f64::NAN) })
            .collect();
        let value = |blocks: &[usize]| blocks.iter().map(|b| per_block[*b]).sum::<f64>();
        Self { values: homogeneity.groups.iter().map(|group| value(&group.blocks) / group.degree).collect() }
    }

    /// Largest change of a difference between two groups since `start`, relative to the largest value now (Ct.bal).
    pub fn drift_since(&self, start: &Self) -> f64 {
        let (mut low, mut high, mut size) = (f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE);
        for (now, then) in self.values.iter().zip(&start.values) {
            low = low.min(now - then);
            high = high.max(now - then);
            size = size.max(now.abs());
        }
        if self.values.len() < 2 { 0.0 } else { (high - low) / size }
    }
}

/// Q(a_j) − Q(w_j) for every hidden neuron of a two-layer network with one output (C.nbal): conserved one by one.
///
/// `hidden` and `head` are indices among the trainable blocks; the head has one row. Empty where the potential is not a sum
/// over entries.
pub fn neuron_balance(
    params: &[f64],
    layout: &ParamLayout,
    (hidden, head): (usize, usize),
    potential: &mut dyn MirrorPotential,
) -> Vec<f64> {
    let blocks: Vec<_> = layout.trainable().collect();
    let (Some(w), Some(a)) = (blocks.get(hidden), blocks.get(head)) else { return Vec::new() };
    let mut out = Vec::new();
    for neuron in 0..w.rows {
        let inner = potential.conjugate_of_entries(hidden, params, Entries::row(w, neuron));
        let outer = potential.conjugate_of_entries(head, params, Entries::column(a, neuron));
        match (inner, outer) {
            (Some(inner), Some(outer)) => out.push(outer - inner),
            _ => return Vec::new(),
        }
    }
    out
}
