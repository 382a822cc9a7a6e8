//! One optimiser until an event, another after it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Optimiser, OptimiserError, OptimiserState, Wishes};
use crate::numeric::LogScaled;
use crate::objective::Evaluation;
use crate::schedules::StepContext;

/// When to switch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// Every training example is classified correctly (A.fig1switch).
    PerfectAccuracy,
    /// The loss is below exp(`log_loss`).
    LogLossBelow {
        /// Natural logarithm of the threshold.
        log_loss: f64,
    },
    /// This many steps were made.
    Steps {
        /// Number of steps of the first optimiser.
        count: u64,
    },
}

impl Event {
    fn happened(self, context: &StepContext) -> bool {
        match self {
            Self::PerfectAccuracy => context.all_correct,
            Self::LogLossBelow { log_loss } => context.log_loss < log_loss,
            Self::Steps { count } => context.step >= count,
        }
    }
}

/// Runs `first` until the event, then `second` from a fresh state with step sizes multiplied by `rate_factor`.
///
/// The event is looked for before each step's gradient is taken and stays remembered.
pub(super) struct Switch {
    pub first: Box<dyn Optimiser>,
    pub second: Box<dyn Optimiser>,
    pub event: Event,
    pub log_rate_factor: f64,
    pub switched: bool,
}

impl Switch {
    fn active(&mut self) -> &mut dyn Optimiser {
        if self.switched { &mut *self.second } else { &mut *self.first }
    }
}

impl Optimiser for Switch {
    fn prepare(&mut self, context: &StepContext) {
        self.switched |= self.event.happened(context);
        self.active().prepare(context);
    }

    fn look_ahead(&mut self, params: &[f64], out: &mut [f64]) -> bool {
        self.active().look_ahead(params, out)
    }

    fn wishes(&self) -> Wishes {
        // one metric serves one of two optimisers only: both move on the host
        Wishes { kinks: self.first.wishes().kinks || self.second.wishes().kinks, metric: None }
    }

    fn subgradient(&mut self, evaluation: Evaluation<'_>, params: &[f64], gradient: &mut LogScaled) {
        self.active().subgradient(evaluation, params, gradient);
    }

    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        context: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        let log_step = log_step + if self.switched { self.log_rate_factor } else { 0.0 };
        self.active().step(params, gradient, context, log_step)
    }

    fn displaced(&mut self, params: &[f64]) {
        self.active().displaced(params);
    }

    fn report(&mut self) -> Vec<(&'static str, f64)> {
        self.active().report()
    }

    fn state(&self) -> OptimiserState {
        OptimiserState::new("switch")
            .with_number("switched", f64::from(u8::from(self.switched)))
            .with_nested("first", &self.first.state())
            .with_nested("second", &self.second.state())
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check("switch")?;
        self.switched = state.number("switched")? != 0.0;
        let (first, second) = (self.first.state().optimiser, self.second.state().optimiser);
        self.first.restore(&state.nested("first", &first))?;
        self.second.restore(&state.nested("second", &second))
    }
}
