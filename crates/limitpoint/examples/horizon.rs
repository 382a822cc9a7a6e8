//! Which margin does a mirror map of your own maximise? Give its scalar potential as a closure and read off the horizon
//! φ(θ) = (Σ c |θᵢ|^α)^{1/α}, the gauge that its normalised margin is measured in when the weights have grown.
//!
//! Look for the degree α: 1 prefers few large weights, 2 is gradient descent, larger ones prefer many equal weights.
//! Look also at the refusals: the calculator says so where q has no homogeneous limit, and shows the measured local
//! degrees.

#![expect(clippy::print_stdout, reason = "an example talks to the terminal")]

use limitpoint::potentials::{HorizonCalculator, HorizonOutcome};

type Potential = (&'static str, fn(f64) -> f64);

fn main() {
    let potentials: [Potential; 7] = [
        ("t²/2", |t| t * t / 2.0),
        ("t asinh t − √(t²+1)", |t| t * t.asinh() - (t * t + 1.0).sqrt()),
        ("|t|³/3 + t²/2", |t| t.abs().powi(3) / 3.0 + t * t / 2.0),
        ("(t²+1)^(3/4)", |t| (t * t + 1.0).powf(0.75)),
        ("t²/2, twice that for t < 0", |t| if t < 0.0 { t * t } else { t * t / 2.0 }),
        ("cosh t", |t| t.cosh()),
        ("t² ln(1+t²)", |t| t * t * (1.0 + t * t).ln()),
    ];
    let theta = [3.0, -4.0];
    for (name, potential) in potentials {
        match HorizonCalculator::from_value(potential).predict() {
            HorizonOutcome::Homogeneous(found) => {
                let side = |c: Option<f64>| c.map_or("outside".to_owned(), |c| format!("{c:.4}"));
                println!("R = Σ {name}");
                println!("    degree {:.6} ± {:.0e}", found.degree, found.degree_error);
                println!("    c₊ = {}, c₋ = {}", side(found.positive), side(found.negative));
                println!("    φ(3, −4) = {:.6}", found.horizon(&theta));
            }
            HorizonOutcome::NoHomogeneousLimit(evidence) => println!("R = Σ {name}\n    {evidence}"),
        }
    }
}
