//! The words and tables of a page: findings, final values, failed runs, certificates, all runs.

use super::html::{count, escape, grouped};
use super::picture::swatch;
use crate::experiments::{
    Analysis, ExperimentRecord, FailureKind, Finding, Group, RunRecord, Summary, SummaryCell, Table,
};

/// The most rows of a table behind a finding.
const MOST_ROWS: usize = 40;
/// The most rows of the table of final values.
const MOST_LINES: usize = 600;
/// The most rows of the table of all runs, which are short.
const MOST_RUNS: usize = 2000;

/// What was found, in a line or two each; the numbers are behind a click.
pub(super) fn findings(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let one = |finding: &Finding| {
        let (class, mark, word) = match finding.as_expected {
            Some(true) => ("seen", "✓", "as expected"),
            Some(false) if finding.in_part => ("part", "◐", "in part"),
            Some(false) => ("unseen", "✗", "not as expected"),
            None => ("open", "○", "no prediction"),
        };
        format!(
            "<article class=\"finding {class}\"><h3>{}</h3><p class=\"mark\"><span aria-hidden=\"true\">{mark}</span> \
             {word}</p><p>{}</p>{}</article>\n",
            escape(&finding.title),
            escape(&finding.text),
            numbers(finding),
        )
    };
    let articles: String = findings.iter().map(one).collect();
    format!(
        "<section id=\"findings\" data-nav=\"Findings\"><h2>Findings</h2>\n<div class=\"findings\">\n{articles}</div>\n\
         </section>"
    )
}

/// What a finding rests on.
fn numbers(finding: &Finding) -> String {
    let explanation = match finding.explanation.as_str() {
        "" => String::new(),
        text => format!("<p>{}</p>", escape(text)),
    };
    if explanation.is_empty() && finding.table.rows.is_empty() {
        return String::new();
    }
    format!("<details><summary>Numbers</summary>{explanation}{}</details>", small_table(&finding.table))
}

/// Texts in rows and columns, cut where there are too many.
fn small_table(table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let cells = |tag: &str, texts: &[String]| -> String {
        texts.iter().map(|text| format!("<{tag}>{}</{tag}>", escape(text))).collect()
    };
    let rows: String =
        table.rows.iter().take(MOST_ROWS).map(|row| format!("<tr>{}</tr>\n", cells("td", row))).collect();
    let more = match table.rows.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("<p>And {more} more rows; `limitpoint report --format json` prints all.</p>"),
    };
    let headings = cells("th", &table.columns);
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Numbers behind the finding\"><table class=\"numbers small\">\
         <thead><tr>{headings}</tr></thead><tbody>\n{rows}</tbody></table></div>{more}"
    )
}

/// Failed runs, those alike together.
pub(super) fn failures(failures: &[FailureKind], all: usize) -> String {
    if failures.is_empty() {
        return String::new();
    }
    let failed: usize = failures.iter().map(|failure| failure.runs).sum();
    let row = |failure: &FailureKind| {
        format!(
            "<tr><th scope=\"row\">{}</th><td>{} of {}</td><td class=\"outcome\">{}</td><td class=\"outcome trouble\">{}</td></tr>\n",
            escape(&failure.optimiser),
            failure.runs,
            failure.of,
            escape(&failure.which),
            escape(&failure.reason),
        )
    };
    let rows: String = failures.iter().take(MOST_ROWS).map(row).collect();
    format!(
        "<section id=\"failures\" data-nav=\"Failed runs\"><h2>Failed runs</h2>\n<p class=\"explain\">{failed} of {} did not end by a \
         rule of the recipe. Means and curves are over the others and say of how many seeds.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of failed runs\">\n<table \
         class=\"numbers\"><thead><tr><th scope=\"col\">Optimiser</th><th scope=\"col\">Runs</th><th scope=\"col\" \
         class=\"outcome\">Which</th><th scope=\"col\" class=\"outcome\">Why, of the first</th></tr></thead>\n<tbody>\n{rows}</tbody>\
         </table></div>\n</section>",
        count(all as u64, "run")
    )
}

/// Final values, one row per group.
pub(super) fn summary(record: &ExperimentRecord, analysis: &Analysis) -> String {
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
    let several = rows.iter().any(|row| row.of > 1);
    let (mut body, mut explained) = (String::new(), Vec::new());
    for row in rows.iter().take(MOST_LINES) {
        let place = analysis.groups.iter().position(|group| group.label == row.label);
        let runs = place.map(|place| runs_of(record, &analysis.groups[place])).unwrap_or_default();
        let swatch = place.map_or_else(String::new, |place| swatch(analysis, place));
        // once for every optimiser
        let new = runs.first().filter(|run| !explained.contains(&run.optimiser.as_str()));
        let formula = new.map_or_else(String::new, |run| {
            explained.push(run.optimiser.as_str());
            format!("<span class=\"formula\">{}</span>", escape(&run.formula))
        });
        let seeds = if several { format!("<td>{}</td>", row.seeds_in_words()) } else { String::new() };
        let cells: String = row.cells.iter().map(cell).collect();
        body += &format!(
            "<tr><th scope=\"row\">{swatch}{}{formula}</th>{seeds}{cells}<td class=\"outcome\">{}</td></tr>\n",
            escape(&row.label),
            outcomes(&runs),
        );
    }
    let seeds = if several { "<th scope=\"col\">Means of</th>" } else { "" };
    format!(
        "<section id=\"final-values\" data-nav=\"Final values\"><h2>Final values</h2>\n<p class=\"explain\">Mean over the seeds that did not fail; ★ marks the largest value of a \
         contested column.</p>\n<div class=\"scroll\" tabindex=\"0\" \
         role=\"region\" aria-label=\"Table of final values\">\n<table class=\"numbers\"><thead><tr><th scope=\"col\">Optimiser</th>\
         {seeds}{headings}<th scope=\"col\" class=\"outcome\">Outcome</th></tr></thead>\n<tbody>\n{body}</tbody></table></div>{}\n</section>",
        more(rows.len(), MOST_LINES, "`limitpoint report --tables csv` writes all"),
    )
}

/// A word about rows that are left out.
fn more(rows: usize, most: usize, all: &str) -> String {
    match rows.saturating_sub(most) {
        0 => String::new(),
        more => format!("<p class=\"explain\">And {more} more; {all}.</p>"),
    }
}

/// What was proven about each run.
pub(super) fn certificates(runs: &[RunRecord]) -> String {
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

/// Every run with its outcome.
pub(super) fn runs(runs: &[RunRecord]) -> String {
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
    let rows: String = runs.iter().take(MOST_RUNS).map(row).collect();
    let test = if tested { "<th scope=\"col\">Test accuracy</th>" } else { "" };
    format!(
        "<details><summary>All runs</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of all runs\">\
         <table class=\"numbers\"><thead><tr><th scope=\"col\">Run</th><th scope=\"col\">Seed</th><th scope=\"col\">Steps</th>\
         <th scope=\"col\">Seconds</th>{test}<th scope=\"col\" class=\"outcome\">Stop</th></tr></thead>\n<tbody>\n{rows}</tbody>\
         </table></div>{}</details>",
        more(runs.len(), MOST_RUNS, "`limitpoint report --tables csv` writes all"),
    )
}
