//! Data from the user's own files, whatever their format.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::csv_table::{self, TableLayout, TargetColumn, target_column};
use super::elements::Array;
use super::source::{Source, gunzip_if_needed, read_bytes};
use super::spec::DataSplit;
use super::{Channels, DataError, Dataset, Normalisation, Targets, Task, cifar, idx, npy, safetensors_file, svmlight};
use crate::linalg::Matrix;
use crate::numeric::Streams;

/// The formats that can be read; all but npz and safetensors may be gzipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileFormat {
    /// One NumPy array: a table with a target column, or inputs with `targets-path`.
    Npy,
    /// A NumPy archive with the arrays `inputs` and `targets`.
    Npz,
    /// A table of numbers, with or without titles.
    Csv,
    /// Sparse lines `label index:value …`, indices from 1. They stay sparse where a dense matrix would have more than
    /// 10⁷ entries, less than a tenth of them not zero; a test file follows the training file.
    Svmlight,
    /// An IDX array, with its labels in `targets-path`.
    Idx,
    /// A batch of CIFAR-10 records; pixels are scaled to [0, 1].
    Cifar10,
    /// A safetensors file with the tensors `inputs` and `targets`.
    Safetensors,
}

impl FileFormat {
    /// By the end of the name: npy, npz, csv, tsv, svm, svmlight, libsvm, idx, ubyte, bin, safetensors, each also with
    /// .gz.
    pub fn of(path: &Path) -> Result<Self, DataError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit(['.', '-']).next().unwrap_or_default() {
            "npy" => Ok(Self::Npy),
            "npz" => Ok(Self::Npz),
            "csv" | "tsv" => Ok(Self::Csv),
            "svm" | "svmlight" | "libsvm" => Ok(Self::Svmlight),
            "idx" | "ubyte" => Ok(Self::Idx),
            "bin" => Ok(Self::Cifar10),
            "safetensors" => Ok(Self::Safetensors),
            _ => Err(DataError::UnknownFormat { path: path.to_owned() }),
        }
    }
}

/// A file of examples.
///
/// | setting | default | purpose |
/// |---|---|---|
/// | `path` | required | the file; all paths start at the folder of the recipe that names them |
/// | `format` | by the name | npy, npz, csv, svmlight, idx, cifar10 or safetensors |
/// | `task` | auto | how targets are read, see [`Task`] |
/// | `test-path` | none | a second file for testing |
/// | `targets-path`, `test-targets-path` | none | targets in their own file (npy, idx) |
/// | `inputs`, `targets` | `X`, `y` | names of the arrays (npz, safetensors) |
/// | `target` | last | target column by title or number from 0 (csv, npy tables) |
/// | `header` | by the first line: titles if no field is a number, refused if some are | whether it holds titles (csv) |
/// | `delimiter` | `,` (tab for .tsv) | character between fields (csv) |
/// | `dimension` | largest index | number of inputs (svmlight) |
/// | `channels` | first | `last` for images of height × width × channels |
/// | `crop` | whole | `[height, width]` of the middle of every image |
/// | `resize` | as they are | `[height, width]`, after cropping: means over the part that a new pixel covers |
/// | `count` | all | training examples, drawn by the stream `split`; the others become the test set |
/// | `normalise` | none | centre, standardise or unit-norm |
/// | `seed` | the run's | fixes the split while the run's seed varies |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    /// The file of training examples.
    pub path: PathBuf,
    /// Its format; told by the name if absent.
    #[serde(default)]
    pub format: Option<FileFormat>,
    /// How targets are read.
    #[serde(default)]
    pub task: Task,
    /// The file of test examples.
    #[serde(default)]
    pub test_path: Option<PathBuf>,
    /// The file of the training targets.
    #[serde(default)]
    pub targets_path: Option<PathBuf>,
    /// The file of the test targets.
    #[serde(default)]
    pub test_targets_path: Option<PathBuf>,
    /// Name of the array of inputs; `X` if absent.
    #[serde(default)]
    pub inputs: Option<String>,
    /// Name of the array of targets; `y` if absent.
    #[serde(default)]
    pub targets: Option<String>,
    /// Column of the targets; the last if absent.
    #[serde(default)]
    pub target: Option<TargetColumn>,
    /// Whether the first line of a table holds titles; if absent it does where none of its fields is a number.
    #[serde(default)]
    pub header: Option<bool>,
    /// Character between fields.
    #[serde(default)]
    pub delimiter: Option<char>,
    /// Number of inputs of sparse examples.
    #[serde(default)]
    pub dimension: Option<usize>,
    /// Where the channels of images are; `last` for height × width × channels.
    #[serde(default, skip_serializing_if = "Channels::is_first")]
    pub channels: Channels,
    /// Height and width of the middle that is taken of every image; all of it if absent.
    #[serde(default)]
    pub crop: Option<[usize; 2]>,
    /// Height and width that images are brought to after cropping; theirs if absent.
    #[serde(default)]
    pub resize: Option<[usize; 2]>,
    /// Number of training examples; all if absent.
    #[serde(default)]
    pub count: Option<usize>,
    /// What is done to the inputs afterwards.
    #[serde(default)]
    pub normalise: Normalisation,
    /// Seed of the split; the run's if absent.
    #[serde(default)]
    pub seed: Option<u64>,
}

