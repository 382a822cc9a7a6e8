//! Aliases resolved: one name for every norm, whatever it was called.
//!
//! Many descriptions mean one norm. [`NormSpec::canonical`] finds the plainest of them on a layout, up to a factor:
//!
//! | written | on | is |
//! |---|---|---|
//! | `lp:1`, `lp:2`, `lp:inf`, `l1-averaged`, `frobenius` | anything | ℓ1, ℓ2, ℓ∞, ℓ1, ℓ2 |
//! | `quadratic`, `quadratic-dense` with D = c·I | anything | √c ℓ2 |
//! | `quadratic-dense` with a diagonal D | anything | `quadratic` |
//! | `spectral`, `nuclear` | one row or one column | ℓ2 |
//! | `group21`, `group2inf` | one row; one column | ℓ2; ℓ1, ℓ∞ |
//! | `max(…)`, `sum(…)`, `root(…)` | one block | c times the norm of the block |
//! | `max` of ℓ∞, `group2inf` or `spectral`, equal weights c | several blocks | c times that norm of all blocks |
//! | `sum` of ℓ1, `group21` or `nuclear`, equal weights c | several blocks | c times that norm of all blocks |
//! | `root` of ℓ2, equal weights c | several blocks | c times ℓ2 |
//! | any norm | a single entry | c times ℓ2 |

use super::{BlockNorm, NormError, NormSpec};
use crate::params::{Block, ParamLayout};

/// A norm by its plainest name: ‖v‖ = scale · ‖v‖_norm, ‖g‖_* = ‖g‖_norm* / scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Canonical {
    /// The norm; composites name every trainable block, and only where no plainer norm would do.
    pub norm: NormSpec,
    /// The factor, above 0.
    pub scale: f64,
}

impl NormSpec {
    /// The plainest name of this norm on parameters of this layout.
    ///
    /// Value, dual, balls and subdifferentials are the same up to the factor. Which of several steepest directions is
    /// taken can differ: `l1-averaged` shares the step among tied entries, `l1` does not.
    ///
    /// ```
    /// use limitpoint::{norms::NormSpec, params::ParamLayout};
    /// let layout = ParamLayout::new([("w", 2, 2), ("a", 1, 2)]).unwrap();
    /// let name = |text: &str| text.parse::<NormSpec>().and_then(|norm| norm.canonical(&layout));
    /// assert_eq!(name("sum(*=lp:1)")?.norm, NormSpec::L1);
    /// assert_eq!(name("max(w=2*group2inf, a=2*l2)")?.norm, NormSpec::GroupL2Inf);
    /// assert_eq!(name("max(w=2*group2inf, a=2*l2)")?.scale, 2.0);
    /// # Ok::<(), limitpoint::norms::NormError>(())
    /// ```
    pub fn canonical(&self, layout: &ParamLayout) -> Result<Canonical, NormError> {
        let size: usize = layout.trainable().map(Block::len).sum();
        if size == 0 {
            return Err(NormError::NothingTrainable);
        }
        let everywhere = |norm: &Self| -> Vec<Result<BlockNorm, NormError>> {
            layout.trainable().map(|block| norm.on_block(block, 1.0)).collect()
        };
        let parts: Vec<BlockNorm> = match self {
            Self::Max { blocks } | Self::Sum { blocks } | Self::Root { blocks } => Self::assign(blocks, layout)?
                .into_iter()
                .map(|(block, entry)| entry.norm.on_block(block, entry.weight))
                .collect::<Result<_, _>>()?,
            Self::Spectral | Self::GroupL2Inf | Self::Nuclear | Self::GroupL21 => {
                everywhere(self).into_iter().collect::<Result<_, _>>()?
            }
            _ => {
                let (norm, scale) = self.on_matrix(size, 1)?;
                return Ok(Canonical { norm, scale });
            }
        };
        if let [part] = &parts[..] {
            return Ok(Canonical { norm: part.norm.clone(), scale: part.weight });
        }
        let known: &[Self] = match self {
            Self::Sum { .. } | Self::Nuclear | Self::GroupL21 => &[Self::L1, Self::GroupL21, Self::Nuclear],
            Self::Root { .. } => &[Self::L2],
            _ => &[Self::Linf, Self::GroupL2Inf, Self::Spectral],
        };
        let scale = parts[0].weight;
        for norm in known {
            let same = everywhere(norm);
            let fits = |(part, same): (&BlockNorm, &Result<BlockNorm, NormError>)| {
                part.weight == scale && same.as_ref().is_ok_and(|same| same.norm == part.norm)
            };
            if parts.iter().zip(&same).all(fits) {
                return Ok(Canonical { norm: norm.clone(), scale });
            }
        }
        let norm = match self {
            Self::Sum { .. } | Self::Nuclear | Self::GroupL21 => Self::Sum { blocks: parts },
            Self::Root { .. } => Self::Root { blocks: parts },
            _ => Self::Max { blocks: parts },
        };
        Ok(Canonical { norm, scale: 1.0 })
    }

