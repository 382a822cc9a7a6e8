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

use super::mirror::gauge;
use crate::measures::{self, own_potential};
use crate::{ClaimError, Lab, Moments, Series};
use limitpoint::numeric::log_add_exp;

/// The relative gap that counts as closed.
const GAP: f64 = 0.1;
/// p of the smoothed potential, that of the paper's experiments.
const P: f64 = 3.0;
/// The degree of a two-layer network of squared ReLUs.
pub(super) const DEGREE: f64 = 3.0;

/// A family of potentials with one λ.
pub(super) struct Family {
    pub word: &'static str,
    /// The degree of its horizon.
    alpha: f64,
    /// The λ that Lemma 4.10 recommends for n weights, in words too.
    recipe: fn(f64) -> f64,
    pub rule: &'static str,
    /// c and a of Lemma H.2 for λ and n.
    constants: fn(f64, f64) -> (f64, f64),
    /// The gauge at which the explicit bounds promise a closed gap, for λ and n.
    promised: fn(f64, f64) -> f64,
    /// About the margin that such flows have.
    margin: f64,
    /// The values of λ at a fixed width, and λ at all widths.
    lambdas: [f64; 4],
    fixed: f64,
    /// Standard deviation of the start.
    deviation: f64,
    /// The powers of λ and n in gauge^L at a closed gap, in words too, and how near the second is asked for.
    pub powers: [(f64, &'static str, f64); 2],
}

/// The hyperbolic entropy starts so small that unused weights count in full; the smoothed power starts with all weights
/// in use, as its solutions have them.
pub(super) static FAMILIES: [Family; 2] = [
    Family {
        word: "hyperbolic",
        alpha: 1.0,
        recipe: |n| 1.0 / (n * n),
        rule: "1/n²",
        constants: |lambda, n| (1.0, n * lambda.sqrt()),
        promised: |lambda, n| n * lambda.sqrt() / GAP,
        margin: 1e-3,
        lambdas: [0.01, 0.02, 0.05, 0.12],
        fixed: 0.01,
        deviation: 0.03,
        powers: [(DEGREE / 2.0, "L/2", 0.25), (DEGREE, "L", 0.5)],
    },
    Family {
        word: "smoothed",
        alpha: P,
        recipe: |n| 1.0 / (P * n),
        rule: "1/(pn)",
        constants: |lambda, n| {
            (((P - 1.0 + 0.5 * P * lambda) / (P - 1.0)).powf(1.0 / P), (0.5 * P * lambda * n).powf(1.0 / P))
        },
        promised: |lambda, n| {
            let excess = (1.0 - GAP).powf(-P) - 1.0;
            let size = (sharp(lambda, n, 1.0) / excess).powf(1.0 / (P - 2.0));
            (P - 1.0).powf(1.0 / P) * size / (1.0 - GAP)
        },
        margin: 0.15,
        lambdas: [0.7, 1.0, 2.0, 4.0],
        fixed: 2.0,
        deviation: 1.0,
        powers: [
            (DEGREE / (P - 2.0), "L/(p − 2)", 0.25),
            (DEGREE * (1.0 - 2.0 / P) / (P - 2.0), "L(1 − 2/p)/(p − 2)", 0.3),
        ],
    },
];

impl Family {
    /// Whether it is the one of degree 1.
    pub fn is_hyperbolic(&self) -> bool {
        self.alpha == 1.0
    }
}

/// The bound of (pQ)/φ^p − 1 at ‖θ‖_p.
fn sharp(lambda: f64, n: f64, size: f64) -> f64 {
    P * lambda * n.powf(1.0 - 2.0 / P) / (2.0 * (P - 1.0) * size.powf(P - 2.0))
}

/// A flow from separation to far beyond where the gap is closed for good.
pub(super) struct Course {
    pub family: &'static Family,
    pub lambda: f64,
    /// n.
    pub parameters: f64,
    pub run: Series,
    /// ln t, u = ln 1/L and the gauge where the gap was closed for good; NaN if it was not.
    pub closed: [f64; 3],
}

impl Course {
    fn of(lab: &Lab, family: &'static Family, width: usize, lambda: f64, seed: u64) -> Result<Self, ClaimError> {
        // three inputs and one output
        let (word, n) = (family.word, 4.0 * width as f64);
        // more than twice where its gap closes, by the margins that such flows have
        let depth = 30.0 + family.margin * (family.promised)(lambda, n).powf(DEGREE);
        let overrides = [
            format!("model.widths=[{width}]"),
            format!("flows.{word}.mirror.potential.{word}.lambda={lambda:e}"),
            format!("flows.smoothed.mirror.potential.smoothed.p={P}"),
            format!("initialiser.normal.deviation={}", family.deviation),
            format!("stop.log10_loss={}", -depth / LN_10),
            format!("seed={seed}"),
        ];
        let task = &lab.tasks_of("c-reach", &overrides, &[word])?[0];
        // a network that tends to 0 slows down for ever
        let moments = Moments::every(1).separated().may_stall();
        let run = lab.series(task, moments, vec![measures::basics(), gauge(own_potential(task))])?;
        let n = run.parameters as f64;
        let (c, a) = (family.constants)(lambda, n);
        let both = ["gauge", "horizon"];
        let run = run
            .with("gap", both, |[gauge, phi]| 1.0 - phi / gauge)
            .with("lower", both, |[gauge, phi]| phi / gauge - 1.0)
            .with("upper", both, |[gauge, phi]| gauge / (c * phi + a) - 1.0)
            .with("explicit", ["gauge", "gap"], |[gauge, gap]| gap - (c - 1.0) - a / gauge)
            .with("sharper", both, |[gauge, phi]| {
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

    /// gauge^L where the gap closed.
    pub fn reached(&self) -> f64 {
        self.closed[2].powf(DEGREE)
    }

    /// u/gauge^L where the gap closed.
    fn margin(&self) -> f64 {
        self.closed[1] / self.reached()
    }

    /// a^L, the logarithm of the time in the lemma.
    pub fn lemma(&self) -> f64 {
        (self.family.constants)(self.lambda, self.parameters).1.powf(DEGREE)
    }

    /// (gauge/G)^L where the gap closed, G the gauge at which the explicit bounds promise that.
    pub fn kept_promise(&self) -> f64 {
        (self.closed[2] / (self.family.promised)(self.lambda, self.parameters)).powf(DEGREE)
    }

    /// γ G^L.
    pub fn promised_time(&self) -> f64 {
        self.margin() * (self.family.promised)(self.lambda, self.parameters).powf(DEGREE)
    }

    /// ln t by the rate law Loss · t (ln t)^{2−α/L} → 1/(L² γ^{α/L}) from u and γ where the gap closed.
    pub fn law(&self) -> f64 {
        let alpha = self.family.alpha;
        let constant = 2.0 * DEGREE.ln() + alpha / DEGREE * self.margin().ln();
        self.closed[1] - (2.0 - alpha / DEGREE) * self.closed[0].ln() - constant
    }
}

/// What the claim runs: λ at a fixed width, widths at a fixed λ, widths with λ by the recipe.
pub(super) fn courses(lab: &Lab) -> Result<Arc<[Vec<Course>; 3]>, ClaimError> {
    lab.once("flows until the horizon shows", || {
        let (mut lambda, mut width, mut recipe) = (Vec::new(), Vec::new(), Vec::new());
        let widths: &[usize] = lab.choose(&[10, 16, 24, 36], &[10, 13, 16, 20, 24, 30, 36, 42]);
        for family in &FAMILIES {
            for seed in 0..lab.choose(3, 8) {
                lambda.extend(family.lambdas.map(|lambda| (family, 10, lambda, seed)));
                width.extend(widths.iter().map(|width| (family, *width, family.fixed, seed)));
                let by_recipe = |width: &usize| (family, *width, (family.recipe)(4.0 * *width as f64), seed);
                recipe.extend(widths.iter().map(by_recipe));
            }
        }
        let run = |cases: Vec<(&'static Family, usize, f64, u64)>| -> Result<Vec<Course>, ClaimError> {
            let course = |(family, width, lambda, seed)| Course::of(lab, family, width, lambda, seed);
            cases.into_par_iter().map(course).collect()
        };
        Ok([run(lambda)?, run(width)?, run(recipe)?])
    })
}
