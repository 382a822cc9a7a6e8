//! One cone of a program on the central path: its point, its scaling, and how far it can go.

use std::ops::Range;

use super::dense::{inverse_factor, place, power_slack, square, triangle};
use super::program::Cone;
use crate::linalg::{Eigen, Matrix, dot, matmul, matmul_nt, matmul_tn, norm2};

/// One section with its present s, z and scaling.
pub(super) struct Section {
    pub cone: Cone,
    pub rows: Range<usize>,
    /// s; for a power section only the slack.
    pub s: Vec<f64>,
    /// z; for a power section only the multiplier.
    pub z: Vec<f64>,
    pub scaling: Scaling,
}

/// H of the present point.
pub(super) enum Scaling {
    /// Not there: the zero cone.
    None,
    /// z/s.
    Diagonal(Vec<f64>),
    /// β⁻² and u.
    Arrow(f64, Vec<f64>),
    /// Z, S⁻¹, and the inverses of the Cholesky factors of S and Z.
    Matrices(Box<[Matrix; 4]>),
    /// t − ‖x‖_p: its slopes on the rows, and y/slack.
    Smooth { p: f64, slopes: Vec<f64>, ratio: f64 },
}

impl Section {
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
    pub fn inside(&self, mut v: Vec<f64>) -> Option<Vec<f64>> {
        let (unit, smallest): (Vec<usize>, f64) = match self.cone {
            Cone::SecondOrder => (vec![0], v[0] - norm2(&v[1..])),
            Cone::Semidefinite(size) => {
                let mut eigen = Eigen::new(size);
                eigen.factor(&square(&v, size).data).ok()?;
                ((0..size).map(|i| place(i, i)).collect(), eigen.values()[0])
            }
            _ => ((0..v.len()).collect(), v.iter().copied().fold(f64::INFINITY, f64::min)),
        };
        if smallest < 1e-2 {
            unit.iter().for_each(|i| v[*i] += 1.0 - smallest);
        }
        Some(v)
    }

    /// The weights of the rows that weights of s stand for: of a power section the slack's weight, times its slopes.
    pub fn spread(&self, values: &[f64], w: &[f64]) -> Vec<f64> {
        match self.cone {
            Cone::Power(p) => power_slack(values, p).1.iter().map(|slope| slope * w[0]).collect(),
            _ => w.to_vec(),
        }
    }

    /// The change of s that a change of the rows stands for.
    pub fn gather(&self, image: Vec<f64>) -> Vec<f64> {
        match &self.scaling {
            Scaling::Smooth { slopes, .. } => vec![dot(slopes, &image)],
            _ => image,
        }
    }

    /// s − (g + Gx).
    pub fn residual(&self, values: &[f64]) -> Vec<f64> {
        match self.cone {
            Cone::Power(p) => vec![self.s[0] - power_slack(values, p).0],
            _ => self.s.iter().zip(values).map(|(s, value)| s - value).collect(),
        }
    }

    /// Finds H.
    pub fn rescale(&mut self, values: &[f64]) -> Option<()> {
        self.scaling = match self.cone {
            Cone::Zero => Scaling::None,
            Cone::Nonnegative => Scaling::Diagonal(self.s.iter().zip(&self.z).map(|(s, z)| z / s).collect()),
            Cone::Power(p) => Scaling::Smooth { p, slopes: power_slack(values, p).1, ratio: self.z[0] / self.s[0] },
            Cone::SecondOrder => {
                let length = |v: &[f64]| {
                    let rest = norm2(&v[1..]);
                    ((v[0] - rest) * (v[0] + rest)).sqrt()
                };
                let (a, b) = (length(&self.s), length(&self.z));
                if !(a > 0.0 && b > 0.0) {
                    return None;
                }
                let product = dot(&self.s, &self.z) / (a * b);
                let gamma = (0.5 * (1.0 + product)).sqrt();
                // w̄ = (s̃ + J z̃)/2γ and u = J w̄
                let u = self.s.iter().zip(&self.z).enumerate().map(|(i, (s, z))| {
                    let sign = if i == 0 { 1.0 } else { -1.0 };
                    sign * (s / a + sign * z / b) / (2.0 * gamma)
                });
                Scaling::Arrow(b / a, u.collect())
            }
            Cone::Semidefinite(size) => {
                let (s, z) = (square(&self.s, size), square(&self.z, size));
                let (left, right) = (inverse_factor(&s)?, inverse_factor(&z)?);
                let mut inverse = Matrix::zeros(size, size);
                matmul_tn(&mut inverse.data, &left.data, &left.data, size, size, size);
                Scaling::Matrices(Box::new([z, inverse, left, right]))
            }
        };
        Some(())
    }

