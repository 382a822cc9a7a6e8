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
        let (mut stages, mut scale): (Vec<Stage>, f64) = (Vec::new(), 1.0);
        let (mut offset, mut activated) = (0, true);
        for (index, (layer, before)) in architecture.with_inputs().enumerate() {
            let refuse = |what: &str, remedy| {
                let (engine, layer, what) = ("the CPU engine", index + 1, what.to_owned());
                Err(ModelError::Unsupported { engine, layer, what, remedy })
            };
            match *layer {
                Layer::Flatten => {}
                Layer::Dense { units, bias, frozen } if scale == 1.0 => {
                    let (inputs, weight) = (before.len(), offset);
                    let end = weight + inputs * units;
                    offset = end + if bias { units } else { 0 };
                    let bias = bias.then_some(end);
                    stages.push(Stage {
                        inputs,
                        outputs: units,
                        weight,
                        bias,
                        frozen,
                        activation: Activation::Identity,
                    });
                    activated = false;
                }
                Layer::Activation(activation) if !activated && scale == 1.0 => {
                    if let Some(stage) = stages.last_mut() {
                        stage.activation = activation;
                    }
                    activated = true;
                }
                Layer::Scale(factor) => scale *= factor,
                Layer::Dense { .. } | Layer::Activation(_) if scale != 1.0 => {
                    return refuse("after a scale", "scale the output instead");
                }
                Layer::Activation(_) => return refuse("an activation without a dense layer before it", "leave it out"),
                ref other => return refuse(&format!("{other:?}"), "use it alone"),
            }
        }
        match stages.last() {
            Some(last) if last.activation == Activation::Identity => Ok(Self { stages, scale }),
            Some(_) => Err(ModelError::Unsupported {
                engine: "the CPU engine",
                layer: architecture.layers().len(),
                what: "an activation after the last dense layer".into(),
                remedy: "end with a dense layer",
            }),
            None => Err(ModelError::Unsupported {
                engine: "the CPU engine",
                layer: 1,
                what: "which has no dense layer".into(),
                remedy: "add one",
            }),
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
