//! Ranges, ticks and their labels.

/// One axis of a figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// The first position shown.
    pub low: f64,
    /// The last position shown.
    pub high: f64,
    /// Labelled ticks: position and text.
    pub ticks: Vec<(f64, String)>,
    /// Positions of the ticks between them.
    pub minor: Vec<f64>,
    /// The power of ten that all labels lack, if it is not 1.
    pub factor: Option<String>,
}

/// Labelled ticks on an axis, at most about.
const MOST_TICKS: f64 = 6.0;

impl Axis {
    /// Positions are log₁₀ of the values; ticks are powers of ten where two of them are in range, else round values.
    pub fn logarithmic(low: f64, high: f64) -> Self {
        let (low, high) = widen(low, high);
        let step = round_step((high - low) / MOST_TICKS).max(1.0);
        let decades = multiples(step, low, high);
        if decades.len() >= 2 {
            let minor = if step == 1.0 {
                between_decades(low, high, &[2, 3, 4, 5, 6, 7, 8, 9])
            } else {
                let fine = if step >= 5.0 { step / 5.0 } else { 1.0 };
                multiples(fine, low, high).into_iter().filter(|at| !decades.contains(at)).collect()
            };
            let ticks = decades.into_iter().map(|at| (at, power_of_ten(at as i64))).collect();
            return Self { low, high, ticks, minor, factor: None };
        }
        for mantissas in [&[1, 2, 5][..], &[1, 2, 3, 4, 5, 6, 7, 8, 9]] {
            let places = between_decades(low, high, mantissas);
            if places.len() >= 3 {
                let minor = between_decades(low, high, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
                let minor = minor.into_iter().filter(|at| !places.contains(at)).collect();
                let ticks = places.into_iter().map(|at| (at, round_value(at))).collect();
                return Self { low, high, ticks, minor, factor: None };
            }
        }
        // so narrow that the axis is as good as linear in the values
        let values = Self::linear(10_f64.powf(low), 10_f64.powf(high));
        let ticks = values.ticks.into_iter().map(|(value, text)| (value.log10(), text)).collect();
        Self { low, high, ticks, minor: Vec::new(), factor: values.factor }
    }

    /// Ticks with names of their own; of more than there is room for every second, third, … is named.
    ///
    /// The positions rise; around the first and the last there is `room` on either side.
    pub fn named(places: &[f64], names: &[String], room: f64, most: usize) -> Self {
        let every = places.len().div_ceil(most.max(1)).max(1);
        let named =
            |(place, (at, name)): (usize, (&f64, &String))| place.is_multiple_of(every).then(|| (*at, name.clone()));
        let ticks: Vec<(f64, String)> = places.iter().zip(names).enumerate().filter_map(named).collect();
        let minor = places.iter().copied().filter(|at| ticks.iter().all(|(tick, _)| tick != at)).collect();
        let (first, last) = (places.first().copied().unwrap_or(0.0), places.last().copied().unwrap_or(0.0));
        let (low, high) = widen(first - room, last + room);
        Self { low, high, ticks, minor, factor: None }
    }

    /// Positions are the values; labels share a power of ten where they would be long.
    pub fn linear(low: f64, high: f64) -> Self {
        let (low, high) = widen(low, high);
        let step = round_step((high - low) / MOST_TICKS);
        let places = multiples(step, low, high);
        let largest = places.iter().fold(0.0_f64, |largest, at| largest.max(at.abs()));
        let exponent = if (0.01..10_000.0).contains(&largest) || largest == 0.0 { 0 } else { floor_log10(largest) };
        let unit = 10_f64.powi(exponent as i32);
        let decimals = (exponent - floor_log10(step)).max(0) as usize;
        let label = |at: f64| minus(&format!("{:.decimals$}", at / unit));
        Self {
            low,
            high,
            minor: multiples(step / if leading_digit(step) == 5 { 5.0 } else { 2.0 }, low, high)
                .into_iter()
                .filter(|at| places.iter().all(|place| (place - at).abs() > 0.01 * step))
                .collect(),
            ticks: places.iter().map(|&at| (at, label(at))).collect(),
            factor: (exponent != 0).then(|| power_of_ten(exponent)),
        }
    }
}

/// A range with something in it.
fn widen(low: f64, high: f64) -> (f64, f64) {
    if high - low > 1e-9 * low.abs().max(high.abs()) && high > low {
        (low, high)
    } else {
        let half = if low == 0.0 { 0.5 } else { 0.1 * low.abs() };
        (low - half, low + half)
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let unit = 10_f64.powi(floor_log10(step) as i32);
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|digit| digit * unit)
        .find(|round| *round >= step * (1.0 - 1e-9))
        .unwrap_or(10.0 * unit)
}

fn leading_digit(step: f64) -> i64 {
    (step / 10_f64.powi(floor_log10(step) as i32)).round() as i64
}

fn floor_log10(value: f64) -> i64 {
    (value.log10() + 1e-9).floor() as i64
}

/// Multiples of `step` in the range; a multiple a rounding error outside is inside.
fn multiples(step: f64, low: f64, high: f64) -> Vec<f64> {
    let (first, last) = ((low / step - 1e-6).ceil() as i64, (high / step + 1e-6).floor() as i64);
    (first..=last).map(|number| number as f64 * step).collect()
}

/// log₁₀ of mantissa times power of ten in the range.
fn between_decades(low: f64, high: f64, mantissas: &[i64]) -> Vec<f64> {
    let decades = (low.floor() as i64)..=(high.floor() as i64);
    let all = decades.flat_map(|decade| mantissas.iter().map(move |m| decade as f64 + (*m as f64).log10()));
    all.filter(|at| (low - 1e-9..=high + 1e-9).contains(at)).collect()
}

/// A round value from its logarithm: `20`, `0.05`, `3·10⁷`.
fn round_value(log10: f64) -> String {
    let decade = floor_log10(10_f64.powf(log10));
    let mantissa = 10_f64.powf(log10 - decade as f64).round();
    if (-3..4).contains(&decade) {
        format!("{:.*}", (-decade).max(0) as usize, mantissa * 10_f64.powi(decade as i32))
    } else if mantissa == 1.0 {
        power_of_ten(decade)
    } else {
        format!("{mantissa}·{}", power_of_ten(decade))
    }
}

/// `10⁻³`.
pub(in crate::report) fn power_of_ten(exponent: i64) -> String {
    let raised = |digit: char| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    };
    format!("10{}", exponent.to_string().chars().map(raised).collect::<String>())
}

