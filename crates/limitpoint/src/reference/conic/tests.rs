//! The battery: every norm on problems of every kind, judged by the brackets.

use super::super::{KinkRow, MarginProblem, Multipliers, ReferenceError};
use super::ball::Part;
use super::program::Cone;
use super::scaled::Scaled;
use super::{Solver, minimum_norm_conic, solve_margin_conic};
use crate::linalg::{Matrix, add_scaled, dot};
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::params::ParamLayout;

/// One block, and four blocks of which one is frozen.
fn layouts() -> [ParamLayout; 2] {
    let several = ParamLayout::new([("a", 3, 4), ("b", 1, 3), ("frozen", 2, 2), ("c", 4, 2)]).unwrap();
    [ParamLayout::new([("w", 4, 3)]).unwrap(), several.freeze(&["frozen"]).unwrap()]
}

/// Normal rows around `shift` times a common normal vector: the larger the shift, the easier to separate.
fn problem(count: usize, shift: f64, norm: &NormSpec, layout: &ParamLayout) -> MarginProblem {
    let mut stream = Streams::new(5).stream("conic");
    let mut centre = vec![0.0; layout.len()];
    let mut rows = Matrix::zeros(count, layout.len());
    stream.fill_normal(&mut centre);
    stream.fill_normal(&mut rows.data);
    (0..count).for_each(|i| add_scaled(rows.row_mut(i), shift, &centre));
    MarginProblem::new(rows, norm.clone(), layout.clone()).unwrap()
}

/// The value of a problem; its relative gap is at most `tolerance`.
fn value(problem: &MarginProblem, tolerance: f64) -> f64 {
    let (v, multipliers, _) = solve_margin_conic(problem).unwrap();
    let bracket = problem.bracket(&v, &multipliers).unwrap();
    assert!(bracket.relative_gap() <= tolerance, "{} {bracket:?} {:.1e}", problem.norm, bracket.relative_gap());
    bracket.upper
}

/// The rows of the stored values: two blocks, six rows.
fn stored_rows() -> (Matrix, ParamLayout) {
    let layout = ParamLayout::new([("a", 3, 4), ("b", 1, 3)]).unwrap();
    let mut rows = Matrix::zeros(6, 15);
    for i in 0..6 {
        rows.row_mut(i).iter_mut().enumerate().for_each(|(j, x)| *x = stored_entry(i, j));
    }
    (rows, layout)
}

fn stored_entry(i: usize, j: usize) -> f64 {
    (((7 * i + 5 * j + 3 * i * j) % 11) as f64 - 5.0) / 5.0 + if j.is_multiple_of(3) { 1.0 } else { 0.25 }
}

/// The norms of [`NormSpec::examples`] with the margin of `stored_rows` and min ‖w‖ over their first four rows and the
/// targets (1, −2, ½, 3/2), by cvxpy 1.9 with Clarabel at tolerance 1e-12.
const STORED: [(f64, f64); 20] = [
    (0.600000000000, 3.641774891777),
    (0.600000000000, 3.641774891777),
    (1.402939284632, 1.438561898848),
    (3.600000000000, 0.606060606061),
    (0.898956519985, 2.370031797318),
    (1.923722127562, 1.010089393182),
    (1.343819756256, 1.792965193253),
    (0.971626783418, 1.998720357936),
    (1.402939284632, 1.438561898848),
    (2.667750873858, 0.849677669578),
    (0.881749764117, 2.180034533139),
    (0.814544564366, 2.530282622068),
    (2.748448926077, 0.734054316614),
    (1.924775102456, 1.019682808662),
    (1.778480512890, 1.096893782047),
    (3.335330184690, 0.693099276858),
    (2.735330184690, 0.968854736361),
    (4.000000000000, 0.681818181818),
    (2.878876198468, 0.854147006079),
    (1.021571679155, 1.957732210782),
];

