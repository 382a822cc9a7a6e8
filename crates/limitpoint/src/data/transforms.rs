//! Changes of the inputs: scaling, centring, unit length, smaller images.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DataError, Dataset, Inputs};
use crate::linalg::{Matrix, norm2};
use crate::numeric::compensated_sum;

/// What is done to the inputs of a whole split; statistics are those of the training set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Normalisation {
    /// Nothing.
    #[default]
    None,
    /// x ← x − mean, per input.
    Centre,
    /// x ← (x − mean) / deviation, per input.
    Standardise,
    /// x ← x / ‖x‖₂, per example.
    UnitNorm,
}

impl Normalisation {
    /// Changes the training set and, with the same numbers, the test set.
    pub fn apply(self, train: &mut Dataset, test: Option<&mut Dataset>) -> Result<(), DataError> {
        match self {
            Self::None => Ok(()),
            Self::Centre | Self::Standardise => {
                let mut statistics = Standardisation::fit(train)?;
                if self == Self::Centre {
                    statistics.deviation.fill(1.0);
                }
                statistics.apply(train)?;
                test.map_or(Ok(()), |test| statistics.apply(test))
            }
            Self::UnitNorm => {
                train.unit_norm()?;
                test.map_or(Ok(()), Dataset::unit_norm)
            }
        }
    }
}

/// The mean and deviation of every input over one dataset, to be applied to this and other datasets.
///
/// ```text
/// meanⱼ = (1/N) Σᵢ xᵢⱼ      deviationⱼ = √((1/N) Σᵢ (xᵢⱼ − meanⱼ)²), or 1 where all xᵢⱼ are equal
/// ```
///
/// ```
/// use limitpoint::data::{Dataset, Standardisation, Targets};
/// use limitpoint::linalg::Matrix;
/// let inputs = Matrix::from_rows(&[&[1.0, 5.0], &[3.0, 5.0]]);
/// let mut data = Dataset::new("two", inputs, Targets::Binary(vec![1.0, -1.0]), vec![2])?;
/// let statistics = Standardisation::fit(&data)?;
/// statistics.apply(&mut data)?;
/// assert_eq!(data.dense()?.data, [-1.0, 0.0, 1.0, 0.0]);
/// # Ok::<(), limitpoint::data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standardisation {
    /// Mean of each input.
    pub mean: Vec<f64>,
    /// Standard deviation of each input (divisor N); 1 for a constant one.
    pub deviation: Vec<f64>,
}

impl Standardisation {
    /// The statistics of a dataset; of dense inputs only, since a shift would fill the zeros of sparse ones.
    pub fn fit(data: &Dataset) -> Result<Self, DataError> {
        let inputs = match &data.inputs {
            Inputs::Dense(inputs) => inputs,
            Inputs::Sparse(_) => return Err(filling(data)),
        };
        let (count, dimension) = (data.len(), data.dimension());
        let (mut mean, mut deviation) = (vec![0.0; dimension], vec![1.0; dimension]);
        let mut column = vec![0.0; count];
        for j in 0..dimension {
            let entry = |i: usize| inputs[(i, j)];
            let first = entry(0);
            if (1..count).all(|i| entry(i) == first) {
                mean[j] = first; // exactly, so that a constant input becomes exactly 0
                continue;
            }
            mean[j] = compensated_sum((0..count).map(entry)) / count as f64;
            (0..count).for_each(|i| column[i] = entry(i) - mean[j]);
            let spread = norm2(&column) / (count as f64).sqrt();
            deviation[j] = if spread > 0.0 { spread } else { 1.0 };
            if !mean[j].is_finite() || !spread.is_finite() {
                return Err(DataError::Transform {
                    name: data.name.clone(),
                    problem: format!("the mean and deviation of column {j} are {} and {spread}", mean[j]),
                    remedy: "scale the inputs down before standardising them",
                });
            }
        }
        Ok(Self { mean, deviation })
    }

