//! The steps of `logging.Formatter.format`, done natively as far as the formatter's methods are the stock ones.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Each step reads what stock logging reads, in the same order. A
//! method that a program has replaced, on a class or on an instance, is called. If anything raises, the caller lets
//! stock logging format the record again, so that an error report shows the same frames as without logspool.

use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::calls::attribute::Attribute;
use crate::calls::format_time::{self, TimeFunctions};
use crate::calls::percent_line;
use crate::calls::record::MadeTexts;
use crate::calls::record_attributes::{RecordAttributes, RecordTime};
use crate::calls::record_message::plain_text;
use crate::interpreter::dict;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned};
use crate::plans::callbacks::record_class;
use crate::plans::format_parts::CalledMethod;
use crate::plans::reading::RecordReading;

/// The stock functions of formatting. In place of one that was patched before logspool was connected there is `None`,
/// so that no method is taken for it.
pub struct FormattingObjects {
    /// `logging.Handler.format`
    pub handler_format: Owned,
    /// `logging.Formatter.format`, and the native method that replaces it.
    pub format: [Owned; 2],
    /// `logging.Formatter.usesTime`
    pub uses_time: Owned,
    /// `logging.Formatter.formatTime`, and the native method that replaces it.
    pub format_time: [Owned; 2],
    /// `logging.Formatter.formatMessage`, and the native method that replaces it.
    pub format_message: [Owned; 2],
    /// `logging.Formatter.formatStack`
    pub format_stack: Owned,
    /// `logging.PercentStyle.usesTime`
    pub style_uses_time: Owned,
    /// `logging.PercentStyle.format`
    pub style_format: Owned,
    /// `logging.PercentStyle._format`
    pub percent_format: Owned,
    /// `logging.LogRecord.getMessage`, and the native method that replaces it.
    pub get_message: [Owned; 2],
    /// What `formatTime` calls. Its dict of the module `logging` has the default formatter.
    pub times: TimeFunctions,
}

static STOCK: OnceLock<FormattingObjects> = OnceLock::new();

/// Sets the stock functions. Later calls change nothing.
pub fn set_stock(stock: FormattingObjects) {
    let _ = STOCK.set(stock);
}

/// What the steps have made of a record.
pub enum FormatOutcome<T> {
    /// The result of `handler.format(record)`.
    Line(Owned),
    /// The record is delivered without a finished line.
    Delivered(T),
}

/// A formatter of a handler that was described: native code does everything of its format but one method.
pub struct DescribedFormatter<'a> {
    /// The method that is called.
    pub called: CalledMethod,
    /// How the handler's records are read.
    pub reading: &'a RecordReading,
    /// The time with which the running logging call has made the record.
    pub time: Option<&'a RecordTime>,
}

