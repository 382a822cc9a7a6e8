//! Training problems whose speed is measured.

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
    pub name: String,
    /// Examples.
    pub examples: usize,
    /// Features.
    pub features: usize,
    /// Widths of the hidden layers (ReLU, no biases).
    pub widths: Vec<usize>,
    /// Scores per example: one for labels ±1, otherwise one for every class.
    pub outputs: usize,
    /// Whether the 784 features imitate pixels of digits, most of which are zero.
    pub like_digits: bool,
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
        let sign = OptimiserSpec::Steepest { norm: NormSpec::Linf, scaling: Scaling::Unit, minimum_norm: false };
        let digits = Self {
            name: "W2".to_owned(),
            examples: 100,
            features: 784,
            widths: vec![128],
            outputs: 1,
            like_digits: true,
            loss: LossSpec::Logistic,
            optimiser: sign,
            schedule: ScheduleSpec::Constant { rate: 1e-4 },
        };
        vec![
            Self::two_sided("W1", 250, 32, &[1024], 0.02),
            digits,
            Self::two_sided("W3", 200, 2, &[100], 0.05),
            Self::two_sided("W4", 200, 2, &[100, 100], 0.01),
        ]
    }

    /// Labels ±1, the exponential loss, and gradient steps of size c/L.
    pub(super) fn two_sided(name: &str, examples: usize, features: usize, widths: &[usize], c: f64) -> Self {
        Self {
            name: name.to_owned(),
            examples,
            features,
            widths: widths.to_vec(),
            outputs: 1,
            like_digits: false,
            loss: LossSpec::Exponential,
            optimiser: OptimiserSpec::steepest(NormSpec::L2),
            schedule: ScheduleSpec::LinearBound { c, feature_bound: Some(1.0), cap: None, decay: 0.0 },
        }
    }

    /// Draws data and initial weights from seed 0.
    pub fn build(&self) -> Workload {
        let streams = Streams::new(0);
        let (mut data, mut init) = (streams.stream("data"), streams.stream("init"));
        let inputs = self.inputs(&mut data);
        let labels = if self.outputs == 1 {
            (0..self.examples).map(|n| self.label(inputs.row(n))).collect()
        } else {
            (0..self.examples).map(|_| data.below(self.outputs) as f64).collect()
        };
        let mut params = Vec::new();
        for pair in self.sizes().windows(2) {
            params.extend((0..pair[0] * pair[1]).map(|_| init.normal() / (pair[0] as f64).sqrt()));
        }
        Workload { spec: self.clone(), inputs, labels, params }
    }

    fn sizes(&self) -> Vec<usize> {
        [&[self.features], self.widths.as_slice(), &[self.outputs]].concat()
    }

    /// Normal features, or what imitates digits: clipped to [0, 1] with an empty border.
    fn inputs(&self, stream: &mut RandomStream) -> Matrix {
        let mut inputs = Matrix::zeros(self.examples, self.features);
        stream.fill_normal(&mut inputs.data);
        if self.like_digits {
            for (i, x) in inputs.data.iter_mut().enumerate() {
                let (row, col) = (i % 784 / 28, i % 28);
                let inside = (4..24).contains(&row) && (4..24).contains(&col);
                *x = if inside { (0.3 + 0.5 * *x).clamp(0.0, 1.0) } else { 0.0 };
            }
        }
        inputs
    }

    /// ±1 by a curved boundary in the first two coordinates, so that linear models do not suffice.
    fn label(&self, x: &[f64]) -> f64 {
        let second = x.get(1).copied().unwrap_or(0.0);
        let middle = x.iter().skip(x.len() / 2).take(8).sum::<f64>();
        let offset = if self.like_digits { 1.3 } else { 0.1 };
        if x[0] + 0.3 * second * second + 0.5 * middle > offset { 1.0 } else { -1.0 }
    }

    /// Multiply–adds of the matrix products of a step: forward and weight gradient in every layer, back-signals in all
    /// but the first.
    ///
    /// ```text
    /// N · (2 d₀ d₁ + 3 d₁ d₂ + … + 3 d_{L−1} d_L)
    /// ```
    ///
    /// ```
    /// use limitpoint::experiments::WorkloadSpec;
    /// assert_eq!(WorkloadSpec::all()[2].multiply_adds(), 200.0 * (2.0 * 2.0 * 100.0 + 3.0 * 100.0));
    /// ```
    pub fn multiply_adds(&self) -> f64 {
        let sizes = self.sizes();
        let layers = sizes.windows(2).enumerate();
        let products = layers.map(|(l, pair)| pair[0] as f64 * pair[1] as f64 * if l == 0 { 2.0 } else { 3.0 });
        self.examples as f64 * products.sum::<f64>()
    }

    /// Operations of a step's matrix products: a multiply–add is two.
    pub fn flops(&self) -> f64 {
        2.0 * self.multiply_adds()
    }

    /// Steps after which contestants compare their losses and start again: 100, or fewer of steps that take long.
    pub fn chunk(&self) -> usize {
        (2e10 / self.multiply_adds()).clamp(5.0, 100.0) as usize
    }
}

/// A workload with its numbers.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Shapes and rules.
    pub spec: WorkloadSpec,
    /// Examples × features.
    pub inputs: Matrix,
    /// ±1, or classes from 0.
    pub labels: Vec<f64>,
    /// Initial weights, layer after layer, row-major (outputs × inputs).
    pub params: Vec<f64>,
}

impl Workload {
    /// The training run, at its start.
    pub fn start(&self, threads: usize, precision: Precision) -> crate::Result<Descent> {
        let targets = match self.spec.outputs {
            1 => Targets::Binary(self.labels.clone()),
            count => Targets::Classes { labels: self.labels.iter().map(|label| *label as usize).collect(), count },
        };
        let data = Dataset::new(&self.spec.name, self.inputs.clone(), targets, vec![self.inputs.cols])?;
        let setup = Setup {
            reduction: Reduction::Mean,
            initialiser: Initialiser::Given { values: self.params.clone() },
            schedule: self.spec.schedule.clone(),
            compute: Compute { threads, precision, ..Compute::default() },
            ..Setup::new(ModelSpec::relu(&self.spec.widths), self.spec.loss.clone())
        };
        Ok(setup.descent(&self.spec.optimiser, setup.objective(&data)?, &data)?)
    }
}
