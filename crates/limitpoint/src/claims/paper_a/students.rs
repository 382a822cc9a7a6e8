//! The runs behind Figures 1 and 5: every algorithm and every switch, all seeds, three scales of initialisation.

use std::sync::Arc;

use rayon::prelude::*;

use crate::claims::{ClaimError, Lab};
use crate::experiments::Task;
use crate::norms::NormSpec;
use crate::observers::{Spacing, StopReason};

/// The algorithms, with the norm whose margin each raises: γ₁ is the margin per ℓ∞ norm, γ_∞ that per ℓ1 norm.
pub(super) const ALGORITHMS: [&str; 5] = ["sd", "gd", "cd", "gd-cd", "gd-sd"];
/// Norms of γ₁, γ₂, γ_∞, and the algorithm that maximises each.
pub(super) const NORMS: [(NormSpec, &str, &str); 3] =
    [(NormSpec::Linf, "γ₁", "sd"), (NormSpec::L2, "γ₂", "gd"), (NormSpec::L1, "γ_∞", "cd")];
/// The scales of initialisation.
pub(super) const SCALES: [f64; 3] = [0.1, 0.01, 0.001];

/// One run, as the figures show it.
pub(super) struct Student {
    /// Key of the algorithm in the experiment.
    pub algorithm: String,
    /// The scale α of its start.
    pub scale: f64,
    /// Its seed.
    pub seed: u64,
    /// Step and γ₁, γ₂, γ_∞ at moments equally far apart in the logarithm of the step.
    pub course: Vec<(u64, [f64; 3])>,
    /// The first of them with perfect training accuracy.
    pub separated: Option<usize>,
    /// Share of the test examples on the right side.
    pub test_accuracy: f64,
    /// Whether it went on to the last step.
    pub finished: bool,
}

impl Student {
    /// γ₁, γ₂, γ_∞ at the end.
    pub fn last(&self) -> [f64; 3] {
        self.course.last().map_or([f64::NAN; 3], |(_, margins)| *margins)
    }
}

/// Fewer steps need longer ones where they are not resolved.
const LONGER: [&str; 3] = [
    "schedules.cd=constant(rate=0.02)",
    "schedules.gd-cd=constant(rate=0.002)",
    "schedules.gd-sd=constant(rate=0.002)",
];

/// The settings of the figure at this scale: at the quick one a smaller problem of the same kind.
pub(super) fn settings(lab: &Lab) -> Vec<String> {
    let small = ["data.count=80", "data.width=16", "model.widths=[128]", "stop.steps=6000"];
    lab.choose([&small[..], &LONGER].concat(), Vec::new()).into_iter().map(String::from).collect()
}

/// The students of the figure.
pub(super) fn students(lab: &Lab) -> Result<Arc<Vec<Student>>, ClaimError> {
    lab.once("students", || class(lab, "a-teacher", &settings(lab), lab.choose(128.0, 1024.0), lab.choose(6, 20)))
}

/// The students of a teacher that sees three inputs.
pub(super) fn sparse_students(lab: &Lab) -> Result<Arc<Vec<Student>>, ClaimError> {
    let quick = [&["stop.steps=3000"][..], &LONGER].concat();
    let settings: Vec<String> = lab.choose(quick, Vec::new()).into_iter().map(String::from).collect();
    lab.once("sparse students", || class(lab, "a-sparse-teacher", &settings, 128.0, lab.choose(4, 20)))
}

/// All runs of an experiment: every algorithm and scale, and as many seeds.
fn class(lab: &Lab, experiment: &str, settings: &[String], width: f64, seeds: u64) -> Result<Vec<Student>, ClaimError> {
    let mut tasks = Vec::new();
    for scale in SCALES {
        for algorithm in ALGORITHMS {
            let mut overrides = settings.to_vec();
            overrides.push(format!("seeds=0..{}", seeds - 1));
            // the paper divides the first layer's scale by the width for coordinate descent, by d otherwise
            overrides.push(match algorithm {
                "cd" => format!("initialiser=uniform(scale={}, fan_in=false)", scale / width),
                _ => format!("initialiser=uniform(scale={scale})"),
            });
            let all = lab.tasks(experiment, &overrides)?;
            tasks.extend(all.into_iter().filter(|t| t.label.optimiser == algorithm).map(|task| (scale, task)));
        }
    }
    tasks.into_par_iter().map(|(scale, task)| teach(lab, scale, &task)).collect()
}

fn teach(lab: &Lab, scale: f64, task: &Task) -> Result<Student, ClaimError> {
    let split = lab.data(task)?;
    let layout = lab.objective(task, &split.train)?.layout().clone();
    let mut norms = Vec::new();
    for (norm, _, _) in NORMS {
        norms.push(norm.build(&layout)?);
    }
    let spacing = Spacing::Logarithmic { per_decade: 10 };
    let (mut course, mut separated) = (Vec::new(), None);
    let end = lab.watch(
        task,
        |step| spacing.includes(step),
        |snapshot| {
            let point = &snapshot.point;
            if separated.is_none() && point.accuracy() == 1.0 {
                separated = Some(course.len());
            }
            let least = point.smallest_margin();
            let sizes: Vec<f64> = norms.iter_mut().map(|norm| norm.value(point.params).powi(2)).collect();
            course.push((snapshot.step, [least / sizes[0], least / sizes[1], least / sizes[2]]));
        },
    )?;
    let test_accuracy = match &split.test {
        Some(test) => {
            let mut objective = lab.objective(task, test)?;
            objective.forward(&end.params);
            objective.accuracy()
        }
        None => f64::NAN,
    };
    let finished = !matches!(end.reason, StopReason::NotFinite { .. });
    let (algorithm, seed) = (task.label.optimiser.clone(), task.label.seed);
    Ok(Student { algorithm, scale, seed, course, separated, test_accuracy, finished })
}

/// The runs of one algorithm and scale, in the order of their seeds.
pub(super) fn of<'a>(students: &'a [Student], algorithm: &str, scale: f64) -> Vec<&'a Student> {
    let mut own: Vec<&Student> = students.iter().filter(|s| s.algorithm == algorithm && s.scale == scale).collect();
    own.sort_by_key(|s| s.seed);
    own
}

/// Runs of two algorithms from the same seed and scale, where both separated the data.
pub(super) fn pairs<'a>(students: &'a [Student], a: &str, b: &str, scale: f64) -> Vec<(&'a Student, &'a Student)> {
    let both = of(students, a, scale).into_iter().zip(of(students, b, scale));
    both.filter(|(a, b)| a.separated.is_some() && b.separated.is_some()).collect()
}
