//! Table 1 and Figure 1: the two families of potentials, what they keep in balance and what their gauges look like.

use crate::claims::arithmetic::larger;
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};
use crate::numeric::Streams;
use crate::params::ParamLayout;
use crate::potentials::{HorizonCalculator, PotentialSpec};

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "C.tab1",
        covers: &[],
        statement: "The hyperbolic entropy has Q(∇R) = Σ√(θ²+λ), degree 1 and the horizon ‖θ‖₁; the smoothed power has \
                    Q(∇R) = ‖θ‖_p^p/q + λ‖θ‖₂²/2, degree p and the horizon (p−1)^{1/p}‖θ‖_p, √(1+λ)‖θ‖₂ for p = 2",
        experiments: &[],
        try_out: table,
    },
    Claim {
        id: "C.tab1.printed",
        covers: &[],
        statement: "The horizon of the smoothed power with p = 2 is ‖θ‖₂ for every λ",
        experiments: &[],
        try_out: table_printed,
    },
    Claim {
        id: "C.fig1L",
        covers: &[],
        statement: "The balance equation Q(∇R(a)) − Q(∇R(w)) = const has the solutions of Figure 1, left",
        experiments: &[],
        try_out: balance_curves,
    },
    Claim {
        id: "C.fig1R",
        covers: &[],
        statement: "Level sets of Σ√(t²+λ) approach the ℓ1 ball: they are within n√λ/c of it, closer for larger c and \
                    smaller λ",
        experiments: &[],
        try_out: level_sets,
    },
];

/// η from 10⁻² to 10⁻⁸.
const SCALES: [f64; 7] = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8];

/// A function of weights.
type OfWeights = Box<dyn Fn(&[f64]) -> f64>;

/// A potential of table 1 with its Q(∇R) and horizon as the table (corrected) writes them.
struct Row {
    spec: PotentialSpec,
    degree: f64,
    conjugate: OfWeights,
    horizon: OfWeights,
}

fn rows() -> Vec<Row> {
    fn sum(theta: &[f64], term: impl Fn(f64) -> f64) -> f64 {
        theta.iter().map(|t| term(t.abs())).sum()
    }
    let mut rows = Vec::new();
    for lambda in [0.01, 0.1, 1.0] {
        rows.push(Row {
            spec: PotentialSpec::Hyperbolic { lambda },
            degree: 1.0,
            conjugate: Box::new(move |theta| sum(theta, |t| (t * t + lambda).sqrt())),
            horizon: Box::new(|theta| sum(theta, |t| t)),
        });
    }
    for (p, lambda) in [(2.0, 0.5), (2.5, 0.3), (3.0, 0.0), (3.0, 1.0), (4.0, 0.1), (10.0, 0.01)] {
        let factor: f64 = if p == 2.0 { 1.0 + lambda } else { p - 1.0 };
        rows.push(Row {
            spec: PotentialSpec::Smoothed { p, lambda },
            degree: p,
            conjugate: Box::new(move |theta| {
                (1.0 - 1.0 / p) * sum(theta, |t| t.powf(p)) + 0.5 * lambda * sum(theta, |t| t * t)
            }),
            horizon: Box::new(move |theta| (factor * sum(theta, |t| t.powf(p))).powf(1.0 / p)),
        });
    }
    rows
}

/// |η gauge(θ/η)/φ(θ) − 1| at every η.
fn horizon_errors(spec: &PotentialSpec, theta: &[f64], horizon: f64) -> Result<Vec<f64>, ClaimError> {
    let mut potential = spec.build(&ParamLayout::vector(theta.len()))?;
    let at = |eta: f64| {
        let scaled: Vec<f64> = theta.iter().map(|t| t / eta).collect();
        (eta * potential.gauge(&scaled) / horizon - 1.0).abs()
    };
    Ok(SCALES.map(at).to_vec())
}

