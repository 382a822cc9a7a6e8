//! Mirror flows that are followed until their gauge looks like its horizon.

use std::sync::Arc;

use rayon::prelude::*;

use crate::claims::arithmetic::larger;
use crate::claims::{ClaimError, Lab};
use crate::driver::{Advance, DriverError};
use crate::numeric::log_add_exp;
use crate::potentials::PotentialSpec;

/// The relative gap that counts as closed.
pub(super) const GAP: f64 = 0.1;
/// p of the smoothed potential.
pub(super) const P: f64 = 4.0;
/// The degree of a two-layer network of squared ReLUs.
pub(super) const DEGREE: f64 = 3.0;

/// Which potential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Hyperbolic,
    Smoothed,
}

impl Family {
    pub fn word(self) -> &'static str {
        match self {
            Self::Hyperbolic => "hyperbolic",
            Self::Smoothed => "smoothed",
        }
    }

    /// Deviation of the start. The hyperbolic entropy starts so small that unused weights count in full; the smoothed
    /// power starts with all weights in use, as its solutions have them.
    fn deviation(self) -> f64 {
        match self {
            Self::Hyperbolic => 0.03,
            Self::Smoothed => 1.0,
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
pub(super) struct Course {
    pub family: Family,
    pub lambda: f64,
    /// n.
    pub parameters: f64,
    /// Whether the data were fitted: some starts end where the network is 0.
    pub fitted: bool,
    /// Whether the gap was closed.
    pub closed: bool,
    /// ln t and u = ln 1/L where the gap was closed for good.
    pub log_time: f64,
    pub u: f64,
    /// u/gauge^L there.
    pub margin: f64,
    /// a^L, the logarithm of the time in the lemma.
    pub lemma: f64,
    /// The gauge at which the explicit bounds promise a closed gap.
    pub promised: f64,
    /// Steps.
    pub steps: u64,
    /// Largest of φ/gauge − 1, gauge/(cφ + a) − 1, gap − (c − 1) − a/gauge, and of the sharper bound.
    pub worst: [f64; 4],
    /// (ln t, gap) on the way.
    pub gaps: Vec<[f64; 2]>,
}

impl Course {
    fn run(lab: &Lab, family: Family, width: usize, lambda: f64, seed: u64) -> Result<Self, ClaimError> {
        let word = family.word();
        let overrides = [
            format!("model.widths=[{width}]"),
            format!("flows.{word}.mirror.potential.{word}.lambda={lambda:e}"),
            format!("initialiser.normal.deviation={}", family.deviation()),
            format!("seed={seed}"),
        ];
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
        let mut process = lab.start_on(task, &data)?;
        let mut course = Self {
            family,
            lambda,
            parameters: n,
            fitted: false,
            closed: false,
            log_time: f64::NAN,
            u: f64::NAN,
            margin: f64::NAN,
            lemma: a.powf(DEGREE),
            promised,
            steps: 0,
            worst: [f64::NEG_INFINITY; 4],
            gaps: Vec::new(),
        };
        while process.log_loss() > lowest && process.step() < most {
            match process.advance() {
                Ok(Advance::Moved) => {}
                Ok(Advance::Ended(_)) => break,
                // a network that tends to 0 slows down for ever
                Err(DriverError::Flow { .. }) if process.log_loss() > -1.0 => break,
                Err(error) => return Err(error.into()),
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
            course.fitted |= u > 1.0;
            // before separation there is no margin to speak of; a gap that opens again was not closed
            if gap > GAP {
                course.closed = false;
            } else if u > 1.0 && !course.closed {
                course.closed = true;
                (course.log_time, course.u) = (process.log_time(), u);
                course.margin = u / gauge.powf(DEGREE);
            }
            if course.closed && u > 1.2 * course.u + 5.0 {
                break;
            }
        }
        course.steps = process.step();
        Ok(course)
    }

    /// ln(1 + t) where the gap closed: ln t, but positive.
    pub fn time(&self) -> f64 {
        log_add_exp(0.0, self.log_time)
    }

    /// ln t by the rate law Loss · t (ln t)^{2−α/L} → 1/(L² γ^{α/L}) from u and γ where the gap closed.
    pub fn law(&self) -> f64 {
        let alpha = if self.family == Family::Hyperbolic { 1.0 } else { P };
        let constant = 2.0 * DEGREE.ln() + alpha / DEGREE * self.margin.ln();
        self.u - (2.0 - alpha / DEGREE) * self.log_time.ln() - constant
    }
}

/// What the claim runs: λ at a fixed width, widths at a fixed λ, widths with λ by the recipe.
pub(super) struct Courses {
    pub by_lambda: Vec<Course>,
    pub by_width: Vec<Course>,
    pub by_recipe: Vec<Course>,
}

pub(super) const FAMILIES: [Family; 2] = [Family::Hyperbolic, Family::Smoothed];

pub(super) fn courses(lab: &Lab) -> Result<Arc<Courses>, ClaimError> {
    lab.once("flows until the horizon shows", || {
        let (mut lambda, mut width, mut recipe) = (Vec::new(), Vec::new(), Vec::new());
        let widths: &[usize] = lab.choose(&[10, 16, 24, 36], &[10, 13, 16, 20, 24, 30, 36, 42]);
        for family in FAMILIES {
            let (values, fixed): (&[f64], f64) = match family {
                Family::Hyperbolic => (&[0.01, 0.02, 0.05, 0.12], 0.01),
                Family::Smoothed => (&[5.0, 10.0, 20.0, 40.0], 10.0),
            };
            for seed in 0..lab.choose(3, 8) {
                lambda.extend(values.iter().map(|value| (family, 10, *value, seed)));
                width.extend(widths.iter().map(|width| (family, *width, fixed, seed)));
                // n = 4·width: three inputs and one output
                recipe.extend(widths.iter().map(|width| (family, *width, family.recipe(4.0 * *width as f64), seed)));
            }
        }
        let run = |cases: Vec<(Family, usize, f64, u64)>| -> Result<Vec<Course>, ClaimError> {
            let course = |(family, width, value, seed)| Course::run(lab, family, width, value, seed);
            cases.into_par_iter().map(course).collect()
        };
        Ok(Courses { by_lambda: run(lambda)?, by_width: run(width)?, by_recipe: run(recipe)? })
    })
}
