//! Keeps track of the streams that one connection sends, and of the positions of their chunks.

use std::collections::HashMap;

use crate::connection::shared::{ConnectionEnd, SharedState};
use crate::decoders::forward;
use crate::delivery::{Chunk, ChunkPosition};
use crate::fence::Fence;

/// Maximum number of streams per connection.
///
/// Chosen: logspool's own client sends one, and a relay those of a whole machine. With 10,000 streams a connection needs
/// 1 MB.
const MAX_STREAMS: usize = 10_000;

/// A part of a stream, with the fence that is the permission of this connection to send the stream.
pub(super) type NumberedChunk = (Chunk, Fence);

/// The state for reading the chunks of one connection.
pub(super) struct ConnectionChunks {
    /// The fences of the streams that this connection sends, by name.
    pub streams: HashMap<String, Fence>,
    pub limits: forward::ForwardLimits,
}

impl ConnectionChunks {
    /// Sets the position of a chunk: first or later chunk of its stream on this connection. The first chunk takes the
    /// stream from an older connection.
    pub fn number(&mut self, mut chunk: Chunk, shared: &SharedState) -> Result<NumberedChunk, ConnectionEnd> {
        if let Some(fence) = self.streams.get(&chunk.stream) {
            chunk.position = ChunkPosition::Later;
            return Ok((chunk, fence.clone()));
        }
        if self.streams.len() == MAX_STREAMS {
            return Err(ConnectionEnd::Refused);
        }
        let fence = shared.intake.take_stream(&chunk.stream);
        self.streams.insert(chunk.stream.clone(), fence.clone());
        Ok((chunk, fence))
    }
}
