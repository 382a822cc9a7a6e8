//! Robust accuracy as a figure: the band between what is certified and what attacks leave.

use super::Sketch;
use crate::robustness::Profile;

/// Radii at which curves are drawn.
const POINTS: usize = 161;

/// The share of examples whose robustness exceeds ε, for several models: it lies between the certified curve, the lower
/// edge of each band, and the attacked one, its upper edge. D Figure 8 draws the upper edges.
///
/// ```
/// use limitpoint::report::robust_accuracy;
/// use limitpoint::robustness::{Bracket, Profile};
/// let bracket = Bracket { margin: 1.0, lipschitz: 0.1, certified: 0.2, attacked: vec![Some(0.5)] };
/// let profile = Profile { attacks: vec!["deep-fool".into()], examples: vec![bracket] };
/// let sketch = robust_accuracy("figure-8", "Robust accuracy", &[("a model", &profile)]);
/// assert_eq!(sketch.bands[0].points[0], [0.0, 1.0, 1.0]);
/// ```
pub fn robust_accuracy(name: &str, title: &str, profiles: &[(&str, &Profile)]) -> Sketch {
    let most = profiles.iter().map(|(_, profile)| profile.furthest()).fold(0.0, f64::max);
    // where no attack ever succeeded there is still something to see
    let most = if most > 0.0 { 1.02 * most } else { 1.0 };
    let mut sketch = Sketch::new(name, title, "ε", "robust accuracy").window([0.0, most], [0.0, 1.0]);
    for (label, profile) in profiles {
        let curve = profile.curve(most, POINTS);
        let edges = curve.certified.iter().zip(&curve.attacked);
        let points = curve.radii.iter().zip(edges).map(|(radius, (low, high))| [*radius, *low, *high]).collect();
        sketch = sketch.band(*label, points);
    }
    sketch
}
