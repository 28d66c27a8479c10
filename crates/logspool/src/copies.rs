//! Only one copy of this library in a process may have a queue. The page by which a copy claims the process has the
//! address of its table of functions, through which the calls of later C copies go (`logspool-abi`). A copy whose
//! binding needs more than the table, as Python's does, asks the first one to hand the queue over. Where this is not
//! possible, as between two copies for Python, the later copy refuses all records.
//!
//! Two copies do not know of each other, but they share the resources of the process. These are the name of the
//! process's segment, and the process's record locks, which end when any descriptor of the locked file is closed. So a
//! second copy would remove or unlock files of the first copy.
//!
//! The copy that is used first *claims* the process. It maps a page with the path of its library, under a name that
//! /proc/self/maps shows. A copy that finds the page of another copy has no queue of its own. Forked children
//! inherit the page and the claim; exec ends the page and the claim. A page is never unmapped, so another copy can read
//! it at any time.
//!
//! The page is a memfd, or else a named page of anonymous memory (Linux 5.17). If neither is possible, or if there is
//! no /proc, a second copy still notices the first copy by its files (`segment/own_files.rs`).
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the state of the claim, which every slow
//! path reads, and whether the refusal was reported.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use logspool_lanes::segment::layout::level_class;
use logspool_sys::fork_safe_lock::PerProcess;
use logspool_sys::opening::read;
use logspool_sys::platform;
use logspool_sys::published::Published;
use logspool_sys::sleep::sleep_interruptibly;

use crate::stats::PerLevel;

const NAME: &CStr = c"logspool-core";
/// Names of the two kinds of page in /proc/self/maps.
const MAPPING_NAMES: [&str; 2] = ["/memfd:logspool-core", "[anon:logspool-core]"];
const PAGE: usize = 4096;
const PATH_BYTES: usize = PAGE - 32;

/// Values of the first word of a page: its copy is looking for other copies, has claimed the process, or has withdrawn.
const TRYING: u64 = u64::from_le_bytes(*b"LOGSTRYS");
const CLAIMED: u64 = u64::from_le_bytes(*b"LOGSCORE");
const WITHDRAWN: u64 = 0;

/// How long a copy waits for another copy that looks at the same time. Chosen: a hundred times the duration of a look.
const TIMEOUT: Duration = Duration::from_millis(100);

/// The page that a copy maps.
#[repr(C)]
struct CopyPage {
    state: AtomicU64,
    /// Address of [`CLAIM`] in the copy that made the page, so that a child forked during a claim recognises its own
    /// page.
    copy: u64,
    /// Address of the table of functions that the copy offers to others; 0 for none.
    table: AtomicU64,
    path_bytes: u64,
    path: [u8; PATH_BYTES],
}

const _: () = assert!(size_of::<CopyPage>() == PAGE);

/// Describes the copy of the library that has the queue of this process. Used in a copy that was refused.
#[derive(Debug)]
pub struct OtherCopy {
    /// Path of its library.
    library: String,
    /// Address of its table of functions; 0 for none.
    table: u64,
}

impl OtherCopy {
    /// Address of the table of functions that the other copy offers; 0 for none.
    pub fn table(&self) -> u64 {
        self.table
    }
}

impl fmt::Display for OtherCopy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "logspool is in this process twice: {} cannot have a queue beside that of {} (fix: load one copy of the \
             library)",
            own_library(),
            self.library
        )
    }
}

impl std::error::Error for OtherCopy {}

/// Result of the claim: null before the first try, then [`THIS_COPY`] or the other copy.
static CLAIM: AtomicPtr<OtherCopy> = AtomicPtr::new(std::ptr::null_mut());
/// Its address represents this copy in [`CLAIM`]; the value is never read.
static THIS_COPY: OtherCopy = OtherCopy { library: String::new(), table: 0 };

/// A number that identifies this copy in the process.
fn this_copy() -> u64 {
    std::ptr::from_ref(&CLAIM) as u64
}

