//! The layer for `tracing-subscriber` with others: its levels, records of the crate `log`, names that are taken.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use logspool::front::tracing_layer::{TracingLayer, layer};
use logspool::front::{self, Level, Output};
use logspool::pipeline::Options;
use logspool_record::format::{Extras, FormatSpec};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// A layer without a filter, which gets every event.
struct Other;

static OTHERS: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl<S: Subscriber> Layer<S> for Other {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        OTHERS.lock().unwrap().push(event.metadata().level().to_string());
    }
}

#[derive(Debug)]
struct Failed(&'static str, Option<Box<Failed>>);

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl std::error::Error for Failed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.1.as_ref().map(|cause| &**cause as _)
    }
}

/// Whether the fields of a call were evaluated.
fn is_wanted(call: impl FnOnce(&mut dyn FnMut() -> u8)) -> bool {
    let mut is_wanted = false;
    call(&mut || {
        is_wanted = true;
        1
    });
    is_wanted
}

fn start(folder: &std::path::Path) -> std::path::PathBuf {
    let path = folder.join("a.json");
    let fields = [("level", "levelname"), ("name", "name"), ("message", "message")];
    front::builder()
        .output(Output::file(&path).format(FormatSpec::json(&fields, Extras::Append)))
        .level_for("noisy", Level::Warn)
        .options(Options { queue_dir: Some(folder.join("queue")), ..Options::default() })
        .start()
        .unwrap();
    path
}

#[test]
fn a_layer_accepts_events_of_its_levels_and_hides_none_from_others() {
    let folder = tempfile::tempdir().unwrap();
    // A subscriber that is made before logging starts gets the levels of the start.
    let alone = tracing_subscriber::registry().with(layer());
    tracing::subscriber::set_global_default(alone).unwrap();
    let early = || is_wanted(|value| tracing::info!(early = value(), "early"));
    assert!(!early());
    let path = start(folder.path());
    tracing_log::LogTracer::init().unwrap();
    assert!(early());

    assert_eq!(LevelFilter::INFO, LevelFilter::current());
    assert!(!is_wanted(|value| tracing::debug!(value = value(), "left out")));
    assert!(!is_wanted(|value| drop(tracing::debug_span!("left out", value = value()))));
    assert!(!is_wanted(|value| tracing::info!(target: "noisy::part", value = value(), "left out")));
    tracing::warn!(target: "noisy::part", "shown");
    log::info!(target: "bridged", "by log");
    log::info!(target: "noisy", "left out");
    log::debug!("left out");

    let taken = tracing::info_span!("taken", name = "ada", level = 3, message = "of the span", span = "own");
    taken.in_scope(|| tracing::info!(name = "eve", span = 5, "names"));
    let error = Failed("outer", Some(Box::new(Failed("middle", Some(Box::new(Failed("inner", None)))))));
    tracing::error!(error = &error as &dyn std::error::Error, "failed");

    let two = tracing_subscriber::registry().with(TracingLayer).with(TracingLayer).with(Other);
    tracing::subscriber::with_default(two, || {
        let span = tracing::info_span!("twice", id = 7);
        span.in_scope(|| tracing::info!("two layers"));
        tracing::debug!("for the other layer");
    });
    let beside = tracing_subscriber::registry().with(layer()).with(Other);
    tracing::subscriber::with_default(beside, || tracing::debug!("for the other layer"));

    assert!(front::flush(Duration::from_secs(60)));
    let lines = [
        r#"{"level":"INFO","name":"all::front_tracing_layers","message":"early","early":1}"#,
        r#"{"level":"WARN","name":"noisy::part","message":"shown"}"#,
        r#"{"level":"INFO","name":"bridged","message":"by log"}"#,
        r#"{"level":"INFO","name":"all::front_tracing_layers","message":"names","span":"taken","level_":3,"message_":"of the span","name_":"eve","span_":5}"#,
        r#"{"level":"ERROR","name":"all::front_tracing_layers","message":"failed","error":"outer","error.sources":"[middle, inner]"}"#,
        r#"{"level":"INFO","name":"all::front_tracing_layers","message":"two layers","span":"twice","id":7}"#,
        r#"{"level":"INFO","name":"all::front_tracing_layers","message":"two layers","span":"twice","id":7}"#,
    ];
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(lines.as_slice(), text.lines().collect::<Vec<_>>());
    assert_eq!(["INFO", "DEBUG", "DEBUG"], OTHERS.lock().unwrap().as_slice());
}
