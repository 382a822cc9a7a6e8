//! Optimality of interpolating points: laws over every potential, then cases with known answers.

use super::*;
use crate::linalg::{add_scaled, dot, matmul_nt, norm2};
use crate::numeric::{RandomStream, Streams};
use crate::params::{Block, assign};
use crate::potentials::{PotentialError, QuadraticWeights};

/// Every example on a vector, on two blocks and on square blocks with a frozen one, where it fits.
fn cases() -> Vec<(PotentialSpec, ParamLayout)> {
    let layouts = [
        ParamLayout::vector(8),
        ParamLayout::new([("w", 2, 3), ("v", 3, 2)]).unwrap(),
        ParamLayout::new([("w", 3, 3), ("u", 1, 2), ("s", 2, 2)]).unwrap().freeze(&["u"]).unwrap(),
    ];
    let mut cases = Vec::new();
    for layout in layouts {
        let count: usize = layout.trainable().map(Block::len).sum();
        let entry = |i: usize, j: usize| if i == j { 2.0 } else { 0.9 / (1.0 + i.abs_diff(j) as f64).powi(2) };
        let dense = (0..count).map(|i| (0..count).map(|j| entry(i, j)).collect()).collect();
        let mut specs = PotentialSpec::examples();
        specs.push(PotentialSpec::Quadratic(QuadraticWeights::Matrix(dense)));
        specs.push(PotentialSpec::Quadratic(QuadraticWeights::Diagonal((0..count).map(|i| 0.5 + i as f64).collect())));
        for text in [
            "smoothed:6,0",
            "squared-lp:1.02",
            "power-smoothed:1.05,0",
            "layers:w=entropy|*=squared-lp:1.5",
            "layers:w=entropy|*=smoothed:4,0",
            "layers:w=spectral-entropy|*=smoothed:3,0",
            "layers:w=squared-lp:1.1|*=smoothed:6,0",
        ] {
            specs.push(text.parse().unwrap());
        }
        cases.extend(specs.into_iter().filter_map(|spec| match spec.build(&layout) {
            Ok(_) => Some((spec, layout.clone())),
            Err(PotentialError::NotSquare { .. } | PotentialError::Params(_)) => None,
            Err(other) => panic!("{spec}: {other}"),
        }));
    }
    for example in PotentialSpec::examples() {
        assert!(cases.iter().any(|(spec, _)| *spec == example), "{example} fits no layout");
    }
    cases
}

/// Random weights of the domain, of about the given size.
fn weights(spec: &PotentialSpec, layout: &ParamLayout, stream: &mut RandomStream, size: f64) -> Vec<f64> {
    let mut w = vec![0.0; layout.len()];
    for block in layout.blocks() {
        let slice = &mut w[block.range()];
        stream.fill_normal(slice);
        let own = match spec {
            PotentialSpec::Layers { blocks } => {
                let own = assign(layout, blocks, |entry| &entry.block).unwrap();
                own.iter()
                    .find(|(other, _)| *other == block)
                    .map_or(&PotentialSpec::Euclidean, |(_, own)| &own.potential)
            }
            other => other,
        };
        match own.key() {
            "entropy" => slice.iter_mut().for_each(|x| *x = x.exp()),
            "spectral-entropy" if !block.frozen => {
                let (n, root) = (block.rows, slice.to_vec());
                matmul_nt(slice, &root, &root, n, n, n);
                (0..n).for_each(|i| slice[i * n + i] += 0.3);
            }
            _ => {}
        }
        slice.iter_mut().for_each(|x| *x *= size);
    }
    w
}

fn random(rows: usize, cols: usize, stream: &mut RandomStream) -> Matrix {
    let mut x = Matrix::zeros(rows, cols);
    stream.fill_normal(&mut x.data);
    x
}

fn images(x: &Matrix, w: &[f64]) -> Vec<f64> {
    (0..x.rows).map(|i| dot(x.row(i), w)).collect()
}

