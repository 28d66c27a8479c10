//! Logs one record.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

use logspool::pipeline::{self, Push, Refusal, Room, Waiter};
use logspool_record::Head;
use logspool_record::definition::SiteDefinition;
use logspool_record::{Encoder, tag};
use logspool_sys::platform;

use crate::beginning::begin;
use crate::handles::{NEEDS_THREAD, NEEDS_THREAD_NAME};
use crate::loggers::{LOGGERS, LoggerHandle};
use crate::sites::{SITES, SiteHandle};
use crate::status::{ErrnoGuard, Failure, Status};
use crate::values::{Argument, CheckedArguments, MAX_ARGUMENTS, MAX_RECORD_BYTES, Unfit, cut, mended};

thread_local! {
    /// Whether this thread is in a part of a call that takes locks or allocates.
    static IS_SLOW: Cell<bool> = const { Cell::new(false) };
}

/// The mark that this thread takes locks. A signal handler that interrupts it must not take them again.
pub struct SlowPart;

impl SlowPart {
    /// Marks this thread. `None`: the call interrupts a marked part of the same thread.
    pub fn begin() -> Option<Self> {
        (!IS_SLOW.replace(true)).then_some(Self)
    }

    /// Whether this thread is in a marked part, as in a signal handler that interrupts one.
    pub fn is_open() -> bool {
        IS_SLOW.get()
    }
}

impl Drop for SlowPart {
    fn drop(&mut self) {
        IS_SLOW.set(false);
    }
}

/// Counts a record of a call that interrupts another call.
#[cold]
fn refuse_interrupting(level: u16) -> Result<Status, Failure> {
    pipeline::count_interrupting(level);
    Err(Failure::new(Status::Refused, "the call interrupts another logging call of its thread"))
}

#[cold]
fn refused(reason: Refusal) -> Failure {
    // A text that is made would need memory, and the call may be one of a signal handler, which must not allocate.
    macro_rules! because {
        ($why:literal) => {
            concat!("the record is refused and counted: ", $why)
        };
    }
    let text = match reason {
        Refusal::QueueFull => because!("the queue stayed full"),
        Refusal::Reentrant => because!("the call interrupts another logging call of its thread"),
        Refusal::NoLane => because!("there is no queue: no memory, or another copy of the library has it"),
        Refusal::NoBlob => because!("the record is too large for the room that is left for large records"),
        Refusal::StaleIds => because!("the ids belong to a former queue"),
    };
    Failure::new(Status::Refused, text)
}

/// Head of a record, with the ids of the current pipeline.
fn head(logger: &LoggerHandle, site: u32, level: u16) -> Result<Head, Failure> {
    let (route, _) = logger.route()?;
    Ok(Head { len: 0, site, route, level, flags: 0, ticks: 0 })
}

/// The definition of a site inside a record.
fn inline_site(site: &SiteDefinition) -> Vec<u8> {
    let mut encoder = Encoder::new();
    site.encode_inline(&mut encoder);
    encoder.bytes
}

/// Appends the values that name this thread.
fn push_thread(needs: u32, values: &mut Vec<u8>) {
    if needs & NEEDS_THREAD != 0 {
        let thread = i64::from(platform::thread_id());
        values.push(tag::THREAD);
        values.extend_from_slice(&thread.to_ne_bytes());
    }
    if needs & NEEDS_THREAD_NAME != 0 {
        // The kernel's name: 15 bytes and a NUL at most.
        let mut name = [0_u8; 16];
        // SAFETY: the buffer has the size that the call needs.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        let bytes = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let text = String::from_utf8_lossy(&name[..bytes]);
        let mut encoder = Encoder::new();
        encoder.context_str(tag::THREAD_NAME, &text);
        values.extend_from_slice(&encoder.bytes);
    }
}

