//! The Mexican hat on its examples.

use crate::engine::{Bound, Evaluator, Tangents};
use crate::linalg::{Matrix, SharedMatrix};
use crate::models::{Architecture, hat};
use crate::params::At;

use super::Chosen;

/// Φ(x) = x₁ h(θ) with the three parameters θ = (x, y, z): examples only weigh the hat by their first feature.
///
/// Homogeneous of any degree L > 0, smooth away from θ = 0. With one example, or equal ones, the normalised margin is
/// 1 − f < 1 and has no maximiser off the equator, all of which is maximal.
///
/// ```
/// use limitpoint::engine::{Compute, Forward, cpu};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::models::ModelSpec;
/// let spec = ModelSpec::MexicanHat { degree: 2.0, exponent: 3 };
/// let mut model = cpu::bind(&spec, &Matrix::from_rows(&[&[1.0]]), 1, Compute::default())?;
/// // at the top r = 0 the hat is 1/e high, on the equator it is 0
/// assert!((model.scores(&[0.0, 0.0, 3.0])[0] - 9.0 * (1.0 - (-1.0f64).exp())).abs() < 1e-14);
/// assert_eq!(model.scores(&[3.0, 4.0, 0.0]), [25.0]);
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
pub struct MexicanHat {
    bound: Bound,
    examples: Chosen,
    degree: f64,
    exponent: u32,
}

impl MexicanHat {
    pub(super) fn new(architecture: &Architecture, inputs: &SharedMatrix, degree: f64, exponent: u32) -> Self {
        Self { bound: Bound::new(architecture, inputs.rows()), examples: Chosen::all(inputs), degree, exponent }
    }

    /// h and ∇h.
    fn hat(&self, params: &[f64]) -> (f64, [f64; 3]) {
        hat::height(params, self.degree, self.exponent)
    }
}

impl Evaluator for MexicanHat {
    fn bound(&self) -> &Bound {
        &self.bound
    }

    fn select(&mut self, rows: Option<&[usize]>) {
        self.examples.select(rows, &mut self.bound);
    }

    fn score(&mut self, at: At<'_>) {
        let (height, _) = self.hat(at.entries());
        self.examples.score(&mut self.bound, |x| x[0] * height);
    }

    fn pull_back(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        let (_, slope) = self.hat(at.entries());
        let weight: f64 = self.examples.iter().zip(cotangent).map(|(x, r)| r * x[0]).sum();
        gradient.iter_mut().zip(slope).for_each(|(g, k)| *g = weight * k);
    }

    fn tangents(&mut self) -> Option<&mut dyn Tangents> {
        Some(self)
    }
}

impl Tangents for MexicanHat {
    fn per_example_gradients(&mut self, params: &[f64], _: usize) -> Matrix {
        let (_, slope) = self.hat(params);
        let data = self.examples.iter().flat_map(|x| slope.map(|k| x[0] * k)).collect();
        Matrix { rows: self.examples.len(), cols: 3, data }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{Compute, Forward, cpu};
    use crate::linalg::Matrix;
    use crate::models::ModelSpec;

    #[test]
    fn the_top_the_equator_and_huge_weights_are_numbers() {
        for exponent in [3, 4] {
            let spec = ModelSpec::MexicanHat { degree: 1.0, exponent };
            let mut model = cpu::bind(&spec, Matrix::from_rows(&[&[1.0]]), 1, Compute::default()).unwrap();
            for theta in
                [[0.0, 0.0, -2.0], [0.6, 0.8, 0.0], [0.6, 0.8, 0.01], [3e200, 4e200, 5e200], [1e-300, 0.0, 1e-300]]
            {
                let score = model.scores(&theta)[0];
                let gradient = model.per_example_gradients(&theta, 0);
                let euler: f64 = theta.iter().zip(&gradient.data).map(|(t, g)| t * g).sum();
                assert!(score > 0.0 && (euler - score).abs() <= 1e-13 * score, "{theta:?}: {score} {euler}");
            }
            // the hat's top is flat: only the norm pulls there
            assert_eq!(model.per_example_gradients(&[0.0, 0.0, 2.0], 0).data[..2], [0.0, 0.0]);
            assert!(model.scores(&[f64::NAN, 1.0, 1.0])[0].is_nan());
            assert!(model.per_example_gradients(&[0.0; 3], 0).data.iter().all(|g| g.is_nan()));
        }
    }

    #[test]
    fn impossible_hats_are_refused_with_the_value() {
        let message = |degree, exponent| {
            let spec = ModelSpec::MexicanHat { degree, exponent };
            cpu::bind(&spec, Matrix::from_rows(&[&[1.0]]), 1, Compute::default()).err().unwrap().to_string()
        };
        assert!(message(0.0, 3).contains("degree of the hat is 0") && message(1.0, 5).contains("is 5"));
    }
}
