//! Call sites: the source locations that log, resolved once per instruction of a code object.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). On GIL builds a site is stored in the extra slot of its code object
//! and freed with it. So a new code object at the same address never gets the lines of the old one. On free-threaded
//! builds that slot is not thread-safe (python/cpython #144981). There a bounded map keeps the code objects alive.
//!
//! The atomics here are outside the crate's `queue` module, because concurrent calls write the ids on free-threaded
//! builds.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use logspool::pipeline;
use logspool_record::Encoder;
use logspool_record::definition::SiteDefinition;
use logspool_sys::published::Published;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::calls::record_template::RecordTemplate;
use crate::calls::template::Template;
use crate::interpreter::frame::{self, Caller, Frame};
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned};

/// A source location: file, function and line.
pub struct Site {
    /// True if stock logging skips frames of this code: logging's own code and, from Python 3.11 on, the import
    /// machinery.
    pub internal: bool,
    /// True if file and function encode to UTF-8. Otherwise records of this site take the stock path.
    pub usable: bool,
    definition: SiteDefinition,
    plain: SiteId,
    template: OnceLock<BoundTemplate>,
    record_template: OnceLock<Arc<RecordTemplate>>,
    objects: OnceLock<[Owned; 3]>,
}

/// The first template that was used at a site. Messages with another template are sent from that site as text.
pub struct BoundTemplate {
    /// The template's `str`. Its address is compared before its text.
    pub object: Owned,
    /// The directives of the template.
    pub template: Template,
    definition: SiteDefinition,
    id: SiteId,
}

/// How a record refers to its site.
#[derive(Clone, Copy)]
pub enum SiteName<'a> {
    /// The id of the site.
    Id(u32),
    /// The complete definition, because the table of sites is full.
    Inline(&'a [u8]),
}

struct SiteId {
    /// The id epoch under which `id` was defined.
    id_epoch: AtomicU64,
    /// The id, or 0 if the table of sites was full.
    id: AtomicU32,
    inline: OnceLock<Vec<u8>>,
}

impl SiteId {
    const fn new() -> Self {
        Self { id_epoch: AtomicU64::new(0), id: AtomicU32::new(0), inline: OnceLock::new() }
    }

    #[inline(always)]
    fn name(&self, id_epoch: u64, definition: &SiteDefinition) -> SiteName<'_> {
        // Pairs with `publish` in `define`: the id that is loaded next belongs to this id epoch.
        if self.id_epoch.observe() == id_epoch {
            let id = self.id.load(Ordering::Relaxed);
            if id != 0 {
                return SiteName::Id(id);
            }
        }
        self.define(id_epoch, definition)
    }

    #[cold]
    #[inline(never)]
    fn define(&self, id_epoch: u64, definition: &SiteDefinition) -> SiteName<'_> {
        if self.id_epoch.observe() != id_epoch {
            let id = pipeline::define_site(definition).unwrap_or(0);
            self.id.store(id, Ordering::Relaxed);
            self.id_epoch.publish(id_epoch);
            if id != 0 {
                return SiteName::Id(id);
            }
        }
        SiteName::Inline(self.inline.get_or_init(|| {
            let mut encoder = Encoder::new();
            definition.encode_inline(&mut encoder);
            encoder.bytes
        }))
    }
}

impl Site {
    fn new(py: Python<'_>, caller: Caller<'_>, line: u32) -> Self {
        let file = caller.text(py, &names().co_filename);
        let function = caller.text(py, &names().co_name);
        let usable = file.is_some() && function.is_some();
        let file = file.unwrap_or_default();
        Self {
            internal: internal(&file),
            usable,
            definition: SiteDefinition {
                file,
                line,
                function: function.unwrap_or_default(),
                ..SiteDefinition::default()
            },
            plain: SiteId::new(),
            template: OnceLock::new(),
            record_template: OnceLock::new(),
            objects: OnceLock::new(),
        }
    }

    /// A source location that a record names.
    pub fn of_record(file: String, line: u32, function: String) -> Self {
        Self {
            internal: false,
            usable: true,
            definition: SiteDefinition { file, line, function, ..SiteDefinition::default() },
            plain: SiteId::new(),
            template: OnceLock::new(),
            record_template: OnceLock::new(),
            objects: OnceLock::new(),
        }
    }

    /// File, line and function.
    pub fn definition(&self) -> &SiteDefinition {
        &self.definition
    }