/// A real minus sign, and none before zero.
fn minus(number: &str) -> String {
    match number.strip_prefix('-') {
        Some(zero) if zero.chars().all(|c| c == '0' || c == '.') => zero.to_owned(),
        Some(size) => format!("−{size}"),
        None => number.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(&Axis::logarithmic(0.0, 4.3)), ["10⁰", "10¹", "10²", "10³", "10⁴"]);
        assert_eq!(labels(&Axis::logarithmic(-1234.0, 3.0)), ["10⁻¹⁰⁰⁰", "10⁻⁵⁰⁰", "10⁰"]);
        assert_eq!(labels(&Axis::logarithmic(1.2, 2.1)), ["20", "50", "100"]);
        assert_eq!(labels(&Axis::logarithmic(6.2, 6.9)), ["2·10⁶", "3·10⁶", "4·10⁶", "5·10⁶", "6·10⁶", "7·10⁶"]);
        assert_eq!(labels(&Axis::linear(-0.02, 0.061)), ["−0.02", "0.00", "0.02", "0.04", "0.06"]);
        let small = Axis::linear(0.0, 0.0045);
        assert_eq!((labels(&small), small.factor.as_deref()), (vec!["0", "1", "2", "3", "4"], Some("10⁻³")));
    }

    #[test]
    fn a_range_without_width_still_has_ticks() {
        for value in [0.0, 3.0, -1e-5, 1e300] {
            let axis = Axis::linear(value, value);
            assert!(axis.low < axis.high && axis.ticks.len() >= 2, "{axis:?}");
            let slack = 1e-6 * (axis.high - axis.low);
            assert!(axis.ticks.iter().all(|(at, _)| (axis.low - slack..=axis.high + slack).contains(at)), "{axis:?}");
        }
    }

    proptest! {
        #[test]
        fn ticks_are_few_distinct_and_in_range(low in -3000.0..3000.0_f64, width in 1e-3..3000.0_f64) {
            for axis in [Axis::linear(low, low + width), Axis::logarithmic(low / 10.0, (low + width) / 10.0)] {
                prop_assert!((2..=12).contains(&axis.ticks.len()), "{:?}", axis);
                let slack = 1e-5 * (axis.high - axis.low);
                for at in axis.ticks.iter().map(|(at, _)| at).chain(&axis.minor) {
                    prop_assert!((axis.low - slack..=axis.high + slack).contains(at), "{:?}", axis);
                }
                let mut texts = labels(&axis);
                texts.dedup();
                prop_assert_eq!(texts.len(), axis.ticks.len(), "{:?}", axis);
            }
        }
    }
}
