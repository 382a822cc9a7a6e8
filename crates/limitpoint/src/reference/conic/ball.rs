//! Any norm of the library as cone constraints.
//!
//! A norm becomes a tree of [`Part`]s; the dual norm is the tree with every part replaced by its dual. `‖v‖ ≤ t` is
//! then written part by part:
//!
//! ```text
//! Σ|vᵢ| ≤ t            aᵢ ± vᵢ ≥ 0,  t − Σaᵢ ≥ 0                                  linear
//! max|vᵢ| ≤ t          t ± vᵢ ≥ 0                                                 linear
//! ‖Fv‖₂ ≤ t            (t, Fv)                                                    second order
//! ‖v‖_p ≤ t            (t, v)                                                     power
//! σ₁(W) ≤ t            [tI W; Wᵀ tI] ⪰ 0                                          semidefinite
//! Σσₖ(W) ≤ t           [A W; Wᵀ B] ⪰ 0,  t − ½(tr A + tr B) ≥ 0                   semidefinite
//! max cₗ‖vₗ‖ ≤ t       ‖vₗ‖ ≤ t/cₗ                                                of the parts
//! Σ cₗ‖vₗ‖ ≤ t         ‖vₗ‖ ≤ tₗ,  t − Σ cₗtₗ ≥ 0                                  of the parts
//! √Σ(cₗ‖vₗ‖)² ≤ t      ‖vₗ‖ ≤ tₗ,  (t, (cₗtₗ)ₗ)                                    of the parts, second order
//! ```
//!
//! (Boyd and Vandenberghe, Convex Optimization, sections 4.3, 4.4 and 4.6.3; Fazel, Hindi and Boyd 2001 for the nuclear
//! norm.)

use std::f64::consts::SQRT_2;

use super::super::ReferenceError;
use super::dense::{place, places};
use super::program::{Affine, Cone, Program};
use crate::linalg::Eigen;
use crate::norms::{Canonical, NormPart, NormSpec, PlainNorm, Rule};
use crate::params::ParamLayout;

/// A norm of some of the trainable entries, which are numbered without the frozen ones.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Σ|vᵢ|.
    AbsoluteSum(Vec<usize>),
    /// max|vᵢ|.
    AbsoluteMax(Vec<usize>),
    /// √Σvᵢ².
    Euclidean(Vec<usize>),
    /// (Σ|vᵢ|ᵖ)^(1/p) with 1 < p < ∞.
    Power(f64, Vec<usize>),
    /// ‖Fv‖₂, by the rows of F, with the rows of F⁻ᵀ.
    Quadratic(Vec<SparseForm>, Vec<SparseForm>),
    /// σ₁ of a rows × cols matrix whose entries are consecutive.
    Spectral(Shape),
    /// Σσₖ.
    Nuclear(Shape),
    /// max cₗ‖vₗ‖.
    Max(Vec<(f64, Part)>),
    /// Σ cₗ‖vₗ‖.
    Sum(Vec<(f64, Part)>),
    /// √Σ(cₗ‖vₗ‖)².
    Root(Vec<(f64, Part)>),
}

/// A linear form Σ coefficient · v[entry].
type SparseForm = Vec<(usize, f64)>;

/// A matrix inside the trainable entries, row-major.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub first: usize,
    pub rows: usize,
    pub cols: usize,
}

impl Part {
    /// The tree of a norm on a layout.
    pub fn of(norm: &NormSpec, layout: &ParamLayout) -> Result<Self, ReferenceError> {
        let Canonical { rule, parts } = norm.canonical(layout)?;
        let mut first = 0;
        let mut weighted = Vec::with_capacity(parts.len());
        for part in &parts {
            weighted.push((part.weight, Self::plain(part, first)?));
            first += part.len();
        }
        Ok(match (<[(f64, Self); 1]>::try_from(weighted), rule) {
            (Ok([(1.0, part)]), _) => part,
            (Ok(one), _) => Self::Max(one.into()),
            (Err(several), Rule::Max) => Self::Max(several),
            (Err(several), Rule::Sum) => Self::Sum(several),
            (Err(several), Rule::Root) => Self::Root(several),
        })
    }

