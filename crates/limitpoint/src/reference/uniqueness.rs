//! Is the maximiser of a margin problem unique?
//!
//! The maximisers form a face of the unit ball cut by ⟨h_i, v⟩ ≥ γ. An interior-point method ends in its relative
//! interior, so the face is read off there: a direction δ stays in it, both ways, exactly if it lies in the span of the
//! ball's smallest face at v and moves no tight row,
//!
//! ```text
//! δ ∈ span F(v)   and   ⟨h_i, δ⟩ = 0 for every tight row i
//! ℓ1      entries with v ≠ 0, Σ cσδ = 0              ℓ∞      entries with |v| < 1
//! ℓ2, ℓp  none: the ball is strictly convex            rows    as ℓ1 or ℓ∞, with rows scaled as wholes or free
//! spectral  U₂ X V₂ᵀ over the singular values below 1   nuclear  U S Vᵀ with S symmetric, tr S = 0
//! max     all of every block below the maximum, F of the others        sum   F of every block, and shifts of size between blocks
//! ```
//!
//! What counts as tight or as "below 1" is decided up to [`TOLERANCE`], so the answer is a numerical one; the evidence
//! names the numbers it rests on.

use super::refine::Factors;
use super::{MarginProblem, MarginSolution, MarginStatus, ReferenceError, SparseRow, add_sparse, sparse_dot};
use crate::linalg::{Svd, add_scaled, dot, norm2};
use crate::norms::{BlockNorm, Canonical, NormSpec};
use crate::params::Block;

/// Relative size below which a slack counts as zero.
const TOLERANCE: f64 = 1e-7;
/// Largest number of entries of the face's basis that is written down.
const BASIS: usize = 1_000_000;

/// Whether a maximiser is the only one.
#[derive(Debug, Clone, PartialEq)]
pub struct Uniqueness {
    /// Whether anything is known; the rest means nothing where it is not.
    pub known: bool,
    /// Whether the face is a single point.
    pub unique: bool,
    /// Its dimension.
    pub face_dimension: usize,
    /// Orthonormal directions along which the maximiser can move; empty if unique or if there are too many to list.
    pub face: Vec<Vec<f64>>,
    /// What the answer rests on.
    pub evidence: String,
}

impl Uniqueness {
    /// For answers without a maximiser, or with one that is not known well enough to tell.
    pub(super) fn absent(status: MarginStatus) -> Self {
        let evidence = match status {
            MarginStatus::NotSeparable => "no maximiser: not separable",
            _ => "not told: the margin is not known well enough",
        };
        Self::unknown(evidence)
    }

    fn unknown(why: &str) -> Self {
        Self { known: false, unique: false, face_dimension: 0, face: Vec::new(), evidence: why.to_owned() }
    }
}

/// Reads the face of maximisers off a solution.
pub(super) fn uniqueness(problem: &MarginProblem, solution: &MarginSolution) -> Result<Uniqueness, ReferenceError> {
    if problem.semidefinite && problem.norm != NormSpec::Nuclear {
        return Ok(Uniqueness::unknown(
            "not told: faces of this norm's ball inside the semidefinite cone are not worked out",
        ));
    }
    let v = &solution.direction;
    let span = if problem.semidefinite { semidefinite_face(problem, v)? } else { face(problem, v)? };
    let margins = problem.margins(v);
    let limit = solution.bracket.upper * (1.0 + TOLERANCE);
    let tight: Vec<usize> = (0..margins.len()).filter(|&i| margins[i] <= limit).collect();
    let scale = |i: usize| norm2(problem.rows.row(i)).max(f64::MIN_POSITIVE);
    let rows: Vec<Vec<f64>> = tight
        .iter()
        .map(|&i| span.iter().map(|direction| sparse_dot(direction, problem.rows.row(i)) / scale(i)).collect())
        .collect();
    // products below the tolerance are rounding of products that vanish
    let rows: Vec<Vec<f64>> = rows.into_iter().filter(|row| norm2(row) > TOLERANCE).collect();
    let factors = Factors::new(span.len(), &rows);
    let dimension = span.len() - factors.kept.len();
    let evidence = format!(
        "{} tight rows of rank {} on the {}-dimensional face of the ball, tolerance {TOLERANCE:e}",
        tight.len(),
        factors.kept.len(),
        span.len()
    );
    let face = if dimension * v.len() <= BASIS { basis(&span, &factors, dimension, v.len()) } else { Vec::new() };
    Ok(Uniqueness { known: true, unique: dimension == 0, face_dimension: dimension, face, evidence })
}

