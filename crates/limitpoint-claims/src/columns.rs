//! What a series measures at every moment: named numbers.

use limitpoint::data::Dataset;
use limitpoint::diagnostics::Point;
use limitpoint::experiments::Task;
use limitpoint::objective::Objective;
use limitpoint::observers::Snapshot;
use limitpoint::params::ParamLayout;

use crate::ClaimError;

/// One moment as columns see it.
pub struct Seen<'a> {
    /// Step, time and point.
    pub snapshot: &'a Snapshot<'a>,
    /// The point: parameters, margins, gradient, loss.
    pub point: &'a Point<'a>,
    /// The parameters one step before; empty unless a column asked for them by [`Columns::with_before`], and at step 0.
    pub before: &'a [f64],
}

/// What columns are made for.
pub struct Bound<'a> {
    /// The run.
    pub task: &'a Task,
    /// Its training data.
    pub data: &'a Dataset,
    /// Its test data.
    pub test: Option<&'a Dataset>,
    /// Model, data and loss, with the layout and the homogeneity of the model.
    pub objective: &'a Objective,
    /// Names and shapes of the parameters.
    pub layout: &'a ParamLayout,
    /// Where the run starts.
    pub start: &'a [f64],
}

/// What measures one moment: as many numbers as there are names.
pub type Measure = Box<dyn FnMut(&Seen, &mut Vec<f64>)>;

type Make = dyn Fn(&Bound) -> Result<Measure, ClaimError> + Send + Sync;

/// Some named numbers that are measured together; `measures.rs` has the ready-made ones.
///
/// ```
/// use limitpoint_claims::{Columns, Lab, Moments, Scale};
/// let lab = Lab::new(Scale::Quick);
/// let task = &lab.tasks("b-example-2", &["optimiser=mirror(potential=entropy)"])?[0];
/// let first = Columns::one("first weight", |seen| seen.point.params[0]);
/// let series = lab.series(task, Moments::every(10), vec![first])?;
/// assert!((series.last("first weight") - 0.5).abs() < 1e-8);
/// # Ok::<(), limitpoint_claims::ClaimError>(())
/// ```
pub struct Columns {
    pub(crate) names: Vec<String>,
    pub(crate) make: Box<Make>,
    pub(crate) every: u64,
    pub(crate) before: bool,
}

impl Columns {
    /// One number, a function of the moment alone.
    pub fn one(name: impl Into<String>, of: impl Fn(&Seen) -> f64 + Clone + Send + Sync + 'static) -> Self {
        Self::new([name], move |_| {
            let of = of.clone();
            Ok(Box::new(move |seen, out| out.push(of(seen))))
        })
    }

    /// Several numbers that are measured together, by something that is made for the run first: a norm for its
    /// layout, a test set, the memory of the moment before.
    pub fn new<N: Into<String>>(
        names: impl IntoIterator<Item = N>,
        make: impl Fn(&Bound) -> Result<Measure, ClaimError> + Send + Sync + 'static,
    ) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self { names, make: Box::new(make), every: 1, before: false }
    }

    /// Only at every k-th step, for what costs more than a step. These columns are shorter than the others.
    #[must_use]
    pub fn rarely(self, k: u64) -> Self {
        Self { every: k, ..self }
    }

    /// With the parameters one step before, as [`Seen::before`].
    #[must_use]
    pub fn with_before(self) -> Self {
        Self { before: true, ..self }
    }

    /// Under other names, such as those of another norm.
    #[must_use]
    pub fn named<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), ..self }
    }
}
