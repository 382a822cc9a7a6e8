//! Appendix K: how losses far below the smallest double are computed, and how far down that reaches.

use super::courses::{ADAPTED, ADAPTED_BIASED, LEVELS, Network, courses};
use super::flows::join;
use crate::arithmetic::larger;
use crate::{Check, Claim, ClaimError, Lab, Outcome};
use limitpoint::losses::LossSpec;
use limitpoint::numeric::LogScaled;

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "D.algK1",
        statement: "The rate α/L with α grown by 2^(1/5) after an epoch that lowers the loss, and shrunk by 2^(1/10) after one that \
                    does not, which is done again from its first weights, lowers the loss from epoch to epoch",
        experiments: &["d-digits"],
        try_out: loss_based_rate,
        ..Claim::FINDING
    },
    Claim {
        id: "D.algK2",
        statement: "The loss relative to that of the epoch before, R = L e^{−F}, has all its digits at any loss; a step η̂ on R is a step \
                    η = η̂ e^{−F} on L; log₁₀ L = −10,000 can be reached",
        experiments: &["d-digits"],
        try_out: relative_loss,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.algK2.printed",
        statement: "A step η̂ on R = L e^{−F} is a step η = η̂ e^{+F} on L",
        experiments: &["d-digits"],
        try_out: printed_sign,
        ..Claim::MISPRINT
    },
];

fn loss_based_rate(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, courses) = (Outcome::default(), courses(lab, Network::Dense)?);
    for course in [ADAPTED, ADAPTED_BIASED].map(|place| &courses[place]) {
        let (accepted, rejected, mut about) = (course.accepted, course.rejected, Outcome::default());
        let what = format!("accepted epochs, of {accepted}, that did not lower the loss");
        about.at_most(what, course.risen as f64, 0.0).by_paper();
        let what = format!("rejected epochs, of {rejected}, that did not end where they began");
        about.at_most(what, course.displaced as f64, 0.0).by_paper();
        about.at_least("rejected epochs", rejected as f64, 1.0);
        about.at_most("ln α against the rule, largest difference", course.rate_error, 1e-9).by_paper();
        join(&mut outcome, &course.what, about);
    }
    outcome.note(
        "A failed epoch is done again with a new order of the images. The rate settles where about two epochs of three fail, since \
         one success makes up for two failures.",
    );
    Ok(outcome)
}

/// q and ln of the mean cross-entropy of margins q (1 + n/8 + j/16), n < 4, j < 9, computed with 60 decimal digits.
const PRECISE: [(f64, f64); 8] = [
    (1.0, 0.143_633_120_682_565_83),
    (5.0, -4.460_503_904_818_572),
    (20.0, -20.963_122_721_967_94),
    (29.0, -30.181_059_750_092_914),
    (31.0, -32.209_762_563_435_61),
    (100.0, -101.384_358_314_595_44),
    (700.0, -701.386_294_361_119_9),
    (3000.0, -3_001.386_294_361_12),
];

fn relative_loss(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let loss = LossSpec::CrossEntropy.build()?;
    let mut apart = Vec::new();
    for (q, expected) in PRECISE {
        let margins: Vec<f64> =
            (0..4).flat_map(|n| (0..9).map(move |j| q * (1.0 + f64::from(n) / 8.0 + f64::from(j) / 16.0))).collect();
        let mean = loss.log_loss(&margins, 9) - 4f64.ln();
        apart.push((mean - expected).abs() / expected.abs().max(1.0));
        if q > 30.0 {
            // the branch of appendix K: ln(1 + x) ≈ x, wrong by at most x/2
            let short: f64 = margins.iter().map(|s| (-(s + mean)).exp()).sum::<f64>() / 4.0;
            let bound = 4.5 * (-30f64).exp() + 1e-12;
            let what = format!("margins from {q}: R by the short form, error");
            let asked = "4.2e-13, that without the 1e-12 of rounding";
            outcome.at_most(what, (short - 1.0).abs(), bound).by_theory().catalogue_asks(asked);
        }
    }
    outcome.largest("ln L against 60 digits, margins from 1 to 9000, largest error", apart, 1e-12).by_theory();
    step_at_120(lab, &mut outcome, -1.0)?.by_theory();
    let few = [
        "batching=full",
        "data.digits.count=40",
        "model.network.widths=[32]",
        "schedule=flow-resolved(resolution=2)",
        "stop.log10_loss=-10000",
    ];
    let far = lab.run("d-digits", &few)?.remove(0);
    let what = format!("log₁₀ L of ten classes after {} steps with all images", far.steps);
    outcome.at_most(what, far.log_loss / std::f64::consts::LN_10, -10_000.0);
    let finite = far.params.iter().all(|w| w.is_finite());
    outcome.at_least("smallest and largest weight there are finite", f64::from(u8::from(finite)), 1.0).by_theory();
    Ok(outcome)
}

/// At a loss of about 10^−120, where plain doubles still do: how far a step −η̂ ∇R, with R and its gradient as appendix K
/// computes them, is from −η ∇L with η = η̂ e^{sign F}, as a share of its largest entry.
fn step_at_120<'a>(lab: &Lab, outcome: &'a mut Outcome, sign: f64) -> Result<&'a mut Check, ClaimError> {
    let courses = courses(lab, Network::Dense)?;
    let course = &courses[ADAPTED];
    let kept = course.kept.iter().find(|(target, _)| *target == LEVELS[3]);
    let (decades, apart) = kept.map_or(Ok((f64::NAN, f64::NAN)), |(_, params)| -> Result<_, ClaimError> {
        let mut objective = lab.objective(&course.task, &course.split.train)?;
        let log_loss = objective.forward(params).log_loss();
        let mut gradient = LogScaled::zeros(params.len());
        objective.resume().backward(params, &mut gradient);
        // F is the loss of the epoch before, somewhat above this one
        let (rate, before) = (0.1f64, log_loss + 0.3);
        // all margins are above 30: R is the mean of e^{−(s + F)}, and its gradient the mean of −e^{−(s + F)} ∇s
        objective.forward(params);
        let examples = course.split.train.len() as f64;
        let weights: Vec<f64> = objective.margins().iter().map(|s| (-(s + before)).exp() / examples).collect();
        let mut on_relative = vec![0.0; params.len()];
        objective.resume().pull_back_margins(params, &weights, &mut on_relative);
        let largest = on_relative.iter().fold(0.0, |most, g| larger(most, g.abs()));
        let plain = gradient.direction.iter().map(|g| -rate * (sign * before).exp() * (log_loss.exp() * g));
        let apart = on_relative.iter().zip(plain).map(|(g, plain)| (rate * g - plain).abs() / (rate * largest));
        Ok((log_loss / std::f64::consts::LN_10, apart.fold(0.0, larger)))
    })?;
    let sign = if sign > 0.0 { "+" } else { "−" };
    let what =
        format!("step η̂ on R against η̂ e^({sign}F) ∇L in plain doubles, at log₁₀ L = {decades:.0}, largest difference");
    Ok(outcome.at_most(what, apart, 1e-9))
}

fn printed_sign(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    step_at_120(lab, &mut outcome, 1.0)?.by_paper();
    outcome.note("By derivation: ∇R = e^{−F} ∇L, so that a step η̂ on R is the step η̂ e^{−F} on L.");
    Ok(outcome)
}
