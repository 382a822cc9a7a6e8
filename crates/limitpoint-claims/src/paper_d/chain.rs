//! Appendix H: chain rules for networks that are not smooth everywhere.

use crate::arithmetic::larger;
use crate::{Claim, ClaimError, Lab, Outcome};
use limitpoint::engine::{Compute, Forward, Kink, cpu};
use limitpoint::experiments::Task;
use limitpoint::linalg::{Matrix, dot};
use limitpoint::models::ModelSpec;
use limitpoint::norms::NormSpec;
use limitpoint::numeric::{LogScaled, Streams};
use limitpoint::optimisers::minimum_norm;
use limitpoint::params::ParamLayout;

pub(super) const CLAIMS: [Claim; 1] = [Claim {
    id: "D.H",
    covers: &["D.thmH1", "D.lemH3", "D.thmH4"],
    statement: "A ReLU network and its loss have a chain rule along curves, with every subgradient where a curve stays on a kink; \
                along its flow, which slides along kinks, dL/dt = −min‖∂L‖² at almost all times",
    experiments: &["d-flows"],
    try_out: chain_rules,
    ..Claim::FORMULA
}];

fn chain_rules(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    inclusion(&mut outcome)?;
    along_kinks(&mut outcome)?;
    across_kinks(lab, &mut outcome)?;
    flows(lab, &mut outcome)?;
    Ok(outcome)
}

/// A two-layer ReLU network of three units on two examples, the first unit on the kink of the first example.
pub(super) const INPUTS: [&[f64]; 2] = [&[1.0, 2.0], &[-1.0, 0.5]];
pub(super) const AT_KINK: [f64; 9] = [2.0, -1.0, 0.3, 0.7, -0.4, 1.1, 0.9, -1.3, 0.6];

/// Theorem H.1 at a kink of the first unit: gradients of ln(1 + e^−q) at points nearby lie between those of both
/// slopes.
fn inclusion(outcome: &mut Outcome) -> Result<(), ClaimError> {
    let mut model = cpu::bind(&ModelSpec::relu(&[3]), Matrix::from_rows(&INPUTS), 1, Compute::default())?;
    let kinks = model.kinks_near(&AT_KINK, 1e-12);
    outcome
        .at_least("kinks of a network whose first unit is orthogonal to an example", kinks.len() as f64, 1.0)
        .by_theory();
    // ∂ of the composition: −Σ σ(−q) h with h of either slope at the kink
    let mut composed = |theta: &[f64], share: f64, kinks: &[Kink]| {
        model.weigh_kinks(&kinks.iter().map(|kink| (*kink, share)).collect::<Vec<_>>());
        let outer: Vec<f64> = model.scores(theta).iter().map(|q| -1.0 / (1.0 + q.exp())).collect();
        let mut gradient = vec![0.0; theta.len()];
        model.resume().pull_back(theta, &outer, &mut gradient);
        gradient
    };
    let ends = [composed(&AT_KINK, 0.0, &kinks), composed(&AT_KINK, 1.0, &kinks)];
    let mut stream = Streams::new(2).stream("nearby");
    let (mut worst, mut seen) = (0.0, [0usize; 2]);
    for _ in 0..200 {
        let mut nearby = AT_KINK;
        nearby.iter_mut().for_each(|w| *w += 1e-7 * stream.normal());
        let gradient = composed(&nearby, 0.0, &[]);
        let apart = ends.each_ref().map(|end| crate::arithmetic::distance(end, &gradient));
        worst = larger(worst, apart[0].min(apart[1]));
        seen[usize::from(apart[1] < apart[0])] += 1;
    }
    outcome
        .at_most("limits of gradients near the kink, distance to a product of subgradients", worst, 1e-5)
        .by_theory();
    outcome.at_least("of 200 limits, those of the side seen less often", seen[0].min(seen[1]) as f64, 50.0);
    Ok(())
}