    /// File, function and line as Python objects, always the same ones.
    pub fn objects(&self, py: Python<'_>) -> Option<&[Owned; 3]> {
        if self.objects.get().is_none() {
            let text = |text: &str| Owned::of(PyString::new(py, text).as_any());
            let SiteDefinition { file, line, function, .. } = &self.definition;
            // Another thread may have set them first; these are then dropped.
            let _ = self.objects.set([text(file), text(function), Owned::of(PyInt::new(py, *line).as_any())]);
        }
        self.objects.get()
    }

    /// The template of this site's records, once `log_record` has made it.
    #[inline]
    pub fn record_template(&self) -> &OnceLock<Arc<RecordTemplate>> {
        &self.record_template
    }

    /// How a record refers to this site if its message is text.
    #[inline]
    pub fn plain_name(&self, id_epoch: u64) -> SiteName<'_> {
        self.plain.name(id_epoch, &self.definition)
    }

    /// Returns the template bound to this site, if `message` (an exact `str`) is that template or can become it.
    #[inline(always)]
    pub fn template(&self, message: Object<'_, '_>) -> Option<&BoundTemplate> {
        match self.template.get() {
            Some(bound) if bound.object.as_ptr() == message.as_ptr() => Some(bound),
            other => self.template_slow(other, message),
        }
    }

    #[cold]
    #[inline(never)]
    fn template_slow<'a>(
        &'a self,
        bound: Option<&'a BoundTemplate>,
        message: Object<'_, '_>,
    ) -> Option<&'a BoundTemplate> {
        let text = object::text(message)?;
        // Comparing two exact `str` objects runs no Python code.
        let is_it = |bound: &&BoundTemplate| object::text(bound.object.bind(message.py())) == Some(text);
        if let Some(bound) = bound {
            return Some(bound).filter(is_it);
        }
        let template = Template::parse(message.py(), text)?;
        let definition = SiteDefinition { template: Some(text.to_owned()), ..self.definition.clone() };
        let new = BoundTemplate { object: Owned::of(&message), template, definition, id: SiteId::new() };
        // Another thread may have bound its template first; `new` is then dropped.
        let _ = self.template.set(new);
        self.template.get().filter(is_it)
    }
}

impl BoundTemplate {
    /// How a record with deferred arguments refers to this site.
    #[inline(always)]
    pub fn name(&self, id_epoch: u64) -> SiteName<'_> {
        self.id.name(id_epoch, &self.definition)
    }
}

static SOURCE_FILE: OnceLock<String> = OnceLock::new();

/// Sets the path of logging's own source file (`logging._srcfile`).
pub fn set_source_file(path: &str) {
    let _ = SOURCE_FILE.set(path.to_owned());
}

fn internal(file: &str) -> bool {
    // `os.path.normcase` changes nothing on the platforms supported.
    SOURCE_FILE.get().is_some_and(|source| source == file)
        || cfg!(Py_3_11) && file.contains("importlib") && file.contains("_bootstrap")
}

