//! `limitpoint watch`: the page follows a run in a browser, and nobody gets at what is not theirs.
//!
//! The first test needs what `report_page` needs, and is skipped without it.

#![cfg(unix)]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod chromium;
mod home;
mod program;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use chromium::Browser;
use home::Home;
use program::{limitpoint, stderr};

/// A server that is ended with the test.
struct Server {
    child: Child,
    /// `http://127.0.0.1:PORT/`, and the token if there is one.
    address: String,
}

impl Server {
    fn start(folder: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_limitpoint"))
            .args(["watch", folder])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut address = String::new();
        let output = child.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut address).expect("an address");
        Self { child, address: address.trim().to_owned() }
    }

    fn port(&self) -> &str {
        let rest = self.address.rsplit(':').next().expect("a port");
        rest.split('/').next().expect("a port")
    }

    /// What a request is answered with.
    fn get(&self, path: &str) -> String {
        self.answer("GET", path, "")
    }

    /// The status of a request.
    fn status(&self, method: &str, path: &str, headers: &str) -> u16 {
        let text = self.answer(method, path, headers);
        text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{path}: {text}"))
    }

    /// A request, byte by byte as it is given: no client tidies the path up.
    fn answer(&self, method: &str, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port())).expect("a connection");
        let host = if headers.contains("Host:") { "" } else { "Host: localhost\r\n" };
        let request = format!("{method} {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn curves_grow_in_a_browser_while_a_run_writes() {
    let Some(browser) = Browser::find() else { return };
    let home = Home::new("watched");
    let sweep = home.path("sweep");
    let settings =
        ["optimiser=gradient", "seed=1", "stop.steps=100000000", "stop.log10_loss=-100000", "stop.seconds=12"];
    let output = limitpoint(&[&["sweep", "linear", "--out", &sweep], &settings[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let mut worker = Command::new(env!("CARGO_BIN_EXE_limitpoint"))
        .args(["worker", &sweep, "--quiet"])
        .stdout(Stdio::null())
        .spawn()
        .expect("a worker");
    let server = Server::start(&sweep, &["--address", "127.0.0.1:0"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/watch.mjs");
    let looking = Command::new("node")
        .arg(script)
        .args([&server.address, browser.executable.to_str().expect("UTF-8")])
        .env("LIMITPOINT_PUPPETEER", &browser.puppeteer)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("node starts");
    assert!(worker.wait().expect("it ends").success());
    // a finished run's certificate appears
    limitpoint(&["certify", &sweep]);
    let output = looking.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}{}", program::stdout(&output), stderr(&output));
}

#[test]
fn the_page_of_a_thousand_runs_shows_them_all() {
    let home = Home::new("thousand");
    let sweep = home.path("sweep");
    let settings = [
        "optimiser=gradient,sign",
        "data.gaussians.margin=0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1",
        "seed=1..50",
        "stop.steps=3",
        "data.gaussians.count=8",
    ];
    let output = limitpoint(&[&["sweep", "linear", "--out", &sweep], &settings[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let output = limitpoint(&["worker", &sweep, "--quiet"]);
    assert!(output.status.code().is_some_and(|code| code <= 1), "{}", stderr(&output));
    let server = Server::start(&sweep, &["--address", "127.0.0.1:0"]);
    let page = server.get("/");
    let manifest = std::fs::read_to_string(Path::new(&sweep).join("manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let names: Vec<&str> =
        manifest["runs"].as_array().expect("runs").iter().map(|run| run["name"].as_str().expect("a name")).collect();
    assert_eq!(names.len(), 1000);
    let missing = names.iter().filter(|name| !page.contains(&format!("<th scope=\"row\">{name}</th>"))).count();
    assert_eq!(missing, 0, "runs that the page does not show");
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
}

#[test]
fn nothing_outside_the_folder_is_served_and_nothing_can_be_written() {
    let home = Home::new("guarded");
    let runs = home.path("runs");
    let output = limitpoint(&["run", "linear", "optimiser=gradient", "stop.steps=20", "--out", &runs, "--quiet"]);
    assert!(output.status.success(), "{}", stderr(&output));
    std::fs::write(home.path("secret.txt"), "secret").expect("a secret");
    std::os::unix::fs::symlink(home.path("secret.txt"), Path::new(&runs).join("link.txt")).expect("a link");
    std::os::unix::fs::symlink("..", Path::new(&runs).join("up")).expect("a link");
    let server = Server::start(&runs, &["--address", "127.0.0.1:0"]);
    for path in ["/", "/parts", "/files/manifest.json", "/files/gradient-seed0/metrics.csv"] {
        assert_eq!(server.status("GET", path, ""), 200, "{path}");
    }
    for path in [
        "/files/../secret.txt",
        "/files/%2e%2e/secret.txt",
        "/files/gradient-seed0/../../secret.txt",
        "/files/gradient-seed0%2f..%2f..%2fsecret.txt",
        "/files//etc/passwd",
        "/files/%2fetc%2fpasswd",
        "/files/link.txt",
        "/files/up/secret.txt",
        "/../secret.txt",
        "/files/",
        "/files/nothing",
        "/nothing",
    ] {
        let status = server.status("GET", path, "");
        assert!(status == 403 || status == 404, "{path}: {status}");
    }
    assert_eq!(server.status("GET", "/", "Host: example.org\r\n"), 403, "another name");
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(server.status(method, "/files/manifest.json", "Content-Length: 0\r\n"), 405, "{method}");
    }
    let open = Server::start(&runs, &["--address", "0.0.0.0:0"]);
    let token = open.address.split("?token=").nth(1).expect("a token where others can ask").to_owned();
    for path in
        ["/", "/parts", "/events", "/files/manifest.json", "/?token=", "/?token=00000000000000000000000000000000"]
    {
        assert_eq!(open.status("GET", path, ""), 403, "{path} without the token");
    }
    assert_eq!(open.status("GET", &format!("/?token={token}"), ""), 200);
    assert_eq!(open.status("GET", "/parts", &format!("Cookie: limitpoint-token={token}\r\n")), 200);
    let refused = limitpoint(&["watch", &home.path("nowhere")]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
}
