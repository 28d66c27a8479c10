//! Makes gunicorn's access lines as its `Logger.access` does, and queues them.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Only the values that the format shows are read. A request with
//! values of other types than gunicorn's own workers give, and a logger whose methods are not gunicorn's own, is left
//! to gunicorn, which logs it or raises what is wrong with it. Nothing was changed then.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::calls::capture::{self, Outcome};
use crate::calls::pieces::small_int;
use crate::events::access_format::{AccessPart, AccessValue, KnownFormat, parse};
use crate::events::access_setup::{AccessSetup, UnchangedDict};
use crate::interpreter::dict::{self, DictWalk, UsualPosition};
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::list::ListWalk;
use crate::interpreter::names::interned;
use crate::interpreter::object::{self, Object, Owned};
use crate::plans::class_version::ClassVersion;
use crate::plans::environment;
use crate::plans::handler_states::read_watched;
use crate::plans::text_stream::StreamWord;

macro_rules! words {
    ($($field:ident = $text:literal,)*) => {
        /// The names that a call looks up.
        struct Words {
            $($field: Owned,)*
        }

        impl Words {
            fn new(py: Python<'_>) -> Self {
                Self { $($field: Owned::of(&PyString::intern(py, $text)),)* }
            }
        }
    };
}

words! {
    access_log = "access_log",
    access_log_enabled = "_access_log_enabled",
    authorization = "HTTP_AUTHORIZATION",
    cfg = "cfg",
    headers = "headers",
    info = "info",
    now = "now",
    protocol = "SERVER_PROTOCOL",
    method = "REQUEST_METHOD",
    sent = "sent",
    settings = "settings",
    status = "status",
    tzname = "tzname",
    uri = "RAW_URI",
    value = "value",
}

/// What `describe` in `logspool.gunicorn` says about a logger; valid while the classes and words are unchanged.
struct Described {
    epoch: u64,
    types: Vec<ClassVersion>,
    watched: Vec<StreamWord>,
    /// References to the objects that contain `watched`.
    _held: Vec<Owned>,
    /// The class of the logger.
    class: usize,
    /// The objects of the package; `None` if its own method has to make the lines.
    stock: Option<StockParts>,
}

/// The classes and names that a line depends on.
struct StockParts {
    /// Names that an instance must not have as attributes.
    overriding: Vec<Owned>,
    /// The class of the logger that takes the lines.
    logger_class: Owned,
    config_class: Owned,
    timedelta: Owned,
    /// The format and its class.
    format: (Owned, Owned),
    /// Settings of which one has to be true, with their classes. Empty if the logger itself keeps the answer.
    enabling: Vec<(Owned, Owned)>,
    /// The namespace of the module `time`.
    time: Owned,
    /// A function that returns the user of an `Authorization` header.
    user_of: Owned,
}

/// The text of a second.
struct AccessTimeText {
    number: i64,
    /// `time.tzname` at that time: `time.tzset` replaces it.
    zone: Owned,
    text: String,
}

/// Makes and queues the access lines of gunicorn.
#[pyclass(frozen, module = "logspool._native")]
pub struct AccessLog {
    /// The function `describe(logger)` of `logspool.gunicorn`.
    describe: Py<PyAny>,
    words: Words,
    described: Mutex<Option<Arc<Described>>>,
    setup: Mutex<Option<Arc<AccessSetup>>>,
    format: Mutex<Option<Arc<KnownFormat>>>,
    second: Mutex<Option<AccessTimeText>>,
    /// Where the method, the address and the protocol usually are in the environment of a request.
    positions: [UsualPosition; 3],
}

/// The values of one request.
struct Request<'a, 'py> {
    response: Object<'a, 'py>,
    request: Object<'a, 'py>,
    environ: Object<'a, 'py>,
    time: Object<'a, 'py>,
}

#[pymethods]
impl AccessLog {
    #[new]
    #[pyo3(signature = (describe, /))]
    fn new(describe: &Bound<'_, PyAny>) -> Self {
        Self {
            describe: describe.clone().unbind(),
            words: Words::new(describe.py()),
            described: Mutex::default(),
            setup: Mutex::default(),
            format: Mutex::default(),
            second: Mutex::default(),
            positions: [const { UsualPosition::new() }; 3],
        }
    }

