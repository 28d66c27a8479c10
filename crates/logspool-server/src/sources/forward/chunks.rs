//! The streams that one connection sends, and their chunks on the way to the stores.

use tokio::sync::oneshot;

use crate::decoders::forward;
use crate::delivery::{Chunk, Outcome, Place};
use crate::fence::Fence;
use crate::sources::shared::{End, Shared};

/// Streams that one connection may send. logspool's own client sends one.
const STREAMS: usize = 64;

/// A part of a stream, and the right to send it.
pub(super) type Numbered = (Chunk, Fence);

/// The outcome of a part of a message, and the ack that may go then; only the last part has one.
pub(super) type Waiting = (Option<Vec<u8>>, oneshot::Receiver<Outcome>);

/// Reads the chunks of one connection.
pub(super) struct Chunks {
    /// The streams that this connection sends.
    pub streams: Vec<(String, Fence)>,
    pub limits: forward::Limits,
}

impl Chunks {
    /// Where a chunk stands on this connection.
    pub fn place(&mut self, mut chunk: Chunk, shared: &Shared) -> Result<Numbered, End> {
        if let Some((_, fence)) = self.streams.iter().find(|(stream, _)| *stream == chunk.stream) {
            chunk.place = Place::Following;
            return Ok((chunk, fence.clone()));
        }
        if self.streams.len() == STREAMS {
            return Err(End::Refused);
        }
        let fence = shared.intake.take_stream(&chunk.stream);
        self.streams.push((chunk.stream.clone(), fence.clone()));
        Ok((chunk, fence))
    }
}
