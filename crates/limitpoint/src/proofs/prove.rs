//! From a polished network to a proof: read it, solve its equations, put a box around the zero, and have it checked.
//!
//! Nothing counts as proven before `verify`, which shares no code with what is here, has said so.

use super::bundles::bundles;
use super::dense::{self, DenseModel};
use super::krawczyk::{Miss, Zero, include, newton};
use super::network::{Active, Neuron, READINGS, Reading, Side, TwoLayer};
use super::record::{Equations, Proof, RoundBundle, letters};
use super::sphere::Sphere;
use super::system::System;
use super::system_l1::DiamondSystem;
use super::system_l2::RoundSystem;
use super::system_linf::CubeSystem;
use super::verify::{EnclosedNetwork, Findings, Point, dense_point, existence, judged, judged_dense};
use super::{Check, ProofError, Refusal};
use crate::data::Dataset;
use crate::linalg::norm2;
use crate::models::ModelSpec;
use crate::norms::NormSpec;

/// Boxes that are tried: each so many times wider than the one before.
const WIDER: f64 = 32.0;
const BOXES: usize = 5;

/// What came of an attempt to prove something.
#[derive(Debug, Clone, PartialEq)]
pub enum Attempt {
    /// There is a KKT point, and this is the proof.
    Proven(Box<Proven>),
    /// It could not be proven; nothing is said.
    Refused(Refusal),
}

/// A proof with what it proves.
#[derive(Debug, Clone, PartialEq)]
pub struct Proven {
    /// The proof.
    pub proof: Proof,
    /// What it proves.
    pub findings: Findings,
    /// The exact network, enclosed.
    pub network: EnclosedNetwork,
    /// The doubles nearest to it, as long as the weights it was proven from.
    pub midpoint: Vec<f64>,
}

/// Tries to prove that an exact KKT point of the margin problem lies near weights.
///
/// `leaves` limits the search for other directions that decides whether the point is a global maximum; see `sphere`.
///
/// ```
/// use limitpoint::data::{Dataset, Targets};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::models::ModelSpec;
/// use limitpoint::norms::NormSpec;
/// use limitpoint::proofs::{Attempt, PointKind, prove};
/// // one point x = (3, 4) and one neuron: w along x, |a| = |w|, and the margin ‖x‖/2 is the largest there is
/// let data = Dataset::new("one", Matrix::from_rows(&[&[3.0, 4.0]]), Targets::Binary(vec![1.0]), vec![2]).unwrap();
/// let attempt = prove(&ModelSpec::relu(&[1]), &data, &[0.6, 0.8, 1.0], &NormSpec::L2, 100)?;
/// let Attempt::Proven(proven) = attempt else { panic!("{attempt:?}") };
/// assert!(proven.findings.margin.contains(2.5) && proven.findings.margin.width() < 1e-13);
/// assert_eq!(proven.findings.kind, PointKind::GlobalMaximum { strict: true });
/// # Ok::<(), limitpoint::proofs::ProofError>(())
/// ```
pub fn prove(
    model: &ModelSpec,
    data: &Dataset,
    weights: &[f64],
    norm: &NormSpec,
    leaves: usize,
) -> Result<Attempt, ProofError> {
    let network = match TwoLayer::new(model, data) {
        Ok(network) => network,
        // not one of the networks whose neurons decouple
        Err(_) => return prove_dense(&DenseModel::new(model, data)?, weights, norm),
    };
    if weights.len() != network.parameters() {
        return Err(ProofError::Weights { found: weights.len(), expected: network.parameters() });
    }
    let neurons = network.read(weights);
    let attempt = match norm.exponent() {
        Some(2.0) => round,
        Some(1.0) => diamond,
        Some(f64::INFINITY) if network.slope == 0.0 => cube,
        Some(f64::INFINITY) => {
            return Err(ProofError::Unsupported { why: "in ℓ∞ the activation must be ReLU".to_owned() });
        }
        _ => return Err(ProofError::Norm { norm: norm.key() }),
    };
    let (mut first, mut seen): (Option<Refusal>, Vec<Active>) = (None, Vec::new());
    for reading in &READINGS {
        let found = read(&network, &neurons, reading, &mut seen).and_then(|active| match active {
            Some(active) => attempt(&network, &active).map(Some),
            None => Ok(None),
        });
        match found {
            Ok(Some((proof, point))) => {
                let proof = with_sphere(proof, &network, leaves);
                match judged(&proof, &network, point) {
                    Ok((findings, enclosed)) => {
                        let midpoint = enclosed.midpoint(&network, norm2(weights));
                        return Ok(Attempt::Proven(Box::new(Proven { proof, findings, network: enclosed, midpoint })));
                    }
                    Err(refusal) => drop(first.get_or_insert(refusal)),
                }
            }
            Ok(None) => {}
            Err(refusal) => drop(first.get_or_insert(refusal)),
        }
    }
    let nothing = || Refusal::new(Check::Convergence, "no reading of the weights has equations");
    Ok(Attempt::Refused(first.unwrap_or_else(nothing)))
}

