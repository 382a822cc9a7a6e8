//! How much the layers of trained networks of images stretch, as a table.

use super::html::escape;
use crate::experiments::RunRecord;

/// The section, or nothing where no run has such layers.
pub(super) fn layers(runs: &[RunRecord]) -> String {
    let mut rows = String::new();
    for run in runs {
        for layer in &run.portrait.layers {
            let [lower, upper] = layer.operator;
            rows += &format!(
                "<tr><th scope=\"row\">{}</th><td class=\"outcome\">{}</td><td class=\"outcome\">{}</td><td>{:.4}</td>\
                 <td>{:.4}</td><td>{lower:.4}</td><td>{upper:.4}</td></tr>\n",
                escape(&run.name),
                escape(&layer.block),
                escape(&layer.layer),
                layer.frobenius,
                layer.spectral,
            );
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"layers\" data-nav=\"Layers\"><h2>Layers</h2>\n<p class=\"explain\">Norms of the weights each run ended \
         with. Spectral: of the weights as a matrix, output channels × (input channels · height · width). Operator: of the \
         layer as a map of images of its input size, at least what power iteration found and at most a proven bound.</p>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Norms of layers\">\n<table class=\"numbers\"><thead>\
         <tr><th scope=\"col\">Run</th><th scope=\"col\" class=\"outcome\">Weights</th>\
         <th scope=\"col\" class=\"outcome\">Layer</th><th scope=\"col\">Frobenius</th><th scope=\"col\">Spectral</th>\
         <th scope=\"col\">Operator, at least</th><th scope=\"col\">Operator, at most</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n</section>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::Portrait;
    use crate::models::KernelNorms;

    #[test]
    fn layers_are_listed_run_by_run_and_nothing_is_said_of_others() {
        let norms = KernelNorms {
            block: "layer1.weight".into(),
            layer: "conv 2 3x3 on 1x8x8".into(),
            frobenius: 2.0,
            spectral: 1.5,
            operator: [2.25, 4.5],
        };
        let portrait = Portrait { layers: vec![norms.clone(), norms], ..Portrait::default() };
        let run = RunRecord { name: "<a>".into(), portrait, ..RunRecord::default() };
        let text = layers(&[run, RunRecord::default()]);
        assert_eq!(text.matches("<tr>").count(), 3);
        assert!(text.contains("&lt;a&gt;") && text.contains("2.2500</td><td>4.5000"), "{text}");
        assert!(layers(&[RunRecord::default()]).is_empty());
    }
}
