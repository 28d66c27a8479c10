//! Flushes that a shell waits for in shares, because it has to look after something else in between.
//!
//! A flush is asked for once, so what is logged while it is waited for is no part of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use logspool_lanes::queue::reader::LaneReader;

use super::slot::existing;
use super::state::Pipeline;
use super::waiting::deadline;
use crate::writer::{NONE, Outlet};

/// What a flush waits for.
#[derive(Debug, Clone)]
pub(super) enum Awaited {
    /// All sinks.
    All,
    /// All but services.
    Local,
    /// One sink.
    Sink(Arc<Outlet>),
}

/// A flush that was asked for.
#[derive(Debug)]
pub struct Flush {
    pipeline: &'static Pipeline,
    awaited: Awaited,
    ticket: u64,
}

impl Flush {
    /// Asks for what is queued to be written: to one sink, or with `None` to all. `None`: all of it is written.
    ///
    /// Waits for nothing itself.
    pub fn begin(sink: Option<u32>) -> Option<Self> {
        let pipeline = existing()?;
        let awaited = match sink {
            Some(sink) => Awaited::Sink(pipeline.outlet(sink)?),
            None => Awaited::All,
        };
        pipeline.begin_flush(awaited)
    }

    /// As [`Self::begin`] for all sinks, but services are not waited for.
    pub fn begin_local() -> Option<Self> {
        existing()?.begin_flush(Awaited::Local)
    }

    /// Waits at most for `share`. Returns whether everything queued before is written. Call without an interpreter lock.
    pub fn wait(&self, share: Duration) -> bool {
        self.wait_until(deadline(Some(share)))
    }

    /// How long to wait where `timeout` is allowed for this flush and what was waited for in vain right before it.
    pub fn share(&self, timeout: Duration) -> Duration {
        match &self.awaited {
            Awaited::Sink(outlet) => outlet.lateness.share(timeout),
            Awaited::All | Awaited::Local => timeout,
        }
    }

    /// Notes that `timeout` was not enough: what is waited for right behind this flush has less time then.
    pub fn note_late(&self, timeout: Duration) {
        if let Awaited::Sink(outlet) = &self.awaited {
            outlet.lateness.note(timeout);
        }
    }

    pub(super) fn wait_until(&self, deadline: Option<Instant>) -> bool {
        self.pipeline.wait_for_threads(deadline, || self.is_done())
    }

    fn is_done(&self) -> bool {
        let is_flushed = |outlet: &Arc<Outlet>| outlet.flushed_ticket.load(Ordering::Acquire) >= self.ticket;
        let is_local = |outlet: &&Arc<Outlet>| outlet.traits.is_local;
        let answered = || self.pipeline.answered.load(Ordering::Acquire) >= self.ticket;
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
    /// Asks for a flush. `None`: everything queued before is written already.
    pub(super) fn begin_flush(&'static self, awaited: Awaited) -> Option<Flush> {
        if self.is_written(&awaited) {
            return None;
        }
        self.ensure_threads();
        Some(Flush { pipeline: self, awaited, ticket: self.request() })
    }

    /// Whether the lanes are empty and no batch waits for what is awaited. `false` also while a batch is being made,
    /// which lies neither in a lane nor in an outlet.
    fn is_written(&self, awaited: &Awaited) -> bool {
        let Ok(_guard) = self.batching.try_lock() else { return false };
        let lanes = self.segment.header().lanes.load(Ordering::Acquire) as usize;
        (0..lanes).all(|lane| LaneReader::new(&self.segment, lane).is_none())
            && match awaited {
                Awaited::Sink(outlet) => outlet.front_batch() == NONE,
                Awaited::All | Awaited::Local => {
                    self.outlets().iter().flatten().all(|outlet| outlet.front_batch() == NONE)
                }
            }
    }
}

/// Waits until everything queued before is written: to one sink, or with `None` to all.
///
/// Returns whether that came true within `timeout` (`None` waits for ever). Call without an interpreter lock.
pub fn flush(sink: Option<u32>, timeout: Option<Duration>) -> bool {
    let Some(flush) = Flush::begin(sink) else { return true };
    let done = flush.wait_until(deadline(timeout));
    if let Some(timeout) = timeout.filter(|_| !done) {
        flush.note_late(timeout);
    }
    done
}

/// Waits until everything queued before is written to everything but services: for what must not wait for a network.
///
/// Returns whether that came true within `timeout`. Call without an interpreter lock.
pub fn flush_local(timeout: Duration) -> bool {
    Flush::begin_local().is_none_or(|flush| flush.wait(timeout))
}
