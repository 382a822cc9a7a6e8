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
    fn select(&self, indices: &[usize]) -> Self {
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
mod tests {
    use super::*;
    use crate::linalg::{Matrix, SparseMatrix};
    use crate::numeric::Streams;

    fn ten() -> Dataset {
        let inputs = Matrix { rows: 10, cols: 2, data: (0..20).map(f64::from).collect() };
        let labels = vec![0, 1, 2, 0, 1, 0, 0, 0, 0, 2];
        Dataset::new("ten", inputs, Targets::Classes { labels, count: 3 }, vec![2]).unwrap()
    }

    #[test]
    fn every_defect_is_named_with_its_place() {
        let two = || Matrix::from_rows(&[&[1.0, 2.0], &[3.0, 4.0]]);
        let signs = || Targets::Binary(vec![1.0, -1.0]);
        assert!(matches!(
            Dataset::new("d", Matrix::zeros(0, 2), Targets::Values(vec![]), vec![2]),
            Err(DataError::Empty { .. })
        ));
        let mut nan = two();
        nan[(1, 0)] = f64::NAN;
        assert!(matches!(
            Dataset::new("d", nan, signs(), vec![2]),
            Err(DataError::NotFinite { row: 1, column: 0, value, .. }) if value.is_nan()
        ));
        assert!(matches!(
            Dataset::new("d", two(), Targets::Binary(vec![1.0, 0.0]), vec![2]),
            Err(DataError::Target { row: 1, value: 0.0, .. })
        ));
        assert!(matches!(
            Dataset::new("d", two(), Targets::Classes { labels: vec![0, 3], count: 3 }, vec![2]),
            Err(DataError::Target { row: 1, value: 3.0, .. })
        ));
        assert!(matches!(
            Dataset::new("d", two(), Targets::Values(vec![f64::INFINITY, 0.0]), vec![2]),
            Err(DataError::Target { row: 0, .. })
        ));
        assert!(matches!(
            Dataset::new("d", two(), Targets::Binary(vec![1.0]), vec![2]),
            Err(DataError::Lengths { inputs: 2, targets: 1, .. })
        ));
        for shape in [vec![3], vec![], vec![usize::MAX, 2], vec![1, 1]] {
            assert!(matches!(Dataset::new("d", two(), signs(), shape), Err(DataError::InputShape { .. })));
        }
        assert!(Dataset::new("d", two(), signs(), vec![1, 2]).is_ok());
    }

    #[test]
    fn a_split_is_a_partition() {
        let data = ten();
        let (train, test) = data.split(7, &mut Streams::new(1).stream("split")).unwrap();
        assert_eq!((train.len(), test.len()), (7, 3));
        let mut seen: Vec<f64> = (0..7)
            .map(|i| train.dense().unwrap()[(i, 0)])
            .chain((0..3).map(|i| test.dense().unwrap()[(i, 0)]))
            .collect();
        seen.sort_by(f64::total_cmp);
        assert_eq!(seen, (0..10).map(|i| f64::from(2 * i)).collect::<Vec<_>>());
        assert!(data.split(10, &mut Streams::new(1).stream("split")).is_err());
        assert!(data.split(0, &mut Streams::new(1).stream("split")).is_err());
    }

    #[test]
    fn samples_are_distinct_reproducible_and_balanced_when_asked() {
        let data = ten();
        let sample = data.sample(6, &mut Streams::new(5).stream("data")).unwrap();
        assert_eq!(sample, data.sample(6, &mut Streams::new(5).stream("data")).unwrap());
        let mut firsts: Vec<f64> = (0..6).map(|i| sample.dense().unwrap()[(i, 0)]).collect();
        firsts.sort_by(f64::total_cmp);
        firsts.dedup();
        assert_eq!(firsts.len(), 6);
        let balanced = data.sample_balanced(6, &mut Streams::new(5).stream("data")).unwrap();
        let Targets::Classes { labels, .. } = &balanced.targets else { panic!("classes stay classes") };
        assert!((0..3).all(|class| labels.iter().filter(|&&label| label == class).count() == 2));
        assert!(matches!(
            data.sample_balanced(9, &mut Streams::new(5).stream("data")),
            Err(DataError::TooFew { asked: 3, available: 2, .. })
        ));
        assert!(matches!(data.sample(11, &mut Streams::new(5).stream("data")), Err(DataError::TooFew { .. })));
    }

    #[test]
    fn a_pair_needs_two_classes_that_occur() {
        let data = ten();
        let pair = data.pair(2, 1).unwrap();
        assert_eq!(pair.signs().unwrap(), [-1.0, 1.0, -1.0, 1.0]);
        assert!(data.pair(1, 1).is_err());
        assert!(data.pair(1, 7).is_err());
        assert!(matches!(pair.pair(0, 1), Err(DataError::TargetKind { .. })));
        assert!(matches!(data.signs(), Err(DataError::TargetKind { .. })));
        assert!(matches!(data.select(&[10]), Err(DataError::Index { index: 10, len: 10, .. })));
        assert!(matches!(data.select(&[]), Err(DataError::Empty { .. })));
        assert_eq!(data.first(2).unwrap().len(), 2);
    }

    #[test]
    fn sparse_inputs_are_checked_and_chosen_like_dense_ones() {
        let dense = ten();
        let sparse = {
            let inputs = SparseMatrix::from_dense(&dense.dense().unwrap()).unwrap();
            Dataset::new("ten", inputs, dense.targets.clone(), vec![2]).unwrap()
        };
        assert_eq!((sparse.len(), sparse.dimension(), sparse.inputs.stored()), (10, 2, 19));
        let stream = || Streams::new(3).stream("data");
        let pairs = [
            (sparse.pair(2, 1), dense.pair(2, 1)),
            (sparse.sample(4, &mut stream()), dense.sample(4, &mut stream())),
            (sparse.sample_balanced(6, &mut stream()), dense.sample_balanced(6, &mut stream())),
            (sparse.first(3), dense.first(3)),
            (sparse.select(&[9, 9, 0]), dense.select(&[9, 9, 0])),
            (sparse.split(7, &mut stream()).map(|(_, test)| test), dense.split(7, &mut stream()).map(|(_, test)| test)),
        ];
        for (sparse, dense) in pairs {
            let (sparse, dense) = (sparse.unwrap(), dense.unwrap());
            assert!(sparse.inputs.is_sparse() && !dense.inputs.is_sparse());
            assert_eq!((sparse.dense().unwrap(), &sparse.targets), (dense.dense().unwrap(), &dense.targets));
        }
        let entries = [(0, 1, 1.0), (1, 0, 2.0), (1, 4, f64::INFINITY)];
        let infinite = SparseMatrix::from_triplets(2, 5, &entries).unwrap();
        let signs = || Targets::Binary(vec![1.0, -1.0]);
        assert!(matches!(
            Dataset::new("d", infinite, signs(), vec![5]),
            Err(DataError::NotFinite { row: 1, column: 4, .. })
        ));
        let empty = || SparseMatrix::from_triplets(2, 5, &[]).unwrap();
        assert!(Dataset::new("d", empty(), signs(), vec![5]).is_ok(), "zeros are examples too");
        assert!(matches!(Dataset::new("d", empty(), signs(), vec![4]), Err(DataError::InputShape { .. })));
        assert!(matches!(
            Dataset::new("d", empty(), Targets::Binary(vec![1.0]), vec![5]),
            Err(DataError::Lengths { inputs: 2, targets: 1, .. })
        ));
    }

    #[test]
    fn a_dense_copy_that_is_too_large_is_refused_by_name_shape_and_remedy() {
        let inputs = SparseMatrix::from_triplets(60, 1_000_000, &[(0, 1, 1.0)]).unwrap();
        let wide = Dataset::new("wide", inputs, Targets::Values(vec![0.0; 60]), vec![1_000_000]).unwrap();
        let error = wide.dense().unwrap_err().to_string();
        assert!(["wide", "60 x 1000000", "use fewer"].iter().all(|part| error.contains(part)), "{error}");
    }
}
