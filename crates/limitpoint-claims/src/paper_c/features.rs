//! J.1: sparse and dense features, and the margins of Table 2, also in random draws of data and teacher, none chosen.

use super::reformulation::best_networks;
use super::students::{MAPS, NORMS, Student, class, firsts, of, over_seeds, paired, students};
use crate::statistics::bootstrap_mean;
use crate::{Claim, ClaimError, Lab, Outcome, Sketch};

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "C.exp2L",
        statement: "In every seed the two-layer students train with the printed rates and time rescaling, by exact mirror steps \
                    and by metric steps, to the margins that resolved steps reach",
        experiments: &["c-circle", "c-circle-printed"],
        try_out: printed_steps,
        ..Claim::FINDING
    },
    Claim {
        id: "C.tab2",
        covers: &["C.fig2R"],
        statement: "In every seed each mirror map ends with the largest margin of its own horizon: hyperbolic entropy ℓ1, \
                    gradient descent ℓ2, cubes ℓ3, also in random draws of data and teacher; all nine means of the draw nearest to \
                    print are near the printed ones",
        experiments: &["c-circle"],
        try_out: margins,
        ..Claim::FINDING
    },
    Claim {
        id: "C.tab2.printed",
        statement: "The nine printed margins are those of a typical draw of data and teacher: each lies inside the middle 95 % \
                    of random draws",
        experiments: &["c-circle"],
        try_out: typical,
        ..Claim::NOT_SEEN
    },
    Claim {
        id: "C.fig2L",
        statement: "Hyperbolic entropy ends with few active neurons, cubes with nearly all, gradient descent between, in every \
                    seed; those of gradient descent point where the judge's do",
        experiments: &["c-circle"],
        try_out: features,
        ..Claim::FINDING
    },
];

/// Table 2 as printed: means over six seeds, rows by map, columns by norm.
const TABLE_2: [[f64; 3]; 3] = [[3.31e-5, 2.76e-4, 4.55e-4], [1.83e-6, 2.94e-4, 1.34e-3], [1.19e-6, 2.91e-4, 1.76e-3]];

fn printed_steps(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, resolved) = (Outcome::default(), students(lab)?);
    let quick = ["seeds=42..44", "stop.log10_loss=-1.5"];
    let printed = class(lab, "students with printed steps", "c-circle-printed", lab.choose(&quick[..], &[]))?;
    let late = printed.iter().map(|s| s.run.last("log10"));
    outcome.largest("log10 L at the end, largest", late, lab.choose(-1.5, -50.0));
    let keys = [("hyp", 0), ("gradient", 1), ("cube", 2), ("hyp-metric", 0), ("cube-metric", 2)];
    for (key, place) in keys {
        let ratio = |student: &Student| {
            let other = of(&resolved, MAPS[place]).into_iter().find(|s| s.run.seed() == student.run.seed());
            let Some(other) = other else { return f64::NAN };
            // runs end a little below the loss they are to reach, one of them first: the last loss that both have seen
            let (mine, theirs) = (student.run.last("log10"), other.run.last("log10"));
            let own = if mine < theirs { student.margin_at(NORMS[place], theirs) } else { student.last()[place] };
            own / other.margin_at(NORMS[place], mine.max(theirs))
        };
        let ratios: Vec<f64> = of(&printed, key).into_iter().map(ratio).collect();
        let [low, high] = bootstrap_mean(&ratios, 1.0 - 0.05 / keys.len() as f64);
        let shown: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.3}")).collect();
        let what = format!(
            "{key}: margin of its own norm against that with resolved steps at this loss, largest relative difference of a seed \
             (ratios {}; mean between {low:.3} and {high:.3})",
            shown.join(", ")
        );
        outcome.largest(what, ratios.iter().map(|ratio| (ratio - 1.0).abs()), 0.1);
    }
    outcome.note(
        "At the quick scale runs end at L = 10^−1.5, soon after time is rescaled; at full scale at 10⁻⁵⁰. Open in print: output \
         factor, initial scale, sum or mean, exact or metric step. Here: mean-field output, standard normal weights, summed \
         loss; both steps. On data that are harder to separate the same rates need millions of steps.",
    );
    Ok(outcome)
}

