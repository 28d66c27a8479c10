//! Processes that log and are killed, and the checks of their files afterwards.
//!
//! A child is this same test binary, which runs its test `child_process`. Its standard input is the writing end of a
//! pipe, where it reports each accepted record. So the pipe holds exactly the records that must be delivered.

// Each test binary uses a part of this.
pub mod exact;
pub mod seam;

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use crate::line::{DEADLINE, file_sink, log, route_to};
use logspool::pipeline::{self, Options};
use logspool::recover;
use logspool::sinks::{Compression, ConsoleOptions, RotatingFileOptions, RotationRules, ServiceOptions, SinkOptions};
use logspool_record::definition::{Descriptor, RouteDefinition, Target};
use logspool_record::format::{Extras, FormatSpec, Style};

/// Number of threads of a logging child.
pub const THREADS: u32 = 3;

/// Number of threads of a child with [`Task::LogFromMany`].
const MANY_THREADS: u32 = 400;

/// The work of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Logs short lines for ever.
    Log,
    /// Logs short lines for ever, from more threads than there are lanes.
    LogFromMany,
    /// Logs lines, some of them far larger than a lane.
    LogLarge,
    /// Logs short lines for ever to a file that several processes rotate.
    LogRotating,
    /// The same with backups compressed to `.gz`.
    LogRotatingGzip,
    /// The same with backups compressed to `.zst`.
    LogRotatingZstd,
    /// Logs short lines to the target and to a second file next to it.
    LogTwice,
    /// Logs a few lines, waits for overflow files, logs a few more, some of them large.
    LogLittle,
    /// Logs short lines without end, with a spool and little room on tmpfs.
    LogSpooled,
    /// Logs short lines for ever to the service whose address is the target.
    LogToService,
    /// The same without room for records that the service does not take: records are refused.
    LogToServiceTight,
    /// The same with little room, and also to a file: records are dropped, so that the file gets its own messages about
    /// them.
    LogToServiceBeside,
    /// Logs ten lines to a full pipe.
    LogToConsole,
    /// Logs a record of [`OVERSIZED`] bytes and a short one, without room for records that the target does not take.
    /// Reports the ids of three formats: the format of both records, and two that show the message thousands of times.
    LogOversized,
    /// Logs a thousand lines, reports them, and drains when the test asks for it.
    LogAndWait,
    /// Recovers the queue folder and reports the number of delivered records.
    Recover,
    /// Recovers the spools with room for [`SPOOL_ROOM`] bytes in the target, and reports as `Recover`.
    RecoverSpools,
    /// As `Recover`, with little memory.
    RecoverInLittle,
    /// Reports the number of orphans that it sees.
    Scan,
}

/// Bytes of the long record of [`Task::LogOversized`].
pub const OVERSIZED: usize = 16 * 1024 * 1024;

/// Bytes of memory of a child with [`Task::RecoverInLittle`].
const LITTLE: u64 = 2 << 30;

/// Bytes that a child with [`Task::RecoverSpools`] can append.
pub const SPOOL_ROOM: u64 = 256 * 1024;

const TASKS: [Task; 19] = [
    Task::Log,
    Task::LogFromMany,
    Task::LogLarge,
    Task::LogRotating,
    Task::LogRotatingGzip,
    Task::LogRotatingZstd,
    Task::LogTwice,
    Task::LogLittle,
    Task::LogSpooled,
    Task::LogToService,
    Task::LogToServiceTight,
    Task::LogToServiceBeside,
    Task::LogToConsole,
    Task::LogOversized,
    Task::LogAndWait,
    Task::Recover,
    Task::RecoverSpools,
    Task::RecoverInLittle,
    Task::Scan,
];

/// A queue folder on tmpfs and the path of a target file in a folder of its own.
pub struct Scene {
    pub queue: tempfile::TempDir,
    pub files: tempfile::TempDir,
    pub target: PathBuf,
    /// Full name of the test that children run.
    child: String,
}

impl Scene {
    /// A scene whose children run the test `child`, which calls [`child_main`].
    pub fn new(child: String) -> Self {
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let mut builder = tempfile::Builder::new();
        let queue = builder.prefix("logspool-orphan-").permissions(private).tempdir_in("/dev/shm").unwrap();
        let files = tempfile::tempdir().unwrap();
        let target = files.path().join("app.log");
        Self { queue, files, target, child }
    }

    /// A scene whose target is a service.
    pub fn with_service(child: String) -> Self {
        let mut scene = Self::new(child);
        scene.target = format!("unix://{}", scene.files.path().join("service").display()).into();
        scene
    }

