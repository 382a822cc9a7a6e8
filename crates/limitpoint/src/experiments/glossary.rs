//! Every key and every choice of a recipe in words, read off the schema: `limitpoint list adam` and the reference page.
//!
//! Names, types, defaults and meanings are those of the types themselves and of their comments, so that they cannot
//! fall behind; formulas and references come from the catalogues.

use serde::Serialize;
use serde_json::Value;

use super::shape::Shape;
use super::source::RecipeSource;
use crate::catalogue::CatalogueEntry;
use crate::data::DataSpec;
use crate::diagnostics::{COLUMNS, ColumnMeaning};
use crate::losses::LossSpec;
use crate::models::{Activation, Initialiser, ModelSpec};
use crate::norms::NormSpec;
use crate::optimisers::OptimiserSpec;
use crate::potentials::PotentialSpec;
use crate::robustness::AttackSpec;
use crate::schedules::ScheduleSpec;

/// A key with what may be written under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The key; empty where the value stands alone.
    pub name: String,
    /// What kind of value it takes.
    pub kind: String,
    /// Whether it must be given.
    pub required: bool,
    /// The value used where nothing is written, as JSON; nothing where absence has its own meaning.
    pub default: Option<String>,
    /// What it sets.
    pub meaning: String,
}

/// One choice, such as Adam among the optimisers; or a table of fixed keys, such as `stop`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// What it is a choice of, in the plural.
    pub concept: String,
    /// Its name in files and on the command line.
    pub key: String,
    /// What it is.
    pub meaning: String,
    /// Its definition.
    pub formula: Option<&'static str>,
    /// Where it comes from.
    pub reference: Option<&'static str>,
    /// What can be set.
    pub settings: Vec<Setting>,
}

/// Where formulas and references come from, for concepts that have them.
type Catalogue = Option<fn() -> Vec<CatalogueEntry>>;

/// Definitions with a word of their own, and their catalogues.
const NAMED: &[(&str, &str, Catalogue)] = &[
    ("OptimiserSpec", "optimisers", Some(OptimiserSpec::catalogue)),
    ("FlowSpec", "flows", None),
    ("ScheduleSpec", "schedules", Some(ScheduleSpec::catalogue)),
    ("NormSpec", "norms", Some(NormSpec::catalogue)),
    ("PotentialSpec", "potentials", Some(PotentialSpec::catalogue)),
    ("LossSpec", "losses", Some(LossSpec::catalogue)),
    ("ModelSpec", "models", Some(ModelSpec::catalogue)),
    ("Activation", "activations", Some(Activation::catalogue)),
    ("Initialiser", "initialisers", Some(Initialiser::catalogue)),
    ("DataSpec", "data", Some(DataSpec::catalogue)),
];

/// Tables of fixed keys that stand in a recipe under a key of their own.
const TABLES: &[(&str, &str)] =
    &[("stop", "Stop"), ("observe", "Observe"), ("tolerance", "Tolerance"), ("stop.certificate", "CertificateRule")];

/// The keys at the top of an experiment file: those of a recipe, and the two that files may use besides.
pub fn recipe_keys() -> Vec<Setting> {
    let file = super::schema();
    let besides = ["base", "optimiser"].into_iter().filter_map(|name| {
        let site = file.get("properties")?.get(name)?;
        let meaning = first_paragraph(site)?;
        Some(Setting { name: name.to_owned(), kind: kind(site), required: false, default: None, meaning })
    });
    besides.chain(settings(Shape::schema())).collect()
}

/// The columns of `metrics.csv` and what is in them.
pub fn columns() -> &'static [ColumnMeaning] {
    COLUMNS
}

