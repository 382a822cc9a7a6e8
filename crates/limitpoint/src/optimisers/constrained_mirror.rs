//! Mirror descent on an affine set.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Optimiser, OptimiserError, OptimiserState, step_factor};
use crate::linalg::{Cholesky, add_scaled, dot, max_abs, norm2};
use crate::numeric::LogScaled;
use crate::params::ParamLayout;
use crate::potentials::{MirrorPotential, PotentialSpec};
use crate::schedules::StepContext;

/// The affine set {w : Gw = h} that the trainable weights stay on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Constraint {
    /// Σ w = 1; with the entropy potential this is exponentiated gradient on the simplex.
    Simplex,
    /// Gw = h.
    Affine {
        /// The rows of G.
        rows: Vec<Vec<f64>>,
        /// h.
        values: Vec<f64>,
    },
}

/// θ⁺ = argmin { η⟨g, w⟩ + D_R(w, θ) : Gw = h }.
///
/// ```text
/// z ← z − ηg,    θ⁺ = ∇R*(z + Gᵀν)   with ν such that Gθ⁺ = h:    ν = argmin R*(z + Gᵀν) − ⟨ν, h⟩
/// ```
///
/// ν is found by Newton's method with backtracking from its last value; the Jacobian is G ∇²R(θ)⁻¹ Gᵀ. The start need
/// not satisfy the constraint: ∇R(θ) − ∇R(θ₀) stays in the span of the rows of X and G either way, so that the limit is
/// the point of both sets nearest to the start (B section 2.2). Rows of G that follow from others are dropped;
/// rows that contradict others are refused.
pub(super) struct ConstrainedMirror {
    potential: Box<dyn MirrorPotential>,
    /// Independent rows of G and their values.
    rows: Vec<(Vec<f64>, f64)>,
    trainable: Vec<Range<usize>>,
    started: bool,
    /// ∇R(θ₀) − Σ ηg.
    dual: Vec<f64>,
    /// ν.
    multipliers: Vec<f64>,
    trial: Vec<f64>,
    point: Vec<f64>,
    action: Vec<f64>,
    jacobian: Vec<f64>,
    cholesky: Cholesky,
}

/// Newton steps before giving up.
const MOST_STEPS: usize = 100;
/// Relative residual |Gw − h| that is accepted where rounding allows no better.
const LARGEST_RESIDUAL: f64 = 1e-9;

impl ConstrainedMirror {
    pub fn new(spec: &PotentialSpec, constraint: &Constraint, layout: &ParamLayout) -> Result<Self, OptimiserError> {
        let given: Vec<(Vec<f64>, f64)> = match constraint {
            Constraint::Simplex => vec![(vec![1.0; layout.len()], 1.0)],
            Constraint::Affine { rows, values } => {
                let (found, expected) = (values.len(), rows.len());
                if found != expected || rows.is_empty() {
                    let what = format!("{expected} rows and {found} values; give at least one row, each with a value");
                    return Err(OptimiserError::Constraint(what));
                }
                if let Some(row) = rows.iter().position(|row| row.len() != layout.len()) {
                    let (found, expected) = (rows[row].len(), layout.len());
                    let what = format!("row {row} has {found} entries where the model has {expected} parameters");
                    return Err(OptimiserError::Constraint(what));
                }
                rows.iter().cloned().zip(values.iter().copied()).collect()
            }
        };
        let (length, trainable) = (layout.len(), layout.trainable_ranges());
        let moves = |i: usize| trainable.iter().any(|range| range.contains(&i));
        let only = |row: Vec<f64>| (0..length).map(|i| if moves(i) { row[i] } else { 0.0 }).collect();
        let rows = independent(given.into_iter().map(|(row, value)| (only(row), value)).collect())?;
        let count = rows.len();
        Ok(Self {
            potential: spec.build(layout)?,
            rows,
            trainable,
            started: false,
            dual: vec![0.0; length],
            multipliers: vec![0.0; count],
            trial: vec![0.0; length],
            point: vec![0.0; length],
            action: vec![0.0; length],
            jacobian: vec![0.0; count * count],
            cholesky: Cholesky::new(count),
        })
    }

