//! Where training starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Spread;
use crate::catalogue::CatalogueEntry;
use crate::numeric::RandomStream;
use crate::params::{Block, ParamLayout, Role};

/// How initial parameters are drawn; always from the run's stream "init", block after block. Biases start at zero
/// except under `Uniform`, which treats them as weights.
///
/// ```
/// use limitpoint::models::Initialiser;
/// use limitpoint::numeric::Streams;
/// use limitpoint::params::{Block, ParamLayout};
/// let layout = ParamLayout::of([Block::weight(1, 50, 4), Block::weight(2, 1, 50)])?;
/// let theta = Initialiser::Uniform { scale: 0.1, fan_in: true }.draw(&layout, &mut Streams::new(1).stream("init"));
/// assert!(theta[..200].iter().all(|w| w.abs() <= 0.1 / 4.0)); // U[−α/fan-in, α/fan-in]
/// # Ok::<(), limitpoint::params::ParamsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Initialiser {
    /// Uniform on [−α/fan-in, α/fan-in] (A.expTS: w on α/d, u on α/width), or on [−α, α].
    Uniform {
        /// The scale α.
        scale: f64,
        /// Whether the scale is divided by the number of inputs of the layer.
        #[serde(default = "yes")]
        fan_in: bool,
    },
    /// Normal with variance scale²·2/fan-in (He; D.exp).
    HeNormal {
        /// A factor on the standard deviation; 1 is He's.
        #[serde(default = "one")]
        scale: f64,
    },
    /// Normal of standard deviation scale in the first and the last layer, of variance scale²/fan-in in between, meant
    /// for an output factor 1/width: features of size one that move as much as they are large (C.exp2L, reading iii;
    /// Yang and Hu 2021 for the layers in between).
    MeanField {
        /// Standard deviation.
        #[serde(default = "one")]
        scale: f64,
    },
    /// Normal with the given standard deviation everywhere.
    Normal {
        /// Standard deviation.
        deviation: f64,
    },
    /// Every entry equal to this value (linear models usually start at 0; entropy potentials at 1).
    Constant {
        /// The value.
        value: f64,
    },
    /// These numbers, block after block; one for every parameter.
    Given {
        /// The numbers.
        values: Vec<f64>,
    },
}

fn one() -> f64 {
    1.0
}
fn yes() -> bool {
    true
}

impl Initialiser {
    /// Draws a parameter vector. Given numbers are returned as they are; whoever starts from them checks their count.
    pub fn draw(&self, layout: &ParamLayout, stream: &mut RandomStream) -> Vec<f64> {
        if let Self::Given { values } = self {
            return values.clone();
        }
        let mut params = vec![0.0; layout.len()];
        for block in layout.blocks() {
            let spread = self.spread(layout, block).unwrap_or(Spread::Constant { value: f64::NAN });
            params[block.range()].iter_mut().for_each(|entry| *entry = spread.draw(stream));
        }
        params
    }

    /// How the weights of a block are spread; nothing for given numbers.
    pub fn spread(&self, layout: &ParamLayout, block: &Block) -> Option<Spread> {
        let fan_in = block.fan_in as f64;
        let bias = block.role == Role::Bias;
        let last = layout.weights().last().map_or(0, |weight| weight.layer);
        let between = block.is_weight() && (2..last).contains(&block.layer);
        let normal = |deviation: f64| Spread::Normal { deviation };
        Some(match *self {
            Self::Given { .. } => return None,
            Self::Uniform { scale, fan_in: true } => Spread::Uniform { reach: scale / fan_in },
            Self::Uniform { scale, fan_in: false } => Spread::Uniform { reach: scale },
            Self::Constant { value } => Spread::Constant { value },
            _ if bias => Spread::Constant { value: 0.0 },
            Self::HeNormal { scale } => normal(scale * (2.0 / fan_in).sqrt()),
            Self::MeanField { scale } => normal(if between { scale / fan_in.sqrt() } else { scale }),
            Self::Normal { deviation } => normal(deviation),
        })
    }

    /// Every initialiser with its formula.
    pub fn catalogue() -> Vec<CatalogueEntry> {
        let entry = |key, formula, reference| CatalogueEntry { key, formula, reference };
        vec![
            entry("uniform", "w ~ U[−scale/fan_in, scale/fan_in], or U[−scale, scale]", "A.expTS"),
            entry("he-normal", "w ~ N(0, scale²·2/fan_in), biases 0", "D.exp"),
            entry(
                "mean-field",
                "w ~ N(0, scale²), N(0, scale²/fan_in) between first and last layer, with an output factor 1/width",
                "C.exp2L",
            ),
            entry("normal", "w ~ N(0, deviation²)", "custom"),
            entry("constant", "w = value", "B.ex2, B.thm1"),
            entry("given", "w = values", "B.gd2.1"),
        ]
    }
}