/// Every choice and table of a recipe, and the attacks, concept by concept.
pub fn glossary() -> Vec<Instance> {
    let schema = Shape::schema();
    let definitions = schema.get("$defs").and_then(Value::as_object);
    let mut all: Vec<Instance> = TABLES.iter().filter_map(|(key, name)| table(key, definitions?.get(*name)?)).collect();
    for (name, concept, catalogue) in NAMED {
        let site = definitions.and_then(|definitions| definitions.get(*name));
        all.extend(site.into_iter().flat_map(|site| choices(concept, site, *catalogue)));
    }
    let attacks = schemars::schema_for!(AttackSpec).to_value();
    all.extend(choices("attacks", &attacks, Some(AttackSpec::catalogue)));
    for (name, site) in definitions.into_iter().flatten() {
        if NAMED.iter().all(|(known, ..)| known != name) && TABLES.iter().all(|(_, known)| known != name) {
            all.extend(choices(&in_words(name), site, None));
        }
    }
    all
}

/// Everything that bears a name: choices of any concept, tables and their keys, keys of a recipe, built-in experiments,
/// columns of measurements, and short forms such as `gradient` or `lp:3`.
///
/// ```
/// use limitpoint::experiments::explain;
/// let adam = &explain("adam")[0];
/// assert_eq!((adam.concept.as_str(), adam.settings[0].name.as_str()), ("optimisers", "beta1"));
/// assert_eq!(adam.settings[0].default.as_deref(), Some("0.9"));
/// assert!(explain("no such thing").is_empty());
/// ```
pub fn explain(name: &str) -> Vec<Instance> {
    let all = glossary();
    let mut found: Vec<Instance> = all.iter().filter(|instance| instance.key == name).cloned().collect();
    for (key, settings) in tables_of_keys(&all) {
        let whole = |setting: &Setting| match key.as_str() {
            "" => setting.name.clone(),
            key => format!("{key}.{}", setting.name),
        };
        for setting in settings.into_iter().filter(|setting| setting.name == name || whole(setting) == name) {
            let (key, meaning) = (whole(&setting), setting.meaning.clone());
            let setting = Setting { name: String::new(), ..setting };
            let concept = "keys of a recipe".to_owned();
            found.push(Instance { concept, key, meaning, formula: None, reference: None, settings: vec![setting] });
        }
    }
    let plain = |concept: &str, key: &str, meaning: &str| Instance {
        concept: concept.to_owned(),
        key: key.to_owned(),
        meaning: meaning.to_owned(),
        formula: None,
        reference: None,
        settings: Vec::new(),
    };
    let experiments = RecipeSource::catalogue().into_iter().filter(|entry| entry.key == name);
    found.extend(experiments.map(|entry| plain("experiments", name, entry.formula)));
    found.extend(ColumnMeaning::of(name).map(|column| plain("columns of measurements", column.name, column.meaning)));
    for (concept, key, full) in short_forms(name) {
        for whole in all.iter().filter(|instance| instance.concept == concept && instance.key == key) {
            let meaning = format!("{name} is short for {full}. {}", whole.meaning);
            found.push(Instance { meaning, ..whole.clone() });
        }
    }
    found
}

/// The tables whose keys can be asked for one by one.
fn tables_of_keys(all: &[Instance]) -> Vec<(String, Vec<Setting>)> {
    let top = std::iter::once((String::new(), recipe_keys()));
    let tables = all.iter().filter(|instance| instance.concept == "tables of a recipe");
    top.chain(tables.map(|table| (table.key.clone(), table.settings.clone()))).collect()
}

/// What a text stands for that is no key by itself: concept, key, and the whole of it as JSON.
fn short_forms(name: &str) -> Vec<(&'static str, String, String)> {
    fn form<T: Serialize>(concept: &'static str, name: &str, spec: &T) -> Option<(&'static str, String, String)> {
        let whole = serde_json::to_value(spec).ok()?;
        let key =
            whole.as_str().map_or_else(|| whole.as_object()?.keys().next().cloned(), |key| Some(key.to_owned()))?;
        (key != name).then(|| (concept, key, whole.to_string()))
    }
    let optimiser = OptimiserSpec::named(name).and_then(|spec| form("optimisers", name, &spec));
    let norm = name.parse::<NormSpec>().ok().and_then(|spec| form("norms", name, &spec));
    let potential = name.parse::<PotentialSpec>().ok().and_then(|spec| form("potentials", name, &spec));
    [optimiser, norm, potential].into_iter().flatten().collect()
}

