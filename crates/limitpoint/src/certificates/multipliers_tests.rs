use super::multipliers::Scaled;
use super::test_nets::{Net, kinked, matrix, net, numbers};
use super::{
    Bounded, CertificateError, Evaluation, Geometry, KktReport, Slopes, TangentProblem, best_multipliers,
    bregman_divergence, bregman_proximity, kkt_report, least_residual, mirror_bounds, proximity_measure,
    steepest_bounds, tangent_certificate,
};
use crate::data::Targets;
use crate::diagnostics::{kkt_measure, stationarity_residual};
use crate::engine::{Compute, Forward, cpu};
use crate::linalg::Matrix;
use crate::losses::LossSpec;
use crate::models::{Activation, ModelSpec};
use crate::norms::NormSpec;
use crate::potentials::PotentialSpec;
use crate::reference::Multipliers;

const CLARKE: Slopes = Slopes::Clarke { tolerance: 1e-9 };

fn norms(size: usize) -> Vec<NormSpec> {
    let diagonal = (0..size).map(|i| 0.5 + (i % 3) as f64).collect();
    let lp = NormSpec::Lp { p: 3.0 };
    vec![NormSpec::L2, NormSpec::L1, NormSpec::Linf, NormSpec::Quadratic { diagonal }, lp, NormSpec::Spectral]
}

fn report(net: &mut Net, norm: &NormSpec, tolerance: f64) -> KktReport {
    let loss = LossSpec::Exponential.build().unwrap();
    let geometry = norm.clone().into();
    kkt_report(&mut *net.model, &net.targets, &*loss, &net.theta, &geometry, (CLARKE, tolerance)).unwrap()
}

/// A separated net: two layers, positive margins, scaled so that ln L < 0.
fn separated(outputs: usize, activation: Activation, seed: u64) -> Net {
    let mut net = net(&[5], activation, &matrix(6, 3, seed), outputs, seed + 1);
    net.theta.iter_mut().for_each(|t| *t *= 12.0);
    net
}

#[test]
fn the_papers_multipliers_have_the_gap_and_slack_of_the_diagnostics() {
    let loss = LossSpec::Logistic.build().unwrap();
    let mut net = separated(1, Activation::LeakyRelu { slope: 0.1 }, 3);
    for norm in norms(net.theta.len()) {
        let geometry = norm.clone().into();
        let settings = (Slopes::Fixed, 0.0);
        let report = kkt_report(&mut *net.model, &net.targets, &*loss, &net.theta, &geometry, settings).unwrap();
        let evaluation = Evaluation::new(&mut *net.model, &net.targets, &*loss, &net.theta).unwrap();
        let (point, mut worker) = (evaluation.point(), norm.build(net.model.layout()).unwrap());
        let expected = kkt_measure(&point, &mut *worker);
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * expected.objective;
        assert!(close(report.papers.objective, expected.objective), "{norm:?}");
        assert!(close(report.papers.fenchel_young_gap, expected.fenchel_young_gap), "{norm:?}");
        assert!(close(report.papers.slack, expected.slack), "{norm:?}");
        let mut scratch = [vec![0.0; net.theta.len()], vec![0.0; net.theta.len()]];
        let residual = stationarity_residual(&point, &mut *worker, 0.0, &mut scratch) * expected.objective.sqrt();
        assert!(close(report.papers.residual, residual), "{norm:?}");
    }
}

#[test]
fn the_best_multipliers_are_bracketed_beat_the_papers_and_agree_with_tau() {
    for (outputs, activation) in
        [(1, Activation::Relu), (1, Activation::ReluPower { power: 2 }), (3, Activation::LeakyRelu { slope: 0.2 })]
    {
        let mut net = separated(outputs, activation, 7);
        if net.model.scores(&net.theta).contains(&0.0) {
            continue;
        }
        for norm in norms(net.theta.len()) {
            let report = report(&mut net, &norm, 0.0);
            let total = |c: &super::KktCertificate| c.fenchel_young_gap + c.slack;
            let scale = report.best.objective;
            assert!(total(&report.best) <= total(&report.papers) + 1e-10 * scale, "{norm:?} {report:?}");
            assert!(total(&report.best) >= report.best_lower - 1e-12 * scale);
            assert!(total(&report.best) - report.best_lower <= 1e-8 * scale, "{norm:?} {report:?}");
            assert!(report.stationary.residual <= report.papers.residual.min(report.best.residual) * (1.0 + 1e-12));
            let geometry = Geometry::from(norm.clone());
            let tau = tangent_certificate(&mut *net.model, &net.targets, &net.theta, &geometry, CLARKE).unwrap().tau;
            let degree = net.model.homogeneity().unwrap().degree;
            let g = total(&report.best) / scale;
            assert!(g <= tau + 1e-9, "{norm:?}: {g} {tau}");
            assert!(g >= 0.5 || tau <= (1.0 + degree) * g / (1.0 - (2.0 * g).sqrt()) + 1e-9, "{norm:?}: {g} {tau}");
        }
    }
}

