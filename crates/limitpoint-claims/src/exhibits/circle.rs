//! Students of a teacher on the circle, two layers (C section J.1).

use limitpoint::report::Sketch;

use super::material::Material;
use super::reading::{Reading, curves, mean_and_spread};
use super::{Exhibit, MadeOf};
use crate::ClaimError;

const OPEN: &str = "Print does not say which data and teacher, which scale of the start, which output factor, whether the loss is summed and \
                    whether steps are exact mirror steps. Taken: the draw 2459, the one of three thousand whose ℓ2 margin by gradient \
                    descent is nearest to print; standard normal weights, mean-field output, summed loss, exact steps.";
const RATE: &str = "For the runs without time rescaling print says only 'the same fixed learning rate'; with time rescaling it begins with 0.001, 0.1 \
                    and 1 for hyperbolic entropy, gradient descent and cubes. Taken: 0.1 for hyperbolic entropy and 1 for cubes, chosen because they \
                    give margins like the printed ones.";

pub(super) const EXHIBITS: [Exhibit; 10] = [
    Exhibit {
        id: "C.tab2",
        shows: "Margins in three norms by mirror map, with time rescaling, to a loss of 10^-50",
        made_of: MadeOf::Runs { sets: &["c-circle-printed"], read: table_2 },
        departures: &[OPEN],
    },
    Exhibit {
        id: "C.fig2",
        shows: "Features of the students by mirror map, weights of a hidden layer, and margins over the loss",
        made_of: MadeOf::Runs { sets: &["c-circle-printed", "c-deep-printed"], read: figure_2 },
        departures: &[OPEN],
    },
    Exhibit {
        id: "C.fig3",
        shows: "λ slows the representation of cubes",
        made_of: MadeOf::Runs { sets: &["c-circle-lambda"], read: figure_3 },
        departures: &[OPEN, RATE],
    },
    Exhibit {
        id: "C.tab3",
        shows: "Hyperbolic entropy at three λ after 10,000 steps without rescaling",
        made_of: MadeOf::Runs { sets: &["c-circle-lambda"], read: table_3 },
        departures: &[OPEN, RATE],
    },
    Exhibit {
        id: "C.fig5",
        shows: "Features of hyperbolic entropy at three λ",
        made_of: MadeOf::Runs { sets: &["c-circle-lambda"], read: |m| features(m, "c-circle-lambda", &HYPERBOLIC) },
        departures: &[OPEN, RATE],
    },
    Exhibit {
        id: "C.tab4",
        shows: "Cubes at three λ after 10,000 steps without rescaling",
        made_of: MadeOf::Runs { sets: &["c-circle-lambda"], read: table_4 },
        departures: &[OPEN, RATE],
    },
    Exhibit {
        id: "C.fig6",
        shows: "Features of cubes at three λ",
        made_of: MadeOf::Runs { sets: &["c-circle-lambda"], read: |m| features(m, "c-circle-lambda", &CUBES) },
        departures: &[OPEN, RATE],
    },
    Exhibit {
        id: "C.tab5",
        shows: "The ℓ3 margin of cubes with λ = 10 after 10³, 10⁴ and 10⁵ steps",
        made_of: MadeOf::Runs { sets: &["c-circle-long"], read: table_5 },
        departures: &[OPEN, RATE],
    },
    Exhibit {
        id: "C.fig7",
        shows: "Features of cubes with λ = 10 after 10³, 10⁴ and 10⁵ steps",
        made_of: MadeOf::Runs { sets: &["c-circle-short", "c-circle-lambda", "c-circle-long"], read: figure_7 },
        departures: &[OPEN, RATE],
    },
    Exhibit {
        id: "C.fig11",
        shows: "Scores of the three-layer students around the circle",
        made_of: MadeOf::Runs { sets: &["c-deep-printed"], read: figure_11 },
        departures: &[OPEN],
    },
];

pub(super) const HYPERBOLIC: [&str; 3] = ["hyp-1", "hyp-0_1", "hyp-0_01"];
pub(super) const CUBES: [&str; 3] = ["cube-10", "cube-1", "cube-0_1"];
pub(super) const NORMS: [(&str, &str); 3] = [("ℓ1", "margin.l1"), ("ℓ2", "margin.l2"), ("ℓ3", "margin.l3")];

