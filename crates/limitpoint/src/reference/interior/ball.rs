//! The unit ball of the norm, as an interior-point method sees it.
//!
//! With u = Mᵀx, the combination of the rows, the dual norm of u is to be made small:
//!
//! ```text
//! Euclid  ½ Σ θu²                                                         v = Θu
//! Box     Σ b|u|      u = z⁺ − z⁻,  z± ≥ 0 complementary to b ∓ v          |v| ≤ b        (ℓ∞)
//! Cross   τ           z± = cτ ∓ u ≥ 0 complementary to v±, v = v⁺ − v⁻      Σ c(v⁺+v⁻) = 1  (ℓ1)
//! ```
//!
//! Linearised with complementarity targets t±, each ball gives Θ⁻¹Δv = MᵀΔx − κΔτ − ρ with its own diagonal Θ, which is
//! all the linear system asks for. The cross polytope has, with r± = v±/z± and A± = t/z± − v± − r±·(residual of z±),
//!
//! ```text
//! Θ = r⁺ + r⁻,  Θκ = c(r⁺ − r⁻),  ω = Σ 4c² r⁺r⁻/Θ,  ρ = −(A⁺ − A⁻)/Θ,  q = 1 − Σ c(v⁺+v⁻) − Σ 2c (r⁻A⁺ + r⁺A⁻)/Θ
//! ```

use super::kkt::BallPart;

/// Which ball, with its weights.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::reference) enum BallSpec {
    /// √Σ v²/θ ≤ 1.
    Euclid(Vec<f64>),
    /// |v_j| ≤ b_j.
    Box(Vec<f64>),
    /// Σ c_j|v_j| ≤ 1.
    Cross(Vec<f64>),
}

impl BallSpec {
    /// ‖v‖.
    pub(in crate::reference) fn norm(&self, v: &[f64]) -> f64 {
        match self {
            Self::Euclid(theta) => v.iter().zip(theta).map(|(v, theta)| v * v / theta).sum::<f64>().sqrt(),
            Self::Box(bound) => v.iter().zip(bound).map(|(v, b)| v.abs() / b).fold(0.0, f64::max),
            Self::Cross(weight) => v.iter().zip(weight).map(|(v, c)| v.abs() * c).sum(),
        }
    }

    /// ‖u‖_*.
    pub(in crate::reference) fn dual(&self, u: &[f64]) -> f64 {
        match self {
            Self::Euclid(theta) => u.iter().zip(theta).map(|(u, theta)| u * u * theta).sum::<f64>().sqrt(),
            Self::Box(bound) => u.iter().zip(bound).map(|(u, b)| u.abs() * b).sum(),
            Self::Cross(weight) => u.iter().zip(weight).map(|(u, c)| u.abs() / c).fold(0.0, f64::max),
        }
    }
}

/// A ball with the pairs (a, z) that must become complementary: a± = b ∓ v for the box, v± for the cross polytope.
#[derive(Clone)]
pub(super) struct Ball<'a> {
    spec: &'a BallSpec,
    pub v: Vec<f64>,
    tau: f64,
    a: [Vec<f64>; 2],
    z: [Vec<f64>; 2],
}

/// A change of a ball's variables.
pub(super) struct BallStep {
    dv: Vec<f64>,
    tau: f64,
    a: [Vec<f64>; 2],
    z: [Vec<f64>; 2],
}

impl<'a> Ball<'a> {
    /// Well inside, for rows whose first combination is u.
    pub(super) fn start(spec: &'a BallSpec, u: &[f64]) -> Self {
        let zeros = vec![0.0; u.len()];
        match spec {
            BallSpec::Euclid(_) => Self { spec, v: Vec::new(), tau: 0.0, a: Default::default(), z: Default::default() },
            BallSpec::Box(bound) => {
                let typical = spec.dual(u) / bound.iter().sum::<f64>();
                let z = |sign: f64| u.iter().map(|u| (sign * u).max(0.0) + 0.5 * typical).collect();
                Self { spec, v: zeros, tau: 0.0, a: [bound.clone(), bound.clone()], z: [z(1.0), z(-1.0)] }
            }
            BallSpec::Cross(weight) => {
                let tau = 1.5 * spec.dual(u).max(f64::MIN_POSITIVE);
                let share: Vec<f64> = weight.iter().map(|c| 0.5 / (c * u.len() as f64)).collect();
                let z = |sign: f64| u.iter().zip(weight).map(|(u, c)| c * tau - sign * u).collect();
                Self { spec, v: zeros, tau, a: [share.clone(), share], z: [z(1.0), z(-1.0)] }
            }
        }
    }

    pub(super) fn is_euclid(&self) -> bool {
        matches!(self.spec, BallSpec::Euclid(_))
    }

    /// Number of pairs.
    pub(super) fn pairs(&self) -> usize {
        2 * self.a[0].len()
    }

    /// Σ a·z over all pairs, after the given steps of both sides.
    pub(super) fn complementarity(&self, step: Option<(&BallStep, f64, f64)>) -> f64 {
        let mut sum = 0.0;
        for s in 0..2 {
            for j in 0..self.a[s].len() {
                let (da, dz) = step.map_or((0.0, 0.0), |(step, by_a, by_z)| (by_a * step.a[s][j], by_z * step.z[s][j]));
                sum += (self.a[s][j] + da) * (self.z[s][j] + dz);
            }
        }
        sum
    }