/// An orthonormal basis of the directions in the span that no tight row sees.
fn basis(span: &[SparseRow], factors: &Factors, dimension: usize, length: usize) -> Vec<Vec<f64>> {
    let mut found: Vec<Vec<f64>> = Vec::new();
    for k in 0..span.len() {
        if found.len() == dimension {
            break;
        }
        let mut coefficients = vec![0.0; span.len()];
        coefficients[k] = 1.0;
        factors.reject(&mut coefficients);
        let mut direction = vec![0.0; length];
        span.iter().zip(&coefficients).for_each(|(row, c)| add_sparse(&mut direction, *c, row));
        let before = norm2(&direction);
        for _ in 0..2 {
            for earlier in &found {
                let along = dot(earlier, &direction);
                add_scaled(&mut direction, -along, earlier);
            }
        }
        let size = norm2(&direction);
        if size > 1e-6 * before.max(1e-6) {
            direction.iter_mut().for_each(|x| *x /= size);
            found.push(direction);
        }
    }
    found
}

/// A sparse row with one run.
fn run(first: usize, values: Vec<f64>) -> SparseRow {
    vec![(first, values)]
}

/// Directions that span the smallest face of the unit ball that contains v.
fn face(problem: &MarginProblem, v: &[f64]) -> Result<Vec<SparseRow>, ReferenceError> {
    let blocks: Vec<&Block> = problem.layout.trainable().collect();
    let Canonical { norm, scale } = problem.norm.canonical(&problem.layout)?;
    let one = |norm: NormSpec| blocks.iter().map(move |_| (norm.clone(), scale)).collect::<Vec<_>>();
    // a composite names every trainable block in the order of the layout
    let each = |entries: Vec<BlockNorm>| entries.into_iter().map(|e| (e.norm, scale * e.weight)).collect::<Vec<_>>();
    let adds = matches!(norm, NormSpec::L1 | NormSpec::Nuclear | NormSpec::GroupL21 | NormSpec::Sum { .. });
    // the sizes of blocks are coordinates of a round ball, so that only faces within the blocks are left
    let round = matches!(norm, NormSpec::Root { .. });
    let parts = match norm {
        // one vector over all blocks
        NormSpec::Linf | NormSpec::Spectral | NormSpec::GroupL2Inf => one(norm),
        NormSpec::L1 | NormSpec::Nuclear | NormSpec::GroupL21 => one(norm),
        NormSpec::Max { blocks } | NormSpec::Sum { blocks } | NormSpec::Root { blocks } => each(blocks),
        // strictly convex
        _ => return Ok(Vec::new()),
    };
    let mut span = Vec::new();
    let mut sizes = Vec::new();
    for (block, (norm, weight)) in blocks.iter().zip(&parts) {
        let inner = crate::params::ParamLayout::new([("w", block.rows, block.cols)])?;
        let size = weight * norm.build(&inner)?.value(&v[block.range()]);
        if !adds && !round && size < 1.0 - TOLERANCE {
            span.extend(block.range().map(|j| run(j, vec![1.0])));
        } else if size > TOLERANCE {
            span.extend(face_of_block(norm, block, &v[block.range()])?);
        }
        sizes.push(size);
    }
    if adds {
        // size shifts from one block to another
        let mut used = blocks.iter().zip(&sizes).filter(|(_, size)| **size > TOLERANCE);
        if let Some((first, size)) = used.next() {
            for (other, other_size) in used {
                let unit = |block: &Block, size: f64, sign: f64| {
                    (block.offset, v[block.range()].iter().map(|x| sign * x / size).collect::<Vec<f64>>())
                };
                span.push(vec![unit(first, *size, 1.0), unit(other, *other_size, -1.0)]);
            }
        }
    }
    Ok(span)
}

