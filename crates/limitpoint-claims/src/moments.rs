//! Which moments of a run a series keeps.

use limitpoint::observers::Spacing;

/// Which moments of a run are kept.
///
/// | moments | kept |
/// |---|---|
/// | `Moments::every(k)` | the start, every k-th step, and the last one |
/// | `Moments::per_decade(n)` | about n steps in every factor ten of steps, and the last one |
/// | `Moments::last()` | the last one |
/// | `….separated()` | of those, but for the start, the ones with L < ℓ(0), where every margin is positive |
/// | `….below(x)` | of those, the ones with ln L < x |
///
/// Besides, `….points_at(levels)` keeps the weights where u = ln 1/L first reaches each level, as [`Series::points`].
///
/// [`Series::points`]: crate::Series::points
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    spacing: Option<Spacing>,
    pub(crate) separated: bool,
    pub(crate) below: f64,
    pub(crate) may_stall: bool,
    pub(crate) levels: Vec<f64>,
}

impl Moments {
    fn of(spacing: Option<Spacing>) -> Self {
        Self { spacing, separated: false, below: f64::INFINITY, may_stall: false, levels: Vec::new() }
    }

    /// The start, every k-th step and the last one.
    pub fn every(k: u64) -> Self {
        Self::of(Some(Spacing::Linear { every: k }))
    }

    /// About `n` steps in every factor ten, and the last one.
    pub fn per_decade(n: u32) -> Self {
        Self::of(Some(Spacing::Logarithmic { per_decade: n }))
    }

    /// The last one only.
    pub fn last() -> Self {
        Self::of(None)
    }

    /// Nothing before the loss separates the data. A snapshot costs more than a step, and none is taken before.
    #[must_use]
    pub fn separated(self) -> Self {
        Self { separated: true, ..self }
    }

    /// Nothing with ln L at or above this.
    #[must_use]
    pub fn below(self, log_loss: f64) -> Self {
        Self { below: log_loss, ..self }
    }

    /// A flow that can go no further before it separates its data ends the series; it is an error otherwise.
    #[must_use]
    pub fn may_stall(self) -> Self {
        Self { may_stall: true, ..self }
    }

    /// Keeps the weights where ln 1/L first reaches each of these, in rising order.
    #[must_use]
    pub fn points_at(self, levels: impl IntoIterator<Item = f64>) -> Self {
        Self { levels: levels.into_iter().collect(), ..self }
    }

    /// Whether a step is one of them, as far as its number says.
    pub(crate) fn include(&self, step: u64) -> bool {
        self.spacing.is_some_and(|spacing| spacing.includes(step))
    }
}
