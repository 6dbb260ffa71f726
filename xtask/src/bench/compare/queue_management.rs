//! The effect of queue management under a link model: model 2 of MPI-VMMC over model 1, as in `bench ablation`.

use crate::bench::compare::entry::{rounded, Entry};
use crate::bench::figures::Figures;
use crate::bench::jobs::{self, Job};
use crate::bench::papers::ablation::{self, MODELS_2_AND_1};
use crate::bench::states::{self, Wanted};
use crate::bench::stored::Stored;

/// The name of the measure.
pub(super) const NAME: &str = "queue_management_gen3x8";

/// The factor that paper 1 reports.
const PAPER: f64 = 3.0;

/// Returns the job that it needs.
pub(super) fn job() -> Job {
    jobs::queue_management()
}

/// Returns the line of the comparison. It has no target, since the paper's machine was a different one.
pub(super) fn entry(stored: &Stored) -> Entry {
    let job = job();
    let test = &job.tests[0];
    let ranks = job.shape.ranks();
    let of = |mpi| test.sizes.iter().map(move |bytes| Wanted { mpi, test: test.name, ranks, bytes: *bytes });
    let wanted: Vec<Wanted<'_>> = MODELS_2_AND_1.into_iter().flat_map(of).collect();
    let state = stored.states.best(&wanted, states::enough(stored.rounds));
    let figures = state.map_or(&stored.figures, |state| &state.figures);
    let ours = ablation::queue_management(figures);
    Entry {
        name: NAME.to_string(),
        ours: ours.map(rounded),
        best_peer: Some(PAPER),
        peer: Some(format!("paper 1: {PAPER:.1}")),
        ratio: ours.map(|ours| rounded(ours / PAPER)),
        limit: None,
        unit: "times".to_string(),
        better: "higher",
        to_reach: None,
        of_limit: None,
        of_limit_to_reach: None,
        reached: None,
        runs: [ours.and_then(|_| fewest(figures, &wanted)), None],
        spread: [None, None],
        cores_us: state.map(|state| rounded(state.cores_us)),
        shape: None,
        timed_out: None,
    }
}

/// Returns the least number of runs of any of these figures; sizes without any figure are not counted.
fn fewest(figures: &Figures, wanted: &[Wanted<'_>]) -> Option<usize> {
    let values = wanted.iter().filter_map(|one| figures.values(one.test, one.ranks, one.bytes, one.mpi));
    values.map(<[f64]>::len).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::compare::{shown, table};
    use crate::bench::stored::tests::example;

    #[test]
    fn it_is_reported_beside_the_papers_figure() {
        let mut stored = example();
        assert_eq!(entry(&stored).ours, None);
        for (mpi, value) in MODELS_2_AND_1.into_iter().zip([6.0, 2.0]) {
            for bytes in [8, 64] {
                let line =
                    format!("{{\"test\":\"bandwidth\",\"bytes\":{bytes},\"value\":{value},\"unit\":\"MB/s\"}}\n");
                stored.figures.add(mpi, 2, &line.repeat(4));
            }
        }
        let entry = entry(&stored);
        assert_eq!((entry.ours, entry.ratio, entry.reached), (Some(3.0), Some(1.0), None));
        let cells = shown::cells(&entry);
        assert_eq!(cells[1..6], ["3.00 times", "3.00 times (paper 1: 3.0)", "1.00", "-", "-"]);
        assert!(cells.contains(&"4/-".to_string()), "{cells:?}");
        let text = serde_json::to_string(&entry).unwrap();
        assert!(text.contains(r#""to_reach":null,"reached":null,"runs":[4,null]"#), "{text}");
        assert!(table(&[entry]).ends_with("0 of 0 reached"));
    }
}
