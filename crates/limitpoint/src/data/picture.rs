//! Images in a dataset: where their channels are, the middle of them, other sides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DataError, Dataset};
use crate::linalg::Matrix;

/// Where the channels of an image with three sides are in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Channels {
    /// Channels × height × width, as networks of images read them.
    #[default]
    First,
    /// Height × width × channels, as pictures are often saved.
    Last,
}

impl Channels {
    pub(super) fn is_first(&self) -> bool {
        *self == Self::First
    }
}

/// The sides of an image as (channels, height, width).
fn sides(data: &Dataset, what: &str) -> Result<[usize; 3], DataError> {
    match data.input_shape[..] {
        [height, width] => Ok([1, height, width]),
        [channels, height, width] => Ok([channels, height, width]),
        _ => {
            let problem = format!("examples of shape {:?} cannot be {what}", data.input_shape);
            let remedy = "images have the shape height x width or channels x height x width";
            Err(DataError::Transform { name: data.name.clone(), problem, remedy })
        }
    }
}

impl Dataset {
    /// Images of height × width × channels with their channels first.
    pub fn channels_first(&self) -> Result<Self, DataError> {
        let [height, width, channels] = self.input_shape[..] else {
            let problem = format!("examples of shape {:?} have no channels to be put first", self.input_shape);
            let remedy = "leave channels out, or give images of height x width x channels";
            return Err(DataError::Transform { name: self.name.clone(), problem, remedy });
        };
        let pixels = height * width;
        let turned = |image: &[f64], to: &mut Vec<f64>| {
            (0..channels).for_each(|c| to.extend((0..pixels).map(|pixel| image[pixel * channels + c])));
        };
        self.redrawn(vec![channels, height, width], turned)
    }

    /// The middle of every image, `height` × `width` of it; an odd row or column is cut off at the lower right.
    pub fn crop_images(&self, [height, width]: [usize; 2]) -> Result<Self, DataError> {
        let [channels, rows, columns] = sides(self, "cropped")?;
        if height == 0 || width == 0 || height > rows || width > columns {
            let problem = format!("images of {rows}x{columns} have no middle of {height}x{width}");
            let remedy = "crop to sides between 1 and those of the images";
            return Err(DataError::Transform { name: self.name.clone(), problem, remedy });
        }
        let (top, left) = ((rows - height) / 2, (columns - width) / 2);
        let cut = |image: &[f64], to: &mut Vec<f64>| {
            for row in (0..channels).flat_map(|c| (0..height).map(move |y| c * rows + top + y)) {
                to.extend_from_slice(&image[row * columns + left..][..width]);
            }
        };
        self.redrawn(self.with_sides([height, width]), cut)
    }

    /// Images of other sides: every new pixel is the mean of the part of the image that it covers.
    ///
    /// ```text
    /// new[i, j] = mean of the image over [i H/h, (i+1) H/h) × [j W/w, (j+1) W/w),   a pixel being a square of one colour
    /// ```
    ///
    /// Means of whole squares where the sides divide; the mean of an image stays what it is.
    pub fn resize_images(&self, [height, width]: [usize; 2]) -> Result<Self, DataError> {
        let [channels, rows, columns] = sides(self, "resized")?;
        if height == 0 || width == 0 {
            let problem = format!("images of {rows}x{columns} cannot become {height}x{width}");
            return Err(DataError::Transform {
                name: self.name.clone(),
                problem,
                remedy: "resize to sides of 1 or more",
            });
        }
        let (tall, wide) = (shares(rows, height), shares(columns, width));
        let drawn = |image: &[f64], to: &mut Vec<f64>| {
            for channel in image.chunks_exact(rows * columns).take(channels) {
                for vertical in &tall {
                    for horizontal in &wide {
                        let mean = vertical.iter().map(|(y, a)| {
                            let row = horizontal.iter().map(|(x, b)| b * channel[y * columns + x]);
                            a * row.sum::<f64>()
                        });
                        to.push(mean.sum());
                    }
                }
            }
        };
        self.redrawn(self.with_sides([height, width]), drawn)
    }

