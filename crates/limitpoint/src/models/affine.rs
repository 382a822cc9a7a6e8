//! Affine maps at settled weights: dense layers, and kernels that run over images.

use super::Window;
use crate::linalg::{Matrix, dot, matmul, matmul_tn};

/// z = W a + b, or kernels that run over an image.
///
/// A convolution is a dense layer at every place of its window: the image becomes a matrix with a column for every
/// place, the kernels are the rows of W, and z(o, place) = ⟨W_o, patch⟩ + b_o. A dense layer has one place, which is
/// the whole input.
///
/// ```
/// use limitpoint::{linalg::Matrix, models::{Affine, Convolution, Shape}};
/// let window = Convolution::new(1, 3).window(&Shape::image(1, 2, 2))?;
/// let blur = Affine { weight: Matrix { rows: 1, cols: 9, data: vec![1.0; 9] }, bias: None, window: Some(window) };
/// assert_eq!(blur.apply(&[1.0, 2.0, 3.0, 4.0]), [10.0; 4]); // every place sees the four pixels, and zeros
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Affine {
    /// W: outputs × inputs, or channels × (channels before · height · width of the kernel).
    pub weight: Matrix,
    /// b, a number for every row, where there is one.
    pub bias: Option<Vec<f64>>,
    /// Where kernels run; nothing for a dense layer.
    pub window: Option<Window>,
}

impl Affine {
    /// Places of the kernel.
    pub fn places(&self) -> usize {
        self.window.map_or(1, |window| window.after[0] * window.after[1])
    }

    /// Channels of the image it reads; the inputs of a dense layer.
    pub fn channels(&self) -> usize {
        self.window.map_or(self.weight.cols, |window| self.weight.cols / (window.size[0] * window.size[1]))
    }

    /// Numbers it reads.
    pub fn features(&self) -> usize {
        self.channels() * self.window.map_or(1, |window| window.before[0] * window.before[1])
    }

    /// Numbers it gives.
    pub fn outputs(&self) -> usize {
        self.weight.rows * self.places()
    }

    /// The bias of an output.
    pub fn bias_at(&self, output: usize) -> f64 {
        self.bias.as_ref().map_or(0.0, |bias| bias[output / self.places()])
    }

    /// W a + b.
    pub fn apply(&self, a: &[f64]) -> Vec<f64> {
        let mut z = self.product(&self.weight.data, a);
        z.iter_mut().enumerate().for_each(|(i, z)| *z += self.bias_at(i));
        z
    }

    /// |W| r + |b|: how large outputs and the sums on the way to them can be where inputs are at most r.
    pub fn sizes(&self, reach: &[f64]) -> Vec<f64> {
        let mut sizes = self.absolute_product(reach);
        sizes.iter_mut().enumerate().for_each(|(i, size)| *size += self.bias_at(i).abs());
        sizes
    }

    /// |W| r.
    pub fn absolute_product(&self, reach: &[f64]) -> Vec<f64> {
        let weight: Vec<f64> = self.weight.data.iter().map(|w| w.abs()).collect();
        self.product(&weight, reach)
    }

    fn product(&self, weight: &[f64], a: &[f64]) -> Vec<f64> {
        let (rows, cols, places) = (self.weight.rows, self.weight.cols, self.places());
        let Some(window) = &self.window else {
            return weight.chunks_exact(cols.max(1)).map(|row| dot(row, a)).collect();
        };
        let (seen, plane, entries) = (window.patches(), window.before[0] * window.before[1], cols / self.channels());
        let mut patches = vec![0.0; cols * places];
        for (row, to) in patches.chunks_exact_mut(places).enumerate() {
            let (channel, entry) = (row / entries, row % entries);
            for (place, to) in to.iter_mut().enumerate() {
                if let Some(pixel) = seen[place * entries + entry] {
                    *to = a[channel * plane + pixel as usize];
                }
            }
        }
        let mut z = vec![0.0; rows * places];
        matmul(&mut z, weight, &patches, rows, cols, places);
        z
    }

