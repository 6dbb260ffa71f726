//! Description of the messages that wait to be sent, for the diagnosis of a hang.

use super::Outbound;

impl Outbound {
    /// Lines on every flow in which something waits.
    pub fn describe(&self) -> Vec<String> {
        let waiting = self.flows.iter().enumerate().filter(|(_, f)| !f.is_idle() || f.allowance.len() > 0);
        let mut lines: Vec<String> = waiting
            .map(|(rank, f)| {
                let lane = &self.outboxes[f.line.outbox].lane;
                format!(
                    "to rank {rank}: {}; lane: {} of {} lines not known to be free",
                    f.describe(),
                    lane.taken(),
                    lane.lines(),
                )
            })
            .collect();
        if lines.is_empty() {
            lines.push("nothing waits to be sent".into());
        }
        lines
    }
}
