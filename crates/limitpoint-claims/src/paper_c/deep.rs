//! J.2: three-layer students, their margins, weights and decision regions.

use super::features::own_margins;
use super::students::{MAPS, NORMS, SMALL, Student, deep_students, firsts, ordered, over_seeds};
use crate::statistics::mean;
use crate::{Claim, ClaimError, Lab, Outcome, Sketch};
use limitpoint::engine::{Compute, Forward, cpu};
use limitpoint::linalg::{Matrix, max_abs};

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "C.exp3L",
        covers: &["C.tab6"],
        statement: "In three layers each mirror map ends with the largest margin of its own horizon; hyperbolic entropy's ℓ1 \
                    margin is many times that of gradient descent, and so, less, is the ℓ3 margin of cubes",
        experiments: &["c-deep"],
        try_out: margins,
        ..Claim::FINDING
    },
    Claim {
        id: "C.fig8",
        covers: &["C.fig9", "C.fig10", "C.fig2M"],
        statement: "In every layer hyperbolic entropy leaves more weights near zero than gradient descent, and cubes fewer; the \
                    sizes of weights vary least with cubes, and the hidden layer's tails are heaviest with hyperbolic entropy",
        experiments: &["c-deep"],
        try_out: histograms,
        ..Claim::FINDING
    },
    Claim {
        id: "C.fig11",
        statement: "The decision regions of all three students are sectors that put every training point on its side",
        experiments: &["c-deep"],
        try_out: regions,
        ..Claim::FINDING
    },
];

/// Table 6 as printed.
const TABLE_6: [[f64; 3]; 3] = [[4.01e-8, 6.21e-5, 1.03e-4], [1.13e-9, 1.10e-4, 1.73e-3], [2.39e-10, 9.36e-5, 3.42e-3]];

fn margins(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), deep_students(lab)?);
    own_margins(&mut outcome, &students, lab.choose(-30.0, -50.0));
    let gain = |k: usize, map: &str| over_seeds(&students, map, k).0 / over_seeds(&students, "gradient", k).0;
    outcome.at_least("mean ℓ1 margin of hyp over that of gradient descent", gain(0, "hyp"), 5.0).printed(35.5);
    outcome.at_least("mean ℓ3 margin of cube over that of gradient descent", gain(2, "cube"), 1.3).printed(1.98);
    for (map, row) in MAPS.iter().zip(TABLE_6) {
        for (k, norm) in NORMS.iter().enumerate() {
            let (centre, spread) = over_seeds(&students, map, k);
            let words = format!("{map}: margin per {norm} norm, mean over seeds");
            // the printed size is that of the full scale only
            if lab.choose(false, true) {
                // sparse solutions keep the memory of the start, which print leaves open
                let factor = if *map == "hyp" { 2.5 } else { 1.25 };
                let range = [row[k] / factor, row[k] * factor];
                outcome.between(format!("{words} (± {spread:.1e})"), centre, range).printed(row[k]);
            } else {
                let measured = format!("{centre:.2e} ± {spread:.1e}; printed for widths of 100: {:.2e}", row[k]);
                outcome.note(format!("{words}: {measured}"));
            }
        }
    }
    Ok(outcome)
}

/// Σ(x − x̄)ᵏ/n.
fn moment(values: &[f64], power: i32) -> f64 {
    let centre = mean(values);
    mean(&values.iter().map(|x| (x - centre).powi(power)).collect::<Vec<_>>())
}

/// Σ(x − x̄)⁴/n over the squared variance.
fn kurtosis(values: &[f64]) -> f64 {
    moment(values, 4) / moment(values, 2).powi(2)
}

/// Standard deviation over mean of |x|.
fn variation(values: &[f64]) -> f64 {
    let sizes: Vec<f64> = values.iter().map(|x| x.abs()).collect();
    moment(&sizes, 2).sqrt() / mean(&sizes)
}

/// The share of entries of at least a hundredth of the largest.
fn large(values: &[f64]) -> f64 {
    let largest = max_abs(values);
    values.iter().filter(|x| x.abs() >= SMALL * largest).count() as f64 / values.len() as f64
}

