//! The description of an attack, as files and the command line speak it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::RobustnessError;
use crate::catalogue::CatalogueEntry;

/// A search for the nearest input with another answer.
///
/// Names and defaults of Carlini–Wagner and DeepFool are those of foolbox 3, so that results can be compared.
///
/// ```
/// use limitpoint::robustness::AttackSpec;
/// let attack: AttackSpec = "carlini-wagner(steps=1000)".parse()?;
/// assert!(matches!(attack, AttackSpec::CarliniWagner { steps: 1000, search_steps: 9, .. }));
/// assert_eq!(attack.to_string(), "carlini-wagner(steps=1000)");
/// # Ok::<(), limitpoint::robustness::RobustnessError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AttackSpec {
    /// Adam on distance² + c · margin in tanh coordinates, with a search for c.
    CarliniWagner {
        /// Values of c that are tried.
        #[serde(default = "nine")]
        search_steps: usize,
        /// The most steps of Adam for each c.
        #[serde(default = "ten_thousand")]
        steps: usize,
        /// Adam's step size.
        #[serde(default = "hundredth")]
        rate: f64,
        /// How negative the margin must become.
        #[serde(default)]
        confidence: f64,
        /// The first c.
        #[serde(default = "thousandth")]
        initial_constant: f64,
        /// Whether a c is left when a tenth of its steps brought no progress.
        #[serde(default = "yes")]
        abort_early: bool,
    },
    /// Steps to the nearest boundary of the linearised model.
    DeepFool {
        /// The most steps.
        #[serde(default = "fifty")]
        steps: usize,
        /// Classes that are tried: those with the highest scores.
        #[serde(default = "ten")]
        candidates: usize,
        /// How far past the boundary the perturbation is stretched.
        #[serde(default = "fiftieth")]
        overshoot: f64,
    },
    /// Projected gradient descent on the margin in balls, with a search for the smallest radius.
    Projected {
        /// Radii that are tried.
        #[serde(default = "sixteen")]
        search_steps: usize,
        /// Gradient steps in each ball.
        #[serde(default = "forty")]
        steps: usize,
        /// A step's length, as a share of the radius.
        #[serde(default = "tenth")]
        rate: f64,
    },
}

/// Halvings beyond which no search for a double goes, generously.
const MOST_SEARCHES: usize = 1000;
/// Steps of one descent.
const MOST_STEPS: usize = 10_000_000;

macro_rules! defaults {
    ($($name: ident: $type: ty = $value: expr;)*) => { $(fn $name() -> $type { $value })* };
}
defaults! {
    nine: usize = 9;
    ten: usize = 10;
    sixteen: usize = 16;
    forty: usize = 40;
    fifty: usize = 50;
    ten_thousand: usize = 10_000;
    tenth: f64 = 0.1;
    fiftieth: f64 = 0.02;
    hundredth: f64 = 0.01;
    thousandth: f64 = 1e-3;
    yes: bool = true;
}

impl AttackSpec {
    /// Carlini–Wagner with its defaults but for the steps of Adam.
    pub fn carlini_wagner(steps: usize) -> Self {
        Self::CarliniWagner {
            search_steps: nine(),
            steps,
            rate: hundredth(),
            confidence: 0.0,
            initial_constant: thousandth(),
            abort_early: true,
        }
    }

    /// DeepFool with its defaults.
    pub fn deep_fool() -> Self {
        Self::DeepFool { steps: fifty(), candidates: ten(), overshoot: fiftieth() }
    }

    /// Projected gradient descent with its defaults.
    pub fn projected() -> Self {
        Self::Projected { search_steps: sixteen(), steps: forty(), rate: tenth() }
    }

    /// One of each with its defaults.
    pub fn examples() -> Vec<Self> {
        vec![Self::carlini_wagner(ten_thousand()), Self::deep_fool(), Self::projected()]
    }

