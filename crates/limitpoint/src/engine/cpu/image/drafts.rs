//! An architecture as layers of images below dense layers.

use super::convolution::Place;
use crate::models::{Activation, Architecture, Layer, ModelError, Pooling, Shape, Window};

/// A layer of images before its frames are known.
pub(super) struct Draft {
    pub window: Window,
    pub channels: usize,
    /// Where the parameters of a convolution lie; nothing for a pool.
    pub place: Option<Place>,
    /// How a pool sums up.
    pub pooling: Pooling,
    pub activation: Activation,
}

/// The two parts of an architecture.
pub(super) struct Drafts {
    /// Channels, height and width of the inputs.
    pub channels: usize,
    pub sides: [usize; 2],
    pub layers: Vec<Draft>,
    /// The dense layers.
    pub tail: Architecture,
    /// Where their parameters begin.
    pub dense: usize,
}

impl Drafts {
    /// Layers of images up to the first dense one.
    pub fn of(architecture: &Architecture) -> Result<Self, ModelError> {
        let (mut drafts, mut offset): (Vec<Draft>, usize) = (Vec::new(), 0);
        let [channels, height, width] = match architecture.input_shape().0[..] {
            [channels, height, width] => [channels, height, width],
            _ => [architecture.input_shape().len(), 1, 1],
        };
        let parts: Vec<_> = architecture.with_inputs().collect();
        let mut images = 0;
        for (index, (layer, before)) in parts.iter().enumerate() {
            images = index;
            let blocks = layer.blocks(1, before);
            let place = blocks.first().map(|weight| {
                let bias = (blocks.len() > 1).then_some(offset + weight.len());
                Place { weight: offset, bias, frozen: weight.frozen }
            });
            let mut draft = |window, channels, pooling| {
                drafts.push(Draft { window, channels, place, pooling, activation: Activation::Identity });
            };
            match layer {
                Layer::Convolution(layer) => draft(layer.window(before)?, layer.channels, Pooling::Max),
                Layer::Pool(layer) => draft(layer.window(before)?, before.0[0], layer.pooling),
                Layer::Activation(activation) => match drafts.last_mut() {
                    Some(draft) if draft.activation == Activation::Identity => draft.activation = *activation,
                    _ => {
                        let what = "an activation with no layer of its own".into();
                        let (engine, layer, remedy) = ("the CPU engine", index + 1, "leave it out");
                        return Err(ModelError::Unsupported { engine, layer, what, remedy });
                    }
                },
                _ => break,
            }
            offset += blocks.iter().map(|block| block.rows * block.cols).sum::<usize>();
        }
        let inputs = Shape::vector(parts[images].1.len());
        let tail = Architecture::new(inputs, architecture.layers()[images..].to_vec())?;
        Ok(Self { channels, sides: [height, width], layers: drafts, tail, dense: offset })
    }
}
