//! One cone of a program on the central path: its point, its scaling, and how far it can go.

use std::ops::Range;

use super::dense::{inverse_factor, place, power_slack, square, triangle};
use super::program::Cone;
use crate::linalg::{Eigen, Scalar, Table};

/// One section with its present s, z and scaling.
pub(super) struct Section<T = f64> {
    pub cone: Cone,
    pub rows: Range<usize>,
    /// s; for a power section only the slack.
    pub s: Vec<T>,
    /// z; for a power section only the multiplier.
    pub z: Vec<T>,
    pub scaling: Scaling<T>,
}

/// H of the present point.
pub(super) enum Scaling<T = f64> {
    /// Not there: the zero cone.
    None,
    /// z/s.
    Diagonal(Vec<T>),
    /// β⁻² and u.
    Arrow(T, Vec<T>),
    /// Z, S⁻¹, and the inverses of the Cholesky factors of S and Z.
    Matrices(Box<[Table<T>; 4]>),
    /// t − ‖x‖_p: its slopes on the rows, and y/slack.
    Smooth { p: f64, slopes: Vec<T>, ratio: T },
}

impl<T: Scalar> Section<T> {
    /// What ⟨s, z⟩ is on the central path at μ = 1.
    pub fn degree(&self) -> f64 {
        match self.cone {
            Cone::Zero => 0.0,
            Cone::Nonnegative => self.rows.len() as f64,
            Cone::SecondOrder | Cone::Power(_) => 1.0,
            Cone::Semidefinite(size) => size as f64,
        }
    }

    /// v, moved along the unit of the cone until it is well inside.
    pub fn inside(&self, mut v: Vec<T>) -> Option<Vec<T>> {
        let (unit, smallest): (Vec<usize>, f64) = match self.cone {
            Cone::SecondOrder => (vec![0], (v[0] - T::norm2(&v[1..])).value()),
            Cone::Semidefinite(size) => {
                let smallest = smallest_eigenvalue(&square(&v, size))?;
                ((0..size).map(|i| place(i, i)).collect(), smallest)
            }
            _ => ((0..v.len()).collect(), v.iter().map(|x| x.value()).fold(f64::INFINITY, f64::min)),
        };
        if smallest < 1e-2 {
            unit.iter().for_each(|i| v[*i] += T::from(1.0 - smallest));
        }
        Some(v)
    }

    /// The weights of the rows that weights of s stand for: of a power section the slack's weight, times its slopes.
    pub fn spread(&self, values: &[T], w: &[T]) -> Vec<T> {
        match self.cone {
            Cone::Power(p) => power_slack(values, p).1.iter().map(|slope| *slope * w[0]).collect(),
            _ => w.to_vec(),
        }
    }

    /// The change of s that a change of the rows stands for.
    pub fn gather(&self, image: Vec<T>) -> Vec<T> {
        match &self.scaling {
            Scaling::Smooth { slopes, .. } => vec![T::dot(slopes, &image)],
            _ => image,
        }
    }

    /// s − (g + Gx).
    pub fn residual(&self, values: &[T]) -> Vec<T> {
        match self.cone {
            Cone::Power(p) => vec![self.s[0] - power_slack(values, p).0],
            _ => self.s.iter().zip(values).map(|(s, value)| *s - *value).collect(),
        }
    }

