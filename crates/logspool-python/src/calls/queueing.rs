//! Hands a record's values to the pipeline, waiting for room outside the interpreter.
//!
//! Stop on the line: *capture* into *queue*.

use std::time::Duration;

use logspool::pipeline::{self, DurableWait, Push, Refusal, Room, Waiter};
use logspool::record::Head;
use pyo3::Python;

use crate::calls::pieces::Pieces;
use crate::flushing::SHARE;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::running_loop::has_running_loop;
use crate::plans::environment::MadeUnder;

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queued {
    /// It is in the queue, or was refused and counted: the call is done.
    Done,
    /// While the call waited, the process forked or a sink was closed: the ids in the head are void.
    Stale,
    /// While it waited, a signal's handler raised: the error is set, and the record in the queue or counted as refused.
    Raised,
}

/// Queues one record whose ids hold as long as no sink is closed and the generation is the same.
#[inline(always)]
pub fn queue(py: Python<'_>, head: Head, made_under: MadeUnder, pieces: &Pieces<'_>) -> Queued {
    // SAFETY: the lane gives as many bytes as asked for.
    match pipeline::push(head, pieces.len(), |to| unsafe { pieces.write(to) }) {
        Push::Accepted => Queued::Done,
        Push::Undurable => await_durable(py, head.level),
        Push::NoRoom => wait_and_queue(py, head, made_under, pieces),
    }
}

/// Waits until the record that was just pushed is durable, or for as long as that may take.
#[cold]
#[inline(never)]
fn await_durable(py: Python<'_>, level: u16) -> Queued {
    let Some(wait) = DurableWait::begin(level) else { return Queued::Done };
    loop {
        if leaving::outside(py, || wait.share(SHARE)).is_some() {
            return Queued::Done;
        }
        if !leaving::signals_pass(py) {
            wait.give_up();
            return Queued::Raised;
        }
    }
}

/// How long a call waits for its own line on a terminal.
///
/// Specified: a terminal shows a line at most this long after its call.
const TERMINAL_WAIT: Duration = Duration::from_millis(5);

/// Waits until a terminal shows the lines that are queued for it.
#[cold]
#[inline(never)]
pub fn show(py: Python<'_>, terminal: u32) {
    leaving::outside(py, || pipeline::flush(Some(terminal), Some(TERMINAL_WAIT)));
}

#[cold]
#[inline(never)]
fn wait_and_queue(py: Python<'_>, head: Head, made_under: MadeUnder, pieces: &Pieces<'_>) -> Queued {
    let mut waited = Duration::ZERO;
    let waiter = match has_running_loop(py) {
        Ok(true) => Waiter::EventLoop,
        Ok(false) | Err(Failure::Stock) => Waiter::Thread,
        Err(Failure::Raised) => return refuse(head, made_under, pieces),
    };
    let len = pieces.len();
    loop {
        let room = leaving::outside(py, || pipeline::make_room(head.level, len, waiter, &mut waited));
        if let Room::Refused(_) = room {
            show_refused(head, made_under, pieces);
            return Queued::Done;
        }
        // A sink may have been closed meanwhile, once everything queued before was written.
        if !made_under.may_push() {
            return Queued::Stale;
        }
        // SAFETY: the lane gives as many bytes as asked for.
        match pipeline::push(head, len, |to| unsafe { pieces.write(to) }) {
            Push::Accepted => return Queued::Done,
            Push::Undurable => return await_durable(py, head.level),
            // What runs may change all that is compared above, and push records of its own.
            Push::NoRoom if leaving::signals_pass(py) => {}
            Push::NoRoom => return refuse(head, made_under, pieces),
        }
    }
}

/// Drops a record whose call ends because something was raised.
fn refuse(head: Head, made_under: MadeUnder, pieces: &Pieces<'_>) -> Queued {
    pipeline::refuse(head.level, Refusal::QueueFull);
    show_refused(head, made_under, pieces);
    Queued::Raised
}

fn show_refused(head: Head, made_under: MadeUnder, pieces: &Pieces<'_>) {
    // Ids of another generation stand for other definitions.
    if made_under.generation == pipeline::generation() {
        pipeline::show_refused(head, || pieces.to_vec());
    }
}
