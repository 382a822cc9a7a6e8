//! How fast a model can change anywhere: norms of its layers, rounded outwards.

use super::RobustnessError;
use super::operator::operator_bound;
use super::rounding::{UNDERFLOW, UNIT, gamma, up};
use super::victim::Label;
use crate::linalg::{Cholesky, Matrix, Svd, matmul_nt, matmul_tn, max_abs, norm2};
use crate::models::{Activation, Layered, Map};

/// The largest |σ′|, or nothing where slopes have no bound.
pub(super) fn slope_bound(activation: Activation) -> Option<f64> {
    match activation {
        Activation::Identity | Activation::Relu | Activation::LeakyRelu { .. } | Activation::ReluPower { power: 1 } => {
            Some(1.0)
        }
        Activation::ReluPower { .. } | Activation::Quadratic => None,
    }
}

/// A number that ‖W‖₂ = max ‖Wx‖/‖x‖ provably does not exceed, within about 10⁻¹⁰ of it.
///
/// s is taken a little above the largest computed singular value and s² I − WᵀW (or WWᵀ, whichever is smaller) is shown
/// to be positive definite: if the Cholesky factorisation of a symmetric A of n rows ends without a negative pivot in
/// floating point, then λ_min(A) ≥ −γ_{n+1}/(1 − γ_{n+1}) tr A. That, and the rounding of the product, is taken off
/// before. Rump 2006, "Verification of positive definiteness", BIT 46, theorem 2.3. W is multiplied by a power of two
/// first that makes its entries about 1, so that what underflows in the product is far below its rounding.
///
/// ```
/// use limitpoint::{linalg::Matrix, robustness::spectral_bound};
/// let bound = spectral_bound(&Matrix::from_rows(&[&[3.0, 0.0, 0.0], &[0.0, 4.0, 0.0]]))?;
/// assert!(bound >= 4.0 && bound < 4.0 + 1e-9);
/// # Ok::<(), limitpoint::robustness::RobustnessError>(())
/// ```
pub fn spectral_bound(matrix: &Matrix) -> Result<f64, RobustnessError> {
    let largest = max_abs(&matrix.data);
    if largest == 0.0 {
        return Ok(0.0);
    }
    // the power itself must be neither subnormal nor infinite
    let power = largest.log2().clamp(-1000.0, 1000.0).floor() as i32;
    let data = matrix.data.iter().map(|w| w * 2f64.powi(-power)).collect();
    let scaled = scaled_bound(&Matrix { rows: matrix.rows, cols: matrix.cols, data })?;
    Ok(scaled * 2f64.powi(power) + UNDERFLOW)
}

/// The bound for entries that are neither huge nor tiny all together.
fn scaled_bound(matrix: &Matrix) -> Result<f64, RobustnessError> {
    let (rows, cols) = (matrix.rows, matrix.cols);
    let frobenius = up(norm2(&matrix.data), rows * cols);
    if rows == 1 || cols == 1 || !frobenius.is_finite() {
        return Ok(frobenius);
    }
    let (size, depth) = (rows.min(cols), rows.max(cols));
    let mut gram = vec![0.0; size * size];
    if rows <= cols {
        matmul_nt(&mut gram, &matrix.data, &matrix.data, rows, cols, rows);
    } else {
        matmul_tn(&mut gram, &matrix.data, &matrix.data, cols, rows, cols);
    }
    let mut svd = Svd::new(rows, cols);
    svd.factor(&matrix.data)?;
    let largest = svd.values().first().copied().unwrap_or(frobenius);
    let mut cholesky = Cholesky::new(size);
    let mut shifted = vec![0.0; size * size];
    let mut slack = 1e-11;
    while slack < 1.0 {
        let bound = largest * (1.0 + slack);
        let square = bound * bound * (1.0 - 4.0 * UNIT);
        // rounding of the product, of the shift and of the factorisation, twice over
        let lost = 2.0 * (gamma(depth + 2) * frobenius * frobenius + gamma(size + 2) * size as f64 * square);
        for i in 0..size {
            for j in 0..size {
                shifted[i * size + j] = -gram[i * size + j];
            }
            shifted[i * size + i] += square - lost;
        }
        if cholesky.factor(&shifted, 0.0).is_ok() {
            return Ok(bound.min(frobenius));
        }
        slack *= 10.0;
    }
    Ok(frobenius)
}

