//! Kernels and pools over panels of examples: every number of an image is a row, every example a lane.

use super::layered_map::{Weights, product};
use crate::linalg::{Panels, Real};
use crate::models::{PoolMap, Pooling, Window};
use crate::numeric::wide;
use pulp::Arch;

/// Where the kernels of a convolution run.
pub(super) struct Places {
    /// Rows of the patch of every place, in the order of the kernels' entries; nothing among the zeros.
    rows: Vec<Option<u32>>,
    entries: usize,
    count: usize,
}

impl Places {
    /// For `channels` channels before.
    pub fn new(window: &Window, channels: usize) -> Self {
        let (seen, plane) = (window.patches(), (window.before[0] * window.before[1]) as u32);
        let size = window.size[0] * window.size[1];
        let mut rows = Vec::with_capacity(seen.len() * channels);
        for patch in seen.chunks_exact(size) {
            for channel in 0..channels as u32 {
                rows.extend(patch.iter().map(|pixel| pixel.map(|pixel| channel * plane + pixel)));
            }
        }
        let count = window.after[0] * window.after[1];
        Self { rows, entries: size * channels, count }
    }

    /// Places of the kernel.
    pub fn count(&self) -> usize {
        self.count
    }

    fn patch(&self, place: usize) -> &[Option<u32>] {
        &self.rows[place * self.entries..(place + 1) * self.entries]
    }
}

/// A patch and the numbers of one place, for all lanes.
pub(super) struct Scratch<T> {
    patch: Panels<T>,
    place: Panels<T>,
}

impl<T: Real> Scratch<T> {
    pub fn new() -> Self {
        Self { patch: Panels::zeros(0, 0), place: Panels::zeros(0, 0) }
    }

    fn shape(&mut self, places: &Places, outputs: usize, examples: usize) {
        self.patch.reshape(places.entries, examples);
        self.place.reshape(outputs, examples);
    }
}

/// out[o, place] = ⟨W[o], patch⟩ + b[o].
pub(super) fn convolve<T: Real>(
    arch: Arch,
    (weights, places): (&Weights<T>, &Places),
    input: &Panels<T>,
    out: &mut Panels<T>,
    scratch: &mut Scratch<T>,
) {
    scratch.shape(places, weights.outputs, input.cols());
    let matrix = (weights.forward.as_slice(), weights.outputs, weights.inputs);
    for place in 0..places.count {
        for panel in 0..input.count() {
            for (entry, row) in places.patch(place).iter().enumerate() {
                let to = lanes_mut(&mut scratch.patch, panel, entry);
                match row {
                    Some(row) => to.copy_from_slice(lanes(input, panel, *row as usize)),
                    None => to.fill(T::default()),
                }
            }
        }
        arch.dispatch(product(matrix, weights.bias.as_deref(), &scratch.patch, &mut scratch.place));
        for panel in 0..input.count() {
            for o in 0..weights.outputs {
                let to = lanes_mut(out, panel, o * places.count + place);
                to.copy_from_slice(lanes(&scratch.place, panel, o));
            }
        }
    }
}

/// signal = Wᵀ above, summed over all places that meet a pixel.
pub(super) fn convolve_back<T: Real>(
    arch: Arch,
    (weights, places): (&Weights<T>, &Places),
    above: &Panels<T>,
    signal: &mut Panels<T>,
    scratch: &mut Scratch<T>,
) {
    scratch.shape(places, weights.outputs, above.cols());
    signal.data_mut().fill(T::default());
    let matrix = (weights.turned.as_slice(), weights.inputs, weights.outputs);
    for place in 0..places.count {
        for panel in 0..above.count() {
            for o in 0..weights.outputs {
                let from = lanes(above, panel, o * places.count + place);
                lanes_mut(&mut scratch.place, panel, o).copy_from_slice(from);
            }
        }
        arch.dispatch(product(matrix, None, &scratch.place, &mut scratch.patch));
        wide(
            #[inline(always)]
            || {
                for panel in 0..above.count() {
                    for (entry, row) in places.patch(place).iter().enumerate() {
                        let Some(row) = row else { continue };
                        let from = lanes(&scratch.patch, panel, entry);
                        add(lanes_mut(signal, panel, *row as usize), from);
                    }
                }
            },
        );
    }
}

/// The windows of a pool: inputs of every output, those of one side by side.
pub(super) struct Windows {
    members: Vec<u32>,
    size: usize,
    pooling: Pooling,
}

impl Windows {
    pub fn new(pool: &PoolMap) -> Self {
        Self { members: pool.members(), size: pool.size(), pooling: pool.pooling }
    }

    /// Numbers it gives.
    pub fn outputs(&self) -> usize {
        self.members.len() / self.size
    }

    /// The largest, or the mean, of every window.
    pub fn up<T: Real>(&self, input: &Panels<T>, out: &mut Panels<T>) {
        let share = T::from_f64(1.0 / self.size as f64);
        wide(
            #[inline(always)]
            || {
                for panel in 0..input.count() {
                    for (row, members) in self.members.chunks_exact(self.size).enumerate() {
                        let to = lanes_mut(out, panel, row);
                        to.copy_from_slice(lanes(input, panel, members[0] as usize));
                        for member in &members[1..] {
                            let from = lanes(input, panel, *member as usize);
                            if self.pooling == Pooling::Max {
                                for (to, from) in to.iter_mut().zip(from) {
                                    *to = if *from > *to { *from } else { *to };
                                }
                            } else {
                                add(to, from);
                            }
                        }
                        if self.pooling == Pooling::Average {
                            to.iter_mut().for_each(|to| *to *= share);
                        }
                    }
                }
            },
        );
    }

    /// The signals of the input: of several that are largest the first gets it.
    pub fn back<T: Real>(&self, input: &Panels<T>, above: &Panels<T>, signal: &mut Panels<T>) {
        let share = T::from_f64(1.0 / self.size as f64);
        signal.data_mut().fill(T::default());
        wide(
            #[inline(always)]
            || {
                for panel in 0..above.count() {
                    for (row, members) in self.members.chunks_exact(self.size).enumerate() {
                        let from = lanes(above, panel, row);
                        if self.pooling == Pooling::Average {
                            for member in members {
                                let to = lanes_mut(signal, panel, *member as usize);
                                for (to, from) in to.iter_mut().zip(from) {
                                    let mut part = *from;
                                    part *= share;
                                    *to += part;
                                }
                            }
                            continue;
                        }
                        for (lane, from) in from.iter().enumerate() {
                            let value = |member: u32| input.data()[input.offset(panel, member as usize) + lane];
                            let first = members[1..].iter().fold(members[0], |most, member| {
                                if value(*member) > value(most) { *member } else { most }
                            });
                            let to = &mut lanes_mut(signal, panel, first as usize)[lane];
                            *to += *from;
                        }
                    }
                }
            },
        );
    }
}

/// One row of a panel.
#[inline(always)]
fn lanes<T: Real>(panels: &Panels<T>, panel: usize, row: usize) -> &[T] {
    &panels.data()[panels.offset(panel, row)..][..panels.width()]
}

#[inline(always)]
fn lanes_mut<T: Real>(panels: &mut Panels<T>, panel: usize, row: usize) -> &mut [T] {
    let (at, width) = (panels.offset(panel, row), panels.width());
    &mut panels.data_mut()[at..at + width]
}

#[inline(always)]
fn add<T: Real>(to: &mut [T], from: &[T]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
}
