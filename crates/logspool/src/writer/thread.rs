//! The writer thread's side of an outlet: takes the oldest chunk, writes it, retries, and counts.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use logspool_lanes::blob::large_until;
use logspool_lanes::segment::layout::LEVEL_CLASSES;
use logspool_sys::clock::{monotonic_ns, wall_ns};
use logspool_sys::kept;
use logspool_sys::progress;
use logspool_sys::published::Published;

use super::delivery::error_number;
use super::outlet::{Outlet, OutletState, TEXT};
use super::spare_chunks;
use super::syncing::SyncDue;
use super::{LARGE_BYTES, count};
use crate::chunk::Chunk;
use crate::durable::SyncOutcome;
use crate::fallback;
use crate::meters::{ErrorClass, WRITE_SECONDS};
use crate::sink::{Lines, Sink, SinkError};
use crate::sinks;
use crate::stats::DropReason;

/// First and longest pause between two tries of a failed write.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Interval at which a sink with a duplicate of a lent descriptor checks whether the program has closed the original
/// descriptor.
///
/// Chosen: a sink releases the descriptor at the second check. Records leave a lane in a fifth of this interval. The
/// reader of a pipe sees the end two checks later, which nobody notices. Halving it wakes a quiet program 20 times a
/// second.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Next action of the writer thread.
enum WriterAction {
    /// Write this chunk, starting at this byte.
    Write(Arc<Chunk>, usize),
    /// Sync the sink.
    Sync,
    /// Tell the sink that nothing was queued for a while.
    Rest,
    /// Let the sink follow changes of its group.
    Regroup,
    /// Tell the sink that the thread is about to end.
    Leave,
}

impl Outlet {
    /// Asks the writer thread to leave. The chunk that it is writing stays queued.
    pub fn ask_to_leave(&self) {
        self.lock().leave = true;
        self.changed.notify_all();
    }

    /// Notes that the writer thread could not be started.
    pub fn note_failed_start(&self) {
        self.lock().thread_runs = false;
    }

    /// Marks the writer thread as running. Returns whether the caller must start it.
    pub fn claim_thread(&self) -> bool {
        let mut state = self.lock();
        !state.leave && !std::mem::replace(&mut state.thread_runs, true)
    }

    /// Whether there is work but no writer thread, although one may run. If so, marks the thread as running, and the
    /// caller must start it.
    pub fn wants_thread(&self) -> bool {
        let mut state = self.lock();
        let wants = !state.thread_runs && !state.leave && self.has_work(&state);
        state.thread_runs |= wants;
        wants
    }

    /// Marks the writer thread as gone. Call it under the same lock as the check that the thread may leave.
    pub(super) fn mark_thread_gone(&self, state: &mut OutletState) {
        state.thread_runs = false;
        progress::note();
    }

    /// Whether a writer thread runs.
    pub fn thread_runs(&self) -> bool {
        self.lock().thread_runs
    }

    /// Allows a writer thread again after `ask_to_leave`. Returns whether the caller must start it.
    pub fn resume(&self) -> bool {
        let mut state = self.lock();
        state.leave = false;
        // A sink with a lent descriptor must notice when the program closes it, even if no more records come.
        let watches = self.is_lent && state.dead.is_none() && !self.is_closed();
        let start = !state.thread_runs && (watches || self.has_work(&state));
        state.thread_runs |= start;
        start
    }

    fn has_work(&self, state: &OutletState) -> bool {
        !state.entries.is_empty()
            || self.sync_due(state, monotonic_ns()) != SyncDue::Never
            || self.is_done(state) && !self.is_closed()
    }

    /// Whether the destination confirms records after they were sent.
    pub fn confirms(&self) -> bool {
        self.confirms
    }

    /// Whether a writer thread begins for this outlet for the first time. Returns true only once.
    pub fn begin_once(&self) -> bool {
        !self.begun.swap(true, Ordering::Relaxed)
    }

