//! `limitpoint bench solve`: the judge against other people's solvers, on the same problems in the same minutes.
//!
//! | problem | rows | asked besides |
//! |---|---|---|
//! | Gaussian points on one side of a plane, in ℓ2, ℓ1 and ℓ∞ | 500 of 200 | cvxpy with Clarabel, and SVC in ℓ2 |
//! | MNIST's 0 against 1, where its files are found | 12,665 of 784 | SVC and LinearSVC in ℓ2 |
//! | the 1797 embedded digits of ten classes, with a constant input | 16,173 of 650 | LinearSVC in ℓ2 |
//!
//! cvxpy is timed from the first variable to the solution, as its user waits for it, and its solver's own time is shown
//! beside. scikit-learn's SVC(C = 1e10) solves the ℓ2 problem with every point mirrored through the origin, since libsvm
//! always fits an intercept, and its time on as many points as the problem has, intercept included, is shown beside.
//! LinearSVC has none to fit (for classes it is Crammer and Singer's problem), C = 1e6 and a million iterations at most.
//! Gaps are those of each solver's own answer to the proven upper bound.

use std::path::Path;
use std::time::Instant;

use anyhow::bail;
use limitpoint::data::{Dataset, Digits, Targets};
use limitpoint::linalg::{Matrix, add_scaled, dot, norm2};
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::reference::{Bracket, MaxMargin, max_margin_of};
use serde::{Deserialize, Serialize};

use super::epoch::mnist_pair;
use super::peer::{Peer, write_numbers};
use super::{Bench, median};
use crate::commands::say;

/// Points and dimensions of the random problems.
const SIZE: (usize, usize) = (500, 200);

/// One problem and everyone's answers.
#[derive(Debug, Serialize)]
pub struct Line {
    data: &'static str,
    norm: String,
    status: String,
    rows: usize,
    columns: usize,
    /// Median over the rounds.
    milliseconds: f64,
    /// (upper − lower)/upper, proven.
    gap: f64,
    margin: f64,
    peers: Vec<PeerLine>,
}

#[derive(Debug, Serialize)]
struct PeerLine {
    solver: &'static str,
    milliseconds: f64,
    /// Its solver alone (cvxpy), or the same number of points with an intercept (SVC).
    inner_milliseconds: f64,
    /// How many times faster limitpoint is.
    ratio: f64,
    /// Relative gap of its margin to our upper bound.
    gap: f64,
}

/// Data with the norms and the solvers that are asked in ℓ2.
struct Problem {
    name: &'static str,
    data: Dataset,
    rows: usize,
    norms: Vec<NormSpec>,
    in_l2: &'static [&'static str],
    elsewhere: &'static [&'static str],
}

/// The problems of the table above.
fn problems() -> anyhow::Result<Vec<Problem>> {
    let all = || vec![NormSpec::L2, NormSpec::L1, NormSpec::Linf];
    let points = points(SIZE.0, SIZE.1);
    let signs = Targets::Binary(vec![1.0; SIZE.0]);
    let mut problems = vec![Problem {
        name: "gaussian",
        data: Dataset::new("gaussian", points, signs, vec![SIZE.1])?,
        rows: SIZE.0,
        norms: all(),
        in_l2: &["cvxpy", "svc"],
        elsewhere: &["cvxpy"],
    }];
    match mnist_pair(0, 1)? {
        Some(data) => {
            let rows = data.len();
            let in_l2 = &["svc", "linear-svc"];
            problems.push(Problem { name: "mnist-0-1", data, rows, norms: all(), in_l2, elsewhere: &[] });
        }
        None => say("MNIST is not here: 0 against 1 is left out (limitpoint data fetch mnist)"),
    }
    let digits = Digits::all()?;
    let (inputs, Targets::Classes { labels, count }) = (digits.dense()?, digits.targets.clone()) else {
        bail!("the embedded digits have no classes");
    };
    let mut with_constant = Matrix::zeros(inputs.rows, inputs.cols + 1);
    for i in 0..inputs.rows {
        with_constant.row_mut(i)[..inputs.cols].copy_from_slice(inputs.row(i));
        with_constant.row_mut(i)[inputs.cols] = 1.0;
    }
    let rows = inputs.rows * (count - 1);
    let data = Dataset::new("digits", with_constant, Targets::Classes { labels, count }, vec![inputs.cols + 1])?;
    let in_l2 = &["linear-svc"];
    problems.push(Problem { name: "digits", data, rows, norms: vec![NormSpec::L2], in_l2, elsewhere: &[] });
    Ok(problems)
}

/// Measures all problems; peers are asked where `--python` has them.
pub fn measure(bench: &Bench, folder: &Path) -> anyhow::Result<Vec<Line>> {
    let mut peer = match &bench.python {
        Some(python) => Some(Peer::launch(python, "solvers", include_str!("solve.py"), &[], folder)?),
        None => {
            say("no --python given: limitpoint alone is measured");
            None
        }
    };
    let mut lines = Vec::new();
    for problem in problems()? {
        for norm in &problem.norms {
            let solvers = if *norm == NormSpec::L2 { problem.in_l2 } else { problem.elsewhere };
            if peer.is_some() && !solvers.is_empty() {
                write(&norm.key(), &problem.data, folder)?;
            }
            lines.push(line(&problem, norm, solvers, bench.rounds, peer.as_mut())?);
        }
    }
    Ok(lines)
}

