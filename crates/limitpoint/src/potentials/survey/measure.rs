//! What can be measured of a scalar potential at finite scales.

use super::{CurvatureCondition, GaugeRow, LevelSet, ScalarCurve, ScalarSample, Shape, gauge};
use crate::potentials::HorizonPrediction;

/// Places per decade, and the decades.
const PER_DECADE: i32 = 40;
const DECADES: [i32; 2] = [-6, 6];
/// What the curvature condition forgives, relative to α q: α is a measured number.
const FORGIVEN: f64 = 1e-6;
/// Directions of a level set, once around.
const DIRECTIONS: usize = 240;

/// Places from small to large on one side.
fn places(side: f64) -> impl Iterator<Item = f64> {
    (DECADES[0] * PER_DECADE..=DECADES[1] * PER_DECADE)
        .map(move |k| side * 10f64.powf(f64::from(k) / f64::from(PER_DECADE)))
}

/// r″ > 0.
pub(super) fn convexity(curve: &ScalarCurve) -> Shape {
    shape(curve, 0.0, |sample| (sample.curvature, sample.curvature_doubt))
}

/// A stretch with r″ = 0 that begins no further out than |t| = 1, so that it is no underflow of a function that falls
/// off.
pub(super) fn flat(curve: &ScalarCurve) -> Option<[f64; 2]> {
    let ascending = places(-1.0).collect::<Vec<_>>().into_iter().rev().chain(places(1.0));
    let mut stretches = Vec::<[f64; 2]>::new();
    let mut before = false;
    for t in ascending {
        let sample = curve.sample(t);
        let here = sample.value.is_finite() && sample.curvature == 0.0;
        match (here, before, stretches.last_mut()) {
            (true, true, Some(stretch)) => stretch[1] = t,
            (true, ..) => stretches.push([t, t]),
            _ => {}
        }
        before = here;
    }
    stretches.into_iter().find(|[from, to]| from < to && from.abs().min(to.abs()) <= 1.0 || from * to < 0.0)
}

/// 1 − t² r″/(α q) ≥ 0.
pub(super) fn condition(curve: &ScalarCurve, degree: f64) -> CurvatureCondition {
    let slack = |sample: &ScalarSample| {
        let (growth, whole) = (sample.t * sample.t * sample.curvature, degree * sample.conjugate);
        let size = whole.abs().max(growth.abs());
        let doubt = (sample.t * sample.t * sample.curvature_doubt + degree * sample.conjugate_doubt) / size;
        ((whole - growth) / size, doubt)
    };
    // the least constant that mends it, unless it is still growing at the end of the range
    let missing = |t: f64| {
        let sample = curve.sample(t);
        t * t * sample.curvature / degree - sample.conjugate
    };
    let end = 10f64.powi(DECADES[1] - 1);
    let most = |far: bool| {
        let all = places(1.0).chain(places(-1.0)).filter(|t| (t.abs() > end) == far);
        all.map(missing).filter(|k| k.is_finite()).fold(0.0, f64::max)
    };
    let (near, far) = (most(false), most(true));
    let constant = (near.is_finite() && far <= near * (1.0 + FORGIVEN)).then_some(near);
    CurvatureCondition { shape: shape(curve, FORGIVEN, slack), degree, constant }
}

/// Looks where a quantity is below 0 by more than its doubt and what is forgiven.
fn shape(curve: &ScalarCurve, forgiven: f64, quantity: impl Fn(&ScalarSample) -> (f64, f64)) -> Shape {
    let (mut smallest, mut fails, mut undecided) = (None::<[f64; 2]>, Vec::<[f64; 2]>::new(), 0);
    let (mut range, mut failing) = ([f64::INFINITY, f64::NEG_INFINITY], false);
    let ascending = places(-1.0).collect::<Vec<_>>().into_iter().rev().chain(places(1.0));
    for t in ascending {
        let sample = curve.sample(t);
        let (value, doubt) = quantity(&sample);
        if !sample.value.is_finite() || !value.is_finite() {
            failing = false;
            continue;
        }
        range = [range[0].min(t), range[1].max(t)];
        let below = value < -doubt.max(forgiven);
        if !below && value <= doubt && doubt > forgiven {
            undecided += 1;
        }
        if smallest.is_none_or(|[_, least]| value < least) {
            smallest = Some([t, value]);
        }
        match (below, failing, fails.last_mut()) {
            (true, true, Some(stretch)) => stretch[1] = t,
            (true, ..) => fails.push([t, t]),
            _ => {}
        }
        failing = below;
    }
    Shape { holds: fails.is_empty() && smallest.is_some(), range, smallest, fails, undecided }
}

/// q(0), or q next to it where r has no value at 0.
fn at_zero(curve: &ScalarCurve) -> f64 {
    let exact = curve.conjugate(0.0);
    let near = [1e-12, -1e-12].map(|t| curve.conjugate(t));
    if exact.is_finite() { exact } else { near.into_iter().find(|q| q.is_finite()).unwrap_or(f64::NAN) }
}

/// The side the domain has: +1 where it can be chosen.
fn side(curve: &ScalarCurve) -> f64 {
    if curve.sample(1.0).value.is_finite() { 1.0 } else { -1.0 }
}

