//! Which figures are wanted: all of them, or chosen columns, along a chosen axis, in a chosen size.

use crate::experiments::Band;

/// What figures are wanted. The default is every figure there is, for a column of text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FigureRequest {
    /// Measured columns, such as `margin.l2` or `log10_loss`; empty is all that have a figure of their own.
    pub columns: Vec<String>,
    /// What is across; nothing is every axis that has figures: steps, and every setting of a sweep.
    pub axis: Option<FigureAxis>,
    /// Width and height in points, the legend included; nothing is 340 points wide and as high as it needs to be.
    pub size: Option<(u32, u32)>,
}

/// What is across in a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FigureAxis {
    /// Steps, time or the loss, while a run goes on.
    Along(Along),
    /// The values of a swept setting, such as `model.width`.
    Setting(String),
    /// Two swept settings: a map, the first across and the second up.
    Settings(String, String),
}

impl std::str::FromStr for FigureAxis {
    type Err = std::convert::Infallible;

    /// `steps`, `time`, `loss`; a swept setting; or two with a comma between them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "steps" => Self::Along(Along::Steps),
            "time" => Self::Along(Along::Time),
            "loss" => Self::Along(Along::Loss),
            text => match text.split_once(',') {
                Some((across, up)) => Self::Settings(across.trim().to_owned(), up.trim().to_owned()),
                None => Self::Setting(text.to_owned()),
            },
        })
    }
}

/// What a run is followed along; all are on logarithmic axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// Accepted steps.
    Steps,
    /// Time travelled, the sum of the step sizes.
    Time,
    /// 1/L, which grows.
    Loss,
}

impl Along {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Time => "time",
            Self::Loss => "1 / training loss",
        }
    }

    /// The position of a row, log₁₀ of what is across; NaN or −∞ where there is none.
    pub(super) fn place(self, band: &Band, row: usize) -> f64 {
        match self {
            Self::Steps => band.step[row].log10(),
            Self::Time => band.log10_time.get(row).copied().unwrap_or(f64::NAN),
            Self::Loss => -band.log10_loss.get(row).copied().unwrap_or(f64::NAN),
        }
    }
}

/// Why a figure cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// A column that no figure shows.
    #[error("no figure shows '{column}'{}; there are {}", on(axis), known.join(", "))]
    Column {
        /// The column.
        column: String,
        /// The axis asked for.
        axis: Option<FigureAxis>,
        /// Columns that can be shown.
        known: Vec<String>,
    },
    /// A setting that the sweep does not vary.
    #[error("the runs do not differ in '{setting}'; an axis is steps, time, loss{}", known.iter().map(|key| format!(", {key}")).collect::<String>())]
    Setting {
        /// The setting.
        setting: String,
        /// Settings that they differ in.
        known: Vec<String>,
    },
    /// A size that leaves no room.
    #[error("the figure {name} does not fit: {why}")]
    Size {
        /// Name of the figure.
        name: String,
        /// What it needs.
        why: String,
    },
}

fn on(axis: &Option<FigureAxis>) -> String {
    match axis {
        None => String::new(),
        Some(FigureAxis::Along(along)) => format!(" along {}", along.label()),
        Some(FigureAxis::Setting(key)) => format!(" against {key}"),
        Some(FigureAxis::Settings(across, up)) => format!(" against {across} and {up}"),
    }
}