    /// Body of the writer thread. Runs until the thread is asked to leave, or until the sink is closed. If the
    /// destination confirms, calls `on_arrival` after each arrival of batches, and `gather` for the longest time that
    /// a record may wait for others.
    pub fn run(&self, on_arrival: impl Fn(), gather: impl Fn() -> Duration) {
        let mut sink_slot = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        match sink_slot.as_mut().and_then(|sink| sink.courier()) {
            Some(courier) => self.deliver(courier, on_arrival, gather),
            None => self.write_chunks(sink_slot.as_mut()),
        }
        let state = self.lock();
        if self.is_done(&state) && !self.is_closed() {
            // Mark it under the lock: records that come after this point are counted as dropped, as after `release`.
            self.note_closed();
            let is_unsynced = self.sync_due(&state, monotonic_ns()) != SyncDue::Never;
            drop(state);
            if let Some(sink) = sink_slot.as_mut().filter(|_| is_unsynced) {
                self.sync(sink.as_mut());
            }
            self.settle_all();
            *sink_slot = None;
            self.members.drop_changes();
            self.note_release();
        }
    }

    fn write_chunks(&self, mut sink: Option<&mut Box<dyn Sink>>) {
        let mut rests = sink.is_some() && self.is_lent;
        let mut is_open = sink.is_some();
        while let Some(action) = self.next_action(rests, is_open) {
            is_open = sink.is_some() && !matches!(action, WriterAction::Leave);
            match (&mut sink, action) {
                (Some(sink), WriterAction::Write(chunk, written)) => {
                    self.write_chunk(sink.as_mut(), &chunk, written);
                    self.reuse(chunk);
                    rests = self.is_lent;
                }
                (Some(sink), WriterAction::Sync) => self.sync(sink.as_mut()),
                (Some(sink), WriterAction::Rest) => rests = sink.release_closed_descriptors(),
                (Some(sink), WriterAction::Regroup) => sink.follow_members(),
                (Some(sink), WriterAction::Leave) => sink.leave(),
                (None, _) => self.abandon(DropReason::SinkClosed),
            }
        }
    }

    /// Waits for the oldest chunk, for a due sync, or for [`IDLE_CHECK_INTERVAL`] if `rests`. `None` means that the
    /// thread must leave; it is already marked as gone. If the sink `is_open`, it is told first.
    fn next_action(&self, rests: bool, is_open: bool) -> Option<WriterAction> {
        let mut state = self.lock();
        loop {
            if state.leave && is_open {
                return Some(WriterAction::Leave);
            }
            if state.leave || self.is_done(&state) {
                self.mark_thread_gone(&mut state);
                return None;
            }
            if std::mem::take(&mut state.regroups) {
                return Some(WriterAction::Regroup);
            }
            let due = self.sync_due(&state, monotonic_ns());
            if due == SyncDue::Now {
                return Some(WriterAction::Sync);
            }
            if let Some(entry) = state.entries.first() {
                let written = self.head().offset.load(Ordering::Relaxed) as usize;
                if let Some(chunk) = &entry.heap {
                    return Some(WriterAction::Write(chunk.clone(), written));
                }
                let (place, batch, counts) = (entry.place.clone(), entry.batch, entry.counts);
                drop(state);
                let chunk = place.map(|place| place.read(batch, counts));
                if let Some(Ok(chunk)) = chunk {
                    return Some(WriterAction::Write(Arc::new(chunk), written));
                }
                // tmpfs does not fail to return stored data. If it fails nevertheless, the records are counted as
                // dropped.
                self.finish(0, Some(DropReason::Unreadable));
                state = self.lock();
                continue;
            }
            let pause = match due {
                SyncDue::At(then) => Some(Duration::from_nanos(then.saturating_sub(monotonic_ns()))),
                SyncDue::Now | SyncDue::Never => None,
            };
            let Some(pause) = pause.into_iter().chain(rests.then_some(IDLE_CHECK_INTERVAL)).min() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (woken, timeout) = self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
            if rests && timeout.timed_out() && woken.entries.is_empty() {
                return Some(WriterAction::Rest);
            }
            state = woken;
        }
    }

