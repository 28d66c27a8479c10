//! A layer for `tracing-subscriber`: events become records, with the fields of their spans.
//!
//! `tracing` gives values as `fmt::Arguments` or as numbers and texts. The caller makes the text of the message; fields
//! that are numbers, texts and switches are copied.
//!
//! ```no_run
//! use tracing_subscriber::layer::SubscriberExt;
//! use tracing_subscriber::util::SubscriberInitExt;
//!
//! logspool::front::builder().file("app.log").start()?;
//! tracing_subscriber::registry().with(logspool::front::tracing_layer::layer()).init();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A record has the fields of all its spans, the outermost first, and the field `span`: the names of the spans, joined
//! by `:`. A field of the event hides a field of the same name of a span, and an inner span's field one of an outer
//! span. The causes of an error are a field of their own, `NAME.sources`. An event that `tracing-log` has made of a
//! record of the crate `log` has the target and the location of that record.

use std::borrow::Cow;
use std::fmt::{self, Write};

use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, LevelFilter, Metadata, Subscriber};
use tracing_log::NormalizeEvent;
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::layer::{Context, Filter, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::argument::{Argument, Encoded, Keyed, ValueWriter};
use super::places::PlaceKey;
use super::{Level, registry, site};

/// The layer with its filter: the levels of [`Builder::level`](super::Builder::level) and
/// [`Builder::level_for`](super::Builder::level_for). An event or a span that they leave out costs one load, and other
/// layers still get it. A span that is left out adds no fields.
pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> Filtered<TracingLayer, Levels, S> {
    TracingLayer.with_filter(Levels)
}

/// The layer without a filter: it compares the level of each event itself, which costs 35 to 75 ns for an event that is
/// left out, and takes the fields of all spans, 0.7 to 1.4 us each. Filters of `tracing-subscriber` work with it.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracingLayer;

/// The filter of [`layer`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Levels;

/// Name that `tracing-log` gives to the events that it makes. Their target and level are found in their fields.
const LOG_EVENT: &str = "log event";

impl Levels {
    fn accepts(metadata: &Metadata<'_>) -> bool {
        let level = level_of(*metadata.level()) as u16;
        level >= registry::min_level() && (metadata.name() == LOG_EVENT || registry::accepts(metadata.target(), level))
    }
}

impl<S> Filter<S> for Levels {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        Self::accepts(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if Self::accepts(metadata) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let min_level = registry::min_level();
        let levels = [LevelFilter::TRACE, LevelFilter::DEBUG, LevelFilter::INFO, LevelFilter::WARN, LevelFilter::ERROR];
        let is_on = |filter: &LevelFilter| filter.into_level().is_some_and(|level| level_of(level) as u16 >= min_level);
        Some(levels.into_iter().find(is_on).unwrap_or(LevelFilter::OFF))
    }
}

fn level_of(level: tracing_core::Level) -> Level {
    match level {
        tracing_core::Level::TRACE => Level::Trace,
        tracing_core::Level::DEBUG => Level::Debug,
        tracing_core::Level::INFO => Level::Info,
        tracing_core::Level::WARN => Level::Warn,
        _ => Level::Error,
    }
}

/// The fields of a span or of an event, each encoded.
#[derive(Debug, Default)]
struct RecordedFields {
    fields: Vec<RecordedField>,
    /// The message of an event; `None` for a span, whose field `message` is one like others.
    message: Option<String>,
    /// Whether the fields of `tracing-log` are left out.
    is_of_log: bool,
}

#[derive(Debug)]
struct RecordedField {
    name: Cow<'static, str>,
    encoded: Encoded,
}

impl RecordedFields {
    fn put_encoded(&mut self, name: Cow<'static, str>, encoded: Encoded) {
        self.fields.retain(|known| known.name != name);
        self.fields.push(RecordedField { name, encoded });
    }

    fn put_named(&mut self, name: Cow<'static, str>, value: impl Argument) {
        if self.is_of_log && name.starts_with("log.") {
            return;
        }
        let mut encoded = Encoded::default();
        encoded.push(&Keyed(if name == SPAN { SPAN_FIELD } else { &name }, value));
        self.put_encoded(name, encoded);
    }

    fn put(&mut self, field: &Field, value: impl Argument) {
        self.put_named(field.name().into(), value);
    }
}

/// The field with the names of the spans, and the name of a field that a program calls so.
const SPAN: &str = "span";
const SPAN_FIELD: &str = "span_";

impl Visit for RecordedFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.put(field, value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match &mut self.message {
            Some(message) if field.name() == "message" => message.push_str(value),
            _ => self.put(field, value),
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, super::display(value));
        let sources: Vec<_> = std::iter::successors(value.source(), |error| error.source()).map(Text).collect();
        if !sources.is_empty() {
            self.put_named(format!("{}.sources", field.name()).into(), super::debug(sources));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match &mut self.message {
            Some(message) if field.name() == "message" => {
                // An implementation that reports an error shows its text up to the error.
                let _ = write!(message, "{value:?}");
            }
            _ => self.put(field, super::debug(value)),
        }
    }
}

/// Shows an error by its text also where its `Debug` form is asked for.
struct Text<'a>(&'a dyn std::error::Error);

impl fmt::Debug for Text<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0, formatter)
    }
}

impl Argument for RecordedFields {
    fn bytes(&self) -> usize {
        self.fields.iter().map(|field| field.encoded.bytes()).sum()
    }

    fn write(&self, to: &mut ValueWriter) {
        self.fields.iter().for_each(|field| field.encoded.write(to));
    }
}

fn is_enabled(metadata: &Metadata<'_>) -> bool {
    level_of(*metadata.level()) as u16 >= registry::min_level()
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TracingLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = RecordedFields::default();
        attributes.record(&mut fields);
        // Another layer of this kind may have put the same fields there.
        span.extensions_mut().replace(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<RecordedFields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        // First, since it is the cheapest comparison; the level of an event of `log` is that of its record.
        if !is_enabled(event.metadata()) {
            return;
        }
        let of_log = event.normalized_metadata();
        let metadata = of_log.as_ref().unwrap_or(event.metadata());
        if !is_enabled(metadata) {
            return;
        }
        let key = PlaceKey {
            level: level_of(*metadata.level()),
            target: metadata.target(),
            file: metadata.file().unwrap_or(""),
            line: metadata.line().unwrap_or(0),
            function: "",
        };
        let Some(call) = site::begin_at(&key) else { return };
        let is_of_log = of_log.is_some();
        site::with_buffer(|message| send(call, event, is_of_log, &context, message));
    }
}

/// Queues the record of an event. Its message is made in `message`, which is empty.
fn send<S>(call: site::Call<'_>, event: &Event<'_>, is_of_log: bool, context: &Context<'_, S>, message: &mut String)
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let mut own = RecordedFields { fields: Vec::new(), message: Some(std::mem::take(message)), is_of_log };
    event.record(&mut own);
    *message = own.message.unwrap_or_default();
    let mut names = String::new();
    let mut fields = RecordedFields::default();
    for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
        let separator = if names.is_empty() { "" } else { ":" };
        let _ = write!(names, "{separator}{}", span.name());
        if let Some(recorded) = span.extensions().get::<RecordedFields>() {
            recorded.fields.iter().for_each(|field| fields.put_encoded(field.name.clone(), field.encoded.clone()));
        }
    }
    own.fields.into_iter().for_each(|field| fields.put_encoded(field.name, field.encoded));
    if names.is_empty() {
        call.send_message(&(fields, ()), message);
    } else {
        call.send_message(&(Keyed("span", names.as_str()), (fields, ())), message);
    }
}
