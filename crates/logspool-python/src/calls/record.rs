//! Queues a finished `LogRecord` by its values, for an adopted handler that stock logging calls.
//!
//! Pipeline stage: *capture*, on the stock path (see ARCHITECTURE.md). Every value that a format shows is read from the
//! record and never looked up again. The record may have been made elsewhere or changed by a filter. The collector
//! would not render some records as Python does: records with a renamed level, or a time that cannot be reproduced to
//! the bit. For these records [`queue`] returns [`ByValueOutcome::No`], and the line is formatted in the caller.
//!
//! Python's formatter sets `message`, `asctime` and `exc_text` on the record. They can be left out if this handler is
//! the last code that sees the record: the logger of that name has no further handler, and no filter has kept the
//! record. Otherwise, for example after a `QueueListener`, they are set here as Python's formatter sets them.

use std::sync::Arc;

use logspool_record::{Head, tag};
use logspool_sys::generation;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::calls::attribute::Attribute;
use crate::calls::pieces::{Pieces, QueueOutcome, small_int};
use crate::calls::record_attributes::{RecordAttributes, RecordTime};
use crate::calls::record_message::plain_text;
use crate::calls::record_template::RecordTemplate;
use crate::calls::record_texts::AppendedParts;
use crate::calls::rules::{self, LineOrigin};
use crate::calls::site::Site;
use crate::calls::{context, fields, message, record_class};
use crate::interpreter::dict::{self, DictWalk};
use crate::interpreter::failure::Failure;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::plans::environment::IdValidity;
use crate::plans::handler_states::{Adoption, HandlerState};
use crate::plans::text_stream;

/// Outcome of queueing a record by value.
pub enum ByValueOutcome {
    /// The record is in the queue, or was refused and counted.
    Done,
    /// The caller has to format the line.
    No,
    /// An exception is set that no handler catches.
    Raised,
}

/// Which other code may still see the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenBy {
    /// No other code: only the running logging call has a reference to the record.
    Nobody,
    /// Other handlers, or code that keeps the record.
    Others,
}

/// The destination of an adopted handler's records.
pub struct Destination<'a> {
    /// The handler's state, which is still valid.
    pub state: &'a HandlerState,
    /// The adoption of the handler.
    pub adoption: &'a Adoption,
    /// The open sink.
    pub sink: u32,
    /// The id epoch and epoch under which the other fields were found.
    pub made_under: IdValidity,
}

/// How the running logging call has made a record. Python code may have changed the record since.
pub struct RecordOrigin<'a> {
    /// The site of the call.
    pub site: &'a Site,
    /// The time of the record.
    pub time: &'a RecordTime,
}

/// Texts of a record that the formatter's steps have made. The record has them as its attributes already.
pub struct MadeTexts<'a> {
    /// `record.message`
    pub message: &'a Owned,
    /// `record.asctime`
    pub asctime: &'a Owned,
}

/// Queues a record whose time the formatter's own `formatTime` has made into a text.
pub fn queue_with(
    texts: &MadeTexts<'_>,
    to: &Destination<'_>,
    handler: Object<'_, '_>,
    record: Object<'_, '_>,
    origin: Option<&RecordOrigin<'_>>,
) -> ByValueOutcome {
    outcome(read(SeenBy::Others, to, handler, record, origin, Some(texts)))
}

/// Queues a record that has passed the handler's filters by its values, if the collector renders it as Python does.
pub fn queue(
    seen_by: SeenBy,
    to: &Destination<'_>,
    handler: Object<'_, '_>,
    record: Object<'_, '_>,
    origin: Option<&RecordOrigin<'_>>,
) -> ByValueOutcome {
    outcome(read(seen_by, to, handler, record, origin, None))
}

fn outcome(read: Result<ByValueOutcome, Failure>) -> ByValueOutcome {
    match read {
        Ok(what) => what,
        Err(Failure::Stock) => ByValueOutcome::No,
        Err(Failure::Raised) => ByValueOutcome::Raised,
    }
}

