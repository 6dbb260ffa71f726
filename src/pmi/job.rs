//! Facts about the job of a process, and the connection to its process manager.

use crate::connection::{Connection, LINE_MAX};
use crate::PmiError;

/// The size limits of the process manager, reduced so that every question fits a line of [`LINE_MAX`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The name of the job's key-value space has fewer bytes than this.
    pub kvsname: usize,
    /// A key has fewer bytes than this.
    pub key: usize,
    /// A value has fewer bytes than this.
    pub value: usize,
}

impl Limits {
    /// The limits of a process without process manager, which are also the least that a process manager may have.
    pub const ALONE: Limits = Limits { kvsname: 256, key: 256, value: 256 };

    /// Reduces the limits in the same way as MPICH's client does. `None`: they are too small or absurd.
    pub(crate) fn reduced(mut self) -> Option<Limits> {
        const WORDS: usize = 30; // of "cmd=put kvsname=%s key=%s value=%s\n"
        let sum = self.kvsname.checked_add(self.key)?.checked_add(self.value)?;
        if sum > LINE_MAX - WORDS {
            self.key = self.key.min(256);
            self.value = LINE_MAX.checked_sub(WORDS + self.key)?.checked_sub(self.kvsname)?;
        }
        (self.kvsname > 1 && self.key > 1 && self.value > 1).then_some(self)
    }
}

/// Facts about the job of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Rank of this process.
    pub rank: u32,
    /// Number of ranks.
    pub size: u32,
    /// True if MPI_Comm_spawn has started this job.
    pub spawned: bool,
    /// The connection to the process manager; `None` without one: a job of one process.
    pub fd: Option<i32>,
    /// Size limits of keys and values.
    pub limits: Limits,
}

/// Returns the value of an environment variable.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Connects to the process manager that the environment names, if there is one. Rank and size are those that the
/// environment or the connection gives.
pub(crate) fn connect(lookup: Lookup) -> Result<Option<(Connection, Job)>, PmiError> {
    let (connection, rank_and_size) = if let Some(text) = lookup("PMI_FD") {
        (Connection::inherited(number("PMI_FD", &text)?)?, None)
    } else if let Some(address) = lookup("PMI_PORT") {
        let mut connection = Connection::to_port(&address)?;
        let id = lookup("PMI_ID").map(|id| number("PMI_ID", &id)).transpose()?;
        let told = id.map(|id| introduce(&mut connection, id)).transpose()?;
        (connection, told)
    } else {
        return Ok(None);
    };
    let env = |name, default| lookup(name).map_or(Ok(default), |text| number(name, &text));
    let (rank, size) = match rank_and_size {
        Some(told) => told,
        None => (env("PMI_RANK", 0)?, env("PMI_SIZE", 1)?),
    };
    if rank < 0 || rank >= size {
        let value = rank.to_string();
        return Err(PmiError::Variable { name: "PMI_RANK", value, wanted: "a number below PMI_SIZE" });
    }
    let spawned = env("PMI_SPAWNED", 0)? != 0;
    let fd = Some(connection.fd());
    Ok(Some((connection, Job { rank: rank as u32, size: size as u32, spawned, fd, limits: Limits::ALONE })))
}

/// Tells a process manager that was reached by its port which process this is, and returns its rank and size.
fn introduce(connection: &mut Connection, id: i32) -> Result<(i32, i32), PmiError> {
    let question = format!("cmd=initack pmiid={id}\n");
    connection.say(&question)?;
    connection.hear(&question)?.expect_command("initack")?;
    let mut told = |name: &str| -> Result<i32, PmiError> {
        let answer = connection.hear(&question)?;
        answer.expect_command("set")?;
        answer.number(name)
    };
    let (size, rank, _debug) = (told("size")?, told("rank")?, told("debug")?);
    connection.expect_quiet(&question)?;
    Ok((rank, size))
}

fn number(name: &'static str, text: &str) -> Result<i32, PmiError> {
    let error = |_| PmiError::Variable { name, value: text.into(), wanted: "a number" };
    text.trim().parse().map_err(error)
}
