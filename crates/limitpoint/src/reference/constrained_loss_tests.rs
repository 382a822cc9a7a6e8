//! The regularisation path over norms, radii and random problems, judged by its own gap and by closed forms.

use super::super::{MarginProblem, MarginStatus, max_margin};
use super::*;
use crate::linalg::norm2;
use crate::norms::BlockNorm;
use crate::numeric::Streams;

const RADII: [f64; 6] = [1e-3, 0.1, 1.0, 10.0, 300.0, 1e4];

fn norms(size: usize) -> Vec<NormSpec> {
    vec![
        NormSpec::L1,
        NormSpec::L2,
        NormSpec::Linf,
        NormSpec::Lp { p: 4.0 / 3.0 },
        NormSpec::Lp { p: 1.5 },
        NormSpec::Lp { p: 3.0 },
        NormSpec::Quadratic { diagonal: (0..size).map(|i| 0.3 + i as f64).collect() },
    ]
}

/// Gaussian rows, moved to one side of a random plane if they are to be separable.
fn random(rows: usize, columns: usize, separable: bool, seed: u64) -> Matrix {
    let mut stream = Streams::new(seed).stream("constrained loss tests");
    let mut normal = vec![0.0; columns];
    stream.fill_normal(&mut normal);
    let size = norm2(&normal);
    let mut matrix = Matrix::zeros(rows, columns);
    stream.fill_normal(&mut matrix.data);
    for n in 0..rows {
        let along = dot(matrix.row(n), &normal) / size;
        if separable {
            add_scaled(matrix.row_mut(n), (along.abs() + 0.1 - along) / size, &normal);
        }
    }
    matrix
}

