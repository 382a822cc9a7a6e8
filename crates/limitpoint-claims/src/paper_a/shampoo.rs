//! Shampoo, Muon and the spectral margin.

use std::sync::Arc;

use super::images::{self, by_loss, by_step, positive, separated};
use super::tasks;
use crate::outcome::decimals;
use crate::{Claim, ClaimError, Lab, Outcome, Series, Sketch};
use limitpoint::experiments::Task;
use limitpoint::norms::{BlockNorm, NormSpec};

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "A.expShampoo",
        covers: &["A.fig3", "A.eq15"],
        statement: "The spectral margin rises once the data are fitted; spectral descent, which Shampoo without memory \
                    and Muon are, ends above gradient descent and Adam, and so does Shampoo with memory at the paper's \
                    rates and equal length",
        experiments: &["a-shampoo"],
        try_out: spectral_margins,
        ..Claim::FINDING
    },
    Claim {
        id: "A.expShampoo.printed",
        statement: "As printed: Shampoo with its accumulators (eq. 76) is spectral descent, and its spectral margin \
                    stays above that of gradient descent however far both go",
        experiments: &["a-shampoo"],
        try_out: with_memory,
        ..Claim::NOT_SEEN
    },
    Claim {
        id: "A.shampoo",
        statement: "L^−¼ G R^−¼ with L = GGᵀ and R = GᵀG is UVᵀ, of spectral norm 1, also where G lacks rank",
        try_out: super::updates::shampoo,
        ..Claim::FORMULA
    },
];

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

