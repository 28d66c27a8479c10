//! The query threads: a few threads with low priority. If a query takes long, the priority of its thread is lowered
//! further.
//!
//! Linux lets a thread lower its priority but not raise it again. So the thread of a long query ends after the turn,
//! and a new thread replaces it. Idle threads also end.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, setpriority_process};
use tokio::runtime::Handle;

use super::turns::{Id, QueryPhase, SchedulerSizes, TurnQueue};
use crate::cancel::CancelToken;
use crate::metrics::{Metrics, QueryCounts};
use crate::origin::Origin;
use crate::share::Refusal;

/// Niceness of a new query thread. If the intake uses the same processor fully, the thread gets a quarter of it.
///
/// Chosen: a smaller value (0) would slow down the intake. A larger one (10) would make a query that an index can
/// answer at once take several times as long on a busy machine.
const NICE: i32 = 5;

/// Niceness of the thread after its query has run for [`QUICK_TIME`]. The thread then gets a thirtieth of a processor.
const LONG_QUERY_NICE: i32 = 15;

/// How long a query may run with the first niceness. Chosen: it is longer than a query that uses an index, and shorter
/// than a scan.
const QUICK_TIME: Duration = Duration::from_millis(100);

/// How long an idle thread waits for a query before it ends. Chosen: an open page sends queries more often than this.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// A function that does one turn of a query.
pub type Job = Box<dyn FnMut(&CancelToken) -> TurnResult + Send>;

/// The result of a turn of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnResult {
    /// The query pauses until its reader has made room. Then the job is called again: see [`QueryPlace::resume`].
    Paused,
    /// The answer is complete, or it failed.
    Complete,
}

/// Takes queries and runs them on its threads; see the module documentation.
#[derive(Debug, Clone)]
pub struct QueryScheduler(Arc<QueryThreads>);

struct QueryThreads {
    state: Mutex<ThreadsState>,
    changed: Condvar,
    sizes: SchedulerSizes,
    metrics: Arc<Metrics>,
}

impl fmt::Debug for QueryThreads {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("QueryThreads")
    }
}

struct ThreadsState {
    turns: TurnQueue<Origin, QueuedJob>,
    threads: usize,
    /// Number of threads that wait for a query.
    idle: usize,
}

/// The job of a query, which waits for its turn.
struct QueuedJob {
    job: Job,
    cancel: CancelToken,
}

/// The place of a query. Dropping it cancels the query and frees the place.
pub struct QueryPlace {
    shared: Arc<QueryThreads>,
    id: Id,
    cancel: CancelToken,
}

impl QueryScheduler {
    /// Creates the scheduler. Threads are started when there are queries.
    pub fn new(sizes: SchedulerSizes, metrics: Arc<Metrics>) -> Self {
        let state = ThreadsState { turns: TurnQueue::new(sizes), threads: 0, idle: 0 };
        Self(Arc::new(QueryThreads { state: Mutex::new(state), changed: Condvar::new(), sizes, metrics }))
    }

    /// Queues a query of a peer. Must be called on a thread of a Tokio runtime.
    ///
    /// # Errors
    ///
    /// There is no place for the query. The refusal has the reason.
    pub fn submit(&self, peer: Origin, job: Job) -> Result<QueryPlace, Refusal> {
        let cancel = CancelToken::default();
        let work = QueuedJob { job, cancel: cancel.clone() };
        let id = self.0.change(|state| state.turns.add(peer, work)).inspect_err(|refusal| {
            self.0.metrics.refuse_query(refusal.reason());
        })?;
        Ok(QueryPlace { shared: self.0.clone(), id, cancel })
    }

    /// The number of queries in each state.
    pub fn counts(&self) -> QueryCounts {
        self.0.lock().turns.counts()
    }
}

impl QueryPlace {
    /// Resumes a paused query after its reader has made room.
    pub fn resume(&self) {
        self.shared.change(|state| state.turns.resume(self.id));
    }

    /// The phase of the query.
    pub fn phase(&self) -> QueryPhase {
        self.shared.lock().turns.phase(self.id).unwrap_or(QueryPhase::Complete)
    }
}

impl fmt::Debug for QueryPlace {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "QueryPlace({})", self.id)
    }
}