    /// The plainest name on one block, under the block's name and with all factors in the weight.
    fn on_block(&self, block: &Block, weight: f64) -> Result<BlockNorm, NormError> {
        let (norm, scale) = self.on_matrix(block.rows, block.cols)?;
        Ok(BlockNorm::new(&block.name, norm).weighted(scale * weight))
    }

    /// The plainest name and the factor on one matrix.
    fn on_matrix(&self, rows: usize, cols: usize) -> Result<(Self, f64), NormError> {
        let thin = rows == 1 || cols == 1;
        let diagonal = match self {
            Self::Quadratic { diagonal } => Some(diagonal.clone()),
            Self::QuadraticDense { matrix } if is_diagonal(matrix) => {
                Some(matrix.iter().enumerate().map(|(i, row)| row[i]).collect())
            }
            _ => None,
        };
        if matches!(self, Self::Quadratic { .. } | Self::QuadraticDense { .. }) {
            self.elementary(rows, cols)?; // refuses wrong sizes and forms that are not positive
        }
        if let Some(diagonal) = diagonal {
            return Ok(match diagonal.iter().all(|entry| *entry == diagonal[0]) {
                true => (Self::L2, diagonal[0].sqrt()),
                false => (Self::Quadratic { diagonal }, 1.0),
            });
        }
        let norm = match self {
            Self::Lp { p } if p.is_nan() || *p < 1.0 => return Err(NormError::Exponent { p: *p }),
            Self::Max { .. } | Self::Sum { .. } | Self::Root { .. } => return Err(NormError::Nested(self.to_string())),
            _ if rows * cols == 1 => Self::L2,
            Self::Lp { p: 1.0 } | Self::L1Averaged => Self::L1,
            Self::Lp { p: 2.0 } | Self::Frobenius => Self::L2,
            Self::Lp { p: f64::INFINITY } => Self::Linf,
            Self::Spectral | Self::Nuclear if thin => Self::L2,
            Self::GroupL21 | Self::GroupL2Inf if rows == 1 => Self::L2,
            Self::GroupL21 if cols == 1 => Self::L1,
            Self::GroupL2Inf if cols == 1 => Self::Linf,
            plain => plain.clone(),
        };
        Ok((norm, 1.0))
    }
}

