//! Equation 2, Lemma 3.1 and Definition I.4: what mirror flow keeps in balance between layers and neurons.
//!
//! On Definition I.4, another potential in each layer, the paper gives no proof that the soft margin per
//! ∏ⱼ (αⱼQⱼ)^{kⱼ/αⱼ} grows. In the letters of `mirror`, with vⱼ², wⱼ and pⱼ² the parts of layer j, wⱼ = kⱼ ν with
//! ν = Σ rᵢ qᵢ ≥ u the same for all layers, Cauchy–Schwarz and C.ass4.4 layer by layer give
//!
//! ```text
//! d ln u/dτ = Σⱼ vⱼ²/u ≥ Σⱼ wⱼ²/(pⱼ² u) ≥ Σⱼ kⱼ (ν/u) wⱼ/(αⱼQⱼ) ≥ Σⱼ kⱼ wⱼ/(αⱼQⱼ) = d/dτ Σⱼ kⱼ ln (αⱼQⱼ)^{1/αⱼ}
//! ```
//!
//! In the limit every layer is a KKT point of min φⱼ(Wⱼ) subject to q ≥ 1 with the other layers held fixed. Rescaled so
//! that φⱼ²/kⱼ agree, which changes no direction, the layers are together a KKT point of the paper's min ½ Σ φⱼ².

use super::identities::Still;
use super::mirror::{Flows, ON_FLOWS};
use crate::arithmetic::{distance, smaller};
use crate::measures::{self, own_norm, own_potential};
use crate::steepest::unevenness;
use crate::{Claim, ClaimError, Finished, Lab, Moments, Outcome, Sketch};
use limitpoint::data::Dataset;
use limitpoint::diagnostics::{Balance, layer_product, neuron_balance};
use limitpoint::experiments::Task;
use limitpoint::linalg::{Matrix, dot, max_abs};
use limitpoint::norms::NormSpec;
use limitpoint::objective::Objective;
use limitpoint::params::ParamLayout;
use limitpoint::potentials::PotentialSpec;
use limitpoint::reference::{MarginProblem, solve_margin};

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "C.eq2",
        statement: "Gradient flow keeps ‖Wᵢ‖² − ‖Wᵢ₊₁‖² between the layers of a homogeneous network, and WᵢWᵢᵀ − \
                    Wᵢ₊₁ᵀWᵢ₊₁ of a linear one; gradient descent lets them drift in proportion to its step",
        try_out: gradient_flow,
        ..ON_FLOWS
    },
    Claim {
        id: "C.lem3.1",
        covers: &["C.eq6"],
        statement: "Euler products ⟨Wᵢ, ∂L/∂Wᵢ⟩ agree between layers, hence mirror flow keeps Qᵢ(∇Rᵢ(Wᵢ)) − \
                    Qᵢ₊₁(∇Rᵢ₊₁(Wᵢ₊₁)), also with another potential in each layer; mirror descent lets it drift in \
                    proportion to its step, a potential that couples layers keeps nothing, and spectral descent moves \
                    layers at equal speed instead",
        try_out: mirror_flow,
        ..ON_FLOWS
    },
    Claim {
        id: "C.nbal",
        statement: "In a two-layer network every neuron keeps its own balance Q(aⱼ) − Q(wⱼ)/k, k being the \
                    activation's degree",
        try_out: neurons,
        ..ON_FLOWS
    },
    Claim {
        id: "C.defI4",
        statement: "With a different potential in each layer the layers stay in balance, the soft margin per ∏ \
                    (αⱼQⱼ)^{kⱼ/αⱼ} never falls, and every layer tends to a KKT point in its own horizon, the other \
                    layers held fixed",
        try_out: layer_wise,
        ..ON_FLOWS
    },
];

/// The tolerance of runs that are only to get far.
pub(super) const COARSE: [&str; 2] = ["tolerance.relative=1e-9", "tolerance.absolute=1e-12"];

/// Runs of the flows' network under another optimiser, written as in a file.
pub(super) fn others(lab: &Lab, optimiser: &str, overrides: &[&str]) -> Result<Vec<Task>, ClaimError> {
    let optimiser = format!("optimisers.other={optimiser}");
    lab.tasks_of("c-flows", &[&[&*optimiser][..], overrides].concat(), &["other"])
}

/// How far the balance of a potential has drifted between the layers since the start, relative to Q.
pub(super) fn drift(lab: &Lab, end: &Finished, potential: &PotentialSpec) -> Result<f64, ClaimError> {
    let objective = lab.objective(&end.task, &end.data)?;
    let (layout, Some(homogeneity)) = (objective.layout(), objective.homogeneity()) else { return Ok(f64::NAN) };
    let mut worker = potential.build(layout)?;
    let before = Balance::measure(&end.start, layout, homogeneity, &mut *worker);
    Ok(Balance::measure(&end.params, layout, homogeneity, &mut *worker).drift_since(&before))
}

