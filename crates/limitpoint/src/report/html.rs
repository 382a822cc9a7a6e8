//! The page: one file that opens offline, from disk, in any browser.

use super::layers::layers;
use super::page_data::PageData;
use super::picture::standing;
use super::tables::{certificates, failures, findings, runs, summary};
use crate::experiments::{Analysis, ExperimentRecord};

const PAGE: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/style.css");
const PLOTLY: &str = include_str!("assets/plotly-cartesian.min.js");
const SCRIPT: [&str; 6] = [
    include_str!("assets/report.js"),
    include_str!("assets/controls.js"),
    include_str!("assets/plots.js"),
    include_str!("assets/sweeps.js"),
    include_str!("assets/maps.js"),
    include_str!("assets/pictures.js"),
];

/// An experiment as one HTML page.
///
/// It begins with a picture of who reached which margin; curves, findings and tables follow. The page carries its style, its script, the drawing library and the data; it loads nothing, so it can be kept, sent
/// and opened without a network. Words and tables are there without the script too. The same input gives the same text.
///
/// ```
/// use limitpoint::experiments::{Analysis, ExperimentRecord};
///
/// let record = ExperimentRecord { title: "Which margin? <1>".into(), ..Default::default() };
/// let page = limitpoint::report::html(&record, &Analysis::default());
/// assert!(page.contains("<h1>Which margin? &lt;1&gt;</h1>"));
/// ```
pub fn html(record: &ExperimentRecord, analysis: &Analysis) -> String {
    page(record, analysis, "report", &parts(record, analysis), "", "")
}

/// What a page shows besides its plots, by the places in the template.
pub(super) fn parts(record: &ExperimentRecord, analysis: &Analysis) -> Vec<(&'static str, String)> {
    vec![
        ("facts", facts(record)),
        ("standing", standing(analysis)),
        ("failures", failures(&analysis.failure_kinds, record.runs.len())),
        ("findings", findings(&analysis.findings)),
        ("summary", summary(record, analysis)),
        ("certificates", certificates(&record.runs)),
        ("layers", layers(&record.runs)),
        ("runs", runs(&record.runs)),
    ]
}

/// What the script draws, as JSON.
pub(super) fn plot_data(record: &ExperimentRecord, analysis: &Analysis) -> String {
    serde_json::to_string(&PageData::new(record, analysis)).unwrap_or_else(|_| "null".to_owned())
}

/// The page; `policy` is what it may do beyond showing what it carries, `script` what it does then.
pub(super) fn page(
    record: &ExperimentRecord,
    analysis: &Analysis,
    kind: &str,
    parts: &[(&'static str, String)],
    policy: &str,
    script: &str,
) -> String {
    let title = escape(if record.title.is_empty() { &record.name } else { &record.title });
    let (description, citation) = (paragraphs(&record.description), citation(record));
    let (config, data) = (config(&record.config), script_safe(&plot_data(record, analysis)));
    let script = SCRIPT.join("\n") + script;
    let mut values: Vec<(&str, &str)> = parts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    values.extend([
        ("title", title.as_str()),
        ("kind", kind),
        ("policy", policy),
        ("style", STYLE),
        ("description", &description),
        ("citation", &citation),
        ("config", &config),
        ("data", &data),
        ("plotly", PLOTLY),
        ("script", &script),
        ("work", ""),
    ]);
    fill(PAGE, &values)
}

/// Replaces every `{{name}}` of a template; what is put in is not looked at again, so text of a record cannot name a
/// place. Unknown names stay.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut page = String::with_capacity(template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        page.push_str(before);
        let found = after.split_once("}}").and_then(|(name, behind)| {
            values.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value, behind))
        });
        rest = match found {
            Some((value, behind)) => {
                page.push_str(value);
                behind
            }
            None => {
                page.push_str("{{");
                after
            }
        };
    }
    page.push_str(rest);
    page
}

/// Text as it may stand between tags and in quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// JSON as it may stand in a script element: `<` occurs in strings only, where `\u003c` means the same.
pub(super) fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Text with empty lines between its paragraphs.
fn paragraphs(text: &str) -> String {
    let parts = text.split("\n\n").map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| format!("<p class=\"lead\">{}</p>\n", escape(part))).collect()
}

fn facts(record: &ExperimentRecord) -> String {
    let data = &record.data;
    let mut facts = Vec::new();
    if !data.name.is_empty() {
        facts.push(format!("data <b>{}</b>", escape(&data.name)));
    }
    facts.push(count(data.examples as u64, "example"));
    if data.test_examples > 0 {
        facts.push(count(data.test_examples as u64, "test example"));
    }
    if !data.input_shape.is_empty() {
        let shape: Vec<String> = data.input_shape.iter().map(usize::to_string).collect();
        facts.push(format!("inputs {}", shape.join(" × ")));
    }
    facts.push(count(record.runs.len() as u64, "run"));
    facts.push(format!("limitpoint {}", escape(&record.version)));
    facts.iter().map(|fact| format!("<li>{fact}</li>")).collect()
}

/// `1,437 examples`, `1 run`.
pub(super) fn count(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A whole number with commas between thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn citation(record: &ExperimentRecord) -> String {
    let mut words = format!(
        "limitpoint {}, experiment “{}”: {}.",
        record.version,
        record.name,
        if record.title.is_empty() { &record.name } else { &record.title }
    );
    if !record.data.sha256.is_empty() {
        words += &format!(" Data {}, SHA-256 {}.", record.data.name, record.data.sha256);
    }
    escape(&words)
}

fn config(config: &str) -> String {
    if config.is_empty() {
        return String::new();
    }
    format!(
        "<details><summary>Resolved recipe</summary><pre tabindex=\"0\"><code>{}</code></pre></details>",
        escape(config)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// All files are one script, in which a second function of the same name would silently replace the first.
    #[test]
    fn no_two_functions_of_the_script_have_one_name() {
        let lines = super::SCRIPT.iter().chain(&[include_str!("assets/live.js")]).flat_map(|file| file.lines());
        let names = lines.filter_map(|line| {
            line.strip_prefix("async ").unwrap_or(line).strip_prefix("function ")?.split('(').next()
        });
        let mut seen = BTreeSet::new();
        let twice: Vec<&str> = names.filter(|name| !seen.insert(*name)).collect();
        assert!(twice.is_empty() && seen.len() > 20, "{twice:?} of {}", seen.len());
    }
}
