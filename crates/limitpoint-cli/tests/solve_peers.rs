//! Solvers written by other people must find the same margins.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::collections::BTreeMap;
use std::process::Command;

use limitpoint::linalg::Matrix;
use limitpoint::params::ParamLayout;
use limitpoint::reference::{MarginProblem, MarginStatus, max_margin};
use serde::Deserialize;

/// Random problems for each norm.
const COUNT: usize = 200;

/// A problem with the peer's bracket, or the norms the peer cannot solve.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Problem { norm: String, shape: [usize; 2], rows: Vec<Vec<f64>>, lower: f64, upper: f64 },
    Rest { skipped: Vec<String> },
}

/// The Python named by `LIMITPOINT_PYTHON` solves 200 random problems per norm: ℓ1 and ℓ∞ by HiGHS, ℓ2 by non-negative
/// least squares, and, if it has cvxpy, ℓp, group, spectral and nuclear norms by Clarabel. Both sides bring a proven
/// bracket; the brackets must meet, and the margins agree to 10⁻⁹ or to the peer's own gap.
#[test]
fn margins_agree_with_highs_least_squares_and_cvxpy() {
    let Some(python) = std::env::var_os("LIMITPOINT_PYTHON") else {
        eprintln!("skipped: set LIMITPOINT_PYTHON to a Python with scipy (and cvxpy) to compare margins");
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/margins.py");
    let probe = Command::new(&python).args(["-c", "import numpy, scipy"]).output().expect("the Python starts");
    if !probe.status.success() {
        eprintln!("skipped: {} has no scipy to compare margins with", python.display());
        return;
    }
    let output = Command::new(&python)
        .args([script, &COUNT.to_string(), "1"])
        .env("OMP_NUM_THREADS", "1")
        .output()
        .expect("the Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut seen, mut complaints) = (BTreeMap::<String, (usize, f64, f64)>::new(), Vec::new());
    for line in String::from_utf8(output.stdout).expect("output is UTF-8").lines() {
        let (norm, shape, rows, lower, upper) = match serde_json::from_str(line).expect("a problem per line") {
            Line::Problem { norm, shape, rows, lower, upper } => (norm, shape, rows, lower, upper),
            Line::Rest { skipped } => {
                eprintln!("not compared, for want of cvxpy: {}", skipped.join(", "));
                continue;
            }
        };
        let matrix = Matrix::from_vec(rows.len(), shape[0] * shape[1], rows.concat()).expect("rows of one length");
        let layout = ParamLayout::new([("w", shape[0], shape[1])]).expect("a shape");
        let spec = norm.parse().expect("a norm");
        let problem = MarginProblem::new(matrix, spec, layout).expect("a margin problem");
        let entry = seen.entry(norm.clone()).or_insert((0, 0.0, 0.0));
        entry.0 += 1;
        let found = match max_margin(&problem) {
            Ok(found) if found.status == MarginStatus::Optimal => found,
            Ok(found) => {
                complaints.push(format!("{norm} is {} here, {lower} for the peer: {line}", found.status));
                continue;
            }
            Err(error) => {
                complaints.push(format!("{norm}: {error}: {line}"));
                continue;
            }
        };
        let (own, peer) = (found.bracket.relative_gap(), ((upper - lower) / upper).max(0.0));
        (entry.1, entry.2) = (entry.1.max(own), entry.2.max(peer));
        // proven bounds of one number cross by rounding at most
        let rounding = 1e-13 * upper;
        let meet = found.bracket.lower <= upper + rounding && found.bracket.upper >= lower - rounding;
        let difference = (found.margin - 0.5 * (lower + upper)).abs() / upper;
        if !meet || difference > peer.max(1e-9) {
            let own = format!("[{}, {}]", found.bracket.lower, found.bracket.upper);
            complaints.push(format!("{norm}: {own} here, [{lower}, {upper}] for the peer: {line}"));
        }
    }
    for (norm, (count, own, peer)) in &seen {
        eprintln!("{norm}: {count} problems, largest relative gap {own:.1e} here, {peer:.1e} of the peer");
        assert_eq!(*count, COUNT, "{norm}");
    }
    let first: Vec<&String> = complaints.iter().take(5).collect();
    assert!(complaints.is_empty(), "{} problems, such as {first:#?}", complaints.len());
    assert!(["l1", "l2", "linf"].iter().all(|norm| seen.contains_key(*norm)));
}
