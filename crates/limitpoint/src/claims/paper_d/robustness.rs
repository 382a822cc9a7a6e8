//! Section J.2 and Figure 8: how far images are from a wrong answer, by the loss that a model was trained to.

use std::sync::Arc;

use super::courses::{KEPT, LEVELS, courses};
use crate::claims::arithmetic::{rising, smaller};
use crate::claims::outcome::decimals;
use crate::claims::{Claim, ClaimError, Lab, Outcome, robust_accuracy};
use crate::data::Dataset;
use crate::robustness::{AttackSpec, Profile, profile};

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "D.robust",
        covers: &["D.fig8"],
        statement: "Images are at least q/Lip away from a wrong answer; from the first fit to a loss of 10^-10 the training images that are \
                    easiest to fool get harder to fool, as the margin grows",
        experiments: &["d-digits"],
        try_out: robustness,
    },
    Claim {
        id: "D.robust.printed",
        covers: &[],
        statement: "From a loss of 10^-10 to one of 10^-800 training images get clearly harder to fool: by 5 % in the median, and by five \
                    points of robust accuracy where the first model has three quarters",
        experiments: &["d-digits"],
        try_out: printed_order,
    },
];

/// Brackets of all kept models on training and on test images.
struct Profiles {
    /// Mean losses, as powers of ten.
    labels: Vec<String>,
    parts: Vec<(&'static str, Vec<Profile>)>,
}

fn profiles(lab: &Lab) -> Result<Arc<Profiles>, ClaimError> {
    let courses = courses(lab)?;
    let course = courses.adapted();
    lab.once("robustness of ten digits", || {
        let (count, search_steps, steps) = lab.choose((200, 6, 300), (1000, 9, 1000));
        let attacks = [
            AttackSpec::CarliniWagner {
                search_steps,
                steps,
                rate: 0.01,
                confidence: 0.0,
                initial_constant: 1e-3,
                abort_early: true,
            },
            AttackSpec::deep_fool(),
        ];
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let all = |data: &Dataset| -> Result<Vec<Profile>, ClaimError> {
            let data = data.first(count.min(data.len()))?;
            let one = |(_, params): &(f64, Vec<f64>)| {
                Ok(profile(&course.task.recipe.model, params, &data, &attacks, None, threads)?)
            };
            course.kept.iter().map(one).collect()
        };
        let mut parts = vec![("training", all(&course.split.train)?)];
        if let Some(test) = &course.split.test {
            parts.push(("test", all(test)?));
        }
        Ok(Profiles { labels: course.kept.iter().map(|(level, _)| format!("10^{level:.0}")).collect(), parts })
    })
}

/// The distance that a share of the images does not reach, for every model.
fn quantiles(found: &[Profile], share: f64) -> Vec<f64> {
    let one = |profile: &Profile| {
        let mut distances: Vec<f64> = profile.examples.iter().map(|bracket| bracket.nearest()).collect();
        distances.sort_by(f64::total_cmp);
        distances.get((share * distances.len() as f64) as usize).copied().unwrap_or(f64::NAN)
    };
    found.iter().map(one).collect()
}

/// Models from the fit to the first of Table 1.
const EARLY: usize = KEPT.len() - LEVELS.len() + 1;

fn robustness(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, profiles) = (Outcome::default(), profiles(lab)?);
    let labels = &profiles.labels;
    outcome.push("models", KEPT.len().to_string(), labels.len().to_string(), labels.len() == KEPT.len());
    outcome.push("parts of the data", "2", profiles.parts.len().to_string(), profiles.parts.len() == 2);
    for (which, found) in &profiles.parts {
        let tightest = found.iter().map(Profile::tightest).fold(f64::INFINITY, smaller);
        outcome.at_least(format!("{which} images: distance of an attack over certified radius, least"), tightest, 1.0);
        let brackets = found.iter().flat_map(|profile| &profile.examples);
        let least = brackets.map(|bracket| bracket.nearest() - bracket.lipschitz).fold(f64::INFINITY, smaller);
        outcome.at_least(format!("{which} images: distance of an attack minus q/Lip, least"), least, 0.0);
        if *which == "training" {
            for (share, name) in [(0.0, "nearest image"), (0.05, "a twentieth of the images")] {
                let values = quantiles(&found[..found.len().min(EARLY)], share);
                let what = format!("distance of an attack for {name} at {}", labels[..values.len()].join(", "));
                outcome.push(what, "rising", decimals(&values), rising(&values));
            }
        }
        for (share, name) in [(0.0, "nearest"), (0.05, "5 %"), (0.25, "25 %"), (0.5, "median")] {
            outcome.note(format!(
                "{which} images, {name}: {} (losses {})",
                decimals(&quantiles(found, share)),
                labels.join(", ")
            ));
        }
        let certified: Vec<f64> = found
            .iter()
            .map(|profile| profile.quartiles(|bracket| bracket.certified).median.unwrap_or(f64::NAN))
            .collect();
        outcome.note(format!("{which} images, certified, median: {}", decimals(&certified)));
        let shown_levels = [KEPT[0], KEPT[2], LEVELS[0], LEVELS[4]].map(|level| format!("10^{level:.0}"));
        let shown: Vec<(&str, &Profile)> = labels
            .iter()
            .zip(found)
            .filter(|(label, _)| shown_levels.contains(label))
            .map(|(label, one)| (label.as_str(), one))
            .collect();
        let title = format!("Robust accuracy on {which} images");
        outcome.sketch(robust_accuracy(&format!("robust-{which}"), &title, &shown));
    }
    Ok(outcome)
}

fn printed_order(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, profiles) = (Outcome::default(), profiles(lab)?);
    let from = EARLY - 1;
    for (_, found) in profiles.parts.iter().filter(|(which, found)| *which == "training" && found.len() > from) {
        let (found, labels) = (&found[from..], profiles.labels[from..].join(", "));
        let (medians, radius) = (quantiles(found, 0.5), quantiles(found, 0.25)[0]);
        let ratio = medians.last().map_or(f64::NAN, |last| last / medians[0]);
        outcome.at_least("median distance of the last model over that of the first", ratio, 1.05);
        let shares: Vec<f64> = found.iter().map(|profile| 100.0 * profile.beyond(radius).1).collect();
        let gain = shares.last().map_or(f64::NAN, |last| last - shares[0]);
        outcome.at_least(format!("robust accuracy at {radius:.3}, last model minus first, in points"), gain, 5.0);
        outcome.note(format!(
            "robust accuracy at {radius:.3} for {labels}: {}; medians {}",
            decimals(&shares),
            decimals(&medians)
        ));
    }
    Ok(outcome)
}
