//! The thread that runs SQLite for all sinks of the process.
//!
//! The program may have a second copy of SQLite, as Python's module `sqlite3` is one, and use the same database. Record
//! locks of POSIX belong to a table of descriptors, and each close of a file drops all of the table's locks on it. So
//! with one table, a connection that the program closes would drop the locks of this sink. The other copy would then
//! see no user of the database and remove its log, with the records in it. After [`keep_apart`] this thread has a table
//! of its own (`own_descriptors.rs`), so both copies see each other as two processes.
//!
//! A program in Rust has one copy of SQLite, which it shares with this sink. A copy keeps one state per file, with
//! descriptors in it, so all its connections must have the same table. For the same reason all sinks share this thread.
//!
//! A fork must not copy that state: a child has neither the table nor the locks. So a sink gives up its seat, which
//! closes the database, when its writer leaves for a fork. A child whose parent could not do so in time never uses
//! SQLite; its records stay queued, and another process delivers them.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use logspool_sys::fork_safe_lock::PerProcess;
use logspool_sys::{generation, own_descriptors, threads};

use super::database::Database;

/// The open databases, by the number of their seat.
type Databases = HashMap<u64, Database>;
type Job = Box<dyn FnOnce(&mut Databases) + Send>;

/// The thread, while somebody has a seat.
#[derive(Default)]
struct Running {
    jobs: Option<Sender<Job>>,
    seats: u64,
}

static RUNNING: PerProcess<Running> = PerProcess::new();

/// Atomics belong in `queue` and `stats`; those of this file are an exception. A forked child inherits the number of seats, which
/// [`RUNNING`] begins anew, so the difference tells how many the parent had at the fork.
static SEATS: AtomicU64 = AtomicU64::new(0);
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Whether this library has a copy of SQLite of its own.
static IS_APART: AtomicBool = AtomicBool::new(false);

/// Call it in a library whose copy of SQLite no other code of the process uses, before the first sink.
pub fn keep_apart() {
    IS_APART.store(true, Ordering::Relaxed);
}

/// Whether this environment refuses what [`keep_apart`] needs.
pub fn is_refused() -> bool {
    IS_APART.load(Ordering::Relaxed) && !own_descriptors::are_possible()
}

/// The right to use SQLite, with room for one open database. Dropping it closes the database.
#[derive(Debug)]
pub struct DatabaseThreadHandle {
    number: u64,
    /// The process that has the seat.
    process: u64,
    jobs: Option<Sender<Job>>,
}

impl DatabaseThreadHandle {
    /// Takes a seat, and starts the thread if it is the first one.
    ///
    /// # Errors
    ///
    /// The thread cannot be started or gets no table, or a fork copied open databases.
    pub fn take() -> io::Result<Self> {
        let jobs = RUNNING.with(|running| {
            // Relaxed: other threads change both numbers under the same lock.
            if SEATS.load(Ordering::Relaxed) != running.seats {
                return Err(io::Error::other(
                    "the process was forked while the database was in use (fix: os.fork(), or log after exec; `recover` \
                     stores the records)",
                ));
            }
            let jobs = match &running.jobs {
                Some(jobs) => jobs.clone(),
                None => running.jobs.insert(start()?).clone(),
            };
            running.seats += 1;
            SEATS.fetch_add(1, Ordering::Relaxed);
            Ok(jobs)
        })?;
        let number = LAST_NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Self { number, process: generation::process(), jobs: Some(jobs) })
    }

    /// Whether this process took the seat. Otherwise a fork copied it.
    pub fn is_own(&self) -> bool {
        self.process == generation::process()
    }

    /// Runs `work` on the thread, with the database of this seat, and waits for the result.
    ///
    /// # Errors
    ///
    /// `work` has panicked. The database is closed.
    pub fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Option<Database>) -> R + Send + 'static,
    ) -> io::Result<R> {
        let (sender, answer) = mpsc::channel();
        let number = self.number;
        let job: Job = Box::new(move |databases| {
            let mut database = databases.remove(&number);
            let result = work(&mut database);
            if let Some(database) = database {
                databases.insert(number, database);
            }
            let _ = sender.send(result);
        });
        let is_sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        let result = if is_sent { answer.recv().ok() } else { None };
        result.ok_or_else(|| io::Error::other("the thread of SQLite failed: a bug"))
    }
}

impl Drop for DatabaseThreadHandle {
    fn drop(&mut self) {
        if !self.is_own() {
            // A thread of the parent may have held a lock of the channel.
            std::mem::forget(self.jobs.take());
            return;
        }
        // The database is closed before the seat is free: the next thread may have another table.
        let _ = self.run(|database| *database = None);
        RUNNING.with(|running| {
            running.seats -= 1;
            SEATS.fetch_sub(1, Ordering::Relaxed);
            if running.seats == 0 {
                // The thread ends with the last sender.
                running.jobs = None;
            }
        });
    }
}

/// Starts the thread.
fn start() -> io::Result<Sender<Job>> {
    let (jobs, queue) = mpsc::channel();
    let (sender, begun) = mpsc::channel();
    let is_started = threads::spawn("logspool-sqlite", move || {
        let has_table = if IS_APART.load(Ordering::Relaxed) { own_descriptors::begin() } else { Ok(()) };
        let is_ready = has_table.is_ok();
        let _ = sender.send(has_table);
        if is_ready {
            serve(queue);
        }
    });
    if !is_started {
        return Err(io::Error::other("no thread could be started for SQLite"));
    }
    begun.recv().map_err(io::Error::other)??;
    Ok(jobs)
}

/// Body of the thread.
fn serve(queue: Receiver<Job>) {
    let mut databases = Databases::new();
    for job in queue {
        let _ = catch_unwind(AssertUnwindSafe(|| job(&mut databases)));
    }
}
