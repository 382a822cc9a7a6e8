//! The whole recipe of an experiment, as its TOML file says it once bases and overrides are resolved.

use std::f64::consts::LN_10;
use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::complaint::{Hint, RecipeError, Text};
use super::node::Node;
use super::read::read;
use crate::data::DataSpec;
use crate::diagnostics::InstrumentSpec;
use crate::driver::Batching;
use crate::engine::Precision;
use crate::flows::{FlowSpec, Tolerance};
use crate::losses::LossSpec;
use crate::models::{Initialiser, ModelSpec};
use crate::norms::NormSpec;
use crate::objective::Reduction;
use crate::observers::{Spacing, StopRule};
use crate::optimisers::OptimiserSpec;
use crate::potentials::PotentialSpec;
use crate::schedules::ScheduleSpec;
pub use crate::training::CertificateRule;
use crate::training::{default_initialiser, default_schedule};

/// One experiment: data, model, loss, one or many optimisers, seeds, what to observe, when to stop.
///
/// | key | default | purpose |
/// |---|---|---|
/// | `title`, `description` | empty | words for the report |
/// | `seeds` | `[0]` | one run per seed: seeds draw the data, the start and the order of batches |
/// | `data_seed` | the run's | fixes the data while seeds vary the start |
/// | `data`, `model`, `loss` | required | the problem |
/// | `initialiser` | He normal | the start |
/// | `optimiser` or `optimisers.NAME`, `flows.NAME` | one is required | who trains |
/// | `schedule`, `schedules.NAME` | flow-resolved | step sizes, for all and for one |
/// | `observe`, `stop` | see there | what is written, when it ends |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// A title for people.
    #[serde(default)]
    pub title: String,
    /// What the experiment asks, in a few sentences.
    #[serde(default)]
    pub description: String,
    /// One run per seed.
    #[serde(default = "first_seed")]
    pub seeds: Vec<u64>,
    /// The seed of the data; the run's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_seed: Option<u64>,
    /// The loss.
    pub loss: LossSpec,
    /// Whether the loss is summed or averaged over examples.
    #[serde(default)]
    pub reduction: Reduction,
    /// The number the network computes in.
    #[serde(default)]
    pub precision: Precision,
    /// How examples are shared out over steps.
    #[serde(default)]
    pub batching: Batching,
    /// Step sizes of every optimiser not named under `schedules`.
    #[serde(default = "default_schedule")]
    pub schedule: ScheduleSpec,
    /// Where training starts.
    #[serde(default = "default_initialiser")]
    pub initialiser: Initialiser,
    /// The examples.
    pub data: DataSpec,
    /// The model.
    pub model: ModelSpec,
    /// Optimisers by name. In a file, `optimiser` is short for a single one; a name such as "sign" stands for its
    /// settings.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub optimisers: IndexMap<String, OptimiserSpec>,
    /// Flows by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub flows: IndexMap<String, FlowSpec>,
    /// Step sizes of single optimisers.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub schedules: IndexMap<String, ScheduleSpec>,
    /// Local error of the flows.
    #[serde(default)]
    pub tolerance: Tolerance,
    /// What is measured and how often.
    #[serde(default)]
    pub observe: Observe,
    /// When a run ends; whichever holds first.
    #[serde(default)]
    pub stop: Stop,
}

