//! A training said in a few calls.

use std::f64::consts::LN_10;
use std::sync::Arc;

use super::{
    CertificateRule, Recorder, RunningTraining, Setup, TrainedRun, Trainer, TrainingError, TrainingState, default_loss,
};
use crate::data::Dataset;
use crate::diagnostics::{Instrument, InstrumentSpec};
use crate::driver::Batching;
use crate::engine::{Device, Precision};
use crate::flows::{FlowSpec, Tolerance};
use crate::losses::LossSpec;
use crate::models::{Initialiser, ModelSpec};
use crate::norms::NormSpec;
use crate::objective::{Objective, Reduction};
use crate::observers::{Continue, Observer, Snapshot, Spacing, StopRule};
use crate::optimisers::OptimiserSpec;
use crate::schedules::ScheduleSpec;

/// Data and all that is to be done with them; nothing is built or computed before it is run.
///
/// Everything but data and model has a default, listed at [`Setup`]. Where a specification is asked for, the text that
/// the command line uses for it will do: `sign`, `mirror(potential=entropy)`, `constant(rate=0.1)`. Rules that end the
/// run add up, whichever holds first; anything else that is said twice holds as it was said last.
///
/// ```
/// use limitpoint::prelude::*;
/// let data = Gaussians { count: 20, dimension: 5, margin: 1.0, ..Default::default() }.generate(&Streams::new(1))?.train;
/// let training = Training::new(&data, ModelSpec::Linear)?
///     .loss("exponential")?
///     .optimiser("coordinate")?
///     .initialiser("constant(value=0)")?
///     .until_log10_loss(-400.0);
/// let run = training.run()?;
/// assert!(run.certify("l1")?.is_certified() && !run.certify("linf")?.is_certified());
/// assert!(run.margin("l1")? > 0.0);
/// # Ok::<(), limitpoint::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    data: Arc<Dataset>,
    setup: Setup,
    record: Option<Record>,
    path: bool,
}

/// What is recorded.
#[derive(Debug, Clone, PartialEq)]
struct Record {
    spacing: Spacing,
    probe: InstrumentSpec,
    /// The columns that are kept; all if there are none.
    columns: Vec<String>,
    certificate: Option<CertificateRule>,
}

impl Default for Record {
    fn default() -> Self {
        let (spacing, probe) = (Spacing::default(), InstrumentSpec::default());
        Self { spacing, probe, columns: Vec::new(), certificate: None }
    }
}

/// A copy of the data, for programs that hold them themselves; an `Arc` is shared.
impl From<&Dataset> for Arc<Dataset> {
    fn from(data: &Dataset) -> Self {
        Self::new(data.clone())
    }
}

