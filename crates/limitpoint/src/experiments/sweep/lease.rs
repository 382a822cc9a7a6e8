//! The lease of a worker: a heartbeat that others see change.
//!
//! ```text
//! SWEEP/workers/WORKER.json   {"host": "node7", "process": 4711, "beat": 12, …}, locked while the worker lives
//! ```
//!
//! A worker writes a new `beat` every few seconds. Who looks remembers what it read and *when it read it by its own
//! monotonic clock*: a file that changed was written by somebody alive, a file that stayed the same for a whole lease was
//! not. Wall clocks and times of files are never compared, so that machines whose clocks differ by hours, or jump, agree.
//! On one machine the lock says it at once, both ways.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::place::{RUNNING, WORKERS};
use crate::experiments::files::{RecordError, create_folder};
use crate::experiments::hold::Owner;
use crate::experiments::seal::sum;

/// What a worker says about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Name of the machine.
    pub host: String,
    /// Number of the process.
    pub process: u32,
    /// When it began, in seconds since 1970 by its own clock; for people.
    pub since: u64,
    /// What the machine's kernel calls this boot; tells machines of one name apart.
    #[serde(default)]
    pub boot: String,
    /// Heartbeats so far.
    pub beat: u64,
    /// Seconds without a heartbeat after which others may take its runs.
    pub lease: f64,
    /// Runs it finished.
    pub runs: u64,
    /// Seconds it spent on them.
    pub seconds: f64,
    /// The run it is at, and for how many seconds, as of the last heartbeat.
    #[serde(default)]
    pub at: Option<(String, f64)>,
    /// Whether it has left.
    #[serde(default)]
    pub left: bool,
}

impl WorkerRecord {
    /// Reads the record of a worker; nothing where it is missing or being written.
    pub fn read(sweep: &Path, worker: &str) -> Option<Self> {
        serde_json::from_slice(&fs::read(file_of(sweep, worker)).ok()?).ok()
    }
}

fn file_of(sweep: &Path, worker: &str) -> PathBuf {
    sweep.join(WORKERS).join(format!("{worker}.json"))
}

/// The worker of this process: its heart beats until it is dropped.
pub(super) struct Lease {
    /// Name of the worker and of its folder.
    pub worker: String,
    heart: Option<(Sender<()>, JoinHandle<()>)>,
    beating: Arc<Mutex<Beating>>,
}

struct Beating {
    file: File,
    record: WorkerRecord,
    /// The run it is at, and since when.
    at: Option<(String, Instant)>,
}

impl Beating {
    fn write(&mut self) -> std::io::Result<()> {
        self.record.at = self.at.as_ref().map(|(run, since)| (run.clone(), since.elapsed().as_secs_f64()));
        let mut text = serde_json::to_string(&self.record).map_err(std::io::Error::other)?;
        text.push('\n');
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)
    }
}

impl Lease {
    /// Signs in.
    pub fn take(sweep: &Path, lease: Duration) -> Result<Self, RecordError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let owner = Owner::this_process();
        // short enough for a folder, and never given twice
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let host: String = owner.host.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
        let moment = &sum(owner.token.as_bytes())[..8];
        let worker = format!("{host}-{}-{number}-{moment}", owner.process);
        let path = file_of(sweep, &worker);
        create_folder(&sweep.join(WORKERS))?;
        create_folder(&sweep.join(RUNNING).join(&worker))?;
        let io = |source| RecordError::io("write", &path, source);
        let record = WorkerRecord {
            host: owner.host,
            process: owner.process,
            since: owner.since,
            boot: boot(),
            beat: 0,
            lease: lease.as_secs_f64(),
            runs: 0,
            seconds: 0.0,
            at: None,
            left: false,
        };
        // locked before it has its name: a file without a lock, on this machine, is that of a worker that is gone
        let nameless = path.with_extension("new");
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&nameless).map_err(io)?;
        let _ = file.try_lock();
        let mut beating = Beating { file, record, at: None };
        beating.write().map_err(io)?;
        fs::rename(&nameless, &path).map_err(io)?;
        let beating = Arc::new(Mutex::new(beating));
        let heart = beat(Arc::clone(&beating), lease / 6);
        Ok(Self { worker, heart, beating })
    }

    /// Notes that a run is begun.
    pub fn begin(&self, run: &str) {
        if let Ok(mut beating) = self.beating.lock() {
            beating.at = Some((run.to_owned(), Instant::now()));
        }
    }

    /// Notes that the run is over, and whether it counts as done.
    pub fn end(&self, done: bool) {
        if let Ok(mut beating) = self.beating.lock()
            && let Some((_, since)) = beating.at.take()
            && done
        {
            beating.record.runs += 1;
            beating.record.seconds += since.elapsed().as_secs_f64();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.heart.take() {
            drop(stop);
            let _ = thread.join();
        }
        if let Ok(mut beating) = self.beating.lock() {
            beating.record.left = true;
            // others find out without it, later
            let _ = beating.write();
        }
    }
}

/// Beats until the sender is dropped.
fn beat(beating: Arc<Mutex<Beating>>, distance: Duration) -> Option<(Sender<()>, JoinHandle<()>)> {
    let (stop, stopped) = channel();
    let work = move || {
        while stopped.recv_timeout(distance) == Err(RecvTimeoutError::Timeout) {
            if let Ok(mut beating) = beating.lock() {
                beating.record.beat += 1;
                // a missed beat is made up for by the next
                let _ = beating.write();
            }
        }
    };
    let thread = std::thread::Builder::new().name("heartbeat".into()).spawn(work).ok()?;
    Some((stop, thread))
}

