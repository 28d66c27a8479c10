//! A thread that finds no lane, and every shared lane locked, waits. Its record is not refused.
//!
//! The locks are held for as long as the test needs by threads that have reserved room and not committed.

use crate::line;

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use line::{DEADLINE, begin, file_sink, log, route_to};
use logspool::pipeline::{self, BlockingTimeout, Options, Room, Waiter};
use logspool_lanes::segment::SHARED_LANES;
use logspool_lanes::segment::layout::MAX_LANES;
use logspool_record::{Head, tag};

const ERROR: u16 = 40;

/// A thread that has a lane, or the lock of a shared lane, until it has to let go.
struct Holder {
    go: Sender<()>,
    thread: JoinHandle<()>,
}

impl Holder {
    /// Starts a thread that takes something by `hold`, and calls `end` when it has to let go.
    fn start(hold: impl FnOnce() + Send + 'static, end: impl FnOnce() + Send + 'static) -> Self {
        let ((go, told), (ready, held)) = (channel(), channel());
        let thread = spawn(move || {
            hold();
            ready.send(()).unwrap();
            // An error: the test has failed, and lets go too.
            let _ = told.recv();
            end();
        });
        held.recv_timeout(DEADLINE).expect("the thread holds it");
        Self { go, thread }
    }

    fn let_go(self) {
        self.go.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

/// Locks a shared lane: reserves room for a message, and does not commit.
fn lock_shared_lane(route: u32) {
    let head = Head { len: 0, site: 0, route, level: ERROR, flags: 0, ticks: 0 };
    let mut waited = Duration::ZERO;
    loop {
        if let Some(place) = pipeline::reserve(head, 5) {
            // SAFETY: room for five bytes is reserved: a message without text.
            unsafe { place.cast::<[u8; 5]>().write([tag::MESSAGE, 0, 0, 0, 0]) };
            return;
        }
        assert_eq!(Room::Retry, pipeline::make_room(ERROR, 5, Waiter::Thread, &mut waited));
    }
}

/// Logs on a new thread, and waits until its call waits. Returns whether the record is accepted, as soon as it is known.
fn log_and_wait(route: u32) -> Receiver<bool> {
    let blocked = || pipeline::snapshot().unwrap().blocked_calls;
    let (before, begun) = (blocked(), Instant::now());
    let (tell, told) = channel();
    spawn(move || tell.send(log(route, ERROR, "waited")));
    while blocked() == before {
        assert!(begun.elapsed() < DEADLINE, "no call waits");
        assert_eq!(Err(TryRecvError::Empty), told.try_recv(), "the call has not waited");
        std::thread::sleep(Duration::from_millis(1));
    }
    told
}

#[test]
fn a_thread_without_a_lane_waits_until_one_is_free() {
    begin(Options { blocking_timeout: BlockingTimeout(4 * DEADLINE), ..Options::default() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    let route = route_to("app", file_sink(&path));
    let with_lane = || Holder::start(move || assert!(log(route, ERROR, "own")), || ());
    let mut own: Vec<Holder> = (SHARED_LANES..MAX_LANES).map(|_| with_lane()).collect();
    let lock = || Holder::start(move || lock_shared_lane(route), || assert!(pipeline::commit().is_some()));
    let mut shared: Vec<Holder> = (0..SHARED_LANES).map(|_| lock()).collect();

    let told = log_and_wait(route);
    own.remove(0).let_go();
    assert_eq!(Ok(true), told.recv_timeout(DEADLINE), "it gets the lane of a thread that has ended");

    own.push(with_lane());
    let told = log_and_wait(route);
    shared.remove(0).let_go();
    assert_eq!(Ok(true), told.recv_timeout(DEADLINE), "it gets the shared lane that is not locked any more");

    own.into_iter().chain(shared).for_each(Holder::let_go);
    assert!(pipeline::flush(None, Some(DEADLINE)));
    let text = std::fs::read_to_string(&path).unwrap();
    let count = |wanted: &str| text.lines().filter(|line| *line == wanted).count();
    assert_eq!((MAX_LANES - SHARED_LANES + 1, SHARED_LANES, 2), (count("own"), count(""), count("waited")));
}
