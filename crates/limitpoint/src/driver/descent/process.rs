//! Descent as the loop sees it.

use std::ops::Range;

use super::Descent;
use crate::diagnostics::Point;
use crate::driver::view::{snapshot, summed};
use crate::driver::{Advance, Batching, DriverError, Process, ProcessState};
use crate::observers::Snapshot;

impl Process for Descent {
    fn params(&self) -> &[f64] {
        self.params.read()
    }

    fn save(&self) -> ProcessState {
        ProcessState::Descent(Box::new(self.state()))
    }

    fn resume(&mut self, state: &ProcessState) -> Result<(), DriverError> {
        match state {
            ProcessState::Descent(state) => self.restore(state),
            ProcessState::Flow(_) => Err(DriverError::StateKind { expected: "a descent", found: "a flow" }),
        }
    }

    fn advance(&mut self) -> Result<Advance, DriverError> {
        let advance = match self.batching {
            Batching::Full => self.advance_full(),
            Batching::Mini { size } => self.advance_mini(size),
        };
        self.failure().map_or(advance, Err)
    }

    fn step(&self) -> u64 {
        self.step
    }

    fn settled_steps(&self) -> Range<u64> {
        self.settled.clone()
    }

    fn log_time(&self) -> f64 {
        self.log_time
    }

    fn log_loss(&self) -> f64 {
        summed(&self.objective, self.log_loss)
    }

    fn show(&mut self, look: &mut dyn FnMut(&Snapshot)) {
        // a snapshot must not disturb the run: what schedules see of the last full loss is put back afterwards
        let kept = (self.log_loss, self.all_correct, self.measured);
        self.objective.select(None);
        let nearest_kink = self.objective.smallest_preactivation(self.params.read());
        self.refresh();
        let here = self.log_loss;
        let state = self.optimiser.state();
        let evaluation = self.objective.forward(&self.params);
        self.optimiser.subgradient(evaluation, self.params.read(), &mut self.gradient);
        // restoring a state just taken cannot fail
        let restored = self.optimiser.restore(&state);
        debug_assert!(restored.is_ok());
        let counters = (self.step, self.epoch, self.log_time);
        let snapshot = snapshot(&self.objective, self.params.read(), &self.gradient, counters, nearest_kink);
        look(&Snapshot { point: Point { log_loss: summed(&self.objective, here), ..snapshot.point }, ..snapshot });
        (self.log_loss, self.all_correct, self.measured) = kept;
    }

    fn failure(&self) -> Option<DriverError> {
        let what = self.objective.failure().or(self.params.failure())?.to_owned();
        Some(DriverError::Engine { step: self.step, what })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::data::{Dataset, Targets};
    use crate::engine::{Bound, Compute, Evaluator, Forward, cpu};
    use crate::linalg::Matrix;
    use crate::losses::LossSpec;
    use crate::models::ModelSpec;
    use crate::numeric::Streams;
    use crate::objective::{Objective, Reduction};
    use crate::optimisers::OptimiserSpec;
    use crate::params::At;
    use crate::schedules::ScheduleSpec;

    /// A device that is lost after a few passes.
    struct Failing {
        inner: Box<dyn Evaluator>,
        bound: Bound,
        left: usize,
    }

    impl Evaluator for Failing {
        fn bound(&self) -> &Bound {
            &self.bound
        }

        fn select(&mut self, rows: Option<&[usize]>) {
            self.inner.select(rows);
            self.bound.resize(self.inner.examples());
        }

        fn score(&mut self, at: At<'_>) {
            self.inner.score(at);
            self.bound.scores.copy_from_slice(&self.inner.bound().scores);
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                self.bound.failure = Some("the device was lost".into());
                self.bound.scores.fill(f64::NAN);
            }
        }

        fn pull_back(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
            self.inner.pull_back(at, cotangent, gradient);
        }
    }

    /// Two examples that pull apart, so that long steps raise the loss.
    fn two_points(left: usize) -> (Dataset, Failing) {
        let inputs = Matrix::from_rows(&[&[1.0, 2.0], &[0.5, 1.0]]);
        let data = Dataset::new("two", inputs, Targets::Binary(vec![1.0, -1.0]), vec![2]).unwrap();
        let inner: Box<dyn Evaluator> = cpu::bind_to(&ModelSpec::Linear, &data, Compute::default()).unwrap();
        let bound = inner.bound().clone();
        (data, Failing { inner, bound, left })
    }

