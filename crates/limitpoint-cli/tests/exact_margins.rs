//! A thousand random margin problems, checked in 50 digits by another program.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use limitpoint::linalg::{Matrix, dot, norm2};
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::params::ParamLayout;
use limitpoint::reference::{MarginProblem, MarginStatus, max_margin};

/// Problems in all.
const COUNT: usize = 1000;
/// Data are multiplied by these, and by 1 in half of the problems.
const SCALES: [f64; 6] = [1e-250, 1e-120, 1e-8, 1e8, 1e120, 1e250];
/// Planted margins relative to the rows.
const MARGINS: [f64; 8] = [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10];

/// A problem with what was planted in it: a margin, or 0 for one that nothing separates.
struct Case {
    norm: NormSpec,
    layout: ParamLayout,
    rows: Matrix,
    planted: f64,
}

/// Rows of size about 1 with their part along a hidden unit vector between δ and 2δ; then scaled. Every fifth problem
/// has one input under both labels, every tenth a combination of all rows that is 0 up to rounding.
fn case(number: usize, norms: &[(ParamLayout, NormSpec)]) -> Case {
    let mut stream = Streams::new(number as u64).stream("exact margins");
    let (layout, norm) = norms[number % norms.len()].clone();
    let (d, count) = (layout.len(), 4 + stream.below(24));
    let delta = MARGINS[stream.below(MARGINS.len())];
    let scale = if stream.below(2) == 0 { 1.0 } else { SCALES[stream.below(SCALES.len())] };
    let mut u = vec![0.0; d];
    stream.fill_normal(&mut u);
    let size = norm2(&u);
    let mut rows = Matrix::zeros(count, d);
    stream.fill_normal(&mut rows.data);
    for i in 0..count {
        let along = dot(rows.row(i), &u) / size;
        let wanted = delta * (1.0 + (i % 5) as f64 / 5.0);
        rows.row_mut(i).iter_mut().zip(&u).for_each(|(x, u)| *x += (wanted - along) * u / size);
    }
    let mut planted = delta * scale;
    if number.is_multiple_of(5) {
        let opposite: Vec<f64> = rows.row(0).iter().map(|x| -x).collect();
        rows.row_mut(1).copy_from_slice(&opposite);
        planted = 0.0;
    } else if number % 10 == 3 {
        stream.fill_normal(&mut rows.data);
        planted = 0.0;
    }
    rows.data.iter_mut().for_each(|x| *x *= scale);
    Case { norm, layout, rows, planted }
}

/// Every norm of the library on a vector and on a matrix, as far as the other program knows its name.
fn norms() -> Vec<(ParamLayout, NormSpec)> {
    let layouts = [ParamLayout::vector(5), ParamLayout::new([("w", 3, 2)]).expect("a layout")];
    let all = layouts.into_iter().flat_map(|layout| {
        let examples = NormSpec::examples(&layout);
        examples.into_iter().map(move |norm| (layout.clone(), norm))
    });
    all.filter(|(_, norm)| !matches!(norm, NormSpec::QuadraticDense { .. })).collect()
}

#[test]
fn every_bracket_holds_in_fifty_digits_and_every_other_answer_has_its_proof() {
    let Some(python) = std::env::var_os("LIMITPOINT_PYTHON") else {
        eprintln!("skipped: set LIMITPOINT_PYTHON to a Python with mpmath to check margins in 50 digits");
        return;
    };
    let probe = Command::new(&python).args(["-c", "import mpmath"]).output().expect("the Python starts");
    if !probe.status.success() {
        eprintln!("skipped: {} has no mpmath to check margins with", python.to_string_lossy());
        return;
    }
    let (norms, mut lines, mut cases) = (norms(), String::new(), Vec::new());
    let (mut counts, mut misses) = (BTreeMap::<String, usize>::new(), Vec::new());
    for number in 0..COUNT {
        let Case { norm, layout, rows, planted } = case(number, &norms);
        let (block, name) = (layout.blocks()[0].clone(), norm.to_string());
        let problem = MarginProblem::new(rows.clone(), norm, layout).expect("a problem");
        let found = max_margin(&problem).expect("an answer");
        *counts.entry(found.status.to_string()).or_default() += 1;
        // a margin of at least 1e-10 of the rows must be found, and one input under both labels be seen
        let missed = (planted > 0.0 && found.status != MarginStatus::Optimal)
            || (number.is_multiple_of(5) && found.status != MarginStatus::NotSeparable);
        if missed {
            misses.push(format!("{number}: {name}, planted {planted:e}: {} {:?}", found.status, found.bracket));
        }
        let all: Vec<&[f64]> = (0..rows.rows).map(|i| rows.row(i)).collect();
        let line = serde_json::json!({
            "norm": name, "shape": [block.rows, block.cols], "rows": all, "planted": planted,
            "status": found.status.to_string(), "lower": found.bracket.lower, "upper": found.bracket.upper,
            "direction": found.direction, "direction_low": found.direction_low,
            "dual": found.dual, "dual_low": found.dual_low,
        });
        lines += &(line.to_string() + "\n");
        cases.push(format!("{number}: {name}, {}", found.status));
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/exact.py");
    let mut child = Command::new(&python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the Python starts");
    let mut input = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("the Python ends");
    writer.join().expect("a thread").expect("all problems are sent");
    let text = String::from_utf8(output.stdout).expect("output is UTF-8");
    let answers: Vec<&str> = text.lines().collect();
    assert_eq!(answers.len(), COUNT);
    let wrong: Vec<String> =
        cases.iter().zip(&answers).filter(|(_, answer)| **answer != "ok").map(|(c, a)| format!("{c}: {a}")).collect();
    eprintln!("{counts:?}");
    assert!(wrong.is_empty(), "{} of {COUNT}, such as {:#?}", wrong.len(), wrong.iter().take(8).collect::<Vec<_>>());
    assert!(misses.is_empty(), "{} of {COUNT}: {misses:#?}", misses.len());
    assert!(counts["optimal"] > COUNT / 2 && counts["not-separable"] > COUNT / 10, "{counts:?}");
}