    /// Do what `logger.access(resp, req, environ, request_time)` of gunicorn does, and return True. Return False
    /// without having done anything if gunicorn's own method has to do it.
    #[pyo3(signature = (logger, resp, req, environ, request_time, /))]
    fn write(
        &self,
        logger: &Bound<'_, PyAny>,
        resp: &Bound<'_, PyAny>,
        req: &Bound<'_, PyAny>,
        environ: &Bound<'_, PyAny>,
        request_time: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let request = Request {
            response: resp.as_borrowed(),
            request: req.as_borrowed(),
            environ: environ.as_borrowed(),
            time: request_time.as_borrowed(),
        };
        match self.try_write(logger.as_borrowed(), &request) {
            Ok(Outcome::Done) => Ok(true),
            Ok(Outcome::Stock) | Err(Failure::Stock) => Ok(false),
            Ok(Outcome::Raised) | Err(Failure::Raised) => Err(PyErr::fetch(logger.py())),
        }
    }
}

impl AccessLog {
    fn try_write(&self, logger: Object<'_, '_>, request: &Request<'_, '_>) -> Result<Outcome, Failure> {
        // Without a GIL, another thread could change the headers while they are read.
        if cfg!(Py_GIL_DISABLED) {
            return Err(Failure::Stock);
        }
        let py = logger.py();
        let described = self.described(logger)?;
        let stock = described.stock.as_ref().ok_or(Failure::Stock)?;
        let attributes = object::own_attributes(logger)?;
        let attributes = attributes.bind(py);
        let setup = self.setup(stock, attributes)?;
        let line = self.line(stock, logger, setup.format.parts.as_ref().ok_or(Failure::Stock)?, request)?;
        let text = object::str_of(py, &line).ok_or_else(|| Failure::of_error(py))?;
        Ok(capture::info_of_text(setup.target.bind(py), text.bind(py)))
    }

    /// What a logger with these attributes has been set up to do.
    fn setup(&self, stock: &StockParts, attributes: Object<'_, '_>) -> Result<Arc<AccessSetup>, Failure> {
        let known = self.setup.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known
            && known.holds(attributes)
        {
            return Ok(known);
        }
        let made = Arc::new(self.read_setup(stock, attributes)?);
        let old = self.setup.lock().unwrap_or_else(PoisonError::into_inner).replace(made.clone());
        drop(old);
        Ok(made)
    }

    fn read_setup(&self, stock: &StockParts, attributes: Object<'_, '_>) -> Result<AccessSetup, Failure> {
        let py = attributes.py();
        let mut read = vec![UnchangedDict::of(attributes)];
        if stock.overriding.iter().any(|name| dict::has(attributes, name)) {
            return Err(Failure::Stock);
        }
        let config = dict::get(attributes, &self.words.cfg).ok_or(Failure::Stock)?;
        let settings = self.settings(stock, config.bind(py), &mut read)?;
        read.push(UnchangedDict::of(settings.bind(py)));
        let is_enabled = if stock.enabling.is_empty() {
            let kept = dict::get(attributes, &self.words.access_log_enabled);
            // SAFETY: `True` is never freed; only addresses are compared.
            kept.is_some_and(|kept| std::ptr::eq(kept.as_ptr(), unsafe { ffi::Py_True() }))
        } else {
            stock.enabling.iter().any(|setting| self.is_set(settings.bind(py), setting, &mut read))
        };
        if !is_enabled {
            return Err(Failure::Stock);
        }
        let format = self.setting(settings.bind(py), &stock.format, &mut read).ok_or(Failure::Stock)?;
        let format = self.format(format.bind(py))?;
        let target = dict::get(attributes, &self.words.access_log).ok_or(Failure::Stock)?;
        let own = object::own_attributes(target.bind(py))?;
        if object::class_of(target.bind(py)).cast() != stock.logger_class.as_ptr()
            || dict::has(own.bind(py), &self.words.info)
        {
            return Err(Failure::Stock);
        }
        read.push(UnchangedDict::of_object(target.bind(py), own.bind(py)));
        Ok(AccessSetup { read, format, target })
    }

