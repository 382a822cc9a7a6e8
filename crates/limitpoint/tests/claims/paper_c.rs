//! Paper C: mirror flow in homogeneous networks.

use limitpoint::diagnostics::{Balance, mirror_measure, neuron_balance};
use limitpoint::driver::Process;
use limitpoint::flows::{Flow, FlowSpec, Tolerance};
use limitpoint::linalg::dot;
use limitpoint::losses::LossSpec;
use limitpoint::models::{Activation, ModelSpec};
use limitpoint::numeric::LogScaled;
use limitpoint::objective::Objective;
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::potentials::{BlockPotential, PotentialSpec};
use limitpoint::schedules::ScheduleSpec;

use crate::support::*;

tests! {
    "C.";
    the_two_families_have_the_horizons_of_table_one: "C.tab1",
    the_balance_equation_has_the_solutions_of_figure_one: "C.fig1L",
    level_sets_of_the_hyperbolic_gauge_approach_the_l1_ball: "C.fig1R",
    the_time_until_the_horizon_shows_is_exponential_in_lambda_and_n: "C.lem4.10",
    the_recipes_of_table_ten_keep_the_first_update: "C.tab10",
}

const HYPERBOLIC: PotentialSpec = PotentialSpec::Hyperbolic { lambda: 0.1 };
const CUBIC: PotentialSpec = PotentialSpec::Smoothed { p: 3.0, lambda: 1.0 };

/// Hyperbolic on the first layer, smoothed cubic on the others.
fn mixed() -> PotentialSpec {
    let block = |name: &str, potential| BlockPotential { block: name.into(), potential };
    PotentialSpec::Layers { blocks: vec![block("layer1.weight", HYPERBOLIC), block("*", CUBIC)] }
}

fn mirror(potential: &PotentialSpec) -> FlowSpec {
    FlowSpec::Mirror { potential: potential.clone() }
}

/// A small task for a network: a teacher's labels, or linearly separable ones where the network is linear.
fn network(widths: &[usize], activation: Activation, seed: u64) -> (Objective, Vec<f64>) {
    let model = ModelSpec::network(widths, activation);
    let linear = activation == Activation::Identity;
    let data = if linear { separable_data(seed, 10, 5, 0.5) } else { teacher_data(seed, 10, 5) };
    let objective = objective(&data, &model, &LossSpec::Exponential);
    let start = normal_start(&objective, seed, 0.6);
    (objective, start)
}

/// C.eq6: ⟨W_l, ∂L/∂W_l⟩ divided by the layer's degree is the same for all layers, at any point.
#[test]
fn the_euler_products_of_all_layers_are_equal() {
    for activation in [Activation::Relu, Activation::LeakyRelu { slope: 0.1 }, SQUARED_RELU] {
        for seed in 0..5 {
            let (mut objective, theta) = network(&[7, 6, 5], activation, seed);
            let mut gradient = LogScaled::zeros(theta.len());
            objective.forward(&theta);
            objective.backward(&theta, &mut gradient);
            let groups = &objective.homogeneity().unwrap().groups;
            let product = |block: &usize| {
                let range = objective.layout().blocks()[*block].range();
                dot(&theta[range.clone()], &gradient.direction[range])
            };
            let products: Vec<f64> =
                groups.iter().map(|group| group.blocks.iter().map(product).sum::<f64>() / group.degree).collect();
            assert_eq!(products.len(), 4);
            assert!(spread(&products) < 1e-10, "{activation:?}: {products:?}");
        }
    }
}

/// C.lem3.1: Q_l(∇R_l(W_l)) − Q_{l+1}(∇R_{l+1}(W_{l+1})) is constant, also with a different potential in each layer.
#[test]
fn mirror_flow_conserves_the_balance_between_layers() {
    for potential in [PotentialSpec::Euclidean, HYPERBOLIC, CUBIC, mixed()] {
        for (widths, activation) in [(&[8][..], SQUARED_RELU), (&[6, 6], Activation::Identity)] {
            let (objective, start) = network(widths, activation, 1);
            let (layout, homogeneity) = (objective.layout().clone(), objective.homogeneity().unwrap().clone());
            let mut worker = potential.build(&layout).unwrap();
            let before = Balance::measure(&start, &layout, &homogeneity, &mut *worker);
            let mut process = flow(objective, &mirror(&potential), Tolerance::default(), &start);
            watch(&mut process, &[log_loss_below(-20.0), steps(20_000)], |_| ());
            assert!(process.log_loss() <= -20.0);
            let drift = process.flow_mut().balance_drift().unwrap();
            let after = Balance::measure(process.flow_mut().params(), &layout, &homogeneity, &mut *worker);
            assert!(drift <= 1e-8, "{} {activation:?}: {drift:e}", potential.key());
            assert!((after.drift_since(&before) - drift).abs() <= 1e-12);
        }
    }
}

