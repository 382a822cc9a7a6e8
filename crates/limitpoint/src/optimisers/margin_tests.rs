//! The fast margin methods against linear problems whose best margin is known by construction.

use super::*;
use crate::data::{Dataset, Targets};
use crate::engine::Compute;
use crate::linalg::{Matrix, add_scaled, dot, max_abs, norm2};
use crate::losses::LossSpec;
use crate::models::ModelSpec;
use crate::norms::{Norm, NormSpec};
use crate::numeric::Streams;
use crate::objective::{Objective, Reduction};
use crate::params::ParamLayout;

/// A separable problem with best margin `margin`, written down together with the proof that it is the best.
///
/// Take a vector s with ‖s‖_* = 1 and the unit vector w with ⟨s, w⟩ = 1. The `support` points are zᵢ = γs + uᵢ with
/// ⟨uᵢ, w⟩ = 0 and Σ pᵢuᵢ = 0, the others lie beyond. Then w has margin γ, and ‖Σ pᵢzᵢ‖_* = γ says that none has more.
struct Planted {
    points: Matrix,
    labels: Vec<f64>,
    margin: f64,
    norm: NormSpec,
}

impl Planted {
    fn new(norm: NormSpec, dimension: usize, (support, others): (usize, usize), seed: u64) -> Self {
        let (mut stream, margin) = (Streams::new(seed).stream("planted"), 0.3);
        let mut worker = norm.build(&ParamLayout::vector(dimension)).unwrap();
        let mut s: Vec<f64> = (0..dimension).map(|_| stream.normal()).collect();
        let size = worker.dual(&s);
        s.iter_mut().for_each(|x| *x /= size);
        let mut w = vec![0.0; dimension];
        worker.unit_minimiser(&s, &mut w);
        w.iter_mut().for_each(|x| *x = -*x);
        let mut across = || {
            let mut u: Vec<f64> = (0..dimension).map(|_| 0.5 * stream.normal()).collect();
            let along = dot(&u, &w);
            add_scaled(&mut u, -along, &s);
            u
        };
        let mut rows: Vec<Vec<f64>> = (0..support + others - 1).map(|_| across()).collect();
        let mut stream = Streams::new(seed).stream("weights");
        let weights: Vec<f64> = (0..support).map(|_| stream.uniform_in(0.3, 1.0)).collect();
        let mut last = vec![0.0; dimension];
        for (u, p) in rows.iter().zip(&weights[..support - 1]) {
            add_scaled(&mut last, -p / weights[support - 1], u);
        }
        rows.insert(support - 1, last);
        let labels: Vec<f64> = rows.iter().map(|_| stream.sign()).collect();
        for (place, (row, label)) in rows.iter_mut().zip(&labels).enumerate() {
            let beyond = if place < support { 0.0 } else { stream.uniform_in(0.05, 0.5) };
            add_scaled(row, margin + beyond, &s);
            row.iter_mut().for_each(|x| *x *= label);
        }
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        Self { points: Matrix::from_rows(&rows), labels, margin, norm }
    }

    fn worker(&self) -> Box<dyn Norm> {
        self.norm.build(&ParamLayout::vector(self.points.cols)).unwrap()
    }

    fn objective(&self) -> Objective {
        let targets = Targets::Binary(self.labels.clone());
        let data = Dataset::new("planted", self.points.clone(), targets, vec![self.points.cols]).unwrap();
        Objective::new(&data, &ModelSpec::Linear, &LossSpec::Exponential, Reduction::Sum, Compute::default()).unwrap()
    }

    /// B = max ‖xᵢ‖ in the dual of `norm`.
    fn bound(&self, norm: &NormSpec) -> f64 {
        let mut norm = norm.build(&ParamLayout::vector(self.points.cols)).unwrap();
        (0..self.points.rows).map(|row| norm.dual(self.points.row(row))).fold(0.0, f64::max)
    }

