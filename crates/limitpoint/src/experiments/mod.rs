//! Whole training problems, put together from specifications.
//!
//! A [`Recipe`] says all about an experiment. [`plan()`] makes one, or one for every point of a sweep, from a
//! [`RecipeSource`] (a TOML file or one of the [`builtins()`]) and overrides; [`schema()`] describes such files.
//! [`ensemble()`] repeats an experiment over seeds. [`Workload`] holds the fixed problems whose speed is measured; the same definitions serve `limitpoint bench`, the
//! criterion benches and the comparison with other engines.

mod complaint;
mod ensemble;
mod node;
mod overrides;
mod plan;
mod ranges;
mod read;
mod recipe;
#[cfg(test)]
mod recipe_tests;
mod record;
mod schema;
mod shape;
mod shorthand;
mod source;
mod spot;
mod walk;
mod workload;

pub use complaint::{Hint, RecipeError, Spot};
pub use ensemble::ensemble;
pub use plan::{Plan, PlanPoint, plan};
pub use recipe::{CertificateRule, Observe, Recipe, Stop};
pub use record::{
    Analysis, Band, DataRecord, DecisionMap, ExperimentRecord, FeatureImages, Finding, Group, HistogramRecord, Metrics,
    Portrait, ReferenceLine, RunRecord, Summary, SummaryCell, SummaryColumn, SummaryRow,
};
pub use schema::schema;
pub use source::{RecipeSource, builtins};
pub use workload::{Workload, WorkloadSpec};
