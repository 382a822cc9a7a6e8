//! Muon: momentum, then the polar factor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::moments::ScaledMoment;
use super::{Optimiser, OptimiserError, OptimiserState};
use crate::linalg::{Svd, matmul, matmul_nt, norm2, sign};
use crate::numeric::LogScaled;
use crate::params::{Block, ParamLayout};
use crate::schedules::StepContext;

/// How the polar factor is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PolarMethod {
    /// By singular value decomposition.
    #[default]
    Exact,
    /// By the quintic Newton–Schulz iteration X ← aX + (bA + cA²)X, A = XXᵀ, with (a, b, c) = (3.4445,
    /// −4.7750, 2.0315); singular values end in about [0.7, 1.2].
    NewtonSchulz {
        /// Number of iterations; 5 is usual.
        iterations: u32,
    },
}

/// What vectors (blocks with one row or column) do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OtherBlocks {
    /// Their polar factor too: g/‖g‖₂.
    #[default]
    Polar,
    /// sign(g), the hybrid of Muon and sign descent: short for `blocks(matrices=muon, vectors=…)` with normalised sign
    /// descent for the vectors.
    Sign,
}

/// M ← μM + G, W ← W − η polar(M), or polar(G + μM) with Nesterov's variant.
///
/// Without momentum and with the exact polar factor this is normalised steepest descent in the maximum of the blocks'
/// spectral norms (A section 3.2). Jordan et al. 2024.
pub struct Muon {
    momentum: f64,
    nesterov: bool,
    method: PolarMethod,
    others: OtherBlocks,
    moment: ScaledMoment,
    mixed: ScaledMoment,
    blocks: Vec<BlockState>,
    update: Vec<f64>,
}

struct BlockState {
    block: Block,
    svd: Svd,
    x: Vec<f64>,
    square: Vec<f64>,
    polynomial: Vec<f64>,
    next: Vec<f64>,
}

impl Muon {
    /// A Muon for this layout; `momentum` in [0, 1).
    pub fn new(
        momentum: f64,
        nesterov: bool,
        method: PolarMethod,
        others: OtherBlocks,
        layout: &ParamLayout,
    ) -> Result<Self, OptimiserError> {
        super::require("muon", "momentum", momentum, "in [0, 1)", (0.0..1.0).contains(&momentum))?;
        if let PolarMethod::NewtonSchulz { iterations } = method {
            let holds = (1..=100).contains(&iterations);
            super::require("muon", "iterations", f64::from(iterations), "1 to 100", holds)?;
        }
        let blocks = layout
            .trainable()
            .map(|block| {
                let short = block.rows.min(block.cols);
                BlockState {
                    block: block.clone(),
                    svd: Svd::new(block.rows, block.cols),
                    x: vec![0.0; block.len()],
                    square: vec![0.0; short * short],
                    polynomial: vec![0.0; short * short],
                    next: vec![0.0; block.len()],
                }
            })
            .collect();
        let moment = ScaledMoment::new(layout.len());
        let update = vec![0.0; layout.len()];
        Ok(Self { momentum, nesterov, method, others, mixed: moment.clone(), moment, blocks, update })
    }

    /// How far the last update was from the exact polar factor: ‖X − UVᵀ‖_F / ‖UVᵀ‖_F, the largest over the matrix
    /// blocks. Zero for the exact method; costs a decomposition.
    pub fn polar_error(&mut self) -> Result<f64, OptimiserError> {
        let mut worst = 0.0f64;
        for state in &mut self.blocks {
            if state.block.rows == 1 || state.block.cols == 1 {
                continue;
            }
            let range = state.block.range();
            state.svd.factor(&self.mixed.values[range.clone()])?;
            state.svd.polar_factor(&mut state.next);
            let size = norm2(&state.next);
            crate::linalg::add_scaled(&mut state.next, -1.0, &self.update[range]);
            worst = worst.max(if size == 0.0 { 0.0 } else { norm2(&state.next) / size });
        }
        Ok(worst)
    }
}

impl BlockState {
    /// The Newton–Schulz approximation of the polar factor of g, in `self.x`.
    fn newton_schulz(&mut self, g: &[f64], iterations: u32) {
        let (rows, cols) = (self.block.rows, self.block.cols);
        // work on the wide orientation so that the square is the small one
        let (short, long) = (rows.min(cols), rows.max(cols));
        let size = norm2(g);
        for i in 0..rows {
            for j in 0..cols {
                let to = if rows <= cols { i * cols + j } else { j * rows + i };
                self.x[to] = if size > 0.0 { g[i * cols + j] / size } else { 0.0 };
            }
        }
        let (a, b, c) = (3.4445, -4.7750, 2.0315);
        for _ in 0..iterations {
            matmul_nt(&mut self.square, &self.x, &self.x, short, long, short);
            matmul(&mut self.polynomial, &self.square, &self.square, short, short, short);
            for (p, s) in self.polynomial.iter_mut().zip(&self.square) {
                *p = b * s + c * *p;
            }
            matmul(&mut self.next, &self.polynomial, &self.x, short, short, long);
            for (x, n) in self.x.iter_mut().zip(&self.next) {
                *x = a * *x + n;
            }
        }
        if rows > cols {
            for i in 0..rows {
                (0..cols).for_each(|j| self.next[i * cols + j] = self.x[j * rows + i]);
            }
            self.x.copy_from_slice(&self.next);
        }
    }
}

impl Optimiser for Muon {
    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        self.moment.blend(self.momentum, 1.0, gradient);
        self.mixed.copy_from(&self.moment);
        if self.nesterov {
            self.mixed.blend(self.momentum, 1.0, gradient);
        }
        let step = log_step.exp();
        for state in &mut self.blocks {
            let range = state.block.range();
            let g = &self.mixed.values[range.clone()];
            let update = &mut self.update[range.clone()];
            if state.block.rows == 1 || state.block.cols == 1 {
                let size = norm2(g);
                match self.others {
                    OtherBlocks::Sign => update.iter_mut().zip(g).for_each(|(u, x)| *u = sign(*x) + 0.0 * x),
                    OtherBlocks::Polar => {
                        update.iter_mut().zip(g).for_each(|(u, x)| *u = if size == 0.0 { 0.0 } else { x / size });
                    }
                }
            } else if let PolarMethod::NewtonSchulz { iterations } = self.method {
                state.newton_schulz(g, iterations);
                update.copy_from_slice(&state.x);
            } else {
                state.svd.factor(g)?;
                state.svd.polar_factor(update);
            }
            crate::linalg::add_scaled(&mut params[range], -step, update);
        }
        Ok(())
    }

    fn report(&mut self) -> Vec<(&'static str, f64)> {
        vec![("polar_error", self.polar_error().unwrap_or(f64::NAN))]
    }

    fn state(&self) -> OptimiserState {
        self.moment.save("moment", OptimiserState::new("muon"))
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check("muon")?;
        self.moment.load("moment", state)
    }
}
