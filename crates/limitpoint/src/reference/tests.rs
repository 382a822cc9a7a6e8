//! The margin solver on random and degenerate problems, judged by its own brackets and by closed forms.

use super::*;
use crate::data::{Dataset, Targets};
use crate::linalg::{Matrix, dot, norm2};
use crate::norms::NormSpec;
use crate::numeric::{RandomStream, Streams};
use crate::params::ParamLayout;

const DENSE: [NormSpec; 3] = [NormSpec::L1, NormSpec::L2, NormSpec::Linf];

fn stream(seed: u64) -> RandomStream {
    Streams::new(seed).stream("reference tests")
}

/// Gaussian rows pushed to the positive side of a random plane, at least `distance` away from it.
fn separable(rows: usize, columns: usize, distance: f64, seed: u64) -> Matrix {
    let mut stream = stream(seed);
    let mut normal = vec![0.0; columns];
    stream.fill_normal(&mut normal);
    let size = norm2(&normal);
    let mut matrix = Matrix::zeros(rows, columns);
    stream.fill_normal(&mut matrix.data);
    for i in 0..rows {
        let along = dot(matrix.row(i), &normal) / size;
        crate::linalg::add_scaled(matrix.row_mut(i), (along.abs() + distance - along) / size, &normal);
    }
    matrix
}

fn problem(rows: Matrix, norm: &NormSpec) -> MarginProblem {
    let layout = ParamLayout::vector(rows.cols);
    MarginProblem::new(rows, norm.clone(), layout).unwrap()
}

#[test]
fn l1_l2_and_linf_margins_are_proven_to_twelve_digits() {
    for (rows, columns, count) in
        [(1, 4, 5), (5, 3, 20), (20, 10, 20), (10, 20, 20), (100, 10, 5), (30, 200, 3), (120, 60, 2)]
    {
        for seed in 0..count {
            let data = separable(rows, columns, 0.05, seed);
            for norm in &DENSE {
                let gap = solve_margin(&problem(data.clone(), norm)).unwrap().bracket.relative_gap();
                assert!(gap <= 1e-12, "{norm}: {rows}x{columns}, seed {seed}: gap {gap:e}");
            }
        }
    }
}

#[test]
fn weighted_and_composed_polyhedral_norms_go_the_dense_way_and_are_proven_too() {
    use crate::norms::BlockNorm;
    let layout = ParamLayout::new([("a", 2, 3), ("b", 4, 1), ("c", 1, 2)]).unwrap().freeze(&["c"]).unwrap();
    let norms = [
        NormSpec::Quadratic { diagonal: (0..10).map(|i| 0.5 + i as f64).collect() },
        NormSpec::Max {
            blocks: vec![BlockNorm::new("a", NormSpec::Linf).weighted(3.0), BlockNorm::new("*", NormSpec::Linf)],
        },
        NormSpec::Sum {
            blocks: vec![BlockNorm::new("a", NormSpec::L1).weighted(0.25), BlockNorm::new("*", NormSpec::L1)],
        },
    ];
    for norm in norms {
        assert!(margin::ball_of(&norm, &layout).unwrap().is_some(), "{norm}");
        let solution =
            solve_margin(&MarginProblem::new(separable(9, 12, 0.2, 3), norm.clone(), layout.clone()).unwrap()).unwrap();
        assert!(solution.bracket.relative_gap() <= 1e-12, "{norm}: {:?}", solution.bracket);
        assert!(solution.direction[10..].iter().all(|x| *x == 0.0), "a frozen block moved under {norm}");
    }
}

#[test]
fn a_single_point_has_its_dual_norm_as_margin() {
    for norm in &DENSE {
        let row = [3.0, -4.0, 0.5, 0.0];
        let solution = max_margin(&problem(Matrix::from_rows(&[&row]), norm)).unwrap();
        let expected = norm.build_vector(4).unwrap().dual(&row);
        assert!((solution.margin / expected - 1.0).abs() < 1e-14, "{norm}: {} against {expected}", solution.margin);
    }
}

