//! A drawing as SVG: for pages, and for LaTeX by way of Inkscape.

use std::fmt::Write;

use super::drawing::{Drawing, Ink, RAISED, Shape, Side, UNIT, Words};
use crate::report::escape;

/// The type, first what is there.
const TYPE: &str = "Latin Modern Roman, STIX Two Text, Times New Roman, serif";

impl Drawing {
    /// The drawing as an SVG document; the same drawing gives the same bytes.
    pub fn svg(&self) -> String {
        let (width, height) = self.size;
        let mut out = format!(
            "<svg width=\"{width}pt\" height=\"{height}pt\" viewBox=\"0 0 {} {}\" xmlns=\"http://www.w3.org/2000/svg\">\n",
            width * UNIT,
            height * UNIT
        );
        for shape in &self.shapes {
            // writing into a string cannot fail
            let _ = match shape {
                Shape::Line { points, width, ink } => {
                    let (colour, opacity) = paint(ink);
                    let points = list(points);
                    writeln!(
                        out,
                        "<polyline fill=\"none\" opacity=\"{opacity}\" stroke=\"{colour}\" stroke-width=\"{width}\" points=\"{points}\"/>"
                    )
                }
                Shape::Area { points, ink } => {
                    let (colour, opacity) = paint(ink);
                    writeln!(out, "<polygon opacity=\"{opacity}\" fill=\"{colour}\" points=\"{}\"/>", list(points))
                }
                Shape::Disc { centre, radius, ink } => {
                    let (colour, opacity) = paint(ink);
                    let (x, y) = centre;
                    writeln!(
                        out,
                        "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" opacity=\"{opacity}\" fill=\"{colour}\"/>"
                    )
                }
                Shape::Words(words) => writeln!(out, "{}", text(words)),
            };
        }
        out + "</svg>\n"
    }
}

fn paint(ink: &Ink) -> (String, f64) {
    let [red, green, blue] = ink.rgb;
    (format!("#{red:02X}{green:02X}{blue:02X}"), ink.alpha)
}

fn list(points: &[(i32, i32)]) -> String {
    points.iter().map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" ")
}

fn text(words: &Words) -> String {
    let Words { base: (x, y), side, turns, size, ink, parts } = words;
    let anchor = match side {
        Side::Left => "start",
        Side::Middle => "middle",
        Side::Right => "end",
    };
    let (colour, opacity) = paint(ink);
    let (x, y) = (tenths(*x), tenths(*y));
    let turn = if *turns == 0 {
        String::new()
    } else {
        format!(" transform=\"rotate({}, {x}, {y})\"", 90 * u32::from(*turns))
    };
    let (small, rise) = (tenths(RAISED.0 * size), tenths(RAISED.1 * size));
    let mut inner = String::new();
    for (place, (part, raised)) in parts.iter().enumerate() {
        let part = escape(part);
        inner += &match (raised, place) {
            (true, _) => format!("<tspan dy=\"-{rise}\" font-size=\"{small}\">{part}</tspan>"),
            (false, 0) => part,
            // back on the line
            (false, _) => format!("<tspan dy=\"{rise}\">{part}</tspan>"),
        };
    }
    format!(
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-family=\"{TYPE}\" font-size=\"{}\" opacity=\"{opacity}\" fill=\"{colour}\"{turn}>\n{inner}\n</text>",
        tenths(*size)
    )
}

/// A tenth of a pixel is finer than anybody sees.
fn tenths(value: f64) -> f64 {
    (10.0 * value).round() / 10.0
}
