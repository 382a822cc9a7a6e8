//! What the limit is, in words.

use super::{LimitGauge, ScalarCurve, Shape, Survey};
use crate::potentials::HorizonPrediction;

/// Subscripts of the norms people have names for.
const NAMED: [(f64, &str); 4] = [(1.0, "₁"), (2.0, "₂"), (3.0, "₃"), (4.0, "₄")];

/// A measured number without the digits that are noise: what is within `error` of a multiple of 1/12 is that.
fn rounded(value: f64, error: f64) -> f64 {
    let near = (12.0 * value).round() / 12.0;
    if (near - value).abs() <= error.max(1e-6) { near } else { value }
}

/// A number as a reader wants it: without trailing zeros.
pub(super) fn number(value: f64) -> String {
    let trim = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if value == 0.0 || (1e-3..1e5).contains(&value.abs()) {
        return trim(&format!("{value:.6}"));
    }
    let text = format!("{value:.3e}");
    text.split_once('e').map_or_else(|| text.clone(), |(mantissa, power)| format!("{}e{power}", trim(mantissa)))
}

/// "₁", or "_{1.5}".
fn subscript(degree: f64) -> String {
    NAMED
        .iter()
        .find(|(known, _)| *known == degree)
        .map_or_else(|| format!("_{{{}}}", number(degree)), |(_, s)| (*s).into())
}

pub(super) fn limit(prediction: &HorizonPrediction, curve: &ScalarCurve) -> LimitGauge {
    let degree = rounded(prediction.degree, 10.0 * prediction.degree_error);
    let sub = subscript(degree);
    let factor = |coefficient: f64| {
        let coefficient = rounded(coefficient, 10.0 * prediction.coefficient_error);
        let root = rounded(coefficient.powf(1.0 / degree), 0.0);
        if root == 1.0 { String::new() } else { format!("{} ", number(root)) }
    };
    let norm = format!("‖θ‖{sub}");
    let same = |a: f64, b: f64| (a / b - 1.0).abs() <= 1e-3_f64.max(10.0 * prediction.coefficient_error);
    let (name, formula) = match (prediction.positive, prediction.negative) {
        (Some(a), Some(b)) if same(a, b) => {
            let factor = factor(a);
            let what = if factor.is_empty() { "the" } else { "a multiple of the" };
            (format!("{what} ℓ{sub} norm"), format!("{factor}{norm}"))
        }
        (Some(a), Some(b)) if a == 0.0 || b == 0.0 => {
            let (kept, free) = if b == 0.0 { ("positive", "negative") } else { ("negative", "positive") };
            let name = format!("the ℓ{sub} norm of the {kept} parts only; {free} weights cost nothing in the limit");
            (name, format!("{}‖θ{}‖{sub}", factor(a.max(b)), if b == 0.0 { "₊" } else { "₋" }))
        }
        (Some(a), Some(b)) => {
            let power = if degree == 1.0 {
                (String::new(), String::new())
            } else {
                (format!("^{}", number(degree)), format!("^(1/{})", number(degree)))
            };
            let (a, b) = (
                number(rounded(a, 10.0 * prediction.coefficient_error)),
                number(rounded(b, 10.0 * prediction.coefficient_error)),
            );
            let formula = format!("({a} Σ_{{θᵢ>0}} |θᵢ|{0} + {b} Σ_{{θᵢ<0}} |θᵢ|{0}){1}", power.0, power.1);
            (format!("an ℓ{sub} gauge with unequal sides"), formula)
        }
        (Some(a), None) => (format!("the ℓ{sub} norm on positive weights"), format!("{}{norm}, θ > 0", factor(a))),
        (None, Some(b)) => (format!("the ℓ{sub} norm on negative weights"), format!("{}{norm}, θ < 0", factor(b))),
        (None, None) => ("nothing".into(), String::new()),
    };
    LimitGauge {
        // a name brings its closed form along
        degree: curve.named().map_or(degree, |scalar| scalar.degree()),
        degree_error: prediction.degree_error,
        positive: prediction.positive,
        negative: prediction.negative,
        coefficient_error: prediction.coefficient_error,
        name,
        formula,
    }
}

