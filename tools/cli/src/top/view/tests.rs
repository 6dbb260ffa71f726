//! Screens, drawn into memory.

use super::*;
use crate::top::keys::{Column, Outcome, Pane};
use crate::top::sample::Sampler;
use crate::top::testing::{busy, reading, sample};
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use std::time::Duration;

fn ui() -> Ui {
    Ui::new(Duration::from_secs(1))
}

fn screen(sample: &Sample, ui: &Ui, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, sample, ui)).unwrap();
    text::lines(terminal.backend().buffer())
}

fn press(ui: &mut Ui, sample: &Sample, codes: &[KeyCode]) -> Outcome {
    codes.iter().map(|code| ui.press(KeyEvent::from(*code), sample)).last().unwrap()
}

const SMALL: (u16, u16) = (80, 24);

/// Returns the ranks in the order of the screen.
fn order(screen: &str) -> Vec<u64> {
    let table = screen.lines().skip_while(|line| !line.contains("unexpected")).skip(1);
    table.map_while(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

/// Returns a job of so many hosts, each with one rank.
fn large(hosts: u64) -> Sample {
    let many = |number: u64| {
        let mut rank = busy(number, number * 1000, 0.0);
        (rank.figures.hosts, rank.figures.size) = (hosts, hosts);
        rank
    };
    Sampler::default().step(reading(0.0, (0..hosts).map(many).collect()))
}

#[test]
fn a_small_screen_shows_job_links_and_ranks() {
    let shown = screen(&sample(), &ui(), SMALL);
    assert!(shown.contains("job 100  halo  4 ranks  4 hosts  0:01:23  every 1 s"), "{shown}");
    assert!(shown.contains("utilisation: of 4.00 MB/s, the largest rate seen so far   down: 1-2"), "{shown}");
    assert!(shown.contains("[0]━━━[1]╳╳╳[2]━━━[3]━━━[0]"), "{shown}");
    let line = |start: &str| shown.lines().find(|line| line.starts_with(start)).unwrap().to_string();
    assert!(
        line("1-2").contains("down") && line("2-3").contains("3.00 MB/s") && line("2-3").contains("75%"),
        "{shown}"
    );
    assert!(shown.contains("in MPI                        1.00 k 1.00 MB/s  500 kB/s"), "{shown}");
    assert!(shown.contains("q quit") && order(&shown) == [0, 1, 2, 3], "{shown}");
}

#[test]
fn no_size_of_the_screen_is_too_small() {
    let (small, large, mut keys) = (sample(), large(64), ui());
    for detail in [false, true] {
        (keys.detail, keys.help) = (detail, !detail);
        for size in [(1, 1), (3, 5), (10, 40), (79, 3), (80, 6), (200, 60), (500, 200)] {
            screen(&small, &keys, size);
            screen(&large, &keys, size);
        }
    }
    let none = Sampler::default().step(reading(0.0, vec![]));
    assert!(screen(&none, &ui(), SMALL).contains("no rank has joined yet"));
}

#[test]
fn ranks_are_sorted_by_any_column() {
    let (sample, mut ui) = (sample(), ui());
    press(&mut ui, &sample, &[KeyCode::Char('5')]);
    assert_eq!((ui.sort, order(&screen(&sample, &ui, SMALL))), (Column::Out, vec![3, 2, 1, 0]));
    press(&mut ui, &sample, &[KeyCode::Char('r')]);
    assert_eq!(order(&screen(&sample, &ui, SMALL)), [0, 1, 2, 3]);
    for _ in Column::ALL {
        press(&mut ui, &sample, &[KeyCode::Char('>')]);
        assert_eq!(order(&screen(&sample, &ui, SMALL)).len(), 4);
    }
    press(&mut ui, &sample, &[KeyCode::Char('<')]);
    assert_eq!(ui.sort, Column::Msgs);
}

#[test]
fn many_ranks_and_links_scroll() {
    let (sample, mut ui) = (large(64), ui());
    let first = screen(&sample, &ui, SMALL);
    assert!(order(&first).starts_with(&[0, 1]) && first.contains("1-6/64"), "{first}");
    press(&mut ui, &sample, &[KeyCode::PageDown, KeyCode::Down, KeyCode::Down]);
    assert_eq!(ui.rank, 12);
    press(&mut ui, &sample, &[KeyCode::End]);
    assert_eq!(order(&screen(&sample, &ui, SMALL)).last(), Some(&63));
    press(&mut ui, &sample, &[KeyCode::Tab, KeyCode::End]);
    assert_eq!((ui.pane, ui.rank), (Pane::Links, 63));
    let last = screen(&sample, &ui, SMALL);
    assert!(last.contains("63-0") && last.contains("59-64/64"), "{last}");
    press(&mut ui, &sample, &[KeyCode::Home, KeyCode::Up]);
    assert_eq!(ui.link, 0);
}

#[test]
fn a_rank_is_shown_in_detail() {
    let (sample, mut ui) = (sample(), ui());
    press(&mut ui, &sample, &[KeyCode::Down, KeyCode::Char('j'), KeyCode::Enter]);
    let shown = screen(&sample, &ui, SMALL);
    assert!(shown.contains("rank 2 on host 2, process 102: in MPI"), "{shown}");
    let peer = shown.lines().find(|line| line.contains("bytes_direct")).unwrap();
    assert!(peer.contains("3.00 M") && shown.contains("3.00 MB/s"), "{shown}");
    assert_eq!(press(&mut ui, &sample, &[KeyCode::Esc]), Outcome::Stay);
    assert!(!ui.detail && screen(&sample, &ui, SMALL).contains("unexpected"));
}

#[test]
fn keys_pause_help_and_quit() {
    let (sample, mut ui) = (sample(), ui());
    press(&mut ui, &sample, &[KeyCode::Char(' ')]);
    assert!(screen(&sample, &ui, SMALL).contains("PAUSED"));
    press(&mut ui, &sample, &[KeyCode::Char('?')]);
    assert!(screen(&sample, &ui, SMALL).contains("reverse order"));
    press(&mut ui, &sample, &[KeyCode::Char('p')]);
    assert!(ui.paused && !ui.help, "it has closed the help");
    press(&mut ui, &sample, &[KeyCode::Char('+'), KeyCode::Char('+')]);
    assert_eq!(ui.interval, Duration::from_secs(4));
    (0..20).for_each(|_| assert_eq!(press(&mut ui, &sample, &[KeyCode::Char('-')]), Outcome::Stay));
    assert_eq!(ui.interval, Duration::from_millis(100));
    assert_eq!(press(&mut ui, &sample, &[KeyCode::Char('q')]), Outcome::Quit);
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(ui.press(control_c, &sample), Outcome::Quit);
}

#[test]
fn the_end_of_the_job_is_said() {
    let ended = sample().end();
    let shown = screen(&ended, &ui(), SMALL);
    assert!(shown.contains("THE JOB HAS ENDED") && shown.contains("3.00 MB/s"), "{shown}");
    assert_eq!(shown.matches(" ended  ").count(), 4);
}

#[test]
fn plain_text_has_everything_and_no_control_codes() {
    let shown = text::text(&large(64), 100).unwrap();
    assert!(!shown.contains('\x1b') && shown.lines().all(|line| line.chars().count() <= 100));
    assert!(shown.contains("63-0") && order(&shown).len() == 64);
}
