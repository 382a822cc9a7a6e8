//! Who writes in a folder: one process at a time, over all machines that share it.
//!
//! ```text
//! FOLDER/claim.json   {"host": "…", "process": 4711, "since": 1790000000, "token": "…"}
//! ```
//!
//! The owner keeps the file locked as long as it lives; the system gives the lock up with the process, so that a hold
//! of a killed process on the same machine can be taken over at once. Where a lock does not reach other machines, the
//! file's modification time, which the owner renews every few seconds, says that it is alive: a hold of another host
//! is respected until it has not been renewed for [`LEASE`]. The file is removed when the owner is done.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::files::RecordError;

/// Name of the file.
pub(super) const HOLD_FILE: &str = "claim.json";
/// A hold of another host is void when it was not renewed for this long.
const LEASE: Duration = Duration::from_secs(60);
/// Distance between renewals.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How often a hold is tried for when its file comes and goes.
const ATTEMPTS: usize = 100;
/// Attempts after which a lock is no passing one.
const PATIENCE: usize = 10;

/// Who holds a hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Name of the machine.
    pub host: String,
    /// Number of the process.
    pub process: u32,
    /// Seconds since 1970, UTC.
    pub since: u64,
    /// What tells this hold from any other.
    #[serde(default)]
    pub token: String,
}

impl Owner {
    pub(super) fn this_process() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (host, process) = (host(), std::process::id());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let token = format!("{host}-{process}-{}-{}", now.as_nanos(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { host, process, since: now.as_secs(), token }
    }

    fn unknown() -> Self {
        Self { host: "an unknown host".into(), process: 0, since: 0, token: String::new() }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {} since {}", self.process, self.host, utc(self.since))
    }
}

/// The right to write in a folder; given back when it is dropped.
pub(super) struct Hold {
    path: PathBuf,
    _file: File,
    heart: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Hold {
    /// Takes hold of a folder that exists; an error that names the owner if somebody else has it.
    pub fn take(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(HOLD_FILE);
        let io = |source| RecordError::io("take hold of the folder by", &path, source);
        let me = Owner::this_process();
        let text = serde_json::to_string(&me).map_err(|error| RecordError::refused(&path, error.to_string()))? + "\n";
        for attempt in 1..=ATTEMPTS {
            let mut file = match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path) {
                Ok(file) => file,
                // on systems where a file that somebody removes cannot be opened
                Err(error) if error.kind() == ErrorKind::PermissionDenied && !path.exists() => continue,
                Err(source) => return Err(io(source)),
            };
            let locks = match file.try_lock() {
                Ok(()) => true,
                Err(TryLockError::WouldBlock) => {
                    let owner = read_owner(&mut file);
                    if attempt < PATIENCE || owner.is_none() && attempt < ATTEMPTS {
                        // somebody looks at it, or writes it at this moment
                        std::thread::sleep(Duration::from_millis(2));
                        continue;
                    }
                    let owner = Box::new(owner.unwrap_or_else(Owner::unknown));
                    return Err(RecordError::Held { folder: folder.to_path_buf(), owner });
                }
                // a file system without locks: only the lease counts
                Err(TryLockError::Error(error)) if no_locks(&error) => false,
                Err(TryLockError::Error(source)) => return Err(io(source)),
            };
            if let Some(owner) = read_owner(&mut file)
                && (owner.host != me.host || !locks && !is_gone(&owner))
                && age(&file) < LEASE
                && names(&path, &owner)
            {
                return Err(RecordError::Held { folder: folder.to_path_buf(), owner: Box::new(owner) });
            }
            let written = file
                .set_len(0)
                .and_then(|()| file.seek(SeekFrom::Start(0)))
                .and_then(|_| file.write_all(text.as_bytes()))
                .and_then(|()| file.sync_all());
            if let Err(source) = written {
                let _ = fs::remove_file(&path);
                return Err(io(source));
            }
            // whoever had it may have removed the file between its opening and its locking: the name must lead here
            if names(&path, &me) {
                let heart = file.try_clone().ok().and_then(beat);
                return Ok(Self { path, _file: file, heart });
            }
        }
        Err(RecordError::refused(&path, "comes and goes: many processes want this folder; try again"))
    }

    /// Like [`take`](Self::take), but waits for so long while somebody else has it.
    pub fn take_within(folder: &Path, patience: Duration) -> Result<Self, RecordError> {
        let begin = Instant::now();
        loop {
            match Self::take(folder) {
                Err(RecordError::Held { .. }) if begin.elapsed() < patience => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                other => return other,
            }
        }
    }

