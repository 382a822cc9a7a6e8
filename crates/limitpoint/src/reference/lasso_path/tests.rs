//! The lasso path against its optimality conditions, hand examples and the judge's other solvers.

use super::super::{InterpolationTarget, interpolate};
use super::*;
use crate::linalg::dot;
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::params::ParamLayout;

fn random(rows: usize, columns: usize, seed: u64) -> (Matrix, Vec<f64>) {
    let mut stream = Streams::new(seed).stream("lasso path tests");
    let (mut x, mut y) = (Matrix::zeros(rows, columns), vec![0.0; rows]);
    stream.fill_normal(&mut x.data);
    stream.fill_normal(&mut y);
    (x, y)
}

fn lambdas(path: &LassoPath) -> Vec<f64> {
    path.knots.iter().map(|knot| knot.lambda).collect()
}

const SHAPES: [(usize, usize, u64); 7] =
    [(3, 6, 30), (5, 20, 20), (10, 40, 10), (8, 8, 10), (20, 6, 20), (40, 15, 8), (1, 5, 10)];

#[test]
fn every_knot_is_optimal_and_the_norm_grows() {
    let mut worst: f64 = 0.0;
    for (rows, columns, count) in SHAPES {
        for seed in 0..count {
            let (x, y) = random(rows, columns, seed);
            let path = lasso_path(&x, &y).unwrap();
            worst = worst.max(path.stationarity());
            assert!(path.stationarity() <= 1e-10, "{rows}x{columns}, seed {seed}: {:e}", path.stationarity());
            for pair in path.knots.windows(2) {
                assert!(pair[1].lambda < pair[0].lambda, "{rows}x{columns}, seed {seed}: {:?}", lambdas(&path));
                assert!(pair[1].norm >= pair[0].norm * (1.0 - 1e-12), "{rows}x{columns}, seed {seed}");
            }
            assert_eq!(path.knots[path.knots.len() - 1].lambda, 0.0);
            // between the knots too
            let lambda = 0.37 * path.knots[0].lambda;
            let w = path.at_lambda(lambda);
            let design = Design::new(x.transpose().data.chunks(rows).map(<[f64]>::to_vec).collect(), y);
            assert!(design.violation(lambda, &w) <= 1e-10 * path.knots[0].lambda);
        }
    }
    assert!(worst <= 1e-12, "{worst:e}");
}

#[test]
fn the_end_is_the_interpolant_of_least_l1_norm_or_the_least_squares_solution() {
    let target = InterpolationTarget::Norm(NormSpec::L1);
    for (rows, columns, count) in SHAPES {
        for seed in 0..count.min(10) {
            let (x, y) = random(rows, columns, seed);
            let path = lasso_path(&x, &y).unwrap();
            let end = &path.knots[path.knots.len() - 1];
            if rows <= columns {
                let exact = interpolate(&x, &y, &target, &ParamLayout::vector(columns), None).unwrap();
                let error = (end.norm / exact.objective - 1.0).abs();
                assert!(error <= 1e-9, "{rows}x{columns}, seed {seed}: {error:e}");
                let residual = (0..rows).map(|i| (dot(x.row(i), &end.weights) - y[i]).abs()).fold(0.0, f64::max);
                assert!(residual <= 1e-10 * max_abs(&y), "{rows}x{columns}, seed {seed}: {residual:e}");
            } else {
                let rest: Vec<f64> = (0..rows).map(|i| y[i] - dot(x.row(i), &end.weights)).collect();
                let slopes: Vec<f64> =
                    (0..columns).map(|j| (0..rows).map(|i| x[(i, j)] * rest[i]).sum::<f64>()).collect();
                assert!(max_abs(&slopes) <= 1e-11, "{rows}x{columns}, seed {seed}: {slopes:?}");
            }
        }
    }
}

/// λ_max = 3 on the second column; w₂ = (3 − λ)/2 until the first joins at λ = 1; then w₂ = 1, w₁ = 1 − λ.
#[test]
fn two_columns_by_hand() {
    let path = lasso_path(&Matrix::from_rows(&[&[1.0, 1.0], &[0.0, 1.0]]), &[2.0, 1.0]).unwrap();
    let expected = [(3.0, [0.0, 0.0]), (1.0, [0.0, 1.0]), (0.0, [1.0, 1.0])];
    assert_eq!(path.knots.len(), 3);
    for (knot, (lambda, weights)) in path.knots.iter().zip(expected) {
        assert!((knot.lambda - lambda).abs() < 1e-14);
        assert!(knot.weights.iter().zip(weights).all(|(a, b)| (a - b).abs() < 1e-14), "{knot:?}");
    }
    assert!(path.at_lambda(0.25).iter().zip([0.75, 1.0]).all(|(a, b)| (a - b).abs() < 1e-14));
    assert!(path.at_norm(1.5).iter().zip([0.5, 1.0]).all(|(a, b)| (a - b).abs() < 1e-14));
    assert_eq!(path.at_lambda(9.0), [0.0, 0.0]);
    assert_eq!(path.at_lambda(-1.0), path.at_norm(9.0));
    assert!(path.at_lambda(f64::NAN)[0].is_nan() && path.at_norm(f64::NAN)[0].is_nan());
}

