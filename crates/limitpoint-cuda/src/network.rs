//! Networks on the card.

use std::sync::Arc;

use limitpoint::engine::{Bound, Evaluator};
use limitpoint::linalg::SharedMatrix;
use limitpoint::models::Architecture;
use limitpoint::params::{At, DiagonalMetric, MetricEntry, Parameters, Update, Version};

use super::buffers::Buffers;
use super::card::{Argument, Card, Number};
use super::error::CardError;
use super::memory::{Master, Memory};
use super::passes::Passes;
use super::plan::Plan;
use super::recorder::Recorder;

/// Numbers that are rounded on the host at once, on their way to the card.
const BLOCK: usize = 1 << 20;

/// A network bound to inputs on the card.
pub(crate) struct Network {
    bound: Bound,
    plan: Plan,
    /// Examples there are, and of one pass.
    all: usize,
    at_once: usize,
    /// The rows in use, if not all are.
    chosen: bool,
    inputs: Memory,
    rows: Memory,
    /// The parameters in 64 bits; shared with whoever holds parameters that are only here.
    master: Arc<Master>,
    /// Which parameters they are.
    version: Option<Version>,
    weights: Memory,
    gradient: Memory,
    /// Kind and number of a step, and how many parts the metric has.
    rule: Memory,
    /// The metric that parameters carried last, its parts on the card and how many there are.
    metric: Option<Arc<DiagonalMetric>>,
    parts: Memory,
    metric_parts: usize,
    moved: Memory,
    buffers: Buffers,
    /// The last pass went up in one piece, so that it can come down without going up again.
    whole: bool,
    /// Scores or cotangents on their way between the numbers of the host and of the card.
    travellers: Vec<f32>,
    /// The way up and the step, by the number of examples and whether they are chosen rows.
    recorded: [Recorder<(usize, bool)>; 2],
    card: Card,
}

// SAFETY: graphs and handles are used by whoever owns the network, one thread at a time.
unsafe impl Send for Network {}

/// Which of the two things is recorded.
#[derive(Clone, Copy)]
enum Way {
    Up,
    Step,
}

impl Network {
    /// Copies the inputs to the card.
    pub fn new(architecture: &Architecture, plan: Plan, inputs: &SharedMatrix, card: Card) -> Result<Self, CardError> {
        let (all, length) = (inputs.rows(), architecture.layout().len());
        let at_once = plan.at_once(all);
        let stored = card.numbers(all * inputs.cols())?;
        copy(&card, &stored, inputs.entries())?;
        let network = Self {
            bound: Bound { knows_metrics: true, ..Bound::new(architecture, all) },
            all,
            at_once,
            chosen: false,
            inputs: stored,
            rows: Memory::zeros(&card.stream, all * 4)?,
            master: Arc::new(Master(Memory::zeros(&card.stream, length * 8)?)),
            version: None,
            weights: card.numbers(length)?,
            gradient: card.numbers(length)?,
            rule: Memory::zeros(&card.stream, 24)?,
            metric: None,
            parts: Memory::zeros(&card.stream, 0)?,
            metric_parts: 0,
            moved: Memory::zeros(&card.stream, 4)?,
            buffers: Buffers::new(&card, &plan, at_once)?,
            whole: false,
            travellers: Vec::new(),
            recorded: Default::default(),
            plan,
            card,
        };
        Ok(network)
    }

