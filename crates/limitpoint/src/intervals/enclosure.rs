//! Norms and dual norms of vectors of intervals, with proven bounds.
//!
//! The definitions are those of [`crate::norms`]; only the arithmetic differs. What a norm is made of:
//!
//! ```text
//! Σ|xᵢ|, max|xᵢ|, √Σxᵢ²     sums to twice the working precision, correctly rounded roots
//! (Σ|xᵢ|ᵖ)^(1/p)            with q = p/(p − 1) and 1/p as intervals; see `Interval::powf`
//! √(xᵀDx), √(xᵀD⁻¹x)        D⁻¹x is replaced by any y near it: xᵀD⁻¹x = 2yᵀx − yᵀDy + e, 0 ≤ e ≤ ‖x − Dy‖₂²/λ_min(D)
//! σ₁, Σσₖ                   see `spectrum`
//! maxₗ cₗ‖Wₗ‖, Σₗ cₗ‖Wₗ‖, √Σₗ(cₗ‖Wₗ‖)²    block by block
//! ```

use super::interval::{Interval, enclosed_dot, enclosed_sum};
use super::spectrum::Spectrum;
use crate::linalg::Eigen;
use crate::norms::{Canonical, NormError, NormPart, NormSpec, PlainNorm, Rule};
use crate::params::ParamLayout;

/// Which of a norm and its dual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Primal,
    Dual,
}

/// An enclosure of ‖v‖.
///
/// ```
/// use limitpoint::intervals::{Interval, enclosed_norm};
/// use limitpoint::norms::NormSpec;
/// use limitpoint::params::ParamLayout;
/// let v = [1.0, 1.0].map(Interval::point);
/// let norm = enclosed_norm(&NormSpec::L2, &ParamLayout::vector(2), &v)?;
/// assert!(norm.square().contains(2.0) && norm.width() < 1e-15);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub fn enclosed_norm(norm: &NormSpec, layout: &ParamLayout, v: &[Interval]) -> Result<Interval, NormError> {
    measure(norm, layout, v, Side::Primal)
}

/// An enclosure of ‖g‖_*.
pub fn enclosed_dual_norm(norm: &NormSpec, layout: &ParamLayout, g: &[Interval]) -> Result<Interval, NormError> {
    measure(norm, layout, g, Side::Dual)
}

fn measure(norm: &NormSpec, layout: &ParamLayout, v: &[Interval], side: Side) -> Result<Interval, NormError> {
    let Canonical { rule, parts } = norm.canonical(layout)?;
    let one = |part: &NormPart| {
        let size = plain(part, &part.gather(v), side)?;
        let weight = Interval::point(part.weight);
        Ok(match side {
            _ if part.weight == 1.0 => size,
            Side::Primal => weight * size,
            Side::Dual => size / weight,
        })
    };
    let sizes = parts.iter().map(one).collect::<Result<Vec<_>, NormError>>()?;
    Ok(match (rule, side) {
        _ if sizes.len() == 1 => sizes[0],
        (Rule::Root, _) => length(&sizes),
        (Rule::Max, Side::Primal) | (Rule::Sum, Side::Dual) => largest(&sizes),
        (Rule::Max, Side::Dual) | (Rule::Sum, Side::Primal) => enclosed_sum(sizes),
    })
}

/// The norm or the dual norm of one part, without its weight.
fn plain(part: &NormPart, v: &[Interval], side: Side) -> Result<Interval, NormError> {
    use PlainNorm::{GroupL2Inf, GroupL21, L1, L2, Linf, Lp, Nuclear, Quadratic, QuadraticDense, Spectral};
    use Side::{Dual, Primal};
    let NormPart { rows, cols, .. } = *part;
    Ok(match (&part.norm, side) {
        (L1, Primal) | (Linf, Dual) => sum_of_magnitudes(v),
        (L1, Dual) | (Linf, Primal) => largest(v),
        (L2, Primal | Dual) => length(v),
        (Lp(p), Primal) => power_norm(v, Interval::point(*p)),
        (Lp(p), Dual) => power_norm(v, Interval::point(*p) / (Interval::point(*p) - Interval::point(1.0))),
        (Quadratic(diagonal), Primal) => {
            weighted_length(v.iter().zip(diagonal).map(|(x, d)| x.square() * Interval::point(*d)))
        }
        (Quadratic(diagonal), Dual) => {
            weighted_length(v.iter().zip(diagonal).map(|(x, d)| x.square() / Interval::point(*d)))
        }
        (QuadraticDense(matrix), Primal) => quadratic_form(&symmetric(matrix), v).sqrt(),
        (QuadraticDense(matrix), Dual) => inverse_quadratic_form(&symmetric(matrix), v)?.sqrt(),
        (Spectral, Primal) | (Nuclear, Dual) => Spectrum::singular(v, rows, cols)?.value(0).max(Interval::ZERO),
        (Spectral, Dual) | (Nuclear, Primal) => Spectrum::singular(v, rows, cols)?.sum(),
        (GroupL21, Primal) | (GroupL2Inf, Dual) => enclosed_sum(v.chunks_exact(cols).map(length)),
        (GroupL21, Dual) | (GroupL2Inf, Primal) => largest(&v.chunks_exact(cols).map(length).collect::<Vec<_>>()),
    })
}

