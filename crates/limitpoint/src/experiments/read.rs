//! From a tree of placed values to any specification; every refusal points at the value that caused it.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::complaint::{Hint, RecipeError, Spot};
use super::node::{Entry, Kind, Node};

/// Reads a specification from a tree. NaN is no setting, and infinity is one only as the exponent `p` of a norm.
pub(super) fn read<T: DeserializeOwned>(node: &Node) -> Result<T, RecipeError> {
    require_numbers(node, "")?;
    T::deserialize(node).map_err(|refusal| refusal.at(&node.spot).into())
}

/// Refuses values that are written as numbers and are none.
fn require_numbers(node: &Node, key: &str) -> Result<(), RecipeError> {
    match &node.kind {
        // the exponent of ℓ∞
        Kind::Float(f64::INFINITY) if key == "p" => Ok(()),
        Kind::Float(number) if !number.is_finite() => {
            let named = if key.is_empty() { "this".to_owned() } else { format!("'{key}'") };
            Err(RecipeError::value(&node.spot, format!("{named} should be a finite number, but is {number}")))
        }
        Kind::List(items) => items.iter().try_for_each(|item| require_numbers(item, key)),
        Kind::Table(table) => table.iter().try_for_each(|(key, entry)| require_numbers(&entry.node, key)),
        _ => Ok(()),
    }
}

/// A refusal on its way up: the innermost place, and the keys passed since.
#[derive(Debug)]
pub(super) struct Refusal {
    fault: Fault,
    spot: Option<Box<Spot>>,
    /// Innermost first.
    path: Vec<String>,
}

#[derive(Debug)]
enum Fault {
    UnknownKey(String, Hint),
    UnknownChoice(String, Hint),
    Missing(&'static str),
    Wrong { expected: String, found: String },
    Other(String),
}

impl Refusal {
    fn new(fault: Fault) -> Self {
        Self { fault, spot: None, path: Vec::new() }
    }

    fn wrong(expected: &dyn Expected, found: String) -> Self {
        Self::new(Fault::Wrong { expected: in_words(&expected.to_string()), found })
    }

    fn at(mut self, spot: &Spot) -> Self {
        self.spot.get_or_insert_with(|| Box::new(spot.clone()));
        self
    }

    fn inside(mut self, key: &str) -> Self {
        self.path.push(key.to_owned());
        self
    }
}

impl From<Refusal> for RecipeError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { fault, spot, mut path } = refusal;
        let spot = spot.unwrap_or_else(|| Box::new(Spot::nowhere()));
        path.reverse();
        let inside = path.join(".");
        match fault {
            Fault::UnknownKey(key, hint) => Self::UnknownKey { spot, key, inside, hint: Box::new(hint) },
            Fault::UnknownChoice(found, hint) => Self::UnknownChoice { spot, found, inside, hint: Box::new(hint) },
            Fault::Missing(key) => Self::MissingKey { spot, key: key.to_owned(), inside },
            Fault::Wrong { expected, found } if inside.is_empty() => {
                Self::Value { spot, problem: format!("this should be {expected}, but is {found}") }
            }
            Fault::Wrong { expected, found } => {
                Self::Value { spot, problem: format!("'{inside}' should be {expected}, but is {found}") }
            }
            Fault::Other(problem) if inside.is_empty() => Self::Value { spot, problem },
            Fault::Other(problem) => Self::Value { spot, problem: format!("'{inside}': {problem}") },
        }
    }
}

/// What serde calls a type, as a person would.
fn in_words(expected: &str) -> String {
    match expected {
        "usize" | "u64" => "a whole number, 0 or more".into(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "isize" | "i64" | "i32" | "i16" | "i8" => "a whole number".into(),
        "f64" | "f32" => "a number".into(),
        "a string" | "path string" => "a text in quotes".into(),
        "a sequence" => "a list in square brackets".into(),
        "a boolean" => "true or false".into(),
        "a character" => "a single character in quotes".into(),
        other if other.starts_with("struct ") || other == "a map" => "a table".into(),
        other => other.replace("an array of length", "a list of length"),
    }
}

fn described(found: &Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(flag) => flag.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => format!("{number:?}"),
        Unexpected::Str(text) => format!("the text \"{}\"", text.escape_debug()),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a table".into(),
        other => other.to_string(),
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.fault)
    }
}

impl std::error::Error for Refusal {}

impl de::Error for Refusal {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Fault::Other(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::wrong(expected, described(&found))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::wrong(expected, described(&found))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::wrong(expected, format!("of length {length}"))
    }

    fn unknown_variant(found: &str, allowed: &'static [&'static str]) -> Self {
        Self::new(Fault::UnknownChoice(found.to_owned(), Hint::new(found, allowed)))
    }

    fn unknown_field(found: &str, allowed: &'static [&'static str]) -> Self {
        Self::new(Fault::UnknownKey(found.to_owned(), Hint::new(found, allowed)))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::new(Fault::Missing(key))
    }
}

