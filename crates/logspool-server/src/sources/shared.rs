//! What all connections share, and why one ends.

use std::sync::Arc;

use super::framing::FrameError;
use super::key::Key;
use crate::config::Limits;
use crate::intake::Intake;
use crate::share::Refusal;
use crate::stop::Stop;

/// What all connections share.
#[derive(Debug)]
pub struct Shared {
    /// Where records go.
    pub intake: Arc<Intake>,
    /// Bounds.
    pub limits: Limits,
    /// Answers HTTP.
    pub http: axum::Router,
    /// For listeners of Forward that want one.
    pub shared_key: Option<Key>,
    /// Says when the service ends.
    pub stop: Stop,
}

/// Why a connection ends.
#[derive(Debug)]
pub enum End {
    /// The peer closed it, or the service ends.
    Peer,
    /// It cannot be read on.
    Frame(FrameError),
    /// It was too slow, or silent for too long: which limit.
    Slow(&'static str),
    /// It takes no answers.
    Deaf,
    /// What it sent does not follow what is stored.
    Refused,
    /// It sends records, and the slots for that are taken.
    NoSlot(Refusal),
    /// The key is wrong.
    Key(String),
    /// The network says so.
    Io(std::io::Error),
}

impl From<std::io::Error> for End {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FrameError> for End {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}
