//! Weights that somebody else trained, of a network that can be built here: margins and τ in every norm.

use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::Serialize;

use super::RunError;
use super::files::{RecordError, read_bytes};
use crate::certificates::{Geometry, Level, Slopes, TangentClaim, TangentFile, TangentProblem, solve_tangent};
use crate::data::Dataset;
use crate::engine::{Compute, Forward, cpu};
use crate::models::{MarginMap, ModelSpec};
use crate::norms::NormSpec;
use crate::objective::{Objective, Reduction};
use crate::params::{Block, ParamLayout};
use crate::training::default_loss;

/// Kinks this close to 0, relative to the largest weights of a unit, count as kinks.
const KINKS: f64 = 1e-12;
/// Entries of rows that are written into a tangent file (256 MB).
const LARGEST_FILE: usize = 1 << 25;

/// What was found out about weights.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    /// The degree L of the network.
    pub degree: f64,
    /// Number of examples.
    pub examples: usize,
    /// log₁₀ of the loss that people use for such targets, summed over the examples.
    pub log10_loss: f64,
    /// The smallest margin.
    pub smallest_margin: f64,
    /// By norm.
    pub norms: Vec<AuditedNorm>,
    /// Which tensor of the file became which block.
    pub tensors: Vec<(String, String)>,
    /// Whether single precision was read.
    pub rounded: bool,
}

/// A norm of an audit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditedNorm {
    /// The norm.
    pub norm: String,
    /// ‖θ‖.
    pub size: f64,
    /// q_min/‖θ‖^L.
    pub margin: f64,
    /// Clarke's τ: an upper bound, proven by multipliers.
    pub tau: f64,
    /// A lower bound of it, proven by a direction.
    pub tau_lower: f64,
    /// Margins with a multiplier.
    pub support: usize,
    /// Preactivations on a kink.
    pub kinks: usize,
}

/// Weights of a file in the layout of a model, and what was read for what.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignWeights {
    /// θ.
    pub params: Vec<f64>,
    /// Tensor and block.
    pub tensors: Vec<(String, String)>,
    /// Whether some were in single precision.
    pub rounded: bool,
}

/// Reads weights of a safetensors file that any program may have written, in double or single precision. Blocks are found by
/// their own names, or else in the order of the file's names, as PyTorch numbers its layers: each block takes the next
/// tensor of its kind, which must have its shape.
pub fn load_foreign_weights(path: &Path, layout: &ParamLayout) -> Result<ForeignWeights, RecordError> {
    let bytes = read_bytes(path)?;
    let tensors =
        SafeTensors::deserialize(&bytes).map_err(|error| RecordError::damaged(path, format!("is damaged: {error}")))?;
    let mut names: Vec<String> = tensors.names().into_iter().map(String::from).collect();
    names.sort_by_key(|name| natural(name));
    let own = layout.blocks().iter().all(|block| names.contains(&block.name));
    let mut found = ForeignWeights { params: vec![0.0; layout.len()], tensors: Vec::new(), rounded: false };
    let mut left: Vec<&String> = names.iter().filter(|name| !own && is_float(&tensors, name)).collect();
    for block in layout.blocks() {
        let name = if own {
            block.name.clone()
        } else {
            let vector = block.cols == 1 && !block.is_weight();
            let fits = |name: &&String| tensors.tensor(name).is_ok_and(|t| (t.shape().len() == 1) == vector);
            let Some(place) = left.iter().position(fits) else {
                let what = format!("has no tensor left for block '{}'; it holds {}", block.name, names.join(", "));
                return Err(RecordError::refused(path, what));
            };
            left.remove(place).clone()
        };
        let tensor = tensors.tensor(&name).map_err(|error| RecordError::refused(path, error.to_string()))?;
        let values = numbers(&tensor).filter(|values| values.len() == block.len() && shape_fits(&tensor, block));
        let Some(values) = values else {
            let (shape, kind) = (tensor.shape(), tensor.dtype());
            let what = format!(
                "holds '{name}' as {kind:?} of shape {shape:?} where block '{}' needs F64 or F32 of {} x {}",
                block.name, block.rows, block.cols
            );
            return Err(RecordError::refused(path, what));
        };
        found.rounded |= tensor.dtype() == Dtype::F32;
        found.params[block.range()].copy_from_slice(&values);
        found.tensors.push((name, block.name.clone()));
    }
    if !left.is_empty() {
        let rest: Vec<&str> = left.iter().map(|name| name.as_str()).collect();
        let what = format!("holds {} besides the weights of the model; describe all of it", rest.join(", "));
        return Err(RecordError::refused(path, what));
    }
    Ok(found)
}

fn is_float(tensors: &SafeTensors, name: &str) -> bool {
    tensors.tensor(name).is_ok_and(|tensor| matches!(tensor.dtype(), Dtype::F64 | Dtype::F32))
}

fn shape_fits(tensor: &TensorView, block: &Block) -> bool {
    match tensor.shape() {
        [rows, cols] => (*rows, *cols) == (block.rows, block.cols),
        [length] => *length == block.len(),
        _ => false,
    }
}

fn numbers(tensor: &TensorView) -> Option<Vec<f64>> {
    let data = tensor.data();
    match tensor.dtype() {
        Dtype::F64 => Some(data.as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect()),
        Dtype::F32 => Some(data.as_chunks::<4>().0.iter().map(|chunk| f32::from_le_bytes(*chunk).into()).collect()),
        _ => None,
    }
}

