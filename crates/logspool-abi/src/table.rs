//! The table of functions, and which copy's table the calls of this copy go through.
//!
//! The copy of the library that is first in a process publishes its own table (`copies.rs` of the core). Later copies
//! are guests: their calls go through that table. A copy whose binding needs more than the table, as Python's does,
//! asks the first copy to hand the queue over: the first copy writes what is queued, defines all its handles in the
//! other table under the same ids, and becomes a guest itself.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the address of the table in use.

use std::ffi::{CString, c_char, c_int, c_long, c_longlong, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Duration;

use logspool::option::FOR_EVER;
use logspool::{copies, pipeline};
pub use logspool_lanes::queue::view::LaneView;
use logspool_record::definition::{MAX_TARGETS, SiteDefinition};
use logspool_sys::fork_safe_lock::ForkSafeLock;
use logspool_sys::generation;
use logspool_sys::published::Published;

use crate::beginning::{self, begin};
use crate::emitting::{self, SlowPart};
use crate::handles::{Id, PublicHandle};
use crate::loggers::{self, LOGGERS};
use crate::sinks;
use crate::sites::{self, SITES, SiteInfo};
use crate::stats;
use crate::status::{self, Failure, Status, fenced, fenced_status, text};
use crate::values::Argument;

/// Major version of the table.
pub const MAJOR: u32 = 1;

/// Declares the table, the functions that call through the table in use, and the table of those.
///
/// Each row has the minor version that brought the function. Rows stay in their order. `public`: for programs, and
/// its comment is that in `logspool.h`; `internal`: for other copies of the library. `failed`: its result when the table
/// of another copy has no such function.
/// `make generated` writes the header, the exports and the Nim module from these rows.
macro_rules! table {
    ($([minor $minor:literal] $($(#[$comment:meta])* $users:ident $name:ident: fn($($argument:ident: $kind:ty),*) $(-> $result:ty)?, failed $failed:expr;)+)+) => {
        /// Minor version of the table: that of its last rows.
        pub const MINOR: u32 = *[$($minor),+].last().expect("the table has rows");

        /// `struct logspool_api`. `logspool.h` has the meaning of each function.
        #[repr(C)]
        #[allow(missing_docs, reason = "the functions are documented in logspool.h")]
        pub struct Api {
            pub major: u32,
            pub minor: u32,
            pub size: u32,
            pub reserved: u32,
            $($(pub $name: unsafe extern "C" fn($($kind),*) $(-> $result)?,)+)+
        }

        /// The functions of this copy's own core.
        pub static OWN: Api = Api { major: MAJOR, minor: MINOR, size: size_of::<Api>() as u32, reserved: 0, $($($name: own::$name),+),+ };

        /// Functions that call through the table in use.
        pub mod forward {
            use super::*;

            $($(
                /// See `logspool.h`.
                ///
                /// # Safety
                ///
                /// The arguments are as `logspool.h` says.
                #[inline]
                pub unsafe extern "C" fn $name($($argument: $kind),*) $(-> $result)? {
                    let table = in_use();
                    if std::ptr::eq(table, &OWN) {
                        // SAFETY: the arguments are passed on as they came from the program, which has `logspool.h`.
                        return unsafe { own::$name($($argument),*) };
                    }
                    if table.major != MAJOR || (table.size as usize) <= std::mem::offset_of!(Api, $name) {
                        refuse_version(table);
                        return $failed;
                    }
                    // SAFETY: a table of this major version and size has this function.
                    unsafe { (table.$name)($($argument),*) }
                }
            )+)+
        }

        /// The table that bindings give away: its functions go through the table in use.
        pub static FORWARD: Api = Api { major: MAJOR, minor: MINOR, size: size_of::<Api>() as u32, reserved: 0, $($($name: forward::$name),+),+ };
    };
}

table! {
    [minor 0]
    /// Sets options of the process's queue: a JSON object with options of Python's `logspool.install()` by name, for
    /// example {"queue_bytes": 1048576, "durability": "process", "blocking_levels": [40, 50]}. NULL or "{}" sets the
    /// defaults. Call it before the first definition; later only some options may change.
    /// Errors: LOGSPOOL_INVALID for text that is not such an object, for an unknown option (the text names the
    /// nearest), for a value out of its range, and for an option that is fixed by now. Nothing is changed then.
    public configure: fn(options_json: *const c_char) -> c_int, failed Status::Version as c_int;
    /// Opens a sink. `address` is one of:
    ///   - the path of a file, which is created if it is missing, and appended to;
    ///   - "stdout", "stderr" or "fd:N": a descriptor of the program, which stays open;
    ///   - "tcp://HOST:PORT", "tls://...", "unix://PATH": a logspool service, or one of several with one store:
    ///     "tcp://a:9020,b:9020";
    ///   - a JSON object {"kind": KIND, OPTION: VALUE, ...} with a kind of sink and its options by name; "fd": N makes
    ///     a file sink write through a duplicate of that descriptor.
    /// `format_json` is the form of a line, or NULL for "%(asctime)s %(levelname)s %(name)s %(message)s". It is a JSON
    /// object with any of:
    ///   "template": text; "style": "%" (default), "{" or "$"; "date_format": text of strftime; "utc": true;
    ///   "milliseconds": text such as "%s,%03d", or null; "terminator": text; "level_names": {"20": "info", ...};
    ///   "pattern": text such as "[{time:%H:%M:%S.%3f}] [{level:<5}] {message} {fields}" in place of "template"; the
    ///   names in braces are in docs/reference/templates.md; "level_words": "upper" (INFO), "lower", "short" (INF) or
    ///   "letter" (I);
    ///   "level": 30 or "warning": the sink takes only records of this level and above;
    ///   "escape_control": true shows control characters and line ends in the texts of a record as \x1b and \n, so that
    ///   no text can forge a line or control a terminal; the default is true for "stdout", "stderr" and a descriptor
    ///   that is no file, and false elsewhere; JSON escapes by its own rules;
    ///   "json": {"KEY": "ATTRIBUTE", ...} makes a JSON object a line in place of "template", "extras": true appends
    ///   all key-values to it.
    /// Sinks with the same file, kind and options share the file: lines are in one order.
    /// Returns the sink's id. Errors: 0 if the text is ill-formed (the error names the place), or if the file cannot be
    /// opened.
    public sink_open: fn(address: *const c_char, format_json: *const c_char) -> Id, failed 0;
    /// Makes a logger, or finds the one with the same name, and gives it `count` sinks. Calls whose level is below
    /// `level` log nothing. The level of an existing logger changes; its sinks change if `count` is not 0.
    /// Returns the logger's id. Errors: 0 for an unknown sink, a NULL name, or more than 64 sinks.
    public logger: fn(name: *const c_char, level: u16, sinks: *const Id, count: usize) -> Id, failed 0;
    /// Changes the level of a logger at run time.
    public logger_level: fn(logger: Id, level: u16) -> c_int, failed Status::Version as c_int;
    /// Defines a call site. Call it once for each site, for example by a static variable: each call uses an id of the
    /// 8,192 ids of the process. Above this number records carry their site, which costs some 100 bytes each.
    /// Returns the site's id. Errors: 0 for a bad template; the error has the place in the text.
    public site: fn(site: *const SiteInfo) -> Id, failed 0;
    /// Logs one record: the site's template with `count` arguments, at the site's level. Does not format and makes no
    /// system call, unless the lane of the thread is full; then it waits as the options say for the level. Returns
    /// LOGSPOOL_OK, LOGSPOOL_DISABLED, LOGSPOOL_REFUSED, or an error; nothing is logged then.
    public emit: fn(logger: Id, site: Id, args: *const Argument, count: usize) -> c_int, failed Status::Version as c_int;
    /// Logs one record with a finished text, which is not parsed, at any level. `file` and `function` may be NULL. The
    /// place is sent with each record; loggers that see many records of one place are better served by a site.
    public text: fn(logger: Id, level: u16, text: *const c_char, length: usize, file: *const c_char, line: u32, function: *const c_char) -> c_int, failed Status::Version as c_int;
    /// Reserves room in the thread's lane for a record with `value_bytes` bytes of values (below), and stamps it.
    /// Returns where to store exactly these bytes; NULL if nothing is to be stored: the level is disabled or the record
    /// is refused (logspool_last_status() says which). Until logspool_commit() the thread may only store the values: no
    /// call, no lock, no fork, nothing that throws. The values are trusted: ill-formed ones end the record there.
    public reserve: fn(logger: Id, site: Id, value_bytes: usize) -> *mut c_void, failed std::ptr::null_mut();
    /// Publishes the record of logspool_reserve(). Waits if the options ask for durability. LOGSPOOL_INVALID: no record
    /// is open.
    public commit: fn() -> c_int, failed Status::Version as c_int;
    /// Drops the record of logspool_reserve(); nothing is logged. LOGSPOOL_INVALID: no record is open.
    public abandon: fn() -> c_int, failed Status::Version as c_int;
    /// Waits until all records that were logged before the call are handed to the system. `timeout_seconds` < 0 waits
    /// for ever. LOGSPOOL_TIMEOUT: some are still queued. Not for signal handlers.
    public flush: fn(timeout_seconds: f64) -> c_int, failed Status::Version as c_int;
    /// Writes everything that is queued, for at most `timeout_seconds`. Call it before a process ends by _exit();
    /// exit() and returning from main() do it by themselves, within the option shutdown_timeout. The program may
    /// continue to log. LOGSPOOL_TIMEOUT: the rest is left to the next start.
    public drain: fn(timeout_seconds: f64) -> c_int, failed Status::Version as c_int;
    /// Writes counters as a JSON object with a final NUL into `buffer` of `bytes` bytes: "offered", "accepted",
    /// "refused" by reason, "blocked_calls", "in_lanes", and for each sink "accepted", "written", "queued", "dropped"
    /// by reason, "error".
    /// Returns the length of the whole text without the NUL, as snprintf does; the text is cut if it is longer.
    /// `buffer` may be NULL if `bytes` is 0. Negative: an error.
    public stats: fn(buffer: *mut c_char, bytes: usize) -> c_long, failed Status::Version as c_long;
    /// Delivers the records that dead processes left in a queue folder to their files; NULL is the folder of this
    /// process.
    /// Returns the number of delivered records, or an error. May take as long as the files need.
    public recover: fn(folder: *const c_char) -> c_longlong, failed Status::Version as c_longlong;
    /// Text of the last error of the calling thread; "" without an error. Valid until the thread's next call.
    public last_error: fn() -> *const c_char, failed status::last_text();
    /// Result of the last call of the calling thread that returned NULL, 0 or a result.
    public last_status: fn() -> c_int, failed status::last();
    /// Generation of the process: it changes in a forked child, and when a sink is closed.
    public generation: fn() -> u64, failed 0;
    /// The lane of the calling thread; NULL if it has no lane. Valid as long as the thread lives, and written by the
    /// library and the header on that thread only.
    public lane_view: fn() -> *mut LaneView, failed std::ptr::null_mut();
    /// Handle of a logger, valid for the life of the process; NULL for an unknown id.
    public logger_handle: fn(logger: Id) -> *const PublicHandle, failed std::ptr::null();
    /// As logspool_logger_handle, of a site.
    public site_handle: fn(site: Id) -> *const PublicHandle, failed std::ptr::null();
    /// Wakes the collector, after a record of this level: step 8.
    public wake: fn(level: u16), failed std::convert::identity(());
    internal hand_over: fn() -> c_longlong, failed -1;
    internal replay: fn(to: *const Api), failed std::convert::identity(());
    internal restore_sink: fn(address: *const c_char, format: *const c_char) -> Id, failed 0;
    internal restore_logger: fn(name: *const c_char, sinks: *const Id, count: usize, public: *const PublicHandle) -> Id, failed 0;
    internal restore_site: fn(site: *const SiteInfo, public: *const PublicHandle) -> Id, failed 0;
    [minor 1]
    /// Finds a logger by its name. Changes nothing. 0: no logger has this name; the error says so.
    public logger_find: fn(name: *const c_char) -> Id, failed 0;
    [minor 2]
    /// Takes back one call of logspool_logger with this logger. The last one closes the logger: its queued records are
    /// written under its name, its id means nothing any more, and its place is free. A process has at most 2,047 open
    /// loggers, and any number one after the other. No other thread may log to it, or to a copy of its id, during the
    /// call or later. LOGSPOOL_UNKNOWN: there is no such logger. Not for signal handlers.
    public logger_close: fn(logger: Id) -> c_int, failed Status::Version as c_int;
    /// Closes a sink: no logger can get it any more. It is closed for good when its last logger is closed, or has other
    /// sinks, and its queued records are written; the call does not wait for that, logspool_flush does. A process has
    /// at most 127 open sinks, and any number one after the other. LOGSPOOL_UNKNOWN: there is no such sink. Not for
    /// signal handlers.
    public sink_close: fn(sink: Id) -> c_int, failed Status::Version as c_int;
    internal restore_sink_as: fn(id: Id, is_open: c_int, address: *const c_char, format: *const c_char) -> Id, failed 0;
    internal restore_logger_as: fn(id: Id, users: u32, name: *const c_char, sinks: *const Id, count: usize, public: *const PublicHandle) -> Id, failed 0;
}

/// The table in use; null before the first call.
static IN_USE: AtomicPtr<Api> = AtomicPtr::new(std::ptr::null_mut());

#[inline]
fn in_use() -> &'static Api {
    // SAFETY: a stored table is a static of this copy or of the first one, which is never unloaded.
    unsafe { IN_USE.observe().as_ref() }.unwrap_or_else(|| attach())
}

/// Finds the table of the copy that has the queue of the process, or makes this copy the one.
#[cold]
fn attach() -> &'static Api {
    let own = std::ptr::from_ref(&OWN);
    let table = match copies::claim_with(own as u64) {
        Ok(()) => own,
        // A copy without a table refuses every record, as `copies.rs` says.
        Err(other) => match other.table() {
            0 => own,
            address => address as *const Api,
        },
    };
    IN_USE.publish(table.cast_mut());
    // SAFETY: as in `in_use`; the page of a copy that has claimed the process has the address of its table.
    unsafe { &*table }
}

#[cold]
fn refuse_version(table: &Api) {
    let (theirs, own) = match table.major {
        MAJOR => (format!("version {MAJOR}.{}", table.minor), format!("{MAJOR}.{MINOR}")),
        major => (format!("major version {major}"), MAJOR.to_string()),
    };
    let text = format!(
        "another copy of logspool has the queue of this process, with {theirs} of the interface; this copy has {own}"
    );
    status::fail(Failure::new(Status::Version, text));
}

/// Timeout of a number of seconds; `None` waits for ever.
fn timeout(seconds: f64) -> Result<Option<Duration>, Failure> {
    if seconds.is_nan() {
        return Err(Failure::invalid("a timeout is not a number"));
    }
    Ok((seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(FOR_EVER).min(FOR_EVER)))
}

/// Runs a call that takes locks.
fn slowly<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let interrupting = || Failure::new(Status::Refused, "the call interrupts another call of its thread");
    let _slow = SlowPart::begin().ok_or_else(interrupting)?;
    call()
}

/// Locked during each definition and while the queue is handed over. So the other copy gets every definition: one made
/// before is replayed there, and a later one is made there.
static DEFINING: ForkSafeLock<()> = ForkSafeLock::new(());

/// Runs a definition in this copy. `None`: this copy has handed the queue over; make it by [`moved_table`].
fn defining<T>(failed: T, call: impl FnOnce() -> Result<T, Failure>) -> Option<T> {
    let mut moved = false;
    let defined = fenced(failed, || {
        beginning(|| {
            await_handles();
            let _held = DEFINING.lock();
            moved = HANDED_OVER.observe();
            let refused =
                || Err(Failure::new(Status::Failed, "the queue is handed over to another copy of the library"));
            if moved { refused() } else { call() }
        })
    });
    (!moved).then_some(defined)
}

/// As [`slowly`], for calls that begin the queue.
fn beginning<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    slowly(|| {
        begin();
        call()
    })
}

