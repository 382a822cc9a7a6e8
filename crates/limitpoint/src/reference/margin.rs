//! Solving the margin problem: which method, on which rows.
//!
//! ℓ1, ℓ2, ℓ∞ and their weighted forms go to the dense interior-point method ([`interior`](super::interior)), every
//! other norm to the conic solver. Problems of many rows are solved on a working set, since few rows matter: rows and
//! cone rows that the present solution violates are added until there are none, and rows without weight leave again.
//! This is the cutting-plane method for the primal and column generation for the dual; multipliers outside the set are
//! 0, so the upper bound holds for the whole problem at every stage. It falls with every row that is added, and rows
//! without weight do not hold it; where it no longer falls by more than rounding, none leaves, so that the sets grow
//! and the method ends.

use super::interior::{self, BallSpec, Structure};
use super::{Bracket, KinkRow, MarginProblem, Multipliers, ReferenceError, sparse_dot};
use crate::linalg::Matrix;
use crate::norms::{BlockNorm, NormSpec};
use crate::params::ParamLayout;

/// Rows up to which a problem is solved in one piece.
const WHOLE: usize = 1000;
/// Rows up to which a Gram matrix is solved in one piece.
const GRAM: usize = 2500;
/// Rows a working set starts with.
const FIRST: usize = 300;
/// A working set lets go of rows only where the upper bound fell at least to this share of the last.
pub(super) const FALLS: f64 = 0.999;

/// The solution of a margin problem with its proof.
#[derive(Debug, Clone, PartialEq)]
pub struct MarginSolution {
    /// lower ≤ optimum ≤ upper, from `direction` and `multipliers`.
    pub bracket: Bracket,
    /// v with ‖v‖ = 1, which attains the lower bound; empty if only a Gram matrix was given.
    pub direction: Vec<f64>,
    /// Dual weights with Σ p = 1, which prove the upper bound.
    pub multipliers: Multipliers,
    /// Interior-point iterations, over all working sets.
    pub iterations: usize,
}

impl MarginSolution {
    /// The better direction and the better multipliers of two, each by its own bound.
    fn better_halves(mut self, other: Self) -> Self {
        if other.bracket.lower > self.bracket.lower {
            (self.bracket.lower, self.direction) = (other.bracket.lower, other.direction);
        }
        if other.bracket.upper < self.bracket.upper {
            (self.bracket.upper, self.multipliers) = (other.bracket.upper, other.multipliers);
        }
        self
    }
}

/// Solves a margin problem.
///
/// ```
/// use limitpoint::linalg::Matrix;
/// use limitpoint::norms::NormSpec;
/// use limitpoint::params::ParamLayout;
/// use limitpoint::reference::{MarginProblem, solve_margin};
/// // max over |v| ≤ 1 of min(v₁ + v₂, v₁ − v₂): v = (1, 0)
/// let rows = Matrix::from_rows(&[&[1.0, 1.0], &[1.0, -1.0]]);
/// let solution = solve_margin(&MarginProblem::new(rows, NormSpec::Linf, ParamLayout::vector(2))?)?;
/// assert!((solution.bracket.lower - 1.0).abs() < 1e-12 && solution.bracket.relative_gap() < 1e-12);
/// assert!((solution.multipliers.rows[0] - 0.5).abs() < 1e-6);
/// # Ok::<(), limitpoint::reference::ReferenceError>(())
/// ```
pub fn solve_margin(problem: &MarginProblem) -> Result<MarginSolution, ReferenceError> {
    solve_in_pieces(problem, WHOLE, FIRST)
}

