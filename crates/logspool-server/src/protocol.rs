//! A protocol of senders: what it declares. The table of all of them is in [`crate::protocols`].

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Instant;

use bytes::BytesMut;
use chrono::{DateTime, FixedOffset};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::peer::Peer;
use crate::record::Record;
use crate::sources::admission::{Door, Slot};
use crate::sources::framing::Framer;
use crate::sources::shared::{End, Shared};

/// Ranges of first bytes, both ends included.
pub type FirstBytes = &'static [(u8, u8)];

/// The declaration of a protocol.
pub struct Protocol {
    /// Its name in addresses (`?protocol=NAME`), metrics and messages.
    pub name: &'static str,
    /// The senders that use it, for the reference page.
    pub senders: &'static str,
    /// The bytes with which a connection can begin.
    pub begins: FirstBytes,
    /// Decides between this protocol and another one that can begin with the same byte.
    pub tie: Option<TieBreaker>,
    /// How it comes in datagrams; `None`: not at all.
    pub datagrams: Option<Datagrams>,
    /// What its connections need a slot for: requests or records.
    pub door: Door,
    /// How a connection is read.
    pub speech: Speech,
}

/// Tells two protocols apart that begin with the same byte.
pub struct TieBreaker {
    /// Name of the other protocol.
    pub with: &'static str,
    /// Looks at the bytes that have come: `Some(true)` for the protocol that declares this, `Some(false)` for the other
    /// one, `None` while more bytes are needed.
    pub decide: fn(&[u8]) -> Option<bool>,
}

/// How connections of a protocol are read.
pub enum Speech {
    /// As frames that hold one record each. The sender gets no answers.
    Frames(Frames),
    /// By a function of its own, which answers the sender.
    Conversation {
        /// True if the service sends the first bytes on a listener for this protocol alone.
        speaks_first: fn(&Shared) -> bool,
        /// Serves one connection to its end.
        serve: for<'c> fn(Connection<'c>) -> Served<'c>,
    },
}

/// The result of serving a connection.
pub type Served<'c> = Pin<Box<dyn Future<Output = End> + Send + 'c>>;

/// A protocol whose frames hold one record each.
#[derive(Clone, Copy)]
pub struct Frames {
    /// Makes a framer for one connection; the argument is the greatest length of a frame in bytes.
    pub framer: fn(usize) -> Box<dyn Framer>,
    /// Decodes a frame that arrived at this time. The error says why it cannot be decoded.
    pub read: for<'f> fn(&'f [u8], DateTime<FixedOffset>) -> Result<Record<'f>, String>,
    /// What white space at the end of a frame means.
    pub space: Space,
}

/// White space at the end of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// It is not part of the frame, and a frame of nothing else is skipped.
    Trimmed,
    /// It is part of the frame.
    Kept,
}

/// How a protocol comes in datagrams.
pub struct Datagrams {
    /// The bytes with which a datagram can begin.
    pub begins: FirstBytes,
    /// Makes the state that one socket keeps.
    pub open: fn() -> Box<dyn Unpack>,
}

/// Finds the frames in datagrams.
pub trait Unpack: Send {
    /// Calls `each` with the frame that is complete now, if there is one, or with the reason why the datagram is refused.
    fn take(&mut self, datagram: &[u8], from: SocketAddr, now: Instant, each: &mut dyn FnMut(Result<&[u8], &str>));

    /// When [`Self::expire`] has something to do next.
    fn next_expiry(&self) -> Option<Instant> {
        None
    }

    /// Drops the parts of messages whose other parts are late.
    fn expire(&mut self, _now: Instant) {}

    /// Drops the parts of all messages that are not complete.
    fn end(&mut self) {}

    /// Messages dropped so far because parts of them were missing.
    fn dropped(&self) -> u64 {
        0
    }
}

/// A connection whose protocol is known.
pub struct Connection<'c> {
    /// Its protocol.
    pub protocol: &'static Protocol,
    /// Where bytes are read from and written to.
    pub stream: Box<dyn Duplex>,
    /// The bytes that have come; empty if the service speaks first.
    pub first: BytesMut,
    /// The sender.
    pub peer: &'c Peer,
    /// Its slot.
    pub slot: &'c Slot,
    /// What all connections share.
    pub shared: &'c Shared,
}

/// A stream in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

impl Protocol {
    /// True if a connection can begin with this byte.
    pub fn may_begin_with(&self, byte: u8) -> bool {
        contains(self.begins, byte)
    }

    /// The declaration of its frames; `None` for a conversation.
    pub fn frames(&self) -> Option<Frames> {
        match self.speech {
            Speech::Frames(frames) => Some(frames),
            Speech::Conversation { .. } => None,
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