/// The functions of this copy's own core.
mod own {
    #![allow(clippy::missing_safety_doc, reason = "logspool.h has the contract of each function")]

    use super::*;

    pub unsafe extern "C" fn configure(options: *const c_char) -> c_int {
        // SAFETY: null or a C string: `logspool.h` demands it of each text without a length, here and below.
        fenced_status(|| slowly(|| beginning::configure(unsafe { super::text(options) }.as_deref())))
    }

    pub unsafe extern "C" fn sink_open(address: *const c_char, format: *const c_char) -> u32 {
        let defined = defining(0, || {
            // SAFETY: each pointer is null or a C string, as `logspool.h` demands.
            let [address, format] = [address, format].map(|each| unsafe { super::text(each) });
            let address = address.ok_or_else(|| Failure::invalid("the address of a sink is NULL"))?;
            sinks::open(&address, format.as_deref())
        });
        // SAFETY: the table has this function, and it gets the arguments of this call.
        defined.unwrap_or_else(|| moved_table().map_or(0, |table| unsafe { (table.sink_open)(address, format) }))
    }

    pub unsafe extern "C" fn logger(name: *const c_char, level: u16, sinks: *const u32, count: usize) -> u32 {
        let defined = defining(0, || {
            // SAFETY: each pointer is null or a C string, as `logspool.h` demands.
            let name = unsafe { super::text(name) }.ok_or_else(|| Failure::invalid("the name of a logger is NULL"))?;
            if sinks.is_null() && count > 0 || count > MAX_TARGETS {
                return Err(Failure::invalid(format!(
                    "a logger has at most {MAX_TARGETS} sinks at an address, not {count}"
                )));
            }
            // SAFETY: the pointer is not null, and `logspool.h` demands `count` ids at it.
            let sinks = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(sinks, count) } };
            loggers::define(&name, level, sinks)
        });
        // SAFETY: the table has this function, and it gets the arguments of this call.
        defined.unwrap_or_else(|| moved_table().map_or(0, |table| unsafe { (table.logger)(name, level, sinks, count) }))
    }

    pub unsafe extern "C" fn logger_find(name: *const c_char) -> u32 {
        let found = defining(0, || {
            // SAFETY: each pointer is null or a C string, as `logspool.h` demands.
            let name = unsafe { super::text(name) }.ok_or_else(|| Failure::invalid("the name of a logger is NULL"))?;
            let found = loggers::find(&name);
            found.ok_or_else(|| Failure::new(Status::Unknown, format!("there is no logger {name:?}")))
        });
        // SAFETY: the table has this function, and it gets the arguments of this call.
        found.unwrap_or_else(|| moved_table().map_or(0, |table| unsafe { (table.logger_find)(name) }))
    }

    pub unsafe extern "C" fn logger_close(logger: u32) -> c_int {
        let closed = defining(None, || loggers::close(logger).map(Some));
        closed_status(closed, |table| {
            // SAFETY: `closed_status` passes a table that has the function.
            unsafe { (table.logger_close)(logger) }
        })
    }

    pub unsafe extern "C" fn sink_close(sink: u32) -> c_int {
        let closed = defining(None, || sinks::close(sink).map(Some));
        closed_status(closed, |table| {
            // SAFETY: `closed_status` passes a table that has the function.
            unsafe { (table.sink_close)(sink) }
        })
    }

    /// The result of a close in this copy, or in the one that has the queue now. Both have the functions that close, or
    /// nothing is closed.
    fn closed_status(closed: Option<Option<Status>>, again: impl FnOnce(&Api) -> c_int) -> c_int {
        match closed {
            Some(Some(status)) => {
                status::note(status);
                status as c_int
            }
            Some(None) => status::last(),
            None => match moved_table().filter(|table| has_closing(table)) {
                Some(table) => again(table),
                None => Status::Version as c_int,
            },
        }
    }

    /// Whether a table has the functions of version 1.2.
    fn has_closing(table: &Api) -> bool {
        table.size as usize >= std::mem::offset_of!(Api, restore_logger_as) + size_of::<usize>()
    }

    pub unsafe extern "C" fn logger_level(logger: u32, level: u16) -> c_int {
        fenced_status(|| loggers::set_level(logger, level))
    }

    pub unsafe extern "C" fn site(site: *const SiteInfo) -> u32 {
        // SAFETY: null or a struct that begins with its size, as `logspool.h` demands.
        let defined = defining(0, || unsafe { sites::define(site) });
        // SAFETY: the table has this function, and it gets the arguments of this call.
        defined.unwrap_or_else(|| moved_table().map_or(0, |table| unsafe { (table.site)(site) }))
    }

    pub unsafe extern "C" fn emit(logger: u32, site: u32, arguments: *const Argument, count: usize) -> c_int {
        // SAFETY: `logspool.h` demands `count` arguments, with their texts at the pointers.
        let status = fenced_status(|| unsafe { emitting::emit(logger, site, arguments, count) });
        match moved(status) {
            // SAFETY: the table has this function, and it gets the arguments of this call.
            Some(table) => unsafe { (table.emit)(logger, site, arguments, count) },
            None => status,
        }
    }

    /// The table to repeat a call with, if it failed because the queue was handed over meanwhile.
    #[inline]
    fn moved(status: c_int) -> Option<&'static Api> {
        if [Status::Refused as c_int, Status::Failed as c_int].contains(&status) { moved_table() } else { None }
    }

    pub unsafe extern "C" fn text(
        logger: u32,
        level: u16,
        bytes: *const c_char,
        length: usize,
        file: *const c_char,
        line: u32,
        function: *const c_char,
    ) -> c_int {
        let status = fenced_status(|| {
            if bytes.is_null() && length > 0 {
                return Err(Failure::invalid("the text of a record is NULL"));
            }
            if length > u32::MAX as usize / 2 {
                return Err(Failure::invalid(format!("a record cannot have {length} bytes")));
            }
            // SAFETY: the pointer is not null, and `logspool.h` demands `length` bytes at it.
            let bytes = if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(bytes.cast(), length) } };
            // SAFETY: each pointer is null or a C string, as `logspool.h` demands.
            let [file, function] = [file, function].map(|each| unsafe { super::text(each) }.unwrap_or_default());
            let site = SiteDefinition { file, line, function, ..SiteDefinition::default() };
            emitting::text(logger, level, bytes, site)
        });
        match moved(status) {
            // SAFETY: the table has this function, and it gets the arguments of this call.
            Some(table) => unsafe { (table.text)(logger, level, bytes, length, file, line, function) },
            None => status,
        }
    }

    pub unsafe extern "C" fn reserve(logger: u32, site: u32, bytes: usize) -> *mut c_void {
        let place: *mut c_void = fenced(std::ptr::null_mut(), || {
            let place = emitting::reserve(logger, site, bytes)?;
            status::note(if place.is_some() { Status::Ok } else { Status::Disabled });
            Ok(place.unwrap_or(std::ptr::null_mut()).cast())
        });
        if place.is_null()
            && let Some(table) = moved(status::last())
        {
            // SAFETY: the table has this function, and it gets the arguments of this call.
            return unsafe { (table.reserve)(logger, site, bytes) };
        }
        place
    }

    pub unsafe extern "C" fn commit() -> c_int {
        fenced_status(emitting::commit)
    }

    pub unsafe extern "C" fn abandon() -> c_int {
        fenced_status(emitting::abandon)
    }

    pub unsafe extern "C" fn flush(timeout_seconds: f64) -> c_int {
        fenced_status(|| {
            let timeout = timeout(timeout_seconds)?;
            let done = slowly(|| Ok(pipeline::flush(None, timeout)))?;
            Ok(if done { Status::Ok } else { Status::Timeout })
        })
    }

    pub unsafe extern "C" fn drain(timeout_seconds: f64) -> c_int {
        fenced_status(|| {
            let timeout = timeout(timeout_seconds)?.unwrap_or(FOR_EVER);
            let left = slowly(|| Ok(pipeline::empty(timeout)))?;
            Ok(if left == 0 { Status::Ok } else { Status::Timeout })
        })
    }

    pub unsafe extern "C" fn stats(buffer: *mut c_char, bytes: usize) -> c_long {
        fenced(Status::Failed as c_long, || {
            if buffer.is_null() && bytes > 0 {
                return Err(Failure::invalid("the buffer for the counters is NULL"));
            }
            let text = slowly(|| Ok(stats::text()))?;
            let shown = text.len().min(bytes.saturating_sub(1));
            if bytes > 0 {
                // SAFETY: the buffer is not null and has `bytes` bytes, as `logspool.h` demands; `shown` is less.
                unsafe {
                    std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, shown);
                    buffer.add(shown).write(0);
                }
            }
            Ok(text.len() as c_long)
        })
    }

    pub unsafe extern "C" fn recover(folder: *const c_char) -> c_longlong {
        fenced(Status::Failed as c_longlong, || {
            // SAFETY: each pointer is null or a C string, as `logspool.h` demands.
            let folder = unsafe { super::text(folder) };
            slowly(|| match pipeline::recover(folder.as_deref().map(Path::new)) {
                Ok(report) => Ok(report.delivered.iter().map(|each| each.records as c_longlong).sum()),
                Err(error) => Err(Failure::new(Status::Failed, format!("cannot recover: {error}"))),
            })
        })
    }

    pub unsafe extern "C" fn last_error() -> *const c_char {
        status::last_text()
    }

    pub unsafe extern "C" fn last_status() -> c_int {
        status::last()
    }

    pub unsafe extern "C" fn generation() -> u64 {
        super::generation::current()
    }

    pub unsafe extern "C" fn lane_view() -> *mut LaneView {
        fenced(std::ptr::null_mut(), || {
            let view = beginning(|| Ok(pipeline::lane_view()))?;
            Ok(view.map_or(std::ptr::null_mut(), std::ptr::NonNull::as_ptr))
        })
    }

    pub unsafe extern "C" fn logger_handle(logger: u32) -> *const PublicHandle {
        LOGGERS.get(logger).map_or(std::ptr::null(), |logger| std::ptr::from_ref(logger.public))
    }

    pub unsafe extern "C" fn site_handle(site: u32) -> *const PublicHandle {
        SITES.get(site).map_or(std::ptr::null(), |site| std::ptr::from_ref(site.public))
    }

    pub unsafe extern "C" fn hand_over() -> c_longlong {
        fenced(-1, || {
            // A binding that needs more than the table cannot become a guest.
            if KEEPS_QUEUE.load(Ordering::Relaxed) {
                return Ok(-1);
            }
            slowly(|| {
                let _held = DEFINING.lock();
                // Set before a call can fail because of the hand-over, so that the call waits for its result.
                HANDS_OVER.publish(true);
                let number = pipeline::hand_over(HAND_OVER_TIMEOUT);
                HANDED_OVER.publish(number.is_some());
                HANDS_OVER.publish(false);
                Ok(number.map_or(-1, |number| number as c_longlong))
            })
        })
    }

    pub unsafe extern "C" fn replay(to: *const Api) {
        let c_text = |text: &str| CString::new(text).unwrap_or_default();
        fenced((), || {
            // SAFETY: the table of the copy that has the queue now.
            let table = unsafe { &*to };
            let keeps_ids = has_closing(table);
            for (id, sink) in sinks::SINKS.all() {
                let (address, format) = (c_text(&sink.address), sink.format_text.as_deref().map(c_text));
                let format = format.as_ref().map_or(std::ptr::null(), |format| format.as_ptr());
                // SAFETY: C strings that live until the call returns, here and below.
                unsafe {
                    if keeps_ids {
                        (table.restore_sink_as)(id, c_int::from(sink.is_open()), address.as_ptr(), format);
                    } else {
                        (table.restore_sink)(address.as_ptr(), format);
                    }
                }
            }
            for (id, logger) in LOGGERS.all() {
                let (name, sinks) = (c_text(&logger.name), logger.sinks());
                // SAFETY: the C strings and lists live until the call returns.
                unsafe {
                    if keeps_ids {
                        let users = logger.users.load(Ordering::Relaxed);
                        (table.restore_logger_as)(id, users, name.as_ptr(), sinks.as_ptr(), sinks.len(), logger.public);
                    } else {
                        (table.restore_logger)(name.as_ptr(), sinks.as_ptr(), sinks.len(), logger.public);
                    }
                }
            }
            for (_, site) in SITES.all() {
                let definition = &site.definition;
                let [file, function] = [&definition.file, &definition.function].map(|each| c_text(each));
                let message = definition.template.as_deref().map(c_text);
                let info = SiteInfo {
                    size: size_of::<SiteInfo>() as u32,
                    line: definition.line,
                    file: file.as_ptr(),
                    function: function.as_ptr(),
                    message: message.as_ref().map_or(std::ptr::null(), |message| message.as_ptr()),
                    level: site.public.level.load(Ordering::Relaxed) as u16,
                    grammar: definition.grammar.number(),
                    flags: 0,
                    type_count: 0,
                    types: std::ptr::null(),
                };
                // SAFETY: the C strings and lists live until the call returns.
                unsafe { (table.restore_site)(&info, site.public) };
            }
            Ok(())
        });
        // Last: from here on the calls of this copy go through the other table.
        IN_USE.publish(to.cast_mut());
    }

    pub unsafe extern "C" fn restore_sink(address: *const c_char, format: *const c_char) -> u32 {
        fenced(0, || {
            // SAFETY: each pointer is null or a C string, as `logspool.h` demands.
            let [address, format] = [address, format].map(|each| unsafe { super::text(each) });
            beginning(|| sinks::restore(None, &address.unwrap_or_default(), format.as_deref()))
        })
    }

    pub unsafe extern "C" fn restore_sink_as(
        id: u32,
        is_open: c_int,
        address: *const c_char,
        format: *const c_char,
    ) -> u32 {
        fenced(0, || {
            // SAFETY: each pointer is null or a C string, as `logspool.h` demands.
            let [address, format] = [address, format].map(|each| unsafe { super::text(each) });
            beginning(|| sinks::restore(Some((id, is_open != 0)), &address.unwrap_or_default(), format.as_deref()))
        })
    }

    pub unsafe extern "C" fn restore_logger(
        name: *const c_char,
        sinks: *const u32,
        count: usize,
        public: *const PublicHandle,
    ) -> u32 {
        // SAFETY: the name is a C string and `count` ids are at `sinks`: the other copy of the library made them.
        unsafe { restore_logger_under(None, 1, name, sinks, count, public) }
    }

    pub unsafe extern "C" fn restore_logger_as(
        id: u32,
        users: u32,
        name: *const c_char,
        sinks: *const u32,
        count: usize,
        public: *const PublicHandle,
    ) -> u32 {
        // SAFETY: the name is a C string and `count` ids are at `sinks`: the other copy of the library made them.
        unsafe { restore_logger_under(Some(id), users, name, sinks, count, public) }
    }

    unsafe fn restore_logger_under(
        id: Option<u32>,
        users: u32,
        name: *const c_char,
        sinks: *const u32,
        count: usize,
        public: *const PublicHandle,
    ) -> u32 {
        fenced(0, || {
            // SAFETY: the call of `replay` in another copy, which is never unloaded.
            let (name, sinks, public) = unsafe {
                let sinks = if count == 0 { &[] } else { std::slice::from_raw_parts(sinks, count) };
                (super::text(name).unwrap_or_default(), sinks, &*public)
            };
            beginning(|| loggers::restore(id, &name, sinks, users, public))
        })
    }

    pub unsafe extern "C" fn restore_site(site: *const SiteInfo, public: *const PublicHandle) -> u32 {
        fenced(0, || {
            // SAFETY: `replay` of another copy, which is never unloaded, passes both.
            beginning(|| unsafe { sites::restore(sites::definition(site)?, &*public) })
        })
    }

    pub unsafe extern "C" fn wake(level: u16) {
        fenced((), || {
            pipeline::wake_after(level);
            Ok(())
        });
    }
}