/// [`solve_margin`] with its own bounds on what is solved in one piece and on the first working set.
pub(super) fn solve_in_pieces(
    problem: &MarginProblem,
    whole: usize,
    first: usize,
) -> Result<MarginSolution, ReferenceError> {
    let ball = if problem.semidefinite { None } else { ball_of(&problem.norm, &problem.layout) };
    let columns = useful_columns(problem);
    let mut set = WorkingSet::first(problem, whole, first);
    let mut iterations = 0;
    let mut best: Option<MarginSolution> = None;
    let mut nothing;
    loop {
        let reduced = set.reduce(problem);
        let (v, local, steps) = match &ball {
            Some(ball) => solve_dense(&reduced, ball, &columns)?,
            None => super::conic::solve_margin_conic(&reduced)?,
        };
        iterations += steps;
        let multipliers = set.expand(problem, &local);
        let (solution, margins) = assemble(problem, v, multipliers, iterations)?;
        let violated = set.violations(problem, &solution.direction, &margins, solution.bracket.upper);
        // no direction separates even these rows: more of them change nothing
        nothing = set.rows.iter().any(|&i| margins[i] <= 0.0);
        let falls = best.as_ref().is_none_or(|old| solution.bracket.upper < FALLS * old.bracket.upper);
        best = Some(match best {
            Some(old) => old.better_halves(solution),
            None => solution,
        });
        if nothing || (violated.0.is_empty() && violated.1.is_empty()) {
            break;
        }
        if set.rows.len() < problem.rows.rows && falls {
            prune(&mut set.rows, &local.rows);
        }
        set.add(violated);
    }
    let mut solution = best.expect("the loop sets it before it ends");
    solution.iterations = iterations;
    if set.is_whole(problem) {
        return Ok(super::refine::refine(problem, ball.as_ref(), solution));
    }
    // the last digits on the rows of the set, judged on all
    let reduced = set.reduce(problem);
    let rows = set.rows.iter().map(|&i| solution.multipliers.rows[i]).collect();
    let direction = solution.direction.clone();
    if !problem.kinks.is_empty() || !problem.cone.is_empty() || solution.bracket.upper <= 0.0 || nothing {
        return Ok(solution);
    }
    let (local, _) = assemble(&reduced, direction, Multipliers::of_rows(rows), iterations)?;
    let local = super::refine::refine(&reduced, ball.as_ref(), local);
    let (refined, _) = assemble(problem, local.direction, set.expand(problem, &local.multipliers), iterations)?;
    Ok(solution.better_halves(refined))
}

/// Solves an ℓ2 margin problem that is known only by the Gram matrix ⟨h_i, h_j⟩ of its rows.
///
/// ```text
/// max_{‖v‖₂≤1} min_i ⟨h_i, v⟩ = min_p √(pᵀKp),     v = Σ p_i h_i / √(pᵀKp)
/// ```
///
/// The direction is the caller's to form; the multipliers of the solution are its coefficients.
pub fn solve_margin_gram(gram: &Matrix) -> Result<MarginSolution, ReferenceError> {
    let scale = (0..gram.rows).map(|i| gram[(i, i)]).fold(0.0, f64::max);
    if gram.rows == 0 || gram.cols != gram.rows {
        return Err(ReferenceError::Rows { rows: gram.rows, columns: gram.cols, expected: gram.rows });
    }
    if let Some(at) = gram.data.iter().position(|x| !x.is_finite()) {
        return Err(ReferenceError::NotFinite { row: at / gram.cols, column: at % gram.cols, value: gram.data[at] });
    }
    let spec = BallSpec::Euclid(Vec::new());
    let product = |p: &[f64]| (0..gram.rows).map(|i| crate::linalg::dot(gram.row(i), p)).collect::<Vec<f64>>();
    let mut set: Vec<usize> = if gram.rows <= GRAM { (0..gram.rows).collect() } else { spread(gram.rows, FIRST) };
    let mut iterations = 0;
    loop {
        let mut local = Matrix::zeros(set.len(), set.len());
        for (i, &row) in set.iter().enumerate() {
            let picked = set.iter().map(|&j| gram[(row, j)] / scale.max(f64::MIN_POSITIVE));
            local.row_mut(i).iter_mut().zip(picked).for_each(|(out, k)| *out = k);
        }
        let structure = Structure { rows: set.len(), parents: &[], cone: 0, matrix: None, gram: Some(&local) };
        let found = interior::solve(&structure, &spec);
        iterations += found.iterations;
        let mut rows = vec![0.0; gram.rows];
        set.iter().zip(&found.multipliers).for_each(|(&i, p)| rows[i] = p.max(0.0));
        let total: f64 = rows.iter().sum();
        rows.iter_mut().for_each(|p| *p /= total);
        let products = product(&rows);
        let upper = crate::linalg::dot(&rows, &products).max(0.0).sqrt();
        let lower = products.iter().copied().fold(f64::INFINITY, f64::min) / upper;
        let floor = upper * upper * (1.0 - 1e-12) - 1e-15 * scale;
        let mut violated: Vec<usize> =
            (0..gram.rows).filter(|i| products[*i] < floor && set.binary_search(i).is_err()).collect();
        if violated.is_empty() {
            let bracket = Bracket { lower, upper };
            return Ok(MarginSolution {
                bracket,
                direction: Vec::new(),
                multipliers: Multipliers::of_rows(rows),
                iterations,
            });
        }
        violated.sort_by(|a, b| products[*a].total_cmp(&products[*b]));
        violated.truncate(set.len().max(50) / 2);
        set.extend(violated);
        set.sort_unstable();
    }
}