/// The drift after descent for the time 0.05 goes with the length of the steps.
fn proportional(lab: &Lab, optimiser: &str, potential: &PotentialSpec) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let at = |rate: f64| {
        let (schedule, steps) = (format!("schedule=constant(rate={rate})"), (0.05 / rate).round());
        let stop = format!("stop.steps={steps}");
        let tasks = others(lab, optimiser, &["seed=3", &schedule, &stop, "stop.log10_loss=-300"])?;
        drift(lab, &lab.finish(&tasks[0])?, potential)
    };
    let (coarse, fine) = (at(5e-5)?, at(2.5e-5)?);
    outcome.at_least("drift by the shorter steps", fine, 1e-12).by_theory();
    let check = outcome.near("drift by twice as long steps over that", coarse / fine, 2.0, 0.1);
    check.catalogue_asks("that the drift halves with the step");
    Ok(outcome)
}

/// What the flow conserves drifts by rounding and error control alone.
fn kept(outcome: &mut Outcome, what: impl Into<String>, drift: f64) {
    outcome.at_most(what, drift, 1e-8).by_theory();
}

fn gradient_flow(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for flow in Flows::of(lab, &mut outcome)?.under("euclidean") {
        kept(&mut outcome, format!("{}: drift of ‖Wᵢ‖²/kᵢ, relative", flow.what), flow.most("drift"));
    }
    // five examples in five dimensions are separable
    let linear = ["model.activation=identity", "model.widths=[6, 6]", "data.count=5", "stop.log10_loss=-9"];
    for end in lab.finish_all(&lab.tasks_of("c-flows", &linear, &["euclidean"])?)? {
        let (layout, mut own) = (lab.objective(&end.task, &end.data)?.layout().clone(), Outcome::default());
        kept(&mut own, "drift of ‖Wᵢ‖²", drift(lab, &end, &PotentialSpec::Euclidean)?);
        let change = distance(&grams(&layout, &end.start)?, &grams(&layout, &end.params)?);
        kept(&mut own, "drift of WᵢWᵢᵀ − Wᵢ₊₁ᵀWᵢ₊₁, every entry", change / max_abs(&end.params).powi(2));
        own.at_most("ln L at the end", end.log_loss, -20.0);
        outcome.say_of("linear network", own);
    }
    outcome.say_of("gradient descent", proportional(lab, "'gradient'", &PotentialSpec::Euclidean)?);
    Ok(outcome)
}

/// All entries of WᵢWᵢᵀ − Wᵢ₊₁ᵀWᵢ₊₁.
fn grams(layout: &ParamLayout, params: &[f64]) -> Result<Vec<f64>, ClaimError> {
    let mut entries = Vec::new();
    for pair in layout.blocks().windows(2) {
        let matrix = |k: usize| Matrix::from_vec(pair[k].rows, pair[k].cols, params[pair[k].range()].to_vec());
        let (first, second) = (matrix(0)?, matrix(1)?);
        for i in 0..first.rows {
            for j in 0..first.rows {
                let column: f64 = (0..second.rows).map(|k| second[(k, i)] * second[(k, j)]).sum();
                entries.push(dot(first.row(i), first.row(j)) - column);
            }
        }
    }
    Ok(entries)
}

fn mirror_flow(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for activation in ["relu", "leaky-relu(slope=0.1)", "relu-power(power=2)"] {
        let what = format!("{activation}, four layers: Euler products per degree, relative spread");
        outcome.largest(what, euler_spreads(lab, activation)?, 1e-10).by_theory();
    }
    for flow in &Flows::of(lab, &mut outcome)?.all {
        kept(&mut outcome, format!("{}: drift of the balance, relative to Q", flow.what), flow.most("drift"));
        outcome.rises(format!("{}: growth of Q meanwhile", flow.what), flow.column("conjugate"), 1.05);
    }
    let mixed = "layers:layer1.weight=hyperbolic:0.1|*=smoothed:3,1";
    for (name, text) in [("hyperbolic", "hyperbolic:0.1"), ("cubic", "smoothed:3,1"), ("mixed", mixed)] {
        let said = proportional(lab, &format!("{{mirror={{potential='{text}'}}}}"), &text.parse()?)?;
        outcome.say_of(&format!("mirror descent, {name}"), said);
    }
    // nothing is kept by a potential that couples the layers
    let coupled = ["flows.coupled={mirror={potential='squared-lp:1.5'}}", "seed=4", "stop.log10_loss=-4.3"];
    for end in lab.finish_all(&lab.tasks_of("c-flows", &coupled, &["coupled"])?)? {
        let far = drift(lab, &end, &own_potential(&end.task))?;
        outcome.at_least("½‖θ‖²_p with p = 1.5, which couples layers: drift", far, 1e-2);
    }
    outcome.say_of("spectral descent", spectral(lab)?);
    Ok(outcome)
}

