//! A pipe, terminal, socket or device that belongs to the program: standard output and its like.
//!
//! The descriptor is used by number and never closed, its flags are never changed: O_NONBLOCK would break
//! the program's own `print`. So the writer polls until there is room and then writes at most PIPE_BUF
//! bytes, which a pipe that polls writable takes whole without blocking.

use std::io;

use crate::sink::{Lines, Sink, SinkError};

/// See the file head.
#[derive(Debug)]
pub struct ConsoleSink {
    descriptor: i32,
}

/// How long one poll waits before the writer looks at its orders again.
const POLL_MS: i32 = 50;

impl ConsoleSink {
    /// Checks that the descriptor is open.
    ///
    /// # Errors
    ///
    /// EBADF when it is not.
    pub fn open(descriptor: i32) -> io::Result<Self> {
        // SAFETY: fcntl checks the number itself.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { descriptor })
    }
}

impl Sink for ConsoleSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        let mut poll = libc::pollfd { fd: self.descriptor, events: libc::POLLOUT, revents: 0 };
        // SAFETY: one valid pollfd.
        if unsafe { libc::poll(&mut poll, 1, POLL_MS) } == 0 {
            return Err(SinkError::Retry(io::Error::from_raw_os_error(libc::EAGAIN)));
        }
        let part = &lines.bytes[..lines.bytes.len().min(libc::PIPE_BUF)];
        // SAFETY: the pointer and length are of one slice.
        let count = unsafe { libc::write(self.descriptor, part.as_ptr().cast(), part.len()) };
        if count > 0 {
            return Ok(count as usize);
        }
        let error = io::Error::last_os_error();
        // A terminal that was hung up never comes back for this descriptor. EIO alone can pass: of a process in the
        // background that may not write now.
        if error.raw_os_error() == Some(libc::EIO) && poll.revents & libc::POLLHUP != 0 {
            return Err(SinkError::Fatal(error));
        }
        Err(SinkError::from_write(error))
    }
}
