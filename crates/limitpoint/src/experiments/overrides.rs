//! Settings on the command line: which place in the recipe `key=value` means, and which values it gives.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::complaint::{Hint, RecipeError, Spot, Text};
use super::node::{Kind, Node};
use super::ranges::{LONGEST_RANGE, range, split_commas};
use super::shape::{Form, Shape};
use super::shorthand::{from_words, optimiser_shape, trim};
use super::walk::Walk;
use crate::models::LayerList;

/// One `key=value`.
#[derive(Debug, Clone)]
pub(super) struct Override {
    text: Arc<Text>,
    /// The key's parts and where they stand.
    segments: Vec<(String, Range<usize>)>,
    value: Range<usize>,
}

/// What an override means for one tree.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// The list of seeds.
    Seeds,
    /// All optimisers, by one.
    Optimiser,
    /// The value at a path, tags of choices included.
    Path {
        path: Vec<String>,
        shape: Shape,
        /// Whether the value is put into a list of one.
        wrap: bool,
    },
}

impl Override {
    pub fn parse(content: &str) -> Result<Self, RecipeError> {
        let text = Arc::new(Text { name: String::new(), content: content.to_owned(), is_override: true });
        let refuse = |range, problem: &str| Err(RecipeError::value(&Spot::new(&text, range), problem));
        let (mut segments, mut start, mut quote) = (Vec::new(), 0, None);
        for (at, letter) in content.char_indices() {
            match (quote, letter) {
                (Some(open), _) => quote = (letter != open).then_some(open),
                (None, '"' | '\'') => quote = Some(letter),
                (None, '.' | '=') => {
                    let part = trim(content, start..at);
                    let word = content[part.clone()].trim_matches(['"', '\'']);
                    if word.is_empty() {
                        return refuse(at..at + 1, "a part of the key is empty; write key=value, as in model.width=64");
                    }
                    segments.push((word.to_owned(), part));
                    start = at + 1;
                    if letter == '=' {
                        return Ok(Self { segments, value: trim(content, start..content.len()), text });
                    }
                }
                _ => {}
            }
        }
        refuse(content.len()..content.len(), "an override is key=value, as in model.width=64; the '=' is missing")
    }

    /// The key as it was written.
    pub fn key(&self) -> String {
        self.segments.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(".")
    }

    /// The place of the key.
    pub fn key_spot(&self) -> Spot {
        Spot::new(&self.text, self.segments.first().map_or(0, |(_, range)| range.start)..self.key_end())
    }

    fn key_end(&self) -> usize {
        self.segments.last().map_or(0, |(_, range)| range.end)
    }

    fn spot(&self, index: usize) -> Spot {
        self.segments.get(index).map_or_else(|| self.key_spot(), |(_, range)| Spot::new(&self.text, range.clone()))
    }

    fn unknown(&self, index: usize, inside: &str, allowed: impl IntoIterator<Item = impl AsRef<str>>) -> RecipeError {
        let key = self.segments.get(index).map(|(word, _)| word.clone()).unwrap_or_default();
        let hint = Box::new(Hint::new(&key, allowed));
        RecipeError::UnknownKey { spot: Box::new(self.spot(index)), key, inside: inside.to_owned(), hint }
    }

    /// Finds the place meant in a tree.
    pub fn target(&self, tree: &Node) -> Result<Target, RecipeError> {
        let words: Vec<&str> = self.segments.iter().map(|(word, _)| word.as_str()).collect();
        let mut walk = Walk { path: Vec::new(), shape: Shape::recipe(), node: Some(Cow::Borrowed(tree)) };
        let mut done = 0;
        match words.as_slice() {
            ["seed" | "seeds"] => return Ok(Target::Seeds),
            ["optimiser"] => return Ok(Target::Optimiser),
            ["base", ..] => {
                let problem = "the base cannot be overridden; name another experiment, or write a file with this base";
                return Err(RecipeError::value(&self.spot(0), problem));
            }
            ["init", ..] => {
                walk.enter("initialiser", Shape::recipe().field("initialiser"));
                done = 1;
            }
            ["optimiser", ..] => {
                let name = self.single_optimiser(tree)?;
                walk.enter("optimisers", Shape::recipe().field("optimisers"));
                walk.enter(&name, optimiser_shape());
                done = 1;
            }
            _ => {}
        }
        let wrap = matches!(words.as_slice(), ["model", "width"] | ["model", "network", "width"]);
        for index in done..words.len() {
            let word = if wrap && index + 1 == words.len() { "widths" } else { words[index] };
            self.step(&mut walk, index, word)?;
        }
        let shape = match walk.shape.form() {
            Form::List(items) if wrap => items,
            _ => walk.shape,
        };
        Ok(Target::Path { path: walk.path, shape, wrap })
    }

