//! A norm on some stretches of the flat parameter vector, the frozen rest left out.

use std::ops::Range;

use super::Norm;
use super::face::Elementary;

/// An elementary norm of the trainable entries.
///
/// One stretch is handed on as a slice. Several are first copied next to each other, since the norm sees one vector.
pub(super) struct Window {
    ranges: Vec<Range<usize>>,
    inner: Box<dyn Elementary>,
    /// Room for two inputs and a result; empty when there is one stretch.
    buffers: [Vec<f64>; 3],
}

impl Window {
    /// `ranges` are in order and apart from each other.
    pub(super) fn new(ranges: Vec<Range<usize>>, inner: Box<dyn Elementary>) -> Self {
        let size = if ranges.len() == 1 { 0 } else { ranges.iter().map(Range::len).sum() };
        Self { ranges, inner, buffers: std::array::from_fn(|_| vec![0.0; size]) }
    }

    /// Changes the trainable entries of `v`.
    fn change(&mut self, v: &mut [f64], f: impl FnOnce(&mut dyn Elementary, &mut [f64])) {
        if let [range] = self.ranges.as_slice() {
            return f(&mut *self.inner, &mut v[range.clone()]);
        }
        let buffer = &mut self.buffers[0];
        gather(&self.ranges, v, buffer);
        f(&mut *self.inner, buffer);
        scatter(&self.ranges, buffer, v);
    }
}

impl Norm for Window {
    fn value(&mut self, v: &[f64]) -> f64 {
        self.inner.value(view(&self.ranges, v, &mut self.buffers[0]))
    }

    fn dual(&mut self, g: &[f64]) -> f64 {
        self.inner.dual(view(&self.ranges, g, &mut self.buffers[0]))
    }

    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        clear_outside(self.ranges.iter().cloned(), out);
        if let [range] = self.ranges.as_slice() {
            return self.inner.unit_minimiser(&g[range.clone()], &mut out[range.clone()]);
        }
        let [input, _, result] = &mut self.buffers;
        gather(&self.ranges, g, input);
        let dual = self.inner.unit_minimiser(input, result);
        scatter(&self.ranges, result, out);
        dual
    }

    fn descend(&mut self, params: &mut [f64], g: &[f64], factor: f64, unit: bool, scratch: &mut [f64]) {
        if let [range] = self.ranges.as_slice() {
            let (params, g) = (&mut params[range.clone()], &g[range.clone()]);
            return self.inner.descend(params, g, factor, unit, &mut scratch[range.clone()]);
        }
        let dual = self.unit_minimiser(g, scratch);
        crate::linalg::add_scaled(params, if unit { factor } else { factor * dual }, scratch);
    }

    fn dual_is_largest_entry(&self) -> bool {
        self.inner.dual_is_largest_entry()
    }

    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        clear_outside(self.ranges.iter().cloned(), out);
        if let [range] = self.ranges.as_slice() {
            let (at, target) = (&at[range.clone()], &target[range.clone()]);
            return self.inner.project_subdifferential(at, target, tolerance, &mut out[range.clone()]);
        }
        let [place, wish, result] = &mut self.buffers;
        gather(&self.ranges, at, place);
        gather(&self.ranges, target, wish);
        self.inner.project_subdifferential(place, wish, tolerance, result);
        scatter(&self.ranges, result, out);
    }

    fn project_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.change(v, |norm, v| norm.project_ball(radius, v));
    }

    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.change(v, |norm, v| norm.project_dual_ball(radius, v));
    }
}

/// The trainable entries of `v`, copied only if they are scattered.
fn view<'a>(ranges: &[Range<usize>], v: &'a [f64], buffer: &'a mut [f64]) -> &'a [f64] {
    if let [range] = ranges {
        return &v[range.clone()];
    }
    gather(ranges, v, buffer);
    buffer
}

fn gather(ranges: &[Range<usize>], v: &[f64], buffer: &mut [f64]) {
    let mut start = 0;
    for range in ranges {
        buffer[start..start + range.len()].copy_from_slice(&v[range.clone()]);
        start += range.len();
    }
}

fn scatter(ranges: &[Range<usize>], buffer: &[f64], v: &mut [f64]) {
    let mut start = 0;
    for range in ranges {
        v[range.clone()].copy_from_slice(&buffer[start..start + range.len()]);
        start += range.len();
    }
}

/// Writes 0 wherever no range covers `out`; the ranges are in order.
pub(super) fn clear_outside(ranges: impl Iterator<Item = Range<usize>>, out: &mut [f64]) {
    let mut end = 0;
    for range in ranges {
        out[end..range.start].fill(0.0);
        end = range.end;
    }
    out[end..].fill(0.0);
}
