//! temporary
/// t
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// b
    Binary(Vec<f64>),
    /// c
    Classes {
        /// l
        labels: Vec<usize>,
        /// c
        count: usize,
    },
    /// v
    Values(Vec<f64>),
}
