//! The layers an architecture is made of: what each does to a shape, which parameters it has, what it costs.

use serde::{Deserialize, Serialize};

use super::{Activation, Convolution, ModelError, Pool};
use crate::params::Block;

/// The sides of what passes between two layers: one number for a vector, channels × height × width for an image.
///
/// ```
/// use limitpoint::models::Shape;
/// assert_eq!(Shape::image(3, 32, 32).len(), 3072);
/// assert_eq!(Shape::image(3, 32, 32).to_string(), "3x32x32");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape(pub Vec<usize>);

impl Shape {
    /// A vector of `length` numbers.
    pub fn vector(length: usize) -> Self {
        Self(vec![length])
    }

    /// An image.
    pub fn image(channels: usize, height: usize, width: usize) -> Self {
        Self(vec![channels, height, width])
    }

    /// How many numbers it has; more than all bounds saturate.
    pub fn len(&self) -> usize {
        self.0.iter().fold(1, |product, side| product.saturating_mul(*side))
    }

    /// Whether it has no numbers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sides: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&sides.join("x"))
    }
}

/// One layer of an [`super::Architecture`].
///
/// A layer is known by four questions, each a `match` in this file: what shape it gives, which blocks of parameters it
/// has, how many multiply-adds an example costs, and what it does to the degree of homogeneity of the layers below
/// it. Whoever adds a layer answers these, and an engine that does not know it says so when it binds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// z = W a (+ b).
    Dense {
        /// Numbers it puts out.
        units: usize,
        /// Whether it adds a bias.
        bias: bool,
        /// Whether it keeps its initial parameters.
        frozen: bool,
    },
    /// Kernels that run over an image.
    Convolution(Convolution),
    /// The largest number, or the mean, of every window of an image.
    Pool(Pool),
    /// σ, number by number.
    Activation(Activation),
    /// A fixed positive factor.
    Scale(f64),
    /// An image as a vector.
    Flatten,
    /// ⟨θ₁ ⊙ … ⊙ θ_m, x⟩.
    Diagonal {
        /// Number of factors m.
        factors: usize,
    },
    /// ⟨W, X⟩ with W a matrix, a product of matrices, or UUᵀ.
    MatrixProduct {
        /// Rows of X.
        rows: usize,
        /// Factors of W.
        factors: usize,
        /// The inner dimension.
        width: usize,
        /// W = UUᵀ.
        symmetric: bool,
    },
    /// x₁ ρ^L (1 − f(θ/ρ)) of three parameters.
    MexicanHat {
        /// The degree L.
        degree: f64,
        /// 3, or 4 as the paper prints it.
        exponent: u32,
    },
}

impl Layer {
    /// A dense layer without bias.
    pub fn dense(units: usize) -> Self {
        Self::Dense { units, bias: false, frozen: false }
    }

    /// The shape it gives for the shape it gets.
    pub fn shape_after(&self, before: &Shape) -> Result<Shape, ModelError> {
        Ok(match self {
            Self::Dense { units, .. } => Shape::vector(*units),
            Self::Convolution(layer) => layer.shape_after(before)?,
            Self::Pool(layer) => layer.shape_after(before)?,
            Self::Activation(_) | Self::Scale(_) => before.clone(),
            Self::Flatten => Shape::vector(before.len()),
            Self::Diagonal { .. } | Self::MexicanHat { .. } => Shape::vector(1),
            Self::MatrixProduct { rows, symmetric, .. } => {
                let entries = before.len();
                if *rows == 0 || !entries.is_multiple_of(*rows) {
                    return Err(ModelError::MatrixRows { rows: *rows, entries });
                }
                let columns = entries / rows;
                if *symmetric && *rows != columns {
                    return Err(ModelError::NotSquare { rows: *rows, columns });
                }
                Shape::vector(1)
            }
        })
    }

