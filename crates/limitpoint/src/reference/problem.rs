//! The margin problem: one convex problem behind exact margins, tangent certificates and polishing.
//!
//! ```text
//! primal   max_{‖v‖ ≤ 1} min_i ( ⟨h_i, v⟩ + Σ_{k of row i} min(0, ⟨c_k, v⟩) )     subject to ⟨r_m, v⟩ ≥ 0
//! dual     min ‖ Σ_i p_i h_i + Σ_k e_k c_k + Σ_m s_m r_m ‖_*     over Σp = 1, p ≥ 0, 0 ≤ e_k ≤ p_{row of k}, s ≥ 0
//! ```
//!
//! With rows h_i = y_i x_i alone it is the max-margin problem of a linear model (B Lemma 9: the two values agree). With
//! h_i = ∇q_i(θ) it is the tangent problem of a network at θ; a kink of row i adds c_k, the change of h_i from the left
//! to the right slope, and the dual then ranges over all of Clarke's subdifferential. The cone rows r_m keep v inside
//! an activation cell.
//!
//! Any v and any multipliers bracket the value from both sides ([`MarginProblem::bracket`]), whoever found them: that
//! is the proof a solver has to bring.

use super::ReferenceError;
use crate::data::{Dataset, Targets};
use crate::linalg::{Matrix, add_scaled, dot, norm2};
use crate::memory::{bytes, require};
use crate::norms::{Norm, NormPart, NormSpec, PlainNorm};
use crate::numeric::compensated_dot;
use crate::params::ParamLayout;

/// Rows from which on not all margins are summed with compensation.
const MANY: usize = 2000;
/// How near to the smallest margin that matters, as a share of the largest.
const NEAR: f64 = 1e-6;

/// A vector with few entries, as runs of (first entry, values).
pub type SparseRow = Vec<(usize, Vec<f64>)>;

/// ⟨row, v⟩.
pub fn sparse_dot(row: &SparseRow, v: &[f64]) -> f64 {
    row.iter().map(|(first, run)| dot(run, &v[*first..first + run.len()])).sum()
}

/// out += factor · row.
pub fn add_sparse(out: &mut [f64], factor: f64, row: &SparseRow) {
    row.iter().for_each(|(first, run)| add_scaled(&mut out[*first..first + run.len()], factor, run));
}

/// A row whose gradient jumps: it may be h or h + e·change with any e ∈ [0, 1].
#[derive(Debug, Clone, PartialEq)]
pub struct KinkRow {
    /// The row of the problem that has the kink.
    pub row: usize,
    /// c, how the row changes from the left slope to the right one.
    pub change: SparseRow,
}

/// A margin problem, in its primal and its dual form:
///
/// ```text
/// max_{‖v‖ ≤ 1} min_i ( ⟨h_i, v⟩ + Σ_{k of row i} min(0, ⟨c_k, v⟩) )     subject to ⟨r_m, v⟩ ≥ 0
/// min ‖ Σ_i p_i h_i + Σ_k e_k c_k + Σ_m s_m r_m ‖_*     over Σp = 1, p ≥ 0, 0 ≤ e_k ≤ p_{row of k}, s ≥ 0
/// ```
///
/// ```
/// use limitpoint::linalg::Matrix;
/// use limitpoint::norms::NormSpec;
/// use limitpoint::params::ParamLayout;
/// use limitpoint::reference::{MarginProblem, Multipliers};
/// let rows = Matrix::from_rows(&[&[1.0, 0.0], &[0.0, 1.0]]);
/// let problem = MarginProblem::new(rows, NormSpec::L2, ParamLayout::vector(2))?;
/// // by symmetry the best unit vector is (1, 1)/√2 and both weights are ½: lower and upper bound are both 1/√2
/// let bracket = problem.bracket(&[1.0, 1.0], &Multipliers::of_rows(vec![1.0, 1.0]))?;
/// assert!((bracket.lower - 0.5_f64.sqrt()).abs() < 1e-15 && (bracket.upper - 0.5_f64.sqrt()).abs() < 1e-15);
/// # Ok::<(), limitpoint::reference::ReferenceError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MarginProblem {
    /// h_i, one row for every margin, as long as the layout.
    pub rows: Matrix,
    /// Kinks of the rows; empty for smooth problems.
    pub kinks: Vec<KinkRow>,
    /// Rows r with ⟨r, v⟩ ≥ 0; empty unless v is kept in a cell.
    pub cone: Vec<SparseRow>,
    /// The norm that measures v.
    pub norm: NormSpec,
    /// Names and shapes of v. Frozen blocks do not move.
    pub layout: ParamLayout,
    /// Whether v, one square block, must be symmetric positive semidefinite (B Theorem 7).
    pub semidefinite: bool,
}

