//! A batch on its way through the stores, and the word to its sender when it is safe.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::batch::Batch;
use crate::budget::Room;
use crate::fence::Fence;

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
    _room: Option<Room>,
}

#[derive(Debug)]
struct Answer {
    worst: Outcome,
    /// Empty once it is given.
    to: Option<Asker>,
}

#[derive(Debug)]
enum Asker {
    /// Somebody waits for it.
    Waits(oneshot::Sender<Outcome>),
    /// The sender knows no answers.
    Unheard(Unheard),
}

/// A number of records, or of bytes, whose sender will not send them again, until they are settled. If this is dropped
/// before, they stay counted: they are lost.
#[derive(Debug)]
pub struct Unheard {
    all: Arc<AtomicU64>,
    number: u64,
}

impl Unheard {
    /// Adds so many to `all`.
    pub fn new(all: &Arc<AtomicU64>, number: usize) -> Self {
        // Relaxed, here and below: a number that is read when the writers have ended.
        all.fetch_add(number as u64, Ordering::Relaxed);
        Self { all: all.clone(), number: number as u64 }
    }

    /// Takes them off again.
    pub fn settled(self) {
        self.all.fetch_sub(self.number, Ordering::Relaxed);
    }
}

impl Delivery {
    /// A batch for so many stores. The receiver hears the worst outcome once each of them has settled it.
    pub fn new(
        batch: impl Into<Arc<Batch>>,
        chunk: Option<Chunk>,
        stores: usize,
        room: Option<Room>,
    ) -> (Arc<Self>, oneshot::Receiver<Outcome>) {
        let (to, from) = oneshot::channel();
        (Self::fenced(batch.into(), chunk, None, to, stores, room), from)
    }

    /// The same for a part of a stream that a newer connection may take over.
    pub fn fenced(
        batch: Arc<Batch>,
        chunk: Option<Chunk>,
        fence: Option<Fence>,
        to: oneshot::Sender<Outcome>,
        stores: usize,
        room: Option<Room>,
    ) -> Arc<Self> {
        Self::asked(batch, chunk, fence, Asker::Waits(to), stores, room)
    }

    /// A batch of a sender that knows no answers.
    pub fn unheard(batch: Arc<Batch>, unheard: Unheard, stores: usize, room: Option<Room>) -> Arc<Self> {
        Self::asked(batch, None, None, Asker::Unheard(unheard), stores, room)
    }

    fn asked(
        batch: Arc<Batch>,
        chunk: Option<Chunk>,
        fence: Option<Fence>,
        to: Asker,
        stores: usize,
        room: Option<Room>,
    ) -> Arc<Self> {
        let sender = Mutex::new(Answer { worst: Outcome::Committed, to: Some(to) });
        Arc::new(Self { batch, chunk, fence, open: AtomicUsize::new(stores), sender, _room: room })
    }

    /// Whether its sender waits to hear what becomes of it.
    pub fn is_awaited(&self) -> bool {
        let answer = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(answer.to, Some(Asker::Waits(_)))
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
            match to {
                // A sender that has gone needs no answer.
                Asker::Waits(to) => _ = to.send(answer.worst),
                Asker::Unheard(records) => records.settled(),
            }
        }
    }
}