    /// One part without its weight; its entries are numbered from `first` on.
    fn plain(part: &NormPart, first: usize) -> Result<Self, ReferenceError> {
        let NormPart { rows, cols, .. } = *part;
        let entries = || (first..first + part.len()).collect::<Vec<usize>>();
        let by_row = || {
            let row = |i: usize| (first + i * cols..first + (i + 1) * cols).collect();
            (0..rows).map(|i| (1.0, Self::Euclidean(row(i)))).collect::<Vec<_>>()
        };
        Ok(match &part.norm {
            PlainNorm::L1 => Self::AbsoluteSum(entries()),
            PlainNorm::L2 => Self::Euclidean(entries()),
            PlainNorm::Linf => Self::AbsoluteMax(entries()),
            PlainNorm::Lp(p) => Self::Power(*p, entries()),
            PlainNorm::Quadratic(diagonal) => {
                let form = |power: f64| {
                    let entry = |(i, d): (usize, &f64)| vec![(first + i, d.powf(power))];
                    diagonal.iter().enumerate().map(entry).collect::<Vec<_>>()
                };
                Self::Quadratic(form(0.5), form(-0.5))
            }
            PlainNorm::QuadraticDense(matrix) => {
                // D = Q diag(λ) Qᵀ, F = diag(√λ) Qᵀ, F⁻ᵀ = diag(1/√λ) Qᵀ
                let mut eigen = Eigen::new(matrix.len());
                eigen.factor(&matrix.concat())?;
                let form = |power: f64| {
                    let row = |k: usize| {
                        let size = eigen.values()[k].powf(power);
                        eigen.vector(k).iter().enumerate().map(|(i, x)| (first + i, size * x)).collect()
                    };
                    (0..matrix.len()).map(row).collect::<Vec<SparseForm>>()
                };
                Self::Quadratic(form(0.5), form(-0.5))
            }
            PlainNorm::Spectral => Self::Spectral(Shape { first, rows, cols }),
            PlainNorm::Nuclear => Self::Nuclear(Shape { first, rows, cols }),
            PlainNorm::GroupL21 => Self::Sum(by_row()),
            PlainNorm::GroupL2Inf => Self::Max(by_row()),
        })
    }

    /// The dual norm.
    pub fn dual(&self) -> Self {
        let flipped = |parts: &[(f64, Self)]| parts.iter().map(|(c, part)| (c.recip(), part.dual())).collect();
        match self {
            Self::AbsoluteSum(entries) => Self::AbsoluteMax(entries.clone()),
            Self::AbsoluteMax(entries) => Self::AbsoluteSum(entries.clone()),
            Self::Euclidean(entries) => Self::Euclidean(entries.clone()),
            Self::Power(p, entries) => Self::Power(p / (p - 1.0), entries.clone()),
            Self::Quadratic(factor, inverse) => Self::Quadratic(inverse.clone(), factor.clone()),
            Self::Spectral(shape) => Self::Nuclear(*shape),
            Self::Nuclear(shape) => Self::Spectral(*shape),
            Self::Max(parts) => Self::Sum(flipped(parts)),
            Self::Sum(parts) => Self::Max(flipped(parts)),
            Self::Root(parts) => Self::Root(flipped(parts)),
        }
    }

    /// Whether the dual norm of a sum of rows is written without rounding any entry of a row.
    pub fn is_exact(&self) -> bool {
        matches!(self, Self::AbsoluteSum(_) | Self::AbsoluteMax(_) | Self::Euclidean(_) | Self::Power(..))
    }

    /// Columns that [`Part::require`] adds.
    pub fn extra_columns(&self) -> usize {
        match self {
            Self::AbsoluteSum(entries) => entries.len(),
            Self::Nuclear(shape) => place(0, shape.rows) + place(0, shape.cols),
            Self::Max(parts) => parts.iter().map(|(_, part)| part.extra_columns()).sum(),
            Self::Sum(parts) | Self::Root(parts) => parts.iter().map(|(_, part)| 1 + part.extra_columns()).sum(),
            _ => 0,
        }
    }

