//! Gaussian inputs labelled by a sparse two-layer teacher.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::DataSplit;
use super::teacher::Lesson;
use super::{DataError, ReluTeacher, TeacherNeuron, check_size};
use crate::numeric::{RandomStream, Streams};

/// The sparse teacher–student task.
///
/// ```text
/// x ~ N(0, I_d),   y = sgn Σⱼ u*ⱼ max(⟨w*ⱼ, x⟩, 0),   sgn 0 = +1
/// ```
///
/// Each of the `width` teacher neurons sees exactly `active` coordinates, chosen at random without repeats, with
/// N(0, 1) weights; u* is N(0, 1) too. The paper prints d = 2³², which no machine holds; three active inputs per
/// neuron at density 10⁻⁴ mean d = 2¹⁵. Here d is a setting, by default 32. A draw with a single training label is
/// discarded, teacher included, and the next numbers of the streams are used. Reference: A.eq14, A.expTS.
///
/// | setting | default | purpose | range |
/// |---|---|---|---|
/// | `count` | 250 | training examples | ≥ 2 |
/// | `test-count` | 20000 | test examples | ≥ 0 |
/// | `dimension` | 32 | d | ≥ `active` |
/// | `active` | 3 | inputs each teacher neuron sees | ≥ 1 |
/// | `width` | 64 | teacher neurons | ≥ 1 |
/// | `seed` | the run's | fixes data and teacher while the run's seed varies | |
///
/// ```
/// use limitpoint::data::TeacherStudent;
/// use limitpoint::numeric::Streams;
/// let spec = TeacherStudent { count: 40, test_count: 0, ..Default::default() };
/// let split = spec.generate(&Streams::new(0))?;
/// assert_eq!((split.train.len(), split.train.dimension()), (40, 32));
/// assert_eq!(split, spec.generate(&Streams::new(0))?); // the same seed, the same bits
/// # Ok::<(), limitpoint::data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct TeacherStudent {
    /// Number of training examples.
    pub count: usize,
    /// Number of test examples, possibly none.
    pub test_count: usize,
    /// Number of inputs d.
    pub dimension: usize,
    /// Inputs each teacher neuron sees.
    pub active: usize,
    /// Number of teacher neurons.
    pub width: usize,
    /// Seed of data and teacher; the run's if absent.
    pub seed: Option<u64>,
}

impl Default for TeacherStudent {
    fn default() -> Self {
        Self { count: 250, test_count: 20_000, dimension: 32, active: 3, width: 64, seed: None }
    }
}

impl TeacherStudent {
    /// Training set, test set and the teacher.
    pub fn generate(&self, streams: &Streams) -> Result<DataSplit, DataError> {
        if self.active == 0 || self.active > self.dimension {
            return Err(DataError::setting(
                "active",
                self.active,
                format!("from 1 to the dimension {}", self.dimension),
            ));
        }
        check_size(&[("width", self.width, 1)], self.active)?;
        check_size(&[("count", self.count, 2), ("test-count", self.test_count, 0)], self.dimension)?;
        let lesson = Lesson {
            name: "teacher-student",
            count: self.count,
            test_count: self.test_count,
            dimension: self.dimension,
            label_at_zero: 1.0,
            teacher: |stream: &mut RandomStream| self.teacher(stream),
            point: |stream: &mut RandomStream, x: &mut [f64]| stream.fill_normal(x),
        };
        lesson.teach(&self.seed.map_or(*streams, Streams::new))
    }

    fn teacher(&self, stream: &mut RandomStream) -> ReluTeacher {
        let neuron = |_| {
            let inputs = distinct(self.dimension, self.active, stream);
            let weights = inputs.iter().map(|_| stream.normal()).collect();
            TeacherNeuron { outer: stream.normal(), inputs, weights }
        };
        ReluTeacher { neurons: (0..self.width).map(neuron).collect() }
    }
}

