//! A different potential for every block.

use super::power::{power_norm, streaming_log_sum_exp};
use super::{
    BlockPotential, Conjugate, Entries, Horizon, HorizonBounds, MirrorMap, MirrorPotential, PotentialError,
    PotentialSpec,
};
use crate::numeric::compensated_sum;
use crate::params::{Block, ParamLayout, ParamsError, assign};

/// R(θ) = Σ_b R_b(W_b), one potential per trainable block.
///
/// ```text
/// Q(∇R) = Σ_b Q_b(∇R_b(W_b)),   degrees α_b,   margin  q_min/Π_b (α_b Q_b)^{1/α_b}      (C.defI4)
/// ```
///
/// Each block is built on its own, so a coupling potential such as [`super::SquaredLp`] under `*` couples entries
/// inside a block, not across blocks. When the degrees differ, `degree` is the largest, which is the asymptotic degree
/// of the sum, and `horizon` sees only the blocks that have it; use the `_by_block` methods for the layer-wise
/// quantities. Equal degrees combine as φ = (Σ φ_b^α)^{1/α}. The slack is Σ_b (α_b Q_b − W_bᵀH_bW_b). Paper C,
/// definition I.4.
///
/// ```
/// use limitpoint::{params::ParamLayout, potentials::PotentialSpec};
/// let spec: PotentialSpec = "layers:w=hyperbolic:1|*=euclidean".parse()?;
/// let mut potential = spec.build(&ParamLayout::new([("w", 1, 2), ("a", 1, 1)]).unwrap())?;
/// assert_eq!(potential.degrees_by_block(), [1.0, 2.0]);
/// let mut conjugates = Vec::new();
/// potential.conjugate_by_block(&[0.75, 0.0, 3.0], &mut conjugates);
/// assert_eq!(conjugates, [2.25, 4.5]);
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
pub struct Layers {
    length: usize,
    parts: Vec<(Block, Box<dyn MirrorPotential>)>,
    frozen: Vec<std::ops::Range<usize>>,
    degrees: Vec<f64>,
    degree: f64,
}

impl Layers {
    /// Gives each trainable block the potential listed under its name, or under `*`.
    pub fn new(list: &[BlockPotential], layout: &ParamLayout) -> Result<Self, PotentialError> {
        if let Some(entry) = list.iter().find(|entry| matches!(entry.potential, PotentialSpec::Layers { .. })) {
            return Err(PotentialError::NestedLayers { block: entry.block.to_string() });
        }
        let mut parts = Vec::new();
        for (block, entry) in assign(layout, list, |entry| &entry.block)? {
            let alone = ParamLayout::of([block.clone()])?;
            parts.push((block.clone(), entry.potential.build(&alone)?));
        }
        let degrees: Vec<f64> = parts.iter().map(|(_, potential)| potential.degree()).collect();
        let degree = degrees.iter().copied().fold(1.0, f64::max);
        let frozen = layout.blocks().iter().filter(|block| block.frozen).map(Block::range).collect();
        Ok(Self { length: layout.len(), parts, frozen, degrees, degree })
    }

    fn sum(&mut self, theta: &[f64], f: impl Fn(&mut dyn MirrorPotential, &[f64]) -> f64) -> f64 {
        debug_assert_eq!(theta.len(), self.length);
        self.parts.iter_mut().map(|(block, potential)| f(potential.as_mut(), &theta[block.range()])).sum()
    }

    fn each(&mut self, out: &mut [f64], f: impl Fn(&mut dyn MirrorPotential, std::ops::Range<usize>, &mut [f64])) {
        debug_assert_eq!(out.len(), self.length);
        for (block, potential) in &mut self.parts {
            f(potential.as_mut(), block.range(), &mut out[block.range()]);
        }
        self.frozen.iter().for_each(|range| out[range.clone()].fill(0.0));
    }

    fn collect(&mut self, theta: &[f64], out: &mut Vec<f64>, f: impl Fn(&mut dyn MirrorPotential, &[f64]) -> f64) {
        out.clear();
        out.extend(self.parts.iter_mut().map(|(block, potential)| f(potential.as_mut(), &theta[block.range()])));
    }
}

impl MirrorMap for Layers {
    fn value(&mut self, theta: &[f64]) -> f64 {
        self.sum(theta, |potential, w| potential.value(w))
    }

    fn mirror_map(&mut self, theta: &[f64], out: &mut [f64]) {
        self.each(out, |potential, range, slice| potential.mirror_map(&theta[range], slice));
    }

    fn inverse_mirror_map(&mut self, dual: &[f64], out: &mut [f64]) {
        self.each(out, |potential, range, slice| potential.inverse_mirror_map(&dual[range], slice));
    }

    fn hessian_action(&mut self, theta: &[f64], v: &[f64], out: &mut [f64]) {
        self.each(out, |potential, range, slice| potential.hessian_action(&theta[range.clone()], &v[range], slice));
    }

    fn inverse_hessian_action(&mut self, theta: &[f64], v: &[f64], out: &mut [f64]) {
        self.each(out, |potential, range, slice| {
            potential.inverse_hessian_action(&theta[range.clone()], &v[range], slice);
        });
    }

