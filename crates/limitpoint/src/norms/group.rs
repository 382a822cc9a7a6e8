//! Group norms: the rows of a block, measured by ℓ2, then added up or compared.
//!
//! A row of a dense layer holds the weights into one neuron, so these norms count or level neurons.

use super::Norm;
use super::face::{Elementary, Face, Multiplier, activity, project_face, rounded_activity};
use super::l2::{project_euclidean_ball, write_quotient};
use super::simplex::{Threshold, larger, refuse_radius};
use crate::linalg::{dot, norm2};

/// Sum of the rows' ℓ2 norms.
///
/// ```text
/// ‖W‖ = Σᵢ‖wᵢ‖₂,   ‖G‖_* = maxᵢ‖gᵢ‖₂,   d = −gⱼ/‖gⱼ‖₂ in row j = argmax‖gᵢ‖₂, 0 in the others
/// ```
///
/// Ties: the first of the largest rows. Subdifferential: wᵢ/‖wᵢ‖ where ‖wᵢ‖ > τ max‖wⱼ‖, any row of length at most 1
/// elsewhere. The row version of claims section 1, row l1.
///
/// ```
/// use limitpoint::{norms::NormSpec, params::ParamLayout};
/// let layout = ParamLayout::new([("w", 2, 2)]).unwrap();
/// let (mut norm, mut direction) = (NormSpec::GroupL21.build(&layout)?, [0.0; 4]);
/// assert_eq!(norm.value(&[3.0, 4.0, 0.0, 2.0]), 7.0);
/// assert_eq!(norm.unit_minimiser(&[3.0, 4.0, 0.0, 2.0], &mut direction), 5.0);
/// assert_eq!(direction, [-0.6, -0.8, 0.0, 0.0]);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub(super) struct GroupL21 {
    rows: Rows,
    face: Face,
}

/// Largest of the rows' ℓ2 norms.
///
/// ```text
/// ‖W‖ = maxᵢ‖wᵢ‖₂,   ‖G‖_* = Σᵢ‖gᵢ‖₂,   d = −gᵢ/‖gᵢ‖₂ in every row
/// ```
///
/// Rows with gᵢ = 0 stay at rest. Subdifferential: μᵢwᵢ/‖wᵢ‖ on the active rows ‖wᵢ‖ ≥ (1 − τ)‖W‖, μ on the probability
/// simplex, 0 elsewhere. The row version of claims section 1, row linf.
///
/// ```
/// use limitpoint::{norms::NormSpec, params::ParamLayout};
/// let layout = ParamLayout::new([("w", 2, 2)]).unwrap();
/// let (mut norm, mut direction) = (NormSpec::GroupL2Inf.build(&layout)?, [0.0; 4]);
/// assert_eq!(norm.value(&[3.0, 4.0, 0.0, 2.0]), 5.0);
/// assert_eq!(norm.unit_minimiser(&[3.0, 4.0, 0.0, 2.0], &mut direction), 7.0);
/// assert_eq!(direction, [-0.6, -0.8, 0.0, -1.0]);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub(super) struct GroupL2Inf {
    rows: Rows,
    face: Face,
}

/// What the two norms share.
struct Rows {
    cols: usize,
    /// The length of every row.
    lengths: Vec<f64>,
    /// Of the opened face: wᵢ/‖wᵢ‖ in the active rows, 0 elsewhere.
    units: Vec<f64>,
    /// Of the opened face: which rows are active.
    active: Vec<bool>,
}

impl Rows {
    fn new(rows: usize, cols: usize) -> Self {
        Self { cols, lengths: vec![0.0; rows], units: vec![0.0; rows * cols], active: vec![false; rows] }
    }

    fn sum(&self, v: &[f64]) -> f64 {
        v.chunks_exact(self.cols).map(norm2).sum()
    }

    fn max(&self, v: &[f64]) -> f64 {
        v.chunks_exact(self.cols).map(norm2).fold(0.0, larger)
    }

    /// Marks the rows of `at` longer than `floor` (or as long, if `inclusive`) times the longest, and their directions.
    fn mark(&mut self, at: &[f64], floor: f64, inclusive: bool) {
        let longest = self.max(at);
        for (i, (row, unit)) in at.chunks_exact(self.cols).zip(self.units.chunks_exact_mut(self.cols)).enumerate() {
            let length = norm2(row);
            let share = length / longest;
            self.active[i] = share > floor || (inclusive && share == floor);
            if self.active[i] {
                write_quotient(row, length, unit);
            } else {
                unit.fill(0.0);
            }
        }
    }

    /// ⟨z, unit⟩ of every active row.
    fn coefficients(&self, z: &[f64]) -> impl Iterator<Item = f64> {
        let pairs = z.chunks_exact(self.cols).zip(self.units.chunks_exact(self.cols));
        pairs.zip(&self.active).filter(|(_, active)| **active).map(|((row, unit), _)| dot(row, unit))
    }

