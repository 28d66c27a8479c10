//! Destination of recovered records: a log file, a service, or another program.
//!
//! The way of delivery depends on the destination:
//! - Whole lines are appended to a log file, after a torn last line is completed or ended.
//! - Records for a service are sent in the stream of the dead process, under their numbers. If the process stored no
//!   stream, they are sent in a new one.
//! - Another program gets the records that the dead process had not noted as written.
//!
//! A kill during a write leaves the beginning of a line. The sidecar identifies the record of that line, and the
//! remaining bytes of the record are appended first. Without a sidecar, there are two cases:
//! - If the beginning matches a record that is about to be appended, the remaining bytes of that record are written
//!   first.
//! - Otherwise the line is ended with a line feed, and counted.
//!
//! In both cases every later line of the file is whole, and no record is glued to the torn line.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use logspool_lanes::blob::MAX_BLOB_BYTES;

use super::claim::Claim;
use crate::chunk::Chunk;
use crate::sidecar::{self, Identity, SharedFile};
use crate::sink::{Lines, Origin, SharedLog, Sink, SinkError, Stream};
use crate::sinks::service::ServiceSink;
use crate::sinks::{self, ServiceOptions, SinkOptions};
use logspool_sys::kept::KeptDescriptor;
use logspool_sys::opening::open_path;
use logspool_sys::sleep::sleep_interruptibly;

/// Number of bytes that are read from the end of the file. More are read if these contain no line feed.
///
/// Chosen: it is longer than most lines. Halving it makes a second read necessary twice as often; doubling it costs a
/// start more time.
const TAIL_BYTES: u64 = 64 * 1024;

/// How long a service may take to confirm a piece. After this time the piece is left for the next recovery.
///
/// Chosen: a healthy service makes a hundred commits in this time. A recovery delays other recoveries of its process
/// for this long.
const CONFIRM_LIMIT: Duration = Duration::from_secs(5);

/// How long to wait for another writer of the file. After this time the file is left for the next recovery. Chosen: it
/// equals [`CONFIRM_LIMIT`], for the same reasons.
const WRITER_LIMIT: Duration = Duration::from_secs(5);

/// Number of appended bytes after which the kernel is asked to start writing them to disk.
///
/// Chosen: the disk writes while more records are read and appended, so the sync at the end has little left to do. A
/// recovery of 74 MB with a sync takes 1.7 times as long as `cp` with a sync. Without these requests it takes 2.2 times
/// as long.
const WRITEBACK_BYTES: usize = 8 * 1024 * 1024;

/// Destination of recovered records. The module documentation says how each kind is delivered.
pub enum Target {
    /// A log file.
    File(Box<LogFile>),
    /// A service.
    Service(Box<ServiceSink>),
    /// Another program that confirms nothing.
    Program(Box<dyn Sink>),
}

/// A log file to which records are appended.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: KeptDescriptor<File>,
    identity: Identity,
    shared: SharedFile,
    /// Whether something was appended already. Before the first append the end of the file is examined.
    has_begun: bool,
    /// Number of bytes appended since the kernel was last asked to write appended bytes to disk.
    waiting_bytes: usize,
}

/// A range of the lines of a batch.
#[derive(Debug, Clone, Copy)]
pub struct RecoveredPiece<'a> {
    /// The chunk that holds the lines.
    pub chunk: &'a Chunk,
    /// Number of the batch to which the lines belong.
    pub batch: u64,
    /// Record number of the first record, if the records are numbered.
    pub number: Option<u64>,
    /// Number of bytes of the batch before this piece.
    pub base: u64,
    /// Number of bytes of this piece that are already written.
    pub written: usize,
}

/// Function that is called with the number of written bytes of a piece, before other processes may write.
pub type NoteProgress<'a> = dyn FnMut(usize) -> io::Result<()> + 'a;

/// The bytes that were read from the end of a file.
#[derive(Debug, Default)]
struct FileTail {
    bytes: Vec<u8>,
    whole_file: bool,
}

