//! A copy of the library in a process where another copy has the queue: it refuses records, and counts them.

use crate::line;

use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

use line::{DEADLINE, begin, sum};
use logspool::pipeline::{self, Options, Refusal};
use logspool::sinks::{FileOptions, SinkOptions};
use logspool_record::definition::Descriptor;

/// Leaves the mark of another copy, as `copies.rs` does: a mapped page that claims the process.
fn map_page_of_another_copy(library: &str) {
    // State, number of the copy, no table of functions, length of the path.
    let words = [u64::from_le_bytes(*b"LOGSCORE"), 1, 0, library.len() as u64].map(u64::to_ne_bytes);
    let page = [words.as_flattened(), library.as_bytes()].concat();
    // SAFETY: a valid C string; the descriptor is new, and nothing else owns it; a fresh mapping of its file.
    unsafe {
        let file = std::fs::File::from_raw_fd(libc::memfd_create(c"logspool-core".as_ptr(), libc::MFD_CLOEXEC));
        file.set_len(4096).unwrap();
        file.write_all_at(&page, 0).unwrap();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let page = libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(libc::MAP_FAILED, page);
    }
}

#[test]
fn a_second_copy_has_no_queue_and_counts_every_record_as_refused() {
    map_page_of_another_copy("/opt/other/logspool.so");
    begin(Options::default());
    let folder = std::path::PathBuf::from(format!("/dev/shm/logspool-test-{}", std::process::id()));
    let kind = FileOptions { path: "/dev/null".to_owned() };
    let refused = pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap_err();
    for part in ["/opt/other/logspool.so", "deps/all-", "fix: load one copy"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(logspool::copies::claim().is_err());
    assert_eq!(None, pipeline::snapshot());

    assert!(!line::log(1, 20, "lost") && !line::log(1, 40, "lost"));
    pipeline::refuse(20, Refusal::QueueFull);
    let snapshot = pipeline::snapshot().unwrap();
    assert_eq!(
        (3, 3, 0),
        (sum(snapshot.refused[Refusal::NoLane as usize]), sum(snapshot.offered), sum(snapshot.accepted))
    );
    assert!(pipeline::recover(Some(&folder)).is_err() && pipeline::orphans(Some(&folder)).is_err());
    assert!(pipeline::flush(None, Some(DEADLINE)) && !pipeline::is_running());
    assert!(!folder.exists(), "it makes no file");
}
