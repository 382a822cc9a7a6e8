//! The probe problems, and the judge's optima on them.

use super::{Candidate, FingerprintError, REACHED};
use crate::certificates::{Measure, linear_margin_problem};
use crate::experiments::{RecipeSource, RunError, Task, plan};
use crate::linalg::dot;
use crate::optimisers::OptimiserSpec;
use crate::params::ParamLayout;
use crate::potentials::PotentialSpec;
use crate::reference::{MarginProblem, MarginStatus, max_margin};

/// A linear problem of the battery: a built-in experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSpec {
    /// What tables call it.
    pub name: &'static str,
    /// The built-in experiment.
    pub experiment: &'static str,
}

/// The linear problems. Their data come from a random search that asked the judge, so that every two candidates that
/// differ on them differ a lot: each maximiser has at most nine tenths of the largest margin in any other norm, and is
/// the only one. A unit test proves it anew.
pub const PROBES: [ProbeSpec; 4] = [
    ProbeSpec { name: "vectors 1", experiment: "fingerprint-vectors-1" },
    ProbeSpec { name: "vectors 2", experiment: "fingerprint-vectors-2" },
    ProbeSpec { name: "matrices 1", experiment: "fingerprint-matrices-1" },
    ProbeSpec { name: "matrices 2", experiment: "fingerprint-matrices-2" },
];

/// The judge's answers on one probe; vectors and tables by candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Optima {
    /// γ*.
    pub margins: Vec<f64>,
    /// The maximisers, of norm 1 each.
    pub directions: Vec<Vec<f64>>,
    /// Whether each maximiser is the only one.
    pub unique: Vec<bool>,
    /// `cross[a][b]`: the margin of b's maximiser in norm a, relative to γ*_a; 1 on the diagonal.
    pub cross: Vec<Vec<f64>>,
}

impl Optima {
    /// Asks the judge.
    pub fn of(probe: ProbeSpec, geometries: &[Candidate]) -> Result<Self, FingerprintError> {
        let task = task(probe.experiment, "gradient")?;
        let training = task.training()?;
        let layout = training.objective()?.layout().clone();
        let mut optima = Self { margins: Vec::new(), directions: Vec::new(), unique: Vec::new(), cross: Vec::new() };
        let mut problems: Vec<MarginProblem> = Vec::new();
        for geometry in geometries {
            let measure = Measure::Norm(geometry.norm.clone());
            let problem = linear_margin_problem(training.data(), &measure, &layout).map_err(RunError::from)?;
            let solution = max_margin(&problem)?;
            if solution.status == MarginStatus::NotSeparable {
                let (probe, norm) = (probe.name.to_owned(), geometry.label.clone());
                return Err(FingerprintError::NoMargin { probe, norm });
            }
            problems.push(problem);
            optima.margins.push(solution.margin);
            optima.directions.push(solution.direction);
            optima.unique.push(solution.uniqueness.unique);
        }
        for (problem, optimum) in problems.iter().zip(&optima.margins) {
            let mut norm = problem.norm.build(&problem.layout)?;
            let share = |v: &Vec<f64>| least(problem, v) / (norm.value(v) * optimum);
            optima.cross.push(optima.directions.iter().map(share).collect());
        }
        Ok(optima)
    }

    /// Whether b's margin at a's maximiser falls short of b's optimum enough to be told from it. Norms that are the
    /// same on a probe, such as ℓ2 and spectral on vectors, are no rivals there.
    pub fn rivals(&self, a: usize, b: usize) -> bool {
        a != b && self.cross[b][a] < REACHED
    }

    /// How far the nearest rival's share of its optimum lies below 1 at a's maximiser; 0 without rivals.
    pub fn lead(&self, a: usize) -> f64 {
        let rivals = (0..self.margins.len()).filter(|b| self.rivals(a, *b));
        rivals.map(|b| 1.0 - self.cross[b][a]).reduce(f64::min).unwrap_or(0.0)
    }
}

/// min yᵢ⟨v, xᵢ⟩.
fn least(problem: &MarginProblem, v: &[f64]) -> f64 {
    (0..problem.rows.rows).map(|i| dot(problem.rows.row(i), v)).fold(f64::INFINITY, |a, b| if a < b { a } else { b })
}

