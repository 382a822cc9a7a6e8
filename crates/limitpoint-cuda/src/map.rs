//! A model at settled parameters as a function of its inputs, for attacks.

use std::sync::Arc;

use limitpoint::engine::InputMap;
use limitpoint::linalg::Panels;

use super::buffers::Buffers;
use super::card::{Argument, Card, Number};
use super::error::CardError;
use super::memory::Memory;
use super::passes::Passes;
use super::plan::Plan;
use super::recorder::Recorder;

/// The model, and room for it on the card once examples have come.
pub(crate) struct Map {
    plan: Arc<Plan>,
    params: Arc<Vec<f64>>,
    machine: Option<Machine>,
    /// What kept the card from computing.
    failure: Option<String>,
}

// SAFETY: graphs are used by whoever owns the map, one thread at a time.
unsafe impl Send for Machine {}

/// What computes it.
struct Machine {
    card: Card,
    weights: Memory,
    inputs: Memory,
    gradient: Memory,
    buffers: Buffers,
    /// The ways up and down, by the number of examples.
    recorded: [Recorder<usize>; 2],
    /// Examples there is room for, and those scored last.
    room: usize,
    examples: usize,
    /// Numbers example by example, on their way between panels and card.
    travellers: Vec<f32>,
}

impl Map {
    /// Brings the parameters to the card.
    pub fn new(plan: Plan, params: &[f64]) -> Result<Self, CardError> {
        let machine = Some(Machine::new(&plan, params, 1)?);
        Ok(Self { plan: Arc::new(plan), params: Arc::new(params.to_vec()), machine, failure: None })
    }

    /// Computes on the machine, with room for so many examples. Answers whether the card did it.
    fn compute(&mut self, room: usize, work: impl FnOnce(&mut Machine, &Plan) -> Result<(), CardError>) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let machine = match self.machine.take() {
            Some(machine) if machine.room >= room => Ok(machine),
            _ => Machine::new(&self.plan, &self.params, room),
        };
        let done = machine.and_then(|machine| work(self.machine.insert(machine), &self.plan));
        if let Err(error) = &done {
            self.failure.get_or_insert_with(|| format!("{error}; {}", error.remedy()));
        }
        done.is_ok()
    }
}

impl Machine {
    fn new(plan: &Plan, params: &[f64], room: usize) -> Result<Self, CardError> {
        let card = Card::open(Number::F32)?;
        let (master, weights) = (Memory::zeros(&card.stream, params.len() * 8)?, card.numbers(params.len())?);
        master.write(0, params)?;
        card.launch_fours(
            "round_to",
            params.len(),
            &[(&weights).into(), (&master).into(), Argument::Wide(params.len() as i64)],
        )?;
        let features = plan.input[0] * plan.input[1];
        let machine = Self {
            inputs: card.numbers(room * features)?,
            gradient: card.numbers(room * features)?,
            buffers: Buffers::new(&card, plan, room)?,
            recorded: Default::default(),
            weights,
            room,
            examples: 0,
            travellers: Vec::new(),
            card,
        };
        machine.card.stream.synchronize().map_err(CardError::driver("copying parameters"))?;
        Ok(machine)
    }

    fn passes<'a>(&'a self, plan: &'a Plan) -> Passes<'a> {
        // no gradient of parameters is made
        Passes { card: &self.card, plan, buffers: &self.buffers, weights: self.weights.at, gradient: 0 }
    }

    fn here(&self) -> Result<(), CardError> {
        self.card.context.bind_to_thread().map_err(CardError::driver("reaching the card"))
    }

    /// Does something for the examples at hand, from the third time on in one piece.
    fn recorded(&mut self, way: usize, work: impl Fn(&Self) -> Result<(), CardError>) -> Result<(), CardError> {
        let mut recorder = std::mem::take(&mut self.recorded[way]);
        let done = recorder.run(&self.card, self.examples, || work(self));
        self.recorded[way] = recorder;
        done
    }

    fn scores(&mut self, plan: &Plan, inputs: &Panels<f32>, scores: &mut Panels<f32>) -> Result<(), CardError> {
        self.here()?;
        self.examples = inputs.cols();
        unpack(inputs, &mut self.travellers);
        self.inputs.write(0, &self.travellers)?;
        self.recorded(0, |machine| machine.passes(plan).up(&machine.inputs, None, 0, machine.examples))?;
        self.travellers.resize(self.examples * scores.rows(), 0.0);
        self.buffers.scores().read(&mut self.travellers)?;
        pack(&self.travellers, scores);
        Ok(())
    }

    fn pull_back(&mut self, plan: &Plan, cotangent: &Panels<f32>, gradient: &mut Panels<f32>) -> Result<(), CardError> {
        self.here()?;
        unpack(cotangent, &mut self.travellers);
        self.buffers.cotangent.write(0, &self.travellers)?;
        self.recorded(1, |machine| machine.passes(plan).down_to_inputs(machine.examples, &machine.gradient))?;
        self.travellers.resize(self.examples * gradient.rows(), 0.0);
        self.gradient.read(&mut self.travellers)?;
        pack(&self.travellers, gradient);
        Ok(())
    }
}

/// Columns of panels, one after the other.
fn unpack(panels: &Panels<f32>, to: &mut Vec<f32>) {
    let (rows, cols, width) = (panels.rows(), panels.cols(), panels.width());
    to.resize(rows * cols, 0.0);
    for (n, to) in to.chunks_exact_mut(rows).enumerate() {
        let from = panels.offset(n / width, 0) + n % width;
        to.iter_mut().enumerate().for_each(|(row, to)| *to = panels.data()[from + row * width]);
    }
}

/// The other way round.
fn pack(from: &[f32], panels: &mut Panels<f32>) {
    let (rows, width) = (panels.rows(), panels.width());
    for (n, from) in from.chunks_exact(rows).enumerate() {
        let at = panels.offset(n / width, 0) + n % width;
        from.iter().enumerate().for_each(|(row, value)| panels.data_mut()[at + row * width] = *value);
    }
}

impl InputMap<f32> for Map {
    fn features(&self) -> usize {
        self.plan.input[0] * self.plan.input[1]
    }

    fn outputs(&self) -> usize {
        self.plan.stages.last().map_or(0, |stage| stage.after)
    }

    fn scores(&mut self, inputs: &Panels<f32>, scores: &mut Panels<f32>) {
        if !self.compute(inputs.cols(), |machine, plan| machine.scores(plan, inputs, scores)) {
            scores.data_mut().fill(f32::NAN);
        }
    }

    fn pull_back(&mut self, cotangent: &Panels<f32>, gradient: &mut Panels<f32>) {
        // after scores that came to nothing there is nothing to pull back
        let scored = self.machine.as_ref().is_some_and(|machine| machine.examples == cotangent.cols());
        if !scored || !self.compute(0, |machine, plan| machine.pull_back(plan, cotangent, gradient)) {
            gradient.data_mut().fill(f32::NAN);
        }
    }

    fn fork(&self) -> Box<dyn InputMap<f32>> {
        Box::new(Self { plan: self.plan.clone(), params: self.params.clone(), machine: None, failure: None })
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}
