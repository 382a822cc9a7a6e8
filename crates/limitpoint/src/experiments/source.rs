//! Where experiments come from: built-ins, files, and the bases they stand on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::complaint::{Hint, RecipeError, Spot, Text};
use super::node::{Kind, Node, Table};
use super::shape::{Form, Shape};
use super::shorthand::{name_the_optimiser, write_out};
use crate::catalogue::CatalogueEntry;

/// The experiments that come with the crate.
const BUILTINS: &[(&str, &str)] = &[
    ("digits", include_str!("../../experiments/digits.toml")),
    ("linear", include_str!("../../experiments/linear.toml")),
    ("plane", include_str!("../../experiments/plane.toml")),
    ("showcase", include_str!("../../experiments/showcase.toml")),
    ("sparse", include_str!("../../experiments/sparse.toml")),
    ("a-counterexample", include_str!("../../experiments/paper-a/a-counterexample.toml")),
    ("a-flows", include_str!("../../experiments/paper-a/a-flows.toml")),
    ("a-flows-classes", include_str!("../../experiments/paper-a/a-flows-classes.toml")),
    ("a-sparse-teacher", include_str!("../../experiments/paper-a/a-sparse-teacher.toml")),
    ("a-teacher", include_str!("../../experiments/paper-a/a-teacher.toml")),
    ("a-adam", include_str!("../../experiments/paper-a/a-adam.toml")),
    ("a-shampoo", include_str!("../../experiments/paper-a/a-shampoo.toml")),
    ("a-adam-mnist", include_str!("../../experiments/paper-a/a-adam-mnist.toml")),
    ("a-shampoo-mnist", include_str!("../../experiments/paper-a/a-shampoo-mnist.toml")),
    ("b-adagrad", include_str!("../../experiments/paper-b/b-adagrad.toml")),
    ("b-boosting", include_str!("../../experiments/paper-b/b-boosting.toml")),
    ("b-bregman", include_str!("../../experiments/paper-b/b-bregman.toml")),
    ("b-deep", include_str!("../../experiments/paper-b/b-deep.toml")),
    ("b-example-2", include_str!("../../experiments/paper-b/b-example-2.toml")),
    ("b-example-3", include_str!("../../experiments/paper-b/b-example-3.toml")),
    ("b-example-4", include_str!("../../experiments/paper-b/b-example-4.toml")),
    ("b-factored", include_str!("../../experiments/paper-b/b-factored.toml")),
    ("b-large", include_str!("../../experiments/paper-b/b-large.toml")),
    ("b-margins", include_str!("../../experiments/paper-b/b-margins.toml")),
    ("b-matrix-margins", include_str!("../../experiments/paper-b/b-matrix-margins.toml")),
    ("b-nearest", include_str!("../../experiments/paper-b/b-nearest.toml")),
    ("b-sensing", include_str!("../../experiments/paper-b/b-sensing.toml")),
    ("b-simplex", include_str!("../../experiments/paper-b/b-simplex.toml")),
    ("b-stagewise", include_str!("../../experiments/paper-b/b-stagewise.toml")),
    ("c-circle", include_str!("../../experiments/paper-c/c-circle.toml")),
    ("c-circle-lambda", include_str!("../../experiments/paper-c/c-circle-lambda.toml")),
    ("c-circle-long", include_str!("../../experiments/paper-c/c-circle-long.toml")),
    ("c-circle-printed", include_str!("../../experiments/paper-c/c-circle-printed.toml")),
    ("c-deep", include_str!("../../experiments/paper-c/c-deep.toml")),
    ("c-deep-lambda", include_str!("../../experiments/paper-c/c-deep-lambda.toml")),
    ("c-deep-printed", include_str!("../../experiments/paper-c/c-deep-printed.toml")),
    ("c-flows", include_str!("../../experiments/paper-c/c-flows.toml")),
    ("c-products", include_str!("../../experiments/paper-c/c-products.toml")),
    ("c-rates", include_str!("../../experiments/paper-c/c-rates.toml")),
    ("c-reach", include_str!("../../experiments/paper-c/c-reach.toml")),
    ("c-vgg", include_str!("../../experiments/paper-c/c-vgg.toml")),
    ("c-vgg16", include_str!("../../experiments/paper-c/c-vgg16.toml")),
    ("d-convolutions", include_str!("../../experiments/paper-d/d-convolutions.toml")),
    ("d-mnist-convolutions", include_str!("../../experiments/paper-d/d-mnist-convolutions.toml")),
    ("d-cnn", include_str!("../../experiments/paper-d/d-cnn.toml")),
    ("d-digits", include_str!("../../experiments/paper-d/d-digits.toml")),
    ("d-mnist", include_str!("../../experiments/paper-d/d-mnist.toml")),
    ("d-vgg16", include_str!("../../experiments/paper-d/d-vgg16.toml")),
    ("d-descent", include_str!("../../experiments/paper-d/d-descent.toml")),
    ("d-flows", include_str!("../../experiments/paper-d/d-flows.toml")),
    ("d-hat", include_str!("../../experiments/paper-d/d-hat.toml")),
    ("d-rates", include_str!("../../experiments/paper-d/d-rates.toml")),
    ("fingerprint-matrices-1", include_str!("../../experiments/fingerprint/fingerprint-matrices-1.toml")),
    ("fingerprint-matrices-2", include_str!("../../experiments/fingerprint/fingerprint-matrices-2.toml")),
    ("fingerprint-network", include_str!("../../experiments/fingerprint/fingerprint-network.toml")),
    ("fingerprint-convolution", include_str!("../../experiments/fingerprint/fingerprint-convolution.toml")),
    ("fingerprint-vectors-1", include_str!("../../experiments/fingerprint/fingerprint-vectors-1.toml")),
    ("fingerprint-vectors-2", include_str!("../../experiments/fingerprint/fingerprint-vectors-2.toml")),
];

