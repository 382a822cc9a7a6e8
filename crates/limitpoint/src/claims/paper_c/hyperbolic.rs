//! Corollary 4.8 and appendices G.3 and G.4: hyperbolic entropy, products of weights and the ℓ1 margin.
//!
//! On u ⊙ v = θ gradient flow keeps u² − v² = c, so that dθ/dt = −(u² + v²)∇L with u² + v² = √(4θ² + c²) = 2√(θ² +
//! c²/4). That is hyperbolic mirror flow, whose metric is 1/√(θ² + λ), with √λ = c/2 and at double speed.

use std::sync::Arc;

use super::limits::{LongRun, long_runs};
use crate::claims::arithmetic::{distance, larger, smaller};
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};
use crate::diagnostics::kkt_measure;
use crate::flows::{Flow, FlowSpec};
use crate::linalg::max_abs;
use crate::norms::NormSpec;
use crate::potentials::PotentialSpec;

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "C.cor4.8",
        covers: &["C.reparam"],
        statement: "Gradient flow on u ⊙ v with u² − v² = 2√λ is mirror flow of the hyperbolic entropy R_λ at double \
                    speed, |u| and |v| become equal, and the limit direction is a KKT point of the ℓ1 margin problem \
                    min ‖θ‖₁ subject to qᵢ ≥ 1",
        experiments: &["c-products", "c-flows"],
        try_out: products,
    },
    Claim {
        id: "C.cor4.8.printed",
        covers: &[],
        statement: "As printed: u² − v² = √λ matches R_λ, at single or at double speed",
        experiments: &["c-products"],
        try_out: printed_products,
    },
    Claim {
        id: "C.g4",
        covers: &[],
        statement: "The direct argument fails for the hyperbolic entropy: weights that stay bounded keep θ/√(θ² + λ) \
                    away from sgn θ, although the direction tends to a KKT point",
        experiments: &["c-flows"],
        try_out: bounded_weights,
    },
];

/// θ(τ) of a mirror flow on a linear model, between its steps: the cubic through values and slopes at both ends.
struct Path {
    /// τ, θ, dθ/dτ.
    knots: Vec<(f64, Vec<f64>, Vec<f64>)>,
}

impl Path {
    fn at(&self, tau: f64) -> Vec<f64> {
        let index = self.knots.partition_point(|knot| knot.0 <= tau).min(self.knots.len() - 1).max(1);
        let ((t0, x0, v0), (t1, x1, v1)) = (&self.knots[index - 1], &self.knots[index]);
        let h = t1 - t0;
        // no cubic beyond the last step
        let s = ((tau - t0) / h).min(1.0);
        let value = |i: usize| {
            (1.0 - s).powi(2) * ((1.0 + 2.0 * s) * x0[i] + s * h * v0[i])
                + s * s * ((3.0 - 2.0 * s) * x1[i] - (1.0 - s) * h * v1[i])
        };
        (0..x0.len()).map(value).collect()
    }

    /// Hyperbolic mirror flow on the linear model of the experiment, a little beyond its end.
    fn of(lab: &Lab, lambda: f64) -> Result<(Self, f64), ClaimError> {
        let mut path = Self { knots: Vec::new() };
        let mut target = f64::NAN;
        for task in lab.tasks::<&str>("c-products", &[])? {
            target = task.recipe.stop.log10_loss.unwrap_or(-13.0) * std::f64::consts::LN_10;
            let mut objective = lab.objective(&task, &lab.data(&task)?.train)?;
            let spec = FlowSpec::Mirror { potential: PotentialSpec::Hyperbolic { lambda } };
            let start = task.setup()?.initial(objective.layout());
            let mut flow = Flow::new(&spec, task.recipe.tolerance, &mut objective, &start)?;
            loop {
                let pairs = flow.params().iter().zip(&flow.gradient().direction);
                let velocity = pairs.map(|(t, g)| -(t * t + lambda).sqrt() * g).collect();
                path.knots.push((flow.rescaled_time(), flow.params().to_vec(), velocity));
                if flow.log_loss() < target - 2.0 {
                    break;
                }
                flow.advance(&mut objective)?;
            }
        }
        Ok((path, target))
    }
}

