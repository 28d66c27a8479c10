//! The collector: empties the lanes, makes ordered batches, formats their records, and hands the chunks to the outlets.
//!
//! Pipeline stage: collector (see ARCHITECTURE.md). The collector makes no system call that can block, and takes no
//! lock that is held across I/O. A batch contains the records up to a cut in time. The clock is read before the lanes'
//! heads. So the batch includes every record that was published by then with an earlier stamp. The order inside a batch
//! is a pure function of (stamp, lane incarnation, position). Lane space is free again when every outlet has written or
//! spilled the batch.

mod depth;
mod host;
mod pause;

pub use host::CollectorHost;
pub use pause::{LONGEST_PAUSE, Pause};

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use logspool_lanes::blob::Blobs;
use logspool_lanes::manifest;
use logspool_lanes::queue::merge::{LaneShare, in_order};
use logspool_lanes::queue::reader::{LaneReader, PeekedRecord};
use logspool_lanes::segment::Segment;
use logspool_lanes::segment::layout::{LEVEL_CLASSES, LaneRange, MAX_POINTS, ManifestHead, Table, level_class};
use logspool_record::Values;
use logspool_record::format::notice_zone;
use logspool_sys::clock::{self, CalibrationPoint, Calibrator};
use logspool_sys::progress;
use logspool_sys::published::Published;

use crate::chunk::Chunk;
use crate::durable::{self, PendingSync, Sinks};
use crate::render::{Chunks, Definitions, Renderer};
use crate::stats::DropReason;
use crate::writer::{Capacity, NONE, Outlet};

use depth::DepthWatch;

/// Raw bytes at which a batch is full.
///
/// Chosen: a quarter of a full lane, so that formatting, writing and logging overlap. Halving it costs more hand-overs;
/// doubling it keeps the lane full for longer.
const BATCH_BYTES: u64 = 64 * 1024;

/// Raw bytes below which a batch is small.
///
/// Chosen: this is some hundred records. For so many, one wake-up and one write cost little compared with formatting. A
/// program of 10,000 records a second used twice as much processor time when every few records were collected at once.
const SMALL_BATCH_BYTES: u64 = 8 * 1024;

/// A batch fills a lane if it takes at least this part of the lane's ring; [`Pause`] says why. This constant is the
/// divisor.
const LARGE_SHARE_DIVISOR: u64 = 8;

/// The queue counts as full if overflow and spool have less room than this.
///
/// Chosen: a finished batch is up to twice as long as its raw records, so the next one may not fit.
const FULL_BELOW_BYTES: u64 = 2 * BATCH_BYTES;

/// Shortest time between two messages about refused records.
const REPORT_INTERVAL_NS: u64 = 1_000_000_000;

/// A batch whose lane space is not released yet.
#[derive(Debug)]
struct InFlight {
    batch: u64,
    ranges: Vec<LaneRange>,
    manifest_end: u64,
    blobs: Vec<u64>,
}

/// A flush in its first phase: it waits until each lane is batched up to the head that the lane had when the flush
/// began.
#[derive(Debug)]
struct FlushPass {
    ticket: u64,
    heads: Vec<(usize, u64)>,
}

/// Result of one turn. `fills_lane`: the batch took an eighth of a lane's ring or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectorTurn {
    /// A batch of normal size was made; more records are probably waiting.
    Worked { fills_lane: bool },
    /// A small batch was made; a pause gathers more records for the next one.
    Few { fills_lane: bool },
    /// There was nothing to batch.
    Idle,
    /// Records may be waiting, but the outlets cannot take a batch now.
    Held,
}

