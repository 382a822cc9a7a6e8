//! Potentials as one word of text, for the command line.

use std::fmt;
use std::str::FromStr;

use super::{BlockPotential, PotentialError, PotentialSpec, QuadraticWeights};

/// The accepted forms, quoted in errors.
const FORMS: &str = "euclidean, quadratic:1,2,3 (diagonal) or quadratic:2,1;1,2 (rows), entropy, hyperbolic:LAMBDA, \
                     smoothed:P,LAMBDA, power-smoothed:P,LAMBDA, squared-lp:P, spectral-entropy, or \
                     layers:BLOCK=POTENTIAL|*=POTENTIAL";

/// The key, a colon, and the settings in the order of the fields.
///
/// ```
/// use limitpoint::potentials::PotentialSpec;
/// for text in ["euclidean", "hyperbolic:0.1", "quadratic:2,1;1,2", "layers:w=hyperbolic:0.1|*=smoothed:3,1"] {
///     assert_eq!(text.parse::<PotentialSpec>()?.to_string(), text);
/// }
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
impl fmt::Display for PotentialSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        f.write_str(self.key())?;
        match self {
            Self::Euclidean | Self::Entropy | Self::SpectralEntropy => Ok(()),
            Self::Quadratic(QuadraticWeights::Diagonal(diagonal)) => write!(f, ":{}", join(diagonal)),
            Self::Quadratic(QuadraticWeights::Matrix(rows)) => {
                let rows: Vec<String> = rows.iter().map(|row| join(row)).collect();
                // A trailing ';' tells a matrix of one row from a diagonal.
                write!(f, ":{}{}", rows.join(";"), if rows.len() == 1 { ";" } else { "" })
            }
            Self::Hyperbolic { lambda } => write!(f, ":{lambda}"),
            Self::Smoothed { p, lambda } | Self::PowerSmoothed { p, lambda } => write!(f, ":{p},{lambda}"),
            Self::SquaredLp { p } => write!(f, ":{p}"),
            Self::Layers { blocks } => {
                let entries: Vec<String> = blocks.iter().map(|b| format!("{}={}", b.block, b.potential)).collect();
                write!(f, ":{}", entries.join("|"))
            }
        }
    }
}

impl FromStr for PotentialSpec {
    type Err = PotentialError;

    fn from_str(text: &str) -> Result<Self, PotentialError> {
        let refuse = || PotentialError::Text { text: text.to_string(), expected: FORMS };
        let (key, settings) = match text.split_once(':') {
            Some((key, settings)) => (key, Some(settings)),
            None => (text, None),
        };
        let numbers = |part: &str| -> Result<Vec<f64>, PotentialError> {
            part.split(',').map(|number| number.trim().parse().map_err(|_| refuse())).collect()
        };
        match (key.trim(), settings) {
            ("euclidean", None) => Ok(Self::Euclidean),
            ("entropy", None) => Ok(Self::Entropy),
            ("spectral-entropy", None) => Ok(Self::SpectralEntropy),
            ("quadratic", Some(rows)) if rows.contains(';') => {
                let rows = rows.trim_end_matches(';').split(';').map(numbers).collect::<Result<_, _>>()?;
                Ok(Self::Quadratic(QuadraticWeights::Matrix(rows)))
            }
            ("quadratic", Some(diagonal)) => Ok(Self::Quadratic(QuadraticWeights::Diagonal(numbers(diagonal)?))),
            ("layers", Some(list)) => {
                let entry = |part: &str| {
                    let (block, potential) = part.split_once('=').ok_or_else(refuse)?;
                    Ok(BlockPotential { block: block.into(), potential: potential.parse()? })
                };
                Ok(Self::Layers { blocks: list.split('|').map(entry).collect::<Result<_, PotentialError>>()? })
            }
            (key, Some(settings)) => match (key, numbers(settings)?.as_slice()) {
                ("hyperbolic", &[lambda]) => Ok(Self::Hyperbolic { lambda }),
                ("smoothed", &[p, lambda]) => Ok(Self::Smoothed { p, lambda }),
                ("power-smoothed", &[p, lambda]) => Ok(Self::PowerSmoothed { p, lambda }),
                ("squared-lp", &[p]) => Ok(Self::SquaredLp { p }),
                _ => Err(refuse()),
            },
            _ => Err(refuse()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_survives_text() {
        let mut specs = PotentialSpec::examples();
        specs.push(PotentialSpec::Quadratic(QuadraticWeights::Matrix(vec![vec![2.5]])));
        specs.push(PotentialSpec::Quadratic(QuadraticWeights::Matrix(vec![vec![2.0, 1.0], vec![1.0, 3.0]])));
        for spec in specs {
            assert_eq!(spec.to_string().parse::<PotentialSpec>().unwrap(), spec);
        }
    }

    #[test]
    fn nonsense_is_answered_with_the_forms() {
        for text in ["", "l1", "hyperbolic", "hyperbolic:a", "smoothed:3", "euclidean:1", "layers:w", "layers:w=no"] {
            let error = text.parse::<PotentialSpec>().unwrap_err().to_string();
            assert!(error.contains("hyperbolic:LAMBDA"), "{text}: {error}");
        }
    }
}
