//! A batch on its way through the stores, and the word to its sender when it is safe.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::batch::Batch;
use crate::intake::Fence;

/// Which part of a stream a batch is: the number of its first record and of its last.
///
/// A stream is what one client process sends; an epoch begins when the client loses track of what it had sent. Records
/// are numbered from 1 within an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Name of the stream.
    pub stream: String,
    /// Its epoch.
    pub epoch: u64,
    /// Number of the first record.
    pub first: u64,
    /// Number of the last record; `first - 1` in a chunk without records.
    pub last: u64,
    /// Where it stands on its connection.
    pub place: Place,
    /// Whether the stream ends here: nothing of it has to be remembered.
    pub end: bool,
}

/// Whether chunks may be missing before a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The first of its connection: it begins with the oldest chunk that was not acked, so what is missing before it is
    /// gone for ever, and counted as a gap.
    Opening,
    /// A later one: it follows the one before it, else it is refused.
    Following,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It is in the store: stored now, or known from before.
    Committed,
    /// It does not follow what is stored, or a newer connection of its stream has taken its place. Its connection is to
    /// be closed without an ack.
    Refused,
}

/// A batch that the stores share, and whom to tell.
#[derive(Debug)]
pub struct Delivery {
    /// The records.
    pub batch: Arc<Batch>,
    /// Which part of a stream they are; `None` for senders that do not number them.
    pub chunk: Option<Chunk>,
    fence: Option<Fence>,
    open: AtomicUsize,
    sender: Mutex<Answer>,
    /// Its part of the budget of bytes, given back with it.
    _budget: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
struct Answer {
    worst: Outcome,
    to: Option<oneshot::Sender<Outcome>>,
}

impl Delivery {
    /// A batch for so many stores. The receiver hears the worst outcome once each of them has settled it.
    pub fn new(
        batch: impl Into<Arc<Batch>>,
        chunk: Option<Chunk>,
        stores: usize,
        budget: Option<OwnedSemaphorePermit>,
    ) -> (Arc<Self>, oneshot::Receiver<Outcome>) {
        Self::fenced(batch, chunk, None, stores, budget)
    }

    /// The same for a part of a stream that a newer connection may take over.
    pub fn fenced(
        batch: impl Into<Arc<Batch>>,
        chunk: Option<Chunk>,
        fence: Option<Fence>,
        stores: usize,
        budget: Option<OwnedSemaphorePermit>,
    ) -> (Arc<Self>, oneshot::Receiver<Outcome>) {
        let (to, from) = oneshot::channel();
        let sender = Mutex::new(Answer { worst: Outcome::Committed, to: Some(to) });
        let open = AtomicUsize::new(stores);
        (Arc::new(Self { batch: batch.into(), chunk, fence, open, sender, _budget: budget }), from)
    }

    /// Whether a newer connection sends its stream: then it is not to be stored.
    pub fn is_replaced(&self) -> bool {
        self.fence.as_ref().is_some_and(Fence::is_replaced)
    }

    /// Says what became of it in one store; each store says it once. A store that ends without a word leaves the sender
    /// without an ack.
    pub fn settle(&self, outcome: Outcome) {
        let mut answer = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        answer.worst = answer.worst.max(outcome);
        // Relaxed: the lock orders the stores' words.
        if self.open.fetch_sub(1, Ordering::Relaxed) == 1
            && let Some(to) = answer.to.take()
        {
            // A sender that has gone needs no answer.
            _ = to.send(answer.worst);
        }
    }
}
