//! Brackets hold: where robustness is known, where it can be searched, and between attacks and bounds.

use super::*;
use crate::data::{Dataset, Digits, Targets};
use crate::engine::{Compute, Forward, InputMap, cpu};
use crate::linalg::{Matrix, Panels, norm2};
use crate::models::{Activation, Layered, ModelSpec};
use crate::numeric::{RandomStream, Streams};

fn drawn(spec: &ModelSpec, features: usize, outputs: usize, stream: &mut RandomStream) -> Layered {
    let layout = cpu::bind(spec, Matrix::zeros(1, features), outputs, Compute::default()).unwrap().layout().clone();
    let mut params = vec![0.0; layout.len()];
    stream.fill_normal(&mut params);
    for block in layout.weights() {
        params[block.range()].iter_mut().for_each(|w| *w *= (2.0 / block.cols as f64).sqrt());
    }
    Layered::new(spec, &params, features, outputs).unwrap()
}

/// Random inputs in the box, labelled by the model itself.
fn victim(model: Layered, count: usize, bounds: [f64; 2], stream: &mut RandomStream) -> Victim {
    let mut inputs = Matrix::zeros(count, model.features());
    stream.fill_normal(&mut inputs.data);
    let [lowest, highest] = bounds;
    let squeeze = |x: f64| lowest + (highest - lowest) * (0.5 + 0.15 * x).clamp(0.0, 1.0);
    inputs.data.iter_mut().for_each(|x| *x = squeeze(*x));
    let scores: Vec<Vec<f64>> = (0..count).map(|n| model.scores(inputs.row(n))).collect();
    let largest = |s: &Vec<f64>| (0..s.len()).fold(0, |best, j| if s[j] > s[best] { j } else { best });
    let targets = match model.outputs() {
        1 => Targets::Binary(scores.iter().map(|s| if s[0] < 0.0 { -1.0 } else { 1.0 }).collect()),
        outputs => Targets::Classes { labels: scores.iter().map(largest).collect(), count: outputs },
    };
    let shape = vec![model.features()];
    Victim::new(model, &Dataset::new("drawn", inputs, targets, shape).unwrap(), bounds).unwrap()
}

/// The model on a device that is lost.
#[derive(Clone)]
struct Lost {
    model: Layered,
    asked: bool,
}

impl InputMap<f32> for Lost {
    fn features(&self) -> usize {
        self.model.features()
    }

    fn outputs(&self) -> usize {
        self.model.outputs()
    }

    fn scores(&mut self, _: &Panels<f32>, scores: &mut Panels<f32>) {
        self.asked = true;
        scores.data_mut().fill(f32::NAN);
    }

    fn pull_back(&mut self, _: &Panels<f32>, gradient: &mut Panels<f32>) {
        gradient.data_mut().fill(f32::NAN);
    }

    fn fork(&self) -> Box<dyn InputMap<f32>> {
        Box::new(self.clone())
    }

    fn failure(&self) -> Option<String> {
        self.asked.then(|| "the device was lost".to_owned())
    }
}

/// Nothing found by an attack that could not look is no robustness.
#[test]
fn a_device_that_is_lost_ends_an_attack_with_its_reason() {
    let mut stream = Streams::new(22).stream("lost");
    let victim = victim(drawn(&ModelSpec::Linear, 6, 3, &mut stream), 5, [-1.0, 2.0], &mut stream);
    let model = victim.model().clone();
    let victim = victim.computed_by(Box::new(Lost { model, asked: false }));
    for attack in attacks() {
        let found = attack.distances(&victim, &[0, 1, 2, 3, 4], 2);
        assert!(matches!(&found, Err(RobustnessError::Device(why)) if why.contains("lost")), "{attack}: {found:?}");
    }
}

fn attacks() -> Vec<AttackSpec> {
    vec![AttackSpec::carlini_wagner(1000), AttackSpec::deep_fool(), AttackSpec::projected()]
}

