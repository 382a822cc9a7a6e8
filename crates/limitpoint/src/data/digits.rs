//! The 1797 handwritten 8×8 digits that travel inside the program.

use std::io::Read;

use flate2::read::DeflateDecoder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::DataSplit;
use super::{DataError, Dataset, Normalisation, Targets};
use crate::linalg::Matrix;
use crate::numeric::Streams;

/// Grey values 0 … 16 of all images, row by row, then their labels 0 … 9, a byte each, deflated. Origin and licence are
/// in `assets/digits.LICENSE`.
const EMBEDDED: &[u8] = include_bytes!("assets/digits.deflate");
/// Number of images.
const COUNT: usize = 1797;
/// Pixels of an image.
const PIXELS: usize = 64;

/// Real images without a download: 8×8 pixels in [0, 1], ten classes or one pair of them.
///
/// The test part of the "Optical Recognition of Handwritten Digits" data (Alpaydin and Kaynak 1998, UCI repository,
/// CC BY 4.0), which scikit-learn's `load_digits` has too; the stored grey values 0 … 16 are divided by 16. Train and test are told apart by the stream `split`.
///
/// | setting | default | purpose |
/// |---|---|---|
/// | `classes` | all ten | `[a, b]`: the binary task a (+1) against b (−1) |
/// | `count` | three quarters | number of training images; the others are the test set |
/// | `normalise` | none | centre, standardise or unit-norm |
/// | `seed` | the run's | fixes the split while the run's seed varies |
///
/// ```
/// use limitpoint::data::Digits;
/// use limitpoint::numeric::Streams;
/// let split = Digits { classes: Some([3, 6]), count: Some(100), ..Default::default() }.load(&Streams::new(0))?;
/// assert_eq!((split.train.len(), split.test.unwrap().len()), (100, 264)); // 183 threes and 181 sixes in all
/// # Ok::<(), limitpoint::data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Digits {
    /// Digits that become +1 and −1; all ten if absent.
    pub classes: Option<[usize; 2]>,
    /// Number of training images; three quarters if absent.
    pub count: Option<usize>,
    /// What is done to the inputs afterwards.
    pub normalise: Normalisation,
    /// Seed of the split; the run's if absent.
    pub seed: Option<u64>,
}

impl Digits {
    /// All 1797 images, in their own order.
    pub fn all() -> Result<Dataset, DataError> {
        let mut bytes = Vec::with_capacity(COUNT * (PIXELS + 1));
        // what is embedded is whole: a test compares its SHA-256
        DeflateDecoder::new(EMBEDDED).read_to_end(&mut bytes).expect("the embedded digits are whole");
        let (greys, labels) = bytes.split_at(COUNT * PIXELS);
        let data = greys.iter().map(|&grey| f64::from(grey) / 16.0).collect();
        let labels = labels.iter().map(|&label| usize::from(label)).collect();
        let inputs = Matrix { rows: COUNT, cols: PIXELS, data };
        Dataset::new("digits", inputs, Targets::Classes { labels, count: 10 }, vec![8, 8])
    }

    /// Training and test images.
    pub fn load(&self, streams: &Streams) -> Result<DataSplit, DataError> {
        let mut all = Self::all()?;
        if let Some([positive, negative]) = self.classes {
            all = all.pair(positive, negative)?;
        }
        let count = self.count.unwrap_or(all.len() * 3 / 4);
        let mut stream = self.seed.map_or(*streams, Streams::new).stream("split");
        let (mut train, test) = all.split(count, &mut stream)?;
        let mut test = Some(test);
        self.normalise.apply(&mut train, test.as_mut())?;
        Ok(DataSplit { train, test, truth: None })
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_digits_are_the_known_ones() {
        let all = Digits::all().unwrap();
        assert_eq!((all.len(), all.dimension()), (1797, 64));
        let Targets::Classes { labels, count: 10 } = &all.targets else { panic!("ten classes") };
        let mut histogram = [0; 10];
        labels.iter().for_each(|&label| histogram[label] += 1);
        // class counts and first row as published with scikit-learn's load_digits
        assert_eq!(histogram, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        assert_eq!(labels[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let first: Vec<f64> = all.dense().unwrap().row(0)[..8].iter().map(|x| x * 16.0).collect();
        assert_eq!(first, [0.0, 0.0, 5.0, 13.0, 9.0, 1.0, 0.0, 0.0]);
        assert!(all.dense().unwrap().data.iter().all(|x| (0.0..=1.0).contains(x)));
    }

    #[test]
    fn every_bit_of_the_digits_is_as_ever() {
        let all = Digits::all().unwrap();
        let mut digest = Sha256::new();
        all.dense().unwrap().data.iter().for_each(|x| digest.update(x.to_le_bytes()));
        let Targets::Classes { labels, .. } = &all.targets else { panic!("ten classes") };
        labels.iter().for_each(|&label| digest.update((label as u64).to_le_bytes()));
        let sum: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        // of the grey values in the crate smartcore 0.7.0, divided by 16, and its labels, by Python's hashlib
        assert_eq!(sum, "5889d26819cf830d070975af3c711419825fa0a078137b3d80b8e7d06bd58da0");
    }

    #[test]
    fn pairs_and_splits() {
        let split = Digits { classes: Some([3, 8]), ..Default::default() }.load(&Streams::new(1)).unwrap();
        assert_eq!((split.train.len(), split.test.unwrap().len()), (267, 90));
        assert!(split.train.signs().is_ok());
        let ten =
            Digits { normalise: Normalisation::Standardise, ..Default::default() }.load(&Streams::new(1)).unwrap();
        assert_eq!(ten.train.len(), 1347);
        assert!(Digits { classes: Some([3, 10]), ..Default::default() }.load(&Streams::new(1)).is_err());
        assert!(Digits { count: Some(1797), ..Default::default() }.load(&Streams::new(1)).is_err());
    }
}
