//! proto
pub(crate) mod equations;
pub(crate) mod newton;
#[cfg(test)]
mod tests;
