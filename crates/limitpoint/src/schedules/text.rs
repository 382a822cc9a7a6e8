//! Step-size rules as one word of text.

use std::fmt;
use std::str::FromStr;

use super::{ScheduleError, ScheduleSpec};

impl ScheduleSpec {
    /// Name and value of every setting that has a value, in order.
    fn settings(&self) -> Vec<(&'static str, f64)> {
        let given = |settings: &[(&'static str, Option<f64>)]| {
            settings.iter().copied().filter_map(|(name, value)| value.map(|value| (name, value))).collect()
        };
        match *self {
            Self::Constant { rate } => vec![("rate", rate)],
            Self::Rescaled { rate, factor, threshold } => {
                vec![("rate", rate), ("factor", factor), ("threshold", threshold)]
            }
            Self::LossBased { initial, grow, shrink } => vec![("initial", initial), ("grow", grow), ("shrink", shrink)],
            Self::LinearBound { c, feature_bound, cap, decay } => {
                given(&[("c", Some(c)), ("feature_bound", feature_bound), ("cap", cap), ("decay", Some(decay))])
            }
            Self::Admissible { c, degree, log_start, log_curvature } => {
                given(&[("c", Some(c)), ("degree", degree), ("log_start", log_start), ("log_curvature", log_curvature)])
            }
            Self::Polynomial { rate, power } => vec![("rate", rate), ("power", power)],
            Self::FlowResolved { resolution, initial, grow, shrink, memory, fall } => given(&[
                ("resolution", Some(resolution)),
                ("initial", Some(initial)),
                ("grow", Some(grow)),
                ("shrink", Some(shrink)),
                ("memory", memory),
                ("fall", fall),
            ]),
        }
    }

    /// Sets one setting by name; false if the rule has none of that name.
    fn set(&mut self, name: &str, value: f64) -> bool {
        let place = match (self, name) {
            (Self::Constant { rate } | Self::Rescaled { rate, .. } | Self::Polynomial { rate, .. }, "rate") => rate,
            (Self::Rescaled { factor, .. }, "factor") => factor,
            (Self::Rescaled { threshold, .. }, "threshold") => threshold,
            (Self::LossBased { initial, .. } | Self::FlowResolved { initial, .. }, "initial") => initial,
            (Self::LossBased { grow, .. } | Self::FlowResolved { grow, .. }, "grow") => grow,
            (Self::LossBased { shrink, .. } | Self::FlowResolved { shrink, .. }, "shrink") => shrink,
            (Self::LinearBound { c, .. } | Self::Admissible { c, .. }, "c") => c,
            (Self::Admissible { degree, .. }, "degree") => degree.insert(value),
            (Self::Admissible { log_start, .. }, "log_start") => log_start.insert(value),
            (Self::Admissible { log_curvature, .. }, "log_curvature") => log_curvature.insert(value),
            (Self::LinearBound { decay, .. }, "decay") => decay,
            (Self::LinearBound { feature_bound, .. }, "feature_bound") => feature_bound.insert(value),
            (Self::LinearBound { cap, .. }, "cap") => cap.insert(value),
            (Self::Polynomial { power, .. }, "power") => power,
            (Self::FlowResolved { resolution, .. }, "resolution") => resolution,
            (Self::FlowResolved { memory, .. }, "memory") => memory.insert(value),
            (Self::FlowResolved { fall, .. }, "fall") => fall.insert(value),
            _ => return false,
        };
        *place = value;
        true
    }
}

/// The key with all settings: `polynomial(rate=0.2, power=1)`.
impl fmt::Display for ScheduleSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<_> = self.settings().iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(out, "{}({})", self.key(), settings.join(", "))
    }
}

/// Reads what [`Display`](fmt::Display) writes; settings left out take their defaults.
impl FromStr for ScheduleSpec {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let refuse = |reason: String| ScheduleError::Unknown { text: text.to_owned(), reason };
        let trimmed = text.trim();
        let (key, inner) = match trimmed.split_once('(') {
            None => (trimmed, ""),
            Some((key, rest)) => {
                (key.trim(), rest.strip_suffix(')').ok_or_else(|| refuse("the closing bracket is missing".into()))?)
            }
        };
        let mut spec = Self::examples().into_iter().find(|spec| spec.key() == key).ok_or_else(|| {
            let known: Vec<_> = Self::catalogue().iter().map(|entry| entry.key).collect();
            refuse(format!("write one of {}", known.join(", ")))
        })?;
        for pair in inner.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| refuse(format!("write {pair} as name=value")))?;
            let value = value.trim().parse().map_err(|_| refuse(format!("{} is not a number", value.trim())))?;
            if !spec.set(name.trim(), value) {
                return Err(refuse(format!("{key} has no setting {}; it has those of {spec}", name.trim())));
            }
        }
        Ok(spec)
    }
}
