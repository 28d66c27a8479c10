//! A batch that is handed to the stores, and the outcome that its sender gets.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::batch::Batch;
use crate::budget::Reservation;
use crate::fence::Fence;

/// Maximum length of a stream's name in bytes. A chunk with a longer name is stored like a batch without numbers.
///
/// Chosen: clients use names like a UUID, which are far shorter. PostgreSQL refuses keys longer than about 2,700 bytes.
pub const MAX_STREAM_BYTES: usize = 255;

/// The part of a stream that a batch holds: the numbers of its first and last record.
///
/// A stream is the output of one client process. An epoch begins when the client loses track of the records it has
/// sent. Records are numbered from 1 within an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Name of the stream.
    pub stream: String,
    /// Epoch of the stream.
    pub epoch: u64,
    /// Number of the first record.
    pub first: u64,
    /// Number of the last record; `first - 1` in a chunk without records.
    pub last: u64,
    /// True if the stream ends with this chunk.
    pub end: bool,
}

/// The outcome of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// All records of the batch are in the store. The store wrote them now or had them already.
    Committed,
    /// No record of the batch can ever be stored. The sender gets an ack with the reason.
    Dropped(DropReason),
    /// A newer connection sends the stream now. The connection has to be closed without an ack.
    Refused,
}

/// The reason why a chunk can never be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The store has a newer epoch of the stream. It no longer knows which records of the older one it has.
    OlderEpoch,
}

impl DropReason {
    /// The reason in the ack.
    pub fn text(self) -> &'static str {
        match self {
            Self::OlderEpoch => "the store has a newer epoch of the stream",
        }
    }
}

/// A batch that the stores share, with the recipient of its outcome.
#[derive(Debug)]
pub struct Delivery {
    /// The records.
    pub batch: Arc<Batch>,
    /// The part of a stream that the batch holds; `None` if the sender does not number records.
    pub chunk: Option<Chunk>,
    fence: Option<Fence>,
    pending_stores: AtomicUsize,
    sender: Mutex<PendingOutcome>,
    /// The reservation of the batch in the memory budget. It is freed when the delivery is dropped.
    _room: Option<Reservation>,
}

#[derive(Debug)]
struct PendingOutcome {
    worst: Outcome,
    /// `None` after the outcome was sent.
    to: Option<OutcomeTarget>,
}

#[derive(Debug)]
enum OutcomeTarget {
    /// A task waits for the outcome.
    Task(oneshot::Sender<Outcome>),
    /// No task waits, because the sender gets no acks. The records are only counted.
    Counter(UnackedCount),
}

/// A number of records or bytes that the sender will not send again, counted until the stores have settled them. If
/// this value is dropped without [`Self::settled`], the number stays counted, because the data is lost.
#[derive(Debug)]
pub struct UnackedCount {
    all: Arc<AtomicU64>,
    number: u64,
}

impl UnackedCount {
    /// Adds `number` to the counter `all`.
    pub fn new(all: &Arc<AtomicU64>, number: usize) -> Self {
        // Relaxed, here and below: the counter is read only after the writers have ended.
        all.fetch_add(number as u64, Ordering::Relaxed);
        Self { all: all.clone(), number: number as u64 }
    }

    /// Subtracts the number from the counter again.
    pub fn settled(self) {
        self.all.fetch_sub(self.number, Ordering::Relaxed);
    }
}

impl Delivery {
    /// Creates a delivery to `stores` stores. When all of them have settled the batch, the receiver gets the worst
    /// outcome.
    pub fn new(
        batch: impl Into<Arc<Batch>>,
        chunk: Option<Chunk>,
        stores: usize,
        room: Option<Reservation>,
    ) -> (Arc<Self>, oneshot::Receiver<Outcome>) {
        let (to, from) = oneshot::channel();
        (Self::fenced(batch.into(), chunk, None, to, stores, room), from)
    }

    /// Creates a delivery like [`Self::new`]. The outcome is sent to `to`. With a `fence`, the batch is not stored once
    /// a newer connection sends the stream.
    pub fn fenced(
        batch: Arc<Batch>,
        chunk: Option<Chunk>,
        fence: Option<Fence>,
        to: oneshot::Sender<Outcome>,
        stores: usize,
        room: Option<Reservation>,
    ) -> Arc<Self> {
        Self::with_target(batch, chunk, fence, OutcomeTarget::Task(to), stores, room)
    }

    /// Creates a delivery for a sender that gets no acks.
    pub fn without_ack(
        batch: Arc<Batch>,
        unheard: UnackedCount,
        stores: usize,
        room: Option<Reservation>,
    ) -> Arc<Self> {
        Self::with_target(batch, None, None, OutcomeTarget::Counter(unheard), stores, room)
    }

    fn with_target(
        batch: Arc<Batch>,
        chunk: Option<Chunk>,
        fence: Option<Fence>,
        to: OutcomeTarget,
        stores: usize,
        room: Option<Reservation>,
    ) -> Arc<Self> {
        let sender = Mutex::new(PendingOutcome { worst: Outcome::Committed, to: Some(to) });
        Arc::new(Self { batch, chunk, fence, pending_stores: AtomicUsize::new(stores), sender, _room: room })
    }

    /// True if the sender waits for the outcome.
    pub fn is_awaited(&self) -> bool {
        let answer = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(answer.to, Some(OutcomeTarget::Task(_)))
    }

    /// True if a newer connection sends the stream, so that the batch must not be stored.
    pub fn is_replaced(&self) -> bool {
        self.fence.as_ref().is_some_and(Fence::is_replaced)
    }

    /// Reports the outcome of one store. Each store calls this method once. If a store ends without calling it, the
    /// sender gets no ack.
    pub fn settle(&self, outcome: Outcome) {
        let mut answer = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        answer.worst = answer.worst.max(outcome);
        // Relaxed: the lock orders the calls of the stores.
        if self.pending_stores.fetch_sub(1, Ordering::Relaxed) == 1
            && let Some(to) = answer.to.take()
        {
            match to {
                // An error means that no task waits for the outcome any more.
                OutcomeTarget::Task(to) => _ = to.send(answer.worst),
                OutcomeTarget::Counter(records) => records.settled(),
            }
        }
    }
}