/// How to start an append to a file with a certain end.
#[derive(Debug, PartialEq, Eq)]
struct AppendStart {
    /// What is written before the chunk.
    before: AppendPrefix,
    /// Offset in the chunk at which the append starts.
    from: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum AppendPrefix {
    Nothing,
    /// A line feed, which ends a torn line that cannot be completed.
    LineEnd,
    /// The remaining bytes of a torn record, as a range of the chunk.
    Rest(Range<usize>),
}

impl Target {
    /// Opens a file or prepares a connection to a service. A missing file is created. The service need not be
    /// reachable. The connection continues `stream`, if there is one.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`LogFile::open`].
    pub fn open(place: &Path, origin: Origin, stream: Option<Stream>) -> io::Result<Self> {
        if let (Some(stream), Some(options)) = (stream, service_of(place)) {
            return Ok(Self::Service(Box::new(ServiceSink::resume(options, stream))));
        }
        let mut target = Self::open_without_sidecar(place)?;
        match &mut target {
            Self::File(file) => file.shared.set_origin(origin),
            Self::Service(_) => {}
            Self::Program(sink) => {
                if let Some(shared) = sink.shared() {
                    shared.set_origin(origin);
                }
                if let (Some(stream), Some(courier)) = (stream, sink.courier()) {
                    courier.resume(stream);
                }
            }
        }
        Ok(target)
    }

    /// Waits until no other process writes to a log file, and finishes an append that a dead writer began.
    ///
    /// # Errors
    ///
    /// Returns an error if another writer does not finish in time, or if a system call fails.
    pub fn finish_dead_append(&mut self) -> io::Result<()> {
        if let Self::File(file) = self {
            file.enter()?;
            file.shared.abort_append();
        }
        Ok(())
    }

    /// Whether something was delivered already. Always true for a service.
    pub fn has_begun(&self) -> bool {
        match self {
            Self::File(file) => file.has_begun,
            Self::Service(_) | Self::Program(_) => true,
        }
    }

    /// Delivers the records of a piece, except its first `written` bytes, which are already delivered. Calls `note`
    /// with the progress.
    ///
    /// # Errors
    ///
    /// Returns the errors of `claim`, or an error if a system call fails.
    pub fn append(
        &mut self,
        piece: &RecoveredPiece<'_>,
        claim: &Claim<'_>,
        note: &mut NoteProgress<'_>,
    ) -> io::Result<()> {
        match self {
            Self::File(file) => file.append(piece, || claim.check(), note),
            Self::Service(sink) => {
                claim.check()?;
                send(sink, piece)?;
                note(piece.chunk.bytes.len())
            }
            Self::Program(sink) => {
                claim.check()?;
                write(sink.as_mut(), piece, note)
            }
        }
    }

    /// Does the same as [`Target::open`], without a sidecar. It is for spools without a segment.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`LogFile::open`].
    pub fn open_without_sidecar(place: &Path) -> io::Result<Self> {
        if let Some(options) = service_of(place) {
            return Ok(Self::Service(Box::new(ServiceSink::new(options)?)));
        }
        match place.to_str().and_then(sinks::from_recovery_address) {
            Some(definition) => sinks::open(&definition).map(Self::Program),
            None => LogFile::open(place).map(|file| Self::File(Box::new(file))),
        }
    }

    /// Delivers a whole chunk. The caller must hold the lock of the chunk's spool.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn append_without_sidecar(&mut self, chunk: &Chunk) -> io::Result<()> {
        let piece = RecoveredPiece { chunk, batch: chunk.batch, number: None, base: 0, written: 0 };
        match self {
            Self::File(file) => file.append(&piece, || Ok(()), &mut |_| Ok(())),
            Self::Service(sink) => send(sink, &piece),
            Self::Program(sink) => write(sink.as_mut(), &piece, &mut |_| Ok(())),
        }
    }

    /// Makes the delivered records durable.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn sync(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.file.get()?.sync_data(),
            Self::Service(_) => Ok(()),
            Self::Program(sink) => Ok(sink.sync()?),
        }
    }

    /// Returns and clears the number of delivered records that the destination refuses for ever.
    pub fn take_refused(&mut self) -> u64 {
        match self {
            Self::File(_) | Self::Service(_) => 0,
            Self::Program(sink) => sink.take_refused().into_iter().map(u64::from).sum(),
        }
    }

    /// Ends the delivery. If a mode ever promises `durable` for recovered records, the sync belongs here.
    pub fn finish(self) {}
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(file) => file.fmt(formatter),
            Self::Service(_) => formatter.write_str("Service"),
            Self::Program(_) => formatter.write_str("Program"),
        }
    }
}

