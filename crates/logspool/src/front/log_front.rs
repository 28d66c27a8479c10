//! A logger for the crate `log`.
//!
//! `log` gives a record as `fmt::Arguments`, which cannot be copied. So the caller makes the text, unless it has no
//! arguments.
//!
//! ```no_run
//! logspool::front::builder().file("app.log").start()?;
//! logspool::front::log_front::start()?;
//! log::info!(target: "shop", order = 17; "done");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use log::kv::{Error, Key, Value, VisitSource, VisitValue};
use log::{LevelFilter, Log, Metadata, Record, SetLoggerError};

use super::argument::{Encoded, Keyed};
use super::places::PlaceKey;
use super::{Level, registry, site};

/// The logger.
#[derive(Debug)]
struct LogFront;

/// Makes this the logger of the crate `log`. Call it after [`Builder::start`](super::Builder::start).
///
/// `log` takes one logger, and `init` of `tracing-subscriber` with its feature `tracing-log`, which is a default one,
/// sets another: it panics after this call. A program with `tracing_layer` does not need this
/// call: `init` sends the records of `log` to the layer. With both, use `try_init`, whose error tells only of `log`.
///
/// # Errors
///
/// The program has set a logger before.
pub fn start() -> Result<(), SetLoggerError> {
    log::set_logger(&LogFront)?;
    // `begin` compares the level: it may change later.
    log::set_max_level(LevelFilter::Trace);
    Ok(())
}

fn level_of(level: log::Level) -> Level {
    match level {
        log::Level::Trace => Level::Trace,
        log::Level::Debug => Level::Debug,
        log::Level::Info => Level::Info,
        log::Level::Warn => Level::Warn,
        log::Level::Error => Level::Error,
    }
}

impl Log for LogFront {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        level_of(metadata.level()) as u16 >= registry::min_level()
    }

    fn log(&self, record: &Record<'_>) {
        let level = level_of(record.level());
        if (level as u16) < registry::min_level() {
            return;
        }
        let key = PlaceKey {
            level,
            target: record.target(),
            file: record.file().unwrap_or(""),
            line: record.line().unwrap_or(0),
            function: "",
        };
        let Some(call) = site::begin_at(&key) else { return };
        let mut fields = Encoded::default();
        // The visitor reports no error.
        let _ = record.key_values().visit(&mut fields);
        call.send_text(&(fields, ()), *record.args());
    }

    fn flush(&self) {
        crate::pipeline::flush(None, Some(crate::pipeline::shutdown_timeout()));
    }
}

impl<'kvs> VisitSource<'kvs> for Encoded {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        value.visit(OneField { fields: self, key: key.as_str() })
    }
}

struct OneField<'a> {
    fields: &'a mut Encoded,
    key: &'a str,
}

impl<'v> VisitValue<'v> for OneField<'_> {
    fn visit_any(&mut self, value: Value<'_>) -> Result<(), Error> {
        self.fields.push(&Keyed(self.key, super::display(value)));
        Ok(())
    }

    fn visit_u64(&mut self, value: u64) -> Result<(), Error> {
        self.fields.push(&Keyed(self.key, value));
        Ok(())
    }

    fn visit_i64(&mut self, value: i64) -> Result<(), Error> {
        self.fields.push(&Keyed(self.key, value));
        Ok(())
    }

    fn visit_u128(&mut self, value: u128) -> Result<(), Error> {
        self.fields.push(&Keyed(self.key, value));
        Ok(())
    }

    fn visit_i128(&mut self, value: i128) -> Result<(), Error> {
        self.fields.push(&Keyed(self.key, value));
        Ok(())
    }

    fn visit_f64(&mut self, value: f64) -> Result<(), Error> {
        self.fields.push(&Keyed(self.key, value));
        Ok(())
    }

    fn visit_bool(&mut self, value: bool) -> Result<(), Error> {
        self.fields.push(&Keyed(self.key, value));
        Ok(())
    }

    fn visit_str(&mut self, value: &str) -> Result<(), Error> {
        self.fields.push(&Keyed(self.key, value));
        Ok(())
    }

    fn visit_char(&mut self, value: char) -> Result<(), Error> {
        self.fields.push(&Keyed(self.key, value));
        Ok(())
    }
}
