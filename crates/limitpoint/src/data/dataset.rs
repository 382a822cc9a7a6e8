//! Labelled examples, checked once.

use super::{DataError, Inputs};
use crate::numeric::RandomStream;

/// What is to be predicted.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// Labels −1 and +1.
    Binary(Vec<f64>),
    /// Labels in 0..`count`.
    Classes {
        /// One label per example.
        labels: Vec<usize>,
        /// Number of classes, whether or not all occur.
        count: usize,
    },
    /// Real numbers.
    Values(Vec<f64>),
}

impl Targets {
    /// Number of targets.
    pub fn len(&self) -> usize {
        match self {
            Self::Binary(values) | Self::Values(values) => values.len(),
            Self::Classes { labels, .. } => labels.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kind in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Binary(_) => "binary",
            Self::Classes { .. } => "class",
            Self::Values(_) => "real",
        }
    }

    /// The targets at `indices`, which must exist.
    pub fn select(&self, indices: &[usize]) -> Self {
        let pick = |values: &Vec<f64>| indices.iter().map(|&i| values[i]).collect();
        match self {
            Self::Binary(values) => Self::Binary(pick(values)),
            Self::Values(values) => Self::Values(pick(values)),
            Self::Classes { labels, count } => {
                Self::Classes { labels: indices.iter().map(|&i| labels[i]).collect(), count: *count }
            }
        }
    }

    /// The examples of each label, in order; one group if the targets are real numbers.
    fn groups(&self) -> Vec<Vec<usize>> {
        let label = |i: usize| match self {
            Self::Binary(values) => usize::from(values[i] < 0.0),
            Self::Classes { labels, .. } => labels[i],
            Self::Values(_) => 0,
        };
        let mut groups: std::collections::BTreeMap<usize, Vec<usize>> = std::collections::BTreeMap::new();
        (0..self.len()).for_each(|i| groups.entry(label(i)).or_default().push(i));
        groups.into_values().collect()
    }
}

/// N examples (xᵢ, yᵢ) of one shape.
///
/// ```
/// use limitpoint::data::{Dataset, Targets};
/// use limitpoint::linalg::Matrix;
/// let inputs = Matrix::from_rows(&[&[1.0, 0.0], &[0.0, 2.0], &[3.0, 3.0]]);
/// let targets = Targets::Classes { labels: vec![0, 2, 1], count: 3 };
/// let data = Dataset::new("three", inputs, targets, vec![2])?;
/// let pair = data.pair(2, 0)?; // class 2 against class 0, in the order of the examples
/// assert_eq!(pair.targets, Targets::Binary(vec![-1.0, 1.0]));
/// assert_eq!(pair.dense()?.row(1), [0.0, 2.0]);
/// # Ok::<(), limitpoint::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Where the examples come from, in a few words.
    pub name: String,
    /// One example per row, dense or sparse.
    pub inputs: Inputs,
    /// One target per row.
    pub targets: Targets,
    /// Shape of an example: `[d]`, `[rows, columns]` or `[channels, rows, columns]`.
    pub input_shape: Vec<usize>,
    /// What a reader had to decide by itself, in sentences for whoever gave the file.
    pub notes: Vec<String>,
}

impl Dataset {
    /// Checks that there are examples, that inputs are finite, that labels fit their kind and that all sizes agree.
    /// `inputs` is a [`crate::linalg::Matrix`] or a [`crate::linalg::SparseMatrix`].
    pub fn new(
        name: impl Into<String>,
        inputs: impl Into<Inputs>,
        targets: Targets,
        input_shape: Vec<usize>,
    ) -> Result<Self, DataError> {
        let (name, inputs) = (name.into(), inputs.into());
        let (rows, columns) = (inputs.rows(), inputs.cols());
        let complete = inputs.is_sparse() || rows.checked_mul(columns) == Some(inputs.stored());
        if rows == 0 || columns == 0 || !complete {
            return Err(DataError::Empty { name, rows, columns });
        }
        if targets.len() != rows {
            return Err(DataError::Lengths { name, inputs: rows, targets: targets.len() });
        }
        let size = input_shape.iter().try_fold(1_usize, |product, &side| product.checked_mul(side));
        if size != Some(columns) {
            return Err(DataError::InputShape { name, shape: input_shape, dimension: columns });
        }
        if let Some((row, column, value)) = inputs.first_not_finite() {
            return Err(DataError::NotFinite { name, row, column, value });
        }
        let wrong = match &targets {
            Targets::Binary(values) => values.iter().position(|y| y.abs() != 1.0).map(|row| {
                (
                    row,
                    values[row],
                    "binary labels are −1 or +1; map the two labels or read them with task = \"binary\"".to_owned(),
                )
            }),
            Targets::Classes { labels, count } => labels.iter().position(|label| label >= count).map(|row| {
                (
                    row,
                    labels[row] as f64,
                    format!("with {count} classes the labels are 0 to {count} − 1; raise the count or renumber"),
                )
            }),
            Targets::Values(values) => values
                .iter()
                .position(|y| !y.is_finite())
                .map(|row| (row, values[row], "remove the row or fill in a finite number".to_owned())),
        };
        match wrong {
            Some((row, value, remedy)) => Err(DataError::Target { name, row, value, remedy }),
            None => Ok(Self { name, inputs, targets, input_shape, notes: Vec::new() }),
        }
    }

    /// Number of examples N.
    pub fn len(&self) -> usize {
        self.inputs.rows()
    }

    /// Never true for a checked dataset; here because `len` is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of inputs d of one example.
    pub fn dimension(&self) -> usize {
        self.inputs.cols()
    }

