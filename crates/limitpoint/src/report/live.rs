//! The page that follows runs: the report of what there is so far, and who is at work.

use super::html::{count, escape, page, parts, plot_data};
use crate::experiments::{Analysis, ExperimentRecord, RunningEntry, SweepStatus};

const SCRIPT: &str = include_str!("assets/live.js");
/// The page may ask its own server, and nobody else.
const POLICY: &str = "connect-src 'self'; ";
/// Most rows of the table of runs that somebody is at.
const MOST_ROWS: usize = 200;

/// The report of what there is so far as a page that follows what comes; `parts` and `events` are asked of where the page
/// came from.
pub fn live_html(record: &ExperimentRecord, analysis: &Analysis, status: &SweepStatus, trouble: &[String]) -> String {
    page(record, analysis, "live", &all_parts(record, analysis, status, trouble), POLICY, SCRIPT)
}

/// What such a page asks for when something is new: its parts as HTML and the data of its plots, as JSON.
pub fn live_parts(
    record: &ExperimentRecord,
    analysis: &Analysis,
    status: &SweepStatus,
    trouble: &[String],
    version: u64,
) -> String {
    let parts: serde_json::Map<String, serde_json::Value> = all_parts(record, analysis, status, trouble)
        .into_iter()
        .map(|(name, text)| (name.to_owned(), serde_json::Value::String(text)))
        .collect();
    let parts = serde_json::Value::Object(parts);
    format!("{{\"version\":{version},\"parts\":{parts},\"data\":{}}}", plot_data(record, analysis))
}

fn all_parts(
    record: &ExperimentRecord,
    analysis: &Analysis,
    status: &SweepStatus,
    trouble: &[String],
) -> Vec<(&'static str, String)> {
    let mut all = vec![("work", work(status, trouble))];
    all.extend(parts(record, analysis));
    all
}

/// How far the runs are, and who is at which.
fn work(status: &SweepStatus, trouble: &[String]) -> String {
    let SweepStatus { runs, done, running, waiting, failed, .. } = status;
    let mut text = format!(
        "<section id=\"work\" data-nav=\"At work\"><h2>At work</h2><p>{}: <b id=\"work-done\">{done}</b> done, {} running, \
         {waiting} waiting, {} failed{}</p>",
        count(*runs as u64, "run"),
        running.len(),
        failed.len(),
        status.seconds_left.map_or_else(String::new, |left| format!("; about {} left", time(left))),
    );
    if !running.is_empty() {
        let row = |entry: &RunningEntry| {
            let RunningEntry { run, worker, host, process, seconds } = entry;
            let seconds = seconds.map_or_else(|| "just begun".to_owned(), time);
            let process = if *process == 0 { String::new() } else { process.to_string() };
            let cells = [run, host, &process, &seconds, worker].map(|text| format!("<td>{}</td>", escape(text)));
            format!("<tr>{}</tr>\n", cells.concat())
        };
        let rows: String = running.iter().take(MOST_ROWS).map(row).collect();
        text += &format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs that somebody is at\">\
             <table class=\"numbers small\"><thead><tr><th>run</th><th>machine</th><th>process</th><th>for</th><th>worker</th></tr>\
             </thead><tbody>\n{rows}</tbody></table></div>"
        );
    }
    for line in trouble.iter().take(5) {
        text += &format!("<p class=\"explain\">not readable at the last look: {}</p>", escape(line));
    }
    text + "</section>"
}

/// Seconds for people.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
