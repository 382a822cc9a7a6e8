//! The robustness of many examples: brackets, robust accuracy and quartiles.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::centre::Centre;
use super::lipschitz::GlobalLipschitz;
use super::local::LocalBound;
use super::{AttackSpec, RobustnessError, Victim};
use crate::data::Dataset;
use crate::models::{Layered, ModelSpec};

/// What is known about the robustness R(x) of one example.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bracket {
    /// q(x), the least Φ_y − Φ_j; the answer is wrong if it is not positive.
    pub margin: f64,
    /// q/Lip with the product of the layers' spectral norms: R(x) is at least this.
    pub lipschitz: f64,
    /// The best lower bound, by linear bounds in a ball: R(x) is at least this.
    pub certified: f64,
    /// Distance of the wrong input each attack found, in the order of [`Profile::attacks`]: R(x) is at most this.
    pub attacked: Vec<Option<f64>>,
}

impl Bracket {
    /// The smallest distance any attack found; infinite if none did, NaN if one is.
    pub fn nearest(&self) -> f64 {
        self.attacked.iter().flatten().copied().fold(f64::INFINITY, smaller)
    }
}

/// Brackets of all examples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The attacks.
    pub attacks: Vec<String>,
    /// One for each example, in their order.
    pub examples: Vec<Bracket>,
}

/// Lower quartile, median and upper quartile; nothing where an attack found no wrong input.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quartiles {
    /// A quarter of the examples is below.
    pub lower: Option<f64>,
    /// Half of them are.
    pub median: Option<f64>,
    /// A quarter is above.
    pub upper: Option<f64>,
}

impl Quartiles {
    /// Of distances that may be infinite, with linear interpolation between neighbours.
    ///
    /// ```
    /// let quartiles = limitpoint::robustness::Quartiles::of(&[4.0, 1.0, 3.0, 2.0, f64::INFINITY]);
    /// assert_eq!((quartiles.lower, quartiles.median, quartiles.upper), (Some(2.0), Some(3.0), Some(4.0)));
    /// ```
    pub fn of(distances: &[f64]) -> Self {
        let mut sorted = distances.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * sorted.len().checked_sub(1)? as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            let value = if below == above { below } else { below + place.fract() * (above - below) };
            value.is_finite().then_some(value)
        };
        Self { lower: at(0.25), median: at(0.5), upper: at(0.75) }
    }
}

/// Robust accuracy by radius: the share of examples with R(x) > ε lies between the two curves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RobustAccuracy {
    /// ε.
    pub radii: Vec<f64>,
    /// Shares that are certified beyond ε.
    pub certified: Vec<f64>,
    /// Shares that no attack reached within ε.
    pub attacked: Vec<f64>,
}

impl Profile {
    /// The share of examples that the model answers rightly.
    pub fn accuracy(&self) -> f64 {
        self.share(|bracket| bracket.margin > 0.0)
    }

    /// Shares of examples certified beyond `radius`, and not reached by an attack within it.
    ///
    /// ```
    /// use limitpoint::robustness::{Bracket, Profile};
    /// let bracket = |certified, attacked| {
    ///     Bracket { margin: 1.0, lipschitz: 0.0, certified, attacked: vec![Some(attacked)] }
    /// };
    /// let examples = vec![bracket(0.1, 0.2), bracket(0.3, 0.5)];
    /// let profile = Profile { attacks: vec!["deep-fool".into()], examples };
    /// assert_eq!(profile.beyond(0.2), (0.5, 0.5));
    /// ```
    pub fn beyond(&self, radius: f64) -> (f64, f64) {
        (self.share(|bracket| bracket.certified > radius), self.share(|bracket| bracket.nearest() > radius))
    }

    fn share(&self, holds: impl Fn(&Bracket) -> bool) -> f64 {
        self.examples.iter().filter(|bracket| holds(bracket)).count() as f64 / self.examples.len().max(1) as f64
    }

    /// Robust accuracy at `count` radii from 0 to `most`.
    pub fn curve(&self, most: f64, count: usize) -> RobustAccuracy {
        let radii: Vec<f64> = (0..count).map(|i| most * i as f64 / count.saturating_sub(1).max(1) as f64).collect();
        let (certified, attacked) = radii.iter().map(|radius| self.beyond(*radius)).unzip();
        RobustAccuracy { radii, certified, attacked }
    }

    /// The largest finite distance of an attack; 0 if there is none.
    pub fn furthest(&self) -> f64 {
        self.examples.iter().map(Bracket::nearest).filter(|d| d.is_finite()).fold(0.0, f64::max)
    }

    /// Quartiles of one number per example.
    pub fn quartiles(&self, of: impl Fn(&Bracket) -> f64) -> Quartiles {
        Quartiles::of(&self.examples.iter().map(of).collect::<Vec<f64>>())
    }

    /// Quartiles of what the attack at `place` found; what it did not find is infinitely far.
    pub fn attack_quartiles(&self, place: usize) -> Quartiles {
        self.quartiles(|bracket| bracket.attacked[place].unwrap_or(f64::INFINITY))
    }

