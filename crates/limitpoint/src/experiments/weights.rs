//! Trained weights in safetensors files, block by block under the names of the model's layout.

use std::collections::HashMap;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use sha2::{Digest, Sha256};

use super::checkpoint::{check_if_checkpoint, checksum};
use super::files::{RecordError, read_bytes, write_atomically};
use super::journal::hexadecimal;
use crate::params::ParamLayout;

/// The key of the metadata under which the SHA-256 of all tensors stands.
const KEY: &str = "sha256";

/// Reads the weights of a layout from a safetensors file of doubles, such as a checkpoint; other tensors are left
/// alone. Files of limitpoint have a checksum, which is checked; those of others need none.
pub fn load_weights(path: &Path, layout: &ParamLayout) -> Result<Vec<f64>, RecordError> {
    check_weights(path)?;
    read_weights(path, layout)
}

/// Reads weights whatever the checksum of their file, for those who know the one of the weights.
pub(super) fn read_weights(path: &Path, layout: &ParamLayout) -> Result<Vec<f64>, RecordError> {
    let bytes = read_bytes(path)?;
    let damaged = |what: String| RecordError::damaged(path, what);
    let refused = |what: String| RecordError::refused(path, what);
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| damaged(format!("is damaged: {error}")))?;
    let mut weights = Vec::with_capacity(layout.len());
    for block in layout.blocks() {
        let tensor = tensors.tensor(&block.name).map_err(|_| {
            refused(format!("holds no tensor '{}'; give weights of the model the run trained", block.name))
        })?;
        if tensor.dtype() != Dtype::F64 || tensor.data().len() != 8 * block.len() {
            let (shape, kind) = (tensor.shape().to_vec(), tensor.dtype());
            let wanted = format!("doubles of shape {} x {}", block.rows, block.cols);
            return Err(refused(format!("holds '{}' as {kind:?} of shape {shape:?}, not {wanted}", block.name)));
        }
        weights.extend(tensor.data().as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk)));
    }
    Ok(weights)
}

/// Checks the checksum of a safetensors file, if it has one.
pub(super) fn check_weights(path: &Path) -> Result<(), RecordError> {
    let bytes = read_bytes(path)?;
    let damaged = |what: String| RecordError::damaged(path, format!("is damaged: {what}"));
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| damaged(error.to_string()))?;
    check_if_checkpoint(path, &bytes)?;
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|error| damaged(error.to_string()))?;
    let stated = header.metadata().as_ref().and_then(|map| map.get(KEY));
    if stated.is_some_and(|stated| *stated != sum_of(&tensors)) {
        return Err(damaged("its SHA-256 does not fit".into()));
    }
    Ok(())
}

/// Writes weights as a safetensors file of doubles, which [`load_weights`] reads.
pub(super) fn save_weights(path: &Path, layout: &ParamLayout, weights: &[f64]) -> Result<(), RecordError> {
    let bytes: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
    let damaged = |error: safetensors::SafeTensorError| RecordError::refused(path, format!("cannot be made: {error}"));
    let views = layout.blocks().iter().map(|block| {
        let range = block.range();
        let view = TensorView::new(Dtype::F64, vec![block.rows, block.cols], &bytes[8 * range.start..8 * range.end])?;
        Ok((block.name.as_str(), view))
    });
    let views = views.collect::<Result<Vec<_>, safetensors::SafeTensorError>>().map_err(damaged)?;
    let sum = checksum("", sorted(views.iter().map(|(name, view)| (*name, view.data()))).into_iter());
    let metadata = HashMap::from([(KEY.to_owned(), sum)]);
    write_atomically(path, &safetensors::serialize(views, Some(metadata)).map_err(damaged)?)
}

fn sum_of(tensors: &SafeTensors) -> String {
    let views = tensors.tensors();
    checksum("", sorted(views.iter().map(|(name, view)| (name.as_str(), view.data()))).into_iter())
}

fn sorted<'a>(tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<(&'a str, &'a [u8])> {
    let mut tensors: Vec<_> = tensors.collect();
    tensors.sort_by_key(|(name, _)| *name);
    tensors
}

/// SHA-256 of the bits of weights, in hexadecimal.
pub(super) fn digest(weights: &[f64]) -> String {
    let mut digest = Sha256::new();
    weights.iter().for_each(|w| digest.update(w.to_le_bytes()));
    hexadecimal(&digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_by_name_and_others_are_complained_about() {
        let path = std::env::temp_dir().join(format!("limitpoint-weights-{}.safetensors", std::process::id()));
        let bytes: Vec<u8> = [1.0_f64, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let view = |from: usize, to: usize| TensorView::new(Dtype::F64, vec![1, to - from], &bytes[8 * from..8 * to]);
        let tensors = [("b", view(2, 3).unwrap()), ("a", view(0, 2).unwrap())];
        std::fs::write(&path, safetensors::serialize(tensors, None).unwrap()).unwrap();
        let layout = |blocks: &[(&'static str, usize, usize)]| ParamLayout::new(blocks.iter().copied()).unwrap();
        assert_eq!(load_weights(&path, &layout(&[("a", 1, 2), ("b", 1, 1)])).unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!(load_weights(&path, &layout(&[("b", 1, 1)])).unwrap(), [3.0]);
        save_weights(&path, &layout(&[("a", 1, 2), ("b", 1, 1)]), &[4.0, 1e-300, -0.0]).unwrap();
        assert_eq!(load_weights(&path, &layout(&[("b", 1, 1), ("a", 2, 1)])).unwrap(), [-0.0, 4.0, 1e-300]);
        let error = load_weights(&path, &layout(&[("c", 1, 1)])).unwrap_err().to_string();
        assert!(error.contains("no tensor 'c'"), "{error}");
        let error = load_weights(&path, &layout(&[("a", 2, 2)])).unwrap_err().to_string();
        assert!(error.contains("[1, 2], not doubles of shape 2 x 2"), "{error}");
        std::fs::write(&path, b"nothing").unwrap();
        assert!(load_weights(&path, &layout(&[("a", 1, 2)])).unwrap_err().to_string().contains("is damaged"));
        std::fs::remove_file(&path).unwrap();
        assert_ne!(digest(&[0.0]), digest(&[-0.0]));
    }
}
