//! How large the gauge and the time must be for the horizon to show.

use serde::Serialize;

use super::{MirrorFamily, TrainedLayers};
use crate::potentials::HorizonBounds;

/// When the relative gap (gauge − φ)/gauge is small, for a network of n weights.
///
/// ```text
/// φ ≤ gauge ≤ c φ + a                                  C.lem4.10; a grows with n and λ
/// lemma        ln t ≈ a^L                              the gauge outgrows a
/// gap ≤ g      gauge ≥ G                               G = a/(g − (c − 1)), or from the sharper bound for p > 2:
///                                                      gauge^p/φ^p − 1 ≤ pλ n^{1−2/p}/(2(p−1) ‖θ‖_p^{p−2})
///              ln t ≈ ln 1/Loss ≈ γ G^L                γ = q_min/φ^L, the margin of the limit
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reach {
    /// c.
    pub factor: f64,
    /// a.
    pub offset: f64,
    /// a^L.
    pub lemma_log_time: f64,
    /// G, the gauge at which the gap is at most the one asked for, whatever the direction.
    pub gauge: f64,
    /// γ G^L, where a margin or a bound for it is known.
    pub log_time: Option<f64>,
}

impl Reach {
    /// For a family with a λ per layer.
    pub fn new(family: MirrorFamily, lambdas: &[f64], network: &TrainedLayers, gap: f64, margin: Option<f64>) -> Self {
        let (bounds, gauge) = match family {
            MirrorFamily::Euclidean => (HorizonBounds { factor: 1.0, offset: 0.0 }, 0.0),
            MirrorFamily::Hyperbolic => {
                let offset = sum(network, lambdas, |weights, lambda| weights * lambda.sqrt());
                (HorizonBounds { factor: 1.0, offset }, offset / gap)
            }
            MirrorFamily::Smoothed { p } => {
                let largest = lambdas.iter().copied().fold(0.0, f64::max);
                let factor = (1.0 + 0.5 * p * largest / (p - 1.0)).powf(1.0 / p);
                let offset = sum(network, lambdas, |weights, lambda| 0.5 * p * lambda * weights).powf(1.0 / p);
                let bounds = HorizonBounds { factor, offset };
                let crude = if gap > factor - 1.0 { offset / (gap - (factor - 1.0)) } else { f64::INFINITY };
                let n = network.parameters() as f64;
                let excess = (1.0 - gap).powf(-p) - 1.0;
                let size = (p * largest * n.powf(1.0 - 2.0 / p) / (2.0 * (p - 1.0) * excess)).powf(1.0 / (p - 2.0));
                let sharp = (p - 1.0).powf(1.0 / p) * size / (1.0 - gap);
                (bounds, crude.min(sharp))
            }
        };
        let HorizonBounds { factor, offset } = bounds;
        let log_time = margin.map(|margin| margin * gauge.powf(network.degree));
        Self { factor, offset, lemma_log_time: bounds.log_time(network.degree), gauge, log_time }
    }
}

fn sum(network: &TrainedLayers, lambdas: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    network.layers.iter().zip(lambdas).map(|(layer, lambda)| term(layer.weights as f64, *lambda)).sum()
}