    /// Runs `spec` from 0 with ηL = 1/`bound`²: the gaps 1 − γ(wₜ)/γ after steps 1, 2, …, and what the optimiser
    /// reports.
    fn run(&self, spec: &OptimiserSpec, bound: f64, steps: u64) -> Vec<(f64, f64)> {
        let mut objective = self.objective();
        let (mut worker, mut optimiser) = (self.worker(), spec.build(objective.layout()).unwrap());
        let mut params = vec![0.0; self.points.cols];
        let mut gradient = LogScaled::zeros(params.len());
        let mut gaps = Vec::new();
        for step in 0..steps {
            let log_loss = objective.forward(&params).log_loss();
            let context = StepContext { step, epoch: step, log_loss, all_correct: false };
            optimiser.subgradient(objective.forward(&params), &params, &mut gradient);
            optimiser.step(&mut params, &gradient, &context, -log_loss - 2.0 * bound.ln()).unwrap();
            objective.forward(&params);
            let least = objective.margins().iter().copied().fold(f64::INFINITY, f64::min);
            let report = optimiser.report().first().map_or(f64::NAN, |(_, value)| *value);
            gaps.push((1.0 - least / worker.value(&params) / self.margin, report));
        }
        gaps
    }
}

/// The slope of the line through (x, y) by least squares, and its R².
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let mean = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / points.len() as f64;
    let (x_mean, y_mean) = (mean(&|p| p.0), mean(&|p| p.1));
    let xx = mean(&|p| (p.0 - x_mean).powi(2));
    let yy = mean(&|p| (p.1 - y_mean).powi(2));
    let xy = mean(&|p| (p.0 - x_mean) * (p.1 - y_mean));
    (xy / xx, xy * xy / (xx * yy))
}

fn accelerated(norm: &NormSpec) -> OptimiserSpec {
    OptimiserSpec::DualAcceleration { norm: norm.clone(), modulus: None }
}

fn normalised_steepest(norm: &NormSpec) -> OptimiserSpec {
    OptimiserSpec::steepest(norm.clone())
}

/// The step from which on the gap stays below `level`.
fn reaches(run: &[(f64, f64)], level: f64) -> usize {
    run.iter().rposition(|(gap, _)| *gap > level).map_or(1, |last| last + 2)
}

#[test]
fn planted_margins_are_the_best_ones() {
    // no run exceeds them, and the dual bound comes down to them from above
    for norm in [NormSpec::L2, NormSpec::Lp { p: 1.5 }, NormSpec::L1, NormSpec::Linf] {
        let problem = Planted::new(norm.clone(), 5, (5, 20), 3);
        let spec = OptimiserSpec::DualAcceleration { norm: norm.clone(), modulus: Some(0.5) };
        let run = problem.run(&spec, problem.bound(&norm), 2000);
        assert!(run.iter().all(|(gap, bound)| *gap > -1e-12 && *bound > problem.margin * (1.0 - 1e-12)), "{norm}");
        let (_, bound) = run[1999];
        assert!(bound < problem.margin * 1.001, "{norm}: {bound}");
    }
}

#[test]
fn dual_acceleration_in_l2_is_the_method_of_ji_srebro_and_telgarsky() {
    // as they print it, with z = −yx: gₜ = t/(t + 1) · (gₜ₋₁ + Zᵀqₜ), wₜ₊₁ = wₜ − (gₜ + Zᵀqₜ)/B², q = softmax(Zw)
    let problem = Planted::new(NormSpec::L2, 4, (4, 10), 0);
    let bound = problem.bound(&NormSpec::L2);
    let mut objective = problem.objective();
    let mut optimiser = accelerated(&NormSpec::L2).build(objective.layout()).unwrap();
    let (mut params, mut w, mut momentum) = (vec![0.0; 4], vec![0.0; 4], vec![0.0; 4]);
    let mut gradient = LogScaled::zeros(4);
    for step in 0..300 {
        let log_loss = objective.forward(&params).log_loss();
        let context = StepContext { step, epoch: step, log_loss, all_correct: false };
        objective.resume().backward(&params, &mut gradient);
        optimiser.step(&mut params, &gradient, &context, -log_loss - 2.0 * bound.ln()).unwrap();

        let margins: Vec<f64> = (0..14).map(|row| problem.labels[row] * dot(problem.points.row(row), &w)).collect();
        let total = crate::numeric::log_sum_exp(&margins.iter().map(|q| -q).collect::<Vec<_>>());
        let mut pull = vec![0.0; 4];
        for (row, q) in margins.iter().enumerate() {
            add_scaled(&mut pull, -problem.labels[row] * (-q - total).exp(), problem.points.row(row));
        }
        let lambda = step as f64 / (step as f64 + 1.0);
        momentum.iter_mut().zip(&pull).for_each(|(g, z)| *g = lambda * (*g + z));
        add_scaled(&mut w, -1.0 / (bound * bound), &momentum);
        add_scaled(&mut w, -1.0 / (bound * bound), &pull);
        let size = max_abs(&w);
        assert!(params.iter().zip(&w).all(|(a, b)| (a - b).abs() < 1e-9 * size), "step {step}: {params:?} {w:?}");
    }
}