    fn write_chunk(&self, sink: &mut dyn Sink, chunk: &Chunk, mut written: usize) {
        // Store this before the first byte is written: a recoverer applies `offset` only to the chunk of this batch.
        self.head().writing.store(chunk.batch, Ordering::Relaxed);
        if let Some(shared) = sink.shared() {
            shared.begin(chunk.batch, 0);
        }
        let left = chunk.bytes.len() - written;
        self.large_until.store(if left >= LARGE_BYTES { large_until(left) } else { 0 }, Ordering::Relaxed);
        let mut pause = FIRST_PAUSE;
        while written < chunk.bytes.len() {
            let first = chunk.marks.partition_point(|mark| mark.end as usize <= written);
            let lines = Lines { bytes: &chunk.bytes[written..], marks: &chunk.marks[first..], before: written };
            if self.writing_since.load(Ordering::Relaxed) == 0 {
                self.writing_since.store(monotonic_ns(), Ordering::Relaxed);
            }
            let result = sink.write(lines);
            if let Some(shared) = sink.shared() {
                match &result {
                    Ok(count) => {
                        // Keep this order: if there is no intent, the segment must have noted the bytes.
                        self.head().offset.publish((written + count) as u64);
                        shared.finish_append();
                    }
                    Err(_) => shared.abort_append(),
                }
            }
            match result {
                Ok(count) => {
                    written += count;
                    self.rotation_count.store(sink.rotation_count(), Ordering::Relaxed);
                    self.meters.cut_records.store(sink.cut_count(), Ordering::Relaxed);
                    let since = self.writing_since.swap(0, Ordering::Relaxed);
                    let seconds = monotonic_ns().saturating_sub(since) as f64 / 1e9;
                    self.meters.write_seconds.observe(&WRITE_SECONDS, seconds);
                    self.meters.last_write_ns.store(wall_ns() as u64, Ordering::Relaxed);
                    self.error_number.store(0, Ordering::Relaxed);
                    // The write ends an earlier error, but not one that came with it.
                    if let Some(error) = sink.trouble() {
                        self.note(&error);
                    }
                    self.head().offset.store(written as u64, Ordering::Relaxed);
                    self.head().bytes_written.fetch_add(count as u64, Ordering::Relaxed);
                    pause = FIRST_PAUSE;
                }
                Err(error) if error.io_error().kind() == ErrorKind::Interrupted => {}
                Err(SinkError::Retry(error)) => {
                    let waits = error.kind() == ErrorKind::WouldBlock;
                    if !waits {
                        self.note(&error);
                    }
                    if self.has_no_reader() {
                        self.settle_all();
                    }
                    if !self.pause(if waits { Duration::ZERO } else { pause }) {
                        return;
                    }
                    pause = (pause * 2).min(MAX_PAUSE);
                }
                Err(SinkError::Reject(error)) => {
                    self.note(&error);
                    return self.finish(written, Some(DropReason::Rejected));
                }
                Err(SinkError::Fatal(error)) => {
                    self.note(&error);
                    if kept::is_gone(&error) {
                        self.report_closed_descriptor();
                    }
                    if let Some(count) = sink.give_up(&lines) {
                        self.count_given_up(&lines, count);
                        written += count;
                        self.head().offset.publish(written as u64);
                        continue;
                    }
                    self.finish(written, Some(DropReason::SinkClosed));
                    return self.abandon(DropReason::SinkClosed);
                }
            }
        }
        self.finish_except(written, None, sink.take_refused());
    }

