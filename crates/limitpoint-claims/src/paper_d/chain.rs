//! Appendix H: chain rules for networks that are not smooth everywhere.

use super::flows::{ON_FLOWS, join};
use crate::arithmetic::distance;
use crate::statistics::mean;
use crate::{Claim, ClaimError, Lab, Outcome};
use limitpoint::engine::{Compute, Forward, Kink, Tangents, cpu};
use limitpoint::experiments::Task;
use limitpoint::linalg::{Matrix, add_scaled, dot, norm2};
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
    try_out: chain_rules,
    ..ON_FLOWS
}];

fn chain_rules(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    inclusion(&mut outcome)?;
    along_kinks(&mut outcome)?;
    across_kinks(lab, &mut outcome)?;
    flows(lab, &mut outcome)?;
    Ok(outcome)
}

/// A two-layer ReLU network of three units on two examples, and weights with the first unit on the kink of the first
/// example.
pub(super) fn kinked() -> Result<Box<dyn Tangents>, ClaimError> {
    let inputs = Matrix::from_rows(&[&[1.0, 2.0], &[-1.0, 0.5]]);
    Ok(cpu::bind(&ModelSpec::relu(&[3]), inputs, 1, Compute::default())?)
}
pub(super) const AT_KINK: [f64; 9] = [2.0, -1.0, 0.3, 0.7, -0.4, 1.1, 0.9, -1.3, 0.6];

/// Gives slopes at kinks this share of their right side.
pub(super) fn weigh(model: &mut dyn Tangents, kinks: &[Kink], share: f64) {
    model.weigh_kinks(&kinks.iter().map(|kink| (*kink, share)).collect::<Vec<_>>());
}

/// Σ φ(qₙ) hₙ, the gradient of a composition with the outer slope φ.
fn composed(model: &mut dyn Tangents, theta: &[f64], slope: impl Fn(&f64) -> f64) -> Vec<f64> {
    let outer: Vec<f64> = model.scores(theta).iter().map(slope).collect();
    let mut gradient = vec![0.0; theta.len()];
    model.resume().pull_back(theta, &outer, &mut gradient);
    gradient
}

/// Theorem H.1 at a kink of the first unit: gradients of ln(1 + e^−q) at points nearby lie between those of both
/// slopes.
fn inclusion(outcome: &mut Outcome) -> Result<(), ClaimError> {
    let mut model = kinked()?;
    let kinks = model.kinks_near(&AT_KINK, 1e-12);
    let what = "kinks of a network whose first unit is orthogonal to an example";
    outcome.at_least(what, kinks.len() as f64, 1.0).by_theory();
    // ∂ of the composition: −Σ σ(−q) h with h of either slope at the kink
    let slope = |q: &f64| -1.0 / (1.0 + q.exp());
    let ends = [0.0, 1.0].map(|share| {
        weigh(&mut *model, &kinks, share);
        composed(&mut *model, &AT_KINK, slope)
    });
    weigh(&mut *model, &[], 0.0);
    let mut stream = Streams::new(2).stream("nearby");
    let apart = (0..200).map(|_| {
        let nearby = AT_KINK.map(|w| w + 1e-7 * stream.normal());
        let gradient = composed(&mut *model, &nearby, slope);
        ends.each_ref().map(|end| distance(end, &gradient))
    });
    let apart: Vec<[f64; 2]> = apart.collect();
    let nearer = apart.iter().map(|[left, right]| left.min(*right));
    let what = "limits of gradients near the kink, distance to a product of subgradients";
    outcome.largest(what, nearer, 1e-5).by_theory();
    let right = apart.iter().filter(|[left, right]| right < left).count();
    outcome.at_least("of 200 limits, those of the side seen less often", right.min(200 - right) as f64, 50.0);
    Ok(())
}

