//! The recipes of table 10 as numbers for one network.

use serde::Serialize;

use super::{AdviceError, MirrorFamily, Reach, TrainedLayers};

/// ln t beyond which a margin counts as out of reach. Flows and resolved steps can follow a run to such times, but no
/// schedule of fixed steps comes near them.
const OUT_OF_REACH: f64 = 1e4;

/// What a recipe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The first update is as large as gradient descent's.
    MirrorMuP,
    /// The horizon shows in time.
    MarginReachable,
}

/// What is known of the margin q_min/φ^L of the limit. The larger it is, the later the weights have a given size, so
/// that a bound for it bounds the time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitMargin {
    /// Nothing; times are those of Lemma 4.10.
    Unknown,
    /// At most this, for instance by [`super::margin_bound`].
    AtMost(f64),
    /// This.
    Known(f64),
}

impl LimitMargin {
    /// The number, if there is one.
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Unknown => None,
            Self::AtMost(margin) | Self::Known(margin) => Some(margin),
        }
    }
}

/// Advice for one network and one family.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MirrorAdvice {
    /// The family.
    pub family: MirrorFamily,
    /// n.
    pub parameters: usize,
    /// L.
    pub degree: f64,
    /// The relative gap between gauge and horizon that is asked for.
    pub gap: f64,
    /// The margin times are computed with.
    pub margin: LimitMargin,
    /// One entry per recipe.
    pub recipes: Vec<RecipeAdvice>,
}

/// One pair (η, λ).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecipeAdvice {
    /// What it is for.
    pub purpose: Purpose,
    /// η as table 10 scales it; nothing where the table has none.
    pub eta_formula: Option<String>,
    /// λ as a formula.
    pub lambda_formula: String,
    /// Numbers for every layer.
    pub layers: Vec<LayerAdvice>,
    /// When the margin shows.
    pub reach: Reach,
    /// Whether it does before ln t = 10⁴; nothing where only a bound for the margin is known and it does not settle
    /// that.
    pub reachable: Option<bool>,
    /// What is wrong with it, if something is.
    pub warning: Option<String>,
    /// The optimiser, as recipes and overrides write it: a potential and a step factor for every layer.
    pub optimiser: String,
}

/// η and λ of one layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerAdvice {
    /// Name of the block.
    pub layer: String,
    /// Inputs of one neuron.
    pub fan_in: usize,
    /// σ.
    pub deviation: f64,
    /// λ; nothing for gradient descent.
    pub lambda: Option<f64>,
    /// E[1/r″(θ₀)].
    pub mean_inverse_curvature: f64,
    /// η with η E[1/r″(θ₀)] = 1, in units of a step size that suits gradient descent.
    pub eta: f64,
    /// Table 10's η without its constant, where it has one.
    pub table_eta: Option<f64>,
    /// The first update with that η relative to gradient descent's with η = 1.
    pub table_update: Option<f64>,
}

/// η(σ).
type Eta = Box<dyn Fn(f64) -> f64>;
/// λ(σ, n).
type Lambda = Box<dyn Fn(f64, f64) -> f64>;

/// A recipe before it has numbers: formulas, λ(σ, n), η(σ).
struct Pattern {
    purpose: Purpose,
    eta: Option<(String, Eta)>,
    lambda: (String, Lambda),
}

