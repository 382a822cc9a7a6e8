//! Proofs about runs: an exact KKT point next to the polished weights, written beside them and checked again.

use std::path::{Path, PathBuf};

use super::RunError;
use super::certify::OpenedRun;
use super::checkpoint::Checkpoints;
use super::config::{from_folder, in_full};
use super::files::{RecordError, read_text, remove_file, write_atomically};
use super::locate::{Known, describe, find_data};
use super::manifest::RunManifest;
use super::polish::{name_of, norm_of, polished_file};
use super::seal::Seal;
use super::weights::{digest, load_weights, read_weights, save_weights};
use crate::certificates::{
    DataReference, Disagreement, DocumentError, PolishSettings, Polished, WeightsReference, polish,
};
use crate::models::ModelSpec;
use crate::norms::NormSpec;
use crate::params::ParamLayout;
use crate::proofs::{
    Attempt, NearbyWeights, PROOF_FORMAT, PROOF_VERSION, PointKind, ProofDocument, Proven, Refusal, ascent, prove,
    pushed, statement,
};

/// Rounds of raising the margin, at most.
const ROUNDS: usize = 20;
/// Shares of the weights' size that are tried to move them off a point that is no maximum.
const PUSHES: [f64; 4] = [1e-2, 1e-3, 1e-1, 1e-4];

/// How a run is proven.
#[derive(Debug, Clone, PartialEq)]
pub struct ProveOptions {
    /// The norm of the margin; the one of the optimiser when absent.
    pub norm: Option<NormSpec>,
    /// Leaves of the search that decides whether the point is a global maximum.
    pub leaves: usize,
    /// Whether to go on from a point that is no local maximum.
    pub improve: bool,
    /// How weights are polished that are not yet.
    pub polish: PolishSettings,
    /// The folder of data sets, where data that the run does not find are looked for.
    pub data_folder: Option<PathBuf>,
}

impl Default for ProveOptions {
    fn default() -> Self {
        Self { norm: None, leaves: 2000, improve: false, polish: PolishSettings::default(), data_folder: None }
    }
}

/// What was proven of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct ProvedRun {
    /// Name of the run.
    pub run: String,
    /// Key of the norm.
    pub norm: String,
    /// The proof and its file, or why there is none.
    pub outcome: Result<(Box<ProofDocument>, PathBuf), Refusal>,
    /// Points that were left for a better one, the first first.
    pub left: Vec<PointKind>,
}

/// The name of the proof's file in a norm.
pub fn proof_file(norm: &NormSpec) -> String {
    format!("proof-{}.json", name_of(norm))
}

/// Proves a finished run in a norm; writes the proof and, as the polished weights, the doubles nearest to the exact ones.
pub fn prove_run(folder: &Path, options: &ProveOptions) -> Result<ProvedRun, RunError> {
    let opened = OpenedRun::load(folder, None, options.data_folder.as_deref())?;
    let norm = norm_of(&opened, options.norm.as_ref())?;
    let polished = folder.join(polished_file(&norm));
    let (model, data) = (&opened.task.recipe.model, &opened.split.train);
    let start = if polished.exists() {
        load_weights(&polished, &opened.layout)?
    } else {
        let Polished { params, .. } = polish(model, data, &opened.weights, &norm, &options.polish)?;
        save_weights(&polished, &opened.layout, &params)?;
        params
    };
    let mut left = Vec::new();
    let mut attempt = prove(model, data, &start, &norm, options.leaves)?;
    while let (true, Attempt::Proven(proven)) = (options.improve && left.len() < ROUNDS, &attempt) {
        let Some(better) = improved(&opened, &norm, proven, options)? else { break };
        left.push(proven.findings.kind.clone());
        attempt = Attempt::Proven(better);
    }
    let outcome = match attempt {
        Attempt::Refused(refusal) => Err(refusal),
        Attempt::Proven(proven) => {
            let document = document(folder, &opened, &norm, &proven)?;
            let path = folder.join(proof_file(&norm));
            // an older proof speaks of the older weights
            remove_file(&path)?;
            save_weights(&polished, &opened.layout, &proven.midpoint)?;
            write_atomically(&path, to_json(&document)?.as_bytes())?;
            Ok((Box::new(document), path))
        }
    };
    Ok(ProvedRun { run: opened.task.label.name.clone(), norm: norm.key(), outcome, left })
}

/// A proven point with a larger margin, from one that can be left upwards.
fn improved(
    opened: &OpenedRun,
    norm: &NormSpec,
    proven: &Proven,
    options: &ProveOptions,
) -> Result<Option<Box<Proven>>, RunError> {
    let Some(ascent) = ascent(proven) else { return Ok(None) };
    let (model, data) = (&opened.task.recipe.model, &opened.split.train);
    for push in PUSHES {
        let start = pushed(model, data, &proven.midpoint, &ascent, push)?;
        // a push that loses an example is too large
        let Ok(polished) = polish(model, data, &start, norm, &options.polish) else { continue };
        if let Attempt::Proven(next) = prove(model, data, &polished.params, norm, options.leaves)?
            && next.findings.margin.lo > proven.findings.margin.hi
        {
            return Ok(Some(next));
        }
    }
    Ok(None)
}

