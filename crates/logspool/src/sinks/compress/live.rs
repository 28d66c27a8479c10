//! Takes the lock of the live file, for the compressing thread. While the lock is held, no process rotates.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use logspool_sys::opening::open_path;
use logspool_sys::sleep::sleep_interruptibly;

use super::task::Task;
use crate::sidecar::{Identity, SharedFile};
use crate::sink::SharedLog;

/// How long one try waits for other processes, and the pause between two tries.
const TRY_TIMEOUT: Duration = Duration::from_millis(5);
/// How long the thread tries to take the lock, if a writer hangs in the live file or the file does not exist.
///
/// Chosen: a disk that hangs for longer has other problems. The next rotation requests the compression again.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs `work` while no process rotates the file. `Ok(None)`: the thread was asked to leave, or the lock was not
/// available in time.
///
/// # Errors
///
/// Errors of `work`, and when a system call on the live file fails.
pub fn while_nobody_rotates<R>(
    task: &Task,
    is_asked_to_leave: &dyn Fn() -> bool,
    work: impl FnOnce() -> io::Result<R>,
) -> io::Result<Option<R>> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if is_asked_to_leave() || Instant::now() > deadline {
            return Ok(None);
        }
        if let Some((_file, mut shared)) = enter(task)? {
            let alone = task.alone.lock().unwrap_or_else(PoisonError::into_inner);
            let result = work();
            drop(alone);
            shared.abort_append();
            return result.map(Some);
        }
        sleep_interruptibly(TRY_TIMEOUT);
    }
}

/// Takes the lock in the sidecar of the file that is now at the path. `None`: this is not possible now.
fn enter(task: &Task) -> io::Result<Option<(Option<File>, SharedFile)>> {
    let mut shared = SharedFile::default();
    let Some(origin) = &task.origin else { return Ok(Some((None, shared))) };
    // Taking the lock may require appending the rest of a dead process's write. The file is opened non-blocking, so
    // that a pipe without a reader does not block.
    let opened = open_path(OpenOptions::new().append(true).custom_flags(libc::O_NONBLOCK), task.path.as_ref());
    let file = match opened {
        Ok(file) => file,
        // The file was just renamed, and a new one was not yet created.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    shared.set_origin(origin.clone());
    match shared.enter_within(&file, TRY_TIMEOUT) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
    }
    let is_it = fs::metadata(&task.path)
        .is_ok_and(|there| file.metadata().is_ok_and(|here| Identity::of(&there) == Identity::of(&here)));
    if !is_it {
        shared.abort_append();
        return Ok(None);
    }
    Ok(Some((Some(file), shared)))
}
