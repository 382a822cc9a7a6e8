//! Downloads from a server on this machine that can be told to misbehave.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use super::fetch::{Outcome, fetch, sha256};
use super::sets::RemoteFile;

/// What the server does with a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    /// Answers ranges.
    Ranges,
    /// Sends the whole file whatever is asked.
    Whole,
    /// Answers ranges, but hangs up after so many bytes of the first answer.
    CutFirst(usize),
    /// Hangs up before the first byte, always.
    HangUp,
    /// Answers 206 from the beginning to the first request for a range.
    WrongRange,
    /// Has nothing.
    NotFound,
}

/// A server for one file; remembers the ranges it was asked for.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<Option<u64>>>>,
}

impl Server {
    fn start(contents: Vec<u8>, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &contents, manner, &log);
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<Option<u64>> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, contents: &[u8], manner: Manner, log: &Mutex<Vec<Option<u64>>>) {
    let mut range = None;
    for line in BufReader::new(stream.try_clone().unwrap()).lines() {
        let line = line.unwrap_or_default().to_ascii_lowercase();
        if let Some(asked) = line.strip_prefix("range: bytes=") {
            range = asked.trim_end_matches('-').parse().ok();
        }
        if line.is_empty() {
            break;
        }
    }
    let first = log.lock().unwrap().is_empty();
    log.lock().unwrap().push(range);
    let start = range.unwrap_or(0) as usize;
    let (head, body) = match (manner, range) {
        (Manner::HangUp, _) => return,
        (Manner::NotFound, _) => ("HTTP/1.1 404 Not Found\r\n".to_owned(), &b"no such file"[..]),
        (Manner::WrongRange, Some(_)) if first => (
            format!("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/{}\r\n", contents.len()),
            &contents[..10],
        ),
        (Manner::Whole, _) | (_, None) => ("HTTP/1.1 200 OK\r\n".to_owned(), contents),
        (_, Some(_)) if start >= contents.len() => ("HTTP/1.1 416 Range Not Satisfiable\r\n".to_owned(), &[][..]),
        (_, Some(_)) => {
            let last = contents.len() - 1;
            let range = format!("Content-Range: bytes {start}-{last}/{}", contents.len());
            (format!("HTTP/1.1 206 Partial Content\r\n{range}\r\n"), &contents[start..])
        }
    };
    let sent = match manner {
        Manner::CutFirst(bytes) if first => &body[..bytes],
        _ => body,
    };
    let head = format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    // a client that went away is not the server's trouble
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(sent)).and_then(|()| stream.flush());
}

/// A folder of its own for each test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("limitpoint-fetch-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn contents() -> Vec<u8> {
    (0..300_000_u32).flat_map(|i| (i.wrapping_mul(2_654_435_761) >> 24).to_be_bytes()).collect()
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Fetches `data.bin` from one server into a folder that may hold a beginning.
fn try_fetch(server: &Server, folder: &Folder, expected: &[u8]) -> anyhow::Result<Outcome> {
    let sum = sum(expected);
    let file = RemoteFile { name: "data.bin", bytes: expected.len() as u64, sha256: &sum };
    let mut last = 0;
    let outcome = fetch(&file, &[&server.url], &folder.0, &mut |bytes| last = bytes);
    assert!(last <= file.bytes);
    outcome
}

#[test]
fn a_whole_file_is_fetched_checked_and_then_left_alone() {
    let (server, folder) = (Server::start(contents(), Manner::Ranges), Folder::new());
    assert_eq!(try_fetch(&server, &folder, &contents()).unwrap(), Outcome::Fetched);
    assert_eq!(std::fs::read(folder.0.join("data.bin")).unwrap(), contents());
    assert_eq!(folder.names(), ["data.bin"]);
    assert_eq!(sha256(&folder.0.join("data.bin")).unwrap(), sum(&contents()));
    assert_eq!(try_fetch(&server, &folder, &contents()).unwrap(), Outcome::Present);
    assert_eq!(server.asked(), [None]);
}

#[test]
fn a_part_is_resumed_where_it_stopped() {
    let (server, folder) = (Server::start(contents(), Manner::Ranges), Folder::new());
    std::fs::write(folder.0.join("data.bin.part"), &contents()[..1000]).unwrap();
    assert_eq!(try_fetch(&server, &folder, &contents()).unwrap(), Outcome::Resumed);
    assert_eq!(server.asked(), [Some(1000)]);
    assert_eq!(folder.names(), ["data.bin"]);
}

