//! Receives datagrams. Most datagrams hold one record each; GELF may split a record into several. The service cannot
//! slow down senders of datagrams, so records without room in the budget are dropped and counted.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio::net::{UdpSocket, UnixDatagram};

use super::inherited::{InheritedSocket, InheritedSockets};
use crate::address::{Endpoint, ListenAddress};
use crate::connection::frame_reader::FrameReader;
use crate::connection::protocol::{DatagramUnpacker, Protocol};
use crate::connection::shared::SharedState;
use crate::known_protocols;
use crate::origin::Origin;
use crate::peer::Peer;
use crate::stop::{sleep_until, stopped};

/// Size in bytes of the kernel buffer of the socket, for times when the service is busy. The kernel may allow less
/// (net.core.rmem_max).
const KERNEL_BYTES: usize = 8 << 20;

/// Maximum size of a datagram in bytes.
const DATAGRAM_BYTES: usize = 64 * 1024;

/// Maximum number of datagrams that are read before their records are handed over.
const BURST_DATAGRAMS: usize = 256;

/// The origin of all datagrams. All their senders count as one, because the source address of a datagram can be forged.
const DATAGRAM_ORIGIN: Origin = Origin::V4(Ipv4Addr::UNSPECIFIED);

/// The datagram with which Fluentd asks whether a receiver is there.
const HEARTBEAT: &[u8] = b"\0";

/// An open socket for datagrams.
#[derive(Debug)]
pub struct DatagramReader {
    /// The configured address, with the actual port if port 0 was configured.
    pub address: ListenAddress,
    socket: Socket,
    /// The socket file that the service has made, and removes at its end.
    file: Option<PathBuf>,
}

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl Socket {
    async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.readable().await,
            Self::Unix(socket) => socket.readable().await,
        }
    }

    /// Receives a datagram if there is one, with the address that distinguishes its sender. The sender at a unix
    /// socket is some process of this machine.
    fn try_receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr, Peer)> {
        match self {
            Self::Udp(socket) => socket.try_recv_from(buffer).map(|(length, from)| (length, from, Peer::socket(from))),
            Self::Unix(socket) => socket.try_recv(buffer).map(|length| (length, LOCAL, Peer::local(ANY_USER))),
        }
    }
}

/// The user id for the unknown sender of a datagram to a unix socket.
const ANY_USER: u32 = u32::MAX;

impl DatagramReader {
    /// Opens the socket, or takes the inherited one that has its address.
    ///
    /// # Errors
    ///
    /// The address and the reason of the failure.
    pub fn open(address: &ListenAddress, inherited: &mut InheritedSockets) -> Result<Self, String> {
        let why = |error: io::Error| format!("cannot listen at {address}: {error}");
        let mut address = address.clone();
        let inherited = inherited.take(&address.endpoint);
        let mut file = None;
        let socket = match &mut address.endpoint {
            Endpoint::Udp(at) => {
                let socket = bind(*at, inherited).map_err(why)?;
                *at = socket.local_addr().map_err(why)?;
                Socket::Udp(socket)
            }
            Endpoint::UnixDatagram(path) => Socket::Unix(match inherited {
                Some(InheritedSocket::UnixDatagram(socket)) => UnixDatagram::from_std(socket).map_err(why)?,
                _ => {
                    file = Some(path.clone());
                    bind_unix(path).map_err(why)?
                }
            }),
            _ => return Err(format!("{address} accepts connections, not datagrams")),
        };
        Ok(Self { address, socket, file })
    }

    /// Reads datagrams until the service ends.
    pub async fn serve(self, shared: Arc<SharedState>) {
        let mut stop = shared.stop.clone();
        let mut readers = ProtocolReaders::new(&shared);
        loop {
            tokio::select! {
                ready = self.socket.readable() => if ready.is_err() { break },
                // Wake up when an incomplete chunked message expires.
                () = sleep_until(readers.next_expiry().map(Into::into)) => {}
                () = stopped(&mut stop) => break,
            }
            readers.read_burst(&self.socket, &self.address);
        }
        let end = stop.borrow().map(tokio::time::Instant::into_std);
        let is_in_time = || end.is_some_and(|end| Instant::now() < end);
        // Read the datagrams that the kernel still holds. The time is limited because senders may continue to send.
        while readers.read_burst(&self.socket, &self.address) > 0 && is_in_time() {}
        readers.end();
        if let Some(path) = self.file {
            drop(std::fs::remove_file(path));
        }
    }
}