/// A curve that stays on the kink: the first unit stays orthogonal to the first example while everything else moves.
/// Every subgradient gives the derivative, although the subdifferential is not a point at any time.
fn along_kinks(outcome: &mut Outcome) -> Result<(), ClaimError> {
    let mut model = kinked()?;
    let curve = |t: f64| {
        let mut theta = AT_KINK;
        // multiples of (2, −1) are orthogonal to (1, 2), exactly for powers of two and their sums
        let length = 1.0 + t;
        (theta[0], theta[1]) = (2.0 * length, -length);
        theta.iter_mut().enumerate().skip(2).for_each(|(k, w)| *w += 0.3 * (k as f64 * t).sin());
        theta
    };
    let (mut on_kink, mut apart, mut errors, step) = (Vec::new(), Vec::new(), Vec::new(), 1e-5);
    for t in (1..=16).map(|k| f64::from(k) / 64.0) {
        let [theta, before, after] = [t, t - step, t + step].map(curve);
        let velocity: Vec<f64> =
            after.iter().zip(&before).map(|(after, before)| (after - before) / (2.0 * step)).collect();
        weigh(&mut *model, &[], 0.0);
        let [before, after] = [before, after].map(|theta| model.scores(&theta).iter().sum::<f64>());
        let derivative = (after - before) / (2.0 * step);
        let kinks = model.kinks_near(&theta, 1e-13);
        on_kink.push(f64::from(u8::from(!kinks.is_empty())));
        let gradients = [0.0, 0.3, 1.0].map(|share| {
            weigh(&mut *model, &kinks, share);
            composed(&mut *model, &theta, |_| 1.0)
        });
        errors.extend(gradients.iter().map(|gradient| (dot(gradient, &velocity) - derivative).abs()));
        apart.push(distance(&gradients[0], &gradients[2]));
    }
    outcome.near("share of times at which the curve is on a kink", mean(&on_kink), 1.0, 0.0).by_theory();
    outcome.exceeds("distance of the two ends of the subdifferential, largest", apart, 0.1);
    outcome.largest("|⟨h, z′⟩ − (Φ∘z)′| for all subgradients h along it", errors, 1e-8).by_theory();
    Ok(())
}

/// Curves a cos t + b sin t through the weights of networks with two and three layers: the chain rule of the loss holds
/// at all times but those where a preactivation changes its sign, which are counted.
fn across_kinks(lab: &Lab, outcome: &mut Outcome) -> Result<(), ClaimError> {
    for widths in ["[8]", "[6, 6]"] {
        let task = relu_task(lab, widths, 0)?;
        let data = lab.data(&task)?.train;
        let mut objective = lab.objective(&task, &data)?;
        let (layout, inputs) = (objective.layout().clone(), data.dense()?.into_owned());
        let (length, mut stream) = (layout.len(), Streams::new(11).stream("curves"));
        let [a, b] = [(); 2].map(|()| {
            let mut end = vec![0.0; length];
            stream.fill_normal(&mut end);
            end.into_iter().map(|w| 0.5 * w).collect::<Vec<f64>>()
        });
        let place = |t: f64| a.iter().zip(&b).map(|(a, b)| a * t.cos() + b * t.sin()).collect::<Vec<f64>>();
        let (count, mut gradient) = (lab.choose(2000, 20_000), LogScaled::zeros(length));
        let mut errors = Vec::new();
        for k in 0..count {
            let (t, step) = (std::f64::consts::TAU * (f64::from(k) + 0.5) / f64::from(count), 1e-5);
            let [theta, before, after] = [t, t - step, t + step].map(place);
            if signs(&layout, &inputs, &before) != signs(&layout, &inputs, &after) {
                continue;
            }
            let velocity: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b * t.cos() - a * t.sin()).collect();
            let [before, after] = [before, after].map(|theta| objective.forward(&theta).log_loss());
            objective.forward(&theta).backward(&theta, &mut gradient);
            let rate = dot(&gradient.direction, &velocity);
            let size = norm2(&gradient.direction) * norm2(&velocity);
            errors.push(((after - before) / (2.0 * step) - rate).abs() / size);
        }
        let share = (f64::from(count) - errors.len() as f64) / f64::from(count);
        let mut about = Outcome::default();
        about.largest("|⟨h, z′⟩ − (ln L∘z)′|, relative, off kinks", errors, 1e-6).by_theory();
        about.at_most(format!("share of {count} times within 1e-5 of a kink"), share, 0.01);
        join(outcome, &format!("widths {widths}"), about);
    }
    Ok(())
}

