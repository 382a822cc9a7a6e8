//! Sketches as figures: curves and points in a plane.

use super::Figure;
use super::axis::Axis;
use super::canvas::{self, Size};
use super::plot::{Cloud, Mark, Plot, Series};
use crate::report::Sketch;

/// Draws a sketch; nothing if it has no finite point.
///
/// ```
/// use limitpoint::report::Sketch;
/// use limitpoint::report::sketch_figure;
/// let sketch = Sketch::new("line", "A line", "x", "y").curve("y = x²", vec![[0.0, 0.0], [1.0, 1.0], [2.0, 4.0]]);
/// assert!(sketch_figure(&sketch).unwrap().svg.starts_with("<svg"));
/// assert!(sketch_figure(&Sketch::default()).is_none());
/// ```
pub fn sketch_figure(sketch: &Sketch) -> Option<Figure> {
    let plot = plot(sketch)?;
    // drawing into a string cannot fail; were it to, no figure is better than half of one
    Some(Figure::new(sketch.name.clone(), canvas::draw(&plot, Size::default()).ok()?))
}

fn plot(sketch: &Sketch) -> Option<Plot> {
    let place = |axis: usize, value: f64| if sketch.logarithmic[axis] { value.log10() } else { value };
    let position = |point: &[f64; 2]| [place(0, point[0]), place(1, point[1])];
    let finite = |at: &[f64; 2]| at.iter().all(|x| x.is_finite());
    let curves: Vec<Vec<[f64; 2]>> =
        sketch.curves.iter().map(|curve| curve.points.iter().map(position).filter(finite).collect()).collect();
    let dots: Vec<([f64; 2], &str)> = sketch.dots.iter().map(|dot| (position(&dot.at), dot.label.as_str())).collect();
    let clouds: Vec<Vec<[f64; 3]>> = sketch
        .clouds
        .iter()
        .map(|cloud| cloud.points.iter().map(|p| [place(0, p[0]), place(1, p[1]), p[2]]).collect())
        .collect();
    let bands: Vec<Vec<[f64; 3]>> = sketch
        .bands
        .iter()
        .map(|band| band.points.iter().map(|p| [place(0, p[0]), place(1, p[1]), place(1, p[2])]).collect())
        .collect();
    let bracketed = || bands.iter().flatten().flat_map(|p| [[p[0], p[1]], [p[0], p[2]]]).filter(finite);
    let scattered = || clouds.iter().flatten().map(|p| [p[0], p[1]]).filter(finite);
    let all = || {
        curves
            .iter()
            .flatten()
            .copied()
            .chain(dots.iter().map(|dot| dot.0).filter(finite))
            .chain(scattered())
            .chain(bracketed())
    };
    let span = |axis: usize| match sketch.window {
        Some(window) => [place(axis, window[axis][0]), place(axis, window[axis][1])],
        None => {
            let low = all().map(|at| at[axis]).fold(f64::INFINITY, f64::min);
            let high = all().map(|at| at[axis]).fold(f64::NEG_INFINITY, f64::max);
            let room = 0.04 * (high - low);
            [low - room, high + room]
        }
    };
    let window = [span(0), span(1)];
    if !window.iter().flatten().all(|x| x.is_finite()) {
        return None;
    }
    let axis = |axis: usize| {
        let [low, high] = window[axis];
        if sketch.logarithmic[axis] { Axis::logarithmic(low, high) } else { Axis::linear(low, high) }
    };
    let mut style = 0;
    let banded = sketch.bands.iter().zip(&bands).map(|(band, points)| {
        style += 1;
        let inside = |p: &&[f64; 3]| p.iter().all(|x| x.is_finite()) && p[0] >= window[0][0] && p[0] <= window[0][1];
        let mark = |p: &[f64; 3]| {
            let [low, high] = [p[1], p[2]].map(|y| y.clamp(window[1][0], window[1][1]));
            Mark { x: p[0], low, mean: high, high }
        };
        Series {
            label: band.label.clone(),
            style: Some(style - 1),
            stretches: vec![points.iter().filter(inside).map(mark).collect()],
        }
    });
    let mut series: Vec<Series> = banded.collect();
    let lines = sketch.curves.iter().zip(&curves).map(|(curve, points)| {
        let mark = |at: &[f64; 2]| Mark { x: at[0], low: at[1], mean: at[1], high: at[1] };
        let stretches = clip(points, window).iter().map(|part| part.iter().map(mark).collect()).collect();
        let style = (!curve.reference).then(|| {
            style += 1;
            style - 1
        });
        Series { label: curve.label.clone(), style, stretches }
    });
    series.extend(lines);
    let inside = |at: &[f64; 2]| (0..2).all(|axis| at[axis] >= window[axis][0] && at[axis] <= window[axis][1]);
    let clouds = sketch.clouds.iter().zip(&clouds).map(|(cloud, points)| Cloud {
        label: cloud.label.clone(),
        stars: cloud.stars,
        points: points.iter().filter(|p| inside(&[p[0], p[1]])).copied().collect(),
    });
    let clouds = clouds.collect();
    let dots = dots.into_iter().filter(|dot| inside(&dot.0)).map(|(at, label)| (at[0], at[1], label.to_owned()));
    Some(Plot {
        name: sketch.name.clone(),
        x_label: sketch.labels[0].clone(),
        y_label: sketch.labels[1].clone(),
        x: axis(0),
        y: axis(1),
        series,
        references: Vec::new(),
        zero_line: false,
        dots: dots.collect(),
        clouds,
    })
}