#[test]
fn dual_acceleration_closes_the_gap_like_one_over_the_square_of_time() {
    // slopes seen over the decade: −1.98 to −2.00; descent with the same normalised steps closes it like 1/t
    for norm in [NormSpec::L2, NormSpec::Lp { p: 1.5 }] {
        for seed in 0..3 {
            let problem = Planted::new(norm.clone(), 6, (6, 24), seed);
            let bound = problem.bound(&norm);
            let run = problem.run(&accelerated(&norm), bound, 3000);
            let decade: Vec<(f64, f64)> =
                (300..=3000).map(|t| (f64::from(t).ln(), run[t as usize - 1].0.ln())).collect();
            let (slope, fit) = line(&decade);
            assert!((-2.4..-1.7).contains(&slope) && fit > 0.95, "{norm} seed {seed}: slope {slope}, R² {fit}");
            let plain = problem.run(&normalised_steepest(&norm), bound, 3000);
            assert!(
                run[2999].0 < 2e-5 && run[2999].0 < 0.01 * plain[2999].0,
                "{norm}: {:?} {:?}",
                run[2999],
                plain[2999]
            );
            assert!(run[2999].1 / problem.margin - 1.0 < 1e-4, "{norm}: dual bound {}", run[2999].1);
        }
    }
}

#[test]
fn a_norm_without_curvature_needs_a_modulus() {
    let layout = ParamLayout::new([("w", 3, 2)]).unwrap();
    for norm in [NormSpec::L1, NormSpec::Linf, NormSpec::Spectral, NormSpec::Lp { p: 3.0 }, NormSpec::GroupL21] {
        let error = accelerated(&norm).build(&layout).err().unwrap();
        assert_eq!(error, OptimiserError::NotStronglyConvex(norm.key()));
        assert!(error.to_string().contains("set modulus"), "{error}");
        assert!(OptimiserSpec::DualAcceleration { norm, modulus: Some(1.0) }.build(&layout).is_ok());
    }
    let error =
        OptimiserSpec::DualAcceleration { norm: NormSpec::L1, modulus: Some(0.0) }.build(&layout).err().unwrap();
    assert_eq!(error.to_string(), "dual-acceleration: modulus is 0, but must be positive and finite");
    // the spectral norm of a single vector is the Euclidean one
    assert!(accelerated(&NormSpec::Spectral).build(&ParamLayout::vector(4)).is_ok());
}

#[test]
fn progressive_rescaling_closes_the_gap_geometrically() {
    // well-conditioned problems of two and three support vectors in ℓ2; the numbers of steps to 1e-8 seen: 158 and 2341
    for (dimension, seed, within, per_step) in [(2, 3, 250, 0.05), (3, 0, 3000, 0.004)] {
        let problem = Planted::new(NormSpec::L2, dimension, (dimension, 24), seed);
        let bound = problem.bound(&NormSpec::L2);
        let run = problem.run(&OptimiserSpec::progressive_rescaling(NormSpec::L2), bound, within);
        let end = reaches(&run, 1e-8);
        assert!(end < within as usize, "{dimension}: {end}");
        let fall: Vec<(f64, f64)> = (20..end).map(|t| (t as f64, run[t].0.ln())).collect();
        let (slope, fit) = line(&fall);
        assert!(-slope > per_step && fit > 0.9, "{dimension}: slope {slope}, R² {fit}");
        let plain = problem.run(&normalised_steepest(&NormSpec::L2), bound, within);
        assert!(plain[end].0 > 1e4 * run[end].0, "{dimension}: {:?} {:?}", plain[end], run[end]);
    }
}

