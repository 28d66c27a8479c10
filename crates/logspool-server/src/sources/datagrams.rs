//! Datagrams: each is a record of its own. A sender cannot be made to wait, so what finds no room is dropped and counted.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use tokio::net::UdpSocket;

use super::framing::Protocol;
use super::reading::Reader;
use super::shared::Shared;
use crate::address::{Listen, Place};
use crate::decoders::gelf_chunks::{self, GelfChunks};
use crate::origin::Origin;
use crate::peer::Peer;
use crate::stop::{ended, sleep_until};

/// Bytes that the kernel keeps for the socket while the service is busy; it may allow less (net.core.rmem_max).
const KERNEL_BYTES: usize = 8 << 20;

/// The longest datagram.
const DATAGRAM_BYTES: usize = 64 * 1024;

/// Datagrams read before what they held is handed over.
const BURST_DATAGRAMS: usize = 256;

/// All senders of datagrams share as one: the address of a datagram can be forged.
const SENDERS: Origin = Origin::V4(Ipv4Addr::UNSPECIFIED);

/// An open socket for datagrams.
#[derive(Debug)]
pub struct Datagrams {
    /// As it was asked for, with the port that was given where 0 was asked.
    pub address: Listen,
    socket: UdpSocket,
}

impl Datagrams {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// What was tried and why it cannot be.
    pub fn open(address: &Listen, at: SocketAddr) -> Result<Self, String> {
        let socket = bind(at).map_err(|error| format!("cannot listen at {address}: {error}"))?;
        let at = socket.local_addr().map_err(|error| format!("cannot listen at {address}: {error}"))?;
        Ok(Self { address: Listen { at: Place::Udp(at), protocol: address.protocol }, socket })
    }

    /// Reads until the service ends.
    pub async fn serve(self, shared: Arc<Shared>) {
        let mut stop = shared.stop.clone();
        let mut readers = Readers::new(&shared);
        loop {
            tokio::select! {
                ready = self.socket.readable() => if ready.is_err() { break },
                // Parts of messages whose others have not come are given up then.
                () = sleep_until(readers.chunks.next_expiry().map(Into::into)) => {}
                () = ended(&mut stop) => break,
            }
            readers.read_burst(&self.socket, self.address.protocol);
        }
        let end = stop.borrow().map(tokio::time::Instant::into_std);
        let is_in_time = || end.is_some_and(|end| Instant::now() < end);
        // What the kernel still holds; some may go on to send.
        while readers.read_burst(&self.socket, self.address.protocol) > 0 && is_in_time() {}
        readers.chunks.end();
        readers.count_given_up();
    }
}

/// A reader for each protocol that has come.
struct Readers<'a> {
    shared: &'a Shared,
    all: Vec<(Protocol, Reader<'a>)>,
    chunks: GelfChunks,
    /// Messages that were given up because parts were missing, and are counted.
    given_up: u64,
    buffer: Vec<u8>,
}

impl<'a> Readers<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            all: Vec::new(),
            chunks: GelfChunks::new(gelf_chunks::Limits::default()),
            given_up: 0,
            buffer: vec![0; DATAGRAM_BYTES],
        }
    }

    /// Reads what has come, and hands it over; returns how many datagrams.
    fn read_burst(&mut self, socket: &UdpSocket, protocol: Option<Protocol>) -> usize {
        for (_, reader) in &mut self.all {
            reader.arrive();
        }
        let mut count = 0;
        while count < BURST_DATAGRAMS {
            let Ok((length, from)) = socket.try_recv_from(&mut self.buffer) else { break };
            count += 1;
            let datagram = &self.buffer[..length];
            let protocol = protocol.unwrap_or_else(|| protocol_of(datagram));
            let place = self.all.iter().position(|(known, _)| *known == protocol).unwrap_or_else(|| {
                self.all.push((protocol, Reader::new(protocol, Peer::Socket(from), &self.shared.intake.metrics)));
                self.all.len() - 1
            });
            let reader = &mut self.all[place].1;
            reader.come_from(Peer::Socket(from));
            read(datagram, from, protocol, reader, &mut self.chunks);
        }
        for (_, reader) in &mut self.all {
            let batch = reader.take();
            let records = batch.len();
            if records > 0 && !self.shared.intake.try_leave(SENDERS, batch) {
                self.shared.intake.metrics.drop_records("datagrams_waiting", records);
            }
        }
        self.chunks.expire(Instant::now());
        self.count_given_up();
        count
    }

    /// Counts what was given up since it was counted last.
    fn count_given_up(&mut self) {
        let all = self.chunks.given_up();
        let new = usize::try_from(all - self.given_up).unwrap_or(usize::MAX);
        if new > 0 {
            self.shared.intake.metrics.drop_records("gelf_parts_missing", new);
        }
        self.given_up = all;
    }
}

fn read(datagram: &[u8], from: SocketAddr, protocol: Protocol, reader: &mut Reader<'_>, chunks: &mut GelfChunks) {
    match protocol {
        // `DatagramHandler` sends what `SocketHandler` does, the length too.
        Protocol::Pickle => match datagram.split_first_chunk::<4>() {
            Some((length, frame)) if u32::from_be_bytes(*length) as usize == frame.len() => reader.read(frame),
            _ => reader.reject(datagram, "the length in its first four bytes is not that of the rest"),
        },
        Protocol::Json => match chunks.take(datagram, from, Instant::now()) {
            Ok(Some(message)) => reader.read(&message),
            Ok(None) => {}
            Err(why) => reader.reject(datagram, &why.to_string()),
        },
        _ => {
            let text = datagram.strip_suffix(b"\0").unwrap_or(datagram);
            reader.read(text);
        }
    }
}

/// What a datagram holds, by its first byte. Chunks and compressed messages are GELF.
fn protocol_of(datagram: &[u8]) -> Protocol {
    match datagram.first() {
        Some(0) => Protocol::Pickle,
        Some(b'{' | 0x1E | 0x1F | 0x78) => Protocol::Json,
        _ => Protocol::Syslog,
    }
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::DGRAM, None)?;
    // As much as the kernel allows.
    drop(socket.set_recv_buffer_size(KERNEL_BYTES));
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}