/// Sends the remaining records of a piece, and waits until the service confirms them. A partly sent record is sent
/// again as a whole.
fn send(sink: &mut ServiceSink, piece: &RecoveredPiece<'_>) -> io::Result<()> {
    let chunk = piece.chunk;
    let Some(first) = records(chunk, piece.written).next() else { return Ok(()) };
    let index = chunk.marks.partition_point(|mark| mark.end as usize <= piece.written);
    if let Some(number) = piece.number {
        sink.number_from(number + index as u64);
    }
    let lines = Lines { bytes: &chunk.bytes[first.start..], marks: &chunk.marks[index..], before: first.start };
    let give_up = Instant::now() + CONFIRM_LIMIT;
    loop {
        match sink.write(lines) {
            Ok(_) => return Ok(()),
            Err(SinkError::Retry(error)) if is_retryable(&error) && Instant::now() < give_up => {}
            // This includes an unreachable service: do not wait for it.
            Err(error) => return Err(error.into_io_error()),
        }
    }
}

/// Returns the options of a sink that sends to a service, if `place` is its recovery address.
fn service_of(place: &Path) -> Option<ServiceOptions> {
    ServiceOptions::from_recovery_address(place.to_str()?)
}

/// Writes the remaining bytes of a piece to a program that confirms nothing. Calls `note` after each write.
fn write(sink: &mut dyn Sink, piece: &RecoveredPiece<'_>, note: &mut NoteProgress<'_>) -> io::Result<()> {
    let chunk = piece.chunk;
    let mut written = piece.written;
    let give_up = Instant::now() + CONFIRM_LIMIT;
    if let Some(shared) = sink.shared() {
        shared.begin(piece.batch, piece.base);
    }
    while written < chunk.bytes.len() {
        let first = chunk.marks.partition_point(|mark| mark.end as usize <= written);
        if let (Some(number), Some(courier)) = (piece.number, sink.courier()) {
            courier.number_from(number + first as u64);
        }
        let lines = Lines { bytes: &chunk.bytes[written..], marks: &chunk.marks[first..], before: written };
        match sink.write(lines) {
            Ok(count) => {
                written += count;
                note(written)?;
            }
            Err(SinkError::Retry(error)) if error.kind() == ErrorKind::WouldBlock && Instant::now() < give_up => {
                sleep_interruptibly(Duration::from_millis(10));
            }
            Err(error) => return Err(error.into_io_error()),
        }
    }
    Ok(())
}

