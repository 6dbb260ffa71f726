//! The state of a rank: what it does, and for which ranks it waits.

use crate::reading::Rank;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Age of counters above which a rank has not answered the latest request for them: it is not in MPI.
pub const UNANSWERED: Duration = Duration::from_millis(500);
/// Waiting time from which a rank is called blocked.
pub const BLOCKED: Duration = Duration::from_secs(1);

/// The activity of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// It is in MPI, and waits for nothing in particular.
    InMpi,
    /// It has not answered since the latest request: it computes.
    Computing,
    /// It waits for other ranks.
    Waiting,
    /// It has waited for longer than [`BLOCKED`].
    Blocked,
    /// A signal or a debugger has stopped the process.
    Stopped,
    /// The process has ended.
    Ended,
}

/// A reason for which a rank waits, and the rank for which it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// Name of the reason, as in the statistics.
    pub reason: &'static str,
    /// The rank; None: any rank.
    pub rank: Option<u64>,
}

/// The state of a rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct State {
    /// Its activity.
    pub activity: Activity,
    /// Time since it last found something to do, seconds.
    pub waiting_s: f64,
    /// The reasons for which it waits; empty unless it does.
    pub waits: Vec<Wait>,
    /// Bytes of messages that have arrived and have not been received; None if it is not known at present.
    pub unexpected_bytes: Option<u64>,
    /// Number of these messages.
    pub unexpected_msgs: Option<u64>,
}

impl State {
    /// Returns the state of a rank that has ended.
    pub fn ended() -> State {
        let (waiting_s, waits) = (0.0, Vec::new());
        State { activity: Activity::Ended, waiting_s, waits, unexpected_bytes: None, unexpected_msgs: None }
    }

    /// Returns the state of a rank whose counters have this age.
    pub fn of(rank: &Rank, age: Duration, stopped: bool) -> State {
        let waits = Vec::new();
        let waiting_s = 0.0;
        let activity = match rank.pid {
            None => Activity::Ended,
            Some(_) if stopped => Activity::Stopped,
            Some(_) if age > UNANSWERED => Activity::Computing,
            Some(_) if waits.is_empty() => Activity::InMpi,
            Some(_) if waiting_s >= BLOCKED.as_secs_f64() => Activity::Blocked,
            Some(_) => Activity::Waiting,
        };
        State { activity, waiting_s, waits, unexpected_bytes: None, unexpected_msgs: None }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.activity {
            Activity::InMpi => write!(f, "in MPI"),
            Activity::Computing => write!(f, "computing"),
            Activity::Stopped => write!(f, "stopped"),
            Activity::Ended => write!(f, "ended"),
            Activity::Waiting => write!(f, "waits: {}", reasons(&self.waits)),
            Activity::Blocked => write!(f, "blocked {:.0} s: {}", self.waiting_s, reasons(&self.waits)),
        }
    }
}

/// Joins reasons, those with the same name to one: "message of 1 3, room at 2".
fn reasons(waits: &[Wait]) -> String {
    let mut text = String::new();
    for (i, wait) in waits.iter().enumerate() {
        let rank = wait.rank.map_or_else(|| "any rank".into(), |rank| rank.to_string());
        let goes_on = i > 0 && waits[i - 1].reason == wait.reason;
        let comma = if i == 0 { "" } else { ", " };
        text += &match goes_on {
            true => format!(" {rank}"),
            false => format!("{comma}{} {rank}", phrase(wait.reason)),
        };
    }
    text
}

/// Returns the words that lead from the name of a reason to a rank.
fn phrase(reason: &str) -> String {
    let joint = match reason {
        "message" | "payload" => "from",
        "receive" => "by",
        "room" => "at",
        "credit" => "of",
        _ => "with",
    };
    format!("{reason} {joint}")
}
