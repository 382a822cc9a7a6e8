//! Definition I.4: another potential in each layer.
//!
//! The paper gives no proof that the soft margin per ∏ⱼ (αⱼQⱼ)^{kⱼ/αⱼ} grows. In the letters of `trace`, with vⱼ², wⱼ and pⱼ² the
//! parts of layer j, wⱼ = kⱼ ν with ν = Σ rᵢ qᵢ ≥ u the same for all layers, Cauchy–Schwarz and C.ass4.4 layer by layer give
//!
//! ```text
//! d ln u/dτ = Σⱼ vⱼ²/u ≥ Σⱼ wⱼ²/(pⱼ² u) ≥ Σⱼ kⱼ (ν/u) wⱼ/(αⱼQⱼ) ≥ Σⱼ kⱼ wⱼ/(αⱼQⱼ) = d/dτ Σⱼ kⱼ ln (αⱼQⱼ)^{1/αⱼ}
//! ```
//!
//! In the limit every layer is a KKT point of min φⱼ(Wⱼ) subject to q ≥ 1 with the other layers held fixed. Rescaled so that
//! φⱼ²/kⱼ agree, which changes no direction, the layers are together a KKT point of the paper's min ½ Σ φⱼ².

use rayon::prelude::*;

use super::balance::mixed;
use super::trace::traces;
use crate::claims::arithmetic::{larger, smaller};
use crate::claims::{ClaimError, Lab, Outcome, Sketch};
use crate::diagnostics::layer_product;
use crate::linalg::dot;
use crate::norms::NormSpec;
use crate::params::ParamLayout;

pub(super) fn layer_wise(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    let log_margin = |m: &super::trace::Moment| m.u.ln() - m.layers;
    for trace in mixed(&traces) {
        outcome.at_most(format!("{}: drift of the balance, relative", trace.what), trace.most(|m| m.drift), 1e-8);
        let fall = trace.moments.windows(2).map(|pair| log_margin(&pair[0]) - log_margin(&pair[1])).fold(0.0, larger);
        outcome.at_most(format!("{}: largest relative fall of the soft multi-Q margin", trace.what), fall, 1e-12);
        let rise = trace.ends().map_or(f64::NAN, |(first, last)| log_margin(last) - log_margin(first));
        outcome.at_least(format!("{}: ln of its growth since separation", trace.what), rise, 0.5);
    }
    // Euclidean layers: the multi-homogeneous margin of paper D
    for trace in traces.iter().filter(|trace| trace.flow == "euclidean") {
        let objective = lab.objective(&trace.end.task, &trace.end.data)?;
        let product = layer_product(&trace.end.params, objective.layout(), objective.homogeneity());
        let own = trace.moments.last().map_or(f64::NAN, |m| m.layers.exp());
        outcome.near(format!("{}: ∏ (2Qⱼ)^(kⱼ/2) over ∏ ‖Wⱼ‖^kⱼ", trace.what), own / product, 1.0, 1e-12);
    }
    let depth = lab.choose(-434.3, -4343.0);
    let overrides =
        [format!("stop.log10_loss={depth}"), "initialiser=normal(deviation=0.3)".into(), "stop.steps=1000000".into()];
    let mut tasks = lab.tasks("c-flows", &overrides)?;
    tasks.retain(|task| task.label.optimiser == "mixed");
    let runs: Vec<Vec<[f64; 3]>> = tasks
        .par_iter()
        .map(|task| {
            let layout = lab.objective(task, &lab.data(task)?.train)?.layout().clone();
            let mut norms = Vec::new();
            for (block, norm) in layout.blocks().iter().zip([NormSpec::L1, NormSpec::Lp { p: 3.0 }]) {
                let alone = ParamLayout::new([(block.name.as_str(), block.rows, block.cols)])?;
                norms.push((block.range(), norm.build(&alone)?));
            }
            let mut course = Vec::new();
            lab.watch(
                task,
                |step| step % 10 == 0,
                |snapshot| {
                    let (theta, g) = (snapshot.point.params, &snapshot.point.gradient.direction);
                    let gaps: Vec<f64> = norms
                        .iter_mut()
                        .map(|(range, norm)| {
                            let (w, g) = (&theta[range.clone()], &g[range.clone()]);
                            1.0 + dot(w, g) / (norm.value(w) * norm.dual(g))
                        })
                        .collect();
                    course.push([-snapshot.point.log_loss, gaps[0], gaps[1]]);
                },
            )?;
            Ok(course)
        })
        .collect::<Result<_, ClaimError>>()?;
    for course in runs.iter().filter(|course| course.len() > 20) {
        let end = course[course.len() - 1][0];
        let mut sketch = Sketch::new("c-layers", "How far each layer is from a KKT point, so far", "ln 1/L", "1 − βⱼ");
        for (k, name) in [(1, "first layer, ℓ1"), (2, "second layer, ℓ3")] {
            let least = |from: f64, to: f64| {
                let part = course.iter().filter(|row| from <= row[0] && row[0] <= to);
                part.map(|row| row[k]).fold(f64::INFINITY, smaller)
            };
            let (early, late) = (least(1.0, end.sqrt()), least(end.sqrt(), end));
            outcome.at_most(
                format!("{name}: least 1 − βⱼ between ln 1/L = {:.0} and {end:.0}", end.sqrt()),
                late,
                0.05,
            );
            outcome.at_most(format!("{name}: that over the least before"), late / early, 0.5);
            let mut so_far = f64::INFINITY;
            let later = course.iter().filter(|row| row[0] > 1.0).map(|row| {
                so_far = smaller(so_far, row[k]);
                [row[0], so_far]
            });
            sketch = sketch.curve(name, later.collect());
        }
        outcome.sketch(sketch.logarithmic(true, true));
    }
    outcome.push("long runs", "one", format!("{}", runs.len()), runs.len() == 1 && runs[0].len() > 20);
    outcome.note(
        "The monotony of the soft multi-Q margin is not proved in the paper; it follows layer by layer from Cauchy–Schwarz, the \
         curvature condition and equal Euler products.",
    );
    Ok(outcome)
}