/// Rows of margins by optimiser and norm; `printed[k]` belongs to optimiser k.
pub(super) fn margins<const K: usize>(
    reading: &mut Reading,
    material: &Material,
    set: &str,
    norms: &[(&str, &str)],
    named: &[(&str, &str, [[f64; 2]; K])],
) {
    for (optimiser, words, printed) in named {
        for ((norm, column), printed) in norms.iter().zip(printed) {
            let values = material.last(set, optimiser, column);
            reading.row(format!("{words}: {norm} margin"), Some(*printed), &values);
        }
    }
}

/// Says which of three optimisers has the largest margin in each norm; in print each has its own, in this order.
pub(super) fn winners(reading: &mut Reading, material: &Material, set: &str, named: &[(&str, &str, [[f64; 2]; 3]); 3]) {
    for ((norm, column), (_, expected, _)) in NORMS.iter().zip(named) {
        let values = named.map(|(name, words, _)| (words, material.last(set, name, column)));
        reading.say_largest(&format!("The {norm} margin"), &values, expected);
    }
}

fn table_2(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let printed = [
        ("hyp", "hyperbolic entropy", [[3.31e-5, 2.00e-6], [2.76e-4, 8.80e-8], [4.55e-4, 3.50e-6]]),
        ("gradient", "gradient descent", [[1.83e-6, 1.02e-7], [2.94e-4, 4.42e-8], [1.34e-3, 4.59e-5]]),
        ("cube", "cubes", [[1.19e-6, 1.27e-8], [2.91e-4, 7.77e-7], [1.76e-3, 5.18e-6]]),
    ];
    margins(&mut reading, material, "c-circle-printed", &NORMS, &printed);
    winners(&mut reading, material, "c-circle-printed", &printed);
    for (metric, words) in [("hyp-metric", "hyperbolic entropy, metric steps"), ("cube-metric", "cubes, metric steps")]
    {
        for (norm, column) in NORMS {
            reading.row(format!("{words}: {norm} margin"), None, &material.last("c-circle-printed", metric, column));
        }
    }
    Ok(reading)
}

fn table_3(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let printed = [
        ("hyp-1", "λ = 1", [[9.37e-6, 1.14e-6], [2.48e-4, 1.54e-5]]),
        ("hyp-0_1", "λ = 0.1", [[1.21e-5, 7.51e-7], [2.29e-4, 2.09e-5]]),
        ("hyp-0_01", "λ = 0.01", [[1.55e-5, 1.23e-6], [2.20e-4, 2.58e-5]]),
    ];
    margins(&mut reading, material, "c-circle-lambda", &NORMS[..2], &printed);
    orders(&mut reading, material, "c-circle-lambda", &NORMS[..2], &printed);
    Ok(reading)
}

fn table_4(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let printed = [
        ("cube-10", "λ = 10", [[2.24e-4, 3.54e-6], [1.21e-3, 1.83e-5]]),
        ("cube-1", "λ = 1", [[2.32e-4, 2.53e-6], [1.43e-3, 1.35e-5]]),
        ("cube-0_1", "λ = 0.1", [[2.34e-4, 2.43e-6], [1.43e-3, 1.46e-5]]),
    ];
    margins(&mut reading, material, "c-circle-lambda", &NORMS[1..], &printed);
    orders(&mut reading, material, "c-circle-lambda", &NORMS[1..], &printed);
    Ok(reading)
}

/// Says how the means of every margin go along a list of optimisers, in print and here.
pub(super) fn orders<const K: usize>(
    reading: &mut Reading,
    material: &Material,
    set: &str,
    norms: &[(&str, &str)],
    named: &[(&str, &str, [[f64; 2]; K])],
) {
    for (k, (norm, column)) in norms.iter().enumerate() {
        let mean = |name: &str| mean_and_spread(&material.last(set, name, column)).0.unwrap_or(f64::NAN);
        let ours: Vec<f64> = named.iter().map(|(name, ..)| mean(name)).collect();
        let printed: Vec<f64> = named.iter().map(|(.., printed)| printed[k][0]).collect();
        let [here, there] = [&ours, &printed].map(|means| course_of(means));
        let shown = |means: &[f64]| means.iter().map(|mean| format!("{mean:.3e}")).collect::<Vec<_>>().join(", ");
        reading.say(format!(
            "As λ falls the {norm} margin {there} in print ({}) and {here} here ({}).",
            shown(&printed),
            shown(&ours)
        ));
    }
}

