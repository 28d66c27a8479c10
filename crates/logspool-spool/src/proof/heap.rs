//! Memory for the threads of a long proof: a third of their time would go to malloc and free.
//!
//! A thread that asked for it takes blocks from lists of its own, one for each size, and gives what it frees back to
//! them; no other thread looks at them. Everything else in the test program keeps the system's allocator. Which of
//! the two a block is from is told by its address: the lists are filled from one range that is reserved at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sizes are multiples of it.
const STEP_BYTES: usize = 16;
/// Larger blocks are the system's.
const MAX_BYTES: usize = 16 * 1024;
/// What a thread takes from the range at once.
const PIECE_BYTES: usize = 1024 * 1024;
/// Addresses that are reserved; memory is taken as they are used.
const RANGE_BYTES: usize = 1 << 36;

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

/// Where the range begins, 0 as long as no thread asked for it, and how much of it is given out.
static RANGE: AtomicUsize = AtomicUsize::new(0);
static TAKEN: AtomicUsize = AtomicUsize::new(0);

struct Lists {
    is_used: Cell<bool>,
    /// The first free block of each size; it begins with the address of the next.
    free: [Cell<*mut u8>; MAX_BYTES / STEP_BYTES + 1],
    /// What is left of the last piece.
    begin: Cell<usize>,
    end: Cell<usize>,
}

thread_local! {
    // Without a destructor: it is there as long as anything of the thread is.
    static LISTS: Lists = const {
        Lists {
            is_used: Cell::new(false),
            free: [const { Cell::new(null_mut()) }; MAX_BYTES / STEP_BYTES + 1],
            begin: Cell::new(0),
            end: Cell::new(0),
        }
    };
}

/// Lets this thread take its memory from lists of its own from now on.
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
    /// A block of a size, from its list or of the piece; null where the range is used up.
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

/// The place of a size among the lists; `None`: it is the system's.
fn size_of(layout: Layout) -> Option<usize> {
    (layout.size() <= MAX_BYTES && layout.align() <= STEP_BYTES).then(|| layout.size().div_ceil(STEP_BYTES).max(1))
}

/// Whether a block is from a list.
fn is_listed(block: *mut u8) -> bool {
    let begin = RANGE.load(Ordering::Relaxed);
    begin != 0 && (block as usize).wrapping_sub(begin) < RANGE_BYTES
}

// SAFETY: a block is either the system's, whose calls it gets unchanged, or a part of a range that nobody else has, as
// large and aligned as was asked for, and in no list while it is in use.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(size) = size_of(layout) {
            let block = LISTS.with(|lists| if lists.is_used.get() { lists.take(size) } else { null_mut() });
            if !block.is_null() {
                return block;
            }
        }
        // SAFETY: as the caller has it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match size_of(layout).filter(|_| is_listed(block)) {
            Some(size) => LISTS.with(|lists| lists.give_back(block, size)),
            // SAFETY: the block is the system's.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !is_listed(block) {
            // SAFETY: the block is the system's.
            return unsafe { System.realloc(block, layout, bytes) };
        }
        // SAFETY: the caller says that the alignment is sound with the new size.
        let wanted = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        if size_of(wanted) == size_of(layout) {
            return block;
        }
        // SAFETY: the new block is another one, and both hold what is copied.
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
