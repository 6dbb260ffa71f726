//! `ntbring top`: a running job in the terminal, and as a page for a browser.

use crate::harness::{signal, tool, tool_command, Job, Running};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Browsers without a window, by which one of them may be installed.
const BROWSERS: &[&str] = &["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// Starts a busy job of four hosts whose links can be taken down. Returns it once all ranks are seen, and its id.
fn start() -> (Running, String) {
    let job = Job::new(4, 1, &["random_traffic", "1", "100000000"]);
    let job = job.env("NTBRING_FAULT", "command").env("NTBRING_RELIABILITY", "retry").start();
    let first = job.ranks(4)[0].1.to_string();
    until(|| once(&first).contains("4 ranks  4 hosts  0:"));
    (job, first)
}

fn once(job: &str) -> String {
    tool(&["top", "--once", "--interval", "0.2", "--job", job]).1
}

fn until(mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "it does not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the line of a screen that begins with this word.
fn line(screen: &str, word: &str) -> String {
    let found = screen.lines().find(|line| line.split_whitespace().next() == Some(word));
    found.unwrap_or_else(|| panic!("no line {word} in:\n{screen}")).to_string()
}

/// A running `ntbring top --web`.
struct Page {
    child: Child,
    /// The address up to the token: host and port.
    address: String,
    /// The token between two slashes.
    path: String,
}

impl Page {
    fn open(job: &str) -> Page {
        let mut command = tool_command(&["top", "--web", "--interval", "0.2", "--job", job]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let rest = url.trim().strip_prefix("http://").expect("an address");
        let (address, token) = rest.split_once('/').unwrap();
        assert!(address.starts_with("127.0.0.1:"), "{url}");
        Page { child, address: address.into(), path: format!("/{token}") }
    }

    /// Asks for a path under the name `host`; returns the whole answer.
    fn ask(&self, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn data(&self, query: &str) -> Value {
        let answer = self.ask(&format!("{}data{query}", self.path), &self.address);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn one_screen_shows_links_and_ranks() {
    let (mut job, first) = start();
    let ranks = job.ranks(4);
    until(|| line(&once(&first), "0-1").contains("B/s"));
    let shown = once(&first);
    assert!(shown.contains(&format!("job {first}  random_traffic")) && !shown.contains('\x1b'), "{shown}");
    assert!(shown.contains("the largest rate seen so far") && shown.contains("[0]━━━[1]━━━[2]━━━[3]━━━[0]"), "{shown}");
    assert!(["0", "1", "2", "3"].iter().all(|rank| line(&shown, rank).contains("B/s")), "{shown}");
    assert!(tool(&["link", "down", "1-2", "--job", &first]).0);
    let shown = once(&first);
    assert!(
        shown.contains("down: 1-2") && shown.contains("[1]╳╳╳[2]") && line(&shown, "1-2").contains("down"),
        "{shown}"
    );
    assert!(tool(&["link", "up", "1-2", "--job", &first]).0);
    // A stopped process is not one that computes.
    signal(ranks[3].1, libc::SIGSTOP);
    until(|| line(&once(&first), "3").contains("stopped"));
    signal(ranks[3].1, libc::SIGCONT);
    until(|| !line(&once(&first), "3").contains("stopped"));
    // Without a terminal there is no live view, but an error that names the others.
    let (well, said) = tool(&["top", "--job", &first]);
    assert!(!well && said.contains("needs a terminal") && said.contains("ntbring stats --watch"), "{said}");
    job.kill();
    assert!(tool(&["top", "--once", "--job", &first]).1.contains("there is no such job"));
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_link_model_gives_the_limit() {
    let job = Job::new(2, 1, &["random_traffic", "1", "100000000"]).env("NTBRING_LINK_MODEL", "pex8733").start();
    let first = job.ranks(2)[0].1.to_string();
    until(|| once(&first).contains("utilisation: of 3.50 GB/s, link model pex8733"));
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn the_page_is_for_those_who_have_its_address() {
    let (mut job, first) = start();
    let page = Page::open(&first);
    let status = |path: &str, host: &str| page.ask(path, host).lines().next().unwrap().to_string();
    let wrong = page.path.chars().rev().collect::<String>();
    for path in ["/", "/data", wrong.as_str(), &format!("{wrong}data")] {
        assert_eq!(status(path, &page.address), "HTTP/1.1 403 Forbidden", "{path}");
    }
    assert_eq!(status(&page.path, "evil.example"), "HTTP/1.1 403 Forbidden");
    let whole = page.ask(&page.path, &page.address);
    assert!(whole.starts_with("HTTP/1.1 200 OK") && whole.contains("<title>ntbring top</title>"), "{whole}");
    assert!(whole.contains("Content-Security-Policy: default-src 'none'"), "{whole}");
    let data = page.data("");
    let numbers: Vec<u64> =
        data["ranks"].as_array().unwrap().iter().map(|rank| rank["rank"].as_u64().unwrap()).collect();
    assert_eq!((numbers, &data["job"]["program"]), (vec![0, 1, 2, 3], &"random_traffic".into()));
    assert!(data["detail"].is_null() && data["links"].as_array().unwrap().iter().all(|link| link["up"] == true));
    until(|| page.data("")["links"][0]["directions"][0]["bytes_per_s"].as_f64() > Some(0.0));
    let detail = page.data("?rank=2")["detail"].clone();
    assert!(detail["rank"] == 2 && detail["counters"].as_array().unwrap().len() > 5, "{detail}");
    assert!(tool(&["link", "down", "1-2", "--job", &first]).0);
    let up = || page.data("")["links"].as_array().unwrap().iter().map(|link| link["up"] == true).collect::<Vec<_>>();
    until(|| up() == [true, false, true, true]);
    // The page outlives the job.
    job.kill();
    until(|| page.data("")["ended"] == true);
    assert_eq!(page.data("")["ranks"].as_array().unwrap().len(), 4);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_browser_shows_the_page() {
    let works = |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    let Some(browser) = BROWSERS.iter().find(works) else {
        return println!("skipped: none of {} is installed", BROWSERS.join(", "));
    };
    let (_job, first) = start();
    let page = Page::open(&first);
    assert!(tool(&["link", "down", "1-2", "--job", &first]).0);
    let own = tempfile::tempdir().unwrap();
    let mut command = Command::new(browser);
    // As root, Chromium has no sandbox; its time is virtual, so the page asks for data several times.
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", own.path().display()));
    let output = command.arg(format!("http://{}{}", page.address, page.path)).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    let cell = |text: &str| shown.contains(&format!(">{text}</td>"));
    assert!(shown.contains(&format!("job {first} · random_traffic · 4 ranks on 4 hosts")), "{shown}");
    assert!(["0-1", "1-2", "2-3", "3-0", "down"].iter().all(|text| cell(text)), "{shown}");
    assert!(shown.contains(">live</span>") && shown.contains(">down</text>"), "{shown}");
    assert_eq!(shown.matches("<circle").count(), 4, "{shown}");
}
