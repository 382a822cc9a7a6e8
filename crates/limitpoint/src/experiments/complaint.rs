//! What can be wrong with an experiment file or an override, said with the place and a remedy.

use std::fmt;
use std::path::PathBuf;

pub use super::spot::Spot;
pub(super) use super::spot::Text;

/// What would have been allowed, and which of it is nearest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hint {
    /// The nearest allowed word, if one is near.
    pub suggestion: Option<String>,
    /// Everything allowed.
    pub allowed: Vec<String>,
}

impl Hint {
    pub(super) fn new<S: AsRef<str>>(found: &str, allowed: impl IntoIterator<Item = S>) -> Self {
        let allowed: Vec<String> = allowed.into_iter().map(|word| word.as_ref().to_owned()).collect();
        Self { suggestion: nearest(found, &allowed), allowed }
    }
}

/// `; did you mean 'loss'? Allowed: data, loss, model`.
impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.suggestion {
            Some(word) => write!(f, "; did you mean '{word}'? ")?,
            None => f.write_str("; ")?,
        }
        match self.allowed.as_slice() {
            [] => f.write_str("nothing is allowed here"),
            words => write!(f, "allowed: {}", words.join(", ")),
        }
    }
}

/// The allowed word within a third of the letters of `found`, the nearest first.
fn nearest(found: &str, allowed: &[String]) -> Option<String> {
    const LONGEST: usize = 64;
    let letters: Vec<char> = found.to_lowercase().chars().collect();
    if letters.is_empty() || letters.len() > LONGEST {
        return None;
    }
    let scored = allowed.iter().map(|word| (distance(&letters, &word.chars().collect::<Vec<_>>()), word));
    let (score, word) = scored.min_by_key(|(score, _)| *score)?;
    (score <= letters.len().div_ceil(3)).then(|| word.clone())
}

/// Letters inserted, removed, changed or swapped with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let change = usize::from(a[i - 1] != b[j - 1]);
                let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + change);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

/// ` in 'model.network'`, or nothing at the top.
fn within(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" in '{path}'") }
}