impl Drop for QueryPlace {
    fn drop(&mut self) {
        self.cancel.cancel();
        let Some((work, has_begun)) = self.shared.change(|state| state.turns.release(self.id)) else { return };
        if has_begun {
            // Drop the job on a new thread. Closing its resources may wait for a disk or a server, and this thread runs
            // async code.
            let closing = thread::Builder::new().name("logspool-query".to_owned()).spawn(move || drop(work));
            if let Err(error) = closing {
                tracing::debug!("no thread to end a query: {error}");
            }
        }
    }
}

impl QueryThreads {
    fn lock(&self) -> MutexGuard<'_, ThreadsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and starts the thread that is needed. Must be called on a thread of a Tokio runtime.
    fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut ThreadsState) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        self.start_threads(&mut state);
        result
    }

    fn start_threads(self: &Arc<Self>, state: &mut ThreadsState) {
        self.metrics.count_queries(state.turns.counts());
        if !state.turns.has_next() {
            return;
        }
        // If this thread has no runtime, the service has ended.
        if state.idle == 0
            && state.threads < self.sizes.threads
            && let Ok(runtime) = Handle::try_current()
        {
            let shared = self.clone();
            let started = thread::Builder::new()
                .name("logspool-query".to_owned())
                .spawn(move || Worker { shared, runtime, thread: rustix::thread::gettid() }.run());
            match started {
                Ok(_) => state.threads += 1,
                // The existing query threads continue without the new one.
                Err(error) => tracing::warn!("cannot start a query thread: {error}"),
            }
        }
        self.changed.notify_all();
    }
}

/// A query thread.
struct Worker {
    shared: Arc<QueryThreads>,
    runtime: Handle,
    thread: Pid,
}

impl Worker {
    fn run(self) {
        // On Linux nice(2) affects only the calling thread.
        let nice = rustix::process::nice(NICE).unwrap_or_else(|error| {
            tracing::debug!("queries run at normal priority: {error}");
            NICE
        });
        while let Some((id, work)) = self.next() {
            let is_late = self.turn(id, work, nice + LONG_QUERY_NICE - NICE);
            if is_late {
                break;
            }
        }
        let shared = self.shared.clone();
        shared.lock().threads -= 1;
        self.start_another();
    }

    /// Starts another query thread if there is work for it. A thread of the runtime starts it, so that it inherits the
    /// normal priority.
    fn start_another(&self) {
        let shared = self.shared.clone();
        self.runtime.spawn(async move { shared.change(|_| ()) });
    }

    /// Waits for a query. `None`: no query could run within [`IDLE_TIME`].
    fn next(&self) -> Option<(Id, QueuedJob)> {
        let until = Instant::now() + IDLE_TIME;
        let mut state = self.shared.lock();
        loop {
            if let Some(next) = state.turns.next_runnable() {
                self.shared.metrics.count_queries(state.turns.counts());
                if state.turns.has_next() && state.threads < self.shared.sizes.threads {
                    self.start_another();
                }
                return Some(next);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state.idle += 1;
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
        }
    }

    /// Runs a turn of a query. Returns true if this thread's priority was lowered because the turn took long.
    fn turn(&self, id: Id, mut work: QueuedJob, later_nice: i32) -> bool {
        let late = Arc::new(Mutex::new(PriorityState::Normal));
        let lowering = self.runtime.spawn(lower_priority(self.thread, later_nice, late.clone()));
        let turn = catch_unwind(AssertUnwindSafe(|| (work.job)(&work.cancel)));
        lowering.abort();
        let was =
            std::mem::replace(&mut *late.lock().unwrap_or_else(PoisonError::into_inner), PriorityState::TurnEnded);
        let turn = turn.unwrap_or_else(|panic| {
            tracing::error!("a query failed: {}", panic_message(&*panic));
            TurnResult::Complete
        });
        // Drop the job without holding the lock, because closing its connections may block.
        let mut work = Some(work);
        if turn == TurnResult::Complete {
            work = None;
        }
        let mut state = self.shared.lock();
        let unwanted = match work {
            Some(work) => state.turns.pause(id, work),
            None => {
                state.turns.complete(id);
                None
            }
        };
        self.shared.metrics.count_queries(state.turns.counts());
        // Queries that waited for the end of this turn may run now.
        self.shared.changed.notify_all();
        drop(state);
        drop(unwanted);
        was == PriorityState::Lowered
    }
}

/// Whether the priority of a thread was lowered for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PriorityState {
    Normal,
    Lowered,
    /// The turn has ended, so the priority must not be lowered any more.
    TurnEnded,
}

