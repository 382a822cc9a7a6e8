//! J.3: a narrow network in the manner of VGG on a part of CIFAR-10, in the metrics of three mirror maps.

use std::sync::Arc;

use crate::arithmetic::smaller;
use crate::mirror_metrics::Metric;
use crate::outcome::decimals;
use crate::{Claim, ClaimError, Finished, Lab, Outcome, Sketch};
use limitpoint::data::DataSplit;
use limitpoint::experiments::Task;
use limitpoint::linalg::norm2;
use limitpoint::objective::Objective;
use limitpoint::params::{Block, ParamLayout};
use rayon::prelude::*;

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "C.expVGG",
        covers: &["C.tab9"],
        statement: "A narrow VGG (16, 32, 64 and 64 channels) without batch normalisation learns a part of CIFAR-10 (300 images at quick, 2000 at full scale) in the \
                    metrics of gradient descent, hyperbolic entropy and p = 10, corrected for the widths, and hyperbolic entropy is at \
                    most a point of test accuracy below gradient descent",
        experiments: &["c-vgg"],
        needs_cifar: true,
        try_out: accuracies,
        ..Claim::NOT_SEEN
    },
    Claim {
        id: "C.fig4L",
        covers: &["C.fig4M", "C.fig4R", "C.fig14"],
        statement: "Hyperbolic entropy has the most peaked first layer of the narrow VGG and loses least when small weights are cut, p = \
                    10 the flattest and loses most; with a large λ p = 10 is near gradient descent; the last layers differ less than the \
                    first",
        experiments: &["c-vgg"],
        needs_cifar: true,
        try_out: shapes,
        ..Claim::NOT_SEEN
    },
];

/// Those that are compared.
const METRICS: [(&str, Metric); 4] = [
    ("gradient descent", Metric::Gradient),
    ("hyperbolic, λ = 1e-5", Metric::Hyperbolic { lambda: 1e-5 }),
    ("p = 10, λ = 1e-5", Metric::Smoothed { lambda: 1e-5 }),
    ("p = 10, λ = 1", Metric::Smoothed { lambda: 1.0 }),
];

/// A network that was trained.
struct Trained {
    name: &'static str,
    run: Finished,
    accuracy: f64,
    test_accuracy: f64,
    /// min s over the product of the layers' norms.
    margin: f64,
}

impl Trained {
    /// The weights of a layer.
    fn weights(&self, layer: &Block) -> &[f64] {
        &self.run.params[layer.range()]
    }
}

/// All of them, in the order of the metrics.
struct Networks {
    task: Task,
    split: DataSplit,
    layout: ParamLayout,
    trained: Vec<Trained>,
}

fn networks(lab: &Lab) -> Result<Arc<Networks>, ClaimError> {
    lab.once("a narrow VGG", || {
        let folder = lab.cifar()?;
        let overrides = [
            format!("data.cifar10.dir=\"{}\"", folder.display()),
            format!("data.cifar10.count={}", lab.choose(300, 2000)),
            format!("stop.steps={}", lab.choose(600, 2000)),
        ];
        let task = lab.tasks("c-vgg", &overrides)?.remove(0);
        let split = lab.data(&task)?;
        let layout = lab.objective(&task, &split.train)?.layout().clone();
        let make = |(name, metric): &(&'static str, Metric)| -> Result<Trained, ClaimError> {
            let mut task = task.clone();
            let spec = metric.optimiser(&layout);
            task.recipe.optimisers.values_mut().for_each(|optimiser| *optimiser = spec.clone());
            let run = lab.watch_on(&task, split.train.clone(), |_| false, |_| {})?;
            let mut objective = lab.objective(&task, &split.train)?;
            let accuracy = accuracy_at(&mut objective, &run.params);
            let smallest = objective.margins().iter().copied().fold(f64::INFINITY, smaller);
            let sizes: f64 = layout.weights().map(|block| norm2(&run.params[block.range()])).product();
            let test = split.test.as_ref().map(|data| lab.objective(&task, data)).transpose()?;
            let test_accuracy = test.map_or(f64::NAN, |mut test| accuracy_at(&mut test, &run.params));
            Ok(Trained { name, run, accuracy, test_accuracy, margin: smallest / sizes })
        };
        let trained = METRICS.par_iter().map(make).collect::<Result<Vec<_>, _>>()?;
        Ok(Networks { task, split, layout, trained })
    })
}

