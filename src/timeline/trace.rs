//! The JSON of the Trace Event Format, which Perfetto and Chrome's tracing page read.
//!
//! Each rank is a process (`pid`), and has these tracks (`tid`): its messages, the waits and sleeps of each endpoint, the
//! entries that it forwards, and the calls of each of its threads. Times are in microseconds since the first rank started
//! recording.

use super::event::{Direction, Event, Message};
use super::merged::Merged;
use super::part::{Part, Timed};
use serde_json::{json, Value};
use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Display};
use std::io::{self, Write};

/// The track of messages.
const MESSAGES: u32 = 0;
/// The track of the waits of endpoint 0.
const WAITS: u32 = 1;
/// The track of the sleeps of endpoint 0.
const SLEEPS: u32 = 2;
/// Distance of these tracks from those of the next endpoint.
const ENDPOINT: u32 = 10;
/// The track of entries that are forwarded.
const HOPS: u32 = 3;
/// The track of the calls of thread 0.
const CALLS: u32 = 10_000;

/// Longest duration that a message is drawn with, ns: arrows must begin and end in something that lasts.
const MESSAGE_LASTS: i64 = 5;

/// A trace that is being written.
pub struct Trace<W> {
    to: W,
    first: bool,
}

/// The names of a function's calls, and of waits in it, as JSON.
struct Named {
    calls: String,
    waits: String,
}

impl Named {
    fn new(name: String) -> Named {
        Named { waits: Value::from(format!("wait in {name}")).to_string(), calls: Value::from(name).to_string() }
    }
}

/// Nanoseconds, displayed as microseconds.
struct Micros(i64);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:03}", self.0.unsigned_abs() / 1000, self.0.unsigned_abs() % 1000)
    }
}

impl<W: Write> Trace<W> {
    /// Begins the trace.
    pub fn begin(mut to: W) -> io::Result<Trace<W>> {
        to.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        Ok(Trace { to, first: true })
    }

