//! Claims of the papers on one page: figures, the papers' numbers beside ours, what came of each, with filters.

use std::collections::BTreeSet;

use limitpoint::report::{Sheet, escape, fill};

use crate::claim_page::{STYLE, drawn, page_name, print_cells, verdict};
use crate::typeset::typeset;
use crate::{ClaimRecord, Scale, Status, summary};

const CONTENT: &str = include_str!("assets/gallery.html");

/// The claims as an HTML page that loads nothing and leads to `claims/<id>.html`, the pages of
/// [`claim_page`](crate::claim_page()).
///
/// ```
/// let page = limitpoint_claims::gallery("Paper B", &[]);
/// assert!(page.contains("<h1>Paper B</h1>") && page.contains("nothing was tried"));
/// ```
pub fn gallery(title: &str, claims: &[ClaimRecord]) -> String {
    let seconds: f64 = claims.iter().map(|claim| claim.seconds).sum();
    let surprises = claims.iter().filter(|claim| !claim.as_recorded()).count();
    let words: BTreeSet<&str> = claims.iter().map(|claim| claim.scale.word()).collect();
    let facts = format!(
        "<li><b>{}</b></li>{}<li>{} scale</li><li>{seconds:.0} seconds</li>",
        summary(claims.iter().map(|claim| claim.status)),
        if surprises > 0 { format!("<li><b>{surprises} not as on record</b></li>") } else { String::new() },
        if words.is_empty() { "no".to_owned() } else { words.into_iter().collect::<Vec<_>>().join(", ") },
    );
    let (filters, style) = filters(claims);
    let rows: String = claims.iter().map(row).collect();
    let figures: String = claims.iter().map(cards).collect();
    let print: String = claims.iter().map(print_rows).collect();
    let hidden = |what: &str| if what.is_empty() { " hidden" } else { "" };
    let values = [
        ("filters", filters.as_str()),
        ("figures", &figures),
        ("no_figures", hidden(&figures)),
        ("print", &print),
        ("no_print", hidden(&print)),
        ("rows", &rows),
    ];
    let (title, content) = (escape(title), fill(CONTENT, &values));
    let style = format!("{STYLE}{style}");
    Sheet { kind: "claims", title: &title, heading: &title, style: &style, facts: &facts, content: &content }.page()
}

/// The paper a claim is about; questions of our own have a letter too.
fn paper(claim: &ClaimRecord) -> String {
    escape(claim.id.split('.').next().unwrap_or_default())
}

/// A status as one word.
fn status_word(status: Status) -> String {
    status.to_string().replace(' ', "-")
}

/// What the filters look at.
fn labels(claim: &ClaimRecord) -> String {
    let (status, scale) = (status_word(claim.status), claim.scale.word());
    format!("data-paper=\"{}\" data-status=\"{status}\" data-scale=\"{scale}\"", paper(claim))
}

/// What stands in a rule, and the words for it.
type Choice = (String, String);

/// Choices of paper, status and scale, where there is a choice, and the rules by which they hide: no script is needed.
fn filters(claims: &[ClaimRecord]) -> (String, String) {
    let papers: BTreeSet<String> = claims.iter().map(paper).collect();
    let has = |status: &Status| claims.iter().any(|claim| claim.status == *status);
    let statuses = Status::ALL.into_iter().filter(has).map(|status| (status_word(status), status.to_string()));
    let scales = [Scale::Quick, Scale::Full, Scale::Paper].into_iter();
    let scales =
        scales.filter(|scale| claims.iter().any(|claim| claim.scale == *scale)).map(|scale| scale.word().to_owned());
    let groups: [(&str, &str, Vec<Choice>); 3] = [
        ("paper", "Paper", papers.into_iter().map(|paper| (paper.clone(), paper)).collect()),
        ("status", "Status", statuses.collect()),
        ("scale", "Scale", scales.map(|scale| (scale.clone(), scale)).collect()),
    ];
    let (mut html, mut rules) = (String::new(), String::new());
    for (name, legend, options) in groups.into_iter().filter(|(_, _, options)| options.len() > 1) {
        let mut choices = format!("<label><input type=\"radio\" name=\"{name}\" checked><span>all</span></label>");
        for (value, words) in options {
            choices += &format!(
                "<label><input type=\"radio\" name=\"{name}\" id=\"{name}-{value}\"><span>{words}</span></label>"
            );
            rules += &format!(
                "body:has(#{name}-{value}:checked) [data-{name}]:not([data-{name}=\"{value}\"]) {{ display: none; }}\n"
            );
        }
        html += &format!(
            "<fieldset class=\"segments\"><legend>{legend}</legend><div class=\"options\">{choices}</div></fieldset>\n"
        );
    }
    if html.is_empty() { (html, rules) } else { (format!("<form class=\"filters\">\n{html}</form>"), rules) }
}

fn address(claim: &ClaimRecord) -> String {
    escape(&format!("claims/{}", page_name(claim)))
}