/// Does `handler.format(record)`; `None` with an exception set. Runs user Python code.
///
/// With a `formatter`, does `formatter.format(record)` instead. With `described`, the handler's methods are the stock
/// ones, and its formatter is the one that was described. `deliver` receives the record's message and the text of
/// its time, if only the text of the line is missing. If it returns a result, there is no line.
pub fn formatted<T>(
    handler: Object<'_, '_>,
    formatter: Option<Object<'_, '_>>,
    described: Option<&DescribedFormatter<'_>>,
    record: Object<'_, '_>,
    deliver: impl FnOnce(&MadeTexts<'_>) -> Option<T>,
) -> Option<FormatOutcome<T>> {
    let py = record.py();
    if let (Some(formatter), Some(stock)) = (formatter, STOCK.get()) {
        return format(stock, formatter, None, record, deliver);
    }
    let is_stock = |stock: &&FormattingObjects| {
        described.is_some()
            || Part::of(handler).is_some_and(|handler| handler.has(&names().format, &stock.handler_format))
    };
    let Some(stock) = STOCK.get().filter(is_stock) else {
        return leaving::method_of_one(handler, &names().format, record).map(FormatOutcome::Line);
    };
    let mut formatter = leaving::attribute(handler, &names().formatter)?;
    if !leaving::is_true(formatter.bind(py))? {
        let Some(default) = dict::get(stock.times.logging.bind(py), &names().default_formatter) else {
            return leaving::method_of_one(handler, &names().format, record).map(FormatOutcome::Line);
        };
        formatter = default;
    }
    format(stock, formatter.bind(py), described, record, deliver)
}

/// Does `formatter.format(record)`; `None` with an exception set.
fn format<T>(
    stock: &FormattingObjects,
    formatter: Object<'_, '_>,
    described: Option<&DescribedFormatter<'_>>,
    record: Object<'_, '_>,
    deliver: impl FnOnce(&MadeTexts<'_>) -> Option<T>,
) -> Option<FormatOutcome<T>> {
    let py = record.py();
    let names = names();
    let has_stock_format = |part: &Part<'_, '_>| described.is_some() || part.has_one(&names.format, &stock.format);
    let (Some(part), Some(mut record)) = (Part::of(formatter).filter(has_stock_format), PlainRecord::of(record)) else {
        return leaving::method_of_one(formatter, &names.format, record).map(FormatOutcome::Line);
    };
    let (called, message) =
        match described.and_then(|described| Some((described, described.begin(stock, &mut record)?))) {
            Some((described, message)) => (Some(described.called), message),
            None => {
                let message = record.message(stock)?;
                record.set(&names.message, &message)?;
                (None, message)
            }
        };
    let needs_time = match called {
        Some(called) => called == CalledMethod::Time,
        None => uses_time(stock, &part)?,
    };
    if needs_time {
        let datefmt = leaving::attribute(formatter, &names.datefmt)?;
        let stock_text = || stock_time(stock, &part, &record, datefmt.bind(py));
        let asctime = match called.map_or_else(stock_text, |_| None) {
            Some(asctime) => asctime,
            None => leaving::method_of_two(formatter, &names.format_time, record.object, datefmt.bind(py))?,
        };
        record.look_again(described);
        record.set(&names.asctime, &asctime)?;
        // `formatTime` may have changed the message.
        if record.has_still(&names.message, &message)?
            && let Some(delivered) = deliver(&MadeTexts { message: &message, asctime: &asctime })
        {
            return Some(FormatOutcome::Delivered(delivered));
        }
    }
    let mut line = match called {
        Some(CalledMethod::Message) => leaving::method_of_one(formatter, &names.format_message, record.object)?,
        Some(CalledMethod::Time) | None => shown(stock, &part, &record)?,
    };
    record.look_again(described);
    let exc_info = record.get(Attribute::Exception)?;
    if leaving::is_true(exc_info.bind(py))? && !leaving::is_true(record.get(Attribute::ExceptionText)?.bind(py))? {
        let text = leaving::method_of_one(formatter, &names.format_exception, exc_info.bind(py))?;
        record.set(&names.exc_text, &text)?;
    }
    let exc_text = record.get(Attribute::ExceptionText)?;
    if leaving::is_true(exc_text.bind(py))? {
        line = with_lines(line, &exc_text, py)?;
    }
    let stack = record.get(Attribute::Stack)?;
    if leaving::is_true(stack.bind(py))? {
        let text = match part.has(&names.format_stack, &stock.format_stack) {
            true => stack,
            false => leaving::method_of_one(formatter, &names.format_stack, stack.bind(py))?,
        };
        line = with_lines(line, &text, py)?;
    }
    Some(FormatOutcome::Line(line))
}

/// Returns the text of the time if `formatter.formatTime` is the stock one and runs no Python code of the program.
fn stock_time(
    stock: &FormattingObjects,
    formatter: &Part<'_, '_>,
    record: &PlainRecord<'_, '_>,
    datefmt: Object<'_, '_>,
) -> Option<Owned> {
    if !formatter.has_one(&names().format_time, &stock.format_time) {
        return None;
    }
    format_time::stock_text(&stock.times, formatter.object, record.object, datefmt)
}

/// The stock `formatter.format(record)`, if it runs no Python code of the program and raises nothing. `None`: the stock
/// function has to do it.
pub fn stock_line(formatter: Object<'_, '_>, record: Object<'_, '_>) -> Option<Owned> {
    let py = record.py();
    let names = names();
    let stock = STOCK.get()?;
    let (part, record) = (Part::of(formatter)?, PlainRecord::of(record)?);
    let are_stock =
        part.has(&names.uses_time, &stock.uses_time) && part.has_one(&names.format_message, &stock.format_message);
    if !are_stock || !Part::of(record.object)?.has_one(&names.get_message, &stock.get_message) {
        return None;
    }
    for name in [&names.exc_info, &names.exc_text, &names.stack_info] {
        if !object::attribute(record.object, name)?.bind(py).is_none() {
            return None;
        }
    }
    let style = object::attribute(formatter, &names.style)?;
    let style = Part::of(style.bind(py))?;
    if !style.has(&names.uses_time, &stock.style_uses_time) || !fills_in(stock, &style) {
        return None;
    }
    let (message, arguments) =
        (object::attribute(record.object, &names.msg)?, object::attribute(record.object, &names.args)?);
    let message = plain_text(py, message, &arguments).ok()?;
    let made = record.set(&names.message, &message).and_then(|()| {
        if uses_time(stock, &part)? {
            let datefmt = object::attribute(formatter, &names.datefmt)?;
            record.set(&names.asctime, &stock_time(stock, &part, &record, datefmt.bind(py))?)?;
        }
        shown(stock, &part, &record)
    });
    if made.is_none() {
        object::clear_error(py);
    }
    made
}

/// The stock `formatter.formatMessage(record)`, under the conditions of [`stock_line`].
pub fn stock_message_of(formatter: Object<'_, '_>, record: Object<'_, '_>) -> Option<Owned> {
    let py = record.py();
    let names = names();
    let stock = STOCK.get()?;
    PlainRecord::of(record)?;
    let style = dict::get(Part::of(formatter)?.own.bind(py), &names.style)?;
    let style = Part::of(style.bind(py)).filter(|style| fills_in(stock, style))?;
    let attribute = |name| dict::get(style.own.bind(py), name);
    if !is_known_false(attribute(&names.defaults)?.bind(py)) {
        return None;
    }
    percent_line::fill_in(attribute(&names.fmt)?.bind(py), object::own_attributes(record).ok()?.bind(py))
}

/// The stock `formatter.formatTime(record, datefmt)`, under the conditions of [`stock_line`].
pub fn stock_time_of(formatter: Object<'_, '_>, record: Object<'_, '_>, datefmt: Object<'_, '_>) -> Option<Owned> {
    PlainRecord::of(record)?;
    Part::of(formatter)?;
    format_time::stock_text(&STOCK.get()?.times, formatter, record, datefmt)
}

/// True for `None` and for an empty exact dict.
fn is_known_false(object: Object<'_, '_>) -> bool {
    object.is_none() || object.is_exact_instance_of::<PyDict>() && dict::is_empty(object)
}

/// True if a style fills in its format by the operator `%`.
fn fills_in(stock: &FormattingObjects, style: &Part<'_, '_>) -> bool {
    let names = names();
    style.has(&names.format, &stock.style_format) && style.has(&names.style_format, &stock.percent_format)
}

/// Returns whether `formatter.usesTime()` is true; `None` with an exception set.
fn uses_time(stock: &FormattingObjects, formatter: &Part<'_, '_>) -> Option<bool> {
    let py = formatter.object.py();
    let names = names();
    let answer = if formatter.has(&names.uses_time, &stock.uses_time) {
        let style = leaving::attribute(formatter.object, &names.style)?;
        let style = style.bind(py);
        if Part::of(style).is_some_and(|style| style.has(&names.uses_time, &stock.style_uses_time)) {
            let format = leaving::attribute(style, &names.fmt)?;
            let searched = leaving::attribute(style, &names.asctime_search)?;
            if object::is_exact_str(format.bind(py)) && object::is_exact_str(searched.bind(py)) {
                // SAFETY: two live `str` of an attached thread.
                return match unsafe {
                    ffi::PyUnicode_Find(format.as_ptr(), searched.as_ptr(), 0, ffi::Py_ssize_t::MAX, 1)
                } {
                    -2 => None,
                    found => Some(found >= 0),
                };
            }
        }
        leaving::method(style, &names.uses_time)?
    } else {
        leaving::method(formatter.object, &names.uses_time)?
    };
    leaving::is_true(answer.bind(py))
}

/// Returns `formatter.formatMessage(record)`; `None` with an exception set.
fn shown(stock: &FormattingObjects, formatter: &Part<'_, '_>, record: &PlainRecord<'_, '_>) -> Option<Owned> {
    let py = formatter.object.py();
    let names = names();
    if !formatter.has_one(&names.format_message, &stock.format_message) {
        return leaving::method_of_one(formatter.object, &names.format_message, record.object);
    }
    let style = leaving::attribute(formatter.object, &names.style)?;
    let style = style.bind(py);
    if Part::of(style).is_some_and(|style| fills_in(stock, &style))
        && let defaults = leaving::attribute(style, &names.defaults)?
        && !leaving::is_true(defaults.bind(py))?
    {
        let format = leaving::attribute(style, &names.fmt)?;
        let values = leaving::attribute(record.object, &names.dict)?;
        if let Some(line) = percent_line::fill_in(format.bind(py), values.bind(py)) {
            return Some(line);
        }
        return leaving::remainder(format.bind(py), values.bind(py));
    }
    leaving::method_of_one(style, &names.format, record.object)
}

/// Appends the text of an exception or a stack to a line; `None` with an exception set.
fn with_lines(line: Owned, text: &Owned, py: Python<'_>) -> Option<Owned> {
    let bound = line.bind(py);
    if !object::is_exact_str(bound) || !object::is_exact_str(text.bind(py)) {
        pyo3::exceptions::PyTypeError::new_err("a formatter made no plain str").restore(py);
        return None;
    }
    // SAFETY: live `str` of an attached thread; each result is a new reference or null with an error set.
    unsafe {
        let length = ffi::PyUnicode_GetLength(line.as_ptr());
        let ends = length > 0 && ffi::PyUnicode_ReadChar(line.as_ptr(), length - 1) == u32::from('\n');
        let line = if ends {
            line
        } else {
            let end = Owned::steal(ffi::PyUnicode_FromStringAndSize(c"\n".as_ptr(), 1))?;
            Owned::steal(ffi::PyUnicode_Concat(line.as_ptr(), end.as_ptr()))?
        };
        Owned::steal(ffi::PyUnicode_Concat(line.as_ptr(), text.as_ptr()))
    }
}

/// An object whose methods are found as those of an ordinary Python object: on itself, then on its class.
struct Part<'a, 'py> {
    object: Object<'a, 'py>,
    /// The object's own attributes.
    own: Owned,
}

impl<'a, 'py> Part<'a, 'py> {
    /// `None` if the class looks up attributes in another way, or if the object has no `__dict__`.
    fn of(object: Object<'a, 'py>) -> Option<Self> {
        if !object::looks_up_plainly(object) {
            return None;
        }
        Some(Self { object, own: object::own_attributes(object).ok()? })
    }

    /// True if the method of this name is the stock function or the native one in its place.
    fn has_one(&self, name: &Owned, functions: &[Owned; 2]) -> bool {
        functions.iter().any(|function| self.has(name, function))
    }

    /// True if the method of this name is the stock function.
    fn has(&self, name: &Owned, stock: &Owned) -> bool {
        let py = self.object.py();
        object::of_class(self.object, name.bind(py)) == stock.as_ptr() && dict::get(self.own.bind(py), name).is_none()
    }
}

/// A record of the class `logging.LogRecord` itself.
struct PlainRecord<'a, 'py> {
    object: Object<'a, 'py>,
    /// The record's `__dict__`, if no attribute of its class comes before those of the record.
    own: Option<Owned>,
}

impl<'a, 'py> PlainRecord<'a, 'py> {
    /// `None` for a record of another class, and if the class sets attributes in another way than most classes.
    fn of(record: Object<'a, 'py>) -> Option<Self> {
        let class = object::class_of(record);
        // SAFETY: a live type; only the address of a function is compared.
        let sets_plainly = unsafe {
            (*class).tp_setattro.is_some_and(|set| set as usize == ffi::PyObject_GenericSetAttr as *const () as usize)
        };
        let is_exact = record_class().is_some_and(|known| known.as_ptr() == class.cast());
        (is_exact && sets_plainly && object::looks_up_plainly(record)).then_some(Self { object: record, own: None })
    }

    fn get(&self, attribute: Attribute) -> Option<Owned> {
        let own = self.own.as_ref().and_then(|own| attribute.of(own.bind(self.object.py())));
        own.or_else(|| leaving::attribute(self.object, attribute.name()))
    }

    /// True if an attribute that formatters add is still this object.
    fn has_still(&self, name: &Owned, value: &Owned) -> Option<bool> {
        let own = self.own.as_ref().and_then(|own| dict::get(own.bind(self.object.py()), name));
        let found = own.or_else(|| leaving::attribute(self.object, name))?;
        Some(found.as_ptr() == value.as_ptr())
    }

    fn set(&self, name: &Owned, value: &Owned) -> Option<()> {
        if let Some(own) = &self.own {
            return dict::set(own.bind(self.object.py()), name, value).ok();
        }
        // SAFETY: live objects of an attached thread; the class sets attributes without user Python code.
        (unsafe { ffi::PyObject_SetAttr(self.object.as_ptr(), name.as_ptr(), value.as_ptr()) } == 0).then_some(())
    }

    /// Finds the record's `__dict__` again after user Python code has run, which may have replaced it.
    fn look_again(&mut self, described: Option<&DescribedFormatter<'_>>) {
        let is_plain = described.is_some_and(|described| described.reading.globals.record_class.is_same());
        if self.own.take().is_some() && is_plain {
            self.own = object::own_attributes(self.object).ok();
        }
    }

    /// Returns `record.getMessage()`; `None` with an exception set.
    fn message(&self, stock: &FormattingObjects) -> Option<Owned> {
        let py = self.object.py();
        let names = names();
        if !Part::of(self.object).is_some_and(|record| record.has_one(&names.get_message, &stock.get_message)) {
            return leaving::method(self.object, &names.get_message);
        }
        let mut message = self.get(Attribute::Message)?;
        if !object::is_exact_str(message.bind(py)) {
            message = leaving::str(message.bind(py))?;
        }
        let arguments = self.get(Attribute::Arguments)?;
        match plain_text(py, message.clone_ref(py), &arguments) {
            Ok(text) => return Some(text),
            Err(Failure::Raised) => return None,
            Err(Failure::Stock) => {}
        }
        let has_some = match object::tuple_items(arguments.bind(py)) {
            Some(values) => !values.is_empty(),
            None => leaving::is_true(arguments.bind(py))?,
        };
        if has_some { leaving::remainder(message.bind(py), arguments.bind(py)) } else { Some(message) }
    }
}

impl DescribedFormatter<'_> {
    /// Sets `message` on a record, and also `asctime` if the method that is called comes after it. Returns the message.
    /// `None`: nothing was done, because that could run user Python code or raise.
    fn begin(&self, stock: &FormattingObjects, record: &mut PlainRecord<'_, '_>) -> Option<Owned> {
        let py = record.object.py();
        let globals = &self.reading.globals;
        let part = Part::of(record.object)?;
        if !globals.record_class.is_same() || !part.has_one(&names().get_message, &stock.get_message) {
            return None;
        }
        let attributes = RecordAttributes { own: part.own.bind(py) };
        let (message, arguments) = (attributes.get(Attribute::Message), attributes.get(Attribute::Arguments));
        let message = plain_text(py, message.ok()?, &arguments.ok()?).ok()?;
        let asctime = match self.called {
            CalledMethod::Time => None,
            CalledMethod::Message => {
                let time = attributes.time(globals.cpython.arithmetic(), self.time).ok()?;
                self.reading.asctime(py, time).ok()?
            }
        };
        let Part { own, .. } = part;
        dict::set(own.bind(py), &names().message, &message).ok()?;
        if let Some(asctime) = asctime {
            dict::set(own.bind(py), &names().asctime, &asctime).ok()?;
        }
        record.own = Some(own);
        Some(message)
    }
}
