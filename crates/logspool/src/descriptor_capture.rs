//! Lines that other code writes to a descriptor, for example a C library to standard error.
//!
//! The program puts a pipe in place of the descriptor. A native thread reads the pipe, so a writer that holds the lock
//! of an interpreter never waits for that lock. The lines wait here, at most [`MAX_WAITING_BYTES`], until the program
//! takes them. After the end of the capture, processes that inherited the pipe may still write to it: the thread copies
//! these bytes to the original descriptor.
//!
//! A forked child does not have this thread. It must not use an inherited [`CapturedLines`].

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use logspool_sys::kept::KeptDescriptor;
use logspool_sys::threads::spawn;

pub use crate::fallback::use_descriptor as set_standard_error;

/// Maximum bytes of lines that wait for the program. Further lines are dropped and counted.
///
/// Chosen: a C library that reports as fast as it can fills this in tens of milliseconds; no library does so for long.
pub const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;

/// A line without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedLine {
    /// Its first bytes, up to the limit of a line.
    pub bytes: Vec<u8>,
    /// Number of bytes that were cut off.
    pub cut: usize,
}

/// Splits bytes into lines of a limited length.
struct LineSplitter {
    max_bytes: usize,
    line: CapturedLine,
}

impl LineSplitter {
    const fn new(max_bytes: usize) -> Self {
        Self { max_bytes, line: CapturedLine { bytes: Vec::new(), cut: 0 } }
    }

    fn feed(&mut self, bytes: &[u8], mut complete: impl FnMut(CapturedLine)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            let room = self.max_bytes.saturating_sub(self.line.bytes.len()).min(text.len());
            self.line.bytes.extend_from_slice(&text[..room]);
            self.line.cut += text.len() - room;
            if text.len() < part.len() {
                complete(self.take());
            }
        }
    }

    /// Returns the last line if it has no end.
    fn rest(&mut self) -> Option<CapturedLine> {
        (!self.line.bytes.is_empty() || self.line.cut > 0).then(|| self.take())
    }

    fn take(&mut self) -> CapturedLine {
        std::mem::replace(&mut self.line, CapturedLine { bytes: Vec::new(), cut: 0 })
    }
}

#[derive(Default)]
struct WaitingLines {
    lines: VecDeque<CapturedLine>,
    bytes: usize,
    dropped: u64,
    is_over: bool,
}

#[derive(Default)]
struct CaptureState {
    waiting: Mutex<WaitingLines>,
    changed: Condvar,
}

impl CaptureState {
    fn lock(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, line: CapturedLine) {
        let mut waiting = self.lock();
        if waiting.bytes + line.bytes.len() > MAX_WAITING_BYTES {
            waiting.dropped += 1;
        } else {
            waiting.bytes += line.bytes.len();
            waiting.lines.push_back(line);
        }
        self.changed.notify_all();
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }
}

/// The lines of one descriptor.
pub struct CapturedLines(Arc<CaptureState>);

/// The descriptors of a capture.
pub struct CaptureDescriptors {
    /// The read end of the pipe.
    pub pipe: OwnedFd,
    /// The read end of a pipe whose write end is closed when the descriptor is restored.
    pub restored: OwnedFd,
    /// The descriptor's file before the capture.
    pub original: OwnedFd,
}

impl CapturedLines {
    /// Starts the thread that reads the pipe. A line has at most `max_line_bytes`, its rest is cut off. Returns `None`
    /// if no thread can be started.
    pub fn start(ends: CaptureDescriptors, max_line_bytes: usize) -> Option<Self> {
        let state = Arc::new(CaptureState::default());
        let of_thread = Arc::clone(&state);
        let run = move || {
            let CaptureDescriptors { pipe, restored, original } = ends;
            let mut pipe = KeptDescriptor::new(File::from(pipe));
            let (restored, mut original) = (KeptDescriptor::new(restored), KeptDescriptor::new(File::from(original)));
            let mut splitter = LineSplitter::new(max_line_bytes);
            let has_writers = read_until_restored(&mut pipe, &restored, |bytes| {
                splitter.feed(bytes, |line| of_thread.add(line));
            });
            if let Some(line) = splitter.rest() {
                of_thread.add(line);
            }
            of_thread.end();
            if has_writers {
                copy_rest(&mut pipe, &mut original);
            }
        };
        spawn("logspool-lines", run).then_some(Self(state))
    }

