//! The lowest layer of a network whose inputs are mostly zero, such as images of digits.
//!
//! Both large products of a step then have a sparse factor X (examples × features), which is kept as [`Bundles`] of
//! examples and of features:
//!
//! ```text
//! Zᵀ = X Wᵀ + b  from bundles of examples,     (∂L/∂W)ᵀ = Xᵀ Δᵀ  from bundles of features
//! ```
//!
//! The other factor, Wᵀ or Δᵀ, lies in panels of a few units that stay in the cache while all bundles pass. A step
//! along the gradient moves the weights tile by tile as their gradient is made, and the copy in panels with them: the
//! gradient is never written down, and the next forward pass finds its weights ready. A weight that is not finite does
//! not show in the scores as long as all inputs it meets are zero.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::bundles::{BUNDLE, Bundles, panel_width};
use super::forward::{Activate, After};
use super::raw::{RawPanels, Scratch, transpose_rows, turn};
use super::rounded::round_into;
use super::target::{Step, Target};
use super::{Stage, share};
use crate::linalg::{Aligned, Panels, Real, SharedMatrix, SharedSlice, Team, by_panels, fetch};

/// The largest share of entries that are not zero, and the fewest features, with which bundles are faster than panels.
const DENSITY: f64 = 0.25;
const FEATURES: usize = 64;

/// Features whose gradients are made before they are turned, and the most units of a panel.
const TILE: usize = 32;
const UNITS: usize = 64;

/// Examples in bundles, and the weights of the layer that reads them.
pub(super) struct Sparse<T> {
    /// The examples in use, one after the other, and zeros up to whole bundles of both examples and features.
    rows: Vec<T>,
    count: usize,
    /// Whether they are all there are.
    whole: bool,
    features: usize,
    by_example: Bundles<T>,
    by_feature: Bundles<T>,
    /// Whether `by_feature` are those of `rows`.
    turned: bool,
    /// For each panel of units: Wᵀ, feature by feature, then the biases.
    weights: Aligned<T>,
    /// For each panel of units: the back-signals, example by example.
    signals: Aligned<T>,
}

impl<T: Real> Sparse<T> {
    /// Whether inputs are sparse enough for bundles to be faster than panels.
    pub fn pays(inputs: &SharedMatrix) -> bool {
        let entries = inputs.entries();
        let filled = entries.iter().filter(|x| **x != 0.0).count();
        inputs.cols() >= FEATURES && filled as f64 <= DENSITY * entries.len() as f64
    }

    /// For a layer of so many features and units.
    pub fn new(features: usize, units: usize) -> Self {
        let panels = units.div_ceil(panel_width::<T>());
        Self {
            rows: Vec::new(),
            count: 0,
            whole: false,
            features,
            by_example: Bundles::empty(),
            by_feature: Bundles::empty(),
            turned: false,
            weights: Aligned::zeros(panels * (features + 1) * panel_width::<T>()),
            signals: Aligned::zeros(0),
        }
    }

    /// Numbers from one example of `rows` to the next.
    fn stride(&self) -> usize {
        self.features.next_multiple_of(BUNDLE)
    }

    /// Takes the examples `row(0)`, …, `row(count − 1)` of `source`.
    pub fn take(&mut self, team: &Team, source: &SharedMatrix, count: usize, row: impl Fn(usize) -> usize + Sync) {
        let (stride, features) = (self.stride(), self.features);
        (self.count, self.whole, self.turned) = (count, false, false);
        self.rows.resize(count.next_multiple_of(BUNDLE) * stride, T::default());
        let rows = SharedSlice::new(&mut self.rows);
        share(team, (count.next_multiple_of(BUNDLE), BUNDLE), 4 * count * stride, |examples| {
            for example in examples {
                // SAFETY: every worker writes its own rows.
                let own = unsafe { rows.part(example * stride..(example + 1) * stride) };
                if example < count {
                    round_into(own, source.row(row(example)));
                } else {
                    own.fill(T::default());
                }
            }
        });
        let rows = &self.rows;
        self.by_example.fill((count, features), team, |bundle| {
            let four: [&[T]; BUNDLE] = std::array::from_fn(|i| &rows[(bundle * BUNDLE + i) * stride..][..features]);
            move |k| four.map(|row| row[k])
        });
    }

    /// Takes all examples, unless they are those it has.
    pub fn take_all(&mut self, team: &Team, source: &SharedMatrix) {
        if !self.whole {
            self.take(team, source, source.rows(), |n| n);
            self.whole = true;
        }
    }