    /// Requires ‖v‖ ≤ bound, where entry i of v is column `columns[i]`.
    pub fn require(&self, program: &mut Program, columns: &[usize], bound: &Affine) {
        let entry = |i: &usize| Affine::term(columns[*i], 1.0);
        let form = |form: &SparseForm| form.iter().fold(Affine::default(), |sum, (i, x)| sum.plus(columns[*i], *x));
        let cone = |rows: Vec<Affine>| std::iter::once(bound.clone()).chain(rows);
        match self {
            Self::AbsoluteMax(entries) => {
                let both = |i: &usize| [bound.clone().plus(columns[*i], -1.0), bound.clone().plus(columns[*i], 1.0)];
                program.require(Cone::Nonnegative, entries.iter().flat_map(both));
            }
            Self::AbsoluteSum(entries) => {
                let sizes = program.columns(entries.len());
                let both = |(i, a): (&usize, usize)| {
                    [Affine::term(a, 1.0).plus(columns[*i], -1.0), Affine::term(a, 1.0).plus(columns[*i], 1.0)]
                };
                program.require(Cone::Nonnegative, entries.iter().zip(sizes.clone()).flat_map(both));
                program.require(Cone::Nonnegative, [sizes.fold(bound.clone(), |sum, a| sum.plus(a, -1.0))]);
            }
            Self::Euclidean(entries) => {
                program.require(Cone::SecondOrder, cone(entries.iter().map(entry).collect()));
            }
            Self::Quadratic(factor, _) => {
                program.require(Cone::SecondOrder, cone(factor.iter().map(form).collect()));
            }
            Self::Power(p, entries) => {
                program.require(Cone::Power(*p), cone(entries.iter().map(entry).collect()));
            }
            Self::Spectral(shape) => {
                let corner = |i: usize, j: usize| if i == j { bound.clone() } else { Affine::default() };
                program.require(Cone::Semidefinite(shape.rows + shape.cols), shape.dilation(columns, &corner));
            }
            Self::Nuclear(shape) => {
                let (m, n) = (shape.rows, shape.cols);
                let (left, right) = (program.columns(place(0, m)).start, program.columns(place(0, n)).start);
                let at = |i: usize, j: usize| if j < m { left + place(i, j) } else { right + place(i - m, j - m) };
                let corner = |i: usize, j: usize| Affine::term(at(i, j), if i == j { 1.0 } else { SQRT_2 });
                let trace = (0..m + n).fold(bound.clone(), |sum, i| sum.plus(at(i, i), -0.5));
                program.require(Cone::Semidefinite(m + n), shape.dilation(columns, &corner));
                program.require(Cone::Nonnegative, [trace]);
            }
            Self::Max(parts) => {
                parts.iter().for_each(|(c, part)| part.require(program, columns, &bound.scaled(c.recip())));
            }
            Self::Sum(parts) => {
                let sizes = program.columns(parts.len());
                let weighted = parts.iter().zip(sizes.clone());
                let total = weighted.clone().fold(bound.clone(), |sum, ((c, _), t)| sum.plus(t, -c));
                program.require(Cone::Nonnegative, [total]);
                weighted.for_each(|((_, part), t)| part.require(program, columns, &Affine::term(t, 1.0)));
            }
            Self::Root(parts) => {
                let sizes = program.columns(parts.len());
                let weighted = parts.iter().zip(sizes);
                let lengths = weighted.clone().map(|((c, _), t)| Affine::term(t, *c)).collect();
                program.require(Cone::SecondOrder, cone(lengths));
                weighted.for_each(|((_, part), t)| part.require(program, columns, &Affine::term(t, 1.0)));
            }
        }
    }
}

