//! A word before runs whose loss can fall faster than their optimiser forgets earlier gradients.

use std::f64::consts::LN_10;

use super::task::Task;
use crate::optimisers::OptimiserSpec;
use crate::schedules::ScheduleSpec;
use crate::training::Trainer;

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
///
/// On the network of the built-in `digits` Adam reaches γ_∞ = 1.6 without it; with `memory = 0.5` it reaches 354 (β₂ = 0.99,
/// 98,600 steps) and 273 (β₂ = 0.9, 14,407 steps), sign descent 286. A shorter memory alone does not do: with β₂ = 0.8 and
/// β₁ = 0.9, whose limit of 0.105 is hardly above the resolution, the weights grow without use.
pub(super) const RECOMMENDED: f64 = 0.5;

impl Task {
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
        let (Trainer::Optimiser(spec), schedule) = (self.trainer()?, self.schedule()) else { return None };
        let (spec, key, forgets) = (&spec, spec.key(), spec.forgets());
        let fall = schedule.clone().with_forgetting(forgets).largest_fall()?;
        if fall < forgets || forgets == f64::INFINITY {
            return None;
        }
        if forgets == 0.0 {
            // what AdaGrad tends to depends on its way there, and no setting changes that
            return adds_up(spec).then(|| {
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
            format!(
                ", which takes about {steps:.0e} steps to 10^{target}, and fewer with a smaller {}",
                key_of_memory(spec)
            )
        });
        let mut text = format!(
            "warning: under {} steps ln L falls {falls}, but what {key} remembers of earlier gradients can follow {forgets:.1e} \
             a step; it need not reach the largest margin of its norm. Set \
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

/// Whether Shampoo adds up gradients in it.
fn adds_up(spec: &OptimiserSpec) -> bool {
    matches!(spec, OptimiserSpec::Shampoo { accumulate: true, .. }) || spec.parts().into_iter().any(adds_up)
}

/// The setting that says how long an optimiser remembers.
fn key_of_memory(spec: &OptimiserSpec) -> &'static str {
    match spec {
        OptimiserSpec::Adam { beta1, beta2, .. } | OptimiserSpec::AdamW { beta1, beta2, .. }
            if beta1 * beta1 > *beta2 =>
        {
            "beta1"
        }
        OptimiserSpec::RmsProp { .. } => "decay",
        OptimiserSpec::Signum { .. } | OptimiserSpec::Muon { .. } => "momentum",
        OptimiserSpec::Switch { .. } | OptimiserSpec::Adjusted { .. } | OptimiserSpec::Blocks(_) => {
            let slowest = spec.parts().into_iter().min_by(|a, b| a.forgets().total_cmp(&b.forgets()));
            slowest.map_or("beta2", key_of_memory)
        }
        _ => "beta2",
    }
}

/// What is added to the root of the squares, where there are any.
fn epsilon(spec: &OptimiserSpec) -> Option<f64> {
    match spec {
        OptimiserSpec::Adam { epsilon, .. }
        | OptimiserSpec::AdamW { epsilon, .. }
        | OptimiserSpec::RmsProp { epsilon, .. } => Some(*epsilon),
        OptimiserSpec::Switch { second, .. } => epsilon(second),
        _ => spec.parts().into_iter().filter_map(epsilon).reduce(f64::max),
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::experiments::{Experiment, ExperimentRecord, RecipeSource, RunOptions, Watcher, plan};

    /// Keeps what it is told.
    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Watcher for Notes {
        fn note(&self, _: usize, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    fn tasks(overrides: &[&str]) -> Vec<Task> {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        let plan = plan(&RecipeSource::find("linear").unwrap(), &overrides).unwrap();
        plan.tasks()
    }

    /// Adam's steps are those of sign descent only while its memory follows the loss; with `memory` it does.
    #[test]
    fn adam_reaches_the_largest_margin_where_steps_keep_to_its_memory() {
        let text = "loss = 'exponential'\nmodel = 'linear'\ninitialiser = { constant = { value = 0.0 } }\n\
                    data.gaussians = { count = 40, dimension = 12, margin = 0.5 }\n\
                    [optimisers]\nplain = { adam = { epsilon = 0.0, beta2 = 0.99 } }\n\
                    kept = { adam = { epsilon = 0.0, beta2 = 0.99 } }\n\
                    [schedules]\nplain = 'flow-resolved(resolution=0.1)'\n\
                    kept = 'flow-resolved(resolution=0.1, memory=0.5)'\n\
                    [observe]\nnorms = ['linf']\n[stop]\nlog10_loss = -60\n";
        let plan = plan(&RecipeSource::from_text("adam.toml", text), &[]).unwrap();
        let folder = std::env::temp_dir().join(format!("limitpoint-memory-{}", std::process::id()));
        let (notes, interrupt) = (Notes::default(), AtomicBool::new(false));
        let options =
            RunOptions { threads: 2, device: crate::engine::Device::Cpu, watcher: &notes, interrupt: &interrupt };
        Experiment::new(&plan).unwrap().run(&folder, &options).unwrap();
        let record = ExperimentRecord::load(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let optimum = record.references[0].value;
        let share = |place: usize| record.runs[place].metrics.last("margin.linf").unwrap() / optimum;
        assert!(share(0) < 0.9, "without it Adam reaches {} of the largest margin", share(0));
        assert!(share(1) > 0.99 && share(1) <= 1.0 + 1e-9, "with it {}", share(1));
        let notes = notes.0.into_inner().unwrap();
        let [note] = &notes[..] else { panic!("one warning, about the run without it: {notes:?}") };
        assert!(note.contains("schedule=flow-resolved(resolution=0.1, memory=0.5)"), "{note}");
    }

    #[test]
    fn warnings_name_the_key_and_come_only_where_they_are_due() {
        let warned = |overrides: &[&str]| memory_warnings(&tasks(overrides));
        for (optimiser, shorter) in [("adam", "beta2"), ("adam-w", "beta2"), ("rms-prop", "decay"), ("lion", "beta2")] {
            let found = warned(&[&format!("optimiser={optimiser}"), "seed=1,2,3"]);
            let [(0, text)] = &found[..] else { panic!("{optimiser}: one warning for all seeds: {found:?}") };
            assert!(text.contains("memory=0.5") && text.contains(&format!("a smaller {shorter}")), "{text}");
        }
        // a memory of one gradient in ten is outrun by coarse steps only
        assert!(warned(&["optimiser=signum"]).is_empty());
        assert!(!warned(&["optimiser=signum", "schedule=flow-resolved(resolution=0.2)"]).is_empty());
        for unbounded in ["rescaled(rate=0.1)", "loss-based"] {
            let found = warned(&["optimiser=adam", &format!("schedule={unbounded}")]);
            assert!(found[0].1.contains("schedule=flow-resolved(memory=0.5)"), "{found:?}");
        }
        let [(_, text)] = &warned(&["optimiser=adam"])[..] else { panic!("a warning") };
        assert!(text.contains("epsilon=0"), "{text}");
        assert!(!warned(&["optimiser=adam(epsilon=0)"])[0].1.contains("epsilon"));
        assert!(warned(&["optimiser=shampoo"])[0].1.contains("accumulate=false"));
        for calm in ["gradient", "sign", "heavy-ball", "nesterov", "muon", "ada-grad"] {
            assert!(warned(&[&format!("optimiser={calm}")]).is_empty(), "{calm}");
        }
        assert!(warned(&["optimiser=adam", "schedule=flow-resolved(memory=0.5)"]).is_empty());
        assert!(warned(&["optimiser=adam", "schedule=constant(rate=0.001)"]).is_empty());
    }
}