    fn project_sum_ball(&mut self, radius: f64, v: &mut [f64]) {
        if refuse_radius(radius, v) || self.sum(v) <= radius {
            return;
        }
        self.lengths.iter_mut().zip(v.chunks_exact(self.cols)).for_each(|(length, row)| *length = norm2(row));
        let threshold = Threshold::of_simplex(self.lengths.iter().copied(), radius);
        for (row, &length) in v.chunks_exact_mut(self.cols).zip(&self.lengths) {
            let kept = threshold.excess(length);
            if length != 0.0 {
                row.iter_mut().for_each(|x| *x = *x / length * kept);
            }
        }
    }

    fn project_max_ball(&self, radius: f64, v: &mut [f64]) {
        v.chunks_exact_mut(self.cols).for_each(|row| project_euclidean_ball(radius, row));
    }
}

impl GroupL21 {
    pub(super) fn new(rows: usize, cols: usize) -> Self {
        Self { rows: Rows::new(rows, cols), face: Face::cap(rows) }
    }
}

impl Norm for GroupL21 {
    fn value(&mut self, v: &[f64]) -> f64 {
        self.rows.sum(v)
    }

    fn dual(&mut self, g: &[f64]) -> f64 {
        self.rows.max(g)
    }

    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        let (mut longest, mut first) = (0.0, 0);
        for (i, length) in g.chunks_exact(self.rows.cols).map(norm2).enumerate() {
            if length > longest || length.is_nan() {
                (longest, first) = (length, i);
            }
        }
        out.fill(if longest.is_nan() { f64::NAN } else { 0.0 });
        if longest > 0.0 {
            let row = first * self.rows.cols..(first + 1) * self.rows.cols;
            write_quotient(&g[row.clone()], -longest, &mut out[row]);
        }
        longest
    }

    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        project_face(self, at, target, tolerance, 1.0, out);
    }

    fn project_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.rows.project_sum_ball(radius, v);
    }

    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.rows.project_max_ball(radius, v);
    }
}

impl Elementary for GroupL21 {
    fn open_face(&mut self, at: &[f64], target: &[f64], tolerance: f64) -> bool {
        let rows = &mut self.rows;
        rows.mark(at, activity(tolerance), false);
        let count = rows.active.iter().filter(|active| **active).count();
        let pull = rows.coefficients(target).sum();
        let idle = target.chunks_exact(rows.cols).zip(&rows.active).filter(|(_, active)| !**active);
        self.face.set_cap(count as f64, pull, idle.map(|(row, _)| norm2(row)));
        true
    }

    fn face(&self) -> &Face {
        &self.face
    }

    fn face_point(&mut self, target: &[f64], multiplier: Multiplier, out: &mut [f64]) {
        let (cols, mass) = (self.rows.cols, multiplier.mass);
        let sources = target.chunks_exact(cols).zip(self.rows.units.chunks_exact(cols)).zip(&self.rows.active);
        for (row, ((z, unit), active)) in out.chunks_exact_mut(cols).zip(sources) {
            if *active {
                row.iter_mut().zip(unit).for_each(|(o, u)| *o = mass * u);
            } else {
                row.copy_from_slice(z);
                project_euclidean_ball(mass, row);
            }
        }
    }
}

impl GroupL2Inf {
    pub(super) fn new(rows: usize, cols: usize) -> Self {
        Self { rows: Rows::new(rows, cols), face: Face::simplex(rows) }
    }
}

impl Norm for GroupL2Inf {
    fn value(&mut self, v: &[f64]) -> f64 {
        self.rows.max(v)
    }

    fn dual(&mut self, g: &[f64]) -> f64 {
        self.rows.sum(g)
    }

    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        let (cols, mut total) = (self.rows.cols, 0.0);
        for (row, o) in g.chunks_exact(cols).zip(out.chunks_exact_mut(cols)) {
            let length = norm2(row);
            write_quotient(row, if length == 0.0 { -1.0 } else { -length }, o);
            total += length;
        }
        total
    }

    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        project_face(self, at, target, tolerance, 1.0, out);
    }

    fn project_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.rows.project_max_ball(radius, v);
    }

    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.rows.project_sum_ball(radius, v);
    }
}

impl Elementary for GroupL2Inf {
    fn open_face(&mut self, at: &[f64], target: &[f64], tolerance: f64) -> bool {
        self.rows.mark(at, 1.0 - rounded_activity(tolerance), true);
        self.face.set_simplex(self.rows.coefficients(target));
        true
    }

    fn face(&self) -> &Face {
        &self.face
    }

    fn face_point(&mut self, _target: &[f64], multiplier: Multiplier, out: &mut [f64]) {
        let cols = self.rows.cols;
        let mut coefficients = self.face.entries().iter();
        let units = self.rows.units.chunks_exact(cols).zip(&self.rows.active);
        for (row, (unit, active)) in out.chunks_exact_mut(cols).zip(units) {
            let coefficient = if *active { coefficients.next() } else { None };
            let weight = coefficient.map_or(0.0, |c| multiplier.threshold.excess(*c));
            row.iter_mut().zip(unit).for_each(|(o, u)| *o = weight * u);
        }
    }
}
