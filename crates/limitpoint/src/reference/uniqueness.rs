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
use crate::norms::{Canonical, NormPart, PlainNorm, Rule};
use crate::params::ParamLayout;

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
    if problem.semidefinite && !problem.measures_trace() {
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
    let Canonical { rule, parts } = problem.norm.canonical(&problem.layout)?;
    if let [part] = &parts[..] {
        return face_of_part(part, v);
    }
    let mut span = Vec::new();
    // parts of a sum that are not 0, with their sizes
    let mut used: Vec<(&NormPart, f64)> = Vec::new();
    for part in &parts {
        let alone = ParamLayout::new([("w", part.rows, part.cols)])?;
        let size = part.weight * part.norm.spec().build(&alone)?.value(&part.gather(v));
        match rule {
            Rule::Max if size < 1.0 - TOLERANCE => span.extend(part.places().map(|j| run(j, vec![1.0]))),
            Rule::Sum | Rule::Root if size <= TOLERANCE => {}
            // under a root the sizes of parts are coordinates of a round ball: only faces within the parts are left
            Rule::Max | Rule::Sum | Rule::Root => {
                span.extend(face_of_part(part, v)?);
                used.push((part, size));
            }
        }
    }
    if rule == Rule::Sum {
        // size shifts from one part to another
        let unit = |(part, size): &(&NormPart, f64), sign: f64| {
            part.ranges
                .iter()
                .map(|range| (range.start, v[range.clone()].iter().map(|x| sign * x / size).collect()))
                .collect()
        };
        let shift = |pair: &[(&NormPart, f64)]| -> SparseRow {
            let [from, to]: [SparseRow; 2] = [unit(&pair[0], 1.0), unit(&pair[1], -1.0)];
            from.into_iter().chain(to).collect()
        };
        span.extend(used.windows(2).map(shift));
    }
    Ok(span)
}

/// The same for one part whose norm is at its maximum.
fn face_of_part(part: &NormPart, v: &[f64]) -> Result<Vec<SparseRow>, ReferenceError> {
    let (rows, cols) = (part.rows, part.cols);
    let places: Vec<usize> = part.places().collect();
    let (w, first) = (part.gather(v), places[0]); // a matrix is one block, so its entries follow the first
    let largest = w.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let row = |r: usize| &w[r * cols..(r + 1) * cols];
    let sizes = || (0..rows).map(|r| norm2(row(r))).collect::<Vec<f64>>();
    Ok(match &part.norm {
        // strictly convex
        PlainNorm::L2 | PlainNorm::Lp(_) | PlainNorm::Quadratic(_) | PlainNorm::QuadraticDense(_) => Vec::new(),
        PlainNorm::Linf => {
            let free = (0..w.len()).filter(|&j| w[j].abs() < largest * (1.0 - TOLERANCE));
            free.map(|j| run(places[j], vec![1.0])).collect()
        }
        PlainNorm::L1 => {
            let used: Vec<usize> = (0..w.len()).filter(|&j| w[j].abs() > TOLERANCE * largest).collect();
            let shift = |pair: &[usize]| {
                vec![(places[pair[0]], vec![w[pair[0]].signum()]), (places[pair[1]], vec![-w[pair[1]].signum()])]
            };
            used.windows(2).map(shift).collect()
        }
        PlainNorm::GroupL2Inf => {
            let sizes = sizes();
            let most = sizes.iter().copied().fold(0.0, f64::max);
            let free = (0..rows).filter(|&r| sizes[r] < most * (1.0 - TOLERANCE));
            free.flat_map(|r| (0..cols).map(move |c| run(first + r * cols + c, vec![1.0]))).collect()
        }
        PlainNorm::GroupL21 => {
            let sizes = sizes();
            let most = sizes.iter().copied().fold(0.0, f64::max);
            let used: Vec<usize> = (0..rows).filter(|&r| sizes[r] > TOLERANCE * most).collect();
            let unit = |r: usize, sign: f64| {
                (first + r * cols, row(r).iter().map(|x| sign * x / sizes[r]).collect::<Vec<f64>>())
            };
            used.windows(2).map(|pair| vec![unit(pair[0], 1.0), unit(pair[1], -1.0)]).collect()
        }
        PlainNorm::Spectral => {
            let svd = factored(rows, cols, &w)?;
            let free: Vec<usize> =
                (0..rows.min(cols)).filter(|&k| svd.values()[k] < svd.values()[0] * (1.0 - TOLERANCE)).collect();
            // the free block is the complement of the tied singular vectors on both sides
            let tied = rows.min(cols) - free.len();
            let left = complement(rows, (0..tied).map(|k| svd.left(k).to_vec()).collect());
            let right = complement(cols, (0..tied).map(|k| svd.right(k).to_vec()).collect());
            let outer =
                |l: &Vec<f64>, r: &Vec<f64>| run(first, l.iter().flat_map(|a| r.iter().map(move |b| a * b)).collect());
            left.iter().flat_map(|l| right.iter().map(move |r| outer(l, r))).collect()
        }
        PlainNorm::Nuclear => {
            let svd = factored(rows, cols, &w)?;
            let rank = svd.values().iter().filter(|s| **s > TOLERANCE * svd.values()[0]).count();
            let outer = |i: usize, j: usize| {
                svd.left(i).iter().flat_map(|a| svd.right(j).iter().map(move |b| a * b)).collect::<Vec<f64>>()
            };
            symmetric_directions(rank, &outer).into_iter().map(|values| run(first, values)).collect()
        }
    })
}

/// An orthonormal basis of what is orthogonal to some orthonormal vectors.
fn complement(length: usize, mut basis: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let fixed = basis.len();
    for k in 0..length {
        let mut unit = vec![0.0; length];
        unit[k] = 1.0;
        Factors::new(length, &basis).reject(&mut unit);
        let size = norm2(&unit);
        if size > 1e-6 {
            unit.iter_mut().for_each(|x| *x /= size);
            basis.push(unit);
        }
    }
    basis.split_off(fixed)
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
    use crate::norms::NormSpec;

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
        for (text, v, dimension) in [
            ("sum(*=lp:1)", half, 1),
            ("max(*=lp:inf)", ones, 1),
            ("lp:2", diagonal, 0),
            ("sum(a=2*l1,b=l1)", [0.25, 0.5, 0.0], 1),
            ("max(a=linf,b=2*linf)", [1.0, 0.5, 0.0], 1),
        ] {
            let norm = text.parse().unwrap();
            let problem = MarginProblem::new(Matrix::from_rows(&[&[1.0, 1.0, 0.0]]), norm, blocks.clone()).unwrap();
            assert_eq!(face(&problem, &v).unwrap().len(), dimension, "{text} over two blocks");
        }
    }
}
