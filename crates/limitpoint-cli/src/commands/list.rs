//! `limitpoint list`: every instance of a concept with its formula and reference, or one thing with all its settings.

use std::process::ExitCode;

use anyhow::bail;
use clap::ValueEnum;
use limitpoint::catalogue::CatalogueEntry;
use limitpoint::data::DataSpec;
use limitpoint::experiments::{Instance, RecipeSource, Setting, explain};
use limitpoint::losses::LossSpec;
use limitpoint::models::{Activation, Initialiser, ModelSpec};
use limitpoint::norms::NormSpec;
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::potentials::PotentialSpec;
use limitpoint::robustness::AttackSpec;
use limitpoint::schedules::ScheduleSpec;

use crate::args::{Concept, Format, List, Listed};

/// Runs the verb.
pub fn run(list: &List) -> anyhow::Result<ExitCode> {
    let concept = match &list.what {
        Listed::Concept(concept) => *concept,
        Listed::Name(name) => return one(name, list.format),
    };
    let entries = match concept {
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

/// All that bears a name.
fn one(name: &str, format: Format) -> anyhow::Result<ExitCode> {
    let found = explain(name);
    if found.is_empty() {
        let concepts: Vec<String> = Concept::value_variants()
            .iter()
            .filter_map(|concept| Some(concept.to_possible_value()?.get_name().to_owned()))
            .collect();
        bail!("nothing is called '{name}'; list one of {}, or a name that one of these shows", concepts.join(", "));
    }
    super::print(&match format {
        Format::Json => serde_json::to_string_pretty(&found)? + "\n",
        Format::Text => found.iter().map(described).collect::<Vec<_>>().join("\n"),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What it is, its formula, and a line for each setting.
fn described(instance: &Instance) -> String {
    let mut text = format!("{}, one of the {}: {}\n", instance.key, instance.concept, instance.meaning);
    if let (Some(formula), Some(reference)) = (instance.formula, instance.reference) {
        text += &format!("  {formula}  ({reference})\n");
    }
    let default = |setting: &Setting| match (&setting.default, setting.required) {
        (Some(default), _) => format!("default {default}"),
        (None, true) => "required".to_owned(),
        (None, false) => "optional".to_owned(),
    };
    let name =
        |setting: &Setting| if setting.name.is_empty() { "(the value)".to_owned() } else { setting.name.clone() };
    let rows: Vec<[String; 4]> = instance
        .settings
        .iter()
        .map(|setting| [name(setting), setting.kind.clone(), default(setting), setting.meaning.clone()])
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (a, b, c) = (width(0), width(1), width(2));
    for [name, kind, default, meaning] in &rows {
        text += &format!("  {name:a$}  {kind:b$}  {default:c$}  {meaning}\n");
    }
    text
}

/// Three aligned columns.
fn table(entries: &[CatalogueEntry]) -> String {
    let width = |text: fn(&CatalogueEntry) -> &str| entries.iter().map(|e| text(e).chars().count()).max().unwrap_or(0);
    let (keys, formulas) = (width(|e| e.key), width(|e| e.formula));
    let line = |e: &CatalogueEntry| format!("{:keys$}  {:formulas$}  {}\n", e.key, e.formula, e.reference);
    entries.iter().map(line).collect()
}