    fn passes(&self) -> Passes<'_> {
        let (weights, gradient) = (self.weights.at, self.gradient.at);
        Passes { card: &self.card, plan: &self.plan, buffers: &self.buffers, weights, gradient }
    }

    /// Brings the parameters to the card, unless they are there.
    fn take(&mut self, at: &At<'_>) -> Result<(), CardError> {
        if at.version.is_some() && at.version == self.version {
            return Ok(());
        }
        let (entries, count) = (at.entries(), self.bound.layout.len());
        assert_eq!(entries.len(), count, "parameters of another layout");
        if Arc::strong_count(&self.master) > 1 {
            // somebody's parameters are only there: they stay, and these get room of their own
            self.master = Arc::new(Master(Memory::zeros(&self.card.stream, count * 8)?));
            self.recorded = Default::default();
        }
        self.version = None;
        self.master.0.write(0, entries)?;
        let arguments = [(&self.weights).into(), (&self.master.0).into(), Argument::Wide(count as i64)];
        self.card.launch_fours("round_to", count, &arguments)?;
        self.version = at.version;
        Ok(())
    }

    /// Brings the metric that parameters carry to the card, unless it is there. Answers how many parts it has: none, where they
    /// carry none, and nothing moves.
    fn take_metric(&mut self, params: &Parameters) -> Result<usize, CardError> {
        let Some(metric) = params.metric() else { return Ok(0) };
        if !self.metric.as_ref().is_some_and(|known| Arc::ptr_eq(known, metric)) {
            self.card.context.bind_to_thread().map_err(CardError::driver("reaching the card"))?;
            let parts = table(metric);
            // in a place of their own, which recorded steps do not know
            self.parts = Memory::zeros(&self.card.stream, size_of_val(&parts[..]))?;
            self.recorded = Default::default();
            self.parts.write(0, &parts)?;
            (self.metric, self.metric_parts) = (Some(metric.clone()), parts.len());
        }
        Ok(self.metric_parts)
    }

    /// Examples from `first` on that go through in one pass.
    fn pieces(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (examples, at_once) = (self.bound.examples, self.at_once);
        (0..examples).step_by(at_once).map(move |first| (first, at_once.min(examples - first)))
    }

    fn up(&self, first: usize, n: usize) -> Result<(), CardError> {
        self.passes().up(&self.inputs, self.chosen.then_some(&self.rows), first, n)
    }

    fn try_score(&mut self, at: &At<'_>) -> Result<(), CardError> {
        self.card.context.bind_to_thread().map_err(CardError::driver("reaching the card"))?;
        self.take(at)?;
        let (outputs, examples) = (self.bound.outputs, self.bound.examples);
        self.whole = examples <= self.at_once;
        let mut scores = std::mem::take(&mut self.bound.scores);
        for (first, n) in self.pieces() {
            if self.whole {
                self.recorded(Way::Up, n, |network| network.up(0, n))?;
            } else {
                self.up(first, n)?;
            }
            let into = &mut scores[first * outputs..(first + n) * outputs];
            match self.card.number {
                Number::F64 => self.buffers.scores().read(into)?,
                Number::F32 => {
                    self.travellers.resize(into.len(), 0.0);
                    self.buffers.scores().read(&mut self.travellers)?;
                    into.iter_mut().zip(&self.travellers).for_each(|(to, from)| *to = f64::from(*from));
                }
            }
        }
        self.bound.scores = scores;
        Ok(())
    }

    /// Writes the cotangents of the examples from `first` on.
    fn bring_down(&mut self, cotangent: &[f64], first: usize, n: usize) -> Result<(), CardError> {
        let outputs = self.bound.outputs;
        copy(&self.card, &self.buffers.cotangent, &cotangent[first * outputs..(first + n) * outputs])
    }

    /// The gradient at the parameters scored last, on the card.
    fn descend(&mut self, cotangent: &[f64]) -> Result<(), CardError> {
        for (first, n) in self.pieces() {
            if !self.whole {
                self.up(first, n)?;
            }
            self.bring_down(cotangent, first, n)?;
            self.passes().down(n, first > 0)?;
        }
        Ok(())
    }

    fn try_pull_back(&mut self, cotangent: &[f64], gradient: &mut [f64]) -> Result<(), CardError> {
        if self.bound.examples == 0 {
            gradient.fill(0.0);
            return Ok(());
        }
        self.card.context.bind_to_thread().map_err(CardError::driver("reaching the card"))?;
        // the weights on the card are those that were scored last
        self.descend(cotangent)?;
        match self.card.number {
            Number::F64 => self.gradient.read(gradient),
            Number::F32 => {
                self.travellers.resize(gradient.len(), 0.0);
                self.gradient.read(&mut self.travellers)?;
                gradient.iter_mut().zip(&self.travellers).for_each(|(to, from)| *to = f64::from(*from));
                Ok(())
            }
        }
    }

    fn try_step(&mut self, params: &mut Parameters, cotangent: &[f64], rule: [f64; 3]) -> Result<bool, CardError> {
        if self.bound.examples == 0 {
            return Ok(false);
        }
        self.card.context.bind_to_thread().map_err(CardError::driver("reaching the card"))?;
        self.take(&At::from(&*params))?;
        self.rule.write(0, &rule)?;
        if !self.chosen {
            self.moved.write(0, &[0i32])?;
        }
        if self.whole {
            let n = self.bound.examples;
            self.bring_down(cotangent, 0, n)?;
            self.recorded(Way::Step, n, |network| {
                network.passes().down(n, false)?;
                network.update()
            })?;
        } else {
            self.descend(cotangent)?;
            self.update()?;
        }
        self.version = Some(params.moved(self.master.clone()));
        // the host goes on while a batch is still on its way down
        if self.chosen {
            return Ok(true);
        }
        let mut moved = [0i32];
        self.moved.read(&mut moved)?;
        Ok(moved[0] != 0)
    }

    /// The step of all parameters.
    fn update(&self) -> Result<(), CardError> {
        let count = self.bound.layout.len();
        let arguments = [
            (&self.master.0).into(),
            (&self.weights).into(),
            (&self.gradient).into(),
            Argument::Wide(count as i64),
            (&self.rule).into(),
            (&self.parts).into(),
            (&self.moved).into(),
        ];
        self.card.launch_fours("update", count, &arguments)
    }

    /// Does something for `n` examples, from the third time on in one piece.
    fn recorded(&mut self, way: Way, n: usize, work: impl Fn(&Self) -> Result<(), CardError>) -> Result<(), CardError> {
        let mut recorder = std::mem::take(&mut self.recorded[way as usize]);
        let done = recorder.run(&self.card, (n, self.chosen), || work(self));
        self.recorded[way as usize] = recorder;
        done
    }

    /// Remembers what kept the card from computing; no number is one from here on.
    fn fail(&mut self, error: &CardError) {
        self.bound.failure.get_or_insert_with(|| format!("the card: {error}; {}", error.remedy()));
        self.bound.resize(self.bound.examples);
        self.bound.scores.fill(f64::NAN);
        self.version = None;
    }
}