/// How long a copy writes what is queued before it hands the queue over.
const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a record waits for the other copy while the queue is handed over.
const MOVING_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes this copy, whose binding needs more than the table, take the queue over from a copy that was first. Offers
/// this copy's table to later copies.
pub fn offer() {
    KEEPS_QUEUE.store(true, Ordering::Relaxed);
    static ASK: copies::HandOver = |address| {
        let table = address as *const Api;
        // SAFETY: the page of a copy that has claimed the process has the address of its table.
        if address == 0 || unsafe { (*table).major } != MAJOR {
            return false;
        }
        // SAFETY: a table of this major version has the function, and its copy is never unloaded.
        let number = unsafe { ((*table).hand_over)() };
        if number >= 0 {
            TAKES_HANDLES.publish(true);
            pipeline::continue_after(number as u64);
        }
        number >= 0
    };
    static CONTINUE: copies::AfterHandOver = |address| {
        IN_USE.publish(std::ptr::from_ref(&OWN).cast_mut());
        // SAFETY: the hook gets the table that has just handed over.
        unsafe { ((*(address as *const Api)).replay)(&OWN) };
        TAKES_HANDLES.publish(false);
    };
    copies::offer(std::ptr::from_ref(&OWN) as u64, &ASK, &CONTINUE);
}

