//! Claiming runs, one after the other, by renaming their folders.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::lease::{Lease, Leases, Standing};
use super::place::{FAILED, RUNNING, WAITING, entries, names};
use crate::experiments::files::{RecordError, TEMPORARY, create_folder, read_bytes, remove_file, write_atomically};
use crate::experiments::hold::HOLD_FILE;
use crate::experiments::journal::partial_name;

/// The claims of one worker.
pub struct Claims {
    sweep: PathBuf,
    pub(super) lease: Lease,
    leases: Leases,
    /// Names that were seen waiting, those to be tried first at the end.
    list: Vec<String>,
}

/// A run that is this worker's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Name of the run.
    pub name: String,
    /// Where it is now.
    pub folder: PathBuf,
    /// Whether it was another worker's, which may not know that it is gone.
    pub taken_over: bool,
}

/// What there is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A run.
    Run(Claim),
    /// Nothing waits, and it cannot be told yet whether all workers that have runs are alive.
    Look,
    /// Nothing waits, and others are at their runs.
    OthersRun,
    /// Nothing waits and nothing runs.
    Nothing,
}

/// What became of a folder that was to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// It is there.
    Yes,
    /// Somebody else's was there before: the same bits, and this one is gone.
    AlreadyThere,
    /// It is no longer this worker's.
    Lost,
}

impl Claims {
    /// Signs in at a sweep; others may take over its runs when its heartbeat has not changed for `lease`.
    pub fn open(sweep: &Path, lease: Duration) -> Result<Self, RecordError> {
        let lease = Lease::take(sweep, lease)?;
        Ok(Self { sweep: sweep.to_path_buf(), lease, leases: Leases::new(sweep), list: Vec::new() })
    }

    /// The next run: one that waits, or else one whose worker is gone.
    pub fn claim(&mut self) -> Result<Next, RecordError> {
        loop {
            while let Some(name) = self.list.pop() {
                if let Some(claim) = self.take(&self.sweep.join(WAITING).join(&name), &name, false)? {
                    return Ok(Next::Run(claim));
                }
            }
            self.list = names(&self.sweep.join(WAITING));
            if self.list.is_empty() {
                return self.orphan();
            }
            // everyone begins at another place, so that few try for the same run
            let place =
                self.lease.worker.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            let turn = place % self.list.len();
            self.list.rotate_left(turn);
            self.list.reverse();
        }
    }

    /// A run of a worker that is gone.
    fn orphan(&mut self) -> Result<Next, RecordError> {
        let (mut unknown, mut running) = (false, false);
        for worker in names(&self.sweep.join(RUNNING)).into_iter().filter(|worker| *worker != self.lease.worker) {
            let folder = self.sweep.join(RUNNING).join(&worker);
            let runs = names(&folder);
            match self.leases.look(&worker) {
                Standing::Gone => {
                    for name in &runs {
                        if let Some(claim) = self.take(&folder.join(name), name, true)? {
                            return Ok(Next::Run(claim));
                        }
                    }
                    // empty, unless it comes back to life at this moment
                    let _ = fs::remove_dir(&folder);
                }
                Standing::Unknown if !runs.is_empty() => unknown = true,
                _ => running |= !runs.is_empty(),
            }
        }
        Ok(match (unknown, running) {
            (true, _) => Next::Look,
            (false, true) => Next::OthersRun,
            (false, false) => Next::Nothing,
        })
    }

    /// Moves a run's folder here; nothing if somebody else was faster.
    fn take(&self, from: &Path, name: &str, taken_over: bool) -> Result<Option<Claim>, RecordError> {
        let mine = self.sweep.join(RUNNING).join(&self.lease.worker);
        let folder = mine.join(name);
        // a look is cheap; renames of one file system wait for each other even where there is nothing to rename
        if !from.exists() && !folder.exists() {
            return Ok(None);
        }
        let mut moved = fs::rename(from, &folder);
        if moved.is_err() && !mine.exists() {
            // others thought this worker gone and tidied up
            create_folder(&mine)?;
            moved = fs::rename(from, &folder);
        }
        match moved {
            Ok(()) => {}
            // the answer to a rename over a network may get lost after it was done, and the second attempt fails
            Err(_) if folder.exists() => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(RecordError::io("claim", from, source)),
        }
        // who held the folder before has lost it
        remove_file(&folder.join(HOLD_FILE))?;
        if taken_over {
            renew(&folder)?;
        }
        Ok(Some(Claim { name: name.to_owned(), folder, taken_over }))
    }

    /// A finished or failed run goes to its own place in the sweep.
    pub fn publish(&self, claim: &Claim) -> Result<Moved, RecordError> {
        if claim.taken_over {
            // what the worker before was writing when its folder went away
            for folder in [claim.folder.clone(), claim.folder.join("checkpoints")] {
                for path in entries(&folder).iter().filter(|path| path.extension().is_some_and(|end| end == TEMPORARY))
                {
                    remove_file(path)?;
                }
            }
        }
        self.move_to(claim, &self.sweep.join(&claim.name))
    }

    /// An interrupted run waits again, with its checkpoints.
    pub fn give_back(&self, claim: &Claim) -> Result<Moved, RecordError> {
        self.move_to(claim, &self.sweep.join(WAITING).join(&claim.name))
    }

