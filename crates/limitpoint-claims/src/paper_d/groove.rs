//! Beyond the paper: where the flow on the Mexican hat goes from anywhere, and with the printed exponent.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use super::flows::join;
use super::hat::{disc, six_slopes};
use crate::{Claim, ClaimError, Lab, Outcome};
use limitpoint::models::HatShape;

pub(super) const CLAIMS: [Claim; 1] = [Claim {
    id: "X.22",
    statement: "Measured: off the curve φ = 1/(1 − r²) = s, and with the printed exponent, the flow on the Mexican hat ends in the \
                bottom of the groove, cos(φ − s) ≈ 1/(4s^e), and circles there too, dφ/d ln ρ ≈ e^{−s}/(4L s^e), for both e",
    try_out: circling,
    ..Claim::FINDING
}];

/// The flow of −e^s f on the sphere: s and ψ = φ − s.
fn slopes([s, psi]: [f64; 2], exponent: u32) -> [f64; 2] {
    let shape = HatShape::new(1.0 / s, psi, exponent);
    [shape.rising(), shape.turning() - shape.rising()]
}

/// Follows the flow beyond this s until φ moves along with s, within a tenth; nothing where it does not get there.
fn follow(start: [f64; 2], far: f64, exponent: u32, most: u64) -> Option<([f64; 2], Vec<[f64; 2]>)> {
    let mut at = start;
    let (mut path, mut wanted) = (Vec::new(), f64::NEG_INFINITY);
    for _ in 0..most {
        // the groove's bottom attracts at the rate 4s³
        let h = 0.4 / (4.0 * at[0].powi(3) + 4.0);
        let six = six_slopes(at, h, |at| slopes(at, exponent));
        at = [0, 1].map(|i| at[i] + h * six[i] / 6.0);
        let phi = at[0] + at[1];
        if (phi - wanted).abs() > 0.02 {
            let r = (1.0 - 1.0 / at[0]).sqrt();
            path.push([r * phi.cos(), r * phi.sin()]);
            wanted = phi;
        }
        let [rising, leaning] = slopes(at, exponent);
        if at[0] >= far && rising > 0.0 && leaning.abs() < 0.1 * rising {
            return Some((at, path));
        }
    }
    None
}

/// One implicit step of dψ/ds along the groove, which attracts at the rate 16s^{3+e} of s.
fn creep([s, psi]: [f64; 2], h: f64, exponent: u32) -> [f64; 2] {
    let next = s + h;
    // (ψ′ − ψ) ds/dτ = h dψ/dτ at the end of the step
    let defect = |trial: f64| {
        let [rising, leaning] = slopes([next, trial], exponent);
        (trial - psi) * rising - h * leaning
    };
    let mut trial = psi;
    for _ in 0..20 {
        let slope = (defect(trial + 1e-6) - defect(trial - 1e-6)) / 2e-6;
        let step = defect(trial) / slope;
        trial -= step;
        if step.abs() < 1e-15 {
            break;
        }
    }
    [next, trial]
}

fn circling(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut sketch = disc("x-groove", "Directions on the Mexican hat from several starts");
    let (far, starts) = (3.5, lab.choose(6, 24));
    for exponent in [3, 4] {
        let (mut about, mut scaled, mut bottom) = (Outcome::default(), Vec::new(), None);
        for k in 0..starts {
            // ψ₀ between −π and π, never 0
            let psi = PI * ((2 * k + 1) as f64 / starts as f64 - 1.0);
            let start = [1.3 + 1.2 * (k % 4) as f64 / 3.0, psi];
            let Some((end, path)) = follow(start, far, exponent, 4_000_000) else { continue };
            // the bottom is at the root of dψ/dτ near π/2, modulo 2π
            let turned = (end[1] - FRAC_PI_2 + PI).rem_euclid(TAU) - PI;
            scaled.push(-turned * 4.0 * end[0].powi(exponent as i32));
            if exponent == 3 && k % 2 == 0 {
                sketch = sketch.curve(format!("from φ − s = {psi:.2}"), path);
            }
            bottom = Some([end[0], FRAC_PI_2 + turned]);
        }
        let what = format!("starts of {starts} from which the bottom of the groove is reached");
        about.near(what, scaled.len() as f64, starts as f64, 0.0);
        // 1 + O(1/s), and s is not large yet
        about.smallest("(π/2 − ψ) 4s^e on arrival, least", scaled.iter().copied(), 0.5);
        about.largest("(π/2 − ψ) 4s^e on arrival, largest", scaled, 10.0);
        if exponent == 4 {
            let left = follow([1.0 / 0.91, 0.0], far, 4, 4_000_000).map_or(f64::NAN, |(end, _)| end[1]);
            let psi = (left + PI).rem_euclid(TAU) - PI;
            about.near("ψ on arrival from ψ = 0 on, modulo 2π", psi, FRAC_PI_2, 0.1);
        }
        let remark = bottom.and_then(|bottom| along_the_bottom(&mut about, bottom, exponent));
        join(&mut outcome, &format!("exponent {exponent}"), about);
        outcome.notes.extend(remark);
    }
    outcome.sketch(sketch);
    outcome.note(
        "In plain double precision every trained path ends in the groove's bottom, because φ = s repels like e^{s⁴}.",
    );
    Ok(outcome)
}

/// Ten turns along the bottom of the groove.
fn along_the_bottom(outcome: &mut Outcome, start: [f64; 2], exponent: u32) -> Option<String> {
    let (mut at, turns) = (start, 10.0);
    let (mut gains, mut measured) = (Vec::new(), Vec::new());
    while at[0] < start[0] + turns * TAU {
        let next = creep(at, 0.01, exponent);
        gains.push((next[0] + next[1] - at[0] - at[1]) / (next[0] - at[0]));
        at = next;
        let shape = HatShape::new(1.0 / at[0], at[1], exponent);
        // d ln ρ = L (1 − f) e^s ds/(e^s ds/dτ) up to the factor 1 − f
        let law = 4.0 * at[0].powi(exponent as i32);
        measured.push([at[0], shape.turning() * law / (1.0 - (-at[0]).exp() * shape.value), at[1].cos() * law]);
    }
    outcome.smallest("φ gained for every unit of s along the bottom, least", gains.iter().copied(), 0.9);
    outcome.largest("the same, largest", gains, 1.1);
    let full = (at[0] + at[1] - start[0] - start[1]) / TAU;
    outcome.at_least("turns of the direction", full, turns - 0.1);
    let ([early, first, _], [place, last, lean]) = (*measured.first()?, *measured.last()?);
    outcome.near(format!("dφ/d ln ρ · 4L s^e e^s at s = {place:.1}"), last, 1.0, 0.15);
    outcome.near(format!("cos ψ · 4s^e at s = {place:.1}"), lean, 1.0, 0.15);
    Some(format!(
        "Exponent {exponent}: dφ/d ln ρ · 4L s^e e^s is {first:.3} at s = {early:.1} and {last:.3} at s = {place:.1}."
    ))
}