/// `count` distinct numbers of 0..`bound`, increasing (Floyd's algorithm: no array of length `bound`).
pub(super) fn distinct(bound: usize, count: usize, stream: &mut RandomStream) -> Vec<usize> {
    let mut chosen = std::collections::BTreeSet::new();
    for last in bound - count..bound {
        let candidate = stream.below(last + 1);
        if !chosen.insert(candidate) {
            chosen.insert(last);
        }
    }
    chosen.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::GroundTruth;

    #[test]
    fn labels_are_those_of_the_teacher() {
        let spec = TeacherStudent { count: 30, test_count: 20, dimension: 8, active: 3, width: 4, seed: None };
        let split = spec.generate(&Streams::new(11)).unwrap();
        let Some(GroundTruth::Teacher(teacher)) = &split.truth else { panic!("the teacher is returned") };
        assert_eq!(teacher.neurons.len(), 4);
        for neuron in &teacher.neurons {
            assert_eq!(neuron.inputs.len(), 3);
            assert!(neuron.inputs.windows(2).all(|pair| pair[0] < pair[1]) && neuron.inputs[2] < 8);
        }
        for data in [&split.train, split.test.as_ref().unwrap()] {
            let inputs = data.dense().unwrap();
            for (i, &sign) in data.signs().unwrap().iter().enumerate() {
                let row = inputs.row(i);
                let by_hand: f64 = teacher
                    .neurons
                    .iter()
                    .map(|n| n.outer * (0..3).map(|k| n.weights[k] * row[n.inputs[k]]).sum::<f64>().max(0.0))
                    .sum();
                assert_eq!(sign, if by_hand >= 0.0 { 1.0 } else { -1.0 });
            }
        }
    }

    #[test]
    fn a_longer_test_set_leaves_the_training_set_alone() {
        let short = TeacherStudent { test_count: 0, ..Default::default() }.generate(&Streams::new(2)).unwrap();
        let long = TeacherStudent { test_count: 500, ..Default::default() }.generate(&Streams::new(2)).unwrap();
        assert_eq!(short.train, long.train);
        assert!(short.test.is_none());
        for seed in 0..20 {
            // two examples often share their label, so draws are discarded on the way
            let tiny = |test_count| {
                TeacherStudent { count: 2, test_count, ..Default::default() }.generate(&Streams::new(seed))
            };
            assert_eq!(tiny(0).unwrap().train, tiny(3).unwrap().train);
        }
        assert_ne!(
            short.train,
            TeacherStudent { test_count: 0, ..Default::default() }.generate(&Streams::new(3)).unwrap().train
        );
    }

    #[test]
    fn distinct_numbers_are_distinct_and_uniform() {
        let mut stream = Streams::new(1).stream("teacher");
        let mut counts = [0; 5];
        for _ in 0..5000 {
            let chosen = distinct(5, 3, &mut stream);
            assert!(chosen.len() == 3 && chosen.windows(2).all(|pair| pair[0] < pair[1]));
            chosen.iter().for_each(|&i| counts[i] += 1);
        }
        assert!(counts.iter().all(|count| (2850..3150).contains(count)), "{counts:?}");
        assert_eq!(distinct(4, 4, &mut stream), [0, 1, 2, 3]);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let base = TeacherStudent::default();
        for spec in [
            TeacherStudent { active: 0, ..base.clone() },
            TeacherStudent { active: 33, ..base.clone() },
            TeacherStudent { width: 0, ..base.clone() },
            TeacherStudent { width: usize::MAX, ..base.clone() },
            TeacherStudent { count: 1, ..base.clone() },
            TeacherStudent { count: usize::MAX, ..base.clone() },
            TeacherStudent { test_count: 1 << 40, ..base.clone() },
        ] {
            let refused = spec.generate(&Streams::new(0));
            assert!(matches!(refused, Err(DataError::Setting { .. } | DataError::TooLarge(_))), "{spec:?}");
        }
    }
}
