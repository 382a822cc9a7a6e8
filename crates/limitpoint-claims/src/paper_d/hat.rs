//! Appendix I: a smooth homogeneous model whose direction never converges.

use std::array::from_fn;
use std::f64::consts::TAU;

use super::hat_runs::{answers, training};
use crate::arithmetic::{larger, smaller};
use crate::{Claim, ClaimError, Lab, Outcome, Sketch};
use limitpoint::engine::{Compute, Forward, cpu};
use limitpoint::linalg::{Matrix, norm2};
use limitpoint::models::{HatShape, ModelSpec};
use limitpoint::numeric::Streams;

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "D.hat",
        covers: &["D.fig2", "D.thmI1"],
        statement: "On the Mexican hat with C = 4r⁴/(4r⁴ + (1 − r²)³) the curve φ = 1/(1 − r²) is kept by gradient flow, along it \
                    the margin converges and the direction goes around for ever; stop rules and certificates say so",
        experiments: &["d-hat", "d-flows"],
        try_out: corrected,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.hat.printed",
        statement: "The curve φ = 1/(1 − r²) is kept by gradient flow with C = 4r⁴/(4r⁴ + (1 − r²)⁴)",
        try_out: printed,
        ..Claim::MISPRINT
    },
];

/// |dψ/dτ| on the curve at r² = p/q relative to the sum of its two parts, dφ/dτ ∝ C/r² and ds/dτ ∝ 4r²s³(1 − C): exactly,
/// then rounded; NaN where whole numbers overflow. C = A/(A + B) with A = 4p²q^{e−2} and B = (q − p)^e, and over a common
/// denominator the parts are A q² (q − p)³ and 4p² q³ B.
fn relative_drift((p, q): (i128, i128), exponent: u32) -> f64 {
    let square = 4 * p * p;
    let parts = || {
        let turning = square.checked_mul(q.checked_pow(exponent)?)?.checked_mul((q - p).checked_pow(3)?)?;
        let rising = square.checked_mul(q.checked_pow(3)?)?.checked_mul((q - p).checked_pow(exponent)?)?;
        Some((turning.checked_sub(rising)?, turning.checked_add(rising)?))
    };
    parts().map_or(f64::NAN, |(drift, whole)| (drift as f64 / whole as f64).abs())
}

/// What moves ψ on the curve: nothing, in exact fractions and by the model's gradient at points of the unit sphere.
fn drifts(outcome: &mut Outcome, exponent: u32) -> Result<(), ClaimError> {
    let spec = ModelSpec::MexicanHat { degree: 1.0, exponent };
    let mut model = cpu::bind(&spec, Matrix::from_rows(&[&[1.0]]), 1, Compute::default())?;
    // r² of the radii 0.3, 0.5, 0.7 and 0.85
    for (p, q) in [(9, 100), (1, 4), (49, 100), (289, 400)] {
        let gap = 1.0 - p as f64 / q as f64;
        let r = (1.0 - gap).sqrt();
        let what = format!("r = {r:.2}: |dψ/dt| on ψ = 0 relative to its two parts, in exact fractions");
        outcome.at_most(what, relative_drift((p, q), exponent), 0.0).by_theory();
        let [u, v, w] = [r * (1.0 / gap).cos(), r * (1.0 / gap).sin(), gap.sqrt()];
        let gradient = model.per_example_gradients(&[u, v, w], 0).data;
        let outward = gradient[0] * u + gradient[1] * v + gradient[2] * w;
        let [du, dv, dw] = [gradient[0] - outward * u, gradient[1] - outward * v, gradient[2] - outward * w];
        let (rising, turning) = (-2.0 * dw / w.powi(3), (u * dv - v * du) / (u * u + v * v));
        let drift = ((turning - rising) / (turning + rising)).abs();
        outcome.at_most(format!("r = {r:.2}: the same from the model's gradient"), drift, 1e-13).by_theory();
    }
    Ok(())
}

fn printed(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    drifts(&mut outcome, 4)?;
    outcome.note(
        "By an exact example: in whole fractions the drift with the exponent 4 is r²/(2 − r²) of its parts, not 0; the proof \
         multiplies ds/dr by f_r instead of (1 − r²) f_r.",
    );
    Ok(outcome)
}

fn corrected(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    gradients(&mut outcome)?;
    drifts(&mut outcome, 3)?;
    let spiral = endless(lab, &mut outcome);
    let course = training(lab, &mut outcome, spiral)?;
    answers(lab, &mut outcome, course)?;
    profile(&mut outcome);
    Ok(outcome)
}

/// The gradient against differences of the fourth order.
fn gradients(outcome: &mut Outcome) -> Result<(), ClaimError> {
    for exponent in [3, 4] {
        let spec = ModelSpec::MexicanHat { degree: 1.7, exponent };
        let mut model = cpu::bind(&spec, Matrix::from_rows(&[&[1.0]]), 1, Compute::default())?;
        let mut stream = Streams::new(5).stream("points");
        let mut apart = Vec::new();
        for _ in 0..500 {
            let mut theta = [0.0; 3];
            stream.fill_normal(&mut theta);
            let gradient = model.per_example_gradients(&theta, 0).data;
            let (size, step) = (norm2(&gradient), 1e-3 * theta[2].abs().min(1.0));
            for k in 0..3 {
                let [one, other, twice, back] = [1.0, -1.0, 2.0, -2.0].map(|shift| {
                    let mut moved = theta;
                    moved[k] += shift * step;
                    model.scores(&moved)[0]
                });
                let difference = (8.0 * (one - other) - (twice - back)) / (12.0 * step);
                apart.push((difference - gradient[k]).abs() / size);
            }
        }
        let what = format!("exponent {exponent}: gradient against differences, relative, 500 points");
        outcome.largest(what, apart, 1e-7).by_theory();
    }
    Ok(())
}