/// A consistent problem; the weights that made its targets agree with the start on frozen blocks.
struct Problem {
    x: Matrix,
    y: Vec<f64>,
    start: Vec<f64>,
}

/// Random equations that random weights solve; one more that depends on the others if `dependent`. Frozen weights are
/// those of the start, or 0.
fn problem(
    (spec, layout): (&PotentialSpec, &ParamLayout),
    rows: usize,
    (dependent, started): (bool, bool),
    size: f64,
    stream: &mut RandomStream,
) -> Problem {
    let mut x = random(rows, layout.len(), stream);
    if dependent {
        let row: Vec<f64> = x.row(0).iter().zip(x.row(rows - 1)).map(|(a, b)| 2.0 * a + b).collect();
        x = stack_equations((&x, &[]), (&Matrix::from_rows(&[&row]), &[])).unwrap().0;
    }
    let mut w = weights(spec, layout, stream, size);
    let start = weights(spec, layout, stream, 1.0);
    for range in layout.blocks().iter().filter(|block| block.frozen).map(Block::range) {
        range.for_each(|i| w[i] = if started { start[i] } else { 0.0 });
    }
    Problem { y: images(&x, &w), x, start }
}

/// Runs `law` on problems of several shapes and sizes for every case, with a start and without one.
fn everywhere(name: &str, mut law: impl FnMut(&str, &PotentialSpec, &ParamLayout, &Problem, Option<&[f64]>)) {
    let mut stream = Streams::new(17).stream(name);
    for (spec, layout) in cases() {
        let free: usize = match spec {
            PotentialSpec::SpectralEntropy => layout.trainable().map(|b| b.rows * (b.rows + 1) / 2).sum(),
            _ => layout.trainable().map(Block::len).sum(),
        };
        // few degrees of freedom leave a mixture of domains without a point far inside
        let mixed = matches!(spec, PotentialSpec::Layers { .. });
        let counts = if mixed { vec![1, free / 3] } else { vec![1, free / 3, free - 1, free] };
        for rows in counts {
            for (dependent, started) in [(false, false), (true, false), (false, true), (true, true)] {
                // a start of size 1 far from the limit, or a mixture, would cancel what the test looks at
                let sizes = if started || mixed { [0.1, 1.0, 10.0] } else { [1e-6, 1.0, 1e6] };
                for size in sizes {
                    let problem = problem((&spec, &layout), rows, (dependent, started), size, &mut stream);
                    let short: String = spec.to_string().chars().take(40).collect();
                    let name = format!(
                        "{short}: {rows} rows, {} weights, size {size}, dependent {dependent}, started {started}",
                        layout.len()
                    );
                    law(&name, &spec, &layout, &problem, started.then_some(problem.start.as_slice()));
                }
            }
        }
    }
}

#[test]
fn every_potential_is_solved_to_rounding_with_a_closed_gap() {
    let mut count = 0;
    everywhere("rounding", |name, spec, layout, problem, start| {
        let target = InterpolationTarget::Potential(spec.clone());
        let found =
            interpolate(&problem.x, &problem.y, &target, layout, start).unwrap_or_else(|e| panic!("{name}: {e}"));
        let cancelled = norm2(&problem.x.data) * norm2(&found.weights) / norm2(&problem.y);
        assert!(found.residual <= 1e-12 + 1e-15 * cancelled, "{name}: residual {:.1e}", found.residual);
        let mut pulled = vec![0.0; layout.len()];
        found.multipliers.iter().enumerate().for_each(|(i, m)| add_scaled(&mut pulled, *m, problem.x.row(i)));
        let cancelled = norm2(&problem.x.data) * norm2(&found.multipliers) / norm2(&pulled);
        let stationarity = found.stationarity;
        assert!(stationarity <= 1e-12 + 1e-15 * cancelled, "{name}: stationarity {stationarity:.1e}, {cancelled:.1e}");
        let mut potential = spec.build(layout).unwrap();
        let terms = potential.conjugate_at(&found.weights).abs()
            + start.map_or(0.0, |start| potential.conjugate_at(start).abs())
            + dot(&found.multipliers, &problem.y).abs();
        assert!(found.gap().abs() <= 1e-11 * terms, "{name}: gap {:.1e} of {terms:.1e}", found.gap());
        assert!(found.iterations <= 60, "{name}: {} iterations", found.iterations);
        count += 1;
    });
    assert!(count > 2000, "only {count} problems");
}