    pub fn second_target(&self) -> PathBuf {
        second_target(&self.target)
    }

    /// File names in the queue folder.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.queue.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Waits until an overflow file contains a record. The file is made before its first record.
    pub fn await_overflow(&self) {
        await_that("the records move to overflow files", || {
            let entries = std::fs::read_dir(self.queue.path()).unwrap().map(Result::unwrap);
            entries
                .filter(|entry| is_overflow(&entry.file_name()))
                .any(|entry| entry.metadata().is_ok_and(|status| status.len() > 0))
        });
    }

    /// The folder of the children's spools.
    pub fn spool_folder(&self) -> PathBuf {
        spool_folder(&self.target)
    }

    /// Waits until a spool has begun: it may have no record yet.
    pub fn await_spool(&self) {
        let is_segment = |path: &Path| path.extension().is_some_and(|extension| extension == "seg");
        await_that("the records move to a spool", || walk(&self.spool_folder()).iter().any(|path| is_segment(path)));
    }

    /// Waits until the segments of a spool hold so many bytes. Bytes that are not written yet are zeros.
    pub fn await_spooled(&self, bytes: usize) {
        let written = |path: PathBuf| std::fs::read(path).unwrap_or_default().iter().filter(|byte| **byte != 0).count();
        await_that("records are in the spool", || {
            let files = walk(&self.spool_folder());
            let segments =
                files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "seg"));
            segments.map(written).sum::<usize>() >= bytes
        });
    }

    /// Recovers all records whose target is the target file.
    pub fn recover(&self) -> recover::Report {
        recover::recover(self.queue.path(), |path| path == self.target, recover::RecoverOptions::default()).unwrap()
    }

    pub fn scan(&self) -> Vec<recover::Orphan> {
        recover::scan(self.queue.path()).unwrap()
    }

    pub fn spawn(&self, task: Task) -> Witness {
        self.spawn_as(task, 0, None)
    }

    /// Starts a child whose threads have the numbers from `who` times [`THREADS`] on, and which obeys `order`.
    pub fn spawn_as(&self, task: Task, who: u32, order: Option<seam::Order>) -> Witness {
        Witness::spawn(&self.child, task, self.queue.path(), &self.target, who, order)
    }

    /// Makes the target a FIFO without a reader; the returned file keeps it open.
    pub fn freeze(&self) -> File {
        freeze(&self.target)
    }

    /// As `freeze`, with a full FIFO: not a byte can be written to the target.
    pub fn freeze_full(&self) -> File {
        freeze_full(&self.target)
    }

    /// Returns the contents of the FIFO and removes it, so that a regular file can be made.
    pub fn thaw(&self, mut fifo: File) -> String {
        let mut bytes = Vec::new();
        // Ends with EAGAIN, since the FIFO is also open for writing here.
        let _ = fifo.read_to_end(&mut bytes);
        std::fs::remove_file(&self.target).unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

fn freeze(path: &Path) -> File {
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a valid C string.
    assert_eq!(0, unsafe { libc::mkfifo(name.as_ptr(), 0o600) });
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path).unwrap()
}

/// As [`Scene::freeze_full`], for any path.
pub fn freeze_full(path: &Path) -> File {
    let mut fifo = freeze(path);
    while fifo.write(&[b'.'; 4096]).is_ok() {}
    fifo
}

fn spool_folder(target: &Path) -> PathBuf {
    target.with_file_name("spool")
}

/// All files in a folder and its subfolders.
pub fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

fn second_target(target: &Path) -> PathBuf {
    target.with_extension("second")
}

/// A child and its reports.
pub struct Witness {
    process: Process,
    reports: JoinHandle<HashMap<u32, u32>>,
    first: std::sync::mpsc::Receiver<()>,
}