    /// Its blocks of parameters, for the shape it gets; `number` counts the layers with parameters from 1 on.
    pub fn blocks(&self, number: usize, before: &Shape) -> Vec<Block> {
        let inputs = before.len();
        match *self {
            Self::Convolution(ref layer) => layer.blocks(number, before),
            Self::Dense { units, bias, frozen } => {
                let weight = Block::weight(number, units, inputs).frozen(frozen);
                let bias = bias.then(|| Block::bias(number, units, inputs).frozen(frozen));
                std::iter::once(weight).chain(bias).collect()
            }
            Self::Pool(_) | Self::Activation(_) | Self::Scale(_) | Self::Flatten => Vec::new(),
            Self::Diagonal { factors } => {
                (1..=factors).map(|m| Block::part(&format!("factor{m}"), inputs, 1)).collect()
            }
            Self::MatrixProduct { rows, width, symmetric: true, .. } => vec![Block::part("factor", rows, width)],
            Self::MatrixProduct { factors: 1, rows, .. } => vec![Block::part("weight", rows, inputs / rows)],
            Self::MatrixProduct { rows, factors, width, .. } => (1..=factors)
                .map(|i| {
                    let (above, below) =
                        (if i == 1 { rows } else { width }, if i == factors { inputs / rows } else { width });
                    Block::part(&format!("factor{i}"), above, below)
                })
                .collect(),
            Self::MexicanHat { .. } => vec![Block::part("point", 1, 3)],
        }
    }

    /// Multiply-adds that an example costs on its way up, for the shape it gets.
    pub fn cost(&self, before: &Shape) -> u128 {
        let inputs = before.len() as u128;
        match *self {
            Self::Dense { units, .. } => inputs.saturating_mul(units as u128),
            Self::Convolution(ref layer) => layer.cost(before),
            Self::Pool(_) | Self::Activation(_) | Self::Scale(_) | Self::Flatten => 0,
            Self::Diagonal { .. } | Self::MatrixProduct { .. } => inputs,
            Self::MexicanHat { .. } => 1,
        }
    }

    /// How many times longer its output can be than its input, in ℓ2, for weights of length 1.
    pub fn stretch(&self) -> f64 {
        match self {
            Self::Convolution(layer) => layer.meetings().sqrt(),
            Self::Pool(layer) => layer.stretch(),
            _ => 1.0,
        }
    }

    /// Numbers that one bias is added to, for the shape it gets.
    pub fn places(&self, before: &Shape) -> usize {
        match self {
            Self::Convolution(layer) => layer.window(before).map_or(1, |window| window.after[0] * window.after[1]),
            _ => 1,
        }
    }

    /// The degree p with which its output grows with its input: σ(c a) = cᵖ σ(a) for c > 0.
    pub fn degree(&self) -> f64 {
        match self {
            Self::Activation(activation) => f64::from(activation.degree()),
            _ => 1.0,
        }
    }

    /// The degree with which its output grows with each of its own blocks; 0 for a layer without parameters.
    pub fn own_degree(&self) -> f64 {
        match *self {
            Self::Pool(_) | Self::Activation(_) | Self::Scale(_) | Self::Flatten => 0.0,
            Self::MatrixProduct { symmetric: true, .. } => 2.0,
            Self::MexicanHat { degree, .. } => degree,
            Self::Dense { .. } | Self::Convolution(_) | Self::Diagonal { .. } | Self::MatrixProduct { .. } => 1.0,
        }
    }

    /// Whether it reads images.
    pub fn is_of_images(&self) -> bool {
        matches!(self, Self::Convolution(_) | Self::Pool(_))
    }

    /// Whether it has biases.
    pub fn has_bias(&self) -> bool {
        matches!(self, Self::Dense { bias: true, .. } | Self::Convolution(Convolution { bias: true, .. }))
    }

    /// What is wrong with its settings, if anything; `hidden` counts the dense layers below it.
    pub(super) fn check(&self, hidden: usize) -> Result<(), ModelError> {
        let out_of_range = |what, value, range| Err(ModelError::OutOfRange { what, value, range });
        match *self {
            Self::Dense { units: 0, .. } | Self::Convolution(Convolution { channels: 0, .. }) => {
                Err(ModelError::ZeroWidth { layer: hidden + 1 })
            }
            Self::Activation(activation) => activation.problem().map_or(Ok(()), |it| Err(ModelError::Activation(it))),
            Self::Scale(value) if !(value > 0.0 && value.is_finite()) => {
                out_of_range("the output factor", value, "positive and finite")
            }
            Self::Diagonal { factors } | Self::MatrixProduct { factors, .. } if !(1..=16).contains(&factors) => {
                out_of_range("the number of factors", factors as f64, "1 to 16")
            }
            Self::MatrixProduct { width: 0, .. } => out_of_range("the width", 0.0, "at least 1"),
            Self::MexicanHat { degree, .. } if !(degree > 0.0 && degree.is_finite()) => {
                out_of_range("the degree of the hat", degree, "positive and finite")
            }
            Self::MexicanHat { exponent, .. } if !(3..=4).contains(&exponent) => {
                out_of_range("the exponent of the hat", f64::from(exponent), "3, or 4 as the paper prints it")
            }
            _ => Ok(()),
        }
    }
}