    /// Waits for lines, at most for `patience`, and returns them; and whether these are the last ones.
    pub fn take(&self, patience: Duration) -> (Vec<CapturedLine>, bool) {
        let deadline = Instant::now() + patience;
        let mut waiting = self.0.lock();
        while waiting.lines.is_empty() && !waiting.is_over {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { break };
            waiting = self.0.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        waiting.bytes = 0;
        (waiting.lines.drain(..).collect(), waiting.is_over)
    }

    /// Number of lines that were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }
}

/// Passes on everything that is written before the descriptor is restored. Returns whether the pipe still has writers.
fn read_until_restored(
    pipe: &mut KeptDescriptor<File>,
    restored: &KeptDescriptor<OwnedFd>,
    mut pass: impl FnMut(&[u8]),
) -> bool {
    let mut buffer = vec![0; READ_BYTES];
    // From the end on: bytes that were in the pipe then.
    let mut last: Option<usize> = None;
    loop {
        let (Ok(from), Ok(end)) = (pipe.get(), restored.get()) else { return false };
        let mut ends = [poll_entry(from), poll_entry(end)];
        // SAFETY: the pointer and the length are of one array.
        let found = unsafe { libc::poll(ends.as_mut_ptr(), 2, -1) };
        if found < 0 {
            continue;
        }
        if last.is_none() && ends[1].revents != 0 {
            last = Some(pipe.get().map_or(0, bytes_in));
        }
        if last == Some(0) {
            return true;
        }
        let most = last.unwrap_or(READ_BYTES).min(READ_BYTES);
        match pipe.get_mut().and_then(|pipe| pipe.read(&mut buffer[..most])) {
            Ok(0) => return false,
            Ok(count) => {
                pass(&buffer[..count]);
                last = last.map(|bytes| bytes - count);
            }
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted) => {}
            Err(_) => return false,
        }
    }
}

/// Copies what other processes write to the pipe, until the last of them has closed it.
fn copy_rest(pipe: &mut KeptDescriptor<File>, original: &mut KeptDescriptor<File>) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let Ok(from) = pipe.get() else { return };
        let mut entry = poll_entry(from);
        // SAFETY: the pointer is of one entry.
        unsafe { libc::poll(&mut entry, 1, -1) };
        match pipe.get_mut().and_then(|pipe| pipe.read(&mut buffer)) {
            Ok(0) => return,
            // Bytes that the original file does not accept are lost, as without the capture.
            Ok(count) => drop(original.get_mut().and_then(|original| original.write_all(&buffer[..count]))),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted) => {}
            Err(_) => return,
        }
    }
}

fn poll_entry(end: &impl AsRawFd) -> libc::pollfd {
    libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

fn bytes_in(pipe: &File) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: FIONREAD stores one int.
    let code = unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &mut bytes) };
    if code == 0 { usize::try_from(bytes).unwrap_or(0) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(parts: &[&str], max_bytes: usize) -> Vec<(String, usize)> {
        let mut splitter = LineSplitter::new(max_bytes);
        let mut found = Vec::new();
        for part in parts {
            splitter.feed(part.as_bytes(), |line| found.push(line));
        }
        found.extend(splitter.rest());
        found.into_iter().map(|line| (String::from_utf8(line.bytes).expect("the parts are text"), line.cut)).collect()
    }

    #[test]
    fn lines_are_whole_however_the_bytes_arrive() {
        let expected = [("one", 0), ("", 0), ("two", 0), ("rest", 0)].map(|(text, cut)| (text.to_owned(), cut));

        assert_eq!(expected.to_vec(), split(&["one\n\ntwo\nrest"], 10));
        assert_eq!(expected.to_vec(), split(&["o", "ne", "\n", "\nt", "wo\nre", "st"], 10));
    }

    #[test]
    fn a_long_line_is_cut_and_its_rest_is_counted() {
        assert_eq!(vec![("abc".to_owned(), 4), ("d".to_owned(), 0)], split(&["ab", "cdef", "g\nd"], 3));
    }

    #[test]
    fn the_last_lines_are_captured_and_later_ones_go_to_the_original() {
        let (pipe, mut writer) = std::io::pipe().expect("a pipe can be made");
        let (restored, still_captured) = std::io::pipe().expect("a pipe can be made");
        let (mut seen, original) = std::io::pipe().expect("a pipe can be made");
        let ends = CaptureDescriptors { pipe: pipe.into(), restored: restored.into(), original: original.into() };
        let captured = CapturedLines::start(ends, 100).expect("a thread can be started");
        writer.write_all(b"first\nwithout an end").expect("the pipe has a reader");
        drop(still_captured);
        let mut lines = Vec::new();
        loop {
            let (more, is_over) = captured.take(Duration::from_secs(10));
            lines.extend(more.into_iter().map(|line| line.bytes));
            if is_over {
                break;
            }
        }
        writer.write_all(b"later\n").expect("the pipe has a reader");
        drop(writer);
        let mut later = String::new();
        seen.read_to_string(&mut later).expect("the original was closed");

        assert_eq!(vec![b"first".to_vec(), b"without an end".to_vec()], lines);
        assert_eq!("later\n", later);
        assert_eq!(0, captured.dropped());
    }
}
