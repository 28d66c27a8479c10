//! A process continues after it tried to end while a sync hung: no record is reported as durable before a sync returns.

use crate::line;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use line::{DEADLINE, begin, counted, file_sink, log, route_to, sum};
use logspool::pipeline::{self, Durability, DurableWait, Options, Push, SyncWait};
use logspool_record::{Head, tag};

static HANGS: AtomicBool = AtomicBool::new(false);

/// Replaces the function of the C library: hangs, as on a frozen disk.
#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(descriptor: libc::c_int) -> libc::c_int {
    while HANGS.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: the system call takes a number, and refuses one that is no open descriptor.
    unsafe { libc::syscall(libc::SYS_fdatasync, descriptor) as libc::c_int }
}

/// Logs an empty message, and starts a wait until it is durable.
fn log_and_wait(route: u32) -> DurableWait {
    let head = Head { len: 0, site: 0, route, level: 20, flags: 0, ticks: 0 };
    // SAFETY: `push` reserves the five bytes.
    let pushed = pipeline::push(head, 5, |place| unsafe {
        place.write(tag::MESSAGE);
        place.add(1).cast::<u32>().write_unaligned(0);
    });
    assert_eq!(Push::MustWaitForSync, pushed);
    DurableWait::begin(20).unwrap()
}

#[test]
fn a_record_whose_sync_hangs_is_not_durable_after_a_failed_exit() {
    begin(Options { durability: Durability::Sync, durability_timeout: DEADLINE, ..Options::default() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hung.log");
    let sink = file_sink(&path);
    let route = route_to("hung", sink);
    std::thread::scope(|scope| {
        let (begun, begins) = std::sync::mpsc::channel();
        let waits = scope.spawn(move || {
            assert!(log(route, 20, "durable"));
            HANGS.store(true, Ordering::Release);
            let wait = log_and_wait(route);
            begun.send(()).unwrap();
            loop {
                // As a binding that most of the time does something else in between.
                match wait.wait_slice(Duration::ZERO) {
                    None => std::thread::sleep(Duration::from_millis(1)),
                    Some(durable) => return durable,
                }
            }
        });
        begins.recv().unwrap();
        while sum(counted(sink).written) < 2 {
            std::thread::yield_now();
        }
        let sync = SyncWait::begin(None).unwrap();
        assert_eq!(0, pipeline::end(Duration::from_millis(200)), "all is written");
        pipeline::revert_end();

        assert!(!waits.join().unwrap(), "its sync hangs");
        assert!(sync.wait(DEADLINE) && !sync.succeeded());
        HANGS.store(false, Ordering::Release);
    });
    assert_eq!("durable\n\n", std::fs::read_to_string(&path).unwrap());
}