#[test]
fn no_feasible_change_lowers_the_objective() {
    let mut stream = Streams::new(3).stream("changes");
    let mut raised = 0;
    everywhere("changes", |name, spec, layout, problem, start| {
        let target = InterpolationTarget::Potential(spec.clone());
        let found =
            interpolate(&problem.x, &problem.y, &target, layout, start).unwrap_or_else(|e| panic!("{name}: {e}"));
        let pieces = pieces::Pieces::of(spec, layout).unwrap();
        let mut matrix = problem.x.clone();
        pieces.restrict(&mut matrix);
        let still = equations::Equations::new(matrix, vec![0.0; problem.x.rows]).unwrap();
        let mut potential = spec.build(layout).unwrap();
        for part in [1e-1, 1e-3] {
            // a random direction of the size of the weights, symmetric where they are, along which no equation changes
            let mut change = Matrix { rows: 1, cols: layout.len(), data: weights(spec, layout, &mut stream, 1.0) };
            change.data.iter_mut().zip(&found.weights).for_each(|(c, w)| *c *= part * w);
            pieces.restrict(&mut change);
            let mut change = change.data;
            let along = still.pull_back(&still.missing(&change));
            change.iter_mut().zip(along).for_each(|(c, a)| *c += a);
            let moved: Vec<f64> = found.weights.iter().zip(&change).map(|(w, c)| w + c).collect();
            if potential.check_domain(&moved).is_err() {
                continue;
            }
            let value = match start {
                Some(start) => potential.bregman_divergence(&moved, start),
                None => potential.value(&moved),
            };
            let rounding = 1e-12 * (found.objective.abs() + norm2(&found.weights));
            assert!(value >= found.objective - rounding, "{name}: {value} < {}", found.objective);
            raised += usize::from(value > found.objective + rounding);
        }
    });
    assert!(raised > 1000, "only {raised} changes were seen to raise the objective");
}

fn potential(text: &str) -> InterpolationTarget {
    InterpolationTarget::Potential(text.parse().unwrap())
}

fn norm(text: &str) -> InterpolationTarget {
    InterpolationTarget::Norm(text.parse().unwrap())
}

fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance), "{found:?} is not {expected:?}");
}

#[test]
fn examples_of_paper_b_have_their_limits() {
    // B.ex2: w = (a, a²) with 2a² + a = 1
    let x = Matrix::from_rows(&[&[1.0, 2.0]]);
    let found = interpolate(&x, &[1.0], &potential("entropy"), &ParamLayout::vector(2), Some(&[1.0, 1.0])).unwrap();
    close(&found.weights, &[0.5, 0.25], 1e-15);
    close(&found.multipliers, &[0.5f64.ln()], 1e-15);
    // B.ex4: the point of smallest l4/3 norm, to the digits of the claims catalogue
    let x = Matrix::from_rows(&[&[1.0, 1.0, 1.0], &[1.0, 2.0, 0.0]]);
    for target in [potential("squared-lp:1.3333333333333333"), norm("lp:4/3")] {
        let found = interpolate(&x, &[1.0, 10.0], &target, &ParamLayout::vector(3), None).unwrap();
        close(&found.weights, &[0.000_230_045, 4.999_884_977, -4.000_115_023], 1e-9);
    }
    let found = interpolate(&x, &[1.0, 10.0], &norm("lp:4/3"), &ParamLayout::vector(3), None).unwrap();
    assert!((found.objective - 7.583_650_625).abs() < 1e-9 && found.gap().abs() < 1e-13);
    let found = interpolate(&x, &[1.0, 10.0], &norm("l2"), &ParamLayout::vector(3), None).unwrap();
    close(&found.weights, &[1.0 / 3.0, 29.0 / 6.0, -25.0 / 6.0], 1e-14);
}

