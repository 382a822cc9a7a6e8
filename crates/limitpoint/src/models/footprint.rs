//! What a model will take of the memory, told from its specification before anything is built.

use super::{Biases, ModelSpec};
use crate::memory::{TooLarge, bytes, require};

/// Hidden units of more examples than these are never held at once.
const AT_ONCE: usize = 4096;

/// The size of a model, counted without building it; numbers beyond all bounds saturate.
///
/// ```
/// use limitpoint::models::ModelSpec;
/// let footprint = ModelSpec::relu(&[100]).footprint(200, 2, 1);
/// assert_eq!(footprint.parameters, 300);
/// assert!(ModelSpec::relu(&[usize::MAX]).footprint(200, 2, 1).require().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// Numbers that are trained or kept fixed.
    pub parameters: u128,
    /// Bytes of the model bound to its inputs, its gradient included.
    pub bytes: u128,
    /// Sides of its blocks, from the input on.
    pub sides: Vec<usize>,
    /// Its shape in words.
    shape: String,
}

impl Footprint {
    /// Refuses a model that does not fit into memory.
    pub fn require(&self) -> Result<(), TooLarge> {
        require(&self.shape, self.bytes, "lower the widths or the number of examples")
    }

    /// Refuses a run that keeps `copies` of the parameters besides the model and takes `extra` bytes for other things;
    /// `together` such runs go on at the same time.
    pub fn require_run(&self, copies: usize, extra: u128, together: usize) -> Result<(), TooLarge> {
        let copies = self.parameters.saturating_mul(bytes(&[copies], 8));
        let one = self.bytes.saturating_add(copies).saturating_add(extra);
        let what = match together {
            0 | 1 => format!("a run of {}", self.shape),
            _ => format!("{together} runs at a time, each of {},", self.shape),
        };
        require(
            what,
            one.saturating_mul(together.max(1) as u128),
            "lower the sizes, or --threads for fewer runs at a time",
        )
    }
}

impl ModelSpec {
    /// The size of the model on this many examples, inputs and outputs.
    pub fn footprint(&self, examples: usize, inputs: usize, outputs: usize) -> Footprint {
        let product = |sides: &[usize]| bytes(sides, 1);
        let total = |parts: &mut dyn Iterator<Item = u128>| parts.fold(0_u128, u128::saturating_add);
        let (sizes, parameters, hidden) = match self {
            Self::Linear => (vec![inputs, outputs], product(&[inputs, outputs]), 0),
            Self::Network { widths, biases, .. } => {
                let sizes = [&[inputs], widths.as_slice(), &[outputs]].concat();
                let weights = total(&mut sizes.windows(2).map(product));
                let offsets = match biases {
                    Biases::None => 0,
                    Biases::First => sizes[1] as u128,
                    Biases::All => total(&mut sizes[1..].iter().map(|size| *size as u128)),
                };
                let units = total(&mut widths.iter().map(|width| *width as u128));
                let hidden = units.saturating_mul(examples.min(AT_ONCE) as u128).saturating_mul(2);
                (sizes, weights.saturating_add(offsets), hidden)
            }
            Self::Diagonal { factors } => (vec![inputs; 2], product(&[inputs, *factors]), 0),
            Self::Matrix { rows, factors, width, symmetric } => {
                let columns = inputs.checked_div(*rows).unwrap_or(0);
                let width = width.unwrap_or((*rows).min(columns));
                let inner = if *symmetric { 1 } else { factors.saturating_sub(1) };
                let sides = product(&[*rows, width]).saturating_add(product(&[width, columns]));
                let middle = product(&[width, width, inner]);
                let parameters = if *factors == 1 && !symmetric { product(&[*rows, columns]) } else { sides + middle };
                (vec![*rows, width, columns], parameters, middle.saturating_add(sides))
            }
            Self::MexicanHat { .. } => (vec![inputs, 1], 3, 0),
        };
        let scores = product(&[examples, outputs]);
        let values = parameters.saturating_mul(2).saturating_add(hidden).saturating_add(scores);
        let words: Vec<String> = sizes.iter().map(usize::to_string).collect();
        let shape = format!("a {} model of sizes {} on {examples} examples", self.key(), words.join("-"));
        Footprint { parameters, bytes: values.saturating_mul(8), sides: sizes, shape }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;
    use crate::models::{Compute, ModelError};

    #[test]
    fn parameters_are_counted_as_they_are_laid_out() {
        for spec in ModelSpec::examples() {
            let inputs = Matrix::zeros(5, 4);
            for outputs in [1, 3] {
                let Ok(model) = spec.build(&inputs, outputs, Compute::default()) else { continue };
                let (counted, laid) = (spec.footprint(5, 4, outputs).parameters, model.layout().len() as u128);
                let exact = !matches!(spec, ModelSpec::Matrix { .. });
                assert!(if exact { counted == laid } else { counted >= laid }, "{spec:?}: {counted} {laid}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_before_it_is_built() {
        let inputs = Matrix::zeros(5, 4);
        let huge = [1_000_000_000_000, usize::MAX / 2, usize::MAX];
        for width in huge {
            let matrix = ModelSpec::Matrix { rows: 2, factors: 3, width: Some(width), symmetric: false };
            for spec in [ModelSpec::relu(&[width]), ModelSpec::relu(&[3, width, width]), matrix] {
                let Err(error) = spec.build(&inputs, 1, Compute::default()) else { panic!("{spec:?}") };
                assert!(matches!(error, ModelError::TooLarge(_)), "{spec:?}: {error}");
                let text = error.to_string();
                assert!(text.contains("needs") && text.contains("available") && text.contains("lower"), "{text}");
            }
        }
    }
}
