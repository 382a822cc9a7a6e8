//! The tangent problem from the rows of the smallest margins, to which violated rows are added until it closes.
//!
//! At a KKT point only the smallest margins carry weight, so that a few of many rows decide. With W the margins whose rows
//! are held,
//!
//! ```text
//! γ_W = max_{‖v‖ ≤ 1} min_{k ∈ W} ⟨h_k, v⟩ = min_{p on W} ‖Σ p_k h_k‖_*  ≥  γ_tan  ≥  min_k ⟨h_k, v_W⟩
//! ```
//!
//! the multipliers on W prove the upper bound of the whole problem, and its lower bound is that of v_W over all margins,
//! whose rows are made a few examples at a time and forgotten. The margins that v_W violates most are added, as many as
//! there are, until none is left or the two bounds meet.

use super::clarke::{Rows, margin_gradients};
use super::tangent::{Coverage, Slopes, TangentCertificate, TangentProblem, checked_margins};
use super::{CertificateError, Geometry};
use crate::data::Targets;
use crate::engine::{Forward, Tangents};
use crate::linalg::{Matrix, dot};
use crate::memory::{bytes, require};
use crate::models::MarginMap;
use crate::reference::{KinkRow, MarginSolution, solve_margin, sparse_dot};

/// Margins that the first problem holds: the most, the fewest, and numbers between them that their rows may have.
const MOST: usize = 64;
const FEWEST: usize = 8;
const HELD: usize = 32 << 20;
/// Problems that are solved.
const ROUNDS: usize = 60;
/// Numbers of rows that are made at a time to be multiplied by a direction: 64 MiB.
const AT_ONCE: usize = 8 << 20;
/// A margin is violated if it is lower than the bound by more than this share of it.
const SLACK: f64 = 1e-11;

/// τ of a point in any geometry, without the rows of all margins.
///
/// ```
/// use limitpoint::certificates::{Slopes, tangent_certificate_from_smallest};
/// use limitpoint::data::Targets;
/// use limitpoint::linalg::Matrix;
/// use limitpoint::engine::{Compute, cpu};
/// use limitpoint::models::ModelSpec;
/// use limitpoint::norms::NormSpec;
/// // f = ⟨w, x⟩ at w = (1, 0): the machine of these points is w = (½, ½) in ℓ∞, so that γ_tan = 2 and τ = ½
/// let inputs = Matrix::from_rows(&[&[1.0, 1.0], &[1.0, 2.0], &[5.0, 5.0]]);
/// let mut model = cpu::bind(&ModelSpec::Linear, &inputs, 1, Compute::default()).unwrap();
/// let (targets, norm) = (Targets::Binary(vec![1.0; 3]), NormSpec::Linf.into());
/// let found = tangent_certificate_from_smallest(&mut *model, &targets, &[1.0, 0.0], &norm, Slopes::Fixed)?;
/// assert!((found.tau - 0.5).abs() < 1e-9);
/// # Ok::<(), limitpoint::certificates::CertificateError>(())
/// ```
pub fn tangent_certificate_from_smallest(
    model: &mut dyn Tangents,
    targets: &Targets,
    params: &[f64],
    geometry: &Geometry,
    slopes: Slopes,
) -> Result<TangentCertificate, CertificateError> {
    let (tangent, solution) = solve_from_smallest(model, targets, params, geometry, slopes)?;
    Ok(tangent.conclude(solution))
}

/// The last problem, and its solution with the lower bound that its direction has over all margins.
pub(super) fn solve_from_smallest(
    model: &mut dyn Tangents,
    targets: &Targets,
    params: &[f64],
    geometry: &Geometry,
    slopes: Slopes,
) -> Result<(TangentProblem, MarginSolution), CertificateError> {
    let (margins, _) = checked_margins(model, targets, params)?;
    let whole = Whole::new(targets, params, slopes);
    let mut order: Vec<usize> = (0..margins.len()).collect();
    order.sort_by(|a, b| margins[*a].total_cmp(&margins[*b]).then(a.cmp(b)));
    let first = (HELD / params.len().max(1)).clamp(FEWEST, MOST);
    order.truncate(first);
    let mut held = whole.none();
    whole.add(model, &mut held, &order)?;
    let (mut iterations, mut round) = (0, 0);
    loop {
        round += 1;
        let mut tangent = TangentProblem::from_rows(model, targets, params, geometry, held)?;
        let mut solution = solve_margin(&tangent.problem)?;
        iterations += solution.iterations;
        solution.iterations = iterations;
        let size = tangent.problem.norm.build(&tangent.problem.layout)?.value(&solution.direction);
        let values = whole.products(model, &solution.direction)?;
        let floor = solution.bracket.lower - SLACK * solution.bracket.upper.abs();
        let held_already = |k: &usize| tangent.margin_of_row.contains(k);
        let mut violated: Vec<usize> =
            (0..values.len()).filter(|k| values[*k] / size < floor && !held_already(k)).collect();
        violated.sort_by(|a, b| values[*a].total_cmp(&values[*b]).then(a.cmp(b)));
        if violated.is_empty() || round == ROUNDS {
            let lowest = values.iter().copied().fold(f64::INFINITY, f64::min) / size;
            solution.bracket.lower = solution.bracket.lower.min(lowest);
            model.select(None);
            return Ok((tangent, solution));
        }
        violated.truncate(tangent.margin_of_row.len().max(first));
        held = Rows {
            rows: std::mem::take(&mut tangent.problem.rows),
            kinks: std::mem::take(&mut tangent.problem.kinks),
            margin_of_row: tangent.margin_of_row,
            coverage: tangent.coverage,
            count: tangent.kinks,
        };
        whole.add(model, &mut held, &violated)?;
    }
}

