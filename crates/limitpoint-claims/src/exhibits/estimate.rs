//! What an exhibit would take, before anything starts.

use limitpoint::data::DataSpec;
use limitpoint::driver::Batching;
use limitpoint::engine::Precision;
use limitpoint::experiments::{Plan, Recipe, Task};
use limitpoint::models::{Architecture, ModelSpec, Shape};
use limitpoint::optimisers::OptimiserSpec;

/// Share of the rate of a large matrix product that training steps reach, about.
const SHARE: f64 = 0.6;
/// Seconds of a step that are not arithmetic, about.
const OVERHEAD: f64 = 4e-6;

/// What a set of runs would take.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Runs.
    pub runs: usize,
    /// The numbers they compute in.
    pub precision: Precision,
    /// Steps of all of them, where they are not ended by the loss before.
    pub steps: f64,
    /// Multiply-adds of all of them.
    pub multiply_adds: f64,
    /// Bytes of one run: data, weights and what the optimiser keeps.
    pub bytes: f64,
}

impl Estimate {
    /// Of the runs of a plan, from its descriptions alone: data need not be here.
    pub fn of(plan: &Plan) -> Self {
        let (tasks, precision) = (plan.tasks(), plan.base.precision);
        let mut estimate = Self { runs: tasks.len(), precision, steps: 0.0, multiply_adds: 0.0, bytes: 0.0 };
        for task in &tasks {
            let steps = task.recipe.stop.steps.unwrap_or(0) as f64;
            estimate.steps += steps;
            let Some((architecture, examples)) = shape(&task.recipe) else { continue };
            estimate.multiply_adds += steps * a_step(task, &architecture, examples);
            let inputs = examples * architecture.input_shape().0.iter().product::<usize>();
            let bytes = 8.0 * (inputs + 6 * architecture.layout().len()) as f64;
            estimate.bytes = estimate.bytes.max(bytes);
        }
        estimate
    }

    /// Hours on a machine that makes so many multiply-adds a second in a large product: a guess.
    pub fn hours(&self, multiply_adds_a_second: f64) -> f64 {
        (self.multiply_adds / (SHARE * multiply_adds_a_second) + OVERHEAD * self.steps) / 3600.0
    }
}

/// Multiply-adds of a step: forward, signals back and gradient; and the loss of all examples after every epoch where the
/// rate follows it.
fn a_step(task: &Task, architecture: &Architecture, examples: usize) -> f64 {
    let forward = architecture.cost() as f64;
    let network = match task.recipe.batching {
        Batching::Full => 3.0 * forward * examples as f64,
        Batching::Mini { size } => 4.0 * forward * size as f64,
    };
    // roots of matrices by their eigenvectors
    let rooted = matches!(task.recipe.optimisers.get(&task.label.optimiser), Some(OptimiserSpec::Shampoo { .. }));
    let cubes = architecture.layout().trainable().map(|block| (block.rows.pow(3) + block.cols.pow(3)) as f64);
    network + if rooted { 20.0 * cubes.sum::<f64>() } else { 0.0 }
}

/// The network of a recipe and how many examples it learns from, as far as its description tells.
fn shape(recipe: &Recipe) -> Option<(Architecture, usize)> {
    let (input, outputs, examples) = match &recipe.data {
        DataSpec::TeacherStudent(data) => (Shape::vector(data.dimension), 1, data.count),
        DataSpec::CircleTeacher(data) => (Shape::vector(2), 1, data.count),
        DataSpec::Mnist(folder) => {
            (Shape::image(1, 28, 28), outputs(folder.pair.is_some()), folder.count.unwrap_or(60_000))
        }
        DataSpec::Cifar10(folder) => {
            (Shape::image(3, 32, 32), outputs(folder.pair.is_some()), folder.count.unwrap_or(50_000))
        }
        _ => return None,
    };
    let input = match recipe.model {
        ModelSpec::Image { .. } => input,
        _ => Shape::vector(input.0.iter().product()),
    };
    Some((recipe.model.architecture(&input, outputs).ok()?, examples))
}

fn outputs(pair: bool) -> usize {
    if pair { 1 } else { 10 }
}
