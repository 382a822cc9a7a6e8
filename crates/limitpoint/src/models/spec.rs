//! The description of a model, as files, the command line and Python speak it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Activation, Architecture, Layer, LayerList, MarginMap, ModelError, Shape};
use crate::catalogue::CatalogueEntry;
use crate::data::Dataset;

/// Where a network has biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Biases {
    /// Nowhere.
    #[default]
    None,
    /// In the first layer only; the network stays homogeneous.
    First,
    /// In every layer; the network is not homogeneous.
    All,
}

impl Biases {
    /// Whether the layer of this number, from 0, has one.
    pub fn at(self, number: usize) -> bool {
        self == Self::All || (self == Self::First && number == 0)
    }
}

/// The factor in front of the output.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputScale {
    /// 1.
    #[default]
    One,
    /// 1 / (width of the last hidden layer), as in C.exp2L.
    MeanField,
    /// Any other positive factor.
    Factor(f64),
}

/// A model without its inputs.
///
/// ```
/// use limitpoint::models::{ModelSpec, Shape};
/// let spec: ModelSpec = serde_json::from_str(r#"{"network": {"widths": [3], "activation": "relu"}}"#).unwrap();
/// let network = spec.architecture(&Shape::vector(2), 1)?;
/// assert_eq!(network.layout().len(), 3 * 2 + 3);
/// assert_eq!(network.homogeneity().unwrap().degree, 2.0);
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ModelSpec {
    /// Φ(x) = W x; binary, multi-class or regression by the targets.
    Linear,
    /// A fully connected network.
    Network {
        /// Widths of the hidden layers, from the input on.
        widths: Vec<usize>,
        /// The function between layers.
        #[serde(default)]
        activation: Activation,
        /// Where there are biases.
        #[serde(default)]
        biases: Biases,
        /// Layers, from 1, that keep their initial weights.
        #[serde(default)]
        frozen: Vec<usize>,
        /// The factor in front of the output.
        #[serde(default)]
        output_scale: OutputScale,
    },
    /// Convolutions, pools and dense layers on images.
    Image {
        /// The layers, from the image on; the last dense one has as many units as the targets need.
        layers: LayerList,
        /// The function after every convolution and every dense layer but the last.
        #[serde(default)]
        activation: Activation,
        /// Where there are biases.
        #[serde(default)]
        biases: Biases,
        /// Layers with parameters, from 1, that keep their initial weights.
        #[serde(default)]
        frozen: Vec<usize>,
    },
    /// Φ(x) = ⟨θ₁ ⊙ … ⊙ θ_m, x⟩.
    Diagonal {
        /// Number of factors m.
        #[serde(default = "two")]
        factors: usize,
    },
    /// Φ(X) = ⟨W, X⟩ for matrix-shaped examples, W a matrix or a product of matrices.
    Matrix {
        /// Rows of an example; its columns follow from its size.
        rows: usize,
        /// W = W₁⋯W_m; 1 is the linear model.
        #[serde(default = "single")]
        factors: usize,
        /// The inner dimension; the shorter side of an example if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        width: Option<usize>,
        /// W = UUᵀ instead of a product of `factors`.
        #[serde(default)]
        symmetric: bool,
    },
    /// Φ(x) = x₁ ρ^L (1 − f(θ/ρ)) of three parameters, whose direction circles for ever.
    MexicanHat {
        /// The degree L > 0.
        #[serde(default = "degree_one")]
        degree: f64,
        /// 3, or 4 as the paper prints it.
        #[serde(default = "three")]
        exponent: u32,
    },
}

fn degree_one() -> f64 {
    1.0
}

fn three() -> u32 {
    3
}

fn single() -> usize {
    1
}

fn two() -> usize {
    2
}

impl ModelSpec {
    /// A network with these widths, ReLU, no biases.
    pub fn relu(widths: &[usize]) -> Self {
        Self::network(widths, Activation::Relu)
    }

    /// A network with these widths and activation, no biases.
    pub fn network(widths: &[usize], activation: Activation) -> Self {
        Self::Network {
            widths: widths.to_vec(),
            activation,
            biases: Biases::None,
            frozen: Vec::new(),
            output_scale: OutputScale::One,
        }
    }

    /// Whether scores are linear in the weights, so that exact optima are convex problems in them.
    ///
    /// ```
    /// use limitpoint::models::ModelSpec;
    /// assert!(ModelSpec::Linear.is_linear() && !ModelSpec::relu(&[3]).is_linear());
    /// ```
    pub fn is_linear(&self) -> bool {
        matches!(self, Self::Linear | Self::Matrix { factors: 1, symmetric: false, .. })
    }

