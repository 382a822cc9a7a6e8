//! Projected gradient descent in balls.

use super::Victim;
use super::crowd::{Attack, Found, Group, Queue, column, copy_lanes, panel, squared_norms};
use super::victim::Label;
use crate::engine::InputMap;
use crate::linalg::Panels;
use crate::numeric::wide;

/// Gradient descent on the margin in the ball of radius ε around the example, for a series of ε.
///
/// ```text
/// x ← Π(x − αε ∇q/‖∇q‖),     Π onto {‖x − x₀‖ ≤ ε} ∩ box
/// ```
///
/// from x₀, as many steps as are given, stopping at q ≤ 0. The first ε is q/‖∇q‖, which is right for a linear model;
/// it is doubled until a wrong answer is found, then the interval to the largest ε that failed is halved. The
/// projection cuts to the box first and then shortens x − x₀, which stays in the box. Madry et al. 2018, "Towards Deep
/// Learning Models Resistant to Adversarial Attacks", section 2.1, with ℓ2 balls.
pub(super) struct Projected {
    pub search_steps: usize,
    pub steps: usize,
    pub rate: f64,
}

/// The panels of one worker, and numbers per lane.
struct Desk {
    inputs: Panels<f32>,
    gradient: Panels<f32>,
    best: Panels<f32>,
    scores: Panels<f32>,
    cotangent: Panels<f32>,
    norms: Vec<f32>,
    distances: Vec<f32>,
    /// Step lengths by the norm of the gradient, and shortenings.
    factors: Vec<f32>,
    /// Lanes that are wrong in this ball, and those that just became so.
    done: Vec<bool>,
    just: Vec<bool>,
    /// How far they were then: their neighbours may take more steps, which must not be seen.
    reached: Vec<f32>,
}

impl Attack for Projected {
    fn work(&self, victim: &Victim, map: &mut dyn InputMap<f32>, queue: &Queue<'_>, count: usize) -> Found {
        let wide = || panel(map.features(), count);
        let narrow = || panel(map.outputs(), count);
        let width = wide().width();
        let mut desk = Desk {
            inputs: wide(),
            gradient: wide(),
            best: wide(),
            scores: narrow(),
            cotangent: narrow(),
            norms: vec![0.0; width],
            distances: vec![0.0; width],
            factors: vec![0.0; width],
            done: Vec::new(),
            just: Vec::new(),
            reached: vec![f32::INFINITY; width],
        };
        queue.in_groups(victim, count, |group| self.search(victim.bounds(), map, group, &mut desk))
    }
}

impl Projected {
    /// Attacks all examples of a group; points that are wrong.
    fn search(
        &self,
        [lowest, highest]: [f64; 2],
        map: &mut dyn InputMap<f32>,
        Group { origin, labels, blurs }: &Group,
        desk: &mut Desk,
    ) -> Vec<Option<Vec<f64>>> {
        let diagonal = ((highest - lowest) * (map.features() as f64).sqrt()) as f32;
        let mut radii = vec![0.0f32; desk.norms.len()];
        // per lane: the largest radius that failed, the smallest that did not
        let mut between = vec![[0.0f32, f32::INFINITY]; labels.len()];
        for search in 0..self.search_steps {
            desk.inputs.data_mut().copy_from_slice(origin.data());
            desk.distances.fill(0.0);
            desk.done.clear();
            desk.done.resize(labels.len(), false);
            for step in 0..=self.steps {
                desk.mark_wrong(map, labels, blurs);
                if desk.just.contains(&true) {
                    copy_lanes(&desk.inputs, &mut desk.best, &desk.just);
                }
                if step == self.steps || !desk.done.contains(&false) {
                    break;
                }
                map.pull_back(&desk.cotangent, &mut desk.gradient);
                squared_norms(&desk.gradient, &mut desk.norms);
                if search == 0 && step == 0 {
                    desk.first_radii(labels, blurs, diagonal, &mut radii);
                }
                desk.step(origin, &radii, self.rate as f32, [lowest, highest]);
            }
            for (lane, [failed, worked]) in between.iter_mut().enumerate() {
                if desk.done[lane] {
                    *worked = worked.min(desk.reached[lane]);
                } else {
                    *failed = failed.max(radii[lane]);
                }
                radii[lane] =
                    if worked.is_finite() { 0.5 * (*failed + *worked) } else { (2.0 * radii[lane]).min(diagonal) };
            }
        }
        let nearest = between.iter().enumerate();
        nearest.map(|(lane, [_, worked])| worked.is_finite().then(|| column(&desk.best, lane))).collect()
    }
}

