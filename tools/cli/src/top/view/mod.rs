//! The terminal view of a sample.

mod detail;
mod head;
mod help;
mod links;
mod ranks;
mod style;
mod text;

pub use text::text;

use super::keys::Ui;
use super::sample::Sample;
use ratatui::layout::{Constraint, Layout};
use ratatui::Frame;

/// Lines of the table of links besides those of the links: its heading.
const LINKS_HEAD: u16 = 1;
/// Smallest number of lines for links, if there are so many.
const LINKS_MIN: u16 = 4;

/// Draws a sample on the whole screen.
pub fn draw(frame: &mut Frame, sample: &Sample, ui: &Ui) {
    let area = frame.area();
    let links = match sample.links.len() as u16 {
        0 => 0,
        count => count.min((area.height / 4).max(LINKS_MIN)) + LINKS_HEAD + 1,
    };
    let lines =
        [Constraint::Length(head::LINES), Constraint::Length(links), Constraint::Fill(1), Constraint::Length(1)];
    let [head, links, body, foot] = Layout::vertical(lines).areas(area);
    head::draw(frame, head, sample, Some(ui));
    links::draw(frame, links, sample, Some(ui));
    match sample.detail(ui.rank).filter(|_| ui.detail) {
        Some(detail) => detail::draw(frame, body, sample, detail, ui.line),
        None => ranks::draw(frame, body, sample, ui, true),
    }
    help::foot(frame, foot, ui);
    if ui.help {
        help::draw(frame, area);
    }
}

#[cfg(test)]
mod tests;
