//! Two-layer networks with two inputs and one output, without ever storing a preactivation.
//!
//! In the plane (the setting of paper C) a preactivation is cheaper to compute again than to write and read back, so
//! both passes keep everything in registers: the forward pass forms the partial scores of a block of units, the
//! backward pass recomputes z and adds up all gradients of a few units at a time. Of ReLUs the signs of z are all that
//! it needs, and where a register of them is a byte or two, the forward pass leaves them behind. Scores are summed in
//! the order of the general kernels and have their bits. The head's gradient comes for nothing: every activation here
//! is homogeneous of a degree k, so σ(z) = z σ′(z)/k, and with G = Σₙ rₙ σ′(zₙ) xₙ, B = Σₙ rₙ σ′(zₙ)
//!
//! ```text
//! ∂/∂w = u G,   ∂/∂b = u B,   ∂/∂u = Σₙ rₙ σ(zₙ) = (w·G + b B)/k
//! ```

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::curves::{Curve, with_curve};
use super::plan::PLANE as IN;
use super::raw::{Raw, RawPanels};
use super::{DenseNetwork, block_size, share};
use crate::linalg::{PANEL_VECTORS, Panels, Real, SharedSlice};
use crate::models::Activation;
use crate::params::At;

/// Units whose gradients are added up at once.
const UNITS: usize = 4;

/// Weights of a planar hidden layer and its head.
#[derive(Clone, Copy)]
pub(super) struct PlanarWeights<T> {
    pub hidden: Raw<T>,
    pub bias: Option<Raw<T>>,
    pub head: Raw<T>,
}

impl<T: Real> PlanarWeights<T> {
    /// z of one unit at one register of examples: b + w₀x₀ + w₁x₁
    ///
    /// # Safety
    /// `unit` must lie inside the layer.
    #[inline(always)]
    unsafe fn preactivation<S: Simd>(&self, simd: S, unit: usize, x: &[T::Vector<S>; IN]) -> T::Vector<S> {
        // SAFETY: vouched for by the caller.
        unsafe {
            let weight = |i: usize| T::splat(simd, *self.hidden.0.add(unit * IN + i));
            let first = match self.bias {
                Some(bias) => T::mul_add(simd, weight(0), x[0], T::splat(simd, *bias.0.add(unit))),
                None => T::mul(simd, weight(0), x[0]),
            };
            T::mul_add(simd, weight(1), x[1], first)
        }
    }
}

/// Room for the signs of z, register after register for every unit, as masks of the machine.
#[derive(Clone, Copy)]
pub(super) struct Signs {
    start: *mut u8,
    /// Registers of a unit.
    row: usize,
}

// SAFETY: threads write those of their own units; the owner waits for all of them.
unsafe impl Send for Signs {}
// SAFETY: as above.
unsafe impl Sync for Signs {}

impl Signs {
    /// Bytes of the largest mask that is kept.
    const BYTES: usize = 2;

    /// Room for these panels of examples and as many units.
    fn room(buffer: &mut Vec<u8>, units: usize, panels: usize) -> Self {
        let row = panels * PANEL_VECTORS;
        buffer.resize(units * row * Self::BYTES, 0);
        Self { start: buffer.as_mut_ptr(), row }
    }

    /// Whether this kind of network keeps them.
    const fn kept<T: Real, S: Simd, A: Curve>() -> bool {
        A::STEP && size_of::<T::Mask<S>>() <= Self::BYTES
    }

    /// Those of a unit at register `v` of panel `panel`.
    #[inline(always)]
    fn at<T: Real, S: Simd>(self, unit: usize, panel: usize, v: usize) -> *mut T::Mask<S> {
        self.start.cast::<T::Mask<S>>().wrapping_add(unit * self.row + panel * PANEL_VECTORS + v)
    }
}

/// Register `v` of panel `panel` of every input.
///
/// # Safety
/// The register must lie inside the panels, which have IN rows.
#[inline(always)]
unsafe fn inputs<T: Real, S: Simd>(x: &Panels<T>, panel: usize, v: usize) -> [T::Vector<S>; IN] {
    let start = x.data().as_ptr();
    // SAFETY: vouched for by the caller.
    std::array::from_fn(|i| unsafe { T::load::<S>(start.add(x.offset(panel, i) + v * T::lanes::<S>())) })
}

