//! Checking a proof from data alone: plain intervals, no solver, no Newton's method, and no code of those who made it.
//!
//! | file | checks |
//! |---|---|
//! | `inclusion` | that a box is mapped into itself |
//! | `pieces` | sides of neurons and margins of the other examples |
//! | `round`, `diamond`, `cube` | the equations of ℓ2, ℓ1 and ℓ∞ and what else makes a KKT point |
//! | `dense`, `dual` | the equations of dense networks of any depth in ℓ2, in numbers that carry a derivative |
//! | `kind`, `evenness` | which kind of point it is, in ℓ2 |
//! | `angle` | how far weights of a file are from it |

mod angle;
mod cube;
mod dense;
mod diamond;
mod dual;
mod evenness;
mod inclusion;
mod kind;
mod pieces;
mod rank;
mod round;

use serde::{Deserialize, Serialize};

use super::dense::DenseModel;
use super::kind::PointKind;
use super::network::{Neuron, TwoLayer};
use super::record::{Equations, Proof};
use super::{Check, ProofError, Refusal};
use crate::data::Dataset;
use crate::intervals::Interval;
use crate::models::ModelSpec;

/// What a proof proves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Findings {
    /// q_min/‖θ‖^L of the KKT point, L the degree of the network (2 for two trained layers), the factor of the output included.
    pub margin: Interval,
    /// The largest half width that is left of an unknown, relative to its size.
    pub radius: f64,
    /// Unknowns, and equations.
    pub unknowns: usize,
    /// Active examples at which a live neuron has a kink.
    pub kinks: usize,
    /// Live neurons, of all hidden layers.
    pub neurons: usize,
    /// What kind of point it is.
    pub kind: PointKind,
}

/// The exact network, with all its weights enclosed.
#[derive(Debug, Clone, PartialEq)]
pub struct EnclosedNetwork {
    pub(super) neurons: Vec<EnclosedNeuron>,
    /// Of a network whose neurons do not decouple: the whole flat vector instead.
    entries: Vec<Interval>,
}

/// Whether all numbers of an interval are positive.
fn is_positive(x: Interval) -> bool {
    x.lo > 0.0
}

/// A neuron between two others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EnclosedNeuron {
    pub unit: usize,
    pub outer: Interval,
    pub inner: Vec<Interval>,
}

/// A KKT point that was found to exist, before it is asked of what kind it is.
pub(super) struct Point {
    network: EnclosedNetwork,
    margin: Interval,
    radius: f64,
    kinks: usize,
    /// λ; empty where the kind of the point is not asked.
    multipliers: Vec<Interval>,
    /// v_c of every bundle; empty where the kind of the point is not asked.
    directions: Vec<Vec<Interval>>,
}

/// Checks that the proof's box holds a KKT point for these data, and what else it says.
pub fn verify(
    proof: &Proof,
    model: &ModelSpec,
    data: &Dataset,
) -> Result<Result<(Findings, EnclosedNetwork), Refusal>, ProofError> {
    if let Equations::Dense(_) = proof.equations {
        let network = DenseModel::new(model, data)?;
        return Ok(dense_point(proof, &network).map(|point| judged_dense(proof, &network, point)));
    }
    let network = TwoLayer::new(model, data)?;
    Ok(verified(proof, &network))
}

/// The KKT point of a dense network in the box of a proof.
pub(super) fn dense_point(proof: &Proof, network: &DenseModel) -> Result<Point, Refusal> {
    check_numbers(proof, network.inputs.rows)?;
    let Equations::Dense(record) = &proof.equations else {
        return Err(Refusal::new(Check::Shape, "these are equations of another kind of network"));
    };
    dense::check(proof, record, network)
}

/// What is known about it.
pub(super) fn judged_dense(proof: &Proof, network: &DenseModel, point: Point) -> (Findings, EnclosedNetwork) {
    let neurons = match &proof.equations {
        Equations::Dense(record) => record.units.iter().map(Vec::len).sum(),
        _ => 0,
    };
    let findings = Findings {
        margin: point.margin * network.factor,
        radius: point.radius,
        unknowns: proof.midpoint.len(),
        kinks: point.kinks,
        neurons,
        kind: PointKind::Undecided { share: 0.0 },
    };
    (findings, point.network)
}

pub(super) fn verified(proof: &Proof, network: &TwoLayer) -> Result<(Findings, EnclosedNetwork), Refusal> {
    let point = existence(proof, network)?;
    judged(proof, network, point)
}

/// The KKT point in the box of a proof; its sphere is not looked at.
pub(super) fn existence(proof: &Proof, network: &TwoLayer) -> Result<Point, Refusal> {
    check_shape(proof, network)?;
    match &proof.equations {
        Equations::L2(bundles) => round::check(proof, bundles, network),
        Equations::L1(bundles) => diamond::check(proof, bundles, network),
        Equations::Linf(cube) => cube::check(proof, cube, network),
        Equations::Dense(_) => Err(Refusal::new(Check::Shape, "these are equations of another kind of network")),
    }
}

