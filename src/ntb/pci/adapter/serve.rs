//! The work of the thread that serves an adapter: interrupts, and bringing the link up.

use super::state::{Adapter, BringUp, State};
use crate::chip::LinkStatus;
use crate::control::CONTROL;
use crate::error::PciError;
use crate::function::{Alarm, InterruptKind};
use crate::link::{Action, Inputs, Introduction, LinkSetup, Phase, SetupError, ARRIVAL, CONFIRMATION, REGISTERS};
use crate::measure::Area;
use crate::retry::Retry;
use ntbring_memory::OutWindow;
use ntbring_ntb::LinkState;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest time between two looks at a link that is not up.
const LOOK_DOWN: Duration = Duration::from_millis(20);
/// Longest time between two looks at a link that is up, in case an interrupt was lost.
const LOOK_UP: Duration = Duration::from_millis(100);

impl Adapter {
    /// Handles interrupts and the state of the link, at the time `now` of the monotonic clock. Returns the time after
    /// which it must be called again even if the event descriptor has not become readable. `seed` is a random number.
    pub fn serve(&self, now: Duration, seed: u64) -> Duration {
        // The descriptor's count is of no interest, and it does not block.
        let _ = self.interrupts.event.read();
        let mut state = self.state();
        if state.is_gone {
            return Duration::MAX;
        }
        if state.has_vanished {
            // Its registers can be read only when its memory ranges have addresses again.
            self.chip.function().set_bus_master(true);
        }
        let served = self.serve_events(&mut state).and_then(|link_changed| {
            if link_changed || state.peer.is_none() || now >= state.look {
                state.look = now + self.serve_link(&mut state, now, seed)?;
            }
            Ok(state.look.saturating_sub(now))
        });
        if self.interrupts.kind == InterruptKind::Line {
            self.chip.function().unmask_line();
        }
        match served {
            Ok(wait) => {
                state.has_vanished = false;
                wait
            }
            Err(PciError::Gone { .. }) if self.chip.vanishes() => {
                self.set_down(&mut state);
                state.has_vanished = true;
                LOOK_UP
            }
            Err(error) => {
                log::error!("port {}: {error}", self.port);
                self.set_down(&mut state);
                state.is_gone = true;
                Duration::MAX
            }
        }
    }

    /// Handles events. Returns true if the link may have changed.
    fn serve_events(&self, state: &mut State) -> Result<bool, PciError> {
        let events = self.chip.take_events()?;
        if events.link_changed {
            self.set_down(state);
        }
        if let (Some(_), Some(bringing)) = (state.peer, &state.setup) {
            state.answering.look(&bringing.area);
        }
        if events.doorbells != 0 {
            state.listeners.iter().for_each(|listener| listener.doorbells(events.doorbells));
        }
        Ok(events.link_changed)
    }

    /// Looks at the link and goes on with bringing it up. Returns the time until the next look.
    fn serve_link(&self, state: &mut State, now: Duration, seed: u64) -> Result<Duration, PciError> {
        match self.chip.function().alarm() {
            Some(Alarm::Error) => {
                log::warn!("port {}: the bus has reported an error; the link is set up anew", self.port);
                self.set_down(state);
            }
            Some(Alarm::Removal) => {
                let identity = self.chip.function().identity();
                log::error!("port {}: the kernel asks for {identity} back: stop ntbringd to release it", self.port);
                self.set_down(state);
                self.leave();
                state.is_withdrawn = true;
            }
            None => {}
        }
        if state.is_withdrawn {
            return Ok(LOOK_UP);
        }
        if self.chip.link()? == LinkStatus::Down {
            self.set_down(state);
            return Ok(LOOK_UP);
        }
        if state.setup.is_none() {
            // The link has come up, possibly after an outage that destroyed the chip's state.
            self.prepare()?;
            let mine = Introduction {
                host: self.host,
                port: self.port,
                doorbells: self.limits.doorbells as u8,
                bytes: self.size,
            };
            let page = self.aim(0, CONTROL)?;
            let area = Area::new(&self.page, &page, self.chip.clone(), seed);
            state.answering.begin(&area);
            state.setup = Some(BringUp { setup: LinkSetup::new(mine, seed), page, area });
        }
        let mut registers = [0; REGISTERS];
        for (number, register) in registers.iter_mut().enumerate() {
            *register = self.chip.scratchpad(number)?;
        }
        let words = [ARRIVAL, CONFIRMATION].map(|word| self.page.word(word).load(Ordering::Acquire));
        let mut actions = Vec::new();
        let Some(bringing) = &mut state.setup else { return Ok(LOOK_DOWN) };
        let phase = bringing.setup.step(&Inputs { now, registers, words }, &mut actions);
        self.execute(&actions, &bringing.page);
        let (error, area) = (bringing.setup.error(), bringing.area.clone());
        self.report(state, error);
        if state.retry.is_due(error, now, seed) && self.chip.retry_outgoing() {
            // Only a new bring-up has words whose confirmation proves the new way.
            area.end();
            state.setup = None;
        }
        match phase {
            Phase::Up(peer) => {
                state.retry = Retry::default();
                if state.peer.replace(peer).is_none() {
                    log::info!("port {}: the link to port {} of host {:016x} is up", self.port, peer.port, peer.host);
                    (state.epoch, state.taken) = (state.epoch.wrapping_add(1), 0);
                    state.rate = self.probe_writes(&area);
                    self.publish(state);
                    self.repost(state);
                    state.listeners.iter().for_each(|listener| listener.link(LinkState::Up));
                }
                self.sweep(state);
                // A doorbell may have overtaken the words that it announces.
                state.listeners.iter().for_each(|listener| listener.doorbells(u32::MAX));
                Ok(LOOK_UP)
            }
            Phase::Introducing | Phase::Testing(_) | Phase::Left => {
                self.set_peer_lost(state);
                Ok(LOOK_DOWN)
            }
        }
    }

    fn execute(&self, actions: &[Action], page: &OutWindow) {
        for action in actions {
            match *action {
                Action::Scratchpad { register, value } => self.chip.set_peer_scratchpad(register, value),
                Action::Store { offset, value } => {
                    page.store(offset, value);
                    page.fence();
                }
            }
        }
    }

    /// Logs an error of the bring-up once.
    fn report(&self, state: &mut State, error: Option<SetupError>) {
        if state.error != error {
            state.error = error;
            match error {
                Some(error @ (SetupError::NothingArrives | SetupError::NothingIsConfirmed)) => {
                    let causes = self.chip.causes_of_silence();
                    log::warn!("port {}: {error}. Possible causes: {causes}", self.port);
                }
                Some(error) => log::warn!("port {}: {error}", self.port),
                None => {}
            }
        }
    }

    /// Records that the link has gone down.
    fn set_down(&self, state: &mut State) {
        if let Some(bringing) = state.setup.take() {
            bringing.area.end();
        }
        self.set_peer_lost(state);
    }

    /// Records that the neighbour is lost, whether the link has gone down or not.
    fn set_peer_lost(&self, state: &mut State) {
        if state.peer.take().is_some() {
            log::info!("port {}: the link is down", self.port);
            state.listeners.iter().for_each(|listener| listener.link(LinkState::Down));
        }
    }
}
