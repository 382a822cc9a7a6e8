//! Recipes with sparse data, from the text to the files.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::{CertifyOptions, Experiment, ExperimentRecord, RecipeSource, RunOptions, Status, certify_run, plan};
use crate::certificates::{DocumentError, Evidence, Measure, RunClaim, Subject, Tolerances};
use crate::data::{DataSpec, File};
use crate::engine::Device;
use crate::models::ModelSpec;

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("limitpoint-sparse-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SMALL: [&str; 5] =
    ["data.count=40", "data.test-count=20", "data.dimension=3000", "data.nonzeros=15", "data_seed=1"];

fn experiment(overrides: &[&str]) -> Experiment {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let plan = plan(&RecipeSource::find("sparse").unwrap(), &overrides).unwrap_or_else(|error| panic!("{error}"));
    Experiment::new(&plan).unwrap()
}

fn run(experiment: &Experiment, folder: &Folder, threads: usize) -> ExperimentRecord {
    let options = RunOptions { threads, device: Device::Cpu, watcher: &(), interrupt: &AtomicBool::new(false) };
    let manifests = experiment.run(&folder.0, &options).unwrap();
    for manifest in &manifests {
        assert!(manifest.status == Status::Finished && manifest.healthy, "{}", manifest.stop);
    }
    ExperimentRecord::load(&folder.0).unwrap()
}

#[test]
fn a_sparse_recipe_runs_to_its_files_and_the_judge_knows_the_optimum() {
    let folder = Folder::new("run");
    let record = run(&experiment(&[&SMALL[..], &["stop.log10_loss=-5"]].concat()), &folder, 2);
    assert_eq!((record.data.examples, record.data.test_examples, &record.data.input_shape[..]), (40, 20, &[3000][..]));
    assert_eq!(record.runs.len(), 2);
    for run in &record.runs {
        assert!(run.steps > 0);
        assert!(run.test_accuracy.is_some_and(|accuracy| (0.0..=1.0).contains(&accuracy)));
        assert!(run.portrait.decision.is_none() && run.portrait.features.is_none(), "nothing to paint");
        assert!(folder.0.join(&run.name).join("checkpoints/final.safetensors").exists());
    }
    let certificate = certify_run(&folder.0.join(&record.runs[0].name), &CertifyOptions::default()).unwrap();
    assert!(matches!(certificate.evidence, Evidence::Margin(_)), "{}", certificate.statement);
    // 40 × 3000 entries are few enough for the judge, and no run beats it
    let line = record.references.iter().find(|line| line.column == "margin.l2").expect("an optimum");
    let reached = record.runs[0].metrics.last("margin.l2").unwrap();
    assert!(reached > 0.0 && reached <= line.value * (1.0 + 1e-9), "{reached} of {}", line.value);
}

#[test]
fn what_needs_dense_inputs_says_so_where_they_would_be_too_large() {
    let spec = crate::data::SparseGaussians { count: 100, dimension: 1_000_000, nonzeros: 5, ..Default::default() };
    let data = spec.generate(&crate::numeric::Streams::new(1)).unwrap().train;
    let (norm, weights) = (crate::norms::NormSpec::L2, vec![0.0; 1_000_000]);
    let problem = crate::reference::MarginProblem::linear(&data, norm.clone()).unwrap_err().to_string();
    let settings = crate::certificates::PolishSettings::default();
    let polish = crate::certificates::polish(&ModelSpec::Linear, &data, &weights, &norm, &settings);
    for error in [problem, polish.unwrap_err().to_string()] {
        assert!(error.contains("sparse gaussians") && error.contains("100 x 1000000"), "{error}");
    }
    let subject = Subject { data: &data, model: &ModelSpec::Linear, weights: &weights, start: None };
    let claim = RunClaim::LargestMargin { measure: Measure::Norm(norm) };
    let error = crate::certificates::decide(&claim, &Tolerances::default(), &subject).unwrap_err();
    assert!(matches!(error, DocumentError::TooLarge { entries: 100_000_000, .. }), "{error}");
}

#[test]
fn batches_and_bounds_work_and_threads_change_no_bit() {
    let overrides =
        [&SMALL[..], &["batching=mini(size=9)", "schedule=linear-bound", "stop.steps=60", "stop.log10_loss=-300"]]
            .concat();
    let (one, three) = (Folder::new("one"), Folder::new("three"));
    let first = run(&experiment(&overrides), &one, 1);
    let second = run(&experiment(&overrides), &three, 6);
    assert_eq!(first.data, second.data);
    for (a, b) in first.runs.iter().zip(&second.runs) {
        assert_eq!(a.steps, 60);
        let metrics = |folder: &Folder, name: &str| std::fs::read(folder.0.join(name).join("metrics.csv")).unwrap();
        assert_eq!(metrics(&one, &a.name), metrics(&three, &b.name));
    }
}

#[test]
fn other_data_have_another_fingerprint_and_other_models_are_refused() {
    let print = |change: &str| {
        let experiment = experiment(&[&SMALL[..], &[change]].concat());
        let recipe = &experiment.tasks()[0].recipe;
        super::locate::describe(&recipe.data.load(&crate::numeric::Streams::new(1)).unwrap()).sha256
    };
    assert_eq!(print("data.margin=0.5"), print("data.margin=0.5"));
    assert_ne!(print("data.margin=0.5"), print("data.margin=0.25"));
    let folder = Folder::new("network");
    let network = experiment(&[&SMALL[..], &["model=network(widths=[3])"]].concat());
    let options = RunOptions { threads: 1, device: Device::Cpu, watcher: &(), interrupt: &AtomicBool::new(false) };
    let error = network.run(&folder.0, &options).unwrap_err().to_string();
    assert!(error.contains("40x3000") && error.contains("linear"), "{error}");
}

#[test]
fn svmlight_files_stay_sparse_where_dense_ones_would_be_large() {
    let folder = Folder::new("svmlight");
    let line = |i: usize| format!("{} {}:1.5 100000:{}\n", if i.is_multiple_of(2) { 1 } else { -1 }, i + 1, i % 2);
    let path = folder.0.join("wide.svm");
    std::fs::write(&path, (0..120).map(line).collect::<String>()).unwrap();
    let test = folder.0.join("test.svm");
    std::fs::write(&test, line(3)).unwrap();
    let file = DataSpec::File(File { test_path: Some(test), ..File::at(&path) });
    let split = file.load(&crate::numeric::Streams::new(0)).unwrap();
    assert!(split.train.inputs.is_sparse() && split.test.unwrap().inputs.is_sparse());
    assert_eq!((split.train.len(), split.train.dimension(), split.train.inputs.stored()), (120, 100_000, 180));
}
