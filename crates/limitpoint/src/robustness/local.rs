//! How low the margins can fall in a ball around one input: linear bounds through the maps.
//!
//! From the scores down to the inputs every unit of an activation, and every window of a pool, is replaced by a line
//! below or above it (`lines.rs`), by the sign of what multiplies it:
//!
//! ```text
//! s(x) ≥ Σᵢ λᵢ σ(zᵢ) + … ≥ Σᵢ λᵢ (sᵢ zᵢ + tᵢ) + …,     tangent at the middle where λᵢ ≥ 0, chord where λᵢ < 0
//!      ≥ ⟨a, x⟩ + c                                     ⇒   min over ‖x − x₀‖ ≤ r of s ≥ ⟨a, x₀⟩ + c − r ‖a‖₂
//! ```
//!
//! Units that cannot change sign in the ball are exact, and so are windows whose largest member is certain. The
//! intervals of what the first map gives are z(x₀) ± r ‖wᵢ‖₂; of a later one the smaller of interval arithmetic and
//! z(x₀) ± ‖wᵢ‖₂ Π‖W‖₂ r. The largest r at which all margins stay positive is found by bisection; that some r is
//! certified does not depend on smaller ones. Zhang et al. 2018, "Efficient Neural Network Robustness Certification with
//! General Activation Functions" (CROWN), section 3, with tangents in the middle; Boopathy et al. 2019, "CNN-Cert", for
//! convolutions and pools.
//!
//! Every bound is a theorem about the numbers in the weights: lines are moved outwards until they hold as rounded, and
//! the rounding of all sums is bounded by γₙ times the sum of the sizes and taken off, and so is what underflow can do
//! to a coefficient, times the largest number that it multiplies.

use super::centre::{Centre, absolute_dot};
use super::lines::{Largest, activated, largest, lines};
use super::lipschitz::GlobalLipschitz;
use super::rounding::{UNDERFLOW, UNIT, gamma, up};
use super::victim::Label;
use crate::linalg::{dot, norm2};
use crate::models::{Activation, Affine, Layered, Map, PoolMap, Pooling};

/// Halvings of the interval between a certified radius and one that is not.
const BISECTIONS: usize = 12;
/// Halvings in search of a first certified radius.
const HALVINGS: usize = 40;

/// Bounds on the margins of one model in balls.
pub(super) struct LocalBound<'a> {
    model: &'a Layered,
    global: &'a GlobalLipschitz,
    /// Lengths of the rows of every affine map, rounded up; nothing for the others.
    rows: Vec<Vec<f64>>,
}

/// What is known in a ball of the numbers that a map reads.
struct Range {
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// The largest sizes.
    reach: Vec<f64>,
}

impl Range {
    fn new(lower: Vec<f64>, upper: Vec<f64>) -> Self {
        // a NaN is kept: it must not pass for a size
        let size = |(l, u): (&f64, &f64)| if l.is_nan() || u.is_nan() { f64::NAN } else { l.abs().max(u.abs()) };
        let reach = lower.iter().zip(&upper).map(size).collect();
        Self { lower, upper, reach }
    }

    /// Middles and half widths of intervals that hold these.
    fn middles(&self) -> (Vec<f64>, Vec<f64>) {
        let one = |(l, u): (&f64, &f64)| (0.5 * (l + u), 0.5 * (u - l) + 4.0 * UNIT * (l.abs() + u.abs()) + UNDERFLOW);
        self.lower.iter().zip(&self.upper).map(one).unzip()
    }
}

/// Linear functions of the numbers between two maps that margins are not below: rows, constants, and what rounding may
/// have done.
struct Bounds {
    rows: Vec<f64>,
    constants: Vec<f64>,
    lost: Vec<f64>,
}

impl<'a> LocalBound<'a> {
    pub fn new(model: &'a Layered, global: &'a GlobalLipschitz) -> Self {
        let lengths = |affine: &Affine| {
            let weight = &affine.weight;
            (0..weight.rows).map(|j| up(norm2(weight.row(j)), weight.cols + 4)).collect()
        };
        let of = |map: &Map| if let Map::Affine(affine) = map { lengths(affine) } else { Vec::new() };
        Self { model, global, rows: model.maps.iter().map(of).collect() }
    }

    /// A radius up to `most` in which the answer provably stays the same, at least `known`.
    pub fn radius(&self, x: &[f64], label: Label, centre: &Centre, known: f64, most: f64) -> f64 {
        if self.model.maps.len() < 2 || known >= most {
            return known;
        }
        let holds = |radius: f64| self.lowest_margin(x, label, centre, radius) > 0.0;
        if holds(most) {
            return most;
        }
        let (mut lower, mut upper) = (known, most);
        for _ in 0..HALVINGS {
            if lower > 0.0 {
                break;
            }
            upper *= 0.5;
            if holds(upper) {
                (lower, upper) = (upper, 2.0 * upper);
            }
        }
        for _ in 0..if lower > 0.0 { BISECTIONS } else { 0 } {
            let middle = (lower * upper).sqrt();
            if holds(middle) {
                lower = middle;
            } else {
                upper = middle;
            }
        }
        lower
    }

