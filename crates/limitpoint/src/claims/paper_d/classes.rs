//! Appendix F: many classes and the cross-entropy loss.

use crate::claims::arithmetic::{larger, smaller};
use crate::claims::trace::Trace;
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};
use crate::data::{Dataset, Targets};
use crate::engine::Forward;
use crate::experiments::Task;
use crate::linalg::{Matrix, dot};
use crate::numeric::{LogScaled, Streams, log_sum_exp};

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "D.F",
        covers: &["D.defF1", "D.lemF2"],
        statement: "With L = Σ ln(1 + Σⱼ e^{−sₙⱼ}), the negative log of the softmax of +Φ, the smoothed margin −ln(e^L − 1)/ρ^L never \
                    falls once L < ln 2, which classifies everything; ν obeys its bound and the margin that of Lemma 5.1",
        experiments: &["d-flows"],
        try_out: corrected,
    },
    Claim {
        id: "D.F.printed",
        covers: &[],
        statement: "The loss is Σ −ln(e^{−Φ_y}/Σⱼ e^{−Φⱼ}), the negative log of the softmax of −Φ",
        experiments: &["d-flows"],
        try_out: printed,
    },
];

const CLASSES: usize = 3;

/// Examples around the corners of a triangle, each with the class of its corner.
fn triangle(seed: u64, count: usize) -> Result<Dataset, ClaimError> {
    let mut stream = Streams::new(seed).stream("triangle");
    let corners = [[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]];
    let mut inputs = Matrix::zeros(count, 4);
    stream.fill_normal(&mut inputs.data);
    for n in 0..count {
        (0..2).for_each(|k| inputs[(n, k)] = corners[n % CLASSES][k] + 0.7 * inputs[(n, k)]);
        (2..4).for_each(|k| inputs[(n, k)] *= 0.7);
    }
    let targets = Targets::Classes { labels: (0..count).map(|n| n % CLASSES).collect(), count: CLASSES };
    Ok(Dataset::new("triangle", inputs, targets, vec![4])?)
}

/// The flow of the experiment with the cross-entropy loss.
fn tasks(lab: &Lab, widths: &str, activation: &str) -> Result<Vec<Task>, ClaimError> {
    let overrides = [
        "loss=cross-entropy".to_owned(),
        format!("model.widths={widths}"),
        format!("model.activation={activation}"),
        "seeds=0".to_owned(),
        "stop.steps=20000".to_owned(),
    ];
    lab.tasks("d-flows", &overrides)
}

/// Two layers that are smooth, three that are linear.
const NETWORKS: [(&str, &str); 2] = [("[8]", "relu-power(power=2)"), ("[5, 5]", "identity")];

/// Σₙ ln Σⱼ e^{sign·Φⱼ} − sign·Φ_y: the negative log of the softmax of sign·Φ.
fn softmax_loss(scores: &[f64], data: &Dataset, sign: f64) -> f64 {
    let Targets::Classes { labels, .. } = &data.targets else { return f64::NAN };
    let example = |(scores, label): (&[f64], &usize)| {
        let signed: Vec<f64> = scores.iter().map(|score| sign * score).collect();
        log_sum_exp(&signed) - signed[*label]
    };
    scores.chunks_exact(CLASSES).zip(labels).map(example).sum()
}

/// What holds at every point of weight space, with the softmax of `sign`·Φ.
fn points(lab: &Lab, outcome: &mut Outcome, sign: f64) -> Result<(), ClaimError> {
    for (widths, activation) in NETWORKS {
        let data = triangle(1, 12)?;
        let Some(task) = tasks(lab, widths, activation)?.into_iter().next() else { continue };
        let mut objective = lab.objective(&task, &data)?;
        let degree = objective.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
        let mut stream = Streams::new(7).stream("points");
        let mut theta = vec![0.0; objective.layout().len()];
        let mut gradient = LogScaled::zeros(theta.len());
        let [mut rewriting, mut euler, mut above, mut below] = [0.0, 0.0, f64::NEG_INFINITY, f64::NEG_INFINITY];
        for _ in 0..lab.choose(100, 1000) {
            stream.fill_normal(&mut theta);
            theta.iter_mut().for_each(|w| *w *= 0.7);
            let scores = objective.evaluator().scores(&theta).to_vec();
            objective.forward(&theta).backward(&theta, &mut gradient);
            let loss = objective.log_loss().exp();
            let direct = softmax_loss(&scores, &data, sign);
            rewriting = larger(rewriting, (loss - direct).abs() / (1.0 + loss.abs().max(direct.abs())));
            let (mut nu, mut size) = (0.0, 0.0);
            for s in objective.margins().chunks_exact(CLASSES - 1) {
                let negative: Vec<f64> = s.iter().map(|s| -s).collect();
                // q̃ = −ln Σ e^−s lies between q − ln(C − 1) and q
                let (soft, hard) = (-log_sum_exp(&negative), s.iter().copied().fold(f64::INFINITY, smaller));
                above = larger(above, soft - hard);
                below = larger(below, hard - ((CLASSES - 1) as f64).ln() - soft);
                // Σ e^−s s/(1 + Σ e^−s), with the common factor e^−q̃ = Σ e^−s taken out
                let share = 1.0 / (1.0 + soft.exp());
                let terms = s.iter().map(|s| (soft - s).exp() * s * share);
                (nu, size) = terms.fold((nu, size), |(nu, size), x| (nu + x, size + x.abs()));
            }
            let outward = -dot(&theta, &gradient.direction) * gradient.log_scale.exp();
            euler = larger(euler, (outward - degree * nu).abs() / (degree * size));
        }
        let sign = if sign > 0.0 { "+Φ" } else { "−Φ" };
        let what = format!("widths {widths}: Σ ln(1 + Σ e^−s) against the softmax of {sign}, relative");
        outcome.at_most(what, rewriting, 1e-12);
        outcome.at_most(format!("widths {widths}: q̃ − q, largest"), above, 1e-12);
        outcome.at_most(format!("widths {widths}: q − ln(C − 1) − q̃, largest"), below, 1e-12);
        outcome.at_most(format!("widths {widths}: ⟨θ, −∇L⟩ against L ν, relative"), euler, 1e-10);
    }
    Ok(())
}