/// Methods for whole numbers accept 1e5, which TOML calls a float.
macro_rules! whole_numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
            const EXACT: f64 = 9_007_199_254_740_992.0; // 2⁵³
            match self.kind {
                Kind::Float(number) if number.fract() == 0.0 && number.abs() <= EXACT => {
                    visitor.visit_i64(number as i64)
                }
                _ => self.deserialize_any(visitor),
            }
        })*
    };
}

impl<'de> de::Deserializer<'de> for &'de Node {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match &self.kind {
            Kind::Text(text) => visitor.visit_borrowed_str(text),
            Kind::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => visitor.visit_i64(number),
                (_, Ok(number)) => visitor.visit_u64(number),
                _ => Err(Refusal::wrong(&"a whole number below 2^64", number.to_string())),
            },
            Kind::Float(number) => visitor.visit_f64(*number),
            Kind::Boolean(flag) => visitor.visit_bool(*flag),
            Kind::Date(date) => Err(Refusal::wrong(&visitor, format!("the date {date}; put texts in quotes"))),
            Kind::List(items) => {
                let mut access = Items { rest: items.iter() };
                let value = visitor.visit_seq(&mut access)?;
                let left = access.rest.len();
                let expected = format!("a list of length {}", items.len() - left);
                if left == 0 {
                    Ok(value)
                } else {
                    Err(Refusal::wrong(&expected.as_str(), format!("of length {}", items.len())))
                }
            }
            Kind::Table(table) => visitor.visit_map(Pairs { rest: table.iter(), next: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        match (&self.kind, self.table().filter(|table| table.len() == 1).and_then(|table| table.first())) {
            (Kind::Text(text), _) => {
                let word: StrDeserializer<'_, Refusal> = text.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            (_, Some((tag, entry))) => visitor.visit_enum(Variant { tag, entry }),
            (kind, _) => {
                let found = match kind {
                    Kind::Table(table) if table.is_empty() => "an empty table".into(),
                    Kind::Table(table) => {
                        format!("a table of {}", table.keys().map(String::as_str).collect::<Vec<_>>().join(" and "))
                    }
                    Kind::List(_) => "a list".into(),
                    Kind::Integer(number) => number.to_string(),
                    Kind::Float(number) => format!("{number:?}"),
                    Kind::Boolean(flag) => flag.to_string(),
                    Kind::Text(text) | Kind::Date(text) => text.clone(),
                };
                Err(Refusal::wrong(&format!("exactly one of {}", variants.join(", ")).as_str(), found))
            }
        }
    }

    whole_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

struct Items<'de> {
    rest: std::slice::Iter<'de, Node>,
}

impl<'de> de::SeqAccess<'de> for Items<'de> {
    type Error = Refusal;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Refusal> {
        let Some(node) = self.rest.next() else { return Ok(None) };
        seed.deserialize(node).map(Some).map_err(|refusal| refusal.at(&node.spot))
    }
}

struct Pairs<'de> {
    rest: indexmap::map::Iter<'de, String, Entry>,
    next: Option<(&'de str, &'de Entry)>,
}

impl<'de> de::MapAccess<'de> for Pairs<'de> {
    type Error = Refusal;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refusal> {
        let Some((key, entry)) = self.rest.next() else { return Ok(None) };
        self.next = Some((key, entry));
        let word: StrDeserializer<'_, Refusal> = key.as_str().into_deserializer();
        seed.deserialize(word).map(Some).map_err(|refusal| refusal.at(&entry.key))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refusal> {
        let (key, entry) = self.next.take().ok_or_else(|| de::Error::custom("a value was asked for before its key"))?;
        seed.deserialize(&entry.node).map_err(|refusal| refusal.at(&entry.node.spot).inside(key))
    }
}

struct Variant<'de> {
    tag: &'de str,
    entry: &'de Entry,
}

impl<'de> de::EnumAccess<'de> for Variant<'de> {
    type Error = Refusal;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Refusal> {
        let word: StrDeserializer<'_, Refusal> = self.tag.into_deserializer();
        Ok((seed.deserialize(word).map_err(|refusal| refusal.at(&self.entry.key))?, self))
    }
}

impl Variant<'_> {
    fn place(&self, refusal: Refusal) -> Refusal {
        refusal.at(&self.entry.node.spot).inside(self.tag)
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'de> {
    type Error = Refusal;

    fn unit_variant(self) -> Result<(), Refusal> {
        let problem = format!("{0} has no settings; write \"{0}\"", self.tag);
        Err(Refusal::new(Fault::Other(problem)).at(&self.entry.node.spot))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Refusal> {
        seed.deserialize(&self.entry.node).map_err(|refusal| self.place(refusal))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Refusal> {
        de::Deserializer::deserialize_any(&self.entry.node, visitor).map_err(|refusal| self.place(refusal))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Refusal> {
        de::Deserializer::deserialize_any(&self.entry.node, visitor).map_err(|refusal| self.place(refusal))
    }
}
