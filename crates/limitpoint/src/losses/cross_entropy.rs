//! Cross-entropy over many classes.

use super::exp::exp;
use super::lanes::{degenerate, divide, fill_degenerate, log1p_ratio, smallest};
use super::logistic::Logistic;
use super::{Loss, LossFamily, Tail};
use crate::numeric::CompensatedSum;

/// ℓ = ln(1 + Σⱼ e^−sⱼ), the negative log of the softmax probability of the right class.
///
/// With sⱼ = Φ_y − Φ_j over the wrong classes j, this is the logistic loss of q̃ = −ln Σⱼ e^−sⱼ. Per example, with m
/// its least margin, eⱼ = exp(m − sⱼ) and S = Σⱼ eⱼ:
///
/// ```text
/// m ≥ 0:  ℓ = ln(1 + S e^−m),       −∂ℓ/∂sⱼ = eⱼ e^−m/(1 + S e^−m)
/// m < 0:  ℓ = −m + ln(S + e^m),     −∂ℓ/∂sⱼ = eⱼ/(S + e^m)
/// ```
///
/// When every margin of the batch is positive the common factor exp(−min s) is taken out of L first. The softmax has
/// e^{+Φ} (printed with e^{−Φ}). D.F, D.algK2.
#[derive(Debug, Clone, Copy)]
pub(super) struct CrossEntropy;

impl Loss for CrossEntropy {
    fn evaluate(&self, margins: &[f64], per_example: usize, weights: &mut [f64]) -> f64 {
        debug_assert!(margins.len() == weights.len() && margins.len().is_multiple_of(per_example.max(1)));
        let least = smallest(margins);
        if let Some(log_loss) = degenerate(margins, least) {
            return fill_degenerate(log_loss, weights);
        }
        let (anchor, per_example) = (least.max(0.0), per_example.max(1));
        let total = crate::numeric::wide(
            #[inline(always)]
            || {
                let scale = exp(-anchor);
                let mut total = CompensatedSum::default();
                for (s, w) in margins.chunks_exact(per_example).zip(weights.chunks_exact_mut(per_example)) {
                    let shift = if anchor > 0.0 { anchor } else { example_shift(s) };
                    for (weight, &margin) in w.iter_mut().zip(s) {
                        *weight = exp(shift - margin);
                    }
                    let (term, factor) = example(w.iter().sum(), shift, scale, anchor > 0.0);
                    w.iter_mut().for_each(|weight| *weight *= factor);
                    total.add(term);
                }
                let total = total.value();
                divide(weights, total);
                total
            },
        );
        total.ln() - anchor
    }

    fn log_loss(&self, margins: &[f64], per_example: usize) -> f64 {
        let least = smallest(margins);
        if let Some(log_loss) = degenerate(margins, least) {
            return log_loss;
        }
        let (anchor, per_example) = (least.max(0.0), per_example.max(1));
        let total = crate::numeric::wide(
            #[inline(always)]
            || {
                let scale = exp(-anchor);
                let mut total = CompensatedSum::default();
                for s in margins.chunks_exact(per_example) {
                    let shift = if anchor > 0.0 { anchor } else { example_shift(s) };
                    let sum = s.iter().map(|margin| exp(shift - margin)).sum();
                    total.add(example(sum, shift, scale, anchor > 0.0).0);
                }
                total.value()
            },
        );
        total.ln() - anchor
    }

    fn family(&self) -> LossFamily {
        LossFamily::Margin
    }

    fn tail(&self) -> Option<&dyn Tail> {
        Some(&Logistic)
    }
}

/// The least margin of one example, or any finite number when all of them are +∞.
#[inline(always)]
fn example_shift(margins: &[f64]) -> f64 {
    margins.iter().fold(f64::MAX, |low, &s| if s < low { s } else { low })
}

/// (ℓ, factor) of one example from S = `sum`, where −∂ℓ/∂sⱼ = factor · exp(shift − sⱼ).
///
/// If `separated`, both are relative to the common `scale` = e^−shift; otherwise `shift` is the example's own.
#[inline(always)]
fn example(sum: f64, shift: f64, scale: f64, separated: bool) -> (f64, f64) {
    if separated {
        let x = sum * scale;
        let ratio = if x <= 1.0 { log1p_ratio(x) } else { x.ln_1p() / x };
        (sum * ratio, 1.0 / (1.0 + x))
    } else if shift < 0.0 {
        let denominator = sum + exp(shift);
        (denominator.ln() - shift, 1.0 / denominator)
    } else {
        let scale = exp(-shift);
        let x = sum * scale;
        (x.ln_1p(), scale / (1.0 + x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::log_sum_exp;

    #[test]
    fn one_wrong_class_is_the_logistic_loss() {
        for margins in [[0.3, 2.0, 700.0], [-4.0, 3.0, 1e6], [45.0, 46.0, 50.0]] {
            let (mut many, mut binary) = ([0.0; 3], [0.0; 3]);
            let a = CrossEntropy.evaluate(&margins, 1, &mut many);
            let b = Logistic.evaluate(&margins, 1, &mut binary);
            assert!((a - b).abs() <= 1e-14 * b.abs().max(1.0));
            assert!(many.iter().zip(binary).all(|(x, y)| (x - y).abs() <= 1e-13 * y));
        }
    }

    #[test]
    fn the_example_loss_is_logistic_in_the_soft_margin() {
        for s in [[1.0, 2.0, 0.5], [-300.0, 20.0, 1.0], [900.0, 901.0, 905.0], [0.0, 0.0, 0.0]] {
            let soft = -log_sum_exp(&s.map(|x| -x));
            let expected = -Logistic.f(soft);
            assert!((CrossEntropy.log_example_loss(&s) - expected).abs() <= 1e-14 * expected.abs().max(1.0), "{s:?}");
        }
    }

    #[test]
    fn a_loss_below_ln_two_classifies_everything() {
        // D.F: threshold of the sum
        let threshold = CrossEntropy.tail().unwrap().log_threshold();
        assert!((threshold - 2f64.ln().ln()).abs() < 1e-15);
        assert!(CrossEntropy.log_loss(&[0.0, 900.0, 900.0, 900.0], 2) >= threshold - 1e-15);
        assert!(CrossEntropy.log_loss(&[1.0, 4.0, 2.0, 4.0], 2) < threshold);
    }
}
