//! What files and overrides may write short: texts for choices, one `optimiser` for a table of them.

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use super::complaint::{RecipeError, Spot, Text};
use super::node::{Entry, Kind, Node, Table};
use super::ranges::split_commas;
use super::read::read;
use super::shape::{Form, Shape};
use crate::losses::LossSpec;
use crate::models::ModelSpec;
use crate::norms::NormSpec;
use crate::optimisers::OptimiserSpec;
use crate::potentials::PotentialSpec;
use crate::schedules::ScheduleSpec;

/// Texts within texts, as in `switch(first=…, second=…)`, go no deeper.
const DEEPEST: usize = 24;

/// Writes every short form in full, in place; keys that no shape knows are left for the reader to refuse.
pub(super) fn write_out(shape: Shape, node: &mut Node, depth: usize) -> Result<(), RecipeError> {
    match (shape.form(), &mut node.kind) {
        (Form::Struct, Kind::Table(table)) => {
            for (key, entry) in table {
                if let Some(field) = shape.field(key) {
                    write_out(field, &mut entry.node, depth)?;
                }
            }
        }
        (Form::Map(entries), Kind::Table(table)) => {
            for entry in table.values_mut() {
                write_out(entries, &mut entry.node, depth)?;
            }
        }
        (Form::List(items), Kind::List(nodes)) => {
            for item in nodes {
                write_out(items, item, depth)?;
            }
        }
        (Form::Choice, Kind::Text(text)) => *node = from_text(shape, text, &node.spot, depth)?,
        (Form::Choice, Kind::Table(table)) if table.len() == 1 => {
            for (tag, entry) in table {
                match shape.variant(tag) {
                    Some(Some(settings)) => write_out(settings, &mut entry.node, depth)?,
                    // `[model.linear]` is "linear"
                    Some(None) if entry.node.table().is_some_and(Table::is_empty) => {
                        node.kind = Kind::Text(tag.clone());
                        break;
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// A choice written as text: a tag, the type's own text form, or `tag(setting=value, …)`.
fn from_text(shape: Shape, text: &str, spot: &Spot, depth: usize) -> Result<Node, RecipeError> {
    let trimmed = text.trim();
    if matches!(shape.variant(trimmed), Some(None)) {
        return Ok(Node::new(Kind::Text(trimmed.to_owned()), spot));
    }
    let own_form = match shape.type_name() {
        Some("OptimiserSpec") => OptimiserSpec::named(trimmed).map(|spec| written(&spec)),
        Some("ModelSpec") => ModelSpec::from_words(trimmed).map(|model| model.and_then(|model| written(&model))),
        Some("ScheduleSpec") => Some(parsed::<ScheduleSpec>(trimmed)),
        Some("NormSpec") => Some(parsed::<NormSpec>(trimmed)),
        Some("PotentialSpec") => Some(parsed::<PotentialSpec>(trimmed)),
        Some("LossSpec") => Some(parsed::<LossSpec>(trimmed)),
        _ => None,
    };
    if let Some(Ok(value)) = &own_form {
        return Ok(Node::plain(value, spot));
    }
    let (tag, settings) = match trimmed.split_once('(') {
        Some((tag, rest)) => (tag.trim(), rest.trim_end().strip_suffix(')')),
        None => (trimmed, Some("")),
    };
    if let (Some(Some(variant)), Some(settings)) = (shape.variant(tag), settings) {
        return Ok(Node::single(tag, with_settings(tag, variant, settings, spot, depth)?));
    }
    match own_form {
        Some(Err(problem)) if trimmed.contains(['(', ':', ' ']) => Err(RecipeError::value(spot, problem)),
        _ if settings.is_none() => {
            Err(RecipeError::value(spot, format!("the closing bracket of '{trimmed}' is missing")))
        }
        _ => Err(RecipeError::choice(spot, tag, words(shape))),
    }
}

/// The words a choice can be written with.
fn words(shape: Shape) -> Vec<&'static str> {
    let short = ["gradient", "sign", "coordinate", "spectral"];
    let own = if shape.type_name() == Some("OptimiserSpec") { short.as_slice() } else { &[] };
    own.iter().copied().chain(shape.variants().into_iter().map(|(tag, _)| tag)).collect()
}

fn parsed<T: std::str::FromStr<Err: ToString> + Serialize>(text: &str) -> Result<toml::Value, String> {
    written(&text.parse::<T>().map_err(|error| error.to_string())?)
}

fn written(spec: &impl Serialize) -> Result<toml::Value, String> {
    toml::Value::try_from(spec).map_err(|error| error.to_string())
}

/// The settings between the brackets of `tag(name=value, …)`, or the one value of `factor(0.5)`.
fn with_settings(tag: &str, shape: Shape, settings: &str, spot: &Spot, depth: usize) -> Result<Node, RecipeError> {
    if depth >= DEEPEST {
        return Err(RecipeError::value(spot, format!("more than {DEEPEST} texts stand within each other; use tables")));
    }
    if !matches!(shape.form(), Form::Struct | Form::Map(_)) {
        return from_piece(shape, settings, spot, depth + 1);
    }
    let mut table = Table::new();
    for piece in
        split_commas(settings).into_iter().map(|range| settings[range].trim()).filter(|piece| !piece.is_empty())
    {
        let (name, value) = piece
            .split_once('=')
            .ok_or_else(|| RecipeError::value(spot, format!("write '{piece}' of {tag} as setting=value")))?;
        let name = name.trim().trim_matches(['"', '\'']);
        let field = match shape.form() {
            Form::Map(entries) => entries,
            _ => shape.field(name).ok_or_else(|| RecipeError::UnknownKey {
                spot: Box::new(spot.clone()),
                key: name.to_owned(),
                inside: tag.to_owned(),
                hint: Box::new(super::complaint::Hint::new(name, shape.fields())),
            })?,
        };
        let node = from_piece(field, value, spot, depth + 1)?;
        if table.contains_key(name) {
            return Err(RecipeError::value(spot, format!("'{name}' is given twice in {tag}(…); give it once")));
        }
        table.insert(name.to_owned(), Entry { key: spot.clone(), node });
    }
    Ok(Node::new(Kind::Table(table), spot))
}

/// A value within a text, which has the place of the whole text.
fn from_piece(shape: Shape, value: &str, spot: &Spot, depth: usize) -> Result<Node, RecipeError> {
    let text = Arc::new(Text { name: String::new(), content: value.to_owned(), is_override: true });
    let mut node = from_words(shape, &text, 0..value.len(), depth)?;
    place_all(&mut node, spot);
    Ok(node)
}

fn place_all(node: &mut Node, spot: &Spot) {
    node.spot = spot.clone();
    match &mut node.kind {
        Kind::List(items) => items.iter_mut().for_each(|item| place_all(item, spot)),
        Kind::Table(table) => table.values_mut().for_each(|entry| {
            entry.key = spot.clone();
            place_all(&mut entry.node, spot);
        }),
        _ => {}
    }
}

/// A value as the command line writes it: TOML, a list of bare words, or one bare word; short forms are written out.
pub(super) fn from_words(
    shape: Shape,
    text: &Arc<Text>,
    range: Range<usize>,
    depth: usize,
) -> Result<Node, RecipeError> {
    let range = trim(&text.content, range);
    let (words, spot) = (&text.content[range.clone()], Spot::new(text, range.clone()));
    let bare = || Node::new(Kind::Text(words.to_owned()), &spot);
    let mut node = match (Node::value(text, range.clone()).transpose()?, shape.form()) {
        (Some(node), Form::Text) if node.text().is_none() => bare(),
        (Some(node), _) => node,
        (None, form) if words.starts_with('[') && words.ends_with(']') && depth < DEEPEST => {
            let items = if let Form::List(items) = form { items } else { shape };
            let inner = range.start + 1..range.end - 1;
            let pieces = split_commas(&text.content[inner.clone()]).into_iter();
            let pieces = pieces.map(|piece| piece.start + inner.start..piece.end + inner.start);
            let nodes = pieces.map(|piece| from_words(items, text, piece, depth + 1)).collect::<Result<_, _>>()?;
            Node::new(Kind::List(nodes), &spot)
        }
        (None, _) if words.starts_with('{') => {
            let problem = "this is no TOML table; put texts in quotes, as in {steepest = {norm = \"l1\"}}";
            return Err(RecipeError::value(&spot, problem));
        }
        (None, _) => bare(),
    };
    write_out(shape, &mut node, depth)?;
    Ok(node)
}

pub(super) fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

/// Turns `optimiser` into a table `optimisers` of one; says whether it did.
pub(super) fn name_the_optimiser(table: &mut Table) -> Result<bool, RecipeError> {
    let Some(mut entry) = table.shift_remove("optimiser") else { return Ok(false) };
    if table.contains_key("optimisers") {
        let problem = "a file gives either `optimiser` or `optimisers`, not both; move this one into the table";
        return Err(RecipeError::value(&entry.key, problem));
    }
    if let Some(shape) = optimiser_shape() {
        write_out(shape, &mut entry.node, 0)?;
    }
    let node = Node::single(&automatic_name(&entry.node), entry.node);
    table.insert("optimisers".into(), Entry { key: entry.key, node });
    Ok(true)
}

/// The shape of an entry of `optimisers`.
pub(super) fn optimiser_shape() -> Option<Shape> {
    match Shape::recipe().field("optimisers")?.form() {
        Form::Map(entries) => Some(entries),
        _ => None,
    }
}

/// The name of an optimiser that was given none: `gradient`, `sign`, `coordinate`, `spectral` or `steepest-NORM` for
/// steepest descent, the tag for all others.
pub(super) fn automatic_name(node: &Node) -> String {
    let Some((tag, settings)) = node.only() else {
        return node.text().unwrap_or("optimiser").to_owned();
    };
    let norm = settings.get("norm").and_then(|norm| read::<NormSpec>(norm).ok());
    match (tag, norm) {
        ("steepest", Some(NormSpec::L2)) => "gradient".into(),
        ("steepest", Some(NormSpec::Linf)) => "sign".into(),
        ("steepest", Some(NormSpec::L1)) => "coordinate".into(),
        ("steepest", Some(NormSpec::Spectral)) => "spectral".into(),
        ("steepest", Some(norm)) => format!("steepest-{}", norm.key()),
        _ => tag.to_owned(),
    }
}