/// B.gd2.1: w₀ + Xᵀ(XXᵀ)⁻¹(y − Xw₀), with the 2 × 2 inverse written out.
#[test]
fn the_nearest_point_has_its_closed_form() {
    let mut stream = Streams::new(2).stream("closed");
    let (x, start, y) = (
        random(2, 7, &mut stream),
        weights(&PotentialSpec::Euclidean, &ParamLayout::vector(7), &mut stream, 1.0),
        [0.3, -2.0],
    );
    let gram = |i: usize, j: usize| dot(x.row(i), x.row(j));
    let rest = [y[0] - dot(x.row(0), &start), y[1] - dot(x.row(1), &start)];
    let determinant = gram(0, 0) * gram(1, 1) - gram(0, 1) * gram(0, 1);
    let a = (gram(1, 1) * rest[0] - gram(0, 1) * rest[1]) / determinant;
    let b = (gram(0, 0) * rest[1] - gram(0, 1) * rest[0]) / determinant;
    let expected: Vec<f64> = (0..7).map(|k| start[k] + a * x[(0, k)] + b * x[(1, k)]).collect();
    for target in [potential("euclidean"), norm("l2"), norm("frobenius")] {
        let found = interpolate(&x, &y, &target, &ParamLayout::vector(7), Some(&start)).unwrap();
        close(&found.weights, &expected, 1e-13);
        assert!(found.residual < 1e-15);
    }
}

#[test]
fn on_the_simplex_the_limit_is_an_exponential_family() {
    let features = [0.5, 1.0, 2.0, 4.0];
    let (x, y) =
        stack_equations((&Matrix::from_rows(&[&features]), &[3.0]), (&Matrix::from_rows(&[&[1.0; 4]]), &[1.0]))
            .unwrap();
    let found = interpolate(&x, &y, &potential("entropy"), &ParamLayout::vector(4), Some(&[0.25; 4])).unwrap();
    let w = &found.weights;
    assert!((w.iter().sum::<f64>() - 1.0).abs() < 1e-15 && (dot(&features, w) - 3.0).abs() < 1e-14);
    let slope = |i: usize, j: usize| (w[i] / w[j]).ln() / (features[i] - features[j]);
    assert!((slope(0, 1) - slope(1, 2)).abs() < 1e-13 && (slope(1, 2) - slope(2, 3)).abs() < 1e-13);
}

#[test]
fn weights_that_end_at_zero_do_not_spoil_flat_potentials() {
    // ∇R(w) = Xᵀ(1, 1) = (2, 0, 1, 1), and the last weight meets no equation
    let x = Matrix::from_rows(&[&[1.0, 1.0, 1.0, 1.0, 0.0], &[1.0, -1.0, 0.0, 0.0, 0.0]]);
    for (text, power) in [("smoothed:3,0", 2.0), ("smoothed:4,0", 3.0), ("smoothed:6,0", 5.0), ("smoothed:12,0", 11.0)]
    {
        let root = 2f64.powf(1.0 / power);
        let found = interpolate(&x, &[root + 2.0, root], &potential(text), &ParamLayout::vector(5), None).unwrap();
        close(&found.weights, &[root, 0.0, 1.0, 1.0, 0.0], 1e-13);
        close(&found.multipliers, &[1.0, 1.0], 1e-11);
    }
}

