//! What a potential tends to, on one page.

use super::Sketch;
use super::figures::sketch_figure;
use super::html::{escape, fill};
use super::sheet::Sheet;
use crate::potentials::{ScalarSample, Survey};

const CONTENT: &str = include_str!("assets/horizon.html");
const STYLE: &str = include_str!("assets/horizon.css");

/// The survey of a potential as one HTML page that loads nothing: the answer, figures of R, R″, Q, the level sets of
/// the gauge and its local degree, and the gauge at finite scales.
///
/// ```
/// use limitpoint::{potentials::Survey, report::horizon_page};
/// let page = horizon_page(&Survey::of(&"hyperbolic:0.1".parse()?));
/// assert!(page.contains("the ℓ₁ norm") && page.matches("<svg").count() == 5);
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
pub fn horizon_page(survey: &Survey) -> String {
    let mut facts = String::new();
    if let Some(limit) = &survey.limit {
        facts += &format!(
            "<li>degree <b>{}</b></li><li>horizon <b>{}</b></li>",
            plain(limit.degree),
            escape(&limit.formula)
        );
    } else {
        facts += "<li><b>no homogeneous limit</b></li>";
    }
    facts += &fact("convex", survey.convex.holds);
    if let Some(condition) = &survey.curvature_condition {
        facts += &fact("curvature condition", condition.shape.holds);
    }
    let remarks: String =
        survey.remarks.iter().map(|text| format!("<p class=\"explain\">{}</p>\n", escape(text))).collect();
    let planar: String = [level_sets(survey), local_degrees(survey)].iter().map(figure).collect();
    let parts = [
        curve(survey, "potential", "The potential R", "R(t)", |sample| sample.value),
        curve(survey, "curvature", "Its curvature: weights move at speed 1/R″", "R″(t)", |sample| sample.curvature),
        curve(survey, "conjugate", "Q(∇R(t)) = t R′(t) − R(t)", "Q(∇R(t))", |sample| sample.conjugate),
    ];
    let curves: String = parts.iter().map(figure).collect();
    let (answer, table) = (escape(&sentence(&survey.answer)), table(survey));
    let values = [
        ("answer", answer.as_str()),
        ("remarks", &remarks),
        ("planar", &planar),
        ("curves", &curves),
        ("table", &table),
    ];
    let (content, title) = (fill(CONTENT, &values), format!("Horizon of {}", escape(&survey.potential)));
    let heading = format!("<code>{}</code>", escape(&survey.title));
    Sheet { kind: "horizon", title: &title, heading: &heading, style: STYLE, facts: &facts, content: &content }.page()
}

fn fact(what: &str, holds: bool) -> String {
    let (class, mark) = if holds { ("seen", "✓") } else { ("unseen", "✗") };
    format!(
        "<li><span class=\"verdict {class}\"><span aria-hidden=\"true\">{mark}</span> {}{what}</span></li>",
        if holds { "" } else { "not: " }
    )
}

/// With a capital and a full stop, unless it begins with a symbol.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().filter(|letter| letter.is_ascii_alphabetic()).map(|letter| letter.to_ascii_uppercase());
    match first {
        Some(first) => format!("{first}{}.", letters.as_str()),
        None => format!("{text}."),
    }
}

fn figure(sketch: &Sketch) -> String {
    sketch_figure(sketch).map_or_else(String::new, |figure| {
        format!("<figure>{}<figcaption>{}</figcaption></figure>\n", figure.svg, escape(&sketch.title))
    })
}

fn curve(survey: &Survey, name: &str, title: &str, label: &str, of: impl Fn(&ScalarSample) -> f64) -> Sketch {
    let points = survey.samples.iter().map(|sample| [sample.t, of(sample)]).collect();
    Sketch::new(name, title, "t", label).curve("", points)
}

