//! Quadratic norms: preconditioned gradient descent.

use super::face::{Elementary, Face, Multiplier, project_face};
use super::root::increasing_root;
use super::simplex::refuse_radius;
use super::{Norm, NormError};
use crate::linalg::{Eigen, dot, norm2};

/// The norm of a positive definite matrix D.
///
/// ```text
/// ‖v‖ = √(vᵀDv),   ‖g‖_* = √(gᵀD⁻¹g),   d = −D⁻¹g/‖g‖_*
/// ```
///
/// No ties; the subdifferential at θ ≠ 0 is the single vector Dθ/‖θ‖. A dense D is decomposed once, D = Q diag(λ) Qᵀ,
/// and everything happens in the coordinates Qᵀv. Claims section 1, row quad; B.quadnorm.
///
/// ```
/// use limitpoint::norms::NormSpec;
/// let mut norm = NormSpec::Quadratic { diagonal: vec![4.0, 1.0] }.build_vector(2)?;
/// let mut direction = [0.0; 2];
/// assert_eq!(norm.value(&[1.0, 0.0]), 2.0);
/// assert_eq!(norm.steepest_direction(&[8.0, 3.0], &mut direction), 5.0);
/// assert_eq!(direction, [-2.0, -3.0]); // −D⁻¹g
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub(super) struct Quadratic {
    /// √λ of every eigenvalue.
    roots: Vec<f64>,
    /// The eigenvectors one after the other; none for a diagonal matrix.
    basis: Option<Vec<f64>>,
    coordinates: Vec<f64>,
    /// Of the opened face: the gradient of the norm.
    gradient: Vec<f64>,
    face: Face,
}

impl Quadratic {
    /// D = diag(`diagonal`).
    pub(super) fn diagonal(size: usize, diagonal: &[f64]) -> Result<Self, NormError> {
        check_size("diagonal entries", diagonal.len(), size)?;
        Self::new(diagonal, 0.0, None)
    }

    /// A dense D, by rows.
    pub(super) fn dense(size: usize, matrix: &[Vec<f64>]) -> Result<Self, NormError> {
        check_size("rows", matrix.len(), size)?;
        for (i, row) in matrix.iter().enumerate() {
            check_size("columns", row.len(), size)?;
            for (j, &below) in row.iter().enumerate().take(i) {
                let above = matrix[j][i];
                if (above - below).abs() > 1e-12 * above.abs().max(below.abs()) {
                    return Err(NormError::NotSymmetric { row: j, col: i, above, below });
                }
            }
        }
        let mut eigen = Eigen::new(size);
        eigen.factor(&matrix.concat())?;
        let largest = eigen.values().last().copied().unwrap_or(0.0);
        let basis = (0..size).flat_map(|k| eigen.vector(k).to_vec()).collect();
        Self::new(eigen.values(), size as f64 * f64::EPSILON * largest.abs(), Some(basis))
    }

    fn new(eigenvalues: &[f64], floor: f64, basis: Option<Vec<f64>>) -> Result<Self, NormError> {
        if let Some(&eigenvalue) = eigenvalues.iter().find(|x| !(**x > floor && x.is_finite())) {
            return Err(NormError::NotPositiveDefinite { eigenvalue, floor });
        }
        let size = eigenvalues.len();
        Ok(Self {
            roots: eigenvalues.iter().map(|x| x.sqrt()).collect(),
            basis,
            coordinates: vec![0.0; size],
            gradient: vec![0.0; size],
            face: Face::cap(0),
        })
    }

    /// coordinates = D^(±1/2) v in the eigenbasis.
    fn enter(&mut self, v: &[f64], side: Side) {
        match &self.basis {
            None => self.coordinates.copy_from_slice(v),
            Some(basis) => {
                let rows = basis.chunks_exact(v.len());
                self.coordinates.iter_mut().zip(rows).for_each(|(c, row)| *c = dot(row, v));
            }
        }
        self.coordinates.iter_mut().zip(&self.roots).for_each(|(c, root)| *c = side.apply(*c, *root));
    }

    /// out = D^(±1/2) coordinates, back in the standard basis; the coordinates are used up.
    fn leave(&mut self, side: Side, out: &mut [f64]) {
        self.coordinates.iter_mut().zip(&self.roots).for_each(|(c, root)| *c = side.apply(*c, *root));
        match &self.basis {
            None => out.copy_from_slice(&self.coordinates),
            Some(basis) => {
                out.fill(0.0);
                for (row, c) in basis.chunks_exact(out.len()).zip(&self.coordinates) {
                    crate::linalg::add_scaled(out, *c, row);
                }
            }
        }
    }

    /// Writes the gradient at v ≠ 0 of the norm (`Side::Primal`) or its dual, times `factor`, and returns the norm.
    fn write_gradient(&mut self, v: &[f64], side: Side, factor: f64, out: &mut [f64]) -> f64 {
        self.enter(v, side);
        let length = norm2(&self.coordinates);
        let divisor = if length == 0.0 { 1.0 } else { length };
        self.coordinates.iter_mut().for_each(|c| *c = *c / divisor * factor);
        self.leave(side, out);
        length
    }