    /// x ← (x − mean) / deviation for every example.
    pub fn apply(&self, data: &mut Dataset) -> Result<(), DataError> {
        let dimension = data.dimension();
        if self.mean.len() != dimension || self.deviation.len() != dimension {
            return Err(DataError::Transform {
                name: data.name.clone(),
                problem: format!("statistics of {} inputs applied to {dimension}", self.mean.len()),
                remedy: "fit them on data of the same dimension",
            });
        }
        let Inputs::Dense(inputs) = &mut data.inputs else { return Err(filling(data)) };
        inputs.change(|inputs| {
            for i in 0..inputs.rows {
                let row = inputs.row_mut(i);
                for ((x, mean), deviation) in row.iter_mut().zip(&self.mean).zip(&self.deviation) {
                    *x = (*x - mean) / deviation;
                }
            }
        });
        data.still_finite("standardising")
    }
}

/// Sparse inputs must keep their zeros.
fn filling(data: &Dataset) -> DataError {
    DataError::Transform {
        name: data.name.clone(),
        problem: format!(
            "subtracting means would fill the zeros of {} sparse examples of dimension {}",
            data.len(),
            data.dimension()
        ),
        remedy: "choose normalise = \"unit-norm\" or \"none\"",
    }
}

impl Dataset {
    /// x ← factor · x, such as 1/255 for pixels.
    pub fn scale(&mut self, factor: f64) -> Result<(), DataError> {
        if !factor.is_finite() || factor == 0.0 {
            return Err(DataError::setting("scale", factor, "finite and not zero"));
        }
        self.inputs.map_rows(|_, x| x * factor);
        self.still_finite("scaling")
    }

    /// x ← x / ‖x‖₂ for every example; an example of zeros has no direction and is refused.
    ///
    /// ```
    /// use limitpoint::data::{Dataset, Targets};
    /// use limitpoint::linalg::Matrix;
    /// let mut data = Dataset::new("one", Matrix::from_rows(&[&[3.0, 4.0]]), Targets::Values(vec![0.0]), vec![2])?;
    /// data.unit_norm()?;
    /// assert_eq!(data.dense()?.data, [0.6, 0.8]);
    /// # Ok::<(), limitpoint::data::DataError>(())
    /// ```
    pub fn unit_norm(&mut self) -> Result<(), DataError> {
        let mut lengths = vec![0.0; self.len()];
        for (i, length) in lengths.iter_mut().enumerate() {
            *length = match &self.inputs {
                Inputs::Dense(inputs) => norm2(inputs.row(i)),
                Inputs::Sparse(inputs) => norm2(inputs.row(i).1),
            };
            if !(f64::MIN_POSITIVE..f64::INFINITY).contains(length) {
                return Err(DataError::Transform {
                    name: self.name.clone(),
                    problem: format!("row {i} has length {length}, so it cannot be brought to length 1"),
                    remedy: "remove that example or choose another normalisation",
                });
            }
        }
        self.inputs.map_rows(|i, x| x / lengths[i]);
        Ok(())
    }