    fn single_optimiser(&self, tree: &Node) -> Result<String, RecipeError> {
        let names: Vec<&str> =
            tree.get("optimisers").and_then(Node::table).into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        match names.as_slice() {
            [name] => Ok((*name).to_owned()),
            [] => Err(RecipeError::value(&self.spot(0), "there is no optimiser to change; give optimiser=NAME first")),
            [first, ..] => {
                let rest = self.segments.iter().skip(1).map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(".");
                let problem = format!(
                    "there are several optimisers: {}; name one, as in optimisers.{first}.{rest}=…, or keep only one with \
                     optimiser=NAME before this override",
                    names.join(", ")
                );
                Err(RecipeError::value(&self.spot(0), problem))
            }
        }
    }

    /// One segment further; tags of choices may be left out.
    fn step(&self, walk: &mut Walk<'_>, index: usize, word: &str) -> Result<(), RecipeError> {
        let inside = walk.path.join(".");
        match walk.shape.form() {
            Form::Struct => {
                let shape = walk.shape.field(word);
                if shape.is_none() {
                    return Err(self.unknown(index, &inside, walk.shape.fields()));
                }
                walk.enter(word, shape);
                Ok(())
            }
            Form::Map(entries) => {
                let names: Vec<String> =
                    walk.node.iter().filter_map(|node| node.table()).flatten().map(|(name, _)| name.clone()).collect();
                if index + 1 < self.segments.len() && !names.iter().any(|name| name == word) {
                    return Err(self.unknown(index, &inside, names));
                }
                walk.enter(word, Some(entries));
                Ok(())
            }
            Form::Choice => self.step_into_choice(walk, index, word),
            _ => {
                let problem = format!("'{inside}' has no parts; set it as a whole: {inside}=…");
                Err(RecipeError::value(&self.spot(index), problem))
            }
        }
    }

    fn step_into_choice(&self, walk: &mut Walk<'_>, index: usize, word: &str) -> Result<(), RecipeError> {
        let (choice, inside) = (walk.shape, walk.path.join("."));
        let current = walk
            .node
            .as_ref()
            .and_then(|node| node.only().map(|(tag, _)| tag.to_owned()).or_else(|| node.text().map(str::to_owned)));
        let settings = current.as_ref().and_then(|tag| choice.variant(tag)).flatten();
        // what is in a table of the user's own names, such as `hidden` of blocks
        let listed =
            || walk.node.as_ref().and_then(|node| node.only()).is_some_and(|(_, parts)| parts.get(word).is_some());
        let nested = settings.is_some_and(|settings| match settings.form() {
            Form::Choice => true,
            Form::Map(_) => listed(),
            _ => settings.field(word).is_some(),
        });
        match (current, choice.variant(word)) {
            (Some(tag), _) if tag != word && nested => {
                walk.enter(&tag, settings);
                self.step(walk, index, word)
            }
            (_, Some(Some(settings))) => {
                walk.enter(word, Some(settings));
                Ok(())
            }
            (current, _) => {
                let owners: Vec<_> = choice
                    .variants()
                    .into_iter()
                    .filter(|(_, settings)| settings.is_some_and(|s| s.field(word).is_some()))
                    .map(|(tag, _)| tag)
                    .collect();
                match (current, owners.as_slice()) {
                    (Some(tag), [owner, ..]) => {
                        let problem = format!(
                            "'{inside}' is '{tag}', which has no '{word}'; '{}' has: write {inside}.{owner}.{word}=… to change it",
                            owners.join("', '")
                        );
                        Err(RecipeError::value(&self.spot(index), problem))
                    }
                    _ => {
                        let own = settings.map(Shape::fields).unwrap_or_default();
                        let tags = choice
                            .variants()
                            .into_iter()
                            .filter(|(_, settings)| settings.is_some())
                            .map(|(tag, _)| tag);
                        Err(self.unknown(index, &inside, own.into_iter().chain(tags)))
                    }
                }
            }
        }
    }