/// The child's process, which is killed when this is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Witness {
    fn spawn(child: &str, task: Task, queue: &Path, target: &Path, who: u32, order: Option<seam::Order>) -> Self {
        let mut ends = [0; 2];
        // SAFETY: a valid place for two descriptors, and nothing else owns them.
        let (mut reader, writer) = unsafe {
            assert_eq!(0, libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC));
            (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
        };
        let command = Command::new(std::env::current_exe().unwrap())
            .args([child, "--exact", "--nocapture"])
            .env("LOGSPOOL_CHILD", format!("{task:?}"))
            .env("LOGSPOOL_CHILD_QUEUE", queue)
            .env("LOGSPOOL_CHILD_TARGET", target)
            .env("LOGSPOOL_CHILD_WHO", who.to_string())
            .env("LOGSPOOL_CHILD_ORDER", order.map_or(String::new(), |order| order.to_string()))
            .stdin(Stdio::from(writer))
            .stdout(Stdio::null())
            .spawn();
        let process = Process(command.unwrap());
        let (began, first) = std::sync::mpsc::channel();
        let reports = std::thread::spawn(move || {
            let mut newest = HashMap::new();
            let mut report = [0; 8];
            while reader.read_exact(&mut report).is_ok() {
                let half = |at: usize| u32::from_ne_bytes(report[at..at + 4].try_into().unwrap());
                newest.insert(half(0), half(4));
                let _ = began.send(());
            }
            newest
        });
        Self { process, reports, first }
    }

    /// The child's process id.
    pub fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// Waits for the first report.
    pub fn await_report(&self) {
        self.first.recv_timeout(DEADLINE).expect("the child reports something");
    }

    /// Kills the child. Returns the newest accepted record of each thread.
    pub fn kill(mut self) -> HashMap<u32, u32> {
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
        self.reports.join().unwrap()
    }

    /// Waits until the child has died, by its order or another cause. Returns its reports, and whether it ended without
    /// an error.
    pub fn await_end(mut self) -> (HashMap<u32, u32>, bool) {
        let deadline = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = self.process.0.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the child comes to its end");
            std::thread::sleep(Duration::from_millis(1));
        };
        (self.reports.join().unwrap(), status.success())
    }

    /// Waits until the child ends by itself. Returns its reports.
    pub fn end(mut self) -> HashMap<u32, u32> {
        assert!(self.process.0.wait().unwrap().success());
        self.reports.join().unwrap()
    }
}

fn report(thread: u32, index: u32) {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&thread.to_ne_bytes());
    bytes[4..].copy_from_slice(&index.to_ne_bytes());
    // SAFETY: pointer and length belong to one array. A pipe takes eight bytes as a whole.
    if unsafe { libc::write(0, bytes.as_ptr().cast(), bytes.len()) } != 8 {
        // The reader is gone, because the test failed. This process must not continue.
        std::process::abort();
    }
}

/// The text of one record.
pub fn text(task: Task, thread: u32, index: u32) -> String {
    let large = task == Task::LogLarge && index % 50 == 7 || task == Task::LogLittle && index % 50 == 25;
    let padding = if large { 70_000 + (index as usize % 7) * 30_000 } else { 10 + index as usize % 40 };
    format!("{thread} {index} {}", "x".repeat(padding))
}