/// Lets go of rows without weight.
pub(super) fn prune(set: &mut Vec<usize>, weights: &[f64]) {
    let heaviest = weights.iter().copied().fold(0.0, f64::max);
    let mut weights = weights.iter();
    set.retain(|_| weights.next().is_some_and(|p| *p > 1e-9 * heaviest));
}

/// Rows below the upper bound that are not in the set, worst first; at most as many as the set has, or a hundred.
pub(super) fn worst(margins: &[f64], set: &[usize], upper: f64) -> Vec<usize> {
    let floor = upper - 1e-12 * upper.abs();
    let mut rows: Vec<usize> =
        (0..margins.len()).filter(|i| margins[*i] < floor && set.binary_search(i).is_err()).collect();
    rows.sort_by(|a, b| margins[*a].total_cmp(&margins[*b]));
    rows.truncate(set.len().max(100));
    rows
}

/// `count` of the numbers below `total`, evenly spread.
pub(super) fn spread(total: usize, count: usize) -> Vec<usize> {
    (0..count.min(total)).map(|k| k * total / count.min(total)).collect()
}

/// The weighted ball of a norm that the dense method knows, one weight for every entry of the layout.
pub(super) fn ball_of(norm: &NormSpec, layout: &ParamLayout) -> Option<BallSpec> {
    let ones = || vec![1.0; layout.len()];
    let thin = || layout.trainable().all(|block| block.cols == 1);
    let single = || layout.trainable().count() == 1 && layout.trainable().all(|b| b.rows == 1 || b.cols == 1);
    match &norm.by_block(layout).ok()? {
        NormSpec::L1 | NormSpec::L1Averaged => Some(BallSpec::Cross(ones())),
        NormSpec::Lp { p } if *p == 1.0 => Some(BallSpec::Cross(ones())),
        NormSpec::GroupL21 if thin() => Some(BallSpec::Cross(ones())),
        NormSpec::Linf => Some(BallSpec::Box(ones())),
        NormSpec::Lp { p } if p.is_infinite() => Some(BallSpec::Box(ones())),
        NormSpec::GroupL2Inf if thin() => Some(BallSpec::Box(ones())),
        NormSpec::L2 | NormSpec::Frobenius => Some(BallSpec::Euclid(ones())),
        NormSpec::Lp { p } if *p == 2.0 => Some(BallSpec::Euclid(ones())),
        NormSpec::Spectral | NormSpec::Nuclear if single() => Some(BallSpec::Euclid(ones())),
        NormSpec::Quadratic { diagonal } => {
            let (mut theta, mut given) = (ones(), diagonal.iter());
            for j in layout.trainable_ranges().into_iter().flatten() {
                theta[j] = given.next()?.recip();
            }
            Some(BallSpec::Euclid(theta))
        }
        NormSpec::Max { blocks } => {
            blockwise(blocks, layout, &|norm| matches!(norm, NormSpec::Linf), f64::recip).map(BallSpec::Box)
        }
        NormSpec::Sum { blocks } => {
            let l1 = |norm: &NormSpec| matches!(norm, NormSpec::L1 | NormSpec::L1Averaged);
            blockwise(blocks, layout, &l1, |c| c).map(BallSpec::Cross)
        }
        _ => None,
    }
}

/// One weight an entry for a composition whose blocks all have an admissible norm.
fn blockwise(
    blocks: &[BlockNorm],
    layout: &ParamLayout,
    admissible: &dyn Fn(&NormSpec) -> bool,
    weight: impl Fn(f64) -> f64,
) -> Option<Vec<f64>> {
    let mut weights = vec![1.0; layout.len()];
    for block in layout.trainable() {
        let find = |name: &str| blocks.iter().find(|entry| entry.block == name);
        let entry = find(&block.name).or_else(|| find("*"))?;
        if !admissible(&entry.norm) {
            return None;
        }
        weights[block.range()].iter_mut().for_each(|w| *w = weight(entry.weight));
    }
    Some(weights)
}

