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
use super::working_set::{FALLS, WorkingSet, prune, spread};
use super::{Bracket, MarginProblem, Multipliers, ReferenceError};
use crate::linalg::Matrix;
use crate::norms::{Canonical, NormSpec, PlainNorm, Rule};
use crate::params::ParamLayout;

/// Rows up to which a problem is solved in one piece.
const WHOLE: usize = 1000;
/// Rows up to which a Gram matrix is solved in one piece.
const GRAM: usize = 2500;
/// Rows a working set starts with.
const FIRST: usize = 300;

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
    let ball = if problem.semidefinite { None } else { ball_of(&problem.norm, &problem.layout)? };
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
    if !problem.kinks.is_empty() || !problem.cone.is_empty() || solution.bracket.upper <= 0.0 || nothing {
        return Ok(solution);
    }
    // the last digits on the rows of the set, with the bounds of all
    let reduced = set.reduce(problem);
    let rows = set.rows.iter().map(|&i| solution.multipliers.rows[i]).collect();
    let direction = solution.direction.clone();
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

/// The weighted ball of a norm that the dense method knows, one weight for every entry of the layout; the conic solver
/// serves the others.
pub(super) fn ball_of(norm: &NormSpec, layout: &ParamLayout) -> Result<Option<BallSpec>, ReferenceError> {
    let Canonical { rule, parts } = norm.canonical(layout)?;
    let weights = |weight: &dyn Fn(f64) -> f64| {
        let mut weights = vec![1.0; layout.len()];
        for part in &parts {
            part.places().for_each(|j| weights[j] = weight(part.weight));
        }
        weights
    };
    if let [part] = &parts[..] {
        return Ok(match &part.norm {
            PlainNorm::L1 => Some(BallSpec::Cross(weights(&|c| c))),
            PlainNorm::Linf => Some(BallSpec::Box(weights(&f64::recip))),
            PlainNorm::L2 => Some(BallSpec::Euclid(weights(&|c| (c * c).recip()))),
            PlainNorm::Quadratic(diagonal) => {
                let mut theta = weights(&|c| (c * c).recip());
                part.places().zip(diagonal).for_each(|(j, d)| theta[j] /= d);
                Some(BallSpec::Euclid(theta))
            }
            PlainNorm::Lp(_)
            | PlainNorm::QuadraticDense(_)
            | PlainNorm::Spectral
            | PlainNorm::Nuclear
            | PlainNorm::GroupL21
            | PlainNorm::GroupL2Inf => None,
        });
    }
    // a block of one entry has every norm
    let all =
        |norm: PlainNorm| parts.iter().all(|part| part.norm == norm || (part.len() == 1 && part.norm == PlainNorm::L2));
    Ok(match rule {
        Rule::Max => all(PlainNorm::Linf).then(|| BallSpec::Box(weights(&f64::recip))),
        Rule::Sum => all(PlainNorm::L1).then(|| BallSpec::Cross(weights(&|c| c))),
        Rule::Root => all(PlainNorm::L2).then(|| BallSpec::Euclid(weights(&|c| (c * c).recip()))),
    })
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
