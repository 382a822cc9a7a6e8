//! Mirror flows that are followed until their gauge looks like its horizon.
//!
//! | column | what it is |
//! |---|---|
//! | `gap` | (gauge − φ)/gauge |
//! | `lower`, `upper`, `explicit` | φ/gauge − 1, gauge/(cφ + a) − 1, gap − (c − 1) − a/gauge: at most 0 by Lemma H.2 |
//! | `sharper` | (pQ)/φ^p − 1 − pλ n^{1−2/p}/(2(p−1) ‖θ‖_p^{p−2}), at most 0; the smoothed power only |

use std::f64::consts::LN_10;
use std::sync::Arc;

use rayon::prelude::*;

use crate::measures::{self, own_potential};
use crate::{ClaimError, Columns, Lab, Moments, Series};
use limitpoint::experiments::Task;
use limitpoint::numeric::log_add_exp;

/// The relative gap that counts as closed.
pub(super) const GAP: f64 = 0.1;
/// p of the smoothed potential, that of the paper's experiments.
pub(super) const P: f64 = 3.0;
/// The degree of a two-layer network of squared ReLUs.
pub(super) const DEGREE: f64 = 3.0;

/// Which potential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Hyperbolic,
    Smoothed,
}

pub(super) const FAMILIES: [Family; 2] = [Family::Hyperbolic, Family::Smoothed];

impl Family {
    pub fn word(self) -> &'static str {
        match self {
            Self::Hyperbolic => "hyperbolic",
            Self::Smoothed => "smoothed",
        }
    }

    /// The λ that Lemma 4.10 recommends, in words.
    pub fn rule(self) -> &'static str {
        match self {
            Self::Hyperbolic => "1/n²",
            Self::Smoothed => "1/(pn)",
        }
    }

    /// The λ that it recommends for n weights.
    fn recipe(self, n: f64) -> f64 {
        match self {
            Self::Hyperbolic => 1.0 / (n * n),
            Self::Smoothed => 1.0 / (P * n),
        }
    }

    /// c and a of Lemma H.2.
    fn constants(self, lambda: f64, n: f64) -> (f64, f64) {
        match self {
            Self::Hyperbolic => (1.0, n * lambda.sqrt()),
            Self::Smoothed => {
                (((P - 1.0 + 0.5 * P * lambda) / (P - 1.0)).powf(1.0 / P), (0.5 * P * lambda * n).powf(1.0 / P))
            }
        }
    }

    /// The gauge at which the explicit bounds promise a closed gap.
    fn promised(self, lambda: f64, n: f64) -> f64 {
        match self {
            Self::Hyperbolic => self.constants(lambda, n).1 / GAP,
            Self::Smoothed => {
                let excess = (1.0 - GAP).powf(-P) - 1.0;
                let size = (sharp(lambda, n, 1.0) / excess).powf(1.0 / (P - 2.0));
                (P - 1.0).powf(1.0 / P) * size / (1.0 - GAP)
            }
        }
    }

    /// ln 1/L at which a run ends: more than twice where its gap closes, by the margins that such flows have.
    fn depth(self, lambda: f64, n: f64) -> f64 {
        let margin = if self == Self::Hyperbolic { 1e-3 } else { 0.15 };
        30.0 + margin * self.promised(lambda, n).powf(DEGREE)
    }
}

/// The bound of (pQ)/φ^p − 1 at ‖θ‖_p.
fn sharp(lambda: f64, n: f64, size: f64) -> f64 {
    P * lambda * n.powf(1.0 - 2.0 / P) / (2.0 * (P - 1.0) * size.powf(P - 2.0))
}

/// A flow from separation to far beyond where the gap is closed for good.
pub(super) struct Course {
    pub family: Family,
    pub lambda: f64,
    /// n.
    pub parameters: f64,
    pub run: Series,
    /// ln t, u = ln 1/L and the gauge where the gap was closed for good; NaN if it was not.
    pub closed: [f64; 3],
}

impl Course {
    fn of(lab: &Lab, family: Family, lambda: f64, task: &Task) -> Result<Self, ClaimError> {
        let potential = own_potential(task);
        let gauge = Columns::new(["gauge", "horizon"], move |bound| {
            let mut worker = potential.build(bound.layout)?;
            Ok(Box::new(move |seen, out| {
                out.extend([worker.gauge(seen.point.params), worker.horizon(seen.point.params)]);
            }))
        });
        // a network that tends to 0 slows down for ever
        let run = lab.series(task, Moments::every(1).separated().may_stall(), vec![measures::basics(), gauge])?;
        let n = run.parameters as f64;
        let (c, a) = family.constants(lambda, n);
        let run = run
            .with("gap", ["gauge", "horizon"], |[gauge, phi]| 1.0 - phi / gauge)
            .with("lower", ["gauge", "horizon"], |[gauge, phi]| phi / gauge - 1.0)
            .with("upper", ["gauge", "horizon"], |[gauge, phi]| gauge / (c * phi + a) - 1.0)
            .with("explicit", ["gauge", "gap"], |[gauge, gap]| gap - (c - 1.0) - a / gauge)
            .with("sharper", ["gauge", "horizon"], |[gauge, phi]| {
                (gauge / phi).powf(P) - 1.0 - sharp(lambda, n, phi / (P - 1.0).powf(1.0 / P))
            });
        // before ln 1/L = 1 there is no margin to speak of; a gap that opens again was not closed
        let late = run.after_last("gap", |gap| gap > GAP).after_last("u", |u| u <= 1.0);
        let closed = ["log_time", "u", "gauge"].map(|name| late.first(name));
        Ok(Self { family, lambda, parameters: n, run, closed })
    }

