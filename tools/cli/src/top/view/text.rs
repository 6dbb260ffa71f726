//! A sample as text without control codes.

use super::{head, links, ranks, LINKS_HEAD};
use crate::top::keys::Ui;
use crate::top::sample::Sample;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout};
use ratatui::Terminal;
use std::time::Duration;

/// Returns the view of a sample with all its links and ranks, in lines of at most `width` characters.
pub fn text(sample: &Sample, width: u16) -> Result<String, std::io::Error> {
    let count = sample.links.len() as u16;
    let links_lines = if count == 0 { 0 } else { count + LINKS_HEAD + 1 };
    let ranks_lines = sample.ranks.len() as u16 + 1;
    let heights = [head::LINES, links_lines, ranks_lines];
    // Drawn into memory, as by ratatui's own tests.
    let mut terminal = Terminal::new(TestBackend::new(width, heights.iter().sum()))?;
    terminal.draw(|frame| {
        let [head, links, body] = Layout::vertical(heights.map(Constraint::Length)).areas(frame.area());
        head::draw(frame, head, sample, None);
        links::draw(frame, links, sample, None);
        ranks::draw(frame, body, sample, &Ui::new(Duration::ZERO), false);
    })?;
    Ok(lines(terminal.backend().buffer()))
}

/// Returns the characters of a buffer, without spaces at the ends of lines.
pub fn lines(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width.max(1));
    let line = |cells: &[ratatui::buffer::Cell]| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_string() + "\n"
    };
    buffer.content.chunks(width).map(line).collect()
}
