//! One logging call of a Rust program: from its arguments to the queue.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the ids of a site, which each call reads.

use std::cell::RefCell;
use std::fmt::Write;
use std::sync::atomic::AtomicPtr;
use std::time::Duration;

use logspool_record::definition::{Grammar, SiteDefinition};
use logspool_record::{Encoder, Head, tag};
use logspool_sys::published::Published;

use super::Level;
use super::argument::{Arguments, Encoded, ValueWriter};
use super::places::PlaceKey;
use super::registry::{self, SiteIds, TargetKind};
use crate::pipeline::{self, Push, Refusal, Room, Waiter};

/// A place in the program that logs. The macros make one `static` of each call.
#[derive(Debug)]
pub struct CallSite {
    level: Level,
    target: &'static str,
    file: &'static str,
    line: u32,
    function: &'static str,
    template: &'static str,
    /// The newest ids; null before the first call. Older ones are never freed: a process has as many as it forked.
    ids: AtomicPtr<SiteIds>,
}

/// A call whose level is enabled.
#[derive(Debug)]
pub struct Call<'a> {
    /// The site; `None` for a call that brings its text, from the crates `log` and `tracing`.
    site: Option<&'a CallSite>,
    level: Level,
    ids: SiteIds,
    route: u32,
}

/// Begins a call at a place. `None`: its record is not wanted, or refused and counted.
#[cfg(any(feature = "log", feature = "tracing"))]
pub(super) fn begin_at(key: &PlaceKey<'_>) -> Option<Call<'static>> {
    let ids = super::places::find(key);
    Some(Call { site: None, level: key.level, ids, route: ids.route.id(key.level as u16)? })
}

impl CallSite {
    /// A call site. `template` is in the grammar of `format_args!`.
    pub const fn new(
        level: Level,
        target: &'static str,
        (file, line, function): (&'static str, u32, &'static str),
        template: &'static str,
    ) -> Self {
        Self { level, target, file, line, function, template, ids: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Begins a call. `None`: its record is not wanted, or refused and counted.
    #[inline]
    pub fn begin(&self) -> Option<Call<'_>> {
        if (self.level as u16) < registry::min_level() {
            return None;
        }
        let ids = self.ids();
        Some(Call { site: Some(self), level: self.level, ids, route: ids.route.id(self.level as u16)? })
    }

    /// Begins a call with a target that is found when the program runs. `None` as for [`Self::begin`].
    pub fn begin_for(&self, target: &str) -> Option<Call<'_>> {
        if (self.level as u16) < registry::min_level() {
            return None;
        }
        let ids = self.ids();
        let found = super::places::find(&PlaceKey { level: self.level, target, file: "", line: 0, function: "" });
        Some(Call { site: Some(self), level: self.level, ids, route: found.route.id(self.level as u16)? })
    }

    #[inline]
    fn ids(&self) -> SiteIds {
        // SAFETY: stored by `define`, never freed.
        match unsafe { self.ids.observe().as_ref() } {
            Some(ids) if ids.epoch == pipeline::id_epoch() => *ids,
            _ => self.define(),
        }
    }

    fn definition(&self) -> SiteDefinition {
        SiteDefinition {
            file: self.file.to_owned(),
            line: self.line,
            function: self.function.to_owned(),
            template: Some(self.template.to_owned()),
            grammar: Grammar::Rust,
        }
    }

    #[cold]
    fn define(&self) -> SiteIds {
        let site = |_| pipeline::define_site(&self.definition()).unwrap_or(0);
        let ids = registry::define(self.target, TargetKind::Fixed, self.level as u16, site);
        self.ids.publish(Box::into_raw(Box::new(ids)));
        ids
    }
}

impl Call<'_> {
    /// Queues the record with its arguments. `fields` are its keys and values.
    #[inline]
    pub fn send(self, fields: &impl Arguments, arguments: &impl Arguments) {
        match self.site {
            Some(site) if self.ids.site == 0 => self.send_without_id(site, fields, arguments),
            _ => self.queue(fields, &[], arguments),
        }
    }

    /// Queues the record with a text that the caller has made.
    pub fn send_text(self, fields: &impl Arguments, text: std::fmt::Arguments<'_>) {
        if let Some(text) = text.as_str() {
            return self.queue(fields, &[(tag::MESSAGE, text)], &());
        }
        with_text(text, |text| self.queue(fields, &[(tag::MESSAGE, text)], &()));
    }

    /// Queues the record with a finished text.
    #[cfg(feature = "tracing")]
    pub(super) fn send_message(self, fields: &impl Arguments, text: &str) {
        self.queue(fields, &[(tag::MESSAGE, text)], &());
    }

    /// The table of call sites is full, so the record brings the definition of its site.
    #[cold]
    fn send_without_id(self, site: &CallSite, fields: &impl Arguments, arguments: &impl Arguments) {
        let mut encoder = Encoder::new();
        site.definition().encode_inline(&mut encoder);
        self.queue(&(Encoded(encoder.bytes), fields), &[], arguments);
    }

    #[inline(always)]
    fn queue(self, fields: &impl Arguments, texts: &[(u8, &str)], arguments: &impl Arguments) {
        if registry::shows_thread() {
            with_thread(|id, name| {
                let texts: Vec<_> = [(tag::THREAD_NAME, name)].into_iter().chain(texts.iter().copied()).collect();
                self.push(Some(id), fields, &texts, arguments);
            });
        } else {
            self.push(None, fields, texts, arguments);
        }
    }

    #[inline(always)]
    fn push(&self, thread: Option<i64>, fields: &impl Arguments, texts: &[(u8, &str)], arguments: &impl Arguments) {
        let texts_bytes: usize = texts.iter().map(|(_, text)| 5 + text.len()).sum();
        let bytes = thread.map_or(0, |_| 9) + texts_bytes + fields.bytes() + arguments.bytes();
        let head =
            Head { len: 0, site: self.ids.site, route: self.route, level: self.level as u16, flags: 0, ticks: 0 };
        let fill = |to: *mut u8| {
            // SAFETY: `push` gives exactly `bytes` bytes of the queue, which only this call writes.
            let mut writer = unsafe { ValueWriter::new(to, bytes) };
            if let Some(thread) = thread {
                writer.tagged(tag::THREAD, thread.to_ne_bytes());
            }
            for (tag, text) in texts {
                writer.tagged_bytes(*tag, text.as_bytes());
            }
            fields.write(&mut writer);
            arguments.write(&mut writer);
            writer.finish();
        };
        match pipeline::push(head, bytes, fill) {
            Push::Accepted => {}
            Push::MustWaitForSync => await_durable(head.level),
            Push::NoRoom => push_slowly(head, bytes, &fill),
        }
    }
}