/// The kernel's name for this boot; empty where it has none.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// How a worker's lease stands, as far as somebody who looks can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its heartbeat was seen, or its lock.
    Alive,
    /// Not seen changing yet, and not yet for a whole lease.
    Unknown,
    /// It left, its lock is gone, or its heartbeat did not change for a whole lease.
    Gone,
}

/// What somebody has seen of the workers of a sweep.
pub struct Leases {
    sweep: PathBuf,
    /// What was read of each worker last, when it was first read like that, and whether it ever changed.
    seen: HashMap<String, Sight>,
    begin: Instant,
}

struct Sight {
    bytes: Vec<u8>,
    at: Duration,
    changed: bool,
}

impl Leases {
    /// Nothing seen yet.
    pub fn new(sweep: &Path) -> Self {
        Self { sweep: sweep.to_path_buf(), seen: HashMap::new(), begin: Instant::now() }
    }

    /// Looks at a worker.
    pub fn look(&mut self, worker: &str) -> Standing {
        let now = self.begin.elapsed();
        let path = file_of(&self.sweep, worker);
        let bytes = fs::read(&path).unwrap_or_default();
        let record: Option<WorkerRecord> = serde_json::from_slice(&bytes).ok();
        if record.as_ref().is_some_and(|record| record.left) {
            return Standing::Gone;
        }
        let here = record.as_ref().is_some_and(|record| !record.boot.is_empty() && record.boot == boot());
        match File::open(&path).map(|file| file.try_lock_shared()) {
            Ok(Err(TryLockError::WouldBlock)) => return Standing::Alive,
            Ok(Ok(())) if here => return Standing::Gone,
            _ => {}
        }
        let lease =
            record.map_or(DEFAULT_LEASE, |record| Duration::try_from_secs_f64(record.lease).unwrap_or(DEFAULT_LEASE));
        self.judge(worker, bytes, lease, now)
    }

    /// What was read at a moment of one's own clock.
    fn judge(&mut self, worker: &str, bytes: Vec<u8>, lease: Duration, now: Duration) -> Standing {
        let Some(sight) = self.seen.get_mut(worker) else {
            self.seen.insert(worker.to_owned(), Sight { bytes, at: now, changed: false });
            return Standing::Unknown;
        };
        if sight.bytes != bytes {
            *sight = Sight { bytes, at: now, changed: true };
            return Standing::Alive;
        }
        if now.saturating_sub(sight.at) >= lease {
            return Standing::Gone;
        }
        if sight.changed { Standing::Alive } else { Standing::Unknown }
    }
}

/// Seconds without a heartbeat after which runs are taken over, unless told otherwise.
pub(super) const DEFAULT_LEASE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("limitpoint-lease-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join(WORKERS)).unwrap();
        folder
    }

    fn elsewhere(since: u64, beat: u64) -> WorkerRecord {
        let (host, boot) = ("elsewhere".to_owned(), "another".to_owned());
        WorkerRecord { host, process: 1, since, boot, beat, lease: 60.0, runs: 0, seconds: 0.0, at: None, left: false }
    }

    #[test]
    fn clocks_that_are_hours_off_or_jump_change_nothing() {
        // the machine that beats is five hours behind, right, five hours ahead, at zero, at the end of time
        for since in [0, 1_795_000_000 - 18_000, 1_795_000_000, 1_795_000_000 + 18_000, u64::MAX] {
            let mut leases = Leases::new(Path::new("nowhere"));
            let lease = Duration::from_secs(60);
            let mut look = |beat: u64, seconds: u64| {
                let bytes = serde_json::to_vec(&elsewhere(since.wrapping_add(beat * 7_919), beat)).unwrap();
                leases.judge("w", bytes, lease, Duration::from_secs(seconds))
            };
            assert_eq!(look(1, 0), Standing::Unknown, "the first look says nothing");
            assert_eq!(look(1, 59), Standing::Unknown);
            assert_eq!(look(2, 59), Standing::Alive, "a beat was seen at the last moment");
            assert_eq!(look(2, 118), Standing::Alive);
            assert_eq!(look(2, 119), Standing::Gone, "no beat for a lease");
            assert_eq!(look(3, 500), Standing::Alive, "it had only been slow");
        }
    }

    #[test]
    fn times_of_files_are_not_asked() {
        let folder = sweep("times");
        let path = file_of(&folder, "far");
        let mut leases = Leases::new(&folder);
        let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let mut write = |beat: u64, time: std::time::SystemTime| {
            fs::write(&path, serde_json::to_vec(&elsewhere(0, beat)).unwrap()).unwrap();
            File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            leases.look("far")
        };
        assert_eq!(write(1, long_ago), Standing::Unknown, "a file from 1970 may have been written just now");
        assert_eq!(write(2, long_ago), Standing::Alive);
        assert_eq!(write(2, std::time::SystemTime::now() + Duration::from_secs(1 << 30)), Standing::Alive);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn on_one_machine_the_lock_says_it_at_once() {
        let folder = sweep("lock");
        let lease = Lease::take(&folder, DEFAULT_LEASE).unwrap();
        let mut leases = Leases::new(&folder);
        assert_eq!(leases.look(&lease.worker), Standing::Alive);
        lease.begin("a");
        lease.end(true);
        lease.begin("b");
        lease.end(false);
        let worker = lease.worker.clone();
        drop(lease);
        assert_eq!(leases.look(&worker), Standing::Gone);
        let record = WorkerRecord::read(&folder, &worker).unwrap();
        assert!(record.left && record.runs == 1 && record.at.is_none());
        // killed: no word, no lock
        let killed = WorkerRecord { left: false, ..record };
        fs::write(file_of(&folder, "killed"), serde_json::to_vec(&killed).unwrap()).unwrap();
        assert_eq!(leases.look("killed"), if boot().is_empty() { Standing::Unknown } else { Standing::Gone });
        fs::remove_dir_all(&folder).unwrap();
    }
}
