//! Table 2 in random draws of data and teacher, none of them chosen.

use super::features::TABLE_2;
use super::students::{MAPS, NORMS, Student, class, of};
use crate::{ClaimError, Lab, Outcome, Sketch};

/// The margins ℓ1, ℓ2, ℓ3 of one student of every map in each of many draws. Draws with small margins take more steps to the
/// printed loss than can be waited for; they are kept, since to leave them out would choose the others.
fn draws(lab: &Lab, outcome: &mut Outcome) -> Result<Vec<[[f64; 3]; 3]>, ClaimError> {
    let count = lab.scales(8, 200, 200);
    let steps = lab.scales(100_000, 100_000, 400_000);
    let overrides = [format!("data.seed=0..{}", count - 1), "seeds=42".to_owned(), format!("stop.steps={steps}")];
    let all = class(lab, "students of random draws", "c-circle", &overrides)?;
    // in the order of the draws
    let [hyp, gradient, cube] = MAPS.map(|map| of(&all, map));
    let mut found = Vec::new();
    for (seed, ((hyp, gradient), cube)) in hyp.into_iter().zip(gradient).zip(cube).enumerate() {
        let draw = [hyp, gradient, cube];
        if draw.iter().all(|student: &&Student| student.run.last("log10") < 0.0) {
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

/// In how many random draws each map wins the margin of its own horizon.
pub(super) fn winners(lab: &Lab, outcome: &mut Outcome) -> Result<(), ClaimError> {
    let draws = draws(lab, outcome)?;
    for (k, norm) in NORMS.iter().enumerate() {
        let wins = |draw: &[[f64; 3]; 3]| (0..3).all(|other| other == k || draw[k][k] > draw[other][k]);
        let what = format!("random draws: share in which {} has the largest {norm} margin", MAPS[k]);
        outcome.share(what, draws.iter().map(wins), 0.9);
    }
    Ok(())
}

/// Which quantile of the random draws each of the nine printed numbers is.
pub(super) fn typical(lab: &Lab) -> Result<Outcome, ClaimError> {
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
