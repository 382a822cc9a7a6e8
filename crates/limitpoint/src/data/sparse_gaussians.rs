//! Separable examples of many features, few of them not zero.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::{DataSplit, GroundTruth};
use super::teacher_student::distinct;
use super::{DataError, Dataset, Targets, check_size};
use crate::linalg::{SparseMatrix, dot};
use crate::numeric::{RandomStream, Streams};

/// Gaussian values in a few random places, moved to their side of a planted plane.
///
/// ```text
/// S ⊂ {1, …, d} of k places,   g ~ N(0, I_k),   v = u_S/√k,   x_S = g − ⟨v, g⟩ v + y (margin + |⟨v, g⟩|) v
/// u ∈ {−1, +1}ᵈ,   y = +1, −1, +1, …
/// ```
///
/// so that yᵢ⟨u, xᵢ⟩ ≥ margin · √k: the data are separable, with an ℓ∞ margin of at least margin · √k and an ℓ2
/// margin of at least margin · √(k/d), both by u, which is returned but need not be the best. Memory and time grow
/// with the k places, not with d. With popularity s > 0 the low columns occur more often, as common words do: a place
/// is ⌊d t^{1/(1−s)}⌋ for a uniform t, so that a column at the fraction τ of all columns has a chance in proportion
/// to τ^−s.
///
/// | setting | default | purpose | range |
/// |---|---|---|---|
/// | `count` | 200 | training examples | ≥ 1 |
/// | `test-count` | 0 | test examples | ≥ 0 |
/// | `dimension` | 2000 | d | 1 to 2³⁰ |
/// | `nonzeros` | 20 | k, entries of an example that are not zero | 1 to d, to d/2 with popularity |
/// | `margin` | 0.5 | margin | ≥ 0 |
/// | `popularity` | 0 | s | 0 to 0.9 |
/// | `seed` | the run's | fixes the data while the run's seed varies | |
///
/// ```
/// use limitpoint::data::SparseGaussians;
/// use limitpoint::numeric::Streams;
/// let spec = SparseGaussians { count: 10, dimension: 1_000_000, nonzeros: 30, ..Default::default() };
/// let train = spec.generate(&Streams::new(1))?.train;
/// assert_eq!((train.len(), train.dimension(), train.inputs.stored()), (10, 1_000_000, 300));
/// # Ok::<(), limitpoint::data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct SparseGaussians {
    /// Number of training examples.
    pub count: usize,
    /// Number of test examples, possibly none.
    pub test_count: usize,
    /// Number of inputs d.
    pub dimension: usize,
    /// Entries of an example that are not zero.
    pub nonzeros: usize,
    /// The least distance from the planted plane among the vectors with the same places.
    pub margin: f64,
    /// How much more often low columns occur.
    pub popularity: f64,
    /// Seed of the data; the run's if absent.
    pub seed: Option<u64>,
}

impl Default for SparseGaussians {
    fn default() -> Self {
        Self { count: 200, test_count: 0, dimension: 2000, nonzeros: 20, margin: 0.5, popularity: 0.0, seed: None }
    }
}

impl SparseGaussians {
    /// Training set, test set and the planted direction.
    pub fn generate(&self, streams: &Streams) -> Result<DataSplit, DataError> {
        check_size(&[("dimension", self.dimension, 1)], 1)?;
        check_size(&[("count", self.count, 1), ("test-count", self.test_count, 0)], self.nonzeros)?;
        if !(0.0..=0.9).contains(&self.popularity) {
            return Err(DataError::setting("popularity", self.popularity, "from 0 to 0.9"));
        }
        if !(self.margin >= 0.0 && self.margin <= 1e100) {
            return Err(DataError::setting("margin", self.margin, "from 0 to 1e100"));
        }
        let most = if self.popularity == 0.0 { self.dimension } else { self.dimension.div_ceil(2) };
        if self.nonzeros == 0 || self.nonzeros > most {
            let allowed = format!("from 1 to {most} at dimension {}", self.dimension);
            return Err(DataError::setting("nonzeros", self.nonzeros, allowed));
        }
        let streams = self.seed.map_or(*streams, Streams::new);
        let mut stream = streams.stream("teacher");
        let direction: Vec<f64> = (0..self.dimension).map(|_| stream.sign()).collect();
        let mut stream = streams.stream("data");
        let train = self.draw(self.count, &direction, &mut stream)?;
        let test = match self.test_count {
            0 => None,
            count => Some(self.draw(count, &direction, &mut stream)?),
        };
        Ok(DataSplit { train, test, truth: Some(GroundTruth::Planted { direction }) })
    }

