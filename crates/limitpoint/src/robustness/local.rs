//! How low the margins can fall in a ball around one input: linear bounds through the layers.
//!
//! All activations of the library are convex. On an interval [l, u] a convex σ lies above its tangents and below its
//! chord, so with the sign of what multiplies it each unit can be replaced by a line, from the scores down to the
//! inputs:
//!
//! ```text
//! s(x) ≥ Σᵢ λᵢ σ(zᵢ) + … ≥ Σᵢ λᵢ (sᵢ zᵢ + tᵢ) + …,     tangent at the middle where λᵢ ≥ 0, chord where λᵢ < 0
//!      ≥ ⟨a, x⟩ + c                                     ⇒   min over ‖x − x₀‖ ≤ r of s ≥ ⟨a, x₀⟩ + c − r ‖a‖₂
//! ```
//!
//! Units that cannot change sign in the ball are exact. The intervals of the first layer are z(x₀) ± r ‖wᵢ‖₂; of a
//! later one the smaller of interval arithmetic and z(x₀) ± ‖wᵢ‖₂ Π‖W‖₂ r. The largest r at which all margins stay
//! positive is found by bisection; that some r is certified does not depend on smaller ones. Zhang et al. 2018,
//! "Efficient Neural Network Robustness Certification with General Activation Functions" (CROWN), section 3, with
//! tangents in the middle.
//!
//! Every bound is a theorem about the numbers in the weights: lines are moved outwards until they hold as rounded, and
//! the rounding of all sums is bounded by γₙ times the sum of the sizes and taken off, and so is what underflow can do
//! to a coefficient, times the largest number that it multiplies.

use super::centre::{ACTIVATION_UNITS, Centre, absolute_dot};
use super::lipschitz::GlobalLipschitz;
use super::rounding::{UNDERFLOW, UNIT, gamma, up};
use super::victim::Label;
use crate::linalg::{Matrix, dot, matmul, norm2};
use crate::models::{Activation, Layered};

/// Halvings of the interval between a certified radius and one that is not.
const BISECTIONS: usize = 12;
/// Halvings in search of a first certified radius.
const HALVINGS: usize = 40;

/// Bounds on the margins of one model in balls.
pub(super) struct LocalBound<'a> {
    model: &'a Layered,
    global: &'a GlobalLipschitz,
    /// Lengths of the rows of every layer, rounded up.
    rows: Vec<Vec<f64>>,
}

/// What is known of one hidden layer in a ball.
struct Range {
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// |W| · (largest sizes of the inputs) + |b|: what sums over the layer's inputs can lose to rounding.
    size: Vec<f64>,
    /// What underflow in the coefficients of the layer's inputs and preactivations can do to a score.
    underflow: f64,
}

/// s z + t.
#[derive(Debug, Clone, Copy)]
struct Line {
    slope: f64,
    offset: f64,
}

impl<'a> LocalBound<'a> {
    pub fn new(model: &'a Layered, global: &'a GlobalLipschitz) -> Self {
        let length = |weight: &Matrix, j: usize| up(norm2(weight.row(j)), weight.cols + 4);
        let rows = model.layers.iter().map(|layer| (0..layer.weight.rows).map(|j| length(&layer.weight, j)).collect());
        Self { model, global, rows: rows.collect() }
    }