    /// A number that no margin of an input within `radius` of x is below.
    pub fn lowest_margin(&self, x: &[f64], label: Label, centre: &Centre, radius: f64) -> f64 {
        let ranges = self.ranges(x, centre, radius);
        let mut bounds = Bounds::of_margins(label, self.model.outputs());
        for (map, range) in self.model.maps.iter().zip(&ranges).rev() {
            match map {
                Map::Affine(affine) => bounds.through_affine(affine, range),
                Map::Activation(activation) => bounds.through_activation(*activation, range),
                Map::Pool(pool) => bounds.through_pool(pool, range),
            }
        }
        // what was lost is a sum over the maps
        let (slack, sums) = (gamma(x.len() + 16), gamma(4 * ranges.len() + 16));
        let lowest = bounds.rows.chunks_exact(x.len()).zip(bounds.constants.iter().zip(&bounds.lost));
        let lowest = lowest.map(|(row, (constant, lost))| {
            let sizes = constant.abs() + row.iter().zip(x).map(|(a, x)| (a * x).abs()).sum::<f64>();
            let fall = radius * up(norm2(row), x.len() + 4) * (1.0 + slack);
            constant + dot(row, x) - (lost + fall + 2.0 * slack * sizes + UNDERFLOW) * (1.0 + sums)
        });
        // a NaN proves nothing
        lowest.fold(f64::INFINITY, |least, m| if m < least || m.is_nan() { m } else { least })
    }

    /// Intervals of what every map reads over the ball.
    fn ranges(&self, x: &[f64], centre: &Centre, radius: f64) -> Vec<Range> {
        let outwards = |x: &f64| radius + 4.0 * UNIT * (x.abs() + radius);
        let (lower, upper) = x.iter().map(|x| (x - outwards(x), x + outwards(x))).unzip();
        let mut ranges = vec![Range::new(lower, upper)];
        for (k, map) in self.model.maps[..self.model.maps.len() - 1].iter().enumerate() {
            let range = &ranges[k];
            let pairs = range.lower.iter().zip(&range.upper);
            let (lower, upper) = match map {
                Map::Affine(affine) => self.affine_range(k, affine, range, centre, radius),
                Map::Activation(activation) => {
                    pairs.map(|(l, u)| activated(*activation, *l, *u)).map(|[l, u]| (l, u)).unzip()
                }
                Map::Pool(pool) => pooled(pool, range),
            };
            ranges.push(Range::new(lower, upper));
        }
        ranges
    }

    /// Intervals of z = W a + b: around the centre as far as the input of the map can move in length, and from the
    /// intervals of the numbers it reads.
    fn affine_range(
        &self,
        k: usize,
        affine: &Affine,
        range: &Range,
        centre: &Centre,
        radius: f64,
    ) -> (Vec<f64>, Vec<f64>) {
        let slack = gamma(affine.terms() + 16);
        let moved = self.global.below.as_ref().map_or(f64::INFINITY, |below| up(radius * below[k], 4));
        let moved = if k == 0 { radius } else { moved };
        let apart = (k > 0).then(|| {
            let (middle, half) = range.middles();
            (affine.apply(&middle), affine.absolute_product(&half), affine.sizes(&range.reach))
        });
        let (centre, error) = (&centre.values[k], &centre.error[k]);
        let one = |i: usize| {
            let length = self.rows[k][i / affine.places()];
            let reach = (length * moved + error[i]) * (1.0 + 8.0 * UNIT) + UNDERFLOW;
            let reach = reach + 2.0 * UNIT * (centre[i].abs() + reach);
            let around = (centre[i] - reach, centre[i] + reach);
            match &apart {
                None => around,
                Some((z, half, size)) => {
                    let reach = half[i] * (1.0 + slack) + 2.0 * slack * size[i] + UNDERFLOW;
                    ((z[i] - reach).max(around.0), (z[i] + reach).min(around.1))
                }
            }
        };
        (0..affine.outputs()).map(one).unzip()
    }
}

/// Intervals of the windows of a pool.
fn pooled(pool: &PoolMap, range: &Range) -> (Vec<f64>, Vec<f64>) {
    let (members, slack) = (pool.members(), gamma(pool.size() + 4));
    let largest = |ends: &[f64], window: &[u32]| {
        let keep = |most: f64, end: f64| if end > most || end.is_nan() { end } else { most };
        window.iter().map(|member| ends[*member as usize]).fold(f64::NEG_INFINITY, keep)
    };
    let mean = |ends: &[f64], window: &[u32]| {
        window.iter().map(|member| ends[*member as usize]).sum::<f64>() / window.len() as f64
    };
    let one = |window: &[u32]| match pool.pooling {
        Pooling::Max => (largest(&range.lower, window), largest(&range.upper, window)),
        Pooling::Average => {
            let room = 2.0 * slack * mean(&range.reach, window) + UNDERFLOW;
            (mean(&range.lower, window) - room, mean(&range.upper, window) + room)
        }
    };
    members.chunks_exact(pool.size()).map(one).unzip()
}