fn margins(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), students(lab)?);
    own_margins(&mut outcome, &students, -50.0);
    let ranges = [[4.0, 20.0], [80.0, 250.0], [180.0, 300.0]];
    for ((map, row), range) in MAPS.iter().zip(TABLE_2).zip(ranges) {
        for (k, norm) in NORMS.iter().enumerate() {
            let (centre, spread) = over_seeds(&students, map, k);
            let what = format!("{map}: margin per {norm} norm, mean over seeds (± {spread:.1e}), chosen draw");
            outcome.between(what, centre, [0.75 * row[k], 1.25 * row[k]]).printed(row[k]);
        }
        for student in of(&students, map) {
            let [l1, l2, _] = student.last();
            let what = format!("{map}, seed {}: ‖θ‖₁²/‖θ‖₂², of 300 weights", student.run.seed());
            outcome.between(what, l2 / l1, range).printed(row[1] / row[0]);
        }
    }
    let (centre, spread) = over_seeds(&students, "gradient", 1);
    outcome.at_most("gradient descent, ℓ2 margin: standard deviation over mean", spread / centre, 1e-2).printed(1.5e-4);
    outcome.note(
        "The draw of data and teacher is not published. The one above is chosen, to show that the printed numbers can be met: of \
         the seeds 0 to 2,999 it is the one whose ℓ2 margin by gradient descent is nearest to the printed 2.94e-4 (`limitpoint run \
         c-circle data.seed=0..2999 seeds=42 optimiser=gradient` is that search); the other eight numbers were not looked at for \
         that. The random draws are not chosen.",
    );
    let draws = draws(lab, &mut outcome)?;
    for (k, norm) in NORMS.iter().enumerate() {
        let wins = |draw: &[[f64; 3]; 3]| (0..3).all(|other| other == k || draw[k][k] > draw[other][k]);
        let what = format!("random draws: share in which {} has the largest {norm} margin", MAPS[k]);
        outcome.share(what, draws.iter().map(wins), 0.9);
    }
    if lab.choose(false, true) {
        let overrides = ["seeds=42..43", "stop.log10_loss=-5000", "stop.steps=20000000"];
        own_margins(&mut outcome, &class(lab, "students far beyond the paper", "c-circle", &overrides)?, -5000.0);
    }
    Ok(outcome)
}

/// Every run gets to its loss, and in every seed the diagonal of the table is largest in its column.
pub(super) fn own_margins(outcome: &mut Outcome, students: &[Student], target: f64) {
    outcome.largest("log10 L at the end, largest", students.iter().map(|s| s.run.last("log10")), target);
    for (k, winner) in MAPS.iter().enumerate() {
        for rival in MAPS.iter().filter(|rival| *rival != winner) {
            let gains = paired(students, [winner, rival], |s| s.last()[k]);
            let wins = gains.iter().filter(|gain| **gain > 1.0).count();
            let ratios: Vec<String> = gains.iter().map(|gain| format!("{gain:.3}")).collect();
            let what = format!("L = 1e{target}: {} margin of {winner} over that of {rival}, every seed", NORMS[k]);
            outcome.push(what, "more than 1", ratios.join(", "), wins == gains.len() && wins > 0).by_paper();
        }
    }
}

/// The margins ℓ1, ℓ2, ℓ3 of one student of every map in each of many draws. Draws with small margins take more steps to the
/// printed loss than can be waited for; they are kept, since to leave them out would choose the others.
fn draws(lab: &Lab, outcome: &mut Outcome) -> Result<Vec<[[f64; 3]; 3]>, ClaimError> {
    let count = lab.scales(8, 200, 200);
    let steps = lab.scales(100_000, 100_000, 400_000);
    let overrides = [format!("data.seed=0..{}", count - 1), "seeds=42".to_owned(), format!("stop.steps={steps}")];
    let all = class(lab, "students of random draws", "c-circle", &overrides)?;
    // in the order of the draws
    let [first, second, third] = MAPS.map(|map| of(&all, map));
    let mut found = Vec::new();
    for (seed, ((first, second), third)) in first.into_iter().zip(second).zip(third).enumerate() {
        let draw = [first, second, third];
        if draw.iter().all(|student| student.run.last("log10") < 0.0) {
            found.push(draw.map(Student::last));
        } else {
            outcome.leave_out(format!("draw {seed}"), format!("a map does not separate its data in {steps} steps"));
        }
    }
    outcome.at_least("random draws that all maps separate, share", found.len() as f64 / count as f64, 0.9);
    outcome.note(format!(
        "Random draws are the seeds 0 to {} of data and teacher, ended at L = 1e-50 or after {steps} steps.",
        count - 1
    ));
    Ok(found)
}

