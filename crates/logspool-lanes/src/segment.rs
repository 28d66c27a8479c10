//! The segment: one shared mapping per process that holds its lanes and everything needed to read them.
//!
//! Pipeline stage: *queue* (see ARCHITECTURE.md). [`layout`] defines the layout, and [`logspool_sys::folder`] the
//! access rights, names and locks of the folder. `pages.rs` knows which parts have memory, `rings.rs` hands out lanes
//! and rings. This file makes, maps and removes segments and stores definitions. The mapping is not inherited by fork
//! (MADV_DONTFORK). A child that touched it would die, so every hot path compares the process generation first (see
//! `generation.rs`).

pub mod layout;
#[cfg(all(test, not(miri)))]
mod memory;
mod own_files;
mod pages;
mod rings;

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
#[cfg(test)]
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use layout::{Header, LaneHead, SinkHead, Table};
use logspool_record::{Encoder, Value, Values};
use logspool_sys::clock::{self, CalibrationPoint};
use logspool_sys::folder::Folder;
use logspool_sys::identity::ProcessIdentity;
use logspool_sys::kept::{FileIdentity, gone};
use logspool_sys::kernel;
use logspool_sys::platform::random;
use logspool_sys::published::Published;
use own_files::OwnerLock;
use pages::{DEFINITION_STEP, MappedPart, Pages};
pub use pages::{PAGE, punch};
pub use rings::SHARED_LANES;

/// A mapped segment.
#[derive(Debug)]
pub struct Segment {
    base: NonNull<u8>,
    bytes: u64,
    ring_limit: u64,
    home: Option<SegmentFiles>,
    pages: Pages,
    /// Bytes of rings that have memory.
    ring_bytes: AtomicU64,
    /// Held while a shared lane gets its ring.
    opening: Mutex<()>,
    /// Offset and length of each freed place in the area for definitions.
    spare: Mutex<Vec<(u64, u64)>>,
    /// Number of overflow files made.
    overflows: AtomicU32,
    /// All ids of this segment are larger than this number, a multiple of the capacity of each table.
    first_id: u32,
}

/// The largest id that a segment of this process, or of its ancestors before the fork, has handed out.
static LARGEST_ID: AtomicU32 = AtomicU32::new(0);

/// The files of a segment on tmpfs.
#[derive(Debug)]
struct SegmentFiles {
    folder: Folder,
    name: String,
    /// The segment's file. No descriptor of it is kept, since the mapping suffices.
    identity: Option<FileIdentity>,
    /// Names of segment and lock for the signal handler, which must not allocate.
    signal_names: [CString; 2],
    /// Held until the process ends.
    lock: OwnerLock,
}

// SAFETY: all shared words in the mapping are atomics; rings are guarded by the cursors' protocol.
unsafe impl Send for Segment {}
// SAFETY: shared access goes through the same atomics and cursors, so it needs no exclusive reference.
unsafe impl Sync for Segment {}

/// Bytes of a lane's first ring.
///
/// Chosen: 32 KiB hold about 500 records. Two such rings are most of the memory of a process that logs little.
pub const FIRST_RING_BYTES: u64 = 32 * 1024;
/// Maximum number of bytes of all rings together.
///
/// Chosen: it limits the share of one process in a common tmpfs. 64 MiB are 190 fully grown lanes and the part of the
/// shared lanes.
pub const MAX_RING_TOTAL: u64 = 64 * 1024 * 1024;