/// The least value of f over non-negative vectors, by a search that shrinks around the best point found.
fn search(size: usize, widest: f64, mut f: impl FnMut(&[f64]) -> f64) -> f64 {
    let mut next = numbers(5);
    let (mut best, mut at) = (f64::INFINITY, vec![0.0; size]);
    for start in 0..6 {
        let mut x: Vec<f64> = (0..size).map(|_| widest * f64::from(start) / 6.0 * (1.0 + next()) / 2.0).collect();
        let (mut value, mut step) = (f(&x), widest);
        while step > 1e-9 * widest {
            let mut improved = false;
            for _ in 0..30 * size {
                let moved: Vec<f64> = x.iter().map(|x| (x + step * next()).max(0.0)).collect();
                let found = f(&moved);
                if found < value {
                    (x, value, improved) = (moved, found, true);
                }
            }
            step *= if improved { 1.0 } else { 0.7 };
        }
        if value < best {
            (best, at) = (value, x);
        }
    }
    assert!(at.iter().all(|x| *x < 3.0 * widest), "the search was too narrow");
    best
}

#[test]
fn best_multipliers_residual_and_proximity_agree_with_a_search_on_tiny_nets() {
    let mut net = net(&[2], Activation::LeakyRelu { slope: 0.3 }, &matrix(3, 2, 21), 1, 22);
    for norm in norms(net.theta.len()) {
        let geometry = Geometry { scale: 1.5, ..norm.clone().into() };
        let tangent = TangentProblem::new(&mut *net.model, &net.targets, &net.theta, &geometry, CLARKE).unwrap();
        let scaled = Scaled::new(&tangent);
        let of = |rows: &[f64]| Multipliers::of_rows(rows.to_vec());
        let slack = |rows: &[f64]| scaled.slacks(&of(rows)).iter().sum::<f64>();
        let (best, _) = best_multipliers(&tangent, 0.0).unwrap();
        let widest = 2.0 * best.multipliers.rows.iter().copied().fold(0.0, f64::max);
        let unit = best.objective;
        let found = search(3, widest, |rows| scaled.gap(&of(rows)).unwrap() + slack(rows));
        // the search can stop short on an edge of the norm, never below the minimum
        let agrees = |value: f64, found: f64, unit: f64| value <= found + 1e-9 * unit && found <= value + 1e-4 * unit;
        assert!(agrees(best.fenchel_young_gap + best.slack, found, unit), "{norm:?} {best:?} {found}");
        let residual = least_residual(&tangent, None, 0.0).unwrap().residual;
        let found = search(3, widest, |rows| scaled.measure(of(rows), 0.0).unwrap().residual);
        assert!(agrees(residual, found + 1e-6 * unit.sqrt(), unit.sqrt()), "{norm:?} {residual} {found}");
        let proximity = proximity_measure(&tangent).unwrap();
        let found = search(3, widest, |rows| scaled.gap(&of(rows)).unwrap().max(slack(rows)));
        assert!(agrees(proximity.upper, found, unit), "{norm:?} {proximity:?} {found}");
        assert!(proximity.upper - proximity.lower < 1e-6 * unit, "{norm:?} {proximity:?}");
        assert!(proximity.upper <= best.fenchel_young_gap.max(best.slack) * (1.0 + 1e-9));
    }
}

