//! A discrete optimiser under a schedule.

mod process;

use std::ops::Range;

use super::{Advance, Batching, DescentState, DriverError, EpochStart};
use crate::numeric::{LogScaled, RandomStream, StreamState, Streams, log_add_exp};
use crate::objective::Objective;
use crate::observers::StopReason;
use crate::optimisers::Optimiser;
use crate::params::{Parameters, Update, Version};
use crate::schedules::{Review, ReviewPeriod, Schedule, StepContext, TrialOutcome};

/// Descent in progress.
pub struct Descent {
    objective: Objective,
    optimiser: Box<dyn Optimiser>,
    schedule: Box<dyn Schedule>,
    batching: Batching,
    params: Parameters,
    ahead: Parameters,
    before: Vec<f64>,
    margins_before: Vec<f64>,
    gradient: LogScaled,
    step: u64,
    epoch: u64,
    log_time: f64,
    log_loss: f64,
    all_correct: bool,
    /// The parameters that these two were measured at, on all examples.
    measured: Option<Version>,
    order: RandomStream,
    epoch_order: StreamState,
    permutation: Vec<usize>,
    next_batch: usize,
    epoch_start: Option<EpochStart>,
    /// Room for the parameters of an epoch's start, which are many and copied every epoch, and which ones are in it.
    start_room: (Vec<f64>, Option<Version>),
    /// See [`Process::settled_steps`].
    settled: Range<u64>,
}

impl Descent {
    /// Starts at `params`; the order of mini-batches comes from the stream "order".
    pub fn new(
        mut objective: Objective,
        optimiser: Box<dyn Optimiser>,
        schedule: Box<dyn Schedule>,
        batching: Batching,
        params: Vec<f64>,
        streams: &Streams,
    ) -> Result<Self, DriverError> {
        objective.layout().check(&params)?;
        if let Batching::Mini { size } = batching {
            let examples = objective.total_examples();
            if !(1..=examples).contains(&size) {
                return Err(DriverError::BatchSize { size, examples });
            }
            if schedule.review_period() == ReviewPeriod::Step {
                return Err(DriverError::StepReviewOnBatches { size });
            }
        }
        let wishes = optimiser.wishes();
        if wishes.kinks && !objective.tangents().is_ok_and(|model| model.knows_kinks()) {
            return Err(DriverError::NoKinks);
        }
        let mut carrying = Parameters::new(&params);
        if objective.evaluator().bound().knows_metrics
            && let Some(metric) = wishes.metric
        {
            carrying.carry(metric);
        }
        let (length, order) = (params.len(), streams.stream("order"));
        let mut descent = Self {
            batching,
            ahead: Parameters::new(&params),
            before: vec![0.0; length],
            margins_before: Vec::new(),
            gradient: LogScaled::zeros(length),
            step: 0,
            epoch: 0,
            log_time: f64::NEG_INFINITY,
            log_loss: f64::NAN,
            all_correct: false,
            measured: None,
            epoch_order: order.state(),
            order,
            permutation: (0..objective.total_examples()).collect(),
            next_batch: 0,
            epoch_start: None,
            start_room: (Vec::new(), None),
            settled: 0..1,
            objective,
            optimiser,
            schedule,
            params: carrying,
        };
        descent.refresh();
        Ok(descent)
    }

    /// θ.
    pub fn params(&self) -> &[f64] {
        self.params.read()
    }

    /// The objective, for evaluation elsewhere.
    pub fn objective_mut(&mut self) -> &mut Objective {
        &mut self.objective
    }

    /// Everything needed to go on bit for bit.
    pub fn state(&self) -> DescentState {
        DescentState {
            params: self.params.read().to_vec(),
            optimiser: self.optimiser.state(),
            schedule: self.schedule.state(),
            step: self.step,
            epoch: self.epoch,
            log_time: self.log_time,
            full_loss: (self.log_loss, self.all_correct),
            order: (self.epoch_order, self.next_batch),
            epoch_start: self.epoch_start.clone(),
        }
    }

    /// Takes up a state saved by a run with the same settings.
    pub fn restore(&mut self, state: &DescentState) -> Result<(), DriverError> {
        self.objective.layout().check(&state.params)?;
        self.optimiser.restore(&state.optimiser).map_err(DriverError::OptimiserState)?;
        self.schedule.restore(&state.schedule)?;
        self.params.replace(&state.params);
        (self.step, self.epoch, self.log_time) = (state.step, state.epoch, state.log_time);
        (self.log_loss, self.all_correct) = state.full_loss;
        self.measured = None;
        self.epoch_start.clone_from(&state.epoch_start);
        self.settled = self.step..self.step + u64::from(self.epoch_start.is_none());
        self.epoch_order = state.order.0;
        self.order = RandomStream::at(self.epoch_order);
        self.next_batch = state.order.1;
        if let Batching::Mini { size } = self.batching
            && self.next_batch * size >= self.permutation.len()
        {
            return Err(DriverError::BatchSize { size, examples: self.permutation.len() });
        }
        if self.next_batch > 0 {
            self.shuffle();
        }
        Ok(())
    }

