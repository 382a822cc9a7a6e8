//! Activations on vector registers, one type each, so that a kernel's inner loop holds no choice.

use pulp::Simd;

use crate::linalg::Real;

/// σ and σ′ on registers.
pub(in crate::engine::cpu) trait Curve: Copy {
    /// Whether σ′ is 1 where z > 0 and 0 elsewhere.
    const STEP: bool = false;
    /// σ(z); a NaN stays a NaN.
    fn value<T: Real, S: Simd>(self, simd: S, z: T::Vector<S>) -> T::Vector<S>;
    /// σ′(z) · signal, for numbers z: a NaN among the scores ends a run before it gets here.
    fn slope_times<T: Real, S: Simd>(self, simd: S, z: T::Vector<S>, signal: T::Vector<S>) -> T::Vector<S>;
}

/// σ(z) = z.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Identity;
/// σ(z) = max(z, 0).
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Relu;
/// σ(z) = z or slope · z.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct LeakyRelu(pub f64);
/// σ(z) = max(z, 0)ᵏ.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct ReluPower(pub u32);
/// σ(z) = z².
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Quadratic;

impl Curve for Identity {
    #[inline(always)]
    fn value<T: Real, S: Simd>(self, _: S, z: T::Vector<S>) -> T::Vector<S> {
        z
    }
    #[inline(always)]
    fn slope_times<T: Real, S: Simd>(self, _: S, _: T::Vector<S>, signal: T::Vector<S>) -> T::Vector<S> {
        signal
    }
}

impl Curve for Relu {
    const STEP: bool = true;
    #[inline(always)]
    fn value<T: Real, S: Simd>(self, simd: S, z: T::Vector<S>) -> T::Vector<S> {
        T::positive_part(simd, z)
    }
    #[inline(always)]
    fn slope_times<T: Real, S: Simd>(self, simd: S, z: T::Vector<S>, signal: T::Vector<S>) -> T::Vector<S> {
        T::where_positive(simd, z, signal, T::splat(simd, T::default()))
    }
}

impl Curve for LeakyRelu {
    #[inline(always)]
    fn value<T: Real, S: Simd>(self, simd: S, z: T::Vector<S>) -> T::Vector<S> {
        T::where_positive(simd, z, z, T::mul(simd, T::splat(simd, T::from_f64(self.0)), z))
    }
    #[inline(always)]
    fn slope_times<T: Real, S: Simd>(self, simd: S, z: T::Vector<S>, signal: T::Vector<S>) -> T::Vector<S> {
        T::where_positive(simd, z, signal, T::mul(simd, T::splat(simd, T::from_f64(self.0)), signal))
    }
}

impl Curve for ReluPower {
    #[inline(always)]
    fn value<T: Real, S: Simd>(self, simd: S, z: T::Vector<S>) -> T::Vector<S> {
        let part = T::positive_part(simd, z);
        (1..self.0).fold(part, |product, _| T::mul(simd, product, part))
    }
    #[inline(always)]
    fn slope_times<T: Real, S: Simd>(self, simd: S, z: T::Vector<S>, signal: T::Vector<S>) -> T::Vector<S> {
        let zero = T::splat(simd, T::default());
        let part = T::positive_part(simd, z);
        let scaled = T::mul(simd, T::splat(simd, T::from_f64(f64::from(self.0))), signal);
        let slope = (1..self.0).fold(scaled, |product, _| T::mul(simd, product, part));
        T::where_positive(simd, z, slope, zero)
    }
}

impl Curve for Quadratic {
    #[inline(always)]
    fn value<T: Real, S: Simd>(self, simd: S, z: T::Vector<S>) -> T::Vector<S> {
        T::mul(simd, z, z)
    }
    #[inline(always)]
    fn slope_times<T: Real, S: Simd>(self, simd: S, z: T::Vector<S>, signal: T::Vector<S>) -> T::Vector<S> {
        T::mul(simd, T::mul(simd, T::splat(simd, T::from_f64(2.0)), z), signal)
    }
}

/// Evaluates `$body` with `$curve` bound to the type of an [`crate::models::Activation`].
macro_rules! with_curve {
    ($activation: expr, |$curve: ident| $body: expr) => {
        match $activation {
            $crate::models::Activation::Identity => {
                let $curve = $crate::engine::cpu::dense::curves::Identity;
                $body
            }
            $crate::models::Activation::Relu => {
                let $curve = $crate::engine::cpu::dense::curves::Relu;
                $body
            }
            $crate::models::Activation::LeakyRelu { slope } => {
                let $curve = $crate::engine::cpu::dense::curves::LeakyRelu(slope);
                $body
            }
            $crate::models::Activation::ReluPower { power } => {
                let $curve = $crate::engine::cpu::dense::curves::ReluPower(power);
                $body
            }
            $crate::models::Activation::Quadratic => {
                let $curve = $crate::engine::cpu::dense::curves::Quadratic;
                $body
            }
        }
    };
}
pub(in crate::engine::cpu) use with_curve;
