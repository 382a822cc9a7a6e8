//! Pools over images of whole registers a pixel.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::field::Frame;
use super::products::{Activated, Masked, Sink};
use crate::engine::cpu::dense::curves::with_curve;
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

    /// Calls `take` with the first pixel of every window and the output pixel it gives, row by row.
    ///
    /// Plain loops, here and over the pixels of a window: adapters of iterators are compiled on their own, without the
    /// machine's registers.
    #[inline(always)]
    fn for_each_window(&self, examples: Range<usize>, mut take: impl FnMut(usize, usize)) {
        let (stride, step) = (self.window.stride, self.window.stride * self.input.stride);
        for n in examples {
            for y in 0..self.output.height {
                let (mut from, mut to) = (self.input.at(n, (y * stride) as isize, 0), self.output.at(n, y as isize, 0));
                for _ in 0..self.output.width {
                    take(from, to);
                    (from, to) = (from + step, to + self.output.stride);
                }
            }
        }
    }

    /// Calls `take` with the offset of every pixel of a window from its first.
    #[inline(always)]
    fn for_each_offset(&self, mut take: impl FnMut(usize)) {
        let ([height, width], row, stride) = (self.window.size, self.input.row(), self.input.stride);
        for i in 0..height {
            for j in 0..width {
                take(i * row + j * stride);
            }
        }
    }

    /// One over the pixels of a window.
    fn share<T: Real>(&self) -> T {
        T::from_f64(1.0 / (self.window.size[0] * self.window.size[1]) as f64)
    }

    /// The largest number, or the sum, of a window's pixels at one register of channels.
    ///
    /// # Safety
    /// The window must be readable at `from`.
    #[inline(always)]
    unsafe fn of_window<T: Real, S: Simd>(&self, simd: S, from: *const T) -> T::Vector<S> {
        // SAFETY: vouched for by the caller.
        unsafe {
            let mut so_far = T::load::<S>(from);
            self.for_each_offset(
                #[inline(always)]
                |offset| {
                    let value = T::load::<S>(from.add(offset));
                    so_far = match (offset, self.pooling) {
                        (0, _) => so_far,
                        (_, Pooling::Max) => larger::<T, S>(simd, so_far, value),
                        (_, Pooling::Average) => T::add(simd, so_far, value),
                    };
                },
            );
            so_far
        }
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
        let Self { pool, to, input, examples } = self;
        let share = T::splat(simd, pool.share());
        with_curve!(to.activation, |curve| {
            pool.for_each_window(
                examples,
                #[inline(always)]
                |from, place| {
                    for c in (0..pool.output.stride).step_by(T::lanes::<S>()) {
                        // SAFETY: pixels of frames that the buffers were made for, whole registers each.
                        unsafe {
                            let mut z = pool.of_window::<T, S>(simd, input.add(from + c));
                            if pool.pooling == Pooling::Average {
                                z = T::mul(simd, share, z);
                            }
                            to.put::<S, _>(simd, curve, place + c, z);
                        }
                    }
                },
            );
        });
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
        let Self { pool, to, input, signals, examples } = self;
        let (zero, minus) = (T::splat(simd, T::default()), T::splat(simd, T::from_f64(-1.0)));
        let (share, frame, window) = (T::splat(simd, pool.share()), &pool.input, &pool.window);
        // windows side by side meet every pixel at most once, and are done with it
        let apart = window.size.iter().all(|side| *side <= window.stride);
        if !(apart && (0..2).all(|side| window.after[side] * window.size[side] == window.before[side])) {
            for n in examples.clone() {
                // SAFETY: this example's signals, which nobody else writes.
                unsafe { std::slice::from_raw_parts_mut(to.signals.add(n * frame.len()), frame.len()) }
                    .fill(T::default());
            }
        }
        with_curve!(to.activation, |curve| {
            pool.for_each_window(
                examples.clone(),
                #[inline(always)]
                |from, place| {
                    for first in (0..pool.output.stride).step_by(T::lanes::<S>()) {
                        let from = from + first;
                        // SAFETY: pixels of frames that the buffers were made for, whole registers each.
                        unsafe {
                            // of a max-pool, what is left goes to the first that none exceeds
                            let (mut left, mut most) = (T::load::<S>(signals.add(place + first)), zero);
                            if pool.pooling == Pooling::Max {
                                most = pool.of_window::<T, S>(simd, input.add(from));
                            }
                            pool.for_each_offset(
                                #[inline(always)]
                                |offset| {
                                    let part = if pool.pooling == Pooling::Max {
                                        let value = T::load::<S>(input.add(from + offset));
                                        let beaten = T::positive(simd, T::mul_add(simd, minus, value, most));
                                        let part = T::select(simd, beaten, zero, left);
                                        left = T::select(simd, beaten, left, zero);
                                        part
                                    } else {
                                        T::mul(simd, share, left)
                                    };
                                    if apart {
                                        return to.put::<S, _>(simd, curve, from + offset, part);
                                    }
                                    let there = to.signals.add(from + offset);
                                    T::store::<S>(there, T::add(simd, T::load::<S>(there), part));
                                },
                            );
                        }
                    }
                },
            );
        });
        if !apart {
            Slopes { frame, examples, to }.with_simd(simd);
        }
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
                        unsafe { to.put::<S, _>(simd, curve, at, T::load::<S>(to.signals.add(at))) };
                    }
                }
            }
        });
    }
}
