//! Logarithmic barriers of norm balls: what keeps a point strictly inside ‖v‖ ≤ 1.
//!
//! The ball of any norm is a set of cells, each with a barrier φ of the values of a few affine functions:
//!
//! ```text
//! s ≥ 0                      φ = −ln s                                                               degree 1
//! ‖x‖₂ ≤ t                   φ = −ln(t² − ‖x‖₂²)                                                     degree 2
//! |x| ≤ a^(1/p) t^(1−1/p)    φ = −ln(a^(2/p) t^(2−2/p) − x²) − (1 − 1/p) ln a − (1/p) ln t           degree 3
//! S ⪰ 0                      φ = −ln det S                                                           degree of S
//! ```
//!
//! All are self-concordant (Nesterov and Nemirovskii 1994; Chares 2009, section 3.1, for the third). ‖x‖_p ≤ t is a
//! cell of the third kind for every entry, with Σa ≤ t.

use std::ops::Range;

use super::ball::Part;
use super::dense::{add_outer, inverse_factor, place, square, triangle};
use super::program::{Affine, Cone, Program};
use crate::linalg::{Matrix, matmul, matmul_nt, matmul_tn, norm2};

/// A part of the ball, by the rows of the program it constrains.
enum Cell {
    Nonnegative(Range<usize>),
    SecondOrder(Range<usize>),
    /// 1/p and the rows a, t, x.
    Power(f64, [usize; 3]),
    Semidefinite(usize, Range<usize>),
}

/// The barrier of the unit ball of a norm, in columns of which the first are v.
pub(super) struct Barrier {
    program: Program,
    cells: Vec<Cell>,
    /// A point well inside, with v = 0.
    pub start: Vec<f64>,
}

impl Barrier {
    /// The unit ball in `size` trainable entries.
    pub fn new(ball: &Part, size: usize) -> Self {
        let mut program = Program::default();
        let columns: Vec<usize> = program.columns(size).collect();
        ball.require(&mut program, &columns, &Affine::constant(1.0));
        let mut start = vec![0.0; size];
        ball.push_inside(1.0, &mut start);
        let mut cells = Vec::new();
        for (cone, rows) in std::mem::take(&mut program.sections) {
            match cone {
                // balls have no equations
                Cone::Zero => {}
                Cone::Nonnegative => cells.push(Cell::Nonnegative(rows)),
                Cone::SecondOrder => cells.push(Cell::SecondOrder(rows)),
                Cone::Semidefinite(size) => cells.push(Cell::Semidefinite(size, rows)),
                Cone::Power(p) => {
                    let parts = program.columns(rows.len() - 1);
                    let share = program.rows[rows.start].at(&start) / rows.len() as f64;
                    start.resize(parts.end, share);
                    for (part, x) in parts.clone().zip(rows.start + 1..) {
                        program.rows.push(Affine::term(part, 1.0));
                        cells.push(Cell::Power(p.recip(), [program.rows.len() - 1, rows.start, x]));
                    }
                    let rest = parts.fold(program.rows[rows.start].clone(), |rest, part| rest.plus(part, -1.0));
                    program.rows.push(rest);
                    cells.push(Cell::Nonnegative(program.rows.len() - 1..program.rows.len()));
                }
            }
        }
        Self { program, cells, start }
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.start.len()
    }

    /// The values of all affine functions at y, if y lies strictly inside.
    pub fn values(&self, y: &[f64]) -> Option<Vec<f64>> {
        let values: Vec<f64> = self.program.rows.iter().map(|row| row.at(y)).collect();
        let inside = |cell: &Cell| match cell {
            Cell::Nonnegative(rows) => values[rows.clone()].iter().all(|s| *s > 0.0),
            Cell::SecondOrder(rows) => values[rows.start] > norm2(&values[rows.start + 1..rows.end]),
            Cell::Power(share, rows) => {
                let [a, t, x] = rows.map(|row| values[row]);
                a > 0.0 && t > 0.0 && a.powf(*share) * t.powf(1.0 - share) > x.abs()
            }
            Cell::Semidefinite(size, rows) => inverse_factor(&square(&values[rows.clone()], *size)).is_some(),
        };
        self.cells.iter().all(inside).then_some(values)
    }

