//! Examples written out in the recipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::DataSplit;
use super::{DataError, Dataset, Targets};
use crate::linalg::Matrix;

/// A handful of examples by hand, with labels ±1 or real values.
///
/// | setting | default | purpose | range |
/// |---|---|---|---|
/// | `inputs` | required | one list of numbers per example | finite, of one length |
/// | `labels` | – | ±1, one per example | either these |
/// | `values` | – | real targets, one per example | or these |
/// | `shape` | `[d]` | the shape of an example, such as `[2, 3]` for matrices | its product is d |
///
/// ```
/// use limitpoint::data::{DataSpec, Targets};
/// use limitpoint::numeric::Streams;
/// // B Example 2
/// let spec: DataSpec = toml::from_str("points = { inputs = [[1.0, 2.0]], values = [1.0] }")?;
/// let train = spec.load(&Streams::new(0))?.train;
/// assert_eq!((train.len(), train.dimension(), &train.targets), (1, 2, &Targets::Values(vec![1.0])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Points {
    /// One list of numbers per example.
    pub inputs: Vec<Vec<f64>>,
    /// Labels −1 and +1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<f64>>,
    /// Real targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<f64>>,
    /// The shape of an example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<usize>>,
}

impl Points {
    /// Examples with labels ±1.
    pub fn labelled(inputs: &[&[f64]], labels: &[f64]) -> Self {
        let inputs = inputs.iter().map(|row| row.to_vec()).collect();
        Self { inputs, labels: Some(labels.to_vec()), values: None, shape: None }
    }

    /// Examples with real targets.
    pub fn valued(inputs: &[&[f64]], values: &[f64]) -> Self {
        let inputs = inputs.iter().map(|row| row.to_vec()).collect();
        Self { inputs, labels: None, values: Some(values.to_vec()), shape: None }
    }

    /// The examples, checked.
    pub fn load(&self) -> Result<DataSplit, DataError> {
        let columns = self.inputs.first().map_or(0, Vec::len);
        if let Some(row) = self.inputs.iter().position(|input| input.len() != columns) {
            let found = format!("{} numbers in input {row} and {columns} in input 0", self.inputs[row].len());
            return Err(DataError::setting("inputs", found, "lists of one length"));
        }
        let targets = match (&self.labels, &self.values) {
            (Some(labels), None) => Targets::Binary(labels.clone()),
            (None, Some(values)) => Targets::Values(values.clone()),
            (Some(_), Some(_)) => return Err(DataError::setting("values", "given beside labels", "one of the two")),
            (None, None) => return Err(DataError::setting("labels", "absent", "given, or values for regression")),
        };
        let inputs = Matrix { rows: self.inputs.len(), cols: columns, data: self.inputs.concat() };
        let shape = self.shape.clone().unwrap_or_else(|| vec![columns]);
        Ok(DataSplit { train: Dataset::new("points", inputs, targets, shape)?, test: None, truth: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_its_value() {
        let refuse = |points: Points| points.load().unwrap_err().to_string();
        let good = Points::labelled(&[&[1.0, 2.0], &[3.0, 4.0]], &[1.0, -1.0]);
        assert_eq!(good.load().unwrap().train.dense().unwrap().row(1), [3.0, 4.0]);
        let uneven = refuse(Points { inputs: vec![vec![1.0], vec![1.0, 2.0]], ..good.clone() });
        assert!(uneven.contains("2 numbers in input 1"), "{uneven}");
        assert!(refuse(Points { values: Some(vec![1.0]), ..good.clone() }).contains("one of the two"));
        assert!(refuse(Points { labels: None, ..good.clone() }).contains("absent"));
        assert!(refuse(Points { labels: Some(vec![1.0, 0.5]), ..good.clone() }).contains("0.5"));
        assert!(refuse(Points { shape: Some(vec![3]), ..good.clone() }).contains('3'));
        assert!(refuse(Points { inputs: Vec::new(), ..good }).contains('0'));
    }
}