/// The same for one block whose norm is at its maximum.
fn face_of_block(norm: &NormSpec, block: &Block, w: &[f64]) -> Result<Vec<SparseRow>, ReferenceError> {
    let (rows, cols, first) = (block.rows, block.cols, block.offset);
    let thin = rows == 1 || cols == 1;
    let largest = w.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    Ok(match norm {
        NormSpec::Linf => {
            let free = (0..w.len()).filter(|&j| w[j].abs() < largest * (1.0 - TOLERANCE));
            free.map(|j| run(first + j, vec![1.0])).collect()
        }
        NormSpec::L1 => {
            let used: Vec<usize> = (0..w.len()).filter(|&j| w[j].abs() > TOLERANCE * largest).collect();
            let shift = |pair: &[usize]| {
                vec![(first + pair[0], vec![w[pair[0]].signum()]), (first + pair[1], vec![-w[pair[1]].signum()])]
            };
            used.windows(2).map(shift).collect()
        }
        NormSpec::GroupL2Inf | NormSpec::GroupL21 => {
            let sizes: Vec<f64> = (0..rows).map(|r| norm2(&w[r * cols..(r + 1) * cols])).collect();
            let most = sizes.iter().copied().fold(0.0, f64::max);
            let row = |r: usize| &w[r * cols..(r + 1) * cols];
            if *norm == NormSpec::GroupL2Inf {
                let free = (0..rows).filter(|&r| sizes[r] < most * (1.0 - TOLERANCE));
                free.flat_map(|r| (0..cols).map(move |c| run(first + r * cols + c, vec![1.0]))).collect()
            } else {
                let used: Vec<usize> = (0..rows).filter(|&r| sizes[r] > TOLERANCE * most).collect();
                let unit = |r: usize, sign: f64| {
                    (first + r * cols, row(r).iter().map(|x| sign * x / sizes[r]).collect::<Vec<f64>>())
                };
                used.windows(2).map(|pair| vec![unit(pair[0], 1.0), unit(pair[1], -1.0)]).collect()
            }
        }
        NormSpec::Spectral if !thin => {
            let svd = factored(rows, cols, w)?;
            let free: Vec<usize> =
                (0..rows.min(cols)).filter(|&k| svd.values()[k] < svd.values()[0] * (1.0 - TOLERANCE)).collect();
            // the free block is the complement of the tied singular vectors on both sides
            let tied = rows.min(cols) - free.len();
            let complement = |length: usize, vector: &dyn Fn(usize) -> Vec<f64>| {
                let fixed: Vec<Vec<f64>> = (0..tied).map(vector).collect();
                let mut found: Vec<Vec<f64>> = Vec::new();
                for k in 0..length {
                    let mut unit = vec![0.0; length];
                    unit[k] = 1.0;
                    let all: Vec<Vec<f64>> = fixed.iter().chain(&found).cloned().collect();
                    Factors::new(length, &all).reject(&mut unit);
                    let size = norm2(&unit);
                    if size > 1e-6 {
                        unit.iter_mut().for_each(|x| *x /= size);
                        found.push(unit);
                    }
                }
                found
            };
            let left = complement(rows, &|k| svd.left(k).to_vec());
            let right = complement(cols, &|k| svd.right(k).to_vec());
            let outer =
                |l: &Vec<f64>, r: &Vec<f64>| run(first, l.iter().flat_map(|a| r.iter().map(move |b| a * b)).collect());
            left.iter().flat_map(|l| right.iter().map(move |r| outer(l, r))).collect()
        }
        NormSpec::Nuclear if !thin => {
            let svd = factored(rows, cols, w)?;
            let rank = svd.values().iter().filter(|s| **s > TOLERANCE * svd.values()[0]).count();
            let outer = |i: usize, j: usize| {
                svd.left(i).iter().flat_map(|a| svd.right(j).iter().map(move |b| a * b)).collect::<Vec<f64>>()
            };
            symmetric_directions(rank, &outer).into_iter().map(|values| run(first, values)).collect()
        }
        // strictly convex: ℓ2, ℓp, quadratic, and matrices that are vectors
        _ => Vec::new(),
    })
}

