//! The compressing thread and its queue, which has one entry for each log file.
//!
//! A forked child starts with an empty queue: unfinished jobs belong to the parent.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use logspool_sys::fork_safe_lock::PerProcess;
use logspool_sys::sleep::sleep_interruptibly;
use logspool_sys::threads::spawn;

use super::job::{self, Job, JobProgress};
use super::live::while_nobody_rotates;
use super::task::Task;
use super::{forms, scan};

/// How long a fork waits for the thread to leave. The other threads have the same deadline.
const LEAVE_DEADLINE: Duration = Duration::from_millis(50);
/// `ioprio_set` for this thread: class best effort, the lowest of its eight levels. The class idle could wait for ever.
const LOWEST_IO: libc::c_long = 2 << 13 | 7;
const IO_OF_ONE: libc::c_long = 1;

/// All compression work for one log file.
struct CompressionWork {
    task: Task,
    /// Whether `.part` files and copies left by earlier processes were handled.
    is_swept: bool,
    /// Inodes of the backups whose compression was begun by this entry of the queue.
    tried: HashSet<u64>,
    job: Option<Job>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<CompressionWork>,
    runs: bool,
    /// Set before a fork: the thread must leave.
    leave: bool,
    /// Set at the end of the process: the thread must leave. A later request clears it.
    ends: bool,
}

static STATE: PerProcess<State> = PerProcess::new();

/// Requests compression of a file's backups. Returns at once.
pub fn request(task: Task) {
    let starts = STATE.with(|state| {
        state.ends = false;
        if !state.waiting.iter().any(|errand| errand.task.path == task.path && errand.job.is_none()) {
            state.waiting.push_back(CompressionWork { task, is_swept: false, tried: HashSet::new(), job: None });
        }
        state.must_start()
    });
    if starts {
        start();
    }
}

/// Call before a fork. Makes the thread leave, and waits at most 50 ms.
pub fn stop_before_fork() {
    STATE.with(|state| state.leave = true);
    await_stop();
}

/// Call at the end of the process. Makes the thread leave, so that it opens no sidecar later. The next process
/// compresses unfinished backups, unless a sink of this process writes again.
pub fn end() {
    STATE.with(|state| state.ends = true);
    await_stop();
}

fn await_stop() {
    let deadline = Instant::now() + LEAVE_DEADLINE;
    while STATE.with(|state| state.runs) && Instant::now() < deadline {
        sleep_interruptibly(Duration::from_micros(200));
    }
}

/// Call after a fork, in the parent: the thread continues.
pub fn resume_after_fork() {
    let starts = STATE.with(|state| {
        state.leave = false;
        state.must_start()
    });
    if starts {
        start();
    }
}

/// Call after a fork, in the child: closes the inherited descriptors of unfinished jobs.
pub fn close_inherited() {
    STATE.inspect_inherited(|state| {
        if state.runs {
            return;
        }
        // The state that holds the jobs is never used again in this child.
        state.waiting.iter().filter_map(|errand| errand.job.as_ref()).for_each(Job::close_inherited);
    });
}

impl State {
    fn must_stop(&self) -> bool {
        self.leave || self.ends
    }

    /// Whether the caller must start the thread. If so, the thread is already counted as running.
    fn must_start(&mut self) -> bool {
        let starts = !self.runs && !self.must_stop() && !self.waiting.is_empty();
        self.runs |= starts;
        starts
    }
}

fn start() {
    if !spawn("logspool-pack", run) {
        STATE.with(|state| state.runs = false);
    }
}

fn is_asked_to_leave() -> bool {
    STATE.with(|state| state.must_stop())
}

fn run() {
    take_lowest_priority();
    let mut errand: Option<CompressionWork> = None;
    loop {
        let next = STATE.with(|state| {
            if let Some(errand) = errand.take() {
                state.waiting.push_front(errand);
            }
            let next = if state.must_stop() { None } else { state.waiting.pop_front() };
            state.runs = next.is_some();
            next
        });
        let Some(mut next) = next else { return };
        if next.run() == JobProgress::Partly {
            errand = Some(next);
        }
    }
}

/// Takes the lowest priority for processor and disk.
fn take_lowest_priority() {
    // SAFETY: plain system calls; on Linux both affect only the calling thread.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 19);
        libc::syscall(libc::SYS_ioprio_set, IO_OF_ONE, 0, LOWEST_IO);
    }
}

impl CompressionWork {
    fn run(&mut self) -> JobProgress {
        loop {
            match self.advance() {
                Ok(Some(done)) => return done,
                Ok(None) => {}
                Err(error) => {
                    // The file that failed is not changed; the compression of the next one may succeed.
                    let was_at_one = self.job.take().is_some();
                    self.task.note(error);
                    if !was_at_one {
                        return JobProgress::Wholly;
                    }
                }
            }
        }
    }

    /// Does one step. `None`: another step follows.
    fn advance(&mut self) -> io::Result<Option<JobProgress>> {
        if let Some(job) = &mut self.job {
            if job.proceed(&self.task, &is_asked_to_leave)? == JobProgress::Partly {
                if is_asked_to_leave() {
                    return Ok(Some(JobProgress::Partly));
                }
                self.task.note(io::Error::from(io::ErrorKind::TimedOut));
            }
            self.job = None;
        }
        if !self.is_swept {
            if !self.sweep()? {
                // A writer hangs in the live file, or the thread must leave.
                return Ok(Some(if is_asked_to_leave() { JobProgress::Partly } else { JobProgress::Wholly }));
            }
            self.is_swept = true;
        }
        let found = scan::look(&self.task)?;
        let is_new = |backup: &scan::Backup| {
            !self.tried.contains(&backup.inode) && backup.path.to_str().is_some_and(|path| !forms::any_exists(path))
        };
        let Some(backup) = found.plain.into_iter().find(is_new) else { return Ok(Some(JobProgress::Wholly)) };
        self.tried.insert(backup.inode);
        match Job::begin(&self.task, &backup) {
            Ok(job) => self.job = job,
            Err(error) => self.task.note(error),
        }
        Ok(None)
    }

    /// Cleans up after dead processes: removes plain files with a compressed copy, and `.part` files without a backup.
    /// Returns false if the lock of the live file was not available.
    fn sweep(&self) -> io::Result<bool> {
        let has_both = |path: &Path| path.to_str().is_some_and(forms::any_exists);
        if scan::look(&self.task)?.plain.iter().any(|backup| has_both(&backup.path)) {
            let settled = while_nobody_rotates(&self.task, &is_asked_to_leave, || {
                scan::look(&self.task)?
                    .plain
                    .iter()
                    .filter_map(|backup| backup.path.to_str())
                    .try_for_each(forms::settle)
            })?;
            if settled.is_none() {
                return Ok(false);
            }
        }
        // Only now: a process may have begun to compress a plain file of which there was a copy already.
        let found = scan::look(&self.task)?;
        for (path, inode) in &found.begun {
            let is_to_come = found.plain.iter().any(|backup| backup.inode == *inode)
                && *path == scan::begun_path(&self.task, *inode);
            if !is_to_come {
                job::remove_dead(path)?;
            }
        }
        Ok(true)
    }
}