/// State of the collector. It outlives the collector thread, which ends for a fork and starts again later.
pub struct Collector {
    segment: Arc<Segment>,
    calibrator: Calibrator,
    points: Vec<CalibrationPoint>,
    renderer: Renderer,
    open_chunks: OpenChunks,
    in_flight: VecDeque<InFlight>,
    newest_stamp: u64,
    pass: Option<FlushPass>,
    seen_ticket: u64,
    tickets: VecDeque<(u64, u64)>,
    told_at: u64,
    depth: DepthWatch,
    seen_calls: u64,
    /// The files of large records.
    blobs: Arc<Blobs>,
    /// The table of calls that wait for durability, if the options allow such waits.
    pending_sync: Option<Arc<PendingSync>>,
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Collector").field("in_flight", &self.in_flight.len()).finish_non_exhaustive()
    }
}

impl Collector {
    /// A collector for a new segment.
    pub fn new(segment: Arc<Segment>, blobs: Arc<Blobs>, pending_sync: Option<Arc<PendingSync>>) -> Self {
        let first = segment.last_point();
        Self {
            segment,
            calibrator: Calibrator::new(first),
            points: vec![first],
            renderer: Renderer::default(),
            open_chunks: OpenChunks::default(),
            in_flight: VecDeque::new(),
            newest_stamp: 0,
            pass: None,
            seen_ticket: 0,
            tickets: VecDeque::new(),
            told_at: 0,
            depth: DepthWatch::default(),
            seen_calls: 0,
            blobs,
            pending_sync,
        }
    }

    /// Whether a flush is under way, so that the next turn should come soon.
    pub fn is_waiting(&self) -> bool {
        self.pass.is_some() || !self.tickets.is_empty()
    }

    /// Newest flush ticket that this collector has begun to answer.
    pub fn seen_ticket(&self) -> u64 {
        self.seen_ticket
    }

    /// Number of calls waiting for durability that this collector has handled.
    pub fn seen_calls(&self) -> u64 {
        self.seen_calls
    }

    /// Number of calls that have begun to wait for durability.
    pub fn durable_calls(&self) -> u64 {
        self.pending_sync.as_ref().map_or(0, |pending_sync| pending_sync.calls())
    }

    /// Does one turn: releases lane space, calibrates the clock, makes a batch, and answers flushes.
    pub fn turn(&mut self, host: &dyn CollectorHost) -> CollectorTurn {
        self.segment.header().heartbeat.fetch_add(1, Ordering::Relaxed);
        // Read this count before the lanes: a waiting call pushed its record before the call was counted.
        let calls = self.durable_calls();
        let capacity = self.capacity(host);
        let (used, limit) = host.depth();
        self.depth.note(used, limit, FULL_BELOW_BYTES);
        self.reclaim();
        self.calibrate();
        self.segment.renew_lock();
        self.begin_pass(host);
        let turn = match capacity {
            Capacity::Free if manifest::make_room(&self.segment) => {
                host.set_saturated(false);
                self.batch(host)
            }
            Capacity::Saturated => {
                host.set_saturated(true);
                CollectorTurn::Held
            }
            _ => CollectorTurn::Held,
        };
        if calls != self.seen_calls {
            self.seen_calls = calls;
            for outlet in self.open_chunks.outlets().filter(|outlet| outlet.nudge()) {
                host.start_writer(outlet.clone());
            }
        }
        self.end_pass(host);
        self.answer_tickets(host);
        turn
    }

    /// Releases the lane space of batches that every outlet has written or spilled.
    fn reclaim(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        let oldest = self.open_chunks.outlets().map(|outlet| outlet.unspilled_batch()).min().unwrap_or(NONE);
        while let Some(front) = self.in_flight.front()
            && front.batch < oldest
        {
            let front = self.in_flight.pop_front().expect("there is a front");
            for range in &front.ranges {
                self.segment.lane(range.lane as usize).consumer.release(range.to);
            }
            for number in front.blobs {
                self.blobs.remove(&self.segment, number);
            }
            manifest::release(&self.segment, front.manifest_end);
        }
    }

