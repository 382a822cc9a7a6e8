//! The quantities that mirror flow keeps in balance between the layers of a homogeneous model.

use super::MirrorPotential;
use crate::params::ParamLayout;

/// Q(∇R(W))/k for each group of blocks, given as block indices and degree k; `out` is cleared first.
///
/// Along mirror flow d/dt Q_l = k_l ν with the same ν for every group, so the differences of these values stay what
/// they were (C Lemma 3.1; with the Euclidean potential ½‖W_l‖², D Appendix G). Frozen blocks count as 0.
pub fn grouped_conjugates<'a>(
    potential: &mut dyn MirrorPotential,
    layout: &ParamLayout,
    groups: impl IntoIterator<Item = (&'a [usize], f64)>,
    params: &[f64],
    out: &mut Vec<f64>,
) {
    let mut by_block = Vec::new();
    potential.conjugate_by_block(params, &mut by_block);
    // the potential counts trainable blocks only
    let mut place = vec![None; layout.blocks().len()];
    let trainable = (0..place.len()).filter(|b| !layout.blocks()[*b].frozen);
    trainable.enumerate().for_each(|(index, block)| place[block] = Some(index));
    let value = |block: &usize| place[*block].map_or(0.0, |index| by_block[index]);
    out.clear();
    out.extend(groups.into_iter().map(|(blocks, degree)| blocks.iter().map(value).sum::<f64>() / degree));
}

/// The largest change of a difference between two groups, relative to the largest value now (Ct.bal); 0 for one group.
///
/// ```
/// // both groups grew by 3, so their difference is what it was
/// assert_eq!(limitpoint::potentials::balance_drift(&[5.0, 4.0], &[2.0, 1.0]), 0.0);
/// assert_eq!(limitpoint::potentials::balance_drift(&[5.0, 4.0], &[2.0, 2.0]), 0.2);
/// ```
pub fn balance_drift(now: &[f64], start: &[f64]) -> f64 {
    let (mut low, mut high, mut size) = (f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE);
    for (now, then) in now.iter().zip(start) {
        low = low.min(now - then);
        high = high.max(now - then);
        size = size.max(now.abs());
    }
    if now.len() < 2 { 0.0 } else { (high - low) / size }
}
