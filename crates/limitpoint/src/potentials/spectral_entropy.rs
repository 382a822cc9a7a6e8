//! The von Neumann entropy of positive definite matrices.

use super::blocks::Trainable;
use super::{Conjugate, Entries, Entropy, Horizon, HorizonBounds, MirrorMap, PotentialError, ScalarPotential};
use crate::linalg::{Eigen, dot, matmul, matmul_nt, matmul_tn, max_abs};
use crate::numeric::compensated_sum;
use crate::params::ParamLayout;

/// Largest tolerated |W_ij − W_ji| relative to max |W|.
const SYMMETRY_TOLERANCE: f64 = 1e-10;

/// R(W) = tr(W ln W − W), summed over the trainable blocks, each a symmetric positive definite matrix.
///
/// With the eigendecomposition W = Σ aₖ uₖuₖᵀ:
///
/// ```text
/// ∇R = ln W,   ∇R*(Z) = exp Z,   Q(∇R(W)) = tr W,   α = 1,   φ = gauge = tr W (the nuclear norm),   slack 0
/// H[V] = Σ_kl L_kl uₖuₖᵀ V u_lu_lᵀ,   L_kl = (ln aₖ − ln a_l)/(aₖ − a_l),   L_kk = 1/aₖ      (Daleckii–Krein)
/// D(A, B) = Σ_kl ⟨uₖ, v_l⟩² (aₖ ln(aₖ/b_l) − aₖ + b_l)                                       every term ≥ 0
/// ```
///
/// The inverse of H (the Kubo–Mori metric) divides by L_kl. Arguments are symmetrised first, (X + Xᵀ)/2, which is also
/// the projection of a gradient onto symmetric matrices. The divided difference is ln(1+x)/(x a_l) with x =
/// (aₖ−a_l)/a_l, accurate for close eigenvalues. Eigenvalues below rounding relative to the largest are not resolved;
/// matrices that are not positive definite, or duals whose exponential overflows, give NaN. Paper B, theorem 1
/// (B.thm1).
///
/// ```
/// use limitpoint::{params::ParamLayout, potentials::PotentialSpec};
/// let mut potential = PotentialSpec::SpectralEntropy.build(&ParamLayout::new([("w", 2, 2)]).unwrap())?;
/// let (w, mut dual) = ([2.0, 0.0, 0.0, 1.0], [0.0; 4]);
/// potential.mirror_map(&w, &mut dual);
/// assert!((dual[0] - 2f64.ln()).abs() < 1e-15 && dual[3].abs() < 1e-15);
/// assert_eq!(potential.conjugate_at(&w), 3.0);
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
pub struct SpectralEntropy {
    place: Trainable,
    degrees: Vec<f64>,
    workers: Vec<Worker>,
}

/// The buffers of one block.
struct Worker {
    size: usize,
    eigen: Eigen,
    other: Eigen,
    /// Rows are the eigenvectors.
    basis: Vec<f64>,
    symmetric: Vec<f64>,
    work: Vec<f64>,
}

impl Worker {
    fn new(size: usize) -> Self {
        let buffer = || vec![0.0; size * size];
        let (eigen, other) = (Eigen::new(size), Eigen::new(size));
        Self { size, eigen, other, basis: buffer(), symmetric: buffer(), work: buffer() }
    }

    /// Decomposes the symmetric part of a matrix; false if it has non-finite entries.
    fn factor(&mut self, matrix: &[f64]) -> bool {
        symmetrise(matrix, self.size, &mut self.symmetric);
        self.eigen.factor(&self.symmetric).is_ok()
    }

    /// out = f(matrix), NaN where the decomposition fails.
    fn function(&mut self, matrix: &[f64], f: impl Fn(f64) -> f64, out: &mut [f64]) {
        if self.factor(matrix) {
            self.eigen.recompose(f, out);
        } else {
            out.fill(f64::NAN);
        }
    }