    /// Bundles of features of the examples taken.
    fn turn(&mut self, team: &Team) {
        if !self.turned {
            let (rows, stride) = (&self.rows, self.stride());
            self.by_feature.fill((self.features, self.count), team, |bundle| {
                move |n| std::array::from_fn(|i| rows[n * stride + bundle * BUNDLE + i])
            });
            self.turned = true;
        }
    }

    /// Rounds the layer's weights and biases into panels.
    pub fn pack_weights(&mut self, team: &Team, params: &[f64], layer: &Stage) {
        let (features, width) = (self.features, panel_width::<T>());
        let size = (features + 1) * width;
        let panels = SharedSlice::new(&mut self.weights);
        share(team, (layer.outputs.div_ceil(width), 1), 4 * layer.outputs * features, |range| {
            for panel in range {
                // SAFETY: every worker writes its own panels.
                let own = unsafe { panels.part(panel * size..(panel + 1) * size) };
                let units = panel * width..(panel * width + width).min(layer.outputs);
                let mut few = [T::default(); UNITS * TILE];
                for first in (0..features).step_by(TILE) {
                    let count = TILE.min(features - first);
                    for (u, unit) in units.clone().enumerate() {
                        let row = &params[layer.weight + unit * features + first..][..count];
                        few[u * TILE..].iter_mut().zip(row).for_each(|(to, from)| *to = T::from_f64(*from));
                    }
                    let to = own[first * width..(first + count) * width].as_mut_ptr();
                    // SAFETY: `count` rows of `width` numbers lie there.
                    unsafe { turn(few.as_ptr(), TILE, to, width, units.len(), count) };
                }
            }
        });
        self.pack_biases(params, layer);
    }

    pub fn pack_biases(&mut self, params: &[f64], layer: &Stage) {
        let Some(bias) = layer.bias else { return };
        let (features, width) = (self.features, panel_width::<T>());
        let panels = self.weights.chunks_exact_mut((features + 1) * width);
        for (panel, biases) in panels.zip(params[bias..bias + layer.outputs].chunks(width)) {
            panel[features * width..].iter_mut().zip(biases).for_each(|(to, from)| *to = T::from_f64(*from));
        }
    }

    /// z of all units for the examples taken, and what follows; `shape` is that of z.
    pub fn forward(&self, team: &Team, arch: Arch, layer: &Stage, after: After<T>, shape: &Panels<T>) {
        let (sparse, width) = (self, panel_width::<T>());
        let cost = layer.outputs * self.features * self.count / BUNDLE;
        share(team, (layer.outputs.div_ceil(width), 1), cost, |panels| {
            arch.dispatch(Forward { sparse, panels, units: layer.outputs, after, shape });
        });
    }

    /// The gradient of the layer's weights from its back-signals.
    pub fn gradient(&mut self, team: &Team, arch: Arch, layer: &Stage, signals: RawPanels<T>, target: Target<'_, T>) {
        self.turn(team);
        let (features, width) = (self.features, panel_width::<T>());
        let panels = layer.outputs.div_ceil(width);
        self.signals.resize(panels * self.count * width);
        let (by_feature, examples) = (&self.by_feature, self.count);
        let (weights, turned) = (SharedSlice::new(&mut self.weights), SharedSlice::new(&mut self.signals));
        share(team, (panels, 1), layer.outputs * features * examples / BUNDLE, |panels| {
            for panel in panels {
                let (size, rows) = ((features + 1) * width, examples * width);
                // SAFETY: every worker has its own panels.
                let (weights, turned) = unsafe {
                    (weights.part(panel * size..(panel + 1) * size), turned.part(panel * rows..(panel + 1) * rows))
                };
                let units = panel * width..(panel * width + width).min(layer.outputs);
                arch.dispatch(Gradient { by_feature, features, units, signals, turned, weights, target });
            }
        });
    }
}

/// The forward pass over some panels of units.
struct Forward<'a, T: Real> {
    sparse: &'a Sparse<T>,
    panels: Range<usize>,
    units: usize,
    after: After<T>,
    shape: &'a Panels<T>,
}

