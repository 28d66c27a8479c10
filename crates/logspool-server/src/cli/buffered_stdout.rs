//! A buffered stdout for the answer of a store, whose reader may be slow.
//!
//! Until an answer is complete, the store cannot remove old data. So the answer must not wait for a reader such as a
//! pager. Output that the reader does not read at once is buffered. When the buffer is full, the reader has time until
//! the deadline of the query.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::stores::ANSWER_UNREAD;

/// Size of the buffer in bytes. Chosen: some ten thousand records fit, more than a person reads.
const BUFFER_BYTES: usize = 4 << 20;

/// Number of new bytes after which buffered output is written to the reader again. Chosen: the buffer size of a
/// `BufWriter`.
const FLUSH_BYTES: usize = 8 * 1024;

/// Number of bytes that a pipe accepts without blocking when `poll` reports room: PIPE_BUF.
const PIPE_WRITE_BYTES: usize = 4096;

/// A writer that buffers output for a slow reader; see the module documentation.
#[derive(Debug)]
pub(super) struct BufferedStdout {
    to: File,
    buffer: Vec<u8>,
    /// Number of bytes buffered since output was last written to the reader.
    unflushed: usize,
    until: Instant,
}

impl BufferedStdout {
    /// Creates a writer to stdout. Until the answer is complete, it waits for the reader at most until `until`.
    pub fn stdout(until: Instant) -> io::Result<Self> {
        Ok(Self::new(File::from(io::stdout().as_fd().try_clone_to_owned()?), until))
    }

    fn new(to: File, until: Instant) -> Self {
        Self { to, buffer: Vec::new(), unflushed: 0, until }
    }

    /// Writes buffered bytes while the reader takes them, but not longer than `until`. Bytes that were not written stay
    /// in the buffer.
    fn write_available(&mut self, until: Instant) -> io::Result<()> {
        self.unflushed = 0;
        let mut given = 0;
        let done = loop {
            let piece = &self.buffer[given..self.buffer.len().min(given + PIPE_WRITE_BYTES)];
            if piece.is_empty() {
                break Ok(());
            }
            match self.has_room(until).and_then(|room| if room { (&self.to).write(piece) } else { Ok(0) }) {
                Ok(0) => break Ok(()),
                Ok(more) => given += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.buffer.drain(..given);
        done
    }

    /// Waits until there is room for [`PIPE_WRITE_BYTES`] bytes. Returns false if there is still no room at `until`.
    fn has_room(&self, until: Instant) -> io::Result<bool> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.to, PollFlags::OUT)], Some(&left)) {
                Err(Errno::INTR) => {}
                done => return done.map(|ready| ready > 0).map_err(io::Error::from),
            }
        }
    }
}

impl Write for BufferedStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.write_available(self.until)?;
            if !self.buffer.is_empty() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, ANSWER_UNREAD));
            }
        }
        self.buffer.extend_from_slice(bytes);
        self.unflushed += bytes.len();
        if self.unflushed >= FLUSH_BYTES {
            self.write_available(Instant::now())?;
        }
        Ok(bytes.len())
    }

    /// Must be called when the answer is complete. Writes the whole buffer, however long the reader takes.
    fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(&std::mem::take(&mut self.buffer))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_reader_that_waits_gets_the_beginning_before_the_rest_is_found() {
        let (mut from, to) = io::pipe().unwrap();
        let mut to = BufferedStdout::new(File::from(OwnedFd::from(to)), Instant::now());
        to.write_all(&[b'x'; 1024].repeat(16)).unwrap();
        let mut begun = [0; 1024];
        // The bytes arrive without a flush, because the answer is not complete yet.
        assert_ne!(0, poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&Timespec::default())).unwrap());

        from.read_exact(&mut begun).unwrap();
        assert_eq!([b'x'; 1024], begun);
    }

    #[test]
    fn a_reader_that_pauses_gets_all_of_an_answer_that_is_kept() {
        let (mut from, to) = io::pipe().unwrap();
        let mut to = BufferedStdout::new(File::from(OwnedFd::from(to)), Instant::now());
        let line = [b'x'; 1024];
        for _ in 0..BUFFER_BYTES / line.len() {
            to.write_all(&line).unwrap();
        }
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            from.read_to_end(&mut all).map(|_| all.len())
        });
        to.flush().unwrap();
        drop(to);

        assert_eq!(BUFFER_BYTES, reading.join().unwrap().unwrap());
    }

    #[test]
    fn a_reader_that_stops_is_waited_for_until_the_deadline() {
        let (mut from, to) = io::pipe().unwrap();
        let until = Instant::now() + Duration::from_millis(50);
        let mut to = BufferedStdout::new(File::from(OwnedFd::from(to)), until);
        let line = [b'x'; 1024];
        let mut written = 0;
        let error = loop {
            match to.write(&line) {
                Ok(more) => written += more,
                Err(error) => break error,
            }
        };

        assert_eq!(io::ErrorKind::TimedOut, error.kind());
        assert!(Instant::now() >= until);
        // All bytes written before the error arrive completely and in order.
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            from.read_to_end(&mut all).map(|_| all.len())
        });
        to.flush().unwrap();
        drop(to);
        assert_eq!(written, reading.join().unwrap().unwrap());
    }
}
