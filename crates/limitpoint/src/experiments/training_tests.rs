//! Runs in memory and runs in folders are the same, bit for bit.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::weights::digest;
use super::{Experiment, Plan, RecipeSource, RunManifest, RunOptions, Status, builtins, load_weights, plan};
use crate::engine::Device;

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a plan in a folder and each of its tasks in memory; answers how many were compared.
fn compare(plan: &Plan) -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("limitpoint-training-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = Folder(std::env::temp_dir().join(name));
    let experiment = Experiment::new(plan).unwrap();
    let options = RunOptions { threads: 2, device: Device::Cpu, watcher: &(), interrupt: &AtomicBool::new(false) };
    let manifests: Vec<RunManifest> = experiment.run(&folder.0, &options).unwrap();
    let mut compared = 0;
    for (task, manifest) in experiment.tasks().iter().zip(&manifests) {
        let name = format!("{} of {}", task.label.name, plan.name);
        if manifest.status == Status::Failed {
            assert!(task.training().and_then(|training| Ok(training.run()?)).is_err(), "{name}: {}", manifest.stop);
            continue;
        }
        let run = task.training().unwrap().run().unwrap();
        let path = folder.0.join(&task.label.name).join("checkpoints/final.safetensors");
        let saved = load_weights(&path, &run.layout).unwrap();
        assert!(saved.iter().zip(&run.params).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
        assert_eq!(manifest.weights_sha256.as_deref(), Some(digest(&run.params).as_str()), "{name}");
        assert_eq!((manifest.steps, &manifest.stop), (run.steps, &run.reason.to_string()), "{name}");
        assert_eq!(manifest.log10_loss.to_bits(), run.log10_loss().to_bits(), "{name}");
        compared += 1;
    }
    compared
}

/// The first row of the README's table.
#[test]
fn the_showcase_in_memory_is_that_of_the_folder() {
    let plan = plan(&RecipeSource::find("showcase").unwrap(), &["optimiser=gradient".into()]).unwrap();
    assert_eq!(compare(&plan), 1);
    let run = plan.tasks()[0].training().unwrap().run().unwrap();
    assert_eq!(run.steps, 10863);
    assert_eq!(format!("{:.2e} {:.2e}", run.margin("l1").unwrap(), run.margin("l2").unwrap()), "6.58e-5 2.57e-1");
}

#[test]
fn a_certificate_ends_runs_in_memory_where_it_ends_them_in_folders() {
    let overrides = ["optimiser=gradient,sign", "stop={certificate={norm=\"l2\", gap=0.05}, steps=3000}", "seed=1"];
    let plan = plan(&RecipeSource::find("linear").unwrap(), &overrides.map(str::to_owned)).unwrap();
    assert_eq!(compare(&plan), 2);
    let reasons: Vec<String> =
        plan.tasks().iter().map(|task| task.training().unwrap().run().unwrap().reason.to_string()).collect();
    assert!(reasons[0].contains("l2 certificate") && reasons[1] == "3000 steps made", "{reasons:?}");
}

#[test]
fn every_built_in_experiment_is_the_same_in_memory_and_in_a_folder() {
    let mut compared = 0;
    for (name, _) in builtins() {
        let few = ["stop.steps=4".to_owned(), "observe.histogram_bins=0".to_owned()];
        let mut plan = plan(&RecipeSource::find(name).unwrap(), &few).unwrap();
        // data that are not inside the program may not be there, and large ones take their time
        let large = matches!(*name, "b-large" | "sparse");
        if large || plan.tasks()[0].data().is_err() {
            continue;
        }
        for recipe in plan.points.iter_mut().map(|point| &mut point.recipe).chain([&mut plan.base]) {
            recipe.seeds.truncate(1);
            // the clock ends runs in folders alone
            recipe.stop.seconds = None;
        }
        compared += compare(&plan);
    }
    assert!(compared > 100, "only {compared} runs were compared");
}
