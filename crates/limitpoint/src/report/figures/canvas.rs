//! Draws a plot with plotters, on a canvas of [`UNIT`] pixels per point.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::drawing::{Drawing, PLOTTERS_FONT_FACTOR, Recorder, SUPERSCRIPTS, UNIT};
use super::plot::{Mark, Plot};

/// Width of a figure in points.
pub(super) const WIDTH: u32 = 340;
/// Height of the part with the axes in points; the legend adds to it.
const HEIGHT: u32 = 225;
/// Height of a line of the legend in points.
pub(super) const LEGEND_LINE: u32 = 14;
/// Size of the type in points.
const TYPE_SIZE: f64 = 10.0;
/// Least height of the part with the axes in points.
const LEAST_HEIGHT: u32 = 70;
/// Mean width of a letter relative to the size of the type, on the safe side.
const LETTER: f64 = 0.52;

/// Colours of Okabe and Ito, in an order that keeps neighbours apart in lightness too.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
/// Dash and gap in tenths of a point; none is solid. Five patterns and seven colours make 35 styles.
const DASHES: [Option<(u32, u32)>; 5] = [None, Some((50, 22)), Some((16, 18)), Some((100, 26)), Some((28, 40))];
/// Lines that are not data.
pub(super) const GREY: RGBColor = RGBColor(110, 110, 110);
/// The line at zero.
pub(super) const PALE: RGBColor = RGBColor(190, 190, 190);

/// Positions become pixels; the axis brings its own ticks and labels.
impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.low) / (self.high - self.low);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.iter().map(|(at, _)| *at).collect() }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.ticks.iter().find(|(at, _)| at == value).map_or_else(String::new, |(_, label)| label.clone())
    }
}

pub(super) type Failure = Box<dyn std::error::Error>;
pub(super) type Area<'a> = DrawingArea<Recorder<'a>, Shift>;

/// Width of a figure in points, and its height with the legend; without one it is as high as it needs to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub width: u32,
    pub height: Option<u32>,
}

impl Default for Size {
    fn default() -> Self {
        Self { width: WIDTH, height: None }
    }
}

impl Size {
    /// The whole size for a legend of this height; an error where it leaves no room for the axes.
    pub fn with_head(self, head: u32) -> Result<(u32, u32), Failure> {
        let height = self.height.unwrap_or(HEIGHT + head);
        match height.checked_sub(head) {
            Some(rest) if rest >= LEAST_HEIGHT => Ok((self.width, height)),
            _ => Err(format!(
                "the legend takes {head} of its {height} points; it needs a height of {} or more",
                head + LEAST_HEIGHT
            )
            .into()),
        }
    }
}

/// A plot as shapes.
pub(super) fn draw(plot: &Plot, size: Size) -> Result<Drawing, Failure> {
    let legend = legend(plot, size.width);
    let head = LEGEND_LINE * legend.len() as u32 + 6;
    document(size.with_head(head)?, |root| {
        draw_legend(root, &legend)?;
        draw_plot(&root.margin(head * UNIT, 0, 0, 0), plot)
    })
}

/// The drawing of this many points that `paint` fills.
pub(super) fn document(size: (u32, u32), paint: impl FnOnce(&Area) -> Result<(), Failure>) -> Result<Drawing, Failure> {
    let mut drawing = Drawing::new(size);
    {
        let root = Recorder(&mut drawing).into_drawing_area();
        paint(&root)?;
        root.present()?;
    }
    Ok(drawing)
}

pub(super) fn text(anchor: Pos) -> TextStyle<'static> {
    let size = TYPE_SIZE * f64::from(UNIT) * PLOTTERS_FONT_FACTOR;
    TextStyle::from(("serif", size).into_font()).color(&BLACK).pos(anchor)
}

/// Estimated width of a text in points.
pub(super) fn width(text: &str) -> f64 {
    LETTER * TYPE_SIZE * text.chars().count() as f64
}

pub(super) fn points(size: f64) -> i32 {
    (size * f64::from(UNIT)).round() as i32
}

/// A line of the figure: colour, dashes and width in points.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pen {
    pub(super) colour: RGBColor,
    dashes: Option<(u32, u32)>,
    width: f64,
}

impl Pen {
    /// The pen of a series; a series without a style is a line of reference.
    fn of_series(style: Option<usize>) -> Self {
        style.map_or_else(Self::reference, Self::of_group)
    }

    pub(super) fn of_group(style: usize) -> Self {
        let dashes = DASHES[(style + style / (COLOURS.len() * DASHES.len())) % DASHES.len()];
        Self { colour: COLOURS[style % COLOURS.len()], dashes, width: 1.2 }
    }

    fn reference() -> Self {
        Self { colour: GREY, dashes: Some((30, 20)), width: 0.8 }
    }

