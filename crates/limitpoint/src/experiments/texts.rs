//! Specifications by the texts that the command line writes for them.

use std::str::FromStr;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::complaint::{RecipeError, Text};
use super::read::read;
use super::shape::{Form, Shape};
use super::shorthand::from_words;
use crate::data::DataSpec;
use crate::driver::Batching;
use crate::engine::Precision;
use crate::flows::FlowSpec;
use crate::losses::{LossError, LossSpec};
use crate::models::{Initialiser, ModelSpec};
use crate::norms::{NormError, NormSpec};
use crate::objective::Reduction;
use crate::optimisers::OptimiserSpec;
use crate::potentials::{PotentialError, PotentialSpec};
use crate::schedules::{ScheduleError, ScheduleSpec};
use crate::training::TrainingError;

crate::error::pass_through!(TrainingError: RecipeError);

/// What a recipe has under this key, or one of several under its plural.
fn shape(key: &str) -> Shape {
    let several = || match Shape::recipe().field(&format!("{key}s"))?.form() {
        Form::Map(entries) => Some(entries),
        _ => None,
    };
    Shape::recipe().field(key).or_else(several).unwrap_or(Shape::recipe())
}

/// A specification from what an override of this key could write after its `=`.
fn spec<T: DeserializeOwned>(key: &str, content: &str) -> Result<T, RecipeError> {
    let text = Arc::new(Text { name: key.to_owned(), content: content.to_owned(), is_override: true });
    read(&from_words(shape(key), &text, 0..content.len(), 0)?)
}

/// Types whose texts are those of overrides: a word, or `word(setting=value, …)`, or TOML.
macro_rules! texts {
    ($($spec: ty: $key: literal),*) => {$(
        /// Reads what the command line writes: a word, `word(setting=value, …)`, or TOML.
        impl FromStr for $spec {
            type Err = RecipeError;

            fn from_str(text: &str) -> Result<Self, RecipeError> {
                spec($key, text)
            }
        }
        parts!($spec: RecipeError);
    )*};
}

/// A text where a specification is asked for.
macro_rules! parts {
    ($($spec: ty: $error: ty),*) => {$(
        impl TryFrom<&str> for $spec {
            type Error = $error;

            fn try_from(text: &str) -> Result<Self, $error> {
                text.parse()
            }
        }
    )*};
}

texts!(
    OptimiserSpec: "optimiser", FlowSpec: "flow", ModelSpec: "model", Initialiser: "initialiser", DataSpec: "data",
    Batching: "batching", Reduction: "reduction", Precision: "precision"
);
// these have texts of their own
parts!(NormSpec: NormError, PotentialSpec: PotentialError, LossSpec: LossError, ScheduleSpec: ScheduleError);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Activation;

    #[test]
    fn texts_of_the_command_line_are_specifications() {
        assert_eq!("sign".parse(), Ok(OptimiserSpec::steepest(NormSpec::Linf)));
        assert_eq!("mirror(potential=entropy)".parse(), Ok(OptimiserSpec::mirror(PotentialSpec::Entropy)));
        let nested = "switch(first=adam(beta2=0.9), second=mirror(potential=hyperbolic:0.1), when=steps(count=5))";
        assert!(matches!(nested.parse::<OptimiserSpec>().unwrap(), OptimiserSpec::Switch { .. }));
        assert_eq!("steepest(norm=l2)".parse(), Ok(FlowSpec::Steepest { norm: NormSpec::L2 }));
        assert_eq!("linear".parse(), Ok(ModelSpec::Linear));
        assert_eq!("network(widths=[3, 4], activation=relu)".parse(), Ok(ModelSpec::relu(&[3, 4])));
        assert_eq!("relu 3 4".parse(), Ok(ModelSpec::relu(&[3, 4])));
        let layers = "conv 8 3x3, pool 2, dense";
        assert_eq!(layers.parse(), Ok(ModelSpec::image(layers.parse().unwrap())));
        let problem = "conv 8 3x3 sideways, dense".parse::<ModelSpec>().unwrap_err().to_string();
        assert!(problem.contains("sideways"), "{problem}");
        assert_eq!("quadratic 7".parse(), Ok(ModelSpec::network(&[7], Activation::Quadratic)));
        assert!("relu 3 x".parse::<ModelSpec>().is_err() && "sigmund 3".parse::<ModelSpec>().is_err());
        assert_eq!("he-normal(scale=0.5)".parse(), Ok(Initialiser::HeNormal { scale: 0.5 }));
        assert_eq!("mini(size=7)".parse(), Ok(Batching::Mini { size: 7 }));
        assert!(matches!("digits(classes=[3, 8])".parse::<DataSpec>(), Ok(DataSpec::Digits(_))));
        assert_eq!(("mean".parse(), "f32".parse()), (Ok(Reduction::Mean), Ok(Precision::F32)));
    }

    #[test]
    fn refusals_show_the_text_and_what_is_allowed() {
        let refusal = |text: &str| text.parse::<OptimiserSpec>().unwrap_err().to_string();
        let unknown = refusal("sgin");
        assert!(unknown.starts_with("optimiser 'sgin'") && unknown.contains("did you mean 'sign'"), "{unknown}");
        assert!(refusal("adam(beta3=1)").contains("beta3"));
        assert!(refusal("mirror(potential=entropi)").contains("entropi"));
        assert!(refusal("mirror").contains("potential"));
        assert!(refusal("").starts_with("optimiser"));
    }

    #[test]
    fn every_example_of_an_optimiser_reads_back_from_its_table() {
        for spec in OptimiserSpec::examples() {
            let table = toml::Value::try_from(&spec).unwrap().to_string();
            assert_eq!(table.parse::<OptimiserSpec>().as_ref(), Ok(&spec), "{table}");
        }
    }
}
