//! Flushes that a language binding waits for in slices, because the binding must check for signals between the slices.
//!
//! The flush is requested once, so it does not cover records that are logged during the wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use logspool_lanes::queue::reader::LaneReader;

use super::slot::existing;
use super::state::Pipeline;
use super::waiting::deadline;
use crate::writer::{NONE, Outlet};
use logspool_sys::published::Published;

/// The sinks that a flush waits for.
#[derive(Debug, Clone)]
pub(super) enum Awaited {
    /// All sinks.
    All,
    /// All sinks except services.
    Local,
    /// One sink.
    Sink(Arc<Outlet>),
}

/// A requested flush.
#[derive(Debug)]
pub struct Flush {
    pipeline: &'static Pipeline,
    awaited: Awaited,
    ticket: u64,
}

impl Flush {
    /// Requests that queued records are written to one sink, or to all sinks if `sink` is `None`. Returns `None` if
    /// they are written already.
    ///
    /// Does not wait.
    pub fn begin(sink: Option<u32>) -> Option<Self> {
        let pipeline = existing()?;
        let awaited = match sink {
            Some(sink) => Awaited::Sink(pipeline.outlet(sink)?),
            None => Awaited::All,
        };
        pipeline.begin_flush(awaited)
    }

    /// Works as [`Self::begin`] for all sinks, but the flush does not wait for services.
    pub fn begin_local() -> Option<Self> {
        existing()?.begin_flush(Awaited::Local)
    }

    /// Waits at most for `share`. Returns whether all records queued before the request are written. Call it without an
    /// interpreter lock.
    pub fn wait(&self, share: Duration) -> bool {
        self.wait_until(deadline(Some(share)))
    }

    /// Whether the awaited sinks have dropped no records because the program closed descriptors. Ask after
    /// [`Self::wait`] has returned true.
    pub fn succeeded(&self) -> bool {
        !self.pipeline.is_current()
            || !self.pipeline.has_lost_descriptor(&self.awaited) && !self.pipeline.take_unreadable(&self.awaited)
    }

    /// How long to wait for this flush if `timeout` also covers the waits that timed out right before it.
    pub fn remaining(&self, timeout: Duration) -> Duration {
        match &self.awaited {
            Awaited::Sink(outlet) => outlet.lateness.remaining(timeout),
            Awaited::All | Awaited::Local => timeout,
        }
    }

    /// Notes that the flush timed out after `timeout`, so that a wait right after it gets less time.
    pub fn note_timeout(&self, timeout: Duration) {
        if let Awaited::Sink(outlet) = &self.awaited {
            outlet.lateness.note_timeout(timeout);
        }
    }

    pub(super) fn wait_until(&self, deadline: Option<Instant>) -> bool {
        self.pipeline.wait_for_threads(deadline, || self.is_done())
    }

    fn is_done(&self) -> bool {
        // A sink that is given up answers no flush any more. Its records are dropped and counted.
        let is_flushed =
            |outlet: &Arc<Outlet>| outlet.is_without_descriptor() || outlet.flushed_ticket.observe() >= self.ticket;
        let is_local = |outlet: &&Arc<Outlet>| outlet.traits.is_local;
        let answered = || self.pipeline.answered.observe() >= self.ticket;
        !self.pipeline.is_current()
            || match &self.awaited {
                Awaited::All => answered(),
                Awaited::Local => {
                    answered() || self.pipeline.outlets().iter().flatten().filter(is_local).all(is_flushed)
                }
                Awaited::Sink(outlet) => is_flushed(outlet),
            }
    }
}

impl Pipeline {
    /// Requests a flush. Returns `None` if all queued records are written already.
    pub(super) fn begin_flush(&'static self, awaited: Awaited) -> Option<Flush> {
        if self.is_written(&awaited) && !self.has_lost(&awaited) {
            return None;
        }
        self.ensure_threads();
        Some(Flush { pipeline: self, awaited, ticket: self.request() })
    }

    /// Whether an awaited sink has dropped records because the program closed its descriptor.
    fn has_lost_descriptor(&self, awaited: &Awaited) -> bool {
        match awaited {
            Awaited::Sink(outlet) => outlet.has_lost_descriptor(),
            Awaited::All | Awaited::Local => {
                self.outlets().iter().flatten().any(|outlet| !outlet.is_closed() && outlet.has_lost_descriptor())
            }
        }
    }

    /// Whether a flush of the awaited sinks cannot succeed.
    fn has_lost(&self, awaited: &Awaited) -> bool {
        let has_unreadable = match awaited {
            Awaited::Sink(outlet) => outlet.has_unreadable(),
            Awaited::All | Awaited::Local => self.outlets().iter().flatten().any(|outlet| outlet.has_unreadable()),
        };
        has_unreadable || self.has_lost_descriptor(awaited)
    }

    /// Whether an awaited sink has dropped records since the last flush, because their overflow could not be read
    /// again.
    fn take_unreadable(&self, awaited: &Awaited) -> bool {
        match awaited {
            Awaited::Sink(outlet) => outlet.take_unreadable(),
            Awaited::All | Awaited::Local => {
                // Each sink forgets it, not only the first.
                self.outlets().iter().flatten().filter(|outlet| outlet.take_unreadable()).count() > 0
            }
        }
    }

    /// Whether the lanes are empty and the awaited outlets hold no batch. Returns `false` also while a batch is being
    /// made, since its records are then neither in a lane nor in an outlet.
    fn is_written(&self, awaited: &Awaited) -> bool {
        let Ok(_guard) = self.batching.try_lock() else { return false };
        let lanes = self.segment.header().lanes.observe() as usize;
        (0..lanes).all(|lane| LaneReader::new(&self.segment, lane).is_none())
            && match awaited {
                Awaited::Sink(outlet) => outlet.front_batch() == NONE,
                Awaited::All | Awaited::Local => {
                    self.outlets().iter().flatten().all(|outlet| outlet.front_batch() == NONE)
                }
            }
    }
}

/// Waits until all records queued before the call are written to one sink, or to all sinks if `sink` is `None`.
///
/// Returns whether this happened within `timeout` (`None` waits for ever). Call it without an interpreter lock.
pub fn flush(sink: Option<u32>, timeout: Option<Duration>) -> bool {
    let Some(flush) = Flush::begin(sink) else { return true };
    let done = flush.wait_until(deadline(timeout));
    if let Some(timeout) = timeout.filter(|_| !done) {
        flush.note_timeout(timeout);
    }
    done && flush.succeeded()
}

/// Waits until all records queued before the call are written to all sinks except services. Use it in callers that must
/// not wait for a network.
///
/// Returns whether this happened within `timeout`. Call it without an interpreter lock.
pub fn flush_local(timeout: Duration) -> bool {
    Flush::begin_local().is_none_or(|flush| flush.wait(timeout) && flush.succeeded())
}
