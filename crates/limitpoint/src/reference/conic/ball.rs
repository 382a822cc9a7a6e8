//! Any norm of the library as cone constraints.
//!
//! A norm becomes a tree of [`Part`]s; the dual norm is the tree with every part replaced by its dual. `‖v‖ ≤ t` is then
//! written part by part:
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
//! ```
//!
//! (Boyd and Vandenberghe, Convex Optimization, sections 4.3, 4.4 and 4.6.3; Fazel, Hindi and Boyd 2001 for the nuclear
//! norm.)

use super::program::{Affine, Cone, Program};
use crate::linalg::{Eigen, LinalgError};
use crate::norms::{BlockNorm, NormSpec};
use crate::params::{Block, ParamLayout};

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
    /// The tree of a norm on a layout; semantics as [`NormSpec::build`], which has already accepted the pair.
    pub fn of(norm: &NormSpec, layout: &ParamLayout) -> Result<Self, LinalgError> {
        let mut first = 0;
        let mut blocks = Vec::new();
        for block in layout.trainable() {
            blocks.push((first, block));
            first += block.len();
        }
        let every = |part: &NormSpec| -> Result<Vec<(f64, Self)>, LinalgError> {
            blocks.iter().map(|(first, block)| Ok((1.0, Self::of_block(part, *first, block)?))).collect()
        };
        let chosen = |entries: &[BlockNorm]| -> Result<Vec<(f64, Self)>, LinalgError> {
            let find = |name: &str| entries.iter().find(|entry| entry.block == name);
            let known = blocks.iter().filter_map(|(first, block)| {
                Some((*first, *block, find(&block.name).or_else(|| find("*"))?))
            });
            known.map(|(first, block, entry)| Ok((entry.weight, Self::of_block(&entry.norm, first, block)?))).collect()
        };
        match norm {
            NormSpec::Max { blocks } => Ok(Self::Max(chosen(blocks)?)),
            NormSpec::Sum { blocks } => Ok(Self::Sum(chosen(blocks)?)),
            NormSpec::Spectral | NormSpec::GroupL2Inf => Ok(Self::Max(every(norm)?)),
            NormSpec::Nuclear | NormSpec::GroupL21 => Ok(Self::Sum(every(norm)?)),
            _ => Self::elementary(norm, Shape { first: 0, rows: first, cols: 1 }),
        }
    }

    fn of_block(norm: &NormSpec, first: usize, block: &Block) -> Result<Self, LinalgError> {
        Self::elementary(norm, Shape { first, rows: block.rows, cols: block.cols })
    }

    fn elementary(norm: &NormSpec, shape: Shape) -> Result<Self, LinalgError> {
        let Shape { first, rows, cols } = shape;
        let entries = || (first..first + rows * cols).collect::<Vec<usize>>();
        let by_row = || {
            let row = |i: usize| (first + i * cols..first + (i + 1) * cols).collect();
            (0..rows).map(|i| (1.0, Self::Euclidean(row(i)))).collect::<Vec<_>>()
        };
        Ok(match norm {
            NormSpec::L1 | NormSpec::L1Averaged => Self::AbsoluteSum(entries()),
            NormSpec::Lp { p } if *p == 1.0 => Self::AbsoluteSum(entries()),
            NormSpec::L2 | NormSpec::Frobenius => Self::Euclidean(entries()),
            NormSpec::Lp { p } if *p == 2.0 => Self::Euclidean(entries()),
            NormSpec::Linf => Self::AbsoluteMax(entries()),
            NormSpec::Lp { p } if p.is_infinite() => Self::AbsoluteMax(entries()),
            NormSpec::Lp { p } => Self::Power(*p, entries()),
            NormSpec::Quadratic { diagonal } => {
                let form = |power: f64| {
                    let entry = |(i, d): (usize, &f64)| vec![(first + i, d.powf(power))];
                    diagonal.iter().enumerate().map(entry).collect::<Vec<_>>()
                };
                Self::Quadratic(form(0.5), form(-0.5))
            }
            NormSpec::QuadraticDense { matrix } => {
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
            NormSpec::Spectral | NormSpec::Nuclear if rows == 1 || cols == 1 => Self::Euclidean(entries()),
            NormSpec::Spectral => Self::Spectral(shape),
            NormSpec::Nuclear => Self::Nuclear(shape),
            NormSpec::GroupL21 => Self::Sum(by_row()),
            NormSpec::GroupL2Inf => Self::Max(by_row()),
            NormSpec::Max { .. } | NormSpec::Sum { .. } => {
                unreachable!("compositions are not nested: building the norm refused it")
            }
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
        }
    }

    /// Requires ‖v‖ ≤ bound, where entry i of v is column `columns[i]`.
    pub fn require(&self, program: &mut Program, columns: &[usize], bound: &Affine) {
        let entry = |i: &usize| Affine::term(columns[*i], 1.0);
        let form = |form: &SparseForm| Affine { constant: 0.0, terms: form.iter().map(|(i, x)| (columns[*i], *x)).collect() };
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
                let diagonal = vec![bound.clone(); shape.rows + shape.cols];
                program.require(Cone::Semidefinite(diagonal.len()), shape.dilation(columns, &|i, j| {
                    if i == j { diagonal[i].clone() } else { Affine::default() }
                }));
            }
            Self::Nuclear(shape) => {
                let (m, n) = (shape.rows, shape.cols);
                let (left, right) = (program.columns(m * (m + 1) / 2), program.columns(n * (n + 1) / 2));
                let place = |i: usize, j: usize| match j < m {
                    true => left.start + j * (j + 1) / 2 + i,
                    false => right.start + (j - m) * (j - m + 1) / 2 + (i - m),
                };
                let trace = (0..m + n).fold(bound.clone(), |sum, i| sum.plus(place(i, i), -0.5));
                program.require(Cone::Semidefinite(m + n), shape.dilation(columns, &|i, j| {
                    Affine::term(place(i, j), if i == j { 1.0 } else { std::f64::consts::SQRT_2 })
                }));
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
        }
    }
}

impl Shape {
    /// The rows of [A W; Wᵀ B], upper triangle column by column; `corner` gives the rows of A and B.
    fn dilation(&self, columns: &[usize], corner: &dyn Fn(usize, usize) -> Affine) -> Vec<Affine> {
        let (m, n) = (self.rows, self.cols);
        let entry = |i: usize, j: usize| match i < m && j >= m {
            true => Affine::term(columns[self.first + i * n + j - m], std::f64::consts::SQRT_2),
            false => corner(i, j),
        };
        (0..m + n).flat_map(|j| (0..=j).map(move |i| (i, j))).map(|(i, j)| entry(i, j)).collect()
    }
}
