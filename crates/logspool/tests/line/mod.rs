//! One pipeline per test process, and the steps that most behaviour tests need.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use logspool::pipeline::{self, Options, Push, Room, Waiter};
use logspool::sinks::{ConsoleOptions, FileOptions, SinkOptions};
use logspool::stats::{PerLevel, SinkCounts, Snapshot};
use logspool_record::definition::{Descriptor, RouteDefinition, Target};
use logspool_record::format::{FormatSpec, Style};
use logspool_record::{Head, tag};

/// A deadline that no healthy run comes near.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Gives the process its queue folder; the options of the first call apply.
pub fn begin(options: Options) {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        let folder = PathBuf::from(format!("/dev/shm/logspool-test-{}", std::process::id()));
        pipeline::configure(Options { queue_dir: Some(folder), ..options }).unwrap();
        extern "C" fn end() {
            assert_eq!(0, pipeline::drain(DEADLINE), "records were left behind at exit");
        }
        // SAFETY: `end` stays valid until exit.
        unsafe { libc::atexit(end) };
    });
}

/// Runs `work` in a forked child; a panic in it fails the test.
pub fn in_child(work: impl FnOnce()) {
    pipeline::before_fork();
    // SAFETY: no other thread of this program holds a lock that the child takes: only the test's thread exists, because
    // the native threads have stopped.
    let child = unsafe { libc::fork() };
    if child == 0 {
        pipeline::after_fork_in_child();
        let failed = catch_unwind(AssertUnwindSafe(work)).is_err();
        let left = pipeline::drain(DEADLINE);
        // SAFETY: no preconditions.
        unsafe { libc::_exit(i32::from(failed || left != 0)) };
    }
    pipeline::after_fork_in_parent();
    let mut status = -1;
    // SAFETY: `child` is a child of this process and `status` a local.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(0, status);
}

/// The counters of a sink now. Fails if a record is not counted.
pub fn counted(sink: u32) -> SinkCounts {
    counted_in(&pipeline::snapshot().unwrap(), sink)
}

/// The counters of a sink in a snapshot. Fails if a record is not counted.
pub fn counted_in(snapshot: &Snapshot, sink: u32) -> SinkCounts {
    let counts = snapshot.sinks.iter().find(|known| known.id == sink as usize).unwrap().counts.clone();
    for class in 0..counts.accepted.len() {
        let dropped: u64 = counts.dropped.iter().map(|reason| reason[class]).sum();
        let known = counts.written[class] + counts.queued[class] + counts.spooled[class] + dropped;
        assert_eq!(counts.accepted[class], known, "sink {sink}, class {class}: {counts:?}");
    }
    counts
}

/// The sum over all levels.
pub fn sum(counts: PerLevel) -> u64 {
    counts.iter().sum()
}

/// A sink that appends to `path`.
pub fn file_sink(path: &Path) -> u32 {
    let kind = FileOptions { path: path.to_str().unwrap().to_owned() };
    pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap()
}

/// A FIFO without a reader. The returned file keeps it open, and can read it.
pub fn make_fifo(path: &Path) -> std::fs::File {
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a valid C string.
    assert_eq!(0, unsafe { libc::mkfifo(name.as_ptr(), 0o600) });
    // Opened for both directions: without a reader, opening and writing then block instead of failing.
    std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap()
}

/// Capacity in bytes of the pipes that [`pipe`] makes.
pub const PIPE_BYTES: usize = 4096;

/// A small pipe: its reading end, which does not block, and its writing end.
pub fn pipe() -> (File, File) {
    let mut ends = [0; 2];
    // SAFETY: `ends` is a valid place for two descriptors, and nothing else owns them.
    unsafe {
        assert_eq!(0, libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC));
        assert_eq!(PIPE_BYTES as i32, libc::fcntl(ends[1], libc::F_SETPIPE_SZ, PIPE_BYTES));
        assert_eq!(0, libc::fcntl(ends[0], libc::F_SETFL, libc::O_NONBLOCK));
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    }
}

/// Everything up to the end of the pipe, which comes after the last writer has closed it.
pub fn read_to_end(reader: &mut File) -> Vec<u8> {
    let begun = Instant::now();
    let mut read = Vec::new();
    while reader.read_to_end(&mut read).is_err() {
        assert!(begun.elapsed() < DEADLINE / 3, "the pipe is still open");
        std::thread::yield_now();
    }
    read
}

/// A sink that writes through a duplicate of an open file's descriptor, as for a handler of Python.
pub fn duplicate_sink(path: &Path, file: &std::fs::File) -> u32 {
    let kind = FileOptions { path: path.to_str().unwrap().to_owned() };
    let descriptor = Descriptor::Duplicate(std::os::fd::AsRawFd::as_raw_fd(file));
    pipeline::open_sink(&kind.define(descriptor)).unwrap()
}

/// A sink that writes to a stream of the program without a name, as for a handler of Python.
pub fn lent_sink(writer: &std::fs::File) -> u32 {
    let number = std::os::fd::AsRawFd::as_raw_fd(writer);
    let (kind, descriptor) = (ConsoleOptions { descriptor: number }, Descriptor::Duplicate(number));
    pipeline::open_sink(&kind.define(descriptor)).unwrap()
}

/// Number of native threads of this process.
pub fn native_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default());
    // The kernel cuts such a name to 15 bytes. The test's own thread has the name of the test.
    names.filter(|name| name.starts_with("logspool")).count()
}

/// A route from logger `name` to one sink, with only the message on each line.
pub fn route_to(name: &str, sink: u32) -> u32 {
    route_to_format(name, sink, &FormatSpec::text(Style::Percent, "%(message)s"))
}

/// A route from logger `name` to one sink, in a given format.
pub fn route_to_format(name: &str, sink: u32, format: &FormatSpec) -> u32 {
    let format = pipeline::define_format(format).unwrap();
    let targets = vec![Target { sink, format, min_level: 0 }];
    pipeline::define_route(&RouteDefinition { logger: name.to_owned(), targets }).unwrap()
}

/// Logs one message. Returns whether it was accepted.
pub fn log(route: u32, level: u16, message: &str) -> bool {
    log_around(route, level, message, || {})
}

/// As [`log`]; runs `inside` after the room is reserved and before the record is published.
pub fn log_around(route: u32, level: u16, message: &str, inside: impl Fn()) -> bool {
    let head = Head { len: 0, site: 0, route, level, flags: 0, ticks: 0 };
    let mut waited = Duration::ZERO;
    loop {
        let pushed = pipeline::push(head, 5 + message.len(), |place| {
            inside();
            // SAFETY: `push` reserves five bytes and the bytes of the message.
            unsafe {
                place.write(tag::MESSAGE);
                place.add(1).cast::<u32>().write_unaligned(message.len() as u32);
                std::ptr::copy_nonoverlapping(message.as_ptr(), place.add(5), message.len());
            }
        });
        match pushed {
            Push::Accepted => return true,
            Push::MustWaitForSync => {
                pipeline::await_durable(level);
                return true;
            }
            Push::NoRoom => {}
        }
        if pipeline::make_room(level, 5 + message.len(), Waiter::Thread, &mut waited) != Room::Retry {
            return false;
        }
    }
}
