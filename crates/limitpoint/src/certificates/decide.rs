//! From a claim to evidence and verdict: once with the judge's solvers, and again from the evidence alone.

use super::network::{self, StationarityEvidence};
use super::regression::SolutionEvidence;
use super::tangent::TangentProblem;
use super::working_set::{rebuild, solve_from_smallest};
use super::{CertificateError, DocumentError, Doubt, Evidence, MarginEvidence, Measure, RunClaim, Tolerances, Verdict};
use crate::data::{Dataset, Targets};
use crate::engine::{Compute, Forward, Tangents, cpu};
use crate::models::{MarginMap, ModelSpec};
use crate::norms::NormSpec;
use crate::params::ParamLayout;
use crate::potentials::PotentialSpec;
use crate::reference::{InterpolationTarget, MarginProblem, Multipliers, ReferenceError, interpolate, solve_margin};

/// Entries of the largest matrix of rows that is formed, 400 MB.
const LARGEST: usize = 50_000_000;

/// What a claim is about.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The training examples.
    pub data: &'a Dataset,
    /// The model.
    pub model: &'a ModelSpec,
    /// Its weights.
    pub weights: &'a [f64],
    /// Where training started; needed by claims about solutions of Xw = y.
    pub start: Option<&'a [f64]>,
}