/// A programme for all seeds, each on its draw of images.
type Plan = Vec<([usize; 2], u64, &'static str, Task)>;

fn plan(lab: &Lab, programme: &[(&'static str, &str, &str)], more: &str) -> Result<Plan, ClaimError> {
    let (mut plan, width) = (Vec::new(), lab.scales(32, 128, 128));
    for seed in SEEDS {
        for (who, optimiser, schedule) in programme {
            let steps = if *schedule == FLOW { 5_000 } else { lab.scales(300, 200, 2_000) };
            let course = format!("schedule={schedule}; stop.log10_loss=-6; stop.steps={steps}; {more}");
            let settings = format!("optimiser={optimiser}; seed={seed}; model.widths=[{width}]; {course}");
            plan.push(([3, 6], seed, *who, tasks(lab, "a-shampoo", &settings)?.remove(0)));
        }
    }
    Ok(plan)
}

type Runs = images::Runs<&'static str>;

impl Runs {
    /// The runs of section 4.3.
    fn get(lab: &Lab) -> Result<Arc<Self>, ClaimError> {
        let norms = [(["γσ", "soft γσ"], NormSpec::Spectral), (["γ1", "soft γ1"], NormSpec::Linf)];
        lab.once("A.expShampoo", || Self::make(lab, plan(lab, &PROGRAMME, "model.frozen=[2]")?, &norms, 30))
    }

    /// The runs of one, in the order of the seeds.
    fn of(&self, who: &str) -> impl Iterator<Item = &Series> {
        self.all.iter().filter(move |run| run.who == who).map(|run| &run.course)
    }

    /// The final margin of one, for all seeds.
    fn margins(&self, who: &str, name: &str) -> Vec<f64> {
        self.of(who).map(|run| run.last(name)).collect()
    }

    /// Compares the final γσ of two over all seeds.
    fn compare(&self, who: &str, other: &str, at_least: usize, outcome: &mut Outcome) {
        self.wins(format!("γσ of {who} above that of {other}"), "γσ", [who, other], at_least, outcome);
    }

    /// For how many seeds a margin of one ends above that of another.
    fn wins(&self, what: String, name: &str, whos: [&str; 2], at_least: usize, outcome: &mut Outcome) {
        let [own, others] = whos.map(|who| self.margins(who, name));
        let wins = own.iter().zip(&others).filter(|(a, b)| a > b).count();
        let measured = format!("for {wins}: {} against {}", decimals(&own), decimals(&others));
        outcome.push(what, format!("for at least {at_least} of 5 seeds"), measured, wins >= at_least);
    }
}

fn spectral_margins(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, runs) = (Outcome::default(), Runs::get(lab)?);
    outcome.note(format!("Data: {}; 3 vs 6, second layer frozen. Flows end at L = 1e-6.", runs.images));
    runs.check_ends(&mut outcome);
    for who in ["spectral descent", "Shampoo without memory", "Muon"] {
        runs.compare(who, "GD", 5, &mut outcome);
        runs.compare(who, "Adam", 5, &mut outcome);
    }
    runs.compare("Shampoo, η = 20", "GD, η = 10", 4, &mut outcome);
    runs.compare("Shampoo, η = 20", "Adam, η = 0.01", 4, &mut outcome);
    for (who, ..) in PROGRAMME {
        let growth = runs.of(who).map(|run| run.last("γσ") / separated(run).first("γσ"));
        outcome.smallest(format!("{who}: least γσ at the end over that when the data were fitted"), growth, 1.0);
    }
    // once L < ℓ(0), where Theorem 3.1 begins
    let fitted = runs.of("spectral descent").map(|run| run.after_last("u", |u| -u >= std::f64::consts::LN_2.ln()));
    let drops = fitted.flat_map(|run| run.pairs(["soft γσ"], |[old], [new]| ((old - new) / old).max(0.0)));
    outcome.largest("spectral descent: largest relative drop of the soft spectral margin", drops, 1e-3);
    hybrid(lab, &mut outcome)?;
    figures(&runs, &mut outcome);
    Ok(outcome)
}

/// Both layers learn: Muon on the matrix and sign descent on the vector, steepest descent in the larger of their norms.
fn hybrid(lab: &Lab, outcome: &mut Outcome) -> Result<(), ClaimError> {
    let own = NormSpec::Max {
        blocks: vec![BlockNorm::new("layer1.weight", NormSpec::Spectral), BlockNorm::new("*", NormSpec::Linf)],
    };
    let cases =
        [("hybrid", "muon(others=sign)", FLOW), ("GD", "gradient", FLOW), ("SD", "sign", FLOW), ("Muon", "muon", FLOW)];
    let plan = plan(lab, &cases, "model.frozen=[]; stop.steps=20000")?;
    let runs = Runs::make(lab, plan, &[(["margin", "soft margin"], own)], 20)?;
    for (other, ..) in &cases[1..] {
        let what = format!("both layers learn: margin by max(σ₁, ℓ∞) of Muon with sign descent above that of {other}");
        runs.wins(what, "margin", ["hybrid", other], 5, outcome);
    }
    Ok(())
}

fn figures(runs: &Runs, outcome: &mut Outcome) {
    let constant = ["GD, η = 10", "Adam, η = 0.01", "Shampoo, η = 20"];
    let flows = ["GD", "Adam", "spectral descent", "Shampoo", "Shampoo, ε = 1e-4"];
    let mut draw =
        |name: &str, title: &str, axes: [&str; 2], whos: &[&str], curve: &dyn Fn(&Series) -> Vec<[f64; 2]>| {
            let steps = axes[0] == "steps";
            let mut sketch = Sketch::new(name, title, axes[0], axes[1]).logarithmic(steps, steps);
            for who in whos {
                if let Some(run) = runs.of(who).next() {
                    sketch = sketch.curve(*who, curve(run));
                }
            }
            outcome.sketch(sketch);
        };
    let loss = |run: &Series| run.rows(["step", "u"]).into_iter().map(|[step, u]| [step, (-u).exp()]);
    draw("figure-3-loss", "Loss at the paper's rates", ["steps", "L"], &constant, &|run| positive(loss(run)));
    for (name, words, symbol) in [("spectral", "Spectral margin", "γσ"), ("entrywise", "ℓ1 margin", "γ1")] {
        let (file, title) = (format!("figure-3-{name}"), format!("{words} at the paper's rates"));
        draw(&file, &title, ["steps", symbol], &constant, &|run| by_step(run, symbol));
        let (file, title) = (format!("figure-3-flow-{name}"), format!("{words} along the flow"));
        draw(&file, &title, ["−log₁₀ L", symbol], &flows, &|run| by_loss(run, symbol));
    }
}

fn with_memory(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, runs) = (Outcome::default(), Runs::get(lab)?);
    runs.compare("Shampoo, ε = 1e-4", "GD", 5, &mut outcome);
    runs.compare("Shampoo", "GD", 5, &mut outcome);
    let both = runs.margins("Shampoo, ε = 1e-4", "γσ").into_iter().zip(runs.margins("spectral descent", "γσ"));
    for (seed, share) in SEEDS.zip(both.map(|(memory, spectral)| memory / spectral)) {
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