#[test]
fn margins_and_smallest_norms_agree_with_stored_values() {
    let (rows, layout) = stored_rows();
    let equations = Matrix::from_vec(4, 15, rows.data[..60].to_vec()).unwrap();
    let examples = NormSpec::examples(&layout);
    assert_eq!(examples.len(), STORED.len());
    for (norm, (margin, smallest)) in examples.iter().zip(STORED) {
        let problem = MarginProblem::new(rows.clone(), norm.clone(), layout.clone()).unwrap();
        assert!((value(&problem, 1e-12) - margin).abs() < 2e-9, "{norm}");
        let (w, ..) = minimum_norm_conic(&equations, &[1.0, -2.0, 0.5, 1.5], norm, &layout).unwrap();
        assert!((norm.build(&layout).unwrap().value(&w) - smallest).abs() < 2e-9, "{norm}");
    }
}

#[test]
fn every_norm_is_solved_to_the_last_digits() {
    for layout in layouts() {
        for norm in NormSpec::examples(&layout) {
            for (count, shift) in [(2, 0.0), (15, 0.4), (40, 2.0)] {
                let size = value(&problem(count, shift, &norm, &layout), 1e-12);
                assert!(size > 0.0);
            }
        }
    }
}

#[test]
fn both_solvers_find_the_same_in_both_forms() {
    let [_, layout] = layouts();
    for norm in NormSpec::examples(&layout) {
        let problem = problem(12, 1.0, &norm, &layout);
        let expected = value(&problem, 1e-12);
        let scaled = Scaled::new(&problem, &mut *norm.build(&layout).unwrap());
        let ball = Part::of(&norm, &layout).unwrap();
        for (form, posed) in [("primal", scaled.primal(&ball)), ("dual", scaled.dual(&ball))] {
            for solver in Solver::ALL {
                let mut last = None;
                let found = solver.attempt(&posed.program, &mut |point| {
                    let (v, multipliers) = scaled.read(&posed, point);
                    let bracket = problem.bracket(&v, &multipliers)?;
                    last = Some(bracket);
                    Ok(bracket.relative_gap())
                });
                // the dense method may give up on a power below 2, whose curvature has no bound
                let allowed = solver == Solver::Dense && norm.to_string().contains("lp:");
                let found = found.map(|_| last.unwrap());
                // the general solver is built without semidefinite cones and must say so
                let semidefinite = |(cone, _): &(Cone, _)| matches!(cone, Cone::Semidefinite(_));
                if solver == Solver::General && posed.program.sections.iter().any(semidefinite) {
                    assert!(found.unwrap_err().to_string().contains("no semidefinite cones"), "{norm} {form}");
                    continue;
                }
                assert!(allowed || found.is_ok(), "{norm} {form} {solver:?} {found:?}");
                if let Ok(bracket) = found {
                    let good = bracket.relative_gap() < 1e-11 && (bracket.upper / expected - 1.0).abs() < 1e-11;
                    assert!(allowed || good, "{norm} {form} {solver:?} {bracket:?}");
                }
            }
        }
    }
}

#[test]
fn the_margin_of_one_point_is_its_dual_norm() {
    for layout in layouts() {
        for norm in NormSpec::examples(&layout) {
            let problem = problem(1, 1.0, &norm, &layout);
            let expected = norm.build(&layout).unwrap().dual(problem.rows.row(0));
            assert!((value(&problem, 1e-12) - expected).abs() < 1e-12 * expected, "{norm}");
        }
    }
}

#[test]
fn duplicate_and_parallel_points_change_nothing() {
    let [layout, _] = layouts();
    for norm in NormSpec::examples(&layout) {
        let once = problem(6, 1.0, &norm, &layout);
        let expected = value(&once, 1e-12);
        let mut twice = once.clone();
        twice.rows.rows = 12;
        twice.rows.data.extend_from_within(..);
        assert!((value(&twice, 1e-12) - expected).abs() < 1e-12 * expected, "{norm}");
        // the second copy is longer and so never the smallest
        twice.rows.data[once.rows.data.len()..].iter_mut().for_each(|x| *x *= 3.0);
        assert!((value(&twice, 1e-12) - expected).abs() < 1e-12 * expected, "{norm}");
    }
}

