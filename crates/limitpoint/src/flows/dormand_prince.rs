//! The Dormand–Prince pair of orders 5 and 4.

/// Stages of the pair.
pub(super) const STAGES: usize = 7;

/// Rows of the Runge–Kutta matrix; the last row is also the fifth-order solution, so its slope serves the next step.
pub(super) const MATRIX: [[f64; 6]; 6] = [
    [1.0 / 5.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [3.0 / 40.0, 9.0 / 40.0, 0.0, 0.0, 0.0, 0.0],
    [44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0, 0.0, 0.0, 0.0],
    [19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0, 0.0, 0.0],
    [9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0, 0.0],
    [35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
];

/// Fifth-order minus fourth-order weights: the error estimate. Dormand and Prince 1980, table 2.
pub(super) const ERROR: [f64; STAGES] =
    [71.0 / 57600.0, 0.0, -71.0 / 16695.0, 71.0 / 1920.0, -17253.0 / 339_200.0, 22.0 / 525.0, -1.0 / 40.0];

/// The next step size from the last one and its error in units of the tolerance: order-5 control with a safety factor.
pub(super) fn next_step(step: f64, error: f64) -> f64 {
    let factor = if error == 0.0 { 5.0 } else { (0.9 * error.powf(-0.2)).clamp(0.2, 5.0) };
    step * factor
}

/// ln ∫₀ʰ e^{u(τ)} dτ for the cubic through u and u′ at both ends.
///
/// Five-point Gauss quadrature in logarithms, on pieces over which u changes by about 2; what lies more than 120 below
/// the end does not count.
pub(super) fn log_integral_of_exp(step: f64, start: (f64, f64), end: (f64, f64)) -> f64 {
    const NODES: [(f64, f64); 5] = [
        (0.046_910_077_030_668_004, 0.118_463_442_528_094_54),
        (0.230_765_344_947_158_45, 0.239_314_335_249_683_23),
        (0.5, 0.284_444_444_444_444_44),
        (0.769_234_655_052_841_5, 0.239_314_335_249_683_23),
        (0.953_089_922_969_332, 0.118_463_442_528_094_54),
    ];
    let cubic = |s: f64| {
        let (a, b) = (1.0 - s, s);
        start.0 * a * a * (1.0 + 2.0 * s)
            + end.0 * b * b * (3.0 - 2.0 * s)
            + step * (start.1 * s * a * a - end.1 * b * b * a)
    };
    let climb = end.0 - start.0;
    let from = if climb > 120.0 { 1.0 - 120.0 / climb } else { 0.0 };
    let pieces = (0.5 * climb.abs().min(120.0)).ceil().max(1.0);
    let width = (1.0 - from) / pieces;
    let mut total = f64::NEG_INFINITY;
    for piece in 0..pieces as usize {
        let terms = NODES.map(|(s, weight)| weight.ln() + cubic(from + width * (piece as f64 + s)));
        total = crate::numeric::log_add_exp(total, crate::numeric::log_sum_exp(&terms));
    }
    (step * width).ln() + total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tableau_is_consistent() {
        let nodes = [1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0, 1.0];
        for (row, node) in MATRIX.iter().zip(nodes) {
            assert!((row.iter().sum::<f64>() - node).abs() < 1e-14);
        }
        assert!(ERROR.iter().sum::<f64>().abs() < 1e-15);
    }

    #[test]
    fn the_integral_is_exact_for_exponentials() {
        let (slope, step) = (0.7f64, 1.3f64);
        let exact = ((slope * step).exp() - 1.0).ln() - slope.ln() + 4000.0;
        let found = log_integral_of_exp(step, (4000.0, slope), (4000.0 + slope * step, slope));
        assert!((found - exact).abs() < 1e-9);
        // and for a step over which e^u grows by e^1000
        let found = log_integral_of_exp(1000.0, (0.0, 1.0), (1000.0, 1.0));
        assert!((found - 1000.0).abs() < 1e-8, "{found}");
    }
}
