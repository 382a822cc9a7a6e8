//! Theorem 4.9: what the horizon's problem asks of the neurons of a two-layer network.

use std::sync::Arc;

use super::students::{MAPS, NORMS, Student, class, of, students};
use crate::arithmetic::{distance, larger, smaller};
use crate::{Claim, ClaimError, Lab, Outcome, Sketch};
use limitpoint::linalg::max_abs;
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::reference::{PlaneNetwork, plane_network};

pub(super) const CLAIMS: [Claim; 1] = [Claim {
    id: "C.thm4.9",
    covers: &["C.eq5"],
    statement: "Over all ways to scale its neurons a two-layer network has the norm 2 Σ|ã|^{α/2}; students end with \
                    |a_j| = ‖w_j‖_α, by gradient descent and with cubes near the best margin the judge finds over all \
                    directions, and with cubes that grows with the width like width^{1 − 2/α} for α = 3",
    experiments: &["c-circle"],
    try_out: reformulation,
    ..Claim::FORMULA
}];

/// What the judge says of the margins per ℓ1, ℓ2 and ℓ3 norm of networks of any directions.
pub(super) fn best_networks(lab: &Lab, student: &Student) -> Result<Arc<Vec<PlaneNetwork>>, ClaimError> {
    lab.once("the best networks on the circle", || {
        let inputs = student.run.end.data.dense()?.into_owned();
        let signs = student.run.end.data.signs().map(<[f64]>::to_vec).unwrap_or_default();
        (1..=3).map(|p| Ok(plane_network(&inputs, &signs, f64::from(p))?)).collect()
    })
}

fn reformulation(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), students(lab)?);
    // min over c of |a/c|^α + ‖c w‖_α^α by thirds against 2(|a|‖w‖_α)^{α/2}
    let mut stream = Streams::new(9).stream("neurons");
    let mut worst = 0.0;
    for alpha in [1.0, 1.5, 2.0, 3.0, 4.0] {
        for _ in 0..20 {
            let (a, w) = (stream.normal().abs(), stream.normal().abs());
            let cost = |log: f64| (a / log.exp()).powf(alpha) + (w * log.exp()).powf(alpha);
            let (mut low, mut high) = (-20.0, 20.0);
            while high - low > 1e-7 {
                let third = (high - low) / 3.0;
                if cost(low + third) < cost(high - third) { high -= third } else { low += third }
            }
            let exact = 2.0 * (a * w).powf(alpha / 2.0);
            worst = larger(worst, (cost(0.5 * (low + high)) / exact - 1.0).abs());
        }
    }
    outcome.at_most("min over c of |a/c|^α + ‖cw‖^α against 2(|a|‖w‖)^{α/2}, relative", worst, 1e-10).by_theory();
    for (k, map) in MAPS.iter().enumerate() {
        let own = of(&students, map);
        let norm = if k == 0 { NormSpec::L1 } else { NormSpec::Lp { p: k as f64 + 1.0 } };
        let mut norm = norm.build_vector(2)?;
        let apart = own.iter().map(|student| {
            let a: Vec<f64> = student.layer(1).iter().map(|a| a.abs()).collect();
            let w: Vec<f64> = student.layer(0).chunks_exact(2).map(|w| norm.value(w)).collect();
            distance(&a, &w) / larger(max_abs(&a), max_abs(&w))
        });
        // Q is balanced up to its start, so what remains falls like ‖θ‖^{−α}
        outcome.largest(format!("{map}: largest ||a_j| − ‖w_j‖| per largest of all, over seeds"), apart, 0.05);
        let best = best_networks(lab, own[0])?;
        let bound = best[k].margin_bound(own[0].layer(1).len(), own[0].run.end.task.recipe.model.output_factor());
        let shares: Vec<f64> = own.iter().map(|s| s.last()[k] / bound).collect();
        let what = format!("{map}: margin per {} norm over the judge's bound", NORMS[k]);
        outcome.largest(format!("{what}, largest"), shares.iter().copied(), 1.0).by_theory();
        let least = shares.iter().copied().fold(f64::INFINITY, smaller);
        if k == 0 {
            // the bound counts one neuron where several are needed
            outcome.note(format!("{what}, least: {least:.3}"));
        } else {
            outcome.at_least(format!("{what}, least"), least, 0.9);
        }
        let what = format!("the judge's bracket for {}, relative width", NORMS[k]);
        outcome.near(what, best[k].bracket.relative_gap(), 0.0, 1e-5).by_theory();
    }
    widths(lab, &mut outcome)?;
    outcome.note(
        "The judge's bound is the linear programme over all unit directions: q_min/‖θ‖_p² ≤ 2^{−2/p} max(1, M^{1−2/p})/S. For \
         ℓ1 it is attained only where one neuron is enough.",
    );
    Ok(outcome)
}

/// The best ℓ3 margin without output factor grows like width^{1/3}, as copies of a neuron make it smaller.
fn widths(lab: &Lab, outcome: &mut Outcome) -> Result<(), ClaimError> {
    let sizes = lab.choose(vec![25, 50, 100, 200], vec![25, 50, 100, 200, 400]);
    let mut points = Vec::new();
    for width in &sizes {
        let overrides = [
            format!("model.widths=[{width}]"),
            "seeds=42".to_owned(),
            "optimiser=mirror(potential=\"smoothed:3,1\")".to_owned(),
            format!("stop.log10_loss={}", lab.choose(-10, -50)),
        ];
        let all = class(lab, &format!("students of width {width}"), "c-circle", &overrides)?;
        points.extend(all.iter().map(|student| [*width as f64, student.last()[2] * *width as f64]));
    }
    let what = format!("slope of ln(ℓ3 margin without output factor) in ln(width), widths {sizes:?}");
    outcome.exponent(what, &points, 1.0 / 3.0, 0.1);
    let line = points.iter().map(|p| [p[0], points[0][1] * (p[0] / points[0][0]).cbrt()]).collect();
    let sketch = Sketch::new("C.thm4.9-width", "The best ℓ3 margin grows with the width", "width", "ℓ3 margin × width");
    outcome.sketch(sketch.logarithmic(true, true).reference("slope 1/3", line).curve("cubes", points));
    Ok(())
}