/// What gradient flow on u ⊙ v with u² − v² = c does against a path.
struct Comparison {
    /// Largest distance of u ⊙ v from the path at `speed` times its own time, over max(1, |θ|_∞).
    distance: f64,
    /// Largest |u² − v² − c| over 1 + u².
    balance: f64,
    steps: usize,
}

fn compare(lab: &Lab, path: &Path, target: f64, c: f64, speed: f64) -> Result<Comparison, ClaimError> {
    let mut found = Comparison { distance: 0.0, balance: 0.0, steps: 0 };
    for task in lab.tasks("c-products", &["model={diagonal={factors=2}}"])? {
        let mut objective = lab.objective(&task, &lab.data(&task)?.train)?;
        let theta = &path.knots[0].1;
        // the factors of the same start: u = √((√(c² + 4θ²) + c)/2), v = θ/u
        let u: Vec<f64> = theta.iter().map(|t| (0.5 * ((c * c + 4.0 * t * t).sqrt() + c)).sqrt()).collect();
        let factors: Vec<f64> = u.iter().copied().chain(theta.iter().zip(&u).map(|(t, u)| t / u)).collect();
        let mut flow = Flow::new(&FlowSpec::gradient(), task.recipe.tolerance, &mut objective, &factors)?;
        while flow.log_loss() > target {
            flow.advance(&mut objective)?;
            let (u, v) = flow.params().split_at(theta.len());
            let product: Vec<f64> = u.iter().zip(v).map(|(u, v)| u * v).collect();
            let expected = path.at(speed * flow.rescaled_time());
            found.distance = larger(found.distance, distance(&product, &expected) / max_abs(&expected).max(1.0));
            for (u, v) in u.iter().zip(v) {
                found.balance = larger(found.balance, (u * u - v * v - c).abs() / (1.0 + u * u));
            }
            found.steps += 1;
        }
    }
    Ok(found)
}

fn products(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let lambda = 0.09f64;
    let (path, target) = Path::of(lab, lambda)?;
    let found = compare(lab, &path, target, 2.0 * lambda.sqrt(), 2.0)?;
    let name = format!("u ⊙ v against the mirror flow with √λ = c/2 at double speed, {} steps", found.steps);
    outcome.at_most(name, found.distance, 1e-6);
    outcome.at_most("|u² − v² − c| over 1 + u², largest", found.balance, 1e-9);
    outcome.at_least("steps compared", found.steps as f64, 50.0);
    linear(lab, &mut outcome)?;
    let mut sketch = Sketch::new("c-hyperbolic", "Fenchel–Young gap in ℓ1, least so far", "ln 1/L", "1 − β");
    for run in entropies(lab)?.iter() {
        let (name, end) = (&run.name, run.depth());
        let (early, late) = (run.least_gap(end.sqrt()), run.least_gap(end));
        let what = format!("network, {name}: ℓ1 gap, least up to ln 1/L = {end:.0} over that up to {:.0}", end.sqrt());
        outcome.at_most(what, late / early, 0.9);
        let taus: Vec<f64> = run.certificates().map(|(_, certificate)| certificate.tau).collect();
        let words: Vec<String> = taus.iter().map(|tau| format!("{tau:.1e}")).collect();
        let falling = taus.len() > 2 && taus.windows(2).all(|pair| pair[1] < pair[0]);
        outcome.push(
            format!("network, {name}: τ of the judge in ℓ1, once a decade"),
            "falls",
            words.join(", "),
            falling,
        );
        sketch = sketch.curve(name.clone(), run.curve());
    }
    outcome.sketch(sketch.logarithmic(true, true));
    outcome.note(
        "In a network ∇R(θ) ≈ ln θ grows like ln ln(1/L), and what is left of the start fades no faster: the gap is \
         still large at ln 1/L = 10⁵, which is the slowness that Lemma 4.10 speaks of.",
    );
    Ok(outcome)
}

