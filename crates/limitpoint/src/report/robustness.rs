//! Robustness of trained models on one page.

use super::figures::{Figure, sketch_figure};
use super::html::{escape, fill};
use super::robust_accuracy::robust_accuracy;
use super::sheet::Sheet;
use crate::experiments::{Part, RunRobustness};
use crate::robustness::{Profile, Quartiles};

const CONTENT: &str = include_str!("assets/robustness.html");
const STYLE: &str = include_str!("assets/robustness.css");

/// Robust accuracy and quartiles of trained models as one HTML page that loads nothing.
///
/// ```
/// let page = limitpoint::report::robustness_page(&[]);
/// assert!(page.contains("<h1>How far is the nearest mistake?</h1>"));
/// ```
pub fn robustness_page(found: &[RunRobustness]) -> String {
    let count = found.iter().map(|one| one.run.as_str()).collect::<std::collections::BTreeSet<_>>().len();
    let models = if count == 1 { "1 model".to_owned() } else { format!("{count} models") };
    let attacks: Vec<String> = found.first().map_or_else(Vec::new, |one| one.profile.attacks.clone());
    let facts = format!("<li>{models}</li><li>{}</li>", escape(&attacks.join(", ")));
    let figures: String = robustness_figures(found)
        .into_iter()
        .map(|(title, figure)| format!("<figure>{}<figcaption>{title}</figcaption></figure>\n", figure.svg))
        .collect();
    let tables: String = found.iter().map(table).collect();
    let title = "How far is the nearest mistake?";
    let content = fill(CONTENT, &[("figures", &figures), ("tables", &tables)]);
    Sheet { kind: "robustness", title, heading: title, style: STYLE, facts: &facts, content: &content }.page()
}

/// Robust accuracy of all models, one figure for each part of the data, with its title.
pub fn robustness_figures(found: &[RunRobustness]) -> Vec<(&'static str, Figure)> {
    let parts = [
        (Part::Train, "train", "Robust accuracy on training data"),
        (Part::Test, "test", "Robust accuracy on test data"),
    ];
    let draw = |(part, word, title): (Part, &str, &'static str)| {
        let profiles: Vec<(&str, &Profile)> =
            found.iter().filter(|one| one.part == part).map(|one| (one.run.as_str(), &one.profile)).collect();
        let sketch = robust_accuracy(&format!("robust-accuracy-{word}"), title, &profiles);
        sketch_figure(&sketch).filter(|_| !profiles.is_empty()).map(|figure| (title, figure))
    };
    parts.into_iter().filter_map(draw).collect()
}

fn table(one: &RunRobustness) -> String {
    let profile = &one.profile;
    let part = match one.part {
        Part::Train => "training",
        Part::Test => "test",
    };
    let mut rows = row("margin over the Lipschitz constant: at least", profile.quartiles(|bracket| bracket.lipschitz));
    rows += &row("certified: at least", profile.quartiles(|bracket| bracket.certified));
    for (place, attack) in profile.attacks.iter().enumerate() {
        rows += &row(&format!("{attack}: at most"), profile.attack_quartiles(place));
    }
    format!(
        "<section class=\"claim\"><h2>{}</h2><p class=\"explain\">{} {part} examples in the box [{}, {}], {:.2} % answered \
         rightly. Quartiles of the distance to the nearest mistake.</p>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Quartiles\"><table class=\"numbers\"><thead><tr>\
         <th scope=\"col\">bound</th><th scope=\"col\">lower quartile</th><th scope=\"col\">median</th>\
         <th scope=\"col\">upper quartile</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div></section>\n",
        escape(&one.run),
        profile.examples.len(),
        one.bounds[0],
        one.bounds[1],
        100.0 * profile.accuracy(),
    )
}

fn row(name: &str, quartiles: Quartiles) -> String {
    let cell =
        |value: Option<f64>| value.map_or_else(|| "<td>none found</td>".to_owned(), |v| format!("<td>{v:.4}</td>"));
    let cells: String = [quartiles.lower, quartiles.median, quartiles.upper].into_iter().map(cell).collect();
    format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robustness::Bracket;

    #[test]
    fn the_page_has_a_figure_for_each_part_and_a_table_for_each_model() {
        let bracket =
            |at: f64| Bracket { margin: 1.0, lipschitz: 0.1 * at, certified: 0.5 * at, attacked: vec![Some(at), None] };
        let profile = Profile {
            attacks: vec!["deep-fool".into(), "<projected>".into()],
            examples: (1..9).map(|i| bracket(0.1 * f64::from(i))).collect(),
        };
        let one = |part| RunRobustness { run: "a&b".into(), part, bounds: [0.0, 1.0], profile: profile.clone() };
        let page = robustness_page(&[one(Part::Train), one(Part::Test)]);
        assert_eq!((page.matches("<svg").count(), page.matches("<table").count()), (2, 2));
        assert!(page.contains("a&amp;b") && page.contains("&lt;projected&gt;") && page.contains("none found"));
        assert!(!page.contains("{{"));
    }
}