    /// The name used in files.
    pub fn key(&self) -> &'static str {
        match self {
            Self::CarliniWagner { .. } => "carlini-wagner",
            Self::DeepFool { .. } => "deep-fool",
            Self::Projected { .. } => "projected",
        }
    }

    /// Every attack with its formula.
    pub fn catalogue() -> Vec<CatalogueEntry> {
        let entry = |key, formula, reference| CatalogueEntry { key, formula, reference };
        vec![
            entry("carlini-wagner", "min over w of ‖x(w) − x₀‖² + c·max(q, 0), x(w) = tanh in the box", "D.fig8"),
            entry("deep-fool", "x ← x + (|f_k|/‖∇f_k‖²)∇f_k, k the nearest boundary", "Moosavi-Dezfooli et al. 2016"),
            entry("projected", "x ← Π(x − αε ∇q/‖∇q‖) in the ball of radius ε, smallest ε", "Madry et al. 2018"),
        ]
    }

    /// Refuses settings that cannot work.
    pub fn check(&self) -> Result<(), RobustnessError> {
        let refuse = |what, value, range| Err(RobustnessError::OutOfRange { attack: self.key(), what, value, range });
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let (searches, gradient_steps) = match *self {
            Self::CarliniWagner { search_steps, steps, .. } | Self::Projected { search_steps, steps, .. } => {
                (search_steps, steps)
            }
            Self::DeepFool { steps, .. } => (1, steps),
        };
        // more than any search or descent can make use of
        if searches > MOST_SEARCHES {
            return refuse("search_steps", searches as f64, "at most 1000");
        }
        if gradient_steps > MOST_STEPS {
            return refuse("steps", gradient_steps as f64, "at most 10,000,000");
        }
        match *self {
            Self::CarliniWagner { search_steps, steps, rate, confidence, initial_constant, .. } => {
                if search_steps == 0 || steps == 0 {
                    return refuse("the smaller of search_steps and steps", 0.0, "at least 1");
                }
                if !positive(rate) {
                    return refuse("rate", rate, "positive and finite");
                }
                if !(confidence >= 0.0 && confidence.is_finite()) {
                    return refuse("confidence", confidence, "zero or positive, and finite");
                }
                if !positive(initial_constant) {
                    return refuse("initial_constant", initial_constant, "positive and finite");
                }
            }
            Self::DeepFool { steps, candidates, overshoot } => {
                if steps == 0 || candidates < 2 {
                    return refuse("candidates (or steps)", candidates as f64, "at least 2 (and steps at least 1)");
                }
                if !(0.0..=1.0).contains(&overshoot) {
                    return refuse("overshoot", overshoot, "in [0, 1]");
                }
            }
            Self::Projected { search_steps, steps, rate } => {
                if search_steps == 0 || steps == 0 {
                    return refuse("the smaller of search_steps and steps", 0.0, "at least 1");
                }
                if !(rate > 0.0 && rate <= 2.0) {
                    return refuse("rate", rate, "in (0, 2]");
                }
            }
        }
        Ok(())
    }
}

/// `key`, or `key(setting=value, …)` with the settings that differ from the defaults.
impl fmt::Display for AttackSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = |spec: &Self| match serde_json::to_value(spec) {
            Ok(Value::Object(outer)) => outer.into_iter().next().and_then(|(_, inner)| inner.as_object().cloned()),
            _ => None,
        };
        let same = Self::examples().into_iter().find(|spec| spec.key() == self.key());
        let (own, usual) = (settings(self).unwrap_or_default(), same.as_ref().and_then(settings).unwrap_or_default());
        let different = own.iter().filter(|(key, value)| usual.get(*key) != Some(value));
        let different: Vec<String> = different.map(|(key, value)| format!("{key}={value}")).collect();
        match different.len() {
            0 => f.write_str(self.key()),
            _ => write!(f, "{}({})", self.key(), different.join(", ")),
        }
    }
}

impl FromStr for AttackSpec {
    type Err = RobustnessError;

    fn from_str(text: &str) -> Result<Self, RobustnessError> {
        let refuse = |why: String| RobustnessError::Unreadable { text: text.to_owned(), why };
        let (key, settings) = match text.trim().split_once('(') {
            None => (text.trim(), ""),
            Some((key, rest)) => match rest.strip_suffix(')') {
                Some(settings) => (key.trim(), settings),
                None => return Err(refuse("it lacks a closing bracket".to_owned())),
            },
        };
        let mut map = Map::new();
        for setting in settings.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            let (name, value) =
                setting.split_once('=').ok_or_else(|| refuse(format!("'{setting}' is no setting=value")))?;
            let value = serde_json::from_str(value.trim()).map_err(|error| refuse(format!("'{setting}': {error}")))?;
            map.insert(name.trim().to_owned(), value);
        }
        let whole = Value::Object(Map::from_iter([(key.to_owned(), Value::Object(map))]));
        let spec: Self = serde_json::from_value(whole).map_err(|error| refuse(error.to_string()))?;
        spec.check()?;
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_back_and_wrong_ones_are_complained_about() {
        for spec in AttackSpec::examples() {
            assert_eq!(spec.to_string(), spec.key());
            assert_eq!(spec.key().parse::<AttackSpec>().unwrap(), spec);
            assert!(AttackSpec::catalogue().iter().any(|entry| entry.key == spec.key()));
        }
        let text = "carlini-wagner(abort_early=false, rate=0.5)";
        assert_eq!(text.parse::<AttackSpec>().unwrap().to_string(), text);
        for (text, part) in [
            ("boundary", "unknown variant"),
            ("projected(radius=1)", "unknown field"),
            ("projected(steps=1", "closing bracket"),
            ("projected(steps)", "no setting=value"),
            ("projected(rate=3)", "(0, 2]"),
            ("carlini-wagner(steps=0)", "at least 1"),
            ("carlini-wagner(rate=-1)", "positive"),
            ("deep-fool(candidates=1)", "at least 2"),
        ] {
            let error = text.parse::<AttackSpec>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
