//! Theorem 4.7, Lemma G.9 and Corollary I.1: limit directions are KKT points of the horizon's margin problem.

use std::sync::Arc;

use rayon::prelude::*;

use super::balance::COARSE;
use super::hyperbolic::entropies;
use super::mirror::ON_FLOWS;
use crate::arithmetic::{angle, larger, smaller};
use crate::measures::{self, own_potential};
use crate::{Claim, ClaimError, Columns, Lab, Moments, Outcome, Series, Sketch};
use limitpoint::certificates::{Geometry, Slopes, tangent_certificate};
use limitpoint::diagnostics::{kkt_measure, stationarity_residual};
use limitpoint::experiments::Task;
use limitpoint::linalg::norm2;
use limitpoint::potentials::PotentialSpec;

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "C.thm4.7",
        covers: &["C.thmG2", "C.defG3", "C.defG4"],
        statement: "For p = 3 and 4 the direction of the weights tends to a KKT point of min ½φ² subject to qᵢ ≥ 1, φ \
                    the horizon, whatever λ is: alignment tends to 1, the slack falls at least like 1/ln(1/L), and the judge's \
                    tangent problem closes",
        try_out: limits,
        ..ON_FLOWS
    },
    Claim {
        id: "C.lemG9",
        statement: "Primal and dual directions converge together: the angle between θ and the image of ∇R(θ)/‖∇R(θ)‖ \
                    under ∇Q(s ·) for huge s is 0 for pure powers and otherwise tends to 0 like the share ‖θ‖^{2−p} of \
                    the smooth part",
        try_out: directions,
        ..ON_FLOWS
    },
    Claim {
        id: "C.corI1",
        covers: &["C.lemI3"],
        statement: "θ*/L is optimal for the support vector machine with the frozen features ∇f(xᵢ; θ*) and the horizon \
                    in place of the norm, so that its duality gap closes along the flow (complementarity reads = 0, \
                    not ≥ 0)",
        try_out: machine,
        ..ON_FLOWS
    },
];

/// The s at which dual directions are mapped back.
const FAR: f64 = 1e12;

/// A flow far into the late phase, and what the judge says of it wherever ln 1/L has grown tenfold and at the end.
///
/// | column | what it is |
/// |---|---|
/// | `gap`, `slack` | 1 − β in the norm of the horizon (the Fenchel–Young gap over ‖θ̃‖²), and the slack over ‖θ̃‖² |
/// | `residual` | the Euclidean residual with ties within 10⁻³ |
/// | `margin`, `size` | q_min/φ^L, ‖θ‖₂ |
/// | `dual_angle` | the angle between θ and ∇Q(s z/‖z‖) with z = ∇R(θ) for a huge s; NaN for degree 1 |
pub(super) struct LongRun {
    pub run: Series,
    /// ln 1/L, τ and the defect of Euler's identity.
    pub judged: Vec<[f64; 3]>,
}

impl LongRun {
    fn of(lab: &Lab, what: String, task: &Task) -> Result<Self, ClaimError> {
        let levels = (1..15).map(|k| 10f64.powi(k));
        let columns = vec![measures::basics(), horizon(own_potential(task))];
        let run = lab.series(task, Moments::every(1).below(-1.0).points_at(levels), columns)?.called(what);
        let mut objective = lab.objective(task, &run.end.data)?;
        let geometry = Geometry::of_potential(&own_potential(task), objective.layout())?;
        let (model, targets) = (objective.tangents()?, &run.end.data.targets);
        let mut judged = Vec::new();
        // a level that only the end reaches is the end
        let before = run.points.iter().filter(|(_, theta)| *theta != run.end.params);
        for (u, theta) in before.map(|(u, theta)| (*u, theta)).chain([(run.last("u"), &run.end.params)]) {
            let found = tangent_certificate(&mut *model, targets, theta, &geometry, Slopes::Fixed)?;
            judged.push([u, found.tau, found.euler_defect]);
        }
        Ok(Self { run, judged })
    }

    /// The least gap up to some u.
    pub fn least_gap(&self, u: f64) -> f64 {
        self.run.rows(["u", "gap"]).iter().take_while(|row| row[0] <= u).map(|row| row[1]).fold(f64::INFINITY, smaller)
    }

    /// u at the end.
    pub fn depth(&self) -> f64 {
        self.run.last("u")
    }

