//! Points on the unit circle labelled by a small teacher.

use std::f64::consts::TAU;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::DataSplit;
use super::teacher::Lesson;
use super::{DataError, ReluTeacher, TeacherNeuron, check_size};
use crate::numeric::{RandomStream, Streams};

/// The two-dimensional teacher–student task on the circle.
///
/// ```text
/// x = (cos φ, sin φ),  φ ~ U[0, 2π),   y = +1 if Σⱼ aⱼ max(⟨wⱼ, x⟩, 0) > 0, else −1,   |aⱼ| ‖wⱼ‖₂ = 1
/// ```
///
/// aⱼ is ±1 with equal chance and wⱼ a uniform unit vector; f = 0 gives −1 here, as the paper's indicator says. A draw
/// with a single training label is discarded, teacher included. Reference: C.exp2L (section J.1), whose margins vary
/// so little over seeds that data and teacher were fixed: set `seed` for that.
///
/// | setting | default | purpose | range |
/// |---|---|---|---|
/// | `count` | 200 | training examples | ≥ 2 |
/// | `test-count` | 0 | test examples | ≥ 0 |
/// | `neurons` | 3 | teacher neurons | ≥ 1 |
/// | `seed` | the run's | fixes data and teacher while the run's seed varies | |
///
/// ```
/// use limitpoint::data::CircleTeacher;
/// use limitpoint::numeric::Streams;
/// let split = CircleTeacher::default().generate(&Streams::new(42))?;
/// let inputs = split.train.dense()?;
/// let x = inputs.row(0);
/// assert!((x[0] * x[0] + x[1] * x[1] - 1.0).abs() < 1e-15);
/// # Ok::<(), limitpoint::data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct CircleTeacher {
    /// Number of training points.
    pub count: usize,
    /// Number of test points, possibly none.
    pub test_count: usize,
    /// Number of teacher neurons.
    pub neurons: usize,
    /// Seed of data and teacher; the run's if absent.
    pub seed: Option<u64>,
}

impl Default for CircleTeacher {
    fn default() -> Self {
        Self { count: 200, test_count: 0, neurons: 3, seed: None }
    }
}

impl CircleTeacher {
    /// Training set, test set and the teacher.
    pub fn generate(&self, streams: &Streams) -> Result<DataSplit, DataError> {
        check_size(&[("count", self.count, 2), ("test-count", self.test_count, 0), ("neurons", self.neurons, 1)], 2)?;
        let on_circle = |stream: &mut RandomStream| {
            let (sin, cos) = stream.uniform_in(0.0, TAU).sin_cos();
            [cos, sin]
        };
        let lesson = Lesson {
            name: "circle-teacher",
            count: self.count,
            test_count: self.test_count,
            dimension: 2,
            label_at_zero: -1.0,
            teacher: |stream: &mut RandomStream| ReluTeacher {
                neurons: (0..self.neurons)
                    .map(|_| TeacherNeuron {
                        outer: stream.sign(),
                        inputs: vec![0, 1],
                        weights: on_circle(stream).to_vec(),
                    })
                    .collect(),
            },
            point: |stream: &mut RandomStream, x: &mut [f64]| x.copy_from_slice(&on_circle(stream)),
        };
        lesson.teach(&self.seed.map_or(*streams, Streams::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::GroundTruth;
    use crate::linalg::norm2;

    #[test]
    fn points_lie_on_the_circle_and_neurons_have_unit_product() {
        for seed in 0..20 {
            let split = CircleTeacher { test_count: 50, ..Default::default() }.generate(&Streams::new(seed)).unwrap();
            assert_eq!((split.train.len(), split.test.as_ref().unwrap().len()), (200, 50));
            assert!((0..200).all(|i| (norm2(split.train.dense().unwrap().row(i)) - 1.0).abs() < 1e-15));
            let Some(GroundTruth::Teacher(teacher)) = &split.truth else { panic!("the teacher is returned") };
            assert_eq!(teacher.neurons.len(), 3);
            assert!(teacher.neurons.iter().all(|n| (n.outer.abs() * norm2(&n.weights) - 1.0).abs() < 1e-15));
            let signs = split.train.signs().unwrap();
            assert!(signs.contains(&1.0) && signs.contains(&-1.0));
            for (i, &sign) in signs.iter().enumerate() {
                assert_eq!(sign > 0.0, teacher.value(split.train.dense().unwrap().row(i)) > 0.0);
            }
        }
    }

    #[test]
    fn a_fixed_seed_fixes_the_data() {
        let spec = CircleTeacher { seed: Some(42), ..Default::default() };
        assert_eq!(spec.generate(&Streams::new(1)).unwrap(), spec.generate(&Streams::new(2)).unwrap());
        assert!(CircleTeacher { count: 1, ..Default::default() }.generate(&Streams::new(1)).is_err());
        assert!(CircleTeacher { neurons: 0, ..Default::default() }.generate(&Streams::new(1)).is_err());
    }
}