/// The trainable columns with an entry that is not 0; the others do not move.
fn useful_columns(problem: &MarginProblem) -> Vec<usize> {
    let mut used = vec![false; problem.layout.len()];
    for i in 0..problem.rows.rows {
        problem.rows.row(i).iter().zip(&mut used).for_each(|(x, used)| *used |= *x != 0.0);
    }
    let sparse = problem.kinks.iter().map(|kink| &kink.change).chain(&problem.cone);
    for (first, run) in sparse.flatten() {
        run.iter().zip(&mut used[*first..]).for_each(|(x, used)| *used |= *x != 0.0);
    }
    problem.layout.trainable_ranges().into_iter().flatten().filter(|&j| used[j]).collect()
}

/// The dense method on all rows of a problem: direction, multipliers and iterations.
fn solve_dense(
    problem: &MarginProblem,
    ball: &BallSpec,
    columns: &[usize],
) -> Result<(Vec<f64>, Multipliers, usize), ReferenceError> {
    let pick = |weights: &[f64]| columns.iter().map(|&j| weights[j]).collect::<Vec<f64>>();
    let spec = match ball {
        BallSpec::Euclid(w) => BallSpec::Euclid(pick(w)),
        BallSpec::Box(w) => BallSpec::Box(pick(w)),
        BallSpec::Cross(w) => BallSpec::Cross(pick(w)),
    };
    let (rows, kinks, cone) = (problem.rows.rows, problem.kinks.len(), problem.cone.len());
    let mut m = Matrix::zeros(rows + kinks + cone, columns.len());
    for i in 0..rows {
        m.row_mut(i).iter_mut().zip(columns).for_each(|(out, &j)| *out = problem.rows.row(i)[j]);
    }
    let mut place = vec![usize::MAX; problem.layout.len()];
    columns.iter().enumerate().for_each(|(at, &j)| place[j] = at);
    let sparse = problem.kinks.iter().map(|kink| &kink.change).chain(&problem.cone);
    for (k, row) in sparse.enumerate() {
        for (first, run) in row {
            let entries = run.iter().zip(&place[*first..]).filter(|(_, at)| **at != usize::MAX);
            entries.for_each(|(x, at)| m.row_mut(rows + k)[*at] = *x);
        }
    }
    // rows and kinks share one scale, every cone row has its own
    let largest = (0..rows).map(|i| spec.dual(m.row(i))).fold(0.0, f64::max);
    let scale = if largest > 0.0 { largest } else { 1.0 };
    let mut scales = vec![scale; rows + kinks];
    scales.extend((rows + kinks..m.rows).map(|i| spec.dual(m.row(i)).max(f64::MIN_POSITIVE)));
    for (i, scale) in scales.iter().enumerate() {
        m.row_mut(i).iter_mut().for_each(|x| *x /= scale);
    }
    let parents: Vec<usize> = problem.kinks.iter().map(|kink| kink.row).collect();
    let found = interior::solve(&Structure { rows, parents: &parents, cone, matrix: Some(&m), gram: None }, &spec);
    let mut v = vec![0.0; problem.layout.len()];
    columns.iter().zip(&found.weights).for_each(|(&j, x)| v[j] = *x);
    let multipliers = Multipliers {
        rows: found.multipliers[..rows].to_vec(),
        kinks: found.multipliers[rows..rows + kinks].to_vec(),
        cone: found.multipliers[rows + kinks..]
            .iter()
            .zip(&scales[rows + kinks..])
            .map(|(s, c)| s * scale / c)
            .collect(),
    };
    Ok((v, multipliers, found.iterations))
}

/// Normalises both halves and computes the bracket of the whole problem, with the margins of all rows.
pub(super) fn assemble(
    problem: &MarginProblem,
    mut v: Vec<f64>,
    multipliers: Multipliers,
    iterations: usize,
) -> Result<(MarginSolution, Vec<f64>), ReferenceError> {
    let size = problem.norm.build(&problem.layout)?.value(&v);
    if size > 0.0 && size.is_finite() {
        v.iter_mut().for_each(|x| *x /= size);
    }
    let mut multipliers = problem.clean(&multipliers);
    let total: f64 = multipliers.rows.iter().sum();
    let all = multipliers.rows.iter_mut().chain(&mut multipliers.kinks).chain(&mut multipliers.cone);
    all.for_each(|x| *x /= total);
    let margins = problem.margins(&v);
    let mut norm = problem.norm.build(&problem.layout)?;
    let lower = problem.lower_bound_of(&mut *norm, &v, &margins);
    let bracket = Bracket { lower, upper: problem.upper_bound(&mut *norm, &multipliers)? };
    Ok((MarginSolution { bracket, direction: v, multipliers, iterations }, margins))
}