    /// Notes that the first `bytes` of `lines` are given up, because their member of the group is finished.
    fn count_given_up(&self, lines: &Lines<'_>, bytes: usize) {
        let mut state = self.lock();
        for mark in lines.marks.iter().take_while(|mark| mark.end as usize <= lines.before + bytes) {
            state.given_up[usize::from(mark.class)] += 1;
        }
    }

    /// Keeps the buffers of a chunk that is no longer queued.
    fn reuse(&self, chunk: Arc<Chunk>) {
        if let Some(chunk) = Arc::into_inner(chunk) {
            let usual = spare_chunks::put(chunk);
            self.lock().usual = usual;
        }
    }

    /// Tells the user that the program has closed the sink's descriptor, and that its file cannot be opened again.
    fn report_closed_descriptor(&self) {
        let is_reported = self.lost_descriptor.swap(true, Ordering::Relaxed);
        if !is_reported && !fallback::is_standard_error(&self.traits, &self.definition) {
            fallback::report(&format!(
                "logspool: cannot write to {}: the program has closed its descriptor; the records for it are dropped \
                 and counted as sink_closed (fix: close only descriptors that the program has opened)\n",
                sinks::place(&self.definition).name("a sink")
            ));
        }
    }

    /// Whether records were dropped because the program has closed the sink's descriptor.
    pub fn has_lost_descriptor(&self) -> bool {
        self.lost_descriptor.load(Ordering::Relaxed)
    }

    /// Whether records were dropped since the last flush, because their overflow could not be read again.
    pub fn has_unreadable(&self) -> bool {
        self.has_unreadable.load(Ordering::Relaxed)
    }

    /// As [`Outlet::has_unreadable`], and forgets it.
    pub fn take_unreadable(&self) -> bool {
        self.has_unreadable.swap(false, Ordering::Relaxed)
    }

    /// Whether the whole sink is given up because the program has closed its descriptor. In a group, the other members
    /// go on.
    pub fn is_without_descriptor(&self) -> bool {
        self.has_lost_descriptor() && self.lock().dead.is_some()
    }

