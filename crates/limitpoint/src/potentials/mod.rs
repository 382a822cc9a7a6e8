//! Mirror potentials: the geometry of mirror descent and mirror flow.
//!
//! A strictly convex potential R moves the weights through its dual variables z = ∇R(θ). Every potential here answers
//! the same questions, and all of them come from one derivation. Write Q = R* for the convex conjugate and
//! H = ∇²R(θ). Because z = ∇R(θ) attains the supremum in Q(z) = sup ⟨θ, z⟩ − R(θ),
//!
//! ```text
//! Q(∇R(θ)) = ⟨θ, ∇R(θ)⟩ − R(θ)                                   Fenchel–Young identity (C.lem2.5)
//! ∇_θ Q(∇R(θ)) = H θ                                              chain rule
//! d Q(∇R(θ))/dt = ⟨θ, d∇R(θ)/dt⟩ = −⟨θ, ∇Loss⟩                    along mirror flow; equal in every layer of a
//!                                                                 homogeneous network, hence the balance law
//! Q₁(∇R₁(W₁)) − Q₂(∇R₂(W₂)) = const                               (C.lem3.1), per neuron as well (C.nbal)
//! ```
//!
//! `Q(∇R(·))` plays the role of a power of a norm. Its asymptotic degree α, the finite-scale *gauge*, and the limit of
//! the gauge under growing scale, the *horizon*, are
//!
//! ```text
//! gauge(θ) = (α Q(∇R(θ)))^{1/α},     φ_α(θ) = lim_{η→0} η · gauge(θ/η)
//! ```
//!
//! and the curvature condition `α Q(∇R(θ)) ≥ θᵀHθ` (C.ass4.4) makes the normalised margin grow. For separable
//! potentials it also says that q(t)/t^α never increases (because q′ = t R″), so that φ_α ≤ gauge everywhere.
//!
//! | file | potential | α | horizon |
//! |---|---|---|---|
//! | [`euclidean`](Euclidean) | t²/2 | 2 | ℓ₂ |
//! | [`quadratic`](Quadratic) | θᵀDθ/2 | 2 | √(θᵀDθ) |
//! | [`entropy`](Entropy) | t ln t − t, t > 0 | 1 | ℓ₁ |
//! | [`hyperbolic`](Hyperbolic) | t asinh(t/√λ) − √(t²+λ) | 1 | ℓ₁ |
//! | [`smoothed`](Smoothed) | \|t\|^p/p + λt²/2, p ≥ 2 | p | (p−1)^{1/p} ℓ_p; √(1+λ) ℓ₂ if p = 2 |
//! | [`power_smoothed`](PowerSmoothed) | (t²+λ)^{p/2}/p, 1 < p ≤ 2 | p | (p−1)^{1/p} ℓ_p |
//! | [`squared_lp`](SquaredLp) | ½‖w‖_p², 1 < p ≤ 2 | 2 | ℓ_p |
//! | [`spectral_entropy`](SpectralEntropy) | tr(W ln W − W), W ≻ 0 | 1 | nuclear |
//! | [`layers`](Layers) | one potential per block | per block | per block |
//!
//! Conventions. Vectors are flat parameter vectors of the layout the potential was built for. Frozen blocks are left
//! out: they add 0 to every number, and every output vector is 0 there, the inverse mirror map included, so a caller
//! that keeps frozen weights must copy them back. Block indices count the trainable blocks in layout order.
//! Outside the domain the answers are NaN or infinite; [`MirrorMap::check_domain`] says where and why.

mod balance;
mod blocks;
mod entries;
mod error;

mod power;
mod separable;

mod entropy;
mod euclidean;
mod hyperbolic;
mod layers;
mod power_smoothed;
mod quadratic;
mod smoothed;
mod spectral_entropy;
mod squared_lp;

mod formula;
mod formula_reader;
mod horizon;
mod horizon_scales;
mod jet;
mod spec;
mod survey;
mod text;

#[cfg(test)]
mod tests;

