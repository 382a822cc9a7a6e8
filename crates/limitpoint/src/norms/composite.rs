//! Norms of norms: the largest, the sum or the root of the sum of squares over layers.
//!
//! Each layer l is one block with its own norm and a weight cₗ > 0. Maximum and sum are dual to each other, the root is
//! dual to itself:
//!
//! ```text
//!        ‖W‖              ‖G‖_*              d                                     ball           dual ball
//! max    maxₗ cₗ‖Wₗ‖      Σₗ ‖Gₗ‖_*/cₗ      dₗ/cₗ in every layer                  per layer      shared
//! sum    Σₗ cₗ‖Wₗ‖        maxₗ ‖Gₗ‖_*/cₗ    dₗ/cₗ in the first maximising layer   shared         per layer
//! root   √Σₗ(cₗ‖Wₗ‖)²     √Σₗ(‖Gₗ‖_*/cₗ)²   ‖Gₗ‖_* dₗ/(cₗ²‖G‖_*) in every layer   round          round
//! ```
//!
//! "Shared" balls { Σₗ bₗNₗ(xₗ) ≤ radius } are projected onto with one multiplier λ: each layer takes the proximal step
//! xₗ = vₗ − P(vₗ) with P the projection onto the polar ball Nₗ* ≤ λbₗ, and λ is the zero of radius − Σ bₗNₗ(xₗ).
//! "Round" balls { Σₗ (bₗNₗ(xₗ))² ≤ radius² } have the polar radii λbₗsₗ with sₗ = bₗNₗ(xₗ): the prices of the layers
//! differ, and each is a scalar root of its own.

use std::ops::Range;

use super::Norm;
use super::face::{Elementary, activity, project_face, rounded_activity};
use super::root::increasing_root;
use super::simplex::{larger, refuse_radius};
use super::window::clear_outside;
use crate::linalg::{max_abs, norm2};

/// One block with its norm.
pub(super) struct Layer {
    pub(super) range: Range<usize>,
    pub(super) norm: Box<dyn Elementary>,
    pub(super) weight: f64,
}

/// How the norms of parts become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The largest.
    Max,
    /// Their sum.
    Sum,
    /// √Σₗ(cₗ‖Wₗ‖)².
    Root,
}

/// The largest, the sum or the root of the squares of weighted layer norms; with the rule `Max` the modular norm of paper A (section 3.2,
/// A.modular).
///
/// Zeros: a layer without gradient stays at rest. Ties: under `Sum` the first layer of the largest ‖Gₗ‖_*/cₗ moves.
/// Subdifferential under `Max`: one unit of mass shared among the active layers cₗ‖Wₗ‖ ≥ (1 − τ)‖W‖, layer l holding
/// μₗcₗ∂‖Wₗ‖; under `Sum`: cₗ∂‖Wₗ‖ in every layer, the dual ball where cₗ‖Wₗ‖ ≤ τ maxₖ cₖ‖Wₖ‖; under `Root`:
/// (cₗ²‖Wₗ‖/‖W‖) ∂‖Wₗ‖ in every layer, 0 where Wₗ = 0.
///
/// ```
/// use limitpoint::{norms::NormSpec, params::ParamLayout};
/// let layout = ParamLayout::new([("w", 2, 1), ("a", 1, 1)]).unwrap();
/// let norm: NormSpec = "max(w=linf,a=2*l2)".parse()?;
/// let (mut norm, mut direction) = (norm.build(&layout)?, [0.0; 3]);
/// assert_eq!(norm.value(&[1.0, -3.0, 2.0]), 4.0);
/// assert_eq!(norm.unit_minimiser(&[1.0, -3.0, 2.0], &mut direction), 5.0); // (1 + 3) + 2/2
/// assert_eq!(direction, [-1.0, 1.0, -0.5]);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub(super) struct Composite {
    rule: Rule,
    layers: Vec<Layer>,
    /// Weighted norm of every layer.
    sizes: Vec<f64>,
    /// The layers that attain the maximum.
    active: Vec<usize>,
    /// A copy of the vector being projected.
    scratch: Vec<f64>,
}

