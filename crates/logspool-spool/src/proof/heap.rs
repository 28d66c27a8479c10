//! A fast allocator for the threads of a long proof. With malloc and free they would spend a third of their time there.
//!
//! A thread that calls [`use_lists`] takes blocks from its own free lists, one list for each size, and returns the
//! blocks to these lists. No other thread uses them. All other memory of the test program comes from the system
//! allocator. The address of a block shows its allocator: the lists are filled from one address range that is reserved
//! at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Block sizes are multiples of this number of bytes.
const STEP_BYTES: usize = 16;
/// Maximum size of a block in a list. Larger blocks come from the system allocator.
const MAX_BYTES: usize = 16 * 1024;
/// Number of bytes that a thread takes from the reserved range at once.
const PIECE_BYTES: usize = 1024 * 1024;
/// Size of the reserved address range; pages are allocated when they are used.
const RANGE_BYTES: usize = 1 << 36;

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

/// Start of the range, or 0 until a thread reserves it; and the bytes handed out from it.
static RANGE: AtomicUsize = AtomicUsize::new(0);
static TAKEN: AtomicUsize = AtomicUsize::new(0);

struct Lists {
    is_used: Cell<bool>,
    /// The first free block of each size; a free block begins with the address of the next.
    free: [Cell<*mut u8>; MAX_BYTES / STEP_BYTES + 1],
    /// Start of the unused part of the thread's last piece.
    begin: Cell<usize>,
    end: Cell<usize>,
}

thread_local! {
    // `Lists` has no destructor, so it is valid until the thread's last allocation.
    static LISTS: Lists = const {
        Lists {
            is_used: Cell::new(false),
            free: [const { Cell::new(null_mut()) }; MAX_BYTES / STEP_BYTES + 1],
            begin: Cell::new(0),
            end: Cell::new(0),
        }
    };
}

/// Makes this thread allocate from its own lists from now on.
pub fn use_lists() {
    static RESERVED: OnceLock<usize> = OnceLock::new();
    let begin = RESERVED.get_or_init(|| {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping anywhere; nothing else is touched.
        let range = unsafe { libc::mmap(null_mut(), RANGE_BYTES, access, kind | libc::MAP_NORESERVE, -1, 0) };
        if range == libc::MAP_FAILED { 0 } else { range as usize }
    });
    RANGE.store(*begin, Ordering::Relaxed);
    LISTS.with(|lists| lists.is_used.set(*begin != 0));
}

impl Lists {
    /// Takes a block from the list of its size, or else from the thread's piece. Null if the range is used up.
    fn take(&self, size: usize) -> *mut u8 {
        let list = &self.free[size];
        let block = list.get();
        if !block.is_null() {
            // SAFETY: a free block holds the address of the next one, or null.
            list.set(unsafe { block.cast::<*mut u8>().read() });
            return block;
        }
        let bytes = size * STEP_BYTES;
        if self.end.get() - self.begin.get() < bytes {
            let taken = TAKEN.fetch_add(PIECE_BYTES, Ordering::Relaxed);
            if taken + PIECE_BYTES > RANGE_BYTES {
                return null_mut();
            }
            self.begin.set(RANGE.load(Ordering::Relaxed) + taken);
            self.end.set(self.begin.get() + PIECE_BYTES);
        }
        let block = self.begin.get();
        self.begin.set(block + bytes);
        block as *mut u8
    }

    fn give_back(&self, block: *mut u8, size: usize) {
        let list = &self.free[size];
        // SAFETY: the block is free, aligned for an address, and no smaller than one.
        unsafe { block.cast::<*mut u8>().write(list.get()) };
        list.set(block);
    }
}

/// Index of the list for a layout. `None`: the system allocator serves this layout.
fn size_of(layout: Layout) -> Option<usize> {
    (layout.size() <= MAX_BYTES && layout.align() <= STEP_BYTES).then(|| layout.size().div_ceil(STEP_BYTES).max(1))
}

/// Whether a block is in the reserved range.
fn is_listed(block: *mut u8) -> bool {
    let begin = RANGE.load(Ordering::Relaxed);
    begin != 0 && (block as usize).wrapping_sub(begin) < RANGE_BYTES
}

// SAFETY: a block is either the system allocator's, with its calls passed on unchanged, or a part of the range. Such a
// part is large and aligned enough, belongs to one caller, and is in no list while it is in use.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(size) = size_of(layout) {
            let block = LISTS.with(|lists| if lists.is_used.get() { lists.take(size) } else { null_mut() });
            if !block.is_null() {
                return block;
            }
        }
        // SAFETY: the caller's contract for `alloc` is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match size_of(layout).filter(|_| is_listed(block)) {
            Some(size) => LISTS.with(|lists| lists.give_back(block, size)),
            // SAFETY: the block is outside the range or too large for a list, so the system allocator made it.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !is_listed(block) {
            // SAFETY: the block is outside the range, so the system allocator made it.
            return unsafe { System.realloc(block, layout, bytes) };
        }
        // SAFETY: the caller guarantees that the alignment is valid with the new size.
        let wanted = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        if size_of(wanted) == size_of(layout) {
            return block;
        }
        // SAFETY: the new block does not overlap the old one, and both have room for the copied bytes.
        unsafe {
            let other = self.alloc(wanted);
            if !other.is_null() {
                other.copy_from_nonoverlapping(block, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
            other
        }
    }
}
