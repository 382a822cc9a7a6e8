//! What an architecture asks of a card: stages with their numbers, told without a card.

use limitpoint::models::{Activation, Architecture, Layer, ModelError, Pooling, Window};
use limitpoint::params::Role;

/// Where in the flat vector a layer with parameters has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weights {
    /// Outputs: units, or channels.
    pub rows: usize,
    /// Inputs of an output.
    pub cols: usize,
    /// First entry of the matrix.
    pub matrix: usize,
    /// First entry of the biases, if there are any.
    pub bias: Option<usize>,
    /// Whether they stay as they are.
    pub frozen: bool,
}

/// One thing that happens to all numbers of an example.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// W a + b of a vector.
    Dense(Weights),
    /// The same at every place of an image.
    Convolution(Weights, Window),
    /// A function of the largest number of every window, or of the mean: kind and slope, as in a curve.
    Pool { window: Window, channels: usize, largest: bool, then: (i32, f64) },
    /// A function of every number, as `activate` of the kernels counts them.
    Curve { kind: i32, slope: f64, exponent: i32 },
    /// From an image, channel by channel, to a vector, example by example.
    Flatten { channels: usize, plane: usize },
}

/// A stage, and the numbers of an example before and after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stage {
    pub kind: Kind,
    pub before: usize,
    pub after: usize,
}

impl Stage {
    /// Numbers of the columns of an example.
    pub fn columns(&self) -> usize {
        match &self.kind {
            Kind::Convolution(weights, window) => weights.cols * places(window),
            _ => 0,
        }
    }

    /// Its parameters, if it has any.
    pub fn weights(&self) -> Option<&Weights> {
        match &self.kind {
            Kind::Dense(weights) | Kind::Convolution(weights, _) => Some(weights),
            _ => None,
        }
    }
}

/// Most pieces in which the gradient of a bias is summed: one block alone would take longer than a layer's products.
pub(crate) const BIAS_PIECES: usize = 64;

/// Signals of one piece, where a bias has so many. It decides the order of the sum.
pub(crate) fn bias_piece(signals: usize) -> usize {
    signals.div_ceil(BIAS_PIECES).max(4096)
}

/// Places of a window.
pub(crate) fn places(window: &Window) -> usize {
    window.after[0] * window.after[1]
}

/// The stages of an architecture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    /// Channels and pixels of an example; one channel for a vector.
    pub input: [usize; 2],
    pub stages: Vec<Stage>,
    /// The lowest stage that is trained: nothing is pulled back below it.
    pub lowest: usize,
}

/// Numbers that are held on the card for the examples of one pass, at most: 8 GiB in 64 bits. It decides how many examples go
/// through at once, and with it the order of sums; so it is the same for every card.
const AT_ONCE: usize = 1 << 30;
/// Most rows of a kernel's grid: columns have one for every channel, products one for every tile of examples.
const ROWS: usize = 65_535;
/// Examples of a tile.
const TILE: usize = 128;