#[test]
fn the_known_kkt_point_on_a_kink_has_its_known_multipliers() {
    let mut net = kinked();
    let report = report(&mut net, &NormSpec::L2, 0.0);
    // q = 120 and L = 2, so λ of θ̃ is λ of θ: 5·(1/24) = 5/24 for θ = Σ λ h
    for certificate in [&report.best, &report.stationary] {
        let lambda = &certificate.multipliers.rows;
        assert!(lambda.iter().all(|l| (l - 5.0 / 24.0).abs() < 1e-7), "{certificate:?}");
        assert!(certificate.multipliers.kinks.iter().all(|e| (e / lambda[0] - 0.28).abs() < 1e-6));
        assert!(certificate.residual < 1e-7 * certificate.objective.sqrt(), "{certificate:?}");
    }
    assert!(report.best.fenchel_young_gap + report.best.slack < 1e-12 * report.best.objective);
    assert!(report.papers.fenchel_young_gap > 0.01 * report.papers.objective);
    let geometry = NormSpec::L2.into();
    let tangent = TangentProblem::new(&mut *net.model, &net.targets, &net.theta, &geometry, CLARKE).unwrap();
    assert!(proximity_measure(&tangent).unwrap().upper < 1e-12 * report.best.objective);
}

#[test]
fn the_residual_of_l1_need_not_vanish_but_the_gap_does() {
    // the counterexample of A.propA13: coordinate descent on x = (1, 0.3) from (0, −1) moves along (s, −1)
    let inputs = Matrix::from_rows(&[&[1.0, 0.3]]);
    let mut model = cpu::bind(&ModelSpec::Linear, &inputs, 1, Compute::default()).unwrap();
    let loss = LossSpec::Exponential.build().unwrap();
    let geometry = Geometry::from(NormSpec::L1);
    for s in [10.0, 1e3, 1e6] {
        let mut at = |tolerance: f64| {
            let (targets, theta) = (Targets::Binary(vec![1.0]), [s, -1.0]);
            kkt_report(&mut *model, &targets, &*loss, &theta, &geometry, (CLARKE, tolerance)).unwrap()
        };
        let size = (s + 1.0) / (s - 0.3);
        let exact = at(0.0);
        assert!((exact.papers.residual - 1.3 * size).abs() < 1e-9);
        assert!((exact.papers.fenchel_young_gap - size * size * (1.0 - (s - 0.3) / (s + 1.0))).abs() < 1e-9);
        // the best multiple of (1, 0.3) stays as far from ‖θ̃‖(1, −1) as the line does
        assert!((exact.stationary.residual - size * 1.3 / 1.09f64.sqrt()).abs() < 1e-6, "{exact:?}");
        if s > 1e3 {
            assert!(at(1e-3).papers.residual < 1e-5);
        }
    }
}

#[test]
fn the_divergence_of_proposition_b6_is_the_gap_whatever_the_subgradient_and_below_its_bound() {
    let loss = LossSpec::Exponential.build().unwrap();
    let mut net = separated(1, Activation::LeakyRelu { slope: 0.1 }, 31);
    let evaluation = Evaluation::new(&mut *net.model, &net.targets, &*loss, &net.theta).unwrap();
    let (point, size) = (evaluation.point(), net.theta.len());
    for norm in norms(size).into_iter().chain([NormSpec::Nuclear, NormSpec::GroupL21]) {
        let mut worker = norm.build(net.model.layout()).unwrap();
        let both = bregman_proximity(&point, &mut *worker, None);
        let unit = kkt_measure(&point, &mut *worker).objective;
        assert!((both.divergence - both.identity).abs() <= 1e-10 * unit, "{norm:?} {both:?}");
        assert!(both.divergence >= 0.0 && both.divergence <= both.bound * (1.0 + 1e-12), "{norm:?} {both:?}");
        let earlier = bregman_proximity(&point, &mut *worker, Some(1e-9));
        assert!(earlier.bound > both.bound && earlier.divergence == both.divergence);
        // another k: the projection of an unrelated vector
        let target: Vec<f64> = (0..size).map(|i| f64::from(i as u32 % 5) - 2.0).collect();
        let mut k = vec![0.0; size];
        worker.project_subdifferential(&net.theta, &target, 0.0, &mut k);
        let value = worker.value(&net.theta);
        k.iter_mut().for_each(|x| *x *= value);
        let z: Vec<f64> = point.gradient.direction.iter().map(|g| -g).collect();
        let factor = value / worker.dual(&z);
        let z: Vec<f64> = z.iter().map(|x| x * factor).collect();
        let divergence = bregman_divergence(&mut *worker, &z, &k, &net.theta);
        assert!((divergence - value * value * (1.0 - both.alignment)).abs() < 1e-9 * value * value, "{norm:?}");
    }
}