    /// out += weight · ∇φ.
    pub fn add_gradient(&self, values: &[f64], weight: f64, out: &mut [f64]) {
        for cell in &self.cells {
            match cell {
                Cell::Nonnegative(rows) => {
                    let slopes: Vec<f64> = values[rows.clone()].iter().map(|s| -weight / s).collect();
                    self.program.pull(rows.clone(), &slopes, out);
                }
                Cell::SecondOrder(rows) => {
                    let (slopes, rest) = second_order(&values[rows.clone()]);
                    let slopes: Vec<f64> = slopes.iter().map(|u| -2.0 * weight * u / rest).collect();
                    self.program.pull(rows.clone(), &slopes, out);
                }
                Cell::Power(share, rows) => {
                    let (slopes, _) = power(*share, rows.map(|row| values[row]));
                    for (row, slope) in rows.iter().zip(slopes) {
                        self.program.pull(*row..row + 1, &[weight * slope], out);
                    }
                }
                Cell::Semidefinite(size, rows) => {
                    let Some(factor) = inverse_factor(&square(&values[rows.clone()], *size)) else { continue };
                    let mut inverse = Matrix::zeros(*size, *size);
                    matmul_tn(&mut inverse.data, &factor.data, &factor.data, *size, *size, *size);
                    let slopes: Vec<f64> = triangle(&inverse).iter().map(|x| -weight * x).collect();
                    self.program.pull(rows.clone(), &slopes, out);
                }
            }
        }
    }

    /// matrix += weight · ∇²φ.
    pub fn add_curvature(&self, values: &[f64], weight: f64, matrix: &mut Matrix) {
        let mut single = Vec::new();
        for cell in &self.cells {
            match cell {
                Cell::Nonnegative(rows) => single.extend(rows.clone().map(|row| (row, weight / values[row].powi(2)))),
                Cell::SecondOrder(rows) => {
                    let (slopes, rest) = second_order(&values[rows.clone()]);
                    let mut gradient = vec![0.0; self.width()];
                    self.program.pull(rows.clone(), &slopes, &mut gradient);
                    add_outer(matrix, 4.0 * weight / (rest * rest), &gradient);
                    single.push((rows.start, -2.0 * weight / rest));
                    single.extend((rows.start + 1..rows.end).map(|row| (row, 2.0 * weight / rest)));
                }
                Cell::Power(share, rows) => {
                    let (_, curvature) = power(*share, rows.map(|row| values[row]));
                    for (row, curvature) in rows.iter().zip(curvature) {
                        for (other, bend) in rows.iter().zip(curvature) {
                            for (i, a) in &self.program.rows[*row].terms {
                                let terms = &self.program.rows[*other].terms;
                                terms.iter().for_each(|(j, b)| matrix[(*i, *j)] += weight * bend * a * b);
                            }
                        }
                    }
                }
                Cell::Semidefinite(size, rows) => {
                    let Some(factor) = inverse_factor(&square(&values[rows.clone()], *size)) else { continue };
                    self.semidefinite(&factor, rows, weight, matrix);
                }
            }
        }
        self.program.add_gram(&single, matrix);
    }

    /// Adds weight · ⟨L⁻¹A_cL⁻ᵀ, L⁻¹A_dL⁻ᵀ⟩ for all columns c, d, where A_d is the matrix that column d multiplies.
    fn semidefinite(&self, factor: &Matrix, rows: &Range<usize>, weight: f64, matrix: &mut Matrix) {
        let (size, width) = (factor.rows, self.width());
        let mut columns = vec![vec![0.0; place(0, size)]; width];
        for (at, row) in self.program.rows[rows.clone()].iter().enumerate() {
            row.terms.iter().for_each(|(column, x)| columns[*column][at] += x);
        }
        let mut images = Matrix::zeros(width, size * size);
        let mut half = vec![0.0; size * size];
        for (d, column) in columns.iter().enumerate().filter(|(_, column)| column.iter().any(|x| *x != 0.0)) {
            matmul(&mut half, &factor.data, &square(column, size).data, size, size, size);
            matmul_nt(images.row_mut(d), &half, &factor.data, size, size, size);
        }
        let mut products = vec![0.0; width * width];
        matmul_nt(&mut products, &images.data, &images.data, width, size * size, width);
        matrix.data.iter_mut().zip(&products).for_each(|(out, x)| *out += weight * x);
    }
}

/// u = (t, −x) and t² − ‖x‖².
fn second_order(values: &[f64]) -> (Vec<f64>, f64) {
    let rest = norm2(&values[1..]);
    let slopes = std::iter::once(values[0]).chain(values[1..].iter().map(|x| -x)).collect();
    (slopes, (values[0] - rest) * (values[0] + rest))
}

