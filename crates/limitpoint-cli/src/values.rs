//! Values of options that have a range: counts, threads and finite numbers, refused where they are read.

use crate::commands::say;

/// Cores of this machine.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The threads to use: as many as were asked for, all cores if nobody asked, and never more than there are cores, which
/// is said unless nothing is to be.
pub fn threads(asked: Option<usize>, quiet: bool) -> usize {
    match asked {
        Some(count) if count > cores() && quiet => cores(),
        Some(count) if count > cores() => {
            say(&format!("--threads {count} is more than this machine's {}, which are used instead", cores()));
            cores()
        }
        Some(count) => count.max(1),
        None => cores(),
    }
}

/// A number of threads or examples, at least 1.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("must be a whole number, at least 1 and below 2^{}", usize::BITS)),
    }
}

/// A number of repetitions: 1 to 1000.
pub fn repetitions(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| (1..=1000).contains(count)).ok_or_else(|| "must be from 1 to 1000".to_owned())
}

/// A number that is neither infinite nor NaN.
pub fn finite(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(|| "must be a finite number".to_owned())
}

/// A finite number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    finite(text).ok().filter(|number| *number > 0.0).ok_or_else(|| "must be a finite number above 0".to_owned())
}

/// A finite number, at least 0.
pub fn not_negative(text: &str) -> Result<f64, String> {
    finite(text).ok().filter(|number| *number >= 0.0).ok_or_else(|| "must be a finite number, at least 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_kept() {
        for text in ["0", "-1", "x", "1e3", "99999999999999999999999", ""] {
            assert!(at_least_one(text).is_err(), "{text}");
        }
        assert_eq!(at_least_one("18446744073709551615"), Ok(usize::MAX));
        assert!(repetitions("0").is_err() && repetitions("1000000000").is_err() && repetitions("3") == Ok(3));
        for text in ["nan", "inf", "-inf", "1e999", "x"] {
            assert!(finite(text).is_err() && positive(text).is_err() && not_negative(text).is_err(), "{text}");
        }
        assert!(positive("0").is_err() && not_negative("-1").is_err());
        assert_eq!((positive("0.5"), not_negative("0"), finite("-2")), (Ok(0.5), Ok(0.0), Ok(-2.0)));
    }

    #[test]
    fn threads_are_at_least_one_and_at_most_the_cores() {
        assert_eq!((threads(None, true), threads(Some(1), true)), (cores(), 1));
        assert_eq!(threads(Some(1_000_000), true), cores());
    }
}