impl Recipe {
    /// What no type can say: somebody trains, schedules have an optimiser, seeds differ, runs end.
    pub fn check(&self) -> Result<(), RecipeError> {
        if self.optimisers.is_empty() && self.flows.is_empty() {
            return Err(RecipeError::NoOptimiser);
        }
        if let Some(name) = self.flows.keys().find(|name| self.optimisers.contains_key(*name)) {
            return Err(RecipeError::SharedName { name: name.clone() });
        }
        if let Some(name) = self.schedules.keys().find(|name| !self.optimisers.contains_key(*name)) {
            let hint = Box::new(Hint::new(name, self.optimisers.keys()));
            return Err(RecipeError::UnknownSchedule { name: name.clone(), hint });
        }
        if self.seeds.is_empty() {
            return Err(RecipeError::NoSeeds);
        }
        let mut sorted = self.seeds.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(RecipeError::DuplicateSeed { seed: twice[0] });
        }
        if self.stop == Stop::default() {
            return Err(RecipeError::NeverStops);
        }
        let distance = match self.observe.spacing {
            Spacing::Logarithmic { per_decade } => ("observe.spacing.logarithmic.per_decade", u64::from(per_decade)),
            Spacing::Linear { every } => ("observe.spacing.linear.every", every),
        };
        let distances = [distance, ("observe.checkpoint_every", self.observe.checkpoint_every.unwrap_or(1))];
        if let Some((key, _)) = distances.into_iter().find(|(_, distance)| *distance == 0) {
            return Err(RecipeError::Zero { key });
        }
        match &self.stop.certificate {
            Some(rule) if !self.observe.norms.contains(&rule.norm) => {
                let observed: Vec<String> = self.observe.norms.iter().map(NormSpec::to_string).collect();
                Err(RecipeError::CertificateNorm { norm: rule.norm.to_string(), observed: observed.join(", ") })
            }
            _ => Ok(()),
        }
    }

    /// The whole recipe as TOML, defaults included; it reads back as the same recipe, every number to its last bit.
    ///
    /// Seeds from 2⁶³ on are written as they are, which is more than some other readers of TOML accept.
    pub fn to_toml(&self) -> Result<String, RecipeError> {
        toml::to_string(self).map_err(|error| RecipeError::Unwritable(error.to_string()))
    }

    /// Reads a recipe that [`Recipe::to_toml`] wrote.
    pub fn from_resolved(text: &str) -> Result<Self, super::RunError> {
        let text = Text { name: "config.toml".to_owned(), content: text.to_owned(), is_override: false };
        let unreadable = |error: RecipeError| super::RunError::Unreadable(error.to_string());
        read(&Node::document(&Arc::new(text)).map_err(unreadable)?).map_err(unreadable)
    }
}

/// What is measured and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Observe {
    /// Norms for margins, alignment and KKT measures.
    pub norms: Vec<NormSpec>,
    /// Potentials for mirror margins and balance.
    pub potentials: Vec<PotentialSpec>,
    /// Activity tolerances of the stationarity residual.
    pub residual_tolerances: Vec<f64>,
    /// Which steps are measured.
    pub spacing: Spacing,
    /// Bins of the weight histograms; 0 for none.
    pub histogram_bins: usize,
    /// Training examples whose activations in every layer of images are kept as pictures at the end; none by default.
    #[serde(skip_serializing_if = "is_zero")]
    pub activation_maps: usize,
    /// Steps between checkpoints; chosen from the cost of a step when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_every: Option<u64>,
    /// log₁₀ of summed losses: the first weights at or below each are kept as checkpoints/below-LEVEL.safetensors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub milestones: Vec<f64>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Observe {
    /// What a probe measures at every observed step.
    pub fn probe(&self) -> InstrumentSpec {
        InstrumentSpec {
            norms: self.norms.clone(),
            potentials: self.potentials.clone(),
            residual_tolerances: self.residual_tolerances.clone(),
            ..InstrumentSpec::default()
        }
    }
}

impl Default for Observe {
    fn default() -> Self {
        let InstrumentSpec { norms, potentials, residual_tolerances, .. } = InstrumentSpec::default();
        Self {
            norms,
            potentials,
            residual_tolerances,
            spacing: Spacing::default(),
            histogram_bins: 40,
            activation_maps: 0,
            checkpoint_every: None,
            milestones: Vec::new(),
        }
    }
}

/// When a run ends; whichever holds first. Absent rules never hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// log₁₀ of the summed loss is at or below this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log10_loss: Option<f64>,
    /// This many steps are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// log₁₀ Σ η is at or above this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log10_time: Option<f64>,
    /// This many seconds went by, over all parts of the run; the only rule that two machines need not agree on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The direction turned by less than this many radians while ‖θ‖₂ doubled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<f64>,
    /// A certificate is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateRule>,
}

impl Stop {
    /// The rules that the loop of a run checks; the clock and certificates are watched by whoever has them.
    pub fn rules(&self) -> Vec<StopRule> {
        let parts = [
            self.log10_loss.map(|target| StopRule::LogLoss { target: target * LN_10 }),
            self.steps.map(|count| StopRule::Steps { count }),
            self.log10_time.map(|target| StopRule::LogTime { target: target * LN_10 }),
            self.direction.map(|angle| StopRule::DirectionConverged { angle }),
        ];
        parts.into_iter().flatten().collect()
    }
}

fn first_seed() -> Vec<u64> {
    vec![0]
}
