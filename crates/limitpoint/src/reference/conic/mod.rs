//! conic
mod ball;
mod margin;
mod minimum_norm;
mod path;
mod polish;
mod program;
#[cfg(test)]
mod tests;
pub(super) use margin::solve_margin_conic;
pub(super) use minimum_norm::minimum_norm_conic;

/// Newton steps after the interior-point method.
const STEPS: usize = 12;
