//! Separable Gaussian clouds whose ℓ2 margin and separator are known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::{DataSplit, GroundTruth};
use super::teacher_student::distinct;
use super::{DataError, Dataset, Targets, check_size};
use crate::linalg::{Matrix, add_scaled, dot, norm2};
use crate::numeric::{RandomStream, Streams};

/// A Gaussian cloud cut by a random hyperplane through the origin, its halves pulled apart to a chosen margin.
///
/// ```text
/// g ~ N(0, I_d),   x = g − ⟨w*, g⟩ w* + y (margin + |⟨w*, g⟩|) w*,   ‖w*‖₂ = 1,   y = +1, −1, +1, …
/// ```
///
/// so that yᵢ⟨w*, xᵢ⟩ ≥ margin. The first two training examples sit on the margin as mirror images, c ± margin · w*
/// with a common c ⊥ w*; half their signed sum is margin · w*, hence no unit vector has a larger margin than w*, and
///
/// ```text
/// max_{‖w‖₂ = 1} minᵢ yᵢ⟨w, xᵢ⟩ = margin, attained at w = w* only.
/// ```
///
/// The ℓ2 max-margin solution (the limit direction of gradient descent, B.gd3.1) is thus known in closed form.
/// Labels alternate, so they are balanced up to one.
///
/// | setting | default | purpose | range |
/// |---|---|---|---|
/// | `count` | 100 | training examples | ≥ 2 |
/// | `test-count` | 0 | test examples | ≥ 0 |
/// | `dimension` | 20 | d | ≥ 1 |
/// | `margin` | 0.5 | ℓ2 margin of the training set | > 0 |
/// | `active` | d | non-zero coordinates of w* | 1 to d |
/// | `seed` | the run's | fixes the data while the run's seed varies | |
///
/// ```
/// use limitpoint::data::{Gaussians, GroundTruth};
/// use limitpoint::linalg::dot;
/// use limitpoint::numeric::Streams;
/// let split = Gaussians { count: 10, margin: 2.0, ..Default::default() }.generate(&Streams::new(1))?;
/// let Some(GroundTruth::Separator { direction, margin }) = &split.truth else { unreachable!() };
/// assert_eq!(*margin, 2.0);
/// assert!((dot(direction, split.train.dense()?.row(0)) - 2.0).abs() < 1e-14); // the first example has label +1
/// # Ok::<(), limitpoint::data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Gaussians {
    /// Number of training examples.
    pub count: usize,
    /// Number of test examples, possibly none.
    pub test_count: usize,
    /// Number of inputs d.
    pub dimension: usize,
    /// ℓ2 margin of the training set.
    pub margin: f64,
    /// Number of non-zero coordinates of the separator; all if absent.
    pub active: Option<usize>,
    /// Seed of the data; the run's if absent.
    pub seed: Option<u64>,
}

impl Default for Gaussians {
    fn default() -> Self {
        Self { count: 100, test_count: 0, dimension: 20, margin: 0.5, active: None, seed: None }
    }
}

impl Gaussians {
    /// Training set, test set and the separator.
    pub fn generate(&self, streams: &Streams) -> Result<DataSplit, DataError> {
        check_size(&[("dimension", self.dimension, 1)], 1)?;
        check_size(&[("count", self.count, 2), ("test-count", self.test_count, 0)], self.dimension)?;
        let active = self.active.unwrap_or(self.dimension);
        if active == 0 || active > self.dimension {
            return Err(DataError::setting("active", active, format!("from 1 to the dimension {}", self.dimension)));
        }
        if !(self.margin > 0.0 && self.margin <= 1e100) {
            return Err(DataError::setting("margin", self.margin, "positive and at most 1e100"));
        }
        let streams = self.seed.map_or(*streams, Streams::new);
        let direction = self.separator(active, &mut streams.stream("teacher"));
        let mut stream = streams.stream("data");
        let mut train = self.draw(self.count, &direction, &mut stream);
        let mut shared = train.row(0).to_vec();
        remove_component(&mut shared, &direction);
        for (row, sign) in [(0, 1.0), (1, -1.0)] {
            train.row_mut(row).copy_from_slice(&shared);
            add_scaled(train.row_mut(row), sign * self.margin, &direction);
        }
        let dataset = |inputs: Matrix| {
            let labels = (0..inputs.rows).map(alternating).collect();
            Dataset::new("gaussians", inputs, Targets::Binary(labels), vec![self.dimension])
        };
        let train = dataset(train)?;
        let test = match self.test_count {
            0 => None,
            count => Some(dataset(self.draw(count, &direction, &mut stream))?),
        };
        Ok(DataSplit { train, test, truth: Some(GroundTruth::Separator { direction, margin: self.margin }) })
    }

