//! Lemma 4.10 and Appendix H: when the gauge that mirror flow maximises the margin of looks like its horizon.

use std::sync::Arc;

use rayon::prelude::*;

use crate::claims::arithmetic::{larger, smaller};
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};
use crate::driver::Advance;
use crate::potentials::PotentialSpec;

pub(super) const CLAIMS: [Claim; 1] = [Claim {
    id: "C.lem4.10",
    covers: &["C.lemH2", "C.corH3", "C.corH4"],
    statement: "The relative gap between gauge and horizon is at most (c − 1) + a/gauge, so that the time it takes to close \
                is exponential in a power of λ and n, and is not for λ = 1/n² and λ = 1/(pn)",
    experiments: &["c-reach"],
    try_out: visible,
}];

/// The relative gap that counts as closed.
const GAP: f64 = 0.1;
/// p of the smoothed potential.
const P: f64 = 3.0;
/// The degree of a two-layer network of squared ReLUs.
const DEGREE: f64 = 3.0;

/// Which potential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Hyperbolic,
    Smoothed,
}

impl Family {
    fn word(self) -> &'static str {
        match self {
            Self::Hyperbolic => "hyperbolic",
            Self::Smoothed => "smoothed",
        }
    }

    fn potential(self, lambda: f64) -> PotentialSpec {
        match self {
            Self::Hyperbolic => PotentialSpec::Hyperbolic { lambda },
            Self::Smoothed => PotentialSpec::Smoothed { p: P, lambda },
        }
    }

    /// The λ that Lemma 4.10 recommends for n weights.
    fn recipe(self, n: f64) -> f64 {
        match self {
            Self::Hyperbolic => 1.0 / (n * n),
            Self::Smoothed => 1.0 / (P * n),
        }
    }
}

/// A flow from its start to where the gap is closed for good, with the worst of every bound on the way.
struct Course {
    family: Family,
    lambda: f64,
    /// n.
    parameters: f64,
    /// Whether the gap was closed.
    closed: bool,
    /// ln t and u = ln 1/L where the gap was first closed.
    log_time: f64,
    u: f64,
    /// u/gauge^L there.
    margin: f64,
    /// The gauge at which the explicit bounds promise a closed gap.
    promised: f64,
    /// Steps.
    steps: u64,
    /// Largest of φ/gauge − 1, gauge/(cφ + a) − 1, gap − (c − 1) − a/gauge, and of the sharper bound.
    worst: [f64; 4],
    /// (ln t, gap) on the way.
    gaps: Vec<[f64; 2]>,
}

impl Course {
    fn run(lab: &Lab, family: Family, width: usize, lambda: f64) -> Result<Self, ClaimError> {
        let word = family.word();
        let overrides =
            [format!("model.widths=[{width}]"), format!("flows.{word}.mirror.potential.{word}.lambda={lambda:e}")];
        let mut tasks = lab.tasks("c-reach", &overrides)?;
        tasks.retain(|task| task.label.optimiser == word);
        let task = &tasks[0];
        let data = lab.data(task)?.train;
        let objective = lab.objective(task, &data)?;
        let layout = objective.layout().clone();
        let n = layout.len() as f64;
        let mut potential = family.potential(lambda).build(&layout)?;
        let bounds = potential.horizon_bounds();
        let (c, a) = bounds.map_or((f64::NAN, f64::NAN), |bounds| (bounds.factor, bounds.offset));
        let excess = (1.0 - GAP).powf(-P) - 1.0;
        // from (pQ)/φ^p − 1 ≤ pλ n^{1−2/p}/(2(p−1) ‖θ‖_p^{p−2})
        let sharp = |size: f64| P * lambda * n.powf(1.0 - 2.0 / P) / (2.0 * (P - 1.0) * size.powf(P - 2.0));
        let promised = match family {
            Family::Hyperbolic => a / GAP,
            Family::Smoothed => {
                let size = (sharp(1.0) / excess).powf(1.0 / (P - 2.0));
                (P - 1.0).powf(1.0 / P) * size / (1.0 - GAP)
            }
        };
        let most = task.recipe.stop.steps.unwrap_or(u64::MAX);
        let lowest = task.recipe.stop.log10_loss.unwrap_or(f64::NEG_INFINITY) * std::f64::consts::LN_10;
        let mut process = task.start(objective, &data)?;
        let mut course = Self {
            family,
            lambda,
            parameters: n,
            closed: false,
            log_time: f64::NAN,
            u: f64::NAN,
            margin: f64::NAN,
            promised,
            steps: 0,
            worst: [f64::NEG_INFINITY; 4],
            gaps: Vec::new(),
        };
        while process.log_loss() > lowest && process.step() < most {
            if !matches!(process.advance()?, Advance::Moved) {
                break;
            }
            let theta = process.params();
            let (gauge, horizon) = (potential.gauge(theta), potential.horizon(theta));
            let (gap, u) = (1.0 - horizon / gauge, -process.log_loss());
            let sharper = match family {
                Family::Hyperbolic => f64::NEG_INFINITY,
                Family::Smoothed => {
                    let size = horizon / (P - 1.0).powf(1.0 / P);
                    (gauge / horizon).powf(P) - 1.0 - sharp(size)
                }
            };
            let here = [horizon / gauge - 1.0, gauge / (c * horizon + a) - 1.0, gap - (c - 1.0) - a / gauge, sharper];
            for (worst, value) in course.worst.iter_mut().zip(here) {
                *worst = larger(*worst, value);
            }
            course.gaps.push([process.log_time(), gap]);
            // before separation there is no margin to speak of
            if gap <= GAP && u > 1.0 {
                course.closed = true;
                (course.log_time, course.u) = (process.log_time(), u);
                course.margin = u / gauge.powf(DEGREE);
                break;
            }
        }
        course.steps = process.step();
        Ok(course)
    }
}

