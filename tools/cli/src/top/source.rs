//! Samples of a running job.

use super::job::{is_stopped, Job};
use super::sample::{Reading, Sample, Sampler};
use crate::reading::{find, look, Rank};
use crate::running::{down, running};
use ntbring_host::RunningProcess;
use std::error::Error;
use std::time::Instant;

/// Takes samples of one job.
pub struct Source {
    job: Job,
    sampler: Sampler,
    last: Option<Sample>,
}

impl Source {
    /// Finds the job whose rank 0 is process `job`, or the only job.
    pub fn find(job: Option<u32>) -> Result<Source, Box<dyn Error>> {
        let (job, _) = find(job)?;
        Ok(Source { job: Job::look(job), sampler: Sampler::default(), last: None })
    }

    /// Takes a sample. After the end of the job this is the last one, marked as such.
    pub fn next(&mut self) -> Result<Sample, Box<dyn Error>> {
        let id = self.job.id;
        let mut processes = RunningProcess::all()?;
        processes.retain(|process| process.job == id);
        if processes.iter().all(|process| process.pid.is_none()) {
            let last = match self.last.take() {
                Some(last) => last,
                None => {
                    let reading = self.reading(Vec::new(), Vec::new());
                    self.sampler.step(reading)
                }
            };
            return Ok(self.last.insert(last.end()).clone());
        }
        let ranks = look(id, &processes)?;
        let hosts = running()?.remove(&id).unwrap_or_default();
        self.job.refresh();
        let reading = self.reading(ranks, down(&hosts));
        let sample = self.sampler.step(reading);
        Ok(self.last.insert(sample).clone())
    }

    /// Forgets the latest reading, so that the next sample has no rates.
    pub fn forget(&mut self) {
        self.sampler.forget();
    }

    fn reading(&self, ranks: Vec<Rank>, down: Vec<String>) -> Reading {
        let stopped = ranks.iter().filter_map(|rank| rank.pid).filter(|pid| is_stopped(*pid)).collect();
        Reading { at: Instant::now(), job: self.job.clone(), ranks, stopped, down }
    }
}