    /// Says of τ of the judge, once a decade, whether it is as expected.
    pub fn taus(&self, outcome: &mut Outcome, what: &str, expected: &str, so: impl Fn(&[f64]) -> bool) {
        let taus: Vec<f64> = self.judged.iter().map(|row| row[1]).collect();
        let words: Vec<String> = taus.iter().map(|tau| format!("{tau:.1e}")).collect();
        outcome.push(what, expected, words.join(", "), so(&taus));
    }

    /// Relative duality gaps 1 − (1 − τ)² of the machine with frozen features.
    fn machine_gaps(&self) -> Vec<f64> {
        self.judged.iter().map(|[_, tau, _]| tau * (2.0 - tau)).collect()
    }

    /// The least gap so far against u, for figures.
    pub fn curve(&self) -> Vec<[f64; 2]> {
        let mut least = f64::INFINITY;
        let point = |[u, gap]: [f64; 2]| {
            least = smaller(least, gap);
            [u, least]
        };
        self.run.rows(["u", "gap"]).into_iter().map(point).step_by(5).collect()
    }
}

/// The columns of long runs in the horizon of a potential.
fn horizon(potential: PotentialSpec) -> Columns {
    Columns::new(["gap", "slack", "residual", "margin", "size", "dual_angle"], move |bound| {
        let geometry = Geometry::of_potential(&potential, bound.layout)?;
        let (mut norm, mut worker) = (geometry.norm.build(bound.layout)?, potential.build(bound.layout)?);
        let [mut dual, mut image] = [0; 2].map(|_| vec![0.0; bound.layout.len()]);
        let mut scratch = [dual.clone(), image.clone()];
        Ok(Box::new(move |seen, out| {
            let (point, theta) = (seen.point, seen.point.params);
            let kkt = kkt_measure(point, &mut *norm);
            let residual = stationarity_residual(point, &mut *norm, 1e-3, &mut scratch);
            let margin = point.smallest_margin() / (geometry.scale * norm.value(theta)).powf(point.degree());
            worker.mirror_map(theta, &mut dual);
            let factor = FAR / norm2(&dual);
            dual.iter_mut().for_each(|z| *z *= factor);
            worker.inverse_mirror_map(&dual, &mut image);
            out.extend([1.0 - kkt.alignment, kkt.slack / kkt.objective, residual, margin]);
            out.extend([norm2(theta), angle(theta, &image)]);
        }))
    })
}

/// Long runs of potentials, written as on the command line, on the network of the flows.
pub(super) fn long_runs(lab: &Lab, potentials: &[&str], overrides: &[&str]) -> Result<Vec<LongRun>, ClaimError> {
    let mut tasks = Vec::new();
    for text in potentials {
        let flow = format!("flows.long={{mirror={{potential='{text}'}}}}");
        let all = [&[&*flow, "stop.steps=10000000"][..], &COARSE, overrides].concat();
        let own = lab.tasks_of("c-flows", &all, &["long"])?;
        tasks.extend(own.into_iter().map(|task| (format!("{text}, seed {}", task.label.seed), task)));
    }
    tasks.into_par_iter().map(|(what, task)| LongRun::of(lab, what, &task)).collect()
}

/// p = 3 and 4 with three λ each.
fn powers(lab: &Lab) -> Result<Arc<Vec<LongRun>>, ClaimError> {
    lab.once("long mirror flows of powers", || {
        let start = "initialiser=normal(deviation=0.3)";
        let potentials = ["smoothed:3,0", "smoothed:3,0.1", "smoothed:3,1", "smoothed:4,0.1", "smoothed:4,1"];
        let mut runs = long_runs(lab, &potentials, &[start, "stop.log10_loss=-4343"])?;
        // ∇Q of a pure power has infinite slope at 0, and the flow gets stuck in tiny steps where a weight passes it
        runs.extend(long_runs(lab, &["smoothed:4,0"], &[start, "stop.log10_loss=-1303"])?);
        Ok(runs)
    })
}

