//! The runs of J.1 and J.2: students of a teacher on the circle, one for every mirror map and seed.

use std::sync::Arc;

use rayon::prelude::*;

use crate::measures;
use crate::statistics::{bootstrap_mean, mean};
use crate::{ClaimError, Columns, Lab, Moments, Outcome, Series};
use limitpoint::data::GroundTruth;
use limitpoint::experiments::Task;
use limitpoint::norms::NormSpec;
use limitpoint::params::ParamLayout;

/// Keys of the maps in the experiments, in the order of their degrees 1, 2, 3: hyperbolic entropy, gradient descent,
/// cubes.
pub(super) const MAPS: [&str; 3] = ["hyp", "gradient", "cube"];
/// The norms of their horizons, which are also the columns of margins q_min/‖θ‖_k^L.
pub(super) const NORMS: [&str; 3] = ["ℓ1", "ℓ2", "ℓ3"];
/// A neuron or weight below this share of the largest does not count.
pub(super) const SMALL: f64 = 0.01;

/// One student: `log10` L and the margins ℓ1, ℓ2, ℓ3, at moments equally far apart in the logarithm of the step.
pub(super) struct Student {
    pub run: Series,
    /// Unit directions of the teacher's neurons.
    pub teacher: Vec<[f64; 2]>,
    /// Names and shapes of its weights.
    pub layout: ParamLayout,
}

impl Student {
    fn of(lab: &Lab, task: &Task) -> Result<Self, ClaimError> {
        let split = task.data()?;
        let teacher = match &split.truth {
            Some(GroundTruth::Teacher(teacher)) => &teacher.neurons[..],
            _ => &[],
        };
        let teacher = teacher.iter().map(|neuron| [neuron.weights[0], neuron.weights[1]]).collect();
        let log10 = Columns::one("log10", |seen| seen.point.log_loss / std::f64::consts::LN_10);
        let norms = NORMS.into_iter().zip([NormSpec::L1, NormSpec::L2, NormSpec::Lp { p: 3.0 }]);
        let margins =
            norms.map(|(name, norm)| measures::margins(norm).named([name.to_owned(), format!("soft {name}")]));
        let columns = [log10].into_iter().chain(margins).collect();
        let run = lab.series_on(task, &split, Moments::per_decade(10), columns)?;
        let layout = lab.objective(task, &run.end.data)?.layout().clone();
        Ok(Self { run, teacher, layout })
    }

    /// Key of the mirror map in the experiment.
    pub fn map(&self) -> &str {
        self.run.optimiser()
    }

    /// The same for readers.
    pub fn title(&self) -> String {
        self.map().replace('_', ".")
    }

    /// The margins per ℓ1, ℓ2, ℓ3 norm at the end.
    pub fn last(&self) -> [f64; 3] {
        NORMS.map(|norm| self.run.last(norm))
    }

    /// A margin where the run passes some log10 L, between two moments linearly; NaN where it does not.
    pub fn margin_at(&self, norm: &str, log10: f64) -> f64 {
        let rows = self.run.rows(["log10", norm]);
        let pair = rows.windows(2).find(|pair| pair[0][0] > log10 && pair[1][0] <= log10);
        pair.map_or(f64::NAN, |pair| {
            let share = (log10 - pair[0][0]) / (pair[1][0] - pair[0][0]);
            pair[0][1] + share * (pair[1][1] - pair[0][1])
        })
    }

    /// The weights of a layer, from 0, row after row.
    pub fn layer(&self, layer: usize) -> &[f64] {
        &self.run.end.params[self.layout.blocks()[layer].range()]
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
    lab.once(name, || lab.tasks(experiment, overrides)?.into_par_iter().map(|task| Student::of(lab, &task)).collect())
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
    let mut own: Vec<&Student> = students.iter().filter(|s| s.map() == map).collect();
    own.sort_by_key(|s| s.run.seed());
    own
}

/// The first student of every map.
pub(super) fn firsts<'a>(students: &'a [Student], maps: &[&str]) -> Vec<&'a Student> {
    maps.iter().filter_map(|map| of(students, map).first().copied()).collect()
}

/// Mean and standard deviation over seeds of the margin in a norm.
pub(super) fn over_seeds(students: &[Student], map: &str, norm: usize) -> (f64, f64) {
    let values: Vec<f64> = of(students, map).into_iter().map(|student| student.last()[norm]).collect();
    let centre = mean(&values);
    let squares: f64 = values.iter().map(|x| (x - centre).powi(2)).sum();
    (centre, (squares / (values.len() as f64 - 1.0)).sqrt())
}

/// Something measured with one map over the same with another, seed by seed.
pub(super) fn paired(students: &[Student], maps: [&str; 2], measure: impl Fn(&Student) -> f64) -> Vec<f64> {
    let [own, other] = maps.map(|map| of(students, map));
    own.into_iter().zip(other).map(|(a, b)| measure(a) / measure(b)).collect()
}

/// An order that is claimed of some pairs of maps, first over second.
pub(super) fn ordered(
    outcome: &mut Outcome,
    students: &[Student],
    what: &str,
    pairs: &[[&str; 2]],
    above: bool,
    measure: impl Fn(&Student) -> f64,
) {
    for [own, other] in pairs {
        let ratios = paired(students, [own, other], &measure);
        order(outcome, &format!("{what}, {own} over {other}"), &ratios, above, pairs.len());
    }
}

/// An order that is claimed of ratios paired by their seeds: the mean ratio on its side of 1, with the ratios and the interval
/// that holds the mean at 95 %, corrected for as many comparisons of its kind.
pub(super) fn order(outcome: &mut Outcome, what: &str, ratios: &[f64], above: bool, comparisons: usize) {
    let [low, high] = bootstrap_mean(ratios, 1.0 - 0.05 / comparisons as f64);
    let seeds: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.3}")).collect();
    let what = format!("{what} (seeds {}; mean between {low:.3} and {high:.3})", seeds.join(", "));
    match above {
        true => outcome.at_least(what, mean(ratios), 1.0),
        false => outcome.at_most(what, mean(ratios), 1.0),
    }
    .by_paper();
}
