//! One row of named numbers per snapshot.

use serde::{Deserialize, Serialize};

use super::balance::Balance;
use super::{
    Point, active_neurons, angle, kkt_measure, layer_product, margin_bracket, mirror_measure, normalised_margins,
    participation, small_fraction, soft_margin_growth, stationarity_residual, support_count,
};
use crate::models::Homogeneity;
use crate::norms::{Norm, NormError, NormSpec};
use crate::params::ParamLayout;
use crate::potentials::{MirrorPotential, PotentialError, PotentialSpec};

/// What an instrument measures, besides what is always measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InstrumentSpec {
    /// Norms for margins, alignment and KKT measures.
    pub norms: Vec<NormSpec>,
    /// Potentials for mirror margins and balance.
    pub potentials: Vec<PotentialSpec>,
    /// Activity tolerances τ at which the ℓ2 stationarity residual is reported, per norm.
    pub residual_tolerances: Vec<f64>,
    /// A weight or neuron counts as small below this fraction of the largest.
    pub small_below: f64,
    /// A margin counts as support within this relative distance of the smallest.
    pub support_within: f64,
}

impl Default for InstrumentSpec {
    fn default() -> Self {
        Self {
            norms: vec![NormSpec::L1, NormSpec::L2, NormSpec::Linf],
            potentials: Vec::new(),
            residual_tolerances: Vec::new(),
            small_below: 0.01,
            support_within: 1e-3,
        }
    }
}

