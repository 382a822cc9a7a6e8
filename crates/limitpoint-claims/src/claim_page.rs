//! One claim on a page of its own, which can be linked to: figures first, then the paper's numbers beside ours, then all.

use limitpoint::report::{Sheet, Sketch, escape, sketch_figure};

use crate::typeset::typeset;
use crate::{Check, ClaimRecord, Status};

pub(crate) const STYLE: &str = include_str!("assets/claims.css");

/// The page of a claim, with links to the ones before and after it and to the overview in the folder above.
///
/// ```
/// use limitpoint_claims::{Lab, Scale, claim_page, find_claims, page_name};
/// let record = find_claims("B.prop2a")?[0].run(&Lab::new(Scale::Quick));
/// let page = claim_page(&record, None, None);
/// assert!(page.contains("<math>") && page.contains("limitpoint reproduce B.prop2a"));
/// assert_eq!(page_name(&record), "B.prop2a.html");
/// # Ok::<(), limitpoint_claims::ClaimError>(())
/// ```
pub fn claim_page(claim: &ClaimRecord, before: Option<&ClaimRecord>, after: Option<&ClaimRecord>) -> String {
    let link = |claim: &ClaimRecord, way: &str| {
        format!("<a href=\"{}\">{way} {}</a>", escape(&page_name(claim)), escape(&claim.id))
    };
    let around: String = [
        Some("<a href=\"../gallery.html\">All claims</a>".to_owned()),
        before.map(|claim| link(claim, "Before:")),
        after.map(|claim| link(claim, "Next:")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let facts = format!(
        "<li><b>{}</b></li><li>a {}</li><li>{} scale</li><li>{} of {} comparisons hold</li><li>{:.1} seconds</li>",
        verdict(claim),
        claim.kind.word(),
        claim.scale.word(),
        claim.holding(),
        claim.checks.len(),
        claim.seconds,
    );
    let content = format!(
        "<div class=\"claim\"><p class=\"statement\">{}</p>\n{}{}{}{}{}<nav class=\"around\">{around}</nav></div>\n",
        typeset(&claim.statement),
        figures(claim),
        beside_print(claim),
        setting(claim),
        comparisons(claim),
        remarks(claim),
    );
    let id = escape(&claim.id);
    Sheet { kind: "claim", title: &id, heading: &id, style: STYLE, facts: &facts, content: &content }.page()
}

/// The name of its file.
pub fn page_name(claim: &ClaimRecord) -> String {
    let plain = |sign: char| if sign.is_ascii_alphanumeric() || ".-_".contains(sign) { sign } else { '-' };
    format!("{}.html", claim.id.chars().map(plain).collect::<String>())
}

/// The status with its mark, and the one on record where that is another.
pub(crate) fn verdict(claim: &ClaimRecord) -> String {
    let mut words = claim.status.to_string();
    if claim.printed {
        words += ", as printed";
    }
    if !claim.as_recorded() {
        words += &format!("; on record: {}", claim.on_record);
    }
    let (class, mark) = match claim.status {
        _ if !claim.as_recorded() => ("unseen", "!"),
        Status::Reproduced => ("seen", "✓"),
        Status::Contradicted => ("part", "✗"),
        Status::NotReproduced => ("unseen", "✗"),
        Status::Undecided => ("open", "?"),
    };
    format!("<span class=\"verdict {class}\"><span aria-hidden=\"true\">{mark}</span> {}</span>", escape(&words))
}

/// What a figure looks like, and its title.
pub(crate) fn drawn(sketch: &Sketch) -> Option<(String, String)> {
    Some((sketch_figure(sketch)?.svg, typeset(&sketch.title)))
}

fn figures(claim: &ClaimRecord) -> String {
    let figures: Vec<String> = claim
        .figures
        .iter()
        .filter_map(drawn)
        .map(|(svg, title)| format!("<figure>{svg}<figcaption>{title}</figcaption></figure>\n"))
        .collect();
    let many = if figures.len() > 1 { " many" } else { "" };
    if figures.is_empty() {
        String::new()
    } else {
        format!("<div class=\"figures{many}\">\n{}</div>\n", figures.concat())
    }
}

/// A table with a name for those who do not see it.
fn table(heading: &str, columns: &[&str], rows: &str) -> String {
    let head: String = columns
        .iter()
        .map(|column| {
            let class = if ["What", "Expected", "Measured"].contains(column) { " class=\"outcome\"" } else { "" };
            format!("<th scope=\"col\"{class}>{column}</th>")
        })
        .collect();
    format!(
        "<section><h2>{heading}</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{heading}\">\
         <table class=\"numbers\"><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div></section>\n"
    )
}

/// What, the paper's number, ours, and their ratio, as cells.
pub(crate) fn print_cells(check: &Check) -> Option<[String; 3]> {
    let printed = check.printed?;
    let ratio = check.value.filter(|_| printed != 0.0).map(|value| significant(value / printed, 3));
    let dash = || "–".to_owned();
    Some([
        significant(printed, 4),
        check.value.map_or_else(dash, |value| significant(value, 4)),
        ratio.unwrap_or_else(dash),
    ])
}

fn beside_print(claim: &ClaimRecord) -> String {
    let rows: String = claim
        .checks
        .iter()
        .filter_map(|check| {
            let cells = print_cells(check)?.map(|cell| format!("<td>{cell}</td>")).concat();
            Some(format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", typeset(&check.what)))
        })
        .collect();
    if rows.is_empty() {
        return rows;
    }
    let here = format!("Here, at {} scale", claim.scale.word());
    table("The paper's numbers beside ours", &["What", "Paper", &here, "Here over paper"], &rows)
}

fn setting(claim: &ClaimRecord) -> String {
    let lines = claim.setting.lines(usize::MAX);
    let items: String = lines.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
    let items =
        if lines.is_empty() { "<li>no runs: formulas, and points where they are evaluated</li>" } else { &items };
    let items = format!("<ul class=\"explain\">{items}</ul>");
    let items = match lines.len() {
        0..=3 => items,
        many => format!("<details><summary>{many} settings</summary>{items}</details>"),
    };
    format!("<section><h2>What was run</h2>\n{items}</section>\n")
}

fn comparisons(claim: &ClaimRecord) -> String {
    let row = |check: &Check| {
        let (class, mark, words) = match (check.holds, check.finite) {
            (true, _) => ("seen", "✓", "holds"),
            (false, true) => ("unseen", "✗", "fails"),
            (false, false) => ("open", "?", "not finite"),
        };
        let asks = check.catalogue.as_ref().map_or_else(String::new, |asks| format!("; the catalogue asks for {asks}"));
        format!(
            "<tr><th scope=\"row\">{}</th><td class=\"outcome\">{} <small>({}{})</small></td><td class=\"outcome\">\
             <span class=\"verdict {class}\" title=\"{words}\">{mark}</span> {}</td></tr>\n",
            typeset(&check.what),
            escape(&check.expected),
            check.origin.words(),
            escape(&asks),
            escape(&check.measured),
        )
    };
    table("All comparisons", &["What", "Expected", "Measured"], &claim.checks.iter().map(row).collect::<String>())
}

fn remarks(claim: &ClaimRecord) -> String {
    let notes: String =
        claim.notes.iter().map(|note| format!("<p class=\"explain\">{}</p>\n", typeset(note))).collect();
    let notes = if notes.is_empty() { notes } else { format!("<section><h2>Remarks</h2>\n{notes}</section>\n") };
    let runs: String = claim.experiments.iter().map(|name| format!("\nlimitpoint run {}", escape(name))).collect();
    let id = escape(&claim.id);
    let scale = claim.scale.word();
    let again = format!("<pre>limitpoint reproduce {id} --scale {scale} --checks{runs}</pre>");
    format!("{notes}<section><h2>To try it again</h2>\n{again}</section>\n")
}

/// A number with so many significant digits.
fn significant(value: f64, digits: usize) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-3..1e6).contains(&size) {
        let text = format!("{value:.*e}", digits - 1);
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{mantissa}·10<sup>{}</sup>", power.replace('-', "−"));
    }
    let before = size.log10().floor() as i32 + 1;
    let decimals = usize::try_from(digits as i32 - before).unwrap_or(0);
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_asked_for() {
        let shown = [3.0, 0.5, 1234.567, 0.012_345_6, 6e-5, -2e9].map(|value| significant(value, 3));
        assert_eq!(shown, ["3.00", "0.500", "1235", "0.0123", "6.00·10<sup>−5</sup>", "-2.00·10<sup>9</sup>"]);
    }
}
