//! Proofs checked by somebody else's arithmetic: Arb, and equations written down a third time.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::io::Write;
use std::process::Command;

mod home;
use home::Home;
use limitpoint::certificates::{PolishSettings, polish};
use limitpoint::data::{CircleTeacher, Dataset, Targets};
use limitpoint::linalg::Matrix;
use limitpoint::models::{Activation, ModelSpec};
use limitpoint::norms::NormSpec;
use limitpoint::numeric::{RandomStream, Streams};
use limitpoint::proofs::{Attempt, Equations, Proof, prove, verify};
use limitpoint::training::Training;
use serde::Deserialize;
use serde_json::json;

/// Corrupted cases.
const CORRUPTED: usize = 500;

struct Case {
    model: ModelSpec,
    data: Dataset,
    norm: NormSpec,
    /// Weights as training left them, and polished.
    weights: [Vec<f64>; 2],
    proof: Proof,
    what: String,
}

#[derive(Deserialize)]
struct Answer {
    holds: bool,
    why: String,
    margin: [f64; 2],
    kind: String,
}

/// The Python named by `LIMITPOINT_PYTHON`, if it has Arb, checks proofs in three norms and 500 corrupted ones: what holds here
/// holds there, with margins that meet and the same kind of point.
#[test]
fn what_is_proven_here_is_proven_with_arb_and_nothing_that_arb_rejects() {
    let Some(python) = std::env::var_os("LIMITPOINT_PYTHON") else {
        eprintln!("skipped: set LIMITPOINT_PYTHON to a Python with python-flint to check proofs with Arb");
        return;
    };
    let probe = Command::new(&python).args(["-c", "import flint"]).output().expect("the Python starts");
    if !probe.status.success() {
        eprintln!("skipped: {} has no python-flint to check proofs with", python.display());
        return;
    }
    let honest = honest_cases();
    let mut stream = Streams::new(7).stream("corruption");
    let each = |k: usize| corrupted(&honest[(k / 16) % honest.len()], k, &mut stream);
    let corrupted: Vec<Case> = (0..CORRUPTED).map(each).collect::<Vec<_>>().into_iter().flatten().collect();
    let refused = CORRUPTED - corrupted.len();
    let home = Home::new("proof-peers");
    let file = home.path("cases.jsonl");
    let mut lines = std::fs::File::create(&file).expect("a file");
    for case in honest.iter().chain(&corrupted) {
        writeln!(lines, "{}", line(case)).expect("a line");
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/proofs.py");
    let output = Command::new(&python).args([script, &file]).output().expect("the Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("output is UTF-8");
    let answers: Vec<Answer> = text.lines().map(|line| serde_json::from_str(line).expect("an answer")).collect();
    assert_eq!(answers.len(), honest.len() + corrupted.len());
    let (mut still, mut rejected) = (0, 0);
    for (k, (case, peer)) in honest.iter().chain(&corrupted).zip(&answers).enumerate() {
        let own = verify(&case.proof, &case.model, &case.data).expect("a network that proofs are about");
        if k < honest.len() {
            assert!(own.is_ok() && peer.holds, "{}: {own:?} {}", case.what, peer.why);
        }
        rejected += usize::from(!peer.holds);
        let Ok((findings, _)) = own else { continue };
        assert!(peer.holds, "{} is proven here, but {}", case.what, peer.why);
        still += usize::from(k >= honest.len());
        let meet = findings.margin.lo <= peer.margin[1] && peer.margin[0] <= findings.margin.hi;
        assert!(meet, "{}: {:?} and {:?}", case.what, findings.margin, peer.margin);
        let kind = serde_json::to_value(&findings.kind).expect("JSON");
        // bounds that touch 1 may be told apart by more digits only
        let same = kind["is"] == peer.kind || (kind["is"] != "global-maximum" && peer.kind == "global-maximum");
        assert!(same, "{}: {kind} here, {} there", case.what, peer.kind);
    }
    let count = honest.len();
    eprintln!(
        "{count} proofs agree; of {CORRUPTED} corrupted cases {refused} are refused outright, Arb rejects {rejected}, {still} hold here and there"
    );
    assert!(refused + rejected >= CORRUPTED / 2, "most corruptions are no proofs: {rejected}");
}

/// Proofs of trained networks: in the plane in three norms, and of random labels in three dimensions.
fn honest_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for seed in 1..4 {
        let plane = CircleTeacher { count: 30, ..CircleTeacher::default() };
        let plane = plane.generate(&Streams::new(seed)).expect("data").train;
        for (optimiser, norm) in [("gradient", NormSpec::L2), ("coordinate", NormSpec::L1), ("sign", NormSpec::Linf)] {
            cases.extend(proven(&plane, &ModelSpec::relu(&[12]), optimiser, &norm, seed));
        }
        cases.extend(proven(&random_labels(seed), &ModelSpec::relu(&[16]), "gradient", &NormSpec::L2, seed));
    }
    let dense = cases.len();
    for seed in 1..4 {
        let norm = NormSpec::L2;
        let squared = ModelSpec::network(&[8], Activation::ReluPower { power: 2 });
        cases.extend(proven(&random_labels(seed), &squared, "gradient", &norm, seed));
        cases.extend(proven(&random_labels(seed), &ModelSpec::relu(&[7, 5]), "gradient", &norm, seed));
        cases.extend(proven(&three_classes(seed), &ModelSpec::relu(&[7]), "gradient", &norm, seed));
        let mut frozen = ModelSpec::relu(&[12]);
        if let ModelSpec::Network { frozen, .. } = &mut frozen {
            *frozen = vec![1];
        }
        cases.extend(proven(&random_labels(seed), &frozen, "gradient", &norm, seed));
    }
    let dense = cases.len() - dense;
    assert!(dense >= 6, "only {dense} dense networks of 12 were proven");
    assert!(cases.len() >= 14, "only {} networks were proven", cases.len());
    cases
}

fn random_labels(seed: u64) -> Dataset {
    let mut stream = Streams::new(seed).stream("random labels");
    let (rows, cols) = (14, 3);
    let (mut data, mut labels) = (vec![0.0; rows * cols], vec![0.0; rows]);
    stream.fill_normal(&mut data);
    stream.fill_normal(&mut labels);
    let labels = labels.iter().map(|y| y.signum()).collect();
    Dataset::new("random", Matrix { rows, cols, data }, Targets::Binary(labels), vec![cols]).expect("data")
}

/// Three thirds of the plane.
fn three_classes(seed: u64) -> Dataset {
    let mut stream = Streams::new(seed).stream("three classes");
    let (rows, cols) = (18, 2);
    let mut data = vec![0.0; rows * cols];
    stream.fill_normal(&mut data);
    let label = |point: &[f64]| ((point[1].atan2(point[0]) / std::f64::consts::TAU + 0.5) * 3.0) as usize % 3;
    let labels = data.chunks_exact(cols).map(label).collect();
    let targets = Targets::Classes { labels, count: 3 };
    Dataset::new("thirds", Matrix { rows, cols, data }, targets, vec![cols]).expect("data")
}

fn proven(data: &Dataset, model: &ModelSpec, optimiser: &str, norm: &NormSpec, seed: u64) -> Option<Case> {
    let training = Training::new(data.clone(), model.clone()).ok()?.optimiser(optimiser).ok()?;
    let run = training.seed(seed).until_log10_loss(-8.0).at_most_steps(20_000).run().ok()?;
    let polished = polish(model, data, &run.params, norm, &PolishSettings::default()).ok()?;
    let what = format!("{optimiser} in {norm}, seed {seed}");
    let Attempt::Proven(proven) = prove(model, data, &polished.params, norm, 300).ok()? else { return None };
    let (model, data, norm) = (model.clone(), data.clone(), norm.clone());
    Some(Case { model, data, norm, weights: [run.params, polished.params], proof: proven.proof, what })
}

/// One thing made wrong, or data moved a little, or weights of another place proven.
///
/// None where a proof was asked for from corrupted data or weights, and refused.
fn corrupted(case: &Case, k: usize, stream: &mut RandomStream) -> Option<Case> {
    let Case { model, data, norm, weights, proof, what } = case;
    let (mut proof, mut data) = (proof.clone(), data.clone());
    let mut pick = |count: usize| (stream.uniform() * count as f64) as usize % count.max(1);
    let size = proof.midpoint.len();
    let kind = k % 16;
    let name = match kind {
        0 => {
            let u = pick(size);
            proof.midpoint[u] += proof.radius[u] * 10f64.powi(pick(9) as i32 - 3);
            "a moved middle"
        }
        1 => {
            let factor = 10f64.powi(pick(12) as i32 - 9);
            proof.radius.iter_mut().for_each(|r| *r *= factor);
            "other radii"
        }
        2 => {
            let u = pick(size * size);
            proof.inverse[u] += 10f64.powi(pick(8) as i32 - 4);
            "another inverse"
        }
        3 | 4 => {
            let (from, to) = [('0', '+'), ('0', '-'), ('+', '0'), ('-', '0'), ('+', '-'), ('-', '+')][pick(6)];
            let at = pick(100);
            edit_sides(&mut proof.equations, at, from, to);
            "another side"
        }
        5 => {
            let dropped = pick(proof.active.len());
            proof.active.remove(dropped);
            "an active example left out"
        }
        6 => {
            let replaced = pick(proof.active.len());
            let other = pick(data.len());
            proof.active[replaced] = other;
            proof.active.sort_unstable();
            "another active example"
        }
        7..=9 => {
            let mut inputs = data.dense().expect("dense").into_owned();
            let at = if kind == 7 {
                let example = proof.active[pick(proof.active.len())];
                example * inputs.cols + pick(inputs.cols)
            } else {
                pick(inputs.data.len())
            };
            inputs.data[at] += 10f64.powi(-(pick(16) as i32));
            data = Dataset::new("moved", inputs, data.targets.clone(), data.input_shape.clone()).expect("data");
            "moved data"
        }
        10 => {
            let flipped = pick(data.len());
            let mut targets = data.targets.clone();
            match &mut targets {
                Targets::Classes { labels, count } => labels[flipped] = (labels[flipped] + 1) % *count,
                Targets::Binary(labels) | Targets::Values(labels) => labels[flipped] = -labels[flipped],
            }
            data =
                Dataset::new("flipped", data.dense().expect("dense").into_owned(), targets, data.input_shape.clone())
                    .expect("data");
            "a flipped label"
        }
        11 => {
            edit_signs(&mut proof.equations, pick(100));
            "another sign"
        }
        13 | 14 => {
            // weights that are not polished, or moved: whatever is proven from them must be true
            let mut moved = weights[kind - 13].clone();
            let noise = if kind == 13 { 0.0 } else { 10f64.powi(-(pick(10) as i32) - 2) };
            moved.iter_mut().for_each(|w| *w *= 1.0 + noise * (pick(2001) as f64 / 1000.0 - 1.0));
            let Ok(Attempt::Proven(found)) = prove(model, &data, &moved, norm, 100) else { return None };
            proof = found.proof;
            "moved weights"
        }
        15 => {
            let mut inputs = data.dense().expect("dense").into_owned();
            let at = pick(inputs.data.len());
            inputs.data[at] += 10f64.powi(-(pick(8) as i32) - 2);
            data = Dataset::new("moved", inputs, data.targets.clone(), data.input_shape.clone()).expect("data");
            let Ok(Attempt::Proven(found)) = prove(model, &data, &weights[1], norm, 100) else { return None };
            proof = found.proof;
            "a proof of moved data"
        }
        _ => {
            if let Some(cover) = &mut proof.sphere {
                let leaves = if pick(2) == 0 { &mut cover.positive } else { &mut cover.negative };
                let at = pick(leaves.len());
                match pick(3) {
                    0 => drop(leaves.remove(at)),
                    1 => leaves[at].slopes.iter_mut().for_each(|s| *s *= 0.5),
                    _ => leaves[at].path.push('1'),
                }
            }
            "another cover of the sphere"
        }
    };
    let what = format!("{what}: {name}");
    Some(Case { model: model.clone(), data, norm: norm.clone(), weights: weights.clone(), proof, what })
}

fn edit_sides(equations: &mut Equations, at: usize, from: char, to: char) {
    let edit = |sides: &mut String| {
        let places: Vec<usize> = sides.char_indices().filter(|(_, c)| *c == from).map(|(i, _)| i).collect();
        let place = places.get(at % places.len().max(1)).copied().unwrap_or(at % sides.len());
        sides.replace_range(place..=place, &to.to_string());
    };
    let at = at % neurons(equations);
    match equations {
        Equations::L2(bundles) => edit(&mut bundles[at].sides),
        Equations::L1(bundles) => edit(&mut bundles[at].sides),
        Equations::Linf(cube) => edit(&mut cube.neurons[at].sides),
        Equations::Dense(network) => edit(network.sides.iter_mut().flatten().nth(at).expect("a unit")),
    }
}

fn edit_signs(equations: &mut Equations, at: usize) {
    let at = at % neurons(equations);
    match equations {
        Equations::L2(bundles) => bundles[at].sign *= -1,
        Equations::L1(bundles) => bundles[at].sign *= -1,
        Equations::Linf(cube) => cube.neurons[at].outer *= -1.0,
        // there are no signs: another margin, or another unit
        Equations::Dense(network) if at.is_multiple_of(2) => network.margins[0] += 1,
        Equations::Dense(network) => network.units[0][0] += 1,
    }
}

fn neurons(equations: &Equations) -> usize {
    match equations {
        Equations::L2(bundles) => bundles.len(),
        Equations::L1(bundles) => bundles.len(),
        Equations::Linf(cube) => cube.neurons.len(),
        Equations::Dense(network) => network.units.iter().map(Vec::len).sum(),
    }
}

/// A case as the peer reads it.
fn line(case: &Case) -> String {
    let inputs = case.data.dense().expect("dense");
    let rows: Vec<&[f64]> = (0..inputs.rows).map(|i| inputs.row(i)).collect();
    let ModelSpec::Network { widths, activation, frozen, .. } = &case.model else { panic!("a network") };
    let (labels, classes): (Vec<f64>, usize) = match &case.data.targets {
        Targets::Classes { labels, count } => (labels.iter().map(|label| *label as f64).collect(), *count),
        _ => (case.data.signs().expect("labels").to_vec(), 1),
    };
    let trained: Vec<bool> = (1..=widths.len() + 1).map(|layer| !frozen.contains(&layer)).collect();
    json!({
        "x": rows, "y": labels, "slope": 0.0, "width": widths[0], "factor": [1, 1], "proof": case.proof,
        "widths": widths, "power": activation.degree(), "trained": trained, "classes": classes,
    })
    .to_string()
}
