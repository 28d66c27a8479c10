//! The undelivered lines of one orphan on their way to the files they were meant for.
//!
//! Each wanted sink gets, in this order: its overflow entries and the batches of the manifests by number, then
//! what was never batched. How far it came is marked in the segment after every append.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::claim::Claim;
use super::decoded::Decoded;
use super::image::{Image, SinkPlace};
use super::progress::Progress;
use super::spilled::Spilled;
use super::target::Target;
use super::walk::{Damage, REST, Visit};
use crate::blob::MAX_BLOB_BYTES;
use crate::overflow::Chunk;
use crate::queue::reader::Lying;
use crate::record::Values;
use crate::render::{Chunks, Definitions, Renderer};
use crate::segment::folder::Folder;
use crate::segment::layout::Table;
use crate::sink::Mark;

/// Lines of one sink that are held in memory.
///
/// Chosen: ten batches of short records; half makes more appends and marks, double more memory.
const PIECE_BYTES: usize = 1024 * 1024;

/// The same for the first batch of a sink, which goes out in one piece: the kill may have torn any line of it, and
/// only lines in hand can be compared with the end of the file.
///
/// Chosen: as long as the longest record; a batch of more than that may leave the beginning of a line behind.
const FIRST_PIECE_BYTES: usize = MAX_BLOB_BYTES;

/// The same for what was never batched, of which there may be much: a kill between an append and its mark repeats
/// one piece.
///
/// Chosen: about the lines of a batch of short records, so that no kill repeats more than one of a writer would.
const REST_PIECE_BYTES: usize = 16 * 1024;

/// One wanted sink.
#[derive(Debug)]
pub struct Output {
    /// Place in the segment's table.
    pub sink: usize,
    /// Where it wrote.
    pub path: PathBuf,
    /// Records appended.
    pub records: u64,
    /// Bytes appended.
    pub bytes: u64,
    /// What stopped it.
    pub error: Option<io::Error>,
    target: Option<Target>,
    chunk: Chunk,
    /// Bytes of the batch's chunk that were rendered before `chunk`.
    base: u64,
}

impl Output {
    /// An output that has not begun.
    pub fn new(sink: usize, path: PathBuf) -> Self {
        let (records, bytes, base) = (0, 0, 0);
        Self { sink, path, records, bytes, error: None, target: None, chunk: Chunk::default(), base }
    }

    fn target(&mut self) -> io::Result<&mut Target> {
        if self.target.is_none() {
            self.target = Some(Target::open(&self.path)?);
        }
        Ok(self.target.as_mut().expect("just opened"))
    }
}

/// Everything that a delivery reads and writes.
pub struct Delivery<'a> {
    folder: &'a Folder,
    claim: &'a Claim<'a>,
    decoded: &'a Decoded,
    progress: Progress,
    outputs: Vec<Output>,
    source: Source<'a>,
    renderer: Renderer,
    batch: u64,
    damage: Damage,
}

/// What came of a delivery.
#[derive(Debug)]
pub struct Outcome {
    /// The wanted sinks.
    pub outputs: Vec<Output>,
    /// What turned out to be unreadable.
    pub damage: Damage,
}

impl<'a> Delivery<'a> {
    /// A delivery to `outputs`.
    pub fn new(folder: &'a Folder, claim: &'a Claim<'a>, decoded: &'a Decoded, outputs: Vec<Output>) -> Self {
        Self {
            folder,
            claim,
            decoded,
            progress: decoded.progress.clone(),
            outputs,
            source: Source { folder, claim, image: &decoded.image, read: RefCell::default() },
            renderer: Renderer::default(),
            batch: 0,
            damage: Damage::default(),
        }
    }

    /// Delivers everything and marks it.
    pub fn run(mut self) -> Outcome {
        // What makes no records was counted by the survey.
        self.decoded.plan.walk(&self.decoded.image, &mut self);
        for at in 0..self.outputs.len() {
            self.deliver_spilled(at, u64::MAX);
        }
        for output in &mut self.outputs {
            if let Some(target) = output.target.take() {
                target.finish();
            }
        }
        Outcome { outputs: self.outputs, damage: self.damage }
    }