/// A curve that stays on the kink: the first unit stays orthogonal to the first example while everything else moves.
/// Every subgradient gives the derivative, although the subdifferential is not a point at any time.
fn along_kinks(outcome: &mut Outcome) -> Result<(), ClaimError> {
    let mut model = cpu::bind(&ModelSpec::relu(&[3]), Matrix::from_rows(&INPUTS), 1, Compute::default())?;
    let curve = |t: f64| {
        let mut theta = AT_KINK;
        // multiples of (2, −1) are orthogonal to (1, 2), exactly for powers of two and their sums
        let length = 1.0 + t;
        (theta[0], theta[1]) = (2.0 * length, -length);
        theta.iter_mut().enumerate().skip(2).for_each(|(k, w)| *w += 0.3 * (k as f64 * t).sin());
        theta
    };
    let (mut on_kink, mut apart, mut worst) = (0usize, 0.0, 0.0);
    let times: Vec<f64> = (1..=16).map(|k| f64::from(k) / 64.0).collect();
    for &t in &times {
        let (theta, step) = (curve(t), 1e-5);
        let velocity: Vec<f64> = curve(t + step)
            .iter()
            .zip(&curve(t - step))
            .map(|(after, before)| (after - before) / (2.0 * step))
            .collect();
        model.weigh_kinks(&[]);
        let mut score = |t: f64| model.scores(&curve(t)).iter().sum::<f64>();
        let derivative = (score(t + step) - score(t - step)) / (2.0 * step);
        let kinks: Vec<Kink> = model.kinks_near(&theta, 1e-13);
        on_kink += usize::from(!kinks.is_empty());
        let mut gradients = Vec::new();
        for share in [0.0, 0.3, 1.0] {
            model.weigh_kinks(&kinks.iter().map(|kink| (*kink, share)).collect::<Vec<_>>());
            model.scores(&theta);
            let mut gradient = vec![0.0; theta.len()];
            model.resume().pull_back(&theta, &[1.0, 1.0], &mut gradient);
            worst = larger(worst, (dot(&gradient, &velocity) - derivative).abs());
            gradients.push(gradient);
        }
        apart = larger(apart, crate::arithmetic::distance(&gradients[0], &gradients[2]));
    }
    outcome
        .near("share of times at which the curve is on a kink", on_kink as f64 / times.len() as f64, 1.0, 0.0)
        .by_theory();
    outcome.at_least("distance of the two ends of the subdifferential, largest", apart, 0.1);
    outcome.at_most("|⟨h, z′⟩ − (Φ∘z)′| for all subgradients h along it", worst, 1e-8).by_theory();
    Ok(())
}

/// Curves a cos t + b sin t through the weights of networks with two and three layers: the chain rule of the loss holds
/// at all times but those where a preactivation changes its sign, which are counted.
fn across_kinks(lab: &Lab, outcome: &mut Outcome) -> Result<(), ClaimError> {
    for widths in ["[8]", "[6, 6]"] {
        let Some(task) = relu_tasks(lab, widths, "seeds=0")?.into_iter().next() else { continue };
        let data = lab.data(&task)?.train;
        let mut objective = lab.objective(&task, &data)?;
        let (layout, inputs) = (objective.layout().clone(), data.dense()?.into_owned());
        let length = layout.len();
        let mut stream = Streams::new(11).stream("curves");
        let (mut ends, mut gradient) = ([vec![0.0; length], vec![0.0; length]], LogScaled::zeros(length));
        ends.iter_mut().for_each(|end| stream.fill_normal(end));
        let [a, b] = ends.map(|end| end.into_iter().map(|w| 0.5 * w).collect::<Vec<f64>>());
        let place = |t: f64| a.iter().zip(&b).map(|(a, b)| a * t.cos() + b * t.sin()).collect::<Vec<f64>>();
        let count = lab.choose(2000, 20_000);
        let (mut kinked, mut worst) = (0usize, 0.0);
        for k in 0..count {
            let (t, step) = (std::f64::consts::TAU * (f64::from(k) + 0.5) / f64::from(count), 1e-5);
            let sides = [t - step, t + step].map(|t| signs(&layout, &inputs, &place(t)));
            if sides[0] != sides[1] {
                kinked += 1;
                continue;
            }
            let theta = place(t);
            let velocity: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b * t.cos() - a * t.sin()).collect();
            let [before, after] = [t - step, t + step].map(|t| {
                objective.forward(&place(t));
                objective.log_loss()
            });
            objective.forward(&theta).backward(&theta, &mut gradient);
            let rate = dot(&gradient.direction, &velocity);
            let size = limitpoint::linalg::norm2(&gradient.direction) * limitpoint::linalg::norm2(&velocity);
            worst = larger(worst, ((after - before) / (2.0 * step) - rate).abs() / size);
        }
        outcome
            .at_most(format!("widths {widths}: |⟨h, z′⟩ − (ln L∘z)′|, relative, off kinks"), worst, 1e-6)
            .by_theory();
        let share = kinked as f64 / f64::from(count);
        outcome.at_most(format!("widths {widths}: share of {count} times within 1e-5 of a kink"), share, 0.01);
    }
    Ok(())
}

