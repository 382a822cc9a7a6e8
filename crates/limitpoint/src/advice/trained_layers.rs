//! Layers with their sizes and spreads.

use serde::Serialize;

use super::AdviceError;
use crate::models::{Activation, Homogeneity, Initialiser, ModelError, ModelSpec, Shape, Spread};
use crate::params::{ParamLayout, Role};

/// One block of trained weights.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerShape {
    /// Name of the block.
    pub name: String,
    /// Inputs of one neuron.
    pub fan_in: usize,
    /// Number of weights.
    pub weights: usize,
    /// The weights at the start.
    pub spread: Spread,
}

/// What advice needs to know of a network.
///
/// ```
/// use limitpoint::advice::TrainedLayers;
/// use limitpoint::models::{Activation, Initialiser, ModelSpec};
/// let model = ModelSpec::network(&[100], Activation::Relu);
/// let network = TrainedLayers::of_model(&model, 2, 1, &Initialiser::HeNormal { scale: 1.0 })?;
/// assert_eq!((network.parameters(), network.degree), (300, 2.0));
/// assert_eq!(network.layers[1].spread.deviation(), (2.0f64 / 100.0).sqrt());
/// # Ok::<(), limitpoint::advice::AdviceError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainedLayers {
    /// Trained layers, from the input on.
    pub layers: Vec<LayerShape>,
    /// The degree L of the margins.
    pub degree: f64,
    /// Whether every layer is trained and counts once in the degree, as behind ReLU, so that products of norms bound
    /// the output.
    pub multilinear: bool,
    /// Whether the first layer has biases, which see an input of 1.
    pub first_bias: bool,
}

impl TrainedLayers {
    /// A model with this many inputs and outputs.
    pub fn of_model(
        model: &ModelSpec,
        inputs: usize,
        outputs: usize,
        start: &Initialiser,
    ) -> Result<Self, AdviceError> {
        let architecture = model
            .architecture(&Shape::vector(inputs), outputs)
            .and_then(|architecture| {
                architecture.footprint(1).require().map(|()| architecture).map_err(ModelError::from)
            })
            .map_err(|error| AdviceError::Model(Box::new(error)))?;
        Self::of_layout(architecture.layout(), architecture.homogeneity().as_ref(), start)
    }

    /// The trained blocks of a layout.
    pub fn of_layout(
        layout: &ParamLayout,
        homogeneity: Option<&Homogeneity>,
        start: &Initialiser,
    ) -> Result<Self, AdviceError> {
        let homogeneity = homogeneity.ok_or(AdviceError::NotHomogeneous { why: "biases beyond the first layer" })?;
        let mut layers: Vec<LayerShape> = Vec::new();
        let mut first_bias = false;
        for block in layout.trainable() {
            // a bias belongs to the layer before it
            if let (true, Some(layer)) = (block.role == Role::Bias, layers.last_mut()) {
                layer.weights += block.len();
                first_bias = true;
                continue;
            }
            let spread = start.spread(layout, block).ok_or(AdviceError::NoSpread { start: "given" })?;
            layers.push(LayerShape { name: block.name.clone(), fan_in: block.fan_in, weights: block.len(), spread });
        }
        let trained = layout.blocks().iter().all(|block| !block.frozen);
        let multilinear = trained && homogeneity.pairs().all(|(_, degree)| degree == 1.0);
        Ok(Self { layers, degree: homogeneity.degree, multilinear, first_bias })
    }

    /// The same with normal weights of these deviations, one for each layer or one for all.
    pub fn with_deviations(mut self, deviations: &[f64]) -> Result<Self, AdviceError> {
        let layers = self.layers.len();
        if deviations.len() != layers && deviations.len() != 1 {
            return Err(AdviceError::Deviations { found: deviations.len(), layers });
        }
        for (layer, deviation) in self.layers.iter_mut().zip(deviations.iter().cycle()) {
            layer.spread = Spread::Normal { deviation: *deviation };
        }
        Ok(self)
    }

    /// n, the number of trained weights.
    pub fn parameters(&self) -> usize {
        self.layers.iter().map(|layer| layer.weights).sum()
    }

    /// Refuses weights without a spread.
    pub(super) fn check(&self) -> Result<(), AdviceError> {
        for layer in &self.layers {
            let value = layer.spread.deviation();
            if !(value > 0.0 && value.is_finite()) {
                return Err(AdviceError::Setting {
                    what: format!("the deviation of {}", layer.name),
                    value,
                    range: "positive and finite",
                    remedy: "give the deviation the weights start with",
                });
            }
        }
        Ok(())
    }
}

/// ReLU networks, for callers that have widths only.
impl TrainedLayers {
    /// A fully connected ReLU network.
    pub fn relu(inputs: usize, widths: &[usize], outputs: usize, start: &Initialiser) -> Result<Self, AdviceError> {
        Self::of_model(&ModelSpec::network(widths, Activation::Relu), inputs, outputs, start)
    }
}