    /// θ = ∇R*(z + Gᵀν) into `params`; returns R*(z + Gᵀν) − ⟨ν, h⟩ and the relative residual of Gθ = h.
    fn evaluate(&mut self, multipliers: &[f64], params: &mut [f64]) -> (f64, f64) {
        self.trial.copy_from_slice(&self.dual);
        for (nu, (row, _)) in multipliers.iter().zip(&self.rows) {
            add_scaled(&mut self.trial, *nu, row);
        }
        self.potential.inverse_mirror_map(&self.trial, &mut self.point);
        for range in &self.trainable {
            params[range.clone()].copy_from_slice(&self.point[range.clone()]);
        }
        let linear: f64 = multipliers.iter().zip(&self.rows).map(|(nu, (_, value))| nu * value).sum();
        let value = self.potential.conjugate_at(params) - linear;
        let miss = self.rows.iter().map(|(row, h)| {
            let size: f64 = row.iter().zip(&*params).map(|(g, w)| (g * w).abs()).sum();
            (dot(row, params) - h).abs() / (size + h.abs()).max(f64::MIN_POSITIVE)
        });
        (value, miss.fold(0.0, |worst: f64, miss| if miss.is_nan() { f64::INFINITY } else { worst.max(miss) }))
    }

    /// Moves `params` onto the constraint.
    fn project(&mut self, params: &mut [f64]) -> Result<(), OptimiserError> {
        let count = self.rows.len();
        let mut here = self.multipliers.clone();
        let (mut value, mut residual) = self.evaluate(&here, params);
        if !value.is_finite() {
            here.fill(0.0);
            (value, residual) = self.evaluate(&here, params);
        }
        for _ in 0..MOST_STEPS {
            if residual <= 4.0 * f64::EPSILON {
                break;
            }
            for i in 0..count {
                self.potential.inverse_hessian_action(params, &self.rows[i].0, &mut self.action);
                for j in 0..=i {
                    self.jacobian[i * count + j] = dot(&self.rows[j].0, &self.action);
                    self.jacobian[j * count + i] = self.jacobian[i * count + j];
                }
            }
            let largest = (0..count).map(|i| self.jacobian[i * count + i]).fold(0.0, f64::max);
            self.cholesky.factor(&self.jacobian, 1e-15 * largest)?;
            let mut step: Vec<f64> = self.rows.iter().map(|(row, h)| h - dot(row, params)).collect();
            let slope = step.clone();
            self.cholesky.solve(&mut step);
            let descent = dot(&slope, &step);
            let (mut length, mut better) = (1.0, false);
            while length > 1e-10 {
                let next: Vec<f64> = here.iter().zip(&step).map(|(nu, s)| nu + length * s).collect();
                let (reached, miss) = self.evaluate(&next, params);
                if miss < residual && (reached <= value - 1e-4 * length * descent || miss < 0.5 * residual) {
                    (here, value, residual, better) = (next, reached, miss, true);
                    break;
                }
                length *= 0.5;
            }
            if !better {
                self.evaluate(&here, params);
                break;
            }
        }
        if residual > LARGEST_RESIDUAL {
            let what = format!("no weights in the domain of the potential satisfy it (residual {residual:.1e})");
            return Err(OptimiserError::Constraint(what));
        }
        self.multipliers = here;
        Ok(())
    }
}

/// Drops rows that follow from others; refuses those that contradict them.
fn independent(given: Vec<(Vec<f64>, f64)>) -> Result<Vec<(Vec<f64>, f64)>, OptimiserError> {
    let mut basis: Vec<(Vec<f64>, f64)> = Vec::new();
    let mut kept = Vec::new();
    for (index, (row, value)) in given.into_iter().enumerate() {
        if !value.is_finite() || row.iter().any(|g| !g.is_finite()) {
            return Err(OptimiserError::Constraint(format!("row {index} is not finite")));
        }
        let (mut rest, mut offset) = (row.clone(), value);
        for _ in 0..2 {
            for (unit, at) in &basis {
                let along = dot(unit, &rest);
                add_scaled(&mut rest, -along, unit);
                offset -= along * at;
            }
        }
        let size = norm2(&rest);
        if size > 1e-10 * norm2(&row) {
            rest.iter_mut().for_each(|g| *g /= size);
            basis.push((rest, offset / size));
            kept.push((row, value));
        } else if offset.abs() > 1e-9 * (value.abs() + max_abs(&row)).max(1e-300) {
            let what =
                format!("row {index} contradicts the rows before it by {offset:.3e}; no weights satisfy them all");
            return Err(OptimiserError::Constraint(what));
        }
    }
    Ok(kept)
}

