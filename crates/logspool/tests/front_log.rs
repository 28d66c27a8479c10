//! The logger of the crate `log`.

use std::time::Duration;

use logspool::front::{self, Level, Output, log_front};
use logspool::pipeline::Options;
use logspool_record::format::{Extras, FormatSpec};

#[test]
fn records_of_the_log_crate_keep_their_source_location_and_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let fields = [("at", "lineno"), ("level", "levelname"), ("logger", "name"), ("message", "message")];
    front::builder()
        .output(Output::file(&path).format(FormatSpec::json(&fields, Extras::Append)))
        .level(Level::Debug)
        .options(Options { queue_dir: Some(folder.path().join("queue")), ..Options::default() })
        .start()
        .unwrap();
    log_front::start().unwrap();
    assert!(log_front::start().is_err(), "there is a logger already");

    let line = line!();
    log::info!("plain");
    log::debug!(target: "shop", "{} of {}", 1, "two");
    log::trace!("below the level");
    log::warn!(target: "shop", order = 17, paid = true, name = "ada", cost = 2.5, other:? = Some(1); "late");
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| log::error!("same place"))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    log::logger().flush();

    assert!(front::flush(Duration::from_secs(30)));
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let of = |offset: u32, rest: &str| format!("{{\"at\":{},{rest}}}", line + offset);
    assert_eq!(
        [
            of(1, "\"level\":\"INFO\",\"logger\":\"all::front_log\",\"message\":\"plain\""),
            of(2, "\"level\":\"DEBUG\",\"logger\":\"shop\",\"message\":\"1 of two\""),
            of(
                4,
                "\"level\":\"WARN\",\"logger\":\"shop\",\"message\":\"late\",\"order\":17,\"paid\":true,\"name\":\"ada\",\
                 \"cost\":2.5,\"other\":\"Some(1)\""
            ),
        ],
        lines[..3]
    );
    assert_eq!(4, lines.iter().filter(|line| line.contains("same place")).count());
    assert_eq!(7, lines.len());
}
