//! An optimiser of its own for every group of blocks.

use std::ops::Range;

use indexmap::IndexMap;

use super::{Optimiser, OptimiserError, OptimiserSpec, OptimiserState, Wishes, step_factor};
use crate::numeric::LogScaled;
use crate::params::{Block, BlockSelection, DiagonalMetric, MetricEntry, ParamLayout, Update, assign};
use crate::schedules::StepContext;

/// Each group of blocks moves by its own optimiser, all of them by one gradient and one step size.
///
/// ```text
/// θ_i ← step of optimiser i (θ_i, g_i, η)          for every part i, g = ∇L(θ) at one point for all
/// ```
///
/// A part sees its blocks only, in the order of the layout, as if they were a model of their own: norms over all entries
/// are over the entries of the part, and matrices and diagonals in its settings have the size of the part. Every
/// trainable block belongs to exactly one part; `rest` (or `*`) takes those that no other part names, if there are any.
/// Where a part looks ahead, the gradient is taken at a point that is ahead in its blocks.
///
/// Step factors per part are those of `adjusted`. Which norm the whole is steepest in follows from the parts: see
/// [`OptimiserSpec::own_norm`].
pub(super) struct Blocks {
    parts: Vec<Part>,
    /// That of all parts, where each steps by one or along the gradient.
    metric: Option<DiagonalMetric>,
}

/// A group of blocks with its optimiser and room for its slices.
struct Part {
    /// As it was written.
    name: String,
    /// Its entries of the flat vector.
    ranges: Vec<Range<usize>>,
    optimiser: Box<dyn Optimiser>,
    /// What its states say they are of.
    key: String,
    params: Vec<f64>,
    ahead: Vec<f64>,
    gradient: LogScaled,
}

const KEY: &str = "blocks";

/// The key of the part that takes what others leave.
pub(super) const REST: &str = "rest";

/// The blocks that a key of a composition names.
pub(super) fn selection(key: &str) -> BlockSelection {
    BlockSelection::from(if key.trim() == REST { "*" } else { key })
}

impl Blocks {
    pub fn new(parts: &IndexMap<String, OptimiserSpec>, layout: &ParamLayout) -> Result<Self, OptimiserError> {
        if parts.is_empty() {
            return Err(OptimiserError::NoParts);
        }
        let entries: Vec<(BlockSelection, &str)> = parts.keys().map(|key| (selection(key), key.as_str())).collect();
        let assigned = assign(layout, &entries, |entry| &entry.0).map_err(OptimiserError::Selection)?;
        let mut built: Vec<Part> = Vec::new();
        for (name, spec) in parts {
            if let Some(optimiser) = whole_model(spec) {
                return Err(OptimiserError::WholeModel { part: name.clone(), optimiser });
            }
            let own: Vec<&Block> =
                assigned.iter().filter(|(_, entry)| entry.1 == name).map(|(block, _)| *block).collect();
            // frozen blocks only, or a rest of nothing
            if !own.is_empty() {
                built.push(Part::new(name, spec, &own).map_err(|error| inside(name, error))?);
            }
        }
        // the order of the layout, whatever that of the file
        built.sort_by_key(|part| part.ranges[0].start);
        let metric = metric(&built);
        Ok(Self { parts: built, metric })
    }
}

/// The metrics of all parts as one, if all have one; a part along the gradient has 1.
fn metric(parts: &[Part]) -> Option<DiagonalMetric> {
    let mut whole = Vec::new();
    for part in parts {
        let length = part.params.len();
        let (own, factor) = match part.optimiser.update(0.0, 0.0) {
            Update::Along(factor) => (DiagonalMetric::new(vec![(0..length, MetricEntry::One, 1.0)]), -factor),
            Update::Metric(factor) => (part.optimiser.wishes().metric?, -factor),
            Update::AgainstSigns(_) | Update::Host => return None,
        };
        let mut start = 0;
        for range in &part.ranges {
            let inside = start..start + range.len();
            for (entries, entry, weight) in own.parts() {
                let (from, to) = (entries.start.max(inside.start), entries.end.min(inside.end));
                if from < to {
                    whole.push((range.start + from - start..range.start + to - start, *entry, weight * factor));
                }
            }
            start = inside.end;
        }
    }
    whole.sort_by_key(|(range, ..)| range.start);
    Some(DiagonalMetric::new(whole))
}

/// The key of what an optimiser contains that needs the whole model for its subgradient, if it does.
fn whole_model(spec: &OptimiserSpec) -> Option<&'static str> {
    match spec {
        OptimiserSpec::MonotoneCoordinate { .. } => Some(spec.key()),
        OptimiserSpec::Steepest { minimum_norm: true, .. } => Some("steepest(minimum_norm=true)"),
        _ => spec.parts().into_iter().find_map(whole_model),
    }
}

