//! The types with which a protocol of senders is declared. The table of all protocols is in [`crate::known_protocols`].

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Instant;

use bytes::BytesMut;
use chrono::{DateTime, FixedOffset};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connection::admission::{Slot, TrafficKind};
use crate::connection::framing::Framer;
use crate::connection::shared::{ConnectionEnd, SharedState};
use crate::peer::Peer;
use crate::record::Record;

/// Ranges of first bytes, both ends included.
pub type FirstBytes = &'static [(u8, u8)];

/// The declaration of a protocol.
pub struct Protocol {
    /// Its name in addresses (`?protocol=NAME`), metrics and messages.
    pub name: &'static str,
    /// The senders that use it, for the reference page.
    pub senders: &'static str,
    /// The bytes with which a connection can begin.
    pub first_bytes: FirstBytes,
    /// Decides between this protocol and another protocol that can begin with the same byte.
    pub tie_breaker: Option<TieBreaker>,
    /// How datagrams of the protocol are read; `None`: the protocol has no datagrams.
    pub datagrams: Option<Datagrams>,
    /// The kind of traffic: HTTP requests or records. It decides which slots a connection may use.
    pub traffic: TrafficKind,
    /// How a connection is read.
    pub connections: ConnectionKind,
}

/// Decides between two protocols that begin with the same byte.
pub struct TieBreaker {
    /// Name of the other protocol.
    pub other: &'static str,
    /// Inspects the bytes received so far. `Some(true)` selects the protocol that declares this tie-breaker, and
    /// `Some(false)` the other protocol. `None`: more bytes are needed.
    pub decide: fn(&[u8]) -> Option<bool>,
}

/// How connections of a protocol are read.
pub enum ConnectionKind {
    /// The connection is a sequence of frames that hold one record each. The sender gets no answers.
    Frames(FrameFormat),
    /// A function of the protocol reads the connection and answers the sender.
    Session {
        /// True if the service sends the first bytes on a listener for this protocol alone.
        sends_first: fn(&SharedState) -> bool,
        /// Serves one connection to its end.
        serve: for<'c> fn(Connection<'c>) -> ServeFuture<'c>,
    },
}

/// The result of serving a connection.
pub type ServeFuture<'c> = Pin<Box<dyn Future<Output = ConnectionEnd> + Send + 'c>>;

/// A protocol whose frames hold one record each.
#[derive(Clone, Copy)]
pub struct FrameFormat {
    /// Creates a framer for one connection. The argument is the maximum length of a frame in bytes.
    pub framer: fn(usize) -> Box<dyn Framer>,
    /// Decodes a frame. The second argument is the time of its arrival. The error is the reason why the frame cannot be
    /// decoded.
    pub read: for<'f> fn(&'f [u8], DateTime<FixedOffset>) -> Result<Record<'f>, String>,
    /// What a frame holds.
    pub content: FrameContent,
    /// Handling of white space at the end of a frame.
    pub trailing_space: TrailingSpace,
}

/// What a frame holds, if its decoder can read it or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameContent {
    /// One record.
    Record,
    /// A JSON object. A frame that is none may hold one after all, between other lines or in a list that is cut off.
    Json,
    /// A line of text, or a list of JSON objects.
    Text,
}

/// White space at the end of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrailingSpace {
    /// White space is not part of the frame. A frame of only white space is skipped.
    Trimmed,
    /// White space is part of the frame.
    Kept,
}

/// How datagrams of a protocol are read.
pub struct Datagrams {
    /// The bytes with which a datagram can begin.
    pub begins: FirstBytes,
    /// Creates the state of one socket.
    pub open: fn() -> Box<dyn DatagramUnpacker>,
}

/// Callback that receives the frame of a datagram, or the reason why the datagram is refused.
pub type FrameCallback<'e> = &'e mut dyn FnMut(Result<&[u8], &str>);

/// Finds the frames in datagrams.
pub trait DatagramUnpacker: Send {
    /// Calls `each` with the frame that is complete now, if there is one, or with the reason why the datagram is
    /// refused.
    fn take(&mut self, datagram: &[u8], from: SocketAddr, now: Instant, each: FrameCallback<'_>);

    /// Time when the next incomplete message expires, so that [`Self::expire`] has something to drop.
    fn next_expiry(&self) -> Option<Instant> {
        None
    }

    /// Drops incomplete messages that have waited too long.
    fn expire(&mut self, _now: Instant) {}

    /// Drops all incomplete messages.
    fn end(&mut self) {}

    /// Number of messages dropped because parts of them were missing.
    fn dropped(&self) -> u64 {
        0
    }
}

/// A connection whose protocol is known.
pub struct Connection<'c> {
    /// The protocol of the connection.
    pub protocol: &'static Protocol,
    /// The stream to read from and write to.
    pub stream: Box<dyn DuplexStream>,
    /// The bytes that were received to detect the protocol; empty if the service sends first.
    pub first: BytesMut,
    /// The sender.
    pub peer: &'c Peer,
    /// The slot that the connection holds.
    pub slot: &'c Slot,
    /// State shared by all connections.
    pub shared: &'c SharedState,
}

/// A stream in both directions.
pub trait DuplexStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> DuplexStream for S {}

impl Protocol {
    /// True if a connection can begin with this byte.
    pub fn may_begin_with(&self, byte: u8) -> bool {
        contains(self.first_bytes, byte)
    }

    /// The declaration of the frames; `None` if the protocol serves its connections with a [`ConnectionKind::Session`].
    pub fn frame_format(&self) -> Option<FrameFormat> {
        match self.connections {
            ConnectionKind::Frames(frames) => Some(frames),
            ConnectionKind::Session { .. } => None,
        }
    }
}

/// True if a byte is in one of the ranges.
pub fn contains(ranges: FirstBytes, byte: u8) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&byte))
}

impl fmt::Debug for Protocol {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name)
    }
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Protocol {}
