//! The thread that prints where standard error is a file: its disk may hang, and poll calls a file writable always.
//!
//! It begins with the first line and ends when it has printed them all. A forked child begins with nothing.

use std::time::{Duration, Instant};

use logspool_sys::gate::PerProcess;
use logspool_sys::nap::nap;
use logspool_sys::threads::spawn;

/// Bytes that wait for it at most.
///
/// Chosen: more than the longest lines of a second come to; what comes beyond it while the disk hangs is given up.
const MOST_BYTES: usize = 64 * 1024;

#[derive(Default)]
struct State {
    text: Vec<u8>,
    runs: bool,
}

static STATE: PerProcess<State> = PerProcess::new();

/// Has a line printed, soon. Returns whether there was room for it.
pub fn print(line: &[u8]) -> bool {
    let (has_room, starts) = STATE.with(|state| {
        let has_room = state.text.len() + line.len() <= MOST_BYTES;
        if has_room {
            state.text.extend_from_slice(line);
        }
        (has_room, !std::mem::replace(&mut state.runs, true))
    });
    if starts && !spawn("logspool-tell", run) {
        // The next line tries again.
        STATE.with(|state| state.runs = false);
    }
    has_room
}

/// Waits until everything is printed, at most for `patience`.
pub fn finish(patience: Duration) {
    let deadline = Instant::now() + patience;
    while STATE.with(|state| state.runs) && Instant::now() < deadline {
        nap(Duration::from_micros(200));
    }
}

fn run() {
    let next = || {
        STATE.with(|state| {
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