/// The body of the test `child_process`; does nothing in the test run itself.
pub fn child_main() {
    let Ok(name) = std::env::var("LOGSPOOL_CHILD") else { return };
    let task = *TASKS.iter().find(|task| format!("{task:?}") == name).expect("a task");
    let path = |name: &str| PathBuf::from(std::env::var(name).unwrap());
    let (queue, target) = (path("LOGSPOOL_CHILD_QUEUE"), path("LOGSPOOL_CHILD_TARGET"));
    let first_thread = THREADS * std::env::var("LOGSPOOL_CHILD_WHO").unwrap().parse::<u32>().unwrap();
    seam::obey(&std::env::var("LOGSPOOL_CHILD_ORDER").unwrap());
    match task {
        Task::Recover | Task::RecoverInLittle => {
            if task == Task::RecoverInLittle {
                limit(libc::RLIMIT_AS, LITTLE);
            }
            let done = recover::recover(&queue, |path| path == target, recover::RecoverOptions::default()).unwrap();
            return report(0, done.records() as u32);
        }
        Task::RecoverSpools => {
            // SAFETY: a plain system call. With the signal ignored, a write beyond the limit fails as on a full disk.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
            limit(libc::RLIMIT_FSIZE, std::fs::metadata(&target).unwrap().len() + SPOOL_ROOM);
            let done = recover::recover_spools(&spool_folder(&target), None, |path| path == target).unwrap();
            return report(0, done.records() as u32);
        }
        Task::Scan => return report(0, recover::scan(&queue).unwrap().len() as u32),
        _ => {}
    }
    // The segment of `LogLittle` is small, so that thousands of copies are cheap.
    let queue_total_bytes = (task == Task::LogLittle).then_some(1024 * 1024);
    let overflow_bytes = match task {
        Task::LogToServiceTight | Task::LogOversized => Some(0),
        Task::LogToServiceBeside => Some(256 * 1024),
        Task::LogSpooled => Some(1024 * 1024),
        _ => None,
    };
    let mut options =
        Options { queue_dir: Some(queue.clone()), queue_total_bytes, overflow_bytes, ..Options::default() };
    if task == Task::LogSpooled {
        (options.spool_dir, options.spool_bytes) = (Some(spool_folder(&target)), 32 * 1024 * 1024);
    }
    pipeline::configure(options).unwrap();
    match task {
        Task::LogLittle => {
            let route = route_to("little", file_sink(&target));
            let some =
                |range: std::ops::Range<u32>| range.for_each(|index| assert!(log(route, 20, &text(task, 0, index))));
            some(0..300);
            let spilled = || std::fs::read_dir(&queue).unwrap().flatten().any(|entry| is_overflow(&entry.file_name()));
            await_that("the records move to overflow files", spilled);
            some(300..400);
            report(0, 399);
            std::thread::park();
        }
        Task::LogToConsole => log_to_full_pipe(),
        Task::LogOversized => log_oversized(&target),
        Task::LogAndWait => {
            let route = route_to("waits", file_sink(&target));
            (0..1000).for_each(|index| assert!(log(route, 20, &text(task, first_thread, index))));
            report(first_thread, 999);
            await_word(&target);
            assert_eq!(0, pipeline::drain(DEADLINE));
        }
        _ => {
            let route = match task {
                Task::LogToService | Task::LogToServiceTight => route_to_service(&target, None),
                Task::LogToServiceBeside => {
                    let beside = target.to_str().and_then(|address| address.strip_prefix("unix://")).unwrap();
                    route_to_service(&target, Some(&second_target(Path::new(beside))))
                }
                Task::LogRotating => route_to("killed", rotating_sink(&target, None)),
                Task::LogRotatingGzip => route_to("killed", rotating_sink(&target, Some(Compression::Gzip))),
                Task::LogRotatingZstd => route_to("killed", rotating_sink(&target, Some(Compression::Zstd))),
                _ => route_to("killed", file_sink(&target)),
            };
            let second = (task == Task::LogTwice).then(|| route_to("second", file_sink(&second_target(&target))));
            let count = if task == Task::LogFromMany { MANY_THREADS } else { THREADS };
            let threads = (first_thread..first_thread + count)
                .map(|thread| std::thread::spawn(move || log_without_end(task, route, second, thread)));
            threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        }
    }
}

/// Sets one limit of this process.
fn limit(resource: libc::__rlimit_resource_t, most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: a plain system call with a valid limit.
    assert_eq!(0, unsafe { libc::setrlimit(resource, &limit) });
}

/// Upper limit of the rotating file's size. Small, so that it is rotated often.
pub const MAX_BYTES: u64 = 50_000;

fn rotating_sink(path: &Path, compress: Option<Compression>) -> u32 {
    let path = path.to_str().unwrap().to_owned();
    let (max_bytes, backup_count, terminator_chars) = (MAX_BYTES, 5_000, 1);
    let rules = RotationRules::Together { compress };
    let kind = RotatingFileOptions { path, max_bytes, backup_count, terminator_chars, rules };
    pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap()
}

fn route_to_service(address: &Path, file: Option<&Path>) -> u32 {
    let kind = ServiceOptions::at(address.to_str().unwrap().parse().unwrap());
    let sink = pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap();
    let format = pipeline::define_format(&FormatSpec::entry(std::process::id())).unwrap();
    let mut targets = vec![Target { sink, format, min_level: 0 }];
    targets.extend(file.map(|file| Target { sink: file_sink(file), format, min_level: 0 }));
    pipeline::define_route(&RouteDefinition { logger: "killed".to_owned(), targets }).unwrap()
}

