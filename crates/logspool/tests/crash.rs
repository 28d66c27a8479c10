//! Crashes that Python cannot produce: in the middle of a push, on an exhausted stack, and faults that a handler
//! repairs.

use crate::line;

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use line::{begin, file_sink, log, log_around, route_to};
use logspool::pipeline::{self, Options};

const CHILD: &str = "LOGSPOOL_CRASH";
const LINES: usize = 100;

/// Runs `child_process` as a process of its own, which crashes in the way of `kind`.
fn crash(kind: &str, path: &Path) -> (Output, Duration) {
    let begun = Instant::now();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &own_test!("child_process"), "--nocapture"])
        .env(CHILD, format!("{kind}:{}", path.display()));
    // Otherwise a sanitizer reports these signals and ends the process itself.
    for options in ["ASAN_OPTIONS", "TSAN_OPTIONS"] {
        command.env(options, format!("{}:handle_segv=0", std::env::var(options).unwrap_or_default()));
    }
    // SAFETY: setrlimit is async-signal-safe. Core files of tests are not needed.
    unsafe {
        command.pre_exec(|| {
            libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 });
            Ok(())
        });
    }
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let queue = PathBuf::from(format!("/dev/shm/logspool-test-{}", child.id()));
    let output = child.wait_with_output().unwrap();
    let taken = begun.elapsed();
    let left: Vec<_> = std::fs::read_dir(&queue).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let _ = std::fs::remove_dir_all(&queue);
    assert_eq!(Vec::<PathBuf>::new(), left, "{output:?}");
    (output, taken)
}

fn log_lines(path: &Path) -> u32 {
    begin(Options::default());
    let route = route_to("app", file_sink(path));
    for number in 0..LINES {
        assert!(log(route, 20, &format!("line {number}")));
    }
    route
}

fn lines() -> String {
    (0..LINES).map(|number| format!("line {number}\n")).collect()
}

#[test]
fn child_process() {
    let Ok(what) = std::env::var(CHILD) else { return };
    let (kind, path) = what.split_once(':').unwrap();
    let path = Path::new(path);
    match kind {
        "push" => {
            pipeline::install_crash_drain();
            let route = log_lines(path);
            log_around(route, 20, "never accepted", || {
                // SAFETY: none, on purpose: this writes to a page that is never accessible.
                unsafe { std::hint::black_box(8 as *mut u8).write_volatile(0) }
            });
        }
        "overflow" => {
            pipeline::install_crash_drain();
            log_lines(path);
            std::hint::black_box(deeper([0; 512]));
        }
        "repaired" => survive(path),
        _ => unreachable!(),
    }
}

#[allow(unconditional_recursion, reason = "that is what is tested")]
fn deeper(frame: [u8; 512]) -> u8 {
    let next = std::hint::black_box(frame);
    deeper(next) ^ std::hint::black_box(next)[7]
}

static PAGE: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());
static REPAIRED: AtomicU32 = AtomicU32::new(0);
const FAULTS: u32 = 1000;

/// Makes the page writable, so that the instruction is repeated and succeeds.
extern "C" fn fix(_: libc::c_int) {
    // SAFETY: the page was mapped by `survive`.
    unsafe { libc::mprotect(PAGE.load(Ordering::Relaxed), 4096, libc::PROT_READ | libc::PROT_WRITE) };
    REPAIRED.fetch_add(1, Ordering::Relaxed);
}

/// A program whose own handler repairs each fault, as garbage collectors and emulators do.
fn survive(path: &Path) {
    // SAFETY: a fresh mapping, a handler of async-signal-safe calls, and writes to that mapping only.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, flags, -1, 0);
        assert!(page != libc::MAP_FAILED);
        PAGE.store(page, Ordering::Relaxed);
        libc::signal(libc::SIGSEGV, fix as extern "C" fn(libc::c_int) as usize);
        pipeline::install_crash_drain();
        log_lines(path);
        for _ in 0..FAULTS {
            page.cast::<u8>().write_volatile(1);
            libc::mprotect(page, 4096, libc::PROT_READ);
        }
    }
    let begun = Instant::now();
    log_lines(path);
    assert!(begun.elapsed() < Duration::from_secs(1), "a call still waits for the end");
    assert_eq!(FAULTS, REPAIRED.load(Ordering::Relaxed));
    // SAFETY: no preconditions. The earlier handlers are restored unless another one was set meanwhile.
    unsafe {
        pipeline::remove_crash_drain();
        assert_eq!(fix as extern "C" fn(libc::c_int) as usize, libc::signal(libc::SIGSEGV, libc::SIG_DFL));
    }
}

#[test]
fn a_crash_in_the_middle_of_a_push_leaves_the_lines_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");

    let (output, taken) = crash("push", &path);

    assert_eq!(Some(libc::SIGSEGV), output.status.signal(), "{output:?}");
    assert_eq!(lines(), std::fs::read_to_string(&path).unwrap());
    assert!(taken < Duration::from_secs(10), "{taken:?}");
}

#[test]
fn a_stack_overflow_is_reported_by_rust_and_the_lines_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");

    let (output, _) = crash("overflow", &path);

    assert_eq!(Some(libc::SIGABRT), output.status.signal(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("has overflowed its stack"), "{output:?}");
    assert_eq!(lines(), std::fs::read_to_string(&path).unwrap());
}

#[test]
fn faults_that_the_program_handles_are_cheap_and_logging_continues() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");

    let (output, taken) = crash("repaired", &path);

    assert!(output.status.success(), "{output:?}");
    assert_eq!(lines().repeat(2), std::fs::read_to_string(&path).unwrap());
    assert!(taken < Duration::from_secs(10), "{taken:?}");
}
