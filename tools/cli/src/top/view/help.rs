//! The line of keys, and their explanation.

use super::style;
use crate::top::keys::Ui;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::widgets::{Block, Clear, Paragraph};
use ratatui::Frame;

const TEXT: &str = "\
 q            quit
 h ?          this help
 p, space     pause, go on
 + -          longer, shorter interval
 Tab          move in the links, in the ranks
 arrows, j k  next, previous; also PgUp, PgDn, Home, End
 Enter        the chosen rank in detail, and back
 < > 1...8    order of the ranks: by which column
 r            reverse order

 state of a rank: for whom it waits; \"computing\":
 not in MPI, and its counters are as old as \"age\"
 hops with an r: hosts between relay the messages
 link rates count what passes the link; on one machine
 large messages may be copied past it";

/// Draws the line of keys.
pub fn foot(frame: &mut Frame, area: Rect, ui: &Ui) {
    let keys = match ui.detail {
        true => "q quit  h help  p pause  arrows scroll  Enter back to the ranks",
        false => "q quit  h help  p pause  < > sort  r reverse  Enter details  Tab links/ranks",
    };
    frame.render_widget(Paragraph::new(keys).style(style::DIM), area);
}

/// Draws the explanation in the middle of the screen.
pub fn draw(frame: &mut Frame, area: Rect) {
    let lines = TEXT.lines();
    let (width, height) = (lines.clone().map(str::len).max().unwrap_or(0) as u16 + 3, lines.count() as u16 + 2);
    let [area] = Layout::horizontal([Constraint::Max(width)]).flex(Flex::Center).areas(area);
    let [area] = Layout::vertical([Constraint::Max(height)]).flex(Flex::Center).areas(area);
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(" keys ").border_style(style::HEADING);
    frame.render_widget(Paragraph::new(TEXT).block(block), area);
}
