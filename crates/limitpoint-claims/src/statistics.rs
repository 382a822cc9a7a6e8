//! What can be said of differences between runs that share their seeds.

use limitpoint::numeric::Streams;

/// The chance of at least as many positive differences if either sign were equally likely: the one-sided sign test.
/// Zeros are left out.
///
/// ```text
/// p = 2⁻ⁿ Σ_{k ≥ positive} (n choose k)
/// ```
pub(super) fn sign_test(differences: &[f64]) -> f64 {
    let positive = differences.iter().filter(|d| **d > 0.0).count();
    let n = positive + differences.iter().filter(|d| **d < 0.0).count();
    if differences.iter().any(|d| d.is_nan()) || n == 0 {
        return f64::NAN;
    }
    let (mut choose, mut tail) = (1.0, 0.0);
    for k in 0..=n {
        if k >= positive {
            tail += choose;
        }
        choose *= (n - k) as f64 / (k + 1) as f64;
    }
    tail / 2f64.powi(n as i32)
}

/// The interval that holds the middle `confidence` of the means of ten thousand samples drawn with replacement (Efron
/// 1979); always the same draws.
pub(super) fn bootstrap_mean(values: &[f64], confidence: f64) -> [f64; 2] {
    if values.is_empty() || values.iter().any(|x| x.is_nan()) {
        return [f64::NAN; 2];
    }
    let mut stream = Streams::new(0).stream("bootstrap");
    let mut means: Vec<f64> = (0..10_000)
        .map(|_| (0..values.len()).map(|_| values[stream.below(values.len())]).sum::<f64>() / values.len() as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[((means.len() - 1) as f64 * share).round() as usize];
    [at(0.5 - 0.5 * confidence), at(0.5 + 0.5 * confidence)]
}

/// Spearman's correlation: Pearson's of the ranks, ties sharing their mean rank.
pub(super) fn spearman(x: &[f64], y: &[f64]) -> f64 {
    let (x, y) = (ranks(x), ranks(y));
    let mean = (x.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    product(&x, &y) / (product(&x, &x) * product(&y, &y)).sqrt()
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |x: &f64| {
        let below = values.iter().filter(|v| *v < x).count() as f64;
        let equal = values.iter().filter(|v| *v == x).count() as f64;
        below + (equal - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// The slope of the least-squares line through (ln x, ln y).
pub(super) fn exponent(points: &[[f64; 2]]) -> f64 {
    let [x, y] = [0, 1].map(|axis| mean(&points.iter().map(|p| p[axis].ln()).collect::<Vec<_>>()));
    let product: f64 = points.iter().map(|p| (p[0].ln() - x) * (p[1].ln() - y)).sum();
    product / points.iter().map(|p| (p[0].ln() - x).powi(2)).sum::<f64>()
}

/// The mean.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_test_counts_tails_of_the_binomial() {
        assert_eq!(sign_test(&[1.0; 10]), 2f64.powi(-10));
        // 8 of 10: (45 + 10 + 1)/1024
        let mixed = [1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0, 0.0];
        assert!((sign_test(&mixed) - 56.0 / 1024.0).abs() < 1e-15);
        assert_eq!(sign_test(&[-1.0, -2.0]), 1.0);
        assert!(sign_test(&[1.0, f64::NAN]).is_nan() && sign_test(&[0.0]).is_nan());
    }

    #[test]
    fn the_bootstrap_holds_the_mean_and_narrows_with_more_values() {
        let values: Vec<f64> = (0..40).map(|k| f64::from(k % 7)).collect();
        let ([low, high], [few_low, few_high]) = (bootstrap_mean(&values, 0.9), bootstrap_mean(&values[..10], 0.9));
        assert!(low < mean(&values) && mean(&values) < high);
        assert!(high - low < few_high - few_low);
        // the standard error of the mean is 2/√40 = 0.31; ±1.645 of them hold 90 %
        assert!((high - low - 2.0 * 1.645 * 2.0 / 40f64.sqrt()).abs() < 0.1, "{low} {high}");
    }

    #[test]
    fn the_exponent_of_a_power_is_found() {
        let points = [1.0, 2.0, 5.0].map(|x: f64| [x, 3.0 * x.powf(-1.5)]);
        assert!((exponent(&points) + 1.5).abs() < 1e-14);
    }

    #[test]
    fn spearman_sees_order_only() {
        assert!((spearman(&[1.0, 2.0, 3.0], &[1.0, 10.0, 11.0]) - 1.0).abs() < 1e-15);
        assert!((spearman(&[1.0, 2.0, 3.0, 4.0], &[8.0, 4.0, 2.0, 1.0]) + 1.0).abs() < 1e-15);
        // ties: ranks 0.5, 0.5, 2 against 0, 1, 2
        assert!((spearman(&[1.0, 1.0, 5.0], &[1.0, 2.0, 3.0]) - 0.866_025_403_784_438_6).abs() < 1e-12);
    }
}
