//! Linear models on sparse inputs.

use std::ops::Range;
use std::sync::Arc;

use crate::engine::{Bound, Evaluator, Tangents};
use crate::linalg::{Matrix, SharedSlice, SparseMatrix, Team};
use crate::models::Architecture;
use crate::params::At;

/// Passes over fewer entries than this are done before a second thread has started.
const PARALLEL_FROM: usize = 30_000;

/// Outputs that are summed at once.
const LANES: usize = 8;

/// Φ(x) = W x on inputs of which few are not zero, W of `outputs` rows; the parameters are those of the dense linear
/// model.
///
/// ```text
/// scores     Φ_c(xₙ) = Σ_{k: xₙₖ ≠ 0} W_ck xₙₖ            over the rows of X
/// pull back  G_ck    = Σ_{n: xₙₖ ≠ 0} cotangent_nc xₙₖ     over the columns of X, from a transposed copy
/// ```
///
/// Each sum is taken by one thread in a fixed order, so that the bits do not depend on the number of threads. Both
/// passes cost the entries that are not zero times `outputs`. The transposed copy is made when all examples are
/// pulled back for the first time. A batch of examples is scattered row by row instead, by one thread: its entries,
/// and one pass over G. Computes in doubles, whatever the precision asked for.
///
/// ```
/// use limitpoint::data::Inputs;
/// use limitpoint::engine::{Compute, Forward, cpu};
/// use limitpoint::linalg::SparseMatrix;
/// use limitpoint::models::ModelSpec;
/// let inputs = Inputs::from(SparseMatrix::from_triplets(2, 3, &[(0, 2, 4.0), (1, 0, 1.0), (1, 2, -1.0)])?);
/// let mut model = cpu::bind(&ModelSpec::Linear, &inputs, 1, Compute::default())?;
/// let pass = model.forward(&[1.0, 2.0, 3.0]);
/// assert_eq!(pass.scores(), [12.0, -2.0]);
/// let mut gradient = [0.0; 3];
/// pass.pull_back(&[1.0, 2.0, 3.0], &[0.5, 1.0], &mut gradient);
/// assert_eq!(gradient, [1.0, 0.0, 1.0]);
/// # Ok::<(), limitpoint::Error>(())
/// ```
pub struct SparseLinear {
    bound: Bound,
    inputs: Arc<SparseMatrix>,
    /// The inputs transposed, once they are needed.
    features: Option<SparseMatrix>,
    batch: Option<Vec<usize>>,
    team: Team,
}

impl SparseLinear {
    pub(super) fn new(architecture: &Architecture, inputs: &Arc<SparseMatrix>, threads: usize) -> Self {
        Self {
            bound: Bound::new(architecture, inputs.rows()),
            inputs: Arc::clone(inputs),
            features: None,
            batch: None,
            team: Team::new(threads),
        }
    }

    /// The row of the inputs that example `n` of the batch is.
    fn row(&self, n: usize) -> usize {
        self.batch.as_ref().map_or(n, |batch| batch[n])
    }
}

/// Calls `work` with `share(worker, workers)` of every worker, or with all there is if the pass is not worth a team.
fn spread(
    team: &Team,
    cost: usize,
    share: impl Fn(usize, usize) -> Range<usize> + Sync,
    work: impl Fn(Range<usize>) + Sync,
) {
    if cost < PARALLEL_FROM || team.threads() == 1 {
        work(share(0, 1));
    } else {
        team.run(|worker| work(share(worker, team.threads())));
    }
}

/// out[c] = Σ x · entry(k, c) over the entries x of the row, k their columns, for up to `LANES` numbers c.
#[inline(always)]
fn combine(row: (&[u32], &[f64]), out: &mut [f64], entry: impl Fn(usize, usize) -> f64) {
    let mut sums = [0.0; LANES];
    let sums = &mut sums[..out.len()];
    for (&k, x) in row.0.iter().zip(row.1) {
        sums.iter_mut().enumerate().for_each(|(c, sum)| *sum += x * entry(k as usize, c));
    }
    out.copy_from_slice(sums);
}

impl Evaluator for SparseLinear {
    fn bound(&self) -> &Bound {
        &self.bound
    }

    fn select(&mut self, rows: Option<&[usize]>) {
        let mut batch = self.batch.take().unwrap_or_default();
        batch.clear();
        self.batch = rows.map(|rows| {
            batch.extend_from_slice(rows);
            batch
        });
        self.bound.resize(rows.map_or(self.inputs.rows(), <[usize]>::len));
    }