fn accuracy_at(objective: &mut Objective, params: &[f64]) -> f64 {
    objective.forward(params);
    objective.accuracy()
}

fn accuracies(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, networks) = (Outcome::default(), networks(lab)?);
    for network in &networks.trained {
        outcome.at_least(format!("{}: share of training images that are right", network.name), network.accuracy, 1.0);
    }
    let points: Vec<f64> = networks.trained.iter().map(|network| 100.0 * network.test_accuracy).collect();
    let gain = points[1] - points[0];
    outcome.at_least("test accuracy of hyperbolic entropy minus that of gradient descent, in points", gain, -1.0);
    let words = |share: f64| format!("; the paper, with VGG-16, 50,000 images and 1000 epochs: {share} %");
    let printed = [81.26, 81.96, 81.26].map(words).into_iter().chain([String::new()]);
    for (network, print) in networks.trained.iter().zip(printed) {
        outcome.note(format!(
            "{}: loss 10^{:.2}, training accuracy {:.2} %, test accuracy {:.2} % (JPEG-recompressed images where they come as such{print}), \
             smallest margin per product of the layers' norms {:.3e}",
            network.name, network.run.log10_loss(), 100.0 * network.accuracy, 100.0 * network.test_accuracy, network.margin
        ));
    }
    outcome.note(format!(
        "{} training images of {}, {} test images, one seed, rate 0.1. The metric of p = 10 has width^((p−2)/2), where width^((2−p)/2) is \
         printed, and λ as its numerator as printed. \
         Chosen after numbers were seen: with 1000 images as many steps fit them all in the metric of gradient descent only.",
        networks.split.train.len(),
        networks.split.train.name,
        networks.split.test.as_ref().map_or(0, limitpoint::data::Dataset::len)
    ));
    Ok(outcome)
}

/// The fourth moment over the squared second: 3 for a normal law, more for one with a peak and tails.
fn kurtosis(weights: &[f64]) -> f64 {
    let moment = |power: i32| weights.iter().map(|w| w.powi(power)).sum::<f64>() / weights.len() as f64;
    moment(4) / moment(2).powi(2)
}

/// Kolmogorov's distance between the laws of two sets of sizes |w|: the largest difference of shares below a size.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let sorted = |weights: &[f64]| {
        let mut sizes: Vec<f64> = weights.iter().map(|w| w.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        sizes
    };
    let (a, b) = (sorted(a), sorted(b));
    let share = |sizes: &[f64], x: f64| sizes.partition_point(|size| *size <= x) as f64 / sizes.len() as f64;
    a.iter().chain(&b).map(|x| (share(&a, *x) - share(&b, *x)).abs()).fold(0.0, f64::max)
}

/// The smallest share of the weights of every layer set to 0.
fn pruned(params: &[f64], layout: &ParamLayout, share: f64) -> Vec<f64> {
    let mut cut = params.to_vec();
    for block in layout.weights() {
        let weights = &mut cut[block.range()];
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by(|a, b| weights[*a].abs().total_cmp(&weights[*b].abs()));
        order[..(share * weights.len() as f64) as usize].iter().for_each(|k| weights[*k] = 0.0);
    }
    cut
}

/// A histogram of sizes |w| over their root mean square, as a density.
fn histogram(weights: &[f64]) -> Vec<[f64; 2]> {
    const BINS: usize = 30;
    let size = norm2(weights) / (weights.len() as f64).sqrt();
    let (width, count) = (4.0 / BINS as f64, weights.len() as f64);
    let inside = |k: usize| {
        let within = |w: &&f64| (w.abs() / (size * width)) as usize == k;
        weights.iter().filter(within).count() as f64 / (count * width)
    };
    (0..BINS).map(|k| [(k as f64 + 0.5) * width, inside(k)]).collect()
}