#[test]
fn gaps_are_small_over_norms_radii_and_problems() {
    let mut worst: f64 = 0.0;
    for (rows, columns, separable) in
        [(1, 1, true), (2, 3, true), (6, 8, true), (12, 5, true), (20, 8, true), (5, 2, false), (20, 4, false)]
    {
        for seed in 0..3 {
            let data = random(rows, columns, separable, seed);
            for norm in norms(columns) {
                for radius in RADII {
                    let found = constrained_loss(&data, &norm, &ParamLayout::vector(columns), radius)
                        .unwrap_or_else(|error| panic!("{norm}: {rows}x{columns}, seed {seed}, c = {radius}: {error}"));
                    let (gap, size) = (found.relative_gap(), norm.build_vector(columns).unwrap().value(&found.weights));
                    worst = worst.max(gap);
                    assert!(gap <= 1e-8, "{norm}: {rows}x{columns}, seed {seed}, c = {radius}: gap {gap:e}, {found:?}");
                    assert!(size <= radius * (1.0 + 1e-14), "{norm}: {size} outside {radius}");
                    assert!((found.softmin.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                    assert!(gap >= -1e-12, "{norm}: {rows}x{columns}, seed {seed}, c = {radius}: gap {gap:e}");
                }
            }
        }
    }
    assert!(worst <= 1e-9, "{worst:e}");
}

#[test]
fn a_single_point_has_a_closed_form() {
    let row = [3.0, -4.0, 0.5];
    for norm in norms(3) {
        for radius in RADII {
            let found = constrained_loss(&Matrix::from_rows(&[&row]), &norm, &ParamLayout::vector(3), radius).unwrap();
            let expected = -radius * norm.build_vector(3).unwrap().dual(&row);
            let error = (found.log_loss - expected) / (1.0 - expected);
            assert!((0.0..1e-9).contains(&error.max(0.0)) && error > -1e-13, "{norm}, c = {radius}: off by {error:e}");
            assert_eq!(found.softmin, [1.0]);
        }
    }
}

/// Rows +1 (three times) and −1 (once) in one dimension: 3e^(−w) + e^w is smallest at w = ½ ln 3, where L = 2√3.
#[test]
fn without_separation_the_minimum_is_inside_a_large_ball() {
    let rows = Matrix::from_rows(&[&[1.0], &[1.0], &[1.0], &[-1.0]]);
    for norm in norms(1) {
        for radius in [10.0, 1e3] {
            let found = constrained_loss(&rows, &norm, &ParamLayout::vector(1), radius).unwrap();
            assert!((found.weights[0] - 0.5 * 3f64.ln()).abs() < 1e-4, "{norm}: {:?}", found.weights);
            assert!((found.log_loss - 12f64.ln() / 2.0).abs() < 1e-8);
        }
        let found = constrained_loss(&rows, &NormSpec::L2, &ParamLayout::vector(1), 0.25).unwrap();
        assert!((found.weights[0] - 0.25).abs() < 1e-8, "{:?}", found.weights);
    }
}

/// B.regpath. Soft-min weights that are not all equal tilt the direction by (ln of their ratios)/(γ*c) at every finite
/// c, so the distance falls as 1/c; one step of Richardson's extrapolation takes that term away.
#[test]
fn directions_tend_to_the_max_margin_direction() {
    for norm in [NormSpec::L1, NormSpec::Lp { p: 1.5 }, NormSpec::L2] {
        for seed in 0..4 {
            let (rows, layout) = (random(8, 4, true, seed), ParamLayout::vector(4));
            let best = max_margin(&MarginProblem::new(rows.clone(), norm.clone(), layout.clone()).unwrap()).unwrap();
            assert!(best.status == MarginStatus::Optimal && best.uniqueness.unique, "{norm}, seed {seed}");
            let direction = |scale: f64| {
                let found = constrained_loss(&rows, &norm, &layout, scale / best.margin).unwrap();
                assert!(found.relative_gap() <= 1e-8, "{norm}, seed {seed}: {:e}", found.relative_gap());
                let size = norm.build_vector(4).unwrap().value(&found.weights);
                found.weights.iter().map(|w| w / size).collect::<Vec<f64>>()
            };
            let distance =
                |v: &[f64]| norm2(&v.iter().zip(&best.direction).map(|(v, best)| v - best).collect::<Vec<f64>>());
            let [near, twice, far, farthest] = [50.0, 100.0, 1000.0, 10000.0].map(direction);
            let [a, b, c] = [&near, &far, &farthest].map(|v| distance(v));
            assert!(a < 0.03 && b < 1e-3 && (c / b - 0.1).abs() < 0.01, "{norm}, seed {seed}: {a:e} {b:e} {c:e}");
            let extrapolated: Vec<f64> = near.iter().zip(&twice).map(|(a, b)| 2.0 * b - a).collect();
            let error = distance(&extrapolated);
            assert!(error < 0.5 * a && error < 5e-3, "{norm}, seed {seed}: {error:e} after {a:e}");
        }
    }
}

#[test]
fn matrix_norms_compositions_and_frozen_blocks_are_proven_too() {
    let layout = ParamLayout::new([("a", 2, 3), ("b", 1, 2), ("c", 1, 1)]).unwrap().freeze(&["c"]).unwrap();
    let blocks = vec![BlockNorm::new("a", NormSpec::Linf).weighted(2.0), BlockNorm::new("b", NormSpec::Lp { p: 3.0 })];
    let norms = [
        NormSpec::Spectral,
        NormSpec::Nuclear,
        NormSpec::GroupL21,
        NormSpec::GroupL2Inf,
        NormSpec::Sum { blocks: blocks.clone() },
        NormSpec::Max { blocks },
    ];
    for norm in norms {
        for radius in [0.1, 10.0, 1e3] {
            let found = constrained_loss(&random(9, 9, true, 5), &norm, &layout, radius).unwrap();
            assert!(found.relative_gap() <= 1e-8, "{norm}, c = {radius}: {:e}", found.relative_gap());
            assert_eq!(found.weights[8], 0.0, "{norm}");
        }
    }
}

#[test]
fn weightless_rows_and_bad_input() {
    let layout = ParamLayout::vector(2);
    let found = constrained_loss(&Matrix::zeros(3, 2), &NormSpec::L2, &layout, 5.0).unwrap();
    assert_eq!((found.weights.as_slice(), found.log_loss), (&[0.0, 0.0][..], 3f64.ln()));
    assert!(found.gap().abs() < 1e-15);
    let rows = Matrix::from_rows(&[&[1.0, 2.0], &[0.0, 0.0]]);
    assert!(constrained_loss(&rows, &NormSpec::L1, &layout, 2.0).unwrap().relative_gap() <= 1e-8);
    for radius in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(constrained_loss(&rows, &NormSpec::L1, &layout, radius).unwrap_err().to_string().contains("radius"));
    }
    assert!(constrained_loss(&rows, &NormSpec::L1, &ParamLayout::vector(3), 1.0).is_err());
    let broken = Matrix::from_rows(&[&[1.0, f64::NAN]]);
    assert!(constrained_loss(&broken, &NormSpec::L1, &layout, 1.0).unwrap_err().to_string().contains("column 1"));
}