/// Sets a field from a specification or from its text.
macro_rules! setting {
    ($(#[$doc: meta])* $name: ident: $spec: ty, $set: expr) => {
        $(#[$doc])*
        pub fn $name<S: TryInto<$spec>>(mut self, $name: S) -> Result<Self, TrainingError>
        where
            TrainingError: From<S::Error>,
        {
            let set: fn(&mut Setup, $spec) = $set;
            set(&mut self.setup, $name.try_into()?);
            Ok(self)
        }
    };
}

impl Training {
    /// Data and a model, such as `ModelSpec::relu(&[32])` or `"linear"`. Data given by reference are copied once.
    pub fn new<M: TryInto<ModelSpec>>(data: impl Into<Arc<Dataset>>, model: M) -> Result<Self, TrainingError>
    where
        TrainingError: From<M::Error>,
    {
        let data = data.into();
        let loss = default_loss(&data.targets);
        Ok(Self::of(data, Setup::new(model.try_into()?, loss)))
    }

    /// Data and a whole description, such as that of a run of an experiment.
    pub fn of(data: impl Into<Arc<Dataset>>, setup: Setup) -> Self {
        Self { data: data.into(), setup, record: None, path: true }
    }

    setting! {
        /// The loss; logistic, cross-entropy or squared by default, as the targets are.
        loss: LossSpec, |setup, loss| setup.loss = loss
    }
    setting! {
        /// Whether the loss is summed or averaged over the examples.
        reduction: Reduction, |setup, reduction| setup.reduction = reduction
    }
    setting! {
        /// Where training starts.
        initialiser: Initialiser, |setup, initialiser| setup.initialiser = initialiser
    }
    setting! {
        /// An optimiser trains.
        optimiser: OptimiserSpec, |setup, optimiser| setup.trainer = Trainer::Optimiser(optimiser)
    }
    setting! {
        /// A flow trains, in continuous time.
        flow: FlowSpec, |setup, flow| setup.trainer = Trainer::Flow(flow)
    }
    setting! {
        /// Step sizes of an optimiser; flows choose their own by [`Training::tolerance`].
        schedule: ScheduleSpec, |setup, schedule| setup.schedule = schedule
    }

    /// Local error of a flow.
    pub fn tolerance(mut self, relative: f64, absolute: f64) -> Self {
        self.setup.tolerance = Tolerance { relative, absolute };
        self
    }

    /// Every step sees this many examples instead of all.
    pub fn batches_of(mut self, size: usize) -> Self {
        self.setup.batching = Batching::Mini { size };
        self
    }

    /// The seed of the start and of the order of batches; the data were drawn before.
    pub fn seed(mut self, seed: u64) -> Self {
        self.setup.seed = seed;
        self
    }

    /// Threads of the products; they change no bit of the result.
    pub fn threads(mut self, threads: usize) -> Self {
        self.setup.compute.threads = threads;
        self
    }

    /// The number that products are computed in.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.setup.compute.precision = precision;
        self
    }

    /// Where the model is computed.
    pub fn device(mut self, device: Device) -> Self {
        self.setup.compute.device = device;
        self
    }

    /// Ends when log₁₀ of the summed loss is at or below this.
    pub fn until_log10_loss(self, target: f64) -> Self {
        self.until(StopRule::LogLoss { target: target * LN_10 })
    }

    /// Ends after this many steps.
    pub fn at_most_steps(self, count: u64) -> Self {
        self.until(StopRule::Steps { count })
    }

    /// Ends when a rule holds, besides all others.
    pub fn until(mut self, rule: StopRule) -> Self {
        self.setup.stop.push(rule);
        self
    }

    /// Records these columns at these steps, and at the last one; all columns if none is named. Norms of columns such
    /// as `margin.spectral` are measured because they are named; potentials are, after [`Training::observe`].
    ///
    /// ```
    /// use limitpoint::prelude::*;
    /// let data = Digits { classes: Some([0, 1]), count: Some(50), ..Default::default() }.load(&Streams::new(0))?.train;
    /// let training = Training::new(&data, "linear")?.at_most_steps(100);
    /// let run = training.record(Spacing::Linear { every: 10 }, &["step", "margin.spectral"])?.run()?;
    /// assert_eq!(run.metrics.columns, ["step", "margin.spectral"]);
    /// assert_eq!(run.metrics.column("step"), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0]);
    /// # Ok::<(), limitpoint::Error>(())
    /// ```
    pub fn record(mut self, spacing: Spacing, columns: &[&str]) -> Result<Self, TrainingError> {
        let mut record = self.record.take().unwrap_or_default();
        let probe = &mut record.probe;
        for (family, key) in columns.iter().filter_map(|column| column.split_once('.')) {
            let of_norm = ["norm", "margin", "soft_margin", "growth_bound", "alignment", "kkt_gap", "kkt_slack"];
            if (of_norm.contains(&family) || family == "bracket_upper")
                && probe.norms.iter().all(|norm| norm.key() != key)
            {
                probe.norms.push(key.parse::<NormSpec>()?);
            }
        }
        record.columns = columns.iter().map(|column| (*column).to_owned()).collect();
        self.record = Some(Record { spacing, ..record });
        Ok(self)
    }

    /// Records with this probe: its norms, potentials and tolerances.
    pub fn observe(mut self, probe: InstrumentSpec) -> Self {
        self.record.get_or_insert_default().probe = probe;
        self
    }

    /// Ends, besides all other rules, when a recorded row proves the margin of a linear model to be within this relative
    /// gap of the largest, or the KKT gap and slack of a network to be within it.
    pub fn until_certificate<N: TryInto<NormSpec>>(mut self, norm: N, gap: f64) -> Result<Self, TrainingError>
    where
        TrainingError: From<N::Error>,
    {
        let (norm, record) = (norm.try_into()?, self.record.get_or_insert_default());
        if !record.probe.norms.contains(&norm) {
            record.probe.norms.push(norm.clone());
        }
        record.certificate = Some(CertificateRule { norm, gap });
        Ok(self)
    }

    /// Does not follow the path of the direction. Runs without snapshots are a little faster, but a certificate then
    /// speaks of the weights alone and cannot see that a direction has no limit.
    pub fn without_path(mut self) -> Self {
        self.path = false;
        self
    }

    /// The data.
    pub fn data(&self) -> &Arc<Dataset> {
        &self.data
    }

    /// Everything but the data.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Model, data and loss as one oracle.
    pub fn objective(&self) -> Result<Objective, TrainingError> {
        self.setup.objective(&self.data)
    }

    /// Whether the path of the direction is followed.
    pub(super) fn follows_path(&self) -> bool {
        self.path
    }

    /// The recorder, and the columns that are kept.
    pub(super) fn recorder(&self, objective: &Objective) -> Result<Option<(Recorder, Vec<String>)>, TrainingError> {
        let Some(Record { spacing, probe, columns, certificate }) = &self.record else { return Ok(None) };
        let linear = self.setup.model.is_linear();
        let probe = Instrument::new(probe, objective.layout(), objective.homogeneity(), linear)?;
        let recorder = Recorder::new(probe, *spacing).until(certificate.as_ref());
        match columns.iter().find(|name| !recorder.columns().contains(name)) {
            Some(name) => Err(TrainingError::NoColumn { name: name.clone(), known: recorder.columns().to_vec() }),
            None => Ok(Some((recorder, columns.clone()))),
        }
    }

    /// The run at its first point, to be stepped by hand.
    pub fn start(&self) -> Result<RunningTraining, TrainingError> {
        RunningTraining::new(self)
    }

    /// The run where it was saved by [`RunningTraining::state`]; it goes on bit for bit.
    pub fn resume(&self, state: &TrainingState) -> Result<RunningTraining, TrainingError> {
        let mut running = self.start()?;
        running.restore(state)?;
        Ok(running)
    }

    /// Runs until a rule holds or nothing moves any more.
    pub fn run(&self) -> Result<TrainedRun, TrainingError> {
        self.watch(|_| false, |_| {})
    }

    /// The same, and shows the steps that `wants` names, and the last one, to `look`.
    ///
    /// ```
    /// use limitpoint::prelude::*;
    /// let data = Digits { classes: Some([0, 1]), count: Some(50), ..Default::default() }.load(&Streams::new(0))?.train;
    /// let mut losses = Vec::new();
    /// let training = Training::new(&data, "linear")?.at_most_steps(30);
    /// training.watch(|step| step % 10 == 0, |snapshot| losses.push(snapshot.point.log_loss))?;
    /// assert!(losses.len() == 4 && losses.is_sorted_by(|a, b| a > b));
    /// # Ok::<(), limitpoint::Error>(())
    /// ```
    pub fn watch(&self, wants: impl Fn(u64) -> bool, look: impl FnMut(&Snapshot)) -> Result<TrainedRun, TrainingError> {
        if self.record.as_ref().is_none_or(|record| record.certificate.is_none()) {
            self.setup.check_stop()?;
        }
        let mut running = self.start()?;
        let mut watching = Watching { wants, look };
        while running.turn(&mut watching)?.is_none() {}
        Ok(running.end())
    }
}

/// Two functions as an observer.
pub(super) struct Watching<W, L> {
    pub wants: W,
    pub look: L,
}

impl<W: Fn(u64) -> bool, L: FnMut(&Snapshot)> Observer for Watching<W, L> {
    fn wants(&self, step: u64) -> bool {
        (self.wants)(step)
    }

    fn observe(&mut self, snapshot: &Snapshot) -> Continue {
        (self.look)(snapshot);
        Continue::Yes
    }
}