    /// Writes down why a run failed; it is to be published next.
    pub fn write_failure(&self, claim: &Claim, reason: &str) -> Result<(), RecordError> {
        create_folder(&self.sweep.join(FAILED))?;
        write_atomically(&self.sweep.join(FAILED).join(&claim.name), format!("{reason}\n").as_bytes())
    }

    /// Whether the run is still this worker's.
    pub fn is_mine(&self, claim: &Claim) -> bool {
        claim.folder.exists()
    }

    fn move_to(&self, claim: &Claim, place: &Path) -> Result<Moved, RecordError> {
        match fs::rename(&claim.folder, place) {
            Ok(()) => Ok(Moved::Yes),
            Err(_) if !claim.folder.exists() => Ok(if place.exists() { Moved::AlreadyThere } else { Moved::Lost }),
            Err(_) if place.exists() => {
                fs::remove_dir_all(&claim.folder).map_err(|source| RecordError::io("remove", &claim.folder, source))?;
                Ok(Moved::AlreadyThere)
            }
            Err(source) => Err(RecordError::io("move to", place, source)),
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        // stays where there is still a run in it
        let _ = fs::remove_dir(self.sweep.join(RUNNING).join(&self.lease.worker));
    }
}

/// Gives the journals of a run new files, so that a worker that has them open writes into those nobody reads.
fn renew(folder: &Path) -> Result<(), RecordError> {
    for name in ["metrics.csv", "histograms.jsonl"] {
        let path = partial_name(&folder.join(name));
        if path.exists() {
            write_atomically(&path, &read_bytes(&path)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::io::Write;
    use std::sync::Mutex;

    /// A sweep of empty runs.
    fn sweep(name: &str, runs: usize) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("limitpoint-claims-{name}-{}", std::process::id()));
        for run in 0..runs {
            fs::create_dir_all(folder.join(WAITING).join(format!("run{run:05}"))).unwrap();
        }
        folder
    }

    fn run(next: Next) -> Claim {
        match next {
            Next::Run(claim) => claim,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn eight_workers_claim_every_run_once() {
        let folder = sweep("eight", 400);
        let seen = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut claims = Claims::open(&folder, Duration::from_secs(60)).unwrap();
                    while let Next::Run(claim) = claims.claim().unwrap() {
                        assert_eq!(claims.publish(&claim).unwrap(), Moved::Yes);
                        seen.lock().unwrap().push(claim.name);
                    }
                });
            }
        });
        let seen = seen.into_inner().unwrap();
        assert_eq!((seen.len(), seen.iter().collect::<BTreeSet<_>>().len()), (400, 400), "each once");
        assert!(names(&folder.join(WAITING)).is_empty() && names(&folder.join(RUNNING)).is_empty());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_a_dead_worker_left_is_taken_over_and_a_live_one_keeps_its_run() {
        let folder = sweep("dead", 2);
        let mut first = Claims::open(&folder, Duration::from_secs(60)).unwrap();
        let mut second = Claims::open(&folder, Duration::from_secs(60)).unwrap();
        let (a, b) = (run(first.claim().unwrap()), run(second.claim().unwrap()));
        assert_ne!(a.name, b.name);
        assert_eq!(second.claim().unwrap(), Next::OthersRun);
        assert_eq!(second.publish(&b).unwrap(), Moved::Yes);
        // the first one dies: its lock goes with it, its folder stays
        let mut journal = fs::File::create(partial_name(&a.folder.join("metrics.csv"))).unwrap();
        writeln!(journal, "header").unwrap();
        drop(first);
        let again = run(second.claim().unwrap());
        assert!(again.taken_over && again.name == a.name && !second.is_mine(&a));
        // whoever has the journal open writes to nobody
        writeln!(journal, "late").unwrap();
        assert_eq!(fs::read_to_string(partial_name(&again.folder.join("metrics.csv"))).unwrap(), "header\n");
        fs::write(again.folder.join("x.json.1-1.tmp"), "torso").unwrap();
        assert_eq!(second.publish(&again).unwrap(), Moved::Yes);
        assert_eq!(names(&folder.join(&again.name)), ["metrics.csv.partial"]);
        assert_eq!(second.claim().unwrap(), Next::Nothing);
        assert_eq!(second.publish(&a).unwrap(), Moved::AlreadyThere, "a ghost finds its run done");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_run_given_back_waits_again_and_a_second_result_gives_way() {
        let folder = sweep("back", 1);
        let mut claims = Claims::open(&folder, Duration::from_secs(60)).unwrap();
        let claim = run(claims.claim().unwrap());
        assert_eq!(claims.give_back(&claim).unwrap(), Moved::Yes);
        let claim = run(claims.claim().unwrap());
        fs::create_dir_all(folder.join(&claim.name).join("checkpoints")).unwrap();
        assert_eq!(claims.publish(&claim).unwrap(), Moved::AlreadyThere);
        assert!(!claim.folder.exists() && folder.join(&claim.name).join("checkpoints").exists());
        fs::remove_dir_all(folder.join(RUNNING)).unwrap();
        fs::create_dir_all(folder.join(WAITING).join("late")).unwrap();
        assert_eq!(run(claims.claim().unwrap()).name, "late", "a worker whose folder was tidied up makes it anew");
        fs::remove_dir_all(&folder).unwrap();
    }
}
