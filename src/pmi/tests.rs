//! A fake process manager, the dialogue with it, and the map of hosts.

mod dialogue;
mod mapping;
mod sharing;

use crate::Session;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// The beginning of each dialogue.
const START: [(&str, &str); 3] = [
    ("cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"),
    ("cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"),
    ("cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_7\n"),
];
const END: (&str, &str) = ("cmd=finalize", "cmd=finalize_ack\n");

/// A process manager that expects questions and gives answers, and then expects the end of the connection.
struct Fake {
    thread: JoinHandle<()>,
    fd: i32,
}

impl Fake {
    /// Answers in pieces of some bytes.
    fn new(dialogue: &[(&str, &str)], piece: usize) -> Fake {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let lines: Vec<_> = dialogue.iter().map(|(ask, answer)| (ask.to_string(), answer.to_string())).collect();
        let thread = std::thread::spawn(move || {
            let mut writer = theirs.try_clone().unwrap();
            let mut reader = BufReader::new(theirs);
            for (ask, answer) in lines {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                assert_eq!(line, format!("{ask}\n"));
                for piece in answer.as_bytes().chunks(piece) {
                    writer.write_all(piece).unwrap();
                    std::thread::yield_now();
                }
            }
            writer.shutdown(std::net::Shutdown::Write).unwrap();
            let mut more = String::new();
            // A connection that is closed while an answer is unread is reset.
            let _ = reader.read_line(&mut more);
            assert_eq!(more, "");
        });
        Fake { thread, fd: ours.into_raw_fd() }
    }

    /// The usual beginning, what a test adds, and perhaps the end.
    fn after_start(more: &[(&str, &str)], piece: usize) -> Fake {
        let dialogue: Vec<_> = START.iter().chain(more).copied().collect();
        Fake::new(&dialogue, piece)
    }

    /// The environment of a process that it has started: rank 3 of 8.
    fn lookup(&self) -> impl Fn(&str) -> Option<String> {
        let fd = self.fd;
        move |name| match name {
            "PMI_FD" => Some(fd.to_string()),
            "PMI_RANK" => Some("3".into()),
            "PMI_SIZE" => Some("8".into()),
            _ => None,
        }
    }

    fn join(self) {
        self.thread.join().unwrap();
    }
}

fn opened(fake: &Fake) -> Session {
    let session = Session::new();
    session.open_with(&fake.lookup()).unwrap();
    session
}
