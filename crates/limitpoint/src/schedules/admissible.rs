//! The step under which gradient descent provably keeps the margin of smooth homogeneous networks.

use super::{Schedule, StepContext};
use crate::losses::DescentScale;

/// η = c · H(L), H(x) = μ(x)/(C κ(x)) with the functions of [`DescentScale`].
///
/// ```text
/// C = ½ (B₁² + ρ(t₀)^{−d} B₂) γ̂(t₀)^{−2} B₀^{2/d}
/// ```
///
/// Up to c = 1 every step of descent with exponential loss lowers the loss and raises γ̂ (D Theorem E.2, condition
/// (S5)); H grows like 1/(L (ln 1/L)^{3−2/d}), a little more slowly than 1/L. At losses above the first one, which no
/// admissible step reaches, the step is that of the first one. D.s5.
#[derive(Debug, Clone, Copy)]
pub(super) struct Admissible {
    pub(super) scale: DescentScale,
    /// ln(C/c).
    pub(super) log_curvature: f64,
}

impl Schedule for Admissible {
    fn log_step(&mut self, context: &StepContext) -> f64 {
        let start = self.scale.log_start();
        // a loss of exactly 0 has no gradient to scale
        let outside = context.log_loss > start || context.log_loss == f64::NEG_INFINITY;
        self.scale.log_bound(if outside { start } else { context.log_loss }, self.log_curvature)
    }
}
