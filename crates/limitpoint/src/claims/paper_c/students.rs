//! The runs of J.1 and J.2: students of a teacher on the circle, one for every mirror map and seed.

use std::sync::Arc;

use rayon::prelude::*;

use crate::claims::statistics::mean;
use crate::claims::{ClaimError, Finished, Lab};
use crate::data::GroundTruth;
use crate::experiments::Task;
use crate::norms::NormSpec;
use crate::observers::Spacing;
use crate::params::ParamLayout;

/// Keys of the maps in the experiments, in the order of their degrees 1, 2, 3: hyperbolic entropy, gradient descent,
/// cubes.
pub(super) const MAPS: [&str; 3] = ["hyp", "gradient", "cube"];
/// The norms of their horizons.
pub(super) const NORMS: [&str; 3] = ["ℓ1", "ℓ2", "ℓ3"];
/// A neuron or weight below this share of the largest does not count.
pub(super) const SMALL: f64 = 0.01;

/// One student.
pub(super) struct Student {
    /// Key of the mirror map in the experiment.
    pub map: String,
    /// Its seed.
    pub seed: u64,
    /// (log10 L, margins q_min/‖θ‖_k^L for k = 1, 2, 3), at moments equally far apart in the logarithm of the step.
    pub course: Vec<(f64, [f64; 3])>,
    /// Unit directions of the teacher's neurons.
    pub teacher: Vec<[f64; 2]>,
    /// Names and shapes of its weights.
    pub layout: ParamLayout,
    /// The end.
    pub end: Finished,
}

impl Student {
    /// The margins per ℓ1, ℓ2, ℓ3 norm at the end.
    pub fn last(&self) -> [f64; 3] {
        self.course.last().map_or([f64::NAN; 3], |(_, margins)| *margins)
    }

    /// The weights of a layer, from 0, row after row.
    pub fn layer(&self, layer: usize) -> &[f64] {
        &self.end.params[self.layout.blocks()[layer].range()]
    }

    /// |a_j| w_j of every neuron of a two-layer student in the plane.
    pub fn features(&self) -> Vec<[f64; 2]> {
        let (w, a) = (self.layer(0), self.layer(1));
        a.iter().zip(w.chunks_exact(2)).map(|(a, w)| [a.abs() * w[0], a.abs() * w[1]]).collect()
    }

    /// |a_j|‖w_j‖ of every neuron, decreasing.
    pub fn sizes(&self) -> Vec<f64> {
        let mut sizes: Vec<f64> = self.features().iter().map(|f| f[0].hypot(f[1])).collect();
        sizes.sort_by(|a, b| b.total_cmp(a));
        sizes
    }

    /// Neurons of at least a hundredth of the largest |a_j|‖w_j‖.
    pub fn active(&self) -> usize {
        let sizes = self.sizes();
        sizes.iter().filter(|size| **size > SMALL * sizes[0]).count()
    }
}

/// All runs of an experiment.
pub(super) fn class<S: AsRef<str>>(
    lab: &Lab,
    name: &str,
    experiment: &str,
    overrides: &[S],
) -> Result<Arc<Vec<Student>>, ClaimError> {
    lab.once(name, || lab.tasks(experiment, overrides)?.into_par_iter().map(|task| teach(lab, &task)).collect())
}

fn teach(lab: &Lab, task: &Task) -> Result<Student, ClaimError> {
    let split = lab.data(task)?;
    let teacher = match split.truth {
        Some(GroundTruth::Teacher(teacher)) => teacher.neurons.iter().map(|n| [n.weights[0], n.weights[1]]).collect(),
        _ => Vec::new(),
    };
    let data = split.train;
    let objective = lab.objective(task, &data)?;
    let layout = objective.layout().clone();
    let degree = objective.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
    let mut norms = Vec::new();
    for norm in [NormSpec::L1, NormSpec::L2, NormSpec::Lp { p: 3.0 }] {
        norms.push(norm.build(&layout)?);
    }
    let spacing = Spacing::Logarithmic { per_decade: 10 };
    let mut course = Vec::new();
    let end = lab.watch_on(
        task,
        data,
        |step| spacing.includes(step),
        |snapshot| {
            let point = &snapshot.point;
            let mut margins = [0.0; 3];
            for (margin, norm) in margins.iter_mut().zip(&mut norms) {
                *margin = point.smallest_margin() / norm.value(point.params).powf(degree);
            }
            course.push((point.log_loss / std::f64::consts::LN_10, margins));
        },
    )?;
    Ok(Student { map: task.label.optimiser.clone(), seed: task.label.seed, course, teacher, layout, end })
}

/// The students of Table 2: the paper's size at both scales, a shorter way to the same loss.
pub(super) fn students(lab: &Lab) -> Result<Arc<Vec<Student>>, ClaimError> {
    class::<&str>(lab, "students on the circle", "c-circle", &[])
}

/// Three-layer students of Table 6; at the quick scale narrower ones.
pub(super) fn deep_students(lab: &Lab) -> Result<Arc<Vec<Student>>, ClaimError> {
    let quick = ["model.widths=[30, 30]", "seeds=42..44", "stop.log10_loss=-30"];
    class(lab, "three-layer students", "c-deep", lab.choose(&quick[..], &[]))
}

/// Students of the λ sweeps.
pub(super) fn sweep(lab: &Lab) -> Result<Arc<Vec<Student>>, ClaimError> {
    class::<&str>(lab, "students of all λ", "c-circle-lambda", &[])
}

/// Three-layer students of the λ sweeps.
pub(super) fn deep_sweep(lab: &Lab) -> Result<Arc<Vec<Student>>, ClaimError> {
    // narrower students stand twice the rate, and need it to get as far
    let quick = ["model.widths=[30, 30]", "seeds=42..44", "stop.steps=8000", "schedule=constant(rate=0.2)"];
    class(lab, "three-layer students of all λ", "c-deep-lambda", lab.choose(&quick[..], &[]))
}

/// The runs with one map, in the order of their seeds.
pub(super) fn of<'a>(students: &'a [Student], map: &str) -> Vec<&'a Student> {
    let mut own: Vec<&Student> = students.iter().filter(|s| s.map == map).collect();
    own.sort_by_key(|s| s.seed);
    own
}

/// Mean and standard deviation over seeds of something measured.
pub(super) fn over_seeds(students: &[Student], map: &str, measure: impl Fn(&Student) -> f64) -> (f64, f64) {
    let values: Vec<f64> = of(students, map).into_iter().map(measure).collect();
    let centre = mean(&values);
    let squares: f64 = values.iter().map(|x| (x - centre).powi(2)).sum();
    (centre, (squares / (values.len() as f64 - 1.0)).sqrt())
}
