//! The fast way against the general one, which sees all pairs of examples as rows of a margin problem.

use super::*;
use crate::linalg::{Matrix, Precise};
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::params::ParamLayout;
use crate::reference::{MarginProblem, MarginStatus, MaxMargin, max_margin, proven_margin, proven_upper_bound};

/// Gaussian examples, labelled by a plane that does not go through 0 and moved away from it.
fn drawn(rows: usize, columns: usize, distance: f64, seed: u64) -> (Matrix, Vec<f64>) {
    let mut stream = Streams::new(seed).stream("free intercept tests");
    let mut normal = vec![0.0; columns];
    stream.fill_normal(&mut normal);
    let size = norm2(&normal);
    let mut inputs = Matrix::zeros(rows, columns);
    stream.fill_normal(&mut inputs.data);
    let mut signs = Vec::new();
    for i in 0..rows {
        let along = dot(inputs.row(i), &normal) / size - 0.1;
        // both classes have examples
        let sign = if i < 2 { 2.0 * i as f64 - 1.0 } else { along.signum() };
        add_scaled(inputs.row_mut(i), (sign * (along.abs() + distance) - along) / size, &normal);
        signs.push(sign);
    }
    (inputs, signs)
}

fn dataset(inputs: &Matrix, signs: &[f64]) -> Dataset {
    Dataset::new("drawn", inputs.clone(), Targets::Binary(signs.to_vec()), vec![inputs.cols]).unwrap()
}

/// The margin problem of all differences between the classes: its margin is twice that with a free intercept.
fn differences(inputs: &Matrix, signs: &[f64]) -> MarginProblem {
    let mut rows = Vec::new();
    for (i, _) in signs.iter().enumerate().filter(|(_, y)| **y > 0.0) {
        for (j, _) in signs.iter().enumerate().filter(|(_, y)| **y < 0.0) {
            rows.extend(inputs.row(i).iter().zip(inputs.row(j)).map(|(a, b)| a - b));
        }
    }
    let rows = Matrix::from_vec(rows.len() / inputs.cols, inputs.cols, rows).unwrap();
    MarginProblem::new(rows, NormSpec::L2, ParamLayout::vector(inputs.cols)).unwrap()
}

/// The answer of the general solver.
fn general(inputs: &Matrix, signs: &[f64]) -> MaxMargin {
    max_margin(&differences(inputs, signs)).unwrap()
}

/// Checks an answer against the general one, and its proof by both ways of proving.
fn agree(inputs: &Matrix, signs: &[f64], digits: f64, what: &str) {
    let data = dataset(inputs, signs);
    let found = free_margin(&data).unwrap().unwrap_or_else(|| panic!("{what}: nothing found"));
    let expected = general(inputs, signs);
    assert_eq!(expected.status, MarginStatus::Optimal, "{what}");
    let off = (2.0 * found.bracket.lower / expected.margin - 1.0).abs();
    assert!(off <= digits, "{what}: margin {} off by {off:e}", found.bracket.lower);
    assert!(found.bracket.relative_gap() <= digits, "{what}: gap {:e}", found.bracket.relative_gap());
    // both bounds again, from what was returned
    let lower = proven_free_margin(&data, &found.direction).unwrap();
    let upper = proven_free_upper_bound(&data, &found.dual).unwrap();
    assert_eq!((lower.lo, upper.hi), (found.bracket.lower, found.bracket.upper), "{what}");
    // and by the general proofs: of the direction on all differences, of the weights on products of both classes' weights
    let problem = differences(inputs, signs);
    let v: Vec<Precise> = found.direction.iter().map(|x| Precise::from(*x)).collect();
    let same = |a: f64, b: f64| (a / b - 1.0).abs() <= 1e-11;
    assert!(same(proven_margin(&problem, &v).unwrap().lo, 2.0 * lower.lo), "{what}");
    let weights = |sign: f64| (0..signs.len()).filter(move |&i| signs[i] == sign).map(|i| found.dual[i]);
    let pairs: Vec<Precise> =
        weights(1.0).flat_map(|p| weights(-1.0).map(move |q| Precise::from(4.0 * p * q))).collect();
    assert!(same(proven_upper_bound(&problem, &pairs, &[]).unwrap().hi, 2.0 * upper.hi), "{what}");
    // the intercept leaves both classes as far away
    let margins =
        Examples { entries: &inputs.data, columns: inputs.cols, signs }.margins(&found.direction, found.intercept);
    let smallest = margins.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(smallest >= found.bracket.lower * (1.0 - 1e-9), "{what}: {smallest}");
}

