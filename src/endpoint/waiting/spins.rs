//! The number of polls between two yields, which depends on who else wants the core.

use std::time::Duration;

/// Polls between two yields on a host that is not oversubscribed, while no other process wants the core.
pub const SPINS_ALONE: u32 = 2000;
/// Polls between two yields on a core that other processes want, in the job or outside it.
pub const SPINS_OVERSUBSCRIBED: u32 = 2;
/// Polls between two yields of a rank on an oversubscribed host, while no other process wants the core. The number is
/// small because a thread that is woken meanwhile, for instance to forward something, waits for the next yield.
pub const SPINS_QUIET: u32 = 16;
/// From this number of polls between two yields on, a rank may poll without checking the clock or whether it should
/// yield.
pub const SPINS_FREE: u32 = 128;
/// A yield shorter than this did not switch to another process: it then takes about 0.2 us, else more than 1 us.
pub const NO_SWITCH: Duration = Duration::from_nanos(600);
/// The same limit on a host that is not oversubscribed: other programs keep the core for longer than that, and a
/// yield that is slow for other reasons must not slow a rank down.
pub const NO_SWITCH_OWN_CORE: Duration = Duration::from_micros(20);

/// Returns the number of polls before the next yield, if the last yield took `yielded`.
pub fn spins_after(spins: u32, yielded: Duration, (quiet, no_switch): (u32, Duration)) -> u32 {
    if yielded < no_switch {
        (2 * spins).min(quiet)
    } else {
        SPINS_OVERSUBSCRIBED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spins_grow_while_no_other_process_wants_the_core() {
        let quick = Duration::from_nanos(200);
        let oversubscribed = (SPINS_QUIET, NO_SWITCH);
        assert_eq!(spins_after(SPINS_OVERSUBSCRIBED, quick, oversubscribed), 2 * SPINS_OVERSUBSCRIBED);
        let grown = (0..20).fold(SPINS_OVERSUBSCRIBED, |spins, _| spins_after(spins, quick, oversubscribed));
        assert_eq!(grown, SPINS_QUIET);
        // Another process has had the core.
        assert_eq!(spins_after(grown, Duration::from_micros(3), oversubscribed), SPINS_OVERSUBSCRIBED);
        // A rank with a core of its own reacts only to processes that keep the core for long.
        let alone = (SPINS_ALONE, NO_SWITCH_OWN_CORE);
        assert_eq!(spins_after(SPINS_ALONE, Duration::from_micros(3), alone), SPINS_ALONE);
        assert_eq!(spins_after(SPINS_ALONE, Duration::from_micros(100), alone), SPINS_OVERSUBSCRIBED);
    }
}