/// Of a linear model the robustness is min q_j/‖w_y − w_j‖ where the box leaves room: the bound attains it, and attacks
/// find it.
#[test]
fn a_linear_model_is_as_robust_as_its_margin_says() {
    let mut stream = Streams::new(21).stream("linear");
    let mut roomy = 0;
    for outputs in [1, 4] {
        let victim = victim(drawn(&ModelSpec::Linear, 6, outputs, &mut stream), 20, [-1.0, 2.0], &mut stream);
        let found = victim.profile(&attacks(), 1).unwrap();
        let weight = victim.model().affine().next().unwrap().weight.clone();
        for (n, bracket) in found.examples.iter().enumerate() {
            let scores = victim.model().scores(victim.inputs().row(n));
            // towards each boundary: its distance, and the weights it is orthogonal to
            let boundaries: Vec<(f64, Vec<f64>)> = match victim.labels()[n] {
                Label::Sign(y) => {
                    let towards: Vec<f64> = weight.data.iter().map(|w| y * w).collect();
                    vec![(scores[0].abs() / norm2(&towards), towards)]
                }
                Label::Class(own) => (0..outputs)
                    .filter(|j| *j != own)
                    .map(|j| {
                        let gap: Vec<f64> = weight.row(own).iter().zip(weight.row(j)).map(|(a, b)| a - b).collect();
                        ((scores[own] - scores[j]) / norm2(&gap), gap)
                    })
                    .collect(),
            };
            let (exact, towards) = boundaries.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
            let share = exact / norm2(&towards);
            let foot = victim.inputs().row(n).iter().zip(&towards).map(|(x, w)| x - share * w);
            let room = foot.into_iter().all(|x| (-0.95..1.95).contains(&x));
            roomy += usize::from(room);
            assert!(bracket.certified <= exact && bracket.certified >= exact * (1.0 - 1e-9), "{exact} {bracket:?}");
            for (attack, distance) in attacks().iter().zip(&bracket.attacked) {
                let distance = distance.unwrap_or(f64::INFINITY);
                assert!(distance >= exact * (1.0 - 1e-12), "{attack}: {distance} {exact}");
                // of several classes only DeepFool compares distances: the others go for the highest score
                let sure = outputs == 1 || matches!(attack, AttackSpec::DeepFool { .. });
                assert!(!(room && sure) || distance <= 1.02 * exact, "{attack}: {distance} {exact}");
            }
        }
    }
    assert!(roomy > 20, "only {roomy} of 40");
}

/// Over all listed models: no attack gets below the certified radius, and the best bound is no worse than the global.
#[test]
fn certified_radii_lie_below_attacks_for_every_model() {
    let mut stream = Streams::new(22).stream("all");
    for spec in ModelSpec::examples() {
        for outputs in [1, 3] {
            if cpu::bind(&spec, Matrix::zeros(1, 4), outputs, Compute::default()).is_err() {
                continue;
            }
            let victim = victim(drawn(&spec, 4, outputs, &mut stream), 12, [0.0, 1.0], &mut stream);
            let found = victim.profile(&attacks(), 1).unwrap();
            for bracket in &found.examples {
                assert!(bracket.certified >= bracket.lipschitz && bracket.certified <= bracket.nearest(), "{spec:?}");
                assert!(bracket.margin <= 0.0 || bracket.certified > 0.0, "{spec:?} {bracket:?}");
            }
            // certified without an attack to look up to
            let all: Vec<usize> = (0..12).filter(|n| found.examples[*n].margin > 0.0).collect();
            for (n, (_, radius)) in all.iter().zip(victim.certify(&all, 1).unwrap()) {
                assert!(radius <= found.examples[*n].nearest(), "{spec:?}");
            }
        }
    }
}

/// Radii do not look at attacks, so that they could contradict each other.
#[test]
fn certified_radii_are_the_same_with_and_without_attacks() {
    let mut stream = Streams::new(27).stream("apart");
    let victim = victim(drawn(&ModelSpec::relu(&[12]), 5, 3, &mut stream), 20, [0.0, 1.0], &mut stream);
    let (alone, attacked) = (victim.profile(&[], 1).unwrap(), victim.profile(&attacks(), 1).unwrap());
    for (a, b) in alone.examples.iter().zip(&attacked.examples) {
        assert_eq!((a.lipschitz, a.certified), (b.lipschitz, b.certified));
    }
    assert!(attacked.tightest() >= 1.0 && attacked.tightest() < 100.0, "{}", attacked.tightest());
    assert_eq!(alone.tightest(), f64::INFINITY);
}

