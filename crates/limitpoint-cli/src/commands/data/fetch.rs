//! Downloads one file: resumed where it stopped, checked by its sum, moved into place when it is whole.
//!
//! ```text
//! NAME.part  ──(range requests until complete)──►  SHA-256  ──right──►  NAME
//!                                                          └─wrong──►  NAME.bad, and an error
//! ```

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::sets::RemoteFile;

/// Attempts without a single new byte before a source is given up.
const ATTEMPTS: u32 = 3;
/// The pause before the second attempt; it doubles.
const PAUSE: Duration = Duration::from_millis(250);
/// A server that is silent for so long is gone.
const SILENCE: Duration = Duration::from_secs(30);

/// How a file came to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was there, and whole.
    Present,
    /// It was downloaded.
    Fetched,
    /// The rest of it was downloaded.
    Resumed,
}

/// Why an attempt ended early.
#[derive(Debug)]
enum Trouble {
    /// Worth another attempt at the same source.
    Cut(String),
    /// This source does not have it.
    Refused(String),
    /// The disk, not the network.
    Local(anyhow::Error),
}

/// A client that follows redirects, speaks TLS, and asks for files as they are.
///
/// Proxies come from the environment, except for addresses of this machine.
pub fn client(source: &str) -> ureq::Agent {
    let host = source.split_once("://").map_or(source, |(_, rest)| rest);
    let own = ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| host.starts_with(name));
    let mut config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .accept_encoding("identity")
        .user_agent(concat!("limitpoint/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(SILENCE))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE));
    if own {
        config = config.proxy(None);
    }
    config.build().into()
}

/// Brings `file` into `folder` from the first of `sources` that has it; `progress` is told the bytes so far.
///
/// A file that is there is checked and left alone, right or wrong.
pub fn fetch(
    file: &RemoteFile,
    sources: &[&str],
    folder: &Path,
    progress: &mut dyn FnMut(u64),
) -> anyhow::Result<Outcome> {
    let target = folder.join(file.name);
    if target.is_file() {
        let sum = sha256(&target)?;
        if sum == file.sha256 {
            return Ok(Outcome::Present);
        }
        bail!(
            "{} is there, but its SHA-256 is {sum} and not {}; move it away to fetch it again, or keep it and leave `data \
             fetch` be",
            target.display(),
            file.sha256
        );
    }
    let part = folder.join(format!("{}.part", file.name));
    let before = length(&part);
    let mut complaints = Vec::new();
    for source in sources {
        let url = format!("{}/{}", source.trim_end_matches('/'), file.name);
        match from_source(&url, file, &part, progress) {
            Ok(()) => {
                settle(file, &part, &target, &url)?;
                return Ok(if before > 0 { Outcome::Resumed } else { Outcome::Fetched });
            }
            Err(Trouble::Local(error)) => return Err(error),
            Err(Trouble::Cut(reason) | Trouble::Refused(reason)) => complaints.push(format!("{url}: {reason}")),
        }
    }
    let kept = length(&part);
    let kept = if kept > 0 {
        format!(" ({kept} of {} bytes are kept in {}; run it again to go on)", file.bytes, part.display())
    } else {
        String::new()
    };
    Err(anyhow!("{}", complaints.join("; ")).context(format!("could not fetch {}{kept}", file.name)))
}

/// Downloads until the part is complete; gives up after [`ATTEMPTS`] without progress.
fn from_source(url: &str, file: &RemoteFile, part: &Path, progress: &mut dyn FnMut(u64)) -> Result<(), Trouble> {
    let client = client(url);
    let mut idle = 0;
    loop {
        let before = length(part);
        match attempt(&client, url, file, part, progress) {
            Err(Trouble::Cut(reason)) => {
                idle = if length(part) > before { 0 } else { idle + 1 };
                if idle >= ATTEMPTS {
                    return Err(Trouble::Cut(reason));
                }
                std::thread::sleep(PAUSE * 2_u32.pow(idle));
            }
            done => return done,
        }
    }
}

/// One request for what is missing.
fn attempt(
    client: &ureq::Agent,
    url: &str,
    file: &RemoteFile,
    part: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Trouble> {
    let mut have = length(part);
    if have == file.bytes {
        return Ok(());
    }
    if have > file.bytes {
        have = 0; // not a beginning of this file
    }
    let mut request = client.get(url);
    if have > 0 {
        request = request.header("Range", format!("bytes={have}-"));
    }
    let response = request.call().map_err(|error| explain(&error))?;
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match response.status().as_u16() {
        206 if header("content-range").trim().starts_with(&format!("bytes {have}-")) => {}
        // the server does not do ranges, or sent the whole file
        200 => have = 0,
        // a range it did not ask for, or none: begin again
        206 | 416 => {
            open(part, 0)?;
            return Err(Trouble::Cut("the server answered with another range than asked for".into()));
        }
        404 | 410 => return Err(Trouble::Refused("not found (404)".into())),
        status @ (408 | 429 | 500..=599) => return Err(Trouble::Cut(format!("the server answered {status}"))),
        status => return Err(Trouble::Refused(format!("the server answered {status}"))),
    }
    let mut output = open(part, have)?;
    // one byte more than expected is enough to know that it is another file
    let mut body = response.into_body().into_reader().take(file.bytes - have + 1);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Trouble::Cut(format!("the connection broke after {have} bytes ({error})"))),
        };
        output.write_all(&buffer[..count]).map_err(|error| disk(error, part))?;
        have += count as u64;
        progress(have.min(file.bytes));
    }
    output.sync_all().map_err(|error| disk(error, part))?;
    if have < file.bytes {
        return Err(Trouble::Cut(format!("the connection ended after {have} of {} bytes", file.bytes)));
    }
    Ok(())
}

