//! Any homogeneous model in any norm: tangent problems with line searches on the true margin.
//!
//! The tangent problem at θ, with every slope allowed at kinks within a radius, gives a direction v* in which all
//! margins grow whatever the slopes; the search walks from θ to v* on the sphere of the norm and takes the first step
//! that gains a fair part of what was promised:
//!
//! ```text
//! θ(s) = ((1 − s) θ + s v*)/‖…‖,   s = 1, ½, ¼, …      accepted if the normalised margin grows by 1e-3 · s · τ of itself
//! ```
//!
//! The margin never falls. The radius shrinks when no step is found: then kinks that are too far away have spoiled the
//! promise. Where the model is smooth, or the limit lies on no kink, this converges to a KKT point; on kinks it comes
//! as close as steps across them allow, and says so.

use super::super::{CertificateError, Geometry, Slopes, TangentProblem, solve_tangent};
use super::{Candidate, KktProof, Outcome, PolishError, PolishMethod, PolishSettings, normalised_margin};
use crate::data::Dataset;
use crate::engine::Tangents;
use crate::norms::Norm;

/// The largest relative radius within which kinks count for a direction.
const RADIUS: f64 = 1e-2;

/// Tangent problems from `params` on.
pub(super) fn descend(
    model: &mut dyn Tangents,
    data: &Dataset,
    params: &[f64],
    geometry: &Geometry,
    norm: &mut dyn Norm,
    settings: &PolishSettings,
) -> Result<Outcome, PolishError> {
    let size = norm.value(params);
    let mut theta: Vec<f64> = params.iter().map(|w| w / size).collect();
    let mut margin = normalised_margin(model, data, &theta, norm)?;
    let (mut radius, mut solves, mut iterations) = (RADIUS, 0, 0);
    let mut why = format!("{} tangent problems were not enough", settings.rounds);
    while solves < settings.rounds {
        let slopes = Slopes::Clarke { tolerance: radius };
        let tangent = TangentProblem::new(model, &data.targets, &theta, geometry, slopes)?;
        let certificate = match tangent.certify() {
            Ok(certificate) => certificate,
            Err(CertificateError::Reference(error)) => {
                why = format!("a tangent problem was not solved: {error}");
                break;
            }
            Err(error) => return Err(error.into()),
        };
        solves += 1;
        iterations += certificate.iterations;
        let step = if certificate.tau > 1e-15 {
            search(model, data, &theta, &certificate.direction, norm, margin, certificate.tau)?
        } else {
            None
        };
        match step {
            Some((next, grown)) => (theta, margin) = (next, grown),
            None if radius <= settings.kink_tolerance => {
                why = "no step along the tangent problem's direction raises the margin".into();
                break;
            }
            None => radius = (0.1 * radius).max(settings.kink_tolerance),
        }
        let done = certificate.tau <= settings.target && radius <= settings.kink_tolerance;
        if done {
            break;
        }
    }
    let slopes = Slopes::Clarke { tolerance: settings.kink_tolerance };
    let proved = solve_tangent(model, &data.targets, &theta, geometry, slopes);
    let (proof, tau) = match proved {
        Ok((tangent, certificate)) => {
            let mut weights = vec![0.0; tangent.margins.len()];
            let rows = tangent.margin_of_row.iter().zip(&certificate.multipliers.rows);
            rows.for_each(|(&margin, p)| weights[margin] += p);
            (KktProof { weights, slopes: Vec::new() }, certificate.tau)
        }
        Err(_) => (KktProof { weights: Vec::new(), slopes: Vec::new() }, f64::NAN),
    };
    let candidates = vec![Candidate { params: theta, proof, tau: Some(tau) }];
    Ok(Outcome { candidates, method: PolishMethod::Tangent, solves: solves + 1, iterations, why })
}

/// The first point between θ and `goal` with a fair gain, and its margin.
fn search(
    model: &mut dyn Tangents,
    data: &Dataset,
    theta: &[f64],
    goal: &[f64],
    norm: &mut dyn Norm,
    margin: f64,
    tau: f64,
) -> Result<Option<(Vec<f64>, f64)>, PolishError> {
    let mut share = 1.0;
    while share > 1e-12 {
        let mut next: Vec<f64> = theta.iter().zip(goal).map(|(t, v)| (1.0 - share) * t + share * v).collect();
        let size = norm.value(&next);
        next.iter_mut().for_each(|w| *w /= size);
        match normalised_margin(model, data, &next, norm) {
            Ok(grown) if grown > margin * (1.0 + 1e-3 * share * tau) => return Ok(Some((next, grown))),
            Ok(_) | Err(PolishError::Certificate(CertificateError::NotSeparated { .. })) => share *= 0.5,
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