fn read(
    seen_by: SeenBy,
    to: &Destination<'_>,
    handler: Object<'_, '_>,
    record: Object<'_, '_>,
    origin: Option<&RecordOrigin<'_>>,
    texts: Option<&MadeTexts<'_>>,
) -> Result<ByValueOutcome, Failure> {
    let py = record.py();
    let (sink, made_under) = (to.sink, to.made_under);
    if !record_class::is_plain(record) {
        return Ok(ByValueOutcome::No);
    }
    let Some(reading) = to.state.reading(py, to.adoption)? else { return Ok(ByValueOutcome::No) };
    let line_attributes = reading.line_attributes;
    let own = object::own_attributes(record)?;
    if line_attributes.attribute_names && !all_named(own.bind(py)) {
        return Ok(ByValueOutcome::No);
    }
    if reading.id_epoch != made_under.id_epoch || !reading.globals.record_class.is_same() {
        return Ok(ByValueOutcome::No);
    }
    let attributes = RecordAttributes { own: own.bind(py) };
    let mut appended = AppendedParts::of(&attributes)?;
    let is_own = reading.format.1.own_exceptions && !appended.are_none();
    if is_own || to.adoption.format.as_ref().is_ok_and(|parts| appended.are_made_by(parts.own_texts.for_record)) {
        return Ok(ByValueOutcome::No);
    }
    let name = attributes.exact_str(Attribute::Name)?;
    let name = reading.name(handler, name.bind(py), sink, made_under.epoch)?;
    let is_last_stop = seen_by == SeenBy::Nobody
        || name.last_stop.as_ref().is_some_and(|lists| lists.iter().all(|list| list.fresh(py)));
    if reading.format.1.last_stop && !is_last_stop {
        return Ok(ByValueOutcome::No);
    }
    let level = attributes.level(&reading.globals)?;
    let time = attributes.time(reading.globals.cpython.arithmetic(), origin.map(|origin| origin.time))?;
    let needs = reading.format.1;
    if line_attributes.process_id
        && small_int(attributes.get(Attribute::Process)?.bind(py)) != Some(i64::from(generation::process_id()))
    {
        return Ok(ByValueOutcome::No);
    }
    let has_place = |site: &&Site| {
        let is_at = |template: &Arc<RecordTemplate>| template.has_place_of(attributes.own, line_attributes.file);
        !needs.caller || site.record_template().get().is_some_and(is_at)
    };
    let known = origin.map(|origin| origin.site).filter(has_place);
    let place = if needs.caller && known.is_none() { Some(attributes.place(line_attributes.file)?) } else { None };
    let site = match (&place, known) {
        (Some(place), _) => &place.site,
        (None, Some(site)) => site,
        (None, None) => no_place(),
    };
    // `message` and `arguments` are declared before the pieces, which point into them.
    let mut message = attributes.get(Attribute::Message)?;
    let mut arguments = attributes.get(Attribute::Arguments)?;
    let has_items = needs.message_items && message.bind(py).is_instance_of::<PyDict>();
    if has_items {
        let has_arguments = object::tuple_items(arguments.bind(py)).is_none_or(|values| !values.is_empty());
        if needs.message_text || has_arguments || texts.is_some() || !is_last_stop || !appended.are_none() {
            return Err(Failure::Stock);
        }
    }
    if let Some(texts) = texts {
        message = Owned::of(&texts.message.bind(py));
        arguments = Owned::none(py);
    } else if !is_last_stop {
        message = plain_text(py, message, &arguments)?;
        arguments = Owned::none(py);
        reading.leave_texts(record, time, &message)?;
    }
    let mut pieces = Pieces::new();
    pieces.word(tag::TIME, time as u64);
    if let Some(texts) = texts {
        context::add_text(py, &mut pieces, tag::ASCTIME, texts.asctime.clone_ref(py))?;
    }
    if needs.thread {
        pieces.word(tag::THREAD, attributes.small_int(Attribute::Thread)? as u64);
    }
    for (needed, tag, attribute) in [
        (needs.thread_name, tag::THREAD_NAME, Attribute::ThreadName),
        (needs.process_name, tag::PROCESS_NAME, Attribute::ProcessName),
    ] {
        if needed {
            context::add_text(py, &mut pieces, tag, attributes.get(attribute)?)?;
        }
    }
    if needs.task_name {
        let task_name = attributes.get(Attribute::Task)?;
        if !task_name.bind(py).is_none() {
            context::add_text(py, &mut pieces, tag::TASK_NAME, task_name)?;
        }
    }
    if let Some(shown) = needs.fields {
        if !shown.arguments().is_empty() {
            return Err(Failure::Stock);
        }
        fields::add_of_record(&mut pieces, shown, attributes.own)?;
    }
    appended.make(py, if is_last_stop { None } else { Some(record) })?;
    appended.add(py, &mut pieces)?;
    let mut call = [message.bind(py); MAX_ARGUMENTS + 1];
    let count = lay_out(&mut call, arguments.bind(py))?;
    let call = Call::positional_only(py, &call[..count]);
    let site = if has_items {
        fields::add_items(&mut pieces, needs.fields, message.bind(py))?;
        message::add_empty(&mut pieces, site, made_under.id_epoch)
    } else {
        message::add(&mut pieces, site, made_under.id_epoch, call)?
    };
    if !to.adoption.stream.text.is_null() {
        // SAFETY: `to` borrows the adoption, which holds the stream and its buffer.
        unsafe { text_stream::empty_buffers(py, &[to.adoption.text_stream(sink)])? };
    }
    if !made_under.holds() {
        return Ok(ByValueOutcome::No);
    }
    let head = Head { len: 0, site, route: name.route, level, flags: 0, ticks: 0 };
    Ok(match rules::queue(py, head, made_under, &pieces, LineOrigin::of_place(record)) {
        QueueOutcome::Done => ByValueOutcome::Done,
        QueueOutcome::Stale => ByValueOutcome::No,
        QueueOutcome::Raised => ByValueOutcome::Raised,
    })
}

