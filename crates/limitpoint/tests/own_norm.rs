//! A norm written outside the crate: trained with, measured and judged. What `docs/extending.md` says it takes is here.

use limitpoint::data::{Dataset, Targets};
use limitpoint::diagnostics::{alignment, kkt_measure, normalised_margins, stationarity_residual};
use limitpoint::driver::{Batching, Descent, Process, run};
use limitpoint::engine::Compute;
use limitpoint::linalg::Matrix;
use limitpoint::losses::LossSpec;
use limitpoint::models::ModelSpec;
use limitpoint::norms::{Norm, NormSpec};
use limitpoint::numeric::Streams;
use limitpoint::objective::{Objective, Reduction};
use limitpoint::observers::StopRule;
use limitpoint::optimisers::{Scaling, Steepest};
use limitpoint::reference::{MarginProblem, solve_margin, solve_margin_in};
use limitpoint::schedules::ScheduleSpec;

/// max wᵢ|vᵢ|, whose dual norm is Σ |gᵢ|/wᵢ.
struct WeightedMaximum(Vec<f64>);

impl WeightedMaximum {
    /// λ with Σ excess(λ) = total, for a sum that falls in λ.
    fn threshold(total: f64, mut high: f64, excess: impl Fn(f64) -> f64) -> f64 {
        let mut low = -high;
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if excess(middle) > total { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }
}

impl Norm for WeightedMaximum {
    fn value(&mut self, v: &[f64]) -> f64 {
        v.iter().zip(&self.0).map(|(v, w)| w * v.abs()).fold(0.0, f64::max)
    }

    fn dual(&mut self, g: &[f64]) -> f64 {
        g.iter().zip(&self.0).map(|(g, w)| g.abs() / w).sum()
    }

    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        for ((out, g), w) in out.iter_mut().zip(g).zip(&self.0) {
            *out = if *g == 0.0 { 0.0 } else { -g.signum() / w };
        }
        self.dual(g)
    }

    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        let largest = self.value(at);
        out.copy_from_slice(target);
        if largest == 0.0 {
            return self.project_dual_ball(1.0, out);
        }
        // Σ μ sign(v) w over the entries that attain the maximum, μ ≥ 0, Σ μ = 1
        let active: Vec<usize> =
            (0..at.len()).filter(|&i| self.0[i] * at[i].abs() >= (1.0 - tolerance - 1e-14) * largest).collect();
        let share = |i: usize, price: f64| ((at[i].signum() * target[i] - price / self.0[i]) / self.0[i]).max(0.0);
        let bound = active.iter().map(|&i| self.0[i] * (target[i].abs() + self.0[i])).fold(0.0, f64::max);
        let price = Self::threshold(1.0, bound, |price| active.iter().map(|&i| share(i, price)).sum());
        out.fill(0.0);
        active.iter().for_each(|&i| out[i] = at[i].signum() * self.0[i] * share(i, price));
    }

    fn project_ball(&mut self, radius: f64, v: &mut [f64]) {
        v.iter_mut().zip(&self.0).for_each(|(v, w)| *v = v.clamp(-radius / w, radius / w));
    }

    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]) {
        if self.dual(v) <= radius {
            return;
        }
        let size = |v: f64, w: f64, price: f64| (v.abs() - price / w).max(0.0);
        let bound = v.iter().zip(&self.0).map(|(v, w)| v.abs() * w).fold(0.0, f64::max);
        let price = Self::threshold(radius, bound, |price| {
            v.iter().zip(&self.0).map(|(v, w)| size(*v, *w, price.max(0.0)) / w).sum()
        });
        v.iter_mut().zip(&self.0).for_each(|(v, w)| *v = v.signum() * size(*v, *w, price.max(0.0)));
    }
}

const WEIGHTS: [f64; 4] = [1.0, 2.0, 0.5, 3.0];

fn weighted() -> WeightedMaximum {
    WeightedMaximum(WEIGHTS.to_vec())
}

/// Examples that a hyperplane separates.
fn data() -> Dataset {
    let mut inputs = Matrix::zeros(12, 4);
    Streams::new(5).stream("own norm").fill_normal(&mut inputs.data);
    let labels: Vec<f64> = (0..12).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    for (i, y) in labels.iter().enumerate() {
        inputs[(i, 0)] = y * (0.5 + inputs[(i, 0)].abs());
    }
    Dataset::new("own norm", inputs, Targets::Binary(labels), vec![4]).unwrap()
}

#[test]
fn the_generic_solver_finds_the_margin_of_a_norm_from_outside() {
    let rows = MarginProblem::linear(&data(), NormSpec::Linf).unwrap().rows;
    let found = solve_margin_in(&mut weighted(), &rows).unwrap();
    assert!(found.bracket.lower > 0.0 && found.bracket.relative_gap() <= 1e-9, "{:?}", found.bracket);
    // max wᵢ|vᵢ| is ℓ∞ of u = wv, and ⟨h, v⟩ = ⟨h/w, u⟩: the library's own ℓ∞ solver gives the same number
    let mut scaled = rows.clone();
    for i in 0..scaled.rows {
        scaled.row_mut(i).iter_mut().zip(WEIGHTS).for_each(|(x, w)| *x /= w);
    }
    let layout = limitpoint::params::ParamLayout::vector(4);
    let known = solve_margin(&MarginProblem::new(scaled, NormSpec::Linf, layout).unwrap()).unwrap();
    assert!((found.bracket.lower / known.bracket.lower - 1.0).abs() < 1e-8);
}

#[test]
fn steepest_descent_in_a_norm_from_outside_maximises_its_margin() {
    let data = data();
    let objective =
        Objective::new(&data, &ModelSpec::Linear, &LossSpec::Exponential, Reduction::Sum, Compute::default()).unwrap();
    let optimiser = Box::new(Steepest::in_norm(Box::new(weighted()), Scaling::DualNorm, 4));
    let schedule = "flow-resolved".parse::<ScheduleSpec>().unwrap().build().unwrap();
    let start = vec![1e-3; 4];
    let mut descent = Descent::new(objective, optimiser, schedule, Batching::Full, start, &Streams::new(1)).unwrap();
    run(&mut descent, &[StopRule::LogLoss { target: -3000.0 }], &mut []).unwrap();

    let (mut norm, mut margin, mut cosine, mut kkt, mut residual) = (weighted(), 0.0, 0.0, 0.0, 0.0);
    descent.show(&mut |snapshot| {
        let point = &snapshot.point;
        margin = normalised_margins(point, norm.value(point.params)).hard;
        cosine = alignment(point, &mut norm);
        let measure = kkt_measure(point, &mut norm);
        kkt = measure.fenchel_young_gap / measure.objective;
        residual = stationarity_residual(point, &mut norm, 1e-2, &mut [vec![0.0; 4], vec![0.0; 4]]);
    });
    let rows = MarginProblem::linear(&data, NormSpec::Linf).unwrap().rows;
    let optimum = solve_margin_in(&mut norm, &rows).unwrap().bracket;
    assert!(margin <= optimum.upper * (1.0 + 1e-12), "nothing beats the optimum");
    assert!(margin >= 0.99 * optimum.lower, "{margin} of {optimum:?}");
    // 0.9601 and 0.0399 at this loss, both on their way to their limits; the bounds were set after they were seen
    assert!(cosine > 0.95 && kkt < 0.05, "{cosine} {kkt}");
    assert!(residual.is_finite() && residual >= 0.0, "{residual}");
}