/// C.nbal: in a two-layer network every neuron keeps its own balance Q(a_j) − Q(w_j)/k, k the degree of the activation.
///
/// The flow of a ReLU network soon slides along kinks, where error control allows only tiny steps; its first 1000 steps
/// are looked at, and the smooth networks to the end.
#[test]
fn mirror_flow_conserves_the_balance_of_every_neuron() {
    for potential in [PotentialSpec::Euclidean, HYPERBOLIC, CUBIC] {
        for activation in [Activation::Relu, Activation::Identity, SQUARED_RELU] {
            let (objective, start) = network(&[8], activation, 2);
            let layout = objective.layout().clone();
            let mut worker = potential.build(&layout).unwrap();
            let homogeneity = objective.homogeneity().unwrap().clone();
            let before = neuron_balance(&start, &layout, &homogeneity, &mut *worker);
            let mut process = flow(objective, &mirror(&potential), Tolerance::default(), &start);
            watch(&mut process, &[log_loss_below(-20.0), steps(1000)], |_| ());
            let end = process.flow_mut().params();
            let after = neuron_balance(end, &layout, &homogeneity, &mut *worker);
            assert_eq!(after.len(), 8);
            let size = worker.conjugate_at(end);
            assert!((size / worker.conjugate_at(&start) - 1.0).abs() > 0.05, "hardly anything moved");
            let drift = distance(&before, &after) / size;
            assert!(drift < 1e-8, "{} {activation:?}: {drift:e}", potential.key());
        }
    }
}

/// C.lem3.1 in discrete time: mirror descent keeps the balance up to O(η).
#[test]
fn the_balance_drift_of_mirror_descent_is_linear_in_the_step() {
    for potential in [PotentialSpec::Euclidean, HYPERBOLIC, CUBIC, mixed()] {
        let drift = |rate: f64| {
            let (objective, start) = network(&[8], SQUARED_RELU, 3);
            let (layout, homogeneity) = (objective.layout().clone(), objective.homogeneity().unwrap().clone());
            let mut worker = potential.build(&layout).unwrap();
            let before = Balance::measure(&start, &layout, &homogeneity, &mut *worker);
            let spec = OptimiserSpec::mirror(potential.clone());
            let mut process = descent(objective, &spec, &ScheduleSpec::Constant { rate }, &start);
            watch(&mut process, &[steps((0.05 / rate).round() as u64)], |_| ());
            Balance::measure(process.params(), &layout, &homogeneity, &mut *worker).drift_since(&before)
        };
        let (coarse, fine) = (drift(5e-5), drift(2.5e-5));
        assert!(fine > 1e-12 && (coarse / fine - 2.0).abs() < 0.1, "{}: {coarse:e} {fine:e}", potential.key());
    }
}

/// The negative control of C.lem3.1: a potential that couples the layers conserves nothing between them.
#[test]
fn a_potential_that_is_not_separable_lets_the_balance_drift() {
    let potential = PotentialSpec::SquaredLp { p: 1.5 };
    let (objective, start) = network(&[8], SQUARED_RELU, 4);
    let (layout, homogeneity) = (objective.layout().clone(), objective.homogeneity().unwrap().clone());
    let mut worker = potential.build(&layout).unwrap();
    let before = Balance::measure(&start, &layout, &homogeneity, &mut *worker);
    let mut process = flow(objective, &mirror(&potential), Tolerance::default(), &start);
    watch(&mut process, &[log_loss_below(-10.0)], |_| ());
    let drift = Balance::measure(process.flow_mut().params(), &layout, &homogeneity, &mut *worker).drift_since(&before);
    assert!(drift > 1e-2, "{drift:e}");
    assert_eq!(process.flow_mut().balance_drift(), None);
}

/// C.thm4.5 (the Q-soft margin never falls after L < 1), C.lem4.3 (within ln N of the hard one) and C.lem4.10 (the gauge
/// lies between horizon and c · horizon + a), at every step of mirror flow.
#[test]
fn mirror_flow_raises_the_margin_of_its_potential() {
    let potentials = [
        PotentialSpec::Euclidean,
        HYPERBOLIC,
        CUBIC,
        PotentialSpec::Smoothed { p: 3.0, lambda: 0.0 },
        PotentialSpec::Smoothed { p: 4.0, lambda: 0.1 },
    ];
    for potential in potentials {
        for (activation, seed) in [(SQUARED_RELU, 0), (SQUARED_RELU, 1), (Activation::Identity, 2)] {
            let (objective, start) = network(&[8], activation, seed);
            let mut worker = potential.build(objective.layout()).unwrap();
            let degree = objective.homogeneity().unwrap().degree;
            let bounds = worker.horizon_bounds();
            let mut process = flow(objective, &mirror(&potential), Tolerance::default(), &start);
            let (mut soft_margins, mut scratch) = (Vec::new(), vec![0.0; start.len()]);
            let what = format!("{potential:?} {activation:?} seed {seed}");
            watch(&mut process, &[log_loss_below(-100.0), steps(20_000)], |snapshot| {
                let m = mirror_measure(&snapshot.point, &mut *worker, &mut scratch);
                assert!(m.beta <= 1.0 + 1e-12, "{what}");
                let rounding = 1e-12 * m.gauge;
                let bounds = bounds.expect("these potentials have known constants");
                assert!(m.horizon <= m.gauge + rounding, "{what}");
                assert!(m.gauge <= bounds.factor * m.horizon + bounds.offset + rounding, "{what}");
                assert!((m.gauge - m.horizon) / m.gauge <= bounds.relative_gap(m.gauge) + 1e-12, "{what}");
                if snapshot.point.log_loss < 0.0 {
                    let gap = 10f64.ln() / m.gauge.powf(degree);
                    assert!(m.soft_margin <= m.margin * (1.0 + 1e-12), "{what}");
                    assert!(m.soft_margin >= (m.margin - gap) - 1e-12 * m.margin.abs(), "{what}");
                    soft_margins.push(m.soft_margin);
                }
            });
            assert!(process.log_loss() <= -100.0, "{what} ended at ln L = {}", process.log_loss());
            let rise = soft_margins[soft_margins.len() - 1] / soft_margins[0];
            let fall = largest_fall(soft_margins);
            assert!(fall <= 1e-12 && rise > 2.0, "{what} rises {rise}-fold, falls by {fall:e}");
        }
    }
}

