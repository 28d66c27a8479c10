//! Connections of the HTTP library whose descriptors have high numbers and are checked before each use.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use logspool_sys::kept::KeptDescriptor;
use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
};

use crate::sinks::transport::opened;

/// Opens such connections, unless an earlier connector has opened one to a proxy.
#[derive(Debug)]
pub(super) struct KeptConnector;

/// A connection without TLS.
#[derive(Debug)]
pub(super) struct KeptTransport {
    stream: KeptDescriptor<TcpStream>,
    buffers: LazyBuffers,
}

/// Maximum time for connecting if a request has no limit.
///
/// Chosen: every request of a sink has a limit, so this one is never reached.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

impl<In: Transport> Connector<In> for KeptConnector {
    type Out = Either<In, KeptTransport>;

    fn connect(&self, details: &ConnectionDetails, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        if chained.is_some() {
            return Ok(chained.map(Either::A));
        }
        let limit = details.timeout.not_zero().map_or(CONNECT_LIMIT, |limit| *limit);
        // A host with several addresses has the limit for all of them together.
        let share = limit / u32::try_from(details.addrs.len().max(1)).unwrap_or(1);
        let connected = opened::tcp(details.addrs.iter().copied(), share);
        let stream = connected.map_err(|error| timed_out(error, details.timeout))?;
        stream.get()?.set_nodelay(true)?;
        let buffers = LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Either::B(KeptTransport { stream, buffers })))
    }
}

impl Transport for KeptTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let mut stream = self.stream.get()?;
        stream.set_write_timeout(timeout.for_write().not_zero().map(|limit| *limit))?;
        stream.write_all(&self.buffers.output()[..amount]).map_err(|error| timed_out(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let mut stream = self.stream.get()?;
        stream.set_read_timeout(timeout.for_read().not_zero().map(|limit| *limit))?;
        let read = loop {
            match stream.read(self.buffers.input_append_buf()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|error| timed_out(error, timeout))?,
            }
        };
        self.buffers.input_appended(read);
        Ok(read > 0)
    }

    fn is_open(&mut self) -> bool {
        let Ok(mut stream) = self.stream.get() else { return false };
        // The receiver has sent nothing, so a read finds nothing and not the end.
        let is_quiet = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
        stream.set_nonblocking(true).is_ok()
            && stream.read(&mut [0]).is_err_and(is_quiet)
            && stream.set_nonblocking(false).is_ok()
    }
}

fn timed_out(error: io::Error, timeout: NextTimeout) -> Error {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Error::Timeout(timeout.reason),
        _ => error.into(),
    }
}