impl File {
    /// The file at `path` with every other setting at its default.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            format: None,
            task: Task::Auto,
            test_path: None,
            targets_path: None,
            test_targets_path: None,
            inputs: None,
            targets: None,
            target: None,
            header: None,
            delimiter: None,
            dimension: None,
            channels: Channels::First,
            crop: None,
            resize: None,
            count: None,
            normalise: Normalisation::None,
            seed: None,
        }
    }

    /// Training and test examples.
    pub fn load(&self, streams: &Streams) -> Result<DataSplit, DataError> {
        let mut train = self.read(&self.path, self.targets_path.as_deref(), self.task, self.dimension, None)?;
        let mut test = None;
        if let Some(path) = &self.test_path {
            let (task, dimension, sparse) =
                (Task::of(&train.targets), Some(train.dimension()), train.inputs.is_sparse());
            let mut other = self.read(path, self.test_targets_path.as_deref(), task, dimension, Some(sparse))?;
            if other.input_shape != train.input_shape {
                return Err(DataError::Transform {
                    name: other.name,
                    problem: format!(
                        "test examples have shape {:?}, training examples {:?}",
                        other.input_shape, train.input_shape
                    ),
                    remedy: "give both files the same inputs",
                });
            }
            if let (Targets::Classes { count, .. }, Targets::Classes { count: other, .. }) =
                (&mut train.targets, &mut other.targets)
            {
                let most = (*count).max(*other);
                (*count, *other) = (most, most);
            }
            test = Some(other);
        }
        if let Some(count) = self.count {
            let mut stream = self.seed.map_or(*streams, Streams::new).stream("split");
            if test.is_some() || count == train.len() {
                train = train.sample(count, &mut stream)?;
            } else {
                let (chosen, rest) = train.split(count, &mut stream)?;
                (train, test) = (chosen, Some(rest));
            }
        }
        self.normalise.apply(&mut train, test.as_mut())?;
        Ok(DataSplit { train, test, truth: None })
    }

    /// The examples of a file as the settings want their images.
    fn read(
        &self,
        path: &Path,
        targets_path: Option<&Path>,
        task: Task,
        dimension: Option<usize>,
        sparse: Option<bool>,
    ) -> Result<Dataset, DataError> {
        let mut data = self.read_whole(path, targets_path, task, dimension, sparse)?;
        if self.channels == Channels::Last {
            data = data.channels_first()?;
        }
        if let Some(sides) = self.crop {
            data = data.crop_images(sides)?;
        }
        if let Some(sides) = self.resize {
            data = data.resize_images(sides)?;
        }
        Ok(data)
    }

    fn read_whole(
        &self,
        path: &Path,
        targets_path: Option<&Path>,
        task: Task,
        dimension: Option<usize>,
        sparse: Option<bool>,
    ) -> Result<Dataset, DataError> {
        let format = self.format.map_or_else(|| FileFormat::of(path), Ok)?;
        let file = path.display().to_string();
        let source = Source::new(&file, "data file");
        let bytes = gunzip_if_needed(read_bytes(path)?, source)?;
        let name = path.file_name().map_or_else(|| file.clone(), |name| name.to_string_lossy().into_owned());
        let inputs_key = self.inputs.as_deref().unwrap_or("X");
        let targets_key = self.targets.as_deref().unwrap_or("y");
        let mut notes = Vec::new();
        let (inputs, targets) = match format {
            FileFormat::Npy => {
                let array = npy::parse_npy(&bytes, &file)?;
                match targets_path {
                    Some(path) => {
                        let (targets_file, bytes) = (path.display().to_string(), read_bytes(path)?);
                        let source = Source::new(&targets_file, "NPY");
                        (array, column(npy::parse_npy(&gunzip_if_needed(bytes, source)?, &targets_file)?, source)?)
                    }
                    None => self.split_table(array, Source::new(&file, "NPY"))?,
                }
            }
            FileFormat::Npz => {
                let targets = npy::parse_npz(&bytes, &file, targets_key)?;
                (npy::parse_npz(&bytes, &file, inputs_key)?, column(targets, Source::new(&file, "NPZ"))?)
            }
            FileFormat::Safetensors => {
                let targets = safetensors_file::parse(&bytes, &file, targets_key)?;
                (
                    safetensors_file::parse(&bytes, &file, inputs_key)?,
                    column(targets, Source::new(&file, "safetensors"))?,
                )
            }
            FileFormat::Csv => {
                let tabs = name.to_lowercase().trim_end_matches(".gz").ends_with(".tsv");
                let delimiter = self.delimiter.unwrap_or(if tabs { '\t' } else { ',' });
                let Some(delimiter) =
                    u8::try_from(delimiter).ok().filter(|byte| !byte.is_ascii_alphanumeric() && separates(*byte))
                else {
                    return Err(DataError::setting(
                        "delimiter",
                        format!("{delimiter:?}"),
                        "an ASCII character that no number, quote or line end is made of",
                    ));
                };
                let layout = TableLayout { header: self.header, delimiter, target: self.target.as_ref() };
                let table = csv_table::parse(&bytes, &file, layout)?;
                notes.extend(table.note);
                (table.inputs, table.targets)
            }
            FileFormat::Svmlight => {
                let (inputs, targets) = svmlight::parse(&bytes, &file, dimension, sparse)?;
                let shape = vec![inputs.cols()];
                return Dataset::new(&name, inputs, task.targets(&name, targets)?, shape);
            }
            FileFormat::Idx => {
                let Some(path) = targets_path else {
                    let problem = "an IDX file holds inputs or labels, not both";
                    return Err(source.refuse(
                        "settings",
                        problem,
                        "set targets-path (and test-targets-path) to the file of labels",
                    ));
                };
                let targets_file = path.display().to_string();
                let targets = idx::parse(read_bytes(path)?, &targets_file)?.array();
                (idx::parse(bytes, &file)?.array(), column(targets, Source::new(&targets_file, "IDX"))?)
            }
            FileFormat::Cifar10 => {
                let mut images = cifar::no_images(&name);
                cifar::append(&mut images, &bytes, &file)?;
                if matches!(task, Task::Auto | Task::Classes) {
                    return images.dataset(&(0..images.labels.len()).collect::<Vec<_>>(), None);
                }
                let shape = vec![images.labels.len(), 3, 32, 32];
                let values = images.pixels.iter().map(|&pixel| f64::from(pixel) / 255.0).collect();
                (Array { shape, values }, images.labels.iter().map(|&label| f64::from(label)).collect())
            }
        };
        Ok(Dataset { notes, ..assemble(&name, inputs, targets, task)? })
    }

    /// A two-dimensional array as inputs and one target column.
    fn split_table(&self, array: Array, source: Source) -> Result<(Array, Vec<f64>), DataError> {
        let [rows, columns @ 2..=usize::MAX] = array.shape[..] else {
            let problem = format!("shape {:?}", array.shape);
            return Err(source.refuse(
                "header",
                problem,
                "a lone array must be a table with inputs and a target column; or set targets-path",
            ));
        };
        let target = target_column(source, self.target.as_ref(), None, columns)?;
        let targets = array.values.chunks_exact(columns).map(|row| row[target]).collect();
        let values =
            array.values.iter().enumerate().filter(|(i, _)| i % columns != target).map(|(_, &value)| value).collect();
        Ok((Array { shape: vec![rows, columns - 1], values }, targets))
    }
}