    /// out = U (weight ∘ UᵀVU) Uᵀ with weight L or 1/L.
    fn divided_difference_action(&mut self, w: &[f64], v: &[f64], inverse: bool, out: &mut [f64]) {
        let n = self.size;
        if !self.factor(w) {
            return out.fill(f64::NAN);
        }
        for (k, row) in self.basis.chunks_exact_mut(n).enumerate() {
            row.copy_from_slice(self.eigen.vector(k));
        }
        symmetrise(v, n, &mut self.symmetric);
        matmul(&mut self.work, &self.basis, &self.symmetric, n, n, n);
        matmul_nt(&mut self.symmetric, &self.work, &self.basis, n, n, n);
        let values = self.eigen.values();
        for (k, row) in self.symmetric.chunks_exact_mut(n).enumerate() {
            for (l, x) in row.iter_mut().enumerate() {
                let difference = log_divided_difference(values[k], values[l]);
                *x = if inverse { *x / difference } else { *x * difference };
            }
        }
        matmul_tn(&mut self.work, &self.basis, &self.symmetric, n, n, n);
        matmul(&mut self.symmetric, &self.work, &self.basis, n, n, n);
        // The two sides of a product round differently: hand back an exactly symmetric matrix.
        symmetrise(&self.symmetric, n, out);
    }

    fn divergence(&mut self, a: &[f64], b: &[f64]) -> f64 {
        symmetrise(b, self.size, &mut self.symmetric);
        if self.other.factor(&self.symmetric).is_err() || !self.factor(a) {
            return f64::NAN;
        }
        let mut sum = 0.0;
        for (k, &x) in self.eigen.values().iter().enumerate() {
            for (l, &y) in self.other.values().iter().enumerate() {
                let overlap = dot(self.eigen.vector(k), self.other.vector(l));
                sum += overlap * overlap * Entropy.bregman(x.max(0.0), y);
            }
        }
        sum
    }
}

/// out = (matrix + matrixᵀ)/2.
fn symmetrise(matrix: &[f64], size: usize, out: &mut [f64]) {
    for i in 0..size {
        for j in 0..=i {
            let mean = 0.5 * matrix[i * size + j] + 0.5 * matrix[j * size + i];
            out[i * size + j] = mean;
            out[j * size + i] = mean;
        }
    }
}

/// (ln a − ln b)/(a − b), and 1/a when they are equal.
fn log_divided_difference(a: f64, b: f64) -> f64 {
    let (small, large) = if a <= b { (a, b) } else { (b, a) };
    let x = (large - small) / small;
    if x == 0.0 {
        1.0 / large
    } else if x < 1e3 {
        x.ln_1p() / (large - small)
    } else {
        (large.ln() - small.ln()) / (large - small)
    }
}

impl SpectralEntropy {
    /// Refuses a layout with a trainable block that is not square.
    pub fn new(layout: &ParamLayout) -> Result<Self, PotentialError> {
        let place = Trainable::of(layout);
        if let Some(block) = place.blocks.iter().find(|block| block.rows != block.cols) {
            return Err(PotentialError::NotSquare { block: block.name.clone(), rows: block.rows, cols: block.cols });
        }
        let workers = place.blocks.iter().map(|block| Worker::new(block.rows)).collect();
        Ok(Self { degrees: vec![1.0; place.blocks.len()], place, workers })
    }

    fn each(&mut self, out: &mut [f64], mut f: impl FnMut(&mut Worker, std::ops::Range<usize>, &mut [f64])) {
        for (worker, block) in self.workers.iter_mut().zip(&self.place.blocks) {
            f(worker, block.range(), &mut out[block.range()]);
        }
        self.place.clear_frozen(out);
    }
}

fn trace(matrix: &[f64], size: usize) -> f64 {
    compensated_sum(matrix.iter().step_by(size + 1).copied())
}

impl MirrorMap for SpectralEntropy {
    fn value(&mut self, theta: &[f64]) -> f64 {
        let mut sum = 0.0;
        for (worker, block) in self.workers.iter_mut().zip(&self.place.blocks) {
            if !worker.factor(&theta[block.range()]) {
                return f64::NAN;
            }
            sum += compensated_sum(worker.eigen.values().iter().map(|&x| Entropy.value(x)));
        }
        sum
    }

    fn mirror_map(&mut self, theta: &[f64], out: &mut [f64]) {
        self.each(out, |worker, range, slice| worker.function(&theta[range], f64::ln, slice));
    }

    fn inverse_mirror_map(&mut self, dual: &[f64], out: &mut [f64]) {
        self.each(out, |worker, range, slice| worker.function(&dual[range], f64::exp, slice));
    }

    fn hessian_action(&mut self, theta: &[f64], v: &[f64], out: &mut [f64]) {
        self.each(out, |worker, range, slice| {
            worker.divided_difference_action(&theta[range.clone()], &v[range], false, slice);
        });
    }

