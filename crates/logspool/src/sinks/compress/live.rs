//! The lock of the live file, taken from beside the line: as long as it is held nobody rotates.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use logspool_sys::nap::nap;

use super::Task;
use crate::sidecar::{Identity, SharedFile};

/// How long one try waits inside for others, and the pause between two.
const TRY: Duration = Duration::from_millis(5);
/// How long the lock is tried for: somebody hangs in a write to the live file, or it is not there.
///
/// Chosen: a disk that hangs for longer has other troubles; the next turn asks again.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs `work` while nobody rotates the file. `Ok(None)`: `is_asked_to_leave`, or it could not be had for long.
///
/// # Errors
///
/// Those of `work`; what the system said about the live file.
pub fn while_nobody_rotates<R>(
    task: &Task,
    is_asked_to_leave: &dyn Fn() -> bool,
    work: impl FnOnce() -> io::Result<R>,
) -> io::Result<Option<R>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if is_asked_to_leave() || Instant::now() > deadline {
            return Ok(None);
        }
        if let Some((_file, mut shared)) = enter(task)? {
            let alone = task.alone.lock().unwrap_or_else(PoisonError::into_inner);
            let result = work();
            drop(alone);
            shared.give_up();
            return result.map(Some);
        }
        nap(TRY);
    }
}

/// Enters the sidecar of the file that is at the path now. `None`: not now.
fn enter(task: &Task) -> io::Result<Option<(Option<File>, SharedFile)>> {
    let mut shared = SharedFile::default();
    let Some(origin) = &task.origin else { return Ok(Some((None, shared))) };
    // Whoever enters may have to append what a dead writer began. A pipe without a reader must not hold this up.
    let opened = OpenOptions::new().append(true).custom_flags(libc::O_NONBLOCK).open(&task.path);
    let file = match opened {
        Ok(file) => file,
        // Just renamed, and not made anew yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    shared.attend(origin.clone());
    match shared.enter_within(&file, TRY) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
    }
    let is_it = fs::metadata(&task.path)
        .is_ok_and(|there| file.metadata().is_ok_and(|here| Identity::of(&there) == Identity::of(&here)));
    if !is_it {
        shared.give_up();
        return Ok(None);
    }
    Ok(Some((Some(file), shared)))
}