/// Far out on the linear model: |u| = |v| in the limit, and the ℓ1 margin problem closes.
fn linear(lab: &Lab, outcome: &mut Outcome) -> Result<(), ClaimError> {
    let far = ["stop.log10_loss=-434.3", "tolerance.relative=1e-9", "tolerance.absolute=1e-12"];
    let factors = "initialiser={given={values=[0.8, 0.8, 0.8, 0.8, 0.2, -0.2, 0.1, 0.1]}}";
    let diagonal =
        [&far[..], &["model={diagonal={factors=2}}", factors, "flows.hyperbolic={steepest={norm='l2'}}"]].concat();
    let mut worst = f64::NAN;
    for end in lab.run("c-products", &diagonal)? {
        let (u, v) = end.params.split_at(4);
        let size: f64 = end.params.iter().map(|x| x * x).sum();
        worst = u.iter().zip(v).map(|(u, v)| (u * u - v * v).abs() / size).fold(0.0, larger);
    }
    outcome.at_most("|u² − v²|/‖(u, v)‖² at ln 1/L = 1000", worst, 1e-2);
    for task in lab.tasks("c-products", &far)? {
        let layout = lab.objective(&task, &lab.data(&task)?.train)?.layout().clone();
        let mut norm = NormSpec::L1.build(&layout)?;
        let mut gaps = Vec::new();
        let look = |snapshot: &crate::observers::Snapshot| {
            let kkt = kkt_measure(&snapshot.point, &mut *norm);
            gaps.push([-snapshot.point.log_loss, 1.0 - kkt.alignment]);
        };
        lab.watch(&task, |_| true, look)?;
        let least = |until: f64| {
            gaps.iter().filter(|row| row[0] > 1.0 && row[0] <= until).map(|row| row[1]).fold(f64::INFINITY, smaller)
        };
        outcome.at_most("linear model: ℓ1 gap, least up to ln 1/L = 1000", least(1e9), 1e-2);
        outcome.at_most("linear model: that over its least value up to 30", least(1e9) / least(30.0), 0.5);
    }
    Ok(())
}

fn printed_products(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let lambda = 0.09f64;
    let (path, target) = Path::of(lab, lambda)?;
    let mut least = f64::INFINITY;
    for speed in [1.0, 2.0] {
        least = smaller(least, compare(lab, &path, target, lambda.sqrt(), speed)?.distance);
    }
    outcome.at_most("u ⊙ v with u² − v² = √λ against the mirror flow, the better of two speeds", least, 1e-6);
    Ok(outcome)
}

/// Long runs of the hyperbolic entropy.
pub(super) fn entropies(lab: &Lab) -> Result<Arc<Vec<LongRun>>, ClaimError> {
    lab.once("long hyperbolic flows", || {
        let depth = lab.choose("stop.log10_loss=-43430", "stop.log10_loss=-434300");
        long_runs(lab, &["hyperbolic:0.1", "hyperbolic:1e-4"], &["initialiser=normal(deviation=0.3)", depth])
    })
}

fn bounded_weights(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for run in entropies(lab)?.iter() {
        let lambda: f64 = if run.name.contains("0.1") { 0.1 } else { 1e-4 };
        let points: Vec<(f64, &[f64])> =
            run.looks.iter().filter_map(|look| Some((look.u, look.params.as_deref()?))).collect();
        let (Some((early, before)), Some((late, after))) = (points.iter().find(|(u, _)| *u >= 100.0), points.last())
        else {
            continue;
        };
        // weights that have not doubled while ‖θ‖₁ grew
        let bounded: Vec<usize> = (0..after.len()).filter(|&i| after[i].abs() <= 2.0 * before[i].abs()).collect();
        let miss = |theta: &[f64]| {
            let miss = |&i: &usize| 1.0 - theta[i].abs() / (theta[i] * theta[i] + lambda).sqrt();
            bounded.iter().map(miss).reduce(larger).unwrap_or(f64::NAN)
        };
        let name = &run.name;
        outcome.at_least(
            format!("{name}: weights that do not double from ln 1/L = {early:.0} to {late:.0}"),
            bounded.len() as f64,
            1.0,
        );
        outcome.at_least(format!("{name}: largest |θ/√(θ²+λ) − sgn θ| among them at the end"), miss(after), 0.1);
        outcome.near(format!("{name}: that over its value at the beginning"), miss(after) / miss(before), 1.0, 0.5);
        let grown = crate::linalg::sum_abs(after) / crate::linalg::sum_abs(before);
        outcome.at_least(format!("{name}: growth of ‖θ‖₁ meanwhile"), grown, 1.5);
    }
    outcome.note(
        "In a network of degree L > α rescaled time ∫ L dt converges, so that the weights of neurons left behind stop; \
         on a linear model they would grow like a power of ln 1/L below 1.",
    );
    Ok(outcome)
}
