//! Images of a batch as the kernels read them: pixel by pixel, channels side by side, zeros around.

use std::ops::Range;

use crate::engine::cpu::dense::raw::{RawPanels, turn};
use crate::linalg::{Aligned, Real, by_panels, lanes};

/// Where the numbers of a batch of images lie: `((n · rows + y) · columns + x) · stride + c`, with zeros above, below, to
/// the left and to the right of every image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    /// Numbers from one pixel to the next.
    pub stride: usize,
    /// Zeros above, to the left, below, to the right.
    pub zeros: [usize; 4],
}

impl Frame {
    /// An image whose pixels are read number by number.
    pub fn close(channels: usize, [height, width]: [usize; 2]) -> Self {
        Self { channels, height, width, stride: channels, zeros: [0; 4] }
    }

    /// An image whose pixels are whole registers.
    pub fn padded<T: Real>(channels: usize, sides: [usize; 2]) -> Self {
        Self { stride: channels.next_multiple_of(lanes::<T>()), ..Self::close(channels, sides) }
    }

    pub fn pixels(&self) -> usize {
        self.height * self.width
    }

    /// Numbers from one row of pixels to the next.
    pub fn row(&self) -> usize {
        (self.zeros[1] + self.width + self.zeros[3]) * self.stride
    }

    /// Numbers of an image with its zeros.
    pub fn len(&self) -> usize {
        (self.zeros[0] + self.height + self.zeros[2]) * self.row()
    }

    /// The first number of a pixel, which may lie among the zeros.
    pub fn at(&self, example: usize, y: isize, x: isize) -> usize {
        let (y, x) = (y + self.zeros[0] as isize, x + self.zeros[1] as isize);
        debug_assert!(y >= 0 && x >= 0, "inside the zeros");
        example * self.len() + y as usize * self.row() + x as usize * self.stride
    }

    /// The first number of every pixel of `examples` images, in order.
    pub fn places(&self, examples: usize) -> Vec<u32> {
        (0..examples * self.pixels()).map(|at| self.pixel(at / self.pixels(), at % self.pixels()) as u32).collect()
    }

    /// Writes an image, channel by channel in `from`, where it belongs.
    ///
    /// # Safety
    /// `to` has room for this example, and nobody else touches it.
    pub unsafe fn load<T: Real>(&self, example: usize, from: &[f64], to: *mut T) {
        let rows = from.chunks_exact(self.width).enumerate();
        for (index, row) in rows {
            let (c, y) = (index / self.height, index % self.height);
            let start = self.at(example, y as isize, 0) + c;
            for (x, value) in row.iter().enumerate() {
                // SAFETY: a pixel of this example.
                unsafe { *to.add(start + x * self.stride) = T::from_f64(*value) };
            }
        }
    }

    /// The first number of a pixel, counted row by row.
    pub fn pixel(&self, example: usize, pixel: usize) -> usize {
        self.at(example, (pixel / self.width) as isize, (pixel % self.width) as isize)
    }

    /// Copies these pixels of so many images to panels of (features × examples), features in the order (channel, row,
    /// column).
    ///
    /// # Safety
    /// Images and panels are of these features and examples, and nobody else touches these pixels of the panels.
    pub unsafe fn copy_features<T: Real>(
        &self,
        images: *const T,
        pixels: Range<usize>,
        count: usize,
        to: RawPanels<T>,
    ) {
        for (first, pixel) in (0..count).step_by(to.width).flat_map(|n| pixels.clone().map(move |pixel| (n, pixel))) {
            let (from, to_stride) = (images.wrapping_add(self.pixel(first, pixel)), self.pixels() * to.width);
            let there = to.at(first / to.width, pixel);
            // SAFETY: channels of one pixel in the examples of one panel.
            unsafe { turn(from, self.len(), there, to_stride, to.width.min(count - first), self.channels) };
        }
    }

    /// The way back, for these images.
    ///
    /// # Safety
    /// As there; nobody else touches these images.
    pub unsafe fn take_features<T: Real>(&self, from: RawPanels<T>, examples: Range<usize>, images: *mut T) {
        for own in by_panels(examples, from.width) {
            for pixel in 0..self.pixels() {
                let start = from.at(own.start / from.width, pixel).wrapping_add(own.start % from.width);
                let there = images.wrapping_add(self.pixel(own.start, pixel));
                // SAFETY: channels of one pixel in some examples of one panel.
                unsafe { turn(start, self.pixels() * from.width, there, self.len(), self.channels, own.len()) };
            }
        }
    }

    /// Copies an image to a row of panels of (examples × features).
    ///
    /// # Safety
    /// Images and panels are of these features and examples, and nobody else touches this row.
    pub unsafe fn copy_row<T: Real>(&self, images: &[T], example: usize, to: RawPanels<T>) {
        let (mut panel, mut column) = (to.at(0, example), 0);
        for c in 0..self.channels {
            for y in 0..self.height {
                let start = self.at(example, y as isize, 0) + c;
                for x in 0..self.width {
                    // SAFETY: a feature of this example.
                    unsafe { *panel.add(column) = images[start + x * self.stride] };
                    column += 1;
                    if column == to.width {
                        (panel, column) = (panel.wrapping_add(to.rows * to.width), 0);
                    }
                }
            }
        }
    }

    /// Room for this many images.
    pub fn room<T: Real>(&self, examples: usize) -> Aligned<T> {
        Aligned::zeros(examples * self.len())
    }
}