    /// Evaluates all examples at the current weights, unless that was the last thing done.
    pub fn refresh(&mut self) {
        self.objective.select(None);
        self.log_loss = self.objective.forward(&self.params).log_loss();
        self.all_correct = self.objective.all_correct();
        self.measured = Some(self.params.version());
    }

    /// A new permutation of the examples, from the current place of the order stream.
    fn shuffle(&mut self) {
        self.permutation.iter_mut().enumerate().for_each(|(i, index)| *index = i);
        self.order.shuffle(&mut self.permutation);
    }

    fn context(&self) -> StepContext {
        let Self { step, epoch, log_loss, all_correct, .. } = *self;
        StepContext { step, epoch, log_loss, all_correct }
    }

    /// Evaluates the examples selected where the optimiser wants its gradient, which is at `ahead` if the answer is
    /// yes, else at `params`.
    fn score_for_gradient(&mut self) -> bool {
        let context = self.context();
        self.optimiser.prepare(&context);
        // who steps by a formula does not look ahead, and then the parameters may stay where the engine keeps them
        let formula = self.update(0.0, 0.0).is_formula();
        let ahead = !formula && self.optimiser.look_ahead(self.params.read(), self.ahead.write());
        self.objective.forward(if ahead { &self.ahead } else { &self.params });
        ahead
    }

    /// The gradient after [`Descent::score_for_gradient`], given its answer.
    fn take_gradient(&mut self, ahead: bool) {
        let at = if ahead { &self.ahead } else { &self.params };
        self.optimiser.subgradient(self.objective.forward(at), at.read(), &mut self.gradient);
    }

    /// The step as a formula, if it is one and can be made while its gradient is made.
    fn formula(&self, ahead: bool, log_step: f64) -> Option<Update> {
        let update = if ahead { Update::Host } else { self.update(self.objective.log_loss(), log_step) };
        update.is_formula().then_some(update)
    }

    /// What the optimiser asks for, as far as the engine can.
    fn update(&self, log_scale: f64, log_step: f64) -> Update {
        let update = self.optimiser.update(log_scale, log_step);
        if matches!(update, Update::Metric(_)) && self.params.metric().is_none() { Update::Host } else { update }
    }

    fn move_by(&mut self, log_step: f64) -> Result<(), DriverError> {
        let update = self.optimiser.update(self.gradient.log_scale, log_step);
        if matches!(update, Update::Along(_) | Update::AgainstSigns(_)) {
            update.make(self.params.write(), &self.gradient.direction);
            return Ok(());
        }
        let context = self.context();
        self.optimiser
            .step(self.params.write(), &self.gradient, &context, log_step)
            .map_err(|source| DriverError::Optimiser { step: self.step + 1, source })
    }

    /// What is wrong with the current numbers, if anything.
    fn trouble(&self) -> Option<StopReason> {
        let trouble = |what: String| Some(StopReason::NotFinite { step: self.step, what });
        if self.log_loss.is_nan() || self.log_loss == f64::INFINITY {
            return trouble(format!("ln L = {}", self.log_loss));
        }
        if self.log_loss == f64::NEG_INFINITY {
            let root = self.objective.has_finite_root();
            return if root {
                Some(StopReason::Stationary)
            } else {
                trouble("ln L = -inf: the margins overflowed".into())
            };
        }
        None
    }

    fn advance_full(&mut self) -> Result<Advance, DriverError> {
        self.refresh();
        if let Some(reason) = self.trouble() {
            return Ok(Advance::Ended(reason));
        }
        let review = self.schedule.may_redo();
        if review {
            self.before.copy_from_slice(self.params.read());
            self.margins_before.clear();
            self.margins_before.extend_from_slice(self.objective.margins());
        }
        let (log_loss_before, all_correct_before) = (self.log_loss, self.all_correct);
        let remembered = review.then(|| self.optimiser.state());
        let ahead = self.score_for_gradient();
        let mut known = None;
        if !review {
            // the gradient is used once
            let log_step = self.schedule.log_step(&self.context());
            if let Some(update) = self.formula(ahead, log_step) {
                let evaluation = self.objective.forward(&self.params);
                if !evaluation.step(&mut self.params, update, &mut self.gradient.direction) {
                    return Ok(Advance::Ended(StopReason::Stationary));
                }
                self.refresh();
                return Ok(self.count_step(log_step));
            }
            known = Some(log_step);
        }
        self.take_gradient(ahead);
        if self.gradient.is_zero() {
            return Ok(Advance::Ended(StopReason::Stationary));
        }
        loop {
            let log_step = match known.take() {
                Some(log_step) => log_step,
                None => self.schedule.log_step(&self.context()),
            };
            self.move_by(log_step)?;
            self.refresh();
            if let Some(state) = &remembered {
                let changes = self.objective.margins().iter().zip(&self.margins_before).map(|(q, old)| (q - old).abs());
                let largest_margin_change =
                    changes.fold(0.0f64, |largest, c| if c > largest || c.is_nan() { c } else { largest });
                let log_loss_after = self.log_loss;
                let review =
                    self.schedule.review(&TrialOutcome { log_loss_before, log_loss_after, largest_margin_change });
                if review != Review::Accept {
                    self.params.replace(&self.before);
                    self.optimiser.restore(state).map_err(DriverError::OptimiserState)?;
                    (self.log_loss, self.all_correct) = (log_loss_before, all_correct_before);
                    if review == Review::GiveUp {
                        return Ok(Advance::Ended(StopReason::ScheduleGaveUp));
                    }
                    continue;
                }
            }
            return Ok(self.count_step(log_step));
        }
    }

