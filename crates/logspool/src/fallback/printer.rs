//! The thread that prints where standard error is a file: its disk may hang, and poll calls a file writable always.
//!
//! It begins with the first line and ends when it has printed them all. A forked child begins with nothing.

use std::time::{Duration, Instant};

use crate::gate::Gate;
use crate::pipeline::spawn;

/// Bytes that wait for it at most.
///
/// Chosen: more than the longest lines of a second come to; what comes beyond it while the disk hangs is given up.
const MOST_BYTES: usize = 64 * 1024;

struct State {
    process: u32,
    text: Vec<u8>,
    runs: bool,
}

#[derive(Clone, Copy)]
struct Pointer {
    state: *mut State,
}

// SAFETY: what it points to is reached by the holder of the gate only.
unsafe impl Send for Pointer {}

static STATE: Gate<Pointer> = Gate::new(Pointer { state: std::ptr::null_mut() });

/// Runs `work` on the state of this process.
fn with_state<R>(work: impl FnOnce(&mut State) -> R) -> R {
    let mut pointer = STATE.hold();
    let process = std::process::id();
    // SAFETY: made below and never freed; only the holder of the gate is here. `process` never changes, and the state of
    // another process is not looked at further.
    let is_own = unsafe { pointer.state.as_ref() }.is_some_and(|state| state.process == process);
    if !is_own {
        pointer.state = Box::into_raw(Box::new(State { process, text: Vec::new(), runs: false }));
    }
    // SAFETY: as above.
    work(unsafe { &mut *pointer.state })
}

/// Has a line printed, soon. Returns whether there was room for it.
pub fn print(line: &[u8]) -> bool {
    let (has_room, starts) = with_state(|state| {
        let has_room = state.text.len() + line.len() <= MOST_BYTES;
        if has_room {
            state.text.extend_from_slice(line);
        }
        (has_room, !std::mem::replace(&mut state.runs, true))
    });
    if starts && !spawn("logspool-tell", run) {
        // The next line tries again.
        with_state(|state| state.runs = false);
    }
    has_room
}

/// Waits until everything is printed, at most for `patience`.
pub fn finish(patience: Duration) {
    let deadline = Instant::now() + patience;
    while with_state(|state| state.runs) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn run() {
    let next = || {
        with_state(|state| {
            state.runs = !state.text.is_empty();
            state.runs.then(|| std::mem::take(&mut state.text))
        })
    };
    while let Some(text) = next() {
        let mut left = text.as_slice();
        while !left.is_empty() {
            // SAFETY: pointer and length are of one slice.
            let count = unsafe { libc::write(2, left.as_ptr().cast(), left.len()) };
            // What a file does not take is lost: this is the last resort.
            let Ok(count @ 1..) = usize::try_from(count) else { break };
            left = &left[count..];
        }
    }
}
