//! DeepFool.

use super::Victim;
use super::crowd::{Attack, Found, Group, Queue, column, copy_lanes, panel, squared_norms};
use super::victim::Label;
use crate::engine::InputMap;
use crate::linalg::Panels;
use crate::numeric::wide;

/// Added to every step's length, so that a step that should end on a boundary crosses it.
const PAST: f32 = 1e-4;

/// Steps to the nearest boundary of the linearised model.
///
/// ```text
/// f_k = Φ_k − Φ_y,   k* = argmin |f_k|/‖∇f_k‖,   p ← p + (|f_k*|/‖∇f_k*‖ + 10⁻⁴) ∇f_k*/‖∇f_k*‖,   x = x₀ + (1 + η)p
/// ```
///
/// until another class has the highest score; x stays in the box. The classes k are those with the highest scores at
/// x₀. Moosavi-Dezfooli, Fawzi and Frossard 2016, "DeepFool", algorithm 2.
pub(super) struct DeepFool {
    pub steps: usize,
    pub candidates: usize,
    pub overshoot: f64,
}

/// The panels of one worker.
struct Desk {
    inputs: Panels<f32>,
    moved: Panels<f32>,
    gradient: Panels<f32>,
    nearest: Panels<f32>,
    scores: Panels<f32>,
    cotangent: Panels<f32>,
}

impl Attack for DeepFool {
    fn work(&self, victim: &Victim, map: &mut dyn InputMap<f32>, queue: &Queue<'_>, count: usize) -> Found {
        let wide = || panel(map.features(), count);
        let narrow = || panel(map.outputs(), count);
        let mut desk = Desk {
            inputs: wide(),
            moved: wide(),
            gradient: wide(),
            nearest: wide(),
            scores: narrow(),
            cotangent: narrow(),
        };
        queue.in_groups(victim, count, |group| self.chase(victim.bounds(), map, group, &mut desk))
    }
}

impl DeepFool {
    /// Attacks all examples of a group; points that are wrong.
    fn chase(
        &self,
        bounds: [f64; 2],
        map: &mut dyn InputMap<f32>,
        Group { origin, labels, blurs }: &Group,
        desk: &mut Desk,
    ) -> Vec<Option<Vec<f64>>> {
        desk.moved.data_mut().fill(0.0);
        desk.inputs.data_mut().copy_from_slice(origin.data());
        let width = desk.inputs.width();
        map.scores(&desk.inputs, &mut desk.scores);
        let rivals: Vec<Vec<usize>> =
            labels.iter().enumerate().map(|(lane, label)| self.rivals(*label, &desk.scores, lane)).collect();
        let tried = rivals.iter().map(Vec::len).max().unwrap_or(0);
        let (mut done, mut lengths) = (vec![false; labels.len()], vec![0.0; width]);
        let (mut distances, mut closer, mut norms) = (vec![0.0f32; width], vec![false; labels.len()], vec![0.0; width]);
        for step in 0..=self.steps {
            if step > 0 {
                map.scores(&desk.inputs, &mut desk.scores);
            }
            for (lane, label) in labels.iter().enumerate() {
                let scores = &desk.scores;
                done[lane] |= label.margin(|class| f64::from(scores.get(class, lane)), scores.rows()).0 <= -blurs[lane];
            }
            if step == self.steps || !done.contains(&false) {
                break;
            }
            distances.fill(f32::INFINITY);
            for place in 0..tried {
                for (lane, label) in labels.iter().enumerate() {
                    label.cotangent(1.0, rivals[lane][place.min(rivals[lane].len() - 1)], lane, &mut desk.cotangent);
                }
                map.pull_back(&desk.cotangent, &mut desk.gradient);
                squared_norms(&desk.gradient, &mut norms);
                for (lane, label) in labels.iter().enumerate() {
                    let rival = rivals[lane][place.min(rivals[lane].len() - 1)];
                    let gap = (label.gap(|class| desk.scores.get(class, lane), rival) + blurs[lane] as f32).abs();
                    let length = norms[lane].sqrt();
                    let distance = gap / (length + 1e-8);
                    closer[lane] = distance < distances[lane];
                    if closer[lane] {
                        distances[lane] = distance;
                        let stay = done[lane] || length == 0.0;
                        lengths[lane] = if stay { 0.0 } else { (distance + PAST) / length };
                    }
                }
                copy_lanes(&desk.gradient, &mut desk.nearest, &closer);
            }
            desk.step(origin, &lengths, 1.0 + self.overshoot as f32, bounds);
        }
        done.iter().enumerate().map(|(lane, done)| done.then(|| column(&desk.inputs, lane))).collect()
    }

    /// The other classes, those with the highest scores first, as many as are tried.
    fn rivals(&self, label: Label, scores: &Panels<f32>, lane: usize) -> Vec<usize> {
        let Label::Class(own) = label else { return vec![0] };
        let mut classes: Vec<usize> = (0..scores.rows()).filter(|class| *class != own).collect();
        classes.sort_by(|a, b| scores.get(*b, lane).total_cmp(&scores.get(*a, lane)));
        classes.truncate(self.candidates - 1);
        classes
    }
}

impl Desk {
    /// p ← p − length · nearest (the gradient of the margin points away from the boundary), x = x₀ + stretch · p.
    fn step(&mut self, origin: &Panels<f32>, lengths: &[f32], stretch: f32, [lowest, highest]: [f64; 2]) {
        let (width, lowest, highest) = (self.inputs.width(), lowest as f32, highest as f32);
        let (inputs, origin, moved) = (self.inputs.data_mut(), origin.data(), self.moved.data_mut());
        let (nearest, lengths) = (self.nearest.data(), &lengths[..width]);
        wide(
            #[inline(always)]
            || {
                for from in (0..inputs.len()).step_by(width) {
                    let row = from..from + width;
                    let (x, origin) = (&mut inputs[row.clone()], &origin[row.clone()]);
                    let (moved, nearest) = (&mut moved[row.clone()], &nearest[row]);
                    for lane in 0..width {
                        moved[lane] -= lengths[lane] * nearest[lane];
                        x[lane] = (origin[lane] + stretch * moved[lane]).clamp(lowest, highest);
                    }
                }
            },
        );
    }
}