/// Around the origin, on axes of equal scale: the window has the shape of the drawing area.
fn level_sets(survey: &Survey) -> Sketch {
    let all = survey.level_sets.iter().flat_map(|set| &set.points).flatten();
    let reach = 1.12 * all.fold(1.0, |most: f64, x| most.max(x.abs())).min(4.0);
    let title = "Level sets of the gauge in the plane, each divided by its scale";
    let mut sketch =
        Sketch::new("level-sets", title, "θ₁/s", "θ₂/s").window([-1.45 * reach, 1.45 * reach], [-reach, reach]);
    for set in &survey.level_sets {
        sketch = match set.scale {
            Some(scale) => sketch.curve(format!("s = {}", plain(scale)), set.points.clone()),
            None => sketch.reference("limit", set.points.clone()),
        };
    }
    sketch
}

fn local_degrees(survey: &Survey) -> Sketch {
    let [positive, negative] = &survey.local_degrees;
    let title = "Local degree d ln Q/d ln t by scale; the horizon is what it settles to";
    let mut sketch = Sketch::new("local-degree", title, "|t|", "local degree").logarithmic(true, false);
    let close = |a: &[f64; 2], b: &[f64; 2]| (a[1] - b[1]).abs() <= 1e-3 * a[1].abs().max(1.0);
    let even = positive.len() == negative.len() && positive.iter().zip(negative).all(|(a, b)| close(a, b));
    if even {
        sketch = sketch.curve("both signs", positive.clone());
    } else {
        sketch = sketch.curve("t > 0", positive.clone()).curve("t < 0", negative.clone());
    }
    let last = positive.last().or(negative.last());
    if let (Some(limit), Some([end, _])) = (&survey.limit, last) {
        let first = positive.first().or(negative.first()).map_or(1.0, |point| point[0]);
        sketch =
            sketch.reference(format!("α = {}", plain(limit.degree)), vec![[first, limit.degree], [*end, limit.degree]]);
    }
    sketch
}

fn table(survey: &Survey) -> String {
    if survey.gauges.is_empty() {
        return String::new();
    }
    let row = |row: &crate::potentials::GaugeRow| {
        format!(
            "<tr><th scope=\"row\">{}</th><td>{:.6}</td><td>{:.6}</td><td>{:.4} %</td><td>{:.6}</td></tr>\n",
            plain(row.scale),
            row.axis,
            row.diagonal,
            row.gap_percent(),
            row.local_degree
        )
    };
    let rows: String = survey.gauges.iter().map(row).collect();
    format!(
        "<h2>The gauge at finite scales</h2>\n<p class=\"explain\">How far the gauge (αQ)^(1/α) is from its limit when weights \
         are of size s. Mirror flow maximises the margin of the gauge; the limit shows once the gap is small.</p>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Gauge by scale\"><table class=\"numbers\"><thead>\
         <tr><th scope=\"col\">scale s</th><th scope=\"col\">gauge(s, 0)/s</th><th scope=\"col\">gauge(s, s)/s</th>\
         <th scope=\"col\">gap to the limit</th><th scope=\"col\">local degree</th></tr></thead>\n<tbody>\n{rows}</tbody>\
         </table></div>\n"
    )
}

/// A number without trailing zeros.
fn plain(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e5).contains(&value.abs()) {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_escapes_the_formula_and_says_what_fails() {
        let page = horizon_page(&Survey::of(&"|t|^3 - t^2 + 0*(t)".parse().unwrap()));
        assert!(page.contains("not: convex") && page.contains("Not a mirror potential"), "{page}");
        let page = horizon_page(&Survey::of(&"cosh(t)".parse().unwrap()));
        assert!(page.contains("No homogeneous limit") && page.contains("keeps growing"));
        assert!(!page.contains("{{") && !page.contains("The gauge at finite scales"));
    }

    #[test]
    fn a_one_sided_potential_is_drawn_on_its_side() {
        let survey = Survey::of(&"entropy".parse().unwrap());
        assert!(survey.samples.iter().all(|sample| sample.t >= 0.0));
        assert!(horizon_page(&survey).matches("<svg").count() == 5);
    }
}
