//! From cell to cell: convex problems whose solutions never make a two-layer ReLU network worse.
//!
//! A kink of neuron j at example i enters q_i with the sign of a_j y_i. Where that is negative, −max(0, z) is concave
//! and stays in the convex problem as it is. Where it is positive, max(0, z) ≥ e z for every e ∈ [0, 1]; with e the
//! slope at the present point the line touches, so the present point is feasible, and whatever solves the problem has
//! true margins at least as large (the convex–concave procedure, also called DCA; Tao and An 1997). For ℓ1 the size Σ
//! 2√‖u_j‖₁ is concave in ‖u_j‖₁ and is replaced by its tangent, which makes costs c_j = ‖u_j‖₁^{−1/2}.
//!
//! A neuron may cross any kink it likes, the optimum of the convex problem decides which. There are finitely many
//! slopes, and with ℓ1 finitely many vertices, so the procedure ends: at a point that solves its own convex problem.
//! The optimality conditions of that problem, with slopes e of the convex kinks and multipliers of the concave ones,
//! are those of a KKT point in the sense of Clarke.

use super::cell::{CellProgram, CellSolution};
use super::shallow::{Ball, Neurons, Shallow};
use crate::linalg::Matrix;

/// Where the procedure ended: neurons of one problem, its data, and its multipliers.
pub(super) struct Settled<'a> {
    /// The neurons that are alive.
    pub neurons: Neurons,
    /// The last problem, which `solution` solves.
    pub program: CellProgram<'a>,
    pub solution: CellSolution,
    pub rounds: usize,
    pub iterations: usize,
    /// Whether the last problem's solution has the slopes that the problem was made with.
    pub settled: bool,
    /// Whether it could not be solved well enough to be of use.
    pub refused: bool,
}

/// Products below this times the largest are dead.
const DEAD: f64 = 1e-6;

/// The gap to which problems are solved in the end; rounding stops earlier.
const EXACT: f64 = 1e-13;

/// A gain below this makes a network worse, which only a problem that was not solved does: it would come out the same
/// again.
const WORSE: f64 = -1e-6;

/// Repeats the convex problem until it returns what it was made from.
pub(super) fn majorise<'a>(shallow: &'a Shallow, start: &Neurons, ball: Ball, rounds: usize) -> Settled<'a> {
    let mut neurons = start.clone();
    let mut products = neurons.products(1);
    let (mut iterations, mut tolerance) = (0, 1e-2);
    let (mut round, mut last) = (0, None);
    loop {
        round += 1;
        let program = problem(shallow, &neurons, &products, ball);
        let before = value(shallow, &neurons, &products, ball);
        let solution = program.solve(&products, tolerance);
        iterations += solution.iterations;
        let sizes: Vec<f64> = (0..neurons.len()).map(|j| ball.value(solution.products.row(j))).collect();
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        let keep: Vec<bool> = sizes.iter().map(|size| *size > DEAD * largest).collect();
        let after = value(shallow, &neurons, &solution.products, ball);
        let settled = keep.iter().all(|keep| *keep) && same_slopes(shallow, &program, &solution.products, &neurons);
        let gain = 1.0 - after / before;
        // a problem that could not be solved better cannot tell smaller gains from none
        let noise = if solution.gap < 1e-7 { solution.gap.max(1e-10) } else { 1e-10 };
        let still = gain.abs() < noise || (settled && gain.abs() < 1e-7 && ball != Ball::Diamond);
        let refused = gain <= WORSE && tolerance == EXACT;
        let end = round >= rounds || refused || (settled && still && tolerance == EXACT);
        let own = Settled { neurons: neurons.clone(), program, solution, rounds: round, iterations, settled, refused };
        if end {
            return match last {
                Some(last) if gain <= WORSE => Settled { rounds: round, iterations, settled, refused, ..last },
                _ => own,
            };
        }
        // rough solutions first, exact ones as soon as there is little left to gain
        tolerance = if gain < 1e-5 || settled { EXACT } else { tolerance.min(0.1 * gain) };
        if gain > WORSE {
            products = pick(&own.solution.products, &keep);
            neurons = neurons.retain(&keep);
            last = Some(own);
        }
    }
}

fn pick(products: &Matrix, keep: &[bool]) -> Matrix {
    let data: Vec<f64> = (0..products.rows).filter(|&j| keep[j]).flat_map(|j| products.row(j).to_vec()).collect();
    Matrix { rows: data.len() / products.cols, cols: products.cols, data }
}

/// The convex problem that touches the margins at `products`.
fn problem<'a>(shallow: &'a Shallow, neurons: &Neurons, products: &Matrix, ball: Ball) -> CellProgram<'a> {
    let (left, right) = shallow.activation.kink().unwrap_or((1.0, 1.0));
    let z = shallow.preactivations(products);
    let m = neurons.len();
    let (mut slopes, mut jumps) = (vec![0.0; z.len()], vec![0.0; z.len()]);
    for (k, z) in z.iter().enumerate() {
        let factor = shallow.signs[k / m] * neurons.signs[k % m];
        let convex = factor > 0.0;
        slopes[k] = factor * if convex && *z > 0.0 { right } else { left };
        jumps[k] = if convex { 0.0 } else { -factor * (right - left) };
    }
    let cost = |j: usize| if ball == Ball::Diamond { ball.value(products.row(j)).sqrt().recip() } else { 1.0 };
    CellProgram { inputs: &shallow.inputs, slopes, jumps, ball, costs: (0..m).map(cost).collect() }
}

/// ‖θ‖² at smallest margin 1, up to a factor of the norm; infinite if a margin is not positive.
pub(super) fn value(shallow: &Shallow, neurons: &Neurons, products: &Matrix, ball: Ball) -> f64 {
    let ones = vec![1.0; neurons.len()];
    let margins = shallow.margins(&neurons.signs, &ones, products);
    let smallest = margins.into_iter().fold(f64::INFINITY, f64::min);
    let rows = (0..neurons.len()).map(|j| ball.value(products.row(j)));
    let size = match ball {
        Ball::Round => rows.sum::<f64>(),
        Ball::Cube => rows.fold(0.0, f64::max),
        Ball::Diamond => rows.map(f64::sqrt).sum::<f64>().powi(2),
    };
    if smallest > 0.0 { size / smallest } else { f64::INFINITY }
}

/// Whether the convex kinks of `products` have the slopes of the problem, up to kinks that are within rounding of 0.
fn same_slopes(shallow: &Shallow, program: &CellProgram, products: &Matrix, neurons: &Neurons) -> bool {
    let Some((left, right)) = shallow.activation.kink() else { return true };
    let m = neurons.len();
    let z = shallow.preactivations(products);
    (0..z.len()).all(|k| {
        let factor = shallow.signs[k / m] * neurons.signs[k % m];
        let touching =
            crate::linalg::norm2(products.row(k % m)) * crate::linalg::norm2(shallow.inputs.row(k / m)) * 1e-7;
        let slope = factor * if z[k] > 0.0 { right } else { left };
        factor < 0.0 || z[k].abs() <= touching || slope == program.slopes[k]
    })
}
