//! Numbers and lists as they are printed.

/// `1.23e-4`: three significant digits; `–` for what is not a number.
pub(super) fn scientific(value: f64) -> String {
    if value.is_finite() { format!("{value:.2e}") } else { "–".to_owned() }
}

/// A share as `97.31 %`.
pub(super) fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.2} %", 100.0 * share) } else { "–".to_owned() }
}

/// A power of ten with one decimal in the exponent, `10^−123.4`.
pub(super) fn power_of_ten(exponent: f64) -> String {
    if !exponent.is_finite() {
        return "–".to_owned();
    }
    let rounded = (exponent * 10.0).round() / 10.0;
    format!("10^{}{:.1}", if rounded < 0.0 { "−" } else { "" }, rounded.abs())
}

/// A share as it reads best: `100 %`, `99.94 %`, `84 %`, `5.6 %`, `0.57 %`; what is not positive is `0`.
pub(super) fn share(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        _ if percent.is_nan() => "–".to_owned(),
        _ if percent <= 0.0 => "0".to_owned(),
        _ if percent < 0.01 => "< 0.01 %".to_owned(),
        _ if percent < 1.0 => format!("{percent:.2} %"),
        _ if percent < 10.0 => format!("{percent:.1} %"),
        _ if percent < 99.0 => format!("{percent:.0} %"),
        _ if percent < 99.995 => format!("{percent:.2} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// `a, b and c`; of more than `most` the first ones, and how many more there are.
pub(super) fn list(items: &[String], most: usize) -> String {
    if items.len() > most {
        return format!("{} and {} more", items[..most].join(", "), items.len() - most);
    }
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

/// `1 seed`, `3 seeds`.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A norm as people write it: `l2` is ℓ2, `linf` is ℓ∞, `spectral` is σ₁; other keys stay as they are.
pub(super) fn norm_name(key: &str) -> String {
    match key {
        "linf" => "ℓ∞".to_owned(),
        "spectral" => "σ₁".to_owned(),
        _ => match key.strip_prefix('l') {
            Some(power) if !power.is_empty() && power.chars().all(|c| c.is_ascii_digit() || c == '/' || c == '.') => {
                format!("ℓ{power}")
            }
            _ => key.to_owned(),
        },
    }
}
