//! An error record that finds no room is shown on standard error.

use crate::line;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::Duration;

use line::{begin, file_sink, log, route_to};
use logspool::pipeline::{self, BlockingTimeout, Options};
use logspool_record::{Encoder, Head, tag};

/// The text that `action` writes to standard error.
fn on_standard_error(action: impl FnOnce()) -> String {
    let mut ends = [0; 2];
    // SAFETY: plain system calls; `ends` is a valid place for two descriptors, and nothing else owns them.
    let (mut reader, writer, before) = unsafe {
        assert_eq!(0, libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC));
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]), File::from_raw_fd(libc::dup(2)))
    };
    // SAFETY: as for the pipe; descriptor 2 is restored below.
    unsafe { libc::dup2(writer.as_raw_fd(), 2) };
    action();
    // SAFETY: dup2 takes two open descriptors by value; `before` stays open.
    unsafe { libc::dup2(before.as_raw_fd(), 2) };
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn refused_errors_are_shown_and_refused_infos_are_not() {
    let timeout = Duration::from_millis(1);
    begin(Options {
        queue_bytes: 32 * 1024,
        overflow_bytes: Some(0),
        blocking_timeout: BlockingTimeout(timeout),
        ..Options::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a valid C string.
    assert_eq!(0, unsafe { libc::mkfifo(name.as_ptr(), 0o600) });
    let mut reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let route = route_to("stuck", file_sink(&path));
    while log(route, 40, "before") {}
    let show = |level: u16, message: &str| {
        let mut values = Encoder::new();
        values.context_str(tag::MESSAGE, message);
        let head = Head { len: 0, site: 0, route, level, flags: 0, ticks: 0 };
        pipeline::show_refused(head, || values.bytes.clone());
    };

    let shown = on_standard_error(|| {
        show(20, "an info");
        show(40, "an error");
    });

    assert_eq!("an error\n", shown);
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    assert!(pipeline::flush(None, Some(line::DEADLINE)));
}
