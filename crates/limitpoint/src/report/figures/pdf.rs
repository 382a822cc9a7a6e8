//! A drawing as PDF: vectors, text that can be selected and searched, the typeface inside.
//!
//! A figure is one page of its own size (ISO 32000-1). Colours that cover only in part are graphics states, the typeface
//! is a composite font whose character codes are its glyphs (9.7.4), and a `ToUnicode` map says which characters they
//! show (9.10.3). Nothing in the file tells when or where it was made: the same drawing gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::drawing::{Drawing, Ink, RAISED, Shape, Side, UNIT, Words};
use super::typeface;

impl Drawing {
    /// The drawing as a PDF document.
    ///
    /// ```
    /// use limitpoint::report::{Sketch, sketch_figure};
    /// let figure = sketch_figure(&Sketch::new("s", "s", "x", "γ of ℓ∞").curve("a", vec![[0.0, 0.0], [1.0, 1.0]])).unwrap();
    /// let pdf = figure.drawing.pdf();
    /// assert!(pdf.starts_with(b"%PDF-1.4") && pdf.ends_with(b"%%EOF\n"));
    /// ```
    pub fn pdf(&self) -> Vec<u8> {
        let mut page = Page {
            height: f64::from(self.size.1 * UNIT),
            out: String::new(),
            covers: BTreeSet::new(),
            glyphs: BTreeMap::new(),
        };
        // one unit is a pixel
        let scale = 1.0 / f64::from(UNIT);
        let _ = writeln!(page.out, "{scale} 0 0 {scale} 0 0 cm 1 J 1 j");
        self.shapes.iter().for_each(|shape| page.shape(shape));
        page.document(self.size)
    }
}

/// The page while it is written; what it needs is collected on the way.
struct Page {
    /// In pixels; PDF counts from below.
    height: f64,
    out: String,
    /// Shares of covering, in thousandths.
    covers: BTreeSet<u32>,
    /// Glyphs and what they show.
    glyphs: BTreeMap<u16, char>,
}

impl Page {
    fn at(&self, (x, y): (i32, i32)) -> String {
        format!("{x} {}", self.height - f64::from(y))
    }

    fn path(&mut self, points: &[(i32, i32)]) {
        for (place, point) in points.iter().enumerate() {
            let step = if place == 0 { 'm' } else { 'l' };
            let at = self.at(*point);
            let _ = writeln!(self.out, "{at} {step}");
        }
    }

