//! Standard error is a file on a disk that hangs, and an output takes nothing. Neither calls nor other outputs wait for
//! the errors that are shown on standard error.

use crate::line;

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use line::{DEADLINE, begin, counted, file_sink, log, make_fifo, route_to};
use logspool::pipeline::{self, BlockingTimeout, Options};
use logspool_record::{Encoder, Head, tag};

static HANGS: AtomicBool = AtomicBool::new(false);

/// Replaces the function of the C library: a write to standard error hangs, as on a frozen disk.
#[unsafe(no_mangle)]
unsafe extern "C" fn write(descriptor: libc::c_int, bytes: *const libc::c_void, count: usize) -> isize {
    while descriptor == 2 && HANGS.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: callers of `write` have `count` bytes at `bytes`; the system call gets the same arguments.
    unsafe { libc::syscall(libc::SYS_write, descriptor, bytes, count) as isize }
}

#[test]
fn errors_printed_to_a_file_on_a_hung_disk_delay_nothing() {
    let timeout = Duration::from_millis(1);
    begin(Options {
        queue_bytes: 32 * 1024,
        overflow_bytes: Some(0),
        blocking_timeout: BlockingTimeout(timeout),
        ..Options::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().join("stderr");
    let file = File::create(&shown).unwrap();
    // SAFETY: plain system calls; descriptor 2 is restored below.
    let before = unsafe { File::from_raw_fd(libc::dup(2)) };
    // SAFETY: dup2 takes two open descriptors by value; `file` stays open.
    assert_eq!(2, unsafe { libc::dup2(file.as_raw_fd(), 2) });
    let mut reader = make_fifo(&folder.path().join("fifo"));
    let stuck = file_sink(&folder.path().join("fifo"));
    let healthy = file_sink(&folder.path().join("healthy.log"));
    let (to_stuck, to_healthy) = (route_to("stuck", stuck), route_to("healthy", healthy));
    assert!(log(to_healthy, 20, "first"));
    HANGS.store(true, Ordering::Release);
    let begun = Instant::now();
    let watch = std::thread::spawn(move || {
        while HANGS.load(Ordering::Acquire) && begun.elapsed() < DEADLINE / 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Releases the writer that waits for the disk.
        HANGS.swap(false, Ordering::AcqRel)
    });

    let long = format!("an error {}", "x".repeat(1000));
    while log(to_stuck, 40, &long) {}
    let mut threads = Vec::new();
    while counted(stuck).dropped.iter().flatten().sum::<u64>() == 0 {
        // Each thread has a lane of its own. The lane of this thread is full of records that can no longer be dropped.
        let long = long.clone();
        threads.push(std::thread::spawn(move || {
            log(to_stuck, 40, &long);
            while HANGS.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }));
        std::thread::sleep(Duration::from_millis(10));
    }
    // An error that the calling thread shows, too.
    let mut values = Encoder::new();
    values.context_str(tag::MESSAGE, "a refused error");
    pipeline::show_refused(Head { len: 0, site: 0, route: to_stuck, level: 40, flags: 0, ticks: 0 }, || {
        values.bytes.clone()
    });
    let is_logged = std::thread::spawn(move || log(to_healthy, 20, "last")).join().unwrap();
    let is_written = is_logged && pipeline::flush(Some(healthy), Some(DEADLINE / 3));
    HANGS.store(false, Ordering::Release);
    assert!(!watch.join().unwrap() && is_written, "something waits for standard error");
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    while !std::fs::read_to_string(&shown).unwrap().contains("an error x") {
        assert!(begun.elapsed() < DEADLINE, "nothing is shown");
        std::thread::yield_now();
    }

    // SAFETY: dup2 takes two open descriptors by value; `before` stays open.
    assert_eq!(2, unsafe { libc::dup2(before.as_raw_fd(), 2) });
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    assert!(pipeline::flush(None, Some(DEADLINE)));
}
