//! The trained model as pictures: decision regions in the plane, first-layer weights as images.

use super::record::{ActivationMaps, DecisionMap, FeatureImages, Portrait};
use crate::data::{Dataset, Targets};
use crate::engine::{Compute, Forward, cpu};
use crate::linalg::{Matrix, norm2};
use crate::models::{Architecture, Layer, MarginMap, ModelError, ModelSpec, Shape};
use crate::params::ParamLayout;

/// Grid points along each axis of a decision map.
const GRID: usize = 61;
/// How far the map reaches beyond the examples, relative to their extent.
const BORDER: f64 = 0.15;
/// Largest number of feature images.
const IMAGES: usize = 16;

/// Paints what can be painted: a map where inputs have two features, images where they are images, and for the first `maps`
/// examples what a network of images makes of them.
pub(super) fn portrait(
    model: &ModelSpec,
    layout: &ParamLayout,
    data: &Dataset,
    params: &[f64],
    maps: usize,
) -> Result<Portrait, ModelError> {
    if params.iter().any(|w| !w.is_finite()) {
        return Ok(Portrait::default()); // of a run that diverged there is nothing to paint
    }
    let decision = if data.dimension() == 2 { decision_map(model, data, params)? } else { None };
    let [channels, rows, cols] = match data.input_shape[..] {
        [rows, cols] => [1, rows, cols],
        [channels, rows, cols] => [channels, rows, cols],
        _ => return Ok(Portrait { decision, ..Portrait::default() }),
    };
    if !matches!(model, ModelSpec::Image { .. }) {
        let features = feature_images(layout, params, channels, rows, cols);
        return Ok(Portrait { decision, features, ..Portrait::default() });
    }
    let architecture = model.architecture_on(data)?;
    let trained = |(layer, _): &(&Layer, &Shape)| matches!(layer, Layer::Dense { .. } | Layer::Convolution(_));
    let first = architecture.with_inputs().find(trained);
    let features = match first {
        Some((Layer::Convolution(conv), before)) => {
            let [height, width] = conv.kernel;
            feature_images(layout, params, before.0.first().copied().unwrap_or(1), height, width)
        }
        _ => None,
    };
    // the norms of weights that cannot be factored are left out
    let layers = architecture.kernel_norms(params).unwrap_or_default();
    let maps = activation_maps(&architecture, data, params, maps)?;
    Ok(Portrait { decision, features, maps, layers })
}

/// What layers of images make of the first examples.
fn activation_maps(
    architecture: &Architecture,
    data: &Dataset,
    params: &[f64],
    count: usize,
) -> Result<Vec<ActivationMaps>, ModelError> {
    let mut maps = Vec::new();
    let Ok(inputs) = data.dense() else { return Ok(maps) };
    for example in 0..count.min(inputs.rows) {
        for (place, map) in cpu::image_maps(architecture, params, inputs.row(example))?.into_iter().enumerate() {
            let [channels, rows, cols] = map.sides;
            let largest = crate::linalg::max_abs(&map.values);
            let scaled = |value: &f64| if largest > 0.0 && largest.is_finite() { value / largest } else { 0.0 };
            let images = map.values.chunks_exact((rows * cols).max(1)).take(channels.min(IMAGES));
            let images = images.map(|image| image.iter().map(scaled).collect()).collect();
            let layer = format!("{}, {}", place + 1, map.layer);
            maps.push(ActivationMaps { example, layer, rows, cols, images });
        }
    }
    Ok(maps)
}

/// The map, or nothing where scores are no numbers.
fn decision_map(model: &ModelSpec, data: &Dataset, params: &[f64]) -> Result<Option<DecisionMap>, ModelError> {
    // a matrix of two columns too large to be dense is not painted either
    let Ok(inputs) = data.dense() else { return Ok(None) };
    let axis = |feature: usize| -> Vec<f64> {
        let values = (0..inputs.rows).map(|n| inputs.row(n)[feature]);
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        let border = BORDER * (high - low).max(1e-9);
        let step = (high - low + 2.0 * border) / (GRID - 1) as f64;
        (0..GRID).map(|i| low - border + step * i as f64).collect()
    };
    let (x, y) = (axis(0), axis(1));
    let points: Vec<[f64; 2]> = y.iter().flat_map(|&v| x.iter().map(move |&u| [u, v])).collect();
    let outputs = MarginMap::new(&data.targets).outputs();
    let grid = Matrix { rows: points.len(), cols: 2, data: points.concat() };
    let mut machine = cpu::bind(model, &grid, outputs, Compute::default())?;
    let scores = machine.scores(params);
    let winner = |scores: &[f64]| {
        let best = scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        best.map_or(0.0, |(class, _)| class as f64)
    };
    let mut flat: Vec<f64> =
        if outputs == 1 { scores.to_vec() } else { scores.chunks_exact(outputs).map(winner).collect() };
    if outputs == 1 {
        let largest = crate::linalg::max_abs(&flat);
        if largest > 0.0 && largest.is_finite() {
            flat.iter_mut().for_each(|score| *score /= largest);
        }
    }
    if flat.iter().any(|score| !score.is_finite()) {
        return Ok(None);
    }
    let label = |n: usize| match &data.targets {
        Targets::Binary(y) | Targets::Values(y) => y[n],
        Targets::Classes { labels, .. } => labels[n] as f64,
    };
    let examples = (0..inputs.rows).map(|n| (inputs.row(n)[0], inputs.row(n)[1], label(n))).collect();
    Ok(Some(DecisionMap { x, y, scores: flat.chunks_exact(GRID).map(<[f64]>::to_vec).collect(), examples }))
}