/// Checks the sum and moves the file to its name, or to `NAME.bad`.
fn settle(file: &RemoteFile, part: &Path, target: &Path, url: &str) -> anyhow::Result<()> {
    let (sum, bytes) = (sha256(part)?, length(part));
    if sum == file.sha256 {
        return std::fs::rename(part, target).with_context(|| format!("could not rename {}", part.display()));
    }
    let bad = target.with_file_name(format!("{}.bad", file.name));
    std::fs::rename(part, &bad).with_context(|| format!("could not rename {}", part.display()))?;
    bail!(
        "{url} is not the file it should be: SHA-256 {sum}, {} bytes, but expected {}, {} bytes; what came is kept as {}",
        if bytes > file.bytes { format!("more than {}", file.bytes) } else { bytes.to_string() },
        file.sha256,
        file.bytes,
        bad.display()
    )
}

/// The part, cut to `keep` bytes and ready to be written behind them.
fn open(part: &Path, keep: u64) -> Result<File, Trouble> {
    let file = OpenOptions::new().create(true).append(true).open(part).map_err(|error| disk(error, part))?;
    if length(part) != keep {
        file.set_len(keep).map_err(|error| disk(error, part))?;
    }
    Ok(file)
}

/// The length of a file; 0 if it is not there.
fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |data| data.len())
}

/// What the network did, in words.
fn explain(error: &ureq::Error) -> Trouble {
    match error {
        ureq::Error::HostNotFound => Trouble::Refused("the host was not found; is there a network?".into()),
        ureq::Error::ConnectionFailed => Trouble::Refused("no connection; is there a network?".into()),
        ureq::Error::BadUri(uri) => Trouble::Refused(format!("`{uri}` is not a web address")),
        ureq::Error::Io(source) => match source.kind() {
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::UnexpectedEof
            | ErrorKind::BrokenPipe
            | ErrorKind::TimedOut => Trouble::Cut(error.to_string()),
            // refused, unreachable, or a name that could not be looked up
            _ => Trouble::Refused(format!("no connection; is there a network? ({source})")),
        },
        ureq::Error::Timeout(_) | ureq::Error::Protocol(_) => Trouble::Cut(error.to_string()),
        other => Trouble::Refused(other.to_string()),
    }
}

/// What the disk did, in words.
fn disk(error: std::io::Error, part: &Path) -> Trouble {
    let what = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "the disk is full; free some space and run it again, or choose \
                                                              another with --data-dir"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "it may not be written; choose another folder with \
                                                                        --data-dir"
        }
        _ => "it could not be written",
    };
    Trouble::Local(anyhow::Error::new(error).context(format!("{}: {what}", part.display())))
}

/// The SHA-256 of a file, in hexadecimal.
pub fn sha256(path: &Path) -> anyhow::Result<String> {
    let reading = || format!("could not read {}", path.display());
    let mut file = File::open(path).with_context(reading)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => hasher.update(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).with_context(reading),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Where a file that is being written belongs until it is whole.
pub fn part_of(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    target.with_file_name(name)
}