/// Whether only the diagonal of a square matrix differs from 0.
fn is_diagonal(matrix: &[Vec<f64>]) -> bool {
    let zero = |i: usize, row: &Vec<f64>| row.iter().enumerate().all(|(j, x)| i == j || *x == 0.0);
    matrix.iter().enumerate().all(|(i, row)| row.len() == matrix.len() && zero(i, row)) && !matrix.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layouts() -> Vec<ParamLayout> {
        let blocks: [&[(&str, usize, usize)]; 7] = [
            &[("w", 5, 1)],
            &[("w", 1, 1)],
            &[("w", 2, 3)],
            &[("w", 2, 2), ("a", 1, 2)],
            &[("w", 2, 1), ("a", 3, 1)],
            &[("w", 1, 3), ("a", 1, 2)],
            &[("w", 1, 1), ("a", 1, 1)],
        ];
        let mut layouts: Vec<_> =
            blocks.iter().map(|blocks| ParamLayout::new(blocks.iter().copied()).unwrap()).collect();
        layouts.push(ParamLayout::new([("w", 2, 2), ("b", 2, 2), ("a", 1, 2)]).unwrap().freeze(&["b"]).unwrap());
        layouts
    }

    /// Every norm of the battery, and every one of them on all blocks of a composite, alone and mixed.
    fn names(layout: &ParamLayout) -> Vec<NormSpec> {
        let texts = ["lp:1", "lp:2", "lp:inf", "lp:3", "l1", "l2", "linf", "l1-averaged", "frobenius", "spectral"];
        let inner: Vec<String> =
            texts.iter().chain(&["nuclear", "group21", "group2inf"]).map(|text| (*text).to_owned()).collect();
        let mut names = NormSpec::examples(layout);
        for text in &inner {
            for whole in [
                text.clone(),
                format!("max(*={text})"),
                format!("sum(*={text})"),
                format!("root(*={text})"),
                format!("root(w=3*l1,*=0.5*{text})"),
                format!("max(*=0.3*{text})"),
                format!("sum(w=3*l1,*=3*{text})"),
                format!("max(w=linf,*=2*{text})"),
            ] {
                names.push(whole.parse().unwrap());
            }
        }
        let size: usize = layout.trainable().map(Block::len).sum();
        let identity = |c: f64| (0..size).map(|i| (0..size).map(|j| if i == j { c } else { 0.0 }).collect()).collect();
        names.push(NormSpec::Quadratic { diagonal: vec![4.0; size] });
        names.push(NormSpec::QuadraticDense { matrix: identity(0.25) });
        names
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_plain_name_has_the_value_and_the_dual_of_the_norm(v in proptest::collection::vec(-3.0..3.0f64, 10)) {
            for layout in layouts() {
                let v = &v[..layout.len()];
                for norm in names(&layout) {
                    let Ok(mut built) = norm.build(&layout) else {
                        prop_assert!(norm.canonical(&layout).is_err());
                        continue;
                    };
                    let plain = norm.canonical(&layout).unwrap();
                    let mut other = plain.norm.build(&layout).unwrap();
                    let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
                    prop_assert!(close(built.value(v), plain.scale * other.value(v)), "{} {:?}", norm, plain);
                    prop_assert!(close(built.dual(v), other.dual(v) / plain.scale), "{} {:?}", norm, plain);
                    let again = plain.norm.canonical(&layout).unwrap();
                    prop_assert_eq!(again, Canonical { norm: plain.norm, scale: 1.0 }, "{}", norm);
                }
            }
        }
    }

    #[test]
    fn aliases_have_one_name() {
        let two = ParamLayout::new([("w", 2, 2), ("a", 2, 3)]).unwrap();
        let vector = ParamLayout::vector(4);
        for (layout, text, plain, scale) in [
            (&vector, "max(*=lp:1)", "l1", 1.0),
            (&vector, "sum(*=linf)", "linf", 1.0),
            (&vector, "sum(*=0.5*lp:2)", "l2", 0.5),
            (&vector, "nuclear", "l2", 1.0),
            (&vector, "group21", "l1", 1.0),
            (&vector, "group2inf", "linf", 1.0),
            (&vector, "quadratic:4:4:4:4", "l2", 2.0),
            (&vector, "quadratic-dense:4:0:0:0/0:1:0:0/0:0:1:0/0:0:0:1", "quadratic:4:1:1:1", 1.0),
            (&two, "sum(*=l1)", "l1", 1.0),
            (&two, "max(*=3*lp:inf)", "linf", 3.0),
            (&two, "max(w=spectral,a=spectral)", "spectral", 1.0),
            (&two, "sum(*=nuclear)", "nuclear", 1.0),
            (&two, "max(*=l1)", "max(w=l1,a=l1)", 1.0),
            (&two, "max(w=linf,a=2*linf)", "max(w=linf,a=2*linf)", 1.0),
            (&two, "sum(*=spectral)", "sum(w=spectral,a=spectral)", 1.0),
            (&two, "root(*=3*frobenius)", "l2", 3.0),
            (&two, "root(w=l1,a=l2)", "root(w=l1,a=l2)", 1.0),
            (&two, "max(biases=l2,*=linf)", "linf", 1.0),
            (&two, "max(first=l2,last=linf)", "max(w=l2,a=linf)", 1.0),
        ] {
            let found = text.parse::<NormSpec>().unwrap().canonical(layout).unwrap();
            assert_eq!((found.norm.to_string().as_str(), found.scale), (plain, scale), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_built_has_no_name() {
        let layout = ParamLayout::vector(2);
        for text in
            ["lp:0.5", "lp:nan", "quadratic:1:2:3", "quadratic:1:-1", "max(b=l1)", "max(w=0*l1)", "max(*=max(*=l1))"]
        {
            let Ok(norm) = text.parse::<NormSpec>() else { continue };
            assert!(norm.canonical(&layout).is_err() && norm.build(&layout).is_err(), "{text}");
        }
    }
}