/// Queues a record. `fill` stores exactly `bytes` bytes.
fn queue(
    logger: &LoggerHandle,
    site: Option<&SiteHandle>,
    level: u16,
    bytes: usize,
    fill: impl Fn(*mut u8),
) -> Result<Status, Failure> {
    // The common case: nothing is to be defined, and there is room.
    let number = pipeline::id_epoch();
    let ids = (logger.public.id_under(number), site.and_then(|site| site.public.id_under(number)));
    if let (Some(route), Some(site)) = ids
        && site != 0
        && logger.public.needs.load(Ordering::Relaxed) == 0
    {
        let head = Head { len: 0, site, route, level, flags: 0, ticks: 0 };
        match pipeline::push(head, bytes, &fill) {
            Push::Accepted => return Ok(Status::Ok),
            Push::MustWaitForSync => return await_durable(level),
            Push::NoRoom => {}
        }
    }
    queue_slowly(logger, site, level, bytes, &fill)
}

#[cold]
fn await_durable(level: u16) -> Result<Status, Failure> {
    let _ = pipeline::await_durable(level);
    Ok(Status::Ok)
}

#[inline(never)]
fn queue_slowly(
    logger: &LoggerHandle,
    site: Option<&SiteHandle>,
    level: u16,
    bytes: usize,
    fill: &dyn Fn(*mut u8),
) -> Result<Status, Failure> {
    let _errno = ErrnoGuard::begin();
    let Some(_slow) = SlowPart::begin() else { return refuse_interrupting(level) };
    begin();
    let mut waited = Duration::ZERO;
    loop {
        let site_id = site.map_or(0, SiteHandle::id);
        let head = head(logger, site_id, level)?;
        let mut before = Vec::new();
        if let (Some(site), 0) = (site, site_id) {
            before = inline_site(&site.definition);
        }
        push_thread(logger.public.needs.load(Ordering::Relaxed), &mut before);
        let all = before.len() + bytes;
        let fill_all = |to: *mut u8| {
            // SAFETY: there is room for `all` bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(before.as_ptr(), to, before.len());
                fill(to.add(before.len()));
            }
        };
        match pipeline::push(head, all, fill_all) {
            Push::Accepted => return Ok(Status::Ok),
            Push::MustWaitForSync => return await_durable(level),
            Push::NoRoom => {}
        }
        if let Room::Refused(reason) = pipeline::make_room(level, all, Waiter::Thread, &mut waited) {
            // A call that interrupts another one may be that of a signal handler: it takes no lock and no memory.
            if !matches!(reason, Refusal::Reentrant) {
                pipeline::show_refused(head, || {
                    let mut values = vec![0; all];
                    fill_all(values.as_mut_ptr());
                    values
                });
            }
            return Err(refused(reason));
        }
    }
}

/// Logs one record of a site.
///
/// # Errors
///
/// The record is refused, or an argument cannot be encoded.
///
/// # Safety
///
/// `arguments` has `count` arguments, and texts are at their pointers.
pub unsafe fn emit(logger: u32, site: u32, arguments: *const Argument, count: usize) -> Result<Status, Failure> {
    let logger = LOGGERS.get(logger).ok_or_else(|| Failure::unknown("logger", logger))?;
    let site = SITES.get(site).ok_or_else(|| Failure::unknown("site", site))?;
    let level = site.public.level.load(Ordering::Relaxed);
    if level < logger.public.level.load(Ordering::Relaxed) && !site.is_always_logged() {
        return Ok(Status::Disabled);
    }
    if count > MAX_ARGUMENTS || arguments.is_null() && count > 0 {
        return Err(Failure::invalid(format!(
            "a call has at most {MAX_ARGUMENTS} arguments at an address, not {count}"
        )));
    }
    // SAFETY: not null, and `count` arguments are at the pointer.
    let arguments = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(arguments, count) } };
    let has_template = site.definition.template.is_some();
    // SAFETY: the texts of the arguments are at their pointers until the call of the program ends.
    match unsafe { CheckedArguments::check(arguments, !has_template) } {
        Ok(values) if values.len() <= MAX_RECORD_BYTES => {
            // SAFETY: the lane has room for the values.
            queue(logger, Some(site), level as u16, values.len(), |to| unsafe { values.write(to) })
        }
        Err(Unfit::Failure(failure)) => Err(failure),
        Ok(_) | Err(Unfit::Text) => {
            // SAFETY: the texts of the arguments are at their pointers until the call of the program ends.
            let (arguments, _texts) = unsafe { mended(arguments) };
            // SAFETY: the texts live until the end of this arm.
            match unsafe { CheckedArguments::check(&arguments, !has_template) } {
                // SAFETY: the lane has room for the values.
                Ok(values) => queue(logger, Some(site), level as u16, values.len(), |to| unsafe { values.write(to) }),
                Err(Unfit::Failure(failure)) => Err(failure),
                Err(Unfit::Text) => Err(Failure::invalid("a text changes while it is logged")),
            }
        }
    }
}

