//! Steps of image networks whose weights move while their gradient is made or put in order: it is neither written down
//! nor read again, and the copies of dense weights in single precision move with them.

use super::ImageNetwork;
use crate::engine::cpu::clear_frozen;
use crate::engine::cpu::dense::target::{Seen, Step, Target};
use crate::linalg::Real;
use crate::params::{Parameters, Update};

impl<T: Real> ImageNetwork<T> {
    /// Whether all examples are there, and no slopes are set at kinks.
    pub(super) fn can_step_in_one_pass(&self) -> bool {
        self.held == Some(0..self.bound.examples) && self.weighed.iter().all(Vec::is_empty)
    }

    /// A step over examples that are all there, whose tail moves while its gradient is made.
    pub(super) fn step_in_one_pass(
        &mut self,
        params: &mut Parameters,
        cotangent: &[f64],
        update: Update,
        scratch: &mut [f64],
    ) -> bool {
        assert_eq!(cotangent.len(), self.bound.examples * self.bound.outputs, "one cotangent per score");
        clear_frozen(&self.bound.layout, scratch);
        let (images, dense) = params.write().split_at_mut(self.dense);
        let (_, above) = scratch.split_at_mut(self.dense);
        let moved = self.tail.step_given(dense, cotangent, update, above, &mut self.below);
        self.pull_image_signals(self.bound.examples);
        let seen = Seen::default();
        let step = Step { weights: images.as_mut_ptr(), update, seen: &seen, copy: None };
        self.gather(self.bound.examples, Target::Step(step));
        self.tail.moved_to(params.version());
        self.held = None;
        moved || seen.any()
    }
}