    fn descent(evaluator: Box<dyn Evaluator>, data: &Dataset, schedule: &str, batching: Batching) -> Descent {
        let objective = Objective::around(evaluator, data, &LossSpec::Exponential, Reduction::Sum).unwrap();
        let optimiser = "gradient".parse::<OptimiserSpec>().unwrap().build(objective.layout()).unwrap();
        let schedule = schedule.parse::<ScheduleSpec>().unwrap().build().unwrap();
        Descent::new(objective, optimiser, schedule, batching, vec![0.0; 2], &Streams::new(0)).unwrap()
    }

    /// Counts the passes of all examples.
    struct Counting {
        inner: Failing,
        chosen: bool,
        passes: Arc<AtomicUsize>,
    }

    impl Evaluator for Counting {
        fn bound(&self) -> &Bound {
            self.inner.bound()
        }

        fn select(&mut self, rows: Option<&[usize]>) {
            self.chosen = rows.is_some();
            self.inner.select(rows);
        }

        fn score(&mut self, at: At<'_>) {
            self.passes.fetch_add(usize::from(!self.chosen), Ordering::Relaxed);
            self.inner.score(at);
        }

        fn pull_back(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
            self.inner.pull_back(at, cotangent, gradient);
        }
    }

    #[test]
    fn an_epoch_that_is_done_again_passes_all_examples_once() {
        let (data, failing) = two_points(usize::MAX);
        let passes = Arc::new(AtomicUsize::new(0));
        let counting = Counting { inner: failing, chosen: false, passes: passes.clone() };
        let mut descent = descent(Box::new(counting), &data, "loss-based(initial=4)", Batching::Mini { size: 1 });
        passes.store(0, Ordering::Relaxed);
        let (mut attempts, mut again) = (0, 0);
        while attempts < 40 {
            descent.advance().unwrap();
            let started = descent.step() % 2 == 1;
            attempts += usize::from(!started);
            again += usize::from(!started && descent.settled_steps().is_empty());
        }
        assert!((5..40).contains(&again), "{again}");
        assert_eq!(passes.load(Ordering::Relaxed), attempts, "{again} done again");
    }

    #[test]
    fn an_attempt_that_has_lost_its_numbers_is_not_brought_to_its_end() {
        let (data, failing) = two_points(usize::MAX);
        let counting = Counting { inner: failing, chosen: false, passes: Arc::default() };
        let mut descent =
            descent(Box::new(counting), &data, "loss-based(initial=1e200, shrink=100)", Batching::Mini { size: 1 });
        // the first batch moves the weights so far that the second has no loss; one more turn, and the epoch begins again
        for _ in 0..2 {
            assert!(matches!(descent.advance(), Ok(Advance::Moved)));
        }
        assert_eq!((descent.step(), descent.params()), (0, [0.0; 2].as_slice()));
        assert!(descent.settled_steps().is_empty() && descent.log_loss().is_finite());
        // it is accepted once the rate is short enough
        let tried =
            (0..100_000).take_while(|_| descent.advance().is_ok() && descent.settled_steps().is_empty()).count();
        assert!(tried < 100_000 && descent.log_loss().is_finite(), "{tried}");
    }

    /// Whatever happens around a step, a failure of the engine ends a run.
    #[test]
    fn a_device_that_is_lost_ends_descents_and_flows_wherever_they_are() {
        for left in 1..12 {
            let (data, failing) = two_points(left);
            let mut steps = descent(Box::new(failing), &data, "constant(rate=0.1)", Batching::Mini { size: 1 });
            let rules = [crate::observers::StopRule::Steps { count: 100 }];
            let ended = crate::driver::run(&mut steps, &rules, &mut []);
            assert!(matches!(ended, Err(DriverError::Engine { .. })), "{left}: {ended:?}");
            let (data, failing) = two_points(left);
            let objective =
                Objective::around(Box::new(failing), &data, &LossSpec::Exponential, Reduction::Sum).unwrap();
            let spec = "steepest(norm=l2)".parse::<crate::flows::FlowSpec>().unwrap();
            let ended = crate::driver::FlowRun::new(objective, &spec, Default::default(), &[0.3, 0.1])
                .and_then(|mut flow| crate::driver::run(&mut flow, &rules, &mut []));
            assert!(matches!(ended, Err(DriverError::Engine { .. })), "{left}: {ended:?}");
        }
    }

    #[test]
    fn a_lost_device_is_an_error_with_its_step_and_not_a_number() {
        let (data, failing) = two_points(4);
        let mut descent = descent(Box::new(failing), &data, "constant(rate=0.1)", Batching::Full);
        let steps = (0..9).take_while(|_| descent.advance().is_ok()).count();
        assert!((1..4).contains(&steps), "{steps}");
        let error = descent.advance().unwrap_err().to_string();
        assert!(error.contains("the device was lost") && error.contains("last checkpoint"), "{error}");
    }
}