fn this_copy_pointer() -> *mut OtherCopy {
    std::ptr::from_ref(&THIS_COPY).cast_mut()
}

/// The other copy, if this one was refused.
pub(crate) fn other() -> Option<&'static OtherCopy> {
    let claim = CLAIM.observe();
    // SAFETY: a stored copy is never freed.
    if claim == this_copy_pointer() { None } else { unsafe { claim.as_ref() } }
}

/// Claims this process for this copy of the library. Later calls return the same result.
///
/// # Errors
///
/// Fails if another copy has claimed the process.
pub fn claim() -> Result<(), &'static OtherCopy> {
    claim_with(0)
}

/// Asks another copy, by its table, to hand the queue over. Returns whether it did.
pub type HandOver = fn(u64) -> bool;
/// Continues after another copy has handed the queue over and this copy has claimed the process.
pub type AfterHandOver = fn(u64);

static HAND_OVER: AtomicPtr<HandOver> = AtomicPtr::new(std::ptr::null_mut());
static AFTER_HAND_OVER: AtomicPtr<AfterHandOver> = AtomicPtr::new(std::ptr::null_mut());

/// Makes this copy take the queue over from a copy that was first, where that copy agrees. The table is offered to later
/// copies.
pub fn offer(table: u64, hand_over: &'static HandOver, after: &'static AfterHandOver) {
    TABLE.publish(table);
    AFTER_HAND_OVER.publish(std::ptr::from_ref(after).cast_mut());
    HAND_OVER.publish(std::ptr::from_ref(hand_over).cast_mut());
}

/// Withdraws the claim of this copy, for another copy that waits to claim the process.
pub(crate) fn give_up() {
    // SAFETY: a stored page is never unmapped.
    if let Some(page) = unsafe { OWN_PAGE.observe().as_ref() } {
        page.state.publish(WITHDRAWN);
    }
    CLAIM.publish(Box::into_raw(Box::new(OtherCopy {
        library: "the copy that took the queue over".to_owned(),
        table: 0,
    })));
}

/// Reverts [`give_up`].
pub(crate) fn keep() {
    // SAFETY: as in `give_up`.
    if let Some(page) = unsafe { OWN_PAGE.observe().as_ref() } {
        page.state.publish(CLAIMED);
    }
    CLAIM.publish(this_copy_pointer());
}

/// Address of the table that this copy offers; 0 for none.
static TABLE: AtomicU64 = AtomicU64::new(0);
/// The page of this copy after it has claimed the process, or null.
static OWN_PAGE: AtomicPtr<CopyPage> = AtomicPtr::new(std::ptr::null_mut());

/// Claims as [`claim`] does, and offers the table of functions at the address `table` to other copies.
///
/// # Errors
///
/// Fails if another copy has claimed the process.
pub fn claim_with(table: u64) -> Result<(), &'static OtherCopy> {
    if table != 0 {
        TABLE.publish(table);
        // SAFETY: a stored page is never unmapped.
        if let Some(page) = unsafe { OWN_PAGE.observe().as_ref() } {
            page.table.publish(table);
        }
    }
    // The threads of this copy claim one after the other.
    static CLAIMING: PerProcess<()> = PerProcess::new();
    if CLAIM.observe().is_null() {
        let after = CLAIMING.with(|()| {
            if !CLAIM.observe().is_null() {
                return None;
            }
            let mut other = try_claim();
            let mut after = None;
            // SAFETY: a stored hook is a static.
            if let (Some(first), Some(hook)) = (&other, unsafe { HAND_OVER.observe().as_ref() }) {
                after = hook(first.table).then_some(first.table);
                if after.is_some() {
                    other = try_claim();
                }
            }
            CLAIM.publish(other.map_or(this_copy_pointer(), |other| Box::into_raw(Box::new(other))));
            after
        });
        // SAFETY: a stored hook is a static.
        if let (Some(table), Some(hook)) = (after, unsafe { AFTER_HAND_OVER.observe().as_ref() }) {
            hook(table);
        }
    }
    other().map_or(Ok(()), Err)
}