/// An upper bound for the margin γ = q_min/φ^L of a fully connected network with activations like ReLU.
///
/// ```text
/// |f(x)| ≤ ‖x‖_{p'} Π ‖W_l‖_p Π m_l^{1−2/p}            m_l: widths between layers; the second product is 1 for p = 1
/// Π ‖W_l‖_p ≤ (Σ ‖W_l‖_p^p / L)^{L/p}                  means
/// γ ≤ ‖x‖_{p'} Π m_l^{1−2/p} / (L c)^{L/p}             φ = (c Σ|θ|^p)^{1/p}
/// ```
///
/// `inputs` is the largest ‖x‖_{p'}, 1/p + 1/p' = 1; a bias in the first layer makes it ‖(x, 1)‖_{p'}. Nothing where
/// degrees of layers differ from 1 or a layer is frozen. Differences of two outputs double it, for more than one class;
/// a factor in front of the output is the caller's to multiply with.
pub fn margin_bound(family: MirrorFamily, network: &TrainedLayers, inputs: f64, outputs: usize) -> Option<f64> {
    let p = family.degree();
    let coefficient = if matches!(family, MirrorFamily::Smoothed { .. }) { p - 1.0 } else { 1.0 };
    if !network.multilinear || network.degree != network.layers.len() as f64 {
        return None;
    }
    let exponent: f64 = if p > 2.0 { 1.0 - 2.0 / p } else { 0.0 };
    let widths: f64 = network.layers.iter().skip(1).map(|layer| (layer.fan_in as f64).powf(exponent)).product();
    let inputs = match (network.first_bias, p == 1.0) {
        (false, _) => inputs,
        (true, true) => inputs.max(1.0),
        (true, false) => (inputs.powf(p / (p - 1.0)) + 1.0).powf(1.0 - 1.0 / p),
    };
    let layers = network.degree;
    let classes = if outputs > 1 { 2.0 } else { 1.0 };
    let bound = classes * inputs * widths / (layers * coefficient).powf(layers / p);
    (bound > 0.0 && bound.is_finite()).then_some(bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Forward, cpu};
    use crate::models::Initialiser;
    use crate::potentials::PotentialSpec;

    #[test]
    fn equal_layers_have_the_bounds_of_the_potential() {
        let network = TrainedLayers::relu(3, &[5], 1, &Initialiser::Normal { deviation: 0.1 }).unwrap();
        let layout = crate::params::ParamLayout::vector(network.parameters());
        for (family, spec) in [
            (MirrorFamily::Hyperbolic, PotentialSpec::Hyperbolic { lambda: 0.3 }),
            (MirrorFamily::Smoothed { p: 3.0 }, PotentialSpec::Smoothed { p: 3.0, lambda: 0.3 }),
        ] {
            let reach = Reach::new(family, &[0.3, 0.3], &network, 0.1, None);
            let bounds = spec.build(&layout).unwrap().horizon_bounds().unwrap();
            assert!((reach.offset / bounds.offset - 1.0).abs() < 1e-12, "{reach:?} {bounds:?}");
            assert!((reach.factor / bounds.factor - 1.0).abs() < 1e-12);
            assert!((reach.lemma_log_time / bounds.log_time(2.0) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn beyond_the_gauge_the_gap_is_small_whatever_the_direction() {
        let network = TrainedLayers::relu(4, &[6], 1, &Initialiser::Normal { deviation: 0.1 }).unwrap();
        let layout = crate::params::ParamLayout::vector(network.parameters());
        let mut stream = crate::numeric::Streams::new(3).stream("reach");
        for (family, spec) in [
            (MirrorFamily::Hyperbolic, PotentialSpec::Hyperbolic { lambda: 0.3 }),
            (MirrorFamily::Smoothed { p: 3.0 }, PotentialSpec::Smoothed { p: 3.0, lambda: 0.3 }),
            (MirrorFamily::Smoothed { p: 5.0 }, PotentialSpec::Smoothed { p: 5.0, lambda: 2.0 }),
        ] {
            let (PotentialSpec::Hyperbolic { lambda } | PotentialSpec::Smoothed { lambda, .. }) = spec else {
                continue;
            };
            let reach = Reach::new(family, &[lambda; 2], &network, 0.1, None);
            let mut potential = spec.build(&layout).unwrap();
            for round in 0..50 {
                let mut theta = vec![0.0; layout.len()];
                stream.fill_normal(&mut theta);
                if round % 2 == 1 {
                    theta.iter_mut().skip(3).for_each(|w| *w = 0.0);
                }
                // to the gauge asked for
                let (mut low, mut high) = (0.0, 1e6);
                for _ in 0..200 {
                    let middle: f64 = 0.5 * (low + high);
                    let scaled: Vec<f64> = theta.iter().map(|w| middle * w).collect();
                    if potential.gauge(&scaled) < reach.gauge { low = middle } else { high = middle }
                }
                let scaled: Vec<f64> = theta.iter().map(|w| high * w).collect();
                let gauge = potential.gauge(&scaled);
                let gap = 1.0 - potential.horizon(&scaled) / gauge;
                assert!(gap <= 0.1 + 1e-9, "{spec}: gap {gap} at gauge {gauge} of {}", reach.gauge);
            }
        }
    }

    #[test]
    fn no_network_has_a_larger_margin_than_the_bound() {
        let model = crate::models::ModelSpec::relu(&[6, 5]);
        let network = TrainedLayers::relu(4, &[6, 5], 1, &Initialiser::Normal { deviation: 1.0 }).unwrap();
        let mut stream = crate::numeric::Streams::new(5).stream("bound");
        for p in [1.0f64, 3.0] {
            let family = if p == 1.0 { MirrorFamily::Hyperbolic } else { MirrorFamily::Smoothed { p } };
            for _ in 0..200 {
                let mut x = vec![0.0; 4];
                stream.fill_normal(&mut x);
                let dual = if p == 1.0 {
                    x.iter().fold(0.0f64, |m, v| m.max(v.abs()))
                } else {
                    let q = p / (p - 1.0);
                    x.iter().map(|v| v.abs().powf(q)).sum::<f64>().powf(1.0 / q)
                };
                let inputs = crate::linalg::Matrix::from_rows(&[&x]);
                let mut built = cpu::bind(&model, &inputs, 1, crate::engine::Compute::default()).unwrap();
                let mut theta = vec![0.0; built.layout().len()];
                stream.fill_normal(&mut theta);
                theta.iter_mut().for_each(|w| *w = w.abs().powi(3));
                let coefficient = if p == 1.0 { 1.0 } else { p - 1.0 };
                let phi = (coefficient * theta.iter().map(|w| w.powf(p)).sum::<f64>()).powf(1.0 / p);
                let margin = built.scores(&theta)[0].abs() / phi.powi(3);
                assert!(margin <= margin_bound(family, &network, dual, 1).unwrap());
            }
        }
    }

    #[test]
    fn a_bias_sees_an_input_of_one_and_frozen_layers_leave_no_bound() {
        use crate::models::{Activation, Biases, ModelSpec, OutputScale};
        let start = Initialiser::Normal { deviation: 0.1 };
        let network = |biases, frozen: &[usize]| {
            let model = ModelSpec::Network {
                widths: vec![1],
                activation: Activation::Relu,
                biases,
                frozen: frozen.to_vec(),
                output_scale: OutputScale::One,
            };
            TrainedLayers::of_model(&model, 1, 1, &start).unwrap()
        };
        // x = 0.1 and a = b = 1, w = 0: q = 1 and ‖θ‖₁² = 4
        let biased = network(Biases::First, &[]);
        assert_eq!((biased.parameters(), biased.first_bias), (3, true));
        assert!(margin_bound(MirrorFamily::Hyperbolic, &biased, 0.1, 1).unwrap() >= 0.25);
        // equal weights reach the bound: a = w = 1, x = 2, q = 2 over 4
        let plain = network(Biases::None, &[]);
        assert_eq!(margin_bound(MirrorFamily::Hyperbolic, &plain, 2.0, 1), Some(0.5));
        assert_eq!(margin_bound(MirrorFamily::Hyperbolic, &network(Biases::None, &[1]), 2.0, 1), None);
        assert_eq!(margin_bound(MirrorFamily::Hyperbolic, &plain, f64::NAN, 1), None);
    }
}
