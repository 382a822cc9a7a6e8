//! How much a trained layer stretches: the spectral norm of its weights as a matrix, and its norm as an operator on images.
//!
//! The kernel of a convolution is kept as a matrix W of output channels × (input channels · height · width). Two norms of
//! it are called spectral elsewhere, and they differ:
//!
//! ```text
//! spectral   ‖W‖₂,  how much longer the outputs at one pixel can be than one patch
//! operator   ‖K‖₂ = max ‖K x‖₂/‖x‖₂ over images x of the layer's own input size, zeros around them included
//! ```
//!
//! `spectral` is what the norm of that name and Muon see. `operator` is how much longer an image can get. With m the places
//! of a kernel that meet one pixel and W_ij the matrix (outputs × inputs) of one entry of the kernel,
//!
//! ```text
//! ‖K x‖/‖x‖ ≤ ‖K‖₂ ≤ min { √m ‖W‖₂,  Σ_ij ‖W_ij‖₂ }
//! ```
//!
//! since patches hold every pixel at most m times, and since K is a sum of shifts followed by W_ij. The lower bound comes
//! from power iteration on KᵀK. A dense layer has one norm.

use serde::{Deserialize, Serialize};

use super::{Architecture, Convolution, Layer, Shape, Window};
use crate::linalg::{LinalgError, Svd, norm2};

/// Multiply-adds that power iteration on one layer may take.
const BUDGET: u128 = 300_000_000;
/// Iterations, if they are within the budget, and the relative change that ends them.
const ITERATIONS: u128 = 300;
const SETTLED: f64 = 1e-12;

/// The norms of one layer's weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelNorms {
    /// Name of the block of weights.
    pub block: String,
    /// The layer in words, with the shape it reads.
    pub layer: String,
    /// ‖W‖_F.
    pub frobenius: f64,
    /// ‖W‖₂ of the matrix.
    pub spectral: f64,
    /// A lower bound, found by power iteration, and an upper bound of ‖K‖₂.
    pub operator: [f64; 2],
}

impl Architecture {
    /// The norms of the weights of all dense layers and convolutions; refuses weights that are not finite.
    ///
    /// ```
    /// use limitpoint::models::{Architecture, Convolution, Layer, Padding, Shape};
    /// // means of 2×1 pixels of an image of 3×1: the matrix (½, ½) has norm √½, the operator (½ ½ 0; 0 ½ ½) has √¾
    /// let mean = Convolution { kernel: [2, 1], padding: Padding::Valid, ..Convolution::new(1, 2) };
    /// let network = Architecture::new(Shape::image(1, 3, 1), vec![Layer::Convolution(mean)])?;
    /// let norms = &network.kernel_norms(&[0.5, 0.5])?[0];
    /// assert!((norms.spectral - 0.5f64.sqrt()).abs() < 1e-12 && (norms.operator[0] - 0.75f64.sqrt()).abs() < 1e-9);
    /// assert!(norms.operator[1] <= 1.0 + 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn kernel_norms(&self, params: &[f64]) -> Result<Vec<KernelNorms>, LinalgError> {
        let (mut norms, mut weights) = (Vec::new(), self.layout().weights());
        for (layer, before) in self.with_inputs() {
            if !matches!(layer, Layer::Dense { .. } | Layer::Convolution(_)) {
                continue;
            }
            let Some(block) = weights.next() else { break };
            let own = &params[block.range()];
            let spectral = largest_singular(own, block.rows, block.cols)?;
            let (words, operator) = match layer {
                Layer::Convolution(conv) => (conv.to_string(), operator_norm(conv, before, own, spectral)?),
                _ => (format!("dense {}", block.rows), [spectral, spectral]),
            };
            let layer = format!("{words} on {before}");
            norms.push(KernelNorms { block: block.name.clone(), layer, frobenius: norm2(own), spectral, operator });
        }
        Ok(norms)
    }
}

fn largest_singular(matrix: &[f64], rows: usize, cols: usize) -> Result<f64, LinalgError> {
    let mut svd = Svd::new(rows, cols);
    svd.factor(matrix)?;
    Ok(svd.values().first().copied().unwrap_or(0.0))
}

