//! Shampoo.

use super::{Optimiser, OptimiserError, OptimiserState};
use crate::linalg::{Eigen, Svd, matmul, matmul_nt, matmul_tn};
use crate::numeric::LogScaled;
use crate::params::{Block, ParamLayout};
use crate::schedules::StepContext;

/// W⁺ = W − η L^{−a} G R^{−a} on every matrix block, a = 1/4 in A eq. 76.
///
/// ```text
/// accumulating   L ← L + G Gᵀ,  R ← R + Gᵀ G,  starting from ε I
/// not            L = G Gᵀ, R = Gᵀ G, so that L^{−1/4} G R^{−1/4} = U Vᵀ, the polar factor (A eq. 77)
/// ```
///
/// The implementation that A cites takes a = 1/2, whose steps shrink while L and R accumulate. Powers are of the
/// pseudo-inverse: singular directions below rounding do not move. With accumulation off this is
/// normalised steepest descent in the maximum of the blocks' spectral norms. L and R keep their scale apart, so tiny
/// gradients accumulate exactly.
pub(super) struct Shampoo {
    accumulate: bool,
    epsilon: f64,
    power: f64,
    blocks: Vec<BlockState>,
}

struct BlockState {
    block: Block,
    svd: Option<Svd>,
    /// Common scale of `left` and `right`, as the logarithm of a squared gradient.
    log_scale: f64,
    left: Vec<f64>,
    right: Vec<f64>,
    left_eigen: Eigen,
    right_eigen: Eigen,
    left_root: Vec<f64>,
    right_root: Vec<f64>,
    product: Vec<f64>,
    update: Vec<f64>,
}

impl Shampoo {
    pub fn new(accumulate: bool, epsilon: f64, power: f64, layout: &ParamLayout) -> Result<Self, OptimiserError> {
        super::require("shampoo", "epsilon", epsilon, "0 or more and finite", epsilon >= 0.0 && epsilon.is_finite())?;
        let allowed = power > 0.0 && power.is_finite() && (accumulate || power == 0.25);
        super::require("shampoo", "power", power, "above 0, and 0.25 where nothing accumulates", allowed)?;
        let blocks = layout.trainable().map(|block| BlockState::new(block, accumulate, epsilon)).collect();
        Ok(Self { accumulate, epsilon, power, blocks })
    }
}

impl BlockState {
    fn new(block: &Block, accumulate: bool, epsilon: f64) -> Self {
        let (rows, cols) = if accumulate { (block.rows, block.cols) } else { (0, 0) };
        let start = |size: usize| {
            let mut matrix = vec![0.0; size * size];
            if epsilon > 0.0 {
                (0..size).for_each(|i| matrix[i * size + i] = 1.0);
            }
            matrix
        };
        Self {
            block: block.clone(),
            svd: (!accumulate).then(|| Svd::new(block.rows, block.cols)),
            log_scale: epsilon.ln(),
            left: start(rows),
            right: start(cols),
            left_eigen: Eigen::new(rows),
            right_eigen: Eigen::new(cols),
            left_root: vec![0.0; rows * rows],
            right_root: vec![0.0; cols * cols],
            product: vec![0.0; rows.max(cols).pow(2).max(rows * cols)],
            update: vec![0.0; block.len()],
        }
    }

    /// Adds e^{2s} G Gᵀ and e^{2s} Gᵀ G.
    fn accumulate(&mut self, g: &[f64], log_scale: f64) {
        let (rows, cols) = (self.block.rows, self.block.cols);
        let scale = self.log_scale.max(2.0 * log_scale);
        if scale == f64::NEG_INFINITY {
            return;
        }
        let keep = (self.log_scale - scale).exp();
        let add = (2.0 * log_scale - scale).exp();
        matmul_nt(&mut self.product, g, g, rows, cols, rows);
        for (sum, x) in self.left.iter_mut().zip(&self.product) {
            *sum = keep * *sum + add * x;
        }
        matmul_tn(&mut self.product, g, g, cols, rows, cols);
        for (sum, x) in self.right.iter_mut().zip(&self.product) {
            *sum = keep * *sum + add * x;
        }
        self.log_scale = scale;
    }

    /// update = L^{−a} G R^{−a} in units of exp(ln scale of G − 2a ln scale of L).
    fn precondition(&mut self, g: &[f64], power: f64) -> Result<(), OptimiserError> {
        let (rows, cols) = (self.block.rows, self.block.cols);
        self.left_eigen.factor(&self.left)?;
        self.right_eigen.factor(&self.right)?;
        inverse_power(&self.left_eigen, power, &mut self.left_root);
        inverse_power(&self.right_eigen, power, &mut self.right_root);
        matmul(&mut self.product, &self.left_root, g, rows, rows, cols);
        matmul(&mut self.update, &self.product, &self.right_root, rows, cols, cols);
        Ok(())
    }
}

/// A power of the pseudo-inverse: eigenvalues below n ε λ_max count as zero.
fn inverse_power(eigen: &Eigen, power: f64, out: &mut [f64]) {
    let values = eigen.values();
    let floor = values.last().unwrap_or(&0.0) * values.len() as f64 * f64::EPSILON;
    eigen.recompose(|value| if value > floor { value.powf(-power) } else { 0.0 }, out);
}

impl Optimiser for Shampoo {
    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        for state in &mut self.blocks {
            let range = state.block.range();
            let g = &gradient.direction[range.clone()];
            let factor = if let Some(svd) = &mut state.svd {
                svd.factor(g)?;
                svd.polar_factor(&mut state.update);
                log_step.exp()
            } else {
                state.accumulate(g, gradient.log_scale);
                if state.log_scale == f64::NEG_INFINITY {
                    continue; // nothing but zeros so far
                }
                state.precondition(g, self.power)?;
                super::step_factor(log_step, gradient.log_scale - 2.0 * self.power * state.log_scale)
            };
            crate::linalg::add_scaled(&mut params[range], -factor, &state.update);
        }
        Ok(())
    }

    fn state(&self) -> OptimiserState {
        let mut out = OptimiserState::new("shampoo").with_number("accumulate", f64::from(u8::from(self.accumulate)));
        for state in &self.blocks {
            let name = &state.block.name;
            out = out
                .with_number(&format!("{name}.log_scale"), state.log_scale)
                .with_vector(&format!("{name}.left"), &state.left)
                .with_vector(&format!("{name}.right"), &state.right);
        }
        out
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check("shampoo")?;
        if (state.number("accumulate")? != 0.0) != self.accumulate {
            let what =
                format!("accumulation was {}, now {} (epsilon {})", !self.accumulate, self.accumulate, self.epsilon);
            return Err(OptimiserError::WrongState { optimiser: "shampoo", what });
        }
        for block in &mut self.blocks {
            let name = block.block.name.clone();
            block.log_scale = state.number(&format!("{name}.log_scale"))?;
            state.read_vector(&format!("{name}.left"), &mut block.left)?;
            state.read_vector(&format!("{name}.right"), &mut block.right)?;
        }
        Ok(())
    }
}