    fn calibrate(&mut self) {
        // A calibration point that cannot be stored in the segment must not be used either, since a recoverer must
        // compute the same times.
        if self.segment.has_room_for_point()
            && let Some(point) = self.calibrator.check()
        {
            self.segment.push_point(point);
            self.points.push(point);
            if self.points.len() > MAX_POINTS {
                self.points.remove(0);
            }
        }
    }

    /// Combined capacity of the outlets. A saturated sink holds back the other sinks only if fewer than two sinks ever
    /// got records.
    fn capacity(&mut self, host: &dyn CollectorHost) -> Capacity {
        let now = clock::monotonic_ns();
        let (mut busy, mut saturated, mut free) = (false, false, false);
        for outlet in self.open_chunks.outlets() {
            if outlet.wants_spool(now) {
                host.ensure_spooler();
            }
            match outlet.spill_queued(now) {
                Capacity::Free => free = true,
                Capacity::Busy => busy = true,
                Capacity::Saturated => saturated = true,
            }
        }
        match (busy, saturated, free) {
            (true, _, _) => Capacity::Busy,
            (false, true, false) => Capacity::Saturated,
            (false, true, true) if outlets_at_work(host) < 2 => Capacity::Saturated,
            _ => Capacity::Free,
        }
    }

    /// Makes one batch, if any records are waiting.
    fn batch(&mut self, host: &dyn CollectorHost) -> CollectorTurn {
        let segment = self.segment.clone();
        let _guard = host.batching();
        notice_zone();
        // The clock must be read before the lanes' heads, see the module documentation.
        let cut = clock::ticks();
        let lanes = segment.header().lanes.observe() as usize;
        let mut shares: Vec<LaneShare<'_>> = Vec::new();
        for lane in 0..lanes {
            if let Some(reader) = LaneReader::new(&segment, lane) {
                let incarnation = segment.lane(lane).state.incarnation.load(Ordering::Relaxed);
                shares.push(LaneShare { from: reader.position(), reader, lane, incarnation });
            }
        }
        if shares.is_empty() {
            return CollectorTurn::Idle;
        }
        let number = segment.header().batch.load(Ordering::Relaxed) + 1;
        let mut batch_counts = BatchCounts::default();
        in_order(&mut shares, cut, |lane, peeked| {
            self.take(host, lane, peeked, &mut batch_counts);
            // Take records up to the cut, or until the batch is large enough.
            if batch_counts.bytes >= BATCH_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let ranges: Vec<LaneRange> = shares
            .iter()
            .filter(|share| share.reader.position() > share.from)
            .map(|share| LaneRange {
                lane: share.lane as u32,
                incarnation: share.incarnation,
                from: share.from,
                to: share.reader.position(),
            })
            .collect();
        if ranges.is_empty() {
            return CollectorTurn::Idle;
        }
        let fills_lane = shares
            .iter()
            .any(|share| share.reader.position() - share.from >= share.reader.ring_bytes() / LARGE_SHARE_DIVISOR);
        let turn = if batch_counts.bytes < SMALL_BATCH_BYTES {
            CollectorTurn::Few { fills_lane }
        } else {
            CollectorTurn::Worked { fills_lane }
        };
        self.add_message(host);
        let lane_bytes = batch_counts.bytes as usize;
        self.publish(number, ranges, batch_counts);
        self.send_chunks(host, number, lane_bytes);
        turn
    }

    #[inline]
    fn take(
        &mut self,
        host: &dyn CollectorHost,
        lane: usize,
        peeked: PeekedRecord<'_>,
        batch_counts: &mut BatchCounts,
    ) {
        let head = peeked.head;
        batch_counts.records += 1;
        batch_counts.counts[level_class(head.level)] += 1;
        if head.ticks < self.newest_stamp {
            batch_counts.late += 1;
        } else {
            self.newest_stamp = head.ticks;
        }
        let point = clock::point_index(&self.points, head.ticks);
        batch_counts.point = batch_counts.point.max(point as u32);
        let time_ns = self.points[point].wall_ns_at(head.ticks);
        let source = LiveSource { segment: &self.segment, blobs: &self.blobs };
        let mut open = BatchChunks { open_chunks: &mut self.open_chunks, host, sinks: 0 };
        let taken = self.renderer.take(&source, &mut open, peeked, time_ns);
        if self.pending_sync.is_some() {
            batch_counts.count_for_sinks(lane, open.sinks);
        }
        // If the record refers to a large record, the bytes of the large record count too. So a chunk is not much
        // longer than its longest record.
        batch_counts.bytes += u64::from(head.len) + taken.blob_bytes as u64;
        if let Some(blob) = taken.blob {
            batch_counts.blobs.push(blob);
        }
    }

    /// The message about the records refused since the last such message, at most once a second.
    fn refusals_message(&mut self, host: &dyn CollectorHost) -> Option<String> {
        let refusals = host.untold_refusals();
        let now = clock::monotonic_ns();
        if refusals == 0 || now - self.told_at < REPORT_INTERVAL_NS {
            return None;
        }
        host.note_told(refusals);
        self.told_at = now;
        Some(format!("{refusals} records dropped: the queue was full"))
    }

    /// Adds a message of logspool itself to the batch, if one is due. A batch has at most one: its numbering at a
    /// service allows for one record that is in no lane.
    fn add_message(&mut self, host: &dyn CollectorHost) {
        let Some(text) = self.refusals_message(host).or_else(|| self.depth.take()) else { return };
        self.open_chunks.adds_message = true;
        self.renderer.tell(
            &mut BatchChunks { open_chunks: &mut self.open_chunks, host, sinks: 0 },
            &text,
            clock::wall_ns(),
        );
        self.open_chunks.adds_message = false;
    }

    fn publish(&mut self, number: u64, ranges: Vec<LaneRange>, batch_counts: BatchCounts) {
        let header = self.segment.header();
        let first_seq = header.next_seq.load(Ordering::Relaxed);
        let head = ManifestHead {
            bytes: 0,
            lanes: 0,
            batch: number,
            first_seq,
            records: batch_counts.records,
            point: batch_counts.point,
        };
        let manifest_end = manifest::publish(&self.segment, head, &ranges);
        header.next_seq.store(first_seq + u64::from(batch_counts.records), Ordering::Relaxed);
        header.batch.publish(number);
        for (class, count) in batch_counts.counts.iter().enumerate() {
            header.batched[class].fetch_add(*count, Ordering::Relaxed);
        }
        header.late_records.fetch_add(batch_counts.late, Ordering::Relaxed);
        for range in &ranges {
            self.segment.lane(range.lane as usize).consumer.batched.store(range.to, Ordering::Relaxed);
        }
        if let Some(pending_sync) = &self.pending_sync {
            pending_sync.add_batch(number, ranges.iter().map(|range| batch_counts.share(range)));
        }
        self.in_flight.push_back(InFlight { batch: number, ranges, manifest_end, blobs: batch_counts.blobs });
    }

    fn send_chunks(&mut self, host: &dyn CollectorHost, number: u64, lane_bytes: usize) {
        let now = clock::monotonic_ns();
        let with_message = std::mem::take(&mut self.open_chunks.sinks_with_message);
        for (outlet, mut chunk) in self.open_chunks.take_all() {
            chunk.batch = number;
            if with_message.contains(&outlet.id) {
                outlet.note_message();
            }
            if outlet.spill_queued(now) == Capacity::Saturated {
                host.fall_back(&outlet, &chunk);
                outlet.drop_chunk(&chunk, DropReason::OverflowFull);
                continue;
            }
            if outlet.push(chunk, lane_bytes, now) {
                host.start_writer(outlet);
            }
        }
    }

    fn begin_pass(&mut self, host: &dyn CollectorHost) {
        let ticket = host.requested_ticket();
        if ticket == self.seen_ticket || self.pass.is_some() {
            return;
        }
        self.seen_ticket = ticket;
        for outlet in self.open_chunks.outlets().filter(|outlet| outlet.wants_thread()) {
            host.start_writer(outlet.clone());
        }
        // The lanes' heads are read after the ticket was seen, so records pushed before the request are included.
        let lanes = self.segment.header().lanes.observe() as usize;
        let heads = (0..lanes).map(|lane| (lane, self.segment.lane(lane).producer.published())).collect();
        self.pass = Some(FlushPass { ticket, heads });
    }

    fn end_pass(&mut self, host: &dyn CollectorHost) {
        let Some(pass) = &self.pass else { return };
        let batched =
            |&(lane, head): &(usize, u64)| self.segment.lane(lane).consumer.batched.load(Ordering::Relaxed) >= head;
        if pass.heads.iter().all(batched) {
            let (ticket, batch) = (pass.ticket, self.segment.header().batch.load(Ordering::Relaxed));
            self.tickets.push_back((ticket, batch));
            self.pass = None;
            self.open_chunks.refresh(host);
            let mut is_answered = false;
            for outlet in self.open_chunks.outlets() {
                outlet.set_notify(true);
                is_answered |= outlet.answer_after(ticket, batch);
            }
            // Wake callers once for all sinks, since waking them is a system call.
            if is_answered {
                progress::note();
            }
        }
    }

    fn answer_tickets(&mut self, host: &dyn CollectorHost) {
        if self.tickets.is_empty() {
            return;
        }
        // Read each outlet's front batch only once. Otherwise a second, later value could answer the ticket for all
        // sinks before that outlet was answered.
        let mut oldest = NONE;
        for outlet in self.open_chunks.outlets() {
            let front = outlet.front_batch();
            oldest = oldest.min(front);
            if let Some((ticket, _)) = self.tickets.iter().rev().find(|(_, batch)| front > *batch)
                && outlet.answer(*ticket)
            {
                host.start_writer(outlet.clone());
            }
        }
        while let Some((ticket, batch)) = self.tickets.front()
            && oldest > *batch
        {
            host.answer_ticket(*ticket);
            self.tickets.pop_front();
        }
        if self.tickets.is_empty() {
            for outlet in self.open_chunks.outlets() {
                outlet.set_notify(false);
            }
        }
    }
}

/// Number of outlets that have ever received records.
fn outlets_at_work(host: &dyn CollectorHost) -> usize {
    host.outlets().iter().flatten().filter(|outlet| outlet.head_accepted() > 0).count()
}

/// The outlets known to the collector, and the chunk of the current batch for each.
#[derive(Debug, Default)]
struct OpenChunks {
    known: Vec<Option<Arc<Outlet>>>,
    /// For each slot of the sink table, the id of the newest record's sink and the chunk. The id may be that of another
    /// member of the outlet.
    chunks: Vec<Option<(u32, Chunk)>>,
    /// The members of outlets that records have named: id, slot of the outlet and index of the member.
    members: Vec<(u32, usize, u8)>,
    /// Whether a message of logspool itself is being added, and the sinks whose chunks contain such a message.
    adds_message: bool,
    sinks_with_message: Vec<u32>,
}

impl OpenChunks {
    fn outlets(&self) -> impl Iterator<Item = &Arc<Outlet>> {
        self.known.iter().flatten()
    }

    fn refresh(&mut self, host: &dyn CollectorHost) {
        self.known = host.outlets();
        self.members.clear();
        self.chunks.resize_with(self.known.len().max(self.chunks.len()), || None);
    }

    /// The chunk of the current batch for a sink, with the slot of its outlet. `None` if there is no such sink.
    #[inline]
    fn chunk(&mut self, host: &dyn CollectorHost, sink: u32) -> Option<(usize, &mut Chunk)> {
        let slot = Table::Sinks.slot(sink);
        let is_open = matches!(self.chunks.get(slot), Some(Some((id, _))) if *id == sink);
        if !is_open || self.adds_message {
            return self.open_chunk(host, sink);
        }
        self.chunks[slot].as_mut().map(|(_, chunk)| (slot, chunk))
    }

    #[cold]
    fn open_chunk(&mut self, host: &dyn CollectorHost, sink: u32) -> Option<(usize, &mut Chunk)> {
        let (slot, member) = self.place_of(sink).or_else(|| {
            self.refresh(host);
            self.find_member(sink);
            self.place_of(sink)
        })?;
        let outlet = self.known[slot].as_ref()?;
        if self.adds_message {
            self.sinks_with_message.push(outlet.id);
        }
        let (id, chunk) = self.chunks[slot].get_or_insert_with(|| (sink, outlet.spare_chunk()));
        *id = sink;
        chunk.member = member;
        Some((slot, chunk))
    }

    /// The slot of the outlet that writes the records of `sink`, and the index of the member, as far as they are known.
    fn place_of(&self, sink: u32) -> Option<(usize, u8)> {
        let slot = Table::Sinks.slot(sink);
        if self.known.get(slot).is_some_and(|outlet| outlet.as_ref().is_some_and(|outlet| outlet.id == sink)) {
            return Some((slot, 0));
        }
        self.members.iter().find(|(id, ..)| *id == sink).map(|&(_, slot, member)| (slot, member))
    }

    /// Looks for an outlet that has `sink` as a further member.
    fn find_member(&mut self, sink: u32) {
        let outlets = self.known.iter().enumerate();
        let found = outlets.filter_map(|(slot, outlet)| Some((sink, slot, outlet.as_ref()?.member(sink)?))).next();
        self.members.extend(found);
    }

    fn take_all(&mut self) -> impl Iterator<Item = (Arc<Outlet>, Chunk)> {
        let Self { known, chunks, .. } = self;
        known.iter().zip(chunks).filter_map(|(outlet, chunk)| Some((outlet.clone()?, chunk.take()?.1)))
    }
}

/// Definitions and large records of this process.
pub struct LiveSource<'a> {
    /// Segment with the definitions.
    pub segment: &'a Segment,
    /// The files of large records.
    pub blobs: &'a Blobs,
}

impl Definitions for LiveSource<'_> {
    fn definition(&self, table: Table, id: u32) -> Option<Values<'_>> {
        self.segment.definition(table, id)
    }

    fn blob(&self, number: u64) -> Option<Vec<u8>> {
        self.blobs.read(number)
    }
}

