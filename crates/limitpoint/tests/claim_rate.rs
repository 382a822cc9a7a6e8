//! How many runs a second eight workers claim from one folder of a hundred thousand, for docs/scaling.md.
//!
//! `cargo test --release --workspace --test claim_rate -- --ignored --nocapture`

#![expect(clippy::print_stderr, reason = "a measurement is printed")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use limitpoint::experiments::{Claims, Moved, Next};

#[test]
#[ignore = "a measurement"]
fn eight_workers_claim_a_hundred_thousand_runs_once_each() {
    const RUNS: usize = 100_000;
    let folder = std::env::temp_dir().join(format!("limitpoint-claim-rate-{}", std::process::id()));
    for run in 0..RUNS {
        std::fs::create_dir_all(folder.join("waiting").join(format!("run{run:06}"))).unwrap();
    }
    let (begin, claimed) = (Instant::now(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut claims = Claims::open(&folder, Duration::from_secs(60)).unwrap();
                while let Next::Run(claim) = claims.claim().unwrap() {
                    assert_eq!(claims.publish(&claim).unwrap(), Moved::Yes);
                    claimed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let seconds = begin.elapsed().as_secs_f64();
    assert_eq!(claimed.into_inner(), RUNS, "each run is claimed once");
    eprintln!("{RUNS} runs claimed and published in {seconds:.1} s: {:.0} a second", RUNS as f64 / seconds);
    std::fs::remove_dir_all(&folder).unwrap();
}