impl Subject<'_> {
    fn build(&self) -> Result<Box<dyn Tangents>, DocumentError> {
        let model = cpu::bind_to(self.model, self.data, Compute::default())?;
        model.layout().check(self.weights).map_err(CertificateError::from)?;
        Ok(model)
    }

    /// Refuses problems that do not fit into memory.
    fn check_size(&self, model: &dyn Tangents) -> Result<(), DocumentError> {
        let margins = self.data.len().saturating_mul(MarginMap::new(&self.data.targets).per_example());
        let entries = margins.saturating_mul(model.layout().len());
        if entries > LARGEST { Err(DocumentError::TooLarge { entries, limit: LARGEST }) } else { Ok(()) }
    }

    /// The margin problem of a linear model in its own layout, in which the run measured norms.
    fn margin_problem(&self, measure: &Measure) -> Result<MarginProblem, DocumentError> {
        if !self.model.is_linear() {
            return Err(DocumentError::NotLinear { model: self.model.key() });
        }
        let model = self.build()?;
        self.check_size(&*model)?;
        linear_margin_problem(self.data, measure, model.layout())
    }

    fn tangent_problem(
        &self,
        measure: &Measure,
        kinks: f64,
    ) -> Result<Result<TangentProblem, Evidence>, DocumentError> {
        let mut model = self.build()?;
        let geometry = measure.geometry(model.layout())?;
        let slopes = network::slopes(kinks);
        let tangent = TangentProblem::new(&mut *model, &self.data.targets, self.weights, &geometry, slopes);
        self.judged(&mut *model, tangent)
    }

    /// What can be judged, or why it cannot.
    fn judged<T>(
        &self,
        model: &mut dyn Tangents,
        found: Result<T, CertificateError>,
    ) -> Result<Result<T, Evidence>, DocumentError> {
        match found {
            Ok(found) => Ok(Ok(found)),
            Err(CertificateError::NotHomogeneous) => Ok(Err(Evidence::NotHomogeneous)),
            Err(CertificateError::NotSeparated { .. }) => {
                let margins = super::evaluation::margins(model, &self.data.targets, self.weights)?;
                let least =
                    margins.into_iter().fold(f64::INFINITY, |least, q| if q < least || q.is_nan() { q } else { least });
                Ok(Err(Evidence::NotSeparated { smallest_margin: least }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What is proven about τ from the rows of the smallest margins, where those of all would take too much memory.
    fn by_smallest(
        &self,
        measure: &Measure,
        tolerances: &Tolerances,
    ) -> Result<Result<StationarityEvidence, Evidence>, DocumentError> {
        let mut model = self.build()?;
        let (geometry, slopes) = (measure.geometry(model.layout())?, network::slopes(tolerances.kinks));
        let found = solve_from_smallest(&mut *model, &self.data.targets, self.weights, &geometry, slopes);
        let (tangent, solution) = match self.judged(&mut *model, found)? {
            Ok(found) => found,
            Err(evidence) => return Ok(Err(evidence)),
        };
        let lowest = Some(solution.bracket.lower);
        let brief = StationarityEvidence::of_some(&tangent, Vec::new(), solution.multipliers.clone(), lowest)?;
        Ok(Ok(match brief.verdict(tolerances.gap) {
            Verdict::Certified => brief,
            _ => StationarityEvidence::of_some(&tangent, solution.direction, solution.multipliers, lowest)?,
        }))
    }

    /// The same evidence again, from the margins that carry weight and the direction.
    fn again(
        &self,
        measure: &Measure,
        tolerances: &Tolerances,
        stated: &StationarityEvidence,
    ) -> Result<Result<StationarityEvidence, Evidence>, DocumentError> {
        let mut model = self.build()?;
        let (geometry, slopes) = (measure.geometry(model.layout())?, network::slopes(tolerances.kinks));
        let (targets, direction) = (&self.data.targets, &stated.direction);
        let found = rebuild(&mut *model, targets, self.weights, (&geometry, slopes), &stated.margins, direction);
        let (tangent, lowest) = match self.judged(&mut *model, found)? {
            Ok(found) => found,
            Err(evidence) => return Ok(Err(evidence)),
        };
        Ok(Ok(StationarityEvidence::of_some(&tangent, direction.clone(), stated.multipliers(), lowest)?))
    }

    /// Whether the rows of all margins would take too much memory.
    fn is_large(&self) -> Result<bool, DocumentError> {
        Ok(self.check_size(&*self.build()?).is_err())
    }

    fn start(&self) -> Result<&[f64], DocumentError> {
        self.start.ok_or(DocumentError::NoStart)
    }
}

/// The margin problem of a linear model on parameters of its own layout, in which runs measure norms.
///
/// Unlike [`MarginProblem::linear`] it sees the weights as the model does: a row for every output, whatever the shape
/// of the inputs.
pub fn linear_margin_problem(
    data: &Dataset,
    measure: &Measure,
    layout: &ParamLayout,
) -> Result<MarginProblem, DocumentError> {
    let geometry = measure.geometry(layout)?;
    // the rows do not depend on the norm
    let rows = MarginProblem::linear(data, NormSpec::L2).map_err(CertificateError::from)?.rows;
    let cone = geometry.non_negative.iter().flat_map(Clone::clone).map(|j| vec![(j, vec![1.0])]).collect();
    let problem =
        MarginProblem::new(rows, geometry.norm, layout.clone()).map_err(CertificateError::from)?.with_cone(cone);
    Ok(if geometry.semidefinite { problem.semidefinite().map_err(CertificateError::from)? } else { problem })
}

/// Decides a claim: solves the problem it is about and draws the conclusion.
pub fn decide(
    claim: &RunClaim,
    tolerances: &Tolerances,
    subject: &Subject,
) -> Result<(Evidence, Verdict), DocumentError> {
    match claim {
        RunClaim::LargestMargin { measure } => {
            let problem = subject.margin_problem(measure)?;
            let (direction, multipliers) = proof(&problem)?;
            let Multipliers { rows, cone, .. } = multipliers;
            let evidence = MarginEvidence::new(&problem, subject.weights, direction, rows, cone)?;
            let verdict = evidence.verdict(&problem, tolerances.gap);
            Ok((Evidence::Margin(evidence).with_room(), verdict))
        }
        RunClaim::StationaryMargin { measure } if subject.is_large()? => {
            let evidence = match subject.by_smallest(measure, tolerances)? {
                Ok(evidence) => evidence,
                Err(evidence) => return Ok(with_verdict(evidence)),
            };
            let verdict = evidence.verdict(tolerances.gap);
            Ok((Evidence::Stationarity(evidence).with_room(), verdict))
        }
        RunClaim::StationaryMargin { measure } => {
            let tangent = match subject.tangent_problem(measure, tolerances.kinks)? {
                Ok(tangent) => tangent,
                Err(evidence) => return Ok(with_verdict(evidence)),
            };
            let (direction, multipliers) = proof(&tangent.problem)?;
            let brief = StationarityEvidence::new(&tangent, Vec::new(), multipliers.clone())?;
            // a direction as long as the weights is kept only where it is needed
            let evidence = match brief.verdict(tolerances.gap) {
                Verdict::Certified => brief,
                _ => StationarityEvidence::new(&tangent, direction, multipliers)?,
            };
            let verdict = evidence.verdict(tolerances.gap);
            Ok((Evidence::Stationarity(evidence).with_room(), verdict))
        }
        RunClaim::NearestSolution { potential } => {
            let (reference, multipliers) = nearest_solution(potential, subject)?;
            solution(potential, tolerances, subject, reference, multipliers)
        }
    }
}

/// The same evidence with every number computed anew from data, weights, directions and multipliers; no solver is used.
pub fn recompute(
    claim: &RunClaim,
    tolerances: &Tolerances,
    subject: &Subject,
    evidence: &Evidence,
) -> Result<(Evidence, Verdict), DocumentError> {
    match (claim, evidence) {
        (RunClaim::LargestMargin { measure }, Evidence::Margin(stated)) => {
            let problem = subject.margin_problem(measure)?;
            let MarginEvidence { direction, rows, cone, .. } = stated.clone();
            let found = MarginEvidence::new(&problem, subject.weights, direction, rows, cone)?;
            let verdict = found.verdict(&problem, tolerances.gap);
            Ok((Evidence::Margin(found), verdict))
        }
        (RunClaim::StationaryMargin { measure }, Evidence::Stationarity(stated)) if !stated.margins.is_empty() => {
            match subject.again(measure, tolerances, stated)? {
                Ok(found) => {
                    let verdict = found.verdict(tolerances.gap);
                    Ok((Evidence::Stationarity(found), verdict))
                }
                Err(found) => Ok(with_verdict(found)),
            }
        }
        (RunClaim::StationaryMargin { measure }, stated) => {
            if subject.is_large()? {
                subject.check_size(&*subject.build()?)?;
            }
            match (subject.tangent_problem(measure, tolerances.kinks)?, stated) {
                (Ok(tangent), Evidence::Stationarity(stated)) => {
                    let found = StationarityEvidence::new(&tangent, stated.direction.clone(), stated.multipliers())?;
                    let verdict = found.verdict(tolerances.gap);
                    Ok((Evidence::Stationarity(found), verdict))
                }
                (Err(found), _) => Ok(with_verdict(found)),
                _ => Err(DocumentError::OtherEvidence),
            }
        }
        (RunClaim::NearestSolution { potential }, Evidence::Solution(stated)) => {
            solution(potential, tolerances, subject, stated.reference.clone(), stated.multipliers.clone())
        }
        _ => Err(DocumentError::OtherEvidence),
    }
}

/// What a solution and its multipliers show.
fn solution(
    potential: &PotentialSpec,
    tolerances: &Tolerances,
    subject: &Subject,
    reference: Vec<f64>,
    multipliers: Vec<f64>,
) -> Result<(Evidence, Verdict), DocumentError> {
    let layout = subject.build()?.layout().clone();
    let (data, weights, start) = (subject.data, subject.weights, subject.start()?);
    let evidence = SolutionEvidence::new(potential, &layout, data, weights, start, reference, multipliers)?;
    let verdict = evidence.verdict(tolerances.gap);
    Ok((Evidence::Solution(evidence), verdict))
}

fn with_verdict(evidence: Evidence) -> (Evidence, Verdict) {
    let doubt = match evidence {
        Evidence::NotHomogeneous => Doubt::NotHomogeneous,
        _ => Doubt::NotYetSeparated,
    };
    (evidence, Verdict::Inconclusive(doubt))
}

/// A direction and multipliers from the judge's solver; equal weights and no direction where it gave up.
fn proof(problem: &MarginProblem) -> Result<(Vec<f64>, Multipliers), DocumentError> {
    match solve_margin(problem) {
        Ok(solution) => Ok((solution.direction, solution.multipliers)),
        Err(ReferenceError::NoConvergence { .. }) => {
            let rows = vec![1.0; problem.rows.rows];
            let (kinks, cone) = (vec![0.0; problem.kinks.len()], vec![0.0; problem.cone.len()]);
            Ok((Vec::new(), Multipliers { rows, kinks, cone }))
        }
        Err(error) => Err(CertificateError::from(error).into()),
    }
}

/// w* and ν of the judge.
fn nearest_solution(potential: &PotentialSpec, subject: &Subject) -> Result<(Vec<f64>, Vec<f64>), DocumentError> {
    let Targets::Values(targets) = &subject.data.targets else {
        return Err(DocumentError::NoTargets { data: subject.data.name.clone() });
    };
    let layout = subject.build()?.layout().clone();
    let target = InterpolationTarget::Potential(potential.clone());
    let inputs = subject.data.dense().map_err(|error| CertificateError::from(ReferenceError::from(error)))?;
    let found = interpolate(&inputs, targets, &target, &layout, Some(subject.start()?));
    let found = found.map_err(CertificateError::from)?;
    Ok((found.weights, found.multipliers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::test_nets::{label, matrix, numbers};
    use crate::models::{Activation, Biases};

    /// A dense network and one of images, each with labels that its own scores give.
    fn subjects() -> Vec<(Dataset, ModelSpec, Vec<f64>)> {
        let layers = "conv 2 2x2, pool 2, dense".parse().unwrap();
        let image = ModelSpec::Image { layers, activation: Activation::Relu, biases: Biases::None, frozen: vec![] };
        [(ModelSpec::relu(&[5]), vec![16]), (image, vec![4, 4])]
            .into_iter()
            .map(|(model, shape)| {
                let inputs = matrix(90, 16, 7);
                let unlabelled = crate::data::Targets::Binary(vec![1.0; 90]);
                let mut data = Dataset::new("drawn", inputs, unlabelled, shape).unwrap();
                let mut bound = cpu::bind_to(&model, &data, Compute::default()).unwrap();
                let mut next = numbers(3);
                let weights: Vec<f64> = (0..bound.layout().len()).map(|_| next()).collect();
                data.targets = label(&mut *bound, &weights);
                (data, model, weights)
            })
            .collect()
    }

    #[test]
    fn evidence_from_the_smallest_margins_is_that_of_all_and_can_be_had_again() {
        for (data, model, weights) in subjects() {
            let subject = Subject { data: &data, model: &model, weights: &weights, start: None };
            for norm in [NormSpec::L2, NormSpec::Linf] {
                let (measure, tolerances) = (Measure::Norm(norm), Tolerances::default());
                let claim = RunClaim::StationaryMargin { measure: measure.clone() };
                let (Evidence::Stationarity(all), verdict) = decide(&claim, &tolerances, &subject).unwrap() else {
                    panic!("a network has a tangent problem")
                };
                assert!(all.margins.is_empty() && all.rows.len() == 90);
                let few = subject.by_smallest(&measure, &tolerances).unwrap().unwrap();
                assert!(few.margins.len() < 90 && few.margins.len() == few.rows.len(), "{}", few.margins.len());
                assert!((few.tau.lo - all.tau.lo).abs() < 1e-7 && (few.tau.hi - all.tau.hi).abs() < 1e-7, "{few:?}");
                assert_eq!(few.verdict(tolerances.gap), verdict);
                // the document is checked by what it holds, without a solver
                let stated = Evidence::Stationarity(few.clone()).with_room();
                let (Evidence::Stationarity(again), same) = recompute(&claim, &tolerances, &subject, &stated).unwrap()
                else {
                    panic!("evidence of another kind")
                };
                assert_eq!((&again.margins, same), (&few.margins, verdict));
                let near = |a: f64, b: f64| (a - b).abs() <= 1e-11 * (1.0 + b.abs());
                assert!(near(again.tau.lo, few.tau.lo) && near(again.tau.hi, few.tau.hi), "{again:?}");
                assert!(again.numbers().iter().zip(few.numbers()).all(|(a, b)| near(a.1, b.1)), "{again:?}");
                // a margin that is not there is refused, one that is left out is missed
                let foreign = StationarityEvidence { margins: vec![90; few.margins.len()], ..few.clone() };
                assert!(recompute(&claim, &tolerances, &subject, &Evidence::Stationarity(foreign)).is_err());
                let short = StationarityEvidence { margins: few.margins[1..].to_vec(), ..few };
                assert!(recompute(&claim, &tolerances, &subject, &Evidence::Stationarity(short)).is_err());
            }
        }
    }
}
