//! `limitpoint bench attack`: Carlini–Wagner here and in foolbox, on the same network in the same minutes.
//!
//! A 784-256-10 ReLU network with random weights on 96 random images, labelled by the network itself; nine constants,
//! the same number of steps of Adam for each, no early end. Both compute in single precision; limitpoint checks what it
//! found in double precision within its time.

use std::path::Path;
use std::time::{Duration, Instant};

use limitpoint::data::{Dataset, Targets};
use limitpoint::linalg::Matrix;
use limitpoint::models::{Layered, ModelSpec};
use limitpoint::numeric::Streams;
use limitpoint::robustness::{AttackSpec, Quartiles, Victim};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::peer::{Peer, write_numbers};
use super::{Bench, median};
use crate::commands::say;

/// Inputs, hidden units and classes of the network, and images.
const SIZES: [usize; 3] = [784, 256, 10];
const IMAGES: usize = 96;
/// Constants that are tried, and steps for each.
const SEARCH: usize = 9;
const STEPS: usize = 100;

/// One engine's time and result.
#[derive(Debug, Serialize)]
pub struct Line {
    engine: String,
    threads: usize,
    /// Median over the rounds.
    seconds: f64,
    /// Microseconds of a step of one example.
    microseconds_per_step: f64,
    /// How many times faster limitpoint is.
    ratio: f64,
    /// The median distance found.
    median_distance: Option<f64>,
}

/// Measures both, in turns.
pub fn measure(bench: &Bench, folder: &Path) -> anyhow::Result<Vec<Line>> {
    let (victim, labels) = victim()?;
    let examples: Vec<usize> = (0..IMAGES).collect();
    let attack: AttackSpec =
        format!("carlini-wagner(search_steps={SEARCH}, steps={STEPS}, abort_early=false)").parse()?;
    let mut peer = match &bench.python {
        Some(python) => foolbox(python, &victim, &labels, bench.threads, folder)?,
        None => {
            say("no --python given: limitpoint alone is measured");
            None
        }
    };
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    let (mut found, mut found_theirs) = (Vec::new(), Vec::new());
    // the first round warms up
    for round in 0..=bench.rounds {
        let begin = Instant::now();
        found = attack.distances(&victim, &examples, bench.threads)?;
        let seconds = begin.elapsed().as_secs_f64();
        if round > 0 {
            own.push(seconds);
        }
        if let Some(peer) = &mut peer {
            let answer = ask(peer)?;
            if round > 0 {
                theirs.push(answer.seconds);
            }
            found_theirs = answer.distances;
            // threads of the engine before spin for a moment after their last product
            std::thread::sleep(Duration::from_millis(300));
        }
    }
    let own = median(own);
    let line = |engine: &str, seconds: f64, distances: &[Option<f64>]| Line {
        engine: engine.to_owned(),
        threads: bench.threads,
        seconds,
        microseconds_per_step: 1e6 * seconds / (SEARCH * STEPS * IMAGES) as f64,
        ratio: seconds / own,
        median_distance: Quartiles::of(&distances.iter().map(|d| d.unwrap_or(f64::INFINITY)).collect::<Vec<_>>())
            .median,
    };
    let mut lines = vec![line("limitpoint", own, &found)];
    if peer.is_some() {
        lines.push(line("foolbox, PyTorch", median(theirs), &found_theirs));
    }
    Ok(lines)
}

fn victim() -> anyhow::Result<(Victim, Vec<usize>)> {
    let mut stream = Streams::new(1).stream("bench attack");
    let [inputs, width, classes] = SIZES;
    let mut params = vec![0.0; inputs * width + width * classes];
    stream.fill_normal(&mut params);
    let (first, second) = params.split_at_mut(inputs * width);
    first.iter_mut().for_each(|w| *w *= (2.0 / inputs as f64).sqrt());
    second.iter_mut().for_each(|w| *w *= (2.0 / width as f64).sqrt());
    let model = Layered::new(&ModelSpec::relu(&[width]), &params, inputs, classes)?;
    let mut images = Matrix::zeros(IMAGES, inputs);
    stream.fill_normal(&mut images.data);
    images.data.iter_mut().for_each(|x| *x = (0.5 + 0.3 * *x).clamp(0.0, 1.0));
    let answer = |n: usize| {
        let scores = model.scores(images.row(n));
        (0..classes).fold(0, |best, j| if scores[j] > scores[best] { j } else { best })
    };
    let labels: Vec<usize> = (0..IMAGES).map(answer).collect();
    let targets = Targets::Classes { labels: labels.clone(), count: classes };
    let data = Dataset::new("random images", images, targets, vec![28, 28])?;
    Ok((Victim::new(model, &data, [0.0, 1.0])?, labels))
}

/// The table for people.
pub fn text(lines: &[Line]) -> String {
    let mut out = format!(
        "Carlini–Wagner, 784-256-10, {IMAGES} images, {SEARCH} x {STEPS} steps\n\n\
         engine              seconds  µs per step and image  median distance\n"
    );
    for line in lines {
        out += &format!(
            "{:<18} {:>8.2}  {:>21.2}  {:>15.6}   limitpoint is {:.2}x as fast\n",
            line.engine,
            line.seconds,
            line.microseconds_per_step,
            line.median_distance.unwrap_or(f64::NAN),
            line.ratio
        );
    }
    out
}

#[derive(Debug, Deserialize)]
struct Answer {
    seconds: f64,
    distances: Vec<Option<f64>>,
}

/// A Python process with foolbox; nothing if this Python lacks foolbox or PyTorch.
fn foolbox(
    python: &Path,
    victim: &Victim,
    labels: &[usize],
    threads: usize,
    folder: &Path,
) -> anyhow::Result<Option<Peer>> {
    let layers: Vec<[usize; 2]> = victim.model().affine().map(|layer| [layer.weight.rows, layer.weight.cols]).collect();
    let spec = json!({ "layers": layers, "labels": labels, "bounds": victim.bounds() });
    std::fs::write(folder.join("attack.json"), spec.to_string())?;
    let weights: Vec<f64> = victim.model().affine().flat_map(|layer| layer.weight.data.clone()).collect();
    write_numbers(folder, "attack.weights", &weights)?;
    write_numbers(folder, "attack.inputs", &victim.inputs().data)?;
    let arguments = ["torch", &threads.to_string()];
    let mut peer = Peer::launch(python, "foolbox", include_str!("attack.py"), &arguments, folder)?;
    match peer.receive()?["missing"].as_str() {
        Some(missing) => {
            say(&format!("foolbox: {missing}, left out"));
            Ok(None)
        }
        None => Ok(Some(peer)),
    }
}

/// One measurement.
fn ask(peer: &mut Peer) -> anyhow::Result<Answer> {
    let request = json!({
        "attack": "carlini-wagner", "binary_search_steps": SEARCH, "steps": STEPS, "abort_early": false,
    });
    peer.send(request)?;
    peer.answer()
}
