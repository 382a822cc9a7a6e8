//! From a source and overrides to the recipes that are run.

use super::Recipe;
use super::complaint::RecipeError;
use super::config::settled;
use super::node::{Entry, Kind, Node, Table};
use super::overrides::{Override, Target};
use super::read::read;
use super::shape::Shape;
use super::shorthand::automatic_name;
use super::source::{RecipeSource, drop_optimisers};
use super::task::{Task, TaskLabel};
use super::walk::put;
use crate::norms::NormSpec;

/// The most combinations that sweeps may have together.
const MOST_POINTS: usize = 100_000;

/// All that is to be run: one recipe, or one for every combination of swept settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Name of the built-in, or of the file without `.toml`.
    pub name: String,
    /// The recipe of the first point.
    pub base: Recipe,
    /// Keys that are swept, as they were written; the last one varies fastest.
    pub swept: Vec<String>,
    /// One recipe per combination; a single one without settings where nothing is swept.
    pub points: Vec<PlanPoint>,
}

impl Plan {
    /// The same, where every point also observes the norms its optimisers and flows belong to, and those of all others.
    ///
    /// What an optimiser is expected to maximise is then in its table without being asked for, and every column can be
    /// compared over all runs. A recipe that observes no norm at all is left as it is.
    ///
    /// ```
    /// use limitpoint::experiments::{RecipeSource, plan};
    /// let plan = plan(&RecipeSource::find("linear")?, &["optimiser=muon".into()])?.with_own_norms();
    /// let norms: Vec<String> = plan.base.observe.norms.iter().map(|norm| norm.key()).collect();
    /// assert_eq!(norms, ["l1", "l2", "linf", "spectral"]);
    /// # Ok::<(), limitpoint::experiments::RecipeError>(())
    /// ```
    pub fn with_own_norms(mut self) -> Self {
        let mut own: Vec<NormSpec> = Vec::new();
        for norm in self.points.iter().flat_map(|point| own_norms(&point.recipe)) {
            if own.iter().all(|known| known.key() != norm.key()) {
                own.push(norm);
            }
        }
        for recipe in self.points.iter_mut().map(|point| &mut point.recipe).chain([&mut self.base]) {
            let observed = &mut recipe.observe.norms;
            let known: Vec<String> = observed.iter().map(NormSpec::key).collect();
            if !known.is_empty() {
                observed.extend(own.iter().filter(|norm| !known.contains(&norm.key())).cloned());
            }
        }
        self
    }
}

impl Plan {
    /// All runs: every point of the sweep with every optimiser, flow and seed.
    pub fn tasks(&self) -> Vec<Task> {
        self.points.iter().flat_map(|point| Task::all(&point.recipe, &point.settings)).collect()
    }

    /// The same with these runs alone, each a point of its own.
    ///
    /// ```
    /// use limitpoint::experiments::{RecipeSource, plan};
    /// let plan = plan(&RecipeSource::find("linear")?, &["seed=1..3".into()])?.only(|label| label.seed == 2);
    /// assert!(plan.tasks().iter().all(|task| task.label.name.ends_with("-seed2")));
    /// # Ok::<(), limitpoint::experiments::RecipeError>(())
    /// ```
    pub fn only(&self, wanted: impl Fn(&TaskLabel) -> bool) -> Self {
        let tasks = self.tasks().into_iter().filter(|task| wanted(&task.label));
        let points = tasks.map(|task| PlanPoint { settings: task.label.point, recipe: task.recipe }).collect();
        Self { points, ..self.clone() }
    }
}

/// The norms of everyone who trains.
fn own_norms(recipe: &Recipe) -> Vec<NormSpec> {
    Task::all(recipe, &[]).iter().filter_map(Task::own_norm).collect()
}

/// One combination of swept settings.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanPoint {
    /// Swept keys and their values here, in the order of the overrides.
    pub settings: Vec<(String, String)>,
    /// What is run.
    pub recipe: Recipe,
}

/// Resolves the bases of a source, applies overrides and checks every recipe.
///
/// An override is `key=value`. The key is a path such as `model.network.widths`; tags of choices may be left out
/// (`model.widths`), and `seed`, `init`, `model.width` and `optimiser` are short for `seeds`, `initialiser`, a list of
/// one width and the only optimiser. A value is TOML or bare text. Several values with commas between them, or a range
/// `a..b`, `a..b+step`, `a..b*factor`, make a sweep; seeds are collected instead. Overrides apply in order, the last
/// one wins. Paths of data start at the folder of the file that names them, those in overrides at the current folder;
/// the recipes of the plan have them in full.
///
/// ```
/// use limitpoint::experiments::{RecipeSource, plan};
/// let source = RecipeSource::find("digits")?;
/// let plan = plan(&source, &["model.width=16..64*2".into(), "seed=1,2".into()])?;
/// assert_eq!(plan.points.len(), 3);
/// assert_eq!(plan.points[1].settings, [("model.width".to_string(), "32".to_string())]);
/// assert_eq!(plan.base.seeds, [1, 2]);
/// # Ok::<(), limitpoint::experiments::RecipeError>(())
/// ```
pub fn plan(source: &RecipeSource, overrides: &[String]) -> Result<Plan, RecipeError> {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text)).collect::<Result<_, _>>()?;
    let mut growth = Growth { overrides: &overrides, points: Vec::new() };
    growth.grow(Branch { tree: source.resolve()?, settings: Vec::new(), seeded: false, width: 1 }, 0)?;
    let points = growth.points;
    let first = points.first().ok_or(RecipeError::TooManyPoints { count: 0, limit: MOST_POINTS })?;
    let swept = first.settings.iter().map(|(key, _)| key.clone()).collect();
    Ok(Plan { name: source.name().to_owned(), base: first.recipe.clone(), swept, points })
}