    /// What `describe` says about the logger.
    fn described(&self, logger: Object<'_, '_>) -> Result<Arc<Described>, Failure> {
        let py = logger.py();
        environment::follow(py);
        let epoch = environment::epoch();
        let class = object::class_of(logger) as usize;
        let known = self.described.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known
            && known.class == class
            && known.holds(epoch)
        {
            return Ok(known);
        }
        let answer = self.describe.bind(py).call1((logger,))?;
        let made = Arc::new(Described::read(&answer, epoch, class)?);
        let old = self.described.lock().unwrap_or_else(PoisonError::into_inner).replace(made.clone());
        drop(old);
        Ok(made)
    }

    /// The settings of an unchanged `Config`.
    fn settings(
        &self,
        stock: &StockParts,
        config: Object<'_, '_>,
        read: &mut Vec<UnchangedDict>,
    ) -> Result<Owned, Failure> {
        if object::class_of(config).cast() != stock.config_class.as_ptr() {
            return Err(Failure::Stock);
        }
        let own = object::own_attributes(config)?;
        read.push(UnchangedDict::of_object(config, own.bind(config.py())));
        let settings = dict::get(own.bind(config.py()), &self.words.settings).ok_or(Failure::Stock)?;
        if settings.bind(config.py()).is_exact_instance_of::<PyDict>() { Ok(settings) } else { Err(Failure::Stock) }
    }

    /// The value of a setting with this name and class.
    fn setting(
        &self,
        settings: Object<'_, '_>,
        (name, class): &(Owned, Owned),
        read: &mut Vec<UnchangedDict>,
    ) -> Option<Owned> {
        let py = settings.py();
        let setting = dict::get(settings, name)?;
        if object::class_of(setting.bind(py)).cast() != class.as_ptr() {
            return None;
        }
        let own = object::own_attributes(setting.bind(py)).ok()?;
        read.push(UnchangedDict::of_object(setting.bind(py), own.bind(py)));
        dict::get(own.bind(py), &self.words.value)
    }

    /// True if the setting is a text or a dict with content.
    fn is_set(&self, settings: Object<'_, '_>, setting: &(Owned, Owned), read: &mut Vec<UnchangedDict>) -> bool {
        let py = settings.py();
        self.setting(settings, setting, read).is_some_and(|value| {
            let value = value.bind(py);
            object::utf8(value).is_some_and(|text| !text.is_empty())
                || value.is_exact_instance_of::<PyDict>() && !dict::is_empty(value)
        })
    }

    /// The parts of a format.
    fn format(&self, text: Object<'_, '_>) -> Result<Arc<KnownFormat>, Failure> {
        let known = self.format.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known
            && known.text.as_ptr() == text.as_ptr()
        {
            return Ok(known);
        }
        if !object::is_exact_str(text) {
            return Err(Failure::Stock);
        }
        let parts = object::text(text).and_then(|format| parse(text.py(), format));
        let made = Arc::new(KnownFormat { text: Owned::of(&text), parts });
        let old = self.format.lock().unwrap_or_else(PoisonError::into_inner).replace(made.clone());
        drop(old);
        Ok(made)
    }

