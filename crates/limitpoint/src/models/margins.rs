//! From scores and targets to the margins that losses see, and back.

use crate::data::Targets;

/// The linear map from scores to margins, fixed by the targets.
///
/// ```text
/// binary        qₙ   = yₙ Φ(xₙ)                       one margin an example
/// classes       sₙⱼ  = Φ_{yₙ}(xₙ) − Φⱼ(xₙ),  j ≠ yₙ   C − 1 margins an example, j increasing (D Appendix F)
/// values        rₙ   = Φ(xₙ) − yₙ                     one residual an example (regression)
/// ```
///
/// ```
/// use limitpoint::data::Targets;
/// use limitpoint::models::MarginMap;
/// let map = MarginMap::new(&Targets::Classes { labels: vec![1], count: 3 });
/// let mut margins = vec![0.0; 2];
/// map.margins(&[1.0, 4.0, 2.0], None, &mut margins);
/// assert_eq!(margins, [3.0, 2.0]);
/// ```
#[derive(Debug, Clone)]
pub struct MarginMap {
    targets: Targets,
}

impl MarginMap {
    /// The map of these targets.
    pub fn new(targets: &Targets) -> Self {
        Self { targets: targets.clone() }
    }

    /// Scores an example needs.
    pub fn outputs(&self) -> usize {
        match &self.targets {
            Targets::Classes { count, .. } => *count,
            _ => 1,
        }
    }

    /// Margins an example has.
    pub fn per_example(&self) -> usize {
        match &self.targets {
            Targets::Classes { count, .. } => count - 1,
            _ => 1,
        }
    }

    /// Whether the margins are residuals, whose root is at 0.
    pub fn is_regression(&self) -> bool {
        matches!(self.targets, Targets::Values(_))
    }

    /// Writes the margins of the examples `rows` (all when absent), in their order.
    pub fn margins(&self, scores: &[f64], rows: Option<&[usize]>, out: &mut [f64]) {
        let outputs = self.outputs();
        let index = |n: usize| rows.map_or(n, |rows| rows[n]);
        match &self.targets {
            Targets::Binary(y) => out.iter_mut().enumerate().for_each(|(n, q)| *q = y[index(n)] * scores[n]),
            Targets::Values(y) => out.iter_mut().enumerate().for_each(|(n, r)| *r = scores[n] - y[index(n)]),
            Targets::Classes { labels, .. } => {
                for (n, margins) in out.chunks_exact_mut(outputs - 1).enumerate() {
                    let (scores, label) = (&scores[n * outputs..(n + 1) * outputs], labels[index(n)]);
                    let others = (0..outputs).filter(|&j| j != label);
                    margins.iter_mut().zip(others).for_each(|(s, j)| *s = scores[label] - scores[j]);
                }
            }
        }
    }

    /// cotangent = −(∂ margins / ∂ scores)ᵀ weights: turns −∂ ln L/∂margin into ∂ ln L/∂score.
    pub fn pull_back(&self, weights: &[f64], rows: Option<&[usize]>, cotangent: &mut [f64]) {
        let outputs = self.outputs();
        let index = |n: usize| rows.map_or(n, |rows| rows[n]);
        match &self.targets {
            Targets::Binary(y) => cotangent.iter_mut().enumerate().for_each(|(n, c)| *c = -y[index(n)] * weights[n]),
            Targets::Values(_) => cotangent.iter_mut().zip(weights).for_each(|(c, w)| *c = -w),
            Targets::Classes { labels, .. } => {
                for (n, cotangent) in cotangent.chunks_exact_mut(outputs).enumerate() {
                    let (weights, label) = (&weights[n * (outputs - 1)..(n + 1) * (outputs - 1)], labels[index(n)]);
                    cotangent[label] = -weights.iter().sum::<f64>();
                    let others = (0..outputs).filter(|&j| j != label);
                    weights.iter().zip(others).for_each(|(w, j)| cotangent[j] = *w);
                }
            }
        }
    }
}