/// One problem in one norm, everyone in turns.
fn line(
    problem: &Problem,
    norm: &NormSpec,
    solvers: &[&'static str],
    rounds: usize,
    mut peer: Option<&mut Peer>,
) -> anyhow::Result<Line> {
    let (mut own, mut theirs) = (Vec::new(), vec![Vec::new(); solvers.len()]);
    let mut found: Option<MaxMargin> = None;
    for _ in 0..rounds.max(1) {
        let begin = Instant::now();
        found = Some(max_margin_of(&problem.data, norm.clone())?);
        own.push(begin.elapsed().as_secs_f64());
        for (solver, answers) in solvers.iter().zip(&mut theirs) {
            if let Some(peer) = &mut peer
                && let Some(answer) = ask(peer, &norm.key(), solver)?
            {
                answers.push(answer);
            }
        }
    }
    let Some(MaxMargin { bracket, status, .. }) = found else { bail!("no round was measured") };
    let Bracket { lower, upper } = bracket;
    let seconds = median(own);
    let peers = solvers.iter().zip(&theirs).filter(|(_, answers)| !answers.is_empty()).map(|(solver, answers)| {
        let typical = |of: fn(&Answer) -> f64| median(answers.iter().map(of).collect());
        PeerLine {
            solver,
            milliseconds: 1e3 * typical(|a| a.seconds),
            inner_milliseconds: 1e3 * typical(|a| a.solver_seconds),
            ratio: typical(|a| a.seconds) / seconds,
            gap: 1.0 - typical(|a| a.lower) / upper,
        }
    });
    let classes = if let Targets::Classes { count, .. } = problem.data.targets { count } else { 1 };
    Ok(Line {
        data: problem.name,
        norm: norm.key(),
        status: status.to_string(),
        rows: problem.rows,
        columns: problem.data.dimension() * classes,
        milliseconds: 1e3 * seconds,
        gap: bracket.relative_gap(),
        margin: lower,
        peers: peers.collect(),
    })
}

/// Gaussian points on the positive side of a plane: rows y_i x_i of a separable problem.
fn points(rows: usize, columns: usize) -> Matrix {
    let mut stream = Streams::new(1).stream("bench solve");
    let mut normal = vec![0.0; columns];
    stream.fill_normal(&mut normal);
    let size = norm2(&normal);
    let mut matrix = Matrix::zeros(rows, columns);
    stream.fill_normal(&mut matrix.data);
    for i in 0..rows {
        let along = dot(matrix.row(i), &normal) / size;
        add_scaled(matrix.row_mut(i), (along.abs() + 0.05 - along) / size, &normal);
    }
    matrix
}

/// The table for people.
pub fn text(lines: &[Line]) -> String {
    let mut out = String::from("exact max margin                    limitpoint      gap   margin\n");
    for line in lines {
        let problem = format!("{}, {}, {} x {}", line.data, line.norm, line.rows, line.columns);
        let (time, gap) = (line.milliseconds, line.gap.max(0.0));
        out += &format!("{problem:<32} {time:>10.1} ms  {gap:>7.0e}   {:.12} {}\n", line.margin, line.status);
        for peer in &line.peers {
            let (name, inner) = match peer.solver {
                "cvxpy" => ("cvxpy + Clarabel", "its solver alone"),
                "linear-svc" => ("LinearSVC(C=1e6)", "the same"),
                _ => ("SVC(C=1e10), mirrored", "with intercept"),
            };
            out += &format!(
                "  {name:<30} {:>10.1} ms  {:>7.0e}   limitpoint is {:.1}x as fast ({inner} {:.1} ms)\n",
                peer.milliseconds, peer.gap, peer.ratio, peer.inner_milliseconds
            );
        }
    }
    out
}

#[derive(Debug, Clone, Deserialize)]
struct Answer {
    seconds: f64,
    solver_seconds: f64,
    lower: f64,
}

/// Writes a problem where the script reads it: rows y_i x_i of two labels, inputs and labels of classes.
fn write(norm: &str, data: &Dataset, folder: &Path) -> anyhow::Result<()> {
    let mut rows = data.dense()?.into_owned();
    let labels = match &data.targets {
        Targets::Classes { labels, .. } => labels.clone(),
        Targets::Binary(signs) => {
            (0..rows.rows).for_each(|i| rows.row_mut(i).iter_mut().for_each(|x| *x *= signs[i]));
            Vec::new()
        }
        Targets::Values(_) => bail!("real targets have no margin"),
    };
    let spec = serde_json::json!({ "rows": rows.rows, "columns": rows.cols, "norm": norm, "labels": labels });
    std::fs::write(folder.join(format!("{norm}.json")), spec.to_string())?;
    write_numbers(folder, norm, &rows.data)
}

/// One measurement; nothing if this Python lacks the solver.
fn ask(peer: &mut Peer, norm: &str, solver: &str) -> anyhow::Result<Option<Answer>> {
    peer.send(format_args!("{norm} {solver}"))?;
    let answer = peer.receive()?;
    match answer["error"].as_str() {
        Some(error) if error.contains("ModuleNotFoundError") => {
            say(&format!("{solver}: {error}, left out"));
            Ok(None)
        }
        Some(error) => bail!("{solver} failed: {error}"),
        None => Ok(Some(serde_json::from_value(answer)?)),
    }
}