    fn score(&mut self, at: At<'_>) {
        let (params, outputs, d) = (at.entries(), self.bound.outputs, self.inputs.cols());
        let (inputs, batch, count) = (&*self.inputs, self.batch.as_deref(), self.bound.examples);
        let scores = SharedSlice::new(&mut self.bound.scores);
        let cost = inputs.stored() * count / inputs.rows() * outputs;
        let share = |part, parts| match batch {
            None => inputs.share(part, parts),
            Some(_) => count * part / parts..count * (part + 1) / parts,
        };
        spread(&self.team, cost, share, |examples| {
            // SAFETY: the shares of the workers are disjoint, and `scores` outlives the call.
            let out = unsafe { scores.part(examples.start * outputs..examples.end * outputs) };
            for (n, out) in examples.zip(out.chunks_exact_mut(outputs)) {
                let row = batch.map_or(n, |batch| batch[n]);
                if outputs == 1 {
                    out[0] = inputs.row_dot(row, params);
                    continue;
                }
                for (number, out) in out.chunks_mut(LANES).enumerate() {
                    combine(inputs.row(row), out, |k, c| params[(number * LANES + c) * d + k]);
                }
            }
        });
    }

    fn pull_back(&mut self, _: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        let (outputs, d) = (self.bound.outputs, self.inputs.cols());
        if let Some(batch) = &self.batch {
            gradient.fill(0.0);
            for (&row, cotangent) in batch.iter().zip(cotangent.chunks_exact(outputs)) {
                for (c, gradient) in cotangent.iter().zip(gradient.chunks_exact_mut(d)) {
                    self.inputs.add_row(row, *c, gradient);
                }
            }
            return;
        }
        let features = self.features.get_or_insert_with(|| self.inputs.transpose());
        let shared = SharedSlice::new(gradient);
        let share = |part, parts| features.share(part, parts);
        spread(&self.team, (features.stored() + d) * outputs, share, |columns| {
            for c in (0..outputs).step_by(LANES) {
                let lanes = LANES.min(outputs - c);
                for k in columns.clone() {
                    if outputs == 1 {
                        // SAFETY: the workers' columns are disjoint, and `gradient` outlives the call.
                        unsafe { shared.part(k..k + 1)[0] = features.row_dot(k, cotangent) };
                        continue;
                    }
                    let mut sums = [0.0; LANES];
                    combine(features.row(k), &mut sums[..lanes], |n, lane| cotangent[n * outputs + c + lane]);
                    for (lane, sum) in sums[..lanes].iter().enumerate() {
                        let at = (c + lane) * d + k;
                        // SAFETY: as above.
                        unsafe { shared.part(at..at + 1)[0] = *sum };
                    }
                }
            }
        });
    }

    fn tangents(&mut self) -> Option<&mut dyn Tangents> {
        Some(self)
    }
}

impl Tangents for SparseLinear {
    fn per_example_gradients(&mut self, _: &[f64], output: usize) -> Matrix {
        let (count, d) = (self.bound.examples, self.inputs.cols());
        let mut out = Matrix::zeros(count, self.bound.layout.len());
        for n in 0..count {
            self.inputs.add_row(self.row(n), 1.0, &mut out.row_mut(n)[output * d..(output + 1) * d]);
        }
        out
    }

    fn gradient_gram(&mut self, _: &[f64]) -> Matrix {
        // ⟨∇Φ_c(xₙ), ∇Φ_e(xₘ)⟩ = ⟨xₙ, xₘ⟩ where c = e, and 0 otherwise
        let (count, outputs) = (self.bound.examples, self.bound.outputs);
        let mut gram = Matrix::zeros(count * outputs, count * outputs);
        for n in 0..count {
            for m in 0..=n {
                let product = self.inputs.rows_dot(self.row(n), self.row(m));
                for c in 0..outputs {
                    gram[(n * outputs + c, m * outputs + c)] = product;
                    gram[(m * outputs + c, n * outputs + c)] = product;
                }
            }
        }
        gram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Compute, Forward, Precision, cpu};
    use crate::linalg::max_abs;
    use crate::models::{ModelError, ModelSpec, Shape};
    use crate::numeric::{RandomStream, Streams};

    fn random(rows: usize, cols: usize, stored: usize, stream: &mut RandomStream) -> Arc<SparseMatrix> {
        let mut dense = Matrix::zeros(rows, cols);
        (0..stored).for_each(|_| dense[(stream.below(rows), stream.below(cols))] = stream.normal());
        Arc::new(SparseMatrix::from_dense(&dense).unwrap())
    }

    fn sparse(inputs: &Arc<SparseMatrix>, outputs: usize, threads: usize) -> SparseLinear {
        let linear = ModelSpec::Linear.architecture(&Shape::vector(inputs.cols()), outputs).unwrap();
        SparseLinear::new(&linear, inputs, threads)
    }