    /// The layers of the model for examples of this shape, its settings checked.
    pub fn architecture(&self, inputs: &Shape, outputs: usize) -> Result<Architecture, ModelError> {
        let single = |model, layer| {
            if outputs == 1 { Ok(vec![layer]) } else { Err(ModelError::Outputs { model, outputs }) }
        };
        let layers = match *self {
            Self::Linear => vec![Layer::dense(outputs)],
            Self::Diagonal { factors } => single("a diagonal network", Layer::Diagonal { factors })?,
            Self::Matrix { rows, factors, width, symmetric } => {
                let columns = inputs.len().checked_div(rows).unwrap_or(0);
                let width = width.unwrap_or(rows.min(columns).max(1));
                single("a matrix model", Layer::MatrixProduct { rows, factors, width, symmetric })?
            }
            Self::MexicanHat { degree, exponent } => single("a Mexican hat", Layer::MexicanHat { degree, exponent })?,
            Self::Image { layers: ref list, activation, biases, ref frozen } => {
                let count = list.count();
                if let Some(&layer) = frozen.iter().find(|layer| !(1..=count).contains(*layer)) {
                    return Err(ModelError::FrozenLayer { layer, layers: count });
                }
                let frozen = |number: usize| frozen.contains(&(number + 1));
                list.layers(outputs, activation, |number| biases.at(number), frozen)
            }
            Self::Network { ref widths, activation, biases, ref frozen, .. } => {
                let count = widths.len() + 1;
                if let Some(&layer) = frozen.iter().find(|layer| !(1..=count).contains(*layer)) {
                    return Err(ModelError::FrozenLayer { layer, layers: count });
                }
                let mut layers = Vec::new();
                if inputs.0.len() > 1 {
                    layers.push(Layer::Flatten);
                }
                for (l, units) in widths.iter().copied().chain([outputs]).enumerate() {
                    layers.push(Layer::Dense { units, bias: biases.at(l), frozen: frozen.contains(&(l + 1)) });
                    layers.extend((l + 1 < count).then_some(Layer::Activation(activation)));
                }
                let factor = self.output_factor();
                layers.extend((factor != 1.0).then_some(Layer::Scale(factor)));
                layers
            }
        };
        Architecture::new(inputs.clone(), layers)
    }

    /// The layers of the model for these examples and their targets. Networks of images see the shape of the examples,
    /// rows × columns as an image of one channel; all others see a vector.
    pub fn architecture_on(&self, data: &Dataset) -> Result<Architecture, ModelError> {
        let shape = match (self, &data.input_shape[..]) {
            (Self::Image { .. }, [height, width]) => Shape::image(1, *height, *width),
            (Self::Image { .. }, sides) => Shape(sides.to_vec()),
            _ => Shape::vector(data.dimension()),
        };
        self.architecture(&shape, MarginMap::new(&data.targets).outputs())
    }

    /// The factor in front of the output; 1 for models without one.
    pub fn output_factor(&self) -> f64 {
        match self {
            Self::Network { output_scale: OutputScale::MeanField, widths, .. } => {
                1.0 / widths.last().copied().unwrap_or(1) as f64
            }
            Self::Network { output_scale: OutputScale::Factor(factor), .. } => *factor,
            _ => 1.0,
        }
    }

    /// The name used in files.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Network { .. } => "network",
            Self::Image { .. } => "image",
            Self::Diagonal { .. } => "diagonal",
            Self::Matrix { .. } => "matrix",
            Self::MexicanHat { .. } => "mexican-hat",
        }
    }

    /// Every model with its formula.
    pub fn catalogue() -> Vec<CatalogueEntry> {
        let entry = |key, formula, reference| CatalogueEntry { key, formula, reference };
        vec![
            entry("linear", "Φ(x) = W x, degree 1; also on sparse inputs", "B"),
            entry("network", "Φ(x) = s·W_L σ(… σ(W_1 x)), degree Σ_l Π_{m≥l} deg σ_m", "A.eq13, C.lem3.1, D.defG1"),
            entry(
                "image",
                "convolutions, pools and dense layers, such as mnist-cnn and vgg16; a pool is 1-homogeneous",
                "C.expVGG, D.fig1",
            ),
            entry("diagonal", "Φ(x) = ⟨θ₁ ⊙ … ⊙ θ_m, x⟩, degree m", "C.reparam"),
            entry("matrix", "Φ(X) = ⟨W, X⟩ with W, W₁⋯W_m or UUᵀ, degree 1, m or 2", "B.thm5, B.eq15-19, B.thm7"),
            entry("mexican-hat", "Φ(x) = x₁ ρ^L (1 − f(θ/ρ)), θ in space, f the Mexican hat, degree L", "D.thmI1"),
        ]
    }

    /// One of each kind and of each structural option, for the law tests.
    pub fn examples() -> Vec<Self> {
        let with = |activation, biases, frozen: &[usize], output_scale| Self::Network {
            widths: vec![5, 4],
            activation,
            biases,
            frozen: frozen.to_vec(),
            output_scale,
        };
        let mut specs = vec![
            Self::Linear,
            Self::Diagonal { factors: 2 },
            Self::Diagonal { factors: 3 },
            Self::Matrix { rows: 2, factors: 1, width: None, symmetric: false },
            Self::Matrix { rows: 2, factors: 2, width: Some(3), symmetric: false },
            Self::Matrix { rows: 2, factors: 4, width: None, symmetric: false },
            Self::Matrix { rows: 2, factors: 1, width: Some(3), symmetric: true },
            Self::MexicanHat { degree: 2.0, exponent: 3 },
            Self::MexicanHat { degree: 0.5, exponent: 4 },
            Self::relu(&[33]),
            with(Activation::Relu, Biases::First, &[], OutputScale::One),
            with(Activation::Relu, Biases::All, &[], OutputScale::One),
            with(Activation::Relu, Biases::None, &[1], OutputScale::One),
            with(Activation::Relu, Biases::First, &[1, 2], OutputScale::One),
            with(Activation::ReluPower { power: 2 }, Biases::None, &[3], OutputScale::MeanField),
            with(Activation::Identity, Biases::First, &[2], OutputScale::Factor(0.3)),
        ];
        specs.extend(Activation::examples().into_iter().map(|activation| Self::network(&[6], activation)));
        specs.extend(Activation::examples().into_iter().map(|activation| Self::network(&[7, 3, 5], activation)));
        specs
    }
}
