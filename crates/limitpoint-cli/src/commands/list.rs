//! `limitpoint list`: every instance of a concept with its formula and reference.

use std::process::ExitCode;

use limitpoint::catalogue::CatalogueEntry;
use limitpoint::data::DataSpec;
use limitpoint::experiments::RecipeSource;
use limitpoint::losses::LossSpec;
use limitpoint::models::{Activation, Initialiser, ModelSpec};
use limitpoint::norms::NormSpec;
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::potentials::PotentialSpec;
use limitpoint::robustness::AttackSpec;
use limitpoint::schedules::ScheduleSpec;

use crate::args::{Concept, Format, List};

/// Runs the verb.
pub fn run(list: &List) -> anyhow::Result<ExitCode> {
    let entries = match list.concept {
        Concept::Norms => NormSpec::catalogue(),
        Concept::Potentials => PotentialSpec::catalogue(),
        Concept::Losses => LossSpec::catalogue(),
        Concept::Models => ModelSpec::catalogue(),
        Concept::Activations => Activation::catalogue(),
        Concept::Initialisers => Initialiser::catalogue(),
        Concept::Optimisers => OptimiserSpec::catalogue(),
        Concept::Schedules => ScheduleSpec::catalogue(),
        Concept::Attacks => AttackSpec::catalogue(),
        Concept::Data => DataSpec::catalogue(),
        Concept::Experiments => RecipeSource::catalogue(),
    };
    let text = match list.format {
        Format::Json => serde_json::to_string_pretty(&entries)? + "\n",
        Format::Text => table(&entries),
    };
    super::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Three aligned columns.
fn table(entries: &[CatalogueEntry]) -> String {
    let width = |text: fn(&CatalogueEntry) -> &str| entries.iter().map(|e| text(e).chars().count()).max().unwrap_or(0);
    let (keys, formulas) = (width(|e| e.key), width(|e| e.formula));
    let line = |e: &CatalogueEntry| format!("{:keys$}  {:formulas$}  {}\n", e.key, e.formula, e.reference);
    entries.iter().map(line).collect()
}
