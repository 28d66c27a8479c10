//! Records in a spool whose files were damaged on disk are counted as unreadable, and the flush that waits for them fails.

use crate::line;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use line::{DEADLINE, begin, counted, file_sink, log, make_fifo, route_to, sum};
use logspool::pipeline::{self, Options};
use logspool::stats::DropReason;

const COUNT: usize = 5_000;
/// Number of bytes of a line, with its line break.
const LINE: usize = 1_000;

fn spool_folder() -> PathBuf {
    PathBuf::from(format!("/tmp/logspool-damaged-{}", std::process::id()))
}

/// Overwrites each file below a folder with zeros, but for its first 64 KiB.
fn damage(folder: &Path) {
    for entry in folder.read_dir().unwrap().flatten() {
        let bytes = entry.metadata().unwrap().len();
        if entry.path().is_dir() {
            damage(&entry.path());
        } else if bytes > 65_536 {
            let file = std::fs::File::options().write(true).open(entry.path()).unwrap();
            file.set_len(65_536).unwrap();
            file.set_len(bytes).unwrap();
        }
    }
}

#[test]
fn a_flush_fails_if_records_in_the_spool_were_damaged() {
    begin(Options { spool_dir: Some(spool_folder()), ..Options::default() });
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let mut reader = make_fifo(&fifo);
    let sink = file_sink(&fifo);
    let route = route_to("frozen", sink);
    let line = "x".repeat(LINE - 1);
    for _ in 0..COUNT {
        assert!(log(route, 40, &line));
    }
    let begun = Instant::now();
    while sum(counted(sink).spooled) < COUNT as u64 / 2 {
        assert!(begun.elapsed() < DEADLINE, "{:?}", counted(sink));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    damage(&spool_folder());

    std::thread::spawn(move || {
        let mut text = vec![0; 65_536];
        while reader.read(&mut text).is_ok_and(|count| count > 0) {}
    });
    let flushed = pipeline::flush(Some(sink), Some(DEADLINE));
    let counts = counted(sink);
    let lost = sum(counts.dropped[DropReason::Unreadable as usize]);
    assert!(lost > 0, "{counts:?}");
    assert!(!flushed, "the flush tells that records are lost");
    assert_eq!(COUNT as u64, sum(counts.written) + lost, "{counts:?}");
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)), "the next flush has lost nothing");

    assert_eq!(0, pipeline::drain(DEADLINE));
    let _ = std::fs::remove_dir_all(spool_folder());
}