    /// Finds H.
    pub fn rescale(&mut self, values: &[T]) -> Option<()> {
        self.scaling = match self.cone {
            Cone::Zero => Scaling::None,
            Cone::Nonnegative => Scaling::Diagonal(self.s.iter().zip(&self.z).map(|(s, z)| *z / *s).collect()),
            Cone::Power(p) => Scaling::Smooth { p, slopes: power_slack(values, p).1, ratio: self.z[0] / self.s[0] },
            Cone::SecondOrder => {
                let length = |v: &[T]| {
                    let rest = T::norm2(&v[1..]);
                    ((v[0] - rest) * (v[0] + rest)).root()
                };
                let (a, b) = (length(&self.s), length(&self.z));
                if !(a > T::default() && b > T::default()) {
                    return None;
                }
                let product = T::dot(&self.s, &self.z) / (a * b);
                let gamma = (T::from(1.0) + product).times(0.5).root();
                // w̄ = (s̃ + J z̃)/2γ and u = J w̄
                let u = self.s.iter().zip(&self.z).enumerate().map(|(i, (s, z))| {
                    let sign = if i == 0 { 1.0 } else { -1.0 };
                    (*s / a + z.times(sign) / b).times(sign) / gamma.times(2.0)
                });
                Scaling::Arrow(b / a, u.collect())
            }
            Cone::Semidefinite(size) => {
                let (s, z) = (square(&self.s, size), square(&self.z, size));
                let (left, right) = (inverse_factor(&s)?, inverse_factor(&z)?);
                let mut inverse = Table::zeros(size, size);
                T::matmul(&mut inverse.data, &left.transpose().data, &left.data, size, size, size);
                Scaling::Matrices(Box::new([z, inverse, left, right]))
            }
        };
        Some(())
    }

    /// H v.
    pub fn apply(&self, v: &[T]) -> Vec<T> {
        match &self.scaling {
            Scaling::None => vec![T::default(); v.len()],
            Scaling::Diagonal(h) => h.iter().zip(v).map(|(h, v)| *h * *v).collect(),
            Scaling::Smooth { ratio, .. } => vec![*ratio * v[0]],
            Scaling::Arrow(size, u) => {
                let along = T::dot(u, v).times(2.0);
                let mut out: Vec<T> = u.iter().zip(v).map(|(u, v)| *size * (along * *u + *v)).collect();
                out[0] -= size.times(2.0) * v[0];
                out
            }
            Scaling::Matrices(parts) => sandwich(&parts[0], v, &parts[1]),
        }
    }

    /// σμ s⁻¹ minus the correction of an earlier step.
    pub fn aim(&self, target: T, earlier: Option<&(Vec<T>, Vec<T>)>) -> Vec<T> {
        match (&self.scaling, self.cone) {
            (Scaling::Matrices(parts), Cone::Semidefinite(size)) => {
                let mut out: Vec<T> = triangle(&parts[1]).iter().map(|x| target * *x).collect();
                if let Some((ds, dz)) = earlier {
                    let correction = sandwich(&square(dz, size), ds, &parts[1]);
                    out.iter_mut().zip(correction).for_each(|(out, x)| *out -= x);
                }
                out
            }
            (Scaling::Arrow(size, u), Cone::SecondOrder) => {
                let rest = T::norm2(&self.s[1..]);
                let length = (self.s[0] - rest) * (self.s[0] + rest);
                let mut out: Vec<T> = self.s.iter().map(|s| -target * *s / length).collect();
                out[0] = -out[0];
                if let Some((ds, dz)) = earlier {
                    let correction = arrow_correction(*size, u, (&self.z, ds, dz));
                    out.iter_mut().zip(correction).for_each(|(out, x)| *out -= x);
                }
                out
            }
            _ => {
                let mut out: Vec<T> = self.s.iter().map(|s| target / *s).collect();
                if let Some((ds, dz)) = earlier {
                    out.iter_mut()
                        .zip(ds.iter().zip(dz).zip(&self.s))
                        .for_each(|(out, ((ds, dz), s))| *out -= *ds * *dz / *s);
                }
                out
            }
        }
    }

