//! Delivers the undelivered records of one orphan to their sinks.
//!
//! Each wanted sink gets its overflow entries and the batches of the manifests, in order of batch number. Then it gets
//! the records that were never batched. After every append the segment notes the progress. For a log file this note is
//! stored before the sidecar's lock is released.
//!
//! Records for a service continue the numbers of its stream, after the last record noted as arrived. So records that
//! the dead process had already sent get the same numbers again (`writer/delivery.rs` says why).

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use logspool_lanes::blob::MAX_BLOB_BYTES;
use logspool_lanes::queue::reader::PeekedRecord;
use logspool_lanes::segment::layout::Table;
use logspool_record::format::FormatSpec;
use logspool_sys::clock;
use logspool_sys::folder::Folder;

use super::adopter::{AdoptedRecords, Adopter};
use super::claim::Claim;
use super::damage::Damage;
use super::decoded::Decoded;
use super::image::{Image, Numbering, SinkSlot};
use super::progress::SinkCheckpoints;
use super::source::OrphanSource;
use super::spilled::Spilled;
use super::target::{RecoveredPiece, Target};
use super::walk::{REST, RecordVisitor};
use crate::chunk::Chunk;
use crate::render::{self, Chunks, Renderer};
use crate::sink::{Mark, Origin, Stream};

/// Maximum number of bytes of one sink's rendered lines that are held in memory.
///
/// Chosen: ten batches of short records. Halving it makes more appends and more notes of progress; doubling it takes
/// more memory.
const PIECE_BYTES: usize = 1024 * 1024;

/// Replaces [`PIECE_BYTES`] for the first batch of a sink, which is appended in one piece. Without a sidecar, the kill
/// may have torn any line of this batch. Only lines in memory can be compared with the end of the file.
///
/// Chosen: it is as long as the longest record. In a larger batch a torn line may remain in the file.
const FIRST_PIECE_BYTES: usize = MAX_BLOB_BYTES;

/// Replaces [`PIECE_BYTES`] for records that were never batched, which can be many. Without a sidecar, a kill between
/// an append and its note repeats one piece.
///
/// Chosen: about the lines of a batch of short records. So a kill of a recovery repeats no more records than a kill of
/// a writer does.
const REST_PIECE_BYTES: usize = 16 * 1024;

/// Maximum number of bytes that all lines of one record may take. More bytes count as damage: a hostile segment could
/// refer to one large record thousands of times.
///
/// Chosen: it holds the longest record for four files. Doubling it takes more memory than a small machine has.
const RECORD_BYTES: usize = 4 * MAX_BLOB_BYTES;

/// Stands for a message that the dead process has sent about its queue.
const REPEATED_MESSAGE: &str = "the queue filled up, or records dropped: the queue was full";

/// A sink whose undelivered records are delivered.
#[derive(Debug)]
pub struct DeliveryOutput {
    /// Index in the segment's sink table.
    pub sink: usize,
    /// Id of the sink.
    pub id: u32,
    /// Destination of the sink: a path or an address.
    pub path: PathBuf,
    /// Number of records appended.
    pub records: u64,
    /// Number of records that the destination refuses for ever.
    pub refused: u64,
    /// Number of bytes appended.
    pub bytes: u64,
    /// Error that stopped the delivery, if one did.
    pub error: Option<io::Error>,
    /// Stream of the sink, and the number of the last record before `chunk`.
    numbering: Option<Numbering>,
    /// Whether the program that recovers sends the records itself, so that `target` gets none.
    pub is_taken: bool,
    target: Option<Target>,
    chunk: Chunk,
    /// Number of bytes of the current batch that were rendered before `chunk`.
    base: u64,
}

impl DeliveryOutput {
    /// Makes an output to which nothing is delivered yet.
    pub fn new(id: u32, path: PathBuf, numbering: Option<Numbering>) -> Self {
        let (records, refused, bytes, base) = (0, 0, 0, 0);
        let sink = Table::Sinks.slot(id);
        let chunk = Chunk::default();
        Self {
            sink,
            id,
            path,
            records,
            refused,
            bytes,
            error: None,
            numbering,
            is_taken: false,
            target: None,
            chunk,
            base,
        }
    }

