//! The state of a rank: what it does, and for which ranks it waits.

use super::units;
use crate::reading::Rank;
use ntbring_endpoint::{Reason, Wait};
use serde::Serialize;
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

/// The state of a rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct State {
    /// Its activity.
    pub activity: Activity,
    /// Time since it last found something to do, or since a rank that computes was last in MPI, seconds.
    pub since_s: f64,
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
        State { activity: Activity::Ended, since_s: 0.0, waits: vec![], unexpected_bytes: None, unexpected_msgs: None }
    }

    /// Returns the state of a rank whose counters have this age.
    pub fn of(rank: &Rank, age: Duration, stopped: bool) -> State {
        if rank.pid.is_none() {
            return State::ended();
        }
        let published = rank.figures.state.as_ref();
        let (unexpected_bytes, unexpected_msgs) =
            (published.map(|state| state.unexpected_bytes), published.map(|state| state.unexpected_msgs));
        // Waits are those of the time of publication: they say nothing about a rank that has not answered since.
        let present = published.filter(|_| age <= UNANSWERED && !stopped);
        let waiting_s = present.map_or(0.0, |state| state.waiting_us as f64 / 1e6);
        let waits = present.map_or_else(Vec::new, |state| state.waits.clone());
        let activity = match () {
            () if stopped => Activity::Stopped,
            () if age > UNANSWERED => Activity::Computing,
            () if waiting_s >= BLOCKED.as_secs_f64() => Activity::Blocked,
            () if waits.is_empty() => Activity::InMpi,
            () => Activity::Waiting,
        };
        let since_s = if activity == Activity::Computing { age.as_secs_f64() } else { waiting_s };
        State { activity, since_s, waits, unexpected_bytes, unexpected_msgs }
    }

    /// Returns the state as text, in a job of `size` ranks.
    pub fn text(&self, size: u64) -> String {
        let reasons = reasons(&self.waits, size);
        match self.activity {
            Activity::InMpi => "in MPI".into(),
            Activity::Computing => format!("computing {}", units::age(self.since_s)),
            Activity::Stopped => "stopped".into(),
            Activity::Ended => "ended".into(),
            Activity::Waiting => reasons,
            Activity::Blocked if reasons.is_empty() => format!("blocked {:.0} s", self.since_s),
            Activity::Blocked => format!("blocked {:.0} s: {reasons}", self.since_s),
        }
    }
}

/// Joins waits: "message from 1 3, room at 2".
fn reasons(waits: &[Wait], size: u64) -> String {
    let ranks = |waits: &[Wait]| {
        let name = |wait: &Wait| match wait.rank {
            None => "any".into(),
            Some(rank) if rank >= size => "another job".into(),
            Some(rank) => rank.to_string(),
        };
        waits.iter().map(name).collect::<Vec<String>>().join(" ")
    };
    let by_reason = waits.chunk_by(|a, b| a.reason == b.reason);
    by_reason.map(|waits| format!("{} {}", phrase(waits[0].reason), ranks(waits))).collect::<Vec<_>>().join(", ")
}

/// Returns the words that lead from a reason to ranks.
fn phrase(reason: Reason) -> &'static str {
    match reason {
        Reason::Message => "message from",
        Reason::Payload => "payload from",
        Reason::Room => "room at",
        Reason::Credit => "credit of",
        Reason::Receive => "receive by",
        Reason::Collective => "collective with",
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::rank;
    use super::*;

    fn with(waiting_us: u64, waits: &[(Reason, Option<u64>)]) -> Rank {
        let waits = waits.iter().map(|&(reason, rank)| Wait { reason, rank, count: 1, bytes: 0 }).collect();
        let mut rank = rank(0);
        rank.figures.state =
            Some(ntbring_endpoint::State { waiting_us, unexpected_msgs: 2, unexpected_bytes: 3000, waits });
        rank
    }

    const RECENT: Duration = Duration::from_millis(1);

    #[test]
    fn states_are_told_apart() {
        use Reason::{Message, Room};
        let text = |rank: &Rank, age, stopped| State::of(rank, age, stopped).text(8);
        let waiting = with(5, &[(Message, None), (Message, Some(3)), (Room, Some(1)), (Room, Some(9))]);
        assert_eq!(text(&waiting, RECENT, false), "message from any 3, room at 1 another job");
        assert_eq!(text(&waiting, 2 * UNANSWERED, false), "computing 1.0 s");
        assert_eq!(text(&waiting, RECENT, true), "stopped");
        assert_eq!(text(&with(12_000_000, &[(Message, Some(3))]), RECENT, false), "blocked 12 s: message from 3");
        assert_eq!(text(&with(2_000_000, &[]), RECENT, false), "blocked 2 s");
        assert_eq!(text(&with(5, &[]), RECENT, false), "in MPI");
        assert_eq!(text(&Rank { pid: None, ..waiting.clone() }, RECENT, false), "ended");
        let state = State::of(&waiting, 2 * UNANSWERED, false);
        assert_eq!((state.waits.len(), state.unexpected_bytes, state.unexpected_msgs), (0, Some(3000), Some(2)));
    }
}