/// The probes with their optima.
pub fn battery(geometries: &[Candidate]) -> Result<Vec<(ProbeSpec, Optima)>, FingerprintError> {
    PROBES.into_iter().map(|probe| Ok((probe, Optima::of(probe, geometries)?))).collect()
}

/// An optimiser as recipes and overrides write it; refused where it cannot reach weights of both signs.
pub(super) fn optimiser(text: &str) -> Result<OptimiserSpec, FingerprintError> {
    let task = task(PROBES[0].experiment, text)?;
    let name = task.label.optimiser.clone();
    let spec = task.recipe.optimisers.get(&name).cloned().ok_or(RunError::NoTrainer { name })?;
    if one_sided(&spec) { Err(FingerprintError::OneSided { text: text.to_owned() }) } else { Ok(spec) }
}

/// An optimiser as an override writes it in full.
pub(super) fn written(spec: &OptimiserSpec) -> Result<String, FingerprintError> {
    let value =
        toml::Value::try_from(spec).map_err(|error| FingerprintError::Unwritable { what: error.to_string() })?;
    Ok(value.to_string())
}

fn one_sided(spec: &OptimiserSpec) -> bool {
    let potential_is = |potential: &PotentialSpec| match potential {
        PotentialSpec::Entropy | PotentialSpec::SpectralEntropy => true,
        PotentialSpec::Layers { blocks } => blocks
            .iter()
            .any(|block| matches!(block.potential, PotentialSpec::Entropy | PotentialSpec::SpectralEntropy)),
        _ => false,
    };
    match spec {
        OptimiserSpec::Mirror { potential, .. } | OptimiserSpec::NaturalGradient { potential } => {
            potential_is(potential)
        }
        OptimiserSpec::ConstrainedMirror { .. } => true,
        _ => spec.parts().into_iter().any(one_sided),
    }
}

/// Standard deviation of random starts: small against the weights that fit a probe.
const START: f64 = 0.2;

/// How far from 0 random starts of an optimiser are. The hyperbolic entropy counts from √λ: what begins far beyond is
/// in its far field, and leaves only when the weights have grown by as many powers of ten again.
fn spread(spec: &OptimiserSpec) -> f64 {
    let width = |potential: &PotentialSpec| match potential {
        PotentialSpec::Hyperbolic { lambda } => START.min(lambda.sqrt()),
        _ => START,
    };
    match spec {
        OptimiserSpec::Mirror { potential, .. } | OptimiserSpec::NaturalGradient { potential } => width(potential),
        _ => spec.parts().into_iter().map(spread).fold(START, f64::min),
    }
}

/// One run of a built-in experiment from where its recipe starts.
pub(super) fn task(experiment: &str, optimiser: &str) -> Result<Task, FingerprintError> {
    from(experiment, &[format!("optimiser={optimiser}")], optimiser)
}

/// One run of a probe: from its recipe's start for start 0, from a random point near it for others.
pub(super) fn task_from(probe: ProbeSpec, optimiser: &str, start: u64) -> Result<Task, FingerprintError> {
    let task = task(probe.experiment, optimiser)?;
    let Some(spec) = task.recipe.optimisers.get(&task.label.optimiser).filter(|_| start > 0) else { return Ok(task) };
    let deviation = spread(spec);
    let overrides = [
        format!("optimiser={optimiser}"),
        format!("seed={start}"),
        format!("initialiser=normal(deviation={deviation:e})"),
    ];
    from(probe.experiment, &overrides, optimiser)
}

fn from(experiment: &str, overrides: &[String], optimiser: &str) -> Result<Task, FingerprintError> {
    let mut tasks = plan(&RecipeSource::find(experiment)?, overrides)?.tasks();
    match (tasks.len(), tasks.pop()) {
        (1, Some(task)) => Ok(task),
        (count, _) => Err(FingerprintError::Several { text: optimiser.to_owned(), count }),
    }
}

/// Norms of parameters of a layout, by candidate.
pub(super) fn workers(
    geometries: &[Candidate],
    layout: &ParamLayout,
) -> Result<Vec<Box<dyn crate::norms::Norm>>, FingerprintError> {
    geometries.iter().map(|geometry| Ok(geometry.norm.build(layout)?)).collect()
}
