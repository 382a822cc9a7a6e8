//! Two-layer ReLU teachers, which give the labels of generated data.

use serde::{Deserialize, Serialize};

use super::spec::{DataSplit, GroundTruth};
use super::{DataError, Dataset, Targets};
use crate::linalg::{Matrix, sign};
use crate::numeric::{RandomStream, Streams};

/// How often a generator draws anew until both labels occur.
const MAX_ATTEMPTS: usize = 100;

/// One hidden neuron a · max(⟨w, x⟩, 0), with w stored as its non-zero coordinates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeacherNeuron {
    /// Output weight a.
    pub outer: f64,
    /// Coordinates of x that the neuron sees, increasing.
    pub inputs: Vec<usize>,
    /// Their weights.
    pub weights: Vec<f64>,
}

/// A teacher without biases.
///
/// ```text
/// f(x) = Σⱼ aⱼ max(⟨wⱼ, x⟩, 0)
/// ```
///
/// ```
/// use limitpoint::data::{ReluTeacher, TeacherNeuron};
/// let neuron = TeacherNeuron { outer: -2.0, inputs: vec![1], weights: vec![3.0] };
/// assert_eq!(ReluTeacher { neurons: vec![neuron] }.value(&[5.0, 1.0]), -6.0);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReluTeacher {
    /// The hidden neurons.
    pub neurons: Vec<TeacherNeuron>,
}

impl ReluTeacher {
    /// f(x); x must have every coordinate the neurons name.
    pub fn value(&self, x: &[f64]) -> f64 {
        let activation = |neuron: &TeacherNeuron| -> f64 {
            let inner: f64 = neuron.inputs.iter().zip(&neuron.weights).map(|(&i, w)| w * x[i]).sum();
            neuron.outer * inner.max(0.0)
        };
        self.neurons.iter().map(activation).sum()
    }
}

/// What a teacher-labelled generator is made of.
pub(super) struct Lesson<T, P> {
    /// Name of the generator.
    pub name: &'static str,
    /// Number of training examples.
    pub count: usize,
    /// Number of test examples.
    pub test_count: usize,
    /// Number of inputs.
    pub dimension: usize,
    /// Label where the teacher's output is exactly 0.
    pub label_at_zero: f64,
    /// Draws a teacher.
    pub teacher: T,
    /// Draws the inputs of one example.
    pub point: P,
}

impl<T: Fn(&mut RandomStream) -> ReluTeacher, P: Fn(&mut RandomStream, &mut [f64])> Lesson<T, P> {
    /// Draws teacher and training set anew from the ongoing streams `teacher` and `data` until both labels occur, then
    /// the test set, so that its size never changes the training set.
    pub fn teach(&self, streams: &Streams) -> Result<DataSplit, DataError> {
        let (mut teacher_stream, mut data_stream) = (streams.stream("teacher"), streams.stream("data"));
        for _ in 0..MAX_ATTEMPTS {
            let teacher = (self.teacher)(&mut teacher_stream);
            let (inputs, labels) = self.draw(self.count, &teacher, &mut data_stream);
            if !(labels.contains(&1.0) && labels.contains(&-1.0)) {
                continue;
            }
            let train = Dataset::new(self.name, inputs, Targets::Binary(labels), vec![self.dimension])?;
            let test = if self.test_count == 0 {
                None
            } else {
                let (inputs, labels) = self.draw(self.test_count, &teacher, &mut data_stream);
                Some(Dataset::new(self.name, inputs, Targets::Binary(labels), vec![self.dimension])?)
            };
            return Ok(DataSplit { train, test, truth: Some(GroundTruth::Teacher(teacher)) });
        }
        Err(DataError::OneLabel { name: self.name, attempts: MAX_ATTEMPTS })
    }

    fn draw(&self, count: usize, teacher: &ReluTeacher, stream: &mut RandomStream) -> (Matrix, Vec<f64>) {
        let mut inputs = Matrix::zeros(count, self.dimension);
        (0..count).for_each(|i| (self.point)(stream, inputs.row_mut(i)));
        let label = |i| match sign(teacher.value(inputs.row(i))) {
            0.0 => self.label_at_zero,
            label => label,
        };
        let labels = (0..count).map(label).collect();
        (inputs, labels)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn drawing_goes_on_until_both_labels_occur_and_gives_up() {
        let calls = Cell::new(0);
        let lesson = |patience: usize| Lesson {
            name: "lesson",
            count: 2,
            test_count: 1,
            dimension: 1,
            label_at_zero: -1.0,
            teacher: |_: &mut RandomStream| ReluTeacher {
                neurons: vec![TeacherNeuron { outer: 1.0, inputs: vec![0], weights: vec![1.0] }],
            },
            point: {
                let calls = &calls;
                move |_: &mut RandomStream, x: &mut [f64]| {
                    calls.set(calls.get() + 1);
                    x[0] = if calls.get() > patience && calls.get().is_multiple_of(2) { 0.0 } else { 1.0 };
                }
            },
        };
        let split = lesson(6).teach(&Streams::new(1)).unwrap();
        assert_eq!(split.train.signs().unwrap(), [1.0, -1.0]);
        assert_eq!(split.test.unwrap().len(), 1);
        assert_eq!(calls.get(), 9, "three draws of two, the fourth succeeds, then the test point");
        let never = lesson(usize::MAX).teach(&Streams::new(1));
        assert!(matches!(never, Err(DataError::OneLabel { attempts: MAX_ATTEMPTS, .. })));
    }
}
