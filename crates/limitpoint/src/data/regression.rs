//! Underdetermined regression whose solutions are a known affine set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::{DataSplit, GroundTruth};
use super::teacher_student::distinct;
use super::{DataError, Dataset, Targets, check_size};
use crate::linalg::{Matrix, matmul};
use crate::numeric::{RandomStream, Streams, compensated_dot};

/// What the solution that made the targets looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Solution {
    /// All coordinates N(0, 1).
    #[default]
    Dense,
    /// `active` random coordinates N(0, 1), the others 0.
    Sparse {
        /// Number of non-zero coordinates.
        active: usize,
    },
    /// All coordinates |N(0, 1)|, so that solutions exist in the positive orthant.
    Positive,
}

/// Linear regression with exact targets.
///
/// ```text
/// X Gaussian (N×d),  y = X w*,   {w : X w = y} = w* + ker X,   dim ker X = d − rank
/// ```
///
/// The rank is min(N, d) unless set; then X = A B / √rank with Gaussian factors A (N×rank) and B (rank×d). Entries of
/// X have variance 1 either way. y is rounded once per entry. Reference: B.gd2.1, B.thm1 (squared loss with
/// attainable zero), whose solution set is this affine set.
///
/// | setting | default | purpose | range |
/// |---|---|---|---|
/// | `count` | 10 | training examples N | ≥ 1 |
/// | `test-count` | 0 | test examples | ≥ 0 |
/// | `dimension` | 30 | d | ≥ 1 |
/// | `rank` | min(N, d) | rank of X | 1 to min(N, d) |
/// | `solution` | dense | w*: `"dense"`, `"positive"`, `{ sparse = { active = 3 } }` | |
/// | `seed` | the run's | fixes the data while the run's seed varies | |
///
/// ```
/// use limitpoint::data::{GroundTruth, Regression, Targets};
/// use limitpoint::linalg::dot;
/// use limitpoint::numeric::Streams;
/// let split = Regression::default().generate(&Streams::new(3))?;
/// let (Targets::Values(y), Some(GroundTruth::Solution { weights })) = (&split.train.targets, &split.truth) else {
///     unreachable!()
/// };
/// assert!((dot(split.train.dense()?.row(0), weights) - y[0]).abs() < 1e-13);
/// # Ok::<(), limitpoint::data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Regression {
    /// Number of training examples N.
    pub count: usize,
    /// Number of test examples, possibly none.
    pub test_count: usize,
    /// Number of inputs d.
    pub dimension: usize,
    /// Rank of the training inputs; full if absent.
    pub rank: Option<usize>,
    /// The kind of w*.
    pub solution: Solution,
    /// Seed of the data; the run's if absent.
    pub seed: Option<u64>,
}

impl Default for Regression {
    fn default() -> Self {
        Self { count: 10, test_count: 0, dimension: 30, rank: None, solution: Solution::Dense, seed: None }
    }
}

impl Regression {
    /// Training set, test set and the solution.
    pub fn generate(&self, streams: &Streams) -> Result<DataSplit, DataError> {
        check_size(&[("dimension", self.dimension, 1)], 1)?;
        check_size(&[("count", self.count, 1), ("test-count", self.test_count, 0)], self.dimension)?;
        let full = self.count.min(self.dimension);
        let rank = self.rank.unwrap_or(full);
        if rank == 0 || rank > full {
            return Err(DataError::setting("rank", rank, format!("from 1 to min(count, dimension) = {full}")));
        }
        let streams = self.seed.map_or(*streams, Streams::new);
        let weights = self.weights(&mut streams.stream("teacher"))?;
        let mut stream = streams.stream("data");
        // the factor B is shared with the test set, which then lies in the same row space
        let mut basis = Vec::new();
        if rank < full {
            basis = vec![0.0; rank * self.dimension];
            stream.fill_normal(&mut basis);
        }
        let mut draw = |count: usize| {
            let mut inputs = Matrix::zeros(count, self.dimension);
            if basis.is_empty() {
                stream.fill_normal(&mut inputs.data);
            } else {
                let mut factor = vec![0.0; count * rank];
                stream.fill_normal(&mut factor);
                matmul(&mut inputs.data, &factor, &basis, count, rank, self.dimension);
                inputs.data.iter_mut().for_each(|x| *x /= (rank as f64).sqrt());
            }
            let values = (0..count).map(|i| compensated_dot(inputs.row(i), &weights)).collect();
            Dataset::new("regression", inputs, Targets::Values(values), vec![self.dimension])
        };
        let train = draw(self.count)?;
        let test = if self.test_count == 0 { None } else { Some(draw(self.test_count)?) };
        Ok(DataSplit { train, test, truth: Some(GroundTruth::Solution { weights }) })
    }

    fn weights(&self, stream: &mut RandomStream) -> Result<Vec<f64>, DataError> {
        let mut weights = vec![0.0; self.dimension];
        match self.solution {
            Solution::Dense => stream.fill_normal(&mut weights),
            Solution::Positive => weights.iter_mut().for_each(|w| *w = stream.normal().abs()),
            Solution::Sparse { active } => {
                if active == 0 || active > self.dimension {
                    return Err(DataError::setting(
                        "active",
                        active,
                        format!("from 1 to the dimension {}", self.dimension),
                    ));
                }
                distinct(self.dimension, active, stream).into_iter().for_each(|j| weights[j] = stream.normal());
            }
        }
        Ok(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Svd;

    #[test]
    fn targets_are_met_by_the_solution_and_the_rank_is_as_asked() {
        for (count, dimension, rank) in [(5, 12, None), (8, 12, Some(3)), (12, 4, None), (1, 1, Some(1))] {
            for solution in [Solution::Dense, Solution::Positive, Solution::Sparse { active: 1 }] {
                let spec = Regression { count, test_count: 3, dimension, rank, solution, seed: None };
                let split = spec.generate(&Streams::new(8)).unwrap();
                let Some(GroundTruth::Solution { weights }) = &split.truth else { panic!("the solution is returned") };
                for data in [&split.train, split.test.as_ref().unwrap()] {
                    let Targets::Values(values) = &data.targets else { panic!("regression has real targets") };
                    for (i, y) in values.iter().enumerate() {
                        let by_hand: f64 = data.dense().unwrap().row(i).iter().zip(weights).map(|(x, w)| x * w).sum();
                        assert!((by_hand - y).abs() < 1e-12);
                    }
                }
                let mut svd = Svd::new(count, dimension);
                svd.factor(&split.train.dense().unwrap().data).unwrap();
                let found = svd.values().iter().filter(|&&s| s > 1e-10 * svd.values()[0]).count();
                assert_eq!(found, rank.unwrap_or(count.min(dimension)));
                match solution {
                    Solution::Dense => {}
                    Solution::Positive => assert!(weights.iter().all(|&w| w > 0.0)),
                    Solution::Sparse { active } => assert_eq!(weights.iter().filter(|&&w| w != 0.0).count(), active),
                }
            }
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let base = Regression::default();
        for spec in [
            Regression { count: 0, ..base.clone() },
            Regression { dimension: 0, ..base.clone() },
            Regression { rank: Some(0), ..base.clone() },
            Regression { rank: Some(11), ..base.clone() },
            Regression { solution: Solution::Sparse { active: 31 }, ..base.clone() },
            Regression { dimension: usize::MAX, ..base.clone() },
        ] {
            let refused = spec.generate(&Streams::new(0));
            assert!(matches!(refused, Err(DataError::Setting { .. } | DataError::TooLarge(_))), "{spec:?}");
        }
    }
}