#[test]
fn a_complete_part_needs_no_request_and_a_part_that_is_too_long_starts_again() {
    let (server, folder) = (Server::start(contents(), Manner::Ranges), Folder::new());
    std::fs::write(folder.0.join("data.bin.part"), contents()).unwrap();
    try_fetch(&server, &folder, &contents()).unwrap();
    assert!(server.asked().is_empty());
    let folder = Folder::new();
    std::fs::write(folder.0.join("data.bin.part"), [contents(), vec![1]].concat()).unwrap();
    try_fetch(&server, &folder, &contents()).unwrap();
    assert_eq!(server.asked(), [None]);
}

#[test]
fn a_server_without_ranges_sends_all_of_it_again() {
    for manner in [Manner::Whole, Manner::WrongRange] {
        let (server, folder) = (Server::start(contents(), manner), Folder::new());
        std::fs::write(folder.0.join("data.bin.part"), vec![7; 1000]).unwrap(); // not even the right beginning
        try_fetch(&server, &folder, &contents()).unwrap();
        assert_eq!(std::fs::read(folder.0.join("data.bin")).unwrap(), contents(), "{manner:?}");
        assert_eq!(server.asked()[0], Some(1000));
    }
}

#[test]
fn a_cut_connection_is_taken_up_again() {
    let (server, folder) = (Server::start(contents(), Manner::CutFirst(500_000)), Folder::new());
    assert_eq!(try_fetch(&server, &folder, &contents()).unwrap(), Outcome::Fetched);
    let asked = server.asked();
    assert_eq!((asked.len(), asked[0]), (2, None));
    assert!(asked[1].is_some_and(|start| start > 0 && start <= 500_000), "{asked:?}");
}

#[test]
fn a_wrong_sum_is_an_error_and_what_came_is_kept_aside() {
    let (server, folder) = (Server::start(contents(), Manner::Ranges), Folder::new());
    let mut expected = contents();
    expected[5] ^= 1;
    let error = format!("{:#}", try_fetch(&server, &folder, &expected).unwrap_err());
    assert!(error.contains(&sum(&expected)) && error.contains(&sum(&contents())), "{error}");
    assert_eq!(folder.names(), ["data.bin.bad"]);
    // a file that is longer than it should be is not taken either
    let folder = Folder::new();
    let error = format!("{:#}", try_fetch(&server, &folder, &contents()[..1000]).unwrap_err());
    assert!(error.contains("more than 1000"), "{error}");
    assert_eq!(folder.names(), ["data.bin.bad"]);
}

#[test]
fn a_wrong_file_that_was_there_is_not_touched() {
    let (server, folder) = (Server::start(contents(), Manner::Ranges), Folder::new());
    std::fs::write(folder.0.join("data.bin"), b"mine").unwrap();
    let error = format!("{:#}", try_fetch(&server, &folder, &contents()).unwrap_err());
    assert!(error.contains("move it away"), "{error}");
    assert_eq!(std::fs::read(folder.0.join("data.bin")).unwrap(), b"mine");
    assert!(server.asked().is_empty());
}

#[test]
fn what_is_not_there_is_named() {
    let (server, folder) = (Server::start(contents(), Manner::NotFound), Folder::new());
    let error = format!("{:#}", try_fetch(&server, &folder, &contents()).unwrap_err());
    assert!(error.contains("404") && error.contains(&server.url), "{error}");
    assert_eq!(server.asked().len(), 1);
    assert!(folder.names().is_empty());
}

#[test]
fn a_dead_server_is_given_up_and_the_part_is_kept() {
    let (server, folder) = (Server::start(contents(), Manner::HangUp), Folder::new());
    std::fs::write(folder.0.join("data.bin.part"), &contents()[..1000]).unwrap();
    let error = format!("{:#}", try_fetch(&server, &folder, &contents()).unwrap_err());
    assert!(error.contains("1000 of 1200000 bytes are kept"), "{error}");
    assert_eq!(folder.names(), ["data.bin.part"]);
    // nobody listens at all
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = Server { url: format!("http://{closed}/"), asked: Arc::default() };
    let error = format!("{:#}", try_fetch(&nobody, &Folder::new(), &contents()).unwrap_err());
    assert!(error.contains("is there a network?"), "{error}");
}

#[test]
fn the_next_source_is_asked_when_one_has_nothing() {
    let (empty, full) = (Server::start(Vec::new(), Manner::NotFound), Server::start(contents(), Manner::Ranges));
    let (folder, sum) = (Folder::new(), sum(&contents()));
    let file = RemoteFile { name: "data.bin", bytes: contents().len() as u64, sha256: &sum };
    assert_eq!(fetch(&file, &[&empty.url, &full.url], &folder.0, &mut |_| {}).unwrap(), Outcome::Fetched);
}
