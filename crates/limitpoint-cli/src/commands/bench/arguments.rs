//! What can be typed after `limitpoint bench`.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};
use limitpoint::experiments::{NetworkShape, WorkloadSpec};

use super::conv::ConvCase;
use crate::args::Format;
use crate::values;

/// Arguments of `bench`.
#[derive(Debug, Clone, Args)]
pub struct Bench {
    /// What to measure: some of the workloads W1 to W4, all of them by default, or one of the others alone.
    #[arg(value_name = "WORKLOAD", value_enum, ignore_case = true)]
    pub contests: Vec<Contest>,
    /// Measure full-batch steps of random networks against PyTorch, this many, and say where limitpoint is weakest.
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = "12", value_parser = values::repetitions)]
    #[arg(conflicts_with = "contests")]
    pub shapes: Option<usize>,
    /// Measure steps of this network, EXAMPLESxINPUTS:WIDTHS:OUTPUTS:PRECISION; may be repeated.
    #[arg(long, value_name = "SHAPE", conflicts_with = "contests")]
    pub shape: Vec<NetworkShape>,
    /// The seed of random networks.
    #[arg(long, default_value_t = 0, requires = "shapes")]
    pub seed: u64,
    /// A Python interpreter with torch and/or jax to compare with.
    #[arg(long)]
    pub python: Option<PathBuf>,
    /// Engines to compare workloads and shapes with, all that the Python has by default; may be repeated.
    #[arg(long = "engine", value_name = "ENGINE", value_enum, requires = "python")]
    pub engines: Vec<Engine>,
    /// Which of the networks of `conv` to measure, all by default; may be repeated.
    #[arg(long = "case", value_name = "CASE", value_enum)]
    pub cases: Vec<ConvCase>,
    /// Seconds per measurement.
    #[arg(long, default_value_t = 2.0, value_parser = values::positive)]
    pub seconds: f64,
    /// Interleaved rounds; medians are reported.
    #[arg(long, default_value_t = 3, value_parser = values::repetitions)]
    pub rounds: usize,
    /// Threads of every contestant, at most one a core.
    #[arg(long, default_value_t = 2, value_parser = values::at_least_one)]
    pub threads: usize,
    /// Also measure how cost grows with examples, width, depth and threads.
    #[arg(long)]
    pub scaling: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// What can be measured by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Contest {
    /// Steps on 250 examples of 32 features through 1024 units.
    #[value(name = "W1")]
    W1,
    /// Sign steps on 100 images of 784 pixels through 128 units.
    #[value(name = "W2")]
    W2,
    /// Steps on 200 points of the plane through 100 units.
    #[value(name = "W3")]
    W3,
    /// Steps on 200 points of the plane through 100 and 100 units.
    #[value(name = "W4")]
    W4,
    /// Exact margins against cvxpy and SVC.
    Solve,
    /// Carlini–Wagner against foolbox.
    Attack,
    /// All runs of A Figure 1 against PyTorch.
    #[value(name = "figure-1")]
    Figure1,
    /// Networks of images against PyTorch and JAX.
    Conv,
    /// Mini-batches on images of MNIST's size against PyTorch.
    Epoch,
}

/// Another engine that makes the same steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// PyTorch, operation by operation.
    TorchEager,
    /// PyTorch with `torch.compile`.
    TorchCompile,
    /// JAX, compiled.
    Jax,
}

/// What a command line asks for.
pub enum Subject {
    /// These of the four workloads.
    Workloads(Vec<WorkloadSpec>),
    /// Shapes, random or written down.
    Shapes,
    /// One thing that is measured alone.
    Solve,
    Attack,
    Figure1,
    Epoch,
    Conv,
}

impl Engine {
    /// As scripts and tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::TorchEager => "torch-eager",
            Self::TorchCompile => "torch-compile",
            Self::Jax => "jax",
        }
    }
}

impl Contest {
    /// The workload of this name, if it is one.
    fn workload(self) -> Option<WorkloadSpec> {
        let value = self.to_possible_value()?;
        WorkloadSpec::all().into_iter().find(|spec| spec.name == value.get_name())
    }
}

impl Bench {
    /// What is asked for.
    pub fn subject(&self) -> anyhow::Result<Subject> {
        if self.seconds > 600.0 {
            bail!("--seconds is {}, but must be at most 600", self.seconds);
        }
        let subject = match self.contests.as_slice() {
            [] if self.shapes.is_some() || !self.shape.is_empty() => Subject::Shapes,
            [] => Subject::Workloads(WorkloadSpec::all()),
            [Contest::Solve] => Subject::Solve,
            [Contest::Attack] => Subject::Attack,
            [Contest::Figure1] => Subject::Figure1,
            [Contest::Epoch] => Subject::Epoch,
            [Contest::Conv] => Subject::Conv,
            several => match several.iter().map(|contest| contest.workload()).collect() {
                Some(workloads) => Subject::Workloads(workloads),
                None => {
                    bail!(
                        "attack, conv, epoch, figure-1 and solve are measured alone; ask for one of them, or for W1 to W4"
                    )
                }
            },
        };
        if !self.cases.is_empty() && !matches!(subject, Subject::Conv) {
            bail!("--case goes with conv, as in: limitpoint bench conv --case mnist-f32");
        }
        if self.scaling && !matches!(subject, Subject::Workloads(_)) {
            bail!("--scaling goes with the workloads W1 to W4");
        }
        Ok(subject)
    }

    /// Engines to compare with.
    pub fn chosen_engines(&self) -> Vec<Engine> {
        let all = Engine::value_variants().iter();
        all.filter(|engine| self.engines.is_empty() || self.engines.contains(engine)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_its_word_and_every_engine_its_own_name() {
        let named: Vec<WorkloadSpec> = Contest::value_variants().iter().filter_map(|word| word.workload()).collect();
        assert_eq!(named, WorkloadSpec::all());
        for engine in Engine::value_variants() {
            assert_eq!(
                engine.to_possible_value().map(|value| value.get_name().to_owned()).as_deref(),
                Some(engine.name())
            );
        }
    }
}
