//! Starts and stops the native threads, and contains the body of the collector thread.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use logspool_lanes::lane::cursor::announce_sleep;
use logspool_lanes::queue::producer::sleep_until_woken;
use logspool_sys::clock;
use logspool_sys::generation;
use logspool_sys::progress;
use logspool_sys::published::Published;
use logspool_sys::threads::{self, spawn};

use super::orphan_watch;
use super::spooler::Spooler;
use super::state::Pipeline;
use crate::collector::{Collector, CollectorHost, CollectorTurn, Pause};
use crate::writer::drop_spare_chunks;

/// How long the collector spins after a batch that was not small, before it sleeps.
///
/// Chosen: about as long as four wake-ups take. A burst of records keeps the collector awake; a program that logs at a
/// steady slow pace does not.
const SPIN_NS: u64 = 20_000;
/// After this time without records the collector makes longer pauses, and the sinks free their spare chunks.
const QUIET_NS: u64 = 1_000_000_000;

/// Time between two looks whether the program's threads have ended.
///
/// Chosen: nobody waits for such a process, and a look takes some 10 us.
const MAIN_LOOK_NS: u64 = 500_000_000;

/// Ends the process if all threads of the program have ended, as the C library does after the last thread: with status
/// 0, and with the functions that were registered for the exit. One of these drains the queue.
fn end_without_program() {
    static ENDS: AtomicBool = AtomicBool::new(false);
    if threads::program_has_left() && !ENDS.swap(true, Ordering::Relaxed) {
        // The drain waits for the collector, so another thread ends the process.
        // SAFETY: no thread of the program runs, so nothing is used that an exit function destroys.
        let started = spawn("logspool-end", || unsafe { libc::exit(0) });
        ENDS.store(started, Ordering::Relaxed);
    }
}

impl Pipeline {
    /// Starts the collector, and the writers that have records to write.
    pub(super) fn ensure_threads(&'static self) {
        if self.leave.load(Ordering::Relaxed) {
            return;
        }
        // Pairs with `stop_unless` at the end of `collect`.
        if !self.collector_runs.try_start() {
            return;
        }
        self.resume_writers();
        if !spawn("logspool", || self.collect()) {
            self.collector_runs.end();
        }
    }

    pub(super) fn has_writers(&self) -> bool {
        self.outlets().iter().flatten().any(|outlet| outlet.thread_runs())
    }

    /// Allows writers to run again, and starts those that have records to write.
    pub(super) fn resume_writers(&self) {
        for outlet in self.outlets().into_iter().flatten() {
            if outlet.resume() {
                self.start_writer(outlet);
            }
        }
    }

    /// Body of the collector thread.
    fn collect(&'static self) {
        let mut slot = self.collector.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(mut collector) = slot.take() else { return };
            self.collect_until_leave(&mut collector);
            *slot = Some(collector);
            // The thread that resumes the native threads clears `leave` and then starts the collector if none runs.
            // Either that thread finds no collector and starts one, or this collector finds `leave` cleared and stays
            // (model: `a_thread_never_misses_its_run`). Otherwise a record pushed in between would wait until the next
            // flush.
            let is_to_leave = || {
                progress::note();
                self.leave.load(Ordering::Relaxed)
            };
            if !self.collector_runs.stop_unless(is_to_leave) {
                return;
            }
            self.resume_writers();
        }
    }

    fn collect_until_leave(&'static self, collector: &mut Collector) {
        let (mut dense_at, mut worked_at) = (clock::monotonic_ns(), clock::monotonic_ns());
        // The watcher is not started at once: a child that logs and ends within this time needs no watcher.
        let mut watched_at = Some(dense_at + orphan_watch::TURN.as_nanos() as u64);
        let mut pause = Pause::default();
        let mut has_spare_chunks = true;
        let mut looked_at = dense_at;
        while !self.leave.observe() {
            let turn = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| collector.turn(self)));
            let turn = turn.unwrap_or(CollectorTurn::Held);
            let now = clock::monotonic_ns();
            if turn != CollectorTurn::Idle {
                worked_at = now;
                has_spare_chunks = true;
            } else if has_spare_chunks && now >= worked_at + QUIET_NS {
                has_spare_chunks = false;
                drop_spare_chunks();
            }
            if watched_at.take_if(|at| *at <= now).is_some() {
                self.ensure_watcher();
            }
            if now >= looked_at + MAIN_LOOK_NS {
                looked_at = now;
                end_without_program();
            }
            match turn {
                CollectorTurn::Worked { .. } => {
                    dense_at = now;
                    pause.follow(turn);
                    continue;
                }
                CollectorTurn::Few { .. } | CollectorTurn::Idle if now < dense_at + SPIN_NS => {
                    std::hint::spin_loop();
                    continue;
                }
                CollectorTurn::Few { .. } | CollectorTurn::Idle | CollectorTurn::Held => pause.follow(turn),
            }
            if turn == CollectorTurn::Held || collector.is_waiting() {
                pause.shorten();
            }
            let nanoseconds = pause.take(now >= worked_at + QUIET_NS);
            let sleeping = &self.segment.header().sleeping;
            announce_sleep(sleeping);
            if self.requested_ticket() == collector.seen_ticket()
                && collector.durable_calls() == collector.seen_calls()
                && !self.leave.load(Ordering::Relaxed)
            {
                sleep_until_woken(sleeping, nanoseconds);
            }
            sleeping.store(0, Ordering::Relaxed);
        }
    }

    /// Works as [`Self::wait`], but for a condition that the native threads bring about. If they ended for a fork of
    /// another thread and nothing is queued, this call starts them again.
    pub(super) fn wait_for_threads(&'static self, deadline: Option<Instant>, done: impl Fn() -> bool) -> bool {
        self.wait(deadline, || {
            let is_done = done();
            if !is_done {
                self.ensure_threads();
            }
            is_done
        })
    }

    /// Asks the native threads to end, and waits for them until `deadline`. Afterwards every push takes its slow path,
    /// which starts the threads again if that is allowed.
    pub(super) fn stop_threads(&self, deadline: Instant) {
        self.ask_threads_to_leave();
        self.await_threads(deadline);
    }

    pub(super) fn ask_threads_to_leave(&self) {
        self.leave.publish(true);
        generation::advance();
        self.wake();
        self.watcher.wake();
        if let Some(spooler) = &self.spooler {
            spooler.bell.ring();
        }
        for outlet in self.outlets().into_iter().flatten() {
            outlet.ask_to_leave();
        }
    }

    /// Waits until the native threads that were asked to leave have ended. Returns whether they have.
    pub(super) fn await_threads(&self, deadline: Instant) -> bool {
        self.wait(Some(deadline), || {
            !self.collector_runs.is_running()
                && !self.has_writers()
                && self.idle_writer.dismiss()
                && !self.watcher.runs()
                && !self.spooler.as_ref().is_some_and(Spooler::runs)
        })
    }
}
