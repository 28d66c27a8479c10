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
//! tracing_subscriber::registry().with(logspool::front::tracing_layer::TracingLayer).init();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A record has the fields of all its spans, the outermost first, and the field `span`: the names of the spans, joined
//! by `:`. A field of the event hides a field of the same name of a span, and an inner span's field one of an outer span.

use std::fmt::{self, Write};

use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::argument::{Argument, Encoded, Keyed, ValueWriter};
use super::places::PlaceKey;
use super::{Level, registry, site};

/// The layer. It takes the levels from [`Builder::level`](super::Builder::level); filters of `tracing-subscriber` work
/// too.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracingLayer;

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
    message: String,
}

#[derive(Debug)]
struct RecordedField {
    name: &'static str,
    encoded: Encoded,
}

impl RecordedFields {
    fn put_encoded(&mut self, name: &'static str, encoded: Encoded) {
        self.fields.retain(|known| known.name != name);
        self.fields.push(RecordedField { name, encoded });
    }

    fn put(&mut self, field: &Field, value: impl Argument) {
        let mut encoded = Encoded::default();
        encoded.push(&Keyed(field.name(), value));
        self.put_encoded(field.name(), encoded);
    }
}

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
        if field.name() == "message" {
            self.message.push_str(value);
        } else {
            self.put(field, value);
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, super::display(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}");
        } else {
            self.put(field, super::debug(value));
        }
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
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<RecordedFields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
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
        site::with_buffer(|message| send(call, event, &context, message));
    }
}

/// Queues the record of an event. Its message is made in `message`, which is empty.
fn send<S>(call: site::Call<'_>, event: &Event<'_>, context: &Context<'_, S>, message: &mut String)
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let mut own = RecordedFields { fields: Vec::new(), message: std::mem::take(message) };
    event.record(&mut own);
    *message = own.message;
    let mut names = String::new();
    let mut fields = RecordedFields::default();
    for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
        let separator = if names.is_empty() { "" } else { ":" };
        let _ = write!(names, "{separator}{}", span.name());
        if let Some(recorded) = span.extensions().get::<RecordedFields>() {
            recorded.fields.iter().for_each(|field| fields.put_encoded(field.name, field.encoded.clone()));
        }
    }
    own.fields.into_iter().for_each(|field| fields.put_encoded(field.name, field.encoded));
    if names.is_empty() {
        call.send_message(&(fields, ()), message);
    } else {
        call.send_message(&(Keyed("span", names.as_str()), (fields, ())), message);
    }
}
