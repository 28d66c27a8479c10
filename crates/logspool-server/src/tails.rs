//! Those who follow what comes: each has a short queue of batches; who does not keep up misses some, and is told.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{self, Receiver, Sender, error::TrySendError};

use crate::batch::Batch;

/// Batches that wait for one follower. They are outside the budget of the intake, so they are few: a batch is what one
/// read of a connection brings, some 64 KiB.
const WAITING: usize = 64;

/// Those who follow.
#[derive(Debug, Default)]
pub struct Tails {
    all: Mutex<Vec<Follower>>,
    count: AtomicUsize,
}

#[derive(Debug)]
struct Follower {
    to: Sender<Arc<Batch>>,
    missed: Arc<AtomicU64>,
}

/// What one follower gets.
#[derive(Debug)]
pub struct Tail {
    from: Receiver<Arc<Batch>>,
    missed: Arc<AtomicU64>,
}

impl Tails {
    /// Follows from now on.
    pub fn follow(&self) -> Tail {
        let (to, from) = mpsc::channel(WAITING);
        let missed = Arc::new(AtomicU64::new(0));
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Follower { to, missed: missed.clone() });
        self.count.store(all.len(), Ordering::Relaxed);
        Tail { from, missed }
    }

    /// Gives a batch to all who follow.
    pub fn offer(&self, batch: &Arc<Batch>) {
        // Relaxed: who begins to follow just now may miss this one.
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|follower| match follower.to.try_send(batch.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                follower.missed.fetch_add(batch.len() as u64, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Closed(_)) => false,
        });
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

impl Tail {
    /// The next batch; `None` when the service ends.
    pub async fn next(&mut self) -> Option<Arc<Batch>> {
        self.from.recv().await
    }

    /// How many records were missed since it was last asked.
    pub fn missed(&self) -> u64 {
        self.missed.swap(0, Ordering::Relaxed)
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
    fn who_has_gone_is_forgotten() {
        let tails = Tails::default();
        drop(tails.follow());
        assert_eq!(1, tails.len());
        tails.offer(&Arc::new(Batch::default()));
        assert!(tails.is_empty());
    }
}
