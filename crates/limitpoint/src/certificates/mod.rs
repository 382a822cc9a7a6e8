//! Certificates: what a point or a run proves, in numbers that can be checked again.
//!
//! The limit of training a homogeneous network is a KKT point of a margin problem (papers A, C and D). Everything here
//! is a function of a *point*: how it was reached is not known.
//!
//! | file | question | claims id |
//! |---|---|---|
//! | `geometry` | which norm measures the weights: one of `norms`, or the horizon of a potential | C.thm4.7 |
//! | `tangent` | is the point a KKT point? τ, support vectors, the direction that improves it | D.cor4.5, C.corI1, Ct.ntk |
//! | `clarke` | the same at kinks, where gradients are sets | D.thmB2 |
//! | `gram` | the same for many examples from their Gram matrix | Ct.ntk |
//! | `foreign`, `tangent_file` | the same of models that somebody else computes, and as a file that is checked without them | |
//! | `multipliers` | (ε, δ) with the papers' multipliers and with the best ones | A.defA12, C.defG4, D.defC6, Ct.nnls |
//! | `residual` | the least Euclidean stationarity residual | Ct.res2 |
//! | `proximity` | Bregman proximity to stationarity | A.defB4, A.propB6, A.eq74 |
//! | `bounds` | what the theorems allow ε and δ to be at this point | A.propA13, C.lemG6, D.lemC8 |
//! | `polish` | where is the limit? from a trained point to a certified KKT point | D.thm4.4, A.thm3.4 |
//! | `claim`, `verdict` | what is claimed of a run's weights, and the answer | |
//! | `linear`, `network`, `regression` | the evidence for each kind of claim | Ct.bracket, Ct.ntk, B.thm1 |
//! | `decide`, `document` | from claim to verdict, and the same as a file that can be checked again | |

mod error;
mod evaluation;
mod geometry;

mod clarke;
mod foreign;
mod gram;
mod tangent;
mod tangent_file;
mod working_set;

mod bounds;
mod multipliers;
mod proximity;
mod residual;

mod polish;

mod claim;
mod decide;
mod document;
mod linear;
mod network;
mod regression;
mod verdict;

#[cfg(test)]
mod multipliers_tests;
#[cfg(test)]
mod tangent_tests;
#[cfg(test)]
mod test_nets;

pub use bounds::{Bounded, KktBounds, mirror_bounds, steepest_bounds};
pub use claim::{Measure, RunClaim};
pub use decide::{Subject, decide, linear_margin_problem, recompute};
pub use document::{
    Certificate, DataReference, Disagreement, DocumentError, Evidence, FORMAT, StartReference, Tolerances, VERSION,
    WeightsReference,
};
pub use error::CertificateError;
pub use evaluation::Evaluation;
pub use foreign::ForeignTangent;
pub use geometry::Geometry;
pub use gram::{margin_gram, tangent_certificate_from_gram};
pub use linear::MarginEvidence;
pub use multipliers::{KktCertificate, KktReport, best_multipliers, kkt_report};
pub use network::StationarityEvidence;
pub use polish::{KktProof, PolishError, PolishMethod, PolishSettings, PolishStatus, Polished, polish};
pub use proximity::{BregmanProximity, ProximityMeasure, bregman_divergence, bregman_proximity, proximity_measure};
pub use regression::SolutionEvidence;
pub use residual::least_residual;
pub use tangent::{Coverage, Slopes, TangentCertificate, TangentProblem, solve_tangent, tangent_certificate};
pub use tangent_file::{Level, TangentClaim, TangentFile};
pub use verdict::{Doubt, Verdict};
pub use working_set::tangent_certificate_from_smallest;
