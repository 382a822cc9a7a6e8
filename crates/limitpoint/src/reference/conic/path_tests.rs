//! Small programs whose ends are known.

use super::super::program::Affine;
use super::*;

#[test]
fn one_program_with_every_cone_ends_where_it_should() {
    // min a + b + c + d over (a, 3, 4), ‖(1, 1)‖₃ ≤ b, [c 1; 1 1] ⪰ 0, d = e, e ≥ 2: 5 + 2^(1/3) + 1 + 2
    let mut program = Program::default();
    program.columns(5);
    program.objective = vec![1.0, 1.0, 1.0, 1.0, 0.0];
    program.require(Cone::SecondOrder, [Affine::term(0, 1.0), Affine::constant(3.0), Affine::constant(4.0)]);
    program.require(Cone::Power(3.0), [Affine::term(1, 1.0), Affine::constant(1.0), Affine::constant(1.0)]);
    let off = Affine::constant(std::f64::consts::SQRT_2);
    program.require(Cone::Semidefinite(2), [Affine::term(2, 1.0), off, Affine::constant(1.0)]);
    program.require(Cone::Zero, [Affine::term(3, 1.0).plus(4, -1.0)]);
    program.require(Cone::Nonnegative, [Affine::constant(-2.0).plus(4, 1.0)]);
    let (point, _) = follow::<f64>(&program).unwrap();
    let expected = [5.0, 2.0_f64.cbrt(), 1.0, 2.0, 2.0];
    assert!(point.x.iter().zip(expected).all(|(x, e)| (x - e).abs() < 1e-6), "{:?}", point.x);
    // weights: those of the objective, slopes of the norms, [1 −1; −1 1], and 1 for the bound
    let slope = 2.0_f64.powf(-2.0 / 3.0);
    let weights = [1.0, -0.6, -0.8, 1.0, -slope, -slope, 1.0, -std::f64::consts::SQRT_2, 1.0, 1.0, 1.0];
    assert!(point.z.iter().zip(weights).all(|(z, e)| (z - e).abs() < 1e-3), "{:?}", point.z);
}

#[test]
fn a_program_without_a_solution_is_given_up() {
    let mut program = Program::default();
    program.columns(1);
    program.require(Cone::Nonnegative, [Affine::constant(-1.0).plus(0, 1.0), Affine::constant(-1.0).plus(0, -1.0)]);
    assert!(follow::<f64>(&program).is_err());
}
