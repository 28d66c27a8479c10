//! The thread that prints if standard error is a file. It is needed because the file's disk may hang, while poll(2)
//! always reports a file writable.
//!
//! The thread starts with the first line and ends when all lines are printed. A forked child starts with no lines.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use logspool_sys::fork_safe_lock::PerProcess;
use logspool_sys::sleep::sleep_interruptibly;
use logspool_sys::threads::spawn;

/// The descriptor of standard error. It is another one while lines that are written to descriptor 2 become records.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(2);

/// Prints to this descriptor from now on. It stays open as long as the process lives.
pub fn use_descriptor(descriptor: i32) {
    DESCRIPTOR.store(descriptor, Ordering::Relaxed);
}

/// Returns the descriptor to print to.
pub fn descriptor() -> i32 {
    DESCRIPTOR.load(Ordering::Relaxed)
}

/// Maximum bytes of waiting lines.
///
/// Chosen: this is more than the lines of one second take, even if they are long. While the disk hangs, further lines
/// are dropped.
const MAX_BYTES: usize = 64 * 1024;

#[derive(Default)]
struct PrinterState {
    text: Vec<u8>,
    runs: bool,
}

static STATE: PerProcess<PrinterState> = PerProcess::new();

/// Queues a line for printing. Returns whether there was room for it.
pub fn print(line: &[u8]) -> bool {
    let (has_room, starts) = STATE.with(|state| {
        let has_room = state.text.len() + line.len() <= MAX_BYTES;
        if has_room {
            state.text.extend_from_slice(line);
        }
        (has_room, !std::mem::replace(&mut state.runs, true))
    });
    if starts && !spawn("logspool-tell", run) {
        // The thread could not be started; the next line tries again.
        STATE.with(|state| state.runs = false);
    }
    has_room
}

/// Waits until all queued lines are printed, at most for `patience`.
pub fn finish(patience: Duration) {
    let deadline = Instant::now() + patience;
    while STATE.with(|state| state.runs) && Instant::now() < deadline {
        sleep_interruptibly(Duration::from_micros(200));
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
            let count = unsafe { libc::write(descriptor(), left.as_ptr().cast(), left.len()) };
            // If the file does not accept the text, the text is lost: no other output is left to try.
            let Ok(count @ 1..) = usize::try_from(count) else { break };
            left = &left[count..];
        }
    }
}
