//! The page: one file that opens offline, from disk, in any browser.

use super::page_data::PageData;
use crate::experiments::{Analysis, ExperimentRecord, Finding, Group, RunRecord, Summary, SummaryCell};

const PAGE: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/style.css");
const PLOTLY: &str = include_str!("assets/plotly-cartesian.min.js");
const SCRIPT: [&str; 3] =
    [include_str!("assets/report.js"), include_str!("assets/plots.js"), include_str!("assets/pictures.js")];

/// An experiment as one HTML page.
///
/// The page carries its style, its script, the drawing library and the data; it loads nothing, so it can be kept, sent
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
    let data = serde_json::to_string(&PageData::new(record, analysis)).unwrap_or_else(|_| "null".to_owned());
    let title = if record.title.is_empty() { &record.name } else { &record.title };
    fill(
        PAGE,
        &[
            ("title", &escape(title)),
            ("style", STYLE),
            ("description", &paragraphs(&record.description)),
            ("facts", &facts(record)),
            ("findings", &findings(&analysis.findings)),
            ("summary", &summary(record, analysis)),
            ("certificates", &certificates(&record.runs)),
            ("citation", &citation(record)),
            ("config", &config(&record.config)),
            ("runs", &runs(&record.runs)),
            ("data", &script_safe(&data)),
            ("plotly", PLOTLY),
            ("script", &SCRIPT.join("\n")),
        ],
    )
}

/// Replaces every `{{name}}` of a template; what is put in is not looked at again, so text of a record cannot name a
/// place. Unknown names stay.
pub(super) fn fill(template: &str, values: &[(&str, &str)]) -> String {
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
pub(super) fn escape(text: &str) -> String {
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
fn count(number: u64, what: &str) -> String {
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

fn findings(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let one = |finding: &Finding| {
        let (class, mark, word) = match finding.as_expected {
            Some(true) => ("seen", "✓", "as expected"),
            Some(false) => ("unseen", "✗", "not as expected"),
            None => ("open", "○", "no prediction"),
        };
        format!(
            "<article class=\"finding {class}\"><h3>{}</h3><p class=\"mark\"><span aria-hidden=\"true\">{mark}</span> \
             {word}</p><p>{}</p></article>\n",
            escape(&finding.title),
            escape(&finding.text),
        )
    };
    let articles: String = findings.iter().map(one).collect();
    format!(
        "<section id=\"findings\" data-nav=\"Findings\"><h2>Findings</h2>\n<div class=\"findings\">\n{articles}</div>\n\
         </section>"
    )
}

fn summary(record: &ExperimentRecord, analysis: &Analysis) -> String {
    let Summary { columns, rows } = &analysis.summary;
    if rows.is_empty() {
        return String::new();
    }
    let headings: String = columns
        .iter()
        .map(|column| format!("<th scope=\"col\" title=\"{}\">{}</th>", escape(&column.key), escape(&column.label)))
        .collect();
    let cell = |cell: &SummaryCell| match cell.winner {
        true => format!(
            "<td class=\"winner\">{}<span class=\"star\" aria-hidden=\"true\">★</span><span class=\"hidden-text\"> (largest)</span></td>",
            escape(&cell.text)
        ),
        false => format!("<td>{}</td>", escape(&cell.text)),
    };
    let mut body = String::new();
    for row in rows {
        let place = analysis.groups.iter().position(|group| group.label == row.label);
        let runs = place.map(|place| runs_of(record, &analysis.groups[place])).unwrap_or_default();
        let swatch =
            place.map_or_else(String::new, |place| format!("<span class=\"swatch\" data-group=\"{place}\"></span>"));
        let formula = runs.first().map_or("", |run| run.formula.as_str());
        let cells: String = row.cells.iter().map(cell).collect();
        body += &format!(
            "<tr><th scope=\"row\">{swatch}{}<span class=\"formula\">{}</span></th>{cells}<td class=\"outcome\">{}</td></tr>\n",
            escape(&row.label),
            escape(formula),
            outcomes(&runs),
        );
    }
    format!(
        "<section id=\"final-values\" data-nav=\"Final values\"><h2>Final values</h2>\n<p class=\"explain\">Mean over the seeds \
         at the end of each run; ★ marks the largest value of a contested column.</p>\n<div class=\"scroll\" tabindex=\"0\" \
         role=\"region\" aria-label=\"Table of final values\">\n<table class=\"numbers\"><thead><tr><th scope=\"col\">Optimiser</th>\
         {headings}<th scope=\"col\" class=\"outcome\">Outcome</th></tr></thead>\n<tbody>\n{body}</tbody></table></div>\n</section>"
    )
}

/// What was proven about each run.
fn certificates(runs: &[RunRecord]) -> String {
    let row = |run: &RunRecord| {
        let certificate = run.certificate.as_ref()?;
        let (class, mark) = match certificate.holds {
            Some(true) => ("seen", "✓"),
            Some(false) => ("unseen", "✗"),
            None => ("open", "○"),
        };
        Some(format!(
            "<tr><th scope=\"row\">{}</th><td class=\"outcome\"><span class=\"verdict {class}\"><span aria-hidden=\"true\">{mark}\
             </span> {}</span></td><td class=\"outcome\">{}</td><td class=\"outcome\">{}</td></tr>\n",
            escape(&run.name),
            escape(&certificate.verdict),
            escape(&certificate.statement),
            escape(&certificate.evidence),
        ))
    };
    let rows: String = runs.iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"certificates\" data-nav=\"Certificates\"><h2>Certificates</h2>\n<p class=\"explain\">What the judge \
         proved about the weights each run ended with; its certificate.json can be checked again from data and weights \
         alone.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of certificates\">\n\
         <table class=\"numbers\"><thead><tr><th scope=\"col\">Run</th><th scope=\"col\" class=\"outcome\">Verdict</th>\
         <th scope=\"col\" class=\"outcome\">Claim</th><th scope=\"col\" class=\"outcome\">Evidence</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n</section>"
    )
}

fn runs_of<'a>(record: &'a ExperimentRecord, group: &Group) -> Vec<&'a RunRecord> {
    group.runs.iter().filter_map(|index| record.runs.get(*index)).collect()
}

