//! Section J.4 and table 10: step size and λ by the scale σ of the start.

use super::identities::Still;
use crate::arithmetic::{larger, smaller};
use crate::outcome::decimals;
use crate::{Claim, ClaimError, Lab, Outcome, Sketch};
use limitpoint::advice::MirrorFamily;
use limitpoint::linalg::max_abs;
use limitpoint::models::Spread;
use limitpoint::params::ParamLayout;
use limitpoint::potentials::PotentialSpec;

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "C.tab10",
        covers: &["C.exJ1"],
        statement: "The listed pairs (η, λ) keep η E[1/R″(θ₀)] of order 1 as σ → 0, those of the margin-reachable column for \
                    smoothed powers from p = 4 on; a first mirror step is that much longer than a gradient step; only the \
                    margin-reachable pairs keep the offset between gauge and horizon bounded",
        experiments: &["c-reach"],
        try_out: pairs,
        ..Claim::FORMULA
    },
    Claim {
        id: "C.tab10.printed",
        statement: "(η, λ) = (σ², σ²) keeps η E[1/R″(θ₀)] of order 1 for all p > 2",
        try_out: pairs_printed,
        ..Claim::MISPRINT
    },
];

const SIGMAS: [f64; 3] = [1e-1, 1e-2, 1e-3];

/// A potential of a family.
fn potential(family: MirrorFamily, lambda: f64) -> PotentialSpec {
    match family {
        MirrorFamily::Euclidean => PotentialSpec::Euclidean,
        MirrorFamily::Hyperbolic => PotentialSpec::Hyperbolic { lambda },
        MirrorFamily::Smoothed { p } => PotentialSpec::Smoothed { p, lambda },
    }
}

/// E[1/R″(θ₀)].
fn mean(family: MirrorFamily, lambda: f64, sigma: f64) -> f64 {
    family.mean_inverse_curvature(lambda, &Spread::Normal { deviation: sigma })
}

/// A pair of table 10.
struct Pair {
    words: &'static str,
    family: MirrorFamily,
    /// Powers of σ in η and λ; no power of λ means λ = 0.
    eta: f64,
    lambda: Option<f64>,
    /// Whether it stands in the margin-reachable column.
    margin: bool,
}

impl Pair {
    fn lambda_at(&self, sigma: f64) -> f64 {
        self.lambda.map_or(0.0, |power| sigma.powf(power))
    }

    /// η E[1/R″(θ₀)] at every σ.
    fn products(&self) -> [f64; 3] {
        SIGMAS.map(|sigma| sigma.powf(self.eta) * mean(self.family, self.lambda_at(sigma), sigma))
    }

    /// a of Lemma 4.10 for n weights with σ = 1/√n.
    fn offset(&self, n: usize) -> Result<f64, ClaimError> {
        let lambda = self.lambda_at(1.0 / (n as f64).sqrt());
        // the offset is 0 at λ = 0, which the potential itself does not allow
        if self.family == MirrorFamily::Hyperbolic && lambda == 0.0 {
            return Ok(0.0);
        }
        let potential = potential(self.family, lambda).build(&ParamLayout::vector(n))?;
        Ok(potential.horizon_bounds().map_or(f64::NAN, |bounds| bounds.offset))
    }
}

/// Table 10 without its gradient descent; (σ², σ²) for the p that it holds for.
fn listed() -> Vec<Pair> {
    let pair = |family, words, eta, lambda, margin| Pair { words, family, eta, lambda, margin };
    let hyperbolic = MirrorFamily::Hyperbolic;
    let mut pairs = vec![
        pair(hyperbolic, "(1, 1)", 0.0, Some(0.0), false),
        pair(hyperbolic, "(1/σ, 0)", -1.0, None, true),
        pair(hyperbolic, "(1/σ, σ²)", -1.0, Some(2.0), false),
        pair(hyperbolic, "(1/σ, σ⁴)", -1.0, Some(4.0), true),
    ];
    for p in [2.5, 3.0, 4.0, 6.0] {
        let family = MirrorFamily::Smoothed { p };
        pairs.push(pair(family, "(1, 1)", 0.0, Some(0.0), false));
        pairs.push(pair(family, "(σ^{p−2}, σ^{p−2})", p - 2.0, Some(p - 2.0), p >= 4.0));
    }
    pairs.extend([4.0, 5.0, 6.0].map(|p| squares(MirrorFamily::Smoothed { p })));
    pairs
}

/// (σ², σ²).
fn squares(family: MirrorFamily) -> Pair {
    Pair { words: "(σ², σ²)", family, eta: 2.0, lambda: Some(2.0), margin: true }
}

fn spread_of(products: &[f64]) -> f64 {
    products.iter().copied().fold(0.0, larger) / products.iter().copied().fold(f64::INFINITY, smaller)
}