    /// The shape with other heights and widths.
    fn with_sides(&self, sides: [usize; 2]) -> Vec<usize> {
        let mut shape = self.input_shape.clone();
        let channels = shape.len() - 2;
        shape[channels..].copy_from_slice(&sides);
        shape
    }

    /// The same examples with every image drawn anew.
    fn redrawn(&self, shape: Vec<usize>, draw: impl Fn(&[f64], &mut Vec<f64>)) -> Result<Self, DataError> {
        let (images, size) = (self.dense()?, shape.iter().product());
        let mut data = Vec::with_capacity(images.rows * size);
        (0..images.rows).for_each(|n| draw(images.row(n), &mut data));
        let inputs = Matrix { rows: images.rows, cols: size, data };
        let redrawn = Self::new(self.name.clone(), inputs, self.targets.clone(), shape)?;
        Ok(Self { notes: self.notes.clone(), ..redrawn })
    }
}

/// For each of `to` equal parts of a line of `from` pixels, the pixels it covers with their shares of it.
fn shares(from: usize, to: usize) -> Vec<Vec<(usize, f64)>> {
    (0..to)
        .map(|part| {
            // in units of 1/to of a pixel everything is a whole number
            let (start, end) = (part * from, (part + 1) * from);
            (start / to..end.div_ceil(to))
                .map(|pixel| {
                    let covered = end.min((pixel + 1) * to) - start.max(pixel * to);
                    (pixel, covered as f64 / from as f64)
                })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Targets;

    fn images(shape: &[usize]) -> Dataset {
        let size = shape.iter().product();
        let inputs = Matrix { rows: 2, cols: size, data: (0..2 * size).map(|k| k as f64).collect() };
        Dataset::new("images", inputs, Targets::Binary(vec![1.0, -1.0]), shape.to_vec()).unwrap()
    }

    fn first(data: &Dataset) -> Vec<f64> {
        data.dense().unwrap().row(0).to_vec()
    }

    #[test]
    fn channels_come_first() {
        let turned = images(&[2, 3, 2]).channels_first().unwrap();
        assert_eq!(turned.input_shape, [2, 2, 3]);
        assert_eq!(first(&turned), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
        let text = images(&[4, 3]).channels_first().unwrap_err().to_string();
        assert!(text.contains("[4, 3]") && text.contains("channels"), "{text}");
    }

    #[test]
    fn the_middle_is_cut_out() {
        assert_eq!(first(&images(&[4, 3]).crop_images([2, 1]).unwrap()), [4.0, 7.0]);
        let colour = images(&[2, 3, 3]).crop_images([2, 2]).unwrap();
        assert_eq!(
            (first(&colour), &colour.input_shape[..]),
            (vec![0.0, 1.0, 3.0, 4.0, 9.0, 10.0, 12.0, 13.0], &[2, 2, 2][..])
        );
        let text = images(&[4, 3]).crop_images([2, 4]).unwrap_err().to_string();
        assert!(text.contains("4x3") && text.contains("2x4"), "{text}");
        assert!(images(&[12]).crop_images([1, 1]).unwrap_err().to_string().contains("[12]"));
    }

    #[test]
    fn other_sides_keep_means() {
        let image = images(&[2, 4, 6]);
        assert_eq!(first(&image.resize_images([2, 3]).unwrap()), first(&image.halve_images().unwrap()));
        assert_eq!(first(&image.resize_images([4, 6]).unwrap()), first(&image));
        // thirds of two pixels: ⅔ of a new pixel lies in one of them, and the middle one in both
        let line = images(&[1, 2]).resize_images([1, 3]).unwrap();
        assert!(first(&line).iter().zip([0.0, 0.5, 1.0]).all(|(a, b)| (a - b).abs() < 1e-15));
        for sides in [[3, 5], [7, 7], [1, 1], [8, 12]] {
            let resized = image.resize_images(sides).unwrap();
            let mean = |data: &Dataset| first(data).iter().sum::<f64>() / data.dimension() as f64;
            assert!((mean(&resized) - mean(&image)).abs() < 1e-12 && resized.input_shape == [2, sides[0], sides[1]]);
        }
        let text = image.resize_images([0, 3]).unwrap_err().to_string();
        assert!(text.contains("4x6") && text.contains("0x3"), "{text}");
    }
}