/// How numbers go.
fn course_of(numbers: &[f64]) -> &'static str {
    let all = |follows: fn(f64, f64) -> bool| numbers.windows(2).all(|pair| follows(pair[0], pair[1]));
    if numbers.iter().any(|number| number.is_nan()) {
        "is not known"
    } else if all(|a, b| a < b) {
        "rises"
    } else if all(|a, b| a > b) {
        "falls"
    } else if all(|a, b| a <= b) {
        "rises, then stays"
    } else {
        "goes up and down"
    }
}

fn table_5(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let printed = [(1000.0, [8.03e-4, 2.35e-5]), (10_000.0, [1.21e-3, 1.83e-5]), (100_000.0, [1.39e-3, 1.84e-5])];
    for (steps, printed) in printed {
        let at = |run: &limitpoint::experiments::RunRecord| {
            let place = run.metrics.column("step").iter().position(|step| *step == steps)?;
            run.metrics.column("margin.l3").get(place).copied()
        };
        let values: Vec<f64> = material.finished("c-circle-long", "cube-10").filter_map(at).collect();
        reading.row(format!("{steps} steps: ℓ3 margin"), Some(printed), &values);
    }
    let sketch = Sketch::new("margin", "Cubes with λ = 10", "step", "ℓ3 margin").logarithmic(true, true);
    let axes = ["step", "margin.l3"];
    reading.figure(curves(sketch, material, "c-circle-long", &["cube-10", "gradient"], axes, |_| true));
    Ok(reading)
}

/// |a_j| w_j of every neuron of the run with seed 42: two inputs, one hidden layer, one output.
fn neurons(material: &Material, set: &str, optimiser: &str) -> Result<Vec<[f64; 3]>, ClaimError> {
    let Some(run) = material.finished(set, optimiser).find(|run| run.seed == 42) else { return Ok(Vec::new()) };
    let Some((layout, weights)) = material.weights(set, run)? else { return Ok(Vec::new()) };
    let mut blocks = layout.weights();
    let (Some(first), Some(second)) = (blocks.next(), blocks.next()) else { return Ok(Vec::new()) };
    let (incoming, outgoing) = (&weights[first.range()], &weights[second.range()]);
    // in three layers a unit has many outgoing weights: the picture is of the input layer alone
    let alone = outgoing.len() == first.rows;
    let strength = |j: usize| if alone { outgoing[j].abs() } else { 1.0 };
    Ok((0..first.rows).map(|j| [strength(j) * incoming[2 * j], strength(j) * incoming[2 * j + 1], 1.0]).collect())
}

/// Share of neurons above one per cent of the largest.
fn active(neurons: &[[f64; 3]]) -> usize {
    let size = |neuron: &[f64; 3]| neuron[0].hypot(neuron[1]);
    let most = neurons.iter().map(size).fold(0.0, f64::max);
    neurons.iter().filter(|neuron| size(neuron) > 0.01 * most).count()
}

/// Pictures of the features of some optimisers at seed 42, one each, divided by the largest.
pub(super) fn features(material: &Material, set: &str, optimisers: &[&str]) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let mut counts = Vec::new();
    for name in optimisers {
        let mut found = neurons(material, set, name)?;
        let most = found.iter().map(|neuron| neuron[0].hypot(neuron[1])).fold(0.0, f64::max);
        found.iter_mut().for_each(|neuron| (0..2).for_each(|side| neuron[side] /= most));
        if found.is_empty() {
            continue;
        }
        counts.push(format!("{name} {} of {}", active(&found), found.len()));
        let words = format!("{set}, {name}, seed 42");
        reading.figure(
            Sketch::new(&format!("{set}-{name}"), &words, "first input", "second input")
                .window([-1.1, 1.1], [-1.1, 1.1])
                .cloud("a neuron", found, false),
        );
    }
    reading.say(format!("Neurons above 1 % of the largest, seed 42: {}.", counts.join(", ")));
    Ok(reading)
}