    fn line(
        &self,
        stock: &StockParts,
        logger: Object<'_, '_>,
        parts: &[AccessPart],
        request: &Request<'_, '_>,
    ) -> Result<Vec<u8>, Failure> {
        let py = logger.py();
        let words = &self.words;
        let Request { response, environ, .. } = *request;
        let read = |object: Object<'_, '_>, name: &Owned| object::attribute(object, name).ok_or(Failure::Stock);
        let status = read(response, &words.status)?;
        let status = Status::of(status.bind(py))?;
        let sent = read(response, &words.sent)?;
        let response_headers = read(response, &words.headers)?;
        let request_headers = read(request.request, &words.headers)?;
        let (seconds, micros) = duration(stock, request.time)?;
        if !environ.is_exact_instance_of::<PyDict>() || !has_text_keys(environ) {
            return Err(Failure::Stock);
        }
        let required = |name, usual| dict::get_at(environ, name, usual).ok_or(Failure::Stock);
        let method = required(&words.method, &self.positions[0])?;
        let uri = required(&words.uri, &self.positions[1])?;
        let protocol = required(&words.protocol, &self.positions[2])?;
        for headers in [&request_headers, &response_headers] {
            check_headers(headers.bind(py))?;
        }
        let user = self.user(stock, environ)?;
        let mut line = Vec::with_capacity(LINE_BYTES);
        for part in parts {
            let shown = match part {
                AccessPart::Text(text) => {
                    line.extend_from_slice(text.as_bytes());
                    continue;
                }
                AccessPart::Value(shown) => shown,
            };
            match shown {
                AccessValue::User => match &user {
                    Some(user) if !object::utf8(user.bind(py)).ok_or(Failure::Stock)?.is_empty() => {
                        push(&mut line, user.bind(py))?;
                    }
                    _ => line.push(b'-'),
                },
                AccessValue::Time => self.push_time(stock, logger, &mut line)?,
                AccessValue::RequestLine => {
                    for (index, value) in [&method, &uri, &protocol].into_iter().enumerate() {
                        if index > 0 {
                            line.push(b' ');
                        }
                        push_text(&mut line, value.bind(py))?;
                    }
                }
                AccessValue::Status => status.push(&mut line),
                AccessValue::BytesOrDash if sent.bind(py).is_none() => line.push(b'-'),
                AccessValue::BytesOrDash | AccessValue::Bytes => {
                    let sent = sent.bind(py);
                    if !sent.is_none() && small_int(sent).is_none() {
                        return Err(Failure::Stock);
                    }
                    push(&mut line, sent)?;
                }
                AccessValue::Seconds => push_number(&mut line, seconds),
                AccessValue::Milliseconds => push_number(&mut line, seconds * 1_000 + micros / 1_000),
                AccessValue::Microseconds => push_number(&mut line, seconds * 1_000_000 + micros),
                AccessValue::DecimalSeconds => {
                    let _ = write!(line, "{seconds}.{micros:06}");
                }
                AccessValue::Process => {
                    let _ = write!(line, "<{}>", std::process::id());
                }
                AccessValue::Variable { name, missing, usual } => match dict::get_at(environ, name, usual) {
                    Some(value) => push(&mut line, value.bind(py))?,
                    None => line.extend_from_slice(missing.as_bytes()),
                },
                AccessValue::RequestHeader(name) => push_header(&mut line, request_headers.bind(py), name)?,
                AccessValue::ResponseHeader(name) => push_header(&mut line, response_headers.bind(py), name)?,
                AccessValue::AnyVariable(name) => {
                    let mut found = None;
                    let mut walk = DictWalk::of(environ);
                    while let Some((key, value)) = walk.next() {
                        if is_named(key, name)? {
                            found = Some(value);
                        }
                    }
                    push_or_dash(&mut line, found)?;
                }
            }
        }
        Ok(line)
    }

    /// The user of the request; `None` if it names none. gunicorn reads it for each line, shown or not.
    fn user(&self, stock: &StockParts, environ: Object<'_, '_>) -> Result<Option<Owned>, Failure> {
        let py = environ.py();
        let Some(header) = dict::get(environ, &self.words.authorization) else { return Ok(None) };
        let header = header.bind(py);
        if header.is_none() {
            return Ok(None);
        }
        if !object::is_exact_str(header) {
            return Err(Failure::Stock);
        }
        let text = object::utf8(header).ok_or(Failure::Stock)?;
        if !text.get(..BASIC.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(BASIC)) {
            return Ok(None);
        }
        let Some(user) = leaving::call_with(stock.user_of.bind(py), header) else {
            // gunicorn reports a header that cannot be read.
            return Err(Failure::of_error(py));
        };
        if user.bind(py).is_none() {
            return Ok(None);
        }
        Ok(Some(user))
    }

