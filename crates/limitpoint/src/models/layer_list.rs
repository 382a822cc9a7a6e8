//! The layers of a network of images, as one line of text.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Activation, Convolution, Layer, Padding, Pool, Pooling};

/// One layer in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedLayer {
    /// `conv 32 5x5`, `conv 64 3x3 stride 2 valid`, `conv 8 3 padding 2`.
    Convolution(Convolution),
    /// `pool 2`, `pool 3 stride 2`, `average 2`.
    Pool(Pool),
    /// `dense 1024`.
    Dense(usize),
}

/// The layers below the last dense one, which has as many units as the targets need and may be written as `dense`.
///
/// Every convolution and every dense layer but the last is followed by the network's activation.
///
/// ```
/// use limitpoint::models::LayerList;
/// let list: LayerList = "conv 32 5x5, pool 2, conv 64 3x3, pool 2, dense 1024, dense".parse()?;
/// assert_eq!(list, LayerList::named("mnist-cnn").unwrap());
/// assert_eq!(list.to_string(), "conv 32 5x5, pool 2, conv 64 3x3, pool 2, dense 1024, dense");
/// # Ok::<(), limitpoint::models::LayerListError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerList(pub Vec<ListedLayer>);

/// Why a text is no list of layers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{layer}' in layers: {problem}; write for example \"conv 32 5x5, pool 2, dense 100, dense\", or mnist-cnn, vgg16"
)]
pub struct LayerListError {
    /// The part of the text.
    pub layer: String,
    /// What is wrong with it.
    pub problem: String,
}

/// VGG-16 for images of 32 × 32: convolutions of 3 × 3, a pool after each group.
const VGG16: [(usize, usize); 5] = [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)];

impl LayerList {
    /// Lists with a name.
    pub const NAMES: [&'static str; 2] = ["mnist-cnn", "vgg16"];

    /// The list with this name: paper D's network for MNIST, or the VGG-16 of papers C and D for CIFAR-10.
    pub fn named(name: &str) -> Option<Self> {
        let convolution = |channels, kernel| ListedLayer::Convolution(Convolution::new(channels, kernel));
        let pool = || ListedLayer::Pool(Pool { pooling: Pooling::Max, size: 2, stride: 2 });
        match name {
            "mnist-cnn" => {
                let layers = vec![convolution(32, 5), pool(), convolution(64, 3), pool(), ListedLayer::Dense(1024)];
                Some(Self(layers))
            }
            "vgg16" => {
                let group = |(channels, count)| (0..count).map(move |_| convolution(channels, 3)).chain([pool()]);
                Some(Self(VGG16.into_iter().flat_map(group).collect()))
            }
            _ => None,
        }
    }

    /// Whether a layer in a list begins with this word.
    pub fn names(word: &str) -> bool {
        ["conv", "pool", "average", "dense"].contains(&word)
    }

    /// Layers with parameters, the last one included.
    pub fn count(&self) -> usize {
        1 + self.0.iter().filter(|layer| !matches!(layer, ListedLayer::Pool(_))).count()
    }

    /// The layers themselves: `bias` and `frozen` are asked with the number of a layer with parameters, from 0.
    pub fn layers(
        &self,
        outputs: usize,
        activation: Activation,
        bias: impl Fn(usize) -> bool,
        frozen: impl Fn(usize) -> bool,
    ) -> Vec<Layer> {
        let (mut layers, mut number) = (Vec::new(), 0);
        for listed in &self.0 {
            let layer = match listed {
                ListedLayer::Pool(pool) => {
                    layers.push(Layer::Pool(pool.clone()));
                    continue;
                }
                ListedLayer::Convolution(convolution) => Layer::Convolution(Convolution {
                    bias: bias(number),
                    frozen: frozen(number),
                    ..convolution.clone()
                }),
                ListedLayer::Dense(units) => Layer::Dense { units: *units, bias: bias(number), frozen: frozen(number) },
            };
            layers.extend([layer, Layer::Activation(activation)]);
            number += 1;
        }
        layers.push(Layer::Dense { units: outputs, bias: bias(number), frozen: frozen(number) });
        layers
    }
}

impl std::str::FromStr for LayerList {
    type Err = LayerListError;