    /// Who holds a folder at this moment, as far as its hold says.
    pub fn owner(folder: &Path) -> Option<Owner> {
        let mut file = File::open(folder.join(HOLD_FILE)).ok()?;
        let owner = read_owner(&mut file)?;
        let held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        (held || (owner.host != host() && age(&file) < LEASE)).then_some(owner)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // removed while it is still locked, so that nobody takes it over in between
        let _ = fs::remove_file(&self.path);
        if let Some((stop, thread)) = self.heart.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// Renews the modification time until the sender is dropped.
fn beat(file: File) -> Option<(Sender<()>, JoinHandle<()>)> {
    let (stop, stopped) = channel();
    let work = move || {
        while stopped.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
            // a missed beat is made up for by the next
            let _ = file.set_modified(SystemTime::now());
        }
    };
    let thread = std::thread::Builder::new().name("claim".into()).spawn(work).ok()?;
    Some((stop, thread))
}

fn read_owner(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(10_000).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Whether the file of this name holds this hold.
fn names(path: &Path, owner: &Owner) -> bool {
    File::open(path).ok().and_then(|mut file| read_owner(&mut file)).is_some_and(|found| found == *owner)
}

fn age(file: &File) -> Duration {
    let modified = file.metadata().and_then(|facts| facts.modified()).unwrap_or(UNIX_EPOCH);
    SystemTime::now().duration_since(modified).unwrap_or_default()
}

/// Whether a process of this host is known to have ended.
fn is_gone(owner: &Owner) -> bool {
    Path::new("/proc/self").exists() && !Path::new("/proc").join(owner.process.to_string()).exists()
}

fn no_locks(error: &std::io::Error) -> bool {
    // ENOLCK and ENOSYS have no kind of their own
    error.kind() == ErrorKind::Unsupported || matches!(error.raw_os_error(), Some(37 | 38))
}

/// The name of this machine.
fn host() -> String {
    let of_file = |path: &str| fs::read_to_string(path).ok();
    let of_variable = |name: &str| std::env::var(name).ok();
    let names = [
        of_file("/proc/sys/kernel/hostname"),
        of_variable("HOSTNAME"),
        of_variable("COMPUTERNAME"),
        of_file("/etc/hostname"),
    ];
    let named = names.into_iter().flatten().map(|name| name.trim().to_owned()).find(|name| !name.is_empty());
    named.unwrap_or_else(|| "this host".into())
}

/// Seconds since 1970 as `2026-11-16 14:36:06 UTC`.
fn utc(seconds: u64) -> String {
    // days of the Gregorian calendar, counted in years that begin in March
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("limitpoint-claim-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn the_second_comer_learns_who_the_first_is() {
        let folder = folder("second");
        let hold = Hold::take(&folder).unwrap();
        let text = Hold::take(&folder).err().unwrap().to_string();
        let process = format!("process {} on {} since 20", std::process::id(), host());
        assert!(text.contains(&process) && text.contains("UTC"), "{text}");
        assert_eq!(Hold::owner(&folder).unwrap().process, std::process::id());
        drop(hold);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "the claim leaves nothing behind");
        assert_eq!(Hold::owner(&folder), None);
        drop(Hold::take(&folder).unwrap());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_patient_wait_until_the_first_is_done() {
        let folder = folder("patient");
        let hold = Hold::take(&folder).unwrap();
        assert!(matches!(Hold::take_within(&folder, Duration::from_millis(1)), Err(RecordError::Held { .. })));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Hold::take_within(&folder, Duration::from_secs(60)).map(drop));
            std::thread::sleep(Duration::from_millis(120));
            drop(hold);
            assert!(waiting.join().unwrap().is_ok());
        });
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn of_many_at_once_one_wins_each_time() {
        let folder = folder("many");
        let inside = AtomicU64::new(0);
        let wins = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..40 {
                        if let Ok(hold) = Hold::take(&folder) {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two owners");
                            wins.fetch_add(1, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(hold);
                        }
                    }
                });
            }
        });
        assert!(wins.into_inner() > 0);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_a_killed_process_left_is_taken_over_and_another_host_has_its_lease() {
        let folder = folder("left");
        let path = folder.join(HOLD_FILE);
        let left = |host: &str| {
            let owner = Owner { host: host.into(), process: 1, since: 0, token: "x".into() };
            fs::write(&path, serde_json::to_string(&owner).unwrap()).unwrap();
        };
        left(&host());
        drop(Hold::take(&folder).unwrap());
        left("elsewhere");
        let text = Hold::take(&folder).err().unwrap().to_string();
        assert!(text.contains("process 1 on elsewhere since 1970-01-01 00:00:00 UTC"), "{text}");
        let long_ago = SystemTime::now() - 2 * LEASE;
        File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        drop(Hold::take(&folder).unwrap());
        #[cfg(target_os = "linux")]
        assert!(is_gone(&Owner { process: u32::MAX, ..Owner::unknown() }) && !is_gone(&Owner::this_process()));
        // a torn or foreign file says nothing about an owner
        fs::write(&path, "{\"host\": ").unwrap();
        drop(Hold::take(&folder).unwrap());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // date -u -d @SECONDS
        for (seconds, date) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_795_000_000, "2026-11-18 11:06:40 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(seconds), date);
        }
    }
}