#[test]
fn repeated_and_parallel_points_do_not_disturb() {
    let once = Matrix::from_rows(&[&[3.0, -4.0], &[1.0, 1.0]]);
    let often =
        Matrix::from_rows(&[&[3.0, -4.0], &[1.0, 1.0], &[3.0, -4.0], &[6.0, -8.0], &[1.0, 1.0], &[30.0, -40.0]]);
    for norm in &DENSE {
        let (a, b) =
            (max_margin(&problem(once.clone(), norm)).unwrap(), max_margin(&problem(often.clone(), norm)).unwrap());
        assert!((a.margin / b.margin - 1.0).abs() < 1e-13, "{norm}");
        assert!(b.bracket.relative_gap() < 1e-12, "{norm}");
    }
}

#[test]
fn tiny_margins_are_found() {
    // (±1, 1e-9): the second axis alone separates, with margin 1e-9 in every norm
    for norm in &DENSE {
        let solution = max_margin(&problem(Matrix::from_rows(&[&[1.0, 1e-9], &[-1.0, 1e-9]]), norm)).unwrap();
        assert!((solution.margin / 1e-9 - 1.0).abs() < 1e-12, "{norm}: {}", solution.margin);
    }
    // x₁ = (1, 0.3), x₂ = −x₁ + (1e-9, 0): the distance of the segment from 0 is 1e-9·0.3/(2·|x₁|) in the limit; here
    // the weights themselves are rounded to 1e-16, so that the margin is proven to about 1e-6 of itself only
    let solution =
        max_margin(&problem(Matrix::from_rows(&[&[1.0, 0.3], &[-1.0 + 1e-9, -0.3]]), &NormSpec::L2)).unwrap();
    let expected = 1e-9 * 0.3 / (2.0 * 1.09_f64.sqrt());
    assert!((solution.margin / expected - 1.0).abs() < 1e-6, "{} against {expected}", solution.margin);
}

#[test]
fn the_scale_of_the_data_is_the_scale_of_the_margin() {
    let data = separable(20, 10, 0.1, 7);
    for norm in &DENSE {
        let margin = max_margin(&problem(data.clone(), norm)).unwrap().margin;
        for factor in [1e-150, 1e-6, 1e6, 1e120] {
            let mut scaled = data.clone();
            scaled.data.iter_mut().for_each(|x| *x *= factor);
            let ratio = max_margin(&problem(scaled, norm)).unwrap().margin / factor / margin;
            assert!((ratio - 1.0).abs() < 1e-12, "{norm} at {factor:e}: {ratio}");
        }
    }
}

#[test]
fn ten_thousand_points_in_few_dimensions_and_a_hundred_thousand_features_are_solved() {
    for norm in &DENSE {
        let many = solve_margin(&problem(separable(10_000, 5, 0.01, 4), norm)).unwrap();
        assert!(many.bracket.relative_gap() < 1e-12, "{norm}: {:?}", many.bracket);
    }
    let (mut wide, mut stream) = (Matrix::zeros(30, 100_000), stream(5));
    for i in 0..30 {
        for _ in 0..40 {
            wide[(i, stream.below(100_000))] = stream.normal();
        }
    }
    for norm in &DENSE {
        let solution = solve_margin(&problem(wide.clone(), norm)).unwrap();
        assert!(solution.bracket.relative_gap() < 1e-12, "{norm}: {:?}", solution.bracket);
    }
}

