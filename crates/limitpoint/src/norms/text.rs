//! Norms as one word, for the command line and for labels.

use std::fmt;
use std::str::FromStr;

use super::{BlockNorm, NormError, NormSpec};

impl NormSpec {
    /// A short name for labels, such as `l4/3`. Composites are named in full: two that differ in a block or a weight
    /// only are two columns of a table.
    pub fn key(&self) -> String {
        match self {
            Self::Lp { p } => format!("l{}", Number(*p)),
            Self::Quadratic { .. } => "quadratic".into(),
            Self::QuadraticDense { .. } => "quadratic-dense".into(),
            plain => plain.to_string(),
        }
    }
}

/// The text that [`FromStr`] reads back.
impl fmt::Display for NormSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |numbers: &[f64]| numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(":");
        match self {
            Self::L1 => f.write_str("l1"),
            Self::L1Averaged => f.write_str("l1-averaged"),
            Self::L2 => f.write_str("l2"),
            Self::Linf => f.write_str("linf"),
            Self::Lp { p } => write!(f, "lp:{}", Number(*p)),
            Self::Quadratic { diagonal } => write!(f, "quadratic:{}", join(diagonal)),
            Self::QuadraticDense { matrix } => {
                write!(f, "quadratic-dense:{}", matrix.iter().map(|row| join(row)).collect::<Vec<_>>().join("/"))
            }
            Self::Frobenius => f.write_str("frobenius"),
            Self::Spectral => f.write_str("spectral"),
            Self::Nuclear => f.write_str("nuclear"),
            Self::GroupL21 => f.write_str("group21"),
            Self::GroupL2Inf => f.write_str("group2inf"),
            Self::Max { blocks } => write_blocks(f, "max", blocks),
            Self::Sum { blocks } => write_blocks(f, "sum", blocks),
            Self::Root { blocks } => write_blocks(f, "root", blocks),
        }
    }
}

fn write_blocks(f: &mut fmt::Formatter<'_>, rule: &str, blocks: &[BlockNorm]) -> fmt::Result {
    write!(f, "{rule}(")?;
    for (i, entry) in blocks.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        write!(f, "{comma}{}=", entry.block)?;
        if entry.weight != 1.0 {
            write!(f, "{}*", entry.weight)?;
        }
        write!(f, "{}", entry.norm)?;
    }
    f.write_str(")")
}

/// Reads `l1`, `lp:3`, `l4/3`, `quadratic:1:2:0.5`, `quadratic-dense:2:1/1:2`, `max(layer1=spectral,*=0.5*l2)` and so
/// on.
///
/// Numbers of a quadratic norm are separated by colons, its rows by slashes. A block whose name contains a comma or an
/// equals sign can only be named in a file.
impl FromStr for NormSpec {
    type Err = NormError;

    fn from_str(text: &str) -> Result<Self, NormError> {
        let text = text.trim();
        let plain = match text {
            "l1" => Some(Self::L1),
            "l1-averaged" => Some(Self::L1Averaged),
            "l2" => Some(Self::L2),
            "linf" => Some(Self::Linf),
            "frobenius" => Some(Self::Frobenius),
            "spectral" => Some(Self::Spectral),
            "nuclear" => Some(Self::Nuclear),
            "group21" => Some(Self::GroupL21),
            "group2inf" => Some(Self::GroupL2Inf),
            _ => None,
        };
        plain.or_else(|| read_with_settings(text)).ok_or_else(|| NormError::Unreadable(text.to_string()))
    }
}

fn read_with_settings(text: &str) -> Option<NormSpec> {
    let inside = |rule: &str| text.strip_prefix(rule)?.strip_prefix('(')?.strip_suffix(')');
    let numbers = |list: &str| list.split(':').map(|x| x.trim().parse().ok()).collect::<Option<Vec<f64>>>();
    if let Some(rows) = text.strip_prefix("quadratic-dense:") {
        Some(NormSpec::QuadraticDense { matrix: rows.split('/').map(numbers).collect::<Option<_>>()? })
    } else if let Some(list) = text.strip_prefix("quadratic:") {
        Some(NormSpec::Quadratic { diagonal: numbers(list)? })
    } else if let Some(list) = inside("max") {
        Some(NormSpec::Max { blocks: list.split(',').map(read_block).collect::<Option<_>>()? })
    } else if let Some(list) = inside("sum") {
        Some(NormSpec::Sum { blocks: list.split(',').map(read_block).collect::<Option<_>>()? })
    } else if let Some(list) = inside("root") {
        Some(NormSpec::Root { blocks: list.split(',').map(read_block).collect::<Option<_>>()? })
    } else {
        let number = text.strip_prefix("lp:").or_else(|| text.strip_prefix('l'))?;
        Some(NormSpec::Lp { p: number.parse::<Number>().ok()?.0 })
    }
}

fn read_block(text: &str) -> Option<BlockNorm> {
    let (block, norm) = text.split_once('=')?;
    let (weight, norm) = match norm.split_once('*') {
        Some((weight, norm)) => (weight.trim().parse().ok()?, norm),
        None => (1.0, norm),
    };
    Some(BlockNorm { block: block.into(), norm: norm.parse().ok()?, weight })
}

/// A number that prefers to be a short fraction: 4/3 instead of 1.3333333333333333.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for denominator in 1..=12 {
            let numerator = (self.0 * f64::from(denominator)).round();
            if numerator / f64::from(denominator) == self.0 && numerator < 1000.0 {
                return if denominator == 1 {
                    write!(f, "{numerator}")
                } else {
                    write!(f, "{numerator}/{denominator}")
                };
            }
        }
        write!(f, "{}", self.0)
    }
}

impl FromStr for Number {
    type Err = std::num::ParseFloatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((numerator, denominator)) => {
                Ok(Self(numerator.trim().parse::<f64>()? / denominator.trim().parse::<f64>()?))
            }
            None => Ok(Self(text.trim().parse()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ParamLayout;

    #[test]
    fn every_norm_reads_its_own_text() {
        let layout = ParamLayout::new([("layer1.weight", 2, 2), ("b", 1, 2)]).unwrap();
        for norm in NormSpec::examples(&layout) {
            assert_eq!(norm.to_string().parse::<NormSpec>().unwrap(), norm);
        }
        for (text, key) in
            [("l3", "l3"), ("lp:1.5", "l3/2"), ("lp:inf", "linf"), ("l1.2345678", "l1.2345678"), (" l2 ", "l2")]
        {
            assert_eq!(text.parse::<NormSpec>().unwrap().key(), key);
        }
        assert_eq!("max(a=spectral, *=2*l2)".parse::<NormSpec>().unwrap().key(), "max(a=spectral,*=2*l2)");
    }

    #[test]
    fn nonsense_is_refused_and_shown() {
        for text in [
            "",
            "l",
            "lp:",
            "lp:x",
            "euclid",
            "max()",
            "max(a)",
            "max(a=l2",
            "sum(a=x*l2)",
            "quadratic:",
            "quadratic:1:a",
        ] {
            let error = text.parse::<NormSpec>().unwrap_err();
            assert_eq!(error, NormError::Unreadable(text.to_string()));
        }
    }
}
