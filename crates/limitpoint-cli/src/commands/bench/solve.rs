//! `limitpoint bench solve`: the judge against other people's solvers, on the same problems in the same minutes.
//!
//! A problem has 500 points in 200 dimensions. cvxpy with Clarabel is timed from the first variable to the solution, as
//! its user waits for it, and its solver's own time is shown beside; scikit-learn's SVC(C = 1e10) solves the ℓ2 problem
//! with every point mirrored through the origin, since libsvm always fits an intercept, and its time on as many points
//! as the problem has, intercept included, is shown beside. Gaps are proven ones, from each solver's own answer.

use std::path::Path;
use std::time::Instant;

use anyhow::bail;
use limitpoint::linalg::{Matrix, add_scaled, dot, norm2};
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::params::ParamLayout;
use limitpoint::reference::{MarginProblem, solve_margin};
use serde::{Deserialize, Serialize};

use super::median;
use super::peer::{Peer, write_numbers};
use crate::args::Bench;
use crate::commands::say;

/// Points and dimensions of the problems.
const SIZE: (usize, usize) = (500, 200);

/// One problem and everyone's answers.
#[derive(Debug, Serialize)]
pub struct Line {
    norm: String,
    rows: usize,
    columns: usize,
    /// Median over the rounds.
    milliseconds: f64,
    /// (upper − lower)/upper.
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
    /// Relative gap of its margin to ours.
    gap: f64,
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
    let data = points(SIZE.0, SIZE.1);
    let mut lines = Vec::new();
    for norm in [NormSpec::L2, NormSpec::L1, NormSpec::Linf] {
        let problem = MarginProblem::new(data.clone(), norm.clone(), ParamLayout::vector(SIZE.1))?;
        let solvers: &[&'static str] = if norm == NormSpec::L2 { &["cvxpy", "svc"] } else { &["cvxpy"] };
        if peer.is_some() {
            write(&norm.key(), &data, folder)?;
        }
        let mut bracket = solve_margin(&problem)?.bracket;
        let (mut own, mut theirs) = (Vec::new(), vec![Vec::new(); solvers.len()]);
        for _ in 0..bench.rounds {
            let begin = Instant::now();
            bracket = solve_margin(&problem)?.bracket;
            own.push(begin.elapsed().as_secs_f64());
            for (solver, answers) in solvers.iter().zip(&mut theirs) {
                if let Some(answer) = peer.as_mut().map(|peer| ask(peer, &norm.key(), solver)).transpose()?.flatten() {
                    answers.push(answer);
                }
            }
        }
        let seconds = median(own);
        let peers = solvers.iter().zip(&theirs).filter(|(_, answers)| !answers.is_empty()).map(|(solver, answers)| {
            let typical = |of: fn(&Answer) -> f64| median(answers.iter().map(of).collect());
            PeerLine {
                solver,
                milliseconds: 1e3 * typical(|a| a.seconds),
                inner_milliseconds: 1e3 * typical(|a| a.solver_seconds),
                ratio: typical(|a| a.seconds) / seconds,
                gap: 1.0 - typical(|a| a.lower) / bracket.upper,
            }
        });
        lines.push(Line {
            norm: norm.key(),
            rows: SIZE.0,
            columns: SIZE.1,
            milliseconds: 1e3 * seconds,
            gap: bracket.relative_gap(),
            margin: bracket.lower,
            peers: peers.collect(),
        });
    }
    Ok(lines)
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
    let mut out = String::from("exact max margin          limitpoint      gap   margin\n");
    for line in lines {
        let problem = format!("{}, {} x {}", line.norm, line.rows, line.columns);
        out += &format!(
            "{problem:<22} {:>10.1} ms  {:>7.0e}   {:.12}\n",
            line.milliseconds,
            line.gap.max(0.0),
            line.margin
        );
        for peer in &line.peers {
            let (name, inner) = match peer.solver {
                "cvxpy" => ("cvxpy + Clarabel", "its solver alone"),
                _ => ("SVC(C=1e10), mirrored", "with intercept"),
            };
            out += &format!(
                "  {name:<22} {:>8.1} ms  {:>7.0e}   limitpoint is {:.1}x as fast ({inner} {:.1} ms)\n",
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

/// Writes a problem where the script reads it.
fn write(norm: &str, rows: &Matrix, folder: &Path) -> anyhow::Result<()> {
    let spec = serde_json::json!({ "rows": rows.rows, "columns": rows.cols, "norm": norm });
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