impl Bounds {
    /// The margins themselves, as rows over the scores.
    fn of_margins(label: Label, outputs: usize) -> Self {
        let mut rows = Vec::new();
        match label {
            Label::Sign(y) => rows.push(y),
            Label::Class(own) => {
                for j in (0..outputs).filter(|j| *j != own) {
                    rows.extend((0..outputs).map(|k| f64::from(u8::from(k == own)) - f64::from(u8::from(k == j))));
                }
            }
        }
        let count = rows.len() / outputs;
        Self { rows, constants: vec![0.0; count], lost: vec![0.0; count] }
    }

    /// Λ(W a + b) = (ΛW) a + Λb.
    fn through_affine(&mut self, affine: &Affine, range: &Range) {
        let (outputs, size) = (affine.outputs(), affine.sizes(&range.reach));
        let slack = gamma(outputs + affine.terms() + 16);
        let underflow = UNDERFLOW * (1.0 + size.iter().chain(&range.reach).sum::<f64>());
        for (c, row) in self.rows.chunks_exact(outputs).enumerate() {
            let sizes = self.constants[c].abs() + absolute_dot(row, &size);
            if affine.bias.is_some() {
                self.constants[c] += row.iter().enumerate().map(|(i, weight)| weight * affine.bias_at(i)).sum::<f64>();
            }
            self.lost[c] += 2.0 * slack * sizes + underflow;
        }
        self.rows = affine.pull_back(&self.rows, self.constants.len());
    }

    /// Every unit becomes a line.
    fn through_activation(&mut self, activation: Activation, range: &Range) {
        let units = range.lower.len();
        let slack = gamma(units + 16);
        let underflow = UNDERFLOW * (1.0 + range.reach.iter().sum::<f64>());
        let all: Vec<_> = range.lower.iter().zip(&range.upper).map(|(l, u)| lines(activation, *l, *u)).collect();
        for (c, row) in self.rows.chunks_exact_mut(units).enumerate() {
            let (mut constant, mut sizes) = (self.constants[c], self.constants[c].abs());
            for ((weight, both), reach) in row.iter_mut().zip(&all).zip(&range.reach) {
                let line = both[usize::from(*weight < 0.0)];
                let (slope, offset) = (*weight * line.slope, *weight * line.offset);
                sizes += slope.abs() * reach + offset.abs();
                constant += offset;
                *weight = slope;
            }
            self.constants[c] = constant;
            self.lost[c] += 2.0 * slack * sizes + underflow;
        }
    }

    /// Every window becomes one of its members, a sum of some of them, or their mean.
    fn through_pool(&mut self, pool: &PoolMap, range: &Range) {
        let (outputs, features, members) = (pool.outputs(), pool.features(), pool.members());
        let windows: Vec<&[u32]> = members.chunks_exact(pool.size()).collect();
        let bounds: Vec<Largest> = match pool.pooling {
            Pooling::Max => windows.iter().map(|window| largest(window, &range.lower, &range.upper)).collect(),
            Pooling::Average => {
                let share = 1.0 / pool.size() as f64;
                let mean = |window: &[u32]| window.iter().map(|member| (*member as usize, share)).collect();
                windows.iter().map(|window| Largest { below: 0, above: mean(window), offset: 0.0 }).collect()
            }
        };
        let slack = gamma(outputs + pool.size() + 16);
        let underflow = UNDERFLOW * (1.0 + range.reach.iter().sum::<f64>());
        let mut next = vec![0.0; self.constants.len() * features];
        for (c, (row, next)) in self.rows.chunks_exact(outputs).zip(next.chunks_exact_mut(features)).enumerate() {
            let (mut constant, mut sizes) = (self.constants[c], self.constants[c].abs());
            for (weight, bound) in row.iter().zip(&bounds) {
                if pool.pooling == Pooling::Max && *weight >= 0.0 {
                    next[bound.below] += weight;
                    sizes += weight * range.reach[bound.below];
                    continue;
                }
                for (member, slope) in &bound.above {
                    next[*member] += weight * slope;
                    sizes += (weight * slope).abs() * range.reach[*member];
                }
                constant += weight * bound.offset;
                sizes += (weight * bound.offset).abs();
            }
            self.constants[c] = constant;
            self.lost[c] += 2.0 * slack * sizes + underflow;
        }
        self.rows = next;
    }
}
