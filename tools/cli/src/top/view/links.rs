//! The table of links.

use super::style;
use crate::top::keys::{Pane, Ui};
use crate::top::links::{Count, Direction, LinkLine};
use crate::top::sample::Sample;
use crate::top::units::{bytes, rate, short};
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table};
use ratatui::Frame;

/// Width from which dropped entries have a column.
const WIDE: u16 = 96;
/// Width of all columns but the bars, with the spaces between.
const FIXED: u16 = 62;
const DROPPED: u16 = 8;
/// Smallest and largest width of a bar.
const BAR: [u16; 2] = [3, 20];

/// Draws the table. Without `ui` it begins with the first link.
pub fn draw(frame: &mut Frame, area: Rect, sample: &Sample, ui: Option<&Ui>) {
    if area.height < 2 || sample.links.is_empty() {
        return;
    }
    let rows = usize::from(area.height) - 2;
    // The last link is not further up than the last line.
    let first = ui.map_or(0, |ui| ui.link).min(sample.links.len().saturating_sub(rows));
    let wide = area.width >= WIDE;
    let bar = (area.width.saturating_sub(FIXED + if wide { DROPPED } else { 0 }) / 2).clamp(BAR[0], BAR[1]);
    let name = match sample.links.len() > rows {
        true => format!("{}-{}/{}", first + 1, first + rows, sample.links.len()),
        false => "link".into(),
    };
    let mut heading = vec![Cell::from(name), "state".into()];
    for side in ["right", "left"] {
        heading.extend([right(format!("to {side}")), "".into(), "".into()]);
    }
    heading.extend([right("resent".into()), right("damaged".into())]);
    let mut widths = vec![8, 5, 10, bar, 4, 10, bar, 4, 6, 7];
    if wide {
        heading.push(right("dropped".into()));
        widths.push(DROPPED - 1);
    }
    let focus = ui.is_some_and(|ui| ui.pane == Pane::Links && !ui.detail);
    let style = if focus { style::HEADING.add_modifier(Modifier::REVERSED) } else { style::HEADING };
    let lines = sample.links.iter().skip(first).take(rows).map(|link| row(link, bar, wide));
    let table = Table::new(lines, widths.into_iter().map(Constraint::Length));
    frame.render_widget(table.header(Row::new(heading).style(style)), area);
}

fn row(link: &LinkLine, bar: u16, wide: bool) -> Row<'static> {
    let state = if link.up { Cell::from("up") } else { Cell::from("down").style(style::BAD) };
    let mut cells = vec![Cell::from(link.link.clone()), state];
    for direction in &link.directions {
        cells.extend(flow(direction, bar));
    }
    cells.extend([count(link.resent), count(link.damaged)]);
    if wide {
        cells.push(count(link.dropped));
    }
    Row::new(cells)
}

/// Returns the rate of a direction, its utilisation as a bar, and in percent.
fn flow(direction: &Direction, width: u16) -> [Cell<'static>; 3] {
    let part = direction.utilisation;
    let percent = part.map_or_else(String::new, |part| format!("{:.0}%", 100.0 * part));
    [
        right(rate(direction.bytes_per_s, |value| bytes(value, "/s"))),
        Cell::from(gauge(part.unwrap_or(0.0), width)).style(style::load(part)),
        right(percent),
    ]
}

/// Returns a bar whose full part is `part` of the width, in eighths of a character.
fn gauge(part: f64, width: u16) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.clamp(0.0, 1.0) * f64::from(width) * 8.0).round() as usize;
    let full = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    format!("{full:·<width$}", width = usize::from(width))
}

/// Returns a number of events; it is conspicuous if some are new.
fn count(count: Count) -> Cell<'static> {
    let style = match count {
        Count { new: 1.., .. } => style::BAD,
        Count { total: 0, .. } => style::DIM,
        _ => Style::new(),
    };
    right(short(count.total as f64)).style(style)
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Text::from(Line::from(text).right_aligned()))
}