fn patterns(family: MirrorFamily) -> Vec<Pattern> {
    use Purpose::{MarginReachable, MirrorMuP};
    fn pattern(purpose: Purpose, eta: Option<(&str, Eta)>, lambda: (String, Lambda)) -> Pattern {
        Pattern { purpose, eta: eta.map(|(text, of)| (text.to_owned(), of)), lambda }
    }
    match family {
        MirrorFamily::Euclidean => {
            let one = || Some(("1", Box::new(|_| 1.0) as Eta));
            let none = || ("-".to_owned(), Box::new(|_, _| 0.0) as Lambda);
            vec![pattern(MirrorMuP, one(), none()), pattern(MarginReachable, one(), none())]
        }
        MirrorFamily::Hyperbolic => {
            let inverse = || Some(("1/σ", Box::new(|sigma: f64| 1.0 / sigma) as Eta));
            vec![
                pattern(MirrorMuP, Some(("1", Box::new(|_| 1.0))), ("1".into(), Box::new(|_, _| 1.0))),
                pattern(MirrorMuP, inverse(), ("σ²".into(), Box::new(|sigma, _| sigma * sigma))),
                pattern(MarginReachable, inverse(), ("σ⁴".into(), Box::new(|sigma, _| sigma.powi(4)))),
                pattern(MarginReachable, None, ("1/n²".into(), Box::new(|_, n| 1.0 / (n * n)))),
            ]
        }
        MirrorFamily::Smoothed { p } => {
            let power = match p {
                3.0 => "σ".to_owned(),
                4.0 => "σ²".to_owned(),
                _ => format!("σ^{}", p - 2.0),
            };
            vec![
                pattern(MirrorMuP, Some(("1", Box::new(|_| 1.0))), ("1".into(), Box::new(|_, _| 1.0))),
                pattern(
                    MirrorMuP,
                    Some((&power, Box::new(move |sigma| sigma.powf(p - 2.0)))),
                    (power.clone(), Box::new(move |sigma, _| sigma.powf(p - 2.0))),
                ),
                pattern(
                    MarginReachable,
                    Some(("σ²", Box::new(|sigma| sigma * sigma))),
                    ("σ²".into(), Box::new(|sigma, _| sigma * sigma)),
                ),
                pattern(MarginReachable, None, ("1/(pn)".into(), Box::new(move |_, n| 1.0 / (p * n)))),
            ]
        }
    }
}

/// η and λ for a network, by the recipes of table 10 with λ > 0 and by Lemma 4.10.
///
/// `gap` is the relative difference of gauge and horizon that counts as reached. Table 10's margin-reachable pairs go
/// by σ, which is 1/√fan-in for usual starts; its n is then the fan-in of a layer, while Lemma 4.10's n counts all
/// weights.
///
/// ```
/// use limitpoint::advice::{TrainedLayers, LimitMargin, MirrorFamily, advise_mirror};
/// use limitpoint::models::Initialiser;
/// let network = TrainedLayers::relu(2, &[100], 1, &Initialiser::HeNormal { scale: 1.0 })?;
/// let advice = advise_mirror(MirrorFamily::Hyperbolic, &network, 0.1, LimitMargin::Unknown)?;
/// let by_count = &advice.recipes[3];
/// assert_eq!(by_count.layers[0].lambda, Some(1.0 / 90_000.0)); // 1/n², n = 300
/// assert!((by_count.reach.offset - 1.0).abs() < 1e-12 && by_count.warning.is_none());
/// assert!(by_count.optimiser.starts_with("blocks(layer1=adjusted(of=mirror(potential=hyperbolic(lambda="));
/// # Ok::<(), limitpoint::advice::AdviceError>(())
/// ```
pub fn advise_mirror(
    family: MirrorFamily,
    network: &TrainedLayers,
    gap: f64,
    margin: LimitMargin,
) -> Result<MirrorAdvice, AdviceError> {
    network.check()?;
    if !(gap > 0.0 && gap < 1.0) {
        let remedy = "0.1 asks for a tenth";
        return Err(AdviceError::Setting {
            what: "the relative gap".into(),
            value: gap,
            range: "between 0 and 1",
            remedy,
        });
    }
    if let Some(value) = margin.value().filter(|margin| !(*margin > 0.0 && margin.is_finite())) {
        let remedy = "it is min qᵢ/φ(θ)^L of weights that separate the data";
        return Err(AdviceError::Setting { what: "the margin".into(), value, range: "positive and finite", remedy });
    }
    let recipes = patterns(family).into_iter().map(|pattern| recipe(&pattern, family, network, gap, margin)).collect();
    Ok(MirrorAdvice { family, parameters: network.parameters(), degree: network.degree, gap, margin, recipes })
}

