//! The description of data that files, command line and Python speak.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    CircleTeacher, DataError, Dataset, Digits, File, Gaussians, ImageFolder, Matrices, Points, Regression, ReluTeacher,
    SparseGaussians, TeacherStudent, cifar, idx, images::ByteImages,
};
use crate::catalogue::CatalogueEntry;
use crate::numeric::Streams;

/// What is known about generated data beyond the examples.
#[derive(Debug, Clone, PartialEq)]
pub enum GroundTruth {
    /// The unit vector w* with the largest ℓ2 margin over the training set, and that margin.
    Separator {
        /// w*.
        direction: Vec<f64>,
        /// minᵢ yᵢ⟨w*, xᵢ⟩.
        margin: f64,
    },
    /// One w* with X w* = y.
    Solution {
        /// w*.
        weights: Vec<f64>,
    },
    /// A direction that separates the data, not the best one.
    Planted {
        /// u, with signs as entries.
        direction: Vec<f64>,
    },
    /// The network that gave the labels.
    Teacher(ReluTeacher),
}

/// Training examples, perhaps test examples, perhaps what is known about them.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSplit {
    /// What is trained on.
    pub train: Dataset,
    /// What is only looked at.
    pub test: Option<Dataset>,
    /// What a generator knows.
    pub truth: Option<GroundTruth>,
}

/// Where examples come from.
///
/// ```
/// use limitpoint::data::DataSpec;
/// use limitpoint::numeric::Streams;
/// let spec: DataSpec = toml::from_str("[gaussians]\ncount = 12\nmargin = 1.5")?;
/// let split = spec.load(&Streams::new(0))?;
/// assert_eq!((split.train.len(), split.train.dimension()), (12, 20)); // dimension by default
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DataSpec {
    /// Separable clouds with a known ℓ2 max-margin solution.
    Gaussians(Gaussians),
    /// Separable examples of many features, few of them not zero.
    SparseGaussians(SparseGaussians),
    /// Gaussian inputs labelled by a sparse two-layer teacher.
    TeacherStudent(TeacherStudent),
    /// Points of the unit circle labelled by a teacher of a few neurons.
    CircleTeacher(CircleTeacher),
    /// Underdetermined linear regression.
    Regression(Regression),
    /// Matrix-shaped examples with a planted low-rank matrix behind them.
    Matrices(Matrices),
    /// The embedded 8×8 digits.
    Digits(Digits),
    /// Examples written out here.
    Points(Points),
    /// MNIST from its four IDX files.
    Mnist(ImageFolder),
    /// Fashion-MNIST, clothes in the format of MNIST.
    FashionMnist(ImageFolder),
    /// CIFAR-10 from its binary batches.
    Cifar10(ImageFolder),
    /// The user's own file.
    File(File),
}

impl DataSpec {
    /// Generates or reads the examples; the same spec and seed give the same bits. A well-known set of images is read from
    /// the folder its settings name, see [`DataSpec::placed`].
    pub fn load(&self, streams: &Streams) -> Result<DataSplit, DataError> {
        match self {
            Self::Gaussians(spec) => spec.generate(streams),
            Self::SparseGaussians(spec) => spec.generate(streams),
            Self::TeacherStudent(spec) => spec.generate(streams),
            Self::CircleTeacher(spec) => spec.generate(streams),
            Self::Regression(spec) => spec.generate(streams),
            Self::Matrices(spec) => spec.generate(streams),
            Self::Digits(spec) => spec.load(streams),
            Self::Points(spec) => spec.load(),
            Self::Mnist(spec) => {
                let folder = spec.folder("mnist", None)?;
                spec.load(streams, |test| idx::mnist(&folder, test))
            }
            Self::FashionMnist(spec) => {
                let folder = spec.folder("fashion-mnist", None)?;
                spec.load(streams, |test| {
                    let images = idx::mnist(&folder, test)?;
                    Ok(ByteImages { name: format!("fashion-{}", images.name), ..images })
                })
            }
            Self::Cifar10(spec) => {
                let folder = spec.folder("cifar10", None)?;
                spec.load(streams, |test| cifar::cifar10(&folder, test))
            }
            Self::File(spec) => spec.load(streams),
        }
    }

    /// The same examples, with the folder of a well-known set of images named: its own in `data_folder`, unless the
    /// settings name one. Refuses a set that is not there.
    ///
    /// ```
    /// use limitpoint::data::{DataSpec, ImageFolder};
    /// let spec = DataSpec::Mnist(ImageFolder::default());
    /// let error = spec.placed(Some("/nowhere".as_ref())).unwrap_err().to_string();
    /// assert!(error.contains("/nowhere/mnist"), "{error}");
    /// let named = DataSpec::Mnist(ImageFolder { dir: Some("here".into()), ..Default::default() });
    /// assert_eq!(named.placed(None)?, named);
    /// # Ok::<(), limitpoint::data::DataError>(())
    /// ```
    pub fn placed(&self, data_folder: Option<&Path>) -> Result<Self, DataError> {
        let mut placed = self.clone();
        if let Self::Mnist(folder) | Self::FashionMnist(folder) | Self::Cifar10(folder) = &mut placed {
            folder.dir = Some(folder.folder(self.key(), data_folder)?);
        }
        Ok(placed)
    }

