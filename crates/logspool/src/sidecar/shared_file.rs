//! A log file to which a sink or recoverer appends, under the lock of its sidecar and with an intent.
//!
//! Call the methods in this order:
//! - [`SharedFile::begin`] a chunk;
//! - [`SharedFile::enter`], then examine the file and rotate it;
//! - [`SharedFile::append`], and let the segment note the accepted bytes;
//! - [`SharedFile::finish_append`], or [`SharedFile::abort_append`] after an error.
//!
//! Without an origin (in a program without tmpfs, and in the tests of the sinks) it appends without lock and intent.
//!
//! If the disk accepted only a part of a piece, the lock is kept. The queue then supplies the remaining bytes, and no
//! other process appends before them.

use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;
use std::time::{Duration, Instant};

use logspool_sys::clock::monotonic_ns;
use logspool_sys::kept::is_gone;
use logspool_sys::sleep::sleep_interruptibly;

use super::identity::Identity;
use super::intent::Intent;
use super::log_file::{birth_ns, is_appending, size_of, write_once};
use super::steps::{self, AppendStep};
use super::table::{self, SidecarHandle};
use super::{PIECE_BYTES, repair};
use crate::sink::{Lines, Origin, SharedLog, SinkError};

/// How long [`SharedFile::enter`] waits for other writers.
///
/// Chosen: an append takes well under a millisecond. A writer has to leave for a fork within 50 ms. Doubling the wait
/// would make that tight; halving it only makes the writer ask more often.
const TIMEOUT: Duration = Duration::from_millis(5);
/// First pause between two tries to take the lock.
const FIRST_PAUSE: Duration = Duration::from_micros(50);

/// A log file that several processes append to. The module documentation says how to use it.
#[derive(Debug, Default)]
pub struct SharedFile {
    origin: Option<Origin>,
    sidecar_state: SidecarState,
    birth_ns: u64,
    /// Whether every write through the descriptor appends (`O_APPEND`).
    appends: bool,
    entered: bool,
    /// Whether the time of rotation that all writers agreed on was read.
    has_agreed: bool,
    batch: u64,
    base: u64,
    piece: Option<AppendPiece>,
    buffer: Vec<u8>,
}

#[derive(Debug, Default)]
enum SidecarState {
    /// It is not yet determined whether the file has a sidecar.
    #[default]
    Unknown,
    /// The file has no sidecar: it is not a regular file, or there is no room for a sidecar.
    Nothing,
    /// The sidecar of the file.
    Sidecar(SidecarHandle),
}

/// The bytes of an append, some of which may be appended already. All offsets are offsets in the chunk.
#[derive(Debug, Clone, Copy)]
struct AppendPiece {
    batch: u64,
    begin: usize,
    next: usize,
    end: usize,
    has_intent: bool,
}

impl SharedFile {
    /// The origin of the records; `None` if this program has no sidecars.
    pub(crate) fn origin(&self) -> Option<Origin> {
        self.origin.clone()
    }

    /// Notes that the sink has switched to another file. The sidecar is then determined again.
    pub fn note_switch(&mut self) {
        self.leave();
        self.sidecar_state = SidecarState::Unknown;
        self.has_agreed = false;
    }

    /// Waits until no other process appends, and finishes the append of a dead writer.
    ///
    /// # Errors
    ///
    /// Returns `Retry`, with `WouldBlock` if another process keeps the lock, or if the dead writer's append cannot be
    /// finished.
    pub fn enter(&mut self, file: &File) -> Result<(), SinkError> {
        self.enter_within(file, TIMEOUT).map_err(SinkError::Retry)
    }