/// Tries to claim the process. If another copy has claimed the process, returns the path of that copy's library.
fn try_claim() -> Option<OtherCopy> {
    if let Some(page) = claimed_page() {
        return Some(page.owner());
    }
    let own = map_page(this_copy())?;
    // From here on other copies find this page. Of two copies that look at the same time, at least one finds the other.
    // This holds because the kernel's lock of the mappings orders the two, and the state of a page is one word.
    let deadline = Instant::now() + TIMEOUT;
    loop {
        // Read the state of each page only once. With two reads, a copy that claims between them would be seen neither
        // as trying nor as having claimed.
        let states: Vec<_> = pages().into_iter().map(|page| (page, page.state.observe())).collect();
        let find = |wanted: u64| states.iter().find(|(_, state)| *state == wanted).map(|(page, _)| *page);
        if let Some(page) = find(CLAIMED) {
            own.state.publish(WITHDRAWN);
            return Some(page.owner());
        }
        match find(TRYING) {
            None => {
                OWN_PAGE.publish(std::ptr::from_ref(own).cast_mut());
                own.table.publish(TABLE.observe());
                own.state.publish(CLAIMED);
                return None;
            }
            // Of two copies, the one whose page has the higher address withdraws, and the other waits until it has
            // withdrawn.
            Some(page) if std::ptr::from_ref(page) < std::ptr::from_ref(own) || Instant::now() >= deadline => {
                own.state.publish(WITHDRAWN);
                return Some(page.owner());
            }
            Some(_) => sleep_interruptibly(Duration::from_micros(50)),
        }
    }
}

/// Checks as [`claim`] does, but does not claim the process. Callers that only read files use it.
///
/// # Errors
///
/// Fails if another copy has claimed the process.
pub(crate) fn check() -> std::io::Result<()> {
    let other = if CLAIM.observe().is_null() {
        claimed_page().map(|page| page.owner().to_string())
    } else {
        other().map(OtherCopy::to_string)
    };
    other.map_or(Ok(()), |text| Err(std::io::Error::new(std::io::ErrorKind::AddrInUse, text)))
}

/// Notes that files of another copy are in the queue's folder. From here on this copy refuses all records.
pub(crate) fn refuse_for(folder: &Path) {
    let other = OtherCopy { library: format!("an unknown copy, whose queue is in {}", folder.display()), table: 0 };
    CLAIM.publish(Box::into_raw(Box::new(other)));
}

/// Reports once on standard error that this copy is refused.
pub(crate) fn report_once() {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if let Some(other) = other().filter(|_| !REPORTED.swap(true, Ordering::Relaxed)) {
        crate::fallback::report(&format!(
            "{other}; records that go through the refused copy are refused and counted\n"
        ));
    }
}

/// Number of records that this copy refused in this process because it has no queue.
static REFUSED: PerProcess<PerLevel> = PerProcess::new();

/// Counts a record that is refused because this copy has no queue.
pub(crate) fn count_refusal(level: u16) {
    REFUSED.with(|refused| refused[level_class(level)] += 1);
}

/// The counts of [`count_refusal`].
pub(crate) fn refused() -> PerLevel {
    REFUSED.with(|refused| *refused)
}

impl CopyPage {
    fn owner(&self) -> OtherCopy {
        OtherCopy { library: self.library(), table: self.table.observe() }
    }

    fn library(&self) -> String {
        let path = self.path.get(..self.path_bytes as usize).unwrap_or_default();
        String::from_utf8_lossy(path).into_owned()
    }
}

/// The page of the other copy that has claimed the process, if any.
fn claimed_page() -> Option<&'static CopyPage> {
    pages().into_iter().find(|page| page.state.observe() == CLAIMED)
}

