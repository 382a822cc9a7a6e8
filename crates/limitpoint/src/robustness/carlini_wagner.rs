//! The attack of Carlini and Wagner.

use super::Victim;
use super::crowd::{Attack, Found, Queue, column, copy_lanes, panel, set_column};
use super::squash::{coordinate, squash};
use super::victim::Label;
use crate::engine::InputMap;
use crate::linalg::Panels;
use crate::numeric::wide;

/// Adam's decay rates and its guard against division by zero.
const DECAY: [f64; 2] = [0.9, 0.999];
const GUARD: f32 = 1e-8;
/// The loss must fall by this factor between two looks, or the search goes on with another c.
const PROGRESS: f64 = 0.9999;

/// The nearest input with another answer, as a smooth problem without constraints.
///
/// ```text
/// min over w   ‖x(w) − x₀‖² + c · max(q(x(w)) + κ, 0),     x(w) = a + b tanh w in the box [a − b, a + b]
/// ```
///
/// solved by Adam from w(x₀) for a series of c: ten times larger until a wrong answer is found, then halving the
/// interval between the largest c that failed and the smallest that did not. The nearest wrong input seen in any step
/// is kept. Steps are made in single precision, many examples side by side; each example has its own c, its own clock
/// and its own early end, and when it is done its lane takes the next.
///
/// Carlini and Wagner 2017, "Towards Evaluating the Robustness of Neural Networks", section VI.A; conventions
/// (shrinking x₀ by 1 − 10⁻⁶ before tanh⁻¹, a look at the progress every tenth of the steps) as in foolbox 3. There the
/// early end looks at the sum over the batch, here at each example.
pub(super) struct CarliniWagner {
    pub search_steps: usize,
    pub steps: usize,
    pub rate: f64,
    pub confidence: f64,
    pub initial_constant: f64,
    pub abort_early: bool,
}

/// Where one example stands.
#[derive(Debug, Clone, Copy)]
struct Lane {
    example: usize,
    label: Label,
    /// How negative the margin must become.
    confidence: f64,
    search: usize,
    step: usize,
    constant: f64,
    /// The largest c that failed and the smallest that did not.
    between: [f64; 2],
    found: bool,
    loss_before: f64,
    /// Squared distance of the nearest wrong input.
    best: f32,
    /// Adam's 1 − βᵗ.
    left: [f64; 2],
}

/// What happens to a lane after a step.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Next {
    Continue,
    Restart,
    Finish,
}

/// The panels of one worker.
struct Desk {
    inputs: Panels<f32>,
    origin: Panels<f32>,
    coordinates: Panels<f32>,
    moments: [Panels<f32>; 2],
    gradient: Panels<f32>,
    best: Panels<f32>,
    scores: Panels<f32>,
    cotangent: Panels<f32>,
    /// Per lane: squared distances, and the two factors of Adam's step.
    distances: Vec<f32>,
    factors: [Vec<f32>; 2],
}

impl Attack for CarliniWagner {
    fn work(&self, victim: &Victim, map: &mut dyn InputMap<f32>, queue: &Queue<'_>, count: usize) -> Found {
        let mut desk = Desk::new(map.features(), map.outputs(), count);
        let mut occupants: Vec<Option<Lane>> =
            (0..count).map(|lane| self.enter(victim, queue, lane, &mut desk)).collect();
        let (mut found, mut nexts, mut closer) = (Found::new(), vec![Next::Continue; count], vec![false; count]);
        while occupants.iter().any(Option::is_some) {
            map.scores(&desk.inputs, &mut desk.scores);
            for (lane, occupant) in occupants.iter_mut().enumerate() {
                (nexts[lane], closer[lane]) = match occupant {
                    Some(occupant) => self.look(occupant, lane, &mut desk),
                    None => (Next::Continue, false),
                };
            }
            if closer.contains(&true) {
                copy_lanes(&desk.inputs, &mut desk.best, &closer);
            }
            map.pull_back(&desk.cotangent, &mut desk.gradient);
            desk.step(self.rate as f32, victim.bounds());
            for lane in 0..count {
                if nexts[lane] == Next::Continue {
                    continue;
                }
                if let (Next::Finish, Some(done)) = (nexts[lane], &occupants[lane]) {
                    let nearest = done.best.is_finite().then(|| column(&desk.best, lane));
                    found.push((done.example, nearest.and_then(|point| victim.distance(done.example, &point))));
                    occupants[lane] = self.enter(victim, queue, lane, &mut desk);
                } else if let Some(occupant) = &mut occupants[lane] {
                    occupant.restart(victim, lane, &mut desk);
                }
            }
        }
        found
    }
}

impl CarliniWagner {
    /// Puts the next example of the queue into a lane.
    fn enter(&self, victim: &Victim, queue: &Queue<'_>, lane: usize, desk: &mut Desk) -> Option<Lane> {
        let example = queue.take()?;
        let mut occupant = Lane {
            example,
            label: victim.labels()[example],
            confidence: self.confidence + victim.blur(example),
            search: 0,
            step: 0,
            constant: self.initial_constant,
            between: [0.0, f64::INFINITY],
            found: false,
            loss_before: f64::INFINITY,
            best: f32::INFINITY,
            left: [1.0; 2],
        };
        occupant.restart(victim, lane, desk);
        Some(occupant)
    }