/// ∇φ and ∇²φ of a power cell with exponent `share` = 1/p.
fn power(share: f64, [a, t, x]: [f64; 3]) -> ([f64; 3], [[f64; 3]; 3]) {
    let root = a.powf(share) * t.powf(1.0 - share);
    let (square, rest) = (root * root, (root - x.abs()) * (root + x.abs()));
    let (up, down) = (2.0 * share, 2.0 - 2.0 * share);
    // first and second derivatives of a^(2/p) t^(2−2/p) − x²
    let first = [up * square / a, down * square / t, -2.0 * x];
    let mixed = up * down * square / (a * t);
    let second = [
        [up * (up - 1.0) * square / (a * a), mixed, 0.0],
        [mixed, down * (down - 1.0) * square / (t * t), 0.0],
        [0.0, 0.0, -2.0],
    ];
    let own = [(1.0 - share, a), (share, t), (0.0, 1.0)];
    let slope = |i: usize| -first[i] / rest - own[i].0 / own[i].1;
    let bend = |i: usize, j: usize| {
        let diagonal = if i == j { own[i].0 / own[i].1.powi(2) } else { 0.0 };
        first[i] / rest * (first[j] / rest) - second[i][j] / rest + diagonal
    };
    ([0, 1, 2].map(slope), [0, 1, 2].map(|i| [0, 1, 2].map(|j| bend(i, j))))
}

impl Part {
    /// Appends values of the columns that [`Part::require`] adds which, with v = 0, lie well inside ‖v‖ ≤ bound.
    fn push_inside(&self, bound: f64, out: &mut Vec<f64>) {
        match self {
            Self::AbsoluteSum(entries) => out.resize(out.len() + entries.len(), bound / (1.0 + entries.len() as f64)),
            Self::Nuclear(shape) => {
                let each = bound / (shape.rows + shape.cols) as f64;
                for size in [shape.rows, shape.cols] {
                    let first = out.len();
                    out.resize(first + place(0, size), 0.0);
                    (0..size).for_each(|i| out[first + place(i, i)] = each);
                }
            }
            Self::Max(parts) => parts.iter().for_each(|(c, part)| part.push_inside(bound / c, out)),
            Self::Sum(parts) | Self::Root(parts) => {
                let size = |c: &f64| bound / (c * (1.0 + parts.len() as f64));
                out.extend(parts.iter().map(|(c, _)| size(c)));
                parts.iter().for_each(|(c, part)| part.push_inside(size(c), out));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::dot;
    use crate::norms::{BlockNorm, NormSpec};
    use crate::numeric::Streams;
    use crate::params::ParamLayout;

    /// ∇φ against differences of nothing but itself: ∇²φ times a small step.
    #[test]
    fn gradients_and_curvatures_belong_together() {
        let layout = ParamLayout::new([("a", 2, 3), ("b", 1, 2)]).unwrap();
        let sum = vec![BlockNorm::new("a", NormSpec::L1).weighted(2.0), BlockNorm::new("b", NormSpec::Lp { p: 3.0 })];
        let norms = [
            NormSpec::L1,
            NormSpec::L2,
            NormSpec::Linf,
            NormSpec::Lp { p: 1.5 },
            NormSpec::Lp { p: 4.0 },
            NormSpec::Spectral,
            NormSpec::Nuclear,
            NormSpec::GroupL21,
            NormSpec::Root { blocks: sum.clone() },
            NormSpec::Sum { blocks: sum },
        ];
        for norm in norms {
            let barrier = Barrier::new(&Part::of(&norm, &layout).unwrap(), 8);
            let mut stream = Streams::new(7).stream("barrier");
            let n = barrier.width();
            let y: Vec<f64> = barrier.start.iter().map(|y| y + 0.004 * stream.uniform_in(-1.0, 1.0)).collect();
            let d: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
            let gradient = |step: f64| {
                let at: Vec<f64> = y.iter().zip(&d).map(|(y, d)| y + step * d).collect();
                let mut out = vec![0.0; n];
                barrier.add_gradient(&barrier.values(&at).unwrap(), 1.0, &mut out);
                out
            };
            let mut matrix = Matrix::zeros(n, n);
            barrier.add_curvature(&barrier.values(&y).unwrap(), 1.0, &mut matrix);
            let (up, down, size) = (gradient(1e-6), gradient(-1e-6), norm2(&matrix.data));
            for i in 0..n {
                let error = (up[i] - down[i]) / 2e-6 - dot(matrix.row(i), &d);
                assert!(error.abs() <= 1e-6 * size, "{norm}: row {i} is off by {error:e} of {size:e}");
            }
            assert!(barrier.values(&vec![2.0; n]).is_none(), "{norm}");
        }
    }
}
