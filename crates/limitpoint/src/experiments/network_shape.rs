//! Shapes of training problems that nobody tuned for: drawn at random, or written down.

use std::fmt;
use std::str::FromStr;

use super::WorkloadSpec;
use crate::engine::Precision;
use crate::losses::LossSpec;
use crate::memory::{TooLarge, bytes, require};
use crate::models::{ModelSpec, Shape};
use crate::norms::NormSpec;
use crate::numeric::{RandomStream, Streams};
use crate::optimisers::OptimiserSpec;
use crate::schedules::ScheduleSpec;

/// Examples, inputs, hidden layers, outputs and precision of a network that is trained on all examples at every step.
///
/// Written `EXAMPLESxINPUTS:WIDTHS:OUTPUTS:PRECISION`, with hyphens between the widths of the hidden layers.
///
/// ```
/// use limitpoint::experiments::NetworkShape;
/// let shape: NetworkShape = "20000x30:300-300:1:f64".parse()?;
/// assert_eq!((shape.examples, shape.inputs, shape.widths.as_slice(), shape.outputs), (20_000, 30, &[300, 300][..], 1));
/// assert_eq!(shape.to_string(), "20000x30:300-300:1:f64");
/// assert_eq!(shape.workload().multiply_adds(), 20_000.0 * (2.0 * 9e3 + 3.0 * 9e4 + 3.0 * 300.0));
/// # Ok::<(), limitpoint::experiments::ShapeError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkShape {
    /// Examples.
    pub examples: usize,
    /// Inputs of the first layer.
    pub inputs: usize,
    /// Units of the hidden layers.
    pub widths: Vec<usize>,
    /// Scores per example: one for labels ±1, otherwise one for every class.
    pub outputs: usize,
    /// Precision of the products.
    pub precision: Precision,
}

/// A text that is no shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no shape: {part}; write EXAMPLESxINPUTS:WIDTHS:OUTPUTS:PRECISION, such as 20000x30:300-300:1:f64")]
pub struct ShapeError {
    /// What was written.
    pub text: String,
    /// Which part of it is wrong.
    pub part: String,
}

/// Shapes drawn from a seed, and how many were left out because a step would take too long or too much memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawnShapes {
    /// Those to measure.
    pub shapes: Vec<NetworkShape>,
    /// Shapes left out on the way.
    pub left_out: usize,
}

impl NetworkShape {
    /// The first `count` shapes of a seed whose steps take at most `most` multiply–adds and fit into memory; fewer if a
    /// thousand times as many are beyond that.
    ///
    /// Sizes are uniform in their logarithm: examples from 50 to 20,000, inputs from 2 to 1000, one to four hidden
    /// layers of 16 to 2048 units. One output or ten, and either precision, are equally likely.
    ///
    /// ```
    /// use limitpoint::experiments::NetworkShape;
    /// let drawn = NetworkShape::draw(1, 3, 1e9);
    /// assert_eq!(drawn.shapes.len(), 3);
    /// assert!(drawn.shapes.iter().all(|shape| shape.workload().multiply_adds() <= 1e9));
    /// ```
    pub fn draw(seed: u64, count: usize, most: f64) -> DrawnShapes {
        let mut stream = Streams::new(seed).stream("shapes");
        let mut drawn = DrawnShapes { shapes: Vec::new(), left_out: 0 };
        // fewer where hardly any shape is within the limit
        while drawn.shapes.len() < count && drawn.left_out < 1000 * count {
            let shape = Self::one(&mut stream);
            if shape.workload().multiply_adds() <= most && shape.require().is_ok() {
                drawn.shapes.push(shape);
            } else {
                drawn.left_out += 1;
            }
        }
        drawn
    }

    fn one(stream: &mut RandomStream) -> Self {
        let mut size = |low: f64, high: f64| stream.uniform_in(low.ln(), (high + 1.0).ln()).exp() as usize;
        let (examples, inputs) = (size(50.0, 20_000.0), size(2.0, 1000.0));
        let mut widths: Vec<usize> = (0..4).map(|_| size(16.0, 2048.0)).collect();
        widths.truncate(1 + stream.below(4));
        let outputs = [1, 10][stream.below(2)];
        let precision = [Precision::F64, Precision::F32][stream.below(2)];
        Self { examples, inputs, widths, outputs, precision }
    }

    /// Refuses a shape whose training, here and in an engine that keeps every layer's values, does not fit into memory.
    pub fn require(&self) -> Result<(), TooLarge> {
        let units = self.widths.iter().fold(self.inputs, |sum, width| sum.saturating_add(*width));
        let kept = bytes(&[self.examples, units], 8).saturating_mul(6);
        let architecture = ModelSpec::relu(&self.widths).architecture(&Shape::vector(self.inputs), self.outputs);
        let model = architecture.map_or(0, |architecture| architecture.footprint(self.examples).bytes);
        let needed = kept.saturating_add(model.saturating_mul(4));
        require(format!("training of {self}"), needed, "choose a smaller shape")
    }

