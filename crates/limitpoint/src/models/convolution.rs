//! Convolutions and pools: what they do to the shape of an image.

use serde::{Deserialize, Serialize};

use super::{ModelError, Shape};
use crate::params::Block;

/// Zeros around an image before a kernel runs over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// As many as keep height and width, divided by the stride and rounded up; an odd one goes to the lower right.
    #[default]
    Same,
    /// None: the kernel stays inside.
    Valid,
    /// This many on every side.
    Zeros(usize),
}

/// A cross-correlation with zeros outside.
///
/// ```text
/// z[o, y, x] = b[o] + Σ W[o, c, i, j] a[c, s·y + i − p, s·x + j − p]
/// ```
///
/// Its weights are a matrix with a row for every output channel and a column for every (c, i, j), in this order.
///
/// ```
/// use limitpoint::models::{Convolution, Shape};
/// let layer = Convolution::new(32, 5);
/// assert_eq!(layer.shape_after(&Shape::image(1, 28, 28))?, Shape::image(32, 28, 28));
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Convolution {
    /// Output channels.
    pub channels: usize,
    /// Height and width of the kernel.
    pub kernel: [usize; 2],
    /// Pixels from one place of the kernel to the next.
    pub stride: usize,
    /// Zeros around the image.
    pub padding: Padding,
    /// Whether it adds a bias to every channel.
    pub bias: bool,
    /// Whether it keeps its initial parameters.
    pub frozen: bool,
}

/// Where a kernel or a window runs: sides of the image before and after, and zeros above and to the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Height and width before.
    pub before: [usize; 2],
    /// Height and width after.
    pub after: [usize; 2],
    /// Height and width of the window.
    pub size: [usize; 2],
    /// Pixels from one place to the next.
    pub stride: usize,
    /// Zeros above and to the left.
    pub zeros: [usize; 2],
}

impl Window {
    /// A window of this size that runs over an image; nothing if it does not fit.
    fn over(before: [usize; 2], size: [usize; 2], stride: usize, padding: Padding) -> Option<Self> {
        let (mut after, mut zeros) = ([0; 2], [0; 2]);
        for side in 0..2 {
            let (length, size) = (before[side], size[side]);
            let around = match padding {
                Padding::Same => ((length.div_ceil(stride) - 1) * stride + size).saturating_sub(length),
                Padding::Valid => 0,
                Padding::Zeros(zeros) => 2 * zeros,
            };
            zeros[side] = around / 2;
            after[side] = (length + around).checked_sub(size)? / stride + 1;
        }
        Some(Self { before, after, size, stride, zeros })
    }

    /// Calls `meet` with every (pixel after, entry of the window, pixel before) where an entry lies on the image.
    pub fn meetings(&self, mut meet: impl FnMut(usize, usize, usize)) {
        for (y, x) in (0..self.after[0]).flat_map(|y| (0..self.after[1]).map(move |x| (y, x))) {
            for (i, j) in (0..self.size[0]).flat_map(|i| (0..self.size[1]).map(move |j| (i, j))) {
                let row = (y * self.stride + i).checked_sub(self.zeros[0]).filter(|row| *row < self.before[0]);
                let column = (x * self.stride + j).checked_sub(self.zeros[1]).filter(|column| *column < self.before[1]);
                if let (Some(row), Some(column)) = (row, column) {
                    meet(y * self.after[1] + x, i * self.size[1] + j, row * self.before[1] + column);
                }
            }
        }
    }

    /// The pixel that every entry of the window meets at every place, entries of one place side by side; nothing among
    /// the zeros.
    pub fn patches(&self) -> Vec<Option<u32>> {
        let entries = self.size[0] * self.size[1];
        let mut patches = vec![None; self.after[0] * self.after[1] * entries];
        self.meetings(|place, entry, pixel| patches[place * entries + entry] = Some(pixel as u32));
        patches
    }
}

/// Channels, height and width of an image.
pub(super) fn sides(shape: &Shape) -> Option<[usize; 3]> {
    shape.0.as_slice().try_into().ok()
}

impl Convolution {
    /// Square kernels of odd size that keep height and width, without bias.
    pub fn new(channels: usize, kernel: usize) -> Self {
        let kernel = [kernel, kernel];
        Self { channels, kernel, stride: 1, padding: Padding::Same, bias: false, frozen: false }
    }

    /// Where the kernel runs.
    pub fn window(&self, before: &Shape) -> Result<Window, ModelError> {
        window(&self.to_string(), before, self.kernel, self.stride, self.padding)
    }

    /// The image it gives.
    pub fn shape_after(&self, before: &Shape) -> Result<Shape, ModelError> {
        let [height, width] = self.window(before)?.after;
        Ok(Shape::image(self.channels, height, width))
    }

    /// Inputs of an output: channels times the kernel's height and width.
    pub fn fan_in(&self, before: &Shape) -> usize {
        before.0.first().unwrap_or(&0) * self.kernel[0] * self.kernel[1]
    }

    /// Most places of the kernel that meet one pixel.
    pub fn meetings(&self) -> f64 {
        self.kernel.iter().map(|side| side.div_ceil(self.stride) as f64).product()
    }