/// What an experiment file, an override or a recipe is refused for.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The file is not TOML.
    #[error("{spot}: this is not TOML: {problem}{}", spot.excerpt())]
    Syntax {
        /// Where.
        spot: Box<Spot>,
        /// What the parser says.
        problem: String,
    },
    /// A key that does not exist.
    #[error("{spot}: unknown key '{key}'{}{hint}{}", within(inside), spot.excerpt())]
    UnknownKey {
        /// Where.
        spot: Box<Spot>,
        /// The key.
        key: String,
        /// The table it stands in; empty at the top.
        inside: String,
        /// What is allowed.
        hint: Box<Hint>,
    },
    /// A word that names none of the choices.
    #[error("{spot}: '{found}' is not known{}{hint}{}", within(inside), spot.excerpt())]
    UnknownChoice {
        /// Where.
        spot: Box<Spot>,
        /// The word.
        found: String,
        /// The key it was given to.
        inside: String,
        /// What is allowed.
        hint: Box<Hint>,
    },
    /// A key without which nothing can start.
    #[error("{spot}: the key '{key}' is missing{}; add it here, in the base or as an override{}", within(inside), spot.excerpt())]
    MissingKey {
        /// Where the table begins.
        spot: Box<Spot>,
        /// The key.
        key: String,
        /// The table it is missing in; empty at the top.
        inside: String,
    },
    /// A value of the wrong type or form.
    #[error("{spot}: {problem}{}", spot.excerpt())]
    Value {
        /// Where.
        spot: Box<Spot>,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// A name that is neither built in nor a file.
    #[error("'{name}' is no built-in experiment{hint}; a file is named by a path that ends in .toml")]
    UnknownSource {
        /// The name.
        name: String,
        /// The built-in ones.
        hint: Box<Hint>,
    },
    /// A file that cannot be read.
    #[error("cannot read '{}': {problem}{}", path.display(), asked_by.as_ref().map_or_else(String::new, |spot| format!("; it is the base named at {spot}{}", spot.excerpt())))]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        problem: String,
        /// Where it was named as a base, if it was.
        asked_by: Option<Box<Spot>>,
    },
    /// Bases that lead back to themselves.
    #[error("the bases go round in a circle: {}; remove one `base`", chain.join(" → "))]
    Cycle {
        /// The files in order.
        chain: Vec<String>,
    },
    /// Too long a chain of bases.
    #[error("more than {} bases stand on each other: {}; merge some of them", chain.len().saturating_sub(2), chain.join(" → "))]
    TooDeep {
        /// The files in order.
        chain: Vec<String>,
    },
    /// Sweeps whose product is too large.
    #[error("the sweeps make {count} combinations, but at most {limit} are allowed; sweep over fewer values")]
    TooManyPoints {
        /// How many.
        count: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// A recipe that TOML cannot hold.
    #[error("the recipe cannot be written as TOML: {0}")]
    Unwritable(String),
    /// Nobody trains.
    #[error("the experiment has no optimiser and no flow; add optimiser = \"gradient\"")]
    NoOptimiser,
    /// Two runs would bear the same name.
    #[error("the name '{name}' is given to an optimiser and to a flow; rename one of them")]
    SharedName {
        /// The name.
        name: String,
    },
    /// A schedule for nobody.
    #[error("schedules has an entry '{name}', but no optimiser is called so{hint}")]
    UnknownSchedule {
        /// The name.
        name: String,
        /// The optimisers there are.
        hint: Box<Hint>,
    },
    /// No seed.
    #[error("the list of seeds is empty; write seeds = [0]")]
    NoSeeds,
    /// A seed given twice.
    #[error("the seed {seed} is given twice; every run needs its own")]
    DuplicateSeed {
        /// The seed.
        seed: u64,
    },
    /// No rule would ever end a run.
    #[error(
        "no rule would ever end a run; give at least one of stop.steps, stop.log10_loss, stop.log10_time, \
         stop.seconds, stop.direction or stop.certificate"
    )]
    NeverStops,
    /// A distance or density of 0.
    #[error("{key} is 0, but must be at least 1; leave it out for the usual one")]
    Zero {
        /// The setting.
        key: &'static str,
    },
    /// A certificate in a norm that is not measured.
    #[error(
        "stop.certificate waits for the norm '{norm}', which is not observed; add it to observe.norms, now {observed}"
    )]
    CertificateNorm {
        /// The norm.
        norm: String,
        /// What is observed.
        observed: String,
    },
}

impl RecipeError {
    pub(super) fn value(spot: &Spot, problem: impl Into<String>) -> Self {
        Self::Value { spot: Box::new(spot.clone()), problem: problem.into() }
    }

    pub(super) fn choice<S: AsRef<str>>(spot: &Spot, found: &str, allowed: impl IntoIterator<Item = S>) -> Self {
        let hint = Box::new(Hint::new(found, allowed));
        Self::UnknownChoice { spot: Box::new(spot.clone()), found: found.into(), inside: String::new(), hint }
    }

    /// The place in a file or override, where there is one.
    pub fn spot(&self) -> Option<&Spot> {
        match self {
            Self::Syntax { spot, .. }
            | Self::UnknownKey { spot, .. }
            | Self::UnknownChoice { spot, .. }
            | Self::MissingKey { spot, .. }
            | Self::Value { spot, .. } => Some(spot),
            Self::File { asked_by, .. } => asked_by.as_deref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let known = ["loss", "model", "optimiser"];
        for (found, expected) in
            [("los", Some("loss")), ("lsos", Some("loss")), ("optimizer", Some("optimiser")), ("Model", Some("model"))]
        {
            assert_eq!(Hint::new(found, known).suggestion.as_deref(), expected, "{found}");
        }
        for far in ["x", "", "schedule", "ooooooooooooo"] {
            assert_eq!(Hint::new(far, known).suggestion, None, "{far}");
        }
        assert_eq!(Hint::new("los", known).to_string(), "; did you mean 'loss'? allowed: loss, model, optimiser");
    }
}
