//! Where senders connect: each connection gets a task of its own.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixSocket, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::admission::{Admission, Door, Slot};
use super::shared::Shared;
use super::streams;
use super::tls;
use crate::address::{HttpAddress, Listen, Place};
use crate::peer::Peer;
use crate::sources::framing::Protocol;
use crate::stop::{ended, sleep_until};
use crate::warnings;

/// Wait after an accept that failed: the usual reason is that there are no more file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Connections that the kernel keeps until they are accepted; it may allow fewer (net.core.somaxconn).
///
/// Chosen: as many as may be open by default, so that all senders of a large machine can connect at the same moment. With
/// the usual 128 the kernel drops what comes while the service is busy for some milliseconds. The peer tries again after a
/// second, and a stdlib handler has given up its record by then.
const BACKLOG: u32 = 4096;

/// Silence after which the kernel asks whether a peer is still there, and then how often. Nine questions without an answer
/// (net.ipv4.tcp_keepalive_probes) end the connection: a machine that has gone is found within four minutes, and a peer
/// that is only silent answers. Nothing is asked while an answer is on its way: then the kernel gives up sending it, after
/// a quarter of an hour (net.ipv4.tcp_retries2).
const ASK_AFTER: Duration = Duration::from_secs(60);
const ASK_AGAIN: Duration = Duration::from_secs(15);

/// How long the next connection may take when the service ends: the kernel has those ready that came before.
const BACKLOG_TIME: Duration = Duration::from_millis(20);

/// An open listener.
#[derive(Debug)]
pub struct Listener {
    /// As it was asked for, with the port that was given where 0 was asked.
    pub address: Listen,
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener, Option<tls::Identity>),
    Unix(UnixListener),
}

impl Listener {
    /// Opens it. A socket file that nobody listens at any more is replaced.
    ///
    /// # Errors
    ///
    /// What was tried and why it cannot be.
    pub async fn open(address: &Listen, identity: Option<&tls::Identity>) -> Result<Self, String> {
        let why = |error: io::Error| format!("cannot listen at {address}: {error}");
        let mut address = address.clone();
        let socket = match &mut address.at {
            Place::Tcp(at) => {
                let listener = listen(*at).map_err(why)?;
                *at = listener.local_addr().map_err(why)?;
                Socket::Tcp(listener, None)
            }
            Place::Tls(at) => {
                let identity =
                    identity.ok_or_else(|| format!("cannot listen at tls://{at}: there is no certificate"))?;
                let listener = listen(*at).map_err(why)?;
                *at = listener.local_addr().map_err(why)?;
                Socket::Tcp(listener, Some(identity.clone()))
            }
            Place::Udp(_) => return Err(format!("{address} takes datagrams, not connections")),
            Place::Unix(path) => {
                remove_stale(path);
                Socket::Unix(listen_unix(path).map_err(why)?)
            }
        };
        Ok(Self { address, socket })
    }

    /// The listener for HTTP alone.
    ///
    /// # Errors
    ///
    /// As for [`Listener::open`].
    pub async fn open_http(address: HttpAddress) -> Result<Option<Self>, String> {
        match address {
            HttpAddress::Off => Ok(None),
            HttpAddress::On(at) => {
                Self::open(&Listen { at: Place::Tcp(at), protocol: Some(Protocol::Http) }, None).await.map(Some)
            }
        }
    }

    /// Serves every connection that `admission` lets in until the service ends, then waits for what they have sent.
    pub async fn serve(self, shared: Arc<Shared>, admission: Arc<Admission>) {
        let Self { address, socket } = self;
        let (protocol, door) = (address.protocol, Door::from(address.protocol));
        let mut connections = JoinSet::new();
        let mut stop = shared.stop.clone();
        // Once the service ends: until when those are taken who have connected.
        let mut end: Option<Instant> = None;
        loop {
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted,
                () = ended(&mut stop), if end.is_none() => {
                    end = Some(stop.borrow().unwrap_or_else(Instant::now));
                    continue;
                }
                // Those who had connected before have sent something, too.
                () = sleep_until(end.map(|end| end.min(Instant::now() + BACKLOG_TIME))) => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                // The peer has gone before it was accepted. It could do that at will, so nobody else waits for it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    shared.intake.metrics.close("accept");
                    warnings::warn("accept", None, || format!("cannot accept a connection at {address}: {error}"));
                    sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            };
            match admission.admit(peer.origin(), door) {
                Ok(slot) => {
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
        // From here on who connects is refused.
        drop(socket);
        if let Place::Unix(path) = &address.at {
            drop(std::fs::remove_file(path));
        }
        while connections.join_next().await.is_some() {}
    }
}

fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // The port may still have connections of a service that has ended.
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
enum Stream {
    Tcp(TcpStream, Option<TlsAcceptor>),
    Unix(UnixStream),
}

impl Socket {
    async fn accept(&self) -> io::Result<(Stream, Peer)> {
        match self {
            Self::Tcp(listener, identity) => {
                let (stream, from) = listener.accept().await?;
                // Acks are small and wanted at once. A peer that has gone meanwhile is no trouble of the listener's.
                let _ = stream.set_nodelay(true);
                let keepalive = TcpKeepalive::new().with_time(ASK_AFTER).with_interval(ASK_AGAIN);
                let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
                let acceptor = identity.as_ref().map(tls::Identity::acceptor);
                Ok((Stream::Tcp(stream, acceptor), Peer::Socket(from)))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let user = stream.peer_cred()?.uid();
                Ok((Stream::Unix(stream), Peer::Local(user)))
            }
        }
    }
}

impl Stream {
    async fn serve(self, peer: Peer, protocol: Option<Protocol>, slot: Slot, shared: Arc<Shared>) {
        match self {
            Self::Tcp(stream, None) => streams::serve(stream, peer, protocol, slot, shared).await,
            Self::Unix(stream) => streams::serve(stream, peer, protocol, slot, shared).await,
            Self::Tcp(stream, Some(acceptor)) => {
                match timeout(slot.header_time(shared.limits.header_time()), acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => streams::serve(stream, peer, protocol, slot, shared).await,
                    Ok(Err(error)) => {
                        shared.intake.metrics.close("tls");
                        warnings::warn("tls", Some(&peer), || format!("connection closed: no TLS: {error}"));
                    }
                    Err(_) => shared.intake.metrics.close("slow"),
                }
            }
        }
    }
}

/// Removes a socket that nobody listens at.
fn remove_stale(path: &Path) {
    let is_socket = path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        drop(std::fs::remove_file(path));
    }
}
