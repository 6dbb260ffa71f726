//! The terminal view: draws samples as they come, and obeys keys.

use super::keys::{Outcome, Ui};
use super::sample::Sample;
use super::source::Source;
use super::view;
use super::WIDTH;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::terminal::size;
use ratatui::DefaultTerminal;
use signal_hook::consts::{SIGHUP, SIGTERM};
use std::error::Error;
use std::io::{stdin, stdout, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Longest wait for a key before the screen is drawn anew.
const KEY: Duration = Duration::from_millis(50);

/// A sample, or the error that prevents further ones.
type News = Result<Sample, String>;

/// Runs the view until the user leaves it.
pub fn run(source: Source, interval: Duration) -> Result<(), Box<dyn Error>> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        let others = "`ntbring top --once` prints one screen, `ntbring stats --watch 1` repeats the counters";
        return Err(format!("the live view needs a terminal; {others}").into());
    }
    let killed = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, killed.clone())?;
    }
    let (intervals, changed) = channel();
    let (news, samples) = channel();
    thread::spawn(move || take(source, interval, &changed, &news));
    // A panic restores the terminal, too.
    let terminal = ratatui::try_init()?;
    let done = show(terminal, Ui::new(interval), &samples, &intervals, &killed);
    ratatui::try_restore()?;
    let last = done?;
    // The screen is gone; the job, which cannot be looked at again, is not.
    if last.ended {
        print!("{}", view::text(&last, size().map_or(WIDTH, |(width, _)| width))?);
    }
    Ok(())
}

/// Takes samples until nobody receives them. The interval changes to each value that arrives in `changed`.
fn take(mut source: Source, mut interval: Duration, changed: &Receiver<Duration>, news: &Sender<News>) {
    loop {
        if news.send(source.next().map_err(|error| error.to_string())).is_err() {
            return;
        }
        match changed.recv_timeout(interval) {
            Ok(new) => interval = new,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Shows samples until the user leaves the view or the process is to end. Returns the one that was shown last.
fn show(
    mut terminal: DefaultTerminal,
    mut ui: Ui,
    samples: &Receiver<News>,
    intervals: &Sender<Duration>,
    killed: &AtomicBool,
) -> Result<Sample, Box<dyn Error>> {
    let mut shown = samples.recv()??;
    let mut stale = true;
    while !killed.load(Ordering::Relaxed) {
        // While the view is paused, later samples are not shown, except that the job has ended.
        match samples.try_recv() {
            Ok(sample) => {
                let sample = sample?;
                if !ui.paused || sample.ended && !shown.ended {
                    (shown, stale) = (sample, true);
                }
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err("the thread that reads the job has ended".into()),
        }
        if stale {
            terminal.draw(|frame| view::draw(frame, &shown, &ui))?;
        }
        stale = event::poll(KEY)?;
        if stale {
            let before = ui.interval;
            if let Event::Key(key) = event::read()? {
                if key.kind != KeyEventKind::Release && ui.press(key, &shown) == Outcome::Quit {
                    return Ok(shown);
                }
            }
            if ui.interval != before {
                intervals.send(ui.interval)?;
            }
        }
    }
    Ok(shown)
}