/// The same for a dense network, on all its weights.
fn prove_dense(model: &DenseModel, weights: &[f64], norm: &NormSpec) -> Result<Attempt, ProofError> {
    if weights.len() != model.parameters() {
        return Err(ProofError::Weights { found: weights.len(), expected: model.parameters() });
    }
    if norm.exponent() != Some(2.0) {
        return Err(ProofError::Unsupported { why: "networks of this kind are proven in ℓ2 only".to_owned() });
    }
    let (mut first, mut seen): (Option<Refusal>, Vec<Equations>) = (None, Vec::new());
    for reading in &READINGS {
        let found = dense::attempt(model, weights, reading, |system, start, read| {
            let equations = Equations::Dense(read.record.clone());
            if seen.contains(&equations) {
                return Ok(None);
            }
            seen.push(equations.clone());
            enclose(system, start, &read.active, equations, |_| 0, |proof| dense_point(proof, model)).map(Some)
        });
        match found {
            Ok(Some((proof, point))) => {
                let (findings, enclosed) = judged_dense(&proof, model, point);
                let midpoint = enclosed.middle(model, weights);
                return Ok(Attempt::Proven(Box::new(Proven { proof, findings, network: enclosed, midpoint })));
            }
            Ok(None) => {}
            Err(refusal) => drop(first.get_or_insert(refusal)),
        }
    }
    let nothing = || Refusal::new(Check::Convergence, "no reading of the weights has equations");
    Ok(Attempt::Refused(first.unwrap_or_else(nothing)))
}

/// A reading that has not been tried yet.
fn read(
    network: &TwoLayer,
    neurons: &[Neuron],
    reading: &Reading,
    seen: &mut Vec<Active>,
) -> Result<Option<Active>, Refusal> {
    let active = Active::read(network, neurons, reading)?;
    if seen.contains(&active) {
        return Ok(None);
    }
    seen.push(active.clone());
    Ok(Some(active))
}

fn round(network: &TwoLayer, active: &Active) -> Result<(Proof, Point), Refusal> {
    // a neuron that is off on all active examples has no force on it: at the KKT point it is 0
    let mut active = active.clone();
    if network.slope == 0.0 {
        let keep: Vec<bool> = active.sides.iter().map(|sides| sides.iter().any(|side| *side != Side::Off)).collect();
        let mut kept = keep.iter();
        active.live.retain(|_| kept.next().copied().unwrap_or(true));
        let mut kept = keep.iter();
        active.sides.retain(|_| kept.next().copied().unwrap_or(true));
    }
    let bundles = bundles(&active, |_| ());
    let (system, start) = RoundSystem::new(network, &active, &bundles);
    let record = |c: usize| {
        let (bundle, members) = (&bundles[c], bundles[c].members.iter().map(|&j| &active.live[j]));
        RoundBundle {
            sign: if bundle.sign > 0.0 { 1 } else { -1 },
            sides: letters(&bundle.sides),
            units: members.clone().map(|neuron| neuron.unit).collect(),
            shares: members.map(|neuron| neuron.outer.abs() * norm2(&neuron.inner)).collect(),
            opposite: system.partners[c],
            mass: system.fixed[c],
        }
    };
    let equations = Equations::L2((0..bundles.len()).map(record).collect());
    let unit = |c: usize| active.live[bundles[c].members[0]].unit;
    enclose(&system, &start, &active.examples, equations, unit, |proof| existence(proof, network))
}

