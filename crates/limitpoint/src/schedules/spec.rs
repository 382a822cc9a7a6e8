//! The description of a step-size rule, as files and command lines write it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::admissible::Admissible;
use super::constant::Constant;
use super::flow_resolved::FlowResolved;
use super::linear_bound::LinearBound;
use super::loss_based::LossBased;
use super::polynomial::Polynomial;
use super::rescaled::Rescaled;
use super::{Schedule, ScheduleError};
use crate::catalogue::CatalogueEntry;
use crate::losses::DescentScale;

/// Which step-size rule.
///
/// | setting | default | meaning | range |
/// |---|---|---|---|
/// | `rate` | 0.1 as text, required in files | step size η | > 0 |
/// | `factor` | 0.1 | multiplies η/L once the data are fitted | > 0 |
/// | `threshold` | 0.1 | loss below which the step is rescaled | > 0 |
/// | `power` | 0.5 as text, required in files | exponent of the decay | ≥ 0 |
/// | `c` | 1 | constant of the descent bound | 0 < c ≤ √2 |
/// | `feature_bound` | none | B = max ‖x‖⋆, filled in from the data | > 0 |
/// | `cap` | none | largest step | > 0 |
/// | `decay` | 0 | c_t = c (t + 1)^−decay | 0 to 1 |
/// | `c` | 1 | multiple of the admissible step; theory covers c ≤ 1 | > 0 |
/// | `degree` | none | degree d of the model, filled in | > 0 |
/// | `log_start` | none | ln L(t₀) of the summed loss, filled in | < 0 |
/// | `log_curvature` | none | ln C of ‖∇²L‖ ≤ 2 C κ(L), filled in | finite |
/// | `initial` | 0.1 | first α | > 0 |
/// | `grow` | 2^(1/5), 1.5 | factor of α after success | > 1 |
/// | `shrink` | 2^(1/10) | divisor of α after a failed epoch (loss-based) | > 1 |
/// | `shrink` | 0.5 | factor of α after a step that is not a number (flow-resolved) | 0 < shrink < 1 |
/// | `resolution` | 0.05 | largest change of a margin in a step | > 0 |
/// | `memory` | none | largest fall of ln L in a step, as a share of what the optimiser forgets in one | 0 to 1 |
/// | `fall` | none | largest fall of ln L in a step; filled in where `memory` is set | > 0 |
///
/// ```
/// use limitpoint::schedules::ScheduleSpec;
/// let spec: ScheduleSpec = "polynomial(rate=0.2, power=1)".parse()?;
/// assert_eq!(spec, ScheduleSpec::Polynomial { rate: 0.2, power: 1.0 });
/// assert_eq!(spec.to_string(), "polynomial(rate=0.2, power=1)");
/// # Ok::<(), limitpoint::schedules::ScheduleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ScheduleSpec {
    /// η = rate.
    Constant {
        /// η.
        rate: f64,
    },
    /// η = rate, then factor · rate/L once L < threshold and all examples are correct.
    Rescaled {
        /// η before the switch.
        rate: f64,
        /// Multiplies rate/L after the switch.
        #[serde(default = "tenth")]
        factor: f64,
        /// Loss of the switch.
        #[serde(default = "tenth")]
        threshold: f64,
    },
    /// η = α/L, α adapted after every epoch.
    LossBased {
        /// First α.
        #[serde(default = "tenth")]
        initial: f64,
        /// Factor of α after an epoch that did not raise the loss.
        #[serde(default = "loss_based_grow")]
        grow: f64,
        /// Divisor of α after an epoch that did.
        #[serde(default = "loss_based_shrink")]
        shrink: f64,
    },
    /// η = min{cap, c/(B² L)}.
    LinearBound {
        /// c.
        #[serde(default = "one")]
        c: f64,
        /// B, the largest dual norm of a feature vector; filled in from the data where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feature_bound: Option<f64>,
        /// Largest step; none by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cap: Option<f64>,
        /// Exponent with which c decays.
        #[serde(default)]
        decay: f64,
    },
    /// η = rate · (t + 1)^−power.
    Polynomial {
        /// The first step.
        rate: f64,
        /// Exponent of the decay.
        power: f64,
    },
    /// η = c · μ(L)/(C κ(L)).
    Admissible {
        /// c.
        #[serde(default = "one")]
        c: f64,
        /// The degree of the model; filled in where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        degree: Option<f64>,
        /// ln of the loss of the start; filled in where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log_start: Option<f64>,
        /// ln of the constant of the curvature; filled in where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log_curvature: Option<f64>,
    },
    /// η = α/L, α adapted so that maxᵢ |Δqᵢ| ≤ resolution.
    FlowResolved {
        /// Largest change of a margin in a step.
        #[serde(default = "twentieth")]
        resolution: f64,
        /// First α.
        #[serde(default = "tenth")]
        initial: f64,
        /// Factor of α after a step of less than half the resolution.
        #[serde(default = "flow_grow")]
        grow: f64,
        /// Factor of α after a step that is not a number.
        #[serde(default = "half")]
        shrink: f64,
        /// Largest fall of ln L in a step, as a share of what the optimiser's memory of gradients forgets in one (see
        /// `OptimiserSpec::forgets`); 0.5 lets Adam follow its own geometry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<f64>,
        /// Largest fall of ln L in a step; filled in from the optimiser where `memory` is set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fall: Option<f64>,
    },
}

