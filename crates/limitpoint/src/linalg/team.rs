//! A few threads that run the same closure together.
//!
//! A training step is a handful of products of 10 to 300 µs each. Waking a sleeping thread costs as much as the
//! product, so the workers of a [`Team`] spin for a short while before they go to sleep, and a step costs a few
//! atomics. The caller splits work in *fixed* blocks and uses [`Team::share`] to say which blocks a worker takes; since
//! no block's result depends on who computed it, neither does a run's.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Iterations of the spin loop before a worker yields, and yields before it parks: about 100 µs together.
const SPINS: u32 = 2_000;
const YIELDS: u32 = 200;

/// A job with its lifetime erased; valid until every worker has finished it.
#[derive(Clone, Copy)]
struct Job {
    data: *const (),
    call: unsafe fn(*const (), usize),
}

struct Shared {
    job: UnsafeCell<Option<Job>>,
    generation: AtomicUsize,
    unfinished: AtomicUsize,
    panicked: AtomicBool,
    /// Set while a job runs: a second caller must not touch it.
    busy: AtomicBool,
    stop: AtomicBool,
    asleep: Vec<AtomicBool>,
}

// SAFETY: `job` is written only by the caller while no worker reads it: before the generation counter is raised
// (Release), and read by workers only after they saw the raise (Acquire).
unsafe impl Sync for Shared {}
// SAFETY: as above; the raw pointer inside a job is only used while the caller waits for it.
unsafe impl Send for Shared {}

/// Workers that run one closure at a time, each with its own number.
///
/// ```
/// use limitpoint::linalg::Team;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let team = Team::new(2);
/// let total = AtomicUsize::new(0);
/// team.run(|worker| {
///     let blocks = team.share(worker, 10); // ten fixed blocks, shared out
///     total.fetch_add(blocks.len(), Ordering::Relaxed);
/// });
/// assert_eq!(total.into_inner(), 10);
/// ```
pub struct Team {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

impl Team {
    /// A team of `threads` workers, the caller included; 0 counts as 1.
    pub fn new(threads: usize) -> Self {
        let others = threads.max(1) - 1;
        let shared = Arc::new(Shared {
            job: UnsafeCell::new(None),
            generation: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            asleep: (0..others).map(|_| AtomicBool::new(false)).collect(),
        });
        let helpers = (0..others)
            .map_while(|index| {
                let shared = Arc::clone(&shared);
                let name = format!("limitpoint-{}", index + 1);
                // fewer threads than asked for are fine: the blocks are shared among those that started
                std::thread::Builder::new().name(name).spawn(move || shared.work(index)).ok()
            })
            .collect();
        Self { shared, helpers }
    }

    /// Number of workers, the caller included.
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// The contiguous part of `blocks` blocks that `worker` takes.
    pub fn share(&self, worker: usize, blocks: usize) -> Range<usize> {
        let threads = self.threads();
        blocks * worker / threads..blocks * (worker + 1) / threads
    }