/// What an instrument can refuse.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DiagnosticsError {
    /// A tolerance out of range.
    #[error("{what} is {value}, but must be in [0, 1)")]
    OutOfRange {
        /// What the number sets.
        what: &'static str,
        /// The number.
        value: f64,
    },
    /// Rates could not be fitted.
    #[error(transparent)]
    Rate(#[from] super::RateError),
    /// A norm was refused.
    #[error(transparent)]
    Norm(#[from] NormError),
    /// A potential was refused.
    #[error(transparent)]
    Potential(#[from] PotentialError),
}

/// Measures points; the columns are fixed when it is built.
///
/// Tiny quantities are columns in logarithms (`log_loss` is natural). Quantities that do not exist for a point (a
/// margin of a model that is not homogeneous, KKT measures before separation) are NaN.
pub struct Instrument {
    spec: InstrumentSpec,
    columns: Vec<String>,
    norms: Vec<Box<dyn Norm>>,
    potentials: Vec<Box<dyn MirrorPotential>>,
    scratch: [Vec<f64>; 2],
    /// Trainable entries of the previous point.
    previous: Option<Vec<f64>>,
    trainable: Vec<f64>,
    start: Option<Vec<Balance>>,
    linear: bool,
    hidden: Vec<(usize, usize)>,
    /// Whether directions are points of a sphere in space, which can be drawn.
    spatial: bool,
}

/// What an instrument remembers between points; enough to go on bit for bit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InstrumentState {
    /// Trainable entries of the previous point.
    pub previous: Option<Vec<f64>>,
    /// Balances of the first point.
    pub start: Option<Vec<Balance>>,
}

impl Instrument {
    /// Builds the workers; `linear` adds the two-sided margin bracket.
    pub fn new(
        spec: &InstrumentSpec,
        layout: &ParamLayout,
        homogeneity: Option<&Homogeneity>,
        linear: bool,
    ) -> Result<Self, DiagnosticsError> {
        let fractions = spec.residual_tolerances.iter().map(|t| ("residual_tolerances", *t));
        for (what, value) in
            fractions.chain([("small_below", spec.small_below), ("support_within", spec.support_within)])
        {
            if !(0.0..1.0).contains(&value) {
                return Err(DiagnosticsError::OutOfRange { what, value });
            }
        }
        let norms = spec.norms.iter().map(|norm| norm.build(layout)).collect::<Result<Vec<_>, _>>()?;
        let potentials = spec.potentials.iter().map(|r| r.build(layout)).collect::<Result<Vec<_>, _>>()?;
        let hidden = hidden_layers(layout);
        let mut columns: Vec<String> = [
            "log_loss",
            "accuracy",
            "smallest_margin",
            "soft_minimum",
            "support",
            "direction_change",
            "layer_margin",
            "soft_layer_margin",
            "smallest_preactivation",
        ]
        .map(String::from)
        .to_vec();
        for block in layout.trainable() {
            columns.push(format!("small_fraction.{}", block.name));
            columns.push(format!("participation.{}", block.name));
        }
        let size: usize = layout.trainable_ranges().into_iter().map(|range| range.len()).sum();
        let spatial = size == 3;
        if spatial {
            columns.extend((1..=size).map(|axis| format!("direction.{axis}")));
        }
        columns.extend((1..=hidden.len()).map(|layer| format!("active_neurons.layer{layer}")));
        for norm in &spec.norms {
            let key = norm.key();
            let names = ["norm", "margin", "soft_margin", "growth_bound", "alignment", "kkt_gap", "kkt_slack"];
            columns.extend(names.iter().map(|name| format!("{name}.{key}")));
            columns.extend(spec.residual_tolerances.iter().map(|t| format!("residual.{key}@{t}")));
            if linear {
                columns.push(format!("bracket_upper.{key}"));
            }
        }
        for potential in &spec.potentials {
            let key = potential.key();
            let names = ["gauge", "horizon", "q_margin", "q_soft_margin", "horizon_margin", "mirror_beta"];
            columns.extend(names.iter().map(|name| format!("{name}.{key}")));
            if homogeneity.is_some() {
                columns.push(format!("balance_drift.{key}"));
                let groups = homogeneity.map_or(0, |homogeneity| homogeneity.groups.len());
                columns.extend((1..=groups).map(|group| format!("balance.{key}.group{group}")));
            }
        }
        Ok(Self {
            spec: spec.clone(),
            columns,
            norms,
            potentials,
            scratch: [vec![0.0; layout.len()], vec![0.0; layout.len()]],
            previous: None,
            trainable: Vec::new(),
            start: None,
            linear,
            hidden,
            spatial,
        })
    }

    /// Names of the numbers [`Instrument::measure`] writes, in order.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// What it remembers.
    pub fn state(&self) -> InstrumentState {
        InstrumentState { previous: self.previous.clone(), start: self.start.clone() }
    }

    /// Takes up a state saved by an instrument with the same settings.
    pub fn restore(&mut self, state: InstrumentState) {
        (self.previous, self.start) = (state.previous, state.start);
    }

    /// Measures a point; `out` is cleared first. Direction change and balance drift are relative to the previous and
    /// the first point measured.
    pub fn measure(&mut self, point: &Point, out: &mut Vec<f64>) {
        out.clear();
        let mut trainable = std::mem::take(&mut self.trainable);
        point.trainable(&mut trainable);
        let change = self.previous.as_deref().map_or(f64::NAN, |previous| angle(previous, &trainable));
        let product = layer_product(point.params, point.layout, point.layers);
        let accuracy = if point.regression { f64::NAN } else { point.accuracy() };
        out.extend([
            point.log_loss,
            accuracy,
            point.smallest_margin(),
            point.soft_minimum(),
            support_count(point.margins, self.spec.support_within) as f64,
            change,
            point.smallest_margin() / product,
            point.soft_minimum() / product,
            point.smallest_preactivation,
        ]);
        for block in point.layout.trainable() {
            let weights = &point.params[block.range()];
            out.extend([small_fraction(weights, self.spec.small_below), participation(weights)]);
        }
        if self.spatial {
            let length = point.length();
            out.extend(trainable.iter().map(|w| w / length));
        }
        for (incoming, outgoing) in &self.hidden {
            let (w, a) = (&point.layout.blocks()[*incoming], &point.layout.blocks()[*outgoing]);
            let (w_params, a_params) = (&point.params[w.range()], &point.params[a.range()]);
            out.push(active_neurons(w_params, (a_params, a.cols), w.rows, self.spec.small_below) as f64);
        }
        for norm in &mut self.norms {
            let size = norm.value(point.params);
            let margins = normalised_margins(point, size);
            let kkt = kkt_measure(point, &mut **norm);
            out.extend([size, margins.hard, margins.soft, soft_margin_growth(point, &mut **norm)]);
            out.extend([kkt.alignment, kkt.fenchel_young_gap / kkt.objective, kkt.slack / kkt.objective]);
            for tolerance in &self.spec.residual_tolerances {
                out.push(stationarity_residual(point, &mut **norm, *tolerance, &mut self.scratch));
            }
            if self.linear {
                out.push(margin_bracket(point, &mut **norm).upper);
            }
        }
        let mut balances = Vec::new();
        for (index, potential) in self.potentials.iter_mut().enumerate() {
            let m = mirror_measure(point, &mut **potential, &mut self.scratch[0]);
            out.extend([m.gauge, m.horizon, m.margin, m.soft_margin, m.horizon_margin, m.beta]);
            if let Some(homogeneity) = point.homogeneity {
                let balance = Balance::measure(point.params, point.layout, homogeneity, &mut **potential);
                let drift = self.start.as_ref().map_or(0.0, |start| balance.drift_since(&start[index]));
                // no law holds for a potential that mixes blocks
                out.push(if potential.is_block_separable() { drift } else { f64::NAN });
                out.extend_from_slice(&balance.values);
                balances.push(balance);
            }
        }
        self.start.get_or_insert(balances);
        self.trainable = self.previous.replace(trainable).unwrap_or_default();
    }
}

/// Pairs (weights of a hidden layer, weights of the next layer) by block index, in order of the layers.
fn hidden_layers(layout: &ParamLayout) -> Vec<(usize, usize)> {
    let weights: Vec<usize> = (0..layout.blocks().len()).filter(|b| layout.blocks()[*b].is_weight()).collect();
    weights.windows(2).map(|pair| (pair[0], pair[1])).collect()
}