impl<T: Real> WithSimd for Forward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { sparse, after, shape, .. } = self;
        let (width, z) = (panel_width::<T>(), after.z);
        let Some(last) = shape.count().checked_sub(1) else { return };
        let columns = last * z.width + shape.vectors(last) * T::lanes::<S>();
        let mut tile = Scratch([T::default(); BUNDLE * UNITS]);
        for panel in self.panels {
            let units = panel * width..(panel * width + width).min(self.units);
            let own = &sparse.weights[panel * (sparse.features + 1) * width..][..(sparse.features + 1) * width];
            let biases = &own[sparse.features * width..];
            // stores rows of z as columns, as far as there are columns
            let store = |first: usize, rows: &[T]| {
                let end = (first + rows.len() / width).min(columns);
                for own in by_panels(first..end, z.width) {
                    let from = &rows[(own.start - first) * width..];
                    let to = z.at(own.start / z.width, units.start).wrapping_add(own.start % z.width);
                    // SAFETY: the columns lie inside the panel, and the units are this thread's.
                    unsafe { turn(from.as_ptr(), width, to, z.width, own.len(), units.len()) };
                }
            };
            for bundle in 0..sparse.by_example.count() {
                // SAFETY: a panel of weights has a row for each feature, and one for the biases.
                unsafe {
                    sparse.by_example.product(simd, bundle, own.as_ptr(), biases.as_ptr(), tile.0.as_mut_ptr());
                }
                store(bundle * BUNDLE, &tile.0[..BUNDLE * width]);
            }
            // what pads the examples to whole registers is computed with and must be finite
            (sparse.by_example.count() * BUNDLE..columns).for_each(|example| store(example, biases));
            for panel in 0..shape.count() {
                let vectors = shape.vectors(panel);
                simd.vectorize(Activate { after: &after, row: units.start, panel, rows: units.len(), vectors });
            }
            if let (Some(output), Some(turned)) = (after.output, after.turned) {
                // SAFETY: the units are this thread's.
                unsafe { transpose_rows(units, 0..sparse.count, output, turned) };
            }
        }
    }
}

/// The gradient of one panel of units.
struct Gradient<'a, T: Real> {
    by_feature: &'a Bundles<T>,
    features: usize,
    units: Range<usize>,
    /// The back-signals (units × examples), and room for a panel of them turned.
    signals: RawPanels<T>,
    turned: &'a mut [T],
    /// The units' weights in panels.
    weights: &'a mut [T],
    target: Target<'a, T>,
}

impl<T: Real> WithSimd for Gradient<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { by_feature, features, units, signals, turned, weights, target } = self;
        let (width, count) = (panel_width::<T>(), units.len());
        for (panel, rows) in turned.chunks_mut(signals.width * width).enumerate() {
            // SAFETY: back-signals of these units; `rows` are as many as there are examples in the panel.
            unsafe {
                turn(signals.at(panel, units.start), signals.width, rows.as_mut_ptr(), width, count, rows.len() / width)
            };
        }
        let none = Scratch([T::default(); UNITS]);
        let (mut tile, mut rows) = (Scratch([T::default(); TILE * UNITS]), Scratch([T::default(); UNITS * TILE]));
        for first in (0..features).step_by(TILE) {
            let few = TILE.min(features - first);
            let bundles = first / BUNDLE..(first + few).div_ceil(BUNDLE);
            let moves = match target {
                Target::Step(..) if by_feature.all_zero(bundles.clone()) => continue,
                Target::Step(..) => true,
                Target::Gradient(_) => false,
            };
            if let Target::Step(Step { weights, .. }) = target {
                units.clone().for_each(|unit| fetch(weights.wrapping_add(unit * features + first), few));
            }
            for (bundle, out) in bundles.zip(tile.0.chunks_exact_mut(BUNDLE * width)) {
                // SAFETY: the panel of back-signals has a row for each example.
                unsafe { by_feature.product(simd, bundle, turned.as_ptr(), none.0.as_ptr(), out.as_mut_ptr()) };
            }
            // SAFETY: both tiles are large enough for `few` features of `count` units.
            unsafe { turn(tile.0.as_ptr(), width, rows.0.as_mut_ptr(), TILE, few, count) };
            for (unit, row) in units.clone().zip(rows.0.chunks_exact_mut(TILE)) {
                let at = unit * features + first;
                // SAFETY: these entries of the unit's row are this thread's.
                unsafe {
                    target.put(at, &row[..few]);
                    if let Target::Step(Step { weights, .. }) = target {
                        let moved = std::slice::from_raw_parts(weights.add(at), few);
                        row.iter_mut().zip(moved).for_each(|(to, from)| *to = T::from_f64(*from));
                    }
                }
            }
            if moves {
                let to = weights[first * width..(first + few) * width].as_mut_ptr();
                // SAFETY: `few` rows of `width` numbers lie there.
                unsafe { turn(rows.0.as_ptr(), TILE, to, width, count, few) };
            }
        }
    }
}

#[cfg(test)]
mod tests;
