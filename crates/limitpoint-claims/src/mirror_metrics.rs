//! The metrics of mirror maps that paper C puts in front of the gradients of image networks (section J.3).

use limitpoint::optimisers::OptimiserSpec;
use limitpoint::params::{Block, ParamLayout};
use limitpoint::potentials::PotentialSpec;

/// The exponent of the smoothened homogeneous potential.
const P: f64 = 10.0;

/// A metric ∇²R⁻¹ in front of the gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Metric {
    /// None: gradient descent.
    Gradient,
    /// That of hyperbolic entropy.
    Hyperbolic { lambda: f64 },
    /// That of the smoothened homogeneous potential.
    Smoothed { lambda: f64 },
}

impl Metric {
    /// Metric steps with the width corrections of section J.3, w the fan-in of a layer:
    ///
    /// ```text
    /// hyperbolic   √(w θ² + λ)/√(1 + λ)                        = √w/√(1 + λ) · √(θ² + λ/w)
    /// p            λ/(|θ|^{p−2} w^{(p−2)/2} + λ)               = c/((p − 1)|θ|^{p−2} + c),  c = λ (p − 1)/w^{(p−2)/2}
    /// ```
    ///
    /// The exponent of w in the second is printed as (2 − p)/2, which makes it gradient descent for every λ of the paper.
    pub fn optimiser(self, layout: &ParamLayout) -> OptimiserSpec {
        let part = |block: &Block| {
            let width = block.fan_in as f64;
            let (potential, factor) = match self {
                Self::Gradient => (PotentialSpec::Euclidean, 1.0),
                Self::Hyperbolic { lambda } => {
                    (PotentialSpec::Hyperbolic { lambda: lambda / width }, (width / (1.0 + lambda)).sqrt())
                }
                Self::Smoothed { lambda } => {
                    let factor = lambda * (P - 1.0) / width.powf(0.5 * (P - 2.0));
                    (PotentialSpec::Smoothed { p: P, lambda: factor }, factor)
                }
            };
            let of = Box::new(OptimiserSpec::NaturalGradient { potential });
            (block.name.clone(), OptimiserSpec::Adjusted { of, factor, decay: 0.0 })
        };
        if self == Self::Gradient {
            return OptimiserSpec::steepest(limitpoint::norms::NormSpec::L2);
        }
        OptimiserSpec::Blocks(layout.blocks().iter().map(part).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ∇²R⁻¹ as section J.3 writes it, with the exponent that makes |θ√w| count.
    #[test]
    fn metrics_are_those_of_the_paper_with_the_exponent_corrected() {
        let layout = ParamLayout::of([Block::weight(1, 2, 9), Block::weight(2, 1, 4)]).unwrap();
        let theta: Vec<f64> = (0..22).map(|k| 0.05 * f64::from(k) - 0.4).collect();
        for metric in
            [Metric::Hyperbolic { lambda: 1e-5 }, Metric::Smoothed { lambda: 1e-5 }, Metric::Smoothed { lambda: 1.0 }]
        {
            let OptimiserSpec::Blocks(parts) = metric.optimiser(&layout) else { panic!("one part a layer") };
            for (block, (name, part)) in layout.blocks().iter().zip(&parts) {
                assert_eq!(&block.name, name);
                let OptimiserSpec::Adjusted { of, factor, .. } = part else { panic!("a factor") };
                let OptimiserSpec::NaturalGradient { potential } = &**of else { panic!("a metric") };
                let alone = ParamLayout::of([block.clone()]).unwrap();
                let (own, ones) = (&theta[block.range()], vec![1.0; block.len()]);
                let mut found = vec![0.0; block.len()];
                potential.build(&alone).unwrap().inverse_hessian_action(own, &ones, &mut found);
                let width = block.fan_in as f64;
                for (t, found) in own.iter().zip(found) {
                    let expected = match metric {
                        Metric::Gradient => 1.0,
                        Metric::Hyperbolic { lambda } => (t * t * width + lambda).sqrt() / (1.0 + lambda).sqrt(),
                        Metric::Smoothed { lambda } => {
                            lambda / (t.abs().powf(P - 2.0) * width.powf(0.5 * (P - 2.0)) + lambda)
                        }
                    };
                    assert!((factor * found - expected).abs() < 1e-12 * expected, "{metric:?} {t}: {found} {expected}");
                }
            }
        }
    }
}