/// The pages of all other copies.
fn pages() -> Vec<&'static CopyPage> {
    let maps = read("/proc/self/maps").unwrap_or_default();
    let lines = maps.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    let named = lines.filter(|line| MAPPING_NAMES.iter().any(|shown| line.contains(shown)));
    let addresses = named.filter_map(|line| usize::from_str_radix(line.split('-').next()?, 16).ok());
    // SAFETY: a page with this name is a `CopyPage` and is never unmapped. The page's path was written before the page
    // got its name or was mapped; the page's state is an atomic.
    let pages = addresses.map(|address| unsafe { &*(address as *const CopyPage) });
    pages.filter(|page: &&CopyPage| page.copy != this_copy()).collect()
}

/// Maps the page of this copy. Returns `None` if no page with a name can be mapped.
fn map_page(copy: u64) -> Option<&'static CopyPage> {
    let library = own_library();
    let path_bytes = library.len().min(PATH_BYTES);
    let state = AtomicU64::new(TRYING);
    let mut page =
        CopyPage { state, copy, table: AtomicU64::new(0), path_bytes: path_bytes as u64, path: [0; PATH_BYTES] };
    page.path[..path_bytes].copy_from_slice(&library.as_bytes()[..path_bytes]);
    let address = map_memfd(&page).or_else(|| map_named(&page))?;
    // SAFETY: mapped with the bytes of a `CopyPage`, and never unmapped.
    Some(unsafe { &*address.cast::<CopyPage>() })
}

fn map_memfd(page: &CopyPage) -> Option<*mut c_void> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::from(platform::memory_file(NAME, 0).ok()?);
    // SAFETY: a page consists of plain bytes; the mapping is fresh.
    unsafe {
        file.write_all_at(std::slice::from_raw_parts(std::ptr::from_ref(page).cast(), PAGE), 0).ok()?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let address = libc::mmap(std::ptr::null_mut(), PAGE, protection, libc::MAP_SHARED, file.as_raw_fd(), 0);
        (address != libc::MAP_FAILED).then_some(address)
    }
}

fn map_named(page: &CopyPage) -> Option<*mut c_void> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: this is a fresh mapping of a page. It is filled before it gets the name by which other copies find it.
    unsafe {
        let address = libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0);
        if address == libc::MAP_FAILED {
            return None;
        }
        std::ptr::copy_nonoverlapping(std::ptr::from_ref(page), address.cast(), 1);
        if libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, address, PAGE, NAME.as_ptr()) != 0 {
            libc::munmap(address, PAGE);
            return None;
        }
        Some(address)
    }
}

/// Path of the file that this code was loaded from.
fn own_library() -> String {
    // SAFETY: an all-zero Dl_info is a valid buffer for the answer. The address belongs to a static in this library,
    // and the returned name lives as long as the library.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let address = std::ptr::from_ref(&CLAIM).cast::<c_void>();
        if libc::dladdr(address, &mut info) == 0 || info.dli_fname.is_null() {
            return "an unknown file".to_owned();
        }
        CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_another_copy_is_found_with_the_path_of_its_library() {
        let own = map_page(this_copy()).expect("this kernel has memfd_create or names of anonymous memory");
        assert!(pages().is_empty(), "those of this copy are none of another");
        let other = map_page(this_copy() + 8).unwrap();
        assert_eq!([other.library()], pages().iter().map(|page| page.library()).collect::<Vec<_>>().as_slice());
        assert!(claimed_page().is_none());

        other.state.publish(CLAIMED);
        assert_eq!(Some(own_library()), try_claim().map(|other| other.library));
        for page in [own, other] {
            page.state.publish(WITHDRAWN);
        }
        assert!(try_claim().is_none());
    }

    #[test]
    fn the_error_for_a_second_copy_names_both_libraries_and_a_fix() {
        let text = OtherCopy { library: "/other/logspool.so".to_owned(), table: 0 }.to_string();
        for part in [own_library().as_str(), "/other/logspool.so", "fix: load one copy"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
