//! What is assumed of losses and models: the functions f and g of a loss ℓ(q) = e^{−f(q)}, g = f⁻¹ (A.1, D.1), and what
//! homogeneity says of gradients (Theorem B.2, Corollary B.3, Lemma C.7).

use std::ops::Range;

use super::chain::{AT_KINK, kinked, weigh};
use super::flows::LOSSES;
use crate::arithmetic::{larger, log_integral, smaller};
use crate::{Claim, ClaimError, Lab, Outcome};
use limitpoint::engine::{Compute, Forward, Tangents, cpu};
use limitpoint::linalg::{Matrix, dot, norm2};
use limitpoint::losses::{Loss, LossSpec};
use limitpoint::models::ModelSpec;
use limitpoint::numeric::Streams;

pub(super) const CLAIMS: [Claim; 5] = [
    Claim {
        id: "D.b3",
        covers: &["D.remA1", "D.remA2"],
        statement: "Exponential and logistic loss and those of q³ satisfy (B3): g inverts f, f′ > 0 and q f′ does not fall beyond \
                    b_f, and neither f′ nor g′ changes by more than K when its argument is halved",
        try_out: assumptions,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.b3.printed",
        statement: "As printed in Remark A.2: g′(u) = e^{−u}/(e^{e^{−u}} − 1) for the logistic loss",
        try_out: printed_slope,
        ..Claim::MISPRINT
    },
    Claim {
        id: "D.lemD1",
        covers: &["D.corD2", "D.corD3", "D.lemD4"],
        statement: "g/g′ and f/f′ lie between x/(2K) and 2Kx, so f and g grow like powers; G(x) = Θ(g(ln x)^{2/L} x/(ln x)²) and its \
                    inverse accordingly",
        try_out: growth,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.thmB2",
        covers: &["D.corB3"],
        statement: "h(cθ) = c^{L−1} h(θ) and ⟨θ, h⟩ = L Φ for every homogeneous model of the library, also with the slopes on the \
                    other side of a kink",
        try_out: homogeneity,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.defC2",
        covers: &["D.lemC7"],
        statement: "At every feasible point −θ is a direction with ⟨−θ, h⟩ = −L q < 0 for all gradients h of active margins, so \
                    that the margin problem satisfies the constraint qualification of Mangasarian and Fromovitz",
        try_out: qualification,
        ..Claim::FORMULA
    },
];