/// The lower half of a word: in an index the offset of a definition, in a definition its length.
const OFFSET_MASK: u64 = u32::MAX as u64;

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Segment {
    /// Makes the segment of this process in `path`.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, or has no room for the first pages and the first shared lane. `AlreadyExists`:
    /// another copy of this library in the process has its segment in that folder.
    #[cfg(test)]
    pub fn create(path: &Path, ring_limit: Option<u64>) -> io::Result<Self> {
        Self::create_in(Folder::open(path)?, ring_limit)
    }

    /// Makes the segment of this process in an open folder.
    ///
    /// # Errors
    ///
    /// There is no room for the first pages and the first shared lane, or a system call failed. `AlreadyExists`:
    /// another copy of this library in the process has its segment in that folder.
    pub fn create_in(folder: Folder, ring_limit: Option<u64>) -> io::Result<Self> {
        if !kernel::has_record_locks() {
            let text = "the system refuses record locks, by which others see that this process lives";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let free = folder.free_bytes()?;
        let ring_limit = ring_limit.unwrap_or((free / 8).min(MAX_RING_TOTAL)).max(FIRST_RING_BYTES);
        let room = kernel::max_file_bytes().saturating_sub(layout::RINGS) / PAGE * PAGE;
        if room < FIRST_RING_BYTES {
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        let ring_limit = ring_limit.min(room);
        let bytes = layout::RINGS + ring_limit;
        let name = ProcessIdentity::current().to_string();
        let (lock, file) = own_files::make(&folder, &name)?;
        let pages = Pages::default();
        let made = (|| {
            // SAFETY: plain system calls on a descriptor that is open.
            check(unsafe { libc::ftruncate(file.as_raw_fd(), bytes as i64) })?;
            let base = map(Some(&file), bytes)?;
            let open = || file.try_clone();
            let mapping = MappedPart::new(base, &open);
            // The ring of the first shared lane: a thread without a lane of its own can always use this lane.
            let begun = pages.begin(&mapping).and_then(|()| pages.take_ring(&mapping, layout::RINGS, FIRST_RING_BYTES));
            if begun.is_err() {
                // SAFETY: mapped above, and nothing refers to it.
                unsafe { libc::munmap(base.as_ptr().cast(), bytes as usize) };
            }
            begun.map(|()| base)
        })();
        let base = match made {
            Ok(base) => base,
            Err(error) => {
                folder.remove(&format!("{name}.seg"))?;
                folder.remove(&format!("{name}.lock"))?;
                folder.remove_if_empty();
                return Err(error);
            }
        };
        let identity = FileIdentity::of(file.as_raw_fd());
        let signal_names = [format!("{name}.seg"), format!("{name}.lock")]
            .map(|name| CString::new(name).expect("NAME is made of digits and dashes"));
        let segment = Self {
            base,
            bytes,
            ring_limit,
            pages,
            ring_bytes: AtomicU64::new(0),
            opening: Mutex::default(),
            spare: Mutex::default(),
            overflows: AtomicU32::new(0),
            first_id: 0,
            home: Some(SegmentFiles { folder, signal_names, name, identity, lock }),
        };
        segment.initialize();
        Ok(segment)
    }

    /// Makes a segment in memory without a file: its contents are lost with the process.
    ///
    /// # Errors
    ///
    /// When the kernel refuses the mapping.
    pub fn in_memory(ring_limit: Option<u64>) -> io::Result<Self> {
        let ring_limit = ring_limit.unwrap_or(MAX_RING_TOTAL).max(FIRST_RING_BYTES);
        let bytes = layout::RINGS + ring_limit;
        let segment = Self {
            base: map(None, bytes)?,
            bytes,
            ring_limit,
            home: None,
            pages: Pages::default(),
            ring_bytes: AtomicU64::new(0),
            opening: Mutex::default(),
            spare: Mutex::default(),
            overflows: AtomicU32::new(0),
            first_id: 0,
        };
        segment.initialize();
        Ok(segment)
    }

    fn initialize(&self) {
        let header = self.base.as_ptr().cast::<Header>();
        let this = ProcessIdentity::current();
        let uuid = random::<16>().unwrap_or_default();
        // SAFETY: the mapping is zeroed, at least a page, and known to this call only.
        unsafe {
            (*header).major = layout::MAJOR;
            (*header).minor = layout::MINOR;
            (*header).segment_bytes = self.bytes;
            (*header).uuid = uuid;
            (*header).pid = std::process::id();
            (*header).clock = clock::kind() as u32;
            (*header).process_start = this.start;
            (*header).pid_namespace = this.namespace;
            (*header).created_ns = clock::wall_ns();
        }
        let header = self.header();
        for counter in [&header.sites, &header.routes, &header.formats, &header.sinks] {
            counter.store(1, Ordering::Relaxed);
        }
        header.definition_bytes.store(8, Ordering::Relaxed);
        header.ring_end.store(layout::RINGS, Ordering::Relaxed);
        header.next_seq.store(1, Ordering::Relaxed);
        header.collector.store(std::process::id(), Ordering::Relaxed);
        self.push_point(clock::first_point());
        // Last store: a thread or process that sees the magic number sees a finished header.
        header.magic.publish(layout::MAGIC);
    }

    /// The first page.
    #[inline]
    pub fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a header and lives as long as `self`; all that changes is atomic.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Head of lane `index`, which must be below the number of lanes in the header: heads beyond have no memory.
    #[inline]
    pub fn lane(&self, index: usize) -> &LaneHead {
        assert!(index < layout::MAX_LANES);
        // SAFETY: inside the fixed part, aligned by the layout, zero is a valid value, all words are atomics.
        unsafe { &*self.at(layout::lane_offset(index)).cast::<LaneHead>() }
    }

    /// Head of sink `index`, which must be below the number of sinks in the header: heads beyond have no memory.
    #[inline]
    pub fn sink(&self, index: usize) -> &SinkHead {
        assert!(index < layout::MAX_SINKS);
        // SAFETY: as in `lane`.
        unsafe { &*self.at(layout::sink_offset(index)).cast::<SinkHead>() }
    }

    /// Address of an offset inside the segment.
    #[inline]
    pub fn at(&self, offset: u64) -> *mut u8 {
        assert!(offset < self.bytes);
        // SAFETY: the assertion keeps the offset inside the mapping.
        unsafe { self.base.as_ptr().add(offset as usize) }
    }

    /// A number for the next overflow file. The numbers of each sink ascend, even if one sink replaces another.
    pub fn next_overflow(&self) -> u32 {
        self.overflows.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the records in the segment survive the process.
    pub fn survives(&self) -> bool {
        self.home.as_ref().is_some_and(|home| home.folder.outlives_process())
    }

    /// The folder and the NAME of the segment's file; `None` if the segment has no file.
    pub fn home(&self) -> Option<(&Folder, &str)> {
        self.home.as_ref().map(|home| (&home.folder, home.name.as_str()))
    }

    /// Whether the file is still in its folder (logind removes a user's shared memory at logout).
    pub fn is_linked(&self) -> bool {
        let is_linked = |home: &SegmentFiles| match home.folder.status(&format!("{}.seg", home.name)) {
            Ok(status) => Some(FileIdentity::of_status(&status)) == home.identity,
            // A process that has changed its user or its root cannot look.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        self.home.as_ref().is_none_or(|home| home.folder.memory_files().is_some() || is_linked(home))
    }

    /// Takes the lock again by which others see that this process lives, if the program has closed its descriptor.
    pub fn renew_lock(&self) {
        if let Some(home) = &self.home {
            home.lock.renew(&home.folder, &home.name);
        }
    }

    /// Runs `act` with the parts of the file that have memory, and its mapping. `None`: the segment has no file.
    fn with_mapping<R>(&self, act: impl FnOnce(&Pages, &MappedPart<'_>) -> R) -> Option<R> {
        let home = self.home.as_ref()?;
        let open = || {
            let file = home.folder.open_file(&format!("{}.seg", home.name))?;
            if FileIdentity::of(file.as_raw_fd()) == home.identity { Ok(file) } else { Err(gone()) }
        };
        Some(act(&self.pages, &MappedPart::new(self.base, &open)))
    }

    /// Makes ids start above all ids that this process, or its ancestors before the fork, have handed out. So a stale
    /// id is recognised by its size. Call it before the first definition.
    pub fn begin_ids(&mut self) {
        let largest = LARGEST_ID.load(Ordering::Relaxed);
        // If no number is left, no definition can be stored.
        self.first_id = largest.checked_next_multiple_of(layout::MAX_SITES as u32).unwrap_or(u32::MAX);
    }

    /// All ids of this segment are larger than this number; see [`Self::begin_ids`].
    #[inline]
    pub fn first_id(&self) -> u32 {
        self.first_id
    }

    /// Stores a definition and returns its id. `None`: the table or the space for definitions is full.
    pub fn define(&self, table: Table, encode: impl FnOnce(&mut Encoder)) -> Option<u32> {
        let counter = self.counter(table);
        if counter.load(Ordering::Relaxed) as usize >= table.capacity() {
            return None;
        }
        let (offset, bytes) = self.store(encode)?;
        let Some(id) = self.take_id(table).and_then(|index| self.first_id.checked_add(index)) else {
            self.lock_spare().push((offset, bytes));
            return None;
        };
        LARGEST_ID.fetch_max(id, Ordering::Relaxed);
        // Pairs with `observe` in `definition`: a thread that sees the offset also sees the definition's bytes.
        self.index_word(table, id).publish(offset | table.generation(id) << 32);
        Some(id)
    }

    /// Counter of a table's ids. It is the next id as long as no slot was used twice.
    fn counter(&self, table: Table) -> &AtomicU32 {
        let header = self.header();
        match table {
            Table::Sites => &header.sites,
            Table::Routes => &header.routes,
            Table::Formats => &header.formats,
            Table::Sinks => &header.sinks,
        }
    }

    /// Takes the next slot of a table. `None`: the table is full, or there is no memory for its next page.
    fn take_id(&self, table: Table) -> Option<u32> {
        let counter = self.counter(table);
        let mut id = counter.load(Ordering::Relaxed);
        loop {
            // Memory is needed before the counter changes: readers expect it for every id below the counter.
            let in_reach = (id as usize) < table.capacity()
                && self.ensure(table.index_offset() + 8 * u64::from(id), 8)
                && (table != Table::Sinks
                    || self.ensure(layout::sink_offset(id as usize), size_of::<SinkHead>() as u64));
            if !in_reach {
                return None;
            }
            // Pairs with `observe` in `definition`.
            match counter.publish_over(id, id + 1) {
                Ok(()) => return Some(id),
                Err(now) => id = now,
            }
        }
    }

    /// Test only: makes the segment behave as if tmpfs were full, or switches this off again.
    #[cfg(test)]
    pub fn set_full(&self, is_full: bool) {
        self.pages.full.store(is_full, Ordering::Relaxed);
    }

    /// Bytes of memory that the segment's file takes.
    #[cfg(test)]
    pub fn file_bytes(&self) -> u64 {
        let blocks = |home: &SegmentFiles| home.folder.status(&format!("{}.seg", home.name)).unwrap().st_blocks;
        self.home.as_ref().map_or(0, |home| blocks(home) as u64 * 512)
    }

    /// Whether a range of the fixed part has memory.
    pub fn has_memory(&self, offset: u64, bytes: u64) -> bool {
        self.home.is_none() || self.pages.has(offset, bytes)
    }

    /// Gives a range of the fixed part memory, if it has none. `false`: no memory is available.
    pub fn ensure(&self, offset: u64, bytes: u64) -> bool {
        self.has_memory(offset, bytes)
            || self.with_mapping(|pages, mapping| pages.take(mapping, offset, bytes)).is_none_or(|done| done.is_ok())
    }

    /// Stores another definition in the slot of `old` and returns its id. `None`: the space or the ids are used up.
    ///
    /// `old` must have no references left, and no thread may read definitions during the call. `before` runs after the
    /// definition is stored and before its id can be found.
    pub fn redefine(
        &self,
        table: Table,
        old: u32,
        before: impl FnOnce(),
        encode: impl FnOnce(&mut Encoder),
    ) -> Option<u32> {
        let id = old.checked_add(table.capacity() as u32)?;
        let (offset, _) = self.store(encode)?;
        before();
        LARGEST_ID.fetch_max(id, Ordering::Relaxed);
        let word = offset | table.generation(id) << 32;
        // Publishes the new definition as `define` does. Acquire: also shows this thread the bytes of the old
        // definition.
        let freed = self.index_word(table, id).exchange(word) & OFFSET_MASK;
        // SAFETY: the offset of a definition points to its two half words.
        let bytes = unsafe { self.at(freed).cast::<u64>().read() } >> 32;
        self.lock_spare().push((freed, bytes));
        Some(id)
    }

    fn lock_spare(&self) -> std::sync::MutexGuard<'_, Vec<(u64, u64)>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a definition to a place that no other one uses. Returns the place's offset and bytes.
    fn store(&self, encode: impl FnOnce(&mut Encoder)) -> Option<(u64, u64)> {
        let mut encoder = Encoder::new();
        encode(&mut encoder);
        let needed = (8 + encoder.bytes.len() as u64).next_multiple_of(8);
        let (offset, bytes) = self.spare_place(needed).or_else(|| Some((self.take_definition(needed)?, needed)))?;
        let place = self.at(offset);
        // SAFETY: the range belongs to this call alone and lies inside the mapping.
        unsafe {
            place.cast::<u64>().write(encoder.bytes.len() as u64 | bytes << 32);
            std::ptr::copy_nonoverlapping(encoder.bytes.as_ptr(), place.add(8), encoder.bytes.len());
        }
        Some((offset, bytes))
    }

    /// The smallest unused place with at least `needed` bytes.
    fn spare_place(&self, needed: u64) -> Option<(u64, u64)> {
        let mut spare = self.lock_spare();
        let fitting = spare.iter().enumerate().filter(|(_, (_, bytes))| *bytes >= needed);
        let (index, _) = fitting.min_by_key(|(_, (_, bytes))| *bytes)?;
        Some(spare.swap_remove(index))
    }

    /// Takes `bytes` that no definition has used yet.
    fn take_definition(&self, bytes: u64) -> Option<u64> {
        let used = &self.header().definition_bytes;
        let start = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            (used + bytes <= layout::DEFINITION_BYTES).then_some(used + bytes)
        });
        let start = start.ok()?;
        let from = layout::DEFINITIONS + start / DEFINITION_STEP * DEFINITION_STEP;
        let to = layout::DEFINITIONS + (start + bytes).next_multiple_of(DEFINITION_STEP);
        if !self.has_memory(layout::DEFINITIONS + start, bytes) && !self.ensure(from, to - from) {
            free_range(used, start, bytes);
            return None;
        }
        Some(layout::DEFINITIONS + start)
    }

    fn index_word(&self, table: Table, id: u32) -> &AtomicU64 {
        // SAFETY: inside the fixed part, 8-aligned by the layout, and accessed only as an atomic.
        unsafe { &*self.at(table.index_offset() + 8 * table.slot(id) as u64).cast() }
    }

    /// The items of a definition's tuple. `None`: there is no such id.
    pub fn definition(&self, table: Table, id: u32) -> Option<Values<'_>> {
        // Pairs with `publish_over` in `take_id`: slots beyond the counter may have no memory.
        if table.slot(id) >= self.counter(table).observe() as usize {
            return None;
        }
        // Pairs with `publish` in `define` and `exchange` in `redefine`.
        let word = self.index_word(table, id).observe();
        if word & OFFSET_MASK == 0 || word >> 32 != table.generation(id) {
            return None;
        }
        // SAFETY: a published offset points to a length and that number of bytes, which do not change while they are
        // read.
        let bytes = unsafe {
            let place = self.at(word & OFFSET_MASK);
            let length = place.cast::<u64>().read() & OFFSET_MASK;
            std::slice::from_raw_parts(place.add(8), length as usize)
        };
        match Values::new(bytes).next_value()? {
            Value::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// Makes room for another calibration point. `false`: there is no memory for it.
    pub fn has_room_for_point(&self) -> bool {
        let slot = self.header().points.load(Ordering::Relaxed) as usize % layout::MAX_POINTS;
        let bytes = size_of::<CalibrationPoint>() as u64;
        self.ensure(layout::POINTS_OFFSET + slot as u64 * bytes, bytes)
    }

    /// Appends a calibration point; a full list loses its oldest point. Call [`Self::has_room_for_point`] first.
    pub fn push_point(&self, point: CalibrationPoint) {
        let count = &self.header().points;
        let index = count.load(Ordering::Relaxed);
        let slot = index as usize % layout::MAX_POINTS;
        // SAFETY: inside the fixed part; only the collector (or the maker) appends.
        unsafe { self.at(layout::POINTS_OFFSET).cast::<CalibrationPoint>().add(slot).write(point) };
        // Pairs with `observe` in `last_point`.
        count.publish(index + 1);
    }

    /// The newest calibration point.
    pub fn last_point(&self) -> CalibrationPoint {
        let index = self.header().points.observe() - 1;
        // SAFETY: below the published count; a segment is made with its first point.
        unsafe {
            self.at(layout::POINTS_OFFSET).cast::<CalibrationPoint>().add(index as usize % layout::MAX_POINTS).read()
        }
    }

    /// Removes segment and lock with async-signal-safe calls only. Overflow and blob files are already gone when
    /// everything is written.
    pub fn unlink_async_signal_safe(&self) {
        if let Some(home) = &self.home {
            for name in &home.signal_names {
                home.folder.unlink_c(name);
            }
        }
    }

    /// Removes the segment's files. Called after its records are written or moved to another place.
    pub fn remove_files(&self) {
        let Some(home) = &self.home else { return };
        let own = format!("{}.", home.name);
        for name in home.folder.names().unwrap_or_default() {
            if name.starts_with(&own) && !name.ends_with(".lock") {
                // If a file cannot be removed, the next start finds it. There is no caller that could get the error.
                let _ = home.folder.remove(&name);
            }
        }
        let _ = home.folder.remove(&format!("{}.lock", home.name));
        home.folder.remove_if_empty();
        home.folder.finish();
    }
}

/// Frees a range that was reserved and got no memory. If another range was reserved after it, the range stays unused.
fn free_range(end: &AtomicU64, start: u64, bytes: u64) {
    let _ = end.compare_exchange(start + bytes, start, Ordering::Relaxed, Ordering::Relaxed);
}

fn map(file: Option<&File>, bytes: u64) -> io::Result<NonNull<u8>> {
    let (flags, descriptor) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        // Miri knows no shared mappings.
        None if cfg!(miri) => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1),
    };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, protection, flags, descriptor, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    if !cfg!(miri) {
        // If the call is refused, forked children inherit the mapping; they never use it.
        // SAFETY: the range was just mapped.
        unsafe { libc::madvise(base, bytes as usize, libc::MADV_DONTFORK) };
    }
    Ok(NonNull::new(base.cast()).expect("mmap never returns the null page without MAP_FIXED"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_by_id_and_bounded() {
        let segment = Segment::in_memory(None).unwrap();
        let mut defined = 0;
        while let Some(id) = segment.define(Table::Formats, |encoder| {
            encoder.tuple(1).int(i64::from(defined));
        }) {
            defined += 1;
            assert_eq!(defined, id);
        }

        assert_eq!(layout::MAX_FORMATS as u32 - 1, defined);
        let mut items = segment.definition(Table::Formats, 7).unwrap();
        assert_eq!(Some(Value::Int(6)), items.next());
        assert!(segment.definition(Table::Formats, 0).is_none());
        assert!(segment.definition(Table::Sites, 1).is_none());
    }

    #[test]
    fn a_range_whose_allocation_failed_is_free_again() {
        let end = AtomicU64::new(300);

        free_range(&end, 200, 100);
        assert_eq!(200, end.load(Ordering::Relaxed));
        free_range(&end, 50, 100);
        assert_eq!(200, end.load(Ordering::Relaxed), "another range was taken behind it");
    }

    #[test]
    fn a_definition_at_the_address_of_another_has_its_own_id_and_bytes() {
        let segment = Segment::in_memory(None).unwrap();
        let old = segment
            .define(Table::Routes, |encoder| {
                encoder.tuple(1).int(1);
            })
            .unwrap();
        let used = || segment.header().definition_bytes.load(Ordering::Relaxed);
        let mut id = old;
        let mut after_two = 0;
        for turn in 0..100 {
            id = segment
                .redefine(
                    Table::Routes,
                    id,
                    || (),
                    |encoder| {
                        encoder.tuple(1).int(turn);
                    },
                )
                .unwrap();
            after_two = if turn == 1 { used() } else { after_two };
        }

        assert_eq!(after_two, used(), "bytes of definitions that nobody needs are used again");
        assert_eq!(old + 100 * layout::MAX_ROUTES as u32, id);
        assert!(segment.definition(Table::Routes, old).is_none());
        assert_eq!(Some(Value::Int(99)), segment.definition(Table::Routes, id).unwrap().next());
    }
}
