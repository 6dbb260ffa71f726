//! The connection to the process manager: complete lines.

use crate::PmiError;
use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg};
use nix::sys::socket::{send, shutdown, MsgFlags, Shutdown};
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Largest size in bytes of a question.
pub(crate) const LINE_MAX: usize = 1024;
/// Largest size in bytes of an answer. The map of a large job's hosts is longer than a question.
const ANSWER_MAX: usize = 1 << 20;

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    fd: OwnedFd,
    /// Bytes that were read and not yet returned.
    buffer: Vec<u8>,
}

/// One line of the process manager, in words.
#[derive(Debug)]
pub(crate) struct Answer {
    question: String,
    line: String,
    words: Vec<(String, String)>,
}

impl Connection {
    /// Uses the descriptor that the process manager has left open in this process.
    pub(crate) fn inherited(fd: i32) -> Result<Connection, PmiError> {
        fcntl(fd, FcntlArg::F_GETFD).map_err(|errno| PmiError::Descriptor { fd, source: errno.into() })?;
        // SAFETY: it is open, and PMI_FD means that the PMI client of this process owns it.
        Ok(Connection { fd: unsafe { OwnedFd::from_raw_fd(fd) }, buffer: Vec::new() })
    }

    /// Connects to a port, given as HOST:PORT.
    pub(crate) fn to_port(address: &str) -> Result<Connection, PmiError> {
        let error = |source| PmiError::Connect { address: address.into(), source };
        let stream = TcpStream::connect(address).map_err(error)?;
        stream.set_nodelay(true).map_err(error)?;
        Ok(Connection { fd: stream.into(), buffer: Vec::new() })
    }

    /// Returns the number of the descriptor.
    pub(crate) fn fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Sends a line.
    pub(crate) fn say(&self, line: &str) -> Result<(), PmiError> {
        send_all(self.fd(), line.as_bytes())
    }

    /// Waits for a line.
    pub(crate) fn hear(&mut self, question: &str) -> Result<Answer, PmiError> {
        let mut searched = 0;
        let end = loop {
            if let Some(at) = self.buffer[searched..].iter().position(|&byte| byte == b'\n') {
                break searched + at;
            }
            searched = self.buffer.len();
            if searched > ANSWER_MAX {
                return Err(malformed(question, &self.text(), "a shorter line"));
            }
            let mut chunk = [0; 4096];
            match nix::unistd::read(self.fd(), &mut chunk) {
                Ok(0) if self.buffer.is_empty() => {
                    return Err(PmiError::Closed { question: question.trim_end().into() })
                }
                Ok(0) => return Err(malformed(question, &self.text(), "a complete line")),
                Ok(read) => self.buffer.extend_from_slice(&chunk[..read]),
                Err(Errno::EINTR) => {}
                // The process manager has ended without reading everything.
                Err(Errno::ECONNRESET) => return Err(PmiError::Closed { question: question.trim_end().into() }),
                Err(errno) => return Err(PmiError::Io { doing: "waiting for an answer", source: errno.into() }),
            }
        };
        let line: Vec<u8> = self.buffer.drain(..=end).take(end).collect();
        let line = String::from_utf8(line)
            .map_err(|error| malformed(question, &String::from_utf8_lossy(error.as_bytes()), "text"))?;
        Answer::parse(question, line)
    }

    /// Checks that all that was said was heard.
    pub(crate) fn expect_quiet(&self, question: &str) -> Result<(), PmiError> {
        match self.buffer.is_empty() {
            true => Ok(()),
            false => Err(malformed(question, &self.text(), "nothing after the answer")),
        }
    }

    /// Ends the connection, in all processes that have it.
    pub(crate) fn end(self) {
        if let Err(errno) = shutdown(self.fd.as_fd().as_raw_fd(), Shutdown::Both) {
            log::debug!("shutdown of the connection to the process manager: {errno}");
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.buffer).into_owned()
    }
}

/// Sends all bytes. A closed connection is an error and not the signal SIGPIPE.
pub(crate) fn send_all(fd: i32, mut bytes: &[u8]) -> Result<(), PmiError> {
    while !bytes.is_empty() {
        match send(fd, bytes, MsgFlags::MSG_NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::EINTR) => {}
            Err(Errno::EPIPE | Errno::ECONNRESET) => {
                return Err(PmiError::Closed { question: String::from_utf8_lossy(bytes).trim_end().into() })
            }
            Err(errno) => return Err(PmiError::Io { doing: "sending a question", source: io::Error::from(errno) }),
        }
    }
    Ok(())
}

impl Answer {
    fn parse(question: &str, line: String) -> Result<Answer, PmiError> {
        let mut words = Vec::new();
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                Some((key, value)) if !key.is_empty() => words.push((key.into(), value.into())),
                _ => return Err(malformed(question, &line, "words of the form key=value")),
            }
        }
        Ok(Answer { question: question.into(), line, words })
    }

    /// Returns the value of a word.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.words.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a word that must be there.
    pub(crate) fn text(&self, key: &str) -> Result<&str, PmiError> {
        self.get(key).ok_or_else(|| self.unexpected(&format!("{key}=...")))
    }

    /// Returns the value of a word that must be a number.
    pub(crate) fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T, PmiError> {
        self.text(key)?.parse().map_err(|_| self.unexpected(&format!("a number after {key}=")))
    }

    /// Checks the kind of the answer.
    pub(crate) fn expect_command(&self, command: &str) -> Result<(), PmiError> {
        match self.get("cmd") == Some(command) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("cmd={command}"))),
        }
    }

    /// Returns why the request was refused, if it was.
    pub(crate) fn refusal(&self) -> Option<String> {
        match self.get("rc") {
            None | Some("0") => None,
            Some(code) => Some(self.get("msg").map_or(format!("rc={code}"), Into::into)),
        }
    }

    /// Makes an error of this answer.
    pub(crate) fn unexpected(&self, wanted: &str) -> PmiError {
        malformed(&self.question, &self.line, wanted)
    }
}

fn malformed(question: &str, answer: &str, wanted: &str) -> PmiError {
    let answer = answer.chars().take(200).collect::<String>().trim_end().into();
    PmiError::Malformed { question: question.trim_end().into(), answer, wanted: wanted.into() }
}