/// A loss under its name.
type Named = (&'static str, Box<dyn Loss>);

/// The losses.
fn losses() -> Result<Vec<Named>, ClaimError> {
    LOSSES.iter().map(|text| Ok((*text, text.parse::<LossSpec>()?.build()?))).collect()
}

/// Numbers from one end to the other, equally far apart in their logarithm.
fn grid(from: f64, to: f64, count: usize) -> Vec<f64> {
    (0..=count).map(|k| from * (to / from).powf(k as f64 / count as f64)).collect()
}

fn assumptions(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for (name, loss) in losses()? {
        let Some(tail) = loss.tail() else { continue };
        // nearer to b_f = 0 losses of q³ lose digits, because f′(0) = 0
        let points: Vec<f64> = grid(0.1, 1e4, 4000).into_iter().map(|q| tail.b_f() + q).collect();
        let apart = points.iter().map(|q| (tail.g(tail.f(*q)) / q - 1.0).abs());
        outcome.largest(format!("{name}: |g(f(q))/q − 1| beyond b_f"), apart, 1e-10).by_theory();
        let apart = points.iter().map(|q| (tail.g_prime(tail.f(*q)) * tail.f_prime(*q) - 1.0).abs());
        outcome.largest(format!("{name}: |g′(f(q)) f′(q) − 1|"), apart, 1e-9).by_theory();
        let slopes = points.iter().map(|q| -tail.f_prime(*q));
        outcome.largest(format!("{name}: −f′(q), largest"), slopes, -f64::MIN_POSITIVE).by_paper();
        let fall = points.windows(2).map(|q| 1.0 - q[1] * tail.f_prime(q[1]) / (q[0] * tail.f_prime(q[0])));
        outcome.largest(format!("{name}: largest relative fall of q f′(q) beyond b_f"), fall, 1e-12).by_paper();
        let (k, b_g) = (tail.growth_constant(), tail.b_g());
        let mut ratios = Vec::new();
        for theta in [0.5, 0.6, 0.7, 0.8, 0.9, 0.99] {
            for x in grid(1e-3, 1e4, 2000) {
                let (u, q) = (b_g + x, tail.g(b_g) + x);
                ratios.push(tail.g_prime(u) / tail.g_prime(theta * u));
                ratios.push(tail.f_prime(q) / tail.f_prime(theta * q));
            }
        }
        let what = format!("{name}: growth of f′ and g′ from θx to x, ½ ≤ θ < 1, largest (K = {k})");
        outcome.largest(what, ratios, k * (1.0 + 1e-12)).by_paper();
        let [from, to] = [2.0 * tail.f(tail.b_f()), tail.f(2.0 * tail.b_f())];
        let least = larger(from, to) - 1e-12;
        outcome.at_least(format!("{name}: b_g against max(2 f(b_f), f(2 b_f))"), b_g, least).by_paper();
    }
    outcome.note(
        "f′(0) = 0 for losses of q³: (B3) can ask for f′ > 0 beyond b_f only, not on all of [b_f, ∞) as printed.",
    );
    Ok(outcome)
}

fn printed_slope(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let loss = LossSpec::Logistic.build()?;
    if let Some(tail) = loss.tail() {
        for u in [0.5f64, 1.0, 2.0] {
            let printed = (-u).exp() / (-u).exp().exp_m1();
            let product = printed * tail.f_prime(tail.g(u));
            outcome.near(format!("u = {u}: printed g′(u) times f′(g(u))"), product, 1.0, 1e-6).by_theory();
        }
    }
    outcome.note("By derivation: g = f⁻¹ makes g′(u) f′(g(u)) = 1, so g′(u) = y/(1 − e^{−y}) with y = e^{−u}; the factor e^{e^{−u}} is missing.");
    Ok(outcome)
}

fn growth(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for (name, loss) in losses()? {
        let Some(tail) = loss.tail() else { continue };
        let (k, b_g) = (tail.growth_constant(), tail.b_g());
        let (points, start) = (grid(1e-3, 1e6, 4000), tail.g(b_g));
        let of_g = points.iter().map(|x| tail.g(b_g + x) / tail.g_prime(b_g + x) / (b_g + x));
        let of_f = points.iter().map(|y| tail.f(start + y) / tail.f_prime(start + y) / (start + y));
        for (ratio, from, [low, high]) in [("g/(x g′)", "b_g", range(of_g)), ("f/(y f′)", "g(b_g)", range(of_f))] {
            let what = format!("{name}: {ratio} from {from} on, least, times 2K");
            outcome.at_least(what, 2.0 * k * low, 1.0 - 1e-12).by_theory();
            outcome.at_most(format!("{name}: {ratio}, largest, over 2K"), high / (2.0 * k), 1.0 + 1e-12).by_theory();
        }
        // G(x) = ∫ g′(ln s)²/g(ln s)^{2−2/L} ds; ln y = ln x − O(ln ln x), so that at ln x = 100 powers of their
        // quotient up to 2 are within (1 − 2 ln 100/100)⁻² = 1.21 of their limit
        for degree in [1.0, 2.0, 4.0] {
            let power = 2.0 / degree;
            let integrand = |v: f64| v + 2.0 * tail.g_prime(v).ln() - (2.0 - power) * tail.g(v).ln();
            let shape = |log: f64| power * tail.g(log).ln() - 2.0 * log.ln();
            let ratios = grid(100.0, 1e4, 30).into_iter().map(|log_x| {
                let log_y = log_integral((log_x - 60.0).max(1.0), log_x, integrand);
                [(log_y - log_x - shape(log_x)).exp(), (log_x - log_y + shape(log_y)).exp()]
            });
            let ratios: Vec<[f64; 2]> = ratios.collect();
            let [direct, back] = [0, 1].map(|side| range(ratios.iter().map(|both| both[side])));
            let words = "G(x) (ln x)²/(g(ln x)^(2/L) x), largest over least, ln x from 100 to 10⁴";
            outcome.at_most(format!("{name}, L = {degree}: {words}"), direct[1] / direct[0], 1.5);
            outcome.at_most(format!("{name}, L = {degree}: the same of its inverse"), back[1] / back[0], 1.5);
        }
    }
    Ok(outcome)
}

/// The smallest and the largest value.
fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [smaller(low, x), larger(high, x)])
}

/// A model at random weights on random inputs.
struct Drawn {
    name: String,
    model: Box<dyn Tangents>,
    degree: f64,
    theta: Vec<f64>,
    trainable: Vec<Range<usize>>,
    scores: Vec<f64>,
    gradients: Matrix,
    /// ⟨θ, h⟩ for every example, over the blocks that are trained.
    outward: Vec<f64>,
}