/// The most bases that stand on each other.
const DEEPEST: usize = 16;

/// Larger files are no experiments.
const LARGEST_FILE: u64 = 1 << 24;

/// The built-in experiments: name and TOML.
///
/// ```
/// assert!(limitpoint::experiments::builtins().iter().any(|(name, _)| *name == "digits"));
/// ```
pub fn builtins() -> &'static [(&'static str, &'static str)] {
    BUILTINS
}

/// An experiment as it was written, before its base is merged.
#[derive(Debug, Clone, PartialEq)]
pub struct RecipeSource {
    name: String,
    /// Where relative bases and paths of data start; `None` for built-ins.
    folder: Option<PathBuf>,
    /// What tells it from others in a chain of bases.
    identity: String,
    text: Arc<Text>,
}

impl RecipeSource {
    /// Every built-in experiment with its title.
    pub fn catalogue() -> Vec<CatalogueEntry> {
        let title = |text: &'static str| {
            text.lines().find_map(|line| line.strip_prefix("title = \"")?.strip_suffix('"')).unwrap_or_default()
        };
        let entry = |(key, text): &(&'static str, &'static str)| CatalogueEntry {
            key,
            formula: title(text),
            reference: "built-in",
        };
        builtins().iter().map(entry).collect()
    }

    /// A built-in by its name, or a file by a path that ends in `.toml`.
    pub fn find(name_or_path: &str) -> Result<Self, RecipeError> {
        match builtins().iter().find(|(name, _)| *name == name_or_path) {
            Some((name, content)) => Ok(Self::builtin(name, content)),
            None if name_or_path.ends_with(".toml") => Self::file(Path::new(name_or_path), None),
            None => Err(RecipeError::UnknownSource {
                name: name_or_path.to_owned(),
                hint: Box::new(Hint::new(name_or_path, builtins().iter().map(|(name, _)| *name))),
            }),
        }
    }

    /// TOML text under a name of your choice; bases and data are looked for from the current folder.
    pub fn from_text(name: &str, content: &str) -> Self {
        let text = Text { name: name.to_owned(), content: content.to_owned(), is_override: false };
        Self {
            name: name.trim_end_matches(".toml").to_owned(),
            folder: Some(PathBuf::new()),
            identity: format!("text {name}"),
            text: Arc::new(text),
        }
    }

    fn builtin(name: &str, content: &str) -> Self {
        let text = Text { name: format!("{name} (built-in)"), content: content.to_owned(), is_override: false };
        Self { name: name.to_owned(), folder: None, identity: format!("built-in {name}"), text: Arc::new(text) }
    }

    fn file(path: &Path, asked_by: Option<&Spot>) -> Result<Self, RecipeError> {
        let refuse = |problem: String| RecipeError::File {
            path: path.to_owned(),
            problem,
            asked_by: asked_by.map(|spot| Box::new(spot.clone())),
        };
        let facts = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
        if !facts.is_file() || facts.len() > LARGEST_FILE {
            return Err(refuse("an experiment is a regular file of at most 16 MiB".into()));
        }
        let content = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        let identity = path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = Text { name: path.display().to_string(), content, is_override: false };
        Ok(Self {
            name,
            folder: Some(path.parent().unwrap_or(Path::new("")).to_owned()),
            identity,
            text: Arc::new(text),
        })
    }

    /// The built-in's name, or the file's without `.toml`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The TOML as written.
    pub fn text(&self) -> &str {
        &self.text.content
    }

    /// The whole tree, with its bases merged and short forms written out.
    pub(super) fn resolve(&self) -> Result<Node, RecipeError> {
        self.resolve_after(&mut Vec::new())
    }

    fn resolve_after(&self, chain: &mut Vec<(String, String)>) -> Result<Node, RecipeError> {
        let round = chain.iter().any(|(identity, _)| *identity == self.identity);
        chain.push((self.identity.clone(), self.text.name.clone()));
        let names = || chain.iter().map(|(_, name)| name.clone()).collect();
        if round {
            return Err(RecipeError::Cycle { chain: names() });
        }
        if chain.len() > DEEPEST + 1 {
            return Err(RecipeError::TooDeep { chain: names() });
        }
        let mut node = Node::document(&self.text)?;
        let mut base = None;
        let mut replaces = false;
        if let Some(table) = node.table_mut() {
            base = table.shift_remove("base");
            replaces = name_the_optimiser(table)?;
        }
        write_out(Shape::recipe(), &mut node, 0)?;
        if let Some(folder) = &self.folder {
            place_data(&mut node, folder);
        }
        let Some(base) = base else { return Ok(node) };
        let Some(name) = base.node.text() else {
            let problem = "'base' should be the name of a built-in experiment or a path that ends in .toml, in quotes";
            return Err(RecipeError::value(&base.node.spot, problem));
        };
        let mut below = self.base(name, &base.node.spot)?.resolve_after(chain)?;
        if replaces {
            drop_optimisers(&mut below, &node);
        }
        Ok(merge(Some(Shape::recipe()), below, node))
    }

    fn base(&self, name: &str, spot: &Spot) -> Result<Self, RecipeError> {
        match (builtins().iter().find(|(known, _)| *known == name), &self.folder) {
            (Some((name, content)), _) => Ok(Self::builtin(name, content)),
            (None, Some(folder)) if name.ends_with(".toml") => Self::file(&folder.join(name), Some(spot)),
            _ => Err(RecipeError::choice(spot, name, builtins().iter().map(|(known, _)| *known))),
        }
    }
}