/// θ(τ) of a mirror flow on a linear model, between its steps: the cubic through values and slopes at both ends.
struct Path {
    /// τ, θ, dθ/dτ.
    knots: Vec<(f64, Vec<f64>, Vec<f64>)>,
}

impl Path {
    fn at(&self, tau: f64) -> Vec<f64> {
        let index = self.knots.partition_point(|knot| knot.0 <= tau).clamp(1, self.knots.len() - 1);
        let ((t0, x0, v0), (t1, x1, v1)) = (&self.knots[index - 1], &self.knots[index]);
        let h = t1 - t0;
        let s = (tau - t0) / h;
        let value = |i: usize| {
            (1.0 - s).powi(2) * ((1.0 + 2.0 * s) * x0[i] + s * h * v0[i])
                + s * s * ((3.0 - 2.0 * s) * x1[i] - (1.0 - s) * h * v1[i])
        };
        (0..x0.len()).map(value).collect()
    }
}

/// C.reparam: gradient flow on u ⊙ v with u² − v² = c is hyperbolic mirror flow on ⟨θ, x⟩ with √λ = c/2, twice as fast.
#[test]
fn a_diagonal_network_is_hyperbolic_mirror_flow_at_double_speed() {
    let (data, c) = (separable_data(7, 8, 4, 0.4), 0.6f64);
    let start = [0.3, -0.2, 0.0, 0.1];
    let lambda = 0.25 * c * c;
    let tolerance = Tolerance { relative: 1e-12, absolute: 1e-14 };
    // the mirror flow, with everything needed to look between its steps
    let mut linear = objective(&data, &ModelSpec::Linear, &LossSpec::Exponential);
    let spec = mirror(&PotentialSpec::Hyperbolic { lambda });
    let mut flow = Flow::new(&spec, tolerance, &mut linear, &start).unwrap();
    let mut path = Path { knots: Vec::new() };
    loop {
        let velocity =
            flow.params().iter().zip(&flow.gradient().direction).map(|(t, g)| -(t * t + lambda).sqrt() * g).collect();
        path.knots.push((flow.rescaled_time(), flow.params().to_vec(), velocity));
        if flow.log_loss() < -31.0 {
            break;
        }
        flow.advance(&mut linear).unwrap();
    }
    // the diagonal network from the same θ: u = √((√(c² + 4θ²) + c)/2), v = θ/u
    let u: Vec<f64> = start.iter().map(|t| (0.5 * ((c * c + 4.0 * t * t).sqrt() + c)).sqrt()).collect();
    let factors: Vec<f64> = u.iter().copied().chain(start.iter().zip(&u).map(|(t, u)| t / u)).collect();
    let mut diagonal = objective(&data, &ModelSpec::Diagonal { factors: 2 }, &LossSpec::Exponential);
    let mut network = Flow::new(&FlowSpec::gradient(), tolerance, &mut diagonal, &factors).unwrap();
    let (mut worst, mut count) = (0.0, 0);
    while network.log_loss() > -30.0 {
        network.advance(&mut diagonal).unwrap();
        let (u, v) = network.params().split_at(4);
        let product: Vec<f64> = u.iter().zip(v).map(|(u, v)| u * v).collect();
        let expected = path.at(2.0 * network.rescaled_time());
        worst = f64::max(worst, distance(&product, &expected) / expected.iter().fold(1.0, |m, t| f64::max(m, t.abs())));
        assert!(u.iter().zip(v).all(|(u, v)| (u * u - v * v - c).abs() < 1e-9 * (1.0 + u * u)));
        count += 1;
    }
    assert!(count > 50 && worst < 1e-6, "the paths differ by {worst:e}");
}
