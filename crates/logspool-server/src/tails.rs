//! Those who follow what comes: each has a short queue of batches; who does not keep up misses some, and is told.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{self, Receiver, Sender, error::TrySendError};

use crate::batch::Batch;

/// Batches that wait for one follower: what one read of a connection brings, some 64 KiB, or one request. They are outside
/// the budget of the intake, so they are few.
const WAITING: usize = 64;

/// Bytes of them; a single one may be larger. Chosen: so many batches of the usual size.
const WAITING_BYTES: usize = WAITING * 64 * 1024;

/// Those who follow.
#[derive(Debug, Default)]
pub struct Tails {
    all: Mutex<Vec<Follower>>,
    count: AtomicUsize,
}

#[derive(Debug)]
struct Follower {
    to: Sender<Arc<Batch>>,
    shared: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Bytes of the batches that wait.
    waiting: AtomicUsize,
    /// Records.
    missed: AtomicU64,
}

/// What one follower gets.
#[derive(Debug)]
pub struct Tail {
    from: Receiver<Arc<Batch>>,
    shared: Arc<Counts>,
}

impl Tails {
    /// Follows from now on.
    pub fn follow(&self) -> Tail {
        let (to, from) = mpsc::channel(WAITING);
        let shared = Arc::<Counts>::default();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Follower { to, shared: shared.clone() });
        self.count.store(all.len(), Ordering::Relaxed);
        Tail { from, shared }
    }

    /// Gives a batch to all who follow.
    pub fn offer(&self, batch: &Arc<Batch>) {
        // Relaxed: who begins to follow just now may miss this one.
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|follower| follower.offer(batch));
        self.count.store(all.len(), Ordering::Relaxed);
    }

    /// How many follow.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether nobody follows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Follower {
    /// `false`: it has gone.
    fn offer(&self, batch: &Arc<Batch>) -> bool {
        let bytes = batch.bytes();
        // Relaxed, here and below: only one thread at a time adds, so what waits is this much at most.
        let waiting = self.shared.waiting.load(Ordering::Relaxed);
        match self.to.try_reserve() {
            Ok(place) if waiting == 0 || waiting + bytes <= WAITING_BYTES => {
                self.shared.waiting.fetch_add(bytes, Ordering::Relaxed);
                place.send(batch.clone());
            }
            Ok(_) | Err(TrySendError::Full(())) => {
                self.shared.missed.fetch_add(batch.len() as u64, Ordering::Relaxed);
            }
            Err(TrySendError::Closed(())) => return false,
        }
        true
    }
}

impl Tail {
    /// The next batch; `None` when the service ends.
    pub async fn next(&mut self) -> Option<Arc<Batch>> {
        let batch = self.from.recv().await?;
        self.shared.waiting.fetch_sub(batch.bytes(), Ordering::Relaxed);
        Some(batch)
    }

    /// How many records were missed since it was last asked.
    pub fn missed(&self) -> u64 {
        self.shared.missed.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Arrival;
    use crate::record::Record;

    #[test]
    fn who_does_not_keep_up_misses_records_and_is_told_how_many() {
        let mut batch = Batch::default();
        for _ in 0..3 {
            batch.push(&Record::default(), Arrival { time_ns: 0, host: "" });
        }
        let batch = Arc::new(batch);
        let tails = Tails::default();
        let mut tail = tails.follow();
        for _ in 0..WAITING + 2 {
            tails.offer(&batch);
        }

        assert_eq!(6, tail.missed());
        assert_eq!(0, tail.missed());
        let mut came = 0;
        while let Ok(batch) = tail.from.try_recv() {
            came += batch.len();
        }
        assert_eq!(3 * WAITING, came);
    }

    #[test]
    fn large_batches_that_wait_are_bounded_by_their_bytes() {
        let mut batch = Batch::default();
        let message = "x".repeat(1 << 20);
        batch.push(&Record { message: message.into(), ..Record::default() }, Arrival { time_ns: 0, host: "" });
        let batch = Arc::new(batch);
        let tails = Tails::default();
        let mut tail = tails.follow();
        for _ in 0..WAITING {
            tails.offer(&batch);
        }

        assert_eq!(WAITING as u64 - 3, tail.missed());
        assert!(tail.shared.waiting.load(Ordering::Relaxed) <= WAITING_BYTES);
        for _ in 0..3 {
            futures_executor::block_on(tail.next()).unwrap();
        }
        assert_eq!(0, tail.shared.waiting.load(Ordering::Relaxed));
        // A single one that is larger than all that may wait comes all the same.
        let mut large = Batch::default();
        let message = "x".repeat(WAITING_BYTES + 1);
        large.push(&Record { message: message.into(), ..Record::default() }, Arrival { time_ns: 0, host: "" });
        tails.offer(&Arc::new(large));
        tails.offer(&batch);
        assert_eq!(1, tail.missed());
        assert_eq!(WAITING_BYTES + 1, futures_executor::block_on(tail.next()).unwrap().row(0).unwrap().message.len());
    }

    #[test]
    fn who_has_gone_is_forgotten() {
        let tails = Tails::default();
        drop(tails.follow());
        assert_eq!(1, tails.len());
        tails.offer(&Arc::new(Batch::default()));
        assert!(tails.is_empty());
    }
}
