//! What is attacked: a model with settled parameters, examples and their labels, and the box inputs live in.

use std::sync::{Arc, Mutex, PoisonError};

use super::RobustnessError;
use super::centre::Centre;
use crate::data::{Dataset, Targets};
use crate::engine::InputMap;
use crate::linalg::{Matrix, Panels, norm2};
use crate::models::{Layered, MarginMap};

/// The answer that is right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Label {
    /// The sign of a single score.
    Sign(f64),
    /// The largest of several scores.
    Class(usize),
}

impl Label {
    /// The margin q = yΦ, or the least Φ_y − Φ_j, and the class j it is least for.
    #[inline(always)]
    pub(super) fn margin(self, score: impl Fn(usize) -> f64, outputs: usize) -> (f64, usize) {
        match self {
            Self::Sign(y) => (y * score(0), 0),
            Self::Class(own) => {
                let (mut rival, mut highest) = (0, f64::NEG_INFINITY);
                for class in (0..outputs).filter(|class| *class != own) {
                    let value = score(class);
                    // a NaN is kept: it must not pass for a margin
                    if value > highest || value.is_nan() {
                        (rival, highest) = (class, value);
                    }
                }
                (score(own) - highest, rival)
            }
        }
    }

    /// The margin against one class.
    #[inline(always)]
    pub(super) fn gap(self, score: impl Fn(usize) -> f32, rival: usize) -> f32 {
        match self {
            Self::Sign(y) => y as f32 * score(0),
            Self::Class(own) => score(own) - score(rival),
        }
    }

    /// Writes weight · ∂(margin against `rival`)/∂scores into column `lane`.
    #[inline(always)]
    pub(super) fn cotangent(self, weight: f32, rival: usize, lane: usize, out: &mut Panels<f32>) {
        for row in 0..out.rows() {
            out.set(row, lane, 0.0);
        }
        match self {
            Self::Sign(y) => out.set(0, lane, weight * y as f32),
            Self::Class(own) => {
                out.set(own, lane, weight);
                out.set(rival, lane, -weight);
            }
        }
    }
}

/// A model, examples with their labels, and the box [lowest, highest] that every input stays in.
///
/// ```
/// use limitpoint::data::{Dataset, Targets};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::models::{Layered, ModelSpec};
/// use limitpoint::robustness::Victim;
/// let inputs = Matrix::from_rows(&[&[0.9, 0.1], &[0.2, 0.4]]);
/// let data = Dataset::new("two", inputs, Targets::Binary(vec![1.0, -1.0]), vec![2])?;
/// let model = Layered::new(&ModelSpec::Linear, &[3.0, -4.0], 2, 1)?;
/// let victim = Victim::new(model, &data, [0.0, 1.0])?;
/// assert!((victim.margin(0, victim.inputs().row(0)) - 2.3).abs() < 1e-15);
/// # Ok::<(), limitpoint::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Victim {
    model: Layered,
    inputs: Matrix,
    labels: Vec<Label>,
    bounds: [f64; 2],
    elsewhere: Option<Elsewhere>,
}

/// The model on a device, where attacks compute it.
#[derive(Clone)]
struct Elsewhere(Arc<Mutex<Box<dyn InputMap<f32>>>>);

impl std::fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("on a device")
    }
}

impl Victim {
    /// Checks that model, data and box fit together.
    pub fn new(model: Layered, data: &Dataset, bounds: [f64; 2]) -> Result<Self, RobustnessError> {
        let labels: Vec<Label> = match &data.targets {
            Targets::Binary(signs) => signs.iter().map(|y| Label::Sign(*y)).collect(),
            Targets::Classes { labels, .. } => labels.iter().map(|label| Label::Class(*label)).collect(),
            Targets::Values(_) => return Err(RobustnessError::Regression { name: data.name.clone() }),
        };
        let [lowest, highest] = bounds;
        if !(lowest < highest && lowest.is_finite() && highest.is_finite()) {
            return Err(RobustnessError::Box { lowest, highest });
        }
        let inputs = data.dense()?.into_owned();
        let outputs = MarginMap::new(&data.targets).outputs();
        if (model.features(), model.outputs()) != (inputs.cols, outputs) {
            return Err(RobustnessError::Shapes {
                model: (model.features(), model.outputs()),
                data: (inputs.cols, outputs),
            });
        }
        if let Some(at) = inputs.data.iter().position(|x| !(lowest..=highest).contains(x)) {
            let (example, value) = (at / inputs.cols, inputs.data[at]);
            return Err(RobustnessError::OutsideBox { example, value, lowest, highest });
        }
        Ok(Self { model, inputs, labels, bounds, elsewhere: None })
    }

