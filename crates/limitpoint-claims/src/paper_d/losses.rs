//! Appendices A.1 and D.1: the functions f and g of a loss ℓ(q) = e^{−f(q)}, g = f⁻¹.

use super::flows::LOSSES;
use crate::arithmetic::{larger, log_integral, smaller};
use crate::{Claim, ClaimError, Lab, Outcome};
use limitpoint::losses::{Loss, LossSpec};

pub(super) const CLAIMS: [Claim; 3] = [
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
];

/// A loss with its name.
type Named = (&'static str, Box<dyn Loss>);

/// The losses by name.
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
        let all = |measure: &dyn Fn(f64) -> f64| points.iter().map(|q| measure(*q)).collect::<Vec<f64>>();
        let apart = all(&|q| (tail.g(tail.f(q)) / q - 1.0).abs());
        outcome.largest(format!("{name}: |g(f(q))/q − 1| beyond b_f"), apart, 1e-10).by_theory();
        let apart = all(&|q| (tail.g_prime(tail.f(q)) * tail.f_prime(q) - 1.0).abs());
        outcome.largest(format!("{name}: |g′(f(q)) f′(q) − 1|"), apart, 1e-9).by_theory();
        let slopes = all(&|q| -tail.f_prime(q));
        outcome.largest(format!("{name}: −f′(q), largest"), slopes, -f64::MIN_POSITIVE).by_paper();
        let fall = points.windows(2).map(|q| 1.0 - q[1] * tail.f_prime(q[1]) / (q[0] * tail.f_prime(q[0])));
        let what = format!("{name}: largest relative fall of q f′(q) beyond b_f");
        outcome.largest(what, fall, 1e-12).by_paper();
        let (k, b_g) = (tail.growth_constant(), tail.b_g());
        let mut ratio = 0.0;
        for theta in [0.5, 0.6, 0.7, 0.8, 0.9, 0.99] {
            for x in grid(1e-3, 1e4, 2000) {
                let (u, q) = (b_g + x, tail.g(b_g) + x);
                let [g, f] = [tail.g_prime(u) / tail.g_prime(theta * u), tail.f_prime(q) / tail.f_prime(theta * q)];
                ratio = larger(ratio, larger(g, f));
            }
        }
        let what = format!("{name}: growth of f′ and g′ from θx to x, ½ ≤ θ < 1, largest (K = {k})");
        outcome.at_most(what, ratio, k * (1.0 + 1e-12)).by_paper();
        let [from, to] = [2.0 * tail.f(tail.b_f()), tail.f(2.0 * tail.b_f())];
        let what = format!("{name}: b_g against max(2 f(b_f), f(2 b_f))");
        outcome.at_least(what, b_g, larger(from, to) - 1e-12).by_paper();
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
        let points = grid(1e-3, 1e6, 4000);
        let range = |ratio: &dyn Fn(f64) -> f64| {
            points.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
                let value = ratio(*x);
                (smaller(low, value), larger(high, value))
            })
        };
        let (low, high) = range(&|x| tail.g(b_g + x) / tail.g_prime(b_g + x) / (b_g + x));
        outcome
            .at_least(format!("{name}: g/(x g′) from b_g on, least, times 2K"), 2.0 * k * low, 1.0 - 1e-12)
            .by_theory();
        outcome.at_most(format!("{name}: g/(x g′), largest, over 2K"), high / (2.0 * k), 1.0 + 1e-12).by_theory();
        let start = tail.g(b_g);
        let (low, high) = range(&|y| tail.f(start + y) / tail.f_prime(start + y) / (start + y));
        outcome
            .at_least(format!("{name}: f/(y f′) from g(b_g) on, least, times 2K"), 2.0 * k * low, 1.0 - 1e-12)
            .by_theory();
        outcome.at_most(format!("{name}: f/(y f′), largest, over 2K"), high / (2.0 * k), 1.0 + 1e-12).by_theory();
        // G(x) = ∫ g′(ln s)²/g(ln s)^{2−2/L} ds; ln y = ln x − O(ln ln x), so that at ln x = 100 powers of their
        // quotient up to 2 are within (1 − 2 ln 100/100)⁻² = 1.21 of their limit
        for degree in [1.0, 2.0, 4.0] {
            let power = 2.0 / degree;
            let (mut direct, mut back) = ([f64::INFINITY, 0.0], [f64::INFINITY, 0.0]);
            for log_x in grid(100.0, 1e4, 30) {
                let integrand = |v: f64| v + 2.0 * tail.g_prime(v).ln() - (2.0 - power) * tail.g(v).ln();
                let log_y = log_integral((log_x - 60.0).max(1.0), log_x, integrand);
                let shape = |log: f64| power * tail.g(log).ln() - 2.0 * log.ln();
                let ratios = [(log_y - log_x - shape(log_x)).exp(), (log_x - log_y + shape(log_y)).exp()];
                for (range, ratio) in [&mut direct, &mut back].into_iter().zip(ratios) {
                    *range = [smaller(range[0], ratio), larger(range[1], ratio)];
                }
            }
            let what = format!(
                "{name}, L = {degree}: G(x) (ln x)²/(g(ln x)^(2/L) x), largest over least, ln x from 100 to 10⁴"
            );
            outcome.at_most(what, direct[1] / direct[0], 1.5);
            outcome.at_most(format!("{name}, L = {degree}: the same of its inverse"), back[1] / back[0], 1.5);
        }
    }
    Ok(outcome)
}