fn limits(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, runs) = (Outcome::default(), powers(lab)?);
    let mut sketch = Sketch::new("c-limits", "Fenchel–Young gap in the horizon, least so far", "ln 1/L", "1 − β");
    for long in runs.iter() {
        let (run, end, mut own) = (&long.run, long.depth(), Outcome::default());
        let (early, late) = (long.least_gap(end.sqrt()), long.least_gap(end));
        let stuck = run.what.starts_with("smoothed:4,0,");
        let check = own.at_least("ln 1/L at the end", end, if stuck { 2999.0 } else { 9999.0 });
        if stuck {
            check.catalogue_asks("10⁴: the flow gets stuck where a weight passes 0");
        }
        own.at_most("Fenchel–Young gap over ‖θ̃‖², least", late, 0.05);
        own.at_most(format!("that over its least value up to ln 1/L = {:.0}", end.sqrt()), late / early, 0.5);
        // S u/‖θ̃‖² ≤ (N−1)/(e L) (q_min/u)^{2/L}, at every point and in every norm; q_min/u tends to 1
        let bound = (run.margins as f64 - 1.0) / (std::f64::consts::E * run.degree);
        let slack = run.when("u", |u| u > 10.0).map(["u", "slack"], |[u, slack]| slack * u / bound);
        own.largest("slack · ln(1/L) over (N−1)/(eL), largest", slack, 1.2).by_theory();
        long.taus(&mut own, "τ of the judge, once a decade", "falls below 0.01", |taus| {
            taus.len() > 3 && taus.last() < taus.first() && taus.last().is_some_and(|tau| *tau < 0.01)
        });
        outcome.say_of(&run.what, own);
        sketch = sketch.curve(run.what.trim_end_matches(", seed 0"), long.curve());
    }
    outcome.sketch(sketch.logarithmic(true, true));
    for p in ["smoothed:3", "smoothed:4"] {
        let own: Vec<&Series> = runs.iter().map(|long| &long.run).filter(|run| run.what.starts_with(p)).collect();
        let margins = || own.iter().map(|run| run.last("margin"));
        let share = margins().fold(f64::INFINITY, smaller) / margins().fold(0.0, larger);
        // λ changes which KKT point is reached, and the theorem says nothing of their margins
        let what = format!("{p}: smallest over largest horizon margin of the three λ");
        let check = outcome.at_least(what, share, 0.9);
        check.catalogue_asks("0.95: KKT points of different λ need not have equal margins");
        let apart = own.windows(2).map(|pair| angle(&pair[0].end.params, &pair[1].end.params)).fold(0.0, larger);
        outcome.note(format!(
            "{p}: directions of different λ are up to {apart:.2} rad apart: λ changes which KKT point is reached."
        ));
    }
    outcome.note(
        "The theorem is stated for convergence of the direction; what its proof covers, and what is checked, are limit \
         points. Definition G.3 lacks \"= 0\".",
    );
    Ok(outcome)
}

fn directions(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, runs) = (Outcome::default(), powers(lab)?);
    for LongRun { run, .. } in runs.iter() {
        let mut own = Outcome::default();
        if run.what.contains(",0,") {
            own.at_most("angle, largest", run.most("dual_angle"), 1e-7).by_theory();
        } else {
            own.falls("angle at the end over that at separation", run.column("dual_angle"), 0.25);
            // ∇R = |θ|^{p−2}θ + λθ
            let (p, middle) = (if run.what.starts_with("smoothed:3") { 3.0 } else { 4.0 }, run.last("u").sqrt());
            let late = run.after_last("u", |u| u < middle);
            let [angle, size] = ["dual_angle", "size"].map(|column| (late.last(column) / late.first(column)).ln());
            let what = format!("power of ‖θ‖ at which it falls from ln 1/L = {middle:.0} on");
            own.near(what, angle / size, 2.0 - p, 0.3);
        }
        outcome.say_of(&run.what, own);
    }
    Ok(outcome)
}

fn machine(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, runs) = (Outcome::default(), powers(lab)?);
    for long in runs.iter() {
        let (gaps, mut own) = (long.machine_gaps(), Outcome::default());
        let what = format!("relative duality gap of θ̃/L at ln 1/L = {:.0}", long.depth());
        own.at_most(what, gaps.last().copied().unwrap_or(f64::NAN), 0.02)
            .catalogue_asks("10⁻³ at the best time, which the comparison over all runs below asks for");
        own.falls("that over the first", &gaps, 0.2);
        // features are constant along rays, so that the machine's optimum is feasible at θ̃/L: Euler's identity
        let defects = long.judged.iter().map(|row| row[2]);
        own.largest("|⟨θ, ∇qᵢ⟩ − L qᵢ| over L q_min, largest", defects, 1e-10).by_theory();
        outcome.say_of(&long.run.what, own);
    }
    let least = runs.iter().flat_map(LongRun::machine_gaps).fold(f64::INFINITY, smaller);
    outcome.at_most("the least gap of all runs", least, 1e-3);
    // degree 1, where the start fades like a logarithm
    for long in entropies(lab)?.iter() {
        let (name, end) = (&long.run.what, long.depth());
        let what = format!("{name}: relative duality gap in ℓ1 at ln 1/L = {end:.0} over the first");
        outcome.falls(what, &long.machine_gaps(), 0.3);
    }
    Ok(outcome)
}
