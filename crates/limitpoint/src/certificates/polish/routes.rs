//! The ways from a two-layer network to a KKT point nearby.

use super::curved::CurvedProgram;
use super::finish::{self, Finished};
use super::majorise;
use super::proof::KktProof;
use super::shallow::{Ball, Neurons, Shallow};
use super::{PolishMethod, PolishSettings};
use crate::engine::Kink;
use crate::linalg::norm2;

/// A point on the way.
pub(super) struct Candidate {
    pub params: Vec<f64>,
    pub proof: KktProof,
    /// τ, where it does not come from the proof alone.
    pub tau: Option<f64>,
}

/// What a method hands back.
pub(super) struct Outcome {
    /// Points to choose from, the preferred one first.
    pub candidates: Vec<Candidate>,
    pub method: PolishMethod,
    pub solves: usize,
    pub iterations: usize,
    pub why: String,
}

/// Two layers, piecewise linear.
pub(super) fn cells(shallow: &Shallow, ball: Ball, params: &[f64], settings: &PolishSettings) -> Outcome {
    let settled = majorise::majorise(shallow, &shallow.read(params), ball, settings.rounds);
    let slopes = shallow.activation.kink().unwrap_or((1.0, 1.0));
    let m = settled.neurons.len();
    let candidate = |point: &Finished| {
        let neurons = settled.neurons.balanced(&point.products, ball);
        let slope = |k: usize| {
            let (example, weight) = (k / m, point.weights[k / m]);
            let kink = Kink { layer: 0, unit: settled.neurons.units[k % m], example, slopes };
            (kink, if weight > 0.0 { point.kinks[k] / weight } else { 0.0 })
        };
        let slopes = (0..point.active.len()).filter(|&k| point.active[k]).map(slope).collect();
        Candidate {
            params: shallow.write(&neurons),
            proof: KktProof { weights: point.weights.clone(), slopes },
            tau: None,
        }
    };
    let refined = finish::finish(&settled);
    let raw = Finished {
        products: settled.solution.products.clone(),
        weights: settled.solution.weights.clone(),
        kinks: settled.solution.kinks.clone(),
        active: vec![false; refined.active.len()],
    };
    let why = if settled.refused {
        format!(
            "a convex problem was solved to a gap of {:.1e} only, which makes the network worse",
            settled.solution.gap
        )
    } else if settled.settled {
        format!("the last convex problem was solved to a gap of {:.1e} only", settled.solution.gap)
    } else {
        format!("slopes still change after {} convex problems", settled.rounds)
    };
    Outcome {
        candidates: vec![candidate(&refined), candidate(&raw)],
        method: PolishMethod::Cells,
        solves: settled.rounds,
        iterations: settled.iterations,
        why,
    }
}

/// Two layers with a smooth activation.
pub(super) fn curved(shallow: &Shallow, ball: Ball, params: &[f64], settings: &PolishSettings) -> Outcome {
    let neurons = shallow.read(params);
    let program = CurvedProgram { shallow, neurons: &neurons, ball };
    let (mut outcome, solution) = (
        Outcome {
            candidates: Vec::new(),
            method: PolishMethod::Curved,
            solves: 0,
            iterations: 0,
            why: "rounding ends the interior point method".into(),
        },
        program.solve(0.1 * settings.target, settings.iterations),
    );
    let Some(solution) = solution else {
        outcome.why = "the starting point was pushed out of the separating weights".into();
        return outcome;
    };
    outcome.solves = solution.solves;
    outcome.iterations = solution.iterations;
    if solution.iterations >= settings.iterations {
        outcome.why = format!("{} Newton steps were not enough", settings.iterations);
    }
    let proof = KktProof { weights: solution.weights, slopes: Vec::new() };
    let candidate = |neurons: &Neurons| Candidate { params: shallow.write(neurons), proof: proof.clone(), tau: None };
    outcome.candidates = vec![candidate(&snapped(&solution.neurons, ball)), candidate(&solution.neurons)];
    outcome
}

/// The same neurons with weights within rounding of 0 or of the bound put there, and dead neurons removed.
fn snapped(neurons: &Neurons, ball: Ball) -> Neurons {
    let mut neurons = neurons.clone();
    let size = |j: usize, neurons: &Neurons| norm2(neurons.inner.row(j)).hypot(neurons.outer[j]);
    let largest = (0..neurons.len()).map(|j| size(j, &neurons)).fold(0.0, f64::max);
    let keep: Vec<bool> = (0..neurons.len()).map(|j| size(j, &neurons) > 1e-6 * largest).collect();
    neurons = neurons.retain(&keep);
    for w in &mut neurons.inner.data {
        *w = match ball {
            Ball::Diamond if w.abs() < 1e-8 * largest => 0.0,
            Ball::Cube if 1.0 - w.abs() < 1e-9 => w.signum(),
            _ => *w,
        };
    }
    neurons
}
