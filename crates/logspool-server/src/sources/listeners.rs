//! Listeners accept connections. Each accepted connection gets its own task.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixSocket, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::inherited::{InheritedSocket, InheritedSockets};
use super::streams;
use super::tls;
use crate::address::{Endpoint, HttpAddress, ListenAddress};
use crate::connection::admission::{Admission, Slot, TrafficKind};
use crate::connection::protocol::Protocol;
use crate::connection::shared::SharedState;
use crate::http::protocol::HTTP;
use crate::peer::Peer;
use crate::stop::{sleep_until, stopped};
use crate::warnings;

/// Pause after a failed accept. The usual reason is a lack of file descriptors.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of connections that the kernel queues until they are accepted. The kernel may allow fewer
/// (net.core.somaxconn).
///
/// Chosen: the default limit of open connections, so that all senders of a large machine can connect at the same
/// moment. With the usual 128, the kernel would drop connections while the service is busy for some milliseconds. The
/// peer tries again after a second; a stdlib handler has dropped its record by then.
const BACKLOG: u32 = 4096;

/// The time without data after which the kernel sends a keepalive probe, and the interval of further probes. After nine
/// unanswered probes (net.ipv4.tcp_keepalive_probes) the connection ends. A machine that has disappeared is detected
/// within four minutes; a silent peer answers the probes and stays connected. While sent data is unacknowledged, the
/// kernel sends no probes. Instead it sends the data again for a quarter of an hour (net.ipv4.tcp_retries2).
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Size in bytes of the kernel buffer for answers of a connection. The kernel takes twice as much.
///
/// Chosen: without a size, the kernel grows the buffer to several MiB for a client that does not read its live tail. A
/// client with a round trip of 50 ms still gets 5 MB in a second.
const SEND_BYTES: usize = 256 * 1024;

/// Maximum wait for the next connection when the service shuts down. Connections that the kernel has queued are
/// accepted without delay.
const BACKLOG_TIME: Duration = Duration::from_millis(20);

/// An open listener.
#[derive(Debug)]
pub struct Listener {
    /// The configured address, with the actual port if port 0 was configured.
    pub address: ListenAddress,
    socket: ListenerSocket,
    /// The socket file that the service has made, and removes at its end.
    file: Option<PathBuf>,
}

#[derive(Debug)]
enum ListenerSocket {
    Tcp(TcpListener, Option<tls::Identity>),
    Unix(UnixListener),
}

impl Listener {
    /// Opens the listener, or takes the inherited socket that has its address. Replaces a socket file on which no process
    /// listens any more.
    ///
    /// # Errors
    ///
    /// The address and the reason of the failure.
    pub fn open(
        address: &ListenAddress,
        identity: Option<&tls::Identity>,
        inherited: &mut InheritedSockets,
    ) -> Result<Self, String> {
        let why = |error: io::Error| format!("cannot listen at {address}: {error}");
        let mut address = address.clone();
        let inherited = inherited.take(&address.endpoint);
        let mut file = None;
        let socket = match &mut address.endpoint {
            Endpoint::Tcp(at) => {
                let listener = listen(*at, inherited).map_err(why)?;
                *at = listener.local_addr().map_err(why)?;
                ListenerSocket::Tcp(listener, None)
            }
            Endpoint::Tls(at) => {
                let identity =
                    identity.ok_or_else(|| format!("cannot listen at tls://{at}: no certificate is configured"))?;
                let listener = listen(*at, inherited).map_err(why)?;
                *at = listener.local_addr().map_err(why)?;
                ListenerSocket::Tcp(listener, Some(identity.clone()))
            }
            Endpoint::Udp(_) | Endpoint::UnixDatagram(_) => {
                return Err(format!("{address} accepts datagrams, not connections"));
            }
            Endpoint::Unix(path) => ListenerSocket::Unix(match inherited {
                Some(InheritedSocket::Unix(socket)) => UnixListener::from_std(socket).map_err(why)?,
                _ => {
                    remove_stale(path);
                    file = Some(path.clone());
                    listen_unix(path).map_err(why)?
                }
            }),
        };
        Ok(Self { address, socket, file })
    }

    /// Opens the listener that accepts only HTTP.
    ///
    /// # Errors
    ///
    /// The same errors as for [`Listener::open`].
    pub fn open_http(address: HttpAddress, inherited: &mut InheritedSockets) -> Result<Option<Self>, String> {
        match address {
            HttpAddress::Off => Ok(None),
            HttpAddress::On(at) => {
                let address = ListenAddress { protocol: Some(&HTTP), ..ListenAddress::tcp(at) };
                Self::open(&address, None, inherited).map(Some)
            }
        }
    }