/// The two bounds of a convolution's norm on images of this shape.
fn operator_norm(conv: &Convolution, before: &Shape, weights: &[f64], spectral: f64) -> Result<[f64; 2], LinalgError> {
    let Ok(window) = conv.window(before) else { return Ok([0.0, f64::INFINITY]) };
    let entries = window.size[0] * window.size[1];
    let (outputs, inputs) = (conv.channels, weights.len() / (conv.channels * entries).max(1));
    let mut by_entries = 0.0;
    for entry in 0..entries {
        let own: Vec<f64> = weights.iter().skip(entry).step_by(entries).copied().collect();
        by_entries += largest_singular(&own, outputs, inputs)?;
    }
    let upper = by_entries.min(conv.meetings().sqrt() * spectral);
    let operator = Operator { window, channels: [inputs, outputs], weights };
    let iterations = (BUDGET / (2 * conv.cost(before)).max(1)).clamp(4, ITERATIONS);
    // any start that is not orthogonal to the top will do; this one is the same every time and has no symmetry
    let mut image: Vec<f64> = (0..before.len()).map(|k| 1.0 + 0.5 * (1.7 * k as f64 + 0.3).sin()).collect();
    let mut lower: f64 = 0.0;
    for _ in 0..iterations {
        let length = norm2(&image);
        if length == 0.0 {
            break;
        }
        image.iter_mut().for_each(|x| *x /= length);
        let raised = operator.forward(&image);
        let found = norm2(&raised);
        let settled = (found - lower).abs() <= SETTLED * found;
        lower = lower.max(found);
        if settled {
            break;
        }
        image = operator.back(&raised);
    }
    // rounding may put the estimate a little above a bound that is attained
    Ok([lower.min(upper), upper])
}

/// A convolution without its biases.
struct Operator<'a> {
    window: Window,
    channels: [usize; 2],
    weights: &'a [f64],
}

impl Operator<'_> {
    /// Calls `meet` with (output number, weight, input number) wherever they meet.
    fn meetings(&self, mut meet: impl FnMut(usize, f64, usize)) {
        let [before, after, entries] = [self.window.before, self.window.after, self.window.size].map(|s| s[0] * s[1]);
        for o in 0..self.channels[1] {
            for c in 0..self.channels[0] {
                let kernel = &self.weights[(o * self.channels[0] + c) * entries..][..entries];
                self.window.meetings(|to, entry, from| meet(o * after + to, kernel[entry], c * before + from));
            }
        }
    }

    fn forward(&self, image: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.channels[1] * self.window.after[0] * self.window.after[1]];
        self.meetings(|to, weight, from| out[to] += weight * image[from]);
        out
    }

    fn back(&self, signals: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.channels[0] * self.window.before[0] * self.window.before[1]];
        self.meetings(|to, weight, from| out[from] += weight * signals[to]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Padding;
    use crate::numeric::Streams;

    /// The operator as a matrix has the norm that lies between the bounds, and the lower bound is all of it.
    #[test]
    fn bounds_hold_the_largest_singular_value_of_the_operator() {
        let mut stream = Streams::new(3).stream("models");
        for (channels, kernel, stride, padding) in [
            (3, [3, 3], 1, Padding::Same),
            (2, [2, 3], 2, Padding::Same),
            (4, [3, 1], 1, Padding::Valid),
            (1, [3, 3], 3, Padding::Zeros(2)),
        ] {
            let conv = Convolution { kernel, stride, padding, ..Convolution::new(channels, 3) };
            let shape = Shape::image(2, 5, 4);
            let network = Architecture::new(shape.clone(), vec![Layer::Convolution(conv.clone())]).unwrap();
            let mut theta = vec![0.0; network.layout().len()];
            stream.fill_normal(&mut theta);
            let norms = network.kernel_norms(&theta).unwrap().remove(0);
            let operator = Operator { window: conv.window(&shape).unwrap(), channels: [2, channels], weights: &theta };
            let columns: Vec<Vec<f64>> = (0..shape.len())
                .map(|k| operator.forward(&(0..shape.len()).map(|j| f64::from(u8::from(j == k))).collect::<Vec<_>>()))
                .collect();
            let exact = largest_singular(&columns.concat(), columns.len(), columns[0].len()).unwrap();
            let [lower, upper] = norms.operator;
            assert!((lower - exact).abs() < 1e-6 * exact && exact <= upper * (1.0 + 1e-12), "{lower} {exact} {upper}");
            assert!(norms.spectral <= norms.frobenius * (1.0 + 1e-12));
        }
    }

    #[test]
    fn weights_that_are_not_finite_are_refused() {
        let network = Architecture::new(Shape::vector(2), vec![Layer::dense(1)]).unwrap();
        assert!(network.kernel_norms(&[1.0, f64::NAN]).is_err());
        let norms = network.kernel_norms(&[3.0, 4.0]).unwrap().remove(0);
        assert!((norms.spectral - 5.0).abs() < 1e-12 && norms.operator == [norms.spectral; 2]);
        assert_eq!(norms.layer, "dense 1 on 2");
    }
}