/// The figures of a claim, each a link to its page.
fn cards(claim: &ClaimRecord) -> String {
    let card = |(svg, title): (String, String)| {
        format!(
            "<figure {}><a href=\"{}\">{svg}<figcaption><b>{}</b> {title}<br>{}</figcaption></a></figure>\n",
            labels(claim),
            address(claim),
            escape(&claim.id),
            verdict(claim),
        )
    };
    claim.figures.iter().filter_map(drawn).map(card).collect()
}

fn print_rows(claim: &ClaimRecord) -> String {
    let rows = claim.checks.iter().filter_map(|check| {
        let cells = print_cells(check)?.map(|cell| format!("<td>{cell}</td>")).concat();
        let what = typeset(&check.what);
        let scale = claim.scale.word();
        Some(format!(
            "<tr {}>{}<td class=\"outcome\">{what}</td>{cells}<td>{scale}</td></tr>\n",
            labels(claim),
            name(claim)
        ))
    });
    rows.collect()
}

fn name(claim: &ClaimRecord) -> String {
    format!("<th scope=\"row\" class=\"name\"><a href=\"{}\">{}</a></th>", address(claim), escape(&claim.id))
}

fn row(claim: &ClaimRecord) -> String {
    format!(
        "<tr id=\"{}\" {}>{}<td class=\"outcome\">{}</td><td class=\"outcome\">{}</td><td>{}</td><td>{} of {}</td>\
         <td>{:.1}</td></tr>\n",
        escape(&claim.id.replace('.', "-")),
        labels(claim),
        name(claim),
        verdict(claim),
        typeset(&claim.statement),
        claim.scale.word(),
        claim.holding(),
        claim.checks.len(),
        claim.seconds,
    )
}

#[cfg(test)]
mod tests {
    use limitpoint::report::Sketch;

    use super::*;
    use crate::{Kind, Outcome, Setting, claim_page};

    fn record() -> ClaimRecord {
        let mut outcome = Outcome::default();
        outcome.at_least("w", 1.5, 1.0).printed(3.0).catalogue_asks("2");
        ClaimRecord {
            id: "B.x<1>".into(),
            statement: "a & b {{rows}} with γ/L".into(),
            kind: Kind::Finding,
            status: Status::Reproduced,
            on_record: Status::Reproduced,
            expected: "1".into(),
            measured: "1".into(),
            scale: Scale::Quick,
            version: "0".into(),
            seconds: 0.5,
            printed: false,
            experiments: vec!["linear".into()],
            setting: Setting { instead: vec!["digits <8>".into()], ..Setting::default() },
            checks: outcome.checks,
            notes: vec!["a note".into()],
            figures: vec![Sketch::new("f", "A figure", "x", "y").curve("c", vec![[0.0, 0.0], [1.0, 1.0]])],
        }
    }

    #[test]
    fn the_page_shows_everything_and_escapes_it() {
        let page = gallery("Paper <B>", &[record()]);
        for part in ["Paper &lt;B&gt;", "B.x&lt;1&gt;", "a &amp; <math>", "A figure", "<svg", "reproduced 1", "<mfrac>"]
        {
            assert!(page.contains(part), "{part} is missing");
        }
        assert!(
            page.contains("href=\"claims/B.x-1-.html\"") && page.contains("<td>3.000</td><td>1.500</td><td>0.500</td>")
        );
        assert!(!page.contains("<1>") && page.find("id=\"figures\"") < page.find("id=\"statuses\""));
        let page = claim_page(&record(), None, Some(&record()));
        for part in ["instead: digits &lt;8&gt;", "asks for 2", "a note", "limitpoint run linear", "Next: B.x", "<svg"]
        {
            assert!(page.contains(part), "{part} is missing");
        }
        assert!(page.contains("<td>3.000</td><td>1.500</td><td>0.500</td>") && page.contains("../gallery.html"));
        assert!(!page.contains("<1>") && page.find("<svg") < page.find("All comparisons"));
        assert!(!page.contains(" src=") && !page.contains("<link"), "the page loads something");
    }

    #[test]
    fn what_can_be_chosen_is_what_there_is() {
        let other = ClaimRecord { id: "A.y".into(), status: Status::NotReproduced, scale: Scale::Full, ..record() };
        let page = gallery("x", &[record(), other]);
        for part in ["paper-A", "paper-B", "status-not-reproduced", "scale-full"] {
            assert!(page.contains(&format!("id=\"{part}\"")) && page.contains(&format!("#{part}:checked")), "{part}");
        }
        assert!(!page.contains("status-undecided") && !page.contains("scale-paper"));
        assert!(!gallery("x", &[record()]).contains("<fieldset"), "one claim leaves nothing to choose");
    }

    #[test]
    fn a_status_that_is_not_on_record_is_marked() {
        let page = gallery("x", &[ClaimRecord { status: Status::NotReproduced, ..record() }]);
        assert!(page.contains("verdict unseen") && page.contains("on record: reproduced"));
        assert!(page.contains("1 not as on record"));
    }

    #[test]
    fn without_figures_and_printed_numbers_their_sections_are_hidden() {
        let page = gallery("x", &[ClaimRecord { figures: Vec::new(), checks: Vec::new(), ..record() }]);
        assert!(page.contains("<section id=\"figures\" hidden>") && page.contains("<section id=\"print\" hidden>"));
    }
}
