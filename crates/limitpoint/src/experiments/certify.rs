//! Certificates of runs: written beside them, and checked again from data and weights.

use std::path::{Path, PathBuf};

use super::RunError;
use super::checkpoint::Checkpoints;
use super::config::{from_folder, in_full, read_config};
use super::files::{RecordError, read_text, write_atomically};
use super::locate::{Known, describe, find_data};
use super::manifest::{ExperimentManifest, RunManifest, Status};
use super::metrics::read_metrics;
use super::record::CertificateRecord;
use super::sweep::place;
use super::task::Task;
use super::verify::is_run;
use super::weights::{digest, load_weights, read_weights};
use crate::certificates::{
    Certificate, DataReference, Disagreement, Evidence, FORMAT, RunClaim, StartReference, Subject, Tolerances, VERSION,
    Verdict, WeightsReference,
};
use crate::data::{DataSplit, Dataset};
use crate::diagnostics::DirectionCourse;
use crate::models::{ModelError, ModelSpec};
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::params::ParamLayout;
use crate::training::{Judgement, TrainingError};

/// Name of the file in a run's folder.
pub const CERTIFICATE_FILE: &str = "certificate.json";

/// How a run is certified.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CertifyOptions {
    /// The norm that is claimed; the one of the optimiser when absent.
    pub norm: Option<NormSpec>,
    /// How exactly it is claimed.
    pub tolerances: Tolerances,
    /// Other weights than those the run ended with, in a safetensors file.
    pub weights: Option<PathBuf>,
    /// The folder of data sets, where data that the run does not find are looked for.
    pub data_folder: Option<PathBuf>,
}

/// The folders of the runs in `folder`: those of an experiment, or itself if it is a run's.
pub fn run_folders(folder: &Path) -> Result<Vec<PathBuf>, RecordError> {
    if is_run(folder) {
        return Ok(vec![folder.to_path_buf()]);
    }
    let manifest = ExperimentManifest::load(folder)?;
    Ok(manifest.runs.iter().map(|entry| place(folder, &entry.label.name)).collect())
}

/// A finished run, opened again: its task, its data and the weights it ended with.
pub(super) struct OpenedRun {
    /// Label and recipe.
    pub task: Task,
    /// The seed of the data.
    pub seed: u64,
    /// The data, checked to be those of the run.
    pub split: DataSplit,
    /// Names and shapes of the weights.
    pub layout: ParamLayout,
    /// The weights.
    pub weights: Vec<f64>,
}

impl OpenedRun {
    /// Opens a run's folder and checks all that is in it; `weights` names another file than its final checkpoint.
    pub(super) fn load(folder: &Path, weights: Option<&Path>, data_folder: Option<&Path>) -> Result<Self, RunError> {
        let path = weights.map_or_else(|| folder.join("checkpoints").join(Checkpoints::FINAL), Path::to_path_buf);
        let unfinished =
            || RunError::Unfinished { folder: folder.to_path_buf(), file: "checkpoints/final.safetensors" };
        let manifest = RunManifest::find(folder)?.ok_or_else(unfinished)?;
        if manifest.status == Status::Finished {
            manifest.check_files(folder)?;
        } else if weights.is_none() {
            return Err(unfinished());
        }
        let task = Task { label: manifest.label.clone(), recipe: read_config(folder)? };
        let seed = task.data_seed();
        let known = Known { sha256: Some(&manifest.data.sha256), files: &manifest.data_files, data_folder };
        let (split, _) = find_data(&task.recipe.data, seed, &known, folder)?;
        let layout = layout(&task.recipe.model, &split.train)?;
        let weights = load_weights(&path, &layout)?;
        Ok(Self { task, seed, split, layout, weights })
    }
}