    fn inverse_hessian_action(&mut self, theta: &[f64], v: &[f64], out: &mut [f64]) {
        self.each(out, |worker, range, slice| {
            worker.divided_difference_action(&theta[range.clone()], &v[range], true, slice);
        });
    }

    fn check_domain(&self, theta: &[f64]) -> Result<(), PotentialError> {
        super::quadratic::check_finite("spectral-entropy", theta, &self.place)?;
        for block in &self.place.blocks {
            let (w, size) = (&theta[block.range()], block.rows);
            let tolerance = SYMMETRY_TOLERANCE * max_abs(w);
            let uneven = (0..size * size).find(|&k| (w[k] - w[k % size * size + k / size]).abs() > tolerance);
            if let Some(index) = uneven {
                return Err(PotentialError::OutsideDomain {
                    potential: "spectral-entropy",
                    block: block.name.clone(),
                    index,
                    value: w[index],
                    requirement: "symmetric matrices",
                    remedy: "replace W by (W + Wᵀ)/2",
                });
            }
            let mut eigen = Eigen::new(size);
            let smallest = eigen.factor(w).map_or(f64::NAN, |()| eigen.values()[0]);
            if smallest.is_nan() || smallest <= 0.0 {
                return Err(PotentialError::NotPositiveDefinite {
                    potential: "spectral-entropy",
                    block: block.name.clone(),
                    eigenvalue: smallest,
                });
            }
        }
        Ok(())
    }

    fn bregman_divergence(&mut self, a: &[f64], b: &[f64]) -> f64 {
        let blocks = self.workers.iter_mut().zip(&self.place.blocks);
        blocks.map(|(worker, block)| worker.divergence(&a[block.range()], &b[block.range()])).sum()
    }
}

impl Conjugate for SpectralEntropy {
    fn conjugate_at(&mut self, theta: &[f64]) -> f64 {
        self.place.blocks.iter().map(|block| trace(&theta[block.range()], block.rows)).sum()
    }

    fn conjugate_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>) {
        out.clear();
        out.extend(self.place.blocks.iter().map(|block| trace(&theta[block.range()], block.rows)));
    }

    fn conjugate_of_entries(&mut self, _block: usize, _theta: &[f64], _entries: Entries) -> Option<f64> {
        None
    }
}

impl Horizon for SpectralEntropy {
    fn degree(&self) -> f64 {
        1.0
    }

    fn degrees_by_block(&self) -> &[f64] {
        &self.degrees
    }

    fn horizon(&mut self, theta: &[f64]) -> f64 {
        self.conjugate_at(theta)
    }

    fn horizons_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>) {
        self.conjugate_by_block(theta, out);
    }

    fn curvature_slack(&mut self, _theta: &[f64]) -> f64 {
        0.0
    }

    fn horizon_bounds(&self) -> Option<HorizonBounds> {
        Some(HorizonBounds { factor: 1.0, offset: 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_divided_difference_is_smooth_at_equal_arguments() {
        for gap in [0.0, 1e-16, 1e-12, 1e-8, 1e-4] {
            let (a, b) = (2.0, 2.0 * (1.0 + gap));
            let series = (1.0 - gap / 2.0 + gap * gap / 3.0) / a;
            assert!((log_divided_difference(a, b) / series - 1.0).abs() < 1e-12, "gap {gap}");
        }
        assert!((log_divided_difference(1e-300, 1e300) / (600.0 * 10f64.ln() / 1e300) - 1.0).abs() < 1e-14);
    }

    #[test]
    fn rectangles_and_indefinite_matrices_are_refused() {
        let layout = ParamLayout::new([("w", 2, 3)]).unwrap();
        let error = SpectralEntropy::new(&layout).err().unwrap().to_string();
        assert!(error.contains("block 'w' is 2x3") && error.contains("layers"), "{error}");
        let potential = SpectralEntropy::new(&ParamLayout::new([("w", 2, 2)]).unwrap()).unwrap();
        assert!(potential.check_domain(&[2.0, 1.0, 1.0, 2.0]).is_ok());
        let error = potential.check_domain(&[1.0, 2.0, 2.0, 1.0]).unwrap_err().to_string();
        assert!(error.contains("eigenvalue -1"), "{error}");
        let error = potential.check_domain(&[1.0, 0.5, 0.4, 1.0]).unwrap_err().to_string();
        assert!(error.contains("entry 1 of block 'w' is 0.5"), "{error}");
        assert!(potential.check_domain(&[f64::NAN, 0.5, 0.5, 1.0]).is_err());
    }
}
