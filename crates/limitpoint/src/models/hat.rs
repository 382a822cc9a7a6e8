//! The Mexican hat: a smooth homogeneous model whose direction never converges.
//!
//! On the unit sphere the model is one minus a hat whose brim is cut by a spiral groove. Gradient flow follows the
//! groove outwards, and because the groove winds around the sphere's equator without end, so does the direction, while
//! the margin converges (D Appendix I, after Absil, Mahony and Andrews 2005):
//!
//! ```text
//! h(θ) = ρ^L (1 − f(x/ρ, y/ρ)),      θ = (x, y, z),  ρ = ‖θ‖₂
//! f(r cos φ, r sin φ) = e^{−s} (1 − C sin(φ − s)),      s = 1/(1 − r²) = (ρ/z)²,   0 on the equator r = 1
//! C(r) = 4r⁴/(4r⁴ + (1 − r²)³)
//! ```
//!
//! Why the exponent is 3: on the sphere −∇f moves r by dr/dτ = −(1 − r²) f_r, where the factor 1 − r² = (z/ρ)² is the
//! slope of the sphere over the plane, and φ by dφ/dτ = −f_φ/r². With ψ = φ − s and ds/dr = 2r s²,
//!
//! ```text
//! on ψ = 0:   f_r = −2r s² (1 − C) e^{−s},   f_φ = −C e^{−s}
//! ds/dτ = 2r s² · s⁻¹ · 2r s² (1 − C) e^{−s} = 4r² s³ (1 − C) e^{−s},      dφ/dτ = r⁻² C e^{−s}
//! dψ/dτ = 0  ⟺  C = 4r⁴ s³ (1 − C)  ⟺  C = 4r⁴/(4r⁴ + s⁻³)
//! ```
//!
//! In the plane, without that factor, the same argument gives s⁴ and the exponent 4, which is what the paper prints;
//! `exponent` keeps both. With either, ψ = 0 repels (ψ grows like e^{s⁴} along it), and nearby paths end in the bottom
//! of the groove, ψ → π/2, where they go around as well, about 4s³ or 4s⁴ times slower.

/// The hat f at one point of the disc, with what is tiny at its brim, the factor e^{−s}, taken out.
///
/// ```
/// use limitpoint::models::HatShape;
/// // on the curve φ = s the flow keeps φ − s, with the exponent 3 and not with 4
/// let drift = |exponent| {
///     let hat = HatShape::new(0.5, 0.0, exponent);
///     hat.turning() - hat.rising()
/// };
/// assert!(drift(3).abs() < 1e-15 && drift(4).abs() > 0.1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HatShape {
    /// s = 1/(1 − r²) ≥ 1.
    pub rim: f64,
    /// e^s f = 1 − C sin ψ.
    pub value: f64,
    /// e^s f_r/r.
    pub radial: f64,
    /// e^s f_φ/r².
    pub angular: f64,
}

impl HatShape {
    /// The hat where 1 − r² is `gap`, in (0, 1], and φ − s is `psi`.
    pub fn new(gap: f64, psi: f64, exponent: u32) -> Self {
        let (s, square) = (1.0 / gap, 1.0 - gap);
        let power = gap.powi(exponent as i32);
        let bottom = 4.0 * square * square + power;
        let c = 4.0 * square * square / bottom;
        // C′/r, from C′ = 8r³ (1 − r²)^{e−1} (2(1 − r²) + e r²)/(4r⁴ + (1 − r²)^e)²
        let slope = 8.0 * square * (power / gap) * (2.0 * gap + f64::from(exponent) * square) / (bottom * bottom);
        let (sine, cosine) = psi.sin_cos();
        // 1 − C = (1 − r²)^e/bottom, without cancellation
        let rest = power / bottom;
        // C sin ψ + C cos ψ − 1 without cancellation at ψ = 0
        let lean = c * (sine - 2.0 * (0.5 * psi).sin().powi(2)) - rest;
        Self {
            rim: s,
            value: 1.0 - c * sine,
            radial: 2.0 * s * s * lean - slope * sine,
            angular: -4.0 * square / bottom * cosine,
        }
    }

    /// e^s ds/dτ along the flow of −f on the sphere.
    pub fn rising(&self) -> f64 {
        -2.0 * (self.rim - 1.0) * self.radial
    }

    /// e^s dφ/dτ along the flow of −f on the sphere.
    pub fn turning(&self) -> f64 {
        -self.angular
    }
}

/// h and ∇h at the three parameters `params`; no gradient at θ = 0 unless L > 1.
pub fn height(params: &[f64], degree: f64, exponent: u32) -> (f64, [f64; 3]) {
    let largest = crate::linalg::max_abs(params);
    if largest == 0.0 {
        return (0.0, [if degree > 1.0 { 0.0 } else { f64::NAN }; 3]);
    }
    // squares of θ itself would overflow from 10¹⁵⁴ on
    let scaled = [0, 1, 2].map(|k| params[k] / largest);
    let length = crate::linalg::norm2(&scaled);
    let [u, v, w] = scaled.map(|t| t / length);
    let rho = largest * length;
    let gap = w * w;
    let s = 1.0 / gap;
    let tiny = (-s).exp();
    let (mut f, mut tangent) = (0.0, [0.0; 3]);
    if tiny > 0.0 {
        let shape = HatShape::new(gap, v.atan2(u) - s, exponent);
        f = tiny * shape.value;
        // ∇f on the sphere: f_r w along (wu/r, wv/r, −r), f_φ/r along (−v/r, u/r, 0)
        let (out, around) = (tiny * shape.radial * gap, tiny * shape.angular);
        tangent = [out * u - around * v, out * v + around * u, -tiny * shape.radial * w * (u * u + v * v)];
    } else if !tiny.is_finite() {
        f = f64::NAN;
    }
    let power = rho.powf(degree - 1.0);
    let unit = [u, v, w];
    let gradient = [0, 1, 2].map(|k| power * (degree * (1.0 - f) * unit[k] - tangent[k]));
    (power * rho * (1.0 - f), gradient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_differences_along_paths_that_stay_on_the_disc() {
        for exponent in [3, 4] {
            let value = |r: f64, phi: f64| {
                let shape = HatShape::new(1.0 - r * r, phi - 1.0 / (1.0 - r * r), exponent);
                (-shape.rim).exp() * shape.value
            };
            for (r, phi) in [(0.05, 2.0), (0.3, 1.1), (0.7, -2.0), (0.9, 3.0)] {
                let shape = HatShape::new(1.0 - r * r, phi - 1.0 / (1.0 - r * r), exponent);
                let (size, h) = ((-shape.rim).exp(), 1e-6);
                let radial = (value(r + h, phi) - value(r - h, phi)) / (2.0 * h) / (size * r);
                let angular = (value(r, phi + h) - value(r, phi - h)) / (2.0 * h) / (size * r * r);
                assert!(
                    (shape.radial - radial).abs() < 1e-6 * (1.0 + radial.abs()),
                    "{exponent} {r}: {shape:?} {radial}"
                );
                assert!((shape.angular - angular).abs() < 1e-6 * (1.0 + angular.abs()), "{exponent} {r}: {shape:?}");
            }
        }
    }
}