/// Bounds on |s(x) − s(x′)|/‖x − x′‖ for every margin s of a model, over all inputs.
///
/// ```text
/// Lip(Φ_y − Φ_j) ≤ ‖W_L[y] − W_L[j]‖₂ · Π_{l<L} ‖W_l‖₂ · Π pools        (activations with |σ′| ≤ 1)
/// ```
///
/// The difference of two rows is shorter than the two together, and than √2 ‖W_L‖₂. ‖W‖₂ of a convolution is that of
/// the operator on images ([`super::operator_bound`]); a max-pool of windows side by side has constant 1, one of windows
/// that overlap ⌈size/stride⌉, because so many squared pixels are seen more than once.
#[derive(Debug, Clone)]
pub(super) struct GlobalLipschitz {
    /// The constant of everything up to each map; nothing if slopes have no bound.
    pub below: Option<Vec<f64>>,
    /// Lipschitz constants of the margins of class y against j, at y · outputs + j; of the score itself for one output.
    pairs: Option<Vec<f64>>,
    outputs: usize,
}

impl GlobalLipschitz {
    pub fn new(model: &Layered) -> Result<Self, RobustnessError> {
        let outputs = model.outputs();
        let none = Self { below: None, pairs: None, outputs };
        let Some((Map::Affine(last), hidden)) = model.maps.split_last() else { return Ok(none) };
        let mut below = vec![1.0];
        for map in hidden {
            let constant = match map {
                Map::Affine(affine) => operator_bound(affine)?,
                Map::Pool(pool) => pool.stretch,
                Map::Activation(activation) => match slope_bound(*activation) {
                    Some(slope) => slope,
                    None => return Ok(none),
                },
            };
            below.push(up(below[below.len() - 1] * constant, 4));
        }
        let product = below[below.len() - 1];
        let pair = |(y, j): (usize, usize)| {
            let difference: Vec<f64> = match outputs {
                1 => last.weight.data.clone(),
                _ => last.weight.row(y).iter().zip(last.weight.row(j)).map(|(a, b)| a - b).collect(),
            };
            up(product * norm2(&difference), last.weight.cols + 8)
        };
        let pairs = (0..outputs).flat_map(|y| (0..outputs).map(move |j| (y, j))).map(pair).collect();
        Ok(Self { below: Some(below), pairs: Some(pairs), outputs })
    }

    /// min over j of (lower bound of s_j)/Lip(s_j): the model keeps its answer within this distance.
    pub fn radius(&self, label: Label, margins: &[(usize, f64)]) -> f64 {
        let Some(pairs) = &self.pairs else { return 0.0 };
        let own = match label {
            Label::Sign(_) => 0,
            Label::Class(own) => own,
        };
        let one = |(rival, margin): &(usize, f64)| margin / pairs[own * self.outputs + rival] * (1.0 - 8.0 * UNIT);
        let least =
            margins.iter().map(one).fold(f64::INFINITY, |least, r| if r < least || r.is_nan() { r } else { least });
        // what is no number, not positive, or so small that the quotient is off by more than a unit certifies nothing
        if least > UNDERFLOW { least } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Streams;

    #[test]
    fn the_bound_is_above_the_norm_and_close_to_it() {
        let mut stream = Streams::new(3).stream("spectral");
        for (rows, cols) in [(1, 5), (5, 1), (7, 7), (30, 12), (12, 30), (64, 64)] {
            // squares of the smallest and of the largest are no doubles
            for scale in [1e-290, 1e-170, 1e-100, 1.0, 1e100, 1e290] {
                let mut matrix = Matrix::zeros(rows, cols);
                stream.fill_normal(&mut matrix.data);
                let mut svd = Svd::new(rows, cols);
                svd.factor(&matrix.data).unwrap();
                matrix.data.iter_mut().for_each(|x| *x *= scale);
                let (norm, bound) = (svd.values()[0] * scale, spectral_bound(&matrix).unwrap());
                assert!(bound >= norm * (1.0 - 1e-15) && bound <= norm * (1.0 + 1e-8), "{rows}x{cols}: {norm} {bound}");
            }
        }
        // equal singular values, and a matrix of rank one
        assert!((spectral_bound(&Matrix::identity(9)).unwrap() - 1.0).abs() < 1e-8);
        let ones = Matrix { rows: 4, cols: 9, data: vec![1.0; 36] };
        assert!((spectral_bound(&ones).unwrap() - 6.0).abs() < 1e-7);
        assert_eq!(spectral_bound(&Matrix::zeros(3, 2)).unwrap(), 0.0);
    }

    #[test]
    fn slopes_without_bound_certify_nothing() {
        let model = Layered::new(&crate::models::ModelSpec::network(&[2], Activation::Quadratic), &[1.0; 6], 2, 1);
        let global = GlobalLipschitz::new(&model.unwrap()).unwrap();
        assert_eq!(global.radius(Label::Sign(1.0), &[(0, 5.0)]), 0.0);
    }
}
