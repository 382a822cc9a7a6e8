//! The runs behind the claims about training on digits.

use std::sync::Arc;

use rayon::prelude::*;

use super::epochs::{Course, Plan};
use crate::{ClaimError, Lab, Scale};

/// log₁₀ of the mean losses of Table 1.
pub(super) const LEVELS: [f64; 5] = [-10.0, -15.0, -20.0, -120.0, -800.0];

/// Those, and the losses on the way from the first fit to them.
pub(super) const KEPT: [f64; 8] = [-2.0, -3.0, -5.0, LEVELS[0], LEVELS[1], LEVELS[2], LEVELS[3], LEVELS[4]];

/// The runs that the claims look at.
pub(super) struct Courses {
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

/// Dense layers, or convolutions as in the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    Dense,
    Convolutional,
}

/// What the four runs and their repetitions are made of.
struct Setting {
    experiment: &'static str,
    overrides: Vec<String>,
    /// The override for biases everywhere.
    all: &'static str,
    /// Epochs with a constant rate, and its value.
    constant: (u64, f64),
    /// Most epochs with the loss-based rate.
    adapted: u64,
    /// The mean losses, as powers of ten, at which runs with it stop: the first, the biased one, the repetitions.
    targets: [f64; 3],
    /// Repetitions.
    seeds: u64,
}

impl Setting {
    /// MNIST where it is, from full scale on: a part of it; at the paper's scale all of it, its epochs and its ten runs.
    fn of(lab: &Lab, network: Network) -> Self {
        let folder = if lab.scale() == Scale::Quick { None } else { lab.mnist() };
        let overrides = folder.map(|folder| vec![format!("data.mnist.dir=\"{}\"", folder.display())]);
        match network {
            Network::Dense => Self::dense(lab, overrides),
            Network::Convolutional => Self::convolutional(lab, overrides),
        }
    }

    fn dense(lab: &Lab, mnist: Option<Vec<String>>) -> Self {
        let never = f64::NEG_INFINITY;
        if lab.scale() == Scale::Paper {
            lab.instead("a fully connected network with one hidden layer");
        }
        let all = "model.network.biases=all";
        match mnist {
            Some(overrides) if lab.scale() == Scale::Paper => Self {
                experiment: "d-mnist",
                overrides,
                all,
                constant: (10_000, 0.01),
                adapted: 10_000,
                targets: [never; 3],
                seeds: 9,
            },
            Some(overrides) => Self {
                experiment: "d-mnist",
                overrides: overrides.into_iter().chain(PART.map(String::from)).collect(),
                all,
                constant: (1000, 0.05),
                adapted: 20_000,
                targets: [LEVELS[4], -120.0, LEVELS[2]],
                seeds: 2,
            },
            None => Self {
                experiment: "d-digits",
                overrides: lab.scales(vec![], LARGER.to_vec(), LARGER.to_vec()).into_iter().map(String::from).collect(),
                all,
                constant: (lab.scales(3000, 4000, 10_000), 0.1),
                adapted: 100_000,
                targets: [LEVELS[4], lab.scales(-60.0, -120.0, LEVELS[4]), LEVELS[2]],
                seeds: lab.scales(3, 9, 9),
            },
        }
    }

    /// A thousand images of MNIST from full scale on, the embedded digits otherwise; the network of the paper with a
    /// quarter of its channels and a sixteenth of its hidden units.
    fn convolutional(lab: &Lab, mnist: Option<Vec<String>>) -> Self {
        if lab.scale() == Scale::Paper {
            lab.instead("a quarter of the channels, 64 hidden units and a part of the images");
        }
        let all = "model.image.biases=all";
        match mnist {
            Some(overrides) => Self {
                experiment: "d-mnist-convolutions",
                overrides,
                all,
                constant: (300, 0.05),
                adapted: 20_000,
                targets: [LEVELS[4], -60.0, LEVELS[2]],
                seeds: 2,
            },
            None => Self {
                experiment: "d-convolutions",
                overrides: lab.scales(FEW.to_vec(), vec![MORE], vec![MORE]).into_iter().map(String::from).collect(),
                all,
                constant: (lab.scales(3000, 4000, 10_000), 0.1),
                adapted: 100_000,
                targets: [LEVELS[4], -120.0, LEVELS[2]],
                seeds: lab.scales(2, 9, 9),
            },
        }
    }
}

/// Three thousand images of MNIST and 256 hidden units: a loss of 10^-800 within minutes, where all images and 1024 units take days.
const PART: [&str; 4] =
    ["data.mnist.count=3000", "data.mnist.test-count=2000", "data.mnist.balanced=true", "model.network.widths=[256]"];

/// All embedded digits but those for testing, and twice the hidden units.
const LARGER: [&str; 2] = [MORE, "model.network.widths=[128]"];

/// Six images of each class in one batch, with which a loss of 10^-800 is a matter of seconds.
const FEW: [&str; 2] = ["data.digits.count=60", "batching=full"];

/// All embedded digits but those for testing.
const MORE: &str = "data.digits.count=1300";

/// The runs, made once.
pub(super) fn courses(lab: &Lab, network: Network) -> Result<Arc<Courses>, ClaimError> {
    lab.once(if network == Network::Dense { "ten digits" } else { "ten digits, convolutions" }, || {
        let setting = Setting::of(lab, network);
        let constant = format!("schedule=constant(rate={})", setting.constant.1);
        let plain = Plan { target: f64::NEG_INFINITY, epochs: setting.constant.0, keep: Vec::new() };
        let down_to = |target: f64| Plan { target, epochs: setting.adapted, keep: KEPT.to_vec() };
        let [far, biased, repeated] = setting.targets.map(down_to);
        let all = setting.all.to_owned();
        let mut wanted: Vec<(String, Vec<String>, Plan)> = vec![
            ("loss-based rate".into(), Vec::new(), far),
            ("constant rate".into(), vec![constant.clone()], plain.clone()),
            ("loss-based rate, biases everywhere".into(), vec![all.clone()], biased),
            ("constant rate, biases everywhere".into(), vec![constant, all], plain),
        ];
        let again =
            |seed: u64| (format!("loss-based rate, seed {seed}"), vec![format!("seeds={seed}")], repeated.clone());
        wanted.extend((1..=setting.seeds).map(again));
        let make = |(what, extra, plan): &(String, Vec<String>, Plan)| -> Result<Course, ClaimError> {
            let task = lab.tasks(setting.experiment, &[setting.overrides.as_slice(), extra].concat())?.remove(0);
            Course::follow(lab, what, &task, &lab.data(&task)?, plan)
        };
        let runs = wanted.par_iter().map(make).collect::<Result<Vec<_>, _>>()?;
        // a run that broke down shows nothing
        if let Some((what, reason)) = runs.iter().find_map(|run| Some((&run.what, run.ended.as_ref()?))) {
            return Err(ClaimError::Ended { what: what.clone(), reason: reason.to_string() });
        }
        Ok(Courses { runs })
    })
}
