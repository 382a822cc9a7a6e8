//! One run of an experiment: who trains, from which seed, at which point of a sweep.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::recipe::Recipe;
use crate::catalogue::CatalogueEntry;
use crate::certificates::Measure;
use crate::flows::FlowSpec;
use crate::norms::NormSpec;
use crate::optimisers::{OptimiserSpec, PolarMethod};
use crate::potentials::PotentialSpec;
use crate::schedules::ScheduleSpec;

/// One run: a recipe with a single optimiser or flow and a single seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Name of the run and of its folder, unique in the experiment.
    pub label: TaskLabel,
    /// The recipe of this run alone.
    pub recipe: Recipe,
}

/// What tells runs of an experiment apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLabel {
    /// Name of the run and of its folder.
    pub name: String,
    /// Key of the optimiser or flow.
    pub optimiser: String,
    /// The seed.
    pub seed: u64,
    /// Settings a sweep chose.
    pub point: Vec<(String, String)>,
}

/// Who trains.
pub(super) enum Trainer<'a> {
    Optimiser(&'a OptimiserSpec, &'a ScheduleSpec),
    Flow(&'a FlowSpec),
}

impl Task {
    /// All runs of a recipe at one point of a sweep: every optimiser and flow, every seed.
    ///
    /// ```
    /// use limitpoint::experiments::{Recipe, Task};
    /// let text = "loss = 'exponential'\nseeds = [1, 2]\ndata.digits = {}\nmodel = 'linear'\n\
    ///             optimisers.a.steepest.norm = 'l1'\noptimisers.b.steepest.norm = 'l2'";
    /// let recipe: Recipe = toml::from_str(text)?;
    /// let names: Vec<String> = Task::all(&recipe, &[]).into_iter().map(|task| task.label.name).collect();
    /// assert_eq!(names, ["a-seed1", "a-seed2", "b-seed1", "b-seed2"]);
    /// # Ok::<(), toml::de::Error>(())
    /// ```
    pub fn all(recipe: &Recipe, point: &[(String, String)]) -> Vec<Self> {
        let mut tasks = Vec::new();
        for optimiser in recipe.optimisers.keys().chain(recipe.flows.keys()) {
            for &seed in &recipe.seeds {
                let settings: String = point.iter().map(|(key, value)| format!("-{}={value}", short(key))).collect();
                let name = file_name(&format!("{optimiser}{settings}-seed{seed}"));
                let label = TaskLabel { name, optimiser: optimiser.clone(), seed, point: point.to_vec() };
                tasks.push(Self { recipe: alone(recipe, optimiser, seed), label });
            }
        }
        tasks
    }

    /// Who trains; nothing if the recipe does not know the name.
    pub(super) fn trainer(&self) -> Option<Trainer<'_>> {
        let name = self.label.optimiser.as_str();
        if let Some(optimiser) = self.recipe.optimisers.get(name) {
            let schedule = self.recipe.schedules.get(name).unwrap_or(&self.recipe.schedule);
            return Some(Trainer::Optimiser(optimiser, schedule));
        }
        self.recipe.flows.get(name).map(Trainer::Flow)
    }

    /// The update rule, for people.
    pub fn formula(&self) -> String {
        let find = |entries: Vec<CatalogueEntry>, key: &str| {
            entries.iter().find(|entry| entry.key == key).map_or_else(String::new, |entry| entry.formula.to_owned())
        };
        match self.trainer() {
            Some(Trainer::Optimiser(spec, _)) => find(OptimiserSpec::catalogue(), spec.key()),
            Some(Trainer::Flow(FlowSpec::Steepest { norm })) => format!("dθ/dt = ‖∇L‖_* d(∇L) in {}", norm.key()),
            Some(Trainer::Flow(FlowSpec::Mirror { potential })) => {
                format!("d∇R(θ)/dt = −∇L with R = {}", potential.key())
            }
            Some(Trainer::Flow(FlowSpec::NaturalGradient { potential })) => {
                format!("dθ/dt = −∇²R(θ)⁻¹∇L with R = {}", potential.key())
            }
            None => String::new(),
        }
    }

    /// The norm or potential the theory assigns to who trains, as columns name it.
    pub fn geometry(&self) -> Option<String> {
        self.measure().map(|measure| measure.key())
    }

    /// The norm or potential the theory assigns to who trains.
    pub fn measure(&self) -> Option<Measure> {
        match self.trainer()? {
            Trainer::Optimiser(spec, _) => measure(spec),
            Trainer::Flow(FlowSpec::Steepest { norm }) => Some(Measure::Norm(norm.clone())),
            Trainer::Flow(FlowSpec::Mirror { potential } | FlowSpec::NaturalGradient { potential }) => {
                Some(Measure::Potential(potential.clone()))
            }
        }
    }

    /// The norm who trains belongs to: that of its steps, or of the horizon of its potential.
    pub fn own_norm(&self) -> Option<NormSpec> {
        match self.trainer()? {
            Trainer::Optimiser(spec, _) => spec.own_norm(),
            Trainer::Flow(FlowSpec::Steepest { norm }) => Some(norm.clone()),
            Trainer::Flow(FlowSpec::Mirror { potential } | FlowSpec::NaturalGradient { potential }) => {
                OptimiserSpec::mirror(potential.clone()).own_norm()
            }
        }
    }

    /// The largest fall of ln L in a step that its memory of gradients can follow, where it has one.
    pub fn forgets(&self) -> Option<f64> {
        match self.trainer()? {
            Trainer::Optimiser(spec, _) => Some(spec.forgets()).filter(|forgets| forgets.is_finite()),
            Trainer::Flow(_) => None,
        }
    }

    /// Whether the geometry is that of a limit or a conjecture, so that no single step need respect it.
    pub fn geometry_in_limit(&self) -> bool {
        match self.trainer() {
            Some(Trainer::Optimiser(spec, _)) => in_limit(spec),
            _ => false,
        }
    }

    /// Why nothing is claimed of where a run ends, and what to do about it, for runs without a measure.
    pub(super) fn no_measure(&self) -> String {
        let why = match self.trainer() {
            Some(Trainer::Optimiser(spec, _)) => spec.norm_of_steps().err().map(|why| format!(": {why}")),
            _ => None,
        };
        format!(
            "no norm is known whose margin its optimiser maximises{}; name one with --norm",
            why.unwrap_or_default()
        )
    }
}