/// Waits until the record that was just pushed is durable. The pipeline counts a record that is not in time.
#[cold]
fn await_durable(level: u16) {
    pipeline::await_durable(level);
}

/// Waits for room and pushes. A record that is refused is counted by the pipeline.
#[cold]
#[inline(never)]
fn push_slowly(head: Head, bytes: usize, fill: &dyn Fn(*mut u8)) {
    let epoch = pipeline::id_epoch();
    let mut waited = Duration::ZERO;
    loop {
        match pipeline::make_room(head.level, bytes, Waiter::Thread, &mut waited) {
            Room::Retry => {}
            Room::Refused(_) => return show_refused(head, bytes, fill),
        }
        // Only a fork or the end of the process changes the number while a call waits.
        if epoch != pipeline::id_epoch() {
            return pipeline::refuse(head.level, Refusal::StaleIds);
        }
        match pipeline::push(head, bytes, fill) {
            Push::Accepted => return,
            Push::MustWaitForSync => return await_durable(head.level),
            Push::NoRoom => {}
        }
    }
}

fn show_refused(head: Head, bytes: usize, fill: &dyn Fn(*mut u8)) {
    pipeline::show_refused(head, || {
        let mut values = vec![0; bytes];
        fill(values.as_mut_ptr());
        values
    });
}

/// Passes an empty buffer that the thread keeps, up to a size.
pub(super) fn with_buffer<R>(work: impl FnOnce(&mut String) -> R) -> R {
    /// Chosen: longer texts are rare, and each thread keeps this much.
    const KEPT_BYTES: usize = 4096;
    thread_local! {
        static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
    }
    // A value that logs while its text is made finds no kept buffer and makes its own.
    let mut kept = TEXT.try_with(RefCell::take).unwrap_or_default();
    kept.clear();
    let result = work(&mut kept);
    if kept.capacity() <= KEPT_BYTES {
        let _ = TEXT.try_with(|buffer| buffer.replace(kept));
    }
    result
}

/// Makes a text in memory that the thread keeps.
fn with_text(text: std::fmt::Arguments<'_>, work: impl FnOnce(&str)) {
    with_buffer(|buffer| {
        // An implementation that reports an error shows its text up to the error.
        let _ = buffer.write_fmt(text);
        work(buffer);
    });
}

/// Passes the number and the name of the calling thread, as Python's `threading` shows them.
fn with_thread<R>(work: impl FnOnce(i64, &str) -> R) -> R {
    // SAFETY: no preconditions.
    let id = unsafe { libc::pthread_self() } as i64;
    let thread = std::thread::current();
    work(id, thread.name().unwrap_or("unnamed"))
}