/// Dual weights of a margin problem.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Multipliers {
    /// p ≥ 0, one for every row; only their proportions matter.
    pub rows: Vec<f64>,
    /// 0 ≤ e ≤ p of the kink's row, one for every kink.
    pub kinks: Vec<f64>,
    /// s ≥ 0, one for every cone row. Of a semidefinite problem in another norm than the nuclear one: the entries of a
    /// matrix M whose symmetric part is semidefinite, so that ⟨M, v⟩ ≥ 0.
    pub cone: Vec<f64>,
}

impl Multipliers {
    /// Weights of the rows alone.
    pub fn of_rows(rows: Vec<f64>) -> Self {
        Self { rows, kinks: Vec::new(), cone: Vec::new() }
    }
}

/// lower ≤ value of the problem ≤ upper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracket {
    /// What the primal point achieves; −∞ if it violates a cone row by more than rounding.
    pub lower: f64,
    /// What the multipliers prove cannot be exceeded.
    pub upper: f64,
}

impl Bracket {
    /// (upper − lower) / |upper|; infinite if a bound is missing.
    pub fn relative_gap(&self) -> f64 {
        if self.upper == self.lower { 0.0 } else { (self.upper - self.lower) / self.upper.abs() }
    }
}

impl MarginProblem {
    /// A problem with rows alone; refuses rows that do not fit the layout.
    pub fn new(rows: Matrix, norm: NormSpec, layout: ParamLayout) -> Result<Self, ReferenceError> {
        if rows.rows == 0 || rows.cols != layout.len() {
            return Err(ReferenceError::Rows { rows: rows.rows, columns: rows.cols, expected: layout.len() });
        }
        if let Some(at) = rows.data.iter().position(|x| !x.is_finite()) {
            return Err(ReferenceError::NotFinite {
                row: at / rows.cols,
                column: at % rows.cols,
                value: rows.data[at],
            });
        }
        norm.build(&layout)?;
        Ok(Self { rows, kinks: Vec::new(), cone: Vec::new(), norm, layout, semidefinite: false })
    }

    /// The max-margin problem of the linear model on these data.
    ///
    /// Binary labels give one row y_i x_i an example; C classes give C − 1 rows (e_{y_i} − e_j) ⊗ x_i an example, j
    /// increasing, with v the C × d weights (D Appendix F). Inputs of shape r × c make v an r × c matrix, so that
    /// matrix norms see its singular values; any other shape is a vector.
    pub fn linear(data: &Dataset, norm: NormSpec) -> Result<Self, ReferenceError> {
        let (n, d) = (data.len(), data.dimension());
        match &data.targets {
            Targets::Binary(signs) => {
                let mut rows = data.dense()?.into_owned();
                (0..n).for_each(|i| rows.row_mut(i).iter_mut().for_each(|x| *x *= signs[i]));
                let layout = match data.input_shape[..] {
                    [r, c] => ParamLayout::new([("w", r, c)])?,
                    _ => ParamLayout::new([("w", 1, d)])?,
                };
                Self::new(rows, norm, layout)
            }
            Targets::Classes { labels, count } => {
                let what = format!("the margin problem of {n} examples of {d} inputs and {count} classes");
                require(what, bytes(&[n, count - 1, *count, d], 8), "solve for fewer examples or classes")?;
                let mut rows = Matrix::zeros(n * (count - 1), count * d);
                for (i, &label) in labels.iter().enumerate() {
                    for (k, j) in (0..*count).filter(|&j| j != label).enumerate() {
                        let row = rows.row_mut(i * (count - 1) + k);
                        data.inputs.add_row(i, 1.0, &mut row[label * d..(label + 1) * d]);
                        data.inputs.add_row(i, -1.0, &mut row[j * d..(j + 1) * d]);
                    }
                }
                Self::new(rows, norm, ParamLayout::new([("w", *count, d)])?)
            }
            Targets::Values(_) => Err(ReferenceError::NoLabels { data: data.name.clone() }),
        }
    }

    /// Adds kinks; refuses one of a row that does not exist.
    pub fn with_kinks(mut self, kinks: Vec<KinkRow>) -> Result<Self, ReferenceError> {
        if let Some(kink) = kinks.iter().find(|kink| kink.row >= self.rows.rows) {
            return Err(ReferenceError::KinkRow { row: kink.row, rows: self.rows.rows });
        }
        self.kinks = kinks;
        Ok(self)
    }

    /// Adds cone rows ⟨r, v⟩ ≥ 0.
    pub fn with_cone(mut self, cone: Vec<SparseRow>) -> Self {
        self.cone = cone;
        self
    }

