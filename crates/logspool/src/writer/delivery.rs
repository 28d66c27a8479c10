//! The writer thread of a sink whose destination confirms later what it got: a batch stays queued, and counts as
//! queued, until it has arrived.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::{Outlet, TEXT, Waiting};
use crate::chunk::Chunk;
use crate::clock::{monotonic_ns, wall_ns};
use crate::durable::Outcome;
use crate::sink::{Courier, Lines, Next, Pace};
use crate::stats::DropReason;

/// How long a writer waits for an answer before it looks for new batches and at its orders again.
///
/// Chosen: a fork and a flush notice at most this delay, and it costs a hundred wake-ups a second only while batches
/// are on their way.
const ANSWER_WAIT: Duration = Duration::from_millis(10);

/// What to do now.
enum Errand {
    Leave,
    Take(Arc<Chunk>),
    Carry,
}

impl Outlet {
    /// Runs until asked to leave, or until the sink is closed or given up. The thread is counted as gone then.
    pub(super) fn deliver(&self, courier: &mut dyn Courier, on_arrival: impl Fn()) {
        loop {
            match self.errand(courier.has_room()) {
                Errand::Leave => return,
                Errand::Take(chunk) => courier.take(Lines { bytes: &chunk.bytes, marks: &chunk.marks, before: 0 }),
                Errand::Carry => self.carry(courier, &on_arrival),
            }
        }
    }

    fn errand(&self, has_room: bool) -> Errand {
        let mut waiting = self.lock();
        loop {
            if self.is_over(&waiting) {
                waiting.thread_runs = false;
                return Errand::Leave;
            }
            let position = waiting.taken;
            let Some(entry) = waiting.entries.get(position).filter(|_| has_room) else { return Errand::Carry };
            if let Some(chunk) = &entry.heap {
                let chunk = chunk.clone();
                waiting.taken += 1;
                return Errand::Take(chunk);
            }
            let (place, batch, counts) = (entry.place.clone(), entry.batch, entry.counts);
            drop(waiting);
            let chunk = place.map(|place| place.read(batch, counts));
            waiting = self.lock();
            // Whoever gives the sink up takes the entries away meanwhile.
            if waiting.entries.get(position).is_none_or(|entry| entry.batch != batch) {
                continue;
            }
            if let Some(Ok(chunk)) = chunk {
                waiting.taken += 1;
                return Errand::Take(Arc::new(chunk));
            }
            // tmpfs does not fail to read back what it took; should it, the records are counted.
            waiting.entries.remove(position);
            self.count_dropped(DropReason::Unreadable, counts);
            self.settle(&[batch], Outcome::Failed);
            self.publish_fronts(&waiting);
        }
    }

    fn is_over(&self, waiting: &Waiting) -> bool {
        waiting.leave || waiting.dead || self.is_done(waiting)
    }

    fn carry(&self, courier: &mut dyn Courier, on_arrival: &impl Fn()) {
        let pace = if self.notify.load(Ordering::Relaxed) { Pace::Hurry } else { Pace::Gather };
        let carried = courier.carry(pace);
        if let Some(error) = &carried.error {
            self.note(error);
        }
        (0..carried.arrived).for_each(|_| self.note_arrival());
        if carried.arrived > 0 {
            on_arrival();
        }
        let waits = matches!(carried.next, Next::Answer | Next::Away(_));
        let since = match self.writing_since.load(Ordering::Relaxed) {
            _ if !waits => 0,
            // Also after an arrival: that begins anew.
            0 => monotonic_ns(),
            since => since,
        };
        self.writing_since.store(since, Ordering::Relaxed);
        match carried.next {
            Next::Answer => courier.wait(ANSWER_WAIT),
            Next::Idle => self.rest(None, courier.has_room(), pace),
            Next::Gathers(until) | Next::Away(until) => self.rest(Some(until), courier.has_room(), pace),
        }
    }

    /// The oldest batch has arrived.
    fn note_arrival(&self) {
        let bytes = self.lock().entries.first().map_or(0, |entry| entry.bytes);
        self.head().bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
        self.meters.last_write_ns.store(wall_ns() as u64, Ordering::Relaxed);
        self.error_number.store(0, Ordering::Relaxed);
        self.finish(bytes, None);
    }

    /// Waits until then, for another batch, or until somebody begins to wait for everything.
    fn rest(&self, until: Option<Instant>, has_room: bool, pace: Pace) {
        let waiting = self.lock();
        let has_more = has_room && waiting.entries.get(waiting.taken).is_some();
        let hurries = pace == Pace::Gather && self.notify.load(Ordering::Relaxed);
        if has_more || hurries || self.is_over(&waiting) {
            return;
        }
        match until {
            None => drop(self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner)),
            Some(until) => {
                let pause = until.saturating_duration_since(Instant::now());
                drop(self.changed.wait_timeout(waiting, pause).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}

/// The number that stands for an error in the statistics, also where the system gave none.
pub(super) fn error_number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(match error.kind() {
        _ if error.get_ref().is_some() => TEXT,
        io::ErrorKind::TimedOut => libc::ETIMEDOUT,
        io::ErrorKind::UnexpectedEof => libc::ECONNRESET,
        io::ErrorKind::InvalidData => libc::EPROTO,
        io::ErrorKind::NotFound => libc::EHOSTUNREACH,
        _ => libc::EIO,
    })
}
