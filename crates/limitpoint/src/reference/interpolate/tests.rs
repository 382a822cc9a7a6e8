//! Optimality of interpolating points: laws over every potential, then cases with known answers.

use super::*;
use crate::linalg::{dot, matmul_nt, norm2};
use crate::numeric::{RandomStream, Streams};
use crate::params::Block;
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
                let named = |name: &str| blocks.iter().find(|entry| entry.block == name);
                &named(&block.name).or_else(|| named("*")).unwrap().potential
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

/// A consistent problem: equations, targets that weights of the domain attain, and a start.
struct Problem {
    x: Matrix,
    y: Vec<f64>,
    start: Vec<f64>,
}

/// `rows` random equations, and twice the first plus the last one more time if `dependent`.
fn problem(spec: &PotentialSpec, layout: &ParamLayout, rows: usize, size: f64, stream: &mut RandomStream) -> Problem {
    let x = random(rows, layout.len(), stream);
    let w = weights(spec, layout, stream, size);
    let mut start = weights(spec, layout, stream, 1.0);
    for block in layout.blocks().iter().filter(|block| block.frozen) {
        start[block.range()].copy_from_slice(&w[block.range()]);
    }
    Problem { y: images(&x, &w), x, start }
}

fn with_dependent_row(problem: Problem) -> Problem {
    let Problem { x, y, start } = problem;
    let last = x.rows - 1;
    let row: Vec<f64> = x.row(0).iter().zip(x.row(last)).map(|(a, b)| 2.0 * a + b).collect();
    let (x, y) = stack_equations((&x, &y), (&Matrix::from_rows(&[&row]), &[2.0 * y[0] + y[last]])).unwrap();
    Problem { x, y, start }
}

/// Runs `law` on problems of every shape for every case; steep mixtures of potentials only at size 1.
fn everywhere(name: &str, mut law: impl FnMut(&str, &PotentialSpec, &ParamLayout, &Problem, Option<&[f64]>)) {
    let mut stream = Streams::new(17).stream(name);
    for (spec, layout) in cases() {
        let free: usize = match spec {
            PotentialSpec::SpectralEntropy => layout.trainable().map(|b| b.rows * (b.rows + 1) / 2).sum(),
            _ => layout.trainable().map(Block::len).sum(),
        };
        let mixed = matches!(spec, PotentialSpec::Layers { .. });
        let sizes: &[f64] = if mixed { &[0.1, 1.0, 10.0] } else { &[1e-6, 1.0, 1e6] };
        for &size in sizes {
            for rows in [1, free / 3, free - 1, free] {
                if mixed && rows > free / 2 {
                    continue; // few degrees of freedom leave no point far inside the domain
                }
                let whole = problem(&spec, &layout, rows, size, &mut stream);
                for (shape, problem) in [("", &whole), (" dependent", &with_dependent_row(problem(&spec, &layout, rows, size, &mut stream)))] {
                    for start in [None, Some(problem.start.as_slice())] {
                        // frozen weights are 0 without a start
                        let y = match start {
                            Some(_) => problem.y.clone(),
                            None => {
                                let mut held = problem.start.clone();
                                layout.trainable().for_each(|block| held[block.range()].fill(0.0));
                                problem.y.iter().zip(images(&problem.x, &held)).map(|(y, h)| y - h).collect()
                            }
                        };
                        let problem = Problem { x: problem.x.clone(), y, start: problem.start.clone() };
                        let short: String = spec.to_string().chars().take(40).collect();
                        let what = format!("{short}, {} weights, {rows} rows{shape}, size {size}", layout.len());
                        let what = format!("{what}, {}", if start.is_some() { "started" } else { "from the minimum" });
                        law(&what, &spec, &layout, &problem, start);
                    }
                }
            }
        }
    }
}

#[test]
fn every_potential_is_solved_to_rounding() {
    let mut total = 0;
    let mut most = 0;
    everywhere("rounding", |name, spec, layout, problem, start| {
        if let Ok(f) = std::env::var("ONLY") { if !name.contains(&f) { return; } }
        let target = InterpolationTarget::Potential(spec.clone());
        let found = match interpolate(&problem.x, &problem.y, &target, layout, start) { Ok(f) => f, Err(e) => { println!("{name}: {e}"); return; } };
        let cancelled = norm2(&problem.x.data) * norm2(&found.weights) / norm2(&problem.y);
        total += 1;
        most = most.max(found.iterations);
        if found.residual > 1e-12 + 1e-15 * cancelled || found.stationarity > 1e-12 || found.iterations > 60 {
        println!("{name}: residual {:.1e} stat {:.1e} it {}", found.residual, found.stationarity, found.iterations); }
    });
    println!("{total} problems, at most {most}");
}
