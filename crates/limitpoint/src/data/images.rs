//! Labelled 8-bit images, chosen before they are widened, and the folders they live in.
//!
//! MNIST as `f64` takes 376 MB, as bytes 47 MB; so subsets are drawn on the bytes.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dataset::{draw, draw_balanced};
use super::spec::DataSplit;
use super::{DataError, Dataset, Normalisation, Targets};
use crate::linalg::Matrix;
use crate::numeric::{RandomStream, Streams};

/// The environment variable that names the folder of downloaded datasets.
const DATA_VARIABLE: &str = "LIMITPOINT_DATA";

/// The usual folder of downloaded data sets, one subfolder each: `LIMITPOINT_DATA`, else `limitpoint` in the user's cache
/// folder (`XDG_CACHE_HOME`, else `~/.cache`, or `LOCALAPPDATA` on Windows); none where no such variable is set.
///
/// Nothing in this library looks there by itself: whoever wants it passes it on, for example to [`DataSpec::placed`].
///
/// [`DataSpec::placed`]: super::DataSpec::placed
///
/// ```
/// if let Some(folder) = limitpoint::data::data_folder() {
///     assert!(!folder.as_os_str().is_empty());
/// }
/// ```
pub fn data_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable(DATA_VARIABLE).or_else(|| {
        let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
        Some(cache.or_else(|| variable("LOCALAPPDATA"))?.join("limitpoint"))
    })
}

/// Images of one shape with labels 0..`classes`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ByteImages {
    /// Where they come from.
    pub name: String,
    /// Shape of one image.
    pub shape: Vec<usize>,
    /// Number of classes.
    pub classes: usize,
    /// One label per image.
    pub labels: Vec<u8>,
    /// The images, one after the other.
    pub pixels: Vec<u8>,
}

impl ByteImages {
    /// The chosen images scaled to [0, 1] by 1/255.
    pub fn dataset(&self, choice: &[usize], pair: Option<[usize; 2]>) -> Result<Dataset, DataError> {
        let size: usize = self.shape.iter().product();
        let mut data = Vec::with_capacity(choice.len() * size);
        for &i in choice {
            data.extend(self.pixels[i * size..(i + 1) * size].iter().map(|&pixel| f64::from(pixel) / 255.0));
        }
        let label = |&i: &usize| usize::from(self.labels[i]);
        let (name, targets) = match pair {
            None => (
                self.name.clone(),
                Targets::Classes { labels: choice.iter().map(label).collect(), count: self.classes },
            ),
            Some([positive, negative]) => (
                format!("{}, {positive} against {negative}", self.name),
                Targets::Binary(choice.iter().map(|i| if label(i) == positive { 1.0 } else { -1.0 }).collect()),
            ),
        };
        Dataset::new(name, Matrix { rows: choice.len(), cols: size, data }, targets, self.shape.clone())
    }

    /// `count` random images (all, in order, if none is given) of the pair or of all classes.
    fn choose(
        &self,
        folder: &ImageFolder,
        count: Option<usize>,
        stream: &mut RandomStream,
    ) -> Result<Dataset, DataError> {
        let mut groups = vec![Vec::new(); self.classes];
        for (i, &label) in self.labels.iter().enumerate() {
            groups[usize::from(label)].push(i); // labels are below `classes`, checked when read
        }
        if let Some([positive, negative]) = folder.pair {
            if positive == negative || positive.max(negative) >= self.classes {
                let allowed = format!("two different classes below {}", self.classes);
                return Err(DataError::setting("pair", format!("[{positive}, {negative}]"), allowed));
            }
            groups = vec![std::mem::take(&mut groups[positive]), std::mem::take(&mut groups[negative])];
        }
        let mut pool = groups.concat();
        pool.sort_unstable();
        let choice = match count {
            None => pool,
            Some(asked) if asked == 0 || asked > pool.len() => {
                let what = "are there".to_owned();
                return Err(DataError::TooFew { name: self.name.clone(), what, asked, available: pool.len() });
            }
            Some(asked) if folder.balanced => draw_balanced(&self.name, groups, asked, stream)?,
            Some(asked) => draw(pool, asked, stream),
        };
        let mut chosen = self.dataset(&choice, folder.pair)?;
        if folder.halve {
            chosen = chosen.halve_images()?;
        }
        if let Some(sides) = folder.crop {
            chosen = chosen.crop_images(sides)?;
        }
        if let Some(sides) = folder.resize {
            chosen = chosen.resize_images(sides)?;
        }
        Ok(chosen)
    }
}