fn pairs(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut sketch =
        Sketch::new("recipes", "Size of the first update, η E[1/R″(θ₀)]", "σ", "η E[1/R″(θ₀)]").logarithmic(true, true);
    for pair in listed() {
        let (products, mut own) = (pair.products(), Outcome::default());
        let what = format!("largest over smallest η E[1/R″] for σ = 0.1, 0.01, 0.001 ({})", decimals(&products));
        own.at_most(what, spread_of(&products), 3.0);
        // n = 10⁴ against 10⁶: what is bounded stays, √n and n grow by 10 and 100
        let (few, many) = (pair.offset(10_000)?, pair.offset(1_000_000)?);
        let what = "growth of a from n = 10⁴ to 10⁶, σ = 1/√n";
        if pair.margin && few == 0.0 {
            own.at_most("a at n = 10⁶, σ = 1/√n", many, 0.0);
        } else if pair.margin {
            own.at_most(what, many / few, 1.0 + 1e-9);
        } else {
            own.at_least(what, many / few, 1.2);
        }
        outcome.say_of(&format!("{} {}", pair.family, pair.words), own);
    }
    for p in [3.0, 4.0, 5.0] {
        let family = MirrorFamily::Smoothed { p };
        let curve = |k: i32| {
            let sigma = 10f64.powf(-f64::from(k) / 4.0);
            [sigma, sigma * sigma * mean(family, sigma * sigma, sigma)]
        };
        sketch = sketch.curve(format!("p = {p}, (σ², σ²)"), (2..=14).map(curve).collect());
    }
    outcome.sketch(sketch);
    let pure = mean(MirrorFamily::Smoothed { p: 3.0 }, 0.0, 0.1);
    outcome.event("p = 3, λ = 0: E[1/R″(θ₀)]", "infinite", format!("{pure}"), pure == f64::INFINITY).by_theory();
    // E|θ₀| = σ√(2/π)
    let (first, expected) = (mean(MirrorFamily::Hyperbolic, 0.0, 0.1), (2.0 / std::f64::consts::PI).sqrt());
    outcome.near("hyperbolic, λ → 0: E[1/R″(θ₀)]/σ", first / 0.1, expected, 1e-10).by_theory();
    first_steps(lab, &mut outcome)?;
    outcome.note(
        "Example J.1 speaks of two mirror-μP solutions of the hyperbolic entropy; the table lists three. n is the fan-in of a \
         layer here (σ = 1/√n), the number of all weights in Lemma 4.10. (σ^{p−2}, σ^{p−2}) also keeps the offset bounded \
         for p ≥ 4.",
    );
    Ok(outcome)
}

/// The exact first mirror step of a wide ReLU network against gradient descent's, layer by layer.
fn first_steps(lab: &Lab, outcome: &mut Outcome) -> Result<(), ClaimError> {
    for sigma in [0.1f64, 0.01] {
        let overrides = [
            format!("model.widths=[{}]", lab.choose(4000, 20_000)),
            "model.activation=relu".to_owned(),
            format!("initialiser.normal.deviation={sigma}"),
        ];
        let task = &lab.tasks("c-reach", &overrides)?[0];
        let Still { objective, theta: start, gradient, .. } = Still::new(lab, task)?;
        let smoothed = |p: f64| (MirrorFamily::Smoothed { p }, sigma.powf(p - 2.0));
        for (family, small) in [(MirrorFamily::Hyperbolic, sigma * sigma), smoothed(3.0), smoothed(4.0)] {
            for lambda in [1.0, small] {
                let spec = potential(family, lambda);
                let eta = 1.0 / mean(family, lambda, sigma);
                let mut worker = spec.build(objective.layout())?;
                let [mut dual, mut moved] = [0; 2].map(|_| vec![0.0; start.len()]);
                worker.mirror_map(&start, &mut dual);
                // steps so short that the metric does not change on the way: gradients are of order 1 after scaling
                let step = 1e-4 * sigma / max_abs(&gradient.direction);
                dual.iter_mut().zip(&gradient.direction).for_each(|(z, g)| *z -= eta * step * g);
                worker.inverse_mirror_map(&dual, &mut moved);
                for block in objective.layout().trainable() {
                    let range = block.range();
                    let pairs = moved[range.clone()].iter().zip(&start[range.clone()]);
                    let update: f64 = pairs.map(|(a, b)| (a - b).abs()).sum();
                    let plain: f64 = gradient.direction[range].iter().map(|g| step * g.abs()).sum();
                    let what = format!("{spec}, σ = {sigma}, {}: first mirror step over gradient step", block.name);
                    outcome.near(what, update / plain, 1.0, 0.1);
                }
            }
        }
    }
    Ok(())
}

fn pairs_printed(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for p in [3.0, 3.5, 4.0, 5.0] {
        let products = squares(MirrorFamily::Smoothed { p }).products();
        let what =
            format!("p = {p}: largest over smallest σ² E[1/R″] for σ = 0.1, 0.01, 0.001 ({})", decimals(&products));
        outcome.at_most(what, spread_of(&products), 3.0);
    }
    outcome.note(
        "Contradicted by derivation: for p < 4 the curvature (p−1)|θ₀|^{p−2}, of order σ^{p−2}, outweighs λ = σ², so that σ² E[1/R″] \
         vanishes with σ; the quadrature only shows it.",
    );
    Ok(outcome)
}
