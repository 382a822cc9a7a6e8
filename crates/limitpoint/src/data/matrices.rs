//! Matrix-shaped examples with a planted low-rank matrix behind them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::{DataSplit, GroundTruth};
use super::{DataError, Dataset, Targets, check_size};
use crate::linalg::{Matrix, add_scaled, dot, matmul_nt, norm2};
use crate::numeric::Streams;

/// What is asked about a matrix example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MatrixTask {
    /// The sign of ⟨W*, X⟩.
    #[default]
    Labels,
    /// The value ⟨W*, X⟩: matrix sensing.
    Values,
}

/// Gaussian matrices Xₙ and what a planted matrix W* of low rank says about them.
///
/// ```text
/// W* = P Qᵀ/‖PQᵀ‖_F with Gaussian P (rows×rank), Q (columns×rank); P = Q where symmetric, so that W* ⪰ 0
/// labels   yₙ = sign⟨W*, Xₙ⟩, and Xₙ moved along yₙW* until yₙ⟨W*, Xₙ⟩ grew by `margin`
/// values   yₙ = ⟨W*, Xₙ⟩
/// ```
///
/// Symmetric examples are (X + Xᵀ)/2. Used by matrix factorisation (B section 4) and by spectral descent.
///
/// | setting | default | purpose | range |
/// |---|---|---|---|
/// | `count` | 12 | examples N | ≥ 1 |
/// | `rows`, `columns` | 5, as `rows` | the shape | ≥ 1 |
/// | `rank` | 1 | rank of W* | 1 to the shorter side |
/// | `symmetric` | false | symmetric Xₙ and W* ⪰ 0 | a square shape |
/// | `task` | labels | `"labels"` or `"values"` | |
/// | `margin` | 0.1 | how far labels are from changing | ≥ 0 |
/// | `seed` | the run's | fixes the data while the run's seed varies | |
///
/// ```
/// use limitpoint::data::Matrices;
/// use limitpoint::numeric::Streams;
/// let split = Matrices { symmetric: true, ..Default::default() }.generate(&Streams::new(1))?;
/// let dense = split.train.dense()?;
/// let x = dense.row(0);
/// assert!(split.train.input_shape == [5, 5] && x[1] == x[5]);
/// # Ok::<(), limitpoint::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Matrices {
    /// Number of examples N.
    pub count: usize,
    /// Rows of an example.
    pub rows: usize,
    /// Columns of an example; as many as rows if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<usize>,
    /// Rank of W*.
    pub rank: usize,
    /// Symmetric examples and a positive semidefinite W*.
    pub symmetric: bool,
    /// Labels or values.
    pub task: MatrixTask,
    /// How far labels are from changing, at least.
    pub margin: f64,
    /// Seed of the data; the run's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Default for Matrices {
    fn default() -> Self {
        let task = MatrixTask::Labels;
        Self { count: 12, rows: 5, columns: None, rank: 1, symmetric: false, task, margin: 0.1, seed: None }
    }
}

impl Matrices {
    /// The examples; the truth is W*, row by row.
    pub fn generate(&self, streams: &Streams) -> Result<DataSplit, DataError> {
        let (rows, columns) = (self.rows, self.columns.unwrap_or(self.rows));
        check_size(&[("rows", rows, 1), ("columns", columns, 1)], 1)?;
        check_size(&[("count", self.count, 1)], rows.saturating_mul(columns))?;
        if self.rank == 0 || self.rank > rows.min(columns) {
            return Err(DataError::setting("rank", self.rank, format!("from 1 to {}", rows.min(columns))));
        }
        if self.symmetric && rows != columns {
            return Err(DataError::setting("columns", columns, format!("{rows}, the rows of symmetric examples")));
        }
        if !(self.margin >= 0.0 && self.margin <= 1e100) {
            return Err(DataError::setting("margin", self.margin, "0 or more and at most 1e100"));
        }
        let streams = self.seed.map_or(*streams, Streams::new);
        let planted = self.planted(rows, columns, &streams);
        let mut stream = streams.stream("data");
        let mut inputs = Matrix::zeros(self.count, rows * columns);
        let mut targets = vec![0.0; self.count];
        for (n, target) in targets.iter_mut().enumerate() {
            let x = inputs.row_mut(n);
            stream.fill_normal(x);
            if self.symmetric {
                symmetrise(x, rows);
            }
            *target = dot(&planted, x);
            if self.task == MatrixTask::Labels {
                *target = if *target < 0.0 { -1.0 } else { 1.0 };
                add_scaled(x, *target * self.margin, &planted);
            }
        }
        let targets = match self.task {
            MatrixTask::Labels => Targets::Binary(targets),
            MatrixTask::Values => Targets::Values(targets),
        };
        let train = Dataset::new("matrices", inputs, targets, vec![rows, columns])?;
        Ok(DataSplit { train, test: None, truth: Some(GroundTruth::Solution { weights: planted }) })
    }

    fn planted(&self, rows: usize, columns: usize, streams: &Streams) -> Vec<f64> {
        let mut stream = streams.stream("teacher");
        let mut left = vec![0.0; rows * self.rank];
        stream.fill_normal(&mut left);
        let mut right = left.clone();
        if !self.symmetric {
            right = vec![0.0; columns * self.rank];
            stream.fill_normal(&mut right);
        }
        let mut planted = vec![0.0; rows * columns];
        matmul_nt(&mut planted, &left, &right, rows, self.rank, columns);
        let size = norm2(&planted);
        planted.iter_mut().for_each(|w| *w /= size);
        planted
    }
}

/// (X + Xᵀ)/2 of a row-major square matrix.
fn symmetrise(x: &mut [f64], size: usize) {
    for i in 0..size {
        for j in 0..i {
            let mean = 0.5 * (x[i * size + j] + x[j * size + i]);
            x[i * size + j] = mean;
            x[j * size + i] = mean;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_values_are_those_of_the_planted_matrix() {
        for task in [MatrixTask::Labels, MatrixTask::Values] {
            let spec = Matrices { rows: 3, columns: Some(4), rank: 2, task, margin: 0.3, ..Default::default() };
            let split = spec.generate(&Streams::new(5)).unwrap();
            let Some(GroundTruth::Solution { weights }) = &split.truth else { panic!() };
            for n in 0..split.train.len() {
                let score = split.train.inputs.row_dot(n, weights);
                match &split.train.targets {
                    Targets::Binary(labels) => assert!(labels[n] * score >= 0.3 - 1e-12),
                    Targets::Values(values) => assert!((values[n] - score).abs() < 1e-12),
                    Targets::Classes { .. } => panic!(),
                }
            }
        }
    }

    #[test]
    fn impossible_settings_are_refused() {
        let refuse = |spec: Matrices| spec.generate(&Streams::new(0)).unwrap_err().to_string();
        assert!(refuse(Matrices { rank: 6, ..Default::default() }).contains("from 1 to 5"));
        assert!(refuse(Matrices { columns: Some(4), symmetric: true, ..Default::default() }).contains('5'));
        assert!(refuse(Matrices { margin: f64::NAN, ..Default::default() }).contains("NaN"));
        assert!(refuse(Matrices { count: 0, ..Default::default() }).contains("count"));
    }
}
