//! How much longer a convolution can make an image: its norm as an operator, rounded outwards.

use super::RobustnessError;
use super::lipschitz::spectral_bound;
use super::rounding::{UNIT, gamma, up};
use crate::linalg::{Matrix, norm2};
use crate::models::{Affine, Window};

/// Up to this many numbers on its smaller side, and entries in all, an operator is written down as a matrix.
const WRITTEN_DOWN: [usize; 2] = [300, 1 << 20];

/// A number that max ‖Wa‖₂/‖a‖₂ provably does not exceed, W without its bias.
///
/// A dense layer: [`spectral_bound`] of its matrix. A convolution on small images: of the matrix of the operator, whose
/// entries are its weights. On larger ones of the convolution on a torus in which the image and the zeros around it
/// fit, of which W is a part, so that its norm is no larger. On the torus waves pass one by one,
///
/// ```text
/// ‖W‖ ≤ max over ω of ‖Σᵢⱼ W[:, :, i, j] e^{−√−1 (ω₁ i + ω₂ j)}‖₂,     ω ∈ (2π/n) {0, …, n − 1}²
/// ```
///
/// with n = places + size of the kernel − 1 on each side, and every wave's matrix is bounded by [`spectral_bound`] after
/// what rounding did to its entries is added as a length. A stride s is a convolution of stride 1 whose input channels
/// are the pixels of blocks of s × s. Sedghi, Gupta and Long 2019, "The Singular Values of Convolutional Layers".
///
/// ```
/// use limitpoint::{linalg::Matrix, models::{Affine, Convolution, Shape}, robustness::operator_bound};
/// let window = Convolution::new(1, 3).window(&Shape::image(1, 40, 40))?;
/// let blur = Affine { weight: Matrix { rows: 1, cols: 9, data: vec![1.0; 9] }, bias: None, window: Some(window) };
/// let bound = operator_bound(&blur)?; // the kernel as a matrix has norm 3
/// assert!(bound > 8.9 && bound < 9.0 + 1e-9);
/// # Ok::<(), limitpoint::Error>(())
/// ```
pub fn operator_bound(affine: &Affine) -> Result<f64, RobustnessError> {
    let Some(window) = &affine.window else { return spectral_bound(&affine.weight) };
    let (features, outputs) = (affine.features(), affine.outputs());
    if features.min(outputs) <= WRITTEN_DOWN[0] && features * outputs <= WRITTEN_DOWN[1] {
        return spectral_bound(&written_down(affine, window));
    }
    torus_bound(affine, window)
}

/// The operator as a matrix; every entry is a weight or 0.
fn written_down(affine: &Affine, window: &Window) -> Matrix {
    let (places, plane) = (affine.places(), window.before[0] * window.before[1]);
    let (seen, size) = (window.patches(), window.size[0] * window.size[1]);
    let mut matrix = Matrix::zeros(affine.outputs(), affine.features());
    for o in 0..affine.weight.rows {
        for place in 0..places {
            let patch = &seen[place * size..(place + 1) * size];
            for (column, weight) in affine.weight.row(o).iter().enumerate() {
                if let Some(pixel) = patch[column % size] {
                    matrix[(o * places + place, column / size * plane + pixel as usize)] = *weight;
                }
            }
        }
    }
    matrix
}

/// Kernels of stride 1: outputs × inputs for every shift, shifts in rows.
struct Shifts {
    sides: [usize; 2],
    outputs: usize,
    inputs: usize,
    /// By shift, output and input.
    weights: Vec<f64>,
}

impl Shifts {
    /// Entry (i, j) of channel c is at shift (i/s, j/s) of channel (c, i mod s, j mod s).
    fn new(affine: &Affine, window: &Window) -> Self {
        let (stride, [height, width]) = (window.stride, window.size);
        let sides = [height.div_ceil(stride), width.div_ceil(stride)];
        let (outputs, inputs) = (affine.weight.rows, affine.channels() * stride * stride);
        let mut weights = vec![0.0; sides[0] * sides[1] * outputs * inputs];
        for o in 0..outputs {
            for (column, weight) in affine.weight.row(o).iter().enumerate() {
                let (c, i, j) = (column / (height * width), column / width % height, column % width);
                let shift = i / stride * sides[1] + j / stride;
                let input = (c * stride + i % stride) * stride + j % stride;
                weights[(shift * outputs + o) * inputs + input] = *weight;
            }
        }
        Self { sides, outputs, inputs, weights }
    }

    /// The matrix of a wave as a real one of twice the size, [[A, −B], [B, A]] for A + √−1 B, which has the same norm.
    fn wave(&self, angles: [f64; 2]) -> Matrix {
        let Self { outputs, inputs, .. } = *self;
        let mut matrix = Matrix::zeros(2 * outputs, 2 * inputs);
        for (shift, weights) in self.weights.chunks_exact(outputs * inputs).enumerate() {
            let angle = angles[0] * (shift / self.sides[1]) as f64 + angles[1] * (shift % self.sides[1]) as f64;
            let (sine, cosine) = angle.sin_cos();
            for (o, row) in weights.chunks_exact(inputs).enumerate() {
                let (upper, lower) = matrix.data.split_at_mut(outputs * 2 * inputs);
                let (upper, lower) = (&mut upper[o * 2 * inputs..], &mut lower[o * 2 * inputs..]);
                for (c, weight) in row.iter().enumerate() {
                    upper[c] += weight * cosine;
                    upper[inputs + c] += weight * sine;
                    lower[c] -= weight * sine;
                    lower[inputs + c] += weight * cosine;
                }
            }
        }
        matrix
    }

