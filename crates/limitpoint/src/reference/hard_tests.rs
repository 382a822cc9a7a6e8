//! Problems that a solver in doubles gets wrong: tiny margins, extreme scales, data on the border of separability.

use super::*;
use crate::data::{Dataset, Targets};
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
            for (seed, delta) in [(1, 1e-3), (2, 1e-5), (3, 1e-7), (4, 1e-8), (5, 1e-9), (6, 1e-10)] {
                let rows = planted(seed, 30, &layout, delta);
                let problem = MarginProblem::new(rows, norm.clone(), layout.clone()).unwrap();
                let found = max_margin(&problem).unwrap();
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
        assert_eq!(found.status, MarginStatus::Optimal, "{norm}: {:?}", found.bracket);
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
fn the_margin_of_many_classes_scales_with_the_data() {
    // 600 examples of three classes have 1,200 rows, which are not all made
    let mut stream = Streams::new(11).stream("classes");
    let (count, d) = (600, 4);
    let mut inputs = Matrix::zeros(count, d);
    stream.fill_normal(&mut inputs.data);
    let labels: Vec<usize> = (0..count).map(|i| i % 3).collect();
    for (i, label) in labels.iter().enumerate() {
        inputs.row_mut(i).iter_mut().for_each(|x| *x = x.clamp(-2.0, 2.0));
        inputs[(i, *label)] += 5.0;
    }
    let solve = |norm: NormSpec, c: f64| {
        let mut inputs = inputs.clone();
        inputs.data.iter_mut().for_each(|x| *x *= c);
        let targets = Targets::Classes { labels: labels.clone(), count: 3 };
        max_margin_of(&Dataset::new("scaled", inputs, targets, vec![d]).unwrap(), norm).unwrap()
    };
    for norm in [NormSpec::L1, NormSpec::L2, NormSpec::Linf, NormSpec::GroupL21] {
        let plain = solve(norm.clone(), 1.0);
        assert_eq!(plain.status, MarginStatus::Optimal, "{norm}");
        for c in [1e-300, 1e-160, 1e-20, 1e155, 1e300] {
            let found = solve(norm.clone(), c);
            assert_eq!(found.status, MarginStatus::Optimal, "{norm} {c:e} {:?}", found.bracket);
            assert!((found.margin / c / plain.margin - 1.0).abs() < 2e-9, "{norm} {c:e}: {}", found.margin);
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

#[test]
fn semidefinite_margins_are_right_in_every_norm() {
    let layout = ParamLayout::new([("w", 2, 2)]).unwrap();
    // X = I: the margin is the largest trace of a semidefinite matrix of norm 1
    let identity = Matrix::from_rows(&[&[1.0, 0.0, 0.0, 1.0]]);
    let expected = [
        (NormSpec::Nuclear, 1.0),
        (NormSpec::Spectral, 2.0),
        (NormSpec::L2, 2f64.sqrt()),
        (NormSpec::Frobenius, 2f64.sqrt()),
        (NormSpec::L1, 1.0),
        (NormSpec::Linf, 2.0),
        (NormSpec::Lp { p: 3.0 }, 2f64.powf(2.0 / 3.0)),
        (NormSpec::GroupL21, 1.0),
        (NormSpec::GroupL2Inf, 2.0),
    ];
    for (norm, value) in expected {
        let problem =
            MarginProblem::new(identity.clone(), norm.clone(), layout.clone()).unwrap().semidefinite().unwrap();
        let found = max_margin(&problem).unwrap();
        let Bracket { lower, upper } = found.bracket;
        assert!(
            lower <= value * (1.0 + 1e-15) && value * (1.0 - 1e-15) <= upper,
            "{norm}: {lower} {upper}, not {value}"
        );
        assert_eq!(found.status, MarginStatus::Optimal, "{norm}: {:?}", found.bracket);
    }
    // random rows: the bracket is in order and closes in every norm of the library
    let layout = ParamLayout::new([("w", 3, 3)]).unwrap();
    for norm in NormSpec::examples(&layout) {
        let mut rows = Matrix::zeros(5, 9);
        Streams::new(11).stream("semidefinite").fill_normal(&mut rows.data);
        (0..5).for_each(|i| (0..3).for_each(|j| rows[(i, 4 * j)] += 2.0));
        let problem = MarginProblem::new(rows, norm.clone(), layout.clone()).unwrap().semidefinite().unwrap();
        let found = max_margin(&problem).unwrap();
        assert!(found.bracket.lower <= found.bracket.upper, "{norm}: {:?}", found.bracket);
        // curved norms over the cone have no second solver: some are only bracketed, and say so
        let curved = matches!(norm, NormSpec::Lp { .. });
        assert!(found.status == MarginStatus::Optimal || curved, "{norm}: {:?}", found.bracket);
        assert!(found.bracket.upper.is_finite());
    }
}

#[test]
fn classes_are_solved_as_their_rows_are() {
    use crate::data::{Dataset, Targets};
    let mut inputs = Matrix::zeros(600, 5);
    let mut stream = Streams::new(12).stream("classes");
    stream.fill_normal(&mut inputs.data);
    let labels: Vec<usize> = (0..600).map(|i| i % 3).collect();
    for (i, label) in labels.iter().enumerate() {
        inputs.row_mut(i)[*label] += 8.0;
    }
    let separable =
        Dataset::new("classes", inputs.clone(), Targets::Classes { labels: labels.clone(), count: 3 }, vec![5])
            .unwrap();
    for norm in [NormSpec::L1, NormSpec::L2, NormSpec::Linf, NormSpec::Spectral] {
        let found = max_margin_of(&separable, norm.clone()).unwrap();
        let whole = max_margin(&MarginProblem::linear(&separable, norm.clone()).unwrap()).unwrap();
        assert_eq!((found.status, whole.status), (MarginStatus::Optimal, MarginStatus::Optimal), "{norm}");
        assert!((found.margin / whole.margin - 1.0).abs() < 1e-9, "{norm}: {} {}", found.margin, whole.margin);
        assert_eq!(found.dual.len(), 1200);
    }
    inputs.row_mut(7).fill(0.0);
    inputs.row_mut(7)[0] = 9.0;
    let mixed = Dataset::new("mixed", inputs, Targets::Classes { labels, count: 3 }, vec![5]).unwrap();
    for norm in [NormSpec::L2, NormSpec::L1, NormSpec::Spectral] {
        let found = max_margin_of(&mixed, norm.clone()).unwrap();
        assert_eq!(found.status, MarginStatus::NotSeparable, "{norm}: {:?}", found.bracket);
        assert!(found.bracket.upper < 1e-20, "{norm}: {:?}", found.bracket);
    }
}