fn log_without_end(task: Task, route: u32, second: Option<u32>, thread: u32) {
    for index in 0.. {
        let line = text(task, thread, index);
        // A refused record was not accepted: log it again.
        while !log(route, 20, &line) || second.is_some_and(|second| !log(second, 20, &line)) {}
        report(thread, index);
        if matches!(task, Task::LogRotatingGzip | Task::LogRotatingZstd) && index % 20 == 0 {
            // Some twenty backups a second, so that the compressing thread of lowest priority gets to run.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn log_oversized(target: &Path) {
    let format = |spec| pipeline::define_format(&spec).unwrap();
    let plain = format(FormatSpec::text(Style::Dollar, "$message"));
    let again_and_again = format(FormatSpec::text(Style::Dollar, &"$message".repeat(8192)));
    let under_many_names = format(FormatSpec::json(&[("m", "message"); 4096], Extras::Omit));
    let targets = vec![Target { sink: file_sink(target), format: plain, min_level: 0 }];
    let route = pipeline::define_route(&RouteDefinition { logger: "oversized".to_owned(), targets }).unwrap();
    assert!(log(route, 20, &"x".repeat(OVERSIZED)) && log(route, 20, "short"));
    [plain, again_and_again, under_many_names].into_iter().zip(0..).for_each(|(format, which)| report(which, format));
    loop {
        std::thread::park();
    }
}

fn log_to_full_pipe() {
    let mut ends = [0; 2];
    // SAFETY: a valid buffer for two descriptors, which stay open.
    unsafe { assert_eq!(0, libc::pipe2(ends.as_mut_ptr(), 0)) };
    // SAFETY: the descriptor is open and stays open.
    let mut pipe = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(ends[1]) });
    // SAFETY: plain system calls on an open descriptor.
    unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    while pipe.write(&[b'.'; 4096]).is_ok() {}
    let definition = ConsoleOptions { descriptor: ends[1] }.define(Descriptor::Open);
    let route = route_to("console", pipeline::open_sink(&definition).unwrap());
    (0..10).for_each(|index| assert!(log(route, 20, &text(Task::Log, 0, index))));
    report(0, 9);
    loop {
        std::thread::park();
    }
}

/// Whether a name in the queue folder belongs to an overflow file.
pub fn is_overflow(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().contains(".over-")
}

/// Waits for a file beside the target, by which the test asks the child to drain.
fn await_word(target: &Path) {
    let word = target.with_extension("go");
    let deadline = Instant::now() + DEADLINE;
    while !word.exists() {
        assert!(Instant::now() < deadline, "nobody gave the word");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until `is_true` returns true.
pub fn await_that(what: &str, is_true: impl FnMut() -> bool) {
    await_within(DEADLINE, what, is_true);
}

/// As [`await_that`], with a given deadline.
pub fn await_within(time: Duration, what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + time;
    while !is_true() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Random numbers; the seed is printed, so that a run can be repeated.
pub struct Dice(u64);

impl Dice {
    pub fn new() -> Self {
        let seed = match std::env::var("LOGSPOOL_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => Instant::now().elapsed().as_nanos() as u64 ^ u64::from(std::process::id()) << 20,
        };
        println!("LOGSPOOL_SEED={seed}");
        Self(seed)
    }

    /// The next number below `bound` (splitmix64).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// The result of a check of lines.
#[derive(Debug, Default, Clone, Copy)]
pub struct Checked {
    /// Number of lines.
    pub lines: u64,
    /// Lines that occur a second time.
    pub repeated: u64,
}

/// Checks that no accepted line is missing, that every line is whole, and that each thread's lines are in order except
/// for one repeated stretch.
pub fn check(task: Task, file: &str, witnessed: &HashMap<u32, u32>) -> Checked {
    check_with_cuts(task, file, witnessed, 1)
}

/// Like [`check`], for a file whose writing was cut off `cuts` times: each cut may be followed by a repeated stretch.
pub fn check_with_cuts(task: Task, file: &str, witnessed: &HashMap<u32, u32>, cuts: u32) -> Checked {
    let mut checked = Checked::default();
    let mut next = [0_u32; THREADS as usize];
    let mut previous = [None; THREADS as usize];
    let mut steps_back = [0_u32; THREADS as usize];
    for line in file.split_inclusive('\n') {
        checked.lines += 1;
        if line.ends_with("records dropped: the queue was full\n") || line.starts_with("the queue is ") {
            // Refused on a busy machine, where the child logged it again, or a warning that the queue fills up.
            continue;
        }
        let words: Vec<u32> = line.split(' ').take(2).filter_map(|word| word.parse().ok()).collect();
        let [thread, index] = words[..] else { panic!("no line of ours: {:?}", &line[..line.len().min(80)]) };
        assert!(line == text(task, thread, index) + "\n", "line {thread} {index} is not whole");
        let at = thread as usize;
        assert!(index <= next[at], "thread {thread}: {index} after {:?}, {} is missing", previous[at], next[at]);
        if index == next[at] {
            next[at] += 1;
        } else {
            checked.repeated += 1;
        }
        if previous[at].is_some_and(|previous| index != previous + 1) {
            steps_back[at] += 1;
        }
        previous[at] = Some(index);
    }
    for (thread, newest) in witnessed {
        assert!(next[*thread as usize] > *newest, "thread {thread}: {newest} was accepted, {next:?} is there");
    }
    // For each cut, one step for the repeated stretch, one for a torn line before it that was completed.
    assert!(steps_back.iter().all(|steps| *steps <= 2 * cuts), "steps back: {steps_back:?}");
    checked
}
