//! The streams that one connection sends, and the positions of their chunks.

use crate::decoders::forward;
use crate::delivery::{Chunk, ChunkPlace};
use crate::fence::Fence;
use crate::sources::shared::{End, Shared};

/// Maximum number of streams per connection. logspool's own client sends one.
const STREAMS: usize = 64;

/// A part of a stream, and the fence that permits this connection to send it.
pub(super) type Numbered = (Chunk, Fence);

/// Reads the chunks of one connection.
pub(super) struct Chunks {
    /// The streams that this connection sends.
    pub streams: Vec<(String, Fence)>,
    pub limits: forward::Limits,
}

impl Chunks {
    /// Sets the position of a chunk in its stream as seen by this connection.
    pub fn place(&mut self, mut chunk: Chunk, shared: &Shared) -> Result<Numbered, End> {
        if let Some((_, fence)) = self.streams.iter().find(|(stream, _)| *stream == chunk.stream) {
            chunk.place = ChunkPlace::Following;
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
