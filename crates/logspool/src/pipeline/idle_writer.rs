//! A writer thread whose sink was closed waits a moment for the next sink. Otherwise a program that opens a file for
//! each record would start and end a thread for each record, which takes longer than the write.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use logspool_sys::progress;

use crate::writer::Outlet;

/// The thread that waits for a sink, if any. A second thread without a sink ends at once.
#[derive(Debug, Default)]
pub(super) struct IdleWriter {
    state: Mutex<IdleState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct IdleState {
    is_waiting: bool,
    /// The next outlet of the waiting thread.
    next: Option<Arc<Outlet>>,
    /// Whether threads must end instead of waiting.
    is_dismissed: bool,
}

impl IdleWriter {
    fn lock(&self) -> MutexGuard<'_, IdleState> {
        // No step while the lock is held can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives an outlet to the waiting thread.
    ///
    /// # Errors
    ///
    /// Returns the outlet if no thread waits.
    pub(super) fn assign(&self, outlet: Arc<Outlet>) -> Result<(), Arc<Outlet>> {
        let mut state = self.lock();
        state.is_dismissed = false;
        if !state.is_waiting || state.next.is_some() {
            return Err(outlet);
        }
        state.next = Some(outlet);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for an outlet. `None` means that the thread must end.
    pub(super) fn wait(&self, longest: Duration) -> Option<Arc<Outlet>> {
        let mut state = self.lock();
        if state.is_waiting || state.is_dismissed {
            return None;
        }
        state.is_waiting = true;
        let has_to_wait = |state: &mut IdleState| state.next.is_none() && !state.is_dismissed;
        let waited = self.changed.wait_timeout_while(state, longest, has_to_wait);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_waiting = false;
        let next = state.next.take();
        drop(state);
        if next.is_none() {
            progress::note();
        }
        next
    }

    /// Ends the waiting thread. Other threads without a sink also end instead of waiting, until an outlet is assigned
    /// again. Returns whether no thread waits.
    pub(super) fn dismiss(&self) -> bool {
        let mut state = self.lock();
        state.is_dismissed = true;
        let is_waiting = state.is_waiting;
        drop(state);
        self.changed.notify_one();
        !is_waiting
    }

    /// Whether a thread waits.
    pub(super) fn is_waiting(&self) -> bool {
        self.lock().is_waiting
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use logspool_lanes::segment::Segment;
    use logspool_record::definition::Descriptor;

    use super::*;
    use crate::overflow::Budget;
    use crate::sinks::{NullOptions, SinkOptions};

    /// Far longer than any step of a test takes.
    const LONG: Duration = Duration::from_secs(20);

    fn outlet() -> Arc<Outlet> {
        let definition = NullOptions {}.define(Descriptor::Open);
        let sink = crate::sinks::open(&definition).unwrap();
        let segment = Arc::new(Segment::in_memory(None).unwrap());
        Arc::new(Outlet::new(1, definition, None, sink, segment, Arc::new(Budget::new(0))))
    }

    fn waiting_thread(idle: &Arc<IdleWriter>) -> thread::JoinHandle<Option<Arc<Outlet>>> {
        let thread = thread::spawn({
            let idle = idle.clone();
            move || idle.wait(LONG)
        });
        let begun = Instant::now();
        while !idle.is_waiting() {
            assert!(begun.elapsed() < LONG, "it does not wait");
            thread::yield_now();
        }
        thread
    }

    #[test]
    fn an_outlet_goes_to_the_thread_that_waits_and_to_no_other() {
        let idle = Arc::new(IdleWriter::default());
        assert!(idle.assign(outlet()).is_err(), "nobody waits");
        let waiting = waiting_thread(&idle);
        assert!(idle.wait(LONG).is_none(), "one waits already");

        let given = outlet();
        assert!(idle.assign(given.clone()).is_ok());
        assert!(waiting.join().unwrap().is_some_and(|taken| Arc::ptr_eq(&taken, &given)));
        assert!(!idle.is_waiting() && idle.assign(given).is_err());
    }

    #[test]
    fn a_dismissed_thread_ends_and_no_other_waits_before_the_next_outlet() {
        let idle = Arc::new(IdleWriter::default());
        let waiting = waiting_thread(&idle);
        idle.dismiss();

        assert!(waiting.join().unwrap().is_none());
        assert!(idle.dismiss() && idle.wait(LONG).is_none());
        assert!(idle.assign(outlet()).is_err());
        waiting_thread(&idle);
        idle.dismiss();
    }

    #[test]
    fn a_thread_that_gets_no_outlet_in_time_ends() {
        let idle = IdleWriter::default();
        assert!(idle.wait(Duration::from_millis(1)).is_none());
        assert!(!idle.is_waiting());
    }
}
