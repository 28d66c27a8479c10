//! A program whose main thread ends with `pthread_exit`: the native threads do not keep the process alive.

use std::path::Path;
use std::time::{Duration, Instant};

use logspool::front;
use logspool::info;
use logspool::pipeline::Options;

/// Chosen: ten times what such an end takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);
const COUNT: u32 = 1_000;

/// Ends only the calling thread, as `pthread_exit` does after its cleanup.
fn end_thread() -> ! {
    // SAFETY: the thread uses nothing after this call.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("the thread has ended");
}

fn log_and_leave(folder: &Path) -> ! {
    let options = Options { queue_dir: Some(folder.join("queue")), ..Options::default() };
    front::builder().file(folder.join("a.log")).format("%(message)s").options(options).start().unwrap();
    for number in 0..COUNT {
        info!("{}", number);
    }
    // The last thread of the program is another one, and ends later.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(100));
        info!("{}", COUNT);
        end_thread();
    });
    end_thread();
}

/// The status of a child; `None` if it is still alive at the deadline.
fn status_of(child: libc::pid_t) -> Option<libc::c_int> {
    let begun = Instant::now();
    let mut status = -1;
    // SAFETY: a child of this process and a local.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if begun.elapsed() > DEADLINE {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(status)
}

#[test]
fn the_process_ends_after_the_last_thread_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    // SAFETY: the child logs and ends; no other thread of this test has a lock that it needs.
    let child = unsafe { libc::fork() };
    if child == 0 {
        log_and_leave(folder.path());
    }
    let status = status_of(child);
    if status.is_none() {
        // SAFETY: a child of this process that nobody has waited for.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    let expected: Vec<String> = (0..=COUNT).map(|number| number.to_string()).collect();

    assert_eq!(Some(0), status);
    let text = std::fs::read_to_string(folder.path().join("a.log")).unwrap();
    assert_eq!(expected, text.lines().collect::<Vec<_>>());
    // The process that removes the last file of the folder also removes the folder.
    let left: Vec<_> =
        std::fs::read_dir(folder.path().join("queue")).into_iter().flatten().filter(is_segment).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// True if a file of the queue folder is left by a process that did not end cleanly.
fn is_segment(entry: &std::io::Result<std::fs::DirEntry>) -> bool {
    entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().contains(".seg"))
}
