//! The logger of the crate `log` and the layer for `tracing` in one program.

use std::time::Duration;

use logspool::front::{self, Output, log_front, tracing_layer};
use logspool::pipeline::Options;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[test]
fn a_subscriber_is_set_beside_the_logger_although_log_takes_only_one_logger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    front::builder()
        .output(Output::file(&path))
        .format("%(levelname)s %(message)s")
        .options(Options { queue_dir: Some(folder.path().join("queue")), ..Options::default() })
        .start()
        .unwrap();
    log_front::start().unwrap();

    // `init` panics with this error; the subscriber is set before it.
    let refused = tracing_subscriber::registry().with(tracing_layer::layer()).try_init();
    log::info!("by log");
    tracing::info!("by tracing");

    assert!(front::flush(Duration::from_secs(60)));
    assert!(refused.is_err());
    assert_eq!("INFO by log\nINFO by tracing\n", std::fs::read_to_string(&path).unwrap());
}
