//! conic
mod ball;
mod margin;
mod polish;
mod program;
#[cfg(test)]
mod tests;
pub(super) use margin::solve_margin_conic;
