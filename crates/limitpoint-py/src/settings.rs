//! What is trained and how, as Python says it: a JSON object of texts and numbers.

use limitpoint::engine::Precision;
use limitpoint::models::{Initialiser, ModelSpec};
use limitpoint::norms::NormSpec;
use limitpoint::potentials::PotentialSpec;
use limitpoint::prelude::{InstrumentSpec, Spacing, StopRule, Training};
use limitpoint::training::TrainingError;
use serde::Deserialize;

use crate::data::Data;

/// Keywords of `limitpoint.run` for data in memory; absent ones have the defaults of the library.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    model: String,
    #[serde(default)]
    optimiser: Option<String>,
    #[serde(default)]
    flow: Option<String>,
    #[serde(default)]
    loss: Option<String>,
    #[serde(default)]
    reduction: Option<String>,
    #[serde(default)]
    initialiser: Option<String>,
    #[serde(default)]
    start: Option<Vec<f64>>,
    #[serde(default)]
    schedule: Option<String>,
    #[serde(default)]
    batch: Option<usize>,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    threads: Option<usize>,
    #[serde(default)]
    precision: Option<String>,
    #[serde(default)]
    log10_loss: Option<f64>,
    #[serde(default)]
    steps: Option<u64>,
    #[serde(default)]
    log10_time: Option<f64>,
    #[serde(default)]
    angle: Option<f64>,
    #[serde(default)]
    norms: Option<Vec<String>>,
    #[serde(default)]
    potentials: Vec<String>,
    #[serde(default)]
    every: Option<u64>,
    #[serde(default)]
    per_decade: Option<u32>,
}

impl Settings {
    /// The training they describe, on these data.
    pub fn training(&self, data: &Data) -> anyhow::Result<Training> {
        let model: ModelSpec = self.model.parse()?;
        let mut training = Training::new(data.inner.clone(), model)?;
        let say = |training: Training, text: &Option<String>, set: fn(Training, &str) -> Set| match text {
            Some(text) => set(training, text),
            None => Ok(training),
        };
        training = say(training, &self.optimiser, |training, text| training.optimiser(text))?;
        training = say(training, &self.flow, |training, text| training.flow(text))?;
        training = say(training, &self.loss, |training, text| training.loss(text))?;
        training = say(training, &self.reduction, |training, text| training.reduction(text))?;
        training = say(training, &self.initialiser, |training, text| training.initialiser(text))?;
        training = say(training, &self.schedule, |training, text| training.schedule(text))?;
        if let Some(values) = &self.start {
            let given = Initialiser::Given { values: values.clone() };
            training = training.initialiser(given).map_err(|impossible: TrainingError| impossible)?;
        }
        if let Some(precision) = &self.precision {
            training = training.precision(precision.parse::<Precision>()?);
        }
        if let Some(size) = self.batch {
            training = training.batches_of(size);
        }
        training = training.seed(self.seed).threads(self.threads.unwrap_or(1));
        if let Some(target) = self.log10_loss {
            training = training.until_log10_loss(target);
        }
        if let Some(count) = self.steps {
            training = training.at_most_steps(count);
        }
        if let Some(target) = self.log10_time {
            training = training.until(StopRule::LogTime { target: target * std::f64::consts::LN_10 });
        }
        if let Some(angle) = self.angle {
            training = training.until(StopRule::DirectionConverged { angle });
        }
        training.setup().check_stop()?;
        self.observed(training)
    }

    /// The same, recorded: in the norms that are asked for and in the optimiser's own.
    fn observed(&self, training: Training) -> anyhow::Result<Training> {
        let mut probe = InstrumentSpec::default();
        if let Some(norms) = &self.norms {
            probe.norms = norms.iter().map(|norm| norm.parse::<NormSpec>()).collect::<Result<_, _>>()?;
        }
        if let Some(own) = training.setup().trainer.own_norm()
            && !probe.norms.is_empty()
            && probe.norms.iter().all(|norm| norm.key() != own.key())
        {
            probe.norms.push(own);
        }
        probe.potentials = self.potentials.iter().map(|r| r.parse::<PotentialSpec>()).collect::<Result<_, _>>()?;
        let spacing = match (self.every, self.per_decade) {
            (Some(every), _) => Spacing::Linear { every },
            (None, Some(per_decade)) => Spacing::Logarithmic { per_decade },
            (None, None) => Spacing::default(),
        };
        Ok(training.observe(probe).record(spacing, &[])?)
    }
}

type Set = Result<Training, TrainingError>;