/// The site of the Python code that called the running native function. Internal frames are skipped as in `findCaller`.
///
/// `None` if only stock logging can decide: the stack has no Python frame, or only internal frames.
#[inline(always)]
pub fn find(py: Python<'_>) -> Option<Reference<'_>> {
    if let Some(site) = store::find(py, frame::caller(py)?)
        && !site.internal
    {
        return Some(site);
    }
    find_slow(py)
}

#[cold]
#[inline(never)]
fn find_slow(py: Python<'_>) -> Option<Reference<'_>> {
    let caller = frame::caller(py)?;
    let site = known(py, caller, &Frame::top(py)?)?;
    if site.internal { find_at(py, 1).map(|(site, _)| site) } else { Some(site) }
}

/// The site of `caller`, which runs in `frame`. The first call creates the site.
fn known<'py>(py: Python<'py>, caller: Caller<'_>, frame: &Frame) -> Option<Reference<'py>> {
    match store::find(py, caller) {
        Some(site) => Some(site),
        None => store::put(py, caller, Site::new(py, caller, frame.line(py))),
    }
}

/// The frame that `findCaller(stacklevel=level)` finds on this version of Python, and its site. `level` is at least 1.
#[cfg(Py_3_11)]
pub fn find_at(py: Python<'_>, level: i64) -> Option<(Reference<'_>, Frame)> {
    let mut left = level;
    let mut frame = Frame::top(py)?;
    loop {
        let site = known(py, frame.caller(py), &frame)?;
        if !site.internal {
            left -= 1;
        }
        if left == 0 {
            return Some((site, frame));
        }
        match frame.back(py) {
            Some(outer) => frame = outer,
            // The stack has fewer frames than `level`. The outermost frame is the result, even if it is internal.
            None => return Some((site, frame)),
        }
    }
}

/// The frame that `findCaller(stacklevel=level)` finds on this version of Python, and its site. `level` is at least 1.
#[cfg(not(Py_3_11))]
pub fn find_at(py: Python<'_>, level: i64) -> Option<(Reference<'_>, Frame)> {
    let mut frame = Frame::top(py)?;
    for _ in 1..level {
        match frame.back(py) {
            Some(outer) => frame = outer,
            // The stack has fewer frames than `level`. The nearest frame is the result.
            None => {
                frame = Frame::top(py)?;
                break;
            }
        }
    }
    // Internal frames count as levels, but an internal frame cannot be the result, so it is skipped.
    loop {
        let site = known(py, frame.caller(py), &frame)?;
        if !site.internal {
            return Some((site, frame));
        }
        frame = frame.back(py)?;
    }
}

pub use store::{Reference, init};

#[cfg(not(Py_GIL_DISABLED))]
mod store {
    //! Stores the sites in the extra slot of their code object.
    use super::{Caller, Site};
    use pyo3::{Python, ffi};
    use std::ffi::{c_int, c_void};
    use std::marker::PhantomData;
    use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

    // Declared here because PyO3's names differ between versions, and CPython's names differ since 3.12.
    unsafe extern "C" {
        #[cfg_attr(not(Py_3_12), link_name = "_PyEval_RequestCodeExtraIndex")]
        fn PyUnstable_Eval_RequestCodeExtraIndex(free: unsafe extern "C" fn(*mut c_void)) -> isize;
        #[cfg_attr(not(Py_3_12), link_name = "_PyCode_GetExtra")]
        fn PyUnstable_Code_GetExtra(code: *mut ffi::PyObject, index: isize, extra: *mut *mut c_void) -> c_int;
        #[cfg_attr(not(Py_3_12), link_name = "_PyCode_SetExtra")]
        fn PyUnstable_Code_SetExtra(code: *mut ffi::PyObject, index: isize, extra: *mut c_void) -> c_int;
    }

    /// A site borrowed from its code object. The code object stays alive while the thread has the token `'py`, because
    /// a running frame refers to it. That frame belongs to the caller of the native function or to one of the outer
    /// callers. Sites never move, and are freed only with their code object.
    pub struct BorrowedSite<'py>(*const Site, PhantomData<&'py Site>);

    /// The result of a lookup.
    pub type Reference<'py> = BorrowedSite<'py>;

    impl std::ops::Deref for BorrowedSite<'_> {
        type Target = Site;

        #[inline(always)]
        fn deref(&self) -> &Site {
            // SAFETY: the frame outlives `'py` (see the type), and holds the code object with its sites.
            unsafe { &*self.0 }
        }
    }

    static INDEX: AtomicIsize = AtomicIsize::new(-1);

    /// The sites of one code object, sorted by key.
    struct Sites(Vec<(isize, Box<Site>)>);

    /// # Safety
    ///
    /// `sites` is null or the pointer that `put` stored in the slot, and is not used afterwards.
    unsafe extern "C" fn free(sites: *mut c_void) {
        if !sites.is_null() {
            // SAFETY: `put` made the box; CPython calls this once, when the code object dies.
            drop(unsafe { Box::from_raw(sites.cast::<Sites>()) });
        }
    }

    /// Requests a slot index from CPython. Called at `install()`.
    pub fn init(_attached: Python<'_>) -> bool {
        if INDEX.load(Relaxed) < 0 {
            // SAFETY: the token shows that the thread is attached; `free` accepts everything that `put` stores in the
            // slot.
            INDEX.store(unsafe { PyUnstable_Eval_RequestCodeExtraIndex(free) }, Relaxed);
        }
        INDEX.load(Relaxed) >= 0
    }

    #[inline(always)]
    pub fn find<'py>(_attached: Python<'py>, caller: Caller<'_>) -> Option<Reference<'py>> {
        let mut extra: *mut c_void = std::ptr::null_mut();
        // SAFETY: the caller's frame holds the code object; the index is our own.
        unsafe {
            PyUnstable_Code_GetExtra(caller.code(), INDEX.load(Relaxed), &mut extra);
            let sites = extra.cast::<Sites>().as_ref()?;
            // A function usually logs from only a few lines. Up to 8 sites, a linear scan is faster than a binary
            // search.
            let (_, site) = if sites.0.len() <= 8 {
                sites.0.iter().find(|(key, _)| *key == caller.key())?
            } else {
                &sites.0[sites.0.binary_search_by_key(&caller.key(), |(key, _)| *key).ok()?]
            };
            let address: *const Site = &raw const **site;
            Some(BorrowedSite(address, PhantomData))
        }
    }

    pub fn put<'py>(_attached: Python<'py>, caller: Caller<'_>, site: Site) -> Option<Reference<'py>> {
        let index = INDEX.load(Relaxed);
        let mut extra: *mut c_void = std::ptr::null_mut();
        // SAFETY: the caller's frame holds the code object, and the index is our own; the slot owns the box after
        // `SetExtra`.
        unsafe {
            PyUnstable_Code_GetExtra(caller.code(), index, &mut extra);
            if extra.is_null() {
                extra = Box::into_raw(Box::new(Sites(Vec::with_capacity(1)))).cast();
                if PyUnstable_Code_SetExtra(caller.code(), index, extra) != 0 {
                    ffi::PyErr_Clear();
                    free(extra);
                    return None;
                }
            }
            let sites = &mut (*extra.cast::<Sites>()).0;
            let site = Box::new(site);
            let address: *const Site = &raw const *site;
            let place = sites.partition_point(|(key, _)| *key < caller.key());
            sites.insert(place, (caller.key(), site));
            Some(BorrowedSite(address, PhantomData))
        }
    }
}

