//! The writer thread of a sink whose destination confirms later. A batch stays queued, and counts as queued, until it
//! has arrived.
//!
//! A recoverer gives the records of a dead process the same numbers that they had in transit. The numbers follow the
//! last record noted as arrived, in batch order. A recoverer cannot know that batches were dropped, or that a batch
//! ended with a message on dropped records. So such a batch is not sent before all earlier ones have arrived, and the
//! fact is first noted in the segment. Between the arrived and the sent batches there is then at most one such fact,
//! and the segment holds it.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use logspool_lanes::segment::layout::LEVEL_CLASSES;
use logspool_sys::clock::{monotonic_ns, wall_ns};
use logspool_sys::published::Published;

use super::entries::{QueuedChunk, TransitFacts};
use super::outlet::{Outlet, OutletState, TEXT};
use crate::chunk::Chunk;
use crate::durable::SyncOutcome;
use crate::sink::{Courier, Lines, NextCarry, Pace};
use crate::stats::DropReason;

/// How long a writer waits for an answer before it looks for new batches and requests.
///
/// Chosen: a fork and a flush are delayed by at most this long. It costs a hundred wake-ups a second, but only while
/// batches are in transit.
const ANSWER_WAIT: Duration = Duration::from_millis(10);

/// Next action of the writer thread.
enum CourierAction {
    Leave,
    Take(Arc<Chunk>),
    Carry,
}

impl Outlet {
    /// Runs until the thread is asked to leave, or until the sink is closed or abandoned. On return the thread no
    /// longer counts as running.
    pub(super) fn deliver(&self, courier: &mut dyn Courier, on_arrival: impl Fn(), gather: impl Fn() -> Duration) {
        loop {
            match self.next_courier_action(courier.has_room()) {
                CourierAction::Leave => return,
                CourierAction::Take(chunk) => {
                    courier.take(Lines { bytes: &chunk.bytes, marks: &chunk.marks, before: 0 })
                }
                CourierAction::Carry => self.carry(courier, &on_arrival, gather()),
            }
        }
    }

    fn next_courier_action(&self, has_room: bool) -> CourierAction {
        let mut state = self.lock();
        loop {
            if self.is_over(&state) {
                self.mark_thread_gone(&mut state);
                return CourierAction::Leave;
            }
            let position = state.taken;
            let Some(entry) = state.next_to_take().filter(|_| has_room) else {
                return CourierAction::Carry;
            };
            if let Some(chunk) = &entry.heap {
                let chunk = chunk.clone();
                self.note_transit_facts(&state);
                state.taken += 1;
                return CourierAction::Take(chunk);
            }
            let (place, batch, counts) = (entry.place.clone(), entry.batch, entry.counts);
            drop(state);
            let chunk = place.map(|place| place.read(batch, counts));
            state = self.lock();
            // `abandon` may have removed the entries in the meantime.
            if state.entries.get(position).is_none_or(|entry| entry.batch != batch) {
                continue;
            }
            if let Some(Ok(chunk)) = chunk {
                self.note_transit_facts(&state);
                state.taken += 1;
                return CourierAction::Take(Arc::new(chunk));
            }
            // tmpfs does not fail to return stored data. If it fails nevertheless, the records are counted as dropped.
            state.entries.remove(position);
            let OutletState { entries, transit_facts, .. } = &mut *state;
            entries.get_mut(position).map_or(transit_facts, |next| &mut next.order).follows_dropped = true;
            self.count_dropped(DropReason::Unreadable, counts);
            self.settle(&[batch], SyncOutcome::Failed);
            self.publish_fronts(&mut state);
        }
    }

    /// Notes in the segment the facts that a recoverer must know before the next batch is sent.
    fn note_transit_facts(&self, state: &OutletState) {
        let Some(entry) = state.entries.get(state.taken) else { return };
        if entry.order.follows_dropped {
            self.head().note_arrival(entry.batch - 1, state.number);
        }
        if entry.order.ends_with_message {
            self.head().message_batch.publish(entry.batch);
        }
    }

    fn is_over(&self, state: &OutletState) -> bool {
        state.leave || state.dead.is_some() || self.is_done(state)
    }