#[test]
fn targets_of_zero_and_empty_equations_are_problems_too() {
    let x = Matrix::from_rows(&[&[1.0, 2.0, -1.0], &[0.0, 0.0, 0.0]]);
    for target in
        [potential("squared-lp:1.5"), potential("smoothed:4,0"), potential("hyperbolic:0.1"), norm("l2"), norm("l1")]
    {
        let found = interpolate(&x, &[0.0, 0.0], &target, &ParamLayout::vector(3), None).unwrap();
        assert_eq!((found.weights.as_slice(), found.rank, found.residual), (&[0.0; 3][..], 1, 0.0), "{target:?}");
        assert_eq!(found.gap(), 0.0, "{target:?}");
    }
    // from the minimum (1, 1, 1) of the entropy: w ∝ exp(μx) with Σ xw = 0
    let found = interpolate(&x, &[0.0, 0.0], &potential("entropy"), &ParamLayout::vector(3), None).unwrap();
    assert!(found.residual < 1e-15 && found.weights.iter().all(|w| *w > 0.0));
    let nothing = Matrix::zeros(1, 3);
    let found = interpolate(&nothing, &[0.0], &potential("entropy"), &ParamLayout::vector(3), Some(&[1.0, 2.0, 3.0]));
    let found = found.unwrap();
    close(&found.weights, &[1.0, 2.0, 3.0], 1e-15);
    assert!(found.objective.abs() < 1e-15 && found.rank == 0);
}

#[test]
fn contradictions_are_refused_with_their_size() {
    let x = Matrix::from_rows(&[&[1.0, 2.0], &[2.0, 4.0], &[0.0, 1e6]]);
    for target in [potential("euclidean"), potential("entropy"), norm("l2"), norm("linf")] {
        let error = interpolate(&x, &[1.0, 3.0, 0.0], &target, &ParamLayout::vector(2), None).unwrap_err();
        // the best w has w₁ + 2w₂ = 7/5, so that y − Xw = (−2, 1)/5 up to the third equation
        let ReferenceError::Inconsistent { residual, equations: 3, rank: 2 } = error else { panic!("{error}") };
        assert!((residual - 0.2f64.sqrt() / 10f64.sqrt()).abs() < 1e-6, "{residual}");
    }
    // a row of zeros
    let x = Matrix::from_rows(&[&[1.0, 2.0], &[0.0, 0.0]]);
    let error = interpolate(&x, &[1.0, 1.0], &potential("euclidean"), &ParamLayout::vector(2), None).unwrap_err();
    assert!(error.to_string().contains("no solution"), "{error}");
}

