//! The reference page: every key of recipes, every column of measurements, the layout of checkpoints, as Markdown.

use crate::experiments::{Instance, Setting, columns, glossary, recipe_keys};

/// What stands in a checkpoint; the test of the program holds it against one that a run has written.
const CHECKPOINTS: &str = "\
A checkpoint is a safetensors file of doubles (`F64`). `checkpoints/final.safetensors` is written when a run ends,
`checkpoints/step-*.safetensors` along the way.

| tensor | shape | what |
|---|---|---|
| the name of a block, such as `layer1.weight` or `weight` | rows × columns | parameters, one row per output of a layer |
| `process/…` | length | vectors of the optimiser, the schedule or the flow, under their place in the state |
| `probe/…` | length | what the measurements remember: the trainable weights at the row before |
| `anchor/…` | length | where the stop rule on directions last compared |

The metadata has one key, `limitpoint`. Its value is text: the format on the first line, the SHA-256 of everything after
it and of all tensors on the second, and then TOML:

| key | what |
|---|---|
| `recipe` | SHA-256 of the recipe the run was started with |
| `step` | accepted steps |
| `blocks` | names of the blocks of parameters, in their order |
| `process` | optimiser, schedule and random streams, or the flow; vectors are tensors |
| `probe` | what the measurements remember |
| `anchor` | the stop rule on directions, if there is one |
| `metrics`, `histograms` | how far these files had come: bytes, and the SHA-256 so far |
| `outcome` | why the run ended, if it did |
";

/// The page.
///
/// ```
/// let page = limitpoint::report::reference_page();
/// assert!(page.contains("| `beta1` | number | 0.9 |") && page.contains("| `margin.NORM` |"));
/// ```
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Reference\n\nEvery key of an experiment file, every column of `metrics.csv`, and what a checkpoint holds.\n\
         Written by `limitpoint schema --markdown`; `limitpoint list NAME` prints one entry.\n\n## Keys of a recipe\n\n",
    );
    page += &table(&recipe_keys(), "key");
    let all = glossary();
    let mut concepts: Vec<&str> = Vec::new();
    for instance in &all {
        if !concepts.contains(&instance.concept.as_str()) {
            concepts.push(&instance.concept);
        }
    }
    for concept in concepts {
        let members: Vec<&Instance> = all.iter().filter(|instance| instance.concept == concept).collect();
        page += &format!("\n## {}\n", capitalised(concept));
        if members.iter().all(|member| member.settings.is_empty() && member.formula.is_none()) {
            page += "\n| name | meaning |\n|---|---|\n";
            members.iter().for_each(|member| page += &format!("| `{}` | {} |\n", member.key, cell(&member.meaning)));
            continue;
        }
        members.iter().for_each(|member| page += &entry(member));
    }
    page += "\n## Columns of measurements\n\n`NORM` and `POTENTIAL` are what `observe` names, `BLOCK` a block of \
             parameters. What does not exist at a point is NaN.\n\n| column | what |\n|---|---|\n";
    columns().iter().for_each(|column| page += &format!("| `{}` | {} |\n", column.name, cell(column.meaning)));
    page + "\n## Checkpoints\n\n" + CHECKPOINTS
}

fn entry(instance: &Instance) -> String {
    let mut text = format!("\n### `{}`\n\n{}\n", instance.key, instance.meaning);
    if let Some(formula) = instance.formula {
        let reference = instance.reference.map_or_else(String::new, |reference| format!(" ({reference})"));
        text += &format!("\n{}{reference}\n", cell(formula));
    }
    if !instance.settings.is_empty() {
        text += &format!("\n{}", table(&instance.settings, "setting"));
    }
    text
}

fn table(settings: &[Setting], heading: &str) -> String {
    let mut text = format!("| {heading} | kind | default | meaning |\n|---|---|---|---|\n");
    for setting in settings {
        let name = if setting.name.is_empty() { "(the value)".to_owned() } else { format!("`{}`", setting.name) };
        let default = match (&setting.default, setting.required) {
            (Some(default), _) => default.as_str(),
            (None, true) => "required",
            (None, false) => "–",
        };
        text += &format!("| {name} | {} | {} | {} |\n", cell(&setting.kind), cell(default), cell(&setting.meaning));
    }
    text
}

/// Text inside a table: bars would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
