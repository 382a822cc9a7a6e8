//! Ready-made columns.
//!
//! | function | columns |
//! |---|---|
//! | [`basics`] | `step`, `log_time`, `u` = ln 1/L, `smallest` = min qᵢ, `soft` = g(u) |
//! | [`accuracy`], [`test_accuracy`] | the share of examples on the right side |
//! | [`size`] | ‖θ‖ in a norm |
//! | [`margins`] | `margin` = min qᵢ/‖θ‖^L and `soft_margin` = g(u)/‖θ‖^L in a norm |
//! | [`dual`] | ‖∇ ln L‖_* in a norm |
//! | [`kkt`] | `alignment` β, `gap` ‖θ̃‖²(1 − β), `slack` Σ λᵢ(qᵢ/q_min − 1), `objective` ‖θ̃‖² |
//! | [`growth`] | the lower bound of A Theorem 3.1 on d ln γ̃/d ln g(u) |
//! | [`residual`] | min ‖z − k‖₂ over k ∈ ∂½‖θ̃‖², relative to ‖θ̃‖, with ties within a tolerance |
//! | [`outward`] | ⟨θ, −∇ ln L⟩ |
//! | [`steps`] | `length` ‖Δθ‖ and `turn` ‖Δ(θ/‖θ‖)‖ of the step that led here |
//! | [`angle_to`] | the angle to a given point |
//! | [`block_norms`] | ℓ2 norms of the blocks, by their names |
//! | [`balance`] | the change of the balance between layers since the start |
//!
//! Functions of a norm take it in full or as [`own_norm`] of the task.

use limitpoint::certificates::Measure as Geometry;
use limitpoint::diagnostics::{Balance, kkt_measure, normalised_margins, soft_margin_growth, stationarity_residual};
use limitpoint::experiments::Task;
use limitpoint::linalg::{dot, norm2};
use limitpoint::norms::NormSpec;
use limitpoint::potentials::PotentialSpec;

use crate::arithmetic::angle;
use crate::columns::{Columns, Seen};

/// The norm of the steepest descent that a task runs; ℓ2 for other optimisers.
pub fn own_norm(task: &Task) -> NormSpec {
    match task.measure() {
        Some(Geometry::Norm(norm)) => norm,
        _ => NormSpec::L2,
    }
}

/// The potential of the mirror descent or flow that a task runs; Euclidean for others.
pub fn own_potential(task: &Task) -> PotentialSpec {
    match task.measure() {
        Some(Geometry::Potential(potential)) => potential,
        _ => PotentialSpec::Euclidean,
    }
}

/// `step`, `log_time`, `u` = ln 1/L, `smallest` = min qᵢ, `soft` = g(u), the soft minimum of the margins.
pub fn basics() -> Columns {
    Columns::new(["step", "log_time", "u", "smallest", "soft"], |_| {
        Ok(Box::new(|seen: &Seen, out: &mut Vec<f64>| {
            let point = seen.point;
            out.extend([seen.snapshot.step as f64, seen.snapshot.log_time, -point.log_loss]);
            out.extend([point.smallest_margin(), point.soft_minimum()]);
        }))
    })
}

/// `accuracy`: the share of training examples on the right side.
pub fn accuracy() -> Columns {
    Columns::one("accuracy", |seen| seen.point.accuracy())
}

/// `test_accuracy`; NaN without test data.
pub fn test_accuracy() -> Columns {
    Columns::new(["test_accuracy"], |bound| {
        let setup = bound.task.setup()?;
        let mut test = bound.test.map(|data| setup.objective(data)).transpose()?;
        Ok(Box::new(move |seen, out| {
            out.push(test.as_mut().map_or(f64::NAN, |test| {
                test.forward(seen.point.params);
                test.accuracy()
            }));
        }))
    })
}

/// `size`: ‖θ‖.
pub fn size(norm: NormSpec) -> Columns {
    Columns::new(["size"], move |bound| {
        let mut norm = norm.build(bound.layout)?;
        Ok(Box::new(move |seen, out| out.push(norm.value(seen.point.params))))
    })
}

/// `margin`, `soft_margin`: min qᵢ and its soft form over ‖θ‖^L.
pub fn margins(norm: NormSpec) -> Columns {
    Columns::new(["margin", "soft_margin"], move |bound| {
        let mut norm = norm.build(bound.layout)?;
        Ok(Box::new(move |seen, out| {
            let pair = normalised_margins(seen.point, norm.value(seen.point.params));
            out.extend([pair.hard, pair.soft]);
        }))
    })
}

