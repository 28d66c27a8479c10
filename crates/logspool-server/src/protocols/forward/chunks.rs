//! The streams that one connection sends, and the positions of their chunks.

use crate::decoders::forward;
use crate::delivery::{Chunk, ChunkPosition};
use crate::fence::Fence;
use crate::sources::shared::{ConnectionEnd, SharedState};

/// Maximum number of streams per connection. logspool's own client sends one.
const MAX_STREAMS: usize = 64;

/// A part of a stream, and the fence that permits this connection to send it.
pub(super) type NumberedChunk = (Chunk, Fence);

/// Reads the chunks of one connection.
pub(super) struct ConnectionChunks {
    /// The streams that this connection sends.
    pub streams: Vec<(String, Fence)>,
    pub limits: forward::ForwardLimits,
}

impl ConnectionChunks {
    /// Sets the position of a chunk in its stream as seen by this connection.
    pub fn number(&mut self, mut chunk: Chunk, shared: &SharedState) -> Result<NumberedChunk, ConnectionEnd> {
        if let Some((_, fence)) = self.streams.iter().find(|(stream, _)| *stream == chunk.stream) {
            chunk.position = ChunkPosition::Later;
            return Ok((chunk, fence.clone()));
        }
        if self.streams.len() == MAX_STREAMS {
            return Err(ConnectionEnd::Refused);
        }
        let fence = shared.intake.take_stream(&chunk.stream);
        self.streams.push((chunk.stream.clone(), fence.clone()));
        Ok((chunk, fence))
    }
}