    /// Makes an output whose records the recoverer does not write, because the program that recovers sends them itself.
    pub fn for_adopter(id: u32, path: PathBuf) -> Self {
        Self { is_taken: true, ..Self::new(id, path, None) }
    }

    /// Skips the numbers of `records` records that cannot be read.
    fn skip_numbers(&mut self, records: u32) {
        if let Some(numbering) = &mut self.numbering {
            numbering.number += u64::from(records);
            // A service accepts a gap in the numbers only at the start of a connection.
            self.target = None;
        }
    }

    /// Stops the delivery to this sink. Its remaining records cannot be read now; the next recovery delivers them.
    fn stop(&mut self, error: &io::Error) {
        self.chunk = Chunk::default();
        self.error = Some(io::Error::new(error.kind(), format!("they cannot be read now: {error}")));
    }

    /// Opens the target if it is closed, and waits until no other process writes to it. From then on, only the newest
    /// recoverer of this orphan appends the orphan's records.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Target::open`], or an error if another writer does not finish in time.
    pub fn open(&mut self, folder: &Folder, claim: &Claim<'_>) -> io::Result<()> {
        if self.is_taken {
            return Ok(());
        }
        self.target(folder, claim)?.finish_dead_append()
    }

    fn target(&mut self, folder: &Folder, claim: &Claim<'_>) -> io::Result<&mut Target> {
        if self.target.is_none() {
            let (folder, name, path) = (folder.clone(), claim.leftover.name.clone(), self.path.clone());
            let origin = Origin { folder, name, uuid: claim.uuid()?, sink: self.id, path };
            let stream = self.numbering.map(|numbering| numbering.stream);
            self.target = Some(Target::open(&self.path, origin, stream)?);
        }
        Ok(self.target.as_mut().expect("just opened"))
    }
}

/// State of the delivery of one orphan's records.
pub struct Delivery<'a> {
    folder: &'a Folder,
    claim: &'a Claim<'a>,
    decoded: &'a Decoded,
    adopter: Option<&'a dyn Adopter>,
    progress: SinkCheckpoints,
    outputs: Vec<DeliveryOutput>,
    source: OrphanSource<'a>,
    renderer: Renderer,
    batch: u64,
    damage: Damage,
}

/// Result of a delivery.
#[derive(Debug)]
pub struct DeliveryOutcome {
    /// The outputs. Each has the counts of its delivered records.
    pub outputs: Vec<DeliveryOutput>,
    /// Number of records and bytes that the delivery found to be unreadable.
    pub damage: Damage,
}

impl<'a> Delivery<'a> {
    /// Makes a delivery to `outputs`.
    pub fn new(
        folder: &'a Folder,
        claim: &'a Claim<'a>,
        decoded: &'a Decoded,
        mut outputs: Vec<DeliveryOutput>,
        adopter: Option<&'a dyn Adopter>,
    ) -> Self {
        // The checkpoints were read again after the outputs were made, so use their newer numbers.
        for output in &mut outputs {
            let message_batch = decoded.progress.numbering(output.sink);
            output.numbering = match output.is_taken {
                true => Some(message_batch.unwrap_or_else(|| decoded.image.numbering_by_adoption(output.sink))),
                false => output.numbering.and(message_batch),
            };
        }
        Self {
            folder,
            claim,
            decoded,
            adopter,
            progress: decoded.progress.clone(),
            outputs,
            source: OrphanSource::new(folder, claim, &decoded.image),
            renderer: Renderer::within(RECORD_BYTES),
            batch: 0,
            damage: Damage::default(),
        }
    }

    /// Delivers all records and notes the progress in the segment.
    pub fn run(mut self) -> DeliveryOutcome {
        // Ignore the number of unreadable bytes: the survey has already counted them.
        self.decoded.plan.walk(&self.decoded.image, &mut self);
        for at in 0..self.outputs.len() {
            self.deliver_spilled(at, u64::MAX);
        }
        for output in &mut self.outputs {
            if let Some(target) = output.target.take() {
                target.finish();
            }
        }
        DeliveryOutcome { outputs: self.outputs, damage: self.damage }
    }

