//! The way up, from inputs to scores, and the way down, from cotangents to the gradient.
//!
//! ```text
//! convolution   columns of a;  Z = W·C      δW = δZ·Cᵀ    δC = Wᵀ·δZ, summed back into images
//! dense         Z = A·Wᵀ                    δW = δZᵀ·A    δA = δZ·W
//! ```
//!
//! Images lie channel by channel with all examples side by side, so that a convolution is one product; vectors lie example by
//! example. Every stage keeps what it gave, which the way down reads again.

use limitpoint::models::Window;

use super::buffers::Buffers;
use super::card::{Argument, Card};
use super::error::CardError;
use super::memory::Memory;
use super::plan::{Kind, Plan, Stage, Weights, bias_piece, places};
use super::products::{Operand, Sides};
use super::tensor::Convolution;

/// What a pass works with.
pub(crate) struct Passes<'a> {
    pub card: &'a Card,
    pub plan: &'a Plan,
    pub buffers: &'a Buffers,
    /// The parameters, in the numbers of the products.
    pub weights: u64,
    /// The gradient, likewise.
    pub gradient: u64,
}

fn int(number: usize) -> Argument {
    Argument::Int(i32::try_from(number).unwrap_or(i32::MAX))
}

fn wide(number: usize) -> Argument {
    Argument::Wide(i64::try_from(number).unwrap_or(i64::MAX))
}