    /// The least of (distance of an attack)/(certified radius) over all examples with a certified radius: below 1 would
    /// be a contradiction, because radii are certified without a look at the attacks. Infinite if no attack found
    /// anything; NaN if nothing is certified, or if any of the numbers is NaN.
    ///
    /// ```
    /// use limitpoint::robustness::{Bracket, Profile};
    /// let bracket = |certified, distance| {
    ///     Bracket { margin: 1.0, lipschitz: 0.0, certified, attacked: vec![Some(distance)] }
    /// };
    /// let profile = |examples| Profile { attacks: vec!["deep-fool".into()], examples };
    /// assert_eq!(profile(vec![bracket(0.25, 0.5), bracket(0.125, 0.5)]).tightest(), 2.0);
    /// assert!(profile(vec![bracket(0.0, 0.5)]).tightest().is_nan());
    /// ```
    pub fn tightest(&self) -> f64 {
        let certified = |bracket: &&Bracket| bracket.certified > 0.0 || bracket.certified.is_nan();
        let ratios = self.examples.iter().filter(certified).map(|bracket| bracket.nearest() / bracket.certified);
        ratios.reduce(smaller).unwrap_or(f64::NAN)
    }
}

/// The smaller of two numbers, or NaN if one is.
fn smaller(a: f64, b: f64) -> f64 {
    if a < b || a.is_nan() { a } else { b }
}

impl Victim {
    /// Brackets the robustness of every example, on `threads` threads; the same bits for any number of them.
    pub fn profile(&self, attacks: &[AttackSpec], threads: usize) -> Result<Profile, RobustnessError> {
        let count = self.inputs().rows;
        let margins: Vec<f64> = (0..count).map(|n| self.margin(n, self.inputs().row(n))).collect();
        if let Some(example) = margins.iter().position(|q| q.is_nan() || q.abs() >= 1e30) {
            return Err(RobustnessError::Margin { example, margin: margins[example] });
        }
        let right: Vec<usize> = (0..count).filter(|n| margins[*n] > 0.0).collect();
        let mut examples: Vec<Bracket> = margins
            .iter()
            .map(|margin| {
                // a wrong answer is its own nearest wrong input
                let attacked = vec![if *margin > 0.0 { None } else { Some(0.0) }; attacks.len()];
                Bracket { margin: *margin, lipschitz: 0.0, certified: 0.0, attacked }
            })
            .collect();
        for (place, attack) in attacks.iter().enumerate() {
            for (example, distance) in right.iter().zip(attack.distances(self, &right, threads)?) {
                examples[*example].attacked[place] = distance;
            }
        }
        // up to the diagonal of the box, whatever the attacks found: two answers that can contradict each other
        for (example, (lipschitz, certified)) in right.iter().zip(self.certify(&right, threads)?) {
            (examples[*example].lipschitz, examples[*example].certified) = (lipschitz, certified);
        }
        Ok(Profile { attacks: attacks.iter().map(ToString::to_string).collect(), examples })
    }

    /// Certified radii of examples: by the global Lipschitz constant, and by the best of all bounds. Both are looked
    /// for up to the diagonal of the box, from where on a radius says nothing.
    pub fn certify(&self, examples: &[usize], threads: usize) -> Result<Vec<(f64, f64)>, RobustnessError> {
        let global = GlobalLipschitz::new(self.model())?;
        let local = LocalBound::new(self.model(), &global);
        let [lowest, highest] = self.bounds();
        let diagonal = (highest - lowest) * (self.inputs().cols as f64).sqrt();
        let one = |place: usize| {
            let (x, label) = (self.inputs().row(examples[place]), self.labels()[examples[place]]);
            let centre = Centre::new(self.model(), x);
            let everywhere = global.radius(label, &centre.margins(label)).min(diagonal);
            (everywhere, local.radius(x, label, &centre, everywhere, diagonal))
        };
        let next = AtomicUsize::new(0);
        let work = || {
            let places = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
            places.take_while(|place| *place < examples.len()).map(|place| (place, one(place))).collect::<Vec<_>>()
        };
        let found: Vec<Option<Vec<_>>> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads.clamp(1, examples.len().max(1))).map(|_| scope.spawn(work)).collect();
            let own = work();
            std::iter::once(Some(own)).chain(others.into_iter().map(|worker| worker.join().ok())).collect()
        });
        let mut radii = vec![(0.0, 0.0); examples.len()];
        for worker in found {
            worker.ok_or(RobustnessError::Worker)?.into_iter().for_each(|(place, pair)| radii[place] = pair);
        }
        Ok(radii)
    }
}

/// The robustness profile of a trained model on a data set: inputs live in `bounds`, or in [0, 1], widened to hold the
/// data.
///
/// ```
/// use limitpoint::data::Digits;
/// use limitpoint::models::ModelSpec;
/// use limitpoint::robustness::{AttackSpec, profile};
/// let data = Digits::all()?.pair(3, 6)?.first(8)?;
/// let weights: Vec<f64> = (0..64).map(|k| (k as f64 * 0.7).sin()).collect();
/// let found = profile(&ModelSpec::Linear, &weights, &data, &[AttackSpec::deep_fool()], None, 1)?;
/// assert!(found.examples.iter().all(|bracket| bracket.certified <= bracket.nearest()));
/// # Ok::<(), limitpoint::Error>(())
/// ```
pub fn profile(
    model: &ModelSpec,
    params: &[f64],
    data: &Dataset,
    attacks: &[AttackSpec],
    bounds: Option<[f64; 2]>,
    threads: usize,
) -> Result<Profile, RobustnessError> {
    let bounds = bounds.map_or_else(|| Victim::usual_box(&[data]), Ok)?;
    Victim::new(Layered::on(model, params, data)?, data, bounds)?.profile(attacks, threads)
}