    fn normals(count: usize, stream: &mut RandomStream) -> Vec<f64> {
        (0..count).map(|_| stream.normal()).collect()
    }

    fn close(a: &[f64], b: &[f64]) -> bool {
        let tolerance = 1e-12 * (1.0 + max_abs(b));
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() <= tolerance)
    }

    #[test]
    fn it_is_the_dense_linear_model() {
        let mut stream = Streams::new(5).stream("sparse");
        for (rows, cols, stored) in [(1, 1, 1), (7, 40, 30), (30, 9, 100), (12, 200, 3)] {
            for outputs in [1, 3, 8, 11] {
                let inputs = random(rows, cols, stored, &mut stream);
                let mut sparse = sparse(&inputs, outputs, 1);
                let mut dense = cpu::bind(&ModelSpec::Linear, inputs.to_dense(), outputs, Compute::default()).unwrap();
                assert_eq!(sparse.layout(), dense.layout());
                assert_eq!((sparse.homogeneity(), sparse.outputs()), (dense.homogeneity(), dense.outputs()));
                let theta = normals(outputs * cols, &mut stream);
                let batch = normals(2 * rows, &mut stream).iter().map(|x| (x.abs() * 1e6) as usize % rows).collect();
                for batch in [None, Some(batch), Some(vec![rows - 1]), None] {
                    let batch: Option<Vec<usize>> = batch;
                    sparse.select(batch.as_deref());
                    dense.select(batch.as_deref());
                    assert_eq!(sparse.examples(), dense.examples());
                    assert!(close(sparse.scores(&theta), dense.scores(&theta)), "{rows}x{cols}, {outputs}");
                    let cotangent = normals(sparse.examples() * outputs, &mut stream);
                    let (mut found, mut expected) = (vec![f64::NAN; theta.len()], vec![f64::NAN; theta.len()]);
                    sparse.resume().pull_back(&theta, &cotangent, &mut found);
                    dense.resume().pull_back(&theta, &cotangent, &mut expected);
                    assert!(close(&found, &expected), "{rows}x{cols}, {outputs}, {batch:?}");
                    for c in 0..outputs {
                        let expected = dense.per_example_gradients(&theta, c);
                        assert_eq!(sparse.per_example_gradients(&theta, c), expected);
                    }
                    assert!(close(&sparse.gradient_gram(&theta).data, &dense.gradient_gram(&theta).data));
                }
            }
        }
    }

    #[test]
    fn the_bits_do_not_depend_on_the_number_of_threads() {
        let mut stream = Streams::new(6).stream("sparse");
        let inputs = random(600, 900, 60_000, &mut stream);
        for outputs in [1, 10] {
            let theta = normals(outputs * 900, &mut stream);
            let batch: Vec<usize> = (0..500).map(|_| stream.below(600)).collect();
            let cotangent = normals(outputs * 600, &mut stream);
            let mut results = [1, 2, 3].map(|threads| {
                let mut model = sparse(&inputs, outputs, threads);
                let mut all = Vec::new();
                for rows in [None, Some(&batch[..]), None] {
                    model.select(rows);
                    all.extend(model.scores(&theta).iter().map(|x| x.to_bits()));
                    let mut gradient = vec![f64::NAN; theta.len()];
                    let count = model.examples() * outputs;
                    model.resume().pull_back(&theta, &cotangent[..count], &mut gradient);
                    all.extend(gradient.iter().map(|x| x.to_bits()));
                }
                all
            });
            assert!(inputs.stored() * outputs > PARALLEL_FROM, "large enough to be shared out");
            results.rotate_left(1);
            assert!(results.iter().all(|bits| *bits == results[0]), "{outputs} outputs");
        }
    }

    #[test]
    fn other_models_say_that_they_need_dense_inputs() {
        let inputs = crate::data::Inputs::from(SparseMatrix::from_triplets(2, 3, &[(0, 1, 1.0)]).unwrap());
        for spec in [ModelSpec::relu(&[2]), ModelSpec::Diagonal { factors: 2 }] {
            let error = cpu::bind(&spec, &inputs, 1, Compute::default()).err().unwrap().to_string();
            assert!(error.contains("2x3") && error.contains("linear"), "{error}");
        }
        let single = Compute { threads: 2, precision: Precision::F32, ..Compute::default() };
        assert!(cpu::bind(&ModelSpec::Linear, &inputs, 1, single).is_ok());
        let empty = crate::data::Inputs::from(SparseMatrix::from_triplets(0, 3, &[]).unwrap());
        assert!(matches!(
            cpu::bind(&ModelSpec::Linear, &empty, 1, Compute::default()),
            Err(ModelError::EmptyInputs { rows: 0, cols: 3 })
        ));
    }
}