    pub(super) fn note(&self, error: &std::io::Error) {
        self.meters.errors[ErrorClass::of(error) as usize].fetch_add(1, Ordering::Relaxed);
        let number = error_number(error);
        if number == TEXT {
            self.lock().error = error.to_string();
        }
        self.error_number.store(number, Ordering::Relaxed);
        self.head().errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for `pause` between two tries, also if more is queued meanwhile. Returns false if the thread must leave or
    /// the queue was abandoned.
    fn pause(&self, pause: Duration) -> bool {
        let stays = |state: &mut OutletState| !state.leave && state.dead.is_none();
        let waited = self.changed.wait_timeout_while(self.lock(), pause, stays);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        stays(&mut state)
    }

    /// Removes the oldest entry. Its first `written` bytes are written; its other records are dropped for `reason`.
    pub(super) fn finish(&self, written: usize, reason: Option<DropReason>) {
        self.finish_except(written, reason, Default::default());
    }

    /// As [`finish`](Self::finish). If there is no reason, this number of records of each level class counts as rejected
    /// instead of written.
    pub(super) fn finish_except(&self, written: usize, reason: Option<DropReason>, refused: [u32; LEVEL_CLASSES]) {
        let mut state = self.lock();
        self.writing_since.store(0, Ordering::Relaxed);
        let Some(entry) = state.entries.pop() else { return };
        state.taken = state.taken.saturating_sub(1);
        state.finished_at = monotonic_ns();
        let head = self.head();
        let given_up = std::mem::take(&mut state.given_up);
        self.count_dropped(DropReason::SinkClosed, given_up);
        let lost: [u32; LEVEL_CLASSES] = std::array::from_fn(|class| refused[class] + given_up[class]);
        match (reason, &entry.heap) {
            (None, _) => {
                self.count_dropped(DropReason::Rejected, refused);
                count(&head.written, std::array::from_fn(|class| entry.counts[class].saturating_sub(lost[class])));
            }
            (Some(reason), Some(chunk)) => {
                let mut left = given_up;
                for mark in &chunk.marks {
                    let class = usize::from(mark.class);
                    if mark.end as usize > written {
                        head.dropped[reason as usize][class].fetch_add(1, Ordering::Relaxed);
                    } else if left[class] > 0 {
                        left[class] -= 1;
                    } else {
                        head.written[class].fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            (Some(reason), None) => self.count_dropped(
                reason,
                std::array::from_fn(|class| entry.counts[class].saturating_sub(given_up[class])),
            ),
        }
        // Keep this order: a recoverer that reads this batch also sees its counters. Store the batch before `offset` is
        // reset: a kill between the two stores must not leave a batch that seems to be unwritten.
        if self.confirms {
            state.number += entry.counts.iter().copied().map(u64::from).sum::<u64>();
            head.note_arrival(entry.batch, state.number);
        } else {
            head.batch.publish(entry.batch);
        }
        head.offset.publish(0);
        self.note_finished(&mut state, &entry);
        match reason {
            None if lost == [0; LEVEL_CLASSES] => {
                self.note_unsynced(&mut state, entry.batch, entry.counts, entry.bytes)
            }
            None | Some(_) => self.settle(&[entry.batch], SyncOutcome::Failed),
        }
        let finished = if state.entries.overflow_bytes() == 0 { state.overflow.finish() } else { None };
        if finished.is_some() || entry.place.is_some() {
            // Dropping the last reference to an overflow file removes the file. Do it without the lock, which the
            // collector needs, since it frees megabytes. Do it before publishing that everything is written, since the
            // process may end then.
            drop(state);
            drop((finished, entry.place));
            state = self.lock();
        }
        self.publish_fronts(&mut state);
        drop(state);
        if self.notify.load(Ordering::Relaxed) {
            logspool_lanes::queue::producer::wake_collector(&self.segment.header().sleeping);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::time::Instant;

    use logspool_lanes::segment::Segment;
    use logspool_record::definition::Descriptor;

    use super::*;
    use crate::overflow::Budget;
    use crate::sink::Mark;
    use crate::sinks::{NullOptions, SinkOptions};

    /// A sink whose destination is away. It counts the tries.
    struct Away(Arc<AtomicU64>);

    impl Sink for Away {
        fn write(&mut self, _: Lines<'_>) -> Result<usize, SinkError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(SinkError::Retry(std::io::Error::from_raw_os_error(libc::ECONNREFUSED)))
        }
    }

    #[test]
    fn a_new_chunk_does_not_end_the_pause_of_an_unreachable_sink() {
        let segment = Arc::new(Segment::in_memory(None).unwrap());
        let tries = Arc::new(AtomicU64::new(0));
        let definition = NullOptions {}.define(Descriptor::Open);
        let budget = Arc::new(Budget::new(1 << 20));
        let outlet = Outlet::new(1, definition, None, Box::new(Away(tries.clone())), segment, budget);
        let begun = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| outlet.run(|| (), || Duration::MAX));
            for batch in 1..=200 {
                let marks = vec![Mark { end: 2, level: 20, class: 2, member: 0, seconds: 0 }];
                outlet.push(
                    Chunk { batch, bytes: b"x\n".to_vec(), marks, counts: [0, 0, 1, 0, 0, 0], member: 0 },
                    0,
                    0,
                );
                let pushed = Instant::now();
                while pushed.elapsed() < Duration::from_micros(200) {
                    std::thread::yield_now();
                }
            }
            outlet.ask_to_leave();
        });

        let most = begun.elapsed().as_nanos() / FIRST_PAUSE.as_nanos() + 2;
        let tries = tries.load(Ordering::Relaxed);
        assert!(u128::from(tries) <= most, "{tries} tries in {:?}", begun.elapsed());
    }
}
