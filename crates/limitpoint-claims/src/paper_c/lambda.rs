//! J.1 and J.2: what λ does at finite time.

use super::features::plane_figure;
use super::students::{NORMS, Student, class, deep_sweep, firsts, of, order, ordered, over_seeds, students, sweep};
use crate::arithmetic::larger;
use crate::statistics::mean;
use crate::{Claim, ClaimError, Lab, Outcome, Sketch};
use limitpoint::linalg::{dot, norm2};

pub(super) const CLAIMS: [Claim; 6] = [
    Claim {
        id: "C.tab3",
        covers: &["C.fig5"],
        statement: "With hyperbolic entropy and a fixed number of steps a smaller λ gives a larger ℓ1 margin and fewer weights that \
                    count, and a smaller ℓ2 margin",
        experiments: &["c-circle-lambda"],
        try_out: hyperbolic,
        ..Claim::NOT_SEEN
    },
    Claim {
        id: "C.tab4",
        covers: &["C.fig6"],
        statement: "With cubes and a fixed number of steps λ = 10 costs more than 5 % of the ℓ3 margin, λ = 1 and 0.1 agree to 3 %",
        experiments: &["c-circle-lambda"],
        try_out: cubes,
        ..Claim::FINDING
    },
    Claim {
        id: "C.fig3",
        statement: "The larger λ, the more the sizes of the neurons that cubes find resemble those of gradient descent",
        experiments: &["c-circle-lambda"],
        try_out: resemblance,
        ..Claim::FINDING
    },
    Claim {
        id: "C.tab5",
        covers: &["C.fig7"],
        statement: "At λ = 10 the ℓ3 margin still grows when training is ten and a hundred times longer, stays below that of \
                    rescaled time, and the features hardly change",
        experiments: &["c-circle-lambda", "c-circle"],
        try_out: long_training,
        ..Claim::FINDING
    },
    Claim {
        id: "C.tab7",
        covers: &["C.fig12"],
        statement: "In three layers too a smaller λ of hyperbolic entropy gives a larger ℓ1 and a smaller ℓ2 margin",
        experiments: &["c-deep-lambda"],
        try_out: deep_hyperbolic,
        ..Claim::FINDING
    },
    Claim {
        id: "C.tab8",
        covers: &["C.fig13"],
        statement: "In three layers a smaller λ of cubes gives a larger ℓ3 and no larger ℓ2 margin",
        experiments: &["c-deep-lambda"],
        try_out: deep_cubes,
        ..Claim::NOT_SEEN
    },
];

/// Keys of the sweeps, from large to small λ.
const HYPERBOLIC: [&str; 3] = ["hyp-1", "hyp-0_1", "hyp-0_01"];
const CUBES: [&str; 3] = ["cube-10", "cube-1", "cube-0_1"];

/// Means over seeds of the margins in two norms for every λ of a sweep, with print beside them. Print leaves rates and
/// scales open, so that only its order of magnitude is asked for where the sizes are the paper's.
fn margins(lab: &Lab, outcome: &mut Outcome, students: &[Student], maps: [&str; 3], printed: [(usize, [f64; 3]); 2]) {
    let own_size = lab.choose(false, true) || students.iter().all(|student| student.run.parameters == 300);
    for (norm, printed) in printed {
        for (map, printed) in maps.iter().zip(printed) {
            let ((value, spread), norm) = (over_seeds(students, map, norm), NORMS[norm]);
            if own_size {
                let what = format!("{map}: {norm} margin, mean over seeds (± {spread:.1e})");
                outcome.between(what, value, [printed / 1.5, printed * 1.5]).printed(printed);
            } else {
                outcome.note(format!("{map}: {norm} margin {value:.2e} ± {spread:.1e}, printed {printed:.2e}"));
            }
        }
    }
}

/// From each λ to the one ten times smaller.
fn falling([large, middle, small]: [&str; 3]) -> [[&str; 2]; 2] {
    [[middle, large], [small, middle]]
}

/// As λ falls the margin of the sweep's own norm rises and the ℓ2 margin falls.
fn trade(outcome: &mut Outcome, students: &[Student], maps: [&str; 3], own: usize) {
    for (norm, rises) in [(own, true), (1, false)] {
        ordered(outcome, students, &format!("{} margin", NORMS[norm]), &falling(maps), rises, |s| s.last()[norm]);
    }
}

fn hyperbolic(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), sweep(lab)?);
    let printed = [(0, [9.37e-6, 1.21e-5, 1.55e-5]), (1, [2.48e-4, 2.29e-4, 2.20e-4])];
    margins(lab, &mut outcome, &students, HYPERBOLIC, printed);
    trade(&mut outcome, &students, HYPERBOLIC, 0);
    let active = |student: &Student| student.last()[1] / student.last()[0];
    ordered(&mut outcome, &students, "‖θ‖₁²/‖θ‖₂²", &falling(HYPERBOLIC), false, active);
    outcome.note("The ℓ2 margins of print fall by 8 and 4 %, less than their own spread over seeds (6 to 12 %).");
    outcome.sketches.extend(pictures("C.fig5", &students, HYPERBOLIC));
    Ok(outcome)
}

fn cubes(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), sweep(lab)?);
    let printed = [(1, [2.24e-4, 2.32e-4, 2.34e-4]), (2, [1.21e-3, 1.43e-3, 1.43e-3])];
    margins(lab, &mut outcome, &students, CUBES, printed);
    let [ten, one, tenth] = CUBES.map(|map| over_seeds(&students, map, 2).0);
    outcome.at_most("mean ℓ3 margin at λ = 10 over those at 1 and 0.1, larger", larger(ten / one, ten / tenth), 0.95);
    outcome.near("mean ℓ3 margin at λ = 0.1 over that at 1", tenth / one, 1.0, 0.03);
    outcome.sketches.extend(pictures("C.fig6", &students, CUBES));
    Ok(outcome)
}

