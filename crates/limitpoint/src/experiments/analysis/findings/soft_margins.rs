//! Whether the soft margin of an optimiser's own geometry ever falls once the data are separated.

use super::{NAMED, table};
use crate::experiments::analysis::finals::{counted, geometry};
use crate::experiments::analysis::words::{list, norm_name};
use crate::experiments::{ExperimentRecord, Finding, Group, Metrics};

/// Falls below this share of the largest value so far count as none: rounding in single precision makes such.
const SMALLEST_FALL: f64 = 1e-6;

/// One finding over all groups of steepest descent whose norm has a soft margin and which separated the data.
pub(super) fn monotony(record: &ExperimentRecord, groups: &[Group]) -> Option<Finding> {
    let mut falls: Vec<(String, f64)> = Vec::new();
    for group in groups {
        let Some(key) = geometry(record, group) else { continue };
        if counted(record, group).any(|run| run.geometry_in_limit) {
            continue; // methods with memory may take back a little on the way
        }
        let worst = counted(record, group).filter_map(|run| largest_fall(&run.metrics, key)).fold(f64::NAN, f64::max);
        if worst.is_finite() {
            falls.push((format!("{} ({})", group.label, norm_name(key)), worst));
        }
    }
    if falls.is_empty() {
        return None;
    }
    let falling: Vec<String> = falls
        .iter()
        .filter(|(_, fall)| *fall > SMALLEST_FALL)
        .map(|(name, fall)| format!("{name} by {}", share(*fall)))
        .collect();
    let (title, text) = if falling.is_empty() {
        let worst = falls.iter().map(|(_, fall)| *fall).fold(0.0, f64::max);
        let names: Vec<String> = falls.iter().map(|(name, _)| name.clone()).collect();
        let text = match worst {
            0.0 => format!("Never fell between two measurements for {}.", list(&names, NAMED)),
            _ => format!("Never fell by more than {worst:.1e} of its value for {}.", list(&names, NAMED)),
        };
        ("Soft margins only grew", text)
    } else {
        ("A soft margin fell", format!("It fell below its earlier best for {}.", list(&falling, NAMED)))
    };
    let explanation = format!(
        "The soft margin replaces the worst example by a smooth minimum over all of them. Theory says that with small steps \
         of steepest descent the soft margin of its own norm never falls once every training example is classified \
         correctly (Tsilivis et al., Flavors of Margin). Falls of less than {SMALLEST_FALL:.0e} of its value count as \
         rounding; steps that are too large for the theory are one possible cause of others."
    );
    let rows = falls.iter().map(|(name, fall)| [name.clone(), format!("{fall:.1e}")]);
    let table = table(["optimiser", "largest fall, relative"], rows);
    Some(Finding {
        title: title.to_owned(),
        text,
        as_expected: Some(falling.is_empty()),
        in_part: false,
        explanation,
        table,
    })
}

/// Per cent where that reads well.
fn share(fall: f64) -> String {
    if fall >= 1e-4 { format!("{:.2} %", 100.0 * fall) } else { format!("{fall:.1e} of its value") }
}

/// The largest fall of `soft_margin.KEY` below its largest value so far, relative to that value.
///
/// Counted from the first row with accuracy 1 and a positive soft margin, which is where the theorem starts; none if
/// there are no two rows from there on.
fn largest_fall(metrics: &Metrics, key: &str) -> Option<f64> {
    let soft = metrics.column(&format!("soft_margin.{key}"));
    let rows = soft.iter().zip(metrics.column("accuracy")).filter(|(soft, _)| soft.is_finite());
    let mut after = rows.skip_while(|(soft, accuracy)| **accuracy != 1.0 || **soft <= 0.0).map(|(soft, _)| *soft);
    let mut peak = after.next()?;
    let mut fall = None;
    for value in after {
        fall = Some(f64::max(fall.unwrap_or(0.0), (peak - value) / peak));
        peak = peak.max(value);
    }
    fall
}