    /// Does the same as [`SharedFile::enter`], but waits at most for `patience`.
    pub(crate) fn enter_within(&mut self, file: &File, patience: Duration) -> io::Result<()> {
        if self.entered {
            return Ok(());
        }
        let Some(origin) = &self.origin else { return Ok(()) };
        let deadline = Instant::now() + patience;
        let mut pause = FIRST_PAUSE;
        loop {
            if let SidecarState::Unknown = self.sidecar_state {
                self.sidecar_state = match sidecar_of(origin, file) {
                    Some((handle, birth_ns)) => {
                        self.birth_ns = birth_ns;
                        self.appends = is_appending(file);
                        SidecarState::Sidecar(handle)
                    }
                    None => SidecarState::Nothing,
                };
            }
            let SidecarState::Sidecar(sidecar) = &self.sidecar_state else { return Ok(()) };
            match sidecar.try_enter() {
                Ok(true) if sidecar.is_retired() => {
                    sidecar.leave();
                    self.sidecar_state = SidecarState::Unknown;
                    self.has_agreed = false;
                }
                Ok(true) => break,
                Ok(false) if Instant::now() >= deadline => return Err(io::Error::from_raw_os_error(libc::EAGAIN)),
                Ok(false) => {
                    sleep_interruptibly(pause);
                    pause = (pause * 2).min(Duration::from_millis(1));
                }
                // The program has closed the sidecar's descriptor, so it counts as retired. The next turn opens another.
                Err(error) if is_gone(&error) && sidecar.is_retired() => {
                    self.sidecar_state = SidecarState::Unknown;
                    self.has_agreed = false;
                }
                // The file system has no record locks, or the kernel has no more of them.
                Err(_) => {
                    self.sidecar_state = SidecarState::Nothing;
                    return Ok(());
                }
            }
        }
        self.entered = true;
        let repaired = self.make_ready(file);
        if repaired.is_err() {
            self.leave();
        }
        repaired
    }

    /// Makes sure that the sidecar belongs to this file and holds no intent. The caller holds the lock.
    fn make_ready(&mut self, file: &File) -> io::Result<()> {
        let SidecarState::Sidecar(sidecar) = &self.sidecar_state else { return Ok(()) };
        let path = self.origin.as_ref().map_or(Path::new(""), |origin| &origin.path);
        match sidecar.claim_head(self.birth_ns, path) {
            Ok(true) => {}
            Ok(false) | Err(_) => {
                self.leave();
                self.sidecar_state = SidecarState::Nothing;
                return Ok(());
            }
        }
        if sidecar.has_intent()? { repair::finish_intent(sidecar, file) } else { Ok(()) }
    }

    /// Agrees on the time of rotation with all writers of the file. The first writer that proposes a time decides. The
    /// caller holds the lock.
    pub fn propose_due(&mut self, due: i64) -> i64 {
        let SidecarState::Sidecar(sidecar) = &self.sidecar_state else { return due };
        if self.has_agreed {
            return due;
        }
        self.has_agreed = true;
        sidecar.propose_due(due).unwrap_or(due)
    }

    /// Sets another time of rotation for all writers.
    pub fn set_due(&mut self, due: i64) {
        if let SidecarState::Sidecar(sidecar) = &self.sidecar_state {
            // After an error each process rotates at a time of its own, as without a sidecar.
            let _ = sidecar.set_due(due);
        }
    }

    /// Whether `lines` are the remaining bytes of a piece that was partly accepted.
    pub fn continues(&self, lines: &Lines<'_>) -> bool {
        self.rest_of(lines).is_some()
    }

    fn rest_of(&self, lines: &Lines<'_>) -> Option<AppendPiece> {
        self.piece.filter(|piece| {
            self.entered && piece.batch == self.batch && piece.next == lines.before && piece.next < piece.end
        })
    }