    /// A radius up to `most` in which the answer provably stays the same, at least `known`.
    pub fn radius(&self, x: &[f64], label: Label, centre: &Centre, known: f64, most: f64) -> f64 {
        if self.model.layers.len() < 2 || known >= most {
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
        let layers = &self.model.layers;
        let (head, hidden) = (&layers[layers.len() - 1], layers.len() - 1);
        let bias = |j: usize| head.bias.as_ref().map_or(0.0, |bias| bias[j]);
        // rows of the margins over the last hidden layer, what is constant in them, and what rounding may have done
        let (mut rows, mut constants, mut lost): (Vec<f64>, Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new(), Vec::new());
        let reach = self.largest_values(&ranges[hidden - 1]);
        match label {
            Label::Sign(y) => {
                rows.extend(head.weight.data.iter().map(|w| y * w));
                constants.push(y * bias(0));
                lost.push(0.0);
            }
            Label::Class(own) => {
                for j in (0..head.weight.rows).filter(|j| *j != own) {
                    let (a, b) = (head.weight.row(own), head.weight.row(j));
                    rows.extend(a.iter().zip(b).map(|(a, b)| a - b));
                    constants.push(bias(own) - bias(j));
                    let sizes = absolute_dot(a, &reach) + absolute_dot(b, &reach) + bias(own).abs() + bias(j).abs();
                    lost.push(4.0 * UNIT * sizes);
                }
            }
        }
        let count = constants.len();
        for l in (0..hidden).rev() {
            let (range, units) = (&ranges[l], layers[l].weight.rows);
            let slack = gamma(units + layers[l].weight.cols + 16);
            let lines: Vec<[Line; 2]> = (0..units).map(|i| self.lines(range.lower[i], range.upper[i])).collect();
            for c in 0..count {
                let row = &mut rows[c * units..(c + 1) * units];
                let (mut constant, mut sizes) = (constants[c], constants[c].abs());
                for (i, weight) in row.iter_mut().enumerate() {
                    let line = lines[i][usize::from(*weight < 0.0)];
                    let (slope, offset) = (*weight * line.slope, *weight * line.offset);
                    let bias = layers[l].bias.as_ref().map_or(0.0, |bias| bias[i]);
                    sizes += slope.abs() * range.size[i] + offset.abs();
                    constant += offset + if l > 0 { slope * bias } else { 0.0 };
                    *weight = slope;
                }
                constants[c] = constant;
                lost[c] += 2.0 * slack * sizes + range.underflow;
            }
            let inputs = layers[l].weight.cols;
            let mut next = vec![0.0; count * inputs];
            matmul(&mut next, &rows, &layers[l].weight.data, count, units, inputs);
            if l > 0 {
                rows = next;
                continue;
            }
            // the first layer's preactivations are known at the centre; around it they move by ⟨Wᵀ slopes, x − x₀⟩
            for c in 0..count {
                let slopes = &rows[c * units..(c + 1) * units];
                let length = up(norm2(&next[c * inputs..(c + 1) * inputs]), inputs + 4);
                let rounded = absolute_dot(slopes, &self.rows[0]) * slack;
                constants[c] += dot(slopes, &centre.z[0]);
                lost[c] += absolute_dot(slopes, &centre.error[0]) * (1.0 + slack);
                lost[c] += radius * (length + rounded) * (1.0 + slack) + 4.0 * UNIT * constants[c].abs();
            }
        }
        let lowest = constants.iter().zip(&lost).map(|(constant, lost)| constant - lost * (1.0 + 16.0 * UNIT));
        // a NaN proves nothing
        lowest.fold(f64::INFINITY, |least, m| if m < least || m.is_nan() { m } else { least })
    }

    /// Intervals of the preactivations of every hidden layer over the ball.
    fn ranges(&self, x: &[f64], centre: &Centre, radius: f64) -> Vec<Range> {
        let mut ranges: Vec<Range> = Vec::new();
        for (l, layer) in self.model.layers[..self.model.layers.len() - 1].iter().enumerate() {
            let slack = gamma(layer.weight.cols + 16);
            let bias = |i: usize| layer.bias.as_ref().map_or(0.0, |bias| bias[i]);
            let (middle, half) = match ranges.last() {
                None => (x.to_vec(), vec![radius; x.len()]),
                Some(below) => self.values(below),
            };
            let reach: Vec<f64> = middle.iter().zip(&half).map(|(m, h)| m.abs() + h).collect();
            let size: Vec<f64> =
                (0..layer.weight.rows).map(|i| absolute_dot(layer.weight.row(i), &reach) + bias(i).abs()).collect();
            // how far the layer's inputs can move, as a length
            let moved = match (l, &self.global.below) {
                (0, _) => Some(radius),
                (_, Some(below)) => Some(up(radius * below[l - 1], 4)),
                (_, None) => None,
            };
            let (mut lower, mut upper) = (Vec::with_capacity(size.len()), Vec::with_capacity(size.len()));
            for (i, size) in size.iter().enumerate() {
                let around = moved.map(|moved| {
                    let reach = (self.rows[l][i] * moved + centre.error[l][i]) * (1.0 + 8.0 * UNIT) + UNDERFLOW;
                    let (z, reach) = (centre.z[l][i], reach + 2.0 * UNIT * (centre.z[l][i].abs() + reach));
                    [z - reach, z + reach]
                });
                let apart = (l > 0).then(|| {
                    let row = layer.weight.row(i);
                    let z = dot(row, &middle) + bias(i);
                    let reach = absolute_dot(row, &half) * (1.0 + slack) + 2.0 * slack * size + UNDERFLOW;
                    [z - reach, z + reach]
                });
                let [low, high] = match (around, apart) {
                    (Some([a, b]), Some([c, d])) => [a.max(c), b.min(d)],
                    (Some(one), None) | (None, Some(one)) => one,
                    (None, None) => [f64::NEG_INFINITY, f64::INFINITY],
                };
                lower.push(low);
                upper.push(high);
            }
            let underflow = UNDERFLOW * (1.0 + size.iter().chain(&reach).sum::<f64>());
            ranges.push(Range { lower, upper, size, underflow });
        }
        ranges
    }

    /// Middles and half widths of intervals that hold σ(z).
    fn values(&self, range: &Range) -> (Vec<f64>, Vec<f64>) {
        let one = |(l, u): (&f64, &f64)| {
            let (a, b) = (self.model.activation.value(*l), self.model.activation.value(*u));
            // a convex function is largest at an end; the smallest value, if inside, is that at 0
            let least = if *l < 0.0 && *u > 0.0 { self.model.activation.value(0.0).min(a).min(b) } else { a.min(b) };
            let most = a.max(b);
            let half = 0.5 * (most - least) + ACTIVATION_UNITS * (least.abs() + most.abs());
            (0.5 * (most + least), half * (1.0 + 4.0 * UNIT) + UNDERFLOW)
        };
        range.lower.iter().zip(&range.upper).map(one).unzip()
    }

    /// The largest |σ(z)| in the ball.
    fn largest_values(&self, range: &Range) -> Vec<f64> {
        let (middle, half) = self.values(range);
        middle.iter().zip(&half).map(|(m, h)| m.abs() + h).collect()
    }

    /// A line below σ on [l, u], and one above.
    fn lines(&self, l: f64, u: f64) -> [Line; 2] {
        let activation = self.model.activation;
        if activation == Activation::Identity {
            return [Line { slope: 1.0, offset: 0.0 }; 2];
        }
        let (low, high, middle) = (activation.value(l), activation.value(u), 0.5 * (l + u));
        let tangent = activation.slope(middle);
        let chord = if u > l { (high - low) / (u - l) } else { tangent };
        let size = |slope: f64| low.abs() + high.abs() + slope.abs() * (l.abs() + u.abs());
        let room = |slope: f64| ACTIVATION_UNITS * size(slope) + UNDERFLOW;
        let kinked = activation.kink().is_some();
        // the two pieces of a kinked function are lines through 0, and hold without rounding
        let below = if kinked { 0.0 } else { activation.value(middle) - tangent * middle - room(tangent) };
        let exact = kinked && (l >= 0.0 || u <= 0.0);
        let above = if exact {
            Line { slope: tangent, offset: 0.0 }
        } else {
            // any slope will do if the offset covers both ends, because σ(z) − slope · z is convex
            Line { slope: chord, offset: (low - chord * l).max(high - chord * u) + room(chord) }
        };
        [Line { slope: tangent, offset: below }, above]
    }
}