impl Composite {
    /// `layers` are in the order of their ranges; `length` is that of the flat vector.
    pub(super) fn new(rule: Rule, layers: Vec<Layer>, length: usize) -> Self {
        let count = layers.len();
        Self { rule, layers, sizes: vec![0.0; count], active: Vec::with_capacity(count), scratch: vec![0.0; length] }
    }

    /// The largest cₗ‖Wₗ‖, all of them written to `sizes`.
    fn measure(&mut self, at: &[f64]) -> f64 {
        for (size, layer) in self.sizes.iter_mut().zip(&mut self.layers) {
            *size = layer.weight * layer.norm.value(&at[layer.range.clone()]);
        }
        self.sizes.iter().copied().fold(0.0, larger)
    }

    /// Projection onto the subdifferential of the maximum: min Σ½‖vₗ − zₗ‖² over vₗ in the cone of ∂‖Wₗ‖ with masses
    /// that satisfy Σ massₗ/cₗ = 1. At the price λ of that constraint layer l has the price λ/cₗ, and its mass grows
    /// with it, so λ is bracketed by doubling and then found as a scalar root; the masses are scaled to meet the
    /// constraint.
    fn share_one_unit(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        let largest = self.measure(at);
        let floor = (1.0 - rounded_activity(tolerance)) * largest;
        let (layers, active) = (&mut self.layers, &mut self.active);
        active.clear();
        active.extend((0..layers.len()).filter(|&l| self.sizes[l] >= floor));
        let opened = active.iter().all(|&l| {
            let range = layers[l].range.clone();
            layers[l].norm.open_face(&at[range.clone()], &target[range], tolerance)
        });
        if !opened || !largest.is_finite() {
            return out.fill(f64::NAN);
        }
        out.fill(0.0);
        if let [only] = active.as_slice() {
            let Layer { range, norm, weight } = &mut layers[*only];
            let multiplier = norm.face().with_mass(*weight);
            return norm.face_point(&target[range.clone()], multiplier, &mut out[range.clone()]);
        }
        let total = |layers: &[Layer], price: f64| -> f64 {
            let masses = active.iter().map(|&l| (layers[l].norm.face(), layers[l].weight));
            masses.map(|(face, weight)| face.at_price(price / weight).mass / weight).sum()
        };
        let (mut low, mut high) = (-1.0, 1.0);
        while total(layers, high) < 1.0 {
            high *= 2.0;
        }
        while total(layers, low) > 1.0 {
            low *= 2.0;
        }
        let price = increasing_root(low, high, |price| total(layers, price) - 1.0);
        let spent = total(layers, price);
        for &l in active.iter() {
            let Layer { range, norm, weight } = &mut layers[l];
            let (multiplier, part) = (norm.face().at_price(price / *weight), &mut out[range.clone()]);
            norm.face_point(&target[range.clone()], multiplier, part);
            part.iter_mut().for_each(|x| *x /= spent);
        }
    }

    /// Projection onto { Σ cₗ‖xₗ‖ ≤ radius }, or onto { Σ ‖xₗ‖_*/cₗ ≤ radius }.
    fn project_shared_ball(&mut self, side: Side, radius: f64, v: &mut [f64]) {
        if refuse_radius(radius, v) {
            return;
        }
        self.scratch.copy_from_slice(v);
        let (layers, start) = (&mut self.layers, &self.scratch);
        let (mut total, mut limit) = (0.0, 0.0);
        for layer in layers.iter_mut() {
            let part = &start[layer.range.clone()];
            total += side.weight(layer) * side.norm(layer, part);
            limit = larger(limit, side.other().norm(layer, part) / side.weight(layer));
        }
        if total <= radius {
            return;
        }
        if !total.is_finite() || radius == 0.0 {
            let answer = if total.is_finite() { 0.0 } else { f64::NAN };
            return layers.iter().for_each(|layer| v[layer.range.clone()].fill(answer));
        }
        let mut shrink = |multiplier: f64, v: &mut [f64]| -> f64 {
            let mut total = 0.0;
            for layer in layers.iter_mut() {
                let (part, start) = (&mut v[layer.range.clone()], &start[layer.range.clone()]);
                let weight = side.weight(layer);
                part.copy_from_slice(start);
                side.other().project(layer, multiplier * weight, part);
                part.iter_mut().zip(start).for_each(|(x, s)| *x = s - *x);
                total += weight * side.norm(layer, part);
            }
            total
        };
        let multiplier = increasing_root(0.0, limit, |multiplier| 1.0 - shrink(multiplier, v) / radius);
        let total = shrink(multiplier, v);
        if total > radius {
            layers.iter().for_each(|layer| v[layer.range.clone()].iter_mut().for_each(|x| *x *= radius / total));
        }
    }

