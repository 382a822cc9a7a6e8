use super::*;
use crate::linalg::Matrix;
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::params::ParamLayout;

fn problem(rows: &[&[f64]], norm: NormSpec) -> MarginProblem {
    MarginProblem::new(Matrix::from_rows(rows), norm, ParamLayout::vector(rows[0].len())).unwrap()
}

fn prove(problem: &MarginProblem, weights: &[f64], direction: &[f64], rows: &[f64]) -> MarginEvidence {
    MarginEvidence::new(problem, weights, direction.to_vec(), rows.to_vec(), vec![]).unwrap()
}

/// Rows (2, 1) and (1, 2). ℓ2: by symmetry w ∝ (1, 1), γ* = 3/√2. ℓ∞: w = (1, 1), γ* = 3. ℓ1: w = (½, ½), γ* = 3/2; all
/// proved by p = (½, ½), whose combination is (3/2, 3/2).
const SYMMETRIC: [&[f64]; 2] = [&[2.0, 1.0], &[1.0, 2.0]];

#[test]
fn a_hand_made_optimum_is_certified_to_the_last_digits_in_every_norm() {
    let cases = [
        (NormSpec::L1, 1.5),
        (NormSpec::L2, 3.0 / 2f64.sqrt()),
        (NormSpec::Linf, 3.0),
        (NormSpec::Lp { p: 3.0 }, 3.0 / 2f64.powf(1.0 / 3.0)),
        (NormSpec::Quadratic { diagonal: vec![2.0, 2.0] }, 1.5),
        (NormSpec::GroupL2Inf, 3.0), // the rows of a column vector are its entries
    ];
    for (norm, optimum) in cases {
        let problem = problem(&SYMMETRIC, norm.clone());
        let evidence = prove(&problem, &[7.0, 7.0], &[1.0, 1.0], &[0.5, 0.5]);
        assert!((evidence.optimum.lo - optimum).abs() < 1e-14, "{norm}: {:?}", evidence.optimum);
        assert!(evidence.optimum.width() <= 1e-14, "{norm}: {:?}", evidence.optimum);
        assert_eq!(evidence.verdict(&problem, 1e-14), Verdict::Certified, "{norm}: {:?}", evidence.gap);
    }
}

#[test]
fn the_optimum_of_one_norm_is_refuted_in_another() {
    // the margins of w = (1, a) are 1 + 4a and 3 − a, equal to 13/5 at a = 2/5
    let rows: [&[f64]; 2] = [&[1.0, 4.0], &[3.0, -1.0]];
    // ℓ∞: w = (1, 2/5), γ* = 13/5, p = (1/5, 4/5) combines to (13/5, 0)
    let linf = problem(&rows, NormSpec::Linf);
    let evidence = prove(&linf, &[1.0, 0.4], &[1.0, 0.4], &[0.2, 0.8]);
    assert_eq!(evidence.verdict(&linf, 1e-12), Verdict::Certified);
    // ℓ1: the same direction, w = (5/7, 2/7), gives 13/7; p = (4/7, 3/7) combines to (13/7, 13/7)
    let l1 = problem(&rows, NormSpec::L1);
    let best = [5.0 / 7.0, 2.0 / 7.0];
    let evidence = prove(&l1, &best, &best, &[4.0 / 7.0, 3.0 / 7.0]);
    assert_eq!(evidence.verdict(&l1, 1e-12), Verdict::Certified);
    // a run that found w = (1, 0) achieves 1 in both norms, which the judge's direction beats
    for (norm, direction, p, gap) in [
        (&linf, &[1.0, 0.4][..], &[0.2, 0.8][..], 1.0 - 5.0 / 13.0),
        (&l1, &best, &[4.0 / 7.0, 3.0 / 7.0], 1.0 - 7.0 / 13.0),
    ] {
        let evidence = prove(norm, &[1.0, 0.0], direction, p);
        assert!((evidence.gap.lo - gap).abs() < 1e-14 && evidence.gap.width() < 1e-14, "{:?}", evidence.gap);
        assert_eq!(evidence.verdict(norm, 1e-3), Verdict::Refuted);
    }
}

#[test]
fn a_poor_judge_proves_nothing_instead_of_something_false() {
    let problem = problem(&SYMMETRIC, NormSpec::L2);
    // neither a good direction nor good multipliers: the bracket holds the tolerance
    let evidence = prove(&problem, &[1.0, 0.9], &[1.0, 0.5], &[1.0, 0.0]);
    assert!(evidence.optimum.contains(3.0 / 2f64.sqrt()));
    assert_eq!(evidence.verdict(&problem, 1e-3), Verdict::Inconclusive(Doubt::Undecided));
    // without a direction the weights themselves are the lower end
    let evidence = prove(&problem, &[1.0, 0.9], &[], &[0.5, 0.5]);
    assert_eq!((evidence.optimum.lo, evidence.gap.lo), (evidence.achieved.lo, 0.0));
}

#[test]
fn data_that_cannot_be_separated_are_told_from_weights_that_do_not_separate_them() {
    let opposite = problem(&[&[1.0, 0.0], &[-1.0, 0.0]], NormSpec::L2);
    let evidence = prove(&opposite, &[1.0, 0.0], &[0.0, 1.0], &[0.5, 0.5]);
    assert_eq!(evidence.optimum.hi, 0.0);
    assert_eq!(evidence.verdict(&opposite, 1e-3), Verdict::Inconclusive(Doubt::NotSeparable));
    let separable = problem(&SYMMETRIC, NormSpec::L2);
    let evidence = prove(&separable, &[1.0, -1.0], &[1.0, 1.0], &[0.5, 0.5]);
    assert_eq!(evidence.verdict(&separable, 1e-3), Verdict::Inconclusive(Doubt::NotYetSeparated));
    // a judge that found neither
    let evidence = prove(&separable, &[1.0, -1.0], &[], &[1.0, 0.0]);
    assert_eq!(evidence.verdict(&separable, 1e-3), Verdict::Inconclusive(Doubt::SolverStopped));
}

