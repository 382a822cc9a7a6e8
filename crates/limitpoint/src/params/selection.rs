//! Which blocks of a layout are meant: by name, by layer, by pattern, or by kind.
//!
//! | word | blocks |
//! |---|---|
//! | `layer1.weight` | the block of that name; a name comes before every other meaning |
//! | `layer1` | all blocks of that layer |
//! | `layer*.weight` | names that fit, where `*` stands for any letters |
//! | `all` | every block |
//! | `weights`, `biases` | by role |
//! | `matrices`, `vectors` | with both sides above 1; the others |
//! | `first`, `last` | all blocks of the first, of the last layer |
//! | `hidden` | matrices that are neither the first nor the last of the weights |

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Block, ParamLayout, ParamsError, Role};

/// Words that select blocks by kind.
const KINDS: [&str; 8] = ["all", "weights", "biases", "matrices", "vectors", "first", "last", "hidden"];

/// The word for all blocks that no other entry of a list names.
const REST: &str = "*";

/// A choice of blocks: one word or several, each a name, a layer, a pattern or a kind.
///
/// In a file it is a text or a list of texts; in one word of text, `+` stands between several.
///
/// ```
/// use limitpoint::params::{BlockSelection, ParamLayout};
/// let layout = ParamLayout::new([("layer1.weight", 8, 2), ("layer2.weight", 8, 8), ("layer3.weight", 1, 8)])?;
/// assert_eq!(BlockSelection::from("hidden").resolve(&layout)?, [1]);
/// assert_eq!(BlockSelection::from("layer3 + first").resolve(&layout)?, [0, 2]);
/// assert_eq!(BlockSelection::from("layer*.weight").resolve(&layout)?, [0, 1, 2]);
/// let error = BlockSelection::from("layer4").resolve(&layout).unwrap_err().to_string();
/// assert_eq!(error, "no parameter block is called 'layer4'; the blocks are layer1.weight, layer2.weight, layer3.weight");
/// # Ok::<(), limitpoint::params::ParamsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Words", into = "Words")]
pub struct BlockSelection {
    words: Vec<String>,
}

/// One word, or several.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Words {
    One(String),
    Several(Vec<String>),
}

impl BlockSelection {
    /// The places of the selected blocks in the layout, in its order, frozen ones included.
    ///
    /// Every word must select something.
    pub fn resolve(&self, layout: &ParamLayout) -> Result<Vec<usize>, ParamsError> {
        if self.words.is_empty() {
            return Err(ParamsError::NoWords);
        }
        let mut chosen = vec![false; layout.blocks().len()];
        for word in &self.words {
            let found = places(word, layout);
            if found.is_empty() && (KINDS.contains(&word.as_str()) || word.contains('*')) {
                return Err(ParamsError::NothingSelected { word: word.clone(), known: layout.names() });
            }
            if found.is_empty() {
                return Err(ParamsError::UnknownBlock { name: word.clone(), known: layout.names() });
            }
            found.into_iter().for_each(|place| chosen[place] = true);
        }
        Ok((0..chosen.len()).filter(|place| chosen[*place]).collect())
    }

    /// Whether this is `*` alone, which in a list of entries means the blocks that no other entry names.
    pub fn is_rest(&self) -> bool {
        self.words == [REST]
    }
}

