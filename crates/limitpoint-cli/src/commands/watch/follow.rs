//! Looks at the folder again and again, on a thread of its own, and keeps the newest page.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use limitpoint::experiments::{LiveRecord, analyse};
use limitpoint::report::{live_html, live_parts};
use tokio::sync::watch::{Receiver, channel};

/// A page and what it asks for when it is there already.
pub struct Snapshot {
    /// Counts up.
    pub version: u64,
    /// The whole page.
    pub page: String,
    /// Its parts and its data.
    pub parts: String,
}

/// Least distance between looks.
const PAUSE: Duration = Duration::from_secs(1);
/// Looks and drawings may take this share of the time.
const SHARE: u32 = 4;

fn snapshot(live: &LiveRecord, version: u64) -> Snapshot {
    let record = live.record();
    let analysis = analyse(record);
    let page = live_html(record, &analysis, live.status(), live.trouble());
    let mark = format!("<html lang=\"en\" data-version=\"{version}\">");
    Snapshot {
        version,
        page: page.replacen("<html lang=\"en\">", &mark, 1),
        parts: live_parts(record, &analysis, live.status(), live.trouble(), version),
    }
}

/// Reads the folder and follows it.
pub fn follow(folder: &Path) -> anyhow::Result<Receiver<Arc<Snapshot>>> {
    let mut live = LiveRecord::open(folder)
        .with_context(|| format!("{} holds no experiment, sweep or run to watch", folder.display()))?;
    let (sender, receiver) = channel(Arc::new(snapshot(&live, 1)));
    let work = move || {
        let mut version = 1;
        let mut pause = PAUSE;
        while !sender.is_closed() {
            std::thread::sleep(pause);
            let begin = Instant::now();
            // a file that is being replaced is read at the next look
            if live.refresh().unwrap_or(false) {
                version += 1;
                sender.send_replace(Arc::new(snapshot(&live, version)));
            }
            pause = PAUSE.max(begin.elapsed() * SHARE);
        }
    };
    std::thread::Builder::new().name("follow".into()).spawn(work).context("cannot start a thread")?;
    Ok(receiver)
}