fn table(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut stream = Streams::new(11).stream("weights");
    for Row { spec, degree, conjugate, horizon } in rows() {
        let mut potential = spec.build(&ParamLayout::vector(6))?;
        let (mut identity, mut far, mut grows) = (0.0, 0.0, f64::NEG_INFINITY);
        let (mut theta, mut dual) = (vec![0.0; 6], vec![0.0; 6]);
        for _ in 0..lab.choose(20, 200) {
            stream.fill_normal(&mut theta);
            potential.mirror_map(&theta, &mut dual);
            let direct = crate::linalg::dot(&theta, &dual) - potential.value(&theta);
            let printed = conjugate(&theta);
            // ⟨θ, ∇R⟩ and R cancel: relative to the larger of them
            let size = crate::linalg::dot(&theta, &dual).abs() + printed;
            identity = larger(identity, (direct - printed).abs() / size);
            identity = larger(identity, (potential.conjugate_at(&theta) / printed - 1.0).abs());
            let errors = horizon_errors(&spec, &theta, horizon(&theta))?;
            // the error falls as η^{p−2}, slowly for p between 2 and 3
            far = larger(far, if degree > 2.0 && degree < 3.0 { errors[5] } else { errors[4] });
            grows = errors.windows(2).fold(grows, |worst, pair| larger(worst, pair[1] - pair[0]));
        }
        outcome.at_most(format!("{spec}: Q(∇R) against ⟨θ, ∇R⟩ − R, relative"), identity, 1e-12);
        let eta = if degree > 2.0 && degree < 3.0 { "1e-7" } else { "1e-6" };
        outcome.at_most(format!("{spec}: η gauge(θ/η) against the horizon at η = {eta}, relative"), far, 1e-4);
        outcome.at_most(format!("{spec}: rise of that error from one η to the next smaller one"), grows, 1e-13);
        let scalar = spec.scalar()?;
        let found = HorizonCalculator::from_value(|t| scalar.value(t)).predict();
        let (alpha, phi) =
            found.prediction().map_or((f64::NAN, f64::NAN), |found| (found.degree, found.horizon(&theta)));
        outcome.near(format!("{spec}: degree predicted from values of R"), alpha, degree, 1e-4);
        outcome.near(format!("{spec}: horizon predicted from values of R, relative"), phi / horizon(&theta), 1.0, 1e-3);
    }
    outcome.note(
        "The introduction says that the pure power reduces to ‖θ‖_p; the table has the factor (p−1)^{1/p}, rightly. The \
         hyperbolic entropy needs λ > 0: R itself diverges as λ → 0, although Q(∇R) does not.",
    );
    Ok(outcome)
}

fn table_printed(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let theta = [0.3, -1.2, 0.7];
    for lambda in [0.1, 0.5, 1.0] {
        let errors = horizon_errors(&PotentialSpec::Smoothed { p: 2.0, lambda }, &theta, crate::linalg::norm2(&theta))?;
        outcome.at_most(format!("λ = {lambda}: η gauge(θ/η) against ‖θ‖₂ at η = 1e-6, relative"), errors[4], 1e-4);
    }
    outcome.note("The limit is √(1+λ)‖θ‖₂: both terms of R are quadratic, and neither vanishes at large scales.");
    Ok(outcome)
}