/// The relative differences between ⟨W, ∂ ln L/∂W⟩/k of four layers, of all seeds.
fn euler_spreads(lab: &Lab, activation: &str) -> Result<Vec<f64>, ClaimError> {
    let overrides = [format!("model.activation={activation}"), "model.widths=[7, 6, 5]".into(), "seeds=0..4".into()];
    let mut spreads = Vec::new();
    for task in lab.tasks_of("c-flows", &overrides, &["euclidean"])? {
        let Still { objective, theta, gradient, .. } = Still::new(lab, &task)?;
        let product = |block: &usize| {
            let range = objective.layout().blocks()[*block].range();
            dot(&theta[range.clone()], &gradient.direction[range])
        };
        let Some(homogeneity) = objective.homogeneity() else { continue };
        let products: Vec<f64> =
            homogeneity.pairs().map(|(blocks, degree)| blocks.iter().map(product).sum::<f64>() / degree).collect();
        spreads.extend(products.iter().map(|p| (p - products[0]).abs() / max_abs(&products)));
    }
    Ok(spreads)
}

/// The relative that is no mirror flow: all layers move at one spectral speed, and no Q is kept.
fn spectral(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for task in others(lab, "'spectral'", &["schedule=flow-resolved(resolution=0.02)", "stop.log10_loss=-9"])? {
        let run = lab.series(&task, Moments::every(1), vec![measures::basics(), unevenness(own_norm(&task))])?;
        // no step leads to the start
        let uneven = run.column("uneven").iter().skip(1).copied();
        outcome.largest("relative difference of the layers' spectral speeds", uneven, 1e-8).by_theory();
        for text in ["euclidean", "hyperbolic:0.1", "smoothed:3,1"] {
            let far = drift(lab, &run.end, &text.parse()?)?;
            outcome.at_least(format!("drift of the balance of {text}"), far, 1e-2);
        }
    }
    Ok(outcome)
}

fn neurons(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for flow in Flows::of(lab, &mut outcome)?.all.iter().filter(|flow| flow.what.starts_with("two")) {
        let what = format!("{}: drift of a neuron's balance over Q, largest", flow.what);
        kept(&mut outcome, what, flow.most("neuron_drift"));
    }
    // ReLU networks slide along kinks, where error control allows only tiny steps: the first of them are looked at
    for activation in ["relu", "identity"] {
        let model = format!("model.activation={activation}");
        let overrides = [&[&*model, "data.count=5", "stop.steps=1000"][..], &COARSE].concat();
        for end in lab.run("c-flows", &overrides)? {
            let objective = lab.objective(&end.task, &end.data)?;
            let (layout, Some(homogeneity)) = (objective.layout(), objective.homogeneity()) else { continue };
            let mut worker = own_potential(&end.task).build(layout)?;
            let [before, after] =
                [&end.start, &end.params].map(|theta| neuron_balance(theta, layout, homogeneity, &mut *worker));
            let (old, size) = (worker.conjugate_at(&end.start), worker.conjugate_at(&end.params));
            let name = format!("{activation}, {}", end.task.label.optimiser);
            let what = format!("{name}: drift of a neuron's balance over Q, largest of {}", after.len());
            kept(&mut outcome, what, distance(&before, &after) / size);
            outcome.at_least(format!("{name}: change of Q meanwhile, relative"), (size / old - 1.0).abs(), 0.01);
        }
    }
    Ok(outcome)
}