fn histograms(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), deep_students(lab)?);
    let mut falls = |what: &str, pairs: [[&str; 2]; 2], measure: &dyn Fn(&Student) -> f64| {
        ordered(&mut outcome, &students, what, &pairs, false, measure);
    };
    let [hyp, gradient, cube] = MAPS;
    for layer in 0..3 {
        let name = |what: &str| format!("layer {}: {what}", layer + 1);
        let what = name("share of weights above 1 % of the largest");
        falls(&what, [[hyp, gradient], [gradient, cube]], &|s| large(s.layer(layer)));
        let what = name("standard deviation over mean of |w|");
        falls(&what, [[cube, hyp], [cube, gradient]], &|s| variation(s.layer(layer)));
    }
    falls("kurtosis of the second layer", [[gradient, hyp], [cube, gradient]], &|s| kurtosis(s.layer(1)));
    for layer in 0..3 {
        let (name, title) = (format!("C.fig{}", 8 + layer), format!("Sizes of weights in layer {}", layer + 1));
        let sketch = Sketch::new(&name, &title, "|w| per largest", "share of weights").logarithmic(false, true);
        let drawn = |sketch: Sketch, s: &Student| sketch.curve(s.map(), outline(s.layer(layer)));
        outcome.sketch(firsts(&students, &MAPS).into_iter().fold(sketch, drawn));
    }
    Ok(outcome)
}

/// A histogram of |w| per largest in twenty bins, as the outline of its bars; empty bins are left out.
fn outline(weights: &[f64]) -> Vec<[f64; 2]> {
    const BINS: usize = 20;
    let largest = max_abs(weights);
    let mut counts = [0usize; BINS];
    weights.iter().for_each(|x| counts[((x.abs() / largest * BINS as f64) as usize).min(BINS - 1)] += 1);
    let share = |count: usize| (count as f64 / weights.len() as f64).max(0.5 / weights.len() as f64);
    let edge = |k: usize| k as f64 / BINS as f64;
    counts.iter().enumerate().flat_map(|(k, &count)| [[edge(k), share(count)], [edge(k + 1), share(count)]]).collect()
}

fn regions(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), deep_students(lab)?);
    let (angles, side) = (720, 41);
    for student in firsts(&students, &MAPS) {
        let (map, data) = (student.map(), &student.run.end.data);
        let (signs, inputs) = (data.signs().unwrap_or_default(), data.dense()?.into_owned());
        let right = scores(student, &inputs)?.iter().zip(signs).filter(|(score, sign)| *score * *sign > 0.0).count();
        let what = format!("{map}: training points on their side");
        outcome.push(what, signs.len().to_string(), right.to_string(), right == signs.len());
        let circle: Vec<[f64; 2]> = (0..angles)
            .map(|k| (f64::from(k) * std::f64::consts::TAU / f64::from(angles)).sin_cos())
            .map(|(y, x)| [x, y])
            .collect();
        let around = scores(student, &matrix(&circle))?;
        let changes =
            (0..around.len()).filter(|&k| (around[k] > 0.0) != (around[(k + 1) % around.len()] > 0.0)).count();
        let what = format!("{map}: changes of sign around the circle");
        outcome.push(what, "at least 2", changes.to_string(), changes >= 2);
        let most = max_abs(&around);
        let grid: Vec<[f64; 2]> = (0..side * side)
            .map(|k| [k % side, k / side].map(|step| 2.4 * step as f64 / (side - 1) as f64 - 1.2))
            .collect();
        let values = scores(student, &matrix(&grid))?;
        let part = |positive: bool| {
            let inside = grid.iter().zip(&values).filter(|(_, f)| (**f > 0.0) == positive);
            inside.map(|(x, f)| [x[0], x[1], 0.25 + 0.9 * (f.abs() / most).sqrt()]).collect()
        };
        let marks = |sign: f64| {
            let inside = (0..signs.len()).filter(|&i| signs[i] == sign).map(|i| inputs.row(i));
            inside.map(|x| [x[0], x[1], 0.6]).collect()
        };
        let title = format!("{map}: decision regions, larger marks for larger |f|");
        let sketch = Sketch::new(&format!("C.fig11-{map}"), &title, "x₁", "x₂")
            .window([-1.6, 1.6], [-1.2, 1.2])
            .cloud("f > 0", part(true), false)
            .cloud("f < 0", part(false), false)
            .cloud("label +1", marks(1.0), true)
            .cloud("label −1", marks(-1.0), true);
        outcome.sketch(sketch);
    }
    Ok(outcome)
}

fn matrix(points: &[[f64; 2]]) -> Matrix {
    Matrix::from_rows(&points.iter().map(|point| point.as_slice()).collect::<Vec<_>>())
}

/// f at some points.
fn scores(student: &Student, inputs: &Matrix) -> Result<Vec<f64>, ClaimError> {
    let mut model = cpu::bind(&student.run.end.task.recipe.model, inputs, 1, Compute::default())?;
    Ok(model.scores(&student.run.end.params).to_vec())
}
