//! What a model is, without data: its layers, and everything that follows from them.

use serde::{Deserialize, Serialize};

use super::{Activation, DegreeGroup, Homogeneity, Layer, ModelError, Shape};
use crate::params::{Block, ParamLayout};

/// The layers of a model, from the shape of an example to its scores.
///
/// Pure: from it, without data and without building anything, come the layout of the parameters, the degrees of
/// homogeneity, cost, size and bounds. Engines bind it to inputs.
///
/// ```
/// use limitpoint::models::{Activation, Architecture, Layer, Shape};
/// let layers = vec![Layer::dense(3), Layer::Activation(Activation::Quadratic), Layer::dense(1)];
/// let network = Architecture::new(Shape::vector(2), layers)?;
/// assert_eq!((network.layout().len(), network.outputs(), network.cost()), (9, 1, 9));
/// let homogeneity = network.homogeneity().unwrap();
/// assert_eq!(homogeneity.groups.iter().map(|group| group.degree).collect::<Vec<_>>(), [2.0, 1.0]);
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Architecture {
    /// The shape of an example.
    input_shape: Shape,
    /// From the inputs on.
    layers: Vec<Layer>,
    /// The shape after every layer.
    shapes: Vec<Shape>,
    layout: ParamLayout,
}

impl Architecture {
    /// Checks that every layer takes what the one before it gives, and lays the parameters out.
    pub fn new(input_shape: Shape, layers: Vec<Layer>) -> Result<Self, ModelError> {
        let (mut shapes, mut blocks): (Vec<Shape>, Vec<Block>) = (Vec::new(), Vec::new());
        let mut number = 0;
        for layer in &layers {
            layer.check(number)?;
            let before = shapes.last().unwrap_or(&input_shape);
            let after = layer.shape_after(before)?;
            let own = layer.blocks(number + 1, before);
            number += usize::from(!own.is_empty());
            blocks.extend(own);
            shapes.push(after);
        }
        if !blocks.is_empty() && blocks.iter().all(|block| block.frozen) {
            return Err(ModelError::AllFrozen);
        }
        Ok(Self { layout: ParamLayout::of(blocks)?, input_shape, layers, shapes })
    }

    /// The shape of an example.
    pub fn input_shape(&self) -> &Shape {
        &self.input_shape
    }

    /// The layers, from the inputs on.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Every layer with the shape it gets.
    pub fn with_inputs(&self) -> impl Iterator<Item = (&Layer, &Shape)> {
        self.layers.iter().zip(std::iter::once(&self.input_shape).chain(&self.shapes))
    }

    /// Scores of an example.
    pub fn outputs(&self) -> usize {
        self.shapes.last().unwrap_or(&self.input_shape).len()
    }

    /// Names, roles and shapes of the parameters.
    pub fn layout(&self) -> &ParamLayout {
        &self.layout
    }

    /// Multiply-adds of one example on its way up; a gradient costs about three times as many.
    pub fn cost(&self) -> u128 {
        self.with_inputs().fold(0, |sum: u128, (layer, before)| sum.saturating_add(layer.cost(before)))
    }

    /// Numbers of an example that are kept between its way up and its way down.
    pub fn kept(&self) -> u128 {
        let hidden = self.with_inputs().filter(|(layer, _)| matches!(layer, Layer::Activation(_)));
        hidden.fold(0, |sum: u128, (_, before)| sum.saturating_add(before.len() as u128))
    }

    /// The product of the fixed factors.
    pub fn output_factor(&self) -> f64 {
        self.layers.iter().map(|layer| if let Layer::Scale(factor) = layer { *factor } else { 1.0 }).product()
    }

    /// The activations, from the inputs on.
    pub fn activations(&self) -> impl Iterator<Item = Activation> {
        self.layers.iter().filter_map(|layer| if let Layer::Activation(it) = layer { Some(*it) } else { None })
    }

