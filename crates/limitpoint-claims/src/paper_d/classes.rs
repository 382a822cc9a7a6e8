//! Appendix F: many classes and the cross-entropy loss.

use super::flows::{ON_FLOWS, join, outward_share, since_separation, spare_gain};
use crate::arithmetic::smaller;
use crate::{Claim, ClaimError, Lab, Moments, Outcome, Series, Sketch, steepest};
use limitpoint::data::{DataSplit, Dataset, Targets};
use limitpoint::engine::Forward;
use limitpoint::experiments::Task;
use limitpoint::linalg::{Matrix, dot};
use limitpoint::numeric::{LogScaled, Streams, log_sum_exp};

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "D.F",
        covers: &["D.defF1", "D.lemF2"],
        statement: "With L = Σ ln(1 + Σⱼ e^{−sₙⱼ}), the negative log of the softmax of +Φ, the smoothed margin −ln(e^L − 1)/ρ^L never \
                    falls once L < ln 2, which classifies everything; ν obeys its bound and the margin that of Lemma 5.1",
        try_out: corrected,
        ..ON_FLOWS
    },
    Claim {
        id: "D.F.printed",
        statement: "The loss is Σ −ln(e^{−Φ_y}/Σⱼ e^{−Φⱼ}), the negative log of the softmax of −Φ",
        experiments: &["d-flows"],
        try_out: printed,
        ..Claim::MISPRINT
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
fn task(lab: &Lab, (widths, activation): (&str, &str)) -> Result<Task, ClaimError> {
    let network = [format!("model.widths={widths}"), format!("model.activation={activation}")];
    let [loss, seeds, steps] = ["loss=cross-entropy", "seeds=0", "stop.steps=20000"].map(str::to_owned);
    Ok(lab.tasks("d-flows", &[&[loss], network.as_slice(), &[seeds, steps]].concat())?.remove(0))
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
    for network in NETWORKS {
        let (task, data) = (task(lab, network)?, triangle(1, 12)?);
        let mut objective = lab.objective(&task, &data)?;
        let degree = objective.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
        let mut stream = Streams::new(7).stream("points");
        let mut theta = vec![0.0; objective.layout().len()];
        let mut gradient = LogScaled::zeros(theta.len());
        let [mut rewriting, mut euler, mut above, mut below] = [const { Vec::new() }; 4];
        for _ in 0..lab.choose(100, 1000) {
            stream.fill_normal(&mut theta);
            theta.iter_mut().for_each(|w| *w *= 0.7);
            let scores = objective.evaluator().scores(&theta).to_vec();
            objective.forward(&theta).backward(&theta, &mut gradient);
            let loss = objective.log_loss().exp();
            let direct = softmax_loss(&scores, &data, sign);
            rewriting.push((loss - direct).abs() / (1.0 + loss.abs().max(direct.abs())));
            let (mut nu, mut size) = (0.0, 0.0);
            for s in objective.margins().chunks_exact(CLASSES - 1) {
                let negative: Vec<f64> = s.iter().map(|s| -s).collect();
                // q̃ = −ln Σ e^−s lies between q − ln(C − 1) and q
                let (soft, hard) = (-log_sum_exp(&negative), s.iter().copied().fold(f64::INFINITY, smaller));
                above.push(soft - hard);
                below.push(hard - ((CLASSES - 1) as f64).ln() - soft);
                // Σ e^−s s/(1 + Σ e^−s), with the common factor e^−q̃ = Σ e^−s taken out
                let share = 1.0 / (1.0 + soft.exp());
                let terms = s.iter().map(|s| (soft - s).exp() * s * share);
                (nu, size) = terms.fold((nu, size), |(nu, size), x| (nu + x, size + x.abs()));
            }
            let outward = -dot(&theta, &gradient.direction) * gradient.log_scale.exp();
            euler.push((outward - degree * nu).abs() / (degree * size));
        }
        let (sign, mut about) = (if sign > 0.0 { "+Φ" } else { "−Φ" }, Outcome::default());
        let what = format!("Σ ln(1 + Σ e^−s) against the softmax of {sign}, relative");
        about.largest(what, rewriting, 1e-12).by_theory();
        about.largest("q̃ − q, largest", above, 1e-12).by_theory();
        about.largest("q − ln(C − 1) − q̃, largest", below, 1e-12).by_theory();
        about.largest("⟨θ, −∇L⟩ against L ν, relative", euler, 1e-10).by_theory();
        join(outcome, &format!("widths {}", network.0), about);
    }
    Ok(())
}

/// A loss below ln 2 means that the right class has the largest score, here of one example of the first class.
fn threshold(lab: &Lab, outcome: &mut Outcome, sign: f64) -> Result<(), ClaimError> {
    let inputs = Matrix::from_rows(&[&[1.0]]);
    let data = Dataset::new("one", inputs, Targets::Classes { labels: vec![0], count: CLASSES }, vec![1])?;
    let mut stream = Streams::new(3).stream("scores");
    let (mut right, mut wrong) = (Vec::new(), Vec::new());
    for _ in 0..lab.choose(10_000, 100_000) {
        let mut scores = [0.0; CLASSES];
        stream.fill_normal(&mut scores);
        let losses = if scores[0] > scores[1] && scores[0] > scores[2] { &mut right } else { &mut wrong };
        losses.push(softmax_loss(&scores, &data, sign));
    }
    let low = |losses: &[f64]| losses.iter().filter(|loss| **loss < 2f64.ln()).count() as f64;
    outcome.at_least("random scores whose loss is below ln 2", low(&right) + low(&wrong), 1000.0);
    outcome.at_most("of them, examples that are misclassified", low(&wrong), 0.0).by_theory();
    outcome.smallest("least loss of a misclassified example", wrong, 2f64.ln()).by_theory();
    Ok(())
}

fn printed(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    points(lab, &mut outcome, -1.0)?;
    threshold(lab, &mut outcome, -1.0)?;
    outcome.note(
        "By an exact example: with e^{−Φ} the scores (1, 0, 0) of class 1 cost ln(1 + 2e) and (0, 1, 1) cost ln(1 + 2/e) < ln 2, \
         so that the loss rewards the class with the smallest score.",
    );
    Ok(outcome)
}

fn corrected(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    points(lab, &mut outcome, 1.0)?;
    threshold(lab, &mut outcome, 1.0)?;
    let mut sketch =
        Sketch::new("d-classes", "Smoothed margin with three classes", "ln 1/L", "γ̃(t)/γ̃(t₀)").logarithmic(true, false);
    let mut separated = 0;
    for network in NETWORKS {
        for seed in 0..lab.choose(2, 5) {
            let task = task(lab, network)?;
            let split = DataSplit { train: triangle(seed, 12)?, test: None, truth: None };
            let flow = lab.series_on(&task, &split, Moments::every(1).separated(), steepest::columns(&task))?;
            let degree = flow.degree;
            let flow = flow.with("soft_margin", ["soft", "size"], |[soft, size]| soft / size.powf(degree));
            let what = format!("widths {}, seed {seed}", network.0);
            if !flow.complete() {
                outcome.leave_out(what, format!("stays at ln L = {:.2}", flow.end.log_loss));
                continue;
            }
            separated += 1;
            sketch = sketch.curve(&what, since_separation(&flow));
            join(&mut outcome, &what, along(&flow)?);
        }
    }
    outcome.at_least("flows that separate their examples and reach their loss", f64::from(separated), 3.0);
    outcome.sketch(sketch);
    Ok(outcome)
}

/// Lemma F.2 and Theorem 4.1 along one flow, from L < ln 2 on.
fn along(flow: &Series) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    // −ln(e^L − 1) as it is written, where e^L − 1 still has digits
    let early = flow.rows(["u", "soft"]).into_iter().filter(|[u, _]| *u < 30.0);
    let definition = early.map(|[u, soft]| (soft + (-u).exp().exp_m1().ln()).abs() / soft.max(1.0));
    outcome.largest("γ̃ρ^L against −ln(e^L − 1), relative", definition, 1e-12).by_theory();
    let smallest = flow.least("smallest");
    outcome.at_least("smallest margin at any time with L < ln 2", smallest, f64::MIN_POSITIVE).by_theory();
    outcome.never_falls("largest relative fall of γ̃", flow.column("soft_margin"), 1e-12).by_theory();
    outcome.smallest("ν g′/(g L), least", outward_share(flow)?, 1.0 - 1e-12).by_theory();
    outcome.smallest("gain of ln γ̃ minus L turn²/gain of ln ρ, least", spare_gain(flow), -1e-9).by_theory();
    Ok(outcome)
}
