//! The picture a page begins with: optimisers × norms, each cell a margin as a share of the best.

use super::html::escape;
use super::page_data::colour_key;
use crate::experiments::{Analysis, Standing, StandingCell, StandingColumn};

/// From this share on a cell is dark enough for light letters.
const STRONG: f64 = 0.55;

/// A table that is coloured like a picture; nothing where there is nothing to compare.
pub(super) fn standing(analysis: &Analysis) -> String {
    let Standing { columns, rows, settings } = &analysis.standing;
    if rows.is_empty() || columns.is_empty() {
        return String::new();
    }
    let heading = |column: &StandingColumn| {
        let whole = match (column.whole.as_str(), column.exact) {
            ("", true) => "of the optimum".to_owned(),
            ("", false) => "of the best".to_owned(),
            (whole, true) => format!("optimum {whole}"),
            (whole, false) => format!("best {whole}"),
        };
        format!(
            "<th scope=\"col\" title=\"{}\">{}<span class=\"whole\">{}</span></th>",
            escape(&column.key),
            escape(&column.label),
            escape(&whole)
        )
    };
    let mut body = String::new();
    for row in rows {
        let place = analysis.groups.iter().position(|group| group.label == row.label || group.optimiser == row.label);
        let swatch = place.map_or_else(String::new, |place| swatch(analysis, place));
        let cells: String = row.cells.iter().map(cell).collect();
        body += &format!("<tr><th scope=\"row\">{swatch}{}</th>{cells}</tr>\n", escape(&row.label));
    }
    let exact = columns.iter().filter(|column| column.exact).count();
    let largest =
        if *settings > 1 { "the largest of its column at the same setting" } else { "the largest of its column" };
    let mut of = match exact {
        0 => largest.to_owned(),
        exact if exact == columns.len() => "the exact optimum of its column".to_owned(),
        _ => format!("the exact optimum of its column where that is given, else of {largest}"),
    };
    if *settings > 1 {
        of += &format!(", mean over {settings} settings");
    }
    let headings: String = columns.iter().map(heading).collect();
    format!(
        "<section id=\"standing\" data-nav=\"Margins reached\"><h2>Which margin each optimiser reached</h2>\n<p class=\"explain\">\
         Each cell: the margin at the end as a share of {of}. <span class=\"key own\">Framed</span> the optimiser’s own norm. \
         <span class=\"key star\">★</span>The largest of a column.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Margins as shares of the best\">\n<table class=\"standing\"><thead><tr><td></td>{headings}</tr></thead>\n\
         <tbody>\n{body}</tbody></table></div>\n</section>"
    )
}

/// A sample of a group's line, which the script draws.
pub(super) fn swatch(analysis: &Analysis, group: usize) -> String {
    format!("<span class=\"swatch\" data-key=\"{}\"></span>", colour_key(analysis, group))
}

fn cell(cell: &StandingCell) -> String {
    let mut class = String::new();
    for (name, holds) in [("own", cell.own), ("strong", cell.share >= STRONG), ("first", cell.first)] {
        if holds {
            class += if class.is_empty() { "" } else { " " };
            class += name;
        }
    }
    let title =
        if cell.margin.is_empty() { String::new() } else { format!(" title=\"γ = {}\"", escape(&cell.margin)) };
    let tint = if cell.share.is_finite() { (100.0 * cell.share).clamp(0.0, 100.0) } else { 0.0 };
    let star = if cell.first { "<span class=\"star\" aria-hidden=\"true\">★</span>" } else { "" };
    let own = if cell.own { "<span class=\"hidden-text\"> (its own norm)</span>" } else { "" };
    format!("<td class=\"{class}\" style=\"--share:{tint:.1}%\"{title}>{}{star}{own}</td>", escape(&cell.text))
}