#[test]
fn a_solved_phase_bounds_the_gap_in_every_norm() {
    // γ − γ(θ) ≤ (tolerance + ln n)/R at the end of each phase; the radius reported there is already the next one
    for (norm, seed, level) in [
        (NormSpec::L2, 1, 1e-4),
        (NormSpec::Lp { p: 1.5 }, 1, 1e-4),
        (NormSpec::L1, 1, 1e-6),
        (NormSpec::Linf, 1, 1e-6),
    ] {
        let problem = Planted::new(norm.clone(), 4, (4, 24), seed);
        let run = problem.run(&OptimiserSpec::progressive_rescaling(norm.clone()), problem.bound(&NormSpec::L2), 2500);
        let mut phases = 0;
        for pair in run.windows(2) {
            let ((_, radius), (gap, next)) = (pair[0], pair[1]);
            assert!(gap > -1e-12, "{norm}: {gap}");
            if radius.is_finite() && next > radius {
                phases += 1;
                assert!(gap * problem.margin <= (0.1 + 28f64.ln()) / radius, "{norm}: {gap} at {radius}");
            }
        }
        assert!(phases >= 10 && run[2499].0 < level, "{norm}: {phases} phases, gap {}", run[2499].0);
    }
}

#[test]
fn phases_that_are_too_short_stall() {
    // the schedule of fixed length on a problem whose support vectors hardly vary in one direction
    let problem = Planted::new(NormSpec::L2, 4, (4, 24), 1);
    let run = |tolerance| {
        let (norm, growth, phase) = (NormSpec::L2, 1.2, 5);
        let spec = OptimiserSpec::ProgressiveRescaling { norm, growth, phase, warm_up: 20, tolerance, largest: 1e12 };
        problem.run(&spec, problem.bound(&NormSpec::L2), 2500)[2499]
    };
    let ((stalled, radius), (closing, _)) = (run(1e300), run(0.1));
    assert!(stalled > 1e-2 && radius == 1e12, "{stalled} at {radius}");
    assert!(closing < 1e-4, "{closing}");
}

#[test]
fn the_ball_grows_to_its_largest_radius_and_never_shrinks() {
    let layout = ParamLayout::vector(2);
    let spec = |largest| OptimiserSpec::ProgressiveRescaling {
        norm: NormSpec::L2,
        growth: 3.0,
        phase: 1,
        warm_up: 1,
        tolerance: 1e300,
        largest,
    };
    let sizes = |largest: f64| {
        let (mut optimiser, mut params) = (spec(largest).build(&layout).unwrap(), vec![0.0, 0.0]);
        let gradient = LogScaled { log_scale: -3000.0, direction: vec![-3.0, -4.0] };
        let context = StepContext { step: 0, epoch: 0, log_loss: -3000.0, all_correct: true };
        [0; 4].map(|_| {
            optimiser.step(&mut params, &gradient, &context, 3000.0).unwrap();
            (norm2(&params) * 1e9).round() / 1e9
        })
    };
    assert_eq!(sizes(100.0), [15.0, 45.0, 100.0, 100.0]);
    assert_eq!(sizes(1.0), [5.0, 5.0, 5.0, 5.0]); // the warm-up was already beyond
}

#[test]
fn fast_methods_are_written_in_few_words() {
    let read = |text: &str| serde_json::from_str::<OptimiserSpec>(text).unwrap();
    assert_eq!(read(r#"{"dual-acceleration": {}}"#), "dual-acceleration".parse().unwrap());
    assert_eq!(read(r#"{"progressive-rescaling": {}}"#), "progressive-rescaling".parse().unwrap());
    let spec = OptimiserSpec::progressive_rescaling(NormSpec::Linf);
    assert_eq!(read(&serde_json::to_string(&spec).unwrap()), spec);
    let layout = ParamLayout::vector(2);
    let text = r#"{"progressive-rescaling": {"growth": 1.0}}"#;
    let message = read(text).build(&layout).err().unwrap().to_string();
    assert_eq!(message, "progressive-rescaling: growth is 1, but must be above 1 and finite");
}