    /// Images of half the side, each pixel the mean of a 2×2 square; both sides must be even.
    ///
    /// Works on shapes `[rows, columns]` and `[channels, rows, columns]`.
    pub fn halve_images(&self) -> Result<Self, DataError> {
        let (channels, rows, columns) = match self.input_shape[..] {
            [rows, columns] => (1, rows, columns),
            [channels, rows, columns] => (channels, rows, columns),
            _ => (0, 0, 0),
        };
        if channels == 0 || rows % 2 == 1 || columns % 2 == 1 {
            return Err(DataError::Transform {
                name: self.name.clone(),
                problem: format!("examples of shape {:?} cannot be halved", self.input_shape),
                remedy: "only images with an even number of rows and columns can",
            });
        }
        let (small_rows, small_columns) = (rows / 2, columns / 2);
        let size = channels * small_rows * small_columns;
        let images = self.dense()?;
        let mut data = Vec::with_capacity(self.len() * size);
        for i in 0..self.len() {
            let image = images.row(i);
            for channel in 0..channels {
                for r in 0..small_rows {
                    for c in 0..small_columns {
                        let corner = (channel * rows + 2 * r) * columns + 2 * c;
                        let upper = image[corner] + image[corner + 1];
                        let lower = image[corner + columns] + image[corner + columns + 1];
                        data.push(0.25 * (upper + lower));
                    }
                }
            }
        }
        let mut input_shape = self.input_shape.clone();
        let sides = input_shape.len();
        (input_shape[sides - 2], input_shape[sides - 1]) = (small_rows, small_columns);
        let inputs = Matrix { rows: self.len(), cols: size, data };
        Self::new(format!("{}, halved", self.name), inputs, self.targets.clone(), input_shape)
    }

