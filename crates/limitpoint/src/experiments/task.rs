//! One run of an experiment: who trains, from which seed, at which point of a sweep.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::RunError;
use super::recipe::Recipe;
use crate::certificates::Measure;
use crate::data::{DataSplit, data_folder};
use crate::engine::Compute;
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::schedules::ScheduleSpec;
use crate::training::{CertificateRule, Setup, Trainer, Training};

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
    pub fn trainer(&self) -> Option<Trainer> {
        let name = self.label.optimiser.as_str();
        let optimiser = self.recipe.optimisers.get(name).cloned().map(Trainer::Optimiser);
        optimiser.or_else(|| self.recipe.flows.get(name).cloned().map(Trainer::Flow))
    }

    /// The step sizes of its optimiser.
    pub fn schedule(&self) -> &ScheduleSpec {
        self.recipe.schedules.get(&self.label.optimiser).unwrap_or(&self.recipe.schedule)
    }

    /// The norm or potential the theory assigns to who trains.
    pub fn measure(&self) -> Option<Measure> {
        self.trainer()?.measure()
    }

    /// Why nothing is claimed of where it ends, and what to do about it, where it has no measure.
    pub(super) fn no_measure(&self) -> String {
        self.trainer().map(|trainer| trainer.no_measure()).unwrap_or_default()
    }

    /// The norm who trains belongs to: that of its steps, or of the horizon of its potential.
    pub fn own_norm(&self) -> Option<NormSpec> {
        self.trainer()?.own_norm()
    }

    /// The run without its data, as [`Training`] takes it.
    pub fn setup(&self) -> Result<Setup, RunError> {
        let recipe = &self.recipe;
        let no_trainer = || RunError::NoTrainer { name: self.label.optimiser.clone() };
        Ok(Setup {
            model: recipe.model.clone(),
            loss: recipe.loss.clone(),
            reduction: recipe.reduction,
            initialiser: recipe.initialiser.clone(),
            trainer: self.trainer().ok_or_else(no_trainer)?,
            schedule: self.schedule().clone(),
            tolerance: recipe.tolerance,
            batching: recipe.batching,
            stop: recipe.stop.rules(),
            seed: self.label.seed,
            compute: Compute { precision: recipe.precision, ..Compute::default() },
        })
    }

    /// The seed of its data.
    pub fn data_seed(&self) -> u64 {
        self.recipe.data_seed.unwrap_or(self.label.seed)
    }

    /// Its data, drawn or read; sets that are known by name are looked for in [`data_folder`].
    pub fn data(&self) -> Result<DataSplit, RunError> {
        Ok(self.recipe.data.placed(data_folder().as_deref())?.load(&Streams::new(self.data_seed()))?)
    }

    /// The run in memory: the same bits as in a folder, without one. Only a limit of seconds is not kept to.
    ///
    /// ```
    /// use limitpoint::experiments::{RecipeSource, plan};
    /// let plan = plan(&RecipeSource::find("b-example-2")?, &["optimiser=mirror(potential=entropy)".into()])?;
    /// let run = plan.tasks()[0].training()?.run()?;
    /// assert!((run.params[0] - 0.5).abs() < 1e-8 && (run.params[1] - 0.25).abs() < 1e-8);
    /// # Ok::<(), limitpoint::experiments::RunError>(())
    /// ```
    pub fn training(&self) -> Result<Training, RunError> {
        let training = Training::of(self.data()?.train, self.setup()?);
        let (stop, observe) = (&self.recipe.stop, &self.recipe.observe);
        Ok(match &stop.certificate {
            Some(CertificateRule { norm, gap }) => {
                training.observe(observe.probe()).record(observe.spacing, &[])?.until_certificate(norm.clone(), *gap)?
            }
            None => training,
        })
    }
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
