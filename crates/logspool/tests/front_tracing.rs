//! The layer for `tracing-subscriber`.

use std::time::Duration;

use logspool::front::tracing_layer::TracingLayer;
use logspool::front::{self, Output};
use logspool::pipeline::Options;
use logspool_record::format::{Extras, FormatSpec};
use tracing_subscriber::layer::SubscriberExt;

#[test]
fn events_keep_their_fields_and_those_of_their_spans() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let fields = [("level", "levelname"), ("logger", "name"), ("message", "message")];
    front::builder()
        .output(Output::file(&path).format(FormatSpec::json(&fields, Extras::Append)))
        .options(Options { queue_dir: Some(folder.path().join("queue")), ..Options::default() })
        .start()
        .unwrap();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(TracingLayer)).unwrap();

    tracing::info!(count = 3, "plain {}", "text");
    tracing::debug!("below the level");
    let outer = tracing::info_span!("request", id = 7_u64, user = "ada", state = tracing::field::Empty);
    let _outer = outer.enter();
    outer.record("state", "open");
    let inner = tracing::warn_span!("query", id = 8_u64, list = ?[1, 2]);
    inner.in_scope(|| {
        tracing::error!(target: "db", cost = 0.5, user = "eve", failed = true, error = %"no row", "slow");
    });
    tracing::warn!("after");

    assert!(front::flush(Duration::from_secs(30)));
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let wanted = [
        r#"{"level":"INFO","logger":"all::front_tracing","message":"plain text","count":3}"#,
        r#"{"level":"ERROR","logger":"db","message":"slow","span":"request:query","state":"open","id":8,"list":"[1, 2]","cost":0.5,"user":"eve","failed":true,"error":"no row"}"#,
        r#"{"level":"WARN","logger":"all::front_tracing","message":"after","span":"request","id":7,"user":"ada","state":"open"}"#,
    ];
    assert_eq!(wanted, lines.as_slice());
}