    /// Chooses a colour for what follows: `stroke` or fill.
    fn ink(&mut self, ink: &Ink, stroke: bool) {
        let cover = (1000.0 * ink.alpha).round() as u32;
        self.covers.insert(cover);
        let [red, green, blue] = ink.rgb.map(|part| (f64::from(part) / 0.255).round() / 1000.0);
        let operator = if stroke { "RG" } else { "rg" };
        let _ = writeln!(self.out, "/C{cover} gs {red} {green} {blue} {operator}");
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Line { points, width, ink } => {
                self.ink(ink, true);
                let _ = writeln!(self.out, "{width} w");
                self.path(points);
                self.out += "S\n";
            }
            Shape::Area { points, ink } => {
                self.ink(ink, false);
                self.path(points);
                self.out += "h f\n";
            }
            Shape::Disc { centre, radius, ink } => {
                self.ink(ink, false);
                self.disc((f64::from(centre.0), self.height - f64::from(centre.1)), f64::from(*radius));
            }
            Shape::Words(words) => self.words(words),
        }
    }

    /// Four Bézier arcs; 0.5523 is (4/3)(√2 − 1), with which each lies within 0.03 % of the circle.
    fn disc(&mut self, (x, y): (f64, f64), r: f64) {
        let k = 0.5523 * r;
        let _ = writeln!(self.out, "{} {y} m", x + r);
        let quarter = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (1.0, 0.0)];
        for pair in quarter.windows(2) {
            let ((ax, ay), (bx, by)) = (pair[0], pair[1]);
            let _ = writeln!(
                self.out,
                "{:.2} {:.2} {:.2} {:.2} {:.2} {:.2} c",
                x + r * ax + k * bx,
                y + r * ay + k * by,
                x + r * bx + k * ax,
                y + r * by + k * ay,
                x + r * bx,
                y + r * by
            );
        }
        self.out += "f\n";
    }

    fn words(&mut self, words: &Words) {
        let Words { base: (x, y), side, turns, size, ink, parts } = words;
        let scale = |raised: bool| if raised { RAISED.0 * size } else { *size };
        let long = |(part, raised): &(String, bool)| {
            let thousandths: u32 = part.chars().map(|letter| u32::from(typeface::width(typeface::glyph(letter)))).sum();
            scale(*raised) * f64::from(thousandths) / 1000.0
        };
        let back = match side {
            Side::Left => 0.0,
            Side::Middle => 0.5,
            Side::Right => 1.0,
        } * parts.iter().map(long).sum::<f64>();
        // the direction of reading; a turn is clockwise
        let (right, up) = [(1, 0), (0, -1), (-1, 0), (0, 1)][usize::from(*turns % 4)];
        let (x, y) = (x - back * f64::from(right), self.height - y - back * f64::from(up));
        self.ink(ink, false);
        let _ = writeln!(self.out, "BT {right} {up} {} {right} {x:.2} {y:.2} Tm", -up);
        for (part, raised) in parts {
            let rise = if *raised { RAISED.1 * size } else { 0.0 };
            let mut codes = String::new();
            for letter in part.chars() {
                let glyph = typeface::glyph(letter);
                if glyph != 0 {
                    self.glyphs.insert(glyph, letter);
                }
                codes += &format!("{glyph:04X}");
            }
            let _ = writeln!(self.out, "/F {:.2} Tf {rise:.2} Ts <{codes}> Tj", scale(*raised));
        }
        self.out += "ET\n";
    }

    fn document(&self, (width, height): (u32, u32)) -> Vec<u8> {
        let states: String = self
            .covers
            .iter()
            .map(|cover| format!("/C{cover} << /CA {0} /ca {0} >> ", f64::from(*cover) / 1000.0))
            .collect();
        let widths: String =
            self.glyphs.keys().map(|glyph| format!("{glyph} [{}] ", typeface::width(*glyph))).collect();
        let [ascent, descent, capitals] = typeface::HEIGHTS;
        let [left, lower, right, upper] = typeface::BOX;
        let name = typeface::NAME;
        let plain = |text: String| (text, Vec::new());
        let objects = [
            plain("<< /Type /Catalog /Pages 2 0 R >>".into()),
            plain("<< /Type /Pages /Kids [3 0 R] /Count 1 >>".into()),
            plain(format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R /Resources << /ExtGState << \
                 {states}>> /Font << /F 5 0 R >> >> >>"
            )),
            stream("", self.out.as_bytes()),
            plain(format!(
                "<< /Type /Font /Subtype /Type0 /BaseFont /{name} /Encoding /Identity-H /DescendantFonts [6 0 R] \
                 /ToUnicode 9 0 R >>"
            )),
            plain(format!(
                "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{name} /CIDSystemInfo << /Registry (Adobe) /Ordering \
                 (Identity) /Supplement 0 >> /FontDescriptor 7 0 R /CIDToGIDMap /Identity /DW 500 /W [{widths}] >>"
            )),
            plain(format!(
                "<< /Type /FontDescriptor /FontName /{name} /Flags 4 /FontBBox [{left} {lower} {right} {upper}] /ItalicAngle 0 \
                 /Ascent {ascent} /Descent {descent} /CapHeight {capitals} /StemV 80 /FontFile2 8 0 R >>"
            )),
            stream(&format!("/Length1 {} ", typeface::FILE.len()), typeface::FILE),
            stream("", self.to_unicode().as_bytes()),
            plain(format!("<< /Producer (limitpoint {}) >>", env!("CARGO_PKG_VERSION"))),
        ];
        // four bytes above 127 say that the file is not text
        let mut out = b"%PDF-1.4\n%\xE2\xE3\xCF\xD3\n".to_vec();
        let mut places = Vec::new();
        for (number, (dictionary, data)) in objects.iter().enumerate() {
            places.push(out.len());
            out.extend(format!("{} 0 obj\n{dictionary}\n", number + 1).bytes());
            if !data.is_empty() {
                out.extend(b"stream\n");
                out.extend(data);
                out.extend(b"\nendstream\n");
            }
            out.extend(b"endobj\n");
        }
        let table = out.len();
        let entries: String = places.iter().map(|place| format!("{place:010} 00000 n \n")).collect();
        let count = objects.len() + 1;
        out.extend(
            format!(
                "xref\n0 {count}\n0000000000 65535 f \n{entries}trailer\n<< /Size {count} /Root 1 0 R /Info 10 0 R >>\n\
                 startxref\n{table}\n%%EOF\n"
            )
            .bytes(),
        );
        out
    }

    /// Which characters the glyphs show, a hundred at a time.
    fn to_unicode(&self) -> String {
        let mut out =
            "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CIDSystemInfo << /Registry (Adobe) \
                       /Ordering (UCS) /Supplement 0 >> def\n/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n\
                       1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n"
                .to_owned();
        let pairs: Vec<(&u16, &char)> = self.glyphs.iter().collect();
        for some in pairs.chunks(100) {
            let _ = writeln!(out, "{} beginbfchar", some.len());
            for (glyph, letter) in some {
                // the typeface has nothing beyond the first plane
                let _ = writeln!(out, "<{glyph:04X}> <{:04X}>", u32::from(**letter));
            }
            out += "endbfchar\n";
        }
        out + "endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n"
    }
}

/// A stream, packed; what is written into memory does not fail, and were it to, it stays as it is.
fn stream(more: &str, data: &[u8]) -> (String, Vec<u8>) {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    match encoder.write_all(data).and_then(|()| encoder.finish()) {
        Ok(packed) => (format!("<< {more}/Filter /FlateDecode /Length {} >>", packed.len()), packed),
        Err(_) => (format!("<< {more}/Length {} >>", data.len()), data.to_vec()),
    }
}