/// The problem of these margins alone, in this order, and min ⟨h_k, v⟩/‖v‖ over all margins where a direction is given.
pub(super) fn rebuild(
    model: &mut dyn Tangents,
    targets: &Targets,
    params: &[f64],
    (geometry, slopes): (&Geometry, Slopes),
    margins: &[usize],
    direction: &[f64],
) -> Result<(TangentProblem, Option<f64>), CertificateError> {
    let all = checked_margins(model, targets, params)?.0.len();
    if let Some(margin) = margins.iter().find(|k| **k >= all) {
        let (what, range) = ("the number of a margin", "below the number of margins");
        return Err(CertificateError::OutOfRange { what, value: *margin as f64, range });
    }
    let whole = Whole::new(targets, params, slopes);
    let mut held = whole.none();
    for margin in margins {
        whole.add(model, &mut held, std::slice::from_ref(margin))?;
    }
    let tangent = TangentProblem::from_rows(model, targets, params, geometry, held)?;
    if direction.is_empty() {
        return Ok((tangent, None));
    }
    model.layout().check(direction)?;
    let size = tangent.problem.norm.build(&tangent.problem.layout)?.value(direction);
    let values = whole.products(model, direction)?;
    model.select(None);
    let lowest = values.into_iter().fold(f64::INFINITY, f64::min);
    Ok((tangent, Some(if size > 0.0 { lowest / size } else { 0.0 })))
}

/// All margins of a model at a point, seen a few examples at a time.
struct Whole<'a> {
    targets: &'a Targets,
    params: &'a [f64],
    slopes: Slopes,
    per: usize,
}

impl<'a> Whole<'a> {
    fn new(targets: &'a Targets, params: &'a [f64], slopes: Slopes) -> Self {
        Self { targets, params, slopes, per: MarginMap::new(targets).per_example() }
    }

    /// No rows yet.
    fn none(&self) -> Rows {
        Rows {
            rows: Matrix::zeros(0, self.params.len()),
            kinks: Vec::new(),
            margin_of_row: Vec::new(),
            coverage: if self.slopes == Slopes::Fixed { Coverage::Fixed } else { Coverage::Clarke },
            count: 0,
        }
    }

    /// Appends the rows of these margins with their kinks.
    fn add(&self, model: &mut dyn Tangents, held: &mut Rows, margins: &[usize]) -> Result<(), CertificateError> {
        let needed = bytes(&[held.rows.rows + 2 * margins.len(), self.params.len()], 8);
        let what = format!("a tangent problem of {} rows", held.rows.rows + margins.len());
        require(what, needed, "judge fewer examples, or in l2 with fixed slopes")?;
        let mut wanted = margins.to_vec();
        wanted.sort_unstable();
        let mut examples: Vec<usize> = wanted.iter().map(|k| k / self.per).collect();
        examples.dedup();
        for few in examples.chunks(self.at_once()) {
            let own = self.rows(model, few)?;
            for (place, n) in few.iter().enumerate() {
                for j in (0..self.per).filter(|j| wanted.binary_search(&(n * self.per + j)).is_ok()) {
                    let (from, at) = (place * self.per + j, held.rows.rows);
                    held.rows.data.extend_from_slice(own.rows.row(from));
                    held.rows.rows += 1;
                    held.margin_of_row.push(n * self.per + j);
                    let kinks = own.kinks.iter().filter(|kink| kink.row == from);
                    held.kinks.extend(kinks.map(|kink| KinkRow { row: at, change: kink.change.clone() }));
                }
            }
            if own.coverage == Coverage::Partial {
                held.coverage = Coverage::Partial;
            }
        }
        held.count = held.kinks.len();
        Ok(())
    }

    /// The rows of all margins of some examples.
    fn rows(&self, model: &mut dyn Tangents, examples: &[usize]) -> Result<Rows, CertificateError> {
        let targets = self.targets.select(examples);
        model.select(Some(examples));
        Rows::of_selection(model, &MarginMap::new(&targets), self.params, self.slopes)
    }

    /// Examples whose rows are made at a time.
    fn at_once(&self) -> usize {
        (AT_ONCE / (self.per * self.params.len()).max(1)).max(1)
    }

    /// min over slopes of ⟨h_k, v⟩ for every margin; −∞ where only some slopes were tried, since others may be lower.
    fn products(&self, model: &mut dyn Tangents, v: &[f64]) -> Result<Vec<f64>, CertificateError> {
        let mut products = Vec::new();
        let all: Vec<usize> = (0..self.targets.len()).collect();
        for few in all.chunks(self.at_once()) {
            if self.slopes == Slopes::Fixed {
                let own = self.targets.select(few);
                model.select(Some(few));
                let rows = margin_gradients(model, &MarginMap::new(&own), self.params);
                products.extend((0..rows.rows).map(|row| dot(rows.row(row), v)));
                continue;
            }
            let rows = self.rows(model, few)?;
            let mut own: Vec<f64> = (0..rows.rows.rows).map(|row| dot(rows.rows.row(row), v)).collect();
            rows.kinks.iter().for_each(|kink| own[kink.row] += sparse_dot(&kink.change, v).min(0.0));
            if rows.coverage == Coverage::Partial {
                let kinked: Vec<usize> = rows.kinks.iter().map(|kink| kink.row).collect();
                kinked.into_iter().for_each(|row| own[row] = f64::NEG_INFINITY);
            }
            products.extend(own);
        }
        Ok(products)
    }
}
