//! A drawing as PGF: `\input` it in a LaTeX document with `\usepackage{pgf}`, and the text is set by the document.

use std::fmt::Write;

use super::drawing::{Drawing, Ink, RAISED, Shape, Side, UNIT, Words};
use crate::report::latex::latex;

impl Drawing {
    /// The drawing as a picture of PGF's basic layer; lengths are in `bp`, the points of PDF and SVG.
    ///
    /// ```
    /// use limitpoint::report::{Sketch, sketch_figure};
    /// let figure = sketch_figure(&Sketch::new("s", "s", "x", "γ of ℓ∞").curve("a", vec![[0.0, 0.0], [1.0, 1.0]])).unwrap();
    /// assert!(figure.drawing.pgf().contains(r"$\gamma{}$ of $\ell{}\infty{}$"));
    /// ```
    pub fn pgf(&self) -> String {
        let (width, height) = self.size;
        let mut out = format!(
            "% limitpoint {}; needs \\usepackage{{pgf}}\n\\begingroup\n\\begin{{pgfpicture}}\n\\pgfpathrectangle{{\\pgfpointorigin}}\
             {{\\pgfqpoint{{{width}bp}}{{{height}bp}}}}\n\\pgfusepath{{use as bounding box}}\n\\pgfsetroundcap\n\\pgfsetroundjoin\n",
            env!("CARGO_PKG_VERSION")
        );
        let place = |x: f64, y: f64| format!("{}bp}}{{{}bp", points(x), points(f64::from(height * UNIT) - y));
        let path = |corners: &[(i32, i32)]| {
            let mut path = String::new();
            for (number, (x, y)) in corners.iter().enumerate() {
                let step = if number == 0 { "move" } else { "line" };
                // writing into a string cannot fail
                let _ = writeln!(path, "\\pgfpath{step}to{{\\pgfqpoint{{{}}}}}", place(f64::from(*x), f64::from(*y)));
            }
            path
        };
        for shape in &self.shapes {
            match shape {
                Shape::Line { points: corners, width, ink } => {
                    out += &colour(ink);
                    let _ = writeln!(out, "\\pgfsetlinewidth{{{}bp}}", points(f64::from(*width)));
                    out += &path(corners);
                    out += "\\pgfusepath{stroke}\n";
                }
                Shape::Area { points: corners, ink } => {
                    out += &colour(ink);
                    out += &path(corners);
                    out += "\\pgfpathclose\n\\pgfusepath{fill}\n";
                }
                Shape::Disc { centre: (x, y), radius, ink } => {
                    out += &colour(ink);
                    let (at, radius) = (place(f64::from(*x), f64::from(*y)), points(f64::from(*radius)));
                    let _ = writeln!(out, "\\pgfpathcircle{{\\pgfqpoint{{{at}}}}}{{{radius}bp}}\n\\pgfusepath{{fill}}");
                }
                Shape::Words(words) => {
                    out += &colour(&words.ink);
                    out += &text(words, &place(words.base.0, words.base.1));
                }
            }
        }
        out + "\\end{pgfpicture}\n\\endgroup\n"
    }
}

/// Pixels as points.
fn points(pixels: f64) -> f64 {
    (100.0 * pixels / f64::from(UNIT)).round() / 100.0
}

fn colour(ink: &Ink) -> String {
    let [red, green, blue] = ink.rgb;
    let alpha = ink.alpha;
    format!(
        "\\definecolor{{limitpoint}}{{RGB}}{{{red},{green},{blue}}}\\pgfsetcolor{{limitpoint}}\\pgfsetstrokeopacity{{{alpha}}}\
         \\pgfsetfillopacity{{{alpha}}}\n"
    )
}

fn text(words: &Words, place: &str) -> String {
    let Words { side, turns, size, parts, .. } = words;
    let side = match side {
        Side::Left => "left,",
        Side::Middle => "",
        Side::Right => "right,",
    };
    // PGF turns the other way round
    let turn = if *turns == 0 { String::new() } else { format!(",rotate={}", 360 - 90 * i32::from(*turns)) };
    let size = points(*size);
    let (small, rise) = (points(RAISED.0 * words.size), points(RAISED.1 * words.size));
    let set: String = parts
        .iter()
        .map(|(part, raised)| match raised {
            true => {
                format!("\\raisebox{{{rise}bp}}{{\\fontsize{{{small}bp}}{{{small}bp}}\\selectfont {}}}", latex(part))
            }
            false => latex(part),
        })
        .collect();
    format!(
        "\\pgftext[{side}base,at={{\\pgfqpoint{{{place}}}}}{turn}]{{\\fontsize{{{size}bp}}{{{:.1}bp}}\\selectfont {set}}}\n",
        1.2 * size
    )
}