    /// Counts a full-batch step that stands.
    fn count_step(&mut self, log_step: f64) -> Advance {
        self.step += 1;
        self.epoch = self.step;
        self.settled = self.step..self.step + 1;
        self.log_time = log_add_exp(self.log_time, log_step);
        self.trouble().map_or(Advance::Moved, Advance::Ended)
    }

    fn advance_mini(&mut self, size: usize) -> Result<Advance, DriverError> {
        let judged = self.schedule.review_period() == ReviewPeriod::Epoch;
        if self.next_batch == 0 {
            // after an epoch that is done again the loss of its first point is known
            if self.measured != Some(self.params.version()) {
                self.refresh();
            }
            if let Some(reason) = self.trouble() {
                return Ok(Advance::Ended(reason));
            }
            self.epoch_order = self.order.state();
            self.shuffle();
            if judged {
                let (mut params, held) = std::mem::take(&mut self.start_room);
                if held != Some(self.params.version()) {
                    params.clear();
                    params.extend_from_slice(self.params.read());
                }
                self.epoch_start = Some(EpochStart {
                    params,
                    optimiser: self.optimiser.state(),
                    step: self.step,
                    log_time: self.log_time,
                });
            }
        }
        let from = self.next_batch * size;
        let to = (from + size).min(self.permutation.len());
        self.objective.select(Some(&self.permutation[from..to]));
        let ahead = self.score_for_gradient();
        let batch_loss = self.objective.log_loss();
        if !judged && (batch_loss.is_nan() || batch_loss == f64::INFINITY) {
            let what = format!("ln L = {batch_loss} on a batch");
            return Ok(Advance::Ended(StopReason::NotFinite { step: self.step, what }));
        }
        let (log_loss_before, all_correct_before) = (self.log_loss, self.all_correct);
        if batch_loss.is_nan() {
            // an attempt that has lost its numbers need not be brought to its end
            self.log_loss = f64::NAN;
        } else {
            let log_step = self.schedule.log_step(&self.context());
            if let Some(update) = self.formula(ahead, log_step) {
                let evaluation = self.objective.forward(&self.params);
                evaluation.step(&mut self.params, update, &mut self.gradient.direction);
            } else {
                self.take_gradient(ahead);
                self.move_by(log_step)?;
            }
            self.step += 1;
            self.settled = self.step..self.step + u64::from(!judged);
            self.log_time = log_add_exp(self.log_time, log_step);
            self.next_batch += 1;
            if to < self.permutation.len() {
                return Ok(Advance::Moved);
            }
            self.refresh();
        }
        self.next_batch = 0;
        self.epoch_order = self.order.state();
        if let Some(start) = self.epoch_start.take() {
            let (log_loss_after, largest_margin_change) = (self.log_loss, f64::INFINITY);
            let outcome = TrialOutcome { log_loss_before, log_loss_after, largest_margin_change };
            match self.schedule.review(&outcome) {
                Review::Accept => {
                    self.settled = start.step + 1..self.step + 1;
                    self.start_room = (start.params, None);
                }
                review => {
                    self.params.replace(&start.params);
                    self.measured = Some(self.params.version());
                    self.optimiser.restore(&start.optimiser).map_err(DriverError::OptimiserState)?;
                    (self.step, self.log_time) = (start.step, start.log_time);
                    self.settled = self.step..self.step;
                    (self.log_loss, self.all_correct) = (log_loss_before, all_correct_before);
                    self.start_room = (start.params, self.measured);
                    if review == Review::GiveUp {
                        return Ok(Advance::Ended(StopReason::ScheduleGaveUp));
                    }
                    return Ok(Advance::Moved);
                }
            }
        }
        self.epoch += 1;
        Ok(self.trouble().map_or(Advance::Moved, Advance::Ended))
    }
}
