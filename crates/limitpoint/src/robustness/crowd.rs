//! Examples shared out over threads, a panel of them at a time.
//!
//! Every attack moves many examples side by side, one in each lane of a panel. Lanes never meet, so what is found for
//! an example depends neither on its neighbours nor on the number of threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::victim::Label;
use super::{RobustnessError, Victim};
use crate::engine::InputMap;
use crate::engine::cpu::LayeredMap;
use crate::linalg::{Panels, lanes};
use crate::numeric::wide;

/// Numbers in one panel of singles.
pub(super) fn panel_lanes() -> usize {
    3 * lanes::<f32>()
}

/// The examples still to be attacked.
pub(super) struct Queue<'a> {
    examples: &'a [usize],
    next: AtomicUsize,
}

impl Queue<'_> {
    /// The next one.
    pub fn take(&self) -> Option<usize> {
        self.examples.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }

    /// Takes up to `count` examples at a time until none is left; `search` finds a wrong point for each, or nothing.
    pub fn in_groups(
        &self,
        victim: &Victim,
        count: usize,
        mut search: impl FnMut(&Group) -> Vec<Option<Vec<f64>>>,
    ) -> Found {
        let mut group = Group { origin: panel(victim.inputs().cols, count), labels: Vec::new(), blurs: Vec::new() };
        let mut found = Found::new();
        loop {
            let examples: Vec<usize> = std::iter::from_fn(|| self.take()).take(count).collect();
            if examples.is_empty() {
                return found;
            }
            for (lane, example) in examples.iter().enumerate() {
                set_column(&mut group.origin, lane, victim.inputs().row(*example));
            }
            group.labels = examples.iter().map(|example| victim.labels()[*example]).collect();
            group.blurs = examples.iter().map(|example| victim.blur(*example)).collect();
            for (example, point) in examples.into_iter().zip(search(&group)) {
                found.push((example, point.and_then(|point| victim.distance(example, &point))));
            }
        }
    }
}

/// Examples that are attacked together, one in each lane.
pub(super) struct Group {
    /// Where they are.
    pub origin: Panels<f32>,
    pub labels: Vec<Label>,
    /// How far below zero a margin must be to count as wrong.
    pub blurs: Vec<f64>,
}

/// What a worker reports: the example and the nearest wrong point, if one was found.
pub(super) type Found = Vec<(usize, Option<f64>)>;

/// One worker's share of an attack.
pub(super) trait Attack: Sync {
    /// Attacks examples of the queue with `count` lanes until none is left.
    fn work(&self, victim: &Victim, map: &mut dyn InputMap<f32>, queue: &Queue<'_>, count: usize) -> Found;
}

/// Attacks `examples` on `threads` threads; distances in their order.
pub(super) fn attack(
    attack: &dyn Attack,
    victim: &Victim,
    examples: &[usize],
    threads: usize,
) -> Result<Vec<Option<f64>>, RobustnessError> {
    // a device takes panels that are as full as can be: its bits may depend on how many examples lie side by side
    let full = panel_lanes().min(examples.len().max(1));
    let most = if victim.is_elsewhere() { examples.len().div_ceil(full) } else { examples.len() };
    let threads = threads.clamp(1, most.max(1));
    let count = if victim.is_elsewhere() { full } else { examples.len().div_ceil(threads).clamp(1, full) };
    let queue = Queue { examples, next: AtomicUsize::new(0) };
    let own = |victim: &Victim| Box::new(LayeredMap::<f32>::new(victim.model())) as Box<dyn InputMap<f32>>;
    let original = victim.map().unwrap_or_else(|| own(victim));
    let mut maps: Vec<Box<dyn InputMap<f32>>> = (1..threads).map(|_| original.fork()).collect();
    maps.push(original);
    let start = |map: &mut Box<dyn InputMap<f32>>| attack.work(victim, &mut **map, &queue, count);
    let found: Vec<Option<Found>> = std::thread::scope(|scope| match maps.split_first_mut() {
        None => Vec::new(),
        Some((first, others)) => {
            let others: Vec<_> = others.iter_mut().map(|map| scope.spawn(|| start(map))).collect();
            let own = start(first);
            std::iter::once(Some(own)).chain(others.into_iter().map(|worker| worker.join().ok())).collect()
        }
    });
    if let Some(why) = maps.iter().find_map(|map| map.failure()) {
        return Err(RobustnessError::Device(why));
    }
    let mut places = vec![0; victim.inputs().rows];
    examples.iter().enumerate().for_each(|(place, example)| places[*example] = place);
    let mut distances = vec![None; examples.len()];
    for one in found {
        for (example, distance) in one.ok_or(RobustnessError::Worker)? {
            distances[places[example]] = distance;
        }
    }
    Ok(distances)
}

/// A panel with `count` lanes.
pub(super) fn panel(rows: usize, count: usize) -> Panels<f32> {
    Panels::zeros(rows, count)
}

/// Column `lane` of a panel.
pub(super) fn column(panel: &Panels<f32>, lane: usize) -> Vec<f64> {
    (0..panel.rows()).map(|row| f64::from(panel.get(row, lane))).collect()
}

/// Copies a column in.
pub(super) fn set_column(panel: &mut Panels<f32>, lane: usize, values: &[f64]) {
    values.iter().enumerate().for_each(|(row, value)| panel.set(row, lane, *value as f32));
}

/// Copies the marked lanes from one panel to another of the same shape.
pub(super) fn copy_lanes(from: &Panels<f32>, to: &mut Panels<f32>, marked: &[bool]) {
    let (width, from, to) = (from.width(), from.data(), to.data_mut());
    wide(
        #[inline(always)]
        || {
            for (from, to) in from.chunks_exact(width).zip(to.chunks_exact_mut(width)) {
                for ((to, from), marked) in to.iter_mut().zip(from).zip(marked) {
                    *to = if *marked { *from } else { *to };
                }
            }
        },
    );
}

/// The squared length of every column.
pub(super) fn squared_norms(panel: &Panels<f32>, norms: &mut [f32]) {
    let (width, data) = (panel.width(), panel.data());
    let norms = &mut norms[..width];
    wide(
        #[inline(always)]
        || {
            norms.fill(0.0);
            for row in data.chunks_exact(width) {
                norms.iter_mut().zip(row).for_each(|(norm, x)| *norm += x * x);
            }
        },
    );
}
