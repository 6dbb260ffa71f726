//! Counting, the end of the session, turns, and processes without process manager.

use super::{opened, Fake, END};
use crate::{session, PmiError, Session, Turn};
use std::time::Duration;

#[test]
fn only_the_last_close_ends_the_session() {
    let fake = Fake::after_start(&[("cmd=barrier_in", "cmd=barrier_out\n"), END], 4096);
    let session = opened(&fake);
    assert_eq!(session.open_with(&fake.lookup()).unwrap().rank, 3);
    session.close().unwrap();
    session.barrier().unwrap();
    session.close().unwrap();
    let again = session.open_with(&fake.lookup()).unwrap_err();
    assert!(matches!(again, PmiError::Finalized), "{again}");
    assert!(matches!(session.close(), Err(PmiError::NotOpen)));
    assert!(matches!(session.get("k"), Err(PmiError::NotOpen)));
    fake.join();
}

#[test]
fn a_kept_session_opens_again_and_ends_with_the_process() {
    let fake = Fake::after_start(&[("cmd=barrier_in", "cmd=barrier_out\n"), END], 4096);
    let session = opened(&fake);
    session.keep();
    session.close().unwrap();
    session.open_with(&fake.lookup()).unwrap();
    session.barrier().unwrap();
    session.close().unwrap();
    session.exit();
    assert!(matches!(session.open_with(&fake.lookup()), Err(PmiError::Finalized)));
    fake.join();
}

#[test]
fn a_process_that_ends_with_an_open_session_says_nothing() {
    let fake = Fake::after_start(&[], 4096);
    let session = opened(&fake);
    session.keep();
    session.exit();
    drop(session);
    fake.join();
}

/// A library that closes in its own exit function, which may run after that of the session.
#[test]
fn who_closes_while_the_process_ends_ends_the_session() {
    let fake = Fake::after_start(&[END], 4096);
    let session = opened(&fake);
    session.keep();
    session.exit();
    session.close().unwrap();
    fake.join();
}

#[test]
fn a_process_that_ends_while_a_question_is_open_does_not_wait() {
    let fake = Fake::after_start(&[], 4096);
    let session = opened(&fake);
    session.keep();
    session.close().unwrap();
    let held = session.turn().hold();
    session.exit();
    drop(held);
    drop(session);
    fake.join();
}

#[test]
fn forked_children_do_not_speak_for_their_parent() {
    let fake = Fake::after_start(&[END], 4096);
    let session = opened(&fake);
    session.keep();
    session.close().unwrap();
    // SAFETY: the child calls only the session, whose locks no other thread uses, and ends at once.
    match unsafe { libc::fork() } {
        0 => {
            session.exit();
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) }
        }
        child => {
            let mut status = -1;
            // SAFETY: a child of this process, and a valid place.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
    session.exit();
    fake.join();
}

#[test]
fn without_a_process_manager_there_is_one_process() {
    let session = Session::new();
    for round in 0..2 {
        let job = session.open_with(&|_| None).unwrap();
        assert_eq!((job.rank, job.size, job.spawned, job.fd), (0, 1, false, None));
        assert!(matches!(session.get("k"), Err(PmiError::NoKey { .. })), "{round}");
        session.put("k", "v").unwrap();
        session.barrier().unwrap();
        assert_eq!(session.get("k").unwrap(), "v");
        assert_eq!(session.hosts().unwrap(), (vec![0], 1));
        session.abort(7).unwrap();
        session.close().unwrap();
    }
}

#[test]
fn an_abort_does_not_wait_for_its_turn() {
    let fake = Fake::after_start(&[("cmd=abort exitcode=7", "")], 4096);
    let session = opened(&fake);
    let _held = session.turn().hold();
    session.abort(7).unwrap();
    drop(fake);
}

#[test]
fn one_has_the_turn_at_a_time() {
    let turn = Turn::new();
    let inside = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    turn.take();
                    assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                    assert!(turn.try_hold().is_none());
                    std::thread::yield_now();
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    turn.give();
                }
            });
        }
    });
    assert!(turn.try_hold().is_some());
}

#[test]
fn threads_share_a_session() {
    let barrier = ("cmd=barrier_in", "cmd=barrier_out\n");
    let dialogue: Vec<_> = std::iter::repeat_n(barrier, 200).chain([END]).collect();
    let fake = Fake::after_start(&dialogue, 3);
    let session = opened(&fake);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| session.barrier().unwrap()));
        }
    });
    session.close().unwrap();
    fake.join();
}

#[test]
fn the_session_of_the_process_is_one() {
    assert!(std::ptr::eq(session(), session()));
    session().turn().take();
    let other = std::thread::spawn(|| drop(session().turn().hold()));
    std::thread::sleep(Duration::from_millis(20));
    assert!(!other.is_finished());
    session().turn().give();
    other.join().unwrap();
}