/// Lemma H.3 along gradient flow of ReLU networks, which soon slides along kinks: Euler's steps with the least
/// subgradient of all slopes within reach. With dτ = L dt, ln 1/L gains ∫ min‖∂ ln L‖² dτ. Steps that do not gain what
/// the lemma says are those that come to a kink or leave one; shorter steps make their share of the time smaller in
/// proportion.
fn flows(lab: &Lab, outcome: &mut Outcome) -> Result<(), ClaimError> {
    let (mut runs, mut sliding) = (0usize, f64::INFINITY);
    for seed in 0..lab.choose(3, 8) {
        let Some(task) = relu_tasks(lab, "[8]", &format!("seeds={seed}"))?.into_iter().next() else { continue };
        let lengths = [4e-3, 1e-3];
        let found = [slide(lab, &task, lengths[0])?, slide(lab, &task, lengths[1])?];
        let [Some(coarse), Some(fine)] = found else {
            outcome.leave_out(format!("seed {seed}"), "does not separate its data");
            continue;
        };
        runs += 1;
        sliding = sliding.min(fine.at_kinks);
        for (slide, length) in [(&coarse, lengths[0]), (&fine, lengths[1])] {
            let what = format!("seed {seed}, steps of {length} ρ: gain of ln 1/L over ∫ min‖∂ ln L‖² dτ");
            outcome.near(what, slide.gain / slide.promised, 1.0, 5.0 * length);
        }
        let what =
            format!("seed {seed}: share of the {} steps of {} ρ that do not gain it, by 1 %", fine.steps, lengths[1]);
        outcome.at_most(what, fine.exceptions, 0.1);
        let what = format!("seed {seed}: that share over the one of steps four times as long");
        outcome.at_most(what, fine.exceptions / coarse.exceptions, 0.6);
        outcome.note(format!(
            "seed {seed}: {:.0} % of the steps have a kink in reach; gradients of one side there would promise {:.2} times the \
             gain; {:.1} % of the steps are exceptions, {:.1} % of those four times as long",
            100.0 * fine.at_kinks,
            fine.one_sided / fine.gain,
            100.0 * fine.exceptions,
            100.0 * coarse.exceptions
        ));
    }
    outcome.at_least("flows that separate their data", runs as f64, 2.0);
    outcome.at_least("least share of steps of such a flow that have a kink in reach", sliding, 0.05);
    Ok(())
}

/// What a flow of steps of one relative length gained, and what was promised.
struct Slide {
    steps: usize,
    /// Of ln 1/L.
    gain: f64,
    /// Σ h min‖∂ ln L‖².
    promised: f64,
    /// Σ h ‖g₀‖² with the gradient g₀ of one side.
    one_sided: f64,
    /// Share of steps with a kink in reach.
    at_kinks: f64,
    /// Share of steps that do not gain what the ends of the step say.
    exceptions: f64,
}