/// The table to repeat a failed call with, after the other copy has the handles of this one. `None`: this copy has not
/// handed over. If it was about to and kept the queue, the table is its own.
fn moved_table() -> Option<&'static Api> {
    let end = std::time::Instant::now() + MOVING_TIMEOUT;
    let waits = |is_moving: &dyn Fn() -> bool| {
        while is_moving() && std::time::Instant::now() < end {
            logspool_sys::sleep::sleep_interruptibly(Duration::from_micros(100));
        }
    };
    let was_moving = HANDS_OVER.observe();
    // A signal handler on the thread that hands over would wait for itself.
    if was_moving && !SlowPart::is_open() {
        waits(&|| HANDS_OVER.observe());
    }
    if !HANDED_OVER.observe() {
        return (was_moving && !HANDS_OVER.observe()).then_some(&OWN);
    }
    waits(&is_own);
    (!is_own()).then(in_use)
}

/// Waits until this copy has the handles of the copy that it takes the queue from: they must keep their ids.
fn await_handles() {
    let end = std::time::Instant::now() + MOVING_TIMEOUT;
    while TAKES_HANDLES.observe() && std::time::Instant::now() < end {
        logspool_sys::sleep::sleep_interruptibly(Duration::from_micros(100));
    }
}

/// Whether another copy is about to define its handles in this one.
static TAKES_HANDLES: AtomicBool = AtomicBool::new(false);

/// Whether this copy never hands its queue over.
static KEEPS_QUEUE: AtomicBool = AtomicBool::new(false);

/// Whether this copy is about to hand the queue over.
static HANDS_OVER: AtomicBool = AtomicBool::new(false);

/// Whether this copy has handed the queue over.
static HANDED_OVER: AtomicBool = AtomicBool::new(false);

/// Whether the calls of this copy go through its own table.
pub fn is_own() -> bool {
    std::ptr::eq(IN_USE.load(Ordering::Relaxed), &OWN)
}