/// `dual`: ‖∇ ln L‖_*.
pub fn dual(norm: NormSpec) -> Columns {
    Columns::new(["dual"], move |bound| {
        let mut norm = norm.build(bound.layout)?;
        Ok(Box::new(move |seen, out| out.push(norm.dual(&seen.point.gradient.direction))))
    })
}

/// `alignment`, `gap`, `slack`, `objective` at θ̃ = θ/q_min^{1/L} with the paper's multipliers.
pub fn kkt(norm: NormSpec) -> Columns {
    Columns::new(["alignment", "gap", "slack", "objective"], move |bound| {
        let mut norm = norm.build(bound.layout)?;
        Ok(Box::new(move |seen, out| {
            let kkt = kkt_measure(seen.point, &mut *norm);
            out.extend([kkt.alignment, kkt.fenchel_young_gap, kkt.slack, kkt.objective]);
        }))
    })
}

/// `growth`: what A Theorem 3.1 says of d ln γ̃/d ln g(u).
pub fn growth(norm: NormSpec) -> Columns {
    Columns::new(["growth"], move |bound| {
        let mut norm = norm.build(bound.layout)?;
        Ok(Box::new(move |seen, out| out.push(soft_margin_growth(seen.point, &mut *norm))))
    })
}

/// `residual`: min ‖z − k‖₂ over k ∈ ∂½‖θ̃‖², relative to ‖θ̃‖, with ties within this tolerance.
pub fn residual(norm: NormSpec, tolerance: f64) -> Columns {
    Columns::new(["residual"], move |bound| {
        let (mut norm, length) = (norm.build(bound.layout)?, bound.layout.len());
        let mut scratch = [vec![0.0; length], vec![0.0; length]];
        Ok(Box::new(move |seen, out| {
            out.push(stationarity_residual(seen.point, &mut *norm, tolerance, &mut scratch));
        }))
    })
}

/// `outward`: ⟨θ, −∇ ln L⟩.
pub fn outward() -> Columns {
    Columns::one("outward", |seen| -dot(seen.point.params, &seen.point.gradient.direction))
}

/// `length`, `turn`: ‖Δθ‖ and ‖θ/‖θ‖ − θ⁻/‖θ⁻‖‖ of the step that led here.
pub fn steps(norm: NormSpec) -> Columns {
    let columns = Columns::new(["length", "turn"], move |bound| {
        let mut norm = norm.build(bound.layout)?;
        Ok(Box::new(move |seen, out| {
            let (now, then) = (seen.point.params, seen.before);
            if then.is_empty() {
                return out.extend([f64::NAN; 2]);
            }
            let (size, old_size) = (norm.value(now), norm.value(then));
            let step: Vec<f64> = now.iter().zip(then).map(|(now, then)| now - then).collect();
            let turn: Vec<f64> = now.iter().zip(then).map(|(now, then)| now / size - then / old_size).collect();
            out.extend([norm.value(&step), norm.value(&turn)]);
        }))
    });
    columns.with_before()
}

/// `angle`: the angle between θ and a given point, in radians.
pub fn angle_to(point: Vec<f64>) -> Columns {
    Columns::one("angle", move |seen| angle(seen.point.params, &point))
}

/// ℓ2 norms of the blocks, each under its name.
pub fn block_norms(names: &[&str]) -> Columns {
    let wanted: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    Columns::new(wanted.clone(), move |bound| {
        let blocks = bound.layout.blocks().iter();
        let ranges: Vec<_> = wanted
            .iter()
            .map(|name| blocks.clone().find(|block| block.name == *name).map(|block| block.range()))
            .collect();
        Ok(Box::new(move |seen, out| {
            let norm = |range: &Option<std::ops::Range<usize>>| {
                range.clone().map_or(f64::NAN, |range| norm2(&seen.point.params[range]))
            };
            out.extend(ranges.iter().map(norm));
        }))
    })
}

/// `drift`: the change of the balance between layers since the start, relative to its parts now; NaN where the model is
/// not homogeneous.
pub fn balance(potential: PotentialSpec) -> Columns {
    Columns::new(["drift"], move |bound| {
        let mut worker = potential.build(bound.layout)?;
        let (layout, homogeneity) = (bound.layout.clone(), bound.objective.homogeneity().cloned());
        let start = homogeneity.as_ref().map(|known| Balance::measure(bound.start, &layout, known, &mut *worker));
        Ok(Box::new(move |seen, out| {
            let now =
                homogeneity.as_ref().map(|known| Balance::measure(seen.point.params, &layout, known, &mut *worker));
            out.push(now.zip(start.as_ref()).map_or(f64::NAN, |(now, start)| now.drift_since(start)));
        }))
    })
}
