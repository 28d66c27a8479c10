//! More targets than the table of routes has places: every record is written.

use std::time::Duration;

use logspool::front::{self, log_front};
use logspool::pipeline::Options;

const TARGETS: usize = 5_000;

#[test]
fn records_of_further_targets_are_written_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    front::builder()
        .file(&path)
        .format("%(levelname)s %(message)s")
        .options(Options { queue_dir: Some(folder.path().join("queue")), ..Options::default() })
        .start()
        .unwrap();
    log_front::start().unwrap();

    for number in 0..TARGETS {
        let target = format!("module_{number}");
        log::info!(target: &target, "{number}");
        log::error!(target: &target, "{number}");
    }

    assert!(front::flush(Duration::from_secs(60)));
    let expected: Vec<String> = (0..TARGETS).flat_map(|n| [format!("INFO {n}"), format!("ERROR {n}")]).collect();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(expected, text.lines().collect::<Vec<_>>());
    let refused = logspool::pipeline::snapshot().unwrap().refused;
    assert!(refused.iter().flatten().all(|count| *count == 0), "{refused:?}");
}