fn factored(rows: usize, cols: usize, w: &[f64]) -> Result<Svd, ReferenceError> {
    let mut svd = Svd::new(rows, cols);
    svd.factor(w)?;
    Ok(svd)
}

/// Σ S_ij u_i v_jᵀ for a basis of the symmetric S with trace 0.
fn symmetric_directions(rank: usize, outer: &dyn Fn(usize, usize) -> Vec<f64>) -> Vec<Vec<f64>> {
    let add = |a: Vec<f64>, b: Vec<f64>, sign: f64| a.iter().zip(&b).map(|(a, b)| a + sign * b).collect::<Vec<f64>>();
    let mut span = Vec::new();
    for i in 0..rank {
        for j in 0..i {
            span.push(add(outer(i, j), outer(j, i), 1.0));
        }
        if i > 0 {
            span.push(add(outer(i, i), outer(i - 1, i - 1), -1.0));
        }
    }
    span
}

/// The face of the positive semidefinite matrices of trace 1 at W = UΣUᵀ.
fn semidefinite_face(problem: &MarginProblem, w: &[f64]) -> Result<Vec<SparseRow>, ReferenceError> {
    let size = problem.layout.blocks()[0].rows;
    let svd = factored(size, size, w)?;
    let rank = svd.values().iter().filter(|s| **s > TOLERANCE * svd.values()[0]).count();
    let outer = |i: usize, j: usize| {
        svd.left(i).iter().flat_map(|a| svd.left(j).iter().map(move |b| a * b)).collect::<Vec<f64>>()
    };
    Ok(symmetric_directions(rank, &outer).into_iter().map(|values| run(0, values)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;
    use crate::params::ParamLayout;

    #[test]
    fn aliases_have_the_face_of_the_norm_they_mean() {
        let vector = ParamLayout::vector(3);
        let blocks = ParamLayout::new([("a", 1, 1), ("b", 1, 2)]).unwrap();
        // (½, ½, 0) in ℓ1, (1, 1, 0) in ℓ∞, (√½, √½, 0) in ℓ2: one, one and no dimension
        let (half, ones, diagonal) = ([0.5, 0.5, 0.0], [1.0, 1.0, 0.0], [0.5_f64.sqrt(), 0.5_f64.sqrt(), 0.0]);
        for (texts, v, dimension) in [
            (["l1", "lp:1", "l1-averaged", "max(*=lp:1)", "sum(*=l1)", "sum(*=2*lp:1)", "group21"], &half, 1),
            (["linf", "lp:inf", "max(*=lp:inf)", "max(*=linf)", "sum(*=linf)", "max(*=3*linf)", "group2inf"], &ones, 1),
            (["l2", "lp:2", "frobenius", "spectral", "nuclear", "max(*=lp:2)", "quadratic:4:4:4"], &diagonal, 0),
        ] {
            for text in texts {
                let norm: NormSpec = text.parse().unwrap();
                let size = norm.build(&vector).unwrap().value(v);
                let v: Vec<f64> = v.iter().map(|x| x / size).collect();
                let problem = MarginProblem::new(Matrix::from_rows(&[&[1.0, 1.0, 0.0]]), norm, vector.clone()).unwrap();
                assert_eq!(face(&problem, &v).unwrap().len(), dimension, "{text}");
            }
        }
        for (text, v, dimension) in [("sum(*=lp:1)", half, 1), ("max(*=lp:inf)", ones, 1), ("lp:2", diagonal, 0)] {
            let norm = text.parse().unwrap();
            let problem = MarginProblem::new(Matrix::from_rows(&[&[1.0, 1.0, 0.0]]), norm, blocks.clone()).unwrap();
            assert_eq!(face(&problem, &v).unwrap().len(), dimension, "{text} over two blocks");
        }
    }
}
