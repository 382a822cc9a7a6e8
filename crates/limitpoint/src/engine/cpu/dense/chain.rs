//! An architecture as a chain of affine maps with activations between them.

use crate::models::{Activation, Architecture, Layer, ModelError};

/// One weight matrix and what surrounds it.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) struct Stage {
    pub inputs: usize,
    pub outputs: usize,
    /// Where its weights and its biases begin among the parameters; the lowest weights come first.
    pub weight: usize,
    pub bias: Option<usize>,
    pub frozen: bool,
    /// What follows it; the identity after the last.
    pub activation: Activation,
}

impl Stage {
    /// The parameter after the last weight.
    pub fn end(&self) -> usize {
        self.weight + self.inputs * self.outputs
    }
}

/// Φ(x) = s · (W_L σ(… σ(W₁ x + b₁) …) + b_L).
#[derive(Debug, Clone)]
pub(in crate::engine::cpu) struct Chain {
    pub stages: Vec<Stage>,
    /// s.
    pub scale: f64,
}

impl Chain {
    /// The chain that an architecture is, if it is one.
    pub fn of(architecture: &Architecture) -> Result<Self, ModelError> {
        let refuse = |layer, what: &str, remedy| {
            Err(ModelError::Unsupported { engine: "the CPU engine", layer, what: what.to_owned(), remedy })
        };
        let (mut stages, mut scale): (Vec<Stage>, f64) = (Vec::new(), 1.0);
        let (mut offset, mut activated) = (0, true);
        for (index, (layer, before)) in architecture.with_inputs().enumerate() {
            match *layer {
                Layer::Flatten => {}
                Layer::Dense { units: outputs, bias, frozen } if scale == 1.0 => {
                    let (inputs, weight, activation) = (before.len(), offset, Activation::Identity);
                    let end = weight + inputs * outputs;
                    offset = end + if bias { outputs } else { 0 };
                    stages.push(Stage { inputs, outputs, weight, bias: bias.then_some(end), frozen, activation });
                    activated = false;
                }
                Layer::Activation(activation) if !activated && scale == 1.0 => {
                    stages.last_mut().into_iter().for_each(|stage| stage.activation = activation);
                    activated = true;
                }
                Layer::Scale(factor) => scale *= factor,
                Layer::Dense { .. } | Layer::Activation(_) if scale != 1.0 => {
                    return refuse(index + 1, "after a scale", "scale the output instead");
                }
                Layer::Activation(_) => {
                    return refuse(index + 1, "an activation without a dense layer before it", "leave it out");
                }
                ref other => return refuse(index + 1, &format!("{other:?}"), "use it alone"),
            }
        }
        match stages.last() {
            Some(last) if last.activation == Activation::Identity => Ok(Self { stages, scale }),
            Some(_) => {
                let what = "an activation after the last dense layer";
                refuse(architecture.layers().len(), what, "end with a dense layer")
            }
            None => refuse(1, "which has no dense layer", "add one"),
        }
    }

    /// The stages with an activation after them.
    pub fn hidden(&self) -> &[Stage] {
        &self.stages[..self.stages.len() - 1]
    }

    /// The last stage.
    pub fn head(&self) -> &Stage {
        &self.stages[self.stages.len() - 1]
    }

    /// Numbers of an example.
    pub fn inputs(&self) -> usize {
        self.stages[0].inputs
    }
}
