pub(super) fn solve_margin_conic(_p: &super::MarginProblem) -> Result<(Vec<f64>, super::Multipliers, usize), super::ReferenceError> { unimplemented!() }