    fn carry(&self, courier: &mut dyn Courier, on_arrival: &impl Fn(), gather: Duration) {
        // Do not gather records if the next batch waits for a fact to be noted.
        let hurries = self.notify.load(Ordering::Relaxed) || !self.lock().may_take();
        let pace = if hurries { Pace::Hurry } else { Pace::Gather(gather) };
        let carried = courier.carry(pace);
        // The arrival of a batch ends an earlier error, but not one that is about the records of that batch.
        let (before, after) =
            if carried.refused.is_empty() { (&carried.error, &None) } else { (&None, &carried.error) };
        before.iter().for_each(|error| self.note(error));
        let mut refused = vec![[0; LEVEL_CLASSES]; carried.arrived];
        for record in &carried.refused {
            refused[record.batch][usize::from(record.class)] += 1;
        }
        refused.into_iter().for_each(|refused| self.note_arrival(refused));
        after.iter().for_each(|error| self.note(error));
        if carried.arrived > 0 {
            on_arrival();
        }
        let waits = matches!(carried.next, NextCarry::OnAnswer | NextCarry::Unreachable(_));
        let since = match self.writing_since.load(Ordering::Relaxed) {
            _ if !waits => 0,
            // An arrival in this turn restarts the clock too.
            0 => monotonic_ns(),
            since => since,
        };
        self.writing_since.store(since, Ordering::Relaxed);
        match carried.next {
            // Do not wait while batches can be sent. Waiting would send only one chunk per wait.
            NextCarry::OnAnswer if courier.has_room() && self.lock().next_to_take().is_some() => {}
            NextCarry::OnAnswer => courier.wait(ANSWER_WAIT),
            NextCarry::Idle => self.wait_for_more(None, courier.has_room(), pace),
            NextCarry::AtTime(until) | NextCarry::Unreachable(until) => {
                self.wait_for_more(Some(until), courier.has_room(), pace)
            }
        }
    }

    /// Notes that the oldest batch has arrived at the destination, except the refused records of each level class.
    fn note_arrival(&self, refused: [u32; LEVEL_CLASSES]) {
        let bytes = self.lock().entries.first().map_or(0, |entry| entry.bytes);
        self.head().bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
        self.meters.last_write_ns.store(wall_ns() as u64, Ordering::Relaxed);
        self.error_number.store(0, Ordering::Relaxed);
        self.finish_except(bytes, None, refused);
    }