    /// H v.
    pub fn apply(&self, v: &[f64]) -> Vec<f64> {
        match &self.scaling {
            Scaling::None => vec![0.0; v.len()],
            Scaling::Diagonal(h) => h.iter().zip(v).map(|(h, v)| h * v).collect(),
            Scaling::Smooth { ratio, .. } => vec![ratio * v[0]],
            Scaling::Arrow(size, u) => {
                let along = 2.0 * dot(u, v);
                let mut out: Vec<f64> = u.iter().zip(v).map(|(u, v)| size * (along * u + v)).collect();
                out[0] -= 2.0 * size * v[0];
                out
            }
            Scaling::Matrices(parts) => sandwich(&parts[0], v, &parts[1]),
        }
    }

    /// σμ s⁻¹ minus the correction of an earlier step.
    pub fn aim(&self, target: f64, earlier: Option<&(Vec<f64>, Vec<f64>)>) -> Vec<f64> {
        match (&self.scaling, self.cone) {
            (Scaling::Matrices(parts), Cone::Semidefinite(size)) => {
                let mut out: Vec<f64> = triangle(&parts[1]).iter().map(|x| target * x).collect();
                if let Some((ds, dz)) = earlier {
                    let correction = sandwich(&square(dz, size), ds, &parts[1]);
                    out.iter_mut().zip(correction).for_each(|(out, x)| *out -= x);
                }
                out
            }
            (Scaling::Arrow(size, u), Cone::SecondOrder) => {
                let rest = norm2(&self.s[1..]);
                let length = (self.s[0] - rest) * (self.s[0] + rest);
                let mut out: Vec<f64> = self.s.iter().map(|s| -target * s / length).collect();
                out[0] = -out[0];
                if let Some((ds, dz)) = earlier {
                    let correction = arrow_correction(*size, u, (&self.z, ds, dz));
                    out.iter_mut().zip(correction).for_each(|(out, x)| *out -= x);
                }
                out
            }
            _ => {
                let mut out: Vec<f64> = self.s.iter().map(|s| target / s).collect();
                if let Some((ds, dz)) = earlier {
                    out.iter_mut()
                        .zip(ds.iter().zip(dz).zip(&self.s))
                        .for_each(|(out, ((ds, dz), s))| *out -= ds * dz / s);
                }
                out
            }
        }
    }

    /// The largest steps ≤ `most` along ds and dz that stay in the cone.
    pub fn room(&self, ds: &[f64], dz: &[f64], most: f64) -> Option<(f64, f64)> {
        Some(match (&self.scaling, self.cone) {
            (_, Cone::Zero) => (most, most),
            (Scaling::Matrices(parts), Cone::Semidefinite(size)) => {
                let room = |factor: &Matrix, step: &[f64]| {
                    let mut half = vec![0.0; size * size];
                    let mut full = vec![0.0; size * size];
                    matmul(&mut half, &factor.data, &square(step, size).data, size, size, size);
                    matmul_nt(&mut full, &half, &factor.data, size, size, size);
                    let mut eigen = Eigen::new(size);
                    eigen.factor(&full).ok()?;
                    let smallest = eigen.values()[0];
                    Some(if smallest < 0.0 { (-smallest.recip()).min(most) } else { most })
                };
                (room(&parts[2], ds)?, room(&parts[3], dz)?)
            }
            (_, Cone::SecondOrder) => (arrow_room(&self.s, ds, most), arrow_room(&self.z, dz, most)),
            _ => {
                let room = |v: &[f64], dv: &[f64]| {
                    v.iter().zip(dv).filter(|(_, dv)| **dv < 0.0).map(|(v, dv)| -v / dv).fold(most, f64::min)
                };
                (room(&self.s, ds), room(&self.z, dz))
            }
        })
    }
}