    /// Judges the scores of a lane and prepares its cotangent; says what comes next, and whether it is nearer than
    /// ever.
    fn look(&self, lane: &mut Lane, index: usize, desk: &mut Desk) -> (Next, bool) {
        let scores = &desk.scores;
        let (margin, rival) = lane.label.margin(|class| f64::from(scores.get(class, index)), scores.rows());
        let (hinge, distance) = ((margin + lane.confidence).max(0.0), desk.distances[index]);
        let wrong = margin <= -lane.confidence;
        lane.found |= wrong;
        let closer = wrong && distance < lane.best;
        if closer {
            lane.best = distance;
        }
        let weight = if wrong { 0.0 } else { lane.constant as f32 };
        lane.label.cotangent(weight, rival, index, &mut desk.cotangent);
        for (left, (decay, factors)) in lane.left.iter_mut().zip(DECAY.iter().zip(&mut desk.factors)) {
            *left *= decay;
            factors[index] = (1.0 / (1.0 - *left)) as f32;
        }
        let mut over = lane.step + 1 >= self.steps;
        if self.abort_early && lane.step.is_multiple_of(self.steps.div_ceil(10)) {
            let loss = f64::from(distance) + lane.constant * hinge;
            // a NaN ends the search as well
            over |= loss > PROGRESS * lane.loss_before || loss.is_nan();
            lane.loss_before = loss;
        }
        lane.step += 1;
        if !over {
            return (Next::Continue, closer);
        }
        lane.between[usize::from(lane.found)] = lane.constant;
        let [failed, worked] = lane.between;
        lane.constant = if worked.is_finite() { 0.5 * (failed + worked) } else { 10.0 * lane.constant };
        lane.search += 1;
        (if lane.search == self.search_steps { Next::Finish } else { Next::Restart }, closer)
    }
}

/// Moments of inputs that stopped moving shrink for ever, and arithmetic with subnormal numbers is slow.
#[inline(always)]
fn without_dust(x: f32) -> f32 {
    if x.abs() < 1e-30 { 0.0 } else { x }
}

impl Lane {
    /// Back to the example itself, with a fresh Adam.
    fn restart(&mut self, victim: &Victim, lane: usize, desk: &mut Desk) {
        (self.step, self.found, self.loss_before, self.left) = (0, false, f64::INFINITY, [1.0; 2]);
        let [lowest, highest] = victim.bounds();
        let start: Vec<f64> =
            victim.inputs().row(self.example).iter().map(|x| coordinate(*x, lowest, highest)).collect();
        set_column(&mut desk.coordinates, lane, &start);
        for (row, w) in start.iter().enumerate() {
            let x = squash(*w as f32, lowest as f32, highest as f32);
            desk.inputs.set(row, lane, x);
            desk.origin.set(row, lane, x);
            desk.moments.iter_mut().for_each(|moment| moment.set(row, lane, 0.0));
        }
        desk.distances[lane] = 0.0;
    }
}

impl Desk {
    fn new(features: usize, outputs: usize, count: usize) -> Self {
        let wide = || panel(features, count);
        let width = wide().width();
        Self {
            inputs: wide(),
            origin: wide(),
            coordinates: wide(),
            moments: [wide(), wide()],
            gradient: wide(),
            best: wide(),
            scores: panel(outputs, count),
            cotangent: panel(outputs, count),
            distances: vec![0.0; width],
            factors: [vec![1.0; width], vec![1.0; width]],
        }
    }

    /// One step of Adam in every lane, and the inputs and distances it leads to.
    fn step(&mut self, rate: f32, [lowest, highest]: [f64; 2]) {
        let (lowest, highest) = (lowest as f32, highest as f32);
        let (width, twice_by_range) = (self.inputs.width(), 2.0 / (highest - lowest));
        let [first, second] = DECAY.map(|decay| decay as f32);
        let (fresh_first, fresh_second) = ((1.0 - DECAY[0]) as f32, (1.0 - DECAY[1]) as f32);
        let [m_all, v_all] = &mut self.moments;
        let (distances, [m_factors, v_factors]) = (&mut self.distances[..width], &self.factors);
        let (m_factors, v_factors) = (&m_factors[..width], &v_factors[..width]);
        let (x_all, origin_all) = (self.inputs.data_mut(), self.origin.data());
        let (w_all, g_all) = (self.coordinates.data_mut(), self.gradient.data());
        let (m_all, v_all) = (m_all.data_mut(), v_all.data_mut());
        wide(
            #[inline(always)]
            || {
                distances.fill(0.0);
                for from in (0..x_all.len()).step_by(width) {
                    let row = from..from + width;
                    let (x, origin, w) = (&mut x_all[row.clone()], &origin_all[row.clone()], &mut w_all[row.clone()]);
                    let (g, m, v) = (&g_all[row.clone()], &mut m_all[row.clone()], &mut v_all[row]);
                    for lane in 0..width {
                        let slope = (x[lane] - lowest) * (highest - x[lane]) * twice_by_range;
                        let gradient = (g[lane] + 2.0 * (x[lane] - origin[lane])) * slope;
                        m[lane] = without_dust(first * m[lane] + fresh_first * gradient);
                        v[lane] = without_dust(second * v[lane] + fresh_second * (gradient * gradient));
                        let size = (v[lane] * v_factors[lane]).sqrt() + GUARD;
                        w[lane] -= rate * (m[lane] * m_factors[lane]) / size;
                        x[lane] = squash(w[lane], lowest, highest);
                        let moved = x[lane] - origin[lane];
                        distances[lane] += moved * moved;
                    }
                }
            },
        );
    }
}