fn tenth() -> f64 {
    0.1
}

fn twentieth() -> f64 {
    0.05
}

fn half() -> f64 {
    0.5
}

fn one() -> f64 {
    1.0
}

fn loss_based_grow() -> f64 {
    2f64.powf(0.2)
}

fn loss_based_shrink() -> f64 {
    2f64.powf(0.1)
}

fn flow_grow() -> f64 {
    1.5
}

impl ScheduleSpec {
    /// Checks the settings and makes the rule.
    pub fn build(&self) -> Result<Box<dyn Schedule>, ScheduleError> {
        let rule = self.key();
        let check = |name, value: f64, allowed: bool, range| {
            if allowed && value.is_finite() {
                Ok(value)
            } else {
                Err(ScheduleError::Setting { rule, name, range, value })
            }
        };
        let positive = |name, value: f64| check(name, value, value > 0.0, "a positive finite number");
        let above_one = |name, value: f64| check(name, value, value > 1.0, "a finite number above 1");
        Ok(match *self {
            Self::Constant { rate } => Box::new(Constant { log_rate: positive("rate", rate)?.ln() }),
            Self::Rescaled { rate, factor, threshold } => Box::new(Rescaled {
                log_rate: positive("rate", rate)?.ln(),
                log_factor: positive("factor", factor)?.ln(),
                log_threshold: positive("threshold", threshold)?.ln(),
            }),
            Self::LossBased { initial, grow, shrink } => Box::new(LossBased::new(
                positive("initial", initial)?,
                above_one("grow", grow)?,
                above_one("shrink", shrink)?,
            )),
            Self::LinearBound { c, feature_bound, cap, decay } => {
                let in_range = c > 0.0 && c <= std::f64::consts::SQRT_2;
                let c = check("c", c, in_range, "above 0 and at most √2, where the loss stops being sure to fall")?;
                let decay = check("decay", decay, (0.0..=1.0).contains(&decay), "between 0 and 1, so that Σ c_t = ∞")?;
                let log_cap = cap.map_or(Ok(f64::INFINITY), |cap| positive("cap", cap).map(f64::ln))?;
                let bound = positive("feature_bound", feature_bound.ok_or(ScheduleError::FeatureBound)?)?;
                Box::new(LinearBound { log_numerator: c.ln() - 2.0 * bound.ln(), decay, log_cap })
            }
            Self::Polynomial { rate, power } => Box::new(Polynomial {
                log_rate: positive("rate", rate)?.ln(),
                power: check("power", power, power >= 0.0, "at least 0")?,
            }),
            Self::Admissible { c, degree, log_start, log_curvature } => {
                let (Some(degree), Some(log_start), Some(log_curvature)) = (degree, log_start, log_curvature) else {
                    return Err(ScheduleError::Curvature);
                };
                let degree = positive("degree", degree)?;
                let below_one = "a negative finite number: L(t₀) must be below 1";
                let log_start = check("log_start", log_start, log_start < 0.0, below_one)?;
                let curvature = check("log_curvature", log_curvature, true, "a finite number")?;
                let scale = DescentScale::new(degree, log_start).map_err(|_| ScheduleError::Curvature)?;
                Box::new(Admissible { scale, log_curvature: curvature - positive("c", c)?.ln() })
            }
            Self::FlowResolved { resolution, initial, grow, shrink, memory, fall } => {
                if let Some(memory) = memory {
                    let in_range = memory > 0.0 && memory < 1.0;
                    check("memory", memory, in_range, "between 0 and 1, both excluded; 0.5 serves well")?;
                }
                Box::new(FlowResolved::new(
                    positive("resolution", resolution)?,
                    fall.map_or(Ok(f64::INFINITY), |fall| positive("fall", fall))?,
                    positive("initial", initial)?,
                    above_one("grow", grow)?,
                    check("shrink", shrink, shrink > 0.0 && shrink < 1.0, "between 0 and 1, both excluded")?,
                ))
            }
        })
    }