/// W⁻¹q of a second-order cone with λ ∘ q = (W⁻¹ds) ∘ (W dz), where H = W⁻² and λ = Wz.
///
/// ```text
/// W = β(2 v vᵀ − J),   v = (w̄ + e)/√(2(w̄₀ + 1)),   u = J w̄,   H = β⁻²(2 u uᵀ − J)
/// ```
///
/// (Vandenberghe 2010, "The CVXOPT linear and quadratic cone program solvers".)
fn arrow_correction(size: f64, u: &[f64], (z, ds, dz): (&[f64], &[f64], &[f64])) -> Vec<f64> {
    let beta = size.sqrt().recip();
    let root = (2.0 * (u[0] + 1.0)).sqrt();
    // `sign` −1 turns w̄ into u, W/β into βW⁻¹
    let reflect = |x: &[f64], sign: f64, factor: f64| {
        let v = |i: usize| if i == 0 { (u[0] + 1.0) / root } else { -sign * u[i] / root };
        let along: f64 = 2.0 * x.iter().enumerate().map(|(i, x)| v(i) * x).sum::<f64>();
        let entry = |(i, x): (usize, &f64)| factor * (along * v(i) + if i == 0 { -x } else { *x });
        x.iter().enumerate().map(entry).collect::<Vec<f64>>()
    };
    let (a, b, lambda) = (reflect(ds, -1.0, beta.recip()), reflect(dz, 1.0, beta), reflect(z, 1.0, beta));
    let first = dot(&a, &b);
    let rest: Vec<f64> = a[1..].iter().zip(&b[1..]).map(|(x, y)| b[0] * x + a[0] * y).collect();
    let length = norm2(&lambda[1..]);
    let head = (lambda[0] * first - dot(&lambda[1..], &rest)) / ((lambda[0] - length) * (lambda[0] + length));
    let mut quotient = vec![head];
    quotient.extend(rest.iter().zip(&lambda[1..]).map(|(r, l)| (r - head * l) / lambda[0]));
    reflect(&quotient, -1.0, beta.recip())
}

/// The largest α ≤ most with v + α dv in the second-order cone.
fn arrow_room(v: &[f64], dv: &[f64], most: f64) -> f64 {
    // a α² + 2 b α + c ≥ 0 with c > 0, and v₀ + α dv₀ ≥ 0
    let a = dv[0] * dv[0] - dot(&dv[1..], &dv[1..]);
    let b = v[0] * dv[0] - dot(&v[1..], &dv[1..]);
    let rest = norm2(&v[1..]);
    let c = (v[0] - rest) * (v[0] + rest);
    let mut room = if dv[0] < 0.0 { (-v[0] / dv[0]).min(most) } else { most };
    let discriminant = b * b - a * c;
    if discriminant >= 0.0 && (a < 0.0 || b < 0.0) {
        // the smaller positive root, without cancellation
        let root = c / (-b + discriminant.sqrt());
        if root > 0.0 {
            room = room.min(root);
        }
    }
    room
}

/// sym(A V B) as a scaled triangle.
fn sandwich(a: &Matrix, v: &[f64], b: &Matrix) -> Vec<f64> {
    let size = a.rows;
    let (mut half, mut full) = (vec![0.0; size * size], Matrix::zeros(size, size));
    matmul(&mut half, &a.data, &square(v, size).data, size, size, size);
    matmul(&mut full.data, &half, &b.data, size, size, size);
    triangle(&full)
}

#[cfg(test)]
mod tests {
    use super::*;

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