fn layer_wise(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let flows = Flows::of(lab, &mut outcome)?;
    for flow in flows.under("mixed") {
        let (margin, mut own) = (flow.map(["u", "layers"], |[u, layers]| u.ln() - layers), Outcome::default());
        kept(&mut own, "drift of the balance, relative", flow.most("drift"));
        let falls = margin.windows(2).map(|pair| pair[0] - pair[1]);
        own.largest("largest relative fall of the soft multi-Q margin", falls, 1e-12).by_theory();
        let rise = margin.last().zip(margin.first()).map_or(f64::NAN, |(last, first)| last - first);
        own.at_least("ln of its growth since separation", rise, 0.5);
        outcome.say_of(&flow.what, own);
    }
    // Euclidean layers: the multi-homogeneous margin of paper D
    for flow in flows.under("euclidean") {
        let objective = lab.objective(&flow.end.task, &flow.end.data)?;
        let product = layer_product(&flow.end.params, objective.layout(), objective.layer_degrees());
        let own = flow.last("layers").exp();
        outcome.near(format!("{}: ∏ (2Qⱼ)^(kⱼ/2) over ∏ ‖Wⱼ‖^kⱼ", flow.what), own / product, 1.0, 1e-12).by_theory();
    }
    let depth = lab.choose("stop.log10_loss=-4343", "stop.log10_loss=-43430");
    let overrides = [&[depth, "initialiser=normal(deviation=0.3)", "stop.steps=1000000"][..], &COARSE].concat();
    let tasks = lab.tasks_of("c-flows", &overrides, &["mixed"])?;
    let mut sketch = Sketch::new("c-layers", "How far each layer is from a KKT point", "ln 1/L", "τⱼ");
    for task in &tasks {
        let levels = (2..20).map(|k| 10f64.powf(0.5 * f64::from(k)));
        let run = lab.series(task, Moments::last().points_at(levels), Vec::new())?;
        let mut objective = lab.objective(task, &run.end.data)?;
        let mut taus = Vec::new();
        for (u, params) in &run.points {
            taus.push((*u, layer_taus(&mut objective, &run.end.data, params)?));
        }
        for (k, name) in ["first layer, ℓ1", "second layer, ℓ3"].into_iter().enumerate() {
            let course: Vec<[f64; 2]> = taus.iter().map(|(u, taus)| [*u, taus[k]]).collect();
            let words: Vec<String> = course.iter().map(|row| format!("{:.1e}", row[1])).collect();
            let (Some(first), Some(last)) = (course.first(), course.last()) else { continue };
            let what = format!("{name}: τⱼ of the judge, twice a decade up to ln 1/L = {:.0}", last[0]);
            outcome.push(what, "falls to a third", words.join(", "), last[1] < first[1] / 3.0);
            sketch = sketch.curve(name, course);
        }
    }
    outcome.at_least("long runs", tasks.len() as f64, 1.0);
    outcome.sketch(sketch.logarithmic(true, true));
    outcome.note(
        "The monotony of the soft multi-Q margin is not proved in the paper; it follows layer by layer from \
         Cauchy–Schwarz, the curvature condition and equal Euler products.",
    );
    outcome.note(
        "The alignment 1 − βⱼ of the ℓ1 layer with the weights of the loss as multipliers is still 0.20 at ln 1/L = 10⁴, above \
         the 0.05 that the ℓ3 layer has long passed; with the best multipliers, τⱼ, it is 0.06 and falling.",
    );
    Ok(outcome)
}

/// τⱼ = 1 − kⱼ q_min/(‖Wⱼ‖ γⱼ) of the two layers in ℓ1 and ℓ3, γⱼ = max over ‖V‖ ≤ 1 of min ⟨∂qᵢ/∂Wⱼ, V⟩ with the other
/// layer held fixed: 0 exactly at KKT points of the layer's own problem.
fn layer_taus(objective: &mut Objective, data: &Dataset, params: &[f64]) -> Result<[f64; 2], ClaimError> {
    objective.forward(params);
    let least = objective.margins().iter().copied().fold(f64::INFINITY, smaller);
    let degrees: Vec<f64> =
        objective.homogeneity().map_or_else(Vec::new, |h| h.groups.iter().map(|g| g.degree).collect());
    let blocks = objective.layout().blocks().to_vec();
    let jacobian = objective.tangents()?.per_example_gradients(params, 0);
    let signs = data.signs().unwrap_or_default();
    let mut taus = [f64::NAN; 2];
    let norms = [NormSpec::L1, NormSpec::Lp { p: 3.0 }];
    for (tau, ((block, norm), degree)) in taus.iter_mut().zip(blocks.iter().zip(norms).zip(degrees)) {
        let layout = ParamLayout::new([(block.name.as_str(), block.rows, block.cols)])?;
        let mut rows = Vec::new();
        for (n, sign) in signs.iter().enumerate() {
            rows.extend(jacobian.row(n)[block.range()].iter().map(|x| sign * x));
        }
        let size = norm.build(&layout)?.value(&params[block.range()]);
        let problem = MarginProblem::new(Matrix::from_vec(signs.len(), block.len(), rows)?, norm, layout)?;
        *tau = 1.0 - degree * least / (size * solve_margin(&problem)?.bracket.upper);
    }
    Ok(taus)
}