/// A table of fixed keys.
fn table(key: &str, site: &Value) -> Option<Instance> {
    let meaning = first_paragraph(site)?;
    let concept = "tables of a recipe".to_owned();
    Some(Instance { concept, key: key.to_owned(), meaning, formula: None, reference: None, settings: settings(site) })
}

/// The choices of a definition; none if it is no choice.
fn choices(concept: &str, site: &Value, catalogue: Catalogue) -> Vec<Instance> {
    let known = catalogue.map(|list| list()).unwrap_or_default();
    let instance = |key: &str, meaning: String, settings: Vec<Setting>| {
        let entry = known.iter().find(|entry| entry.key == key);
        Instance {
            concept: concept.to_owned(),
            key: key.to_owned(),
            meaning,
            formula: entry.map(|entry| entry.formula),
            reference: entry.map(|entry| entry.reference),
            settings,
        }
    };
    let mut found = Vec::new();
    let words = |site: &Value| -> Vec<String> {
        let listed = site.get("enum").and_then(Value::as_array).into_iter().flatten();
        listed.chain(site.get("const")).filter_map(Value::as_str).map(str::to_owned).collect()
    };
    for word in words(site) {
        found.push(instance(&word, String::new(), Vec::new()));
    }
    for option in site.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
        let meaning = first_paragraph(option).unwrap_or_default();
        for word in words(option) {
            found.push(instance(&word, meaning.clone(), Vec::new()));
        }
        for (tag, inner) in option.get("properties").and_then(Value::as_object).into_iter().flatten() {
            found.push(instance(tag, meaning.clone(), settings(inner)));
        }
    }
    found
}

/// The keys of a table, or the one value that stands alone.
fn settings(site: &Value) -> Vec<Setting> {
    let site = resolved(site);
    let Some(properties) = site.get("properties").and_then(Value::as_object) else {
        let meaning = first_paragraph(site).unwrap_or_default();
        return vec![Setting { name: String::new(), kind: kind(site), required: true, default: None, meaning }];
    };
    let required: Vec<&str> =
        site.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let setting = |(name, site): (&String, &Value)| Setting {
        name: name.clone(),
        kind: kind(site),
        required: required.contains(&name.as_str()),
        default: site.get("default").filter(|value| !value.is_null()).map(Value::to_string),
        meaning: first_paragraph(site).unwrap_or_default(),
    };
    properties.iter().map(setting).collect()
}

/// Past a reference to a definition.
fn resolved(site: &Value) -> &Value {
    let target = site.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
    target.and_then(|name| Shape::schema().get("$defs")?.get(name)).unwrap_or(site)
}

/// What kind of value a key takes, in words.
fn kind(site: &Value) -> String {
    if let Some(name) = site.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/")) {
        return match NAMED.iter().find(|(known, ..)| *known == name) {
            Some((_, concept, _)) => format!("one of the {concept}"),
            None => {
                let names: Vec<String> =
                    choices("", resolved(site), None).into_iter().map(|choice| choice.key).collect();
                if names.is_empty() { kind_of_plain(resolved(site)) } else { names.join(", ") }
            }
        };
    }
    kind_of_plain(site)
}

fn kind_of_plain(site: &Value) -> String {
    if let Some(options) = site.get("anyOf").and_then(Value::as_array) {
        let kinds: Vec<String> = options.iter().map(kind).filter(|kind| kind != "nothing").collect();
        return kinds.join(" or ");
    }
    let word = |name: &str| match name {
        "integer" => "whole number".to_owned(),
        "number" => "number".to_owned(),
        "string" => "text".to_owned(),
        "boolean" => "true or false".to_owned(),
        "null" => "nothing".to_owned(),
        "array" => site.get("items").map_or_else(|| "list".to_owned(), |items| format!("list: {}", kind(items))),
        _ => match site.get("additionalProperties").filter(|entries| entries.is_object()) {
            Some(entries) => format!("table of names: {}", kind(entries)),
            None => "table".to_owned(),
        },
    };
    match site.get("type") {
        Some(Value::String(name)) => word(name),
        Some(Value::Array(names)) => {
            let names: Vec<String> =
                names.iter().filter_map(Value::as_str).filter(|name| *name != "null").map(word).collect();
            names.join(" or ")
        }
        _ => "table".to_owned(),
    }
}

