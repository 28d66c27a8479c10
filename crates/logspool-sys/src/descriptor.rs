//! Numbers of descriptors, and how a new one gets a number that the program does not reuse.
//!
//! open(2) gives the lowest free number, which the program may close and reuse at any moment. So a new descriptor is
//! duplicated to a high number at once, and the duplicate is compared with the expected file. If it is another file,
//! the program has reused the low number in between, and the file is opened again.
//!
//! Not solved: the low number is compared and then closed by two system calls. A program that reuses it in between (less
//! than a microsecond) loses its own new descriptor.
//!
//! The turn of the numbers is an atomic outside `queue` and `stats`: all threads take their numbers from it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Kept descriptors have numbers of at least the limit of open files minus this number, but not above
/// [`HIGHEST_START`].
///
/// Chosen: a process has some dozens of kept descriptors. Programs with a limit of 1,024 reach 768 open files rarely.
const BELOW_LIMIT: u64 = 256;

/// The kernel's table of descriptors is as long as its highest number demands, and each fork copies it.
///
/// Chosen: 32 KiB for the table. Doubling it doubles what a fork copies. That cost is not measured.
const HIGHEST_START: u64 = 3840;

/// Each descriptor gets a higher number than the one before, and the numbers start again after this many. So a number
/// that the program has closed is not used at once for another file, while another thread may be about to use it.
///
/// Chosen: half of [`BELOW_LIMIT`]. The other half is for descriptors that are kept for long.
const NUMBERS_IN_TURN: u32 = 128;

/// How often a file is opened if the program reuses the number each time.
///
/// Chosen: a program that closes all descriptors does so once. Each further try costs microseconds.
pub(super) const TRIES: u32 = 8;

/// What identifies an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// Device.
    pub device: u64,
    /// Inode on the device.
    pub inode: u64,
    kind: libc::mode_t,
}

impl FileIdentity {
    /// The file that a descriptor refers to. `None`: the number is not open. Async-signal-safe.
    pub fn of(descriptor: RawFd) -> Option<Self> {
        status_of(descriptor).as_ref().map(Self::of_status)
    }

    /// The file of a result of stat(2).
    pub fn of_status(status: &libc::stat) -> Self {
        Self { device: status.st_dev, inode: status.st_ino, kind: status.st_mode & libc::S_IFMT }
    }
}

/// The error for a descriptor that the program has closed.
pub fn gone() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADF)
}

/// Whether an error says that the program has closed a descriptor.
pub fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBADF)
}

/// Opens something with a high number. `open` makes a new descriptor, and `is_it` says whether a status is the one of
/// the file that was to be opened. Async-signal-safe if both are.
///
/// # Errors
///
/// The error of `open`; EBADF if each try opened something else.
pub fn open_high(
    mut open: impl FnMut() -> io::Result<OwnedFd>,
    is_it: impl Fn(&libc::stat) -> bool,
) -> io::Result<OwnedFd> {
    // The low number of the try before, if it was another file. Usually it is the program's, so it stays open.
    let mut other: Option<(RawFd, FileIdentity)> = None;
    for _ in 0..TRIES {
        let opened = match open() {
            // The program has closed a descriptor that `open` uses, such as the one of the folder.
            Err(error) if is_gone(&error) => continue,
            opened => opened?.into_raw_fd(),
        };
        let high = match duplicate_up(opened) {
            Ok(high) => high,
            // The program has closed it, so the number may be the program's by now.
            Err(error) if is_gone(&error) => continue,
            // There is no free high number.
            // SAFETY: it was just opened, and nothing else owns it.
            Err(_) if status_of(opened).is_some_and(|status| is_it(&status)) => unsafe {
                return Ok(OwnedFd::from_raw_fd(opened));
            },
            Err(_) => continue,
        };
        let Some(status) = status_of(high.as_raw_fd()) else {
            let _ = high.into_raw_fd();
            continue;
        };
        let identity = FileIdentity::of_status(&status);
        let is_right = is_it(&status);
        // The same other file twice: the program has reused nothing, and `open` opens that file.
        let is_repeated = other.is_some_and(|(_, before)| before == identity);
        if is_right || is_repeated {
            let numbers = [Some(opened), other.filter(|_| is_repeated).map(|(number, _)| number)];
            for number in numbers.into_iter().flatten().filter(|number| FileIdentity::of(*number) == Some(identity)) {
                // SAFETY: it was opened here, and still refers to the same file.
                unsafe { libc::close(number) };
            }
        }
        if is_right {
            return Ok(high);
        }
        if is_repeated {
            return Err(gone());
        }
        other = Some((opened, identity));
    }
    Err(gone())
}

/// Duplicates a descriptor, with close-on-exec and a high number. Without a free high number it is at least one above
/// the three standard ones.
///
/// # Errors
///
/// The error of fcntl(2).
pub fn duplicate(number: RawFd) -> io::Result<File> {
    match duplicate_up(number) {
        Ok(copy) => Ok(copy.into()),
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => Err(error),
        Err(_) => {
            // SAFETY: fcntl checks the descriptor itself.
            let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
            if copy < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: fcntl has just made the descriptor, so nothing else owns it.
            Ok(unsafe { File::from_raw_fd(copy) })
        }
    }
}