    /// Projection onto the ball of the norm or of its dual.
    ///
    /// In eigencoordinates, with w = D^(1/2)v, ε = radius/‖v‖ and x = radius · y, the conditions are
    /// (ε + κλᵢ) (D^(1/2)y)ᵢ = wᵢ/‖w‖ and ‖y‖ = 1, with κ between (1 − ε)/λ_max and (1 − ε)/λ_min.
    fn project(&mut self, side: Side, radius: f64, v: &mut [f64]) {
        if refuse_radius(radius, v) {
            return;
        }
        self.enter(v, side);
        let length = norm2(&self.coordinates);
        if length <= radius {
            return;
        }
        let epsilon = radius / length;
        self.coordinates.iter_mut().for_each(|c| *c /= length);
        let eigenvalues = || self.roots.iter().map(|root| side.apply(side.apply(1.0, *root), *root));
        let (least, most) = eigenvalues().fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(x), b.max(x)));
        let size = |kappa: f64| {
            let squares = self.coordinates.iter().zip(eigenvalues()).map(|(c, x)| (c / (epsilon + kappa * x)).powi(2));
            squares.sum::<f64>().sqrt()
        };
        let kappa = increasing_root((1.0 - epsilon) / most, (1.0 - epsilon) / least, |kappa| 1.0 - size(kappa));
        let scale = radius / size(kappa);
        for (c, root) in self.coordinates.iter_mut().zip(&self.roots) {
            *c = *c / (epsilon + kappa * side.apply(side.apply(1.0, *root), *root)) * scale;
        }
        self.leave(side.other(), v);
    }
}

/// Whether D or its inverse is meant.
#[derive(Debug, Clone, Copy)]
enum Side {
    Primal,
    Dual,
}

impl Side {
    fn apply(self, x: f64, root: f64) -> f64 {
        match self {
            Self::Primal => x * root,
            Self::Dual => x / root,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Primal => Self::Dual,
            Self::Dual => Self::Primal,
        }
    }
}

fn check_size(what: &'static str, found: usize, expected: usize) -> Result<(), NormError> {
    if found == expected { Ok(()) } else { Err(NormError::QuadraticSize { what, found, expected }) }
}

impl Norm for Quadratic {
    fn value(&mut self, v: &[f64]) -> f64 {
        self.enter(v, Side::Primal);
        norm2(&self.coordinates)
    }

    fn dual(&mut self, g: &[f64]) -> f64 {
        self.enter(g, Side::Dual);
        norm2(&self.coordinates)
    }

    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        self.write_gradient(g, Side::Dual, -1.0, out)
    }

    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        project_face(self, at, target, tolerance, 1.0, out);
    }

    fn project_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.project(Side::Primal, radius, v);
    }

    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.project(Side::Dual, radius, v);
    }
}

impl Elementary for Quadratic {
    fn open_face(&mut self, at: &[f64], target: &[f64], _tolerance: f64) -> bool {
        let mut gradient = std::mem::take(&mut self.gradient);
        self.write_gradient(at, Side::Primal, 1.0, &mut gradient);
        self.face.set_cap(dot(&gradient, &gradient), dot(&gradient, target), std::iter::empty());
        self.gradient = gradient;
        true
    }

    fn face(&self) -> &Face {
        &self.face
    }

    fn face_point(&mut self, _target: &[f64], multiplier: Multiplier, out: &mut [f64]) {
        out.iter_mut().zip(&self.gradient).for_each(|(o, c)| *o = multiplier.mass * c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dense_matrix_agrees_with_the_formula() {
        let mut norm = Quadratic::dense(2, &[vec![2.0, 1.0], vec![1.0, 2.0]]).unwrap();
        assert!((norm.value(&[1.0, 1.0]) - 6f64.sqrt()).abs() < 1e-14);
        assert!((norm.dual(&[1.0, 1.0]) - (2f64 / 3.0).sqrt()).abs() < 1e-14);
        let mut out = [0.0; 2];
        norm.steepest_direction(&[3.0, 0.0], &mut out);
        assert!((out[0] + 2.0).abs() < 1e-14 && (out[1] - 1.0).abs() < 1e-14);
    }

    #[test]
    fn bad_matrices_are_refused_with_their_value() {
        let error = Quadratic::diagonal(2, &[1.0, -2.0]).err().unwrap();
        assert!(error.to_string().contains("eigenvalue -2"), "{error}");
        assert!(matches!(Quadratic::diagonal(3, &[1.0]), Err(NormError::QuadraticSize { found: 1, expected: 3, .. })));
        let rows = |a: [f64; 4]| vec![vec![a[0], a[1]], vec![a[2], a[3]]];
        assert!(matches!(Quadratic::dense(2, &rows([1.0, 2.0, 3.0, 4.0])), Err(NormError::NotSymmetric { .. })));
        assert!(matches!(Quadratic::dense(2, &rows([1.0, 1.0, 1.0, 1.0])), Err(NormError::NotPositiveDefinite { .. })));
        assert!(matches!(Quadratic::dense(1, &[vec![f64::NAN]]), Err(NormError::Decomposition(_))));
        assert!(matches!(Quadratic::dense(2, &[vec![1.0, 0.0], vec![0.0]]), Err(NormError::QuadraticSize { .. })));
    }
}
