//! Final values against a setting of a sweep: a line per optimiser, shaded over seeds.

use super::axis::Axis;
use super::name;
use super::plot::{Mark, Plot, Scale, Series};
use crate::experiments::{Sweep, SweepLine, SweepPanel};

/// Most values with a tick each.
const MOST_NAMED: usize = 8;

/// How the values of a quantity are drawn.
pub(super) fn scale_of(column: &str) -> Scale {
    match column {
        "log10_loss" => Scale::Decades,
        column if column.starts_with("tau.") || column == "certificate.tau" => Scale::Logarithmic,
        _ => Scale::Linear,
    }
}

/// The plot of a panel; none if no optimiser has a finite number.
pub(super) fn plot(sweep: &Sweep, panel: &SweepPanel) -> Option<Plot> {
    let scale = scale_of(&panel.column);
    let places = positions(sweep);
    let series = panel.lines.iter().enumerate().map(|(style, line)| Series {
        label: line.optimiser.clone(),
        style: Some(style),
        stretches: stretches(line, &places, scale),
    });
    let series = series.filter(|series| !series.stretches.is_empty()).collect();
    let (first, last) = (places.first().copied()?, places.last().copied()?);
    let numeric = !sweep.places.is_empty();
    let room = if numeric { 0.04 * (last - first) } else { 0.5 };
    let axis = if !numeric || places.len() <= MOST_NAMED {
        Axis::named(&places, &sweep.values, room, MOST_NAMED)
    } else if sweep.logarithmic {
        Axis::logarithmic(first - room, last + room)
    } else {
        Axis::linear(first - room, last + room)
    };
    let name = format!("{}-{}", name("against", &sweep.key), name("", &panel.column).trim_start_matches('-'));
    Plot::of_series(name, (sweep.key.clone(), axis), (panel.label.clone(), scale), series, Vec::new())
}

/// Where the values are: as numbers, as their logarithms, or one after the other.
fn positions(sweep: &Sweep) -> Vec<f64> {
    match (sweep.places.is_empty(), sweep.logarithmic) {
        (true, _) => (0..sweep.values.len()).map(|place| place as f64).collect(),
        (false, true) => sweep.places.iter().map(|place| place.log10()).collect(),
        (false, false) => sweep.places.clone(),
    }
}

fn stretches(line: &SweepLine, places: &[f64], scale: Scale) -> Vec<Vec<Mark>> {
    let position = |value: f64| if scale == Scale::Logarithmic { value.log10() } else { value };
    let mut stretches = vec![Vec::new()];
    for (place, &x) in places.iter().enumerate() {
        let [low, mean, high] = [&line.low, &line.mean, &line.high].map(|values| position(values[place]));
        if !mean.is_finite() {
            stretches.push(Vec::new());
        } else if let Some(stretch) = stretches.last_mut() {
            let low = if low.is_finite() { low } else { mean };
            stretch.push(Mark { x, low, mean, high: high.max(mean) });
        }
    }
    stretches.retain(|stretch| !stretch.is_empty());
    stretches
}
