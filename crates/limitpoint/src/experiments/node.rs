//! TOML values that remember where they were written.

use std::ops::Range;
use std::sync::Arc;

use indexmap::IndexMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::complaint::{RecipeError, Spot, Text};

/// A value and its place; merging trees of these keeps every place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub kind: Kind,
    pub spot: Spot,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Text(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Date(String),
    List(Vec<Node>),
    Table(Table),
}

/// Keys in the order they were written.
pub(super) type Table = IndexMap<String, Entry>;

/// A value under its key.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Where the key stands.
    pub key: Spot,
    pub node: Node,
}

impl Node {
    pub fn new(kind: Kind, spot: &Spot) -> Self {
        Self { kind, spot: spot.clone() }
    }

    /// A table of one key.
    pub fn single(key: &str, node: Node) -> Self {
        let spot = node.spot.clone();
        let entry = Entry { key: spot.clone(), node };
        Self { kind: Kind::Table(Table::from_iter([(key.to_owned(), entry)])), spot }
    }

    /// Reads a whole file.
    pub fn document(text: &Arc<Text>) -> Result<Self, RecipeError> {
        let table = DeTable::parse(&text.content).map_err(|error| {
            let length = text.content.len();
            let span = error.span().unwrap_or(length..length);
            let problem = error.message().replace('\n', ", ");
            RecipeError::Syntax { spot: Box::new(Spot::new(text, span)), problem }
        })?;
        let kind = Kind::Table(read_table(table.into_inner(), text, 0)?);
        Ok(Self { kind, spot: Spot::new(text, 0..0) })
    }

    /// Reads one TOML value from a part of a text; `None` if it is none.
    pub fn value(text: &Arc<Text>, range: Range<usize>) -> Option<Result<Self, RecipeError>> {
        let value = DeValue::parse(text.content.get(range.clone())?).ok()?;
        Some(read_value(value, text, range.start))
    }

    /// A value nobody wrote in a file, at a place that stands for it.
    pub fn plain(value: &toml::Value, spot: &Spot) -> Self {
        let kind = match value {
            toml::Value::String(text) => Kind::Text(text.clone()),
            toml::Value::Integer(number) => Kind::Integer(i128::from(*number)),
            toml::Value::Float(number) => Kind::Float(*number),
            toml::Value::Boolean(flag) => Kind::Boolean(*flag),
            toml::Value::Datetime(date) => Kind::Date(date.to_string()),
            toml::Value::Array(items) => Kind::List(items.iter().map(|item| Self::plain(item, spot)).collect()),
            toml::Value::Table(table) => {
                let entry = |value| Entry { key: spot.clone(), node: Self::plain(value, spot) };
                Kind::Table(table.iter().map(|(key, value)| (key.clone(), entry(value))).collect())
            }
        };
        Self::new(kind, spot)
    }

    pub fn table(&self) -> Option<&Table> {
        if let Kind::Table(table) = &self.kind { Some(table) } else { None }
    }

    pub fn table_mut(&mut self) -> Option<&mut Table> {
        if let Kind::Table(table) = &mut self.kind { Some(table) } else { None }
    }

    pub fn text(&self) -> Option<&str> {
        if let Kind::Text(text) = &self.kind { Some(text) } else { None }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.table()?.get(key).map(|entry| &entry.node)
    }

    /// The key and value of a table with exactly one entry.
    pub fn only(&self) -> Option<(&str, &Node)> {
        let table = self.table().filter(|table| table.len() == 1)?;
        table.first().map(|(key, entry)| (key.as_str(), &entry.node))
    }
}

fn read_table(table: DeTable<'_>, text: &Arc<Text>, offset: usize) -> Result<Table, RecipeError> {
    let entries = table.into_iter().map(|(key, value)| {
        let spot = shifted(text, key.span(), offset);
        Ok((key.into_inner().into_owned(), Entry { key: spot, node: read_value(value, text, offset)? }))
    });
    entries.collect()
}

fn read_value(value: Spanned<DeValue<'_>>, text: &Arc<Text>, offset: usize) -> Result<Node, RecipeError> {
    let spot = shifted(text, value.span(), offset);
    let kind = match value.into_inner() {
        DeValue::String(text) => Kind::Text(text.into_owned()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Kind::Integer(number),
            Err(_) => return Err(RecipeError::value(&spot, "the number has too many digits; write it as 1e30")),
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number_read) if number_read.is_finite() || number.as_str().contains(['n', 'N']) => {
                Kind::Float(number_read)
            }
            _ => {
                return Err(RecipeError::value(
                    &spot,
                    "the number is beyond the largest double, 1.8e308; use logarithms",
                ));
            }
        },
        DeValue::Boolean(flag) => Kind::Boolean(flag),
        DeValue::Datetime(date) => Kind::Date(date.to_string()),
        DeValue::Array(items) => {
            Kind::List(items.into_iter().map(|item| read_value(item, text, offset)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Kind::Table(read_table(table, text, offset)?),
    };
    Ok(Node { kind, spot })
}

fn shifted(text: &Arc<Text>, span: Range<usize>, offset: usize) -> Spot {
    Spot::new(text, span.start + offset..span.end + offset)
}