fn recipe(
    pattern: &Pattern,
    family: MirrorFamily,
    network: &TrainedLayers,
    gap: f64,
    margin: LimitMargin,
) -> RecipeAdvice {
    let n = network.parameters() as f64;
    let mut lambdas = Vec::new();
    let layers: Vec<LayerAdvice> = network
        .layers
        .iter()
        .map(|layer| {
            let deviation = layer.spread.deviation();
            let lambda = (pattern.lambda.1)(deviation, n);
            lambdas.push(lambda);
            let mean = family.mean_inverse_curvature(lambda, &layer.spread);
            let table_eta = pattern.eta.as_ref().map(|(_, of)| of(deviation));
            LayerAdvice {
                layer: layer.name.clone(),
                fan_in: layer.fan_in,
                deviation,
                lambda: (family != MirrorFamily::Euclidean).then_some(lambda),
                mean_inverse_curvature: mean,
                eta: 1.0 / mean,
                table_eta,
                table_update: table_eta.map(|eta| eta * mean),
            }
        })
        .collect();
    let part = |(layer, lambda): (&LayerAdvice, &f64)| {
        // a bias moves with its layer
        let name = layer.layer.strip_suffix(".weight").unwrap_or(&layer.layer);
        format!("{name}=adjusted(of={},factor={:e})", family.optimiser(*lambda), layer.eta)
    };
    let optimiser = format!("blocks({})", layers.iter().zip(&lambdas).map(part).collect::<Vec<_>>().join(", "));
    let reach = Reach::new(family, &lambdas, network, gap, margin.value());
    let slowest = reach.log_time.unwrap_or(reach.lemma_log_time);
    let (reachable, warning) = match margin {
        LimitMargin::Unknown if slowest <= OUT_OF_REACH => (None, None),
        _ if slowest <= OUT_OF_REACH => (Some(true), None),
        LimitMargin::Unknown => (
            None,
            Some(format!(
                "the margin may be out of reach: by Lemma 4.10 the gauge outgrows its offset at ln t ≈ {slowest:.3e}"
            )),
        ),
        LimitMargin::AtMost(_) => (
            None,
            Some(format!(
                "the margin may be out of reach: ln t is at most {slowest:.3e}; the margin of weights that separate the data \
                 decides"
            )),
        ),
        LimitMargin::Known(_) => (
            Some(false),
            Some(format!(
                "the margin is out of reach: ln t ≈ {slowest:.3e}; the run keeps the bias of its early phase. A smaller λ helps"
            )),
        ),
    };
    RecipeAdvice {
        purpose: pattern.purpose,
        eta_formula: pattern.eta.as_ref().map(|(text, _)| text.clone()),
        lambda_formula: pattern.lambda.0.clone(),
        layers,
        reach,
        reachable,
        warning,
        optimiser,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Initialiser;

    #[test]
    fn the_first_update_is_kept_by_every_recipe() {
        let network = TrainedLayers::relu(20, &[50, 30], 1, &Initialiser::HeNormal { scale: 1.0 }).unwrap();
        for family in [MirrorFamily::Euclidean, MirrorFamily::Hyperbolic, MirrorFamily::Smoothed { p: 3.0 }] {
            let advice = advise_mirror(family, &network, 0.1, LimitMargin::Unknown).unwrap();
            for recipe in &advice.recipes {
                assert_eq!(recipe.layers.len(), 3);
                for layer in &recipe.layers {
                    assert!((layer.eta * layer.mean_inverse_curvature - 1.0).abs() < 1e-12, "{family}: {layer:?}");
                }
            }
        }
    }

    #[test]
    fn a_wide_network_with_lambda_one_is_out_of_reach_and_one_over_n_squared_is_not() {
        let network = TrainedLayers::relu(784, &[100], 1, &Initialiser::HeNormal { scale: 1.0 }).unwrap();
        let advice = advise_mirror(MirrorFamily::Hyperbolic, &network, 0.1, LimitMargin::Unknown).unwrap();
        assert!(
            advice.recipes[0].reachable.is_none() && advice.recipes[0].warning.as_ref().unwrap().contains("Lemma 4.10")
        );
        assert!(advice.recipes[3].reachable.is_none() && advice.recipes[3].warning.is_none());
        let known = advise_mirror(MirrorFamily::Hyperbolic, &network, 0.1, LimitMargin::Known(0.01)).unwrap();
        assert_eq!(known.recipes[0].reachable, Some(false));
        // a bound for the margin can promise, but not refuse
        let bounded = advise_mirror(MirrorFamily::Hyperbolic, &network, 0.1, LimitMargin::AtMost(0.25)).unwrap();
        assert!(
            bounded.recipes[0].reachable.is_none() && bounded.recipes[0].warning.as_ref().unwrap().contains("may be")
        );
        assert_eq!(bounded.recipes[3].reachable, Some(true));
        let smoothed = advise_mirror(MirrorFamily::Smoothed { p: 3.0 }, &network, 0.1, LimitMargin::Unknown).unwrap();
        assert!(smoothed.recipes[3].reach.offset < 0.8); // (1/2)^(1/3)
    }

    /// The mean of Δθ/(−ηg) over the weights of a layer is η E[1/r″(θ₀)], which every recipe keeps at 1.
    #[test]
    fn the_advised_optimisers_move_every_layer_as_far_as_gradient_descent() {
        use crate::experiments::{RecipeSource, plan};
        use crate::numeric::{LogScaled, Streams};
        use crate::params::ParamLayout;
        let start = Initialiser::HeNormal { scale: 1.0 };
        let network = TrainedLayers::relu(200, &[300], 40, &start).unwrap();
        let layout = ParamLayout::new([("layer1.weight", 300, 200), ("layer2.weight", 40, 300)]).unwrap();
        let theta = start.draw(&layout, &mut Streams::new(1).stream("init"));
        for family in [MirrorFamily::Euclidean, MirrorFamily::Hyperbolic, MirrorFamily::Smoothed { p: 3.0 }] {
            // the mean of 1/r″ for λ = 1/(pn) is that of a few weights near 0, too few here
            let all = advise_mirror(family, &network, 0.1, LimitMargin::Unknown).unwrap().recipes;
            for recipe in all.into_iter().filter(|recipe| recipe.eta_formula.is_some()) {
                let text = format!("optimiser={}", recipe.optimiser);
                let plan = plan(&RecipeSource::find("digits").unwrap(), &[text]).unwrap();
                let spec = plan.base.optimisers.values().next().unwrap();
                let (mut optimiser, mut params) = (spec.build(&layout).unwrap(), theta.clone());
                let gradient = LogScaled { log_scale: 1e-11f64.ln(), direction: vec![1.0; theta.len()] };
                let context = crate::schedules::StepContext { step: 0, epoch: 0, log_loss: 0.0, all_correct: false };
                optimiser.step(&mut params, &gradient, &context, 0.0).unwrap();
                for block in layout.blocks() {
                    let moved: f64 = block.range().map(|i| (theta[i] - params[i]) / 1e-11).sum();
                    let mean = moved / block.len() as f64;
                    assert!((mean - 1.0).abs() < 0.05, "{}: {} moves by {mean}", recipe.optimiser, block.name);
                }
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_value_and_remedy() {
        let network = TrainedLayers::relu(3, &[4], 1, &Initialiser::Constant { value: 0.0 }).unwrap();
        let error =
            advise_mirror(MirrorFamily::Hyperbolic, &network, 0.1, LimitMargin::Unknown).unwrap_err().to_string();
        assert!(error.contains("layer1.weight is 0") && error.contains("positive"), "{error}");
        let network = network.with_deviations(&[0.1]).unwrap();
        let known = LimitMargin::Known;
        let none = LimitMargin::Unknown;
        for (gap, margin) in [(0.0, none), (1.0, none), (f64::NAN, none), (0.1, known(-1.0)), (0.1, known(f64::NAN))] {
            assert!(advise_mirror(MirrorFamily::Hyperbolic, &network, gap, margin).is_err());
        }
        assert!(network.with_deviations(&[0.1, 0.2, 0.3]).unwrap_err().to_string().contains("3 deviations"));
        for text in ["entropy", "smoothed", "smoothed:2", "smoothed:x", "hyperbolic:0.1"] {
            assert!(text.parse::<MirrorFamily>().unwrap_err().to_string().contains("smoothed:P"), "{text}");
        }
    }
}