    fn draw(&self, count: usize, direction: &[f64], stream: &mut RandomStream) -> Result<Dataset, DataError> {
        let (k, scale) = (self.nonzeros, (self.nonzeros as f64).sqrt());
        let (mut columns, mut values) = (Vec::with_capacity(count * k), Vec::with_capacity(count * k));
        let labels: Vec<f64> = (0..count).map(|i| if i.is_multiple_of(2) { 1.0 } else { -1.0 }).collect();
        let (mut row, mut unit) = (vec![0.0; k], vec![0.0; k]);
        for label in &labels {
            let places = self.places(stream);
            unit.iter_mut().zip(&places).for_each(|(v, &j)| *v = direction[j] / scale);
            stream.fill_normal(&mut row);
            let along = dot(&row, &unit);
            let shift = label * (self.margin + along.abs()) - along;
            columns.extend(places.iter().map(|&j| j as u32));
            values.extend(row.iter().zip(&unit).map(|(g, v)| g + shift * v));
        }
        let inputs = SparseMatrix::from_parts(self.dimension, (0..=count).map(|i| i * k).collect(), columns, values)?;
        Dataset::new("sparse gaussians", inputs, Targets::Binary(labels), vec![self.dimension])
    }

    /// `nonzeros` different columns, increasing.
    fn places(&self, stream: &mut RandomStream) -> Vec<usize> {
        if self.popularity == 0.0 {
            return distinct(self.dimension, self.nonzeros, stream);
        }
        // at most half of the columns are taken, so at least 6 % of the draws are new
        let mut chosen = std::collections::BTreeSet::new();
        while chosen.len() < self.nonzeros {
            let fraction = stream.uniform().powf(1.0 / (1.0 - self.popularity));
            chosen.insert(((fraction * self.dimension as f64) as usize).min(self.dimension - 1));
        }
        chosen.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_its_places_and_its_margin() {
        for (dimension, nonzeros, margin, popularity) in
            [(1, 1, 0.5, 0.0), (50, 50, 0.1, 0.0), (300, 7, 0.0, 0.0), (40, 20, 2.0, 0.9), (100_000, 30, 1.0, 0.5)]
        {
            let spec =
                SparseGaussians { count: 31, test_count: 10, dimension, nonzeros, margin, popularity, seed: None };
            let split = spec.generate(&Streams::new(4)).unwrap();
            let Some(GroundTruth::Planted { direction }) = &split.truth else { panic!("the direction is returned") };
            assert!(direction.len() == dimension && direction.iter().all(|u| u.abs() == 1.0));
            for data in [&split.train, split.test.as_ref().unwrap()] {
                assert_eq!((data.inputs.stored(), data.dimension()), (data.len() * nonzeros, dimension));
                for (i, sign) in data.signs().unwrap().iter().enumerate() {
                    let reached = sign * data.inputs.row_dot(i, direction);
                    assert!(reached >= margin * (nonzeros as f64).sqrt() - 1e-12, "{reached}");
                }
            }
        }
    }

    #[test]
    fn popular_columns_come_first() {
        let low = |popularity| {
            let spec = SparseGaussians { count: 500, dimension: 1000, nonzeros: 10, popularity, ..Default::default() };
            let train = spec.generate(&Streams::new(2)).unwrap().train;
            let super::super::Inputs::Sparse(inputs) = &train.inputs else { panic!("sparse") };
            inputs.columns().iter().filter(|&&j| j < 100).count() as f64 / 5000.0
        };
        assert!((low(0.0) - 0.1).abs() < 0.015, "{}", low(0.0));
        // √0.1 = 0.316 of all draws, less those that were there already
        assert!((low(0.5) - 0.3).abs() < 0.03, "{}", low(0.5));
    }

    #[test]
    fn the_same_seed_gives_the_same_bits() {
        let spec = SparseGaussians::default();
        assert_eq!(spec.generate(&Streams::new(6)).unwrap(), spec.generate(&Streams::new(6)).unwrap());
        assert_ne!(spec.generate(&Streams::new(6)).unwrap(), spec.generate(&Streams::new(7)).unwrap());
        let longer = SparseGaussians { test_count: 5, ..spec.clone() };
        assert_eq!(spec.generate(&Streams::new(6)).unwrap().train, longer.generate(&Streams::new(6)).unwrap().train);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let base = SparseGaussians::default();
        for spec in [
            SparseGaussians { count: 0, ..base.clone() },
            SparseGaussians { dimension: 0, ..base.clone() },
            SparseGaussians { dimension: usize::MAX, ..base.clone() },
            SparseGaussians { count: usize::MAX, ..base.clone() },
            SparseGaussians { nonzeros: 0, ..base.clone() },
            SparseGaussians { nonzeros: 2001, ..base.clone() },
            SparseGaussians { nonzeros: 1001, popularity: 0.1, ..base.clone() },
            SparseGaussians { nonzeros: usize::MAX, ..base.clone() },
            SparseGaussians { margin: -0.1, ..base.clone() },
            SparseGaussians { margin: f64::NAN, ..base.clone() },
            SparseGaussians { popularity: 1.0, ..base.clone() },
            SparseGaussians { popularity: f64::NAN, ..base.clone() },
        ] {
            let refused = spec.generate(&Streams::new(0));
            assert!(matches!(refused, Err(DataError::Setting { .. } | DataError::TooLarge(_))), "{spec:?}");
        }
    }
}
