//! The norm of a composition: what `blocks(…)` is steepest descent in.
//!
//! Part i moves its blocks by steps of size c_i η along the unit minimiser d_i of its norm N_i. Which norm of all blocks
//! the whole is steepest in depends on how long the steps of the parts are:
//!
//! ```text
//! steps              part i moves by      the whole is steepest in       dual norm             rule
//! of fixed length    c_i d_i              max_i N_i(θ_i)/c_i             Σ_i c_i N_i*(g_i)     max
//! like the gradient  c_i N_i*(g_i) d_i    √(Σ_i N_i(θ_i)²/c_i)           √(Σ_i c_i N_i*(g_i)²) root
//! ```
//!
//! In the first row d = (c_i d_i)_i has norm 1 and ⟨g, d⟩ = −Σ c_i N_i*(g_i). In the second Δ_i = c_i N_i*(g_i) d_i has
//! ‖Δ‖² = Σ c_i N_i*(g_i)² = ‖g‖_*² = −⟨g, Δ⟩, which is the steepest direction. Adam, Signum, Muon and normalised steepest
//! descent are of the first kind (A section 3.2), steepest descent with its factor ‖g‖_* and momentum of the second.
//! Mirror descent with step factors c_i is mirror descent on Σ R_i/c_i, whose horizon is (Σ_i φ_i^α/c_i)^{1/α} where all
//! R_i have the degree α (C Definition I.4): a sum of norms for α = 1, the root for α = 2.
//!
//! Parts of different kinds have no norm that is known. Norms in a composition measure every block for itself, so that a
//! part of several blocks needs a norm for which that makes no difference, such as ℓ∞ under the maximum.

use indexmap::IndexMap;

use super::blocks::selection;
use super::{NoOwnNorm, OptimiserSpec};
use crate::norms::{BlockNorm, NormSpec};

/// How the norm of a part enters that of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Steps of fixed length.
    Max,
    /// Steps in proportion to the dual norm of the gradient, and horizons of degree 2.
    Root,
    /// Horizons of degree 1.
    Sum,
    /// Horizons of degree p and norm ℓp.
    Power,
    /// Not known.
    Alone,
}

/// The norm of an optimiser: `scale` · `norm`, with what a composition must know of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Own {
    pub norm: NormSpec,
    rule: Rule,
    scale: f64,
    /// c.
    factor: f64,
}

impl Own {
    pub fn new(norm: NormSpec, rule: Rule) -> Self {
        Self { norm, rule, scale: 1.0, factor: 1.0 }
    }

