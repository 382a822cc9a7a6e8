//! Whether K(X) = x̃ − C F(x̃) + (I − C F′(X))(X − x̃) lies inside the box X, in plain intervals.

use super::super::{Check, Refusal};
use crate::intervals::{Interval, enclosed_sum};

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
    let ends = Ends::of(jacobian);
    for (i, row) in inverse.chunks_exact(size).enumerate() {
        let step = enclosed_sum(row.iter().zip(residual).map(|(c, f)| Interval::point(*c) * *f));
        // |Σ_k E_ik (x_k − x̃_k)| ≤ Σ_k |E_ik| r_k
        let errors = ends.distances(i, row);
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

/// The lower ends, upper ends and largest sizes of the entries of a square matrix.
struct Ends {
    low: Vec<f64>,
    high: Vec<f64>,
    size: Vec<f64>,
}

impl Ends {
    fn of(matrix: &[Interval]) -> Self {
        let low = matrix.iter().map(|x| x.lo).collect();
        let high = matrix.iter().map(|x| x.hi).collect();
        Self { low, high, size: matrix.iter().map(|x| x.magnitude()).collect() }
    }

    /// Upper bounds of the entries of row i of |I − C J|, from row i of C.
    ///
    /// The ends are added up in plain doubles; with n products and n + 1 sums the result is off by at most γ Σ|c||j|,
    /// γ = (n + 2)u/(1 − (n + 2)u), u = 2⁻⁵³, and that bound itself by a factor of 1 + γ.
    fn distances(&self, i: usize, row: &[f64]) -> Vec<f64> {
        let n = row.len();
        let (mut low, mut high, mut size) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        (low[i], high[i], size[i]) = (1.0, 1.0, 1.0);
        for (k, &c) in row.iter().enumerate().filter(|(_, c)| **c != 0.0) {
            let line = k * n..(k + 1) * n;
            let (least, most) = if c > 0.0 { (&self.low, &self.high) } else { (&self.high, &self.low) };
            low.iter_mut().zip(&most[line.clone()]).for_each(|(sum, j)| *sum -= c * j);
            high.iter_mut().zip(&least[line.clone()]).for_each(|(sum, j)| *sum -= c * j);
            size.iter_mut().zip(&self.size[line]).for_each(|(sum, j)| *sum += c.abs() * j);
        }
        let unit = (n + 4) as f64 * f64::EPSILON;
        let bound = |k: usize| {
            // twice what is allowed for above, and what vanishes below the smallest double
            let bound = low[k].abs().max(high[k].abs()) * (1.0 + unit) + unit * size[k] * (1.0 + unit) + 1e-290;
            if bound.is_nan() { f64::INFINITY } else { bound }
        };
        (0..n).map(bound).collect()
    }
}

/// The largest half width of an unknown relative to its size; those below a millionth of the largest count as that.
pub(super) fn relative_radius(z: &[Interval]) -> f64 {
    let largest = z.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.magnitude()));
    z.iter().map(|x| 0.5 * x.width() / x.magnitude().max(1e-6 * largest)).fold(0.0, f64::max)
}