/// Follows the flow back in time from far out to r = 0.3. Forwards ψ = 0 repels, like e^{s⁴}, and no arithmetic stays
/// on it; backwards it attracts, and every path from near it is the path that stays near it. With s as the time all
/// numbers are of size one: dψ/ds = dφ/ds − 1 and d ln ρ/ds = L (1 − f) e^s/(e^s ds/dτ). Returns the directions, from
/// the end back.
fn endless(lab: &Lab, outcome: &mut Outcome) -> Vec<[f64; 2]> {
    let turns = lab.choose(5.0, 8.0);
    let begin: f64 = 1.0 / 0.91;
    let end = begin + turns * TAU;
    let slopes = |[s, psi, _]: [f64; 3]| {
        let shape = HatShape::new(1.0 / s, psi, 3);
        let rising = shape.rising();
        // (1 − f) e^s = e^s − e^s f
        [1.0, shape.turning() / rising - 1.0, (s.exp() - shape.value) / rising]
    };
    let [mut s, mut psi, mut log_rho] = [end, 0.01 / (4.0 * end.powi(3)), 0.0];
    let (mut early, mut late, mut slowest): (f64, f64, f64) = (0.0, 0.0, f64::INFINITY);
    let (mut spiral, mut marks) = (Vec::new(), vec![(end, 0.0)]);
    let mut wanted = end;
    while s > begin {
        // the curve attracts at the rate 4s³ of s
        let h = (1.0 / (4.0 * s.powi(3) + 100.0)).min(s - begin);
        let mean = six_slopes([s, psi, log_rho], -h, slopes).map(|six| six / 6.0);
        [s, psi, log_rho] = [s - h, psi - h * mean[1], log_rho - h * mean[2]];
        if end - s < 0.01 {
            early = larger(early, psi.abs());
        } else {
            late = larger(late, psi.abs());
        }
        slowest = smaller(slowest, 1.0 + mean[1]);
        if s <= wanted {
            let (r, phi) = ((1.0 - 1.0 / s).sqrt(), s + psi);
            spiral.push([r * phi.cos(), r * phi.sin()]);
            wanted = s - 0.03;
        }
        let passed = ((end - s) / TAU).floor() as usize;
        if passed >= marks.len() {
            marks.push((s, log_rho));
        }
    }
    // ln ρ counts from the start of the path
    marks.iter_mut().for_each(|mark| mark.1 -= log_rho);
    let bound = 0.0101 / (4.0 * end.powi(3));
    outcome.at_most("flow back in time: |ψ| until s is 0.01 less, from 0.01/(4s³) on", early, bound);
    let what = format!("flow back in time: |ψ| from there to r = 0.3, over {turns} turns");
    outcome.at_most(what, late, 1e-12).by_theory();
    outcome.at_least("φ gained by the path for every unit of s, least", slowest, 1.0 - 1e-2);
    let full = (end + psi - begin) / TAU;
    outcome.at_least("turns of the direction while s grows without bound", full, turns - 0.01);
    for pair in marks.windows(2).take(3) {
        // ∫ r² e^s/C ds is (1 − 1/s + O(1/s²)) e^s
        let what = format!("factor by which ln ρ grows in the turn up to s = {:.1}, over e^2π", pair[0].0);
        outcome.near(what, pair[0].1 / pair[1].1 / TAU.exp(), 1.0, 0.05);
    }
    outcome.note(format!(
        "With the degree L the flow needs ln ρ = {:.2e} L for {turns} turns; every turn multiplies ln ρ by about e^2π = 535.",
        marks.first().map_or(f64::NAN, |mark| mark.1)
    ));
    spiral
}

/// k₁ + 2 (k₂ + k₃) + k₄ of a step of Runge and Kutta: six times its slope.
pub(super) fn six_slopes<const N: usize>(at: [f64; N], h: f64, slopes: impl Fn([f64; N]) -> [f64; N]) -> [f64; N] {
    let moved = |k: [f64; N], share: f64| from_fn(|i| at[i] + share * h * k[i]);
    let k1 = slopes(at);
    let k2 = slopes(moved(k1, 0.5));
    let k3 = slopes(moved(k2, 0.5));
    let k4 = slopes(moved(k3, 1.0));
    from_fn(|i| k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i])
}

/// The disc of directions (x, y)/ρ within the equator, in the shape of the drawing, so that circles are round.
pub(super) fn disc(name: &str, title: &str) -> Sketch {
    let around = (0..=360).map(|k| f64::from(k).to_radians()).map(|t| [t.cos(), t.sin()]);
    let sketch = Sketch::new(name, title, "x/ρ", "y/ρ").window([-1.67, 1.67], [-1.15, 1.15]);
    sketch.reference("equator", around.collect())
}

/// Figure 2: the hat along four rays.
fn profile(outcome: &mut Outcome) {
    let mut sketch = Sketch::new("d-hat-profile", "The Mexican hat f along four rays", "r", "f");
    for (name, turn) in [("φ = 0", 0.0), ("φ = π/2", 0.25), ("φ = π", 0.5), ("φ = 3π/2", 0.75)] {
        let at = |k: i32| {
            let r = 0.005 * f64::from(k);
            let gap = 1.0 - r * r;
            [r, (-1.0 / gap).exp() * HatShape::new(gap, turn * TAU - 1.0 / gap, 3).value]
        };
        sketch = sketch.curve(name, (0..200).map(at).collect());
    }
    outcome.sketch(sketch);
}
