//! What the machine can do: the rate of large matrix products, to compare training steps with.

use std::time::Instant;

use crate::engine::Precision;
use crate::linalg::{SharedSlice, Team};

/// Rows and columns of the matrices, and how long they are multiplied: long enough for clock and caches to settle.
const SIZE: usize = 768;
const SECONDS: f64 = 0.2;

/// A product of two 768 × 768 matrices on every thread at the same time.
///
/// ```
/// use limitpoint::experiments::ProductRate;
/// use limitpoint::engine::Precision;
/// assert!(ProductRate::new(1, Precision::F32).gigaflops() > 0.0);
/// ```
pub struct ProductRate {
    team: Team,
    matrices: Matrices,
}

enum Matrices {
    F64(Operands<f64>),
    F32(Operands<f32>),
}

/// The matrix that is squared, and each thread's result.
struct Operands<T> {
    factor: Vec<T>,
    products: Vec<Vec<T>>,
}

impl ProductRate {
    /// Allocates the matrices of so many threads.
    pub fn new(threads: usize, precision: Precision) -> Self {
        let team = Team::new(threads);
        let entries = (0..SIZE * SIZE).map(|i| (i % 97) as f32 * 0.01);
        let matrices = match precision {
            Precision::F64 => Matrices::F64(Operands::new(entries.map(f64::from).collect(), team.threads())),
            Precision::F32 => Matrices::F32(Operands::new(entries.collect(), team.threads())),
        };
        Self { team, matrices }
    }

    /// 10⁹ operations a second, a multiply–add being two, of all threads together.
    pub fn gigaflops(&mut self) -> f64 {
        let (mut rounds, begin) = (0u32, Instant::now());
        while begin.elapsed().as_secs_f64() < SECONDS {
            match &mut self.matrices {
                Matrices::F64(operands) => operands.multiply(&self.team, 0.0, 1.0),
                Matrices::F32(operands) => operands.multiply(&self.team, 0.0, 1.0),
            }
            rounds += 1;
        }
        let products = f64::from(rounds) * self.team.threads() as f64;
        2.0 * (SIZE as f64).powi(3) * products / begin.elapsed().as_secs_f64() / 1e9
    }
}

impl<T: Copy + Default + Send + Sync + 'static> Operands<T> {
    fn new(factor: Vec<T>, threads: usize) -> Self {
        let products = vec![vec![T::default(); factor.len()]; threads];
        Self { factor, products }
    }

    /// One product on every thread.
    fn multiply(&mut self, team: &Team, zero: T, one: T) {
        let (shared, factor) = (SharedSlice::new(&mut self.products), &self.factor);
        let (size, row) = (SIZE, SIZE as isize);
        team.run(|worker| {
            // SAFETY: each worker writes its own product, and all three matrices have SIZE² entries.
            unsafe {
                let own = &mut shared.part(worker..worker + 1)[0];
                let (to, from, none) = (own.as_mut_ptr(), factor.as_ptr(), gemm::Parallelism::None);
                gemm::gemm(
                    size, size, size, to, 1, row, false, from, 1, row, from, 1, row, zero, one, false, false, false,
                    none,
                );
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_timed_is_the_product() {
        let mut rate = ProductRate::new(2, Precision::F32);
        assert!(rate.gigaflops() > 0.0);
        let Matrices::F32(Operands { factor, products }) = &rate.matrices else { panic!("single precision") };
        for product in products {
            for (i, j) in [(0, 0), (5, 700), (767, 767)] {
                let expected: f64 =
                    (0..SIZE).map(|k| f64::from(factor[i * SIZE + k]) * f64::from(factor[k * SIZE + j])).sum();
                let found = f64::from(product[i * SIZE + j]);
                assert!((found - expected).abs() <= 1e-4 * expected.abs(), "({i}, {j}): {found}, not {expected}");
            }
        }
    }
}