    /// Steps that move no margin by more than `resolution`, with the defaults of everything else.
    pub fn flow_resolved(resolution: f64) -> Self {
        let (initial, grow, shrink) = (tenth(), flow_grow(), half());
        Self::FlowResolved { resolution, initial, grow, shrink, memory: None, fall: None }
    }

    /// The same rule for an optimiser that can follow gradients whose logarithm falls by up to `forgets` a step: where
    /// `memory` asks for it, the fall of ln L is bounded by that share of it. Other rules, and optimisers that remember
    /// nothing or forget nothing, are left as they are.
    ///
    /// ```
    /// use limitpoint::schedules::ScheduleSpec;
    /// let spec: ScheduleSpec = "flow-resolved(memory=0.5)".parse()?;
    /// assert_eq!(spec.clone().with_forgetting(0.01).largest_fall(), Some(0.005));
    /// assert_eq!(spec.with_forgetting(f64::INFINITY).largest_fall(), Some(0.05));
    /// # Ok::<(), limitpoint::schedules::ScheduleError>(())
    /// ```
    pub fn with_forgetting(mut self, forgets: f64) -> Self {
        if let Self::FlowResolved { memory: Some(share), fall, .. } = &mut self
            && forgets > 0.0
            && forgets.is_finite()
        {
            fall.get_or_insert(*share * forgets);
        }
        self
    }

    /// The most by which ln L can fall in a step of an optimiser whose steps do not shrink with the gradient: what a
    /// rule promises, ∞ where η grows like 1/L, nothing where the rule does not say.
    pub fn largest_fall(&self) -> Option<f64> {
        match *self {
            // ln L moves by no more than the largest margin does
            Self::FlowResolved { resolution, fall, .. } => Some(fall.map_or(resolution, |fall| fall.min(resolution))),
            Self::Rescaled { .. } | Self::LossBased { .. } | Self::LinearBound { .. } | Self::Admissible { .. } => {
                Some(f64::INFINITY)
            }
            Self::Constant { .. } | Self::Polynomial { .. } => None,
        }
    }

    /// Whether [`ScheduleSpec::build`] waits for [`ScheduleSpec::with_feature_bound`].
    pub fn needs_feature_bound(&self) -> bool {
        matches!(self, Self::LinearBound { feature_bound: None, .. })
    }