/// The t ≥ 0 with q(t) = level, by bisection; nothing below q(0).
fn place(q: &impl Fn(f64) -> f64, level: f64) -> Option<f64> {
    if level.is_nan() || level < q(0.0) {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while q(high) < level {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if q(middle) < level { low = middle } else { high = middle }
    }
    Some(high)
}

fn balance_curves(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let potentials = [
        ("Euclidean", PotentialSpec::Euclidean),
        ("hyperbolic, λ = 0.1", PotentialSpec::Hyperbolic { lambda: 0.1 }),
        ("p = 3, λ = 0.1", PotentialSpec::Smoothed { p: 3.0, lambda: 0.1 }),
    ];
    for (number, constant) in [0.1, 0.5, -0.5].into_iter().enumerate() {
        let title = format!("Weights a, w of one neuron in balance: Q(a) − Q(w) = {constant}");
        let mut sketch =
            Sketch::new(&format!("balance-{}", number + 1), &title, "w", "a").window([0.0, 2.0], [0.0, 2.0]);
        for (name, spec) in &potentials {
            let scalar = spec.scalar()?;
            let q = |t: f64| scalar.conjugate(t);
            let (mut points, mut worst) = (Vec::new(), 0.0);
            for k in 0..=200 {
                let w = 0.01 * f64::from(k);
                let Some(a) = place(&q, constant + q(w)) else { continue };
                // by the definition of Q, not the closed form that was solved
                let full = |t: f64| t * scalar.slope(t) - scalar.value(t);
                worst = larger(worst, (full(a) - full(w) - constant).abs() / (1.0 + full(a).abs()));
                points.push([w, a]);
            }
            let count = points.len();
            outcome.at_most(
                format!("{name}, constant {constant}: equation at {count} points of the curve"),
                worst,
                1e-12,
            );
            outcome.at_least(format!("{name}, constant {constant}: points"), count as f64, 50.0);
            sketch = sketch.curve(*name, points);
        }
        outcome.sketch(sketch);
    }
    Ok(outcome)
}

/// The largest relative distance (c − ‖t‖₁)/c over the level set Σ√(t²+λ) = c in the plane, and the set.
fn deviation(lambda: f64, c: f64) -> (f64, f64, Vec<[f64; 2]>) {
    let (mut most, mut least, mut points) = (f64::NEG_INFINITY, f64::INFINITY, Vec::new());
    for k in 0..=360 {
        let angle = std::f64::consts::TAU * f64::from(k) / 360.0;
        let (x, y) = (angle.cos(), angle.sin());
        let total = |r: f64| ((r * x).powi(2) + lambda).sqrt() + ((r * y).powi(2) + lambda).sqrt();
        let Some(r) = place(&total, c) else { continue };
        let apart = 1.0 - r * (x.abs() + y.abs()) / c;
        (most, least) = (larger(most, apart), crate::claims::arithmetic::smaller(least, apart));
        points.push([r * x / c, r * y / c]);
    }
    (most, least, points)
}

fn level_sets(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let (lambdas, sizes) = ([0.01, 0.1, 1.0], [3.0, 10.0, 30.0, 100.0]);
    let (mut bound, mut inside, mut falls, mut rises) =
        (f64::NEG_INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY);
    let mut before: Option<Vec<f64>> = None;
    for lambda in lambdas {
        let mut sketch = Sketch::new(
            &format!("level-sets-{lambda}"),
            &format!("Level sets of √(t₁²+λ) + √(t₂²+λ) = c over c, λ = {lambda}"),
            "t₁/c",
            "t₂/c",
        )
        .window([-1.6, 1.6], [-1.1, 1.1])
        .reference("ℓ1 ball", vec![[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [1.0, 0.0]]);
        let mut own = Vec::new();
        for c in sizes {
            let (most, least, points) = deviation(lambda, c);
            bound = larger(bound, most / (2.0 * f64::sqrt(lambda) / c));
            inside = crate::claims::arithmetic::smaller(inside, least);
            own.push(most);
            sketch = sketch.curve(format!("c = {c}"), points);
        }
        falls = own.windows(2).fold(falls, |worst, pair| larger(worst, pair[1] / pair[0]));
        if let Some(before) = &before {
            rises = before.iter().zip(&own).fold(rises, |worst, (old, new)| larger(worst, old / new));
        }
        outcome.push(
            format!("λ = {lambda}: largest distance from the ball for c = 3, 10, 30, 100"),
            "at most 2√λ/c each",
            own.iter().map(|x| format!("{x:.3e}")).collect::<Vec<_>>().join(", "),
            own.iter().zip(sizes).all(|(x, c)| *x <= 2.0 * f64::sqrt(lambda) / c),
        );
        before = Some(own);
        outcome.sketch(sketch);
    }
    outcome.at_most("distance from the ℓ1 ball over the bound n√λ/c, largest", bound, 1.0);
    outcome.at_least("distance, least: level sets lie inside the ball", inside, 0.0);
    outcome.at_most("distance over that at the next smaller c, largest", falls, 1.0 - 1e-9);
    outcome.at_most("distance over that at the next larger λ, largest", rises, 1.0 - 1e-9);
    Ok(outcome)
}