fn figure_2(material: &Material) -> Result<Reading, ClaimError> {
    let maps = ["hyp", "gradient", "cube"];
    let mut reading = features(material, "c-circle-printed", &maps)?;
    let histograms = super::depths::histogram(material, 2, "hidden layer of three-layer students");
    reading.figures.extend(histograms);
    for (norm, column) in NORMS {
        let title = format!("{norm} margin over the loss");
        let name = column.replace(['.', ':'], "-");
        let sketch = Sketch::new(&name, &title, "log₁₀ L", "margin").logarithmic(false, true);
        let seed = |run: &limitpoint::experiments::RunRecord| run.seed == 42;
        reading.figure(curves(sketch, material, "c-circle-printed", &maps, ["log10_loss", column], seed));
    }
    Ok(reading)
}

fn figure_3(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = features(material, "c-circle-lambda", &["gradient", "cube-10", "cube-1", "cube-0_1"])?;
    let plain = sizes(&neurons(material, "c-circle-lambda", "gradient")?);
    let cosines: Vec<f64> = ["cube-0_1", "cube-1", "cube-10"]
        .iter()
        .map(|name| Ok(cosine(&sizes(&neurons(material, "c-circle-lambda", name)?), &plain)))
        .collect::<Result<_, ClaimError>>()?;
    let rises = cosines.windows(2).all(|pair| pair[0] < pair[1]);
    let shown: Vec<String> = cosines.iter().map(|cosine| format!("{cosine:.4}")).collect();
    reading.say(format!(
        "The cosine between sorted strengths of neurons and those of gradient descent, at λ = 0.1, 1, 10: {}; print says that a larger λ \
         is nearer to gradient descent, {}.",
        shown.join(", "),
        if rises { "here too" } else { "which is not seen here" }
    ));
    Ok(reading)
}

/// Strengths of neurons, sorted.
fn sizes(neurons: &[[f64; 3]]) -> Vec<f64> {
    let mut sizes: Vec<f64> = neurons.iter().map(|neuron| neuron[0].hypot(neuron[1])).collect();
    sizes.sort_by(f64::total_cmp);
    sizes
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    product(a, b) / (product(a, a) * product(b, b)).sqrt()
}

fn figure_7(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    for set in ["c-circle-short", "c-circle-lambda", "c-circle-long"] {
        let part = features(material, set, &["cube-10"])?;
        reading.figures.extend(part.figures);
        reading.words.extend(part.words.into_iter().map(|words| format!("{set}: {words}")));
    }
    Ok(reading)
}

fn figure_11(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let mut sketch = Sketch::new("scores", "Scores around the circle, seed 42", "angle", "score over the largest");
    let mut words = Vec::new();
    for name in ["hyp", "gradient", "cube"] {
        let Some(run) = material.finished("c-deep-printed", name).find(|run| run.seed == 42) else { continue };
        let Some((layout, weights)) = material.weights("c-deep-printed", run)? else { continue };
        let scores = around(&layout, &weights);
        let changes = scores.iter().zip(scores.iter().cycle().skip(1)).filter(|(a, b)| a[1] * b[1] < 0.0).count();
        words.push(format!("{name} {changes}"));
        sketch = sketch.curve(name, scores);
    }
    reading.figure(sketch);
    reading.say(format!("Sign changes around the circle, seed 42: {}.", words.join(", ")));
    Ok(reading)
}

/// Scores of a dense ReLU network with two inputs and one output at 360 angles, over the largest of them.
fn around(layout: &limitpoint::params::ParamLayout, weights: &[f64]) -> Vec<[f64; 2]> {
    let last = layout.weights().count();
    let score = |angle: f64| {
        let mut values = vec![angle.cos(), angle.sin()];
        for (number, block) in layout.weights().enumerate() {
            let rows = weights[block.range()].chunks_exact(block.cols);
            let sums = rows.map(|row| row.iter().zip(&values).map(|(w, x)| w * x).sum::<f64>());
            values = sums.map(|sum| if number + 1 < last { sum.max(0.0) } else { sum }).collect();
        }
        values.first().copied().unwrap_or(f64::NAN)
    };
    let angles = (0..360).map(|k| std::f64::consts::TAU * f64::from(k) / 360.0);
    let mut points: Vec<[f64; 2]> = angles.map(|angle| [angle, score(angle)]).collect();
    let most = points.iter().map(|point| point[1].abs()).fold(f64::MIN_POSITIVE, f64::max);
    points.iter_mut().for_each(|point| point[1] /= most);
    points
}