/// Judges a finished run; writes nothing.
pub fn certify_run(folder: &Path, options: &CertifyOptions) -> Result<Certificate, RunError> {
    let OpenedRun { task, seed, split, layout, weights } =
        OpenedRun::load(folder, options.weights.as_deref(), options.data_folder.as_deref())?;
    let record = describe(&split);
    let (data, model) = (&split.train, &task.recipe.model);
    let claim = task.setup()?.claim(data, options.norm.as_ref()).map_err(|error| match error {
        TrainingError::NoClaim { why } => RunError::NoClaim { run: task.label.name.clone(), why },
        other => other.into(),
    })?;
    let start = matches!(claim, RunClaim::NearestSolution { .. })
        .then_some(StartReference { initialiser: task.recipe.initialiser.clone(), seed: task.label.seed });
    let drawn = start.as_ref().map(|start| draw(start, &layout));
    let subject = Subject { data, model, weights: &weights, start: drawn.as_deref() };
    // other weights did not come on this path
    let course = if options.weights.is_none() { course(folder)? } else { None };
    let judgement = Judgement::of(claim, options.tolerances, &subject, course)?;
    let home = options.weights.as_deref().map_or(folder, |path| path.parent().unwrap_or(Path::new("")));
    let file = match &options.weights {
        None => format!("checkpoints/{}", Checkpoints::FINAL),
        Some(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    Ok(Certificate {
        format: FORMAT.to_owned(),
        version: VERSION,
        library: env!("CARGO_PKG_VERSION").to_owned(),
        run: task.label.name.clone(),
        statement: judgement.statement(),
        claim: judgement.claim,
        tolerances: judgement.tolerances,
        verdict: judgement.verdict,
        data: DataReference {
            spec: from_folder(&task.recipe.data, home),
            seed,
            name: record.name,
            examples: record.examples,
            sha256: record.sha256,
        },
        model: model.clone(),
        weights: WeightsReference { file, entries: weights.len(), sha256: digest(&weights) },
        start,
        evidence: judgement.evidence,
        course: judgement.course,
    })
}

/// The path on which the direction of a run came to its end.
fn course(folder: &Path) -> Result<Option<DirectionCourse>, RecordError> {
    let path = folder.join("metrics.csv");
    if !path.exists() {
        return Ok(None);
    }
    Ok(read_metrics(&path, &read_text(&path)?)?.direction_course())
}

/// Writes a certificate: `certificate.json` in the run's folder, or `NAME.certificate.json` beside other weights.
pub fn save_certificate(
    certificate: &Certificate,
    folder: &Path,
    options: &CertifyOptions,
) -> Result<PathBuf, RunError> {
    let path = match &options.weights {
        None => folder.join(CERTIFICATE_FILE),
        Some(weights) => weights.with_extension(CERTIFICATE_FILE),
    };
    write_atomically(&path, certificate.to_json()?.as_bytes())?;
    Ok(path)
}

/// A certificate that was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedCertificate {
    /// What the file says.
    pub certificate: Certificate,
    /// What is not so; a certificate holds if this is empty.
    pub disagreements: Vec<Disagreement>,
}

impl CheckedCertificate {
    /// Whether the file is right and its claim proven.
    pub fn is_certified(&self) -> bool {
        self.disagreements.is_empty() && self.certificate.verdict.is_certified()
    }
}

/// Checks a certificate from its data and weights alone: their SHA-256, every number of the evidence, the verdict.
pub fn check_certificate(path: &Path, data_folder: Option<&Path>) -> Result<CheckedCertificate, RunError> {
    let certificate = Certificate::from_json(&read_text(path)?)?;
    let home = path.parent().unwrap_or(Path::new(""));
    // where the run's folder was moved away from its data, its manifest knows where they were
    let files = RunManifest::load(home).map_or_else(|_| Vec::new(), |manifest| manifest.data_files);
    let (spec, seed) = (in_full(&certificate.data.spec, home), certificate.data.seed);
    let known = Known { sha256: Some(&certificate.data.sha256), files: &files, data_folder };
    let (split, record) = match find_data(&spec, seed, &known, home) {
        // that they are others is a finding, and so is all that follows
        Err(RunError::OtherData { .. }) => find_data(&spec, seed, &Known { sha256: None, ..known }, home)?,
        other => other?,
    };
    let layout = layout(&certificate.model, &split.train)?;
    // weights that do not fit the certificate's own model: one of the two is not what it was
    let weights = read_weights(&home.join(&certificate.weights.file), &layout).map_err(|error| match error {
        RecordError::Refused { path, what } => RecordError::damaged(&path, what),
        other => other,
    })?;
    let mut disagreements = Vec::new();
    for (what, stated, found) in [
        ("the SHA-256 of the data", &certificate.data.sha256, record.sha256),
        ("the SHA-256 of the weights", &certificate.weights.sha256, digest(&weights)),
        ("the name of the data", &certificate.data.name, record.name),
    ] {
        if *stated != found {
            disagreements.push(Disagreement::new(what, stated, found));
        }
    }
    for (what, stated, found) in [
        ("the number of examples", certificate.data.examples, record.examples),
        ("the number of weights", certificate.weights.entries, weights.len()),
    ] {
        if stated != found {
            disagreements.push(Disagreement::new(what, stated, found));
        }
    }
    // a certificate that lies in its run's folder can be held against the run's measurements
    let own = certificate.weights.file == format!("checkpoints/{}", Checkpoints::FINAL);
    if own && home.join("metrics.csv").exists() {
        let found = course(home)?;
        let words =
            |course: Option<DirectionCourse>| course.map_or("not judged".to_owned(), |course| course.to_string());
        // certificates of earlier versions do not speak of paths
        let silent = certificate.course.is_none() && !found.is_some_and(|course| course.wanders());
        if !silent && words(certificate.course) != words(found) {
            disagreements.push(Disagreement::new("the path", words(certificate.course), words(found)));
        }
    }
    let start = certificate.start.as_ref().map(|start| draw(start, &layout));
    let subject = Subject { data: &split.train, model: &certificate.model, weights: &weights, start: start.as_deref() };
    disagreements.extend(certificate.check(&subject)?);
    Ok(CheckedCertificate { certificate, disagreements })
}

/// What the certificate of a run with these weights says, for reports; nothing if there is none.
pub(super) fn certificate_record(
    folder: &Path,
    weights: Option<&str>,
) -> Result<Option<CertificateRecord>, RecordError> {
    let path = folder.join(CERTIFICATE_FILE);
    if !path.exists() {
        return Ok(None);
    }
    let certificate = Certificate::from_json(&read_text(&path)?)
        .map_err(|error| RecordError::damaged(&path, format!("is damaged: {error}; certify the run again")))?;
    if weights != Some(certificate.weights.sha256.as_str()) {
        return Ok(Some(CertificateRecord {
            holds: None,
            verdict: "of other weights than those the run ended with; certify it again".to_owned(),
            evidence: String::new(),
            tau: None,
            statement: certificate.statement,
        }));
    }
    Ok(Some(CertificateRecord {
        holds: match certificate.verdict {
            Verdict::Certified => Some(true),
            Verdict::Refuted => Some(false),
            Verdict::Inconclusive(_) => None,
        },
        verdict: certificate.verdict.to_string(),
        evidence: certificate.summary(),
        tau: match &certificate.evidence {
            Evidence::Stationarity(evidence) => Some([evidence.tau.lo, evidence.tau.hi]),
            _ => None,
        },
        statement: certificate.statement,
    }))
}

fn layout(model: &ModelSpec, data: &Dataset) -> Result<ParamLayout, RunError> {
    let architecture = model.architecture_on(data)?;
    architecture.footprint(data.len()).require().map_err(ModelError::from)?;
    Ok(architecture.layout().clone())
}

/// Where a run started, drawn again.
fn draw(start: &StartReference, layout: &ParamLayout) -> Vec<f64> {
    start.initialiser.draw(layout, &mut Streams::new(start.seed).stream("init"))
}
