//! The one scalar equation solver behind the multipliers.

/// Where |f| is this small the search ends.
const RESIDUAL: f64 = 1e-14;

/// A zero of the nondecreasing function f on [low, high], where f(low) ≤ 0 ≤ f(high).
///
/// False position in the Illinois variant, with a bisection every third step so that no f can stall it. Stops when
/// |f| ≤ 1e-14 or when the bracket holds no further number, and then returns its upper end, where f ≥ 0. If the signs at
/// the ends are wrong the nearer end is returned. At most 200 evaluations.
pub(super) fn increasing_root(mut low: f64, mut high: f64, mut f: impl FnMut(f64) -> f64) -> f64 {
    let (mut f_low, mut f_high) = (f(low), f(high));
    if f_low >= 0.0 {
        return low;
    }
    if f_high <= 0.0 {
        return high;
    }
    let mut last_below = None;
    for step in 0..198 {
        let middle = 0.5 * low + 0.5 * high;
        let chord = low - f_low * ((high - low) / (f_high - f_low));
        let x = if step % 3 != 2 && low < chord && chord < high { chord } else { middle };
        if !(low < x && x < high) {
            break;
        }
        let value = f(x);
        if value.abs() <= RESIDUAL {
            return x;
        }
        let below = value < 0.0;
        if below {
            (low, f_low) = (x, value);
        } else {
            (high, f_high) = (x, value);
        }
        if last_below == Some(below) {
            *(if below { &mut f_high } else { &mut f_low }) *= 0.5;
        }
        last_below = Some(below);
    }
    high
}

#[cfg(test)]
mod tests {
    use super::increasing_root;

    #[test]
    fn zeros_are_found_quickly_and_always() {
        let mut calls = 0;
        let root = increasing_root(0.0, 2.0, |x| {
            calls += 1;
            x * x - 2.0
        });
        assert!((root - std::f64::consts::SQRT_2).abs() < 1e-14 && calls < 20, "{root} after {calls}");
        assert!((increasing_root(-1.0, 1e6, |x| if x < 0.3 { -1.0 } else { 1.0 }) - 0.3).abs() < 1e-15);
        assert!((increasing_root(-700.0, 700.0, |x| x.exp() - 1.0)).abs() < 1e-13);
        assert_eq!(increasing_root(1.0, 2.0, |x| x), 1.0);
        assert_eq!(increasing_root(-2.0, -1.0, |x| x), -1.0);
        let _ = increasing_root(0.0, 1.0, |_| f64::NAN);
    }
}
