//! A decorator that records every write through a port (window, scratchpad, doorbell) and every fence, independently of
//! the protocol's own counters.
//!
//! The record has one JSON object per line: `{"port":1,"op":"write","offset":4096,"len":64}`; `op` is
//! `write`, `store` (with `value`), `fence`, `ring` (with `doorbell`) or `scratchpad` (with
//! `register` and `value`). Offsets are bytes in the outgoing window.

use super::delegate::left_to_inner;
use super::{NtbError, Port, PortCaps, PortIndex};
use ntbring_memory::{OutWindow, WriteSink};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The record of accesses, which the ports of one process share.
#[derive(Clone)]
pub struct Record {
    to: Arc<Mutex<Box<dyn Write + Send>>>,
}

impl Record {
    /// Creates a record in a new file.
    pub fn create(path: &Path) -> std::io::Result<Record> {
        Ok(Record::to(BufWriter::with_capacity(1 << 16, File::create(path)?)))
    }

    /// Creates a record in any writer.
    pub fn to(writer: impl Write + Send + 'static) -> Record {
        Record { to: Arc::new(Mutex::new(Box::new(writer))) }
    }

    /// Flushes the buffered lines.
    pub fn flush(&self) -> std::io::Result<()> {
        self.to.lock().unwrap_or_else(|e| e.into_inner()).flush()
    }

    fn line(&self, port: PortIndex, op: &str, rest: std::fmt::Arguments<'_>) {
        let mut to = self.to.lock().unwrap_or_else(|e| e.into_inner());
        // Errors such as a full disk are ignored: they must not stop the job under observation.
        let _ = writeln!(to, "{{\"port\":{port},\"op\":\"{op}\"{rest}}}");
    }
}

/// A port whose write accesses are recorded.
pub struct Trace<P> {
    inner: P,
    record: Record,
}

impl<P: Port> Trace<P> {
    /// Wraps a port; its accesses go to `record`.
    pub fn new(inner: P, record: Record) -> Self {
        Trace { inner, record }
    }
}

struct Sink {
    plain: OutWindow,
    port: PortIndex,
    record: Record,
}

impl WriteSink for Sink {
    fn write(&self, offset: usize, bytes: &[u8]) {
        self.record.line(self.port, "write", format_args!(",\"offset\":{offset},\"len\":{}", bytes.len()));
        self.plain.write_bytes(offset, bytes);
    }
    fn store(&self, offset: usize, value: u64) {
        self.record.line(self.port, "store", format_args!(",\"offset\":{offset},\"value\":{value}"));
        self.plain.store(offset, value);
    }
    fn fence(&self) {
        self.record.line(self.port, "fence", format_args!(""));
        self.plain.fence();
    }
}

impl<P: Port> Port for Trace<P> {
    left_to_inner! {
        index shortcuts incoming incoming_offset scratchpad doorbells clear_doorbells vector link
        outages descriptors lose_rather_than_wait
    }
    fn caps(&self) -> PortCaps {
        PortCaps { async_copies: None, segments: false, ..self.inner.caps() }
    }
    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        let (port, record) = (self.index(), self.record.clone());
        let sink = |plain| Arc::new(Sink { plain, port, record }) as Arc<dyn WriteSink>;
        Ok(self.inner.outgoing(offset, len)?.with_sink(sink))
    }
    fn peer_scratchpad(&self, register: usize, value: u32) {
        let port = self.index();
        self.record.line(port, "scratchpad", format_args!(",\"register\":{register},\"value\":{value}"));
        self.inner.peer_scratchpad(register, value)
    }
    fn ring(&self, doorbell: usize) {
        self.record.line(self.index(), "ring", format_args!(",\"doorbell\":{doorbell}"));
        self.inner.ring(doorbell)
    }
}
