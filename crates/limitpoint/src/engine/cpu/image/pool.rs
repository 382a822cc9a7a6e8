//! Pools over images of whole registers a pixel.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::convolution::{Activated, Masked};
use super::field::Frame;
use crate::engine::cpu::dense::curves::{Curve, with_curve};
use crate::linalg::Real;
use crate::models::{Activation, Pooling, Window};

/// One pool.
pub(super) struct PoolMap {
    pub pooling: Pooling,
    pub window: Window,
    pub input: Frame,
    pub output: Frame,
}

impl PoolMap {
    /// σ of the pooled numbers of these examples.
    pub fn forward<T: Real>(&self, arch: Arch, examples: Range<usize>, input: *const T, to: Activated<T>) {
        arch.dispatch(Up { pool: self, examples, input, to });
    }

    /// The signals of the input from those of the output. In a window of which several are largest the first is.
    pub fn back<T: Real>(&self, arch: Arch, examples: Range<usize>, input: *const T, signals: *const T, to: Masked<T>) {
        arch.dispatch(Down { pool: self, examples, input, signals, to });
    }

    /// Offsets of a window's pixels from its first.
    fn offsets(&self) -> impl Iterator<Item = usize> {
        let [height, width] = self.window.size;
        let (row, stride) = (self.input.row(), self.input.stride);
        (0..height).flat_map(move |i| (0..width).map(move |j| i * row + j * stride))
    }

    /// The first pixel of the window of an output pixel, and that pixel.
    fn pixels(&self, examples: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
        let stride = self.window.stride;
        examples.flat_map(move |n| {
            (0..self.output.height).flat_map(move |y| {
                (0..self.output.width).map(move |x| {
                    let from = self.input.at(n, (y * stride) as isize, (x * stride) as isize);
                    (from, self.output.at(n, y as isize, x as isize))
                })
            })
        })
    }
}

struct Up<'a, T: Real> {
    pool: &'a PoolMap,
    examples: Range<usize>,
    input: *const T,
    to: Activated<T>,
}

impl<T: Real> WithSimd for Up<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { pool, to, input, .. } = self;
        let size = pool.window.size[0] * pool.window.size[1];
        let share = T::splat(simd, T::from_f64(1.0 / size as f64));
        for (from, place) in pool.pixels(self.examples) {
            for c in (0..pool.output.stride).step_by(T::lanes::<S>()) {
                // SAFETY: pixels of frames that the buffers were made for, whole registers each.
                unsafe {
                    let mut values = pool.offsets().map(|offset| T::load::<S>(input.add(from + offset + c)));
                    let first = values.next().unwrap_or(T::splat(simd, T::default()));
                    let z = match pool.pooling {
                        Pooling::Max => values.fold(first, |most, value| larger::<T, S>(simd, most, value)),
                        Pooling::Average => T::mul(simd, share, values.fold(first, |a, b| T::add(simd, a, b))),
                    };
                    if let Some(kept) = to.z {
                        T::store::<S>(kept.add(place + c), z);
                    }
                    with_curve!(to.activation, |curve| {
                        T::store::<S>(to.output.add(place + c), curve.value::<T, S>(simd, z));
                    });
                }
            }
        }
    }
}

/// The larger of two, number by number; the first where they are equal.
#[inline(always)]
fn larger<T: Real, S: Simd>(simd: S, a: T::Vector<S>, b: T::Vector<S>) -> T::Vector<S> {
    let minus = T::splat(simd, T::from_f64(-1.0));
    T::where_positive(simd, T::mul_add(simd, minus, a, b), b, a)
}

struct Down<'a, T: Real> {
    pool: &'a PoolMap,
    examples: Range<usize>,
    input: *const T,
    signals: *const T,
    to: Masked<T>,
}

impl<T: Real> WithSimd for Down<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { pool, to, input, signals, .. } = self;
        let size = pool.window.size[0] * pool.window.size[1];
        let (zero, share) = (T::splat(simd, T::default()), T::splat(simd, T::from_f64(1.0 / size as f64)));
        let (minus, frame) = (T::splat(simd, T::from_f64(-1.0)), &pool.input);
        // windows side by side meet every pixel at most once
        let apart = pool.window.size.iter().all(|side| *side <= pool.window.stride);
        if !(apart && (0..2).all(|side| pool.window.after[side] * pool.window.size[side] == pool.window.before[side])) {
            for n in self.examples.clone() {
                // SAFETY: this example's signals, which nobody else writes.
                unsafe { std::slice::from_raw_parts_mut(to.signals.add(n * frame.len()), frame.len()) }
                    .fill(T::default());
            }
        }
        for (from, place) in pool.pixels(self.examples.clone()) {
            for c in (0..pool.output.stride).step_by(T::lanes::<S>()) {
                // SAFETY: pixels of frames that the buffers were made for, whole registers each.
                unsafe {
                    let signal = T::load::<S>(signals.add(place + c));
                    let give = |at: usize, part: T::Vector<S>| {
                        let there = to.signals.add(at);
                        let sum = if apart { part } else { T::add(simd, T::load::<S>(there), part) };
                        T::store::<S>(there, sum);
                    };
                    if pool.pooling == Pooling::Average {
                        let part = T::mul(simd, share, signal);
                        pool.offsets().for_each(|offset| give(from + offset + c, part));
                        continue;
                    }
                    let read = |offset: usize| T::load::<S>(input.add(from + offset + c));
                    let most = pool.offsets().skip(1).map(read).fold(read(0), |a, b| larger::<T, S>(simd, a, b));
                    // what is left goes to the first that none exceeds
                    let mut left = signal;
                    for offset in pool.offsets() {
                        let beaten = T::positive(simd, T::mul_add(simd, minus, read(offset), most));
                        give(from + offset + c, T::select(simd, beaten, zero, left));
                        left = T::select(simd, beaten, left, zero);
                    }
                }
            }
        }
        Slopes { frame, examples: self.examples, to }.with_simd(simd);
    }
}

/// Multiplies signals by σ′ where they lie.
pub(super) struct Slopes<'a, T: Real> {
    pub frame: &'a Frame,
    pub examples: Range<usize>,
    pub to: Masked<T>,
}

impl<T: Real> WithSimd for Slopes<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { frame, to, .. } = self;
        if to.activation == Activation::Identity {
            return;
        }
        with_curve!(to.activation, |curve| {
            for n in self.examples.clone() {
                for y in 0..frame.height {
                    let start = frame.at(n, y as isize, 0);
                    for at in (start..start + frame.width * frame.stride).step_by(T::lanes::<S>()) {
                        // SAFETY: pixels of frames that the buffers were made for, whole registers each.
                        unsafe {
                            let there = to.signals.add(at);
                            let z = T::load::<S>(to.at.add(at));
                            T::store::<S>(there, curve.slope_times::<T, S>(simd, z, T::load::<S>(there)));
                        }
                    }
                }
            }
        });
    }
}