    /// The largest steps ≤ `most` along ds and dz that stay in the cone; a step need not be known to all digits.
    pub fn room(&self, ds: &[T], dz: &[T], most: f64) -> Option<(f64, f64)> {
        Some(match (&self.scaling, self.cone) {
            (_, Cone::Zero) => (most, most),
            (Scaling::Matrices(parts), Cone::Semidefinite(size)) => {
                let room = |factor: &Table<T>, step: &[T]| {
                    let (mut half, mut full) = (vec![T::default(); size * size], Table::zeros(size, size));
                    T::matmul(&mut half, &factor.data, &square(step, size).data, size, size, size);
                    T::matmul(&mut full.data, &half, &factor.transpose().data, size, size, size);
                    let smallest = smallest_eigenvalue(&full)?;
                    Some(if smallest < 0.0 { (-smallest.recip()).min(most) } else { most })
                };
                (room(&parts[2], ds)?, room(&parts[3], dz)?)
            }
            (_, Cone::SecondOrder) => (arrow_room(&self.s, ds, most), arrow_room(&self.z, dz, most)),
            _ => {
                let room = |v: &[T], dv: &[T]| {
                    let falling = v.iter().zip(dv).filter(|(_, dv)| **dv < T::default());
                    falling.map(|(v, dv)| (-*v / *dv).value()).fold(most, f64::min)
                };
                (room(&self.s, ds), room(&self.z, dz))
            }
        })
    }
}

/// λ_min of a symmetric matrix, to the accuracy of doubles.
fn smallest_eigenvalue<T: Scalar>(matrix: &Table<T>) -> Option<f64> {
    let rounded: Vec<f64> = matrix.data.iter().map(|x| x.value()).collect();
    let mut eigen = Eigen::new(matrix.rows);
    eigen.factor(&rounded).ok()?;
    Some(eigen.values()[0])
}

/// W⁻¹q of a second-order cone with λ ∘ q = (W⁻¹ds) ∘ (W dz), where H = W⁻² and λ = Wz.
///
/// ```text
/// W = β(2 v vᵀ − J),   v = (w̄ + e)/√(2(w̄₀ + 1)),   u = J w̄,   H = β⁻²(2 u uᵀ − J)
/// ```
///
/// (Vandenberghe 2010, "The CVXOPT linear and quadratic cone program solvers".)
fn arrow_correction<T: Scalar>(size: T, u: &[T], (z, ds, dz): (&[T], &[T], &[T])) -> Vec<T> {
    let one = T::from(1.0);
    let beta = one / size.root();
    let root = (u[0] + one).times(2.0).root();
    // `sign` −1 turns w̄ into u, W/β into βW⁻¹
    let reflect = |x: &[T], sign: f64, factor: T| {
        let v = |i: usize| if i == 0 { (u[0] + one) / root } else { u[i].times(-sign) / root };
        let along = x.iter().enumerate().fold(T::default(), |sum, (i, x)| sum + v(i) * *x).times(2.0);
        let entry = |(i, x): (usize, &T)| factor * (along * v(i) + if i == 0 { -*x } else { *x });
        x.iter().enumerate().map(entry).collect::<Vec<T>>()
    };
    let (a, b, lambda) = (reflect(ds, -1.0, one / beta), reflect(dz, 1.0, beta), reflect(z, 1.0, beta));
    let first = T::dot(&a, &b);
    let rest: Vec<T> = a[1..].iter().zip(&b[1..]).map(|(x, y)| b[0] * *x + a[0] * *y).collect();
    let length = T::norm2(&lambda[1..]);
    let head = (lambda[0] * first - T::dot(&lambda[1..], &rest)) / ((lambda[0] - length) * (lambda[0] + length));
    let mut quotient = vec![head];
    quotient.extend(rest.iter().zip(&lambda[1..]).map(|(r, l)| (*r - head * *l) / lambda[0]));
    reflect(&quotient, -1.0, one / beta)
}