/// True if the name of every attribute of a record is a `str`. `extra` may add attributes with other keys.
fn all_named(attributes: Object<'_, '_>) -> bool {
    // No user Python code runs during the loop. Without a GIL another thread could change the dict, so a copy is read
    // in such builds.
    let copied = if cfg!(Py_GIL_DISABLED) { dict::copy(attributes) } else { Ok(Owned::of(&attributes)) };
    let Ok(copied) = copied else { return false };
    let mut walk = DictWalk::of(copied.bind(attributes.py()));
    while let Some((key, _)) = walk.next() {
        if !object::is_str(key) {
            return false;
        }
    }
    true
}

/// Maximum number of arguments of a record that is queued by value.
const MAX_ARGUMENTS: usize = 16;

/// Places the arguments after the message, in the order of a call. Returns the number of values, including the message.
fn lay_out<'a, 'py: 'a>(
    call: &mut [Object<'a, 'py>; MAX_ARGUMENTS + 1],
    arguments: Object<'a, 'py>,
) -> Result<usize, Failure> {
    if arguments.is_none() {
        return Ok(1);
    }
    let values = object::tuple_items(arguments).ok_or(Failure::Stock)?;
    let places = call.get_mut(1..=values.len()).ok_or(Failure::Stock)?;
    places.copy_from_slice(values);
    // In a logging call with a single mapping, `LogRecord` would have taken the mapping out of the tuple.
    if let [value] = values
        && !object::is_scalar(*value)
    {
        return Err(Failure::Stock);
    }
    Ok(values.len() + 1)
}

/// The site of records whose format shows no location. It only identifies the message.
fn no_place() -> &'static Site {
    static NO_SITE: std::sync::OnceLock<Site> = std::sync::OnceLock::new();
    NO_SITE.get_or_init(|| Site::of_record(String::new(), 0, String::new()))
}
