//! Writes lines of the form `user NAME did N in MS ms` by one of several Rust loggers: LOGGER LINES FILE [left-out]
//!
//! `none` makes the same loop without a logger. Shows the time of the calls and the peak memory as JSON.
//!
//! `left-out` calls `tracing` below the level of the logger instead, and shows the nanoseconds of an event and of a
//! span.

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::time::{Duration, Instant};

use logspool::front::tracing_layer;
use logspool::pipeline::{BlockingTimeout, Options};
use spdlog::sink::FileSink;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::NonBlockingBuilder;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const NAMES: [&str; 4] = ["ada", "grace", "edsger", "barbara"];

/// Calls `log` for each line. Returns the seconds.
fn run(lines: i32, log: impl Fn(&'static str, i32, f64)) -> f64 {
    let begin = Instant::now();
    for line in 0..lines {
        log(NAMES[line as usize & 3], line, f64::from(line % 9973) / 7.0);
    }
    begin.elapsed().as_secs_f64()
}

/// Lossless: a call that finds no room waits, whatever its level.
fn start_logspool(file: &str) -> Result<(), Box<dyn Error>> {
    let options = Options {
        blocking_levels: Some(vec![20]),
        blocking_timeout: BlockingTimeout(Duration::from_secs(60)),
        ..Options::default()
    };
    logspool::front::builder().file(file).options(options).start()?;
    Ok(())
}

fn log_by_tracing(lines: i32) -> f64 {
    run(lines, |name, number, ms| tracing::info!("user {} did {} in {:.3} ms", name, number, ms))
}

/// Calls `tracing` below the level of the subscriber. Returns the nanoseconds of an event and of a span, without those
/// of the loop.
fn left_out(calls: i32) -> [f64; 2] {
    let empty = run(calls, |name, number, ms| {
        black_box((name, number, ms));
    });
    let event = run(calls, |name, number, ms| {
        black_box((name, number, ms));
        tracing::debug!("user {} did {} in {:.3} ms", name, number, ms);
    });
    let span = run(calls, |name, number, ms| {
        black_box((name, number, ms));
        drop(tracing::debug_span!("request", name, number).entered());
    });
    [event, span].map(|seconds| (seconds - empty) / f64::from(calls) * 1e9)
}

/// The most memory that the process has had until now.
fn peak_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.split_whitespace().next()?.parse::<f64>().ok().map(|kilobytes| kilobytes / 1024.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let (logger, lines, file, is_left_out) = match &arguments[..] {
        [_, logger, lines, file] => (logger, lines, file, false),
        [_, logger, lines, file, mode] if mode == "left-out" => (logger, lines, file, true),
        _ => return Err("usage: LOGGER LINES FILE [left-out]".into()),
    };
    let lines: i32 = lines.parse()?;
    if is_left_out {
        match logger.as_str() {
            "logspool-tracing" => {
                start_logspool(file)?;
                tracing_subscriber::registry().with(tracing_layer::layer()).init();
            }
            "logspool-plain-layer" => {
                start_logspool(file)?;
                tracing_subscriber::registry().with(tracing_layer::TracingLayer).init();
            }
            "tracing-fmt" => {
                tracing_subscriber::fmt().with_writer(File::create(file)?).with_max_level(LevelFilter::INFO).init();
            }
            "no-subscriber" => {}
            other => return Err(format!("unknown logger {other} of calls that are left out").into()),
        }
        let [event, span] = left_out(lines);
        println!("{{\"event_ns\": {event:.2}, \"span_ns\": {span:.2}}}");
        return Ok(());
    }
    let seconds = match logger.as_str() {
        "logspool" => {
            start_logspool(file)?;
            run(lines, |name, number, ms| logspool::info!("user {} did {} in {:.3} ms", name, number, ms))
        }
        "logspool-tracing" => {
            start_logspool(file)?;
            tracing_subscriber::registry().with(tracing_layer::layer()).init();
            log_by_tracing(lines)
        }
        "tracing-appender" => {
            let (writer, guard) = NonBlockingBuilder::default().lossy(false).finish(File::create(file)?);
            tracing_subscriber::fmt().with_writer(writer).with_ansi(false).init();
            let seconds = log_by_tracing(lines);
            // Dropping the guard writes the queued lines.
            drop(guard);
            seconds
        }
        "spdlog-rs" => {
            let sink = FileSink::builder().path(file).truncate(true).build_arc()?;
            let log = spdlog::Logger::builder().name("bench").sink(sink).build()?;
            let seconds = run(
                lines,
                |name, number, ms| spdlog::info!(logger: log, "user {} did {} in {:.3} ms", name, number, ms),
            );
            log.flush();
            seconds
        }
        "none" => run(lines, |name, number, ms| {
            black_box((name, number, ms));
        }),
        other => return Err(format!("unknown logger {other}").into()),
    };
    println!("{{\"calls_s\": {seconds:.6}, \"rss_mb\": {:.1}}}", peak_megabytes().unwrap_or(0.0));
    Ok(())
}
