//! The runs behind Figures 1 and 5: every algorithm and every switch, all seeds, three scales of initialisation.

use std::sync::Arc;

use rayon::prelude::*;

use crate::{ClaimError, Lab, Moments, Outcome, Series, measures};
use limitpoint::experiments::Task;
use limitpoint::norms::NormSpec;
use limitpoint::observers::StopReason;

/// The algorithms, with the norm whose margin each raises: γ₁ is the margin per ℓ∞ norm, γ_∞ that per ℓ1 norm.
pub(super) const ALGORITHMS: [&str; 5] = ["sd", "gd", "cd", "gd-cd", "gd-sd"];
/// γ₁, γ₂, γ_∞ and their names in files, their norms, and the algorithm that maximises each.
pub(super) const NORMS: [(&str, &str, NormSpec, &str); 3] = [
    ("γ₁", "gamma1", NormSpec::Linf, "sd"),
    ("γ₂", "gamma2", NormSpec::L2, "gd"),
    ("γ_∞", "gamma-inf", NormSpec::L1, "cd"),
];
/// The scales of initialisation.
pub(super) const SCALES: [f64; 3] = [0.1, 0.01, 0.001];

/// One run, as the figures show it: `step`, `accuracy`, γ₁, γ₂, γ_∞ at moments equally far apart in the logarithm of the
/// step.
pub(super) struct Student {
    /// The scale α of its start.
    pub scale: f64,
    pub run: Series,
    /// Share of the test examples on the right side.
    pub test_accuracy: f64,
}

impl Student {
    /// Key of the algorithm in the experiment.
    pub fn algorithm(&self) -> &str {
        self.run.optimiser()
    }

    /// Whether it ever had perfect training accuracy.
    pub fn separated(&self) -> bool {
        self.run.column("accuracy").contains(&1.0)
    }

    /// A margin at the end over that where the training accuracy was first perfect; NaN if it never was.
    pub fn growth(&self, margin: &str) -> f64 {
        self.run.last(margin) / self.run.value_where(margin, "accuracy", |accuracy| accuracy == 1.0)
    }

    /// Whether it went on to the last step.
    pub fn finished(&self) -> bool {
        !matches!(self.run.end.reason, StopReason::NotFinite { .. })
    }
}

/// Fewer steps need longer ones where they are not resolved.
const LONGER: [&str; 3] = [
    "schedules.cd=constant(rate=0.02)",
    "schedules.gd-cd=constant(rate=0.002)",
    "schedules.gd-sd=constant(rate=0.002)",
];

/// The settings of the figure at this scale: below the paper's own a smaller problem of the same kind, there as many
/// inputs as its density of 10⁻⁴ with three active ones means, 2¹⁵; it prints 2³², which no machine holds.
pub(super) fn settings(lab: &Lab) -> Vec<String> {
    let small = ["data.count=80", "data.width=16", "model.widths=[128]", "stop.steps=6000"];
    let larger = ["model.widths=[256]", "stop.steps=10000"];
    let [small, larger] = [&small[..], &larger[..]].map(|sizes| [sizes, &LONGER].concat());
    lab.scales(small, larger, vec!["data.dimension=32768"]).into_iter().map(String::from).collect()
}

/// The students of the figure.
pub(super) fn students(lab: &Lab) -> Result<Arc<Vec<Student>>, ClaimError> {
    lab.once("students", || {
        class(lab, "a-teacher", &settings(lab), lab.scales(128.0, 256.0, 1024.0), lab.scales(6, 10, 20))
    })
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
            // the paper divides the first layer's scale by the width for coordinate descent, by d otherwise
            let start = match algorithm {
                "cd" => format!("initialiser=uniform(scale={}, fan_in=false)", scale / width),
                _ => format!("initialiser=uniform(scale={scale})"),
            };
            let overrides = [settings, &[format!("seeds=0..{}", seeds - 1), start]].concat();
            tasks.extend(lab.tasks_of(experiment, &overrides, &[algorithm])?.into_iter().map(|task| (scale, task)));
        }
    }
    let teach = |(scale, task): (f64, Task)| {
        let split = lab.data(&task)?;
        let mut columns = vec![measures::basics(), measures::accuracy()];
        columns.extend(NORMS.map(|(name, _, norm, _)| measures::margins(norm).named([name, "soft"])));
        let run = lab.series_on(&task, &split, Moments::per_decade(10), columns)?;
        let test_accuracy = split.test.as_ref().map_or(Ok(f64::NAN), |test| run.end.accuracy(test))?;
        Ok(Student { scale, run, test_accuracy })
    };
    tasks.into_par_iter().map(teach).collect()
}

/// The runs of one algorithm and scale, in the order of their seeds.
pub(super) fn of<'a>(students: &'a [Student], algorithm: &str, scale: f64) -> Vec<&'a Student> {
    let mut own: Vec<&Student> = students.iter().filter(|s| s.algorithm() == algorithm && s.scale == scale).collect();
    own.sort_by_key(|s| s.run.seed());
    own
}

/// Those of them that separated the data.
pub(super) fn good<'a>(students: &'a [Student], algorithm: &str, scale: f64) -> Vec<&'a Student> {
    of(students, algorithm, scale).into_iter().filter(|s| s.separated()).collect()
}

/// Runs of two algorithms from the same seed and scale, where both separated the data.
pub(super) fn pairs<'a>(students: &'a [Student], a: &str, b: &str, scale: f64) -> Vec<(&'a Student, &'a Student)> {
    let both = of(students, a, scale).into_iter().zip(of(students, b, scale));
    both.filter(|(a, b)| a.separated() && b.separated()).collect()
}

/// Notes the runs that never separate their data, which no comparison speaks of.
pub(super) fn leave_out(students: &[Student], outcome: &mut Outcome) {
    for student in students.iter().filter(|student| !student.separated()) {
        let (algorithm, scale, seed) = (student.algorithm(), student.scale, student.run.seed());
        outcome.leave_out(format!("{algorithm}, α = {scale}, seed {seed}"), "never separates its data");
    }
}