    /// Serves every connection that `admission` admits until the service ends. Then waits until the data of these
    /// connections is read.
    pub async fn serve(self, shared: Arc<SharedState>, admission: Arc<Admission>) {
        let Self { address, socket, file } = self;
        let (protocol, door) =
            (address.protocol, address.protocol.map_or(TrafficKind::Any, |protocol| protocol.traffic));
        let mut connections = JoinSet::new();
        let mut stop = shared.stop.clone();
        // Deadline for accepting queued connections; `None` until the service shuts down.
        let mut end: Option<Instant> = None;
        loop {
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted,
                () = stopped(&mut stop), if end.is_none() => {
                    end = Some(stop.borrow().unwrap_or_else(Instant::now));
                    continue;
                }
                // Accept queued connections until none is left: their peers may have sent data before the shutdown.
                () = sleep_until(end.map(|end| end.min(Instant::now() + BACKLOG_TIME))) => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                // The peer disconnected before its connection was accepted. Peers can do this as often as they like, so
                // do not delay other connections with a pause.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    shared.intake.metrics.close("accept");
                    warnings::warn("accept", None, || format!("cannot accept a connection at {address}: {error}"));
                    sleep(ACCEPT_RETRY_PAUSE).await;
                    continue;
                }
            };
            match admission.admit(peer.origin(), door) {
                Ok(slot) => {
                    let peer = peer.with_levels(address.levels).with_zones(&shared.zones, address.zone);
                    connections.spawn(stream.serve(peer, protocol, slot, shared.clone()));
                }
                Err(refusal) => {
                    shared.intake.metrics.close(refusal.reason());
                    warnings::warn(refusal.reason(), None, || {
                        format!(
                            "connection of {} refused: {refusal} (limits.connections, limits.connections_per_peer)",
                            peer.origin()
                        )
                    });
                }
            }
            while connections.try_join_next().is_some() {}
        }
        // From here on, the kernel refuses new connections. Those to an inherited socket wait for the next service.
        drop(socket);
        if let Some(path) = file {
            drop(std::fs::remove_file(path));
        }
        while connections.join_next().await.is_some() {}
    }
}

fn listen(at: SocketAddr, inherited: Option<InheritedSocket>) -> io::Result<TcpListener> {
    if let Some(InheritedSocket::Tcp(socket)) = inherited {
        return TcpListener::from_std(socket);
    }
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // The port may still have connections of a previous service.
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(BACKLOG)
}

fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    socket.listen(BACKLOG)
}

/// A connection that was accepted.
enum AcceptedStream {
    Tcp(TcpStream, Option<TlsAcceptor>),
    Unix(UnixStream),
}

impl ListenerSocket {
    async fn accept(&self) -> io::Result<(AcceptedStream, Peer)> {
        match self {
            Self::Tcp(listener, identity) => {
                let (stream, from) = listener.accept().await?;
                // Send small packets at once, because acks are small. Ignore an error: the peer is gone, and the task
                // of the connection will notice it.
                let _ = stream.set_nodelay(true);
                // Ignore an error: the kernel may allow only a smaller buffer.
                let _ = SockRef::from(&stream).set_send_buffer_size(SEND_BYTES);
                let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL);
                let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
                let acceptor = identity.as_ref().map(tls::Identity::acceptor);
                Ok((AcceptedStream::Tcp(stream, acceptor), Peer::socket(from)))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let user = stream.peer_cred()?.uid();
                Ok((AcceptedStream::Unix(stream), Peer::local(user)))
            }
        }
    }
}

impl AcceptedStream {
    async fn serve(self, peer: Peer, protocol: Option<&'static Protocol>, slot: Slot, shared: Arc<SharedState>) {
        match self {
            Self::Tcp(stream, None) => streams::serve(stream, peer, protocol, slot, shared).await,
            Self::Unix(stream) => streams::serve(stream, peer, protocol, slot, shared).await,
            Self::Tcp(stream, Some(acceptor)) => {
                match timeout(slot.header_time(shared.limits.header_time()), acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => streams::serve(stream, peer, protocol, slot, shared).await,
                    Ok(Err(error)) => {
                        shared.intake.metrics.close("tls");
                        warnings::warn("tls", Some(&peer), || {
                            format!("connection closed: TLS handshake failed: {error}")
                        });
                    }
                    Err(_) => shared.intake.metrics.close("slow"),
                }
            }
        }
    }
}

/// Removes a socket file on which no process listens.
fn remove_stale(path: &Path) {
    let is_socket = path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        drop(std::fs::remove_file(path));
    }
}
