use super::*;
use crate::engine::cpu::tests::inputs as drawn;
use crate::linalg::Matrix;
use crate::models::{ModelSpec, Shape};
use crate::numeric::{RandomStream, Streams};

fn layered(spec: &ModelSpec, features: usize, outputs: usize, stream: &mut RandomStream) -> Option<Layered> {
    let layout = spec.architecture(&Shape::vector(features), outputs).ok()?.layout().clone();
    let mut params = vec![0.0; layout.len()];
    stream.fill_normal(&mut params);
    for block in layout.weights() {
        params[block.range()].iter_mut().for_each(|w| *w /= (block.cols as f64).sqrt());
    }
    Some(Layered::new(spec, &params, features, outputs).unwrap())
}

/// Scores of a row-major batch, and the pull-back of row-major cotangents, through panels.
fn pass<T: Real>(layered: &Layered, x: &Matrix, cotangent: &Matrix) -> (Vec<f64>, Matrix) {
    let mut map = LayeredMap::<T>::new(layered);
    let (mut inputs, mut gradient) = (Panels::zeros(x.cols, x.rows), Panels::zeros(x.cols, x.rows));
    let mut scores = Panels::zeros(cotangent.cols, x.rows);
    inputs.pack_transposed(&x.data);
    map.scores(&inputs, &mut scores);
    let read = |panels: &Panels<T>, n: usize, k: usize| panels.get(k, n).to_f64();
    let found = (0..x.rows).flat_map(|n| (0..cotangent.cols).map(move |c| (n, c)));
    let found = found.map(|(n, c)| read(&scores, n, c)).collect();
    scores.pack_transposed(&cotangent.data);
    map.pull_back(&scores, &mut gradient);
    let mut out = Matrix::zeros(x.rows, x.cols);
    (0..x.rows).for_each(|n| (0..x.cols).for_each(|k| out[(n, k)] = read(&gradient, n, k)));
    (found, out)
}

/// Two inputs, three units, one score, and cotangents of the given shape after scores of four examples.
fn pulled(rows: usize, cols: usize) {
    let layered = Layered::new(&ModelSpec::relu(&[3]), &[1.0; 9], 2, 1).unwrap();
    let mut map = LayeredMap::<f64>::new(&layered);
    map.scores(&Panels::zeros(2, 4), &mut Panels::zeros(1, 4));
    map.pull_back(&Panels::zeros(rows, cols), &mut Panels::zeros(2, cols));
}

#[test]
fn cotangents_of_the_same_examples_are_pulled_back() {
    pulled(1, 4);
}

#[test]
#[should_panic(expected = "cotangents of another model")]
fn cotangents_need_a_row_per_score() {
    pulled(2, 4);
}

#[test]
#[should_panic(expected = "a cotangent per example")]
fn cotangents_need_a_column_per_example() {
    pulled(1, 400);
}

#[test]
#[should_panic(expected = "a cotangent per example")]
fn another_thread_has_seen_no_examples() {
    let layered = Layered::new(&ModelSpec::relu(&[3]), &[1.0; 9], 2, 1).unwrap();
    let mut map = LayeredMap::<f64>::new(&layered);
    map.scores(&Panels::zeros(2, 4), &mut Panels::zeros(1, 4));
    map.fork().pull_back(&Panels::zeros(1, 4), &mut Panels::zeros(2, 4));
}

#[test]
#[should_panic(expected = "map 2 takes 2 numbers, but gets 3")]
fn layers_that_do_not_chain_are_refused() {
    let mut layered = Layered::new(&ModelSpec::relu(&[3]), &[1.0; 9], 2, 1).unwrap();
    layered.affine_mut().last().unwrap().weight = Matrix::zeros(1, 2);
    LayeredMap::<f64>::new(&layered);
}