impl Plan {
    /// The stages, or the layer that a card does not compute.
    pub fn of(architecture: &Architecture) -> Result<Self, ModelError> {
        let blocks = architecture.layout().blocks();
        let of_images = architecture.layers().iter().any(Layer::is_of_images);
        let shape = &architecture.input_shape().0;
        // (channels, pixels) while numbers lie channel by channel
        let mut image = (of_images && shape.len() == 3).then(|| [shape[0], shape[1] * shape[2]]);
        let input = image.unwrap_or([1, architecture.input_shape().len()]);
        let (mut stages, mut next): (Vec<Stage>, usize) = (Vec::new(), 0);
        let mut weights = |rows: usize| {
            let matrix = &blocks[next];
            let bias = blocks.get(next + 1).filter(|block| block.role == Role::Bias);
            next += 1 + usize::from(bias.is_some());
            let frozen = matrix.frozen;
            Weights { rows, cols: matrix.cols, matrix: matrix.offset, bias: bias.map(|bias| bias.offset), frozen }
        };
        for (index, (layer, shape)) in architecture.with_inputs().enumerate() {
            let before = shape.len();
            let refuse = |what: &str| ModelError::Unsupported {
                engine: "the card",
                layer: index + 1,
                what: what.to_owned(),
                remedy: "leave --device out: the CPU computes it",
            };
            if matches!(layer, Layer::Dense { .. } | Layer::Flatten)
                && let Some([channels, plane]) = image.take()
            {
                stages.push(Stage { kind: Kind::Flatten { channels, plane }, before, after: before });
            }
            let kind = match layer {
                Layer::Flatten => continue,
                Layer::Dense { units, .. } => Kind::Dense(weights(*units)),
                Layer::Convolution(convolution) => {
                    let window = convolution.window(shape)?;
                    let weights = weights(convolution.channels);
                    if shape.0[0] > ROWS {
                        return Err(refuse(&format!("a convolution over {} channels", shape.0[0])));
                    }
                    image = Some([convolution.channels, places(&window)]);
                    Kind::Convolution(weights, window)
                }
                Layer::Pool(pool) => {
                    let (window, channels) = (pool.window(shape)?, shape.0[0]);
                    image = Some([channels, places(&window)]);
                    Kind::Pool { window, channels, largest: pool.pooling == Pooling::Max, then: NOTHING }
                }
                Layer::Activation(Activation::Identity) => continue,
                Layer::Activation(activation) => curve(*activation),
                Layer::Scale(factor) => Kind::Curve { kind: 3, slope: *factor, exponent: 0 },
                Layer::Diagonal { .. } => return Err(refuse("a product of diagonal factors")),
                Layer::MatrixProduct { .. } => return Err(refuse("a product of matrices")),
                Layer::MexicanHat { .. } => return Err(refuse("a Mexican hat")),
            };
            stages.push(Stage { kind, before, after: layer.shape_after(shape)?.len() });
        }
        if let Some([channels, plane]) = image {
            let outputs = architecture.outputs();
            stages.push(Stage { kind: Kind::Flatten { channels, plane }, before: outputs, after: outputs });
        }
        pools_first(&mut stages);
        let stages = pools_with_curves(stages);
        let trained = |stage: &Stage| stage.weights().is_some_and(|weights| !weights.frozen);
        let plan = Self { input, lowest: stages.iter().position(trained).unwrap_or(0), stages };
        if plan.numbers() > AT_ONCE {
            return Err(ModelError::Unsupported {
                engine: "the card",
                layer: architecture.layers().len(),
                what: format!("a pass of an example with {} numbers on the way, more than {AT_ONCE}", plan.numbers()),
                remedy: "leave --device out: the CPU computes it",
            });
        }
        Ok(plan)
    }

    /// Numbers that an example takes: its inputs, what every stage gives, columns, and signals on the way down.
    pub fn numbers(&self) -> usize {
        let columns = self.stages.iter().map(Stage::columns);
        let (all, largest) = (columns.clone().sum::<usize>(), columns.max().unwrap_or(0));
        let kept = self.stages.iter().map(|stage| stage.after).sum::<usize>();
        self.input[0] * self.input[1] + kept + all + largest + 3 * self.largest()
    }

    /// The most numbers of an example between two stages.
    pub fn largest(&self) -> usize {
        self.stages.iter().map(|stage| stage.before.max(stage.after)).max().unwrap_or(1)
    }

    /// Examples that go through at once.
    pub fn at_once(&self, examples: usize) -> usize {
        (AT_ONCE / self.numbers().max(1)).min(ROWS * TILE).clamp(1, examples.max(1))
    }
}

/// The function that changes nothing.
const NOTHING: (i32, f64) = (3, 1.0);

/// Makes one stage of a pool and a function behind it whose slope can be read off its value.
fn pools_with_curves(stages: Vec<Stage>) -> Vec<Stage> {
    let mut all: Vec<Stage> = Vec::new();
    for stage in stages {
        match (all.last_mut().map(|before| &mut before.kind), stage.kind) {
            (Some(Kind::Pool { then, .. }), Kind::Curve { kind: kind @ (0 | 3), slope, .. })
                if *then == NOTHING && slope >= 0.0 =>
            {
                *then = (kind, slope);
            }
            _ => all.push(stage),
        }
    }
    all
}

