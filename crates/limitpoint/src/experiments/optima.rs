//! Exact optima beside an experiment: the lines its report compares margins with.

use std::borrow::Borrow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::RunError;
use super::files::{RecordError, read_text, write_atomically};
use super::locate::Loaded;
use super::record::ReferenceLine;
use super::seal::Seal;
use super::task::Task;
use crate::certificates::{DocumentError, MarginEvidence, Measure, linear_margin_problem};
use crate::data::{Dataset, Targets};
use crate::intervals::Interval;
use crate::models::{MarginMap, ModelSpec};
use crate::norms::NormSpec;
use crate::reference::{MarginStatus, max_margin};

/// Entries of problems that are solved at the end of an experiment, which takes a moment.
pub(super) const AT_ONCE: usize = 200_000;
/// Norms that need the conic solver are solved up to this share of the entries of others.
const CONIC_SHARE: usize = 20;
/// Most data sets of an experiment that are solved.
const MOST_SETS: usize = 20;

/// The `judge.json` of an experiment; its last entry is the SHA-256 of all before it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OptimaRecord {
    /// Version of limitpoint that solved the problems.
    pub version: String,
    /// One optimum for every data set and observed norm.
    pub optima: Vec<Optimum>,
    /// What the report draws.
    pub lines: Vec<ReferenceLine>,
}

/// The largest margin of a linear model on one data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Optimum {
    /// The column of measurements it bounds, such as `margin.l2`.
    pub column: String,
    /// The norm.
    pub norm: NormSpec,
    /// SHA-256 of the data.
    pub data: String,
    /// The proven bracket.
    pub margin: Interval,
    /// Whether only one direction attains it.
    pub unique: bool,
}

impl OptimaRecord {
    /// Name of the file.
    pub(super) const FILE: &'static str = "judge.json";

    /// Reads the file of an experiment's folder, if there is one.
    pub fn load(folder: &Path) -> Result<Option<Self>, RecordError> {
        let path = folder.join(Self::FILE);
        if !path.exists() {
            return Ok(None);
        }
        let text = read_text(&path)?;
        let damaged = |what: String| RecordError::damaged(&path, format!("is damaged: {what}; remove it and resume"));
        let record = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if Seal::JSON.open(&text).is_none() {
            return Err(damaged("its SHA-256 does not fit".into()));
        }
        Ok(Some(record))
    }
}

/// Solves the margin problems of all data sets in all observed norms and writes the file.
///
/// `runs` are tasks and the SHA-256 of their data; `load` brings the data themselves, of one task a set.
pub(super) fn find_optima<L: Borrow<Loaded>>(
    folder: &Path,
    runs: &[(&Task, &str)],
    load: impl Fn(&Task) -> Result<L, RunError>,
    entries: usize,
) -> Result<OptimaRecord, RunError> {
    let mut record = OptimaRecord { version: env!("CARGO_PKG_VERSION").to_owned(), ..OptimaRecord::default() };
    let mut sets: Vec<(&Task, &str)> = Vec::new();
    for (task, sum) in runs.iter().filter(|(task, _)| task.recipe.model.is_linear()) {
        if sets.len() <= MOST_SETS && sets.iter().all(|(_, known)| known != sum) {
            sets.push((task, sum));
        }
    }
    if sets.len() > MOST_SETS {
        sets.clear();
    }
    let known = OptimaRecord::load(folder)?.filter(|known| known.version == record.version).unwrap_or_default().optima;
    for (task, sum) in &sets {
        let mut data = None;
        for norm in &task.recipe.observe.norms {
            if let Some(optimum) = known.iter().find(|known| known.data == *sum && known.norm == *norm) {
                record.optima.push(optimum.clone());
                continue;
            }
            if data.is_none() {
                data = Some(load(task)?);
            }
            let Some((split, _)) = data.as_ref().map(Borrow::borrow) else { continue };
            if let Some((margin, unique)) = optimum(&split.train, &task.recipe.model, norm, entries)? {
                let column = format!("margin.{}", norm.key());
                record.optima.push(Optimum { column, norm: norm.clone(), data: (*sum).to_owned(), margin, unique });
            }
        }
    }
    // lines make sense where all runs solve one problem, up to the seed of its data
    let one_problem = sets.iter().all(|(task, _)| {
        let first = &sets[0].0.recipe;
        task.recipe.data == first.data
            && task.recipe.model == first.model
            && task.recipe.observe.norms == first.observe.norms
    });
    if one_problem && !sets.is_empty() && runs.iter().all(|(task, _)| task.recipe.model.is_linear()) {
        record.lines = lines(&record.optima, sets.len());
    }
    let path = folder.join(OptimaRecord::FILE);
    let text = serde_json::to_string_pretty(&record)
        .map_err(|error| RecordError::refused(&path, format!("cannot be written: {error}")))?;
    write_atomically(&path, Seal::JSON.close(&text).as_bytes())?;
    Ok(record)
}