    /// Θ, κ and ω.
    pub(super) fn part(&self, part: &mut BallPart) {
        let pairs = |s: usize| self.a[s].iter().zip(&self.z[s]);
        match self.spec {
            BallSpec::Euclid(_) => {}
            BallSpec::Box(_) => {
                let both = part.theta.iter_mut().zip(pairs(0).zip(pairs(1)));
                both.for_each(|(theta, ((a0, z0), (a1, z1)))| *theta = (z0 / a0 + z1 / a1).recip());
            }
            BallSpec::Cross(weight) => {
                part.kappa.resize(weight.len(), 0.0);
                part.omega = 0.0;
                for (j, c) in weight.iter().enumerate() {
                    let (plus, minus) = (self.a[0][j] / self.z[0][j], self.a[1][j] / self.z[1][j]);
                    part.theta[j] = plus + minus;
                    part.kappa[j] = c * (plus - minus) / (plus + minus);
                    part.omega += 4.0 * c * c * plus * (minus / (plus + minus));
                }
            }
        }
    }

    /// t/z or t/a of one pair, with t = target − Δa·Δz of a predictor.
    fn target(s: usize, j: usize, target: f64, predictor: Option<&BallStep>) -> f64 {
        target - predictor.map_or(0.0, |p| p.a[s][j] * p.z[s][j])
    }

    /// ρ and q.
    pub(super) fn right_hand_side(&self, u: &[f64], target: f64, predictor: Option<&BallStep>) -> (Vec<f64>, f64) {
        let t = |s: usize, j: usize| Self::target(s, j, target, predictor);
        match self.spec {
            BallSpec::Euclid(_) => (vec![0.0; u.len()], 0.0),
            BallSpec::Box(_) => {
                let rho = |j: usize| -u[j] + t(0, j) / self.a[0][j] - t(1, j) / self.a[1][j];
                ((0..u.len()).map(rho).collect(), 0.0)
            }
            BallSpec::Cross(weight) => {
                let mut q = 1.0;
                let rho = (0..u.len())
                    .map(|j| {
                        let (plus, r_plus) = self.cross_term(0, j, t(0, j), weight[j] * self.tau - u[j]);
                        let (minus, r_minus) = self.cross_term(1, j, t(1, j), weight[j] * self.tau + u[j]);
                        let theta = r_plus + r_minus;
                        q -= weight[j] * (self.a[0][j] + self.a[1][j]);
                        q -= 2.0 * weight[j] * (r_minus / theta * plus + r_plus / theta * minus);
                        -(plus - minus) / theta
                    })
                    .collect();
                (rho, q)
            }
        }
    }

    /// A± and r± of one entry, whose z should be `due`.
    fn cross_term(&self, s: usize, j: usize, t: f64, due: f64) -> (f64, f64) {
        let (a, z) = (self.a[s][j], self.z[s][j]);
        (t / z - a - a / z * (due - z), a / z)
    }

    /// The change of all variables for Δv, MᵀΔx and Δτ.
    pub(super) fn step(
        &self,
        u: &[f64],
        (dv, du, tau): (Vec<f64>, &[f64], f64),
        target: f64,
        predictor: Option<&BallStep>,
    ) -> BallStep {
        let t = |s: usize, j: usize| Self::target(s, j, target, predictor);
        let zeros = || vec![0.0; self.a[0].len()];
        let mut step = BallStep { dv, tau, a: [zeros(), zeros()], z: [zeros(), zeros()] };
        for j in 0..self.a[0].len() {
            match self.spec {
                BallSpec::Euclid(_) => {}
                BallSpec::Box(_) => {
                    for (s, sign) in [(0, 1.0), (1, -1.0)] {
                        let (a, z) = (self.a[s][j], self.z[s][j]);
                        step.a[s][j] = -sign * step.dv[j];
                        step.z[s][j] = (t(s, j) + sign * z * step.dv[j]) / a - z;
                    }
                }
                BallSpec::Cross(weight) => {
                    // the half with the smaller ratio v/z follows from its z, the other from Δv
                    let ratio = |s: usize| self.a[s][j] / self.z[s][j];
                    let (small, large) = if ratio(0) < ratio(1) { (0, 1) } else { (1, 0) };
                    let sign = |s: usize| if s == 0 { 1.0 } else { -1.0 };
                    let (a, z) = (self.a[small][j], self.z[small][j]);
                    let dz = weight[j] * (self.tau + tau) - sign(small) * (u[j] + du[j]) - z;
                    step.z[small][j] = dz;
                    step.a[small][j] = t(small, j) / z - a - a / z * dz;
                    let (a, z) = (self.a[large][j], self.z[large][j]);
                    step.a[large][j] = sign(large) * step.dv[j] + step.a[small][j];
                    step.z[large][j] = (t(large, j) - z * step.a[large][j]) / a - z;
                }
            }
        }
        step
    }

    /// The largest steps ≤ 1 that keep a and z positive.
    pub(super) fn room(&self, step: &BallStep) -> (f64, f64) {
        let room =
            |x: &[Vec<f64>; 2], dx: &[Vec<f64>; 2]| (0..2).map(|s| super::room(&x[s], &dx[s])).fold(1.0, f64::min);
        (room(&self.a, &step.a), room(&self.z, &step.z))
    }

    /// Moves the weights' side by `by_a`, the multipliers' side by `by_z`.
    pub(super) fn advance(&mut self, step: &BallStep, by_a: f64, by_z: f64) {
        let add = |x: &mut [f64], dx: &[f64], by: f64| x.iter_mut().zip(dx).for_each(|(x, dx)| *x += by * dx);
        add(&mut self.v, &step.dv, by_a);
        self.tau += by_z * step.tau;
        for s in 0..2 {
            add(&mut self.a[s], &step.a[s], by_a);
            add(&mut self.z[s], &step.z[s], by_z);
        }
    }
}