/// Which quantile of the random draws each of the nine printed numbers is.
fn typical(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let draws = draws(lab, &mut outcome)?;
    let title = format!("Margins of {} random draws as multiples of the printed ones", draws.len());
    let mut sketch = Sketch::new("C.tab2-draws", &title, "margin over the printed one", "share of draws below")
        .logarithmic(true, false)
        .reference("print", vec![[1.0, 0.0], [1.0, 1.0]]);
    for ((m, map), row) in MAPS.iter().enumerate().zip(TABLE_2) {
        for (k, norm) in NORMS.iter().enumerate() {
            let mut margins: Vec<f64> = draws.iter().map(|draw| draw[m][k]).collect();
            margins.sort_by(f64::total_cmp);
            let at = |share: f64| margins.get(((margins.len() as f64 - 1.0) * share).round() as usize).copied();
            let quantiles = [0.05, 0.5, 0.95].map(|share| format!("{:.2e}", at(share).unwrap_or(f64::NAN)));
            let below = margins.iter().filter(|margin| **margin < row[k]).count() as f64 / margins.len() as f64;
            outcome.note(format!("{map}, {norm}: 5 %, 50 % and 95 % of the draws are below {}", quantiles.join(", ")));
            let what = format!("{map}, {norm}: share of random draws with a margin below the printed {:.2e}", row[k]);
            outcome.between(what, below, [0.025, 0.975]);
            let step = |(place, margin): (usize, &f64)| [margin / row[k], (place as f64 + 0.5) / margins.len() as f64];
            sketch = sketch.curve(format!("{map}, {norm}"), margins.iter().enumerate().map(step).collect());
        }
    }
    outcome.sketch(sketch);
    Ok(outcome)
}

fn features(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), students(lab)?);
    let counts = MAPS.map(|map| of(&students, map).into_iter().map(Student::active).collect::<Vec<usize>>());
    let ordered = (0..counts[0].len()).all(|k| counts[0][k] < counts[1][k] && counts[1][k] < counts[2][k]);
    let what = "active neurons of 100, seed by seed";
    outcome.push(what, "hyp < gradient < cube in all seeds", format!("{counts:?}"), ordered);
    let active = |k: usize| counts[k].iter().map(|count| *count as f64);
    outcome.largest("hyp: active neurons, most", active(0), 10.0);
    outcome.smallest("gradient: active neurons, fewest", active(1), 20.0);
    outcome.largest("gradient: active neurons, most", active(1), 90.0);
    outcome.smallest("cube: active neurons, fewest", active(2), 95.0);
    // where gradient descent's neurons point: at the directions of the judge's solution, as the ℓ2 problem asks
    let first = of(&students, "gradient");
    let best = best_networks(lab, first[0])?;
    let away = |w: [f64; 2]| {
        let angles =
            best[1].neurons.iter().map(|(b, _)| (w[0] * b[1] - w[1] * b[0]).atan2(w[0] * b[0] + w[1] * b[1]).abs());
        angles.fold(f64::INFINITY, f64::min)
    };
    let spread = |student: &&Student| {
        let features = student.features();
        let total: f64 = features.iter().map(|f| f[0].hypot(f[1])).sum();
        features.iter().map(|f| f[0].hypot(f[1]) * away(*f)).sum::<f64>() / total
    };
    let what = "gradient: mean angle between a neuron and the judge's nearest, weighted by size, largest over seeds";
    outcome.largest(what, first.iter().map(spread), 0.1);
    outcome.note(format!("The judge's ℓ2 solution has {} neurons.", best[1].neurons.len()));
    let figures = firsts(&students, &MAPS);
    outcome.sketches.extend(figures.iter().map(|student| plane_figure("C.fig2L", student, student.map())));
    for (k, norm) in NORMS.iter().enumerate() {
        let mut figure = Sketch::new(&format!("C.fig2R-{k}"), &format!("Margin per {norm} norm"), "1/L", "margin")
            .logarithmic(true, true);
        for student in &figures {
            let rows = student.run.rows(["log10", norm]).into_iter();
            let late = rows.filter(|[log, margin]| *log < 0.0 && *margin > 0.0);
            figure = figure.curve(student.map(), late.map(|[log, margin]| [10f64.powf(-log), margin]).collect());
        }
        outcome.sketch(figure);
    }
    Ok(outcome)
}

/// |a_j| w_j in the plane, per largest, with the directions of the teacher's neurons.
pub(super) fn plane_figure(id: &str, student: &Student, title: &str) -> Sketch {
    let features = student.features();
    let largest = features.iter().map(|f| f[0].hypot(f[1])).fold(0.0, f64::max);
    let points = features.iter().map(|f| [f[0] / largest, f[1] / largest, 1.0]).collect();
    let angles = (0..=120).map(|k| f64::from(k) * std::f64::consts::TAU / 120.0);
    let circle = angles.map(|angle| [angle.cos(), angle.sin()]).collect();
    let (name, title) = (format!("{id}-{}", student.map()), format!("{title}: |a| w of every neuron, per largest"));
    let mut sketch = Sketch::new(&name, &title, "|a| w₁", "|a| w₂")
        .window([-1.5, 1.5], [-1.1, 1.1])
        .reference("unit circle, teacher's neurons", circle);
    for w in &student.teacher {
        sketch = sketch.reference("", vec![[0.0; 2], *w]);
    }
    sketch.cloud(format!("{} active of {}", student.active(), features.len()), points, false)
}