    /// The labels ±1 of a binary task.
    pub fn signs(&self) -> Result<&[f64], DataError> {
        match &self.targets {
            Targets::Binary(values) => Ok(values),
            other => Err(self.kind_error("reading signs", "binary", other)),
        }
    }

    /// The examples at `indices`, in that order; repeats are allowed, an empty list is not.
    pub fn select(&self, indices: &[usize]) -> Result<Self, DataError> {
        if let Some(&index) = indices.iter().find(|&&i| i >= self.len()) {
            return Err(DataError::Index { name: self.name.clone(), index, len: self.len() });
        }
        if indices.is_empty() {
            return Err(DataError::Empty { name: self.name.clone(), rows: 0, columns: self.dimension() });
        }
        Ok(Self {
            name: self.name.clone(),
            inputs: self.inputs.select(indices),
            targets: self.targets.select(indices),
            input_shape: self.input_shape.clone(),
            notes: self.notes.clone(),
        })
    }

    /// The first `count` examples.
    pub fn first(&self, count: usize) -> Result<Self, DataError> {
        self.enough(count, "are there", self.len())?;
        self.select(&(0..count).collect::<Vec<_>>())
    }

    /// `train_count` random examples and all the others, both in random order.
    pub fn split(&self, train_count: usize, stream: &mut RandomStream) -> Result<(Self, Self), DataError> {
        self.enough(train_count, "can be set apart, since one must remain for testing", self.len().saturating_sub(1))?;
        let mut order: Vec<usize> = (0..self.len()).collect();
        stream.shuffle(&mut order);
        Ok((self.select(&order[..train_count])?, self.select(&order[train_count..])?))
    }

    /// The binary task class `positive` (+1) against class `negative` (−1), in the order of the examples.
    pub fn pair(&self, positive: usize, negative: usize) -> Result<Self, DataError> {
        let Targets::Classes { labels, .. } = &self.targets else {
            return Err(self.kind_error("a pair of classes", "class", &self.targets));
        };
        if positive == negative {
            return Err(DataError::setting("pair", format!("[{positive}, {negative}]"), "two different classes"));
        }
        for class in [positive, negative] {
            if !labels.contains(&class) {
                return Err(DataError::TooFew {
                    name: self.name.clone(),
                    what: format!("are of class {class}"),
                    asked: 1,
                    available: 0,
                });
            }
        }
        let indices: Vec<usize> = (0..self.len()).filter(|&i| labels[i] == positive || labels[i] == negative).collect();
        let signs = indices.iter().map(|&i| if labels[i] == positive { 1.0 } else { -1.0 }).collect();
        let mut chosen = self.select(&indices)?;
        chosen.targets = Targets::Binary(signs);
        chosen.name = format!("{}, {positive} against {negative}", self.name);
        Ok(chosen)
    }

    /// `count` examples drawn without replacement, every subset and order equally likely.
    pub fn sample(&self, count: usize, stream: &mut RandomStream) -> Result<Self, DataError> {
        self.select(&self.sample_indices(count, false, stream)?)
    }

    /// `count` examples drawn without replacement, the labels as equally often as `count` allows, in random order.
    pub fn sample_balanced(&self, count: usize, stream: &mut RandomStream) -> Result<Self, DataError> {
        self.select(&self.sample_indices(count, true, stream)?)
    }

    /// The indices behind [`Dataset::sample`] and [`Dataset::sample_balanced`].
    fn sample_indices(&self, count: usize, balanced: bool, stream: &mut RandomStream) -> Result<Vec<usize>, DataError> {
        self.enough(count, "are there", self.len())?;
        if balanced {
            draw_balanced(&self.name, self.targets.groups(), count, stream)
        } else {
            Ok(draw((0..self.len()).collect(), count, stream))
        }
    }

    fn enough(&self, asked: usize, what: &str, available: usize) -> Result<(), DataError> {
        if asked == 0 {
            return Err(DataError::setting("count", 0, "at least 1"));
        }
        if asked > available {
            return Err(DataError::TooFew { name: self.name.clone(), what: what.to_owned(), asked, available });
        }
        Ok(())
    }

    fn kind_error(&self, operation: &'static str, needed: &'static str, found: &Targets) -> DataError {
        DataError::TargetKind { name: self.name.clone(), operation, needed, found: found.kind() }
    }
}

/// `count` of the pool, without replacement.
pub(super) fn draw(mut pool: Vec<usize>, count: usize, stream: &mut RandomStream) -> Vec<usize> {
    stream.shuffle(&mut pool);
    pool.truncate(count);
    pool
}

/// `count` indices, ⌊count/groups⌋ or one more of each group (the earlier groups get the extra one), shuffled.
pub(super) fn draw_balanced(
    name: &str,
    groups: Vec<Vec<usize>>,
    count: usize,
    stream: &mut RandomStream,
) -> Result<Vec<usize>, DataError> {
    let kinds = groups.len().max(1);
    let mut chosen = Vec::with_capacity(count);
    for (number, group) in groups.into_iter().enumerate() {
        let share = count / kinds + usize::from(number < count % kinds);
        if share > group.len() {
            let what = format!("carry label number {number} of {kinds}, too few for a balanced draw of {count}");
            return Err(DataError::TooFew { name: name.to_owned(), what, asked: share, available: group.len() });
        }
        chosen.extend(draw(group, share, stream));
    }
    stream.shuffle(&mut chosen);
    Ok(chosen)
}

#[cfg(test)]
#[path = "dataset_tests.rs"]
mod tests;
