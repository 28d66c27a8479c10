//! A pipe, terminal, socket or device that belongs to the program, such as standard output.
//!
//! Descriptors 0 to 2 are used by number and never closed. Any other descriptor is duplicated: the program may close it
//! before the writer wakes, and its number may refer to a data file by then. The duplicate is closed soon after the
//! program's own, so that it does not keep a reader waiting for the end of a pipe.
//!
//! Flags are never changed, because O_NONBLOCK would break the program's own `print`. So the writer polls until there
//! is room and then writes at most PIPE_BUF bytes, which a writable pipe accepts completely without blocking. Each
//! write ends with a record, so that records of other processes on the same pipe do not interleave.

use std::io;

use logspool_record::definition::Descriptor;
use logspool_sys::descriptor::duplicate;
use logspool_sys::kept;

use super::duplicates::ListedDuplicate;
use super::{Place, SinkOptions, SinkPlace, Traits};
use crate::broken_pipe;
use crate::sink::{Lines, Sink, SinkError};

crate::options! {
    /// Writes lines to a pipe, terminal, socket or device that the program has open.
    pub struct ConsoleOptions {
        /// Number of the descriptor. 0 to 2 are used as they are and never closed.
        pub descriptor: i32 ["", 0..=2147483647],
    }
}

impl SinkOptions for ConsoleOptions {
    const KIND: &'static str = "console";
    const TRAITS: Traits = Traits { is_borrowed: true, ..Traits::FILE };

    fn open(&self, descriptor: Descriptor) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(ConsoleSink::open(self.descriptor, descriptor)?))
    }

    fn place(&self) -> Place {
        Place::Descriptor(self.descriptor)
    }

    fn samples(_: &str, descriptor: i32) -> Vec<Self> {
        vec![Self { descriptor }]
    }
}

/// The sink for a descriptor of the program; see the module documentation.
#[derive(Debug)]
pub struct ConsoleSink {
    /// The program's number of the descriptor.
    number: i32,
    borrowed: Option<BorrowedDescriptor>,
}

/// The duplicate of a descriptor that the program may close.
#[derive(Debug)]
struct BorrowedDescriptor {
    /// The file that the number referred to when the sink was opened. Records are never written to another file.
    place: SinkPlace,
    duplicate: Option<ListedDuplicate>,
    /// Whether the program's descriptor was closed at the last check, and nothing was written since then.
    was_closed: bool,
}

/// Duration of one poll in milliseconds. Then the writer checks whether it has a new order.
const POLL_MS: i32 = 50;

impl ConsoleSink {
    /// Duplicates the descriptor, or checks that it is open if it is used by number.
    ///
    /// # Errors
    ///
    /// EBADF if the descriptor is not open, or the error of fcntl(2).
    pub fn open(number: i32, descriptor: Descriptor) -> io::Result<Self> {
        let place = SinkPlace::of(number).ok_or_else(kept::gone)?;
        let mut sink = Self { number, borrowed: None };
        if let Descriptor::Duplicate(_) = descriptor {
            sink.borrowed = Some(BorrowedDescriptor { place, duplicate: None, was_closed: false });
            sink.descriptor()?;
        }
        Ok(sink)
    }

    /// The descriptor to write to.
    fn descriptor(&mut self) -> io::Result<i32> {
        let Some(borrowed) = &mut self.borrowed else { return Ok(self.number) };
        borrowed.was_closed = false;
        if let Some(descriptor) = borrowed.duplicate.as_ref().and_then(ListedDuplicate::descriptor) {
            return Ok(descriptor);
        }
        // There is none yet, or the program has closed it. Its own descriptor may still be open.
        borrowed.duplicate = None;
        let duplicate = ListedDuplicate::new(duplicate(self.number)?);
        let descriptor = duplicate.descriptor().ok_or_else(kept::gone)?;
        if SinkPlace::of(descriptor) != Some(borrowed.place) {
            return Err(kept::gone());
        }
        borrowed.duplicate = Some(duplicate);
        Ok(descriptor)
    }
}

