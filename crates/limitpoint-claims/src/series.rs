//! Named columns of measurements along a run: `lab.series(task, moments, columns)`.
//!
//! A claim states what it measures once; checks and figures read the same columns. What is not measured is NaN, so that
//! no check on it holds.

use crate::Finished;
use crate::arithmetic::{larger, smaller};

/// Columns of measurements along one run, and its end.
#[derive(Debug, Clone)]
pub struct Series {
    /// The run in words.
    pub what: String,
    /// The degree L of the model; NaN if it is not homogeneous.
    pub degree: f64,
    /// Number of margins.
    pub margins: usize,
    /// Number of parameters.
    pub parameters: usize,
    pub(crate) columns: Vec<Column>,
    /// Levels of ln 1/L and the weights where they were first reached, for [`Moments::points_at`](crate::Moments::points_at).
    pub points: Vec<(f64, Vec<f64>)>,
    /// The end.
    pub end: Finished,
}

/// One named column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub name: String,
    pub values: Vec<f64>,
    /// The moments at which it was measured; all if there are none.
    pub moments: Option<Vec<usize>>,
}

impl Series {
    /// The same under another name.
    #[must_use]
    pub fn called(self, what: impl Into<String>) -> Self {
        Self { what: what.into(), ..self }
    }

    /// Key of the optimiser or flow in the experiment.
    pub fn optimiser(&self) -> &str {
        &self.end.task.label.optimiser
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.end.task.label.seed
    }

    /// The moments.
    pub fn len(&self) -> usize {
        self.columns
            .iter()
            .filter(|column| column.moments.is_none())
            .map(|column| column.values.len())
            .max()
            .unwrap_or(0)
    }

    /// Whether there is no moment: the data were never separated, for example.
    pub fn is_empty(&self) -> bool {
        self.columns.iter().all(|column| column.values.is_empty())
    }

    fn find(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// A column; one NaN if it was not measured.
    pub fn column(&self, name: &str) -> &[f64] {
        self.find(name).map_or(&[f64::NAN], |column| &column.values)
    }

    /// Its first value; NaN if there is none.
    pub fn first(&self, name: &str) -> f64 {
        self.column(name).first().copied().unwrap_or(f64::NAN)
    }

    /// Its last value; NaN if there is none.
    pub fn last(&self, name: &str) -> f64 {
        self.column(name).last().copied().unwrap_or(f64::NAN)
    }

    /// The largest value; NaN if there is none or one is NaN.
    pub fn most(&self, name: &str) -> f64 {
        self.column(name).iter().copied().reduce(larger).unwrap_or(f64::NAN)
    }

    /// The smallest value; NaN if there is none or one is NaN.
    pub fn least(&self, name: &str) -> f64 {
        self.column(name).iter().copied().reduce(smaller).unwrap_or(f64::NAN)
    }

    /// A function of several columns, at the moments at which all of them were measured.
    pub fn map<const N: usize>(&self, names: [&str; N], of: impl Fn([f64; N]) -> f64) -> Vec<f64> {
        self.rows(names).into_iter().map(of).collect()
    }

    /// A function of several columns at two moments that follow each other: before, after.
    pub fn pairs<const N: usize>(&self, names: [&str; N], of: impl Fn([f64; N], [f64; N]) -> f64) -> Vec<f64> {
        self.rows(names).windows(2).map(|pair| of(pair[0], pair[1])).collect()
    }

    /// Several columns side by side, at the moments at which all of them were measured.
    pub fn rows<const N: usize>(&self, names: [&str; N]) -> Vec<[f64; N]> {
        let columns = names.map(|name| self.find(name));
        if columns.iter().any(Option::is_none) {
            return vec![[f64::NAN; N]];
        }
        let columns = columns.into_iter().flatten();
        let value = |column: &Column, moment: usize| match &column.moments {
            None => column.values.get(moment).copied(),
            Some(moments) => moments.binary_search(&moment).ok().map(|place| column.values[place]),
        };
        let row = |moment: usize| {
            let mut row = [f64::NAN; N];
            for (place, column) in row.iter_mut().zip(columns.clone()) {
                *place = value(column, moment)?;
            }
            Some(row)
        };
        (0..self.len()).filter_map(row).collect()
    }

    /// The same series with a column more: a function of others.
    #[must_use]
    pub fn with<const N: usize>(mut self, name: &str, from: [&str; N], of: impl Fn([f64; N]) -> f64) -> Self {
        let rare = from.iter().filter_map(|name| self.find(name)).find_map(|column| column.moments.clone());
        let values = self.map(from, of);
        self.columns.push(Column { name: name.to_owned(), values, moments: rare });
        self
    }

    /// A curve through every k-th moment, for a figure.
    pub fn curve(&self, x: &str, y: &str, k: usize) -> Vec<[f64; 2]> {
        self.rows([x, y]).into_iter().step_by(k.max(1)).collect()
    }

    /// The least value in the first and in the last third of the moments.
    pub fn thirds(&self, name: &str) -> [f64; 2] {
        let third = self.len() / 3;
        let least = |from: usize, to: usize| {
            let inside = self.between(name, from, to);
            inside.iter().copied().reduce(smaller).unwrap_or(f64::NAN)
        };
        [least(0, third), least(2 * third, self.len())]
    }

    /// The values of a column at the moments from one to another.
    fn between(&self, name: &str, from: usize, to: usize) -> &[f64] {
        let Some(column) = self.find(name) else { return &[f64::NAN] };
        let place = |moment: usize| match &column.moments {
            None => moment.min(column.values.len()),
            Some(moments) => moments.partition_point(|known| *known < moment),
        };
        &column.values[place(from)..place(to)]
    }

    /// The part after the last moment at which this is so: after the last mistake, for example.
    pub fn after_last(&self, name: &str, so: impl Fn(f64) -> bool) -> Self {
        let first = self.column(name).iter().rposition(|value| so(*value)).map_or(0, |last| last + 1);
        let part = |column: &Column| {
            let values = self.between(&column.name, first, self.len()).to_vec();
            let later = |moments: &Vec<usize>| moments.iter().filter(|m| **m >= first).map(|m| m - first).collect();
            Column { name: column.name.clone(), values, moments: column.moments.as_ref().map(later) }
        };
        Self { columns: self.columns.iter().map(part).collect(), ..self.clone() }
    }

    /// The moments at which this is so.
    pub fn when(&self, name: &str, so: impl Fn(f64) -> bool) -> Self {
        let kept: Vec<usize> =
            (0..self.len()).filter(|m| self.between(name, *m, m + 1).iter().any(|x| so(*x))).collect();
        let part = |column: &Column| {
            let at = |place: usize| column.moments.as_ref().map_or(place, |moments| moments[place]);
            let (mut values, mut moments) = (Vec::new(), Vec::new());
            for (place, value) in column.values.iter().enumerate() {
                if let Ok(moment) = kept.binary_search(&at(place)) {
                    values.push(*value);
                    moments.push(moment);
                }
            }
            Column { name: column.name.clone(), values, moments: column.moments.as_ref().map(|_| moments) }
        };
        Self { columns: self.columns.iter().map(part).collect(), ..self.clone() }
    }

    /// The value of one column where another first satisfies a condition; NaN if it never does.
    pub fn value_where(&self, name: &str, other: &str, so: impl Fn(f64) -> bool) -> f64 {
        self.rows([name, other]).into_iter().find(|[_, other]| so(*other)).map_or(f64::NAN, |[value, _]| value)
    }

    /// Whether the run got to its loss with enough moments on the way to prove something.
    pub fn complete(&self) -> bool {
        self.len() > 100 && self.end.reached_its_loss()
    }
}

#[cfg(test)]
mod tests {
    use limitpoint::experiments::Task;

