//! The runs that figures and tables of the papers are made of, in the papers' own settings.

use std::path::{Path, PathBuf};

use limitpoint::experiments::{Plan, PlanPoint, RecipeSource, plan};
use limitpoint::models::{Initialiser, ModelSpec, Shape};

use crate::ClaimError;
use crate::mirror_metrics::Metric;

/// A built-in experiment under overrides, whose runs lie in a folder of this name. Several exhibits may be read from one.
#[derive(Debug, Clone, Copy)]
pub struct RunSet {
    /// Its name.
    pub name: &'static str,
    /// The built-in experiment.
    pub experiment: &'static str,
    /// What differs from it, as the command line writes it.
    pub overrides: &'static [&'static str],
    /// What cannot be written as an override.
    adapt: fn(&mut Plan) -> Result<(), ClaimError>,
}

impl RunSet {
    const fn new(name: &'static str, experiment: &'static str, overrides: &'static [&'static str]) -> Self {
        Self { name, experiment, overrides, adapt: |_| Ok(()) }
    }

    /// The set of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        RUN_SETS.iter().find(|set| set.name == name)
    }

    /// All of its runs.
    pub fn plan(&self) -> Result<Plan, ClaimError> {
        let overrides: Vec<String> = self.overrides.iter().map(|text| (*text).to_owned()).collect();
        let mut plan = plan(&RecipeSource::find(self.experiment)?, &overrides)?.with_own_norms();
        (self.adapt)(&mut plan)?;
        Ok(plan)
    }

    /// Its experiment and what differs, in one line.
    pub fn words(&self) -> String {
        let overrides = self.overrides.iter().map(|text| format!(" {text}"));
        format!("{}{}", self.experiment, overrides.collect::<String>())
    }

    /// Its folder.
    pub fn folder(&self, home: &Path) -> PathBuf {
        home.join(self.name)
    }
}

const STARTS: &str = "initialiser.uniform.scale=0.1,0.01,0.001";

/// Every set of runs.
///
/// ```
/// use limitpoint_claims::RunSet;
/// let set = RunSet::find("c-circle-printed").unwrap();
/// assert_eq!(set.plan()?.tasks().len(), 30); // five rules, six seeds
/// # Ok::<(), limitpoint_claims::ClaimError>(())
/// ```
pub const RUN_SETS: &[RunSet] = &[
    RunSet { adapt: even_start, ..RunSet::new("a-teacher", "a-teacher", &[STARTS, "seed=1..20"]) },
    RunSet {
        adapt: even_start,
        ..RunSet::new("a-teacher-wide", "a-teacher", &[STARTS, "seed=1..20", "data.teacher-student.dimension=32768"])
    },
    RunSet::new("a-adam-36", "a-adam-mnist", &[]),
    RunSet::new("a-adam-27", "a-adam-mnist", &["data.mnist.pair=[2, 7]"]),
    RunSet::new("a-shampoo", "a-shampoo-mnist", &[]),
    RunSet::new("c-circle-printed", "c-circle-printed", &[]),
    RunSet::new("c-circle-lambda", "c-circle-lambda", &[]),
    RunSet::new("c-circle-short", "c-circle-long", &["stop.steps=1000"]),
    RunSet::new("c-circle-long", "c-circle-long", &[]),
    RunSet::new("c-deep-printed", "c-deep-printed", &[]),
    RunSet::new("c-deep-lambda", "c-deep-lambda", &[]),
    RunSet { adapt: all_metrics, ..RunSet::new("c-vgg16", "c-vgg16", &["schedule.constant.rate=0.1,0.2"]) },
    RunSet { adapt: few_metrics, ..RunSet::new("c-vgg16-short", "c-vgg16", &["seeds=42", "stop.steps=5000"]) },
    RunSet::new("d-cnn", "d-cnn", &["seed=0..9"]),
    RunSet::new("d-cnn-biased", "d-cnn", &["model.image.biases=all"]),
    RunSet::new("d-cnn-constant", "d-cnn", &["schedule=constant(rate=0.01)", "model.image.biases=first,all"]),
    RunSet::new("d-vgg16", "d-vgg16", &["model.image.biases=first,all"]),
    RunSet::new("d-vgg16-loss", "d-vgg16", &["schedule=loss-based", "seed=0..2"]),
    RunSet::new("d-vgg16-loss-biased", "d-vgg16", &["schedule=loss-based", "model.image.biases=all"]),
];

/// Coordinate descent alone starts with all weights of one size, the scale over the width (A section 4.1).
fn even_start(plan: &mut Plan) -> Result<(), ClaimError> {
    plan.points = plan.only(|_| true).points;
    for PlanPoint { recipe, .. } in plan.points.iter_mut().filter(|point| point.recipe.optimisers.contains_key("cd")) {
        if let (Initialiser::Uniform { scale, fan_in }, ModelSpec::Network { widths, .. }) =
            (&mut recipe.initialiser, &recipe.model)
        {
            (*scale, *fan_in) = (*scale / widths.first().map_or(1.0, |width| *width as f64), false);
        }
    }
    Ok(())
}

/// Gradient descent, and the metrics of both potentials for the four λ of C section J.3.
fn all_metrics(plan: &mut Plan) -> Result<(), ClaimError> {
    metrics(plan, |_| true)
}

/// Those that C Figure 4 shows.
fn few_metrics(plan: &mut Plan) -> Result<(), ClaimError> {
    metrics(plan, |name| super::photographs::SHOWN.contains(&name))
}

fn metrics(plan: &mut Plan, wanted: fn(&str) -> bool) -> Result<(), ClaimError> {
    let lambdas = [("1e-5", 1e-5), ("0_01", 0.01), ("0_1", 0.1), ("1", 1.0)];
    let mut named = vec![("gradient".to_owned(), Metric::Gradient)];
    named.extend(lambdas.map(|(word, lambda)| (format!("hyp-{word}"), Metric::Hyperbolic { lambda })));
    named.extend(lambdas.map(|(word, lambda)| (format!("p10-{word}"), Metric::Smoothed { lambda })));
    named.retain(|(name, _)| wanted(name));
    let recipes = plan.points.iter_mut().map(|point| &mut point.recipe).chain([&mut plan.base]);
    for recipe in recipes {
        let architecture = recipe.model.architecture(&Shape::image(3, 32, 32), 10)?;
        let all = named.iter().map(|(name, metric)| (name.clone(), metric.optimiser(architecture.layout())));
        recipe.optimisers = all.collect();
    }
    Ok(())
}
