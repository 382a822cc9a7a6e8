//! What every column of a run's measurements means.
//!
//! `NORM` and `POTENTIAL` stand for the keys of what is observed, `BLOCK` for the name of a block of parameters. A
//! number that does not exist at a point (a margin of a model that is not homogeneous, KKT measures before the data are
//! separated) is NaN.

use serde::Serialize;

/// A column, or a family of columns, and what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ColumnMeaning {
    /// Its name, with words in capitals for what varies.
    pub name: &'static str,
    /// What is in it.
    pub meaning: &'static str,
}

/// All columns of `metrics.csv`, in their order.
pub const COLUMNS: &[ColumnMeaning] = &[
    ColumnMeaning { name: "step", meaning: "accepted steps so far" },
    ColumnMeaning { name: "epoch", meaning: "passes over the data so far; the step for full batches" },
    ColumnMeaning { name: "log10_time", meaning: "log₁₀ of the time travelled, Σ η for descent, t for flows" },
    ColumnMeaning {
        name: "log10_loss", meaning: "log₁₀ of the loss, summed over the examples whatever the reduction"
    },
    ColumnMeaning { name: "accuracy", meaning: "share of training examples that are classified correctly" },
    ColumnMeaning { name: "smallest_margin", meaning: "min q, the smallest margin, not divided by a norm" },
    ColumnMeaning { name: "soft_minimum", meaning: "the soft minimum of the margins, the inverse of the loss at L" },
    ColumnMeaning { name: "support", meaning: "number of margins within 0.1 % of the smallest" },
    ColumnMeaning { name: "direction_change", meaning: "angle in radians to the direction at the row before" },
    ColumnMeaning {
        name: "layer_margin",
        meaning: "min q divided by the product of the layers' ℓ2 norms; of biases only those of the lowest trained layer count",
    },
    ColumnMeaning { name: "soft_layer_margin", meaning: "the soft minimum divided by that product" },
    ColumnMeaning { name: "smallest_preactivation", meaning: "min |z| over preactivations with a kink" },
    ColumnMeaning { name: "small_fraction.BLOCK", meaning: "share of weights below 1 % of the block's largest" },
    ColumnMeaning {
        name: "participation.BLOCK",
        meaning: "(Σ|w|)²/Σw²: 1 if one weight is not 0, their number if all are equal",
    },
    ColumnMeaning { name: "direction.AXIS", meaning: "θ/‖θ‖₂ of models of three weights, 1 to 3" },
    ColumnMeaning { name: "active_neurons.LAYER", meaning: "hidden units above 1 % of the layer's largest" },
    ColumnMeaning { name: "norm.NORM", meaning: "‖θ‖" },
    ColumnMeaning { name: "margin.NORM", meaning: "min q/‖θ‖^L, the normalised margin" },
    ColumnMeaning { name: "soft_margin.NORM", meaning: "the soft minimum divided by ‖θ‖^L" },
    ColumnMeaning { name: "growth_bound.NORM", meaning: "the theorem's lower bound on the growth of the soft margin" },
    ColumnMeaning { name: "alignment.NORM", meaning: "⟨θ, −∇L⟩/(‖θ‖ ‖∇L‖_*), 1 at a KKT point" },
    ColumnMeaning {
        name: "kkt_gap.NORM", meaning: "Fenchel–Young gap of the KKT conditions, relative to ‖θ‖²"
    },
    ColumnMeaning {
        name: "kkt_slack.NORM",
        meaning: "complementary slackness of the KKT conditions, relative to ‖θ‖²",
    },
    ColumnMeaning {
        name: "residual.NORM@TOLERANCE",
        meaning: "ℓ2 distance of −∇L/‖∇L‖_* from the subdifferential of the norm at θ",
    },
    ColumnMeaning {
        name: "bracket_upper.NORM",
        meaning: "a proven upper bound on the largest margin of a linear model",
    },
    ColumnMeaning { name: "gauge.POTENTIAL", meaning: "the gauge of the potential at θ" },
    ColumnMeaning { name: "horizon.POTENTIAL", meaning: "the horizon φ(θ) of the potential" },
    ColumnMeaning { name: "q_margin.POTENTIAL", meaning: "min q divided by the gauge to the power L" },
    ColumnMeaning { name: "q_soft_margin.POTENTIAL", meaning: "the soft minimum divided by the gauge to the power L" },
    ColumnMeaning { name: "horizon_margin.POTENTIAL", meaning: "min q/φ(θ)^L, the margin mirror flow maximises" },
    ColumnMeaning {
        name: "mirror_beta.POTENTIAL", meaning: "alignment of θ with the gradient in the mirror geometry"
    },
    ColumnMeaning {
        name: "balance_drift.POTENTIAL",
        meaning: "largest change of a difference of balances since the start, relative",
    },
    ColumnMeaning {
        name: "balance.POTENTIAL.GROUP",
        meaning: "the balance of one group of layers, conserved by mirror flow",
    },
];

impl ColumnMeaning {
    /// What is in the column of this name; nothing for a name no table has.
    ///
    /// ```
    /// use limitpoint::diagnostics::ColumnMeaning;
    /// assert_eq!(ColumnMeaning::of("norm.max(l1,l2)").unwrap().meaning, "‖θ‖");
    /// assert!(ColumnMeaning::of("nonsense").is_none());
    /// ```
    pub fn of(column: &str) -> Option<&'static Self> {
        let family = |name: &str| name.split_once('.').map(|(family, _)| family.to_owned());
        COLUMNS.iter().find(|known| known.name == column).or_else(|| {
            let wanted = family(column)?;
            COLUMNS.iter().find(|known| family(known.name).as_ref() == Some(&wanted))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::{Instrument, InstrumentSpec};
    use crate::engine::{Compute, Forward, cpu};
    use crate::linalg::Matrix;
    use crate::models::ModelSpec;
    use crate::potentials::PotentialSpec;

    #[test]
    fn every_column_is_described_and_every_description_has_a_column() {
        let spec = InstrumentSpec {
            potentials: vec![PotentialSpec::Hyperbolic { lambda: 0.1 }],
            residual_tolerances: vec![0.01],
            ..InstrumentSpec::default()
        };
        let mut seen = vec!["step", "epoch", "log10_time", "log10_loss"];
        for (model, features) in [(ModelSpec::relu(&[3]), 2), (ModelSpec::Linear, 3)] {
            let model = cpu::bind(&model, Matrix::zeros(1, features), 1, Compute::default()).unwrap();
            let instrument = Instrument::new(&spec, model.layout(), model.homogeneity(), features == 3).unwrap();
            for column in instrument.columns().iter().filter(|column| *column != "log_loss") {
                let known = ColumnMeaning::of(column).unwrap_or_else(|| panic!("{column} is not described"));
                seen.push(known.name);
            }
        }
        for known in COLUMNS {
            assert!(seen.contains(&known.name), "no column is called {}", known.name);
        }
    }
}