    /// With a factor in front of the norm.
    pub fn scaled(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    /// With a factor on all steps.
    pub fn times(self, factor: f64) -> Self {
        Self { factor: self.factor * factor, ..self }
    }

    /// What stands in front of the norm in the composition.
    fn weight(&self) -> f64 {
        match self.rule {
            Rule::Max | Rule::Sum => self.scale / self.factor,
            Rule::Root => self.scale / self.factor.sqrt(),
            Rule::Power | Rule::Alone => self.scale,
        }
    }

    /// Whether the norm of several blocks is what the rule makes of the norms of each.
    fn splits(&self) -> bool {
        match self.rule {
            Rule::Max => matches!(self.norm, NormSpec::Linf | NormSpec::Spectral | NormSpec::GroupL2Inf),
            Rule::Root => matches!(self.norm, NormSpec::L2 | NormSpec::Frobenius),
            Rule::Sum => matches!(self.norm, NormSpec::L1 | NormSpec::L1Averaged | NormSpec::Nuclear),
            Rule::Power => true,
            Rule::Alone => false,
        }
    }
}

/// The norm of a composition, or why none is known.
pub(super) fn compose(parts: &IndexMap<String, OptimiserSpec>) -> Result<Own, NoOwnNorm> {
    let refuse = |why: String| Err(NoOwnNorm(why));
    let mut owns: Vec<(&str, Own)> = Vec::new();
    for (name, spec) in parts {
        match spec.own() {
            Ok(own) => owns.push((name, own)),
            Err(NoOwnNorm(why)) => return refuse(format!("the part '{name}' has no norm: {why}")),
        }
    }
    let Some(((first_name, first), others)) = owns.split_first() else {
        return refuse("there are no parts".into());
    };
    if others.is_empty() {
        return Ok(first.clone());
    }
    for (name, own) in &owns {
        if own.rule == Rule::Alone {
            return refuse(format!("it is not known how the norm of the part '{name}' enters that of the whole"));
        }
        if own.rule != first.rule {
            return refuse(format!(
                "the steps of the parts '{first_name}' and '{name}' depend in different ways on the size of the gradient, so \
                 that no norm is known in which both are steepest"
            ));
        }
        if !own.splits() && !names_one_block(name) {
            return refuse(format!(
                "the part '{name}' measures all its blocks together by {}; name a single block, or a part for each",
                own.norm.key()
            ));
        }
    }
    let same = |own: &Own| own.norm == first.norm && own.weight() == first.weight() && own.factor == first.factor;
    if first.splits() && others.iter().all(|(_, own)| same(own)) {
        return Ok(first.clone());
    }
    let entry = |(name, own): &(&str, Own)| BlockNorm::new(selection(name), own.norm.clone()).weighted(own.weight());
    let blocks = owns.iter().map(entry).collect();
    let norm = match first.rule {
        Rule::Max => NormSpec::Max { blocks },
        Rule::Root => NormSpec::Root { blocks },
        Rule::Sum => NormSpec::Sum { blocks },
        Rule::Power | Rule::Alone => {
            return refuse("powers p > 2 with different exponents or step factors have no common norm".into());
        }
    };
    Ok(Own::new(norm, Rule::Alone))
}

/// Whether a key is the name of one block, not a word for several.
fn names_one_block(key: &str) -> bool {
    let several = ["all", "weights", "biases", "matrices", "vectors", "first", "last", "hidden", "rest"];
    let is_layer = key.strip_prefix("layer").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()));
    !several.contains(&key) && !key.contains(['*', '+']) && !is_layer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::dot;
    use crate::norms::Norm;
    use crate::numeric::{LogScaled, Streams};
    use crate::optimisers::Scaling;
    use crate::params::{Block, ParamLayout};
    use crate::potentials::PotentialSpec;
    use crate::schedules::StepContext;

    fn layout() -> ParamLayout {
        ParamLayout::of([
            Block::weight(1, 4, 3),
            Block::bias(1, 4, 3).frozen(true),
            Block::weight(2, 3, 4),
            Block::weight(3, 1, 3),
        ])
        .unwrap()
    }

    fn steepest(norm: &str, scaling: Scaling) -> OptimiserSpec {
        OptimiserSpec::Steepest { norm: norm.parse().unwrap(), scaling, minimum_norm: false }
    }

    fn times(spec: OptimiserSpec, factor: f64) -> OptimiserSpec {
        OptimiserSpec::Adjusted { of: Box::new(spec), factor, decay: 0.0 }
    }

    /// Compositions whose norm is known, of both kinds, with and without factors.
    fn composed() -> Vec<(OptimiserSpec, Scaling)> {
        let mut all = Vec::new();
        for scaling in [Scaling::Unit, Scaling::DualNorm] {
            let of = |norm| steepest(norm, scaling);
            for [hidden, first, last] in [
                ["spectral", "linf", "linf"],
                ["l1", "lp:3", "nuclear"],
                ["l2", "l2", "l2"],
                ["group2inf", "l1", "linf"],
            ] {
                let [a, b, c] = [of(hidden), times(of(first), 0.3), times(of(last), 4.0)];
                let names = ["layer2.weight", "layer1.weight", "layer3.weight"];
                all.push((OptimiserSpec::blocks(names.into_iter().zip([a, b, c])), scaling));
            }
        }
        let muon = || "muon".parse::<OptimiserSpec>().unwrap();
        let adam = OptimiserSpec::Adam { beta1: 0.0, beta2: 0.0, epsilon: 0.0 };
        all.push((OptimiserSpec::blocks([("matrices", muon()), ("rest", times(adam.clone(), 0.1))]), Scaling::Unit));
        all.push((OptimiserSpec::blocks([("hidden", times(muon(), 3.0)), ("*", adam)]), Scaling::Unit));
        let gradient = || steepest("l2", Scaling::DualNorm);
        all.push((
            OptimiserSpec::blocks([("hidden", times(gradient(), 0.2)), ("rest", gradient())]),
            Scaling::DualNorm,
        ));
        let weighted = OptimiserSpec::mirror(PotentialSpec::Smoothed { p: 2.0, lambda: 3.0 });
        all.push((OptimiserSpec::blocks([("hidden", weighted), ("rest", times(gradient(), 2.0))]), Scaling::DualNorm));
        all
    }

    /// The step of a composition is the steepest direction of its norm: ⟨g, Δ⟩ = −‖g‖_*‖Δ‖, with ‖Δ‖ = ‖g‖_* or 1.
    #[test]
    fn the_step_of_a_composition_attains_the_dual_norm_of_its_norm() {
        let layout = layout();
        for (spec, scaling) in composed() {
            let mut norm = spec.own_norm().unwrap_or_else(|| panic!("{spec:?}")).build(&layout).unwrap();
            for seed in 0..10 {
                let mut g = vec![0.0; layout.len()];
                let mut stream = Streams::new(seed).stream("gradient");
                layout.trainable().for_each(|block| stream.fill_normal(&mut g[block.range()]));
                let gradient = LogScaled { log_scale: 0.0, direction: g.clone() };
                let context = StepContext { step: 0, epoch: 0, log_loss: 0.0, all_correct: false };
                let mut step = vec![0.0; layout.len()];
                spec.build(&layout).unwrap().step(&mut step, &gradient, &context, 0.0).unwrap();
                let dual = norm.dual(&g);
                let length = if scaling == Scaling::Unit { 1.0 } else { dual };
                assert!((norm.value(&step) / length - 1.0).abs() < 1e-9, "{spec:?}: {}", norm.value(&step));
                assert!((dot(&g, &step) / (dual * length) + 1.0).abs() < 1e-9, "{spec:?}");
            }
        }
    }

    #[test]
    fn horizons_with_step_factors_are_those_of_divided_potentials() {
        let mirror = |lambda| OptimiserSpec::mirror(PotentialSpec::Hyperbolic { lambda });
        let spec = OptimiserSpec::blocks([("first", times(mirror(0.1), 4.0)), ("rest", mirror(0.5))]);
        assert_eq!(spec.own_norm().unwrap().to_string(), "sum(first=0.25*l1,*=l1)");
        let cubic = |lambda| OptimiserSpec::mirror(PotentialSpec::Smoothed { p: 3.0, lambda });
        let spec = OptimiserSpec::blocks([("first", cubic(0.1)), ("rest", cubic(2.0))]);
        assert_eq!(spec.own_norm(), Some(NormSpec::Lp { p: 3.0 }));
        let spec = OptimiserSpec::blocks([("first", times(cubic(0.1), 2.0)), ("rest", cubic(2.0))]);
        assert!(spec.norm_of_steps().unwrap_err().to_string().contains("step factors"));
    }

    #[test]
    fn equal_parts_have_the_plain_norm_and_mixed_ones_say_why_they_have_none() {
        let own = |a: &str, b: &str| {
            let parts = [a, b].map(|name| name.parse::<OptimiserSpec>().unwrap());
            OptimiserSpec::blocks(["hidden", "rest"].into_iter().zip(parts))
                .norm_of_steps()
                .map_err(|why| why.to_string())
        };
        assert_eq!(own("adam", "signum"), Ok(NormSpec::Linf));
        assert_eq!(own("gradient", "nesterov"), Ok(NormSpec::L2));
        assert_eq!(own("muon", "muon"), Ok(NormSpec::Spectral));
        assert_eq!(own("muon", "adam").unwrap().to_string(), "max(hidden=spectral,*=linf)");
        for (a, b, words) in [
            ("muon", "gradient", "depend in different ways on the size"),
            ("adam", "ada-grad", "the part 'rest' has no norm: the metric of AdaGrad"),
            ("adam", "ada-boost", "how the norm of the part 'rest' enters"),
            ("coordinate", "gradient", "the part 'hidden' measures all its blocks together by l1"),
        ] {
            assert!(own(a, b).unwrap_err().contains(words), "{a} {b}: {:?}", own(a, b));
        }
        let alone = OptimiserSpec::blocks([("all", "coordinate".parse().unwrap())]);
        assert_eq!(alone.own_norm(), Some(NormSpec::L1));
        let _: Box<dyn Norm> = alone.own_norm().unwrap().build(&layout()).unwrap();
    }
}