    /// Adds the events of a rank, with their times shifted by `shift` ns.
    pub fn rank(&mut self, part: &Part, events: &[Timed], shift: i64) -> io::Result<()> {
        let facts = &part.facts;
        let pid = facts.rank;
        self.meta("process_name", pid, 0, json!({ "name": format!("rank {pid} (host {})", facts.host) }))?;
        self.meta("process_sort_index", pid, 0, json!({ "sort_index": pid }))?;
        let mut remarks = Vec::new();
        if part.lost > 0 {
            remarks.push(format!("{} older events are lost", part.lost));
        }
        if !facts.ended {
            remarks.push("did not end in MPI_Finalize".into());
        }
        if !remarks.is_empty() {
            self.meta("process_labels", pid, 0, json!({ "labels": remarks.join(", ") }))?;
        }
        let tracks: BTreeSet<u32> = events.iter().map(track).collect();
        for tid in tracks {
            let name = match tid {
                MESSAGES => "messages".into(),
                WAITS => "waits".into(),
                SLEEPS => "sleeps".into(),
                HOPS => format!("hops at host {}", facts.host),
                tid if tid >= CALLS => format!("calls of thread {}", tid - CALLS),
                tid => {
                    let what = if tid % ENDPOINT == WAITS { "waits" } else { "sleeps" };
                    format!("{what} of VCI {}", tid / ENDPOINT)
                }
            };
            self.meta("thread_name", pid, tid, json!({ "name": name }))?;
            self.meta(
                "thread_sort_index",
                pid,
                tid,
                json!({ "sort_index": if tid < CALLS { tid + 2 * CALLS } else { tid } }),
            )?;
        }
        let names: Vec<Named> = part.names().into_iter().map(Named::new).collect();
        let mut ended: HashMap<u32, i64> = HashMap::new();
        for (i, timed) in events.iter().enumerate() {
            let (pid, tid, ts) = (facts.rank, track(timed), Micros(timed.from + shift));
            let lasts = Micros(timed.lasted);
            match timed.event {
                Event::Message(direction, message) => {
                    // Messages follow each other within nanoseconds at times, and must not overlap.
                    let next = events[i + 1..].iter().find(|next| track(next) == MESSAGES);
                    let room = next.map_or(MESSAGE_LASTS, |next| next.from - timed.from);
                    self.message(part, timed, (direction, message), (ts, Micros(room.min(MESSAGE_LASTS))))?;
                }
                Event::Hop { src, dst, bytes, right } => self.event(format_args!(
                    r#""ph":"i","s":"t","cat":"hop","name":"{src} to {dst}","pid":{pid},"tid":{tid},"ts":{ts},"args":{{"src":{src},"dst":{dst},"bytes":{bytes},"side":"{}"}}"#,
                    if right { "right" } else { "left" }
                ))?,
                Event::Call { name, calls, .. } => {
                    let name = names.get(name as usize).map_or("\"unknown\"", |name| &name.calls);
                    self.event(format_args!(
                        r#""ph":"X","cat":"call","name":{name},"pid":{pid},"tid":{tid},"ts":{ts},"dur":{lasts},"args":{{"calls":{calls}}}"#
                    ))?;
                }
                Event::Wait { vci, .. } | Event::Sleep { vci, .. } => {
                    // Threads that wait at the same time are recorded as one that waits, so their waits may overlap.
                    let before = ended.entry(tid).or_insert(i64::MIN);
                    let (from, end) = (timed.from.max(*before), timed.from + timed.lasted);
                    *before = from.max(end);
                    let (ts, lasts) = (Micros(from + shift), Micros((end - from).max(0)));
                    let name = match timed.event {
                        Event::Wait { name, .. } => names.get(name as usize).map_or("\"wait\"", |name| &name.waits),
                        _ => "\"sleep\"",
                    };
                    self.event(format_args!(
                        r#""ph":"X","cat":"wait","name":{name},"pid":{pid},"tid":{tid},"ts":{ts},"dur":{lasts},"args":{{"vci":{vci}}}"#
                    ))?;
                }
                Event::Payload { direction, peer, bytes, .. } => {
                    let word = if direction == Direction::Out { "to" } else { "from" };
                    let end = Micros(timed.from + timed.lasted + shift);
                    let what = format!(
                        r#""cat":"payload","name":"payload {word} {peer}","id":"{pid}.{i}","pid":{pid},"tid":{tid}"#
                    );
                    self.event(format_args!(r#""ph":"b",{what},"ts":{ts},"args":{{"peer":{peer},"bytes":{bytes}}}"#))?;
                    self.event(format_args!(r#""ph":"e",{what},"ts":{end}"#))?;
                }
            }
        }
        Ok(())
    }

    /// Adds a message, and its end of the arrow from the sender to the receiver. Only ends with the same number, size
    /// and tag belong together, so no arrow joins messages that differ.
    fn message(
        &mut self,
        part: &Part,
        timed: &Timed,
        (direction, m): (Direction, Message),
        (ts, lasts): (Micros, Micros),
    ) -> io::Result<()> {
        let (pid, tid) = (part.facts.rank, track(timed));
        let (word, (src, dst)) = match direction {
            Direction::Out => ("send to", (pid, m.peer)),
            Direction::In => ("receive from", (m.peer, pid)),
        };
        let tagged = part.facts.tagged >> (m.handler & 63) & 1 != 0;
        let (cat, tag) = if tagged { ("message", format!(r#""tag":{},"#, m.tag)) } else { ("protocol", String::new()) };
        let Message { peer, vci, way, bytes, number, .. } = m;
        self.event(format_args!(
            r#""ph":"X","cat":"{cat}","name":"{word} {peer}","pid":{pid},"tid":{tid},"ts":{ts},"dur":{lasts},"args":{{"peer":{peer},{tag}"bytes":{bytes},"way":"{}","vci":{vci},"number":{number}}}"#,
            way.name(),
        ))?;
        // Processes outside the job have other numbers at the other end.
        if peer >= part.facts.ranks {
            return Ok(());
        }
        let end = if direction == Direction::Out { r#""ph":"s""# } else { r#""ph":"f","bp":"e""# };
        let shown = if tagged { m.tag } else { -1 };
        self.event(format_args!(
            r#"{end},"cat":"message","name":"message","id":"{vci}.{src}.{dst}.{number}.{bytes}.{shown}","pid":{pid},"tid":{tid},"ts":{ts}"#
        ))
    }

    fn meta(&mut self, name: &str, pid: u32, tid: u32, args: Value) -> io::Result<()> {
        self.event(format_args!(r#""ph":"M","name":"{name}","pid":{pid},"tid":{tid},"args":{args}"#))
    }

    fn event(&mut self, fields: fmt::Arguments<'_>) -> io::Result<()> {
        let before = if std::mem::take(&mut self.first) { "" } else { "," };
        write!(self.to, "{before}\n{{{fields}}}")
    }

    /// Ends the trace with what is known of the whole.
    pub fn end(mut self, merged: &Merged, clocks: &str) -> io::Result<()> {
        let about = json!({
            "events": merged.events,
            "events_lost": merged.lost.0,
            "ranks_missing": merged.missing,
            "ranks_unfinished": merged.unfinished,
            "clocks": clocks,
        });
        write!(self.to, "\n],\"otherData\":{about}}}\n")?;
        self.to.flush()
    }
}

/// Returns the track of an event.
fn track(timed: &Timed) -> u32 {
    match timed.event {
        Event::Message(..) | Event::Payload { .. } => MESSAGES,
        Event::Wait { vci, .. } => WAITS + ENDPOINT * u32::from(vci),
        Event::Sleep { vci, .. } => SLEEPS + ENDPOINT * u32::from(vci),
        Event::Hop { .. } => HOPS,
        Event::Call { .. } => CALLS.saturating_add(timed.thread),
    }
}
