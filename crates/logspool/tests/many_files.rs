//! Many files, each of which had a burst: a file without records takes little memory.

use crate::line;

use line::{DEADLINE, begin, file_sink, log, route_to};
use logspool::pipeline::{self, Options};

const FILES: u64 = 60;
const LINES: u64 = 4_000;
/// Resident bytes that a file may add. A burst fills buffers of more than a megabyte.
const MAX_BYTES_PER_FILE: u64 = 200 * 1024;

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}

#[test]
fn a_file_without_records_takes_little_memory() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let routes: Vec<u32> = (0..FILES)
        .map(|number| route_to(&format!("{number}"), file_sink(&folder.path().join(number.to_string()))))
        .collect();
    let text = "x".repeat(100);
    let burst = |route| {
        (0..LINES).for_each(|_| assert!(log(route, 20, &text)));
        assert!(pipeline::flush(None, Some(DEADLINE)));
    };
    burst(routes[0]);
    let before = resident_bytes();
    routes.iter().for_each(|route| burst(*route));

    let added = resident_bytes().saturating_sub(before) / FILES;
    assert!(added <= MAX_BYTES_PER_FILE, "{added} bytes a file");
    let written: u64 = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert_eq!((FILES + 1) * LINES * 101, written);
}
