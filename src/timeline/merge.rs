//! All parts of a job, joined into one file.

use super::merged::{MergeError, Merged};
use super::part::{part_path, Part};
use super::trace::Trace;
use std::collections::HashMap;
use std::fs::{read_dir, remove_file, rename, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The parts that are to be joined.
#[derive(Clone, Copy, Debug)]
pub enum Parts {
    /// All that are beside the file; they must belong to one job.
    All,
    /// Those of a job with so many ranks.
    Of {
        /// Identifies the job.
        job: u64,
        /// Number of ranks.
        ranks: u32,
    },
}

/// Joins parts into the file of the trace, which is replaced. The parts are left.
pub fn merge(file: &Path, parts: Parts) -> Result<Merged, MergeError> {
    let mut found = match parts {
        Parts::All => all(file)?,
        Parts::Of { job, ranks } => of(file, job, ranks)?,
    };
    found.sort_by_key(|part| part.facts.rank);
    let Some(first) = found.first() else {
        return Err(MergeError::NoParts { file: file.into(), part: part_path(file, 0) });
    };
    let ranks = first.facts.ranks;
    if let Some(other) = found.iter().find(|part| part.facts.job != first.facts.job) {
        return Err(MergeError::OtherJob { path: first.path().into(), other: other.path().into() });
    }
    let has = |rank: &u32| found.iter().any(|part| part.facts.rank == *rank);
    let mut merged = Merged {
        missing: (0..ranks).filter(|rank| !has(rank)).collect(),
        unfinished: found.iter().filter(|part| !part.facts.ended).map(|part| part.facts.rank).collect(),
        parts: found.iter().map(|part| part.path().into()).collect(),
        ..Merged::default()
    };
    // The old trace stays if there is no room for the new one.
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let failed = |error| MergeError::Write { file: file.into(), error };
    let written = File::create(&new).map_err(failed).and_then(|to| write(found, BufWriter::new(to), &mut merged, file));
    if let Err(error) = written.and_then(|()| rename(&new, file).map_err(failed)) {
        let _ = remove_file(&new);
        return Err(error);
    }
    Ok(merged)
}

/// Writes the trace of these parts.
pub(super) fn write(mut parts: Vec<Part>, to: impl Write, merged: &mut Merged, file: &Path) -> Result<(), MergeError> {
    let failed = |error| MergeError::Write { file: file.into(), error };
    // Machines differ in CLOCK_MONOTONIC, so their wall clocks align them.
    let mut shifts: HashMap<u64, i64> = HashMap::new();
    for part in &parts {
        shifts.entry(part.facts.boot).or_insert(part.facts.wall - part.facts.start);
    }
    let shift = |part: &Part| shifts[&part.facts.boot];
    let start = parts.iter().map(|part| part.facts.start + shift(part)).min().unwrap_or(0);
    let mut trace = Trace::begin(to).map_err(failed)?;
    for part in &mut parts {
        let events = part.events()?;
        merged.events += events.len() as u64;
        merged.lost.0 += part.lost;
        merged.lost.1 += u32::from(part.lost > 0);
        trace.rank(part, &events, shift(part) - start).map_err(failed)?;
    }
    let clocks = if shifts.len() > 1 { "wall clocks of several machines" } else { "one machine" };
    trace.end(merged, clocks).map_err(failed)
}

/// Returns the parts beside a file.
fn all(file: &Path) -> Result<Vec<Part>, MergeError> {
    let dir = match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let failed = |error| MergeError::Read { path: dir.into(), error };
    let name = file.file_name().unwrap_or_default();
    let mut parts = Vec::new();
    for entry in read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?.file_name();
        let rest = entry.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
        let rank = rest.and_then(|rest| std::str::from_utf8(rest).ok()?.strip_prefix('.')?.strip_suffix(".part"));
        if rank.is_some_and(|rank| rank.parse::<u32>().is_ok()) {
            parts.push(Part::open(&dir.join(entry))?);
        }
    }
    Ok(parts)
}

/// Returns the parts of a job, as far as they are here.
fn of(file: &Path, job: u64, ranks: u32) -> Result<Vec<Part>, MergeError> {
    let mut parts = Vec::new();
    for rank in 0..ranks {
        match Part::open(&part_path(file, rank)) {
            Ok(part) if part.facts.job == job => parts.push(part),
            // Those of an earlier job stand where the rank could not create its own.
            Ok(_) | Err(MergeError::NotAPart { .. }) => {}
            Err(MergeError::Read { error, .. }) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(parts)
}
