//! Shampoo, Muon and the spectral margin.

use std::sync::Arc;

use rayon::prelude::*;

use super::images::{Course, images};
use crate::claims::arithmetic::{larger, smaller};
use crate::claims::outcome::decimals;
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};
use crate::norms::{BlockNorm, NormSpec};

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "A.expShampoo",
        covers: &["A.fig3", "A.eq15"],
        statement: "The spectral margin rises once the data are fitted; spectral descent, which Shampoo without memory \
                    and Muon are, ends above gradient descent and Adam, and so does Shampoo with memory at the paper's \
                    rates and equal length",
        experiments: &["a-shampoo"],
        try_out: spectral_margins,
    },
    Claim {
        id: "A.expShampoo.printed",
        covers: &[],
        statement: "As printed: Shampoo with its accumulators (eq. 76) is spectral descent, and its spectral margin \
                    stays above that of gradient descent however far both go",
        experiments: &["a-shampoo"],
        try_out: with_memory,
    },
    Claim {
        id: "A.shampoo",
        covers: &[],
        statement: "L^−¼ G R^−¼ with L = GGᵀ and R = GᵀG is UVᵀ, of spectral norm 1, also where G lacks rank",
        experiments: &[],
        try_out: super::shampoo_update::update_rule,
    },
];

/// γσ, the margin by spectral norm, is the first that is measured.
const SPECTRAL: usize = 0;
/// γ1, the margin by ℓ∞ norm.
const ENTRYWISE: usize = 1;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

/// Name, optimiser, and its schedule: the paper's constant rate, or steps that follow the flow.
const PROGRAMME: [(&str, &str, &str); 10] = [
    ("GD", "gradient", FLOW),
    ("Adam", ADAM, FLOW),
    ("spectral descent", "spectral", FLOW),
    ("Shampoo without memory", "shampoo(accumulate=false)", FLOW),
    ("Muon", "muon", FLOW),
    ("Shampoo", "shampoo", FLOW),
    ("Shampoo, ε = 1e-4", WITH_EPSILON, FLOW),
    ("GD, η = 10", "gradient", "constant(rate=10)"),
    ("Adam, η = 0.01", ADAM, "constant(rate=0.01)"),
    ("Shampoo, η = 20", WITH_EPSILON, "constant(rate=20)"),
];
/// The start is smaller than a usual first step: margins do not see it, the pattern of active neurons does.
const FLOW: &str = "flow-resolved(resolution=0.1, initial=0.0001)";
const ADAM: &str = "adam(beta1=0.0, beta2=0.0, epsilon=1e-8)";
/// ε = 1e-4 is the default of the library that the paper names.
const WITH_EPSILON: &str = "shampoo(accumulate=true, epsilon=1e-4)";

/// What the runs of section 4.3 showed.
struct Runs {
    all: Vec<(&'static str, u64, Course)>,
    images: String,
}

impl Runs {
    fn get(lab: &Lab) -> Result<Arc<Self>, ClaimError> {
        lab.once("A.expShampoo", || {
            let mut name = String::new();
            let mut plan = Vec::new();
            for seed in SEEDS {
                let images = images(lab, [3, 6], seed)?;
                name.clone_from(&images.name);
                for (who, optimiser, schedule) in PROGRAMME {
                    let overrides = [
                        format!("optimiser={optimiser}"),
                        format!("schedule={schedule}"),
                        format!("seed={seed}"),
                        format!("model.widths=[{}]", lab.choose(32, 128)),
                        "stop.log10_loss=-6".to_owned(),
                        format!("stop.steps={}", if schedule == FLOW { 5_000 } else { lab.choose(300, 200) }),
                    ];
                    plan.push((who, seed, lab.tasks("a-shampoo", &overrides)?.remove(0), images.clone()));
                }
            }
            let norms = [NormSpec::Spectral, NormSpec::Linf];
            let all = plan
                .into_par_iter()
                .map(|(who, seed, task, images)| Ok((who, seed, Course::follow(lab, &task, &images, &norms, 30)?)))
                .collect::<Result<_, ClaimError>>()?;
            Ok(Self { all, images: name })
        })
    }

