//! Damage of a segment, as the amount of unreadable data.

use std::io::{self, ErrorKind};

/// Amount of unreadable data in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Damage {
    /// Number of bytes that are not part of a valid record or entry.
    pub bytes: u64,
    /// Number of records whose definitions or values are missing.
    pub records: u64,
}

impl Damage {
    /// Whether any data is unreadable.
    pub fn is_any(self) -> bool {
        self != Self::default()
    }

    /// Runs `read`. Returns `None` if the data that it reads is damaged.
    ///
    /// # Errors
    ///
    /// Returns transient errors. The data is still there and may be readable later.
    pub(super) fn in_read<T>(read: impl Fn() -> io::Result<T>) -> io::Result<Option<T>> {
        let is_of_disk = |error: &io::Error| matches!(error.raw_os_error(), Some(libc::EIO | libc::EBADMSG));
        let is_damage = |error: &io::Error| {
            matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::NotFound)
        };
        let mut found = read();
        if found.as_ref().is_err_and(is_of_disk) {
            found = read();
            // A disk that fails twice is assumed to fail always. Otherwise the data after that place would never be
            // delivered.
            if found.as_ref().is_err_and(is_of_disk) {
                return Ok(None);
            }
        }
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_damage(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds the damage of another part of the same segment.
    pub fn add(&mut self, more: Self) {
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.records = self.records.saturating_add(more.records);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Calls `in_read` with a read that returns `results` one by one. Returns the outcome and the number of reads.
    fn in_reads(results: &[Result<u8, i32>]) -> (Result<Option<u8>, Option<i32>>, usize) {
        let left = RefCell::new(results.iter());
        let read = || left.borrow_mut().next().unwrap().map_err(io::Error::from_raw_os_error);
        let found = Damage::in_read(read).map_err(|error| error.raw_os_error());
        (found, results.len() - left.into_inner().len())
    }

    #[test]
    fn repeated_read_errors_of_a_disk_are_damage_and_transient_ones_are_not() {
        assert_eq!((Ok(Some(7)), 1), in_reads(&[Ok(7)]));
        assert_eq!((Ok(Some(7)), 2), in_reads(&[Err(libc::EIO), Ok(7)]));
        assert_eq!((Ok(None), 2), in_reads(&[Err(libc::EIO), Err(libc::EBADMSG)]));
        assert_eq!((Ok(None), 1), in_reads(&[Err(libc::ENOENT)]));
        assert_eq!((Err(Some(libc::EMFILE)), 1), in_reads(&[Err(libc::EMFILE)]));
        assert_eq!((Err(Some(libc::ENOMEM)), 2), in_reads(&[Err(libc::EIO), Err(libc::ENOMEM)]));
    }
}