pub use balance::{balance_drift, grouped_conjugates};
pub use entries::Entries;
pub use entropy::Entropy;
pub use error::PotentialError;
pub use euclidean::Euclidean;
pub use formula::Formula;
pub use horizon::{HorizonCalculator, HorizonEvidence, HorizonOutcome, HorizonPrediction, LimitFailure};
pub use hyperbolic::{Hyperbolic, hyperbolic_log_abs, lambda_of_product_balance};
pub use layers::Layers;
pub use power_smoothed::PowerSmoothed;
pub use quadratic::Quadratic;
pub use separable::{Domain, ScalarHorizon, ScalarPotential, Separable};
pub use smoothed::Smoothed;
pub use spec::{BlockPotential, PotentialSpec, QuadraticWeights};
pub use spectral_entropy::SpectralEntropy;
pub use squared_lp::SquaredLp;
pub use survey::{
    CurvatureCondition, GaugeRow, LevelSet, LimitGauge, NoLimit, ScalarCurve, ScalarSample, Shape, Survey,
};

/// A strictly convex potential on the trainable entries of one layout.
///
/// Whatever is a [`MirrorMap`] with a [`Conjugate`] and a [`Horizon`] is one. The derivation behind their methods is in
/// the [module documentation](self).
///
/// ```
/// use limitpoint::{params::ParamLayout, potentials::PotentialSpec};
/// let mut potential = PotentialSpec::Hyperbolic { lambda: 1.0 }.build(&ParamLayout::vector(2))?;
/// let theta = [0.75, 0.0];
/// let mut dual = [0.0; 2];
/// potential.mirror_map(&theta, &mut dual);
/// assert!((dual[0] - 2f64.ln()).abs() < 1e-15); // sinh(ln 2) = 3/4
/// assert_eq!(potential.conjugate_at(&theta), 1.25 + 1.0); // Σ √(t²+1)
/// assert_eq!(potential.horizon(&theta), 0.75);
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
pub trait MirrorPotential: Horizon + Send {}

impl<P: Horizon + Send> MirrorPotential for P {}

/// The map θ → ∇R(θ) of a strictly convex potential R, its inverse and its derivative.
///
/// `theta`, `dual`, `v` and `out` are flat vectors of the layout's full length. No method but `check_domain` allocates.
pub trait MirrorMap {
    /// R(θ).
    fn value(&mut self, theta: &[f64]) -> f64;

    /// out = ∇R(θ).
    fn mirror_map(&mut self, theta: &[f64], out: &mut [f64]);

    /// out = ∇R*(z), the weights whose mirror map is `dual`; entries too large for a float become infinite.
    fn inverse_mirror_map(&mut self, dual: &[f64], out: &mut [f64]);

    /// out = ∇²R(θ) v.
    fn hessian_action(&mut self, theta: &[f64], v: &[f64], out: &mut [f64]);

    /// out = ∇²R(θ)⁻¹ v, the velocity of mirror flow for v = −∇Loss.
    fn inverse_hessian_action(&mut self, theta: &[f64], v: &[f64], out: &mut [f64]);

    /// Refuses weights outside the domain of R, naming the block, the index and the value.
    fn check_domain(&self, theta: &[f64]) -> Result<(), PotentialError>;

    /// The Bregman divergence D(a, b) = R(a) − R(b) − ⟨∇R(b), a − b⟩ ≥ 0, without cancellation for close arguments.
    fn bregman_divergence(&mut self, a: &[f64], b: &[f64]) -> f64;
}

/// Q(∇R(θ)), the convex conjugate of a potential at the dual variables of the weights: what the balance law speaks of.
///
/// No method allocates, apart from the first filling of a caller's `Vec`.
pub trait Conjugate: MirrorMap {
    /// Q(∇R(θ)) = ⟨θ, ∇R(θ)⟩ − R(θ), in closed form.
    fn conjugate_at(&mut self, theta: &[f64]) -> f64;

    /// ln Q(∇R(θ)), finite also where Q itself leaves the range of a float.
    fn log_conjugate_at(&mut self, theta: &[f64]) -> f64 {
        self.conjugate_at(theta).ln()
    }

