//! Looking into a network of images: slopes at kinks, the nearest kink, what a kernel sees.

use super::{ImageNetwork, Node, tells_its_slope};
use crate::engine::Evaluator;
use crate::linalg::Real;
use crate::params::At;

/// Examples whose preactivations are looked at together.
const AT_ONCE: usize = 64;

impl<T: Real> ImageNetwork<T> {
    /// The examples whose slopes are set.
    pub(super) fn weighed_examples(&self) -> Vec<usize> {
        (0..self.weighed.len()).filter(|n| !self.weighed[*n].is_empty()).collect()
    }

    /// A gradient with the slopes that are set: the examples that have any go number by number, the others as always.
    pub(super) fn pull_back_weighed(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        let (examples, outputs) = (self.weighed_examples(), self.bound.outputs);
        let weighed = std::mem::take(&mut self.weighed);
        let mut others = cotangent.to_vec();
        examples.iter().for_each(|n| others[n * outputs..(n + 1) * outputs].fill(0.0));
        self.pull_back(at, &others, gradient);
        self.weighed = weighed;
        for n in examples {
            self.plain_gradient(at.entries(), n, &cotangent[n * outputs..(n + 1) * outputs], gradient);
        }
    }

    /// min |z| over all preactivations with a kink that any step can move: not where a patch is zero.
    pub(super) fn smallest_signal(&mut self, params: &[f64]) -> f64 {
        let lost = |activation| tells_its_slope(activation) && activation != crate::models::Activation::Identity;
        let kept: Vec<usize> = (0..self.links.len()).filter(|l| lost(self.links[*l].activation)).collect();
        let few = self.piece.min(AT_ONCE);
        for l in &kept {
            self.links[*l].z = Some(self.links[*l].frame.room(few));
        }
        self.pack(params.into());
        let (mut smallest, examples) = (f64::INFINITY, self.bound.examples);
        for first in (0..examples).step_by(few) {
            let range = first..(first + few).min(examples);
            self.up(params.into(), range.clone());
            for l in (0..self.links.len()).filter(|l| self.links[*l].activation.kink().is_some()) {
                smallest = smallest.min(self.smallest_of(l, range.len()));
            }
            smallest = smallest.min(self.tail.smallest_signal(range.len()));
        }
        for l in kept {
            self.links[l].z = None;
        }
        self.held = None;
        smallest
    }

    /// min |z| of one layer over the examples that are there.
    fn smallest_of(&self, l: usize, examples: usize) -> f64 {
        let Some(z) = &self.links[l].z else { return f64::INFINITY };
        let (frame, mut smallest) = (self.links[l].frame, f64::INFINITY);
        for (n, pixel) in (0..examples).flat_map(|n| (0..frame.pixels()).map(move |pixel| (n, pixel))) {
            let channels = &z[frame.pixel(n, pixel)..][..frame.channels];
            let least = channels.iter().map(|z| z.to_f64().abs()).fold(f64::INFINITY, f64::min);
            if least < smallest && !(least == 0.0 && self.never_moves(l, n, pixel)) {
                smallest = least;
            }
        }
        smallest
    }

    /// Whether a kernel without biases sees nothing but zeros at this pixel.
    fn never_moves(&self, l: usize, n: usize, pixel: usize) -> bool {
        let Node::Conv(conv) = &self.links[l].node else { return false };
        let mut patch = vec![0.0; self.patch_length(l)];
        self.patch(l, n, pixel, &mut patch);
        conv.place.bias.is_none() && patch.iter().all(|x| *x == 0.0)
    }

    /// Entries of a patch of convolution `l`; none for a pool.
    pub(super) fn patch_length(&self, l: usize) -> usize {
        match &self.links[l].node {
            Node::Conv(conv) => conv.input.channels * conv.window.size[0] * conv.window.size[1],
            Node::Pool(_) => 0,
        }
    }

    /// The patch that convolution `l` sees at an output pixel of an example that is there, by (i, j, c).
    pub(super) fn patch(&self, l: usize, n: usize, pixel: usize, to: &mut [f64]) {
        let Node::Conv(conv) = &self.links[l].node else { return };
        let input = if l > 0 { &self.links[l - 1].output } else { &self.input };
        let (window, frame) = (&conv.window, &conv.input);
        let corner = |side: usize, at: usize| (at * window.stride) as isize - window.zeros[side] as isize;
        let start = frame.at(n, corner(0, pixel / conv.output.width), corner(1, pixel % conv.output.width));
        let entries = (0..window.size[0]).flat_map(|i| (0..window.size[1]).map(move |j| (i, j)));
        for ((i, j), to) in entries.zip(to.chunks_exact_mut(frame.channels)) {
            let from = start + i * frame.row() + j * frame.stride;
            to.iter_mut().zip(&input[from..]).for_each(|(to, value)| *to = value.to_f64());
        }
    }
}