impl Shape {
    /// The rows of [A W; Wᵀ B], upper triangle column by column; `corner` gives the rows of A and B.
    fn dilation(&self, columns: &[usize], corner: &dyn Fn(usize, usize) -> Affine) -> Vec<Affine> {
        let (m, n) = (self.rows, self.cols);
        let entry = |i: usize, j: usize| match i < m && j >= m {
            true => Affine::term(columns[self.first + i * n + j - m], SQRT_2),
            false => corner(i, j),
        };
        places(m + n).map(|(i, j)| entry(i, j)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Streams;

    /// ‖v‖ of the tree, in plain arithmetic apart from the library's norms of matrices.
    fn value(part: &Part, v: &[f64]) -> f64 {
        let pick = |entries: &[usize]| entries.iter().map(|i| v[*i]).collect::<Vec<f64>>();
        let matrix = |shape: &Shape, norm: NormSpec| {
            let layout = ParamLayout::new([("w", shape.rows, shape.cols)]).unwrap();
            norm.build(&layout).unwrap().value(&v[shape.first..shape.first + shape.rows * shape.cols])
        };
        match part {
            Part::AbsoluteSum(e) => pick(e).iter().map(|x| x.abs()).sum(),
            Part::AbsoluteMax(e) => pick(e).iter().fold(0.0, |most, x| x.abs().max(most)),
            Part::Euclidean(e) => pick(e).iter().map(|x| x * x).sum::<f64>().sqrt(),
            Part::Power(p, e) => pick(e).iter().map(|x| x.abs().powf(*p)).sum::<f64>().powf(p.recip()),
            Part::Quadratic(forms, _) => {
                let form = |form: &SparseForm| form.iter().map(|(i, x)| x * v[*i]).sum::<f64>();
                forms.iter().map(|f| form(f).powi(2)).sum::<f64>().sqrt()
            }
            Part::Spectral(shape) => matrix(shape, NormSpec::Spectral),
            Part::Nuclear(shape) => matrix(shape, NormSpec::Nuclear),
            Part::Max(parts) => parts.iter().map(|(c, part)| c * value(part, v)).fold(0.0, f64::max),
            Part::Sum(parts) => parts.iter().map(|(c, part)| c * value(part, v)).sum(),
            Part::Root(parts) => parts.iter().map(|(c, part)| (c * value(part, v)).powi(2)).sum::<f64>().sqrt(),
        }
    }

    #[test]
    fn every_tree_and_its_dual_are_the_norm_and_the_dual_norm() {
        let blocks = [("a", 3, 4), ("b", 1, 3), ("frozen", 2, 2), ("c", 4, 2)];
        let layout = ParamLayout::new(blocks).unwrap().freeze(&["frozen"]).unwrap();
        let mut v = vec![0.0; layout.len()];
        Streams::new(2).stream("ball").fill_normal(&mut v);
        let compact: Vec<f64> = layout.trainable_ranges().into_iter().flatten().map(|j| v[j]).collect();
        for norm in NormSpec::examples(&layout) {
            let mut worker = norm.build(&layout).unwrap();
            let part = Part::of(&norm, &layout).unwrap();
            let (primal, dual) = (worker.value(&v), worker.dual(&v));
            assert!((value(&part, &compact) - primal).abs() < 1e-12 * primal, "{norm}");
            assert!((value(&part.dual(), &compact) - dual).abs() < 1e-12 * dual, "{norm}");
        }
    }

    #[test]
    fn as_many_columns_are_added_as_announced() {
        let layout = ParamLayout::new([("a", 3, 4), ("b", 1, 3)]).unwrap();
        for norm in NormSpec::examples(&layout) {
            let part = Part::of(&norm, &layout).unwrap();
            for part in [part.dual(), part] {
                let mut program = Program::default();
                let columns: Vec<usize> = program.columns(layout.len()).collect();
                part.require(&mut program, &columns, &Affine::constant(1.0));
                assert_eq!(program.width(), layout.len() + part.extra_columns(), "{norm}");
            }
        }
    }
}
