//! The timeline: its start and end with an endpoint, and the calls of the application.

use super::abi::NTBRING_OK;
use super::error::guard;
use ::ntbring_endpoint::Settings;
use ntbring_ring::join::Card;
use ntbring_ring::Membership;
use ntbring_timeline::{Job, Stopped};
use std::ffi::{c_char, c_int};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};

/// The part of an endpoint in the timeline of its process.
pub struct Timeline {
    on: bool,
    /// Set in the last endpoint of the process that has stopped recording.
    stopped: Option<Stopped>,
}

impl Timeline {
    /// Starts recording if a setting says so. A file that cannot be created is a warning: the job goes on without it.
    pub fn start(settings: &Settings, members: &Membership, cards: &[Card], tagged: u64) -> Option<Timeline> {
        let file = settings.endpoint.timeline.as_ref()?;
        // The program may change its working directory.
        let mut file = std::path::absolute(file).unwrap_or_else(|_| file.clone()).into_os_string();
        let first = cards.first()?;
        // A job that another one has spawned has the same settings.
        if std::env::var("PMI_SPAWNED").is_ok_and(|spawned| spawned != "0") {
            file.push(format!(".spawned-{}", first.pid));
        }
        let file = PathBuf::from(file);
        let mut job = DefaultHasher::new();
        first.bytes().hash(&mut job);
        let job = Job {
            file: &file,
            events: settings.endpoint.timeline_events,
            job: job.finish(),
            rank: members.rank(),
            ranks: members.topology().size() as u32,
            host: members.host() as u32,
            tagged,
            calls: settings.endpoint.timeline_calls,
        };
        match ntbring_timeline::start(&job) {
            Ok(()) => Some(Timeline { on: true, stopped: None }),
            Err(error) => {
                log::warn!("rank {}: {error}", job.rank);
                None
            }
        }
    }

    /// Stops recording for this endpoint.
    pub fn stop(&mut self) {
        if std::mem::take(&mut self.on) {
            self.stopped = ntbring_timeline::stop();
        }
    }

    /// Joins the parts of all ranks, if this is rank 0 and the last endpoint that has recorded. To be called once all
    /// ranks have stopped; after an endpoint that was not stopped the parts stay.
    pub fn end(self) {
        let Some(stopped) = self.stopped.as_ref().filter(|stopped| stopped.rank == 0) else { return };
        let file = stopped.file.display();
        match stopped.merge() {
            Err(error) => log::error!("{error}"),
            Ok(merged) => {
                log::info!("timeline {file}: {} events", merged.events);
                if let (lost @ 1.., ranks) = merged.lost {
                    log::warn!(
                        "timeline {file}: the {lost} oldest events of {ranks} ranks were overwritten by later ones; \
                         NTBRING_TIMELINE_EVENTS sets how many each rank keeps"
                    );
                }
                if !merged.missing.is_empty() {
                    log::warn!(
                        "timeline {file}: the parts of {} of {} ranks are not here. If they are on other machines, copy \
                         all parts to one directory and run `ntbring timeline merge` there",
                        merged.missing.len(),
                        stopped.ranks
                    );
                }
            }
        }
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns 1 while a timeline is on, and 0 otherwise; names waits by `latest`. See `include/ntbring.h`.
///
/// # Safety
/// `latest` must be NULL, or a string of at most NTBRING_PMI_CALL_SIZE bytes that exists until the process ends.
#[no_mangle]
pub unsafe extern "C" fn ntbring_timeline_is_on(latest: *const c_char) -> c_int {
    // SAFETY: the caller guarantees such a string.
    unsafe { ntbring_timeline::name_waits_by(latest) };
    ntbring_timeline::is_on().into()
}

/// Notes that a function is called. See `include/ntbring.h`.
///
/// # Safety
/// `function` must be a string that never changes, and `skips` NULL or a byte that exists until the process ends.
#[no_mangle]
pub unsafe extern "C" fn ntbring_timeline_begin(function: *const c_char, skips: *mut u8) -> u64 {
    // SAFETY: the caller guarantees such a string.
    let begin = unsafe { ntbring_timeline::called(function) };
    if begin == 0 && ntbring_timeline::is_on() && !skips.is_null() {
        // SAFETY: the caller guarantees such a byte; other threads may store the same value.
        unsafe { AtomicU8::from_ptr(skips) }.store(1, Ordering::Relaxed);
    }
    begin
}

/// Records a call. See `include/ntbring.h`.
///
/// # Safety
/// `function` must be a string that never changes.
#[no_mangle]
pub unsafe extern "C" fn ntbring_timeline_end(function: *const c_char, begin: u64) {
    guard(|| {
        // SAFETY: the caller guarantees such a string.
        unsafe { ntbring_timeline::ended(function, begin) };
        Ok(NTBRING_OK as i32)
    });
}
