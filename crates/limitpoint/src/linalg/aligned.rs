//! Numbers that begin at a cache line.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::real::Real;

/// A cache line, and the widest vector register.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// A vector of numbers of which the first, and with it every 64th byte, begins a cache line.
///
/// A register of 64 bytes that is read across the border of two lines costs twice; large allocations of the system
/// begin 16 bytes after a border, so that kernels on a plain `Vec` would read nothing else.
///
/// ```
/// use limitpoint::linalg::Aligned;
/// let mut numbers = Aligned::<f32>::zeros(3);
/// numbers[1] = 2.0;
/// numbers.resize(5);
/// assert_eq!(numbers[..], [0.0, 2.0, 0.0, 0.0, 0.0]);
/// assert_eq!(numbers.as_ptr().align_offset(64), 0);
/// ```
#[derive(Debug, Clone)]
pub struct Aligned<T> {
    lines: Vec<Line>,
    length: usize,
    numbers: PhantomData<T>,
}

impl<T: Real> Aligned<T> {
    /// This many zeros.
    pub fn zeros(length: usize) -> Self {
        Self { lines: vec![Line([0; 64]); lines_of::<T>(length)], length, numbers: PhantomData }
    }

    /// Changes the length; new numbers are zero.
    pub fn resize(&mut self, length: usize) {
        let kept = self.length.min(length);
        self.lines.resize(lines_of::<T>(length), Line([0; 64]));
        self.length = length;
        // the rest of the last line that was in use may hold what was cut off
        let rest = kept.next_multiple_of(64 / size_of::<T>()).min(length);
        self[kept..rest].fill(T::default());
    }

    /// Cuts to nothing and takes this many zeros.
    pub fn reset(&mut self, length: usize) {
        self.lines.clear();
        self.length = 0;
        self.resize(length);
    }
}

/// Lines that hold so many numbers.
fn lines_of<T>(length: usize) -> usize {
    (length * size_of::<T>()).div_ceil(64)
}

impl<T: Real> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold `length` numbers of `T`, one of f32 and f64, for which all bytes are valid (no other
        // type is a `Real`).
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }
}

impl<T: Real> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_off_does_not_come_back() {
        let mut numbers = Aligned::<f64>::zeros(20);
        numbers.fill(7.0);
        for (length, sevens) in [(3, 3), (6, 3), (19, 3), (2, 2), (40, 2)] {
            numbers.resize(length);
            let expected: Vec<f64> = (0..length).map(|i| if i < sevens { 7.0 } else { 0.0 }).collect();
            assert_eq!(numbers[..], expected, "{length} numbers");
        }
        numbers.reset(9);
        assert_eq!(numbers[..], [0.0; 9]);
    }
}
