//! How a series is recorded: the run, and the columns while they are filled.

use std::sync::Arc;

use limitpoint::data::{DataSplit, Dataset};
use limitpoint::driver::{Advance, DriverError, Process};
use limitpoint::experiments::Task;
use limitpoint::observers::{Continue, Observer, Snapshot, StopReason, StopRule, Stopper};
use rayon::prelude::*;

use crate::columns::{Bound, Columns, Measure, Seen};
use crate::series::Column;
use crate::{ClaimError, Lab, Moments, Series};

impl Lab {
    /// Runs a task and measures these columns at these moments.
    pub fn series(&self, task: &Task, moments: Moments, columns: Vec<Columns>) -> Result<Series, ClaimError> {
        self.series_on(task, &task.data()?, moments, columns)
    }

    /// The same on data that are already in memory.
    pub fn series_on(
        &self,
        task: &Task,
        split: &DataSplit,
        moments: Moments,
        columns: Vec<Columns>,
    ) -> Result<Series, ClaimError> {
        let data: Arc<Dataset> = Arc::new(split.train.clone());
        let training = self.unnoted_training(task, data.clone())?;
        let objective = training.objective()?;
        let layout = objective.layout().clone();
        let start = training.setup().initial(&layout);
        let test = split.test.as_ref();
        let bound = Bound { task, data: &data, test, objective: &objective, layout: &layout, start: &start };
        let mut table = Table::new(columns, &bound, moments.clone())?;
        let degree = objective.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
        let threshold = objective.loss().tail().map_or(f64::NEG_INFINITY, |tail| tail.log_threshold());
        training.setup().check_stop()?;
        let mut running = training.start()?;
        let run = if moments.separated || table.wants_before {
            table.limit = if moments.separated { threshold.min(moments.below) } else { moments.below };
            let reason = table.step_by_step(running.process(), &training.setup().stop)?;
            running.end_because(reason)
        } else {
            table.limit = moments.below;
            loop {
                table.keep(running.log_loss(), running.params());
                if running.turn(&mut table)?.is_some() {
                    break running.end();
                }
            }
        };
        let what = format!("{}, seed {}", task.label.optimiser, task.label.seed);
        let (margins, parameters, points) = (table.margins, layout.len(), std::mem::take(&mut table.points));
        Ok(Series { what, degree, margins, parameters, columns: table.columns(), points, end: self.ended(task, run) })
    }

    /// Series of several named tasks, side by side.
    pub fn all_series(
        &self,
        tasks: Vec<(String, Task)>,
        moments: Moments,
        columns: impl Fn(&Task) -> Vec<Columns> + Sync,
    ) -> Result<Vec<Series>, ClaimError> {
        let one = |(what, task): (String, Task)| Ok(self.series(&task, moments.clone(), columns(&task))?.called(what));
        tasks.into_par_iter().map(one).collect()
    }
}

/// Columns while they are filled.
struct Table {
    groups: Vec<Group>,
    moments: Moments,
    /// Only below this ln L.
    limit: f64,
    /// Moments so far, and the last step among them.
    count: usize,
    last: Option<u64>,
    margins: usize,
    wants_before: bool,
    before: Vec<f64>,
    points: Vec<(f64, Vec<f64>)>,
}

struct Group {
    names: Vec<String>,
    measure: Measure,
    every: u64,
    rows: Vec<f64>,
    moments: Vec<usize>,
}

impl Table {
    fn new(columns: Vec<Columns>, bound: &Bound, moments: Moments) -> Result<Self, ClaimError> {
        let wants_before = columns.iter().any(|columns| columns.before);
        let make = |columns: Columns| -> Result<Group, ClaimError> {
            let measure = (columns.make)(bound)?;
            let (rows, moments) = (Vec::new(), Vec::new());
            Ok(Group { names: columns.names, measure, every: columns.every, rows, moments })
        };
        let groups = columns.into_iter().map(make).collect::<Result<_, _>>()?;
        let (limit, before, points) = (f64::INFINITY, Vec::new(), Vec::new());
        Ok(Self { groups, moments, limit, count: 0, last: None, margins: 0, wants_before, before, points })
    }

    /// Keeps the weights if the next level is reached.
    fn keep(&mut self, log_loss: f64, params: &[f64]) {
        let next = self.moments.levels.get(self.points.len());
        if let Some(level) = next.filter(|level| -log_loss >= **level) {
            self.points.push((*level, params.to_vec()));
        }
    }

    /// Steps by hand: snapshots cost more than steps, and none is taken of what is not kept.
    fn step_by_step(&mut self, process: &mut dyn Process, rules: &[StopRule]) -> Result<StopReason, ClaimError> {
        let (mut stopper, mut begun, moments) = (Stopper::new(rules), false, self.moments.clone());
        loop {
            self.keep(process.log_loss(), process.params());
            let (steps, step, log_loss) = (process.settled_steps(), process.step(), process.log_loss());
            if !steps.is_empty() {
                let mut reason = stopper.check_counters(step, process.log_time(), log_loss).map(StopReason::Rule);
                let kept = log_loss < self.limit && (begun || !moments.separated);
                let wanted = kept && (reason.is_some() || steps.clone().any(|step| moments.include(step)));
                if wanted || stopper.wants(step) {
                    process.show(&mut |snapshot| {
                        reason = reason.take().or_else(|| stopper.check(snapshot, steps.clone()));
                        if wanted || (kept && reason.is_some()) {
                            self.take(snapshot);
                        }
                    });
                }
                if let Some(reason) = reason {
                    return Ok(reason);
                }
            }
            begun = true;
            if self.wants_before {
                self.before.clear();
                self.before.extend_from_slice(process.params());
            }
            match process.advance() {
                Ok(Advance::Moved) => {}
                Ok(Advance::Ended(reason)) => {
                    if process.log_loss() < self.limit {
                        process.show(&mut |snapshot| self.take(snapshot));
                    }
                    return Ok(reason);
                }
                Err(DriverError::Flow(_)) if moments.may_stall && process.log_loss() >= self.limit => {
                    return Ok(StopReason::Observer);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn take(&mut self, snapshot: &Snapshot) {
        if self.last == Some(snapshot.step) {
            return;
        }
        self.last = Some(snapshot.step);
        self.margins = snapshot.point.margins.len();
        let seen = Seen { snapshot, point: &snapshot.point, before: &self.before };
        for group in self.groups.iter_mut().filter(|group| snapshot.step.is_multiple_of(group.every)) {
            let length = group.rows.len() + group.names.len();
            (group.measure)(&seen, &mut group.rows);
            // a measure that forgets a number must not shift the others
            group.rows.resize(length, f64::NAN);
            group.moments.push(self.count);
        }
        self.count += 1;
    }

    fn columns(self) -> Vec<Column> {
        let mut columns = Vec::new();
        for group in self.groups {
            let width = group.names.len();
            let moments = (group.every > 1).then_some(group.moments);
            for (place, name) in group.names.into_iter().enumerate() {
                let values = group.rows.iter().skip(place).step_by(width).copied().collect();
                columns.push(Column { name, values, moments: moments.clone() });
            }
        }
        columns
    }
}

impl Observer for Table {
    fn wants(&self, step: u64) -> bool {
        self.moments.include(step)
    }

    fn observe(&mut self, snapshot: &Snapshot) -> Continue {
        if snapshot.point.log_loss < self.limit {
            self.take(snapshot);
        }
        Continue::Yes
    }
}