    fn still_finite(&self, what: &str) -> Result<(), DataError> {
        let Some((row, column, _)) = self.inputs.first_not_finite() else { return Ok(()) };
        Err(DataError::Transform {
            name: self.name.clone(),
            problem: format!("{what} made row {row}, column {column} overflow"),
            remedy: "choose a smaller factor",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Targets;
    use crate::numeric::Streams;

    fn random(rows: usize, shape: &[usize]) -> Dataset {
        let cols = shape.iter().product();
        let mut inputs = Matrix::zeros(rows, cols);
        Streams::new(3).stream("data").fill_normal(&mut inputs.data);
        Dataset::new("random", inputs, Targets::Values(vec![0.0; rows]), shape.to_vec()).unwrap()
    }

    fn change(data: &mut Dataset, work: impl FnOnce(&mut Matrix)) {
        match &mut data.inputs {
            Inputs::Dense(inputs) => inputs.change(work),
            Inputs::Sparse(_) => panic!("made dense"),
        }
    }

    #[test]
    fn sparse_inputs_are_scaled_and_keep_their_zeros() {
        let entries = [(0, 1, 3.0), (0, 4, -4.0), (1, 0, 2.0)];
        let inputs = crate::linalg::SparseMatrix::from_triplets(2, 5, &entries).unwrap();
        let mut data = Dataset::new("sparse", inputs, Targets::Values(vec![0.0; 2]), vec![5]).unwrap();
        let before = data.clone();
        for normalisation in [Normalisation::Centre, Normalisation::Standardise] {
            let error = normalisation.apply(&mut data, None).unwrap_err().to_string();
            assert!(error.contains("2 sparse examples of dimension 5") && error.contains("unit-norm"), "{error}");
        }
        let statistics = Standardisation { mean: vec![1.0; 5], deviation: vec![1.0; 5] };
        assert!(statistics.apply(&mut data).is_err());
        assert_eq!(data, before);
        Normalisation::UnitNorm.apply(&mut data, None).unwrap();
        assert_eq!(data.dense().unwrap().data, [0.0, 0.6, 0.0, 0.0, -0.8, 1.0, 0.0, 0.0, 0.0, 0.0]);
        data.scale(2.0).unwrap();
        assert_eq!((data.inputs.stored(), data.dense().unwrap()[(0, 4)]), (3, -1.6));
        assert_eq!(before.dense().unwrap()[(0, 4)], -4.0, "a copy that shares the inputs stays as it is");
        assert!(data.scale(5e307).is_ok() && data.scale(5e307).unwrap_err().to_string().contains("row 0, column 1"));
    }

    #[test]
    fn standardised_columns_have_mean_zero_and_deviation_one() {
        let (mut train, mut test) = (random(50, &[4]), random(9, &[4]));
        change(&mut train, |inputs| {
            inputs.data.iter_mut().for_each(|x| *x = 1e6 + 3.0 * *x);
            (0..50).for_each(|i| inputs[(i, 2)] = 0.1);
        });
        change(&mut test, |inputs| (0..9).for_each(|i| inputs[(i, 2)] = 1.1));
        Normalisation::Standardise.apply(&mut train, Some(&mut test)).unwrap();
        for j in 0..4 {
            let column: Vec<f64> = (0..50).map(|i| train.dense().unwrap()[(i, j)]).collect();
            let (mean, square) = (column.iter().sum::<f64>() / 50.0, norm2(&column).powi(2) / 50.0);
            assert!(mean.abs() < 1e-9, "{mean}");
            assert!((square - if j == 2 { 0.0 } else { 1.0 }).abs() < 1e-9, "{square}");
        }
        assert!((test.dense().unwrap()[(4, 2)] - 1.0).abs() < 1e-15);
        assert!(test.dense().unwrap()[(0, 0)] < -1e5, "the test set is measured by the training set");
    }

    #[test]
    fn centring_keeps_the_spread_and_unit_norm_the_direction() {
        let mut data = random(20, &[3]);
        let difference = |data: &Dataset| data.dense().unwrap()[(1, 0)] - data.dense().unwrap()[(0, 0)];
        let before = difference(&data);
        Normalisation::Centre.apply(&mut data, None).unwrap();
        assert!((difference(&data) - before).abs() < 1e-15);
        Normalisation::UnitNorm.apply(&mut data, None).unwrap();
        assert!((0..20).all(|i| (norm2(data.dense().unwrap().row(i)) - 1.0).abs() < 1e-15));
        change(&mut data, |inputs| inputs.row_mut(7).fill(0.0));
        assert!(data.unit_norm().unwrap_err().to_string().contains("row 7"));
    }

    #[test]
    fn halving_takes_means_of_squares_per_channel() {
        let image: Vec<f64> = (0..16).map(f64::from).collect();
        let inputs = Matrix { rows: 1, cols: 16, data: image.clone() };
        let grey = Dataset::new("i", inputs.clone(), Targets::Values(vec![0.0]), vec![4, 4]).unwrap();
        let small = grey.halve_images().unwrap();
        assert_eq!(
            (small.dense().unwrap().data.clone(), small.input_shape.clone()),
            (vec![2.5, 4.5, 10.5, 12.5], vec![2, 2])
        );
        let colour = Dataset::new("i", inputs, Targets::Values(vec![0.0]), vec![2, 2, 4]).unwrap();
        let small = colour.halve_images().unwrap();
        assert_eq!(
            (small.dense().unwrap().data.clone(), small.input_shape.clone()),
            (vec![2.5, 4.5, 10.5, 12.5], vec![2, 1, 2])
        );
        assert!(random(1, &[16]).halve_images().is_err());
        assert!(random(1, &[3, 4]).halve_images().is_err());
    }

    #[test]
    fn overflow_is_refused_not_hidden() {
        let mut data = random(5, &[2]);
        assert!(data.scale(0.0).is_err() && data.scale(f64::NAN).is_err());
        assert!(data.scale(1e308).is_ok());
        assert!(data.scale(1e308).is_err());
        let inputs = Matrix::from_rows(&[&[1.7e308], &[-1.7e308], &[1.6e308]]);
        let huge = Dataset::new("huge", inputs, Targets::Values(vec![0.0; 3]), vec![1]).unwrap();
        assert!(Standardisation::fit(&huge).is_err(), "a difference of 2e308 overflows");
        let inputs = Matrix::from_rows(&[&[1e300], &[-1e300]]);
        let large = Dataset::new("large", inputs, Targets::Values(vec![0.0; 2]), vec![1]).unwrap();
        let deviation = Standardisation::fit(&large).unwrap().deviation[0];
        assert!((deviation / 1e300 - 1.0).abs() < 1e-14, "squares of 1e300 do not overflow: {deviation}");
        assert!(Standardisation { mean: vec![0.0], deviation: vec![1.0] }.apply(&mut random(2, &[3])).is_err());
    }
}