fn inside(part: &str, error: OptimiserError) -> OptimiserError {
    OptimiserError::Part { part: part.to_owned(), source: Box::new(error) }
}

impl Part {
    fn new(name: &str, spec: &OptimiserSpec, blocks: &[&Block]) -> Result<Self, OptimiserError> {
        let layout = ParamLayout::of(blocks.iter().copied().cloned()).map_err(OptimiserError::Selection)?;
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for block in blocks {
            match ranges.last_mut() {
                Some(last) if last.end == block.offset => last.end = block.range().end,
                _ => ranges.push(block.range()),
            }
        }
        let (optimiser, length) = (spec.build(&layout)?, layout.len());
        let key = optimiser.state().optimiser;
        let (params, ahead, gradient) = (vec![0.0; length], vec![0.0; length], LogScaled::zeros(length));
        Ok(Self { name: name.to_owned(), ranges, optimiser, key, params, ahead, gradient })
    }

    /// Takes its entries of the parameters.
    fn take(&mut self, params: &[f64]) {
        gather(&self.ranges, params, &mut self.params);
    }
}

fn gather(ranges: &[Range<usize>], from: &[f64], to: &mut [f64]) {
    let mut start = 0;
    for range in ranges {
        to[start..start + range.len()].copy_from_slice(&from[range.clone()]);
        start += range.len();
    }
}

fn scatter(ranges: &[Range<usize>], from: &[f64], to: &mut [f64]) {
    let mut start = 0;
    for range in ranges {
        to[range.clone()].copy_from_slice(&from[start..start + range.len()]);
        start += range.len();
    }
}

impl Optimiser for Blocks {
    fn wishes(&self) -> Wishes {
        Wishes { kinks: false, metric: self.metric.clone() }
    }

    fn update(&self, log_scale: f64, log_step: f64) -> Update {
        if self.metric.is_some() { Update::Metric(-step_factor(log_step, log_scale)) } else { Update::Host }
    }

    fn prepare(&mut self, context: &StepContext) {
        self.parts.iter_mut().for_each(|part| part.optimiser.prepare(context));
    }

    fn look_ahead(&mut self, params: &[f64], out: &mut [f64]) -> bool {
        let mut any = false;
        for part in &mut self.parts {
            part.take(params);
            if part.optimiser.look_ahead(&part.params, &mut part.ahead) {
                if !any {
                    out.copy_from_slice(params);
                    any = true;
                }
                scatter(&part.ranges, &part.ahead, out);
            }
        }
        any
    }

    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        context: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        for part in &mut self.parts {
            part.take(params);
            part.gradient.log_scale = gradient.log_scale;
            gather(&part.ranges, &gradient.direction, &mut part.gradient.direction);
            let stepped = part.optimiser.step(&mut part.params, &part.gradient, context, log_step);
            stepped.map_err(|error| inside(&part.name, error))?;
            scatter(&part.ranges, &part.params, params);
        }
        Ok(())
    }

    fn displaced(&mut self, params: &[f64]) {
        for part in &mut self.parts {
            part.take(params);
            part.optimiser.displaced(&part.params);
        }
    }

    /// The numbers of all parts; the largest where several have one of the same name.
    fn report(&mut self) -> Vec<(&'static str, f64)> {
        let mut all: Vec<(&'static str, f64)> = Vec::new();
        for (name, value) in self.parts.iter_mut().flat_map(|part| part.optimiser.report()) {
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, largest)) if value > *largest || value.is_nan() => *largest = value,
                Some(_) => {}
                None => all.push((name, value)),
            }
        }
        all
    }

    fn state(&self) -> OptimiserState {
        let whole = OptimiserState::new(KEY).with_number("parts", self.parts.len() as f64);
        let add = |state: OptimiserState, (place, part): (usize, &Part)| {
            state.with_nested(&place_name(place), &part.optimiser.state())
        };
        self.parts.iter().enumerate().fold(whole, add)
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check(KEY)?;
        let saved = state.number("parts")?;
        if saved != self.parts.len() as f64 {
            let what = format!("it has {saved} parts where {} are needed", self.parts.len());
            return Err(OptimiserError::WrongState { optimiser: KEY, what });
        }
        for (place, part) in self.parts.iter_mut().enumerate() {
            let restored = part.optimiser.restore(&state.nested(&place_name(place), &part.key));
            restored.map_err(|error| inside(&part.name, error))?;
        }
        Ok(())
    }
}

/// Under which name the state of a part is kept.
fn place_name(place: usize) -> String {
    format!("part{}", place + 1)
}
