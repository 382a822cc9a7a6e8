//! Claims of the papers with their verdicts and figures, on one page.

use super::html::{escape, fill};
use super::sheet::Sheet;
use super::svg::sketch_figure;
use crate::claims::{Check, ClaimRecord};

const CONTENT: &str = include_str!("assets/gallery.html");

/// The claims as one HTML page that loads nothing: verdicts in a table, then each claim with its figures and numbers.
///
/// ```
/// let page = limitpoint::report::gallery("Paper B", &[]);
/// assert!(page.contains("<h1>Paper B</h1>") && page.contains("0 of 0"));
/// ```
pub fn gallery(title: &str, claims: &[ClaimRecord]) -> String {
    let expected = claims.iter().filter(|claim| claim.as_expected).count();
    let seconds: f64 = claims.iter().map(|claim| claim.seconds).sum();
    let scale = claims.first().map_or("", |claim| claim.scale.as_str());
    let facts = format!(
        "<li><b>{expected} of {}</b> verdicts as expected</li><li>{} scale</li><li>{seconds:.0} seconds</li>",
        claims.len(),
        if scale.is_empty() { "no" } else { scale },
    );
    let rows: String = claims.iter().map(row).collect();
    let articles: String = claims.iter().map(article).collect();
    let title = escape(title);
    let content = fill(CONTENT, &[("rows", &rows), ("claims", &articles)]);
    Sheet { kind: "claims", title: &title, heading: &title, style: "", facts: &facts, content: &content }.page()
}

/// Class, mark and words of a verdict.
fn verdict(claim: &ClaimRecord) -> (&'static str, &'static str, String) {
    let words = match (claim.printed, claim.as_expected) {
        (true, true) => format!("{}, as expected of the printed form", claim.verdict),
        (true, false) => format!("{}, although it is the printed form", claim.verdict),
        _ => claim.verdict.clone(),
    };
    let (class, mark) = if claim.as_expected { ("seen", "✓") } else { ("unseen", "✗") };
    (class, mark, words)
}

fn anchor(claim: &ClaimRecord) -> String {
    escape(&claim.id.replace('.', "-"))
}

fn row(claim: &ClaimRecord) -> String {
    let (class, mark, words) = verdict(claim);
    format!(
        "<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th><td class=\"outcome\"><span class=\"verdict {class}\">\
         <span aria-hidden=\"true\">{mark}</span> {}</span></td><td class=\"outcome\">{}</td><td>{:.1}</td></tr>\n",
        anchor(claim),
        escape(&claim.id),
        escape(&words),
        escape(&claim.statement),
        claim.seconds,
    )
}

fn article(claim: &ClaimRecord) -> String {
    let (class, mark, words) = verdict(claim);
    let figures: String = claim
        .figures
        .iter()
        .filter_map(|sketch| Some((sketch, sketch_figure(sketch)?)))
        .map(|(sketch, figure)| {
            let title = escape(&sketch.title);
            format!("<figure>{}<figcaption>{title}</figcaption></figure>\n", figure.svg)
        })
        .collect();
    let figures = if figures.is_empty() { figures } else { format!("<div class=\"figures\">\n{figures}</div>\n") };
    let notes: String = claim.notes.iter().map(|note| format!("<p class=\"explain\">{}</p>\n", escape(note))).collect();
    let runs = match claim.experiments.as_slice() {
        [] => String::new(),
        names => {
            let names: Vec<String> =
                names.iter().map(|name| format!("<code>limitpoint run {}</code>", escape(name))).collect();
            format!("<p class=\"explain\">Look at its experiments with {}.</p>\n", names.join(", "))
        }
    };
    let rows: String = claim.checks.iter().map(check).collect();
    format!(
        "<section id=\"{}\" class=\"claim\"><h2>{}</h2>\n<p class=\"lead\">{}</p>\n<p class=\"mark {class}\">\
         <span class=\"verdict {class}\"><span aria-hidden=\"true\">{mark}</span> {}</span></p>\n<div class=\"evidence\">\n\
         {figures}<div>{notes}{runs}<details{}><summary>{} comparisons</summary>\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Comparisons of {}\">\
         <table class=\"numbers\"><thead><tr><th scope=\"col\">What</th>\
         <th scope=\"col\" class=\"outcome\">Expected</th><th scope=\"col\" class=\"outcome\">Measured</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div></details></div>\n</div>\n</section>\n",
        anchor(claim),
        escape(&claim.id),
        escape(&claim.statement),
        escape(&words),
        // numbers stand next to figures, and next to surprises
        if claim.as_expected && claim.figures.is_empty() { "" } else { " open" },
        claim.checks.len(),
        escape(&claim.id),
    )
}

fn check(check: &Check) -> String {
    let class = if check.holds { "seen" } else { "unseen" };
    let mark = if check.holds { "✓" } else { "✗" };
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"outcome\">{}</td><td class=\"outcome\"><span class=\"verdict {class}\">\
         {mark}</span> {}</td></tr>\n",
        escape(&check.what),
        escape(&check.expected),
        escape(&check.measured),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Sketch;

    fn record() -> ClaimRecord {
        ClaimRecord {
            id: "B.x<1>".into(),
            statement: "a & b {{claims}}".into(),
            verdict: "certified".into(),
            expected: "1".into(),
            measured: "1".into(),
            scale: "quick".into(),
            seconds: 0.5,
            printed: false,
            as_expected: true,
            experiments: vec!["linear".into()],
            checks: vec![Check { what: "w".into(), expected: "e".into(), measured: "m".into(), holds: true }],
            notes: vec!["a note".into()],
            figures: vec![Sketch::new("f", "A figure", "x", "y").curve("c", vec![[0.0, 0.0], [1.0, 1.0]])],
        }
    }

    #[test]
    fn the_page_shows_everything_and_escapes_it() {
        let page = gallery("Paper <B>", &[record()]);
        for part in ["Paper &lt;B&gt;", "B.x&lt;1&gt;", "a &amp; b", "A figure", "<svg", "a note", "1 comparisons"] {
            assert!(page.contains(part), "{part} is missing");
        }
        assert!(!page.contains("<1>") && !page.contains("{{rows}}"));
    }

    #[test]
    fn a_verdict_that_was_not_expected_is_open_and_marked() {
        let page = gallery("x", &[ClaimRecord { as_expected: false, verdict: "refuted".into(), ..record() }]);
        assert!(page.contains("<details open>") && page.contains("verdict unseen") && page.contains("<b>0 of 1</b>"));
    }
}