/// Partial scores of the blocks of units in `rows`.
pub(super) struct PlanarForward<'a, T: Real> {
    pub rows: Range<usize>,
    pub block: usize,
    pub weights: PlanarWeights<T>,
    pub activation: Activation,
    pub input: &'a Panels<T>,
    pub partial: RawPanels<T>,
    pub signs: Signs,
}

impl<T: Real> PlanarForward<'_, T> {
    /// One block over NV registers of one panel, from register `first`.
    #[inline(always)]
    unsafe fn registers<S: Simd, A: Curve, const NV: usize>(
        &self,
        simd: S,
        curve: A,
        units: Range<usize>,
        panel: usize,
        first: usize,
    ) {
        // SAFETY: units and panels come from the shapes of the layer and its input.
        unsafe {
            let x: [[T::Vector<S>; IN]; NV] = std::array::from_fn(|v| inputs::<T, S>(self.input, panel, first + v));
            let mut sums = [T::splat(simd, T::default()); NV];
            let block = units.start / self.block;
            for unit in units {
                let weight = T::splat(simd, *self.weights.head.0.add(unit));
                for v in 0..NV {
                    let z = self.weights.preactivation::<S>(simd, unit, &x[v]);
                    if const { Signs::kept::<T, S, A>() } {
                        self.signs.at::<T, S>(unit, panel, first + v).write_unaligned(T::positive(simd, z));
                    }
                    sums[v] = T::mul_add(simd, weight, curve.value::<T, S>(simd, z), sums[v]);
                }
            }
            for (v, sum) in sums.into_iter().enumerate() {
                T::store::<S>(self.partial.at(panel, block).add((first + v) * T::lanes::<S>()), sum);
            }
        }
    }
}

impl<T: Real> WithSimd for PlanarForward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        with_curve!(self.activation, |curve| {
            for first in self.rows.clone().step_by(self.block) {
                let units = first..(first + self.block).min(self.rows.end);
                for panel in 0..self.input.count() {
                    // SAFETY: see `registers`.
                    unsafe {
                        match self.input.vectors(panel) {
                            3 => self.registers::<S, _, 3>(simd, curve, units.clone(), panel, 0),
                            count => {
                                for v in 0..count {
                                    self.registers::<S, _, 1>(simd, curve, units.clone(), panel, v);
                                }
                            }
                        }
                    }
                }
            }
        });
    }
}

/// All gradients of the units in `rows`.
pub(super) struct PlanarBackward<'a, T: Real> {
    pub rows: Range<usize>,
    pub weights: PlanarWeights<T>,
    pub activation: Activation,
    pub input: &'a Panels<T>,
    pub cotangent: &'a [T],
    /// Gradients of hidden weights, bias and head weights; absent where frozen.
    pub hidden: Option<*mut f64>,
    pub bias: Option<*mut f64>,
    pub head: Option<*mut f64>,
    /// As the forward pass left them.
    pub signs: Signs,
}

