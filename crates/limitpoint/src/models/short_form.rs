//! Models in a few words: `relu 32`, `relu 64 64`, `conv 8 3x3, pool 2, dense`, `mnist-cnn`.

use super::{Activation, LayerList, ModelSpec};

impl ModelSpec {
    /// The model that these words stand for: an activation with the widths of a dense network, or the layers of a
    /// network of images with ReLU. Nothing if they are neither.
    ///
    /// ```
    /// use limitpoint::models::ModelSpec;
    /// assert_eq!(ModelSpec::from_words("relu 32 16"), Some(Ok(ModelSpec::relu(&[32, 16]))));
    /// assert!(matches!(ModelSpec::from_words("conv 8 3x3, pool 2, dense"), Some(Ok(ModelSpec::Image { .. }))));
    /// assert!(ModelSpec::from_words("relu wide").unwrap().is_err());
    /// assert_eq!(ModelSpec::from_words("linear"), None); // a key of its own
    /// ```
    pub fn from_words(text: &str) -> Option<Result<Self, String>> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let activation = match *words.first()? {
            "relu" => Activation::Relu,
            "identity" => Activation::Identity,
            "quadratic" => Activation::Quadratic,
            "squared-relu" => Activation::ReluPower { power: 2 },
            first => {
                let listed = LayerList::names(first) || LayerList::NAMES.contains(&text);
                return listed.then(|| text.parse().map(Self::image).map_err(|error| format!("{error}")));
            }
        };
        let widths: Result<Vec<usize>, _> = words[1..].iter().map(|word| word.parse()).collect();
        Some(match widths {
            Ok(widths) if !widths.is_empty() => Ok(Self::network(&widths, activation)),
            _ => Err(format!("write '{text}' with a width for every hidden layer, as in relu 64 64")),
        })
    }

    /// A network of images with ReLU and no biases.
    pub fn image(layers: LayerList) -> Self {
        Self::Image { layers, activation: Activation::Relu, biases: super::Biases::None, frozen: Vec::new() }
    }
}
