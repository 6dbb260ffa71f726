//! `ntbring top --web`: a job as a page for a browser on this machine.
//!
//! The address contains a random token, without which nothing is answered: other users of the machine cannot guess it.
//! The server listens on 127.0.0.1 alone. It answers only requests that name it as 127.0.0.1 or localhost, so that no
//! page from elsewhere can read it under a name that leads to this machine (DNS rebinding).
//!
//! | file | holds |
//! |---|---|
//! | `server` | connections: their number, their time limits, reading requests and writing answers |
//! | `answer` | which answer a request gets, without I/O |
//! | `page.html`, `page.css`, `page.js` | the page |

mod answer;
mod server;

use super::detail::Detail;
use super::sample::Sample;
use super::source::Source;
use answer::{Site, Token};
use serde::Serialize;
use std::error::Error;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Age of the latest sample from which on rates since then say nothing about the present.
const STALE: Duration = Duration::from_secs(10);

/// The data of the page.
#[derive(Serialize)]
struct Frame<'a> {
    #[serde(flatten)]
    sample: &'a Sample,
    /// Interval at which the page asks for data, seconds.
    interval_s: f64,
    /// Details of the rank that was asked for.
    detail: Option<&'a Detail>,
}

/// The job whose samples the page shows. It is read only when a page asks, and not more often than once an interval.
struct Shared {
    interval: Duration,
    latest: Mutex<Latest>,
}

struct Latest {
    source: Source,
    sample: Sample,
    /// Time of the sample.
    taken: Instant,
}

impl Shared {
    /// Returns the present sample as JSON, with the details of a rank.
    fn json(&self, rank: Option<u64>) -> Result<String, Box<dyn Error>> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let Latest { source, sample, taken } = &mut *latest;
        let age = taken.elapsed();
        // Pages ask a little sooner or later than after an interval.
        if age > self.interval.mul_f64(0.8) {
            if age > STALE.max(3 * self.interval) {
                source.forget();
            }
            (*taken, *sample) = (Instant::now(), source.next()?);
        }
        let detail = rank.and_then(|rank| sample.detail(rank));
        Ok(serde_json::to_string(&Frame { sample, interval_s: self.interval.as_secs_f64(), detail })?)
    }
}

/// Serves the page until the process is ended.
pub fn run(mut source: Source, port: u16, interval: Duration) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| format!("cannot listen on 127.0.0.1:{port}: {error}; choose another --port"))?;
    let token = Token::random()?;
    // With this reading, the first one for a page has rates.
    let (taken, sample) = (Instant::now(), source.next()?);
    println!("http://{}/{}/", listener.local_addr()?, token.text());
    eprintln!("the page shows the job while this command runs; Ctrl-C ends it");
    let shared = Shared { interval, latest: Mutex::new(Latest { source, sample, taken }) };
    let site = Site { token, data: Box::new(move |rank| shared.json(rank).map_err(|error| error.to_string())) };
    Ok(server::serve(&listener, &site)?)
}