/// Logs one finished text.
///
/// # Errors
///
/// The record is refused, or the logger is unknown.
pub fn text(logger: u32, level: u16, text: &[u8], site: SiteDefinition) -> Result<Status, Failure> {
    let logger = LOGGERS.get(logger).ok_or_else(|| Failure::unknown("logger", logger))?;
    if level == 0 {
        return Err(Failure::invalid("the level of a record must be 1 to 65535, not 0"));
    }
    if u32::from(level) < logger.public.level.load(Ordering::Relaxed) {
        return Ok(Status::Disabled);
    }
    let mut text = String::from_utf8_lossy(text);
    if text.len() > MAX_RECORD_BYTES / 8 * 7 {
        cut(text.to_mut(), MAX_RECORD_BYTES / 8 * 7);
    }
    let mut encoder = Encoder { bytes: inline_site(&site) };
    encoder.context_str(tag::MESSAGE, &text);
    let bytes = &encoder.bytes;
    queue(logger, None, level, bytes.len(), |to| {
        // SAFETY: the lane has room for the bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    })
}

/// Reserves room for the values of a record. `None`: the level is disabled.
///
/// # Errors
///
/// The record is refused, or an id is unknown.
pub fn reserve(logger: u32, site: u32, bytes: usize) -> Result<Option<*mut u8>, Failure> {
    let logger = LOGGERS.get(logger).ok_or_else(|| Failure::unknown("logger", logger))?;
    let site = SITES.get(site).ok_or_else(|| Failure::unknown("site", site))?;
    let level = site.public.level.load(Ordering::Relaxed) as u16;
    if u32::from(level) < logger.public.level.load(Ordering::Relaxed) && !site.is_always_logged() {
        return Ok(None);
    }
    if bytes > u32::MAX as usize / 2 {
        return Err(Failure::invalid(format!("a record cannot have {bytes} bytes")));
    }
    if pipeline::is_interrupting() {
        return refuse_interrupting(level).map(|_| None);
    }
    let number = pipeline::id_epoch();
    if let (Some(route), Some(site)) = (logger.public.id_under(number), site.public.id_under(number))
        && site != 0
        && let Some(place) = pipeline::reserve(Head { len: 0, site, route, level, flags: 0, ticks: 0 }, bytes)
    {
        return Ok(Some(place));
    }
    let _errno = ErrnoGuard::begin();
    let Some(_slow) = SlowPart::begin() else { return refuse_interrupting(level).map(|_| None) };
    begin();
    let mut waited = Duration::ZERO;
    loop {
        let site_id = site.id();
        let head = head(logger, site_id, level)?;
        let before = if site_id == 0 { inline_site(&site.definition) } else { Vec::new() };
        let all = before.len() + bytes;
        if let Some(place) = pipeline::reserve(head, all) {
            // SAFETY: there is room for `all` bytes.
            return Ok(Some(unsafe {
                std::ptr::copy_nonoverlapping(before.as_ptr(), place, before.len());
                place.add(before.len())
            }));
        }
        if let Room::Refused(reason) = pipeline::make_room(level, all, Waiter::Thread, &mut waited) {
            return Err(refused(reason));
        }
    }
}

/// Publishes the record of [`reserve`].
///
/// # Errors
///
/// None is open.
pub fn commit() -> Result<Status, Failure> {
    match pipeline::commit() {
        Some(Push::MustWaitForSync) => await_durable(0),
        Some(_) => Ok(Status::Ok),
        None => Err(Failure::invalid("no record is reserved on this thread")),
    }
}

/// Gives up the record of [`reserve`].
///
/// # Errors
///
/// None is open.
pub fn abandon() -> Result<Status, Failure> {
    if pipeline::abandon() { Ok(Status::Ok) } else { Err(Failure::invalid("no record is reserved on this thread")) }
}
