//! Whether K(X) = x̃ − C F(x̃) + (I − C F′(X))(X − x̃) lies inside the box X, in plain intervals.

use super::super::{Check, Refusal};
use crate::intervals::{Interval, enclosed_sum};
use crate::linalg::add_scaled;

/// Rows of a matrix that are used together.
const BLOCK: usize = 32;

/// x ± r, rounded outwards.
pub(super) fn boxed(midpoint: &[f64], radius: &[f64]) -> Vec<Interval> {
    let one = |(x, r): (&f64, &f64)| Interval::point(*x) + Interval::new(-r, *r);
    midpoint.iter().zip(radius).map(one).collect()
}

/// K(X), if it lies in the interior of X; the unknown that keeps it from that otherwise.
///
/// `residual` encloses F(x̃), `jacobian` F′(X), row by row.
pub(super) fn image(
    midpoint: &[f64],
    radius: &[f64],
    inverse: &[f64],
    residual: &[Interval],
    jacobian: &[Interval],
) -> Result<Vec<Interval>, (usize, Refusal)> {
    let size = midpoint.len();
    let shape = || (0, Refusal::new(Check::Shape, "the equations are not as many as the unknowns"));
    if residual.len() != size || jacobian.len() != size * size {
        return Err(shape());
    }
    let mut found = Vec::with_capacity(size);
    let errors = distances(inverse, jacobian, size);
    for (i, row) in inverse.chunks_exact(size).enumerate() {
        let step = enclosed_sum(row.iter().zip(residual).map(|(c, f)| Interval::point(*c) * *f));
        // |Σ_k E_ik (x_k − x̃_k)| ≤ Σ_k |E_ik| r_k
        let errors = &errors[i * size..(i + 1) * size];
        let spread = enclosed_sum(errors.iter().zip(radius).map(|(e, r)| Interval::point(*e) * Interval::point(*r))).hi;
        let centre = Interval::point(midpoint[i]) - step;
        let image = centre + Interval::new(-spread, spread);
        // inside of x̃ ± r: what is left of r on either side must be positive
        let (low, high) = (image - Interval::point(midpoint[i]), Interval::point(radius[i]));
        if !(low.lo > -high.lo && low.hi < high.lo) {
            let why = format!("a half width of {:.1e} is mapped to one of {:.1e}", radius[i], low.magnitude());
            return Err((i, Refusal::new(Check::Inclusion, why)));
        }
        found.push(image);
    }
    Ok(found)
}

/// Upper bounds of the entries of |I − C J| for all J of an interval matrix, row by row.
///
/// With J = M ± R, |I − C J| ≤ |I − C M| + |C| R. Both products are plain ones of doubles: whatever the order of their n products and
/// sums, fused or not, each entry is off by at most γ Σ |c||m|, γ = nu/(1 − nu), u = 2⁻⁵³ (Higham, *Accuracy and Stability of Numerical
/// Algorithms*, section 3.5). Twice γ is allowed for, inside of the second product, whose own rounding is a factor of 1 + γ.
fn distances(inverse: &[f64], jacobian: &[Interval], size: usize) -> Vec<f64> {
    let unit = (size + 8) as f64 * f64::EPSILON;
    let (mut middle, mut reach) = (Vec::with_capacity(size * size), Vec::with_capacity(size * size));
    for x in jacobian {
        let m = 0.5 * x.lo + 0.5 * x.hi;
        // the half width, rounded up, and what the first product may be off by
        let half = (x.hi - m).max(m - x.lo).next_up();
        middle.push(m);
        reach.push((half + unit * m.abs()) * (1.0 + unit));
    }
    let sizes: Vec<f64> = inverse.iter().map(|c| c.abs()).collect();
    let (mut centre, mut spread) = (vec![0.0; size * size], vec![0.0; size * size]);
    // a block of rows of J stays in the cache while all rows of C pass; the same bits on every machine
    for block in (0..size).step_by(BLOCK) {
        for i in 0..size {
            let (own, wide) = (&mut centre[i * size..(i + 1) * size], &mut spread[i * size..(i + 1) * size]);
            for k in block..(block + BLOCK).min(size) {
                let row = k * size..(k + 1) * size;
                add_scaled(own, inverse[i * size + k], &middle[row.clone()]);
                add_scaled(wide, sizes[i * size + k], &reach[row]);
            }
        }
    }
    let bound = |at: usize| {
        let one = if at / size == at % size { 1.0 } else { 0.0 };
        // and what vanishes below the smallest double
        let bound = ((one - centre[at]).abs() + spread[at]) * (1.0 + unit) + 1e-290;
        if bound.is_nan() { f64::INFINITY } else { bound }
    };
    (0..size * size).map(bound).collect()
}

/// The largest half width of an unknown relative to its size; those below a millionth of the largest count as that.
pub(super) fn relative_radius(z: &[Interval]) -> f64 {
    let largest = z.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.magnitude()));
    z.iter().map(|x| 0.5 * x.width() / x.magnitude().max(1e-6 * largest)).fold(0.0, f64::max)
}