    /// Its weights, and its biases where it has any.
    pub fn blocks(&self, number: usize, before: &Shape) -> Vec<Block> {
        let inputs = self.fan_in(before);
        let weight = Block::weight(number, self.channels, inputs).frozen(self.frozen);
        let bias = self.bias.then(|| Block::bias(number, self.channels, inputs).frozen(self.frozen));
        std::iter::once(weight).chain(bias).collect()
    }

    /// Multiply-adds that an example costs.
    pub fn cost(&self, before: &Shape) -> u128 {
        let pixels = self.window(before).map_or(0, |window| window.after[0] as u128 * window.after[1] as u128);
        pixels.saturating_mul(self.channels as u128).saturating_mul(self.fan_in(before) as u128)
    }
}

impl std::fmt::Display for Convolution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { channels, kernel: [height, width], stride, padding, bias, .. } = self;
        write!(f, "conv {channels} {height}x{width}")?;
        if *stride != 1 {
            write!(f, " stride {stride}")?;
        }
        match padding {
            Padding::Same => {}
            Padding::Valid => f.write_str(" valid")?,
            Padding::Zeros(zeros) => write!(f, " padding {zeros}")?,
        }
        f.write_str(if *bias { " bias" } else { "" })
    }
}

/// How a pool sums a window up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// The largest.
    Max,
    /// The mean.
    Average,
}

/// One number for every window of every channel; windows stay inside the image.
///
/// ```
/// use limitpoint::models::{Pool, Pooling, Shape};
/// let pool = Pool { pooling: Pooling::Max, size: 2, stride: 2 };
/// assert_eq!(pool.shape_after(&Shape::image(32, 7, 7))?, Shape::image(32, 3, 3));
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// How.
    pub pooling: Pooling,
    /// Height and width of a window.
    pub size: usize,
    /// Pixels from one window to the next.
    pub stride: usize,
}

impl Pool {
    /// Where the windows lie.
    pub fn window(&self, before: &Shape) -> Result<Window, ModelError> {
        window(&self.to_string(), before, [self.size, self.size], self.stride, Padding::Valid)
    }

    /// The image it gives.
    pub fn shape_after(&self, before: &Shape) -> Result<Shape, ModelError> {
        let [height, width] = self.window(before)?.after;
        Ok(Shape::image(before.0[0], height, width))
    }
}

impl Pool {
    /// How many times longer its output can be than its input, in ℓ2: a pixel is in up to ⌈size/stride⌉² windows, and a
    /// mean is at most 1/size of the length of its window.
    pub fn stretch(&self) -> f64 {
        let windows = self.size.div_ceil(self.stride) as f64;
        if self.pooling == Pooling::Max { windows } else { windows / self.size as f64 }
    }
}

impl std::fmt::Display for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.pooling == Pooling::Max { "pool " } else { "average " })?;
        write!(f, "{}", self.size)?;
        if self.stride == self.size { Ok(()) } else { write!(f, " stride {}", self.stride) }
    }
}

/// Where a window runs over a shape, or why it does not.
fn window(
    layer: &str,
    before: &Shape,
    size: [usize; 2],
    stride: usize,
    padding: Padding,
) -> Result<Window, ModelError> {
    let refuse = |problem: String| ModelError::Image { layer: layer.to_owned(), shape: before.to_string(), problem };
    let Some([_, height, width]) = sides(before).filter(|_| !before.is_empty()) else {
        return Err(refuse("is no image of channels x height x width".into()));
    };
    if stride == 0 || size.contains(&0) {
        return Err(refuse("cannot be read by a window or stride of 0".into()));
    }
    Window::over([height, width], size, stride, padding)
        .ok_or_else(|| refuse(format!("is smaller than the window of {}x{}", size[0], size[1])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_follow_the_usual_formulas() {
        let image = Shape::image(3, 9, 8);
        let after = |stride, padding| {
            let layer = Convolution { stride, padding, ..Convolution::new(4, 3) };
            layer.shape_after(&image).unwrap().0
        };
        assert_eq!(after(1, Padding::Same), [4, 9, 8]);
        assert_eq!(after(1, Padding::Valid), [4, 7, 6]);
        assert_eq!(after(2, Padding::Same), [4, 5, 4]);
        assert_eq!(after(2, Padding::Zeros(1)), [4, 5, 4]);
        assert_eq!(after(1, Padding::Zeros(2)), [4, 11, 10]);
        // an odd zero goes to the lower right
        assert_eq!(Convolution { stride: 2, ..Convolution::new(1, 3) }.window(&image).unwrap().zeros, [1, 0]);
        assert_eq!(Convolution::new(4, 3).fan_in(&image), 27);
        assert_eq!(Convolution::new(4, 3).cost(&image), 27 * 4 * 72);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_layer_and_shape() {
        let layer = Convolution { padding: Padding::Valid, ..Convolution::new(4, 5) };
        let text = layer.shape_after(&Shape::image(1, 4, 9)).unwrap_err().to_string();
        assert!(text.contains("conv 4 5x5 valid") && text.contains("1x4x9") && text.contains("5x5"), "{text}");
        let text = layer.shape_after(&Shape::vector(10)).unwrap_err().to_string();
        assert!(text.contains("no image"), "{text}");
        let none = Pool { pooling: Pooling::Max, size: 2, stride: 0 };
        assert!(none.shape_after(&Shape::image(1, 4, 4)).is_err());
    }
}