struct Growth<'a> {
    overrides: &'a [Override],
    points: Vec<PlanPoint>,
}

/// A tree to which some overrides are applied.
#[derive(Clone)]
struct Branch {
    tree: Node,
    settings: Vec<(String, String)>,
    /// Whether an override has already set the seeds.
    seeded: bool,
    /// Product of the sweeps so far.
    width: usize,
}

impl Growth<'_> {
    fn grow(&mut self, mut branch: Branch, from: usize) -> Result<(), RecipeError> {
        for (index, change) in self.overrides.iter().enumerate().skip(from) {
            let key = change.key();
            if branch.settings.iter().any(|(swept, _)| *swept == key) {
                let problem = format!("'{key}' is swept by an earlier override and set again here; keep one of them");
                return Err(RecipeError::value(&change.key_spot(), problem));
            }
            let target = change.target(&branch.tree)?;
            let mut values = change.values(&target)?;
            if matches!(target, Target::Seeds) {
                branch.add_seeds(change, values.into_iter().map(|(_, node)| node).collect());
                continue;
            }
            if values.len() > 1 {
                branch.width = branch.width.saturating_mul(values.len());
                if branch.width > MOST_POINTS {
                    return Err(RecipeError::TooManyPoints { count: branch.width, limit: MOST_POINTS });
                }
                for (text, value) in values {
                    let mut next = branch.clone();
                    next.settings.push((key.clone(), text));
                    next.set(change, &target, value);
                    self.grow(next, index + 1)?;
                }
                return Ok(());
            }
            if let Some((_, value)) = values.pop() {
                branch.set(change, &target, value);
            }
        }
        let mut recipe: Recipe = read(&branch.tree)?;
        recipe.check()?;
        recipe.data = settled(&recipe.data);
        self.points.push(PlanPoint { settings: branch.settings, recipe });
        Ok(())
    }
}

impl Branch {
    /// Values one by one or as lists; later overrides add to earlier ones.
    fn add_seeds(&mut self, change: &Override, values: Vec<Node>) {
        let spot = change.key_spot();
        let mut seeds = match self.tree.get("seeds").map(|node| &node.kind) {
            Some(Kind::List(seeds)) if self.seeded => seeds.clone(),
            _ => Vec::new(),
        };
        for value in values {
            match value.kind {
                Kind::List(items) => seeds.extend(items),
                _ => seeds.push(value),
            }
        }
        self.seeded = true;
        put(&mut self.tree, Some(Shape::recipe()), &["seeds".into()], &spot, Node::new(Kind::List(seeds), &spot));
    }

    fn set(&mut self, change: &Override, target: &Target, value: Node) {
        let spot = change.key_spot();
        match target {
            Target::Seeds => {}
            Target::Optimiser => {
                let optimisers = Node::single(&automatic_name(&value), value);
                let above = Node::single("optimisers", optimisers.clone());
                drop_optimisers(&mut self.tree, &above);
                put(&mut self.tree, Some(Shape::recipe()), &["optimisers".into()], &spot, optimisers);
            }
            Target::Path { path, wrap, .. } => {
                let named = self.automatically_named();
                let value = if *wrap { Node::new(Kind::List(vec![value.clone()]), &value.spot) } else { value };
                put(&mut self.tree, Some(Shape::recipe()), path, &spot, value);
                if let Some(name) = named.filter(|_| change.key().starts_with("optimiser.")) {
                    self.rename(&name);
                }
            }
        }
    }

    /// The name of the only optimiser, if it tells what the optimiser is.
    fn automatically_named(&self) -> Option<String> {
        let (name, node) = self.tree.get("optimisers")?.only()?;
        (automatic_name(node) == name).then(|| name.to_owned())
    }

    /// Keeps the name of the only optimiser true: a gradient descent made spectral is called spectral.
    fn rename(&mut self, old: &str) {
        let Some(new) = self.tree.get("optimisers").and_then(Node::only).map(|(_, node)| automatic_name(node)) else {
            return;
        };
        for key in ["optimisers", "schedules"] {
            let table =
                self.tree.table_mut().and_then(|table| table.get_mut(key)).and_then(|entry| entry.node.table_mut());
            if let Some(table) = table.filter(|table| table.contains_key(old)) {
                let entries = std::mem::take(table);
                let renamed = |(name, entry): (String, Entry)| (if name == old { new.clone() } else { name }, entry);
                *table = entries.into_iter().map(renamed).collect::<Table>();
            }
        }
    }
}