    pub(super) fn style(self) -> ShapeStyle {
        self.colour.stroke_width(points(self.width).unsigned_abs())
    }
}

/// What an entry of the legend shows beside its words.
#[derive(Debug, Clone, Copy)]
enum Sample {
    Line(Pen),
    Dot(RGBColor),
    Star(RGBColor),
}

/// One entry of the legend: position of its left end in points, sample and words.
type Entry = (f64, Sample, String);

/// The colour of the marked point at a place, counted from the last so that it differs from the first lines.
fn dot_colour(place: usize) -> RGBColor {
    COLOURS[COLOURS.len() - 1 - place % COLOURS.len()]
}

/// Radius of a marked point, in points.
const DOT: f64 = 2.6;

/// A star of five rays around a pixel, its outer radius in points.
fn star(centre: (i32, i32), radius: f64, colour: RGBColor) -> Polygon<(i32, i32)> {
    let corner = |k: u32| {
        let angle = f64::from(k) * std::f64::consts::PI / 5.0;
        let radius = if k.is_multiple_of(2) { radius } else { 0.42 * radius };
        (centre.0 + points(radius * angle.sin()), centre.1 - points(radius * angle.cos()))
    };
    Polygon::new((0..10).map(corner).collect::<Vec<_>>(), colour.filled())
}

/// Stars look smaller than discs of the same radius.
const STAR: f64 = 1.7;

/// The legend in lines that fit the width, above the axes where it covers no data.
fn legend(plot: &Plot, width_of_all: u32) -> Vec<Vec<Entry>> {
    let named = plot.series.iter().filter(|series| !series.label.is_empty());
    let groups = named.map(|series| (Sample::Line(Pen::of_series(series.style)), series.label.clone()));
    let references = plot.references.iter().map(|(_, label)| (Sample::Line(Pen::reference()), label.clone()));
    let dots = plot.dots.iter().enumerate().map(|(place, dot)| (Sample::Dot(dot_colour(place)), dot.2.clone()));
    let mut lines: Vec<Vec<Entry>> = Vec::new();
    let (left, mut at) = (y_area(&plot.y) + 4.0, f64::INFINITY);
    let clouds = plot.clouds.iter().enumerate().map(|(place, cloud)| {
        let colour = COLOURS[place % COLOURS.len()];
        (if cloud.stars { Sample::Star(colour) } else { Sample::Dot(colour) }, cloud.label.clone())
    });
    for (pen, label) in groups.chain(references).chain(dots).chain(clouds) {
        // what is wider than the figure ends with an ellipsis
        let room = ((f64::from(width_of_all) - left - 28.0) / (LETTER * TYPE_SIZE)).max(4.0) as usize;
        let cut = label.chars().count() > room;
        let label = if cut { label.chars().take(room - 1).chain(['…']).collect() } else { label };
        let advance = 26.0 + width(&label) + 12.0;
        if at + advance > f64::from(width_of_all) {
            lines.push(Vec::new());
            at = left;
        }
        if let Some(line) = lines.last_mut() {
            line.push((at, pen, label));
        }
        at += advance;
    }
    lines
}

fn draw_legend(root: &Area, lines: &[Vec<Entry>]) -> Result<(), Failure> {
    for (number, line) in lines.iter().enumerate() {
        let y = points(f64::from(LEGEND_LINE) * (number as f64 + 0.5) + 2.0);
        for (at, shown, label) in line {
            let sample = [(points(*at), y), (points(at + 21.0), y)];
            match shown {
                Sample::Dot(colour) => root.draw(&Circle::new((points(at + 10.5), y), points(DOT), colour.filled()))?,
                Sample::Star(colour) => root.draw(&star((points(at + 10.5), y), STAR * DOT, *colour))?,
                Sample::Line(pen) => match pen.dashes {
                    None => root.draw(&PathElement::new(sample, pen.style()))?,
                    Some((dash, gap)) => root.draw(&DashedPathElement::new(sample, dash, gap, pen.style()))?,
                },
            }
            let words = (points(at + 26.0), y);
            root.draw(&Text::new(label.clone(), words, text(Pos::new(HPos::Left, VPos::Center))))?;
        }
    }
    Ok(())
}

/// Width of what stands left of the vertical axis, in points.
pub(super) fn y_area(axis: &Axis) -> f64 {
    let longest = axis.ticks.iter().map(|(_, label)| label_width(label)).fold(0.0, f64::max);
    longest + 29.0
}

/// Raised digits are narrow.
fn label_width(label: &str) -> f64 {
    let raised = label.chars().filter(|c| SUPERSCRIPTS.contains(*c)).count();
    width(label) - 0.15 * TYPE_SIZE * raised as f64
}

