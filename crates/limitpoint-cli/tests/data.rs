//! `limitpoint data` as a user meets it, against a server on this machine.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("limitpoint-data-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn limitpoint(arguments: &[&str], folder: &Folder) -> Output {
    Command::new(env!("CARGO_BIN_EXE_limitpoint"))
        .args(arguments)
        .env("LIMITPOINT_DATA", &folder.0)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Answers every request with `status` and `body`.
fn server(status: &'static str, body: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    url
}

#[test]
fn list_says_what_is_there() {
    let folder = Folder::new("list");
    let mnist = folder.0.join("mnist");
    std::fs::create_dir_all(&mnist).unwrap();
    for name in ["train-images-idx3-ubyte.gz", "train-labels.idx1-ubyte", "t10k-images-idx3-ubyte"] {
        std::fs::write(mnist.join(name), [0; 100]).unwrap();
    }
    let output = limitpoint(&["data", "list"], &folder);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    assert_eq!(lines.lines().count(), 3);
    assert!(lines.contains("incomplete, lacks t10k-labels-idx1-ubyte") && lines.contains("absent"), "{lines}");
    std::fs::write(mnist.join("t10k-labels-idx1-ubyte.gz"), [0; 100]).unwrap();
    let output = limitpoint(&["data", "list", "--format", "json"], &folder);
    let sets: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(sets[0]["key"], "mnist");
    assert_eq!((sets[0]["present"].as_bool(), sets[0]["bytes"].as_u64()), (Some(true), Some(400)));
    assert_eq!((sets[1]["present"].as_bool(), sets[2]["key"].as_str()), (Some(false), Some("cifar10")));
}

#[test]
fn a_missing_file_and_a_missing_server_are_explained() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (name, url, words) in [
        ("404", server("404 Not Found", b""), "404"),
        ("closed", format!("http://{closed}/"), "is there a network?"),
        ("not-a-url", "nonsense".to_owned(), "nonsense"),
    ] {
        let folder = Folder::new(name);
        let output = limitpoint(&["data", "fetch", "fashion-mnist", "--from", &url], &folder);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(output.stdout.is_empty());
        assert!(message.contains(words) && message.contains("--data-dir"), "{message}");
    }
}

#[test]
fn a_file_with_another_sum_is_refused_and_kept_aside() {
    let folder = Folder::new("sum");
    let body: &'static [u8] = vec![42; 9_912_422].leak();
    let output = limitpoint(&["data", "fetch", "mnist", "--from", &server("200 OK", body)], &folder);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"), "{message}");
    let names: Vec<_> = std::fs::read_dir(folder.0.join("mnist")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names, ["train-images-idx3-ubyte.gz.bad"]);
}

#[test]
fn help_shows_the_sets_and_examples() {
    let output = limitpoint(&["data", "fetch", "--help"], &Folder::new("help"));
    let help = text(&output.stdout);
    for words in ["mnist", "fashion-mnist", "cifar10", "--data-dir", "--from", "Examples:"] {
        assert!(help.contains(words), "{words} in {help}");
    }
    let output = limitpoint(&["data", "fetch", "imagenet"], &Folder::new("unknown"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("'imagenet'"));
}