    /// Calls `work(worker)` once on every worker and returns when all are done. Panics travel to the caller; a call
    /// from within a job, or from two threads at once, panics.
    pub fn run<F: Fn(usize) + Sync>(&self, work: F) {
        if self.helpers.is_empty() {
            return work(0);
        }
        /// Restores the closure's type and calls it.
        unsafe fn call<F: Fn(usize)>(data: *const (), worker: usize) {
            // SAFETY: `data` was made from `&F` in `run`, which is still waiting.
            unsafe { (*data.cast::<F>())(worker) }
        }
        let shared = &*self.shared;
        assert!(!shared.busy.swap(true, Ordering::Acquire), "a team runs one job at a time");
        shared.unfinished.store(self.helpers.len(), Ordering::Relaxed);
        // SAFETY: no worker reads `job` between jobs, see `Shared`.
        unsafe { *shared.job.get() = Some(Job { data: (&raw const work).cast(), call: call::<F> }) };
        shared.generation.fetch_add(1, Ordering::SeqCst);
        for (helper, asleep) in self.helpers.iter().zip(&shared.asleep) {
            if asleep.load(Ordering::SeqCst) {
                helper.thread().unpark();
            }
        }
        let own = catch_unwind(AssertUnwindSafe(|| work(0)));
        let mut turns = 0u32;
        while shared.unfinished.load(Ordering::Acquire) != 0 {
            turns += 1;
            if turns < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        let helper_panicked = shared.panicked.swap(false, Ordering::Relaxed);
        shared.busy.store(false, Ordering::Release);
        if let Err(payload) = own {
            resume_unwind(payload);
        }
        assert!(!helper_panicked, "a worker of the team panicked");
    }
}

impl Shared {
    /// The life of helper `index`, which is worker `index + 1`.
    fn work(&self, index: usize) {
        let mut seen = 0;
        loop {
            let mut turns = 0u32;
            while self.generation.load(Ordering::Acquire) == seen {
                turns += 1;
                if turns < SPINS {
                    std::hint::spin_loop();
                } else if turns < SPINS + YIELDS {
                    std::thread::yield_now();
                } else {
                    self.asleep[index].store(true, Ordering::SeqCst);
                    if self.generation.load(Ordering::SeqCst) == seen {
                        std::thread::park();
                    }
                    self.asleep[index].store(false, Ordering::SeqCst);
                }
            }
            seen += 1;
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            // SAFETY: the generation was raised after the job was written and the caller waits for `unfinished`.
            let job = unsafe { *self.job.get() };
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                if let Some(job) = job {
                    // SAFETY: as above; the closure outlives this call.
                    unsafe { (job.call)(job.data, index + 1) }
                }
            }));
            if outcome.is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            self.unfinished.fetch_sub(1, Ordering::Release);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
        for helper in self.helpers.drain(..) {
            helper.thread().unpark();
            let _ = helper.join();
        }
    }
}

/// A mutable slice that the workers of a team share, each writing its own part.
#[derive(Clone, Copy)]
pub struct SharedSlice<T> {
    start: *mut T,
    length: usize,
}

// SAFETY: every access goes through `part`, whose caller promises disjoint ranges.
unsafe impl<T: Send> Send for SharedSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedSlice<T> {}

impl<T> SharedSlice<T> {
    /// Shares `slice` for as long as the caller keeps it borrowed.
    pub fn new(slice: &mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), length: slice.len() }
    }

    /// The entries in `range`.
    ///
    /// # Safety
    /// The slice given to `new` must still be alive, and no two live parts may overlap.
    #[expect(clippy::mut_from_ref, reason = "disjointness is the caller's promise")]
    pub unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.length, "part of a shared slice out of bounds");
        // SAFETY: in bounds by the assertion, unaliased by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// The first entry's address.
    pub fn pointer(&self) -> *mut T {
        self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_runs_every_job_once() {
        for threads in [0, 1, 2, 3] {
            let team = Team::new(threads);
            let mut counts = vec![0usize; team.threads()];
            for round in 0..300 {
                let shared = SharedSlice::new(&mut counts);
                // SAFETY: each worker touches its own entry.
                team.run(|worker| unsafe { shared.part(worker..worker + 1)[0] += 1 });
                if round == 100 {
                    std::thread::sleep(std::time::Duration::from_millis(20)); // long enough for the workers to park
                }
            }
            assert_eq!(counts, vec![300; threads.max(1)]);
        }
    }

    #[test]
    fn shares_cover_all_blocks_without_overlap() {
        let team = Team::new(3);
        for blocks in 0..20 {
            let shares: Vec<usize> = (0..3).flat_map(|worker| team.share(worker, blocks)).collect();
            assert_eq!(shares, (0..blocks).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_in_a_worker_reaches_the_caller_and_the_team_survives() {
        let team = Team::new(2);
        for culprit in [0, 1] {
            let result = catch_unwind(AssertUnwindSafe(|| team.run(|worker| assert_ne!(worker, culprit))));
            assert!(result.is_err());
        }
        team.run(|_| {});
    }
}
