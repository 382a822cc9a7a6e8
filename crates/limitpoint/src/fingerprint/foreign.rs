//! Optimisers that run elsewhere: the problems are handed out, and the paths that come back are read.

use super::battery::{Optima, PROBES, task_from};
use super::network::NetworkEvidence;
use super::pace::Pace;
use super::reading::{FIRST_LEVEL, ProbeRun, Reader, level};
use super::{Candidate, Fingerprint, FingerprintError, answer};
use crate::linalg::Matrix;

/// A linear problem for somebody else's optimiser: min over W of Σ exp(−yᵢ⟨W, Xᵢ⟩).
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignProbe {
    /// Its name.
    pub name: &'static str,
    /// yᵢXᵢ, one a row, so that margins are products with W.
    pub rows: Matrix,
    /// Rows and columns of W.
    pub shape: (usize, usize),
    /// Where runs begin.
    pub starts: Vec<Vec<f64>>,
}

/// A path on a problem.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignPath {
    /// The problem.
    pub probe: String,
    /// Which of its starts.
    pub start: u64,
    /// Steps made.
    pub steps: u64,
    /// Why it ended.
    pub reason: String,
    /// Steps and weights, at least at the levels that [`foreign_probes`] names and at the end.
    pub points: Vec<(u64, Vec<f64>)>,
}

/// The linear problems of the battery, with as many starts each, and the −log₁₀ L at which to take points.
///
/// ```
/// use limitpoint::fingerprint::foreign_probes;
/// let (probes, levels) = foreign_probes(2)?;
/// assert_eq!((probes.len(), probes[0].starts.len(), probes[0].rows.cols), (4, 2, 16));
/// assert!(levels[0] == 1.0 && levels.is_sorted());
/// # Ok::<(), limitpoint::fingerprint::FingerprintError>(())
/// ```
pub fn foreign_probes(starts: usize) -> Result<(Vec<ForeignProbe>, Vec<f64>), FingerprintError> {
    let mut probes = Vec::new();
    for probe in PROBES {
        let first = task_from(probe, "gradient", 0)?.training()?;
        let (data, layout) = (first.data().clone(), first.objective()?.layout().clone());
        let mut rows = data.dense().map_err(crate::Error::from).map_err(Box::new)?.into_owned();
        for (i, y) in data.signs()?.iter().enumerate() {
            rows.row_mut(i).iter_mut().for_each(|x| *x *= y);
        }
        let starts = (0..starts as u64)
            .map(|start| Ok(task_from(probe, "gradient", start)?.training()?.setup().initial(&layout)))
            .collect::<Result<Vec<_>, FingerprintError>>()?;
        let block = &layout.blocks()[0];
        probes.push(ForeignProbe { name: probe.name, rows, shape: (block.rows, block.cols), starts });
    }
    Ok((probes, (0..).map(level).take_while(|depth| *depth <= 1000.0).collect()))
}

/// The fingerprint that paths on the linear problems show; of every problem at least one path is needed.
pub fn read_paths(name: &str, paths: &[ForeignPath]) -> Result<Fingerprint, FingerprintError> {
    let geometries = Candidate::usual();
    let mut runs = Vec::new();
    for probe in PROBES {
        let optima = Optima::of(probe, &geometries)?;
        for path in paths.iter().filter(|path| path.probe == probe.name) {
            let training = task_from(probe, "gradient", path.start)?.training()?;
            let layout = training.objective()?.layout().clone();
            let mut reader = Reader::new(&training, &geometries, &optima)?;
            let mut readings = Vec::new();
            for (steps, params) in &path.points {
                layout.check(params).map_err(|error| Box::new(crate::Error::from(error)))?;
                readings.push(reader.read(params, None, *steps));
            }
            let log10_loss = readings.last().map_or(f64::NAN, |reading| reading.log10_loss);
            if log10_loss.is_nan() || log10_loss > -FIRST_LEVEL {
                return Err(FingerprintError::NotFitted {
                    text: name.to_owned(),
                    probe: probe.name.to_owned(),
                    log10_loss,
                    steps: path.steps,
                    reason: path.reason.clone(),
                });
            }
            let end = (path.steps, path.reason.clone());
            runs.push(ProbeRun::new(probe, &optima, path.start, end, readings));
        }
    }
    let (phases, course) = answer::phases(&geometries, &runs);
    let answer = answer::sentence(name, &geometries, &phases);
    let trouble = Some("an optimiser that runs elsewhere is followed on the linear problems".to_owned());
    let network = NetworkEvidence { trouble, ..NetworkEvidence::default() };
    let convolution = network.clone();
    let (optimiser, pace) = (name.to_owned(), Pace { stages: Vec::new() });
    Ok(Fingerprint { optimiser, geometries, pace, runs, phases, course, network, convolution, answer })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gradient descent on ln L, written here, is found out from its path alone.
    #[test]
    fn a_path_from_outside_shows_its_geometry() {
        let (probes, levels) = foreign_probes(1).unwrap();
        let mut paths = Vec::new();
        for probe in &probes {
            let (mut w, mut points, mut next, mut steps) = (probe.starts[0].clone(), Vec::new(), 0, 0);
            while next < levels.len() && levels[next] <= 200.0 {
                let margins: Vec<f64> =
                    (0..probe.rows.rows).map(|i| crate::linalg::dot(probe.rows.row(i), &w)).collect();
                let least = margins.iter().copied().fold(f64::INFINITY, f64::min);
                let weights: Vec<f64> = margins.iter().map(|q| (least - q).exp()).collect();
                let total: f64 = weights.iter().sum();
                if (least - total.ln()) / std::f64::consts::LN_10 >= levels[next] {
                    points.push((steps, w.clone()));
                    next += 1;
                }
                for (i, weight) in weights.iter().enumerate() {
                    crate::linalg::add_scaled(&mut w, 0.5 * weight / total, probe.rows.row(i));
                }
                steps += 1;
            }
            let (probe, reason) = (probe.name.to_owned(), "deep enough".to_owned());
            paths.push(ForeignPath { probe, start: 0, steps, reason, points });
        }
        let found = read_paths("mine", &paths).unwrap();
        assert_eq!(found.late().and_then(|phase| phase.geometry.as_deref()), Some("l2"), "{}", found.answer);
        paths[0].points.clear();
        assert!(matches!(read_paths("mine", &paths), Err(FingerprintError::NotFitted { .. })));
    }
}
