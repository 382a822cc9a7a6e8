//! The update of Shampoo (A eqs 76 and 77).

use crate::arithmetic::distance;
use crate::{ClaimError, Lab, Outcome};
use limitpoint::linalg::{Svd, matmul, matmul_nt, matmul_tn, symmetric_function};
use limitpoint::numeric::{LogScaled, Streams};
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::params::ParamLayout;
use limitpoint::schedules::StepContext;

/// Compares three ways to the update: powers of L and R, the singular value decomposition, and the optimiser.
pub(super) fn update_rule(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut stream = Streams::new(1).stream("shampoo");
    let (height, width) = lab.choose((24, 40), (128, 200));
    for (words, rows, cols, rank) in [
        ("full rank, square", height, height, height),
        ("full rank, tall", width, height, height),
        ("full rank, wide", height, width, height),
        ("lacking rank", height, width, height / 3),
        ("rank one", width, height, 1),
    ] {
        let (mut left, mut right) = (vec![0.0; rows * rank], vec![0.0; rank * cols]);
        stream.fill_normal(&mut left);
        stream.fill_normal(&mut right);
        let mut g = vec![0.0; rows * cols];
        if rank == rows.min(cols) {
            stream.fill_normal(&mut g);
        } else {
            matmul(&mut g, &left, &right, rows, rank, cols);
        }
        let mut svd = Svd::new(rows, cols);
        svd.factor(&g)?;
        let mut polar = vec![0.0; g.len()];
        svd.recompose(|k, _| if k < rank { 1.0 } else { 0.0 }, &mut polar);
        let powers = by_powers(&g, rows, cols, rank)?;
        outcome
            .at_most(format!("{words}: L^−¼GR^−¼ and UVᵀ, largest distance"), distance(&powers, &polar), 1e-8)
            .by_theory();
        // small gradients are no harder than large ones, and the first step with memory has none to remember
        for (form, accumulate, log_scale) in [
            ("without memory", false, 0.0),
            ("without memory, G times e^−2000", false, -2000.0),
            ("first step", true, 0.0),
        ] {
            let update = step(&g, rows, cols, accumulate, log_scale)?;
            outcome
                .at_most(format!("{words}: Shampoo {form}, distance to UVᵀ"), distance(&update, &polar), 1e-8)
                .by_theory();
            svd.factor(&update)?;
            outcome.near(format!("{words}: Shampoo {form}, spectral norm"), svd.values()[0], 1.0, 1e-8).by_theory();
        }
    }
    outcome.note("Powers are those of the pseudo-inverse: directions outside the range of G do not move.");
    Ok(outcome)
}

/// L^−¼ G R^−¼ with pseudo-inverse powers of L = GGᵀ and R = GᵀG.
fn by_powers(g: &[f64], rows: usize, cols: usize, rank: usize) -> Result<Vec<f64>, ClaimError> {
    let (mut l, mut r) = (vec![0.0; rows * rows], vec![0.0; cols * cols]);
    matmul_nt(&mut l, g, g, rows, cols, rows);
    matmul_tn(&mut r, g, g, cols, rows, cols);
    let power = |a: &[f64], size: usize| {
        let mut values = Vec::new();
        let mut eigen = limitpoint::linalg::Eigen::new(size);
        eigen.factor(a)?;
        values.extend_from_slice(eigen.values());
        // of ascending eigenvalues the last `rank` are not rounding
        let floor = if rank < size { (values[size - rank] * values[size - rank - 1].abs()).sqrt() } else { 0.0 };
        symmetric_function(a, size, |value| if value > floor { value.powf(-0.25) } else { 0.0 })
    };
    let (left, right) = (power(&l, rows)?, power(&r, cols)?);
    let (mut half, mut update) = (vec![0.0; rows * cols], vec![0.0; rows * cols]);
    matmul(&mut half, &left, g, rows, rows, cols);
    matmul(&mut update, &half, &right, rows, cols, cols);
    Ok(update)
}

/// What Shampoo subtracts from weights 0 in a first step of size 1 along e^`log_scale` G.
fn step(g: &[f64], rows: usize, cols: usize, accumulate: bool, log_scale: f64) -> Result<Vec<f64>, ClaimError> {
    let layout = ParamLayout::new([("w", rows, cols)])?;
    let mut shampoo = OptimiserSpec::Shampoo { accumulate, epsilon: 0.0, power: 0.25 }.build(&layout)?;
    let gradient = LogScaled { log_scale, direction: g.to_vec() };
    let context = StepContext { step: 0, epoch: 0, log_loss: 0.0, all_correct: false };
    let mut params = vec![0.0; g.len()];
    shampoo.step(&mut params, &gradient, &context, 0.0)?;
    Ok(params.into_iter().map(|x| -x).collect())
}