impl<T: Real> PlanarBackward<'_, T> {
    /// R units at once.
    #[inline(always)]
    unsafe fn units<S: Simd, A: Curve, const R: usize, const BIAS: bool>(&self, simd: S, curve: A, first: usize) {
        let zero = T::splat(simd, T::default());
        let (mut hidden, mut bias) = ([[zero; IN]; R], [zero; R]);
        // SAFETY: units, panels and the padded cotangent come from the shapes of the layer and its input.
        unsafe {
            for panel in 0..self.input.count() {
                for v in 0..self.input.vectors(panel) {
                    let x = inputs::<T, S>(self.input, panel, v);
                    let r = T::load::<S>(self.cotangent.as_ptr().add(panel * self.input.width() + v * T::lanes::<S>()));
                    if const { Signs::kept::<T, S, A>() } {
                        let products = x.map(|x| T::mul(simd, r, x));
                        for u in 0..R {
                            let mask = self.signs.at::<T, S>(first + u, panel, v).read_unaligned();
                            let add = |sum, term| T::select(simd, mask, T::add(simd, sum, term), sum);
                            if BIAS {
                                bias[u] = add(bias[u], r);
                            }
                            hidden[u] = std::array::from_fn(|i| add(hidden[u][i], products[i]));
                        }
                        continue;
                    }
                    for u in 0..R {
                        let z = self.weights.preactivation::<S>(simd, first + u, &x);
                        let signal = curve.slope_times::<T, S>(simd, z, r);
                        if BIAS {
                            bias[u] = T::add(simd, bias[u], signal);
                        }
                        for (sum, x) in hidden[u].iter_mut().zip(x) {
                            *sum = T::mul_add(simd, signal, x, *sum);
                        }
                    }
                }
            }
            for u in 0..R {
                let unit = first + u;
                let factor = (*self.weights.head.0.add(unit)).to_f64();
                let mut head = 0.0;
                for (i, sum) in hidden[u].into_iter().enumerate() {
                    let sum = T::reduce_sum(simd, sum).to_f64();
                    head += (*self.weights.hidden.0.add(unit * IN + i)).to_f64() * sum;
                    if let Some(to) = self.hidden {
                        *to.add(unit * IN + i) = factor * sum;
                    }
                }
                if let Some(weight) = self.weights.bias.filter(|_| BIAS) {
                    let sum = T::reduce_sum(simd, bias[u]).to_f64();
                    head += (*weight.0.add(unit)).to_f64() * sum;
                    if let Some(to) = self.bias {
                        *to.add(unit) = factor * sum;
                    }
                }
                if let Some(to) = self.head {
                    *to.add(unit) = head / f64::from(self.activation.degree());
                }
            }
        }
    }

    #[inline(always)]
    fn all<S: Simd, A: Curve, const BIAS: bool>(&self, simd: S, curve: A) {
        let whole = self.rows.end - self.rows.len() % UNITS;
        // SAFETY: see `units`.
        unsafe {
            for first in (self.rows.start..whole).step_by(UNITS) {
                self.units::<S, _, UNITS, BIAS>(simd, curve, first);
            }
            for unit in whole..self.rows.end {
                self.units::<S, _, 1, BIAS>(simd, curve, unit);
            }
        }
    }
}

impl<T: Real> WithSimd for PlanarBackward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        with_curve!(self.activation, |curve| {
            if self.weights.bias.is_some() {
                self.all::<S, _, true>(simd, curve);
            } else {
                self.all::<S, _, false>(simd, curve);
            }
        });
    }
}

impl<T: Real> DenseNetwork<T> {
    /// The parameters of a planar network.
    fn planar_weights(&self, weights: Raw<T>) -> PlanarWeights<T> {
        let (layer, head, at) = (&self.layers[0], &self.layers[1], |offset: usize| Raw(weights.at(offset)));
        PlanarWeights { hidden: at(layer.weight), bias: layer.bias.map(at), head: at(head.weight) }
    }

    /// Scores of a planar network; keeps no preactivations.
    pub(super) fn planar_forward(&mut self, at: At<'_>) {
        self.shape_buffers(self.bound.examples);
        let raw = Raw(self.weights(at));
        let weights = self.planar_weights(raw);
        let partial = RawPanels::new(&mut self.partial);
        let input = &if self.in_batch { &self.batch } else { &self.all }.forward;
        let (units, block) = (self.layers[0].outputs, block_size(self.layers[0].outputs));
        let (activation, arch) = (self.layers[0].activation, self.arch);
        let signs = Signs::room(&mut self.signs, units, input.count());
        share(&self.team, (units, block), units * self.bound.examples * 2, |rows| {
            arch.dispatch(PlanarForward { rows, block, weights, activation, input, partial, signs });
        });
        self.sum_partial_scores(raw, 0..self.bound.examples);
    }

    /// Gradients of a planar network.
    pub(super) fn planar_backward(&mut self, raw: Raw<T>, gradient: SharedSlice<f64>) {
        let weights = self.planar_weights(raw);
        let input = &if self.in_batch { &self.batch } else { &self.all }.forward;
        let (layer, head) = (&self.layers[0], &self.layers[1]);
        let (units, block) = (layer.outputs, block_size(layer.outputs));
        let (activation, arch, cotangent) = (layer.activation, self.arch, &self.cotangent[..]);
        let signs = Signs::room(&mut self.signs, units, input.count());
        share(&self.team, (units, block), units * self.bound.examples * 4, |rows| {
            let at = |offset: usize| gradient.pointer().wrapping_add(offset);
            arch.dispatch(PlanarBackward {
                rows,
                weights,
                activation,
                input,
                cotangent,
                hidden: (!layer.frozen).then(|| at(layer.weight)),
                bias: layer.bias.filter(|_| !layer.frozen).map(at),
                head: (!head.frozen).then(|| at(head.weight)),
                signs,
            });
        });
    }
}
