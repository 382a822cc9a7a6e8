//! Small data sets and short ways to run.

use std::path::PathBuf;
use std::sync::LazyLock;

use limitpoint::data::{Dataset, Gaussians, TeacherStudent, data_folder};
use limitpoint::driver::{Batching, Descent, FlowRun, Process, run};
use limitpoint::engine::Compute;
use limitpoint::flows::{FlowSpec, Tolerance};
use limitpoint::losses::LossSpec;
use limitpoint::models::{Activation, Initialiser, ModelSpec};
use limitpoint::numeric::Streams;
use limitpoint::objective::{Objective, Reduction};
use limitpoint::observers::{Continue, Observer, Snapshot, StopReason, StopRule};
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::schedules::ScheduleSpec;
use limitpoint_claims::{Lab, Scale, comparison_list, find_claims};

/// The names of all comparisons at quick scale, as `limitpoint reproduce` writes them.
const COMPARISONS: &str = include_str!("../comparisons.txt");

/// What claims share is computed once for all tests.
static LAB: LazyLock<Lab> = LazyLock::new(|| {
    let shared = std::env::var_os("LIMITPOINT_SHARED_DATA").map(PathBuf::from);
    let folders: Vec<PathBuf> = data_folder().into_iter().chain(shared).collect();
    let named = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|folder| folder.is_dir());
    Lab::new(Scale::Quick).with_mnist(named("mnist")).with_cifar(named("cifar10"))
});

/// Tries a claim and its printed form, if it has one, and says which checks fail.
pub fn try_out(id: &str) {
    for claim in find_claims(id).unwrap() {
        if let (true, Err(absent)) = (claim.needs_cifar, LAB.cifar()) {
            eprintln!("skipped: {}: {absent}", claim.id);
            continue;
        }
        let record = claim.run(&LAB);
        let failed: Vec<String> = record
            .checks
            .iter()
            .filter(|check| !check.holds)
            .map(|check| format!("{}: {}, expected {}", check.what, check.measured, check.expected))
            .collect();
        let found = format!("{} is {}, on record: {}", record.id, record.status, record.on_record);
        assert!(record.as_recorded(), "{found}\n{}", failed.join("\n"));
        let listed: Vec<&str> = COMPARISONS.lines().filter(|line| line.split('\t').next() == Some(claim.id)).collect();
        let text = comparison_list(&[record]);
        let made: Vec<&str> = text.lines().collect();
        let lost: Vec<_> = listed.iter().filter(|line| !made.contains(line)).collect();
        let unknown: Vec<_> = made.iter().filter(|line| !listed.contains(line)).collect();
        assert!(lost.is_empty() && unknown.is_empty(), "lost: {lost:#?}\nnot in tests/comparisons.txt: {unknown:#?}");
    }
}

/// One test per claim, and one that no claim of the paper is left out.
macro_rules! tests {
    ($paper: literal; $($name: ident: $id: literal,)*) => {
        $(#[test] fn $name() { crate::support::try_out($id); })*

        #[test]
        fn every_claim_is_tested() {
            let tested = [$($id),*];
            for claim in limitpoint_claims::claims().iter().filter(|claim| claim.id.starts_with($paper)) {
                let base = claim.id.trim_end_matches(".printed");
                assert!(tested.contains(&claim.id) || tested.contains(&base), "{} has no test", claim.id);
            }
        }
    };
}
pub(crate) use tests;

/// max(z, 0)², the smooth activation that lets every geometry follow its flow.
pub const SQUARED_RELU: Activation = Activation::ReluPower { power: 2 };

/// Gaussian inputs labelled by a sparse teacher of four neurons (A.fig1L, reduced).
pub fn teacher_data(seed: u64, count: usize, dimension: usize) -> Dataset {
    let spec = TeacherStudent { count, test_count: 0, dimension, active: 3, width: 4, seed: None };
    spec.generate(&Streams::new(seed)).unwrap().train
}

/// Separable Gaussian clouds whose ℓ2 margin is exactly `margin`.
pub fn separable_data(seed: u64, count: usize, dimension: usize, margin: f64) -> Dataset {
    let spec = Gaussians { count, dimension, margin, ..Default::default() };
    spec.generate(&Streams::new(seed)).unwrap().train
}

/// The summed loss of a model on data.
pub fn objective(data: &Dataset, model: &ModelSpec, loss: &LossSpec) -> Objective {
    Objective::new(data, model, loss, Reduction::Sum, Compute::default()).unwrap()
}

/// Normal initial weights of this standard deviation.
pub fn normal_start(objective: &Objective, seed: u64, deviation: f64) -> Vec<f64> {
    Initialiser::Normal { deviation }.draw(objective.layout(), &mut Streams::new(seed).stream("init"))
}

/// Full-batch descent from `params`.
pub fn descent(objective: Objective, optimiser: &OptimiserSpec, schedule: &ScheduleSpec, params: &[f64]) -> Descent {
    let optimiser = optimiser.build(objective.layout()).unwrap();
    let schedule = schedule.build().unwrap();
    Descent::new(objective, optimiser, schedule, Batching::Full, params.to_vec(), &Streams::new(0)).unwrap()
}

/// Steps so small that no margin moves by more than `resolution`.
pub fn flow_resolved(resolution: f64) -> ScheduleSpec {
    ScheduleSpec::flow_resolved(resolution)
}

/// Calls a function at every step.
struct EveryStep<F>(F);

impl<F: FnMut(&Snapshot)> Observer for EveryStep<F> {
    fn wants(&self, _: u64) -> bool {
        true
    }

    fn observe(&mut self, snapshot: &Snapshot) -> Continue {
        (self.0)(snapshot);
        Continue::Yes
    }
}

/// Runs until a rule holds and shows every step to `look`.
pub fn watch(process: &mut dyn Process, rules: &[StopRule], look: impl FnMut(&Snapshot)) -> StopReason {
    run(process, rules, &mut [&mut EveryStep(look)]).unwrap()
}

/// ln L at or below this.
pub fn log_loss_below(target: f64) -> StopRule {
    StopRule::LogLoss { target }
}

/// At most this many steps.
pub fn steps(count: u64) -> StopRule {
    StopRule::Steps { count }
}

/// The largest relative fall from one value to the next; 0 for a series that never falls.
pub fn largest_fall(series: impl IntoIterator<Item = f64>) -> f64 {
    let mut previous = f64::NAN;
    series.into_iter().fold(0.0, |worst: f64, value| {
        let fall = if previous.is_nan() { 0.0 } else { (previous - value) / previous.abs() };
        assert!(!value.is_nan(), "a monotone quantity became NaN");
        previous = value;
        worst.max(fall)
    })
}

/// A flow from `params`, ready to run.
pub fn flow(objective: Objective, spec: &FlowSpec, tolerance: Tolerance, params: &[f64]) -> FlowRun {
    FlowRun::new(objective, spec, tolerance, params).unwrap()
}

/// The largest difference between the values, over the largest size: how far from equal they are.
pub fn spread(values: &[f64]) -> f64 {
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    (high - low) / values.iter().fold(0.0, |size, v| f64::max(size, v.abs()))
}