    /// Whether the data were fitted: some starts end where the network is 0.
    pub fn fitted(&self) -> bool {
        self.run.last("u") > 1.0
    }

    /// ln(1 + t) where the gap closed: ln t, but positive.
    pub fn time(&self) -> f64 {
        log_add_exp(0.0, self.closed[0])
    }

    /// u/gauge^L where the gap closed.
    pub fn margin(&self) -> f64 {
        self.closed[1] / self.closed[2].powf(DEGREE)
    }

    /// a^L, the logarithm of the time in the lemma.
    pub fn lemma(&self) -> f64 {
        self.family.constants(self.lambda, self.parameters).1.powf(DEGREE)
    }

    /// The gauge at which the explicit bounds promise a closed gap.
    pub fn promised(&self) -> f64 {
        self.family.promised(self.lambda, self.parameters)
    }

    /// ln t by the rate law Loss · t (ln t)^{2−α/L} → 1/(L² γ^{α/L}) from u and γ where the gap closed.
    pub fn law(&self) -> f64 {
        let alpha = if self.family == Family::Hyperbolic { 1.0 } else { P };
        let constant = 2.0 * DEGREE.ln() + alpha / DEGREE * self.margin().ln();
        self.closed[1] - (2.0 - alpha / DEGREE) * self.closed[0].ln() - constant
    }
}

/// What the claim runs: λ at a fixed width, widths at a fixed λ, widths with λ by the recipe.
pub(super) struct Courses {
    pub by_lambda: Vec<Course>,
    pub by_width: Vec<Course>,
    pub by_recipe: Vec<Course>,
}

impl Courses {
    pub fn all(&self) -> impl Iterator<Item = &Course> {
        self.by_lambda.iter().chain(&self.by_width).chain(&self.by_recipe)
    }
}

pub(super) fn courses(lab: &Lab) -> Result<Arc<Courses>, ClaimError> {
    lab.once("flows until the horizon shows", || {
        let (mut lambda, mut width, mut recipe) = (Vec::new(), Vec::new(), Vec::new());
        let widths: &[usize] = lab.choose(&[10, 16, 24, 36], &[10, 13, 16, 20, 24, 30, 36, 42]);
        for family in FAMILIES {
            // the hyperbolic entropy starts so small that unused weights count in full; the smoothed power starts with
            // all weights in use, as its solutions have them
            let (values, fixed, deviation): (&[f64], f64, f64) = match family {
                Family::Hyperbolic => (&[0.01, 0.02, 0.05, 0.12], 0.01, 0.03),
                Family::Smoothed => (&[0.7, 1.0, 2.0, 4.0], 2.0, 1.0),
            };
            for seed in 0..lab.choose(3, 8) {
                let case = |width: usize, value: f64| (family, width, value, deviation, seed);
                lambda.extend(values.iter().map(|value| case(10, *value)));
                width.extend(widths.iter().map(|width| case(*width, fixed)));
                recipe.extend(widths.iter().map(|width| case(*width, family.recipe(4.0 * *width as f64))));
            }
        }
        let run = |cases: Vec<(Family, usize, f64, f64, u64)>| -> Result<Vec<Course>, ClaimError> {
            let course = |(family, width, lambda, deviation, seed): (Family, usize, f64, f64, u64)| {
                let word = family.word();
                let overrides = [
                    format!("model.widths=[{width}]"),
                    format!("flows.{word}.mirror.potential.{word}.lambda={lambda:e}"),
                    format!("flows.smoothed.mirror.potential.smoothed.p={P}"),
                    format!("initialiser.normal.deviation={deviation}"),
                    // n = 4·width: three inputs and one output
                    format!("stop.log10_loss={}", -family.depth(lambda, 4.0 * width as f64) / LN_10),
                    format!("seed={seed}"),
                ];
                Course::of(lab, family, lambda, &lab.tasks_of("c-reach", &overrides, &[word])?[0])
            };
            cases.into_par_iter().map(course).collect()
        };
        Ok(Courses { by_lambda: run(lambda)?, by_width: run(width)?, by_recipe: run(recipe)? })
    })
}