#[cfg(Py_GIL_DISABLED)]
mod store {
    //! Stores the sites in a map that keeps their code objects alive.
    use super::{Caller, Site};
    use crate::interpreter::object::Owned;
    use pyo3::prelude::*;
    use std::collections::HashMap;
    use std::marker::PhantomData;
    use std::sync::{Arc, Mutex};

    /// A site with its own reference count. `'py` is the same lifetime as on GIL builds.
    pub struct HeldSite<'py>(Arc<Site>, PhantomData<&'py Site>);

    /// The result of a lookup.
    pub type Reference<'py> = HeldSite<'py>;

    impl std::ops::Deref for HeldSite<'_> {
        type Target = Site;

        fn deref(&self) -> &Site {
            &self.0
        }
    }

    /// Maximum number of sites per shard. A full shard is emptied; a dropped site is created again when it logs again.
    ///
    /// Chosen: 16 shards hold 32,768 sites and take at most about 16 MB; programs have a few hundred sites.
    const MAX_PER_SHARD: usize = 2048;
    const SHARDS: usize = 16;

    type Shard = Mutex<Option<HashMap<(usize, isize), (Owned, Arc<Site>)>>>;
    static MAP: [Shard; SHARDS] = [const { Mutex::new(None) }; SHARDS];

    fn shard(caller: Caller<'_>) -> &'static Shard {
        &MAP[((caller.code() as usize) >> 5) % SHARDS]
    }

    pub fn init(_attached: Python<'_>) -> bool {
        true
    }

    pub fn find<'py>(_attached: Python<'py>, caller: Caller<'_>) -> Option<Reference<'py>> {
        let map = shard(caller).lock().expect("no panic happens while it is held");
        map.as_ref()?.get(&(caller.code() as usize, caller.key())).map(|(_, site)| HeldSite(site.clone(), PhantomData))
    }

    pub fn put<'py>(py: Python<'py>, caller: Caller<'_>, site: Site) -> Option<Reference<'py>> {
        let site = Arc::new(site);
        // SAFETY: the caller's frame holds the code object.
        let code = unsafe { Borrowed::from_ptr(py, caller.code()) };
        let code = Owned::of(&code);
        let gone = {
            let mut map = shard(caller).lock().expect("no panic happens while it is held");
            let map = map.get_or_insert_with(HashMap::new);
            let gone = (map.len() >= MAX_PER_SHARD).then(|| std::mem::take(map));
            let old = map.insert((caller.code() as usize, caller.key()), (code, site.clone()));
            (gone, old)
        };
        drop(gone);
        Some(HeldSite(site, PhantomData))
    }
}