    fn from_str(text: &str) -> Result<Self, LayerListError> {
        if let Some(list) = Self::named(text.trim()) {
            return Ok(list);
        }
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let mut layers = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let refuse = |problem: String| LayerListError { layer: (*part).to_owned(), problem };
            let words: Vec<&str> = part.split_whitespace().collect();
            let last = index + 1 == parts.len();
            match words.as_slice() {
                ["dense"] if last => break,
                ["dense"] => return Err(refuse("only the last dense layer goes without its number of units".into())),
                ["dense", units] => layers.push(ListedLayer::Dense(number(units).map_err(refuse)?)),
                ["conv", channels, kernel, options @ ..] => {
                    let mut layer = Convolution::new(number(channels).map_err(refuse)?, 1);
                    layer.kernel = sides(kernel).map_err(refuse)?;
                    read_options(options, &mut layer.stride, Some(&mut layer.padding)).map_err(refuse)?;
                    layers.push(ListedLayer::Convolution(layer));
                }
                [kind @ ("pool" | "average"), size, options @ ..] => {
                    let size = number(size).map_err(refuse)?;
                    let pooling = if *kind == "pool" { Pooling::Max } else { Pooling::Average };
                    let mut stride = size;
                    read_options(options, &mut stride, None).map_err(refuse)?;
                    layers.push(ListedLayer::Pool(Pool { pooling, size, stride }));
                }
                _ => return Err(refuse("a layer is conv, pool, average or dense with its numbers".into())),
            }
            if last {
                return Err(refuse("the last layer must be dense, with as many units as there are classes".into()));
            }
        }
        Ok(Self(layers))
    }
}

/// A number of at least 1.
fn number(word: &str) -> Result<usize, String> {
    match word.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{word} is no number of at least 1")),
    }
}

/// `5x3`, or `5` for both.
fn sides(word: &str) -> Result<[usize; 2], String> {
    match word.split_once('x') {
        Some((height, width)) => Ok([number(height)?, number(width)?]),
        None => number(word).map(|side| [side, side]),
    }
}

/// `stride 2`, `same`, `valid`, `padding 1`.
fn read_options(mut words: &[&str], stride: &mut usize, mut padding: Option<&mut Padding>) -> Result<(), String> {
    while let [word, rest @ ..] = words {
        words = match (*word, rest, &mut padding) {
            ("stride", [value, rest @ ..], _) => {
                *stride = number(value)?;
                rest
            }
            ("same", _, Some(padding)) => {
                **padding = Padding::Same;
                rest
            }
            ("valid", _, Some(padding)) => {
                **padding = Padding::Valid;
                rest
            }
            ("padding", [value, rest @ ..], Some(padding)) => {
                let zeros = value.parse().map_err(|_| format!("{value} is no number of zeros"))?;
                **padding = Padding::Zeros(zeros);
                rest
            }
            _ => return Err(format!("nothing is known of {word} here")),
        };
    }
    Ok(())
}

impl std::fmt::Display for LayerList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for layer in &self.0 {
            match layer {
                ListedLayer::Convolution(layer) => write!(f, "{layer}, ")?,
                ListedLayer::Pool(layer) => write!(f, "{layer}, ")?,
                ListedLayer::Dense(units) => write!(f, "dense {units}, ")?,
            }
        }
        f.write_str("dense")
    }
}

impl Serialize for LayerList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LayerList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for LayerList {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LayerList".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "layers from the image on: \"conv 32 5x5, pool 2, dense 100, dense\"; mnist-cnn; vgg16"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Architecture, Shape};

    #[test]
    fn lists_come_back_from_their_text() {
        for text in [
            "dense",
            "dense 3, dense",
            "conv 8 3x5 stride 2 valid, average 2 stride 1, dense",
            "conv 8 3x3 padding 2, pool 3, dense 4, dense",
        ] {
            assert_eq!(text.parse::<LayerList>().unwrap().to_string(), text);
        }
        for name in LayerList::NAMES {
            let list: LayerList = name.parse().unwrap();
            assert_eq!(list.to_string().parse::<LayerList>().unwrap(), list);
        }
    }

    #[test]
    fn what_is_no_layer_is_refused_by_its_text() {
        for (text, part) in [
            ("conv 3", "conv 3"),
            ("conv 0 3x3, dense", "conv 0 3x3"),
            ("conv 3 3x3 sideways, dense", "sideways"),
            ("pool 2", "the last layer"),
            ("dense, dense", "only the last"),
            ("pool 2 valid, dense", "valid"),
            ("", "conv, pool"),
        ] {
            let message = text.parse::<LayerList>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn vgg16_has_the_parameters_of_its_paper() {
        let layers = LayerList::named("vgg16").unwrap().layers(10, Activation::Relu, |_| true, |_| false);
        let network = Architecture::new(Shape::image(3, 32, 32), layers).unwrap();
        // 14,714,688 in thirteen convolutions with biases (Simonyan and Zisserman 2015), and 512 · 10 + 10
        assert_eq!(network.layout().len(), 14_714_688 + 5130);
        assert_eq!(network.outputs(), 10);
    }
}