/// The readers of one socket: one for each protocol that has arrived so far.
struct ProtocolReaders<'a> {
    shared: &'a SharedState,
    all: Vec<ProtocolReader<'a>>,
    /// Number of messages that were dropped because chunks were missing, and that the metrics already include.
    counted: u64,
    buffer: Vec<u8>,
}

/// The state for the datagrams of one protocol.
struct ProtocolReader<'a> {
    protocol: &'static Protocol,
    unpack: Box<dyn DatagramUnpacker>,
    reader: FrameReader<'a>,
}

impl<'a> ProtocolReaders<'a> {
    fn new(shared: &'a SharedState) -> Self {
        Self { shared, all: Vec::new(), counted: 0, buffer: vec![0; DATAGRAM_BYTES] }
    }

    /// The time when the next incomplete message expires.
    fn next_expiry(&self) -> Option<Instant> {
        self.all.iter().filter_map(|of| of.unpack.next_expiry()).min()
    }

    fn end(&mut self) {
        self.all.iter_mut().for_each(|of| of.unpack.end());
        self.count_dropped();
    }

    /// Reads the datagrams that have arrived, and hands over their records. Returns the number of datagrams.
    fn read_burst(&mut self, socket: &Socket, address: &ListenAddress) -> usize {
        for ProtocolReader { reader, .. } in &mut self.all {
            reader.mark_arrival();
        }
        let mut count = 0;
        while count < BURST_DATAGRAMS {
            let Ok((length, from, peer)) = socket.try_receive(&mut self.buffer) else { break };
            count += 1;
            let peer = peer.with_levels(address.levels).with_zones(&self.shared.zones, address.zone);
            let datagram = &self.buffer[..length];
            if datagram == HEARTBEAT {
                continue;
            }
            let Some(protocol) = address.protocol.or_else(|| known_protocols::detect_datagram(datagram)) else {
                continue;
            };
            let Some(declared) = &protocol.datagrams else { continue };
            let place = self.all.iter().position(|known| known.protocol == protocol).unwrap_or_else(|| {
                let reader = FrameReader::new(protocol, peer.clone(), &self.shared.intake.metrics);
                self.all.push(ProtocolReader { protocol, unpack: (declared.open)(), reader });
                self.all.len() - 1
            });
            let ProtocolReader { unpack, reader, .. } = &mut self.all[place];
            reader.set_peer(peer);
            unpack.take(datagram, from, Instant::now(), &mut |found| match found {
                Ok(frame) => reader.read(frame),
                Err(why) => reader.reject(datagram, why),
            });
        }
        for ProtocolReader { reader, .. } in &mut self.all {
            let batch = reader.take();
            let records = batch.len();
            if records > 0 && !self.shared.intake.try_submit_unacked(DATAGRAM_ORIGIN, batch) {
                self.shared.intake.metrics.drop_records("datagrams_waiting", records);
            }
        }
        self.all.iter_mut().for_each(|of| of.unpack.expire(Instant::now()));
        self.count_dropped();
        count
    }

    /// Adds the messages that were dropped since the last call to the metrics.
    fn count_dropped(&mut self) {
        let all = self.all.iter().map(|of| of.unpack.dropped()).sum();
        let new = usize::try_from(all - self.counted).unwrap_or(usize::MAX);
        if new > 0 {
            self.shared.intake.metrics.drop_records("gelf_parts_missing", new);
        }
        self.counted = all;
    }
}

/// The sender of all parts of GELF messages at a unix socket.
const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Opens a unix socket. Replaces a socket file that no process reads any more.
fn bind_unix(path: &Path) -> io::Result<UnixDatagram> {
    let is_socket = path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    let probe = std::os::unix::net::UnixDatagram::unbound()?;
    if is_socket && probe.connect(path).is_err() {
        drop(std::fs::remove_file(path));
    }
    let socket = UnixDatagram::bind(path)?;
    // Ignore an error: the kernel may allow only a smaller buffer.
    drop(socket2::SockRef::from(&socket).set_recv_buffer_size(KERNEL_BYTES));
    Ok(socket)
}

fn bind(address: SocketAddr, inherited: Option<InheritedSocket>) -> io::Result<UdpSocket> {
    if let Some(InheritedSocket::Udp(socket)) = inherited {
        return UdpSocket::from_std(socket);
    }
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::DGRAM, None)?;
    // Ignore an error: the kernel may allow only a smaller buffer.
    drop(socket.set_recv_buffer_size(KERNEL_BYTES));
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}
