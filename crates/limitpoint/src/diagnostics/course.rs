//! Whether the path of a direction comes to an end.

use serde::{Deserialize, Serialize};

/// How far ln‖θ‖ must have grown before a path is judged; earlier most directions still look for their place.
const SHORTEST: f64 = 8.0;
/// Lengths that fall by at least this factor from one window to the next are those of a path that ends.
const SHRINKING: f64 = 0.9;
/// A path shorter than this, in radians, is rounding.
const ROUNDING: f64 = 1e-6;

/// Lengths of the path of θ/‖θ‖ while ln‖θ‖ grew from T/8 to T/4, T/2 and T beyond its first value.
///
/// ln‖θ‖ is the time in which directions move: along gradient flow of a homogeneous model dθ̂/d ln ρ is the gradient of
/// ln γ̄ on the sphere over L β², whatever the loss. If the speed falls like (ln ρ)^{−p}, the lengths of such windows
/// have the ratio
///
/// ```text
/// ∫_{T/2}^{T} x^{−p} dx / ∫_{T/4}^{T/2} x^{−p} dx = 2^{1−p}
/// ```
///
/// and the whole path is finite if p > 1: the ratio is below 1. Directions that converge do so like a power of 1/ρ as a
/// rule, with ratios near 0, or at least like (ln ρ)^{−1/2} where the margin is flat, with the ratio 2^{−1/2}. Where
/// the last two ratios are at least 0.9 the turn per doubling of the norm may be as small as one likes and there is
/// still no limit in sight. Like every verdict on a finite path it is about what the path shows, not a proof.
///
/// ```
/// use limitpoint::diagnostics::DirectionCourse;
/// // a turn of 1/T for every unit of T = ln ρ has infinite length; e^{−T} has not
/// let path = |speed: fn(f64) -> f64| (0..400).map(|k| [f64::from(k), speed(f64::from(k) - 0.5)]).collect::<Vec<_>>();
/// assert!(DirectionCourse::of(&path(|t| 1.0 / t.max(1.0))).unwrap().wanders());
/// assert!(!DirectionCourse::of(&path(|t| (-t).exp())).unwrap().wanders());
/// assert!(DirectionCourse::of(&path(|t| 1.0 / t.max(1.0))[..7]).is_none()); // too short to tell
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectionCourse {
    /// T, the growth of ln‖θ‖ over the path.
    pub growth: f64,
    /// The path in radians from T/8 to T/4, from T/4 to T/2 and from T/2 to T.
    pub lengths: [f64; 3],
}

impl DirectionCourse {
    /// ln L from which on the path is of interest. Before, weights may grow from almost nothing with their first
    /// direction.
    pub const BEGIN: f64 = -1.0;

    /// The course of a path of points (ln‖θ‖, angle turned since the previous point); the angle of the first point does
    /// not count. Nothing if ln‖θ‖ grew by less than 8, or if something is not a number.
    pub fn of(path: &[[f64; 2]]) -> Option<Self> {
        let (first, rest) = path.split_first()?;
        // the largest size so far, so that a path that shrinks for a while goes on where it was
        let mut points = vec![[0.0, 0.0]];
        let [mut growth, mut length] = [0.0; 2];
        for [size, turn] in rest {
            if !(size.is_finite() && turn.is_finite()) {
                return None;
            }
            growth = f64::max(growth, size - first[0]);
            length += turn;
            points.push([growth, length]);
        }
        if !first[0].is_finite() || growth < SHORTEST {
            return None;
        }
        let marks = [0.125, 0.25, 0.5, 1.0].map(|share| length_at(&points, share * growth));
        Some(Self { growth, lengths: [marks[1] - marks[0], marks[2] - marks[1], marks[3] - marks[2]] })
    }

    /// Whether the path shows no sign of coming to an end.
    pub fn wanders(&self) -> bool {
        let [first, second, third] = self.lengths;
        third > ROUNDING && second >= SHRINKING * first && third >= SHRINKING * second
    }
}

/// In words, such as `0.400, 0.410, 0.420 rad long while ln‖θ‖ grew from 40 to 80, 160, 320`.
impl std::fmt::Display for DirectionCourse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [first, second, third] = self.lengths;
        let marks = [0.125, 0.25, 0.5, 1.0].map(|share| share * self.growth);
        write!(
            f,
            "{first:.3}, {second:.3}, {third:.3} rad long while ln‖θ‖ grew from {:.3} to {:.3}, {:.3}, {:.3}",
            marks[0], marks[1], marks[2], marks[3]
        )
    }
}

/// The length of the path up to this growth, linear between points.
fn length_at(points: &[[f64; 2]], growth: f64) -> f64 {
    let next = points.partition_point(|point| point[0] < growth);
    match (next.checked_sub(1).and_then(|before| points.get(before)), points.get(next)) {
        (Some([from, start]), Some([to, end])) => start + (end - start) * (growth - from) / (to - from),
        (None, Some([_, length])) | (Some([_, length]), None) => *length,
        (None, None) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path with this length at T, in steps of 0.1.
    fn path(length: impl Fn(f64) -> f64) -> Vec<[f64; 2]> {
        let time = |k: u32| 0.1 * f64::from(k);
        (0..1000)
            .map(|k| [3.0 + time(k), if k == 0 { f64::NAN } else { length(time(k)) - length(time(k - 1)) }])
            .collect()
    }

    #[test]
    fn powers_of_the_time_have_the_ratio_of_the_formula() {
        for p in [0.5, 1.5, 2.0] {
            let course = DirectionCourse::of(&path(|t| (t + 1e-9).powf(1.0 - p) / (1.0 - p))).unwrap();
            let ratio = course.lengths[2] / course.lengths[1];
            assert!((ratio - 2f64.powf(1.0 - p)).abs() < 1e-2, "{p}: {course:?}");
            assert_eq!(course.wanders(), p < 1.0, "{p}");
        }
        // the border case: lengths of ln 2 each, and a limit that is never reached
        let course = DirectionCourse::of(&path(|t| (t + 1e-9).ln())).unwrap();
        assert!(
            course.lengths.iter().all(|length| (length - 2f64.ln()).abs() < 1e-5) && course.wanders(),
            "{course:?}"
        );
    }

    #[test]
    fn a_path_that_ends_does_not_wander_however_it_begins() {
        // long at first, then 1/ρ; then only rounding
        assert!(!DirectionCourse::of(&path(|t| t.min(5.0) - (-t).exp())).unwrap().wanders());
        assert!(!DirectionCourse::of(&path(|t| 1e-12 * t)).unwrap().wanders());
        // a limit that is approached like (ln ρ)^{−1/2}
        assert!(!DirectionCourse::of(&path(|t| -(t + 0.1).powf(-0.5))).unwrap().wanders());
    }

    #[test]
    fn what_is_short_or_not_a_number_is_not_judged() {
        assert_eq!(DirectionCourse::of(&[]), None);
        assert_eq!(DirectionCourse::of(&path(|t| t)[..70]), None);
        let mut broken = path(|t| t);
        broken[500][1] = f64::NAN;
        assert_eq!(DirectionCourse::of(&broken), None);
    }
}