/// Σ|xᵢ|.
fn sum_of_magnitudes(v: &[Interval]) -> Interval {
    enclosed_sum(v.iter().map(|x| x.abs()))
}

/// max|xᵢ|.
fn largest(v: &[Interval]) -> Interval {
    v.iter().map(|x| x.abs()).fold(Interval::ZERO, Interval::max)
}

/// A power of two, exact, that brings the largest entry near 1; 1 unless squares could overflow or vanish.
fn scale(v: &[Interval]) -> Interval {
    let most = largest(v).hi;
    if most == 0.0 || !most.is_finite() || (1e-120..1e120).contains(&most) {
        return Interval::point(1.0);
    }
    Interval::point(2f64.powi((-most.log2().floor()).clamp(-1000.0, 1000.0) as i32))
}

/// √Σxᵢ².
fn length(v: &[Interval]) -> Interval {
    let scale = scale(v);
    enclosed_sum(v.iter().map(|x| (*x * scale).square())).sqrt() / scale
}

/// √Σtᵢ of terms that are not negative.
fn weighted_length(terms: impl Iterator<Item = Interval>) -> Interval {
    enclosed_sum(terms).sqrt()
}

/// (Σ|xᵢ|ᵖ)^(1/p), entries divided by a power of two near the largest.
fn power_norm(v: &[Interval], p: Interval) -> Interval {
    let most = largest(v).hi;
    if most == 0.0 || !most.is_finite() {
        return Interval::new(0.0, most);
    }
    let scale = Interval::point(2f64.powi((-most.log2().floor()).clamp(-1000.0, 1000.0) as i32));
    let sum = enclosed_sum(v.iter().map(|x| (x.abs() * scale).powf(p)));
    sum.powf(Interval::point(1.0) / p) / scale
}

/// The matrix whose lower triangle is given, which is what the norm reads.
fn symmetric(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let size = matrix.len();
    (0..size).map(|i| (0..size).map(|j| matrix[i.max(j)][i.min(j)]).collect()).collect()
}

/// xᵀDx.
fn quadratic_form(matrix: &[Vec<f64>], v: &[Interval]) -> Interval {
    let image = matrix.iter().map(|row| enclosed_sum(row.iter().zip(v).map(|(d, x)| Interval::point(*d) * *x)));
    enclosed_sum(image.zip(v).map(|(y, x)| y * *x)).max(Interval::ZERO)
}

