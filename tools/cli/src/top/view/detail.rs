//! One rank in detail.

use super::style;
use crate::top::detail::{CounterLine, Detail, PeerLine};
use crate::top::sample::Sample;
use crate::top::units::{bytes, rate, short};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Row, Table};
use ratatui::Frame;

/// Draws a rank's counters and its peers, from this line on.
pub fn draw(frame: &mut Frame, area: Rect, sample: &Sample, detail: &Detail, first: usize) {
    let [title, tables] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    frame.render_widget(heading(sample, detail.rank), title);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(2).areas(tables);
    let skip = |lines: usize, area: Rect| first.min(lines.saturating_sub(usize::from(area.height.saturating_sub(1))));
    let counters = detail.counters.iter().skip(skip(detail.counters.len(), left)).map(counter);
    let widths = [Constraint::Fill(1), Constraint::Length(8), Constraint::Length(8)];
    let names = [Cell::from("counter"), number("total"), number("per s")];
    frame.render_widget(Table::new(counters, widths).header(Row::new(names).style(style::HEADING)), left);
    let peers = detail.peers.iter().skip(skip(detail.peers.len(), right)).map(peer);
    let widths = [5, 5, 5, 8, 10].map(Constraint::Length);
    let names = ["to", "host", "hops", "msgs/s", "bytes/s"].map(number);
    frame.render_widget(Table::new(peers, widths).header(Row::new(names).style(style::HEADING)), right);
}

fn heading(sample: &Sample, rank: u64) -> Line<'static> {
    let Some(line) = sample.ranks.iter().find(|line| line.rank == rank) else { return Line::default() };
    let process = line.pid.map_or_else(String::new, |pid| format!(", process {pid}"));
    let start = Span::styled(format!("rank {rank} on host {}{process}: ", line.host), style::HEADING);
    vec![start, Span::styled(line.doing.clone(), style::activity(line.state.activity))].into()
}

fn counter(line: &CounterLine) -> Row<'static> {
    Row::new([Cell::from(line.name), number(short(line.total as f64)), number(rate(line.per_s, short))])
}

fn peer(line: &PeerLine) -> Row<'static> {
    let hops = format!("{}{}", line.distance, if line.relayed { "r" } else { "" });
    let msgs = rate(line.msgs_per_s, short);
    let data = rate(line.bytes_per_s, |value| bytes(value, "/s"));
    Row::new([line.rank.to_string(), line.host.to_string(), hops, msgs, data].map(number))
}

fn number(text: impl Into<String>) -> Cell<'static> {
    Cell::from(Text::from(Line::from(text.into()).right_aligned()))
}