/// What is known about a point that exists.
pub(super) fn judged(proof: &Proof, network: &TwoLayer, point: Point) -> Result<(Findings, EnclosedNetwork), Refusal> {
    let kind = kind::check(proof, network, &point)?;
    let findings = Findings {
        margin: point.margin * network.factor,
        radius: point.radius,
        unknowns: proof.midpoint.len(),
        kinks: point.kinks,
        neurons: point.network.neurons.len(),
        kind,
    };
    Ok((findings, point.network))
}

/// Lists of the right lengths, examples that exist, and numbers that are finite.
fn check_numbers(proof: &Proof, rows: usize) -> Result<(), Refusal> {
    let refuse = |why: &str| Err(Refusal::new(Check::Shape, why));
    let size = proof.midpoint.len();
    if proof.radius.len() != size || proof.inverse.len() != size * size || size == 0 {
        return refuse("midpoint, radius and inverse are not of one size");
    }
    let numbers = proof.midpoint.iter().chain(&proof.radius).chain(&proof.inverse);
    if numbers.into_iter().any(|x| !x.is_finite()) || proof.radius.iter().any(|r| *r <= 0.0) {
        return refuse("a number is not finite, or a radius not positive");
    }
    let ascending = proof.active.windows(2).all(|pair| pair[0] < pair[1]);
    if proof.active.is_empty() || !ascending || proof.active.iter().any(|i| *i >= rows) {
        return refuse("the active examples are not in order or do not exist");
    }
    Ok(())
}

/// The same, and hidden units that exist.
fn check_shape(proof: &Proof, network: &TwoLayer) -> Result<(), Refusal> {
    check_numbers(proof, network.inputs.rows)?;
    let refuse = |why: &str| Err(Refusal::new(Check::Shape, why));
    let units: Vec<usize> = match &proof.equations {
        Equations::L2(bundles) => bundles.iter().flat_map(|b| b.units.clone()).collect(),
        Equations::L1(bundles) => bundles.iter().flat_map(|b| b.units.clone()).collect(),
        Equations::Linf(cube) => cube.neurons.iter().map(|neuron| neuron.unit).collect(),
        Equations::Dense(_) => Vec::new(),
    };
    let mut sorted = units.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() != units.len() || units.iter().any(|unit| *unit >= network.width) {
        return refuse("a hidden unit is named twice or does not exist");
    }
    Ok(())
}

impl EnclosedNetwork {
    /// Between which angles, in radians, weights differ from the exact ones.
    pub fn angle(&self, model: &ModelSpec, data: &Dataset, weights: &[f64]) -> Result<Interval, ProofError> {
        if !self.entries.is_empty() {
            let network = DenseModel::new(model, data)?;
            if weights.len() != network.parameters() {
                return Err(ProofError::Weights { found: weights.len(), expected: network.parameters() });
            }
            let trained = network.trained_places();
            let other = |at: usize| !trained.contains(&at) && !(self.entries[at] == Interval::point(weights[at]));
            if (0..weights.len()).any(other) {
                let why = "the frozen layers of these weights are not those of the proof".to_owned();
                return Err(ProofError::Unsupported { why });
            }
            let pairs = trained.into_iter().map(|at| (Interval::point(weights[at]), self.entries[at]));
            return Ok(angle::between(&pairs.collect::<Vec<_>>()));
        }
        let network = TwoLayer::new(model, data)?;
        if weights.len() != network.parameters() {
            return Err(ProofError::Weights { found: weights.len(), expected: network.parameters() });
        }
        Ok(angle::angle(&self.neurons, &network.read(weights)))
    }

    /// The doubles nearest to the exact weights of a dense network; its trained ones as long as those of `weights`.
    pub(super) fn middle(&self, network: &DenseModel, weights: &[f64]) -> Vec<f64> {
        let trained = network.trained_places();
        let pick = |from: &[f64]| -> Vec<f64> { trained.iter().map(|&at| from[at]).collect() };
        let mut out: Vec<f64> = self.entries.iter().map(|x| 0.5 * x.lo + 0.5 * x.hi).collect();
        let factor = crate::linalg::norm2(&pick(weights)) / crate::linalg::norm2(&pick(&out));
        trained.iter().for_each(|&at| out[at] *= factor);
        out
    }

    /// The doubles nearest to the exact weights, of a given Euclidean length.
    pub(super) fn midpoint(&self, network: &TwoLayer, length: f64) -> Vec<f64> {
        let middle = |x: &Interval| 0.5 * x.lo + 0.5 * x.hi;
        let neuron = |n: &EnclosedNeuron| Neuron {
            unit: n.unit,
            outer: middle(&n.outer),
            inner: n.inner.iter().map(middle).collect(),
        };
        let neurons: Vec<Neuron> = self.neurons.iter().map(neuron).collect();
        let params = network.write(&neurons);
        let factor = length / crate::linalg::norm2(&params);
        params.iter().map(|w| w * factor).collect()
    }
}