/// Every homogeneous model of the library.
fn models(seed: u64) -> Result<Vec<Drawn>, ClaimError> {
    let mut all = Vec::new();
    for (index, spec) in ModelSpec::examples().into_iter().enumerate() {
        let (streams, mut inputs) = (Streams::new(seed + index as u64), Matrix::zeros(7, 4));
        streams.stream("inputs").fill_normal(&mut inputs.data);
        let mut model = cpu::bind(&spec, &inputs, 1, Compute::default())?;
        let Some(degree) = model.homogeneity().map(|homogeneity| homogeneity.degree) else { continue };
        let mut theta = vec![0.0; model.layout().len()];
        streams.stream("weights").fill_normal(&mut theta);
        let (name, trainable) = (format!("{} {}", index + 1, spec.key()), model.layout().trainable_ranges());
        let (scores, gradients) = (model.scores(&theta).to_vec(), model.per_example_gradients(&theta, 0));
        let part = |n: usize, range: &Range<usize>| dot(&theta[range.clone()], &gradients.row(n)[range.clone()]);
        let outward = (0..scores.len()).map(|n| trainable.iter().map(|range| part(n, range)).sum()).collect();
        all.push(Drawn { name, model, degree, theta, trainable, scores, gradients, outward });
    }
    Ok(all)
}

fn homogeneity(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut kinks = 0;
    for Drawn { name, mut model, degree, theta, trainable, scores, gradients, outward } in models(100)? {
        let size = gradients.data.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let pairs = outward.iter().zip(&scores);
        let euler = pairs.map(|(outward, score)| (outward - degree * score).abs() / (size * norm2(&theta)));
        outcome.largest(format!("{name}, degree {degree}: |⟨θ, h⟩ − L Φ|, relative"), euler, 1e-10).by_theory();
        let mut scaling = Vec::new();
        for c in [0.25, 3.0] {
            // frozen blocks do not scale
            let mut scaled = theta.clone();
            trainable.iter().for_each(|range| scaled[range.clone()].iter_mut().for_each(|w| *w *= c));
            let (moved, factor) = (model.per_example_gradients(&scaled, 0), f64::powf(c, degree - 1.0));
            for (n, range) in (0..scores.len()).flat_map(|n| trainable.iter().map(move |range| (n, range.clone()))) {
                let pairs = moved.row(n)[range.clone()].iter().zip(&gradients.row(n)[range]);
                scaling.extend(pairs.map(|(now, then)| (now - factor * then).abs() / (factor * size)));
            }
        }
        outcome.largest(format!("{name}: |h(cθ) − c^(L−1) h(θ)|, relative"), scaling, 1e-10).by_theory();
        kinks += model.kinks_near(&theta, 0.0).len();
    }
    outcome.at_most("kinks hit by chance, where only one slope would have been tried", kinks as f64, 0.0).by_theory();
    // one preactivation is exactly 0: Euler's identity holds with the slope of either side
    let mut model = kinked()?;
    let kinks = model.kinks_near(&AT_KINK, 1e-12);
    outcome.at_least("kinks of a network whose first neuron is orthogonal to an example", kinks.len() as f64, 1.0);
    for share in [0.0, 0.5, 1.0] {
        weigh(&mut *model, &kinks, share);
        let scores = model.scores(&AT_KINK).to_vec();
        let gradients = model.per_example_gradients(&AT_KINK, 0);
        let apart = (0..2).map(|n| (dot(&AT_KINK, gradients.row(n)) - 2.0 * scores[n]).abs());
        outcome.largest(format!("|⟨θ, h⟩ − L Φ| with the share {share} of the right slope"), apart, 1e-12).by_theory();
    }
    Ok(outcome)
}

fn qualification(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for Drawn { name, degree, scores, outward, .. } in models(200)? {
        // labels that make every margin positive; then 1 − q has the gradient −h, and ⟨−h, θ⟩ = −L q < 0
        let pairs = scores.iter().zip(&outward).filter(|(score, _)| score.abs() > 1e-9);
        let shares = pairs.map(|(score, outward)| score.signum() * outward / (degree * score.abs()));
        let least = shares.reduce(smaller).unwrap_or(f64::INFINITY);
        outcome.near(format!("{name}: ⟨θ, h⟩/(L q), least over examples with q > 0"), least, 1.0, 1e-6).by_theory();
    }
    outcome.note("In print the direction is θ itself, which under the sign convention there gives the opposite sign.");
    Ok(outcome)
}
