//! Whether the runs of an experiment fit into memory, asked before a folder is made or a thread started.

use super::RunError;
use super::plan::PlanPoint;
use super::recipe::Recipe;
use super::task::Task;
use crate::data::Dataset;
use crate::memory::{bytes, require};
use crate::optimisers::OptimiserSpec;

/// Copies of the parameters that every run keeps: weights, gradient, look-ahead, direction of the stop rule, and a
/// checkpoint on its way to the disk.
const COPIES: usize = 6;
/// Bytes of one bin of one histogram: its count, and its digits on the way to the file.
const BIN: usize = 32;
/// Bytes of a task: its label and its own copy of the recipe.
const TASK: usize = 8 << 10;

/// Refuses an experiment of more runs than can be listed.
pub(super) fn require_tasks(points: &[PlanPoint]) -> Result<(), RunError> {
    let runs = |recipe: &Recipe| (recipe.optimisers.len() + recipe.flows.len()).saturating_mul(recipe.seeds.len());
    let runs = points.iter().map(|point| runs(&point.recipe)).fold(0, usize::saturating_add);
    require(format!("an experiment of {runs} runs"), bytes(&[runs], TASK), "sweep over fewer values or seeds")
        .map_err(too_large)
}

/// Refuses runs that do not fit into memory, `threads` of them at a time.
pub(super) fn require_memory<'a>(
    runs: impl ExactSizeIterator<Item = (&'a Task, &'a Dataset)>,
    threads: usize,
) -> Result<(), RunError> {
    let together = threads.min(runs.len());
    for (task, data) in runs {
        let recipe = &task.recipe;
        // what is wrong with a model is said when it is built
        let Ok(architecture) = recipe.model.architecture_on(data) else { continue };
        let footprint = architecture.footprint(data.len());
        let blocks = 2 * layers(recipe);
        let bins = recipe.observe.histogram_bins;
        let histograms = bytes(&[bins, blocks, together.max(1)], BIN);
        require(format!("observe.histogram_bins = {bins}"), histograms, "ask for fewer bins").map_err(too_large)?;
        let pictured = recipe.observe.activation_maps.min(data.len());
        let maps = architecture.kept().saturating_mul(bytes(&[pictured, together.max(1)], 16));
        require(format!("observe.activation_maps = {pictured}"), maps, "ask for fewer").map_err(too_large)?;
        let optimiser = recipe.optimisers.get(&task.label.optimiser);
        let copies = COPIES + optimiser.map_or(2, remembered);
        let square = |side: usize| bytes(&[side, side], 8);
        let sides = footprint.matrices.iter().map(|(rows, cols)| square(*rows).saturating_add(square(*cols)));
        let squares = sides.fold(0_u128, u128::saturating_add).saturating_mul(optimiser.map_or(0, squared));
        footprint.require_run(copies, squares, together).map_err(too_large)?;
    }
    Ok(())
}

/// Layers of the model, about.
fn layers(recipe: &Recipe) -> usize {
    match &recipe.model {
        crate::models::ModelSpec::Network { widths, .. } => widths.len() + 1,
        crate::models::ModelSpec::Image { layers, .. } => layers.count(),
        crate::models::ModelSpec::Diagonal { factors } | crate::models::ModelSpec::Matrix { factors, .. } => *factors,
        _ => 1,
    }
}

/// Vectors of the parameters' length that an optimiser keeps.
fn remembered(spec: &OptimiserSpec) -> usize {
    match spec {
        OptimiserSpec::Adam { .. } | OptimiserSpec::AdamW { .. } | OptimiserSpec::Mirror { .. } => 3,
        OptimiserSpec::Switch { first, second, .. } => remembered(first) + remembered(second),
        OptimiserSpec::Adjusted { of, .. } => remembered(of),
        // slices of parameters, gradient and look-ahead, and at most what the part that keeps most does
        OptimiserSpec::Blocks(parts) => 3 + parts.values().map(remembered).max().unwrap_or(0),
        _ => 2,
    }
}

/// Square matrices, of both sides of every block, that an optimiser keeps.
fn squared(spec: &OptimiserSpec) -> u128 {
    match spec {
        OptimiserSpec::Shampoo { .. } => 3,
        OptimiserSpec::Switch { first, second, .. } => squared(first) + squared(second),
        OptimiserSpec::Adjusted { of, .. } => squared(of),
        OptimiserSpec::Blocks(parts) => parts.values().map(squared).max().unwrap_or(0),
        _ => 0,
    }
}

fn too_large(error: crate::memory::TooLarge) -> RunError {
    crate::models::ModelError::from(error).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::{RecipeSource, plan};

    fn points(overrides: &[&str]) -> Vec<PlanPoint> {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        plan(&RecipeSource::find("linear").unwrap(), &overrides).unwrap().points
    }

    #[test]
    fn bins_beyond_memory_are_refused_and_others_are_not() {
        let check = |bins: usize| {
            let points = points(&["seed=1", &format!("observe.histogram_bins={bins}")]);
            let task = Task::all(&points[0].recipe, &[]).remove(0);
            let data = task.recipe.data.load(&crate::numeric::Streams::new(1)).unwrap().train;
            require_memory([(&task, &data)].into_iter(), 1)
        };
        assert!(check(40).is_ok() && check(0).is_ok());
        for bins in [1_000_000_000_000, usize::MAX] {
            let error = check(bins).unwrap_err().to_string();
            assert!(error.contains("needs") && error.contains("available"), "{error}");
        }
    }

    #[test]
    fn too_many_runs_are_refused_before_they_are_listed() {
        assert!(require_tasks(&points(&["seed=1..100"])).is_ok());
        let mut many = points(&["seed=1"]);
        many[0].recipe.seeds = vec![0; 100_000];
        let many = vec![many.remove(0); 1000];
        let error = require_tasks(&many).unwrap_err().to_string();
        assert!(error.starts_with("an experiment of") && error.contains("fewer values or seeds"), "{error}");
    }
}
