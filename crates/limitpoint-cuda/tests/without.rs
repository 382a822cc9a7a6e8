//! What can be told without a card: the engine builds and starts everywhere, and says what is missing.
#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use limitpoint::engine::{Compute, Device};

#[test]
fn a_machine_without_a_card_says_what_is_missing_and_what_to_do() {
    limitpoint_cuda::offer();
    let Err(error) = limitpoint_cuda::report() else {
        println!("skipped: there is a card");
        return;
    };
    let words = (Compute { device: Device::Cuda, ..Compute::default() }).engine().err().unwrap().to_string();
    assert!(words.contains(&error.to_string()) && words.contains("leave --device out"), "{words}");
}