#[test]
fn measured_gap_residual_and_slack_stay_below_the_bounds_of_the_papers() {
    let mut checked = 0;
    for (spec, outputs) in [
        (LossSpec::Exponential, 1),
        (LossSpec::Logistic, 1),
        (LossSpec::Probit, 1),
        (LossSpec::Exponential, 3),
        (LossSpec::CrossEntropy, 3),
    ] {
        let loss = spec.build().unwrap();
        for seed in 0..6 {
            for factor in [2.0, 8.0, 40.0] {
                let mut net =
                    net(&[4], Activation::LeakyRelu { slope: 0.3 }, &matrix(5, 3, 50 + seed), outputs, 60 + seed);
                net.theta.iter_mut().for_each(|t| *t *= factor);
                let evaluation = Evaluation::new(&mut *net.model, &net.targets, &*loss, &net.theta).unwrap();
                let point = evaluation.point();
                if point.log_loss >= loss.tail().unwrap().log_threshold().min(0.0) {
                    let mut worker = NormSpec::L2.build(point.layout).unwrap();
                    let refused = steepest_bounds(&point, &mut *worker, None);
                    assert!(matches!(refused, Err(CertificateError::OutOfRange { .. })), "{refused:?}");
                    continue;
                }
                for norm in norms(net.theta.len()) {
                    let mut worker = norm.build(point.layout).unwrap();
                    let bounds = steepest_bounds(&point, &mut *worker, None).unwrap();
                    let all: Vec<Bounded> =
                        [bounds.proximity, bounds.stationarity, bounds.slack].into_iter().flatten().collect();
                    assert!(all.iter().all(|pair| pair.holds(1e-9)), "{spec:?} {norm:?} {bounds:?}");
                    assert_eq!(bounds.stationarity.is_some(), norm == NormSpec::L2);
                    checked += usize::from(bounds.slack.is_some());
                }
            }
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn the_identity_of_lemma_c8_holds_and_the_constant_of_paper_a_is_the_exponential_case() {
    let loss = LossSpec::Exponential.build().unwrap();
    let mut net = separated(1, Activation::LeakyRelu { slope: 0.1 }, 71);
    let evaluation = Evaluation::new(&mut *net.model, &net.targets, &*loss, &net.theta).unwrap();
    let mut worker = NormSpec::L2.build(net.model.layout()).unwrap();
    let bounds = steepest_bounds(&evaluation.point(), &mut *worker, None).unwrap();
    let (epsilon, gap) = (bounds.stationarity.unwrap(), bounds.proximity.unwrap());
    assert!((epsilon.measured.powi(2) - 2.0 * gap.measured).abs() < 1e-10 * gap.bound);
    // C₂ = (M − 1)/(e L γ̃^{2/L}) with M = 6, L = 2
    assert!((bounds.c2 - 5.0 / (std::f64::consts::E * 2.0 * bounds.soft_margin)).abs() < 1e-12 * bounds.c2);
}

#[test]
fn mirror_points_stay_below_the_bounds_of_lemma_g6() {
    let loss = LossSpec::Exponential.build().unwrap();
    for spec in PotentialSpec::examples() {
        for seed in 0..4 {
            let mut net = separated(1, Activation::LeakyRelu { slope: 0.2 }, 80 + seed);
            let evaluation = Evaluation::new(&mut *net.model, &net.targets, &*loss, &net.theta).unwrap();
            let point = evaluation.point();
            if point.log_loss >= 0.0 {
                continue;
            }
            let degree = match spec.build(point.layout) {
                Ok(potential) => potential.degree(),
                Err(_) => continue,
            };
            if degree < 2.0 {
                let error = mirror_bounds(&point, &spec, None).unwrap_err().to_string();
                assert!(error.contains("at least 2"), "{error}");
                continue;
            }
            let bounds = mirror_bounds(&point, &spec, None).unwrap();
            assert!(bounds.slack.unwrap().holds(1e-9), "{spec:?} {bounds:?}");
            assert!(bounds.stationarity.is_none_or(|pair| pair.holds(1e-9)), "{spec:?} {bounds:?}");
            let diagonal = !matches!(spec, PotentialSpec::SquaredLp { .. });
            assert_eq!(bounds.stationarity.is_some(), diagonal);
            if spec == PotentialSpec::Euclidean {
                let mut worker = NormSpec::L2.build(point.layout).unwrap();
                let steepest = steepest_bounds(&point, &mut *worker, None).unwrap();
                let (a, b) = (bounds.stationarity.unwrap(), steepest.stationarity.unwrap());
                assert!((a.measured - b.measured).abs() < 1e-9 * b.bound && (a.bound - b.bound).abs() < 1e-9 * b.bound);
            }
        }
    }
}