    /// Projection onto { Σ (cₗ‖xₗ‖)² ≤ radius² }, or onto { Σ (‖xₗ‖_*/cₗ)² ≤ radius² }.
    ///
    /// With sₗ = bₗNₗ(xₗ) the optimum has vₗ − xₗ ∈ λbₗsₗ ∂Nₗ(xₗ) for one λ: at a given λ layer l has the polar radius τ
    /// with τ = λbₗ² Nₗ(vₗ − P_τ(vₗ)), whose right side falls from τ = 0 to 0 at τ = Nₗ*(vₗ). Since sₗ ≤ Nₗ*(vₗ)/(λbₗ),
    /// λ is at most the number of layers times maxₗ Nₗ*(vₗ)/(bₗ radius).
    fn project_round_ball(&mut self, side: Side, radius: f64, v: &mut [f64]) {
        if refuse_radius(radius, v) {
            return;
        }
        self.scratch.copy_from_slice(v);
        let (layers, start, sizes) = (&mut self.layers, &self.scratch, &mut self.sizes);
        let (count, mut limit) = (layers.len() as f64, 0.0);
        for (size, layer) in sizes.iter_mut().zip(layers.iter_mut()) {
            let part = &start[layer.range.clone()];
            *size = side.weight(layer) * side.norm(layer, part);
            limit = larger(limit, side.other().norm(layer, part) / side.weight(layer));
        }
        let total = norm2(sizes);
        if total <= radius {
            return;
        }
        if !total.is_finite() || radius == 0.0 {
            let answer = if total.is_finite() { 0.0 } else { f64::NAN };
            return layers.iter().for_each(|layer| v[layer.range.clone()].fill(answer));
        }
        let mut shrink = |multiplier: f64, v: &mut [f64]| -> f64 {
            for (size, layer) in sizes.iter_mut().zip(layers.iter_mut()) {
                let (part, start) = (&mut v[layer.range.clone()], &start[layer.range.clone()]);
                let (weight, polar) = (side.weight(layer), side.other().norm(layer, start));
                if polar == 0.0 {
                    *size = 0.0;
                    continue;
                }
                let mut leave = |share: f64| {
                    part.copy_from_slice(start);
                    side.other().project(layer, share * polar, part);
                    part.iter_mut().zip(start).for_each(|(x, s)| *x = s - *x);
                    weight * side.norm(layer, part)
                };
                // the share of the polar radius in Nₗ*(vₗ)
                let share = increasing_root(0.0, 1.0, |share| share - multiplier * weight / polar * leave(share));
                *size = leave(share);
            }
            norm2(sizes)
        };
        let highest = count * limit / radius;
        let multiplier = increasing_root(0.0, highest, |multiplier| 1.0 - shrink(multiplier, v) / radius);
        let total = shrink(multiplier, v);
        if total > radius {
            self.layers.iter().for_each(|layer| v[layer.range.clone()].iter_mut().for_each(|x| *x *= radius / total));
        }
    }
}

impl Norm for Composite {
    fn value(&mut self, v: &[f64]) -> f64 {
        let largest = self.measure(v);
        match self.rule {
            Rule::Max => largest,
            Rule::Sum => self.sizes.iter().sum(),
            Rule::Root => norm2(&self.sizes),
        }
    }