#[test]
fn problems_without_a_solution_in_the_domain_are_refused_with_a_proof() {
    let refuse = |rows: &[&[f64]], y: &[f64], target: &InterpolationTarget, layout: &ParamLayout| match interpolate(
        &Matrix::from_rows(rows),
        y,
        target,
        layout,
        None,
    ) {
        Err(ReferenceError::OutsideDomain { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    let entropy = potential("entropy");
    // a single equation, and w₁ − w₂ = 2 with w₁ + w₂ = 1
    let why = refuse(&[&[1.0, 2.0]], &[-1.0], &entropy, &ParamLayout::vector(2));
    assert!(why.contains("⟨μ, y⟩ = 1") && why.contains("hyperbolic"), "{why}");
    refuse(&[&[1.0, -1.0, 0.0], &[1.0, 1.0, 0.0]], &[2.0, 1.0], &entropy, &ParamLayout::vector(3));
    let square = ParamLayout::new([("w", 2, 2)]).unwrap();
    let spectral = potential("spectral-entropy");
    // a negative trace, and a determinant that would be negative: W = (1, 2; 2, 1)
    let why = refuse(&[&[1.0, 0.0, 0.0, 1.0]], &[-1.0], &spectral, &square);
    assert!(why.contains("eigenvalue"), "{why}");
    refuse(
        &[&[1.0, 0.0, 0.0, 0.0], &[0.0, 1.0, 0.0, 0.0], &[0.0, 0.0, 0.0, 1.0]],
        &[1.0, 2.0, 1.0],
        &spectral,
        &square,
    );
    let why = refuse(&[&[0.0, 1.0, 0.0, 0.0], &[0.0, 0.0, 1.0, 0.0]], &[0.1, 0.2], &spectral, &square);
    assert!(why.contains("symmetric"), "{why}");
    let layout = ParamLayout::new([("w", 1, 2), ("v", 1, 1)]).unwrap();
    refuse(&[&[1.0, 1.0, 0.0]], &[-1.0], &potential("layers:w=entropy|*=euclidean"), &layout);
}

#[test]
fn a_limit_on_the_border_of_the_domain_is_approached_to_rounding() {
    let x = Matrix::from_rows(&[&[1.0, 1.0, 1.0], &[1.0, 0.0, 0.0]]);
    let found = interpolate(&x, &[1.0, 0.0], &potential("entropy"), &ParamLayout::vector(3), None).unwrap();
    close(&found.weights, &[0.0, 0.5, 0.5], 1e-11);
}

#[test]
fn every_norm_has_a_point_that_its_multipliers_prove() {
    let mut stream = Streams::new(8).stream("norms");
    for layout in [
        ParamLayout::vector(6),
        ParamLayout::new([("w", 3, 3), ("u", 1, 2), ("v", 2, 2)]).unwrap().freeze(&["u"]).unwrap(),
    ] {
        for spec in NormSpec::examples(&layout) {
            for size in [1e-6, 1.0, 1e6] {
                let x = random(4, layout.len(), &mut stream);
                let start = weights(&PotentialSpec::Euclidean, &layout, &mut stream, size);
                let y = images(&x, &weights(&PotentialSpec::Euclidean, &layout, &mut stream, size));
                let found = interpolate(&x, &y, &InterpolationTarget::Norm(spec.clone()), &layout, Some(&start));
                let found = found.unwrap_or_else(|e| panic!("{spec}: {e}"));
                assert!(found.residual <= 1e-12, "{spec}: residual {:.1e}", found.residual);
                let gap = found.gap() / found.objective;
                assert!((-1e-13..=1e-9).contains(&gap), "{spec}, size {size}: gap {gap:.1e}");
                assert!(found.stationarity.abs() <= 1e-9, "{spec}: {:.1e}", found.stationarity);
                for block in layout.blocks().iter().filter(|block| block.frozen) {
                    assert_eq!(found.weights[block.range()], start[block.range()]);
                }
            }
        }
    }
}

#[test]
fn the_smallest_l1_and_linf_points_are_those_found_by_hand() {
    let x = Matrix::from_rows(&[&[1.0, 2.0]]);
    for (text, expected) in [("l1", [0.0, 0.5]), ("linf", [1.0 / 3.0, 1.0 / 3.0]), ("l2", [0.2, 0.4])] {
        let found = interpolate(&x, &[1.0], &norm(text), &ParamLayout::vector(2), None).unwrap();
        close(&found.weights, &expected, 1e-12);
    }
}

#[test]
fn bad_input_is_refused_by_name() {
    let refuse = |x: &Matrix, y: &[f64], start: Option<&[f64]>| {
        interpolate(x, y, &potential("entropy"), &ParamLayout::vector(2), start).unwrap_err().to_string()
    };
    let x = Matrix::from_rows(&[&[1.0, 2.0]]);
    assert!(refuse(&Matrix::zeros(1, 3), &[1.0], None).contains("1 rows of 3"));
    assert!(refuse(&Matrix::zeros(0, 2), &[], None).contains("0 rows"));
    assert!(refuse(&x, &[1.0, 2.0], None).contains("targets has 2 entries where 1"));
    assert!(refuse(&x, &[f64::NAN], None).contains("a target is NaN"));
    assert!(refuse(&Matrix::from_rows(&[&[1.0, f64::INFINITY]]), &[1.0], None).contains("inf in column 1"));
    assert!(refuse(&x, &[1.0], Some(&[1.0])).contains("vector of 1 entries"));
    assert!(refuse(&x, &[1.0], Some(&[1.0, -1.0])).contains("positive finite weights"));
    assert!(stack_equations((&x, &[1.0]), (&Matrix::zeros(1, 3), &[0.0])).is_err());
}