/// xᵀD⁻¹x = 2yᵀx − yᵀDy + (x − Dy)ᵀD⁻¹(x − Dy), for a y near D⁻¹x.
fn inverse_quadratic_form(matrix: &[Vec<f64>], v: &[Interval]) -> Result<Interval, NormError> {
    let size = v.len();
    let flat = matrix.concat();
    let points: Vec<Interval> = flat.iter().map(|x| Interval::point(*x)).collect();
    let least = Spectrum::symmetric(&points, size)?.smallest();
    if least.lo <= 0.0 {
        return Ok(Interval::new(0.0, f64::INFINITY));
    }
    let mut eigen = Eigen::new(size);
    eigen.factor(&flat)?;
    let mut y = vec![0.0; size];
    for k in 0..size {
        let vector = eigen.vector(k);
        let product: f64 = vector.iter().zip(v).map(|(u, x)| u * (0.5 * x.lo + 0.5 * x.hi)).sum();
        crate::linalg::add_scaled(&mut y, product / eigen.values()[k], vector);
    }
    let image: Vec<Interval> = matrix.iter().map(|row| enclosed_dot(row, &y)).collect();
    let left_over: Vec<Interval> = v.iter().zip(&image).map(|(x, z)| *x - *z).collect();
    let rest = Interval::new(0.0, (length(&left_over).square() / least).hi);
    let linear = enclosed_sum(y.iter().zip(v).zip(&image).map(|((y, x), z)| {
        // 2yx − y(Dy), entry by entry
        Interval::point(*y) * (Interval::point(2.0) * *x - *z)
    }));
    Ok((linear + rest).max(Interval::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Streams;

    fn layouts() -> Vec<ParamLayout> {
        vec![
            ParamLayout::vector(7),
            ParamLayout::new([("w", 4, 3)]).unwrap(),
            ParamLayout::new([("w", 3, 4), ("f", 2, 2), ("a", 1, 3)]).unwrap().freeze(&["f"]).unwrap(),
        ]
    }

    fn points(v: &[f64]) -> Vec<Interval> {
        v.iter().map(|x| Interval::point(*x)).collect()
    }

    #[test]
    fn every_norm_of_the_library_is_enclosed_closely() {
        let mut stream = Streams::new(1).stream("enclosure");
        for layout in layouts() {
            for norm in NormSpec::examples(&layout) {
                let mut plain = norm.build(&layout).unwrap();
                for scale in [1e-3, 1.0, 1e5] {
                    let mut v = vec![0.0; layout.len()];
                    stream.fill_normal(&mut v);
                    v.iter_mut().for_each(|x| *x *= scale);
                    let pairs = [
                        (enclosed_norm(&norm, &layout, &points(&v)).unwrap(), plain.value(&v)),
                        (enclosed_dual_norm(&norm, &layout, &points(&v)).unwrap(), plain.dual(&v)),
                    ];
                    for (found, rounded) in pairs {
                        // the plain value is off by its own rounding only
                        assert!(found.width() <= 1e-13 * found.hi, "{norm}: {found:?}");
                        assert!((found.lo - rounded).abs() <= 3e-14 * rounded, "{norm}: {found:?} against {rounded}");
                    }
                }
            }
        }
    }

    #[test]
    fn norm_times_dual_norm_is_never_proven_below_the_product() {
        // ⟨g, v⟩ ≤ ‖g‖_*‖v‖ for every pair, so no proven upper bound may fall below a proven lower one; at the steepest
        // direction the two agree, and rounding alone decides
        let mut stream = Streams::new(2).stream("duality");
        for layout in layouts() {
            for norm in NormSpec::examples(&layout) {
                let mut plain = norm.build(&layout).unwrap();
                for _ in 0..4 {
                    let (mut g, mut d) = (vec![0.0; layout.len()], vec![0.0; layout.len()]);
                    stream.fill_normal(&mut g);
                    plain.unit_minimiser(&g, &mut d);
                    let product = -enclosed_dot(&g, &d);
                    let bound = enclosed_norm(&norm, &layout, &points(&d)).unwrap()
                        * enclosed_dual_norm(&norm, &layout, &points(&g)).unwrap();
                    assert!(product.lo <= bound.hi, "{norm}: {product:?} {bound:?}");
                    assert!((bound.hi - product.lo) <= 1e-12 * bound.hi, "{norm}: {product:?} {bound:?}");
                }
            }
        }
    }

    #[test]
    fn intervals_widen_the_answer_by_no_less_than_their_own_width() {
        let layout = ParamLayout::new([("w", 2, 2)]).unwrap();
        let v = [1.0, -2.0, 0.5, 0.0];
        let wide: Vec<Interval> = v.iter().map(|x| Interval::new(x - 1e-3, x + 1e-3)).collect();
        for norm in NormSpec::examples(&layout) {
            let mut plain = norm.build(&layout).unwrap();
            let found = enclosed_dual_norm(&norm, &layout, &wide).unwrap();
            for corner in 0..16 {
                let at: Vec<f64> =
                    v.iter().enumerate().map(|(i, x)| x + if corner >> i & 1 == 1 { 1e-3 } else { -1e-3 }).collect();
                let value = plain.dual(&at);
                assert!(found.lo <= value * (1.0 + 1e-14) && value * (1.0 - 1e-14) <= found.hi, "{norm}");
            }
        }
    }

    #[test]
    fn extreme_scales_neither_overflow_nor_vanish() {
        let layout = ParamLayout::vector(2);
        for (x, norm) in [(3e-200, NormSpec::L2), (3e200, NormSpec::L2), (3e-200, NormSpec::Lp { p: 3.0 })] {
            let found = enclosed_norm(&norm, &layout, &points(&[x, -x])).unwrap();
            assert!(found.lo > x && found.width() < 1e-14 * found.lo, "{norm}: {found:?}");
        }
        assert_eq!(enclosed_norm(&NormSpec::Lp { p: 3.0 }, &layout, &points(&[0.0, 0.0])).unwrap(), Interval::ZERO);
        assert!(enclosed_norm(&NormSpec::Lp { p: 0.5 }, &layout, &points(&[1.0, 1.0])).is_err());
    }

    #[test]
    fn a_thousand_entries_stay_within_one_part_in_ten_to_thirteen() {
        let layout = ParamLayout::vector(1000);
        let mut v = vec![0.0; 1000];
        Streams::new(3).stream("wide").fill_normal(&mut v);
        let diagonal = (0..1000).map(|i| 0.5 + f64::from(i % 7)).collect();
        for norm in
            [NormSpec::L1, NormSpec::L2, NormSpec::Linf, NormSpec::Lp { p: 1.5 }, NormSpec::Quadratic { diagonal }]
        {
            for found in [enclosed_norm(&norm, &layout, &points(&v)), enclosed_dual_norm(&norm, &layout, &points(&v))] {
                let found = found.unwrap();
                assert!(found.width() <= 1e-13 * found.lo, "{norm}: {}", found.width() / found.lo);
            }
        }
    }
}
