//! Colours.

use crate::top::state::Activity;
use ratatui::style::{Color, Modifier, Style};

/// Style of headings.
pub const HEADING: Style = Style::new().add_modifier(Modifier::BOLD).fg(Color::Cyan);
/// Style of something that is wrong.
pub const BAD: Style = Style::new().add_modifier(Modifier::BOLD).fg(Color::Red);
/// Style of something of little interest.
pub const DIM: Style = Style::new().fg(Color::DarkGray);

/// Returns the style of a utilisation.
pub fn load(utilisation: Option<f64>) -> Style {
    match utilisation {
        None => DIM,
        Some(part) if part < 0.005 => DIM,
        Some(part) if part < 0.5 => Style::new().fg(Color::Green),
        Some(part) if part < 0.8 => Style::new().fg(Color::Yellow),
        Some(_) => Style::new().fg(Color::Red),
    }
}

/// Returns the style of a rank's state.
pub fn activity(activity: Activity) -> Style {
    match activity {
        Activity::Computing => Style::new().fg(Color::Green),
        Activity::InMpi => Style::new(),
        Activity::Waiting => Style::new().fg(Color::Yellow),
        Activity::Blocked => BAD,
        Activity::Stopped => Style::new().fg(Color::Magenta),
        Activity::Ended => DIM,
    }
}