/// The parts of a line inside a window, cut where it crosses the border.
fn clip(points: &[[f64; 2]], window: [[f64; 2]; 2]) -> Vec<Vec<[f64; 2]>> {
    let mut parts: Vec<Vec<[f64; 2]>> = Vec::new();
    for pair in points.windows(2) {
        let Some((from, to)) = inside(pair[0], pair[1], window) else { continue };
        match parts.last_mut() {
            Some(part) if part.last() == Some(&from) => part.push(to),
            _ => parts.push(vec![from, to]),
        }
    }
    parts
}

/// The part of a segment inside a window (Liang and Barsky 1984).
fn inside(a: [f64; 2], b: [f64; 2], window: [[f64; 2]; 2]) -> Option<([f64; 2], [f64; 2])> {
    let (mut first, mut last) = (0.0f64, 1.0f64);
    for axis in 0..2 {
        let step = b[axis] - a[axis];
        for (distance, slope) in [(a[axis] - window[axis][0], -step), (window[axis][1] - a[axis], step)] {
            if slope == 0.0 {
                if distance < 0.0 {
                    return None;
                }
            } else if slope < 0.0 {
                first = first.max(distance / slope);
            } else {
                last = last.min(distance / slope);
            }
        }
    }
    let at = |share: f64| [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])];
    let from = if first == 0.0 { a } else { at(first) };
    let to = if last == 1.0 { b } else { at(last) };
    (first <= last).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: [[f64; 2]; 2] = [[0.0, 1.0], [0.0, 1.0]];

    #[test]
    fn lines_end_at_the_border_of_the_window() {
        let across = clip(&[[-1.0, 0.5], [2.0, 0.5]], WINDOW);
        assert_eq!(across, [vec![[0.0, 0.5], [1.0, 0.5]]]);
        let outside = clip(&[[2.0, 2.0], [3.0, 0.0]], WINDOW);
        assert!(outside.is_empty());
        let twice = clip(&[[0.5, 0.5], [0.5, 2.0], [0.8, 0.8]], WINDOW);
        assert_eq!(twice.len(), 2);
        assert!(twice.iter().flatten().flatten().all(|x| (0.0..=1.0).contains(x)), "{twice:?}");
        let kept = clip(&[[0.1, 0.1], [0.2, 0.3], [0.4, 0.3]], WINDOW);
        assert_eq!(kept, [vec![[0.1, 0.1], [0.2, 0.3], [0.4, 0.3]]]);
    }

    #[test]
    fn logarithmic_axes_leave_out_what_has_no_logarithm() {
        let sketch = Sketch::new("s", "s", "x", "y")
            .logarithmic(true, true)
            .curve("a", vec![[0.0, 1.0], [1.0, 1.0], [10.0, 100.0]])
            .reference("", vec![[1.0, 1.0], [10.0, 10.0]])
            .dot("here", [10.0, 10.0]);
        let plot = plot(&sketch).unwrap();
        assert_eq!(plot.series[0].stretches[0].len(), 2);
        assert_eq!((plot.series[0].style, plot.series[1].style), (Some(0), None));
        let svg = sketch_figure(&sketch).unwrap().svg;
        assert!(svg.contains("here") && svg.contains("<circle"), "{svg}");
    }

    #[test]
    fn bands_are_filled_and_drawn_along_their_upper_edge() {
        let sketch = Sketch::new("s", "s", "x", "y").band("b", vec![[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 0.0, 0.5]]);
        let plot = plot(&sketch).unwrap();
        assert_eq!((plot.series[0].style, plot.series[0].stretches[0].len()), (Some(0), 3));
        assert!(plot.series[0].stretches[0].iter().all(|mark| mark.mean == mark.high && mark.low < mark.high));
        assert!(plot.y.low <= 0.0 && plot.y.high >= 2.0);
        assert!(sketch_figure(&sketch).unwrap().svg.contains("<polygon"));
    }

    #[test]
    fn clouds_are_discs_or_stars_and_widen_the_axes() {
        let sketch = Sketch::new("s", "s", "x", "y")
            .cloud("discs", vec![[0.0, 0.0, 1.0], [4.0, 1.0, 2.0], [f64::NAN, 1.0, 1.0]], false)
            .cloud("stars", vec![[1.0, 3.0, 1.0]], true);
        let plot = plot(&sketch).unwrap();
        assert_eq!(plot.clouds.iter().map(|cloud| cloud.points.len()).collect::<Vec<_>>(), [2, 1]);
        let svg = sketch_figure(&sketch).unwrap().svg;
        // two discs and one star in the plane, one of each in the legend
        assert_eq!((svg.matches("<circle").count(), svg.matches("<polygon").count()), (3, 2), "{svg}");
    }
}