/// Random 3x6 designs of which the path is not monotone, some because a column leaves.
#[test]
fn some_paths_shrink_and_drop_columns() {
    let (mut shrinking, mut dropping) = (Vec::new(), Vec::new());
    for seed in 0..60 {
        let (x, y) = random(3, 6, seed);
        let path = lasso_path(&x, &y).unwrap();
        let drops =
            |pair: &[LassoKnot]| pair[0].weights.iter().zip(&pair[1].weights).any(|(a, b)| *a != 0.0 && *b == 0.0);
        if !path.is_monotone() {
            shrinking.push(seed);
        }
        if path.knots.windows(2).any(drops) {
            dropping.push(seed);
            assert!(!path.is_monotone() && path.stationarity() <= 1e-12);
        }
    }
    assert!(!dropping.is_empty() && shrinking.len() < 60, "{shrinking:?} {dropping:?}");
}

#[test]
fn tied_columns_join_together_and_copies_share_one_weight() {
    // all four columns are tied from the start
    let path = lasso_path(&Matrix::identity(4), &[1.0, -1.0, 1.0, 1.0]).unwrap();
    assert_eq!(lambdas(&path), [1.0, 0.0]);
    assert_eq!(path.at_lambda(0.5), [0.5, -0.5, 0.5, 0.5]);
    // tied, but only one of them gains by joining: (1, 0), (1, 1), (1, −1) with y = (2, 0)
    let path = lasso_path(&Matrix::from_rows(&[&[1.0, 1.0, 1.0], &[0.0, 1.0, -1.0]]), &[2.0, 0.0]).unwrap();
    assert!(path.stationarity() < 1e-14 && (path.knots[path.knots.len() - 1].norm - 2.0).abs() < 1e-14);
    for seed in 0..10 {
        let (x, y) = random(4, 6, seed);
        let plain = lasso_path(&x, &y).unwrap();
        let mut often = Matrix::zeros(4, 19);
        for i in 0..4 {
            for j in 0..6 {
                // a copy, the opposite, and a zero column at the end
                often[(i, j)] = x[(i, j)];
                often[(i, 6 + j)] = x[(i, j)];
                often[(i, 12 + j)] = -x[(i, j)];
            }
        }
        let path = lasso_path(&often, &y).unwrap();
        assert!(path.stationarity() <= 1e-12, "seed {seed}: {:e}", path.stationarity());
        assert_eq!(path.knots.len(), plain.knots.len(), "seed {seed}");
        for (a, b) in path.knots.iter().zip(&plain.knots) {
            assert!((a.norm - b.norm).abs() <= 1e-11 * (1.0 + b.norm), "seed {seed}: {} and {}", a.norm, b.norm);
            assert_eq!(a.weights[18], 0.0);
        }
    }
}

/// Entries ±1 and small integers: many columns tie at the same λ.
#[test]
fn integer_designs_with_many_ties_are_solved() {
    for seed in 0..60 {
        let mut stream = Streams::new(seed).stream("lasso ties");
        let (rows, columns) = (2 + stream.below(5), 2 + stream.below(8));
        let mut x = Matrix::zeros(rows, columns);
        x.data.iter_mut().for_each(|x| *x = stream.below(3) as f64 - 1.0);
        let y: Vec<f64> = (0..rows).map(|_| stream.below(5) as f64 - 2.0).collect();
        let path = lasso_path(&x, &y).unwrap();
        assert!(path.stationarity() <= 1e-12, "seed {seed}: {:e}, {:?}", path.stationarity(), lambdas(&path));
    }
}

#[test]
fn the_units_of_the_data_do_not_matter() {
    let (x, y) = random(5, 9, 1);
    let plain = lasso_path(&x, &y).unwrap();
    let scale = |v: &[f64], factor: f64| v.iter().map(|x| x * factor).collect::<Vec<f64>>();
    let path = lasso_path(&Matrix { data: scale(&x.data, 1e-120), ..x.clone() }, &scale(&y, 1e100)).unwrap();
    assert_eq!(path.knots.len(), plain.knots.len());
    assert!(path.stationarity() <= 1e-12);
    let (a, b) = (&path.knots[path.knots.len() - 1], &plain.knots[plain.knots.len() - 1]);
    assert!((a.norm / b.norm / 1e220 - 1.0).abs() < 1e-9);
    assert!(lasso_path(&Matrix { data: scale(&x.data, 1e-200), ..x }, &scale(&y, 1e200)).is_err());
}

#[test]
fn nothing_to_explain_is_one_knot_and_bad_input_is_refused() {
    let x = Matrix::from_rows(&[&[1.0, 2.0], &[0.0, 0.0]]);
    for y in [[0.0, 0.0], [0.0, 3.0]] {
        let path = lasso_path(&x, &y).unwrap();
        assert_eq!((path.knots.len(), path.knots[0].lambda, path.stationarity()), (1, 0.0, 0.0));
        assert_eq!((path.at_lambda(0.0), path.at_norm(1.0)), (vec![0.0; 2], vec![0.0; 2]));
    }
    let message = |x: &Matrix, y: &[f64]| lasso_path(x, y).unwrap_err().to_string();
    assert!(message(&x, &[1.0]).contains("the vector of targets has 1 entries where 2 are needed"));
    assert!(message(&x, &[1.0, f64::NAN]).contains("a target is NaN"));
    assert!(message(&Matrix::from_rows(&[&[1.0, f64::INFINITY]]), &[1.0]).contains("column 1"));
    assert!(message(&Matrix::zeros(0, 2), &[]).contains("at least one row"));
}
