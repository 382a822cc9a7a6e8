//! What a step-size rule can refuse.

/// What a step-size rule can refuse.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A setting is out of range.
    #[error("{name} of the {rule} schedule must be {range}, but is {value}")]
    Setting {
        /// Key of the rule.
        rule: &'static str,
        /// Which setting.
        name: &'static str,
        /// What is allowed.
        range: &'static str,
        /// The refused value.
        value: f64,
    },
    /// The bound on the features was never filled in.
    #[error("the linear-bound schedule needs feature_bound = max ‖x‖⋆ of the data; set it or call with_feature_bound")]
    FeatureBound,
    /// The constants of the curvature were never filled in.
    #[error(
        "the admissible schedule needs degree, log_start and log_curvature of the problem; set all three or call \
         with_curvature"
    )]
    Curvature,
    /// A text describes no rule.
    #[error("\"{text}\" is not a schedule: {reason}")]
    Unknown {
        /// The refused text.
        text: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A state belongs to another kind of rule.
    #[error(
        "this schedule continues from a state of kind {expected}, but got {found}; resume with the rule that saved it"
    )]
    State {
        /// The kind this rule keeps.
        expected: &'static str,
        /// The kind it was given.
        found: &'static str,
    },
    /// A state holds an impossible number.
    #[error(
        "ln α of a saved schedule must be finite, but is {log_alpha}; the checkpoint is damaged, use an earlier one"
    )]
    StateValue {
        /// The refused value.
        log_alpha: f64,
    },
}