/// Gives a descriptor that was just made a high number, with close-on-exec. Without a free high number it keeps its own.
/// A file that can be found again is opened by [`open_high`] instead, which notices that the number was reused.
pub fn move_up(descriptor: OwnedFd) -> OwnedFd {
    if descriptor.as_raw_fd() >= first_number() {
        return descriptor;
    }
    let identity = FileIdentity::of(descriptor.as_raw_fd());
    let Ok(high) = duplicate_up(descriptor.as_raw_fd()) else { return descriptor };
    if FileIdentity::of(descriptor.as_raw_fd()) != identity {
        let _ = descriptor.into_raw_fd();
    }
    high
}

/// Duplicates a descriptor with a high number and close-on-exec. Async-signal-safe.
///
/// # Errors
///
/// EBADF if the number is not open; another error if there is no free high number.
pub(super) fn duplicate_up(number: RawFd) -> io::Result<OwnedFd> {
    if cfg!(miri) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    static TURN: AtomicU32 = AtomicU32::new(0);
    // Relaxed: the numbers need not be in the order of the calls.
    let turn = TURN.fetch_add(1, Ordering::Relaxed) % NUMBERS_IN_TURN;
    let first = first_number();
    // SAFETY: fcntl checks the descriptor itself.
    let copy = |least: RawFd| unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, least) };
    let made = match copy(first + turn as RawFd) {
        // The last numbers are used, or above a low limit.
        made if made < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EBADF) => copy(first),
        made => made,
    };
    // SAFETY: fcntl has just made the descriptor, so nothing else owns it.
    if made < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(made) }) }
}

/// Lowest number of a kept descriptor.
fn first_number() -> RawFd {
    // SAFETY: an all-zero rlimit is a valid value, and `limit` a valid place.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur
    };
    limit.saturating_sub(BELOW_LIMIT).max(limit / 2).min(HIGHEST_START) as RawFd
}

/// The result of fstat(2). `None`: the number is not open.
fn status_of(descriptor: RawFd) -> Option<libc::stat> {
    // SAFETY: an all-zero stat is a valid value of that plain struct.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `status` is a valid place, and the kernel checks the descriptor.
    (unsafe { libc::fstat(descriptor, &mut status) } == 0).then_some(status)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use super::*;

    /// Opens `path`, and lets the program reuse the number for a file of its own after the first `times` openings.
    fn open_while_reused(path: &Path, times: usize) -> (io::Result<File>, Vec<(RawFd, File)>) {
        let mut reused: Vec<(RawFd, File)> = Vec::new();
        let expected = fs::metadata(path).unwrap().ino();
        let opened = open_high(
            || {
                let opened = OwnedFd::from(File::open(path)?);
                if reused.len() < times {
                    let foreign = tempfile::tempfile()?;
                    // SAFETY: both numbers belong to this test.
                    unsafe { libc::dup2(foreign.as_raw_fd(), opened.as_raw_fd()) };
                    reused.push((opened.as_raw_fd(), foreign));
                }
                Ok(opened)
            },
            |status| status.st_ino == expected,
        );
        (opened.map(File::from), reused)
    }

    #[test]
    fn a_descriptor_reused_by_the_program_at_once_is_detected_and_left_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ours");
        fs::write(&path, "ours").unwrap();

        let (opened, reused) = open_while_reused(&path, 2);
        let mut text = String::new();
        opened.unwrap().read_to_string(&mut text).unwrap();
        assert_eq!("ours", text);
        let (opened, more) = open_while_reused(&path, usize::MAX);
        assert_eq!(Some(libc::EBADF), opened.unwrap_err().raw_os_error());
        assert_eq!((2, TRIES as usize), (reused.len(), more.len()));
        for (number, foreign) in reused.into_iter().chain(more) {
            assert_eq!(FileIdentity::of(foreign.as_raw_fd()), FileIdentity::of(number), "it is the program's now");
            // SAFETY: a number of this test.
            unsafe { libc::close(number) };
        }
    }

    #[test]
    fn a_name_of_another_file_leaks_no_descriptor() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut numbers = Vec::new();
        let opened = open_high(
            || {
                let opened = OwnedFd::from(File::open(file.path())?);
                numbers.push(opened.as_raw_fd());
                Ok(opened)
            },
            |_| false,
        );
        assert!(is_gone(&opened.unwrap_err()));
        assert_eq!(2, numbers.len());
        // Another test may have opened its own file with the number.
        let expected = FileIdentity::of(file.as_file().as_raw_fd());
        assert!(numbers.iter().all(|number| FileIdentity::of(*number) != expected));
    }

    #[test]
    fn a_descriptor_closed_by_the_program_at_once_is_opened_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut tries = 0;
        let expected = file.as_file().metadata().unwrap().ino();
        let opened = open_high(
            || {
                tries += 1;
                if tries == 1 {
                    // A real number could be taken by another test once it is closed.
                    // SAFETY: the number is above each limit, so it is never open, and the function only asks for it.
                    return Ok(unsafe { OwnedFd::from_raw_fd(RawFd::MAX) });
                }
                let opened = OwnedFd::from(File::open(file.path())?);
                Ok(opened)
            },
            |status| status.st_ino == expected,
        );
        assert!(opened.unwrap().as_raw_fd() > 15);
        assert_eq!(2, tries);
    }
}
