//! What a column of numbers means as targets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DataError, Targets};

/// The most classes a file may declare by its largest label.
const MAX_CLASSES: usize = 1 << 20;

/// How the targets of a file are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// By the values: only −1 and +1 is binary; every integer of 0..C is classes; anything else is regression. Only
    /// 0 and 1 could be either of the first two, so it is refused with the question.
    #[default]
    Auto,
    /// −1 and +1, or 0 and 1 (0 becomes −1).
    Binary,
    /// Integers 0..C, where C − 1 is the largest label.
    Classes,
    /// Any finite numbers.
    Regression,
}

impl Task {
    /// The targets that `values` stand for under this task; `name` is for the error message.
    ///
    /// ```
    /// use limitpoint::data::{Targets, Task};
    /// assert_eq!(Task::Auto.targets("t", vec![1.0, -1.0])?, Targets::Binary(vec![1.0, -1.0]));
    /// assert_eq!(Task::Binary.targets("t", vec![1.0, 0.0])?, Targets::Binary(vec![1.0, -1.0]));
    /// assert_eq!(Task::Auto.targets("t", vec![2.0, 0.0, 1.0])?, Targets::Classes { labels: vec![2, 0, 1], count: 3 });
    /// assert_eq!(Task::Auto.targets("t", vec![2.0, 0.5])?, Targets::Values(vec![2.0, 0.5]));
    /// # Ok::<(), limitpoint::data::DataError>(())
    /// ```
    pub fn targets(self, name: &str, values: Vec<f64>) -> Result<Targets, DataError> {
        let refuse = |row: usize, remedy: &str| {
            Err(DataError::Target { name: name.to_owned(), row, value: values[row], remedy: remedy.to_owned() })
        };
        if let Some(row) = values.iter().position(|value| !value.is_finite()) {
            return refuse(row, "remove the row or fill in a finite number");
        }
        let signs = values.iter().all(|&value| value == 1.0 || value == -1.0);
        let bits = values.iter().all(|&value| value == 0.0 || value == 1.0);
        match self {
            Self::Auto if signs => Ok(Targets::Binary(values)),
            Self::Auto if bits => Err(DataError::AmbiguousLabels { name: name.to_owned() }),
            Self::Auto if covers_a_range(&values) => Self::Classes.targets(name, values),
            Self::Auto | Self::Regression => Ok(Targets::Values(values)),
            Self::Binary if signs => Ok(Targets::Binary(values)),
            Self::Binary if bits => Ok(Targets::Binary(values.into_iter().map(|bit| 2.0 * bit - 1.0).collect())),
            Self::Binary => {
                let row = values.iter().position(|&value| value != 0.0 && value.abs() != 1.0);
                let row = row.or_else(|| values.iter().position(|&value| value == 0.0)).unwrap_or(0);
                refuse(row, "a binary task takes −1 and +1 only, or 0 and 1 only; choose two classes or another task")
            }
            Self::Classes => {
                let wrong = |&value: &f64| value < 0.0 || value.fract() != 0.0 || value >= MAX_CLASSES as f64;
                if let Some(row) = values.iter().position(wrong) {
                    let remedy = format!("classes are the integers from 0 to {}; renumber them", MAX_CLASSES - 1);
                    return refuse(row, &remedy);
                }
                let labels: Vec<usize> = values.iter().map(|&value| value as usize).collect();
                let count = labels.iter().max().map_or(0, |label| label + 1);
                Ok(Targets::Classes { labels, count })
            }
        }
    }

    /// The explicit task that repeats what these targets were read as, for a second file of the same kind.
    pub(crate) fn of(targets: &Targets) -> Self {
        match targets {
            Targets::Binary(_) => Self::Binary,
            Targets::Classes { .. } => Self::Classes,
            Targets::Values(_) => Self::Regression,
        }
    }
}

/// Whether the values are integers and each of 0..=max occurs.
fn covers_a_range(values: &[f64]) -> bool {
    let mut seen = vec![false; values.len()];
    for &value in values {
        if value < 0.0 || value.fract() != 0.0 || value >= values.len() as f64 {
            return false;
        }
        seen[value as usize] = true;
    }
    let used = seen.iter().rposition(|&seen| seen).map_or(0, |last| last + 1);
    used > 0 && seen[..used].iter().all(|&seen| seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_one_are_asked_about() {
        assert!(matches!(Task::Auto.targets("t", vec![0.0, 1.0]), Err(DataError::AmbiguousLabels { .. })));
        let classes = Task::Classes.targets("t", vec![0.0, 1.0]).unwrap();
        assert_eq!(classes, Targets::Classes { labels: vec![0, 1], count: 2 });
    }

    #[test]
    fn integers_with_gaps_are_values_unless_told_otherwise() {
        let years = vec![1990.0, 1992.0, 1990.0];
        assert_eq!(Task::Auto.targets("t", years.clone()).unwrap(), Targets::Values(years));
        let gap = Task::Classes.targets("t", vec![0.0, 3.0]).unwrap();
        assert_eq!(gap, Targets::Classes { labels: vec![0, 3], count: 4 });
    }

    #[test]
    fn the_refused_row_and_value_are_named() {
        for (task, values, row) in [
            (Task::Binary, vec![1.0, -1.0, 2.0], 2),
            (Task::Binary, vec![1.0, 0.0, -1.0], 1),
            (Task::Classes, vec![0.0, -1.0], 1),
            (Task::Classes, vec![0.0, 1.0, 0.5], 2),
            (Task::Classes, vec![1e30], 0),
            (Task::Auto, vec![1.0, f64::NAN], 1),
            (Task::Regression, vec![f64::INFINITY], 0),
        ] {
            match task.targets("t", values.clone()) {
                Err(DataError::Target { row: found, .. }) => assert_eq!(found, row, "{task:?} {values:?}"),
                other => panic!("{task:?} {values:?} gave {other:?}"),
            }
        }
    }
}