    /// Delivers the overflow and spool entries of an output up to and including batch `up_to`.
    fn deliver_spilled(&mut self, at: usize, up_to: u64) {
        let sink = self.outputs[at].sink;
        let spilled = &self.decoded.spilled;
        for entry in spilled.of(sink) {
            if entry.batch > up_to || self.outputs[at].error.is_some() {
                break;
            }
            if !self.progress.lacks_spilled(sink, entry.batch) {
                continue;
            }
            match Damage::in_read(|| spilled.read(self.folder, entry)) {
                Ok(Some(chunk)) => {
                    self.outputs[at].chunk = chunk;
                    self.append(at, entry.batch);
                    self.note_written(at, entry.batch);
                }
                Ok(None) => {
                    self.damage.records += u64::from(entry.marks);
                    self.outputs[at].skip_numbers(entry.marks);
                }
                Err(error) => self.outputs[at].stop(&error),
            }
        }
    }

    /// Appends the rendered lines of a batch that are held in memory to an output, and notes the progress.
    fn append(&mut self, at: usize, batch: u64) {
        let Self { folder, claim, adopter, progress, outputs, .. } = self;
        let output = &mut outputs[at];
        let chunk = std::mem::take(&mut output.chunk);
        let base = output.base;
        let length = chunk.bytes.len() as u64;
        let written = progress.written(output.sink, batch).saturating_sub(base).min(length);
        if written < length {
            let sink = output.sink;
            let begun = if progress.is_begun(sink, batch) { Ok(()) } else { claim.note_begin(sink, batch) };
            progress.note_offset(sink, batch, base + written);
            let mut reached = base + written;
            let mut note = |out: usize| {
                claim.check()?;
                reached = base + out as u64;
                progress.note_offset(sink, batch, reached);
                claim.note_offset(sink, reached)
            };
            let number = output.numbering.map(|numbering| numbering.number + 1);
            let piece = RecoveredPiece { chunk: &chunk, batch, number, base, written: written as usize };
            let appended = begun.and_then(|()| match (&adopter, output.numbering) {
                (Some(adopter), Some(numbering)) if output.is_taken => {
                    claim.check()?;
                    hand_over(*adopter, &output.path, numbering.stream, &piece)?;
                    note(piece.chunk.bytes.len())
                }
                _ => output.target(folder, claim)?.append(&piece, claim, &mut note),
            });
            output.error = appended.err();
            output.bytes += reached.saturating_sub(base + written);
            let is_out = |mark: &&Mark| u64::from(mark.end) > written && base + u64::from(mark.end) <= reached;
            let refused = output.target.as_mut().map_or(0, Target::take_refused);
            output.refused += refused;
            output.records += (chunk.marks.iter().filter(is_out).count() as u64).saturating_sub(refused);
        }
        if let Some(numbering) = &mut output.numbering {
            numbering.number += chunk.marks.len() as u64;
        }
        output.base = base + length;
    }

    /// Stops all outputs that lack the current batch. The record that cannot be read now may belong to any of them.
    fn stop(&mut self, error: &io::Error) {
        let Self { outputs, progress, decoded, batch, .. } = self;
        let lacks = |output: &&mut DeliveryOutput| progress.lacks(output.sink, *batch, &decoded.spilled);
        outputs.iter_mut().filter(lacks).for_each(|output| output.stop(error));
    }

    /// Adds a message about the queue after the current batch, if the dead process may have sent one
    /// there. Its text was lost with the process.
    fn repeat_message(&mut self, at: usize) {
        let Self { outputs, progress, decoded, claim, batch, .. } = self;
        let output = &mut outputs[at];
        let has_message = output.numbering.is_some_and(|numbering| numbering.message_batch == *batch);
        if has_message && output.error.is_none() && progress.lacks(output.sink, *batch, &decoded.spilled) {
            let format = FormatSpec::entry(claim.leftover.pid());
            render::tell(&mut output.chunk, &format, REPEATED_MESSAGE, clock::wall_ns());
        }
    }