    /// A random unit vector with `active` non-zero coordinates.
    fn separator(&self, active: usize, stream: &mut RandomStream) -> Vec<f64> {
        let mut direction = vec![0.0; self.dimension];
        let support = distinct(self.dimension, active, stream);
        loop {
            support.iter().for_each(|&j| direction[j] = stream.normal());
            let length = norm2(&direction);
            if length > 1e-100 {
                direction.iter_mut().for_each(|x| *x /= length);
                return direction; // a shorter draw has probability below 1e-100
            }
        }
    }

    fn draw(&self, count: usize, direction: &[f64], stream: &mut RandomStream) -> Matrix {
        let mut inputs = Matrix::zeros(count, self.dimension);
        for i in 0..count {
            let row = inputs.row_mut(i);
            stream.fill_normal(row);
            let along = dot(direction, row).abs();
            remove_component(row, direction);
            add_scaled(row, alternating(i) * (self.margin + along), direction);
        }
        inputs
    }
}

/// +1, −1, +1, …
fn alternating(i: usize) -> f64 {
    if i.is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// Makes `v` orthogonal to the unit vector `direction`; the second pass removes what rounding left.
fn remove_component(v: &mut [f64], direction: &[f64]) {
    for _ in 0..2 {
        add_scaled(v, -dot(v, direction), direction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_attained_and_certified_by_the_mirrored_pair() {
        for (dimension, margin, active) in [(1, 0.3, None), (2, 1e-3, None), (20, 0.5, Some(3)), (50, 40.0, None)] {
            let spec = Gaussians { count: 31, test_count: 10, dimension, margin, active, seed: None };
            let split = spec.generate(&Streams::new(4)).unwrap();
            let Some(GroundTruth::Separator { direction, .. }) = &split.truth else {
                panic!("the separator is returned")
            };
            assert!((norm2(direction) - 1.0).abs() < 1e-15);
            if let Some(active) = active {
                assert_eq!(direction.iter().filter(|x| **x != 0.0).count(), active);
            }
            let tolerance = 1e-14 * (10.0 + margin);
            for data in [&split.train, split.test.as_ref().unwrap()] {
                for (i, sign) in data.signs().unwrap().iter().enumerate() {
                    assert!(sign * dot(direction, data.dense().unwrap().row(i)) >= margin - tolerance);
                }
            }
            // half the signed sum of the first two examples is margin · w*: the dual certificate
            let inputs = split.train.dense().unwrap();
            let (first, second) = (inputs.row(0), inputs.row(1));
            for j in 0..dimension {
                assert!((0.5 * (first[j] - second[j]) - margin * direction[j]).abs() < tolerance);
            }
            let signs = split.train.signs().unwrap();
            assert_eq!(signs.iter().sum::<f64>(), 1.0);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bits() {
        let spec = Gaussians::default();
        assert_eq!(spec.generate(&Streams::new(6)).unwrap(), spec.generate(&Streams::new(6)).unwrap());
        assert_ne!(spec.generate(&Streams::new(6)).unwrap(), spec.generate(&Streams::new(7)).unwrap());
        let longer = Gaussians { test_count: 5, ..spec.clone() };
        assert_eq!(spec.generate(&Streams::new(6)).unwrap().train, longer.generate(&Streams::new(6)).unwrap().train);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let base = Gaussians::default();
        for spec in [
            Gaussians { count: 1, ..base.clone() },
            Gaussians { dimension: 0, ..base.clone() },
            Gaussians { margin: 0.0, ..base.clone() },
            Gaussians { margin: f64::NAN, ..base.clone() },
            Gaussians { margin: f64::INFINITY, ..base.clone() },
            Gaussians { active: Some(0), ..base.clone() },
            Gaussians { active: Some(21), ..base.clone() },
            Gaussians { count: usize::MAX, ..base.clone() },
            Gaussians { dimension: usize::MAX, ..base.clone() },
        ] {
            let refused = spec.generate(&Streams::new(0));
            assert!(matches!(refused, Err(DataError::Setting { .. } | DataError::TooLarge(_))), "{spec:?}");
        }
    }
}