#[test]
fn random_problems_agree_with_the_general_solver_to_twelve_digits() {
    for (rows, columns, count) in
        [(2, 1, 3), (5, 3, 20), (20, 10, 20), (10, 20, 20), (60, 10, 10), (30, 200, 3), (70, 40, 4), (90, 2, 10)]
    {
        for seed in 0..count {
            for distance in [0.02, 1.0] {
                let (inputs, signs) = drawn(rows, columns, distance, seed);
                agree(&inputs, &signs, 1e-12, &format!("{rows}x{columns} {distance} seed {seed}"));
            }
        }
    }
}

#[test]
fn degenerate_data_agree_too_or_are_left_to_the_general_solver() {
    let (inputs, signs) = drawn(24, 5, 0.3, 1);
    let twice = |matrix: &Matrix| Matrix { rows: 48, cols: 5, data: [&matrix.data[..], &matrix.data].concat() };
    agree(&twice(&inputs), &[&signs[..], &signs].concat(), 1e-12, "every example twice");
    let mut constant = Matrix::zeros(24, 8);
    for i in 0..24 {
        constant.row_mut(i)[..5].copy_from_slice(inputs.row(i));
        let copy = 2.0 * inputs.row(i)[0];
        constant.row_mut(i)[5..].copy_from_slice(&[7.0, 0.0, copy]);
    }
    agree(&constant, &signs, 1e-12, "columns that are constant or copies");
    let mut shifted = inputs.clone();
    shifted.data.iter_mut().for_each(|x| *x += 1e3);
    agree(&shifted, &signs, 1e-10, "far from 0");
    // a grid: many examples at the same distance
    let grid =
        Matrix::from_vec(32, 2, (0..32).flat_map(|i| [f64::from(i / 2 % 4), f64::from(i % 2 * 3 + i / 8)]).collect());
    let grid_signs: Vec<f64> = (0..32).map(|i| if i % 2 * 3 + i / 8 < 3 { 1.0 } else { -1.0 }).collect();
    let grid = grid.unwrap();
    if free_margin(&dataset(&grid, &grid_signs)).unwrap().is_some() {
        agree(&grid, &grid_signs, 1e-12, "a grid");
    }
    for scale in [1e-300, 1e-20, 1e20, 1e300] {
        let mut scaled = inputs.clone();
        scaled.data.iter_mut().for_each(|x| *x *= scale);
        let found = free_margin(&dataset(&scaled, &signs)).unwrap();
        assert_eq!(found.is_some(), (1e-100..1e100).contains(&scale), "{scale:e}");
        if let Some(found) = found {
            let off = 2.0 * found.bracket.lower / scale / general(&inputs, &signs).margin - 1.0;
            assert!(off.abs() < 1e-12, "{scale:e}: {off:e}");
        }
    }
}

#[test]
fn two_examples_have_half_their_distance_as_margin() {
    let inputs = Matrix::from_rows(&[&[1.0, 2.0, 2.0], &[-2.0, 2.0, 6.0]]);
    let found = free_margin(&dataset(&inputs, &[1.0, -1.0])).unwrap().unwrap();
    assert!((found.bracket.lower - 2.5).abs() < 1e-14 && found.dual == [0.5, 0.5]);
}

#[test]
fn nothing_is_found_where_classes_meet_or_one_is_missing() {
    for seed in 0..10 {
        let (inputs, mut signs) = drawn(40, 3, 0.1, seed);
        signs.iter_mut().enumerate().filter(|(i, _)| i % 7 == 3).for_each(|(_, y)| *y = -*y);
        assert_eq!(free_margin(&dataset(&inputs, &signs)).unwrap(), None, "seed {seed}");
        assert_eq!(free_margin(&dataset(&inputs, &[1.0; 40])).unwrap(), None);
    }
    // the same example in both classes
    let inputs = Matrix::from_rows(&[&[1.0, 2.0], &[1.0, 2.0], &[0.0, 1.0]]);
    assert_eq!(free_margin(&dataset(&inputs, &[1.0, -1.0, 1.0])).unwrap(), None);
}

#[test]
fn nothing_is_proven_by_weights_of_one_class_or_a_direction_of_another_length() {
    let (inputs, signs) = drawn(6, 2, 0.5, 0);
    let data = dataset(&inputs, &signs);
    let whole = crate::intervals::Interval::WHOLE;
    let one: Vec<f64> = signs.iter().map(|y| y.max(0.0)).collect();
    assert_eq!(proven_free_upper_bound(&data, &one).unwrap(), whole);
    assert_eq!(proven_free_upper_bound(&data, &[-1.0; 6]).unwrap(), whole);
    assert_eq!(proven_free_upper_bound(&data, &[f64::NAN; 6]).unwrap(), whole);
    assert!(proven_free_margin(&data, &[1.0; 3]).is_err());
}
