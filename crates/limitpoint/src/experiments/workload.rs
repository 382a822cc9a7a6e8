//! Fixed training problems whose speed is measured.

use crate::data::{Dataset, Targets};
use crate::driver::Descent;
use crate::engine::{Compute, Precision};
use crate::linalg::Matrix;
use crate::losses::LossSpec;
use crate::models::{Initialiser, ModelSpec};
use crate::norms::NormSpec;
use crate::numeric::{RandomStream, Streams};
use crate::objective::Reduction;
use crate::optimisers::{OptimiserSpec, Scaling};
use crate::schedules::ScheduleSpec;
use crate::training::Setup;

/// Shapes and rules of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadSpec {
    /// Name, such as `W1`.
    pub name: &'static str,
    /// Examples.
    pub examples: usize,
    /// Features.
    pub features: usize,
    /// Widths of the hidden layers (ReLU, no biases, one output).
    pub widths: Vec<usize>,
    /// The loss.
    pub loss: LossSpec,
    /// The optimiser.
    pub optimiser: OptimiserSpec,
    /// The schedule.
    pub schedule: ScheduleSpec,
}

impl WorkloadSpec {
    /// The four workloads of the speed comparison.
    ///
    /// | name | inputs | network | loss | step |
    /// |---|---|---|---|---|
    /// | W1 | 250×32 | 1024 | exponential | gradient, η = 0.02/L |
    /// | W2 | 100×784 | 128 | logistic | sign, η = 1e-4 |
    /// | W3 | 200×2 | 100 | exponential | gradient, η = 0.05/L |
    /// | W4 | 200×2 | 100-100 | exponential | gradient, η = 0.01/L |
    pub fn all() -> Vec<Self> {
        let gradient = |c: f64| {
            let schedule = ScheduleSpec::LinearBound { c, feature_bound: Some(1.0), cap: None, decay: 0.0 };
            (LossSpec::Exponential, OptimiserSpec::steepest(NormSpec::L2), schedule)
        };
        let sign = OptimiserSpec::Steepest { norm: NormSpec::Linf, scaling: Scaling::Unit, minimum_norm: false };
        let make = |name, examples, features, widths: &[usize], (loss, optimiser, schedule)| Self {
            name,
            examples,
            features,
            widths: widths.to_vec(),
            loss,
            optimiser,
            schedule,
        };
        vec![
            make("W1", 250, 32, &[1024], gradient(0.02)),
            make("W2", 100, 784, &[128], (LossSpec::Logistic, sign, ScheduleSpec::Constant { rate: 1e-4 })),
            make("W3", 200, 2, &[100], gradient(0.05)),
            make("W4", 200, 2, &[100, 100], gradient(0.01)),
        ]
    }

    /// Draws data and initial weights from seed 0.
    pub fn build(&self) -> Workload {
        let streams = Streams::new(0);
        let (mut data, mut init) = (streams.stream("data"), streams.stream("init"));
        let inputs = self.inputs(&mut data);
        let labels = (0..self.examples).map(|n| label(inputs.row(n))).collect();
        let sizes = [&[self.features], self.widths.as_slice(), &[1]].concat();
        let mut params = Vec::new();
        for pair in sizes.windows(2) {
            params.extend((0..pair[0] * pair[1]).map(|_| init.normal() / (pair[0] as f64).sqrt()));
        }
        Workload { spec: self.clone(), inputs, labels, params }
    }

    /// Normal features; W2 imitates digits: clipped to [0, 1] with an empty border.
    fn inputs(&self, stream: &mut RandomStream) -> Matrix {
        let mut inputs = Matrix::zeros(self.examples, self.features);
        stream.fill_normal(&mut inputs.data);
        if self.features == 784 {
            for (i, x) in inputs.data.iter_mut().enumerate() {
                let (row, col) = (i % 784 / 28, i % 28);
                let inside = (4..24).contains(&row) && (4..24).contains(&col);
                *x = if inside { (0.3 + 0.5 * *x).clamp(0.0, 1.0) } else { 0.0 };
            }
        }
        inputs
    }

    /// Multiply–add operations of a step's matrix products, counted as two each.
    pub fn flops(&self) -> f64 {
        let sizes = [&[self.features], self.widths.as_slice(), &[1]].concat();
        let layers = sizes.windows(2).enumerate();
        // forward and weight gradient in every layer, back-signals in all but the first
        layers.map(|(l, pair)| 2.0 * (self.examples * pair[0] * pair[1]) as f64 * if l == 0 { 2.0 } else { 3.0 }).sum()
    }
}

/// ±1 by a curved boundary in the first two coordinates, so that linear models do not suffice.
fn label(x: &[f64]) -> f64 {
    let second = x.get(1).copied().unwrap_or(0.0);
    let middle = x.iter().skip(x.len() / 2).take(8).sum::<f64>();
    if x[0] + 0.3 * second * second + 0.5 * middle > 0.1 + if x.len() == 784 { 1.2 } else { 0.0 } { 1.0 } else { -1.0 }
}

/// A workload with its numbers.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Shapes and rules.
    pub spec: WorkloadSpec,
    /// Examples × features.
    pub inputs: Matrix,
    /// ±1.
    pub labels: Vec<f64>,
    /// Initial weights, layer after layer, row-major (outputs × inputs).
    pub params: Vec<f64>,
}

impl Workload {
    /// The training run, at its start.
    pub fn start(&self, threads: usize, precision: Precision) -> crate::Result<Descent> {
        let shape = vec![self.inputs.cols];
        let data = Dataset::new(self.spec.name, self.inputs.clone(), Targets::Binary(self.labels.clone()), shape)?;
        let setup = Setup {
            reduction: Reduction::Mean,
            initialiser: Initialiser::Given { values: self.params.clone() },
            schedule: self.spec.schedule.clone(),
            compute: Compute { threads, precision },
            ..Setup::new(ModelSpec::relu(&self.spec.widths), self.spec.loss.clone())
        };
        Ok(setup.descent(&self.spec.optimiser, setup.objective(&data)?, &data)?)
    }
}