    /// The same rule with B filled in where it was left open; other rules and a given B stay as they are.
    ///
    /// ```
    /// use limitpoint::schedules::ScheduleSpec;
    /// let spec: ScheduleSpec = "linear-bound".parse()?;
    /// assert!(spec.build().is_err());
    /// assert!(spec.with_feature_bound(2.0).build().is_ok());
    /// # Ok::<(), limitpoint::schedules::ScheduleError>(())
    /// ```
    pub fn with_feature_bound(mut self, bound: f64) -> Self {
        if let Self::LinearBound { feature_bound, .. } = &mut self {
            feature_bound.get_or_insert(bound);
        }
        self
    }

    /// Whether [`ScheduleSpec::build`] waits for [`ScheduleSpec::with_curvature`].
    pub fn needs_curvature(&self) -> bool {
        let Self::Admissible { degree, log_start, log_curvature, .. } = self else { return false };
        degree.is_none() || log_start.is_none() || log_curvature.is_none()
    }

    /// The same rule with the constants of the curvature filled in where they were left open.
    ///
    /// ```
    /// use limitpoint::schedules::ScheduleSpec;
    /// let spec: ScheduleSpec = "admissible(c=2)".parse()?;
    /// assert!(spec.needs_curvature() && spec.build().is_err());
    /// let text = spec.with_curvature(3.0, -1.0, 0.5).to_string();
    /// assert_eq!(text, "admissible(c=2, degree=3, log_start=-1, log_curvature=0.5)");
    /// # Ok::<(), limitpoint::schedules::ScheduleError>(())
    /// ```
    pub fn with_curvature(mut self, d: f64, log_l: f64, log_c: f64) -> Self {
        if let Self::Admissible { degree, log_start, log_curvature, .. } = &mut self {
            degree.get_or_insert(d);
            log_start.get_or_insert(log_l);
            log_curvature.get_or_insert(log_c);
        }
        self
    }

    /// The name used in files and on the command line, without settings.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Constant { .. } => "constant",
            Self::Rescaled { .. } => "rescaled",
            Self::LossBased { .. } => "loss-based",
            Self::LinearBound { .. } => "linear-bound",
            Self::Polynomial { .. } => "polynomial",
            Self::Admissible { .. } => "admissible",
            Self::FlowResolved { .. } => "flow-resolved",
        }
    }

    /// One instance of every rule, with default settings, in the order of the catalogue.
    pub fn examples() -> Vec<Self> {
        vec![
            Self::Constant { rate: 0.1 },
            Self::Rescaled { rate: 0.1, factor: tenth(), threshold: tenth() },
            Self::LossBased { initial: tenth(), grow: loss_based_grow(), shrink: loss_based_shrink() },
            Self::LinearBound { c: one(), feature_bound: None, cap: None, decay: 0.0 },
            Self::Polynomial { rate: 0.1, power: 0.5 },
            Self::Admissible { c: one(), degree: None, log_start: None, log_curvature: None },
            Self::flow_resolved(twentieth()),
        ]
    }

    /// Every rule with its formula and reference.
    pub fn catalogue() -> Vec<CatalogueEntry> {
        let entry = |key, formula, reference| CatalogueEntry { key, formula, reference };
        vec![
            entry("constant", "η = rate", "D.fig1a"),
            entry("rescaled", "η = rate; factor · rate/L once L < threshold and all are correct", "C.exp2L"),
            entry("loss-based", "η = α/L; α ← grow · α if the epoch's loss fell, else α/shrink and redo", "D.algK1"),
            entry("linear-bound", "η = min{cap, c (t+1)^−decay/(B² L)}, B = max ‖x‖⋆", "B.thm5, B.lem12"),
            entry("polynomial", "η = rate · (t+1)^−power", "B.gd3.1"),
            entry("admissible", "η = c μ(L)/(C κ(L)), of order 1/(L (ln 1/L)^(3−2/d))", "D.s5"),
            entry(
                "flow-resolved",
                "η = α/L; α kept so that max |Δqᵢ| ≤ resolution; memory=0.5 also keeps Adam from outrunning its β₂",
                "section 0, D.s5",
            ),
        ]
    }
}
