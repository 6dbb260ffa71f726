//! Connections of browsers: one request each, a few at a time, each for a limited time.

use super::answer::{Answer, Request, Site};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Largest number of connections at a time; further ones are refused.
const CONNECTIONS: usize = 16;
/// Longest time for a request to arrive, and for its answer to leave.
const LIMIT: Duration = Duration::from_secs(5);
/// Largest request, bytes.
const REQUEST: usize = 8192;
/// Largest number of headers.
const HEADERS: usize = 64;
/// Pause after a connection that could not be accepted, e.g. for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests for ever.
pub fn serve(listener: &TcpListener, site: &Site) -> io::Result<()> {
    let open = AtomicUsize::new(0);
    thread::scope(|scope| loop {
        let Ok((mut stream, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        if open.load(Ordering::Relaxed) >= CONNECTIONS {
            let busy = Answer::plain("503 Service Unavailable", "too many connections; try again");
            // There is room for so short an answer in the connection's buffer.
            let _ = stream.set_nonblocking(true).and_then(|()| send(&mut stream, &busy));
            continue;
        }
        let place = Place::take(&open);
        // Without a thread the connection is closed; a browser that has gone away is no error.
        let _ = thread::Builder::new().spawn_scoped(scope, move || {
            let _place = place;
            let _ = handle(&mut stream, site);
        });
    })
}

/// The place of one connection among those that are open.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(open: &'a AtomicUsize) -> Place<'a> {
        open.fetch_add(1, Ordering::Relaxed);
        Place(open)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn handle(stream: &mut TcpStream, site: &Site) -> io::Result<()> {
    stream.set_write_timeout(Some(LIMIT))?;
    let answer = match read(stream)? {
        Some(bytes) => answer(&bytes, site),
        None => Answer::plain("431 Request Header Fields Too Large", "the request is too long"),
    };
    send(stream, &answer)?;
    // Unread bytes would end the connection before the answer has arrived.
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(PAUSE))?;
    let _ = stream.read(&mut [0; REQUEST]);
    Ok(())
}

/// Reads a request up to the end of its headers; None if it is too long.
fn read(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let (end, mut bytes, mut part) = (Instant::now() + LIMIT, Vec::new(), [0; 1024]);
    while bytes.len() < REQUEST {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(&part[..count]),
        }
        if bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// Returns the answer to the bytes of a request.
fn answer(bytes: &[u8], site: &Site) -> Answer {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let whole = parsed.parse(bytes).is_ok_and(|status| status.is_complete());
    let (true, Some(method), Some(target)) = (whole, parsed.method, parsed.path) else {
        return Answer::plain("400 Bad Request", "this is no request of HTTP");
    };
    let mut hosts = parsed.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    let host = hosts.next().and_then(|host| std::str::from_utf8(host.value).ok());
    let host = host.filter(|_| hosts.next().is_none());
    site.answer(&Request { method, target, host })
}

fn send(stream: &mut TcpStream, answer: &Answer) -> io::Result<()> {
    let own = match &answer.nonce {
        Some(nonce) => format!("; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'"),
        None => String::new(),
    };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'{own}\r\n\r\n",
        answer.status,
        answer.kind,
        answer.body.len()
    );
    stream.write_all(&[head.as_bytes(), answer.body.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::super::answer::Token;
    use super::*;

    fn site() -> Site {
        Site { token: Token::random().unwrap(), data: Box::new(|_| Ok("{}".into())) }
    }

    #[test]
    fn requests_are_parsed() {
        let site = site();
        let status = |text: &str| answer(text.as_bytes(), &site).status;
        let path = format!("GET /{}/data HTTP/1.1\r\n", site.token.text());
        assert_eq!(status(&format!("{path}Host: localhost\r\n\r\n")), "200 OK");
        assert_eq!(status(&format!("{path}host: localhost\r\nHost: evil.example\r\n\r\n")), "403 Forbidden");
        assert_eq!(status(&format!("{path}\r\n")), "403 Forbidden");
        assert_eq!(status("\x16\x03\x01\r\n\r\n"), "400 Bad Request");
        assert_eq!(status(&format!("{path}Host: localhost\r\n")), "400 Bad Request");
    }

    /// Serves until the test process ends, and returns the address.
    fn start() -> (std::net::SocketAddr, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, site) = (listener.local_addr().unwrap(), site());
        let path = format!("/{}/data", site.token.text());
        thread::spawn(move || serve(&listener, &site));
        (address, path)
    }

    fn ask(mut stream: TcpStream, text: &str) -> String {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // The server may refuse before it has read.
        let _ = stream.write_all(text.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn connections_are_limited_and_released() {
        let (address, path) = start();
        let good = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let connect = || TcpStream::connect(address).unwrap();
        assert!(ask(connect(), &good).starts_with("HTTP/1.1 200 OK"));
        let long = format!("GET {path} HTTP/1.1\r\nX: {}", "x".repeat(REQUEST));
        assert!(ask(connect(), &long).starts_with("HTTP/1.1 431 "));
        let idle: Vec<TcpStream> = (0..CONNECTIONS).map(|_| connect()).collect();
        assert!(ask(connect(), &good).starts_with("HTTP/1.1 503 "));
        drop(idle);
        while !ask(connect(), &good).starts_with("HTTP/1.1 200 OK") {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