/// Where an inequality fails, in words.
fn stretches(shape: &Shape) -> String {
    let one = |[from, to]: &[f64; 2]| {
        if from == to {
            format!("at t = {}", number(*from))
        } else {
            format!("from t = {} to {}", number(*from), number(*to))
        }
    };
    let mut nearest: Vec<&[f64; 2]> = shape.fails.iter().collect();
    nearest.sort_by(|a, b| a[0].abs().min(a[1].abs()).total_cmp(&b[0].abs().min(b[1].abs())));
    let shown: Vec<String> = nearest.into_iter().take(3).map(one).collect();
    let more = shape.fails.len().saturating_sub(3);
    shown.join(", ") + &if more > 0 { format!(" and on {more} further stretches") } else { String::new() }
}

pub(super) fn answer(survey: &Survey) -> String {
    if survey.convex.smallest.is_none() {
        return "not a mirror potential: it is finite nowhere between |t| = 1e-6 and 1e6".into();
    }
    if !survey.convex.holds {
        return format!("not a mirror potential: it is not convex, R″ < 0 {}", stretches(&survey.convex));
    }
    if let Some([from, to]) = survey.flat {
        let (from, to) = (number(from), number(to));
        return format!("not a mirror potential: R″ = 0 from t = {from} to {to}, so that ∇R has no inverse");
    }
    match (&survey.limit, &survey.no_limit) {
        (Some(limit), _) if is_bounded(limit) => format!(
            "α = {} is below 1: R′ stays bounded, so that mirror flow cannot go on for ever and reaches no limit",
            number(limit.degree)
        ),
        (Some(limit), _) => format!(
            "α = {}: {}; mirror flow with this potential tends to KKT points of min ½{} subject to qᵢ ≥ 1",
            number(limit.degree),
            limit.name,
            squared(&limit.formula)
        ),
        (None, Some(found)) => found.reason.clone(),
        (None, None) => "no limit".into(),
    }
}

/// Whether R′ stays bounded: the dual variables can move only so far.
pub(super) fn is_bounded(limit: &LimitGauge) -> bool {
    limit.degree < 1.0 - 1e-6
}

/// φ² from φ.
fn squared(formula: &str) -> String {
    match formula.split_once(", ") {
        Some((gauge, rest)) => format!("{}, {rest},", squared(gauge)),
        None if formula.starts_with('‖') => format!("{formula}²"),
        None => format!("({formula})²"),
    }
}

pub(super) fn remarks(survey: &Survey, shifted: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if shifted {
        remarks.push("R(0) was taken off: a constant changes no gradient, but Q(∇R) would be negative with it.".into());
    }
    let Some(limit) = &survey.limit else {
        remarks.push(
            "Without a homogeneous limit no margin is known that the flow maximises as the loss tends to 0.".into(),
        );
        return remarks;
    };
    if !survey.convex.holds {
        remarks.push(
            "What follows is about Q(∇R) as a function; there is no mirror flow of a potential that is not convex."
                .into(),
        );
    }
    if let Some(condition) = &survey.curvature_condition {
        let [low, high] = condition.shape.range;
        remarks.push(if condition.shape.holds {
            format!(
                "The curvature condition αQ ≥ θᵀHθ (C Assumption 4.4) holds from t = {} to {}: the margin of the gauge never falls.",
                number(low),
                number(high)
            )
        } else {
            let mended = condition.constant.map_or_else(String::new, |k| {
                format!(" Lowering R by {} mends it: the flow stays the same, and Q is larger by that constant.", number(k))
            });
            format!(
                "The curvature condition αQ ≥ θᵀHθ (C Assumption 4.4) fails {}: the margin of the gauge may fall there.{mended}",
                stretches(&condition.shape)
            )
        });
        let norm = [limit.positive, limit.negative].iter().all(|side| side.is_some_and(|c| c > 0.0));
        let covered = (condition.shape.holds || condition.constant.is_some()) && survey.convex.holds && norm;
        remarks.push(if covered && limit.degree >= 2.0 {
            "That limit points are KKT points of this problem is C Theorem 4.7 (α ≥ 2).".into()
        } else if covered && limit.degree == 1.0 {
            "For α = 1 the limit is proved for the hyperbolic entropy (C Corollary 4.8); for other potentials it is what the \
             same law of growth suggests."
                .into()
        } else {
            "No theorem of the paper covers this case; the problem is what the limit of the gauge suggests.".into()
        });
    }
    remarks
}
