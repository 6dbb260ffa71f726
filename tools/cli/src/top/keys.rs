//! Effects of keys: the part of the terminal view that is not data of the job.

use super::sample::{RankLine, Sample};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::cmp::Ordering;
use std::time::Duration;

/// A column of the table of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Rank,
    Host,
    State,
    Msgs,
    Out,
    In,
    Unexpected,
    Age,
}

impl Column {
    /// All columns, in the order of the table; key 1 is the first.
    pub const ALL: [Column; 8] = {
        use Column::*;
        [Rank, Host, State, Msgs, Out, In, Unexpected, Age]
    };

    /// Returns the heading.
    pub fn name(self) -> &'static str {
        match self {
            Column::Rank => "rank",
            Column::Host => "host",
            Column::State => "state",
            Column::Msgs => "msgs/s",
            Column::Out => "out",
            Column::In => "in",
            Column::Unexpected => "unexpected",
            Column::Age => "age",
        }
    }

    /// True if the largest values are of most interest.
    fn descends(self) -> bool {
        !matches!(self, Column::Rank | Column::Host)
    }

    fn compare(self, a: &RankLine, b: &RankLine) -> Ordering {
        let rates = |a: Option<f64>, b: Option<f64>| a.unwrap_or(-1.0).total_cmp(&b.unwrap_or(-1.0));
        let waits = |line: &RankLine| (line.state.activity, (line.state.since_s * 1e6) as u64);
        match self {
            Column::Rank => a.rank.cmp(&b.rank),
            Column::Host => a.host.cmp(&b.host),
            Column::State => waits(a).cmp(&waits(b)),
            Column::Msgs => rates(a.msgs_per_s, b.msgs_per_s),
            Column::Out => rates(a.out_per_s, b.out_per_s),
            Column::In => rates(a.in_per_s, b.in_per_s),
            Column::Unexpected => a.state.unexpected_bytes.cmp(&b.state.unexpected_bytes),
            Column::Age => a.age_s.total_cmp(&b.age_s),
        }
    }
}

/// A part of the screen that keys move in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    Links,
    Ranks,
}

/// The result of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Stay,
    Quit,
}

/// Shortest and longest interval that keys choose.
const INTERVALS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(60)];
/// Lines that the keys for pages move by.
const PAGE: isize = 10;

/// The user's choices.
pub struct Ui {
    pub sort: Column,
    pub descending: bool,
    pub pane: Pane,
    /// The chosen rank.
    pub rank: u64,
    /// First visible link.
    pub link: usize,
    /// True if the chosen rank is shown in detail.
    pub detail: bool,
    /// First visible line of the details.
    pub line: usize,
    pub help: bool,
    pub paused: bool,
    pub interval: Duration,
}

impl Ui {
    pub fn new(interval: Duration) -> Ui {
        Ui {
            sort: Column::Rank,
            descending: false,
            pane: Pane::Ranks,
            rank: 0,
            link: 0,
            detail: false,
            line: 0,
            help: false,
            paused: false,
            interval,
        }
    }

    /// Returns the ranks of a sample in the chosen order; equal ones by rank.
    pub fn sorted<'a>(&self, sample: &'a Sample) -> Vec<&'a RankLine> {
        let mut lines: Vec<&RankLine> = sample.ranks.iter().collect();
        lines.sort_by(|a, b| {
            let order = self.sort.compare(a, b);
            let order = if self.descending { order.reverse() } else { order };
            order.then(a.rank.cmp(&b.rank))
        });
        lines
    }

    /// Handles a key.
    pub fn press(&mut self, key: KeyEvent, sample: &Sample) -> Outcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Outcome::Quit,
            KeyCode::Char('q') => return Outcome::Quit,
            // Any key closes the help.
            _ if self.help => self.help = false,
            KeyCode::Esc if self.detail => self.detail = false,
            KeyCode::Char('h' | '?') | KeyCode::F(1) => self.help = true,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('+') => self.interval = (self.interval * 2).min(INTERVALS[1]),
            KeyCode::Char('-') => self.interval = (self.interval / 2).max(INTERVALS[0]),
            KeyCode::Char('r') => self.descending = !self.descending,
            KeyCode::Char('<') => self.sort_by(-1),
            KeyCode::Char('>') => self.sort_by(1),
            KeyCode::Char(digit @ '1'..='8') => self.choose(Column::ALL[digit as usize - '1' as usize]),
            KeyCode::Enter => (self.detail, self.line) = (!self.detail, 0),
            KeyCode::Tab => {
                self.pane = match self.pane {
                    Pane::Links => Pane::Ranks,
                    Pane::Ranks => Pane::Links,
                }
            }
            KeyCode::Up | KeyCode::Char('k') => self.step(-1, sample),
            KeyCode::Down | KeyCode::Char('j') => self.step(1, sample),
            KeyCode::PageUp => self.step(-PAGE, sample),
            KeyCode::PageDown => self.step(PAGE, sample),
            KeyCode::Home => self.step(isize::MIN, sample),
            KeyCode::End => self.step(isize::MAX, sample),
            _ => {}
        }
        Outcome::Stay
    }

    fn sort_by(&mut self, step: isize) {
        let at = Column::ALL.iter().position(|column| *column == self.sort).unwrap_or(0);
        let count = Column::ALL.len() as isize;
        self.choose(Column::ALL[(at as isize + step).rem_euclid(count) as usize]);
    }

    fn choose(&mut self, column: Column) {
        (self.sort, self.descending) = (column, column.descends());
    }

    /// Moves the choice in the present pane.
    fn step(&mut self, by: isize, sample: &Sample) {
        let moved = |at: usize, count: usize| at.saturating_add_signed(by).min(count.saturating_sub(1));
        if self.detail {
            let lines = sample.detail(self.rank).map_or(0, |detail| detail.counters.len().max(detail.peers.len()));
            self.line = moved(self.line, lines);
        } else if self.pane == Pane::Links {
            self.link = moved(self.link, sample.links.len());
        } else {
            let lines = self.sorted(sample);
            let at = lines.iter().position(|line| line.rank == self.rank).unwrap_or(0);
            self.rank = lines.get(moved(at, lines.len())).map_or(self.rank, |line| line.rank);
        }
    }
}