/// Parts of a metric as the kernels read them: end, function, λ, exponent, factor; what lies between two parts has the factor 0.
fn table(metric: &DiagonalMetric) -> Vec<[f64; 5]> {
    let (mut parts, mut end) = (Vec::new(), 0);
    for (range, entry, factor) in metric.parts() {
        if range.start > end {
            parts.push([range.start as f64, 0.0, 0.0, 0.0, 0.0]);
        }
        end = range.end;
        let [kind, lambda, exponent] = match *entry {
            MetricEntry::One => [0.0, 0.0, 0.0],
            MetricEntry::Hyperbolic { lambda } => [1.0, lambda, 0.0],
            MetricEntry::Power { p, lambda } => [2.0, lambda, p],
        };
        parts.push([end as f64, kind, lambda, exponent, *factor]);
    }
    parts
}

/// Numbers of the host on the card, in the numbers of its products.
fn copy(card: &Card, to: &Memory, numbers: &[f64]) -> Result<(), CardError> {
    match card.number {
        Number::F64 => to.write(0, numbers),
        Number::F32 => {
            for (index, block) in numbers.chunks(BLOCK).enumerate() {
                // ordinary memory: the driver has taken it when this returns
                let rounded: Vec<f32> = block.iter().map(|number| *number as f32).collect();
                to.write(index * BLOCK * 4, &rounded)?;
            }
            Ok(())
        }
    }
}

impl Evaluator for Network {
    fn bound(&self) -> &Bound {
        &self.bound
    }

    fn select(&mut self, rows: Option<&[usize]>) {
        self.chosen = rows.is_some();
        self.whole = false;
        self.bound.resize(rows.map_or(self.all, <[usize]>::len));
        if let Some(rows) = rows {
            let (most, there) = (self.all, rows.iter().all(|row| *row < self.all));
            assert!(rows.len() <= most && there, "rows are some of {most} examples");
            let indices: Vec<i32> = rows.iter().map(|row| i32::try_from(*row).unwrap_or(i32::MAX)).collect();
            let written = self.card.context.bind_to_thread().map_err(CardError::driver("reaching the card"));
            if let Err(error) = written.and_then(|()| self.rows.write(0, &indices)) {
                self.fail(&error);
            }
        }
    }

    fn score(&mut self, at: At<'_>) {
        if self.bound.failure.is_some() {
            self.bound.scores.fill(f64::NAN);
        } else if let Err(error) = self.try_score(&at) {
            self.fail(&error);
        }
    }

    fn pull_back(&mut self, _: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        assert_eq!(gradient.len(), self.bound.layout.len(), "a gradient is as long as the parameters");
        if self.bound.failure.is_some() {
            gradient.fill(f64::NAN);
        } else if let Err(error) = self.try_pull_back(cotangent, gradient) {
            self.fail(&error);
            gradient.fill(f64::NAN);
        }
    }

    fn step(&mut self, params: &mut Parameters, cotangent: &[f64], update: Update, scratch: &mut [f64]) -> bool {
        if self.bound.failure.is_some() {
            return true;
        }
        let rule = match update {
            Update::Along(factor) => Ok([0.0, factor, 0.0]),
            Update::AgainstSigns(length) => Ok([1.0, length, 0.0]),
            Update::Metric(factor) => self.take_metric(params).map(|parts| [2.0, factor, parts as f64]),
            Update::Host => {
                self.pull_back(At::from(&*params), cotangent, scratch);
                return scratch.iter().any(|g| *g != 0.0);
            }
        };
        rule.and_then(|rule| self.try_step(params, cotangent, rule)).unwrap_or_else(|error| {
            self.fail(&error);
            true
        })
    }
}
