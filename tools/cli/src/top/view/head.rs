//! The first lines: the job, the meaning of utilisation, and the ring.

use super::style;
use crate::top::keys::Ui;
use crate::top::sample::{Origin, Sample};
use crate::top::units::{bytes, clock};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::Frame;

/// Number of lines.
pub const LINES: u16 = 4;

/// Draws the lines; without `ui` nothing about the view itself.
pub fn draw(frame: &mut Frame, area: Rect, sample: &Sample, ui: Option<&Ui>) {
    let lines = vec![job(sample, ui), limit(sample), ring(sample, area.width), Line::default()];
    frame.render_widget(Paragraph::new(lines), area);
}

fn job(sample: &Sample, ui: Option<&Ui>) -> Line<'static> {
    let job = &sample.job;
    let mut spans = vec![Span::styled(format!("job {}", job.id), Style::new().add_modifier(Modifier::BOLD))];
    let paused = ui.is_some_and(|ui| ui.paused);
    // It comes first, so that it is not cut off.
    match (sample.ended, paused) {
        (true, _) => spans.push(Span::styled("  THE JOB HAS ENDED", style::BAD)),
        (false, true) => spans.push(Span::styled("  PAUSED", style::HEADING)),
        (false, false) => {}
    }
    let mut add = |text: String| spans.push(Span::raw(text));
    job.program.iter().for_each(|program| add(format!("  {program}")));
    match sample.size {
        0 => add("  no rank has joined yet".into()),
        size => add(format!("  {}  {}", count(size, "rank"), count(sample.hosts, "host"))),
    }
    let joined = sample.ranks.len() as u64;
    if joined < sample.size {
        add(format!(" ({joined} joined)"));
    }
    job.running_s.iter().for_each(|seconds| add(format!("  {}", clock(*seconds))));
    if let Some(ui) = ui {
        add(format!("  every {} s", ui.interval.as_secs_f64()));
    }
    spans.into()
}

fn count(count: u64, of: &str) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}

/// Explains the utilisation, and names the links that are down.
fn limit(sample: &Sample) -> Line<'static> {
    if sample.hosts == 1 {
        return "one host, so no links".into();
    }
    let limit = sample.limit.bytes_per_s.map(|rate| bytes(rate, "/s"));
    let text = match (limit, sample.limit.origin) {
        (None, _) => "utilisation: no rates are known yet".into(),
        (Some(limit), Origin::LargestSeen) => format!("utilisation: of {limit}, the largest rate seen so far"),
        (Some(limit), Origin::LinkModel) => {
            format!("utilisation: of {limit}, link model {}", sample.job.link_model.as_deref().unwrap_or_default())
        }
    };
    let mut spans = vec![Span::raw(text)];
    let down: Vec<&str> = sample.links.iter().filter(|link| !link.up).map(|link| link.link.as_str()).collect();
    if !down.is_empty() {
        spans.push(Span::styled(format!("   down: {}", down.join(" ")), style::BAD));
    }
    spans.into()
}

/// Draws the ring as one line, if it fits.
fn ring(sample: &Sample, width: u16) -> Line<'static> {
    let mut spans = Vec::new();
    for link in &sample.links {
        spans.push(Span::raw(format!("[{}]", link.ends[0])));
        spans.push(match link.up {
            true => Span::styled("━━━", style::load(link.utilisation())),
            false => Span::styled("╳╳╳", style::BAD),
        });
    }
    spans.extend(sample.links.first().map(|first| Span::raw(format!("[{}]", first.ends[0]))));
    let line = Line::from(spans);
    if line.width() > usize::from(width) {
        return Line::default();
    }
    line
}