    /// The values given for a target, with their texts; more than one is a sweep.
    pub fn values(&self, target: &Target) -> Result<Vec<(String, Node)>, RecipeError> {
        let items = Shape::recipe().field("seeds").map(Shape::form);
        let (shape, numbers) = match (target, items) {
            (Target::Path { shape, .. }, _) => (*shape, matches!(shape.form(), Form::Number)),
            (Target::Optimiser, _) => (optimiser_shape().unwrap_or(Shape::recipe()), false),
            (Target::Seeds, Some(Form::List(seed))) => (seed, true),
            (Target::Seeds, _) => (Shape::recipe(), true),
        };
        let text = &self.text.content;
        let spot = Spot::new(&self.text, self.value.clone());
        if self.value.is_empty() && !matches!(shape.form(), Form::Text) {
            return Err(RecipeError::value(&spot, format!("the value is missing; write {}=VALUE", self.key())));
        }
        let free_text = matches!(self.segments.as_slice(), [(word, _)] if word == "title" || word == "description");
        let parts = if free_text { vec![self.value.clone()] } else { self.parts(shape) };
        let mut values = Vec::new();
        for part in parts {
            let part = trim(text, part);
            let words = &text[part.clone()];
            let spot = Spot::new(&self.text, part.clone());
            match range(words).filter(|_| numbers) {
                Some(Err(problem)) => return Err(RecipeError::value(&spot, problem)),
                Some(Ok(numbers)) => {
                    values.extend(numbers.into_iter().map(|kind| (shown(&kind), Node::new(kind, &spot))))
                }
                None if words.is_empty() && !free_text => {
                    return Err(RecipeError::value(&spot, "a value between two commas is missing"));
                }
                None => values.push((words.to_owned(), from_words(shape, &self.text, part, 0)?)),
            }
            if values.len() > LONGEST_RANGE {
                return Err(RecipeError::value(
                    &spot,
                    format!("more than {LONGEST_RANGE} values are given for one key"),
                ));
            }
        }
        Ok(values)
    }

    /// The value cut at commas; text forms with commas of their own, as smoothed:3,1 and lists of layers, stay whole.
    fn parts(&self, shape: Shape) -> Vec<Range<usize>> {
        let pieces: Vec<_> = split_commas(&self.text.content[self.value.clone()]);
        let pieces: Vec<_> =
            pieces.into_iter().map(|piece| piece.start + self.value.start..piece.end + self.value.start).collect();
        let last_of: fn(&str, &[Range<usize>]) -> usize = match shape.type_name() {
            Some("PotentialSpec") => last_of_potential,
            Some("ModelSpec" | "LayerList") => last_of_layers,
            _ => return pieces,
        };
        let mut parts = Vec::new();
        let mut rest = pieces.as_slice();
        while let Some(first) = rest.first() {
            let last = last_of(&self.text.content, rest);
            parts.push(first.start..rest[last].end);
            rest = &rest[last + 1..];
        }
        parts
    }
}

/// The last of the pieces that make one potential together.
fn last_of_potential(text: &str, pieces: &[Range<usize>]) -> usize {
    const FURTHEST: usize = 64;
    let whole =
        |last: &usize| text[pieces[0].start..pieces[*last].end].parse::<crate::potentials::PotentialSpec>().is_ok();
    (0..pieces.len().min(FURTHEST)).rev().find(whole).unwrap_or(0)
}

/// The last of the pieces that make one list of layers together: a `dense` without a number, or where layers end.
fn last_of_layers(text: &str, pieces: &[Range<usize>]) -> usize {
    let words = |piece: &Range<usize>| text[piece.clone()].split_whitespace().collect::<Vec<_>>();
    let layers = pieces.iter().take_while(|piece| words(piece).first().is_some_and(|word| LayerList::names(word)));
    let count = layers.count().max(1);
    pieces[..count].iter().position(|piece| words(piece) == ["dense"]).unwrap_or(count - 1)
}

/// A number of a range as labels show it.
fn shown(kind: &Kind) -> String {
    match kind {
        Kind::Integer(whole) => whole.to_string(),
        Kind::Float(real) if *real != 0.0 && !(1e-4..1e9).contains(&real.abs()) => format!("{real:e}"),
        Kind::Float(real) => real.to_string(),
        _ => String::new(),
    }
}
