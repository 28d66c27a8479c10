//! Keeps track of the streams that one connection sends.

use std::collections::HashMap;

use crate::budget::Reservation;
use crate::connection::shared::{ConnectionEnd, SharedState};
use crate::decoders::forward;
use crate::delivery::Chunk;
use crate::fence::Fence;
use crate::peer::Peer;

/// Maximum number of streams per connection.
///
/// Chosen: logspool's own client sends one, and a relay those of a whole machine. With 10,000 streams a connection needs
/// some 3 MB.
const MAX_STREAMS: usize = 10_000;

/// The memory that a stream needs, besides two copies of its name: an entry in the map of its connection, one in the map
/// of the intake, and the fence. A map may be half empty.
const STREAM_BYTES: usize = 200;

/// A part of a stream, with the fence that is the permission of this connection to send the stream.
pub(super) type NumberedChunk = (Chunk, Fence);

/// The state for reading the chunks of one connection.
pub(super) struct ConnectionChunks {
    /// The fences of the streams that this connection sends, by name.
    pub streams: HashMap<String, Fence>,
    /// The reservation for the streams after the first one.
    pub room: Option<Reservation>,
    /// The peer, which the memory of the streams is charged to.
    pub peer: Peer,
    pub limits: forward::ForwardLimits,
}

impl ConnectionChunks {
    /// Adds the fence of its stream to a chunk. The first chunk of a stream takes the stream from an older connection.
    pub fn number(&mut self, chunk: Chunk, shared: &SharedState) -> Result<NumberedChunk, ConnectionEnd> {
        if let Some(fence) = self.streams.get(&chunk.stream) {
            return Ok((chunk, fence.clone()));
        }
        if self.streams.len() == MAX_STREAMS {
            return Err(ConnectionEnd::TooManyStreams);
        }
        // The first stream is part of what a connection costs; `limits.connections` limits these.
        if !self.streams.is_empty() && !self.reserve(STREAM_BYTES + 2 * chunk.stream.len(), shared) {
            return Err(ConnectionEnd::TooManyStreams);
        }
        let fence = shared.intake.take_stream(&chunk.stream);
        self.streams.insert(chunk.stream.clone(), fence.clone());
        Ok((chunk, fence))
    }

    /// Reserves memory for one more stream. Returns false if not enough is free.
    fn reserve(&mut self, bytes: usize, shared: &SharedState) -> bool {
        match &mut self.room {
            Some(room) => room.try_grow(bytes),
            None => {
                self.room = shared.intake.budget.try_for_stream(self.peer.origin(), bytes);
                self.room.is_some()
            }
        }
    }
}