/// One line a column: the optimum, or its mean over data sets, as the curves are means over seeds.
fn lines(optima: &[Optimum], sets: usize) -> Vec<ReferenceLine> {
    let mut lines: Vec<ReferenceLine> = Vec::new();
    for optimum in optima.iter().filter(|optimum| optimum.data == optima[0].data) {
        let same: Vec<f64> = optima.iter().filter(|o| o.column == optimum.column).map(|o| o.margin.lo).collect();
        if same.len() == sets {
            let value = same.iter().sum::<f64>() / sets as f64;
            let number = if value >= 1e-3 { format!("{value:.4}") } else { format!("{value:.3e}") };
            let label = match sets {
                1 => format!("exact optimum {number}"),
                _ => format!("mean of {sets} exact optima {number}"),
            };
            lines.push(ReferenceLine { column: optimum.column.clone(), value, label });
        }
    }
    lines
}

/// The proven bracket of the largest margin; nothing where there is none, or where it is too large or too hard.
fn optimum(
    data: &Dataset,
    model: &ModelSpec,
    norm: &NormSpec,
    entries: usize,
) -> Result<Option<(Interval, bool)>, RunError> {
    let map = MarginMap::new(&data.targets);
    let size = [data.len(), map.per_example(), map.outputs(), data.dimension()];
    let size = size.into_iter().try_fold(1_usize, usize::checked_mul);
    if matches!(data.targets, Targets::Values(_)) || size.is_none_or(|size| size > entries) {
        return Ok(None);
    }
    let vector =
        *model == ModelSpec::Linear && map.outputs() == 1 && matches!(norm, NormSpec::Spectral | NormSpec::Nuclear);
    if !vector && is_conic(norm) && size.is_none_or(|size| size > entries / CONIC_SHARE) {
        return Ok(None);
    }
    let architecture = model.architecture_on(data)?;
    let problem = linear_margin_problem(data, &Measure::Norm(norm.clone()), architecture.layout())?;
    // a solver that gives up leaves no line
    let Ok(found) = max_margin(&problem) else { return Ok(None) };
    if found.status != MarginStatus::Optimal {
        return Ok(None);
    }
    let evidence = MarginEvidence::new(&problem, &found.direction, found.direction.clone(), found.dual, Vec::new());
    Ok(Some((evidence.map_err(DocumentError::from)?.optimum, found.uniqueness.unique)))
}

/// Whether a norm of matrices is beyond linear and quadratic programming.
fn is_conic(norm: &NormSpec) -> bool {
    match norm.exponent() {
        Some(p) => ![1.0, 2.0, f64::INFINITY].contains(&p),
        None => !matches!(norm, NormSpec::Quadratic { .. }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(column: &str, data: &str, lo: f64) -> Optimum {
        let margin = Interval::new(lo, lo);
        Optimum { column: column.into(), norm: NormSpec::L2, data: data.into(), margin, unique: true }
    }

    #[test]
    fn lines_are_optima_or_their_means() {
        let one = lines(&[found("margin.l1", "a", 1.0), found("margin.l2", "a", 2.0)], 1);
        assert_eq!(
            one.iter().map(|line| (line.column.as_str(), line.value)).collect::<Vec<_>>(),
            [("margin.l1", 1.0), ("margin.l2", 2.0)]
        );
        let optima = [found("margin.l2", "a", 1.0), found("margin.l2", "b", 2.0), found("margin.l1", "b", 2.0)];
        let two = lines(&optima, 2);
        assert_eq!((two.len(), two[0].value, two[0].label.as_str()), (1, 1.5, "mean of 2 exact optima 1.5000"));
        assert!(lines(&[], 1).is_empty());
    }

    #[test]
    fn separable_data_have_an_optimum_and_others_have_none() {
        use crate::linalg::Matrix;
        let data = |signs: Vec<f64>| {
            let inputs = Matrix::from_rows(&[&[1.0, 0.0], &[0.0, 1.0], &[1.0, 1.0]]);
            Dataset::new("three", inputs, Targets::Binary(signs), vec![2]).unwrap()
        };
        // the third example does not matter: (1, 1)/√2 has the margins 1/√2, 1/√2, √2
        let (margin, unique) = optimum(&data(vec![1.0; 3]), &ModelSpec::Linear, &NormSpec::L2, 100).unwrap().unwrap();
        assert!((margin.lo - 0.5_f64.sqrt()).abs() < 1e-12 && margin.width() < 1e-11 && unique, "{margin:?}");
        assert_eq!(optimum(&data(vec![1.0, 1.0, -1.0]), &ModelSpec::Linear, &NormSpec::L2, 100).unwrap(), None);
        assert_eq!(optimum(&data(vec![1.0; 3]), &ModelSpec::Linear, &NormSpec::L2, 5).unwrap(), None);
    }
}
