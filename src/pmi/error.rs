//! Errors of the client, with what the user or caller can do.

use std::io;

/// An error of the PMI client.
#[derive(Debug, thiserror::Error)]
pub enum PmiError {
    /// A variable that the process manager sets has a value that it never has.
    #[error("{name}={value}: {wanted} was expected. The process manager sets {name}: start the program with mpiexec or srun, or unset it to run a single process")]
    Variable {
        /// Name of the variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// The values that are allowed.
        wanted: &'static str,
    },
    /// The inherited descriptor cannot be used.
    #[error("PMI_FD={fd} is not an open descriptor ({source}). PMI_FD comes from mpiexec: a script or a library between mpiexec and this program must not close descriptors; unset PMI_FD to run a single process")]
    Descriptor {
        /// The descriptor.
        fd: i32,
        /// The kernel's error.
        source: io::Error,
    },
    /// No connection to the port of the process manager.
    #[error("cannot connect to the process manager at PMI_PORT={address} ({source}). Check that the name is known on this host and that no firewall is in between")]
    Connect {
        /// Host and port.
        address: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// Reading or writing failed.
    #[error("the connection to the process manager failed while {doing} ({source}). The output of mpiexec or srun may say why")]
    Io {
        /// The action that failed.
        doing: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The process manager has closed the connection.
    #[error("the process manager closed the connection, with no answer to \"{question}\". Either mpiexec (or its proxy on this host) has ended, or another library in this process uses PMI_FD, too, and has finalized it")]
    Closed {
        /// The question without answer.
        question: String,
    },
    /// An answer that the protocol does not allow.
    #[error("the process manager answered \"{question}\" with \"{answer}\", but {wanted} was expected. It may speak another protocol than PMI-1 (for srun: --mpi=pmi2), or another library in this process uses PMI_FD, too")]
    Malformed {
        /// The question.
        question: String,
        /// The answer, or its beginning.
        answer: String,
        /// The answer that was expected.
        wanted: String,
    },
    /// The process manager refuses a request.
    #[error("the process manager refused \"{question}\": {reason}")]
    Refused {
        /// The question.
        question: String,
        /// Its reason.
        reason: String,
    },
    /// No process has put such a key.
    #[error("no process has put the key {key} (the process manager says: {reason}). Values are visible to others only after a barrier that follows the put")]
    NoKey {
        /// The key.
        key: String,
        /// The reason that the process manager gives.
        reason: String,
    },
    /// A key or value with characters that would end it.
    #[error("the {what} {text:?} is empty or has a space, a line end or another character that PMI cannot carry: encode it, for example as hexadecimal digits")]
    Word {
        /// "key" or "value".
        what: &'static str,
        /// The text.
        text: String,
    },
    /// A key or value that is too long.
    #[error("a {what} of {size} bytes is too long for the process manager, which takes up to {max}: put it in parts")]
    TooLong {
        /// "key" or "value".
        what: &'static str,
        /// Its size.
        size: usize,
        /// The largest size.
        max: usize,
    },
    /// The session is not open.
    #[error("the session with the process manager is not open")]
    NotOpen,
    /// The session has ended for good.
    #[error("this process has told its process manager that it is done, which is possible only once: MPI or OpenSHMEM cannot start again after the last MPI_Finalize. Start both before the last of them ends")]
    Finalized,
    /// An earlier question failed.
    #[error("the connection to the process manager is not used any more: an earlier question on it failed")]
    Broken,
    /// The process manager does not say which ranks share a host.
    #[error("the process manager does not say which ranks share a host (PMI_process_mapping): {reason}. Use MPICH's mpiexec, or srun --mpi=pmi2")]
    NoMapping {
        /// Why.
        reason: String,
    },
    /// The process manager says it in a way that cannot be understood.
    #[error("PMI_process_mapping \"{text}\" of the process manager cannot be understood: {reason}")]
    Mapping {
        /// The mapping.
        text: String,
        /// Why.
        reason: &'static str,
    },
}