    /// Delivers the overflow entries of an output up to batch `up_to`.
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
            match spilled.read(self.folder, entry) {
                Ok(chunk) => {
                    self.outputs[at].chunk = chunk;
                    self.append(at, entry.batch);
                    self.pass(at, entry.batch);
                }
                Err(_) => self.damage.records += u64::from(entry.marks),
            }
        }
    }

    /// Appends what an output holds of a batch, and marks it.
    fn append(&mut self, at: usize, batch: u64) {
        let Self { claim, progress, outputs, .. } = self;
        let output = &mut outputs[at];
        let chunk = std::mem::take(&mut output.chunk);
        let end = output.base + chunk.bytes.len() as u64;
        let written = progress.written(output.sink, batch).saturating_sub(output.base).min(chunk.bytes.len() as u64);
        if written < chunk.bytes.len() as u64 {
            let reached = match append_chunk(claim, output, &chunk, written as usize) {
                Ok(()) => end,
                Err((reached, error)) => {
                    output.error = Some(error);
                    output.base + reached as u64
                }
            };
            output.bytes += reached.saturating_sub(output.base + written);
            let is_out = |mark: &&Mark| u64::from(mark.end) > written && output.base + u64::from(mark.end) <= reached;
            output.records += chunk.marks.iter().filter(is_out).count() as u64;
            progress.note_offset(output.sink, batch, reached);
            mark(claim, progress, output);
        }
        output.base = end;
    }

    /// Notes that a batch is wholly out, unless its output was stopped.
    fn pass(&mut self, at: usize, batch: u64) {
        let output = &mut self.outputs[at];
        let held = std::mem::replace(&mut output.base, 0) > 0;
        if held && batch != REST && output.error.is_none() {
            self.progress.note_batch(output.sink, batch);
            mark(self.claim, &self.progress, output);
        }
    }
}

/// Returns how many bytes of the chunk are out when it fails.
fn append_chunk(
    claim: &Claim<'_>,
    output: &mut Output,
    chunk: &Chunk,
    written: usize,
) -> Result<(), (usize, io::Error)> {
    claim.check().map_err(|error| (written, error))?;
    let target = output.target().map_err(|error| (written, error))?;
    target.append(chunk, written).map_err(|stopped| (stopped.at, stopped.error))
}

/// A mark that cannot be written stops the output: going on would deliver twice.
fn mark(claim: &Claim<'_>, progress: &Progress, output: &mut Output) {
    let marked = claim.check().and_then(|()| claim.mark(output.sink, progress.checkpoint(output.sink)));
    if let Err(error) = marked {
        output.error.get_or_insert(error);
    }
}

impl Visit for Delivery<'_> {
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

    fn record(&mut self, lying: Lying<'_>) -> ControlFlow<()> {
        let time_ns = self.decoded.image.wall_ns(lying.head.ticks);
        let Self { outputs, progress, decoded, batch, .. } = self;
        let mut open = Open { image: &decoded.image, outputs, progress, spilled: &decoded.spilled, batch: *batch };
        let taken = self.renderer.take(&self.source, &mut open, lying, time_ns);
        self.damage.records += u64::from(!taken.whole);
        for at in 0..self.outputs.len() {
            let output = &self.outputs[at];
            let piece_bytes = match (self.batch, &output.target) {
                // Never handed to a writer, so no kill tore it.
                (REST, _) => REST_PIECE_BYTES,
                (_, None) => FIRST_PIECE_BYTES,
                (_, Some(_)) => PIECE_BYTES,
            };
            if output.chunk.bytes.len() >= piece_bytes {
                self.append(at, self.batch);
            }
        }
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        for at in 0..self.outputs.len() {
            if !self.outputs[at].chunk.marks.is_empty() {
                self.append(at, self.batch);
            }
            self.pass(at, self.batch);
        }
        ControlFlow::Continue(())
    }
}

/// The outputs that lack the current batch.
struct Open<'a> {
    image: &'a Image,
    outputs: &'a mut [Output],
    progress: &'a Progress,
    spilled: &'a Spilled,
    batch: u64,
}

impl Chunks for Open<'_> {
    fn chunk(&mut self, sink: u32) -> Option<&mut Chunk> {
        let SinkPlace::Own(sink) = self.image.place_of(sink) else { return None };
        let output = self.outputs.iter_mut().find(|output| output.sink == sink && output.error.is_none())?;
        self.progress.lacks(sink, self.batch, self.spilled).then_some(&mut output.chunk)
    }
}

/// Definitions and large records of the orphan.
struct Source<'a> {
    folder: &'a Folder,
    claim: &'a Claim<'a>,
    image: &'a Image,
    /// Blobs that were read: each belongs to one record.
    read: RefCell<HashSet<u64>>,
}

impl Source<'_> {
    fn read_blob(&self, number: u64) -> io::Result<Vec<u8>> {
        let file: File = self.folder.open_file(&self.claim.leftover.blob_name(number))?;
        let length = file.metadata()?.len();
        if length > MAX_BLOB_BYTES as u64 || !self.read.borrow_mut().insert(number) {
            return Err(io::Error::from(ErrorKind::InvalidData));
        }
        let mut values = Vec::new();
        file.take(length).read_to_end(&mut values)?;
        Ok(values)
    }
}

impl Definitions for Source<'_> {
    fn definition(&self, table: Table, id: u32) -> Option<Values<'_>> {
        self.image.definition(table, id)
    }

    fn blob(&self, number: u64) -> Option<Vec<u8>> {
        self.read_blob(number).ok()
    }
}