impl Passes<'_> {
    fn parameter(&self, entry: usize) -> u64 {
        self.weights + (entry * self.card.number.bytes()) as u64
    }

    fn gradient_of(&self, entry: usize) -> u64 {
        self.gradient + (entry * self.card.number.bytes()) as u64
    }

    /// Scores of `n` examples: `rows[first..]` of the inputs, or the inputs from `first` on.
    pub fn up(&self, inputs: &Memory, rows: Option<&Memory>, first: usize, n: usize) -> Result<(), CardError> {
        let ([channels, plane], buffers) = (self.plan.input, self.buffers);
        let rows = Argument::Place(rows.map_or(0, |rows| rows.at));
        let arguments = [(&buffers.input).into(), inputs.into(), rows, int(first), int(n), int(channels), int(plane)];
        self.card.launch("gather", n * channels * plane, 1, &arguments)?;
        let mut from = &buffers.input;
        for (index, (stage, to)) in self.plan.stages.iter().zip(&buffers.given).enumerate() {
            self.stage_up(index, stage, n, from, to)?;
            from = to;
        }
        Ok(())
    }

    /// Columns of a stage, or where its largest numbers were.
    fn beside(&self, index: usize) -> u64 {
        self.buffers.beside[index].as_ref().map_or(0, |memory| memory.at)
    }

    /// The convolution of a stage, if it needs no columns.
    fn convolution<'a>(
        &'a self,
        index: usize,
        weights: &'a Weights,
        window: &'a Window,
        n: usize,
    ) -> Option<Convolution<'a>> {
        let windows = self.buffers.windows[index].as_ref()?;
        Some(Convolution { weights, window, windows, n })
    }

    fn stage_up(&self, index: usize, stage: &Stage, n: usize, from: &Memory, to: &Memory) -> Result<(), CardError> {
        let (card, beside) = (self.card, self.beside(index));
        match &stage.kind {
            Kind::Dense(weights) => {
                let Weights { rows, cols, matrix, .. } = *weights;
                let w = Operand::transposed(self.parameter(matrix), cols);
                card.product(
                    Sides { rows: n, cols: rows, inner: cols },
                    Operand::plain(from.at, cols),
                    w,
                    to.at,
                    false,
                )?;
                self.add_bias(weights, to, n * rows, 1)
            }
            Kind::Convolution(weights, window) => {
                let (Weights { rows, cols, matrix, .. }, all) = (*weights, n * places(window));
                let channels = cols / (window.size[0] * window.size[1]);
                if let Some(layer) = self.convolution(index, weights, window, n) {
                    let bias = weights.bias.map_or(0, |bias| self.parameter(bias));
                    let added = card.convolve(layer, self.parameter(matrix), bias, from.at, to.at)?;
                    return if added { Ok(()) } else { self.add_bias(weights, to, rows * all, all) };
                }
                let columns = [Argument::Place(beside), from.into(), int(n), Argument::window(window)];
                card.launch("columns", all, channels, &columns)?;
                let (w, columns) = (Operand::plain(self.parameter(matrix), cols), Operand::plain(beside, all));
                card.product(Sides { rows, cols: all, inner: cols }, w, columns, to.at, false)?;
                self.add_bias(weights, to, rows * all, all)
            }
            Kind::Pool { window, channels, largest, then: (kind, slope) } => {
                let (images, largest) = (n * channels, int(usize::from(*largest)));
                let [kind, slope] = [Argument::Int(*kind), Argument::Real(*slope)];
                let beside = Argument::Place(beside);
                let arguments =
                    [to.into(), beside, from.into(), int(images), Argument::window(window), largest, kind, slope];
                card.launch("pool", images * places(window), 1, &arguments)
            }
            Kind::Curve { kind, slope, exponent } => {
                let count = n * stage.after;
                let curve = [Argument::Int(*kind), Argument::Real(*slope), Argument::Int(*exponent)];
                let [kind, slope, exponent] = curve;
                card.launch_fours("activate", count, &[to.into(), from.into(), wide(count), kind, slope, exponent])
            }
            Kind::Flatten { channels, plane } => {
                let arguments = [to.into(), from.into(), int(n), int(*channels), int(*plane), int(0)];
                card.launch("flatten", n * stage.after, 1, &arguments)
            }
        }
    }

    fn add_bias(&self, weights: &Weights, to: &Memory, count: usize, inner: usize) -> Result<(), CardError> {
        let Some(bias) = weights.bias else { return Ok(()) };
        let bias = Argument::Place(self.parameter(bias));
        self.card.launch("add_bias", count, 1, &[to.into(), bias, int(count), int(inner), int(weights.rows)])
    }

    /// The gradient of the `n` examples that went up last, for the cotangents in their buffer; added to what is there if `add`.
    ///
    /// Gradients of parameters are made aside, while the signals go on down.
    pub fn down(&self, n: usize, add: bool) -> Result<(), CardError> {
        let buffers = self.buffers;
        let weights = |index: usize| self.plan.stages.get(index)?.weights();
        let trained = |index| weights(index).is_some_and(|weights| !weights.frozen);
        let mut signal = &buffers.cotangent;
        for (index, stage) in self.plan.stages.iter().enumerate().rev() {
            let from = if index == 0 { &buffers.input } else { &buffers.given[index - 1] };
            if index == self.plan.lowest {
                self.gradient_of_stage(index, stage, n, from, signal, add)?;
                break;
            }
            if trained(index) {
                self.card.aside(&buffers.made[index], || self.gradient_of_stage(index, stage, n, from, signal, add))?;
            }
            // the buffer that is written now held the signals of the stage two above
            if trained(index + 2) {
                self.card.wait(&buffers.made[index + 2])?;
            }
            let below = &buffers.signals[index % 3];
            self.stage_down(index, stage, n, from, signal, below)?;
            signal = below;
        }
        // the latest made aside is the last of all
        match (self.plan.lowest + 1..self.plan.stages.len()).find(|index| trained(*index)) {
            Some(index) => self.card.wait(&buffers.made[index]),
            None => Ok(()),
        }
    }

    /// The gradient of the inputs of the `n` examples that went up last, example by example.
    pub fn down_to_inputs(&self, n: usize, to: &Memory) -> Result<(), CardError> {
        let buffers = self.buffers;
        let mut signal = &buffers.cotangent;
        for (index, stage) in self.plan.stages.iter().enumerate().rev() {
            let from = if index == 0 { &buffers.input } else { &buffers.given[index - 1] };
            let below = &buffers.signals[index % 3];
            self.stage_down(index, stage, n, from, signal, below)?;
            signal = below;
        }
        let [channels, plane] = self.plan.input;
        let arguments = [to.into(), signal.into(), int(n), int(channels), int(plane), int(0)];
        self.card.launch("flatten", n * channels * plane, 1, &arguments)
    }

    fn gradient_of_stage(
        &self,
        index: usize,
        stage: &Stage,
        n: usize,
        from: &Memory,
        signal: &Memory,
        add: bool,
    ) -> Result<(), CardError> {
        let (weights, count, inner) = match &stage.kind {
            Kind::Dense(weights) if !weights.frozen => {
                let Weights { rows, cols, matrix, .. } = *weights;
                let (a, b) = (Operand::transposed(signal.at, rows), Operand::plain(from.at, cols));
                self.card.product(Sides { rows, cols, inner: n }, a, b, self.gradient_of(matrix), add)?;
                (weights, n * rows, 1)
            }
            Kind::Convolution(weights, window) if !weights.frozen => {
                let (Weights { rows, cols, matrix, .. }, all) = (*weights, n * places(window));
                let to = self.gradient_of(matrix);
                match self.convolution(index, weights, window, n) {
                    Some(layer) => self.card.kernel_gradient(layer, signal.at, from.at, to, add)?,
                    None => {
                        let (a, b) = (Operand::plain(signal.at, all), Operand::transposed(self.beside(index), all));
                        self.card.product(Sides { rows, cols, inner: all }, a, b, to, add)?;
                    }
                }
                (weights, rows * all, all)
            }
            _ => return Ok(()),
        };
        let Some(bias) = weights.bias else { return Ok(()) };
        let (to, signals) = (self.gradient_of(bias), count / weights.rows);
        let (piece, pieces) = (bias_piece(signals), &self.buffers.pieces[self.card.place()]);
        let number = signals.div_ceil(piece).max(1);
        let launch = |to: u64, add: bool| {
            let [count, inner, rows, piece] = [count, inner, weights.rows, piece].map(int);
            let arguments = [Argument::Place(to), signal.into(), count, inner, rows, piece, int(usize::from(add))];
            self.card.launch_blocks("bias_gradient", (weights.rows as u32, number as u32, 1), &arguments)
        };
        if number == 1 {
            return launch(to, add);
        }
        launch(pieces.at, false)?;
        self.card.add_up(to, pieces.at, weights.rows, number, add)
    }

    fn stage_down(
        &self,
        index: usize,
        stage: &Stage,
        n: usize,
        from: &Memory,
        signal: &Memory,
        below: &Memory,
    ) -> Result<(), CardError> {
        let card = self.card;
        match &stage.kind {
            Kind::Dense(Weights { rows, cols, matrix, .. }) => {
                let w = Operand::plain(self.parameter(*matrix), *cols);
                let sides = Sides { rows: n, cols: *cols, inner: *rows };
                card.product(sides, Operand::plain(signal.at, *rows), w, below.at, false)
            }
            Kind::Convolution(weights, window) => {
                if let Some(layer) = self.convolution(index, weights, window, n)
                    && card.convolve_back(layer, self.parameter(weights.matrix), signal.at, below.at)?
                {
                    return Ok(());
                }
                let Weights { rows, cols, matrix, .. } = weights;
                let (all, scratch) = (n * places(window), &self.buffers.scratch);
                let w = Operand::transposed(self.parameter(*matrix), *cols);
                let product = Sides { rows: *cols, cols: all, inner: *rows };
                card.product(product, w, Operand::plain(signal.at, all), scratch.at, false)?;
                let channels = cols / (window.size[0] * window.size[1]);
                let pixels = n * window.before[0] * window.before[1];
                card.launch(
                    "images",
                    pixels,
                    channels,
                    &[below.into(), scratch.into(), int(n), Argument::window(window)],
                )
            }
            Kind::Pool { window, channels, largest, then: (kind, slope) } => {
                let images = n * channels;
                let arguments = [
                    below.into(),
                    Argument::Place(self.beside(index)),
                    signal.into(),
                    (&self.buffers.given[index]).into(),
                    int(images),
                    Argument::window(window),
                    int(usize::from(*largest)),
                    Argument::Int(*kind),
                    Argument::Real(*slope),
                ];
                let Window { before: [height, width], size, stride, .. } = *window;
                if size == [stride; 2] {
                    let windows = height.div_ceil(stride) * width.div_ceil(stride);
                    card.launch("unpool_apart", images * windows, 1, &arguments)
                } else {
                    card.launch("unpool", images * height * width, 1, &arguments)
                }
            }
            Kind::Curve { kind, slope, exponent } => {
                let count = n * stage.before;
                let [kind, slope, exponent] = [Argument::Int(*kind), Argument::Real(*slope), Argument::Int(*exponent)];
                let arguments = [below.into(), signal.into(), from.into(), wide(count), kind, slope, exponent];
                card.launch_fours("slopes", count, &arguments)
            }
            Kind::Flatten { channels, plane } => {
                let arguments = [below.into(), signal.into(), int(n), int(*channels), int(*plane), int(1)];
                card.launch("flatten", n * stage.before, 1, &arguments)
            }
        }
    }
}