    /// Rows Λ over the outputs, `count` of them, as rows ΛW over the inputs.
    pub fn pull_back(&self, rows: &[f64], count: usize) -> Vec<f64> {
        let (outputs, cols, places, features) = (self.weight.rows, self.weight.cols, self.places(), self.features());
        let mut pulled = vec![0.0; count * features];
        let Some(window) = &self.window else {
            matmul(&mut pulled, rows, &self.weight.data, count, outputs, cols);
            return pulled;
        };
        let (seen, plane, entries) = (window.patches(), window.before[0] * window.before[1], cols / self.channels());
        let mut patches = vec![0.0; cols * places];
        for (row, pulled) in rows.chunks_exact(outputs * places).zip(pulled.chunks_exact_mut(features)) {
            matmul_tn(&mut patches, &self.weight.data, row, cols, outputs, places);
            for (row, from) in patches.chunks_exact(places).enumerate() {
                let (channel, entry) = (row / entries, row % entries);
                for (place, from) in from.iter().enumerate() {
                    if let Some(pixel) = seen[place * entries + entry] {
                        pulled[channel * plane + pixel as usize] += from;
                    }
                }
            }
        }
        pulled
    }

    /// More terms than a sum over its inputs, or over its outputs, has.
    pub fn terms(&self) -> usize {
        let entries = self.window.map_or(1, |window| window.size[0] * window.size[1]);
        self.weight.cols + self.weight.rows * entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Convolution, Padding, Shape};
    use crate::numeric::Streams;

    /// Strides and paddings by the definition, and ⟨Λ, W a⟩ = ⟨ΛW, a⟩.
    #[test]
    fn kernels_are_sums_over_their_patches() {
        let mut stream = Streams::new(4).stream("affine");
        for (stride, padding) in [
            (1, Padding::Same),
            (2, Padding::Same),
            (1, Padding::Valid),
            (2, Padding::Zeros(2)),
            (3, Padding::Zeros(1)),
        ] {
            let layer = Convolution { stride, padding, kernel: [3, 2], ..Convolution::new(4, 3) };
            let window = layer.window(&Shape::image(2, 5, 6)).unwrap();
            let mut weight = Matrix::zeros(4, 12);
            stream.fill_normal(&mut weight.data);
            let affine = Affine { weight, bias: Some(vec![0.5, -1.0, 2.0, 0.0]), window: Some(window) };
            let (mut a, mut row) = (vec![0.0; affine.features()], vec![0.0; affine.outputs()]);
            stream.fill_normal(&mut a);
            stream.fill_normal(&mut row);
            let z = affine.apply(&a);
            let [height, width] = window.after;
            for o in 0..4 {
                for y in 0..height {
                    for x in 0..width {
                        let mut expected = affine.bias_at(o * height * width);
                        for (c, i, j) in (0..2).flat_map(|c| (0..3).flat_map(move |i| (0..2).map(move |j| (c, i, j)))) {
                            let from = [y * stride + i, x * stride + j];
                            let at = |side: usize| from[side].checked_sub(window.zeros[side]);
                            if let (Some(v @ 0..5), Some(u @ 0..6)) = (at(0), at(1)) {
                                expected += affine.weight[(o, (c * 3 + i) * 2 + j)] * a[(c * 5 + v) * 6 + u];
                            }
                        }
                        assert!((z[(o * height + y) * width + x] - expected).abs() < 1e-12, "{layer}");
                    }
                }
            }
            let linear = Affine { bias: None, ..affine.clone() };
            let (above, below) = (dot(&row, &linear.apply(&a)), dot(&affine.pull_back(&row, 1), &a));
            assert!((above - below).abs() < 1e-11, "{layer}: {above} {below}");
            assert!(
                affine.sizes(&a.iter().map(|a| a.abs()).collect::<Vec<_>>()).iter().zip(&z).all(|(s, z)| s >= &z.abs())
            );
        }
    }
}
