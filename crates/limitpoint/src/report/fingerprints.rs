//! Fingerprints of optimisers on one page.

use super::Sketch;
use super::figures::{radar_figure, sketch_figure};
use super::html::{escape, fill};
use super::sheet::Sheet;
use crate::fingerprint::{Fingerprint, Phase};

const CONTENT: &str = include_str!("assets/fingerprints.html");
const STYLE: &str = include_str!("assets/fingerprints.css");

/// Fingerprints as one HTML page that loads nothing: the radar of all, then each with its answer, the course of its
/// margins and its tables.
///
/// ```
/// let page = limitpoint::report::fingerprints(&[]);
/// assert!(page.contains("<h1>Which geometry does it maximise?</h1>"));
/// ```
pub fn fingerprints(found: &[Fingerprint]) -> String {
    let count = if found.len() == 1 { "1 optimiser".to_owned() } else { format!("{} optimisers", found.len()) };
    let radar = radar_figure(found).map_or_else(String::new, |figure| figure.svg);
    let articles: String = found.iter().map(article).collect();
    let title = "Which geometry does it maximise?";
    let (facts, content) =
        (format!("<li>{count}</li>"), fill(CONTENT, &[("radar", &radar), ("fingerprints", &articles)]));
    Sheet { kind: "fingerprints", title, heading: title, style: STYLE, facts: &facts, content: &content }.page()
}

fn article(found: &Fingerprint) -> String {
    let figure = sketch_figure(&course(found)).map_or_else(String::new, |figure| {
        format!(
            "<div class=\"figures\"><figure>{}<figcaption>smallest share over all probes</figcaption></figure></div>",
            figure.svg
        )
    });
    let tables: String = found.spoken().into_iter().map(|phase| table(found, phase)).collect();
    let troubles = [("network", &found.network.trouble), ("convolution", &found.convolution.trouble)];
    let said = troubles.into_iter().filter_map(|(what, trouble)| Some((what, trouble.as_ref()?)));
    let trouble: String =
        said.map(|(what, trouble)| format!("<p class=\"explain\">No {what}: {}</p>", escape(trouble))).collect();
    format!(
        "<section class=\"claim\"><h2>{}</h2>\n<p class=\"lead\">{}</p>\n<div class=\"evidence\">\
         {figure}<div>{tables}{trouble}</div></div></section>\n",
        escape(&found.optimiser),
        escape(&found.answer),
    )
}

/// Shares against the depth of the loss, a curve per geometry.
fn course(found: &Fingerprint) -> Sketch {
    let mut sketch = Sketch::new("course", "Shares of the largest margins", "−log₁₀ L", "share of the largest margin");
    for (place, geometry) in found.geometries.iter().enumerate() {
        let points = found.course.iter().map(|moment| [-moment.log10_loss, moment.shares[place]]).collect();
        sketch = sketch.curve(&geometry.label, points);
    }
    sketch.logarithmic(true, false)
}

fn table(found: &Fingerprint, phase: &Phase) -> String {
    let head: String =
        found.geometries.iter().map(|geometry| format!("<th scope=\"col\">{}</th>", escape(&geometry.label))).collect();
    let row = |(name, shares): (String, Vec<f64>)| {
        let best = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let cell = |share: &f64| {
            let number = format!("{share:.3}");
            if *share >= best - 5e-4 { format!("<td><b>{number}</b></td>") } else { format!("<td>{number}</td>") }
        };
        let cells: String = shares.iter().map(cell).collect();
        format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(&name))
    };
    let rows: String = found.table(phase).into_iter().map(row).collect();
    format!(
        "<p class=\"explain\">At L = 1e{:.0}</p><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Shares by probe\"><table class=\"numbers\"><thead><tr><th scope=\"col\">Probe</th>{head}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n",
        phase.clearest
    )
}
