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
use logspool_record::definition::{MAX_TARGETS, SiteDefinition};
use logspool_sys::fork_safe_lock::ForkSafeLock;
use logspool_sys::generation;
use logspool_sys::published::Published;

use crate::beginning::{self, begin};
use crate::emitting::{self, SlowPart};
use crate::handles::PublicHandle;
use crate::loggers::{self, LOGGERS};
use crate::sinks;
use crate::sites::{self, SITES, SiteInfo};
use crate::stats;
use crate::status::{self, Failure, Status, fenced, fenced_status, text};
use crate::values::Argument;

/// Major version of the table.
pub const MAJOR: u32 = 1;
/// Minor version of the table.
pub const MINOR: u32 = 2;

/// Declares the table, the functions that call through the table in use, and the table of those.
macro_rules! table {
    ($($name:ident: fn($($argument:ident: $kind:ty),*) $(-> $result:ty)?, failed $failed:expr;)+) => {
        /// `struct logspool_api`. `logspool.h` has the meaning of each function.
        #[repr(C)]
        #[allow(missing_docs, reason = "the functions are documented in logspool.h")]
        pub struct Api {
            pub major: u32,
            pub minor: u32,
            pub size: u32,
            pub reserved: u32,
            $(pub $name: unsafe extern "C" fn($($kind),*) $(-> $result)?,)+
        }

        /// The functions of this copy's own core.
        pub static OWN: Api = Api { major: MAJOR, minor: MINOR, size: size_of::<Api>() as u32, reserved: 0, $($name: own::$name),+ };

        /// Functions that call through the table in use.
        pub mod forward {
            use super::*;

            $(
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
            )+
        }

        /// The table that bindings give away: its functions go through the table in use.
        pub static FORWARD: Api = Api { major: MAJOR, minor: MINOR, size: size_of::<Api>() as u32, reserved: 0, $($name: forward::$name),+ };
    };
}

table! {
    configure: fn(options: *const c_char) -> c_int, failed Status::Version as c_int;
    sink_open: fn(address: *const c_char, format: *const c_char) -> u32, failed 0;
    logger: fn(name: *const c_char, level: u16, sinks: *const u32, count: usize) -> u32, failed 0;
    logger_level: fn(logger: u32, level: u16) -> c_int, failed Status::Version as c_int;
    site: fn(site: *const SiteInfo) -> u32, failed 0;
    emit: fn(logger: u32, site: u32, arguments: *const Argument, count: usize) -> c_int, failed Status::Version as c_int;
    text: fn(logger: u32, level: u16, bytes: *const c_char, length: usize, file: *const c_char, line: u32, function: *const c_char) -> c_int, failed Status::Version as c_int;
    reserve: fn(logger: u32, site: u32, bytes: usize) -> *mut c_void, failed std::ptr::null_mut();
    commit: fn() -> c_int, failed Status::Version as c_int;
    abandon: fn() -> c_int, failed Status::Version as c_int;
    flush: fn(timeout_seconds: f64) -> c_int, failed Status::Version as c_int;
    drain: fn(timeout_seconds: f64) -> c_int, failed Status::Version as c_int;
    stats: fn(buffer: *mut c_char, bytes: usize) -> c_long, failed Status::Version as c_long;
    recover: fn(folder: *const c_char) -> c_longlong, failed Status::Version as c_longlong;
    last_error: fn() -> *const c_char, failed status::last_text();
    last_status: fn() -> c_int, failed status::last();
    generation: fn() -> u64, failed 0;
    lane_view: fn() -> *mut c_void, failed std::ptr::null_mut();
    logger_handle: fn(logger: u32) -> *const PublicHandle, failed std::ptr::null();
    site_handle: fn(site: u32) -> *const PublicHandle, failed std::ptr::null();
    wake: fn(level: u16), failed std::convert::identity(());
    hand_over: fn() -> c_longlong, failed -1;
    replay: fn(to: *const Api), failed std::convert::identity(());
    restore_sink: fn(address: *const c_char, format: *const c_char) -> u32, failed 0;
    restore_logger: fn(name: *const c_char, sinks: *const u32, count: usize, public: *const PublicHandle) -> u32, failed 0;
    restore_site: fn(site: *const SiteInfo, public: *const PublicHandle) -> u32, failed 0;
    logger_find: fn(name: *const c_char) -> u32, failed 0;
    logger_close: fn(logger: u32) -> c_int, failed Status::Version as c_int;
    sink_close: fn(sink: u32) -> c_int, failed Status::Version as c_int;
    restore_sink_as: fn(id: u32, is_open: c_int, address: *const c_char, format: *const c_char) -> u32, failed 0;
    restore_logger_as: fn(id: u32, users: u32, name: *const c_char, sinks: *const u32, count: usize, public: *const PublicHandle) -> u32, failed 0;
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

    pub unsafe extern "C" fn lane_view() -> *mut c_void {
        fenced(std::ptr::null_mut(), || {
            let view = beginning(|| Ok(pipeline::lane_view()))?;
            Ok(view.map_or(std::ptr::null_mut(), |view| view.as_ptr().cast()))
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