/// What the claim runs: λ at a fixed width, widths at a fixed λ, widths with λ by the recipe.
struct Courses {
    by_lambda: Vec<Course>,
    by_width: Vec<Course>,
    by_recipe: Vec<Course>,
}

const FAMILIES: [Family; 2] = [Family::Hyperbolic, Family::Smoothed];

fn courses(lab: &Lab) -> Result<Arc<Courses>, ClaimError> {
    lab.once("flows until the horizon shows", || {
        let (mut lambda, mut width, mut recipe) = (Vec::new(), Vec::new(), Vec::new());
        let widths: &[usize] = lab.choose(&[4, 6, 9, 13], &[4, 6, 9, 13, 20, 30]);
        for family in FAMILIES {
            let (values, fixed): (&[f64], f64) = match family {
                Family::Hyperbolic => (&[0.02, 0.06, 0.2, 0.6], 0.02),
                Family::Smoothed => (&[0.5, 1.0, 2.0, 4.0], 1.0),
            };
            lambda.extend(values.iter().map(|value| (family, 4, *value)));
            width.extend(widths.iter().map(|width| (family, *width, fixed)));
            // n = 4·width: three inputs and one output
            recipe.extend(widths.iter().map(|width| (family, *width, family.recipe(4.0 * *width as f64))));
        }
        let run = |cases: Vec<(Family, usize, f64)>| -> Result<Vec<Course>, ClaimError> {
            cases.into_par_iter().map(|(family, width, value)| Course::run(lab, family, width, value)).collect()
        };
        Ok(Courses { by_lambda: run(lambda)?, by_width: run(width)?, by_recipe: run(recipe)? })
    })
}

/// The slope of the least-squares line through (ln x, ln y).
fn exponent(points: &[[f64; 2]]) -> f64 {
    let count = points.len() as f64;
    let mean = |axis: usize| points.iter().map(|p| p[axis].ln()).sum::<f64>() / count;
    let (x, y) = (mean(0), mean(1));
    let product: f64 = points.iter().map(|p| (p[0].ln() - x) * (p[1].ln() - y)).sum();
    product / points.iter().map(|p| (p[0].ln() - x).powi(2)).sum::<f64>()
}

fn visible(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, courses) = (Outcome::default(), courses(lab)?);
    for family in FAMILIES {
        for (what, list) in [("by λ", &courses.by_lambda), ("by n", &courses.by_width), ("recipe", &courses.by_recipe)]
        {
            for course in list.iter().filter(|course| course.family == family) {
                outcome.note(format!(
                    "{} {what}: λ {:.3e} n {} ln t {:.2} u {:.2} γ {:.4e} promised u {:.2} steps {} worst {:?} closed {}",
                    family.word(), course.lambda, course.parameters, course.log_time, course.u, course.margin,
                    course.margin * course.promised.powf(DEGREE), course.steps, course.worst, course.closed
                ));
            }
        }
    }
    let _ = (smaller(0.0, 1.0), exponent(&[[1.0, 1.0], [2.0, 2.0]]));
    let _ = Sketch::new("a", "b", "c", "d");
    outcome.push("x", "y", "z", true);
    Ok(outcome)
}