/// A loss below ln 2 means that the right class has the largest score.
fn threshold(lab: &Lab, outcome: &mut Outcome, sign: f64) -> Result<(), ClaimError> {
    // scores of one example; a loss below ln 2 must mean that its class has the largest score
    let inputs = Matrix::from_rows(&[&[1.0]]);
    let data = Dataset::new("one", inputs, Targets::Classes { labels: vec![0], count: CLASSES }, vec![1])?;
    let mut stream = Streams::new(3).stream("scores");
    let (mut below, mut wrong, mut least) = (0usize, 0usize, f64::INFINITY);
    for _ in 0..lab.choose(10_000, 100_000) {
        let mut scores = [0.0; CLASSES];
        stream.fill_normal(&mut scores);
        let loss = softmax_loss(&scores, &data, sign);
        let right = scores[0] > scores[1] && scores[0] > scores[2];
        below += usize::from(loss < 2f64.ln());
        wrong += usize::from(loss < 2f64.ln() && !right);
        if !right {
            least = smaller(least, loss);
        }
    }
    outcome.at_least("random scores whose loss is below ln 2", below as f64, 1000.0);
    outcome.at_most("of them, examples that are misclassified", wrong as f64, 0.0);
    outcome.at_least("least loss of a misclassified example", least, 2f64.ln());
    Ok(())
}

fn printed(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    points(lab, &mut outcome, -1.0)?;
    threshold(lab, &mut outcome, -1.0)?;
    outcome
        .note("With e^{−Φ} the loss rewards the class with the smallest score, against the margins defined beside it.");
    Ok(outcome)
}

fn corrected(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    points(lab, &mut outcome, 1.0)?;
    threshold(lab, &mut outcome, 1.0)?;
    let mut sketch =
        Sketch::new("d-classes", "Smoothed margin with three classes", "ln 1/L", "γ̃(t)/γ̃(t₀)").logarithmic(true, false);
    let mut separated = 0;
    for (widths, activation) in NETWORKS {
        for seed in 0..lab.choose(2, 5) {
            let Some(task) = tasks(lab, widths, activation)?.into_iter().next() else { continue };
            let trace = Trace::on(lab, format!("widths {widths}, seed {seed}"), &task, triangle(seed, 12)?)?;
            if !trace.complete() {
                outcome.note(format!("{}: stays at ln L = {:.2}; not counted", trace.what, trace.end.log_loss));
                continue;
            }
            separated += 1;
            let curve = along(&mut outcome, &trace)?;
            sketch = sketch.curve(&trace.what, curve);
        }
    }
    outcome.at_least("flows that separate their examples and reach their loss", f64::from(separated), 3.0);
    outcome.sketch(sketch);
    Ok(outcome)
}

/// Lemma F.2 and Theorem 4.1 along one flow, from L < ln 2 on.
fn along(outcome: &mut Outcome, trace: &Trace) -> Result<Vec<[f64; 2]>, ClaimError> {
    let what = &trace.what;
    let loss = trace.end.task.recipe.loss.build()?;
    let Some(tail) = loss.tail() else { return Ok(Vec::new()) };
    // −ln(e^L − 1) as it is written, where e^L − 1 still has digits
    let early = trace.moments.iter().filter(|m| m.u < 30.0);
    let definition = early.map(|m| (m.soft + (-m.u).exp().exp_m1().ln()).abs() / m.soft.max(1.0)).fold(0.0, larger);
    outcome.at_most(format!("{what}: γ̃ρ^L against −ln(e^L − 1), relative"), definition, 1e-12);
    let least = trace.moments.iter().map(|m| m.smallest).fold(f64::INFINITY, smaller);
    outcome.at_least(format!("{what}: smallest margin at any time with L < ln 2"), least, f64::MIN_POSITIVE);
    outcome.at_most(format!("{what}: largest relative fall of γ̃"), trace.fall(|m| trace.soft_margin(m)), 1e-12);
    let ratio = |m: &crate::claims::trace::Moment| m.outward * tail.g_prime(m.u) / (trace.degree * m.soft);
    let bound = trace.moments.iter().map(ratio).fold(f64::INFINITY, smaller);
    outcome.at_least(format!("{what}: ν g′/(g L), least"), bound, 1.0 - 1e-12);
    let gain = |pair: &[crate::claims::trace::Moment]| {
        let cost = trace.degree * pair[1].turn.powi(2) / (pair[1].size / pair[0].size).ln();
        (trace.soft_margin(&pair[1]) / trace.soft_margin(&pair[0])).ln() - cost
    };
    let spared = trace.moments.windows(2).map(gain).fold(f64::INFINITY, smaller);
    outcome.at_least(format!("{what}: gain of ln γ̃ minus L turn²/gain of ln ρ, least"), spared, -1e-9);
    let start = trace.moments.first().map_or(f64::NAN, |m| trace.soft_margin(m));
    Ok(trace.moments.iter().step_by(5).map(|m| [m.u, trace.soft_margin(m) / start]).collect())
}
