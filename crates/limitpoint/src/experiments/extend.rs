//! Going on with an experiment to a later stop.
//!
//! Stop rules do not steer: up to its end a run makes the steps of any run that ends later. So a finished run is taken
//! back to its last regular checkpoint, from before it ended, and goes on from there as after an interruption; what it
//! leaves behind is what a run with the later stop leaves behind, bit for bit.

use std::path::Path;

use super::RunError;
use super::checkpoint::Checkpoints;
use super::config::write_config;
use super::experiment::Experiment;
use super::files::{remove_file, rename};
use super::hold::Hold;
use super::journal::partial_name;
use super::manifest::{RunManifest, Status};
use super::plan::plan;
use super::recipe::{Recipe, Stop};
use super::source::RecipeSource;
use super::task::Task;

impl Experiment {
    /// The same experiment with later stops; `overrides` are those of [`plan`], such as `stop.log10_loss=-250`.
    ///
    /// Nothing but stop rules may change, and they only to hold later than before.
    pub fn with_later_stop(mut self, overrides: &[String]) -> Result<Self, RunError> {
        for task in &mut self.tasks {
            let swept = |text: &&String| task.label.point.iter().any(|(key, _)| text.split('=').next() == Some(key));
            if let Some(text) = overrides.iter().find(swept) {
                let why = "the experiment is a sweep over it".to_owned();
                return Err(RunError::NotLater { setting: text.clone(), why });
            }
            task.recipe = later(&task.recipe, overrides)?;
        }
        self.recipe = later(&self.recipe, overrides)?;
        self.later = true;
        Ok(self)
    }
}

/// A recipe with later stops.
fn later(recipe: &Recipe, overrides: &[String]) -> Result<Recipe, RunError> {
    let refuse = |why: String| RunError::NotLater { setting: overrides.join(" "), why };
    let plan = plan(&RecipeSource::from_text("config.toml", &recipe.to_toml()?), overrides)?;
    if plan.points.len() > 1 {
        return Err(refuse("a run has one end, and this is a sweep".into()));
    }
    let changed = plan.base;
    if (Recipe { stop: recipe.stop.clone(), ..changed.clone() }) != *recipe {
        return Err(refuse("only stop rules can change; for other settings begin anew with `limitpoint run`".into()));
    }
    check_later(&recipe.stop, &changed.stop).map_err(refuse)?;
    Ok(changed)
}

/// Every rule that was there must be there, and hold no sooner; a rule more could only end a run sooner.
fn check_later(old: &Stop, new: &Stop) -> Result<(), String> {
    let gap = |stop: &Stop| stop.certificate.as_ref().map(|rule| rule.gap);
    let steps = |stop: &Stop| stop.steps.map(|steps| steps as f64);
    // times the sign, the larger number is the later stop
    let rules = [
        ("stop.log10_loss", -1.0, old.log10_loss, new.log10_loss),
        ("stop.steps", 1.0, steps(old), steps(new)),
        ("stop.log10_time", 1.0, old.log10_time, new.log10_time),
        ("stop.seconds", 1.0, old.seconds, new.seconds),
        ("stop.direction", -1.0, old.direction, new.direction),
        ("stop.certificate.gap", -1.0, gap(old), gap(new)),
    ];
    for (name, sign, old, new) in rules {
        match (old, new) {
            (None, None) => {}
            (None, Some(_)) => {
                return Err(format!("the experiment has no {name}, and one more rule can end it sooner"));
            }
            (Some(_), None) => return Err(format!("{name} must keep a value")),
            (Some(old), Some(new)) if sign * new >= sign * old => {}
            (Some(old), Some(new)) => {
                return Err(format!("{name} was {old}, and {new} is no later stop"));
            }
        }
    }
    if old.certificate.as_ref().map(|rule| &rule.norm) != new.certificate.as_ref().map(|rule| &rule.norm) {
        return Err("the norm of stop.certificate cannot change".into());
    }
    Ok(())
}

/// Takes a run back to before its end and gives it the recipe with the later stop. Killed at any moment, the run can be
/// resumed: to the old stop before its recipe is written, to the new one afterwards.
pub(super) fn reopen(folder: &Path, task: &Task) -> Result<(), RunError> {
    let _hold = Hold::take(folder)?;
    if let Some(manifest) = RunManifest::find(folder)? {
        if manifest.status == Status::Finished {
            manifest.check_files(folder)?;
        }
        let running = RunManifest {
            status: Status::Running,
            stop: "running".into(),
            test_accuracy: None,
            weights_sha256: None,
            files: Default::default(),
            ..manifest
        };
        running.save(folder)?;
    }
    for name in ["metrics.csv", "histograms.jsonl"] {
        let complete = folder.join(name);
        if complete.exists() {
            rename(&complete, &partial_name(&complete))?;
        }
    }
    remove_file(&folder.join("checkpoints").join(Checkpoints::FINAL))?;
    for name in ["metrics.parquet", "portrait.json"] {
        remove_file(&folder.join(name))?;
    }
    write_config(folder, &task.recipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(stop: &str) -> Recipe {
        let text = format!(
            "loss = 'exponential'\nmodel = 'linear'\nstop = {stop}\ndata.gaussians = {{}}\n\
             optimisers.a.steepest.norm = 'l1'\nobserve.norms = ['l1', 'l2']"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn only_later_stops_are_taken() {
        let all = "{ log10_loss = -10, steps = 100, log10_time = 2, seconds = 5, direction = 1e-3, \
                   certificate = { norm = 'l2', gap = 0.1 } }";
        let ask = |stop: &str, text: &[&str]| {
            later(&recipe(stop), &text.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
        };
        for text in [
            "stop.log10_loss=-11",
            "stop.steps=101",
            "stop.steps=100",
            "stop.log10_time=2.5",
            "stop.seconds=6",
            "stop.direction=1e-4",
            "stop.certificate.gap=0.01",
        ] {
            let changed = ask(all, &[text]).unwrap();
            assert_eq!(changed.stop == recipe(all).stop, text == "stop.steps=100", "{text}");
        }
        assert_eq!(ask(all, &["stop.steps=300", "stop.log10_loss=-30"]).unwrap().stop.steps, Some(300));
        for (text, words) in [
            ("stop.log10_loss=-9", "was -10, and -9 is no later stop"),
            ("stop.steps=99", "stop.steps was 100"),
            ("stop.direction=1e-2", "no later stop"),
            ("stop.certificate.norm=l1", "cannot change"),
            ("stop.steps=200,300", "sweep"),
            ("seed=3", "only stop rules"),
            ("loss=logistic", "only stop rules"),
            ("observe.histogram_bins=3", "only stop rules"),
        ] {
            let refusal = ask(all, &[text]).unwrap_err().to_string();
            assert!(refusal.contains(words) && refusal.contains(text), "{text}: {refusal}");
        }
        let refusal = ask("{ steps = 10 }", &["stop.log10_loss=-9"]).unwrap_err().to_string();
        assert!(refusal.contains("no stop.log10_loss"), "{refusal}");
    }
}