#[test]
fn data_that_cannot_be_separated_come_with_a_proof() {
    let mut mixed = separable(40, 10, 0.0, 3);
    (0..10).for_each(|i| mixed.row_mut(i).iter_mut().for_each(|x| *x = -*x));
    let strict = Matrix::from_rows(&[&[1.0, 0.2], &[-1.0, 0.3], &[0.1, -1.0]]);
    let on_a_line = Matrix::from_rows(&[&[1.0, 0.0], &[-1.0, 0.0], &[0.0, 1.0]]);
    let with_zero = Matrix::from_rows(&[&[3.0, -4.0], &[0.0, 0.0]]);
    for rows in [mixed, strict, on_a_line, with_zero] {
        for norm in &DENSE {
            let proof = max_margin(&problem(rows.clone(), norm)).unwrap();
            assert_eq!(proof.status, MarginStatus::NotSeparable, "{norm}");
            assert!(proof.dual.iter().all(|r| *r >= 0.0) && (proof.dual.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let mut combined = vec![0.0; rows.cols];
            (0..rows.rows).for_each(|i| crate::linalg::add_scaled(&mut combined, proof.dual[i], rows.row(i)));
            assert!(norm2(&combined) < 1e-14, "{norm}: {}", norm2(&combined));
        }
    }
}

#[test]
fn ties_are_reported_as_a_face() {
    // one point (1, 1, 0): ℓ1 is tied along (1, −1, 0); ℓ∞ leaves the third weight free; ℓ2 is unique
    let rows = Matrix::from_rows(&[&[1.0, 1.0, 0.0]]);
    let face = |norm: &NormSpec| max_margin(&problem(rows.clone(), norm)).unwrap().uniqueness;
    let l1 = face(&NormSpec::L1);
    assert_eq!((l1.unique, l1.face_dimension), (false, 1));
    assert!((l1.face[0][0] + l1.face[0][1]).abs() < 1e-12 && l1.face[0][2] == 0.0, "{:?}", l1.face);
    let linf = face(&NormSpec::Linf);
    assert_eq!((linf.unique, linf.face_dimension), (false, 1));
    assert!((linf.face[0][2].abs() - 1.0).abs() < 1e-12);
    assert!(face(&NormSpec::L2).unique);
}

#[test]
fn moving_along_the_face_keeps_the_margin_and_generic_data_have_no_face() {
    let mut generic = 0;
    for seed in 0..10 {
        for norm in [NormSpec::L1, NormSpec::Linf] {
            let problem = problem(separable(4, 9, 0.3, seed), &norm);
            let solution = max_margin(&problem).unwrap();
            generic += usize::from(solution.uniqueness.unique);
            for direction in &solution.uniqueness.face {
                let moved: Vec<f64> = solution.direction.iter().zip(direction).map(|(v, d)| v + 1e-6 * d).collect();
                let size = norm.build_vector(9).unwrap().value(&moved);
                let margin = problem.margins(&moved).into_iter().fold(f64::INFINITY, f64::min);
                assert!(size <= 1.0 + 1e-9 && margin >= solution.margin * (1.0 - 1e-9), "{norm}, seed {seed}");
            }
        }
    }
    assert!(generic >= 18, "only {generic} of 20 generic problems had a unique solution");
}

#[test]
fn a_gram_matrix_is_enough_for_l2() {
    let rows = separable(40, 25, 0.1, 11);
    let mut gram = Matrix::zeros(40, 40);
    for i in 0..40 {
        for j in 0..40 {
            gram[(i, j)] = dot(rows.row(i), rows.row(j));
        }
    }
    let (a, b) = (solve_margin_gram(&gram).unwrap(), solve_margin(&problem(rows, &NormSpec::L2)).unwrap());
    assert!((a.bracket.lower / b.bracket.lower - 1.0).abs() < 1e-9 && a.bracket.relative_gap() < 1e-9);
}

#[test]
fn working_sets_give_the_solution_of_the_whole() {
    let rows = separable(400, 40, 0.05, 2);
    for norm in &DENSE {
        let whole = solve_margin(&problem(rows.clone(), norm)).unwrap();
        let pieces = margin::solve_in_pieces(&problem(rows.clone(), norm), 20, 50).unwrap();
        assert!((whole.bracket.lower / pieces.bracket.lower - 1.0).abs() < 1e-11, "{norm}: {whole:?} {pieces:?}");
        assert!(pieces.bracket.relative_gap() < 1e-11, "{norm}");
    }
}

#[test]
fn kinks_let_a_row_choose_its_slope() {
    // one row (1, 0) whose second entry may be anything in [0, 2]: min over e of ‖(1, 2e)‖_* is at e = 0; with a second
    // row (0.5, −1) the slope helps to cancel the second entry, so the optimum falls
    let kink = KinkRow { row: 0, change: vec![(1, vec![2.0])] };
    for norm in &DENSE {
        let rows = Matrix::from_rows(&[&[1.0, 0.0], &[0.5, -1.0]]);
        let plain = solve_margin(&problem(rows.clone(), norm)).unwrap().bracket;
        let kinked = solve_margin(&problem(rows.clone(), norm).with_kinks(vec![kink.clone()]).unwrap()).unwrap();
        assert!(kinked.bracket.relative_gap() < 1e-11, "{norm}: {:?}", kinked.bracket);
        // brute force over p ∈ [0, 1], e ∈ [0, p]
        let mut worker = norm.build_vector(2).unwrap();
        let mut least = f64::INFINITY;
        for i in 0..=400 {
            for j in 0..=400 {
                let p = f64::from(i) / 400.0;
                let e = p * f64::from(j) / 400.0;
                least = least.min(worker.dual(&[p + 0.5 * (1.0 - p), 2.0 * e - (1.0 - p)]));
            }
        }
        assert!(
            (kinked.bracket.upper - least).abs() < 5e-3 && kinked.bracket.upper <= least + 1e-12,
            "{norm}: {least}"
        );
        assert!(kinked.bracket.upper <= plain.upper + 1e-12);
    }
}

#[test]
fn cone_rows_keep_the_direction_inside() {
    // without the cone row the best direction for (1, 1) points up; ⟨(0, −1), v⟩ ≥ 0 forbids that
    for norm in &DENSE {
        let base = problem(Matrix::from_rows(&[&[1.0, 1.0]]), norm);
        let solution = solve_margin(&base.with_cone(vec![vec![(1, vec![-1.0])]])).unwrap();
        assert!((solution.bracket.lower - 1.0).abs() < 1e-10, "{norm}: {:?}", solution.bracket);
        assert!(solution.direction[1] <= 1e-10, "{norm}");
    }
}

#[test]
fn classes_give_the_rows_of_multi_class_margins() {
    let inputs = Matrix::from_rows(&[&[1.0, 0.0], &[0.0, 2.0], &[-1.0, -1.0]]);
    let data = Dataset::new("three", inputs, Targets::Classes { labels: vec![0, 1, 2], count: 3 }, vec![2]).unwrap();
    let problem = MarginProblem::linear(&data, NormSpec::L2).unwrap();
    assert_eq!((problem.rows.rows, problem.rows.cols), (6, 6));
    assert_eq!(problem.rows.row(1), [1.0, 0.0, 0.0, 0.0, -1.0, 0.0]); // example 0: class 0 against class 2
    assert_eq!(problem.rows.row(2), [0.0, -2.0, 0.0, 2.0, 0.0, 0.0]); // example 1: class 1 against class 0
    assert!(solve_margin(&problem).unwrap().bracket.relative_gap() < 1e-12);
}

#[test]
fn bad_problems_are_refused_with_their_numbers() {
    let refuse = |rows: Matrix| MarginProblem::new(rows, NormSpec::L2, ParamLayout::vector(2)).unwrap_err().to_string();
    assert!(refuse(Matrix::from_rows(&[&[1.0, f64::NAN]])).contains("row 0 of the problem has NaN in column 1"));
    assert!(refuse(Matrix::from_rows(&[&[1.0]])).contains("2 entries"));
    let data = Dataset::new("values", Matrix::from_rows(&[&[1.0]]), Targets::Values(vec![0.5]), vec![1]).unwrap();
    assert!(MarginProblem::linear(&data, NormSpec::L2).unwrap_err().to_string().contains("solve interpolate"));
    let square =
        MarginProblem::new(Matrix::from_rows(&[&[1.0, 0.0]]), NormSpec::Nuclear, ParamLayout::vector(2)).unwrap();
    assert!(square.semidefinite().unwrap_err().to_string().contains("2x1"));
}