    fn dual(&mut self, g: &[f64]) -> f64 {
        for (size, layer) in self.sizes.iter_mut().zip(&mut self.layers) {
            *size = layer.norm.dual(&g[layer.range.clone()]) / layer.weight;
        }
        match self.rule {
            Rule::Max => self.sizes.iter().sum(),
            Rule::Sum => self.sizes.iter().copied().fold(0.0, larger),
            Rule::Root => norm2(&self.sizes),
        }
    }

    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        clear_outside(self.layers.iter().map(|layer| layer.range.clone()), out);
        let (mut total, mut leader) = (0.0, 0..0);
        for (size, layer) in self.sizes.iter_mut().zip(&mut self.layers) {
            let range = layer.range.clone();
            let part = &mut out[range.clone()];
            let dual = layer.norm.unit_minimiser(&g[range.clone()], part) / layer.weight;
            part.iter_mut().for_each(|x| *x /= layer.weight);
            *size = dual;
            match self.rule {
                Rule::Max => total += dual,
                Rule::Root => {}
                Rule::Sum if dual > total || dual.is_nan() => {
                    out[leader].fill(0.0);
                    (total, leader) = (dual, range);
                }
                Rule::Sum => part.fill(0.0),
            }
        }
        if self.rule == Rule::Root {
            total = norm2(&self.sizes);
            for (size, layer) in self.sizes.iter().zip(&self.layers) {
                // 0/1 instead of 0/0 keeps a zero gradient at rest
                let share = size / if total == 0.0 { 1.0 } else { total };
                out[layer.range.clone()].iter_mut().for_each(|x| *x *= share);
            }
        }
        if total.is_nan() {
            self.layers.iter().for_each(|layer| out[layer.range.clone()].fill(f64::NAN));
        }
        total
    }

    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        if self.layers.iter().all(|layer| max_abs(&at[layer.range.clone()]) == 0.0) {
            out.copy_from_slice(target);
            self.project_dual_ball(1.0, out);
        } else if self.rule == Rule::Max {
            self.share_one_unit(at, target, tolerance, out);
        } else {
            let largest = self.measure(at);
            let adds = self.rule == Rule::Sum;
            let floor = if adds { activity(tolerance) * largest } else { 0.0 };
            let whole = norm2(&self.sizes);
            for (layer, &size) in self.layers.iter_mut().zip(&self.sizes) {
                let share = if adds { 1.0 } else { size / whole };
                let (range, mass) = (layer.range.clone(), layer.weight * share);
                let part = &mut out[range.clone()];
                if size <= floor {
                    part.copy_from_slice(&target[range]);
                    layer.norm.project_dual_ball(mass, part);
                } else {
                    project_face(&mut *layer.norm, &at[range.clone()], &target[range], tolerance, mass, part);
                }
            }
        }
        clear_outside(self.layers.iter().map(|layer| layer.range.clone()), out);
    }

    fn project_ball(&mut self, radius: f64, v: &mut [f64]) {
        match self.rule {
            Rule::Sum => self.project_shared_ball(Side::Primal, radius, v),
            Rule::Root => self.project_round_ball(Side::Primal, radius, v),
            Rule::Max => {
                for layer in &mut self.layers {
                    layer.norm.project_ball(radius / layer.weight, &mut v[layer.range.clone()]);
                }
            }
        }
    }

    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]) {
        match self.rule {
            Rule::Max => self.project_shared_ball(Side::Dual, radius, v),
            Rule::Root => self.project_round_ball(Side::Dual, radius, v),
            Rule::Sum => {
                for layer in &mut self.layers {
                    layer.norm.project_dual_ball(radius * layer.weight, &mut v[layer.range.clone()]);
                }
            }
        }
    }
}

/// Whether a layer's norm or its dual is meant.
#[derive(Debug, Clone, Copy)]
enum Side {
    Primal,
    Dual,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Primal => Self::Dual,
            Self::Dual => Self::Primal,
        }
    }

    fn weight(self, layer: &Layer) -> f64 {
        match self {
            Self::Primal => layer.weight,
            Self::Dual => layer.weight.recip(),
        }
    }

    fn norm(self, layer: &mut Layer, v: &[f64]) -> f64 {
        match self {
            Self::Primal => layer.norm.value(v),
            Self::Dual => layer.norm.dual(v),
        }
    }

    fn project(self, layer: &mut Layer, radius: f64, v: &mut [f64]) {
        match self {
            Self::Primal => layer.norm.project_ball(radius, v),
            Self::Dual => layer.norm.project_dual_ball(radius, v),
        }
    }
}