/// Whether the geometry of an optimiser is that of a limit or a conjecture.
fn in_limit(spec: &OptimiserSpec) -> bool {
    match spec {
        OptimiserSpec::Muon { momentum, polar, .. } => *momentum != 0.0 || *polar != PolarMethod::Exact,
        OptimiserSpec::Steepest { .. } | OptimiserSpec::MonotoneCoordinate { .. } => false,
        OptimiserSpec::Adjusted { of, decay, .. } => *decay != 0.0 || in_limit(of),
        OptimiserSpec::Blocks(parts) => parts.values().any(in_limit),
        _ => true,
    }
}

/// The geometry whose margin an optimiser is known or conjectured to maximise: A Theorems 3.2 and 3.4 for steepest
/// descent and its momentum variants, A section 4 for Adam (ℓ∞) and Shampoo without accumulation (spectral), C for
/// mirror descent. Elsewhere it has a norm of its own at most, and nothing is claimed.
fn measure(spec: &OptimiserSpec) -> Option<Measure> {
    match spec {
        OptimiserSpec::Mirror { potential, .. } => Some(Measure::Potential(potential.clone())),
        OptimiserSpec::Switch { second, .. } => measure(second),
        OptimiserSpec::Adjusted { of, decay, .. } => measure(of).filter(|_| *decay == 0.0),
        // nothing is claimed of the whole where nothing is of a part, and no cone is known to a norm
        OptimiserSpec::Blocks(parts) => match parts.len() {
            1 => parts.values().find_map(measure),
            _ => parts.values().all(has_measure).then(|| spec.own_norm().map(Measure::Norm))?,
        },
        OptimiserSpec::AdamW { .. }
        | OptimiserSpec::RmsProp { .. }
        | OptimiserSpec::NaturalGradient { .. }
        | OptimiserSpec::Shampoo { accumulate: true, .. } => None,
        _ => spec.own_norm().map(Measure::Norm),
    }
}

/// Whether the geometry of an optimiser is known and a norm on all of space.
fn has_measure(spec: &OptimiserSpec) -> bool {
    let one_sided =
        |potential: &PotentialSpec| matches!(potential, PotentialSpec::Entropy | PotentialSpec::SpectralEntropy);
    measure(spec).is_some_and(|measure| !matches!(&measure, Measure::Potential(potential) if one_sided(potential)))
}

/// The recipe of a single run.
fn alone(recipe: &Recipe, optimiser: &str, seed: u64) -> Recipe {
    fn only<T: Clone>(map: &IndexMap<String, T>, name: &str) -> IndexMap<String, T> {
        map.iter().filter(|(key, _)| *key == name).map(|(key, value)| (key.clone(), value.clone())).collect()
    }
    Recipe {
        seeds: vec![seed],
        optimisers: only(&recipe.optimisers, optimiser),
        flows: only(&recipe.flows, optimiser),
        schedules: only(&recipe.schedules, optimiser),
        ..recipe.clone()
    }
}

/// The last part of a key: `model.width` is told from others by `width` alone.
fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Text as a file name: what could mean something to a shell or a file system becomes an underscore.
fn file_name(text: &str) -> String {
    let harmless = |c: char| if c.is_alphanumeric() || "-_.=+".contains(c) { c } else { '_' };
    let name: String = text.chars().map(harmless).take(120).collect();
    name.trim_start_matches('.').to_owned()
}