/// The chunks of the batch that is being made.
struct BatchChunks<'a> {
    open_chunks: &'a mut OpenChunks,
    host: &'a dyn CollectorHost,
    /// Sinks whose chunks were requested.
    sinks: Sinks,
}

impl Chunks for BatchChunks<'_> {
    #[inline]
    fn chunk(&mut self, sink: u32) -> Option<&mut Chunk> {
        let (slot, chunk) = self.open_chunks.chunk(self.host, sink)?;
        self.sinks |= 1 << slot;
        Some(chunk)
    }
}

/// Counts of a batch.
#[derive(Debug, Default)]
struct BatchCounts {
    bytes: u64,
    records: u32,
    counts: [u64; LEVEL_CLASSES],
    late: u64,
    point: u32,
    blobs: Vec<u64>,
    /// For each lane, the number of its records in the batch and the set of their sinks. Filled only if calls wait for
    /// durability.
    reached: Vec<(u32, Sinks)>,
}

impl BatchCounts {
    fn count_for_sinks(&mut self, lane: usize, sinks: Sinks) {
        if self.reached.len() <= lane {
            self.reached.resize(lane + 1, (0, 0));
        }
        let (records, all) = &mut self.reached[lane];
        *records += 1;
        *all |= sinks;
    }

    fn share(&self, range: &LaneRange) -> durable::BatchShare {
        let lane = range.lane as usize;
        let (records, sinks) = self.reached.get(lane).copied().unwrap_or_default();
        durable::BatchShare { lane, from: range.from, to: range.to, records, sinks }
    }
}