/// Lemma H.3 along gradient flow of ReLU networks, which soon slides along kinks: Euler's steps with the least
/// subgradient of all slopes within reach. With dτ = L dt, ln 1/L gains ∫ min‖∂ ln L‖² dτ. Steps that do not gain what
/// the lemma says are those that come to a kink or leave one; shorter steps make their share of the time smaller in
/// proportion.
fn flows(lab: &Lab, outcome: &mut Outcome) -> Result<(), ClaimError> {
    let (mut sliding, lengths) = (Vec::new(), [4e-3, 1e-3]);
    for seed in 0..lab.choose(3, 8) {
        let (task, what) = (relu_task(lab, "[8]", seed)?, format!("seed {seed}"));
        let found = [slide(lab, &task, lengths[0])?, slide(lab, &task, lengths[1])?];
        let [Some(coarse), Some(fine)] = found else {
            outcome.leave_out(what, "does not separate its data");
            continue;
        };
        let (count, mut about) = (fine.len(), Outcome::default());
        let total = |steps: &[[f64; 5]], k: usize| steps.iter().map(|step| step[k]).sum::<f64>();
        for (steps, length) in [(&coarse, lengths[0]), (&fine, lengths[1])] {
            let words = format!("{what}, steps of {length} ρ: gain of ln 1/L over ∫ min‖∂ ln L‖² dτ");
            outcome.near(words, total(steps, 0) / total(steps, 1), 1.0, 5.0 * length);
        }
        let (at_kinks, promised) = (total(&fine, 3) / count as f64, total(&fine, 2) / total(&fine, 0));
        let [often, rare] = [&coarse, &fine].map(|steps| total(steps, 4) / steps.len() as f64);
        let words = format!("share of the {count} steps of {} ρ that do not gain it, by 1 %", lengths[1]);
        about.at_most(words, rare, 0.1);
        about.at_most("that share over the one of steps four times as long", rare / often, 0.6);
        about.note(format!(
            "{:.0} % of the steps have a kink in reach; gradients of one side there would promise {promised:.2} times the \
             gain; {:.1} % of the steps are exceptions, {:.1} % of those four times as long",
            100.0 * at_kinks,
            100.0 * rare,
            100.0 * often
        ));
        join(outcome, &what, about);
        sliding.push(at_kinks);
    }
    outcome.at_least("flows that separate their data", sliding.len() as f64, 2.0);
    outcome.smallest("least share of steps of such a flow that have a kink in reach", sliding, 0.05);
    Ok(())
}

/// The steps of one relative length down to the loss of the task; nothing if it does not get there. Of each step: what it
/// gained of ln 1/L, h min‖∂ ln L‖², h ‖g₀‖² with the gradient g₀ of one side, whether a kink was in reach, and whether it
/// did not gain what its ends say.
fn slide(lab: &Lab, task: &Task, length: f64) -> Result<Option<Vec<[f64; 5]>>, ClaimError> {
    let data = lab.data(task)?.train;
    let mut objective = lab.objective(task, &data)?;
    let layout = objective.layout().clone();
    let mut norm = NormSpec::L2.build(&layout)?;
    let mut theta = task.setup()?.initial(&layout);
    let mut gradient = LogScaled::zeros(theta.len());
    let flag = |so: bool| f64::from(u8::from(so));
    let target = task.recipe.stop.log10_loss.unwrap_or(f64::NEG_INFINITY) * std::f64::consts::LN_10;
    let (mut steps, mut before) = (Vec::new(), None::<(f64, f64, Vec<f64>, [f64; 2])>);
    for _ in 0..lab.choose(20_000, 100_000) {
        objective.forward(&theta);
        let log_loss = objective.log_loss();
        objective.resume().backward(&theta, &mut gradient);
        let one_sided = gradient.direction.clone();
        let radius = length * norm2(&theta);
        let kinks = objective.kinks(&theta, radius);
        let mut least = one_sided.clone();
        if !kinks.is_empty() {
            let left: Vec<(Kink, f64)> = kinks.iter().map(|kink| (*kink, 0.0)).collect();
            objective.backward_at_kinks(&theta, &left, &mut gradient);
            let columns = objective.kink_columns(&theta, &kinks);
            least = minimum_norm(&mut *norm, &gradient.direction, &columns).gradient;
        }
        if let Some((then, time, old, [one_sided, at_kink])) = before.take() {
            let (gain, rule) = (then - log_loss, 0.5 * time * (dot(&old, &old) + dot(&old, &least)));
            let exception = flag((gain / rule - 1.0).abs() > 1e-2 || (gain / rule).is_nan());
            steps.push([gain, time * dot(&old, &old), one_sided, at_kink, exception]);
        }
        if log_loss <= target {
            return Ok(Some(steps));
        }
        let time = radius / norm2(&least);
        if !time.is_finite() {
            break;
        }
        add_scaled(&mut theta, -time, &least);
        before = Some((log_loss, time, least, [time * dot(&one_sided, &one_sided), flag(!kinks.is_empty())]));
    }
    Ok(None)
}

fn relu_task(lab: &Lab, widths: &str, seed: u64) -> Result<Task, ClaimError> {
    let network = ["model.activation=relu".to_owned(), format!("model.widths={widths}"), format!("seeds={seed}")];
    let small = ["data.count=8", "stop.log10_loss=-8"].map(str::to_owned);
    Ok(lab.tasks("d-flows", &[network.as_slice(), &small].concat())?.remove(0))
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
