//! Room on the card for the numbers of a pass.

use cudarc::driver::CudaEvent;

use super::card::Card;
use super::error::CardError;
use super::memory::Memory;
use super::plan::{BIAS_PIECES, Kind, Plan, Stage};
use super::tensor::Windows;

/// Where the numbers of a pass are.
pub(crate) struct Buffers {
    /// Inputs of the examples at hand.
    pub input: Memory,
    /// What every stage gave.
    pub given: Vec<Memory>,
    /// Of convolutions that need no columns.
    pub windows: Vec<Option<Windows>>,
    /// Columns of the other convolutions; where the largest numbers of a pool were.
    pub beside: Vec<Option<Memory>>,
    /// Signals of columns.
    pub scratch: Memory,
    /// Signals of what a stage gave and of what it got, in turns; the third is for gradients that are still being made aside.
    pub signals: [Memory; 3],
    /// Pieces of gradients of biases that are not added up yet, on the stream of all and aside.
    pub pieces: [Memory; 2],
    /// Marks the end of every stage's gradient.
    pub made: Vec<CudaEvent>,
    /// Cotangents of the scores.
    pub cotangent: Memory,
}

impl Buffers {
    /// Room for this many examples at once.
    pub fn new(card: &Card, plan: &Plan, at_once: usize) -> Result<Self, CardError> {
        let windows = |stage: &Stage| match &stage.kind {
            Kind::Convolution(weights, window) => Windows::of(card, weights, window),
            _ => Ok(None),
        };
        let windows: Vec<Option<Windows>> = plan.stages.iter().map(windows).collect::<Result<_, _>>()?;
        let beside = |(stage, windows): (&Stage, &Option<Windows>)| match stage.kind {
            Kind::Convolution(..) if windows.is_some() => Ok(None),
            Kind::Convolution(..) => card.numbers(at_once * stage.columns()).map(Some),
            Kind::Pool { .. } => Memory::zeros(&card.stream, at_once * stage.after * 4).map(Some),
            _ => Ok(None),
        };
        let needed = |windows: &Option<Windows>| !windows.as_ref().is_some_and(Windows::go_back);
        let needed = plan.stages.iter().zip(&windows).filter(|(_, windows)| needed(windows));
        let columns = needed.map(|(stage, _)| stage.columns()).max().unwrap_or(0);
        let signal = || card.numbers(at_once * plan.largest());
        let outputs = plan.stages.last().map_or(1, |stage| stage.after);
        let rows = plan.stages.iter().filter_map(|stage| Some(stage.weights()?.rows)).max().unwrap_or(0);
        let pieces = || card.numbers(rows * BIAS_PIECES);
        Ok(Self {
            input: card.numbers(at_once * plan.input[0] * plan.input[1])?,
            given: plan.stages.iter().map(|stage| card.numbers(at_once * stage.after)).collect::<Result<_, _>>()?,
            beside: plan.stages.iter().zip(&windows).map(beside).collect::<Result<_, _>>()?,
            windows,
            scratch: card.numbers(at_once * columns)?,
            signals: [signal()?, signal()?, signal()?],
            pieces: [pieces()?, pieces()?],
            made: plan.stages.iter().map(|_| card.event()).collect::<Result<_, _>>()?,
            cotangent: card.numbers(at_once * outputs)?,
        })
    }

    /// The scores.
    pub fn scores(&self) -> &Memory {
        self.given.last().unwrap_or(&self.input)
    }
}
