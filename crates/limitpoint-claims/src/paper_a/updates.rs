//! The updates of Adam (A eq. 75) and of Shampoo (A eqs 76 and 77).

use super::adam_runs::{Leg, PAIRS, Who, task};
use super::images::{Images, images};
use crate::arithmetic::{distance, larger};
use crate::{ClaimError, Lab, Outcome};
use limitpoint::linalg::{Eigen, Svd, matmul, matmul_nt, matmul_tn, symmetric_function};
use limitpoint::numeric::{LogScaled, Streams};
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::params::ParamLayout;
use limitpoint::schedules::StepContext;

/// Compares Adam with sign descent and with its formula.
pub(super) fn adam(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, images) = (Outcome::default(), images(lab, PAIRS[0], 1)?);
    outcome.note(format!("Data: {}.", images.name));
    compare_bits(lab, &images, &mut outcome)?;
    let what = "largest distance from eq. 75 in plain arithmetic, relative to the step, 200 steps";
    outcome.at_most(what, distance_from_formula(lab, &images)?, 1e-9).by_theory();
    Ok(outcome)
}

/// Sign descent and Adam without memory, step by step.
fn compare_bits(lab: &Lab, images: &Images, outcome: &mut Outcome) -> Result<(), ClaimError> {
    let (sign, data) = images.bind(task(lab, 1, Leg::Constant, Who::Sign)?);
    let (adam, _) = images.bind(task(lab, 1, Leg::Constant, Who::forgetful(0.0))?);
    let mut objective = lab.objective(&sign, data)?;
    let mut gradient = LogScaled::zeros(objective.layout().len());
    let (mut first, mut second) = (lab.start_on(&sign, data)?, lab.start_on(&adam, data)?);
    let (mut equal, mut zeros, mut nonzeros, mut deepest) = (0, 0, 0, f64::NAN);
    // down to where the square of a gradient's smallest entries leaves the range of numbers
    while first.log_loss() > -40.0 * std::f64::consts::LN_10 && equal < 2_000 {
        objective.forward(first.params()).backward(first.params(), &mut gradient);
        let still = gradient.direction.iter().filter(|g| **g == 0.0).count();
        zeros += still;
        nonzeros += gradient.direction.len() - still;
        first.advance()?;
        second.advance()?;
        if first.params().iter().zip(second.params()).any(|(a, b)| a.to_bits() != b.to_bits()) {
            break;
        }
        equal += 1;
        deepest = first.log_loss() / std::f64::consts::LN_10;
    }
    outcome.at_most("log₁₀ L down to which all weights agree bit for bit", deepest, -40.0);
    outcome.note(format!("{equal} steps; {nonzeros} entries of gradients were not 0, {zeros} were 0 and stayed put."));
    outcome.at_least("entries 0/0 on the way", zeros as f64, 1.0);
    Ok(())
}

/// The largest distance between the weights of a run and those of eq. 75 written out, in units of the step size.
fn distance_from_formula(lab: &Lab, images: &Images) -> Result<f64, ClaimError> {
    const RATE: f64 = 3e-3;
    let (beta1, beta2, epsilon) = (0.9f64, 0.99f64, 1e-8);
    let adam = Who::Adam { memory: (beta1, beta2), epsilon };
    let (task, data) = images.bind(task(lab, 1, Leg::Constant, adam)?);
    let mut objective = lab.objective(&task, data)?;
    let mut process = lab.start_on(&task, data)?;
    let mut theta = process.params().to_vec();
    let mut gradient = LogScaled::zeros(theta.len());
    let (mut m, mut v, mut away) = (vec![0.0; theta.len()], vec![0.0; theta.len()], 0.0);
    for t in 1..=200 {
        objective.forward(&theta).backward(&theta, &mut gradient);
        for (i, g) in gradient.times_exp(0.0).into_iter().enumerate() {
            m[i] = beta1 * m[i] + (1.0 - beta1) * g;
            v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
            let (m_hat, v_hat) = (m[i] / (1.0 - beta1.powi(t)), v[i] / (1.0 - beta2.powi(t)));
            theta[i] -= RATE * m_hat / (v_hat.sqrt() + epsilon);
        }
        process.advance()?;
        let apart = theta.iter().zip(process.params()).map(|(a, b)| (a - b).abs() / RATE);
        away = apart.fold(away, larger);
        // go on from the same point, so that roundings do not grow over kinks
        theta.copy_from_slice(process.params());
    }
    Ok(away)
}

