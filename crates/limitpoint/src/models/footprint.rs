//! What a model will take of the memory, told from its architecture before anything is built.

use super::{Architecture, Layer};
use crate::memory::{TooLarge, bytes, require};
use crate::params::Role;

/// Hidden units of more examples than these are never held at once.
const AT_ONCE: usize = 4096;
/// Numbers of images that are held at once: 256 MiB.
const AT_ONCE_IMAGES: u128 = 32 << 20;

/// The size of a model, counted without building it; numbers beyond all bounds saturate.
///
/// ```
/// use limitpoint::models::{ModelSpec, Shape};
/// let sized = |width| ModelSpec::relu(&[width]).architecture(&Shape::vector(2), 1).map(|it| it.footprint(200));
/// assert_eq!(sized(100)?.parameters, 300);
/// assert!(sized(usize::MAX)?.require().is_err());
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// Numbers that are trained or kept fixed.
    pub parameters: u128,
    /// Bytes of the model bound to its inputs, its gradient included.
    pub bytes: u128,
    /// Rows and columns of its blocks but the biases.
    pub matrices: Vec<(usize, usize)>,
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

impl Architecture {
    /// The size of the model on this many examples.
    pub fn footprint(&self, examples: usize) -> Footprint {
        let blocks = self.layout().blocks();
        let parameters =
            blocks.iter().fold(0, |sum: u128, block| sum.saturating_add(bytes(&[block.rows, block.cols], 1)));
        let mut hidden = self.kept().saturating_mul(examples.min(AT_ONCE) as u128).saturating_mul(2);
        if self.layers().iter().any(Layer::is_of_images) {
            // one example has to fit in any case
            hidden = hidden.min(self.kept().saturating_mul(3).max(AT_ONCE_IMAGES));
        }
        let values = parameters.saturating_mul(2).saturating_add(hidden);
        let values = values.saturating_add(bytes(&[examples, self.outputs()], 1));
        let matrices: Vec<(usize, usize)> =
            blocks.iter().filter(|block| block.role != Role::Bias).map(|block| (block.rows, block.cols)).collect();
        let sizes: Vec<String> = std::iter::once(self.input_shape().to_string())
            .chain(matrices.iter().map(|(rows, _)| rows.to_string()))
            .collect();
        let shape = format!("a model of sizes {} on {examples} examples", sizes.join("-"));
        Footprint { parameters, bytes: values.saturating_mul(8), matrices, shape }
    }
}

#[cfg(test)]
mod tests {
    use crate::models::{ModelSpec, Shape};

    #[test]
    fn what_does_not_fit_is_refused_before_it_is_built() {
        for width in [1_000_000_000_000, usize::MAX / 2, usize::MAX] {
            let matrix = ModelSpec::Matrix { rows: 2, factors: 3, width: Some(width), symmetric: false };
            for spec in [ModelSpec::relu(&[width]), ModelSpec::relu(&[3, width, width]), matrix] {
                let text =
                    spec.architecture(&Shape::vector(4), 1).unwrap().footprint(5).require().unwrap_err().to_string();
                assert!(text.contains("needs") && text.contains("available") && text.contains("lower"), "{text}");
            }
        }
    }
}
