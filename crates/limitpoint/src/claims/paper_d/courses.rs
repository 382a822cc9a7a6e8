//! The runs behind the claims about training on digits.

use std::sync::Arc;

use rayon::prelude::*;

use super::epochs::{Course, Plan};
use crate::claims::{ClaimError, Lab, Scale};

/// log₁₀ of the mean losses of Table 1.
pub(super) const LEVELS: [f64; 5] = [-10.0, -15.0, -20.0, -120.0, -800.0];

/// Those, and the losses on the way from the first fit to them.
pub(super) const KEPT: [f64; 8] = [-2.0, -3.0, -5.0, LEVELS[0], LEVELS[1], LEVELS[2], LEVELS[3], LEVELS[4]];

/// The runs that the claims look at.
pub(super) struct Courses {
    /// Which images they saw.
    pub images: String,
    runs: Vec<Course>,
}

impl Courses {
    /// The loss-based rate; biases in the first layer.
    pub fn adapted(&self) -> &Course {
        &self.runs[0]
    }

    /// A constant rate.
    pub fn constant(&self) -> &Course {
        &self.runs[1]
    }

    /// The loss-based rate with biases everywhere.
    pub fn adapted_biased(&self) -> &Course {
        &self.runs[2]
    }

    /// A constant rate with biases everywhere.
    pub fn constant_biased(&self) -> &Course {
        &self.runs[3]
    }

    /// Shorter runs with the loss-based rate from other starts.
    pub fn others(&self) -> &[Course] {
        &self.runs[4..]
    }
}

/// What the four runs and their repetitions are made of.
struct Setting {
    experiment: &'static str,
    images: String,
    overrides: Vec<String>,
    /// Epochs with a constant rate, and its value.
    constant: (u64, f64),
    /// Most epochs with the loss-based rate, and the loss at which biased networks stop.
    adapted: (u64, f64),
    seeds: u64,
}

impl Setting {
    fn of(lab: &Lab) -> Self {
        let folder = (lab.scale() == Scale::Full).then(|| lab.mnist()).flatten();
        match (lab.scale(), folder) {
            (Scale::Full, Some(folder)) => Self {
                experiment: "d-mnist",
                images: "MNIST, 60,000 images".into(),
                overrides: vec![format!("data.mnist.dir=\"{}\"", folder.display())],
                constant: (300, 0.01),
                adapted: (10_000, -120.0),
                seeds: 2,
            },
            (Scale::Full, None) => Self {
                experiment: "d-digits",
                images: "1300 embedded 8×8 digits, since MNIST is not here".into(),
                overrides: vec!["data.digits.count=1300".into(), "model.network.widths=[128]".into()],
                constant: (4000, 0.1),
                adapted: (100_000, -120.0),
                seeds: 9,
            },
            (Scale::Quick, _) => Self {
                experiment: "d-digits",
                images: "200 embedded 8×8 digits".into(),
                overrides: Vec::new(),
                constant: (3000, 0.1),
                adapted: (100_000, -60.0),
                seeds: 3,
            },
        }
    }
}

/// The runs, made once.
pub(super) fn courses(lab: &Lab) -> Result<Arc<Courses>, ClaimError> {
    lab.once("ten digits", || {
        let setting = Setting::of(lab);
        let constant = format!("schedule=constant(rate={})", setting.constant.1);
        let plain = Plan { target: f64::NEG_INFINITY, epochs: setting.constant.0, keep: Vec::new() };
        let down_to = |target: f64| Plan { target, epochs: setting.adapted.0, keep: KEPT.to_vec() };
        let all = "model.network.biases=all".to_owned();
        let mut wanted: Vec<(String, Vec<String>, Plan)> = vec![
            ("loss-based rate".into(), Vec::new(), down_to(LEVELS[4])),
            ("constant rate".into(), vec![constant.clone()], plain.clone()),
            ("loss-based rate, biases everywhere".into(), vec![all.clone()], down_to(setting.adapted.1)),
            ("constant rate, biases everywhere".into(), vec![constant, all], plain),
        ];
        wanted.extend(
            (1..=setting.seeds).map(|seed| {
                (format!("loss-based rate, seed {seed}"), vec![format!("seeds={seed}")], down_to(LEVELS[2]))
            }),
        );
        let make = |(what, extra, plan): &(String, Vec<String>, Plan)| -> Result<Course, ClaimError> {
            let tasks = lab.tasks(setting.experiment, &[setting.overrides.as_slice(), extra].concat())?;
            Course::follow(lab, what, &tasks[0], &lab.data(&tasks[0])?, plan)
        };
        let runs = wanted.par_iter().map(make).collect::<Result<Vec<_>, _>>()?;
        // a run that broke down shows nothing
        if let Some((what, reason)) = runs.iter().find_map(|run| Some((&run.what, run.ended.as_ref()?))) {
            return Err(ClaimError::Ended { what: what.clone(), reason: reason.to_string() });
        }
        Ok(Courses { images: setting.images, runs })
    })
}