    /// Its training problem: labels ±1, the exponential loss and steps c/L for one output, random classes and
    /// cross-entropy for more. The step size falls with the size of the network, so that the loss falls in all of them.
    pub fn workload(&self) -> WorkloadSpec {
        let units = self.widths.iter().fold(self.inputs as f64, |sum, width| sum + *width as f64);
        let rate = 0.2 / units;
        let two_sided = WorkloadSpec::two_sided(&self.to_string(), self.examples, self.inputs, &self.widths, rate);
        if self.outputs == 1 {
            return two_sided;
        }
        WorkloadSpec {
            outputs: self.outputs,
            loss: LossSpec::CrossEntropy,
            optimiser: OptimiserSpec::steepest(NormSpec::L2),
            schedule: ScheduleSpec::Constant { rate },
            ..two_sided
        }
    }
}

impl fmt::Display for NetworkShape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let widths: Vec<String> = self.widths.iter().map(usize::to_string).collect();
        let precision = match self.precision {
            Precision::F64 => "f64",
            Precision::F32 => "f32",
        };
        write!(f, "{}x{}:{}:{}:{precision}", self.examples, self.inputs, widths.join("-"), self.outputs)
    }
}

impl FromStr for NetworkShape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        let wrong = |part: String| ShapeError { text: text.to_owned(), part };
        let number = |what: &str, part: &str| {
            let number = part.parse::<usize>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| wrong(format!("{what} is '{part}', but must be a whole number, at least 1")))
        };
        let parts: Vec<&str> = text.split(':').collect();
        let [data, widths, outputs, precision] = parts[..] else {
            return Err(wrong(format!("it has {} parts between colons, but must have 4", parts.len())));
        };
        let Some((examples, inputs)) = data.split_once('x') else {
            return Err(wrong(format!("there is no 'x' between examples and inputs in '{data}'")));
        };
        Ok(Self {
            examples: number("the number of examples", examples)?,
            inputs: number("the number of inputs", inputs)?,
            widths: widths.split('-').map(|width| number("a width", width)).collect::<Result<_, _>>()?,
            outputs: number("the number of outputs", outputs)?,
            precision: match precision {
                "f64" => Precision::F64,
                "f32" => Precision::F32,
                other => return Err(wrong(format!("the precision is '{other}', but must be f64 or f32"))),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Process;

    #[test]
    fn drawn_shapes_keep_their_ranges_and_their_seed() {
        let drawn = NetworkShape::draw(7, 200, 3e10);
        assert_eq!(drawn, NetworkShape::draw(7, 200, 3e10));
        assert_ne!(drawn.shapes, NetworkShape::draw(8, 200, 3e10).shapes);
        assert!(drawn.left_out > 0, "some shapes are beyond the limit");
        for shape in &drawn.shapes {
            assert!((50..=20_000).contains(&shape.examples) && (2..=1000).contains(&shape.inputs), "{shape}");
            assert!((1..=4).contains(&shape.widths.len()), "{shape}");
            assert!(shape.widths.iter().all(|width| (16..=2048).contains(width)), "{shape}");
            assert_eq!(shape.to_string().parse().as_ref(), Ok(shape));
        }
        for outputs in [1, 10] {
            for precision in [Precision::F64, Precision::F32] {
                let alike = |shape: &&NetworkShape| shape.outputs == outputs && shape.precision == precision;
                assert!(drawn.shapes.iter().filter(alike).count() > 20, "{outputs} {precision:?}");
            }
        }
    }

    #[test]
    fn texts_that_are_no_shapes_are_refused_with_the_part_that_is_wrong() {
        for (text, part) in [
            ("", "1 parts"),
            ("20x3:4:1", "3 parts"),
            ("20:4:1:f64", "no 'x'"),
            ("0x3:4:1:f64", "examples is '0'"),
            ("20x-3:4:1:f64", "inputs is '-3'"),
            ("20x3::1:f64", "a width is ''"),
            ("20x3:4-:1:f64", "a width is ''"),
            ("20x3:4:0:f64", "outputs is '0'"),
            ("20x3:4:1:f16", "'f16'"),
            ("99999999999999999999999x3:4:1:f64", "examples"),
        ] {
            let error = text.parse::<NetworkShape>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("20000x30:300-300:1:f64"), "{text}: {error}");
        }
        let huge: NetworkShape = format!("{0}x{0}:{0}:1:f64", usize::MAX).parse().unwrap();
        assert!(huge.require().unwrap_err().to_string().contains("choose a smaller shape"));
    }

    /// Otherwise engines would agree about the loss without having moved.
    #[test]
    fn the_loss_falls_in_every_drawn_problem() {
        for shape in NetworkShape::draw(3, 12, 1e7).shapes {
            let spec = shape.workload();
            let mut descent = spec.build().start(1, shape.precision).unwrap();
            let before = descent.log_loss();
            for _ in 0..spec.chunk() {
                descent.advance().unwrap();
            }
            assert!(descent.log_loss() < before - 1e-3, "{shape}: {before} to {}", descent.log_loss());
        }
    }
}
