//! A decorator that records every access to a port, independently of the protocol's own counters.
//!
//! One JSON object a line: `{"side":"right","op":"write","offset":4096,"len":64}`; `op` is
//! `write`, `store` (with `value`), `fence`, `ring` (with `doorbell`) or `scratchpad` (with
//! `register` and `value`). Offsets are bytes in the outgoing window.

use super::{InWindow, LinkState, NtbError, OutWindow, Port, Side, Vector, WriteSink};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The record, shared by the ports of one process.
#[derive(Clone)]
pub struct Record {
    to: Arc<Mutex<Box<dyn Write + Send>>>,
}

impl Record {
    /// Records to a new file.
    pub fn create(path: &Path) -> std::io::Result<Record> {
        Ok(Record::to(BufWriter::with_capacity(1 << 16, File::create(path)?)))
    }

    /// Records to any writer.
    pub fn to(writer: impl Write + Send + 'static) -> Record {
        Record { to: Arc::new(Mutex::new(Box::new(writer))) }
    }

    /// Pushes out what is buffered.
    pub fn flush(&self) -> std::io::Result<()> {
        self.to.lock().unwrap_or_else(|e| e.into_inner()).flush()
    }

    fn line(&self, side: Side, op: &str, rest: std::fmt::Arguments<'_>) {
        let mut to = self.to.lock().unwrap_or_else(|e| e.into_inner());
        // A full disk must not stop the job that is being looked at.
        let _ = writeln!(to, "{{\"side\":\"{side}\",\"op\":\"{op}\"{rest}}}");
    }
}

/// A port whose accesses are recorded.
pub struct Trace<P> {
    inner: P,
    record: Record,
}

impl<P: Port> Trace<P> {
    /// Wraps a port.
    pub fn new(inner: P, record: Record) -> Self {
        Trace { inner, record }
    }
}

struct Sink {
    plain: OutWindow,
    side: Side,
    record: Record,
}

impl WriteSink for Sink {
    fn write(&self, offset: usize, bytes: &[u8]) {
        self.record.line(self.side, "write", format_args!(",\"offset\":{offset},\"len\":{}", bytes.len()));
        self.plain.write_bytes(offset, bytes);
    }
    fn store(&self, offset: usize, value: u64) {
        self.record.line(self.side, "store", format_args!(",\"offset\":{offset},\"value\":{value}"));
        self.plain.store(offset, value);
    }
    fn fence(&self) {
        self.record.line(self.side, "fence", format_args!(""));
        self.plain.fence();
    }
}

impl<P: Port> Port for Trace<P> {
    fn side(&self) -> Side {
        self.inner.side()
    }
    fn coherent(&self) -> bool {
        self.inner.coherent()
    }
    fn incoming(&self) -> InWindow {
        self.inner.incoming()
    }
    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        let (side, record) = (self.side(), self.record.clone());
        let sink = |plain| Arc::new(Sink { plain, side, record }) as Arc<dyn WriteSink>;
        Ok(self.inner.outgoing(offset, len)?.with_sink(sink))
    }
    fn incoming_offset(&self) -> u64 {
        self.inner.incoming_offset()
    }
    fn scratchpad(&self, register: usize) -> u32 {
        self.inner.scratchpad(register)
    }
    fn peer_scratchpad(&self, register: usize, value: u32) {
        let rest = format_args!(",\"register\":{register},\"value\":{value}");
        self.record.line(self.side(), "scratchpad", rest);
        self.inner.peer_scratchpad(register, value)
    }
    fn ring(&self, doorbell: usize) {
        self.record.line(self.side(), "ring", format_args!(",\"doorbell\":{doorbell}"));
        self.inner.ring(doorbell)
    }
    fn doorbells(&self) -> u16 {
        self.inner.doorbells()
    }
    fn clear_doorbells(&self, bits: u16) {
        self.inner.clear_doorbells(bits)
    }
    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        self.inner.vector(doorbell)
    }
    fn link(&self) -> LinkState {
        self.inner.link()
    }
}