#[test]
fn the_size_of_the_data_does_not_matter() {
    let [_, layout] = layouts();
    for norm in NormSpec::examples(&layout) {
        let unit = problem(10, 1.0, &norm, &layout);
        let expected = value(&unit, 1e-12);
        for size in [1e-6, 1e6] {
            let mut scaled = unit.clone();
            scaled.rows.data.iter_mut().for_each(|x| *x *= size);
            assert!((value(&scaled, 1e-12) / (size * expected) - 1.0).abs() < 1e-12, "{norm}");
            // rows of sizes from 1e-6 to 1e6 side by side
            let mut mixed = unit.clone();
            (0..10).for_each(|i| mixed.rows.row_mut(i).iter_mut().for_each(|x| *x *= size.powf(i as f64 / 9.0)));
            value(&mixed, 1e-12);
        }
    }
}

/// Opposite points with a common part of size 1e-9: the direction has to be orthogonal to what dominates the rows. What
/// rounding leaves of the products is about 1e-16·‖h‖_*, so norms whose duals add up are left with 1e-7 or so.
#[test]
fn a_margin_of_1e_9_has_correct_digits() {
    let [layout, _] = layouts();
    for norm in NormSpec::examples(&layout) {
        let mut small = problem(8, 1.0, &norm, &layout);
        let first = small.rows.row(0)[..6].to_vec();
        for i in 0..8 {
            let sign = if i % 2 == 0 { 1.0 } else { -1.0 } * (1.0 + i as f64 / 7.0);
            let (large, tiny) = small.rows.row_mut(i).split_at_mut(6);
            large.iter_mut().zip(&first).for_each(|(x, first)| *x = sign * first);
            tiny.iter_mut().for_each(|x| *x *= 1e-9);
        }
        // singular values at such margins: the dense method alone, which proves 9e-4 of the spectral margin and no more
        let singular =
            matches!(norm, NormSpec::Spectral | NormSpec::Nuclear | NormSpec::Max { .. } | NormSpec::Sum { .. });
        let size = value(&small, if singular { 2e-3 } else { 1e-4 });
        assert!(1e-10 < size && size < 1e-7, "{norm} {size:e}");
    }
}

#[test]
fn rows_that_cannot_be_separated_come_with_weights_that_cancel() {
    for layout in layouts() {
        for norm in NormSpec::examples(&layout) {
            let problem = problem(80, 0.0, &norm, &layout);
            let (v, multipliers, _) = solve_margin_conic(&problem).unwrap();
            let bracket = problem.bracket(&v, &multipliers).unwrap();
            assert!(bracket.upper.abs() < 1e-13 && bracket.lower <= bracket.upper, "{norm} {bracket:?}");
        }
    }
}

#[test]
fn a_row_of_zeros_is_its_own_proof() {
    let [layout, _] = layouts();
    for norm in NormSpec::examples(&layout) {
        let mut problem = problem(4, 1.0, &norm, &layout);
        problem.rows.row_mut(2).fill(0.0);
        let (v, multipliers, _) = solve_margin_conic(&problem).unwrap();
        let bracket = problem.bracket(&v, &multipliers).unwrap();
        assert_eq!((bracket.lower, bracket.upper), (0.0, 0.0), "{norm}");
        problem.rows.data.fill(0.0);
        let (v, multipliers, _) = solve_margin_conic(&problem).unwrap();
        assert_eq!(problem.bracket(&v, &multipliers).unwrap().lower, 0.0, "{norm}");
    }
}