/// Whether the send may be tried again: the service has not answered yet, or has closed the connection. A service
/// closes the older of two connections with the same stream. It may read the connection of the dead process after this
/// one, and then close this one.
fn is_retryable(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof, WouldBlock};
    matches!(error.kind(), WouldBlock | UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

impl LogFile {
    /// Opens the file. A missing file is created.
    ///
    /// # Errors
    ///
    /// Returns an error if the path is relative, a symbolic link, not a regular file, or a file of another user. Also
    /// returns an error if a system call fails.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (file, identity) = open_to_append(path)?;
        Ok(Self {
            path: path.to_owned(),
            file: KeptDescriptor::new(file),
            identity,
            shared: SharedFile::default(),
            has_begun: false,
            waiting_bytes: 0,
        })
    }

    /// Appends the records of a piece, except its first `written` bytes, which are already in the file.
    fn append(
        &mut self,
        piece: &RecoveredPiece<'_>,
        check: impl Fn() -> io::Result<()>,
        note: &mut NoteProgress<'_>,
    ) -> io::Result<()> {
        self.shared.begin(piece.batch, piece.base);
        let mut from = piece.written;
        while from < piece.chunk.bytes.len() {
            match self.append_some(piece.chunk, from, &check, note) {
                Ok(reached) => from = reached,
                Err(error) => {
                    self.shared.abort_append();
                    if error.kind() != ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends one part of a chunk, starting at byte `from`. Returns where the next part starts.
    fn append_some(
        &mut self,
        chunk: &Chunk,
        from: usize,
        check: impl Fn() -> io::Result<()>,
        note: &mut NoteProgress<'_>,
    ) -> io::Result<usize> {
        self.enter()?;
        // Check the claim while the sidecar's lock is held. A later claimer of the orphan then finds that all our
        // appends are noted, or finishes them.
        check()?;
        let mut from = from;
        if !self.has_begun {
            let file = self.file.get()?;
            let end = FileTail::read(file, file.metadata()?.len())?;
            let start = end.start(chunk, from);
            // The bytes of `before` are not noted as written, so a later recoverer may write them again.
            match start.before {
                AppendPrefix::Nothing => {}
                AppendPrefix::LineEnd => {
                    self.write(b"\n")?;
                    sidecar::count_torn();
                }
                AppendPrefix::Rest(rest) => self.write(&chunk.bytes[rest])?,
            }
            from = start.from;
            self.has_begun = true;
        }
        let first = chunk.marks.partition_point(|mark| mark.end as usize <= from);
        let lines = Lines { bytes: &chunk.bytes[from..], marks: &chunk.marks[first..], before: from };
        if lines.bytes.is_empty() {
            self.shared.abort_append();
            return Ok(from);
        }
        let appended = self.shared.append(self.file.get_mut()?, &lines, lines.bytes.len());
        let reached = from + appended.map_err(SinkError::into_io_error)?;
        if let Err(error) = note(reached) {
            // The next writer or recoverer finds the appended bytes in the file and notes them.
            self.shared.abandon();
            return Err(error);
        }
        self.shared.finish_append();
        self.begin_writeback(reached - from);
        Ok(reached)
    }

    /// Asks the kernel to write appended bytes to disk if there are at least [`WRITEBACK_BYTES`]. Does not wait for the
    /// write.
    fn begin_writeback(&mut self, appended: usize) {
        self.waiting_bytes += appended;
        if self.waiting_bytes >= WRITEBACK_BYTES {
            self.waiting_bytes = 0;
            if let Ok(file) = self.file.get() {
                // SAFETY: the descriptor is open. On a file system without this call the usual write-back remains.
                unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
            }
        }
    }

    /// Waits until no other process writes to the file that the path names.
    fn enter(&mut self) -> io::Result<()> {
        if self.shared.is_inside() {
            return Ok(());
        }
        let deadline = Instant::now() + WRITER_LIMIT;
        loop {
            let patience = deadline.saturating_duration_since(Instant::now());
            self.shared.enter_within(self.file.get()?, patience).map_err(|error| match error.kind() {
                ErrorKind::WouldBlock => {
                    io::Error::new(ErrorKind::WouldBlock, "another process hangs in writing to it")
                }
                _ => error,
            })?;
            if self.path.symlink_metadata().is_ok_and(|status| Identity::of(&status) == self.identity) {
                return Ok(());
            }
            // The file was rotated or removed after it was opened.
            let (file, identity) = open_to_append(&self.path)?;
            (self.file, self.identity) = (KeptDescriptor::new(file), identity);
            self.shared.note_switch();
            self.has_begun = false;
        }
    }

    /// Writes all `bytes`.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.get_mut()?.write_all(bytes)
    }
}

fn open_to_append(path: &Path) -> io::Result<(File, Identity)> {
    let refuse = |why: &str| Err(io::Error::new(ErrorKind::InvalidInput, why));
    if !path.is_absolute() {
        return refuse("its path is not absolute");
    }
    // Check before opening: opening a device can have side effects.
    if path.symlink_metadata().is_ok_and(|status| !status.is_file()) {
        return refuse("it is not a regular file");
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = open_path(OpenOptions::new().read(true).append(true).create(true).custom_flags(flags), path)?;
    let status = file.metadata()?;
    if !status.is_file() {
        return refuse("it is not a regular file");
    }
    // SAFETY: geteuid has no preconditions and cannot fail.
    if status.uid() != unsafe { libc::geteuid() } {
        return refuse("it belongs to another user");
    }
    Ok((file, Identity::of(&status)))
}

impl FileTail {
    fn read(file: &File, file_bytes: u64) -> io::Result<Self> {
        let mut length = file_bytes.min(TAIL_BYTES);
        loop {
            let mut bytes = vec![0; length as usize];
            file.read_exact_at(&mut bytes, file_bytes - length)?;
            let enough = bytes.contains(&b'\n') || length == file_bytes || length >= MAX_BLOB_BYTES as u64;
            if enough {
                return Ok(Self { bytes, whole_file: length == file_bytes });
            }
            length = (length * 8).min(file_bytes);
        }
    }

    /// Decides how to append `chunk` to a file with this end.
    fn start(&self, chunk: &Chunk, written: usize) -> AppendStart {
        let records = records(chunk, written);
        let Some(first) = records.clone().next() else {
            return AppendStart { before: AppendPrefix::Nothing, from: written };
        };
        let torn = self.torn_line();
        if chunk.bytes[first.clone()].last() != Some(&b'\n') {
            // Records without line feeds cannot be matched, so only `written` says where to continue.
            let out = self.bytes.ends_with(&chunk.bytes[first.start..written.max(first.start)]);
            return AppendStart {
                before: AppendPrefix::Nothing,
                from: if out { written.max(first.start) } else { first.start },
            };
        }
        if torn.is_empty() {
            return AppendStart { before: AppendPrefix::Nothing, from: first.start };
        }
        for record in records {
            let Some(out) = self.torn_at(torn, &chunk.bytes[record.clone()]) else { continue };
            let rest = record.start + out..record.end;
            return if record == first {
                AppendStart { before: AppendPrefix::Nothing, from: rest.start }
            } else {
                AppendStart { before: AppendPrefix::Rest(rest), from: first.start }
            };
        }
        AppendStart { before: AppendPrefix::LineEnd, from: first.start }
    }

    /// Returns the bytes after the last line feed.
    fn torn_line(&self) -> &[u8] {
        let start = self.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        &self.bytes[start..]
    }

    /// Number of bytes of `record` that are at the end of the file, if the file ends inside this record.
    fn torn_at(&self, torn: &[u8], record: &[u8]) -> Option<usize> {
        if torn.len() == self.bytes.len() && !self.whole_file {
            // The read bytes do not include the beginning of the torn line.
            return None;
        }
        let inner = record.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        std::iter::once(0)
            .chain(inner)
            .filter(|line| record[*line..].starts_with(torn))
            .map(|line| line + torn.len())
            .find(|out| *out < record.len() && self.ends_with(&record[..*out]))
    }

    /// Whether the file ends with `part`, as far as the read bytes show it.
    fn ends_with(&self, part: &[u8]) -> bool {
        let known = part.len().min(self.bytes.len());
        (known == part.len() || !self.whole_file) && self.bytes.ends_with(&part[part.len() - known..])
    }
}

/// Iterates over the records of a chunk that are not completely within its first `written` bytes.
fn records(chunk: &Chunk, written: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    let first = chunk.marks.partition_point(|mark| mark.end as usize <= written);
    (first..chunk.marks.len()).map(move |index| {
        let start = if index == 0 { 0 } else { chunk.marks[index - 1].end as usize };
        start..chunk.marks[index].end as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Mark;

    fn chunk(records: &[&str]) -> Chunk {
        let mut chunk = Chunk::default();
        for record in records {
            chunk.bytes.extend_from_slice(record.as_bytes());
            chunk.marks.push(Mark { end: chunk.bytes.len() as u32, level: 20, class: 2, member: 0, seconds: 0 });
        }
        chunk
    }

    fn appended(file: &str, records: &[&str], written: usize) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        std::fs::write(&path, file).unwrap();
        let mut log_file = LogFile::open(&path).unwrap();
        let chunk = chunk(records);
        let mut from = written;
        while from < chunk.bytes.len() {
            from = log_file.append_some(&chunk, from, || Ok(()), &mut |_| Ok(())).unwrap();
        }
        std::fs::read_to_string(&path).unwrap()
    }

    #[test]
    fn a_line_torn_in_the_first_record_is_completed() {
        assert_eq!("0 a\n1 b\n2 c\n", appended("0 a\n1", &["1 b\n", "2 c\n"], 0));
        assert_eq!("0 a\n1 b\n2 c\n", appended("0 a\n1 ", &["0 a\n", "1 b\n", "2 c\n"], 5));
    }

    #[test]
    fn a_line_torn_in_a_later_record_is_completed_and_the_range_repeated() {
        assert_eq!("1 b\n2 c\n1 b\n2 c\n3 d\n", appended("1 b\n2", &["1 b\n", "2 c\n", "3 d\n"], 0));
    }

    #[test]
    fn a_foreign_torn_line_is_ended() {
        assert_eq!("foreign\n1 b\n", appended("foreign", &["1 b\n"], 0));
    }

    #[test]
    fn a_traceback_torn_in_its_second_line_is_completed() {
        assert_eq!("1 b\n  File\n2 c\n", appended("1 b\n  Fi", &["1 b\n  File\n", "2 c\n"], 0));
    }

    #[test]
    fn a_torn_record_longer_than_the_tail_read_first_is_completed() {
        let long = format!("1 {}\n", "x".repeat(300_000));
        let whole = format!("0 a\n{long}");

        assert_eq!(whole, appended(&whole[..200_000], &[&long], 0));
    }

    #[test]
    fn an_offset_inside_a_record_of_a_new_file_goes_back_to_the_start_of_the_record() {
        assert_eq!("2 c\n", appended("", &["1 b\n", "2 c\n"], 6));
    }

    #[test]
    fn records_without_line_ends_are_not_touched() {
        assert_eq!("abcd", appended("ab", &["ab", "cd"], 2));
        assert_eq!("abcd", appended("abc", &["ab", "cd"], 3));
    }

    #[test]
    fn only_regular_files_of_our_own_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("a.log"), &link).unwrap();

        for path in [link.as_path(), folder.path(), Path::new("/dev/null"), Path::new("a.log")] {
            assert!(LogFile::open(path).is_err(), "{}", path.display());
        }
    }
}