#[test]
fn brackets_are_tight_for_a_thousand_weights() {
    let (n, d) = (40, 1000);
    let mut stream = Streams::new(4).stream("rows");
    let mut rows = Matrix::zeros(n, d);
    stream.fill_normal(&mut rows.data);
    // w = Σ p h with nearly equal p separates, since the rows are nearly orthogonal
    let p: Vec<f64> = (0..n).map(|i| 1.0 + 0.1 * (i % 3) as f64).collect();
    let mut w = vec![0.0; d];
    (0..n).for_each(|i| crate::linalg::add_scaled(&mut w, p[i], rows.row(i)));
    for norm in [NormSpec::L1, NormSpec::L2, NormSpec::Linf, NormSpec::Lp { p: 1.5 }] {
        let problem = MarginProblem::new(rows.clone(), norm.clone(), ParamLayout::vector(d)).unwrap();
        let evidence = prove(&problem, &w, &w, &p);
        assert!(evidence.achieved.width() <= 1e-13 * evidence.achieved.lo, "{norm}: {:?}", evidence.achieved);
        let precise: Vec<Precise> = p.iter().map(|p| Precise::from(*p)).collect();
        let upper = proven_upper_bound(&problem, &precise, &[]).unwrap();
        assert!(upper.width() <= 1e-13 * upper.lo, "{norm}: {upper:?}");
        let plain = problem.bracket(&w, &crate::reference::Multipliers::of_rows(p.clone())).unwrap();
        assert!((plain.lower - evidence.achieved.lo).abs() <= 1e-12 * plain.lower);
        assert!((plain.upper - upper.hi).abs() <= 1e-12 * plain.upper);
    }
}

#[test]
fn matrix_norms_and_cones_are_proven_too() {
    // H = diag(1, 2) alone: spectral norm, W = I gives 3, p = 1 proves Σσ = 3; nuclear, W = e₂e₂ᵀ gives σ₁ = 2
    let layout = ParamLayout::new([("w", 2, 2)]).unwrap();
    let rows = Matrix::from_rows(&[&[1.0, 0.0, 0.0, 2.0]]);
    for (norm, w, value) in
        [(NormSpec::Spectral, [1.0, 0.0, 0.0, 1.0], 3.0), (NormSpec::Nuclear, [0.0, 0.0, 0.0, 1.0], 2.0)]
    {
        let problem = MarginProblem::new(rows.clone(), norm, layout.clone()).unwrap();
        let evidence = prove(&problem, &w, &w, &[1.0]);
        assert!(evidence.optimum.contains(value) && evidence.optimum.width() < 1e-13, "{:?}", evidence.optimum);
        assert_eq!(evidence.verdict(&problem, 1e-12), Verdict::Certified);
    }
    // H = diag(−1, 2) over semidefinite W of trace 1: W = e₂e₂ᵀ, λ_max = 2; without the cone W = −e₁e₁ᵀ would count
    let rows = Matrix::from_rows(&[&[-1.0, 0.0, 0.0, 2.0]]);
    let problem = MarginProblem::new(rows, NormSpec::Nuclear, layout).unwrap().semidefinite().unwrap();
    let evidence = prove(&problem, &[0.0, 0.0, 0.0, 5.0], &[0.0, 0.0, 0.0, 1.0], &[1.0]);
    assert!(evidence.optimum.contains(2.0) && evidence.gap.hi < 1e-13, "{evidence:?}");
    // W = diag(−0.1, 1) is not semidefinite, and ⟨H, W⟩/tr W = 2.1/0.9 would beat the optimum; shifted it attains it
    let evidence = prove(&problem, &[-0.1, 0.0, 0.0, 1.0], &[0.0, 0.0, 0.0, 1.0], &[1.0]);
    assert!(evidence.achieved.hi <= 2.0 + 1e-14 && evidence.achieved.lo > 2.0 - 1e-13, "{:?}", evidence.achieved);
}

#[test]
fn weights_outside_a_cone_achieve_nothing_that_counts() {
    // rows (1, −1): over w ≥ 0 with |w|₁ = 1 the best is (1, 0); without the cone (½, −½) is as good
    let problem = problem(&[&[1.0, -1.0]], NormSpec::L1);
    let problem = problem.with_cone(vec![vec![(0, vec![1.0])], vec![(1, vec![1.0])]]);
    let inside = MarginEvidence::new(&problem, &[2.0, 0.0], vec![1.0, 0.0], vec![1.0], vec![0.0, 1.0]).unwrap();
    assert_eq!(inside.verdict(&problem, 1e-12), Verdict::Certified);
    let outside = MarginEvidence::new(&problem, &[1.0, -1.0], vec![1.0, 0.0], vec![1.0], vec![0.0, 1.0]).unwrap();
    assert_eq!(outside.verdict(&problem, 1e-3), Verdict::Inconclusive(Doubt::NotYetSeparated));
}

#[test]
fn evidence_that_does_not_fit_is_refused() {
    let problem = problem(&SYMMETRIC, NormSpec::L2);
    let refuse = |weights: &[f64], rows: &[f64]| {
        MarginEvidence::new(&problem, weights, vec![], rows.to_vec(), vec![]).unwrap_err().to_string()
    };
    assert!(refuse(&[1.0, 1.0], &[1.0]).contains("one for every row"));
    assert!(refuse(&[1.0, 1.0], &[1.0, -1.0]).contains("-1"));
    assert!(refuse(&[1.0], &[1.0, 1.0]).contains("1 entries"));
}