/// The rows and cone rows that are being solved.
struct WorkingSet {
    rows: Vec<usize>,
    cone: Vec<usize>,
}

impl WorkingSet {
    fn first(problem: &MarginProblem, whole: usize, first: usize) -> Self {
        let (rows, cone) = (problem.rows.rows, problem.cone.len());
        Self {
            rows: if rows <= whole { (0..rows).collect() } else { spread(rows, first) },
            cone: if cone <= whole { (0..cone).collect() } else { Vec::new() },
        }
    }

    fn is_whole(&self, problem: &MarginProblem) -> bool {
        self.rows.len() == problem.rows.rows && self.cone.len() == problem.cone.len()
    }

    fn reduce<'a>(&self, problem: &'a MarginProblem) -> std::borrow::Cow<'a, MarginProblem> {
        if self.is_whole(problem) {
            return std::borrow::Cow::Borrowed(problem);
        }
        let mut rows = Matrix::zeros(self.rows.len(), problem.rows.cols);
        self.rows.iter().enumerate().for_each(|(at, &i)| rows.row_mut(at).copy_from_slice(problem.rows.row(i)));
        let kinks = problem.kinks.iter().filter_map(|kink| {
            let row = self.rows.binary_search(&kink.row).ok()?;
            Some(KinkRow { row, change: kink.change.clone() })
        });
        std::borrow::Cow::Owned(MarginProblem {
            rows,
            kinks: kinks.collect(),
            cone: self.cone.iter().map(|&m| problem.cone[m].clone()).collect(),
            norm: problem.norm.clone(),
            layout: problem.layout.clone(),
            semidefinite: problem.semidefinite,
        })
    }

    fn add(&mut self, (rows, cone): (Vec<usize>, Vec<usize>)) {
        self.rows.extend(rows);
        self.cone.extend(cone);
        self.rows.sort_unstable();
        self.cone.sort_unstable();
    }

    /// The multipliers of the whole problem.
    fn expand(&self, problem: &MarginProblem, local: &Multipliers) -> Multipliers {
        let mut all = Multipliers {
            rows: vec![0.0; problem.rows.rows],
            kinks: vec![0.0; problem.kinks.len()],
            // of a semidefinite problem a matrix, whatever the rows
            cone: if problem.semidefinite { local.cone.clone() } else { vec![0.0; problem.cone.len()] },
        };
        self.rows.iter().zip(&local.rows).for_each(|(&i, p)| all.rows[i] = *p);
        self.cone.iter().zip(&local.cone).for_each(|(&m, s)| all.cone[m] = *s);
        let kept = problem.kinks.iter().enumerate().filter(|(_, kink)| self.rows.binary_search(&kink.row).is_ok());
        kept.zip(&local.kinks).for_each(|((k, _), e)| all.kinks[k] = *e);
        all
    }

    /// Rows below the upper bound and cone rows below 0 that are not in the set, worst first.
    fn violations(&self, problem: &MarginProblem, v: &[f64], margins: &[f64], upper: f64) -> (Vec<usize>, Vec<usize>) {
        let rows = worst(margins, &self.rows, upper);
        let outside = (0..problem.cone.len()).filter(|m| self.cone.binary_search(m).is_err());
        let mut cone: Vec<(f64, usize)> = outside
            .map(|m| (sparse_dot(&problem.cone[m], v) / sparse_size(&problem.cone[m]), m))
            .filter(|(product, _)| *product < -1e-13)
            .collect();
        cone.sort_by(|a, b| a.0.total_cmp(&b.0));
        cone.truncate(self.cone.len().max(100));
        (rows, cone.into_iter().map(|(_, m)| m).collect())
    }
}

/// ‖row‖₂, at least the smallest positive number.
fn sparse_size(row: &super::SparseRow) -> f64 {
    row.iter().map(|(_, run)| crate::linalg::norm2(run)).fold(0.0, f64::hypot).max(f64::MIN_POSITIVE)
}
