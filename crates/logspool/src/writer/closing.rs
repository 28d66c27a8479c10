//! Closing a sink. Its last user leaves, queued records are written or dropped, and the descriptor is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::entries::Entries;
use super::outlet::{NONE, Outlet, OutletState};
use crate::stats::{DropReason, PerLevel};
use logspool_lanes::segment::layout::LEVEL_CLASSES;
use logspool_sys::published::Counted;

/// Number of sinks that were released until now.
static RELEASED: AtomicU64 = AtomicU64::new(0);

impl Outlet {
    /// Adds a handler that writes to this sink. Returns `false` if the sink is being closed; the caller then opens
    /// another one.
    pub fn add_user(&self) -> bool {
        let added =
            self.users.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |users| (users > 0).then_some(users + 1));
        added.is_ok()
    }

    /// Removes a user that `add_user` or the opening of the sink added. Returns whether it was the last user.
    pub fn remove_user(&self) -> bool {
        let removed = self.users.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |users| users.checked_sub(1));
        removed == Ok(1)
    }

    /// Whether the sink was released.
    ///
    /// The segment's sink head cannot answer this, since it may already belong to the next sink in this slot.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Marks the sink as closed, once. Call it before another sink gets the slot.
    pub(super) fn note_closed(&self) {
        if !self.closed.swap(true, Ordering::Relaxed) {
            self.head().closed.store(1, Ordering::Relaxed);
        }
    }

    /// Drops all queued records and counts them as dropped for `reason`.
    pub fn abandon(&self, reason: DropReason) {
        let mut state = self.lock();
        // The first reason is that of all records: those in the lanes come only after it.
        state.dead.get_or_insert(reason);
        let entries = std::mem::take(&mut state.entries);
        let written = self.written_of_first(&entries);
        let (queued, spooled) = (entries.queued(), entries.spooled());
        let head = self.head();
        for class in 0..LEVEL_CLASSES {
            let dropped = (queued[class] + spooled[class]).saturating_sub(written[class]);
            head.dropped[reason as usize][class].fetch_add(dropped, Ordering::Relaxed);
            head.written[class].fetch_add(written[class], Ordering::Relaxed);
        }
        state.taken = 0;
        state.spool.is_over = true;
        state.overflow.finish();
        self.publish_fronts(&mut state);
        drop(state);
        self.settle_all();
        self.changed.notify_all();
    }

    /// Number of written records of the oldest chunk, which still count as queued because it is written only in part.
    pub fn written_in_part(&self) -> u64 {
        let state = self.lock();
        self.written_of_first(&state.entries).iter().sum()
    }

    /// Number of records of each level class that are written of the oldest chunk, which is written in part.
    fn written_of_first(&self, entries: &Entries) -> PerLevel {
        let mut written = PerLevel::default();
        let offset = self.head().offset.load(Ordering::Relaxed);
        let Some(first) = entries.first().filter(|_| offset > 0 && !self.confirms) else { return written };
        let chunk = match (&first.heap, &first.place) {
            (Some(chunk), _) => Some(chunk.clone()),
            (None, Some(place)) => place.read(first.batch, first.counts).ok().map(Arc::new),
            (None, None) => None,
        };
        for mark in chunk.iter().flat_map(|chunk| &chunk.marks).take_while(|mark| u64::from(mark.end) <= offset) {
            written[usize::from(mark.class)] += 1;
        }
        written
    }

    /// Closes the sink itself, after its writer has left. Records that come later are counted as dropped.
    pub fn release(&self) {
        self.note_closed();
        // Records may have been queued between the last flush and this point. Without a writer none of them may stay.
        self.abandon(DropReason::SinkClosed);
        // A writer that no longer counts as running unlocks the sink soon, so waiting is safe. A writer in a stuck
        // write does not.
        let slot = if self.thread_runs() { self.sink.try_lock().ok() } else { self.sink.lock().ok() };
        if let Some(mut sink) = slot {
            *sink = None;
        }
        self.members.drop_changes();
        self.settle_all();
        self.note_release();
    }

    /// Makes the writer release the sink after flush `ticket` is answered and all records are written.
    pub fn close_when_written(&self, ticket: u64) {
        self.lock().closing = Some(ticket);
    }

    /// Whether the sink was closed, but its writer still has records to write.
    pub fn is_closing(&self) -> bool {
        self.lock().closing.is_some() && !self.is_closed()
    }

    /// Notes that closing the sink has waited for its records until the timeout.
    pub fn note_close_timeout(&self) {
        self.timed_out.store(true, Ordering::Relaxed);
    }

    /// Whether the sink is closing, and the program has waited long enough for it.
    pub fn is_given_up(&self) -> bool {
        self.timed_out.load(Ordering::Relaxed) && self.is_closing()
    }

    /// Answers flush `ticket` when no batch up to `batch` waits. The writer then wakes the waiting callers itself,
    /// without the collector. Returns whether the flush is answered already; then the caller of this function wakes
    /// them.
    pub fn answer_after(&self, ticket: u64, batch: u64) -> bool {
        let mut state = self.lock();
        match state.requested_flushes.back_mut() {
            Some((newest, last)) if *last == batch => *newest = ticket,
            _ => state.requested_flushes.push_back((ticket, batch)),
        }
        let front = state.entries.first_batch().unwrap_or(NONE);
        self.answer_flushes(&mut state, front)
    }

    /// Answers the flushes that wait only for batches before `front`. Returns whether there were any.
    pub(super) fn answer_flushes(&self, state: &mut OutletState, front: u64) -> bool {
        let mut is_answered = false;
        while let Some(&(ticket, batch)) = state.requested_flushes.front()
            && batch < front
        {
            // This has the same memory ordering as in `answer`.
            self.flushed_ticket.raise(ticket);
            state.requested_flushes.pop_front();
            is_answered = true;
        }
        is_answered
    }

    /// Notes that all records before flush `ticket` are written. Returns whether a writer thread must be started to
    /// release a closed sink.
    pub fn answer(&self, ticket: u64) -> bool {
        let mut state = self.lock();
        // Pairs with `observe` of the waiting caller, which then sees that the records are written.
        self.flushed_ticket.raise(ticket);
        if !self.is_done(&state) || self.is_closed() {
            return false;
        }
        let start = !state.thread_runs;
        state.thread_runs = true;
        drop(state);
        self.changed.notify_all();
        start
    }

    /// Whether the sink was closed and has no more records to write.
    pub(super) fn is_done(&self, state: &OutletState) -> bool {
        let is_answered = |ticket| self.flushed_ticket.load(Ordering::Relaxed) >= ticket;
        state.entries.is_empty() && state.closing.is_some_and(is_answered)
    }

    pub(super) fn note_release(&self) {
        self.released.store(RELEASED.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Position of this sink in the order of released sinks. `None` if it is not released, or still has entries or a
    /// writer thread.
    pub fn closed_at(&self) -> Option<u64> {
        let released = self.released.load(Ordering::Relaxed);
        let state = self.lock();
        (released != 0 && state.entries.is_empty() && !state.thread_runs).then_some(released)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use logspool_lanes::segment::Segment;
    use logspool_record::definition::{Descriptor, SinkDefinition};

    use super::*;
    use crate::chunk::Chunk;
    use crate::overflow::Budget;
    use crate::sinks::{ConsoleOptions, NullOptions, SinkOptions};

    fn outlet() -> Outlet {
        outlet_of(NullOptions {}.define(Descriptor::Open))
    }

    fn outlet_of(definition: SinkDefinition) -> Outlet {
        let sink = crate::sinks::open(&definition).unwrap();
        let segment = Arc::new(Segment::in_memory(None).unwrap());
        Outlet::new(1, definition, None, sink, segment, Arc::new(Budget::new(0)))
    }

    fn chunk(batch: u64) -> Chunk {
        let mut chunk = Chunk { batch, bytes: b"a line\n".to_vec(), ..Chunk::default() };
        chunk.marks.push(crate::sink::Mark { end: 7, level: 20, class: 2, member: 0, seconds: 0 });
        chunk.counts[2] = 1;
        chunk
    }

    #[test]
    fn records_after_a_deadline_are_dropped_and_those_before_it_are_written() {
        let outlet = outlet();
        let mut first = chunk(1);
        first.bytes.extend_from_slice(b"a line\n");
        first.marks.push(crate::sink::Mark { end: 14, ..first.marks[0] });
        first.counts[2] = 2;
        outlet.push(first, 0, 0);
        // The first record and a part of the second one.
        outlet.head().offset.store(9, Ordering::Relaxed);
        outlet.abandon(DropReason::Deadline);
        outlet.push(chunk(2), 0, 0);
        outlet.release();
        outlet.push(chunk(3), 0, 0);

        let counts = outlet.counts();
        assert_eq!((4, 1), (counts.accepted[2], counts.written[2]));
        assert_eq!(3, counts.dropped[DropReason::Deadline as usize][2]);
    }

    #[test]
    fn a_closed_sink_is_released_once_its_flush_is_answered_and_everything_is_written() {
        let outlet = outlet();
        assert!(outlet.push(chunk(1), 0, 0));
        outlet.close_when_written(7);
        assert!(!outlet.answer(7), "a chunk is not written yet");
        outlet.run(|| (), || Duration::MAX);

        assert!(outlet.is_closed() && outlet.closed_at().is_some());
        assert_eq!(1, outlet.counts().written[2]);
    }

    #[test]
    fn a_closed_sink_without_a_writer_gets_one_that_releases_it() {
        let outlet = outlet();
        outlet.close_when_written(7);
        assert!(!outlet.answer(6));
        assert!(outlet.is_closing());

        assert!(outlet.answer(7));
        outlet.run(|| (), || Duration::MAX);
        assert!(!outlet.is_closing() && outlet.closed_at().is_some());
    }

    #[test]
    fn a_flush_is_answered_by_the_writer_of_its_last_batch() {
        let outlet = outlet();
        assert!(outlet.push(chunk(1), 0, 0));
        assert!(!outlet.answer_after(7, 1));
        assert_eq!(0, outlet.flushed_ticket.load(Ordering::Relaxed), "the batch is not written yet");
        // Lets `run` return after everything is written.
        outlet.close_when_written(7);
        outlet.run(|| (), || Duration::MAX);

        assert_eq!(7, outlet.flushed_ticket.load(Ordering::Relaxed));
    }

    #[test]
    fn a_flush_with_nothing_before_it_is_answered_at_once() {
        let outlet = outlet();
        outlet.push(chunk(2), 0, 0);

        assert!(outlet.answer_after(7, 1));
        assert_eq!(7, outlet.flushed_ticket.load(Ordering::Relaxed));
    }

    #[test]
    fn a_writer_whose_sink_is_gone_ends() {
        let descriptor = Descriptor::Duplicate(2);
        let outlet = outlet_of(ConsoleOptions { descriptor: 2 }.define(descriptor));
        assert!(outlet.is_lent && outlet.claim_thread());
        // Asks before the writer thread has begun.
        outlet.ask_to_leave();
        outlet.release();
        let outlet = Arc::new(outlet);
        let writer = std::thread::spawn({
            let outlet = outlet.clone();
            move || outlet.run(|| (), || Duration::MAX)
        });

        let begun = Instant::now();
        while !writer.is_finished() {
            assert!(begun.elapsed() < Duration::from_secs(20), "it is still at work");
            std::thread::yield_now();
        }
        assert!(!outlet.thread_runs());
    }

    #[test]
    fn a_thread_that_could_not_be_started_is_started_with_the_next_chunk_or_flush() {
        let outlet = outlet();
        assert!(outlet.push(chunk(1), 0, 0));
        assert!(!outlet.push(chunk(2), 0, 0));
        outlet.note_failed_start();

        assert!(outlet.push(chunk(3), 0, 0));
        outlet.note_failed_start();
        assert!(outlet.wants_thread());
        assert!(!outlet.wants_thread());
        // Lets `run` return after everything is written.
        outlet.close_when_written(7);
        assert!(!outlet.answer(7));
        outlet.run(|| (), || Duration::MAX);

        assert_eq!(3, outlet.counts().written[2]);
        assert!(!outlet.wants_thread());
    }
}