/// Follows the flow until the loss of the task; nothing if it does not get there.
fn slide(lab: &Lab, task: &Task, length: f64) -> Result<Option<Slide>, ClaimError> {
    let data = lab.data(task)?.train;
    let mut objective = lab.objective(task, &data)?;
    let layout = objective.layout().clone();
    let mut norm = NormSpec::L2.build(&layout)?;
    let mut theta = task.setup()?.initial(&layout);
    let mut gradient = LogScaled::zeros(theta.len());
    let target = task.recipe.stop.log10_loss.unwrap_or(f64::NEG_INFINITY) * std::f64::consts::LN_10;
    let mut slide = Slide { steps: 0, gain: 0.0, promised: 0.0, one_sided: 0.0, at_kinks: 0.0, exceptions: 0.0 };
    let mut before: Option<(f64, f64, Vec<f64>)> = None;
    for _ in 0..lab.choose(20_000, 100_000) {
        objective.forward(&theta);
        let log_loss = objective.log_loss();
        objective.resume().backward(&theta, &mut gradient);
        let one_sided = gradient.direction.clone();
        let radius = length * limitpoint::linalg::norm2(&theta);
        let kinks = objective.kinks(&theta, radius);
        let least = if kinks.is_empty() {
            one_sided.clone()
        } else {
            let left: Vec<(Kink, f64)> = kinks.iter().map(|kink| (*kink, 0.0)).collect();
            objective.backward_at_kinks(&theta, &left, &mut gradient);
            let columns = objective.kink_columns(&theta, &kinks);
            minimum_norm(&mut *norm, &gradient.direction, &columns).gradient
        };
        if let Some((then, time, old)) = before.take() {
            let (gain, rule) = (then - log_loss, 0.5 * time * (dot(&old, &old) + dot(&old, &least)));
            slide.exceptions += f64::from(u8::from((gain / rule - 1.0).abs() > 1e-2 || (gain / rule).is_nan()));
            slide.gain += gain;
            slide.promised += time * dot(&old, &old);
        }
        if log_loss <= target {
            let steps = slide.steps as f64;
            (slide.at_kinks, slide.exceptions) = (slide.at_kinks / steps, slide.exceptions / steps);
            return Ok(Some(slide));
        }
        let time = radius / limitpoint::linalg::norm2(&least);
        if !time.is_finite() {
            break;
        }
        slide.steps += 1;
        slide.at_kinks += f64::from(u8::from(!kinks.is_empty()));
        slide.one_sided += time * dot(&one_sided, &one_sided);
        limitpoint::linalg::add_scaled(&mut theta, -time, &least);
        before = Some((log_loss, time, least));
    }
    Ok(None)
}

fn relu_tasks(lab: &Lab, widths: &str, seeds: &str) -> Result<Vec<Task>, ClaimError> {
    lab.tasks(
        "d-flows",
        &[
            "model.activation=relu".to_owned(),
            format!("model.widths={widths}"),
            seeds.to_owned(),
            "data.count=8".to_owned(),
            "stop.log10_loss=-8".to_owned(),
        ],
    )
}

/// Which preactivations are positive: where this is the same at both ends of a short piece, no kink is between them.
fn signs(layout: &ParamLayout, inputs: &Matrix, params: &[f64]) -> Vec<bool> {
    let layers = layout.blocks().len();
    let mut all = Vec::new();
    for n in 0..inputs.rows {
        let mut input = inputs.row(n).to_vec();
        // the last layer has no kinks
        for block in layout.blocks().iter().take(layers.saturating_sub(1)) {
            input = params[block.range()].chunks_exact(block.cols).map(|row| dot(row, &input)).collect();
            all.extend(input.iter().map(|z| *z > 0.0));
            input.iter_mut().for_each(|z| *z = z.max(0.0));
        }
    }
    all
}