/// The proof as a document about this run.
fn document(folder: &Path, opened: &OpenedRun, norm: &NormSpec, proven: &Proven) -> Result<ProofDocument, RunError> {
    let (model, data) = (&opened.task.recipe.model, &opened.split.train);
    let record = describe(&opened.split);
    let nearby = |file: String, weights: &[f64]| -> Result<NearbyWeights, RunError> {
        let angle = proven.network.angle(model, data, weights)?;
        let reference = WeightsReference { file, entries: weights.len(), sha256: digest(weights) };
        Ok(NearbyWeights { reference, angle })
    };
    let last = format!("checkpoints/{}", Checkpoints::FINAL);
    Ok(ProofDocument {
        format: PROOF_FORMAT.to_owned(),
        version: PROOF_VERSION,
        library: env!("CARGO_PKG_VERSION").to_owned(),
        run: opened.task.label.name.clone(),
        statement: statement(&proven.proof, &proven.findings, model),
        data: DataReference {
            spec: from_folder(&opened.task.recipe.data, folder),
            seed: opened.seed,
            name: record.name,
            examples: record.examples,
            sha256: record.sha256,
        },
        model: model.clone(),
        findings: proven.findings.clone(),
        weights: vec![nearby(polished_file(norm), &proven.midpoint)?, nearby(last, &opened.weights)?],
        proof: proven.proof.clone(),
        sha256: None,
    })
}

/// One line of JSON, and the checksum of it.
fn to_json(document: &ProofDocument) -> Result<String, RunError> {
    let text = serde_json::to_string(document).map_err(|error| DocumentError::Unreadable(error.to_string()))?;
    let body = text.strip_suffix('}').unwrap_or(&text);
    Ok(Seal::JSON.close(&format!("{body}\n}}")))
}

/// A proof that was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedProof {
    /// What the file says.
    pub document: ProofDocument,
    /// What is not so; a proof holds if this is empty.
    pub disagreements: Vec<Disagreement>,
}

/// Whether a file calls itself a proof.
pub fn is_proof(path: &Path) -> Result<bool, RunError> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: String,
    }
    let text = read_text(path)?;
    Ok(serde_json::from_str::<Head>(&text).is_ok_and(|head| head.format == PROOF_FORMAT))
}

/// Checks a proof: its checksum, the theorem from the data alone, and the angles from the weights it names.
pub fn check_proof(path: &Path, data_folder: Option<&Path>) -> Result<CheckedProof, RunError> {
    let text = read_text(path)?;
    let document: ProofDocument =
        serde_json::from_str(&text).map_err(|error| DocumentError::Unreadable(error.to_string()))?;
    if document.format != PROOF_FORMAT || document.version != PROOF_VERSION {
        return Err(DocumentError::Format { format: document.format, version: document.version }.into());
    }
    let mut disagreements = Vec::new();
    if Seal::JSON.open(&text).is_none() {
        disagreements.push(Disagreement::new("the SHA-256 of the proof", "that of its text", "another"));
    }
    let home = path.parent().unwrap_or(Path::new(""));
    let files = RunManifest::load(home).map_or_else(|_| Vec::new(), |manifest| manifest.data_files);
    let (spec, seed) = (in_full(&document.data.spec, home), document.data.seed);
    let known = Known { sha256: Some(&document.data.sha256), files: &files, data_folder };
    let (split, record) = match find_data(&spec, seed, &known, home) {
        // that they are others is a finding, and so is all that follows
        Err(RunError::OtherData { .. }) => find_data(&spec, seed, &Known { sha256: None, ..known }, home)?,
        other => other?,
    };
    let mut compare = |what: &str, stated: &str, found: &str| {
        if stated != found {
            disagreements.push(Disagreement::new(what, stated, found));
        }
    };
    compare("the SHA-256 of the data", &document.data.sha256, &record.sha256);
    compare("the name of the data", &document.data.name, &record.name);
    compare("the number of examples", &document.data.examples.to_string(), &record.examples.to_string());
    let layout = layout(&document.model, &split.train)?;
    let mut weights = Vec::new();
    for nearby in &document.weights {
        let file = &nearby.reference.file;
        let found = read_weights(&home.join(file), &layout).map_err(|error| match error {
            RecordError::Refused { path, what } => RecordError::damaged(&path, what),
            other => other,
        })?;
        compare(&format!("the SHA-256 of {file}"), &nearby.reference.sha256, &digest(&found));
        compare(
            &format!("the number of weights of {file}"),
            &nearby.reference.entries.to_string(),
            &found.len().to_string(),
        );
        weights.push(found);
    }
    disagreements.extend(document.check(&split.train, &weights)?);
    Ok(CheckedProof { document, disagreements })
}

fn layout(model: &ModelSpec, data: &crate::data::Dataset) -> Result<ParamLayout, RunError> {
    Ok(model.architecture_on(data)?.layout().clone())
}