    /// More than the length of all that rounding does to a wave's matrix: angles are multiples of 2π/n up to 2πk, off by
    /// a few units of them, sines and cosines by as much and one unit more, and sums by γ.
    fn rounding(&self) -> f64 {
        let shifts = self.sides[0] * self.sides[1];
        let furthest = 2.0 * std::f64::consts::PI * (self.sides[0] + self.sides[1]) as f64;
        let each = 16.0 * UNIT * (1.0 + furthest) + 2.0 * gamma(shifts + 4);
        // the length of Σ|W| over the shifts is at most √shifts times that of all weights, and there are two copies
        up(each * 2.0 * (2.0 * shifts as f64).sqrt() * norm2(&self.weights), self.weights.len() + 8)
    }
}

fn torus_bound(affine: &Affine, window: &Window) -> Result<f64, RobustnessError> {
    let shifts = Shifts::new(affine, window);
    let around: [usize; 2] = std::array::from_fn(|side| window.after[side] + shifts.sides[side] - 1);
    let angle = |side: usize, k: usize| 2.0 * std::f64::consts::PI * k as f64 / around[side] as f64;
    // the waves ω and −ω have conjugate matrices
    let waves = (0..around[0])
        .flat_map(|k| (0..around[1]).map(move |l| (k, l)))
        .filter(|(k, l)| (*k, *l) <= ((around[0] - k) % around[0], (around[1] - l) % around[1]));
    let mut waves: Vec<(f64, [f64; 2])> = waves
        .map(|(k, l)| {
            let angles = [angle(0, k), angle(1, l)];
            // the square root of half of all squares, for there are two copies
            (norm2(&shifts.wave(angles).data) * 0.5f64.sqrt(), angles)
        })
        .collect();
    waves.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut largest: f64 = 0.0;
    for (frobenius, angles) in waves {
        if frobenius.is_nan() {
            return Ok(f64::NAN);
        }
        // all that follow have smaller norms still
        if up(frobenius, 4 * shifts.weights.len() + 16) <= largest {
            break;
        }
        let bound = spectral_bound(&shifts.wave(angles))?;
        largest = largest.max(bound);
    }
    Ok(up(largest + shifts.rounding(), 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Convolution, Padding, Shape};
    use crate::numeric::Streams;

    /// The torus is never below the operator itself, and near to it where images are large beside the kernel.
    #[test]
    fn waves_on_a_torus_bound_the_operator_from_above() {
        let mut stream = Streams::new(9).stream("torus");
        for (stride, padding, sides) in [
            (1, Padding::Same, [7, 6]),
            (1, Padding::Valid, [8, 8]),
            (2, Padding::Same, [8, 9]),
            (2, Padding::Zeros(2), [7, 7]),
            (3, Padding::Zeros(1), [9, 8]),
        ] {
            let layer = Convolution { stride, padding, kernel: [3, 2], ..Convolution::new(4, 3) };
            let window = layer.window(&Shape::image(3, sides[0], sides[1])).unwrap();
            let mut weight = Matrix::zeros(4, 18);
            stream.fill_normal(&mut weight.data);
            for scale in [1e-150, 1.0, 1e150] {
                let mut weight = weight.clone();
                weight.data.iter_mut().for_each(|w| *w *= scale);
                let affine = Affine { weight, bias: None, window: Some(window) };
                let exact = spectral_bound(&written_down(&affine, &window)).unwrap();
                let bound = torus_bound(&affine, &window).unwrap();
                assert!(bound >= exact * (1.0 - 1e-9), "{layer}: {bound} {exact}");
                assert!(bound <= 1.5 * exact, "{layer}: {bound} {exact}");
            }
        }
    }

    /// No image is stretched by more.
    #[test]
    fn no_image_grows_by_more_than_the_bound() {
        let mut stream = Streams::new(10).stream("images");
        let window = Convolution::new(5, 3).window(&Shape::image(2, 14, 14)).unwrap();
        let mut weight = Matrix::zeros(5, 18);
        stream.fill_normal(&mut weight.data);
        let affine = Affine { weight, bias: None, window: Some(window) };
        assert!(affine.features() > WRITTEN_DOWN[0]);
        let (bound, mut image) = (operator_bound(&affine).unwrap(), vec![0.0; affine.features()]);
        stream.fill_normal(&mut image);
        let mut growth = 0.0;
        for _ in 0..200 {
            // the power method finds the image that grows most
            let length = norm2(&image);
            image.iter_mut().for_each(|x| *x /= length);
            let above = affine.apply(&image);
            growth = norm2(&above);
            assert!(growth <= bound, "{growth} {bound}");
            image = affine.pull_back(&above, 1);
        }
        assert!(growth > 0.8 * bound, "{growth} {bound}");
    }

    #[test]
    fn weights_that_are_no_numbers_bound_nothing() {
        let window = Convolution::new(1, 3).window(&Shape::image(1, 20, 20)).unwrap();
        let weight = Matrix { rows: 1, cols: 9, data: vec![f64::NAN; 9] };
        let affine = Affine { weight, bias: None, window: Some(window) };
        assert!(!operator_bound(&affine).is_ok_and(|bound| bound.is_finite()));
    }
}
