//! The update of Adam (A eq. 75).

use super::adam_runs::{Leg, PAIRS, Who, task};
use super::images::{Images, images};
use crate::arithmetic::larger;
use crate::{ClaimError, Lab, Outcome};
use limitpoint::experiments::Task;
use limitpoint::numeric::LogScaled;

/// Compares Adam with sign descent and with its formula.
pub(super) fn update_rule(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let images = images(lab, PAIRS[0], 1)?;
    outcome.note(format!("Data: {}.", images.name));
    let sign = task(lab, 1, Leg::Constant, Who::Sign)?;
    let adam = task(lab, 1, Leg::Constant, Who::forgetful(0.0))?;
    compare_bits(lab, &images, &sign, &adam, &mut outcome)?;
    let settings = (0.9, 0.99, 1e-8);
    let with_memory = task(lab, 1, Leg::Constant, Who::Adam { memory: (0.9, 0.99), epsilon: 1e-8 })?;
    let away = compare_formula(lab, &images, &with_memory, settings, 200)?;
    outcome
        .at_most("largest distance from eq. 75 in plain arithmetic, relative to the step, 200 steps", away, 1e-9)
        .by_theory();
    Ok(outcome)
}

/// Sign descent and Adam without memory, step by step.
fn compare_bits(lab: &Lab, images: &Images, sign: &Task, adam: &Task, outcome: &mut Outcome) -> Result<(), ClaimError> {
    let (sign, data) = images.bind(sign);
    let (adam, _) = images.bind(adam);
    let mut objective = lab.objective(&sign, &data)?;
    let mut gradient = LogScaled::zeros(objective.layout().len());
    let mut first = lab.start_on(&sign, &data)?;
    let mut second = lab.start_on(&adam, &data)?;
    let (mut equal, mut zeros, mut nonzeros) = (0u64, 0usize, 0usize);
    let mut deepest = f64::NAN;
    // down to where the square of a gradient's smallest entries leaves the range of numbers
    while first.log_loss() > -40.0 * std::f64::consts::LN_10 && equal < 2_000 {
        objective.forward(first.params()).backward(first.params(), &mut gradient);
        zeros += gradient.direction.iter().filter(|g| **g == 0.0).count();
        nonzeros += gradient.direction.iter().filter(|g| **g != 0.0).count();
        first.advance()?;
        second.advance()?;
        let same = first.params().iter().zip(second.params()).all(|(a, b)| a.to_bits() == b.to_bits());
        if !same {
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
fn compare_formula(
    lab: &Lab,
    images: &Images,
    task: &Task,
    (beta1, beta2, epsilon): (f64, f64, f64),
    steps: i32,
) -> Result<f64, ClaimError> {
    const RATE: f64 = 3e-3;
    let (task, data) = images.bind(task);
    let mut objective = lab.objective(&task, &data)?;
    let mut process = lab.start_on(&task, &data)?;
    let mut theta = process.params().to_vec();
    let mut gradient = LogScaled::zeros(theta.len());
    let (mut m, mut v) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
    let mut away = 0.0;
    for t in 1..=steps {
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