#[test]
fn kinks_and_cone_rows_are_part_of_every_bracket() {
    for layout in layouts() {
        for norm in NormSpec::examples(&layout) {
            let plain = problem(8, 1.0, &norm, &layout);
            let mut stream = Streams::new(9).stream("kinks");
            let mut sparse = |first: usize| {
                let mut run = vec![0.0; 4];
                stream.fill_normal(&mut run);
                vec![(first, run)]
            };
            let kinks = (0..12).map(|k| KinkRow { row: k % 8, change: sparse(k % 9) }).collect();
            let cone = (0..4).map(|m| sparse(2 * m)).collect();
            let full = plain.clone().with_kinks(kinks).unwrap().with_cone(cone);
            assert!(value(&full, 1e-11) < value(&plain, 1e-12), "{norm}");
        }
    }
}

/// Values by cvxpy 1.9 with Clarabel at tolerance 1e-12.
#[test]
fn kinks_and_cone_rows_agree_with_stored_values() {
    let (rows, layout) = stored_rows();
    let sparse = |i: usize, shift: f64| vec![(0, (0..15).map(|j| stored_entry(i, j) - shift).collect())];
    let kinks: Vec<KinkRow> = (7..9).map(|i| KinkRow { row: 0, change: sparse(i, 1.0) }).collect();
    let cone: Vec<_> = (11..13).map(|i| sparse(i, 0.9)).collect();
    for (norm, expected) in [
        (NormSpec::L1, 0.600000000000),
        (NormSpec::Lp { p: 3.0 }, 1.923722127562),
        (NormSpec::Spectral, 2.625839250339),
        (NormSpec::Nuclear, 0.881690626176),
    ] {
        let problem = MarginProblem::new(rows.clone(), norm, layout.clone()).unwrap();
        let problem = problem.with_kinks(kinks.clone()).unwrap().with_cone(cone.clone());
        let found = value(&problem, 1e-12);
        assert!((found - expected).abs() < 2e-9, "{} {found}", problem.norm);
    }
}

#[test]
fn semidefinite_problems_have_trace_one_and_their_eigenvalue_as_proof() {
    let solve = |rows: &[&[f64]], size: usize| {
        let layout = ParamLayout::new([("w", size, size)]).unwrap();
        let problem =
            MarginProblem::new(Matrix::from_rows(rows), NormSpec::Nuclear, layout).unwrap().semidefinite().unwrap();
        let (v, multipliers, _) = solve_margin_conic(&problem).unwrap();
        let bracket = problem.bracket(&v, &multipliers).unwrap();
        assert!(bracket.relative_gap() < 1e-12, "{bracket:?}");
        (bracket.upper, v, multipliers)
    };
    // diag(2, 0) and diag(0, 1): 2a = 1 − a on the diagonal of W, so a = ⅓ and the value is ⅔; p = (⅓, ⅔)
    let (size, v, multipliers) = solve(&[&[2.0, 0.0, 0.0, 0.0], &[0.0, 0.0, 0.0, 1.0]], 2);
    assert!((size - 2.0 / 3.0).abs() < 1e-14 && (v[0] / (v[0] + v[3]) - 1.0 / 3.0).abs() < 1e-9);
    assert!((multipliers.rows[0] / multipliers.rows.iter().sum::<f64>() - 1.0 / 3.0).abs() < 1e-9);
    // one matrix, of which only the symmetric part [1 1; 1 0] counts: its largest eigenvalue is the golden ratio
    assert!((solve(&[&[1.0, 2.0, 0.0, 0.0]], 2).0 - 0.5 * (1.0 + 5.0_f64.sqrt())).abs() < 1e-14);
    // a value below 0, where tr W = 1 forbids W = 0
    assert!((solve(&[&[-1.0, 0.0, 0.0, -3.0]], 2).0 + 1.0).abs() < 1e-14);
    // five 3 × 3 matrices; by cvxpy 1.9 with Clarabel at tolerance 1e-12
    let matrices: Vec<Vec<f64>> = (0..5).map(|i| (0..9).map(|j| stored_entry(i, j)).collect()).collect();
    let rows: Vec<&[f64]> = matrices.iter().map(Vec::as_slice).collect();
    assert!((solve(&rows, 3).0 - 0.701135192126).abs() < 2e-9);
}