fn first_paragraph(site: &Value) -> Option<String> {
    let text = site.get("description")?.as_str()?;
    Some(text.split("\n\n").next().unwrap_or_default().replace('\n', " "))
}

/// `FileFormat` as `file format`.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_catalogue_entry_is_explained_with_its_formula() {
        let all = glossary();
        for (_, concept, catalogue) in NAMED {
            for entry in catalogue.map(|list| list()).unwrap_or_default() {
                let found = all.iter().find(|instance| instance.concept == *concept && instance.key == entry.key);
                let found = found.unwrap_or_else(|| panic!("{concept}: {} is missing", entry.key));
                assert_eq!(found.formula, Some(entry.formula));
                assert!(!found.meaning.is_empty(), "{concept}: {} has no meaning", entry.key);
                for setting in &found.settings {
                    assert!(!setting.kind.is_empty(), "{concept}: {} {setting:?}", entry.key);
                    assert!(setting.name.is_empty() || !setting.meaning.is_empty(), "{}: {setting:?}", entry.key);
                }
            }
        }
        for entry in AttackSpec::catalogue() {
            assert!(explain(entry.key).iter().any(|found| found.concept == "attacks"), "{}", entry.key);
        }
    }

    #[test]
    fn names_of_every_kind_are_found() {
        for (name, concept, key) in [
            ("adam", "optimisers", "adam"),
            ("gradient", "optimisers", "steepest"),
            ("l3", "norms", "lp"),
            ("lp:4/3", "norms", "lp"),
            ("hyperbolic:0.1", "potentials", "hyperbolic"),
            ("flow-resolved", "schedules", "flow-resolved"),
            ("gaussians", "data", "gaussians"),
            ("stop", "tables of a recipe", "stop"),
            ("log10_loss", "keys of a recipe", "stop.log10_loss"),
            ("stop.log10_loss", "keys of a recipe", "stop.log10_loss"),
            ("histogram_bins", "keys of a recipe", "observe.histogram_bins"),
            ("seeds", "keys of a recipe", "seeds"),
            ("logarithmic", "spacing", "logarithmic"),
            ("mini", "batching", "mini"),
            ("showcase", "experiments", "showcase"),
            ("margin.l2", "columns of measurements", "margin.NORM"),
        ] {
            let found = explain(name);
            assert!(found.iter().any(|one| one.concept == concept && one.key == key), "{name}: {found:?}");
        }
        let spectral: Vec<String> = explain("spectral").into_iter().map(|one| one.concept).collect();
        assert_eq!(spectral, ["norms", "optimisers"]);
        assert!(explain("base")[0].meaning.contains("starts from"));
        assert!(explain("nonsense").is_empty());
    }

    #[test]
    fn settings_carry_kind_default_and_meaning() {
        let gaussians = explain("gaussians").remove(0);
        let count = gaussians.settings.iter().find(|setting| setting.name == "count").unwrap();
        assert_eq!(
            (count.kind.as_str(), count.default.as_deref(), count.required),
            ("whole number", Some("100"), false)
        );
        let network = explain("network").remove(0);
        let widths = network.settings.iter().find(|setting| setting.name == "widths").unwrap();
        assert_eq!((widths.kind.as_str(), widths.required), ("list: whole number", true));
        let keys = recipe_keys();
        assert!(keys.iter().any(|key| key.name == "data" && key.required && key.kind == "one of the data"));
    }
}