    /// Notes that a batch is completely written, unless its output was stopped. If the note fails, the output is
    /// stopped, since continuing would deliver records twice.
    fn note_written(&mut self, at: usize, batch: u64) {
        let output = &mut self.outputs[at];
        let held = std::mem::replace(&mut output.base, 0) > 0;
        if held && batch != REST && output.error.is_none() {
            self.progress.note_batch(output.sink, batch);
            let noted = self.claim.check().and_then(|()| match output.numbering {
                Some(numbering) => self.claim.note_arrival(output.sink, batch, numbering.number),
                None => self.claim.note_batch(output.sink, batch),
            });
            output.error = noted.err();
        }
    }
}

impl RecordVisitor for Delivery<'_> {
    fn begin(&mut self, number: u64) -> ControlFlow<()> {
        self.batch = number;
        for at in 0..self.outputs.len() {
            self.deliver_spilled(at, number);
        }
        if self.outputs.iter().all(|output| output.error.is_some()) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn record(&mut self, peeked: PeekedRecord<'_>) -> ControlFlow<()> {
        let time_ns = self.decoded.image.wall_ns(peeked.head.ticks);
        let Self { outputs, progress, decoded, batch, .. } = self;
        let mut open =
            BatchOutputs { image: &decoded.image, outputs, progress, spilled: &decoded.spilled, batch: *batch };
        let taken = self.renderer.take(&self.source, &mut open, peeked, time_ns);
        match self.source.take_error() {
            None => self.damage.records += u64::from(!taken.whole),
            Some(error) => self.stop(&error),
        }
        for at in 0..self.outputs.len() {
            let output = &self.outputs[at];
            let piece_bytes = match (self.batch, &output.target) {
                // No writer ever got these records, so no kill tore their lines.
                (REST, _) => REST_PIECE_BYTES,
                _ if output.is_taken => PIECE_BYTES,
                (_, Some(target)) if target.has_begun() => PIECE_BYTES,
                _ => FIRST_PIECE_BYTES,
            };
            if output.chunk.bytes.len() >= piece_bytes {
                self.append(at, self.batch);
            }
        }
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        for at in 0..self.outputs.len() {
            self.repeat_message(at);
            if !self.outputs[at].chunk.marks.is_empty() {
                self.append(at, self.batch);
            }
            self.note_written(at, self.batch);
        }
        ControlFlow::Continue(())
    }
}

/// Passes the remaining records of a piece to the adopter. A partly written record is passed as a whole.
fn hand_over(adopter: &dyn Adopter, place: &Path, stream: Stream, piece: &RecoveredPiece<'_>) -> io::Result<()> {
    let RecoveredPiece { chunk, written, .. } = *piece;
    let index = chunk.marks.partition_point(|mark| mark.end as usize <= written);
    let start = if index == 0 { 0 } else { chunk.marks[index - 1].end as usize };
    let first = piece.number.unwrap_or(1) + index as u64;
    let marks: Vec<Mark> =
        chunk.marks[index..].iter().map(|mark| Mark { end: mark.end - start as u32, ..*mark }).collect();
    if marks.is_empty() {
        return Ok(());
    }
    adopter.take(&AdoptedRecords { place, stream, first, bytes: &chunk.bytes[start..], marks: &marks })
}

/// The outputs that lack the current batch.
struct BatchOutputs<'a> {
    image: &'a Image,
    outputs: &'a mut [DeliveryOutput],
    progress: &'a SinkCheckpoints,
    spilled: &'a Spilled,
    batch: u64,
}

impl Chunks for BatchOutputs<'_> {
    fn chunk(&mut self, sink: u32) -> Option<&mut Chunk> {
        let SinkSlot::Own(sink) = self.image.place_of(sink) else { return None };
        let output = self.outputs.iter_mut().find(|output| output.sink == sink && output.error.is_none())?;
        self.progress.lacks(sink, self.batch, self.spilled).then_some(&mut output.chunk)
    }
}