/// Rows of the first weight matrix, strongest first; channels are averaged.
fn feature_images(
    layout: &ParamLayout,
    params: &[f64],
    channels: usize,
    rows: usize,
    cols: usize,
) -> Option<FeatureImages> {
    let weights: Vec<_> = layout.weights().collect();
    let first = weights.first().filter(|block| block.cols == channels * rows * cols)?;
    // a channel of images is read by a run of columns: its pixels, or the entries of a kernel
    let outgoing = |unit: usize| {
        weights.get(1).filter(|next| next.cols.is_multiple_of(first.rows)).map_or(1.0, |next| {
            let each = next.cols / first.rows;
            let rows = params[next.range()].chunks_exact(next.cols);
            let read: Vec<f64> = rows.flat_map(|row| &row[unit * each..(unit + 1) * each]).copied().collect();
            norm2(&read)
        })
    };
    let incoming = |unit: usize| &params[first.offset + unit * first.cols..][..first.cols];
    let mut units: Vec<(f64, usize)> = (0..first.rows).map(|u| (outgoing(u) * norm2(incoming(u)), u)).collect();
    if units.iter().any(|(strength, _)| !strength.is_finite()) {
        return None;
    }
    units.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    units.truncate(IMAGES);
    let strongest = units.first().map_or(1.0, |unit| unit.0);
    let image = |unit: usize| {
        let (weights, size) = (incoming(unit), rows * cols);
        let mean = |pixel: usize| (0..channels).map(|c| weights[c * size + pixel]).sum::<f64>() / channels as f64;
        let mut pixels: Vec<f64> = (0..size).map(mean).collect();
        let largest = crate::linalg::max_abs(&pixels);
        if largest > 0.0 {
            pixels.iter_mut().for_each(|pixel| *pixel /= largest);
        }
        pixels
    };
    Some(FeatureImages {
        rows,
        cols,
        images: units.iter().map(|(_, unit)| image(*unit)).collect(),
        strengths: units.iter().map(|(strength, _)| if strongest > 0.0 { strength / strongest } else { 0.0 }).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Activation;

    #[test]
    fn a_line_in_the_plane_cuts_the_map_where_it_should() {
        let inputs = Matrix::from_rows(&[&[-1.0, 0.0], &[1.0, 0.5]]);
        let data = Dataset::new("two", inputs, Targets::Binary(vec![-1.0, 1.0]), vec![2]).unwrap();
        let map = decision_map(&ModelSpec::Linear, &data, &[2.0, 0.0]).unwrap().unwrap();
        assert_eq!((map.x.len(), map.y.len(), map.scores.len(), map.scores[0].len()), (GRID, GRID, GRID, GRID));
        assert!(map.scores.iter().all(|row| row.iter().zip(&map.x).all(|(s, x)| (s - x / 1.3).abs() < 1e-12)));
        assert_eq!(map.examples[1], (1.0, 0.5, 1.0));
    }

    #[test]
    fn the_strongest_unit_comes_first() {
        let inputs = Matrix::from_rows(&[&[1.0; 4], &[2.0; 4]]);
        let data = Dataset::new("image", inputs, Targets::Binary(vec![-1.0, 1.0]), vec![2, 2]).unwrap();
        let model = ModelSpec::network(&[2], Activation::Relu);
        let layout = cpu::bind(&model, &data.inputs, 1, Compute::default()).unwrap().layout().clone();
        let params = [1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, -1.0, 1.0, 3.0];
        let portrait = portrait(&model, &layout, &data, &params, 1).unwrap();
        let features = portrait.features.unwrap();
        assert_eq!(features.images, [[0.0, 1.0, 0.0, -0.5], [1.0, 0.0, 0.0, 0.0]]);
        assert_eq!(features.strengths[0], 1.0);
        assert!(portrait.decision.is_none() && portrait.layers.is_empty());
    }

    #[test]
    fn kernels_of_a_network_of_images_are_painted_with_the_norms_of_its_layers() {
        let inputs = Matrix::from_rows(&[&[1.0; 9], &[2.0; 9]]);
        let data = Dataset::new("image", inputs, Targets::Binary(vec![-1.0, 1.0]), vec![3, 3]).unwrap();
        let layers = "conv 2 2x2 valid, pool 2, dense".parse().unwrap();
        let model =
            ModelSpec::Image { layers, activation: Activation::Relu, biases: Default::default(), frozen: vec![] };
        let layout = model.architecture_on(&data).unwrap().layout().clone();
        let params = [1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, -1.0, 1.0, 3.0];
        let portrait = portrait(&model, &layout, &data, &params, 1).unwrap();
        let features = portrait.features.unwrap();
        assert_eq!((features.rows, features.cols, features.strengths[0]), (2, 2, 1.0));
        assert_eq!(features.images, [[0.0, 1.0, 0.0, -0.5], [1.0, 0.0, 0.0, 0.0]]);
        let names: Vec<&str> = portrait.layers.iter().map(|layer| layer.layer.as_str()).collect();
        assert_eq!(names, ["conv 2 2x2 valid on 1x3x3", "dense 1 on 2x1x1"]);
        let seen: Vec<_> = portrait.maps.iter().map(|map| (map.layer.as_str(), map.rows, map.images.len())).collect();
        assert_eq!(seen, [("1, conv 2 2x2 valid", 2, 2), ("2, pool 2", 1, 2)]);
        // the image of ones gives 1 in the first channel and 2 − 1 in the second
        assert!(portrait.maps[0].images.iter().all(|image| *image == [1.0; 4]));
    }
}