    /// Appends some of the first `part` bytes of `lines`, in one write. Returns their number, at least one.
    ///
    /// # Errors
    ///
    /// Errors are classified by [`SinkError::from_write`].
    pub fn append(&mut self, file: &mut File, lines: &Lines<'_>, part: usize) -> Result<usize, SinkError> {
        if !self.entered {
            return write_once(file, &lines.bytes[..part]);
        }
        let piece = match self.rest_of(lines) {
            Some(piece) => piece,
            None => self.intend(file, lines, part).map_err(SinkError::Retry)?,
        };
        self.piece = Some(piece);
        let bytes = &lines.bytes[..(piece.end - piece.next).min(lines.bytes.len())];
        let count = write_once(file, &bytes[..steps::allowed(bytes.len())])?;
        self.piece = Some(AppendPiece { next: piece.next + count, ..piece });
        steps::reach(AppendStep::Appended);
        Ok(count)
    }

    /// Stores the intent of the next append.
    fn intend(&mut self, file: &mut File, lines: &Lines<'_>, part: usize) -> io::Result<AppendPiece> {
        let (SidecarState::Sidecar(sidecar), Some(origin)) = (&self.sidecar_state, &self.origin) else {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        };
        if self.piece.take().is_some_and(|piece| piece.has_intent) {
            // The previous append was abandoned before its end. The queue will not supply the remaining bytes of that
            // record.
            repair::finish_intent(sidecar, file)?;
        }
        let length = lines.piece(part, PIECE_BYTES);
        let size = size_of(file)?;
        // A descriptor without `O_APPEND` writes at its own position. If that position is not the end of the file, an
        // intent could not describe the append.
        let at_end = self.appends || file.stream_position()? == size;
        let mut intent = Intent {
            batch: self.batch,
            chunk_offset: self.base + lines.before as u64,
            length: length as u64,
            file_bytes: size,
            copy_offset: 0,
            written_ns: monotonic_ns(),
            sink: origin.sink,
            ends_line: false,
            uuid: origin.uuid,
            owner: origin.name.clone(),
        };
        // Without room for an intent the line is still appended; after a kill it may be written twice.
        let has_intent = at_end && sidecar.intend(&mut intent, &lines.bytes[..length], &mut self.buffer).is_ok();
        let begin = lines.before;
        Ok(AppendPiece { batch: self.batch, begin, next: begin, end: begin + length, has_intent })
    }

    /// Releases the lock without clearing the intent. Another process must finish the append.
    pub(crate) fn abandon(&mut self) {
        self.leave();
    }

    /// Whether this process holds the lock.
    pub(crate) fn is_inside(&self) -> bool {
        self.entered
    }

    fn clear_and_leave(&mut self) {
        if let (Some(piece), SidecarState::Sidecar(sidecar)) = (self.piece.take(), &self.sidecar_state)
            && piece.has_intent
        {
            // tmpfs overwrites eight existing bytes without failing. If it does fail, the next process finds that the
            // bytes are appended already.
            let _ = sidecar.clear();
            sidecar.shrink(piece.end - piece.begin);
        }
        self.leave();
    }

    fn leave(&mut self) {
        if std::mem::take(&mut self.entered)
            && let SidecarState::Sidecar(sidecar) = &self.sidecar_state
        {
            sidecar.leave();
        }
        // The next process that enters finishes the append that was begun.
        self.piece = None;
    }
}

impl SharedLog for SharedFile {
    fn set_origin(&mut self, origin: Origin) {
        self.origin = Some(origin);
    }

    fn begin(&mut self, batch: u64, base: u64) {
        (self.batch, self.base) = (batch, base);
    }

    fn finish_append(&mut self) {
        if self.piece.is_none_or(|piece| piece.next == piece.end) {
            steps::reach(AppendStep::Noted);
            self.clear_and_leave();
        }
    }

    fn abort_append(&mut self) {
        if self.piece.is_none_or(|piece| piece.next == piece.begin || piece.next == piece.end) {
            self.clear_and_leave();
        }
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The sidecar of an open file, and the file's birth time. Returns `None` if the file has no sidecar.
fn sidecar_of(origin: &Origin, file: &File) -> Option<(SidecarHandle, u64)> {
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let handle = table::open(&origin.folder, Identity::of(&metadata)).ok()?;
    Some((handle, birth_ns(&metadata)))
}