    /// Waits until the time `until`, for another batch to send, or until a caller starts to wait for all records.
    fn wait_for_more(&self, until: Option<Instant>, has_room: bool, pace: Pace) {
        let state = self.lock();
        let has_more = has_room && state.next_to_take().is_some();
        let hurries = pace != Pace::Hurry && self.notify.load(Ordering::Relaxed);
        if has_more || hurries || self.is_over(&state) {
            return;
        }
        match until {
            None => drop(self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)),
            Some(until) => {
                let pause = until.saturating_duration_since(Instant::now());
                drop(self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}

impl OutletState {
    /// Whether the next batch may be sent: it has no facts to note, or no batch is in transit.
    fn may_take(&self) -> bool {
        self.taken == 0 || self.entries.get(self.taken).is_none_or(|entry| entry.order == TransitFacts::default())
    }

    /// Returns the next batch, if it may be sent now.
    fn next_to_take(&self) -> Option<&QueuedChunk> {
        self.entries.get(self.taken).filter(|_| self.may_take())
    }
}

/// The number of an error for the statistics. Errors without a system error number get one too.
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use logspool_lanes::segment::Segment;
    use logspool_record::definition::Descriptor;

    use super::*;
    use crate::overflow::Budget;
    use crate::sink::{CarryOutcome, Mark, RefusedRecord, Sink, SinkError, Stream};
    use crate::sinks::{NullOptions, SinkOptions};

    /// Three words, noted when a batch was taken: last arrived batch, its number, batch with a message.
    type Noted = (u64, u64, u64);

    /// A courier whose batches arrive as soon as they are carried.
    struct Swift {
        segment: Arc<Segment>,
        taken: Arc<Mutex<Vec<(String, Noted)>>>,
        paces: Arc<Mutex<Vec<Pace>>>,
        on_the_way: usize,
    }

    impl Courier for Swift {
        fn stream(&self) -> Option<Stream> {
            Some(Stream { id: 7, epoch: 9 })
        }
        fn has_room(&self) -> bool {
            true
        }
        fn take(&mut self, lines: Lines<'_>) {
            let head = self.segment.sink(1);
            let batch = head.batch.load(Ordering::Relaxed);
            let counts = head.numbered.iter().find(|pair| pair.batch.load(Ordering::Relaxed) == batch).unwrap();
            let noted = (batch, counts.number.load(Ordering::Relaxed), head.message_batch.load(Ordering::Relaxed));
            self.taken.lock().unwrap().push((String::from_utf8(lines.bytes.to_vec()).unwrap(), noted));
            self.on_the_way += 1;
        }
        fn carry(&mut self, pace: Pace) -> CarryOutcome {
            self.paces.lock().unwrap().push(pace);
            CarryOutcome {
                arrived: std::mem::take(&mut self.on_the_way),
                error: None,
                refused: Vec::new(),
                next: NextCarry::Idle,
            }
        }
        fn wait(&self, _: Duration) {}
    }

    impl Sink for Swift {
        fn write(&mut self, _: Lines<'_>) -> Result<usize, SinkError> {
            unreachable!("it is a courier")
        }
        fn courier(&mut self) -> Option<&mut dyn Courier> {
            Some(self)
        }
    }

    /// A chunk with two records.
    fn chunk(batch: u64) -> Chunk {
        let mark = |end| Mark { end, level: 20, class: 2, member: 0, seconds: 0 };
        Chunk {
            batch,
            bytes: format!("{batch}\n").into_bytes(),
            marks: vec![mark(1), mark(2)],
            counts: [0, 0, 2, 0, 0, 0],
            member: 0,
        }
    }

    #[test]
    fn a_courier_learns_how_long_a_record_may_wait() {
        let segment = Arc::new(Segment::in_memory(None).unwrap());
        let paces = Arc::default();
        let sink = Swift { segment: segment.clone(), taken: Arc::default(), paces: Arc::clone(&paces), on_the_way: 0 };
        let definition = NullOptions {}.define(Descriptor::Open);
        let outlet = Outlet::new(1, definition, None, Box::new(sink), segment, Arc::new(Budget::new(0)));
        outlet.push(chunk(1), 0, 0);
        outlet.close_when_written(1);
        outlet.answer(1);
        outlet.run(|| (), || Duration::from_secs(3));

        assert_eq!([Pace::Gather(Duration::from_secs(3))], paces.lock().unwrap()[..]);
    }

    #[test]
    fn no_batch_overtakes_a_dropped_or_reported_one_before_it_is_noted() {
        let segment = Arc::new(Segment::in_memory(None).unwrap());
        let taken = Arc::default();
        let (paces, taken_by_sink) = (Arc::default(), Arc::clone(&taken));
        let sink = Box::new(Swift { segment: segment.clone(), taken: taken_by_sink, paces, on_the_way: 0 });
        let definition = NullOptions {}.define(Descriptor::Open);
        let outlet = Outlet::new(1, definition, None, sink, segment, Arc::new(Budget::new(0)));
        for batch in [1, 2, 3, 4, 5, 6, 7] {
            match batch {
                3 | 4 => outlet.drop_chunk(&chunk(batch), DropReason::OverflowFull),
                _ => {
                    if batch == 6 {
                        outlet.note_message();
                    }
                    outlet.push(chunk(batch), 0, 0);
                }
            }
        }
        outlet.close_when_written(1);
        outlet.answer(1);
        outlet.run(|| (), || Duration::MAX);

        let expected = [("1", (0, 0, 0)), ("2", (0, 0, 0)), ("5", (4, 4, 0)), ("6", (5, 6, 6)), ("7", (5, 6, 6))];
        let expected = expected.map(|(batch, noted)| (format!("{batch}\n"), noted));
        assert_eq!(expected[..], taken.lock().unwrap()[..]);
        let head = outlet.head();
        assert_eq!(
            (7, 9, 7),
            (
                head.batch.load(Ordering::Relaxed),
                head.epoch.load(Ordering::Relaxed),
                head.stream[0].load(Ordering::Relaxed)
            )
        );
    }

    /// A courier that sends each batch when it is carried. The batches arrive together, after the writer has waited for
    /// the answer.
    struct Distant {
        taken: usize,
        sent: usize,
        arrived: usize,
        sent_at_wait: Arc<AtomicUsize>,
    }

    impl Courier for Distant {
        fn stream(&self) -> Option<Stream> {
            None
        }
        fn has_room(&self) -> bool {
            self.taken == self.sent
        }
        fn take(&mut self, _: Lines<'_>) {
            self.taken += 1;
        }
        fn carry(&mut self, _: Pace) -> CarryOutcome {
            self.sent = self.taken;
            if self.sent_at_wait.load(Ordering::Relaxed) == 0 {
                return CarryOutcome { arrived: 0, error: None, refused: Vec::new(), next: NextCarry::OnAnswer };
            }
            CarryOutcome {
                arrived: self.sent - std::mem::replace(&mut self.arrived, self.sent),
                error: None,
                refused: Vec::new(),
                next: NextCarry::Idle,
            }
        }
        fn wait(&self, _: Duration) {
            self.sent_at_wait.store(self.sent, Ordering::Relaxed);
        }
    }

    impl Sink for Distant {
        fn write(&mut self, _: Lines<'_>) -> Result<usize, SinkError> {
            unreachable!("it is a courier")
        }
        fn courier(&mut self) -> Option<&mut dyn Courier> {
            Some(self)
        }
    }

    #[test]
    fn a_writer_does_not_wait_for_answers_while_it_can_send_batches() {
        let segment = Arc::new(Segment::in_memory(None).unwrap());
        let sent_at_wait = Arc::default();
        let sink = Box::new(Distant { taken: 0, sent: 0, arrived: 0, sent_at_wait: Arc::clone(&sent_at_wait) });
        let definition = NullOptions {}.define(Descriptor::Open);
        let outlet = Outlet::new(1, definition, None, sink, segment, Arc::new(Budget::new(0)));
        for batch in 1..=5 {
            outlet.push(chunk(batch), 0, 0);
        }
        outlet.close_when_written(1);
        outlet.answer(1);
        outlet.run(|| (), || Duration::MAX);

        assert_eq!(5, sent_at_wait.load(Ordering::Relaxed));
    }

    /// A courier whose batches arrive when they are carried, except the first record of each, which is refused.
    struct Picky(usize);

    impl Courier for Picky {
        fn has_room(&self) -> bool {
            true
        }
        fn take(&mut self, _: Lines<'_>) {
            self.0 += 1;
        }
        fn carry(&mut self, _: Pace) -> CarryOutcome {
            let arrived = std::mem::take(&mut self.0);
            let refused = (0..arrived).map(|batch| RefusedRecord { batch, class: 2 }).collect();
            let error = (arrived > 0).then(|| io::Error::other("refused"));
            CarryOutcome { arrived, error, refused, next: NextCarry::Idle }
        }
        fn wait(&self, _: Duration) {}
    }

    impl Sink for Picky {
        fn write(&mut self, _: Lines<'_>) -> Result<usize, SinkError> {
            unreachable!("it is a courier")
        }
        fn courier(&mut self) -> Option<&mut dyn Courier> {
            Some(self)
        }
    }

    #[test]
    fn refused_records_of_an_arrived_batch_count_as_rejected() {
        let segment = Arc::new(Segment::in_memory(None).unwrap());
        let definition = NullOptions {}.define(Descriptor::Open);
        let outlet = Outlet::new(1, definition, None, Box::new(Picky(0)), segment, Arc::new(Budget::new(0)));
        for batch in 1..=5 {
            outlet.push(chunk(batch), 0, 0);
        }
        outlet.close_when_written(1);
        outlet.answer(1);
        outlet.run(|| (), || Duration::MAX);

        let counts = outlet.counts();
        assert_eq!((5, 5), (counts.written[2], counts.dropped[DropReason::Rejected as usize][2]));
        assert_eq!(TEXT, outlet.error_number.load(Ordering::Relaxed), "the reason is shown");
    }
}