/// The axes of an area with what they are of, and room for their labels.
pub(super) fn axes<'a, 'b>(
    area: &Area<'b>,
    (x, x_words): (&Axis, String),
    (y, y_words): (&Axis, String),
) -> Result<ChartContext<'a, Recorder<'b>, Cartesian2d<Axis, Axis>>, Failure> {
    let mut chart = ChartBuilder::on(area)
        .margin_left(4 * UNIT)
        .margin_right(10 * UNIT)
        .margin_top(4 * UNIT)
        .x_label_area_size(31 * UNIT)
        .y_label_area_size(points(y_area(y)))
        .build_cartesian_2d(x.clone(), y.clone())?;
    let centre = Pos::new(HPos::Center, VPos::Center);
    chart
        .configure_mesh()
        .disable_mesh()
        .axis_style(BLACK.stroke_width(points(0.6).unsigned_abs()))
        .set_tick_mark_size(LabelAreaPosition::Left, points(3.5))
        .set_tick_mark_size(LabelAreaPosition::Bottom, points(3.5))
        .label_style(text(centre))
        .axis_desc_style(text(centre))
        .x_desc(x_words)
        .y_desc(y_words)
        .draw()?;
    Ok(chart)
}

fn draw_plot(area: &Area, plot: &Plot) -> Result<(), Failure> {
    let describe = |words: &str, axis: &Axis| match &axis.factor {
        Some(factor) => format!("{words} ({factor})"),
        None => words.to_owned(),
    };
    let (x, y) = (describe(&plot.x_label, &plot.x), describe(&plot.y_label, &plot.y));
    let mut chart = axes(area, (&plot.x, x), (&plot.y, y))?;
    for series in &plot.series {
        let colour = Pen::of_series(series.style).colour;
        for stretch in series.stretches.iter().filter(|stretch| stretch.iter().any(|mark| mark.high > mark.low)) {
            let there = stretch.iter().map(|mark| (mark.x, mark.high));
            let back = stretch.iter().rev().map(|mark| (mark.x, mark.low));
            chart.draw_series([Polygon::new(there.chain(back).collect::<Vec<_>>(), colour.mix(0.18))])?;
        }
    }
    let mut line = |marks: Vec<(f64, f64)>, pen: Pen| -> Result<(), Failure> {
        match pen.dashes {
            None => chart.draw_series(LineSeries::new(marks, pen.style())).map(|_| ())?,
            Some((dash, gap)) => {
                chart.draw_series(DashedLineSeries::new(marks, dash, gap, pen.style())).map(|_| ())?;
            }
        }
        Ok(())
    };
    let across = |at: f64| vec![(plot.x.low, at), (plot.x.high, at)];
    if plot.zero_line {
        line(across(0.0), Pen { colour: PALE, dashes: None, width: 0.5 })?;
    }
    for (at, _) in &plot.references {
        line(across(*at), Pen::reference())?;
    }
    for series in &plot.series {
        for stretch in &series.stretches {
            line(path(stretch, plot), Pen::of_series(series.style))?;
        }
    }
    let circles = plot.dots.iter().enumerate();
    chart.draw_series(
        circles.map(|(place, (x, y, _))| Circle::new((*x, *y), points(DOT), dot_colour(place).filled())),
    )?;
    let corner = |x: f64, y: f64| chart.backend_coord(&(x, y));
    let thin = BLACK.stroke_width(points(0.4).unsigned_abs());
    let (down, left) = (points(2.0), points(2.0));
    let base = area.get_base_pixel();
    for (place, cloud) in plot.clouds.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        for [x, y, size] in &cloud.points {
            let at = corner(*x, *y);
            let at = (at.0 - base.0, at.1 - base.1);
            if cloud.stars {
                area.draw(&star(at, STAR * DOT * size, colour))?;
            } else {
                area.draw(&Circle::new(at, points(DOT * size), colour.mix(0.75).filled()))?;
            }
        }
    }
    for at in &plot.x.minor {
        let (x, y) = corner(*at, plot.y.low);
        area.draw(&PathElement::new([(x - base.0, y - base.1), (x - base.0, y - base.1 + down)], thin))?;
    }
    for at in &plot.y.minor {
        let (x, y) = corner(plot.x.low, *at);
        area.draw(&PathElement::new([(x - base.0, y - base.1), (x - base.0 - left, y - base.1)], thin))?;
    }
    Ok(())
}

/// The line of the means; a single mark becomes a short dash, since a line needs two ends.
fn path(stretch: &[Mark], plot: &Plot) -> Vec<(f64, f64)> {
    match stretch {
        [only] => {
            let half = 0.005 * (plot.x.high - plot.x.low);
            vec![((only.x - half).max(plot.x.low), only.mean), ((only.x + half).min(plot.x.high), only.mean)]
        }
        marks => marks.iter().map(|mark| (mark.x, mark.mean)).collect(),
    }
}