/// A folder of well-known images and what to take from it; pixels are scaled to [0, 1].
///
/// | setting | default | purpose |
/// |---|---|---|
/// | `dir` | `mnist`, `fashion-mnist` or `cifar10` in the folder of data sets | the folder, from the recipe's own on |
/// | `pair` | all ten classes | `[a, b]`: the binary task a (+1) against b (−1) |
/// | `count` | all | number of training images, drawn at random |
/// | `test-count` | all | number of test images; 0 for no test set |
/// | `balanced` | false | draw the labels equally often |
/// | `halve` | false | means of 2×2 squares, 28×28 becomes 14×14 |
/// | `crop` | whole | `[height, width]` of the middle of every image, after halving |
/// | `resize` | as they are | `[height, width]`, after cropping: means over the part that a new pixel covers |
/// | `normalise` | none | centre, standardise or unit-norm |
/// | `seed` | the run's | fixes the draw while the run's seed varies |
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ImageFolder {
    /// The folder; by default its own in the folder of data sets.
    pub dir: Option<PathBuf>,
    /// Classes that become +1 and −1; all classes if absent.
    pub pair: Option<[usize; 2]>,
    /// Number of training images; all if absent.
    pub count: Option<usize>,
    /// Number of test images; all if absent, none if 0.
    pub test_count: Option<usize>,
    /// Whether labels are drawn equally often.
    pub balanced: bool,
    /// Whether images are halved by 2×2 means.
    pub halve: bool,
    /// Height and width of the middle that is taken of every image.
    pub crop: Option<[usize; 2]>,
    /// Height and width that images are brought to.
    pub resize: Option<[usize; 2]>,
    /// What is done to the inputs afterwards.
    pub normalise: Normalisation,
    /// Seed of the draw; the run's if absent.
    pub seed: Option<u64>,
}

impl ImageFolder {
    /// The folder that the settings name, else `subfolder` of the folder of data sets.
    pub(super) fn folder(&self, subfolder: &str, data_folder: Option<&Path>) -> Result<PathBuf, DataError> {
        if let Some(dir) = &self.dir {
            return Ok(dir.clone());
        }
        let searched = data_folder.map(|root| root.join(subfolder));
        match searched {
            Some(folder) if folder.is_dir() => Ok(folder),
            searched => Err(DataError::Missing {
                what: subfolder.to_owned(),
                searched,
                remedy: format!(
                    "run `limitpoint data fetch {subfolder}`, set dir to the folder with its files, or {DATA_VARIABLE} to the \
                     folder that contains {subfolder}/"
                ),
            }),
        }
    }

    /// Draws from training and test images; `read(true)` reads the test set and is called only if it is wanted.
    pub(super) fn load(
        &self,
        streams: &Streams,
        read: impl Fn(bool) -> Result<ByteImages, DataError>,
    ) -> Result<DataSplit, DataError> {
        let mut stream = self.seed.map_or(*streams, Streams::new).stream("data");
        let mut train = read(false)?.choose(self, self.count, &mut stream)?;
        let mut test = match self.test_count {
            Some(0) => None,
            count => Some(read(true)?.choose(self, count, &mut stream)?),
        };
        self.normalise.apply(&mut train, test.as_mut())?;
        Ok(DataSplit { train, test, truth: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(test: bool) -> Result<ByteImages, DataError> {
        let labels: Vec<u8> = (0..30).map(|i| i % 3).collect();
        let pixels = (0..30).flat_map(|i| [i, 255, 0, u8::from(test)]).collect();
        Ok(ByteImages { name: "tiny".into(), shape: vec![2, 2], classes: 3, labels, pixels })
    }

    #[test]
    fn pairs_counts_and_balance() {
        let folder = ImageFolder { pair: Some([2, 0]), count: Some(8), balanced: true, ..Default::default() };
        let split = folder.load(&Streams::new(1), images).unwrap();
        let signs = split.train.signs().unwrap();
        assert_eq!((signs.len(), signs.iter().sum::<f64>()), (8, 0.0));
        for (i, sign) in signs.iter().enumerate() {
            let number = (split.train.dense().unwrap()[(i, 0)] * 255.0).round() as usize;
            assert_eq!(number % 3, if *sign > 0.0 { 2 } else { 0 });
        }
        assert_eq!(split.test.unwrap().len(), 20);
        let none = ImageFolder { test_count: Some(0), halve: true, ..Default::default() };
        let split = none.load(&Streams::new(1), images).unwrap();
        assert_eq!((split.train.len(), split.train.dimension(), split.test), (30, 1, None));
    }

    #[test]
    fn the_seed_setting_outranks_the_run() {
        let folder = ImageFolder { count: Some(5), seed: Some(9), ..Default::default() };
        let (a, b) = (folder.load(&Streams::new(1), images).unwrap(), folder.load(&Streams::new(2), images).unwrap());
        assert_eq!(a, b);
        let free = ImageFolder { count: Some(5), ..Default::default() };
        let (a, b) = (free.load(&Streams::new(1), images).unwrap(), free.load(&Streams::new(2), images).unwrap());
        assert_ne!(a.train, b.train);
    }

    #[test]
    fn impossible_choices_are_refused() {
        for folder in [
            ImageFolder { pair: Some([1, 1]), ..Default::default() },
            ImageFolder { pair: Some([1, 3]), ..Default::default() },
            ImageFolder { count: Some(31), ..Default::default() },
            ImageFolder { count: Some(0), ..Default::default() },
        ] {
            assert!(folder.load(&Streams::new(1), images).is_err(), "{folder:?}");
        }
    }
}