impl Desk {
    /// Scores the inputs and marks lanes that are wrong.
    fn mark_wrong(&mut self, map: &mut dyn InputMap<f32>, labels: &[Label], blurs: &[f64]) {
        map.scores(&self.inputs, &mut self.scores);
        self.just.clear();
        for (lane, label) in labels.iter().enumerate() {
            let scores = &self.scores;
            let (margin, rival) = label.margin(|class| f64::from(scores.get(class, lane)), scores.rows());
            let just = margin <= -blurs[lane] && !self.done[lane];
            if just {
                (self.done[lane], self.reached[lane]) = (true, self.distances[lane].sqrt());
            }
            self.just.push(just);
            label.cotangent(1.0, rival, lane, &mut self.cotangent);
        }
    }

    /// q/‖∇q‖ at the examples themselves, q from where it counts as wrong.
    fn first_radii(&self, labels: &[Label], blurs: &[f64], diagonal: f32, radii: &mut [f32]) {
        for (lane, label) in labels.iter().enumerate() {
            let scores = &self.scores;
            let margin = label.margin(|class| f64::from(scores.get(class, lane)), scores.rows()).0;
            let radius = (margin + blurs[lane]) as f32 / self.norms[lane].sqrt();
            radii[lane] = if radius.is_finite() { radius.min(diagonal) } else { 0.1 * diagonal };
        }
    }

    /// A step in every lane that is not done, cut to the box and shortened to the radius.
    fn step(&mut self, origin: &Panels<f32>, radii: &[f32], rate: f32, [lowest, highest]: [f64; 2]) {
        let (width, lowest, highest) = (self.inputs.width(), lowest as f32, highest as f32);
        self.factors.fill(0.0);
        for (lane, done) in self.done.iter().enumerate() {
            let length = self.norms[lane].sqrt();
            self.factors[lane] = if *done || length == 0.0 { 0.0 } else { rate * radii[lane] / length };
        }
        let (inputs, origin, gradient) = (self.inputs.data_mut(), origin.data(), self.gradient.data());
        let (factors, distances) = (&mut self.factors[..width], &mut self.distances[..width]);
        wide(
            #[inline(always)]
            || {
                distances.fill(0.0);
                for from in (0..inputs.len()).step_by(width) {
                    let row = from..from + width;
                    let (x, origin, gradient) = (&mut inputs[row.clone()], &origin[row.clone()], &gradient[row]);
                    for lane in 0..width {
                        x[lane] = (x[lane] - factors[lane] * gradient[lane]).clamp(lowest, highest);
                        let moved = x[lane] - origin[lane];
                        distances[lane] += moved * moved;
                    }
                }
                for lane in 0..width {
                    let length = distances[lane].sqrt();
                    factors[lane] = if length > radii[lane] { radii[lane] / length } else { 1.0 };
                    distances[lane] *= factors[lane] * factors[lane];
                }
                for from in (0..inputs.len()).step_by(width) {
                    let row = from..from + width;
                    let (x, origin) = (&mut inputs[row.clone()], &origin[row]);
                    for lane in 0..width {
                        x[lane] = origin[lane] + factors[lane] * (x[lane] - origin[lane]);
                    }
                }
            },
        );
    }
}
