//! Dense networks of any depth, in ℓ2 and ℓ∞: barrier problems with rounded kinks, then the equations of the active set.
//!
//! Training leaves the weights near the region of a KKT point, at many kinks of several layers at once, where tangent problems
//! stall: the slopes of one layer decide which way the kinks of another bend. Rounded off, the kinks of all layers move together,
//! and their slopes come out with the weights. Every time the barrier has fallen, the active set is read off and its equations
//! are tried; the first solution whose signs are all right is the limit.

mod barrier;
mod derivatives;
mod network;
mod sets;

pub(super) use network::Dense;

use self::barrier::Barrier;
use self::sets::end;
use super::proof::KktProof;
use super::routes::{Candidate, Outcome};
use super::shallow::Ball;
use super::{PolishMethod, PolishSettings};
use crate::engine::Kink;
use crate::linalg::{max_abs, norm2};

/// The barrier falls to this share of itself.
const FALL: f64 = 0.3;
/// Newton steps per barrier.
const CENTRE: usize = 120;
/// The active set is read as soon as kinks are rounded by less than this.
const SHARP: f64 = 3e-3;
/// Where the way ends.
const LAST: f64 = 1e-12;

/// From weights that separate the data to a KKT point.
pub(super) fn deep(dense: Dense, ball: Ball, params: &[f64], settings: &PolishSettings) -> Outcome {
    let mut outcome = Outcome {
        candidates: Vec::new(),
        method: PolishMethod::Barrier,
        solves: 0,
        iterations: 0,
        why: "the starting point was pushed out of the separating weights".into(),
    };
    let theta = started(&dense, ball, params);
    let (activation, full) = (dense.activation, params);
    let Some(mut barrier) = Barrier::new(dense, theta, ball) else { return outcome };
    while barrier.mu > LAST && barrier.iterations < settings.iterations {
        outcome.solves += 1;
        barrier.centre(CENTRE.min(settings.iterations - barrier.iterations));
        if barrier.rounding < SHARP {
            if ball == Ball::Round {
                barrier.prune(3.0 * barrier.rounding);
            }
            match end(&barrier.network, barrier.sets(ball), ball) {
                Ok(ended) => {
                    let slopes = activation.kink().unwrap_or((0.0, 1.0));
                    let kink = |&(layer, example, unit, slope): &(usize, usize, usize, f64)| {
                        let unit = barrier.network.units[layer][unit];
                        (Kink { layer, unit, example, slopes }, (slope - slopes.0) / (slopes.1 - slopes.0))
                    };
                    let proof = KktProof { weights: ended.weights, slopes: ended.kinks.iter().map(kink).collect() };
                    let params = barrier.network.write(&ended.theta, full.len());
                    outcome.candidates.push(Candidate { params, proof, tau: None });
                    break;
                }
                Err(why) => outcome.why = why,
            }
        }
        if !barrier.reduce(FALL) {
            outcome.why = "the weights do not separate the data without rounding their kinks".into();
            break;
        }
    }
    if barrier.iterations >= settings.iterations {
        outcome.why = format!("{} Newton steps were not enough; {}", settings.iterations, outcome.why);
    }
    outcome.iterations = barrier.iterations;
    outcome
}

/// The weights balanced, and of the size that the barrier problem has.
fn started(dense: &Dense, ball: Ball, params: &[f64]) -> Vec<f64> {
    let mut theta = dense.read(params);
    let entries = dense.trained_entries();
    if ball == Ball::Cube {
        // every trained layer may be as large as the others
        for l in (0..dense.layers()).filter(|&l| dense.trained[l]) {
            let layer = &mut theta[dense.offsets[l]..dense.offsets[l + 1]];
            let factor = 0.9 / max_abs(layer).max(f64::MIN_POSITIVE);
            layer.iter_mut().for_each(|w| *w *= factor);
        }
    } else {
        dense.balance(&mut theta);
        let size = norm2(&entries.iter().map(|&e| theta[e]).collect::<Vec<f64>>());
        entries.iter().for_each(|&e| theta[e] *= dense.degree().sqrt() / size);
    }
    theta
}