    fn course(&self, who: &str, seed: u64) -> Option<&Course> {
        self.all.iter().find(|run| run.0 == who && run.1 == seed).map(|run| &run.2)
    }

    /// γσ at the end; NaN if there is no such run.
    fn margin(&self, who: &str, seed: u64) -> f64 {
        self.course(who, seed).map_or(f64::NAN, |course| course.final_margin(SPECTRAL))
    }

    /// The final γσ of one, for all seeds.
    fn margins(&self, who: &str) -> Vec<f64> {
        SEEDS.map(|seed| self.margin(who, seed)).collect()
    }

    /// For how many seeds one ends above another.
    fn wins(&self, who: &str, other: &str) -> usize {
        self.margins(who).iter().zip(self.margins(other)).filter(|(a, b)| **a > *b).count()
    }

    /// Compares the final γσ of two over all seeds.
    fn compare(&self, who: &str, other: &str, at_least: usize, outcome: &mut Outcome) {
        let wins = self.wins(who, other);
        outcome.push(
            format!("γσ of {who} above that of {other}"),
            format!("for at least {at_least} of 5 seeds"),
            format!("for {wins}: {} against {}", decimals(&self.margins(who)), decimals(&self.margins(other))),
            wins >= at_least,
        );
    }
}

fn spectral_margins(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let runs = Runs::get(lab)?;
    outcome.note(format!("Data: {}; 3 vs 6, second layer frozen. Flows end at L = 1e-6.", runs.images));
    let trouble = runs.all.iter().filter(|run| !run.2.reason.is_healthy()).count();
    outcome.at_most(format!("runs that ended in trouble, of {}", runs.all.len()), trouble as f64, 0.0);
    for who in ["spectral descent", "Shampoo without memory", "Muon"] {
        runs.compare(who, "GD", 5, &mut outcome);
        runs.compare(who, "Adam", 5, &mut outcome);
    }
    runs.compare("Shampoo, η = 20", "GD, η = 10", 4, &mut outcome);
    runs.compare("Shampoo, η = 20", "Adam, η = 0.01", 4, &mut outcome);
    for (who, ..) in PROGRAMME {
        let growth = SEEDS.map(|seed| runs.course(who, seed).map_or(f64::NAN, growth)).fold(f64::INFINITY, smaller);
        outcome.at_least(format!("{who}: least γσ at the end over that when the data were fitted"), growth, 1.0);
    }
    let drop = SEEDS.map(|seed| runs.course("spectral descent", seed).map_or(f64::NAN, soft_drop)).fold(0.0, larger);
    outcome.at_most("spectral descent: largest relative drop of the soft spectral margin", drop, 1e-3);
    hybrid(lab, &mut outcome)?;
    figures(&runs, &mut outcome);
    Ok(outcome)
}

/// γσ at the end over γσ when all examples had just come to the right side.
fn growth(course: &Course) -> f64 {
    course.separated().first().map_or(f64::NAN, |first| course.final_margin(SPECTRAL) / first.margins[SPECTRAL])
}

/// The largest relative drop from one sample to the next once L < ℓ(0), where Theorem 3.1 begins.
fn soft_drop(course: &Course) -> f64 {
    let fitted: Vec<f64> = course
        .samples
        .iter()
        .filter(|sample| sample.log_loss < std::f64::consts::LN_2.ln())
        .map(|sample| sample.soft[SPECTRAL])
        .collect();
    if fitted.len() < 2 {
        return f64::NAN;
    }
    fitted.windows(2).map(|pair| (pair[0] - pair[1]) / pair[0]).fold(0.0, larger)
}

/// Both layers learn: Muon on the matrix and sign descent on the vector, steepest descent in the larger of their norms.
fn hybrid(lab: &Lab, outcome: &mut Outcome) -> Result<(), ClaimError> {
    let own = NormSpec::Max {
        blocks: vec![BlockNorm::new("layer1.weight", NormSpec::Spectral), BlockNorm::new("*", NormSpec::Linf)],
    };
    let cases = [("hybrid", "muon(others=sign)"), ("GD", "gradient"), ("SD", "sign"), ("Muon", "muon")];
    let mut plan = Vec::new();
    for seed in SEEDS {
        let images = images(lab, [3, 6], seed)?;
        for (who, optimiser) in cases {
            let overrides = [
                format!("optimiser={optimiser}"),
                format!("schedule={FLOW}"),
                "model.frozen=[]".to_owned(),
                format!("seed={seed}"),
                format!("model.widths=[{}]", lab.choose(32, 128)),
                "stop.log10_loss=-6".to_owned(),
            ];
            plan.push((who, lab.tasks("a-shampoo", &overrides)?.remove(0), images.clone()));
        }
    }
    let ends: Vec<(&str, f64)> = plan
        .into_par_iter()
        .map(|(who, task, images)| {
            Ok((who, Course::follow(lab, &task, &images, std::slice::from_ref(&own), 20)?.final_margin(0)))
        })
        .collect::<Result<_, ClaimError>>()?;
    let of = |who: &str| ends.iter().filter(|end| end.0 == who).map(|end| end.1).collect::<Vec<f64>>();
    for (other, _) in &cases[1..] {
        let wins = of("hybrid").iter().zip(of(other)).filter(|(a, b)| **a > *b).count();
        outcome.push(
            format!("both layers learn: margin by max(σ₁, ℓ∞) of Muon with sign descent above that of {other}"),
            "for 5 of 5 seeds",
            format!("for {wins}: {:.4?} against {:.4?}", of("hybrid"), of(other)),
            wins == 5,
        );
    }
    Ok(())
}

fn figures(runs: &Runs, outcome: &mut Outcome) {
    let constant = ["GD, η = 10", "Adam, η = 0.01", "Shampoo, η = 20"];
    let flows = ["GD", "Adam", "spectral descent", "Shampoo", "Shampoo, ε = 1e-4"];
    let mut loss = Sketch::new("figure-3-loss", "Loss at the paper's rates", "steps", "L").logarithmic(true, true);
    for who in constant {
        if let Some(course) = runs.course(who, 1) {
            loss = loss.curve(who, course.curve(|sample| [sample.step as f64, sample.log_loss.exp()]));
        }
    }
    outcome.sketch(loss);
    for (name, title, norm, symbol) in [
        ("figure-3-spectral", "Spectral margin at the paper's rates", SPECTRAL, "γσ"),
        ("figure-3-entrywise", "ℓ1 margin at the paper's rates", ENTRYWISE, "γ1"),
    ] {
        let mut sketch = Sketch::new(name, title, "steps", symbol).logarithmic(true, true);
        for who in constant {
            if let Some(course) = runs.course(who, 1) {
                sketch = sketch.curve(who, course.by_step(norm));
            }
        }
        outcome.sketch(sketch);
    }
    for (name, title, norm, symbol) in [
        ("figure-3-flow-spectral", "Spectral margin along the flow", SPECTRAL, "γσ"),
        ("figure-3-flow-entrywise", "ℓ1 margin along the flow", ENTRYWISE, "γ1"),
    ] {
        let mut sketch = Sketch::new(name, title, "−log₁₀ L", symbol);
        for who in flows {
            if let Some(course) = runs.course(who, 1) {
                sketch = sketch.curve(who, course.by_loss(norm));
            }
        }
        outcome.sketch(sketch);
    }
}

fn with_memory(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let runs = Runs::get(lab)?;
    runs.compare("Shampoo, ε = 1e-4", "GD", 5, &mut outcome);
    runs.compare("Shampoo", "GD", 5, &mut outcome);
    for seed in SEEDS {
        let share = runs.margin("Shampoo, ε = 1e-4", seed) / runs.margin("spectral descent", seed);
        outcome.at_least(format!("seed {seed}: its γσ over that of spectral descent at L = 1e-6"), share, 0.99);
    }
    outcome.note(
        "Eq. 76 is run, with the ε of the library that the paper names. That library differs from it: it takes the \
         powers −1/2, and sums R over gradients that L has already turned.",
    );
    outcome.note(
        "The accumulators L and R keep the first gradients and change no more once the loss is small: Shampoo is then \
         gradient descent in a metric of the past. Runs of equal length at the paper's constant rates stop before that \
         shows.",
    );
    Ok(outcome)
}