    use super::*;
    use crate::{Columns, Lab, Moments, Scale, measures};

    fn task(lab: &Lab) -> Task {
        let overrides = ["optimiser=gradient", "stop.steps=25", "stop.log10_loss=-300", "seed=0"];
        lab.tasks("a-flows", &overrides).unwrap().remove(0)
    }

    fn steps(series: &Series) -> Vec<u64> {
        series.column("step").iter().map(|step| *step as u64).collect()
    }

    #[test]
    fn moments_are_those_that_were_asked_for_and_the_last() {
        let lab = Lab::new(Scale::Quick);
        let task = task(&lab);
        let of = |moments: Moments| steps(&lab.series(&task, moments, vec![measures::basics()]).unwrap());
        assert_eq!(of(Moments::every(10)), [0, 10, 20, 25]);
        assert_eq!(of(Moments::last()), [25]);
        assert_eq!(of(Moments::per_decade(1)), [0, 1, 10, 25]);
        assert!(of(Moments::every(1).below(f64::NEG_INFINITY)).is_empty());
        // the same steps by hand, where the one before is asked for
        let by_hand = |moments: Moments| {
            let columns = vec![measures::basics(), measures::steps(limitpoint::norms::NormSpec::L2)];
            lab.series(&task, moments, columns).unwrap()
        };
        let series = by_hand(Moments::every(10));
        assert_eq!(steps(&series), [0, 10, 20, 25]);
        assert!(series.column("length")[0].is_nan() && series.column("length")[1..].iter().all(|x| *x > 0.0));
    }

    #[test]
    fn rare_columns_are_shorter_and_meet_the_others_where_they_were_measured() {
        let lab = Lab::new(Scale::Quick);
        let rare = Columns::one("twice", |seen| 2.0 * seen.snapshot.step as f64).rarely(5);
        let series = lab.series(&task(&lab), Moments::every(1), vec![measures::basics(), rare]).unwrap();
        assert_eq!((series.len(), series.column("twice").len()), (26, 6));
        assert_eq!(series.rows(["step", "twice"]), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0].map(|x| [x, 2.0 * x]));
        let series = series.with("thrice", ["step", "twice"], |[one, two]| one + two);
        assert_eq!((series.last("thrice"), series.thirds("thrice")), (75.0, [0.0, 60.0]));
        let late = series.after_last("step", |step| step < 12.0);
        assert_eq!((late.len(), late.first("step"), late.column("twice")), (14, 12.0, &[30.0, 40.0, 50.0][..]));
        assert_eq!(series.value_where("twice", "step", |step| step > 7.0), 20.0);
        let odd = series.when("step", |step| step % 10.0 >= 5.0);
        assert_eq!((odd.len(), odd.first("step"), odd.column("twice")), (11, 5.0, &[10.0, 30.0, 50.0][..]));
        assert_eq!(odd.rows(["step", "twice"])[2], [25.0, 50.0]);
        assert!(series.last("nothing").is_nan() && series.rows(["step", "nothing"])[0][0].is_nan());
    }
}
