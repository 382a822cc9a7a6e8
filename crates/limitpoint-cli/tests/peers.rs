//! Another engine, written by other people, must find the same losses.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::process::Command;

/// Trains every bench workload for 100 steps here and in each engine of the Python named by `LIMITPOINT_PYTHON`, and
/// compares ln L. Rounding differs from engine to engine, so the tolerance is absolute, 10⁻⁹.
#[test]
fn engines_agree_on_the_loss_after_100_steps() {
    let Some(python) = std::env::var_os("LIMITPOINT_PYTHON") else {
        eprintln!("skipped: set LIMITPOINT_PYTHON to a Python with numpy and jax (or torch) to compare engines");
        return;
    };
    let output = Command::new(env!("CARGO_BIN_EXE_limitpoint"))
        .args(["bench", "--seconds", "0.2", "--rounds", "1", "--format", "json", "--python"])
        .arg(&python)
        .output()
        .expect("the program starts");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
    let workloads = report["workloads"].as_array().expect("a list of workloads");
    assert_eq!(workloads.len(), 4);
    for workload in workloads {
        let own = workload["log_loss"].as_f64().expect("a number");
        let peers = workload["peers"].as_array().expect("a list of engines");
        assert!(!peers.is_empty(), "{} has neither jax nor torch: {talk}", python.display());
        for peer in peers {
            let theirs = peer["log_loss"].as_f64().expect("a number");
            let name = format!("{} on {}", peer["engine"], workload["workload"]);
            assert!((own - theirs).abs() < 1e-9, "{name}: ln L = {theirs}, but {own} here");
        }
    }
}

/// 200 steps of a network with strides, paddings, pools and biases, here and in each engine, from the same start.
#[test]
fn engines_agree_on_the_parameters_of_a_network_of_images_after_200_steps() {
    let Some(python) = std::env::var_os("LIMITPOINT_PYTHON") else {
        eprintln!("skipped: set LIMITPOINT_PYTHON to a Python with numpy and jax (or torch) to compare engines");
        return;
    };
    let output = Command::new(env!("CARGO_BIN_EXE_limitpoint"))
        .args(["bench", "conv", "--case", "small", "--seconds", "0.1", "--rounds", "1", "--format", "json", "--python"])
        .arg(&python)
        .output()
        .expect("the program starts");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
    let (own, peers) = (report[0]["log_loss"].as_f64().expect("a number"), report[0]["peers"].as_array());
    let peers = peers.expect("a list of engines");
    assert!(!peers.is_empty(), "{} has neither jax nor torch: {talk}", python.display());
    for peer in peers {
        let (theirs, apart) = (peer["log_loss"].as_f64().expect("a number"), peer["apart"].as_f64());
        assert!((own - theirs).abs() < 1e-9, "{}: ln L = {theirs}, but {own} here", peer["engine"]);
        let apart = apart.expect("a number");
        assert!(apart < 1e-9, "{}: parameters are {apart} apart", peer["engine"]);
    }
}