    /// The files and folders that the settings name.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Self::File(File { path, test_path, targets_path, test_targets_path, .. }) => {
                let others = [test_path, targets_path, test_targets_path];
                std::iter::once(path).chain(others.into_iter().flatten()).map(PathBuf::as_path).collect()
            }
            Self::Mnist(folder) | Self::FashionMnist(folder) | Self::Cifar10(folder) => {
                folder.dir.iter().map(PathBuf::as_path).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The same examples from files and folders at other places, in the order of [`DataSpec::paths`].
    ///
    /// ```
    /// use limitpoint::data::{DataSpec, File};
    /// let spec = DataSpec::File(File::at("a.csv")).with_paths(|path| std::path::Path::new("folder").join(path));
    /// assert_eq!(spec.paths(), [std::path::Path::new("folder/a.csv")]);
    /// ```
    #[must_use]
    pub fn with_paths(&self, mut place: impl FnMut(&Path) -> PathBuf) -> Self {
        let mut moved = self.clone();
        match &mut moved {
            Self::File(File { path, test_path, targets_path, test_targets_path, .. }) => {
                let others = [test_path, targets_path, test_targets_path];
                std::iter::once(path).chain(others.into_iter().flatten()).for_each(|path| *path = place(path));
            }
            Self::Mnist(folder) | Self::FashionMnist(folder) | Self::Cifar10(folder) => {
                folder.dir.iter_mut().for_each(|path| *path = place(path));
            }
            _ => {}
        }
        moved
    }

    /// The name used in files and on the command line.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Gaussians(_) => "gaussians",
            Self::SparseGaussians(_) => "sparse-gaussians",
            Self::TeacherStudent(_) => "teacher-student",
            Self::CircleTeacher(_) => "circle-teacher",
            Self::Regression(_) => "regression",
            Self::Matrices(_) => "matrices",
            Self::Digits(_) => "digits",
            Self::Points(_) => "points",
            Self::Mnist(_) => "mnist",
            Self::FashionMnist(_) => "fashion-mnist",
            Self::Cifar10(_) => "cifar10",
            Self::File(_) => "file",
        }
    }

    /// Every source of data with its definition and reference.
    pub fn catalogue() -> Vec<CatalogueEntry> {
        let entry = |key, formula, reference| CatalogueEntry { key, formula, reference };
        vec![
            entry(
                "gaussians",
                "x = g − ⟨w*,g⟩w* + y(margin + |⟨w*,g⟩|)w*, g ~ N(0,I); max-margin direction w* known",
                "B.gd3.1, B.thm5",
            ),
            entry(
                "sparse-gaussians",
                "k of d entries not zero, N(0,1) pushed to y⟨u,x⟩ ≥ margin·√k, u ∈ {±1}ᵈ; kept sparse",
                "–",
            ),
            entry(
                "teacher-student",
                "x ~ N(0,I_d), y = sgn Σⱼ u*ⱼ max(⟨w*ⱼ,x⟩,0), few active inputs per neuron",
                "A.eq14, A.expTS",
            ),
            entry("circle-teacher", "‖x‖₂ = 1 in the plane, y = sgn Σⱼ aⱼ max(⟨wⱼ,x⟩,0), |aⱼ|‖wⱼ‖₂ = 1", "C.exp2L"),
            entry("regression", "y = X w*, X Gaussian of chosen rank; solutions w* + ker X", "B.gd2.1, B.thm1"),
            entry("matrices", "X Gaussian matrices, y = sgn⟨W*,X⟩ or ⟨W*,X⟩ with W* of low rank", "B.thm7, B.lift"),
            entry("digits", "1797 embedded 8×8 images in [0,1], ten classes or a pair", "UCI optdigits"),
            entry("points", "examples written out in the recipe", "B.ex2, B.ex4"),
            entry(
                "mnist",
                "28×28 images in [0,1] from IDX files, ten classes or a pair, or halved to 14×14",
                "A.expAdam, D.exp",
            ),
            entry(
                "fashion-mnist",
                "28×28 images of clothes in [0,1] from IDX files, ten classes or a pair",
                "Xiao et al. 2017",
            ),
            entry("cifar10", "3×32×32 images in [0,1] from binary batches, ten classes or a pair", "C.expVGG, D.exp"),
            entry("file", "npy, npz, csv, svmlight, idx, cifar10 or safetensors", "–"),
        ]
    }

    /// One spec of each kind; the first eight load without any file.
    pub fn examples() -> Vec<Self> {
        vec![
            Self::Gaussians(Gaussians::default()),
            Self::SparseGaussians(SparseGaussians::default()),
            Self::TeacherStudent(TeacherStudent { test_count: 100, ..Default::default() }),
            Self::CircleTeacher(CircleTeacher::default()),
            Self::Regression(Regression::default()),
            Self::Matrices(Matrices::default()),
            Self::Digits(Digits { classes: Some([3, 6]), count: Some(100), ..Default::default() }),
            Self::Points(Points::valued(&[&[1.0, 2.0]], &[1.0])),
            Self::Mnist(ImageFolder { pair: Some([3, 6]), count: Some(100), ..Default::default() }),
            Self::FashionMnist(ImageFolder { pair: Some([0, 9]), ..Default::default() }),
            Self::Cifar10(ImageFolder { count: Some(1000), ..Default::default() }),
            Self::File(File::at("data.csv")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_and_examples_name_every_kind_once() {
        let keys: Vec<&str> = DataSpec::examples().iter().map(DataSpec::key).collect();
        let listed: Vec<&str> = DataSpec::catalogue().iter().map(|entry| entry.key).collect();
        assert_eq!(keys, listed);
        // serde's own list of the variants, so that a forgotten one is missed here
        let refusal = serde_json::from_str::<DataSpec>("\"no-such-kind\"").unwrap_err().to_string();
        let (_, expected) = refusal.split_once("expected one of").unwrap();
        let variants: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        assert_eq!(keys, variants);
    }

    #[test]
    fn specs_survive_toml_and_json_under_their_keys() {
        for spec in DataSpec::examples() {
            let text = toml::to_string(&spec).unwrap();
            assert_eq!(toml::from_str::<DataSpec>(&text).unwrap(), spec, "{text}");
            let json = serde_json::to_value(&spec).unwrap();
            assert!(json.get(spec.key()).is_some(), "{json}");
            assert_eq!(serde_json::from_value::<DataSpec>(json).unwrap(), spec);
        }
    }

    #[test]
    fn defaults_fill_in_and_typing_errors_are_refused() {
        for spec in DataSpec::examples() {
            let path = match spec.key() {
                "file" => "path = \"x.csv\"\n",
                "points" => "inputs = [[1.0]]\nvalues = [1.0]\n",
                _ => "",
            };
            assert!(toml::from_str::<DataSpec>(&format!("[{}]\n{path}", spec.key())).is_ok(), "{}", spec.key());
            assert!(
                toml::from_str::<DataSpec>(&format!("[{}]\n{path}cuont = 3", spec.key())).is_err(),
                "{}",
                spec.key()
            );
        }
        assert!(toml::from_str::<DataSpec>("[gausians]").is_err());
        let file: DataSpec = toml::from_str("[file]\npath = \"a.csv\"\ntarget = \"y\"\ntask = \"binary\"").unwrap();
        assert!(matches!(file, DataSpec::File(file) if file.task == crate::data::Task::Binary));
    }

    #[test]
    fn every_path_of_a_spec_is_found_and_can_be_moved() {
        let all = r#"{"file": {"path": "a", "test-path": "b", "targets-path": "c", "test-targets-path": "d"}}"#;
        let file: DataSpec = serde_json::from_str(all).unwrap();
        let mut specs = vec![file];
        specs.extend(
            ["mnist", "fashion-mnist", "cifar10"]
                .map(|key| serde_json::from_str(&format!(r#"{{"{key}": {{"dir": "a"}}}}"#)).unwrap()),
        );
        for spec in specs {
            // every text in the settings but the key is a path here
            let before = serde_json::to_string(&spec).unwrap();
            let moved = spec.with_paths(|path| Path::new("x").join(path));
            let expected = ["a", "b", "c", "d"]
                .iter()
                .fold(before, |text, name| text.replace(&format!("\"{name}\""), &format!("\"x/{name}\"")));
            assert_eq!(serde_json::to_string(&moved).unwrap(), expected);
            assert!(!moved.paths().is_empty() && moved.paths().iter().all(|path| path.starts_with("x")));
        }
    }

    #[test]
    fn what_needs_no_file_loads_the_same_bits_twice() {
        for spec in &DataSpec::examples()[..7] {
            let split = spec.load(&Streams::new(7)).unwrap();
            assert_eq!(split, spec.load(&Streams::new(7)).unwrap(), "{}", spec.key());
            assert_ne!(split.train, spec.load(&Streams::new(8)).unwrap().train, "{}", spec.key());
        }
    }
}
