//! What a figure consists of: lines, areas, discs and words, before a file format is chosen.
//!
//! Plotters lays out axes and draws through [`Recorder`], which keeps the shapes; [`super::svg`], [`super::pdf`] and
//! [`super::pgf`] write them. So a figure is the same in every format.

use std::convert::Infallible;

use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontTransform,
};

/// Pixels per point: plotters counts in whole pixels, too coarse for thin lines.
pub(super) const UNIT: u32 = 10;
/// What plotters multiplies the size of a type by.
pub(super) const PLOTTERS_FONT_FACTOR: f64 = 1.24;
/// Height of a small x relative to the size of the type, of STIX Two and about that of Latin Modern.
const X_HEIGHT: f64 = 0.473;
/// Size of raised digits, and how far they are raised, relative to the size of the type.
pub(super) const RAISED: (f64, f64) = (0.7, 0.36);

/// A colour and how much it covers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ink {
    pub rgb: [u8; 3],
    pub alpha: f64,
}

/// Where words stand relative to their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Middle,
    Right,
}

/// Words at a place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Words {
    /// The left end, the middle or the right end of the base line.
    pub base: (f64, f64),
    pub side: Side,
    /// Quarter turns, clockwise.
    pub turns: u8,
    /// Size of the type, in pixels.
    pub size: f64,
    pub ink: Ink,
    /// Parts of the text, and whether each is raised as an exponent.
    pub parts: Vec<(String, bool)>,
}

/// One shape; positions and widths are in pixels, from the upper left corner.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Line { points: Vec<(i32, i32)>, width: u32, ink: Ink },
    Area { points: Vec<(i32, i32)>, ink: Ink },
    Disc { centre: (i32, i32), radius: u32, ink: Ink },
    Words(Words),
}

/// A finished figure, as shapes; it can be written as SVG, PDF and PGF.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// Width and height in points.
    pub(super) size: (u32, u32),
    pub(super) shapes: Vec<Shape>,
}

impl Drawing {
    pub(super) fn new(size: (u32, u32)) -> Self {
        Self { size, shapes: Vec::new() }
    }
}

/// Takes down what plotters draws.
pub(super) struct Recorder<'a>(pub &'a mut Drawing);

type Outcome = Result<(), DrawingErrorKind<Infallible>>;

fn ink(colour: BackendColor) -> Ink {
    let (red, green, blue) = colour.rgb;
    Ink { rgb: [red, green, blue], alpha: colour.alpha }
}

impl Recorder<'_> {
    fn push(&mut self, colour: BackendColor, shape: impl FnOnce(Ink) -> Shape) -> Outcome {
        if colour.alpha > 0.0 {
            self.0.shapes.push(shape(ink(colour)));
        }
        Ok(())
    }
}

impl DrawingBackend for Recorder<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.0.size.0 * UNIT, self.0.size.1 * UNIT)
    }

    fn ensure_prepared(&mut self) -> Outcome {
        Ok(())
    }

    fn present(&mut self) -> Outcome {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, colour: BackendColor) -> Outcome {
        let points = vec![(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)];
        self.push(colour, |ink| Shape::Area { points, ink })
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Outcome {
        let width = style.stroke_width();
        self.push(style.color(), |ink| Shape::Line { points: vec![from, to], width, ink })
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Outcome {
        let mut points = vec![(left, top), (right, top), (right, bottom), (left, bottom)];
        let width = style.stroke_width();
        self.push(style.color(), |ink| {
            if fill {
                return Shape::Area { points, ink };
            }
            points.push((left, top));
            Shape::Line { points, width, ink }
        })
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Outcome {
        let (points, width) = (path.into_iter().collect(), style.stroke_width());
        self.push(style.color(), |ink| Shape::Line { points, width, ink })
    }

    fn draw_circle<S: BackendStyle>(&mut self, centre: BackendCoord, radius: u32, style: &S, _fill: bool) -> Outcome {
        self.push(style.color(), |ink| Shape::Disc { centre, radius, ink })
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Outcome {
        let points = path.into_iter().collect();
        self.push(style.color(), |ink| Shape::Area { points, ink })
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, (x, y): BackendCoord) -> Outcome {
        let size = style.size() / PLOTTERS_FONT_FACTOR;
        let below = size
            * match style.anchor().v_pos {
                VPos::Top => 0.76,
                VPos::Center => 0.5 * X_HEIGHT,
                VPos::Bottom => -0.5 * X_HEIGHT,
            };
        // where a step down the page leads once the words are turned
        let (turns, down) = match style.transform() {
            FontTransform::None => (0, (0.0, 1.0)),
            FontTransform::Rotate90 => (1, (-1.0, 0.0)),
            FontTransform::Rotate180 => (2, (0.0, -1.0)),
            FontTransform::Rotate270 => (3, (1.0, 0.0)),
        };
        let side = match style.anchor().h_pos {
            HPos::Left => Side::Left,
            HPos::Center => Side::Middle,
            HPos::Right => Side::Right,
        };
        let base = (f64::from(x) + below * down.0, f64::from(y) + below * down.1);
        self.push(style.color(), |ink| Shape::Words(Words { base, side, turns, size, ink, parts: parts(text) }))
    }
}

/// Raised digits and minus sign, in order.
pub(super) const SUPERSCRIPTS: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻";

/// Unicode's raised digits become raised parts: typefaces rarely have all of them, and digits from two in one exponent
/// look wrong.
///
/// ```text
/// (10⁻⁵)  becomes  (10, then −5 raised, then )
/// ```
fn parts(text: &str) -> Vec<(String, bool)> {
    let mut parts: Vec<(String, bool)> = Vec::new();
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        let digit = SUPERSCRIPTS.chars().position(|known| known == letter);
        let shown = digit.and_then(|place| "0123456789−".chars().nth(place)).unwrap_or(letter);
        match parts.last_mut() {
            Some((part, raised)) if *raised == digit.is_some() => part.push(shown),
            _ => parts.push((shown.to_string(), digit.is_some())),
        }
    }
    parts
}
