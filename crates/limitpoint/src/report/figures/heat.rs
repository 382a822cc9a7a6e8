//! Final values against two settings of a sweep: a map of coloured cells, with its scale.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::against::scale_of;
use super::axis::Axis;
use super::canvas::{Failure, PALE, Size, axes, document, points, text, y_area};
use super::drawing::{Drawing, UNIT};
use super::name;
use super::plot::Scale;
use crate::experiments::{MapPanel, SweepMap};

/// Width of the scale with its labels, and of the scale alone, in points.
const SCALE: (u32, f64) = (74, 11.0);
/// Steps of colour on the scale.
const STEPS: usize = 64;
/// Most values with a name, across and up.
const MOST_NAMED: [usize; 2] = [8, 12];

/// Colours from low to high, even in lightness and readable without colour vision: five stops of viridis.
const STOPS: [[f64; 3]; 5] =
    [[68.0, 1.0, 84.0], [59.0, 82.0, 139.0], [33.0, 145.0, 140.0], [94.0, 201.0, 98.0], [253.0, 231.0, 37.0]];

/// The colour of a share in [0, 1].
fn colour(share: f64) -> RGBColor {
    let at = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let below = (at.floor() as usize).min(STOPS.len() - 2);
    let part = |which: usize| {
        let (from, to) = (STOPS[below][which], STOPS[below + 1][which]);
        (from + (at - below as f64) * (to - from)).round() as u8
    };
    RGBColor(part(0), part(1), part(2))
}

/// The name of the figure of a panel.
pub(super) fn name_of(map: &SweepMap, panel: &MapPanel) -> String {
    let [across, up] = &map.keys;
    let rest: String = [up, &panel.column, &panel.optimiser].iter().map(|key| name("", key)).collect();
    format!("{}{rest}", name("map", across))
}

/// Draws a panel.
pub(super) fn draw(map: &SweepMap, panel: &MapPanel, size: Size) -> Result<Drawing, Failure> {
    let scale = scale_of(&panel.column);
    let position = |value: f64| if scale == Scale::Logarithmic { value.log10() } else { value };
    let values: Vec<Vec<f64>> = panel.mean.iter().map(|row| row.iter().map(|mean| position(*mean)).collect()).collect();
    let finite = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    if !low.is_finite() {
        return Err("no cell has a number".into());
    }
    let measure = if scale == Scale::Linear { Axis::linear(low, high) } else { Axis::logarithmic(low, high) };
    let places = |axis: usize| -> Vec<f64> { (0..map.values[axis].len()).map(|place| place as f64).collect() };
    let named = |axis: usize| Axis::named(&places(axis), &map.values[axis], 0.5, MOST_NAMED[axis]);
    let (across, up) = (named(0), named(1));
    let head = 20;
    document(size.with_head(head)?, |root| {
        let (width, height) = root.dim_in_pixel();
        let left = Pos::new(HPos::Left, VPos::Center);
        let title = format!("{}, {}", panel.label, panel.optimiser);
        let title = measure.factor.as_ref().map_or(title.clone(), |factor| format!("{title} ({factor})"));
        root.draw(&Text::new(title, (points(y_area(&up) + 4.0), points(9.0)), text(left)))?;
        let area = root.margin(head * UNIT, 0, 0, SCALE.0 * UNIT);
        let [x, y] = map.keys.clone();
        let mut chart = axes(&area, (&across, x), (&up, y))?;
        for (y, row) in values.iter().enumerate() {
            for (x, value) in row.iter().enumerate() {
                let corners = [(x as f64 - 0.5, y as f64 - 0.5), (x as f64 + 0.5, y as f64 + 0.5)];
                let share = (value - measure.low) / (measure.high - measure.low);
                let fill = if value.is_finite() { colour(share) } else { PALE };
                chart.draw_series([Rectangle::new(corners, fill.filled())])?;
                if !value.is_finite() {
                    // nothing there: pale, and crossed out
                    let thin = WHITE.stroke_width(points(0.8).unsigned_abs());
                    chart.draw_series([PathElement::new(corners, thin)])?;
                }
            }
        }
        // the scale stands beside the cells and is as high as they are
        let (_, rows) = chart.plotting_area().get_pixel_range();
        let (x, thick) = (i32::try_from(width - SCALE.0 * UNIT)?, points(SCALE.1));
        let (top, bottom) = (rows.start.min(rows.end), rows.end.max(rows.start).min(i32::try_from(height)?));
        let at = |share: f64| bottom - (share * f64::from(bottom - top)).round() as i32;
        for step in 0..STEPS {
            let (from, to) = (step as f64 / STEPS as f64, (step + 1) as f64 / STEPS as f64);
            let fill = colour(0.5 * (from + to)).filled();
            root.draw(&Rectangle::new([(x, at(to)), (x + thick, at(from))], fill))?;
        }
        let firm = BLACK.stroke_width(points(0.5).unsigned_abs());
        for (value, label) in &measure.ticks {
            let y = at(((value - measure.low) / (measure.high - measure.low)).clamp(0.0, 1.0));
            root.draw(&PathElement::new([(x + thick, y), (x + thick + points(3.0), y)], firm))?;
            root.draw(&Text::new(label.clone(), (x + thick + points(5.0), y), text(left)))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_run_from_dark_to_light() {
        let lightness = |share: f64| {
            let RGBColor(red, green, blue) = colour(share);
            0.2126 * f64::from(red) + 0.7152 * f64::from(green) + 0.0722 * f64::from(blue)
        };
        let all: Vec<f64> = (0..=20).map(|step| lightness(f64::from(step) / 20.0)).collect();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        assert_eq!((colour(-1.0), colour(2.0)), (RGBColor(68, 1, 84), RGBColor(253, 231, 37)));
    }
}