/// Settings of data that are paths.
const PATHS: [&str; 5] = ["path", "test-path", "targets-path", "test-targets-path", "dir"];

/// Paths of data start at the folder of the file that names them, as bases do.
fn place_data(node: &mut Node, folder: &Path) {
    let data = node.table_mut().and_then(|table| table.get_mut("data")).and_then(|entry| entry.node.table_mut());
    for settings in data.into_iter().flat_map(Table::values_mut).filter_map(|entry| entry.node.table_mut()) {
        for (_, entry) in settings.iter_mut().filter(|(key, _)| PATHS.contains(&key.as_str())) {
            if let Kind::Text(path) = &mut entry.node.kind {
                *path = folder.join(&*path).to_string_lossy().into_owned();
            }
        }
    }
}

/// Forgets the optimisers below, and the schedules that only they had.
pub(super) fn drop_optimisers(below: &mut Node, above: &Node) {
    let Some(table) = below.table_mut() else { return };
    let old = table.shift_remove("optimisers");
    let (Some(old), Some(schedules)) = (old, table.get_mut("schedules").and_then(|entry| entry.node.table_mut()))
    else {
        return;
    };
    let kept = above.get("optimisers");
    schedules.retain(|name, _| old.node.get(name).is_none() || kept.is_some_and(|kept| kept.get(name).is_some()));
}

/// Tables merge, everything else is replaced; so is a choice whose tag changes.
fn merge(shape: Option<Shape>, below: Node, above: Node) -> Node {
    let form = shape.map_or(Form::Struct, Shape::form);
    let same_choice = || match (below.only(), above.only()) {
        (Some((old, _)), Some((new, _))) => old == new,
        _ => false,
    };
    let mergeable = match form {
        Form::Choice => same_choice(),
        Form::Struct | Form::Map(_) | Form::Other => true,
        _ => false,
    };
    let inner = |key: &str| match form {
        Form::Choice => shape.and_then(|shape| shape.variant(key)).flatten(),
        Form::Map(entries) => Some(entries),
        _ => shape.and_then(|shape| shape.field(key)),
    };
    match (below, above) {
        (Node { kind: Kind::Table(below), .. }, Node { kind: Kind::Table(above), spot }) if mergeable => {
            let mut merged: Table = below;
            for (key, mut entry) in above {
                if let Some(old) = merged.get_mut(&key) {
                    let old = std::mem::replace(&mut old.node, Node::new(Kind::Boolean(false), &spot));
                    entry.node = merge(inner(&key), old, entry.node);
                }
                merged.insert(key, entry);
            }
            Node { kind: Kind::Table(merged), spot }
        }
        (_, above) => above,
    }
}