    /// The same, whose attacks compute the model by `map`, which must be this model; what they find is measured as before, in
    /// double precision on the processor.
    #[must_use]
    pub fn computed_by(self, map: Box<dyn InputMap<f32>>) -> Self {
        Self { elsewhere: Some(Elsewhere(Arc::new(Mutex::new(map)))), ..self }
    }

    /// The model for one attacker, if it is computed elsewhere.
    pub(super) fn map(&self) -> Option<Box<dyn InputMap<f32>>> {
        let Elsewhere(map) = self.elsewhere.as_ref()?;
        Some(map.lock().unwrap_or_else(PoisonError::into_inner).fork())
    }

    /// Whether attacks compute the model elsewhere.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// The smallest box that holds all inputs, if it is not within [0, 1]; [0, 1] otherwise.
    pub fn usual_box(data: &[&Dataset]) -> Result<[f64; 2], RobustnessError> {
        let mut bounds = [0.0f64, 1.0f64];
        for set in data {
            for x in &set.dense()?.data {
                bounds = [bounds[0].min(*x), bounds[1].max(*x)];
            }
        }
        Ok(bounds)
    }

    /// The model.
    pub fn model(&self) -> &Layered {
        &self.model
    }

    /// The examples, one a row.
    pub fn inputs(&self) -> &Matrix {
        &self.inputs
    }

    /// The label of every example.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// The box.
    pub fn bounds(&self) -> [f64; 2] {
        self.bounds
    }

    /// The margin of input `x` with the label of example `example`, in double precision.
    pub fn margin(&self, example: usize, x: &[f64]) -> f64 {
        let scores = self.model.scores(x);
        self.labels[example].margin(|class| scores[class], scores.len()).0
    }

    /// How far below zero a margin in single precision must be to count as wrong: not at all, unless the example is so
    /// near to a boundary that rounding to singles could make it wrong before it has moved; then by that rounding.
    pub(super) fn blur(&self, example: usize) -> f64 {
        let x = self.inputs.row(example);
        let (margin, error) = (self.margin(example, x), Centre::new(&self.model, x).single_error());
        if margin > 0.0 && margin <= error { error } else { 0.0 }
    }

    /// Turns what an attack in single precision found into an upper bound: the nearest point on the segment from the
    /// example to `point`, stretched until it is long enough, that has margin ≤ 0 in double precision. Gives its
    /// distance; nothing if there is none up to the walls of the box. Margin and distance are rounded to doubles: the
    /// bound is checked, but not proven in exact arithmetic.
    pub(super) fn distance(&self, example: usize, point: &[f64]) -> Option<f64> {
        const BISECTIONS: usize = 20;
        const HALVINGS: usize = 60;
        /// The first excess of the length, and how often it is doubled.
        const EXCESS: (f64, i32) = (1e-6, 60);
        let origin = self.inputs.row(example);
        let [lowest, highest] = self.bounds;
        let at = |share: f64| -> Vec<f64> {
            let move_on = |(x, to): (&f64, &f64)| (x + share * (to - x)).clamp(lowest, highest);
            origin.iter().zip(point).map(move_on).collect()
        };
        let wrong = |share: f64| self.margin(example, &at(share)) <= 0.0;
        let (mut lower, mut upper) = if wrong(1.0) {
            // most of the way has usually been seen to be safe
            let mut ends = (0.9, 1.0);
            for _ in 0..HALVINGS {
                if !wrong(ends.0) {
                    break;
                }
                ends = (0.5 * ends.0, ends.0);
            }
            ends
        } else {
            let stretched = |doublings: i32| 1.0 + EXCESS.0 * 2f64.powi(doublings);
            let enough = (0..=EXCESS.1).find(|doublings| wrong(stretched(*doublings)))?;
            (if enough == 0 { 1.0 } else { stretched(enough - 1) }, stretched(enough))
        };
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (lower + upper);
            if wrong(middle) {
                upper = middle;
            } else {
                lower = middle;
            }
        }
        let difference: Vec<f64> = at(upper).iter().zip(origin).map(|(a, b)| a - b).collect();
        Some(norm2(&difference))
    }
}