/// The entry of a list that each trainable block belongs to, in the order of the layout.
///
/// `selection` says which blocks an entry is for. No block may belong to two entries, except that `*` takes what the
/// others leave, and every trainable block must belong to one.
///
/// ```
/// use limitpoint::params::{Block, BlockSelection, ParamLayout, assign};
/// let layout = ParamLayout::of([Block::weight(1, 8, 2), Block::bias(1, 8, 2), Block::weight(2, 1, 8)])?;
/// let entries = [(BlockSelection::from("biases"), 0.5), (BlockSelection::from("*"), 2.0)];
/// let factors = assign(&layout, &entries, |entry| &entry.0)?;
/// assert_eq!(factors.iter().map(|(_, entry)| entry.1).collect::<Vec<_>>(), [2.0, 0.5, 2.0]);
/// # Ok::<(), limitpoint::params::ParamsError>(())
/// ```
pub fn assign<'a, E>(
    layout: &'a ParamLayout,
    entries: &'a [E],
    selection: impl Fn(&E) -> &BlockSelection,
) -> Result<Vec<(&'a Block, &'a E)>, ParamsError> {
    let mut owner: Vec<Option<&E>> = vec![None; layout.blocks().len()];
    let mut rest = None;
    for entry in entries {
        let chosen = selection(entry);
        if chosen.is_rest() {
            if rest.replace(entry).is_some() {
                return Err(ParamsError::ListedTwice(REST.into()));
            }
            continue;
        }
        for place in chosen.resolve(layout)? {
            if owner[place].replace(entry).is_some() {
                return Err(ParamsError::ListedTwice(layout.blocks()[place].name.clone()));
            }
        }
    }
    let own = |(block, owner): (&'a Block, Option<&'a E>)| {
        let entry = owner.or(rest).ok_or_else(|| ParamsError::NotListed(block.name.clone()))?;
        Ok((block, entry))
    };
    layout.blocks().iter().zip(owner).filter(|(block, _)| !block.frozen).map(own).collect()
}

/// The places that one word selects.
fn places(word: &str, layout: &ParamLayout) -> Vec<usize> {
    let blocks = layout.blocks();
    let all = 0..blocks.len();
    if let Some(place) = blocks.iter().position(|block| block.name == word) {
        return vec![place];
    }
    let layer = |place: usize| blocks[place].layer;
    let is_matrix = |place: &usize| blocks[*place].rows > 1 && blocks[*place].cols > 1;
    let is_bias = |place: &usize| blocks[*place].role == Role::Bias;
    match word {
        "all" => all.collect(),
        "weights" => all.filter(|place| !is_bias(place)).collect(),
        "biases" => all.filter(is_bias).collect(),
        "matrices" => all.filter(is_matrix).collect(),
        "vectors" => all.filter(|place| !is_matrix(place)).collect(),
        "first" => all.clone().filter(|place| all.clone().all(|other| layer(*place) <= layer(other))).collect(),
        "last" => all.clone().filter(|place| all.clone().all(|other| layer(*place) >= layer(other))).collect(),
        "hidden" => {
            let weights: Vec<usize> = all.filter(|place| !is_bias(place)).collect();
            let inner = weights.len().saturating_sub(1).max(1);
            weights.get(1..inner).unwrap_or_default().iter().copied().filter(is_matrix).collect()
        }
        pattern if pattern.contains('*') => all.filter(|place| fits(pattern, &blocks[*place].name)).collect(),
        name => match name.strip_prefix("layer").and_then(|number| number.parse::<usize>().ok()) {
            Some(number) => all.filter(|place| layer(*place) == number).collect(),
            None => Vec::new(),
        },
    }
}

/// Whether a name fits a pattern in which `*` stands for any letters, none included.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|tail| {
            tail.char_indices().map(|(at, _)| at).chain([tail.len()]).any(|at| fits(rest, &tail[at..]))
        }),
    }
}

/// Words separated by `+`.
impl From<&str> for BlockSelection {
    fn from(text: &str) -> Self {
        Self { words: text.split('+').map(|word| word.trim().to_owned()).collect() }
    }
}

impl From<&String> for BlockSelection {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Words> for BlockSelection {
    fn from(words: Words) -> Self {
        match words {
            Words::One(text) => text.as_str().into(),
            Words::Several(words) => Self { words },
        }
    }
}

impl From<BlockSelection> for Words {
    fn from(selection: BlockSelection) -> Self {
        match <[String; 1]>::try_from(selection.words) {
            Ok([word]) => Self::One(word),
            Err(words) => Self::Several(words),
        }
    }
}

/// The text that reads back as the same selection.
impl fmt::Display for BlockSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words.join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> ParamLayout {
        ParamLayout::of([
            Block::weight(1, 8, 2),
            Block::bias(1, 8, 2),
            Block::weight(2, 8, 8),
            Block::bias(2, 8, 8),
            Block::weight(3, 8, 8),
            Block::weight(10, 1, 8),
        ])
        .unwrap()
    }

