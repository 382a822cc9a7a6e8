//! A flow as a process.

use super::view::{snapshot, summed};
use super::{Advance, DriverError, Process, ProcessState};
use crate::flows::{Flow, FlowSpec, Tolerance};
use crate::objective::Objective;
use crate::observers::{Snapshot, StopReason};

/// A flow with its objective.
pub struct FlowRun {
    objective: Objective,
    flow: Flow,
}

impl FlowRun {
    /// Starts a flow at `params`.
    pub fn new(
        mut objective: Objective,
        spec: &FlowSpec,
        tolerance: Tolerance,
        params: &[f64],
    ) -> Result<Self, DriverError> {
        objective.layout().check(params)?;
        let flow = Flow::new(spec, tolerance, &mut objective, params)?;
        Ok(Self { objective, flow })
    }

    /// The flow itself: time, drift, parameters.
    pub fn flow_mut(&mut self) -> &mut Flow {
        &mut self.flow
    }
}

impl Process for FlowRun {
    fn params(&self) -> &[f64] {
        self.flow.params()
    }

    fn save(&self) -> ProcessState {
        ProcessState::Flow(Box::new(self.flow.state()))
    }

    fn resume(&mut self, state: &ProcessState) -> Result<(), DriverError> {
        match state {
            ProcessState::Flow(state) => Ok(self.flow.restore(state)?),
            ProcessState::Descent(_) => Err(DriverError::StateKind { expected: "a flow", found: "a descent" }),
        }
    }

    fn advance(&mut self) -> Result<Advance, DriverError> {
        if self.flow.log_loss() == f64::NEG_INFINITY {
            return Ok(Advance::Ended(StopReason::Stationary));
        }
        let advance = self.flow.advance(&mut self.objective);
        // a flow whose engine fails stalls on numbers that are none
        self.failure().map_or_else(|| Ok(advance.map(|()| Advance::Moved)?), Err)
    }

    fn step(&self) -> u64 {
        self.flow.steps().0
    }

    fn log_time(&self) -> f64 {
        self.flow.log_time()
    }

    fn log_loss(&self) -> f64 {
        summed(&self.objective, self.flow.log_loss())
    }

    fn show(&mut self, look: &mut dyn FnMut(&Snapshot)) {
        let counters = (self.step(), self.step(), self.log_time());
        // the flow's gradient belongs to its last evaluation, which is the current point
        let nearest_kink = self.objective.smallest_preactivation(self.flow.params());
        self.objective.forward(self.flow.params());
        look(&snapshot(&self.objective, self.flow.params(), self.flow.gradient(), counters, nearest_kink));
    }

    fn failure(&self) -> Option<DriverError> {
        let what = self.objective.failure()?.to_owned();
        Some(DriverError::Engine { step: self.step(), what })
    }
}
