//! Questions to the process manager.

use crate::connection::{Answer, Connection};
use crate::job::{connect, Lookup};
use crate::{Job, Limits, PmiError};

/// The process manager of this process.
#[derive(Debug)]
pub(crate) struct Manager {
    connection: Connection,
    kvs: String,
    broken: bool,
}

impl Manager {
    /// Connects to the process manager that the environment names, if there is one.
    pub(crate) fn find(lookup: Lookup) -> Result<Option<(Manager, Job)>, PmiError> {
        let Some((connection, mut job)) = connect(lookup)? else { return Ok(None) };
        let mut manager = Manager { connection, kvs: String::new(), broken: false };
        manager.accepted("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init")?;
        let maxes = manager.ask("cmd=get_maxes\n", "maxes")?;
        let told = Limits {
            kvsname: maxes.number("kvsname_max")?,
            key: maxes.number("keylen_max")?,
            value: maxes.number("vallen_max")?,
        };
        job.limits = told.reduced().ok_or_else(|| maxes.unexpected("limits that leave room for a value"))?;
        manager.kvs = manager.ask("cmd=get_my_kvsname\n", "my_kvsname")?.text("kvsname")?.into();
        Ok(Some((manager, job)))
    }

    /// Asks a question and returns the answer, of the kind `expected`. After an error, answers can no longer be told
    /// apart, so that no further question is asked.
    fn ask(&mut self, question: &str, expected: &str) -> Result<Answer, PmiError> {
        if std::mem::replace(&mut self.broken, true) {
            return Err(PmiError::Broken);
        }
        self.connection.say(question)?;
        let answer = self.connection.hear(question)?;
        self.connection.expect_quiet(question)?;
        answer.expect_command(expected)?;
        self.broken = false;
        Ok(answer)
    }

    /// The same, for a request that can be refused.
    fn accepted(&mut self, question: &str, expected: &str) -> Result<Answer, PmiError> {
        let answer = self.ask(question, expected)?;
        match answer.refusal() {
            Some(reason) => Err(PmiError::Refused { question: question.trim_end().into(), reason }),
            None => Ok(answer),
        }
    }

    /// Publishes a value.
    pub(crate) fn put(&mut self, key: &str, value: &str) -> Result<(), PmiError> {
        let question = format!("cmd=put kvsname={} key={key} value={value}\n", self.kvs);
        self.accepted(&question, "put_result").map(drop)
    }

    /// Returns a value that was published.
    pub(crate) fn get(&mut self, key: &str) -> Result<String, PmiError> {
        let question = format!("cmd=get kvsname={} key={key}\n", self.kvs);
        let answer = self.ask(&question, "get_result")?;
        match answer.refusal() {
            Some(reason) => Err(PmiError::NoKey { key: key.into(), reason }),
            None => Ok(answer.text("value")?.into()),
        }
    }

    /// Waits until all processes of the job are in the barrier.
    pub(crate) fn barrier(&mut self) -> Result<(), PmiError> {
        self.ask("cmd=barrier_in\n", "barrier_out").map(drop)
    }

    /// Tells the process manager that this process is done, and ends the connection.
    pub(crate) fn finalize(mut self) -> Result<(), PmiError> {
        let done = self.ask("cmd=finalize\n", "finalize_ack").map(drop);
        self.connection.end();
        done
    }
}