impl Sink for ConsoleSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        let descriptor = self.descriptor().map_err(SinkError::from_write)?;
        let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLOUT, revents: 0 };
        // SAFETY: one valid pollfd.
        if unsafe { libc::poll(&mut poll, 1, POLL_MS) } == 0 {
            return Err(SinkError::Retry(io::Error::from_raw_os_error(libc::EAGAIN)));
        }
        let part = lines.for_pipe();
        // SAFETY: pointer and length belong to one slice.
        let count = unsafe { libc::write(descriptor, part.as_ptr().cast(), part.len()) };
        if count > 0 {
            return Ok(count as usize);
        }
        let error = io::Error::last_os_error();
        // A terminal never recovers for this descriptor after a hangup. Without a hangup, EIO may be temporary: a
        // background process may not write at present.
        if error.raw_os_error() == Some(libc::EIO) && poll.revents & libc::POLLHUP != 0 {
            return Err(SinkError::Fatal(error));
        }
        if error.raw_os_error() == Some(libc::EPIPE) {
            broken_pipe::end_by_default();
        }
        Err(SinkError::from_write(error))
    }

    fn release_closed_descriptors(&mut self) -> bool {
        let Some(borrowed) = &mut self.borrowed else { return false };
        let is_closed = SinkPlace::of(self.number) != Some(borrowed.place);
        // The duplicate is not closed at the first check: a record logged right before the close may still be in a
        // lane.
        if is_closed && borrowed.was_closed {
            borrowed.duplicate = None;
        }
        borrowed.was_closed = is_closed;
        borrowed.duplicate.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{AsRawFd, FromRawFd};

    use super::*;
    use crate::sink::Mark;

    #[test]
    fn each_write_to_a_pipe_has_whole_records_except_for_too_long_ones() {
        let mut ends = [0; 2];
        // With O_DIRECT the pipe keeps writes apart: each read returns one write.
        // SAFETY: `ends` is a valid buffer for two descriptors, which have no other owner.
        let (mut reader, writer) = unsafe {
            assert_eq!(0, libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_DIRECT));
            (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
        };
        let lengths = [[100; 60].as_slice(), &[5000], &[100; 60]].concat();
        let mut bytes = Vec::new();
        let mut marks = Vec::new();
        for length in lengths {
            bytes.resize(bytes.len() + length - 1, b'x');
            bytes.push(b'\n');
            marks.push(Mark { end: bytes.len() as u32, level: 20, class: 2, member: 0, seconds: 0 });
        }
        let mut sink = ConsoleSink::open(writer.as_raw_fd(), Descriptor::Open).unwrap();
        let (mut before, mut cut, mut read) = (0, 0, vec![0; 2 * libc::PIPE_BUF]);
        while before < bytes.len() {
            let left = &marks[marks.partition_point(|mark| mark.end as usize <= before)..];
            let count = sink.write(Lines { bytes: &bytes[before..], marks: left, before }).unwrap();
            assert_eq!(count, reader.read(&mut read).unwrap());
            cut += usize::from(read[count - 1] != b'\n');
            before += count;
        }

        assert_eq!(1, cut);
    }

    #[test]
    fn records_after_the_first_check_of_a_closed_pipe_are_delivered() {
        let (mut ends, mut read) = ([0; 2], [0; 100]);
        // SAFETY: `ends` is a valid buffer for two descriptors, which have no other owner.
        let (mut reader, writer) = unsafe {
            assert_eq!(0, libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC));
            (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
        };
        let number = writer.as_raw_fd();
        let mut sink = ConsoleSink::open(number, Descriptor::Duplicate(number)).unwrap();
        assert!(sink.release_closed_descriptors());
        let data = tempfile::tempfile().unwrap();
        // This is what happens if the program closes the descriptor and then opens a file. The test keeps the number in
        // use, because other tests open files.
        // SAFETY: both descriptors belong to this test.
        assert!(unsafe { libc::dup2(data.as_raw_fd(), number) } >= 0);

        for line in [b"first\n", b"other\n"] {
            assert!(sink.release_closed_descriptors());
            assert_eq!(6, sink.write(Lines { bytes: line, marks: &[], before: 0 }).unwrap());
            assert_eq!(6, reader.read(&mut read).unwrap());
            assert_eq!(line, &read[..6]);
        }
        assert!(sink.release_closed_descriptors());
        assert!(!sink.release_closed_descriptors(), "nothing came for long enough");
        assert_eq!(0, reader.read(&mut read).unwrap());
    }
}