    /// Adds the text of `Logger.now`, which is the same for all lines of a second.
    fn push_time(&self, stock: &StockParts, logger: Object<'_, '_>, line: &mut Vec<u8>) -> Result<(), Failure> {
        let py = logger.py();
        // SAFETY: no argument. This is the clock that `time.strftime` reads.
        let now = || unsafe { libc::time(std::ptr::null_mut()) };
        let number = now();
        let zone = dict::get(stock.time.bind(py), &self.words.tzname).ok_or(Failure::Stock)?;
        if let Some(second) = &*self.second.lock().unwrap_or_else(PoisonError::into_inner)
            && second.number == number
            && second.zone.as_ptr() == zone.as_ptr()
        {
            line.extend_from_slice(second.text.as_bytes());
            return Ok(());
        }
        let made = leaving::method(logger, &self.words.now).ok_or_else(|| Failure::of_error(py))?;
        let text = object::text(made.bind(py)).ok_or(Failure::Stock)?;
        line.extend_from_slice(text.as_bytes());
        if now() == number {
            let second = AccessTimeText { number, zone, text: text.to_owned() };
            let old = self.second.lock().unwrap_or_else(PoisonError::into_inner).replace(second);
            drop(old);
        }
        Ok(())
    }
}

/// The scheme of a header whose user gunicorn shows, in lower case.
const BASIC: &[u8] = b"basic";

/// Room for a line. Chosen: the combined format of Apache with a usual browser needs 250 bytes.
const LINE_BYTES: usize = 320;

