//! Hands a record's values to the pipeline, waiting for room outside the interpreter.
//!
//! Stop on the line: *capture* into *queue*.

use std::time::Duration;

use logspool::pipeline::{self, DurableWait, Push, Refusal, Room, Waiter};
use logspool_record::Head;

use crate::context;
use crate::environment;
use crate::flushing::SHARE;
use crate::leaving::{self, Detached};
use crate::message::Failure;
use crate::pieces::Pieces;

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

/// What the ids in a record were made under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeUnder {
    /// [`environment::epoch`]
    pub epoch: u64,
    /// [`environment::stops`]
    pub stops: u64,
    /// [`pipeline::generation`]
    pub generation: u64,
}

impl MadeUnder {
    /// As things are. Read before what is made from them.
    pub fn now() -> Self {
        Self { epoch: environment::epoch(), stops: environment::stops(), generation: pipeline::generation() }
    }

    /// Whether everything is as it was.
    #[inline(always)]
    pub fn holds(self) -> bool {
        self.epoch == environment::epoch() && self.generation == pipeline::generation()
    }

    /// Whether it serves the call in which it was made or met: other threads may have changed something meanwhile, and
    /// nobody can tell whether that was before the call. What this thread itself changed, it has to see.
    pub fn serves_call(self) -> bool {
        self.holds() || self.may_push() && environment::only_others_moved(self.epoch)
    }

    /// Whether what was made under it may still be pushed: the sinks are those that were open.
    #[inline(always)]
    pub fn may_push(self) -> bool {
        self.stops == environment::stops() && self.generation == pipeline::generation()
    }
}

/// Queues one record whose ids hold as long as no sink is closed and the generation is the same.
///
/// # Safety
///
/// Attached; what the pieces point to is alive.
#[inline(always)]
pub unsafe fn queue(head: Head, made_under: MadeUnder, pieces: &Pieces) -> Queued {
    // SAFETY: the lane gives as many bytes as asked for.
    match pipeline::push(head, pieces.len(), |to| unsafe { pieces.write(to) }) {
        Push::Accepted => Queued::Done,
        // SAFETY: attached.
        Push::Undurable => unsafe { await_durable(head.level) },
        // SAFETY: passed on.
        Push::NoRoom => unsafe { wait_and_queue(head, made_under, pieces) },
    }
}

/// Waits until the record that was just pushed is durable, or for as long as that may take.
///
/// # Safety
///
/// Attached.
#[cold]
#[inline(never)]
unsafe fn await_durable(level: u16) -> Queued {
    let Some(wait) = DurableWait::begin(level) else { return Queued::Done };
    loop {
        let known = {
            // SAFETY: attached; no Python object is touched until the guard is gone.
            let _detached = unsafe { Detached::new() };
            wait.share(SHARE)
        };
        if known.is_some() {
            return Queued::Done;
        }
        // SAFETY: attached again.
        if !unsafe { leaving::signals_pass() } {
            wait.give_up();
            return Queued::Raised;
        }
    }
}

/// How long a call waits for its own line on a terminal.
///
/// Specified: a terminal shows a line at most this long after its call.
const TERMINAL_WAIT: Duration = Duration::from_millis(5);

/// Waits until a terminal shows what was queued for it.
///
/// # Safety
///
/// Attached.
#[cold]
#[inline(never)]
pub unsafe fn show(terminal: u32) {
    // SAFETY: attached; no Python object is touched until the guard is gone.
    let _detached = unsafe { Detached::new() };
    pipeline::flush(Some(terminal), Some(TERMINAL_WAIT));
}

#[cold]
#[inline(never)]
unsafe fn wait_and_queue(head: Head, made_under: MadeUnder, pieces: &Pieces) -> Queued {
    let mut waited = Duration::ZERO;
    // SAFETY: attached.
    let waiter = match unsafe { context::has_running_loop() } {
        Ok(true) => Waiter::EventLoop,
        Ok(false) | Err(Failure::Stock) => Waiter::Thread,
        Err(Failure::Raised) => return refuse(head, made_under, pieces),
    };
    loop {
        let room = {
            // SAFETY: attached; no Python object is touched until the guard is gone.
            let _detached = unsafe { Detached::new() };
            pipeline::make_room(head.level, pieces.len(), waiter, &mut waited)
        };
        if let Room::Refused(_) = room {
            show_refused(head, made_under, pieces);
            return Queued::Done;
        }
        // A sink may have been closed meanwhile, once everything queued before was written.
        if !made_under.may_push() {
            return Queued::Stale;
        }
        // SAFETY: as in `queue`.
        match pipeline::push(head, pieces.len(), |to| unsafe { pieces.write(to) }) {
            Push::Accepted => return Queued::Done,
            // SAFETY: attached.
            Push::Undurable => return unsafe { await_durable(head.level) },
            // SAFETY: attached. What runs may change all that is compared above, and push records of its own.
            Push::NoRoom if unsafe { leaving::signals_pass() } => {}
            Push::NoRoom => return refuse(head, made_under, pieces),
        }
    }
}

/// Gives up a record whose call ends because something was raised.
fn refuse(head: Head, made_under: MadeUnder, pieces: &Pieces) -> Queued {
    pipeline::refuse(head.level, Refusal::QueueFull);
    show_refused(head, made_under, pieces);
    Queued::Raised
}

fn show_refused(head: Head, made_under: MadeUnder, pieces: &Pieces) {
    // Ids of another generation stand for other definitions.
    if made_under.generation == pipeline::generation() {
        pipeline::show_refused(head, || pieces.to_vec());
    }
}
