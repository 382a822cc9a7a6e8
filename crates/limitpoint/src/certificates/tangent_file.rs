//! A tangent problem as a file that can be checked anywhere, without the model and without the program that made it.
//!
//! A safetensors file of doubles, with a JSON text under the key `limitpoint-tangent` of its metadata:
//!
//! | tensor | shape | holds |
//! |---|---|---|
//! | `params` | P | θ, block after block |
//! | `margins` | K | every margin q_k |
//! | `rows` | k × P | gradients of some margins; may be absent |
//! | `gram` | k × k | their products, where the rows are too many to be written; may be absent |
//! | `weights.N` | k or K | multipliers of claim N |
//! | `sum.N` | P | Σ w_k h_k of claim N, where it is of one weighted pass |
//!
//! What is checked: the checksum; that multipliers are not negative; Euler's identity ⟨h, θ⟩ = L q for every row and
//! every sum, which ties the gradients to weights and margins; and for each claim the margin q_min/‖θ‖^L and
//!
//! ```text
//! τ = 1 − L q_min Σp / (‖θ‖ ‖Σ p_k h_k‖_*),
//! ```
//!
//! an upper bound of the true τ for any multipliers. That the gradients are those of a model, nobody can tell from the file.

use std::collections::HashMap;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{CertificateError, Disagreement};
use crate::linalg::{Matrix, add_scaled, dot};
use crate::norms::NormSpec;
use crate::params::ParamLayout;

/// The key of the metadata.
const KEY: &str = "limitpoint-tangent";
/// The only version.
const VERSION: u32 = 1;
/// How well numbers have to agree.
const CLOSE: f64 = 1e-9;
/// How well Euler's identity has to hold.
const EULER: f64 = 1e-6;

/// What multipliers stand before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Gradients of all margins, summed in one weighted backward pass.
    Pass,
    /// Rows known by their Gram matrix; ℓ2 only.
    Gram,
    /// Rows.
    Rows,
}

/// What a file says about one norm.
#[derive(Debug, Clone, PartialEq)]
pub struct TangentClaim {
    /// The norm, as the command line writes it.
    pub norm: String,
    /// Where the bound comes from.
    pub level: Level,
    /// The upper bound of τ.
    pub tau: f64,
    /// q_min/‖θ‖^L.
    pub margin: f64,
    /// p, not negative.
    pub weights: Vec<f64>,
    /// Σ p_k h_k; empty unless the level is a pass.
    pub sum: Vec<f64>,
}

/// A tangent problem and what is claimed of it.
#[derive(Debug, Clone, PartialEq)]
pub struct TangentFile {
    /// Name, rows and columns of every block.
    pub blocks: Vec<(String, usize, usize)>,
    /// θ.
    pub params: Vec<f64>,
    /// q_k.
    pub margins: Vec<f64>,
    /// L.
    pub degree: f64,
    /// Gradients of some margins.
    pub rows: Option<Matrix>,
    /// Their products.
    pub gram: Option<Matrix>,
    /// The margin of each row.
    pub margin_of_row: Vec<usize>,
    /// By norm.
    pub claims: Vec<TangentClaim>,
    /// What the model is, in words of whoever wrote the file.
    pub about: String,
    /// SHA-256 of the data, as whoever wrote the file computed it.
    pub data_sha256: String,
}

/// The text of the metadata.
#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    blocks: Vec<(String, usize, usize)>,
    degree: f64,
    margin_of_row: Vec<usize>,
    claims: Vec<ClaimHeader>,
    about: String,
    data_sha256: String,
    sha256: String,
}

#[derive(Serialize, Deserialize)]
struct ClaimHeader {
    norm: String,
    level: Level,
    tau: f64,
    margin: f64,
}

/// Shape and numbers.
type Tensor = (Vec<usize>, Vec<f64>);

/// Why bytes are no such file.
fn unreadable(what: impl std::fmt::Display) -> CertificateError {
    CertificateError::TangentFile { what: what.to_string() }
}