/// Moves pools of the largest number below functions that never fall, where there are fewer numbers: the largest σ(z) is σ of the
/// largest z, and where several are largest their slopes agree.
fn pools_first(stages: &mut [Stage]) {
    for index in 1..stages.len() {
        let [curve, pool] = [stages[index - 1], stages[index]];
        let rises = matches!(curve.kind, Kind::Curve { kind: 0 | 1 | 3, slope, .. } if slope >= 0.0);
        if rises && matches!(pool.kind, Kind::Pool { largest: true, .. }) {
            stages[index - 1] = pool;
            stages[index] = Stage { before: pool.after, after: pool.after, ..curve };
        }
    }
}

/// An activation as the kernels count them.
fn curve(activation: Activation) -> Kind {
    let of = |kind, slope, exponent| Kind::Curve { kind, slope, exponent };
    match activation {
        Activation::Identity => of(3, 1.0, 0),
        Activation::Relu => of(0, 0.0, 0),
        Activation::LeakyRelu { slope } => of(0, slope, 0),
        Activation::ReluPower { power } => of(1, 0.0, i32::try_from(power).unwrap_or(i32::MAX)),
        Activation::Quadratic => of(2, 0.0, 0),
    }
}

#[cfg(test)]
mod tests {
    use limitpoint::models::{ModelSpec, Shape};

    use super::*;

    fn plan(text: &str, shape: &Shape, outputs: usize) -> Result<Plan, ModelError> {
        let spec: ModelSpec = text.parse().unwrap();
        Plan::of(&spec.architecture(shape, outputs)?)
    }

    #[test]
    fn images_become_vectors_before_the_first_dense_layer() {
        let spec: ModelSpec =
            serde_json::from_str(r#"{"image": {"layers": "conv 3 3x3, pool 2, dense 5, dense", "biases": "all"}}"#)
                .unwrap();
        let plan = Plan::of(&spec.architecture(&Shape::image(2, 9, 8), 4).unwrap()).unwrap();
        assert_eq!((plan.input, plan.lowest), ([2, 72], 0));
        let kinds: Vec<&str> = plan
            .stages
            .iter()
            .map(|stage| match stage.kind {
                Kind::Dense(_) => "dense",
                Kind::Convolution(..) => "convolution",
                Kind::Pool { .. } => "pool",
                Kind::Curve { .. } => "curve",
                Kind::Flatten { .. } => "flatten",
            })
            .collect();
        assert_eq!(kinds, ["convolution", "pool", "flatten", "dense", "curve", "dense"]);
        assert!(matches!(plan.stages[1].kind, Kind::Pool { largest: true, then: (0, 0.0), .. }));
        let last = plan.stages.last().unwrap();
        // 3·2·9 and 3 of the kernels, 5·48 and 5 of the first dense layer, then 4·5 and 4
        let expected =
            Weights { rows: 4, cols: 5, matrix: 54 + 3 + 240 + 5, bias: Some(54 + 3 + 240 + 5 + 20), frozen: false };
        assert_eq!((last.weights(), last.before, last.after), (Some(&expected), 5, 4));
        assert_eq!(plan.stages[0].columns(), 18 * 72);
    }

    #[test]
    fn examples_go_through_in_pieces_that_no_machine_decides() {
        let spec: ModelSpec = serde_json::from_str(r#"{"image": {"layers": "vgg16"}}"#).unwrap();
        let plan = Plan::of(&spec.architecture(&Shape::image(3, 32, 32), 10).unwrap()).unwrap();
        let at_once = plan.at_once(50_000);
        assert!((100..1000).contains(&at_once) && at_once * plan.numbers() <= AT_ONCE, "{at_once}");
        assert_eq!((plan.at_once(7), plan.at_once(0)), (7, 1));
        let thin = Plan { input: [1, 1], stages: Vec::new(), lowest: 0 };
        assert_eq!(thin.at_once(usize::MAX), ROWS * TILE);
    }

    #[test]
    fn what_a_card_does_not_compute_is_said_with_its_layer() {
        let error = plan("diagonal", &Shape::vector(3), 1).unwrap_err().to_string();
        assert!(error.contains("the card cannot compute layer 1") && error.contains("--device"), "{error}");
    }
}
