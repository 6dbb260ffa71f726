//! Ranks that poll repeatedly without declaring that they wait, as a loop of MPI_Test does.

use super::*;

/// Number of empty polls that exceeds any rank's spin count before it yields its core.
const IN_VAIN: usize = 100_000;

/// Such ranks count as waiting until a packet arrives, whether or not there are cores for all.
#[test]
fn who_only_looks_gives_way_too() {
    for spin in [None, Some(0), Some(1), Some(500)] {
        let layout = Layout::blocks(&[1, 1]);
        let settings = settings().with(|s| s.endpoint.spin = spin);
        let plan = |src: u32, _| if src == 1 { vec![Shape::contiguous(HEADER, 8)] } else { vec![] };
        run(&layout, &settings, |rank| {
            let mut traffic = Traffic::new(layout.size());
            if rank.rank == 0 {
                for _ in 0..IN_VAIN {
                    if rank.poll()?.is_some() {
                        return Err("something is there already".into());
                    }
                }
                if rank.idle.is_spinning() {
                    return Err(format!("it still spins after {IN_VAIN} looks"));
                }
            }
            rank.barrier()?;
            if rank.rank == 1 {
                traffic.send(rank, 0, 0, plan(1, 0)[0])?;
            } else {
                let event = rank.event()?;
                traffic.take(rank, event, &plan)?;
                if !rank.idle.is_spinning() && spin != Some(0) {
                    return Err("it does not begin anew after something has come".into());
                }
            }
            rank.barrier()
        });
    }
}

/// A message in a lane that was empty for long wakes the rank, which finds it with its next poll.
#[test]
fn who_sleeps_looks_at_all_lanes() {
    let layout = Layout::blocks(&[1, 1]);
    let settings = settings().with(|s| {
        s.endpoint.spin = Some(0);
        s.endpoint.yields = 0;
    });
    let plan = |src: u32, _| if src == 1 { vec![Shape::contiguous(HEADER, 8)] } else { vec![] };
    // Of several runs, since one poll of eight would find it anyway.
    for _ in 0..4 {
        let [is_asleep, is_sent] = [(); 2].map(|()| std::sync::Barrier::new(2));
        run(&layout, &settings, |rank| {
            let mut traffic = Traffic::new(layout.size());
            if rank.rank == 1 {
                is_asleep.wait();
                traffic.send(rank, 0, 0, plan(1, 0)[0])?;
                is_sent.wait();
            } else {
                for _ in 0..IN_VAIN {
                    rank.poll()?;
                }
                rank.idle.wait(Duration::from_millis(1), false);
                is_asleep.wait();
                is_sent.wait();
                let event = rank.poll()?.ok_or("it has not looked everywhere")?;
                traffic.take(rank, event, &plan)?;
            }
            rank.barrier()
        });
    }
}