fn bytes_of(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

impl TangentFile {
    /// Whether bytes begin as such a file does.
    pub fn is_one(bytes: &[u8]) -> bool {
        SafeTensors::read_metadata(bytes)
            .is_ok_and(|(_, header)| header.metadata().as_ref().is_some_and(|map| map.contains_key(KEY)))
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>, Vec<u8>)> {
        let mut tensors = vec![
            ("margins".to_owned(), vec![self.margins.len()], bytes_of(&self.margins)),
            ("params".to_owned(), vec![self.params.len()], bytes_of(&self.params)),
        ];
        for (name, matrix) in [("rows", &self.rows), ("gram", &self.gram)] {
            if let Some(matrix) = matrix {
                tensors.push((name.to_owned(), vec![matrix.rows, matrix.cols], bytes_of(&matrix.data)));
            }
        }
        for (number, claim) in self.claims.iter().enumerate() {
            tensors.push((format!("weights.{number}"), vec![claim.weights.len()], bytes_of(&claim.weights)));
            if !claim.sum.is_empty() {
                tensors.push((format!("sum.{number}"), vec![claim.sum.len()], bytes_of(&claim.sum)));
            }
        }
        tensors.sort();
        tensors
    }

    /// The file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CertificateError> {
        let tensors = self.tensors();
        let claims = self.claims.iter().map(|claim| ClaimHeader {
            norm: claim.norm.clone(),
            level: claim.level,
            tau: claim.tau,
            margin: claim.margin,
        });
        let mut header = Header {
            version: VERSION,
            blocks: self.blocks.clone(),
            degree: self.degree,
            margin_of_row: self.margin_of_row.clone(),
            claims: claims.collect(),
            about: self.about.clone(),
            data_sha256: self.data_sha256.clone(),
            sha256: String::new(),
        };
        header.sha256 = sum_of(&header, &tensors)?;
        let text = serde_json::to_string(&header).map_err(unreadable)?;
        let views = tensors
            .iter()
            .map(|(name, shape, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F64, shape.clone(), bytes)?)))
            .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
            .map_err(unreadable)?;
        safetensors::serialize(views, Some(HashMap::from([(KEY.to_owned(), text)]))).map_err(unreadable)
    }

    /// Reads a file; one whose checksum does not fit is refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CertificateError> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(unreadable)?;
        let text = metadata.metadata().as_ref().and_then(|map| map.get(KEY));
        let text = text.ok_or_else(|| unreadable("it has no limitpoint-tangent in its metadata"))?;
        let mut header: Header = serde_json::from_str(text).map_err(unreadable)?;
        if header.version != VERSION {
            return Err(unreadable(format!("its version is {}, this program reads {VERSION}", header.version)));
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(unreadable)?;
        let find = |name: &str| -> Result<Option<Tensor>, CertificateError> {
            let Ok(tensor) = tensors.tensor(name) else { return Ok(None) };
            if tensor.dtype() != Dtype::F64 {
                return Err(unreadable(format!("'{name}' is not of doubles")));
            }
            let values = tensor.data().as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect();
            Ok(Some((tensor.shape().to_vec(), values)))
        };
        let need = |name: &str| -> Result<Vec<f64>, CertificateError> {
            Ok(find(name)?.ok_or_else(|| unreadable(format!("it has no '{name}'")))?.1)
        };
        let matrix = |name: &str| -> Result<Option<Matrix>, CertificateError> {
            match find(name)? {
                None => Ok(None),
                Some((shape, values)) => match shape[..] {
                    [rows, cols] => Ok(Some(Matrix::from_vec(rows, cols, values).map_err(unreadable)?)),
                    _ => Err(unreadable(format!("'{name}' is no matrix"))),
                },
            }
        };
        let mut claims = Vec::new();
        for (number, claim) in std::mem::take(&mut header.claims).into_iter().enumerate() {
            let sum = find(&format!("sum.{number}"))?.map(|(_, sum)| sum).unwrap_or_default();
            let ClaimHeader { norm, level, tau, margin } = claim;
            claims.push(TangentClaim { norm, level, tau, margin, weights: need(&format!("weights.{number}"))?, sum });
        }
        let file = Self {
            blocks: header.blocks,
            params: need("params")?,
            margins: need("margins")?,
            degree: header.degree,
            rows: matrix("rows")?,
            gram: matrix("gram")?,
            margin_of_row: header.margin_of_row,
            claims,
            about: header.about,
            data_sha256: header.data_sha256,
        };
        let again = file.to_bytes()?;
        let (_, found) = SafeTensors::read_metadata(&again).map_err(unreadable)?;
        if found.metadata().as_ref().and_then(|map| map.get(KEY)) != Some(text) {
            return Err(unreadable("its SHA-256 does not fit"));
        }
        Ok(file)
    }

    /// Recomputes everything; what does not agree.
    pub fn check(&self) -> Result<Vec<Disagreement>, CertificateError> {
        let named = self.blocks.iter().map(|(name, rows, cols)| (name.as_str(), *rows, *cols));
        let layout = ParamLayout::new(named)?;
        layout.check(&self.params)?;
        let mut found = Vec::new();
        let least = self.margins.iter().copied().fold(f64::INFINITY, f64::min);
        if least.is_nan() || least <= 0.0 || !least.is_finite() {
            found.push(Disagreement::new("the smallest margin", "positive", least));
            return Ok(found);
        }
        let mut euler = |what: String, product: f64, expected: f64| {
            if (product - expected).abs() > EULER * expected.abs() || product.is_nan() {
                found.push(Disagreement::new(what, expected, product));
            }
        };
        if let Some(rows) = &self.rows {
            if rows.cols != self.params.len() || rows.rows != self.margin_of_row.len() {
                return Err(unreadable("its rows fit neither the weights nor the margins"));
            }
            for (i, margin) in self.margin_of_row.iter().enumerate() {
                let q = self.margins.get(*margin).ok_or_else(|| unreadable(format!("there is no margin {margin}")))?;
                euler(format!("Euler's ⟨h, θ⟩ of row {i}"), dot(rows.row(i), &self.params), self.degree * q);
            }
        }
        for claim in &self.claims {
            if claim.level == Level::Pass && claim.sum.len() == self.params.len() {
                let weighted: f64 = claim.weights.iter().zip(&self.margins).map(|(w, q)| w * q).sum();
                let what = format!("Euler's ⟨Σ w h, θ⟩ in {}", claim.norm);
                euler(what, dot(&claim.sum, &self.params), self.degree * weighted);
            }
        }
        for claim in &self.claims {
            found.extend(self.check_claim(claim, &layout, least)?);
        }
        Ok(found)
    }

    fn check_claim(
        &self,
        claim: &TangentClaim,
        layout: &ParamLayout,
        least: f64,
    ) -> Result<Vec<Disagreement>, CertificateError> {
        let spec: NormSpec = claim.norm.parse()?;
        let mut norm = spec.build(layout)?;
        let size = norm.value(&self.params);
        let total: f64 = claim.weights.iter().sum();
        let mut found = Vec::new();
        if claim.weights.iter().any(|p| p.is_nan() || *p < 0.0) || total.is_nan() || total <= 0.0 {
            found.push(Disagreement::new(format!("the multipliers in {}", claim.norm), "not negative", "negative"));
            return Ok(found);
        }
        let length = match (claim.level, &self.rows, &self.gram) {
            (Level::Pass, _, _)
                if claim.sum.len() == self.params.len() && claim.weights.len() == self.margins.len() =>
            {
                norm.dual(&claim.sum)
            }
            (Level::Rows, Some(rows), _) if claim.weights.len() == rows.rows => {
                let mut sum = vec![0.0; self.params.len()];
                claim.weights.iter().enumerate().for_each(|(i, p)| add_scaled(&mut sum, *p, rows.row(i)));
                norm.dual(&sum)
            }
            (Level::Gram, _, Some(gram))
                if claim.weights.len() == gram.rows && gram.cols == gram.rows && spec.exponent() == Some(2.0) =>
            {
                let product = |i: usize| claim.weights[i] * dot(gram.row(i), &claim.weights);
                (0..gram.rows).map(product).sum::<f64>().max(0.0).sqrt()
            }
            _ => return Err(unreadable(format!("the claim in {} lacks what it is proven by", claim.norm))),
        };
        let tau = (1.0 - self.degree * least * total / (size * length)).max(0.0);
        let margin = least / size.powf(self.degree);
        if (tau - claim.tau).abs() > CLOSE || tau.is_nan() {
            found.push(Disagreement::new(format!("τ in {}", claim.norm), claim.tau, tau));
        }
        if (margin - claim.margin).abs() > CLOSE * margin.abs() || margin.is_nan() {
            found.push(Disagreement::new(format!("the margin in {}", claim.norm), claim.margin, margin));
        }
        Ok(found)
    }
}

/// SHA-256 of the text without its sum, and of all tensors by name.
fn sum_of(header: &Header, tensors: &[(String, Vec<usize>, Vec<u8>)]) -> Result<String, CertificateError> {
    let mut digest = Sha256::new_with_prefix(serde_json::to_string(header).map_err(unreadable)?.as_bytes());
    for (name, shape, bytes) in tensors {
        digest.update(format!("\n{name} {shape:?} "));
        digest.update(bytes);
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