    fn check_domain(&self, theta: &[f64]) -> Result<(), PotentialError> {
        if theta.len() != self.length {
            return Err(ParamsError::Length { found: theta.len(), expected: self.length }.into());
        }
        self.parts.iter().try_for_each(|(block, potential)| potential.check_domain(&theta[block.range()]))
    }

    fn bregman_divergence(&mut self, a: &[f64], b: &[f64]) -> f64 {
        let parts = self.parts.iter_mut();
        compensated_sum(
            parts.map(|(block, potential)| potential.bregman_divergence(&a[block.range()], &b[block.range()])),
        )
    }
}

impl Conjugate for Layers {
    fn conjugate_at(&mut self, theta: &[f64]) -> f64 {
        self.sum(theta, |potential, w| potential.conjugate_at(w))
    }

    fn log_conjugate_at(&mut self, theta: &[f64]) -> f64 {
        let parts = self.parts.iter_mut();
        streaming_log_sum_exp(parts.map(|(block, potential)| potential.log_conjugate_at(&theta[block.range()])))
    }

    fn conjugate_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>) {
        self.collect(theta, out, |potential, w| potential.conjugate_at(w));
    }

    fn conjugate_of_entries(&mut self, block: usize, theta: &[f64], entries: Entries) -> Option<f64> {
        let (place, potential) = self.parts.get_mut(block)?;
        potential.conjugate_of_entries(0, &theta[place.range()], entries)
    }
}

impl Horizon for Layers {
    fn degree(&self) -> f64 {
        self.degree
    }

    fn degrees_by_block(&self) -> &[f64] {
        &self.degrees
    }

    fn horizon(&mut self, theta: &[f64]) -> f64 {
        let degree = self.degree;
        let leading = self.parts.iter_mut().filter(|(_, potential)| potential.degree() == degree);
        // One leading block at a time keeps the sum of powers in range: (φ^α + φ_b^α)^{1/α}.
        leading.fold(0.0, |total, (block, potential)| {
            power_norm([total, potential.horizon(&theta[block.range()])].into_iter(), degree)
        })
    }

    fn horizons_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>) {
        self.collect(theta, out, |potential, w| potential.horizon(w));
    }

    fn gauges_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>) {
        self.collect(theta, out, |potential, w| potential.gauge(w));
    }

    fn curvature_slack(&mut self, theta: &[f64]) -> f64 {
        self.sum(theta, |potential, w| potential.curvature_slack(w))
    }

    /// Known when all blocks have one degree α and known bounds: c = max c_b, a = (Σ a_b^α)^{1/α} (Minkowski).
    fn horizon_bounds(&self) -> Option<HorizonBounds> {
        let (mut factor, mut offset) = (1.0f64, 0.0);
        for (_, potential) in &self.parts {
            let bounds = potential.horizon_bounds().filter(|_| potential.degree() == self.degree)?;
            factor = factor.max(bounds.factor);
            offset = power_norm([offset, bounds.offset].into_iter(), self.degree);
        }
        Some(HorizonBounds { factor, offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> ParamLayout {
        ParamLayout::new([("w", 2, 2), ("a", 1, 2)]).unwrap()
    }

    fn refuse(text: &str) -> String {
        let spec: PotentialSpec = text.parse().unwrap();
        spec.build(&layout()).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn lists_that_do_not_fit_the_layout_are_refused() {
        assert_eq!(refuse("layers:b=euclidean"), "no parameter block is called 'b'; the blocks are w, a");
        assert!(refuse("layers:w=euclidean").contains("block 'a' is trainable but not listed"));
        assert!(refuse("layers:w=euclidean|w=entropy").contains("block 'w' is listed twice"));
        assert!(refuse("layers:w=spectral-entropy|*=hyperbolic:0").contains("lambda"));
        assert!(refuse("layers:*=spectral-entropy").contains("block 'a' is 1x2"));
        let inner = PotentialSpec::Layers { blocks: vec![] };
        let nested = PotentialSpec::Layers { blocks: vec![BlockPotential { block: "*".into(), potential: inner }] };
        assert!(nested.build(&layout()).err().unwrap().to_string().contains("another layers potential"));
        assert!(refuse("layers:w=spectral-entropy|*=euclidean").is_empty());
    }

    #[test]
    fn unequal_degrees_keep_the_leading_block() {
        let spec: PotentialSpec = "layers:w=hyperbolic:0.1|a=smoothed:3,1".parse().unwrap();
        let mut potential = spec.build(&layout()).unwrap();
        let theta = [1.0, -2.0, 0.5, 3.0, 2.0, 0.0];
        assert_eq!(potential.degree(), 3.0);
        assert!((potential.horizon(&theta) - 2.0 * 2f64.cbrt()).abs() < 1e-14);
        let mut by_block = Vec::new();
        potential.horizons_by_block(&theta, &mut by_block);
        assert!((by_block[0] - 6.5).abs() < 1e-14 && (by_block[1] - 2.0 * 2f64.cbrt()).abs() < 1e-14);
        assert!(potential.horizon_bounds().is_none());
    }
}