/// Why the runs of a group ended, troubled ones first, equal ones counted.
fn outcomes(runs: &[&RunRecord]) -> String {
    let mut kinds: Vec<(bool, &str, usize)> = Vec::new();
    for run in runs {
        match kinds.iter_mut().find(|(healthy, stop, _)| *healthy == run.healthy && *stop == run.stop) {
            Some((_, _, times)) => *times += 1,
            None => kinds.push((run.healthy, &run.stop, 1)),
        }
    }
    kinds.sort_by_key(|(healthy, _, _)| *healthy);
    let one = |(healthy, stop, times): &(bool, &str, usize)| {
        let share = if *times < runs.len() { format!("{times} of {}", runs.len()) } else { String::new() };
        outcome(*healthy, &share, stop)
    };
    kinds.iter().map(one).collect()
}

/// Why runs ended, with a mark and the share of runs it is about.
fn outcome(healthy: bool, share: &str, stop: &str) -> String {
    let stop = escape(stop);
    match (healthy, share) {
        (true, "") => format!("<span class=\"stop\">{stop}</span>"),
        (true, share) => format!("<span class=\"stop\">{share}: {stop}</span>"),
        (false, "") => format!("<span class=\"stop trouble\"><b>⚠ in trouble:</b> {stop}</span>"),
        (false, share) => format!("<span class=\"stop trouble\"><b>⚠ {share} in trouble:</b> {stop}</span>"),
    }
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

fn runs(runs: &[RunRecord]) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let tested = runs.iter().any(|run| run.test_accuracy.is_some());
    let row = |run: &RunRecord| {
        let test = match run.test_accuracy {
            Some(share) if tested => format!("<td>{:.2} %</td>", 100.0 * share),
            _ if tested => "<td>–</td>".to_owned(),
            _ => String::new(),
        };
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{:.2}</td>{test}<td class=\"outcome\">{}</td></tr>\n",
            escape(&run.name),
            run.seed,
            grouped(run.steps),
            run.seconds,
            outcome(run.healthy, "", &run.stop),
        )
    };
    let rows: String = runs.iter().map(row).collect();
    let test = if tested { "<th scope=\"col\">Test accuracy</th>" } else { "" };
    format!(
        "<details><summary>All runs</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of all runs\">\
         <table class=\"numbers\"><thead><tr><th scope=\"col\">Run</th><th scope=\"col\">Seed</th><th scope=\"col\">Steps</th>\
         <th scope=\"col\">Seconds</th>{test}<th scope=\"col\" class=\"outcome\">Stop</th></tr></thead>\n<tbody>\n{rows}</tbody>\
         </table></div></details>"
    )
}
