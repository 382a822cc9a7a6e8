//! Section J.2 and Figure 8: models with larger margins are harder to fool.

use super::training::{Courses, LEVELS, courses};
use crate::claims::arithmetic::smaller;
use crate::claims::{Claim, ClaimError, Lab, Outcome, robust_accuracy};
use crate::data::Dataset;
use crate::robustness::{AttackSpec, Profile, profile};

pub(super) const CLAIMS: [Claim; 1] = [Claim {
    id: "D.robust",
    covers: &["D.fig8"],
    statement: "Images are at least q/Lip away from a wrong answer, and attacks have to go further, on training and on test images, \
                the lower the loss that a model was trained to",
    experiments: &["d-digits"],
    try_out: robustness,
}];

/// Brackets of the models of Table 1 on some images.
fn profiles(lab: &Lab, courses: &Courses, data: &Dataset) -> Result<Vec<Profile>, ClaimError> {
    let (count, search_steps, steps) = lab.choose((100, 6, 300), (1000, 9, 1000));
    let data = data.first(count.min(data.len()))?;
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
    let course = courses.adapted();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let one = |(_, params): &(f64, Vec<f64>)| -> Result<Profile, ClaimError> {
        Ok(profile(&course.task.recipe.model, params, &data, &attacks, None, threads)?)
    };
    course.kept.iter().map(one).collect()
}

fn robustness(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, courses) = (Outcome::default(), courses(lab)?);
    let course = courses.adapted();
    outcome.push(
        "models at the losses of Table 1",
        LEVELS.len().to_string(),
        course.kept.len().to_string(),
        course.kept.len() == LEVELS.len(),
    );
    let labels: Vec<String> = course.kept.iter().map(|(level, _)| format!("10^{level:.0}")).collect();
    for (which, data) in [("training", Some(&course.split.train)), ("test", course.split.test.as_ref())] {
        let Some(data) = data else {
            outcome.push(format!("{which} images"), "some", "none", false);
            continue;
        };
        let found = profiles(lab, &courses, data)?;
        let tightest = found.iter().map(Profile::tightest).fold(f64::INFINITY, smaller);
        outcome.at_least(format!("{which} images: distance of an attack over certified radius, least"), tightest, 1.0);
        let least =
            found.iter().flat_map(|profile| &profile.examples).map(|bracket| bracket.nearest() - bracket.lipschitz);
        outcome.at_least(
            format!("{which} images: distance of an attack minus q/Lip, least"),
            least.fold(f64::INFINITY, smaller),
            0.0,
        );
        let medians: Vec<f64> = found
            .iter()
            .map(|profile| profile.quartiles(|bracket| bracket.nearest()).median.unwrap_or(f64::NAN))
            .collect();
        let certified: Vec<f64> = found
            .iter()
            .map(|profile| profile.quartiles(|bracket| bracket.certified).median.unwrap_or(f64::NAN))
            .collect();
        let words = |values: &[f64]| values.iter().map(|value| format!("{value:.4}")).collect::<Vec<_>>().join(", ");
        let ends = medians.first().zip(medians.last()).map_or(f64::NAN, |(first, last)| last / first);
        outcome.at_least(
            format!("{which} images: median distance of the last model over that of the first"),
            ends,
            1.05,
        );
        outcome.push(
            format!("{which} images: median distances at {}", labels.join(", ")),
            "rising",
            words(&medians),
            medians.windows(2).all(|pair| pair[1] > pair[0]),
        );
        outcome.note(format!("{which} images: certified medians {}", words(&certified)));
        let bands: Vec<(&str, &Profile)> = labels.iter().map(String::as_str).zip(&found).collect();
        outcome.sketch(robust_accuracy(
            &format!("robust-{which}"),
            &format!("Robust accuracy on {which} images"),
            &bands,
        ));
    }
    Ok(outcome)
}
