//! Waits of a thread that receives a signal every few microseconds still end in time.

use crate::line;

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use line::{DEADLINE, begin, file_sink, log, make_fifo, route_to};
use logspool::pipeline::{self, BlockingTimeout, Options};
use logspool_sys::sleep::sleep_interruptibly;

const TIMEOUT: Duration = Duration::from_millis(20);
/// Less than the slack of 50 us that the kernel gives each sleep.
const EVERY_NS: libc::c_long = 20_000;

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_signal: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Makes signals come to this thread until it ends.
fn have_signals_come() {
    // SAFETY: all-zero structs are valid, and the system reads and writes locals only.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(0, libc::sigaction(libc::SIGALRM, &action, null_mut()));
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGALRM;
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer: libc::timer_t = null_mut();
        assert_eq!(0, libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer));
        let every = libc::timespec { tv_sec: 0, tv_nsec: EVERY_NS };
        let time = libc::itimerspec { it_interval: every, it_value: every };
        assert_eq!(0, libc::timer_settime(timer, 0, &time, null_mut()));
    }
}

#[test]
fn waits_end_although_signals_arrive_all_the_time() {
    // Without overflow: the queue of a stalled sink is full after some hundred records.
    begin(Options {
        queue_bytes: 32 * 1024,
        overflow_bytes: Some(0),
        blocking_timeout: BlockingTimeout(TIMEOUT),
        blocking_levels: Some(vec![20]),
        ..Options::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let reader = make_fifo(&fifo);
    let sink = file_sink(&fifo);
    let route = route_to("stalled", sink);
    let (done, is_done) = mpsc::channel();
    let waiter = std::thread::spawn(move || {
        have_signals_come();
        let begun = Instant::now();
        while begun.elapsed() < TIMEOUT {
            sleep_interruptibly(TIMEOUT);
        }
        done.send("a nap").unwrap();
        while log(route, 20, &"x".repeat(500)) {}
        done.send("a call that finds the queue full").unwrap();
        assert!(!pipeline::flush(Some(sink), Some(TIMEOUT)));
        done.send("a flush").unwrap();
        pipeline::close_sink(sink, TIMEOUT);
        done.send("a close").unwrap();
    });
    for awaited in ["a nap", "a call that finds the queue full", "a flush", "a close"] {
        assert_eq!(Ok(awaited), is_done.recv_timeout(DEADLINE), "waited for {awaited}");
    }
    waiter.join().unwrap();
    assert!(SIGNALS.load(Ordering::Relaxed) > 100);
    drop(reader);
}