/// Compares three ways to the update of Shampoo: powers of L and R, the singular value decomposition, the optimiser.
pub(super) fn shampoo(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, mut stream) = (Outcome::default(), Streams::new(1).stream("shampoo"));
    let (height, width) = lab.choose((24, 40), (128, 200));
    for (words, rows, cols, rank) in [
        ("full rank, square", height, height, height),
        ("full rank, tall", width, height, height),
        ("full rank, wide", height, width, height),
        ("lacking rank", height, width, height / 3),
        ("rank one", width, height, 1),
    ] {
        let mut normal = |length: usize| {
            let mut entries = vec![0.0; length];
            stream.fill_normal(&mut entries);
            entries
        };
        let (left, right) = (normal(rows * rank), normal(rank * cols));
        let g = if rank == rows.min(cols) { normal(rows * cols) } else { times(&left, &right, [rows, rank, cols]) };
        let (mut svd, mut polar) = (Svd::new(rows, cols), vec![0.0; g.len()]);
        svd.factor(&g)?;
        svd.recompose(|k, _| if k < rank { 1.0 } else { 0.0 }, &mut polar);
        let powers = by_powers(&g, rows, cols, rank)?;
        let what = format!("{words}: L^−¼GR^−¼ and UVᵀ, largest distance");
        outcome.at_most(what, distance(&powers, &polar), 1e-8).by_theory();
        // small gradients are no harder than large ones, and the first step with memory has none to remember
        for (form, accumulate, log_scale) in [
            ("without memory", false, 0.0),
            ("without memory, G times e^−2000", false, -2000.0),
            ("first step", true, 0.0),
        ] {
            let update = step(&g, rows, cols, accumulate, log_scale)?;
            let name = format!("{words}: Shampoo {form}");
            outcome.at_most(format!("{name}, distance to UVᵀ"), distance(&update, &polar), 1e-8).by_theory();
            svd.factor(&update)?;
            outcome.near(format!("{name}, spectral norm"), svd.values()[0], 1.0, 1e-8).by_theory();
        }
    }
    outcome.note("Powers are those of the pseudo-inverse: directions outside the range of G do not move.");
    Ok(outcome)
}

/// AB of an m×k and a k×n matrix.
fn times(a: &[f64], b: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    matmul(&mut out, a, b, m, k, n);
    out
}

/// L^−¼ G R^−¼ with pseudo-inverse powers of L = GGᵀ and R = GᵀG.
fn by_powers(g: &[f64], rows: usize, cols: usize, rank: usize) -> Result<Vec<f64>, ClaimError> {
    let (mut l, mut r) = (vec![0.0; rows * rows], vec![0.0; cols * cols]);
    matmul_nt(&mut l, g, g, rows, cols, rows);
    matmul_tn(&mut r, g, g, cols, rows, cols);
    let power = |a: &[f64], size: usize| {
        let mut eigen = Eigen::new(size);
        eigen.factor(a)?;
        // of ascending eigenvalues the last `rank` are not rounding
        let values = eigen.values();
        let floor = if rank < size { (values[size - rank] * values[size - rank - 1].abs()).sqrt() } else { 0.0 };
        symmetric_function(a, size, |value| if value > floor { value.powf(-0.25) } else { 0.0 })
    };
    let half = times(&power(&l, rows)?, g, [rows, rows, cols]);
    Ok(times(&half, &power(&r, cols)?, [rows, cols, cols]))
}

/// What Shampoo subtracts from weights 0 in a first step of size 1 along e^`log_scale` G.
fn step(g: &[f64], rows: usize, cols: usize, accumulate: bool, log_scale: f64) -> Result<Vec<f64>, ClaimError> {
    let layout = ParamLayout::new([("w", rows, cols)])?;
    let mut shampoo = OptimiserSpec::Shampoo { accumulate, epsilon: 0.0, power: 0.25 }.build(&layout)?;
    let gradient = LogScaled { log_scale, direction: g.to_vec() };
    let context = StepContext { step: 0, epoch: 0, log_loss: 0.0, all_correct: false };
    let mut params = vec![0.0; g.len()];
    shampoo.step(&mut params, &gradient, &context, 0.0)?;
    Ok(params.into_iter().map(|x| -x).collect())
}
