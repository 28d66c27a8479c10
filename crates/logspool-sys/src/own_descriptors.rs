//! A table of file descriptors for one thread.
//!
//! The kernel ties descriptors and POSIX record locks to a *table of descriptors* (`files_struct`). The threads of a
//! process share one table, so a `close` anywhere in the program drops the locks that any part of it has on that file.
//! A thread with its own table is another owner: the rest of the program can neither close its descriptors nor drop its
//! locks, and its locks hold against the rest of the program too.

use std::io;

/// Close all descriptors of the range, after the thread has got its own table. Linux 5.9. A filter that refuses
/// `unshare`, as container runtimes have, lets this call pass.
const UNSHARE: libc::c_uint = libc::CLOSE_RANGE_UNSHARE;

/// Numbers that the table keeps for descriptors of nothing: some libraries write to them without asking.
const STANDARD_DESCRIPTORS: i32 = 3;

/// Whether a thread of this process can get its own table. Changes nothing.
pub fn are_possible() -> bool {
    // The range is empty, so the kernel refuses it before it does anything. A filter refuses the call differently.
    close_range(1, 0).is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL)) || unshare(0).is_ok()
}

/// Gives the calling thread its own table without any descriptor of the process. Numbers 0, 1 and 2 then refer to
/// nothing that can be read or written. Call it first in a new thread, which must use no descriptor of another thread.
///
/// # Errors
///
/// The kernel or a filter refuses the call. The thread still shares the table.
pub fn begin() -> io::Result<()> {
    if close_range(0, u32::MAX).is_err() {
        unshare(libc::CLONE_FILES)?;
        close_each();
    }
    for _ in 0..STANDARD_DESCRIPTORS {
        // SAFETY: a valid C string. The descriptor stays open for as long as the thread lives.
        if unsafe { libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: the call closes descriptors of a table that only this thread has, or none if the range is empty.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, UNSHARE) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: a plain system call without pointers.
    if unsafe { libc::unshare(flags) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes all descriptors of the calling thread's own table.
fn close_each() {
    let numbers = |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let open: Vec<i32> = match std::fs::read_dir("/proc/thread-self/fd") {
        Ok(entries) => entries.filter_map(numbers).collect(),
        Err(_) => (0..limit()).collect(),
    };
    for number in open {
        // SAFETY: only this thread has the table, and nothing of this thread uses its descriptors.
        unsafe { libc::close(number) };
    }
}

/// The highest number that a descriptor can have, plus one.
fn limit() -> i32 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct lives through the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    i32::try_from(limit.rlim_max).unwrap_or(1 << 20).min(1 << 20)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::io::{PipeWriter, Read};
    use std::os::fd::{AsRawFd, IntoRawFd};

    use super::*;

    /// Runs `begins` in a new thread. Returns the numbers that are open there, and in the rest of the process.
    fn open_there(begins: fn() -> io::Result<()>) -> (Vec<i32>, bool) {
        let (mut reader, writer): (_, PipeWriter) = io::pipe().unwrap();
        let number = writer.as_raw_fd();
        let open = std::thread::spawn(move || {
            begins().unwrap();
            let is_open = |number: &i32| {
                // SAFETY: a plain system call without pointers.
                unsafe { libc::fcntl(*number, libc::F_GETFD) >= 0 }
            };
            (0..1024).filter(is_open).collect()
        });
        let open = open.join().unwrap();
        // SAFETY: the descriptor is open, and is closed here only.
        let is_here = unsafe { libc::close(writer.into_raw_fd()) } == 0;
        // No other table keeps the pipe open.
        assert_eq!(0, reader.read(&mut [0]).unwrap());
        assert!(number > 0);
        (open, is_here)
    }

    #[test]
    fn a_thread_with_its_own_table_has_no_descriptor_of_the_process() {
        assert!(are_possible());
        assert_eq!((vec![0, 1, 2], true), open_there(begin));
        let without_close_range = || {
            unshare(libc::CLONE_FILES)?;
            close_each();
            Ok(())
        };
        assert_eq!((vec![], true), open_there(without_close_range));
    }

    #[test]
    fn a_close_elsewhere_drops_no_lock_of_the_thread() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_owned();
        let (locked, is_locked) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let lock = |asks: libc::c_int, file: &std::fs::File| {
            let mut lock = libc::flock { l_type: libc::F_WRLCK as i16, l_whence: 0, l_start: 0, l_len: 0, l_pid: 0 };
            // SAFETY: the descriptor is open, and the lock lives through the call.
            assert_eq!(0, unsafe { libc::fcntl(file.as_raw_fd(), asks, &raw mut lock) });
            lock.l_type == libc::F_WRLCK as i16
        };
        let opened = path.clone();
        let thread = std::thread::spawn(move || {
            begin().unwrap();
            let file = std::fs::OpenOptions::new().write(true).open(opened).unwrap();
            lock(libc::F_SETLK, &file);
            locked.send(()).unwrap();
            let _ = ended.recv();
        });
        is_locked.recv().unwrap();
        drop(std::fs::File::open(&path).unwrap());
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        assert!(lock(libc::F_GETLK, &file), "the lock of the thread holds against this one");
        drop(end);
        thread.join().unwrap();
    }
}
