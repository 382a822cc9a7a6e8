//! Problems that a solver in doubles gets wrong: tiny margins, extreme scales, data on the border of separability.

use super::*;
use crate::linalg::{Matrix, dot, norm2};
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::params::ParamLayout;

/// Rows whose part along a hidden direction u is δ to 2δ, and of size 1 across it: the margin is about δ.
fn planted(seed: u64, count: usize, layout: &ParamLayout, delta: f64) -> Matrix {
    let mut stream = Streams::new(seed).stream("planted");
    let d = layout.len();
    let mut u = vec![0.0; d];
    stream.fill_normal(&mut u);
    let size = norm2(&u);
    u.iter_mut().for_each(|x| *x /= size);
    let mut rows = Matrix::zeros(count, d);
    for i in 0..count {
        let row = rows.row_mut(i);
        stream.fill_normal(row);
        let along = dot(row, &u);
        let wanted = delta * (1.0 + (i % 7) as f64 / 7.0);
        row.iter_mut().zip(&u).for_each(|(x, u)| *x += (wanted - along) * u);
    }
    rows
}

fn layouts() -> [ParamLayout; 2] {
    [ParamLayout::vector(6), ParamLayout::new([("w", 3, 2)]).unwrap()]
}

#[test]
fn margins_down_to_a_ten_billionth_of_the_rows_are_optimal_in_every_norm() {
    for layout in layouts() {
        for norm in NormSpec::examples(&layout) {
            if std::env::var("TRACE").is_ok_and(|t| t != norm.to_string()) {
                continue;
            }
            for (seed, delta) in [(1, 1e-3), (2, 1e-5), (3, 1e-7), (4, 1e-8), (5, 1e-9), (6, 1e-10)] {
                let rows = planted(seed, 30, &layout, delta);
                let problem = MarginProblem::new(rows, norm.clone(), layout.clone()).unwrap();
                let start = std::time::Instant::now();
                let found = max_margin(&problem).unwrap();
                let took = start.elapsed().as_secs_f64();
                if std::env::var("SHOW").is_ok() {
                    eprintln!(
                        "{norm} {delta:e} {} {:e} {:e} {took:.3}",
                        found.status,
                        found.margin,
                        found.bracket.relative_gap()
                    );
                    continue;
                }
                assert_eq!(found.status, MarginStatus::Optimal, "{norm} {delta:e} {:?}", found.bracket);
                assert!(found.margin > 0.0 && found.margin < 1e3 * delta);
            }
        }
    }
}

#[test]
fn one_huge_entry_leaves_separable_data_separable() {
    let layout = ParamLayout::vector(4);
    for norm in NormSpec::examples(&layout) {
        let mut rows = planted(7, 12, &layout, 0.5);
        rows[(3, 1)] = 1e17;
        let problem = MarginProblem::new(rows, norm.clone(), layout.clone()).unwrap();
        let found = max_margin(&problem).unwrap();
        if std::env::var("SHOW").is_ok() {
            eprintln!("{norm} {} {:?}", found.status, found.bracket);
            continue;
        }
        assert_ne!(found.status, MarginStatus::NotSeparable, "{norm}: {:?}", found.bracket);
    }
}

#[test]
fn the_margin_scales_with_the_data() {
    let layout = ParamLayout::new([("w", 3, 2)]).unwrap();
    for norm in NormSpec::examples(&layout) {
        let rows = planted(8, 15, &layout, 0.3);
        let solve = |c: f64| {
            let mut rows = rows.clone();
            rows.data.iter_mut().for_each(|x| *x *= c);
            max_margin(&MarginProblem::new(rows, norm.clone(), layout.clone()).unwrap()).unwrap()
        };
        let plain = solve(1.0);
        assert_eq!(plain.status, MarginStatus::Optimal);
        for c in [1e-300, 1e-160, 1e-20, 1e30, 1e155, 1e300] {
            let found = solve(c);
            assert_eq!(found.status, MarginStatus::Optimal, "{norm} {c:e} {:?}", found.bracket);
            assert!(
                (found.margin / c / plain.margin - 1.0).abs() < 2e-9,
                "{norm} {c:e}: {} {}",
                found.margin,
                plain.margin
            );
        }
    }
}

#[test]
fn one_input_under_both_labels_is_proven_inseparable_in_every_norm() {
    for layout in layouts() {
        for norm in NormSpec::examples(&layout) {
            let mut rows = planted(9, 12, &layout, 0.4);
            let opposite: Vec<f64> = rows.row(2).iter().map(|x| -x).collect();
            rows.row_mut(5).copy_from_slice(&opposite);
            let found = max_margin(&MarginProblem::new(rows, norm.clone(), layout.clone()).unwrap()).unwrap();
            assert_eq!(found.status, MarginStatus::NotSeparable, "{norm} {:?}", found.bracket);
            assert!((found.dual[2] - 0.5).abs() < 1e-12 && (found.dual[5] - 0.5).abs() < 1e-12, "{norm}");
        }
    }
}
