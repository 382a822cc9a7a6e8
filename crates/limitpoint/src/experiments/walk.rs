//! Following a key through a tree, and putting a value at its end.

use std::borrow::Cow;

use super::complaint::Spot;
use super::node::{Entry, Kind, Node, Table};
use super::shape::{Form, Shape};

/// A place in the tree while a key is followed.
pub(super) struct Walk<'t> {
    pub path: Vec<String>,
    pub shape: Shape,
    /// What is there, or the default, or nothing.
    pub node: Option<Cow<'t, Node>>,
}

impl Walk<'_> {
    /// One key further, to a value of this shape.
    pub fn enter(&mut self, key: &str, shape: Option<Shape>) {
        self.node = match self.node.take() {
            Some(Cow::Borrowed(node)) => node.get(key).map(Cow::Borrowed),
            Some(Cow::Owned(node)) => node.get(key).cloned().map(Cow::Owned),
            None => None,
        };
        if let Some(shape) = shape {
            self.shape = shape;
            self.node = self.node.take().or_else(|| default_node(shape).map(Cow::Owned));
        }
        self.path.push(key.to_owned());
    }
}

fn default_node(shape: Shape) -> Option<Node> {
    shape.default().map(|value| Node::plain(&value, &Spot::nowhere()))
}

/// Puts a value at a path whose shapes start at `shape`; tables on the way are made, with their defaults, where
/// missing.
pub(super) fn put(tree: &mut Node, shape: Option<Shape>, path: &[String], spot: &Spot, value: Node) {
    let Some((key, rest)) = path.split_first() else {
        *tree = value;
        return;
    };
    let choice = shape.is_some_and(|shape| matches!(shape.form(), Form::Choice));
    let stays = if choice { tree.only().is_some_and(|(tag, _)| tag == key) } else { tree.table().is_some() };
    if !stays {
        tree.kind = Kind::Table(Table::new());
        tree.spot = spot.clone();
    }
    let inner = shape.and_then(|shape| match shape.form() {
        Form::Choice => shape.variant(key).flatten(),
        Form::Map(entries) => Some(entries),
        _ => shape.field(key),
    });
    if let Some(table) = tree.table_mut() {
        let entry = table.entry(key.clone()).or_insert_with(|| {
            let node = inner.and_then(default_node).unwrap_or_else(|| Node::new(Kind::Table(Table::new()), spot));
            Entry { key: spot.clone(), node }
        });
        put(&mut entry.node, inner, rest, spot, value);
    }
}