#[test]
fn the_tightest_ratio_shows_contradictions_and_numbers_that_are_none() {
    let bracket = |certified, distance| Bracket { margin: 1.0, lipschitz: 0.0, certified, attacked: vec![distance] };
    let tightest = |examples| Profile { attacks: vec!["deep-fool".to_owned()], examples }.tightest();
    assert_eq!(tightest(vec![bracket(0.25, Some(0.5)), bracket(0.5, Some(0.25)), bracket(0.0, Some(0.0))]), 0.5);
    assert_eq!(tightest(vec![bracket(0.25, None)]), f64::INFINITY);
    for (certified, distance) in [(f64::NAN, 0.5), (0.25, f64::NAN)] {
        assert!(tightest(vec![bracket(certified, Some(distance)), bracket(0.25, Some(0.5))]).is_nan());
        assert!(tightest(vec![bracket(0.25, Some(0.5)), bracket(certified, Some(distance))]).is_nan());
    }
    assert!(tightest(vec![bracket(0.0, Some(0.5))]).is_nan() && tightest(Vec::new()).is_nan());
}

/// A score that never changes is safe in the whole box, which is a number that files can hold.
#[test]
fn a_constant_score_is_certified_to_the_diagonal_of_the_box() {
    let mut stream = Streams::new(28).stream("constant");
    let mut model = drawn(&ModelSpec::Linear, 4, 1, &mut stream);
    let first = model.affine_mut().next().unwrap();
    first.weight.data.fill(0.0);
    first.bias = Some(vec![1.0]);
    let found = victim(model, 3, [-1.0, 2.0], &mut stream).profile(&attacks(), 1).unwrap();
    for bracket in &found.examples {
        assert_eq!((bracket.lipschitz, bracket.certified, bracket.nearest()), (6.0, 6.0, f64::INFINITY));
    }
    let read: Profile = serde_json::from_str(&serde_json::to_string(&found).unwrap()).unwrap();
    assert_eq!(read, found);
}

/// (1 + 10⁻⁹)x₁ − x₂ is positive where x₁ = x₂ > 0, but 0 in single precision.
#[test]
fn an_example_that_is_right_by_less_than_single_precision_shows_is_attacked() {
    let weights = [1.0 + 1e-9, -1.0];
    let data = Dataset::new("near", Matrix::from_rows(&[&[0.5, 0.5]]), Targets::Binary(vec![1.0]), vec![2]).unwrap();
    let victim = Victim::new(Layered::new(&ModelSpec::Linear, &weights, 2, 1).unwrap(), &data, [0.0, 1.0]).unwrap();
    let exact = 0.5e-9 / norm2(&weights);
    let found = victim.profile(&attacks(), 1).unwrap();
    for (attack, distance) in attacks().iter().zip(&found.examples[0].attacked) {
        let distance = distance.unwrap_or(f64::INFINITY);
        assert!(distance > exact * (1.0 - 1e-5) && distance < 2.0 * exact, "{attack}: {distance} {exact}");
    }
}

#[test]
fn a_move_that_is_too_short_is_stretched_in_its_direction() {
    let data = Dataset::new("one", Matrix::from_rows(&[&[0.6, 0.4]]), Targets::Binary(vec![1.0]), vec![2]).unwrap();
    let model = Layered::new(&ModelSpec::Linear, &[1.0, -1.0], 2, 1).unwrap();
    let victim = Victim::new(model, &data, [0.0, 1.0]).unwrap();
    let exact = 0.02f64.sqrt();
    for length in [1e-8, 1e-3, 0.0999, 0.1, 0.11, 0.4] {
        let distance = victim.distance(0, &[0.6 - length, 0.4 + length]).unwrap_or(f64::INFINITY);
        assert!((distance - exact).abs() < 1e-5, "{length}: {distance} {exact}");
    }
    assert_eq!(victim.distance(0, &[0.7, 0.3]), None);
    assert_eq!(victim.distance(0, &[0.6, 0.4]), None);
}