    #[test]
    fn every_word_selects_what_the_table_says() {
        for (words, places) in [
            ("layer2.weight", vec![2]),
            ("layer2", vec![2, 3]),
            ("layer10", vec![5]),
            ("layer1*", vec![0, 1, 5]),
            ("*.bias", vec![1, 3]),
            ("l*2*t", vec![2]),
            ("*", vec![0, 1, 2, 3, 4, 5]),
            ("all", vec![0, 1, 2, 3, 4, 5]),
            ("weights", vec![0, 2, 4, 5]),
            ("biases", vec![1, 3]),
            ("matrices", vec![0, 2, 4]),
            ("vectors", vec![1, 3, 5]),
            ("first", vec![0, 1]),
            ("last", vec![5]),
            ("hidden", vec![2, 4]),
            ("last+layer1.bias + hidden", vec![1, 2, 4, 5]),
        ] {
            assert_eq!(BlockSelection::from(words).resolve(&network()).unwrap(), places, "{words}");
        }
    }

    #[test]
    fn names_come_before_kinds_and_blocks_without_numbers_are_layers_by_place() {
        let layout = ParamLayout::new([("last", 2, 2), ("w", 2, 3), ("a", 1, 2)]).unwrap();
        assert_eq!(BlockSelection::from("last").resolve(&layout).unwrap(), [0]);
        assert_eq!(BlockSelection::from("layer3").resolve(&layout).unwrap(), [2]);
        assert_eq!(BlockSelection::from("hidden").resolve(&layout).unwrap(), [1]);
        let factors = ParamLayout::new([("factor1", 2, 2), ("factor2", 2, 2)]).unwrap();
        assert_eq!(BlockSelection::from("layer2").resolve(&factors).unwrap(), [1]);
        let alone = BlockSelection::from("hidden").resolve(&ParamLayout::vector(3)).unwrap_err().to_string();
        assert_eq!(alone, "'hidden' selects no parameter block; the blocks are w");
    }

    #[test]
    fn what_selects_nothing_is_refused_by_its_word() {
        for (words, error) in [
            ("layer4", "no parameter block is called 'layer4'; the blocks are layer1.weight"),
            ("all+bias", "no parameter block is called 'bias'"),
            ("", "no parameter block is called ''"),
            ("conv*", "'conv*' selects no parameter block"),
        ] {
            let found = BlockSelection::from(words).resolve(&network()).unwrap_err().to_string();
            assert!(found.starts_with(error), "{words}: {found}");
        }
        assert_eq!(BlockSelection { words: vec![] }.resolve(&network()), Err(ParamsError::NoWords));
    }

    #[test]
    fn files_hold_a_text_or_a_list() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct File {
            blocks: BlockSelection,
        }
        for (text, again) in [
            ("blocks = \"hidden\"", "blocks = \"hidden\"\n"),
            ("blocks = [\"hidden\", \"layer1\"]", "blocks = [\"hidden\", \"layer1\"]\n"),
            ("blocks = \"hidden + layer1\"", "blocks = [\"hidden\", \"layer1\"]\n"),
            ("blocks = [\"last\"]", "blocks = \"last\"\n"),
        ] {
            let file: File = toml::from_str(text).unwrap();
            assert_eq!(toml::to_string(&file).unwrap(), again);
            assert_eq!(BlockSelection::from(file.blocks.to_string().as_str()), file.blocks);
        }
    }

    #[test]
    fn every_trainable_block_belongs_to_one_entry() {
        let layout = network().freeze(&["layer1.bias", "layer2.bias"]).unwrap();
        let owners = |words: &[&str]| {
            let entries: Vec<BlockSelection> = words.iter().map(|word| BlockSelection::from(*word)).collect();
            let assigned = assign(&layout, &entries, |entry| entry).map_err(|error| error.to_string())?;
            Ok::<_, String>(assigned.into_iter().map(|(_, entry)| entry.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(owners(&["*", "hidden"]).unwrap(), ["*", "hidden", "hidden", "*"]);
        assert_eq!(owners(&["matrices", "last"]).unwrap(), ["matrices", "matrices", "matrices", "last"]);
        assert!(owners(&["matrices", "hidden", "*"]).unwrap_err().contains("'layer2.weight' is listed twice"));
        assert!(owners(&["*", "*"]).unwrap_err().contains("'*' is listed twice"));
        assert!(owners(&["matrices"]).unwrap_err().contains("'layer10.weight' is trainable"));
        assert!(owners(&["x", "*"]).unwrap_err().contains("'x'"));
    }
}