    /// Q(∇R(θ)) of each trainable block; `out` is cleared first and the values sum to [`Self::conjugate_at`].
    ///
    /// Where R is a sum over blocks ([`Self::is_block_separable`]) these are the quantities whose differences the
    /// balance law conserves. Otherwise they are the shares ⟨θ_b, ∇_b R⟩/2 of a 2-homogeneous R, and need not balance.
    fn conjugate_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>);

    /// Q(∇R(·)) of a few entries of trainable block number `block`, such as one neuron's weights.
    ///
    /// `None` when R is not a sum over entries (or over the blocks), so that entries have no conjugate of their own.
    fn conjugate_of_entries(&mut self, block: usize, theta: &[f64], entries: Entries) -> Option<f64>;

    /// Whether R is a sum of potentials of the blocks, as the balance law (C.lem3.1) needs.
    fn is_block_separable(&self) -> bool {
        true
    }
}

/// How Q(∇R(·)) grows: its degree, the gauge it gives at finite scale, and the horizon this tends to.
pub trait Horizon: Conjugate {
    /// The asymptotic degree α of Q(∇R(·)); over blocks of different degree, the largest.
    fn degree(&self) -> f64;

    /// The degree of each trainable block.
    fn degrees_by_block(&self) -> &[f64];

    /// The horizon φ_α(θ) = lim η (α Q(∇R(θ/η)))^{1/α} as η → 0.
    fn horizon(&mut self, theta: &[f64]) -> f64;

    /// The horizon of each trainable block alone, in its own degree (C.defI4); `out` is cleared first.
    fn horizons_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>);

    /// The finite-scale gauge (α Q(∇R(θ)))^{1/α}.
    fn gauge(&mut self, theta: &[f64]) -> f64 {
        let (degree, conjugate) = (self.degree(), self.conjugate_at(theta));
        if (1e-280..1e280).contains(&conjugate) || conjugate == 0.0 {
            root(degree * conjugate, degree)
        } else {
            ((degree.ln() + self.log_conjugate_at(theta)) / degree).exp()
        }
    }

    /// The gauge (α_b Q_b)^{1/α_b} of each trainable block, from [`Conjugate::conjugate_by_block`]; `out` is cleared first.
    fn gauges_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>) {
        self.conjugate_by_block(theta, out);
        for (value, &degree) in out.iter_mut().zip(self.degrees_by_block()) {
            *value = root(degree * *value, degree);
        }
    }

    /// The slack α Q(∇R(θ)) − θᵀHθ of the curvature condition (C.ass4.4), in closed form; block by block in the
    /// block's own degree. The condition holds where this is at least 0.
    fn curvature_slack(&mut self, theta: &[f64]) -> f64;

    /// Constants with φ ≤ gauge ≤ c φ + a (C.lem4.10), where they are known.
    fn horizon_bounds(&self) -> Option<HorizonBounds> {
        None
    }
}

/// Constants c and a with φ ≤ (α Q)^{1/α} ≤ c φ + a for all weights (C.lem4.10, C.corH3, C.corH4).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HorizonBounds {
    /// c ≥ 1, the relative part.
    pub factor: f64,
    /// a ≥ 0, the absolute part; it grows with the number of entries.
    pub offset: f64,
}

impl HorizonBounds {
    /// An upper bound for the relative gap (gauge − φ)/gauge at a given gauge: (c − 1) + a/gauge.
    ///
    /// ```
    /// let bounds = limitpoint::potentials::HorizonBounds { factor: 1.0, offset: 3.0 };
    /// assert_eq!(bounds.relative_gap(30.0), 0.1);
    /// ```
    pub fn relative_gap(&self, gauge: f64) -> f64 {
        (self.factor - 1.0) + self.offset / gauge
    }

    /// ln t ≈ a^L: the time after which a model of degree L has outgrown the offset (C.lem4.10 with C.thm4.6).
    pub fn log_time(&self, homogeneity_degree: f64) -> f64 {
        self.offset.powf(homogeneity_degree)
    }
}

/// x^{1/degree}, exact for degrees 1 and 2.
fn root(x: f64, degree: f64) -> f64 {
    if degree == 1.0 {
        x
    } else if degree == 2.0 {
        x.sqrt()
    } else {
        x.powf(1.0 / degree)
    }
}