impl Optimiser for ConstrainedMirror {
    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        if !self.started {
            self.potential.check_domain(params)?;
            self.potential.mirror_map(params, &mut self.dual);
            self.started = true;
        }
        add_scaled(&mut self.dual, -step_factor(log_step, gradient.log_scale), &gradient.direction);
        self.project(params)
    }

    /// The dual iterate is that of the weights; the next step moves them back onto the set.
    fn displaced(&mut self, params: &[f64]) {
        if self.started {
            self.potential.mirror_map(params, &mut self.dual);
            self.multipliers.fill(0.0);
        }
    }

    fn state(&self) -> OptimiserState {
        OptimiserState::new("constrained-mirror")
            .with_number("started", f64::from(u8::from(self.started)))
            .with_vector("dual", &self.dual)
            .with_vector("multipliers", &self.multipliers)
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check("constrained-mirror")?;
        self.started = state.number("started")? != 0.0;
        state.read_vector("dual", &mut self.dual)?;
        state.read_vector("multipliers", &mut self.multipliers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> StepContext {
        StepContext { step: 0, epoch: 0, log_loss: 0.0, all_correct: false }
    }

    /// On the simplex the step is w ∝ w e^{−ηg}, exponentiated gradient.
    #[test]
    fn the_entropy_on_the_simplex_gives_exponentiated_gradient() {
        let layout = ParamLayout::vector(4);
        let mut worker = ConstrainedMirror::new(&PotentialSpec::Entropy, &Constraint::Simplex, &layout).unwrap();
        let (mut w, mut expected) = (vec![0.25; 4], vec![0.25; 4]);
        let mut stream = crate::numeric::Streams::new(3).stream("g");
        for _ in 0..50 {
            let mut gradient = LogScaled::zeros(4);
            gradient.log_scale = 0.0;
            stream.fill_normal(&mut gradient.direction);
            worker.step(&mut w, &gradient, &context(), 0.7f64.ln()).unwrap();
            expected.iter_mut().zip(&gradient.direction).for_each(|(w, g)| *w *= (-0.7 * g).exp());
            let total: f64 = expected.iter().sum();
            expected.iter_mut().for_each(|w| *w /= total);
            for (a, b) in w.iter().zip(&expected) {
                assert!((a - b).abs() < 1e-13, "{w:?} {expected:?}");
            }
        }
    }

    #[test]
    fn contradictions_are_refused_and_repetitions_dropped() {
        let layout = ParamLayout::vector(3);
        let build = |rows: &[&[f64]], values: &[f64]| {
            let rows = rows.iter().map(|row| row.to_vec()).collect();
            let constraint = Constraint::Affine { rows, values: values.to_vec() };
            ConstrainedMirror::new(&PotentialSpec::Euclidean, &constraint, &layout)
        };
        let row: &[f64] = &[1.0, 1.0, 0.0];
        assert_eq!(build(&[row, &[2.0, 2.0, 0.0]], &[1.0, 2.0]).unwrap().rows.len(), 1);
        let refuse = |rows: &[&[f64]], values: &[f64]| build(rows, values).map(|_| ()).unwrap_err().to_string();
        assert!(refuse(&[row, &[2.0, 2.0, 0.0]], &[1.0, 3.0]).contains("row 1 contradicts"));
        assert!(refuse(&[row], &[]).contains("1 rows and 0 values"));
        assert!(refuse(&[&[1.0]], &[1.0]).contains("1 entries"));
        assert!(refuse(&[&[f64::NAN, 1.0, 1.0]], &[1.0]).contains("not finite"));
    }

    #[test]
    fn a_constraint_outside_the_domain_is_said() {
        let constraint = Constraint::Affine { rows: vec![vec![1.0, 1.0]], values: vec![-1.0] };
        let layout = ParamLayout::vector(2);
        let mut worker = ConstrainedMirror::new(&PotentialSpec::Entropy, &constraint, &layout).unwrap();
        let gradient = LogScaled { log_scale: 0.0, direction: vec![0.0, 0.0] };
        let error = worker.step(&mut [1.0, 1.0], &gradient, &context(), 0.0).unwrap_err();
        assert!(error.to_string().contains("domain"), "{error}");
    }
}