/// Words and numbers of a name, so that `10.weight` comes after `2.weight`.
fn natural(name: &str) -> Vec<(u64, String)> {
    let mut parts: Vec<(u64, String)> = Vec::new();
    let mut digits = String::new();
    let mut word = String::new();
    for letter in name.chars().chain(['\0']) {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        if !digits.is_empty() {
            parts.push((0, std::mem::take(&mut word)));
            parts.push((digits.parse().unwrap_or(u64::MAX), String::new()));
            digits.clear();
        }
        word.push(letter);
    }
    parts.push((0, word));
    parts
}

/// Judges weights on data, and the tangent file that proves the judgement, where it is not too large.
pub fn audit_weights(
    weights: &ForeignWeights,
    data: &Dataset,
    model: &ModelSpec,
    norms: &[NormSpec],
) -> Result<(Audit, Option<TangentFile>), RunError> {
    let params = &weights.params;
    let outputs = MarginMap::new(&data.targets).outputs();
    let mut evaluator = cpu::bind(model, &data.inputs, outputs, Compute::default())?;
    let layout = evaluator.layout().clone();
    layout.check(params).map_err(|error| Box::new(crate::Error::from(error)))?;
    let loss = default_loss(&data.targets);
    let mut objective = Objective::new(data, model, &loss, Reduction::Sum, Compute::default())?;
    let log_loss = objective.forward(params).log_loss();
    let (mut audited, mut first, mut claims) = (Vec::new(), None::<TangentProblem>, Vec::new());
    for norm in norms {
        let slopes = Slopes::Clarke { tolerance: KINKS };
        let geometry = Geometry::from(norm.clone());
        let (problem, certificate) = solve_tangent(&mut *evaluator, &data.targets, params, &geometry, slopes)?;
        let (least, size) = (problem.smallest_margin(), problem.size);
        let margin = least / size.powf(problem.degree);
        audited.push(AuditedNorm {
            norm: norm.to_string(),
            size,
            margin,
            tau: certificate.tau,
            tau_lower: certificate.tau_lower,
            support: certificate.support.len(),
            kinks: certificate.kinks,
        });
        if certificate.kinks == 0 {
            let weights: Vec<f64> = certificate.multipliers.rows.iter().map(|p| p.max(0.0)).collect();
            let (norm, level, tau) = (norm.to_string(), Level::Rows, certificate.tau);
            claims.push(TangentClaim { norm, level, tau, margin, weights, sum: Vec::new() });
        }
        first.get_or_insert(problem);
    }
    let Some(problem) = first else { return Err(RunError::Nothing) };
    let audit = Audit {
        degree: problem.degree,
        examples: data.len(),
        log10_loss: log_loss / std::f64::consts::LN_10,
        smallest_margin: problem.smallest_margin(),
        norms: audited,
        tensors: weights.tensors.clone(),
        rounded: weights.rounded,
    };
    let rows = problem.problem.rows;
    let plain = !claims.is_empty() && problem.kinks == 0 && rows.data.len() <= LARGEST_FILE;
    let file = plain.then(|| TangentFile {
        blocks: layout.blocks().iter().map(|block| (block.name.clone(), block.rows, block.cols)).collect(),
        params: params.clone(),
        margins: problem.margins,
        degree: problem.degree,
        rows: Some(rows),
        gram: None,
        margin_of_row: problem.margin_of_row,
        claims,
        about: model.key().to_owned(),
        data_sha256: super::locate::describe_sets(data, None).sha256,
    });
    Ok((audit, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, tensors: &[(&str, Vec<usize>, bool)]) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("limitpoint-foreign-{}-{name}", std::process::id()));
        let bytes: Vec<Vec<u8>> = tensors
            .iter()
            .map(|(_, shape, single)| {
                let count = shape.iter().product::<usize>();
                let value = |i: usize| i as f64 + 0.5;
                match single {
                    true => (0..count).flat_map(|i| (value(i) as f32).to_le_bytes()).collect(),
                    false => (0..count).flat_map(|i| value(i).to_le_bytes()).collect(),
                }
            })
            .collect();
        let views = tensors.iter().zip(&bytes).map(|((name, shape, single), bytes)| {
            (*name, TensorView::new(if *single { Dtype::F32 } else { Dtype::F64 }, shape.clone(), bytes).unwrap())
        });
        std::fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
        path
    }

    #[test]
    fn names_of_pytorch_are_taken_in_their_order() {
        let layout = ParamLayout::of([Block::weight(1, 3, 2), Block::bias(1, 3, 2), Block::weight(2, 1, 3)]).unwrap();
        let tensors =
            [("net.10.weight", vec![1, 3], false), ("net.2.bias", vec![3], true), ("net.2.weight", vec![3, 2], true)];
        let path = file("torch", &tensors);
        let found = load_foreign_weights(&path, &layout).unwrap();
        assert!(found.rounded);
        assert_eq!(found.params, [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 0.5, 1.5, 2.5, 0.5, 1.5, 2.5]);
        assert_eq!(found.tensors[2], ("net.10.weight".to_owned(), "layer2.weight".to_owned()));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let layout = ParamLayout::of([Block::weight(1, 3, 2)]).unwrap();
        for (name, tensors, word) in [
            ("shape", vec![("0.weight", vec![2, 3], false)], "[2, 3]"),
            ("few", vec![("0.bias", vec![3], false)], "no tensor left"),
            ("many", vec![("0.weight", vec![3, 2], false), ("1.weight", vec![3, 2], false)], "besides"),
        ] {
            let path = file(name, &tensors);
            let error = load_foreign_weights(&path, &layout).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
            std::fs::remove_file(&path).unwrap();
        }
    }
}
