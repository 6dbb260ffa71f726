//! Connection messages between processes that have no common communicator yet. (Between jobs: src/ffi/tests.rs.)

use super::*;

const TAG: u32 = 7;

fn hear(rank: &mut Rank, tag: u32) -> Result<Vec<u8>, String> {
    loop {
        if let Some(bytes) = rank.endpoint.dpm_receive(tag).map_err(|e| e.to_string())? {
            return Ok(bytes);
        }
        if let Some(event) = rank.step(Duration::from_millis(100))? {
            return Err(unexpected(&event));
        }
    }
}

/// Polls until all ranks have reached this point and their earlier messages have arrived.
fn settle(rank: &mut Rank) -> Result<(), String> {
    for _ in 0..2 {
        rank.barrier()?;
        for _ in 0..200 {
            rank.step(Duration::ZERO)?;
        }
    }
    Ok(())
}

#[test]
fn every_question_gets_its_answer() {
    for layout in [Layout::blocks(&[1; 5]), Layout::blocks(&[3, 2])] {
        run(&layout, &settings(), |rank| {
            let text = |e: EndpointError| e.to_string();
            if rank.rank != 0 {
                rank.endpoint.dpm_send(0, TAG, &[rank.rank as u8; 300]).map_err(text)?;
                let answer = hear(rank, TAG)?;
                return match answer == [0, rank.rank as u8] {
                    true => settle(rank),
                    false => Err(format!("the reply to another rank: {answer:?}")),
                };
            }
            for _ in 1..layout.size() {
                let question = hear(rank, TAG)?;
                let who = question[0];
                if question != vec![who; 300] || rank.endpoint.dpm_receive(TAG + 1).map_err(text)?.is_some() {
                    return Err(format!("{question:?}"));
                }
                rank.endpoint.dpm_send(who.into(), TAG, &[0, who]).map_err(text)?;
            }
            settle(rank)
        });
    }
}

#[test]
fn a_question_that_was_withdrawn_is_not_heard() {
    run(&Layout::blocks(&[1; 4]), &settings(), |rank| {
        let text = |e: EndpointError| e.to_string();
        if rank.rank == 2 {
            rank.endpoint.dpm_send(0, TAG, b"ring").map_err(text)?;
        }
        // The request is forwarded, which takes time; a job that hangs is ended by the timeout.
        let await_question = |rank: &mut Rank, there: bool| -> Result<(), String> {
            while rank.rank == 0
                && rank.endpoint.describe().contains("peer 2 requests a connection under tag 7") != there
            {
                rank.step(Duration::from_millis(1))?;
            }
            settle(rank)
        };
        await_question(rank, true)?;
        if rank.rank == 2 {
            rank.endpoint.withdraw(TAG).map_err(text)?;
        }
        await_question(rank, false)?;
        if rank.rank == 0 && rank.endpoint.dpm_receive(TAG).map_err(text)?.is_some() {
            return Err("no request is left".into());
        }
        rank.barrier()?;
        // The next request is independent of this one.
        if rank.rank == 2 {
            rank.endpoint.dpm_send(0, TAG, b"again").map_err(text)?;
        }
        settle(rank)?;
        if rank.rank == 0 {
            let question = hear(rank, TAG)?;
            rank.endpoint.dpm_send(2, TAG, &question).map_err(text)?;
        } else if rank.rank == 2 && hear(rank, TAG)? != b"again" {
            return Err("another answer".into());
        }
        settle(rank)
    });
}

#[test]
fn an_answer_that_comes_too_late_is_dropped() {
    run(&Layout::blocks(&[1, 1]), &settings(), |rank| {
        let text = |e: EndpointError| e.to_string();
        if rank.rank == 1 {
            rank.endpoint.dpm_send(0, TAG, b"?").map_err(text)?;
        } else {
            hear(rank, TAG)?;
        }
        rank.barrier()?;
        if rank.rank == 1 {
            rank.endpoint.withdraw(TAG).map_err(text)?;
        }
        rank.barrier()?;
        if rank.rank == 0 {
            rank.endpoint.dpm_send(1, TAG, b"!").map_err(text)?;
        }
        settle(rank)?;
        if rank.endpoint.dpm_receive(TAG).map_err(text)?.is_some() || rank.endpoint.dpm_send(1, TAG, &[0; 513]).is_ok()
        {
            return Err("a reply without request, or a message that is too long".into());
        }
        settle(rank)
    });
}