fn diamond(network: &TwoLayer, active: &Active) -> Result<(Proof, Point), Refusal> {
    let (system, start, records) = DiamondSystem::new(network, active);
    let units: Vec<usize> = records.iter().map(|record| record.units[0]).collect();
    enclose(&system, &start, &active.examples, Equations::L1(records), |c| units[c], |proof| existence(proof, network))
}

fn cube(network: &TwoLayer, active: &Active) -> Result<(Proof, Point), Refusal> {
    let (system, start, record) = CubeSystem::new(network, active)?;
    let units: Vec<usize> = system.units();
    enclose(&system, &start, &active.examples, Equations::Linf(record), |c| units[c], |proof| existence(proof, network))
}

/// Newton, a box, and the judge's word that it holds a KKT point.
fn enclose(
    system: &impl System,
    start: &[f64],
    examples: &[usize],
    equations: Equations,
    unit: impl Fn(usize) -> usize,
    check: impl Fn(&Proof) -> Result<Point, Refusal>,
) -> Result<(Proof, Point), Refusal> {
    let blame = |miss: Miss| {
        let (check, k, why) = match miss {
            Miss::Singular(k) => (Check::Regularity, k, "the Jacobian is singular".to_owned()),
            Miss::Diverged(k) => (Check::Convergence, k, "Newton's method does not settle".to_owned()),
            Miss::NoInclusion(k, from, to) => {
                (Check::Inclusion, k, format!("a half width of {from:.1e} is mapped to one of {to:.1e}"))
            }
        };
        let unknown = system.unknown(k);
        Refusal::new(check, format!("{why} at {}", unknown.what))
            .example(unknown.example.map(|i| examples[i]))
            .neuron(unknown.bundle.map(&unit))
    };
    if start.len() != system.size() {
        let why = format!("{} equations for {} unknowns", system.size(), start.len());
        return Err(Refusal::new(Check::Shape, why));
    }
    let zero = newton(system, start).map_err(blame)?;
    let mut wider = 1.0;
    let mut refusal = None;
    for _ in 0..BOXES {
        let radius = include(system, &zero, wider).map_err(blame)?;
        let Zero { midpoint, inverse } = zero.clone();
        let proof =
            Proof { active: examples.to_vec(), equations: equations.clone(), midpoint, radius, inverse, sphere: None };
        match check(&proof) {
            Ok(point) => return Ok((proof, point)),
            Err(found) if found.check == Check::Inclusion => refusal = Some(found),
            Err(found) => return Err(found),
        }
        wider *= WIDER;
    }
    Err(refusal.unwrap_or_else(|| Refusal::new(Check::Inclusion, "no box was found")))
}

/// The proof with a cover of the sphere, in ℓ2.
fn with_sphere(mut proof: Proof, network: &TwoLayer, leaves: usize) -> Proof {
    let Equations::L2(bundles) = &proof.equations else { return proof };
    let labels: Vec<f64> = proof.active.iter().map(|&i| network.labels[i]).collect();
    let rising = |bundle: &RoundBundle| {
        bundle.sides.chars().zip(&labels).any(|(side, y)| side == '0' && y * f64::from(bundle.sign) > 0.0)
    };
    if leaves == 0 || bundles.iter().any(rising) {
        return proof;
    }
    let multipliers = proof.midpoint[..labels.len()].to_vec();
    let rows: Vec<&[f64]> = proof.active.iter().map(|&i| network.inputs.row(i)).collect();
    let weighted = rows.iter().zip(&multipliers).map(|(row, l)| row.iter().map(|x| l * x).collect()).collect();
    let on = |bundle: &RoundBundle| bundle.sides.chars().map(|side| side == '+').collect();
    let live = bundles.iter().map(|bundle| (f64::from(bundle.sign), on(bundle))).collect();
    let sphere = Sphere { weighted, rows, multipliers, labels, slope: network.slope, live };
    proof.sphere = Some(sphere.cover(leaves));
    proof
}