/// Whether a byte can stand between numbers.
fn separates(byte: u8) -> bool {
    byte.is_ascii() && !b"\"\r\n+-.".contains(&byte)
}

/// The values of an array that is one column or one row.
fn column(array: Array, source: Source) -> Result<Vec<f64>, DataError> {
    match array.shape[..] {
        [_] | [_, 1] => Ok(array.values),
        _ => Err(source.refuse(
            "header",
            format!("targets of shape {:?}", array.shape),
            "targets are one number per example",
        )),
    }
}

/// A dataset from an array whose first index counts the examples.
fn assemble(name: &str, inputs: Array, targets: Vec<f64>, task: Task) -> Result<Dataset, DataError> {
    let (rows, input_shape) = match inputs.shape.split_first() {
        None => (0, vec![]),
        Some((&rows, [])) => (rows, vec![1]),
        Some((&rows, rest)) => (rows, rest.to_vec()),
    };
    let columns = inputs.values.len().checked_div(rows).unwrap_or(0);
    if columns == 0 {
        return Err(DataError::Empty { name: name.to_owned(), rows, columns });
    }
    if targets.len() != rows {
        return Err(DataError::Lengths { name: name.to_owned(), inputs: rows, targets: targets.len() });
    }
    let targets = task.targets(name, targets)?;
    Dataset::new(name, Matrix { rows, cols: columns, data: inputs.values }, targets, input_shape)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
