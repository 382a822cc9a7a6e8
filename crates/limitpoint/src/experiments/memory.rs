//! A word before runs whose loss can fall faster than their optimiser forgets earlier gradients.

use std::f64::consts::LN_10;

use super::task::{Task, Trainer};
use crate::optimisers::OptimiserSpec;
use crate::schedules::ScheduleSpec;

/// The share of what an optimiser forgets in a step that warnings recommend.
///
/// Adam with ε = 0 on 60 examples of five classes in twelve dimensions, cross-entropy down to 10⁻¹⁰⁰; shares of the exact
/// ℓ∞ margin:
///
/// ```text
/// flow-resolved            0.733 after  60,237 steps        sign descent             0.996 after    91,870 steps
/// memory = 0.9             0.988 after 549,718              constant(rate=0.001)     0.986 after   535,281
/// memory = 0.8             0.992 after 618,392              constant(rate=0.0001)    0.996 after 2,181,145
/// memory = 0.5             0.995 after 989,380              beta2 = 0.9              0.996 after    50,498
/// ```
pub(super) const RECOMMENDED: f64 = 0.5;

impl Task {
    /// The schedule of an optimiser, told what the optimiser remembers.
    pub(super) fn remembering(spec: &OptimiserSpec, schedule: &ScheduleSpec) -> ScheduleSpec {
        schedule.clone().with_forgetting(spec.forgets())
    }

    /// What to know before a run whose loss can fall faster than its optimiser forgets, with the key to set; nothing
    /// where it cannot, or where the schedule does not say how fast the loss falls.
    ///
    /// ```
    /// use limitpoint::experiments::{Recipe, Task};
    /// let text = "loss = 'exponential'\ndata.digits = {}\nmodel = 'linear'\noptimisers.a.adam.epsilon = 0.0";
    /// let recipe: Recipe = toml::from_str(text)?;
    /// let warning = Task::all(&recipe, &[])[0].memory_warning().unwrap();
    /// assert!(warning.contains("schedule=flow-resolved(resolution=0.05, memory=0.5)"), "{warning}");
    /// # Ok::<(), toml::de::Error>(())
    /// ```
    pub fn memory_warning(&self) -> Option<String> {
        let Some(Trainer::Optimiser(spec, schedule)) = self.trainer() else { return None };
        let (key, forgets) = (spec.key(), spec.forgets());
        let fall = Self::remembering(spec, schedule).largest_fall()?;
        if fall < forgets || forgets == f64::INFINITY {
            return None;
        }
        if forgets == 0.0 {
            // what AdaGrad tends to depends on its way there, and no setting changes that
            return matches!(spec, OptimiserSpec::Shampoo { .. }).then(|| {
                format!(
                    "warning: {key} adds up all gradients since the start, which the loss leaves behind, and need not end \
                     with the largest margin of any norm. Set accumulate=false for that of the spectral norm."
                )
            });
        }
        let falls = match fall {
            f64::INFINITY => "with nothing to bound how fast it falls".to_owned(),
            fall => format!("by up to {fall} a step"),
        };
        let resolution = match schedule {
            ScheduleSpec::FlowResolved { resolution, .. } => format!("resolution={resolution}, "),
            _ => String::new(),
        };
        let steps = self.recipe.stop.log10_loss.filter(|target| *target < 0.0).map_or_else(String::new, |target| {
            let steps = -target * LN_10 / (RECOMMENDED * forgets);
            format!(", which takes about {steps:.0e} steps to 10^{target}")
        });
        let mut text = format!(
            "warning: under {} steps ln L falls {falls}, but what {key} remembers of earlier gradients can follow {forgets:.1e} \
             a step; it need not reach the largest margin of its norm. Set a shorter memory (beta2=0.9, say), or \
             schedule=flow-resolved({resolution}memory={RECOMMENDED}){steps}.",
            schedule.key()
        );
        if let Some(epsilon) = epsilon(spec).filter(|epsilon| *epsilon > 0.0)
            && self.recipe.stop.log10_loss.is_none_or(|target| target < epsilon.log10())
        {
            text += &format!(
                " Below a loss of about {epsilon:e} its epsilon outweighs its gradients; set epsilon=0 to go further."
            );
        }
        Some(text)
    }
}

/// What is added to the root of the squares, where there are any.
fn epsilon(spec: &OptimiserSpec) -> Option<f64> {
    match spec {
        OptimiserSpec::Adam { epsilon, .. }
        | OptimiserSpec::AdamW { epsilon, .. }
        | OptimiserSpec::RmsProp { epsilon, .. } => Some(*epsilon),
        OptimiserSpec::Switch { second, .. } => epsilon(second),
        _ => None,
    }
}

/// Every warning once, with the first run it is about.
pub(super) fn memory_warnings(tasks: &[Task]) -> Vec<(usize, String)> {
    let mut warnings: Vec<(usize, String)> = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        if let Some(text) = task.memory_warning()
            && warnings.iter().all(|(_, known)| *known != text)
        {
            warnings.push((index, text));
        }
    }
    warnings
}