/// Scores by the definition and gradients of every `step`-th input by central differences; answers with both.
fn check(
    layered: &Layered,
    (x, cotangent): (&Matrix, &Matrix),
    step: usize,
    [of_scores, of_gradient]: [f64; 2],
    what: &str,
) -> (Vec<f64>, Matrix) {
    let (outputs, (scores, gradient)) = (cotangent.cols, pass::<f64>(layered, x, cotangent));
    for n in 0..x.rows {
        for (score, expected) in scores[n * outputs..].iter().zip(layered.scores(x.row(n))) {
            assert!((score - expected).abs() < of_scores * (1.0 + expected.abs()), "{what}");
        }
        for k in (0..x.cols).step_by(step) {
            let moved = |h: f64| {
                let mut moved = x.row(n).to_vec();
                moved[k] += h;
                crate::linalg::dot(&layered.scores(&moved), cotangent.row(n))
            };
            let (difference, found) = ((moved(1e-6) - moved(-1e-6)) / 2e-6, gradient[(n, k)]);
            assert!((found - difference).abs() < of_gradient * (1.0 + found.abs()), "{what} {found} {difference}");
        }
    }
    (scores, gradient)
}

/// Over all listed models: scores agree with the definition, input gradients with central differences.
#[test]
fn gradients_of_the_inputs_are_central_differences_of_the_scores() {
    let mut stream = Streams::new(8).stream("inputs");
    for spec in ModelSpec::examples() {
        for outputs in [1, 3] {
            let Some(layered) = layered(&spec, 4, outputs, &mut stream) else { continue };
            let (x, cotangent) = (drawn(9, 4, &mut stream), drawn(9, outputs, &mut stream));
            let (scores, gradient) = check(&layered, (&x, &cotangent), 1, [1e-12, 1e-6], &format!("{spec:?}"));
            let (single, rounded) = pass::<f32>(&layered, &x, &cotangent);
            let pairs = single.iter().chain(&rounded.data).zip(scores.iter().chain(&gradient.data));
            pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{spec:?} {a} {b}"));
        }
    }
}

/// Kernels, strides, paddings and both pools: scores by the definition, gradients by central differences.
#[test]
fn gradients_of_images_are_central_differences_of_the_scores() {
    let mut stream = Streams::new(10).stream("images");
    for layers in [
        "conv 3 3x3, pool 2, conv 4 3x2 stride 2 padding 1, dense 5, dense",
        "average 2, conv 2 2x2 valid, pool 2 stride 1, dense",
        "pool 3 stride 2, conv 2 3x3, average 2 stride 1, dense 4, dense",
    ] {
        let text = format!(r#"{{"image": {{"layers": "{layers}", "biases": "all"}}}}"#);
        let spec: ModelSpec = serde_json::from_str(&text).unwrap();
        let architecture = spec.architecture(&Shape::image(2, 9, 8), 3).unwrap();
        let mut params = vec![0.0; architecture.layout().len()];
        stream.fill_normal(&mut params);
        let layered = Layered::of(&architecture, &params).unwrap();
        let (x, cotangent) = (drawn(5, 144, &mut stream), drawn(5, 3, &mut stream));
        let (scores, gradient) = check(&layered, (&x, &cotangent), 7, [1e-11, 1e-5], layers);
        let (single, rounded) = pass::<f32>(&layered, &x, &cotangent);
        let pairs = single.iter().chain(&rounded.data).zip(scores.iter().chain(&gradient.data));
        let size = scores.iter().chain(&gradient.data).fold(1.0f64, |m, v| m.max(v.abs()));
        pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-5 * size, "{layers} {a} {b}"));
    }
}

/// The numbers of an example are the same bits alone, in a full panel and in a batch of several panels.
#[test]
fn an_example_does_not_see_its_neighbours() {
    let mut stream = Streams::new(9).stream("neighbours");
    let layered = layered(&ModelSpec::relu(&[33, 17]), 150, 4, &mut stream).unwrap();
    let (x, cotangent) = (drawn(131, 150, &mut stream), drawn(131, 4, &mut stream));
    let (scores, gradient) = pass::<f32>(&layered, &x, &cotangent);
    for (first, count) in [(0, 1), (5, 3), (7, 20), (40, 60), (130, 1)] {
        let part = |from: &Matrix| {
            let rows: Vec<&[f64]> = (first..first + count).map(|n| from.row(n)).collect();
            Matrix::from_rows(&rows)
        };
        let (own, pulled) = pass::<f32>(&layered, &part(&x), &part(&cotangent));
        assert_eq!(own, scores[4 * first..4 * (first + count)]);
        assert_eq!(pulled, part(&gradient));
    }
}
