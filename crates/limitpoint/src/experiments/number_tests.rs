//! NaN and infinities in every number of every specification: refused where recipes are read and where parts are built,
//! except ∞ as the exponent of a norm, which is ℓ∞.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Value;

use super::complaint::{Spot, Text};
use super::node::Node;
use super::read::read;
use super::{RecipeSource, plan};
use crate::data::DataSpec;
use crate::engine::{Compute, cpu};
use crate::linalg::Matrix;
use crate::losses::LossSpec;
use crate::models::{Activation, ModelSpec};
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::optimisers::OptimiserSpec;
use crate::params::ParamLayout;
use crate::potentials::PotentialSpec;
use crate::robustness::AttackSpec;
use crate::schedules::ScheduleSpec;

const BAD: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

/// The value with one float after the other replaced, and the key of that float.
fn spoilt(value: &Value, bad: f64) -> Vec<(String, Value)> {
    fn count(value: &Value) -> usize {
        match value {
            Value::Float(_) => 1,
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Table(table) => table.values().map(count).sum(),
            _ => 0,
        }
    }
    fn replace(value: &mut Value, key: &str, left: &mut usize, bad: f64) -> Option<String> {
        match value {
            Value::Float(number) => {
                if *left == 0 {
                    *number = bad;
                    return Some(key.to_owned());
                }
                *left -= 1;
                None
            }
            Value::Array(items) => items.iter_mut().find_map(|item| replace(item, key, left, bad)),
            Value::Table(table) => table.iter_mut().find_map(|(key, inner)| replace(inner, key, left, bad)),
            _ => None,
        }
    }
    (0..count(value))
        .filter_map(|mut place| {
            let mut changed = value.clone();
            let key = replace(&mut changed, "", &mut place, bad)?;
            Some((key, changed))
        })
        .collect()
}

/// Spoils every float of every example; answers how many there were.
fn battery<T: Serialize + DeserializeOwned>(examples: &[T], build: impl Fn(&T) -> Result<(), String>) -> usize {
    let spot = Spot::new(&Arc::new(Text { name: "t".into(), content: String::new(), is_override: false }), 0..0);
    let mut tried = 0;
    for example in examples {
        let whole = Value::try_from(example).expect("specifications are TOML");
        for bad in BAD {
            for (key, value) in spoilt(&whole, bad) {
                tried += 1;
                let exponent = key == "p" && bad == f64::INFINITY;
                let read: Result<T, _> = read(&Node::plain(&value, &spot));
                assert!(read.is_err() || exponent, "{key} = {bad} was read: {value}");
                // the part itself refuses it too, whoever made the specification
                let part: T = value.clone().try_into().expect("the same specification");
                let built = build(&part);
                let norm = exponent && value.to_string().contains("lp");
                assert!(built.is_err() || norm, "{key} = {bad} was built: {value}");
            }
        }
    }
    tried
}

fn words<E: ToString>(error: E) -> String {
    error.to_string()
}

#[test]
fn no_part_of_a_recipe_takes_a_number_that_is_none() {
    let layout = ParamLayout::new([("w", 2, 2), ("a", 1, 2)]).unwrap();
    let inputs = Matrix::zeros(3, 4);
    let norms = battery(&NormSpec::examples(&layout), |norm| norm.build(&layout).map(drop).map_err(words));
    let potentials = battery(&PotentialSpec::examples(), |potential| potential.build(&layout).map(drop).map_err(words));
    let optimisers = battery(&OptimiserSpec::examples(), |spec| spec.build(&layout).map(drop).map_err(words));
    let schedules = battery(&ScheduleSpec::examples(), |spec| spec.build().map(drop).map_err(words));
    let losses = battery(&LossSpec::examples(), |spec| spec.build().map(drop).map_err(words));
    let build = |spec: &ModelSpec| cpu::bind(spec, &inputs, 1, Compute::default()).map(drop).map_err(words);
    let models = battery(&ModelSpec::examples(), build);
    battery(&Activation::examples(), |activation| build(&ModelSpec::network(&[2], *activation)));
    battery(&AttackSpec::examples(), |attack| attack.check().map_err(words));
    let data = battery(&DataSpec::examples(), |spec| spec.load(&Streams::new(0)).map(drop).map_err(words));
    for (what, tried) in [
        ("norms", norms),
        ("potentials", potentials),
        ("optimisers", optimisers),
        ("schedules", schedules),
        ("losses", losses),
        ("models", models),
        ("data", data),
    ] {
        assert!(tried > 0, "no example of {what} has a number");
    }
}

#[test]
fn no_key_of_a_recipe_takes_a_number_that_is_none() {
    let source = RecipeSource::find("linear").unwrap();
    for key in [
        "stop.log10_loss",
        "stop.log10_time",
        "stop.seconds",
        "stop.direction",
        "stop.certificate={norm=\"l2\",gap=0.1}\u{0}stop.certificate.gap",
        "tolerance.relative",
        "tolerance.absolute",
        "schedule.resolution",
        "data.margin",
        "optimisers.gradient=\"adam\"\u{0}optimisers.gradient.epsilon",
        "observe.residual_tolerances=[0.1,BAD]",
        "schedule=\"constant(rate=BAD)\"",
        "optimisers.gradient=\"heavy-ball(momentum=BAD)\"",
        "observe.norms=[\"lp:BAD\"]",
        "observe.norms=[\"max(*=BAD*l2)\"]",
        "observe.potentials=[\"hyperbolic:BAD\"]",
    ] {
        for bad in ["nan", "inf", "-inf", "+nan"] {
            let mut overrides: Vec<String> = key.split('\u{0}').map(|part| part.replace("BAD", bad)).collect();
            if let Some(last) = overrides.last_mut().filter(|last| !last.contains('=')) {
                *last += &format!("={bad}");
            }
            if overrides[0] == "observe.norms=[\"lp:inf\"]" {
                continue; // ℓ∞
            }
            let answer = plan(&source, &overrides);
            assert!(answer.is_err(), "{overrides:?} was taken");
        }
    }
    let text = plan(&source, &["stop.log10_loss=nan".to_owned()]).unwrap_err().to_string();
    assert!(text.contains("'log10_loss' should be a finite number, but is NaN"), "{text}");
}