    /// Requires v to be symmetric positive semidefinite; refuses a layout that is not one square block.
    pub fn semidefinite(mut self) -> Result<Self, ReferenceError> {
        match self.layout.blocks() {
            [block] if block.rows == block.cols => {
                self.semidefinite = true;
                Ok(self)
            }
            blocks => Err(ReferenceError::NotSquare {
                shapes: blocks.iter().map(|b| format!("{}x{}", b.rows, b.cols)).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Whether this is a semidefinite problem in the nuclear norm, which on semidefinite matrices is the trace.
    pub(super) fn measures_trace(&self) -> bool {
        let is_trace = |part: &NormPart| (part.norm == PlainNorm::Nuclear || part.len() == 1) && part.weight == 1.0;
        let parts = || self.norm.canonical(&self.layout).map(|canonical| canonical.parts);
        self.semidefinite && parts().is_ok_and(|parts| parts.iter().all(is_trace))
    }

    /// The margin of every row at v: ⟨h_i, v⟩ + Σ min(0, ⟨c_k, v⟩).
    ///
    /// Of many rows only those near the smallest are summed with compensation: the others only have to be above it.
    pub fn margins(&self, v: &[f64]) -> Vec<f64> {
        let exact = |i: usize| compensated_dot(self.rows.row(i), v);
        let mut margins: Vec<f64> = match self.rows.rows > MANY {
            false => (0..self.rows.rows).map(exact).collect(),
            true => (0..self.rows.rows).map(|i| dot(self.rows.row(i), v)).collect(),
        };
        if self.rows.rows > MANY {
            let least = margins.iter().copied().fold(f64::INFINITY, f64::min);
            let near = least + NEAR * margins.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            let close = margins.iter_mut().enumerate().filter(|(_, margin)| **margin <= near);
            close.for_each(|(i, margin)| *margin = exact(i));
        }
        self.kinks.iter().for_each(|kink| margins[kink.row] += sparse_dot(&kink.change, v).min(0.0));
        margins
    }

    /// Σ p h + Σ e c + Σ s r, not normalised.
    pub fn combine(&self, multipliers: &Multipliers) -> Vec<f64> {
        let mut z = vec![0.0; self.layout.len()];
        for (i, &p) in multipliers.rows.iter().enumerate().filter(|(_, p)| **p != 0.0) {
            add_scaled(&mut z, p, self.rows.row(i));
        }
        self.kinks.iter().zip(&multipliers.kinks).for_each(|(kink, &e)| add_sparse(&mut z, e, &kink.change));
        if self.semidefinite && multipliers.cone.len() == z.len() {
            add_scaled(&mut z, 1.0, &multipliers.cone);
        }
        self.cone.iter().zip(&multipliers.cone).for_each(|(row, &s)| add_sparse(&mut z, s, row));
        z
    }

    /// The bracket that a point and multipliers prove, in plain arithmetic.
    ///
    /// Negative multipliers count as 0, kink multipliers are clamped to [0, p]. A semidefinite problem's lower bound is
    /// taken as it is, so v must be in the cone; its upper bound uses λ_max instead of the dual norm of the nuclear norm,
    /// and adds the matrix M that its multipliers have in place of cone rows in any other.
    pub fn bracket(&self, v: &[f64], multipliers: &Multipliers) -> Result<Bracket, ReferenceError> {
        let mut norm = self.norm.build(&self.layout)?;
        Ok(Bracket { lower: self.lower_bound(&mut *norm, v), upper: self.upper_bound(&mut *norm, multipliers)? })
    }

    fn lower_bound(&self, norm: &mut dyn Norm, v: &[f64]) -> f64 {
        self.lower_bound_of(norm, v, &self.margins(v))
    }

    /// The lower bound from the margins of all rows at v.
    pub(super) fn lower_bound_of(&self, norm: &mut dyn Norm, v: &[f64], margins: &[f64]) -> f64 {
        let size = norm.value(v);
        let length = norm2(v);
        let violated = |row: &SparseRow| {
            let scale = row.iter().map(|(_, run)| norm2(run)).fold(0.0, f64::hypot);
            sparse_dot(row, v) < -1e-12 * scale * length
        };
        if self.cone.iter().any(violated) {
            return f64::NEG_INFINITY;
        }
        // at v = 0 every margin is 0
        if size == 0.0 { 0.0 } else { margins.iter().copied().fold(f64::INFINITY, f64::min) / size }
    }

    pub(super) fn upper_bound(&self, norm: &mut dyn Norm, multipliers: &Multipliers) -> Result<f64, ReferenceError> {
        let clean = self.clean(multipliers);
        let total: f64 = clean.rows.iter().sum();
        let z = self.combine(&clean);
        if self.measures_trace() {
            return Ok(super::semidefinite::largest_eigenvalue(&z, self.layout.blocks()[0].rows)? / total);
        }
        Ok(norm.dual(&z) / total)
    }

    /// The multipliers with negative entries set to 0 and kinks clamped to their row's weight.
    pub fn clean(&self, multipliers: &Multipliers) -> Multipliers {
        let rows: Vec<f64> = multipliers.rows.iter().map(|p| p.max(0.0)).collect();
        let kinks = self.kinks.iter().zip(&multipliers.kinks).map(|(kink, e)| e.clamp(0.0, rows[kink.row])).collect();
        let cone = multipliers.cone.iter().map(|s| if self.semidefinite { *s } else { s.max(0.0) }).collect();
        Multipliers { rows, kinks, cone }
    }
}