/// Where the local degree of q − q(0) is halfway between its values at the smallest and the largest places; 1 for
/// powers.
pub(super) fn turning_scale(curve: &ScalarCurve) -> f64 {
    let (zero, side) = (at_zero(curve), side(curve));
    let degrees: Vec<[f64; 2]> = places(side)
        .filter_map(|t| {
            let sample = curve.sample(t);
            let rise = sample.conjugate - zero;
            let clear = sample.conjugate_doubt + f64::EPSILON * zero.abs() < 1e-3 * rise.abs();
            let degree = t * t * sample.curvature / rise;
            (clear && degree.is_finite()).then_some([t.abs(), degree])
        })
        .collect();
    let (Some([_, first]), Some([_, last])) = (degrees.first(), degrees.last()) else { return 1.0 };
    let middle = 0.5 * (first + last.min(first + 4.0));
    if (first - last).abs() < 0.05 {
        return 1.0;
    }
    let nearest = degrees.iter().min_by(|a, b| (a[1] - middle).abs().total_cmp(&(b[1] - middle).abs()));
    nearest.map_or(1.0, |[t, _]| 10f64.powf(t.log10().round()))
}

/// r around 0.
pub(super) fn samples(curve: &ScalarCurve, scale: f64) -> Vec<ScalarSample> {
    let place = |k: i32| 4.0 * scale * f64::from(k) / 120.0;
    (-120..=120).map(|k| curve.sample(place(k))).filter(|sample| sample.value.is_finite()).collect()
}

/// t² r″/q over twelve decades.
pub(super) fn local_degrees(curve: &ScalarCurve, side: f64, scale: f64) -> Vec<[f64; 2]> {
    let place = |k: i32| scale * 10f64.powf(f64::from(k) / 10.0);
    (-30..=90)
        .map(place)
        .map_while(|t| Some((t, curve.read(side * t).or_else(|| (t < scale).then_some([f64::NAN; 2]))?)))
        .map(|(t, [conjugate, growth])| [t, growth / conjugate])
        .filter(|[_, degree]| degree.is_finite())
        .collect()
}

/// The gauge at scales from a tenth of the turning scale to a million times it.
pub(super) fn gauges(curve: &ScalarCurve, prediction: Option<&HorizonPrediction>, scale: f64) -> Vec<GaugeRow> {
    let Some(prediction) = prediction else { return Vec::new() };
    let (zero, degree, side) = (at_zero(curve), prediction.degree, side(curve));
    let row = |k: i32| {
        let s = scale * 10f64.powi(k);
        let sample = curve.sample(side * s);
        let axis = crate::potentials::root(degree * (sample.conjugate + zero), degree);
        let (diagonal, limit) = (gauge(curve, degree, &[side * s; 2]), prediction.horizon(&[side * s; 2]));
        let local_degree = s * s * sample.curvature / sample.conjugate;
        GaugeRow { scale: s, axis: axis / s, diagonal: diagonal / s, gap: 1.0 - limit / diagonal, local_degree }
    };
    (-1..=6).map(row).filter(|row| row.diagonal.is_finite()).collect()
}

/// {q(x) + q(y) = q(s) + q(0)} at a few scales s, and its limit.
pub(super) fn level_sets(curve: &ScalarCurve, prediction: Option<&HorizonPrediction>, scale: f64) -> Vec<LevelSet> {
    let (zero, side) = (at_zero(curve), side(curve));
    let direction = |k: usize| {
        let angle = std::f64::consts::TAU * k as f64 / DIRECTIONS as f64;
        // the axes themselves, not points next to them
        [angle.cos(), angle.sin()].map(|x| if x.abs() < 1e-12 { 0.0 } else { x })
    };
    let q = |t: f64| if t == 0.0 { zero } else { curve.conjugate(t) };
    let mut sets = Vec::new();
    for factor in [0.1, 1.0, 10.0, 100.0] {
        let s = factor * scale;
        let level = q(side * s) + zero;
        let radius = |d: [f64; 2]| {
            let above = |r: f64| q(r * d[0]) + q(r * d[1]) >= level;
            let inside = d.iter().all(|x| *x == 0.0 || q(s * x).is_finite());
            let mut high = s;
            while inside && !above(high) && high < 1e3 * s {
                high *= 1.25;
            }
            if !inside || !above(high) {
                return f64::NAN;
            }
            let mut low = 0.0;
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if above(middle) { high = middle } else { low = middle }
            }
            high / s
        };
        sets.push(LevelSet { scale: Some(s), points: around(direction, radius) });
    }
    if let Some(prediction) = prediction {
        let unit = prediction.horizon(&[side, 0.0]);
        sets.push(LevelSet { scale: None, points: around(direction, |d| unit / prediction.horizon(&d)) });
    }
    sets.retain(|set| set.points.len() > 2);
    sets
}

/// Points at their distances, once around; directions without one are left out.
fn around(direction: impl Fn(usize) -> [f64; 2], radius: impl Fn([f64; 2]) -> f64) -> Vec<[f64; 2]> {
    let point = |k: usize| {
        let d = direction(k);
        let r = radius(d);
        (r.is_finite() && r > 0.0).then(|| d.map(|x| r * x))
    };
    (0..=DIRECTIONS).filter_map(|k| point(k % DIRECTIONS)).collect()
}
