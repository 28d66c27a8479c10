//! Targets that are found at run time and closed, more of them than the table of routes has places.

use std::fmt::Write;
use std::time::Duration;

use logspool::front::{self, log_front};
use logspool::pipeline::Options;

const TARGETS: usize = 20_000;

#[test]
fn a_target_for_each_connection_keeps_its_name_and_source_location() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    front::builder()
        .file(&path)
        .format("%(name)s %(filename)s:%(lineno)d %(message)s")
        .options(Options { queue_dir: Some(folder.path().join("queue")), ..Options::default() })
        .start()
        .unwrap();
    log_front::start().unwrap();
    let mut expected = String::new();

    for number in 0..TARGETS {
        let target = format!("connection {number}");
        logspool::info!(target: target.as_str(), "opens {}", number);
        let own = line!() - 1;
        log::info!(target: &target, "closes {number}");
        let of_log = line!() - 1;
        logspool::info!(target: "fixed", "{}", number);
        assert!(front::close_target(&target));
        writeln!(expected, "{target} front_close_target.rs:{own} opens {number}").unwrap();
        writeln!(expected, "{target} front_close_target.rs:{of_log} closes {number}").unwrap();
        writeln!(expected, "fixed front_close_target.rs:{} {number}", own + 4).unwrap();
    }
    assert!(!front::close_target("fixed"), "a call keeps its ids");
    assert!(!front::close_target("connection 0"), "it is closed");

    assert!(front::flush(Duration::from_secs(60)));
    assert!(std::fs::read_to_string(&path).unwrap() == expected, "a line has another name or place");
    let refused = logspool::pipeline::snapshot().unwrap().refused;
    assert!(refused.iter().flatten().all(|count| *count == 0), "{refused:?}");
}
