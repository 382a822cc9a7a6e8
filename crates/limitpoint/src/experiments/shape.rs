//! What type stands at which path of a recipe, told by its JSON schema: one description serves serde, editors, merging
//! and overrides, so that none of them can fall behind.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::Recipe;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| schemars::schema_for!(Recipe).to_value());

/// The type at one path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    site: &'static Value,
}

/// The kinds of type that matter here.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// Fixed keys.
    Struct,
    /// Names of the user's choice.
    Map(Shape),
    /// One of several, as a word or as a table of one key.
    Choice,
    List(Shape),
    Text,
    Number,
    /// Flags, and what may be of several types.
    Other,
}

impl Shape {
    /// The recipe as serde sees it.
    pub fn recipe() -> Self {
        Self { site: &SCHEMA }
    }

    /// The schema as serde's derive describes it, without the conveniences of files.
    pub fn schema() -> &'static Value {
        &SCHEMA
    }

    /// A definition by the name of its Rust type.
    pub fn of(name: &str) -> Option<Self> {
        SCHEMA.get("$defs")?.get(name).map(|site| Self { site })
    }

    /// Past references and "or null": the object itself, and the name of its Rust type.
    fn resolve(self) -> (&'static Value, Option<&'static str>) {
        let (mut site, mut name) = (self.site, None);
        loop {
            if let Some(target) =
                site.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"))
            {
                let Some(next) = Self::of(target) else { return (site, name) };
                (site, name) = (next.site, Some(target));
            } else if let Some([some, null]) = site.get("anyOf").and_then(Value::as_array).map(Vec::as_slice)
                && null.get("type").and_then(Value::as_str) == Some("null")
            {
                site = some;
            } else {
                return (site, name);
            }
        }
    }

    /// The name of the Rust type, where it has a definition.
    pub fn type_name(self) -> Option<&'static str> {
        self.resolve().1
    }

    pub fn form(self) -> Form {
        let site = self.resolve().0;
        let named = |wanted: &str| match site.get("type") {
            Some(Value::String(kind)) => kind == wanted,
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
            _ => false,
        };
        match site.get("additionalProperties") {
            _ if site.get("oneOf").is_some() || site.get("enum").is_some() => Form::Choice,
            _ if site.get("properties").is_some() => Form::Struct,
            Some(entries @ Value::Object(_)) => Form::Map(Self { site: entries }),
            _ if named("string") => Form::Text,
            _ if named("integer") || named("number") => Form::Number,
            _ if named("array") => site.get("items").map_or(Form::Other, |items| Form::List(Self { site: items })),
            _ => Form::Other,
        }
    }

    fn properties(self) -> Option<&'static Map<String, Value>> {
        self.resolve().0.get("properties")?.as_object()
    }

    pub fn field(self, key: &str) -> Option<Self> {
        self.properties()?.get(key).map(|site| Self { site })
    }

    pub fn fields(self) -> Vec<&'static str> {
        self.properties().map(|fields| fields.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// Tags of a choice, with the shape of their settings where they have any.
    pub fn variants(self) -> Vec<(&'static str, Option<Self>)> {
        let site = self.resolve().0;
        let words = |site: &'static Value| site.get("enum").and_then(Value::as_array).into_iter().flatten();
        let mut variants: Vec<_> = words(site).filter_map(|word| Some((word.as_str()?, None))).collect();
        for option in site.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
            variants.extend(option.get("const").and_then(Value::as_str).map(|word| (word, None)));
            variants.extend(words(option).filter_map(|word| Some((word.as_str()?, None))));
            let settings = option.get("properties").and_then(Value::as_object).into_iter().flatten();
            variants.extend(settings.map(|(tag, site)| (tag.as_str(), Some(Self { site }))));
        }
        variants
    }

    /// The shape of one variant's settings.
    pub fn variant(self, tag: &str) -> Option<Option<Self>> {
        self.variants().into_iter().find(|(known, _)| *known == tag).map(|(_, settings)| settings)
    }

    /// The value used where nothing is written.
    pub fn default(self) -> Option<toml::Value> {
        let value = self.site.get("default").filter(|value| !value.is_null())?;
        toml::Value::try_from(value).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_recipe_has_a_known_form() {
        let root = Shape::recipe();
        let field = |path: &str| path.split('.').try_fold(root, Shape::field).unwrap();
        for choice in ["data", "model", "loss", "initialiser", "schedule", "batching", "reduction", "observe.spacing"] {
            assert!(matches!(field(choice).form(), Form::Choice), "{choice}");
        }
        for map in ["optimisers", "flows", "schedules"] {
            let Form::Map(entries) = field(map).form() else { panic!("{map}") };
            assert!(matches!(entries.form(), Form::Choice), "{map}");
        }
        for number in ["data_seed", "stop.steps", "stop.log10_loss", "observe.checkpoint_every"] {
            assert!(matches!(field(number).form(), Form::Number), "{number}");
        }
        assert!(matches!(field("stop.certificate").form(), Form::Struct));
        assert!(matches!(field("title").form(), Form::Text));
        let Form::List(norms) = field("observe.norms").form() else { panic!() };
        assert_eq!(norms.type_name(), Some("NormSpec"));
        assert!(norms.variants().iter().any(|(tag, settings)| *tag == "group21" && settings.is_none()));
        let network = field("model").variant("network").unwrap().unwrap();
        assert!(network.field("widths").is_some() && network.field("width").is_none());
        assert_eq!(network.field("biases").unwrap().default(), Some(toml::Value::String("none".into())));
    }

    #[test]
    fn variants_are_those_serde_knows() {
        let tags = |name: &str| Shape::of(name).unwrap().variants().len();
        assert_eq!(tags("OptimiserSpec"), crate::optimisers::OptimiserSpec::catalogue().len());
        assert_eq!(tags("LossSpec"), crate::losses::LossSpec::catalogue().len());
        assert_eq!(tags("PotentialSpec"), crate::potentials::PotentialSpec::catalogue().len());
        assert_eq!(tags("DataSpec"), crate::data::DataSpec::catalogue().len());
        assert_eq!(tags("ScheduleSpec"), crate::schedules::ScheduleSpec::catalogue().len());
    }
}
