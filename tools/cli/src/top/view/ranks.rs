//! The table of ranks.

use super::style;
use crate::top::keys::{Column, Pane, Ui};
use crate::top::sample::{RankLine, Sample};
use crate::top::units::{age, bytes, rate, short};
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table, TableState};
use ratatui::Frame;

/// Width from which the age has a column: without it there is more room for states.
const WIDE: u16 = 90;

/// Draws the table; `interactive` shows the chosen rank and the order.
pub fn draw(frame: &mut Frame, area: Rect, sample: &Sample, ui: &Ui, interactive: bool) {
    let lines = ui.sorted(sample);
    let columns = if area.width < WIDE { &Column::ALL[..7] } else { &Column::ALL[..] };
    let heading = columns.iter().map(|&column| {
        let arrow = match (interactive && column == ui.sort, ui.descending) {
            (false, _) => "",
            (true, true) => "▼",
            (true, false) => "▲",
        };
        align(column, format!("{}{arrow}", column.name()))
    });
    let widths = columns.iter().map(|column| match column {
        Column::Rank | Column::Host => Constraint::Length(5),
        Column::State => Constraint::Fill(1),
        Column::Msgs => Constraint::Length(7),
        Column::Out | Column::In => Constraint::Length(9),
        Column::Unexpected => Constraint::Length(11),
        Column::Age => Constraint::Length(7),
    });
    let focus = interactive && ui.pane == Pane::Ranks;
    let heading_style = if focus { style::HEADING.add_modifier(Modifier::REVERSED) } else { style::HEADING };
    let chosen = lines.iter().position(|line| line.rank == ui.rank);
    let mut state = TableState::new().with_selected(chosen.filter(|_| interactive));
    let table = Table::new(lines.into_iter().map(|line| row(line, columns)), widths)
        .header(Row::new(heading).style(heading_style))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut state);
}

fn row(line: &RankLine, columns: &[Column]) -> Row<'static> {
    let unexpected = line.state.unexpected_bytes.map(|value| value as f64);
    Row::new(columns.iter().map(|&column| {
        let text = match column {
            Column::Rank => line.rank.to_string(),
            Column::Host => line.host.to_string(),
            Column::State => line.doing.clone(),
            Column::Msgs => rate(line.msgs_per_s, short),
            Column::Out => rate(line.out_per_s, |value| bytes(value, "/s")),
            Column::In => rate(line.in_per_s, |value| bytes(value, "/s")),
            Column::Unexpected => rate(unexpected, |value| bytes(value, "")),
            Column::Age => age(line.age_s),
        };
        match column {
            Column::State => align(column, text).style(style::activity(line.state.activity)),
            _ => align(column, text),
        }
    }))
}

/// Aligns text to the right, except that of the state.
fn align(column: Column, text: String) -> Cell<'static> {
    match column {
        Column::State => Cell::from(text),
        _ => Cell::from(Text::from(Line::from(text).right_aligned())),
    }
}