/// Lowers the priority of a thread if its turn takes longer than [`QUICK_TIME`].
async fn lower_priority(thread: Pid, nice: i32, late: Arc<Mutex<PriorityState>>) {
    tokio::time::sleep(QUICK_TIME).await;
    let mut late = late.lock().unwrap_or_else(PoisonError::into_inner);
    if *late == PriorityState::Normal {
        *late = PriorityState::Lowered;
        if let Err(error) = setpriority_process(Some(thread), nice) {
            tracing::debug!("a long query runs at the priority of a short one: {error}");
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const SIZES: SchedulerSizes = SchedulerSizes { threads: 2, places: 8 };

    fn questions() -> QueryScheduler {
        QueryScheduler::new(SIZES, Arc::default())
    }

    fn until(what: &str, is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(30), "{what}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn peer(last: u8) -> Origin {
        Origin::V4([192, 0, 2, last].into())
    }

    /// A job like a scan, which runs until it is cancelled.
    fn scan() -> Job {
        Box::new(|cancel| {
            while !cancel.is_cancelled() {
                thread::sleep(Duration::from_millis(1));
            }
            TurnResult::Complete
        })
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_scan_of_one_peer_does_not_block_the_answer_of_another() {
        let questions = questions();
        let scans: Vec<_> = std::iter::from_fn(|| questions.submit(peer(1), scan()).ok()).collect();
        assert_eq!(3, scans.len());
        let (told, hear) = mpsc::channel();
        let asked = questions.submit(
            peer(2),
            Box::new(move |_| {
                told.send(()).unwrap();
                TurnResult::Complete
            }),
        );

        hear.recv_timeout(Duration::from_secs(30)).unwrap();
        until("all but one scan wait", || questions.counts() == QueryCounts { waiting: 2, running: 1, unread: 1 });
        drop((asked, scans));
        until("nothing is left", || questions.counts() == QueryCounts::default());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_query_resumes_when_there_is_room_and_ends_when_its_place_is_dropped() {
        let questions = questions();
        let (turned, turns) = mpsc::channel();
        let (gone, is_gone) = mpsc::channel::<()>();
        let place = questions
            .submit(
                peer(0),
                Box::new(move |_| {
                    let _held = &gone;
                    turned.send(thread::current().id()).unwrap();
                    TurnResult::Paused
                }),
            )
            .unwrap();
        for _ in 0..3 {
            turns.recv_timeout(Duration::from_secs(30)).unwrap();
            until("it pauses", || place.phase() == QueryPhase::Paused);
            place.resume();
        }
        drop(place);

        // Dropping the place also drops its job.
        assert_eq!(Err(mpsc::RecvTimeoutError::Disconnected), is_gone.recv_timeout(Duration::from_secs(30)));
        until("nothing is left", || questions.counts() == QueryCounts::default());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_thread_of_a_long_query_ends_with_it_and_a_panic_ends_no_thread() {
        let questions = questions();
        let (turned, turns) = mpsc::channel();
        let mut places = Vec::new();
        let nice = || rustix::process::getpriority_process(None).unwrap();
        for is_long in [true, false] {
            let turned = turned.clone();
            let job: Job = Box::new(move |_| {
                let first = nice();
                until("its priority is lower", || !is_long || nice() > first);
                turned.send(thread::current().id()).unwrap();
                panic!("on purpose");
            });
            places.push(questions.submit(peer(0), job).unwrap());
            until("it is done", || places.last().is_some_and(|place| place.phase() == QueryPhase::Complete));
        }
        let turns: Vec<_> = (0..2).map(|_| turns.recv_timeout(Duration::from_secs(30)).unwrap()).collect();

        assert_ne!(turns[0], turns[1]);
        until("its thread has ended", || questions.0.lock().threads <= 1);
    }
}
