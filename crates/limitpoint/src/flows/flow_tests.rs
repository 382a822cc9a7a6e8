//! A flow whose course is known.

use super::*;
use crate::data::{Dataset, Targets};
use crate::engine::Compute;
use crate::linalg::Matrix;
use crate::losses::LossSpec;
use crate::models::ModelSpec;
use crate::objective::Reduction;

#[test]
fn a_regression_flow_runs_in_plain_time() {
    // dw/dt = −2(w − 1) from 0: w = 1 − e^−2t and ln L = −4t
    let data = Dataset::new("point", Matrix::from_rows(&[&[1.0]]), Targets::Values(vec![1.0]), vec![1]).unwrap();
    let (model, loss) = (ModelSpec::Linear, LossSpec::Squared);
    let mut objective = Objective::new(&data, &model, &loss, Reduction::Sum, Compute::default()).unwrap();
    for spec in [FlowSpec::gradient(), FlowSpec::Mirror { potential: PotentialSpec::Euclidean }] {
        let tolerance = Tolerance { relative: 1e-12, absolute: 1e-14 };
        let mut flow = Flow::new(&spec, tolerance, &mut objective, &[0.0]).unwrap();
        while flow.log_loss() > -40.0 {
            flow.advance(&mut objective).unwrap();
            let time = flow.log_time().exp();
            assert!((flow.rescaled_time() - time).abs() < 1e-12 * time);
            assert!((flow.params()[0] + (-2.0 * time).exp_m1()).abs() < 1e-11, "{spec:?}");
        }
        assert!((flow.log_loss() + 4.0 * flow.log_time().exp()).abs() < 0.01, "{spec:?}");
    }
}