/// The largest α ≤ most with v + α dv in the second-order cone.
fn arrow_room<T: Scalar>(v: &[T], dv: &[T], most: f64) -> f64 {
    // a α² + 2 b α + c ≥ 0 with c > 0, and v₀ + α dv₀ ≥ 0
    let a = dv[0] * dv[0] - T::dot(&dv[1..], &dv[1..]);
    let b = v[0] * dv[0] - T::dot(&v[1..], &dv[1..]);
    let rest = T::norm2(&v[1..]);
    let c = (v[0] - rest) * (v[0] + rest);
    let mut room = if dv[0] < T::default() { (-v[0] / dv[0]).value().min(most) } else { most };
    let discriminant = b * b - a * c;
    if discriminant >= T::default() && (a < T::default() || b < T::default()) {
        // the smaller positive root, without cancellation
        let root = (c / (-b + discriminant.root())).value();
        if root > 0.0 {
            room = room.min(root);
        }
    }
    room
}

/// sym(A V B) as a scaled triangle.
fn sandwich<T: Scalar>(a: &Table<T>, v: &[T], b: &Table<T>) -> Vec<T> {
    let size = a.rows;
    let (mut half, mut full) = (vec![T::default(); size * size], Table::zeros(size, size));
    T::matmul(&mut half, &a.data, &square(v, size).data, size, size, size);
    T::matmul(&mut full.data, &half, &b.data, size, size, size);
    triangle(&full)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::dot;

    fn section(cone: Cone, s: &[f64], z: &[f64]) -> Section {
        let mut out = Section { cone, rows: 0..s.len(), s: s.to_vec(), z: z.to_vec(), scaling: Scaling::None };
        out.rescale(s).unwrap();
        out
    }

    fn examples() -> [Section; 3] {
        [
            section(Cone::Nonnegative, &[2.0, 0.5], &[0.1, 3.0]),
            section(Cone::SecondOrder, &[2.0, 1.0, -1.5], &[1.0, 0.3, 0.8]),
            // [2 1; 1 3] and [1 −0.5; −0.5 0.7] as scaled triangles
            section(Cone::Semidefinite(2), &[2.0, 2.0_f64.sqrt(), 3.0], &[1.0, -0.5 * 2.0_f64.sqrt(), 0.7]),
        ]
    }

    #[test]
    fn the_scaling_takes_s_to_z() {
        for section in examples() {
            let image = section.apply(&section.s);
            assert!(image.iter().zip(&section.z).all(|(a, b)| (a - b).abs() < 1e-14), "{:?}", section.cone);
        }
    }

    /// With ds = s and dz = z the products are λ ∘ λ, so the correction is z; and ⟨s⁻¹, s⟩ is the degree.
    #[test]
    fn the_aim_is_the_inverse_less_the_correction() {
        for section in examples() {
            let centre = section.aim(1.0, None);
            assert!((dot(&centre, &section.s) - section.degree()).abs() < 1e-13, "{:?}", section.cone);
            let both = section.aim(1.0, Some(&(section.s.clone(), section.z.clone())));
            let expected = centre.iter().zip(&section.z).map(|(c, z)| c - z);
            assert!(both.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-13), "{:?}", section.cone);
        }
    }

    #[test]
    fn steps_end_on_the_boundary() {
        for section in examples() {
            // straight to the apex and beyond: the boundary is where all of s is used up
            let back: Vec<f64> = section.s.iter().map(|s| -2.0 * s).collect();
            let (primal, dual) = section.room(&back, &section.z, 9.0).unwrap();
            assert!((primal - 0.5).abs() < 1e-12 && dual == 9.0, "{:?} {primal} {dual}", section.cone);
        }
        // (2, 0) + α(−1, 1) leaves the cone at α = 1
        assert!((arrow_room(&[2.0, 0.0], &[-1.0, 1.0], 9.0) - 1.0).abs() < 1e-15);
        assert_eq!(arrow_room(&[2.0, 0.0], &[1.0, 0.5], 9.0), 9.0);
    }

    #[test]
    fn a_start_outside_the_cone_is_moved_inside() {
        for section in examples() {
            let outside: Vec<f64> = section.s.iter().map(|s| -s).collect();
            let inside = section.inside(outside).unwrap();
            assert!(Section { s: inside, ..section }.rescale(&[]).is_some());
        }
    }
}