/// The features of the first seed for every λ.
fn pictures(id: &str, students: &[Student], maps: [&str; 3]) -> Vec<Sketch> {
    firsts(students, &maps).into_iter().map(|student| plane_figure(id, student, &student.title())).collect()
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    dot(a, b) / (norm2(a) * norm2(b))
}

fn resemblance(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), sweep(lab)?);
    let gradient = of(&students, "gradient");
    let alike = |map: &str| -> Vec<f64> {
        of(&students, map).iter().zip(&gradient).map(|(s, other)| cosine(&s.sizes(), &other.sizes())).collect()
    };
    for pair in CUBES.windows(2) {
        let ratios: Vec<f64> = alike(pair[1]).iter().zip(alike(pair[0])).map(|(less, more)| less / more).collect();
        let what = "cosine between the sorted |a|‖w‖ of cubes and of gradient descent";
        order(&mut outcome, &format!("{what}, {} over {}", pair[1], pair[0]), &ratios, false, 2);
    }
    let mut sketch =
        Sketch::new("C.fig3", "Sizes of neurons after ten thousand steps", "neuron, by size", "|a|‖w‖ per largest");
    for student in firsts(&students, &[&["gradient"], &CUBES[..]].concat()) {
        let sizes = student.sizes();
        let points = sizes.iter().enumerate().map(|(k, size)| [k as f64 + 1.0, size / sizes[0]]).collect();
        sketch = sketch.curve(student.title(), points);
    }
    outcome.sketch(sketch);
    Ok(outcome)
}

fn long_training(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, rescaled) = (Outcome::default(), students(lab)?);
    let seeds = lab.choose("seeds=42", "seeds=42..47");
    let (mut margins, mut classes) = (Vec::new(), Vec::new());
    for (steps, printed) in [(1_000, 8.03e-4), (10_000, 1.21e-3), (100_000, 1.39e-3)] {
        let overrides = [seeds, &format!("stop.steps={steps}"), "optimiser=mirror(potential=\"smoothed:3,10\")"];
        let all = class(lab, &format!("students of λ = 10 after {steps}"), "c-circle-lambda", &overrides)?;
        let margin = mean(&all.iter().map(|s| s.last()[2]).collect::<Vec<_>>());
        // neither rate nor draw is printed, so that the order is claimed and not the numbers
        outcome.note(format!("ℓ3 margin after {steps} steps: {margin:.2e}, printed {printed:.2e}"));
        margins.push(margin);
        classes.push(all);
    }
    let what = "ℓ3 margin after 10,000 steps over that after 1,000";
    outcome.at_least(what, margins[1] / margins[0], 1.05).printed(1.51);
    let what = "ℓ3 margin after 100,000 steps over that after 10,000";
    outcome.at_least(what, margins[2] / margins[1], 1.05).printed(1.15);
    let what = "ℓ3 margin after 100,000 steps over that of rescaled time with λ = 1";
    outcome.at_most(what, margins[2] / over_seeds(&rescaled, "cube", 2).0, 0.95).printed(0.79);
    let kept = classes[1].iter().zip(classes[2].iter());
    let kept = kept.map(|(a, b)| cosine(&a.features().concat(), &b.features().concat()));
    outcome.smallest("cosine between all |a| w after 10,000 and after 100,000 steps, least", kept, 0.9);
    for (k, name) in [(1, "10,000 steps"), (2, "100,000 steps")] {
        if let Some(student) = classes[k].first() {
            let sketch = plane_figure("C.fig7", student, &format!("λ = 10, {name}"));
            outcome.sketch(Sketch { name: format!("C.fig7-{k}"), ..sketch });
        }
    }
    Ok(outcome)
}

fn deep_hyperbolic(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), deep_sweep(lab)?);
    let printed = [(0, [1.67e-9, 3.62e-9, 4.87e-9]), (1, [6.43e-5, 4.76e-5, 4.44e-5])];
    margins(lab, &mut outcome, &students, HYPERBOLIC, printed);
    trade(&mut outcome, &students, HYPERBOLIC, 0);
    outcome.sketch(inputs_figure("C.fig12", &students, HYPERBOLIC));
    Ok(outcome)
}

fn deep_cubes(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), deep_sweep(lab)?);
    let printed = [(1, [8.76e-5, 8.69e-5, 7.47e-5]), (2, [1.75e-3, 2.62e-3, 3.44e-3])];
    margins(lab, &mut outcome, &students, CUBES, printed);
    trade(&mut outcome, &students, CUBES, 2);
    outcome.note("The first two ℓ2 margins of print, 8.76 and 8.69, are equal within their spread of 0.09.");
    outcome.sketch(inputs_figure("C.fig13", &students, CUBES));
    Ok(outcome)
}

/// The first layer's weights in the plane, per largest.
fn inputs_figure(id: &str, students: &[Student], maps: [&str; 3]) -> Sketch {
    let sketch =
        Sketch::new(id, "Weights of the first layer, per largest", "w₁", "w₂").window([-1.5, 1.5], [-1.1, 1.1]);
    firsts(students, &maps).into_iter().fold(sketch, |sketch, student| {
        let rows = student.layer(0).chunks_exact(2);
        let largest = rows.clone().map(|w| w[0].hypot(w[1])).fold(0.0, f64::max);
        sketch.cloud(student.title(), rows.map(|w| [w[0] / largest, w[1] / largest, 0.8]).collect(), false)
    })
}
