//! State shared by all connections, and the reasons why a connection ends.

use std::sync::Arc;

use super::framing::FrameError;
use super::key::ForwardKey;
use crate::intake::Intake;
use crate::limits::Limits;
use crate::sender_zones::SenderZone;
use crate::share::Refusal;
use crate::stop::StopSignal;

/// State shared by all connections.
#[derive(Debug)]
pub struct SharedState {
    /// Receives the records.
    pub intake: Arc<Intake>,
    /// Limits for clients.
    pub limits: Limits,
    /// Handles HTTP requests.
    pub http: axum::Router,
    /// The shared key for Forward listeners that require one.
    pub shared_key: Option<ForwardKey>,
    /// Zones of single senders.
    pub zones: Vec<SenderZone>,
    /// The signal that the service ends.
    pub stop: StopSignal,
}

/// Reason why a connection ends.
#[derive(Debug)]
pub enum ConnectionEnd {
    /// The peer closed it, or the service ends.
    Peer,
    /// The stream cannot be read any further.
    Frame(FrameError),
    /// The peer was too slow, or silent for too long. The value is the name of the exceeded limit.
    Slow(&'static str),
    /// The peer does not read its answers.
    AnswersUnread,
    /// A newer connection sends a stream of this one, or a store has ended.
    Refused,
    /// The connection sends too many streams.
    TooManyStreams,
    /// The connection sends records, and the general pool has no slot for it.
    NoSlot(Refusal),
    /// The peer has a wrong key.
    Key(String),
    /// The connection failed.
    Io(std::io::Error),
}

impl From<std::io::Error> for ConnectionEnd {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FrameError> for ConnectionEnd {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}
