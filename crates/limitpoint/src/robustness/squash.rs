//! The box as the image of all numbers.

/// How far inside the box an input is moved before its coordinate is taken, which would be infinite on the wall.
const INSIDE: f64 = 0.999_999;
/// Coordinates beyond this are on the wall in single precision.
const FURTHEST: f32 = 20.0;

/// x(w) = a + b tanh w with a ± b the walls of the box, as lowest + (highest − lowest)/(1 + e^{−2w}).
///
/// In single precision, without branches, so that loops over it become vector instructions; the absolute error is below
/// 3·10⁻⁷ of the box. e^{2w} = 2ⁿ eʳ with |r| ≤ ½ ln 2 by its Taylor polynomial of degree 6.
#[inline(always)]
pub(super) fn squash(w: f32, lowest: f32, highest: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    // ln 2 in two parts, the first with few digits, so that n · HIGH is exact
    const HIGH: f32 = 0.693_359_4;
    const LOW: f32 = -2.121_944_4e-4;
    // a number whose last digit is worth 1: adding it rounds to an integer
    const ROUND: f32 = 12_582_912.0;
    let z = 2.0 * w.clamp(-FURTHEST, FURTHEST);
    let shifted = z * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (z - n * HIGH) - n * LOW;
    let series = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r / 720.0)))));
    // the last digits of the shifted number are n
    let power = f32::from_bits(shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23);
    let e = series * power;
    lowest + (highest - lowest) * (e / (1.0 + e))
}

/// w(x) = tanh⁻¹ of x shrunk into the box by a millionth.
pub(super) fn coordinate(x: f64, lowest: f64, highest: f64) -> f64 {
    let (middle, half) = (0.5 * (lowest + highest), 0.5 * (highest - lowest));
    (INSIDE * (x - middle) / half).atanh()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squashing_is_the_hyperbolic_tangent_and_stays_in_the_box() {
        for i in -4000..=4000 {
            let w = f64::from(i) * 0.01;
            for (lowest, highest) in [(0.0, 1.0), (-3.0, 5.0)] {
                let exact = 0.5 * (lowest + highest) + 0.5 * (highest - lowest) * w.tanh();
                let found = squash(w as f32, lowest as f32, highest as f32);
                assert!((f64::from(found) - exact).abs() < 3e-7 * (highest - lowest), "{w}: {found} {exact}");
                assert!((lowest as f32..=highest as f32).contains(&found), "{w}: {found}");
            }
        }
        assert!(squash(f32::NAN, 0.0, 1.0).is_nan());
    }

    #[test]
    fn coordinates_lead_back() {
        for x in [-1.0, -0.5, 0.0, 0.3, 0.999, 1.0] {
            let w = coordinate(x, -1.0, 1.0);
            assert!(w.is_finite() && (f64::from(squash(w as f32, -1.0, 1.0)) - x).abs() < 3e-6);
        }
    }
}
