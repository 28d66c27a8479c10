//! Lets threads read `sys.modules` one after the other until one that does not own it has read it.
//!
//! Without a GIL, the first read of a dict by such a thread takes the dict's lock, and later reads take none. If several
//! threads wait for that lock while the interpreter ends, it may stop the one that gets the lock next, and then wait for
//! it for ever. A thread that only this package starts would be no mend: with a second thread, CPython 3.13 stops to free
//! code, classes and modules, which a program with one thread expects to be freed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::interpreter::leaving;

/// No thread reads, and no other than [`OWNER`] has read.
const UNREAD: u8 = 0;
/// A thread reads.
const READING: u8 = 1;
/// A thread other than [`OWNER`] has read.
const READ: u8 = 2;

/// How far the first reads are. It publishes nothing: the dict's own lock orders what threads see of it. This atomic is
/// outside the crate's `queue` module: no call changes it once it is [`READ`].
static STATE: AtomicU8 = AtomicU8::new(UNREAD);

/// The thread that connected the package. It mostly owns `sys.modules`. If not, its first read was alone.
static OWNER: OnceLock<ThreadId> = OnceLock::new();

/// How long a thread waits for its turn. A read takes less than a microsecond, but the system may stop its thread, and a
/// fork forgets it.
const LIMIT: Duration = Duration::from_millis(100);

/// The right to read, given back when it is dropped.
pub struct Turn {
    /// The state after this read.
    after: u8,
}

impl Drop for Turn {
    fn drop(&mut self) {
        STATE.store(self.after, Relaxed);
    }
}

/// Takes the calling thread as the owner.
pub fn begin() {
    // The first thread stays the owner.
    OWNER.set(thread::current().id()).ok();
}

/// Waits for the calling thread's turn; `None` if threads may read at once.
pub fn turn(py: Python<'_>) -> Option<Turn> {
    if !cfg!(Py_GIL_DISABLED) || STATE.load(Relaxed) == READ {
        return None;
    }
    let after = if OWNER.get() == Some(&thread::current().id()) { UNREAD } else { READ };
    let begin = Instant::now();
    while let Err(found) = STATE.compare_exchange(UNREAD, READING, Relaxed, Relaxed) {
        if found == READ {
            return None;
        }
        if begin.elapsed() > LIMIT {
            break;
        }
        leaving::detached(py, || thread::sleep(Duration::from_micros(50)));
    }
    Some(Turn { after })
}