fn shapes(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, networks) = (Outcome::default(), networks(lab)?);
    let [gradient, hyperbolic, flat, near] = &networks.trained[..] else { return Ok(outcome) };
    let layers: Vec<&Block> = networks.layout.weights().collect();
    let [first, .., last] = layers[..] else { return Ok(outcome) };
    let peaks = [hyperbolic, gradient, flat].map(|network| kurtosis(network.weights(first)));
    let falling = peaks[0] > peaks[1] && peaks[1] > peaks[2];
    let what = "kurtosis of the first layer: hyperbolic, gradient descent, p = 10";
    outcome.push(what, "falling", decimals(&peaks), falling).by_paper();
    let apart = |network: &Trained, layer: &Block| distance(network.weights(layer), gradient.weights(layer));
    let (far, close) = (apart(flat, first), apart(near, first));
    let what = "Kolmogorov distance of the first layer to that of gradient descent, p = 10: λ = 1 minus λ = 1e-5";
    outcome.number(what, "below 0", close - far, close < far).by_paper();
    for (network, name) in [(hyperbolic, "hyperbolic"), (flat, "p = 10")] {
        let what = format!("{name}: distance of the last layer to that of gradient descent over that of the first");
        outcome.at_most(what, apart(network, last) / apart(network, first), 0.5).catalogue_asks("less than half");
    }
    let Some(test) = &networks.split.test else { return Ok(outcome) };
    let mut objective = lab.objective(&networks.task, test)?;
    let shares: Vec<f64> = (0..=9).map(|tenth| f64::from(tenth) / 10.0).chain([0.95]).collect();
    let mut sketch =
        Sketch::new("pruning", "Layer-wise magnitude pruning", "share of weights cut", "share of test images right");
    let mut at_eighty = Vec::new();
    for network in [hyperbolic, gradient, flat] {
        let mut left = |share: f64| accuracy_at(&mut objective, &pruned(&network.run.params, &networks.layout, share));
        let curve: Vec<[f64; 2]> = shares.iter().map(|share| [*share, left(*share)]).collect();
        at_eighty.push(100.0 * curve[8][1]);
        sketch = sketch.curve(network.name, curve);
    }
    outcome.sketch(sketch);
    let holds = at_eighty[0] >= at_eighty[1] && at_eighty[1] >= at_eighty[2];
    let what = "test accuracy in % with 80 % of the weights cut: hyperbolic, gradient descent, p = 10";
    outcome.push(what, "falling, or the same", decimals(&at_eighty), holds).by_paper();
    for (name, title, layer) in [("weights-first", "First layer", first), ("weights-last", "Last layer", last)] {
        let sketch = Sketch::new(name, title, "size of a weight over their root mean square", "density");
        let drawn = |sketch: Sketch, one: &Trained| sketch.curve(one.name, histogram(one.weights(layer)));
        outcome.sketch(networks.trained.iter().fold(sketch, drawn));
    }
    outcome.note("Sizes, images, steps and rates as in C.expVGG; accuracies are of JPEG-recompressed images where they come as such.");
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_weights_by_hand() {
        assert!((kurtosis(&[1.0, -1.0, 1.0, -1.0]) - 1.0).abs() < 1e-15 && kurtosis(&[0.0, 0.0, 0.0, 2.0]) == 4.0);
        assert_eq!(distance(&[1.0, -2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(distance(&[1.0, -2.0, 5.0, 6.0], &[1.0, 2.0, -5.0, 6.0]), 0.0);
        let layout = ParamLayout::of([Block::weight(1, 2, 2), Block::bias(1, 2, 2)]).unwrap();
        assert_eq!(pruned(&[3.0, -1.0, 0.5, 2.0, 0.1, 0.1], &layout, 0.5), [3.0, 0.0, 0.0, 2.0, 0.1, 0.1]);
        let bars = histogram(&[1.0, -1.0, 1.0, -1.0]);
        assert!((bars.iter().map(|bar| bar[1]).sum::<f64>() * (4.0 / 30.0) - 1.0).abs() < 1e-12);
    }
}