    /// How scores grow with the trained parameters; nothing for a model that is not homogeneous.
    ///
    /// Degrees by composition: a layer's blocks have their own degree in it, times the degrees of all layers above. A
    /// bias is harmless only in the lowest trained layer, where it scales with the weights; above a trained layer it
    /// breaks homogeneity.
    pub fn homogeneity(&self) -> Option<Homogeneity> {
        let (groups, broken) = self.degrees();
        (!groups.is_empty() && !broken).then(|| Homogeneity::of_groups(groups))
    }

    /// The trained layers with their degrees, as they are without the biases that break homogeneity.
    ///
    /// ```
    /// use limitpoint::models::{Architecture, Layer, Shape};
    /// let layers = (0..2).map(|_| Layer::Dense { units: 1, bias: true, frozen: false }).collect();
    /// let network = Architecture::new(Shape::vector(2), layers)?;
    /// assert!(network.homogeneity().is_none());
    /// // weights and bias of the first layer, weights of the second
    /// let blocks: Vec<_> = network.layer_degrees().into_iter().map(|group| group.blocks).collect();
    /// assert_eq!(blocks, [vec![0, 1], vec![2]]);
    /// # Ok::<(), limitpoint::models::ModelError>(())
    /// ```
    pub fn layer_degrees(&self) -> Vec<DegreeGroup> {
        self.degrees().0
    }

    /// Trained layers with their degrees, and whether a bias breaks homogeneity.
    fn degrees(&self) -> (Vec<DegreeGroup>, bool) {
        let (mut groups, mut block, mut trained_below, mut broken) = (Vec::new(), 0, false, false);
        for (index, (layer, before)) in self.with_inputs().enumerate() {
            let own = layer.blocks(1, before);
            let mut blocks: Vec<usize> = (block..block + own.len()).collect();
            block += own.len();
            if trained_below && layer.has_bias() {
                broken = true;
                // the weights come first
                blocks.truncate(1);
            }
            if own.is_empty() || own[0].frozen {
                continue;
            }
            trained_below = true;
            let above: f64 = self.layers[index + 1..].iter().map(Layer::degree).product();
            let degree = layer.own_degree() * above;
            if matches!(layer, Layer::Dense { .. } | Layer::Convolution(_)) {
                groups.push(DegreeGroup { blocks, degree });
            } else {
                // every factor of a product scales for itself
                groups.extend(blocks.into_iter().map(|block| DegreeGroup { blocks: vec![block], degree }));
            }
        }
        (groups, broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ModelSpec;

    #[test]
    fn blocks_are_typed_and_counted_by_layers_with_parameters() {
        let layers = vec![
            Layer::Flatten,
            Layer::Dense { units: 4, bias: true, frozen: true },
            Layer::Activation(Activation::Relu),
            Layer::dense(2),
            Layer::Scale(0.5),
        ];
        let architecture = Architecture::new(Shape::image(1, 3, 2), layers).unwrap();
        let found: Vec<_> = architecture
            .layout()
            .blocks()
            .iter()
            .map(|block| (block.name.as_str(), block.layer, block.is_weight(), block.fan_in, block.frozen))
            .collect();
        let expected = [
            ("layer1.weight", 1, true, 6, true),
            ("layer1.bias", 1, false, 6, true),
            ("layer2.weight", 2, true, 4, false),
        ];
        assert_eq!(found, expected);
        assert_eq!((architecture.outputs(), architecture.kept(), architecture.output_factor()), (2, 4, 0.5));
        // the bias lies below every trained layer
        assert_eq!(architecture.homogeneity().unwrap().degree, 1.0);
    }

    #[test]
    fn layouts_of_every_model_need_no_data() {
        for spec in ModelSpec::examples() {
            let architecture = spec.architecture(&Shape::vector(4), 1).unwrap();
            assert!(!architecture.layout().is_empty() && architecture.outputs() == 1, "{spec:?}");
        }
    }
}