/// In the plane the ball can be searched: no point of a certified ball is wrong, and bounds are below sampled minima.
#[test]
fn no_point_of_a_certified_ball_is_wrong() {
    let mut stream = Streams::new(23).stream("plane");
    for activation in Activation::examples() {
        for widths in [vec![12], vec![8, 7]] {
            let spec = ModelSpec::Network {
                widths,
                activation,
                biases: crate::models::Biases::All,
                frozen: Vec::new(),
                output_scale: crate::models::OutputScale::One,
            };
            let victim = victim(drawn(&spec, 2, 3, &mut stream), 6, [-1.0, 1.0], &mut stream);
            let global = lipschitz::GlobalLipschitz::new(victim.model()).unwrap();
            let local = local::LocalBound::new(victim.model(), &global);
            for n in 0..6 {
                let (x, label) = (victim.inputs().row(n).to_vec(), victim.labels()[n]);
                let centre = centre::Centre::new(victim.model(), &x);
                for radius in [1e-3, 0.05, 0.4, 2.0] {
                    let bound = local.lowest_margin(&x, label, &centre, radius);
                    let points = (0..600).map(|i| {
                        let (angle, length) = (f64::from(i) * 0.7, radius * (f64::from(i % 20 + 1) / 20.0).sqrt());
                        victim.margin(n, &[x[0] + length * angle.cos(), x[1] + length * angle.sin()])
                    });
                    let least = points.fold(f64::INFINITY, f64::min);
                    assert!(bound <= least, "{spec:?}: {bound} {least} at {radius}");
                    if radius == 1e-3 {
                        // tight in small balls: a tangent and a chord of a short interval agree
                        assert!(least - bound < 0.1 * (1.0 + least.abs()), "{spec:?}: {bound} {least}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_same_bits_for_any_number_of_threads_and_any_company() {
    let mut stream = Streams::new(24).stream("threads");
    let victim = victim(drawn(&ModelSpec::relu(&[20]), 30, 4, &mut stream), 61, [0.0, 1.0], &mut stream);
    let attacks = [AttackSpec::carlini_wagner(60), AttackSpec::deep_fool(), AttackSpec::projected()];
    let alone = victim.profile(&attacks, 1).unwrap();
    for threads in [2, 3, 61, 100] {
        assert_eq!(victim.profile(&attacks, threads).unwrap(), alone, "{threads} threads");
    }
    for attack in &attacks {
        let some = attack.distances(&victim, &[7, 60, 3], 2).unwrap();
        let place = attacks.iter().position(|other| other == attack).unwrap();
        let expected: Vec<Option<f64>> = [7, 60, 3].iter().map(|n| alone.examples[*n].attacked[place]).collect();
        assert_eq!(some, expected, "{attack}");
    }
}

/// Scores, margins and weights may be scaled: robustness does not change.
#[test]
fn robustness_does_not_depend_on_the_scale_of_the_scores() {
    let mut stream = Streams::new(25).stream("scale");
    let model = drawn(&ModelSpec::relu(&[16]), 10, 3, &mut stream);
    let victim = victim(model.clone(), 20, [0.0, 1.0], &mut stream);
    let usual = victim.profile(&attacks(), 1).unwrap();
    let mut scaled = model;
    scaled.affine_mut().last().unwrap().weight.data.iter_mut().for_each(|w| *w *= 1024.0);
    let labels: Vec<usize> = victim.labels().iter().map(|l| if let Label::Class(c) = l { *c } else { 0 }).collect();
    let targets = Targets::Classes { labels, count: 3 };
    let data = Dataset::new("same", victim.inputs().clone(), targets, vec![10]).unwrap();
    let large = Victim::new(scaled, &data, [0.0, 1.0]).unwrap().profile(&attacks(), 1).unwrap();
    for (a, b) in usual.examples.iter().zip(&large.examples) {
        assert!((a.certified - b.certified).abs() <= 2e-3 * b.certified, "{a:?} {b:?}");
        let (near, other) = (a.nearest(), b.nearest());
        assert!(near == other || (near - other).abs() <= 0.02 * other, "{a:?} {b:?}");
    }
}

#[test]
fn wrong_answers_have_no_robustness_and_bad_questions_are_refused() {
    let mut stream = Streams::new(26).stream("wrong");
    let model = drawn(&ModelSpec::relu(&[9]), 64, 10, &mut stream);
    let data = Digits::all().unwrap().first(30).unwrap();
    let victim = Victim::new(model.clone(), &data, [0.0, 1.0]).unwrap();
    let found = victim.profile(&[AttackSpec::deep_fool()], 1).unwrap();
    let wrong = found.examples.iter().filter(|bracket| bracket.margin <= 0.0);
    assert!(wrong.clone().count() > 10 && wrong.clone().all(|b| b.certified == 0.0 && b.nearest() == 0.0));
    assert!((found.beyond(0.0).0 - found.accuracy()).abs() < 1e-12);
    assert_eq!(found.curve(1.0, 3).radii, [0.0, 0.5, 1.0]);
    let refuse = |model: &Layered, data: &Dataset, bounds| {
        Victim::new(model.clone(), data, bounds).map(|_| ()).unwrap_err().to_string()
    };
    assert!(refuse(&model, &data, [0.0, 0.5]).contains("widen the box"));
    assert!(refuse(&model, &data, [1.0, 0.0]).contains("the lower one first"));
    assert!(refuse(&model, &data.pair(3, 6).unwrap(), [0.0, 1.0]).contains("10 scores"));
    let values = Dataset::new("v", Matrix::zeros(2, 64), Targets::Values(vec![0.0; 2]), vec![64]).unwrap();
    assert!(refuse(&model, &values, [0.0, 1.0]).contains("real numbers"));
    let mut broken = model;
    broken.affine_mut().next().unwrap().weight.data[0] = f64::NAN;
    let error = Victim::new(broken, &data, [0.0, 1.0]).unwrap().profile(&[], 1).unwrap_err();
    assert!(error.to_string().contains("margin of example"), "{error}");
}

/// Networks of images with drawn weights, and examples that they label themselves.
fn image_victims(count: usize, stream: &mut RandomStream) -> Vec<Victim> {
    let lists = [
        "conv 4 3x3, pool 2, conv 5 3x3, pool 2, dense 6, dense",
        "conv 3 3x2 stride 2 padding 1, average 2, dense 5, dense",
        "conv 3 2x2 valid, pool 3 stride 2, dense",
        "pool 2 stride 1, conv 3 3x3, dense",
        "average 3 stride 2, dense 4, dense",
    ];
    let specs = lists.iter().flat_map(|layers| {
        [("relu", "all"), ("relu", "none"), ("quadratic", "first")].map(|(activation, biases)| {
            let text =
                format!(r#"{{"image": {{"layers": "{layers}", "activation": "{activation}", "biases": "{biases}"}}}}"#);
            serde_json::from_str::<ModelSpec>(&text).unwrap()
        })
    });
    let drawn = specs.map(|spec| {
        let shape = vec![2, 7, 6];
        let mut inputs = Matrix::zeros(count, 84);
        stream.fill_normal(&mut inputs.data);
        inputs.data.iter_mut().for_each(|x| *x = (0.5 + 0.3 * *x).clamp(0.0, 1.0));
        let unlabelled = Targets::Classes { labels: vec![0; count], count: 3 };
        let data = Dataset::new("drawn", inputs.clone(), unlabelled, shape.clone()).unwrap();
        let architecture = spec.architecture_on(&data).unwrap();
        let mut params = vec![0.0; architecture.layout().len()];
        stream.fill_normal(&mut params);
        for block in architecture.layout().weights() {
            params[block.range()].iter_mut().for_each(|w| *w *= (2.0 / block.cols as f64).sqrt());
        }
        let model = Layered::of(&architecture, &params).unwrap();
        let answer = |n: usize| {
            let scores = model.scores(inputs.row(n));
            (0..3).fold(0, |best, j| if scores[j] > scores[best] { j } else { best })
        };
        let labels: Vec<usize> = (0..count).map(answer).collect();
        let data = Dataset::new("drawn", inputs.clone(), Targets::Classes { labels, count: 3 }, shape).unwrap();
        Victim::new(model, &data, [0.0, 1.0]).unwrap()
    });
    drawn.collect()
}

/// Convolutions, both pools, windows that overlap: no attack gets below the certified radius.
#[test]
fn certified_radii_of_image_networks_lie_below_attacks() {
    let mut stream = Streams::new(29).stream("images");
    let attacks = [AttackSpec::carlini_wagner(60), AttackSpec::deep_fool(), AttackSpec::projected()];
    let mut fooled = 0;
    for (index, victim) in image_victims(6, &mut stream).iter().enumerate() {
        let found = victim.profile(&attacks, 1).unwrap();
        let maps = &victim.model().maps;
        for bracket in &found.examples {
            assert!(bracket.certified >= bracket.lipschitz && bracket.certified <= bracket.nearest(), "{bracket:?}");
            assert!(bracket.margin <= 0.0 || bracket.certified > 0.0, "{maps:?} {bracket:?}");
        }
        // large biases make some of them blind to their images
        fooled += found.examples.iter().filter(|bracket| bracket.nearest().is_finite()).count();
        if index == 0 {
            assert_eq!(found, victim.profile(&attacks, 3).unwrap());
        }
    }
    assert!(fooled > 2, "{fooled} examples were moved to another class");
}

/// Points of balls, drawn and along gradients, are never below the bound; in small balls it is tight.
#[test]
fn bounds_of_image_networks_hold_in_their_balls() {
    let mut stream = Streams::new(30).stream("balls");
    for victim in image_victims(3, &mut stream) {
        let global = lipschitz::GlobalLipschitz::new(victim.model()).unwrap();
        let local = local::LocalBound::new(victim.model(), &global);
        let mut map = cpu::LayeredMap::<f64>::new(victim.model());
        for n in 0..3 {
            let (x, label) = (victim.inputs().row(n).to_vec(), victim.labels()[n]);
            let centre = centre::Centre::new(victim.model(), &x);
            // towards each other class, and anywhere
            let mut directions: Vec<Vec<f64>> = (0..40)
                .map(|_| {
                    let mut direction = vec![0.0; x.len()];
                    stream.fill_normal(&mut direction);
                    direction
                })
                .collect();
            for rival in (0..3).filter(|rival| Label::Class(*rival) != label) {
                use crate::engine::InputMap;
                let (mut inputs, mut gradient) = (Panels::zeros(x.len(), 1), Panels::zeros(x.len(), 1));
                let mut scores = Panels::zeros(3, 1);
                inputs.pack(&x);
                map.scores(&inputs, &mut scores);
                let Label::Class(own) = label else { panic!("three classes") };
                (0..3).for_each(|k| scores.set(k, 0, f64::from(u8::from(k == rival)) - f64::from(u8::from(k == own))));
                map.pull_back(&scores, &mut gradient);
                directions.push((0..x.len()).map(|k| gradient.get(k, 0)).collect());
            }
            for radius in [1e-4, 0.02, 0.2, 1.0] {
                let bound = local.lowest_margin(&x, label, &centre, radius);
                let least = directions.iter().fold(f64::INFINITY, |least, direction| {
                    let share = radius / norm2(direction);
                    let moved: Vec<f64> = x.iter().zip(direction).map(|(x, d)| x + share * d).collect();
                    least.min(victim.margin(n, &moved))
                });
                assert!(bound <= least, "{bound} {least} at {radius}: {:?}", victim.model().maps);
                if radius == 1e-4 {
                    assert!(least - bound < 0.02 * (1.0 + least.abs()), "{bound} {least}");
                }
            }
        }
    }
}