#[test]
fn smallest_norms_come_with_multipliers_that_prove_them() {
    for layout in layouts() {
        for norm in NormSpec::examples(&layout) {
            for count in [1, 5, 9] {
                let mut x = problem(count, 0.0, &norm, &layout).rows;
                let mut y: Vec<f64> = (0..count).map(|i| 1.5 - (i % 4) as f64).collect();
                if count == 9 {
                    // an equation that follows from another
                    let first: Vec<f64> = x.row(0).iter().map(|x| -2.0 * x).collect();
                    x.row_mut(4).copy_from_slice(&first);
                    y[4] = -2.0 * y[0];
                }
                let (w, weights, _) = minimum_norm_conic(&x, &y, &norm, &layout).unwrap();
                let mut worker = norm.build(&layout).unwrap();
                let mut combination = vec![0.0; layout.len()];
                weights.iter().enumerate().for_each(|(i, weight)| add_scaled(&mut combination, *weight, x.row(i)));
                let frozen: Vec<usize> = layout.blocks().iter().filter(|b| b.frozen).flat_map(|b| b.range()).collect();
                assert!(frozen.iter().all(|j| w[*j] == 0.0));
                let size = worker.value(&w);
                assert!((0..count).all(|i| (dot(x.row(i), &w) - y[i]).abs() < 1e-12), "{norm}");
                assert!((dot(&weights, &y) - size).abs() < 1e-12 * size, "{norm} {count}");
                assert!((worker.dual(&combination) - 1.0).abs() < 1e-12, "{norm} {count}");
            }
        }
    }
}

#[test]
fn equations_without_a_solution_are_refused_and_zero_targets_have_zero_weights() {
    let layout = ParamLayout::vector(2);
    let x = Matrix::from_rows(&[&[1.0, 2.0], &[2.0, 4.0]]);
    let error = minimum_norm_conic(&x, &[1.0, 1.0], &NormSpec::Lp { p: 3.0 }, &layout).unwrap_err();
    // the nearest targets are (0.6, 1.2), √0.2 away
    assert!(matches!(error, ReferenceError::Inconsistent { residual, equations: 2, rank: 1 }
        if (residual - 0.1_f64.sqrt()).abs() < 1e-12));
    let (w, weights, _) = minimum_norm_conic(&x, &[0.0, 0.0], &NormSpec::Nuclear, &layout).unwrap();
    assert!(w == [0.0; 2] && weights == [0.0; 2]);
    assert!(minimum_norm_conic(&x, &[1.0], &NormSpec::L2, &layout).is_err());
    assert!(minimum_norm_conic(&x, &[f64::NAN, 1.0], &NormSpec::L2, &layout).is_err());
}

/// One equation ⟨x, w⟩ = 1: the smallest norm is 1/‖x‖_*, reached at the steepest direction.
#[test]
fn the_smallest_norm_of_one_equation_is_one_over_the_dual_norm() {
    for layout in layouts() {
        for norm in NormSpec::examples(&layout) {
            let x = problem(1, 0.0, &norm, &layout).rows;
            let (w, ..) = minimum_norm_conic(&x, &[1.0], &norm, &layout).unwrap();
            let mut worker = norm.build(&layout).unwrap();
            assert!((worker.value(&w) * worker.dual(x.row(0)) - 1.0).abs() < 1e-13, "{norm}");
        }
    }
}

#[test]
fn weights_of_one_row_prove_nothing_beyond_it() {
    // the bracket itself, so that the battery above means something: a bad answer has a wide bracket
    let [layout, _] = layouts();
    for norm in NormSpec::examples(&layout) {
        let problem = problem(10, 0.4, &norm, &layout);
        let (v, ..) = solve_margin_conic(&problem).unwrap();
        let mut rows = vec![0.0; 10];
        rows[0] = 1.0;
        assert!(problem.bracket(&v, &Multipliers::of_rows(rows)).unwrap().relative_gap() > 1e-3, "{norm}");
    }
}