impl Described {
    fn read(answer: &Bound<'_, PyAny>, epoch: u64, class: usize) -> PyResult<Self> {
        let mut types = Vec::new();
        for pair in answer.get_item(0)?.cast::<PyTuple>()?.iter() {
            let (class, state) = pair.extract::<(Bound<'_, PyType>, u64)>()?;
            // The version tag is the lower half of `class_state`.
            types.push(ClassVersion::seen(&class, state as u32));
        }
        let (mut watched, mut held) = (Vec::new(), Vec::new());
        read_watched(&answer.get_item(1)?, &mut watched, &mut held)?;
        let parts = answer.get_item(2)?;
        let stock = if parts.is_none() { None } else { Some(StockParts::read(&parts)?) };
        Ok(Self { epoch, types, watched, _held: held, class, stock })
    }

    fn holds(&self, epoch: u64) -> bool {
        self.epoch == epoch
            && self.types.iter().all(ClassVersion::holds)
            // SAFETY: `_held` keeps the objects with these words alive.
            && self.watched.iter().all(|word| unsafe { word.holds() })
    }
}

impl StockParts {
    fn read(parts: &Bound<'_, PyAny>) -> PyResult<Self> {
        let get = |name: &str| PyResult::Ok(Owned::of(&parts.get_item(name)?));
        let pair =
            |pair: &Bound<'_, PyAny>| PyResult::Ok((interned(&pair.get_item(0)?)?, Owned::of(&pair.get_item(1)?)));
        let mut overriding = Vec::new();
        for name in parts.get_item("overriding")?.try_iter()? {
            overriding.push(interned(&name?)?);
        }
        let mut enabling = Vec::new();
        for setting in parts.get_item("enabling")?.try_iter()? {
            enabling.push(pair(&setting?)?);
        }
        Ok(Self {
            overriding,
            logger_class: get("logger_class")?,
            config_class: get("config_class")?,
            timedelta: get("timedelta")?,
            format: pair(&parts.get_item("format")?)?,
            enabling,
            time: get("time")?,
            user_of: get("user_of")?,
        })
    }
}

/// Seconds and microseconds of an exact `timedelta`, without its days.
fn duration(stock: &StockParts, time: Object<'_, '_>) -> Result<(i64, i64), Failure> {
    if object::class_of(time).cast() != stock.timedelta.as_ptr() {
        return Err(Failure::Stock);
    }
    // SAFETY: the class of the object is exactly `datetime.timedelta`.
    unsafe {
        let seconds = ffi::PyDateTime_DELTA_GET_SECONDS(time.as_ptr());
        let micros = ffi::PyDateTime_DELTA_GET_MICROSECONDS(time.as_ptr());
        Ok((seconds.into(), micros.into()))
    }
}

/// True if all keys of a dict are exact `str`.
fn has_text_keys(dict: Object<'_, '_>) -> bool {
    let mut walk = DictWalk::of(dict);
    while let Some((key, _)) = walk.next() {
        if !object::is_exact_str(key) {
            return false;
        }
    }
    true
}

/// Checks that headers are a list of pairs with a text as their name.
fn check_headers(headers: Object<'_, '_>) -> Result<(), Failure> {
    if !object::is_exact_list(headers) {
        return Err(Failure::Stock);
    }
    let mut walk = ListWalk::from(headers, 0);
    while let Some(header) = walk.next() {
        match object::tuple_items(header.bind(headers.py())) {
            Some([name, _]) if object::is_exact_str(*name) => {}
            _ => return Err(Failure::Stock),
        }
    }
    Ok(())
}

/// Adds the last header with a name, which is in lower case.
fn push_header(line: &mut Vec<u8>, headers: Object<'_, '_>, name: &str) -> Result<(), Failure> {
    let py = headers.py();
    let mut found: Option<Owned> = None;
    let mut walk = ListWalk::from(headers, 0);
    while let Some(header) = walk.next() {
        let Some([key, value]) = object::tuple_items(header.bind(py)) else { return Err(Failure::Stock) };
        if is_named(*key, name)? {
            found = Some(Owned::of(value));
        }
    }
    push_or_dash(line, found.as_ref().map(|value| value.bind(py)))
}

/// True if the key in lower case is the name. Only Python can change the case of other letters than those of ASCII.
fn is_named(key: Object<'_, '_>, name: &str) -> Result<bool, Failure> {
    let key = object::utf8(key).filter(|key| key.is_ascii()).ok_or(Failure::Stock)?;
    Ok(key.eq_ignore_ascii_case(name.as_bytes()))
}

fn push_or_dash(line: &mut Vec<u8>, value: Option<Object<'_, '_>>) -> Result<(), Failure> {
    match value {
        Some(value) => push(line, value),
        None => {
            line.push(b'-');
            Ok(())
        }
    }
}

/// Adds `str(value)` of a plain value.
fn push(line: &mut Vec<u8>, value: Object<'_, '_>) -> Result<(), Failure> {
    if object::is_exact_str(value) {
        return push_text(line, value);
    }
    if value.is_none() {
        line.extend_from_slice(b"None");
        return Ok(());
    }
    push_number(line, small_int(value).ok_or(Failure::Stock)?);
    Ok(())
}

/// Adds an exact `str`, its quotes escaped.
fn push_text(line: &mut Vec<u8>, value: Object<'_, '_>) -> Result<(), Failure> {
    if !object::is_exact_str(value) {
        return Err(Failure::Stock);
    }
    push_escaped(line, object::utf8(value).ok_or(Failure::Stock)?);
    Ok(())
}

fn push_escaped(line: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(quote) = rest.iter().position(|byte| *byte == b'"') {
        line.extend_from_slice(&rest[..quote]);
        line.extend_from_slice(b"\\\"");
        rest = &rest[quote + 1..];
    }
    line.extend_from_slice(rest);
}

fn push_number(line: &mut Vec<u8>, number: i64) {
    let _ = write!(line, "{number}");
}

/// What gunicorn shows of a status.
enum Status<'a> {
    /// The first word of a line.
    Word(&'a [u8]),
    /// A number.
    Number(i64),
}

impl<'a> Status<'a> {
    /// Reads a status. gunicorn splits the line whether it is shown or not.
    fn of(status: Object<'a, '_>) -> Result<Self, Failure> {
        if !object::is_exact_str(status) {
            return Ok(Self::Number(small_int(status).ok_or(Failure::Stock)?));
        }
        let text = object::utf8(status).filter(|text| text.is_ascii()).ok_or(Failure::Stock)?;
        // `str.split` takes these bytes of ASCII for spaces.
        let is_space = |byte: &u8| matches!(byte, b'\t'..=b'\r' | 0x1c..=0x1f | b' ');
        let start = text.iter().position(|byte| !is_space(byte)).ok_or(Failure::Stock)?;
        let text = &text[start..];
        Ok(Self::Word(&text[..text.iter().position(is_space).unwrap_or(text.len())]))
    }

    /// Adds the status to a line.
    fn push(&self, line: &mut Vec<u8>) {
        match self {
            Self::Word(word) => push_escaped(line, word),
            Self::Number(number) => push_number(line, *number),
        }
    }
}
